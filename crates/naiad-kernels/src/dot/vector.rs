//! The vectors that the microkernel computes in, one type for each level and kind of sum.
//!
//! | kind | an operand's element | what one step adds |
//! |---|---|---|
//! | f32, f64, i32 | a number | `a * b`, fused where the machine can; integers wrap |
//! | pairs of i16 | two numbers of consecutive `k` | `a0 * b0 + a1 * b1`, wrapping, exact |
//! | pairs of bf16 | the same | the same, rounded to f32 twice |
//!
//! All methods are `inline(always)`: they must end up inside a function that has the target features, or
//! each would be a call that passes its vectors through memory.

/// A vector of sums.
pub(super) trait Vector: Copy {
    const LANES: usize;
    /// Bytes of an element, of operands and of sums alike.
    const SIZE: usize;

    unsafe fn zero() -> Self;
    unsafe fn load(at: *const u8) -> Self;
    unsafe fn store(self, at: *mut u8);
    /// The first `lanes` lanes, fewer than all; nothing beyond is touched.
    unsafe fn load_first(at: *const u8, lanes: usize) -> Self;
    unsafe fn store_first(self, at: *mut u8, lanes: usize);
    /// One element in all lanes.
    unsafe fn splat(at: *const u8) -> Self;
    /// `self` and the products of `a` and `b`.
    unsafe fn plus_product(self, a: Self, b: Self) -> Self;
}

/// Lanes as an array, which compilers vectorize with what every machine of the target has.
#[derive(Copy, Clone)]
pub(super) struct Lanes<T, const N: usize>([T; N]);

/// An integer in an array of lanes.
#[derive(Copy, Clone)]
pub(super) struct Int(i32);

/// A pair of i16 in an array of lanes.
#[derive(Copy, Clone)]
pub(super) struct IntPair(i32);

trait Element: Copy {
    const ZERO: Self;
    fn plus_product(self, a: Self, b: Self) -> Self;
}

macro_rules! float_elements {
    ($($t:ident)+) => { $(
        impl Element for $t {
            const ZERO: $t = 0.0;

            #[inline(always)]
            fn plus_product(self, a: $t, b: $t) -> $t {
                // Where there is no instruction, `mul_add` is a call and 50 times slower.
                if cfg!(any(target_feature = "fma", target_arch = "aarch64")) {
                    a.mul_add(b, self)
                } else {
                    self + a * b
                }
            }
        }
    )+ };
}

float_elements!(f32 f64);

impl Element for Int {
    const ZERO: Int = Int(0);

    #[inline(always)]
    fn plus_product(self, a: Int, b: Int) -> Int {
        Int(self.0.wrapping_add(a.0.wrapping_mul(b.0)))
    }
}

impl Element for IntPair {
    const ZERO: IntPair = IntPair(0);

    #[inline(always)]
    fn plus_product(self, a: IntPair, b: IntPair) -> IntPair {
        // The low half, sign-extended; and the high one.
        let (a0, b0) = (i32::from(a.0 as i16), i32::from(b.0 as i16));
        let (a1, b1) = (a.0 >> 16, b.0 >> 16);
        IntPair(self.0.wrapping_add(a0.wrapping_mul(b0)).wrapping_add(a1.wrapping_mul(b1)))
    }
}

impl<T: Element, const N: usize> Vector for Lanes<T, N> {
    const LANES: usize = N;
    const SIZE: usize = size_of::<T>();

    #[inline(always)]
    unsafe fn zero() -> Self {
        Lanes([T::ZERO; N])
    }

    #[inline(always)]
    unsafe fn load(at: *const u8) -> Self {
        unsafe { Lanes(at.cast::<[T; N]>().read_unaligned()) }
    }

    #[inline(always)]
    unsafe fn store(self, at: *mut u8) {
        unsafe { at.cast::<[T; N]>().write_unaligned(self.0) }
    }

    #[inline(always)]
    unsafe fn load_first(at: *const u8, lanes: usize) -> Self {
        let mut out = [T::ZERO; N];
        for (i, x) in out.iter_mut().enumerate().take(lanes) {
            *x = unsafe { at.cast::<T>().wrapping_add(i).read_unaligned() };
        }
        Lanes(out)
    }

    #[inline(always)]
    unsafe fn store_first(self, at: *mut u8, lanes: usize) {
        for (i, x) in self.0.iter().enumerate().take(lanes) {
            unsafe { at.cast::<T>().wrapping_add(i).write_unaligned(*x) };
        }
    }

    #[inline(always)]
    unsafe fn splat(at: *const u8) -> Self {
        Lanes([unsafe { at.cast::<T>().read_unaligned() }; N])
    }

    #[inline(always)]
    unsafe fn plus_product(self, a: Self, b: Self) -> Self {
        let mut out = self.0;
        for (i, x) in out.iter_mut().enumerate() {
            *x = x.plus_product(a.0[i], b.0[i]);
        }
        Lanes(out)
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) use x86::*;

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Vector;
    use std::arch::x86_64::*;

    /// A vector type from the instructions for each of its methods. `$lanes` is the number of lanes,
    /// of which a mask for the first few is made.
    macro_rules! vector {
        (
            $(#[$doc:meta])* $name:ident($raw:ident) of $lanes:literal times $size:literal,
            zero $zero:ident, load $load:ident, store $store:ident, mask $mask:ident, $masked_load:expr, $masked_store:expr,
            splat $splat:expr, plus_product $fma:expr
        ) => {
            $(#[$doc])*
            #[derive(Copy, Clone)]
            pub(in crate::dot) struct $name($raw);

            // SAFETY (of all blocks): callers have the target features, and the addresses are theirs.
            impl Vector for $name {
                const LANES: usize = $lanes;
                const SIZE: usize = $size;

                #[inline(always)]
                unsafe fn zero() -> Self {
                    $name(unsafe { $zero() })
                }

                #[inline(always)]
                unsafe fn load(at: *const u8) -> Self {
                    $name(unsafe { $load(at.cast()) })
                }

                #[inline(always)]
                unsafe fn store(self, at: *mut u8) {
                    unsafe { $store(at.cast(), self.0) }
                }

                #[inline(always)]
                unsafe fn load_first(at: *const u8, lanes: usize) -> Self {
                    $name(unsafe { $masked_load(at.cast(), $mask(lanes)) })
                }

                #[inline(always)]
                unsafe fn store_first(self, at: *mut u8, lanes: usize) {
                    unsafe { $masked_store(at.cast(), $mask(lanes), self.0) }
                }

                #[inline(always)]
                unsafe fn splat(at: *const u8) -> Self {
                    $name(unsafe { $splat(at) })
                }

                #[inline(always)]
                unsafe fn plus_product(self, a: Self, b: Self) -> Self {
                    $name(unsafe { $fma(self.0, a.0, b.0) })
                }
            }
        };
    }

    #[inline(always)]
    fn bits16(lanes: usize) -> __mmask16 {
        ((1u32 << lanes) - 1) as u16
    }

    #[inline(always)]
    fn bits8(lanes: usize) -> __mmask8 {
        ((1u32 << lanes) - 1) as u8
    }

    #[inline(always)]
    unsafe fn lanes32(lanes: usize) -> __m256i {
        unsafe {
            let index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
            _mm256_cmpgt_epi32(_mm256_set1_epi32(lanes as i32), index)
        }
    }

    #[inline(always)]
    unsafe fn lanes64(lanes: usize) -> __m256i {
        unsafe {
            let index = _mm256_setr_epi64x(0, 1, 2, 3);
            _mm256_cmpgt_epi64(_mm256_set1_epi64x(lanes as i64), index)
        }
    }

    #[inline(always)]
    unsafe fn read32(at: *const u8) -> i32 {
        unsafe { at.cast::<i32>().read_unaligned() }
    }

    vector! {
        F32x16(__m512) of 16 times 4,
        zero _mm512_setzero_ps, load _mm512_loadu_ps, store _mm512_storeu_ps,
        mask bits16, |at, mask| _mm512_maskz_loadu_ps(mask, at), _mm512_mask_storeu_ps,
        splat |at: *const u8| _mm512_set1_ps(at.cast::<f32>().read_unaligned()),
        plus_product |c, a, b| _mm512_fmadd_ps(a, b, c)
    }

    vector! {
        F64x8(__m512d) of 8 times 8,
        zero _mm512_setzero_pd, load _mm512_loadu_pd, store _mm512_storeu_pd,
        mask bits8, |at, mask| _mm512_maskz_loadu_pd(mask, at), _mm512_mask_storeu_pd,
        splat |at: *const u8| _mm512_set1_pd(at.cast::<f64>().read_unaligned()),
        plus_product |c, a, b| _mm512_fmadd_pd(a, b, c)
    }

    vector! {
        IntPairx16(__m512i) of 16 times 4,
        zero _mm512_setzero_si512, load _mm512_loadu_si512, store _mm512_storeu_si512,
        mask bits16, |at, mask| _mm512_maskz_loadu_epi32(mask, at), _mm512_mask_storeu_epi32,
        splat |at| _mm512_set1_epi32(read32(at)),
        plus_product |c, a, b| _mm512_add_epi32(c, _mm512_madd_epi16(a, b))
    }

    vector! {
        /// With the instruction for it, `vpdpwssd`.
        VnniPairx16(__m512i) of 16 times 4,
        zero _mm512_setzero_si512, load _mm512_loadu_si512, store _mm512_storeu_si512,
        mask bits16, |at, mask| _mm512_maskz_loadu_epi32(mask, at), _mm512_mask_storeu_epi32,
        splat |at| _mm512_set1_epi32(read32(at)),
        plus_product |c, a, b| _mm512_dpwssd_epi32(c, a, b)
    }

    vector! {
        Bf16Pairx16(__m512) of 16 times 4,
        zero _mm512_setzero_ps, load _mm512_loadu_ps, store _mm512_storeu_ps,
        mask bits16, |at, mask| _mm512_maskz_loadu_ps(mask, at), _mm512_mask_storeu_ps,
        splat |at: *const u8| _mm512_set1_ps(at.cast::<f32>().read_unaligned()),
        plus_product |c, a, b| {
            let bits = |x: __m512| std::mem::transmute::<__m512, __m512bh>(x);
            _mm512_dpbf16_ps(c, bits(a), bits(b))
        }
    }

    vector! {
        F32x8(__m256) of 8 times 4,
        zero _mm256_setzero_ps, load _mm256_loadu_ps, store _mm256_storeu_ps,
        mask lanes32, |at, mask| _mm256_maskload_ps(at, mask), _mm256_maskstore_ps,
        splat |at: *const u8| _mm256_set1_ps(at.cast::<f32>().read_unaligned()),
        plus_product |c, a, b| _mm256_fmadd_ps(a, b, c)
    }

    vector! {
        F64x4(__m256d) of 4 times 8,
        zero _mm256_setzero_pd, load _mm256_loadu_pd, store _mm256_storeu_pd,
        mask lanes64, |at, mask| _mm256_maskload_pd(at, mask), _mm256_maskstore_pd,
        splat |at: *const u8| _mm256_set1_pd(at.cast::<f64>().read_unaligned()),
        plus_product |c, a, b| _mm256_fmadd_pd(a, b, c)
    }

    vector! {
        I32x8(__m256i) of 8 times 4,
        zero _mm256_setzero_si256, load _mm256_loadu_si256, store _mm256_storeu_si256,
        mask lanes32, |at, mask| _mm256_maskload_epi32(at, mask), _mm256_maskstore_epi32,
        splat |at| _mm256_set1_epi32(read32(at)),
        plus_product |c, a, b| _mm256_add_epi32(c, _mm256_mullo_epi32(a, b))
    }

    vector! {
        IntPairx8(__m256i) of 8 times 4,
        zero _mm256_setzero_si256, load _mm256_loadu_si256, store _mm256_storeu_si256,
        mask lanes32, |at, mask| _mm256_maskload_epi32(at, mask), _mm256_maskstore_epi32,
        splat |at| _mm256_set1_epi32(read32(at)),
        plus_product |c, a, b| _mm256_add_epi32(c, _mm256_madd_epi16(a, b))
    }
}
