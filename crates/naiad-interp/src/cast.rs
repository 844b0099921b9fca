//! Conversions of whole tiles; one element's meaning is `naiad_ir::scalar::cast_bits`.

use crate::slab::{Plain, Slab};
use crate::tile::{Lanes, Tile, with_storage};
use naiad_ir::Scalar;
use naiad_ir::scalar::{Rounding, cast_bits, cast_slice};

pub fn cast(x: &Tile, to: Scalar, rounding: Rounding) -> Tile {
    if x.ty == to {
        return x.clone();
    }
    if let Some(image) = x.as_uniform() {
        return Tile::uniform(to, x.shape, cast_bits(x.ty, to, rounding, image));
    }
    if let (Lanes::Affine { base, steps }, true) = (&x.lanes, to.is_int() && !to.is_bool()) {
        let steps: Vec<i128> = steps.iter().map(|&s| s as i128).collect();
        if let Some(tile) = Tile::affine(to, x.shape, *base as i128, &steps) {
            return tile;
        }
    }
    Tile::dense(to, x.shape, dense(x, to, rounding))
}

/// The same bits as another type of the same width.
pub fn bitcast(x: &Tile, to: Scalar) -> Tile {
    if let Some(image) = x.as_uniform() {
        return Tile::uniform(to, x.shape, image).with_origin(x.origin);
    }
    if let (Lanes::Affine { base, steps }, true) = (&x.lanes, x.ty.is_int() && to.is_int()) {
        let steps: Vec<i128> = steps.iter().map(|&s| s as i128).collect();
        // Addresses and their integers are the same numbers unless the sign bit is in play.
        if let Some(tile) = Tile::affine(to, x.shape, *base as i128, &steps) {
            return tile.with_origin(x.origin);
        }
    }
    // A byte read as i1 must be 0 or 1, and is: i1 has no twin of its width.
    Tile::dense(to, x.shape, x.slab()).with_origin(x.origin)
}

fn dense(x: &Tile, to: Scalar, rounding: Rounding) -> Slab {
    let count = x.numel();
    let source = x.slab();
    let from = with_storage!(x.ty, S => bytes(source.lanes::<S>(count)));
    with_storage!(to, T => Slab::build::<T>(count, |out| {
        // SAFETY: the bytes of `out`, into which values of its type are written.
        let to_bytes = unsafe { std::slice::from_raw_parts_mut(out.as_mut_ptr().cast::<u8>(), size_of_val(out)) };
        cast_slice(x.ty, to, rounding, from, to_bytes);
    }))
}

fn bytes<T: Plain>(lanes: &[T]) -> &[u8] {
    // SAFETY: plain types have no padding.
    unsafe { std::slice::from_raw_parts(lanes.as_ptr().cast::<u8>(), size_of_val(lanes)) }
}
