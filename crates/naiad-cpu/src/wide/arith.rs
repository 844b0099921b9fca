//! Functions of numbers, comparisons and masks.

use super::lower::{Lanes, Lower, is_bool, sized};
use super::machine::{Op, Width};
use naiad_ir::scalar::{BinaryFn, Predicate, UnaryFn};
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
            UnaryFn::Abs if x.bits == 64 && !self.avx512() => {
                let zero = self.number(&x, 0);
                let negative = self.compare_lanes(Predicate::Lt, of, &x, &zero)?;
                let minus = self.by_part(Op::SubQ, [&zero, &x]);
                self.choose(&negative, &minus, &x)
            }
            UnaryFn::Abs => {
                let op = self.sized(&x, [Op::AbsB, Op::AbsW, Op::AbsD, Op::AbsQ])?;
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
                BinaryFn::Div | BinaryFn::DivRn => [Op::DivPs, Op::DivPd],
                _ => return None,
            };
            return Some(self.by_part(ops[usize::from(x.bits == 64)], [&x, &y]));
        }
        if let (BinaryFn::Shl | BinaryFn::Shr, Some(by)) = (f, self.known(b)) {
            return self.shift_by(f, of, &x, by);
        }
        self.binary_int(f, of, &x, &y)
    }

    /// Shifts by one number in all lanes.
    fn shift_by(&mut self, f: BinaryFn, of: Scalar, x: &Lanes, by: u64) -> Option<Lanes> {
        let left = f == BinaryFn::Shl;
        let signed = !left && of.is_signed();
        if x.bits == 8 {
            let wide = self.resize(x, 16, signed);
            let of = if signed { Scalar::I16 } else { Scalar::U16 };
            let shifted = self.shift_by(f, of, &wide, by)?;
            return Some(self.resize(&shifted, 8, false));
        }
        let imm = Some(by.min(255) as u8);
        if signed && x.bits == 64 && !self.avx512() {
            // With the highest bit flipped all numbers are positive, and lie as much higher.
            let sign = 1u64 << 63;
            let flipped = self.with_constant(Op::XorD, x, sign);
            let imm = by.min(63);
            let shifted = self.by_part_imm(Op::ShrImmQ, [&flipped], Some(imm as u8));
            return Some(self.with_constant(Op::SubQ, &shifted, sign >> imm));
        }
        let ops = match (left, signed) {
            (true, _) => [None, Some(Op::ShlImmW), Some(Op::ShlImmD), Some(Op::ShlImmQ)],
            (_, false) => [None, Some(Op::ShrImmW), Some(Op::ShrImmD), Some(Op::ShrImmQ)],
            (_, true) => [None, Some(Op::SarImmW), Some(Op::SarImmD), Some(Op::SarImmQ)],
        };
        Some(self.by_part_imm(sized(x.bits, ops)?, [x], imm))
    }

    fn shift(&mut self, f: BinaryFn, of: Scalar, x: &Lanes, y: &Lanes) -> Option<Lanes> {
        let left = f == BinaryFn::Shl;
        let signed = !left && of.is_signed();
        let words = self.avx512();
        if x.bits == 8 || x.bits == 16 && !words {
            let bits = if words { 16 } else { 32 };
            let wide = match (bits, signed) {
                (16, true) => Scalar::I16,
                (16, false) => Scalar::U16,
                (_, true) => Scalar::I32,
                (_, false) => Scalar::U32,
            };
            return self.through(bits, [signed, false], [x, y], |l, x, y| l.shift(f, wide, x, y));
        }
        if signed && x.bits == 64 && !words {
            let limit = self.number(y, 63);
            let beyond = self.compare_lanes(Predicate::Gt, Scalar::U64, y, &limit)?;
            let y = self.choose(&beyond, &limit, y)?;
            let sign = self.number(x, 1 << 63);
            let flipped = self.by_part(Op::XorD, [x, &sign]);
            let [a, b] = [&flipped, &sign].map(|v| self.by_part(Op::ShrQ, [v, &y]));
            return Some(self.by_part(Op::SubQ, [&a, &b]));
        }
        let ops = match (left, signed) {
            (true, _) => [None, Some(Op::ShlW), Some(Op::ShlD), Some(Op::ShlQ)],
            (_, false) => [None, Some(Op::ShrW), Some(Op::ShrD), Some(Op::ShrQ)],
            (_, true) => [None, Some(Op::SarW), Some(Op::SarD), Some(Op::SarQ)],
        };
        Some(self.by_part(sized(x.bits, ops)?, [x, y]))
    }

    pub fn binary_int(&mut self, f: BinaryFn, of: Scalar, x: &Lanes, y: &Lanes) -> Option<Lanes> {
        let signed = of.is_signed();
        let ops = match f {
            BinaryFn::Add => [Op::AddB, Op::AddW, Op::AddD, Op::AddQ],
            BinaryFn::Sub => [Op::SubB, Op::SubW, Op::SubD, Op::SubQ],
            BinaryFn::And => [Op::AndD; 4],
            BinaryFn::Or => [Op::OrD; 4],
            BinaryFn::Xor => [Op::XorD; 4],
            BinaryFn::Mul => return Some(self.product(x, y)),
            BinaryFn::Umulhi => return self.high_product(x, y),
            BinaryFn::Idiv => return self.quotient(of, x, y),
            BinaryFn::Rem => {
                // With a quotient of 0 where the divisor is 0 this is `x` there, as it must be.
                let quotient = self.quotient(of, x, y)?;
                let whole = self.product(&quotient, y);
                return self.binary_int(BinaryFn::Sub, of, x, &whole);
            }
            BinaryFn::Shl | BinaryFn::Shr => return self.shift(f, of, x, y),
            BinaryFn::Min | BinaryFn::MinNan if x.bits == 64 && !self.avx512() => {
                let less = self.compare_lanes(Predicate::Lt, of, x, y)?;
                return self.choose(&less, x, y);
            }
            BinaryFn::Max | BinaryFn::MaxNan if x.bits == 64 && !self.avx512() => {
                let less = self.compare_lanes(Predicate::Lt, of, x, y)?;
                return self.choose(&less, y, x);
            }
            BinaryFn::Min | BinaryFn::MinNan if signed => {
                [Op::MinSb, Op::MinSw, Op::MinSd, Op::MinSq]
            }
            BinaryFn::Min | BinaryFn::MinNan => [Op::MinUb, Op::MinUw, Op::MinUd, Op::MinUq],
            BinaryFn::Max | BinaryFn::MaxNan if signed => {
                [Op::MaxSb, Op::MaxSw, Op::MaxSd, Op::MaxSq]
            }
            BinaryFn::Max | BinaryFn::MaxNan => [Op::MaxUb, Op::MaxUw, Op::MaxUd, Op::MaxUq],
            _ => return None,
        };
        Some(self.by_part(self.sized(x, ops)?, [x, y]))
    }

    /// The low half of the product.
    fn product(&mut self, x: &Lanes, y: &Lanes) -> Lanes {
        match x.bits {
            8 => {
                let [a, b] = [x, y].map(|v| self.resize(v, 16, false));
                let product = self.product(&a, &b);
                self.resize(&product, 8, false)
            }
            16 => self.by_part(Op::MulW, [x, y]),
            32 => self.by_part(Op::MulD, [x, y]),
            _ if self.avx512() => self.by_part(Op::MulQ, [x, y]),
            _ => {
                let low = self.by_part(Op::MulUdq, [x, y]);
                let [hx, hy] = [x, y].map(|v| self.by_part_imm(Op::ShrImmQ, [v], Some(32)));
                let [a, b] = [[&hx, y], [x, &hy]].map(|pair| self.by_part(Op::MulUdq, pair));
                let cross = self.by_part(Op::AddQ, [&a, &b]);
                let cross = self.by_part_imm(Op::ShlImmQ, [&cross], Some(32));
                self.by_part(Op::AddQ, [&low, &cross])
            }
        }
    }

    /// The high half of the unsigned product.
    fn high_product(&mut self, x: &Lanes, y: &Lanes) -> Option<Lanes> {
        match x.bits {
            8 | 16 => self.through(2 * x.bits, [false; 2], [x, y], |l, a, b| {
                let product = l.product(a, b);
                let of = if a.bits == 16 { Scalar::U16 } else { Scalar::U32 };
                l.shift_by(BinaryFn::Shr, of, &product, x.bits.into())
            }),
            32 => {
                // The products of the even lanes and of the odd ones, whose high halves are wanted.
                let even = self.by_part(Op::MulUdq, [x, y]);
                let [ox, oy] = [x, y].map(|v| self.by_part_imm(Op::ShrImmQ, [v], Some(32)));
                let odd = self.by_part(Op::MulUdq, [&ox, &oy]);
                let even = self.by_part_imm(Op::ShrImmQ, [&even], Some(32));
                let width = self.width(32, x.count);
                let high = self.code.splat(width, 64, 0xffff_ffff_0000_0000);
                let high = Lanes { parts: x.parts.iter().map(|_| high).collect(), ..x.clone() };
                let odd = self.by_part(Op::AndD, [&odd, &high]);
                Some(self.by_part(Op::OrD, [&even, &odd]))
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
            return Some(self.compared(self.sized(x, ops)?, x, y, Some(how)));
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
        let y = self.mask_for(y, x.bits, x.each);
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

    pub fn binary_mask(&mut self, f: BinaryFn, x: &Lanes, y: &Lanes) -> Option<Lanes> {
        let ops = match f {
            BinaryFn::Add | BinaryFn::Sub | BinaryFn::Xor => [Op::KXor, Op::XorD],
            BinaryFn::Mul | BinaryFn::Idiv | BinaryFn::And | BinaryFn::Min | BinaryFn::MinNan => {
                [Op::KAnd, Op::AndD]
            }
            BinaryFn::Or | BinaryFn::Max | BinaryFn::MaxNan => [Op::KOr, Op::OrD],
            BinaryFn::Rem | BinaryFn::Shl | BinaryFn::Shr => return self.without(y, x),
            // No product has a high half.
            BinaryFn::Umulhi => return self.of_masks([Op::KXor, Op::XorD], x, x),
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
        let mask = self.mask_for(mask, 8, each);
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
