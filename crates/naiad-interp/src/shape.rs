//! Changes of shape. Short forms stay short where the new shape allows; dense lanes are moved.

use crate::slab::Slab;
use crate::tile::{Box_, Lanes, Steps, Tile, with_width};
use naiad_ir::{Scalar, Shape};
use smallvec::SmallVec;

pub fn splat(x: &Tile, shape: Shape) -> Tile {
    Tile::uniform(x.ty, shape, x.lane(0)).with_origin(x.origin)
}

pub fn arange(start: i64, end: i64, shape: Shape) -> Tile {
    match Tile::affine(Scalar::I32, shape, start as i128, &[1]) {
        Some(tile) => tile,
        // Beyond the range of i32 the numbers wrap.
        None => Tile::dense(Scalar::I32, shape, Slab::build::<i32>(shape.numel(), |out| {
            out.iter_mut().zip(start..end).for_each(|(o, i)| *o = i as i32);
        })),
    }
}

fn with_lanes(x: &Tile, shape: Shape, lanes: Lanes) -> Tile {
    Tile { ty: x.ty, shape, lanes, origin: x.origin }
}

/// Moves dense lanes: result lane `i` is the source element at `sum(i[d] * strides[d])`.
fn moved(x: &Tile, shape: Shape, strides: &[usize]) -> Tile {
    let source = x.slab();
    let (from, count) = (x.numel(), shape.numel());
    let slab = with_width!(x.ty, T => {
        let source = source.lanes::<T>(from);
        let fill = |out: &mut [T]| strided(source, strides, shape, out);
        if x.ty.is_bool() {
            // The bytes of bools are bools; built as such, since a slab clears those first.
            Slab::build::<bool>(count, |out| {
                // SAFETY: `bool` and the word of width 1 have one size; only 0 and 1 are copied.
                fill(unsafe { std::slice::from_raw_parts_mut(out.as_mut_ptr().cast::<T>(), count) });
            })
        } else {
            Slab::build::<T>(count, fill)
        }
    });
    with_lanes(x, shape, Lanes::Dense(slab))
}

fn strided<T: Copy>(source: &[T], strides: &[usize], shape: Shape, out: &mut [T]) {
    let rank = shape.rank();
    if rank == 0 {
        out[0] = source[0];
        return;
    }
    let dims: SmallVec<[usize; 4]> = shape.dims().collect();
    let (width, inner) = (dims[rank - 1], strides[rank - 1]);
    let mut index: SmallVec<[usize; 4]> = SmallVec::from_elem(0, rank - 1);
    let mut at = 0usize;
    for row in out.chunks_exact_mut(width) {
        match inner {
            0 => row.fill(source[at]),
            1 => row.copy_from_slice(&source[at..at + width]),
            _ => row.iter_mut().zip(source[at..].iter().step_by(inner)).for_each(|(o, &s)| *o = s),
        }
        for d in (0..rank - 1).rev() {
            index[d] += 1;
            at += strides[d];
            if index[d] < dims[d] {
                break;
            }
            at -= strides[d] * dims[d];
            index[d] = 0;
        }
    }
}

pub fn expand_dims(x: &Tile, axis: usize, shape: Shape) -> Tile {
    let lanes = match &x.lanes {
        Lanes::Affine { base, steps } => {
            let mut steps = steps.clone();
            steps.insert(axis, 0);
            Lanes::Affine { base: *base, steps }
        }
        Lanes::Rect(area) => {
            let mut area = area.clone();
            area.insert(axis, (0, 1));
            Lanes::Rect(area)
        }
        other => other.clone(),
    };
    with_lanes(x, shape, lanes)
}

pub fn broadcast(x: &Tile, shape: Shape) -> Tile {
    let grows: SmallVec<[bool; 4]> = x.shape.dims().zip(shape.dims()).map(|(from, to)| from != to).collect();
    match &x.lanes {
        Lanes::Uniform(_) => with_lanes(x, shape, x.lanes.clone()),
        Lanes::Affine { base, steps } => {
            let steps: Steps = steps.iter().zip(&grows).map(|(&s, &g)| if g { 0 } else { s }).collect();
            with_lanes(x, shape, Lanes::Affine { base: *base, steps })
        }
        Lanes::Rect(area) => {
            let area: Box_ = area
                .iter()
                .zip(&grows)
                .zip(shape.dims())
                // An axis of extent 1 is inside or outside as a whole.
                .map(|((&a, &g), d)| if g && a.1 > a.0 { (0, d as u32) } else { a })
                .collect();
            with_lanes(x, shape, Lanes::Rect(area))
        }
        Lanes::Dense(_) => {
            let strides: SmallVec<[usize; 4]> = x.shape.strides().zip(&grows).map(|(s, &g)| if g { 0 } else { s }).collect();
            moved(x, shape, &strides)
        }
    }
}

pub fn permute(x: &Tile, order: &[u32], shape: Shape) -> Tile {
    let order: SmallVec<[usize; 4]> = order.iter().map(|&a| a as usize).collect();
    let lanes = match &x.lanes {
        Lanes::Uniform(_) => x.lanes.clone(),
        Lanes::Affine { base, steps } => {
            Lanes::Affine { base: *base, steps: order.iter().map(|&a| steps[a]).collect() }
        }
        Lanes::Rect(area) => Lanes::Rect(order.iter().map(|&a| area[a]).collect()),
        Lanes::Dense(_) => {
            let own: SmallVec<[usize; 4]> = x.shape.strides().collect();
            let strides: SmallVec<[usize; 4]> = order.iter().map(|&a| own[a]).collect();
            return moved(x, shape, &strides);
        }
    };
    with_lanes(x, shape, lanes)
}

pub fn reshape(x: &Tile, shape: Shape) -> Tile {
    let real = |s: Shape| -> SmallVec<[usize; 4]> { (0..s.rank()).filter(|&d| s.dim(d) > 1).collect() };
    let (from, to) = (real(x.shape), real(shape));
    let same = from.len() == to.len() && from.iter().zip(&to).all(|(&a, &b)| x.shape.dim(a) == shape.dim(b));
    match &x.lanes {
        Lanes::Uniform(_) | Lanes::Dense(_) => with_lanes(x, shape, x.lanes.clone()),
        // Only axes of extent 1 come or go.
        Lanes::Affine { base, steps } if same => {
            let mut new = Steps::from_elem(0, shape.rank());
            from.iter().zip(&to).for_each(|(&a, &b)| new[b] = steps[a]);
            with_lanes(x, shape, Lanes::Affine { base: *base, steps: new })
        }
        Lanes::Rect(area) if same => {
            let mut new: Box_ = SmallVec::from_elem((0, 1), shape.rank());
            from.iter().zip(&to).for_each(|(&a, &b)| new[b] = area[a]);
            // An axis of extent 1 that is outside makes the box empty.
            if area.iter().any(|&(lo, hi)| lo >= hi) {
                return Tile::uniform(x.ty, shape, 0);
            }
            with_lanes(x, shape, Lanes::Rect(new))
        }
        // Lanes that step evenly in row-major order keep doing so.
        Lanes::Affine { base, steps } => match even_step(x.shape, steps) {
            Some(step) => {
                let steps: Steps = shape.strides().map(|s| s as i64 * step).collect();
                with_lanes(x, shape, Lanes::Affine { base: *base, steps })
            }
            None => with_lanes(x, shape, Lanes::Dense(x.slab())),
        },
        Lanes::Rect(_) => with_lanes(x, shape, Lanes::Dense(x.slab())),
    }
}

fn even_step(shape: Shape, steps: &Steps) -> Option<i64> {
    let mut step = None;
    for ((&s, stride), d) in steps.iter().zip(shape.strides()).zip(shape.dims()) {
        if d == 1 {
            continue;
        }
        let unit = s / stride as i64;
        if unit * stride as i64 != s || step.is_some_and(|u| u != unit) {
            return None;
        }
        step = Some(unit);
    }
    step.or(Some(0))
}

/// Two tiles in a new last axis.
pub fn join(a: &Tile, b: &Tile, shape: Shape) -> Tile {
    let origin = if a.origin == b.origin { a.origin } else { crate::tile::Origin::Address };
    let count = a.numel();
    let (x, y) = (a.slab(), b.slab());
    let slab = crate::tile::with_storage!(a.ty, T => {
        let (x, y) = (x.lanes::<T>(count), y.lanes::<T>(count));
        Slab::build::<T>(2 * count, |out| {
            for ((pair, &x), &y) in out.chunks_exact_mut(2).zip(x).zip(y) {
                pair[0] = x;
                pair[1] = y;
            }
        })
    });
    Tile::dense(a.ty, shape, slab).with_origin(origin)
}

/// One half of a tile along its last axis of extent 2.
pub fn half(x: &Tile, which: usize, shape: Shape) -> Tile {
    let count = shape.numel();
    let source = x.slab();
    let slab = crate::tile::with_storage!(x.ty, T => {
        let source = source.lanes::<T>(2 * count);
        Slab::build::<T>(count, |out| {
            out.iter_mut().zip(source[which..].iter().step_by(2)).for_each(|(o, &s)| *o = s);
        })
    });
    let tile = Tile::dense(x.ty, shape, slab).with_origin(x.origin);
    // Scalars are uniform, so that they count as such everywhere.
    if shape.is_scalar() { Tile::uniform(x.ty, shape, tile.lane(0)).with_origin(x.origin) } else { tile }
}

/// `b` behind `a` along an axis.
pub fn cat(a: &Tile, b: &Tile, axis: usize, shape: Shape) -> Tile {
    let origin = if a.origin == b.origin { a.origin } else { crate::tile::Origin::Address };
    let run: usize = a.shape.dims().skip(axis).product();
    let count = a.numel();
    let (x, y) = (a.slab(), b.slab());
    let slab = crate::tile::with_storage!(a.ty, T => {
        let (x, y) = (x.lanes::<T>(count), y.lanes::<T>(count));
        Slab::build::<T>(2 * count, |out| {
            for ((part, x), y) in out.chunks_exact_mut(2 * run).zip(x.chunks_exact(run)).zip(y.chunks_exact(run)) {
                part[..run].copy_from_slice(x);
                part[run..].copy_from_slice(y);
            }
        })
    });
    Tile::dense(a.ty, shape, slab).with_origin(origin)
}
