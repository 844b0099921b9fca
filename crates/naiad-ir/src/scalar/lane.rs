//! The types that functions are computed in.

use crate::math::{FloatOps, HostF32, HostF64};
use crate::types::Scalar;

/// A machine type that functions are computed in.
pub trait Lane: Copy + Default + PartialEq + Send + Sync + 'static {
    /// The type of the language that this is.
    const SCALAR: Scalar;

    /// From a bit image; bits beyond the width are ignored.
    fn from_image(image: u64) -> Self;
    /// The bit image, zero-extended.
    fn image(self) -> u64;
    /// From the bytes of an element in memory; 0 if there are too few.
    fn read(bytes: &[u8]) -> Self;
    /// Into the bytes of an element in memory; nothing if there are too few.
    fn write(self, bytes: &mut [u8]);
}

/// A lane that holds a float.
pub trait FloatLane: Lane {
    /// Its operations.
    type Host: FloatOps<F = Self, M = bool> + Default;
    /// Whether this is `f64`: a constant, so that loops for the other are not even compiled.
    const IS_DOUBLE: bool;
}

/// A function of lanes that a loop is instantiated with.
///
/// This is a trait of ours, not `Fn`, because only a method of a named type can be `inline(always)`
/// on stable Rust, and a loop body that is not inlined is neither vectorized nor compiled with the
/// target features of the loop.
pub trait Lanewise<In, Out>: Copy + Send + Sync + 'static {
    fn at(self, input: In) -> Out;
}

macro_rules! int_lanes {
    ($( $t:ident as $unsigned:ident is $scalar:ident; )*) => { $(
        impl Lane for $t {
            const SCALAR: Scalar = Scalar::$scalar;

            #[inline(always)]
            fn from_image(image: u64) -> $t {
                image as $t
            }

            #[inline(always)]
            fn image(self) -> u64 {
                u64::from(self as $unsigned)
            }

            #[inline(always)]
            fn read(bytes: &[u8]) -> $t {
                bytes.first_chunk().map_or(0, |b| $t::from_ne_bytes(*b))
            }

            #[inline(always)]
            fn write(self, bytes: &mut [u8]) {
                if let Some(b) = bytes.first_chunk_mut() {
                    *b = self.to_ne_bytes();
                }
            }
        }
    )* };
}

int_lanes! {
    i8 as u8 is I8;
    i16 as u16 is I16;
    i32 as u32 is I32;
    i64 as u64 is I64;
    u8 as u8 is U8;
    u16 as u16 is U16;
    u32 as u32 is U32;
    u64 as u64 is U64;
}

impl Lane for bool {
    const SCALAR: Scalar = Scalar::I1;

    #[inline(always)]
    fn from_image(image: u64) -> bool {
        image & 1 != 0
    }

    #[inline(always)]
    fn image(self) -> u64 {
        u64::from(self)
    }

    #[inline(always)]
    fn read(bytes: &[u8]) -> bool {
        u8::read(bytes) != 0
    }

    #[inline(always)]
    fn write(self, bytes: &mut [u8]) {
        u8::from(self).write(bytes);
    }
}

impl Lane for f32 {
    const SCALAR: Scalar = Scalar::F32;

    #[inline(always)]
    fn from_image(image: u64) -> f32 {
        f32::from_bits(image as u32)
    }

    #[inline(always)]
    fn image(self) -> u64 {
        u64::from(self.to_bits())
    }

    #[inline(always)]
    fn read(bytes: &[u8]) -> f32 {
        bytes.first_chunk().map_or(0.0, |b| f32::from_ne_bytes(*b))
    }

    #[inline(always)]
    fn write(self, bytes: &mut [u8]) {
        if let Some(b) = bytes.first_chunk_mut() {
            *b = self.to_ne_bytes();
        }
    }
}

impl FloatLane for f32 {
    type Host = HostF32;
    const IS_DOUBLE: bool = false;
}

impl Lane for f64 {
    const SCALAR: Scalar = Scalar::F64;

    #[inline(always)]
    fn from_image(image: u64) -> f64 {
        f64::from_bits(image)
    }

    #[inline(always)]
    fn image(self) -> u64 {
        self.to_bits()
    }

    #[inline(always)]
    fn read(bytes: &[u8]) -> f64 {
        bytes.first_chunk().map_or(0.0, |b| f64::from_ne_bytes(*b))
    }

    #[inline(always)]
    fn write(self, bytes: &mut [u8]) {
        if let Some(b) = bytes.first_chunk_mut() {
            *b = self.to_ne_bytes();
        }
    }
}

impl FloatLane for f64 {
    type Host = HostF64;
    const IS_DOUBLE: bool = true;
}
