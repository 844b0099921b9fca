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
//! [`inspect`] reads a kernel's parameters, [`compile`] makes one specialization; [`Syntax`] does both. What cannot be
//! compiled is a [`Diagnostic`] at its line; nothing here panics on any text.

mod builtins;
pub mod file;
pub mod host;
mod library;
mod lower;
pub mod names;
mod scan;
mod source;
mod value;

pub use host::{FnRef, FunctionSource, Host, HostError, HostValue, ObjRef};
pub use scan::function_end;

use naiad_diag::{Diagnostic, Place};
use naiad_ir::{Function, Pointer, Shape, Type, tile::Tile};
use std::sync::Arc;

/// What one parameter of a kernel is in one specialization.
#[derive(Clone, Debug, PartialEq)]
pub enum ParamSpec {
    /// A number or pointer known at launch.
    Value(Type),
    /// Known now: parameters under `tl.constexpr`, `None`, integers that are 1.
    Constexpr(HostValue),
    /// A tuple, by these same rules; `names` are the fields of a named one.
    Tuple { items: Vec<ParamSpec>, names: Option<Arc<[String]>> },
    /// A tensor descriptor: its IR parameters are the base, the extents (i32) and the strides (i64).
    Descriptor(DescriptorSpec),
}

/// What is fixed of a tensor descriptor that is an argument.
#[derive(Clone, Debug, PartialEq)]
pub struct DescriptorSpec {
    pub pointer: Pointer,
    pub block: Shape,
    /// What is read outside of the tensor is NaN, not 0.
    pub pad_with_nan: bool,
    pub round_f32_to_tf32: bool,
}

impl DescriptorSpec {
    /// What the hardware demands of the block, and the type of the padding.
    pub fn check(&self) -> Result<(), String> {
        let elem = self.pointer.pointee;
        if self.pad_with_nan && !elem.has_nan() {
            return Err(format!("pads with NaN, which {} has not", elem.triton_name()));
        }
        builtins::window::descriptor_block(self.block, elem)
    }
}

/// What a kernel may be told besides its arguments.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Options {
    /// Assertions are checked.
    pub debug: bool,
    /// In debug mode integer arithmetic that overflows is an error.
    pub sanitize_overflow: bool,
    pub num_warps: u32,
    /// Compute capability of the NVIDIA GPU that `tl.target_info` speaks of.
    pub cuda_capability: Option<(u32, u32)>,
}

impl Default for Options {
    fn default() -> Options {
        Options { debug: false, sanitize_overflow: true, num_warps: 4, cuda_capability: None }
    }
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
    Ok(Syntax::of(host, kernel)?.info())
}

/// A verified kernel. Its IR parameters are the run-time ones of the specialization, in order,
/// tuples flattened.
pub struct Compiled {
    pub func: Arc<Function<Tile>>,
    /// Warnings and notes.
    pub findings: Vec<Diagnostic>,
    /// What `tl.static_print` printed, with the ends of lines.
    pub printed: Vec<String>,
    /// Whether the kernel asked for the number of warps: then another number is another kernel.
    pub asked_num_warps: bool,
}

/// Compiles a kernel for one specialization.
pub fn compile(
    host: &dyn Host,
    kernel: FnRef,
    specs: &[ParamSpec],
    options: &Options,
) -> Result<Compiled, Box<Diagnostic>> {
    Syntax::of(host, kernel)?.compile(host, specs, options)
}

/// A kernel's text, parsed, for whoever both inspects and compiles it.
pub struct Syntax {
    kernel: FnRef,
    parsed: source::Parsed,
}

impl Syntax {
    pub fn of(host: &dyn Host, kernel: FnRef) -> Result<Syntax, Box<Diagnostic>> {
        Ok(Syntax { kernel, parsed: source::Parsed::new(host, kernel)? })
    }

    /// See [`inspect`].
    pub fn info(&self) -> KernelInfo {
        self.parsed.info()
    }

    /// See [`compile`].
    pub fn compile(
        self,
        host: &dyn Host,
        specs: &[ParamSpec],
        options: &Options,
    ) -> Result<Compiled, Box<Diagnostic>> {
        lower::compile(host, self.kernel, self.parsed, specs, options)
    }
}
