//! Conversions between fp32 and the narrower floats, of rows that are contiguous.
//!
//! The arithmetic is on bit images and the same at all levels; loops over it vectorize. fp16 has
//! instructions where there is AVX2. Results are those of
//! [`cast_bits`](naiad_ir::scalar::cast_bits), payloads of NaN apart.

use crate::dispatch::Kernels as All;
use naiad_ir::Scalar;
use naiad_ir::scalar::{Format, Nan};

/// Widens `rows x n` elements of a narrow float type to fp32. Strides between rows are in bytes.
///
/// # Safety
///
/// The type is a float of fewer than 32 bits. The rows of the source may be read and those of the
/// destination written, and no byte belongs to both.
pub unsafe extern "C" fn widen(
    dst: *mut u8,
    dst_row: i64,
    src: *const u8,
    src_row: i64,
    rows: i64,
    n: i64,
    ty: i64,
) {
    // SAFETY: the caller's.
    unsafe { convert(All::here().convert.widen[index(ty)], [dst_row, src_row], dst, src, rows, n) }
}

/// Narrows `rows x n` elements of fp32 to a narrow float type, to the nearest, ties to even.
///
/// # Safety
///
/// As for [`widen`].
pub unsafe extern "C" fn narrow(
    dst: *mut u8,
    dst_row: i64,
    src: *const u8,
    src_row: i64,
    rows: i64,
    n: i64,
    ty: i64,
) {
    // SAFETY: the caller's.
    unsafe { convert(All::here().convert.narrow[index(ty)], [dst_row, src_row], dst, src, rows, n) }
}

unsafe fn convert(
    row: Row,
    strides: [i64; 2],
    mut dst: *mut u8,
    mut src: *const u8,
    rows: i64,
    n: i64,
) {
    for _ in 0..rows {
        // SAFETY: the caller's.
        unsafe { row(dst, src, n.max(0) as usize) };
        dst = dst.wrapping_offset(strides[0] as isize);
        src = src.wrapping_offset(strides[1] as isize);
    }
}

/// Converts a row of so many elements.
pub(crate) type Row = unsafe fn(*mut u8, *const u8, usize);

/// The kernels of a level, by the type's place in `NARROW`.
pub(crate) struct Kernels {
    pub widen: [Row; NARROW.len()],
    pub narrow: [Row; NARROW.len()],
}

/// Declares the narrow floats: the list, and a type for each that loops are instantiated with.
macro_rules! narrow_types {
    ($($ty:ident($bits:ident))+) => {
        pub(crate) const NARROW: [Scalar; [$(Scalar::$ty),+].len()] = [$(Scalar::$ty),+];

        $(
            struct $ty;

            impl Narrow for $ty {
                type Bits = $bits;
                const FORMAT: Format = format(Scalar::$ty);

                #[inline(always)]
                fn wide(bits: $bits) -> u32 {
                    u32::from(bits)
                }

                #[inline(always)]
                fn truncate(bits: u32) -> $bits {
                    bits as $bits
                }
            }
        )+

        /// The kernels of a level, compiled with its features.
        macro_rules! kernels {
            ($name:ident: #[$compile:meta]) => {
                pub(crate) static $name: Kernels = Kernels {
                    widen: [$({
                        #[$compile]
                        unsafe fn kernel(dst: *mut u8, src: *const u8, n: usize) {
                            // SAFETY: the caller's.
                            unsafe { widen_row::<$ty>(dst, src, n) }
                        }
                        kernel
                    }),+],
                    narrow: [$({
                        #[$compile]
                        unsafe fn kernel(dst: *mut u8, src: *const u8, n: usize) {
                            // SAFETY: the caller's.
                            unsafe { narrow_row::<$ty>(dst, src, n) }
                        }
                        kernel
                    }),+],
                };
            };
        }
    };
}

narrow_types! { F16(u16) BF16(u16) F8E5(u8) F8E4NV(u8) F8E4B15(u8) F8E5B16(u8) F8E4B8(u8) }

/// The place in `NARROW` of a type given by its position in `Scalar::ALL`.
pub(crate) const fn index(ty: i64) -> usize {
    let mut i = 0;
    while i + 1 < NARROW.len() && NARROW[i] as i64 != ty {
        i += 1;
    }
    i
}

const fn format(ty: Scalar) -> Format {
    match Format::of(ty) {
        Some(format) => *format,
        None => panic!("narrow floats have a format"),
    }
}

trait Narrow {
    type Bits: Copy;
    const FORMAT: Format;

    fn wide(bits: Self::Bits) -> u32;
    fn truncate(bits: u32) -> Self::Bits;
}

#[inline(always)]
unsafe fn widen_row<T: Narrow>(dst: *mut u8, src: *const u8, n: usize) {
    let (dst, src) = (dst.cast::<u32>(), src.cast::<T::Bits>());
    for i in 0..n {
        // SAFETY: the caller's.
        unsafe {
            let x = T::wide(src.wrapping_add(i).read_unaligned());
            dst.wrapping_add(i).write_unaligned(widened(&T::FORMAT, x));
        }
    }
}

#[inline(always)]
unsafe fn narrow_row<T: Narrow>(dst: *mut u8, src: *const u8, n: usize) {
    let (dst, src) = (dst.cast::<T::Bits>(), src.cast::<u32>());
    for i in 0..n {
        // SAFETY: the caller's.
        unsafe {
            let x = narrowed(&T::FORMAT, src.wrapping_add(i).read_unaligned());
            dst.wrapping_add(i).write_unaligned(T::truncate(x));
        }
    }
}

/// Bits of the significand and the bias of fp32.
const MANTISSA: u32 = 23;
const BIAS: i32 = 127;
const INFINITY: u32 = 0x7f80_0000;
const QUIET_NAN: u32 = 0x7fc0_0000;

/// The image in fp32 of an image in a format.
#[inline(always)]
fn widened(f: &Format, x: u32) -> u32 {
    let sign = (x >> (f.bits - 1)) << 31;
    let magnitude = x & ((1 << (f.bits - 1)) - 1);
    if f.bias == BIAS {
        // bf16 is the head of an fp32.
        return sign | magnitude << (MANTISSA - f.mantissa);
    }
    // e4b15 has an image above its largest number, which is read as that.
    let magnitude = if f.nan == Nan::Absent { magnitude.min(f.largest) } else { magnitude };
    let moved = magnitude << (MANTISSA - f.mantissa);
    let rebias = ((BIAS - f.bias) as u32) << MANTISSA;
    let normal = moved + rebias;
    // A subnormal with an implicit bit that it has not, and then without it: exact, and no operand
    // is subnormal in fp32, where that would be slow.
    let implicit = rebias + (1 << MANTISSA);
    let subnormal = (f32::from_bits(moved + implicit) - f32::from_bits(implicit)).to_bits();
    let finite = if magnitude < 1 << f.mantissa { subnormal } else { normal };
    let result = match (f.nan, f.infinity) {
        (_, Some(infinity)) if magnitude >= infinity => moved | INFINITY,
        (Nan::AllOnes, _) if magnitude > f.largest => QUIET_NAN,
        (Nan::NegativeZero, _) if magnitude == 0 && sign != 0 => QUIET_NAN,
        _ => finite,
    };
    result | sign
}

/// The image in a format of the number nearest to an fp32, ties to even.
#[inline(always)]
fn narrowed(f: &Format, x: u32) -> u32 {
    let sign = (x >> 31) << (f.bits - 1);
    let magnitude = x & (u32::MAX >> 1);
    let dropped = MANTISSA - f.mantissa;
    let rebias = (BIAS - f.bias) as u32;
    // Half of the last bit kept, less one unless that bit is odd; a carry steps to the next exponent.
    let odd = (magnitude >> dropped) & 1;
    let nearest = (magnitude + ((1 << (dropped - 1)) - 1) + odd) >> dropped;
    let normal = nearest.wrapping_sub(rebias << f.mantissa);
    // Added to a number whose last bit is worth the least subnormal, a number is rounded to multiples
    // of that.
    let last_bit = ((rebias + 1 + dropped) << MANTISSA).min(INFINITY);
    let subnormal = (f32::from_bits(magnitude) + f32::from_bits(last_bit)).to_bits() - last_bit;
    let is_subnormal = rebias > 0 && magnitude < (rebias + 1) << MANTISSA;
    let rounded = if is_subnormal { subnormal } else { normal };
    // fp8 saturates, infinities too.
    let over = match f.infinity {
        Some(infinity) if f.bits > 8 => infinity,
        _ => f.largest,
    };
    let finite = if rounded > f.largest { over } else { rounded };
    if magnitude > INFINITY {
        return match f.nan {
            Nan::Ieee => sign | (f.largest + 1) | 1 << (f.mantissa - 1),
            Nan::AllOnes => sign | (f.largest + 1),
            Nan::NegativeZero => 1 << (f.bits - 1),
            Nan::Absent => sign | f.largest,
        };
    }
    if f.nan == Nan::NegativeZero && finite == 0 { 0 } else { sign | finite }
}

mod portable {
    use super::*;
    kernels! { PORTABLE: #[inline(never)] }
}
pub(crate) use portable::PORTABLE;

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::*;
    use std::arch::x86_64::*;

    kernels! { LOOPS: #[target_feature(enable = "avx2")] }

    pub(crate) static AVX2: Kernels = {
        let mut kernels = Kernels { widen: LOOPS.widen, narrow: LOOPS.narrow };
        kernels.widen[index(Scalar::F16 as i64)] = widen_f16;
        kernels.narrow[index(Scalar::F16 as i64)] = narrow_f16;
        kernels
    };

    const LANES: usize = 8;

    #[target_feature(enable = "avx2,f16c")]
    unsafe fn widen_f16(dst: *mut u8, src: *const u8, n: usize) {
        let (dst, src) = (dst.cast::<f32>(), src.cast::<u16>());
        let whole = n / LANES * LANES;
        // SAFETY: the caller's.
        unsafe {
            let mut i = 0;
            while i < whole {
                let x = _mm_loadu_si128(src.wrapping_add(i).cast());
                _mm256_storeu_ps(dst.wrapping_add(i), _mm256_cvtph_ps(x));
                i += LANES;
            }
            let rest = (dst.wrapping_add(whole).cast(), src.wrapping_add(whole).cast());
            widen_row::<F16>(rest.0, rest.1, n - whole);
        }
    }

    #[target_feature(enable = "avx2,f16c")]
    unsafe fn narrow_f16(dst: *mut u8, src: *const u8, n: usize) {
        let (dst, src) = (dst.cast::<u16>(), src.cast::<f32>());
        let whole = n / LANES * LANES;
        // SAFETY: the caller's.
        unsafe {
            let mut i = 0;
            while i < whole {
                let x = _mm256_loadu_ps(src.wrapping_add(i));
                let x = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(x);
                _mm_storeu_si128(dst.wrapping_add(i).cast(), x);
                i += LANES;
            }
            let rest = (dst.wrapping_add(whole).cast(), src.wrapping_add(whole).cast());
            narrow_row::<F16>(rest.0, rest.1, n - whole);
        }
    }
}

#[cfg(target_arch = "x86_64")]
pub(crate) use x86::AVX2;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::Level;
    use crate::testing::Random;
    use naiad_ir::scalar::{Rounding, cast_bits};

    fn kernels() -> impl Iterator<Item = (Level, &'static Kernels)> {
        Level::available().map(|level| (level, All::of(level).convert))
    }

    /// Whether an image of a type is a NaN.
    fn is_nan(ty: Scalar, image: u64) -> bool {
        let wide = cast_bits(ty, Scalar::F32, Rounding::Nearest, image);
        f32::from_bits(wide as u32).is_nan()
    }

    #[test]
    fn every_image_widens_as_the_language_says() {
        for (place, &ty) in NARROW.iter().enumerate() {
            let images: Vec<u64> = (0..1 << ty.bits()).collect();
            let src: Vec<u8> =
                images.iter().flat_map(|x| x.to_ne_bytes()[..ty.size()].to_vec()).collect();
            for (level, kernels) in kernels() {
                let mut dst = vec![0u8; 4 * images.len()];
                // SAFETY: the buffers have as many elements.
                unsafe { kernels.widen[place](dst.as_mut_ptr(), src.as_ptr(), images.len()) };
                for (&image, got) in images.iter().zip(dst.chunks(4)) {
                    let want = cast_bits(ty, Scalar::F32, Rounding::Nearest, image) as u32;
                    let got = u32::from_ne_bytes(got.try_into().unwrap());
                    let both_nan = f32::from_bits(got).is_nan() && f32::from_bits(want).is_nan();
                    assert!(
                        got == want || both_nan,
                        "{level:?} {ty} {image:#x}: {got:#x}, {want:#x}"
                    );
                }
            }
        }
    }

    /// Images in fp32 that are close to where rounding turns, and many others.
    fn samples(ty: Scalar) -> Vec<u32> {
        let mut random = Random::new(3);
        let mut all: Vec<u32> = (0..100_000).map(|_| random.bits() as u32).collect();
        // Most of the numbers of a small format are near 1.
        all.extend((0..100_000).map(|_| (random.bits() as f32 / u64::MAX as f32 - 0.5).to_bits()));
        for image in 0..1u64 << ty.bits() {
            // The number itself, the middle between it and the next, and their neighbours.
            let wide = |image| cast_bits(ty, Scalar::F32, Rounding::Nearest, image) as u32;
            let x = wide(image);
            let next = wide((image + 1) & ty.mask());
            let middle =
                ((f64::from(f32::from_bits(x)) + f64::from(f32::from_bits(next))) / 2.0) as f32;
            for base in [x, middle.to_bits()] {
                all.extend([base.wrapping_sub(1), base, base.wrapping_add(1)]);
            }
        }
        for special in
            [0, INFINITY, INFINITY - 1, INFINITY + 1, QUIET_NAN, 1, (1 << 23) - 1, 1 << 23]
        {
            all.extend([special, special | 1 << 31]);
        }
        all
    }

    #[test]
    fn numbers_narrow_as_the_language_says() {
        for (place, &ty) in NARROW.iter().enumerate() {
            let src = samples(ty);
            for (level, kernels) in kernels() {
                let mut dst = vec![0u8; ty.size() * src.len()];
                // SAFETY: the buffers have as many elements.
                unsafe {
                    kernels.narrow[place](dst.as_mut_ptr(), src.as_ptr().cast(), src.len());
                }
                for (&x, got) in src.iter().zip(dst.chunks(ty.size())) {
                    let want = cast_bits(Scalar::F32, ty, Rounding::Nearest, u64::from(x));
                    let mut image = [0; 8];
                    image[..ty.size()].copy_from_slice(got);
                    let got = u64::from_ne_bytes(image);
                    let both_nan = is_nan(ty, got) && is_nan(ty, want);
                    assert!(got == want || both_nan, "{level:?} {ty} {x:#x}: {got:#x}, {want:#x}");
                }
            }
        }
    }

    #[test]
    fn rows_of_any_length_and_alignment() {
        let mut random = Random::new(4);
        for _ in 0..300 {
            let ty = random.pick(&NARROW);
            let (rows, n) = (random.below(4), random.below(40));
            let (skip, gap) = (random.below(4), random.below(5));
            let size = ty.size();
            let src = random.bytes(skip + rows * (n * size + gap));
            let mut wide = vec![7u8; skip + rows * (4 * n + gap)];
            let mut back = vec![7u8; src.len()];
            let row = |size: usize| (n * size + gap) as i64;
            // SAFETY: the buffers hold the rows.
            unsafe {
                let (at, from) = (wide.as_mut_ptr().add(skip), src.as_ptr().add(skip));
                widen(at, row(4), from, row(size), rows as i64, n as i64, ty as i64);
                let to = back.as_mut_ptr().add(skip);
                narrow(to, row(size), at, row(4), rows as i64, n as i64, ty as i64);
            }
            for r in 0..rows {
                for i in 0..n {
                    let at = skip + r * row(size) as usize + i * size;
                    let image = |bytes: &[u8]| {
                        let mut image = [0; 8];
                        image[..size].copy_from_slice(&bytes[at..at + size]);
                        u64::from_ne_bytes(image)
                    };
                    let (x, y) = (image(&src), image(&back));
                    let wide = cast_bits(ty, Scalar::F32, Rounding::Nearest, x);
                    let want = cast_bits(Scalar::F32, ty, Rounding::Nearest, wide);
                    assert!(y == want || (is_nan(ty, x) && is_nan(ty, y)), "{ty} {x:#x} {y:#x}");
                }
                let end = skip + (r + 1) * row(4) as usize;
                assert!(wide[end - gap..end].iter().all(|&x| x == 7), "between rows");
            }
        }
    }
}
