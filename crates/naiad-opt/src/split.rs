//! Carried tiles of pointers and integers that move by a scalar become an invariant tile and a carried
//! scalar.
//!
//! ```text
//!   %r = for … inits=[%init] {                 %k0 = const 0
//!   ^(%i, %p):                                 %kr = for … inits=[%k0] {
//!     … %p …                                   ^(%i, %k):
//!     %q = ptr_add %p, splat %s          ->      %p = ptr_add %init, splat %k
//!     yield %q                                   … %p …
//!   }                                            yield %k + %s
//!                                              }
//!                                              %r = ptr_add %init, splat %kr
//! ```
//!
//! For a pointer the scalar counts elements in i64: offsets are extended to 64 bits, each by its own
//! signedness, before they are added to an address, and addresses wrap at 64 bits; so adding the
//! extended steps first is exact. For integers the scalar has the tile's own type, in which sums wrap
//! and may be regrouped. `%s` may change from round to round. Pointers that are scalars are split too,
//! so that every address in a loop is an invariant base and an offset.
//!
//! Slots with equal steps share one scalar. The old slot is left without use for [`crate::dce`].

use crate::canonical::splat_of;
use crate::rewrite::Forward;
use crate::structure::Structured;
use naiad_diag::Loc;
use naiad_ir::scalar::{BinaryFn, Rounding};
use naiad_ir::tile::{Constant, Tile, TileOp};
use naiad_ir::{Block, Def, Elem, Function, Inst, OpInfo, Scalar, Type, Value};
use smallvec::SmallVec;

/// Says whether anything was split.
pub fn split_carried(func: &mut Function<Tile>) -> bool {
    let forward = Forward::new(func);
    let mut splitter = Splitter { func, forward, changed: false };
    let entry = splitter.func.entry();
    splitter.block(entry);
    if splitter.changed {
        splitter.forward.apply(splitter.func);
    }
    splitter.changed
}

struct Splitter<'a> {
    func: &'a mut Function<Tile>,
    forward: Forward,
    changed: bool,
}

/// What is added to a carried value in one round.
#[derive(PartialEq)]
struct Step {
    /// The type of the scalar that counts.
    counts_in: Scalar,
    /// Scalars, each added or subtracted.
    by: SmallVec<[(BinaryFn, Value); 2]>,
}

/// A scalar that counts what has been added so far.
struct Counter {
    step: Step,
    /// In the test of a `while`, in the body, and behind the loop.
    in_test: Option<Value>,
    in_body: Value,
    last: Value,
}

/// A loop, and the ops that are put around and into it.
struct Loop {
    inst: Inst,
    /// Of a `while`.
    test: Option<Block>,
    body: Block,
    before: Vec<Inst>,
    test_head: Vec<Inst>,
    head: Vec<Inst>,
    tail: Vec<Inst>,
    behind: Vec<Inst>,
}

impl Splitter<'_> {
    fn block(&mut self, block: Block) {
        let list = self.func.take_insts(block);
        let mut out = Vec::with_capacity(list.len());
        for inst in list {
            let mut blocks: SmallVec<[Block; 2]> = SmallVec::new();
            self.func.op(inst).each_block(&mut |b| blocks.push(b));
            // Inner loops first: what one adds to a value is then a step of the outer one's.
            for b in blocks {
                self.block(b);
            }
            let (test, body) = match *self.func.op(inst) {
                TileOp::For { body, .. } => (None, body),
                TileOp::While { before, after, .. } => (Some(before), after),
                _ => {
                    out.push(inst);
                    continue;
                }
            };
            let mut l = Loop::new(inst, test, body);
            self.split(&mut l);
            out.append(&mut l.before);
            out.push(inst);
            out.append(&mut l.behind);
        }
        self.func.set_insts(block, out);
    }

    fn split(&mut self, l: &mut Loop) {
        let inits = Tile::passed(self.func.op(l.inst)).to_vec();
        let next = Tile::values_of_terminator(self.func, l.body).to_vec();
        let params = self.func.block_params(l.body).to_vec();
        // A test is seen through where it passes a value on as it came.
        let tested = l.test.map(|test| self.func.block_params(test).to_vec());
        let passed = l.test.map_or(&[][..], |test| Tile::values_of_terminator(self.func, test));
        let passed = passed.to_vec();
        let mut counters: Vec<Counter> = Vec::new();
        for (i, &init) in inits.iter().enumerate() {
            let arrives = match &tested {
                None => Some(i),
                Some(tested) => passed.iter().position(|&v| v == tested[i]),
            };
            let Some(j) = arrives else { continue };
            let param = params[if tested.is_none() { j + 1 } else { j }];
            let Some(step) = self.step(param, next[i]) else { continue };
            self.changed = true;
            let at = match counters.iter().position(|c| c.step == step) {
                Some(at) => at,
                None => {
                    counters.push(self.counter(l, step));
                    counters.len() - 1
                }
            };
            let (c, loc) = (&counters[at], self.func.loc(l.inst));
            if let (Some(tested), Some(k)) = (&tested, c.in_test) {
                let moved = self.moved(init, k, loc, &mut l.test_head);
                self.forward.replace(tested[i], moved);
            }
            let moved = self.moved(init, c.in_body, loc, &mut l.head);
            self.forward.replace(param, moved);
            let moved = self.moved(init, c.last, loc, &mut l.behind);
            let result = self.func.results(l.inst)[j];
            self.forward.replace(result, moved);
        }
        if let Some(test) = l.test {
            self.surround(test, &mut l.test_head, &mut Vec::new());
        }
        self.surround(l.body, &mut l.head, &mut l.tail);
    }

    /// What is added to a parameter to give its next value, if that is all that happens to it.
    fn step(&mut self, param: Value, next: Value) -> Option<Step> {
        let ty = self.func.ty(param);
        let counts_in = match ty.elem {
            Elem::Pointer(_) => Scalar::I64,
            Elem::Scalar(s) if s.is_int() && !ty.is_scalar() => s,
            Elem::Scalar(_) => return None,
        };
        let mut by = SmallVec::new();
        let mut value = self.forward.get(next);
        while value != param {
            let Def::Result(inst, _) = self.func.def(value) else { return None };
            let (f, from, moved_by) = match *self.func.op(inst) {
                TileOp::PtrAdd { ptr, offset } => (BinaryFn::Add, ptr, offset),
                TileOp::Binary { f: f @ (BinaryFn::Add | BinaryFn::Sub), a, b } => (f, a, b),
                _ => return None,
            };
            let uniform = |func: &Function<Tile>, v| {
                if func.ty(v).is_scalar() { Some(v) } else { splat_of(func, v) }
            };
            let (from, moved_by) = (self.forward.get(from), self.forward.get(moved_by));
            match (uniform(self.func, moved_by), uniform(self.func, from)) {
                (Some(s), _) => {
                    by.push((f, s));
                    value = from;
                }
                (None, Some(s)) if f == BinaryFn::Add && !ty.is_pointer() => {
                    by.push((f, s));
                    value = moved_by;
                }
                _ => return None,
            }
        }
        (!by.is_empty()).then_some(Step { counts_in, by })
    }

    /// Makes the slot of a scalar that starts at 0.
    fn counter(&mut self, l: &mut Loop, step: Step) -> Counter {
        let (ty, loc) = (Type::scalar(step.counts_in), self.func.loc(l.inst));
        let zero = TileOp::Const { value: Constant::int(step.counts_in, 0) };
        let zero = self.put(zero, loc, &mut l.before);
        let in_test = l.test.map(|test| self.func.add_block_param(test, ty));
        let in_body = self.func.add_block_param(l.body, ty);
        let mut next = in_body;
        for &(f, by) in &step.by {
            let mut b = by;
            if self.func.ty(by) != ty {
                let cast =
                    TileOp::Cast { src: by, to: step.counts_in, rounding: Rounding::Nearest };
                b = self.put(cast, loc, &mut l.tail);
            }
            next = self.put(TileOp::Binary { f, a: next, b }, loc, &mut l.tail);
        }
        if let Some(inits) = Tile::passed_mut(self.func.op_mut(l.inst)) {
            inits.push(zero);
        }
        if let (Some(test), Some(k)) = (l.test, in_test)
            && let Some(passed) = Tile::terminator_values_mut(self.func, test)
        {
            passed.push(k);
        }
        if let Some(yielded) = Tile::terminator_values_mut(self.func, l.body) {
            yielded.push(next);
        }
        Counter { step, in_test, in_body, last: self.func.add_result(l.inst, ty) }
    }

    /// `init` and a scalar added to every lane.
    fn moved(&mut self, init: Value, k: Value, loc: Loc, list: &mut Vec<Inst>) -> Value {
        let ty = self.func.ty(init);
        let mut by = k;
        if !ty.is_scalar() {
            by = self.put(TileOp::Splat { src: k, shape: ty.shape }, loc, list);
        }
        let op = if ty.is_pointer() {
            TileOp::PtrAdd { ptr: init, offset: by }
        } else {
            TileOp::Binary { f: BinaryFn::Add, a: init, b: by }
        };
        self.put(op, loc, list)
    }

    fn put(&mut self, op: TileOp, loc: Loc, list: &mut Vec<Inst>) -> Value {
        match self.func.create(op, loc) {
            Ok(inst) => {
                list.push(inst);
                self.func.results(inst)[0]
            }
            Err(e) => unreachable!("a carried value was split into ops that do not fit: {e}"),
        }
    }

    /// Puts ops at a block's start, and before its last.
    fn surround(&mut self, block: Block, head: &mut Vec<Inst>, tail: &mut Vec<Inst>) {
        if head.is_empty() && tail.is_empty() {
            return;
        }
        let mut list = std::mem::take(head);
        let mut inner = self.func.take_insts(block);
        let last = inner.pop();
        list.append(&mut inner);
        list.append(tail);
        list.extend(last);
        self.func.set_insts(block, list);
    }
}

impl Loop {
    fn new(inst: Inst, test: Option<Block>, body: Block) -> Loop {
        let [before, test_head, head, tail, behind] = [const { Vec::new() }; 5];
        Loop { inst, test, body, before, test_head, head, tail, behind }
    }
}
