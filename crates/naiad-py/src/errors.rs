//! Errors of Naiad as exceptions of Python. Which class an id has is decided in `naiad.errors`.

use crate::check::Finding;
use naiad::{Diagnostic, Error, render};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// Why Python has no answer for the front end, in a sentence that goes into a message as it is.
pub fn refusal(py: Python<'_>, message: String) -> PyErr {
    match triton_error(py).and_then(|class| class.call1((message,))) {
        Ok(value) => PyErr::from_value(value),
        Err(e) => e,
    }
}

/// The sentence of a refusal; none for exceptions of others, and for those that are messages of their own.
pub fn refused(py: Python<'_>, e: &PyErr) -> Option<String> {
    let ours = triton_error(py).is_ok_and(|class| e.get_type(py).is(class));
    ours.then(|| e.value(py).to_string())
}

fn triton_error(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    CLASS.import(py, "naiad.errors", "TritonError")
}

/// The exception for an error.
pub fn exception(py: Python<'_>, error: &Error) -> PyErr {
    let finding = Finding(error.diagnostic().clone());
    let made = from_finding(py).and_then(|f| f.call1((finding,)));
    match made {
        Ok(value) => PyErr::from_value(value),
        Err(e) => e,
    }
}

fn from_finding(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static FUNCTION: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    FUNCTION.import(py, "naiad.errors", "from_finding")
}

pub fn human(diagnostic: &Diagnostic) -> String {
    render::human(diagnostic, render::Style::PLAIN)
}

pub fn json(diagnostic: &Diagnostic) -> String {
    render::json(diagnostic).to_string()
}
