//! Run kernels of the Triton language from Rust: no Python, no GPU, no LLVM.
//!
//! ```no_run
//! # fn main() -> naiad::Result<()> {
//! let module = naiad::Module::from_file("examples/gelu.py")?;
//! let gelu = module.kernel("gelu_kernel")?;
//! let x = vec![1.0f32; 1000];
//! let mut y = vec![0.0f32; 1000];
//! gelu.launch((4,), naiad::args![&x, &mut y, x.len(), 1, 1, BLOCK = 256])?;
//! # Ok(()) }
//! ```
//!
//! How a launch goes, which is the same for Rust and for Python:
//!
//! ```text
//! positional and keyword arguments
//!      | Signature::bind            which argument is whose; launch options set aside
//! one Slot per parameter
//!      | Kernel::prepare            types by Triton's rules -> key -> compiled variant
//! Launch
//!      | Launch::run                grid, executor
//! Report
//! ```
//!
//! Whoever launches the same again and again keeps a [`Ready`] of it, which leaves out what is known.
//!
//! A [`Kernel`] is generic over the [`Host`] that answers what the kernel's free names mean: a bare
//! file ([`Module`]) or a running Python. Whatever goes wrong is an [`Error`] with a
//! [`Diagnostic`]; a panic of the compiler or an executor is caught and becomes one too.

#[cfg(not(feature = "interp"))]
compile_error!("naiad needs an executor: enable its feature `interp`");

mod annotation;
mod args;
mod clock;
mod device;
mod error;
mod executor;
#[cfg(feature = "cuda")]
mod gpu;
mod grid;
mod kernel;
#[cfg(feature = "cuda")]
mod lockstep;
mod module;
mod options;
mod print;
mod ready;
mod recorder;
mod review;
mod settings;
mod signature;
mod small;
mod specialize;
mod text;
mod value;
mod variants;
#[cfg(feature = "cuda")]
mod watched;

pub use annotation::Annotation;
pub use args::{Args, Argument, Element, ElementMut, SliceView, constexpr};
pub use clock::nanoseconds;
pub use device::Device;
pub use error::{Error, Result, guard};
pub use executor::{Executor, Stage, stage};
#[cfg(feature = "cuda")]
pub use gpu::{CudaBuffer, Gpu, GpuCode, Ptx, Target, Times, ptx};
pub use grid::{Grid, IntoGrid};
pub use kernel::{Kernel, KernelOptions, Launch, ParamSelector, Request};
pub use module::Module;
/// The driver of NVIDIA's GPUs.
#[cfg(feature = "cuda")]
pub use naiad_cuda as cuda;
pub use naiad_diag::text::names as names_in;
pub use naiad_diag::{Diagnostic, Id, Label, Place, Severity, Source, render};
pub use naiad_front::host::{FnRef, FunctionSource, Host, HostError, HostValue, ObjRef};
pub use naiad_front::names::{
    PublicName, State as NameState, modules as language_modules, table as language_table,
};
pub use naiad_front::{Compiled, Options as CompileOptions, ParamSpec, function_end};
pub use naiad_interp::poison;
pub use naiad_interp::{Axes, LaunchOptions, Operand, PolicyKind, Printed, Report, View};
pub use naiad_ir::types::MAX_NUMEL;
pub use naiad_ir::{Elem, Pointer, Scalar, Type};
pub use options::LaunchConfig;
pub use print::{PrintLayout, PrintOptions, Printer};
pub use ready::{Again, Ready};
pub use recorder::{LiveHost, Question};
pub use review::{Declared, review};
pub use signature::{Bound, Param, Signature, Slot};
pub use value::{Descriptor, Location, Tensor, Value};
