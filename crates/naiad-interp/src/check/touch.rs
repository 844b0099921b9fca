//! Loads, stores and atomics: what is judged before they take effect, and what is known of what they give.

use super::lanes::{Arbitrary, Class, Lanes, Source, mask_at, slice, slice_mut};
use super::numeric::{self, Seen};
use super::regions::{Region, span};
use super::replay::{self, Private};
use super::{Checked, Checker, P, checker, judge, races, report, report_memory, wrap};
use crate::access::{Target, each_lane};
use crate::exec::{Exec, Shared, Vals, read, target};
use crate::fault::{Fault, Lane, Site};
use crate::memory::Tensor;
use crate::slab::Slab;
use crate::tile::{Dense, Tile};
use naiad_diag::{Diagnostic, Id, LaneKind, Severity};
use naiad_ir::function::Def;
use naiad_ir::scalar::BinaryFn;
use naiad_ir::tile::{AtomicOp, Tile as TileIr, TileOp};
use naiad_ir::{Function, Inst, Scalar, Shape, Value};
use smallvec::SmallVec;
use std::sync::PoisonError;
use std::sync::atomic::Ordering::Relaxed;

/// An access: its operands, and what kind it is.
struct Touch {
    ptr: Value,
    mask: Option<Value>,
    value: Option<Value>,
    kind: races::Kind,
}

fn touch_of(op: &TileOp) -> Option<Touch> {
    use races::Kind;
    Some(match op {
        TileOp::Load { ptr, mask, hints, .. } => Touch {
            ptr: *ptr,
            mask: *mask,
            value: None,
            kind: Kind::Load { volatile: hints.volatile },
        },
        TileOp::Store { ptr, value, mask, .. } => {
            Touch { ptr: *ptr, mask: *mask, value: Some(*value), kind: Kind::Store }
        }
        TileOp::AtomicRmw { ptr, value, mask, .. } => {
            Touch { ptr: *ptr, mask: *mask, value: Some(*value), kind: Kind::Atomic }
        }
        TileOp::AtomicCas { ptr, value, .. } => {
            Touch { ptr: *ptr, mask: None, value: Some(*value), kind: Kind::Atomic }
        }
        TileOp::AtomicLoad { ptr, mask, .. } => {
            Touch { ptr: *ptr, mask: *mask, value: None, kind: Kind::Atomic }
        }
        TileOp::AtomicStore { ptr, value, mask, .. } => {
            Touch { ptr: *ptr, mask: *mask, value: Some(*value), kind: Kind::Atomic }
        }
        _ => return None,
    })
}

pub fn before(
    exec: &mut Exec<'_, Checked>,
    p: &mut P,
    inst: Inst,
    op: &TileOp,
) -> Result<(), Fault> {
    let code = exec.shared.code;
    if let TileOp::Barrier {} = op {
        p.state.passed_barrier();
    }
    let Some(touch) = touch_of(op) else { return Ok(()) };
    let t = target(code, p, touch.ptr, touch.mask);
    if p.state.private.is_some() {
        return found_special(exec, p, inst, &touch);
    }
    if let Some(m) = touch.mask
        && let Some((lane, class)) = first_flagged(&read(code, p, m).lanes, Class::U, &t.shape)
    {
        let lanes = &read(code, p, m).lanes;
        used(exec, p, inst, lanes, class, Some((lane, &t.shape)), "decides a mask here");
    }
    if t.mask.and_then(Tile::uniform) == Some(0) {
        return Ok(());
    }
    wrapped(exec, p, inst, &touch)?;
    super::flat::touch(exec, p, inst, &t);
    undefined(exec, p, inst, op, &touch);
    if touch.kind != (races::Kind::Load { volatile: false })
        || !p.state.recent.is_empty()
        || has_shadow(exec)
    {
        races::access(exec, p, inst, op, touch.ptr, touch.mask, touch.value, touch.kind);
    }
    if touch.kind == races::Kind::Store {
        special(exec, p, inst, &touch);
    }
    Ok(())
}

fn has_shadow(exec: &Exec<'_, Checked>) -> bool {
    checker(exec).regions.all.iter().any(|r| r.shadow.is_some())
}

/// An address that would be another if no offset had wrapped.
fn wrapped(exec: &Exec<'_, Checked>, p: &P, inst: Inst, touch: &Touch) -> Result<(), Fault> {
    let code = exec.shared.code;
    let Some(exact) = read(code, p, touch.ptr).lanes.exact() else { return Ok(()) };
    let t = target(code, p, touch.ptr, touch.mask);
    let all = Tile::Uniform(1);
    let mask = t.mask.unwrap_or(&all);
    let Some((lane, _)) = wrap::differing(&exact.tile, t.addresses, Scalar::I64, &t.shape, mask)
    else {
        return Ok(());
    };
    let wraps = checker(exec).wraps.lock().unwrap_or_else(PoisonError::into_inner);
    let how = wraps.get(&exact.at).cloned().unwrap_or_default();
    let site = exec.site(p, inst);
    // Nothing that is computed from here on is what was meant.
    Err(Box::new(report::wrapped(&site, exact.at, &how, &t.shape, lane)))
}

/// Lanes that are undefined or arbitrary where they count: in an address, a mask, a stored value.
fn undefined(exec: &Exec<'_, Checked>, p: &P, inst: Inst, op: &TileOp, touch: &Touch) {
    let code = exec.shared.code;
    let lanes = |v: Value| &read(code, p, v).lanes;
    let shape = code.func.ty(touch.ptr).shape;
    let mask = touch.mask.map(|m| &read(code, p, m).reg.tile);
    let live = |v: Value, class: Class| {
        let found = lanes(v);
        if found.class < class { None } else { first_live(found, class, mask, &shape) }
    };
    if let Some((lane, class)) = live(touch.ptr, Class::U) {
        used(
            exec,
            p,
            inst,
            lanes(touch.ptr),
            class,
            Some((lane, &shape)),
            "is part of an address here",
        );
    }
    let Some(value) = touch.value else { return };
    if let Some((lane, class)) = live(value, Class::U) {
        used(exec, p, inst, lanes(value), class, Some((lane, &shape)), "is stored here");
        return;
    }
    if let TileOp::AtomicRmw { f, .. } = op {
        padding_added(exec, p, inst, *f, touch);
    }
}

/// Padding that an atomic operation brings into memory.
fn padding_added(exec: &Exec<'_, Checked>, p: &P, inst: Inst, f: AtomicOp, touch: &Touch) {
    let f = match f {
        AtomicOp::Add => BinaryFn::Add,
        AtomicOp::Max => BinaryFn::Max,
        AtomicOp::Min => BinaryFn::Min,
        AtomicOp::And => BinaryFn::And,
        AtomicOp::Or => BinaryFn::Or,
        AtomicOp::Xor => BinaryFn::Xor,
        AtomicOp::Xchg => return,
    };
    let code = exec.shared.code;
    let Some(value) = touch.value else { return };
    let shape = code.func.ty(touch.ptr).shape;
    let mask = touch.mask.map(|m| &read(code, p, m).reg.tile);
    for v in [value, touch.ptr] {
        let lanes = &read(code, p, v).lanes;
        if lanes.class < Class::P {
            continue;
        }
        let added = &read(code, p, value).reg.tile;
        let ty = code.scalar(value);
        let found = super::points::first_with_effect(f, added, ty, lanes, mask, &shape);
        let Some((lane, image)) = found else { continue };
        let site = exec.site(p, inst);
        if exec.shared.findings.wants(&site, Id::PaddingReduced, Severity::Error) {
            let finding = report::padding_added(
                exec,
                &site,
                lanes,
                (lane, image, ty),
                &shape,
                v == touch.ptr,
            );
            exec.shared.findings.add(&site, finding);
        }
        return;
    }
}

/// The first lane of at least this class where the mask is true.
fn first_live(
    lanes: &Lanes,
    class: Class,
    mask: Option<&Tile>,
    shape: &Shape,
) -> Option<(usize, Class)> {
    if let (Some(mask), Some(super::lanes::Form::Split { mask: inside, inside: c, .. })) =
        (mask, lanes.form())
        && *c < class
        && super::lanes::implies(mask, inside, shape)
    {
        return None;
    }
    let bytes = lanes.bytes(shape);
    let all = slice(&bytes, shape).iter().enumerate();
    let mask = mask.map(|m| Tile::Dense(m.dense(Scalar::I1, shape)));
    let mut flagged = all
        .filter(|&(i, &c)| c >= class as u8 && mask.as_ref().is_none_or(|m| mask_at(m, i, shape)));
    flagged.next().map(|(i, &c)| (i, Class::of_byte(u64::from(c))))
}

fn first_flagged(lanes: &Lanes, class: Class, shape: &Shape) -> Option<(usize, Class)> {
    if lanes.class < class { None } else { first_live(lanes, class, None, shape) }
}

/// Says that lanes which nobody defined have an effect.
pub fn used(
    exec: &Exec<'_, Checked>,
    p: &P,
    inst: Inst,
    lanes: &Lanes,
    class: Class,
    lane: Option<(usize, &Shape)>,
    how: &str,
) {
    let site = exec.site(p, inst);
    let findings = exec.shared.findings;
    if class == Class::X
        && let Some(source) = lanes.source()
    {
        let id = match source.arbitrary {
            Some(Arbitrary::Uninitialized) => Id::UninitializedRead,
            Some(Arbitrary::OutsideView) | None => Id::OutsideView,
        };
        findings.escalate(source.inst, id, Severity::Error, |d| report::has_effect(d, &site, how));
        return;
    }
    if findings.wants(&site, Id::UndefinedUsed, Severity::Error) {
        findings.add(&site, report::undefined_used(exec, &site, lanes, lane, how));
    }
}

/// Whether a value came round a loop or out of one, where what made it is not seen.
pub fn is_carried(func: &Function<TileIr>, value: Value) -> bool {
    match func.def(value) {
        Def::Param(..) => true,
        Def::Result(inst, _) => {
            matches!(func.op(inst), TileOp::For { .. } | TileOp::While { .. } | TileOp::If { .. })
        }
    }
}

/// The first NaN or infinity that a store writes.
fn stored_special(exec: &Exec<'_, Checked>, p: &P, touch: &Touch) -> Option<usize> {
    let code = exec.shared.code;
    let value = touch.value?;
    let ty = code.scalar(value);
    let mask = touch.mask.map(|m| &read(code, p, m).reg.tile);
    numeric::first_special(&read(code, p, value).reg.tile, ty, &code.func.ty(value).shape, mask)
}

/// A store of a NaN or an infinity: a private run tells where it was made, if the kernel made it.
fn special(exec: &mut Exec<'_, Checked>, p: &mut P, inst: Inst, touch: &Touch) {
    let Some(lane) = stored_special(exec, p, touch) else { return };
    {
        let mut all = checker(exec).traced.lock().unwrap_or_else(PoisonError::into_inner);
        let tries = all.entry(inst).or_default();
        *tries += 1;
        if *tries > 2 && !tries.is_power_of_two() || *tries > 64 {
            return;
        }
    }
    if !judge::is_replayable(exec, p) {
        return;
    }
    let wanted = Private::tracing(inst);
    let Some(origin) = replay::run(exec, p.number, wanted).and_then(|run| run.found) else {
        return;
    };
    let site = Site { inst: origin.inst, ..exec.site(p, inst) };
    if exec.shared.findings.wants(&site, Id::NumericOrigin, Severity::Warning) {
        let shape = exec.shared.code.func.ty(touch.ptr).shape;
        let finding = report::numeric_origin(exec, &site, &origin, inst, touch.ptr, (&shape, lane));
        exec.shared.findings.add(&site, finding);
    }
}

/// In a tracing run: notes the origin of what is about to be stored, and ends the run.
fn found_special(exec: &Exec<'_, Checked>, p: &P, inst: Inst, touch: &Touch) -> Result<(), Fault> {
    let Some(own) = &p.state.private else { return Ok(()) };
    if own.borrow().until != Some(inst) || stored_special(exec, p, touch).is_none() {
        return Ok(());
    }
    let Some(value) = touch.value else { return Ok(()) };
    let code = exec.shared.code;
    let seen = Seen {
        value,
        tile: &read(code, p, value).reg.tile,
        ty: code.scalar(value),
        shape: code.func.ty(value).shape,
        carried: is_carried(&code.func, value),
    };
    let mut own = own.borrow_mut();
    own.found = own.trace.as_ref().and_then(|t| t.origin(&seen)).cloned();
    Err(Box::new(Diagnostic::new(Id::Interrupted, "the run has shown what it was to show")))
}

pub fn after(
    exec: &mut Exec<'_, Checked>,
    p: &mut P,
    inst: Inst,
    op: &TileOp,
    results: &mut Vals<Checked>,
    changed: bool,
) {
    let code = exec.shared.code;
    if let Some(touch) = touch_of(op)
        && touch.kind == races::Kind::Atomic
        && p.state.private.is_none()
    {
        races::operated(exec, p, inst, op, touch.ptr, touch.mask, changed);
    }
    let lanes = match op {
        TileOp::Load { ptr, mask, other, .. } => loaded(exec, p, inst, *ptr, *mask, *other),
        TileOp::AtomicRmw { mask, .. } | TileOp::AtomicLoad { mask, .. } => {
            let source = Some(Source { inst, arbitrary: None });
            match mask {
                Some(mask) => {
                    Lanes::split(&read(code, p, *mask).reg.tile, Class::V, Class::U, source)
                }
                None => Lanes::all(Class::V),
            }
        }
        TileOp::AtomicCas { .. } => Lanes::all(Class::V),
        TileOp::InlineAsm { args, .. } => {
            let shape =
                code.func.results(inst).first().map_or(Shape::SCALAR, |&r| code.func.ty(r).shape);
            let facts = &checker(exec).facts;
            let all: SmallVec<[_; 4]> =
                args.iter().map(|&v| super::operand(code, facts, p, v)).collect();
            super::derive::elementwise(&all, &shape)
        }
        _ => return,
    };
    for result in results {
        result.lanes = lanes.clone();
    }
}

/// The classes of what a load gives.
fn loaded(
    exec: &Exec<'_, Checked>,
    p: &P,
    inst: Inst,
    ptr: Value,
    mask: Option<Value>,
    other: Option<Value>,
) -> Lanes {
    let code = exec.shared.code;
    let t = target(code, p, ptr, mask);
    let source = Some(Source { inst, arbitrary: None });
    let outside = match other {
        None => Class::U,
        Some(other) => read(code, p, other).lanes.class.max(Class::P),
    };
    let all = Tile::Uniform(1);
    let mask = t.mask.unwrap_or(&all);
    let pointers = &read(code, p, ptr).lanes;
    let mut lanes = Lanes::split(mask, Class::V, outside, source);
    if mask.uniform() == Some(0) {
        return lanes;
    }
    if pointers.class == Class::P {
        // What padding points to is no lane's data.
        lanes = over(&lanes, pointers, mask, &t.shape);
    }
    let Some((bytes, why, first)) = arbitrary(exec, &t) else { return lanes };
    note_arbitrary(exec, p, inst, &t, why, first, &bytes);
    let mut own = lanes.bytes(&t.shape).copied(1, &t.shape);
    for (o, &x) in slice_mut(&mut own.slab, t.shape.numel()).iter_mut().zip(slice(&bytes, &t.shape))
    {
        if x != 0 {
            *o = Class::X as u8;
        }
    }
    Lanes::each(own, &t.shape, Some(Source { inst, arbitrary: Some(why) }))
}

fn over(lanes: &Lanes, pointers: &Lanes, mask: &Tile, shape: &Shape) -> Lanes {
    let mut own = lanes.bytes(shape).copied(1, shape);
    let (from, mask) = (pointers.bytes(shape), mask.dense(Scalar::I1, shape));
    let both = slice(&from, shape).iter().zip(slice(&mask, shape));
    for (o, (&c, &m)) in slice_mut(&mut own.slab, shape.numel()).iter_mut().zip(both) {
        if m != 0 {
            *o = (*o).max(c);
        }
    }
    Lanes::each(own, shape, pointers.source())
}

/// The lanes, as bytes, that are outside the view of their tensor or that nobody has written.
fn arbitrary(exec: &Exec<'_, Checked>, t: &Target<'_>) -> Option<(Dense, Arbitrary, usize)> {
    let memory = exec.shared.memory;
    let (lo, hi) = span(t)?;
    let size = t.elem.size();
    let region = checker(exec).regions.find(t.origin, lo);
    let found = memory.find(t.origin, lo, hi, false);
    let inside = found.is_some_and(|found| {
        memory.outside_view(t.origin, found, |x| x.surely_in_view(lo, hi)).is_none()
    });
    let fresh = region.filter(|r| r.fresh.is_some());
    if inside && fresh.is_none() {
        return None;
    }
    let mut slab = Slab::new(t.shape.numel());
    let out = slice_mut(&mut slab, t.shape.numel());
    out.fill(0);
    let (mut first, mut why) = (None, Arbitrary::OutsideView);
    let walked = each_lane(t, None, &mut |chunk| {
        for i in 0..chunk.n {
            let Some(address) = chunk.address(i) else { continue };
            let (lo, hi) = (i128::from(address), i128::from(address) + size as i128);
            let outside = !inside
                && memory.find(t.origin, lo, hi, false).is_some_and(|found| {
                    memory.outside_view(t.origin, found, |x| x.in_view(address, size)).is_some()
                });
            let unwritten = !outside && fresh.is_some_and(|r| r.is_fresh(address as usize, size));
            if outside || unwritten {
                out[chunk.start + i] = 1;
                if first.is_none() {
                    first = Some(chunk.start + i);
                    why = if outside { Arbitrary::OutsideView } else { Arbitrary::Uninitialized };
                }
            }
        }
        Ok(())
    });
    debug_assert!(walked.is_ok());
    first.map(|first| (Dense::new(slab), why, first))
}

/// Notes a load of arbitrary bits; that becomes an error once they have an effect.
fn note_arbitrary(
    exec: &Exec<'_, Checked>,
    p: &P,
    inst: Inst,
    t: &Target<'_>,
    why: Arbitrary,
    lane: usize,
    arbitrary: &Dense,
) {
    let site = exec.site(p, inst);
    let id = match why {
        Arbitrary::OutsideView => Id::OutsideView,
        Arbitrary::Uninitialized => Id::UninitializedRead,
    };
    if p.state.private.is_some() || !exec.shared.findings.wants(&site, id, Severity::Note) {
        return;
    }
    let Some(lane) = lane_of(t, lane) else { return };
    let memory = exec.shared.memory;
    let (lo, size) = (i128::from(lane.address), t.elem.size());
    let Some(tensor) = memory.find(t.origin, lo, lo + size as i128, false) else { return };
    let tensor = memory.tensor(t.origin).unwrap_or(tensor);
    let mut finding = match why {
        Arbitrary::OutsideView => *site.outside_view(tensor, &lane),
        Arbitrary::Uninitialized => report_memory::uninitialized(&site, tensor, &lane),
    };
    finding.severity = Severity::Note;
    let bad = match why {
        Arbitrary::OutsideView => LaneKind::Outside,
        Arbitrary::Uninitialized => LaneKind::Unwritten,
    };
    let picture = t.picture(&|lane, _| match slice(arbitrary, &t.shape)[lane] {
        0 => LaneKind::Inside,
        _ => bad,
    });
    exec.shared.findings.add(&site, finding.picture(picture));
}

/// A lane of an access, as messages name it.
pub fn lane_of<'t>(t: &'t Target<'_>, lane: usize) -> Option<Lane<'t>> {
    let addresses = t.addresses.dense(Scalar::I64, &t.shape);
    // SAFETY: a lane of the tile.
    let address = unsafe { *addresses.at(8).cast::<i64>().add(lane) };
    Some(Lane {
        access: crate::fault::Access::Load,
        shape: &t.shape,
        lane,
        address,
        elem: t.elem,
        masked: t.mask.is_some(),
        origin: t.origin,
    })
}

/// Elements of uninitialized outputs that the launch stored to and left unwritten.
pub fn unwritten(checker: &Checker, shared: &Shared<'_>) {
    let func = &*shared.code.func;
    let mut said: Vec<usize> = Vec::new();
    for tensor in shared.memory.tensors.iter().flatten() {
        let address = tensor.address as i128;
        let Some(region) = checker.regions.find(crate::memory::Origin::Unknown, address) else {
            continue;
        };
        if region.fresh.is_none() || !region.touched.load(Relaxed) || said.contains(&tensor.address)
        {
            continue;
        }
        said.push(tensor.address);
        let (n, left, first) = count(region, tensor);
        let stores = region.stores.iter().chain(&region.atomics);
        let Some((&inst, first)) = stores.clone().next().zip(first) else { continue };
        let site = Site { func, inst, program: [0; 3], number: 0 };
        shared.findings.add(&site, report_memory::unwritten(&site, tensor, n, left, &first));
    }
}

/// Elements of a view, how many of them nobody wrote, and the index of the first of these.
fn count(region: &Region, tensor: &Tensor<'_>) -> (usize, usize, Option<Vec<usize>>) {
    let Some(view) = &tensor.view else { return (0, 0, None) };
    let (size, n) = (view.elem.size(), view.shape.iter().product());
    let mut index = vec![0usize; view.shape.len()];
    let (mut left, mut first) = (0, None);
    for _ in 0..n {
        let offset: isize = index.iter().zip(&view.strides).map(|(&i, s)| i as isize * s).sum();
        let at = tensor.address.wrapping_add_signed(offset * size as isize);
        if region.is_fresh(at, size) {
            left += 1;
            first.get_or_insert_with(|| index.clone());
        }
        for (i, &extent) in index.iter_mut().zip(&view.shape).rev() {
            *i += 1;
            if *i < extent {
                break;
            }
            *i = 0;
        }
    }
    (n, left, first)
}
