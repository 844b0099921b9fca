//! Compiled variants in terms that Python code looks at.

use crate::convert::to_python;
use crate::host::PyHost;
use naiad::{LaunchConfig, ParamSpec};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

type Object<'py> = Bound<'py, PyAny>;

/// The name of a variant, from its key.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// The type of a parameter, in the words of Triton's signatures, and its value if that is fixed.
/// Tuples are described item by item.
pub fn describe<'py>(
    py: Python<'py>,
    host: &PyHost,
    spec: &ParamSpec,
) -> PyResult<(Object<'py>, Object<'py>)> {
    let text = |text: &str| PyString::new(py, text).into_any();
    let none = || py.None().into_bound(py);
    Ok(match spec {
        ParamSpec::Value(ty) => (text(&ty.elem.to_string()), none()),
        ParamSpec::Constexpr(value) => (text("constexpr"), to_python(py, host, value)?),
        ParamSpec::Tuple { items, .. } => {
            let items = items.iter().map(|s| describe(py, host, s));
            let (types, values): (Vec<_>, Vec<_>) =
                items.collect::<PyResult<Vec<_>>>()?.into_iter().unzip();
            (PyTuple::new(py, types)?.into_any(), PyTuple::new(py, values)?.into_any())
        }
        ParamSpec::Descriptor(d) => {
            let block: Vec<usize> = d.block.dims().collect();
            (text(&format!("tensordesc<{}{block:?}>", d.pointer.pointee.name())), none())
        }
    })
}

/// The launch options that code reads back.
pub fn options(py: Python<'_>, config: LaunchConfig) -> PyResult<Bound<'_, PyDict>> {
    let options = PyDict::new(py);
    options.set_item("num_warps", config.num_warps)?;
    options.set_item("num_stages", config.num_stages)?;
    options.set_item("num_ctas", config.num_ctas)?;
    options.set_item("maxnreg", config.maxnreg)?;
    options.set_item("enable_fp_fusion", config.enable_fp_fusion)?;
    options.set_item("debug", config.debug)?;
    options.set_item("sanitize_overflow", config.sanitize_overflow)?;
    Ok(options)
}
