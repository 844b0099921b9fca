//! Ops that send elements where values say: sorting, gathering, counting.

use super::{Lower, Lowered, Registers};
use crate::layout::{Layout, Swizzle, axis_bits, numel_bits};
use naiad_ir::scalar::{BinaryFn, Predicate, Rounding};
use naiad_ir::thread::{ThreadElem, ThreadOp};
use naiad_ir::tile::AtomicOp;
use naiad_ir::{Scalar, Shape, Value};

/// A bit of an element's index: known, or the thread's.
#[derive(Copy, Clone)]
enum Bit {
    Known(bool),
    OfThread(Value),
}

fn plain(shape: &Shape) -> Swizzle {
    Swizzle::new(&(0..numel_bits(shape)).map(|b| 1 << b).collect::<Vec<u32>>())
}

impl Lower<'_> {
    /// Sorts along the last axis by a bitonic network: in stage `k` runs of `2^k` elements, which rise
    /// and fall by turns, become runs of twice the length.
    pub fn sort(&mut self, src: Value, descending: bool) -> Lowered<Registers> {
        let mut registers = self.get(src).clone();
        let (Some(layout), Some(ty)) = (self.layout(src), self.scalar_of(src)) else {
            return Ok(registers);
        };
        let shape = self.shape(src);
        let (_, bits) = axis_bits(&shape, shape.rank() - 1);
        let elem = self.elem(src);
        for stage in 1..=bits {
            for step in (0..stage).rev() {
                registers = self.ordered(
                    &registers,
                    elem,
                    ty,
                    &shape,
                    &layout,
                    [step, stage],
                    bits,
                    descending,
                );
            }
        }
        Ok(registers)
    }

    fn index_bit(&mut self, layout: &Layout, register: usize, bit: u32) -> Bit {
        let basis = 1 << bit;
        if let Some(at) = layout.registers().iter().position(|&b| b == basis) {
            return Bit::Known(register >> at & 1 == 1);
        }
        let places = layout.lanes().iter().chain(layout.warps());
        match places.clone().position(|&b| b == basis) {
            Some(at) => Bit::OfThread(self.thread_bit(at)),
            None => Bit::Known(false),
        }
    }

    /// Puts elements whose indices differ in bit `step` in order: rising where bit `stage` is clear.
    #[expect(clippy::too_many_arguments, reason = "all of one step of the network")]
    fn ordered(
        &mut self,
        src: &Registers,
        elem: ThreadElem,
        ty: Scalar,
        shape: &Shape,
        layout: &Layout,
        [step, stage]: [u32; 2],
        bits: u32,
        descending: bool,
    ) -> Registers {
        let partner = self.exchanged(src, elem, shape, layout, 1 << step);
        (0..src.len())
            .map(|r| {
                let falls = match stage < bits {
                    true => self.index_bit(layout, r, stage),
                    false => Bit::Known(false),
                };
                let is_high = self.index_bit(layout, r, step);
                let (own, other) = (src[r], partner[r]);
                let (low, high) = match is_high {
                    Bit::Known(false) => (own, other),
                    Bit::Known(true) => (other, own),
                    Bit::OfThread(high) => {
                        (self.b.select(high, other, own), self.b.select(high, own, other))
                    }
                };
                let out_of_order = self.is_less(high, low, ty);
                let swap = match falls {
                    Bit::Known(falls) if falls == descending => out_of_order,
                    Bit::Known(_) => self.is_less(low, high, ty),
                    Bit::OfThread(falls) => {
                        let against = self.is_less(low, high, ty);
                        let (yes, no) = if descending {
                            (out_of_order, against)
                        } else {
                            (against, out_of_order)
                        };
                        self.b.select(falls, yes, no)
                    }
                };
                self.b.select(swap, other, own)
            })
            .collect()
    }

    /// Whether one number is less than another; NaN is greater than all numbers.
    fn is_less(&mut self, a: Value, b: Value, ty: Scalar) -> Value {
        let compute = ty.compute_type();
        let [a, b] = [a, b].map(|v| self.b.cast(v, compute, Rounding::Nearest));
        let less = self.b.compare(Predicate::Lt, a, b);
        if !ty.is_float() {
            return less;
        }
        let number = self.b.compare(Predicate::Eq, a, a);
        let nan = self.b.compare(Predicate::Ne, b, b);
        let before_nan = self.b.binary(BinaryFn::And, number, nan);
        self.b.binary(BinaryFn::Or, less, before_nan)
    }

    /// A sorted tile in the layout of the result.
    pub fn reordered(&mut self, sorted: Registers, src: Value, result: Value) -> Registers {
        match self.layout(src).zip(self.layout(result)) {
            Some((from, to)) => {
                let (elem, shape) = (self.elem(src), self.shape(src));
                self.convert(&sorted, elem, &shape, &from, &to)
            }
            None => sorted,
        }
    }

    /// The first elements along the last axis, as many as the result has.
    pub fn first_of(&mut self, sorted: Registers, src: Value, result: Value) -> Registers {
        let Some((from, to)) = self.layout(src).zip(self.layout(result)) else { return sorted };
        let (shape, kept) = (self.shape(src), self.shape(result));
        let (_, bits) = axis_bits(&shape, shape.rank() - 1);
        let (_, kept) = axis_bits(&kept, kept.rank() - 1);
        let wide = to.map(|b| b & ((1 << kept) - 1) | b >> kept << bits);
        let elem = self.elem(src);
        let way = plain(&shape);
        let room = self.put(&sorted, elem, &way.of(&from), numel_bits(&shape));
        self.sync();
        let out = self.take(room, elem, &way.of(&wide), 0);
        self.end_use(room);
        out
    }

    pub fn gather(&mut self, result: Value, src: Value, index: Value, axis: usize) -> Registers {
        let registers = self.get(src).clone();
        let Some((from, to)) = self.layout(src).zip(self.layout(result)) else { return registers };
        let (shape, out) = (self.shape(src), self.shape(result));
        let elem = self.elem(src);
        let room = self.put(&registers, elem, &from, numel_bits(&shape));
        self.sync();
        // The index but for the axis, where the source has it.
        let ((low, bits), (_, wide)) = (axis_bits(&out, axis), axis_bits(&shape, axis));
        let rest = to.map(|b| b & ((1 << low) - 1) | b >> (low + bits) << (low + wide));
        let rest = self.elements(&rest, 0);
        let indices = self.get(index).clone();
        let size = super::access::in_memory(elem).size() as i64;
        let values = (rest.into_iter().zip(indices))
            .map(|(rest, index)| {
                // Whatever the index is, an element of the source is read.
                let index = self.b.cast(index, Scalar::I64, Rounding::Nearest);
                let (least, most) = (self.b.i64(0), self.b.i64((1 << wide) - 1));
                let index = self.b.binary(BinaryFn::Max, index, least);
                let index = self.b.binary(BinaryFn::Min, index, most);
                let index = self.b.cast(index, Scalar::I32, Rounding::Nearest);
                let along = self.shift_left(index, i64::from(low));
                let position = self.add(rest, along);
                let offset = self.mul(position, size);
                let at = self.add(self.shared, offset);
                self.load_shared(at, room.at, elem)
            })
            .collect();
        self.end_use(room);
        values
    }

    fn load_shared(&mut self, at: Value, disp: u32, elem: ThreadElem) -> Value {
        let memory = super::access::in_memory(elem);
        let disp = i64::from(disp);
        let lanes = naiad_ir::thread::Lanes(1);
        let value = self.b.op(ThreadOp::SharedLoad { at, disp, elem: memory, lanes, mask: None });
        if memory == elem {
            return value;
        }
        let zero = self.b.constant(naiad_ir::tile::Constant::int(Scalar::U8, 0), 1);
        self.b.compare(Predicate::Ne, value, zero)
    }

    pub fn histogram(&mut self, result: Value, src: Value, mask: Option<Value>) -> Registers {
        let Some(to) = self.layout(result) else { return self.get(src).clone() };
        let shape = self.shape(result);
        let bins = shape.numel() as i64;
        let count = ThreadElem::Scalar(Scalar::I32);
        let zero = self.i32(0);
        let zeros = vec![zero; to.count()];
        let room = self.put(&zeros, count, &to, numel_bits(&shape));
        self.sync();
        let registers = self.get(src).clone();
        let masks = mask.map(|m| self.get(m).clone());
        let layout = self.layout(src);
        let owner = self.owner(layout.as_ref());
        let copies = layout.map(|l| l.registers().to_vec()).unwrap_or_default();
        for (r, &value) in registers.iter().enumerate() {
            if copies.iter().enumerate().any(|(i, &b)| b == 0 && r >> i & 1 == 1) {
                continue;
            }
            let number = self.b.cast(value, Scalar::I64, Rounding::Nearest);
            let end = self.b.i64(bins);
            let (below, start) = (self.b.compare(Predicate::Lt, number, end), self.b.i64(0));
            // Of u64 those that look negative are greater than any bin.
            let counts = self.b.compare(Predicate::Ge, number, start);
            let counts = self.b.binary(BinaryFn::And, counts, below);
            let counts = self.both(Some(counts), masks.as_ref().map(|m| m[r]));
            let counts = self.both(counts, owner);
            let branch = self.b.begin_branch();
            let bin = self.b.cast(number, Scalar::I32, Rounding::Nearest);
            let offset = self.mul(bin, 4);
            let at = self.add(self.shared, offset);
            let at = self.add_constant(at, i64::from(room.at));
            let one = self.i32(1);
            self.b.ops(ThreadOp::SharedAtomic { f: AtomicOp::Add, at, value: one });
            let then = self.b.end_branch(branch, vec![]);
            let branch = self.b.begin_branch();
            let otherwise = self.b.end_branch(branch, vec![]);
            if let Some(cond) = counts {
                self.b.run(ThreadOp::If { cond, then, otherwise });
            }
        }
        self.sync();
        let out = self.take(room, count, &to, 0);
        self.end_use(room);
        out
    }
}
