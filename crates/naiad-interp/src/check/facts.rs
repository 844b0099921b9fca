//! What is known of a kernel before it runs, for the checks that need it.
//!
//! - *Uniform axes*: along which axes a value is the same by construction (a splat, a broadcast). A row's
//!   mean is data, but no lane's own data: subtracting it from padding leaves padding.
//! - *Recurrences*: `acc = acc op t` round a loop, which combines lanes over time as `reduce` does over
//!   an axis.
//! - *Address arithmetic*: the ops whose result becomes part of an address.
//! - *Bases*: the parameter that a pointer was made from.

use naiad_ir::function::Def;
use naiad_ir::scalar::BinaryFn;
use naiad_ir::tile::{Tile as TileIr, TileOp};
use naiad_ir::{Block, Function, Inst, OpInfo, Value};

pub struct Facts {
    uniform: Vec<u32>,
    recurrence: Vec<Option<Recurrence>>,
    address: Vec<bool>,
    bases: Vec<Option<u32>>,
}

/// Which operand of a binary op is what was there before.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Recurrence {
    First,
    Second,
}

impl Facts {
    pub fn new(func: &Function<TileIr>) -> Facts {
        let mut facts = Facts {
            uniform: vec![0; func.num_values()],
            recurrence: vec![None; func.num_insts()],
            address: vec![false; func.num_insts()],
            bases: vec![None; func.num_values()],
        };
        for (i, &param) in func.params().iter().enumerate() {
            facts.uniform[param.index()] = u32::MAX;
            facts.bases[param.index()] = Some(i as u32);
        }
        facts.block(func, func.entry());
        facts.mark_addresses(func);
        facts
    }

    /// Axes along which a value is the same, as bits.
    pub fn uniform(&self, value: Value) -> u32 {
        self.uniform[value.index()]
    }

    pub fn recurrence(&self, inst: Inst) -> Option<Recurrence> {
        self.recurrence[inst.index()]
    }

    /// Whether an op's result becomes part of an address.
    pub fn is_address(&self, inst: Inst) -> bool {
        self.address[inst.index()]
    }

    /// The parameter that a pointer was made from, as far as the text shows.
    pub fn base(&self, pointer: Value) -> Option<u32> {
        self.bases[pointer.index()]
    }

    fn block(&mut self, func: &Function<TileIr>, block: Block) {
        for &inst in func.insts(block) {
            let op = func.op(inst);
            self.carry(func, op);
            op.each_block(&mut |b| self.block(func, b));
            if let TileOp::For { body, .. } = op {
                self.find_recurrences(func, *body, 1, func.terminator(*body));
            }
            if let TileOp::While { before, after, .. } = op {
                self.find_recurrences_of_while(func, *before, *after);
            }
            for (i, &result) in func.results(inst).iter().enumerate() {
                self.uniform[result.index()] = self.uniform_of(func, op, result);
                self.bases[result.index()] = self.base_of(func, inst, op, i);
            }
        }
    }

    /// What the parameters of an op's blocks start with.
    fn carry(&mut self, func: &Function<TileIr>, op: &TileOp) {
        let (inits, params): (&[Value], &[Value]) = match op {
            TileOp::For { inits, body, .. } => {
                let params = func.block_params(*body);
                if let Some(iv) = params.first() {
                    self.uniform[iv.index()] = u32::MAX;
                }
                (inits, params.get(1..).unwrap_or(&[]))
            }
            TileOp::While { inits, before, .. } => (inits, func.block_params(*before)),
            _ => return,
        };
        for (init, param) in inits.iter().zip(params) {
            self.bases[param.index()] = self.bases[init.index()];
            if func.ty(*param).is_scalar() {
                self.uniform[param.index()] = u32::MAX;
            }
        }
        if let TileOp::While { before, after, .. } = op
            && let Some(TileOp::Condition { values, .. }) = func.terminator(*before)
        {
            for (value, param) in values.iter().zip(func.block_params(*after)) {
                self.bases[param.index()] = self.bases[value.index()];
                if func.ty(*param).is_scalar() {
                    self.uniform[param.index()] = u32::MAX;
                }
            }
        }
    }

    fn uniform_of(&self, func: &Function<TileIr>, op: &TileOp, result: Value) -> u32 {
        let of = |v: &Value| self.uniform[v.index()];
        let shape = func.ty(result).shape;
        if shape.is_scalar() {
            return u32::MAX;
        }
        let ones = (0..shape.rank()).filter(|&d| shape.dim(d) == 1).fold(0, |a, d| a | 1 << d);
        let found = match op {
            TileOp::Splat { .. } => u32::MAX,
            TileOp::ExpandDims { src, axis } => {
                let (bits, low) = (of(src), (1u32 << axis) - 1);
                bits & low | (bits & !low) << 1
            }
            TileOp::Broadcast { src, .. } => {
                let from = func.ty(*src).shape;
                let grown = (0..shape.rank()).filter(|&d| from.dim(d) != shape.dim(d));
                let kept = (0..shape.rank()).filter(|&d| from.dim(d) == shape.dim(d));
                grown.fold(0, |a, d| a | 1 << d) | kept.fold(0, |a, d| a | of(src) & 1 << d)
            }
            TileOp::Permute { src, order } => {
                let axes = order.iter().enumerate();
                axes.fold(0, |a, (d, &from)| a | (of(src) >> from & 1) << d)
            }
            TileOp::Reshape { src, .. } if of(src) == u32::MAX => u32::MAX,
            TileOp::Reduce { inputs, axis, .. } => {
                let all = inputs.iter().fold(u32::MAX, |a, v| a & of(v));
                let low = (1u32 << axis) - 1;
                all & low | all >> 1 & !low
            }
            TileOp::Load { ptr, mask, other, .. } => [Some(ptr), mask.as_ref(), other.as_ref()]
                .iter()
                .flatten()
                .fold(u32::MAX, |a, v| a & of(v)),
            op if op.is_lanewise() => {
                let mut all = u32::MAX;
                op.each_value(&mut |v| all &= of(&v));
                all
            }
            _ => 0,
        };
        found | ones
    }

    fn base_of(&self, func: &Function<TileIr>, inst: Inst, op: &TileOp, i: usize) -> Option<u32> {
        let result = func.results(inst)[i];
        if !func.ty(result).is_pointer() {
            return None;
        }
        let of = |v: Value| self.bases[v.index()];
        match op {
            TileOp::For { inits, .. } => of(*inits.get(i)?),
            TileOp::While { inits, .. } => of(*inits.get(i)?),
            TileOp::If { then, otherwise, .. } => {
                let yielded = |block: &Block| match func.terminator(*block) {
                    Some(TileOp::Yield { values }) => of(*values.get(i)?),
                    _ => None,
                };
                let (a, b) = (yielded(then)?, yielded(otherwise)?);
                (a == b).then_some(a)
            }
            TileOp::Load { .. } => None,
            op => {
                let mut found: Option<Option<u32>> = None;
                op.each_value(&mut |v| {
                    if func.ty(v).is_pointer() {
                        let base = of(v);
                        found = Some(found.map_or(base, |f| if f == base { base } else { None }));
                    }
                });
                found.flatten()
            }
        }
    }

    fn find_recurrences(
        &mut self,
        func: &Function<TileIr>,
        body: Block,
        skip: usize,
        end: Option<&TileOp>,
    ) {
        let Some(TileOp::Yield { values }) = end else { return };
        let params = func.block_params(body).get(skip..).unwrap_or(&[]);
        for (&param, &next) in params.iter().zip(values) {
            self.note_recurrence(func, param, next);
        }
    }

    fn find_recurrences_of_while(&mut self, func: &Function<TileIr>, before: Block, after: Block) {
        let Some(TileOp::Condition { values: passed, .. }) = func.terminator(before) else {
            return;
        };
        let Some(TileOp::Yield { values }) = func.terminator(after) else { return };
        let firsts = func.block_params(before);
        for (i, &param) in func.block_params(after).iter().enumerate() {
            // Only what the test passes on unchanged, in its place, comes round.
            if passed.get(i).is_some()
                && passed.get(i) == firsts.get(i)
                && let Some(&next) = values.get(i)
            {
                self.note_recurrence(func, param, next);
            }
        }
    }

    /// Follows `acc + t1 + t2` back from what is yielded to what came in.
    fn note_recurrence(&mut self, func: &Function<TileIr>, param: Value, next: Value) {
        let mut at = next;
        let mut chain = Vec::new();
        while let Def::Result(inst, _) = func.def(at) {
            let TileOp::Binary { f, a, b } = func.op(inst) else { return };
            if !combines(*f) {
                return;
            }
            // The side on which the accumulator comes, if either is it or leads to it.
            let side = if leads_to(func, *a, param) {
                Recurrence::First
            } else if leads_to(func, *b, param) {
                Recurrence::Second
            } else {
                return;
            };
            chain.push((inst, side));
            at = if side == Recurrence::First { *a } else { *b };
            if at == param {
                break;
            }
        }
        if at == param {
            for (inst, side) in chain {
                self.recurrence[inst.index()] = Some(side);
            }
        }
    }

    fn mark_addresses(&mut self, func: &Function<TileIr>) {
        let mut pending: Vec<Value> = Vec::new();
        func.walk(&mut |inst| {
            if let TileOp::PtrAdd { offset, .. } = func.op(inst) {
                pending.push(*offset);
            }
        });
        let mut seen = vec![false; func.num_values()];
        while let Some(value) = pending.pop() {
            if std::mem::replace(&mut seen[value.index()], true) {
                continue;
            }
            match func.def(value) {
                Def::Result(inst, i) => {
                    let i = i as usize;
                    self.address[inst.index()] = true;
                    match func.op(inst) {
                        TileOp::Load { .. } | TileOp::Compare { .. } => {}
                        TileOp::Select { yes, no, .. } => pending.extend([*yes, *no]),
                        TileOp::For { inits, body, .. } => {
                            pending.extend(inits.get(i));
                            if let Some(TileOp::Yield { values }) = func.terminator(*body) {
                                pending.extend(values.get(i));
                            }
                        }
                        TileOp::If { then, otherwise, .. } => {
                            for block in [then, otherwise] {
                                if let Some(TileOp::Yield { values }) = func.terminator(*block) {
                                    pending.extend(values.get(i));
                                }
                            }
                        }
                        op => op.each_value(&mut |v| pending.push(v)),
                    }
                }
                Def::Param(block, i) => self.pend_carried(func, block, i as usize, &mut pending),
            }
        }
    }

    fn pend_carried(
        &self,
        func: &Function<TileIr>,
        block: Block,
        i: usize,
        pending: &mut Vec<Value>,
    ) {
        func.walk(&mut |inst| match func.op(inst) {
            TileOp::For { inits, body, .. } if *body == block && i > 0 => {
                pending.extend(inits.get(i - 1));
                if let Some(TileOp::Yield { values }) = func.terminator(*body) {
                    pending.extend(values.get(i - 1));
                }
            }
            TileOp::While { inits, before, after } => {
                if *before == block {
                    pending.extend(inits.get(i));
                    if let Some(TileOp::Yield { values }) = func.terminator(*after) {
                        pending.extend(values.get(i));
                    }
                }
                if *after == block
                    && let Some(TileOp::Condition { values, .. }) = func.terminator(*before)
                {
                    pending.extend(values.get(i));
                }
            }
            _ => {}
        });
    }
}

/// Functions by which loops accumulate.
fn combines(f: BinaryFn) -> bool {
    f.is_commutative() && f != BinaryFn::Umulhi && f != BinaryFn::Hypot
}

/// Whether a value is `param`, or a chain of combinations that begins with it.
fn leads_to(func: &Function<TileIr>, value: Value, param: Value) -> bool {
    let mut at = value;
    for _ in 0..32 {
        if at == param {
            return true;
        }
        let Def::Result(inst, _) = func.def(at) else { return false };
        let TileOp::Binary { f, a, .. } = func.op(inst) else { return false };
        if !combines(*f) {
            return false;
        }
        at = *a;
    }
    false
}
