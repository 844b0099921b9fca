//! Reductions and scans by functions of the user's, and functions called on every element.
//!
//! Their operands are whole tiles in scratch memory. A function that only computes, lane by lane, is run
//! on several lanes at once: on neighbours along another axis, or for a reduction along its own axis,
//! whose lanes are then combined by halves.

use super::{Buffer, Dist, Place, Result, stored};
use naiad_ir::thread::{ForLoop, ThreadElem, ThreadOp, Vector};
use naiad_ir::tile::TileOp;
use naiad_ir::{Block, Inst, OpInfo, Shape, Value};
use smallvec::SmallVec;

const LANES: usize = 8;

/// Loops over some axes, all of them open.
struct Loops {
    open: Vec<ForLoop>,
    /// The index along each axis of the tile; 0 where there is no loop.
    index: SmallVec<[Value; 4]>,
}

impl Dist<'_> {
    /// What a region over elements yields for these arguments.
    pub(super) fn region(&mut self, block: Block, args: &[Value]) -> Result<Vec<Value>> {
        debug_assert!(self.open.is_none(), "a group would be run within the region");
        for (&param, &arg) in self.f.block_params(block).to_vec().iter().zip(args) {
            self.places.insert(param, Place::Scalar(arg));
        }
        let now = self.now;
        self.block(block)?;
        self.now = now;
        let Some(TileOp::Yield { values }) = self.f.terminator(block) else {
            return Ok(Vec::new());
        };
        values.iter().map(|&v| self.scalar(v)).collect()
    }

    /// Whether a region can be run on several lanes at once.
    fn is_straight(&self, block: Block) -> bool {
        self.f.insts(block).iter().all(|&i| {
            let op = self.f.op(i);
            op.is_terminator() || op.is_lanewise()
        })
    }

    /// Opens loops over all axes but `skip`; along `wide` by steps of several lanes.
    fn open_loops(&mut self, shape: Shape, skip: usize, wide: Option<(usize, usize)>) -> Loops {
        let zero = self.b.i64(0);
        let mut loops = Loops { open: Vec::new(), index: SmallVec::from_elem(zero, shape.rank()) };
        for (d, n) in shape.dims().enumerate() {
            if d == skip || n == 1 {
                continue;
            }
            let step = wide.filter(|w| w.0 == d).map_or(1, |w| w.1);
            let bounds = [0, n as i64, step as i64].map(|c| self.b.i64(c));
            let l = self.b.begin_for(bounds, Vec::new());
            loops.index[d] = l.iv;
            loops.open.push(l);
        }
        loops
    }

    fn close_loops(&mut self, mut loops: Loops) {
        while let Some(l) = loops.open.pop() {
            self.b.end_for(l, Vec::new());
        }
    }

    /// The address of a buffer's element.
    fn at(&mut self, buffer: &Buffer, index: &[Value]) -> Value {
        let mut bytes = self.b.i64(0);
        for (&i, &stride) in index.iter().zip(&buffer.strides) {
            let stride = self.b.i64(stride);
            let step = self.b.mul(i, stride);
            bytes = self.b.add(bytes, step);
        }
        self.b.addr_add(buffer.addr, bytes)
    }

    /// Elements of a buffer, `stride` bytes apart.
    fn read(&mut self, buffer: &Buffer, index: &[Value], lanes: usize, stride: i64) -> Value {
        let addr = self.at(buffer, index);
        if lanes == 1 || stride == buffer.elem.size() as i64 {
            return self.b.load(addr, 0, Vector::of(buffer.elem, lanes as u32));
        }
        let addr = self.lane_addresses(addr, stride, lanes as u32);
        self.b.op(ThreadOp::Gather { addr, elem: buffer.elem, mask: None })
    }

    fn write(&mut self, buffer: &Buffer, index: &[Value], stride: i64, value: Value) {
        let addr = self.at(buffer, index);
        let lanes = self.b.vector(value).lanes;
        if lanes == 1 || stride == buffer.elem.size() as i64 {
            return self.b.store(addr, 0, value);
        }
        let addr = self.lane_addresses(addr, stride, lanes);
        self.b.run(ThreadOp::Scatter { addr, value, mask: None });
    }

    /// Every input in scratch memory, with elements of its own type.
    fn inputs(&mut self, inputs: &[Value]) -> Result<Vec<Buffer>> {
        inputs.iter().map(|&v| self.kept(v)).collect()
    }

    /// A tile in scratch memory, with elements of its own type.
    pub(super) fn kept(&mut self, v: Value) -> Result<Buffer> {
        let elem = stored(self.f.ty(v).elem);
        self.keep(v)?;
        self.close_group()?;
        let buffer = self.buffer(v)?;
        if buffer.elem == elem { Ok(buffer) } else { self.dense(v) }
    }

    /// The axis along which neighbours can be combined at once, other than the op's own.
    fn other_axis(&self, shape: Shape, axis: usize, block: Block) -> Option<(usize, usize)> {
        let last = (0..shape.rank()).rev().find(|&d| d != axis && shape.dim(d) > 1)?;
        let lanes = shape.dim(last).min(LANES);
        self.is_straight(block).then_some((last, lanes))
    }

    pub(super) fn reduce(
        &mut self,
        inst: Inst,
        inputs: &[Value],
        axis: usize,
        body: Block,
    ) -> Result<()> {
        let shape = self.shape(inputs[0]);
        let sources = self.inputs(inputs)?;
        let n = shape.dim(axis);
        let rest = shape.without(axis);
        let results = self.f.results(inst).to_vec();
        let mut outs = Vec::new();
        for &r in &results {
            outs.push(self.new_buffer(stored(self.f.ty(r).elem), rest, None));
        }
        // Along its own axis where that is the innermost and long, else beside it.
        let own = self.is_straight(body)
            && n >= 2 * LANES
            && sources.iter().all(|b| b.strides[axis] == b.elem.size() as i64);
        let wide = if own { None } else { self.other_axis(shape, axis, body) };
        let lanes = wide.map_or(1, |w| w.1);
        let step = if own { LANES } else { 1 };
        let mut loops = self.open_loops(shape, axis, wide);
        let stride = |b: &Buffer| wide.map_or(0, |w| b.strides[w.0]);
        let mut first = Vec::new();
        for b in &sources {
            first.push(match own {
                true => self.read(b, &loops.index, LANES, b.strides[axis]),
                false => self.read(b, &loops.index, lanes, stride(b)),
            });
        }
        let bounds = [step, n, step].map(|c| self.b.i64(c as i64));
        let l = self.b.begin_for(bounds, first);
        let mut index = loops.index.clone();
        index[axis] = l.iv;
        let mut args = l.carried.clone();
        for b in &sources {
            args.push(match own {
                true => self.read(b, &index, LANES, b.strides[axis]),
                false => self.read(b, &index, lanes, stride(b)),
            });
        }
        let next = self.region(body, &args)?;
        let next = self.widened(next, if own { LANES } else { lanes });
        let mut acc = self.b.end_for(l, next);
        let mut width = if own { LANES as u32 } else { 1 };
        while width > 1 {
            width /= 2;
            let mut args = Vec::new();
            for &a in &acc {
                args.push(self.b.permute(a, 0..width));
            }
            for &a in &acc {
                args.push(self.b.permute(a, width..2 * width));
            }
            let folded = self.region(body, &args)?;
            acc = self.widened(folded, width as usize);
        }
        loops.index.remove(axis);
        for (out, value) in outs.iter().zip(acc) {
            let stride = wide.map_or(0, |w| out.strides[w.0 - usize::from(w.0 > axis)]);
            self.write(out, &loops.index, stride, value);
        }
        self.close_loops(loops);
        for (&r, out) in results.iter().zip(outs) {
            self.set(r, out);
        }
        Ok(())
    }

    /// Uniform results repeated, so that all have as many lanes.
    fn widened(&mut self, values: Vec<Value>, lanes: usize) -> Vec<Value> {
        let mut out = Vec::new();
        for v in values {
            out.push(match self.b.vector(v).lanes {
                1 => self.b.splat(v, lanes as u32),
                _ => v,
            });
        }
        out
    }

    /// Notes that a value is in a buffer; a scalar is read from it.
    pub(super) fn set(&mut self, v: Value, buffer: Buffer) {
        let place = match self.f.ty(v).is_scalar() {
            true => Place::Scalar(self.b.load(buffer.addr, 0, Vector::of(buffer.elem, 1))),
            false => Place::Buffer(buffer),
        };
        self.places.insert(v, place);
    }

    pub(super) fn scan(
        &mut self,
        inst: Inst,
        inputs: &[Value],
        axis: usize,
        reverse: bool,
        body: Block,
    ) -> Result<()> {
        let shape = self.shape(inputs[0]);
        let sources = self.inputs(inputs)?;
        let results = self.f.results(inst).to_vec();
        let mut outs = Vec::new();
        for &r in &results {
            outs.push(self.new_buffer(stored(self.f.ty(r).elem), shape, None));
        }
        let n = shape.dim(axis);
        let wide = self.other_axis(shape, axis, body);
        let lanes = wide.map_or(1, |w| w.1);
        let stride = |b: &Buffer| wide.map_or(0, |w| b.strides[w.0]);
        let loops = self.open_loops(shape, axis, wide);
        let mut index = loops.index.clone();
        let last = self.b.i64(n as i64 - 1);
        if reverse {
            index[axis] = last;
        }
        let mut first = Vec::new();
        for (b, out) in sources.iter().zip(&outs) {
            let x = self.read(b, &index, lanes, stride(b));
            self.write(out, &index, stride(out), x);
            first.push(x);
        }
        let bounds = [1, n as i64, 1].map(|c| self.b.i64(c));
        let l = self.b.begin_for(bounds, first);
        index[axis] = if reverse { self.b.sub(last, l.iv) } else { l.iv };
        let mut args = l.carried.clone();
        for b in &sources {
            args.push(self.read(b, &index, lanes, stride(b)));
        }
        let next = self.region(body, &args)?;
        let next = self.widened(next, lanes);
        for (out, &x) in outs.iter().zip(&next) {
            self.write(out, &index, stride(out), x);
        }
        self.b.end_for(l, next);
        self.close_loops(loops);
        for (&r, out) in results.iter().zip(outs) {
            self.set(r, out);
        }
        Ok(())
    }

    pub(super) fn map(
        &mut self,
        inst: Inst,
        inputs: &[Value],
        pack: usize,
        body: Block,
    ) -> Result<()> {
        let results = self.f.results(inst).to_vec();
        let shape = self.shape(results[0]);
        let mut sources = Vec::new();
        for &v in inputs {
            sources.push(self.dense(v)?);
        }
        // Also where all inputs are scalars: what is open must not be run within the loop.
        self.close_group()?;
        let mut outs = Vec::new();
        for &r in &results {
            outs.push(self.new_buffer(stored(self.f.ty(r).elem), shape, None));
        }
        let bounds = [0, shape.numel() as i64, pack as i64].map(|c| self.b.i64(c));
        let l = self.b.begin_for(bounds, Vec::new());
        let mut args = Vec::new();
        for b in &sources {
            let addr = self.element(b.addr, l.iv, b.elem);
            for k in 0..pack {
                let disp = (k * b.elem.size()) as i64;
                args.push(self.b.load(addr, disp, Vector::of(b.elem, 1)));
            }
        }
        let values = self.region(body, &args)?;
        for (out, values) in outs.iter().zip(values.chunks(pack)) {
            let addr = self.element(out.addr, l.iv, out.elem);
            for (k, &v) in values.iter().enumerate() {
                self.b.store(addr, (k * out.elem.size()) as i64, v);
            }
        }
        self.b.end_for(l, Vec::new());
        for (&r, out) in results.iter().zip(outs) {
            self.set(r, out);
        }
        Ok(())
    }

    /// The address of an element of a row-major buffer by its number.
    fn element(&mut self, addr: Value, number: Value, elem: ThreadElem) -> Value {
        let size = self.b.i64(elem.size() as i64);
        let bytes = self.b.mul(number, size);
        self.b.addr_add(addr, bytes)
    }
}
