//! Conversions out of simpler ones and integer arithmetic, with the results of
//! [`crate::scalar::cast_bits`].
//!
//! ```text
//!   narrow  -> fp32            integer arithmetic on the images; exact
//!   fp32    -> narrow          the same, rounded once
//!   fp64    -> narrow          to fp32 rounded to odd, then as above
//!   integer -> narrow          by fp32 if that holds the integers, else by fp64
//!   narrow  -> anything else   by fp32
//! ```
//!
//! Rounding to odd is truncation with the lowest bit set where anything was lost. A second rounding to
//! fewer bits then sees that the number is no tie, and gives what one rounding would have given
//! (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008). Each step is an op of
//! its own if the target has it. A narrow float is one of less than 32 bits.

use super::expand::IsNative;
use super::{Builder, ThreadOp};
use crate::entities::Value;
use crate::scalar::{BinaryFn, Format, Nan, Predicate, Rounding, UnaryFn};
use crate::tile::Constant;
use crate::types::Scalar;

/// Image of infinity in fp32, and of every number greater in size, which is NaN.
const INFINITY: u32 = 0x7f80_0000;
const QUIET: u32 = 0x7fc0_0000;
/// One in fp32's exponent.
const UNIT: u32 = 1 << 23;

/// The conversion out of native ones and of arithmetic; none if it is of no kind known here.
pub(super) fn cast(
    b: &mut Builder,
    is_native: IsNative,
    src: Value,
    to: Scalar,
    rounding: Rounding,
) -> Option<Value> {
    let v = b.vector(src);
    let from = v.elem.scalar()?;
    let op = ThreadOp::Cast { src, to, rounding };
    if from == to {
        return Some(src);
    }
    if is_native(&b.func, &op) {
        return Some(b.op(op));
    }
    let through = |b: &mut Builder, x, rounding| cast(b, is_native, x, to, rounding);
    if is_narrow(from) {
        if to == Scalar::F32 {
            return Words { b, lanes: v.lanes }.widen(from, src);
        }
        let wide = cast(b, is_native, src, Scalar::F32, Rounding::Nearest)?;
        return through(b, wide, rounding);
    }
    if !is_narrow(to) {
        return None;
    }
    if from == Scalar::F32 {
        return Words { b, lanes: v.lanes }.narrow(to, rounding, src);
    }
    if from == Scalar::F64 {
        let odd = odd_f32(b, src);
        return through(b, odd, rounding);
    }
    let exact = if from.bits() < 32 { Scalar::F32 } else { Scalar::F64 };
    let x = if from.bits() == 64 { odd_i64(b, src) } else { src };
    let exact = cast(b, is_native, x, exact, Rounding::Nearest)?;
    through(b, exact, Rounding::Nearest)
}

fn is_narrow(ty: Scalar) -> bool {
    ty.is_float() && ty.bits() < 32
}

/// Whether images of the format are the first bits of fp32's.
fn is_head(format: &Format) -> bool {
    format.bias == 127 && format.mantissa + 9 == format.bits
}

/// An fp64 as the fp32 that rounds to a narrow float as it does itself.
fn odd_f32(b: &mut Builder, x: Value) -> Value {
    let lanes = b.vector(x).lanes;
    let truncated = b.cast(x, Scalar::F32, Rounding::TowardZero);
    let back = b.cast(truncated, Scalar::F64, Rounding::Nearest);
    let lost = b.compare(Predicate::Ne, back, x);
    let (one, zero) = (int(b, Scalar::U32, 1, lanes), int(b, Scalar::U32, 0, lanes));
    let lost = b.select(lost, one, zero);
    let image = b.bitcast(truncated, Scalar::U32);
    let odd = b.binary(BinaryFn::Or, image, lost);
    b.bitcast(odd, Scalar::F32)
}

/// An integer of 64 bits as one that fp64 holds exactly, and that rounds to a narrow float as it does
/// itself: of more than 53 bits the lowest 11 become one.
fn odd_i64(b: &mut Builder, x: Value) -> Value {
    let v = b.vector(x);
    let ty = v.elem.scalar().unwrap_or(Scalar::I64);
    let mut word = |value| int(b, ty, value, v.lanes);
    let (high, low, step) = (word(!0x7ff), word(0x7ff), word(0x800));
    let limit = word(1 << 53);
    let high = b.binary(BinaryFn::And, x, high);
    let rest = b.binary(BinaryFn::And, x, low);
    let most = b.binary(BinaryFn::Add, rest, low);
    let lost = b.binary(BinaryFn::And, most, step);
    let odd = b.binary(BinaryFn::Or, high, lost);
    // The size of the least number is unsigned.
    let size = b.unary(UnaryFn::Abs, x);
    let (size, limit) = (b.bitcast(size, Scalar::U64), b.bitcast(limit, Scalar::U64));
    let large = b.compare(Predicate::Gt, size, limit);
    b.select(large, odd, x)
}

fn int(b: &mut Builder, ty: Scalar, value: i64, lanes: u32) -> Value {
    b.constant(Constant::int(ty, i128::from(value)), lanes)
}

/// Arithmetic on fp32 images, as i32, of vectors with so many lanes.
struct Words<'b> {
    b: &'b mut Builder,
    lanes: u32,
}

impl Words<'_> {
    fn word(&mut self, value: u32) -> Value {
        int(self.b, Scalar::I32, i64::from(value as i32), self.lanes)
    }

    /// An operation with a constant.
    fn with(&mut self, f: BinaryFn, x: Value, value: u32) -> Value {
        let value = self.word(value);
        self.b.binary(f, x, value)
    }

    fn shr(&mut self, x: Value, by: u32) -> Value {
        let x = self.b.bitcast(x, Scalar::U32);
        let by = int(self.b, Scalar::U32, i64::from(by), self.lanes);
        let shifted = self.b.binary(BinaryFn::Shr, x, by);
        self.b.bitcast(shifted, Scalar::I32)
    }

    fn image(&mut self, x: Value) -> Value {
        self.b.bitcast(x, Scalar::I32)
    }

    fn float(&mut self, image: Value) -> Value {
        self.b.bitcast(image, Scalar::F32)
    }

    /// A comparison with a constant.
    fn is(&mut self, p: Predicate, x: Value, value: u32) -> Value {
        let value = self.word(value);
        self.b.compare(p, x, value)
    }

    /// The constant where the mask is true, else `x`.
    fn put(&mut self, mask: Value, value: u32, x: Value) -> Value {
        let value = self.word(value);
        self.b.select(mask, value, x)
    }

    /// A narrow float as fp32.
    ///
    /// With exponent and significand moved to their places the exponent only wants the difference of
    /// the biases; where it is 0, the number is what the significand adds to the least normal one.
    fn widen(&mut self, from: Scalar, x: Value) -> Option<Value> {
        let format = Format::of(from)?;
        let unsigned = if from.bits() == 8 { Scalar::U8 } else { Scalar::U16 };
        let image = self.b.bitcast(x, unsigned);
        let image = self.b.cast(image, Scalar::I32, Rounding::Nearest);
        let top = self.with(BinaryFn::Shl, image, 32 - format.bits);
        if is_head(format) {
            return Some(self.float(top));
        }
        let mut size = self.with(BinaryFn::And, image, (1 << (format.bits - 1)) - 1);
        if format.nan == Nan::Absent {
            // The image above the largest number reads as that.
            size = self.with(BinaryFn::Min, size, format.largest);
        }
        let moved = self.with(BinaryFn::Shl, size, 23 - format.mantissa);
        let rebias = (127 - format.bias) as u32 * UNIT;
        let normal = self.with(BinaryFn::Add, moved, rebias);
        let above = self.with(BinaryFn::Add, normal, UNIT);
        let above = self.float(above);
        let least = self.word(rebias + UNIT);
        let least = self.float(least);
        let subnormal = self.b.binary(BinaryFn::Sub, above, least);
        let subnormal = self.image(subnormal);
        let is_subnormal = self.is(Predicate::Lt, size, 1 << format.mantissa);
        let mut number = self.b.select(is_subnormal, subnormal, normal);

        let special = match (format.nan, format.infinity) {
            // Their significands stay, and tell infinity from NaN.
            (Nan::Ieee, Some(infinity)) => Some((self.is(Predicate::Ge, size, infinity), INFINITY)),
            (Nan::AllOnes, _) => Some((self.is(Predicate::Gt, size, format.largest), QUIET)),
            (Nan::NegativeZero, _) => {
                Some((self.is(Predicate::Eq, image, 1 << (format.bits - 1)), QUIET))
            }
            (Nan::Ieee, None) | (Nan::Absent, _) => None,
        };
        if let Some((is_special, bits)) = special {
            let marked = self.with(BinaryFn::Or, number, bits);
            number = self.b.select(is_special, marked, number);
        }
        let sign = self.with(BinaryFn::And, top, 1 << 31);
        let number = self.b.binary(BinaryFn::Or, number, sign);
        Some(self.float(number))
    }

    /// fp32 as a narrow float.
    fn narrow(&mut self, to: Scalar, rounding: Rounding, x: Value) -> Option<Value> {
        let format = Format::of(to)?;
        let image = self.image(x);
        let is_nan = self.b.compare(Predicate::Ne, x, x);
        let image = if is_head(format) {
            self.narrow_to_head(format, rounding, image, is_nan)
        } else {
            self.narrow_image(format, rounding, image, is_nan)
        };
        let unsigned = if to.bits() == 8 { Scalar::U8 } else { Scalar::U16 };
        let image = self.b.cast(image, unsigned, Rounding::Nearest);
        Some(self.b.bitcast(image, to))
    }

    /// The head of an fp32 image, rounded: a carry goes into the exponent, and up to infinity.
    fn narrow_to_head(
        &mut self,
        format: &Format,
        rounding: Rounding,
        image: Value,
        is_nan: Value,
    ) -> Value {
        let dropped = 32 - format.bits;
        let head = self.shr(image, dropped);
        let rounded = match rounding {
            Rounding::TowardZero => head,
            Rounding::Nearest => {
                let even = self.with(BinaryFn::And, head, 1);
                let sum = self.with(BinaryFn::Add, image, (1 << (dropped - 1)) - 1);
                let sum = self.b.binary(BinaryFn::Add, sum, even);
                self.shr(sum, dropped)
            }
        };
        // A NaN whose payload is in the dropped bits must stay one.
        let nan = self.with(BinaryFn::Or, head, 1 << (format.mantissa - 1));
        self.b.select(is_nan, nan, rounded)
    }

    fn narrow_image(
        &mut self,
        format: &Format,
        rounding: Rounding,
        image: Value,
        is_nan: Value,
    ) -> Value {
        let size = self.with(BinaryFn::And, image, 0x7fff_ffff);
        let normal = self.round_normal(format, rounding, size);
        let subnormal = self.round_subnormal(format, rounding, size);
        let is_subnormal = self.is(Predicate::Lt, size, (128 - format.bias) as u32 * UNIT);
        let number = self.b.select(is_subnormal, subnormal, normal);

        // Images are ordered as the numbers are, so what is too large is a greater image.
        let infinity = format.infinity.filter(|_| format.bits > 8);
        let limit = match (infinity, rounding) {
            (Some(infinity), Rounding::Nearest) => infinity,
            _ => format.largest,
        };
        let mut number = self.with(BinaryFn::Min, number, limit);
        if let (Some(infinity), Rounding::TowardZero) = (infinity, rounding) {
            let is_infinite = self.is(Predicate::Eq, size, INFINITY);
            number = self.put(is_infinite, infinity, number);
        }
        let nan = match format.nan {
            Nan::Ieee => format.infinity.map_or(0, |inf| inf | 1 << (format.mantissa - 1)),
            Nan::AllOnes => format.largest + 1,
            Nan::NegativeZero => 1 << (format.bits - 1),
            Nan::Absent => format.largest,
        };
        let moved = self.shr(image, 32 - format.bits);
        let mut sign = self.with(BinaryFn::And, moved, 1 << (format.bits - 1));
        if format.nan == Nan::NegativeZero {
            // -0, and what rounds to it, is 0. The one NaN has no sign, but its image has that bit.
            let is_zero = self.is(Predicate::Eq, number, 0);
            sign = self.put(is_zero, 0, sign);
            let number = self.b.binary(BinaryFn::Or, number, sign);
            return self.put(is_nan, nan, number);
        }
        let number = self.put(is_nan, nan, number);
        self.b.binary(BinaryFn::Or, number, sign)
    }

    /// A size of at least the least normal number; the exponent may come out too large.
    fn round_normal(&mut self, format: &Format, rounding: Rounding, size: Value) -> Value {
        let dropped = 23 - format.mantissa;
        let rebias = (127 - format.bias) as u32 * UNIT;
        let below_half = match rounding {
            Rounding::TowardZero => 0,
            Rounding::Nearest => (1u32 << (dropped - 1)) - 1,
        };
        let mut sum = self.with(BinaryFn::Add, size, below_half.wrapping_sub(rebias));
        if rounding == Rounding::Nearest {
            let head = self.shr(size, dropped);
            let even = self.with(BinaryFn::And, head, 1);
            sum = self.b.binary(BinaryFn::Add, sum, even);
        }
        self.shr(sum, dropped)
    }

    /// A size below the least normal number. Added to a number whose last place is the format's least
    /// subnormal, it is rounded to that place, and stands in the low bits of the image.
    fn round_subnormal(&mut self, format: &Format, rounding: Rounding, size: Value) -> Value {
        let exponent = 24 - format.bias - format.mantissa as i32 + 127;
        let base = exponent as u32 * UNIT;
        let magic = self.word(base);
        let magic = self.float(magic);
        let size = self.float(size);
        let sum = self.b.binary(BinaryFn::Add, size, magic);
        let image = self.image(sum);
        let nearest = self.with(BinaryFn::Sub, image, base);
        if rounding == Rounding::Nearest {
            return nearest;
        }
        let rounded = self.b.binary(BinaryFn::Sub, sum, magic);
        let above = self.b.compare(Predicate::Lt, size, rounded);
        let less = self.with(BinaryFn::Sub, nearest, 1);
        self.b.select(above, less, nearest)
    }
}
