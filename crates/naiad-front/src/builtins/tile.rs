//! Functions of whole tiles: orders, moves by index, counts, and functions called on each element.

use super::reduce::{elements, region_over};
use crate::lower::{Args, CallArgs, Lower, Operand};
use crate::source::Result;
use crate::value::{Val, type_name};
use naiad_diag::Id;
use naiad_ir::tile::{Axes, TileOp, broadcast_shapes};
use naiad_ir::{Scalar, Shape, Type, Value};

/// A tile of numbers with at least one axis, and the axis that `o` names or the last.
fn tile_and_axis(
    l: &mut Lower<'_>,
    a: &Args,
    o: Option<&Operand>,
) -> Result<(Value, Scalar, usize)> {
    let (x, s) = l.number_tile(a.need(0))?;
    let rank = l.ty(x).shape.rank();
    if rank == 0 {
        let name = a.entry.display_name();
        let range = a.need(0).range;
        let message = format!("`{name}` wants a tile, not a scalar");
        return Err(l.error(Id::BadShape, message, range, ""));
    }
    let axis = match o {
        Some(o) => l.axis(o, rank)?,
        None => rank - 1,
    };
    Ok((x, s, axis))
}

/// `f` on a tile whose axis was brought to the end, and is brought back after.
fn along_last(
    l: &mut Lower<'_>,
    x: Value,
    axis: usize,
    f: impl FnOnce(&mut Lower<'_>, Value) -> Result<Value>,
) -> Result<Value> {
    let rank = l.ty(x).shape.rank();
    if axis == rank - 1 {
        return f(l, x);
    }
    let mut order: Axes = (0..rank as u32).collect();
    order.swap(axis, rank - 1);
    let turned = l.b.op(TileOp::Permute { src: x, order: order.clone() })?;
    let result = f(l, turned)?;
    Ok(l.b.op(TileOp::Permute { src: result, order })?)
}

pub fn flip(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let v = l.tensor(a.need(0))?;
    let rank = l.ty(v).shape.rank();
    if rank == 0 {
        return Ok(Val::Tensor(v));
    }
    let axis = match a.opt(1) {
        Some(o) => l.axis(o, rank)?,
        None => rank - 1,
    };
    Ok(Val::Tensor(l.b.op(TileOp::Flip { src: v, axis })?))
}

pub fn sort(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let (x, _, axis) = tile_and_axis(l, a, a.opt(1))?;
    let descending = l.const_bool(a.opt(2), false)?;
    let sorted = along_last(l, x, axis, |l, src| Ok(l.b.op(TileOp::Sort { src, descending })?))?;
    Ok(Val::Tensor(sorted))
}

/// As in Triton a true selection is computed in 32 bits, and stays so.
pub fn topk(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let (x, _, axis) = tile_and_axis(l, a, a.opt(2))?;
    let k = l.const_int(a.need(1), "the number of elements")?;
    let descending = l.const_bool(a.opt(3), true)?;
    let n = l.ty(x).shape.dim(axis);
    let fits = usize::try_from(k).is_ok_and(|k| k.is_power_of_two() && k <= n);
    if !fits {
        let range = a.need(1).range;
        let message =
            format!("`k` must be a power of 2 of at most {n}, the axis' extent; {k} is not");
        return Err(l.error(Id::BadShape, message, range, ""));
    }
    let x = if (k as usize) < n { super::reduce::promoted_extremum(l, a.need(0))? } else { x };
    let top = along_last(l, x, axis, |l, src| {
        Ok(l.b.op(TileOp::TopK { src, k: k as i64, descending })?)
    })?;
    Ok(Val::Tensor(top))
}

pub fn gather(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let src = l.tensor(a.need(0))?;
    let (index, s) = l.number_tile(a.need(1))?;
    if !s.is_int() {
        let (what, range) = (type_name(l.ty(index)), a.need(1).range);
        let message = format!("the indices of `tl.gather` must be integers, not {what}");
        return Err(l.error(Id::TypeMismatch, message, range, ""));
    }
    let (from, at) = (l.ty(src).shape, l.ty(index).shape);
    if from.rank() != at.rank() || from.is_scalar() {
        let message = format!(
            "`tl.gather` wants a source and indices of one rank of at least 1, not shapes {from} and {at}"
        );
        return Err(l.error(Id::ShapeMismatch, message, a.range, ""));
    }
    let axis = l.axis(a.need(2), from.rank())?;
    if let Some(d) = (0..from.rank()).find(|&d| d != axis && from.dim(d) != at.dim(d)) {
        let (xo, yo) = (a.need(0).clone(), a.need(1).clone());
        let e = l.shape_mismatch("gather", (&xo, from), (&yo, at), d, a.range);
        return Err(Box::new(
            (*e).help(format!("the extents may differ along axis {axis} only, which is gathered")),
        ));
    }
    Ok(Val::Tensor(l.b.op(TileOp::Gather { src, index, axis })?))
}

pub fn histogram(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let (src, s) = l.number_tile(a.need(0))?;
    let shape = l.ty(src).shape;
    if !s.is_int() || s.is_bool() || shape.rank() != 1 {
        let (what, range) = (type_name(l.ty(src)), a.need(0).range);
        let message = format!("`tl.histogram` wants a tile of integers with one axis, not {what}");
        return Err(l.error(Id::TypeMismatch, message, range, ""));
    }
    let bins = l.const_int(a.need(1), "the number of bins")?;
    let fits = i64::try_from(bins).ok().filter(|&b| Shape::new(&[b]).is_ok());
    let Some(bins) = fits else {
        let range = a.need(1).range;
        let message = format!(
            "the number of bins must be a power of 2 and an extent of a tile, {bins} is not"
        );
        return Err(l.error(Id::BadShape, message, range, ""));
    };
    let mask = match a.opt(2) {
        None => None,
        Some(o) => {
            let v = l.tensor(o)?;
            let v = l.nonzero(v)?;
            let own = l.ty(v).shape;
            if broadcast_shapes(own, shape) != Ok(shape) {
                let (xo, mo) = (a.need(0).clone(), o.clone());
                return Err(l.shape_mismatch("histogram", (&xo, shape), (&mo, own), 0, a.range));
            }
            Some(l.b.broadcast_to(v, shape)?)
        }
    };
    Ok(Val::Tensor(l.b.op(TileOp::Histogram { src, mask, bins })?))
}

/// A scalar jit function on every element, or on every `pack` consecutive ones: it gets the `pack`
/// elements of the first tile, then those of the second, and returns `pack` elements of each result.
pub fn map_elementwise(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let f = a.need(0).clone();
    let pack = match a.opt(2) {
        Some(o) => l.const_int(o, "`pack`")?,
        None => 1,
    };
    let mut inputs = Vec::new();
    let mut shape = Shape::SCALAR;
    for o in &a.rest {
        let v = l.number_tile(o)?.0;
        let own = l.ty(v).shape;
        shape = match broadcast_shapes(shape, own) {
            Ok(shape) => shape,
            Err(d) => {
                let first = a.rest[0].clone();
                return Err(l.shape_mismatch(
                    "map_elementwise",
                    (&first, shape),
                    (o, own),
                    d,
                    a.range,
                ));
            }
        };
        inputs.push(v);
    }
    for v in &mut inputs {
        *v = l.b.broadcast_to(*v, shape)?;
    }
    let pack = usize::try_from(pack).ok().filter(|&p| p > 0 && shape.numel().is_multiple_of(p));
    let Some(pack) = pack.filter(|_| !inputs.is_empty()) else {
        let message = if inputs.is_empty() {
            "`tl.map_elementwise` wants at least one tile".to_string()
        } else {
            format!("`pack` must divide the {} elements of a tile", shape.numel())
        };
        return Err(l.error(Id::BadArgument, message, a.range, ""));
    };
    let params: Vec<Type> = inputs
        .iter()
        .flat_map(|&v| std::iter::repeat_n(l.ty(v).with_shape(Shape::SCALAR), pack))
        .collect();
    let mut single = false;
    let body = region_over(l, &params, |l, params| {
        let positional = params.iter().map(|&p| Operand::new(Val::Tensor(p), a.range)).collect();
        let args = CallArgs { positional, keywords: Vec::new(), range: a.range };
        let result = l.call_value(&f.val, args, f.range)?;
        single = !matches!(result, Val::Tuple(_));
        let values = elements(l, result, f.range)?;
        if values.is_empty() || !values.len().is_multiple_of(pack) {
            let message = format!(
                "the function returns {} values; {pack} for each result are wanted",
                values.len()
            );
            return Err(l.error(Id::BadReturn, message, f.range, ""));
        }
        if let Some(&v) = values.iter().find(|&&v| !l.ty(v).is_scalar() || l.ty(v).is_pointer()) {
            let what = type_name(l.ty(v));
            let message = format!("the function returns {what}; single numbers are wanted");
            return Err(l.error(Id::BadReturn, message, f.range, ""));
        }
        for group in values.chunks(pack) {
            let odd = group.iter().find(|&&v| l.ty(v) != l.ty(group[0]));
            if let Some(&odd) = odd {
                let (x, y) = (type_name(l.ty(group[0])), type_name(l.ty(odd)));
                let message = format!("the elements of one result have the types {x} and {y}");
                return Err(l.error(Id::BadReturn, message, f.range, ""));
            }
        }
        Ok(values)
    })?;
    let results = l.b.ops(TileOp::Map { inputs, pack, body })?;
    Ok(match results.as_slice() {
        [one] if single || pack > 1 => Val::Tensor(*one),
        _ => Val::tuple(results.into_iter().map(Val::Tensor).collect()),
    })
}
