//! Points other than `reduce` and `scan`: matrix products, sorting, counting.

use super::derive::source_of;
use super::lanes::{Class, Form, Lanes, Source, slice, slice_mut, whole};
use super::points::{Input, Point, Suspect, all_in, choose, data_mask, differs};
use crate::engine::read_image;
use crate::ops::Reg;
use crate::slab::Slab;
use crate::tile::{Dense, Rect, Tile};
use naiad_ir::{Scalar, Shape};
use smallvec::{SmallVec, smallvec};

/// A matrix product; `again` computes it from other operands.
pub fn dot(
    a: Input<'_>,
    b: Input<'_>,
    acc: Option<&Lanes>,
    result: (&Reg, Scalar, Shape),
    again: impl Fn(&Tile, &Tile) -> Tile,
) -> Point {
    let (result, out_ty, to) = result;
    let source = source_of(a.lanes, b.lanes);
    let product = product_lanes(a, b, &to, source);
    let lanes = match acc {
        None => product.clone(),
        Some(acc) => accumulated(acc, &product, &to),
    };
    let rank = a.shape.rank();
    let cut = |x: Input<'_>, axis: usize| match x.lanes.form() {
        None => x.lanes.class.is_flagged(),
        Some(Form::Split { mask: Tile::Rect(r), inside, .. }) => {
            inside.is_flagged() || r[axis] != (0, x.shape.dim(axis) as u32)
        }
        Some(_) => true,
    };
    let nothing = lanes.class.is_flagged() && lanes.form().is_none();
    if nothing || !cut(a, rank - 1) && !cut(b, rank - 2) {
        return Point::quiet(smallvec![lanes]);
    }
    let worst = a.lanes.class.max(b.lanes.class);
    let zeros =
        zero_outside(a) && zero_outside(b) && (same_k(a, b) || all_finite(a) && all_finite(b));
    if zeros && worst != Class::U {
        return Point::quiet(smallvec![lanes]);
    }
    let changed_live = (!zeros).then(|| {
        let zeroed = |x: Input<'_>| {
            choose(&data_mask(x.lanes, &x.shape), x.tile, &Tile::Uniform(0), x.ty, &x.shape)
        };
        again(&zeroed(a), &zeroed(b))
    });
    let data = data_mask(&lanes, &to);
    let changed =
        changed_live.as_ref().is_some_and(|live| differs(&result.tile, live, out_ty, &to, &data));
    let shown = if a.lanes.class >= b.lanes.class { a } else { b };
    let (flagged, example) = outside_lanes(shown);
    if !changed && (worst != Class::U || flagged == 0) {
        return Point::quiet(smallvec![lanes]);
    }
    let live = changed_live.map_or_else(
        || result.tile.clone(),
        |live| choose(&data, &live, &result.tile, out_ty, &to),
    );
    let suspect = Suspect {
        class: worst,
        source: shown.lanes.source().or(source),
        flagged,
        lanes: shown.shape.numel(),
        example,
        classes: shown.lanes.clone(),
        ty: shown.ty,
        shape: shown.shape,
        changed,
        live: smallvec![Reg { tile: live, origin: result.origin }],
    };
    Point { lanes: smallvec![lanes], suspect: Some(suspect) }
}

/// What is added to data is judged, so a sum of data and padding is data.
fn accumulated(acc: &Lanes, product: &Lanes, to: &Shape) -> Lanes {
    match (acc.is_plain(), product.is_plain(), acc.class, product.class) {
        (true, _, Class::V, _) | (_, true, _, Class::V) => return Lanes::all(Class::V),
        (true, _, Class::K, _) => return product.clone(),
        (_, true, _, Class::K) => return acc.clone().with_exact(None),
        _ => {}
    }
    if let (Some(Form::Split { mask: m, .. }), Some(Form::Split { mask: n, .. })) =
        (acc.form(), product.form())
        && super::lanes::same_mask(m, n)
    {
        return acc.clone().with_exact(None);
    }
    let (x, y) = (acc.bytes(to), product.bytes(to));
    let mut slab = Slab::new(to.numel());
    let v = Class::V as u8;
    for (o, (&a, &b)) in
        slice_mut(&mut slab, to.numel()).iter_mut().zip(slice(&x, to).iter().zip(slice(&y, to)))
    {
        *o = if a == v || b == v { v } else { a.max(b) };
    }
    Lanes::each(Dense::new(slab), to, source_of(acc, product))
}

/// Where a product has data: where some term has data in both factors.
fn product_lanes(a: Input<'_>, b: Input<'_>, to: &Shape, source: Option<Source>) -> Lanes {
    let outside = a.lanes.class.max(b.lanes.class);
    if !outside.is_flagged() {
        return Lanes::all(outside);
    }
    let r = a.shape.rank();
    let rect_of = |x: Input<'_>| match x.lanes.form() {
        None if !x.lanes.class.is_flagged() => Some(whole(&x.shape)),
        Some(Form::Split { mask: Tile::Rect(r), inside, .. }) if !inside.is_flagged() => {
            Some(r.clone())
        }
        _ => None,
    };
    if let (Some(x), Some(y)) = (rect_of(a), rect_of(b)) {
        let meet = x[r - 1].0.max(y[r - 2].0) < x[r - 1].1.min(y[r - 2].1);
        let mut box_: Rect =
            x[..r - 2].iter().zip(&y[..r - 2]).map(|(p, q)| (p.0.max(q.0), p.1.min(q.1))).collect();
        box_.push(x[r - 2]);
        box_.push(y[r - 1]);
        let mask = if meet { crate::tile::rect(box_, to) } else { Tile::Uniform(0) };
        return Lanes::split(&mask, Class::V, outside, source);
    }
    // The masks multiplied as matrices count the terms.
    let count = |x: Input<'_>| {
        let data = data_mask(x.lanes, &x.shape);
        let one = u64::from(1f32.to_bits());
        let ones = choose(&data, &Tile::Uniform(one), &Tile::Uniform(0), Scalar::F32, &x.shape);
        crate::dot::Matrix::new(&ones, Scalar::F32, x.shape)
    };
    let counts =
        crate::dot::dot(&count(a), &count(b), None, Scalar::F32, to, None).dense(Scalar::F32, to);
    let mut slab = Slab::new(to.numel());
    for (i, o) in slice_mut(&mut slab, to.numel()).iter_mut().enumerate() {
        // SAFETY: the product has all lanes.
        let n = unsafe { read_image(counts.at(4).add(i * 4), 4) };
        *o = if n != 0 { Class::V as u8 } else { outside as u8 };
    }
    Lanes::each(Dense::new(slab), to, source)
}

/// Whether flagged lanes are all 0.
fn zero_outside(x: Input<'_>) -> bool {
    if !x.lanes.class.is_flagged() {
        return true;
    }
    let is = |image: u64| image == 0 || x.ty.is_float() && image << 1 & x.ty.mask() == 0;
    if let Some(image) = x.tile.uniform() {
        return is(image);
    }
    match x.lanes.form() {
        Some(Form::Split { mask: Tile::Rect(r), inside, .. }) if !inside.is_flagged() => {
            all_in(x.tile, x.ty, &x.shape, &complement(r, &x.shape), &is)
        }
        _ => {
            let (classes, values) = (x.lanes.bytes(&x.shape), x.tile.dense(x.ty, &x.shape));
            let size = x.ty.size();
            slice(&classes, &x.shape).iter().enumerate().all(|(i, &c)| {
                // SAFETY: the tile has all lanes.
                c < Class::P as u8 || is(unsafe { read_image(values.at(size).add(i * size), size) })
            })
        }
    }
}

/// Boxes that together hold what a box leaves.
fn complement(r: &Rect, shape: &Shape) -> SmallVec<[Rect; 4]> {
    let mut rest = whole(shape);
    let mut boxes = SmallVec::new();
    for d in 0..shape.rank() {
        let (lo, hi) = r[d];
        for part in [(0, lo), (hi, shape.dim(d) as u32)] {
            if part.0 < part.1 {
                let mut b = rest.clone();
                b[d] = part;
                boxes.push(b);
            }
        }
        rest[d] = (lo, hi);
    }
    boxes
}

/// Whether both factors are flagged in the same terms, so that no flagged 0 meets data.
fn same_k(a: Input<'_>, b: Input<'_>) -> bool {
    let r = a.shape.rank();
    match (a.lanes.form(), b.lanes.form()) {
        (
            Some(Form::Split { mask: Tile::Rect(x), .. }),
            Some(Form::Split { mask: Tile::Rect(y), .. }),
        ) => x[r - 1] == y[r - 2],
        _ => false,
    }
}

fn all_finite(x: Input<'_>) -> bool {
    !x.ty.is_float() || !super::numeric::any_special(x.tile, x.ty, &x.shape)
}

fn outside_lanes(x: Input<'_>) -> (usize, Option<(usize, u64)>) {
    let (classes, values) = (x.lanes.bytes(&x.shape), x.tile.dense(x.ty, &x.shape));
    let size = x.ty.size();
    let (mut n, mut example) = (0, None);
    for (i, &c) in slice(&classes, &x.shape).iter().enumerate() {
        if c >= Class::P as u8 {
            n += 1;
            // SAFETY: the tile has all lanes.
            let image = unsafe { read_image(values.at(size).add(i * size), size) };
            if example.is_none_or(|(_, before)| before == 0 && image != 0) {
                example = Some((i, image));
            }
        }
    }
    (n, example)
}

/// `sort` and `topk`: classes go with the lanes, and of equal numbers data come first.
pub fn sort(x: Input<'_>, sorted: &Tile, to: &Shape) -> Lanes {
    if x.lanes.form().is_none() {
        return Lanes::flagged(x.lanes.class, x.lanes.source());
    }
    let (classes, values) = (x.lanes.bytes(&x.shape), x.tile.dense(x.ty, &x.shape));
    let sorted = sorted.dense(x.ty, to);
    let (n, k, size) = (x.shape.dim(x.shape.rank() - 1), to.dim(to.rank() - 1), x.ty.size());
    let mut slab = Slab::new(to.numel());
    let out = slice_mut(&mut slab, to.numel());
    for (row, out) in out.chunks_mut(k).enumerate() {
        // SAFETY: a lane of a tile.
        let image = |d: &Dense, i: usize| unsafe { read_image(d.at(size).add(i * size), size) };
        let mut lanes: Vec<(u64, u8)> = (row * n..(row + 1) * n)
            .map(|i| (image(&values, i), slice(&classes, &x.shape)[i]))
            .collect();
        // The greatest class of each number is taken last.
        lanes.sort_by(|a, b| b.cmp(a));
        for (i, o) in out.iter_mut().enumerate() {
            let wanted = image(&sorted, row * k + i);
            let end = lanes.partition_point(|l| l.0 >= wanted);
            let found = end.checked_sub(1).filter(|&at| lanes[at].0 == wanted);
            *o = found.map_or(Class::V as u8, |at| lanes.remove(at).1);
        }
    }
    Lanes::each(Dense::new(slab), to, x.lanes.source())
}

/// `histogram`: every lane that is counted and is not data changes a count.
pub fn histogram(
    x: Input<'_>,
    mask: Option<&Tile>,
    result: (&Reg, Shape),
    again: impl Fn(&Tile) -> Tile,
) -> Point {
    let (result, bins) = result;
    if !x.lanes.class.is_flagged() {
        return Point::quiet(smallvec![Lanes::all(x.lanes.class)]);
    }
    if x.lanes.form().is_none() {
        return Point::quiet(smallvec![Lanes::flagged(x.lanes.class, x.lanes.source())]);
    }
    let data = data_mask(x.lanes, &x.shape);
    if !slice(&data.dense(Scalar::I1, &x.shape), &x.shape).contains(&1) {
        return Point::quiet(smallvec![Lanes::flagged(x.lanes.class, x.lanes.source())]);
    }
    let live = match mask {
        Some(mask) => choose(mask, &data, &Tile::Uniform(0), Scalar::I1, &x.shape),
        None => data,
    };
    let counts = again(&live);
    let changed = differs(&result.tile, &counts, Scalar::I32, &bins, &Tile::Uniform(1));
    let (flagged, example) = outside_lanes(x);
    let suspect = changed.then(|| Suspect {
        class: x.lanes.class,
        source: x.lanes.source(),
        flagged,
        lanes: x.shape.numel(),
        example,
        classes: x.lanes.clone(),
        ty: x.ty,
        shape: x.shape,
        changed,
        live: smallvec![Reg { tile: counts, origin: result.origin }],
    });
    Point { lanes: smallvec![Lanes::all(Class::V)], suspect }
}
