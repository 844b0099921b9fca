//! The `naiad` command.
//!
//! | command | does |
//! |---|---|
//! | `run SCRIPT [ARGS]` | runs a Python script whose kernels go through Naiad |
//! | `compile FILE::KERNEL` | compiles one kernel and prints what it became |
//! | `lint FILE...` | reviews kernels without running anything |
//!
//! Exit codes: 0 is well, 1 is an error found or met, 2 is a wrong command line. Results go to
//! stdout and messages to stderr. The command itself knows no Python: a [`ScriptRunner`] runs
//! scripts, in this process or in another.

mod compile;
mod lint;
mod output;

use clap::{Args, Parser, Subcommand, ValueEnum};
use output::{Format, Output};
use std::ffi::OsString;

/// Who runs Python scripts.
pub trait ScriptRunner {
    /// Runs `script` as `__main__` and returns its exit code.
    fn run(&self, script: &str, args: &[String], options: &RunOptions) -> i32;
}

/// How the kernels of a script run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RunOptions {
    pub device: DeviceChoice,
    /// Every access is judged by the view of its tensor.
    pub check: bool,
    /// The GPU that `cuda` stands for where there is none.
    pub gpu: Option<String>,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum DeviceChoice {
    /// The best there is.
    #[default]
    Auto,
    Cpu,
}

impl RunOptions {
    /// The command line that means these options.
    pub fn to_args(&self) -> Vec<String> {
        let mut args = vec!["--device".to_string(), self.device.name().to_string()];
        args.extend(self.check.then(|| "--check".to_string()));
        args.extend(self.gpu.iter().flat_map(|gpu| ["--gpu".to_string(), gpu.clone()]));
        args
    }
}

impl DeviceChoice {
    fn name(self) -> &'static str {
        match self {
            DeviceChoice::Auto => "auto",
            DeviceChoice::Cpu => "cpu",
        }
    }
}

/// Run, compile and review kernels of the Triton language.
#[derive(Parser)]
#[command(name = "naiad", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a Python script; `import triton` in it means Naiad.
    Run(Run),
    /// Compile one kernel and print what it became.
    Compile(compile::Compile),
    /// Review kernels without running them.
    Lint(lint::Lint),
}

#[derive(Args)]
struct Run {
    #[arg(long, value_enum, default_value_t)]
    device: DeviceChoice,
    /// Judge every access by the view of its tensor.
    #[arg(long)]
    check: bool,
    /// The GPU that torch's `cuda` stands for where there is none: h100, a100, h200, b200, l4, rtx4090.
    #[arg(long, value_name = "NAME")]
    gpu: Option<String>,
    /// The script, and what it finds in `sys.argv`: from the script on, nothing is an option of ours.
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "SCRIPT [ARGS]"
    )]
    command: Vec<String>,
}

/// Options of commands that print diagnostics.
#[derive(Args)]
struct Common {
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Runs the command; `args` begins with the program's name. Returns the exit code.
pub fn main(args: impl IntoIterator<Item = OsString>, runner: &dyn ScriptRunner) -> i32 {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(e) => {
            // Help and version are "errors" too, of exit code 0. There is nobody to tell if printing fails.
            let _ = e.print();
            return e.exit_code();
        }
    };
    match cli.command {
        Command::Run(run) => {
            let options = RunOptions { device: run.device, check: run.check, gpu: run.gpu };
            let (script, args) =
                run.command.split_first().expect("clap requires at least one word");
            runner.run(script, args, &options)
        }
        Command::Compile(command) => command.main(&Output::new(command.common.format)),
        Command::Lint(command) => command.main(&Output::new(command.common.format)),
    }
}
