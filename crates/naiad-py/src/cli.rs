//! The `naiad` command inside Python: scripts run in this interpreter.

use naiad_cli::{RunOptions, ScriptRunner};
use pyo3::exceptions::PySystemExit;
use pyo3::prelude::*;
use std::ffi::OsString;
use std::sync::Mutex;

/// Runs the command with `argv` (the program's name first) and returns its exit code.
#[pyfunction]
pub fn cli_main(py: Python<'_>, argv: Vec<OsString>) -> PyResult<i32> {
    let runner = InProcess { raised: Mutex::new(None) };
    let code = py.detach(|| naiad_cli::main(argv, &runner));
    match runner.raised.into_inner().unwrap_or(None) {
        Some(e) => Err(e),
        None => Ok(code),
    }
}

struct InProcess {
    /// What ended the script, to be raised again outside the command.
    raised: Mutex<Option<PyErr>>,
}

impl ScriptRunner for InProcess {
    fn run(&self, script: &str, args: &[String], options: &RunOptions) -> i32 {
        Python::attach(|py| {
            let run = || -> PyResult<i32> {
                let module = py.import("naiad.__main__")?;
                let (args, gpu) = (args.to_vec(), options.gpu.as_deref());
                match &options.report {
                    None => module
                        .getattr("run_script")?
                        .call1((script, args, options.check, gpu))?
                        .extract(),
                    Some(report) => module
                        .getattr("check_script")?
                        .call1((
                            script,
                            args,
                            gpu,
                            report.format.name(),
                            report.deny_warnings,
                            report.sweep,
                            report.output.as_deref(),
                        ))?
                        .extract(),
                }
            };
            run().unwrap_or_else(|e| {
                let exit = e.is_instance_of::<PySystemExit>(py);
                *self.raised.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(e);
                if exit { 0 } else { 1 }
            })
        })
    }
}
