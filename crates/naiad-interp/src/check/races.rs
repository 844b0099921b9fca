//! Races between programs, and reads of one program that a barrier is missing for.

use super::regions::{Region, each_run, span};
use super::shadow::{AND_OTHERS, UNCHANGED, Who};
use super::sync::{Operation, Order};
use super::{Checked, Checker, P, checker, report, report_memory};
use crate::access::{Target, each_lane};
use crate::engine::read_image;
use crate::exec::{Exec, Shared, read, target};
use crate::fault::Site;
use crate::tile::Tile;
use naiad_diag::{Id, Severity};
use naiad_ir::tile::{AtomicOp, Scope, Sem, TileOp};
use naiad_ir::{Inst, Scalar, Shape, Value};
use rustc_hash::FxHashMap;
use std::sync::PoisonError;

#[derive(Copy, Clone, PartialEq, Eq)]
pub enum Kind {
    Load { volatile: bool },
    Store,
    Atomic,
}

/// A read that was logged: by whom, where, and which elements.
pub struct Read {
    epoch: u32,
    inst: Inst,
    first: usize,
    n: usize,
    region: usize,
}

/// A store of a program since its last barrier.
pub struct Recent {
    inst: Inst,
    lo: i128,
    hi: i128,
    shape: Shape,
    addresses: Tile,
    mask: Option<Tile>,
    elem: Scalar,
}

/// Stores that are remembered for a program; older ones are forgotten first.
const REMEMBERED: usize = 256;

/// An access is about to be made.
#[allow(clippy::too_many_arguments, reason = "an access has as many parts")]
pub fn access(
    exec: &mut Exec<'_, Checked>,
    p: &mut P,
    inst: Inst,
    op: &TileOp,
    ptr: Value,
    mask: Option<Value>,
    value: Option<Value>,
    kind: Kind,
) {
    let code = exec.shared.code;
    let checker = checker(exec);
    let t = target(code, p, ptr, mask);
    let Some((lo, hi)) = span(&t) else { return };
    let Some(region) = checker.regions.find(t.origin, lo) else { return };
    if hi > region.hi as i128 {
        // It will be a fault.
        return;
    }
    if kind != (Kind::Load { volatile: false }) && !matches!(kind, Kind::Load { .. }) {
        region.touch();
    }
    if kind == Kind::Atomic {
        fresh_update(exec, p, inst, op, &t, region);
    }
    if matches!(kind, Kind::Load { .. }) && !p.state.recent.is_empty() && !region.stores.is_empty()
    {
        missing_barrier(exec, p, inst, &t, (lo, hi));
    }
    if let Some(shadow) = &region.shadow
        && !checker.crowded
    {
        let who = p.state.epoch;
        match (kind, &checker.sync) {
            (Kind::Store, sync) => {
                let mut met: Vec<(usize, usize, Who)> = Vec::new();
                let value = value.map(|v| &read(code, p, v).reg.tile);
                // Only who reads elements asks whether they changed.
                let still = !region.loads.is_empty() && is_unchanged(&t, value);
                let who = if still { who | UNCHANGED } else { who };
                each_run(&t, &mut |at, bytes| {
                    let (first, n) = region.elements(at, bytes);
                    let who = if sync.is_some() { who + 1 } else { who };
                    shadow.write(first, n, who, &mut |m| met.push((m.first, m.n, m.who)));
                });
                if !met.is_empty() {
                    both_write(exec, p, inst, &t, value, region, &met);
                }
            }
            (Kind::Load { .. } | Kind::Atomic, None) => {
                if kind == Kind::Atomic || !region.loads.is_empty() {
                    each_run(&t, &mut |at, bytes| {
                        let (first, n) = region.elements(at, bytes);
                        shadow.read(first, n, who);
                    });
                }
            }
            (Kind::Load { .. } | Kind::Atomic, Some(_)) => ordered_read(exec, p, inst, &t, region),
        }
    }
    match kind {
        Kind::Atomic => p.state.passed_barrier(),
        Kind::Store if !region.loads.is_empty() => {
            let t = target(code, p, ptr, mask);
            let recent = Recent {
                inst,
                lo,
                hi,
                shape: t.shape,
                addresses: t.addresses.clone(),
                mask: t.mask.cloned(),
                elem: t.elem,
            };
            if p.state.recent.len() == REMEMBERED {
                p.state.recent.remove(0);
                p.state.forgot = true;
            }
            p.state.recent.push(recent);
        }
        Kind::Load { .. } | Kind::Store => {}
    }
    if let (Kind::Load { volatile: true }, Some(sync)) = (kind, &checker.sync) {
        let how = Operation { reads: true, writes: false, sem: Sem::Relaxed, scope: Scope::Gpu };
        let mut epoch = p.state.epoch;
        let t = target(code, p, ptr, mask);
        each_run(&t, &mut |at, bytes| {
            for at in (at..at + bytes).step_by(t.elem.size()) {
                epoch = sync.operate(epoch, at, how).0;
            }
        });
        p.state.epoch = epoch;
    }
}

/// Whether a store writes what is there already.
fn is_unchanged(t: &Target<'_>, value: Option<&Tile>) -> bool {
    let size = t.elem.size();
    let mut still = value.is_some();
    let walked = each_lane(t, value, &mut |chunk| {
        for i in 0..chunk.n {
            if !still {
                break;
            }
            let Some(at) = chunk.address(i) else { continue };
            // SAFETY: an element of a storage, as the caller found.
            still = unsafe { read_image(at as usize as *const u8, size) } == chunk.value(i, size);
        }
        Ok(())
    });
    debug_assert!(walked.is_ok());
    still
}

/// The program behind an entry of a shadow.
fn program_of(checker: &Checker, who: Who) -> u32 {
    let who = who & !AND_OTHERS;
    match &checker.sync {
        None => who.wrapping_sub(1),
        Some(sync) => sync.program(who - 1),
    }
}

/// Elements that another program wrote before this one does.
fn both_write(
    exec: &Exec<'_, Checked>,
    p: &P,
    inst: Inst,
    t: &Target<'_>,
    value: Option<&Tile>,
    region: &Region,
    met: &[(usize, usize, Who)],
) {
    let checker = checker(exec);
    let site = exec.site(p, inst);
    let findings = exec.shared.findings;
    let mut weak = None;
    let mut open: Vec<(usize, usize, Who)> = Vec::new();
    for &(first, n, who) in met {
        let order = match &checker.sync {
            None => Order::None,
            Some(sync) => sync.order(who - 1, p.state.epoch),
        };
        match order {
            Order::Strong => {}
            Order::Weak => weak = weak.or(Some((first, who))),
            Order::None => open.push((first, n, who)),
        }
    }
    if let Some((first, who)) = weak
        && findings.wants(&site, Id::WeakOrder, Severity::Warning)
    {
        let other = program_of(checker, who);
        findings.add(&site, report_memory::weak_order(exec, &site, region, t, first, other));
    }
    if open.is_empty()
        || !findings.wants(&site, Id::Race, Severity::Error)
            && findings.has(inst, Id::Race, Severity::Error)
    {
        return;
    }
    let holds = |at: usize| {
        open.iter()
            .find(|&&(first, n, _)| (first..first + n).contains(&((at - region.lo) / region.size)))
    };
    let size = t.elem.size();
    let (mut differing, mut same) = (None, None);
    let walked = each_lane(t, value, &mut |chunk| {
        for i in 0..chunk.n {
            let Some(at) = chunk.address(i) else { continue };
            let Some(&(_, _, who)) = holds(at as usize) else { continue };
            // SAFETY: an element of the storage, as the caller found.
            let old = unsafe { read_image(at as usize as *const u8, size) };
            let place = if value.is_some() && old == chunk.value(i, size) {
                &mut same
            } else {
                &mut differing
            };
            place.get_or_insert((at as usize, who));
        }
        Ok(())
    });
    debug_assert!(walked.is_ok());
    let (id, found) = match (differing, same) {
        (Some(found), _) => (Id::Race, found),
        (None, Some(found)) => (Id::SameValueRace, found),
        (None, None) => return,
    };
    if findings.wants(&site, id, id.severity()) {
        let other = program_of(checker, found.1);
        findings.add(&site, report_memory::both_write(exec, &site, id, t, found.0, other));
    }
}

/// A read where programs may be ordered: against who wrote before, and logged for who writes later.
fn ordered_read(exec: &Exec<'_, Checked>, p: &P, inst: Inst, t: &Target<'_>, region: &Region) {
    let checker = checker(exec);
    let (Some(sync), Some(shadow)) = (&checker.sync, &region.shadow) else { return };
    let site = exec.site(p, inst);
    let at = checker.regions.all.iter().position(|r| std::ptr::eq(r, region)).unwrap_or(0);
    let mut logged = Vec::new();
    let mut bad: Option<(usize, Who, Order)> = None;
    each_run(t, &mut |address, bytes| {
        let (first, n) = region.elements(address, bytes);
        shadow.writers(first, n, &mut |m| {
            let order = sync.order(m.who - 1, p.state.epoch);
            if order != Order::Strong
                && bad.is_none_or(|b| b.2 == Order::Weak && order == Order::None)
            {
                bad = Some((m.first, m.who, order));
            }
        });
        logged.push(Read { epoch: p.state.epoch, inst, first, n, region: at });
    });
    checker.log.lock().unwrap_or_else(PoisonError::into_inner).extend(logged);
    if let Some((first, who, order)) = bad {
        let id = if order == Order::Weak { Id::WeakOrder } else { Id::Race };
        crossing(exec.shared, checker, &site, region, t.elem, first, (who, p.state.epoch + 1), id);
    }
}

/// Reports an element that one program wrote and another uses.
#[allow(clippy::too_many_arguments, reason = "a crossing has as many parts")]
fn crossing(
    shared: &Shared<'_>,
    checker: &Checker,
    site: &Site<'_>,
    region: &Region,
    elem: Scalar,
    element: usize,
    (writer, reader): (Who, Who),
    id: Id,
) {
    if shared.findings.wants(site, id, id.severity()) {
        let (w, r) = (program_of(checker, writer), program_of(checker, reader));
        let others = reader & AND_OTHERS != 0;
        let finding = report_memory::crossing(
            shared,
            site,
            id,
            region,
            elem,
            region.address(element),
            (w, r, others),
        );
        shared.findings.add(site, finding);
    }
}

/// What only the end of the launch shows: reads of elements that another program wrote, before or after.
pub fn sweep(checker: &Checker, shared: &Shared<'_>) {
    let func = &*shared.code.func;
    if checker.crowded {
        let site = Site { func, inst: func.insts(func.entry())[0], program: [0; 3], number: 0 };
        shared.findings.add(&site, report::crowded(&site));
        return;
    }
    let elem = |inst: Inst| match func.op(inst) {
        TileOp::Load { ptr, .. }
        | TileOp::AtomicRmw { ptr, .. }
        | TileOp::AtomicCas { ptr, .. }
        | TileOp::AtomicLoad { ptr, .. }
        | TileOp::AtomicStore { ptr, .. } => {
            func.ty(*ptr).elem.pointer().map_or(Scalar::I8, |p| p.pointee)
        }
        _ => Scalar::I8,
    };
    if let Some(sync) = &checker.sync {
        let log = std::mem::take(&mut *checker.log.lock().unwrap_or_else(PoisonError::into_inner));
        for read in log {
            let region = &checker.regions.all[read.region];
            let Some(shadow) = &region.shadow else { continue };
            let site = Site {
                func,
                inst: read.inst,
                program: [0; 3],
                number: u64::from(sync.program(read.epoch)),
            };
            shadow.writers(read.first, read.n, &mut |m| {
                let write = m.who - 1;
                let id = match (sync.order(write, read.epoch), sync.order(read.epoch, write)) {
                    (Order::Strong, _) | (_, Order::Strong) => return,
                    (Order::Weak, _) | (_, Order::Weak) => Id::WeakOrder,
                    (Order::None, Order::None) => Id::Race,
                };
                crossing(
                    shared,
                    checker,
                    &site,
                    region,
                    elem(read.inst),
                    m.first,
                    (m.who, read.epoch + 1),
                    id,
                );
            });
        }
        return;
    }
    for region in &checker.regions.all {
        let Some(shadow) = &region.shadow else { continue };
        let Some(&inst) = region.loads.first().or(region.atomics.first()) else { continue };
        let (mut changed, mut same) = (None, None);
        shadow.crossings(&mut |element, w, r, changes| {
            let place = if changes { &mut changed } else { &mut same };
            place.get_or_insert((element, w, r));
        });
        let Some((element, w, r)) = changed.or(same) else { continue };
        let id = if changed.is_some() { Id::Race } else { Id::SameValueRace };
        let number = u64::from(program_of(checker, r));
        let site = Site { func, inst, program: [0; 3], number };
        crossing(shared, checker, &site, region, elem(inst), element, (w, r), id);
    }
}

/// An atomic operation has been made: what it orders.
pub fn operated(
    exec: &mut Exec<'_, Checked>,
    p: &mut P,
    inst: Inst,
    op: &TileOp,
    ptr: Value,
    mask: Option<Value>,
    changed: bool,
) {
    let code = exec.shared.code;
    let checker = checker(exec);
    let Some(sync) = &checker.sync else { return };
    let (reads, writes, sem, scope) = match op {
        TileOp::AtomicRmw { sem, scope, .. } => (true, true, *sem, *scope),
        TileOp::AtomicCas { sem, scope, .. } => (true, changed, *sem, *scope),
        TileOp::AtomicLoad { sem, scope, .. } => (true, false, *sem, *scope),
        TileOp::AtomicStore { sem, scope, .. } => (false, true, *sem, *scope),
        _ => return,
    };
    let how = Operation { reads, writes, sem, scope };
    let t = target(code, p, ptr, mask);
    let Some((lo, _)) = span(&t) else { return };
    if !checker.regions.find(t.origin, lo).is_some_and(|r| r.acquires) {
        return;
    }
    let (mut epoch, mut narrow) = (p.state.epoch, None);
    each_run(&t, &mut |at, bytes| {
        for at in (at..at + bytes).step_by(t.elem.size()) {
            let (next, met) = sync.operate(epoch, at, how);
            epoch = next;
            narrow = narrow.or(met.map(|other| (at, other)));
        }
    });
    let site = exec.site(p, inst);
    if let Some((at, other)) = narrow
        && exec.shared.findings.wants(&site, Id::NarrowScope, Severity::Error)
    {
        exec.shared.findings.add(&site, report_memory::narrow_scope(exec, &site, &t, at, other));
    }
    p.state.epoch = epoch;
}

/// An atomic operation on an element that nobody has written.
fn fresh_update(
    exec: &Exec<'_, Checked>,
    p: &P,
    inst: Inst,
    op: &TileOp,
    t: &Target<'_>,
    region: &Region,
) {
    let writes_blindly =
        matches!(op, TileOp::AtomicStore { .. } | TileOp::AtomicRmw { f: AtomicOp::Xchg, .. });
    let site = exec.site(p, inst);
    if region.fresh.is_none()
        || writes_blindly
        || !exec.shared.findings.wants(&site, Id::UninitializedRead, Severity::Error)
    {
        return;
    }
    let mut found = None;
    let walked = each_lane(t, None, &mut |chunk| {
        for i in 0..chunk.n {
            let Some(at) = chunk.address(i) else { continue };
            if found.is_none() && region.is_fresh(at as usize, t.elem.size()) {
                found = Some(chunk.start + i);
            }
        }
        Ok(())
    });
    debug_assert!(walked.is_ok());
    let Some(lane) = found.and_then(|lane| super::touch::lane_of(t, lane)) else { return };
    let memory = exec.shared.memory;
    let at = i128::from(lane.address);
    let Some(tensor) = memory.tensor(t.origin).or(memory.find(t.origin, at, at + 1, false)) else {
        return;
    };
    exec.shared.findings.add(&site, report_memory::uninitialized(&site, tensor, &lane));
}

/// Reads of what another lane of the program stored since the last barrier.
fn missing_barrier(
    exec: &Exec<'_, Checked>,
    p: &P,
    inst: Inst,
    t: &Target<'_>,
    (lo, hi): (i128, i128),
) {
    let site = exec.site(p, inst);
    if !exec.shared.findings.wants(&site, Id::MissingBarrier, Severity::Warning) {
        return;
    }
    for stored in p.state.recent.iter().rev().filter(|r| r.lo < hi && lo < r.hi) {
        let own = Target {
            addresses: &stored.addresses,
            origin: t.origin,
            mask: stored.mask.as_ref(),
            elem: stored.elem,
            shape: stored.shape,
        };
        if same_lanes(&own, t) || stored.shape.is_scalar() && t.shape.is_scalar() {
            continue;
        }
        let mut lanes: FxHashMap<i64, usize> = FxHashMap::default();
        let walked = each_lane(&own, None, &mut |chunk| {
            for i in 0..chunk.n {
                if let Some(at) = chunk.address(i) {
                    lanes.insert(at, chunk.start + i);
                }
            }
            Ok(())
        });
        debug_assert!(walked.is_ok());
        let mut found = None;
        let walked = each_lane(t, None, &mut |chunk| {
            for i in 0..chunk.n {
                let Some(at) = chunk.address(i) else { continue };
                let lane = chunk.start + i;
                if let Some(&from) = lanes.get(&at)
                    && found.is_none()
                    && (from != lane || stored.shape != t.shape)
                {
                    found = Some((lane, from));
                }
            }
            Ok(())
        });
        debug_assert!(walked.is_ok());
        if let Some((lane, from)) = found {
            let finding = report_memory::missing_barrier(
                exec,
                &site,
                t,
                lane,
                (stored.inst, &stored.shape, from),
            );
            exec.shared.findings.add(&site, finding);
            return;
        }
    }
    if p.state.forgot && exec.shared.findings.wants(&site, Id::CheckLimit, Severity::Note) {
        exec.shared.findings.add(&site, report_memory::forgotten(&site, REMEMBERED));
    }
}

/// Whether every lane reads where it wrote itself, without a look at each.
fn same_lanes(a: &Target<'_>, b: &Target<'_>) -> bool {
    a.shape == b.shape
        && match (a.addresses, b.addresses) {
            (Tile::Affine(x), Tile::Affine(y)) => x == y,
            (Tile::Dense(x), Tile::Dense(y)) => x.slab.same(&y.slab) && x.offset == y.offset,
            _ => false,
        }
}

/// Names of arguments of which the launch changed what it had read.
pub fn updated(checker: &Checker, shared: &Shared<'_>) -> Vec<String> {
    let func = &*shared.code.func;
    let adds =
        |inst: &Inst| matches!(func.op(*inst), TileOp::AtomicRmw { f, .. } if *f != AtomicOp::Xchg);
    let changes = |r: &Region| {
        let reads = !r.stores.is_empty() && !r.loads.is_empty();
        let stores = match (&r.shadow, &checker.sync) {
            (Some(shadow), None) => shadow.has_updates(),
            _ => reads,
        };
        r.atomics.iter().any(adds) || reads && stores
    };
    let tensors = shared.memory.tensors.iter().flatten();
    let of = |lo: usize| checker.regions.find(crate::memory::Origin::Unknown, lo as i128);
    tensors.filter(|t| of(t.address).is_some_and(changes)).map(|t| t.name.to_string()).collect()
}
