//! What torch says of a tensor in C, by the table of functions that DLPack defines.
//!
//! Each attribute of a torch tensor takes some 70 ns or more, and a launch needs nine of them. One
//! call of the table gives half of them, and takes less than one. Versions of torch without the table
//! are asked the long way, and so is whatever the table has no answer for, since then the long way has
//! the better message.

use naiad::{Axes, Location, Scalar};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyCapsule, PyDict, PyType};
use pyo3::{ffi, intern};
use std::ffi::{c_int, c_void};

/// A tensor as the table shows it. Of one on a GPU no kernel learns more than its address, so neither
/// shape nor strides are taken from it.
pub struct Shown {
    pub elem: Scalar,
    pub address: usize,
    pub location: Location,
    pub shape: Axes<usize>,
    pub strides: Axes<isize>,
    /// Whether it may be a view that negates its memory when read. Such are the imaginary parts of
    /// conjugates, and elements of a part of complex numbers are an even number of places apart.
    pub may_negate: bool,
}

/// The tensor as the table of its class shows it; none where it does not.
pub fn show(obj: &Bound<'_, PyAny>) -> Option<Shown> {
    let read = table_of(obj)?;
    let mut out = DlTensor::default();
    // SAFETY: a function of torch's for its own class, called as DLPack says: attached to Python, with
    // an object of the class and room for the result.
    if unsafe { read(obj.as_ptr(), &raw mut out) } != 0 {
        // SAFETY: attached, with the exception that the function raised.
        unsafe { ffi::PyErr_Clear() };
        return None;
    }
    let elem = elem(&out)?;
    let rank = usize::try_from(out.ndim).ok()?;
    let location = match out.device_type {
        CPU => Location::Host,
        CUDA => Location::Cuda(u32::try_from(out.device_id).ok()?),
        _ => return None,
    };
    if rank > 0 && (out.shape.is_null() || out.strides.is_null()) {
        return None;
    }
    let list = |start: *const i64| match rank {
        0 => &[],
        // SAFETY: the tensor has as many extents and strides, and nothing is done to it meanwhile.
        _ => unsafe { std::slice::from_raw_parts(start, rank) },
    };
    let (shape, strides) = (list(out.shape), list(out.strides));
    // The stride of an axis of one element says nothing.
    let may_negate = shape.iter().zip(strides).all(|(&n, s)| n < 2 || s & 1 == 0);
    let (shape, strides) = match location {
        Location::Host => (
            shape.iter().map(|&n| n as usize).collect(),
            strides.iter().map(|&s| s as isize).collect(),
        ),
        Location::Cuda(_) => Default::default(),
    };
    let address = (out.data as usize).wrapping_add(out.byte_offset as usize);
    Some(Shown { elem, address, location, shape, strides, may_negate })
}

/// The stream on which torch queues work for a GPU just now; none where its classes have no table.
pub fn current_stream(py: Python<'_>, ordinal: u32) -> Option<usize> {
    let class = CLASSES.get(py)?.iter().flatten().next()?;
    let (ask, ordinal) = (class.stream?, i32::try_from(ordinal).ok()?);
    let mut stream = std::ptr::null_mut();
    // SAFETY: a function of torch's, called as DLPack says: there is room for an address.
    match unsafe { ask(CUDA, ordinal, &raw mut stream) } {
        0 => Some(stream.addr()),
        _ => {
            // SAFETY: attached, with the exception that the function raised.
            unsafe { ffi::PyErr_Clear() };
            None
        }
    }
}

/// Looks for the tables of torch's classes, once torch is there.
pub fn learn(py: Python<'_>) -> PyResult<()> {
    if CLASSES.get(py).is_some() {
        return Ok(());
    }
    let modules = py.import(intern!(py, "sys"))?.getattr(intern!(py, "modules"))?;
    let Some(torch) = modules.cast::<PyDict>()?.get_item(intern!(py, "torch"))? else {
        return Ok(());
    };
    let class = |owner: &Bound<'_, PyAny>, name: &str| -> PyResult<Option<Class>> {
        let Some(class) = owner.getattr_opt(name)? else { return Ok(None) };
        let class = class.cast_into::<PyType>()?;
        Ok(table(&class)?.map(|(read, stream)| Class { class: class.unbind(), read, stream }))
    };
    let parameter = match torch.getattr_opt(intern!(py, "nn"))? {
        Some(nn) => class(&nn, "Parameter")?,
        None => None,
    };
    // Another thread may have been first, with the same classes.
    let _ = CLASSES.set(py, [class(&torch, "Tensor")?, parameter]);
    Ok(())
}

/// A class with what shows its objects.
struct Class {
    class: Py<PyType>,
    read: Read,
    stream: Option<AskStream>,
}

/// `torch.Tensor` and `torch.nn.Parameter`. Objects of classes derived from them may override anything.
static CLASSES: PyOnceLock<[Option<Class>; 2]> = PyOnceLock::new();

fn table_of(obj: &Bound<'_, PyAny>) -> Option<Read> {
    let (py, ty) = (obj.py(), obj.get_type_ptr());
    let mut classes = CLASSES.get(py)?.iter().flatten();
    classes.find(|c| c.class.bind(py).as_type_ptr() == ty).map(|c| c.read)
}

/// The functions of a class's table, if it has one of a version that is known here.
fn table(class: &Bound<'_, PyType>) -> PyResult<Option<(Read, Option<AskStream>)>> {
    let Some(capsule) = class.getattr_opt("__dlpack_c_exchange_api__")? else { return Ok(None) };
    let Ok(pointer) = capsule.cast::<PyCapsule>()?.pointer_checked(Some(c"dlpack_exchange_api"))
    else {
        return Ok(None);
    };
    // SAFETY: a capsule of this name holds the table, whose beginning is the same in all versions, and
    // which is never freed.
    unsafe {
        let table = pointer.cast::<Table>();
        let table = &*table.as_ptr();
        match table.major {
            1 => Ok(table.dltensor_from_py_object_no_sync.map(|f| (f, table.current_work_stream))),
            _ => Ok(None),
        }
    }
}

type Read = unsafe extern "C" fn(*mut ffi::PyObject, *mut DlTensor) -> c_int;
type AskStream = unsafe extern "C" fn(i32, i32, *mut *mut c_void) -> c_int;

/// DLPack's `DLPackExchangeAPI` of version 1; of what is not used here only the size counts.
#[repr(C)]
struct Table {
    major: u32,
    minor: u32,
    previous: *const c_void,
    managed_tensor_allocator: *const c_void,
    managed_tensor_from_py_object_no_sync: *const c_void,
    managed_tensor_to_py_object_no_sync: *const c_void,
    dltensor_from_py_object_no_sync: Option<Read>,
    current_work_stream: Option<AskStream>,
}

/// DLPack's `DLTensor`.
#[repr(C)]
struct DlTensor {
    data: *mut c_void,
    device_type: i32,
    device_id: i32,
    ndim: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *const i64,
    strides: *const i64,
    byte_offset: u64,
}

impl Default for DlTensor {
    fn default() -> DlTensor {
        DlTensor {
            data: std::ptr::null_mut(),
            device_type: 0,
            device_id: 0,
            ndim: 0,
            code: 0,
            bits: 0,
            lanes: 0,
            shape: std::ptr::null(),
            strides: std::ptr::null(),
            byte_offset: 0,
        }
    }
}

const CPU: i32 = 1;
const CUDA: i32 = 2;

/// The commonest dtypes: DLPack has codes for more.
fn elem(t: &DlTensor) -> Option<Scalar> {
    const INT: u8 = 0;
    const UNSIGNED: u8 = 1;
    const FLOAT: u8 = 2;
    const BFLOAT: u8 = 4;
    const BOOL: u8 = 6;
    Some(match (t.code, t.bits, t.lanes) {
        (FLOAT, 16, 1) => Scalar::F16,
        (FLOAT, 32, 1) => Scalar::F32,
        (FLOAT, 64, 1) => Scalar::F64,
        (BFLOAT, 16, 1) => Scalar::BF16,
        (INT, 8, 1) => Scalar::I8,
        (INT, 16, 1) => Scalar::I16,
        (INT, 32, 1) => Scalar::I32,
        (INT, 64, 1) => Scalar::I64,
        (UNSIGNED, 8, 1) => Scalar::U8,
        (UNSIGNED, 16, 1) => Scalar::U16,
        (UNSIGNED, 32, 1) => Scalar::U32,
        (UNSIGNED, 64, 1) => Scalar::U64,
        (BOOL, 8, 1) => Scalar::I1,
        _ => return None,
    })
}
