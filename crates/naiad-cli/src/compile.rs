//! `naiad compile`.

use crate::Common;
use crate::output::Output;
use crate::ptxas;
use clap::{Args, ValueEnum};
use naiad::{Diagnostic, HostValue, Id, LaunchConfig, Module, Result, Stage};

#[derive(Args)]
pub struct Compile {
    /// The kernel, as FILE::KERNEL; the name may be left out where the file has one kernel.
    kernel: String,
    /// Types and constexpr values, such as "x=*fp32,n=i32,BLOCK=1024".
    #[arg(long, default_value = "")]
    signature: String,
    /// What to print.
    #[arg(long, value_enum, default_value_t)]
    emit: Emit,
    /// For a GPU, by its compute capability: sm_80, sm_90. Types may say by what an argument is divisible,
    /// as in "n=i32:16"; addresses are by 16 unless they say otherwise.
    #[arg(long, value_parser = chip)]
    gpu: Option<u32>,
    /// For a GPU: warps of a program.
    #[arg(long, default_value_t = 4)]
    num_warps: u32,
    /// For a GPU: stages of pipelined loops.
    #[arg(long, default_value_t = 3)]
    num_stages: u32,
    /// For a GPU: elementary functions as on a CPU, to the bit.
    #[arg(long)]
    precise: bool,
    /// Writes to a file instead.
    #[arg(long, short)]
    output: Option<String>,
    #[command(flatten)]
    pub common: Common,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, ValueEnum)]
enum Emit {
    /// Tile IR.
    #[default]
    Tile,
    /// Tile IR behind the passes.
    Optimized,
    /// Thread IR: loops over short vectors.
    Thread,
    /// Cranelift's IR, from which machine code is made.
    Clif,
    /// For a GPU: tiles with their layouts.
    Placed,
    /// For a GPU: the text that its driver compiles.
    Ptx,
    /// For a GPU: machine code, by `ptxas` on the PATH.
    Cubin,
    /// For a GPU: registers, spills, shared memory, by `ptxas` on the PATH.
    Stats,
}

impl Compile {
    pub fn main(&self, output: &mut Output) -> i32 {
        match self.compile(output) {
            Ok(bytes) => match &self.output {
                Some(file) => match std::fs::write(file, &bytes) {
                    Ok(()) => 0,
                    Err(e) => {
                        let message = format!("`{file}` cannot be written: {e}");
                        output.fail(Diagnostic::new(Id::BadEncoding, message).into())
                    }
                },
                None => {
                    output.result(&String::from_utf8_lossy(&bytes));
                    0
                }
            },
            Err(e) => output.fail(e),
        }
    }

    fn compile(&self, output: &mut Output) -> Result<Vec<u8>> {
        let (file, name) = match self.kernel.rsplit_once("::") {
            Some((file, name)) => (file, Some(name)),
            None => (self.kernel.as_str(), None),
        };
        let module = Module::from_file(file)?;
        let kernels = module.kernels();
        let name = match (name, kernels.as_slice()) {
            (Some(name), _) => name,
            (None, [only]) => only,
            (None, []) => {
                let d = Diagnostic::new(Id::NoKernel, format!("`{file}` has no kernel"));
                return Err(d.note("no function in it is under `@triton.jit`").into());
            }
            (None, several) => {
                let message = format!("`{file}` has {} kernels", several.len());
                let d = Diagnostic::new(Id::NoKernel, message).note(several.join(", "));
                return Err(d.help(format!("name one: `{file}::KERNEL`")).into());
            }
        };
        let kernel = module.kernel(name)?;
        let compiled = kernel.compile(&kernel.parse_specs(&self.signature)?)?;
        compiled.findings.iter().for_each(|d| output.diagnostic(d.clone()));
        let ptx = || {
            let mut config = LaunchConfig { precise: self.precise, ..LaunchConfig::default() };
            for (option, n) in [("num_warps", self.num_warps), ("num_stages", self.num_stages)] {
                config.set(option, &HostValue::Int(n.into()))?;
            }
            kernel.ptx(&self.signature, &config, self.gpu.unwrap_or(90))
        };
        Ok(match self.emit {
            Emit::Tile => compiled.func.to_string().into(),
            Emit::Optimized => naiad::stage(&compiled.func, Stage::Optimized)?.into(),
            Emit::Thread if self.gpu.is_some() => ptx()?.code.func.to_string().into(),
            Emit::Thread => naiad::stage(&compiled.func, Stage::Thread)?.into(),
            Emit::Clif => naiad::stage(&compiled.func, Stage::Clif)?.into(),
            Emit::Placed => ptx()?.placed()?.into(),
            Emit::Ptx => ptx()?.text.into(),
            Emit::Cubin if self.output.is_none() => {
                let message = "machine code is no text: name a file for it by `--output FILE`";
                return Err(Diagnostic::new(Id::BadArgument, message).into());
            }
            Emit::Cubin => ptxas::run(&ptx()?)?.cubin,
            Emit::Stats => ptxas::stats(&ptx()?)?.into(),
        })
    }
}

/// The compute capability, times 10, in `sm_90` or `90`.
fn chip(text: &str) -> std::result::Result<u32, String> {
    let digits = text.strip_prefix("sm_").unwrap_or(text);
    match digits.parse() {
        Ok(n @ 80..=129) => Ok(n),
        _ => Err("name a chip by its compute capability, sm_80 or newer, such as sm_90".into()),
    }
}
