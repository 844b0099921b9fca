//! Which roots share a loop nest, and which tiles are kept.
//!
//! A group is a number of roots of one shape, in program order, that are run together lane by lane. A
//! root joins the open group if nothing that it wants is made by the group as a whole, and if running
//! it lane by lane beside the others changes nothing: see [`Dist::may_join`].

use super::lanes::{Map, identity};
use super::plan::{self, Class};
use super::{Buffer, Dist, Place, Result};
use naiad_ir::scalar::BinaryFn;
use naiad_ir::tile::{Constant, TileOp};
use naiad_ir::{Def, Inst, Shape, Value};
use naiad_opt::affine::{Affine, Fit, Within};
use naiad_opt::origin::Origin;
use rustc_hash::{FxHashMap, FxHashSet};

/// Roots of one loop nest.
pub(super) struct Group {
    pub shape: Shape,
    pub roots: Vec<Root>,
}

#[derive(Clone)]
pub(super) enum Root {
    Store {
        inst: Inst,
    },
    /// A reduction by a single function.
    Reduce {
        inst: Inst,
        input: Value,
        f: BinaryFn,
        axis: usize,
        /// A constant that takes part, as if it were an element of each row.
        start: Option<Constant>,
    },
    /// A load that goes wrong where it stands, if it does, though nobody may come to want it.
    Check {
        inst: Inst,
    },
    /// A tile that is put in scratch memory, in this buffer if there is one.
    Keep {
        value: Value,
        into: Option<Buffer>,
    },
}

/// What a root wants, directly and through virtual tiles.
#[derive(Default)]
pub(super) struct Wants {
    /// Every virtual tile, with where its elements lie, users before what they use.
    pub tiles: Vec<(Value, Map)>,
    /// Values that nothing has computed yet.
    pub missing: Vec<Value>,
    pub loads: Vec<Read>,
}

/// A load that a root wants.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) struct Read {
    inst: Inst,
    /// Its lane is the nest's, and not another one as behind a transposition.
    in_place: bool,
}

/// A lane's cost from which a tile that is wanted again is kept, next to an addition.
pub(super) const DEAR: u32 = 8;

impl Root {
    pub fn operands(&self, dist: &Dist<'_>, rank: usize) -> Vec<(Value, Map)> {
        match self {
            Root::Store { inst } => dist.operands(*inst, &identity(rank)).to_vec(),
            Root::Reduce { input, .. } => vec![(*input, identity(rank))],
            Root::Keep { value, .. } => vec![(*value, identity(rank))],
            Root::Check { inst } => vec![(dist.f.results(*inst)[0], identity(rank))],
        }
    }
}

impl Dist<'_> {
    fn root_shape(&self, root: &Root) -> Shape {
        match root {
            Root::Store { inst } | Root::Check { inst } => match self.access(*inst) {
                Some(access) => self.shape(access.ptr),
                None => Shape::SCALAR,
            },
            Root::Reduce { input, .. } => self.shape(*input),
            Root::Keep { value, .. } => self.shape(*value),
        }
    }

    pub(super) fn wants(&self, roots: &[Root], shape: Shape) -> Wants {
        let mut wants = Wants::default();
        let mut seen = FxHashSet::default();
        let mut todo: Vec<(Value, Map)> = Vec::new();
        for root in roots {
            todo.extend(root.operands(self, shape.rank()));
        }
        todo.reverse();
        while let Some((v, map)) = todo.pop() {
            if self.places.has(v) || !seen.insert((v, map.clone())) {
                continue;
            }
            let inst = match self.f.def(v) {
                Def::Result(inst, _) if plan::class(self.f, inst) == Class::Virtual => inst,
                _ => {
                    wants.missing.push(v);
                    continue;
                }
            };
            if self.f.ty(v).is_scalar() {
                wants.missing.push(v);
                continue;
            }
            if matches!(self.f.op(inst), TileOp::Load { .. }) {
                let read = Read { inst, in_place: map == identity(shape.rank()) };
                if !wants.loads.contains(&read) {
                    wants.loads.push(read);
                }
            }
            todo.extend(self.operands(inst, &map));
            wants.tiles.push((v, map));
        }
        wants
    }

    /// Whether memory reached through the two pointers may be the same.
    pub(super) fn may_alias(&self, p: Value, q: Value) -> bool {
        match (self.plan.origin(p), self.plan.origin(q)) {
            (Origin::Arg(i), Origin::Arg(j)) => self.facts.may_overlap(i, j),
            _ => true,
        }
    }

    /// Whether two accesses of one shape touch in each lane the same element, which no other lane of
    /// either touches.
    fn same_lanes(&mut self, p: Value, q: Value) -> bool {
        let (Some(a), Some(b)) = (self.analysis.address(p), self.analysis.address(q)) else {
            return false;
        };
        let size = self.f.ty(p).elem.pointer().map_or(0, |x| x.pointee.size());
        let same = self.f.ty(p).elem == self.f.ty(q).elem
            && self.shape(p) == self.shape(q)
            && a.pointer == b.pointer
            && a.offset.base == b.offset.base
            && a.offset.steps == b.offset.steps;
        let wraps = a.offset.fits.iter().chain(&b.offset.fits).all(|fit| wraps_widely(fit));
        same && wraps && apart(&a.offset, self.shape(p), size)
    }

    fn ptr(&self, inst: Inst) -> Value {
        self.access(inst).map_or_else(|| unreachable!("{inst} is no access"), |a| a.ptr)
    }

    /// Whether what a root reads in a lane may be touched by a store in another lane.
    fn disturbs(&mut self, read: Read, store: Inst) -> bool {
        let (p, q) = (self.ptr(read.inst), self.ptr(store));
        self.may_alias(p, q) && !(read.in_place && self.same_lanes(p, q))
    }

    /// Whether a root may be run beside those of the open group, lane by lane:
    ///
    /// - it wants no result that the group gives only at its end;
    /// - no load of the group sees what the root stores, except in the lane that stores it after;
    /// - no load of the root stands before a store of the group that changes what it loads;
    /// - of two stores to one place the later one comes last in each lane.
    fn may_join(&mut self, root: &Root, wants: &Wants) -> bool {
        let Some(group) = self.open.take() else { return false };
        let fits = self.root_shape(root) == group.shape && self.is_safe_beside(root, wants, &group);
        self.open = Some(group);
        fits
    }

    fn is_safe_beside(&mut self, root: &Root, wants: &Wants, group: &Group) -> bool {
        if !wants.missing.is_empty() {
            return false;
        }
        let rank = group.shape.rank();
        let kept: Vec<Value> = group
            .roots
            .iter()
            .filter_map(|r| match r {
                Root::Keep { value, .. } => Some(*value),
                Root::Store { .. } | Root::Reduce { .. } | Root::Check { .. } => None,
            })
            .collect();
        let own = identity(rank);
        if wants.tiles.iter().any(|(v, map)| kept.contains(v) && *map != own) {
            return false;
        }
        let stores: Vec<Inst> = group
            .roots
            .iter()
            .filter_map(|r| match r {
                Root::Store { inst } => Some(*inst),
                Root::Reduce { .. } | Root::Keep { .. } | Root::Check { .. } => None,
            })
            .collect();
        if stores.is_empty() && !matches!(root, Root::Store { .. }) {
            return true;
        }
        let before = self.wants(&group.roots, group.shape);
        for &read in &wants.loads {
            for &store in &stores {
                let early = self.plan.position(read.inst) < self.plan.position(store);
                let harmless = match early {
                    // Made already, before the store, in the same lane.
                    true if before.loads.contains(&read) => true,
                    true => !self.may_alias(self.ptr(read.inst), self.ptr(store)),
                    false => !self.disturbs(read, store),
                };
                if !harmless {
                    return false;
                }
            }
        }
        if let Root::Store { inst } = root {
            let written = stores.iter().map(|&inst| Read { inst, in_place: true });
            for other in before.loads.iter().chain(&wants.loads).copied().chain(written) {
                if self.disturbs(other, *inst) {
                    return false;
                }
            }
        }
        true
    }

    /// Adds a root: to the open group if it may join, else to one of its own.
    pub(super) fn add_root(&mut self, root: Root) -> Result<()> {
        let shape = self.root_shape(&root);
        let wants = self.wants(std::slice::from_ref(&root), shape);
        if !self.may_join(&root, &wants) {
            self.close_group()?;
            if let Root::Store { inst } = root {
                // Its own loads must not see what it stores in other lanes.
                let wants = self.wants(std::slice::from_ref(&root), shape);
                let disturbed: Vec<Read> =
                    wants.loads.into_iter().filter(|&l| self.disturbs(l, inst)).collect();
                for load in disturbed {
                    let value = self.f.results(load.inst)[0];
                    self.keep(value)?;
                }
                self.close_group()?;
            }
            self.open = Some(Group { shape, roots: Vec::new() });
        }
        if let Some(group) = &mut self.open {
            group.roots.push(root);
        }
        Ok(())
    }

    /// Sees to it that a tile is kept in scratch memory, when the open group has been run.
    pub(super) fn keep(&mut self, value: Value) -> Result<()> {
        if self.places.has(value) || self.is_being_kept(value) {
            return Ok(());
        }
        self.add_root(Root::Keep { value, into: None })
    }

    fn is_being_kept(&self, value: Value) -> bool {
        self.open.as_ref().is_some_and(|g| {
            g.roots.iter().any(|r| matches!(r, Root::Keep { value: v, into: None } if *v == value))
        })
    }

    /// Whether the open group makes this value.
    pub(super) fn is_pending(&self, value: Value) -> bool {
        let Def::Result(inst, _) = self.f.def(value) else { return false };
        self.open.as_ref().is_some_and(|g| {
            g.roots.iter().any(|r| matches!(r, Root::Reduce { inst: i, .. } if *i == inst))
        }) || self.is_being_kept(value)
    }

    /// Runs the open group.
    pub(super) fn close_group(&mut self) -> Result<()> {
        let Some(mut group) = self.open.take() else { return Ok(()) };
        if !self.in_version {
            self.keep_for_later(&mut group)?;
        }
        self.emit(group)
    }

    /// Keeps dear tiles of the group that are wanted again after it: those of its shape as roots of it,
    /// others in a group of their own before it.
    fn keep_for_later(&mut self, group: &mut Group) -> Result<()> {
        let wants = self.wants(&group.roots, group.shape);
        let own = identity(group.shape.rank());
        let mut chosen: FxHashSet<Value> = group
            .roots
            .iter()
            .filter_map(|r| match r {
                Root::Keep { value, into: None } => Some(*value),
                _ => None,
            })
            .collect();
        let mut tiles: Vec<&(Value, Map)> = wants.tiles.iter().collect();
        // Users first: what only a kept tile wants is not wanted again.
        tiles.sort_by_key(|(v, _)| std::cmp::Reverse(*v));
        let mut costs = FxHashMap::default();
        let mut before = Vec::new();
        let mut beside = Vec::new();
        for (v, map) in tiles {
            if chosen.contains(v)
                || self.cost(*v, &mut costs) < DEAR
                || !self.wanted(*v, &chosen, &mut FxHashMap::default())
            {
                continue;
            }
            let at = self.first_place(*v, group);
            if *map == own && self.shape(*v) == group.shape {
                beside.push((at, *v));
            } else if at > 0 {
                continue;
            } else if !self.shape(*v).is_scalar() {
                before.push(*v);
            }
            chosen.insert(*v);
        }
        // As early as may be: what is kept is made where it is first wanted, and the others use the
        // lanes. From behind, and of those in one place users before what they use.
        beside.sort_by_key(|&(at, _)| std::cmp::Reverse(at));
        for (at, value) in beside {
            group.roots.insert(at, Root::Keep { value, into: None });
        }
        for value in before.into_iter().rev() {
            let shape = self.shape(value);
            let roots = vec![Root::Keep { value, into: None }];
            self.emit(Group { shape, roots })?;
        }
        Ok(())
    }

    /// The first place among a group's roots where a tile may be made: behind every store that its loads
    /// must see.
    fn first_place(&self, v: Value, group: &Group) -> usize {
        let wants = self.wants(&[Root::Keep { value: v, into: None }], self.shape(v));
        let sees = |root: &Root| match root {
            Root::Store { inst } => wants.loads.iter().any(|read| {
                self.plan.position(read.inst) > self.plan.position(*inst)
                    && self.may_alias(self.ptr(read.inst), self.ptr(*inst))
            }),
            Root::Reduce { .. } | Root::Keep { .. } | Root::Check { .. } => false,
        };
        group.roots.iter().rposition(sees).map_or(0, |last| last + 1)
    }

    /// Whether some op wants the tile that is not yet a root, not by way of a kept one.
    fn wanted(
        &self,
        v: Value,
        chosen: &FxHashSet<Value>,
        known: &mut FxHashMap<Value, bool>,
    ) -> bool {
        if let Some(&wanted) = known.get(&v) {
            return wanted;
        }
        let wanted = self.plan.users(v).iter().any(|&user| {
            if plan::class(self.f, user) != Class::Virtual {
                return self.plan.position(user) >= self.now;
            }
            self.f.results(user).iter().any(|&r| {
                let kept = self.places.has(r) || chosen.contains(&r);
                !kept && self.plan.last_use(r) >= self.now && self.wanted(r, chosen, known)
            })
        });
        known.insert(v, wanted);
        wanted
    }

    /// What an element of a virtual tile costs, with all that it is made of.
    pub(super) fn cost(&mut self, v: Value, known: &mut FxHashMap<Value, u32>) -> u32 {
        if self.places.has(v) || self.f.ty(v).is_scalar() {
            return 1;
        }
        if let Some(&c) = known.get(&v) {
            return c;
        }
        known.insert(v, 0);
        let Def::Result(inst, _) = self.f.def(v) else { return 1 };
        let mut cost = plan::weight(self.f, inst);
        if let TileOp::Load { ptr, .. } = self.f.op(inst) {
            // An address for each lane, or one row of the cache for each.
            let unit = self.analysis.address(*ptr).is_some_and(|a| {
                let size = self.f.ty(*ptr).elem.pointer().map_or(0, |p| p.pointee.size());
                a.offset.is_uniform()
                    || a.offset.steps.iter().any(|s| s.constant() == Some(size as i64))
            });
            cost = if unit { 2 } else { DEAR };
        } else {
            for (operand, _) in self.operands(inst, &identity(self.shape(v).rank())) {
                cost = cost.saturating_add(self.cost(operand, known));
            }
        }
        known.insert(v, cost);
        cost
    }

    /// The buffer of a tile that has been kept.
    pub(super) fn buffer(&self, v: Value) -> Result<Buffer> {
        match self.places.get(v) {
            Some(Place::Buffer(b)) => Ok(b.clone()),
            _ => Err(super::Unsupported { what: format!("the tile {v} whole"), inst: None }),
        }
    }
}

/// Elements from end to end of a tile whose lanes lie apart also where numbers wrap.
const WIDEST: u64 = 1 << 32;

/// Whether a number that does not fit is off by a multiple of [`WIDEST`], so that lanes nearer to one
/// another than that stay apart.
fn wraps_widely(fit: &Fit) -> bool {
    matches!(fit.within, Within::Type(ty) if ty.bits() >= 32)
}

/// Whether all lanes lie apart, by the formula or by what is left of it where numbers wrap: sorted by
/// size, each step passes what the smaller ones cover.
fn apart(a: &Affine, shape: Shape, size: usize) -> bool {
    let mut axes = Vec::new();
    for (step, n) in a.steps.iter().zip(shape.dims()) {
        if n > 1 {
            let Some(step) = step.constant() else { return false };
            axes.push((step.unsigned_abs(), n as u64));
        }
    }
    axes.sort_unstable();
    let mut covered = size as u64;
    let in_turn = axes.into_iter().all(|(step, n)| {
        let apart = step >= covered;
        covered = covered.saturating_add(step.saturating_mul(n - 1));
        apart
    });
    in_turn && covered <= WIDEST * size as u64
}
