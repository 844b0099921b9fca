//! The keywords of a launch that are no parameters of the kernel.

use crate::settings::Settings;
use crate::{CompileOptions, Error, HostValue, Result};
use naiad_diag::{Diagnostic, Id};

/// What a launch option may be.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Takes {
    /// A power of two of at least 1.
    PowerOfTwo,
    /// An integer of at least 0.
    Count,
    Flag,
    /// Concerns other compilers only: not looked at.
    Anything,
}

/// Every option that Triton's back ends take. Those that only tune a GPU's code are accepted, and
/// checked where their values have a rule, so that launches move over unchanged.
const OPTIONS: &[(&str, Takes)] = &[
    ("num_warps", Takes::PowerOfTwo),
    ("num_stages", Takes::Count),
    ("num_ctas", Takes::PowerOfTwo),
    ("maxnreg", Takes::Count),
    ("enable_fp_fusion", Takes::Flag),
    ("debug", Takes::Flag),
    ("precise", Takes::Flag),
    ("sanitize_overflow", Takes::Flag),
    ("launch_pdl", Takes::Flag),
    ("launch_cooperative_grid", Takes::Flag),
    ("allowed_dot_input_precisions", Takes::Anything),
    ("arch", Takes::Anything),
    ("clc", Takes::Anything),
    ("default_dot_input_precision", Takes::Anything),
    ("enable_reflect_ftz", Takes::Anything),
    ("extern_libs", Takes::Anything),
    ("instrumentation_mode", Takes::Anything),
    ("ir_override", Takes::Anything),
    ("matrix_instr_nonkdim", Takes::Anything),
    ("maxRegAutoWS", Takes::Anything),
    ("min_shared_mem", Takes::Anything),
    ("ptx_options", Takes::Anything),
    ("ptx_version", Takes::Anything),
    ("sched4reg", Takes::Anything),
    ("supported_fp8_dtypes", Takes::Anything),
    ("waves_per_eu", Takes::Anything),
];

/// The launch options that something here reads.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct LaunchConfig {
    pub num_warps: u32,
    pub num_stages: u32,
    pub num_ctas: u32,
    pub maxnreg: Option<u32>,
    /// `a * b + c` may be one rounding.
    pub enable_fp_fusion: bool,
    /// Assertions are checked, and integer arithmetic for overflow; on a GPU also where accesses lead.
    pub debug: bool,
    /// In debug mode: whether overflow is checked.
    pub sanitize_overflow: bool,
    /// On a GPU: elementary functions as on a CPU, to the bit, instead of the chip's own.
    pub precise: bool,
    /// Compute capability of the GPU that the kernel is told it runs on; no option of a launch.
    pub cuda_capability: Option<(u32, u32)>,
}

impl Default for LaunchConfig {
    /// Triton's own defaults.
    fn default() -> LaunchConfig {
        LaunchConfig {
            num_warps: 4,
            num_stages: 3,
            num_ctas: 1,
            maxnreg: None,
            enable_fp_fusion: true,
            debug: false,
            sanitize_overflow: true,
            precise: Settings::get().precise,
            cuda_capability: None,
        }
    }
}

impl LaunchConfig {
    /// What the compiler needs to know of it.
    pub(crate) fn compile_options(&self) -> CompileOptions {
        CompileOptions {
            debug: self.debug,
            sanitize_overflow: self.sanitize_overflow,
            num_warps: self.num_warps,
            cuda_capability: self.cuda_capability,
        }
    }

    /// What the code for a GPU depends on.
    #[cfg(feature = "cuda")]
    pub fn target(&self, capability: u32) -> crate::Target {
        let LaunchConfig { num_warps, num_stages, precise, maxnreg, debug, .. } = *self;
        let guarded = debug;
        let few_programs = false;
        let options = naiad_gpu::Options {
            capability,
            num_warps,
            num_stages,
            precise,
            guarded,
            few_programs,
            prints: None,
        };
        crate::Target { options, max_registers: maxnreg.filter(|n| *n > 0) }
    }

    pub fn is_option(name: &str) -> bool {
        OPTIONS.iter().any(|(n, _)| *n == name)
    }

    pub fn names<'a>() -> impl Iterator<Item = &'a str> {
        OPTIONS.iter().map(|(n, _)| *n)
    }

    /// Takes over one option. `None` means the default, as in Triton.
    pub fn set(&mut self, name: &str, value: &HostValue) -> Result<()> {
        let Some(&(_, takes)) = OPTIONS.iter().find(|(n, _)| *n == name) else {
            return Err(bad(format!("`{name}` is no launch option")));
        };
        let value = match value {
            HostValue::Constexpr(inner) => inner,
            other => other,
        };
        if *value == HostValue::None {
            return Ok(());
        }
        let number = match (takes, value) {
            (Takes::Anything, _) => return Ok(()),
            (Takes::Flag, HostValue::Bool(b)) => *b as u32,
            (Takes::Flag, HostValue::Int(i)) => (*i != 0) as u32,
            (Takes::PowerOfTwo | Takes::Count, HostValue::Int(i)) => match u32::try_from(*i) {
                Ok(n) if takes == Takes::Count || n.is_power_of_two() => n,
                _ => return Err(wanted(name, takes, &i.to_string())),
            },
            (_, other) => {
                return Err(wanted(name, takes, &crate::Value::from(other.clone()).describe()));
            }
        };
        match name {
            "num_warps" => self.num_warps = number,
            "num_stages" => self.num_stages = number,
            "num_ctas" => self.num_ctas = number,
            "maxnreg" => self.maxnreg = Some(number),
            "enable_fp_fusion" => self.enable_fp_fusion = number != 0,
            "precise" => self.precise = number != 0,
            "debug" => self.debug = number != 0,
            "sanitize_overflow" => self.sanitize_overflow = number != 0,
            _ => {}
        }
        Ok(())
    }
}

fn wanted(name: &str, takes: Takes, given: &str) -> Error {
    let wanted = match takes {
        Takes::PowerOfTwo => "a power of two",
        Takes::Count => "an integer that is not negative",
        Takes::Flag => "True or False",
        Takes::Anything => "anything",
    };
    bad(format!("the launch option `{name}` must be {wanted}, not {given}"))
}

fn bad(message: String) -> Error {
    Diagnostic::new(Id::BadLaunch, message).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_checked() {
        let mut config = LaunchConfig::default();
        config.set("num_warps", &HostValue::Int(8)).unwrap();
        config.set("num_stages", &HostValue::None).unwrap();
        config.set("waves_per_eu", &HostValue::Str("any".into())).unwrap();
        assert_eq!(config, LaunchConfig { num_warps: 8, ..LaunchConfig::default() });
        let cases = [
            ("num_warps", HostValue::Int(3), "must be a power of two, not 3"),
            ("num_warps", HostValue::Float(4.0), "must be a power of two, not the float 4.0"),
            ("num_stages", HostValue::Int(-1), "not negative, not -1"),
            ("debug", HostValue::Str("x".into()), "must be True or False"),
            ("num_warp", HostValue::Int(4), "no launch option"),
        ];
        for (name, value, want) in cases {
            let message = config.set(name, &value).unwrap_err().diagnostic().message.clone();
            assert!(message.contains(want), "{message}");
        }
    }
}
