//! Which kernels this processor runs: one table, a row for each level.

use crate::convert;
use crate::copy::{rows, transpose};
use crate::cpu::Level;
use crate::dot::{Families, micro, packed};
use std::sync::OnceLock;

/// The kernels of one level.
pub(crate) struct Kernels {
    pub rows: rows::Kernels,
    pub transpose: transpose::Kernels,
    pub convert: &'static convert::Kernels,
    pub packing: &'static packed::Kernels,
    pub families: Families,
}

static PORTABLE: Kernels = Kernels {
    rows: rows::PORTABLE,
    transpose: transpose::PORTABLE,
    convert: &convert::PORTABLE,
    packing: &packed::PORTABLE,
    families: Families {
        f32: &micro::PORTABLE_F32,
        f64: &micro::PORTABLE_F64,
        i32: &micro::PORTABLE_I32,
        ints: &micro::PORTABLE_INTS,
        bf16: None,
    },
};

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::*;
    use crate::dot::Family;

    pub static AVX2: Kernels = Kernels {
        rows: rows::AVX2,
        transpose: transpose::AVX2,
        convert: &convert::AVX2,
        packing: &packed::AVX2,
        families: Families {
            f32: &micro::AVX2_F32,
            f64: &micro::AVX2_F64,
            i32: &micro::AVX2_I32,
            ints: &micro::AVX2_INTS,
            bf16: None,
        },
    };

    pub static AVX512: Kernels = avx512(&micro::AVX512_INTS, None);
    pub static AVX512_VNNI: Kernels = avx512(&micro::VNNI_INTS, None);
    pub static AVX512_BF16: Kernels = avx512(&micro::VNNI_INTS, Some(&micro::BF16_PAIRS));

    const fn avx512(ints: &'static Family, bf16: Option<&'static Family>) -> Kernels {
        Kernels {
            rows: rows::AVX512,
            transpose: transpose::AVX512,
            convert: &convert::AVX512,
            packing: &packed::AVX512,
            families: Families {
                f32: &micro::AVX512_F32,
                f64: &micro::AVX512_F64,
                i32: &micro::AVX2_I32,
                ints,
                bf16,
            },
        }
    }
}

impl Kernels {
    /// The best that this processor runs.
    #[inline]
    pub fn here() -> &'static Kernels {
        static HERE: OnceLock<&Kernels> = OnceLock::new();
        HERE.get_or_init(|| Kernels::of(Level::here()))
    }

    /// Those of a level, which the processor must have.
    pub fn of(level: Level) -> &'static Kernels {
        #[cfg(target_arch = "x86_64")]
        match level {
            Level::Portable => &PORTABLE,
            Level::Avx2 => &x86::AVX2,
            Level::Avx512 => &x86::AVX512,
            Level::Avx512Vnni => &x86::AVX512_VNNI,
            Level::Avx512Bf16 => &x86::AVX512_BF16,
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            let _ = level;
            &PORTABLE
        }
    }
}

/// Asks for a cache line to be brought to the second-level cache, for later. The address need not be
/// anybody's.
#[inline(always)]
pub(crate) fn prefetch_far(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch never faults.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T1>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// The same, but to the first-level cache.
#[inline(always)]
pub(crate) fn prefetch_near(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch never faults.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}
