//! Result types of Thread IR's ops, and the rules on operands that give them.

use super::ops::{Lanes, MmaKind, NativeFn, Permutation, ShuffleMode, Site, VoteMode};
use super::types::{MAX_LANES, ThreadElem, ThreadType, Vector};
use super::{RuntimeFn, Thread, ThreadOp};
use crate::entities::{Block, Value};
use crate::function::Function;
use crate::scalar::{BinaryFn, Predicate, Rounding, TernaryFn, UnaryFn};
use crate::tile::{AtomicOp, Constant, MachineFact, MemHints, Scalars, Scope, Sem, Text};
use crate::types::{Scalar, Type};
use smallvec::{SmallVec, smallvec};

type F = Function<Thread>;
type Infer = Result<SmallVec<[ThreadType; 1]>, String>;

fn one(v: Vector) -> Infer {
    Ok(smallvec![v.into()])
}

fn check(ok: bool, message: impl FnOnce() -> String) -> Result<(), String> {
    if ok { Ok(()) } else { Err(message()) }
}

fn vector(f: &F, value: Value) -> Result<Vector, String> {
    f.ty(value).vector().ok_or_else(|| format!("wants a vector, not {}", f.ty(value)))
}

fn same(f: &F, a: Value, b: Value) -> Result<Vector, String> {
    let (ta, tb) = (vector(f, a)?, vector(f, b)?);
    check(ta == tb, || format!("operand types differ: {ta} and {tb}"))?;
    Ok(ta)
}

fn number(v: Vector) -> Result<Scalar, String> {
    v.elem.scalar().ok_or_else(|| format!("wants numbers, not {v}"))
}

fn is(f: &F, value: Value, want: Vector) -> Result<(), String> {
    check(f.ty(value) == want.into(), || format!("wants {want}, not {}", f.ty(value)))
}

fn legal(v: Vector) -> Infer {
    let fits = v.lanes.is_power_of_two() && v.lanes <= MAX_LANES;
    check(fits, || format!("{} lanes: wants a power of 2 up to {MAX_LANES}", v.lanes))?;
    one(v)
}

fn computed(name: &str, accepts: impl Fn(Scalar) -> bool, v: Vector) -> Infer {
    let s = number(v)?;
    let fits = accepts(s) && s.compute_type() == s;
    check(fits, || format!("`{name}` is not computed in {s}"))?;
    one(v)
}

pub(super) fn nothing(_: &F) -> Infer {
    Ok(smallvec![])
}

pub(super) fn nothing_of(_: &F, _: &[Value]) -> Infer {
    Ok(smallvec![])
}

pub(super) fn constant(_: &F, value: &Constant, lanes: &Lanes) -> Infer {
    legal(Vector::of(value.ty.into(), lanes.0))
}

pub(super) fn iota(_: &F, elem: &ThreadElem, lanes: &Lanes) -> Infer {
    check(elem.scalar().is_some_and(Scalar::is_int), || format!("no numbers of {elem} in a row"))?;
    legal(Vector::of(*elem, lanes.0))
}

pub(super) fn splat(f: &F, src: &Value, lanes: &Lanes) -> Infer {
    let v = vector(f, *src)?;
    check(v.is_scalar(), || format!("wants a scalar, not {v}"))?;
    legal(v.with_lanes(lanes.0))
}

pub(super) fn extract(f: &F, src: &Value, lane: &u32) -> Infer {
    let v = vector(f, *src)?;
    check(*lane < v.lanes, || format!("{v} has no lane {lane}"))?;
    one(v.with_lanes(1))
}

pub(super) fn shuffle(f: &F, a: &Value, b: &Value, order: &Permutation) -> Infer {
    let v = same(f, *a, *b)?;
    let inside = order.0.iter().all(|&i| i < 2 * v.lanes);
    check(inside, || format!("two of {v} have {} lanes", 2 * v.lanes))?;
    legal(v.with_lanes(order.0.len() as u32))
}

pub(super) fn any_all(f: &F, mask: &Value) -> Infer {
    let v = vector(f, *mask)?;
    is(f, *mask, v.with_elem(Scalar::I1.into()))?;
    one(Vector::BOOL)
}

pub(super) fn unary(func: &F, f: &UnaryFn, x: &Value) -> Infer {
    computed(f.name(), |s| f.accepts(s), vector(func, *x)?)
}

pub(super) fn binary(func: &F, f: &BinaryFn, a: &Value, b: &Value) -> Infer {
    computed(f.name(), |s| f.accepts(s), same(func, *a, *b)?)
}

pub(super) fn ternary(func: &F, f: &TernaryFn, a: &Value, b: &Value, c: &Value) -> Infer {
    same(func, *a, *c)?;
    computed(f.name(), |s| f.accepts(s), same(func, *a, *b)?)
}

pub(super) fn compare(func: &F, p: &Predicate, a: &Value, b: &Value) -> Infer {
    let v = same(func, *a, *b)?;
    if v.elem != ThreadElem::Addr {
        computed(p.name(), |_| true, v)?;
    }
    one(v.with_elem(Scalar::I1.into()))
}

pub(super) fn select(f: &F, cond: &Value, yes: &Value, no: &Value) -> Infer {
    let v = same(f, *yes, *no)?;
    is(f, *cond, v.with_elem(Scalar::I1.into()))?;
    one(v)
}

pub(super) fn cast(f: &F, src: &Value, to: &Scalar, _: &Rounding) -> Infer {
    let v = vector(f, *src)?;
    number(v)?;
    one(v.with_elem((*to).into()))
}

pub(super) fn bitcast(f: &F, src: &Value, to: &ThreadElem) -> Infer {
    let v = vector(f, *src)?;
    check(v.elem.bits() == to.bits(), || format!("{} and {to} differ in width", v.elem))?;
    one(v.with_elem(*to))
}

pub(super) fn addr_add(f: &F, addr: &Value, offset: &Value) -> Infer {
    let v = addresses(f, *addr)?;
    is(f, *offset, v.with_elem(Scalar::I64.into()))?;
    one(v)
}

fn addresses(f: &F, addr: Value) -> Result<Vector, String> {
    let v = vector(f, addr)?;
    check(v.elem == ThreadElem::Addr, || format!("wants addresses, not {v}"))?;
    Ok(v)
}

fn address(f: &F, addr: Value) -> Result<(), String> {
    is(f, addr, Vector::ADDR)
}

fn masked(f: &F, mask: &Option<Value>, lanes: u32) -> Result<(), String> {
    mask.map_or(Ok(()), |m| is(f, m, Vector::BOOL.with_lanes(lanes)))
}

pub(super) fn load(
    f: &F,
    addr: &Value,
    _: &i64,
    elem: &ThreadElem,
    lanes: &Lanes,
    mask: &Option<Value>,
    _: &MemHints,
) -> Infer {
    address(f, *addr)?;
    masked(f, mask, lanes.0)?;
    legal(Vector::of(*elem, lanes.0))
}

pub(super) fn store(
    f: &F,
    addr: &Value,
    value: &Value,
    _: &i64,
    mask: &Option<Value>,
    _: &MemHints,
) -> Infer {
    address(f, *addr)?;
    masked(f, mask, vector(f, *value)?.lanes)?;
    nothing(f)
}

pub(super) fn gather(f: &F, addr: &Value, elem: &ThreadElem, mask: &Option<Value>) -> Infer {
    let v = addresses(f, *addr)?;
    masked(f, mask, v.lanes)?;
    one(v.with_elem(*elem))
}

pub(super) fn scatter(f: &F, addr: &Value, value: &Value, mask: &Option<Value>) -> Infer {
    let (v, of) = (addresses(f, *addr)?, vector(f, *value)?);
    check(v.lanes == of.lanes, || format!("{} addresses for {} values", v.lanes, of.lanes))?;
    masked(f, mask, v.lanes)?;
    nothing(f)
}

fn scalar_number(f: &F, value: Value) -> Result<Scalar, String> {
    let v = vector(f, value)?;
    check(v.is_scalar(), || format!("wants a scalar, not {v}"))?;
    number(v)
}

pub(super) fn atomic(
    func: &F,
    f: &AtomicOp,
    addr: &Value,
    value: &Value,
    _: &Sem,
    _: &Scope,
) -> Infer {
    address(func, *addr)?;
    let s = scalar_number(func, *value)?;
    check(f.accepts(s), || format!("no atomic {} for {s}", f.name()))?;
    one(Vector::scalar(s))
}

pub(super) fn atomic_cas(
    f: &F,
    addr: &Value,
    compare: &Value,
    value: &Value,
    _: &Sem,
    _: &Scope,
) -> Infer {
    address(f, *addr)?;
    same(f, *compare, *value)?;
    let s = scalar_number(f, *value)?;
    check(AtomicOp::cas_accepts(s), || format!("no compare-and-swap for {s}"))?;
    one(Vector::scalar(s))
}

pub(super) fn atomic_load(f: &F, addr: &Value, elem: &ThreadElem, _: &Sem, _: &Scope) -> Infer {
    address(f, *addr)?;
    one(Vector::of(*elem, 1))
}

pub(super) fn atomic_store(f: &F, addr: &Value, value: &Value, _: &Sem, _: &Scope) -> Infer {
    address(f, *addr)?;
    scalar_number(f, *value)?;
    nothing(f)
}

pub(super) fn regs(_: &F, elem: &ThreadElem, lanes: &Lanes, count: &u32) -> Infer {
    let of = Vector::of(*elem, lanes.0);
    legal(of)?;
    Ok(smallvec![ThreadType::Regs { of, count: *count }])
}

fn register(f: &F, regs: Value, index: u32) -> Result<Vector, String> {
    match f.ty(regs) {
        ThreadType::Regs { of, count } if index < count => Ok(of),
        other => Err(format!("{other} has no register {index}")),
    }
}

pub(super) fn regs_get(f: &F, regs: &Value, index: &u32) -> Infer {
    one(register(f, *regs, *index)?)
}

pub(super) fn regs_set(f: &F, regs: &Value, value: &Value, index: &u32) -> Infer {
    is(f, *value, register(f, *regs, *index)?)?;
    nothing(f)
}

pub(super) fn scratch(_: &F, _: &usize, align: &usize) -> Infer {
    check(align.is_power_of_two() && *align <= 64, || format!("alignment {align}"))?;
    one(Vector::ADDR)
}

pub(super) fn runtime_call(func: &F, f: &RuntimeFn, args: &[Value]) -> Infer {
    let (params, results) = f.signature();
    let have: Vec<ThreadType> = args.iter().map(|&a| func.ty(a)).collect();
    check(have == params, || format!("`{}` takes other arguments", f.name()))?;
    Ok(results.iter().copied().collect())
}

pub(super) fn guard(f: &F, cond: &Value, _: &Site, values: &[Value]) -> Infer {
    is(f, *cond, Vector::BOOL)?;
    for &v in values {
        let fits = f.ty(v) == ThreadType::I64 || f.ty(v) == ThreadType::ADDR;
        check(fits, || format!("a report holds i64 and addr, not {}", f.ty(v)))?;
    }
    nothing(f)
}

pub(super) fn thread_id(_: &F) -> Infer {
    one(Vector::I32)
}

pub(super) fn grid_axis(_: &F, axis: &u32) -> Infer {
    check(*axis < 3, || format!("a grid has no axis {axis}"))?;
    one(Vector::I32)
}

fn shared(f: &F, at: Value) -> Result<(), String> {
    is(f, at, Vector::I32)
}

pub(super) fn shared_load(
    f: &F,
    at: &Value,
    _: &i64,
    elem: &ThreadElem,
    lanes: &Lanes,
    mask: &Option<Value>,
) -> Infer {
    shared(f, *at)?;
    masked(f, mask, lanes.0)?;
    legal(Vector::of(*elem, lanes.0))
}

pub(super) fn shared_store(
    f: &F,
    at: &Value,
    value: &Value,
    _: &i64,
    mask: &Option<Value>,
) -> Infer {
    shared(f, *at)?;
    masked(f, mask, vector(f, *value)?.lanes)?;
    nothing(f)
}

pub(super) fn shared_atomic(func: &F, f: &AtomicOp, at: &Value, value: &Value) -> Infer {
    shared(func, *at)?;
    let s = scalar_number(func, *value)?;
    check(f.accepts(s), || format!("no atomic {} for {s}", f.name()))?;
    one(Vector::scalar(s))
}

pub(super) fn async_copy(
    f: &F,
    at: &Value,
    addr: &Value,
    _: &i64,
    bytes: &u32,
    mask: &Option<Value>,
) -> Infer {
    shared(f, *at)?;
    address(f, *addr)?;
    masked(f, mask, 1)?;
    check(matches!(bytes, 4 | 8 | 16), || format!("copies of 4, 8 or 16 bytes, not {bytes}"))?;
    nothing(f)
}

pub(super) fn async_wait(f: &F, _: &u32) -> Infer {
    nothing(f)
}

pub(super) fn warp_shuffle(f: &F, _: &ShuffleMode, src: &Value, lane: &Value) -> Infer {
    let v = vector(f, *src)?;
    check(v.is_scalar(), || format!("wants a scalar, not {v}"))?;
    is(f, *lane, Vector::I32)?;
    one(v)
}

pub(super) fn warp_vote(f: &F, _: &VoteMode, cond: &Value) -> Infer {
    is(f, *cond, Vector::BOOL)?;
    one(Vector::BOOL)
}

pub(super) fn load_matrix(f: &F, at: &Value, _: &i64, count: &u32, _: &bool) -> Infer {
    shared(f, *at)?;
    check(matches!(count, 1 | 2 | 4), || format!("1, 2 or 4 tiles, not {count}"))?;
    Ok((0..*count).map(|_| ThreadType::I32).collect())
}

pub(super) fn mma(f: &F, kind: &MmaKind, a: &[Value], b: &[Value], c: &[Value]) -> Infer {
    let sum = Vector::scalar(kind.sum());
    let counts = a.len() == 4 && b.len() == 2 && c.len() == 4;
    check(counts, || "fragments have 4, 2 and 4 registers".to_string())?;
    a.iter().chain(b).try_for_each(|&v| is(f, v, Vector::I32))?;
    c.iter().try_for_each(|&v| is(f, v, sum))?;
    Ok((0..4).map(|_| sum.into()).collect())
}

pub(super) fn pack(f: &F, lanes: &[Value]) -> Infer {
    let first = vector(f, *lanes.first().ok_or("a vector of nothing")?)?;
    check(first.is_scalar(), || format!("wants scalars, not {first}"))?;
    lanes.iter().try_for_each(|&v| is(f, v, first))?;
    legal(first.with_lanes(lanes.len() as u32))
}

pub(super) fn native(func: &F, f: &NativeFn, args: &[Value]) -> Infer {
    check(args.len() == f.arity(), || format!("`{}` takes {} operands", f.name(), f.arity()))?;
    let v = vector(func, args[0])?;
    check(v.elem == Scalar::F32.into(), || format!("wants fp32, not {v}"))?;
    args.iter().try_for_each(|&a| is(func, a, v))?;
    one(v)
}

pub(super) fn machine(_: &F, what: &MachineFact) -> Infer {
    one(Vector::scalar(what.ty()))
}

pub(super) fn asm(f: &F, _: &Text, _: &Text, args: &[Value], results: &Scalars, _: &bool) -> Infer {
    for &arg in args {
        let v = vector(f, arg)?;
        check(v.is_scalar(), || format!("wants scalars, not {v}"))?;
    }
    Ok(results.iter().map(|&s| Vector::scalar(s).into()).collect())
}

#[expect(clippy::too_many_arguments, reason = "the fields of the op's row")]
pub(super) fn print(
    f: &F,
    _: &Text,
    _: &bool,
    of: &Type,
    operand: &u32,
    operands: &u32,
    program: &[Value],
    index: &[Value],
    value: &Option<Value>,
) -> Infer {
    check(program.len() == 3, || format!("a program has 3 numbers, not {}", program.len()))?;
    for &v in program.iter().chain(index) {
        is(f, v, Vector::I32)?;
    }
    match value {
        None => check(*operands == 0, || format!("one of {operands} operands has no value"))?,
        Some(v) => {
            check(operand < operands, || format!("there are {operands} operands"))?;
            check(index.len() == of.shape.rank(), || format!("{of} has {} axes", of.shape.rank()))?;
            let elem = of.elem.scalar().map_or(ThreadElem::Addr, ThreadElem::Scalar);
            // A narrow float may be given as what it is printed as.
            let wide = of.elem.scalar().is_some_and(Scalar::is_float);
            if !(wide && f.ty(*v) == Vector::scalar(Scalar::F64).into()) {
                is(f, *v, Vector::of(elem, 1))?;
            }
        }
    }
    nothing(f)
}

pub(super) fn for_loop(
    f: &F,
    lower: &Value,
    upper: &Value,
    step: &Value,
    inits: &[Value],
    _: &Block,
) -> Infer {
    let v = same(f, *lower, *upper)?;
    same(f, *lower, *step)?;
    // Compared as signed numbers: of one bit there are none.
    let counts = |s: Scalar| s.is_int() && !s.is_bool();
    check(v.is_scalar() && counts(number(v)?), || format!("bounds must be integers, not {v}"))?;
    Ok(inits.iter().map(|&v| f.ty(v)).collect())
}

pub(super) fn while_loop(f: &F, _: &[Value], before: &Block, _: &Block) -> Infer {
    match f.terminator(*before) {
        Some(ThreadOp::Condition { values, .. }) => Ok(values.iter().map(|&v| f.ty(v)).collect()),
        _ => Err("the first block must end in `condition`".to_string()),
    }
}

pub(super) fn if_else(f: &F, cond: &Value, then: &Block, _: &Block) -> Infer {
    is(f, *cond, Vector::BOOL)?;
    match f.terminator(*then) {
        Some(ThreadOp::Yield { values }) => Ok(values.iter().map(|&v| f.ty(v)).collect()),
        _ => Err("both blocks must end in `yield`".to_string()),
    }
}

pub(super) fn condition(f: &F, cond: &Value, _: &[Value]) -> Infer {
    is(f, *cond, Vector::BOOL)?;
    nothing(f)
}
