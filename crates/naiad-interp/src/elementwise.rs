//! Functions of lanes: rules for the short forms, then one loop for each kind of operand.
//!
//! The loops are instantiated for every function and type by the tables of `naiad_ir::scalar`, once
//! more with AVX2 and FMA where the machine has them.

use crate::slab::{Plain, Slab};
use crate::tile::{Lanes, Origin, Steps, Tile, with_storage, with_width};
use naiad_ir::Scalar;
use naiad_ir::scalar::{
    BinaryFn, BinaryVisitor, Lane, Lanewise, Predicate, PredicateVisitor, TernaryFn, TernaryVisitor, UnaryFn, UnaryVisitor,
};

/// A loop over lanes, compiled again for wider vectors. Implementors mark `run` `inline(always)`.
pub trait Loop {
    type Out;
    fn run(self) -> Self::Out;
}

pub fn vectorized<L: Loop>(l: L) -> L::Out {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx,avx2,fma,f16c,bmi1,bmi2,sse4.1,sse4.2")]
        fn wide<L: Loop>(l: L) -> L::Out {
            l.run()
        }
        if std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma") && std::is_x86_feature_detected!("f16c") {
            // SAFETY: the features were detected; every machine with AVX2 has the others named.
            return unsafe { wide(l) };
        }
    }
    l.run()
}

/// An operand of a loop.
enum Source<'a, T> {
    One(T),
    Many(&'a [T]),
}

fn source<'a, T: Lane + Plain>(tile: &Tile, slab: &'a Slab) -> Source<'a, T> {
    match tile.as_uniform() {
        Some(image) => Source::One(T::from_image(image)),
        None => Source::Many(slab.lanes::<T>(tile.numel())),
    }
}

/// A slab for an operand; a uniform one needs none of its own.
fn backing(tile: &Tile) -> Slab {
    if tile.as_uniform().is_some() { Slab::filled::<u64>(1, 0) } else { tile.slab() }
}

struct Unary<'a> {
    x: &'a Slab,
    count: usize,
}

impl UnaryVisitor for Unary<'_> {
    type Out = Slab;
    fn visit<T: Lane>(self, f: impl Lanewise<(T,), T>) -> Slab {
        struct Body<'a, T, F>(&'a [T], &'a mut [T], F);
        impl<T: Lane, F: Lanewise<(T,), T>> Loop for Body<'_, T, F> {
            type Out = ();
            #[inline(always)]
            fn run(self) {
                let Body(x, out, f) = self;
                for (o, &x) in out.iter_mut().zip(x) {
                    *o = f.at((x,));
                }
            }
        }
        let x = lanes::<T>(self.x, self.count);
        build::<T>(self.count, |out| vectorized(Body(x, out, f)))
    }
}

/// `Slab::lanes` for a lane type, all of which are plain.
pub fn lanes<T: Lane>(slab: &Slab, count: usize) -> &[T] {
    #[derive(Copy, Clone)]
    #[repr(transparent)]
    struct P<T>(T);
    // SAFETY: the lane types are the machine's numbers and `bool`, all plain.
    unsafe impl<T: Lane> Plain for P<T> {}
    let slice = slab.lanes::<P<T>>(count);
    // SAFETY: `P` is transparent.
    unsafe { std::slice::from_raw_parts(slice.as_ptr().cast::<T>(), count) }
}

/// `Slab::build` for a lane type.
pub fn build<T: Lane>(count: usize, fill: impl FnOnce(&mut [T])) -> Slab {
    // The image of a default lane is all zeros, so a buffer built as words of its width is valid.
    let as_t = |ptr: *mut u8| {
        // SAFETY: the buffer below has `count` elements of T's size and is aligned to 8 bytes; any
        // bytes are a number, and for `bool` the buffer was cleared.
        fill(unsafe { std::slice::from_raw_parts_mut(ptr.cast::<T>(), count) });
    };
    if T::SCALAR == Scalar::I1 {
        return Slab::build::<bool>(count, |out| as_t(out.as_mut_ptr().cast()));
    }
    with_width!(T::SCALAR, W => Slab::build::<W>(count, |out| as_t(out.as_mut_ptr().cast())))
}

struct Binary<'a> {
    a: &'a Tile,
    b: &'a Tile,
}

enum Pair<'a, T> {
    Both(&'a [T], &'a [T]),
    Left(&'a [T], T),
    Right(T, &'a [T]),
}

struct PairBody<'a, T, R, F>(Pair<'a, T>, &'a mut [R], F);

impl<T: Lane, R: Lane, F: Lanewise<(T, T), R>> Loop for PairBody<'_, T, R, F> {
    type Out = ();
    #[inline(always)]
    fn run(self) {
        let PairBody(pair, out, f) = self;
        match pair {
            Pair::Both(a, b) => {
                for ((o, &a), &b) in out.iter_mut().zip(a).zip(b) {
                    *o = f.at((a, b));
                }
            }
            Pair::Left(a, b) => {
                for (o, &a) in out.iter_mut().zip(a) {
                    *o = f.at((a, b));
                }
            }
            Pair::Right(a, b) => {
                for (o, &b) in out.iter_mut().zip(b) {
                    *o = f.at((a, b));
                }
            }
        }
    }
}

fn pairwise<T: Lane, R: Lane>(a: &Tile, b: &Tile, f: impl Lanewise<(T, T), R>) -> Slab {
    let count = a.numel();
    let (sa, sb) = (backing(a), backing(b));
    let pair = match (a.as_uniform(), b.as_uniform()) {
        (None, Some(y)) => Pair::Left(lanes::<T>(&sa, count), T::from_image(y)),
        (Some(x), None) => Pair::Right(T::from_image(x), lanes::<T>(&sb, count)),
        (None, None) => Pair::Both(lanes::<T>(&sa, count), lanes::<T>(&sb, count)),
        // Of two uniforms one is spread out; callers evaluate those before they come here.
        (Some(x), Some(y)) => return build::<R>(count, |out| out.fill(f.at((T::from_image(x), T::from_image(y))))),
    };
    build::<R>(count, |out| vectorized(PairBody(pair, out, f)))
}

impl BinaryVisitor for Binary<'_> {
    type Out = Slab;
    fn visit<T: Lane>(self, f: impl Lanewise<(T, T), T>) -> Slab {
        pairwise::<T, T>(self.a, self.b, f)
    }
}

impl PredicateVisitor for Binary<'_> {
    type Out = Slab;
    fn visit<T: Lane>(self, f: impl Lanewise<(T, T), bool>) -> Slab {
        pairwise::<T, bool>(self.a, self.b, f)
    }
}

struct Ternary<'a>([&'a Slab; 3], usize);

impl TernaryVisitor for Ternary<'_> {
    type Out = Slab;
    fn visit<T: Lane>(self, f: impl Lanewise<(T, T, T), T>) -> Slab {
        struct Body<'a, T, F>([&'a [T]; 3], &'a mut [T], F);
        impl<T: Lane, F: Lanewise<(T, T, T), T>> Loop for Body<'_, T, F> {
            type Out = ();
            #[inline(always)]
            fn run(self) {
                let Body([a, b, c], out, f) = self;
                for (((o, &a), &b), &c) in out.iter_mut().zip(a).zip(b).zip(c) {
                    *o = f.at((a, b, c));
                }
            }
        }
        let [a, b, c] = self.0.map(|s| lanes::<T>(s, self.1));
        build::<T>(self.1, |out| vectorized(Body([a, b, c], out, f)))
    }
}

/// The result's tile in the type of the operands, from one computed in their compute type.
fn narrowed(slab: Slab, like: &Tile) -> Tile {
    let wide = Tile::dense(like.ty.compute_type(), like.shape, slab);
    crate::cast::cast(&wide, like.ty, Default::default())
}

fn widened(x: &Tile) -> Tile {
    crate::cast::cast(x, x.ty.compute_type(), Default::default())
}

/// The front end and the verifier let no function meet a type it is not defined on.
const DEFINED: &str = "verified IR applies functions to types that they accept";

pub fn unary(f: UnaryFn, x: &Tile) -> Tile {
    if let Some(image) = x.as_uniform() {
        return Tile::uniform(x.ty, x.shape, f.eval(x.ty, image).expect(DEFINED));
    }
    if let (UnaryFn::Neg, Some((base, steps))) = (f, x.as_affine()) {
        let steps: Vec<i128> = steps.iter().map(|&s| -(s as i128)).collect();
        if let Some(tile) = Tile::affine(x.ty, x.shape, -(base as i128), &steps) {
            return tile;
        }
    }
    let wide = widened(x);
    let visitor = Unary { x: &wide.slab(), count: wide.numel() };
    narrowed(f.dispatch(wide.ty, visitor).expect(DEFINED), x)
}

pub fn binary(f: BinaryFn, a: &Tile, b: &Tile) -> Tile {
    if let (Some(x), Some(y)) = (a.as_uniform(), b.as_uniform()) {
        return Tile::uniform(a.ty, a.shape, f.eval(a.ty, x, y).expect(DEFINED));
    }
    if let Some(tile) = affine_binary(f, a, b).or_else(|| mask_binary(f, a, b)) {
        return tile;
    }
    if a.ty.compute_type() == a.ty {
        let slab = f.dispatch(a.ty, Binary { a, b }).expect(DEFINED);
        return Tile::dense(a.ty, a.shape, slab);
    }
    let (wa, wb) = (widened(a), widened(b));
    narrowed(f.dispatch(wa.ty, Binary { a: &wa, b: &wb }).expect(DEFINED), a)
}

fn affine_binary(f: BinaryFn, a: &Tile, b: &Tile) -> Option<Tile> {
    if !a.ty.is_int() || a.ty.is_bool() || !matches!(f, BinaryFn::Add | BinaryFn::Sub | BinaryFn::Mul) {
        return None;
    }
    let ((xb, xs), (yb, ys)) = (a.as_affine()?, b.as_affine()?);
    let wide = |s: &Steps| -> Vec<i128> { s.iter().map(|&s| s as i128).collect() };
    let (xb, yb, xs, ys) = (xb as i128, yb as i128, wide(&xs), wide(&ys));
    match f {
        BinaryFn::Add | BinaryFn::Sub => {
            let sign = if f == BinaryFn::Add { 1 } else { -1 };
            let steps: Vec<i128> = xs.iter().zip(&ys).map(|(x, y)| x + sign * y).collect();
            Tile::affine(a.ty, a.shape, xb + sign * yb, &steps)
        }
        _ => {
            let (k, base, steps) = if ys.iter().all(|&s| s == 0) {
                (yb, xb, xs)
            } else if xs.iter().all(|&s| s == 0) {
                (xb, yb, ys)
            } else {
                return None;
            };
            let steps: Vec<i128> = steps.iter().map(|s| s * k).collect();
            Tile::affine(a.ty, a.shape, base * k, &steps)
        }
    }
}

fn mask_binary(f: BinaryFn, a: &Tile, b: &Tile) -> Option<Tile> {
    if !a.ty.is_bool() {
        return None;
    }
    match (f, a.as_uniform(), b.as_uniform()) {
        (BinaryFn::And, Some(1), _) | (BinaryFn::Or, Some(0), _) => return Some(b.clone()),
        (BinaryFn::And, _, Some(1)) | (BinaryFn::Or, _, Some(0)) => return Some(a.clone()),
        (BinaryFn::And, Some(0), _) | (BinaryFn::And, _, Some(0)) => return Some(Tile::uniform(a.ty, a.shape, 0)),
        (BinaryFn::Or, Some(1), _) | (BinaryFn::Or, _, Some(1)) => return Some(Tile::uniform(a.ty, a.shape, 1)),
        _ => {}
    }
    let (BinaryFn::And, Lanes::Rect(x), Lanes::Rect(y)) = (f, &a.lanes, &b.lanes) else { return None };
    let area = x.iter().zip(y).map(|(x, y)| (x.0.max(y.0), x.1.min(y.1))).collect();
    Some(rect(a, area))
}

/// An i1 tile that is true in a box, in its shortest form.
fn rect(like: &Tile, area: crate::tile::Box_) -> Tile {
    let full = area.iter().zip(like.shape.dims()).all(|(&(lo, hi), d)| lo == 0 && hi as usize == d);
    if full || crate::tile::box_is_empty(&area) {
        return Tile::uniform(Scalar::I1, like.shape, full as u64);
    }
    Tile::new(Scalar::I1, like.shape, Lanes::Rect(area))
}

pub fn compare(p: Predicate, a: &Tile, b: &Tile) -> Tile {
    if let (Some(x), Some(y)) = (a.as_uniform(), b.as_uniform()) {
        return Tile::uniform(Scalar::I1, a.shape, p.eval(a.ty, x, y).expect(DEFINED) as u64);
    }
    if let Some(tile) = affine_compare(p, a, b) {
        return tile;
    }
    let slab = if a.ty.compute_type() == a.ty {
        p.dispatch(a.ty, Binary { a, b }).expect(DEFINED)
    } else {
        let (wa, wb) = (widened(a), widened(b));
        p.dispatch(wa.ty, Binary { a: &wa, b: &wb }).expect(DEFINED)
    };
    Tile::dense(Scalar::I1, a.shape, slab)
}

/// The difference of two affine tiles that varies along one axis changes its sign once there.
fn affine_compare(p: Predicate, a: &Tile, b: &Tile) -> Option<Tile> {
    if a.ty.is_bool() {
        return None;
    }
    let ((xb, xs), (yb, ys)) = (a.as_affine()?, b.as_affine()?);
    let base = xb as i128 - yb as i128;
    let steps: Vec<i128> = xs.iter().zip(&ys).map(|(&x, &y)| x as i128 - y as i128).collect();
    let mut varying = (0..steps.len()).filter(|&d| steps[d] != 0);
    let axis = varying.next();
    if varying.next().is_some() {
        return None;
    }
    let holds = |i: i128| {
        let d = base + axis.map_or(0, |d| steps[d]) * i;
        match p {
            Predicate::Eq => d == 0,
            Predicate::Ne => d != 0,
            Predicate::Lt => d < 0,
            Predicate::Le => d <= 0,
            Predicate::Gt => d > 0,
            Predicate::Ge => d >= 0,
        }
    };
    let Some(axis) = axis else { return Some(Tile::uniform(Scalar::I1, a.shape, holds(0) as u64)) };
    let len = a.shape.dim(axis) as i128;
    let (lo, hi) = match p {
        Predicate::Ne => return None,
        Predicate::Eq => {
            let at = -base / steps[axis];
            if (0..len).contains(&at) && holds(at) { (at, at + 1) } else { (0, 0) }
        }
        // True up to some lane, or from some lane on: found by halving.
        _ => {
            let first = holds(0);
            let (mut low, mut high) = (0, len);
            while low < high {
                let middle = (low + high) / 2;
                if holds(middle) == first { low = middle + 1 } else { high = middle }
            }
            if first { (0, low) } else { (low, len) }
        }
    };
    let mut area = crate::tile::full_box(a.shape);
    area[axis] = (lo as u32, hi as u32);
    Some(rect(a, area))
}

pub fn ternary(f: TernaryFn, a: &Tile, b: &Tile, c: &Tile) -> Tile {
    if let (Some(x), Some(y), Some(z)) = (a.as_uniform(), b.as_uniform(), c.as_uniform()) {
        return Tile::uniform(a.ty, a.shape, f.eval(a.ty, x, y, z).expect(DEFINED));
    }
    let wide = [a, b, c].map(widened);
    let slabs = [wide[0].slab(), wide[1].slab(), wide[2].slab()];
    let visitor = Ternary([&slabs[0], &slabs[1], &slabs[2]], a.numel());
    narrowed(f.dispatch(wide[0].ty, visitor).expect(DEFINED), a)
}

pub fn select(cond: &Tile, yes: &Tile, no: &Tile) -> Tile {
    let origin = if yes.origin == no.origin { yes.origin } else { Origin::Address };
    if let Some(c) = cond.as_uniform() {
        return if c & 1 != 0 { yes.clone() } else { no.clone() };
    }
    let count = cond.numel();
    let c = cond.slab();
    let (ys, ns) = (backing(yes), backing(no));
    let c = c.lanes::<bool>(count);
    let slab = with_storage!(yes.ty, T => Slab::build::<T>(count, |out| {
        vectorized(SelectBody { c, yes: source::<T>(yes, &ys), no: source::<T>(no, &ns), out });
    }));
    Tile::dense(yes.ty, yes.shape, slab).with_origin(origin)
}

struct SelectBody<'a, T> {
    c: &'a [bool],
    yes: Source<'a, T>,
    no: Source<'a, T>,
    out: &'a mut [T],
}

impl<T: Copy> Loop for SelectBody<'_, T> {
    type Out = ();
    #[inline(always)]
    fn run(self) {
        let SelectBody { c, yes, no, out } = self;
        match (yes, no) {
            (Source::Many(y), Source::Many(n)) => {
                for (((o, &c), &y), &n) in out.iter_mut().zip(c).zip(y).zip(n) {
                    *o = if c { y } else { n };
                }
            }
            (Source::Many(y), Source::One(n)) => {
                for ((o, &c), &y) in out.iter_mut().zip(c).zip(y) {
                    *o = if c { y } else { n };
                }
            }
            (Source::One(y), Source::Many(n)) => {
                for ((o, &c), &n) in out.iter_mut().zip(c).zip(n) {
                    *o = if c { y } else { n };
                }
            }
            (Source::One(y), Source::One(n)) => {
                for (o, &c) in out.iter_mut().zip(c) {
                    *o = if c { y } else { n };
                }
            }
        }
    }
}

/// Moves pointers by a number of elements of `size` bytes; the offset is extended by its own sign.
pub fn ptr_add(ptr: &Tile, offset: &Tile, size: usize) -> Tile {
    if let (Some((pb, ps)), Some((ob, os))) = (ptr.as_affine(), offset.as_affine()) {
        let size = size as i128;
        let steps: Vec<i128> = ps.iter().zip(&os).map(|(&p, &o)| p as i128 + size * o as i128).collect();
        if let Some(tile) = Tile::affine(Scalar::I64, ptr.shape, pb as i128 + size * ob as i128, &steps) {
            return tile.with_origin(ptr.origin);
        }
    }
    let bytes = {
        let wide = crate::cast::cast(offset, Scalar::I64, Default::default());
        let size = Tile::uniform(Scalar::I64, offset.shape, size as u64);
        binary(BinaryFn::Mul, &wide, &size)
    };
    binary(BinaryFn::Add, ptr, &bytes).with_origin(ptr.origin)
}
