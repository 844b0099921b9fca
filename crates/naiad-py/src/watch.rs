//! What a compiled variant depends on in Python, seen at a glance: objects, compared by identity.

use crate::convert::constexpr_class;
use crate::host::{PyHost, Scope, TEXT, cell_contents};
use crate::interned::Held;
use naiad::{LiveHost, Question};
use pyo3::exceptions::PyKeyError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyModule, PyString, PyTuple};

/// What a launch looks at to see whether any answer can have changed since the compilation: objects,
/// compared by identity.
pub struct Watch {
    seen: Vec<Seen>,
    /// False if there is something whose content may change while it stays the same object.
    settled: bool,
}

struct Seen {
    place: Place,
    name: Py<PyString>,
    object: Option<Py<PyAny>>,
    /// Of a `tl.constexpr`, what is in it.
    value: Option<Py<PyAny>>,
}

enum Place {
    Globals(Py<PyDict>),
    Cell(Py<PyAny>),
    /// An object of which an attribute was asked.
    Attribute(Held),
}

impl Watch {
    pub fn visit(&self, visit: &pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        self.seen.iter().try_for_each(|seen| {
            match &seen.place {
                Place::Globals(globals) => visit.call(globals)?,
                Place::Cell(cell) => visit.call(cell)?,
                Place::Attribute(object) => object.visit(visit)?,
            }
            visit.call(&seen.object)?;
            visit.call(&seen.value)
        })
    }
}

impl Seen {
    fn now<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let name = self.name.bind(py);
        match &self.place {
            Place::Globals(globals) => globals.bind(py).get_item(name),
            Place::Cell(cell) => Ok(cell_contents(cell.bind(py))),
            Place::Attribute(object) => match object.get(py) {
                Some(object) => object.getattr_opt(name),
                None => Err(PyKeyError::new_err("the object is gone")),
            },
        }
    }

    fn unchanged(&self, py: Python<'_>) -> bool {
        let Ok(now) = self.now(py) else { return false };
        match (&now, &self.object) {
            (None, None) => true,
            (Some(now), Some(then)) if now.is(then) => match &self.value {
                None => true,
                Some(value) => now.getattr(intern!(py, "value")).is_ok_and(|v| v.is(value)),
            },
            _ => false,
        }
    }
}

impl PyHost {
    /// None for what cannot change.
    fn place<'q>(
        &self,
        py: Python<'_>,
        question: &'q Question,
    ) -> PyResult<Option<(Place, &'q str)>> {
        Ok(Some(match question {
            // With another text a kernel gets another object here.
            Question::Text(PyHost::KERNEL) => return Ok(None),
            Question::Text(function) => {
                (Place::Attribute(self.functions.held(py, function.0)?), TEXT)
            }
            Question::Name(function, name) => {
                let place = match Scope::of(&self.function(py, *function)?, name)? {
                    Scope::Globals(globals) => Place::Globals(globals.unbind()),
                    Scope::Cell(cell) => Place::Cell(cell.unbind()),
                };
                (place, name)
            }
            Question::Attribute(object, name) => {
                let held = self.objects.held(py, object.0)?;
                match held.get(py) {
                    Some(object) if is_our_module(&object) => return Ok(None),
                    _ => (Place::Attribute(held), name),
                }
            }
        }))
    }

    fn see(&self, py: Python<'_>, question: &Question) -> PyResult<Option<Seen>> {
        let Some((place, name)) = self.place(py, question)? else { return Ok(None) };
        // Interned, so that each look is a comparison of addresses.
        let name = PyString::intern(py, name).unbind();
        let mut seen = Seen { place, name, object: None, value: None };
        let object = seen.now(py)?;
        if let Some(object) = &object
            && object.is_instance(constexpr_class(py)?)?
        {
            seen.value = Some(object.getattr(intern!(py, "value"))?.unbind());
        }
        seen.object = object.map(Bound::unbind);
        Ok(Some(seen))
    }
}

impl LiveHost for PyHost {
    type Watch = Watch;

    fn watch(&self, questions: &[Question]) -> Watch {
        Python::attach(|py| {
            let mut watch = Watch { seen: Vec::with_capacity(questions.len()), settled: true };
            for question in questions {
                match self.see(py, question) {
                    Ok(None) => {}
                    Ok(Some(seen)) => {
                        let content = seen.value.as_ref().or(seen.object.as_ref());
                        watch.settled &= content.is_none_or(|c| {
                            !c.bind(py).is_instance_of::<PyList>()
                                && (!c.bind(py).is_instance_of::<PyTuple>()
                                    || matches!(question, Question::Text(_)))
                        });
                        watch.seen.push(seen);
                    }
                    Err(_) => watch.settled = false,
                }
            }
            watch
        })
    }

    fn unchanged(&self, watch: &Watch) -> bool {
        watch.settled && Python::attach(|py| watch.seen.iter().all(|seen| seen.unchanged(py)))
    }

    fn together<T>(&self, f: impl FnOnce() -> T) -> T {
        Python::attach(|_| f())
    }
}

/// Nobody rebinds what is in the modules of the language.
fn is_our_module(object: &Bound<'_, PyAny>) -> bool {
    let module = object.cast::<PyModule>().ok().and_then(|m| m.name().ok());
    let name = module.as_ref().and_then(|m| m.to_str().ok());
    name.is_some_and(|n| n == "naiad" || n.starts_with("naiad."))
}
