//! Result types of Tile IR's ops, and the rules on operands that give them.
//!
//! Each function is named by a row of the table and gets the op's fields. An error here is an error
//! of whoever built the op: front ends check first, with better words.

use super::ops::{
    Axes, Constant, HintKind, LoopHints, MachineFact, MemHints, Precision, Scalars, Scope, Sem,
    Text, Texts,
};
use super::{AtomicOp, Tile, TileOp};
use crate::entities::{Block, Value};
use crate::function::Function;
use crate::scalar::{BinaryFn, Predicate, Rounding, TernaryFn, UnaryFn};
use crate::types::{Elem, Scalar, Shape, Type};
use smallvec::{SmallVec, smallvec};

type F = Function<Tile>;
type Infer = Result<SmallVec<[Type; 1]>, String>;

fn one(ty: Type) -> Infer {
    Ok(smallvec![ty])
}

fn check(ok: bool, message: impl FnOnce() -> String) -> Result<(), String> {
    if ok { Ok(()) } else { Err(message()) }
}

fn same_type(f: &F, a: Value, b: Value) -> Result<Type, String> {
    let (ta, tb) = (f.ty(a), f.ty(b));
    check(ta == tb, || format!("operand types differ: {ta} and {tb}"))?;
    Ok(ta)
}

fn number(ty: Type) -> Result<Scalar, String> {
    ty.elem.scalar().ok_or_else(|| format!("wants numbers, not {ty}"))
}

fn pointee(ty: Type) -> Result<Scalar, String> {
    ty.elem.pointer().map(|p| p.pointee).ok_or_else(|| format!("wants pointers, not {ty}"))
}

fn shape_of(dims: &[i64]) -> Result<Shape, String> {
    Shape::new(dims).map_err(|e| format!("no shape: {e:?}"))
}

pub(super) fn nothing(_: &F) -> Infer {
    Ok(smallvec![])
}

pub(super) fn many(_: &F, _: &[Value]) -> Infer {
    Ok(smallvec![])
}

pub(super) fn constant(_: &F, value: &Constant) -> Infer {
    one(Type::scalar(value.ty))
}

pub(super) fn grid_axis(_: &F, axis: &u32) -> Infer {
    check(*axis < 3, || format!("a grid has no axis {axis}"))?;
    one(Type::I32)
}

pub(super) fn arange(_: &F, start: &i64, end: &i64) -> Infer {
    check(*start >= 0 && start < end && *end <= 1 << 32, || format!("bad range {start}..{end}"))?;
    one(Type::tile(Scalar::I32, shape_of(&[end - start])?))
}

pub(super) fn splat(f: &F, src: &Value, shape: &Shape) -> Infer {
    let ty = f.ty(*src);
    check(ty.is_scalar(), || format!("wants a scalar, not {ty}"))?;
    one(ty.with_shape(*shape))
}

pub(super) fn expand_dims(f: &F, src: &Value, axis: &usize) -> Infer {
    let ty = f.ty(*src);
    check(*axis <= ty.shape.rank(), || format!("no axis {axis} in a tile one wider than {ty}"))?;
    let shape = ty.shape.with_inserted(*axis, 1).map_err(|e| format!("no shape: {e:?}"))?;
    one(ty.with_shape(shape))
}

pub(super) fn broadcast(f: &F, src: &Value, shape: &Shape) -> Infer {
    let ty = f.ty(*src);
    let fits = ty.shape.rank() == shape.rank()
        && ty.shape.dims().zip(shape.dims()).all(|(from, to)| from == to || from == 1);
    check(fits, || format!("{} does not broadcast to {shape}", ty.shape))?;
    one(ty.with_shape(*shape))
}

pub(super) fn reshape(f: &F, src: &Value, shape: &Shape) -> Infer {
    let ty = f.ty(*src);
    check(ty.shape.numel() == shape.numel(), || {
        format!("{} has not the elements of {shape}", ty.shape)
    })?;
    one(ty.with_shape(*shape))
}

pub(super) fn permute(f: &F, src: &Value, order: &Axes) -> Infer {
    let ty = f.ty(*src);
    let mut seen: Vec<u32> = order.to_vec();
    seen.sort_unstable();
    let all: Vec<u32> = (0..ty.shape.rank() as u32).collect();
    check(seen == all, || format!("{order:?} is no permutation of the axes of {ty}"))?;
    let order: Vec<usize> = order.iter().map(|&a| a as usize).collect();
    one(ty.with_shape(ty.shape.permuted(&order)))
}

pub(super) fn join(f: &F, a: &Value, b: &Value) -> Infer {
    let ty = same_type(f, *a, *b)?;
    let shape =
        ty.shape.with_inserted(ty.shape.rank(), 2).map_err(|e| format!("no shape: {e:?}"))?;
    one(ty.with_shape(shape))
}

pub(super) fn split(f: &F, src: &Value) -> Infer {
    let ty = f.ty(*src);
    let rank = ty.shape.rank();
    check(rank > 0 && ty.shape.dim(rank - 1) == 2, || format!("the last axis of {ty} is not 2"))?;
    let half = ty.with_shape(ty.shape.without(rank - 1));
    Ok(smallvec![half, half])
}

pub(super) fn cat(f: &F, a: &Value, b: &Value, axis: &usize) -> Infer {
    let ty = same_type(f, *a, *b)?;
    check(*axis < ty.shape.rank(), || format!("{ty} has no axis {axis}"))?;
    let shape = ty.shape.with_dim(*axis, 2 * ty.shape.dim(*axis));
    one(ty.with_shape(shape.map_err(|e| format!("no shape: {e:?}"))?))
}

pub(super) fn flip(f: &F, src: &Value, axis: &usize) -> Infer {
    let ty = f.ty(*src);
    check(*axis < ty.shape.rank(), || format!("{ty} has no axis {axis}"))?;
    one(ty)
}

fn defined(name: &str, accepts: impl Fn(Scalar) -> bool, ty: Type) -> Result<(), String> {
    let scalar = number(ty)?;
    check(accepts(scalar), || format!("`{name}` is not defined for {scalar}"))
}

pub(super) fn unary(func: &F, f: &UnaryFn, x: &Value) -> Infer {
    let ty = func.ty(*x);
    defined(f.name(), |s| f.accepts(s), ty)?;
    one(ty)
}

pub(super) fn binary(func: &F, f: &BinaryFn, a: &Value, b: &Value) -> Infer {
    let ty = same_type(func, *a, *b)?;
    defined(f.name(), |s| f.accepts(s), ty)?;
    one(ty)
}

pub(super) fn ternary(func: &F, f: &TernaryFn, a: &Value, b: &Value, c: &Value) -> Infer {
    let ty = same_type(func, *a, *b)?;
    same_type(func, *a, *c)?;
    defined(f.name(), |s| f.accepts(s), ty)?;
    one(ty)
}

pub(super) fn compare(f: &F, _: &Predicate, a: &Value, b: &Value) -> Infer {
    let ty = same_type(f, *a, *b)?;
    number(ty)?;
    one(ty.with_elem(Scalar::I1))
}

fn bool_like(f: &F, cond: Value, shape: Shape) -> Result<(), String> {
    let want = Type::tile(Scalar::I1, shape);
    check(f.ty(cond) == want, || format!("wants {want}, not {}", f.ty(cond)))
}

pub(super) fn select(f: &F, cond: &Value, yes: &Value, no: &Value) -> Infer {
    let ty = same_type(f, *yes, *no)?;
    bool_like(f, *cond, ty.shape)?;
    one(ty)
}

pub(super) fn cast(f: &F, src: &Value, to: &Scalar, _: &Rounding) -> Infer {
    let ty = f.ty(*src);
    number(ty)?;
    one(ty.with_elem(*to))
}

pub(super) fn bitcast(f: &F, src: &Value, to: &Elem) -> Infer {
    let ty = f.ty(*src);
    let bits = |e: Elem| e.scalar().map_or(64, |s| s.bits());
    check(bits(ty.elem) == bits(*to), || format!("{} and {to} differ in width", ty.elem))?;
    one(ty.with_elem(*to))
}

pub(super) fn ptr_add(f: &F, ptr: &Value, offset: &Value) -> Infer {
    let (ty, off) = (f.ty(*ptr), f.ty(*offset));
    pointee(ty)?;
    check(off.elem.scalar().is_some_and(Scalar::is_int), || {
        format!("wants an integer offset, not {off}")
    })?;
    check(ty.shape == off.shape, || {
        format!("pointer shape {} and offset shape {} differ", ty.shape, off.shape)
    })?;
    one(ty)
}

fn mask_fits(f: &F, mask: &Option<Value>, shape: Shape) -> Result<(), String> {
    mask.map_or(Ok(()), |m| bool_like(f, m, shape))
}

pub(super) fn load(
    f: &F,
    ptr: &Value,
    mask: &Option<Value>,
    other: &Option<Value>,
    _: &MemHints,
) -> Infer {
    let ty = f.ty(*ptr);
    let out = ty.with_elem(pointee(ty)?);
    mask_fits(f, mask, ty.shape)?;
    if let Some(other) = other {
        check(mask.is_some(), || "`other` without a mask".to_string())?;
        check(f.ty(*other) == out, || {
            format!("`other` is {}, the load gives {out}", f.ty(*other))
        })?;
    }
    one(out)
}

fn writes(f: &F, ptr: Value, value: Value) -> Result<Type, String> {
    let ty = f.ty(ptr);
    let want = ty.with_elem(pointee(ty)?);
    check(!ty.elem.pointer().is_some_and(|p| p.is_const), || {
        "writes through a pointer to const".to_string()
    })?;
    check(f.ty(value) == want, || {
        format!("the value is {}, the pointer wants {want}", f.ty(value))
    })?;
    Ok(want)
}

pub(super) fn store(
    f: &F,
    ptr: &Value,
    value: &Value,
    mask: &Option<Value>,
    _: &MemHints,
) -> Infer {
    let ty = writes(f, *ptr, *value)?;
    mask_fits(f, mask, ty.shape)?;
    Ok(smallvec![])
}

pub(super) fn atomic_rmw(
    func: &F,
    f: &AtomicOp,
    ptr: &Value,
    value: &Value,
    mask: &Option<Value>,
    _: &Sem,
    _: &Scope,
) -> Infer {
    let ty = writes(func, *ptr, *value)?;
    mask_fits(func, mask, ty.shape)?;
    let s = number(ty)?;
    check(f.accepts(s), || format!("no atomic {} for {s}", f.name()))?;
    one(ty)
}

pub(super) fn atomic_cas(
    f: &F,
    ptr: &Value,
    compare: &Value,
    value: &Value,
    _: &Sem,
    _: &Scope,
) -> Infer {
    let ty = writes(f, *ptr, *value)?;
    same_type(f, *compare, *value)?;
    check(AtomicOp::cas_accepts(number(ty)?), || format!("no atomic compare-and-swap for {ty}"))?;
    one(ty)
}

pub(super) fn atomic_load(f: &F, ptr: &Value, mask: &Option<Value>, _: &Sem, _: &Scope) -> Infer {
    let ty = f.ty(*ptr);
    mask_fits(f, mask, ty.shape)?;
    one(ty.with_elem(pointee(ty)?))
}

pub(super) fn atomic_store(
    f: &F,
    ptr: &Value,
    value: &Value,
    mask: &Option<Value>,
    _: &Sem,
    _: &Scope,
) -> Infer {
    let ty = writes(f, *ptr, *value)?;
    mask_fits(f, mask, ty.shape)?;
    Ok(smallvec![])
}

pub(super) fn dot(
    f: &F,
    a: &Value,
    b: &Value,
    acc: &Option<Value>,
    out: &Scalar,
    _: &Precision,
) -> Infer {
    let (ta, tb) = (f.ty(*a), f.ty(*b));
    let rank = ta.shape.rank();
    let fits = rank >= 2
        && rank == tb.shape.rank()
        && (0..rank - 2).all(|i| ta.shape.dim(i) == tb.shape.dim(i))
        && ta.shape.dim(rank - 1) == tb.shape.dim(rank - 2);
    check(fits, || format!("no product of {} and {}", ta.shape, tb.shape))?;
    let (sa, sb) = (number(ta)?, number(tb)?);
    check(sa == sb || (sa.is_fp8() && sb.is_fp8()), || format!("no product of {sa} and {sb}"))?;
    check(sa.is_float() == out.is_float(), || format!("a product of {sa} does not give {out}"))?;
    let shape = ta.shape.with_dim(rank - 1, tb.shape.dim(rank - 1));
    let ty = Type::tile(*out, shape.map_err(|e| format!("no shape: {e:?}"))?);
    if let Some(acc) = acc {
        check(f.ty(*acc) == ty, || format!("the accumulator is {}, the product {ty}", f.ty(*acc)))?;
    }
    one(ty)
}

/// Shapes of the inputs of a `reduce` or `scan`, which agree and have the axis.
fn combined_shape(f: &F, inputs: &[Value], axis: usize) -> Result<Shape, String> {
    let first = inputs.first().ok_or_else(|| "nothing to combine".to_string())?;
    let shape = f.ty(*first).shape;
    check(inputs.iter().all(|&v| f.ty(v).shape == shape), || "input shapes differ".to_string())?;
    check(axis < shape.rank(), || format!("{shape} has no axis {axis}"))?;
    Ok(shape)
}

pub(super) fn reduce(f: &F, inputs: &[Value], axis: &usize, _: &Block) -> Infer {
    let shape = combined_shape(f, inputs, *axis)?.without(*axis);
    Ok(inputs.iter().map(|&v| f.ty(v).with_shape(shape)).collect())
}

pub(super) fn scan(f: &F, inputs: &[Value], axis: &usize, _: &bool, _: &Block) -> Infer {
    combined_shape(f, inputs, *axis)?;
    Ok(inputs.iter().map(|&v| f.ty(v)).collect())
}

pub(super) fn map(f: &F, inputs: &[Value], pack: &usize, body: &Block) -> Infer {
    let first = inputs.first().ok_or_else(|| "nothing to map".to_string())?;
    let shape = f.ty(*first).shape;
    check(inputs.iter().all(|&v| f.ty(v).shape == shape), || "input shapes differ".to_string())?;
    check(*pack > 0 && shape.numel().is_multiple_of(*pack), || {
        format!("{shape} does not fall into groups of {pack}")
    })?;
    let Some(TileOp::Yield { values }) = f.terminator(*body) else {
        return Err("the function must end in `yield`".to_string());
    };
    check(!values.is_empty() && values.len().is_multiple_of(*pack), || {
        format!("yields no multiple of {pack}")
    })?;
    let mut out = SmallVec::new();
    for group in values.chunks(*pack) {
        let ty = f.ty(group[0]);
        check(ty.is_scalar() && group.iter().all(|&v| f.ty(v) == ty), || {
            "the elements of one result differ in type, or are tiles".to_string()
        })?;
        out.push(ty.with_shape(shape));
    }
    Ok(out)
}

/// A tile of numbers with a last axis.
fn rows(f: &F, src: Value) -> Result<Type, String> {
    let ty = f.ty(src);
    number(ty)?;
    check(!ty.is_scalar(), || format!("wants a tile, not {ty}"))?;
    Ok(ty)
}

pub(super) fn sort(f: &F, src: &Value, _: &bool) -> Infer {
    one(rows(f, *src)?)
}

pub(super) fn topk(f: &F, src: &Value, k: &i64, _: &bool) -> Infer {
    let ty = rows(f, *src)?;
    let last = ty.shape.rank() - 1;
    check(*k <= ty.shape.dim(last) as i64, || format!("{k} are more than {ty} has"))?;
    one(ty
        .with_shape(ty.shape.with_dim(last, *k as usize).map_err(|e| format!("no shape: {e:?}"))?))
}

pub(super) fn gather(f: &F, src: &Value, index: &Value, axis: &usize) -> Infer {
    let (ty, at) = (f.ty(*src), f.ty(*index));
    check(number(at)?.is_int(), || format!("indices must be integers, not {at}"))?;
    let fits = ty.shape.rank() == at.shape.rank()
        && *axis < ty.shape.rank()
        && ty.shape.dims().zip(at.shape.dims()).enumerate().all(|(d, (a, b))| d == *axis || a == b);
    check(fits, || format!("no gather of {} by {} along axis {axis}", ty.shape, at.shape))?;
    one(ty.with_shape(at.shape))
}

pub(super) fn histogram(f: &F, src: &Value, mask: &Option<Value>, bins: &i64) -> Infer {
    let ty = f.ty(*src);
    check(number(ty)?.is_int() && ty.shape.rank() == 1, || {
        format!("wants a row of integers, not {ty}")
    })?;
    mask_fits(f, mask, ty.shape)?;
    one(Type::tile(Scalar::I32, shape_of(&[*bins])?))
}

pub(super) fn print(_: &F, _: &Text, _: &[Value], _: &bool) -> Infer {
    Ok(smallvec![])
}

pub(super) fn assert(
    f: &F,
    cond: &Value,
    mask: &Option<Value>,
    _: &Text,
    values: &[Value],
    names: &Texts,
) -> Infer {
    let shape = f.ty(*cond).shape;
    bool_like(f, *cond, shape)?;
    mask_fits(f, mask, shape)?;
    check(values.len() == names.len(), || "each value wants a name".to_string())?;
    check(values.iter().all(|&v| f.ty(v).shape == shape), || {
        "a value has not the condition's shape".to_string()
    })?;
    Ok(smallvec![])
}

pub(super) fn machine(_: &F, what: &MachineFact) -> Infer {
    one(Type::scalar(what.ty()))
}

#[expect(clippy::too_many_arguments, reason = "one for each field of the op's row")]
pub(super) fn inline_asm(
    f: &F,
    _: &Text,
    _: &Text,
    args: &[Value],
    shape: &Shape,
    results: &Scalars,
    _: &bool,
    pack: &usize,
) -> Infer {
    check(args.iter().all(|&v| f.ty(v).shape == *shape), || {
        format!("an operand has not the shape {shape}")
    })?;
    check(!results.is_empty(), || "gives nothing".to_string())?;
    check(*pack > 0 && (shape.is_scalar() || shape.numel().is_multiple_of(*pack)), || {
        format!("{shape} does not fall into groups of {pack}")
    })?;
    Ok(results.iter().map(|&s| Type::tile(s, *shape)).collect())
}

pub(super) fn hint(f: &F, src: &Value, _: &HintKind, values: &Axes) -> Infer {
    let ty = f.ty(*src);
    let want = ty.shape.rank().max(1);
    check(values.len() == want, || format!("{want} values wanted, {} given", values.len()))?;
    one(ty)
}

pub(super) fn assume(f: &F, cond: &Value) -> Infer {
    check(f.ty(*cond).elem == Elem::Scalar(Scalar::I1), || "wants i1".to_string())?;
    Ok(smallvec![])
}

pub(super) fn for_loop(
    f: &F,
    lower: &Value,
    upper: &Value,
    step: &Value,
    inits: &[Value],
    _: &LoopHints,
    _: &Block,
) -> Infer {
    let ty = same_type(f, *lower, *upper)?;
    same_type(f, *lower, *step)?;
    check(ty.is_scalar() && number(ty)?.is_int(), || format!("bounds must be integers, not {ty}"))?;
    Ok(inits.iter().map(|&v| f.ty(v)).collect())
}

pub(super) fn while_loop(f: &F, _: &[Value], before: &Block, _: &Block) -> Infer {
    match f.terminator(*before) {
        Some(TileOp::Condition { values, .. }) => Ok(values.iter().map(|&v| f.ty(v)).collect()),
        _ => Err("the first block must end in `condition`".to_string()),
    }
}

pub(super) fn if_else(f: &F, cond: &Value, then: &Block, _: &Block) -> Infer {
    bool_like(f, *cond, Shape::SCALAR)?;
    match f.terminator(*then) {
        Some(TileOp::Yield { values }) => Ok(values.iter().map(|&v| f.ty(v)).collect()),
        _ => Err("both blocks must end in `yield`".to_string()),
    }
}

pub(super) fn condition(f: &F, cond: &Value, _: &[Value]) -> Infer {
    bool_like(f, *cond, Shape::SCALAR)?;
    Ok(smallvec![])
}
