//! Ops that put lanes elsewhere, or count them, by what is in them: `sort`, `topk`, `gather` and
//! `histogram`.
//!
//! Sorting goes by *keys*: unsigned numbers whose order is that of the values, with one key for zero of
//! either sign and the greatest for every NaN. Equal keys stay in their order, so a result depends on
//! nothing but the source's lanes.

use crate::casts;
use crate::engine::{self, In};
use crate::shapes;
use crate::slab::Slab;
use crate::tile::{Dense, Tile};
use naiad_ir::scalar::{Rounding, cast_bits};
use naiad_ir::{Scalar, Shape};

/// The first lanes of each row along the last axis in sorted order, as many as `to` has.
pub fn sort(src: &Tile, ty: Scalar, from: &Shape, to: &Shape, descending: bool) -> Tile {
    let last = from.rank() - 1;
    let (n, k) = (from.dim(last), to.dim(last));
    match src {
        Tile::Uniform(image) => return Tile::Uniform(*image),
        Tile::Affine(a) => {
            // A formula's rows rise or fall as a whole.
            let sorted = if descending { a.steps[last] <= 0 } else { a.steps[last] >= 0 };
            let row = if sorted { src.clone() } else { shapes::flip(src, from, last) };
            return shapes::prefix(&row, ty, to);
        }
        Tile::Rect(_) | Tile::Dense(_) => {}
    }
    let size = ty.size();
    // A slab of its own: the source's other owners see none of this.
    let dense = src.dense(ty, from);
    let slab =
        if matches!(src, Tile::Dense(_)) { dense.copied(size, from).slab } else { dense.slab };
    let numel = from.numel();
    macro_rules! rows {
        ($t:ty, $key:expr) => {{
            // SAFETY: the slab has all lanes, is aligned and is nobody else's.
            let lanes =
                unsafe { std::slice::from_raw_parts_mut(slab.as_mut_ptr().cast::<$t>(), numel) };
            let (key, mut spare) = ($key, Vec::new());
            // Turned round, keys still leave equal ones in their order.
            let turn = if descending { ty.mask() } else { 0 };
            let key = |x: $t| key(u64::from(x)) ^ turn;
            lanes.chunks_mut(n).for_each(|row| sort_row(row, &mut spare, ty.bits(), key));
        }};
    }
    macro_rules! sized {
        ($key:expr) => {
            match size {
                1 => rows!(u8, $key),
                2 => rows!(u16, $key),
                4 => rows!(u32, $key),
                _ => rows!(u64, $key),
            }
        };
    }
    let sign = 1u64 << (ty.bits() - 1);
    let infinity = match ty {
        Scalar::F64 => 0x7ff0 << 48,
        Scalar::F32 => 0x7f80_0000,
        Scalar::BF16 => 0x7f80,
        _ => 0x7c00,
    };
    if ty.is_fp8() {
        let table = fp8_ranks(ty);
        rows!(u8, |x: u64| table[x as usize]);
    } else if ty.is_float() {
        sized!(|x: u64| float_key(x, infinity, sign));
    } else if ty.is_signed() {
        sized!(|x: u64| x ^ sign);
    } else {
        sized!(|x: u64| x);
    }
    let sorted = Tile::Dense(Dense::new(slab));
    if k == n {
        return sorted;
    }
    let strides = from.strides().map(|s| s as i32).collect();
    let Tile::Dense(whole) = &sorted else { return sorted };
    // A view would keep the rest of each row in memory.
    let part = whole.view(0, strides, to);
    let plain = part.strides.is_none();
    Tile::Dense(if plain { part.copied(size, to) } else { part.row_major(size, to) })
}

/// Rows from this length on are sorted by digits of their keys.
const LONG: usize = 1024;
const DIGIT: u32 = 11;

/// Stable, by keys of so many bits.
fn sort_row<T: Copy + Default>(
    row: &mut [T],
    spare: &mut Vec<T>,
    bits: u32,
    key: impl Fn(T) -> u64,
) {
    if row.len() < LONG {
        return row.sort_by_key(|&x| key(x));
    }
    let passes = bits.div_ceil(DIGIT) as usize;
    let digit = |x: T, pass: usize| (key(x) >> (pass as u32 * DIGIT)) as usize & ((1 << DIGIT) - 1);
    let mut counts = vec![[0u32; 1 << DIGIT]; passes];
    for &x in row.iter() {
        for (pass, counts) in counts.iter_mut().enumerate() {
            counts[digit(x, pass)] += 1;
        }
    }
    spare.clear();
    spare.resize(row.len(), T::default());
    let (mut from, mut to) = (&mut *row, spare.as_mut_slice());
    let mut moved = false;
    for (pass, counts) in counts.iter_mut().enumerate() {
        // Keys that agree in this digit are in order already.
        if counts[digit(from[0], pass)] as usize == from.len() {
            continue;
        }
        let mut start = 0;
        for count in counts.iter_mut() {
            start += std::mem::replace(count, start);
        }
        for &x in from.iter() {
            let place = &mut counts[digit(x, pass)];
            to[*place as usize] = x;
            *place += 1;
        }
        std::mem::swap(&mut from, &mut to);
        moved = !moved;
    }
    if moved {
        to.copy_from_slice(from);
    }
}

/// The keys of all images of an fp8 type: how many images stand for less.
fn fp8_ranks(ty: Scalar) -> [u64; 256] {
    let value: [u64; 256] = std::array::from_fn(|x| {
        let wide = cast_bits(ty, Scalar::F32, Rounding::Nearest, x as u64);
        float_key(wide, 0x7f80_0000, 1 << 31)
    });
    std::array::from_fn(|x| value.iter().filter(|&&v| v < value[x]).count() as u64)
}

/// The key of a float's image; `infinity` and `sign` are those images of its format.
#[inline(always)]
fn float_key(image: u64, infinity: u64, sign: u64) -> u64 {
    let magnitude = image & (sign - 1);
    if magnitude > infinity {
        return sign | (sign - 1);
    }
    if image & sign == 0 { image | sign } else { sign - magnitude }
}

/// Lanes of the source, chosen along `axis` by the lanes of `index`. An index outside the axis takes the
/// nearest lane: what it gives is nobody's promise, but it must be the source's.
pub fn gather(
    src: &Tile,
    ty: Scalar,
    from: &Shape,
    index: In<'_>,
    to: &Shape,
    axis: usize,
    wide: bool,
) -> Tile {
    if let Tile::Uniform(image) = src {
        return Tile::Uniform(*image);
    }
    let size = ty.size();
    let src = src.dense(ty, from);
    let index = integers(index, to, wide);
    let inner: usize = from.dims().skip(axis + 1).product();
    let (n, m) = (from.dim(axis), to.dim(axis));
    let numel = to.numel();
    let slab = Slab::new(numel * size);
    macro_rules! walk {
        ($t:ty) => {{
            // SAFETY: the tiles have all lanes of their shapes and are aligned; the slab is new.
            let (from, index, out) = unsafe {
                (
                    std::slice::from_raw_parts(src.at(size).cast::<$t>(), from.numel()),
                    std::slice::from_raw_parts(index.at(8).cast::<i64>(), numel),
                    std::slice::from_raw_parts_mut(slab.as_mut_ptr().cast::<$t>(), numel),
                )
            };
            let most = n as i64 - 1;
            let blocks = out.chunks_mut(m * inner).zip(index.chunks(m * inner));
            for ((out, index), from) in blocks.zip(from.chunks(n * inner)) {
                if inner == 1 {
                    for (o, &i) in out.iter_mut().zip(index) {
                        *o = from[i.clamp(0, most) as usize];
                    }
                    continue;
                }
                for (out, index) in out.chunks_mut(inner).zip(index.chunks(inner)) {
                    for (at, (o, &i)) in out.iter_mut().zip(index).enumerate() {
                        *o = from[i.clamp(0, most) as usize * inner + at];
                    }
                }
            }
        }};
    }
    match size {
        1 => walk!(u8),
        2 => walk!(u16),
        4 => walk!(u32),
        _ => walk!(u64),
    }
    Tile::Dense(Dense::new(slab))
}

/// How many lanes hold each number below `bins`; where there is a mask, of those where it is true.
pub fn histogram(src: In<'_>, mask: Option<&Tile>, from: &Shape, bins: usize, wide: bool) -> Tile {
    let n = from.numel();
    let slab = Slab::new(bins * 4);
    // SAFETY: the slab is new and has room for the counts.
    let counts = unsafe { std::slice::from_raw_parts_mut(slab.as_mut_ptr().cast::<i32>(), bins) };
    counts.fill(0);
    if mask.and_then(Tile::uniform) == Some(0) {
        return Tile::Dense(Dense::new(slab));
    }
    let numbers = integers(src, from, wide);
    // SAFETY: the tile has all lanes.
    let numbers = unsafe { std::slice::from_raw_parts(numbers.at(8).cast::<i64>(), n) };
    let mut count = |x: i64| {
        if let Some(count) = usize::try_from(x).ok().and_then(|x| counts.get_mut(x)) {
            *count += 1;
        }
    };
    match mask.map(|m| m.dense(Scalar::I1, from)) {
        None => numbers.iter().for_each(|&x| count(x)),
        Some(mask) => {
            // SAFETY: as before; lanes of `i1` are bytes.
            let mask = unsafe { std::slice::from_raw_parts(mask.at(1), n) };
            numbers.iter().zip(mask).filter(|(_, m)| **m != 0).for_each(|(&x, _)| count(x));
        }
    }
    Tile::Dense(Dense::new(slab))
}

/// Lanes of any integer type as i64. Beyond its range they come out negative, which is outside every
/// axis and every histogram as well.
fn integers(x: In<'_>, shape: &Shape, wide: bool) -> Dense {
    let how = casts::cast(x.ty, Scalar::I64, Rounding::Nearest, wide);
    engine::cast(how, x, Scalar::I64, shape).dense(Scalar::I64, shape)
}
