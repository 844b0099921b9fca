//! One walk over a function that puts simpler values in the place of others.
//!
//! ```text
//!   for each op, in order:   operands := what stands for them now        Forward
//!                            rules     -> keep it, or values instead     Rules
//!                            equal op seen in this block or around it?   Numbering
//! ```
//!
//! Values are replaced through a table and each operand is looked up once, so a pass is linear however
//! many replacements it makes. Ops that rules make go through the same steps, at the place of the op
//! that is looked at. What is no longer used stays for [`crate::dce`].
//!
//! Regions are walked when their op is reached, so what stands outside is simplified before. A
//! region of an isolated op sees no outer values: its numbering starts empty.

use crate::numbering::Numbering;
use crate::structure::{Flow, Structured};
use naiad_diag::Loc;
use naiad_ir::op::Effects;
use naiad_ir::{Block, Function, Inst, OpInfo, Value};
use smallvec::SmallVec;

/// Which value stands for which.
#[derive(Debug)]
pub struct Forward {
    to: Vec<Value>,
}

impl Forward {
    pub fn new<D: Structured>(func: &Function<D>) -> Forward {
        Forward { to: (0..func.num_values()).map(Value::new).collect() }
    }

    /// From now on `new` stands wherever `old` does.
    pub fn replace(&mut self, old: Value, new: Value) {
        let new = self.get(new);
        debug_assert_ne!(old, new, "a value cannot stand for itself");
        if old.index() >= self.to.len() {
            self.to.extend((self.to.len()..=old.index()).map(Value::new));
        }
        self.to[old.index()] = new;
    }

    /// What stands for a value.
    pub fn get(&mut self, value: Value) -> Value {
        let Some(&first) = self.to.get(value.index()) else { return value };
        if first == value {
            return value;
        }
        // The end of the chain is noted, so that no chain is walked twice.
        let last = self.get(first);
        self.to[value.index()] = last;
        last
    }

    /// Puts what stands for them in the place of all operands.
    pub fn apply<D: Structured>(&mut self, func: &mut Function<D>) {
        let mut all = Vec::new();
        func.walk(&mut |inst| all.push(inst));
        for inst in all {
            func.op_mut(inst).each_value_mut(&mut |v| *v = self.get(*v));
        }
    }
}

/// What is to become of an op.
pub enum Outcome {
    /// It stays as it is.
    Keep,
    /// It was edited in place; its results have their types still. Rules look at it again.
    Edited,
    /// These values stand for its results.
    Becomes(SmallVec<[Value; 1]>),
    /// It goes; it has no results.
    Erase,
    /// The ops of one of its regions stand in its place. The parameters are these values, and what
    /// the region yields stands for the results.
    Inline(Block, SmallVec<[Value; 2]>),
}

impl Outcome {
    pub fn value(value: Value) -> Outcome {
        Outcome::Becomes(SmallVec::from_buf([value]))
    }
}

/// What is known of a dialect's ops.
pub trait Rules<D: Structured> {
    /// The constant that a parameter of the function is known to be.
    fn parameter(&self, _: &Function<D>, _: Value) -> Option<D::Op> {
        None
    }

    /// Looks at an op whose operands are final, before its regions are walked.
    fn simplify(&self, r: &mut Rewriter<'_, D>, inst: Inst) -> Outcome;

    /// Looks at an op with regions once more, when those have been walked: values for its results, or
    /// none.
    fn finish(&self, _: &mut Rewriter<'_, D>, _: Inst) -> Option<SmallVec<[Value; 1]>> {
        None
    }
}

/// No rules: equal ops are merged and nothing else.
pub struct NoRules;

impl<D: Structured> Rules<D> for NoRules {
    fn simplify(&self, _: &mut Rewriter<'_, D>, _: Inst) -> Outcome {
        Outcome::Keep
    }
}

/// Rules look at one op so often at most. They are meant to end by themselves; should two of them
/// undo each other, code is still made.
const MAX_ROUNDS: usize = 32;

/// The walk.
pub struct Rewriter<'a, D: Structured> {
    pub func: &'a mut Function<D>,
    rules: &'a dyn Rules<D>,
    forward: Forward,
    numbering: Numbering,
    /// Ops of the block that is being walked, so far.
    out: Vec<Inst>,
}

/// Walks a whole function.
pub fn rewrite<D: Structured>(func: &mut Function<D>, rules: &dyn Rules<D>) {
    let forward = Forward::new(func);
    let numbering = Numbering::default();
    let entry = func.entry();
    let mut r = Rewriter { func, rules, forward, numbering, out: Vec::new() };
    for param in r.func.params().to_vec() {
        if let Some(op) = rules.parameter(r.func, param) {
            let known = r.make(op, Loc::NONE);
            r.forward.replace(param, known);
        }
    }
    r.block(entry);
}

impl<D: Structured> Rewriter<'_, D> {
    /// The value of an op with one result, which may exist already.
    pub fn make(&mut self, op: D::Op, loc: Loc) -> Value {
        if let Some(inst) = self.numbering.find(self.func, &op) {
            return self.func.results(inst)[0];
        }
        let name = op.name();
        let inst = match self.func.create(op, loc) {
            Ok(inst) => inst,
            Err(e) => unreachable!("a rule built a `{name}` that does not fit: {e}"),
        };
        let result = self.func.results(inst)[0];
        self.settle(inst);
        self.forward.get(result)
    }

    /// Walks a block; what is in `out` comes before its ops.
    fn block(&mut self, block: Block) {
        let insts = self.func.take_insts(block);
        self.out.reserve(insts.len());
        for inst in insts {
            self.visit(inst);
        }
        let done = std::mem::take(&mut self.out);
        self.func.set_insts(block, done);
    }

    fn visit(&mut self, inst: Inst) {
        let forward = &mut self.forward;
        self.func.op_mut(inst).each_value_mut(&mut |v| *v = forward.get(*v));
        self.settle(inst);
    }

    /// Puts an op, or what becomes of it, at the end of the block.
    fn settle(&mut self, inst: Inst) {
        for round in 0..MAX_ROUNDS {
            debug_assert!(
                round + 1 < MAX_ROUNDS,
                "rules undo each other: {:?}",
                self.func.op(inst)
            );
            let rules = self.rules;
            match rules.simplify(self, inst) {
                Outcome::Keep => break,
                Outcome::Edited => continue,
                Outcome::Becomes(values) => return self.replace_results(inst, &values),
                Outcome::Erase => return,
                Outcome::Inline(block, arguments) => return self.inline(inst, block, &arguments),
            }
        }
        let op = self.func.op(inst);
        let (effects, flow) = (op.effects(), D::flow(op));
        if flow == Flow::Straight {
            if effects == Effects::Pure
                && let Some(same) = self.numbering.find_or_add(self.func, inst)
            {
                let values: SmallVec<[Value; 1]> = self.func.results(same).into();
                return self.replace_results(inst, &values);
            }
            return self.out.push(inst);
        }
        self.regions(inst, flow);
        match self.rules.finish(self, inst) {
            Some(values) => self.replace_results(inst, &values),
            None => self.out.push(inst),
        }
    }

    fn replace_results(&mut self, inst: Inst, values: &[Value]) {
        debug_assert_eq!(values.len(), self.func.results(inst).len());
        for (i, &value) in values.iter().enumerate() {
            let result = self.func.results(inst)[i];
            debug_assert_eq!(self.func.ty(result), self.func.ty(value), "types of a replacement");
            self.forward.replace(result, value);
        }
    }

    /// The ops of a region in the place of its op.
    fn inline(&mut self, inst: Inst, block: Block, arguments: &[Value]) {
        for (i, &argument) in arguments.iter().enumerate() {
            let param = self.func.block_params(block)[i];
            self.forward.replace(param, argument);
        }
        let mut insts = self.func.take_insts(block);
        let last = insts.pop();
        for inst in insts {
            self.visit(inst);
        }
        let Some(last) = last else { return };
        let passed: SmallVec<[Value; 4]> = D::passed(self.func.op(last)).into();
        let values: SmallVec<[Value; 4]> =
            passed.into_iter().map(|v| self.forward.get(v)).collect();
        self.replace_results(inst, &values);
    }

    fn regions(&mut self, inst: Inst, flow: Flow) {
        self.forward_unchanged(inst, flow);
        let mut blocks: SmallVec<[Block; 2]> = SmallVec::new();
        self.func.op(inst).each_block(&mut |b| blocks.push(b));
        let around = self.func.op(inst).is_isolated().then(|| std::mem::take(&mut self.numbering));
        for &block in &blocks {
            let scope = self.numbering.enter();
            let outside = std::mem::take(&mut self.out);
            self.block(block);
            self.out = outside;
            self.numbering.leave(scope);
        }
        if let Some(around) = around {
            self.numbering = around;
        }
        self.forward_equal_branches(inst, flow);
    }

    /// A carried value that every round passes on as it came is its initial value all the time.
    fn forward_unchanged(&mut self, inst: Inst, flow: Flow) {
        let inits: SmallVec<[Value; 4]> = D::passed(self.func.op(inst)).into();
        match flow {
            Flow::For { body } => {
                for (i, &init) in inits.iter().enumerate() {
                    let param = self.func.block_params(body)[i + 1];
                    let next = D::values_of_terminator(self.func, body)[i];
                    let next = self.forward.get(next);
                    if next == param || next == init {
                        self.forward.replace(param, init);
                        self.forward.replace(self.func.results(inst)[i], init);
                    }
                }
            }
            Flow::While { before, after } => {
                for (i, &init) in inits.iter().enumerate() {
                    let param = self.func.block_params(before)[i];
                    let passed = D::values_of_terminator(self.func, before);
                    let Some(j) = passed.iter().position(|&v| v == param) else { continue };
                    let in_body = self.func.block_params(after)[j];
                    if D::values_of_terminator(self.func, after)[i] == in_body {
                        self.forward.replace(param, init);
                        self.forward.replace(in_body, init);
                        self.forward.replace(self.func.results(inst)[j], init);
                    }
                }
            }
            Flow::If { .. } | Flow::Other | Flow::Straight => {}
        }
    }

    /// What both branches yield is the result.
    fn forward_equal_branches(&mut self, inst: Inst, flow: Flow) {
        let Flow::If { then, otherwise } = flow else { return };
        for i in 0..self.func.results(inst).len() {
            let a = D::values_of_terminator(self.func, then)[i];
            let b = D::values_of_terminator(self.func, otherwise)[i];
            if a == b {
                let result = self.func.results(inst)[i];
                self.forward.replace(result, a);
            }
        }
    }
}
