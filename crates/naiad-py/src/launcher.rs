//! `kernel[grid]`, and the call of it: what nearly all launches go through.
//!
//! Where somebody hears of launches, the call goes by way of `JITFunction.run` in Python, which calls
//! their hooks; else it goes from here straight to the launch.

use crate::kernel::PyKernel;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyDict, PyFunction, PyList, PyTuple};
use pyo3::{PyTraverseError, PyVisit, intern};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Whether any launch may have a hook, or an option, that `naiad.knobs` knows of.
static HOOKED: AtomicBool = AtomicBool::new(true);

/// Tells what `naiad.knobs` knows of launches.
#[pyfunction]
pub fn set_hooked(hooked: bool) {
    HOOKED.store(hooked, Relaxed);
}

/// What `JITFunction` is by birth.
#[pyclass(subclass, frozen, module = "naiad._naiad")]
pub struct Launchable;

/// A kernel with a grid.
#[pyclass(frozen, module = "naiad._naiad")]
pub struct Launcher {
    function: Py<Launchable>,
    grid: Py<PyAny>,
}

#[pymethods]
impl Launchable {
    /// A subclass is made of whatever it likes.
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> Launchable {
        Launchable
    }

    fn __getitem__(slf: Py<Launchable>, grid: Py<PyAny>) -> Launcher {
        Launcher { function: slf, grid }
    }
}

#[pymethods]
impl Launcher {
    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let function = self.function.bind(py);
        let own = kwargs.is_none().then(|| PyDict::new(py));
        let Some(kwargs) = kwargs.or(own.as_ref()) else { unreachable!("one of them is there") };
        let grid = self.grid.bind(py);
        match kernel_of(function)? {
            Some(kernel) => {
                let compiled = PyKernel::launch_on(&kernel, py, grid, args, kwargs, None)?;
                Ok(Bound::new(py, compiled)?.into_any())
            }
            None => {
                for (name, value) in [("grid", grid), ("warmup", &PyBool::new(py, false))] {
                    if kwargs.contains(name)? {
                        let why = format!("`{name}` is given by keyword and is `run`'s own");
                        return Err(PyTypeError::new_err(why));
                    }
                    kwargs.set_item(name, value)?;
                }
                function.call_method(intern!(py, "run"), args, Some(kwargs))
            }
        }
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.function)?;
        visit.call(&self.grid)
    }
}

/// The kernel of a function whose launches nobody hears of.
fn kernel_of<'py>(function: &Bound<'py, Launchable>) -> PyResult<Option<Bound<'py, PyKernel>>> {
    let py = function.py();
    static RUN: PyOnceLock<Py<PyFunction>> = PyOnceLock::new();
    let run = RUN.import(py, "naiad.runtime.jit", "run")?;
    // Another `run` may have been put in the place of ours, for all or in a class of their own, or below
    // for one object.
    if HOOKED.load(Relaxed) || !function.get_type().getattr(intern!(py, "run"))?.is(run) {
        return Ok(None);
    }
    let own = function.getattr(intern!(py, "__dict__"))?.cast_into::<PyDict>()?;
    let hooks = own.get_item(intern!(py, "pre_run_hooks"))?;
    let hooks = hooks.and_then(|hooks| hooks.cast_into::<PyList>().ok());
    if hooks.is_none_or(|hooks| !hooks.is_empty()) || own.contains(intern!(py, "run"))? {
        return Ok(None);
    }
    // Made at its first use, where it is not there yet.
    let kernel = match own.get_item(intern!(py, "_kernel"))? {
        Some(kernel) => kernel,
        None => function.getattr(intern!(py, "_kernel"))?,
    };
    Ok(kernel.cast_into::<PyKernel>().ok())
}
