//! Ops that want whole tiles: matrix products, sorts, rearrangements, what the host does.

use super::access::{Access, Conditions, Reach};
use super::elementwise;
use super::group::Root;
use super::lanes::{Nest, identity};
use super::{Buffer, Dist, Param, Place, Result, SiteInfo, stored};
use naiad_ir::scalar::{BinaryFn, Predicate};
use naiad_ir::thread::{RuntimeFn, ThreadElem, ThreadOp, Vector};
use naiad_ir::tile::{Constant, MachineFact, TileOp};
use naiad_ir::{Def, Inst, OpInfo, Scalar, Shape, Type, Value};
use naiad_opt::affine::Conjunct;
use smallvec::SmallVec;

/// A matrix operand: where it lies, its byte strides and its type.
#[derive(Copy, Clone)]
pub(super) struct Matrix {
    addr: Value,
    strides: [Value; 2],
    ty: Scalar,
}

fn type_code(ty: Scalar) -> i64 {
    Scalar::ALL.iter().position(|&s| s == ty).unwrap_or(0) as i64
}

impl Dist<'_> {
    pub(super) fn whole(&mut self, inst: Inst) -> Result<()> {
        match self.f.op(inst).clone() {
            TileOp::Dot { a, b, acc, out, .. } => self.dot(inst, a, b, acc, out),
            TileOp::Reduce { inputs, axis, body } => self.reduce(inst, &inputs, axis, body),
            TileOp::Scan { inputs, axis, reverse, body } => {
                self.scan(inst, &inputs, axis, reverse, body)
            }
            TileOp::Map { inputs, pack, body } => self.map(inst, &inputs, pack, body),
            TileOp::Reshape { src, shape } => {
                let buffer = self.dense(src)?;
                let strides = row_major(shape, buffer.elem.size());
                self.set(self.f.results(inst)[0], Buffer { strides, ..buffer });
                Ok(())
            }
            TileOp::Join { a, b } => {
                let shape = self.shape(self.f.results(inst)[0]);
                let last = shape.rank() - 1;
                self.parts(inst, &[a, b], |out, i| {
                    let step = out.strides[last];
                    (i as i64 * step, out.strides[..last].iter().copied().collect())
                })
            }
            TileOp::Cat { a, b, axis } => {
                let n = self.shape(a).dim(axis) as i64;
                self.parts(inst, &[a, b], |out, i| {
                    (i as i64 * n * out.strides[axis], out.strides.clone())
                })
            }
            TileOp::Flip { src, axis } => {
                let n = self.shape(src).dim(axis) as i64;
                self.parts(inst, &[src], |out, _| {
                    let mut strides = out.strides.clone();
                    let start = (n - 1) * strides[axis];
                    strides[axis] = -strides[axis];
                    (start, strides)
                })
            }
            TileOp::Split { src } => {
                let buffer = self.kept(src)?;
                let mut strides = buffer.strides.clone();
                let step = strides.pop().unwrap_or(0);
                for (i, &r) in self.f.results(inst).to_vec().iter().enumerate() {
                    let offset = self.b.i64(i as i64 * step);
                    let addr = self.b.addr_add(buffer.addr, offset);
                    self.set(r, Buffer { addr, strides: strides.clone(), elem: buffer.elem });
                }
                Ok(())
            }
            TileOp::Gather { src, index, axis } => self.gather(inst, src, index, axis),
            TileOp::Sort { src, descending } => self.sort(inst, src, None, descending),
            TileOp::TopK { src, k, descending } => self.sort(inst, src, Some(k), descending),
            TileOp::Histogram { src, mask, bins } => self.histogram(inst, src, mask, bins),
            TileOp::AtomicRmw { .. }
            | TileOp::AtomicCas { .. }
            | TileOp::AtomicLoad { .. }
            | TileOp::AtomicStore { .. } => self.atomic(inst),
            TileOp::Barrier {} => self.close_group(),
            // A promise is judged by whoever checks, see the reference executor's policies.
            TileOp::Assume { .. } => Ok(()),
            TileOp::Print { .. }
            | TileOp::Assert { .. }
            | TileOp::Machine { .. }
            | TileOp::InlineAsm { .. } => {
                self.close_group()?;
                self.host(inst)
            }
            op => self.unsupported(inst, format!("`{}`", op.name())),
        }
    }

    /// A tile in row-major scratch memory, with elements of its own type.
    pub(super) fn dense(&mut self, v: Value) -> Result<Buffer> {
        let ty = self.f.ty(v);
        let elem = stored(ty.elem);
        self.settle_value(v)?;
        if let Some(Place::Scalar(s)) = self.places.get(v) {
            let s = *s;
            let buffer = self.new_buffer(elem, ty.shape, None);
            self.b.store(buffer.addr, 0, s);
            return Ok(buffer);
        }
        if let Some(Place::Buffer(b)) = self.places.get(v)
            && b.strides == row_major(ty.shape, elem.size())
            && b.elem == elem
        {
            return Ok(b.clone());
        }
        let buffer = self.new_buffer(elem, ty.shape, None);
        let known = self.places.has(v);
        self.add_root(Root::Keep { value: v, into: Some(buffer.clone()) })?;
        self.close_group()?;
        if !known {
            self.places.insert(v, Place::Buffer(buffer.clone()));
        }
        Ok(buffer)
    }

    fn settle_value(&mut self, v: Value) -> Result<()> {
        if self.is_pending(v) { self.close_group() } else { Ok(()) }
    }

    /// A result that consists of tiles, each in its part of the buffer: an offset and strides.
    fn parts(
        &mut self,
        inst: Inst,
        sources: &[Value],
        part: impl Fn(&Buffer, usize) -> (i64, SmallVec<[i64; 4]>),
    ) -> Result<()> {
        self.settle(inst)?;
        let result = self.f.results(inst)[0];
        let ty = self.f.ty(result);
        let out = self.new_buffer(stored(ty.elem), ty.shape, None);
        for (i, &value) in sources.iter().enumerate() {
            let (offset, strides) = part(&out, i);
            let offset = self.b.i64(offset);
            let addr = self.b.addr_add(out.addr, offset);
            if let Some(Place::Scalar(s)) = self.places.get(value) {
                let s = *s;
                self.b.store(addr, 0, s);
                continue;
            }
            let into = Some(Buffer { addr, strides, elem: out.elem });
            self.add_root(Root::Keep { value, into })?;
        }
        self.close_group()?;
        self.set(result, out);
        Ok(())
    }

    /// A matrix for `dot`: where it lies in memory, if it is a load of a whole tile by a formula, else in
    /// scratch memory. Which of the two is found out when the kernel runs.
    fn matrix(&mut self, v: Value) -> Result<Matrix> {
        let ty = self.f.ty(v).elem.scalar().unwrap_or(Scalar::F32);
        let rank = self.shape(v).rank();
        let tail = |strides: &[i64]| [strides[rank - 2], strides[rank - 1]];
        if self.places.has(v) || self.is_pending(v) || rank != 2 {
            let buffer = self.kept(v)?;
            let strides = tail(&buffer.strides).map(|s| self.b.i64(s));
            return Ok(Matrix { addr: buffer.addr, strides, ty });
        }
        let load = match self.f.def(v) {
            Def::Result(inst, _) => self.access(inst).filter(|a| !a.write),
            Def::Param(..) => None,
        };
        let mut conditions = Conditions::default();
        let reach = match &load {
            Some(access) => {
                let reach = self.reach(access, &mut conditions)?;
                self.whole_tile(access, &mut conditions)?.then_some(reach)
            }
            None => None,
        };
        let Some(Reach::Formula { base, steps }) = reach else {
            let buffer = self.kept(v)?;
            let strides = tail(&buffer.strides).map(|s| self.b.i64(s));
            return Ok(Matrix { addr: buffer.addr, strides, ty });
        };
        self.close_group()?;
        let shape = self.shape(v);
        let buffer = self.new_buffer(ty.into(), shape, None);
        let mut cond = self.b.bool(true);
        for c in conditions.all {
            cond = self.b.binary(BinaryFn::And, cond, c);
        }
        let branch = self.b.begin_branch();
        let then = self.b.end_branch(branch, vec![base, steps[0], steps[1]]);
        let branch = self.b.begin_branch();
        self.in_version = true;
        self.add_root(Root::Keep { value: v, into: Some(buffer.clone()) })?;
        self.close_group()?;
        self.in_version = false;
        let [s0, s1] = tail(&buffer.strides).map(|s| self.b.i64(s));
        let otherwise = self.b.end_branch(branch, vec![buffer.addr, s0, s1]);
        let out = self.b.ops(ThreadOp::If { cond, then, otherwise });
        Ok(Matrix { addr: out[0], strides: [out[1], out[2]], ty })
    }

    /// Adds the conditions under which a load's mask is true everywhere; whether there are such.
    fn whole_tile(&mut self, access: &Access, conditions: &mut Conditions) -> Result<bool> {
        let Some(mask) = access.mask else { return Ok(true) };
        let shape = self.shape(access.ptr);
        for c in self.analysis.conjuncts(mask) {
            let cond = match &c {
                Conjunct::Below { axis, end, .. } => {
                    let end = self.expr(end)?;
                    let n = self.b.i64(shape.dim(*axis) as i64);
                    self.b.compare(Predicate::Ge, end, n)
                }
                Conjunct::From { start, .. } => {
                    let start = self.expr(start)?;
                    let zero = self.b.i64(0);
                    self.b.compare(Predicate::Le, start, zero)
                }
                Conjunct::Uniform(v) => self.scalar(*v)?,
                Conjunct::Lanes(_) => return Ok(false),
            };
            conditions.all.push(cond);
        }
        Ok(true)
    }

    fn dot(
        &mut self,
        inst: Inst,
        a: Value,
        b: Value,
        acc: Option<Value>,
        out: Scalar,
    ) -> Result<()> {
        let result = self.f.results(inst)[0];
        let rank = self.shape(result).rank();
        if rank != 2 {
            return self.batched_dot(inst, a, b, acc, out);
        }
        let [x, y] = [self.matrix(a)?, self.matrix(b)?];
        let shape = self.shape(result);
        let (m, k, n) = (shape.dim(0), self.shape(a).dim(1), shape.dim(1));
        debug_assert_eq!(self.shape(b).dim(1), n);
        let wide = match out {
            Scalar::F64 => Scalar::F64,
            s if s.is_float() => Scalar::F32,
            _ => Scalar::I32,
        };
        let c = self.accumulator(acc, shape, wide)?;
        let mut codes = [x.ty, y.ty, wide].map(type_code);
        // In a loop the next operands mostly follow along k.
        if self.plan.home(self.f, result) != self.f.entry() {
            codes[2] += naiad_kernels::dot::NEXT_K;
        }
        let codes = codes.map(|c| self.b.i64(c));
        let sizes = [m, n, k].map(|s| self.b.i64(s as i64));
        let row = self.b.i64(c.strides[0]);
        let mut args = vec![x.addr, x.strides[0], x.strides[1], y.addr, y.strides[0], y.strides[1]];
        args.extend([c.addr, row]);
        args.extend(sizes);
        args.extend(codes);
        self.b.call(RuntimeFn::Dot, args);
        self.places.insert(result, Place::Buffer(c));
        Ok(())
    }

    /// The buffer that a product is added to: that of the accumulator, if nobody else wants that, or a
    /// copy.
    fn accumulator(&mut self, acc: Option<Value>, shape: Shape, ty: Scalar) -> Result<Buffer> {
        let Some(acc) = acc else {
            self.close_group()?;
            let buffer = self.new_buffer(ty.into(), shape, None);
            self.fill_zero(&buffer, shape.numel(), ty);
            return Ok(buffer);
        };
        self.settle_value(acc)?;
        self.close_group()?;
        let once = self.plan.users(acc).len() == 1 && !self.plan.used_in_loop(self.f, acc);
        let own = once && self.is_ours(acc);
        if let Some(Place::Buffer(b)) = self.places.get(acc)
            && own
            && b.elem == ty.into()
            && b.strides == row_major(shape, ty.size())
        {
            return Ok(b.clone());
        }
        let buffer = self.new_buffer(ty.into(), shape, None);
        self.add_root(Root::Keep { value: acc, into: Some(buffer.clone()) })?;
        self.close_group()?;
        Ok(buffer)
    }

    /// Whether a tile's buffer is written by nobody else: one of a product, or of a loop of this block.
    fn is_ours(&self, v: Value) -> bool {
        match self.f.def(v) {
            // A loop's own buffers, unless one value is passed on as two.
            Def::Param(block, _) => match self.f.terminator(block) {
                Some(TileOp::Yield { values }) => !values.iter().any(|y| {
                    matches!(self.f.def(*y), Def::Param(b, _) if b == block)
                        && !self.f.ty(*y).is_scalar()
                }),
                _ => false,
            },
            Def::Result(inst, _) => matches!(self.f.op(inst), TileOp::Dot { .. }),
        }
    }

    fn fill_zero(&mut self, buffer: &Buffer, count: usize, ty: Scalar) {
        let lanes = count.min(16) as u32;
        let value = self.b.constant(Constant { ty, bits: 0 }, lanes);
        let bounds = [0, count as i64, i64::from(lanes)].map(|c| self.b.i64(c));
        let l = self.b.begin_for(bounds, Vec::new());
        let size = self.b.i64(ty.size() as i64);
        let offset = self.b.mul(l.iv, size);
        let addr = self.b.addr_add(buffer.addr, offset);
        self.b.store(addr, 0, value);
        self.b.end_for(l, Vec::new());
    }

    fn batched_dot(
        &mut self,
        inst: Inst,
        a: Value,
        b: Value,
        acc: Option<Value>,
        out: Scalar,
    ) -> Result<()> {
        let result = self.f.results(inst)[0];
        let shape = self.shape(result);
        let rank = shape.rank();
        let wide = match out {
            Scalar::F64 => Scalar::F64,
            s if s.is_float() => Scalar::F32,
            _ => Scalar::I32,
        };
        let (x, y) = (self.kept(a)?, self.kept(b)?);
        let c = self.accumulator(acc, shape, wide)?;
        let ty = |this: &Self, v: Value| this.f.ty(v).elem.scalar().unwrap_or(Scalar::F32);
        let codes = [ty(self, a), ty(self, b), wide].map(|t| self.b.i64(type_code(t)));
        let sizes = [shape.dim(rank - 2), shape.dim(rank - 1), self.shape(a).dim(rank - 1)];
        let sizes = sizes.map(|s| self.b.i64(s as i64));
        let mut loops = Vec::new();
        let mut addrs = [x.addr, y.addr, c.addr];
        for d in 0..rank - 2 {
            let bounds = [0, shape.dim(d) as i64, 1].map(|v| self.b.i64(v));
            let l = self.b.begin_for(bounds, Vec::new());
            for (addr, buffer) in addrs.iter_mut().zip([&x, &y, &c]) {
                let stride = self.b.i64(buffer.strides[d]);
                let way = self.b.mul(l.iv, stride);
                *addr = self.b.addr_add(*addr, way);
            }
            loops.push(l);
        }
        let mut args = vec![addrs[0]];
        args.extend([x.strides[rank - 2], x.strides[rank - 1]].map(|s| self.b.i64(s)));
        args.push(addrs[1]);
        args.extend([y.strides[rank - 2], y.strides[rank - 1]].map(|s| self.b.i64(s)));
        args.push(addrs[2]);
        args.push(self.b.i64(c.strides[rank - 2]));
        args.extend(sizes);
        args.extend(codes);
        self.b.call(RuntimeFn::Dot, args);
        while let Some(l) = loops.pop() {
            self.b.end_for(l, Vec::new());
        }
        self.places.insert(result, Place::Buffer(c));
        Ok(())
    }

    fn sort(&mut self, inst: Inst, src: Value, k: Option<i64>, descending: bool) -> Result<()> {
        let result = self.f.results(inst)[0];
        let (shape, ty) = (self.shape(src), self.f.ty(src).elem.scalar().unwrap_or(Scalar::I64));
        let n = shape.dim(shape.rank() - 1);
        let source = self.dense(src)?;
        let out = self.new_buffer(ty.into(), self.shape(result), None);
        let number = |this: &mut Self, x: usize| this.b.i64(x as i64);
        let rows = number(self, shape.numel() / n);
        let n = number(self, n);
        let mut args = vec![out.addr, source.addr, rows, n];
        args.extend(k.map(|k| self.b.i64(k)));
        args.push(self.b.i64(type_code(ty)));
        args.push(self.b.i64(i64::from(descending)));
        let f = if k.is_some() { RuntimeFn::TopK } else { RuntimeFn::Sort };
        self.b.call(f, args);
        self.set(result, out);
        Ok(())
    }

    fn histogram(&mut self, inst: Inst, src: Value, mask: Option<Value>, bins: i64) -> Result<()> {
        let result = self.f.results(inst)[0];
        let ty = self.f.ty(src).elem.scalar().unwrap_or(Scalar::I64);
        let source = self.dense(src)?;
        let mask = match mask {
            Some(mask) => self.dense(mask)?.addr,
            None => {
                let zero = self.b.i64(0);
                self.b.bitcast(zero, ThreadElem::Addr)
            }
        };
        let elem = stored(self.f.ty(result).elem);
        let out = self.new_buffer(elem, self.shape(result), None);
        let numbers = [self.shape(src).numel() as i64, bins, type_code(ty)].map(|x| self.b.i64(x));
        let args = [&[out.addr, source.addr, mask][..], &numbers].concat();
        self.b.call(RuntimeFn::Histogram, args);
        self.set(result, out);
        Ok(())
    }

    /// Runs a body for every element of a shape, by itself.
    pub(super) fn each_element(
        &mut self,
        shape: Shape,
        body: &mut dyn FnMut(&mut Self, &mut Nest) -> Result<()>,
    ) -> Result<()> {
        let mut n = self.point();
        n.shape = shape;
        let zero = self.b.i64(0);
        let mut loops = Vec::new();
        for extent in shape.dims() {
            if extent == 1 {
                n.index.push(zero);
                continue;
            }
            let bounds = [0, extent as i64, 1].map(|c| self.b.i64(c));
            let l = self.b.begin_for(bounds, Vec::new());
            n.index.push(l.iv);
            n.open();
            loops.push(l);
        }
        body(self, &mut n)?;
        while let Some(l) = loops.pop() {
            self.b.end_for(l, Vec::new());
        }
        Ok(())
    }

    fn gather(&mut self, inst: Inst, src: Value, index: Value, axis: usize) -> Result<()> {
        let result = self.f.results(inst)[0];
        let shape = self.shape(result);
        let extent = self.shape(src).dim(axis) as i64;
        let (source, at) = (self.kept(src)?, self.kept(index)?);
        let _ = at;
        let out = self.new_buffer(source.elem, shape, None);
        let map = identity(shape.rank());
        self.each_element(shape, &mut |this, n| {
            let i = this.eval(n, index, &map)?;
            let i = elementwise::wide_int(&mut this.b, i);
            // Never anything but an element of the source.
            let (zero, last) = (this.b.i64(0), this.b.i64(extent - 1));
            let i = this.max(i, zero);
            let i = this.min(i, last);
            let own = std::mem::replace(&mut n.index[axis], i);
            let addr = this.buffer_address(n, &source, &map);
            let x = this.b.load(addr, 0, Vector::of(source.elem, 1));
            n.index[axis] = own;
            this.write_buffer(n, &out, &map, x);
            Ok(())
        })?;
        self.set(result, out);
        Ok(())
    }

    /// Leaves an op to the host, which gets the addresses of its operands and results.
    fn host(&mut self, inst: Inst) -> Result<()> {
        self.settle(inst)?;
        let mut operands = Vec::new();
        self.f.op(inst).each_value(&mut |v| operands.push(v));
        let mut buffers = Vec::new();
        for &v in &operands {
            buffers.push(self.dense(v)?);
        }
        let results = self.f.results(inst).to_vec();
        for &r in &results {
            let ty = self.f.ty(r);
            buffers.push(self.new_buffer(stored(ty.elem), ty.shape, None));
        }
        let bytes = 8 * buffers.len().max(1);
        let table = self.b.op(ThreadOp::Scratch { bytes, align: 8 });
        for (i, buffer) in buffers.iter().enumerate() {
            self.b.store(table, 8 * i as i64, buffer.addr);
        }
        let types: Vec<Type> = operands.iter().chain(&results).map(|&v| self.f.ty(v)).collect();
        let clock = match self.f.op(inst) {
            TileOp::Machine { what } => *what == MachineFact::GlobalTimer,
            TileOp::InlineAsm { text, .. } => text.0.contains("globaltimer"),
            _ => false,
        };
        let site = self.site(SiteInfo::Host { inst, buffers: types, clock });
        let context = self.param(Param::Context);
        let number = self.b.i64(i64::from(site.0));
        let args = vec![context, number, self.number, table];
        let cond = self.b.call(RuntimeFn::Host, args)[0];
        let values = vec![self.number];
        self.b.run(ThreadOp::Guard { cond, site, values });
        for (&r, buffer) in results.iter().zip(buffers.drain(operands.len()..)) {
            self.set(r, buffer);
        }
        Ok(())
    }
}

fn row_major(shape: Shape, size: usize) -> SmallVec<[i64; 4]> {
    shape.strides().map(|s| (s * size) as i64).collect()
}
