//! Addresses, and masks.

use super::R;
use super::cast::holds;
use super::values::{full, is_splat, splat, splat_of, uniform_constant};
use crate::ranges::Ranges;
use crate::rewrite::Outcome;
use naiad_ir::scalar::BinaryFn;
use naiad_ir::tile::{Constant, TileOp};
use naiad_ir::{Inst, Scalar, Value};

/// Offsets are extended to 64 bits by their own signedness and addresses wrap there, so sums of
/// offsets may be regrouped once they are 64 bits wide.
pub(super) fn ptr_add(
    r: R<'_, '_>,
    inst: Inst,
    ptr: Value,
    offset: Value,
    ranges: Option<&Ranges>,
) -> Outcome {
    let (ty, loc) = (r.func.ty(ptr), r.func.loc(inst));
    let constant = uniform_constant(r.func, offset);
    if constant.is_some_and(|c| c.bits == 0) {
        return Outcome::value(ptr);
    }
    // The extension that the op makes by itself.
    if let Some(&TileOp::Cast { src, to, .. }) = r.func.defining_op(offset)
        && let Some(from) = r.func.ty(src).elem.scalar()
        && from.is_int()
        && (holds(to, from) || to.bits() == 64 && !to.is_bool())
    {
        *r.func.op_mut(inst) = TileOp::PtrAdd { ptr, offset: src };
        return Outcome::Edited;
    }
    if let Some(base) = splat_of(r.func, ptr)
        && let Some((varying, uniform)) = uniform_part(r, offset, ranges)
    {
        let base = r.make(TileOp::PtrAdd { ptr: base, offset: uniform }, loc);
        let base = splat(r, base, ty.shape, loc);
        *r.func.op_mut(inst) = TileOp::PtrAdd { ptr: base, offset: varying };
        return Outcome::Edited;
    }
    let Some(&TileOp::PtrAdd { ptr: base, offset: first }) = r.func.defining_op(ptr) else {
        return Outcome::Keep;
    };
    if let (Some(c), Some(d)) = (uniform_constant(r.func, first), constant) {
        let sum = c.as_int().unwrap_or(0) + d.as_int().unwrap_or(0);
        let narrow = i32::try_from(sum).is_ok();
        let s = if narrow { Scalar::I32 } else { Scalar::I64 };
        let offset = full(r, Constant::int(s, sum), ty.shape, loc);
        *r.func.op_mut(inst) = TileOp::PtrAdd { ptr: base, offset };
        return Outcome::Edited;
    }
    // What is uniform joins the base.
    if let (Some(base), Some(uniform)) = (splat_of(r.func, base), splat_of(r.func, offset))
        && !is_splat(r, first)
    {
        let base = r.make(TileOp::PtrAdd { ptr: base, offset: uniform }, loc);
        let base = splat(r, base, ty.shape, loc);
        *r.func.op_mut(inst) = TileOp::PtrAdd { ptr: base, offset: first };
        return Outcome::Edited;
    }
    Outcome::Keep
}

/// The two parts of an offset that is a sum of a tile and a scalar, where extending them to 64 bits
/// and then adding is the same: in 64 bits, or where the sum does not wrap.
fn uniform_part(r: R<'_, '_>, offset: Value, ranges: Option<&Ranges>) -> Option<(Value, Value)> {
    let Some(&TileOp::Binary { f: BinaryFn::Add, a, b }) = r.func.defining_op(offset) else {
        return None;
    };
    let uniform = splat_of(r.func, b)?;
    let wide = r.func.ty(offset).elem.scalar().is_some_and(|s| s.bits() == 64);
    let exact = ranges.is_some_and(|ranges| !ranges.may_wrap(offset));
    (wide || exact).then_some((a, uniform))
}

/// Ops that a constant mask or condition decides.
pub(super) fn masked(r: R<'_, '_>, inst: Inst) -> Outcome {
    let func = &mut *r.func;
    let known =
        |mask: Option<Value>| mask.and_then(|m| uniform_constant(func, m)).map(|c| c.bits != 0);
    match func.op(inst) {
        &TileOp::Load { mask, other, .. } => match known(mask) {
            Some(true) => {
                if let TileOp::Load { mask, other, .. } = func.op_mut(inst) {
                    (*mask, *other) = (None, None);
                }
                Outcome::Keep
            }
            Some(false) => {
                let (ty, loc) = (func.ty(func.results(inst)[0]), func.loc(inst));
                let zero = Constant { ty: ty.elem.scalar().unwrap_or(Scalar::I64), bits: 0 };
                Outcome::value(other.unwrap_or_else(|| full(r, zero, ty.shape, loc)))
            }
            None => {
                let is_default =
                    other.and_then(|o| uniform_constant(func, o)).is_some_and(|c| c.bits == 0);
                if let TileOp::Load { other, .. } = func.op_mut(inst)
                    && is_default
                {
                    *other = None;
                }
                Outcome::Keep
            }
        },
        &TileOp::Store { mask, .. } | &TileOp::AtomicStore { mask, .. } => match known(mask) {
            Some(false) if matches!(func.op(inst), TileOp::Store { .. }) => Outcome::Erase,
            Some(true) => unmask(r, inst),
            _ => Outcome::Keep,
        },
        &TileOp::AtomicRmw { mask, .. }
        | &TileOp::AtomicLoad { mask, .. }
        | &TileOp::Histogram { mask, .. } => match known(mask) {
            Some(true) => unmask(r, inst),
            _ => Outcome::Keep,
        },
        &TileOp::Assert { cond, mask, .. } => {
            if known(Some(cond)) == Some(true) || known(mask) == Some(false) {
                Outcome::Erase
            } else if known(mask) == Some(true) {
                unmask(r, inst)
            } else {
                Outcome::Keep
            }
        }
        &TileOp::Assume { cond } if known(Some(cond)) == Some(true) => Outcome::Erase,
        _ => Outcome::Keep,
    }
}

fn unmask(r: R<'_, '_>, inst: Inst) -> Outcome {
    match r.func.op_mut(inst) {
        TileOp::Store { mask, .. }
        | TileOp::AtomicRmw { mask, .. }
        | TileOp::AtomicLoad { mask, .. }
        | TileOp::AtomicStore { mask, .. }
        | TileOp::Histogram { mask, .. }
        | TileOp::Assert { mask, .. } => *mask = None,
        _ => {}
    }
    Outcome::Keep
}
