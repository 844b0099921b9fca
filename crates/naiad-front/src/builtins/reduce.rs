//! Reductions and scans.

use crate::lower::{Args, Lower, Operand};
use crate::source::Result;
use crate::value::{Val, type_name};
use naiad_diag::{Diagnostic, Id};
use naiad_ir::scalar::{BinaryFn, Predicate, UnaryFn};
use naiad_ir::tile::TileOp;
use naiad_ir::{Block, Elem, OpInfo, Scalar, Shape, Type, Value};
use ruff_text_size::TextRange;

/// The axis that a reduction runs along, after flattening where none is given, and the shape that
/// `keep_dims` wants.
struct Along {
    axis: usize,
    kept: Option<Shape>,
}

fn along(
    l: &mut Lower<'_>,
    inputs: &mut [Value],
    axis: Option<&Operand>,
    keep_dims: Option<&Operand>,
    a: &Args,
) -> Result<Along> {
    let keep = l.const_bool(keep_dims, false)?;
    let Some(&first) = inputs.first() else { return Ok(Along { axis: 0, kept: None }) };
    let shape = l.ty(first).shape;
    if shape.is_scalar() {
        let name = a.entry.display_name();
        return Err(l.error(
            Id::BadShape,
            format!("`{name}` wants a tile, not a scalar"),
            a.range,
            "",
        ));
    }
    match axis {
        Some(o) => {
            let axis = l.axis(&o.clone(), shape.rank())?;
            let kept = if keep { shape.with_dim(axis, 1).ok() } else { None };
            Ok(Along { axis, kept })
        }
        None => {
            for v in inputs {
                *v = super::shape::flat(l, *v)?;
            }
            let kept = if keep { Shape::new(&vec![1; shape.rank()]).ok() } else { None };
            Ok(Along { axis: 0, kept })
        }
    }
}

/// A region over scalars `a1..ak, b1..bk`.
fn region(
    l: &mut Lower<'_>,
    inputs: &[Value],
    f: impl FnOnce(&mut Lower<'_>, &[Value]) -> Result<Vec<Value>>,
) -> Result<Block> {
    let one = inputs.iter().map(|&v| l.ty(v).with_shape(Shape::SCALAR));
    let types: Vec<Type> = one.clone().chain(one).collect();
    region_over(l, &types, f)
}

/// A region with parameters of these types that yields what `f` makes of them.
pub(super) fn region_over(
    l: &mut Lower<'_>,
    types: &[Type],
    f: impl FnOnce(&mut Lower<'_>, &[Value]) -> Result<Vec<Value>>,
) -> Result<Block> {
    let body = l.b.func.new_block();
    let params: Vec<Value> = types.iter().map(|&ty| l.b.func.add_block_param(body, ty)).collect();
    let back = l.b.enter(body);
    l.regions += 1;
    let values = f(l, &params)?;
    l.regions -= 1;
    l.b.ops(TileOp::Yield { values })?;
    l.b.enter(back);
    let func = &l.b.func;
    let mut other = None;
    func.walk_block(body, &mut |inst| {
        if !func.op(inst).fits_in_region() {
            other = other.or(Some(inst));
        }
    });
    match other {
        None => Ok(body),
        Some(inst) => {
            let message =
                format!("`{}` cannot stand in a function of elements", func.op(inst).name());
            let d = Diagnostic::new(Id::UnsupportedPython, message);
            let d = d.primary_at(&func.places, func.loc(inst), "");
            Err(Box::new(
                d.help("such a function computes on single elements and does nothing else"),
            ))
        }
    }
}

fn reduced(
    l: &mut Lower<'_>,
    inputs: Vec<Value>,
    along: &Along,
    f: impl FnOnce(&mut Lower<'_>, &[Value]) -> Result<Vec<Value>>,
) -> Result<Vec<Value>> {
    let body = region(l, &inputs, f)?;
    let mut out = l.b.ops(TileOp::Reduce { inputs, axis: along.axis, body })?;
    if let Some(shape) = along.kept {
        for v in &mut out {
            *v = if l.ty(*v).is_scalar() {
                l.b.op(TileOp::Splat { src: *v, shape })?
            } else {
                l.b.op(TileOp::ExpandDims { src: *v, axis: along.axis })?
            };
        }
    }
    Ok(out)
}

/// A reduction of one tile by one binary function.
fn by(
    l: &mut Lower<'_>,
    x: Value,
    axis: Option<&Operand>,
    keep: Option<&Operand>,
    a: &Args,
    f: BinaryFn,
) -> Result<Val> {
    let mut inputs = vec![x];
    let along = along(l, &mut inputs, axis, keep, a)?;
    let out = reduced(l, inputs, &along, |l, p| Ok(vec![l.b.binary(f, p[0], p[1])?]))?;
    Ok(Val::Tensor(out[0]))
}

/// Sums and products of integers narrower than 32 bits are taken in 32 bits; floats keep their type.
fn widened(l: &mut Lower<'_>, o: &Operand, dtype: Option<&Operand>) -> Result<Value> {
    let (x, s) = l.number_tile(o)?;
    let to = match dtype {
        Some(o) => l.scalar_type(&o.clone())?,
        None if s.is_int() && s.bits() < 32 => {
            if s.is_signed() {
                Scalar::I32
            } else {
                Scalar::U32
            }
        }
        None => s,
    };
    Ok(l.b.cast(x, to)?)
}

pub fn sum(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let x = widened(l, a.need(0), a.opt(3))?;
    by(l, x, a.opt(1), a.opt(2), a, BinaryFn::Add)
}

/// Narrow floats are compared in fp32, narrow integers in int32, and stay so.
pub(super) fn promoted_extremum(l: &mut Lower<'_>, o: &Operand) -> Result<Value> {
    let (x, s) = l.number_tile(o)?;
    let to = match s.is_float() {
        true if s.bits() < 32 => Scalar::F32,
        false if s.bits() < 32 => Scalar::I32,
        _ => s,
    };
    Ok(l.b.cast(x, to)?)
}

fn extremum(l: &mut Lower<'_>, a: &Args, f: BinaryFn, better: Predicate) -> Result<Val> {
    if l.const_bool(a.opt(2), false)? {
        let keep = a.opt(4).cloned();
        let (value, index) = with_index(l, a, keep.as_ref(), better)?;
        return Ok(Val::tuple(vec![Val::Tensor(value), Val::Tensor(index)]));
    }
    let x = promoted_extremum(l, a.need(0))?;
    by(l, x, a.opt(1), a.opt(4), a, f)
}

pub fn max(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    extremum(l, a, BinaryFn::Max, Predicate::Gt)
}

pub fn min(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    extremum(l, a, BinaryFn::Min, Predicate::Lt)
}

pub fn argmax(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let keep = a.opt(3).cloned();
    Ok(Val::Tensor(with_index(l, a, keep.as_ref(), Predicate::Gt)?.1))
}

pub fn argmin(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let keep = a.opt(3).cloned();
    Ok(Val::Tensor(with_index(l, a, keep.as_ref(), Predicate::Lt)?.1))
}

/// The best value and its index; ties go to the lower index, and a NaN counts as missing.
fn with_index(
    l: &mut Lower<'_>,
    a: &Args,
    keep: Option<&Operand>,
    better: Predicate,
) -> Result<(Value, Value)> {
    let (x, s) = l.number_tile(a.need(0))?;
    let Some(axis_operand) = a.opt(1) else {
        let name = a.entry.display_name();
        return Err(l.error(
            Id::BadCall,
            format!("`{name}` wants an axis where indices are asked for"),
            a.range,
            "",
        ));
    };
    let mut inputs = vec![x];
    let along = along(l, &mut inputs, Some(axis_operand), keep, a)?;
    let shape = l.ty(x).shape;
    let mut index = l.b.op(TileOp::Arange { start: 0, end: shape.dim(along.axis) as i64 })?;
    for _ in along.axis + 1..shape.rank() {
        let rank = l.ty(index).shape.rank();
        index = l.b.op(TileOp::ExpandDims { src: index, axis: rank })?;
    }
    inputs.push(l.b.broadcast_to(index, shape)?);
    let out = reduced(l, inputs, &along, |l, p| {
        let [v1, i1, v2, i2] = [p[0], p[1], p[2], p[3]];
        let wins = l.b.compare(better, v1, v2)?;
        let ties = l.b.compare(Predicate::Eq, v1, v2)?;
        let lower = l.b.compare(Predicate::Lt, i1, i2)?;
        let tied = l.b.binary(BinaryFn::And, ties, lower)?;
        let mut left = l.b.binary(BinaryFn::Or, wins, tied)?;
        if s.is_float() {
            let missing = l.b.compare(Predicate::Ne, v2, v2)?;
            left = l.b.binary(BinaryFn::Or, left, missing)?;
        }
        Ok(vec![l.b.select(left, v1, v2)?, l.b.select(left, i1, i2)?])
    })?;
    Ok((out[0], out[1]))
}

fn of_integers(l: &mut Lower<'_>, a: &Args, f: BinaryFn) -> Result<Val> {
    let (x, s) = l.number_tile(a.need(0))?;
    if !s.is_int() {
        let (name, range) = (a.entry.display_name(), a.need(0).range);
        return Err(l.error(
            Id::TypeMismatch,
            format!("`{name}` wants integers, not {}", s.triton_name()),
            range,
            "",
        ));
    }
    by(l, x, a.opt(1), a.opt(2), a, f)
}

pub fn xor_sum(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    of_integers(l, a, BinaryFn::Xor)
}

pub fn reduce_or(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    of_integers(l, a, BinaryFn::Or)
}

/// The inputs of a combination: one tile or a tuple of tiles of one shape.
fn inputs(l: &mut Lower<'_>, a: &Args) -> Result<(Vec<Value>, bool)> {
    let o = a.need(0);
    let Val::Tuple(t) = &o.val else { return Ok((vec![l.number_tile(o)?.0], false)) };
    let mut out = Vec::new();
    for item in &t.items {
        out.push(l.number_tile(&Operand::new(item.clone(), o.range))?.0);
    }
    let shapes: Vec<Shape> = out.iter().map(|&v| l.ty(v).shape).collect();
    if let Some(&other) = shapes.iter().find(|&&s| s != shapes[0]) {
        let (range, first) = (o.range, shapes[0]);
        return Err(l.error(
            Id::ShapeMismatch,
            format!("the tiles have the shapes {first} and {other}; one shape is wanted"),
            range,
            "",
        ));
    }
    if out.is_empty() {
        let range = o.range;
        return Err(l.error(Id::BadArgument, "at least one tile is wanted", range, ""));
    }
    Ok((out, true))
}

/// Calls the user's combine function on scalars and takes its results in the inputs' types.
fn combine(l: &mut Lower<'_>, f: &Operand, params: &[Value], a: &Args) -> Result<Vec<Value>> {
    let k = params.len() / 2;
    let positional = params.iter().map(|&p| Operand::new(Val::Tensor(p), a.range)).collect();
    let args = crate::lower::CallArgs { positional, keywords: Vec::new(), range: a.range };
    let result = l.call_value(&f.val, args, f.range)?;
    let values = elements(l, result, f.range)?;
    if values.len() != k {
        return Err(l.error(
            Id::BadReturn,
            format!("the combine function returns {} values, {k} are wanted", values.len()),
            f.range,
            "",
        ));
    }
    let mut out = Vec::new();
    for (v, &param) in values.into_iter().zip(params) {
        let (have, want) = (l.ty(v), l.ty(param));
        match (have.elem, want.elem) {
            (Elem::Scalar(_), Elem::Scalar(to)) if have.is_scalar() => out.push(l.b.cast(v, to)?),
            _ => {
                let (have, want) = (type_name(have), type_name(want));
                return Err(l.error(
                    Id::BadReturn,
                    format!("the combine function returns {have} where {want} is wanted"),
                    f.range,
                    "",
                ));
            }
        }
    }
    Ok(out)
}

/// What a function of elements returned, as values of the kernel.
pub(super) fn elements(l: &mut Lower<'_>, result: Val, range: TextRange) -> Result<Vec<Value>> {
    let items = match result {
        Val::Tuple(t) => t.items.clone(),
        one => vec![one],
    };
    items.into_iter().map(|item| l.tensor(&Operand::new(item, range))).collect()
}

fn one_or_tuple(values: Vec<Value>, tuple: bool) -> Val {
    match values.as_slice() {
        [one] if !tuple => Val::Tensor(*one),
        _ => Val::tuple(values.into_iter().map(Val::Tensor).collect()),
    }
}

pub fn reduce(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let (mut tiles, tuple) = inputs(l, a)?;
    let along = along(l, &mut tiles, a.opt(1), a.opt(3), a)?;
    let f = a.need(2).clone();
    let out = reduced(l, tiles, &along, |l, p| combine(l, &f, p, a))?;
    Ok(one_or_tuple(out, tuple))
}

pub fn associative_scan(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let (tiles, tuple) = inputs(l, a)?;
    let reverse = l.const_bool(a.opt(3), false)?;
    let rank = l.ty(tiles[0]).shape.rank();
    let axis = l.axis(a.need(1), rank)?;
    let f = a.need(2).clone();
    let body = region(l, &tiles, |l, p| combine(l, &f, p, a))?;
    let out = l.b.ops(TileOp::Scan { inputs: tiles, axis, reverse, body })?;
    Ok(one_or_tuple(out, tuple))
}

fn running(l: &mut Lower<'_>, a: &Args, f: BinaryFn) -> Result<Val> {
    let x = widened(l, a.need(0), a.opt(3))?;
    let rank = l.ty(x).shape.rank();
    if rank == 0 {
        let name = a.entry.display_name();
        return Err(l.error(
            Id::BadShape,
            format!("`{name}` wants a tile, not a scalar"),
            a.range,
            "",
        ));
    }
    let axis = match a.opt(1) {
        Some(o) => l.axis(&o.clone(), rank)?,
        None => 0,
    };
    let reverse = l.const_bool(a.opt(2), false)?;
    // bfloat16 has so few digits that a sum which is rounded to it at each step soon stands still:
    // it is rounded once.
    let elem = l.ty(x).elem.scalar();
    let wide = if elem == Some(Scalar::BF16) { l.b.cast(x, Scalar::F32)? } else { x };
    let body = region(l, &[wide], |l, p| Ok(vec![l.b.binary(f, p[0], p[1])?]))?;
    let out = l.b.op(TileOp::Scan { inputs: vec![wide], axis, reverse, body })?;
    Ok(Val::Tensor(if wide == x { out } else { l.b.cast(out, Scalar::BF16)? }))
}

pub fn cumsum(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    running(l, a, BinaryFn::Add)
}

pub fn cumprod(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    running(l, a, BinaryFn::Mul)
}

/// The maximum is subtracted first; `dim` is 0 unless given.
pub fn softmax(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let x = promoted_extremum(l, a.need(0))?;
    let mut tiles = vec![x];
    let shape = l.ty(x).shape;
    let axis = match a.opt(1) {
        Some(o) => o.clone(),
        None => Operand::new(Val::int(0), a.range),
    };
    let keep = Operand::new(Val::bool(true), a.range);
    let along = along(l, &mut tiles, Some(&axis), Some(&keep), a)?;
    let s = l.ty(x).elem.scalar().unwrap_or(Scalar::F32);
    if !s.is_float() {
        let range = a.need(0).range;
        return Err(l.error(
            Id::TypeMismatch,
            format!("`tl.softmax` wants floats, not {}", s.triton_name()),
            range,
            "",
        ));
    }
    let top =
        reduced(l, tiles, &along, |l, p| Ok(vec![l.b.binary(BinaryFn::Max, p[0], p[1])?]))?[0];
    let top = l.b.broadcast_to(top, shape)?;
    let below = l.b.binary(BinaryFn::Sub, x, top)?;
    let e = l.b.unary(UnaryFn::Exp, below)?;
    let total =
        reduced(l, vec![e], &along, |l, p| Ok(vec![l.b.binary(BinaryFn::Add, p[0], p[1])?]))?[0];
    let total = l.b.broadcast_to(total, shape)?;
    Ok(Val::Tensor(l.b.binary(BinaryFn::Div, e, total)?))
}
