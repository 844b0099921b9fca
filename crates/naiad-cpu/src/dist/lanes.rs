//! The elements of a tile at a place of a loop nest, computed on demand.
//!
//! A tile's axes follow axes of the nest: a [`Map`] says which one each follows, or that its index is 0,
//! as on an axis that is broadcast. Along one axis of the nest, the *vector axis*, a step may stand for
//! several lanes; then what follows that axis is a vector and everything else a scalar.

use super::access::Reach;
use super::elementwise::unify;
use super::{Buffer, Dist, Place, Result};
use naiad_ir::scalar::Rounding;
use naiad_ir::thread::{Lanes, ThreadElem, ThreadOp, Vector};
use naiad_ir::tile::{Constant, TileOp};
use naiad_ir::{Def, Inst, OpInfo, Scalar, Shape, Value};
use naiad_opt::affine::{Conjunct, Fit};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::rc::Rc;

/// For each axis of a tile the axis of the nest that it follows.
pub(super) type Map = SmallVec<[Option<u8>; 4]>;

/// The map of a tile that has the nest's shape.
pub(super) fn identity(rank: usize) -> Map {
    (0..rank as u8).map(Some).collect()
}

/// A loop nest while its body is made.
pub(super) struct Nest {
    pub shape: Shape,
    /// The vector axis.
    pub va: usize,
    pub lanes: u32,
    /// The index along each axis, an i64; along the vector axis of the first lane.
    pub index: SmallVec<[Value; 4]>,
    /// Lanes are being made, and not single elements.
    pub vector: bool,
    /// What was computed already, a table for each loop that is open.
    pub memo: Vec<FxHashMap<(Value, Map), Value>>,
    /// Addresses of rows, the same way.
    pub rows: Vec<FxHashMap<(Inst, Map), Value>>,
    pub reaches: FxHashMap<(Inst, Map), Reach>,
    /// Conditions whose truth is known in the loop that is being made.
    pub known: Vec<(Bound, bool)>,
    /// What holds in the fast version; a part of a mask is a bound only if its fits do.
    pub fits: Vec<Rc<Fit>>,
}

/// A part of a mask by which a nest's loops are bounded.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Bound {
    Below(u8, naiad_opt::affine::Expr),
    From(u8, naiad_opt::affine::Expr),
    Uniform(Value),
}

/// What is known of a mask.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Status {
    True,
    False,
    Lanes,
}

impl Nest {
    /// Whether a tile with this map differs from lane to lane.
    pub fn varies(&self, map: &Map) -> bool {
        self.vector && map.contains(&Some(self.va as u8))
    }

    pub fn open(&mut self) {
        self.memo.push(FxHashMap::default());
        self.rows.push(FxHashMap::default());
    }

    pub fn close(&mut self) {
        self.memo.pop();
        self.rows.pop();
    }

    fn recall(&self, v: Value, map: &Map) -> Option<Value> {
        let key = (v, map.clone());
        self.memo.iter().rev().find_map(|m| m.get(&key).copied())
    }

    pub fn remember(&mut self, v: Value, map: &Map, value: Value) {
        if let Some(m) = self.memo.last_mut() {
            m.insert((v, map.clone()), value);
        }
    }
}

/// The parts of a mask by which loops can be bounded, if it consists of such parts alone.
pub(super) fn bounds(conjuncts: &[Conjunct], map: &Map) -> Option<Vec<Bound>> {
    let bound = |c: &Conjunct| match c {
        Conjunct::Below { axis, end, .. } => Some(Bound::Below(map[*axis]?, end.clone())),
        Conjunct::From { axis, start, .. } => Some(Bound::From(map[*axis]?, start.clone())),
        Conjunct::Uniform(v) => Some(Bound::Uniform(*v)),
        Conjunct::Lanes(_) => None,
    };
    conjuncts.iter().map(bound).collect()
}

impl Dist<'_> {
    /// The operands of a virtual op or a root, each with where its element lies.
    pub(super) fn operands(&self, inst: Inst, map: &Map) -> SmallVec<[(Value, Map); 3]> {
        let mut out: SmallVec<[(Value, Map); 3]> = SmallVec::new();
        match self.f.op(inst) {
            TileOp::Splat { src, .. } => out.push((*src, Map::new())),
            TileOp::ExpandDims { src, axis } => {
                let mut map = map.clone();
                map.remove(*axis);
                out.push((*src, map));
            }
            TileOp::Broadcast { src, .. } => {
                let shape = self.shape(*src);
                let axes = shape.dims().zip(map);
                out.push((*src, axes.map(|(n, &to)| if n == 1 { None } else { to }).collect()));
            }
            TileOp::Permute { src, order } => {
                let mut moved: Map = SmallVec::from_elem(None, map.len());
                for (&to, &axis) in map.iter().zip(order) {
                    moved[axis as usize] = to;
                }
                out.push((*src, moved));
            }
            TileOp::Reshape { src, shape } => {
                let mut longer = shape.dims().zip(map).filter(|(n, _)| *n > 1).map(|(_, &to)| to);
                let from = self.shape(*src);
                let axes = from.dims();
                out.push((*src, axes.map(|n| if n > 1 { longer.next()? } else { None }).collect()));
            }
            op => op.each_value(&mut |v| {
                let scalar = self.f.ty(v).is_scalar();
                out.push((v, if scalar { Map::new() } else { map.clone() }));
            }),
        }
        out
    }

    /// The element, or the lanes, of a value.
    pub(super) fn eval(&mut self, n: &mut Nest, v: Value, map: &Map) -> Result<Value> {
        match self.places.get(v) {
            Some(Place::Scalar(s)) => return Ok(*s),
            Some(Place::Buffer(buffer)) => {
                if let Some(known) = n.recall(v, map) {
                    return Ok(known);
                }
                let buffer = buffer.clone();
                let out = self.read_buffer(n, &buffer, v, map);
                n.remember(v, map, out);
                return Ok(out);
            }
            None => {}
        }
        if let Some(known) = n.recall(v, map) {
            return Ok(known);
        }
        let Def::Result(inst, _) = self.f.def(v) else {
            return Err(super::Unsupported { what: format!("{v} before it is there"), inst: None });
        };
        let out = match self.f.op(inst) {
            TileOp::Arange { start, .. } => self.arange(n, *start, map),
            TileOp::Load { .. } => self.load_lanes(n, inst, map)?,
            TileOp::Select { cond, yes, no } => {
                let (chosen, other) = match self.status(n, *cond, map) {
                    Status::True => (*yes, [*cond, *no]),
                    Status::False => (*no, [*cond, *yes]),
                    Status::Lanes => {
                        let out = self.eval_operands(n, inst, map)?;
                        n.remember(v, map, out);
                        return Ok(out);
                    }
                };
                for v in other {
                    self.judge(n, v, map)?;
                }
                self.eval(n, chosen, map)?
            }
            op if super::plan::class(self.f, inst) == super::plan::Class::Virtual => match op {
                TileOp::Splat { .. }
                | TileOp::ExpandDims { .. }
                | TileOp::Broadcast { .. }
                | TileOp::Permute { .. }
                | TileOp::Reshape { .. } => {
                    let (src, map) = self.operands(inst, map).remove(0);
                    self.eval(n, src, &map)?
                }
                _ => self.eval_operands(n, inst, map)?,
            },
            op => return self.unsupported(inst, format!("`{}` as a virtual tile", op.name())),
        };
        n.remember(v, map, out);
        Ok(out)
    }

    /// Makes the loads that a value consists of, though nobody wants it, if one of them may go wrong.
    pub(super) fn judge(&mut self, n: &mut Nest, v: Value, map: &Map) -> Result<()> {
        if n.reaches.values().any(|r| matches!(r, Reach::Lanes)) && self.may_fail(n, v, map) {
            self.eval(n, v, map)?;
        }
        Ok(())
    }

    fn may_fail(&self, n: &Nest, v: Value, map: &Map) -> bool {
        let mut todo = vec![(v, map.clone())];
        let mut seen = FxHashSet::default();
        while let Some((v, map)) = todo.pop() {
            let Def::Result(inst, _) = self.f.def(v) else { continue };
            if self.places.has(v) || !seen.insert((v, map.clone())) {
                continue;
            }
            todo.extend(self.operands(inst, &map));
            if let Some(Reach::Lanes) = n.reaches.get(&(inst, map)) {
                return true;
            }
        }
        false
    }

    fn eval_operands(&mut self, n: &mut Nest, inst: Inst, map: &Map) -> Result<Value> {
        let mut args: SmallVec<[Value; 3]> = SmallVec::new();
        for (v, map) in self.operands(inst, map) {
            args.push(self.eval(n, v, &map)?);
        }
        self.lanewise(inst, &args)
    }

    /// Computes in the present loop what the loops inside it would compute anew in each round.
    pub(super) fn hoist(&mut self, n: &mut Nest, v: Value, map: &Map) -> Result<()> {
        if self.places.has(v) && self.f.ty(v).is_scalar() || n.recall(v, map).is_some() {
            return Ok(());
        }
        if !map.contains(&Some(n.va as u8)) {
            self.eval(n, v, map)?;
            return Ok(());
        }
        if self.places.has(v) {
            return Ok(());
        }
        let Def::Result(inst, _) = self.f.def(v) else { return Ok(()) };
        for (operand, map) in self.operands(inst, map) {
            self.hoist(n, operand, &map)?;
        }
        Ok(())
    }

    fn arange(&mut self, n: &Nest, start: i64, map: &Map) -> Value {
        let b = &mut self.b;
        let Some(axis) = map[0] else {
            return b.constant(Constant::int(Scalar::I32, i128::from(start)), 1);
        };
        let index = n.index[axis as usize];
        let start = b.i64(start);
        let first = b.add(index, start);
        let first = match b.known_int(first) {
            Some(c) => b.constant(Constant::int(Scalar::I32, i128::from(c)), 1),
            None => b.cast(first, Scalar::I32, Rounding::Nearest),
        };
        if !n.varies(map) {
            return first;
        }
        let iota = b.iota(Scalar::I32, n.lanes);
        let first = b.splat(first, n.lanes);
        b.binary(naiad_ir::scalar::BinaryFn::Add, first, iota)
    }

    /// What is known of a mask in the loop that is being made.
    pub(super) fn status(&mut self, n: &Nest, mask: Value, map: &Map) -> Status {
        if n.known.is_empty() || self.places.has(mask) {
            return Status::Lanes;
        }
        let conjuncts = self.analysis.conjuncts(mask);
        if conjuncts.is_empty() {
            return Status::True;
        }
        let mut all = true;
        for c in &conjuncts {
            let holds = |fit: &Rc<Fit>| n.fits.iter().any(|f| Rc::ptr_eq(f, fit) || f == fit);
            let bound = match c.fits().iter().all(holds) {
                true => bounds(std::slice::from_ref(c), map),
                false => None,
            };
            let known = bound.and_then(|b| {
                n.known.iter().find(|(have, _)| *have == b[0]).map(|&(_, truth)| truth)
            });
            match known {
                Some(false) => return Status::False,
                Some(true) => {}
                None => all = false,
            }
        }
        if all { Status::True } else { Status::Lanes }
    }

    /// The address of a buffer's element, of the first lane where there are several.
    pub(super) fn buffer_address(&mut self, n: &Nest, buffer: &Buffer, map: &Map) -> Value {
        let b = &mut self.b;
        let mut bytes = b.i64(0);
        for (&stride, axis) in buffer.strides.iter().zip(map) {
            if let (Some(axis), true) = (axis, stride != 0) {
                let stride = b.i64(stride);
                let step = b.mul(n.index[*axis as usize], stride);
                bytes = b.add(bytes, step);
            }
        }
        b.addr_add(buffer.addr, bytes)
    }

    /// The buffer's stride along the vector axis.
    fn lane_stride(&self, n: &Nest, buffer: &Buffer, map: &Map) -> i64 {
        let along = map.iter().zip(&buffer.strides);
        along.filter(|(to, _)| **to == Some(n.va as u8)).map(|(_, s)| *s).sum()
    }

    fn read_buffer(&mut self, n: &Nest, buffer: &Buffer, v: Value, map: &Map) -> Value {
        let addr = self.buffer_address(n, buffer, map);
        let stride = self.lane_stride(n, buffer, map);
        let lanes = if n.varies(map) { n.lanes } else { 1 };
        let raw = if lanes == 1 || stride == 0 {
            self.b.load(addr, 0, Vector::of(buffer.elem, 1))
        } else if stride == buffer.elem.size() as i64 {
            self.b.load(addr, 0, Vector::of(buffer.elem, lanes))
        } else {
            let addr = self.lane_addresses(addr, stride, lanes);
            self.b.op(ThreadOp::Gather { addr, elem: buffer.elem, mask: None })
        };
        match super::stored(self.f.ty(v).elem) {
            ThreadElem::Scalar(s) => self.b.cast(raw, s, Rounding::Nearest),
            ThreadElem::Addr => raw,
        }
    }

    /// Writes an element, or lanes, of a buffer.
    pub(super) fn write_buffer(&mut self, n: &Nest, buffer: &Buffer, map: &Map, value: Value) {
        let addr = self.buffer_address(n, buffer, map);
        let stride = self.lane_stride(n, buffer, map);
        let value = match buffer.elem {
            ThreadElem::Scalar(s) => self.b.cast(value, s, Rounding::Nearest),
            ThreadElem::Addr => value,
        };
        if !n.varies(map) {
            return self.b.store(addr, 0, value);
        }
        let value = match self.b.vector(value).lanes {
            1 => self.b.splat(value, n.lanes),
            _ => value,
        };
        if stride == buffer.elem.size() as i64 {
            return self.b.store(addr, 0, value);
        }
        let addr = self.lane_addresses(addr, stride, n.lanes);
        self.b.run(ThreadOp::Scatter { addr, value, mask: None });
    }

    /// Addresses of lanes a constant number of bytes apart.
    pub(super) fn lane_addresses(&mut self, first: Value, stride: i64, lanes: u32) -> Value {
        let stride = self.b.i64(stride);
        self.lane_addresses_by(first, stride, lanes)
    }

    pub(super) fn lane_addresses_by(&mut self, first: Value, stride: Value, lanes: u32) -> Value {
        let b = &mut self.b;
        let addr = b.op(ThreadOp::Splat { src: first, lanes: Lanes(lanes) });
        let mut steps = [b.iota(Scalar::I64, lanes), b.splat(stride, lanes)];
        unify(b, &mut steps);
        let offset = b.binary(naiad_ir::scalar::BinaryFn::Mul, steps[0], steps[1]);
        b.op(ThreadOp::AddrAdd { addr, offset })
    }
}
