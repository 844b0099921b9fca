//! `reduce` and `scan`.
//!
//! A tile is seen as `outer x n x inner` around its axis. Whatever the function, work is done on many
//! lanes at once:
//!
//! ```text
//!   reduce   halves are combined, log2(n) times:    x[0..n/2] with x[n/2..n], then again
//!   scan     one function: along the axis, on all inner lanes at once, or one row by one loop
//!            any region: log2(n) rounds; in each, the second half of every block is combined with
//!            the last element of the first (Sklansky)
//! ```
//!
//! The order of combination does not depend on the tile's form, so compressed and naive runs agree to
//! the bit. A region with loops in it is evaluated element by element.
//!
//! A launch in the order of machine code scans regions along the axis too. Of a region that is one function a
//! scan has that order anyway, and a reduction's is the compiler's own: nobody else has it.

use crate::casts;
use crate::code::Combine;
use crate::engine::{Buffer, CHUNK, read_image};
use crate::fault::Fault;
use crate::loops::Loop;
use crate::ops::{Env, Reg, Results};
use crate::region::{self, Region};
use crate::shapes;
use crate::slab::Slab;
use crate::strided::{self, Dim, Dims};
use crate::tile::{Dense, Tile};
use naiad_ir::{Block, Scalar, Shape};
use smallvec::{SmallVec, smallvec};

pub struct Job<'a> {
    pub env: Env<'a>,
    pub body: Block,
    /// Of the inputs.
    pub types: SmallVec<[Scalar; 2]>,
    pub shape: Shape,
    pub axis: usize,
}

impl Job<'_> {
    pub fn outer(&self) -> usize {
        self.shape.dims().take(self.axis).product()
    }

    pub fn n(&self) -> usize {
        self.shape.dim(self.axis)
    }

    pub fn inner(&self) -> usize {
        self.shape.dims().skip(self.axis + 1).product()
    }

    /// The inputs seen as `outer x n x inner`.
    pub fn folded(&self, inputs: &[Reg]) -> Results {
        let to = shape_of(&[self.outer(), self.n(), self.inner()]);
        let fold = |(reg, &ty): (&Reg, &Scalar)| Reg {
            tile: shapes::reshape(&reg.tile, ty, &self.shape, &to),
            origin: reg.origin,
        };
        inputs.iter().zip(&self.types).map(fold).collect()
    }

    /// The region on tiles of `shape`.
    pub fn apply(&self, a: &[Reg], b: &[Reg], shape: Shape) -> Result<Results, Fault> {
        let arguments: SmallVec<[Reg; 4]> = a.iter().chain(b).cloned().collect();
        region::evaluate(&Env { lift: Some(shape), ..self.env }, self.body, &arguments)
    }
}

/// A shape with no more elements than some tile's.
pub fn shape_of(dims: &[usize]) -> Shape {
    let dims: SmallVec<[i64; 5]> = dims.iter().map(|&d| d as i64).collect();
    Shape::new(&dims).unwrap_or(Shape::SCALAR)
}

/// A tile of no axes is kept as its image.
pub fn unless_scalar(tile: Tile, ty: Scalar, shape: &Shape) -> Tile {
    match tile {
        tile if !shape.is_scalar() => tile,
        // SAFETY: a tile has at least one lane.
        Tile::Dense(d) => Tile::Uniform(unsafe { read_image(d.at(ty.size()), ty.size()) }),
        Tile::Affine(a) => Tile::Uniform(a.base as u64 & ty.mask()),
        // A box is nowhere empty.
        Tile::Rect(_) => Tile::Uniform(1),
        Tile::Uniform(image) => Tile::Uniform(image),
    }
}

pub fn reduce(job: &Job<'_>, how: Combine, inputs: SmallVec<[Reg; 2]>) -> Result<Results, Fault> {
    let to = job.shape.without(job.axis);
    if let (Combine::Function { f, .. }, [input], &[ty]) =
        (how, inputs.as_slice(), job.types.as_slice())
    {
        let tile = reduce_function(job, f, &input.tile, ty);
        return Ok(smallvec![Reg::from(unless_scalar(tile, ty, &to))]);
    }
    let (outer, mut n, inner) = (job.outer(), job.n(), job.inner());
    let mut parts = job.folded(&inputs);
    drop(inputs);
    if let Combine::Elements = how {
        parts = scan_elements(job, &parts, false)?;
        // The last of each row has everything.
        let whole = shape_of(&[outer, n, inner]);
        let one = shape_of(&[outer, 1, inner]);
        for (part, &ty) in parts.iter_mut().zip(&job.types) {
            part.tile = slice(&part.tile, ty, &whole, &one, n - 1);
        }
        n = 1;
    }
    while n > 1 {
        let (whole, half) = (shape_of(&[outer, n, inner]), shape_of(&[outer, n / 2, inner]));
        let cut = |start: usize| -> Results {
            let piece = |(reg, &ty): (&Reg, &Scalar)| Reg {
                tile: slice(&reg.tile, ty, &whole, &half, start),
                origin: reg.origin,
            };
            parts.iter().zip(&job.types).map(piece).collect()
        };
        let (a, b) = (cut(0), cut(n / 2));
        parts = job.apply(&a, &b, half)?;
        n /= 2;
    }
    let last = shape_of(&[outer, 1, inner]);
    for (part, &ty) in parts.iter_mut().zip(&job.types) {
        let tile = shapes::reshape(&part.tile, ty, &last, &to);
        part.tile = unless_scalar(tile, ty, &to);
    }
    Ok(parts)
}

/// Lanes from `start` on along the middle axis of three.
pub fn slice(tile: &Tile, ty: Scalar, whole: &Shape, part: &Shape, start: usize) -> Tile {
    match tile {
        Tile::Uniform(image) => Tile::Uniform(*image),
        Tile::Affine(a) => {
            let mut a = a.clone();
            // The sum is a lane's number; the product alone may be none.
            a.base = a.base.wrapping_add(a.steps[1].wrapping_mul(start as i64));
            for (d, step) in a.steps.iter_mut().enumerate() {
                if part.dim(d) == 1 {
                    *step = 0;
                }
            }
            if a.is_constant() { Tile::Uniform(a.base as u64 & ty.mask()) } else { Tile::Affine(a) }
        }
        Tile::Rect(_) => {
            let dense = Tile::Dense(tile.dense(ty, whole));
            slice(&dense, ty, whole, part, start)
        }
        Tile::Dense(d) => {
            let strides = d.strides(whole);
            let offset = i64::from(d.offset) + i64::from(strides[1]) * start as i64;
            Tile::Dense(d.view(offset as u32, strides, part))
        }
    }
}

fn reduce_function(job: &Job<'_>, f: Loop, input: &Tile, ty: Scalar) -> Tile {
    let (outer, n, inner) = (job.outer(), job.n(), job.inner());
    let size = ty.size();
    let src = input.dense(ty, &job.shape);
    if n == 1 {
        return Tile::Dense(src);
    }
    let row = inner * size;
    let out = Slab::new(outer * row);
    // Rounds alternate between two places, since a loop's output may not be one of its inputs.
    let (ping, pong) = (Slab::new(n.div_ceil(2) * row), Slab::new(n.div_ceil(4) * row));
    for o in 0..outer {
        // SAFETY: each round reads two halves of the one before and writes one half of its length.
        unsafe {
            let mut from = src.at(size).add(o * n * row);
            let (mut to, mut next) = (ping.as_mut_ptr(), pong.as_mut_ptr());
            let mut len = n / 2;
            while len > 0 {
                let target = if len == 1 { out.as_mut_ptr().add(o * row) } else { to };
                apply(f, ty, from, from.add(len * row), target, len * inner);
                from = target;
                std::mem::swap(&mut to, &mut next);
                len /= 2;
            }
        }
    }
    Tile::Dense(Dense::new(out))
}

/// One function on contiguous lanes of its type.
unsafe fn apply(f: Loop, ty: Scalar, a: *const u8, b: *const u8, out: *mut u8, n: usize) {
    // SAFETY: the caller's promise: `n` lanes each; the output is no input.
    unsafe {
        if !casts::is_narrow(ty) {
            return f([a, b, a], out, n);
        }
        let (mut x, mut y, mut z) = (Buffer::new(), Buffer::new(), Buffer::new());
        let size = ty.size();
        for start in (0..n).step_by(CHUNK) {
            let len = CHUNK.min(n - start);
            casts::widen(ty, a.add(start * size), x.as_mut_ptr().cast(), len);
            casts::widen(ty, b.add(start * size), y.as_mut_ptr().cast(), len);
            f([x.as_mut_ptr(), y.as_mut_ptr(), x.as_mut_ptr()], z.as_mut_ptr(), len);
            casts::narrow(ty, z.as_mut_ptr().cast(), out.add(start * size), len);
        }
    }
}

pub fn scan(
    job: &Job<'_>,
    how: Combine,
    inputs: SmallVec<[Reg; 2]>,
    reverse: bool,
) -> Result<Results, Fault> {
    if let (Combine::Function { f, row }, [input], &[ty]) =
        (how, inputs.as_slice(), job.types.as_slice())
    {
        return Ok(smallvec![Reg::from(scan_function(job, f, row, &input.tile, ty, reverse))]);
    }
    let parts = job.folded(&inputs);
    drop(inputs);
    let mut parts = match how {
        Combine::Elements => scan_elements(job, &parts, reverse)?,
        _ if job.env.in_order.is_some() => scan_in_order(job, parts, reverse)?,
        Combine::Function { .. } | Combine::Tiles => scan_tiles(job, parts, reverse)?,
    };
    let folded = shape_of(&[job.outer(), job.n(), job.inner()]);
    for (part, &ty) in parts.iter_mut().zip(&job.types) {
        part.tile = shapes::reshape(&part.tile, ty, &folded, &job.shape);
    }
    Ok(parts)
}

fn scan_function(
    job: &Job<'_>,
    f: Loop,
    along: Loop,
    input: &Tile,
    ty: Scalar,
    reverse: bool,
) -> Tile {
    let (outer, n, inner) = (job.outer(), job.n(), job.inner());
    let size = ty.size();
    let src = input.dense(ty, &job.shape);
    let out = Slab::new(job.shape.numel() * size);
    let row = inner * size;
    for o in 0..outer {
        // SAFETY: both have all lanes; a row is combined into the next, which is another.
        unsafe {
            let from = src.at(size).add(o * n * row);
            let to = out.as_mut_ptr().add(o * n * row);
            if inner == 1 && !casts::is_narrow(ty) {
                along([from; 3], to, n);
                continue;
            }
            let at = |i: usize| if reverse { n - 1 - i } else { i } * row;
            std::ptr::copy_nonoverlapping(from.add(at(0)), to.add(at(0)), row);
            for i in 1..n {
                apply(f, ty, to.add(at(i - 1)), from.add(at(i)), to.add(at(i)), inner);
            }
        }
    }
    Tile::Dense(Dense::new(out))
}

/// Rounds over blocks that double: every element of a block's later half is combined with the last
/// of its earlier half. Reversed, earlier and later change places.
fn scan_tiles(job: &Job<'_>, parts: Results, reverse: bool) -> Result<Results, Fault> {
    let (outer, n, inner) = (job.outer(), job.n(), job.inner());
    let folded = shape_of(&[outer, n, inner]);
    // Slabs that are written in place, and are nobody else's.
    let slabs: SmallVec<[Slab; 2]> = parts
        .iter()
        .zip(&job.types)
        .map(|(reg, &ty)| reg.tile.dense(ty, &folded).copied(ty.size(), &folded).slab)
        .collect();
    let mut half = 1;
    while half < n {
        let blocks = n / (2 * half);
        let lanes = shape_of(&[outer, blocks, half, inner]);
        let block = (2 * half * inner) as i32;
        let strides = |along: i32| smallvec![(n * inner) as i32, block, along, 1];
        let (last, later) =
            if reverse { (half * inner, 0) } else { ((half - 1) * inner, half * inner) };
        let view = |offset: usize, along: i32| -> Results {
            let piece = |(slab, reg): (&Slab, &Reg)| Reg {
                tile: Tile::Dense(Dense::new(slab.clone()).view(
                    offset as u32,
                    strides(along),
                    &lanes,
                )),
                origin: reg.origin,
            };
            slabs.iter().zip(&parts).map(piece).collect()
        };
        let combined = job.apply(&view(last, 0), &view(later, inner as i32), lanes)?;
        // A region may give back its operands, in any order: all results are out of the slabs before
        // any of those is written.
        let results: SmallVec<[Dense; 2]> = combined
            .iter()
            .zip(&job.types)
            .map(|(reg, &ty)| {
                let dense = reg.tile.dense(ty, &lanes);
                let shared = slabs.iter().any(|s| s.same(&dense.slab));
                if shared { dense.copied(ty.size(), &lanes) } else { dense }
            })
            .collect();
        for ((slab, src), &ty) in slabs.iter().zip(&results).zip(&job.types) {
            let size = ty.size();
            let run = half * inner * size;
            let dims: Dims = smallvec![
                Dim { n: outer * blocks, dst: 2 * run as isize, src: run as isize },
                Dim { n: run, dst: 1, src: 1 },
            ];
            // SAFETY: the later halves of all blocks, which the results are as many as.
            unsafe { strided::copy(slab.as_mut_ptr().add(later * size), src.at(size), &dims, 1) };
        }
        half *= 2;
    }
    let done =
        |(slab, reg): (Slab, Reg)| Reg { tile: Tile::Dense(Dense::new(slab)), origin: reg.origin };
    Ok(slabs.into_iter().zip(parts).map(done).collect())
}

/// One element of the axis after the other, on all lanes beside it at once.
fn scan_in_order(job: &Job<'_>, parts: Results, reverse: bool) -> Result<Results, Fault> {
    let (outer, n, inner) = (job.outer(), job.n(), job.inner());
    let (whole, one) = (shape_of(&[outer, n, inner]), shape_of(&[outer, 1, inner]));
    let slabs: SmallVec<[Slab; 2]> =
        job.types.iter().map(|ty| Slab::new(whole.numel() * ty.size())).collect();
    let cut = |i: usize| -> Results {
        let piece = |(reg, &ty): (&Reg, &Scalar)| Reg {
            tile: slice(&reg.tile, ty, &whole, &one, i),
            origin: reg.origin,
        };
        parts.iter().zip(&job.types).map(piece).collect()
    };
    let env = Env { lift: Some(one), ..job.env };
    let mut region = Region::new(&env);
    let mut sum: Option<Results> = None;
    for i in (0..n).map(|i| if reverse { n - 1 - i } else { i }) {
        let next = cut(i);
        let combined = match sum {
            None => next,
            Some(sum) => {
                let arguments: SmallVec<[Reg; 4]> = sum.into_iter().chain(next).collect();
                region.call(job.body, &arguments)?
            }
        };
        for ((slab, reg), &ty) in slabs.iter().zip(&combined).zip(&job.types) {
            let (dense, run) = (reg.tile.dense(ty, &one), inner * ty.size());
            let dims: Dims = smallvec![
                Dim { n: outer, dst: (n * run) as isize, src: run as isize },
                Dim { n: run, dst: 1, src: 1 },
            ];
            // SAFETY: this element's lanes, which the result are as many as.
            unsafe { strided::copy(slab.as_mut_ptr().add(i * run), dense.at(ty.size()), &dims, 1) };
        }
        sum = Some(combined);
    }
    let done =
        |(slab, reg): (Slab, &Reg)| Reg { tile: Tile::Dense(Dense::new(slab)), origin: reg.origin };
    Ok(slabs.into_iter().zip(&parts).map(done).collect())
}

/// One element after the other, in order.
fn scan_elements(job: &Job<'_>, parts: &Results, reverse: bool) -> Result<Results, Fault> {
    let (outer, n, inner) = (job.outer(), job.n(), job.inner());
    let folded = shape_of(&[outer, n, inner]);
    let sources: SmallVec<[Dense; 2]> =
        parts.iter().zip(&job.types).map(|(reg, &ty)| reg.tile.dense(ty, &folded)).collect();
    let slabs: SmallVec<[Slab; 2]> =
        job.types.iter().map(|ty| Slab::new(folded.numel() * ty.size())).collect();
    let read = |at: usize| -> Results {
        let image = |((d, &ty), reg): ((&Dense, &Scalar), &Reg)| Reg {
            // SAFETY: a lane of the tile.
            tile: Tile::Uniform(unsafe {
                read_image(d.at(ty.size()).add(at * ty.size()), ty.size())
            }),
            origin: reg.origin,
        };
        sources.iter().zip(&job.types).zip(parts).map(image).collect()
    };
    let mut region = Region::new(&job.env);
    for row in 0..outer * inner {
        let start = row / inner * n * inner + row % inner;
        let mut sum: Option<Results> = None;
        for i in 0..n {
            let at = start + if reverse { n - 1 - i } else { i } * inner;
            let next = read(at);
            let combined = match &sum {
                None => next,
                Some(sum) => {
                    let arguments: SmallVec<[Reg; 4]> = sum.iter().chain(&next).cloned().collect();
                    region.call(job.body, &arguments)?
                }
            };
            for ((slab, reg), &ty) in slabs.iter().zip(&combined).zip(&job.types) {
                // SAFETY: a lane of the result.
                unsafe {
                    reg.tile.fill(ty, &Shape::SCALAR, 0, 1, slab.as_mut_ptr().add(at * ty.size()))
                };
            }
            sum = Some(combined);
        }
    }
    let done =
        |(slab, reg): (Slab, &Reg)| Reg { tile: Tile::Dense(Dense::new(slab)), origin: reg.origin };
    Ok(slabs.into_iter().zip(parts).map(done).collect())
}
