//! Which ops machines have: all but elementary functions of floats.

use naiad_ir::scalar::{BinaryFn, TernaryFn, UnaryFn};
use naiad_ir::thread::{self, Thread, ThreadOp};
use naiad_ir::{Function, Scalar, Value};
use std::borrow::Cow;

/// The function with ops only that are written.
pub fn expand(func: &Function<Thread>) -> Cow<'_, Function<Thread>> {
    thread::expand(func, &is_native)
}

fn is_native(func: &Function<Thread>, op: &ThreadOp) -> bool {
    let is_int =
        |v: Value| func.ty(v).vector().and_then(|v| v.elem.scalar()).is_some_and(Scalar::is_int);
    match op {
        ThreadOp::Unary { f, x } => {
            use UnaryFn::{Abs, Ceil, Floor, Neg, Rint, Sqrt, SqrtRn, Trunc};
            matches!(f, Neg | Abs | Floor | Ceil | Trunc | Rint | Sqrt | SqrtRn) || is_int(*x)
        }
        ThreadOp::Binary { f, a, .. } => {
            use BinaryFn::{Add, Div, DivRn, Mul, Sub};
            matches!(f, Add | Sub | Mul | Div | DivRn) || is_int(*a)
        }
        ThreadOp::Ternary { f, a, .. } => matches!(f, TernaryFn::Fma) || is_int(*a),
        _ => true,
    }
}
