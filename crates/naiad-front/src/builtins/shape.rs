//! Changing a tile's shape.

use crate::lower::{Args, Lower, Operand};
use crate::source::Result;
use crate::value::{Val, type_name};
use naiad_diag::Id;
use naiad_ir::tile::{Axes, TileOp};
use naiad_ir::{Shape, Value};

pub fn broadcast_to(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let v = l.tensor(a.need(0))?;
    let shape = l.shape(&a.rest, a.range)?;
    let from = l.ty(v).shape;
    let fits = from.is_scalar()
        || (from.rank() == shape.rank()
            && from.dims().zip(shape.dims()).all(|(f, t)| f == t || f == 1));
    if !fits {
        let e = l.error(
            Id::ShapeMismatch,
            format!("the shape {from} does not broadcast to {shape}"),
            a.range,
            "",
        );
        return Err(Box::new((*e).help("the rank must be the same, and only extents of 1 grow; put in axes with `[:, None]` or `tl.expand_dims`")));
    }
    Ok(Val::Tensor(l.b.broadcast_to(v, shape)?))
}

pub fn broadcast(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let (x, y) = pair(l, "broadcast", a)?;
    Ok(Val::tuple(vec![Val::Tensor(x), Val::Tensor(y)]))
}

/// Two tensors with a common shape.
fn pair(l: &mut Lower<'_>, what: &str, a: &Args) -> Result<(Value, Value)> {
    let (x, y) = (l.tensor(a.need(0))?, l.tensor(a.need(1))?);
    l.broadcast_pair(what, (x, a.need(0)), (y, a.need(1)), a.range)
}

pub fn expand_dims(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let mut v = l.tensor(a.need(0))?;
    let rank = l.ty(v).shape.rank();
    let given = a.need(1).clone();
    let axes: Vec<Operand> = match &given.val {
        Val::Tuple(t) => t.items.iter().map(|i| Operand::new(i.clone(), given.range)).collect(),
        _ => vec![given.clone()],
    };
    let mut places = Vec::new();
    for o in &axes {
        places.push(l.axis(o, rank + axes.len())?);
    }
    places.sort_unstable();
    if places.windows(2).any(|w| w[0] == w[1]) {
        return Err(l.error(Id::BadArgument, "an axis is given twice", given.range, ""));
    }
    for axis in places {
        v = l.expand_dims(v, axis, given.range)?;
    }
    Ok(Val::Tensor(v))
}

pub fn squeeze(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let v = l.tensor(a.need(0))?;
    let shape = l.ty(v).shape;
    let axis = l.axis(a.need(1), shape.rank())?;
    if shape.dim(axis) != 1 {
        let range = a.need(1).range;
        return Err(l.error(
            Id::BadShape,
            format!("axis {axis} has extent {}, not 1", shape.dim(axis)),
            range,
            "",
        ));
    }
    Ok(Val::Tensor(l.b.op(TileOp::Reshape { src: v, shape: shape.without(axis) })?))
}

pub fn reshape(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let v = l.tensor(a.need(0))?;
    let shape = l.shape(&a.rest, a.range)?;
    let from = l.ty(v).shape;
    if from.numel() != shape.numel() {
        let message = format!(
            "a tile of shape {from} has {} elements, the shape {shape} has {}",
            from.numel(),
            shape.numel()
        );
        return Err(l.error(Id::ShapeMismatch, message, a.range, ""));
    }
    Ok(Val::Tensor(reshaped(l, v, shape)?))
}

fn reshaped(l: &mut Lower<'_>, v: Value, shape: Shape) -> Result<Value> {
    if l.ty(v).shape == shape {
        return Ok(v);
    }
    Ok(l.b.op(TileOp::Reshape { src: v, shape })?)
}

pub fn ravel(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let v = l.tensor(a.need(0))?;
    Ok(Val::Tensor(flat(l, v)?))
}

/// The elements in one axis.
pub(crate) fn flat(l: &mut Lower<'_>, v: Value) -> Result<Value> {
    let numel = l.ty(v).shape.numel();
    let shape = Shape::new(&[numel as i64]).unwrap_or(Shape::SCALAR);
    if l.ty(v).is_scalar() {
        return Ok(l.b.op(TileOp::Splat { src: v, shape })?);
    }
    reshaped(l, v, shape)
}

pub fn trans(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    if !a.rest.is_empty() {
        return permute(l, a);
    }
    let v = l.tensor(a.need(0))?;
    let rank = l.ty(v).shape.rank();
    if rank < 2 {
        let what = type_name(l.ty(v));
        return Err(l.error(
            Id::BadShape,
            format!("`tl.trans` wants at least two axes, not {what}"),
            a.range,
            "",
        ));
    }
    let mut order: Axes = (0..rank as u32).collect();
    order.swap(rank - 1, rank - 2);
    Ok(Val::Tensor(l.b.op(TileOp::Permute { src: v, order })?))
}

pub fn permute(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let v = l.tensor(a.need(0))?;
    let rank = l.ty(v).shape.rank();
    let dims = l.dims(&a.rest, "an axis")?;
    let order: Axes =
        dims.iter().map(|&d| if d < 0 { (d + rank as i64) as u32 } else { d as u32 }).collect();
    let mut sorted = order.to_vec();
    sorted.sort_unstable();
    if sorted != (0..rank as u32).collect::<Vec<_>>() {
        let message = format!("{dims:?} is no permutation of the {rank} axes");
        return Err(l.error(Id::BadArgument, message, a.range, ""));
    }
    Ok(Val::Tensor(l.b.op(TileOp::Permute { src: v, order })?))
}

pub fn join(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    Ok(Val::Tensor(joined(l, "join", a)?))
}

fn joined(l: &mut Lower<'_>, what: &str, a: &Args) -> Result<Value> {
    let (x, y) = pair(l, what, a)?;
    same_elem(l, what, a, x, y)?;
    let shape = l.ty(x).shape;
    if let Err(e) = shape.with_inserted(shape.rank(), 2) {
        return Err(l.bad_shape(e, a.range));
    }
    Ok(l.b.op(TileOp::Join { a: x, b: y })?)
}

fn same_elem(l: &mut Lower<'_>, what: &str, a: &Args, x: Value, y: Value) -> Result<()> {
    let (tx, ty) = (l.ty(x).elem, l.ty(y).elem);
    if tx == ty {
        return Ok(());
    }
    let message = format!("`tl.{what}` wants two tiles of one type, not {tx} and {ty}");
    Err(l.error(Id::TypeMismatch, message, a.range, ""))
}

pub fn split(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let v = l.tensor(a.need(0))?;
    let shape = l.ty(v).shape;
    if shape.rank() == 0 || shape.dim(shape.rank() - 1) != 2 {
        let e = l.error(
            Id::BadShape,
            format!("`tl.split` wants a last axis of extent 2; the shape is {shape}"),
            a.range,
            "",
        );
        return Err(Box::new((*e).help("`tl.reshape` the tile so that the two parts lie along a last axis of 2, after `tl.permute` if need be")));
    }
    let parts = l.b.ops(TileOp::Split { src: v })?;
    Ok(Val::tuple(parts.into_iter().map(Val::Tensor).collect()))
}

pub fn cat(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let (x, y) = (l.tensor(a.need(0))?, l.tensor(a.need(1))?);
    same_elem(l, "cat", a, x, y)?;
    let (sx, sy) = (l.ty(x).shape, l.ty(y).shape);
    if sx != sy || sx.is_scalar() {
        return Err(l.error(
            Id::ShapeMismatch,
            format!("`tl.cat` wants two tiles of one shape, not {sx} and {sy}"),
            a.range,
            "",
        ));
    }
    let axis = match a.opt(3) {
        Some(o) => l.axis(&o.clone(), sx.rank())?,
        None => 0,
    };
    if let Err(e) = sx.with_dim(axis, 2 * sx.dim(axis)) {
        return Err(l.bad_shape(e, a.range));
    }
    Ok(Val::Tensor(l.b.op(TileOp::Cat { a: x, b: y, axis })?))
}

/// `a0 b0 a1 b1 …` along the last axis.
pub fn interleave(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let stacked = joined(l, "interleave", a)?;
    let shape = l.ty(stacked).shape;
    if shape.rank() < 2 {
        return Ok(Val::Tensor(stacked));
    }
    let rank = shape.rank();
    let merged = shape.without(rank - 1).with_dim(rank - 2, 2 * shape.dim(rank - 2));
    let merged = merged.map_err(|e| l.bad_shape(e, a.range))?;
    Ok(Val::Tensor(l.b.op(TileOp::Reshape { src: stacked, shape: merged })?))
}

pub fn item(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let v = l.tensor(a.need(0))?;
    let shape = l.ty(v).shape;
    if shape.numel() != 1 {
        return Err(l.error(
            Id::BadShape,
            format!("`.item()` wants one element; the shape is {shape}"),
            a.range,
            "",
        ));
    }
    Ok(Val::Tensor(reshaped(l, v, Shape::SCALAR)?))
}
