//! What this processor can do, asked once.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// A set of instructions that kernels are compiled for. Each has all that the ones before it have.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Level {
    /// What every processor of the target has.
    Portable = 1,
    /// AVX2, FMA, F16C, and the instructions on bits that came with them.
    Avx2,
    /// AVX-512 F, BW, CD, DQ and VL.
    Avx512,
    /// And the products of pairs of integers, VNNI.
    Avx512Vnni,
    /// And those of pairs of bf16.
    Avx512Bf16,
}

/// What the process uses, by its number; 0 where nobody has asked yet.
static HERE: AtomicU8 = AtomicU8::new(0);

impl Level {
    pub const ALL: [Level; 5] =
        [Level::Portable, Level::Avx2, Level::Avx512, Level::Avx512Vnni, Level::Avx512Bf16];

    /// What users call it.
    pub const fn name(self) -> &'static str {
        match self {
            Level::Portable => "portable",
            Level::Avx2 => "avx2",
            Level::Avx512 => "avx512",
            Level::Avx512Vnni => "avx512_vnni",
            Level::Avx512Bf16 => "avx512_bf16",
        }
    }

    /// The level that kernels are for: the highest of this processor, or what it is [limited](Level::limit)
    /// to.
    pub fn here() -> Level {
        match HERE.load(Relaxed) {
            // Asked again by whoever comes first in each thread, which does no harm. A limit that was set
            // meanwhile stays.
            0 => {
                let _ = HERE.compare_exchange(0, detect() as u8, Relaxed, Relaxed);
                Level::here()
            }
            known => Level::ALL[usize::from(known) - 1],
        }
    }

    /// Takes this processor for one of a lesser level, from now on; whatever has been chosen by then
    /// stays as it is, so this comes first in a process. Gives false, and does nothing, where the
    /// processor is below that level.
    pub fn limit(level: Level) -> bool {
        let has = level <= detect();
        if has {
            HERE.store(level as u8, Relaxed);
        }
        has
    }

    /// The levels that this processor has.
    pub fn available() -> impl Iterator<Item = Level> {
        let highest = detect();
        Level::ALL.into_iter().filter(move |level| *level <= highest)
    }
}

#[cfg(target_arch = "x86_64")]
fn detect() -> Level {
    macro_rules! has {
        ($($feature:tt)+) => { $( is_x86_feature_detected!($feature) )&&+ };
    }
    let steps = [
        has!("avx2" "fma" "f16c" "bmi1" "bmi2" "lzcnt"),
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
