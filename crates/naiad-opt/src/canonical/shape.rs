//! Ops that move elements.

use super::values::{full, splat, splat_of};
use super::{R, found};
use crate::rewrite::Outcome;
use naiad_ir::tile::{Axes, Constant, TileOp};
use naiad_ir::{Def, Inst, Scalar, Shape, Value};
use smallvec::{SmallVec, smallvec};

pub(super) fn simplify(r: R<'_, '_>, inst: Inst) -> Outcome {
    if let Some(value) = uniform(r, inst) {
        return value;
    }
    match r.func.op(inst) {
        &TileOp::Arange { start, end } if end - start == 1 => {
            let (ty, loc) = (r.func.ty(r.func.results(inst)[0]), r.func.loc(inst));
            Outcome::value(full(r, Constant::int(Scalar::I32, i128::from(start)), ty.shape, loc))
        }
        &TileOp::Splat { src, shape } if shape.is_scalar() => Outcome::value(src),
        &TileOp::ExpandDims { src, axis } => expand_dims(r, inst, src, axis),
        &TileOp::Broadcast { src, shape } => broadcast(r, inst, src, shape),
        &TileOp::Reshape { src, shape } => reshape(r, inst, src, shape),
        TileOp::Permute { src, order } => {
            let (src, order) = (*src, order.clone());
            permute(r, inst, src, &order)
        }
        &TileOp::Flip { src, axis } => match r.func.defining_op(src) {
            _ if r.func.ty(src).shape.dim(axis) == 1 => Outcome::value(src),
            Some(&TileOp::Flip { src, axis: other }) if other == axis => Outcome::value(src),
            _ => Outcome::Keep,
        },
        &TileOp::Join { a, b } => found(joined_halves(r, a, b)),
        &TileOp::Split { src } => match r.func.defining_op(src) {
            Some(&TileOp::Join { a, b }) => Outcome::Becomes(smallvec![a, b]),
            _ => Outcome::Keep,
        },
        TileOp::Reduce { inputs, axis, .. } => {
            let (inputs, axis) = (inputs.clone(), *axis);
            single_lane_reduce(r, inst, &inputs, axis)
        }
        TileOp::Scan { inputs, axis, .. } => {
            let one = inputs.first().is_some_and(|&v| r.func.ty(v).shape.dim(*axis) == 1);
            if one { Outcome::Becomes(inputs.as_slice().into()) } else { Outcome::Keep }
        }
        _ => Outcome::Keep,
    }
}

/// Elements that are all equal may be moved about.
fn uniform(r: R<'_, '_>, inst: Inst) -> Option<Outcome> {
    let scalar = match r.func.op(inst) {
        TileOp::ExpandDims { src, .. }
        | TileOp::Broadcast { src, .. }
        | TileOp::Reshape { src, .. }
        | TileOp::Permute { src, .. }
        | TileOp::Flip { src, .. }
        | TileOp::Split { src }
        | TileOp::Sort { src, .. }
        | TileOp::TopK { src, .. }
        | TileOp::Gather { src, .. } => splat_of(r.func, *src)?,
        TileOp::Join { a, b } | TileOp::Cat { a, b, .. } => {
            let (x, y) = (splat_of(r.func, *a)?, splat_of(r.func, *b)?);
            (x == y).then_some(x)?
        }
        _ => return None,
    };
    let loc = r.func.loc(inst);
    let results: SmallVec<[Value; 2]> = r.func.results(inst).into();
    let shapes = results.iter().map(|&v| r.func.ty(v).shape).collect::<SmallVec<[Shape; 2]>>();
    Some(Outcome::Becomes(shapes.into_iter().map(|s| splat(r, scalar, s, loc)).collect()))
}

fn edit(r: R<'_, '_>, inst: Inst, op: TileOp) -> Outcome {
    *r.func.op_mut(inst) = op;
    Outcome::Edited
}

fn expand_dims(r: R<'_, '_>, inst: Inst, src: Value, axis: usize) -> Outcome {
    let (shape, loc) = (r.func.ty(r.func.results(inst)[0]).shape, r.func.loc(inst));
    match r.func.defining_op(src) {
        // Put in behind, an axis does not move the one before it.
        Some(&TileOp::ExpandDims { src: inner, axis: first }) if axis <= first => {
            let src = r.make(TileOp::ExpandDims { src: inner, axis }, loc);
            edit(r, inst, TileOp::ExpandDims { src, axis: first + 1 })
        }
        Some(&TileOp::Reshape { src, .. }) => edit(r, inst, TileOp::Reshape { src, shape }),
        Some(&TileOp::Broadcast { src, .. }) => {
            let src = r.make(TileOp::ExpandDims { src, axis }, loc);
            edit(r, inst, TileOp::Broadcast { src, shape })
        }
        _ => Outcome::Keep,
    }
}

fn broadcast(r: R<'_, '_>, inst: Inst, src: Value, shape: Shape) -> Outcome {
    if r.func.ty(src).shape == shape {
        return Outcome::value(src);
    }
    match r.func.defining_op(src) {
        Some(&TileOp::Broadcast { src, .. }) => edit(r, inst, TileOp::Broadcast { src, shape }),
        _ => Outcome::Keep,
    }
}

fn reshape(r: R<'_, '_>, inst: Inst, src: Value, shape: Shape) -> Outcome {
    let (from, loc) = (r.func.ty(src).shape, r.func.loc(inst));
    if from == shape {
        return Outcome::value(src);
    }
    if let Some(&(TileOp::Reshape { src, .. } | TileOp::ExpandDims { src, .. })) =
        r.func.defining_op(src)
    {
        return edit(r, inst, TileOp::Reshape { src, shape });
    }
    let Some(axes) = inserted_axes(from, shape) else { return Outcome::Keep };
    let mut value = src;
    for axis in axes {
        value = r.make(TileOp::ExpandDims { src: value, axis }, loc);
    }
    Outcome::value(value)
}

/// The axes of extent 1 that make `to` of `from`, ascending. `None` if that is not all there is to it.
fn inserted_axes(from: Shape, to: Shape) -> Option<SmallVec<[usize; 4]>> {
    if from.is_scalar() {
        return None;
    }
    let mut axes = SmallVec::new();
    let mut old = from.dims().peekable();
    for (axis, dim) in to.dims().enumerate() {
        if old.peek() == Some(&dim) {
            old.next();
        } else if dim == 1 {
            axes.push(axis);
        } else {
            return None;
        }
    }
    old.next().is_none().then_some(axes)
}

fn permute(r: R<'_, '_>, inst: Inst, src: Value, order: &Axes) -> Outcome {
    let (from, shape) = (r.func.ty(src).shape, r.func.ty(r.func.results(inst)[0]).shape);
    if order.iter().enumerate().all(|(i, &axis)| i == axis as usize) {
        return Outcome::value(src);
    }
    // Axes of extent 1 may go anywhere.
    if order.iter().filter(|&&axis| from.dim(axis as usize) > 1).is_sorted() {
        return edit(r, inst, TileOp::Reshape { src, shape });
    }
    let loc = r.func.loc(inst);
    match r.func.defining_op(src) {
        Some(TileOp::Permute { src, order: first }) => {
            let order = order.iter().map(|&axis| first[axis as usize]).collect();
            let src = *src;
            edit(r, inst, TileOp::Permute { src, order })
        }
        Some(&TileOp::Broadcast { src, .. }) => {
            let src = r.make(TileOp::Permute { src, order: order.clone() }, loc);
            edit(r, inst, TileOp::Broadcast { src, shape })
        }
        _ => Outcome::Keep,
    }
}

/// The tile whose two halves these are.
fn joined_halves(r: R<'_, '_>, a: Value, b: Value) -> Option<Value> {
    let (Def::Result(x, 0), Def::Result(y, 1)) = (r.func.def(a), r.func.def(b)) else {
        return None;
    };
    match r.func.op(x) {
        &TileOp::Split { src } if x == y => Some(src),
        _ => None,
    }
}

/// Nothing is combined along an axis of one lane.
fn single_lane_reduce(r: R<'_, '_>, inst: Inst, inputs: &[Value], axis: usize) -> Outcome {
    let shape = r.func.ty(r.func.results(inst)[0]).shape;
    let one = inputs.first().is_some_and(|&v| r.func.ty(v).shape.dim(axis) == 1);
    // A reduction is the one way from a tile to a scalar.
    if !one || shape.is_scalar() {
        return Outcome::Keep;
    }
    let loc = r.func.loc(inst);
    Outcome::Becomes(
        inputs.iter().map(|&src| r.make(TileOp::Reshape { src, shape }, loc)).collect(),
    )
}
