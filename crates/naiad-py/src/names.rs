//! The names of `triton.language`, of which Python makes an object each; what they mean is the front
//! end's.

use pyo3::prelude::*;

/// Names of all functions, by the module they are found in: `""`, `math`, `extra.libdevice`. Those
/// that Naiad lacks are there too: one is reported where a kernel uses it, and not when a module is
/// imported.
#[pyfunction]
pub fn language_names() -> Vec<(&'static str, Vec<&'static str>)> {
    naiad::language_modules()
}

/// The path of every name that kernels can use, in the front end's spelling (`load`,
/// `libdevice.tanh`, `dtype.is_fp8`, `python.len`): what tests have to cover.
#[pyfunction]
pub fn public_names() -> Vec<&'static str> {
    let supported = |n: &naiad::PublicName| n.state == naiad::NameState::Supported;
    naiad::language_table().iter().filter(|n| supported(n)).map(|n| n.path).collect()
}

/// Name in `triton.language` and short name of every scalar type.
#[pyfunction]
pub fn dtype_names() -> Vec<(&'static str, &'static str)> {
    let short = |s: naiad::Scalar| if s.is_float() { s.name() } else { s.triton_name() };
    naiad::Scalar::ALL.iter().map(|&s| (s.triton_name(), short(s))).collect()
}
