//! Conversions between fp32 and the narrower floats, of rows that are contiguous.
//!
//! The arithmetic is on bit images and the same at all levels; loops over it vectorize. fp16 has
//! instructions where there is AVX2. Results are those of
//! [`cast_bits`](naiad_ir::scalar::cast_bits), payloads of NaN apart.

use crate::dispatch::Kernels as All;
use crate::word::Word;
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
    unsafe { convert(All::here().convert.widen[index(ty)], dst, dst_row, src, src_row, rows, n) }
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
    unsafe { convert(All::here().convert.narrow[index(ty)], dst, dst_row, src, src_row, rows, n) }
}

unsafe fn convert(
    kernel: Kernel,
    dst: *mut u8,
    dst_row: i64,
    src: *const u8,
    src_row: i64,
    rows: i64,
    n: i64,
) {
    let (rows, n) = (rows.max(0) as usize, n.max(0) as usize);
    let rows = Rows { dst, dst_row: dst_row as isize, src, src_row: src_row as isize, rows, n };
    // SAFETY: the caller's.
    unsafe { kernel(&rows) }
}

/// Rows of `n` elements each; strides in bytes.
#[derive(Copy, Clone)]
pub(crate) struct Rows {
    pub dst: *mut u8,
    pub dst_row: isize,
    pub src: *const u8,
    pub src_row: isize,
    pub rows: usize,
    pub n: usize,
}

/// Converts the rows.
pub(crate) type Kernel = unsafe fn(&Rows);

/// A function of words that a loop is instantiated with, and the widths of its elements in memory.
pub(crate) trait Each {
    const FROM: usize;
    const TO: usize;

    unsafe fn load<W: Word>(at: *const u8) -> W;
    unsafe fn store<W: Word>(x: W, at: *mut u8);
    unsafe fn at<W: Word>(x: W) -> W;
}

/// The loop: whole vectors, then words.
#[inline(always)]
pub(crate) unsafe fn each_row<W: Word, E: Each>(t: &Rows) {
    let (mut dst, mut src) = (t.dst, t.src);
    for _ in 0..t.rows {
        let (mut to, mut from) = (dst, src);
        let mut left = t.n;
        // SAFETY: the caller's.
        unsafe {
            while left >= W::LANES {
                E::store(E::at(E::load::<W>(from)), to);
                (to, from) =
                    (to.wrapping_add(W::LANES * E::TO), from.wrapping_add(W::LANES * E::FROM));
                left -= W::LANES;
            }
            for _ in 0..left {
                E::store(E::at(E::load::<u32>(from)), to);
                (to, from) = (to.wrapping_add(E::TO), from.wrapping_add(E::FROM));
            }
        }
        dst = dst.wrapping_offset(t.dst_row);
        src = src.wrapping_offset(t.src_row);
    }
}

/// The kernels of a level, by the type's place in `NARROW`.
pub(crate) struct Kernels {
    pub widen: [Kernel; NARROW.len()],
    pub narrow: [Kernel; NARROW.len()],
}

/// Declares the narrow floats: the list, and a type for each that loops are instantiated with.
macro_rules! narrow_types {
    ($($ty:ident)+) => {
        pub(crate) const NARROW: [Scalar; [$(Scalar::$ty),+].len()] = [$(Scalar::$ty),+];

        $(
            struct $ty;

            impl Narrow for $ty {
                const FORMAT: Format = format(Scalar::$ty);
            }
        )+

        /// The kernels of a level, compiled with its features.
        macro_rules! kernels {
            ($name:ident: #[$compile:meta] $word:ident) => {
                pub(crate) static $name: Kernels = Kernels {
                    widen: [$({
                        #[$compile]
                        unsafe fn kernel(rows: &Rows) {
                            // SAFETY: the caller's.
                            unsafe { each_row::<$word, Widen<$ty>>(rows) }
                        }
                        kernel
                    }),+],
                    narrow: [$({
                        #[$compile]
                        unsafe fn kernel(rows: &Rows) {
                            // SAFETY: the caller's.
                            unsafe { each_row::<$word, ToNarrow<$ty>>(rows) }
                        }
                        kernel
                    }),+],
                };
            };
        }
    };
}

narrow_types! { F16 BF16 F8E5 F8E4NV F8E4B15 F8E5B16 F8E4B8 }

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
    const FORMAT: Format;
}

struct Widen<T>(T);

impl<T: Narrow> Each for Widen<T> {
    const FROM: usize = T::FORMAT.bits as usize / 8;
    const TO: usize = 4;

    #[inline(always)]
    unsafe fn load<W: Word>(at: *const u8) -> W {
        // SAFETY: the caller's.
        unsafe { if Self::FROM == 1 { W::load8(at) } else { W::load16(at) } }
    }

    #[inline(always)]
    unsafe fn store<W: Word>(x: W, at: *mut u8) {
        // SAFETY: the caller's.
        unsafe { x.store32(at) }
    }

    #[inline(always)]
    unsafe fn at<W: Word>(x: W) -> W {
        // SAFETY: the caller's.
        unsafe { widened(&T::FORMAT, x) }
    }
}

struct ToNarrow<T>(T);

impl<T: Narrow> Each for ToNarrow<T> {
    const FROM: usize = 4;
    const TO: usize = T::FORMAT.bits as usize / 8;

    #[inline(always)]
    unsafe fn load<W: Word>(at: *const u8) -> W {
        // SAFETY: the caller's.
        unsafe { W::load32(at) }
    }

    #[inline(always)]
    unsafe fn store<W: Word>(x: W, at: *mut u8) {
        // SAFETY: the caller's.
        unsafe { if Self::TO == 1 { x.store8(at) } else { x.store16(at) } }
    }

    #[inline(always)]
    unsafe fn at<W: Word>(x: W) -> W {
        // SAFETY: the caller's.
        unsafe { narrowed(&T::FORMAT, x) }
    }
}

/// Bits of the significand and the bias of fp32.
const MANTISSA: u32 = 23;
const BIAS: i32 = 127;
const INFINITY: u32 = 0x7f80_0000;
const QUIET_NAN: u32 = 0x7fc0_0000;

/// The images in fp32 of images in a format.
#[inline(always)]
unsafe fn widened<W: Word>(f: &Format, x: W) -> W {
    // SAFETY: the caller's.
    unsafe {
        if f.bias == BIAS {
            // bf16 is the head of an fp32.
            return x.shl(MANTISSA - f.mantissa);
        }
        let sign = x.shr(f.bits - 1).shl(31);
        let mut magnitude = x.and(W::splat((1 << (f.bits - 1)) - 1));
        if f.nan == Nan::Absent {
            // e4b15 has an image above its largest number, which is read as that.
            let largest = W::splat(f.largest);
            magnitude = W::select(largest.lt(magnitude), largest, magnitude);
        }
        let moved = magnitude.shl(MANTISSA - f.mantissa);
        let rebias = ((BIAS - f.bias) as u32) << MANTISSA;
        let normal = moved.add(W::splat(rebias));
        // A subnormal with an implicit bit that it has not, and then without it: exact, and no operand
        // is subnormal in fp32, where that would be slow.
        let implicit = W::splat(rebias + (1 << MANTISSA));
        let subnormal = moved.add(implicit).sub_f32(implicit);
        let is_subnormal = magnitude.lt(W::splat(1 << f.mantissa));
        let mut result = W::select(is_subnormal, subnormal, normal);
        if let Some(infinity) = f.infinity {
            let special = moved.or(W::splat(INFINITY));
            result = W::select(magnitude.lt(W::splat(infinity)), result, special);
        }
        if f.nan == Nan::AllOnes {
            result = W::select(W::splat(f.largest).lt(magnitude), W::splat(QUIET_NAN), result);
        }
        if f.nan == Nan::NegativeZero {
            // Zero with the sign.
            let is_zero = magnitude.lt(W::splat(1));
            let zero = W::select(x.lt(W::splat(1)), W::splat(0), W::splat(QUIET_NAN));
            result = W::select(is_zero, zero, result);
        }
        result.or(sign)
    }
}

/// The images in a format of the numbers nearest to fp32 ones, ties to even.
#[inline(always)]
unsafe fn narrowed<W: Word>(f: &Format, x: W) -> W {
    // SAFETY: the caller's.
    unsafe {
        let sign = x.shr(31).shl(f.bits - 1);
        let magnitude = x.and(W::splat(u32::MAX >> 1));
        let dropped = MANTISSA - f.mantissa;
        let rebias = (BIAS - f.bias) as u32;
        // Half of the last bit kept, less one unless that bit is odd; a carry steps to the next
        // exponent.
        let odd = magnitude.shr(dropped).and(W::splat(1));
        let nearest = magnitude.add(W::splat((1 << (dropped - 1)) - 1)).add(odd).shr(dropped);
        let mut rounded = nearest.sub(W::splat(rebias << f.mantissa));
        if rebias > 0 {
            // Added to a number whose last bit is worth the least subnormal, a number is rounded to
            // multiples of that.
            let last_bit = W::splat((rebias + 1 + dropped) << MANTISSA);
            let subnormal = magnitude.add_f32(last_bit).sub(last_bit);
            let is_subnormal = magnitude.lt(W::splat((rebias + 1) << MANTISSA));
            rounded = W::select(is_subnormal, subnormal, rounded);
        }
        // fp8 saturates, infinities too.
        let over = match f.infinity {
            Some(infinity) if f.bits > 8 => infinity,
            _ => f.largest,
        };
        let largest = W::splat(f.largest);
        let finite = W::select(largest.lt(rounded), W::splat(over), rounded);
        let is_nan = W::splat(INFINITY).lt(magnitude);
        match f.nan {
            Nan::Ieee | Nan::AllOnes | Nan::Absent => {
                let nan = match f.nan {
                    Nan::Ieee => (f.largest + 1) | 1 << (f.mantissa - 1),
                    Nan::AllOnes => f.largest + 1,
                    _ => f.largest,
                };
                W::select(is_nan, W::splat(nan), finite).or(sign)
            }
            Nan::NegativeZero => {
                // There is no negative zero: that image is the NaN.
                let is_zero = finite.lt(W::splat(1));
                let number = W::select(is_zero, W::splat(0), finite.or(sign));
                W::select(is_nan, W::splat(1 << (f.bits - 1)), number)
            }
        }
    }
}

mod portable {
    use super::*;
    kernels! { PORTABLE: #[inline(never)] u32 }
}
pub(crate) use portable::PORTABLE;

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::*;
    use std::arch::x86_64::*;

    mod avx2 {
        use super::*;
        use crate::word::Ymm;
        kernels! { LOOPS: #[target_feature(enable = "avx2")] Ymm }
    }

    mod avx512 {
        use super::*;
        use crate::word::Zmm;
        kernels! { LOOPS: #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")] Zmm }
    }

    pub(crate) static AVX2: Kernels = with_f16c(&avx2::LOOPS);
    pub(crate) static AVX512: Kernels = with_f16c(&avx512::LOOPS);

    const fn with_f16c(loops: &Kernels) -> Kernels {
        let mut kernels = Kernels { widen: loops.widen, narrow: loops.narrow };
        kernels.widen[index(Scalar::F16 as i64)] = widen_f16;
        kernels.narrow[index(Scalar::F16 as i64)] = narrow_f16;
        kernels
    }

    const LANES: usize = 8;

    #[target_feature(enable = "avx2,f16c")]
    unsafe fn widen_f16(t: &Rows) {
        let whole = t.n & !(LANES - 1);
        let (mut dst, mut src) = (t.dst, t.src);
        for _ in 0..t.rows {
            let (to, from) = (dst.cast::<f32>(), src.cast::<u16>());
            let mut i = 0;
            while i < whole {
                // SAFETY: the caller's.
                unsafe {
                    let x = _mm_loadu_si128(from.wrapping_add(i).cast());
                    _mm256_storeu_ps(to.wrapping_add(i), _mm256_cvtph_ps(x));
                }
                i += LANES;
            }
            dst = dst.wrapping_offset(t.dst_row);
            src = src.wrapping_offset(t.src_row);
        }
        if whole < t.n {
            let (dst, src) = (t.dst.wrapping_add(4 * whole), t.src.wrapping_add(2 * whole));
            // SAFETY: the caller's.
            unsafe { each_row::<u32, Widen<F16>>(&Rows { dst, src, n: t.n - whole, ..*t }) }
        }
    }

    #[target_feature(enable = "avx2,f16c")]
    unsafe fn narrow_f16(t: &Rows) {
        let whole = t.n & !(LANES - 1);
        let (mut dst, mut src) = (t.dst, t.src);
        for _ in 0..t.rows {
            let (to, from) = (dst.cast::<u16>(), src.cast::<f32>());
            let mut i = 0;
            while i < whole {
                // SAFETY: the caller's.
                unsafe {
                    let x = _mm256_loadu_ps(from.wrapping_add(i));
                    let x = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(x);
                    _mm_storeu_si128(to.wrapping_add(i).cast(), x);
                }
                i += LANES;
            }
            dst = dst.wrapping_offset(t.dst_row);
            src = src.wrapping_offset(t.src_row);
        }
        if whole < t.n {
            let (dst, src) = (t.dst.wrapping_add(2 * whole), t.src.wrapping_add(4 * whole));
            // SAFETY: the caller's.
            unsafe { each_row::<u32, ToNarrow<F16>>(&Rows { dst, src, n: t.n - whole, ..*t }) }
        }
    }
}

#[cfg(target_arch = "x86_64")]
pub(crate) use x86::{AVX2, AVX512};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::Level;
    use crate::testing::Random;
    use naiad_ir::scalar::{Rounding, cast_bits};

    fn kernels() -> impl Iterator<Item = (Level, &'static Kernels)> {
        Level::available().map(|level| (level, All::of(level).convert))
    }

    fn row(dst: &mut [u8], src: *const u8, n: usize) -> Rows {
        Rows { dst: dst.as_mut_ptr(), dst_row: 0, src, src_row: 0, rows: 1, n }
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
                unsafe { kernels.widen[place](&row(&mut dst, src.as_ptr(), images.len())) };
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
                    kernels.narrow[place](&row(&mut dst, src.as_ptr().cast(), src.len()));
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
