//! Source to Tile IR.

pub mod file;
pub mod host;

pub use host::{FnRef, FunctionSource, Host, HostError, HostValue, ObjRef};

use naiad_diag::Diagnostic;
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
pub struct KernelInfo {
    pub name: String,
    pub params: Vec<ParamInfo>,
}

/// A parameter as the text declares it.
#[derive(Clone, Debug, PartialEq)]
pub struct ParamInfo {
    pub name: String,
    /// The annotation's text with quotes taken off: `tl.constexpr`, `tl.int64`, `*fp16`.
    pub annotation: Option<String>,
    pub has_default: bool,
    pub is_constexpr: bool,
}

/// Parses the function and reads its parameters.
pub fn inspect(_host: &dyn Host, _kernel: FnRef) -> Result<KernelInfo, Box<Diagnostic>> {
    todo!()
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
pub fn compile(_host: &dyn Host, _kernel: FnRef, _specs: &[ParamSpec]) -> Result<Compiled, Box<Diagnostic>> {
    todo!()
}
