//! Conversions between types, with the results of [`naiad_ir::scalar::cast_bits`].
//!
//! ```text
//!   integer -> integer         low bits, or extended
//!   integer -> fp32, fp64      an instruction, or by way of others that are exact
//!   integer -> narrow float    by fp32 if that holds the integers, else by fp64, and rounded as below
//!   float   -> integer         saturating to 32 or 64 bits, then clamped
//!   fp16   <-> fp32            an instruction
//!   other narrow <-> fp32      integer arithmetic on the images                         format.rs
//!   fp64    -> narrow          to fp32 rounded to odd, then as above
//! ```
//!
//! Rounding to odd is truncation with the lowest bit set where anything was lost, so that a second
//! rounding to fewer bits gives what one alone would have given (Boldo and Melquiond, 2008).

use super::lower::{Lanes, Lower};
use super::machine::Op;
use naiad_ir::scalar::{BinaryFn, Predicate, Rounding, TernaryFn, cast_bits};
use naiad_ir::{Scalar, Value};

/// How fp64 is brought to fp32.
#[derive(Copy, Clone, PartialEq)]
enum Demote {
    To(Rounding),
    ToOdd,
}

impl Lower<'_> {
    pub fn cast(&mut self, src: Value, to: Scalar, rounding: Rounding) -> Option<Lanes> {
        let from = self.scalar_of(src)?;
        let x = self.get(src)?;
        self.cast_lanes(from, to, rounding, &x)
    }

    fn cast_lanes(
        &mut self,
        from: Scalar,
        to: Scalar,
        rounding: Rounding,
        x: &Lanes,
    ) -> Option<Lanes> {
        if from == to {
            return Some(x.clone());
        }
        if from.is_bool() {
            let one = cast_bits(Scalar::I1, to, Rounding::Nearest, 1);
            let bits = to.size() as u32 * 8;
            let [one, zero] = [one, 0].map(|image| {
                let width = self.width(bits, x.count);
                let part = self.code.splat(width, bits, image);
                self.repeat(bits, x.count, part)
            });
            return self.choose(x, &one, &zero);
        }
        if is_narrow(from) {
            let wide = self.widen(from, x)?;
            return self.cast_lanes(Scalar::F32, to, rounding, &wide);
        }
        if to.is_bool() {
            let zero = self.number(x, 0);
            return self.compare_lanes(Predicate::Ne, from, x, &zero);
        }
        match (from.is_float(), to) {
            (false, Scalar::F32) => self.int_to_f32(from, x),
            (false, Scalar::F64) => self.int_to_f64(from, x),
            (false, _) if to.is_float() && from.bits() < 32 => {
                let exact = self.int_to_f32(from, x)?;
                self.narrow(to, Rounding::Nearest, &exact)
            }
            (false, _) if to.is_float() => {
                let odd = self.int_to_odd_f64(from, x)?;
                self.cast_lanes(Scalar::F64, to, Rounding::Nearest, &odd)
            }
            (false, _) => Some(self.resize(x, to.bits(), from.is_signed())),
            (true, Scalar::F64) => Some(self.spread(Op::PsToPd, x, 64)),
            (true, Scalar::F32) => self.demote(Demote::To(rounding), x),
            (true, _) if to.is_int() => self.float_to_int(to, x),
            (true, _) if from == Scalar::F64 => {
                let odd = self.demote(Demote::ToOdd, x)?;
                self.narrow(to, rounding, &odd)
            }
            (true, _) => self.narrow(to, rounding, x),
        }
    }

    fn int_to_f32(&mut self, from: Scalar, x: &Lanes) -> Option<Lanes> {
        let signed = from.is_signed();
        if from.bits() == 64 {
            let op = if signed { Op::I64ToPs } else { Op::U64ToPs };
            return self.avx512().then(|| self.squeeze(op, x, 32, None));
        }
        let x = &self.resize(x, 32, signed);
        // A number of fewer bits is not negative once it is extended.
        if signed || from.bits() < 32 {
            return Some(self.by_part(Op::I32ToPs, [x]));
        }
        if self.avx512() {
            return Some(self.by_part(Op::U32ToPs, [x]));
        }
        // Both halves are exact, and their sum is rounded once.
        let high = self.by_part_imm(Op::ShrImmD, [x], Some(16));
        let low = self.with_constant(Op::AndD, x, 0xffff);
        let [high, low] = [high, low].map(|h| self.by_part(Op::I32ToPs, [&h]));
        let scale = self.number(&high, 65536f32.to_bits().into());
        Some(self.by_part(Op::Fma213Ps, [&high, &scale, &low]))
    }

    fn int_to_f64(&mut self, from: Scalar, x: &Lanes) -> Option<Lanes> {
        let signed = from.is_signed();
        if from.bits() == 64 {
            let op = if signed { Op::I64ToPd } else { Op::U64ToPd };
            return self.avx512().then(|| self.by_part(op, [x]));
        }
        let x = &self.resize(x, 32, signed);
        if signed || from.bits() < 32 {
            return Some(self.spread(Op::I32ToPd, x, 64));
        }
        if self.avx512() {
            return Some(self.spread(Op::U32ToPd, x, 64));
        }
        // The low bits of the image of 2^52 and more are the number above it.
        let wide = self.resize(x, 64, false);
        let base = 2f64.powi(52).to_bits();
        let image = self.with_constant(Op::OrD, &wide, base);
        Some(self.with_constant(Op::SubPd, &image, base))
    }

    /// An fp64 that rounds to a narrow float as the integer itself would.
    fn int_to_odd_f64(&mut self, from: Scalar, x: &Lanes) -> Option<Lanes> {
        if from.bits() < 64 {
            return self.int_to_f64(from, x);
        }
        if !self.avx512() {
            return None;
        }
        // 53 bits are exact. Of more, the lowest 11 become one.
        let high = self.with_constant(Op::AndD, x, !0x7ff);
        let low = self.with_constant(Op::AndD, x, 0x7ff);
        let most = self.with_constant(Op::AddQ, &low, 0x7ff);
        let lost = self.with_constant(Op::AndD, &most, 0x800);
        let odd = self.by_part(Op::OrD, [&high, &lost]);
        let size = if from.is_signed() { self.by_part(Op::AbsQ, [x]) } else { x.clone() };
        let limit = self.number(x, 1 << 53);
        let large = self.compare_lanes(Predicate::Gt, Scalar::U64, &size, &limit)?;
        let x = self.choose(&large, &odd, x)?;
        self.int_to_f64(from, &x)
    }

    fn float_to_int(&mut self, to: Scalar, x: &Lanes) -> Option<Lanes> {
        if to.bits() < 32 {
            // Saturated to 16 bits; 8 bits are the low ones of those.
            let wide = self.float_to_signed(Scalar::I32, x)?;
            let limits: [i32; 2] = if to.is_signed() { [-0x8000, 0x7fff] } else { [0, 0xffff] };
            let [least, most] = limits.map(|l| u64::from(l as u32));
            let raised = self.with_constant(Op::MaxSd, &wide, least);
            let clamped = self.with_constant(Op::MinSd, &raised, most);
            return Some(self.resize(&clamped, to.bits(), false));
        }
        if to.is_signed() { self.float_to_signed(to, x) } else { self.float_to_unsigned(to, x) }
    }

    fn float_to_signed(&mut self, to: Scalar, x: &Lanes) -> Option<Lanes> {
        let of = if x.bits == 32 { Scalar::F32 } else { Scalar::F64 };
        let is_number = self.compare_lanes(Predicate::Eq, of, x, x)?;
        let zero = self.number(x, 0);
        let x = &self.choose(&is_number, x, &zero)?;
        // Where the number is too small the machine gives the least integer, but also where it is too
        // large.
        if (x.bits, to) == (64, Scalar::I32) {
            let most = self.number(x, f64::from(i32::MAX).to_bits());
            let x = self.by_part(Op::MinPd, [x, &most]);
            return Some(self.squeeze(Op::PdToI32, &x, 32, None));
        }
        let limit = 2f64.powi(to.bits() as i32 - 1);
        let limit = cast_bits(Scalar::F64, of, Rounding::Nearest, limit.to_bits());
        let limit = self.number(x, limit);
        let large = self.compare_lanes(Predicate::Ge, of, x, &limit)?;
        let whole = match (x.bits, to) {
            (32, Scalar::I32) => self.by_part(Op::PsToI32, [x]),
            _ if !self.avx512() => return None,
            (32, _) => self.spread(Op::PsToI64, x, 64),
            _ => self.by_part(Op::PdToI64, [x]),
        };
        let most = self.number(&whole, to.mask() >> 1);
        self.choose(&large, &most, &whole)
    }

    fn float_to_unsigned(&mut self, to: Scalar, x: &Lanes) -> Option<Lanes> {
        let single = x.bits == 32;
        // 0 also where it is no number.
        let x = &self.with_constant(if single { Op::MaxPs } else { Op::MaxPd }, x, 0);
        if self.avx512() {
            // What is too large becomes all ones.
            return Some(match (single, to) {
                (true, Scalar::U32) => self.by_part(Op::PsToU32, [x]),
                (true, _) => self.spread(Op::PsToU64, x, 64),
                (false, Scalar::U32) => self.squeeze(Op::PdToU32, x, 32, None),
                (false, _) => self.by_part(Op::PdToU64, [x]),
            });
        }
        if to == Scalar::U64 {
            return None;
        }
        if !single {
            let most = self.number(x, f64::from(u32::MAX).to_bits());
            let x = self.by_part(Op::MinPd, [x, &most]);
            return Some(self.whole_to_u32(&x));
        }
        // The upper half of the range is converted as if it were the lower.
        let half = self.number(x, 2f32.powi(31).to_bits().into());
        let over = self.number(x, 2f32.powi(32).to_bits().into());
        let is_upper = self.compare_lanes(Predicate::Ge, Scalar::F32, x, &half)?;
        let less = self.by_part(Op::SubPs, [x, &half]);
        let upper = self.by_part(Op::PsToI32, [&less]);
        let upper = self.with_constant(Op::XorD, &upper, 1 << 31);
        let lower = self.by_part(Op::PsToI32, [x]);
        let whole = self.choose(&is_upper, &upper, &lower)?;
        let is_over = self.compare_lanes(Predicate::Ge, Scalar::F32, x, &over)?;
        let most = self.number(&whole, u32::MAX.into());
        self.choose(&is_over, &most, &whole)
    }

    /// The integer parts of fp64 from 0 to below 2^32, without an instruction for it: they are the low
    /// bits of the image of 2^52 more.
    fn whole_to_u32(&mut self, x: &Lanes) -> Lanes {
        let whole = self.by_part_imm(Op::RoundPd, [x], Some(8 | 3));
        let image = self.with_constant(Op::AddPd, &whole, 2f64.powi(52).to_bits());
        self.resize(&image, 32, false)
    }

    fn demote(&mut self, how: Demote, x: &Lanes) -> Option<Lanes> {
        let nearest = self.squeeze(Op::PdToPs, x, 32, None);
        if how == Demote::To(Rounding::Nearest) {
            return Some(nearest);
        }
        // One image less is the next number toward zero, even from infinity.
        let back = self.spread(Op::PsToPd, &nearest, 64);
        let [size, limit] = [&back, x].map(|v| self.with_constant(Op::AndD, v, u64::MAX >> 1));
        let above = self.compare_lanes(Predicate::Lt, Scalar::F64, &limit, &size)?;
        let less = self.with_constant(Op::AddD, &nearest, u32::MAX.into());
        let truncated = self.choose(&above, &less, &nearest)?;
        if how == Demote::To(Rounding::TowardZero) {
            return Some(truncated);
        }
        let back = self.spread(Op::PsToPd, &truncated, 64);
        let differs = self.compare_lanes(Predicate::Ne, Scalar::F64, &back, x)?;
        let odd = self.with_constant(Op::OrD, &truncated, 1);
        self.choose(&differs, &odd, &truncated)
    }

    /// The quotient rounded toward zero, 0 where the divisor is.
    ///
    /// A quotient of 32-bit integers that is no integer is further from one than the rounding of an
    /// fp64 quotient can move it, so its integer part is right. The least integer by -1 is too large to
    /// be converted, which gives it itself.
    pub fn quotient(&mut self, of: Scalar, x: &Lanes, y: &Lanes) -> Option<Lanes> {
        let signed = of.is_signed();
        if of.bits() < 32 {
            let wide = if signed { Scalar::I32 } else { Scalar::U32 };
            return self.through(32, [signed; 2], [x, y], |l, x, y| l.quotient(wide, x, y));
        }
        if of.bits() > 32 {
            return None;
        }
        let (a, b) = (self.int_to_f64(of, x)?, self.int_to_f64(of, y)?);
        let quotient = self.by_part(Op::DivPd, [&a, &b]);
        let whole = match (signed, self.avx512()) {
            (true, _) => self.squeeze(Op::PdToI32, &quotient, 32, None),
            (false, true) => self.squeeze(Op::PdToU32, &quotient, 32, None),
            (false, false) => self.whole_to_u32(&quotient),
        };
        let zero = self.number(y, 0);
        let by_zero = self.compare_lanes(Predicate::Eq, of, y, &zero)?;
        self.choose(&by_zero, &zero, &whole)
    }

    pub fn ternary(&mut self, f: TernaryFn, a: Value, b: Value, c: Value) -> Option<Lanes> {
        let of = self.scalar_of(a)?;
        let (x, y, z) = (self.get(a)?, self.get(b)?, self.get(c)?);
        match f {
            TernaryFn::Fma if of.is_float() => {
                let op = if x.bits == 32 { Op::Fma213Ps } else { Op::Fma213Pd };
                Some(self.by_part(op, [&x, &y, &z]))
            }
            TernaryFn::Clamp if of.is_bool() => {
                let raised = self.binary_mask(BinaryFn::Max, &x, &y)?;
                self.binary_mask(BinaryFn::Min, &raised, &z)
            }
            TernaryFn::Clamp if of.is_int() => {
                let raised = self.binary_int(BinaryFn::Max, of, &x, &y)?;
                self.binary_int(BinaryFn::Min, of, &raised, &z)
            }
            _ => None,
        }
    }
}

const fn is_narrow(ty: Scalar) -> bool {
    ty.is_float() && ty.bits() < 32
}
