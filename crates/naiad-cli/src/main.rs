//! The command as a program of its own. Scripts run in a Python beside it.

use naiad_cli::{RunOptions, ScriptRunner};
use std::io::Write;
use std::process::Command;

/// Runs `python3 -m naiad run ...` or `check ...`; the environment variable NAIAD_PYTHON names another Python.
struct Subprocess;

impl ScriptRunner for Subprocess {
    fn run(&self, script: &str, args: &[String], options: &RunOptions) -> i32 {
        let python = std::env::var_os("NAIAD_PYTHON").unwrap_or_else(|| "python3".into());
        let mut command = Command::new(&python);
        command.args(["-m", "naiad"]).args(options.to_args()).arg(script).args(args);
        match command.status() {
            // Without a code it was ended by a signal.
            Ok(status) => status.code().unwrap_or(1),
            Err(e) => {
                let python = python.display();
                let _ = writeln!(
                    std::io::stderr(),
                    "error: `{python}` cannot be started: {e}\n  = help: name a Python that has the package `naiad` in NAIAD_PYTHON"
                );
                1
            }
        }
    }
}

fn main() {
    std::process::exit(naiad_cli::main(std::env::args_os(), &Subprocess));
}
