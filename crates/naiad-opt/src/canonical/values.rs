//! Looking at operands, and making constants.

use super::R;
use naiad_diag::Loc;
use naiad_ir::tile::{Constant, Tile, TileOp};
use naiad_ir::{Function, Shape, Value};

/// The scalar that every lane of a tile is by construction.
pub(crate) fn splat_of(func: &Function<Tile>, value: Value) -> Option<Value> {
    match func.defining_op(value) {
        Some(&TileOp::Splat { src, .. }) => Some(src),
        _ => None,
    }
}

/// The constant that a scalar is, or every lane of a tile.
pub(crate) fn uniform_constant(func: &Function<Tile>, value: Value) -> Option<Constant> {
    match func.defining_op(splat_of(func, value).unwrap_or(value)) {
        Some(&TileOp::Const { value }) => Some(value),
        _ => None,
    }
}

/// Whether it is a tile of equal lanes by construction.
pub(super) fn is_splat(r: R<'_, '_>, value: Value) -> bool {
    splat_of(r.func, value).is_some()
}

/// A constant in every lane.
pub(super) fn full(r: R<'_, '_>, value: Constant, shape: Shape, loc: Loc) -> Value {
    let scalar = r.make(TileOp::Const { value }, loc);
    splat(r, scalar, shape, loc)
}

/// A scalar in every lane; itself where no tile is wanted.
pub(super) fn splat(r: R<'_, '_>, src: Value, shape: Shape, loc: Loc) -> Value {
    if shape.is_scalar() {
        return src;
    }
    r.make(TileOp::Splat { src, shape }, loc)
}
