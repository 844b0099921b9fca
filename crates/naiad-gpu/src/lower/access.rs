//! Loads and stores of global memory.
//!
//! Registers that hold neighbours in memory are moved at once, as far as the addresses are aligned. If
//! their mask may differ (at a row's end), the group is moved at once where all of it is wanted, and
//! one by one otherwise.

use super::{Lower, Registers};
use crate::layout::{Layout, axis_bits};
use crate::placed::Run;
use naiad_ir::scalar::BinaryFn;
use naiad_ir::thread::{Lanes, ThreadElem, ThreadOp};
use naiad_ir::tile::MemHints;
use naiad_ir::{Inst, Scalar, Value};

impl Lower<'_> {
    /// The registers to move, those that are moved at once together, replicas of others left out.
    pub fn groups(
        &self,
        ptr: Value,
        layout: Option<&Layout>,
        run: Run,
        size: usize,
    ) -> Vec<Vec<usize>> {
        let Some(layout) = layout else { return vec![vec![0]] };
        let (low, _) = axis_bits(&self.shape(ptr), run.axis as usize);
        let most = run.vector.min((16 / size).max(1) as u32).trailing_zeros();
        layout.groups(&layout.neighbours(low, most))
    }

    fn splat(&mut self, value: Value, lanes: usize) -> Value {
        self.b.splat(value, lanes as u32)
    }

    /// Whether all masks of a group hold, in one value; and whether that is all there is to say.
    fn group_mask(&mut self, masks: &[Value], alike: u32) -> (Value, bool) {
        if masks.len() as u32 <= alike || masks.iter().all(|m| *m == masks[0]) {
            return (masks[0], true);
        }
        let all = masks[1..].iter().fold(masks[0], |a, &b| self.b.binary(BinaryFn::And, a, b));
        (all, false)
    }

    pub fn load(
        &mut self,
        inst: Inst,
        ptr: Value,
        mask: Option<Value>,
        other: Option<Value>,
        hints: MemHints,
    ) -> Registers {
        let run = self.f.op(inst).run;
        let layout = self.layout(ptr);
        let elem = self.elem(self.f.results(inst)[0]);
        self.guard(inst, ptr, mask, elem);
        let addresses = self.get(ptr).clone();
        let masks = mask.map(|m| self.get(m).clone());
        let mut loaded: Registers = addresses.clone();
        let rows = self.rows(&self.shape(ptr), layout.as_ref(), run, elem.size());
        let groups = match &rows {
            Some(rows) => rows.clone(),
            None => self.groups(ptr, layout.as_ref(), run, elem.size()),
        };
        for group in groups {
            let of = |all: &Registers| -> Vec<Value> { group.iter().map(|&r| all[r]).collect() };
            let (at, wanted) = (of(&addresses), masks.as_ref().map(of));
            let (wanted, alike) = (wanted.as_deref(), run.mask);
            let values = match rows {
                Some(_) => self.load_row(&at, wanted, alike, elem, hints),
                None => self.load_group(&at, wanted, alike, elem, hints),
            };
            for (&r, value) in group.iter().zip(values) {
                loaded[r] = value;
            }
        }
        if let Some(layout) = &layout {
            for r in 0..loaded.len() {
                let original = layout.registers().iter().enumerate();
                let kept: usize = original.filter(|(_, b)| **b != 0).map(|(i, _)| 1 << i).sum();
                loaded[r] = loaded[r & kept];
            }
        }
        if layout.is_none() && hints.volatile {
            // Another program may write it between two threads' reads.
            loaded[0] = self.told_to_all(loaded[0]);
        }
        if let (Some(other), Some(masks)) = (other, masks) {
            let other = self.get(other).clone();
            for (r, value) in loaded.iter_mut().enumerate() {
                // What is not read is 0 already.
                if !self.is_zero(other[r]) {
                    *value = self.b.select(masks[r], *value, other[r]);
                }
            }
        }
        loaded
    }

    fn is_zero(&self, value: Value) -> bool {
        matches!(self.b.func.defining_op(value), Some(ThreadOp::Const { value, .. }) if value.bits == 0)
    }

    pub fn load_op(
        &mut self,
        addr: Value,
        elem: ThreadElem,
        lanes: usize,
        mask: Option<Value>,
        hints: MemHints,
    ) -> Value {
        let lanes = Lanes(lanes as u32);
        let (addr, disp) = self.sum(addr);
        self.b.op(ThreadOp::Load { addr, disp, elem, lanes, mask, hints })
    }

    fn load_group(
        &mut self,
        at: &[Value],
        masks: Option<&[Value]>,
        alike: u32,
        elem: ThreadElem,
        hints: MemHints,
    ) -> Vec<Value> {
        let n = at.len();
        let lanes = |lower: &mut Self, all: Value| -> Vec<Value> {
            (0..n as u32).map(|i| lower.b.extract(all, i)).collect()
        };
        let Some(masks) = masks else {
            let all = self.load_op(at[0], elem, n, None, hints);
            return lanes(self, all);
        };
        let (all, complete) = self.group_mask(masks, alike);
        if complete {
            let mask = self.splat(all, n);
            let vector = self.load_op(at[0], elem, n, Some(mask), hints);
            return lanes(self, vector);
        }
        let whole = self.b.begin_branch();
        let vector = self.load_op(at[0], elem, n, None, hints);
        let values = lanes(self, vector);
        let then = self.b.end_branch(whole, values);
        let single = self.b.begin_branch();
        let values = (0..n).map(|i| self.load_op(at[i], elem, 1, Some(masks[i]), hints)).collect();
        let otherwise = self.b.end_branch(single, values);
        self.b.ops(ThreadOp::If { cond: all, then, otherwise })
    }

    pub fn store(
        &mut self,
        inst: Inst,
        ptr: Value,
        value: Value,
        mask: Option<Value>,
        hints: MemHints,
    ) {
        let run = self.f.op(inst).run;
        let layout = self.layout(ptr);
        let elem = self.elem(value);
        self.guard(inst, ptr, mask, elem);
        let (addresses, values) = (self.get(ptr).clone(), self.get(value).clone());
        let masks = mask.map(|m| self.get(m).clone());
        let owner = self.owner(layout.as_ref());
        for group in self.groups(ptr, layout.as_ref(), run, elem.size()) {
            let of = |all: &Registers| -> Vec<Value> { group.iter().map(|&r| all[r]).collect() };
            let (at, values) = (of(&addresses), of(&values));
            let n = at.len();
            let wanted = masks.as_ref().map(of);
            let Some(wanted) = wanted else {
                self.store_op(&at, &values, owner, hints);
                continue;
            };
            let (all, complete) = self.group_mask(&wanted, run.mask);
            let all = self.both(Some(all), owner).unwrap_or(all);
            if complete {
                self.store_op(&at, &values, Some(all), hints);
                continue;
            }
            let whole = self.b.begin_branch();
            self.store_op(&at, &values, None, hints);
            let then = self.b.end_branch(whole, vec![]);
            let single = self.b.begin_branch();
            for i in 0..n {
                let mask = self.both(Some(wanted[i]), owner);
                self.store_op(&at[i..=i], &values[i..=i], mask, hints);
            }
            let otherwise = self.b.end_branch(single, vec![]);
            self.b.run(ThreadOp::If { cond: all, then, otherwise });
        }
    }

    /// Whether this thread is the one that writes: of a scalar the first.
    pub fn owner(&mut self, layout: Option<&Layout>) -> Option<Value> {
        match layout {
            Some(layout) => self.owns(layout),
            None => {
                let zero = self.i32(0);
                Some(self.b.compare(naiad_ir::scalar::Predicate::Eq, self.thread, zero))
            }
        }
    }

    fn store_op(&mut self, at: &[Value], values: &[Value], mask: Option<Value>, hints: MemHints) {
        let n = values.len();
        let value = self.pack(values);
        let mask = mask.map(|m| self.splat(m, n));
        let (addr, disp) = self.sum(at[0]);
        self.b.run(ThreadOp::Store { addr, value, disp, mask, hints });
    }

    pub fn pack(&mut self, values: &[Value]) -> Value {
        match values {
            [one] => *one,
            all => self.b.op(ThreadOp::Pack { lanes: all.to_vec() }),
        }
    }
}

/// What an element is as it lies in shared memory: booleans as bytes.
pub fn in_memory(elem: ThreadElem) -> ThreadElem {
    match elem {
        ThreadElem::Scalar(Scalar::I1) => Scalar::U8.into(),
        other => other,
    }
}
