//! The values of a running program.
//!
//! A tile is kept in the shortest form that its origin allows:
//!
//! | form | lanes | comes from |
//! |---|---|---|
//! | `Uniform` | all equal | scalars, splats |
//! | `Affine` | `base + sum(i[d] * steps[d])`, exact: no lane wraps | `arange`, sums, products with uniforms |
//! | `Rect` | of i1: true in a box | comparison of an affine tile along one axis, conjunctions |
//! | `Dense` | stored one by one | everything else |
//!
//! An operation that has no rule for the forms of its operands works on dense ones, so the forms are
//! an economy and never change a result. The naive mode knows dense tiles only, and is compared.
//!
//! Pointers are 64-bit addresses, with the argument that they came from.

use crate::slab::{Plain, Slab};
use naiad_ir::{Elem, Scalar, Shape};
use smallvec::SmallVec;

/// A number for each axis.
pub type Steps = SmallVec<[i64; 4]>;

/// Lanes `lo..hi` along each axis.
pub type Box_ = SmallVec<[(u32, u32); 4]>;

#[derive(Clone)]
pub enum Lanes {
    /// The image of every lane.
    Uniform(u64),
    Affine { base: i64, steps: Steps },
    Rect(Box_),
    Dense(Slab),
}

/// Where a pointer came from.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Origin {
    /// The argument of this number: its storage is what the pointer may reach.
    Arg(u32),
    /// An integer, or different arguments: the address itself tells the argument.
    Address,
}

#[derive(Clone)]
pub struct Tile {
    /// The element; of pointers the type of their address.
    pub ty: Scalar,
    pub shape: Shape,
    pub lanes: Lanes,
    /// Of pointers.
    pub origin: Origin,
}

/// The type that an element is stored as: pointers are addresses.
pub fn stored(elem: Elem) -> Scalar {
    elem.scalar().unwrap_or(Scalar::I64)
}

/// Calls `$body` with `$T` set to the machine type that stores elements of `$ty`.
macro_rules! with_storage {
    ($ty:expr, $T:ident => $body:expr) => {
        match $ty {
            Scalar::I1 => { type $T = bool; $body }
            Scalar::I8 => { type $T = i8; $body }
            Scalar::I16 => { type $T = i16; $body }
            Scalar::I32 => { type $T = i32; $body }
            Scalar::I64 => { type $T = i64; $body }
            Scalar::U8 | Scalar::F8E5 | Scalar::F8E4NV | Scalar::F8E4B15 | Scalar::F8E5B16 | Scalar::F8E4B8 => { type $T = u8; $body }
            Scalar::U16 | Scalar::F16 | Scalar::BF16 => { type $T = u16; $body }
            Scalar::U32 => { type $T = u32; $body }
            Scalar::U64 => { type $T = u64; $body }
            Scalar::F32 => { type $T = f32; $body }
            Scalar::F64 => { type $T = f64; $body }
        }
    };
}
pub(crate) use with_storage;

/// Calls `$body` with `$T` set to the unsigned type as wide as elements of `$ty`.
macro_rules! with_width {
    ($ty:expr, $T:ident => $body:expr) => {
        match $ty.size() {
            1 => { type $T = u8; $body }
            2 => { type $T = u16; $body }
            4 => { type $T = u32; $body }
            _ => { type $T = u64; $body }
        }
    };
}
pub(crate) use with_width;

/// Conversion between a stored element and its image.
pub trait Image: Plain {
    fn of(image: u64) -> Self;
    fn image(self) -> u64;
}

macro_rules! images {
    ($($t:ty, $x:ident => $of:expr, $self_:ident => $image:expr;)*) => { $(
        impl Image for $t {
            #[inline(always)]
            fn of($x: u64) -> $t { $of }
            #[inline(always)]
            fn image(self) -> u64 { let $self_ = self; $image }
        }
    )* };
}
images! {
    bool, x => x & 1 != 0, s => s as u64;
    i8, x => x as i8, s => s as u8 as u64;
    i16, x => x as i16, s => s as u16 as u64;
    i32, x => x as i32, s => s as u32 as u64;
    i64, x => x as i64, s => s as u64;
    u8, x => x as u8, s => s as u64;
    u16, x => x as u16, s => s as u64;
    u32, x => x as u32, s => s as u64;
    u64, x => x, s => s;
    f32, x => f32::from_bits(x as u32), s => s.to_bits() as u64;
    f64, x => f64::from_bits(x), s => s.to_bits();
}

/// The number that an image of an integer type stands for.
pub fn int_of(ty: Scalar, image: u64) -> i128 {
    if ty.is_signed() {
        let unused = 64 - ty.bits();
        ((image << unused) as i64 >> unused) as i128
    } else {
        (image & ty.mask()) as i128
    }
}

impl Tile {
    pub fn new(ty: Scalar, shape: Shape, lanes: Lanes) -> Tile {
        Tile { ty, shape, lanes, origin: Origin::Address }
    }

    pub fn uniform(ty: Scalar, shape: Shape, image: u64) -> Tile {
        Tile::new(ty, shape, Lanes::Uniform(image))
    }

    pub fn dense(ty: Scalar, shape: Shape, slab: Slab) -> Tile {
        Tile::new(ty, shape, Lanes::Dense(slab))
    }

    pub fn with_origin(mut self, origin: Origin) -> Tile {
        self.origin = origin;
        self
    }

    pub fn numel(&self) -> usize {
        self.shape.numel()
    }

    /// The image, if all lanes are known to be equal.
    pub fn as_uniform(&self) -> Option<u64> {
        match &self.lanes {
            Lanes::Uniform(image) => Some(*image),
            Lanes::Affine { base, steps } if steps.iter().all(|&s| s == 0) => Some(*base as u64 & self.ty.mask()),
            _ => None,
        }
    }

    /// The tile as exact affine numbers, if it is of integers and in such a form.
    pub fn as_affine(&self) -> Option<(i64, Steps)> {
        match &self.lanes {
            Lanes::Affine { base, steps } => Some((*base, steps.clone())),
            Lanes::Uniform(image) if self.ty.is_int() => {
                let base = i64::try_from(int_of(self.ty, *image)).ok()?;
                Some((base, Steps::from_elem(0, self.shape.rank())))
            }
            _ => None,
        }
    }

    /// An affine tile of type `ty`, if none of its lanes is out of the type's range.
    pub fn affine(ty: Scalar, shape: Shape, base: i128, steps: &[i128]) -> Option<Tile> {
        let (mut low, mut high) = (base, base);
        for (&step, dim) in steps.iter().zip(shape.dims()) {
            let span = step * (dim as i128 - 1);
            low += span.min(0);
            high += span.max(0);
        }
        if low < ty.int_min().max(i64::MIN as i128) || high > ty.int_max().min(i64::MAX as i128) {
            return None;
        }
        let narrow: Option<Steps> = steps.iter().map(|&s| i64::try_from(s).ok()).collect();
        let lanes = Lanes::Affine { base: base as i64, steps: narrow? };
        let tile = Tile::new(ty, shape, lanes);
        Some(match tile.as_uniform() {
            Some(image) => Tile::uniform(ty, shape, image),
            None => tile,
        })
    }

    /// The image of one lane.
    pub fn lane(&self, lane: usize) -> u64 {
        match &self.lanes {
            Lanes::Uniform(image) => *image,
            Lanes::Affine { base, steps } => {
                let mut at = *base;
                let mut rest = lane;
                for (step, dim) in steps.iter().zip(self.shape.dims()).rev() {
                    at = at.wrapping_add(step.wrapping_mul((rest % dim) as i64));
                    rest /= dim;
                }
                at as u64 & self.ty.mask()
            }
            Lanes::Rect(area) => {
                let mut rest = lane;
                let mut inside = true;
                for (&(lo, hi), dim) in area.iter().zip(self.shape.dims()).rev() {
                    let i = (rest % dim) as u32;
                    inside &= lo <= i && i < hi;
                    rest /= dim;
                }
                inside as u64
            }
            Lanes::Dense(slab) => with_storage!(self.ty, T => slab.lanes::<T>(lane + 1)[lane].image()),
        }
    }

    /// The lanes one by one. Sharing, if they are stored so already.
    pub fn slab(&self) -> Slab {
        let count = self.numel();
        match &self.lanes {
            Lanes::Dense(slab) => slab.clone(),
            Lanes::Uniform(image) => with_storage!(self.ty, T => Slab::filled::<T>(count, T::of(*image))),
            Lanes::Affine { base, steps } => {
                with_storage!(self.ty, T => Slab::build::<T>(count, |out| {
                    let inner = steps.last().copied().unwrap_or(0);
                    let width = if self.shape.rank() == 0 { 1 } else { self.shape.dim(self.shape.rank() - 1) };
                    for_rows(self.shape, steps, *base, |row, start| {
                        let mut at = start;
                        for slot in &mut out[row * width..(row + 1) * width] {
                            *slot = T::of(at as u64);
                            at = at.wrapping_add(inner);
                        }
                    });
                }))
            }
            Lanes::Rect(area) => Slab::build::<bool>(count, |out| {
                out.fill(false);
                for_box_rows(self.shape, area, |start, len| out[start..start + len].fill(true));
            }),
        }
    }

    /// The same values, dense.
    pub fn densified(self) -> Tile {
        if self.shape.is_scalar() || matches!(self.lanes, Lanes::Dense(_)) {
            return self;
        }
        let slab = self.slab();
        Tile { lanes: Lanes::Dense(slab), ..self }
    }

    /// The same lanes under another shape of as many, scalars uniform.
    pub fn densified_to(self, shape: Shape) -> Tile {
        if shape.is_scalar() {
            return Tile::uniform(self.ty, shape, self.lane(0));
        }
        let tile = self.densified();
        Tile { shape, ..tile }
    }

    /// Whether two tiles surely hold the same values. May say no of equal ones.
    pub fn same(&self, other: &Tile) -> bool {
        self.shape == other.shape
            && self.ty == other.ty
            && match (self.as_uniform(), other.as_uniform()) {
                (Some(a), Some(b)) => a == b,
                (None, None) => (0..self.numel()).all(|i| self.lane(i) == other.lane(i)),
                _ => false,
            }
    }

    /// The box of lanes where an i1 tile is true, if it is a box.
    pub fn as_box(&self) -> Option<Box_> {
        match &self.lanes {
            Lanes::Uniform(image) if image & 1 != 0 => Some(full_box(self.shape)),
            Lanes::Uniform(_) => Some(self.shape.dims().map(|_| (0, 0)).collect()),
            Lanes::Rect(area) => Some(area.clone()),
            Lanes::Affine { .. } | Lanes::Dense(_) => None,
        }
    }
}

pub fn full_box(shape: Shape) -> Box_ {
    shape.dims().map(|d| (0, d as u32)).collect()
}

pub fn box_is_empty(area: &Box_) -> bool {
    area.iter().any(|&(lo, hi)| lo >= hi)
}

/// Calls `f(row number, value at the row's start)` for each row along the last axis.
fn for_rows(shape: Shape, steps: &[i64], base: i64, mut f: impl FnMut(usize, i64)) {
    let rank = shape.rank();
    if rank <= 1 {
        return f(0, base);
    }
    let outer: SmallVec<[usize; 4]> = shape.dims().take(rank - 1).collect();
    let mut index: SmallVec<[usize; 4]> = SmallVec::from_elem(0, rank - 1);
    let mut at = base;
    for row in 0..outer.iter().product() {
        f(row, at);
        for d in (0..rank - 1).rev() {
            index[d] += 1;
            at = at.wrapping_add(steps[d]);
            if index[d] < outer[d] {
                break;
            }
            at = at.wrapping_sub(steps[d].wrapping_mul(outer[d] as i64));
            index[d] = 0;
        }
    }
}

/// Calls `f(first lane, length)` for each run of a box along the last axis.
pub fn for_box_rows(shape: Shape, area: &Box_, mut f: impl FnMut(usize, usize)) {
    if box_is_empty(area) {
        return;
    }
    let rank = shape.rank();
    let Some(&(lo, hi)) = area.last() else { return f(0, 1) };
    let strides: SmallVec<[usize; 4]> = shape.strides().collect();
    let mut index: SmallVec<[u32; 4]> = area.iter().map(|a| a.0).collect();
    loop {
        let start: usize = (0..rank - 1).map(|d| index[d] as usize * strides[d]).sum();
        f(start + lo as usize, (hi - lo) as usize);
        let mut d = rank - 1;
        loop {
            if d == 0 {
                return;
            }
            d -= 1;
            index[d] += 1;
            if index[d] < area[d].1 {
                break;
            }
            index[d] = area[d].0;
        }
    }
}
