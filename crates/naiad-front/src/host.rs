//! The boundary to Python: what the front end asks about names that the kernel does not define.
//!
//! One implementation reads a bare `.py` file ([`crate::file::FileHost`]), the other asks a running
//! Python. Objects that the front end has no use for stay opaque handles. Answers must be stable
//! while one kernel is compiled.

use naiad_diag::Source;
use naiad_ir::Elem;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// A jit function of the host.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct FnRef(pub u32);

/// An object of the host that is opaque here: a module, a class, a constexpr function, an instance.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct ObjRef(pub u32);

/// Where a function's text stands.
#[derive(Clone, Debug)]
pub struct FunctionSource {
    pub name: String,
    /// The whole file where there is one.
    pub source: Arc<Source>,
    /// Whole lines, from the first decorator (or `def`) to the body's end. The lines may be
    /// indented.
    pub range: Range<usize>,
}

/// A value known before the kernel runs.
#[derive(Clone, Debug, PartialEq)]
pub enum HostValue {
    None,
    Bool(bool),
    /// Python's integers have no bound; those beyond 128 bits are refused by the host.
    Int(i128),
    Float(f64),
    Str(String),
    /// A tuple or list; `names` are the fields of a named tuple.
    Tuple {
        items: Vec<HostValue>,
        names: Option<Arc<[String]>>,
    },
    /// `tl.float32`, `tl.pointer_type(tl.float16)`.
    DType(Elem),
    /// A function under `@triton.jit`.
    Function(FnRef),
    /// Something of `triton.language`, by its name below it: `load`, `math.exp`,
    /// `extra.libdevice.tanh`; or of `triton` itself: `triton.cdiv`.
    Builtin(String),
    /// An instance of `tl.constexpr`: the one kind of plain value that kernels may read as a global.
    Constexpr(Box<HostValue>),
    /// Anything else, with a word for messages (`module 'numpy'`, `function`).
    Object(ObjRef, String),
}

/// Why the host could not answer.
#[derive(Clone, Debug, PartialEq)]
pub struct HostError(pub String);

impl fmt::Display for HostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Who defines what a kernel's free names mean.
pub trait Host {
    /// The function's text.
    fn source(&self, function: FnRef) -> Result<FunctionSource, HostError>;

    /// A free name in the function's body: closure variable, global or Python builtin of the host.
    /// `None` where Python would raise `NameError`.
    fn resolve(&self, function: FnRef, name: &str) -> Result<Option<HostValue>, HostError>;

    /// An attribute of an opaque object.
    fn attribute(&self, object: ObjRef, name: &str) -> Result<Option<HostValue>, HostError>;

    /// The default of a parameter. Called only for parameters whose text has one.
    fn default(&self, function: FnRef, param: &str) -> Result<HostValue, HostError>;

    /// Calls an opaque object, such as a `constexpr_function` or `math.log2`, in the middle of
    /// compilation.
    fn call(
        &self,
        object: ObjRef,
        args: &[HostValue],
        kwargs: &[(String, HostValue)],
    ) -> Result<HostValue, HostError>;

    /// What an object that is called reads besides its arguments: the same again for as long as its
    /// results stand. Hosts whose objects read nothing need not say so.
    fn reads(&self, _called: ObjRef) -> Result<HostValue, HostError> {
        Ok(HostValue::None)
    }
}
