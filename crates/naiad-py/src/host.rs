//! A running Python as the front end's host.

use crate::convert::{
    Hold, constexpr_class, constexpr_function_class, describe, to_host, to_python,
};
use crate::dtype::DType;
use crate::errors::{refusal, refused};
use crate::interned::Interned;
use naiad::{FnRef, FunctionSource, Host, HostError, HostValue, ObjRef, Source};
use pyo3::exceptions::PyKeyError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString, PyTuple};
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The host of one kernel: function 0 is the kernel. Functions are kept as `JITFunction` objects.
#[derive(Default)]
pub struct PyHost {
    pub functions: Interned,
    pub objects: Interned,
    /// By function, what was read from it last and what that was in Python.
    texts: Mutex<FxHashMap<FnRef, (Py<PyAny>, FunctionSource)>>,
}

impl PyHost {
    pub const KERNEL: FnRef = FnRef(0);

    pub fn new(kernel: &Bound<'_, PyAny>) -> PyHost {
        let host = <PyHost as Default>::default();
        host.functions.intern(kernel, Hold::Strongly);
        host
    }

    pub fn visit(&self, visit: &pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        self.functions.visit(visit)?;
        self.objects.visit(visit)
    }

    /// The plain Python function under a jit function.
    pub fn function<'py>(&self, py: Python<'py>, function: FnRef) -> PyResult<Bound<'py, PyAny>> {
        self.functions.get(py, function.0)?.getattr(intern!(py, "fn"))
    }

    /// What the front end is to see in something that it asked for. `what` begins the sentence that refuses it.
    fn meaning(
        &self,
        object: &Bound<'_, PyAny>,
        what: impl FnOnce() -> String,
    ) -> PyResult<HostValue> {
        let py = object.py();
        to_host(self, object, Hold::Strongly).map_err(|e| match refused(py, &e) {
            Some(why) => refusal(py, format!("{} {why}", what())),
            None => e,
        })
    }

    /// What an object that kernels call reads besides its arguments: see `naiad.runtime.reads`.
    pub fn reads_of<'py>(&self, py: Python<'py>, called: ObjRef) -> PyResult<Vec<Read<'py>>> {
        static OF: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let of = OF.import(py, "naiad.runtime.reads", "of")?;
        of.call1((self.objects.get(py, called.0)?,))?.extract()
    }

    /// The text of a function, which is read again only where Python holds another one for it.
    fn text(&self, py: Python<'_>, function: FnRef) -> PyResult<FunctionSource> {
        let found = self.functions.get(py, function.0)?.getattr(intern!(py, TEXT))?;
        let known = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, text)) = known.get(&function).filter(|(of, _)| of.is(&found)) {
            return Ok(text.clone());
        }
        // Not while it is locked: reading runs Python.
        drop(known);
        let (name, file, text, start, end): (
            String,
            Bound<'_, PyString>,
            Bound<'_, PyString>,
            usize,
            usize,
        ) = found.extract()?;
        // Names of files need not be text.
        let file = file.to_string_lossy().into_owned();
        let text = FunctionSource { name, source: share(file, &text)?, range: start..end };
        let mut known = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        let old = known.insert(function, (found.unbind(), text.clone()));
        drop(known);
        drop(old);
        Ok(text)
    }
}

/// A place, a name there, and what it means.
pub type Read<'py> = (Bound<'py, PyAny>, Bound<'py, PyString>, Bound<'py, PyAny>);

/// Bytes of a text that takes as long to copy as a small kernel to compile.
const LONG: usize = 64 << 10;

/// One source for all functions of a file, so that thousands of kernels in it are not as many copies.
///
/// Python has one object for the text of a file until the file is read again, so that is what tells
/// sources apart. Whoever uses a source holds it; others go, but for the last one that is long: kernels that are
/// made and forgotten one after another, as in tests, are of one file.
fn share(name: String, text: &Bound<'_, PyString>) -> PyResult<Arc<Source>> {
    #[derive(Default)]
    struct Sources {
        by_text: FxHashMap<usize, (Py<PyString>, Weak<Source>)>,
        last: Option<Arc<Source>>,
        /// How many there are before it is worth looking for those that nobody uses.
        most: usize,
    }
    static SOURCES: PyOnceLock<Mutex<Sources>> = PyOnceLock::new();
    let sources = SOURCES.get_or_init(text.py(), Mutex::default);
    // Locked only while attached to Python, and nothing in between runs any.
    let mut sources = sources.lock().unwrap_or_else(PoisonError::into_inner);
    let address = text.as_ptr() as usize;
    let known = sources.by_text.get(&address).and_then(|(_, source)| source.upgrade());
    if let Some(source) = known.filter(|source| source.name == name) {
        return Ok(source);
    }
    let source = Source::new(name, text.to_str()?);
    if source.text.len() >= LONG {
        sources.last = Some(source.clone());
    }
    if sources.by_text.len() >= sources.most {
        sources.by_text.retain(|_, (_, source)| source.strong_count() > 0);
        sources.most = 2 * sources.by_text.len() + 16;
    }
    sources.by_text.insert(address, (text.clone().unbind(), Arc::downgrade(&source)));
    Ok(source)
}

/// Where, in bytes, the function ends that begins at this byte of a file's text; none where none begins there.
#[pyfunction]
pub fn function_end(text: &str, start: usize) -> Option<usize> {
    naiad::function_end(text.get(start..)?).map(|bytes| start + bytes)
}

/// The attribute of a `JITFunction` with what `naiad.runtime.source.find` found.
pub const TEXT: &str = "_text";

/// Runs `f` in Python; an exception becomes the reason why the host cannot answer.
fn ask<T>(f: impl FnOnce(Python<'_>) -> PyResult<T>) -> Result<T, HostError> {
    Python::attach(|py| {
        f(py).map_err(|e| {
            // What we have to say ourselves is a whole sentence; of another's exception the class
            // tells something.
            HostError(refused(py, &e).unwrap_or_else(|| e.to_string()))
        })
    })
}

impl Host for PyHost {
    fn source(&self, function: FnRef) -> Result<FunctionSource, HostError> {
        ask(|py| self.text(py, function))
    }

    fn resolve(&self, function: FnRef, name: &str) -> Result<Option<HostValue>, HostError> {
        ask(|py| {
            let place = Scope::of(&self.function(py, function)?, name)?;
            // Builtins of Python that kernels may call are the front end's own.
            let Some(value) = place.get(&PyString::new(py, name))? else { return Ok(None) };
            let answer = self.meaning(&value, || format!("`{name}`"))?;
            let plain = matches!(
                answer,
                HostValue::Bool(_) | HostValue::Int(_) | HostValue::Float(_) | HostValue::Str(_)
            );
            let annotated = plain
                && match &place {
                    Scope::Globals(globals) => declared_constexpr(globals, name).unwrap_or(false),
                    Scope::Cell(_) => false,
                };
            Ok(Some(if annotated { HostValue::Constexpr(Box::new(answer)) } else { answer }))
        })
    }

    fn attribute(&self, object: ObjRef, name: &str) -> Result<Option<HostValue>, HostError> {
        ask(|py| match self.objects.get(py, object.0)?.getattr_opt(name)? {
            Some(value) => self.meaning(&value, || format!("its attribute `{name}`")).map(Some),
            None => Ok(None),
        })
    }

    fn default(&self, function: FnRef, param: &str) -> Result<HostValue, HostError> {
        ask(|py| {
            let object = default_object(&self.function(py, function)?, param)?;
            self.meaning(&object, || format!("the default of `{param}`"))
        })
    }

    fn call(
        &self,
        object: ObjRef,
        args: &[HostValue],
        kwargs: &[(String, HostValue)],
    ) -> Result<HostValue, HostError> {
        ask(|py| {
            let callee = self.objects.get(py, object.0)?;
            if !may_be_called(&callee)? {
                let what = describe(&callee)?;
                let message = format!(
                    "{what} cannot be called from a kernel: put it under `@triton.jit` to run it there, or under `@triton.constexpr_function` to run it while the kernel is compiled"
                );
                return Err(refusal(py, message));
            }
            let args = args.iter().map(|v| to_python(py, self, v)).collect::<PyResult<Vec<_>>>()?;
            let keywords = PyDict::new(py);
            for (name, value) in kwargs {
                keywords.set_item(name, to_python(py, self, value)?)?;
            }
            let result = callee.call(PyTuple::new(py, args)?, Some(&keywords))?;
            self.meaning(&result, || {
                format!("the result of {}", describe(&callee).unwrap_or_default())
            })
        })
    }

    fn reads(&self, called: ObjRef) -> Result<HostValue, HostError> {
        ask(|py| {
            let facts = self.reads_of(py, called)?.into_iter();
            let fact = |(_, _, fact): Read<'_>| to_host(self, &fact, Hold::Strongly);
            let items = facts.map(fact).collect::<PyResult<_>>()?;
            Ok(HostValue::Tuple { items, names: None })
        })
    }
}

/// Constexpr functions under either decorator, named tuples, `tl.dtype` and what is in `math`: they
/// depend on nothing but their arguments.
fn may_be_called(callee: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = callee.py();
    if callee.is_instance(constexpr_function_class(py)?)?
        || callee.is_instance(constexpr_class(py)?)?
        || callee.hasattr("_fields")?
        || callee.is(py.get_type::<DType>())
    {
        return Ok(true);
    }
    let module = callee.getattr_opt("__module__")?;
    Ok(module.is_some_and(|m| m.eq("math").unwrap_or(false)))
}

/// Where a free name of a function is bound.
pub enum Scope<'py> {
    Globals(Bound<'py, PyDict>),
    Cell(Bound<'py, PyAny>),
}

impl<'py> Scope<'py> {
    pub fn of(function: &Bound<'py, PyAny>, name: &str) -> PyResult<Scope<'py>> {
        let py = function.py();
        let closure = function.getattr(intern!(py, "__closure__"))?;
        if !closure.is_none() {
            let names = function.getattr(intern!(py, "__code__"))?.getattr("co_freevars")?;
            let names = names.cast_into::<PyTuple>()?;
            let index = names.iter().position(|n| n.cast::<PyString>().is_ok_and(|n| n == name));
            if let Some(index) = index {
                let cell = closure.get_item(index)?;
                // One that is still empty binds nothing.
                if cell_contents(&cell).is_some() {
                    return Ok(Scope::Cell(cell));
                }
            }
        }
        let globals = function.getattr(intern!(py, "__globals__"))?;
        Ok(Scope::Globals(globals.cast_into::<PyDict>()?))
    }

    fn get(&self, name: &Bound<'py, PyString>) -> PyResult<Option<Bound<'py, PyAny>>> {
        match self {
            Scope::Globals(globals) => globals.get_item(name),
            Scope::Cell(cell) => Ok(cell_contents(cell)),
        }
    }
}

pub fn cell_contents<'py>(cell: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    // An empty cell says so by an exception.
    cell.getattr(intern!(cell.py(), "cell_contents")).ok()
}

/// Whether the module says `NAME: tl.constexpr = value`.
fn declared_constexpr(globals: &Bound<'_, PyDict>, name: &str) -> PyResult<bool> {
    let helper = globals.py().import("naiad.runtime.source")?.getattr("declared_constexpr")?;
    helper.call1((globals, name))?.is_truthy()
}

/// The default object of a parameter.
pub fn default_object<'py>(
    function: &Bound<'py, PyAny>,
    param: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let missing = || PyKeyError::new_err(format!("`{param}` has no default"));
    let keyword_only = function.getattr("__kwdefaults__")?;
    if let Ok(defaults) = keyword_only.cast::<PyDict>()
        && let Some(value) = defaults.get_item(param)?
    {
        return Ok(value);
    }
    let code = function.getattr("__code__")?;
    let count: usize = code.getattr("co_argcount")?.extract()?;
    let names = code.getattr("co_varnames")?.cast_into::<PyTuple>()?;
    let defaults = function.getattr("__defaults__")?;
    let defaults = defaults.cast::<PyTuple>().map_err(|_| missing())?;
    let index =
        names.iter().take(count).position(|n| n.cast::<PyString>().is_ok_and(|n| n == param));
    // Defaults belong to the last parameters.
    let index = index.and_then(|i| (i + defaults.len()).checked_sub(count)).ok_or_else(missing)?;
    defaults.get_item(index)
}
