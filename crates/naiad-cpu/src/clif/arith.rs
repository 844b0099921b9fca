//! Functions of numbers.
//!
//! Most are one instruction for each part. Integer functions that are total here and trap or wrap
//! otherwise (division, shifts past the width) are completed; what a vector has no instruction for is
//! made of wider lanes, of floats that hold the integers exactly, or of scalars.

use super::emit::Emit;
use super::lanes::{Lanes, int_type, lanes_in_part, vector_type};
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{self, InstBuilder, types};
use naiad_ir::Scalar;
use naiad_ir::scalar::{BinaryFn, Predicate, TernaryFn, UnaryFn};
use naiad_ir::thread::ThreadElem;

/// The logarithm of a constant that is a power of two in every lane, as a signed number too.
fn power_of_two(x: &Lanes) -> Option<u32> {
    let known = x.known_int().filter(|k| *k > 0)?;
    (known.count_ones() == 1).then_some(known.trailing_zeros())
}

/// A row that should have been expanded, as an error.
fn foreign(name: &str, of: Scalar) -> String {
    format!("there is neither an instruction for `{name}` of {of} nor an expansion")
}

impl Emit<'_> {
    pub fn unary(&mut self, f: UnaryFn, of: Scalar, x: &Lanes) -> Result<Lanes, String> {
        if of.is_bool() {
            return match f {
                UnaryFn::Neg | UnaryFn::Abs | UnaryFn::Popc | UnaryFn::Brev => Ok(x.clone()),
                UnaryFn::Not | UnaryFn::Clz => Ok(self.not(x)),
                _ => Err(foreign(f.name(), of)),
            };
        }
        if of.is_float() {
            let native: fn(&mut Self, ir::Value) -> ir::Value = match f {
                UnaryFn::Neg => |e, x| e.b.ins().fneg(x),
                UnaryFn::Abs if !x.is_scalar() => {
                    let size = u64::MAX >> (65 - x.lane.bits());
                    return Ok(self.band(x, &Lanes::constant(x.lane, x.count, size)));
                }
                UnaryFn::Abs => |e, x| e.b.ins().fabs(x),
                UnaryFn::Floor => |e, x| e.b.ins().floor(x),
                UnaryFn::Ceil => |e, x| e.b.ins().ceil(x),
                UnaryFn::Trunc => |e, x| e.b.ins().trunc(x),
                UnaryFn::Rint => |e, x| e.b.ins().nearest(x),
                UnaryFn::Sqrt | UnaryFn::SqrtRn => |e, x| e.b.ins().sqrt(x),
                _ => return Err(foreign(f.name(), of)),
            };
            return Ok(self.by_part(x.lane, [x], |e, [x]| native(e, x)));
        }
        let native: fn(&mut Self, ir::Value) -> ir::Value = match f {
            UnaryFn::Neg => |e, x| e.b.ins().ineg(x),
            UnaryFn::Not => |e, x| e.b.ins().bnot(x),
            UnaryFn::Abs if of.is_signed() => |e, x| e.b.ins().iabs(x),
            UnaryFn::Abs => return Ok(x.clone()),
            UnaryFn::Popc => |e, x| e.b.ins().popcnt(x),
            UnaryFn::Clz => |e, x| e.b.ins().clz(x),
            UnaryFn::Brev => |e, x| e.b.ins().bitrev(x),
            _ => return Err(foreign(f.name(), of)),
        };
        let of_vectors = match f {
            UnaryFn::Popc => x.lane == types::I8,
            _ => !matches!(f, UnaryFn::Clz | UnaryFn::Brev),
        };
        if x.is_scalar() || of_vectors {
            return Ok(self.by_part(x.lane, [x], |e, [x]| native(e, x)));
        }
        Ok(self.by_lane(x.lane, [x], |e, [x]| native(e, x)))
    }

    pub fn binary(
        &mut self,
        f: BinaryFn,
        of: Scalar,
        x: &Lanes,
        y: &Lanes,
    ) -> Result<Lanes, String> {
        if of.is_bool() {
            return self.bool_binary(f, x, y);
        }
        let native: fn(&mut Self, ir::Value, ir::Value) -> ir::Value = if of.is_float() {
            match f {
                BinaryFn::Add => |e, x, y| e.b.ins().fadd(x, y),
                BinaryFn::Sub => |e, x, y| e.b.ins().fsub(x, y),
                BinaryFn::Mul => |e, x, y| e.b.ins().fmul(x, y),
                BinaryFn::Div | BinaryFn::DivRn => |e, x, y| e.b.ins().fdiv(x, y),
                _ => return Err(foreign(f.name(), of)),
            }
        } else {
            match f {
                BinaryFn::Add => |e, x, y| e.b.ins().iadd(x, y),
                BinaryFn::Sub => |e, x, y| e.b.ins().isub(x, y),
                BinaryFn::And => |e, x, y| e.b.ins().band(x, y),
                BinaryFn::Or => |e, x, y| e.b.ins().bor(x, y),
                BinaryFn::Xor => |e, x, y| e.b.ins().bxor(x, y),
                BinaryFn::Min | BinaryFn::MinNan if of.is_signed() => {
                    |e, x, y| e.b.ins().smin(x, y)
                }
                BinaryFn::Max | BinaryFn::MaxNan if of.is_signed() => {
                    |e, x, y| e.b.ins().smax(x, y)
                }
                BinaryFn::Min | BinaryFn::MinNan => |e, x, y| e.b.ins().umin(x, y),
                BinaryFn::Max | BinaryFn::MaxNan => |e, x, y| e.b.ins().umax(x, y),
                BinaryFn::Mul => return Ok(self.product(x, y)),
                BinaryFn::Umulhi => return Ok(self.high_product(x, y)),
                BinaryFn::Idiv => return Ok(self.quotient(of, x, y)),
                BinaryFn::Rem if !of.is_signed() && power_of_two(y).is_some() => {
                    let below = Lanes::constant(y.lane, y.count, y.known().unwrap_or(1) - 1);
                    return Ok(self.band(x, &below));
                }
                BinaryFn::Rem => {
                    // With a quotient of 0 where the divisor is 0 this is `x` there, as it must be.
                    let quotient = self.quotient(of, x, y);
                    let whole = self.product(&quotient, y);
                    return Ok(self.isub(x, &whole));
                }
                BinaryFn::Shl | BinaryFn::Shr => return Ok(self.shift(f, of, x, y)),
                _ => return Err(foreign(f.name(), of)),
            }
        };
        Ok(self.by_part(x.lane, [x, y], |e, [x, y]| native(e, x, y)))
    }

    pub fn ternary(
        &mut self,
        f: TernaryFn,
        of: Scalar,
        [x, y, z]: [&Lanes; 3],
    ) -> Result<Lanes, String> {
        match f {
            TernaryFn::Fma if of.is_float() => {
                Ok(self.by_part(x.lane, [x, y, z], |e, [x, y, z]| e.b.ins().fma(x, y, z)))
            }
            TernaryFn::Clamp if of.is_int() => {
                let raised = self.binary(BinaryFn::Max, of, x, y)?;
                self.binary(BinaryFn::Min, of, &raised, z)
            }
            _ => Err(foreign(f.name(), of)),
        }
    }

    pub fn compare(&mut self, p: Predicate, of: ThreadElem, x: &Lanes, y: &Lanes) -> Lanes {
        // The machine compares floats one way only, and so the forms that it recognizes as minimum
        // and maximum are written with "less".
        let (p, x, y) = match p {
            Predicate::Gt => (Predicate::Lt, y, x),
            Predicate::Ge => (Predicate::Le, y, x),
            Predicate::Eq | Predicate::Ne | Predicate::Lt | Predicate::Le => (p, x, y),
        };
        if of == ThreadElem::Scalar(Scalar::I1) && !x.is_scalar() {
            return self.compare_masks(p, x, y);
        }
        let of = of.scalar().unwrap_or(Scalar::U64);
        if of.is_float() {
            let cc = match p {
                Predicate::Eq => FloatCC::Equal,
                Predicate::Ne => FloatCC::NotEqual,
                Predicate::Lt | Predicate::Gt => FloatCC::LessThan,
                Predicate::Le | Predicate::Ge => FloatCC::LessThanOrEqual,
            };
            return self.fcmp(cc, x, y);
        }
        let cc = match (p, of.is_signed()) {
            (Predicate::Eq, _) => IntCC::Equal,
            (Predicate::Ne, _) => IntCC::NotEqual,
            (Predicate::Lt | Predicate::Gt, true) => IntCC::SignedLessThan,
            (Predicate::Lt | Predicate::Gt, false) => IntCC::UnsignedLessThan,
            (Predicate::Le | Predicate::Ge, true) => IntCC::SignedLessThanOrEqual,
            (Predicate::Le | Predicate::Ge, false) => IntCC::UnsignedLessThanOrEqual,
        };
        self.icmp(cc, x, y)
    }

    /// The boolean or mask that is true where this is false.
    pub fn not(&mut self, x: &Lanes) -> Lanes {
        let scalar = x.is_scalar();
        self.by_part(x.lane, [x], |e, [x]| {
            if scalar { e.b.ins().bxor_imm_u(x, 1) } else { e.b.ins().bnot(x) }
        })
    }

    /// Two masks with lanes of one width: the first's, unless it has any.
    fn same_width(&mut self, x: &Lanes, y: &Lanes) -> (Lanes, Lanes) {
        let bits = if x.uniform { y.lane.bits() } else { x.lane.bits() };
        (self.mask_of(x, bits), self.mask_of(y, bits))
    }

    fn compare_masks(&mut self, p: Predicate, x: &Lanes, y: &Lanes) -> Lanes {
        let (x, y) = self.same_width(x, y);
        let (x, y) = (&x, &y);
        match p {
            Predicate::Eq => {
                let differ = self.bxor(x, y);
                self.not(&differ)
            }
            Predicate::Ne => self.bxor(x, y),
            Predicate::Lt | Predicate::Gt => self.band_not(y, x),
            Predicate::Le | Predicate::Ge => {
                let not = self.not(x);
                self.bor(&not, y)
            }
        }
    }

    /// Integers of one bit.
    fn bool_binary(&mut self, f: BinaryFn, x: &Lanes, y: &Lanes) -> Result<Lanes, String> {
        let (x, y) = self.same_width(x, y);
        let native: fn(&mut Self, ir::Value, ir::Value) -> ir::Value = match f {
            BinaryFn::Add | BinaryFn::Sub | BinaryFn::Xor => |e, x, y| e.b.ins().bxor(x, y),
            BinaryFn::Mul | BinaryFn::Idiv | BinaryFn::And | BinaryFn::Min | BinaryFn::MinNan => {
                |e, x, y| e.b.ins().band(x, y)
            }
            BinaryFn::Or | BinaryFn::Max | BinaryFn::MaxNan => |e, x, y| e.b.ins().bor(x, y),
            BinaryFn::Rem | BinaryFn::Shl | BinaryFn::Shr => |e, x, y| e.b.ins().band_not(x, y),
            BinaryFn::Umulhi => |e, x, _| e.b.ins().bxor(x, x),
            _ => return Err(foreign(f.name(), Scalar::I1)),
        };
        Ok(self.by_part(x.lane, [&x, &y], |e, [x, y]| native(e, x, y)))
    }

    /// The low half of the product.
    fn product(&mut self, x: &Lanes, y: &Lanes) -> Lanes {
        for (x, y) in [(x, y), (y, x)] {
            if let Some(by) = power_of_two(y) {
                return self.shl(x, by);
            }
        }
        if !x.is_scalar() && x.lane == types::I8 {
            let (x, y) = (self.resize(x, 16, false), self.resize(y, 16, false));
            let product = self.product(&x, &y);
            return self.resize(&product, 8, false);
        }
        self.imul(x, y)
    }

    /// The high half of the unsigned product.
    fn high_product(&mut self, x: &Lanes, y: &Lanes) -> Lanes {
        let bits = x.lane.bits();
        if x.is_scalar() || bits == 64 {
            return self.by_lane(x.lane, [x, y], |e, [x, y]| e.b.ins().umulhi(x, y));
        }
        if bits == 32 {
            // The products of 64 bits, whose odd halves are wanted.
            return self.by_part(x.lane, [x, y], |e, [x, y]| {
                let low = [x, y].map(|x| e.b.ins().uwiden_low(x));
                let high = [x, y].map(|x| e.b.ins().uwiden_high(x));
                let [low, high] = [low, high].map(|[x, y]| e.b.ins().imul(x, y));
                let [low, high] = [low, high].map(|x| e.bitcast(types::I32X4, x));
                e.shuffle_parts(types::I32, low, high, |i| 2 * i + 1)
            });
        }
        let (x, y) = (self.resize(x, 2 * bits, false), self.resize(y, 2 * bits, false));
        let product = self.product(&x, &y);
        let high = self.shr(&product, bits);
        self.resize(&high, bits, false)
    }

    /// The quotient rounded toward zero, 0 where the divisor is.
    fn quotient(&mut self, of: Scalar, x: &Lanes, y: &Lanes) -> Lanes {
        let bits = x.lane.bits();
        if let Some(by) = power_of_two(y) {
            return self.shifted_quotient(of, x, by);
        }
        if x.is_scalar() || bits == 64 || !self.target.rounds {
            let known = y.known_int();
            return self.by_lane(x.lane, [x, y], |e, [x, y]| e.scalar_quotient(of, x, y, known));
        }
        if bits < 32 {
            let of = if of.is_signed() { Scalar::I32 } else { Scalar::U32 };
            let (x, y) = (self.resize(x, 32, of.is_signed()), self.resize(y, 32, of.is_signed()));
            let quotient = self.quotient(of, &x, &y);
            return self.resize(&quotient, bits, false);
        }
        // A quotient of 32-bit integers that is no integer is further from one than the rounding of
        // an f64 quotient can move it, so its integer part is right.
        let dividend = self.int_to_f64(of, x);
        let divisor = match y.known_int() {
            None => self.int_to_f64(of, y),
            Some(y) => {
                let y = if of.is_signed() { y as f64 } else { f64::from(y as u32) };
                Lanes::constant(types::F64, x.count, y.to_bits())
            }
        };
        let quotient = self.fdiv(&dividend, &divisor);
        let whole = self.by_part(types::F64, [&quotient], |e, [q]| e.b.ins().trunc(q));
        // In the image of a number plus 1.5 * 2^52 the low half is that number, wrapped.
        let magic = Lanes::constant(types::F64, x.count, 6755399441055744f64.to_bits());
        let sum = self.fadd(&whole, &magic);
        let image = self.recast(&sum, types::I64);
        let whole = self.resize(&image, 32, false);
        if y.known().is_some_and(|y| y != 0) {
            return whole;
        }
        let zero = Lanes::constant(types::I32, x.count, 0);
        let by_zero = self.icmp(IntCC::Equal, y, &zero);
        self.band_not(&whole, &by_zero)
    }

    /// Two of four integers as f64.
    pub fn half_to_f64(&mut self, x: ir::Value, high: bool, signed: bool) -> ir::Value {
        let ins = |e: &mut Self| match (high, signed) {
            (false, true) => e.b.ins().swiden_low(x),
            (true, true) => e.b.ins().swiden_high(x),
            (false, false) => e.b.ins().uwiden_low(x),
            (true, false) => e.b.ins().uwiden_high(x),
        };
        let wide = ins(self);
        if signed {
            self.b.ins().fcvt_from_sint(types::F64X2, wide)
        } else {
            self.b.ins().fcvt_from_uint(types::F64X2, wide)
        }
    }

    /// The quotient by a power of two. Of a negative number the shift alone would round down.
    fn shifted_quotient(&mut self, of: Scalar, x: &Lanes, by: u32) -> Lanes {
        if !of.is_signed() || by == 0 {
            return self.shr(x, by);
        }
        let bits = of.bits();
        let signs = self.sar(x, bits - 1);
        let less = self.shr(&signs, bits - by);
        let sum = self.iadd(x, &less);
        self.sar(&sum, by)
    }

    fn scalar_quotient(
        &mut self,
        of: Scalar,
        x: ir::Value,
        y: ir::Value,
        known: Option<i64>,
    ) -> ir::Value {
        if known.is_some_and(|y| y != 0 && y != -1) {
            return if of.is_signed() { self.b.ins().sdiv(x, y) } else { self.b.ins().udiv(x, y) };
        }
        // Division traps by 0, and by -1 where the quotient is too large. By both, the quotient is what
        // the product is.
        let one = self.iconst(self.b.func.dfg.value_type(y), 1);
        let traps = if of.is_signed() {
            let next = self.b.ins().iadd(y, one);
            self.b.ins().icmp(IntCC::UnsignedLessThanOrEqual, next, one)
        } else {
            self.b.ins().icmp_imm_u(IntCC::Equal, y, 0)
        };
        let divisor = self.b.ins().select(traps, one, y);
        let quotient = if of.is_signed() {
            self.b.ins().sdiv(x, divisor)
        } else {
            self.b.ins().udiv(x, divisor)
        };
        let product = self.b.ins().imul(x, y);
        self.b.ins().select(traps, product, quotient)
    }

    /// Shifts, by amounts of any size.
    fn shift(&mut self, f: BinaryFn, of: Scalar, x: &Lanes, y: &Lanes) -> Lanes {
        if let Some(by) = y.known() {
            let most = of.bits() - 1;
            let inside = by <= u64::from(most);
            let by = by.min(most.into()) as u32;
            return match (f, of.is_signed()) {
                (BinaryFn::Shr, true) => self.sar(x, by),
                _ if !inside => Lanes::constant(x.lane, x.count, 0),
                (BinaryFn::Shr, false) => self.shr(x, by),
                _ => self.shl(x, by),
            };
        }
        if !x.is_scalar() && !y.uniform {
            return self.by_lane(x.lane, [x, y], |e, [x, y]| e.shift_by(f, of, x, y));
        }
        let by = self.extract(y, 0);
        self.by_part(x.lane, [x], |e, [x]| e.shift_by(f, of, x, by))
    }

    fn shift_by(&mut self, f: BinaryFn, of: Scalar, x: ir::Value, by: ir::Value) -> ir::Value {
        let width = i64::from(of.bits());
        if f == BinaryFn::Shr && of.is_signed() {
            let most = self.iconst(self.b.func.dfg.value_type(by), width - 1);
            let by = self.b.ins().umin(by, most);
            return self.b.ins().sshr(x, by);
        }
        let shifted =
            if f == BinaryFn::Shl { self.b.ins().ishl(x, by) } else { self.b.ins().ushr(x, by) };
        let inside = self.b.ins().icmp_imm_u(IntCC::UnsignedLessThan, by, width);
        let nothing = self.b.ins().isub(x, x);
        self.b.ins().select(inside, shifted, nothing)
    }

    /// The smaller of two parts or scalars, the second where they are not ordered; with `greatest`
    /// the greater. One instruction.
    pub fn extreme(&mut self, greatest: bool, x: ir::Value, y: ir::Value) -> ir::Value {
        let ty = self.b.func.dfg.value_type(x);
        let (a, b) = if greatest { (y, x) } else { (x, y) };
        let less = self.b.ins().fcmp(FloatCC::LessThan, a, b);
        if ty.is_vector() {
            let mask = self.bitcast(ty, less);
            self.b.ins().bitselect(mask, x, y)
        } else {
            self.b.ins().select(less, x, y)
        }
    }

    /// Integers of another width: their low bits, or extended after their kind.
    pub fn resize(&mut self, x: &Lanes, bits: u32, signed: bool) -> Lanes {
        let now = x.lane.bits();
        if now == bits {
            return x.clone();
        }
        if let (Some(zero), Some(sign)) = (x.known(), x.known_int()) {
            return Lanes::constant(
                int_type(bits),
                x.count,
                if signed { sign as u64 } else { zero },
            );
        }
        if x.is_scalar() {
            let ty = int_type(bits);
            let one = self.one(x);
            let value = match (bits < now, signed) {
                (true, _) => self.b.ins().ireduce(ty, one),
                (false, true) => self.b.ins().sextend(ty, one),
                (false, false) => self.b.ins().uextend(ty, one),
            };
            return Lanes::scalar(ty, value);
        }
        let next = if bits < now { self.halve(x) } else { self.double(x, signed) };
        self.resize(&next, bits, signed)
    }

    /// The low halves of the lanes.
    fn halve(&mut self, x: &Lanes) -> Lanes {
        let lane = int_type(x.lane.bits() / 2);
        let ty = vector_type(lane);
        let halves = self.parts(x);
        let parts = halves
            .chunks(2)
            .map(|pair| {
                let [a, b] = [pair[0], pair[pair.len() - 1]].map(|x| self.bitcast(ty, x));
                self.shuffle_parts(lane, a, b, |i| 2 * i)
            })
            .collect();
        Lanes::vector(lane, x.count, parts).all_equal_if(x.uniform)
    }

    fn double(&mut self, x: &Lanes, signed: bool) -> Lanes {
        let lane = int_type(2 * x.lane.bits());
        let parts = (0..x.count.div_ceil(lanes_in_part(lane)))
            .map(|i| {
                let part = self.part(x, i as usize / 2);
                match (i % 2 == 1, signed) {
                    (false, true) => self.b.ins().swiden_low(part),
                    (true, true) => self.b.ins().swiden_high(part),
                    (false, false) => self.b.ins().uwiden_low(part),
                    (true, false) => self.b.ins().uwiden_high(part),
                }
            })
            .collect();
        Lanes::vector(lane, x.count, parts).all_equal_if(x.uniform)
    }
}
