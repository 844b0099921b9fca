//! The arguments of a call, before anybody knows to which parameters they belong.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use pyo3::{Borrowed, ffi};
use smallvec::SmallVec;

/// Arguments by position, then those by keyword. What is called holds none of them: the caller does, until
/// the call is over.
pub struct Call<'a, 'py> {
    values: SmallVec<[Borrowed<'a, 'py, PyAny>; 16]>,
    /// The names of the last ones.
    names: SmallVec<[Borrowed<'a, 'py, PyString>; 8]>,
}

impl<'a, 'py> Call<'a, 'py> {
    /// A call as CPython makes those of its own functions.
    ///
    /// # Safety
    ///
    /// At `args` are `positional` objects, then one for each string of the tuple `names`, which is null
    /// where there is none. The caller holds them for as long as `'a`.
    pub unsafe fn from_fastcall(
        py: Python<'py>,
        args: *const *mut ffi::PyObject,
        positional: usize,
        names: *mut ffi::PyObject,
    ) -> PyResult<Call<'a, 'py>> {
        let mut call = Call { values: SmallVec::new(), names: SmallVec::new() };
        if !names.is_null() {
            // SAFETY: a tuple, which holds its strings.
            unsafe {
                for i in 0..ffi::PyTuple_Size(names) {
                    let name = Borrowed::from_ptr(py, ffi::PyTuple_GetItem(names, i));
                    call.names.push(name.cast::<PyString>()?);
                }
            }
        }
        for i in 0..positional + call.names.len() {
            // SAFETY: the caller's promise.
            call.values.push(unsafe { Borrowed::from_ptr(py, *args.add(i)) });
        }
        Ok(call)
    }

    /// A call as `f(*args, **kwargs)` makes it; `kwargs` are the items of the dictionary, which others may
    /// change meanwhile.
    pub fn new(
        args: &'a Bound<'py, PyTuple>,
        kwargs: &'a [(Bound<'py, PyString>, Bound<'py, PyAny>)],
    ) -> Call<'a, 'py> {
        let by_keyword = kwargs.iter().map(|(_, value)| value.as_borrowed());
        let values = args.iter_borrowed().chain(by_keyword).collect();
        Call { values, names: kwargs.iter().map(|(name, _)| name.as_borrowed()).collect() }
    }

    /// All of them.
    pub fn values(&self) -> &[Borrowed<'a, 'py, PyAny>] {
        &self.values
    }

    /// How many are given by position.
    pub fn positional(&self) -> usize {
        self.values.len() - self.names.len()
    }

    /// The names of the others, in their order.
    pub fn names(&self) -> &[Borrowed<'a, 'py, PyString>] {
        &self.names
    }

    /// As a tuple and a dictionary.
    pub fn to_python(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyTuple>, Bound<'py, PyDict>)> {
        let (args, by_keyword) = self.values.split_at(self.positional());
        let kwargs = PyDict::new(py);
        for (name, value) in self.names.iter().zip(by_keyword) {
            kwargs.set_item(name, value)?;
        }
        Ok((PyTuple::new(py, args)?, kwargs))
    }
}

/// The items of keyword arguments.
pub fn items<'py>(
    kwargs: &Bound<'py, PyDict>,
) -> PyResult<Vec<(Bound<'py, PyString>, Bound<'py, PyAny>)>> {
    kwargs.iter().map(|(name, value)| Ok((name.cast_into()?, value))).collect()
}
