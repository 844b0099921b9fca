//! `kernel[grid]`, and the call of it: what nearly all launches go through.
//!
//! Where somebody hears of launches, the call goes by way of `JITFunction.run` in Python, which calls
//! their hooks; else it goes from here straight to the launch.

use crate::call::Call;
use crate::errors::exception;
use crate::kernel::PyKernel;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyDict, PyFunction, PyList, PyTuple};
use pyo3::{Borrowed, ffi, intern};
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

#[pymethods]
impl Launchable {
    /// A subclass is made of whatever it likes.
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> Launchable {
        Launchable
    }

    /// The kernel with a grid: a built-in function, which Python calls without a tuple and a dictionary
    /// for the arguments. What it is bound to are the kernel and the grid.
    fn __getitem__<'py>(
        slf: &Bound<'py, Launchable>,
        grid: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let bound = PyTuple::new(slf.py(), [slf.as_any(), grid])?;
        let def = (&raw const LAUNCH.0).cast_mut();
        // SAFETY: the definition lives for ever, and nobody writes to it.
        unsafe {
            let function = ffi::PyCFunction_NewEx(def, bound.as_ptr(), std::ptr::null_mut());
            Bound::from_owned_ptr_or_err(slf.py(), function)
        }
    }
}

struct Definition(ffi::PyMethodDef);

// SAFETY: it is only read.
unsafe impl Sync for Definition {}

static LAUNCH: Definition = Definition(ffi::PyMethodDef {
    ml_name: c"launch".as_ptr(),
    ml_meth: ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: launch },
    ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
    ml_doc: c"Launches the kernel with its grid.".as_ptr(),
});

/// What `kernel[grid](...)` calls.
unsafe extern "C" fn launch(
    bound: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    positional: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    Python::attach(|py| {
        let launched = naiad::guard("launching a kernel", || {
            // SAFETY: as CPython calls functions of this kind; it holds what it gives until they return.
            // Only `__getitem__` binds them, to a pair.
            let launched = unsafe { Call::from_fastcall(py, args, positional as usize, names) }
                .and_then(|call| {
                    let item =
                        |i| unsafe { Borrowed::from_ptr(py, ffi::PyTuple_GetItem(bound, i)) };
                    let (function, grid) = (item(0), item(1));
                    launch_bound(&*function.cast::<Launchable>()?, &grid, &call)
                });
            Ok(launched)
        });
        match launched.unwrap_or_else(|e| Err(exception(py, &e))) {
            Ok(result) => result.into_ptr(),
            Err(e) => {
                e.restore(py);
                std::ptr::null_mut()
            }
        }
    })
}

fn launch_bound<'py>(
    function: &Bound<'py, Launchable>,
    grid: &Bound<'py, PyAny>,
    call: &Call<'_, 'py>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = function.py();
    if let Some(kernel) = kernel_of(function)? {
        return Ok(PyKernel::launch_on(&kernel, py, grid, call, None)?.into_any());
    }
    let (args, kwargs) = call.to_python(py)?;
    for (name, value) in [("grid", grid), ("warmup", &PyBool::new(py, false))] {
        if kwargs.contains(name)? {
            let why = format!("`{name}` is given by keyword and is `run`'s own");
            return Err(PyTypeError::new_err(why));
        }
        kwargs.set_item(name, value)?;
    }
    function.call_method(intern!(py, "run"), args, Some(&kwargs))
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
    // SAFETY: attached, with an object whose class has a dictionary for each.
    let own = unsafe {
        let own = ffi::PyObject_GenericGetDict(function.as_ptr(), std::ptr::null_mut());
        Bound::from_owned_ptr_or_err(py, own)?.cast_into::<PyDict>()?
    };
    let hooks = own.get_item(intern!(py, "pre_run_hooks"))?;
    let hooks = hooks.as_ref().and_then(|hooks| hooks.cast::<PyList>().ok());
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
