//! Which kernels this processor runs: one table, a row for each level.

use crate::convert;
use crate::copy::{rows, transpose};
use crate::cpu::Level;
use std::sync::OnceLock;

/// The kernels of one level.
pub(crate) struct Kernels {
    pub rows: rows::Kernels,
    pub transpose: transpose::Kernels,
    pub convert: &'static convert::Kernels,
}

static PORTABLE: Kernels =
    Kernels { rows: rows::PORTABLE, transpose: transpose::PORTABLE, convert: &convert::PORTABLE };

#[cfg(target_arch = "x86_64")]
static AVX2: Kernels =
    Kernels { rows: rows::AVX2, transpose: transpose::AVX2, convert: &convert::AVX2 };

#[cfg(target_arch = "x86_64")]
static AVX512: Kernels =
    Kernels { rows: rows::AVX512, transpose: transpose::AVX512, convert: &convert::AVX2 };

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
            Level::Avx2 => &AVX2,
            Level::Avx512 | Level::Avx512Vnni | Level::Avx512Bf16 => &AVX512,
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            let _ = level;
            &PORTABLE
        }
    }
}

/// Asks for a cache line to be brought near. The address need not be anybody's.
#[inline(always)]
pub(crate) fn prefetch(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch never faults.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T1>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}
