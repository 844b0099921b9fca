//! Elementary functions, each written once.
//!
//! A function here is generic over [`FloatOps`], the operations of one floating-point width. On
//! [`HostF32`] and [`HostF64`] it computes; on a builder of IR it emits the same operations. So
//! every executor evaluates the same expression tree and gives the same bits. Three rules keep that
//! true and keep loops over slices vectorizable:
//!
//! * no branches on values: what differs is computed both ways and selected;
//! * no table lookups: the longest "table" is the 2/pi of [`sin`], walked with selects;
//! * every operation is defined on every input, so a lane whose result is thrown away cannot differ.
//!
//! The coefficients are minimax polynomials in double precision, from the Remez exchange algorithm,
//! rounded to the working width where they are used. "Error 2^-k" in a comment is the approximation
//! error of the polynomial alone, relative to the function. The whole error, rounding included, is
//! measured over all `f32` inputs by `examples/accuracy.rs` and stated in `docs/accuracy.md`.
//!
//! An `f32` and an `f64` version share one scheme and differ in the degree of the polynomials and in
//! the split of constants.

mod angle;
mod arc;
mod basic;
mod bessel;
mod erf;
mod erfc;
mod exact;
mod exp;
mod gamma;
mod host;
mod hyper;
mod log;
mod ops;
mod pow;
mod root;
mod tanh;
mod trig;

// Whole modules are re-exported, so that a new function is written in one place.
pub use angle::*;
pub use arc::*;
pub use basic::*;
pub use bessel::*;
pub use erf::erf;
pub use erfc::*;
pub use exact::*;
pub use exp::{exp, exp2, exp10, expm1};
pub use gamma::*;
pub use host::{HostF32, HostF64};
pub use hyper::*;
pub use log::{log, log1p, log2, log10};
pub use ops::FloatOps;
pub use pow::*;
pub use root::*;
pub use tanh::*;
pub use trig::{cos, sin};

// Parts that functions share.
use erf::erf_series;
use exp::{exp_parts, exp_shifted};
use log::{log_pair, log1p_sum};
