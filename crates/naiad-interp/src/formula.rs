//! Arithmetic on compressed tiles: what stays a formula or a box, and what does not.
//!
//! Each function gives nothing where the result has no compressed form, and then the lanes are
//! computed one by one. Sums are formed exactly, in 128 bits; a result of which any lane leaves the
//! type is not a formula, since that lane wraps.

use crate::tile::{Affine, Rect, Steps, Tile, number, rect};
use naiad_ir::scalar::{BinaryFn, Predicate, UnaryFn};
use naiad_ir::{Scalar, Shape};
use smallvec::SmallVec;

fn exact(ty: Scalar) -> bool {
    ty.is_int() && !ty.is_bool()
}

fn narrow(base: i128, steps: impl Iterator<Item = i128>) -> Option<Affine> {
    let steps: Option<Steps> = steps.map(|s| i64::try_from(s).ok()).collect();
    Some(Affine { base: i64::try_from(base).ok()?, steps: steps? })
}

fn combine(a: &Affine, b: &Affine, f: impl Fn(i128, i128) -> i128) -> Option<Affine> {
    let steps = a.steps.iter().zip(&b.steps).map(|(&x, &y)| f(i128::from(x), i128::from(y)));
    narrow(f(i128::from(a.base), i128::from(b.base)), steps)
}

fn scale(a: &Affine, by: i64) -> Option<Affine> {
    let by = i128::from(by);
    narrow(i128::from(a.base) * by, a.steps.iter().map(|&s| i128::from(s) * by))
}

pub fn unary(f: UnaryFn, ty: Scalar, x: &Tile, shape: &Shape) -> Option<Tile> {
    if !exact(ty) || f != UnaryFn::Neg {
        return None;
    }
    let Tile::Affine(a) = x else { return None };
    scale(a, -1)?.tile(ty, shape)
}

pub fn binary(f: BinaryFn, ty: Scalar, x: &Tile, y: &Tile, shape: &Shape) -> Option<Tile> {
    if ty.is_bool() {
        return mask(f, x, y, shape);
    }
    // Two uniform operands are the loops' business, which know every function.
    if !exact(ty) || !matches!(x, Tile::Affine(_)) && !matches!(y, Tile::Affine(_)) {
        return None;
    }
    let (a, b) = (Affine::of(x, ty, shape)?, Affine::of(y, ty, shape)?);
    let formula = match f {
        BinaryFn::Add => combine(&a, &b, |x, y| x + y),
        BinaryFn::Sub => combine(&a, &b, |x, y| x - y),
        BinaryFn::Mul if b.is_constant() => scale(&a, b.base),
        BinaryFn::Mul if a.is_constant() => scale(&b, a.base),
        // A remainder that takes nothing off: `offsets % n` with offsets below n.
        BinaryFn::Rem if b.is_constant() => {
            let (lo, hi) = a.range(shape);
            (lo >= 0 && hi < i128::from(b.base)).then_some(a)
        }
        BinaryFn::Idiv if b.is_constant() && b.base == 1 => Some(a),
        BinaryFn::Mul
        | BinaryFn::Rem
        | BinaryFn::Idiv
        | BinaryFn::Div
        | BinaryFn::DivRn
        | BinaryFn::Min
        | BinaryFn::Max
        | BinaryFn::MinNan
        | BinaryFn::MaxNan
        | BinaryFn::And
        | BinaryFn::Or
        | BinaryFn::Xor
        | BinaryFn::Shl
        | BinaryFn::Shr
        | BinaryFn::Umulhi
        | BinaryFn::Pow
        | BinaryFn::Atan2
        | BinaryFn::Hypot
        | BinaryFn::Fmod
        | BinaryFn::Remainder
        | BinaryFn::Copysign
        | BinaryFn::Nextafter
        | BinaryFn::Fdim
        | BinaryFn::Ldexp => None,
    };
    formula?.tile(ty, shape)
}

/// Conjunction of masks. (`mul` and `min` of `i1` are conjunctions too.)
fn mask(f: BinaryFn, x: &Tile, y: &Tile, shape: &Shape) -> Option<Tile> {
    let all = |x: &Tile| x.uniform() == Some(1);
    let none = |x: &Tile| x.uniform() == Some(0);
    match f {
        BinaryFn::And | BinaryFn::Mul | BinaryFn::Min => {
            if none(x) || none(y) {
                return Some(Tile::Uniform(0));
            }
            if all(x) {
                return Some(y.clone());
            }
            if all(y) {
                return Some(x.clone());
            }
            let (Tile::Rect(a), Tile::Rect(b)) = (x, y) else { return None };
            let both = a.iter().zip(b).map(|(&(l, h), &(m, i))| (l.max(m), h.min(i)));
            Some(rect(both.collect(), shape))
        }
        BinaryFn::Or | BinaryFn::Max => {
            if all(x) || all(y) {
                return Some(Tile::Uniform(1));
            }
            if none(x) {
                return Some(y.clone());
            }
            none(y).then(|| x.clone())
        }
        BinaryFn::Add
        | BinaryFn::Sub
        | BinaryFn::Div
        | BinaryFn::DivRn
        | BinaryFn::Idiv
        | BinaryFn::Rem
        | BinaryFn::MinNan
        | BinaryFn::MaxNan
        | BinaryFn::Xor
        | BinaryFn::Shl
        | BinaryFn::Shr
        | BinaryFn::Umulhi
        | BinaryFn::Pow
        | BinaryFn::Atan2
        | BinaryFn::Hypot
        | BinaryFn::Fmod
        | BinaryFn::Remainder
        | BinaryFn::Copysign
        | BinaryFn::Nextafter
        | BinaryFn::Fdim
        | BinaryFn::Ldexp => None,
    }
}

/// A comparison that varies along one axis is true in one stretch of it.
pub fn compare(p: Predicate, ty: Scalar, x: &Tile, y: &Tile, shape: &Shape) -> Option<Tile> {
    if !exact(ty) || !matches!(x, Tile::Affine(_)) && !matches!(y, Tile::Affine(_)) {
        return None;
    }
    let (a, b) = (Affine::of(x, ty, shape)?, Affine::of(y, ty, shape)?);
    let difference = combine(&a, &b, |x, y| x - y)?;
    let d = i128::from(difference.base);
    let holds = |x: i128| match p {
        Predicate::Eq => x == 0,
        Predicate::Ne => x != 0,
        Predicate::Lt => x < 0,
        Predicate::Le => x <= 0,
        Predicate::Gt => x > 0,
        Predicate::Ge => x >= 0,
    };
    let mut varying = (0..shape.rank()).filter(|&i| difference.steps[i] != 0);
    let Some(axis) = varying.next() else {
        return Some(Tile::bool(holds(d)));
    };
    if varying.next().is_some() {
        // Several axes vary: a box only if all lanes agree.
        let (lo, hi) = difference.range(shape);
        let same = match p {
            Predicate::Eq | Predicate::Ne => lo > 0 || hi < 0,
            Predicate::Lt | Predicate::Le | Predicate::Gt | Predicate::Ge => holds(lo) == holds(hi),
        };
        return same.then(|| Tile::bool(holds(lo)));
    }
    let (step, n) = (i128::from(difference.steps[axis]), shape.dim(axis) as i128);
    // The first index at which the difference has reached `bound`, seen in the step's direction.
    let first = |bound: i128| {
        let gap = if step > 0 { bound - d } else { d - bound };
        let size = step.abs();
        (gap.div_euclid(size) + i128::from(gap.rem_euclid(size) != 0)).clamp(0, n)
    };
    let rising = step > 0;
    let (lo, hi) = match (p, rising) {
        (Predicate::Lt, true) => (0, first(0)),
        (Predicate::Le, true) => (0, first(1)),
        (Predicate::Gt, true) => (first(1), n),
        (Predicate::Ge, true) => (first(0), n),
        (Predicate::Lt, false) => (first(-1), n),
        (Predicate::Le, false) => (first(0), n),
        (Predicate::Gt, false) => (0, first(0)),
        (Predicate::Ge, false) => (0, first(-1)),
        (Predicate::Eq, true) => (first(0), first(1)),
        (Predicate::Eq, false) => (first(0), first(-1)),
        (Predicate::Ne, _) => {
            let (lo, hi) = if rising { (first(0), first(1)) } else { (first(0), first(-1)) };
            // One index is left out: a box only at an end of the axis, or if there is none.
            match (lo, hi) {
                (lo, hi) if lo == hi => (0, n),
                (0, hi) => (hi, n),
                (lo, hi) if hi == n => (0, lo),
                _ => return None,
            }
        }
    };
    let mut parts: Rect = shape.dims().map(|n| (0, n as u32)).collect::<SmallVec<_>>();
    parts[axis] = (lo as u32, hi as u32);
    Some(rect(parts, shape))
}

/// Integer to integer, where every lane fits.
pub fn cast(from: Scalar, to: Scalar, x: &Tile, shape: &Shape) -> Option<Tile> {
    if !exact(from) || !exact(to) {
        return None;
    }
    let Tile::Affine(a) = x else { return None };
    a.clone().tile(to, shape)
}

/// Addresses moved by offsets counted in elements of `size` bytes.
pub fn pointer_add(
    x: &Tile,
    by: &Tile,
    offset_ty: Scalar,
    size: usize,
    shape: &Shape,
) -> Option<Tile> {
    if let (&Tile::Uniform(address), &Tile::Uniform(image)) = (x, by) {
        // Addresses wrap in 64 bits, as the loop has it.
        let by = number(offset_ty, image) as u64;
        return Some(Tile::Uniform(address.wrapping_add(by.wrapping_mul(size as u64))));
    }
    let a = Affine::of(x, Scalar::I64, shape)?;
    let b = if exact(offset_ty) {
        Affine::of(by, offset_ty, shape)?
    } else {
        let steps = SmallVec::from_elem(0, shape.rank());
        Affine { base: by.uniform()? as i64, steps }
    };
    let b = scale(&b, size as i64)?;
    combine(&a, &b, |x, y| x + y)?.tile(Scalar::I64, shape)
}
