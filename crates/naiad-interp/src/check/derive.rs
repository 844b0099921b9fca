//! The classes of what lane-by-lane ops and moves of lanes give.
//!
//! | operands of a lane | result |
//! |---|---|
//! | K with anything | the other |
//! | V with V | V |
//! | V with P | V: an explicit default is deliberate; but P where the V is the same along an axis on which padding ends, since a row's mean is no lane's own data |
//! | flagged with flagged | the greater |
//! | V with U or X | U or X, unless the result cannot depend on it: times an exact 0 (U), absorbed by `and` or `or`, an arm not chosen |
//!
//! Choosing a constant in place of a flagged lane makes it padding again, with another fill.

use super::lanes::{
    Class, Form, Lanes, Source, as_rect, cut_axes, implies, intersection, same_mask, slice,
    slice_mut, whole,
};
use crate::slab::Slab;
use crate::tile::{Dense, Tile};
use naiad_ir::scalar::BinaryFn;
use naiad_ir::{Scalar, Shape};

/// A value as the rules see it.
#[derive(Copy, Clone)]
pub struct Operand<'a> {
    pub lanes: &'a Lanes,
    pub tile: &'a Tile,
    pub ty: Scalar,
    /// Axes along which it is the same by construction.
    pub uniform: u32,
}

/// The class of one lane of a result.
fn join(a: Class, b: Class, keep: bool) -> Class {
    use Class::{K, P, V};
    match (a, b) {
        (K, c) | (c, K) => c,
        (P, V) | (V, P) if !keep => V,
        _ => a.max(b),
    }
}

/// The source of the flagged lanes of a result.
pub fn source_of(a: &Lanes, b: &Lanes) -> Option<Source> {
    let (first, second) = if b.class > a.class { (b, a) } else { (a, b) };
    first.source().or(second.source())
}

/// An op without a rule of its own, on any number of operands.
pub fn elementwise(operands: &[Operand<'_>], shape: &Shape) -> Lanes {
    let Some((first, rest)) = operands.split_first() else { return Lanes::all(Class::K) };
    let mut all = bare(first.lanes);
    let mut uniform = first.uniform;
    for next in rest {
        all = pair(&all, uniform, next.lanes, next.uniform, shape);
        uniform &= next.uniform;
    }
    all
}

/// Without what would be there if nothing had wrapped, which is for others to carry on.
fn bare(lanes: &Lanes) -> Lanes {
    lanes.clone().with_exact(None)
}

/// Axes that have more than one lane, as bits.
fn long_axes(shape: &Shape) -> u32 {
    (0..shape.rank()).filter(|&d| shape.dim(d) > 1).fold(0, |axes, d| axes | 1 << d)
}

fn pair(a: &Lanes, ua: u32, b: &Lanes, ub: u32, shape: &Shape) -> Lanes {
    let source = source_of(a, b);
    let long = long_axes(shape);
    match (a.form(), b.form()) {
        (None, None) => {
            let keep = if a.class == Class::V { ua & long } else { ub & long };
            Lanes::flagged(join(a.class, b.class, keep != 0), source)
        }
        (Some(form), None) => with_all(form, b.class, ub, source, shape, a),
        (None, Some(form)) => with_all(form, a.class, ua, source, shape, b),
        (
            Some(Form::Split { mask: m, inside: ai, outside: ao }),
            Some(Form::Split { mask: n, inside: bi, outside: bo }),
        ) => {
            if same_mask(m, n) {
                return Lanes::split(m, join(*ai, *bi, false), join(*ao, *bo, false), source);
            }
            if let (Tile::Rect(r), Tile::Rect(s)) = (m, n) {
                let both = intersection(r, s, shape);
                if let Some(inner) = as_rect(&both, shape) {
                    // Where only one of the two is inside, as far as there are such lanes.
                    let only_a = cut_axes(&inner, r);
                    let only_b = cut_axes(&inner, s);
                    let outside = join(*ao, *bo, false);
                    let x = (only_a != 0).then(|| join(*ai, *bo, ua & only_a != 0));
                    let y = (only_b != 0).then(|| join(*ao, *bi, ub & only_b != 0));
                    if x.is_none_or(|c| c == outside) && y.is_none_or(|c| c == outside) {
                        return Lanes::split(&both, join(*ai, *bi, false), outside, source);
                    }
                }
            }
            each(a, ua & long != 0, b, ub & long != 0, shape, source)
        }
        (Some(_), Some(_)) => each(a, ua & long != 0, b, ub & long != 0, shape, source),
    }
}

fn with_all(
    form: &Form,
    other: Class,
    uniform: u32,
    source: Option<Source>,
    shape: &Shape,
    lanes: &Lanes,
) -> Lanes {
    match form {
        Form::Split { mask, inside, outside } => {
            let cut = match mask {
                Tile::Rect(r) => cut_axes(r, &whole(shape)),
                Tile::Uniform(_) | Tile::Affine(_) | Tile::Dense(_) => long_axes(shape),
            };
            let keep = uniform & cut != 0;
            Lanes::split(mask, join(*inside, other, keep), join(*outside, other, keep), source)
        }
        Form::Each(_) => {
            let keep = uniform & long_axes(shape) != 0;
            map(lanes, shape, source, |c| join(c, other, keep))
        }
    }
}

fn map(a: &Lanes, shape: &Shape, source: Option<Source>, f: impl Fn(Class) -> Class) -> Lanes {
    let table: [u8; 5] = std::array::from_fn(|i| f(Class::of_byte(i as u64)) as u8);
    let bytes = a.bytes(shape);
    let mut slab = Slab::new(shape.numel());
    for (o, &c) in slice_mut(&mut slab, shape.numel()).iter_mut().zip(slice(&bytes, shape)) {
        *o = table[usize::from(c)];
    }
    Lanes::each(Dense::new(slab), shape, source)
}

/// Lane by lane; `keep_a` where `a` is the same along some axis, so that padding of `b` stays.
fn each(
    a: &Lanes,
    keep_a: bool,
    b: &Lanes,
    keep_b: bool,
    shape: &Shape,
    source: Option<Source>,
) -> Lanes {
    let (x, y) = (a.bytes(shape), b.bytes(shape));
    let mut slab = Slab::new(shape.numel());
    let lanes = slice(&x, shape).iter().zip(slice(&y, shape));
    for (o, (&x, &y)) in slice_mut(&mut slab, shape.numel()).iter_mut().zip(lanes) {
        let (x, y) = (Class::of_byte(u64::from(x)), Class::of_byte(u64::from(y)));
        let keep = if x == Class::V { keep_a } else { keep_b };
        *o = join(x, y, keep) as u8;
    }
    Lanes::each(Dense::new(slab), shape, source)
}

/// A binary op: what multiplies by 0 or is absorbed does not depend on the other operand.
pub fn binary(f: BinaryFn, a: Operand<'_>, b: Operand<'_>, shape: &Shape) -> Lanes {
    let (mut x, mut y) = (bare(a.lanes), bare(b.lanes));
    if let Some((absorbing, most)) = absorbing(f, a.ty) {
        if absorbed(&x, b, absorbing, most, shape) {
            x = x.refilled(shape);
        }
        if absorbed(&y, a, absorbing, most, shape) {
            y = y.refilled(shape);
        }
    }
    pair(&x, a.uniform, &y, b.uniform, shape)
}

/// The image that makes a result independent of the other operand, and the greatest class that it
/// absorbs: NaN times 0 is NaN, so arbitrary bits are not absorbed by a product.
fn absorbing(f: BinaryFn, ty: Scalar) -> Option<(u64, Class)> {
    match f {
        BinaryFn::Mul if ty.is_bool() => Some((0, Class::X)),
        BinaryFn::Mul => Some((0, Class::U)),
        BinaryFn::And => Some((0, Class::X)),
        BinaryFn::Or => Some((ty.mask(), Class::X)),
        _ => None,
    }
}

/// Whether wherever `x` is undefined or arbitrary `other` absorbs it.
fn absorbed(x: &Lanes, other: Operand<'_>, image: u64, most: Class, shape: &Shape) -> bool {
    if x.class < Class::U || x.class > most {
        return false;
    }
    let is = |x: u64| x == image || other.ty.is_float() && x << 1 & other.ty.mask() == image << 1;
    if let Some(x) = other.tile.uniform() {
        return is(x);
    }
    if let (Some(Form::Split { mask, .. }), Tile::Rect(_), 0) = (x.form(), other.tile, image) {
        return implies(other.tile, mask, shape);
    }
    let size = other.ty.size();
    let (classes, values) = (x.bytes(shape), other.tile.dense(other.ty, shape));
    slice(&classes, shape).iter().enumerate().all(|(i, &c)| {
        // SAFETY: the tile has all lanes.
        c < Class::U as u8
            || is(unsafe { crate::engine::read_image(values.at(size).add(i * size), size) })
    })
}

/// `where(cond, yes, no)`.
pub fn select(cond: Operand<'_>, yes: Operand<'_>, no: Operand<'_>, shape: &Shape) -> Lanes {
    let base = chosen(cond.tile, yes.lanes, no.lanes, shape);
    match cond.lanes.class {
        Class::K => base,
        Class::V if cond.lanes.more.is_none() => {
            // Which constant was taken is data.
            if base.class == Class::K { Lanes::all(Class::V) } else { base }
        }
        _ => pair(&base, yes.uniform & no.uniform, &bare(cond.lanes), cond.uniform, shape),
    }
}

fn chosen(cond: &Tile, yes: &Lanes, no: &Lanes, shape: &Shape) -> Lanes {
    let source = source_of(yes, no);
    if let Some(c) = cond.uniform() {
        let (taken, left) = if c != 0 { (yes, no) } else { (no, yes) };
        return match taken.class {
            Class::K if left.class.is_flagged() => bare(left).refilled(shape),
            _ => bare(taken),
        };
    }
    let flagged = (yes.class.is_flagged(), no.class.is_flagged());
    if flagged == (false, false) {
        return Lanes::all(yes.class.max(no.class));
    }
    // One arm is flagged outside a mask, the other nowhere.
    let one = if flagged.1 { (no, yes) } else { (yes, no) };
    if flagged != (true, true)
        && let Some(Form::Split { mask, inside, outside }) = one.0.form()
        && !inside.is_flagged()
    {
        let inside = (*inside).max(one.1.class);
        let never = flagged.0 && implies(cond, mask, shape);
        match one.1.class {
            Class::K if never || *outside == Class::P => {
                return Lanes::split(mask, inside, Class::P, source);
            }
            Class::V if never => return Lanes::all(Class::V),
            _ => {}
        }
    }
    let cond = cond.dense(Scalar::I1, shape);
    let (y, n) = (yes.bytes(shape), no.bytes(shape));
    let mut slab = Slab::new(shape.numel());
    let lanes = slice(&cond, shape).iter().zip(slice(&y, shape).iter().zip(slice(&n, shape)));
    for (o, (&c, (&y, &n))) in slice_mut(&mut slab, shape.numel()).iter_mut().zip(lanes) {
        let (taken, left) = if c != 0 { (y, n) } else { (n, y) };
        *o = if taken == Class::K as u8 && left >= Class::P as u8 { Class::P as u8 } else { taken };
    }
    Lanes::each(Dense::new(slab), shape, source)
}
