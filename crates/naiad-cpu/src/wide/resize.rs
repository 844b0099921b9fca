//! Vectors and masks with lanes of another width.

use super::lower::{Lanes, Lower, Parts, sized};
use super::machine::{Level, Op, Reg, Width};

impl Lower<'_> {
    /// The register whose lowest bytes are these of the vector.
    fn piece(&mut self, x: &Lanes, at: u32, bytes: u32) -> Reg {
        let width = self.width(x.bits, x.count);
        let part = x.parts[(at / width.bytes()) as usize];
        let at = at % width.bytes();
        if at == 0 {
            return part;
        }
        if bytes == 32 {
            return self.code.full(Op::HighY, width, Width::Y, &[part], None, Some(1));
        }
        let block = match at / 16 {
            0 => part,
            i => self.code.full(Op::HighX, width, Width::X, &[part], None, Some(i as u8)),
        };
        match (at % 16, bytes) {
            (0, _) => block,
            (_, 8) => self.code.op_imm(Op::ShuffleD, Width::X, &[block], 0xee),
            (i, _) => self.code.op_imm(Op::ShuffleD, Width::X, &[block], i as u8 / 4 * 0x55),
        }
    }

    /// Registers of which only the lowest bytes count, as full ones.
    fn join(&mut self, mut pieces: Parts, mut bytes: u32) -> Parts {
        while pieces.len() > 1 && bytes < self.level().bytes() {
            let (op, width, imm) = match bytes {
                4 => (Op::LowDwords, Width::X, None),
                8 => (Op::LowQuads, Width::X, None),
                16 => (Op::JoinX, Width::Y, Some(1)),
                _ => (Op::JoinY, Width::Z, Some(1)),
            };
            pieces = pieces
                .chunks(2)
                .map(|pair| self.code.full(op, width, width, pair, None, imm))
                .collect();
            bytes *= 2;
        }
        pieces
    }

    /// An instruction to wider lanes, which takes as many as its result has.
    pub fn spread(&mut self, op: Op, x: &Lanes, bits: u32) -> Lanes {
        let (width, each) = (self.width(bits, x.count), self.each(bits, x.count));
        let bytes = each * x.bits / 8;
        let parts = (0..x.count / each)
            .map(|i| {
                let piece = self.piece(x, i * bytes, bytes);
                self.code.full(op, width, width, &[piece], None, None)
            })
            .collect();
        self.vector(bits, x.count, parts)
    }

    /// An instruction to narrower lanes, whose results are joined.
    pub fn squeeze(&mut self, op: Op, x: &Lanes, bits: u32, imm: Option<u8>) -> Lanes {
        let width = self.width(x.bits, x.count);
        let bytes = x.each * bits / 8;
        let pieces = x
            .parts
            .iter()
            .map(|&p| self.code.full(op, width, Width::of(bytes), &[p], None, imm))
            .collect();
        let parts = self.join(pieces, bytes);
        self.vector(bits, x.count, parts)
    }

    /// Integers of another width: their low bits, or extended after their kind.
    pub fn resize(&mut self, x: &Lanes, bits: u32, signed: bool) -> Lanes {
        if x.bits == bits {
            return x.clone();
        }
        if bits > x.bits {
            let op = match (x.bits, bits, signed) {
                (8, 16, true) => Op::SextBW,
                (8, 32, true) => Op::SextBD,
                (8, _, true) => Op::SextBQ,
                (16, 32, true) => Op::SextWD,
                (16, _, true) => Op::SextWQ,
                (_, _, true) => Op::SextDQ,
                (8, 16, false) => Op::ZextBW,
                (8, 32, false) => Op::ZextBD,
                (8, _, false) => Op::ZextBQ,
                (16, 32, false) => Op::ZextWD,
                (16, _, false) => Op::ZextWQ,
                (_, _, false) => Op::ZextDQ,
            };
            return self.spread(op, x, bits);
        }
        if self.level() == Level::Avx512 {
            let op = match (x.bits, bits) {
                (16, _) => Op::LowWB,
                (32, 8) => Op::LowDB,
                (32, _) => Op::LowDW,
                (_, 8) => Op::LowQB,
                (_, 16) => Op::LowQW,
                _ => Op::LowQD,
            };
            return self.squeeze(op, x, bits, None);
        }
        let half = self.halve(x);
        self.resize(&half, bits, signed)
    }

    /// The low halves of lanes, on AVX2.
    fn halve(&mut self, x: &Lanes) -> Lanes {
        let (width, bits) = (self.width(x.bits, x.count), x.bits / 2);
        let size = bits as u8 / 8;
        let order: [u8; 16] =
            std::array::from_fn(|i| (i as u8 / size * 2 * size + i as u8 % size) % 16);
        let order = order.repeat(width.bytes() as usize / 16);
        let pieces = x
            .parts
            .iter()
            .map(|&part| {
                // To the low halves of blocks of 128 bits, and those together.
                let low = if x.bits == 64 {
                    self.code.op_imm(Op::ShuffleD, width, &[part], 0x08)
                } else {
                    let order = self.code.constant(width, &order, None);
                    self.code.op(Op::ShuffleB, width, &[part, order])
                };
                match width {
                    Width::X => low,
                    _ => self.code.full(Op::PermuteQ, width, Width::X, &[low], None, Some(0x08)),
                }
            })
            .collect();
        let parts = self.join(pieces, x.each * bits / 8);
        self.vector(bits, x.count, parts)
    }

    /// The mask for lanes of so many bits, so many in a part.
    pub fn mask_for(&mut self, mask: &Lanes, bits: u32, each: u32) -> Lanes {
        if self.avx512() { self.mask_by(mask, each) } else { self.resize(mask, bits, true) }
    }

    /// The mask with so many lanes in a register.
    fn mask_by(&mut self, mask: &Lanes, each: u32) -> Lanes {
        let mut parts = Parts::new();
        if each == mask.each {
            return mask.clone();
        } else if each < mask.each {
            for &part in &mask.parts {
                for i in 0..mask.each / each {
                    parts.push(match (i * each) as u8 {
                        0 => part,
                        by => self.code.op_imm(Op::KShr, Width::X, &[part], by),
                    });
                }
            }
        } else {
            for group in mask.parts.chunks((each / mask.each) as usize) {
                let mut whole = None;
                for (i, &part) in group.iter().enumerate() {
                    // What a register holds beyond its lanes may be anything, and must not get here.
                    let top = 64 - mask.each as u8;
                    let high = self.code.op_imm(Op::KShl, Width::X, &[part], top);
                    let back = 64 - (i as u32 + 1) * mask.each;
                    let moved = match back {
                        0 => high,
                        _ => self.code.op_imm(Op::KShr, Width::X, &[high], back as u8),
                    };
                    whole = Some(match whole {
                        None => moved,
                        Some(w) => self.code.op(Op::KOr, Width::X, &[w, moved]),
                    });
                }
                parts.extend(whole);
            }
        }
        Lanes { each, parts, ..mask.clone() }
    }

    /// Does with lanes of so many bits what is not written for narrower ones.
    pub fn through(
        &mut self,
        bits: u32,
        signed: [bool; 2],
        [x, y]: [&Lanes; 2],
        f: impl FnOnce(&mut Self, &Lanes, &Lanes) -> Option<Lanes>,
    ) -> Option<Lanes> {
        let (wide_x, wide_y) = (self.resize(x, bits, signed[0]), self.resize(y, bits, signed[1]));
        let made = f(self, &wide_x, &wide_y)?;
        Some(self.resize(&made, x.bits, false))
    }

    /// By the bits of these lanes.
    pub fn sized(&self, x: &Lanes, ops: [Op; 4]) -> Option<Op> {
        sized(x.bits, ops.map(Some))
    }
}
