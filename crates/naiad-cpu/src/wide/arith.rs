//! Functions of numbers, comparisons and masks.

use super::lower::{Lanes, Lower, Parts, is_bool, sized};
use super::machine::{Op, Width};
use naiad_ir::scalar::{BinaryFn, Predicate, TernaryFn, UnaryFn};
use naiad_ir::{Scalar, Value};

/// What the machine's comparisons of floats take as their immediate.
const EQUAL: u8 = 0;
const LESS: u8 = 17;
const LESS_EQUAL: u8 = 18;
const NOT_EQUAL: u8 = 4;

impl Lower<'_> {
    pub fn unary(&mut self, f: UnaryFn, v: Value) -> Option<Lanes> {
        let of = self.ty(v)?;
        let x = self.get(v)?;
        if is_bool(of) {
            return match f {
                UnaryFn::Neg | UnaryFn::Abs | UnaryFn::Popc | UnaryFn::Brev => Some(x),
                UnaryFn::Not | UnaryFn::Clz => Some(self.not_mask(&x)),
                _ => None,
            };
        }
        let of = of.elem.scalar()?;
        if of.is_float() {
            let single = x.bits == 32;
            let sign = 1u64 << (x.bits - 1);
            let round = |how| (if single { Op::RoundPs } else { Op::RoundPd }, Some(how));
            let (op, imm) = match f {
                UnaryFn::Neg => return Some(self.with_constant(Op::XorD, &x, sign)),
                UnaryFn::Abs => return Some(self.with_constant(Op::AndD, &x, sign - 1)),
                // 8: whether the result is exact is not reported.
                UnaryFn::Rint => round(8),
                UnaryFn::Floor => round(8 | 1),
                UnaryFn::Ceil => round(8 | 2),
                UnaryFn::Trunc => round(8 | 3),
                UnaryFn::Sqrt | UnaryFn::SqrtRn => {
                    (if single { Op::SqrtPs } else { Op::SqrtPd }, None)
                }
                _ => return None,
            };
            return Some(self.by_part_imm(op, [&x], imm));
        }
        match f {
            UnaryFn::Not => Some(self.with_constant(Op::XorD, &x, u64::MAX >> (64 - x.bits))),
            UnaryFn::Neg => {
                let zero = self.number(&x, 0);
                self.binary_int(BinaryFn::Sub, of, &zero, &x)
            }
            UnaryFn::Abs if !of.is_signed() => Some(x),
            UnaryFn::Abs => {
                let q = self.avx512().then_some(Op::AbsQ);
                let op = sized(x.bits, [Some(Op::AbsB), Some(Op::AbsW), Some(Op::AbsD), q])?;
                Some(self.by_part(op, [&x]))
            }
            UnaryFn::Clz if self.avx512() => {
                let op = sized(x.bits, [None, None, Some(Op::ClzD), Some(Op::ClzQ)])?;
                Some(self.by_part(op, [&x]))
            }
            _ => None,
        }
    }

    /// A constant like these lanes.
    pub fn number(&mut self, like: &Lanes, image: u64) -> Lanes {
        let width = self.width(like.bits, like.count);
        let part = self.code.splat(width, like.bits, image);
        self.repeat(like.bits, like.count, part)
    }

    pub fn with_constant(&mut self, op: Op, x: &Lanes, image: u64) -> Lanes {
        let y = self.number(x, image);
        self.by_part(op, [x, &y])
    }

    pub fn binary(&mut self, f: BinaryFn, a: Value, b: Value) -> Option<Lanes> {
        let of = self.ty(a)?;
        let (x, y) = (self.get(a)?, self.get(b)?);
        if is_bool(of) {
            return self.binary_mask(f, &x, &y);
        }
        let of = of.elem.scalar().unwrap_or(Scalar::U64);
        if of.is_float() {
            let ops = match f {
                BinaryFn::Add => [Op::AddPs, Op::AddPd],
                BinaryFn::Sub => [Op::SubPs, Op::SubPd],
                BinaryFn::Mul => [Op::MulPs, Op::MulPd],
                BinaryFn::Div => [Op::DivPs, Op::DivPd],
                _ => return None,
            };
            return Some(self.by_part(ops[usize::from(x.bits == 64)], [&x, &y]));
        }
        if let (BinaryFn::Shl | BinaryFn::Shr, Some(by)) = (f, self.known(b)) {
            return self.shift_by(f, of, &x, by);
        }
        self.binary_int(f, of, &x, &y)
    }

    fn shift_by(&mut self, f: BinaryFn, of: Scalar, x: &Lanes, by: u64) -> Option<Lanes> {
        let right = f == BinaryFn::Shr;
        let ops = match (right, right && of.is_signed()) {
            (false, _) => [None, Some(Op::ShlImmW), Some(Op::ShlImmD), Some(Op::ShlImmQ)],
            (true, false) => [None, Some(Op::ShrImmW), Some(Op::ShrImmD), Some(Op::ShrImmQ)],
            (true, true) => {
                let q = self.avx512().then_some(Op::SarImmQ);
                [None, Some(Op::SarImmW), Some(Op::SarImmD), q]
            }
        };
        Some(self.by_part_imm(sized(x.bits, ops)?, [x], Some(by.min(255) as u8)))
    }

    pub fn binary_int(&mut self, f: BinaryFn, of: Scalar, x: &Lanes, y: &Lanes) -> Option<Lanes> {
        let wide = |op| self.avx512().then_some(op);
        let signed = of.is_signed();
        let ops = match f {
            BinaryFn::Add => [Op::AddB, Op::AddW, Op::AddD, Op::AddQ].map(Some),
            BinaryFn::Sub => [Op::SubB, Op::SubW, Op::SubD, Op::SubQ].map(Some),
            BinaryFn::And => [Some(Op::AndD); 4],
            BinaryFn::Or => [Some(Op::OrD); 4],
            BinaryFn::Xor => [Some(Op::XorD); 4],
            BinaryFn::Mul => [None, Some(Op::MulW), Some(Op::MulD), wide(Op::MulQ)],
            BinaryFn::Min | BinaryFn::MinNan if signed => {
                [Some(Op::MinSb), Some(Op::MinSw), Some(Op::MinSd), wide(Op::MinSq)]
            }
            BinaryFn::Min | BinaryFn::MinNan => {
                [Some(Op::MinUb), Some(Op::MinUw), Some(Op::MinUd), wide(Op::MinUq)]
            }
            BinaryFn::Max | BinaryFn::MaxNan if signed => {
                [Some(Op::MaxSb), Some(Op::MaxSw), Some(Op::MaxSd), wide(Op::MaxSq)]
            }
            BinaryFn::Max | BinaryFn::MaxNan => {
                [Some(Op::MaxUb), Some(Op::MaxUw), Some(Op::MaxUd), wide(Op::MaxUq)]
            }
            BinaryFn::Shl => [None, wide(Op::ShlW), Some(Op::ShlD), Some(Op::ShlQ)],
            BinaryFn::Shr if signed => [None, wide(Op::SarW), Some(Op::SarD), wide(Op::SarQ)],
            BinaryFn::Shr => [None, wide(Op::ShrW), Some(Op::ShrD), Some(Op::ShrQ)],
            _ => return None,
        };
        Some(self.by_part(sized(x.bits, ops)?, [x, y]))
    }

    pub fn ternary(&mut self, f: TernaryFn, a: Value, b: Value, c: Value) -> Option<Lanes> {
        let of = self.scalar_of(a)?;
        let (x, y, z) = (self.get(a)?, self.get(b)?, self.get(c)?);
        match f {
            TernaryFn::Fma if of.is_float() => {
                let op = if x.bits == 32 { Op::Fma213Ps } else { Op::Fma213Pd };
                Some(self.by_part(op, [&x, &y, &z]))
            }
            TernaryFn::Clamp if of.is_int() && !of.is_bool() => {
                let raised = self.binary_int(BinaryFn::Max, of, &x, &y)?;
                self.binary_int(BinaryFn::Min, of, &raised, &z)
            }
            _ => None,
        }
    }

    pub fn compare(&mut self, p: Predicate, a: Value, b: Value) -> Option<Lanes> {
        let of = self.ty(a)?;
        let (x, y) = (self.get(a)?, self.get(b)?);
        if is_bool(of) {
            return self.compare_masks(p, &x, &y);
        }
        self.compare_lanes(p, of.elem.scalar().unwrap_or(Scalar::U64), &x, &y)
    }

    pub fn compare_lanes(
        &mut self,
        p: Predicate,
        of: Scalar,
        x: &Lanes,
        y: &Lanes,
    ) -> Option<Lanes> {
        let (p, x, y) = match p {
            Predicate::Gt => (Predicate::Lt, y, x),
            Predicate::Ge => (Predicate::Le, y, x),
            Predicate::Eq | Predicate::Ne | Predicate::Lt | Predicate::Le => (p, x, y),
        };
        if of.is_float() {
            let how = match p {
                Predicate::Eq => EQUAL,
                Predicate::Ne => NOT_EQUAL,
                Predicate::Lt | Predicate::Gt => LESS,
                Predicate::Le | Predicate::Ge => LESS_EQUAL,
            };
            let op = match (self.avx512(), x.bits) {
                (true, 32) => Op::CmpPsK,
                (true, _) => Op::CmpPdK,
                (false, 32) => Op::CmpPs,
                (false, _) => Op::CmpPd,
            };
            return Some(self.compared(op, x, y, Some(how)));
        }
        if self.avx512() {
            let ops = if of.is_signed() {
                [Op::CmpBK, Op::CmpWK, Op::CmpDK, Op::CmpQK]
            } else {
                [Op::CmpUbK, Op::CmpUwK, Op::CmpUdK, Op::CmpUqK]
            };
            let how = match p {
                Predicate::Eq => 0,
                Predicate::Ne => 4,
                Predicate::Lt | Predicate::Gt => 1,
                Predicate::Le | Predicate::Ge => 2,
            };
            return Some(self.compared(sized(x.bits, ops.map(Some))?, x, y, Some(how)));
        }
        let equal = [Op::EqB, Op::EqW, Op::EqD, Op::EqQ].map(Some);
        let greater = [Op::GtB, Op::GtW, Op::GtD, Op::GtQ].map(Some);
        let (mut x, mut y) = (x.clone(), y.clone());
        if !of.is_signed() && !matches!(p, Predicate::Eq | Predicate::Ne) {
            // With the highest bit flipped the signed order is that of the unsigned.
            let sign = 1 << (x.bits - 1);
            x = self.with_constant(Op::XorD, &x, sign);
            y = self.with_constant(Op::XorD, &y, sign);
        }
        Some(match p {
            Predicate::Eq => self.compared(sized(x.bits, equal)?, &x, &y, None),
            Predicate::Lt | Predicate::Gt => self.compared(sized(x.bits, greater)?, &y, &x, None),
            Predicate::Ne => {
                let same = self.compared(sized(x.bits, equal)?, &x, &y, None);
                self.not_mask(&same)
            }
            Predicate::Le | Predicate::Ge => {
                let above = self.compared(sized(x.bits, greater)?, &x, &y, None);
                self.not_mask(&above)
            }
        })
    }

    fn compared(&mut self, op: Op, x: &Lanes, y: &Lanes, imm: Option<u8>) -> Lanes {
        let lanes = self.by_part_imm(op, [x, y], imm);
        Lanes { bits: if self.avx512() { 1 } else { lanes.bits }, ..lanes }
    }

    /// A function of masks that look alike.
    fn of_masks(&mut self, [k, v]: [Op; 2], x: &Lanes, y: &Lanes) -> Option<Lanes> {
        let y = self.mask_for(y, x.bits, x.each)?;
        Some(if self.avx512() { self.by_mask(k, [x, &y]) } else { self.by_part(v, [x, &y]) })
    }

    fn by_mask<const N: usize>(&mut self, op: Op, args: [&Lanes; N]) -> Lanes {
        let parts = (0..args[0].parts.len())
            .map(|i| self.code.op(op, Width::X, &args.map(|a| a.parts[i])))
            .collect();
        Lanes { parts, ..args[0].clone() }
    }

    pub fn not_mask(&mut self, x: &Lanes) -> Lanes {
        if self.avx512() {
            return self.by_mask(Op::KNot, [x]);
        }
        self.with_constant(Op::XorD, x, u64::MAX >> (64 - x.bits))
    }

    /// `y` without `x`.
    fn without(&mut self, x: &Lanes, y: &Lanes) -> Option<Lanes> {
        self.of_masks([Op::KAndn, Op::AndnD], x, y)
    }

    fn binary_mask(&mut self, f: BinaryFn, x: &Lanes, y: &Lanes) -> Option<Lanes> {
        let ops = match f {
            BinaryFn::Add | BinaryFn::Sub | BinaryFn::Xor => [Op::KXor, Op::XorD],
            BinaryFn::Mul | BinaryFn::Idiv | BinaryFn::And | BinaryFn::Min | BinaryFn::MinNan => {
                [Op::KAnd, Op::AndD]
            }
            BinaryFn::Or | BinaryFn::Max | BinaryFn::MaxNan => [Op::KOr, Op::OrD],
            BinaryFn::Rem | BinaryFn::Shl | BinaryFn::Shr => return self.without(y, x),
            _ => return None,
        };
        self.of_masks(ops, x, y)
    }

    fn compare_masks(&mut self, p: Predicate, x: &Lanes, y: &Lanes) -> Option<Lanes> {
        match p {
            Predicate::Ne => self.of_masks([Op::KXor, Op::XorD], x, y),
            Predicate::Eq => {
                let differ = self.of_masks([Op::KXor, Op::XorD], x, y)?;
                Some(self.not_mask(&differ))
            }
            Predicate::Lt => self.without(x, y),
            Predicate::Gt => self.without(y, x),
            Predicate::Le | Predicate::Ge => {
                let (x, y) = if p == Predicate::Le { (x, y) } else { (y, x) };
                let above = self.without(y, x)?;
                Some(self.not_mask(&above))
            }
        }
    }

    pub fn select_mask(&mut self, mask: &Lanes, yes: &Lanes, no: &Lanes) -> Option<Lanes> {
        let on = self.of_masks([Op::KAnd, Op::AndD], mask, yes)?;
        let off = self.without(mask, no)?;
        self.of_masks([Op::KOr, Op::OrD], &on, &off)
    }

    /// The mask for lanes of so many bits, so many in a part.
    pub fn mask_for(&mut self, mask: &Lanes, bits: u32, each: u32) -> Option<Lanes> {
        if self.avx512() {
            return self.mask_by(mask, each);
        }
        if mask.bits == bits {
            return Some(mask.clone());
        }
        None
    }

    /// The mask with so many lanes in a register.
    fn mask_by(&mut self, mask: &Lanes, each: u32) -> Option<Lanes> {
        if mask.each == each {
            return Some(mask.clone());
        }
        let mut parts = Parts::new();
        if each < mask.each {
            for &part in &mask.parts {
                for i in 0..mask.each / each {
                    let by = (i * each) as u8;
                    parts.push(match by {
                        0 => part,
                        _ => self.code.op_imm(Op::KShr, Width::X, &[part], by),
                    });
                }
            }
        } else {
            for group in mask.parts.chunks((each / mask.each) as usize) {
                let mut whole = None;
                for (i, &part) in group.iter().enumerate() {
                    // What a register holds beyond its lanes may be anything, and must not be set here.
                    let low = self.code.op_imm(Op::KShl, Width::X, &[part], 64 - mask.each as u8);
                    let back = 64 - (i as u32 + 1) * mask.each;
                    let moved = match back {
                        0 => low,
                        _ => self.code.op_imm(Op::KShr, Width::X, &[low], back as u8),
                    };
                    whole = Some(match whole {
                        None => moved,
                        Some(w) => self.code.op(Op::KOr, Width::X, &[w, moved]),
                    });
                }
                parts.extend(whole);
            }
        }
        Some(Lanes { each, parts, ..mask.clone() })
    }

    /// Booleans in memory are bytes, true if not 0.
    pub fn bytes_to_mask(&mut self, raw: &Lanes) -> Option<Lanes> {
        if self.avx512() {
            let lanes = self.by_part(Op::TestBK, [raw, raw]);
            return Some(Lanes { bits: 1, ..lanes });
        }
        let zero = self.number(raw, 0);
        let is_zero = self.compared(Op::EqB, raw, &zero, None);
        Some(self.not_mask(&is_zero))
    }

    pub fn mask_to_bytes(&mut self, mask: &Lanes) -> Option<Lanes> {
        let each = self.each(8, mask.count);
        let mask = self.mask_for(mask, 8, each)?;
        if !self.avx512() {
            return Some(self.with_constant(Op::AndD, &mask, 1));
        }
        let width = self.width(8, mask.count);
        let parts = mask
            .parts
            .iter()
            .map(|&k| self.code.full(Op::MaskToB, width, width, &[k], None, None))
            .collect();
        let ones = Lanes { bits: 8, parts, ..mask };
        Some(self.with_constant(Op::AndD, &ones, 1))
    }
}
