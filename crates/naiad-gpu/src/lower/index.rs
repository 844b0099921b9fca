//! Which element a place holds, as arithmetic on the thread's number.

use super::Lower;
use crate::layout::{LANE_BITS, Layout};
use naiad_ir::scalar::{BinaryFn, Predicate};
use naiad_ir::thread::{ThreadElem, ThreadOp};
use naiad_ir::tile::Constant;
use naiad_ir::{Scalar, Value};

impl Lower<'_> {
    pub fn i32(&mut self, value: i64) -> Value {
        self.b.constant(Constant::int(Scalar::I32, i128::from(value)), 1)
    }

    fn folded(&mut self, f: BinaryFn, a: Value, b: i64, neutral: i64) -> Value {
        if b == neutral {
            return a;
        }
        let b = self.i32(b);
        self.b.binary(f, a, b)
    }

    pub fn and(&mut self, a: Value, mask: i64) -> Value {
        self.folded(BinaryFn::And, a, mask, -1)
    }

    pub fn shift_right(&mut self, a: Value, by: i64) -> Value {
        self.folded(BinaryFn::Shr, a, by, 0)
    }

    pub fn shift_left(&mut self, a: Value, by: i64) -> Value {
        self.folded(BinaryFn::Shl, a, by, 0)
    }

    pub fn mul(&mut self, a: Value, by: i64) -> Value {
        self.folded(BinaryFn::Mul, a, by, 1)
    }

    pub fn add_constant(&mut self, a: Value, by: i64) -> Value {
        if let Some(known) = self.b.known_int(a) {
            return self.i32(known + by);
        }
        self.folded(BinaryFn::Add, a, by, 0)
    }

    pub fn add(&mut self, a: Value, b: Value) -> Value {
        if let Some(known) = self.b.known_int(b) {
            return self.add_constant(a, known);
        }
        if self.b.known_int(a).is_some() {
            return self.add(b, a);
        }
        self.b.binary(BinaryFn::Add, a, b)
    }

    pub fn xor(&mut self, a: Value, b: Value) -> Value {
        self.b.binary(BinaryFn::Xor, a, b)
    }

    /// The xor of the bases of the bits of the thread's number. Bits that move by one distance move
    /// together.
    pub fn linear(&mut self, layout: &Layout) -> Value {
        let bases = layout.lanes().iter().chain(layout.warps());
        let mut moves: Vec<(i64, i64)> = Vec::new();
        for (from, &basis) in bases.enumerate() {
            for to in (0..32).filter(|b| basis >> b & 1 == 1) {
                let distance = i64::from(to) - from as i64;
                match moves.iter_mut().find(|(d, _)| *d == distance) {
                    Some((_, mask)) => *mask |= 1 << from,
                    None => moves.push((distance, 1 << from)),
                }
            }
        }
        let mut sum = None;
        let all = (1i64 << (LANE_BITS + layout.warps().len())) - 1;
        for (distance, mask) in moves {
            let mut part = self.thread;
            if mask != all {
                part = self.and(part, mask);
            }
            part = match distance {
                0.. => self.shift_left(part, distance),
                _ => self.shift_right(part, -distance),
            };
            sum = Some(match sum {
                Some(sum) => self.xor(sum, part),
                None => part,
            });
        }
        sum.unwrap_or_else(|| self.i32(0))
    }

    /// The bits that [`Lower::linear`] may set.
    pub fn linear_bits(layout: &Layout) -> u32 {
        layout.lanes().iter().chain(layout.warps()).fold(0, |all, b| all | b)
    }

    /// What a value is made of: another one, and a constant.
    pub fn sum(&self, value: Value) -> (Value, i64) {
        self.sums.get(&value).copied().unwrap_or((value, 0))
    }

    /// Notes that a value is another one and a constant.
    pub fn note_sum(&mut self, value: Value, base: Value, constant: i64) -> Value {
        if value != base {
            self.sums.insert(value, (base, constant));
        }
        value
    }

    /// What a 64-bit number or an address is made of: another one that more registers share, and how far
    /// it is from there in all threads alike.
    pub fn root(&self, value: Value) -> (Value, Option<Value>) {
        match self.apart.get(&value) {
            Some(&(root, far)) => (root, Some(far)),
            None => (value, None),
        }
    }

    /// The value that is so far from another one.
    pub fn away(&mut self, root: Value, far: Option<Value>) -> Value {
        let Some(far) = far else { return root };
        let value = match self.b.vector(root).elem {
            ThreadElem::Addr => self.b.addr_add(root, far),
            ThreadElem::Scalar(_) => self.b.binary(BinaryFn::Add, root, far),
        };
        self.apart.insert(value, (root, far));
        value
    }

    /// Two distances in one.
    pub fn far(&mut self, a: Option<Value>, b: Option<Value>) -> Option<Value> {
        match (a, b) {
            (Some(a), Some(b)) => Some(self.b.binary(BinaryFn::Add, a, b)),
            (one, other) => one.or(other),
        }
    }

    /// The indices of the elements that the thread's registers hold, and `start` more.
    pub fn elements(&mut self, layout: &Layout, start: i64) -> Vec<Value> {
        let of_thread = self.linear(layout);
        let taken = Self::linear_bits(layout);
        (0..layout.count())
            .map(|r| {
                let own = layout.register_part(r);
                if own & taken == 0 {
                    let constant = i64::from(own) + start;
                    let index = self.add_constant(of_thread, constant);
                    return self.note_sum(index, of_thread, constant);
                }
                let own = self.i32(i64::from(own));
                let index = self.xor(of_thread, own);
                self.add_constant(index, start)
            })
            .collect()
    }

    /// Whether the thread owns what it holds: it is no replica of another.
    pub fn owns(&mut self, layout: &Layout) -> Option<Value> {
        let (lanes, warps) = layout.replicas();
        let mask = i64::from(lanes) | i64::from(warps) << LANE_BITS;
        if mask == 0 {
            return None;
        }
        let number = self.and(self.thread, mask);
        let zero = self.i32(0);
        Some(self.b.compare(Predicate::Eq, number, zero))
    }

    /// Whether a bit of the thread's number is set.
    pub fn thread_bit(&mut self, bit: usize) -> Value {
        let number = self.and(self.thread, 1 << bit);
        let zero = self.i32(0);
        self.b.compare(Predicate::Ne, number, zero)
    }

    pub fn both(&mut self, a: Option<Value>, b: Option<Value>) -> Option<Value> {
        match (a, b) {
            (Some(a), Some(b)) => Some(self.b.binary(BinaryFn::And, a, b)),
            (one, other) => one.or(other),
        }
    }

    /// The lane's number.
    pub fn lane(&mut self) -> Value {
        self.and(self.thread, 31)
    }

    /// What the lane whose number is the own one xor a constant passes.
    pub fn shuffle_xor(&mut self, src: Value, by: u32) -> Value {
        let lane = self.i32(i64::from(by));
        self.b.op(ThreadOp::WarpShuffle { mode: naiad_ir::thread::ShuffleMode::Xor, src, lane })
    }

    pub fn shuffle_from(&mut self, src: Value, lane: Value) -> Value {
        self.b.op(ThreadOp::WarpShuffle { mode: naiad_ir::thread::ShuffleMode::Index, src, lane })
    }
}
