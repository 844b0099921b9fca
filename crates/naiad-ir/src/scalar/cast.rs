//! Conversions between all pairs of types.
//!
//! | from | to | result |
//! |---|---|---|
//! | integer | integer | low bits; sign- or zero-extended after the type of the source |
//! | anything | `i1` | `x != 0`, so NaN is true |
//! | integer | float | the nearest, ties to even, rounded once |
//! | float | integer of 32 or 64 bits | toward zero, saturating, NaN is 0 |
//! | float | integer of 16 bits | the same |
//! | float | integer of 8 bits | as to 16 bits of the same signedness, then the low 8 bits (NVIDIA) |
//! | float | wider float | exact |
//! | float | narrower float | rounded once, to nearest even or toward zero |
//! | float | fp8 | the same, but saturating, infinities too; NaN stays NaN where the format has one |
//!
//! A NaN keeps its sign and the head of its payload, and becomes quiet.

use super::format::Format;
use crate::types::{Kind, Scalar};

/// How a conversion from a float to a narrower one rounds; integers are always rounded to nearest.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub enum Rounding {
    /// To nearest, ties to even (`rtne`).
    #[default]
    Nearest,
    /// Toward zero (`rtz`).
    TowardZero,
}

impl Rounding {
    pub const ALL: &'static [Rounding] = &[Rounding::Nearest, Rounding::TowardZero];

    /// The name in IR text and in `fp_downcast_rounding`.
    pub const fn name(self) -> &'static str {
        match self {
            Rounding::Nearest => "rtne",
            Rounding::TowardZero => "rtz",
        }
    }

    pub fn from_name(name: &str) -> Option<Rounding> {
        Rounding::ALL.iter().copied().find(|r| r.name() == name)
    }
}

/// The conversion of one bit image.
pub fn cast_bits(from: Scalar, to: Scalar, rounding: Rounding, image: u64) -> u64 {
    let image = image & from.mask();
    if from == to {
        return image;
    }
    let value = match Format::of(from) {
        Some(format) => Value::Float(format.decode(image as u32)),
        None if from.is_float() => Value::Float(f64::from_bits(image)),
        None => Value::Int(extend(from, image)),
    };
    encode(to, rounding, value)
}

/// A number of any type, exactly.
#[derive(Copy, Clone)]
enum Value {
    Int(i128),
    Float(f64),
}

fn extend(ty: Scalar, image: u64) -> i128 {
    if ty.is_signed() {
        let unused = 64 - ty.bits();
        i128::from((image << unused) as i64 >> unused)
    } else {
        i128::from(image)
    }
}

fn encode(to: Scalar, rounding: Rounding, value: Value) -> u64 {
    match (value, to.kind()) {
        (Value::Int(x), Kind::Bool) => u64::from(x != 0),
        (Value::Float(x), Kind::Bool) => u64::from(x != 0.0),
        (Value::Int(x), Kind::Signed | Kind::Unsigned) => x as u64 & to.mask(),
        (Value::Float(x), Kind::Signed | Kind::Unsigned) => float_to_int(to, x) & to.mask(),
        (Value::Int(x), Kind::Float) => match Format::of(to) {
            Some(format) => u64::from(format.encode(round_to_odd(x), Rounding::Nearest)),
            None => (x as f64).to_bits(),
        },
        (Value::Float(x), Kind::Float) => match Format::of(to) {
            Some(format) => u64::from(format.encode(x, rounding)),
            None => x.to_bits(),
        },
    }
}

fn float_to_int(to: Scalar, x: f64) -> u64 {
    match (to.is_signed(), to.bits()) {
        (true, 64) => x as i64 as u64,
        (true, 32) => x as i32 as u64,
        (true, _) => x as i16 as u64,
        (false, 64) => x as u64,
        (false, 32) => u64::from(x as u32),
        (false, _) => u64::from(x as u16),
    }
}

/// The `f64` that rounds to any format of at most 51 bits as the integer itself would: the lowest
/// bit of the significand is set if anything was lost. Rounding to nearest here would make a tie
/// where there is none, and the second rounding would go wrong.
fn round_to_odd(x: i128) -> f64 {
    let size = x.unsigned_abs();
    let excess = (128 - size.leading_zeros()).saturating_sub(53);
    let lost = size & ((1 << excess) - 1) != 0;
    let odd = ((size >> excess) | u128::from(lost)) << excess;
    if x < 0 { -(odd as f64) } else { odd as f64 }
}
