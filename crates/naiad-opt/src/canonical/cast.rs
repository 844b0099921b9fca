//! Conversions.

use super::R;
use super::arith::convert;
use super::values::{full, uniform_constant};
use crate::rewrite::Outcome;
use naiad_ir::scalar::Rounding;
use naiad_ir::tile::{Constant, TileOp};
use naiad_ir::{Elem, Inst, Scalar, Value};

pub(super) fn cast(
    r: R<'_, '_>,
    inst: Inst,
    src: Value,
    to: Scalar,
    rounding: Rounding,
) -> Outcome {
    let (ty, loc) = (r.func.ty(src), r.func.loc(inst));
    let Some(from) = ty.elem.scalar() else { return Outcome::Keep };
    if from == to {
        return Outcome::value(src);
    }
    if let Some(c) = uniform_constant(r.func, src) {
        return Outcome::value(full(r, convert(c, to, rounding), ty.shape, loc));
    }
    if let Some(&TileOp::Cast { src: inner, to: middle, .. }) = r.func.defining_op(src)
        && let Some(first) = r.func.ty(inner).elem.scalar()
        && is_one_step(first, middle, to, rounding)
    {
        *r.func.op_mut(inst) = TileOp::Cast { src: inner, to, rounding };
        return Outcome::Edited;
    }
    if rounding != Rounding::Nearest && !rounds(from, to) {
        *r.func.op_mut(inst) = TileOp::Cast { src, to, rounding: Rounding::Nearest };
        return Outcome::Edited;
    }
    Outcome::Keep
}

/// Whether a conversion looks at its rounding: only those from a float to a narrower one do.
fn rounds(from: Scalar, to: Scalar) -> bool {
    from.is_float() && to.is_float() && !holds(to, from)
}

/// Whether a conversion by way of `middle` is the one from `first` to `last`.
fn is_one_step(first: Scalar, middle: Scalar, last: Scalar, rounding: Rounding) -> bool {
    if holds(middle, first) {
        // A float saturates where an integer keeps its low bits, and rounds as it is told, where an
        // integer is always rounded to nearest.
        let differs = first.is_int() && middle.is_float();
        return !differs
            || if last.is_float() {
                rounding == Rounding::Nearest
            } else {
                last.is_bool() || holds(last, first)
            };
    }
    // Low bits of low bits.
    let cuts = |s: Scalar| s.is_int() && !s.is_bool();
    first.is_int() && cuts(middle) && cuts(last) && last.bits() <= middle.bits()
}

/// Whether every value of type `small` is one of type `wide`, and converting to that keeps it.
pub(super) fn holds(wide: Scalar, small: Scalar) -> bool {
    let digits = |s: Scalar| match s {
        Scalar::F64 => 53,
        Scalar::F32 => 24,
        Scalar::F16 => 11,
        Scalar::BF16 => 8,
        _ => 0,
    };
    match (wide.is_float(), small.is_float()) {
        (false, false) => {
            // Any number is converted to one bit by a comparison with 0.
            (!wide.is_bool() || small.is_bool())
                && wide.int_min() <= small.int_min()
                && small.int_max() <= wide.int_max()
        }
        (true, false) => small.bits() - u32::from(small.is_signed()) <= digits(wide),
        (true, true) => {
            wide == small || wide == Scalar::F64 || wide == Scalar::F32 && small.bits() < 32
        }
        (false, true) => false,
    }
}

pub(super) fn bitcast(r: R<'_, '_>, inst: Inst, src: Value, to: Elem) -> Outcome {
    let (ty, loc) = (r.func.ty(src), r.func.loc(inst));
    if ty.elem == to {
        return Outcome::value(src);
    }
    if let (Elem::Scalar(to), Some(c)) = (to, uniform_constant(r.func, src)) {
        return Outcome::value(full(r, Constant { ty: to, bits: c.bits }, ty.shape, loc));
    }
    if let Some(&TileOp::Bitcast { src: inner, .. }) = r.func.defining_op(src) {
        *r.func.op_mut(inst) = TileOp::Bitcast { src: inner, to };
        return Outcome::Edited;
    }
    Outcome::Keep
}
