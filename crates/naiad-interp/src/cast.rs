//! Conversions of whole tiles; one element's meaning is `naiad_ir::scalar::cast_bits`.

use crate::elementwise::{Loop, vectorized};
use crate::slab::Slab;
use crate::tile::{Image, Lanes, Tile, with_storage};
use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};
use naiad_ir::Scalar;
use naiad_ir::scalar::{Rounding, cast_bits};

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
    let from = x.ty;
    let slab = x.slab();
    match (from, to, rounding) {
        (Scalar::F16, Scalar::F32, _) => {
            let lanes: Vec<f16> = slab.lanes::<u16>(count).iter().map(|&b| f16::from_bits(b)).collect();
            return Slab::build::<f32>(count, |out| lanes.convert_to_f32_slice(out));
        }
        (Scalar::F32, Scalar::F16, Rounding::Nearest) => {
            let mut lanes = vec![f16::ZERO; count];
            lanes.convert_from_f32_slice(slab.lanes::<f32>(count));
            return Slab::build::<u16>(count, |out| out.iter_mut().zip(&lanes).for_each(|(o, l)| *o = l.to_bits()));
        }
        (Scalar::BF16, Scalar::F32, _) => {
            let lanes = slab.lanes::<u16>(count);
            return Slab::build::<f32>(count, |out| {
                out.iter_mut().zip(lanes).for_each(|(o, &b)| *o = f32::from_bits(u32::from(b) << 16));
            });
        }
        (Scalar::F32, Scalar::BF16, Rounding::Nearest) => {
            let lanes = slab.lanes::<f32>(count);
            return Slab::build::<u16>(count, |out| {
                out.iter_mut().zip(lanes).for_each(|(o, &l)| *o = bf16::from_f32(l).to_bits());
            });
        }
        _ => {}
    }
    if let Some(slab) = native(&slab, count, from, to) {
        return slab;
    }
    if from.is_fp8() {
        // Few values: convert each once.
        let table: Vec<u64> = (0..256).map(|b| cast_bits(from, to, rounding, b)).collect();
        let lanes = slab.lanes::<u8>(count);
        return with_storage!(to, T => Slab::build::<T>(count, |out| {
            out.iter_mut().zip(lanes).for_each(|(o, &b)| *o = T::of(table[b as usize]));
        }));
    }
    with_storage!(from, S => with_storage!(to, T => {
        let lanes = slab.lanes::<S>(count);
        Slab::build::<T>(count, |out| {
            out.iter_mut().zip(lanes).for_each(|(o, l)| *o = T::of(cast_bits(from, to, rounding, l.image())));
        })
    }))
}

struct As<'a, S, T, F>(&'a [S], &'a mut [T], F);

impl<S: Copy, T, F: Fn(S) -> T> Loop for As<'_, S, T, F> {
    type Out = ();
    #[inline(always)]
    fn run(self) {
        let As(x, out, f) = self;
        for (o, &x) in out.iter_mut().zip(x) {
            *o = f(x);
        }
    }
}

/// Pairs for which Rust's `as` has the language's meaning: all among integers, integers to floats,
/// floats to integers of 32 and 64 bits, and between the wide floats.
fn native(slab: &Slab, count: usize, from: Scalar, to: Scalar) -> Option<Slab> {
    macro_rules! pairs {
        ($($S:ident: $s:ty => [$($T:ident: $t:ty),*];)*) => {
            match (from, to) {
                $($( (Scalar::$S, Scalar::$T) => {
                    let lanes = slab.lanes::<$s>(count);
                    Some(Slab::build::<$t>(count, |out| vectorized(As(lanes, out, |x: $s| x as $t))))
                } )*)*
                _ => None,
            }
        };
    }
    if to == Scalar::I1 && from.is_int() {
        return Some(with_storage!(from, S => {
            let lanes = slab.lanes::<S>(count);
            Slab::build::<bool>(count, |out| vectorized(As(lanes, out, |x: S| x.image() != 0)))
        }));
    }
    if from == Scalar::I1 {
        let lanes = slab.lanes::<bool>(count);
        return match to {
            Scalar::F32 => Some(Slab::build::<f32>(count, |out| vectorized(As(lanes, out, |x: bool| x as u8 as f32)))),
            Scalar::F64 => Some(Slab::build::<f64>(count, |out| vectorized(As(lanes, out, |x: bool| x as u8 as f64)))),
            _ if to.is_int() => Some(with_storage!(to, T => {
                Slab::build::<T>(count, |out| vectorized(As(lanes, out, |x: bool| T::of(x as u64))))
            })),
            _ => None,
        };
    }
    pairs! {
        I8: i8 => [I16: i16, I32: i32, I64: i64, U8: u8, U16: u16, U32: u32, U64: u64, F32: f32, F64: f64];
        I16: i16 => [I8: i8, I32: i32, I64: i64, U8: u8, U16: u16, U32: u32, U64: u64, F32: f32, F64: f64];
        I32: i32 => [I8: i8, I16: i16, I64: i64, U8: u8, U16: u16, U32: u32, U64: u64, F32: f32, F64: f64];
        I64: i64 => [I8: i8, I16: i16, I32: i32, U8: u8, U16: u16, U32: u32, U64: u64, F32: f32, F64: f64];
        U8: u8 => [I8: i8, I16: i16, I32: i32, I64: i64, U16: u16, U32: u32, U64: u64, F32: f32, F64: f64];
        U16: u16 => [I8: i8, I16: i16, I32: i32, I64: i64, U8: u8, U32: u32, U64: u64, F32: f32, F64: f64];
        U32: u32 => [I8: i8, I16: i16, I32: i32, I64: i64, U8: u8, U16: u16, U64: u64, F32: f32, F64: f64];
        U64: u64 => [I8: i8, I16: i16, I32: i32, I64: i64, U8: u8, U16: u16, U32: u32, F32: f32, F64: f64];
        F32: f32 => [I32: i32, I64: i64, U32: u32, U64: u64, F64: f64];
        F64: f64 => [I32: i32, I64: i64, U32: u32, U64: u64];
    }
}
