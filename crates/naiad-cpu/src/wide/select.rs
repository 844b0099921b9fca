//! Which loops can be wide, and what they want of the code around them.
//!
//! A loop qualifies if its body is straight-line and every scalar in it is one of two kinds:
//!
//! - *invariant*: computed without the induction variable and without memory;
//! - *affine*: an integer or address that grows by the same amount in every round.
//!
//! Both are computed by the code around the loop, with the induction variable at its first value: what
//! is affine is then a start and a step. Arithmetic wraps at the width of the type, and so do both.

use naiad_ir::scalar::BinaryFn;
use naiad_ir::thread::{Thread, ThreadElem, ThreadOp, Vector};
use naiad_ir::{Block, Effects, Function, Inst, OpInfo, Value};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::{SmallVec, smallvec};

/// A loop whose ops have the right kinds; whether all of them can be written is not known yet.
pub struct Loop<'f> {
    pub func: &'f Function<Thread>,
    pub step: i64,
    pub inits: &'f [Value],
    pub params: &'f [Value],
    pub yields: &'f [Value],
    /// The ops on vectors and those on memory.
    pub ops: Vec<Inst>,
    scalars: FxHashMap<Value, Form>,
    inside: FxHashSet<Value>,
}

/// A scalar as a sum: of multiples of invariants, of a multiple of the induction variable, and of a
/// constant.
#[derive(Clone, PartialEq, Debug)]
pub struct Form {
    pub terms: SmallVec<[(Value, i64); 2]>,
    pub step: Step,
    pub plus: i64,
}

/// What a scalar grows by when the induction variable grows by one.
#[derive(Copy, Clone, PartialEq, Debug)]
pub enum Step {
    Known(i64),
    /// An amount that is known where the loop begins.
    Unknown,
}

impl<'f> Loop<'f> {
    pub fn new(func: &'f Function<Thread>, op: &'f ThreadOp) -> Option<Loop<'f>> {
        let ThreadOp::For { lower, step, inits, body, .. } = op else { return None };
        let (&iv, params) = func.block_params(*body).split_first()?;
        if func.ty(*lower) != Vector::I64.into() {
            return None;
        }
        let ThreadOp::Const { value: step, .. } = func.defining_op(*step)? else { return None };
        let step = step.bits as i64;
        if !(1..1 << 16).contains(&step) || step.count_ones() != 1 {
            return None;
        }
        let Some(ThreadOp::Yield { values: yields }) = func.terminator(*body) else { return None };
        let mut l = Loop {
            func,
            step,
            inits,
            params,
            yields,
            ops: Vec::new(),
            scalars: FxHashMap::default(),
            inside: FxHashSet::default(),
        };
        let form = Form { terms: smallvec![], step: Step::Known(1), plus: 0 };
        l.scalars.insert(iv, form);
        l.inside.insert(iv);
        l.inside.extend(params);
        l.scan(*body)?;
        // A loop over scalars gains nothing.
        let wide = |v: &Value| func.ty(*v).vector().is_some_and(|v| v.lanes > 1);
        let vectors = l.ops.iter().any(|&inst| match func.op(inst) {
            ThreadOp::Store { value, .. } => wide(value),
            _ => true,
        });
        (vectors && params.iter().all(wide)).then_some(l)
    }

    fn scan(&mut self, body: Block) -> Option<()> {
        for &inst in self.func.insts(body) {
            let op = self.func.op(inst);
            let results = self.func.results(inst);
            match op.effects() {
                Effects::Terminator => continue,
                Effects::Control | Effects::Stays => return None,
                Effects::Pure | Effects::Reads | Effects::Writes => {}
            }
            self.inside.extend(results);
            let scalar = match results {
                [one] => self.func.ty(*one).vector()?.is_scalar(),
                [] => false,
                _ => return None,
            };
            if !scalar {
                self.ops.push(inst);
            } else if op.effects() != Effects::Pure {
                return None;
            } else if let Some(form) = self.form_of(op, results[0]) {
                self.scalars.insert(results[0], form);
            }
        }
        Some(())
    }

    /// The form of a scalar; none if it is neither invariant nor affine.
    pub fn form(&self, v: Value) -> Option<Form> {
        match self.scalars.get(&v) {
            Some(form) => Some(form.clone()),
            None if self.inside.contains(&v) => None,
            None => match self.func.defining_op(v) {
                Some(ThreadOp::Const { value, .. }) => {
                    Some(Form { terms: smallvec![], step: Step::Known(0), plus: value.bits as i64 })
                }
                _ => Some(Form { terms: smallvec![(v, 1)], step: Step::Known(0), plus: 0 }),
            },
        }
    }

    pub fn is_invariant(&self, v: Value) -> bool {
        self.form(v).is_some_and(|f| f.step == Step::Known(0))
    }

    /// Whether the value is made in the loop.
    pub fn is_inside(&self, v: Value) -> bool {
        self.inside.contains(&v)
    }

    fn form_of(&self, op: &ThreadOp, result: Value) -> Option<Form> {
        let linear = match op {
            ThreadOp::Const { value, .. } => {
                Some(Form { terms: smallvec![], step: Step::Known(0), plus: value.bits as i64 })
            }
            ThreadOp::Binary { f: BinaryFn::Add, a, b }
            | ThreadOp::AddrAdd { addr: a, offset: b }
                if self.is_int(result) =>
            {
                Some(self.form(*a)?.plus(&self.form(*b)?, 1))
            }
            ThreadOp::Binary { f: BinaryFn::Sub, a, b } if self.is_int(result) => {
                Some(self.form(*a)?.plus(&self.form(*b)?, -1))
            }
            ThreadOp::Binary { f: BinaryFn::Mul, a, b } if self.is_int(result) => {
                let (a, b) = (self.form(*a)?, self.form(*b)?);
                match (a.constant(), b.constant()) {
                    (_, Some(k)) => Some(a.times(k)),
                    (Some(k), _) => Some(b.times(k)),
                    // The product with an invariant grows by that.
                    _ if a.step == Step::Known(0) || b.step == Step::Known(0) => {
                        let invariant = a.step == b.step;
                        let step = if invariant { Step::Known(0) } else { Step::Unknown };
                        Some(Form { terms: smallvec![(result, 1)], step, plus: 0 })
                    }
                    _ => None,
                }
            }
            // The low bits of what is affine are affine.
            ThreadOp::Cast { src, to, .. }
                if to.is_int()
                    && self.is_int(*src)
                    && to.bits() <= self.func.ty(*src).vector()?.elem.bits() =>
            {
                Some(self.form(*src)?)
            }
            ThreadOp::Bitcast { src, .. } if self.is_int(*src) && self.is_int(result) => {
                Some(self.form(*src)?)
            }
            _ => None,
        };
        if linear.is_some() {
            return linear;
        }
        let mut invariant = true;
        op.each_value(&mut |v| {
            let scalar = self.func.ty(v).vector().is_some_and(Vector::is_scalar);
            invariant &= if scalar { self.is_invariant(v) } else { !self.inside.contains(&v) };
        });
        invariant.then(|| Form { terms: smallvec![(result, 1)], step: Step::Known(0), plus: 0 })
    }

    fn is_int(&self, v: Value) -> bool {
        match self.func.ty(v).vector().map(|v| v.elem) {
            Some(ThreadElem::Scalar(s)) => s.is_int() && !s.is_bool(),
            Some(ThreadElem::Addr) => true,
            None => false,
        }
    }

    /// The scalar ops of the body that these values come from, in their order.
    pub fn slice(&self, body: Block, wanted: impl IntoIterator<Item = Value>) -> Vec<Inst> {
        let mut needed: FxHashSet<Value> = wanted.into_iter().collect();
        let mut slice = Vec::new();
        for &inst in self.func.insts(body).iter().rev() {
            if self.func.results(inst).iter().any(|v| needed.contains(v)) {
                slice.push(inst);
                self.func.op(inst).each_value(&mut |v| {
                    needed.insert(v);
                });
            }
        }
        slice.reverse();
        slice
    }
}

impl Form {
    fn constant(&self) -> Option<i64> {
        (self.terms.is_empty() && self.step == Step::Known(0)).then_some(self.plus)
    }

    fn plus(&self, other: &Form, sign: i64) -> Form {
        let mut terms = self.terms.clone();
        for &(v, k) in &other.terms {
            match terms.iter_mut().find(|(w, _)| *w == v) {
                Some((_, have)) => *have = have.wrapping_add(k.wrapping_mul(sign)),
                None => terms.push((v, k.wrapping_mul(sign))),
            }
        }
        terms.retain(|(_, k)| *k != 0);
        terms.sort_unstable();
        let step = match (self.step, other.step) {
            (Step::Known(a), Step::Known(b)) => Step::Known(a.wrapping_add(b.wrapping_mul(sign))),
            _ => Step::Unknown,
        };
        Form { terms, step, plus: self.plus.wrapping_add(other.plus.wrapping_mul(sign)) }
    }

    fn times(&self, k: i64) -> Form {
        if k == 0 {
            return Form { terms: smallvec![], step: Step::Known(0), plus: 0 };
        }
        let step = match self.step {
            Step::Known(s) => Step::Known(s.wrapping_mul(k)),
            Step::Unknown => Step::Unknown,
        };
        let mut terms = self.terms.clone();
        terms.iter_mut().for_each(|(_, have)| *have = have.wrapping_mul(k));
        terms.retain(|(_, k)| *k != 0);
        Form { terms, step, plus: self.plus.wrapping_mul(k) }
    }
}
