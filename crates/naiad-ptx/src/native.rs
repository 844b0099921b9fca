//! Which functions of numbers and conversions are written; the others are made of these before.

use crate::{Target, cast};
use naiad_ir::scalar::{BinaryFn, TernaryFn, UnaryFn};
use naiad_ir::thread::{Thread, ThreadOp};
use naiad_ir::{Function, Scalar, Value};

pub fn is_native(target: Target, func: &Function<Thread>, op: &ThreadOp) -> bool {
    let of = |v: Value| func.ty(v).vector().and_then(|v| v.elem.scalar());
    let is_int = |v: Value| of(v).is_some_and(Scalar::is_int);
    match op {
        ThreadOp::Unary { f, x } => {
            use UnaryFn::{Abs, Ceil, Floor, Neg, Rint, Sqrt, SqrtRn, Trunc};
            matches!(f, Neg | Abs | Floor | Ceil | Trunc | Rint | Sqrt | SqrtRn) || is_int(*x)
        }
        ThreadOp::Binary { f, a, .. } => match f {
            BinaryFn::Add | BinaryFn::Sub | BinaryFn::Mul | BinaryFn::Div | BinaryFn::DivRn => true,
            // Of a NaN and a number the number; -0 is less than +0.
            BinaryFn::Min | BinaryFn::Max => true,
            BinaryFn::MinNan | BinaryFn::MaxNan => of(*a) == Some(Scalar::F32) || is_int(*a),
            _ => is_int(*a),
        },
        ThreadOp::Ternary { f, a, .. } => {
            matches!(f, TernaryFn::Fma | TernaryFn::Clamp) || is_int(*a)
        }
        ThreadOp::Cast { src, to, rounding } => {
            of(*src).is_some_and(|from| cast::is_native(target, from, *to, *rounding))
        }
        // What is printed goes where C's numbers go, and floats are fp64 there.
        ThreadOp::Print { hex: false, value: Some(v), .. } => {
            of(*v).is_none_or(|s| !s.is_float() || s == Scalar::F64)
        }
        _ => true,
    }
}
