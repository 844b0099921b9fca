//! Loads, stores and atomics.

use super::window::{self, BlockOptions};
use crate::lower::{Args, Lower, Operand};
use crate::source::Result;
use crate::value::{Const, Val, WindowKind, type_name};
use naiad_diag::{Diagnostic, Id};
use naiad_ir::scalar::{BinaryFn, Predicate, UnaryFn};
use naiad_ir::tile::{
    AtomicOp, CacheModifier, Eviction, MachineFact, MemHints, Scope, Sem, TileOp, broadcast_shapes,
};
use naiad_ir::{Elem, Pointer, Scalar, Shape, Type, Value};

pub(super) fn pointer(l: &mut Lower<'_>, o: &Operand) -> Result<(Value, Pointer)> {
    if let Val::Tensor(v) = o.val
        && let Elem::Pointer(p) = l.ty(v).elem
    {
        return Ok((v, p));
    }
    let what = l.describe(&o.val);
    let e = l.error(Id::BadArgument, format!("a pointer is wanted here, not {what}"), o.range, "");
    let help = match o.val {
        Val::Window(_) => "a descriptor has methods of its own: `desc.load([row, column])`",
        Val::Tensor(_) => {
            "add the offset to a pointer argument: `ptr + offsets`; was the argument passed as a number instead of an array?"
        }
        _ => "pass the array to the kernel and add offsets to its pointer",
    };
    Err(Box::new((*e).help(help)))
}

/// The mask at `shape`; a constexpr mask too. Other integers than i1 are refused.
fn mask(
    l: &mut Lower<'_>,
    o: Option<&Operand>,
    ptr: &Operand,
    shape: Shape,
) -> Result<Option<Value>> {
    let Some(o) = o else { return Ok(None) };
    let v = match &o.val {
        Val::Const(c @ (Const::Bool(_) | Const::Int(_))) => l.literal(c, Scalar::I1)?,
        _ => l.tensor(o)?,
    };
    if l.ty(v).elem != Elem::Scalar(Scalar::I1) {
        let what = type_name(l.ty(v));
        let e = l.error(
            Id::TypeMismatch,
            format!("a mask must be boolean (int1), not {what}"),
            o.range,
            "",
        );
        return Err(Box::new((*e).help("compare: `offsets < n`, or `x != 0`")));
    }
    Ok(Some(fit(l, "mask", v, o, ptr, shape)?))
}

/// Broadcasts what goes with a pointer to the pointer's shape.
pub(super) fn fit(
    l: &mut Lower<'_>,
    what: &str,
    v: Value,
    o: &Operand,
    ptr: &Operand,
    shape: Shape,
) -> Result<Value> {
    let own = l.ty(v).shape;
    if broadcast_shapes(own, shape) == Ok(shape) {
        return Ok(l.b.broadcast_to(v, shape)?);
    }
    Err(pointer_shape(l, what, o, own, ptr, shape))
}

fn pointer_shape(
    l: &mut Lower<'_>,
    what: &str,
    o: &Operand,
    own: Shape,
    ptr: &Operand,
    shape: Shape,
) -> Box<Diagnostic> {
    let message = format!("the {what} has shape {own}, the pointer {shape}");
    let mut d = *l.error(Id::PointerShape, message, o.range, format!("shape {own}"));
    let place = l.place(ptr.range);
    d = d.secondary(place, format!("pointers of shape {shape}"));
    for operand in [o, ptr] {
        let text = l.place(operand.range).text().to_string();
        if let Some(binding) = l.frame().env.get(text.as_str()) {
            d = d.secondary(binding.place.clone(), format!("`{text}` is made here"));
        }
    }
    if shape.is_scalar() {
        return Box::new(d.help("a scalar pointer moves one element: add a tile of offsets to it, such as `ptr + tl.arange(0, BLOCK)`"));
    }
    if own.rank() == 2 && shape.rank() == 2 && own.permuted(&[1, 0]) == shape {
        return Box::new(d.help(format!("the {what} is laid out for the transposed tile: build it from the offsets that the pointer uses")));
    }
    Box::new(d.help(format!("the {what} is broadcast to the pointer's shape: give the pointer all axes, for example `ptr + rows[:, None] * stride + cols[None, :]`")))
}

fn cache_hints(
    l: &mut Lower<'_>,
    cache: Option<&Operand>,
    evict: Option<&Operand>,
    volatile: bool,
) -> Result<MemHints> {
    let caches: Vec<&str> = CacheModifier::ALL.iter().map(|c| c.name()).collect();
    let evictions: Vec<&str> = Eviction::ALL.iter().map(|e| e.name()).collect();
    let find = |w: &str| {
        CacheModifier::from_name(w).or_else(|| CacheModifier::from_name(&format!(".{w}")))
    };
    let cache = l.option(cache, "cache modifier", CacheModifier::None, find, &caches)?;
    let evict =
        l.option(evict, "eviction policy", Eviction::None, Eviction::from_name, &evictions)?;
    Ok(MemHints { cache, evict, volatile })
}

pub fn load(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let po = a.need(0).clone();
    let volatile = l.const_bool(a.opt(7), false)?;
    let hints = cache_hints(l, a.opt(5), a.opt(6), volatile)?;
    let options = BlockOptions {
        boundary_check: a.opt(3),
        padding: a.opt(4),
        refused: &[("mask", a.opt(1)), ("other", a.opt(2))],
    };
    if let Val::Window(w) = &po.val
        && w.kind == WindowKind::BlockPointer
    {
        return window::load_block(l, w, &options, hints);
    }
    let (mut ptr, p) = pointer(l, &po)?;
    if let Some(e) = window::no_block_options(l, &options) {
        return Err(e);
    }
    if let (None, Some(other)) = (a.opt(1), a.opt(2)) {
        let range = other.range;
        let e = l.error(
            Id::BadArgument,
            "`other` is given without a mask",
            range,
            "it would never be used",
        );
        return Err(Box::new((*e).help("pass `mask=` too, or leave `other` out")));
    }
    // Unlike a store's, a load's tile of pointers broadcasts up to the mask.
    let mut shape = l.ty(ptr).shape;
    if !shape.is_scalar() {
        for o in [a.opt(1), a.opt(2)].into_iter().flatten() {
            if let Val::Tensor(v) = o.val
                && let Ok(wider) = broadcast_shapes(l.ty(v).shape, shape)
            {
                shape = wider;
            }
        }
        ptr = l.b.broadcast_to(ptr, shape)?;
    }
    let mask = mask(l, a.opt(1), &po, shape)?;
    let other = match a.opt(2) {
        None => None,
        Some(o) => {
            let v = value(l, o, p.pointee)?;
            Some(fit(l, "`other`", v, o, &po, shape)?)
        }
    };
    Ok(Val::Tensor(l.b.op(TileOp::Load { ptr, mask, other, hints })?))
}

/// A value on its way to memory of type `pointee`; casts are implicit there.
pub(super) fn value(l: &mut Lower<'_>, o: &Operand, pointee: Scalar) -> Result<Value> {
    if let Val::Const(c) = &o.val
        && c.as_number().is_some()
    {
        return match c.natural_type() {
            Some(natural) => {
                let v = l.literal(c, natural)?;
                Ok(l.b.cast(v, pointee)?)
            }
            None => Err(l.error(
                Id::LiteralRange,
                format!("the literal {c} is out of range: it has more than 64 bits"),
                o.range,
                "",
            )),
        };
    }
    let v = l.tensor(o)?;
    match l.ty(v).elem {
        Elem::Scalar(_) => Ok(l.b.cast(v, pointee)?),
        Elem::Pointer(_) if !(pointee.is_int() && pointee.bits() == 64) => {
            let what = type_name(l.ty(v));
            let message = format!("{what} cannot be stored as {}", pointee.triton_name());
            let e = l.error(Id::TypeMismatch, message, o.range, "");
            Err(Box::new(
                (*e).help("an address is a number of 64 bits: store it as int64 or uint64"),
            ))
        }
        // An address is stored as a number of 64 bits.
        Elem::Pointer(_) => {
            let address = l.b.op(TileOp::Bitcast { src: v, to: Elem::Scalar(Scalar::I64) })?;
            Ok(l.b.cast(address, pointee)?)
        }
    }
}

pub(super) fn writable(l: &mut Lower<'_>, o: &Operand, p: Pointer) -> Result<()> {
    if !p.is_const {
        return Ok(());
    }
    let e = l.error(
        Id::ConstStore,
        "this pointer is to const: nothing can be stored through it",
        o.range,
        "",
    );
    Err(Box::new((*e).help("take `tl.const` off the parameter's annotation")))
}

pub fn store(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let po = a.need(0).clone();
    let hints = cache_hints(l, a.opt(4), a.opt(5), false)?;
    let options =
        BlockOptions { boundary_check: a.opt(3), padding: None, refused: &[("mask", a.opt(2))] };
    if let Val::Window(w) = &po.val
        && w.kind == WindowKind::BlockPointer
    {
        return window::store_block(l, w, (&po, a.need(1)), &options, hints);
    }
    let (ptr, p) = pointer(l, &po)?;
    writable(l, &po, p)?;
    if let Some(e) = window::no_block_options(l, &options) {
        return Err(e);
    }
    let shape = l.ty(ptr).shape;
    let raw = value(l, a.need(1), p.pointee)?;
    let value = fit(l, "value", raw, a.need(1), &po, shape)?;
    let mask = mask(l, a.opt(2), &po, shape)?;
    l.b.ops(TileOp::Store { ptr, value, mask, hints })?;
    Ok(Val::NONE)
}

fn order(
    l: &mut Lower<'_>,
    sem: Option<&Operand>,
    scope: Option<&Operand>,
) -> Result<(Sem, Scope)> {
    let sems: Vec<&str> = Sem::ALL.iter().map(|s| s.name()).collect();
    let scopes: Vec<&str> = Scope::ALL.iter().map(|s| s.name()).collect();
    Ok((
        l.option(sem, "memory order", Sem::AcqRel, Sem::from_name, &sems)?,
        l.option(scope, "scope", Scope::Gpu, Scope::from_name, &scopes)?,
    ))
}

pub fn atomic_rmw(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let word = a.entry.path.trim_start_matches("atomic_");
    let f = AtomicOp::from_name(word).unwrap_or(AtomicOp::Add);
    let po = a.need(0).clone();
    let (ptr, p) = pointer(l, &po)?;
    writable(l, &po, p)?;
    let (sem, scope) = order(l, a.opt(3), a.opt(4))?;
    let s = p.pointee;
    // Extrema of 16-bit floats are for tensor descriptors.
    let extremum = matches!(f, AtomicOp::Max | AtomicOp::Min);
    if !f.accepts(s) || (extremum && s.bits() < 32) {
        let message = format!("`tl.{}` is not defined for {}", a.entry.path, s.triton_name());
        let e = l.error(Id::TypeMismatch, message, po.range, "");
        return Err(Box::new((*e).help(
            "atomics work on 32-bit and 64-bit elements; `atomic_add` also on float16 and bfloat16",
        )));
    }
    let shape = l.ty(ptr).shape;
    let raw = value(l, a.need(1), s)?;
    let value = fit(l, "value", raw, a.need(1), &po, shape)?;
    let mask = mask(l, a.opt(2), &po, shape)?;
    Ok(Val::Tensor(l.b.op(TileOp::AtomicRmw { f, ptr, value, mask, sem, scope })?))
}

/// Neither casts nor broadcasts, as in Triton; literals take the pointee's type.
pub fn atomic_cas(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let po = a.need(0).clone();
    let (ptr, p) = pointer(l, &po)?;
    writable(l, &po, p)?;
    let (sem, scope) = order(l, a.opt(3), a.opt(4))?;
    if !AtomicOp::cas_accepts(p.pointee) {
        let message = format!("`tl.atomic_cas` is not defined for {}", p.pointee.triton_name());
        return Err(l.error(
            Id::TypeMismatch,
            message,
            po.range,
            "elements of 16, 32 or 64 bits are possible",
        ));
    }
    let want: Type = l.ty(ptr).with_elem(p.pointee);
    let mut operands = [ptr; 2];
    for (out, i) in operands.iter_mut().zip([1, 2]) {
        let o = a.need(i).clone();
        let v = match &o.val {
            Val::Const(c) if want.is_scalar() && c.as_number().is_some() => {
                l.adopt(&o, p.pointee, o.range)?;
                l.literal(c, p.pointee)?
            }
            _ => l.tensor(&o)?,
        };
        if l.ty(v) != want {
            let (have, want) = (type_name(l.ty(v)), type_name(want));
            let message = format!(
                "`tl.atomic_cas` wants {want} here, not {have}: it neither casts nor broadcasts"
            );
            return Err(l.error(Id::TypeMismatch, message, o.range, ""));
        }
        *out = v;
    }
    let [compare, value] = operands;
    Ok(Val::Tensor(l.b.op(TileOp::AtomicCas { ptr, compare, value, sem, scope })?))
}

/// The order of an atomic that only reads, or only writes: `natural` or relaxed.
fn one_way_order(
    l: &mut Lower<'_>,
    sem: Option<&Operand>,
    scope: Option<&Operand>,
    natural: Sem,
) -> Result<(Sem, Scope)> {
    let (_, scope) = order(l, None, scope)?;
    let find = |w: &str| Sem::from_name(w).filter(|s| [natural, Sem::Relaxed].contains(s));
    let all = [natural.name(), Sem::Relaxed.name()];
    Ok((l.option(sem, "memory order for this", natural, find, &all)?, scope))
}

pub fn atomic_load(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let po = a.need(0).clone();
    let (ptr, _) = pointer(l, &po)?;
    let (sem, scope) = one_way_order(l, a.opt(2), a.opt(3), Sem::Acquire)?;
    let shape = l.ty(ptr).shape;
    let mask = mask(l, a.opt(1), &po, shape)?;
    Ok(Val::Tensor(l.b.op(TileOp::AtomicLoad { ptr, mask, sem, scope })?))
}

pub fn atomic_store(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let po = a.need(0).clone();
    let (ptr, p) = pointer(l, &po)?;
    writable(l, &po, p)?;
    let (sem, scope) = one_way_order(l, a.opt(3), a.opt(4), Sem::Release)?;
    let shape = l.ty(ptr).shape;
    let raw = value(l, a.need(1), p.pointee)?;
    let value = fit(l, "value", raw, a.need(1), &po, shape)?;
    let mask = mask(l, a.opt(2), &po, shape)?;
    l.b.ops(TileOp::AtomicStore { ptr, value, mask, sem, scope })?;
    Ok(Val::NONE)
}

/// Waits until memory holds a value, as a loop over atomic loads; false if the time ran out.
pub fn atomic_poll(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let po = a.need(0).clone();
    let (ptr, p) = pointer(l, &po)?;
    if !l.ty(ptr).is_scalar() || !p.pointee.is_int() || p.pointee.bits() < 16 {
        let message = format!(
            "`tl.atomic_poll` waits for one integer of 16, 32 or 64 bits, not at {}",
            type_name(l.ty(ptr))
        );
        return Err(l.error(Id::TypeMismatch, message, po.range, ""));
    }
    let (sem, scope) = one_way_order(l, a.opt(2), a.opt(3), Sem::Acquire)?;
    let raw = value(l, a.need(1), p.pointee)?;
    let expected = fit(l, "value", raw, a.need(1), &po, Shape::SCALAR)?;
    let patience = match a.opt(4) {
        None => None,
        Some(o) => {
            let patience = l.tensor(o)?;
            let patience = l.b.cast(patience, Scalar::I64)?;
            Some((l.b.op(TileOp::Machine { what: MachineFact::GlobalTimer })?, patience))
        }
    };
    let before = l.b.func.new_block();
    let back = l.b.enter(before);
    let now = l.b.op(TileOp::AtomicLoad { ptr, mask: None, sem, scope })?;
    let there = l.b.compare(Predicate::Eq, now, expected)?;
    let mut cond = l.b.unary(UnaryFn::Not, there)?;
    if let Some((start, patience)) = patience {
        // Time waited, since the moment at which patience ends may be beyond 64 bits.
        let time = l.b.op(TileOp::Machine { what: MachineFact::GlobalTimer })?;
        let waited = l.b.binary(BinaryFn::Sub, time, start)?;
        let early = l.b.compare(Predicate::Lt, waited, patience)?;
        cond = l.b.binary(BinaryFn::And, cond, early)?;
    }
    l.b.ops(TileOp::Condition { cond, values: vec![there] })?;
    let after = l.b.func.new_block();
    l.b.func.add_block_param(after, Type::scalar(Scalar::I1));
    l.b.enter(after);
    l.b.ops(TileOp::Yield { values: Vec::new() })?;
    l.b.enter(back);
    Ok(Val::Tensor(l.b.op(TileOp::While { inits: Vec::new(), before, after })?))
}
