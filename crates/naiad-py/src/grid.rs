//! What is given for a grid: counts of programs, or a function that gives them.

use crate::convert::int;
use crate::errors::exception;
use naiad::Grid;
use pyo3::exceptions::{PyAttributeError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyTuple};
use smallvec::SmallVec;

type Object<'py> = Bound<'py, PyAny>;

/// The grid that a function gives for these arguments.
pub fn asked<'py>(
    py: Python<'py>,
    function: &Object<'py>,
    meta: &Bound<'py, PyDict>,
) -> PyResult<Grid> {
    let answer = function.call1((meta,)).map_err(|e| not_a_grid(py, function, meta, e))?;
    counts(py, &answer)
}

/// A grid that is a tuple or a list.
pub fn counts<'py>(py: Python<'py>, grid: &Object<'py>) -> PyResult<Grid> {
    let mut counts = SmallVec::<[i128; 3]>::new();
    if let Ok(tuple) = grid.cast::<PyTuple>() {
        for item in tuple.iter_borrowed() {
            counts.push(count(py, counts.len(), &item)?);
        }
    } else if let Ok(list) = grid.cast::<PyList>() {
        for item in list {
            counts.push(count(py, counts.len(), &item)?);
        }
    } else {
        let what = grid.get_type().name()?;
        let hint = match grid.is_instance_of::<PyInt>() {
            true => format!(": write `({grid},)`"),
            false => String::new(),
        };
        let message = format!("a grid is a tuple or a list of integers, not one {what}{hint}");
        return Err(exception(py, &Grid::error(message)));
    }
    Grid::new(&counts).map_err(|e| exception(py, &e))
}

/// The count along one axis.
fn count<'py>(py: Python<'py>, axis: usize, item: &Object<'py>) -> PyResult<i128> {
    if let Ok(count) = item.cast_exact::<PyInt>()
        && let Ok(count) = int(count)
    {
        return Ok(count);
    }
    let is_int = !item.is_instance_of::<PyBool>() && !item.is_instance_of::<PyFloat>();
    let index = match is_int.then(|| item.call_method0(intern!(py, "__index__"))).transpose() {
        // Of what is no integer; what the method itself raises is for the caller.
        Err(e)
            if e.is_instance_of::<PyTypeError>(py) || e.is_instance_of::<PyAttributeError>(py) =>
        {
            None
        }
        index => index?,
    };
    match index {
        Some(i) => i.extract(),
        None => {
            let shown = item.repr()?;
            let message =
                format!("the grid's count along axis {axis} is {shown}, which is no integer");
            Err(exception(py, &Grid::error(message)))
        }
    }
}

/// What to raise where a call for the grid failed. If the function cannot even be called so, the
/// exception of the call says so in terms of Python's.
fn not_a_grid(py: Python<'_>, grid: &Object<'_>, meta: &Bound<'_, PyDict>, e: PyErr) -> PyErr {
    let fits = || -> PyResult<bool> {
        let signature = py.import("inspect")?.call_method1("signature", (grid,))?;
        Ok(signature.call_method1("bind", (meta,)).is_ok())
    };
    if !e.is_instance_of::<PyTypeError>(py) || fits().unwrap_or(true) {
        return e;
    }
    let message = "a function that is given for a grid is called with one argument, a dictionary of the kernel's arguments, and this one does not take that";
    exception(py, &Grid::error(message).with_help("write `lambda meta: (...)`"))
}
