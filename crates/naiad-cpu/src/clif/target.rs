//! What is known of the machine that code is written for.

use super::{Error, fault};
use crate::wide::Level;
use cranelift_codegen::isa::{self, OwnedTargetIsa};
use cranelift_codegen::settings::{self, Configurable};
use naiad_kernels::Level as Processor;
use std::sync::OnceLock;

pub struct Target {
    pub isa: OwnedTargetIsa,
    /// Whether lanes can be chosen by the sign of a mask's lanes in one instruction.
    pub blends: bool,
    /// Whether vectors of floats are rounded to integers in one instruction.
    pub rounds: bool,
    /// The vectors of the loops that are written beside Cranelift.
    pub wide: Option<Level>,
}

impl Target {
    /// This machine, with all of its instructions that Cranelift knows; of a [limited](Processor::limit)
    /// one, those of its level.
    pub fn host() -> Result<&'static Target, Error> {
        static HOST: OnceLock<Result<Target, Error>> = OnceLock::new();
        let host = HOST.get_or_init(|| Target::wide(Level::host()));
        host.as_ref().map_err(Clone::clone)
    }

    /// This machine, with loops over such vectors, or none.
    pub fn wide(level: Option<Level>) -> Result<Target, Error> {
        let processor = Processor::here();
        let target = match Processor::available().last() == Some(processor) {
            true => Target::new(cranelift_native::builder())?,
            false => Target::with(features(processor))?,
        };
        Ok(Target { wide: level, ..target })
    }

    /// This machine as if it had only what every one of its kind has, and these features.
    pub fn with(features: &[&str]) -> Result<Target, Error> {
        let mut builder = cranelift_native::builder_with_options(false);
        if let Ok(builder) = &mut builder {
            for feature in features {
                builder.enable(feature).map_err(|e| fault("this machine", e))?;
            }
        }
        Target::new(builder)
    }

    fn new(builder: Result<isa::Builder, &'static str>) -> Result<Target, Error> {
        let wrong = |why: &dyn std::fmt::Display| fault("this machine", why);
        let mut flags = settings::builder();
        // Without its optimizer Cranelift keeps the order of ops, which makers of Thread IR choose, and
        // takes constants from memory as the writer asks. With it, loops took up to 1.7 times as long
        // to run and half as long again to write; with `single_pass`, up to 2.2 times as long to run.
        for (name, value) in [
            ("opt_level", "none"),
            ("regalloc_algorithm", "backtracking"),
            ("enable_verifier", if cfg!(test) { "true" } else { "false" }),
            ("enable_probestack", "false"),
            ("is_pic", "false"),
        ] {
            flags.set(name, value).map_err(|e| wrong(&e))?;
        }
        let builder = builder.map_err(|e| wrong(&e))?;
        let isa = builder.finish(settings::Flags::new(flags)).map_err(|e| wrong(&e))?;
        let has = |name: &str| {
            isa.isa_flags().iter().any(|f| f.name == name && f.as_bool() == Some(true))
        };
        let x64 = isa.name() == "x64";
        let (blends, rounds) = (x64 && has("has_sse41"), !x64 || has("has_sse41"));
        Ok(Target { isa, blends, rounds, wide: None })
    }
}

/// Cranelift's names for what a level has beyond what every machine of its kind has.
pub fn features(processor: Processor) -> &'static [&'static str] {
    const AVX2: &[&str] = &[
        "has_sse3",
        "has_ssse3",
        "has_sse41",
        "has_sse42",
        "has_popcnt",
        "has_avx",
        "has_avx2",
        "has_fma",
        "has_bmi1",
        "has_bmi2",
        "has_lzcnt",
    ];
    match processor {
        Processor::Portable => &[],
        // What AVX-512 has besides is the wide loops' alone.
        Processor::Avx2 | Processor::Avx512 | Processor::Avx512Vnni | Processor::Avx512Bf16 => AVX2,
    }
}

/// Marks the upper halves of the wide vector registers as unused.
///
/// Cranelift moves and spills with instructions that keep those halves. While they hold something, as
/// after code that was compiled for wide vectors, each such instruction waits for the one before it,
/// and loops run 50 to 250 times slower.
#[inline]
pub fn clear_upper_halves() {
    #[cfg(target_arch = "x86_64")]
    {
        if std::is_x86_feature_detected!("avx") {
            // SAFETY: the machine has the instruction.
            unsafe { std::arch::x86_64::_mm256_zeroupper() };
        }
    }
}
