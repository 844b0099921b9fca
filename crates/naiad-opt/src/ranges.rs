//! Between which numbers integers lie, and which arithmetic never wraps.
//!
//! ```text
//!   %pid  = program_id axis=0             0..=grid - 1, where the grid is known; else no negative number
//!   %r    = arange start=0 end=64         0..=63
//!   %base = mul %pid, 64                  0..=…, exact if the last program's does not wrap
//!   for %i = %lo to %hi                   lo..=hi - 1 in the body
//!   carried %k, next %k + %s              what it starts with and up to as many steps as there are rounds
//!   while %k > %e, next %k - %s           not beyond where the test ends it
//!   if %a < %b { … }                      in there %a is below what %b may be
//! ```
//!
//! A tile's interval holds all of its lanes. Numbers are what their bits stand for in their type. One
//! walk finds everything: of carried values only the forms above are followed, others may be anything.

use crate::canonical::uniform_constant;
use crate::interval::{Interval, binary};
use crate::structure::{Structured, signed};
use naiad_ir::scalar::{BinaryFn, Predicate, TernaryFn, UnaryFn};
use naiad_ir::tile::{Constant, Tile, TileOp};
use naiad_ir::{Block, Function, Inst, OpInfo, Scalar, Value};
use smallvec::SmallVec;

/// What is known before the kernel runs.
#[derive(Clone, Default, Debug)]
pub struct Inputs {
    /// Programs along each axis.
    pub grid: Option<[u32; 3]>,
    /// By the position of the parameter; those beyond the end, and of `None`, may be anything.
    pub params: Vec<Param>,
}

/// What is known of an argument.
#[derive(Clone, Default, Debug)]
pub struct Param {
    /// Of an integer.
    pub range: Option<Interval>,
    /// The greatest power of two by which the integer, or the address, is known to be divisible.
    pub divisible: Option<u64>,
}

/// Intervals of a function's integers.
#[derive(Debug)]
pub struct Ranges {
    of: Vec<Option<Interval>>,
    notes: Vec<Note>,
}

/// What was seen of the op that made a value, where it stands.
#[derive(Copy, Clone, Default, Debug)]
struct Note {
    wraps: bool,
    /// It gives this operand.
    same: Option<Value>,
    /// Its first operand is not negative.
    no_sign: bool,
}

impl Ranges {
    pub fn new(func: &Function<Tile>, inputs: &Inputs) -> Ranges {
        let mut walk = Walk {
            func,
            inputs,
            of: vec![None; func.num_values()],
            notes: vec![Note::default(); func.num_values()],
            undo: Vec::new(),
        };
        for (i, &param) in func.params().iter().enumerate() {
            let known = inputs.params.get(i).and_then(|p| p.range);
            let all = walk.all(param);
            walk.of[param.index()] = all.map(|all| known.and_then(|k| k.meet(all)).unwrap_or(all));
        }
        walk.block(func.entry(), None);
        Ranges { of: walk.of, notes: walk.notes }
    }

    /// The number that an integer must be, or every lane of a tile.
    pub fn constant(&self, func: &Function<Tile>, value: Value) -> Option<Constant> {
        let known = self.of(value).filter(|k| k.is_point())?;
        Some(Constant::int(func.ty(value).elem.scalar()?, known.lo))
    }

    /// The interval of an integer, or of a tile of integers, where it is defined.
    pub fn of(&self, value: Value) -> Option<Interval> {
        self.of.get(value.index()).copied().flatten()
    }

    /// Whether the op that made the value may have wrapped in some lane.
    pub fn may_wrap(&self, value: Value) -> bool {
        self.notes.get(value.index()).is_none_or(|n| n.wraps)
    }

    /// The operand that the value is equal to: of a minimum that is decided, say.
    pub fn same(&self, value: Value) -> Option<Value> {
        self.notes.get(value.index())?.same
    }

    /// Whether the first operand of the op that made the value is not negative there. It may be so in
    /// a branch only, and then [`Ranges::of`] does not know.
    pub fn is_of_non_negative(&self, value: Value) -> bool {
        self.notes.get(value.index()).is_some_and(|n| n.no_sign)
    }

    pub fn is_non_negative(&self, value: Value) -> bool {
        self.of(value).is_some_and(|i| i.lo >= 0)
    }

    /// How many rounds a `for` upwards in known steps has, from and to.
    pub fn rounds(&self, func: &Function<Tile>, inst: Inst) -> Option<Interval> {
        let [lower, upper, step] = Tile::bounds(func.op(inst))?;
        let by = Tile::constant(func, step).and_then(signed).filter(|&by| by > 0)?;
        let bound = |value| as_signed(func, value, self.of(value)?);
        let (from, to) = (bound(lower)?, bound(upper)?);
        let count = |distance: i128| (distance.max(0) + by - 1) / by;
        Some(Interval::new(count(to.lo - from.hi), count(to.hi - from.lo)))
    }
}

struct Walk<'f> {
    func: &'f Function<Tile>,
    inputs: &'f Inputs,
    of: Vec<Option<Interval>>,
    notes: Vec<Note>,
    /// What was known of values before a branch's condition narrowed it.
    undo: Vec<(Value, Option<Interval>)>,
}

impl Walk<'_> {
    fn scalar(&self, value: Value) -> Option<Scalar> {
        self.func.ty(value).elem.scalar().filter(|s| s.is_int())
    }

    /// All numbers of a value's type.
    fn all(&self, value: Value) -> Option<Interval> {
        self.scalar(value).map(Interval::of_type)
    }

    /// What is known of an operand; all of its type where nothing is.
    fn get(&self, value: Value) -> Interval {
        self.of[value.index()]
            .or_else(|| self.all(value))
            .unwrap_or(Interval::new(i128::MIN, i128::MAX))
    }

    fn set(&mut self, value: Value, known: Option<Interval>) {
        let all = self.all(value);
        self.of[value.index()] = all.map(|all| known.and_then(|k| k.meet(all)).unwrap_or(all));
    }

    /// Walks a block, as it is where a condition is true or false, and gives what is known of the values
    /// that it passes on. What was narrowed for its time is forgotten at its end.
    fn block(&mut self, block: Block, under: Option<(Value, bool)>) -> Passed {
        let start = self.undo.len();
        if let Some((cond, truth)) = under {
            self.assume(cond, truth, DEPTH);
        }
        for &inst in self.func.insts(block) {
            self.inst(inst);
        }
        let passed = self.passed(block);
        self.restore(start);
        passed
    }

    fn passed(&self, block: Block) -> Passed {
        Tile::values_of_terminator(self.func, block).iter().map(|&v| self.get(v)).collect()
    }

    fn restore(&mut self, start: usize) {
        for (value, was) in self.undo.drain(start..).rev() {
            self.of[value.index()] = was;
        }
    }

    fn inst(&mut self, inst: Inst) {
        let func = self.func;
        match func.op(inst) {
            TileOp::For { body, .. } => self.counted(inst, *body),
            TileOp::While { before, after, .. } => self.tested(inst, *before, *after),
            TileOp::If { cond, then, otherwise } => {
                let a = self.block(*then, Some((*cond, true)));
                let b = self.block(*otherwise, Some((*cond, false)));
                for (i, &result) in func.results(inst).iter().enumerate() {
                    self.set(result, Some(a[i].hull(b[i])));
                }
            }
            TileOp::Reduce { inputs, axis, body } | TileOp::Scan { inputs, axis, body, .. } => {
                let n = inputs.first().map_or(1, |&v| func.ty(v).shape.dim(*axis));
                self.combined(inst, inputs, n, *body);
            }
            TileOp::Map { inputs, pack, body } => {
                for (i, &param) in func.block_params(*body).iter().enumerate() {
                    self.set(param, Some(self.get(inputs[i / pack])));
                }
                let passed = self.block(*body, None);
                for (&result, group) in func.results(inst).iter().zip(passed.chunks(*pack)) {
                    self.set(result, group.iter().copied().reduce(Interval::hull));
                }
            }
            TileOp::Assume { cond } => self.assume(*cond, true, DEPTH),
            TileOp::Split { src } => {
                for &result in func.results(inst) {
                    self.set(result, Some(self.get(*src)));
                }
            }
            op => {
                for (i, &result) in func.results(inst).iter().enumerate() {
                    let found = if i == 0 { self.value(op, result) } else { None };
                    self.set(result, found.map(|f| f.0));
                    let wraps = found.is_some_and(|f| !f.1);
                    self.notes[result.index()] = Note { wraps, ..self.note(op) };
                }
            }
        }
    }

    /// What an op without regions gives, and whether that is exact: no lane has wrapped.
    fn value(&self, op: &TileOp, result: Value) -> Option<(Interval, bool)> {
        let ty = self.scalar(result)?;
        let all = Interval::of_type(ty);
        let whole = |x: Interval| if all.contains(x) { (x, true) } else { (all, false) };
        let plain = match op {
            TileOp::Const { value } => Interval::point(value.as_int()?),
            TileOp::ProgramId { axis } => match self.inputs.grid {
                Some(grid) => Interval::new(0, (i128::from(grid[*axis as usize]) - 1).max(0)),
                None => Interval::new(0, Scalar::I32.int_max() - 1),
            },
            TileOp::NumPrograms { axis } => match self.inputs.grid {
                Some(grid) => Interval::point(i128::from(grid[*axis as usize])),
                None => Interval::new(1, Scalar::I32.int_max()),
            },
            TileOp::Arange { start, end } => {
                return Some(whole(Interval::new(i128::from(*start), i128::from(end - 1))));
            }
            TileOp::Splat { src, .. }
            | TileOp::ExpandDims { src, .. }
            | TileOp::Broadcast { src, .. }
            | TileOp::Reshape { src, .. }
            | TileOp::Permute { src, .. }
            | TileOp::Flip { src, .. }
            | TileOp::Sort { src, .. }
            | TileOp::TopK { src, .. }
            | TileOp::Gather { src, .. }
            | TileOp::Hint { src, .. } => self.get(*src),
            TileOp::Join { a, b } | TileOp::Cat { a, b, .. } => self.get(*a).hull(self.get(*b)),
            TileOp::Select { yes, no, .. } => self.get(*yes).hull(self.get(*no)),
            TileOp::Binary { f, a, b } => {
                return Some(binary(*f, ty, self.get(*a), self.get(*b)));
            }
            TileOp::Ternary { f: TernaryFn::Clamp, a, b, c } => {
                let (x, low, high) = (self.get(*a), self.get(*b), self.get(*c));
                binary(BinaryFn::Min, ty, binary(BinaryFn::Max, ty, x, low).0, high).0
            }
            TileOp::Unary { f, x } => {
                let x = self.get(*x);
                match f {
                    UnaryFn::Neg => return Some(whole(-x)),
                    UnaryFn::Abs => return Some(whole(x.abs())),
                    // All bits flipped is as far from the other end of the type.
                    UnaryFn::Not => Interval::point(ty.int_max() + ty.int_min()) - x,
                    UnaryFn::Popc | UnaryFn::Clz => Interval::new(0, i128::from(ty.bits())),
                    _ => return None,
                }
            }
            TileOp::Cast { src, .. } => {
                let (from, x) = (self.scalar(*src)?, self.get(*src));
                if !ty.is_bool() || from.is_bool() {
                    return Some(whole(x));
                }
                truths(x.meet(Interval::point(0)).is_none(), x == Interval::point(0))
            }
            TileOp::Compare { p, a, b } => {
                self.scalar(*a)?;
                let known = always(*p, self.get(*a), self.get(*b));
                truths(known == Some(true), known == Some(false))
            }
            TileOp::Histogram { src, .. } => {
                Interval::new(0, self.func.ty(*src).shape.numel() as i128)
            }
            _ => return None,
        };
        Some((plain, true))
    }

    fn note(&self, op: &TileOp) -> Note {
        let same = |v: Value| Note { same: Some(v), ..Note::default() };
        let no_sign = |v: Value| Note { no_sign: self.get(v).lo >= 0, ..Note::default() };
        match op {
            TileOp::Binary { f, a, b } if self.scalar(*a).is_some() => {
                let (x, y) = (self.get(*a), self.get(*b));
                match f {
                    BinaryFn::Min | BinaryFn::MinNan if x.hi <= y.lo => same(*a),
                    BinaryFn::Min | BinaryFn::MinNan if y.hi <= x.lo => same(*b),
                    BinaryFn::Max | BinaryFn::MaxNan if x.lo >= y.hi => same(*a),
                    BinaryFn::Max | BinaryFn::MaxNan if y.lo >= x.hi => same(*b),
                    BinaryFn::Rem if x.lo >= 0 && x.hi < y.lo => same(*a),
                    _ => no_sign(*a),
                }
            }
            TileOp::Unary { f: UnaryFn::Abs, x } if self.scalar(*x).is_some() => {
                if self.get(*x).lo >= 0 { same(*x) } else { Note::default() }
            }
            _ => Note::default(),
        }
    }

    fn counted(&mut self, inst: Inst, body: Block) {
        let func = self.func;
        let Some([lower, upper, step]) = Tile::bounds(func.op(inst)) else { return };
        let rounds = self.rounds([lower, upper, step]);
        let inits = Tile::passed(func.op(inst));
        let params = func.block_params(body);
        let next = Tile::values_of_terminator(func, body);
        self.set(params[0], self.counter([lower, upper, step]));
        let mut last = Passed::new();
        let mut moved = SmallVec::<[bool; 4]>::new();
        for (i, &init) in inits.iter().enumerate() {
            let param = params[i + 1];
            let start = self.get(init);
            let after = |rounds: i128| {
                let way = self.moves(param, next[i])? * Interval::new(0, rounds.max(0));
                let sum = start + way;
                // Beyond the type it would have wrapped on the way.
                self.all(param)?.contains(sum).then_some(sum)
            };
            let inside = rounds.and_then(|n| after(n - 1));
            let end = rounds.and_then(after);
            moved.push(end.is_some());
            last.push(end.unwrap_or(start));
            self.set(param, if next[i] == param { Some(start) } else { inside });
        }
        let passed = self.block(body, None);
        for (i, &result) in func.results(inst).iter().enumerate() {
            self.set(result, Some(if moved[i] { last[i] } else { last[i].hull(passed[i]) }));
        }
    }

    /// The induction variable: upwards `lower <= i < upper`, downwards `upper < i <= lower`.
    fn counter(&self, [lower, upper, step]: [Value; 3]) -> Option<Interval> {
        let (from, to) = (self.as_signed(lower)?, self.as_signed(upper)?);
        let by = self.as_signed(step);
        // From a known start in known steps the last number is one of these.
        let steps = by.filter(|s| s.is_point() && from.is_point()).map_or(1, |s| s.lo.abs());
        let whole = |way: i128| way / steps.max(1) * steps.max(1);
        let up =
            (from.lo < to.hi).then(|| Interval::new(from.lo, from.lo + whole(to.hi - 1 - from.lo)));
        let down =
            (to.lo < from.hi).then(|| Interval::new(from.hi - whole(from.hi - to.lo - 1), from.hi));
        let found = match by {
            Some(s) if s.lo > 0 => up,
            Some(s) if s.hi < 0 => down,
            _ => up.zip(down).map(|(a, b)| a.hull(b)),
        };
        // A negative number in an unsigned type is a large one.
        found.filter(|i| i.lo >= 0 || self.scalar(lower).is_some_and(Scalar::is_signed))
    }

    fn as_signed(&self, value: Value) -> Option<Interval> {
        as_signed(self.func, value, self.get(value))
    }

    /// The most rounds that a loop can have.
    fn rounds(&self, bounds: [Value; 3]) -> Option<i128> {
        let [Some(from), Some(to), Some(by)] = bounds.map(|v| self.as_signed(v)) else {
            return None;
        };
        let (distance, by) = if by.lo > 0 {
            (to.hi - from.lo, by.lo)
        } else if by.hi < 0 {
            (from.hi - to.lo, -by.hi)
        } else {
            return None;
        };
        Some(if distance <= 0 { 0 } else { (distance + by - 1) / by })
    }

    /// What a round adds to a carried value, if that is all that happens to it. The body has not been
    /// walked yet: of what it defines only constants are known.
    fn moves(&self, param: Value, next: Value) -> Option<Interval> {
        let &TileOp::Binary { f, a, b } = self.func.defining_op(next)? else { return None };
        match f {
            BinaryFn::Add if a == param && b != param => self.known(b),
            BinaryFn::Add if b == param && a != param => self.known(a),
            BinaryFn::Sub if a == param && b != param => Some(-self.known(b)?),
            _ => None,
        }
    }

    /// What is known of a value that may not have been walked to.
    fn known(&self, value: Value) -> Option<Interval> {
        let constant = uniform_constant(self.func, value).and_then(|c| c.as_int());
        constant.map(Interval::point).or(self.of[value.index()])
    }

    fn tested(&mut self, inst: Inst, before: Block, after: Block) {
        let func = self.func;
        let inits = Tile::passed(func.op(inst));
        let (tested, params) = (func.block_params(before), func.block_params(after));
        let arrives = Tile::values_of_terminator(func, before);
        let next = Tile::values_of_terminator(func, after);
        let cond = func.terminator(before).and_then(Tile::condition);
        for (i, &param) in tested.iter().enumerate() {
            let found = arrives.iter().position(|&v| v == param).and_then(|j| {
                if next[i] == params[j] {
                    return Some(self.get(inits[i]));
                }
                self.bounded(param, inits[i], self.moves(params[j], next[i])?, cond?)
            });
            self.set(param, found);
        }
        // The test's values are seen behind the loop where it was false, in the body where true.
        let start = self.undo.len();
        for &inst in func.insts(before) {
            self.inst(inst);
        }
        let [ends, goes_on] = [false, true].map(|truth| {
            let start = self.undo.len();
            if let Some(cond) = cond {
                self.assume(cond, truth, DEPTH);
            }
            let passed = self.passed(before);
            self.restore(start);
            passed
        });
        for (&param, known) in params.iter().zip(goes_on) {
            self.set(param, Some(known));
        }
        self.block(after, cond.map(|c| (c, true)));
        self.restore(start);
        for (&result, known) in func.results(inst).iter().zip(ends) {
            self.set(result, Some(known));
        }
    }

    /// A value that moves one way while a test holds that ends on that side: it starts at `init`, and
    /// goes one step beyond the test at most.
    fn bounded(&self, param: Value, init: Value, step: Interval, cond: Value) -> Option<Interval> {
        let &TileOp::Compare { p, a, b } = self.func.defining_op(cond)? else { return None };
        let (p, limit) = match (a == param, b == param) {
            (true, false) => (p, b),
            (false, true) => (p.swapped(), a),
            _ => return None,
        };
        let (init, limit) = (self.get(init), self.known(limit)?);
        let out = match p {
            Predicate::Lt | Predicate::Le if step.lo >= 0 => {
                let last = limit.hi - i128::from(p == Predicate::Lt);
                Interval::new(init.lo, init.hi.max(last + step.hi))
            }
            Predicate::Gt | Predicate::Ge if step.hi <= 0 => {
                let last = limit.lo + i128::from(p == Predicate::Gt);
                Interval::new(init.lo.min(last + step.lo), init.hi)
            }
            _ => return None,
        };
        self.all(param)?.contains(out).then_some(out)
    }

    /// `reduce` and `scan` of `n` lanes: where the function keeps to what its operands lie in, so does
    /// the result; a sum is followed besides.
    fn combined(&mut self, inst: Inst, inputs: &[Value], n: usize, body: Block) {
        let func = self.func;
        let params = func.block_params(body);
        for (i, &param) in params.iter().enumerate() {
            self.set(param, Some(self.get(inputs[i % inputs.len()])));
        }
        let passed = self.block(body, None);
        let stays = passed
            .iter()
            .zip(inputs)
            .all(|(&out, &input)| self.scalar(input).is_none() || self.get(input).contains(out));
        if !stays {
            // What was assumed of the parameters does not hold in later rounds.
            func.walk_block(body, &mut |i| {
                for r in func.results(i) {
                    self.of[r.index()] = None;
                }
                func.op(i).each_block(&mut |b| {
                    for p in func.block_params(b) {
                        self.of[p.index()] = None;
                    }
                });
            });
            for &param in params {
                self.set(param, None);
            }
            self.block(body, None);
        }
        let is_sum = matches!(func.insts(body), &[sum, _] if
            matches!(*func.op(sum), TileOp::Binary { f: BinaryFn::Add, a, b }
                if a != b && params.contains(&a) && params.contains(&b))
            && Tile::values_of_terminator(func, body) == func.results(sum));
        for (i, &result) in func.results(inst).iter().enumerate() {
            let x = self.get(inputs[i]);
            let sum = x * Interval::new(1, n as i128);
            let known = match (stays, self.all(result)) {
                (true, _) => Some(x),
                (false, Some(all)) if is_sum && all.contains(sum) => Some(sum),
                (false, _) => None,
            };
            self.set(result, known);
        }
    }

    /// Narrows what a condition compares, until the block ends.
    fn assume(&mut self, cond: Value, truth: bool, depth: u32) {
        if depth == 0 {
            return;
        }
        match self.func.defining_op(cond) {
            Some(&TileOp::Unary { f: UnaryFn::Not, x }) => self.assume(x, !truth, depth - 1),
            Some(&TileOp::Binary { f, a, b })
                if f == BinaryFn::And && truth || f == BinaryFn::Or && !truth =>
            {
                self.assume(a, truth, depth - 1);
                self.assume(b, truth, depth - 1);
            }
            Some(&TileOp::Compare { p, a, b }) => {
                let Some(ty) = self.scalar(a) else { return };
                let Some(p) = (if truth { Some(p) } else { p.negated(ty) }) else { return };
                let (x, y) = (self.get(a), self.get(b));
                self.narrow(a, limits(p, y), depth);
                self.narrow(b, limits(p.swapped(), x), depth);
            }
            Some(&(TileOp::Splat { src, .. } | TileOp::Broadcast { src, .. })) => {
                self.assume(src, truth, depth - 1);
            }
            _ => {}
        }
    }

    /// A value lies between these, and so does what it was made from.
    fn narrow(&mut self, value: Value, (lo, hi): (i128, i128), depth: u32) {
        let before = self.get(value);
        // Where nothing is left the block never runs, and anything may be said of it.
        let (lo, hi) = (lo.max(before.lo), hi.min(before.hi));
        if lo > hi || Interval::new(lo, hi) == before {
            return;
        }
        self.undo.push((value, self.of[value.index()]));
        self.of[value.index()] = Some(Interval::new(lo, hi));
        if depth == 0 || self.notes[value.index()].wraps {
            return;
        }
        match self.func.defining_op(value) {
            Some(&TileOp::Cast { src, to, .. }) if !to.is_bool() && self.scalar(src).is_some() => {
                self.narrow(src, (lo, hi), depth - 1);
            }
            Some(&TileOp::Binary { f: BinaryFn::Add, a, b }) => {
                if let Some(c) = uniform_constant(self.func, b).and_then(|c| c.as_int()) {
                    self.narrow(a, (lo - c, hi - c), depth - 1);
                }
            }
            Some(
                &(TileOp::Splat { src, .. }
                | TileOp::Broadcast { src, .. }
                | TileOp::ExpandDims { src, .. }),
            ) => self.narrow(src, (lo, hi), depth - 1),
            _ => {}
        }
    }
}

/// A bound as loops see it: they compare as signed numbers.
fn as_signed(func: &Function<Tile>, value: Value, known: Interval) -> Option<Interval> {
    if let Some(c) = uniform_constant(func, value) {
        return signed(c).map(Interval::point);
    }
    let ty = func.ty(value).elem.scalar().filter(|s| s.is_int())?;
    let half = 1i128 << (ty.bits() - 1);
    Some(known).filter(|x| x.hi < half)
}

/// How far a condition is followed to what it was made from.
const DEPTH: u32 = 8;

/// What is known of the values that a block passes on.
type Passed = SmallVec<[Interval; 4]>;

fn truths(always: bool, never: bool) -> Interval {
    Interval::new(i128::from(always), i128::from(!never))
}

/// Where `x` lies if `x p y` for some number of `y`.
fn limits(p: Predicate, y: Interval) -> (i128, i128) {
    match p {
        Predicate::Lt => (i128::MIN, y.hi - 1),
        Predicate::Le => (i128::MIN, y.hi),
        Predicate::Gt => (y.lo + 1, i128::MAX),
        Predicate::Ge => (y.lo, i128::MAX),
        Predicate::Eq => (y.lo, y.hi),
        Predicate::Ne => (i128::MIN, i128::MAX),
    }
}

/// What a comparison gives for all numbers of two intervals, if it is always the same.
pub fn always(p: Predicate, a: Interval, b: Interval) -> Option<bool> {
    let (below, above) = (a.hi < b.lo, a.lo > b.hi);
    let (at_most, at_least) = (a.hi <= b.lo, a.lo >= b.hi);
    let equal = a.is_point() && a == b;
    let (yes, no) = match p {
        Predicate::Lt => (below, at_least),
        Predicate::Le => (at_most, above),
        Predicate::Gt => (above, at_most),
        Predicate::Ge => (at_least, below),
        Predicate::Eq => (equal, below || above),
        Predicate::Ne => (below || above, equal),
    };
    if yes {
        Some(true)
    } else if no {
        Some(false)
    } else {
        None
    }
}
