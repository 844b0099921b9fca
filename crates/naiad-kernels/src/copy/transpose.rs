//! Transposes in registers.
//!
//! ```text
//!   source: lines along axis 0             destination: lines along axis 1
//!     line j = src + j * src_line            line i = dst + i * dst_line
//!
//!   block: 16 bytes each of 64/size lines  ->  64 bytes each of 16/size lines
//! ```
//!
//! What is written is whole cache lines wherever the destination is aligned: a store past the caches
//! is worth its name only if nothing of its line is missing, and one through them touches each line
//! once, also where the lines lie a power of two apart and so have few places in the cache.

/// A transpose of `dst_lines x src_lines` elements; strides in bytes.
#[derive(Copy, Clone)]
pub struct Transpose {
    pub dst: *mut u8,
    pub dst_line: isize,
    pub dst_lines: usize,
    pub src: *const u8,
    pub src_line: isize,
    pub src_lines: usize,
    /// Store past the caches. All lines of the destination begin and end at multiples of [`LINE`].
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "no such stores there"))]
    pub stream: bool,
}

/// Transposes the elements, which may lie at any address.
pub type Kernel = unsafe fn(&Transpose);

/// By the logarithm of an element's size.
pub type Kernels = [Kernel; 4];

/// 16 bytes each of `LINES` lines, in registers.
trait Block {
    type Element: Copy;
    /// Elements of 16 bytes.
    const COLUMNS: usize = 16 / size_of::<Self::Element>();
    const LINES: usize;

    /// Reads 16 bytes of each line, and writes as many lines as those have elements.
    unsafe fn transpose(src: *const u8, dst: *mut u8, t: &Transpose);
}

/// Whole blocks first, then blocks of 16 bytes either way, then what is left.
#[inline(always)]
unsafe fn blocks<B: Block, S: Block<Element = B::Element>>(t: &Transpose) {
    let size = const { size_of::<B::Element>() };
    // SAFETY: the caller's, for all parts of the transpose.
    unsafe {
        let whole = t.src_lines / B::LINES * B::LINES;
        sweep::<B>(&Transpose { src_lines: whole, ..*t });
        let small = t.src_lines / S::LINES * S::LINES;
        let from = |line: usize, lines: usize| Transpose {
            dst: t.dst.wrapping_add(line * size),
            src: t.src.wrapping_offset(t.src_line.wrapping_mul(line as isize)),
            src_lines: lines,
            ..*t
        };
        sweep::<S>(&from(whole, small - whole));
        singles::<B::Element>(&from(small, t.src_lines - small));
    }
}

/// Blocks, and singly what is left of their lines.
#[inline(always)]
unsafe fn sweep<B: Block>(t: &Transpose) {
    let size = const { size_of::<B::Element>() };
    let whole = t.dst_lines / B::COLUMNS * B::COLUMNS;
    let (mut src, mut dst) = (t.src, t.dst);
    let mut j = 0;
    while j < t.src_lines {
        // Along the lines of the source: the next blocks are in the same cache lines.
        let (mut from, mut to) = (src, dst);
        let mut i = 0;
        while i < whole {
            // SAFETY: the caller's.
            unsafe { B::transpose(from, to, t) };
            from = from.wrapping_add(16);
            to = to.wrapping_offset(t.dst_line.wrapping_mul(B::COLUMNS as isize));
            i += B::COLUMNS;
        }
        let dst_lines = t.dst_lines - whole;
        let rest = Transpose { src: from, dst: to, dst_lines, src_lines: B::LINES, ..*t };
        // SAFETY: the caller's.
        unsafe { singles::<B::Element>(&rest) };
        src = src.wrapping_offset(t.src_line.wrapping_mul(B::LINES as isize));
        dst = dst.wrapping_add(B::LINES * size);
        j += B::LINES;
    }
}

/// One element at a time. A function of its own, for it is seldom called and unrolls well.
#[inline(never)]
unsafe fn singles<T: Copy>(t: &Transpose) {
    let (mut src, mut dst) = (t.src, t.dst);
    for _ in 0..t.src_lines {
        let (mut from, mut to) = (src, dst);
        for _ in 0..t.dst_lines {
            // SAFETY: the caller's.
            unsafe { to.cast::<T>().write_unaligned(from.cast::<T>().read_unaligned()) };
            from = from.wrapping_add(size_of::<T>());
            to = to.wrapping_offset(t.dst_line);
        }
        src = src.wrapping_offset(t.src_line);
        dst = dst.wrapping_add(size_of::<T>());
    }
}

/// One element, where there is nothing better.
#[cfg(not(target_arch = "x86_64"))]
struct Single<T>(T);

#[cfg(not(target_arch = "x86_64"))]
impl<T: Copy> Block for Single<T> {
    type Element = T;
    const COLUMNS: usize = 1;
    const LINES: usize = 1;

    #[inline(always)]
    unsafe fn transpose(src: *const u8, dst: *mut u8, _: &Transpose) {
        // SAFETY: the caller's.
        unsafe { dst.cast::<T>().write_unaligned(src.cast::<T>().read_unaligned()) }
    }
}

#[cfg(not(target_arch = "x86_64"))]
pub static PORTABLE: Kernels = {
    macro_rules! kernel {
        ($t:ty) => {{
            unsafe fn kernel(t: &Transpose) {
                // SAFETY: the caller's.
                unsafe { blocks::<Single<$t>, Single<$t>>(t) }
            }
            kernel
        }};
    }
    [kernel!(u8), kernel!(u16), kernel!(u32), kernel!(u64)]
};

#[cfg(target_arch = "x86_64")]
pub use x86::{AVX2, AVX512, PORTABLE};

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::*;
    use std::arch::x86_64::*;

    /// A type for blocks of one type of element, from steps that work within parts of 16 bytes.
    ///
    /// A register holds `N` elements of 16 bytes in each part, and `N` registers are transposed at
    /// once: part `p` of register `x` is read from line `p * N + x`, so that what leaves is stretches
    /// of lines. A step takes registers `x` and `x + N / 2` to `2 x` and `2 x + 1`, which turns the
    /// bits of (register, element) round by one place: after log2(N) steps they have changed places.
    /// `groups` such sets lie side by side in the destination.
    macro_rules! block {
        (
            $name:ident of $element:ty: $groups:literal groups of $parts:literal parts,
            $load:ident, $low:ident, $high:ident, $store:ident, $stream:ident
        ) => {
            struct $name;

            impl Block for $name {
                type Element = $element;
                const LINES: usize = $groups * $parts * Self::COLUMNS;

                #[inline(always)]
                unsafe fn transpose(src: *const u8, dst: *mut u8, t: &Transpose) {
                    const N: usize = 16 / size_of::<$element>();
                    let apart = t.src_line.wrapping_mul(N as isize);
                    // SAFETY: the caller's; kernels are compiled with the instructions used here.
                    unsafe {
                        let mut sets = [[$load(src, 0); N]; $groups];
                        let mut group = src;
                        for g in 0..$groups {
                            let mut r = sets[g];
                            let mut line = group;
                            for x in 0..N {
                                r[x] = $load(line, apart);
                                line = line.wrapping_offset(t.src_line);
                            }
                            let mut step = N;
                            while step > 1 {
                                let mut out = r;
                                for x in 0..N / 2 {
                                    out[2 * x] = $low(r[x], r[x + N / 2]);
                                    out[2 * x + 1] = $high(r[x], r[x + N / 2]);
                                }
                                r = out;
                                step /= 2;
                            }
                            sets[g] = r;
                            group = group.wrapping_offset(apart.wrapping_mul($parts));
                        }
                        let mut line = dst;
                        for x in 0..N {
                            for g in 0..$groups {
                                let at = line.wrapping_add(16 * $parts * g).cast();
                                if t.stream {
                                    $stream(at, sets[g][x])
                                } else {
                                    $store(at, sets[g][x])
                                }
                            }
                            line = line.wrapping_offset(t.dst_line);
                        }
                    }
                }
            }
        };
    }

    /// The kernels of a level.
    macro_rules! kernels {
        (
            $name:ident: #[$compile:meta], $groups:literal groups of $parts:literal parts,
            $load:ident, $store:ident, $stream:ident;
            $($element:ty: $small:ident, $low:ident, $high:ident;)+
        ) => {
            pub static $name: Kernels = [$({
                block! {
                    Whole of $element: $groups groups of $parts parts,
                    $load, $low, $high, $store, $stream
                }
                #[$compile]
                unsafe fn kernel(t: &Transpose) {
                    // SAFETY: the caller's.
                    unsafe { blocks::<Whole, $small>(t) }
                }
                kernel
            }),+];
        };
    }

    /// The smallest blocks, which every such processor has.
    macro_rules! small {
        ($($name:ident of $element:ty: $low:ident, $high:ident;)+) => { $(
            block! {
                $name of $element: 1 groups of 1 parts,
                load1, $low, $high, _mm_storeu_si128, _mm_stream_si128
            }
        )+ };
    }

    small! {
        Small8 of u8: _mm_unpacklo_epi8, _mm_unpackhi_epi8;
        Small16 of u16: _mm_unpacklo_epi16, _mm_unpackhi_epi16;
        Small32 of u32: _mm_unpacklo_epi32, _mm_unpackhi_epi32;
        Small64 of u64: _mm_unpacklo_epi64, _mm_unpackhi_epi64;
    }

    kernels! {
        PORTABLE: #[inline(never)], 4 groups of 1 parts,
        load1, _mm_storeu_si128, _mm_stream_si128;
        u8: Small8, _mm_unpacklo_epi8, _mm_unpackhi_epi8;
        u16: Small16, _mm_unpacklo_epi16, _mm_unpackhi_epi16;
        u32: Small32, _mm_unpacklo_epi32, _mm_unpackhi_epi32;
        u64: Small64, _mm_unpacklo_epi64, _mm_unpackhi_epi64;
    }

    kernels! {
        AVX2: #[target_feature(enable = "avx2")], 2 groups of 2 parts,
        load2, _mm256_storeu_si256, _mm256_stream_si256;
        u8: Small8, _mm256_unpacklo_epi8, _mm256_unpackhi_epi8;
        u16: Small16, _mm256_unpacklo_epi16, _mm256_unpackhi_epi16;
        u32: Small32, _mm256_unpacklo_epi32, _mm256_unpackhi_epi32;
        u64: Small64, _mm256_unpacklo_epi64, _mm256_unpackhi_epi64;
    }

    kernels! {
        AVX512: #[target_feature(enable = "avx512f,avx512bw")], 1 groups of 4 parts,
        load4, _mm512_storeu_si512, _mm512_stream_si512;
        u8: Small8, _mm512_unpacklo_epi8, _mm512_unpackhi_epi8;
        u16: Small16, _mm512_unpacklo_epi16, _mm512_unpackhi_epi16;
        u32: Small32, _mm512_unpacklo_epi32, _mm512_unpackhi_epi32;
        u64: Small64, _mm512_unpacklo_epi64, _mm512_unpackhi_epi64;
    }

    #[inline(always)]
    unsafe fn load1(at: *const u8, _: isize) -> __m128i {
        // SAFETY: the caller's.
        unsafe { _mm_loadu_si128(at.cast()) }
    }

    /// 16 bytes each of lines that are `apart`.
    #[inline(always)]
    unsafe fn load2(at: *const u8, apart: isize) -> __m256i {
        // SAFETY: the caller's.
        unsafe {
            let low = _mm256_castsi128_si256(load1(at, 0));
            _mm256_inserti128_si256::<1>(low, load1(at.wrapping_offset(apart), 0))
        }
    }

    #[inline(always)]
    unsafe fn load4(at: *const u8, apart: isize) -> __m512i {
        // SAFETY: the caller's.
        unsafe {
            let r = _mm512_castsi128_si512(load1(at, 0));
            let at = at.wrapping_offset(apart);
            let r = _mm512_inserti32x4::<1>(r, load1(at, 0));
            let at = at.wrapping_offset(apart);
            let r = _mm512_inserti32x4::<2>(r, load1(at, 0));
            let at = at.wrapping_offset(apart);
            _mm512_inserti32x4::<3>(r, load1(at, 0))
        }
    }
}
