//! Memory of NumPy's arrays, and of what shows memory as they do.

use crate::convert::is_a;
use crate::tensor::{Trouble, beyond, elem_of, extent, no_such_dtype, tensor, unfit};
use naiad::{Axes, Location, Scalar, Tensor, View};
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyCapsule, PyDict, PyString, PyType};
use std::ffi::{c_char, c_int, c_void};
use std::ops::Range;

/// Whether `obj` is an array of NumPy's own class.
///
/// The class is known once an array of it was read the long way.
pub fn is_plain_array(obj: &Bound<'_, PyAny>) -> bool {
    NDARRAY
        .get(obj.py())
        .is_some_and(|class| obj.get_type_ptr() == class.bind(obj.py()).as_type_ptr())
}

static NDARRAY: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// The tensor of an object that has `__array_interface__`.
pub fn array_like(obj: &Bound<'_, PyAny>) -> Result<Tensor, Trouble> {
    let array = Array::read(obj)?;
    let Array { elem, address, writable, .. } = array;
    // NumPy's scalars have the interface too; their memory is a copy that nobody sees.
    if array.shape.is_empty() && !is_plain_array(obj) && !obj.hasattr("__setitem__")? {
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
    let strides = array.byte_strides.into_iter().map(|s| s / size).collect();
    let view = View { elem, shape: array.shape, strides };
    Ok(Tensor { elem, address, storage, view: Some(view), writable, location: Location::Host })
}

/// What an array says of itself.
struct Array {
    elem: Scalar,
    address: usize,
    shape: Axes<usize>,
    byte_strides: Axes<isize>,
    writable: bool,
    /// The addresses that its elements span.
    extent: Range<usize>,
}

impl Array {
    fn read(obj: &Bound<'_, PyAny>) -> Result<Array, Trouble> {
        let class = NDARRAY.get(obj.py());
        if class.is_some_and(|class| is_a(obj, class.bind(obj.py()))) {
            return Array::from_struct(obj);
        }
        let array = Array::from_interface(obj)?;
        if class.is_none() {
            let class = obj.get_type();
            if class.fully_qualified_name()? == "numpy.ndarray" {
                // Another thread may have been first, with the same class.
                let _ = NDARRAY.set(obj.py(), class.unbind());
            }
        }
        Ok(array)
    }

    /// Reads `__array_interface__`, a dictionary that is made anew each time.
    fn from_interface<'py>(obj: &Bound<'py, PyAny>) -> Result<Array, Trouble> {
        let py = obj.py();
        let interface = obj.getattr(intern!(py, "__array_interface__"))?;
        let interface = interface.cast::<PyDict>().map_err(PyErr::from)?;
        let item = |key: &Bound<'py, PyString>| -> PyResult<Bound<'py, PyAny>> {
            interface
                .get_item(key)?
                .ok_or_else(|| PyKeyError::new_err(format!("__array_interface__ has no {key}")))
        };
        let typestr = item(intern!(py, "typestr"))?.extract::<String>()?;
        let elem = elem_of_typestr(obj, &typestr)?;
        let (address, read_only): (usize, bool) = item(intern!(py, "data"))?.extract()?;
        let shape: Vec<usize> = item(intern!(py, "shape"))?.extract()?;
        let strides = interface.get_item(intern!(py, "strides"))?.filter(|s| !s.is_none());
        let byte_strides = match strides {
            Some(strides) => strides.extract()?,
            None => row_major(&shape, elem.size()),
        };
        Array::new(elem, address, shape.into(), byte_strides.into(), !read_only)
    }

    /// Reads `__array_struct__` of an array of NumPy's, a twentieth as dear.
    fn from_struct(obj: &Bound<'_, PyAny>) -> Result<Array, Trouble> {
        let capsule = obj.getattr(intern!(obj.py(), "__array_struct__"))?;
        let pointer = capsule.cast::<PyCapsule>().map_err(PyErr::from)?.pointer_checked(None)?;
        // SAFETY: NumPy documents that its arrays give a capsule without a name around this structure,
        // which lives as long as the capsule. Its first field tells it from any other.
        let (found, shape, byte_strides) = unsafe {
            let found = pointer.cast::<Interface>().as_ref();
            let rank = usize::try_from(found.nd).unwrap_or(0);
            if found.two != 2 {
                let message = "__array_struct__ gives no structure of NumPy's";
                return Err(PyValueError::new_err(message).into());
            }
            (found, list(found.shape, rank), list(found.strides, rank))
        };
        let native = found.flags & NOT_SWAPPED != 0;
        let kind = char::from(found.typekind as u8);
        let elem = elem_of_kind(obj, kind, found.itemsize as usize, native)?;
        let shape = shape.iter().map(|&n| n as usize).collect();
        let writable = found.flags & WRITABLE != 0;
        Array::new(elem, found.data as usize, shape, byte_strides.into(), writable)
    }

    fn new(
        elem: Scalar,
        address: usize,
        shape: Axes<usize>,
        byte_strides: Axes<isize>,
        writable: bool,
    ) -> Result<Array, Trouble> {
        match extent(address, elem.size(), &shape, &byte_strides) {
            Some(extent) => Ok(Array { elem, address, shape, byte_strides, writable, extent }),
            None => beyond(),
        }
    }
}

/// NumPy's `PyArrayInterface`.
#[repr(C)]
struct Interface {
    two: c_int,
    nd: c_int,
    typekind: c_char,
    itemsize: c_int,
    flags: c_int,
    shape: *const isize,
    strides: *const isize,
    data: *const c_void,
    descr: *const c_void,
}

const NOT_SWAPPED: c_int = 0x200;
const WRITABLE: c_int = 0x400;

/// The numbers at an address that may be null where there are none.
///
/// # Safety
///
/// There are as many, for as long as the result is used.
unsafe fn list<'a>(start: *const isize, len: usize) -> &'a [isize] {
    match len {
        0 => &[],
        // SAFETY: the caller's promise.
        _ => unsafe { std::slice::from_raw_parts(start, len) },
    }
}

/// The memory of the array that owns what `obj` shows: the end of its chain of bases. A view that
/// claims more than its owner has is refused, since the kernel would be let into foreign memory.
fn storage_of(obj: &Bound<'_, PyAny>, array: &Array) -> Result<Range<usize>, Trouble> {
    let py = obj.py();
    let mut owner = array.extent.clone();
    let mut base = obj.getattr_opt(intern!(py, "base"))?;
    while let Some(next) = base.filter(|b| !b.is_none()) {
        if !is_plain_array(&next) {
            if next.hasattr(intern!(py, "untyped_storage"))? {
                if let Some(tensor) = tensor(&next)? {
                    owner = tensor.storage;
                }
                break;
            }
            // What is no array (bytes, a memory map) says nothing of its extent beyond the array over it.
            if !next.hasattr(intern!(py, "__array_interface__"))? {
                break;
            }
        }
        let Ok(array) = Array::read(&next) else { break };
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

/// The scalar of a type as NumPy writes it: `<f4`.
pub fn elem_of_typestr(obj: &Bound<'_, PyAny>, typestr: &str) -> Result<Scalar, Trouble> {
    let mut chars = typestr.chars();
    let order = chars.next().unwrap_or('|');
    let native = if cfg!(target_endian = "little") { '<' } else { '>' };
    let kind = chars.next().unwrap_or('V');
    let size = chars.as_str().parse().unwrap_or(0);
    elem_of_kind(obj, kind, size, matches!(order, '|') || order == native)
}

/// The scalar of NumPy's kind of number and its size.
fn elem_of_kind(
    obj: &Bound<'_, PyAny>,
    kind: char,
    size: usize,
    native: bool,
) -> Result<Scalar, Trouble> {
    let scalar = match (kind, size) {
        ('f', 2) => Scalar::F16,
        ('f', 4) => Scalar::F32,
        ('f', 8) => Scalar::F64,
        ('i', 1) => Scalar::I8,
        ('i', 2) => Scalar::I16,
        ('i', 4) => Scalar::I32,
        ('i', 8) => Scalar::I64,
        ('u', 1) => Scalar::U8,
        ('u', 2) => Scalar::U16,
        ('u', 4) => Scalar::U32,
        ('u', 8) => Scalar::U64,
        ('b', 1) => Scalar::I1,
        // Types added to NumPy, such as those of ml_dtypes, are bare bytes here; the dtype knows.
        _ => match obj.getattr_opt(intern!(obj.py(), "dtype"))? {
            Some(dtype) => elem_of(&dtype)?,
            None => return no_such_dtype(&format!("{kind}{size}")),
        },
    };
    if !native {
        return unfit(
            "has elements in foreign byte order",
            "convert it: `x.astype(x.dtype.newbyteorder('='))`",
        );
    }
    Ok(scalar)
}
