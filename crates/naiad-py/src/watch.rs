//! What a compiled variant depends on in Python, seen at a glance: objects, compared by identity.

use crate::convert::{Hold, constexpr_class};
use crate::host::{PyHost, Scope, TEXT, cell_contents};
use crate::interned::Held;
use naiad::{LiveHost, Question};
use pyo3::exceptions::PyKeyError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyModule, PySet, PyString, PyTuple};

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
    fn new(py: Python<'_>, place: Place, name: Py<PyString>) -> PyResult<Seen> {
        let mut seen = Seen { place, name, object: None, value: None };
        let object = seen.now(py)?;
        if let Some(object) = &object
            && object.is_instance(constexpr_class(py)?)?
        {
            seen.value = Some(object.getattr(intern!(py, "value"))?.unbind());
        }
        seen.object = object.map(Bound::unbind);
        Ok(seen)
    }

    /// Whether it may hold something else later and still be the same object.
    fn may_change_within(&self, py: Python<'_>) -> bool {
        self.value.as_ref().or(self.object.as_ref()).is_some_and(|content| {
            let content = content.bind(py);
            content.is_instance_of::<PyList>()
                || content.is_instance_of::<PyTuple>()
                || content.is_instance_of::<PyDict>()
                || content.is_instance_of::<PySet>()
        })
    }

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
    /// Where the answer to a question stands, or the answers; nowhere if it cannot change.
    fn places(&self, py: Python<'_>, question: &Question) -> PyResult<Vec<(Place, Py<PyString>)>> {
        // Interned, so that each look is a comparison of addresses.
        let one = |place, name: &str| vec![(place, PyString::intern(py, name).unbind())];
        Ok(match question {
            // With another text a kernel gets another object here.
            Question::Text(PyHost::KERNEL) => vec![],
            Question::Text(function) => {
                one(Place::Attribute(self.functions.held(py, function.0)?), TEXT)
            }
            Question::Name(function, name) => {
                let place = match Scope::of(&self.function(py, *function)?, name)? {
                    Scope::Globals(globals) => Place::Globals(globals.unbind()),
                    Scope::Cell(cell) => Place::Cell(cell.unbind()),
                };
                one(place, name)
            }
            Question::Attribute(object, name) => {
                let held = self.objects.held(py, object.0)?;
                match held.get(py) {
                    Some(object) if is_our_module(&object) => vec![],
                    _ => one(Place::Attribute(held), name),
                }
            }
            Question::Reads(called) => {
                let reads = self.reads_of(py, *called)?.into_iter();
                reads.map(|(place, name, _)| (Place::of(place), name.unbind())).collect()
            }
        })
    }

    fn see(&self, py: Python<'_>, question: &Question) -> PyResult<Vec<Seen>> {
        let places = self.places(py, question)?.into_iter();
        places.map(|(place, name)| Seen::new(py, place, name)).collect()
    }
}

impl Place {
    fn of(place: Bound<'_, PyAny>) -> Place {
        match place.cast_into::<PyDict>() {
            Ok(globals) => Place::Globals(globals.unbind()),
            Err(e) => {
                let other = e.into_inner();
                match other.get_type().name().is_ok_and(|name| name == "cell") {
                    true => Place::Cell(other.unbind()),
                    false => Place::Attribute(Held::new(&other, Hold::Strongly)),
                }
            }
        }
    }
}

impl LiveHost for PyHost {
    type Watch = Watch;

    fn watch(&self, questions: &[Question]) -> Watch {
        Python::attach(|py| {
            let mut watch = Watch { seen: Vec::with_capacity(questions.len()), settled: true };
            for question in questions {
                let Ok(seen) = self.see(py, question) else {
                    watch.settled = false;
                    continue;
                };
                // The text of a function is a tuple that nobody changes.
                let is_text = matches!(question, Question::Text(_));
                watch.settled &= is_text || !seen.iter().any(|seen| seen.may_change_within(py));
                watch.seen.extend(seen);
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
