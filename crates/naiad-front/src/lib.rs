//! Source to Tile IR: the only crate that knows the Python parser.
//!
//! ```text
//!   Host (a bare file, or Python) ── source ──> syntax of one function
//!                                                   │ lower   one walk: names, constexprs, types,
//!                                                   │         inlining, control flow
//!                                                   │ names   the table of public names, whose rows
//!                                                   │         lead to `builtins`
//!                                                   v
//!                                              Tile IR, verified
//! ```
//!
//! [`inspect`] reads a kernel's parameters, [`compile`] makes one specialization. What cannot be
//! compiled is a [`Diagnostic`] at its line; nothing here panics on any text.

mod builtins;
pub mod file;
pub mod host;
mod lower;
pub mod names;
mod source;
mod value;

pub use host::{FnRef, FunctionSource, Host, HostError, HostValue, ObjRef};

use naiad_diag::{Diagnostic, Place};
use naiad_ir::{Function, Type, tile::Tile};

/// What one parameter of a kernel is in one specialization.
#[derive(Clone, Debug, PartialEq)]
pub enum ParamSpec {
    /// A number or pointer known at launch.
    Value(Type),
    /// Known now: parameters under `tl.constexpr`, `None`, integers that are 1.
    Constexpr(HostValue),
    /// A tuple, by these same rules.
    Tuple(Vec<ParamSpec>),
}

/// A kernel's text, parsed, before anything is known of its arguments.
#[derive(Clone, Debug)]
pub struct KernelInfo {
    pub name: String,
    pub params: Vec<ParamInfo>,
    /// Where each parameter stands.
    pub places: Vec<Place>,
}

/// A parameter as the text declares it.
#[derive(Clone, Debug, PartialEq)]
pub struct ParamInfo {
    pub name: String,
    /// The annotation's text with quotes taken off: `tl.constexpr`, `tl.int64`, `*fp16`.
    pub annotation: Option<String>,
    pub has_default: bool,
    pub is_constexpr: bool,
    /// `*args`: its specialization is a tuple.
    pub variadic: bool,
}

/// Parses the function and reads its parameters.
pub fn inspect(host: &dyn Host, kernel: FnRef) -> Result<KernelInfo, Box<Diagnostic>> {
    Ok(source::Parsed::new(host, kernel)?.info())
}

/// A verified kernel. Its IR parameters are the run-time ones of the specialization, in order,
/// tuples flattened.
pub struct Compiled {
    pub func: Function<Tile>,
    /// Warnings and notes.
    pub findings: Vec<Diagnostic>,
    /// What `tl.static_print` printed.
    pub printed: Vec<String>,
}

/// Compiles a kernel for one specialization.
pub fn compile(
    host: &dyn Host,
    kernel: FnRef,
    specs: &[ParamSpec],
) -> Result<Compiled, Box<Diagnostic>> {
    lower::compile(host, kernel, specs)
}
