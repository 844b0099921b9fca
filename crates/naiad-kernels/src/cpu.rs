//! What this processor can do, asked once.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// A set of instructions that kernels are compiled for. Each has all that the ones before it have.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Level {
    /// What every processor of the target has.
    Portable = 1,
    /// AVX2, FMA and F16C.
    Avx2,
    /// AVX-512 F, BW, CD, DQ and VL.
    Avx512,
    /// And the products of pairs of integers, VNNI.
    Avx512Vnni,
    /// And those of pairs of bf16.
    Avx512Bf16,
}

impl Level {
    pub const ALL: [Level; 5] =
        [Level::Portable, Level::Avx2, Level::Avx512, Level::Avx512Vnni, Level::Avx512Bf16];

    /// The highest level of this processor.
    pub fn here() -> Level {
        // Asked again by whoever comes first in each thread, which does no harm.
        static HERE: AtomicU8 = AtomicU8::new(0);
        match HERE.load(Relaxed) {
            0 => {
                let level = detect();
                HERE.store(level as u8, Relaxed);
                level
            }
            known => Level::ALL[usize::from(known) - 1],
        }
    }

    /// The levels that this processor has, so that tests run the kernels of all of them.
    #[cfg(test)]
    pub fn available() -> impl Iterator<Item = Level> {
        Level::ALL.into_iter().filter(|level| *level <= Level::here())
    }
}

#[cfg(target_arch = "x86_64")]
fn detect() -> Level {
    macro_rules! has {
        ($($feature:tt)+) => { $( is_x86_feature_detected!($feature) )&&+ };
    }
    let steps = [
        has!("avx2" "fma" "f16c"),
        has!("avx512f" "avx512bw" "avx512cd" "avx512dq" "avx512vl"),
        has!("avx512vnni"),
        has!("avx512bf16"),
    ];
    Level::ALL[steps.iter().take_while(|has| **has).count()]
}

#[cfg(not(target_arch = "x86_64"))]
fn detect() -> Level {
    Level::Portable
}
