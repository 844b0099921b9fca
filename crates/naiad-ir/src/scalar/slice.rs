//! Conversions of slices in memory, with the results of [`cast_bits`].
//!
//! ```text
//!   number -> number                 one loop per pair, which vectorizes
//!   narrow float -> anything         widened to f32 in chunks, then as above
//!   f32, small integer -> narrow     narrowed from f32, which holds them all
//!   f64, large integer -> narrow     one element at a time: f32 between would round twice
//! ```
//!
//! "Narrow" is narrower than 32 bits. fp16 and bf16 go through the `half` crate, which uses the
//! instructions of the machine; fp8 is widened by table.

use super::format::Format;
use super::{Lane, Rounding, cast_bits};
use crate::types::Scalar;
use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

/// Elements that are converted at a time where a buffer is needed.
const CHUNK: usize = 256;

/// Converts elements of `src` into `dst`, as many as both hold.
pub fn cast_slice(from: Scalar, to: Scalar, rounding: Rounding, src: &[u8], dst: &mut [u8]) {
    let count = (src.len() / from.size()).min(dst.len() / to.size());
    let (src, dst) = (&src[..count * from.size()], &mut dst[..count * to.size()]);
    if from == to && from != Scalar::I1 {
        return dst.copy_from_slice(src);
    }
    // Only what a float loses may be truncated.
    let rounding = if from.is_float() { rounding } else { Rounding::Nearest };
    let fits_f32 = from.bits() < 32 || from == Scalar::F32;
    let twice_rounded = is_narrow(to) && !fits_f32;
    let truncated = from == Scalar::F64 && to == Scalar::F32 && rounding == Rounding::TowardZero;
    if twice_rounded || truncated {
        return one_by_one(from, to, rounding, src, dst);
    }
    if !is_narrow(from) && !is_narrow(to) {
        return numbers(from, to, src, dst);
    }
    let mut wide = [0f32; CHUNK];
    let chunks = src.chunks(CHUNK * from.size()).zip(dst.chunks_mut(CHUNK * to.size()));
    for (src, dst) in chunks {
        let wide = &mut wide[..src.len() / from.size()];
        if is_narrow(from) {
            widen_slice(from, src, wide);
        } else {
            from_number(from, src, wide);
        }
        if is_narrow(to) {
            narrow_slice(to, rounding, wide, dst);
        } else {
            to_number(to, wide, dst);
        }
    }
}

/// Widens elements of a float type of at most 32 bits, as many as both slices hold. Elements of any
/// other type become what [`cast_bits`] makes of them.
pub fn widen_slice(from: Scalar, src: &[u8], dst: &mut [f32]) {
    match from {
        Scalar::F16 => {
            buffered(src, dst, f16::from_bits, |half, dst| half.convert_to_f32_slice(dst));
        }
        Scalar::BF16 => {
            buffered(src, dst, bf16::from_bits, |half, dst| half.convert_to_f32_slice(dst));
        }
        Scalar::F32 => {
            let elements = src.chunks_exact(4);
            elements.zip(dst).for_each(|(x, y)| *y = f32::read(x));
        }
        _ => match fp8_table(from) {
            Some(table) => {
                for (&x, y) in src.iter().zip(dst) {
                    *y = table[usize::from(x)];
                }
            }
            None => {
                for (x, y) in src.chunks_exact(from.size()).zip(dst) {
                    let image = cast_bits(from, Scalar::F32, Rounding::Nearest, read(from, x));
                    *y = f32::from_image(image);
                }
            }
        },
    }
}

/// Narrows to a float type of at most 32 bits, as many elements as both slices hold. For any other
/// type this is [`cast_bits`] too.
pub fn narrow_slice(to: Scalar, rounding: Rounding, src: &[f32], dst: &mut [u8]) {
    match (to, rounding) {
        (Scalar::F16, Rounding::Nearest) => {
            let mut half = [f16::ZERO; CHUNK];
            for (src, dst) in src.chunks(CHUNK).zip(dst.chunks_mut(2 * CHUNK)) {
                let half = &mut half[..src.len()];
                half.convert_from_f32_slice(src);
                half.iter().zip(dst.chunks_exact_mut(2)).for_each(|(x, y)| x.to_bits().write(y));
            }
        }
        (Scalar::BF16, Rounding::Nearest) => {
            let mut half = [bf16::ZERO; CHUNK];
            for (src, dst) in src.chunks(CHUNK).zip(dst.chunks_mut(2 * CHUNK)) {
                let half = &mut half[..src.len()];
                half.convert_from_f32_slice(src);
                half.iter().zip(dst.chunks_exact_mut(2)).for_each(|(x, y)| x.to_bits().write(y));
            }
        }
        _ => {
            for (x, y) in src.iter().zip(dst.chunks_exact_mut(to.size())) {
                write(to, cast_bits(Scalar::F32, to, rounding, x.image()), y);
            }
        }
    }
}

const fn is_narrow(ty: Scalar) -> bool {
    ty.is_float() && ty.bits() < 32
}

/// Widens 16-bit floats by way of an aligned buffer, which the `half` crate wants.
fn buffered<H: Copy + Default>(
    src: &[u8],
    dst: &mut [f32],
    from_bits: fn(u16) -> H,
    convert: impl Fn(&[H], &mut [f32]),
) {
    let mut half = [H::default(); CHUNK];
    for (src, dst) in src.chunks(2 * CHUNK).zip(dst.chunks_mut(CHUNK)) {
        let count = (src.len() / 2).min(dst.len());
        let half = &mut half[..count];
        src.chunks_exact(2).zip(half.iter_mut()).for_each(|(x, y)| *y = from_bits(u16::read(x)));
        convert(half, &mut dst[..count]);
    }
}

fn one_by_one(from: Scalar, to: Scalar, rounding: Rounding, src: &[u8], dst: &mut [u8]) {
    for (x, y) in src.chunks_exact(from.size()).zip(dst.chunks_exact_mut(to.size())) {
        write(to, cast_bits(from, to, rounding, read(from, x)), y);
    }
}

/// The image of an element in memory.
fn read(ty: Scalar, bytes: &[u8]) -> u64 {
    match ty.size() {
        1 if ty.is_bool() => bool::read(bytes).image(),
        1 => u8::read(bytes).image(),
        2 => u16::read(bytes).image(),
        4 => u32::read(bytes).image(),
        _ => u64::read(bytes).image(),
    }
}

fn write(ty: Scalar, image: u64, bytes: &mut [u8]) {
    match ty.size() {
        1 => (image as u8).write(bytes),
        2 => (image as u16).write(bytes),
        4 => (image as u32).write(bytes),
        _ => image.write(bytes),
    }
}

fn fp8_table(ty: Scalar) -> Option<&'static [f32; 256]> {
    const fn table(ty: Scalar) -> [f32; 256] {
        let mut values = [0.0; 256];
        if let Some(format) = Format::of(ty) {
            let mut image = 0;
            while image < 256 {
                // By images: `as` leaves the sign of a NaN open at compile time.
                let value = format.decode(image as u32);
                values[image] = f32::from_bits(Format::F32.encode(value, Rounding::Nearest));
                image += 1;
            }
        }
        values
    }
    static E5: [f32; 256] = table(Scalar::F8E5);
    static E4NV: [f32; 256] = table(Scalar::F8E4NV);
    static E4B15: [f32; 256] = table(Scalar::F8E4B15);
    static E5B16: [f32; 256] = table(Scalar::F8E5B16);
    static E4B8: [f32; 256] = table(Scalar::F8E4B8);
    match ty {
        Scalar::F8E5 => Some(&E5),
        Scalar::F8E4NV => Some(&E4NV),
        Scalar::F8E4B15 => Some(&E4B15),
        Scalar::F8E5B16 => Some(&E5B16),
        Scalar::F8E4B8 => Some(&E4B8),
        _ => None,
    }
}

/// A lane as a source of conversions to lanes of type `D`.
trait CastTo<D>: Lane {
    fn cast(self) -> D;
}

/// `as` has the semantics of the language for all pairs but those below.
macro_rules! casts {
    ($($from:ident => $($to:ident)+;)*) => { $( $(
        impl CastTo<$to> for $from {
            #[inline(always)]
            fn cast(self) -> $to {
                self as $to
            }
        }
    )+ )* };
}

casts! {
    i8 => i8 i16 i32 i64 u8 u16 u32 u64 f32 f64;
    i16 => i8 i16 i32 i64 u8 u16 u32 u64 f32 f64;
    i32 => i8 i16 i32 i64 u8 u16 u32 u64 f32 f64;
    i64 => i8 i16 i32 i64 u8 u16 u32 u64 f32 f64;
    u8 => i8 i16 i32 i64 u8 u16 u32 u64 f32 f64;
    u16 => i8 i16 i32 i64 u8 u16 u32 u64 f32 f64;
    u32 => i8 i16 i32 i64 u8 u16 u32 u64 f32 f64;
    u64 => i8 i16 i32 i64 u8 u16 u32 u64 f32 f64;
    f32 => i16 i32 i64 u16 u32 u64 f32 f64;
    f64 => i16 i32 i64 u16 u32 u64 f32 f64;
}

/// Floats to 8 bits go through 16; the rest is about the boolean.
macro_rules! special_casts {
    ($($from:ident => $to:ident: |$x:ident| $cast:expr;)*) => { $(
        impl CastTo<$to> for $from {
            #[inline(always)]
            fn cast(self) -> $to {
                let $x = self;
                $cast
            }
        }
    )* };
}

special_casts! {
    f32 => i8: |x| x as i16 as i8;
    f32 => u8: |x| x as u16 as u8;
    f64 => i8: |x| x as i16 as i8;
    f64 => u8: |x| x as u16 as u8;
    bool => bool: |x| x;
    bool => i8: |x| x as i8;
    bool => i16: |x| x as i16;
    bool => i32: |x| x as i32;
    bool => i64: |x| x as i64;
    bool => u8: |x| x as u8;
    bool => u16: |x| x as u16;
    bool => u32: |x| x as u32;
    bool => u64: |x| x as u64;
    bool => f32: |x| f32::from(x as u8);
    bool => f64: |x| f64::from(x as u8);
    i8 => bool: |x| x != 0;
    i16 => bool: |x| x != 0;
    i32 => bool: |x| x != 0;
    i64 => bool: |x| x != 0;
    u8 => bool: |x| x != 0;
    u16 => bool: |x| x != 0;
    u32 => bool: |x| x != 0;
    u64 => bool: |x| x != 0;
    f32 => bool: |x| x != 0.0;
    f64 => bool: |x| x != 0.0;
}

/// Evaluates the body with `$T` as the lane type of `$ty`; does nothing for narrow floats.
#[rustfmt::skip]
macro_rules! with_lane {
    ($ty:expr, $T:ident => $body:expr) => {
        match $ty {
            Scalar::I1 => { type $T = bool; $body }
            Scalar::I8 => { type $T = i8; $body }
            Scalar::I16 => { type $T = i16; $body }
            Scalar::I32 => { type $T = i32; $body }
            Scalar::I64 => { type $T = i64; $body }
            Scalar::U8 => { type $T = u8; $body }
            Scalar::U16 => { type $T = u16; $body }
            Scalar::U32 => { type $T = u32; $body }
            Scalar::U64 => { type $T = u64; $body }
            Scalar::F32 => { type $T = f32; $body }
            Scalar::F64 => { type $T = f64; $body }
            _ => {}
        }
    };
}

/// Numbers that are not narrow floats, to such numbers.
fn numbers(from: Scalar, to: Scalar, src: &[u8], dst: &mut [u8]) {
    with_lane!(from, S => with_lane!(to, D => {
        let elements = src.chunks_exact(size_of::<S>()).zip(dst.chunks_exact_mut(size_of::<D>()));
        elements.for_each(|(x, y)| <S as CastTo<D>>::cast(S::read(x)).write(y));
    }));
}

/// Numbers that `f32` holds, as `f32`.
fn from_number(from: Scalar, src: &[u8], dst: &mut [f32]) {
    with_lane!(from, S => {
        let elements = src.chunks_exact(size_of::<S>()).zip(dst);
        elements.for_each(|(x, y)| *y = S::read(x).cast());
    });
}

fn to_number(to: Scalar, src: &[f32], dst: &mut [u8]) {
    with_lane!(to, D => {
        let elements = src.iter().zip(dst.chunks_exact_mut(size_of::<D>()));
        elements.for_each(|(x, y)| <f32 as CastTo<D>>::cast(*x).write(y));
    });
}
