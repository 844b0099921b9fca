//! Which tiles of numbers, addresses and truths are formulas of the lane's index.
//!
//! ```text
//!   offs = pid * 64 + arange(0, 64)          base `pid * 64`, steps (1,)
//!   p + offs_m[:, None] * stride + offs_n    base p, bytes (stride * 4, 4)
//!   (offs_m < M)[:, None] & (offs_n < N)     axis 0 ends at `M - base`, axis 1 at `N - base`
//! ```
//!
//! A kernel's integers wrap, formulas do not. So each formula comes with its [`Fit`]s: the ranges in
//! which numbers must lie for it to hold. Whoever builds on a formula tests them when the kernel runs,
//! which takes two comparisons of scalars each, or proves them; where one fails the lanes must be
//! computed as they are written. Nothing here is sound without them.
//!
//! Scalars are atoms: how one was computed, and whether it wrapped, does not matter. Formulas are
//! numbers of 64 bits and wrap as the kernel's integers of 64 bits do; whoever judges a range by its ends
//! must know besides that no step is so large that the way from end to end wraps.

use naiad_ir::scalar::{BinaryFn, Predicate, UnaryFn};
use naiad_ir::tile::{Tile, TileOp};
use naiad_ir::{Function, Scalar, Shape, Value};
use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};
use std::rc::Rc;

/// A number of 64 bits made of the kernel's scalars.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Expr {
    Const(i64),
    /// A scalar of the kernel, extended by its own signedness.
    Value(Value),
    Add(Rc<Expr>, Rc<Expr>),
    Mul(Rc<Expr>, Rc<Expr>),
}

impl Expr {
    pub const ZERO: Expr = Expr::Const(0);

    pub fn constant(&self) -> Option<i64> {
        match self {
            Expr::Const(c) => Some(*c),
            Expr::Value(_) | Expr::Add(..) | Expr::Mul(..) => None,
        }
    }

    pub fn add(&self, other: &Expr) -> Expr {
        match (self, other) {
            (Expr::Const(0), e) | (e, Expr::Const(0)) => e.clone(),
            (Expr::Const(a), Expr::Const(b)) => Expr::Const(a.wrapping_add(*b)),
            _ => Expr::Add(Rc::new(self.clone()), Rc::new(other.clone())),
        }
    }

    pub fn mul(&self, other: &Expr) -> Expr {
        match (self, other) {
            (Expr::Const(0), _) | (_, Expr::Const(0)) => Expr::ZERO,
            (Expr::Const(1), e) | (e, Expr::Const(1)) => e.clone(),
            (Expr::Const(a), Expr::Const(b)) => Expr::Const(a.wrapping_mul(*b)),
            _ => Expr::Mul(Rc::new(self.clone()), Rc::new(other.clone())),
        }
    }

    pub fn sub(&self, other: &Expr) -> Expr {
        if self == other {
            return Expr::ZERO;
        }
        self.add(&other.mul(&Expr::Const(-1)))
    }
}

/// `base + sum(index[d] * steps[d])`, if all of `fits` hold.
#[derive(Clone, PartialEq, Debug)]
pub struct Affine {
    pub base: Expr,
    pub steps: SmallVec<[Expr; 3]>,
    pub fits: Vec<Rc<Fit>>,
}

/// A range in which numbers must lie.
#[derive(Clone, PartialEq, Debug)]
pub struct Fit {
    pub base: Expr,
    /// A step and an extent for each axis along which the number changes.
    pub axes: SmallVec<[(Expr, usize); 3]>,
    pub within: Within,
}

#[derive(Clone, PartialEq, Debug)]
pub enum Within {
    /// What the type can hold; of an unsigned integer of 64 bits the lower half.
    Type(Scalar),
    /// `0..n`, and `n` is positive.
    Below(Expr),
    /// A quarter of what 64 bits can hold, so that differences do not wrap.
    Quarter,
}

/// A tile of addresses: a scalar pointer and an offset in bytes.
#[derive(Clone, PartialEq, Debug)]
pub struct Address {
    pub pointer: Value,
    pub offset: Affine,
}

/// A part of a mask that is true where all are.
#[derive(Clone, PartialEq, Debug)]
pub enum Conjunct {
    /// The index along the axis is below, if all of the fits hold.
    Below { axis: usize, end: Expr, fits: Vec<Rc<Fit>> },
    /// The index along the axis is not below.
    From { axis: usize, start: Expr, fits: Vec<Rc<Fit>> },
    /// A scalar decides.
    Uniform(Value),
    /// A mask of the same shape.
    Lanes(Value),
}

/// The formulas of a function's values, found on demand.
pub struct Analysis<'f> {
    func: &'f Function<Tile>,
    numbers: FxHashMap<Value, Option<Rc<Affine>>>,
    addresses: FxHashMap<Value, Option<Rc<Address>>>,
}

impl<'f> Analysis<'f> {
    pub fn new(func: &'f Function<Tile>) -> Analysis<'f> {
        Analysis { func, numbers: FxHashMap::default(), addresses: FxHashMap::default() }
    }

    /// The formula of a tile of integers, or of a scalar.
    pub fn number(&mut self, v: Value) -> Option<Rc<Affine>> {
        if let Some(known) = self.numbers.get(&v) {
            return known.clone();
        }
        let found = self.find_number(v).map(Rc::new);
        self.numbers.insert(v, found.clone());
        found
    }

    /// The formula of a tile of pointers, or of a scalar one.
    pub fn address(&mut self, v: Value) -> Option<Rc<Address>> {
        if let Some(known) = self.addresses.get(&v) {
            return known.clone();
        }
        let found = self.find_address(v).map(Rc::new);
        self.addresses.insert(v, found.clone());
        found
    }

    /// What a mask is a conjunction of.
    pub fn conjuncts(&mut self, mask: Value) -> Vec<Conjunct> {
        let mut all = Vec::new();
        self.find_conjuncts(mask, &mut all);
        all
    }

    fn find_number(&mut self, v: Value) -> Option<Affine> {
        let ty = self.func.ty(v);
        let scalar = ty.elem.scalar().filter(|s| s.is_int() && !s.is_bool())?;
        let rank = ty.shape.rank();
        if rank == 0 {
            return Some(self.scalar(v, scalar));
        }
        let op = self.func.defining_op(v)?;
        match *op {
            TileOp::Arange { start, .. } => Some(Affine {
                base: Expr::Const(start),
                steps: smallvec![Expr::Const(1)],
                fits: Vec::new(),
            }),
            TileOp::Splat { src, .. } => {
                let src = self.number(src)?;
                Some(Affine { steps: smallvec![Expr::ZERO; rank], ..(*src).clone() })
            }
            TileOp::Hint { src, .. } => Some((*self.number(src)?).clone()),
            TileOp::ExpandDims { .. }
            | TileOp::Broadcast { .. }
            | TileOp::Permute { .. }
            | TileOp::Reshape { .. } => {
                let (src, steps) = self.moved(op, |this, src| {
                    let src = this.number(src)?;
                    Some(((*src).clone(), src.steps.clone()))
                })?;
                Some(Affine { steps, ..src })
            }
            TileOp::Unary { f: UnaryFn::Neg, x } => {
                let x = self.number(x)?;
                Some(self.fitted(x.scaled(&Expr::Const(-1)), ty.shape, scalar))
            }
            TileOp::Binary { f, a, b } => {
                let (x, y) = (self.number(a)?, self.number(b)?);
                let out = match f {
                    BinaryFn::Add => x.plus(&y),
                    BinaryFn::Sub => x.plus(&y.scaled(&Expr::Const(-1))),
                    BinaryFn::Mul if y.is_uniform() => x.times(&y),
                    BinaryFn::Mul if x.is_uniform() => y.times(&x),
                    // Inside one period the remainder is the number itself.
                    BinaryFn::Rem if y.is_uniform() => {
                        let mut out = (*x).clone();
                        let fit = Fit::new(&x, ty.shape, Within::Below(y.base.clone()));
                        out.fits.push(Rc::new(fit));
                        out.fits.extend(y.fits.iter().cloned());
                        return Some(out);
                    }
                    _ => return None,
                };
                Some(self.fitted(out, ty.shape, scalar))
            }
            TileOp::Cast { src, .. } => {
                let from = self.func.ty(src).elem.scalar()?;
                let src = self.number(src)?;
                let holds =
                    scalar.int_min() <= from.int_min() && scalar.int_max() >= from.int_max();
                match holds {
                    true => Some((*src).clone()),
                    false => Some(self.fitted((*src).clone(), ty.shape, scalar)),
                }
            }
            _ => None,
        }
    }

    fn scalar(&self, v: Value, ty: Scalar) -> Affine {
        let base = match self.func.defining_op(v) {
            Some(TileOp::Const { value }) => {
                value.as_int().and_then(|i| i64::try_from(i).ok()).map(Expr::Const)
            }
            _ => None,
        };
        let base = base.unwrap_or(Expr::Value(v));
        let mut out = Affine { base, steps: SmallVec::new(), fits: Vec::new() };
        if ty == Scalar::U64 && out.base.constant().is_none() {
            let fit = Fit::new(&out, Shape::SCALAR, Within::Type(ty));
            out.fits.push(Rc::new(fit));
        }
        out
    }

    /// The formula with the condition that its numbers fit in the type.
    fn fitted(&self, mut a: Affine, shape: Shape, ty: Scalar) -> Affine {
        // Addition in 64 bits wraps as formulas do; addresses are judged for themselves.
        if ty != Scalar::I64 {
            a.fits.push(Rc::new(Fit::new(&a, shape, Within::Type(ty))));
        }
        a
    }

    /// A formula whose axes an op of shape moves about; `of` gives the source's with its steps.
    fn moved<T>(
        &mut self,
        op: &TileOp,
        of: impl FnOnce(&mut Self, Value) -> Option<(T, SmallVec<[Expr; 3]>)>,
    ) -> Option<(T, SmallVec<[Expr; 3]>)> {
        match op {
            TileOp::ExpandDims { src, axis } => {
                let (a, mut steps) = of(self, *src)?;
                steps.insert(*axis, Expr::ZERO);
                Some((a, steps))
            }
            TileOp::Broadcast { src, .. } => {
                let from = self.func.ty(*src).shape;
                let (a, mut steps) = of(self, *src)?;
                for (step, n) in steps.iter_mut().zip(from.dims()) {
                    if n == 1 {
                        *step = Expr::ZERO;
                    }
                }
                Some((a, steps))
            }
            TileOp::Permute { src, order } => {
                let (a, steps) = of(self, *src)?;
                Some((a, order.iter().map(|&d| steps[d as usize].clone()).collect()))
            }
            TileOp::Reshape { src, shape } => {
                let from = self.func.ty(*src).shape;
                let (a, steps) = of(self, *src)?;
                Some((a, reshaped(&steps, from, *shape)?))
            }
            _ => None,
        }
    }

    fn find_address(&mut self, v: Value) -> Option<Address> {
        let ty = self.func.ty(v);
        ty.elem.pointer()?;
        let rank = ty.shape.rank();
        let whole = |pointer, rank| Address {
            pointer,
            offset: Affine {
                base: Expr::ZERO,
                steps: smallvec![Expr::ZERO; rank],
                fits: Vec::new(),
            },
        };
        let op = match self.func.defining_op(v) {
            Some(op) if rank > 0 => op,
            _ => return (rank == 0).then(|| whole(v, 0)),
        };
        match *op {
            TileOp::Splat { src, .. } => Some(whole(src, rank)),
            TileOp::Hint { src, .. } => Some((*self.address(src)?).clone()),
            TileOp::PtrAdd { ptr, offset } => {
                let size = self.func.ty(ptr).elem.pointer()?.pointee.size();
                let (p, off) = (self.address(ptr)?, self.number(offset)?);
                let off = off.scaled(&Expr::Const(size as i64));
                Some(Address { pointer: p.pointer, offset: p.offset.plus(&off) })
            }
            TileOp::ExpandDims { .. }
            | TileOp::Broadcast { .. }
            | TileOp::Permute { .. }
            | TileOp::Reshape { .. } => {
                let (mut a, steps) = self.moved(op, |this, src| {
                    let a = this.address(src)?;
                    Some(((*a).clone(), a.offset.steps.clone()))
                })?;
                a.offset.steps = steps;
                Some(a)
            }
            _ => None,
        }
    }

    fn find_conjuncts(&mut self, mask: Value, all: &mut Vec<Conjunct>) {
        let ty = self.func.ty(mask);
        if ty.is_scalar() {
            return all.push(Conjunct::Uniform(mask));
        }
        match self.func.defining_op(mask) {
            Some(&TileOp::Binary { f: BinaryFn::And, a, b }) => {
                self.find_conjuncts(a, all);
                self.find_conjuncts(b, all);
            }
            Some(&TileOp::Splat { src, .. }) => match self.func.defining_op(src) {
                Some(TileOp::Const { value }) if value.bits == 1 => {}
                _ => all.push(Conjunct::Uniform(src)),
            },
            Some(op @ (TileOp::ExpandDims { src, .. } | TileOp::Broadcast { src, .. })) => {
                let inner = self.conjuncts(*src);
                let moved: Option<Vec<Conjunct>> =
                    inner.iter().map(|c| self.moved_conjunct(op, *src, c)).collect();
                match moved {
                    Some(moved) => all.extend(moved),
                    None => all.push(Conjunct::Lanes(mask)),
                }
            }
            Some(&TileOp::Compare { p, a, b }) => {
                all.push(self.bound(p, a, b).unwrap_or(Conjunct::Lanes(mask)));
            }
            _ => all.push(Conjunct::Lanes(mask)),
        }
    }

    fn moved_conjunct(&self, op: &TileOp, src: Value, c: &Conjunct) -> Option<Conjunct> {
        let axis_after = |axis: usize| match op {
            TileOp::ExpandDims { axis: new, .. } if *new <= axis => Some(axis + 1),
            TileOp::ExpandDims { .. } => Some(axis),
            // On an axis of one element a bound says something of that element alone.
            TileOp::Broadcast { .. } => (self.func.ty(src).shape.dim(axis) > 1).then_some(axis),
            _ => None,
        };
        Some(match c.clone() {
            Conjunct::Below { axis, end, fits } => {
                Conjunct::Below { axis: axis_after(axis)?, end, fits }
            }
            Conjunct::From { axis, start, fits } => {
                Conjunct::From { axis: axis_after(axis)?, start, fits }
            }
            Conjunct::Uniform(v) => Conjunct::Uniform(v),
            Conjunct::Lanes(_) => return None,
        })
    }

    /// The bound of an index that a comparison is.
    fn bound(&mut self, p: Predicate, a: Value, b: Value) -> Option<Conjunct> {
        let (x, y) = (self.number(a)?, self.number(b)?);
        // distance = y - x, and how far above 0 it must be for `x p y`.
        let (distance, least) = match p {
            Predicate::Lt => (y.plus(&x.scaled(&Expr::Const(-1))), 1),
            Predicate::Le => (y.plus(&x.scaled(&Expr::Const(-1))), 0),
            Predicate::Gt => (x.plus(&y.scaled(&Expr::Const(-1))), 1),
            Predicate::Ge => (x.plus(&y.scaled(&Expr::Const(-1))), 0),
            Predicate::Eq | Predicate::Ne => return None,
        };
        let mut changing = distance.steps.iter().enumerate().filter(|(_, s)| **s != Expr::ZERO);
        let (axis, step) = changing.next()?;
        if changing.next().is_some() {
            return None;
        }
        let mut fits = distance.fits.clone();
        let ty = self.func.ty(a);
        if ty.elem.scalar()?.bits() == 64 {
            fits.push(Rc::new(Fit::new(&x, ty.shape, Within::Quarter)));
            fits.push(Rc::new(Fit::new(&y, ty.shape, Within::Quarter)));
        }
        // base - i >= least, or base + i >= least.
        match step.constant()? {
            -1 => {
                let end = distance.base.add(&Expr::Const(1 - least));
                Some(Conjunct::Below { axis, end, fits })
            }
            1 => {
                let start = Expr::Const(least).sub(&distance.base);
                Some(Conjunct::From { axis, start, fits })
            }
            _ => None,
        }
    }

    pub fn func(&self) -> &'f Function<Tile> {
        self.func
    }
}

impl Conjunct {
    /// What must hold for it to say what the mask does.
    pub fn fits(&self) -> &[Rc<Fit>] {
        match self {
            Conjunct::Below { fits, .. } | Conjunct::From { fits, .. } => fits,
            Conjunct::Uniform(_) | Conjunct::Lanes(_) => &[],
        }
    }
}

impl Affine {
    pub fn is_uniform(&self) -> bool {
        self.steps.iter().all(|s| *s == Expr::ZERO)
    }

    fn plus(&self, other: &Affine) -> Affine {
        Affine {
            base: self.base.add(&other.base),
            steps: self.steps.iter().zip(&other.steps).map(|(a, b)| a.add(b)).collect(),
            fits: both(&self.fits, &other.fits),
        }
    }

    fn scaled(&self, by: &Expr) -> Affine {
        Affine {
            base: self.base.mul(by),
            steps: self.steps.iter().map(|s| s.mul(by)).collect(),
            fits: self.fits.clone(),
        }
    }

    fn times(&self, uniform: &Affine) -> Affine {
        Affine { fits: both(&self.fits, &uniform.fits), ..self.scaled(&uniform.base) }
    }
}

impl Fit {
    fn new(a: &Affine, shape: Shape, within: Within) -> Fit {
        let axes = a.steps.iter().cloned().zip(shape.dims());
        Fit {
            base: a.base.clone(),
            axes: axes.filter(|(s, n)| *s != Expr::ZERO && *n > 1).collect(),
            within,
        }
    }
}

fn both(a: &[Rc<Fit>], b: &[Rc<Fit>]) -> Vec<Rc<Fit>> {
    let mut all = a.to_vec();
    for fit in b {
        if !all.iter().any(|have| Rc::ptr_eq(have, fit)) {
            all.push(fit.clone());
        }
    }
    all
}

/// Steps after a reshape that splits axes, or puts in or takes out axes of one element.
fn reshaped(steps: &[Expr], from: Shape, to: Shape) -> Option<SmallVec<[Expr; 3]>> {
    let mut source = steps.iter().cloned().zip(from.dims()).rev().filter(|(_, n)| *n > 1);
    let mut out: SmallVec<[Expr; 3]> = SmallVec::new();
    let mut rest: Option<(Expr, usize)> = None;
    for n in to.dims().rev() {
        if n == 1 {
            out.push(Expr::ZERO);
            continue;
        }
        let (step, extent) = rest.take().or_else(|| source.next())?;
        if extent % n != 0 {
            return None;
        }
        if extent > n {
            rest = Some((step.mul(&Expr::Const(n as i64)), extent / n));
        }
        out.push(step);
    }
    out.reverse();
    (rest.is_none() && source.next().is_none()).then_some(out)
}
