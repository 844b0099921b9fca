//! Ops that move lanes and change none: they keep the compressed forms and otherwise make views.

use crate::slab::Slab;
use crate::strided::{self, Dim, Dims};
use crate::tile::{Affine, Dense, Rect, Steps, Tile, rect};
use naiad_ir::{Scalar, Shape};
use smallvec::SmallVec;

/// What an op does to each axis of the result: where its steps come from.
#[derive(Copy, Clone)]
enum Axis {
    /// The source's axis.
    From(usize),
    /// A new axis, or one that is repeated: every lane along it is the same.
    Repeat,
}

fn remap(src: &Tile, from: &Shape, to: &Shape, axes: &[Axis]) -> Tile {
    match src {
        Tile::Uniform(image) => Tile::Uniform(*image),
        Tile::Affine(a) => {
            let step = |axis: &Axis| match *axis {
                Axis::From(i) => a.steps[i],
                Axis::Repeat => 0,
            };
            Tile::Affine(Affine { base: a.base, steps: axes.iter().map(step).collect() })
        }
        Tile::Rect(r) => {
            // A repeated axis of one element is true there, or the box would be empty.
            let part = |(d, axis): (usize, &Axis)| match *axis {
                Axis::From(i) => r[i],
                Axis::Repeat => (0, to.dim(d) as u32),
            };
            rect(axes.iter().enumerate().map(part).collect(), to)
        }
        Tile::Dense(d) => {
            let strides = d.strides(from);
            let stride = |axis: &Axis| match *axis {
                Axis::From(i) => strides[i],
                Axis::Repeat => 0,
            };
            Tile::Dense(d.view(d.offset, axes.iter().map(stride).collect(), to))
        }
    }
}

pub fn expand_dims(src: &Tile, from: &Shape, to: &Shape, axis: usize) -> Tile {
    let axes: SmallVec<[Axis; 4]> = (0..to.rank())
        .map(|d| match d.cmp(&axis) {
            std::cmp::Ordering::Less => Axis::From(d),
            std::cmp::Ordering::Equal => Axis::Repeat,
            std::cmp::Ordering::Greater => Axis::From(d - 1),
        })
        .collect();
    remap(src, from, to, &axes)
}

pub fn broadcast(src: &Tile, from: &Shape, to: &Shape) -> Tile {
    let axes: SmallVec<[Axis; 4]> = (0..to.rank())
        .map(|d| if from.dim(d) == to.dim(d) { Axis::From(d) } else { Axis::Repeat })
        .collect();
    remap(src, from, to, &axes)
}

pub fn permute(src: &Tile, from: &Shape, to: &Shape, order: &[u32]) -> Tile {
    let axes: SmallVec<[Axis; 4]> = order.iter().map(|&d| Axis::From(d as usize)).collect();
    remap(src, from, to, &axes)
}

/// The lanes in reverse order along an axis.
pub fn flip(src: &Tile, shape: &Shape, axis: usize) -> Tile {
    let last = shape.dim(axis) as i64 - 1;
    match src {
        Tile::Uniform(image) => Tile::Uniform(*image),
        Tile::Affine(a) => {
            let mut a = a.clone();
            // In range, since the lane is one of the tile's.
            a.base = a.base.wrapping_add(a.steps[axis].wrapping_mul(last));
            a.steps[axis] = a.steps[axis].wrapping_neg();
            Tile::Affine(a)
        }
        Tile::Rect(r) => {
            let mut r = r.clone();
            let (lo, hi) = r[axis];
            r[axis] = (last as u32 + 1 - hi, last as u32 + 1 - lo);
            Tile::Rect(r)
        }
        Tile::Dense(d) => {
            let mut strides = d.strides(shape);
            let offset = i64::from(d.offset) + i64::from(strides[axis]) * last;
            strides[axis] = -strides[axis];
            Tile::Dense(d.view(offset as u32, strides, shape))
        }
    }
}

/// The first lanes along the last axis of a formula, as many as `to` has.
pub fn prefix(src: &Tile, ty: Scalar, to: &Shape) -> Tile {
    let Tile::Affine(a) = src else { return src.clone() };
    let mut a = a.clone();
    if let (Some(step), Some(1)) = (a.steps.last_mut(), to.dims().next_back()) {
        *step = 0;
    }
    if a.is_constant() { Tile::Uniform(a.base as u64 & ty.mask()) } else { Tile::Affine(a) }
}

pub fn reshape(src: &Tile, ty: Scalar, from: &Shape, to: &Shape) -> Tile {
    match src {
        Tile::Uniform(image) => return Tile::Uniform(*image),
        Tile::Affine(a) => {
            if let Some(steps) = reshape_strides(from, &a.steps, to) {
                return Tile::Affine(Affine { base: a.base, steps });
            }
        }
        Tile::Rect(r) => {
            // Only axes of one element come and go, where the box is 0..1.
            let wide = |s: &Shape| -> SmallVec<[usize; 4]> {
                (0..s.rank()).filter(|&d| s.dim(d) > 1).collect()
            };
            let (old, new) = (wide(from), wide(to));
            if old.len() == new.len()
                && old.iter().zip(&new).all(|(&o, &n)| from.dim(o) == to.dim(n))
            {
                let mut parts: Rect = SmallVec::from_elem((0, 1), to.rank());
                for (&o, &n) in old.iter().zip(&new) {
                    parts[n] = r[o];
                }
                return Tile::Rect(parts);
            }
        }
        Tile::Dense(d) => {
            let Some(strides) = &d.strides else { return Tile::Dense(d.clone()) };
            let steps: Steps = strides.iter().map(|&s| i64::from(s)).collect();
            if let Some(steps) = reshape_strides(from, &steps, to) {
                return Tile::Dense(d.view(
                    d.offset,
                    steps.iter().map(|&s| s as i32).collect(),
                    to,
                ));
            }
        }
    }
    Tile::Dense(src.dense(ty, from))
}

/// Strides under another shape, if the same lanes have some there: axes are matched in groups of
/// equal size, and a group must be evenly spaced. The method is NumPy's.
fn reshape_strides(from: &Shape, strides: &[i64], to: &Shape) -> Option<Steps> {
    let old: SmallVec<[(usize, i64); 4]> =
        from.dims().zip(strides.iter().copied()).filter(|&(n, _)| n > 1).collect();
    let new: SmallVec<[usize; 4]> = to.dims().collect();
    let mut out: Steps = SmallVec::from_elem(0, new.len());
    let (mut i, mut j) = (0, 0);
    while i < old.len() {
        // A group: old axes i..i2 and new axes j..j2 with as many lanes.
        let (mut i2, mut j2) = (i + 1, j + 1);
        let (mut a, mut b) = (old[i].0, *new.get(j)?);
        while a != b {
            if a < b {
                a *= old.get(i2)?.0;
                i2 += 1;
            } else {
                b *= *new.get(j2)?;
                j2 += 1;
            }
        }
        let even = old[i..i2].windows(2).all(|w| Some(w[0].1) == w[1].1.checked_mul(w[1].0 as i64));
        if !even {
            return None;
        }
        let mut step = old[i2 - 1].1;
        for d in (j..j2).rev() {
            if new[d] > 1 {
                out[d] = step;
                // Past the group's first axis this is no axis's step, and may be anything.
                step = step.wrapping_mul(new[d] as i64);
            }
        }
        (i, j) = (i2, j2);
    }
    Some(out)
}

pub fn join(a: &Tile, b: &Tile, ty: Scalar, from: &Shape) -> Tile {
    if let (Some(x), Some(y)) = (a.uniform(), b.uniform())
        && x == y
    {
        return Tile::Uniform(x);
    }
    let size = ty.size();
    let numel = from.numel();
    let slab = Slab::new(2 * numel * size);
    for (i, part) in [a, b].into_iter().enumerate() {
        let src = part.dense(ty, from);
        let dim = Dim { n: numel, dst: 2 * size as isize, src: size as isize };
        // SAFETY: every second lane of the slab, which has room for twice as many.
        unsafe { strided::copy(slab.as_mut_ptr().add(i * size), src.at(size), &[dim], size) };
    }
    Tile::Dense(Dense::new(slab))
}

/// The half of a tile whose last axis has two lanes.
pub fn split(src: &Tile, ty: Scalar, from: &Shape, half: usize) -> Tile {
    let last = from.rank() - 1;
    let to = from.without(last);
    match src {
        Tile::Uniform(image) => Tile::Uniform(*image),
        Tile::Affine(a) => {
            let mut a = a.clone();
            let step = a.steps.pop().unwrap_or(0);
            // In range, since the lane is one of the tile's.
            a.base = a.base.wrapping_add(step.wrapping_mul(half as i64));
            if a.is_constant() { Tile::Uniform(a.base as u64 & ty.mask()) } else { Tile::Affine(a) }
        }
        Tile::Rect(r) => {
            let mut r = r.clone();
            let inside = r.pop().is_none_or(|(lo, hi)| (lo as usize..hi as usize).contains(&half));
            if inside { rect(r, &to) } else { Tile::Uniform(0) }
        }
        Tile::Dense(d) => {
            let mut strides = d.strides(from);
            let stride = strides.pop().unwrap_or(0);
            let offset = i64::from(d.offset) + i64::from(stride) * half as i64;
            Tile::Dense(d.view(offset as u32, strides, &to))
        }
    }
}

/// The two tiles after each other along `axis`.
pub fn cat(a: &Tile, b: &Tile, ty: Scalar, from: &Shape, axis: usize) -> Tile {
    if let (Some(x), Some(y)) = (a.uniform(), b.uniform())
        && x == y
    {
        return Tile::Uniform(x);
    }
    let size = ty.size();
    let numel = from.numel();
    let slab = Slab::new(2 * numel * size);
    let run = from.dims().skip(axis).product::<usize>() * size;
    for (i, part) in [a, b].into_iter().enumerate() {
        let src = part.dense(ty, from);
        let dims: Dims = SmallVec::from_slice(&[
            Dim { n: numel * size / run, dst: 2 * run as isize, src: run as isize },
            Dim { n: run, dst: 1, src: 1 },
        ]);
        // SAFETY: the halves of each run of the slab, which has room for twice as many lanes.
        unsafe { strided::copy(slab.as_mut_ptr().add(i * run), src.at(size), &dims, 1) };
    }
    Tile::Dense(Dense::new(slab))
}
