//! The `naiad` command.
//!
//! | command | does |
//! |---|---|
//! | `run SCRIPT [ARGS]` | runs a Python script whose kernels go through Naiad |
//! | `check SCRIPT [ARGS]` | the same, and every launch is checked; or `--sweep`, over many sizes |
//! | `compile FILE::KERNEL` | compiles one kernel and prints what it became |
//! | `lint FILE...` | reviews kernels without running anything |
//!
//! Exit codes: 0 is well, 1 is an error found or met, 2 is a wrong command line. Results go to
//! stdout and messages to stderr, or to the file that `--output` names. The command itself knows no Python: a [`ScriptRunner`] runs
//! scripts, in this process or in another.

mod compile;
mod guess;
mod lint;
mod output;
mod ptxas;

use clap::{Args, Parser, Subcommand, ValueEnum};
pub use output::Format;
use output::Output;
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
    /// Every launch is checked, and an error of one ends the script.
    pub check: bool,
    /// Every launch is checked, and what is found is reported.
    pub report: Option<Report>,
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

/// How `naiad check` reports.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    pub format: Format,
    /// The file to which findings go, if not to stderr.
    pub output: Option<String>,
    /// Warnings count as errors for the exit code.
    pub deny_warnings: bool,
    /// The script is not run as such: its functions for `naiad.testing.sweep` are.
    pub sweep: bool,
}

impl RunOptions {
    /// The words of the command line that mean these options, the command's name first.
    pub fn to_args(&self) -> Vec<String> {
        let command = if self.report.is_some() { "check" } else { "run" };
        let mut args: Vec<String> =
            [command, "--device", self.device.name()].map(String::from).to_vec();
        args.extend(self.check.then(|| "--check".to_string()));
        if let Some(report) = &self.report {
            args.extend(["--format".to_string(), report.format.name().to_string()]);
            let deny = report.deny_warnings.then_some(["--deny", "warnings"]);
            args.extend(deny.into_iter().flatten().map(String::from));
            args.extend(report.sweep.then(|| "--sweep".to_string()));
            args.extend(report.output.iter().flat_map(|o| ["--output".to_string(), o.clone()]));
        }
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
    /// Run a Python script and check every launch in it; exit 1 on an error.
    Check(Check),
    /// Compile one kernel and print what it became.
    Compile(compile::Compile),
    /// Review kernels without running them.
    Lint(lint::Lint),
}

#[derive(Args)]
struct Run {
    #[arg(long, value_enum, default_value_t)]
    device: DeviceChoice,
    /// Check every launch, and end at the first error.
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

#[derive(Args)]
struct Check {
    #[arg(long, value_enum, default_value_t)]
    device: DeviceChoice,
    /// What counts as an error too.
    #[arg(long, value_enum, value_name = "WHAT")]
    deny: Option<Deny>,
    /// Run the script's functions for `naiad.testing.sweep`, over sizes and layouts that break kernels.
    #[arg(long)]
    sweep: bool,
    /// The GPU that torch's `cuda` stands for where there is none, as for `run`.
    #[arg(long, value_name = "NAME")]
    gpu: Option<String>,
    #[command(flatten)]
    common: Common,
    /// The script, and what it finds in `sys.argv`: from the script on, nothing is an option of ours.
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "SCRIPT [ARGS]"
    )]
    command: Vec<String>,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug, ValueEnum)]
enum Deny {
    Warnings,
}

impl Check {
    fn main(self, runner: &dyn ScriptRunner) -> i32 {
        let report = Report {
            format: self.common.format,
            output: self.common.output,
            deny_warnings: self.deny == Some(Deny::Warnings),
            sweep: self.sweep,
        };
        let report = Some(report);
        let options = RunOptions { device: self.device, check: false, report, gpu: self.gpu };
        run(runner, &self.command, &options)
    }
}

fn run(runner: &dyn ScriptRunner, command: &[String], options: &RunOptions) -> i32 {
    let (script, args) = command.split_first().expect("clap requires at least one word");
    runner.run(script, args, options)
}

/// Options of commands that print diagnostics.
#[derive(Args)]
struct Common {
    /// How findings are written.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Where to, if not to stderr.
    #[arg(long, short, value_name = "FILE")]
    output: Option<String>,
}

impl Common {
    /// Does a command's work, and writes what it has to say. Gives the exit code.
    fn reporting(&self, command: impl FnOnce(&mut Output) -> i32) -> i32 {
        let mut output = Output::new(self.format);
        let code = command(&mut output);
        match output.finish(self.output.as_deref()) {
            Ok(()) => code,
            Err(e) => {
                output::complain(&e);
                2
            }
        }
    }
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
        Command::Run(Run { device, check, gpu, command }) => {
            run(runner, &command, &RunOptions { device, check, report: None, gpu })
        }
        Command::Check(command) => command.main(runner),
        Command::Compile(command) => command.common.reporting(|output| command.main(output)),
        Command::Lint(command) => command.common.reporting(|output| command.main(output)),
    }
}
