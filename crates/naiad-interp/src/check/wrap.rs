//! Integers as they would be without wrapping, from the op that wraps to the address that it spoils.
//!
//! Only arithmetic that ends in an address is looked at, and only signed: what is taken modulo, masked,
//! shifted right or unsigned wraps on purpose.

use super::lanes::{Exact, Lanes};
use super::points::choose;
use crate::casts;
use crate::engine::{self, In};
use crate::formula;
use crate::loops;
use crate::tile::{Affine, Tile, number};
use naiad_ir::scalar::{BinaryFn, Rounding, UnaryFn};
use naiad_ir::{Inst, Scalar, Shape};

/// An integer operand.
#[derive(Copy, Clone)]
pub struct Int<'a> {
    pub tile: &'a Tile,
    pub lanes: &'a Lanes,
    pub ty: Scalar,
}

impl Int<'_> {
    /// The exact numbers in 64 bits.
    fn wide(&self, shape: &Shape) -> Tile {
        match self.lanes.exact() {
            Some(exact) => exact.tile.clone(),
            None => widened(self.tile, self.ty, shape),
        }
    }
}

fn watched(ty: Scalar) -> bool {
    matches!(ty, Scalar::I8 | Scalar::I16 | Scalar::I32)
}

fn widened(tile: &Tile, ty: Scalar, shape: &Shape) -> Tile {
    match tile {
        Tile::Uniform(image) => Tile::Uniform(number(ty, *image) as u64),
        Tile::Affine(a) => Tile::Affine(a.clone()),
        Tile::Rect(_) | Tile::Dense(_) => {
            let how = casts::cast(ty, Scalar::I64, Rounding::Nearest, loops::wide());
            engine::cast(how, In { tile, ty }, Scalar::I64, shape)
        }
    }
}

/// The least and the greatest lane.
fn range(x: &Tile, ty: Scalar, shape: &Shape) -> (i128, i128) {
    match Affine::of(x, ty, shape) {
        Some(a) => a.range(shape),
        None => {
            let wide = widened(x, ty, shape).dense(Scalar::I64, shape);
            // SAFETY: the tile has all lanes.
            let lanes =
                unsafe { std::slice::from_raw_parts(wide.at(8).cast::<i64>(), shape.numel()) };
            let both =
                lanes.iter().fold((i64::MAX, i64::MIN), |(lo, hi), &x| (lo.min(x), hi.max(x)));
            (i128::from(both.0), i128::from(both.1))
        }
    }
}

fn applied(f: BinaryFn, a: &Tile, b: &Tile, shape: &Shape) -> Option<Tile> {
    if let Some(tile) = formula::binary(f, Scalar::I64, a, b, shape) {
        return Some(tile);
    }
    let ins = [In { tile: a, ty: Scalar::I64 }, In { tile: b, ty: Scalar::I64 }];
    Some(engine::map(loops::binary(f, Scalar::I64, loops::wide())?, &ins, Scalar::I64, shape))
}

/// What a binary op's result would be, if that is not what it is.
pub fn binary(
    f: BinaryFn,
    a: Int<'_>,
    b: Int<'_>,
    result: &Tile,
    shape: &Shape,
    inst: Inst,
) -> Option<Exact> {
    let ty = a.ty;
    if !watched(ty) && ty != Scalar::I64 {
        return None;
    }
    let before = a.lanes.exact().or(b.lanes.exact()).map(|e| e.at);
    match f {
        BinaryFn::Add | BinaryFn::Sub | BinaryFn::Mul => {}
        BinaryFn::Min | BinaryFn::Max | BinaryFn::Shl if before.is_some() => {}
        _ => return None,
    }
    if let Some(at) = before {
        let tile = applied(f, &a.wide(shape), &b.wide(shape), shape)?;
        return Some(Exact { tile, at });
    }
    // A formula is exact by its making.
    if matches!(result, Tile::Affine(_)) || ty == Scalar::I64 {
        return None;
    }
    let ((al, ah), (bl, bh)) = (range(a.tile, ty, shape), range(b.tile, ty, shape));
    let (lo, hi) = match f {
        BinaryFn::Add => (al + bl, ah + bh),
        BinaryFn::Sub => (al - bh, ah - bl),
        _ => {
            let corners = [al * bl, al * bh, ah * bl, ah * bh];
            corners.iter().fold((i128::MAX, i128::MIN), |(lo, hi), &x| (lo.min(x), hi.max(x)))
        }
    };
    if lo >= ty.int_min() && hi <= ty.int_max() {
        return None;
    }
    let tile = applied(f, &a.wide(shape), &b.wide(shape), shape)?;
    first_difference(&tile, result, ty, shape).is_some().then_some(Exact { tile, at: inst })
}

pub fn unary(f: UnaryFn, x: Int<'_>, shape: &Shape) -> Option<Exact> {
    let exact = x.lanes.exact().filter(|_| f == UnaryFn::Neg)?;
    let tile = applied(BinaryFn::Sub, &Tile::Uniform(0), &exact.tile, shape)?;
    Some(Exact { tile, at: exact.at })
}

pub fn select(cond: &Tile, yes: Int<'_>, no: Int<'_>, shape: &Shape) -> Option<Exact> {
    let at = yes.lanes.exact().or(no.lanes.exact())?.at;
    let tile = choose(cond, &yes.wide(shape), &no.wide(shape), Scalar::I64, shape);
    Some(Exact { tile, at })
}

/// Addresses as they would be.
pub fn pointer(ptr: Int<'_>, offset: Int<'_>, size: usize, shape: &Shape) -> Option<Exact> {
    let at = ptr.lanes.exact().or(offset.lanes.exact())?.at;
    let bytes = applied(BinaryFn::Mul, &offset.wide(shape), &Tile::Uniform(size as u64), shape)?;
    let tile = applied(BinaryFn::Add, &ptr.wide(shape), &bytes, shape)?;
    Some(Exact { tile, at })
}

/// The first lane in which exact numbers are others than a tile's.
pub fn first_difference(exact: &Tile, tile: &Tile, ty: Scalar, shape: &Shape) -> Option<usize> {
    differing(exact, tile, ty, shape, &Tile::Uniform(1)).map(|(lane, _)| lane)
}

/// The same where a mask is true, with the exact number.
pub fn differing(
    exact: &Tile,
    tile: &Tile,
    ty: Scalar,
    shape: &Shape,
    mask: &Tile,
) -> Option<(usize, i64)> {
    let (x, y) =
        (exact.dense(Scalar::I64, shape), widened(tile, ty, shape).dense(Scalar::I64, shape));
    let mask = mask.dense(Scalar::I1, shape);
    // SAFETY: the tiles have all lanes.
    let lane = |i: usize| unsafe {
        (*x.at(8).cast::<i64>().add(i), *y.at(8).cast::<i64>().add(i), *mask.at(1).add(i))
    };
    (0..shape.numel())
        .map(|i| (i, lane(i)))
        .find(|(_, (x, y, m))| *m != 0 && x != y)
        .map(|(i, (x, ..))| (i, x))
}
