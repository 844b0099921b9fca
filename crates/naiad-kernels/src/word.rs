//! Vectors of 32-bit words, in which images of floats are taken apart and put together.
//!
//! Loops over short rows that a compiler is left to vectorize come out well or badly by its guesses
//! at how long rows are. So conversions are written over this trait, once, and run in whole vectors.
//! One word is an instance too: for what is left of a row, and where there is nothing better.
//!
//! All methods are `inline(always)`, for the reason that [`crate::dot`]'s vectors have.

/// A vector of words. Comparisons hold for words below 2^31.
pub(crate) trait Word: Copy {
    const LANES: usize;
    type Mask: Copy;

    unsafe fn splat(x: u32) -> Self;
    /// Elements of 8 bits, zero-extended; of 8 bits, sign-extended; of 16 and of 32 bits.
    unsafe fn load8(at: *const u8) -> Self;
    unsafe fn load8_signed(at: *const u8) -> Self;
    unsafe fn load16(at: *const u8) -> Self;
    unsafe fn load32(at: *const u8) -> Self;
    /// The low bits of the words.
    unsafe fn store8(self, at: *mut u8);
    unsafe fn store16(self, at: *mut u8);
    unsafe fn store32(self, at: *mut u8);
    unsafe fn and(self, other: Self) -> Self;
    unsafe fn or(self, other: Self) -> Self;
    unsafe fn shl(self, by: u32) -> Self;
    unsafe fn shr(self, by: u32) -> Self;
    unsafe fn add(self, other: Self) -> Self;
    unsafe fn sub(self, other: Self) -> Self;
    unsafe fn lt(self, other: Self) -> Self::Mask;
    unsafe fn select(mask: Self::Mask, yes: Self, no: Self) -> Self;
    /// As fp32.
    unsafe fn add_f32(self, other: Self) -> Self;
    unsafe fn sub_f32(self, other: Self) -> Self;
    /// Whether any bit is set.
    unsafe fn any(self) -> bool;
}

// SAFETY (of all blocks here): addresses are the caller's.
impl Word for u32 {
    const LANES: usize = 1;
    type Mask = bool;

    #[inline(always)]
    unsafe fn splat(x: u32) -> u32 {
        x
    }

    #[inline(always)]
    unsafe fn load8(at: *const u8) -> u32 {
        u32::from(unsafe { at.read() })
    }

    #[inline(always)]
    unsafe fn load8_signed(at: *const u8) -> u32 {
        i32::from(unsafe { at.cast::<i8>().read() }) as u32
    }

    #[inline(always)]
    unsafe fn load16(at: *const u8) -> u32 {
        u32::from(unsafe { at.cast::<u16>().read_unaligned() })
    }

    #[inline(always)]
    unsafe fn load32(at: *const u8) -> u32 {
        unsafe { at.cast::<u32>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn store8(self, at: *mut u8) {
        unsafe { at.write(self as u8) }
    }

    #[inline(always)]
    unsafe fn store16(self, at: *mut u8) {
        unsafe { at.cast::<u16>().write_unaligned(self as u16) }
    }

    #[inline(always)]
    unsafe fn store32(self, at: *mut u8) {
        unsafe { at.cast::<u32>().write_unaligned(self) }
    }

    #[inline(always)]
    unsafe fn and(self, other: u32) -> u32 {
        self & other
    }

    #[inline(always)]
    unsafe fn or(self, other: u32) -> u32 {
        self | other
    }

    #[inline(always)]
    unsafe fn shl(self, by: u32) -> u32 {
        self << by
    }

    #[inline(always)]
    unsafe fn shr(self, by: u32) -> u32 {
        self >> by
    }

    #[inline(always)]
    unsafe fn add(self, other: u32) -> u32 {
        self.wrapping_add(other)
    }

    #[inline(always)]
    unsafe fn sub(self, other: u32) -> u32 {
        self.wrapping_sub(other)
    }

    #[inline(always)]
    unsafe fn lt(self, other: u32) -> bool {
        (self as i32) < other as i32
    }

    #[inline(always)]
    unsafe fn select(mask: bool, yes: u32, no: u32) -> u32 {
        if mask { yes } else { no }
    }

    #[inline(always)]
    unsafe fn add_f32(self, other: u32) -> u32 {
        (f32::from_bits(self) + f32::from_bits(other)).to_bits()
    }

    #[inline(always)]
    unsafe fn sub_f32(self, other: u32) -> u32 {
        (f32::from_bits(self) - f32::from_bits(other)).to_bits()
    }

    #[inline(always)]
    unsafe fn any(self) -> bool {
        self != 0
    }
}

#[cfg(target_arch = "x86_64")]
pub(crate) use x86::*;

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Word;
    use std::arch::x86_64::*;

    /// A vector type from an expression for each of its methods, of the names in the head.
    macro_rules! words {
        (
            $name:ident($raw:ident) of $lanes:literal, masks $mask:ident, ($at:ident, $x:ident, $y:ident, $by:ident);
            splat $splat:expr;
            load8 $load8:expr; load8_signed $load8_signed:expr; load16 $load16:expr; load32 $load32:expr;
            store8 $store8:expr; store16 $store16:expr; store32 $store32:expr;
            and $and:expr; or $or:expr; shl $shl:expr; shr $shr:expr; add $add:expr; sub $sub:expr;
            lt $lt:expr; select $select:expr; add_f32 $add_f32:expr; sub_f32 $sub_f32:expr; any $any:expr;
        ) => {
            #[derive(Copy, Clone)]
            pub(crate) struct $name($raw);

            // SAFETY (of all blocks): callers have the target features, and addresses are theirs.
            impl Word for $name {
                const LANES: usize = $lanes;
                type Mask = $mask;

                words! { @make $name $x: u32, $splat; splat }
                words! { @make $name $at: *const u8, $load8; load8 }
                words! { @make $name $at: *const u8, $load8_signed; load8_signed }
                words! { @make $name $at: *const u8, $load16; load16 }
                words! { @make $name $at: *const u8, $load32; load32 }
                words! { @store $at, $x, $store8; store8 }
                words! { @store $at, $x, $store16; store16 }
                words! { @store $at, $x, $store32; store32 }
                words! { @two $name $x, $y, $and; and }
                words! { @two $name $x, $y, $or; or }
                words! { @two $name $x, $y, $add; add }
                words! { @two $name $x, $y, $sub; sub }
                words! { @two $name $x, $y, $add_f32; add_f32 }
                words! { @two $name $x, $y, $sub_f32; sub_f32 }
                words! { @shift $name $x, $by, $shl; shl }
                words! { @shift $name $x, $by, $shr; shr }

                #[inline(always)]
                unsafe fn lt(self, other: Self) -> $mask {
                    let ($x, $y) = (self.0, other.0);
                    unsafe { $lt }
                }

                #[inline(always)]
                unsafe fn select($by: $mask, yes: Self, no: Self) -> Self {
                    let ($x, $y) = (yes.0, no.0);
                    $name(unsafe { $select })
                }

                #[inline(always)]
                unsafe fn any(self) -> bool {
                    let $x = self.0;
                    unsafe { $any }
                }
            }
        };
        (@make $name:ident $x:ident: $t:ty, $body:expr; $method:ident) => {
            #[inline(always)]
            unsafe fn $method($x: $t) -> Self {
                $name(unsafe { $body })
            }
        };
        (@store $at:ident, $x:ident, $body:expr; $method:ident) => {
            #[inline(always)]
            unsafe fn $method(self, $at: *mut u8) {
                let $x = self.0;
                unsafe { $body }
            }
        };
        (@two $name:ident $x:ident, $y:ident, $body:expr; $method:ident) => {
            #[inline(always)]
            unsafe fn $method(self, other: Self) -> Self {
                let ($x, $y) = (self.0, other.0);
                $name(unsafe { $body })
            }
        };
        (@shift $name:ident $x:ident, $by:ident, $body:expr; $method:ident) => {
            #[inline(always)]
            unsafe fn $method(self, by: u32) -> Self {
                let ($x, $by) = (self.0, unsafe { _mm_cvtsi32_si128(by as i32) });
                $name(unsafe { $body })
            }
        };
    }

    words! {
        Ymm(__m256i) of 8, masks __m256i, (at, x, y, by);
        splat _mm256_set1_epi32(x as i32);
        load8 _mm256_cvtepu8_epi32(_mm_loadl_epi64(at.cast()));
        load8_signed _mm256_cvtepi8_epi32(_mm_loadl_epi64(at.cast()));
        load16 _mm256_cvtepu16_epi32(_mm_loadu_si128(at.cast()));
        load32 _mm256_loadu_si256(at.cast());
        store8 _mm_storel_epi64(at.cast(), {
            // The low byte of each word, to the front of its half.
            let low = _mm256_set1_epi64x(0x0c08_0400);
            let halves = _mm256_shuffle_epi8(x, low);
            _mm_unpacklo_epi32(_mm256_castsi256_si128(halves), _mm256_extracti128_si256::<1>(halves))
        });
        store16 _mm_storeu_si128(at.cast(), {
            let low = _mm256_set1_epi64x(0x0d0c_0908_0504_0100);
            let halves = _mm256_shuffle_epi8(x, low);
            _mm_unpacklo_epi64(_mm256_castsi256_si128(halves), _mm256_extracti128_si256::<1>(halves))
        });
        store32 _mm256_storeu_si256(at.cast(), x);
        and _mm256_and_si256(x, y);
        or _mm256_or_si256(x, y);
        shl _mm256_sll_epi32(x, by);
        shr _mm256_srl_epi32(x, by);
        add _mm256_add_epi32(x, y);
        sub _mm256_sub_epi32(x, y);
        lt _mm256_cmpgt_epi32(y, x);
        select _mm256_blendv_epi8(y, x, by);
        add_f32 _mm256_castps_si256(_mm256_add_ps(_mm256_castsi256_ps(x), _mm256_castsi256_ps(y)));
        sub_f32 _mm256_castps_si256(_mm256_sub_ps(_mm256_castsi256_ps(x), _mm256_castsi256_ps(y)));
        any _mm256_testz_si256(x, x) == 0;
    }

    words! {
        Zmm(__m512i) of 16, masks __mmask16, (at, x, y, by);
        splat _mm512_set1_epi32(x as i32);
        load8 _mm512_cvtepu8_epi32(_mm_loadu_si128(at.cast()));
        load8_signed _mm512_cvtepi8_epi32(_mm_loadu_si128(at.cast()));
        load16 _mm512_cvtepu16_epi32(_mm256_loadu_si256(at.cast()));
        load32 _mm512_loadu_si512(at.cast());
        store8 _mm_storeu_si128(at.cast(), _mm512_cvtepi32_epi8(x));
        store16 _mm256_storeu_si256(at.cast(), _mm512_cvtepi32_epi16(x));
        store32 _mm512_storeu_si512(at.cast(), x);
        and _mm512_and_si512(x, y);
        or _mm512_or_si512(x, y);
        shl _mm512_sll_epi32(x, by);
        shr _mm512_srl_epi32(x, by);
        add _mm512_add_epi32(x, y);
        sub _mm512_sub_epi32(x, y);
        lt _mm512_cmplt_epi32_mask(x, y);
        select _mm512_mask_blend_epi32(by, y, x);
        add_f32 _mm512_castps_si512(_mm512_add_ps(_mm512_castsi512_ps(x), _mm512_castsi512_ps(y)));
        sub_f32 _mm512_castps_si512(_mm512_sub_ps(_mm512_castsi512_ps(x), _mm512_castsi512_ps(y)));
        any _mm512_test_epi32_mask(x, x) != 0;
    }
}
