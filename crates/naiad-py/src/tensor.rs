//! Memory of Python objects, without a copy.
//!
//! A tensor is what has `data_ptr()` and `dtype` (torch, and wrappers of its tensors), or
//! `__array_interface__` (NumPy and its kin). Its storage is that of the array that owns the memory,
//! so an access beside a slice but inside the array it was cut from is told from one outside.

use crate::dtype::{DType, scalar_from_library};
use naiad::{Scalar, Tensor, View};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString, PyType};
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// Why an object cannot be a tensor.
pub enum Trouble {
    /// It is one, but not of a kind that kernels here can take.
    Unfit {
        why: String,
        help: &'static str,
    },
    Python(PyErr),
}

impl From<PyErr> for Trouble {
    fn from(e: PyErr) -> Trouble {
        Trouble::Python(e)
    }
}

fn unfit<T>(why: impl Into<String>, help: &'static str) -> Result<T, Trouble> {
    Err(Trouble::Unfit { why: why.into(), help })
}

/// The tensor that `obj` is; none where it is no tensor at all.
pub fn tensor(obj: &Bound<'_, PyAny>) -> Result<Option<Tensor>, Trouble> {
    let py = obj.py();
    // A class has the attributes of its instances and no memory.
    if obj.is_instance_of::<PyType>() {
        return Ok(None);
    }
    if obj.is_instance(wrapper_class(py)?)? {
        return reinterpreted(obj).map(Some);
    }
    if let Some(data_ptr) = obj.getattr_opt(intern!(py, "data_ptr"))? {
        return torch_like(obj, &data_ptr).map(Some);
    }
    if let Some(interface) = obj.getattr_opt(intern!(py, "__array_interface__"))? {
        return array_like(obj, &interface).map(Some);
    }
    if obj.hasattr(intern!(py, "__cuda_array_interface__"))? {
        return unfit(
            "lies on a GPU, and this build of Naiad runs on the CPU",
            "copy it to the CPU first",
        );
    }
    Ok(None)
}

fn wrapper_class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    CLASS.import(py, "naiad.runtime.jit", "TensorWrapper")
}

/// What `triton.reinterpret` made: the memory of one tensor with the element type of another.
fn reinterpreted(obj: &Bound<'_, PyAny>) -> Result<Tensor, Trouble> {
    let py = obj.py();
    let Some(mut base) = tensor(&obj.getattr(intern!(py, "base"))?)? else {
        return unfit(
            "reinterprets something that is no tensor",
            "reinterpret a tensor or an array",
        );
    };
    let elem = elem_of(&obj.getattr(intern!(py, "dtype"))?)?;
    if elem.size() != base.elem.size() {
        let why = format!(
            "reinterprets {} as {}, which differ in size",
            base.elem.triton_name(),
            elem.triton_name()
        );
        return unfit(why, "take a dtype of the same width");
    }
    base.elem = elem;
    if let Some(view) = &mut base.view {
        view.elem = elem;
    }
    Ok(base)
}

fn torch_like(obj: &Bound<'_, PyAny>, data_ptr: &Bound<'_, PyAny>) -> Result<Tensor, Trouble> {
    let py = obj.py();
    if let Some(device) = obj.getattr_opt(intern!(py, "device"))?
        && !is_cpu(&device)?
        && !in_cpu_storage(obj)?
    {
        let why = format!("lies on the device '{device}', and this build of Naiad runs on the CPU");
        return unfit(why, "move it: `x.cpu()`");
    }
    if let Some(is_neg) = obj.getattr_opt(intern!(py, "is_neg"))?
        && is_neg.call0()?.is_truthy()?
    {
        return unfit(
            "is a view that negates its memory when read",
            "resolve it: `x.resolve_neg()`",
        );
    }
    let elem = elem_of(&obj.getattr(intern!(py, "dtype"))?)?;
    let address: usize = part(&data_ptr.call0()?, "`data_ptr()` that gives")?;
    let shape: Vec<usize> = part(&obj.getattr(intern!(py, "shape"))?, "`shape` that is")?;
    let strides: Vec<isize> =
        part(&obj.call_method0(intern!(py, "stride"))?, "`stride()` that gives")?;
    let storage = match obj.getattr_opt(intern!(py, "untyped_storage"))? {
        Some(untyped) => {
            let untyped = untyped.call0()?;
            let start: usize = part(&untyped.call_method0(intern!(py, "data_ptr"))?, "storage at")?;
            let bytes: usize = part(&untyped.call_method0(intern!(py, "nbytes"))?, "storage of")?;
            start..start.saturating_add(bytes)
        }
        None => {
            let bytes: Option<Vec<isize>> =
                strides.iter().map(|s| s.checked_mul(elem.size() as isize)).collect();
            match bytes.and_then(|bytes| extent(address, elem.size(), &shape, &bytes)) {
                Some(extent) => extent,
                None => return beyond(),
            }
        }
    };
    let view = View { elem, shape, strides };
    Ok(Tensor { elem, address, storage, view: Some(view), writable: true })
}

fn is_cpu(device: &Bound<'_, PyAny>) -> PyResult<bool> {
    device.getattr(intern!(device.py(), "type"))?.eq(intern!(device.py(), "cpu"))
}

/// Whether the tensor's memory is the CPU's, whatever the tensor says: see `naiad.cuda`.
fn in_cpu_storage(obj: &Bound<'_, PyAny>) -> PyResult<bool> {
    let Some(untyped) = obj.getattr_opt(intern!(obj.py(), "untyped_storage"))? else {
        return Ok(false);
    };
    match untyped.call0()?.getattr_opt(intern!(obj.py(), "device"))? {
        Some(device) => is_cpu(&device),
        None => Ok(false),
    }
}

/// A part of what makes a tensor; `what` is followed by what was found instead.
fn part<'py, T: FromPyObjectOwned<'py>>(
    found: &Bound<'py, PyAny>,
    what: &str,
) -> Result<T, Trouble> {
    found.extract().or_else(|_| {
        unfit(
            format!("has a {what} {}, so it is no tensor", found.repr()?),
            "a tensor gives its address as an int, and its shape and strides as tuples of ints",
        )
    })
}

fn array_like(obj: &Bound<'_, PyAny>, interface: &Bound<'_, PyAny>) -> Result<Tensor, Trouble> {
    let array = Array::read(obj, interface)?;
    let Array { elem, address, writable, .. } = array;
    // NumPy's scalars have the interface too; their memory is a copy that nobody sees.
    if array.shape.is_empty() && !obj.hasattr(intern!(obj.py(), "__setitem__"))? {
        return unfit("is a NumPy scalar, which is no array", "pass `x.item()`, a Python number");
    }
    if address == 0 && !array.extent.is_empty() {
        return unfit("has no memory: its address is null", "pass an array that exists");
    }
    let size = elem.size() as isize;
    if array.byte_strides.iter().any(|s| s % size != 0) {
        return unfit(
            "has strides that are no multiple of its element's size",
            "copy it: `numpy.ascontiguousarray(x)`",
        );
    }
    let storage = storage_of(obj, &array)?;
    let strides = array.byte_strides.iter().map(|s| s / size).collect();
    let view = View { elem, shape: array.shape, strides };
    Ok(Tensor { elem, address, storage, view: Some(view), writable })
}

/// What `__array_interface__` says.
struct Array {
    elem: Scalar,
    address: usize,
    shape: Vec<usize>,
    byte_strides: Vec<isize>,
    writable: bool,
    /// The addresses that its elements span.
    extent: Range<usize>,
}

impl Array {
    fn read<'py>(obj: &Bound<'py, PyAny>, interface: &Bound<'py, PyAny>) -> Result<Array, Trouble> {
        let py = obj.py();
        let interface = interface.cast::<PyDict>().map_err(PyErr::from)?;
        let item = |key: &Bound<'py, PyString>| -> PyResult<Bound<'py, PyAny>> {
            interface.get_item(key)?.ok_or_else(|| {
                pyo3::exceptions::PyKeyError::new_err(format!("__array_interface__ has no {key}"))
            })
        };
        let elem = elem_of_typestr(obj, &item(intern!(py, "typestr"))?)?;
        let (address, read_only): (usize, bool) = item(intern!(py, "data"))?.extract()?;
        let shape: Vec<usize> = item(intern!(py, "shape"))?.extract()?;
        let strides = interface.get_item(intern!(py, "strides"))?.filter(|s| !s.is_none());
        let byte_strides = match strides {
            Some(strides) => strides.extract()?,
            None => row_major(&shape, elem.size()),
        };
        let Some(extent) = extent(address, elem.size(), &shape, &byte_strides) else {
            return beyond();
        };
        Ok(Array { elem, address, shape, byte_strides, writable: !read_only, extent })
    }
}

/// The memory of the array that owns what `obj` shows: the end of its chain of bases. A view that
/// claims more than its owner has is refused, since the kernel would be let into foreign memory.
fn storage_of(obj: &Bound<'_, PyAny>, array: &Array) -> Result<Range<usize>, Trouble> {
    let py = obj.py();
    let mut owner = array.extent.clone();
    let mut base = obj.getattr_opt(intern!(py, "base"))?;
    while let Some(next) = base.filter(|b| !b.is_none()) {
        if next.hasattr(intern!(py, "untyped_storage"))? {
            if let Some(tensor) = tensor(&next)? {
                owner = tensor.storage;
            }
            break;
        }
        // What is no array (bytes, a memory map) says nothing of its extent beyond the array over it.
        let Some(interface) = next.getattr_opt(intern!(py, "__array_interface__"))? else { break };
        let Ok(array) = Array::read(&next, &interface) else { break };
        owner = array.extent;
        base = next.getattr_opt(intern!(py, "base"))?;
    }
    let (have, within) = (&array.extent, &owner);
    // An empty view touches nothing and may stand anywhere.
    if !have.is_empty() && (have.start < within.start || have.end > within.end) {
        return unfit(
            "is a view that reaches outside the array that owns its memory",
            "give the view a shape and strides that stay inside, or copy it",
        );
    }
    Ok(owner)
}

fn beyond<T>() -> Result<T, Trouble> {
    unfit("has a shape and strides that no memory can hold", "pass an array that exists")
}

/// The addresses that a strided array spans; none where they overflow.
fn extent(
    address: usize,
    size: usize,
    shape: &[usize],
    byte_strides: &[isize],
) -> Option<Range<usize>> {
    if shape.contains(&0) {
        return Some(address..address);
    }
    let (mut low, mut high) = (0isize, 0isize);
    for (&extent, &stride) in shape.iter().zip(byte_strides) {
        let last = isize::try_from(extent - 1).ok()?.checked_mul(stride)?;
        low = low.checked_add(last.min(0))?;
        high = high.checked_add(last.max(0))?;
    }
    let start = address.checked_add_signed(low)?;
    Some(start..address.checked_add_signed(high)?.checked_add(size)?)
}

/// Strides in bytes; where they overflow so does the extent that is computed from them.
fn row_major(shape: &[usize], size: usize) -> Vec<isize> {
    let mut strides = vec![0; shape.len()];
    let mut stride = size as isize;
    for (slot, &extent) in strides.iter_mut().zip(shape).rev() {
        *slot = stride;
        let extent = isize::try_from(extent.max(1)).unwrap_or(isize::MAX);
        stride = stride.saturating_mul(extent);
    }
    strides
}

fn elem_of_typestr(obj: &Bound<'_, PyAny>, typestr: &Bound<'_, PyAny>) -> Result<Scalar, Trouble> {
    let typestr = typestr.cast::<PyString>().map_err(PyErr::from)?.to_str()?;
    let native = if cfg!(target_endian = "little") { '<' } else { '>' };
    let mut chars = typestr.chars();
    let order = chars.next().unwrap_or('|');
    let found = match chars.as_str() {
        "f2" => Some(Scalar::F16),
        "f4" => Some(Scalar::F32),
        "f8" => Some(Scalar::F64),
        "i1" => Some(Scalar::I8),
        "i2" => Some(Scalar::I16),
        "i4" => Some(Scalar::I32),
        "i8" => Some(Scalar::I64),
        "u1" => Some(Scalar::U8),
        "u2" => Some(Scalar::U16),
        "u4" => Some(Scalar::U32),
        "u8" => Some(Scalar::U64),
        "b1" => Some(Scalar::I1),
        // Types added to NumPy, such as those of ml_dtypes, are bare bytes here; the dtype knows.
        _ => obj
            .getattr_opt(intern!(obj.py(), "dtype"))?
            .and_then(|d| d.getattr("name").ok()?.extract::<String>().ok())
            .and_then(|name| scalar_from_library(&name)),
    };
    match found {
        Some(_) if order != native && order != '|' => unfit(
            "has elements in foreign byte order",
            "convert it: `x.astype(x.dtype.newbyteorder('='))`",
        ),
        Some(scalar) => Ok(scalar),
        None => no_such_dtype(&obj.getattr("dtype").map_or(typestr.to_string(), |d| d.to_string())),
    }
}

fn no_such_dtype<T>(name: &str) -> Result<T, Trouble> {
    unfit(
        format!("has elements of dtype {name}, which kernels cannot hold"),
        "kernels hold bool, integers of 8 to 64 bits, and floats of 8 to 64 bits",
    )
}

/// The scalar of a dtype object of torch, or of `triton.reinterpret`.
fn elem_of(dtype: &Bound<'_, PyAny>) -> Result<Scalar, Trouble> {
    // Libraries have one object for each dtype, so its address is its name; it is kept alive so
    // that no other object gets that address. They have a few dozen: a class that makes a new dtype
    // object for each tensor must not fill memory here.
    const MOST: usize = 64;
    type Known = Mutex<FxHashMap<usize, (Py<PyAny>, Scalar)>>;
    static KNOWN: PyOnceLock<Known> = PyOnceLock::new();
    let py = dtype.py();
    if let Ok(d) = dtype.cast::<DType>() {
        return d.get().elem.scalar().map_or_else(|| no_such_dtype(&d.get().name()), Ok);
    }
    let known = KNOWN.get_or_init(py, Known::default);
    let key = dtype.as_ptr() as usize;
    if let Some((_, scalar)) = known.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
        return Ok(*scalar);
    }
    let name = dtype.str()?.to_string();
    let Some(scalar) = scalar_from_library(&name) else { return no_such_dtype(&name) };
    let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
    if known.len() < MOST {
        known.insert(key, (dtype.clone().unbind(), scalar));
    }
    Ok(scalar)
}
