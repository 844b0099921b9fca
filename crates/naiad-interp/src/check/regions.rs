//! The memory of a launch as the checks see it: storages, with what is known of their elements.

use super::facts::Facts;
use super::shadow::Shadow;
use crate::access::{Target, each_lane};
use crate::memory::{Memory, Origin, Tensor};
use crate::poison;
use crate::tile::{Affine, Rect, Tile};
use naiad_ir::tile::{Scope, Sem, Tile as TileIr, TileOp};
use naiad_ir::{Function, Inst, Scalar, Value};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Storages that overlap, as one.
pub struct Region {
    pub lo: usize,
    pub hi: usize,
    /// Bytes of an element, as the narrowest access has them.
    pub size: usize,
    /// Ops that store plainly, load plainly, or are atomic.
    pub stores: Vec<Inst>,
    pub loads: Vec<Inst>,
    pub atomics: Vec<Inst>,
    /// Some access may order programs: an atomic whose result is used, or a volatile load.
    pub acquires: bool,
    /// Some atomic is for the threads of one program only.
    pub narrow: bool,
    /// Who wrote and read what; only where one program writes and another could be in its way.
    pub shadow: Option<Shadow>,
    /// Elements that nobody had written when the launch began, as bits.
    pub fresh: Option<Vec<u64>>,
    pub touched: AtomicBool,
}

pub struct Regions {
    pub all: Vec<Region>,
    of_arg: Vec<Option<usize>>,
}

/// An access of the kernel, by what its text shows.
struct Access {
    inst: Inst,
    ptr: Value,
    kind: Kind,
}

#[derive(Copy, Clone, PartialEq, Eq)]
enum Kind {
    Load { volatile: bool },
    Store,
    Atomic { acquires: bool, narrow: bool },
}

fn accesses(func: &Function<TileIr>) -> Vec<Access> {
    let mut used = vec![false; func.num_values()];
    func.walk(&mut |inst| {
        use naiad_ir::OpInfo;
        func.op(inst).each_value(&mut |v| used[v.index()] = true);
    });
    let mut all = Vec::new();
    func.walk(&mut |inst| {
        let is_used = func.results(inst).iter().any(|r| used[r.index()]);
        let takes = |sem: Sem| sem != Sem::Release && is_used;
        let (ptr, kind) = match func.op(inst) {
            TileOp::Load { ptr, hints, .. } => (*ptr, Kind::Load { volatile: hints.volatile }),
            TileOp::Store { ptr, .. } => (*ptr, Kind::Store),
            TileOp::AtomicRmw { ptr, sem, scope, .. }
            | TileOp::AtomicCas { ptr, sem, scope, .. }
            | TileOp::AtomicLoad { ptr, sem, scope, .. } => {
                let narrow = *scope == Scope::Cta;
                (*ptr, Kind::Atomic { acquires: takes(*sem), narrow })
            }
            TileOp::AtomicStore { ptr, scope, .. } => {
                (*ptr, Kind::Atomic { acquires: false, narrow: *scope == Scope::Cta })
            }
            _ => return,
        };
        all.push(Access { inst, ptr, kind });
    });
    all
}

impl Regions {
    pub fn new(
        func: &Function<TileIr>,
        facts: &Facts,
        memory: &Memory<'_>,
        fresh: &[Range<usize>],
    ) -> Regions {
        let mut spans: Vec<(usize, usize)> = memory
            .tensors
            .iter()
            .flatten()
            .filter(|t| t.len > 0)
            .map(|t| (t.lo, t.lo + t.len))
            .collect();
        spans.sort_unstable();
        let mut merged: Vec<(usize, usize)> = Vec::new();
        for (lo, hi) in spans {
            match merged.last_mut() {
                Some(last) if lo < last.1 => last.1 = last.1.max(hi),
                _ => merged.push((lo, hi)),
            }
        }
        let region = |&(lo, hi): &(usize, usize)| Region {
            lo,
            hi,
            size: 8,
            stores: Vec::new(),
            loads: Vec::new(),
            atomics: Vec::new(),
            acquires: false,
            narrow: false,
            shadow: None,
            fresh: None,
            touched: AtomicBool::new(false),
        };
        let mut all: Vec<Region> = merged.iter().map(region).collect();
        let find = |t: &Tensor<'_>| merged.iter().position(|&(lo, hi)| (lo..hi).contains(&t.lo));
        let of_arg: Vec<Option<usize>> = memory
            .tensors
            .iter()
            .map(|t| t.as_ref().filter(|t| t.len > 0).and_then(find))
            .collect();
        for access in accesses(func) {
            let base = facts.base(access.ptr).and_then(|arg| *of_arg.get(arg as usize)?);
            let size = func.ty(access.ptr).elem.pointer().map_or(1, |p| p.pointee.size());
            for (i, region) in all.iter_mut().enumerate() {
                if base.is_some_and(|b| b != i) {
                    continue;
                }
                region.size = region.size.min(size);
                match access.kind {
                    Kind::Load { volatile } => {
                        region.loads.push(access.inst);
                        region.acquires |= volatile;
                    }
                    Kind::Store => region.stores.push(access.inst),
                    Kind::Atomic { acquires, narrow } => {
                        region.narrow |= narrow;
                        region.atomics.push(access.inst);
                        region.acquires |= acquires;
                    }
                }
            }
        }
        for region in &mut all {
            if !region.stores.is_empty() {
                let elements = (region.hi - region.lo) / region.size;
                region.shadow = Some(Shadow::new(elements, region.size));
            }
            region.fresh = region.scan(fresh);
        }
        Regions { all, of_arg }
    }

    /// The region that an access goes to.
    pub fn find(&self, origin: Origin, address: i128) -> Option<&Region> {
        let holds = |r: &&Region| (r.lo as i128..r.hi as i128).contains(&address);
        let own = match origin {
            Origin::Arg(i) => self.of_arg.get(i as usize).copied().flatten().map(|i| &self.all[i]),
            Origin::Unknown => None,
        };
        own.filter(holds).or_else(|| self.all.iter().find(holds))
    }

    /// Whether the kernel may read what it writes.
    pub fn reads_what_it_writes(&self) -> bool {
        self.all
            .iter()
            .any(|r| !(r.loads.is_empty() || r.stores.is_empty() && r.atomics.is_empty()))
    }
}

impl Region {
    /// Elements that are still as uninitialized memory was made, as bits; none if there are none.
    fn scan(&self, fresh: &[Range<usize>]) -> Option<Vec<u64>> {
        let elements = (self.hi - self.lo) / self.size;
        let mut bits: Option<Vec<u64>> = None;
        for range in fresh {
            let first = range.start.max(self.lo).saturating_sub(self.lo).div_ceil(self.size);
            let end = (range.end.min(self.hi).max(self.lo) - self.lo) / self.size;
            if first >= end {
                continue;
            }
            let bits = bits.get_or_insert_with(|| vec![0; elements.div_ceil(64)]);
            // SAFETY: part of the storage of an argument.
            unsafe {
                poison::scan(self.address(first)..self.address(end), self.size, &mut |i| {
                    bits[(first + i) / 64] |= 1 << ((first + i) % 64);
                });
            }
        }
        bits.filter(|bits| bits.iter().any(|&b| b != 0))
    }

    /// Whether an element was not written before the launch and is not yet.
    pub fn is_fresh(&self, address: usize, size: usize) -> bool {
        let Some(bits) = &self.fresh else { return false };
        let i = (address - self.lo) / self.size;
        let was = bits.get(i / 64).is_some_and(|b| b >> (i % 64) & 1 != 0);
        // A small element may be written as what it was.
        let unwritten = || self.shadow.as_ref().is_none_or(|s| s.writer(i) == 0);
        // SAFETY: an element of the storage.
        was && unsafe { poison::is_fresh(address, size) } && unwritten()
    }

    /// The elements of a run of bytes: the first, and how many.
    pub fn elements(&self, address: usize, bytes: usize) -> (usize, usize) {
        let first = (address - self.lo) / self.size;
        (first, (address + bytes - 1 - self.lo) / self.size + 1 - first)
    }

    pub fn touch(&self) {
        if !self.touched.load(Relaxed) {
            self.touched.store(true, Relaxed);
        }
    }

    pub fn address(&self, element: usize) -> usize {
        self.lo + element * self.size
    }
}

/// The addresses `lo..hi` between which the lanes lie that are not masked off; none if all are.
pub fn span(t: &Target<'_>) -> Option<(i128, i128)> {
    let Some((steps, range)) = formula(t) else {
        let (mut lo, mut hi) = (i64::MAX, i64::MIN);
        let walked = each_lane(t, None, &mut |chunk| {
            for i in 0..chunk.n {
                if let Some(at) = chunk.address(i) {
                    (lo, hi) = (lo.min(at), hi.max(at));
                }
            }
            Ok(())
        });
        debug_assert!(walked.is_ok());
        return (lo <= hi).then(|| (i128::from(lo), i128::from(hi) + t.elem.size() as i128));
    };
    let mut lo = i128::from(steps.base);
    let mut hi = lo;
    for (&step, &(first, end)) in steps.steps.iter().zip(&range) {
        let (a, b) = (i128::from(step) * i128::from(first), i128::from(step) * i128::from(end - 1));
        lo += a.min(b);
        hi += a.max(b);
    }
    Some((lo, hi + t.elem.size() as i128))
}

fn formula(t: &Target<'_>) -> Option<(Affine, Rect)> {
    let range: Rect = match t.mask {
        None | Some(Tile::Uniform(1..)) => t.shape.dims().map(|n| (0, n as u32)).collect(),
        Some(Tile::Rect(r)) => r.clone(),
        Some(Tile::Uniform(0) | Tile::Affine(_) | Tile::Dense(_)) => return None,
    };
    Some((Affine::of(t.addresses, Scalar::I64, &t.shape)?, range))
}

/// Calls `f` with the address and the length in bytes of runs that together are what an access touches.
pub fn each_run(t: &Target<'_>, f: &mut dyn FnMut(usize, usize)) {
    let size = t.elem.size();
    if t.mask.and_then(Tile::uniform) == Some(0) {
        return;
    }
    let Some((steps, range)) = formula(t) else {
        let mut run: Option<(usize, usize)> = None;
        let walked = each_lane(t, None, &mut |chunk| {
            for i in 0..chunk.n {
                let Some(at) = chunk.address(i) else { continue };
                let at = at as usize;
                match &mut run {
                    Some((start, len)) if *start + *len == at => *len += size,
                    Some((start, len)) => {
                        f(*start, *len);
                        run = Some((at, size));
                    }
                    None => run = Some((at, size)),
                }
            }
            Ok(())
        });
        debug_assert!(walked.is_ok());
        if let Some((start, len)) = run {
            f(start, len);
        }
        return;
    };
    let mut base = steps.base;
    // Axes as steps of bytes and counts, all steps positive.
    let mut axes: SmallVec<[(i64, i64); 4]> = SmallVec::new();
    for (&step, &(lo, hi)) in steps.steps.iter().zip(&range) {
        let n = i64::from(hi - lo);
        base += step * i64::from(lo);
        if step < 0 {
            base += step * (n - 1);
        }
        if step != 0 && n > 1 {
            axes.push((step.abs(), n));
        }
    }
    axes.sort_unstable();
    // Axes that go on where the run ends make it longer.
    let mut run = size as i64;
    let mut rest: SmallVec<[(i64, i64); 4]> = SmallVec::new();
    for (step, n) in axes {
        if step == run && rest.is_empty() {
            run *= n;
        } else {
            rest.push((step, n));
        }
    }
    walk(base, run, &rest, f);
}

fn walk(base: i64, run: i64, axes: &[(i64, i64)], f: &mut dyn FnMut(usize, usize)) {
    let Some((&(step, n), rest)) = axes.split_last() else { return f(base as usize, run as usize) };
    for i in 0..n {
        walk(base + i * step, run, rest, f);
    }
}
