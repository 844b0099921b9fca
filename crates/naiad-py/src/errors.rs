//! Errors of Naiad as exceptions of Python. Which class an id has is decided in `naiad.errors`.

use naiad::{Diagnostic, Error, render};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

pyo3::create_exception!(
    naiad._naiad,
    Refusal,
    pyo3::exceptions::PyException,
    "Why the host has no answer for the front end, in a sentence that goes into a message as it is."
);

/// The exception for an error.
pub fn exception(py: Python<'_>, error: &Error) -> PyErr {
    let diagnostic = error.diagnostic();
    let made = from_diagnostic(py)
        .and_then(|f| f.call1((diagnostic.id.name(), human(diagnostic), json(diagnostic))));
    match made {
        Ok(value) => PyErr::from_value(value),
        Err(e) => e,
    }
}

fn from_diagnostic(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static FUNCTION: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    FUNCTION.import(py, "naiad.errors", "from_diagnostic")
}

pub fn human(diagnostic: &Diagnostic) -> String {
    render::human(diagnostic, render::Style::PLAIN)
}

pub fn json(diagnostic: &Diagnostic) -> String {
    render::json(diagnostic).to_string()
}
