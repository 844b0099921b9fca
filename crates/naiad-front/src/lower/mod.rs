//! From syntax to Tile IR in one walk over the text.
//!
//! ```text
//! stmt     statements: assignment, return, assert
//! branch   if, and what joins after it; returns in the middle
//! loops    for and while: which names are carried
//! form     what a value is made of as it crosses the edge of a region
//! expr     expressions and names
//! access   attributes and indices
//! operator operators on values: promotion, broadcasting, Python's arithmetic on constexprs
//! call     argument binding, inlining of jit functions, calls of builtins
//! ```
//!
//! Names are bound to [`Val`]s in the frame of the function being inlined. Each body is visited
//! once: what a loop carries is found from the names that its text assigns.

mod access;
mod branch;
mod call;
mod expr;
mod form;
mod loops;
mod operator;
mod stmt;

pub(crate) use call::{Args, CallArgs};
pub(crate) use operator::{Operand, Operator, python_arithmetic};

use crate::host::{FnRef, Host};
use crate::source::{Parsed, Result};
use crate::value::{Const, Val, type_name};
use crate::{Compiled, Options, ParamSpec};
use naiad_diag::{Diagnostic, Id, Loc, Place};
use naiad_ir::tile::{Builder, Constant};
use naiad_ir::{Scalar, Type, Value};
use ruff_text_size::TextRange;
use rustc_hash::FxHashMap;
use std::rc::Rc;
use std::sync::Arc;

/// Inlining deeper than this is taken for endless recursion.
const MAX_INLINE_DEPTH: usize = 64;

/// More ops than this are taken for a runaway unrolling.
const MAX_OPS: usize = 1_000_000;

/// A variable: its value and where it got it.
#[derive(Clone)]
pub(crate) struct Binding {
    pub val: Val,
    pub place: Place,
    /// Distinguishes this assignment from every other.
    pub version: u32,
}

pub(crate) type Env = FxHashMap<Rc<str>, Binding>;

/// A function whose body is being compiled.
pub(crate) struct Frame {
    pub function: FnRef,
    pub parsed: Rc<Parsed>,
    pub env: Env,
    /// The call that this body stands for; none in the kernel.
    pub called_from: Loc,
    /// How many run-time loops of this function are open: `return` may not stand in one.
    pub loops: usize,
    /// How many `if`s of this function are open, those on constexprs too.
    pub branches: usize,
    /// Names declared `x: tl.constexpr` without a value yet.
    pub declared_constexpr: Vec<Rc<str>>,
}

/// The front end at work on one kernel.
pub(crate) struct Lower<'h> {
    pub host: &'h dyn Host,
    pub b: Builder,
    pub frames: Vec<Frame>,
    parsed: FxHashMap<FnRef, Rc<Parsed>>,
    next_version: u32,
    pub findings: Vec<Diagnostic>,
    pub printed: Vec<String>,
    pub options: Options,
    pub asked_num_warps: bool,
    /// How many regions over elements are open, as of `reduce`: nothing but arithmetic may be there.
    pub regions: usize,
    /// In debug mode: for what each comparison was written, by the value that it gave.
    pub compared: FxHashMap<Value, Compared>,
}

/// The sides of a comparison that are values of the running kernel, with their text.
pub(crate) struct Compared {
    pub sides: Vec<(Value, String)>,
    /// Of which function's body: those of a callee say nothing to who reads the caller.
    pub depth: usize,
}

/// Compiles `kernel`; see [`crate::compile`].
pub(crate) fn compile(
    host: &dyn Host,
    kernel: FnRef,
    parsed: Parsed,
    specs: &[ParamSpec],
    options: &Options,
) -> Result<Compiled> {
    let parsed = Rc::new(parsed);
    let host = crate::library::WithLibrary(host);
    let mut lower = Lower {
        host: &host,
        b: Builder::new(parsed.def.name.as_str()),
        frames: Vec::new(),
        parsed: FxHashMap::default(),
        next_version: 0,
        findings: Vec::new(),
        printed: Vec::new(),
        options: *options,
        asked_num_warps: false,
        regions: 0,
        compared: FxHashMap::default(),
    };
    lower.parsed.insert(kernel, parsed.clone());
    let info = parsed.info();
    if info.params.len() != specs.len() {
        let message = format!(
            "`{}` has {} parameters, the signature {}",
            info.name,
            info.params.len(),
            specs.len()
        );
        return Err(Box::new(Diagnostic::new(Id::BadLaunch, message)));
    }
    lower.frames.push(Frame {
        function: kernel,
        parsed: parsed.clone(),
        env: Env::default(),
        called_from: Loc::NONE,
        loops: 0,
        branches: 0,
        declared_constexpr: Vec::new(),
    });
    for ((param, place), spec) in info.params.iter().zip(&info.places).zip(specs) {
        let val = lower.param(&param.name, spec);
        lower.bind(&param.name, val, place.clone());
    }
    lower.kernel_body(&parsed)?;
    let Lower { b, findings, printed, asked_num_warps, .. } = lower;
    naiad_ir::verify(&b.func)?;
    Ok(Compiled { func: Arc::new(b.func), findings, printed, asked_num_warps })
}

impl Lower<'_> {
    /// A parameter of the kernel: run-time parts become parameters of the IR function.
    fn param(&mut self, name: &str, spec: &ParamSpec) -> Val {
        match spec {
            ParamSpec::Value(ty) => Val::Tensor(self.b.func.add_param(name, *ty)),
            ParamSpec::Constexpr(v) => Val::from_host(v.clone()),
            ParamSpec::Tuple { items, names } => {
                let items = items.iter().enumerate();
                let items = items.map(|(i, s)| self.param(&format!("{name}.{i}"), s)).collect();
                Val::Tuple(Rc::new(crate::value::Tuple { items, names: names.clone() }))
            }
            ParamSpec::Descriptor(d) => crate::builtins::window::parameter(self, name, d),
        }
    }

    pub fn frame(&self) -> &Frame {
        self.frames.last().expect("a frame is pushed before any body is compiled")
    }

    pub fn frame_mut(&mut self) -> &mut Frame {
        self.frames.last_mut().expect("a frame is pushed before any body is compiled")
    }

    pub fn bind(&mut self, name: &str, val: Val, place: Place) {
        self.next_version += 1;
        let binding = Binding { val, place, version: self.next_version };
        self.frame_mut().env.insert(name.into(), binding);
    }

    pub fn parsed(&mut self, function: FnRef) -> Result<Rc<Parsed>> {
        if let Some(parsed) = self.parsed.get(&function) {
            return Ok(parsed.clone());
        }
        let parsed = Rc::new(Parsed::new(self.host, function)?);
        self.parsed.insert(function, parsed.clone());
        Ok(parsed)
    }

    /// The place of a range of the function being compiled.
    pub fn place(&self, range: TextRange) -> Place {
        self.frame().parsed.place(range)
    }

    pub fn loc(&mut self, range: TextRange) -> Loc {
        let frame = self.frames.last().expect("a frame is pushed before any body is compiled");
        let (source, range) = (frame.parsed.source.clone(), frame.parsed.range(range));
        let called_from = frame.called_from;
        let function = frame.parsed.def.name.as_str();
        self.b.func.places.add(&source, range, function, called_from)
    }

    /// A diagnostic about a range of the function being compiled, with the calls that led here.
    pub fn error(
        &mut self,
        id: Id,
        message: impl Into<String>,
        range: TextRange,
        label: impl Into<String>,
    ) -> Box<Diagnostic> {
        let loc = self.loc(range);
        Box::new(Diagnostic::new(id, message).primary_at(&self.b.func.places, loc, label))
    }

    pub fn check_size(&mut self, range: TextRange) -> Result<()> {
        if self.b.func.num_insts() <= MAX_OPS {
            return Ok(());
        }
        let message = format!("the kernel has grown past {MAX_OPS} operations");
        Err(Box::new(
            (*self.error(Id::TooLarge, message, range, "while compiling this"))
                .help("use `range` or `tl.range` where `tl.static_range` unrolls too much"),
        ))
    }

    pub fn ty(&self, value: Value) -> Type {
        self.b.ty(value)
    }

    /// A literal as a scalar of type `ty`, into which it has been found to fit.
    pub fn literal(&mut self, c: &Const, ty: Scalar) -> Result<Value> {
        let constant = match c.as_number() {
            Some(crate::value::Number::Int(i)) if ty.is_int() => {
                Constant::int(ty, if ty.is_bool() { (i != 0) as i128 } else { i })
            }
            Some(crate::value::Number::Float(f)) if ty.is_int() => {
                Constant::int(ty, if ty.is_bool() { (f != 0.0) as i128 } else { f as i128 })
            }
            Some(n) => Constant::float(ty, n.as_f64()),
            None => Constant::int(Scalar::I32, 0),
        };
        Ok(self.b.constant(constant)?)
    }

    /// The value as one of the running kernel: a literal becomes a scalar of its natural type.
    /// None if it has no such form.
    pub fn materialize(&mut self, val: &Val) -> Result<Option<Value>> {
        match val {
            Val::Tensor(v) => Ok(Some(*v)),
            Val::Const(c) => match c.natural_type() {
                Some(ty) => Ok(Some(self.literal(c, ty)?)),
                None => Ok(None),
            },
            _ => Ok(None),
        }
    }

    /// What a plain assignment stores: literals become scalars of the running kernel, also inside
    /// tuples; everything else stays.
    pub fn decay(&mut self, val: Val) -> Result<Val> {
        match val {
            Val::Const(ref c) if c.natural_type().is_some() => {
                Ok(self.materialize(&val)?.map_or(val, Val::Tensor))
            }
            Val::Tuple(t) => {
                let items: Result<Vec<Val>> =
                    t.items.iter().map(|v| self.decay(v.clone())).collect();
                Ok(Val::Tuple(Rc::new(crate::value::Tuple {
                    items: items?,
                    names: t.names.clone(),
                })))
            }
            other => Ok(other),
        }
    }

    /// The value in words, for messages.
    pub fn describe(&self, val: &Val) -> String {
        match val {
            Val::Tensor(v) => type_name(self.ty(*v)),
            Val::Const(Const::None) => "None".to_string(),
            Val::Const(c) => format!("the constexpr {c}"),
            Val::Tuple(t) => {
                let items: Vec<String> = t.items.iter().map(|v| self.describe(v)).collect();
                format!("a tuple ({})", items.join(", "))
            }
            Val::DType(ty) => format!("the type {}", type_name(*ty)),
            Val::ConstexprType(value) => format!("the type of {}", self.describe(value)),
            Val::Function(_) => "a jit function".to_string(),
            Val::Builtin(e) => format!("the function `{}`", e.display_name()),
            Val::Method(_, e) => format!("the method `{}`", e.path),
            Val::Window(w) => {
                let elem = self.ty(w.base).elem.pointer().map_or("", |p| p.pointee.triton_name());
                format!("{} of blocks {} of {elem}", w.kind.name(), w.block)
            }
            Val::Iter(_) => "a range".to_string(),
            Val::Object(_, what) => what.to_string(),
            Val::Missing(path) => format!("`tl.{path}`, which is not supported yet"),
            Val::Undefined(_) => "nothing".to_string(),
        }
    }
}
