//! Floats of less than 32 bits, and fp32.
//!
//! fp16 has instructions. Images of bf16 are the first bits of fp32's. For the others the exponent is
//! moved to its place by integer arithmetic, as in the portable writer, of which these are the same
//! operations.

use super::lower::{Lanes, Lower};
use super::machine::Op;
use naiad_ir::Scalar;
use naiad_ir::scalar::{Format, Nan, Predicate, Rounding};

/// Image of infinity in fp32, and of every number greater in size, which is NaN.
const INFINITY: u64 = 0x7f80_0000;
const QUIET: u64 = 0x7fc0_0000;
/// One in fp32's exponent.
const UNIT: u64 = 1 << 23;

impl Lower<'_> {
    /// A float of less than 32 bits as fp32.
    pub fn widen(&mut self, from: Scalar, x: &Lanes) -> Option<Lanes> {
        if from == Scalar::F16 {
            return Some(self.spread(Op::PhToPs, x, 32));
        }
        let format = Format::of(from)?;
        let image = &self.resize(x, 32, false);
        if is_head(format) {
            return Some(self.by_part_imm(Op::ShlImmD, [image], Some(32 - format.bits as u8)));
        }
        // With exponent and significand moved to their places the exponent only wants the difference of
        // the biases; where it is 0, the number is what the significand adds to the least normal one.
        let mut size = self.with_constant(Op::AndD, image, (1 << (format.bits - 1)) - 1);
        if format.nan == Nan::Absent {
            // The image above the largest number reads as that.
            size = self.with_constant(Op::MinSd, &size, format.largest.into());
        }
        let moved = self.by_part_imm(Op::ShlImmD, [&size], Some(23 - format.mantissa as u8));
        let rebias = (127 - format.bias) as u64 * UNIT;
        let normal = self.with_constant(Op::AddD, &moved, rebias);
        let above = self.with_constant(Op::AddD, &normal, UNIT);
        let subnormal = self.with_constant(Op::SubPs, &above, rebias + UNIT);
        let is_subnormal = self.against(Predicate::Lt, &size, 1 << format.mantissa)?;
        let number = self.choose(&is_subnormal, &subnormal, &normal)?;
        let special = match (format.nan, format.infinity) {
            // Their significands stay, and tell infinity from NaN.
            (Nan::Ieee, Some(infinity)) => {
                Some((self.against(Predicate::Ge, &size, infinity.into())?, INFINITY))
            }
            (Nan::AllOnes, _) => {
                Some((self.against(Predicate::Gt, &size, format.largest.into())?, QUIET))
            }
            (Nan::NegativeZero, _) => {
                Some((self.against(Predicate::Eq, image, 1 << (format.bits - 1))?, QUIET))
            }
            (Nan::Ieee, None) | (Nan::Absent, _) => None,
        };
        let number = match special {
            None => number,
            Some((special, bits)) => {
                let with = self.with_constant(Op::OrD, &number, bits);
                self.choose(&special, &with, &number)?
            }
        };
        let top = self.by_part_imm(Op::ShlImmD, [image], Some(32 - format.bits as u8));
        let sign = self.with_constant(Op::AndD, &top, 1 << 31);
        Some(self.by_part(Op::OrD, [&number, &sign]))
    }

    /// fp32 as a float of less than 32 bits.
    pub fn narrow(&mut self, to: Scalar, rounding: Rounding, x: &Lanes) -> Option<Lanes> {
        if to == Scalar::F16 {
            let how = match rounding {
                Rounding::Nearest => 0,
                Rounding::TowardZero => 3,
            };
            return Some(self.squeeze(Op::PsToPh, x, 16, Some(how)));
        }
        let format = Format::of(to)?;
        let is_nan = self.compare_lanes(Predicate::Ne, Scalar::F32, x, x)?;
        let images = if is_head(format) {
            self.narrow_to_head(format, rounding, x, &is_nan)?
        } else {
            self.narrow_image(format, rounding, x, &is_nan)?
        };
        Some(self.resize(&images, to.bits(), false))
    }

    /// A comparison of integers with a number.
    fn against(&mut self, p: Predicate, x: &Lanes, number: u64) -> Option<Lanes> {
        let number = self.number(x, number);
        self.compare_lanes(p, Scalar::I32, x, &number)
    }

    /// The head of an fp32 image, rounded: a carry goes into the exponent, and up to infinity.
    fn narrow_to_head(
        &mut self,
        format: &Format,
        rounding: Rounding,
        image: &Lanes,
        is_nan: &Lanes,
    ) -> Option<Lanes> {
        let dropped = Some(32 - format.bits as u8);
        let head = self.by_part_imm(Op::ShrImmD, [image], dropped);
        let rounded = match rounding {
            Rounding::TowardZero => head.clone(),
            Rounding::Nearest => {
                let even = self.with_constant(Op::AndD, &head, 1);
                let below_half = (1 << (31 - format.bits)) - 1;
                let sum = self.with_constant(Op::AddD, image, below_half);
                let sum = self.by_part(Op::AddD, [&sum, &even]);
                self.by_part_imm(Op::ShrImmD, [&sum], dropped)
            }
        };
        // A NaN whose payload is in the dropped bits must stay one.
        let nan = self.with_constant(Op::OrD, &head, 1 << (format.mantissa - 1));
        self.choose(is_nan, &nan, &rounded)
    }

    fn narrow_image(
        &mut self,
        format: &Format,
        rounding: Rounding,
        image: &Lanes,
        is_nan: &Lanes,
    ) -> Option<Lanes> {
        let size = self.with_constant(Op::AndD, image, 0x7fff_ffff);
        let normal = self.round_normal(format, rounding, &size);
        let subnormal = self.round_subnormal(format, rounding, &size)?;
        let first_normal = (128 - format.bias) as u64 * UNIT;
        let is_subnormal = self.against(Predicate::Lt, &size, first_normal)?;
        let number = self.choose(&is_subnormal, &subnormal, &normal)?;

        // Images are ordered as the numbers are, so what is too large is a greater image.
        let infinity = format.infinity.filter(|_| format.bits > 8);
        let limit = match (infinity, rounding) {
            (Some(infinity), Rounding::Nearest) => infinity,
            _ => format.largest,
        };
        let mut number = self.with_constant(Op::MinSd, &number, limit.into());
        if let (Some(infinity), Rounding::TowardZero) = (infinity, rounding) {
            let is_infinite = self.against(Predicate::Eq, &size, INFINITY)?;
            let infinity = self.number(&number, infinity.into());
            number = self.choose(&is_infinite, &infinity, &number)?;
        }
        let nan = match format.nan {
            Nan::Ieee => format.infinity.map_or(0, |inf| inf | 1 << (format.mantissa - 1)),
            Nan::AllOnes => format.largest + 1,
            Nan::NegativeZero => 1 << (format.bits - 1),
            Nan::Absent => format.largest,
        };
        let nan = self.number(&number, nan.into());
        let moved = self.by_part_imm(Op::ShrImmD, [image], Some(32 - format.bits as u8));
        let sign = self.with_constant(Op::AndD, &moved, 1 << (format.bits - 1));
        let signed = self.by_part(Op::OrD, [&number, &sign]);
        if format.nan == Nan::NegativeZero {
            // -0, and what rounds to it, is 0. The one NaN has no sign, but its image has that bit.
            let is_zero = self.against(Predicate::Eq, &number, 0)?;
            let number = self.choose(&is_zero, &number, &signed)?;
            return self.choose(is_nan, &nan, &number);
        }
        let nan = self.by_part(Op::OrD, [&nan, &sign]);
        self.choose(is_nan, &nan, &signed)
    }

    /// A size of at least the least normal number; the exponent may come out too large.
    fn round_normal(&mut self, format: &Format, rounding: Rounding, size: &Lanes) -> Lanes {
        let dropped = 23 - format.mantissa;
        let rebias = (127 - format.bias) as u64 * UNIT;
        let below_half = match rounding {
            Rounding::TowardZero => 0,
            Rounding::Nearest => (1u64 << (dropped - 1)) - 1,
        };
        let plus = below_half.wrapping_sub(rebias) & u64::from(u32::MAX);
        let mut sum = self.with_constant(Op::AddD, size, plus);
        if rounding == Rounding::Nearest {
            let head = self.by_part_imm(Op::ShrImmD, [size], Some(dropped as u8));
            let even = self.with_constant(Op::AndD, &head, 1);
            sum = self.by_part(Op::AddD, [&sum, &even]);
        }
        self.by_part_imm(Op::ShrImmD, [&sum], Some(dropped as u8))
    }

    /// A size below the least normal number. Added to a number whose last place is the format's least
    /// subnormal, it is rounded to that place, and stands in the low bits of the image.
    fn round_subnormal(
        &mut self,
        format: &Format,
        rounding: Rounding,
        size: &Lanes,
    ) -> Option<Lanes> {
        let exponent = 24 - format.bias - format.mantissa as i32 + 127;
        let base = exponent as u64 * UNIT;
        let sum = self.with_constant(Op::AddPs, size, base);
        let nearest = self.with_constant(Op::SubD, &sum, base);
        if rounding == Rounding::Nearest {
            return Some(nearest);
        }
        let rounded = self.with_constant(Op::SubPs, &sum, base);
        let above = self.compare_lanes(Predicate::Lt, Scalar::F32, size, &rounded)?;
        let less = self.with_constant(Op::AddD, &nearest, u32::MAX.into());
        self.choose(&above, &less, &nearest)
    }
}

/// Whether images of the format are the first bits of fp32's.
fn is_head(format: &Format) -> bool {
    format.bias == 127 && format.mantissa + 9 == format.bits
}
