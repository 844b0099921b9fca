//! Dead code elimination.
//!
//! An op is needed if it has an effect, if a value of its results is, or if something in its regions
//! is. A load of Tile IR that nobody uses may still be the kernel's fault that a run has to report, so
//! it stays. Loops stay where they might not end (a `while`), or might be a fault (a step of 0).
//!
//! A carried value is needed if its result is, or its parameter within the loop by more than its own
//! next value; others go with their slot. So do results of branches that nobody uses.

use crate::structure::{Flow, Structured, signed};
use naiad_ir::op::Effects;
use naiad_ir::{Block, Def, Function, Inst, OpInfo, Value};

pub fn dce<D: Structured>(func: &mut Function<D>) {
    let mut live = Liveness {
        values: vec![false; func.num_values()],
        insts: vec![false; func.num_insts()],
        owner: vec![None; func.num_blocks()],
        block_of: vec![func.entry(); func.num_insts()],
        work: Vec::new(),
        func,
    };
    let entry = live.func.entry();
    live.roots(entry);
    live.flood();
    let Liveness { values, insts, func, .. } = live;
    sweep(func, entry, &values, &insts);
}

struct Liveness<'a, D: Structured> {
    func: &'a mut Function<D>,
    values: Vec<bool>,
    insts: Vec<bool>,
    /// The op whose region a block is.
    owner: Vec<Option<Inst>>,
    block_of: Vec<Block>,
    work: Vec<Value>,
}

impl<D: Structured> Liveness<'_, D> {
    /// Notes where ops stand, and marks those that have effects.
    fn roots(&mut self, block: Block) {
        for at in 0..self.func.insts(block).len() {
            let inst = self.func.insts(block)[at];
            self.block_of[inst.index()] = block;
            let op = self.func.op(inst);
            let root = match op.effects() {
                Effects::Writes | Effects::Stays => true,
                Effects::Reads => !D::is_idle_read(op),
                // A region's end passes values on, which count only if somebody wants them.
                Effects::Terminator => block == self.func.entry(),
                Effects::Pure => false,
                Effects::Control => self.may_not_end(inst),
            };
            let mut blocks = smallvec::SmallVec::<[Block; 2]>::new();
            self.func.op(inst).each_block(&mut |b| blocks.push(b));
            for b in blocks {
                self.owner[b.index()] = Some(inst);
                self.roots(b);
            }
            if root {
                self.mark_inst(inst);
            }
        }
    }

    fn may_not_end(&self, inst: Inst) -> bool {
        let op = self.func.op(inst);
        match D::flow(op) {
            Flow::While { .. } => true,
            Flow::For { .. } => {
                let step = D::bounds(op).and_then(|[_, _, step]| D::constant(self.func, step));
                step.and_then(signed).is_none_or(|s| s == 0)
            }
            Flow::If { .. } | Flow::Other | Flow::Straight => false,
        }
    }

    /// Marks an op, what it stands in, and the operands that it wants whichever result is wanted.
    fn mark_inst(&mut self, inst: Inst) {
        if std::mem::replace(&mut self.insts[inst.index()], true) {
            return;
        }
        if let Some(owner) = self.owner[self.block_of[inst.index()].index()] {
            self.mark_inst(owner);
        }
        let op = self.func.op(inst);
        let mut wanted = smallvec::SmallVec::<[Value; 4]>::new();
        match D::flow(op) {
            Flow::Straight => op.each_value(&mut |v| wanted.push(v)),
            Flow::For { body } => {
                wanted.extend(D::bounds(op).into_iter().flatten());
                self.mark_end(body);
            }
            Flow::While { before, after } => {
                let condition = self.func.terminator(before).and_then(D::condition);
                wanted.extend(condition);
                self.mark_end(before);
                self.mark_end(after);
            }
            Flow::If { then, otherwise } => {
                wanted.extend(D::condition(op));
                self.mark_end(then);
                self.mark_end(otherwise);
            }
            Flow::Other => {
                op.each_value(&mut |v| wanted.push(v));
                let mut blocks = smallvec::SmallVec::<[Block; 1]>::new();
                op.each_block(&mut |b| blocks.push(b));
                for b in blocks {
                    wanted.extend_from_slice(D::values_of_terminator(self.func, b));
                    self.mark_end(b);
                }
            }
        }
        for v in wanted {
            self.mark(v);
        }
    }

    /// The terminator stays; what it passes on is judged value by value.
    fn mark_end(&mut self, block: Block) {
        if let Some(&last) = self.func.insts(block).last() {
            self.insts[last.index()] = true;
        }
    }

    fn mark(&mut self, value: Value) {
        if !std::mem::replace(&mut self.values[value.index()], true) {
            self.work.push(value);
        }
    }

    /// Follows every wanted value to what it is made from.
    fn flood(&mut self) {
        while let Some(value) = self.work.pop() {
            match self.func.def(value) {
                Def::Result(inst, i) => {
                    self.mark_inst(inst);
                    self.follow(inst, i as usize, None);
                }
                Def::Param(block, i) => {
                    let Some(owner) = self.owner[block.index()] else { continue };
                    self.mark_inst(owner);
                    self.follow(owner, i as usize, Some(block));
                }
            }
        }
    }

    /// Marks what flows into a control op's result `i`, or into parameter `i` of its region.
    fn follow(&mut self, inst: Inst, i: usize, region: Option<Block>) {
        let func = &*self.func;
        let init = |i: usize| D::passed(func.op(inst)).get(i).copied();
        let end = |block: Block, i: usize| D::values_of_terminator(func, block).get(i).copied();
        let sources: [Option<Value>; 3] = match (D::flow(func.op(inst)), region) {
            (Flow::For { .. }, Some(_)) if i == 0 => [None; 3],
            (Flow::For { body }, region) => {
                let i = i - usize::from(region.is_some());
                // Result and parameter have one slot, and stay or go together.
                [init(i), end(body, i), func.block_params(body).get(i + 1).copied()]
            }
            (Flow::While { before, after }, Some(block)) if block == before => {
                [init(i), end(after, i), None]
            }
            (Flow::While { before, after }, _) => {
                [end(before, i), func.block_params(after).get(i).copied(), None]
            }
            (Flow::If { then, otherwise }, _) => [end(then, i), end(otherwise, i), None],
            (Flow::Straight | Flow::Other, _) => [None; 3],
        };
        for v in sources.into_iter().flatten() {
            self.mark(v);
        }
    }
}

/// Unlinks what was not marked, and drops slots of control ops.
fn sweep<D: Structured>(func: &mut Function<D>, block: Block, values: &[bool], insts: &[bool]) {
    let mut list = func.take_insts(block);
    list.retain(|inst| insts[inst.index()]);
    for &inst in &list {
        let flow = D::flow(func.op(inst));
        match flow {
            Flow::Straight => continue,
            Flow::For { body } => {
                let keep: Vec<bool> =
                    func.block_params(body)[1..].iter().map(|p| values[p.index()]).collect();
                if keep.contains(&false) {
                    func.retain_block_params(body, |i| i == 0 || keep[i - 1]);
                    func.retain_results(inst, |i| keep[i]);
                    retain(D::passed_mut(func.op_mut(inst)), &keep);
                    retain(D::terminator_values_mut(func, body), &keep);
                }
            }
            Flow::While { before, after } => {
                let wanted = |block: Block, func: &Function<D>| -> Vec<bool> {
                    func.block_params(block).iter().map(|p| values[p.index()]).collect()
                };
                let (carried, passed) = (wanted(before, func), wanted(after, func));
                if carried.contains(&false) {
                    func.retain_block_params(before, |i| carried[i]);
                    retain(D::passed_mut(func.op_mut(inst)), &carried);
                    retain(D::terminator_values_mut(func, after), &carried);
                }
                if passed.contains(&false) {
                    func.retain_block_params(after, |i| passed[i]);
                    func.retain_results(inst, |i| passed[i]);
                    retain(D::terminator_values_mut(func, before), &passed);
                }
            }
            Flow::If { then, otherwise } => {
                let keep: Vec<bool> =
                    func.results(inst).iter().map(|r| values[r.index()]).collect();
                if keep.contains(&false) {
                    func.retain_results(inst, |i| keep[i]);
                    retain(D::terminator_values_mut(func, then), &keep);
                    retain(D::terminator_values_mut(func, otherwise), &keep);
                }
            }
            Flow::Other => {}
        }
        let mut blocks = smallvec::SmallVec::<[Block; 2]>::new();
        func.op(inst).each_block(&mut |b| blocks.push(b));
        for b in blocks {
            sweep(func, b, values, insts);
        }
    }
    func.set_insts(block, list);
}

fn retain(list: Option<&mut Vec<Value>>, keep: &[bool]) {
    let mut keep = keep.iter();
    if let Some(list) = list {
        list.retain(|_| keep.next().copied().unwrap_or(true));
    }
}
