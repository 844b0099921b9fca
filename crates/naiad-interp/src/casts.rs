//! Loops that convert lanes: between compute types, and narrow floats to and from fp32.
//!
//! What a conversion gives stands in [`naiad_ir::scalar::cast_bits`], which judges these loops in
//! tests. A pair of types goes one of two ways:
//!
//! - *by loops*: the source is widened to its compute type, cast, and narrowed. Each of the three
//!   steps is one loop, and at most one of them rounds;
//! - *lane by lane* through `cast_bits`, where two steps would round twice (fp64 or wide integers to
//!   a narrow float) or where the rounding is not to nearest.

use crate::loops::Loop;
use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};
use naiad_ir::Scalar;
use naiad_ir::scalar::{Rounding, cast_bits};
use std::mem::MaybeUninit;
use std::sync::OnceLock;

/// How a pair of types is converted.
#[derive(Copy, Clone)]
pub enum Cast {
    /// The loop goes from the compute type of the source to that of the target.
    Loop(Loop),
    Lanes {
        from: Scalar,
        to: Scalar,
        rounding: Rounding,
    },
}

pub fn cast(from: Scalar, to: Scalar, rounding: Rounding, wide: bool) -> Cast {
    let narrow = is_narrow(to);
    let rounds_to_fp32 =
        matches!(from, Scalar::F64 | Scalar::I32 | Scalar::U32 | Scalar::I64 | Scalar::U64);
    let narrowing = to.is_float() && rounding != Rounding::Nearest;
    if (narrow && rounds_to_fp32) || narrowing {
        return Cast::Lanes { from, to, rounding };
    }
    Cast::Loop(pair(from.compute_type(), to.compute_type(), wide))
}

/// Whether lanes of this type are computed in a wider one.
pub fn is_narrow(ty: Scalar) -> bool {
    ty.compute_type() != ty
}

trait Into_<T> {
    fn to(self) -> T;
}

macro_rules! by_as {
    ([$($s:ident)*] $targets:tt) => { $( by_as!(@ $s $targets); )* };
    (@ $s:ident [$($t:ident)*]) => { $(
        impl Into_<$t> for $s {
            #[inline(always)]
            #[allow(clippy::unnecessary_cast, reason = "one of the pairs is a type and itself")]
            fn to(self) -> $t { self as $t }
        }
    )* };
}
by_as!([i8 i16 i32 i64 u8 u16 u32 u64] [i8 i16 i32 i64 u8 u16 u32 u64 f32 f64]);
by_as!([f32 f64] [i16 i32 i64 u16 u32 u64 f32 f64]);

macro_rules! with_bool {
    ($($t:ident)*) => { $(
        impl Into_<bool> for $t {
            #[inline(always)]
            fn to(self) -> bool { self != 0 as $t }
        }
        impl Into_<$t> for bool {
            #[inline(always)]
            fn to(self) -> $t { self as u8 as $t }
        }
    )* };
}
with_bool!(i8 i16 i32 i64 u8 u16 u32 u64 f32 f64);

impl Into_<bool> for bool {
    #[inline(always)]
    fn to(self) -> bool {
        self
    }
}

/// Floats reach 8 bits through 16, as on NVIDIA.
macro_rules! through_16 {
    ($($f:ident)*) => { $(
        impl Into_<i8> for $f {
            #[inline(always)]
            fn to(self) -> i8 { self as i16 as i8 }
        }
        impl Into_<u8> for $f {
            #[inline(always)]
            fn to(self) -> u8 { self as u16 as u8 }
        }
    )* };
}
through_16!(f32 f64);

#[inline(always)]
unsafe fn each<S: Copy + Into_<T>, T>(ins: [*const u8; 3], out: *mut u8, n: usize) {
    // SAFETY: the promise of `Loop`.
    let (a, out) = unsafe {
        (
            std::slice::from_raw_parts(ins[0].cast::<S>(), n),
            std::slice::from_raw_parts_mut(out.cast::<MaybeUninit<T>>(), n),
        )
    };
    for (o, &x) in out.iter_mut().zip(a) {
        o.write(x.to());
    }
}

#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2,fma,f16c,bmi2"))]
unsafe fn each_wide<S: Copy + Into_<T>, T>(ins: [*const u8; 3], out: *mut u8, n: usize) {
    // SAFETY: the caller's promise.
    unsafe { each::<S, T>(ins, out, n) }
}

fn pair(from: Scalar, to: Scalar, wide: bool) -> Loop {
    /// Picks the target for a source.
    macro_rules! target {
        ($s:ident) => {
            match to {
                Scalar::I1 => instance::<$s, bool>(wide),
                Scalar::I8 => instance::<$s, i8>(wide),
                Scalar::I16 => instance::<$s, i16>(wide),
                Scalar::I32 => instance::<$s, i32>(wide),
                Scalar::I64 => instance::<$s, i64>(wide),
                Scalar::U8 => instance::<$s, u8>(wide),
                Scalar::U16 => instance::<$s, u16>(wide),
                Scalar::U32 => instance::<$s, u32>(wide),
                Scalar::U64 => instance::<$s, u64>(wide),
                Scalar::F64 => instance::<$s, f64>(wide),
                _ => instance::<$s, f32>(wide),
            }
        };
    }
    match from {
        Scalar::I1 => target!(bool),
        Scalar::I8 => target!(i8),
        Scalar::I16 => target!(i16),
        Scalar::I32 => target!(i32),
        Scalar::I64 => target!(i64),
        Scalar::U8 => target!(u8),
        Scalar::U16 => target!(u16),
        Scalar::U32 => target!(u32),
        Scalar::U64 => target!(u64),
        Scalar::F64 => target!(f64),
        _ => target!(f32),
    }
}

fn instance<S: Copy + Into_<T>, T>(wide: bool) -> Loop {
    if wide { each_wide::<S, T> } else { each::<S, T> }
}

/// Lanes of a narrow float as fp32, exactly.
///
/// # Safety
///
/// Both pointers are aligned and valid for `n` lanes and do not overlap.
pub unsafe fn widen(ty: Scalar, src: *const u8, dst: *mut f32, n: usize) {
    // SAFETY: the caller's promise. The target may hold any bytes, and all are floats.
    let out = unsafe { std::slice::from_raw_parts_mut(dst, n) };
    match ty {
        Scalar::F16 => {
            // SAFETY: the caller's promise.
            unsafe { std::slice::from_raw_parts(src.cast::<f16>(), n) }.convert_to_f32_slice(out);
        }
        Scalar::BF16 => {
            // SAFETY: the caller's promise.
            let src = unsafe { std::slice::from_raw_parts(src.cast::<u16>(), n) };
            for (o, &x) in out.iter_mut().zip(src) {
                let bits = u32::from(x) << 16;
                let is_nan = bits & 0x7fff_ffff > 0x7f80_0000;
                *o = f32::from_bits(if is_nan { bits | 0x40_0000 } else { bits });
            }
        }
        _ => {
            let table = fp8_table(ty);
            // SAFETY: the caller's promise.
            let src = unsafe { std::slice::from_raw_parts(src, n) };
            for (o, &x) in out.iter_mut().zip(src) {
                *o = table[usize::from(x)];
            }
        }
    }
}

/// Lanes of fp32 rounded to the nearest of a narrow float.
///
/// # Safety
///
/// Both pointers are aligned and valid for `n` lanes and do not overlap.
pub unsafe fn narrow(ty: Scalar, src: *const f32, dst: *mut u8, n: usize) {
    // SAFETY: the caller's promise.
    let src = unsafe { std::slice::from_raw_parts(src, n) };
    match ty {
        Scalar::F16 => {
            // SAFETY: the caller's promise. The target may hold any bytes, and all are floats.
            unsafe { std::slice::from_raw_parts_mut(dst.cast::<f16>(), n) }
                .convert_from_f32_slice(src);
        }
        Scalar::BF16 => {
            // SAFETY: the caller's promise.
            let out = unsafe { std::slice::from_raw_parts_mut(dst.cast::<bf16>(), n) };
            for (o, &x) in out.iter_mut().zip(src) {
                let bits = x.to_bits();
                let is_nan = bits & 0x7fff_ffff > 0x7f80_0000;
                let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1));
                *o =
                    bf16::from_bits((if is_nan { bits | 0x40_0000 } else { rounded } >> 16) as u16);
            }
        }
        _ => {
            for (i, &x) in src.iter().enumerate() {
                let image = cast_bits(Scalar::F32, ty, Rounding::Nearest, u64::from(x.to_bits()));
                // SAFETY: the caller's promise.
                unsafe { dst.add(i).write(image as u8) };
            }
        }
    }
}

fn fp8_table(ty: Scalar) -> &'static [f32; 256] {
    static TABLES: [OnceLock<[f32; 256]>; 5] = [const { OnceLock::new() }; 5];
    let index = match ty {
        Scalar::F8E5 => 0,
        Scalar::F8E4NV => 1,
        Scalar::F8E4B15 => 2,
        Scalar::F8E5B16 => 3,
        _ => 4,
    };
    TABLES[index].get_or_init(|| {
        std::array::from_fn(|x| {
            f32::from_bits(cast_bits(ty, Scalar::F32, Rounding::Nearest, x as u64) as u32)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every image of a 16-bit source, and a spread of wider ones, against `cast_bits`.
    #[test]
    fn loops_agree_with_cast_bits() {
        let mut images: Vec<u64> = (0..=0xffff).collect();
        images.extend((0..=0xffff_u64).map(|x| (x << 16) | ((x * 7) & 0xffff)));
        images.extend((0..=0xffff_u64).map(|x| (x << 48) | (x << 20) | 0x1000_0000 | x));
        for &ty in Scalar::ALL {
            if !is_narrow(ty) {
                continue;
            }
            for &image in &images {
                let mut wide = [0f32];
                let mut back = [0u64];
                let source = [image & ty.mask()];
                let bits = image as u32;
                // SAFETY: one lane each, aligned.
                unsafe {
                    widen(ty, source.as_ptr().cast(), wide.as_mut_ptr(), 1);
                    narrow(ty, &f32::from_bits(bits), back.as_mut_ptr().cast(), 1);
                }
                let want = cast_bits(ty, Scalar::F32, Rounding::Nearest, source[0]) as u32;
                assert_eq!(wide[0].to_bits(), want, "{ty} {image:x}");
                let want = cast_bits(Scalar::F32, ty, Rounding::Nearest, u64::from(bits));
                assert_eq!(back[0], want, "fp32 {bits:x} to {ty}");
            }
        }
        for &from in Scalar::ALL {
            for &to in Scalar::ALL {
                let Cast::Loop(f) = cast(from, to, Rounding::Nearest, crate::loops::wide()) else {
                    continue;
                };
                if is_narrow(from) || is_narrow(to) {
                    continue;
                }
                for &image in &images {
                    let source = [image & from.mask()];
                    let mut out = [0u64];
                    // SAFETY: one lane each, aligned; an `i1` is masked to 0 or 1.
                    unsafe { f([source.as_ptr().cast(); 3], out.as_mut_ptr().cast(), 1) };
                    let want = cast_bits(from, to, Rounding::Nearest, source[0]);
                    assert_eq!(out[0], want, "{from} {image:x} to {to}");
                }
            }
        }
    }
}
