//! `naiad compile`.

use crate::Common;
use crate::output::Output;
use clap::{Args, ValueEnum};
use naiad::{Diagnostic, Id, Module, Result, Stage};

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
}

impl Compile {
    pub fn main(&self, output: &mut Output) -> i32 {
        match self.compile(output) {
            Ok(text) => {
                output.result(&text);
                0
            }
            Err(e) => output.fail(e),
        }
    }

    fn compile(&self, output: &mut Output) -> Result<String> {
        let (file, name) = match self.kernel.rsplit_once("::") {
            Some((file, name)) => (file, Some(name)),
            None => (self.kernel.as_str(), None),
        };
        let module = Module::from_file(file)?;
        let kernels = module.kernels();
        let name = match (name, kernels.as_slice()) {
            (Some(name), _) => name,
            (None, [only]) => only,
            (None, several) => {
                let message = format!("`{file}` has {} kernels", several.len());
                let d = Diagnostic::new(Id::NoKernel, message).note(several.join(", "));
                return Err(d.help(format!("name one: `{file}::KERNEL`")).into());
            }
        };
        let kernel = module.kernel(name)?;
        let compiled = kernel.compile(&kernel.parse_specs(&self.signature)?)?;
        compiled.findings.iter().for_each(|d| output.diagnostic(d.clone()));
        match self.emit {
            Emit::Tile => Ok(compiled.func.to_string()),
            Emit::Optimized => naiad::stage(&compiled.func, Stage::Optimized),
            Emit::Thread => naiad::stage(&compiled.func, Stage::Thread),
            Emit::Clif => naiad::stage(&compiled.func, Stage::Clif),
        }
    }
}
