//! Splats and broadcasts are lifted out of elementwise ops.
//!
//! ```text
//!   f(splat a, splat b)               -> splat f(a, b)
//!   f(broadcast x, broadcast y, splat c) -> broadcast f(x, y, splat c)     x and y of one shape
//! ```

use super::R;
use super::values::{splat, splat_of};
use crate::rewrite::Outcome;
use naiad_ir::tile::TileOp;
use naiad_ir::{Inst, OpInfo, Shape, Value};

pub(super) fn lift(r: R<'_, '_>, inst: Inst) -> Outcome {
    let shape = r.func.ty(r.func.results(inst)[0]).shape;
    // A hint has a number for each axis.
    if shape.is_scalar() || matches!(r.func.op(inst), TileOp::Hint { .. }) {
        return Outcome::Keep;
    }
    let Some(small) = source_shape(r, inst) else { return Outcome::Keep };
    let loc = r.func.loc(inst);
    let mut op = r.func.op(inst).clone();
    op.each_value_mut(&mut |v| *v = source(r, *v, small, loc));
    let result = r.make(op, loc);
    Outcome::value(if small.is_scalar() {
        r.make(TileOp::Splat { src: result, shape }, loc)
    } else {
        r.make(TileOp::Broadcast { src: result, shape }, loc)
    })
}

/// The one shape that all operands are repeated from; that of a scalar if all are splats.
fn source_shape(r: R<'_, '_>, inst: Inst) -> Option<Shape> {
    let (mut small, mut fits, mut any) = (Shape::SCALAR, true, false);
    r.func.op(inst).each_value(&mut |v| {
        any = true;
        match r.func.defining_op(v) {
            Some(TileOp::Splat { .. }) => {}
            Some(&TileOp::Broadcast { src, .. }) => {
                let from = r.func.ty(src).shape;
                fits &= small.is_scalar() || small == from;
                small = from;
            }
            _ => fits = false,
        }
    });
    (any && fits).then_some(small)
}

/// What an operand repeats.
fn source(r: R<'_, '_>, value: Value, small: Shape, loc: naiad_diag::Loc) -> Value {
    if let Some(src) = splat_of(r.func, value) {
        return splat(r, src, small, loc);
    }
    match r.func.defining_op(value) {
        Some(&TileOp::Broadcast { src, .. }) => src,
        _ => value,
    }
}
