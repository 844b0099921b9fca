//! The loop nest of a group.
//!
//! One axis is the vector axis; the others are loops around it, in the order of the tile. The masks of
//! the group's loads and stores bound the loops, as far as they compare an index with a number:
//!
//! ```text
//!                      vector axis
//!              lo          whole   hi            n        in    every bound holds: no mask is asked
//!           +---+------------+---+--+------------+        past  the vector axis' bound does not hold
//!    rows   | s |     in     | s |    past   | s |        off   a bound of the rows does not hold
//!   inside  |   |            |   |           |   |        s     single lanes, as they are written
//!           +---+------------+---+-----------+---+
//!    rows   |                off                 |        not fast: s from 0 to n in every row
//!   outside |                                    |
//!           +------------------------------------+
//! ```
//!
//! Where accesses can be masked, the lanes from `whole` on are a vector whose mask is asked, and `past`
//! begins behind it.
//!
//! What is not inside is made only if somebody wants it: nobody does if all roots are stores with these
//! bounds in their masks.

use super::access::{Access, Conditions, Reach};
use super::group::{Group, Root};
use super::lanes::{Bound, Map, Nest, bounds, identity};
use super::row::Sums;
use super::{Buffer, Dist, Param, Place, Result, stored};
use naiad_ir::scalar::BinaryFn;
use naiad_ir::thread::{ThreadElem, ThreadOp};
use naiad_ir::tile::Constant;
use naiad_ir::{Scalar, Shape, Value};
use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};

/// Bodies with no more than this weight are made twice as wide: they wait for memory.
const LIGHT: u32 = 14;

/// A loop nest that is being made.
pub(super) struct Job {
    pub roots: Vec<Made>,
    pub rank: usize,
    /// All conditions of the fast version; none where they are known to hold.
    pub ok: Option<Value>,
    /// Bounds of the nest's loops, and the ranges that they leave of each axis.
    pub bounds: Vec<Bound>,
    pub range: Vec<(Value, Value)>,
    /// Some root wants lanes outside of the bounds.
    pub outside: bool,
    /// What whole vectors leave over inside the bounds is one more vector, which is masked.
    pub masked: bool,
}

/// A root with where its results go.
pub(super) struct Made {
    pub root: Root,
    pub into: Target,
}

pub(super) enum Target {
    Nothing,
    /// Each lane its element.
    Tile(Buffer),
    /// Lanes of one row are combined in registers, and the row's result goes to the buffer, if the tile
    /// has other rows.
    Row {
        buffer: Option<Buffer>,
        map: Map,
    },
    /// Rows are combined in memory.
    Rows {
        buffer: Buffer,
        map: Map,
    },
}

impl Dist<'_> {
    /// Makes the loops of a group.
    pub(super) fn emit(&mut self, group: Group) -> Result<()> {
        let wants = self.wants(&group.roots, group.shape);
        if let Some(&v) = wants.missing.first() {
            return Err(super::Unsupported { what: format!("{v} before it is there"), inst: None });
        }
        let accesses = self.accesses(&group, &wants.tiles);
        let va = self.vector_axis(&group, &accesses);
        let bounds = self.loop_bounds(&group, &accesses);
        let masked = self.masks_rest(&group, &accesses, &bounds, va);
        let lanes = self.lane_count(&group, va, &wants.tiles, masked || bounds.is_empty());
        let zero = self.b.i64(0);
        let mut n = Nest {
            shape: group.shape,
            va,
            lanes,
            index: smallvec![zero; group.shape.rank()],
            vector: false,
            memo: Vec::new(),
            rows: Vec::new(),
            reaches: FxHashMap::default(),
            known: Vec::new(),
            fits: Vec::new(),
        };
        let mut conditions = Conditions::default();
        let range = self.ranges(&mut n, &bounds, &accesses, &mut conditions)?;
        let mut blind = false;
        for (access, map) in &accesses {
            let reach = self.reach(access, &mut conditions)?;
            if matches!(reach, Reach::Lanes) && !self.is_bounded(access, map, &bounds) {
                blind = true;
            }
            n.reaches.insert((access.inst, map.clone()), reach);
        }
        n.fits = std::mem::take(&mut conditions.fits);
        let ok = self.all(conditions);
        let outside = !bounds.is_empty()
            && (blind || group.roots.iter().any(|r| !self.ends_at(r, &bounds, group.shape.rank())));
        let rank = group.shape.rank();
        let roots = self.targets(&n, group.roots)?;
        let masked = masked && n.lanes > 1;
        let job = Job { roots, rank, ok, bounds, range, outside, masked };
        n.open();
        let axes: Vec<usize> = (0..rank).filter(|&d| d != va).collect();
        let results = match self.as_move(&n, &job) {
            Some(what) => {
                self.fast_or_loop(&mut n, &job, &axes, |d, n| d.make_move(n, &job, &what))?
            }
            None if only_checks(&n, &job) => {
                self.fast_or_loop(&mut n, &job, &axes, |_, _| Ok(()))?
            }
            None => self.outer(&mut n, &job, &axes)?,
        };
        n.close();
        self.finish(job, results)
    }

    /// Something at once where the fast version may run, else loops over single elements.
    fn fast_or_loop(
        &mut self,
        n: &mut Nest,
        job: &Job,
        axes: &[usize],
        fast: impl FnOnce(&mut Self, &Nest) -> Result<()>,
    ) -> Result<Sums> {
        let Some(ok) = job.ok else {
            fast(self, n)?;
            return Ok(Sums::default());
        };
        let branch = self.b.begin_branch();
        fast(self, n)?;
        let then = self.b.end_branch(branch, Vec::new());
        let branch = self.b.begin_branch();
        n.open();
        self.outer(n, job, axes)?;
        n.close();
        let otherwise = self.b.end_branch(branch, Vec::new());
        self.b.run(ThreadOp::If { cond: ok, then, otherwise });
        Ok(Sums::default())
    }

    /// The loads and stores of a group, each with the map by which it is reached.
    fn accesses(&self, group: &Group, tiles: &[(Value, Map)]) -> Vec<(Access, Map)> {
        let mut all = Vec::new();
        for root in &group.roots {
            if let Root::Store { inst } = root {
                all.extend(self.access(*inst).map(|a| (a, identity(group.shape.rank()))));
            }
        }
        for (v, map) in tiles {
            if let naiad_ir::Def::Result(inst, _) = self.f.def(*v) {
                all.extend(self.access(inst).map(|a| (a, map.clone())));
            }
        }
        all
    }

    /// The axis along which most accesses are contiguous, the last one if that decides nothing.
    fn vector_axis(&mut self, group: &Group, accesses: &[(Access, Map)]) -> usize {
        let mut score = vec![0u32; group.shape.rank()];
        for (access, map) in accesses {
            let Some(address) = self.analysis.address(access.ptr) else { continue };
            for (step, to) in address.offset.steps.iter().zip(map) {
                if let Some(to) = to
                    && step.constant() == Some(access.elem.size() as i64)
                {
                    score[usize::from(*to)] += 2;
                }
            }
        }
        for (d, n) in group.shape.dims().enumerate() {
            // A short axis makes short vectors.
            score[d] = (score[d] + 1) * (n.min(8) as u32);
        }
        let best = (0..score.len()).rev().max_by_key(|&d| (score[d], d));
        best.unwrap_or(0)
    }

    fn lane_count(&self, group: &Group, va: usize, tiles: &[(Value, Map)], many: bool) -> u32 {
        let mut weight = 0;
        let mut wide = false;
        for (v, map) in tiles {
            if let naiad_ir::Def::Result(inst, _) = self.f.def(*v) {
                weight += super::plan::weight(self.f, inst);
            }
            let data = self.f.ty(*v).elem.scalar().is_some_and(|s| s.is_float() && s.bits() == 64);
            wide |= data && map.contains(&Some(va as u8));
        }
        let sums =
            group.roots.iter().any(|r| matches!(r, Root::Reduce { axis, .. } if *axis == va));
        let bytes = match weight <= LIGHT {
            // A sum waits for itself, so there are several; but what many lanes leave over would take
            // long one by one.
            true if sums && many => (4 * self.vector_bytes).clamp(64, 128),
            true => 64,
            false => 32.max(self.vector_bytes),
        };
        let lanes = bytes / if wide { 8 } else { 4 };
        lanes.min(group.shape.dim(va) as u32)
    }

    /// The bounds by which the nest's loops are bounded: of each axis and side the first one, of stores
    /// before that of loads.
    fn loop_bounds(&mut self, group: &Group, accesses: &[(Access, Map)]) -> Vec<Bound> {
        let mut all: Vec<Bound> = Vec::new();
        for (access, map) in accesses {
            let Some(mask) = access.mask else { continue };
            for c in self.analysis.conjuncts(mask) {
                let Some(bound) = bounds(&[c], map).and_then(|mut b| b.pop()) else { continue };
                let same_side = |have: &Bound| match (have, &bound) {
                    (Bound::Below(d, _), Bound::Below(e, _)) => d == e,
                    (Bound::From(d, _), Bound::From(e, _)) => d == e,
                    (Bound::Uniform(v), Bound::Uniform(w)) => v == w,
                    _ => false,
                };
                let short = match bound {
                    Bound::Below(d, _) | Bound::From(d, _) => group.shape.dim(d.into()) == 1,
                    Bound::Uniform(_) => false,
                };
                if !short && !all.iter().any(same_side) {
                    all.push(bound);
                }
            }
        }
        all
    }

    /// The range that the bounds leave of each axis, and the conditions under which it does.
    fn ranges(
        &mut self,
        n: &mut Nest,
        all: &[Bound],
        accesses: &[(Access, Map)],
        conditions: &mut Conditions,
    ) -> Result<Vec<(Value, Value)>> {
        let zero = self.b.i64(0);
        let mut range: Vec<(Value, Value)> = Vec::new();
        for d in n.shape.dims() {
            range.push((zero, self.b.i64(d as i64)));
        }
        for bound in all {
            match bound {
                Bound::Below(d, end) => {
                    let end = self.expr(end)?;
                    let r = &mut range[usize::from(*d)].1;
                    let limit = *r;
                    let end = self.max(end, zero);
                    range[usize::from(*d)].1 = self.min(end, limit);
                }
                Bound::From(d, start) => {
                    let start = self.expr(start)?;
                    let end = self.b.i64(n.shape.dim(usize::from(*d)) as i64);
                    let start = self.max(start, zero);
                    range[usize::from(*d)].0 = self.min(start, end);
                }
                Bound::Uniform(v) => {
                    let cond = self.scalar(*v)?;
                    let end = range[n.va].1;
                    range[n.va].1 = self.b.select(cond, end, zero);
                }
            }
        }
        for (lo, hi) in &mut range {
            if self.b.known_int(*lo) != Some(0) {
                // Past its end a range would count backwards.
                *lo = self.min(*lo, *hi);
            }
        }
        for (access, map) in accesses {
            let Some(mask) = access.mask else { continue };
            for c in self.analysis.conjuncts(mask) {
                let bound = bounds(std::slice::from_ref(&c), map).and_then(|mut b| b.pop());
                if bound.is_none_or(|b| !all.contains(&b)) {
                    continue;
                }
                for fit in c.fits() {
                    self.fit(fit, conditions)?;
                }
            }
        }
        Ok(range)
    }

    fn all(&mut self, conditions: Conditions) -> Option<Value> {
        let mut all: Option<Value> = None;
        for c in conditions.all {
            all = Some(match all {
                Some(a) => self.b.binary(BinaryFn::And, a, c),
                None => c,
            });
        }
        all
    }

    /// Whether every lane that the access touches is within the bounds.
    fn is_bounded(&mut self, access: &Access, map: &Map, all: &[Bound]) -> bool {
        let conjuncts = access.mask.map_or_else(Vec::new, |m| self.analysis.conjuncts(m));
        let own: Vec<Bound> = conjuncts
            .iter()
            .filter_map(|c| bounds(std::slice::from_ref(c), map).and_then(|mut b| b.pop()))
            .collect();
        all.iter().all(|b| own.contains(b))
    }

    /// Whether a root has nothing to do outside of the bounds.
    fn ends_at(&mut self, root: &Root, all: &[Bound], rank: usize) -> bool {
        match root {
            Root::Store { inst } | Root::Check { inst } => match self.access(*inst) {
                Some(access) => self.is_bounded(&access, &identity(rank), all),
                None => false,
            },
            Root::Reduce { .. } | Root::Keep { .. } => false,
        }
    }

    /// Scratch memory for a tile in row-major order, or with the vector axis last.
    pub(super) fn new_buffer(
        &mut self,
        elem: ThreadElem,
        shape: Shape,
        last: Option<usize>,
    ) -> Buffer {
        let mut strides: SmallVec<[i64; 4]> = smallvec![0; shape.rank()];
        let mut step = elem.size() as i64;
        let mut order: Vec<usize> = (0..shape.rank()).collect();
        if let Some(last) = last {
            order.retain(|&d| d != last);
            order.push(last);
        }
        for &d in order.iter().rev() {
            strides[d] = step;
            step *= shape.dim(d) as i64;
        }
        let bytes = shape.numel() * elem.size();
        // Loops that go through scratch memory ask ahead for what is far.
        self.param(Param::Far);
        let addr = self.b.op(ThreadOp::Scratch { bytes, align: 64 });
        Buffer { addr, strides, elem }
    }

    fn targets(&mut self, n: &Nest, roots: Vec<Root>) -> Result<Vec<Made>> {
        let mut all = Vec::new();
        for root in roots {
            let into = match &root {
                Root::Store { .. } | Root::Check { .. } => Target::Nothing,
                Root::Keep { into: Some(buffer), .. } => Target::Tile(buffer.clone()),
                Root::Keep { value, into: None } => {
                    let elem = stored(self.f.ty(*value).elem);
                    Target::Tile(self.new_buffer(elem, n.shape, Some(n.va)))
                }
                Root::Reduce { input, f, axis, start, .. } => {
                    let elem = self.sum_type(*input);
                    let shape = n.shape.without(*axis);
                    let map: Map = identity(n.shape.rank())
                        .into_iter()
                        .filter(|a| *a != Some(*axis as u8))
                        .collect();
                    if *axis != n.va {
                        let last = map.iter().position(|a| *a == Some(n.va as u8));
                        let buffer = self.new_buffer(elem.into(), shape, last);
                        let start = start.unwrap_or_else(|| {
                            let bits = f.identity(elem).unwrap_or(0);
                            Constant { ty: elem, bits }
                        });
                        self.fill(&buffer, shape.numel(), start);
                        Target::Rows { buffer, map }
                    } else if shape.is_scalar() {
                        Target::Row { buffer: None, map }
                    } else {
                        let buffer = self.new_buffer(elem.into(), shape, None);
                        Target::Row { buffer: Some(buffer), map }
                    }
                }
            };
            all.push(Made { root, into });
        }
        Ok(all)
    }

    /// The type in which a tile's elements are combined.
    pub(super) fn sum_type(&self, input: Value) -> Scalar {
        self.f.ty(input).elem.scalar().unwrap_or(Scalar::I64).compute_type()
    }

    fn fill(&mut self, buffer: &Buffer, count: usize, start: Constant) {
        let lanes = count.min(16) as u32;
        let value = self.b.constant(start, lanes);
        let bounds = [0, count as i64, i64::from(lanes)].map(|c| self.b.i64(c));
        let l = self.b.begin_for(bounds, Vec::new());
        let size = self.b.i64(start.ty.size() as i64);
        let offset = self.b.mul(l.iv, size);
        let addr = self.b.addr_add(buffer.addr, offset);
        self.b.store(addr, 0, value);
        self.b.end_for(l, Vec::new());
    }

    /// Loops over the axes around the vector axis, then the rows inside.
    fn outer(&mut self, n: &mut Nest, job: &Job, axes: &[usize]) -> Result<Sums> {
        let Some((&axis, inner)) = axes.split_first() else { return self.row(n, job) };
        let (lo, hi) = self.loop_range(n, job, axis);
        let one = self.b.i64(1);
        let l = self.b.begin_for([lo, hi, one], Vec::new());
        n.index[axis] = l.iv;
        n.open();
        self.outer(n, job, inner)?;
        n.close();
        self.b.end_for(l, Vec::new());
        Ok(Sums::default())
    }

    /// The range of a loop around rows: the bounds', unless rows outside are wanted too.
    fn loop_range(&mut self, n: &Nest, job: &Job, axis: usize) -> (Value, Value) {
        let (zero, end) = (self.b.i64(0), self.b.i64(n.shape.dim(axis) as i64));
        if job.outside {
            return (zero, end);
        }
        let (lo, hi) = job.range[axis];
        match job.ok {
            Some(ok) if (lo, hi) != (zero, end) => {
                (self.pick(ok, lo, zero), self.pick(ok, hi, end))
            }
            _ => (lo, hi),
        }
    }

    pub(super) fn pick(&mut self, cond: Value, yes: Value, no: Value) -> Value {
        let same = yes == no
            || self.b.known_int(yes).is_some() && self.b.known_int(yes) == self.b.known_int(no);
        if same { yes } else { self.b.select(cond, yes, no) }
    }

    /// Notes where the results are.
    fn finish(&mut self, job: Job, results: Sums) -> Result<()> {
        let mut scalars = results.one.into_iter();
        for made in job.roots {
            match (made.root, made.into) {
                (Root::Keep { value, into: None }, Target::Tile(buffer)) => {
                    self.places.insert(value, Place::Buffer(buffer));
                }
                (Root::Reduce { inst, .. }, Target::Row { buffer, .. }) => {
                    let result = self.f.results(inst)[0];
                    let place = match buffer {
                        Some(buffer) => Place::Buffer(buffer),
                        None => match scalars.next() {
                            Some(s) => Place::Scalar(s),
                            None => continue,
                        },
                    };
                    self.places.insert(result, place);
                }
                (Root::Reduce { inst, .. }, Target::Rows { buffer, .. }) => {
                    let result = self.f.results(inst)[0];
                    self.places.insert(result, Place::Buffer(buffer));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Whether the fast version, once entered, has nothing to do: its loads are inside.
fn only_checks(n: &Nest, job: &Job) -> bool {
    job.roots.iter().all(|made| matches!(made.root, Root::Check { .. }))
        && !n.reaches.values().any(|r| matches!(r, Reach::Lanes))
}
