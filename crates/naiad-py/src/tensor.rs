//! Memory of Python objects, without a copy.
//!
//! A tensor is what has `data_ptr()` and `dtype` (torch, and wrappers of its tensors), or
//! `__array_interface__` (NumPy and its kin). Its storage is that of the array that owns the memory,
//! so an access beside a slice but inside the array it was cut from is told from one outside.
//!
//! Every launch comes here for each of its tensors, so the ways to ask are the cheapest that the
//! libraries have. An attribute that an object lacks is dear, as Python makes an exception of it: what
//! is there is asked for first.

use crate::array::{array_like, elem_of_typestr, is_plain_array};
use crate::convert::is_a;
use crate::dlpack::{self, Shown};
use crate::dtype::{DType, scalar_from_library};
use crate::errors::exception;
use naiad::{Location, Scalar, Tensor, View};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
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

pub fn unfit<T>(why: impl Into<String>, help: &'static str) -> Result<T, Trouble> {
    Err(Trouble::Unfit { why: why.into(), help })
}

/// The tensor that `obj` is; none where it is no tensor at all.
pub fn tensor(obj: &Bound<'_, PyAny>) -> Result<Option<Tensor>, Trouble> {
    let py = obj.py();
    // A class has the attributes of its instances and no memory.
    if obj.is_instance_of::<PyType>() {
        return Ok(None);
    }
    if let Some(tensor) = plain_tensor(obj)? {
        return Ok(Some(tensor));
    }
    if is_a(obj, wrapper_class(py)?) {
        return reinterpreted(obj).map(Some);
    }
    if let Some(data_ptr) = obj.getattr_opt(intern!(py, "data_ptr"))? {
        return torch_like(obj, &data_ptr).map(Some);
    }
    if obj.hasattr(intern!(py, "__array_interface__"))? {
        return array_like(obj).map(Some);
    }
    if let Some(interface) = obj.getattr_opt(intern!(py, "__cuda_array_interface__"))? {
        return array_on_gpu(obj, &interface).map(Some);
    }
    Ok(None)
}

/// The tensor of an object of NumPy's or torch's own classes. Others may be tensors all the same, but
/// these are nearly all there are, and need not be told from anything else.
pub fn plain_tensor(obj: &Bound<'_, PyAny>) -> Result<Option<Tensor>, Trouble> {
    if is_plain_array(obj) {
        return array_like(obj).map(Some);
    }
    let py = obj.py();
    let Some(shown) = dlpack::show(obj) else { return Ok(None) };
    let Shown { elem, address, location, shape, strides, may_negate } = shown;
    if may_negate {
        check_negated(&obj.call_method0(intern!(py, "is_neg"))?)?;
    }
    if location != Location::Host {
        return Ok(Some(elsewhere(elem, address, location)));
    }
    let storage = storage_range(&obj.call_method0(intern!(py, "untyped_storage"))?)?;
    let view = View { elem, shape, strides };
    Ok(Some(Tensor { elem, address, storage, view: Some(view), writable: true, location }))
}

/// A tensor of which no more than the address is looked at.
fn elsewhere(elem: Scalar, address: usize, location: Location) -> Tensor {
    Tensor { elem, address, storage: address..address, view: None, writable: true, location }
}

/// What has `__cuda_array_interface__`, as arrays of CuPy and Numba have.
fn array_on_gpu(obj: &Bound<'_, PyAny>, interface: &Bound<'_, PyAny>) -> Result<Tensor, Trouble> {
    let py = obj.py();
    let typestr: String = interface.get_item(intern!(py, "typestr"))?.extract()?;
    let (address, is_read_only): (usize, bool) =
        interface.get_item(intern!(py, "data"))?.extract()?;
    let elem = elem_of_typestr(obj, &typestr)?;
    let found = naiad::cuda::Driver::get().and_then(|driver| driver.device_of(address));
    let found = match found {
        Ok(found) => found,
        Err(e) if e.is_sticky() => return Err(exception(py, &naiad::Gpu::broken(&e)).into()),
        Err(e) => return unfit(format!("lies on a GPU, and {e}"), "copy it to the CPU first"),
    };
    match found {
        Some(ordinal) => {
            let tensor = elsewhere(elem, address, Location::Cuda(ordinal));
            Ok(Tensor { writable: !is_read_only, ..tensor })
        }
        // Nothing is read or written through an address that is null.
        None if address == 0 => Ok(elsewhere(elem, address, Location::Cuda(0))),
        None => unfit(
            "has `__cuda_array_interface__`, and its address is on no GPU that the driver knows",
            "pass an array that exists, on this machine's GPU or on its CPU",
        ),
    }
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

/// The tensor of what answers as torch's do.
fn torch_like(obj: &Bound<'_, PyAny>, data_ptr: &Bound<'_, PyAny>) -> Result<Tensor, Trouble> {
    let py = obj.py();
    dlpack::learn(py)?;
    let untyped = obj.getattr_opt(intern!(py, "untyped_storage"))?;
    let untyped = match untyped.map(|untyped| untyped.call0()).transpose() {
        Err(_) if is_sparse(obj) => {
            return unfit(
                "is a sparse tensor, which is several tensors",
                "pass its indices and its values, or `x.to_dense()`",
            );
        }
        other => other?,
    };
    // The memory's device, whatever the tensor says: see `naiad.cuda`.
    let on_cpu = match &untyped {
        Some(untyped) => on_cpu(untyped)?,
        None => false,
    };
    if !on_cpu
        && let Some(device) = obj.getattr_opt(intern!(py, "device"))?
        && !is_cpu(&device)?
    {
        if device.getattr(intern!(py, "type"))?.eq(intern!(py, "cuda"))? {
            if let Some(is_neg) = obj.getattr_opt(intern!(py, "is_neg"))? {
                check_negated(&is_neg.call0()?)?;
            }
            let elem = elem_of(&obj.getattr(intern!(py, "dtype"))?)?;
            let address: usize = part(&data_ptr.call0()?, "`data_ptr()` that gives")?;
            // Without a number it is the first.
            let index = device.getattr_opt(intern!(py, "index"))?.filter(|index| !index.is_none());
            let ordinal = index.map_or(Ok(0), |index| index.extract())?;
            return Ok(elsewhere(elem, address, Location::Cuda(ordinal)));
        }
        let why = format!("lies on the device '{device}': kernels run on CPUs and NVIDIA's GPUs");
        return unfit(why, "move it: `x.cpu()`");
    }
    if let Some(is_neg) = obj.getattr_opt(intern!(py, "is_neg"))? {
        check_negated(&is_neg.call0()?)?;
    }
    let elem = elem_of(&obj.getattr(intern!(py, "dtype"))?)?;
    let address: usize = part(&data_ptr.call0()?, "`data_ptr()` that gives")?;
    let shape: Vec<usize> = part(&obj.getattr(intern!(py, "shape"))?, "`shape` that is")?;
    let strides: Vec<isize> =
        part(&obj.call_method0(intern!(py, "stride"))?, "`stride()` that gives")?;
    let storage = match untyped {
        Some(untyped) => storage_range(&untyped)?,
        None => {
            let bytes: Option<Vec<isize>> =
                strides.iter().map(|s| s.checked_mul(elem.size() as isize)).collect();
            match bytes.and_then(|bytes| extent(address, elem.size(), &shape, &bytes)) {
                Some(extent) => extent,
                None => return beyond(),
            }
        }
    };
    let view = View { elem, shape: shape.into(), strides: strides.into() };
    let location = Location::Host;
    Ok(Tensor { elem, address, storage, view: Some(view), writable: true, location })
}

/// Whether the tensor says that it is kept in another way than with strides.
fn is_sparse(obj: &Bound<'_, PyAny>) -> bool {
    let layout =
        obj.getattr(intern!(obj.py(), "layout")).and_then(|l| l.str()?.extract::<String>());
    layout.is_ok_and(|layout| layout.starts_with("torch.sparse"))
}

fn check_negated(is_neg: &Bound<'_, PyAny>) -> Result<(), Trouble> {
    match is_neg.is_truthy()? {
        true => {
            unfit("is a view that negates its memory when read", "resolve it: `x.resolve_neg()`")
        }
        false => Ok(()),
    }
}

/// Where the memory of a tensor on a GPU begins and ends, as far as it says so.
pub fn storage_on_gpu(obj: &Bound<'_, PyAny>) -> PyResult<Option<Range<usize>>> {
    let py = obj.py();
    if let Some(untyped) = obj.getattr_opt(intern!(py, "untyped_storage"))? {
        return Ok(storage_range(&untyped.call0()?).ok());
    }
    let Some(interface) = obj.getattr_opt(intern!(py, "__cuda_array_interface__"))? else {
        return Ok(None);
    };
    let typestr: String = interface.get_item(intern!(py, "typestr"))?.extract()?;
    let (address, _): (usize, bool) = interface.get_item(intern!(py, "data"))?.extract()?;
    let shape: Vec<usize> = interface.get_item(intern!(py, "shape"))?.extract()?;
    let strides = interface.get_item(intern!(py, "strides")).ok().filter(|s| !s.is_none());
    let Ok(size) = typestr[2..].parse::<usize>() else { return Ok(None) };
    let strides: Vec<isize> = match strides {
        Some(strides) => strides.extract()?,
        None => {
            let inner = |d: usize| shape[d + 1..].iter().product::<usize>() * size;
            (0..shape.len()).map(|d| inner(d) as isize).collect()
        }
    };
    Ok(extent(address, size, &shape, &strides))
}

/// The addresses of an untyped storage of torch's.
fn storage_range(untyped: &Bound<'_, PyAny>) -> Result<Range<usize>, Trouble> {
    let py = untyped.py();
    let start: usize = part(&untyped.call_method0(intern!(py, "data_ptr"))?, "storage at")?;
    let bytes: usize = part(&untyped.call_method0(intern!(py, "nbytes"))?, "storage of")?;
    Ok(start..start.saturating_add(bytes))
}

/// Whether a storage is the CPU's.
fn on_cpu(storage: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = storage.py();
    match storage.getattr_opt(intern!(py, "device"))? {
        Some(device) => is_cpu(&device),
        None => Ok(false),
    }
}

fn is_cpu(device: &Bound<'_, PyAny>) -> PyResult<bool> {
    // The type is a text that torch makes anew each time. Devices are compared a fifth as dear.
    static CPU: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = device.py();
    if let Some(cpu) = CPU.get(py)
        && device.get_type().is(cpu.bind(py).get_type())
        && device.eq(cpu)?
    {
        return Ok(true);
    }
    let is_cpu = device.getattr(intern!(py, "type"))?.eq(intern!(py, "cpu"))?;
    if is_cpu
        && CPU.get(py).is_none()
        && device.get_type().fully_qualified_name()? == "torch.device"
    {
        // Another thread may have been first.
        let _ = CPU.set(py, device.clone().unbind());
    }
    Ok(is_cpu)
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

pub fn beyond<T>() -> Result<T, Trouble> {
    unfit("has a shape and strides that no memory can hold", "pass an array that exists")
}

/// The addresses that a strided array spans; none where they overflow.
pub fn extent(
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

pub fn no_such_dtype<T>(name: &str) -> Result<T, Trouble> {
    unfit(
        format!("has elements of dtype {name}, which kernels cannot hold"),
        "kernels hold bool, integers of 8 to 64 bits, and floats of 8 to 64 bits",
    )
}

/// The scalar of a dtype object of torch, or of `triton.reinterpret`.
pub fn elem_of(dtype: &Bound<'_, PyAny>) -> Result<Scalar, Trouble> {
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
