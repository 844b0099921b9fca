//! A running Python as the front end's host.

use crate::convert::{constexpr_function_class, describe, to_host, to_python};
use naiad::{FnRef, FunctionSource, Host, HostError, HostValue, ObjRef, Source};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use std::sync::{Arc, Mutex, PoisonError};

/// Objects that the front end knows by number, in the order in which it met them.
#[derive(Default)]
pub struct Interned(Mutex<Vec<Py<PyAny>>>);

impl Interned {
    pub fn intern(&self, obj: &Bound<'_, PyAny>) -> u32 {
        let mut objects = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let index = objects.iter().position(|o| o.is(obj)).unwrap_or_else(|| {
            objects.push(obj.clone().unbind());
            objects.len() - 1
        });
        index as u32
    }

    pub fn get<'py>(&self, py: Python<'py>, index: u32) -> PyResult<Bound<'py, PyAny>> {
        let objects = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let object = objects.get(index as usize).map(|o| o.bind(py).clone());
        object.ok_or_else(|| PyKeyError::new_err("this object was never handed to the front end"))
    }

    fn visit(&self, visit: &pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        // Locked only while the list is read or grown, both by a thread that is attached to Python;
        // the collector then waits, so this cannot fail but in a tear-down.
        match self.0.try_lock() {
            Ok(objects) => objects.iter().try_for_each(|o| visit.call(o)),
            Err(_) => Ok(()),
        }
    }
}

/// The host of one kernel: function 0 is the kernel. Functions are kept as `JITFunction` objects.
#[derive(Default)]
pub struct PyHost {
    pub functions: Interned,
    pub objects: Interned,
    /// One text for all functions of a file, so that their places are in one source.
    sources: Mutex<Vec<Arc<Source>>>,
}

impl PyHost {
    pub const KERNEL: FnRef = FnRef(0);

    pub fn new(kernel: &Bound<'_, PyAny>) -> PyHost {
        let host = <PyHost as Default>::default();
        host.functions.intern(kernel);
        host
    }

    pub fn visit(&self, visit: &pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        self.functions.visit(visit)?;
        self.objects.visit(visit)
    }

    /// The plain Python function under a jit function.
    fn function<'py>(&self, py: Python<'py>, function: FnRef) -> PyResult<Bound<'py, PyAny>> {
        self.functions.get(py, function.0)?.getattr("fn")
    }

    fn share(&self, name: String, text: String) -> Arc<Source> {
        let mut sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        let known = sources.iter().find(|s| s.name == name && s.text == text).cloned();
        known.unwrap_or_else(|| {
            let source = Source::new(name, text);
            sources.push(source.clone());
            source
        })
    }
}

/// Runs `f` in Python; an exception becomes the reason why the host cannot answer.
fn ask<T>(f: impl FnOnce(Python<'_>) -> PyResult<T>) -> Result<T, HostError> {
    Python::attach(|py| f(py).map_err(|e| HostError(e.to_string())))
}

impl Host for PyHost {
    fn source(&self, function: FnRef) -> Result<FunctionSource, HostError> {
        ask(|py| {
            // By the code object: another function of that name may have replaced it since.
            let found = py
                .import("naiad.runtime.source")?
                .getattr("find")?
                .call1((self.function(py, function)?,))?;
            let (name, file, text, start, end): (String, String, String, usize, usize) =
                found.extract()?;
            Ok(FunctionSource { name, source: self.share(file, text), range: start..end })
        })
    }

    fn resolve(&self, function: FnRef, name: &str) -> Result<Option<HostValue>, HostError> {
        ask(|py| {
            let function = self.function(py, function)?;
            let found = match closure_variable(&function, name)? {
                Some(value) => Some((value, None)),
                None => {
                    let globals = function.getattr("__globals__")?.cast_into::<PyDict>()?;
                    globals.get_item(name)?.map(|value| (value, Some(globals)))
                }
            };
            // Builtins of Python that kernels may call are the front end's own.
            let Some((value, globals)) = found else { return Ok(None) };
            let answer = to_host(self, &value)?;
            let annotated = matches!(
                answer,
                HostValue::Bool(_) | HostValue::Int(_) | HostValue::Float(_) | HostValue::Str(_)
            ) && globals
                .is_some_and(|g| declared_constexpr(&g, name).unwrap_or(false));
            Ok(Some(if annotated { HostValue::Constexpr(Box::new(answer)) } else { answer }))
        })
    }

    fn attribute(&self, object: ObjRef, name: &str) -> Result<Option<HostValue>, HostError> {
        ask(|py| match self.objects.get(py, object.0)?.getattr_opt(name)? {
            Some(value) => to_host(self, &value).map(Some),
            None => Ok(None),
        })
    }

    fn default(&self, function: FnRef, param: &str) -> Result<HostValue, HostError> {
        ask(|py| to_host(self, &default_object(&self.function(py, function)?, param)?))
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
                return Err(pyo3::exceptions::PyTypeError::new_err(message));
            }
            let args = args.iter().map(|v| to_python(py, self, v)).collect::<PyResult<Vec<_>>>()?;
            let keywords = PyDict::new(py);
            for (name, value) in kwargs {
                keywords.set_item(name, to_python(py, self, value)?)?;
            }
            to_host(self, &callee.call(PyTuple::new(py, args)?, Some(&keywords))?)
        })
    }
}

/// Constexpr functions, named tuples and what is in `math`: they depend on nothing but their
/// arguments.
fn may_be_called(callee: &Bound<'_, PyAny>) -> PyResult<bool> {
    if callee.is_instance(constexpr_function_class(callee.py())?)? || callee.hasattr("_fields")? {
        return Ok(true);
    }
    let module = callee.getattr_opt("__module__")?;
    Ok(module.is_some_and(|m| m.eq("math").unwrap_or(false)))
}

fn closure_variable<'py>(
    function: &Bound<'py, PyAny>,
    name: &str,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let closure = function.getattr("__closure__")?;
    if closure.is_none() {
        return Ok(None);
    }
    let names = function.getattr("__code__")?.getattr("co_freevars")?.cast_into::<PyTuple>()?;
    let index = names.iter().position(|n| n.cast::<PyString>().is_ok_and(|n| n == name));
    match index {
        // A cell that is still empty has no attribute `cell_contents`.
        Some(i) => match closure.get_item(i)?.getattr("cell_contents") {
            Ok(value) => Ok(Some(value)),
            Err(_) => Ok(None),
        },
        None => Ok(None),
    }
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
