//! What follows from what numbers can be.

use super::values::{full, uniform_constant};
use super::{R, control};
use crate::ranges::Ranges;
use crate::rewrite::Outcome;
use naiad_ir::op::Effects;
use naiad_ir::scalar::BinaryFn;
use naiad_ir::tile::{Constant, Tile, TileOp};
use naiad_ir::{Inst, OpInfo, Value};

pub(super) fn simplify(r: R<'_, '_>, inst: Inst, ranges: &Ranges) -> Outcome {
    let op = r.func.op(inst);
    if op.effects() != Effects::Pure || matches!(op, TileOp::Const { .. }) {
        return Outcome::Keep;
    }
    let &[result] = r.func.results(inst) else { return Outcome::Keep };
    if let Some(value) = ranges.constant(r.func, result)
        && uniform_constant(r.func, result).is_none()
    {
        let (shape, loc) = (r.func.ty(result).shape, r.func.loc(inst));
        return Outcome::value(full(r, value, shape, loc));
    }
    if let Some(operand) = ranges.same(result) {
        return Outcome::value(operand);
    }
    match *r.func.op(inst) {
        TileOp::Binary { f: f @ (BinaryFn::Rem | BinaryFn::Idiv), a, b }
            if ranges.is_of_non_negative(result) =>
        {
            by_power(r, inst, f, a, b)
        }
        _ => Outcome::Keep,
    }
}

/// A loop that runs once for all numbers that its bounds can be, or never.
pub(super) fn rounds(r: R<'_, '_>, inst: Inst, ranges: &Ranges) -> Outcome {
    let rounds = ranges.rounds(r.func, inst).filter(|n| n.is_point());
    rounds.map_or(Outcome::Keep, |n| control::of_rounds::<Tile>(r.func.op(inst), n.lo))
}

/// Without a sign a quotient is a shift, and a remainder low bits.
fn by_power(r: R<'_, '_>, inst: Inst, f: BinaryFn, a: Value, b: Value) -> Outcome {
    let Some(c) = uniform_constant(r.func, b) else { return Outcome::Keep };
    let Some(n) = c.as_int().filter(|n| *n > 0 && n.count_ones() == 1) else {
        return Outcome::Keep;
    };
    let (shape, loc) = (r.func.ty(b).shape, r.func.loc(inst));
    let (f, by) = match f {
        BinaryFn::Rem => (BinaryFn::And, n - 1),
        _ => (BinaryFn::Shr, i128::from(n.trailing_zeros())),
    };
    let b = full(r, Constant::int(c.ty, by), shape, loc);
    *r.func.op_mut(inst) = TileOp::Binary { f, a, b };
    Outcome::Edited
}
