//! A launch that is ready, given to the executor: how it runs, and what it asks of Python meanwhile.

use crate::check;
use crate::interrupt::{Listening, flag, raised};
use crate::screen::Screen;
use naiad::{Diagnostic, Error, Executor, Grid, Id, LaunchOptions, PolicyKind};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use std::cell::Cell;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Over how many threads launches of this process spread, 0 for all; set by the command line.
static THREADS: AtomicUsize = AtomicUsize::new(0);

/// Sets whether launches are checked and over how many threads they spread (0: all cores).
#[pyfunction]
pub fn configure(checked: bool, threads: usize) {
    check::set_active(checked);
    THREADS.store(threads, Ordering::Relaxed);
}

/// Runs a launch; a long one with other Python threads running too. Gives besides what was found before a
/// fault. The outer error is an exception of Python's own, such as `KeyboardInterrupt`.
pub fn run(
    py: Python<'_>,
    launch: &naiad::Launch,
    grid: Grid,
) -> PyResult<(Result<naiad::Report, Error>, Vec<Diagnostic>)> {
    let checked = check::is_active();
    let fresh = if checked { check::uninitialized_ranges() } else { Vec::new() };
    // Kernels that make no pointers have no way there, and do not wait for the answer.
    let exposed = if launch.makes_pointers() { Exposed::all(py)? } else { Exposed::default() };
    let found = Mutex::new(Vec::new());
    let screen = Screen::default();
    let (listens, stop) = (AtomicBool::new(false), AtomicBool::new(false));
    let raised_before = Cell::new(None);
    let options = LaunchOptions {
        policy: if checked { PolicyKind::Checked } else { PolicyKind::Plain },
        threads: THREADS.load(Ordering::Relaxed),
        interrupt: Some(&|| {
            stop.load(Ordering::Relaxed) || listens.load(Ordering::Relaxed) && raised()
        }),
        flag: flag(),
        long: Some(&|rest| {
            let listening = Listening::begin();
            listens.store(listening.is_some(), Ordering::Relaxed);
            // Python may have got a signal before this began to listen.
            if let Err(e) = py.check_signals() {
                raised_before.set(Some(e));
                stop.store(true, Ordering::Relaxed);
            }
            let rest = Detached(rest);
            py.detach(move || rest.run());
            if listening.is_some() && raised() {
                // Told on, since nobody listens any more.
                stop.store(true, Ordering::Relaxed);
            }
        }),
        print: Some(&|printed| screen.print(printed)),
        clock: Some(&naiad::nanoseconds),
        uninitialized: &fresh,
        exposed: &exposed.ranges,
        found: Some(&found),
        ..LaunchOptions::PLAIN
    };
    // SAFETY: the caller of the launch holds the tensors until it returns, and their addresses and
    // extents were read from them just now; `exposed` holds what else may be reached. What other
    // threads do to them meanwhile is theirs to order, as with any library that releases the lock.
    let result = unsafe { launch.run(grid, Executor::from_env(), &options) };
    if let Some(e) = raised_before.take() {
        return Err(e);
    }
    if matches!(&result, Err(e) if e.id() == Id::Interrupted) {
        py.check_signals()?;
    }
    let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok((screen.close(py, result)?, found))
}

/// What is run while this thread is detached from Python.
struct Detached<'a>(&'a mut dyn FnMut());

// SAFETY: `Python::detach` runs it on the thread on which it is called. Nothing of Python's is in it:
// it is the rest of a launch, and what of a launch needs Python attaches by itself.
unsafe impl Send for Detached<'_> {}

impl Detached<'_> {
    fn run(self) {
        (self.0)();
    }
}

/// Memory that kernels may reach though it is no argument's: see `naiad/exposed.py`.
#[derive(Default)]
struct Exposed {
    ranges: Vec<Range<usize>>,
    /// What keeps it until the launch has ended.
    _keepers: Vec<Py<PyAny>>,
}

impl Exposed {
    fn all(py: Python<'_>) -> PyResult<Exposed> {
        static MEMORY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let memory = MEMORY.import(py, "naiad.exposed", "memory")?;
        let mut exposed = Exposed::default();
        for (keeper, start, bytes) in memory.call0()?.extract::<Vec<(Py<PyAny>, usize, usize)>>()? {
            exposed.ranges.push(start..start.saturating_add(bytes));
            exposed._keepers.push(keeper);
        }
        Ok(exposed)
    }
}
