//! Values between Python and the front end.

use crate::dtype::{self, DType};
use crate::errors::refusal;
use crate::host::PyHost;
use naiad::{FnRef, HostValue};
use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    PyBool, PyFloat, PyFunction, PyInt, PyList, PyModule, PyString, PyTuple, PyType,
};
use std::cell::Cell;
use std::sync::Arc;

/// A class of the Python package, looked up once.
macro_rules! class {
    ($name:ident, $module:literal, $class:literal) => {
        pub fn $name(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
            static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
            CLASS.import(py, $module, $class)
        }
    };
}

class!(constexpr_class, "naiad.language.core", "constexpr");
class!(constexpr_function_class, "naiad.runtime.jit", "ConstexprFunction");
class!(jit_function_class, "naiad.runtime.jit", "JITFunction");

/// How long an object that only its identity tells apart is kept alive.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Hold {
    /// As long as the kernel: for what is found while compiling, which may be held by nothing else.
    Strongly,
    /// As long as others keep it: for arguments, which a launch may bring new ones of every time.
    Weakly,
}

/// Deeper tuples are refused: values are walked and freed by recursion.
const MAX_NESTING: usize = 200;

thread_local! {
    static NESTING: Cell<usize> = const { Cell::new(0) };
}

/// One level of a value that is being converted.
pub struct Nesting(());

impl Nesting {
    pub fn enter() -> PyResult<Nesting> {
        if NESTING.get() >= MAX_NESTING {
            let message = format!("a tuple or list is nested more than {MAX_NESTING} deep");
            return Err(PyValueError::new_err(message));
        }
        NESTING.set(NESTING.get() + 1);
        Ok(Nesting(()))
    }
}

impl Drop for Nesting {
    fn drop(&mut self) {
        NESTING.set(NESTING.get() - 1);
    }
}

/// What the front end is to see in a Python object.
///
/// Tuples and lists are followed to what they hold, which may be themselves.
pub fn to_host(host: &PyHost, obj: &Bound<'_, PyAny>, hold: Hold) -> PyResult<HostValue> {
    let _deeper = Nesting::enter()?;
    if let Some(value) = plain(host, obj, hold)? {
        return Ok(value);
    }
    match numpy_scalar(obj)? {
        Some(number) => to_host(host, &number, hold),
        None => opaque(host, obj, hold),
    }
}

/// The value of an object that is no more than a value; none for others.
pub fn plain(host: &PyHost, obj: &Bound<'_, PyAny>, hold: Hold) -> PyResult<Option<HostValue>> {
    let py = obj.py();
    if obj.is_none() {
        return Ok(Some(HostValue::None));
    }
    // `bool` first: it is an `int` too.
    if let Ok(b) = obj.cast::<PyBool>() {
        return Ok(Some(HostValue::Bool(b.is_true())));
    }
    if let Ok(i) = obj.cast::<PyInt>() {
        return Ok(Some(HostValue::Int(int(i)?)));
    }
    if let Ok(f) = obj.cast::<PyFloat>() {
        return Ok(Some(HostValue::Float(f.value())));
    }
    if let Ok(s) = obj.cast::<PyString>() {
        let text = s.to_str().map_err(|_| no_text(s))?;
        return Ok(Some(HostValue::Str(text.to_string())));
    }
    if let Ok(tuple) = obj.cast::<PyTuple>() {
        let items = tuple.iter().map(|x| to_host(host, &x, hold)).collect::<PyResult<_>>()?;
        return Ok(Some(HostValue::Tuple { items, names: field_names(obj)? }));
    }
    if let Ok(list) = obj.cast::<PyList>() {
        let items = list.iter().map(|x| to_host(host, &x, hold)).collect::<PyResult<_>>()?;
        return Ok(Some(HostValue::Tuple { items, names: None }));
    }
    if let Ok(d) = obj.cast::<DType>() {
        return Ok(Some(HostValue::DType(d.get().elem)));
    }
    if is_a(obj, constexpr_class(py)?) {
        let value = obj.getattr("value")?;
        // `@tl.constexpr` over a function lets kernels call it while they are compiled.
        if value.is_instance_of::<PyFunction>() {
            let object = naiad::ObjRef(host.objects.intern(obj, hold));
            return Ok(Some(HostValue::Object(object, describe(&value)?)));
        }
        let value = to_host(host, &value, hold)?;
        return Ok(Some(HostValue::Constexpr(Box::new(value))));
    }
    if is_a(obj, jit_function_class(py)?) {
        return Ok(Some(HostValue::Function(FnRef(host.functions.intern(obj, hold)))));
    }
    Ok(None)
}

/// The value of an integer.
pub fn int(i: &Bound<'_, PyInt>) -> PyResult<i128> {
    let mut overflow = 0;
    // SAFETY: an int, of a class derived from it maybe.
    let value = unsafe { ffi::PyLong_AsLongLongAndOverflow(i.as_ptr(), &raw mut overflow) };
    match overflow {
        0 => Ok(i128::from(value)),
        // Beyond 64 bits it is taken apart by Python's own arithmetic.
        _ => i.extract().map_err(|_| too_wide(i)),
    }
}

/// The refusal of an integer that not even a constexpr can be.
fn too_wide(i: &Bound<'_, PyInt>) -> PyErr {
    // Python refuses to print the very long ones.
    let text = i.str().map_or_else(|_| "this one".to_string(), |s| format!("the int {s}"));
    refusal(i.py(), format!("cannot be {text}: it has more than 128 bits"))
}

/// The refusal of a string with code points that are no characters.
fn no_text(s: &Bound<'_, PyString>) -> PyErr {
    let text = s.repr().map_or_else(|_| "this one".to_string(), |s| format!("the str {s}"));
    refusal(s.py(), format!("cannot be {text}: one half of a surrogate pair is no character"))
}

/// The number that a scalar of NumPy's is; none for anything else.
pub fn numpy_scalar<'py>(obj: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = obj.py();
    // Whoever holds one has imported NumPy; nobody else shall have to.
    // SAFETY: attached to the interpreter; gives a module, or nothing and maybe an exception.
    let numpy = unsafe {
        let found = ffi::PyImport_GetModule(intern!(py, "numpy").as_ptr());
        Bound::from_owned_ptr_or_opt(py, found)
    };
    let Some(numpy) = numpy else { return PyErr::take(py).map_or(Ok(None), Err) };
    let generic = numpy.getattr_opt(intern!(py, "generic"))?;
    if !generic.is_some_and(|class| obj.is_instance(&class).unwrap_or(false)) {
        return Ok(None);
    }
    // Some have no counterpart in Python and give themselves.
    let number = obj.call_method0(intern!(py, "item"))?;
    Ok((!number.get_type().is(obj.get_type())).then_some(number))
}

/// An object that is known by what can be asked of it.
pub fn opaque(host: &PyHost, obj: &Bound<'_, PyAny>, hold: Hold) -> PyResult<HostValue> {
    if !obj.is_instance_of::<PyModule>()
        && let Some(name) = obj.getattr_opt("__naiad_builtin__")?
        && let Ok(name) = name.extract::<String>()
    {
        return Ok(HostValue::Builtin(name));
    }
    Ok(HostValue::Object(naiad::ObjRef(host.objects.intern(obj, hold)), describe(obj)?))
}

/// Whether an object is of a class. Python's own `isinstance` also asks objects what they claim to be,
/// which takes longer and which nothing here depends on.
pub fn is_a(obj: &Bound<'_, PyAny>, class: &Bound<'_, PyType>) -> bool {
    // SAFETY: both are alive, and attached to the interpreter.
    unsafe { ffi::PyObject_TypeCheck(obj.as_ptr(), class.as_type_ptr()) != 0 }
}

/// A word for messages. The front end knows modules of the language by theirs.
pub fn describe(obj: &Bound<'_, PyAny>) -> PyResult<String> {
    let name = |attr: &str| -> PyResult<String> { obj.getattr(attr)?.extract() };
    if obj.is_instance_of::<PyModule>() {
        return Ok(format!("module '{}'", name("__name__")?));
    }
    if obj.is_instance_of::<PyFunction>() {
        return Ok(format!("function '{}'", name("__qualname__")?));
    }
    if obj.is_instance_of::<PyType>() {
        return Ok(format!("class '{}'", name("__qualname__")?));
    }
    Ok(format!("a '{}' object", obj.get_type().name()?))
}

/// The Python object of a value of the front end.
pub fn to_python<'py>(
    py: Python<'py>,
    host: &PyHost,
    value: &HostValue,
) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        HostValue::None => py.None().into_bound(py),
        HostValue::Bool(b) => PyBool::new(py, *b).to_owned().into_any(),
        HostValue::Int(i) => i.into_pyobject(py)?.into_any(),
        HostValue::Float(f) => PyFloat::new(py, *f).into_any(),
        HostValue::Str(s) => PyString::new(py, s).into_any(),
        HostValue::Tuple { items, names } => {
            let items =
                items.iter().map(|v| to_python(py, host, v)).collect::<PyResult<Vec<_>>>()?;
            match names {
                None => PyTuple::new(py, items)?.into_any(),
                Some(names) => {
                    let make = py.import("collections")?.getattr("namedtuple")?;
                    make.call1(("tuple", names.to_vec()))?.call1(PyTuple::new(py, items)?)?
                }
            }
        }
        HostValue::DType(elem) => dtype::to_python(py, *elem)?,
        HostValue::Function(f) => host.functions.get(py, f.0)?,
        HostValue::Builtin(name) => builtin(py, name)?,
        HostValue::Constexpr(inner) => to_python(py, host, inner)?,
        HostValue::Object(o, _) => host.objects.get(py, o.0)?,
    })
}

fn builtin<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    let (module, path) = match name.strip_prefix("triton.") {
        Some(path) => ("naiad", path),
        None => ("naiad.language", name),
    };
    let module = py.import(module)?.into_any();
    path.split('.').try_fold(module, |object, attr| object.getattr(attr))
}

/// The fields of a named tuple.
pub fn field_names(tuple: &Bound<'_, PyAny>) -> PyResult<Option<Arc<[String]>>> {
    let fields = tuple.getattr_opt(intern!(tuple.py(), "_fields"))?;
    Ok(fields.and_then(|f| f.extract::<Vec<String>>().ok()).map(Into::into))
}
