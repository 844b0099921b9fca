//! The first and the last round of loops that carry tiles, made apart from the others.
//!
//! A tile that a loop carries is kept in memory from round to round. Its first value and its last one need
//! not be: what the first round makes of a constant is written at once, and what the last round makes
//! goes where it is wanted, as a rule into a reduction, element by element.
//!
//! ```text
//!   %r = for lower, upper, step inits=[%i] {      if upper > lower + step {
//!   ^(%k, %c):                                      %a = BODY(lower, %i)
//!     BODY                                          %b = for lower + step, last, step inits=[%a] { BODY }
//!   }                                               %c = BODY(last, %b);  yield reduce %c
//!   %s = reduce %r                           ->   } else if upper > lower {
//!                                                   %c = BODY(lower, %i); yield reduce %c
//!                                                 } else {
//!                                                   yield reduce %i
//!                                                 }
//! ```
//!
//! So a loop of one round keeps nothing, and one of two writes and reads its tile once. Each element is
//! combined in the order in which the loop does. Only light bodies are copied, without effects but loads,
//! and of these each stands in the branch where it runs: faults are those of the loop.

use crate::dist::plan::{Class, Plan, class, weight};
use naiad_diag::Loc;
use naiad_ir::scalar::{BinaryFn, Predicate};
use naiad_ir::tile::{Constant, Tile, TileOp};
use naiad_ir::{Block, Effects, Function, Inst, OpInfo, Scalar, Value};
use naiad_opt::structure::{Structured, signed, trip_count};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// Elements of a carried tile from which peeling is worth its code.
const LARGE: usize = 64;

/// No body of more ops, or of more work for an element next to an addition, is copied.
const OPS: usize = 48;
const WORK: u32 = 32;

/// Peels the loops of a verified kernel that are worth it.
pub fn peel(func: &mut Function<Tile>) {
    let plan = Plan::new(func);
    if plan.communicates {
        return;
    }
    let mut peeler = Peeler { func, plan, to: FxHashMap::default() };
    let entry = peeler.func.entry();
    peeler.block(entry);
    if peeler.to.is_empty() {
        return;
    }
    let Peeler { func, to, .. } = peeler;
    let mut all = Vec::new();
    func.walk(&mut |inst| all.push(inst));
    for inst in all {
        func.op_mut(inst).each_value_mut(&mut |v| {
            while let Some(&new) = to.get(v) {
                *v = new;
            }
        });
    }
}

struct Peeler<'a> {
    func: &'a mut Function<Tile>,
    /// Of the function as it was: what is new is never asked for.
    plan: Plan,
    /// Results that are replaced.
    to: FxHashMap<Value, Value>,
}

/// A loop to be peeled.
struct Loop {
    loc: Loc,
    op: TileOp,
    lower: Value,
    upper: Value,
    step: Value,
    /// The constants that the lower bound and the step are.
    from: i64,
    by: i64,
    ty: Scalar,
    inits: Vec<Value>,
    body: Block,
    outs: Vec<Out>,
}

/// What is wanted of a loop.
struct Out {
    /// The number of the carried value.
    at: usize,
    /// A reduction that is all that wants it.
    reduce: Option<Inst>,
    /// What is replaced.
    old: Value,
}

impl Peeler<'_> {
    fn block(&mut self, block: Block) {
        let list = self.func.take_insts(block);
        let mut out = Vec::with_capacity(list.len());
        let mut gone: Vec<Inst> = Vec::new();
        for &inst in &list {
            let mut regions: SmallVec<[Block; 2]> = SmallVec::new();
            if !self.func.op(inst).is_isolated() {
                self.func.op(inst).each_block(&mut |b| regions.push(b));
            }
            for region in regions {
                self.block(region);
            }
            if gone.contains(&inst) {
                continue;
            }
            match self.candidate(inst, &list) {
                Some(l) => {
                    gone.extend(l.outs.iter().filter_map(|o| o.reduce));
                    self.peel(inst, &l, &mut out);
                }
                None => out.push(inst),
            }
        }
        self.func.set_insts(block, out);
    }

    /// The loop that an op is, if it is worth it; `list` is the block in which it stands.
    fn candidate(&self, inst: Inst, list: &[Inst]) -> Option<Loop> {
        let f = &*self.func;
        let op = f.op(inst);
        let TileOp::For { lower, upper, step, inits, hints, body } = op else { return None };
        let (lower, upper, step, body) = (*lower, *upper, *step, *body);
        let ty = f.ty(lower).elem.scalar().filter(|s| matches!(s, Scalar::I32 | Scalar::I64))?;
        let number = |v: Value| i64::try_from(Tile::constant(f, v).and_then(signed)?).ok();
        let (from, by) = (number(lower)?, number(step)?);
        // The end of a round, and so the last one's start, are numbers of the type.
        let fits = from >= 0 && by > 0 && i128::from(from) + i128::from(by) <= ty.int_max();
        if !fits || by.count_ones() != 1 || hints.disable_licm {
            return None;
        }
        let ops = f.insts(body);
        let mut work = 0;
        let mut loads = false;
        for &inst in ops {
            let op = f.op(inst);
            loads |= matches!(op, TileOp::Load { .. });
            work += weight(f, inst);
            let simple = match op.effects() {
                Effects::Terminator => true,
                Effects::Pure | Effects::Reads => class(f, inst) == Class::Virtual,
                Effects::Writes | Effects::Control | Effects::Stays => false,
            };
            if !simple {
                return None;
            }
        }
        let (params, next) = (&f.block_params(body)[1..], Tile::values_of_terminator(f, body));
        let tiles = || params.iter().zip(next).filter(|(p, _)| !f.ty(**p).is_scalar());
        let large = tiles().any(|(p, _)| f.ty(*p).shape.numel() >= LARGE);
        let lanewise = tiles().all(|(&p, &n)| self.plan.changes_in_place(f, p, n));
        if !(loads && large && lanewise) || ops.len() > OPS || work > WORK {
            return None;
        }
        let mut outs = Vec::new();
        for (at, &old) in f.results(inst).iter().enumerate() {
            match *self.plan.users(old) {
                [] => {}
                [user]
                    if list.contains(&user)
                        && matches!(f.op(user), TileOp::Reduce { inputs, .. } if inputs.len() == 1) =>
                {
                    outs.push(Out { at, reduce: Some(user), old: f.results(user)[0] });
                }
                _ => outs.push(Out { at, reduce: None, old }),
            }
        }
        let (loc, op, inits) = (f.loc(inst), op.clone(), inits.clone());
        Some(Loop { loc, op, lower, upper, step, from, by, ty, inits, body, outs })
    }

    fn peel(&mut self, inst: Inst, l: &Loop, out: &mut Vec<Inst>) {
        let known = trip_count(self.func, inst);
        let made = if known.is_some_and(|n| n >= 2) {
            self.rounds(l, out)
        } else {
            let next = self.number(l, l.from + l.by, out);
            let several = self.compare(l, next, out);
            let then = self.region(l.loc, |this, out| this.rounds(l, out));
            let otherwise = self.region(l.loc, |this, out| {
                let any = this.compare(l, l.lower, out);
                let then = this.region(l.loc, |this, out| {
                    let last = this.body(l, l.lower, &l.inits, out);
                    this.outs(l, &last, out)
                });
                let otherwise = this.region(l.loc, |this, out| this.outs(l, &l.inits, out));
                this.put(TileOp::If { cond: any, then, otherwise }, l.loc, out)
            });
            self.put(TileOp::If { cond: several, then, otherwise }, l.loc, out)
        };
        for (o, new) in l.outs.iter().zip(made) {
            self.to.insert(o.old, new);
        }
    }

    /// Two rounds or more.
    fn rounds(&mut self, l: &Loop, out: &mut Vec<Inst>) -> Vec<Value> {
        let first = self.body(l, l.lower, &l.inits, out);
        let start = self.number(l, l.from + l.by, out);
        // The last round starts at lower + (upper - 1 - lower) / step * step.
        let mut last = l.upper;
        let before = self.number(l, -1 - l.from, out);
        last = self.binary(l, BinaryFn::Add, last, before, out);
        let whole = self.number(l, -l.by, out);
        last = self.binary(l, BinaryFn::And, last, whole, out);
        if l.from != 0 {
            last = self.binary(l, BinaryFn::Add, last, l.lower, out);
        }
        // The loop's own body stays its body, so that each value has one place.
        let TileOp::For { hints, .. } = l.op else { return Vec::new() };
        let (step, body) = (l.step, l.body);
        let middle = TileOp::For { lower: start, upper: last, step, inits: first, hints, body };
        let middle = self.put(middle, l.loc, out);
        let end = self.body(l, last, &middle, out);
        self.outs(l, &end, out)
    }

    /// A copy of the body, and what it yields.
    fn body(&mut self, l: &Loop, iv: Value, carried: &[Value], out: &mut Vec<Inst>) -> Vec<Value> {
        let params = self.func.block_params(l.body).to_vec();
        let mut to: FxHashMap<Value, Value> =
            params.into_iter().zip([iv].into_iter().chain(carried.iter().copied())).collect();
        self.copy(l.body, &mut to, out)
    }

    /// Copies a block's ops, and says what its terminator passes on.
    fn copy(
        &mut self,
        block: Block,
        to: &mut FxHashMap<Value, Value>,
        out: &mut Vec<Inst>,
    ) -> Vec<Value> {
        for inst in self.func.insts(block).to_vec() {
            let mut op = self.func.op(inst).clone();
            if op.is_terminator() {
                continue;
            }
            op.each_value_mut(&mut |v| *v = to.get(v).copied().unwrap_or(*v));
            let made = self.put(op, self.func.loc(inst), out);
            to.extend(self.func.results(inst).iter().copied().zip(made));
        }
        let values = Tile::values_of_terminator(self.func, block);
        values.iter().map(|v| to.get(v).copied().unwrap_or(*v)).collect()
    }

    /// What is wanted of the values that a loop ends with.
    fn outs(&mut self, l: &Loop, values: &[Value], out: &mut Vec<Inst>) -> Vec<Value> {
        let mut made = Vec::new();
        for o in &l.outs {
            let value = values[o.at];
            let Some(reduce) = o.reduce else {
                made.push(value);
                continue;
            };
            let TileOp::Reduce { axis, body, .. } = *self.func.op(reduce) else { continue };
            let combine = self.func.new_block();
            let mut to = FxHashMap::default();
            for param in self.func.block_params(body).to_vec() {
                to.insert(param, self.func.add_block_param(combine, self.func.ty(param)));
            }
            let mut insts = Vec::new();
            let values = self.copy(body, &mut to, &mut insts);
            let loc = self.func.loc(reduce);
            self.put(TileOp::Yield { values }, loc, &mut insts);
            self.func.set_insts(combine, insts);
            let op = TileOp::Reduce { inputs: vec![value], axis, body: combine };
            made.extend(self.put(op, loc, out));
        }
        made
    }

    /// A region without parameters that gives these values.
    fn region(
        &mut self,
        loc: Loc,
        make: impl FnOnce(&mut Self, &mut Vec<Inst>) -> Vec<Value>,
    ) -> Block {
        let block = self.func.new_block();
        let mut insts = Vec::new();
        let values = make(self, &mut insts);
        self.put(TileOp::Yield { values }, loc, &mut insts);
        self.func.set_insts(block, insts);
        block
    }

    fn number(&mut self, l: &Loop, n: i64, out: &mut Vec<Inst>) -> Value {
        self.put(TileOp::Const { value: Constant::int(l.ty, n.into()) }, l.loc, out)[0]
    }

    /// Whether the loop goes beyond a number.
    fn compare(&mut self, l: &Loop, b: Value, out: &mut Vec<Inst>) -> Value {
        self.put(TileOp::Compare { p: Predicate::Gt, a: l.upper, b }, l.loc, out)[0]
    }

    fn binary(&mut self, l: &Loop, f: BinaryFn, a: Value, b: Value, out: &mut Vec<Inst>) -> Value {
        self.put(TileOp::Binary { f, a, b }, l.loc, out)[0]
    }

    fn put(&mut self, op: TileOp, loc: Loc, out: &mut Vec<Inst>) -> Vec<Value> {
        match self.func.create(op, loc) {
            Ok(inst) => {
                out.push(inst);
                self.func.results(inst).to_vec()
            }
            Err(e) => unreachable!("a copied op does not fit: {e}"),
        }
    }
}
