//! Checked launches: whether they are, which memory counts as uninitialized, and what was found.
//!
//! What is done with findings is Python's: see `naiad/check.py`.

use crate::errors::{human, json};
use naiad::{Diagnostic, Error, FunctionSource, Id, Place, Report, poison, render};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

static ACTIVE: AtomicBool = AtomicBool::new(false);

/// Memory that was filled with the pattern of uninitialized memory, by address. Memory is never taken out
/// when it is freed: whoever gets it next has written to it, or has it marked anew.
static FRESH: Mutex<Vec<Range<usize>>> = Mutex::new(Vec::new());

/// Ranges from which on those that have been written since are looked for and dropped.
const MANY: usize = 1 << 12;

pub fn is_active() -> bool {
    ACTIVE.load(Relaxed)
}

pub fn set_active(active: bool) {
    ACTIVE.store(active, Relaxed);
}

pub fn uninitialized_ranges() -> Vec<Range<usize>> {
    FRESH.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Fills memory with the pattern by which it is known to be uninitialized.
///
/// The caller says that the addresses are memory of its own that may be written.
#[pyfunction]
pub fn mark_uninitialized(address: usize, bytes: usize) {
    if bytes == 0 {
        return;
    }
    let range = address..address + bytes;
    // SAFETY: the caller's promise: Python code of this package passes memory of a tensor that it holds.
    unsafe { poison::fill(range.clone()) };
    let mut all = FRESH.lock().unwrap_or_else(PoisonError::into_inner);
    forget(&mut all, &range);
    all.push(range);
    if all.len() >= MANY {
        // Without a look at the memory, which may be gone: the oldest half.
        all.drain(..MANY / 2);
    }
}

/// Has memory count as initialized, whatever is in it.
#[pyfunction]
pub fn mark_initialized(address: usize, bytes: usize) {
    let mut all = FRESH.lock().unwrap_or_else(PoisonError::into_inner);
    forget(&mut all, &(address..address + bytes));
}

/// Takes a range out of those that are known.
fn forget(all: &mut Vec<Range<usize>>, range: &Range<usize>) {
    let cut = |r: Range<usize>| {
        let before = r.start..r.end.min(range.start);
        let after = r.start.max(range.end)..r.end;
        [before, after].into_iter().filter(|p| p.start < p.end)
    };
    *all = std::mem::take(all).into_iter().flat_map(cut).collect();
}

/// Hands over to Python what a checked launch has found, faults included.
pub fn launched(
    py: Python<'_>,
    kernel: &str,
    ended: &Result<Report, Error>,
    before: &[Diagnostic],
) -> PyResult<()> {
    let (found, updated) = match ended {
        Ok(report) => (report.findings.iter().collect::<Vec<_>>(), report.updated.clone()),
        Err(e) => (before.iter().chain([e.diagnostic()]).collect(), Vec::new()),
    };
    let rows = found.into_iter().map(|d| Finding(d.clone())).collect::<Vec<_>>();
    let module = py.import("naiad.check")?;
    module.getattr("launched")?.call1((kernel, rows, updated, ended.is_err()))?;
    Ok(())
}

/// A finding, as Python sees it.
#[pyclass(frozen, module = "naiad._naiad")]
pub struct Finding(pub Diagnostic);

#[pymethods]
impl Finding {
    #[getter]
    fn id(&self) -> &'static str {
        self.0.id.name()
    }

    #[getter]
    fn severity(&self) -> &'static str {
        self.0.severity.name()
    }

    /// The name of the file that it is about, and the line; none for text that is in no file.
    #[getter]
    fn place(&self) -> Option<(String, u32)> {
        self.0.place().map(|p| (p.source.name.clone(), p.line()))
    }

    /// Where in the line it begins, from 1; 0 where there is no line.
    #[getter]
    fn column(&self) -> u32 {
        self.0.place().map_or(0, |p| p.source.line_col(p.range.start).1)
    }

    /// Drawn as rustc would.
    fn human(&self) -> String {
        human(&self.0)
    }

    fn json(&self) -> String {
        json(&self.0)
    }

    /// An annotation of GitHub's; files are named as seen from the folder `base`.
    fn github(&self, base: &str) -> String {
        render::github(&self.0, base)
    }
}

/// The SARIF log of several findings; files are named as seen from the folder `base`.
#[pyfunction]
pub fn sarif(findings: Vec<PyRef<'_, Finding>>, base: &str) -> String {
    let all = findings.iter().map(|f| &f.0);
    format!("{:#}", render::sarif(all, base, env!("CARGO_PKG_VERSION")))
}

/// A finding that Python makes itself, of a kernel: it stands where the kernel's name does. None where a
/// comment there allows it.
pub fn finding(
    id: &str,
    message: &str,
    notes: Vec<String>,
    help: Vec<String>,
    kernel: &FunctionSource,
) -> PyResult<Option<Finding>> {
    let Some(id) = Id::from_name(id) else {
        return Err(PyValueError::new_err(format!("no finding is called `{id}`")));
    };
    let start = kernel.range.start;
    let text = kernel.source.text.get(kernel.range.clone()).unwrap_or("");
    let def = format!("def {}", kernel.name);
    let mut d = Diagnostic::new(id, message);
    if let Some(at) = text.find(&def) {
        let end = start + at + def.len();
        let range = end - kernel.name.len()..end;
        d = d.primary(Place::new(kernel.source.clone(), range), "");
    }
    d.notes = notes;
    d.help = help;
    Ok((!d.is_allowed()).then_some(Finding(d)))
}

/// Whether launches are checked.
#[pyfunction]
pub fn is_checked() -> bool {
    is_active()
}
