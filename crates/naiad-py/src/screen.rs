//! What kernels print, to Python's `sys.stdout`, which may be a notebook's or a test's.

use crate::errors::exception;
use naiad::{Error, PrintOptions, Printed, Report};
use pyo3::prelude::*;
use std::sync::{Mutex, OnceLock, PoisonError};

/// The screen of one launch.
#[derive(Default)]
pub struct Screen {
    /// What `NAIAD_PRINT` says, read when the first print comes.
    options: OnceLock<Result<PrintOptions, Error>>,
    /// The first exception of a write. It is also the lock that keeps the text of one print together,
    /// since a stream that is written in Python may be switched away from. It is taken before Python's
    /// lock, always, and belongs to this launch alone: a stream that launches kernels of its own must
    /// not wait for itself.
    failed: Mutex<Option<PyErr>>,
}

impl Screen {
    /// Called on any thread, without Python's lock.
    pub fn print(&self, printed: &Printed<'_>) {
        let Ok(options) = self.options.get_or_init(settings) else { return };
        let Some(text) = options.format(printed) else { return };
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        if failed.is_none() {
            *failed = Python::attach(|py| write(py, &text).err());
        }
    }

    /// The launch's outcome, unless something went wrong here.
    pub fn close(
        self,
        py: Python<'_>,
        result: Result<Report, Error>,
    ) -> PyResult<Result<Report, Error>> {
        let failed = self.failed.into_inner().unwrap_or_else(PoisonError::into_inner);
        match (failed, self.options.into_inner()) {
            // What the kernel did wrong matters more than a text that could not be written.
            _ if result.is_err() => Ok(result),
            (Some(e), _) => Err(e),
            (None, Some(Err(e))) => Err(exception(py, &e)),
            (None, _) => Ok(result),
        }
    }
}

/// What `NAIAD_PRINT` says just now.
pub fn settings() -> Result<PrintOptions, Error> {
    std::env::var("NAIAD_PRINT").unwrap_or_default().parse()
}

fn write(py: Python<'_>, text: &str) -> PyResult<()> {
    let stdout = py.import("sys")?.getattr("stdout")?;
    // A process without a console has no stream.
    if !stdout.is_none() {
        stdout.call_method1("write", (text,))?;
    }
    Ok(())
}
