//! Groups that only move a tile: a store of a load, perhaps transposed. The runtime does it at once, in
//! blocks, and past the cache where the launch writes more than the cache holds.

use super::access::Reach;
use super::group::Root;
use super::lanes::{Bound, Map, Nest, bounds, identity};
use super::nest::Job;
use super::{Dist, Param, Result};
use naiad_ir::scalar::BinaryFn;
use naiad_ir::thread::RuntimeFn;
use naiad_ir::tile::TileOp;
use naiad_ir::{Def, Inst, OpInfo, Value};
use naiad_opt::affine::Expr;

/// A store of a load.
pub(super) struct Move {
    store: Inst,
    load: Inst,
    /// Where the load's element lies.
    map: Map,
    /// The axes that are longer than 1, two at most.
    axes: Vec<usize>,
}

impl Dist<'_> {
    /// The group as a move, if it is one inside its bounds, of two axes, and between memory that does
    /// not overlap.
    pub(super) fn as_move(&mut self, n: &Nest, job: &Job) -> Option<Move> {
        let [made] = &job.roots[..] else { return None };
        let Root::Store { inst: store } = made.root else { return None };
        let axes: Vec<usize> = (0..job.rank).filter(|&d| n.shape.dim(d) > 1).collect();
        if job.outside || axes.len() != 2 {
            return None;
        }
        let TileOp::Store { value, ptr, .. } = *self.f.op(store) else { return None };
        let (load, map) = self.moved_load(value, identity(job.rank))?;
        let source = self.access(load)?;
        let target = self.access(store)?;
        let formulas = [(store, identity(job.rank)), (load, map.clone())];
        let reached = |key: &(Inst, Map)| matches!(n.reaches.get(key), Some(Reach::Formula { .. }));
        // A boolean in memory is any byte, and becomes 0 or 1 on the way.
        if source.elem != target.elem
            || source.elem.is_bool()
            || self.may_alias(ptr, source.ptr)
            || !formulas.iter().all(reached)
        {
            return None;
        }
        for (access, map) in [(&source, &map), (&target, &identity(job.rank))] {
            let Some(mask) = access.mask else { continue };
            let own = bounds(&self.analysis.conjuncts(mask), map)?;
            if !own.iter().all(|b| job.bounds.contains(b)) {
                return None;
            }
        }
        Some(Move { store, load, map, axes })
    }

    /// The load that a tile is, seen through ops that only move elements.
    fn moved_load(&self, v: Value, map: Map) -> Option<(Inst, Map)> {
        if self.places.has(v) {
            return None;
        }
        let Def::Result(inst, _) = self.f.def(v) else { return None };
        match self.f.op(inst) {
            TileOp::Load { .. } => Some((inst, map)),
            TileOp::ExpandDims { .. }
            | TileOp::Broadcast { .. }
            | TileOp::Permute { .. }
            | TileOp::Hint { .. } => {
                let (src, map) = self.operands(inst, &map).remove(0);
                self.moved_load(src, map)
            }
            _ => None,
        }
    }

    /// Moves the box inside the bounds.
    pub(super) fn make_move(&mut self, n: &Nest, job: &Job, what: &Move) -> Result<()> {
        let dst = self.corner(n, job, what.store, &identity(job.rank), &what.axes);
        let src = self.corner(n, job, what.load, &what.map, &what.axes);
        let (Some(dst), Some(src)) = (dst, src) else {
            return self.unsupported(what.store, "a move");
        };
        let mut args = vec![dst.0, dst.1[0], dst.1[1], src.0, src.1[0], src.1[1]];
        for &d in &what.axes {
            let (lo, hi) = job.range[d];
            args.push(self.b.sub(hi, lo));
        }
        let size = self.access(what.store).map_or(1, |a| a.elem.size());
        args.push(self.b.i64(size as i64));
        // What is stored past the cache comes from beyond it, and the next program wants what follows.
        let mut hints = naiad_kernels::copy::STREAM;
        for (axis, next) in
            what.axes.iter().zip([naiad_kernels::copy::NEXT_0, naiad_kernels::copy::NEXT_1])
        {
            let follows = job.bounds.iter().any(|b| match b {
                Bound::Below(d, e) | Bound::From(d, e) => {
                    usize::from(*d) == *axis && self.follows_program(e)
                }
                Bound::Uniform(_) => false,
            });
            hints |= if follows { next } else { 0 };
        }
        let (streams, hints) = (self.param(Param::Stream), self.b.i64(hints));
        args.push(self.b.mul(streams, hints));
        self.b.call(RuntimeFn::Copy2d, args);
        Ok(())
    }

    /// Whether a number depends on the program's place along the first axis of the grid, along which
    /// programs follow one another.
    fn follows_program(&self, e: &Expr) -> bool {
        match e {
            Expr::Const(_) => false,
            Expr::Value(v) => self.is_of_program(*v, 0),
            Expr::Add(a, b) | Expr::Mul(a, b) => self.follows_program(a) || self.follows_program(b),
        }
    }

    fn is_of_program(&self, v: Value, depth: u32) -> bool {
        let Some(op) = self.f.defining_op(v).filter(|_| depth < 16) else { return false };
        if let TileOp::ProgramId { axis } = op {
            return *axis == 0;
        }
        let mut found = false;
        if op.is_lanewise() {
            op.each_value(&mut |v| found |= self.is_of_program(v, depth + 1));
        }
        found
    }

    /// The address at the box's first element, and the steps along both axes.
    fn corner(
        &mut self,
        n: &Nest,
        job: &Job,
        inst: Inst,
        map: &Map,
        axes: &[usize],
    ) -> Option<(Value, Vec<Value>)> {
        let Some(Reach::Formula { base, steps }) = n.reaches.get(&(inst, map.clone())) else {
            return None;
        };
        let (mut addr, mut along) = (*base, Vec::new());
        for &d in axes {
            let mut step = self.b.i64(0);
            for (&s, to) in steps.iter().zip(map) {
                if *to == Some(d as u8) {
                    step = self.b.add(step, s);
                }
            }
            let way = match self.b.known_int(job.range[d].0) {
                Some(0) => self.b.i64(0),
                _ => self.b.binary(BinaryFn::Mul, step, job.range[d].0),
            };
            addr = self.b.addr_add(addr, way);
            along.push(step);
        }
        Some((addr, along))
    }
}
