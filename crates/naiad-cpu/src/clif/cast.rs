//! Conversions between all pairs of types, with the results of [`naiad_ir::scalar::cast_bits`].
//!
//! ```text
//!   integer -> integer         low bits, or extended
//!   integer -> fp32, fp64      one instruction where the machine has it, else lane by lane
//!   integer -> narrow float    by fp32 if that holds the integers, else by fp64, and rounded as below
//!   float   -> integer         saturating to 32 or 64 bits, then clamped
//!   narrow  -> fp32            integer arithmetic on the images; exact
//!   fp32    -> narrow          the same, rounded once
//!   fp64    -> narrow          to fp32 rounded to odd, then as above
//! ```
//!
//! Rounding to odd is truncation with the lowest bit set where anything was lost. A second rounding to
//! fewer bits then sees that the number is no tie, and gives what one rounding would have given
//! (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008).

use super::emit::Emit;
use super::lanes::{Lanes, Parts, int_type, lane_type, part_type};
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{self, InstBuilder, types};
use naiad_ir::Scalar;
use naiad_ir::scalar::{Format, Nan, Predicate, Rounding, cast_bits};
use smallvec::smallvec;

/// Image of infinity in fp32, and of every number greater in size, which is NaN.
const INFINITY: u64 = 0x7f80_0000;
const QUIET: u64 = 0x7fc0_0000;
/// One in fp32's exponent.
const UNIT: u64 = 1 << 23;

/// How fp64 is brought to fp32.
#[derive(Copy, Clone, PartialEq)]
enum Demote {
    To(Rounding),
    ToOdd,
}

impl Emit<'_> {
    pub fn cast(&mut self, from: Scalar, to: Scalar, rounding: Rounding, x: &Lanes) -> Lanes {
        if from == to {
            return x.clone();
        }
        if from.is_bool() {
            return self.bool_to(to, x);
        }
        if is_narrow(from) {
            let wide = self.widen(from, x);
            return self.cast(Scalar::F32, to, rounding, &wide);
        }
        if to.is_bool() {
            let zero = Lanes::constant(x.lane, x.count, 0);
            return self.compare(Predicate::Ne, from.into(), x, &zero);
        }
        match (from.is_float(), to) {
            (false, Scalar::F32) => self.int_to_f32(from, x),
            (false, Scalar::F64) => self.int_to_f64(from, x),
            // fp32 holds these, and a narrow float is rounded from it.
            (false, _) if to.is_float() && from.bits() < 32 => {
                let exact = self.int_to_f32(from, x);
                self.narrow(to, Rounding::Nearest, &exact)
            }
            (false, _) if to.is_float() => {
                let odd = self.int_to_odd_f64(from, x);
                self.cast(Scalar::F64, to, Rounding::Nearest, &odd)
            }
            (false, _) => self.resize(x, to.bits(), from.is_signed()),
            (true, Scalar::F64) => self.promote(x),
            (true, Scalar::F32) => self.demote(Demote::To(rounding), x),
            (true, _) if to.is_int() => self.float_to_int(to, x),
            (true, _) if from == Scalar::F64 => {
                let odd = self.demote(Demote::ToOdd, x);
                self.narrow(to, rounding, &odd)
            }
            (true, _) => self.narrow(to, rounding, x),
        }
    }

    fn bool_to(&mut self, to: Scalar, x: &Lanes) -> Lanes {
        let one = cast_bits(Scalar::I1, to, Rounding::Nearest, 1);
        let lane = lane_type(to.into());
        if x.is_scalar() {
            let (one, zero) = (self.lane_const(lane, one), self.lane_const(lane, 0));
            let x = self.one(x);
            return Lanes::scalar(lane, self.b.ins().select(x, one, zero));
        }
        let mask = self.mask_of(x, lane.bits());
        let one = Lanes::constant(mask.lane, x.count, one);
        let image = self.band(&mask, &one);
        self.recast(&image, lane)
    }

    fn int_to_f32(&mut self, from: Scalar, x: &Lanes) -> Lanes {
        let signed = from.is_signed();
        if from.bits() == 64 {
            return self
                .by_lane(types::F32, [x], |e, [x]| e.scalar_to_float(types::F32, signed, x));
        }
        let x = if from.bits() < 32 { self.resize(x, 32, signed) } else { x.clone() };
        // A number of fewer bits is not negative once it is extended.
        let signed = signed || from.bits() < 32;
        let ty = part_type(types::F32, x.count);
        self.by_part(types::F32, [&x], |e, [x]| e.scalar_to_float(ty, signed, x))
    }

    pub fn int_to_f64(&mut self, from: Scalar, x: &Lanes) -> Lanes {
        let signed = from.is_signed();
        if x.is_scalar() || from.bits() == 64 {
            let x = if from.bits() < 32 { self.resize(x, 32, signed) } else { x.clone() };
            return self
                .by_lane(types::F64, [&x], |e, [x]| e.scalar_to_float(types::F64, signed, x));
        }
        let x = self.resize(x, 32, signed);
        let parts = (0..x.count.div_ceil(2))
            .map(|i| {
                let part = self.part(&x, i as usize / 2);
                self.half_to_f64(part, i % 2 == 1, signed)
            })
            .collect();
        Lanes::vector(types::F64, x.count, parts)
    }

    fn scalar_to_float(&mut self, ty: ir::Type, signed: bool, x: ir::Value) -> ir::Value {
        if signed { self.b.ins().fcvt_from_sint(ty, x) } else { self.b.ins().fcvt_from_uint(ty, x) }
    }

    /// An fp64 that rounds to a narrow float as the integer itself would.
    fn int_to_odd_f64(&mut self, from: Scalar, x: &Lanes) -> Lanes {
        if from.bits() < 64 {
            return self.int_to_f64(from, x);
        }
        let signed = from.is_signed();
        self.by_lane(types::F64, [x], |e, [x]| {
            // 53 bits are exact. Of more, the lowest 11 become one.
            let high = e.b.ins().band_imm_s(x, !0x7ff);
            let low = e.b.ins().band_imm_s(x, 0x7ff);
            let most = e.b.ins().iadd_imm_s(low, 0x7ff);
            let lost = e.b.ins().band_imm_s(most, 0x800);
            let odd = e.b.ins().bor(high, lost);
            let size = if signed { e.b.ins().iabs(x) } else { x };
            let large = e.b.ins().icmp_imm_u(IntCC::UnsignedGreaterThan, size, 1 << 53);
            let x = e.b.ins().select(large, odd, x);
            e.scalar_to_float(types::F64, signed, x)
        })
    }

    fn float_to_int(&mut self, to: Scalar, x: &Lanes) -> Lanes {
        let signed = to.is_signed();
        if to.bits() >= 32 {
            let lane = int_type(to.bits());
            let ty = part_type(lane, x.count);
            let native = x.is_scalar() || x.lane == types::F32 && lane == types::I32;
            let convert = |e: &mut Self, ty, x| {
                if signed {
                    e.b.ins().fcvt_to_sint_sat(ty, x)
                } else {
                    e.b.ins().fcvt_to_uint_sat(ty, x)
                }
            };
            if native {
                return self.by_part(lane, [x], |e, [x]| convert(e, ty, x));
            }
            return self.by_lane(lane, [x], |e, [x]| convert(e, lane, x));
        }
        // Saturated to 16 bits; 8 bits are the low ones of those.
        let wide = self.float_to_int(Scalar::I32, x);
        let limits = if signed { [-0x8000, 0x7fff] } else { [0, 0xffff] };
        let [least, most] = limits.map(|l| Lanes::constant(types::I32, x.count, l as u32 as u64));
        let clamped = self.smax(&wide, &least);
        let clamped = self.smin(&clamped, &most);
        self.resize(&clamped, to.bits(), signed)
    }

    fn promote(&mut self, x: &Lanes) -> Lanes {
        if x.is_scalar() {
            let x = self.one(x);
            return Lanes::scalar(types::F64, self.b.ins().fpromote(types::F64, x));
        }
        let parts = (0..x.count.div_ceil(2))
            .map(|i| {
                let mut part = self.part(x, i as usize / 2);
                if i % 2 == 1 {
                    part = self.shuffle_parts(types::F32, part, part, |i| 2 + i % 2);
                }
                self.b.ins().fvpromote_low(part)
            })
            .collect();
        Lanes::vector(types::F64, x.count, parts)
    }

    fn demote(&mut self, how: Demote, x: &Lanes) -> Lanes {
        if x.is_scalar() {
            if how == Demote::To(Rounding::Nearest) {
                let x = self.one(x);
                return Lanes::scalar(types::F32, self.b.ins().fdemote(types::F32, x));
            }
            return self.as_vector(x, |e, x| e.demote(how, x));
        }
        let halves = self.parts(x);
        let parts = halves
            .chunks(2)
            .map(|pair| {
                let low = self.demote_part(how, pair[0]);
                match pair.get(1) {
                    None => low,
                    Some(&high) => {
                        let high = self.demote_part(how, high);
                        self.shuffle_parts(types::F32, low, high, |i| i + i / 2 * 2)
                    }
                }
            })
            .collect();
        Lanes::vector(types::F32, x.count, parts)
    }

    /// Two fp64 as fp32 in the low lanes.
    fn demote_part(&mut self, how: Demote, x: ir::Value) -> ir::Value {
        let nearest = self.b.ins().fvdemote(x);
        if how == Demote::To(Rounding::Nearest) {
            return nearest;
        }
        // One image less is the next number toward zero, even from infinity.
        let back = self.b.ins().fvpromote_low(nearest);
        let [size, limit] = [back, x].map(|x| self.b.ins().fabs(x));
        let above = self.b.ins().fcmp(FloatCC::LessThan, limit, size);
        let step = self.low_halves(above);
        let image = self.bitcast(types::I32X4, nearest);
        let image = self.b.ins().iadd(image, step);
        let truncated = self.bitcast(types::F32X4, image);
        if how == Demote::To(Rounding::TowardZero) {
            return truncated;
        }
        let back = self.b.ins().fvpromote_low(truncated);
        let differs = self.b.ins().fcmp(FloatCC::NotEqual, back, x);
        let lost = self.low_halves(differs);
        let one = self.splat_const(types::I32, 1);
        let lost = self.b.ins().band(lost, one);
        let image = self.b.ins().bor(image, lost);
        self.bitcast(types::F32X4, image)
    }

    /// The low halves of two 64-bit lanes, in the low lanes.
    fn low_halves(&mut self, x: ir::Value) -> ir::Value {
        let x = self.bitcast(types::I32X4, x);
        self.shuffle_parts(types::I32, x, x, |i| i % 2 * 2)
    }

    /// Does two registers at a time: what is kept meanwhile must fit those that there are.
    fn in_pairs(&mut self, x: &Lanes, mut f: impl FnMut(&mut Self, &Lanes) -> Lanes) -> Lanes {
        if x.num_parts() <= 2 {
            return f(self, x);
        }
        let (each, parts) = (x.lanes_used(), self.parts(x));
        let mut made = Parts::new();
        let mut lane = x.lane;
        for pair in parts.chunks(2) {
            let some = Lanes::vector(x.lane, each * pair.len() as u32, pair.into());
            let some = f(self, &some);
            lane = some.lane;
            made.extend(self.parts(&some));
        }
        Lanes::vector(lane, x.count, made).all_equal_if(x.uniform)
    }

    /// Does with the lowest lane of a vector what is not written for scalars.
    fn as_vector(&mut self, x: &Lanes, f: impl FnOnce(&mut Self, &Lanes) -> Lanes) -> Lanes {
        let one = self.one(x);
        let part = self.low_lane(x.lane, one);
        let made = f(self, &Lanes::vector(x.lane, 2, smallvec![part]));
        Lanes::scalar(made.lane, self.extract(&made, 0))
    }

    /// A float of less than 32 bits as fp32.
    fn widen(&mut self, from: Scalar, x: &Lanes) -> Lanes {
        if x.is_scalar() {
            return self.as_vector(x, |e, x| e.widen(from, x));
        }
        let Some(format) = Format::of(from) else { return x.clone() };
        let images = self.resize(x, 32, false);
        self.in_pairs(&images, |e, image| e.widen_image(format, image))
    }

    /// With exponent and significand moved to their places the exponent only wants the difference of
    /// the biases; where it is 0, the number is what the significand adds to the least normal one.
    fn widen_image(&mut self, format: &Format, image: &Lanes) -> Lanes {
        let word = |value: u64| Lanes::constant(types::I32, image.count, value);
        if is_head(format) {
            let moved = self.shl(image, 32 - format.bits);
            return self.recast(&moved, types::F32);
        }
        let mut size = self.band(image, &word((1 << (format.bits - 1)) - 1));
        if format.nan == Nan::Absent {
            // The image above the largest number reads as that.
            size = self.smin(&size, &word(format.largest.into()));
        }
        let moved = self.shl(&size, 23 - format.mantissa);
        let rebias = (127 - format.bias) as u64 * UNIT;
        let normal = self.iadd(&moved, &word(rebias));
        let above = self.iadd(&normal, &word(UNIT));
        let above = self.recast(&above, types::F32);
        let least = Lanes::constant(types::F32, image.count, rebias + UNIT);
        let subnormal = self.fsub(&above, &least);
        let subnormal = self.recast(&subnormal, types::I32);
        let is_subnormal = self.icmp(IntCC::SignedLessThan, &size, &word(1 << format.mantissa));
        let number = self.select(&is_subnormal, &subnormal, &normal);

        let special = match (format.nan, format.infinity) {
            // Their significands stay, and tell infinity from NaN.
            (Nan::Ieee, Some(infinity)) => {
                let below = word(u64::from(infinity) - 1);
                Some((self.icmp(IntCC::SignedGreaterThan, &size, &below), INFINITY))
            }
            (Nan::AllOnes, _) => {
                let largest = word(format.largest.into());
                Some((self.icmp(IntCC::SignedGreaterThan, &size, &largest), QUIET))
            }
            (Nan::NegativeZero, _) => {
                let nan = word(1 << (format.bits - 1));
                Some((self.icmp(IntCC::Equal, image, &nan), QUIET))
            }
            (Nan::Ieee, None) | (Nan::Absent, _) => None,
        };
        let number = match special {
            None => number,
            Some((special, bits)) => {
                let bits = self.band(&special, &word(bits));
                self.bor(&number, &bits)
            }
        };
        let top = self.shl(image, 32 - format.bits);
        let sign = self.band(&top, &word(1 << 31));
        let number = self.bor(&number, &sign);
        self.recast(&number, types::F32)
    }

    /// fp32 as a float of less than 32 bits.
    fn narrow(&mut self, to: Scalar, rounding: Rounding, x: &Lanes) -> Lanes {
        if x.is_scalar() {
            return self.as_vector(x, |e, x| e.narrow(to, rounding, x));
        }
        let Some(format) = Format::of(to) else { return x.clone() };
        let images = self.in_pairs(x, |e, x| {
            let image = e.recast(x, types::I32);
            let is_nan = e.fcmp(FloatCC::Unordered, x, x);
            if is_head(format) {
                e.narrow_to_head(format, rounding, &image, &is_nan)
            } else {
                e.narrow_image(format, rounding, &image, &is_nan)
            }
        });
        self.resize(&images, to.bits(), false)
    }

    /// The head of an fp32 image, rounded: a carry goes into the exponent, and up to infinity.
    fn narrow_to_head(
        &mut self,
        format: &Format,
        rounding: Rounding,
        image: &Lanes,
        is_nan: &Lanes,
    ) -> Lanes {
        let word = |value: u64| Lanes::constant(types::I32, image.count, value);
        let dropped = 32 - format.bits;
        let head = self.shr(image, dropped);
        let rounded = match rounding {
            Rounding::TowardZero => head.clone(),
            Rounding::Nearest => {
                let even = self.band(&head, &word(1));
                let sum = self.iadd(image, &word((1 << (dropped - 1)) - 1));
                let sum = self.iadd(&sum, &even);
                self.shr(&sum, dropped)
            }
        };
        // A NaN whose payload is in the dropped bits must stay one.
        let nan = self.bor(&head, &word(1 << (format.mantissa - 1)));
        self.select(is_nan, &nan, &rounded)
    }

    fn narrow_image(
        &mut self,
        format: &Format,
        rounding: Rounding,
        image: &Lanes,
        is_nan: &Lanes,
    ) -> Lanes {
        let word = |value: u64| Lanes::constant(types::I32, image.count, value);
        let size = self.band(image, &word(0x7fff_ffff));
        let normal = self.round_normal(format, rounding, &size);
        let subnormal = self.round_subnormal(format, rounding, &size);
        let first_normal = word((128 - format.bias) as u64 * UNIT);
        let is_subnormal = self.icmp(IntCC::SignedLessThan, &size, &first_normal);
        let number = self.select(&is_subnormal, &subnormal, &normal);

        // Images are ordered as the numbers are, so what is too large is a greater image.
        let infinity = format.infinity.filter(|_| format.bits > 8);
        let limit = match (infinity, rounding) {
            (Some(infinity), Rounding::Nearest) => infinity,
            _ => format.largest,
        };
        let mut number = self.smin(&number, &word(limit.into()));
        if let (Some(infinity), Rounding::TowardZero) = (infinity, rounding) {
            let is_infinite = self.icmp(IntCC::Equal, &size, &word(INFINITY));
            number = self.select(&is_infinite, &word(infinity.into()), &number);
        }
        let nan = match format.nan {
            Nan::Ieee => format.infinity.map_or(0, |inf| inf | 1 << (format.mantissa - 1)),
            Nan::AllOnes => format.largest + 1,
            Nan::NegativeZero => 1 << (format.bits - 1),
            Nan::Absent => format.largest,
        };
        let moved = self.shr(image, 32 - format.bits);
        let mut sign = self.band(&moved, &word(1 << (format.bits - 1)));
        if format.nan == Nan::NegativeZero {
            // -0, and what rounds to it, is 0. The one NaN has no sign, but its image has that bit.
            let is_zero = self.icmp(IntCC::Equal, &number, &word(0));
            sign = self.band_not(&sign, &is_zero);
            let number = self.bor(&number, &sign);
            return self.select(is_nan, &word(nan.into()), &number);
        }
        let number = self.select(is_nan, &word(nan.into()), &number);
        self.bor(&number, &sign)
    }

    /// A size of at least the least normal number; the exponent may come out too large.
    fn round_normal(&mut self, format: &Format, rounding: Rounding, size: &Lanes) -> Lanes {
        let word = |value: u64| Lanes::constant(types::I32, size.count, value);
        let dropped = 23 - format.mantissa;
        let rebias = (127 - format.bias) as u64 * UNIT;
        let below_half = match rounding {
            Rounding::TowardZero => 0,
            Rounding::Nearest => (1u64 << (dropped - 1)) - 1,
        };
        let mut sum = self.iadd(size, &word(below_half.wrapping_sub(rebias)));
        if rounding == Rounding::Nearest {
            let head = self.shr(size, dropped);
            let even = self.band(&head, &word(1));
            sum = self.iadd(&sum, &even);
        }
        self.shr(&sum, dropped)
    }

    /// A size below the least normal number. Added to a number whose last place is the format's least
    /// subnormal, it is rounded to that place, and stands in the low bits of the image.
    fn round_subnormal(&mut self, format: &Format, rounding: Rounding, size: &Lanes) -> Lanes {
        let exponent = 24 - format.bias - format.mantissa as i32 + 127;
        let base = Lanes::constant(types::I32, size.count, exponent as u64 * UNIT);
        let magic = Lanes::constant(types::F32, size.count, exponent as u64 * UNIT);
        let size = self.recast(size, types::F32);
        let sum = self.fadd(&size, &magic);
        let image = self.recast(&sum, types::I32);
        let nearest = self.isub(&image, &base);
        if rounding == Rounding::Nearest {
            return nearest;
        }
        let rounded = self.fsub(&sum, &magic);
        let above = self.fcmp(FloatCC::LessThan, &size, &rounded);
        self.iadd(&nearest, &above)
    }
}

const fn is_narrow(ty: Scalar) -> bool {
    ty.is_float() && ty.bits() < 32
}

/// Whether images of the format are the first bits of fp32's.
fn is_head(format: &Format) -> bool {
    format.bias == 127 && format.mantissa + 9 == format.bits
}
