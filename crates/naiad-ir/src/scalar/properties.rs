//! What optimizers and reductions may assume of a function.

use super::format::Format;
use super::{BinaryFn, Predicate, Rounding, TernaryFn, cast_bits};
use crate::types::Scalar;

impl BinaryFn {
    /// Whether `f(x, y)` and `f(y, x)` are the same, NaN payloads apart.
    pub const fn is_commutative(self) -> bool {
        match self {
            BinaryFn::Add
            | BinaryFn::Mul
            | BinaryFn::Min
            | BinaryFn::Max
            | BinaryFn::MinNan
            | BinaryFn::MaxNan
            | BinaryFn::And
            | BinaryFn::Or
            | BinaryFn::Xor
            | BinaryFn::Umulhi
            | BinaryFn::Hypot => true,
            BinaryFn::Sub
            | BinaryFn::Div
            | BinaryFn::DivRn
            | BinaryFn::Idiv
            | BinaryFn::Rem
            | BinaryFn::Shl
            | BinaryFn::Shr
            | BinaryFn::Pow
            | BinaryFn::Atan2
            | BinaryFn::Fmod
            | BinaryFn::Remainder
            | BinaryFn::Copysign
            | BinaryFn::Nextafter
            | BinaryFn::Fdim
            | BinaryFn::Ldexp => false,
        }
    }

    /// Whether regrouping keeps the result: never for sums and products of floats, which round. (The
    /// language lets a reduction regroup all the same.)
    pub const fn is_associative(self, ty: Scalar) -> bool {
        match self {
            BinaryFn::Add | BinaryFn::Mul => ty.is_int(),
            BinaryFn::And | BinaryFn::Or | BinaryFn::Xor => true,
            BinaryFn::Min | BinaryFn::Max | BinaryFn::MinNan | BinaryFn::MaxNan => true,
            BinaryFn::Sub
            | BinaryFn::Div
            | BinaryFn::DivRn
            | BinaryFn::Idiv
            | BinaryFn::Rem
            | BinaryFn::Shl
            | BinaryFn::Shr
            | BinaryFn::Umulhi
            | BinaryFn::Pow
            | BinaryFn::Atan2
            | BinaryFn::Hypot
            | BinaryFn::Fmod
            | BinaryFn::Remainder
            | BinaryFn::Copysign
            | BinaryFn::Nextafter
            | BinaryFn::Fdim
            | BinaryFn::Ldexp => false,
        }
    }

    /// The image of the `e` with `f(e, x) = f(x, e) = x` for every `x`, if there is one.
    ///
    /// For a float this is exact: a sum starts at `-0`, because `0 + -0` is `0`; and `min` and `max`
    /// start at NaN, which loses to every number and leaves a NaN a NaN, where an infinity would turn
    /// a tile of NaN into infinities. (A format without NaN starts at its largest number.)
    pub fn identity(self, ty: Scalar) -> Option<u64> {
        if !self.accepts(ty) {
            return None;
        }
        let float = |x: f64| cast_bits(Scalar::F64, ty, Rounding::Nearest, x.to_bits());
        let int = |x: i128| x as u64 & ty.mask();
        match self {
            BinaryFn::Add if ty.is_float() => Some(float(-0.0)),
            BinaryFn::Mul if ty.is_float() => Some(float(1.0)),
            BinaryFn::Min if ty.is_float() => Some(float(f64::NAN.abs())),
            // A format without NaN turns it into its largest number.
            BinaryFn::Max if ty.is_float() => Some(float(-f64::NAN.abs())),
            BinaryFn::MinNan if ty.is_float() => Some(Format::top(ty)),
            BinaryFn::MaxNan if ty.is_float() => Some(Format::top(ty) | 1 << (ty.bits() - 1)),
            BinaryFn::Add | BinaryFn::Or | BinaryFn::Xor => Some(0),
            BinaryFn::Mul => Some(1),
            BinaryFn::And => Some(ty.mask()),
            BinaryFn::Min | BinaryFn::MinNan => Some(int(ty.int_max())),
            BinaryFn::Max | BinaryFn::MaxNan => Some(int(ty.int_min())),
            BinaryFn::Sub
            | BinaryFn::Div
            | BinaryFn::DivRn
            | BinaryFn::Idiv
            | BinaryFn::Rem
            | BinaryFn::Shl
            | BinaryFn::Shr
            | BinaryFn::Umulhi
            | BinaryFn::Pow
            | BinaryFn::Atan2
            | BinaryFn::Hypot
            | BinaryFn::Fmod
            | BinaryFn::Remainder
            | BinaryFn::Copysign
            | BinaryFn::Nextafter
            | BinaryFn::Fdim
            | BinaryFn::Ldexp => None,
        }
    }
}

impl BinaryFn {
    /// What leaves the other operand as it is, as a kernel would write it.
    pub fn identity_text(self, ty: Scalar) -> Option<String> {
        let text = match (self, ty.is_float()) {
            (BinaryFn::Add | BinaryFn::Or | BinaryFn::Xor, true) => "0.0".to_string(),
            (BinaryFn::Add | BinaryFn::Or | BinaryFn::Xor, false) => "0".to_string(),
            (BinaryFn::Mul, true) => "1.0".to_string(),
            (BinaryFn::Mul, false) => "1".to_string(),
            (BinaryFn::Max | BinaryFn::MaxNan, true) => "float(\"-inf\")".to_string(),
            (BinaryFn::Min | BinaryFn::MinNan, true) => "float(\"inf\")".to_string(),
            (BinaryFn::Max, false) => ty.int_min().to_string(),
            (BinaryFn::Min, false) => ty.int_max().to_string(),
            _ => return None,
        };
        Some(text)
    }
}

impl TernaryFn {
    /// The function that is applied in the compute type of `ty` and then rounded to `ty`. A fused
    /// operation would be rounded twice by that, so its place is taken by one that bears it.
    pub const fn computed(self, ty: Scalar) -> TernaryFn {
        match self {
            TernaryFn::Fma if ty.is_float() && ty.bits() < 32 => TernaryFn::FmaOdd,
            f => f,
        }
    }
}

impl Predicate {
    /// The comparison that holds of `(y, x)` where this one holds of `(x, y)`.
    pub const fn swapped(self) -> Predicate {
        match self {
            Predicate::Eq => Predicate::Eq,
            Predicate::Ne => Predicate::Ne,
            Predicate::Lt => Predicate::Gt,
            Predicate::Le => Predicate::Ge,
            Predicate::Gt => Predicate::Lt,
            Predicate::Ge => Predicate::Le,
        }
    }

    /// The comparison that holds where this one does not. On floats only `eq` and `ne` have one: the
    /// others are all false where an operand is NaN.
    pub const fn negated(self, ty: Scalar) -> Option<Predicate> {
        match self {
            Predicate::Eq => Some(Predicate::Ne),
            Predicate::Ne => Some(Predicate::Eq),
            _ if ty.is_float() => None,
            Predicate::Lt => Some(Predicate::Ge),
            Predicate::Le => Some(Predicate::Gt),
            Predicate::Gt => Some(Predicate::Le),
            Predicate::Ge => Some(Predicate::Lt),
        }
    }
}
