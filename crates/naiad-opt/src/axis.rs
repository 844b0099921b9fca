//! What runs of elements along the axes of a tile have in common: by this, accesses become whole
//! vectors, and masks are asked once for several lanes.
//!
//! For each axis of extent `n`, with the other indices held still wherever they are:
//!
//! - **contiguity** `c`: in each aligned run of `c` elements, each number is its neighbour's plus one
//!   (each address its neighbour's plus the size of an element);
//! - **divisibility** `d`: what every run starts with is divisible by `d` (an address in bytes);
//! - **constancy** `k`: the elements of each aligned run of `k` are equal.
//!
//! All are powers of two, so runs nest. Numbers wrap: what is said of numbers of `w` bits holds modulo
//! `2^w`, and divisibility is exact all the same, since `2^w` is a power of two as well. Only where
//! numbers become wider must it be sure that no run wraps inside: a run whose start is divisible by
//! its length does not, nor does one in an interval that leaves room.
//!
//! | tile | contiguity | divisibility | constancy |
//! |---|---|---|---|
//! | `arange(0, 64)` | 64 | of 0: any | 1 |
//! | `splat(x)`, `x` divisible by 4 | 1 | 4 | 64 |
//! | `arange + splat(x)` | 64 | 4 | 1 |
//! | `arange * splat(x)` | 1 | 4 | 1 |
//! | `arange idiv 16` | 1 | 1 | 16 |
//! | `arange rem 16` | 16 | 16 | 1 |
//! | `arange < splat(n)`, `n` divisible by 16 | | | 16 |
//! | `p + arange`, `*fp32`, `p` divisible by 16 | 64 | 16 | 1 |
//!
//! Row `arange + splat(x)`: elements at multiples of 64 are divisible by what divides both starts. Where
//! runs of 64 are cut into shorter ones, of 8, those start at multiples of 8: see [`Axis::at`].

use crate::canonical::uniform_constant;
use crate::ranges::{Inputs, Ranges};
use crate::structure::Structured;
use naiad_ir::scalar::{BinaryFn, Predicate, UnaryFn};
use naiad_ir::tile::{Constant, HintKind, Tile, TileOp};
use naiad_ir::{Block, Function, Inst, Scalar, Shape, Type, Value};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// What is known along one axis. A scalar counts as a tile of one axis and one element.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Axis {
    pub contiguity: u32,
    pub divisibility: u64,
    pub constancy: u32,
}

/// Of 0, by which everything is divisible.
const ANY: u64 = 1 << 62;

impl Axis {
    /// Nothing is known.
    pub const NONE: Axis = Axis { contiguity: 1, divisibility: 1, constancy: 1 };

    /// What divides the elements at multiples of `run`: the starts of runs, or of parts of runs, each
    /// element of which is `unit` more than its neighbour.
    fn at(self, run: u32, unit: u64) -> u64 {
        if run >= self.contiguity {
            self.divisibility
        } else {
            self.divisibility.min(u64::from(run) * unit)
        }
    }

    /// What holds of both.
    fn meet(self, other: Axis, unit: u64) -> Axis {
        let contiguity = self.contiguity.min(other.contiguity);
        Axis {
            contiguity,
            divisibility: self.at(contiguity, unit).min(other.at(contiguity, unit)),
            constancy: self.constancy.min(other.constancy),
        }
    }
}

type Axes = SmallVec<[Axis; 2]>;

/// What is known of all values of a function.
#[derive(Debug)]
pub struct AxisInfo {
    of: Vec<Axes>,
}

/// What is known without a launch.
pub fn axis_info(func: &Function<Tile>) -> AxisInfo {
    let inputs = Inputs::default();
    AxisInfo::new(func, &inputs, &Ranges::new(func, &inputs))
}

impl AxisInfo {
    pub fn new(func: &Function<Tile>, inputs: &Inputs, ranges: &Ranges) -> AxisInfo {
        let of = vec![Axes::new(); func.num_values()];
        let mut walk = Walk { func, ranges, of, promised: FxHashMap::default() };
        for (i, &param) in func.params().iter().enumerate() {
            let divisible = inputs.params.get(i).and_then(|p| p.divisible).unwrap_or(1);
            let divisibility = 1 << divisible.trailing_zeros().min(62);
            walk.of[param.index()] = Axes::from_elem(Axis { divisibility, ..Axis::NONE }, 1);
        }
        walk.block(func.entry());
        AxisInfo { of: walk.of }
    }

    /// What is known along each axis, where the value is defined; of a scalar one.
    pub fn axes(&self, value: Value) -> &[Axis] {
        self.of.get(value.index()).map_or(&[], |axes| axes)
    }

    pub fn along(&self, value: Value, axis: usize) -> Axis {
        self.axes(value).get(axis).copied().unwrap_or(Axis::NONE)
    }

    /// How many neighbours along an axis may be read or written at once: their addresses follow each
    /// other, and the first is aligned to all of them together.
    pub fn vector(&self, pointer: Value, axis: usize, element_size: usize) -> u32 {
        let Axis { contiguity, divisibility, .. } = self.along(pointer, axis);
        let aligned = divisibility / element_size as u64;
        contiguity.min(u32::try_from(aligned).unwrap_or(u32::MAX)).max(1)
    }
}

struct Walk<'a> {
    func: &'a Function<Tile>,
    ranges: &'a Ranges,
    of: Vec<Axes>,
    /// Divisors promised for starts of runs, of tiles whose runs are not known yet.
    promised: FxHashMap<Value, SmallVec<[u64; 2]>>,
}

/// Bytes between an address and the next element's; of numbers 1.
fn unit(ty: Type) -> u64 {
    ty.elem.pointer().map_or(1, |p| p.pointee.size() as u64)
}

fn rank(shape: Shape) -> usize {
    shape.rank().max(1)
}

fn extent(shape: Shape, axis: usize) -> u32 {
    if shape.is_scalar() { 1 } else { shape.dim(axis) as u32 }
}

fn power_in(x: u64) -> u64 {
    if x == 0 { ANY } else { 1 << x.trailing_zeros().min(62) }
}

impl Walk<'_> {
    fn axes(&self, value: Value) -> Axes {
        let known = &self.of[value.index()];
        if known.is_empty() { self.nothing(value) } else { known.clone() }
    }

    fn nothing(&self, value: Value) -> Axes {
        Axes::from_elem(Axis::NONE, rank(self.func.ty(value).shape))
    }

    /// What divides every element: what divides the starts of runs of one.
    fn every(&self, value: Value) -> u64 {
        let unit = unit(self.func.ty(value));
        self.axes(value).iter().map(|a| a.at(1, unit)).max().unwrap_or(1)
    }

    /// Elements that are nothing to each other, but all divisible.
    fn loose(&self, value: Value, divisibility: u64) -> Axes {
        let one = Axis { divisibility, ..Axis::NONE };
        Axes::from_elem(one, rank(self.func.ty(value).shape))
    }

    fn block(&mut self, block: Block) {
        for &inst in self.func.insts(block) {
            self.inst(inst);
        }
    }

    fn inst(&mut self, inst: Inst) {
        let func = self.func;
        match func.op(inst) {
            TileOp::For { body, .. } => return self.counted(inst, *body),
            TileOp::While { before, after, .. } => return self.tested(inst, *before, *after),
            TileOp::If { then, otherwise, .. } => {
                self.block(*then);
                self.block(*otherwise);
                for (i, &result) in func.results(inst).iter().enumerate() {
                    let a = Tile::values_of_terminator(func, *then)[i];
                    let b = Tile::values_of_terminator(func, *otherwise)[i];
                    self.of[result.index()] = self.meet(a, b);
                }
                return;
            }
            TileOp::Split { src } => {
                let divisibility = self.every(*src);
                let mut axes = self.axes(*src);
                axes.pop();
                if axes.is_empty() {
                    axes.push(Axis { divisibility, ..Axis::NONE });
                }
                for &result in func.results(inst) {
                    self.of[result.index()] = axes.clone();
                }
                return;
            }
            TileOp::Assume { cond } => return self.assume(*cond, inst),
            _ => {}
        }
        for (i, &result) in func.results(inst).iter().enumerate() {
            let found = if i == 0 { self.value(func.op(inst), result) } else { None };
            let axes = found.unwrap_or_else(|| self.nothing(result));
            self.of[result.index()] = axes;
        }
    }

    fn meet(&self, a: Value, b: Value) -> Axes {
        let unit = unit(self.func.ty(a));
        let (a, b) = (self.axes(a), self.axes(b));
        a.iter().zip(&b).map(|(&a, &b)| a.meet(b, unit)).collect()
    }

    fn value(&mut self, op: &TileOp, result: Value) -> Option<Axes> {
        let func = self.func;
        let shape = func.ty(result).shape;
        Some(match op {
            TileOp::Const { value } => self.loose(result, power_in(value.bits)),
            TileOp::Arange { start, end } => {
                let contiguity = (end - start) as u32;
                let divisibility = power_in(*start as u64);
                Axes::from_elem(Axis { contiguity, divisibility, constancy: 1 }, 1)
            }
            TileOp::Splat { src, .. } => {
                let divisibility = self.every(*src);
                let along =
                    |axis| Axis { divisibility, constancy: extent(shape, axis), ..Axis::NONE };
                (0..rank(shape)).map(along).collect()
            }
            TileOp::ExpandDims { src, axis } => {
                let divisibility = self.every(*src);
                let mut axes = self.axes(*src);
                if func.ty(*src).is_scalar() {
                    axes.clear();
                }
                axes.insert(*axis, Axis { divisibility, ..Axis::NONE });
                axes
            }
            TileOp::Broadcast { src, .. } => {
                let (from, mut axes) = (func.ty(*src).shape, self.axes(*src));
                for (axis, a) in axes.iter_mut().enumerate() {
                    if from.dim(axis) == 1 {
                        *a = Axis { constancy: extent(shape, axis), ..*a };
                    }
                }
                axes
            }
            TileOp::Reshape { src, .. } => self.reshape(*src, shape),
            TileOp::Permute { src, order } => {
                let axes = self.axes(*src);
                order.iter().map(|&axis| axes[axis as usize]).collect()
            }
            TileOp::Flip { src, axis } => {
                let divisibility = self.every(*src);
                let mut axes = self.axes(*src);
                let constancy = axes[*axis].constancy;
                axes[*axis] = Axis { contiguity: 1, divisibility, constancy };
                axes
            }
            TileOp::Join { a, b } => {
                let mut axes = self.meet(*a, *b);
                let divisibility = self.every(*a).min(self.every(*b));
                if func.ty(*a).is_scalar() {
                    axes.clear();
                }
                axes.push(Axis { divisibility, ..Axis::NONE });
                axes
            }
            TileOp::Cat { a, b, .. } => self.meet(*a, *b),
            TileOp::Unary { f: UnaryFn::Neg | UnaryFn::Abs, x } if self.is_int(*x) => {
                self.lanes(&[*x], |along| along[0].at(1, 1))
            }
            TileOp::Unary { x, .. } => self.lanes(&[*x], |_| 1),
            TileOp::Binary { f, a, b } => self.binary(*f, *a, *b),
            TileOp::PtrAdd { ptr, offset } => {
                let unit = unit(func.ty(*ptr));
                let (p, o) = (self.axes(*ptr), self.widened(*offset));
                p.iter()
                    .zip(&o)
                    .map(|(&p, &o)| {
                        let contiguity =
                            (p.contiguity.min(o.constancy)).max(p.constancy.min(o.contiguity));
                        let offset = o.at(contiguity, 1).saturating_mul(unit).min(ANY);
                        Axis {
                            contiguity,
                            divisibility: p.at(contiguity, unit).min(offset),
                            constancy: p.constancy.min(o.constancy),
                        }
                    })
                    .collect()
            }
            TileOp::Compare { p, a, b } => self.compare(*p, *a, *b),
            TileOp::Select { cond, yes, no } => {
                let unit = unit(func.ty(*yes));
                let cond = self.axes(*cond);
                let both = self.meet(*yes, *no);
                let (yes, no) = (self.axes(*yes), self.axes(*no));
                (0..both.len())
                    .map(|i| {
                        let contiguity = both[i].contiguity.min(cond[i].constancy);
                        Axis {
                            contiguity,
                            divisibility: yes[i]
                                .at(contiguity, unit)
                                .min(no[i].at(contiguity, unit)),
                            constancy: both[i].constancy.min(cond[i].constancy),
                        }
                    })
                    .collect()
            }
            TileOp::Cast { src, to, .. } => self.cast(*src, *to),
            TileOp::Bitcast { src, .. } => {
                let unit = unit(func.ty(*src));
                self.lanes(&[*src], |along| along[0].at(1, unit))
            }
            TileOp::Hint { src, kind, values } => self.hint(*src, *kind, values, result),
            TileOp::Ternary { a, b, c, .. } => self.lanes(&[*a, *b, *c], |_| 1),
            _ => return None,
        })
    }

    /// An elementwise op of which only this is known: equal operands give equal results, and what
    /// divides every result along an axis.
    fn lanes(&self, operands: &[Value], divides: impl Fn(&[Axis]) -> u64) -> Axes {
        let all: SmallVec<[Axes; 3]> = operands.iter().map(|&v| self.axes(v)).collect();
        (0..all[0].len())
            .map(|i| {
                let along: SmallVec<[Axis; 3]> = all.iter().map(|axes| axes[i]).collect();
                Axis {
                    contiguity: 1,
                    divisibility: divides(&along),
                    constancy: along.iter().map(|a| a.constancy).min().unwrap_or(1),
                }
            })
            .collect()
    }

    /// The axes of an integer once it is wider: runs are cut to what does not wrap inside.
    fn widened(&self, value: Value) -> Axes {
        let ty = self.func.ty(value);
        let mut axes = self.axes(value);
        let Some(s) = ty.elem.scalar().filter(|s| s.is_int()) else { return axes };
        let limit = 1u64 << (s.bits() - u32::from(s.is_signed())).min(62);
        for a in &mut axes {
            // A run that wraps inside takes lanes from both ends of the type.
            let room = self
                .ranges
                .of(value)
                .is_some_and(|i| i.hi - i.lo + i128::from(a.contiguity) <= 1i128 << s.bits());
            if !room {
                let safe = u64::from(a.contiguity).min(a.divisibility).min(limit) as u32;
                *a = Axis { contiguity: safe, divisibility: a.at(safe, 1), ..*a };
            }
        }
        axes
    }

    fn cast(&self, src: Value, to: Scalar) -> Axes {
        let from = self.func.ty(src).elem.scalar();
        match from {
            Some(from) if from.is_int() && to.is_int() && !to.is_bool() => {
                if to.bits() > from.bits() { self.widened(src) } else { self.axes(src) }
            }
            _ => self.lanes(&[src], |_| 1),
        }
    }

    fn binary(&self, f: BinaryFn, a: Value, b: Value) -> Axes {
        if !self.is_int(a) {
            return self.lanes(&[a, b], |_| 1);
        }
        let pairs = || self.axes(a).into_iter().zip(self.axes(b));
        let constant = uniform_constant(self.func, b).and_then(Constant::as_int);
        match f {
            BinaryFn::Add | BinaryFn::Sub => pairs()
                .map(|(x, y)| {
                    let mut contiguity = x.contiguity.min(y.constancy);
                    if f == BinaryFn::Add {
                        contiguity = contiguity.max(x.constancy.min(y.contiguity));
                    }
                    Axis {
                        contiguity,
                        divisibility: x.at(contiguity, 1).min(y.at(contiguity, 1)),
                        constancy: x.constancy.min(y.constancy),
                    }
                })
                .collect(),
            BinaryFn::Mul => {
                let product = |x: u64, y: u64| x.saturating_mul(y).min(ANY);
                self.lanes(&[a, b], |along| product(along[0].at(1, 1), along[1].at(1, 1)))
            }
            BinaryFn::Shl => {
                let by = constant.filter(|c| (0..62).contains(c)).unwrap_or(0);
                self.lanes(&[a, b], |along| along[0].at(1, 1).saturating_mul(1 << by).min(ANY))
            }
            BinaryFn::Min | BinaryFn::Max | BinaryFn::MinNan | BinaryFn::MaxNan => {
                self.lanes(&[a, b], |along| along[0].at(1, 1).min(along[1].at(1, 1)))
            }
            BinaryFn::Or | BinaryFn::Xor => {
                self.lanes(&[a, b], |along| along[0].at(1, 1).min(along[1].at(1, 1)))
            }
            BinaryFn::And => match constant.filter(|&c| c > 0 && (c + 1).count_ones() == 1) {
                // The remainder of a power of two, of negative numbers too.
                Some(c) => self.remainder(a, b, power_in((c + 1) as u64)),
                None => self.lanes(&[a, b], |along| along[0].at(1, 1).max(along[1].at(1, 1))),
            },
            BinaryFn::Rem if self.ranges.is_non_negative(a) && self.is_positive(b) => {
                self.remainder(a, b, self.every(b))
            }
            BinaryFn::Idiv | BinaryFn::Shr if self.ranges.is_non_negative(a) => {
                let by = match (f, constant) {
                    (BinaryFn::Idiv, Some(c)) if c > 0 && c.count_ones() == 1 => c as u64,
                    (BinaryFn::Shr, Some(c)) if (0..62).contains(&c) => 1 << c,
                    _ => return self.lanes(&[a, b], |_| 1),
                };
                self.quotient(a, by)
            }
            _ => self.lanes(&[a, b], |_| 1),
        }
    }

    fn is_int(&self, value: Value) -> bool {
        self.func.ty(value).elem.scalar().is_some_and(Scalar::is_int)
    }

    fn is_positive(&self, value: Value) -> bool {
        self.ranges.of(value).is_some_and(|i| i.lo > 0)
    }

    /// `a rem b`, where a run of `a` that starts at a multiple of its length does not pass a multiple
    /// of `b`, if `b` is divisible by that length too.
    fn remainder(&self, a: Value, b: Value, divides: u64) -> Axes {
        let (x, y) = (self.axes(a), self.axes(b));
        (0..x.len())
            .map(|i| {
                let (x, y) = (x[i], y[i]);
                let run = u64::from(x.contiguity.min(y.constancy)).min(x.divisibility).min(divides);
                let contiguity = run as u32;
                Axis {
                    contiguity,
                    divisibility: x.at(contiguity, 1).min(divides),
                    constancy: x.constancy.min(y.constancy),
                }
            })
            .collect()
    }

    /// `a idiv by`, `a` not negative and `by` a power of two: in a run that starts at a multiple of its
    /// length, as many as `by` have one quotient.
    fn quotient(&self, a: Value, by: u64) -> Axes {
        self.axes(a)
            .into_iter()
            .map(|x| {
                let equal = u64::from(x.contiguity).min(x.divisibility).min(by) as u32;
                let every = x.at(1, 1);
                Axis {
                    contiguity: 1,
                    divisibility: (every / by).max(1),
                    constancy: x.constancy.max(equal),
                }
            })
            .collect()
    }

    /// In a run that starts at a multiple of its length all are below a multiple of it, or none.
    fn compare(&self, p: Predicate, a: Value, b: Value) -> Axes {
        let is_int = self.is_int(a);
        let (a, b, p) = match p {
            Predicate::Gt | Predicate::Le => (b, a, p.swapped()),
            p => (a, b, p),
        };
        let ordered = is_int && matches!(p, Predicate::Lt | Predicate::Ge);
        let (left, right) = (self.widened(a), self.widened(b));
        (0..left.len())
            .map(|i| {
                let (x, y) = (left[i], right[i]);
                let mut constancy = x.constancy.min(y.constancy);
                if ordered {
                    let run = x.contiguity.min(y.constancy);
                    let run = u64::from(run).min(x.divisibility).min(y.at(1, 1));
                    constancy = constancy.max(run as u32);
                }
                Axis { constancy, ..Axis::NONE }
            })
            .collect()
    }

    fn reshape(&self, src: Value, to: Shape) -> Axes {
        let (ty, axes) = (self.func.ty(src), self.axes(src));
        let every = self.every(src);
        let loose = Axis { divisibility: every, ..Axis::NONE };
        let mut out = Axes::from_elem(loose, rank(to));
        let from = ty.shape;
        if from.is_scalar() || to.is_scalar() {
            return out;
        }
        // The longest axis at the end has the old one's runs, as far as it goes; axes of extent 1
        // behind it move nothing.
        let last = |s: Shape| (0..s.rank()).rev().find(|&d| s.dim(d) > 1);
        let (Some(i), Some(j)) = (last(from), last(to)) else { return out };
        let n = (from.dim(i).min(to.dim(j))) as u32;
        let a = axes[i];
        let contiguity = a.contiguity.min(n);
        out[j] = Axis {
            contiguity,
            divisibility: a.at(contiguity, unit(ty)),
            constancy: a.constancy.min(n),
        };
        // Axes that are the same axis before and after.
        let same = |k: usize| -> Option<usize> {
            let inner: usize = (k + 1..to.rank()).map(|d| to.dim(d)).product();
            (0..from.rank()).find(|&d| {
                let before: usize = (d + 1..from.rank()).map(|d| from.dim(d)).product();
                before == inner && from.dim(d) == to.dim(k) && from.dim(d) > 1
            })
        };
        for (k, slot) in out.iter_mut().enumerate() {
            if let Some(d) = same(k) {
                *slot = axes[d];
            }
        }
        out
    }

    fn hint(&mut self, src: Value, kind: HintKind, values: &[u32], result: Value) -> Axes {
        let shape = self.func.ty(src).shape;
        let mut axes = self.axes(src);
        let mut promised = self.promised.get(&src).cloned().unwrap_or_default();
        promised.resize(axes.len(), 1);
        for (i, (a, &value)) in axes.iter_mut().zip(values).enumerate() {
            let value = power_in(u64::from(value).max(1));
            let length = value.min(u64::from(extent(shape, i))) as u32;
            match kind {
                HintKind::MultipleOf => promised[i] = promised[i].max(value),
                HintKind::MaxContiguous => a.contiguity = a.contiguity.max(length),
                HintKind::MaxConstancy => a.constancy = a.constancy.max(length),
            }
            // A promise is about starts of runs, and says nothing before those are known.
            if a.contiguity > 1 || extent(shape, i) == 1 {
                a.divisibility = a.divisibility.max(promised[i]);
            }
        }
        self.promised.insert(result, promised);
        axes
    }

    /// `assume(x % c == 0)`, where it stands in the kernel itself and so is always met.
    fn assume(&mut self, cond: Value, inst: Inst) {
        let func = self.func;
        if !func.insts(func.entry()).contains(&inst) {
            return;
        }
        let Some(&TileOp::Compare { p: Predicate::Eq, a, b }) = func.defining_op(cond) else {
            return;
        };
        let zero = uniform_constant(func, b).is_some_and(|c| c.bits == 0);
        let Some(&TileOp::Binary { f: BinaryFn::Rem, a: x, b: by }) = func.defining_op(a) else {
            return;
        };
        if let (true, Some(c)) = (zero, uniform_constant(func, by)) {
            let mut axes = self.axes(x);
            for a in &mut axes {
                if a.contiguity == 1 && c.bits != 0 {
                    a.divisibility = a.divisibility.max(power_in(c.bits));
                }
            }
            self.of[x.index()] = axes;
        }
    }

    fn counted(&mut self, inst: Inst, body: Block) {
        let func = self.func;
        let Some([lower, _, step]) = Tile::bounds(func.op(inst)) else { return };
        let params = func.block_params(body);
        let counter = self.every(lower).min(self.every(step));
        self.of[params[0].index()] = self.loose(params[0], counter);
        let inits = Tile::passed(func.op(inst));
        let next = Tile::values_of_terminator(func, body);
        let known: Vec<bool> = (0..inits.len())
            .map(|i| self.carried(params[i + 1], params[i + 1], inits[i], next[i]))
            .collect();
        self.block(body);
        for (i, &result) in func.results(inst).iter().enumerate() {
            let axes =
                if known[i] { self.axes(params[i + 1]) } else { self.meet(inits[i], next[i]) };
            self.of[result.index()] = axes;
        }
    }

    fn tested(&mut self, inst: Inst, before: Block, after: Block) {
        let func = self.func;
        let inits = Tile::passed(func.op(inst));
        let (tested, params) = (func.block_params(before), func.block_params(after));
        let passed = Tile::values_of_terminator(func, before);
        let next = Tile::values_of_terminator(func, after);
        for (i, &param) in tested.iter().enumerate() {
            match passed.iter().position(|&v| v == param) {
                Some(j) => drop(self.carried(param, params[j], inits[i], next[i])),
                None => self.of[param.index()] = self.nothing(param),
            }
        }
        self.block(before);
        for (&param, &v) in params.iter().zip(passed) {
            self.of[param.index()] = self.axes(v);
        }
        self.block(after);
        for (&result, &v) in func.results(inst).iter().zip(passed) {
            self.of[result.index()] = self.axes(v);
        }
    }

    /// What is known of a carried value that stays, or moves by a scalar that is known before the loop.
    /// Says whether it is one; of others nothing is known.
    fn carried(&mut self, param: Value, in_body: Value, init: Value, next: Value) -> bool {
        let func = self.func;
        let ty = func.ty(param);
        let step = match func.defining_op(next) {
            _ if next == in_body => Some(ANY),
            Some(&TileOp::Binary { f: BinaryFn::Add | BinaryFn::Sub, a, b }) if a == in_body => {
                self.step(b)
            }
            Some(&TileOp::Binary { f: BinaryFn::Add, a, b }) if b == in_body => self.step(a),
            Some(&TileOp::PtrAdd { ptr, offset }) if ptr == in_body => {
                self.step(offset).map(|d| d.saturating_mul(unit(ty)).min(ANY))
            }
            _ => None,
        };
        let axes = match step {
            Some(d) => self
                .axes(init)
                .into_iter()
                .map(|a| Axis { divisibility: a.divisibility.min(d), ..a })
                .collect(),
            None => self.nothing(param),
        };
        self.of[param.index()] = axes;
        step.is_some()
    }

    /// What divides a step that is the same in every lane. The body has not been walked: of what it
    /// defines only constants are known.
    fn step(&self, value: Value) -> Option<u64> {
        if let Some(c) = uniform_constant(self.func, value) {
            return Some(power_in(c.bits));
        }
        let known = &self.of[value.index()];
        let shape = self.func.ty(value).shape;
        let uniform = known.iter().enumerate().all(|(i, a)| a.constancy >= extent(shape, i));
        (!known.is_empty() && uniform).then(|| self.every(value))
    }
}
