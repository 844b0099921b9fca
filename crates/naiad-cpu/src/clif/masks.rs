//! Masks and choices.

use super::emit::Emit;
use super::lanes::{Held, Lanes, int_type, lanes_in_part, parts_of, vector_type};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, InstBuilder, types};
use cranelift_frontend::FunctionBuilder;
use smallvec::smallvec;

impl Emit<'_> {
    /// A mask out of a boolean.
    pub fn splat_mask(&mut self, src: ir::Value, count: u32) -> Lanes {
        let wide = self.b.ins().uextend(types::I32, src);
        let ones = self.b.ins().ineg(wide);
        self.splat(ones, count)
    }

    /// A lane of a mask as a boolean.
    pub fn extract_bool(&mut self, mask: &Lanes, lane: u32) -> ir::Value {
        if mask.is_scalar() {
            return self.one(mask);
        }
        let ones = self.extract(mask, lane);
        let byte =
            if mask.lane == types::I8 { ones } else { self.b.ins().ireduce(types::I8, ones) };
        self.b.ins().band_imm_u(byte, 1)
    }

    /// The mask with lanes of `bits` bits.
    pub fn mask_of(&mut self, mask: &Lanes, bits: u32) -> Lanes {
        if mask.is_scalar() || mask.lane.bits() == bits {
            return mask.clone();
        }
        let lane = int_type(bits);
        if mask.uniform {
            let held = match &mask.held {
                Held::Constant(bits) => {
                    return Lanes { lane, held: Held::Constant(bits.clone()), ..*mask };
                }
                Held::Values(parts) => parts[0],
            };
            let part = self.bitcast(vector_type(lane), held);
            return self.repeat(lane, mask.count, part);
        }
        let first = self.part(mask, 0);
        if let Some(known) = self.masks.get(&(first, bits)) {
            return known.clone();
        }
        let half_way =
            if mask.lane.bits() < bits { self.widen_mask(mask) } else { self.narrow_mask(mask) };
        let converted = self.mask_of(&half_way, bits);
        self.masks.insert((first, bits), converted.clone());
        converted
    }

    fn widen_mask(&mut self, mask: &Lanes) -> Lanes {
        let lane = int_type(2 * mask.lane.bits());
        let (each, narrow) = (lanes_in_part(lane), lanes_in_part(mask.lane));
        let parts = (0..parts_of(lane, mask.count))
            .map(|p| {
                let src = self.part(mask, p as usize / 2);
                let first = p % 2 * each;
                let twice =
                    self.shuffle_parts(mask.lane, src, src, |i| first + i / 2 + i % 2 * narrow);
                self.bitcast(vector_type(lane), twice)
            })
            .collect();
        Lanes::vector(lane, mask.count, parts)
    }

    fn narrow_mask(&mut self, mask: &Lanes) -> Lanes {
        let lane = int_type(mask.lane.bits() / 2);
        let halves = self.parts(mask);
        let parts = halves
            .chunks(2)
            .map(|pair| {
                let (a, b) = (pair[0], pair[pair.len() - 1]);
                if mask.lane == types::I64 {
                    let (a, b) = (self.bitcast(types::I32X4, a), self.bitcast(types::I32X4, b));
                    self.shuffle_parts(types::I32, a, b, |i| i * 2)
                } else {
                    self.b.ins().snarrow(a, b)
                }
            })
            .collect();
        Lanes::vector(lane, mask.count, parts)
    }

    /// The mask as a number, lane 0 lowest, in 64 bits.
    pub fn mask_bits(&mut self, mask: &Lanes) -> ir::Value {
        if mask.is_scalar() {
            let one = self.one(mask);
            return self.b.ins().uextend(types::I64, one);
        }
        // The fewest registers first: a byte for a lane is enough.
        let mask = if mask.num_parts() > 1 { self.mask_of(mask, 8) } else { mask.clone() };
        let mut bits: Option<ir::Value> = None;
        for (i, part) in self.parts(&mask).into_iter().enumerate() {
            let low = self.b.ins().vhigh_bits(types::I32, part);
            let low = self.b.ins().uextend(types::I64, low);
            bits = Some(match bits {
                None => low,
                Some(bits) => {
                    let high = self
                        .b
                        .ins()
                        .ishl_imm_u(low, i as i64 * i64::from(lanes_in_part(mask.lane)));
                    self.b.ins().bor(bits, high)
                }
            });
        }
        let bits = bits.unwrap_or_else(|| self.iconst(types::I64, 0));
        if mask.count < lanes_in_part(mask.lane) {
            return self.b.ins().band_imm_u(bits, (1 << mask.count) - 1);
        }
        bits
    }

    /// The number that [`Emit::mask_bits`] gives for a mask of all true.
    pub fn all_bits(count: u32) -> i64 {
        (u64::MAX >> (64 - count)) as i64
    }

    pub fn any(&mut self, mask: &Lanes) -> ir::Value {
        if mask.is_scalar() {
            return self.one(mask);
        }
        let joined = self.join(mask, |b, x, y| b.ins().bor(x, y));
        let bits = self.mask_bits(&joined);
        self.b.ins().icmp_imm_u(IntCC::NotEqual, bits, 0)
    }

    pub fn all(&mut self, mask: &Lanes) -> ir::Value {
        if mask.is_scalar() {
            return self.one(mask);
        }
        let joined = self.join(mask, |b, x, y| b.ins().band(x, y));
        let bits = self.mask_bits(&joined);
        self.b.ins().icmp_imm_u(IntCC::Equal, bits, Self::all_bits(joined.count))
    }

    /// One part out of all.
    fn join(
        &mut self,
        mask: &Lanes,
        f: impl Fn(&mut FunctionBuilder<'_>, ir::Value, ir::Value) -> ir::Value,
    ) -> Lanes {
        let mut part = self.part(mask, 0);
        for i in 1..mask.num_parts() {
            let next = self.part(mask, i);
            part = f(&mut self.b, part, next);
        }
        Lanes::vector(mask.lane, mask.lanes_used(), smallvec![part])
    }

    /// Lane by lane one or the other.
    pub fn select(&mut self, mask: &Lanes, yes: &Lanes, no: &Lanes) -> Lanes {
        if yes.is_scalar() {
            let [mask, x, y] = [mask, yes, no].map(|x| self.one(x));
            return Lanes::scalar(yes.lane, self.b.ins().select(mask, x, y));
        }
        let mask = self.mask_of(mask, yes.lane.bits());
        self.by_part(yes.lane, [&mask, yes, no], |e, [m, y, n]| e.blend(m, y, n))
    }

    /// Part of the one or of the other, by a mask of lanes as wide.
    pub fn blend(&mut self, mask: ir::Value, yes: ir::Value, no: ir::Value) -> ir::Value {
        let ty = self.b.func.dfg.value_type(yes);
        if !self.target.blends {
            let mask = self.bitcast(ty, mask);
            return self.b.ins().bitselect(mask, yes, no);
        }
        // There is no such instruction for lanes of 16 bits; that for bytes does.
        let by = match ty.lane_bits() {
            32 => types::I32X4,
            64 => types::I64X2,
            _ => types::I8X16,
        };
        let [mask, yes, no] = [mask, yes, no].map(|x| self.bitcast(by, x));
        let part = self.b.ins().blendv(mask, yes, no);
        self.bitcast(ty, part)
    }
}
