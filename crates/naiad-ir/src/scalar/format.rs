//! The float formats, as data, and correctly rounded conversion to the narrow ones.

use super::Rounding;
use crate::types::Scalar;

/// A float format of at most 32 bits: a sign, an exponent and stored bits of a significand, with
/// subnormals. What the formats do differently at the top is in the last three fields.
#[derive(Copy, Clone, Debug)]
pub struct Format {
    pub bits: u32,
    /// Stored bits of the significand.
    pub mantissa: u32,
    pub bias: i32,
    /// Image of the largest finite number.
    pub largest: u32,
    /// Image of infinity, if there is one. Conversions to fp8 saturate and never give it.
    pub infinity: Option<u32>,
    pub nan: Nan,
}

/// How a format writes NaN.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Nan {
    /// All exponent bits set and a significand other than 0; the top bit of it is the quiet one.
    Ieee,
    /// Every bit but the sign.
    AllOnes,
    /// The image that would be negative zero, which the format lacks.
    NegativeZero,
    /// Not at all: a NaN becomes the largest number of its sign.
    Absent,
}

const fn ieee(bits: u32, mantissa: u32) -> Format {
    let infinity = (1 << (bits - 1)) - (1 << mantissa);
    let bias = (1 << (bits - mantissa - 2)) - 1;
    Format { bits, mantissa, bias, largest: infinity - 1, infinity: Some(infinity), nan: Nan::Ieee }
}

const fn fp8(mantissa: u32, bias: i32, largest: u32, nan: Nan) -> Format {
    Format { bits: 8, mantissa, bias, largest, infinity: None, nan }
}

const F16: Format = ieee(16, 10);
const BF16: Format = ieee(16, 7);
const E5: Format = ieee(8, 2);
const E4NV: Format = fp8(3, 7, 0x7e, Nan::AllOnes);
/// 0x7f would be 1.875 but is read as 1.75, so it is never written.
const E4B15: Format = fp8(3, 15, 0x7e, Nan::Absent);
const E5B16: Format = fp8(2, 16, 0x7f, Nan::NegativeZero);
const E4B8: Format = fp8(3, 8, 0x7f, Nan::NegativeZero);

impl Scalar {
    /// Exponent bias and stored bits of the significand; none for the integers.
    pub fn float_format(self) -> Option<(i32, u32)> {
        match Format::of(self) {
            Some(format) => Some((format.bias, format.mantissa)),
            None => self.is_float().then_some((1023, f64::MANTISSA_DIGITS - 1)),
        }
    }
}

impl Scalar {
    /// Whether the type has a value that is no number.
    pub fn has_nan(self) -> bool {
        self.is_float() && Format::of(self).is_none_or(|f| f.nan != Nan::Absent)
    }
}

impl Format {
    pub(super) const F32: Format = ieee(32, 23);

    /// The format of a float type; `None` for fp64 and the integers.
    pub const fn of(ty: Scalar) -> Option<&'static Format> {
        match ty {
            Scalar::F32 => Some(&Format::F32),
            Scalar::F16 => Some(&F16),
            Scalar::BF16 => Some(&BF16),
            Scalar::F8E5 => Some(&E5),
            Scalar::F8E4NV => Some(&E4NV),
            Scalar::F8E4B15 => Some(&E4B15),
            Scalar::F8E5B16 => Some(&E5B16),
            Scalar::F8E4B8 => Some(&E4B8),
            Scalar::F64
            | Scalar::I1
            | Scalar::I8
            | Scalar::I16
            | Scalar::I32
            | Scalar::I64
            | Scalar::U8
            | Scalar::U16
            | Scalar::U32
            | Scalar::U64 => None,
        }
    }

    /// The image of the greatest value of a float type: infinity, or the largest number.
    pub(super) fn top(ty: Scalar) -> u64 {
        match Format::of(ty) {
            Some(format) => u64::from(format.infinity.unwrap_or(format.largest)),
            None => f64::INFINITY.to_bits(),
        }
    }

    /// The value of an image, which an `f64` holds exactly.
    pub(super) const fn decode(&self, image: u32) -> f64 {
        let sign = (image >> (self.bits - 1)) & 1;
        let magnitude = image & ((1 << (self.bits - 1)) - 1);
        let significand = (magnitude & ((1 << self.mantissa) - 1)) as u64;
        let sign_bit = (sign as u64) << 63;
        let is_nan = match self.nan {
            Nan::Ieee => matches!(self.infinity, Some(inf) if magnitude > inf),
            Nan::AllOnes => magnitude > self.largest,
            Nan::NegativeZero => sign == 1 && magnitude == 0,
            Nan::Absent => false,
        };
        if is_nan {
            // The payload moves along; a format with one NaN has the quiet bit alone.
            let payload = match self.nan {
                Nan::Ieee => significand << (52 - self.mantissa),
                Nan::AllOnes | Nan::NegativeZero | Nan::Absent => 0,
            };
            return f64::from_bits(sign_bit | 0x7ff8 << 48 | payload);
        }
        if matches!(self.infinity, Some(inf) if magnitude == inf) {
            return f64::from_bits(sign_bit | 0x7ff << 52);
        }
        // Only e4b15 has an image above its largest number here.
        let magnitude = if magnitude > self.largest { self.largest } else { magnitude };
        let significand = (magnitude & ((1 << self.mantissa) - 1)) as u64;
        let exponent = (magnitude >> self.mantissa) as i32;
        // A subnormal has the exponent of the smallest normal and no implicit bit.
        let (significand, exponent) = if exponent == 0 {
            (significand, 1)
        } else {
            (significand | 1 << self.mantissa, exponent)
        };
        let unit = exponent - self.bias - self.mantissa as i32;
        let value = significand as f64 * f64::from_bits(((unit + 1023) as u64) << 52);
        f64::from_bits(value.to_bits() | sign_bit)
    }

    /// The image of the value nearest to `x`, or of the one next toward zero: one rounding.
    ///
    /// Overflow gives infinity in a format of 16 bits or more, and saturates in fp8, where an
    /// infinity saturates too.
    pub(super) const fn encode(&self, x: f64, rounding: Rounding) -> u32 {
        let image = x.to_bits();
        let sign = ((image >> 63) as u32) << (self.bits - 1);
        if x.is_nan() {
            return self.encode_nan(image, sign);
        }
        let magnitude = self.round(image & (u64::MAX >> 1), rounding);
        let saturates = self.bits == 8 || matches!(rounding, Rounding::TowardZero);
        let magnitude = match self.infinity {
            _ if magnitude <= self.largest => magnitude,
            Some(inf) if self.bits > 8 && (!saturates || x.is_infinite()) => inf,
            _ => self.largest,
        };
        // -0, and what rounds to it, is 0 where its image means NaN.
        if magnitude == 0 && matches!(self.nan, Nan::NegativeZero) { 0 } else { sign | magnitude }
    }

    const fn encode_nan(&self, image: u64, sign: u32) -> u32 {
        match self.nan {
            Nan::Ieee => {
                // As machines do: the head of the payload, made quiet.
                let payload = (image >> (52 - self.mantissa)) as u32 & ((1 << self.mantissa) - 1);
                let quiet = 1 << (self.mantissa - 1);
                sign | (self.largest + 1) | quiet | payload
            }
            Nan::AllOnes => sign | (self.largest + 1),
            Nan::NegativeZero => 1 << (self.bits - 1),
            Nan::Absent => sign | self.largest,
        }
    }

    /// The magnitude of a non-negative `f64` image, as if the exponent had no upper end; anything
    /// above `largest` (u32::MAX if need be) is an overflow.
    const fn round(&self, image: u64, rounding: Rounding) -> u32 {
        // The exponent that the result would be stored with; subnormals have 1, without implicit bit.
        let stored = (image >> 52) as i32 - 1023 + self.bias;
        if stored > 1 << (self.bits - self.mantissa - 1) {
            return u32::MAX;
        }
        let significand = image & ((1 << 52) - 1) | 1 << 52;
        let below = if stored < 1 { 1 - stored } else { 0 };
        let dropped = 52 - self.mantissa as i32 + below;
        if dropped > 54 {
            // Less than half of the least subnormal; subnormal f64 are here too.
            return 0;
        }
        let kept = (significand >> dropped) as u32;
        // The implicit bit, where it is kept, adds 1 to the exponent field; and a carry out of the
        // rounded significand steps to the next exponent, or to infinity, as the images are ordered.
        let field = if stored < 1 { 0 } else { (stored - 1) as u32 };
        let truncated = (field << self.mantissa) + kept;
        let up = match rounding {
            Rounding::TowardZero => false,
            Rounding::Nearest => {
                let rest = significand & ((1 << dropped) - 1);
                let half = 1 << (dropped - 1);
                rest > half || (rest == half && truncated & 1 == 1)
            }
        };
        truncated + up as u32
    }
}
