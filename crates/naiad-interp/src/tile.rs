//! The forms in which a tile is kept.
//!
//! | form | lanes | comes from |
//! |---|---|---|
//! | `Uniform` | one bit image for all | scalars, splats, masks that are all or none |
//! | `Affine` | `base + sum(index[d] * steps[d])` | ranges, index arithmetic, addresses |
//! | `Rect` | true inside one box (masks only) | comparisons of affine tiles, conjunctions |
//! | `Dense` | elements in a slab, with strides | everything else |
//!
//! An affine tile's numbers are exact: no lane has wrapped in the tile's type. Where one would, the
//! tile is dense. That is what lets an access be judged by the corners of a box. A dense tile may be a
//! view (broadcast, permuted, split) of another's slab.
//!
//! A tile does not know its element type and shape: they are the value's, known before it runs.
//! Pointers are tiles of their addresses, as `i64`.

use crate::slab::Slab;
use crate::strided::{self, Dim, Dims};
use naiad_ir::{Elem, Scalar, Shape};
use smallvec::SmallVec;

pub type Steps = SmallVec<[i64; 3]>;

/// Lanes as a formula.
#[derive(Clone, Debug, PartialEq)]
pub struct Affine {
    pub base: i64,
    /// For each axis; 0 on axes of one element.
    pub steps: Steps,
}

/// The box inside which a mask is true: `lo..hi` for each axis, nowhere empty.
pub type Rect = SmallVec<[(u32, u32); 3]>;

/// Elements in a slab.
#[derive(Clone)]
pub struct Dense {
    pub slab: Slab,
    /// Where the first lane lies, in elements.
    pub offset: u32,
    /// Elements between neighbours along each axis; none where the lanes are in row-major order.
    pub strides: Option<SmallVec<[i32; 4]>>,
}

#[derive(Clone)]
pub enum Tile {
    /// The bit image of every lane, zero-extended.
    Uniform(u64),
    Affine(Affine),
    Rect(Rect),
    Dense(Dense),
}

/// The type that a tile's elements are kept in: addresses are integers.
pub fn stored(elem: Elem) -> Scalar {
    elem.scalar().unwrap_or(Scalar::I64)
}

/// The number that an image of an integer type stands for.
pub fn number(ty: Scalar, image: u64) -> i128 {
    if ty.is_signed() {
        let unused = 64 - ty.bits();
        i128::from((image << unused) as i64 >> unused)
    } else {
        i128::from(image)
    }
}

impl Affine {
    /// The formula of an integer tile, if it has one.
    pub fn of(tile: &Tile, ty: Scalar, shape: &Shape) -> Option<Affine> {
        match tile {
            Tile::Uniform(image) => {
                let base = i64::try_from(number(ty, *image)).ok()?;
                Some(Affine { base, steps: SmallVec::from_elem(0, shape.rank()) })
            }
            Tile::Affine(a) => Some(a.clone()),
            Tile::Rect(_) | Tile::Dense(_) => None,
        }
    }

    /// The least and the greatest lane.
    pub fn range(&self, shape: &Shape) -> (i128, i128) {
        let (mut lo, mut hi) = (i128::from(self.base), i128::from(self.base));
        for (&step, dim) in self.steps.iter().zip(shape.dims()) {
            let far = i128::from(step) * (dim as i128 - 1);
            lo += far.min(0);
            hi += far.max(0);
        }
        (lo, hi)
    }

    pub fn is_constant(&self) -> bool {
        self.steps.iter().all(|&s| s == 0)
    }

    /// A tile of integers of type `ty`; none where a lane does not fit the type.
    pub fn tile(self, ty: Scalar, shape: &Shape) -> Option<Tile> {
        let (lo, hi) = self.range(shape);
        // Lanes are kept in 64 signed bits, so large unsigned ones are dense.
        let most = ty.int_max().min(i128::from(i64::MAX));
        if lo < ty.int_min() || hi > most {
            return None;
        }
        Some(if self.is_constant() {
            Tile::Uniform(self.base as u64 & ty.mask())
        } else {
            Tile::Affine(self)
        })
    }
}

/// A mask that is true in a box; `None` and `All` come out uniform.
pub fn rect(rect: Rect, shape: &Shape) -> Tile {
    if rect.iter().any(|&(lo, hi)| lo >= hi) {
        return Tile::Uniform(0);
    }
    if rect.iter().zip(shape.dims()).all(|(&(lo, hi), n)| lo == 0 && hi as usize == n) {
        return Tile::Uniform(1);
    }
    Tile::Rect(rect)
}

impl Dense {
    pub fn new(slab: Slab) -> Dense {
        Dense { slab, offset: 0, strides: None }
    }

    pub fn strides(&self, shape: &Shape) -> SmallVec<[i32; 4]> {
        match &self.strides {
            Some(strides) => strides.clone(),
            None => shape.strides().map(|s| s as i32).collect(),
        }
    }

    /// A view of the same slab; strides that are those of row-major order are forgotten.
    pub fn view(&self, offset: u32, strides: SmallVec<[i32; 4]>, shape: &Shape) -> Dense {
        let plain = strides
            .iter()
            .zip(shape.strides())
            .zip(shape.dims())
            .all(|((&s, r), n)| n == 1 || s as usize == r);
        Dense { slab: self.slab.clone(), offset, strides: (!plain).then_some(strides) }
    }

    /// The lanes of a row-major tile in a slab of their own.
    pub fn copied(&self, size: usize, shape: &Shape) -> Dense {
        let slab = Slab::new(shape.numel() * size);
        // SAFETY: both have all lanes.
        unsafe {
            std::ptr::copy_nonoverlapping(self.at(size), slab.as_mut_ptr(), shape.numel() * size)
        };
        Dense::new(slab)
    }

    pub fn at(&self, size: usize) -> *const u8 {
        // SAFETY: a tile's lanes lie in its slab.
        unsafe { self.slab.as_ptr().add(self.offset as usize * size) }
    }

    /// The same lanes in row-major order.
    pub fn row_major(&self, size: usize, shape: &Shape) -> Dense {
        let Some(strides) = &self.strides else { return self.clone() };
        let slab = Slab::new(shape.numel() * size);
        let dims: Dims = shape
            .dims()
            .zip(shape.strides())
            .zip(strides)
            .map(|((n, dst), &src)| Dim {
                n,
                dst: (dst * size) as isize,
                src: src as isize * size as isize,
            })
            .collect();
        // SAFETY: the lanes lie in the old slab, and the new one has room for all.
        unsafe { strided::copy(slab.as_mut_ptr(), self.at(size), &dims, size) };
        Dense::new(slab)
    }
}

impl Tile {
    pub fn bool(value: bool) -> Tile {
        Tile::Uniform(u64::from(value))
    }

    /// The image of a scalar, or of every lane of a uniform tile.
    pub fn uniform(&self) -> Option<u64> {
        match self {
            Tile::Uniform(image) => Some(*image),
            Tile::Affine(_) | Tile::Rect(_) | Tile::Dense(_) => None,
        }
    }

    /// The lanes in row-major order in one slab.
    pub fn dense(&self, ty: Scalar, shape: &Shape) -> Dense {
        if let Tile::Dense(d) = self {
            return d.row_major(ty.size(), shape);
        }
        let slab = Slab::new(shape.numel() * ty.size());
        // SAFETY: the slab has room for all lanes.
        unsafe { self.fill(ty, shape, 0, shape.numel(), slab.as_mut_ptr()) };
        Dense::new(slab)
    }

    /// Writes lanes `start..start + n` of row-major order behind `dst`. Both numbers are of a chunk:
    /// `n` is a power of two and divides `start`, so that the lanes are a box of the tile.
    ///
    /// # Safety
    ///
    /// `dst` is aligned for the type and has room for `n` lanes.
    pub unsafe fn fill(&self, ty: Scalar, shape: &Shape, start: usize, n: usize, dst: *mut u8) {
        let size = ty.size();
        // SAFETY: each arm writes `n` lanes.
        unsafe {
            match self {
                Tile::Uniform(image) => splat(*image, size, n, dst),
                Tile::Affine(a) => rows(shape, start, n, &mut |index, at, len| {
                    let axis = inner_axis(shape);
                    let mut value = a.base;
                    for (&step, &i) in a.steps.iter().zip(index) {
                        value = value.wrapping_add(step.wrapping_mul(i as i64));
                    }
                    let step = if len > 1 { a.steps[axis] } else { 0 };
                    ramp(value, step, size, len, dst.add(at * size));
                }),
                Tile::Rect(r) => rows(shape, start, n, &mut |index, at, len| {
                    let axis = inner_axis(shape);
                    let row = dst.add(at);
                    row.write_bytes(0, len);
                    let outside = |(d, &(lo, hi)): (usize, &(u32, u32))| {
                        d != axis && !(lo as usize..hi as usize).contains(&index[d])
                    };
                    if r.is_empty() || r.iter().enumerate().any(outside) {
                        return;
                    }
                    let first = index[axis];
                    let lo = (r[axis].0 as usize).clamp(first, first + len) - first;
                    let hi = (r[axis].1 as usize).clamp(first, first + len) - first;
                    row.add(lo).write_bytes(1, hi.saturating_sub(lo));
                }),
                Tile::Dense(d) => {
                    let Some(strides) = &d.strides else {
                        let src = d.at(size).add(start * size);
                        std::ptr::copy_nonoverlapping(src, dst, n * size);
                        return;
                    };
                    let mut dims = Dims::new();
                    let mut src = d.at(size);
                    for ((extent, row), &stride) in shape.dims().zip(shape.strides()).zip(strides) {
                        // How much of this axis one chunk covers, and where it begins.
                        let covered = (n / row).clamp(1, extent);
                        let first = start / row % extent;
                        let stride = stride as isize * size as isize;
                        src = src.wrapping_offset(first as isize * stride);
                        dims.push(Dim { n: covered, dst: (row * size) as isize, src: stride });
                    }
                    strided::copy(dst, src, &dims, size);
                }
            }
        }
    }
}

/// The last axis that has more than one element.
fn inner_axis(shape: &Shape) -> usize {
    shape.dims().rposition(|n| n > 1).unwrap_or(0)
}

/// Calls `f` with the index of the first lane, its position in the chunk and the length of each
/// stretch of the chunk along the inner axis.
fn rows(shape: &Shape, start: usize, n: usize, f: &mut dyn FnMut(&[usize], usize, usize)) {
    let dims: SmallVec<[usize; 4]> = shape.dims().collect();
    let Some(extent) = dims.get(inner_axis(shape)) else {
        return f(&[], 0, n);
    };
    let len = n.min(*extent);
    let mut index: SmallVec<[usize; 4]> = SmallVec::from_elem(0, dims.len());
    for at in (0..n).step_by(len) {
        let mut rest = start + at;
        for (i, &extent) in index.iter_mut().zip(&dims).rev() {
            *i = rest % extent;
            rest /= extent;
        }
        f(&index, at, len);
    }
}

unsafe fn splat(image: u64, size: usize, n: usize, dst: *mut u8) {
    // SAFETY: the caller's promise: room for `n` lanes, aligned.
    unsafe {
        match size {
            1 => dst.write_bytes(image as u8, n),
            2 => std::slice::from_raw_parts_mut(dst.cast::<u16>(), n).fill(image as u16),
            4 => std::slice::from_raw_parts_mut(dst.cast::<u32>(), n).fill(image as u32),
            _ => std::slice::from_raw_parts_mut(dst.cast::<u64>(), n).fill(image),
        }
    }
}

unsafe fn ramp(value: i64, step: i64, size: usize, n: usize, dst: *mut u8) {
    macro_rules! of {
        ($t:ty) => {{
            let (value, step) = (value as $t, step as $t);
            // SAFETY: the caller's promise: room for `n` lanes, aligned.
            let out = unsafe { std::slice::from_raw_parts_mut(dst.cast::<$t>(), n) };
            for (i, o) in out.iter_mut().enumerate() {
                *o = value.wrapping_add(step.wrapping_mul(i as $t));
            }
        }};
    }
    match size {
        1 => of!(u8),
        2 => of!(u16),
        4 => of!(u32),
        _ => of!(u64),
    }
}
