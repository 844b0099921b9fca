//! Loads and stores: what must hold for the fast version of a loop nest, and both versions of access.

use super::elementwise::unify;
use super::lanes::{Map, Nest, Status};
use super::{Dist, Param, Place, Result, SiteInfo};
use naiad_ir::scalar::{BinaryFn, Predicate, Rounding};
use naiad_ir::thread::{Lanes, RuntimeFn, Site, ThreadOp, Vector};
use naiad_ir::tile::{CacheModifier, Constant, Eviction, MemHints, TileOp};
use naiad_ir::{Inst, Scalar, Value};
use naiad_opt::affine::{Address, Conjunct, Expr, Fit, Within};
use naiad_opt::origin::Origin;
use smallvec::SmallVec;
use std::rc::Rc;

/// How an access finds its addresses in the fast version.
pub(super) enum Reach {
    /// The address at index 0 of every axis, and for each axis of the tile a step in bytes.
    Formula { base: Value, steps: SmallVec<[Value; 4]> },
    /// An address for each lane, each of which is looked at.
    Lanes,
}

/// The operands of a load or a store of the kernel.
#[derive(Copy, Clone)]
pub(super) struct Access {
    pub inst: Inst,
    pub ptr: Value,
    pub mask: Option<Value>,
    pub elem: Scalar,
    pub write: bool,
}

/// What must hold for the fast version of a loop nest.
#[derive(Default)]
pub(super) struct Conditions {
    pub all: Vec<Value>,
    /// Those that have been added already.
    pub fits: Vec<Rc<Fit>>,
}

/// Where an index begins and ends, for each axis.
type Ranges = Vec<(Value, Value)>;

/// No step is larger, so that the way through a tile cannot wrap.
const LARGEST_STEP: i64 = 1 << 42;

impl Dist<'_> {
    pub(super) fn access(&self, inst: Inst) -> Option<Access> {
        let (ptr, mask, write) = match *self.f.op(inst) {
            TileOp::Load { ptr, mask, .. } => (ptr, mask, false),
            TileOp::Store { ptr, mask, .. } => (ptr, mask, true),
            _ => return None,
        };
        let elem = self.f.ty(ptr).elem.pointer()?.pointee;
        Some(Access { inst, ptr, mask, elem, write })
    }

    /// A number of the formulas, as an i64.
    pub(super) fn expr(&mut self, e: &Expr) -> Result<Value> {
        Ok(match e {
            Expr::Const(c) => self.b.i64(*c),
            Expr::Value(v) => {
                let s = self.scalar(*v)?;
                super::elementwise::wide_int(&mut self.b, s)
            }
            Expr::Add(x, y) => {
                let (x, y) = (self.expr(x)?, self.expr(y)?);
                self.b.add(x, y)
            }
            Expr::Mul(x, y) => {
                let (x, y) = (self.expr(x)?, self.expr(y)?);
                self.b.mul(x, y)
            }
        })
    }

    /// A scalar of the kernel, which has been computed.
    pub(super) fn scalar(&self, v: Value) -> Result<Value> {
        match self.places.get(v) {
            Some(Place::Scalar(s)) => Ok(*s),
            _ => Err(super::Unsupported { what: format!("the scalar {v} here"), inst: None }),
        }
    }

    pub(super) fn min(&mut self, x: Value, y: Value) -> Value {
        self.extreme(BinaryFn::Min, x, y)
    }

    pub(super) fn max(&mut self, x: Value, y: Value) -> Value {
        self.extreme(BinaryFn::Max, x, y)
    }

    fn extreme(&mut self, f: BinaryFn, x: Value, y: Value) -> Value {
        match (self.b.known_int(x), self.b.known_int(y)) {
            (Some(x), Some(y)) => self.b.i64(if f == BinaryFn::Min { x.min(y) } else { x.max(y) }),
            _ => self.b.binary(f, x, y),
        }
    }

    /// `x < y`, or `x <= y`; none where it is known to hold.
    fn at_most(&mut self, p: Predicate, x: Value, y: Value, all: &mut Vec<Value>) {
        let known = match (self.b.known_int(x), self.b.known_int(y)) {
            (Some(x), Some(y)) => Some(if p == Predicate::Lt { x < y } else { x <= y }),
            _ => None,
        };
        match known {
            Some(true) => {}
            Some(false) => all.push(self.b.bool(false)),
            None => all.push(self.b.compare(p, x, y)),
        }
    }

    /// How far `step * i` goes for `lo <= i < hi`, downward and upward; the step has to be small.
    fn way(&mut self, step: Value, lo: Value, hi: Value, all: &mut Vec<Value>) -> (Value, Value) {
        let one = self.b.i64(1);
        let last = self.b.sub(hi, one);
        let (a, z) = (self.b.mul(step, lo), self.b.mul(step, last));
        match self.b.known_int(step) {
            Some(s) if s.unsigned_abs() >= LARGEST_STEP as u64 => {
                all.push(self.b.bool(false));
                (a, z)
            }
            Some(s) if s >= 0 => (a, z),
            Some(_) => (z, a),
            None => {
                let limit = self.b.i64(LARGEST_STEP);
                let above = self.b.add(step, limit);
                let above = self.b.bitcast(above, Scalar::U64);
                let most = Constant::int(Scalar::U64, i128::from(2 * LARGEST_STEP));
                let most = self.b.constant(most, 1);
                all.push(self.b.compare(Predicate::Lt, above, most));
                (self.min(a, z), self.max(a, z))
            }
        }
    }

    /// Adds what must be true for the range to be kept.
    pub(super) fn fit(&mut self, fit: &Rc<Fit>, conditions: &mut Conditions) -> Result<()> {
        if conditions.fits.iter().any(|have| Rc::ptr_eq(have, fit) || have == fit) {
            return Ok(());
        }
        conditions.fits.push(fit.clone());
        let all = &mut conditions.all;
        let mut lo = self.expr(&fit.base)?;
        let mut hi = lo;
        for (step, n) in &fit.axes {
            let step = self.expr(step)?;
            let (first, end) = (self.b.i64(0), self.b.i64(*n as i64));
            let (down, up) = self.way(step, first, end, all);
            lo = self.b.add(lo, down);
            hi = self.b.add(hi, up);
        }
        let int = |x: i128| i64::try_from(x).unwrap_or(i64::MAX);
        let (least, most) = match &fit.within {
            Within::Type(ty) => (int(ty.int_min()), self.b.i64(int(ty.int_max()))),
            Within::Quarter => (-(1 << 62), self.b.i64(1 << 62)),
            Within::Below(n) => {
                let (n, one) = (self.expr(n)?, self.b.i64(1));
                (0, self.b.sub(n, one))
            }
        };
        let least = self.b.i64(least);
        self.at_most(Predicate::Le, least, lo, all);
        self.at_most(Predicate::Le, hi, most, all);
        if lo != hi {
            // An end that has wrapped lies on the other side.
            self.at_most(Predicate::Le, lo, hi, all);
        }
        Ok(())
    }

    /// The box outside of which the access touches no lane, by its own mask.
    fn own_box(&mut self, access: &Access) -> Result<(Ranges, Vec<Conjunct>)> {
        let conjuncts = access.mask.map_or_else(Vec::new, |m| self.analysis.conjuncts(m));
        let shape = self.shape(access.ptr);
        let mut range: Vec<(Value, Value)> = Vec::new();
        for n in shape.dims() {
            range.push((self.b.i64(0), self.b.i64(n as i64)));
        }
        for c in &conjuncts {
            match c {
                Conjunct::Below { axis, end, .. } => {
                    let end = self.expr(end)?;
                    range[*axis].1 = self.min(range[*axis].1, end);
                }
                Conjunct::From { axis, start, .. } => {
                    let start = self.expr(start)?;
                    range[*axis].0 = self.max(range[*axis].0, start);
                }
                Conjunct::Uniform(_) | Conjunct::Lanes(_) => {}
            }
        }
        Ok((range, conjuncts))
    }

    /// Finds out how an access reaches memory, and what must hold if by a formula.
    pub(super) fn reach(&mut self, access: &Access, conditions: &mut Conditions) -> Result<Reach> {
        let address = self.analysis.address(access.ptr);
        let (Some(address), Origin::Arg(arg)) = (address, self.plan.origin(access.ptr)) else {
            return Ok(Reach::Lanes);
        };
        let Address { pointer, offset } = &*address;
        let (base, pointer) = (self.expr(&offset.base)?, self.scalar(*pointer)?);
        let base = self.b.addr_add(pointer, base);
        let mut steps = SmallVec::new();
        for step in &offset.steps {
            steps.push(self.expr(step)?);
        }
        for fit in &offset.fits {
            self.fit(fit, conditions)?;
        }
        let (range, conjuncts) = self.own_box(access)?;
        for fit in conjuncts.iter().flat_map(Conjunct::fits) {
            self.fit(fit, conditions)?;
        }
        let (mut lo, mut hi) = (self.b.i64(0), self.b.i64(0));
        let mut empty: Option<Value> = None;
        for (&step, &(from, to)) in steps.iter().zip(&range) {
            let known = (self.b.known_int(from), self.b.known_int(to));
            if !matches!(known, (Some(from), Some(to)) if from < to) {
                let none = self.b.compare(Predicate::Le, to, from);
                empty = Some(self.or(empty, none));
            }
            if self.b.known_int(step) != Some(0) {
                let (down, up) = self.way(step, from, to, &mut conditions.all);
                lo = self.b.add(lo, down);
                hi = self.b.add(hi, up);
            }
        }
        let (lo, hi) = (self.b.addr_add(base, lo), self.b.addr_add(base, hi));
        let inside = self.inside(arg, access, lo, hi);
        let inside = match empty {
            Some(empty) => self.b.binary(BinaryFn::Or, empty, inside),
            None => inside,
        };
        conditions.all.push(inside);
        Ok(Reach::Formula { base, steps })
    }

    fn or(&mut self, a: Option<Value>, b: Value) -> Value {
        match a {
            Some(a) => self.b.binary(BinaryFn::Or, a, b),
            None => b,
        }
    }

    /// Whether elements at both addresses lie in the argument's memory; of lanes, lane by lane.
    fn inside(&mut self, arg: usize, access: &Access, first: Value, last: Value) -> Value {
        let (from, to) = match access.write {
            true => (Param::WriteFrom(arg), Param::WriteTo(arg)),
            false => (Param::ReadFrom(arg), Param::ReadTo(arg)),
        };
        let (from, to) = (self.param(from), self.param(to));
        let size = self.b.i64(-(access.elem.size() as i64));
        let end = self.b.addr_add(to, size);
        let mut compare = |low: Value, high: Value| {
            let b = &mut self.b;
            let mut both = [b.bitcast(low, Scalar::U64), b.bitcast(high, Scalar::U64)];
            unify(b, &mut both);
            b.compare(Predicate::Le, both[0], both[1])
        };
        let (above, below) = (compare(from, first), compare(last, end));
        self.b.binary(BinaryFn::And, above, below)
    }

    fn access_site(&mut self, access: &Access) -> Site {
        let arg = self.plan.origin(access.ptr).arg();
        let Access { inst, elem, write, .. } = *access;
        self.site(SiteInfo::Access { inst, elem, write, arg })
    }

    /// The number of the lane in its own tile, for a report.
    pub(super) fn lane_number(&mut self, n: &Nest, access: &Access, map: &Map) -> Value {
        let shape = self.shape(access.ptr);
        let mut lane = self.b.i64(0);
        for (stride, axis) in shape.strides().zip(map) {
            if let Some(axis) = axis {
                let stride = self.b.i64(stride as i64);
                let step = self.b.mul(n.index[*axis as usize], stride);
                lane = self.b.add(lane, step);
            }
        }
        lane
    }

    /// Ends the run unless the element at the address may be accessed.
    pub(super) fn check(&mut self, n: &Nest, access: &Access, map: &Map, addr: Value) {
        let looked_up = |this: &mut Self| {
            let lane = this.lane_number(n, access, map);
            this.look_up(access, addr, lane);
        };
        match self.plan.origin(access.ptr) {
            Origin::Arg(arg) => {
                let ok = self.inside(arg, access, addr, addr);
                let branch = self.b.begin_branch();
                let then = self.b.end_branch(branch, Vec::new());
                let branch = self.b.begin_branch();
                looked_up(self);
                let otherwise = self.b.end_branch(branch, Vec::new());
                self.b.run(ThreadOp::If { cond: ok, then, otherwise });
            }
            Origin::Unknown => looked_up(self),
        }
    }

    /// Asks the runtime, which knows all arguments.
    fn look_up(&mut self, access: &Access, addr: Value, lane: Value) {
        let site = self.access_site(access);
        let context = self.param(Param::Context);
        let number = self.b.i64(i64::from(site.0));
        let may = self.b.call(RuntimeFn::MayAccess, vec![context, number, addr, lane])[0];
        let values = vec![self.number, lane, addr];
        self.b.run(ThreadOp::Guard { cond: may, site, values });
    }

    /// The same for lanes, of which those that are masked off may be anywhere.
    fn check_lanes(
        &mut self,
        n: &Nest,
        access: &Access,
        map: &Map,
        addr: Value,
        mask: Option<Value>,
    ) {
        let lanes = n.lanes;
        let bad = match self.plan.origin(access.ptr) {
            Origin::Arg(arg) => {
                let inside = self.inside(arg, access, addr, addr);
                let outside = self.b.unary(naiad_ir::scalar::UnaryFn::Not, inside);
                match mask {
                    Some(mask) => self.b.binary(BinaryFn::And, outside, mask),
                    None => outside,
                }
            }
            Origin::Unknown => match mask {
                Some(mask) => mask,
                None => self.b.constant(Constant::bool(true), lanes),
            },
        };
        let any = self.b.op(ThreadOp::Any { mask: bad });
        let first = self.b.begin_branch();
        let shape = self.shape(access.ptr);
        let mut step = 0;
        for (stride, axis) in shape.strides().zip(map) {
            if *axis == Some(n.va as u8) {
                step += stride as i64;
            }
        }
        let lane0 = self.lane_number(n, access, map);
        for l in 0..lanes {
            let bad = self.b.extract(bad, l);
            let branch = self.b.begin_branch();
            let addr = self.b.extract(addr, l);
            let offset = self.b.i64(step * i64::from(l));
            let lane = self.b.add(lane0, offset);
            self.look_up(access, addr, lane);
            let then = self.b.end_branch(branch, Vec::new());
            let branch = self.b.begin_branch();
            let otherwise = self.b.end_branch(branch, Vec::new());
            self.b.run(ThreadOp::If { cond: bad, then, otherwise });
        }
        let then = self.b.end_branch(first, Vec::new());
        let branch = self.b.begin_branch();
        let otherwise = self.b.end_branch(branch, Vec::new());
        self.b.run(ThreadOp::If { cond: any, then, otherwise });
    }

    /// The address of an access by formula, of the first lane where there are several.
    fn formula(&mut self, n: &mut Nest, access: &Access, map: &Map) -> Option<(Value, Value)> {
        let key = (access.inst, map.clone());
        let (base, steps) = match n.reaches.get(&key)? {
            Reach::Formula { base, steps } => (*base, steps.clone()),
            Reach::Lanes => return None,
        };
        let known = n.rows.iter().rev().find_map(|r| r.get(&key).copied());
        let mut along = self.b.i64(0);
        let mut row = self.b.i64(0);
        for (&step, axis) in steps.iter().zip(map) {
            match axis {
                Some(axis) if usize::from(*axis) == n.va => along = self.b.add(along, step),
                Some(axis) if known.is_none() => {
                    let way = self.b.mul(n.index[*axis as usize], step);
                    row = self.b.add(row, way);
                }
                _ => {}
            }
        }
        let row = known.unwrap_or_else(|| self.b.addr_add(base, row));
        let way = self.b.mul(n.index[n.va], along);
        Some((self.b.addr_add(row, way), along))
    }

    /// Computes, once for the loops inside, where each access's row begins.
    pub(super) fn hoist_rows(&mut self, n: &mut Nest) {
        let mut made = Vec::new();
        for ((inst, map), reach) in &n.reaches {
            if let Reach::Formula { base, steps } = reach {
                made.push((*inst, map.clone(), *base, steps.clone()));
            }
        }
        made.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
        for (inst, map, base, steps) in made {
            let mut row = self.b.i64(0);
            for (&step, axis) in steps.iter().zip(&map) {
                if let Some(axis) = axis.filter(|&a| usize::from(a) != n.va) {
                    let way = self.b.mul(n.index[axis as usize], step);
                    row = self.b.add(row, way);
                }
            }
            let row = self.b.addr_add(base, row);
            if let Some(rows) = n.rows.last_mut() {
                rows.insert((inst, map), row);
            }
        }
    }

    /// A mask's lanes, as many as there are.
    fn mask_lanes(&mut self, n: &mut Nest, mask: Value, map: &Map) -> Result<Value> {
        let m = self.eval(n, mask, map)?;
        Ok(match self.b.vector(m).lanes {
            1 => self.b.splat(m, n.lanes),
            _ => m,
        })
    }

    pub(super) fn load_lanes(&mut self, n: &mut Nest, inst: Inst, map: &Map) -> Result<Value> {
        let Some(access) = self.access(inst) else { return self.unsupported(inst, "a load") };
        let TileOp::Load { other, hints, .. } = *self.f.op(inst) else {
            return self.unsupported(inst, "a load");
        };
        let status = match access.mask {
            Some(mask) => self.status(n, mask, map),
            None => Status::True,
        };
        let zero = Constant { ty: access.elem, bits: 0 };
        let other = match other {
            Some(other) if status != Status::True => self.eval(n, other, map)?,
            Some(other) => {
                self.judge(n, other, map)?;
                self.b.constant(zero, 1)
            }
            None => self.b.constant(zero, 1),
        };
        if status != Status::Lanes
            && let Some(mask) = access.mask
        {
            self.judge(n, mask, map)?;
        }
        if status == Status::False {
            self.judge(n, access.ptr, map)?;
            return Ok(other);
        }
        if !n.varies(map) {
            return self.load_one(n, &access, map, (status == Status::Lanes).then_some(other));
        }
        let mask = match (status, access.mask) {
            (Status::Lanes, Some(mask)) => Some(self.mask_lanes(n, mask, map)?),
            _ => None,
        };
        let ty = Vector::of(access.elem.into(), n.lanes);
        let loaded = match self.formula(n, &access, map) {
            Some((addr, step)) if self.b.known_int(step) == Some(access.elem.size() as i64) => {
                let lanes = Lanes(n.lanes);
                self.b.op(ThreadOp::Load { addr, disp: 0, elem: ty.elem, lanes, mask, hints })
            }
            Some((addr, step)) => {
                let addr = self.lane_addresses_by(addr, step, n.lanes);
                self.b.op(ThreadOp::Gather { addr, elem: ty.elem, mask })
            }
            None => {
                let addr = self.eval(n, access.ptr, map)?;
                let addr = self.splat_addresses(addr, n.lanes);
                self.check_lanes(n, &access, map, addr, mask);
                self.b.op(ThreadOp::Gather { addr, elem: ty.elem, mask })
            }
        };
        let Some(mask) = mask else { return Ok(loaded) };
        if self.b.known_int(other) == Some(0) || self.is_zero(other) {
            // Lanes that are masked off read as 0.
            return Ok(loaded);
        }
        let mut args = [mask, loaded, other];
        unify(&mut self.b, &mut args);
        Ok(self.b.select(args[0], args[1], args[2]))
    }

    fn is_zero(&self, v: Value) -> bool {
        matches!(self.b.func.defining_op(v), Some(ThreadOp::Const { value, .. }) if value.bits == 0)
    }

    fn splat_addresses(&mut self, addr: Value, lanes: u32) -> Value {
        match self.b.vector(addr).lanes {
            1 => self.b.op(ThreadOp::Splat { src: addr, lanes: Lanes(lanes) }),
            _ => addr,
        }
    }

    /// A load of one element; `other` where the mask has to be asked.
    fn load_one(
        &mut self,
        n: &mut Nest,
        access: &Access,
        map: &Map,
        other: Option<Value>,
    ) -> Result<Value> {
        let addr = self.eval(n, access.ptr, map)?;
        let ty = Vector::scalar(access.elem);
        let (Some(other), Some(mask)) = (other, access.mask) else {
            self.check(n, access, map, addr);
            return Ok(self.b.load(addr, 0, ty));
        };
        let cond = self.eval(n, mask, map)?;
        let branch = self.b.begin_branch();
        self.check(n, access, map, addr);
        let loaded = self.b.load(addr, 0, ty);
        let then = self.b.end_branch(branch, vec![loaded]);
        let branch = self.b.begin_branch();
        let otherwise = self.b.end_branch(branch, vec![other]);
        Ok(self.b.op(ThreadOp::If { cond, then, otherwise }))
    }

    pub(super) fn store_lanes(&mut self, n: &mut Nest, inst: Inst, map: &Map) -> Result<()> {
        let Some(access) = self.access(inst) else { return self.unsupported(inst, "a store") };
        let TileOp::Store { value, hints, .. } = *self.f.op(inst) else {
            return self.unsupported(inst, "a store");
        };
        let status = match access.mask {
            Some(mask) => self.status(n, mask, map),
            None => Status::True,
        };
        if status != Status::Lanes
            && let Some(mask) = access.mask
        {
            self.judge(n, mask, map)?;
        }
        if status == Status::False {
            self.judge(n, value, map)?;
            return self.judge(n, access.ptr, map);
        }
        let value = self.eval(n, value, map)?;
        if !n.varies(map) {
            let mask = access.mask.filter(|_| status == Status::Lanes);
            return self.store_one(n, &access, map, value, mask);
        }
        let mask = match (status, access.mask) {
            (Status::Lanes, Some(mask)) => Some(self.mask_lanes(n, mask, map)?),
            _ => None,
        };
        let value = match self.b.vector(value).lanes {
            1 => self.b.splat(value, n.lanes),
            _ => value,
        };
        let op = match self.formula(n, &access, map) {
            Some((addr, step)) if self.b.known_int(step) == Some(access.elem.size() as i64) => {
                let hints = self.store_hints(access.ptr, hints);
                ThreadOp::Store { addr, value, disp: 0, mask, hints }
            }
            Some((addr, step)) => {
                let addr = self.lane_addresses_by(addr, step, n.lanes);
                ThreadOp::Scatter { addr, value, mask }
            }
            None => {
                let addr = self.eval(n, access.ptr, map)?;
                let addr = self.splat_addresses(addr, n.lanes);
                self.check_lanes(n, &access, map, addr, mask);
                ThreadOp::Scatter { addr, value, mask }
            }
        };
        self.b.run(op);
        Ok(())
    }

    /// What is stored where the kernel reads nothing need not stay in the cache: if there is much of it,
    /// it will have left before anybody reads it. Programs that talk to one another rely on the order
    /// of their stores, which those past the cache do not keep.
    fn store_hints(&mut self, ptr: Value, hints: MemHints) -> MemHints {
        let said = matches!(hints.evict, Eviction::None | Eviction::First);
        let alone = said
            && hints.cache == CacheModifier::None
            && !hints.volatile
            && !self.plan.communicates
            && !self.plan.loaded.iter().any(|&p| self.may_alias(p, ptr));
        if !alone {
            return MemHints { evict: Eviction::None, ..hints };
        }
        self.param(Param::Stream);
        MemHints { evict: Eviction::First, ..hints }
    }

    fn store_one(
        &mut self,
        n: &mut Nest,
        access: &Access,
        map: &Map,
        value: Value,
        mask: Option<Value>,
    ) -> Result<()> {
        let addr = self.eval(n, access.ptr, map)?;
        let Some(mask) = mask else {
            self.check(n, access, map, addr);
            self.b.store(addr, 0, value);
            return Ok(());
        };
        let cond = self.eval(n, mask, map)?;
        let branch = self.b.begin_branch();
        self.check(n, access, map, addr);
        self.b.store(addr, 0, value);
        let then = self.b.end_branch(branch, Vec::new());
        let branch = self.b.begin_branch();
        let otherwise = self.b.end_branch(branch, Vec::new());
        self.b.run(ThreadOp::If { cond, then, otherwise });
        Ok(())
    }

    /// A value as one of the type in which it is kept.
    pub(super) fn as_type(&mut self, v: Value, ty: Scalar) -> Value {
        self.b.cast(v, ty, Rounding::Nearest)
    }
}
