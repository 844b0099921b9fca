//! Where kernels run.

use crate::{Executor, PrintOptions, Printer, nanoseconds};
use naiad_interp::{LaunchOptions, PolicyKind};

/// A device with how it is to be used.
#[derive(Clone, Debug)]
pub struct Device {
    threads: usize,
    checked: bool,
    executor: Executor,
    printer: Printer,
}

impl Device {
    /// The CPU, all cores; kernels print to the standard output.
    pub fn cpu() -> Device {
        let printer = Printer::stdout(PrintOptions::default());
        Device { threads: 0, checked: false, executor: Executor::from_env(), printer }
    }

    /// Spreads programs over `threads` threads; 0 means as many as there are cores.
    pub fn threads(self, threads: usize) -> Device {
        Device { threads, ..self }
    }

    /// Judges every access by the tensor's logical view too, not only by its storage.
    pub fn checked(self, checked: bool) -> Device {
        Device { checked, ..self }
    }

    /// What runs kernels, instead of what `NAIAD_EXECUTOR` asks for.
    pub fn executor(self, executor: Executor) -> Device {
        Device { executor, ..self }
    }

    /// Where what kernels print goes, and how.
    pub fn printer(self, printer: Printer) -> Device {
        Device { printer, ..self }
    }

    pub(crate) fn run<T>(&self, launch: impl FnOnce(Executor, &LaunchOptions<'_>) -> T) -> T {
        let policy = if self.checked { PolicyKind::Checked } else { PolicyKind::Plain };
        let options = LaunchOptions {
            policy,
            threads: self.threads,
            print: Some(&|printed| self.printer.print(printed)),
            clock: Some(&nanoseconds),
            ..LaunchOptions::PLAIN
        };
        launch(self.executor, &options)
    }
}
