//! A host for `.py` files: no Python needed.
//!
//! What a module's text says outright is known: imports, functions, and names bound to literals,
//! `tl.constexpr(...)`, dtypes and arithmetic on those. What would have to be run is not. Modules that a
//! file imports are read where it asks for something in them, if whoever made the host [finds](Files) them.

mod module;

use crate::host::{FnRef, FunctionSource, Host, HostError, HostValue, ObjRef};
use crate::lower::{Operator, python_arithmetic};
use crate::names;
use crate::source::parse;
use crate::value::Number;
use module::{Bound, JitFunction, Module, Names};
use naiad_diag::{Diagnostic, Source};
use naiad_ir::{Elem, Scalar};
use ruff_python_ast::{self as ast, Expr};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

/// Who finds the modules that a file imports.
pub trait Files: Send + Sync {
    /// The text of the module that an import in `from` means by a dotted path: dots ahead of it make it
    /// relative.
    fn module(&self, path: &str, from: &Source) -> Option<Arc<Source>>;
}

/// The kernels and module-level names of one file, and of what it imports.
pub struct FileHost {
    main: Option<Arc<Module>>,
    files: Option<Box<dyn Files>>,
    known: Mutex<Known>,
}

/// All that was read so far.
#[derive(Default)]
struct Known {
    /// The file itself is the first. One without names is still being read: imports go in a circle.
    modules: Vec<(Arc<Source>, Option<Arc<Module>>)>,
    /// By the module that imports, and the path.
    imports: BTreeMap<(usize, String), Option<usize>>,
    /// By [`FnRef`].
    functions: Vec<Arc<JitFunction>>,
    /// Dotted paths of modules and their members as a module means them, by [`ObjRef`].
    objects: Vec<(usize, String)>,
}

/// Where a name is looked up: in a module that was read, or is being read.
#[derive(Copy, Clone)]
struct Scope<'a> {
    module: usize,
    names: &'a Names,
}

/// Classes of the language that kernels ask about: `isinstance(x, tl.tensor)`.
const CLASSES: &[&str] = &["tensor", "dtype", "block_type", "tensor_descriptor"];

/// How far imports may lead from one module to the next, and expressions into each other.
const MAX_DEPTH: usize = 64;

impl FileHost {
    /// Reads the module-level imports, constants and functions of a file's text. Of what it imports only
    /// Triton and `math` are known.
    pub fn new(source: Arc<Source>) -> Result<FileHost, Box<Diagnostic>> {
        FileHost::read(source, None)
    }

    /// The same, with the modules that `files` finds.
    pub fn with_imports(
        source: Arc<Source>,
        files: impl Files + 'static,
    ) -> Result<FileHost, Box<Diagnostic>> {
        FileHost::read(source, Some(Box::new(files)))
    }

    fn read(
        source: Arc<Source>,
        files: Option<Box<dyn Files>>,
    ) -> Result<FileHost, Box<Diagnostic>> {
        let mut host = FileHost { main: None, files, known: Mutex::default() };
        host.main = Some(host.load(source)?);
        Ok(host)
    }

    /// The names of the functions under `@triton.jit`, in the order of the text.
    pub fn kernels(&self) -> Vec<&str> {
        self.main.iter().flat_map(|m| &m.functions).map(|(name, _)| name.as_str()).collect()
    }

    pub fn kernel(&self, name: &str) -> Option<FnRef> {
        // Of several definitions the last one counts, as in Python.
        let mut functions = self.main.as_ref()?.functions.iter().rev();
        functions.find(|(n, _)| n == name).map(|(_, f)| *f)
    }

    /// What is known; it is whole even if a thread died while it held it.
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn load(&self, source: Arc<Source>) -> Result<Arc<Module>, Box<Diagnostic>> {
        let text = parse(&source.text, &source, 0)?;
        let id = {
            let mut known = self.known();
            known.modules.push((source.clone(), None));
            known.modules.len() - 1
        };
        let module = Arc::new(Module::read(self, id, source, &text.body));
        self.known().modules[id].1 = Some(module.clone());
        Ok(module)
    }

    fn add(&self, function: JitFunction) -> FnRef {
        let functions = &mut self.known().functions;
        functions.push(Arc::new(function));
        FnRef(functions.len() as u32 - 1)
    }

    fn function(&self, function: FnRef) -> Result<(Arc<JitFunction>, Arc<Module>), HostError> {
        let known = self.known();
        let f = known.functions.get(function.0 as usize);
        let module = f.and_then(|f| known.modules[f.module].1.clone());
        f.cloned().zip(module).ok_or_else(|| HostError("there is no such function".to_string()))
    }

    /// The module that an import means; none where it is not at hand, or no Python.
    fn import(&self, path: &str, from: usize) -> Option<Arc<Module>> {
        let files = self.files.as_ref()?;
        let key = (from, path.to_string());
        let importer = {
            let known = self.known();
            if let Some(found) = known.imports.get(&key) {
                return known.modules[(*found)?].1.clone();
            }
            known.modules[from].0.clone()
        };
        let source = files.module(path, &importer);
        let known = |source: &Source| {
            let known = self.known();
            known.modules.iter().position(|(s, _)| s.name == source.name)
        };
        let id = source.and_then(|s| known(&s).or_else(|| Some(self.load(s).ok()?.id)));
        let mut known = self.known();
        known.imports.insert(key, id);
        known.modules[id?].1.clone()
    }

    fn object(&self, module: usize, path: &str, what: String) -> HostValue {
        let objects = &mut self.known().objects;
        let index = objects.iter().position(|(m, p)| *m == module && p == path);
        let index = index.unwrap_or_else(|| {
            objects.push((module, path.to_string()));
            objects.len() - 1
        });
        HostValue::Object(ObjRef(index as u32), what)
    }

    fn module(&self, module: usize, path: &str) -> HostValue {
        self.object(module, path, format!("module '{path}'"))
    }

    /// What a dotted path means where it is imported by a module.
    fn path(&self, from: usize, path: &str, depth: usize) -> Option<HostValue> {
        if let Some(name) = path.strip_prefix("triton.language.") {
            // Where Triton keeps them; what is there is all in `triton.language` too.
            let parts = ["core", "standard"];
            let own = parts.iter().find_map(|part| name.strip_prefix(part)?.strip_prefix('.'));
            if parts.contains(&name) {
                return Some(self.module(from, path));
            }
            let name = own.unwrap_or(name);
            if let Some(s) = Scalar::from_triton_name(name) {
                return Some(HostValue::DType(Elem::Scalar(s)));
            }
            if names::is_public(name) {
                return Some(HostValue::Builtin(name.to_string()));
            }
            if CLASSES.contains(&name) {
                return Some(self.object(from, path, format!("class 'triton.language.{name}'")));
            }
            return names::is_module(name).then(|| self.module(from, path));
        }
        match path {
            "triton" | "triton.language" | "math" => Some(self.module(from, path)),
            "triton.cdiv" | "triton.next_power_of_2" => Some(HostValue::Builtin(path.to_string())),
            "math.pi" => Some(HostValue::Float(std::f64::consts::PI)),
            "math.e" => Some(HostValue::Float(std::f64::consts::E)),
            "math.tau" => Some(HostValue::Float(std::f64::consts::TAU)),
            "math.inf" => Some(HostValue::Float(f64::INFINITY)),
            "math.nan" => Some(HostValue::Float(f64::NAN)),
            _ if path.starts_with("math.") => Some(self.object(from, path, format!("`{path}`"))),
            _ if path.starts_with("triton.") => None,
            _ => self.imported(from, path, depth),
        }
    }

    /// A name of a module that was found, or such a module.
    fn imported(&self, from: usize, path: &str, depth: usize) -> Option<HostValue> {
        if depth > MAX_DEPTH {
            return None;
        }
        let end = path.rfind('.').map_or(0, |i| i + 1);
        let (parent, name) = path.split_at(end);
        let is_relative_root = parent.bytes().all(|b| b == b'.');
        let parent = if is_relative_root { parent } else { parent.trim_end_matches('.') };
        let member = || {
            let parent = (!parent.is_empty()).then(|| self.import(parent, from))??;
            self.bound(parent.scope(), name, depth + 1)
        };
        // As Python has it, a submodule only where the package has no such name.
        member().or_else(|| self.import(path, from).map(|_| self.module(from, path)))
    }

    /// A module-level expression, without running anything.
    fn value(&self, scope: Scope<'_>, e: &Expr, depth: usize) -> Option<HostValue> {
        if depth > MAX_DEPTH {
            return None;
        }
        let number = |v: &HostValue| match v {
            HostValue::Bool(b) => Some(Number::Int(*b as i128)),
            HostValue::Int(i) => Some(Number::Int(*i)),
            HostValue::Float(f) => Some(Number::Float(*f)),
            _ => None,
        };
        match e {
            Expr::NoneLiteral(_) => Some(HostValue::None),
            Expr::BooleanLiteral(b) => Some(HostValue::Bool(b.value)),
            Expr::StringLiteral(s) => Some(HostValue::Str(s.value.to_str().to_string())),
            Expr::NumberLiteral(n) => match &n.value {
                ast::Number::Int(i) => crate::source::integer(i).map(HostValue::Int),
                ast::Number::Float(f) => Some(HostValue::Float(*f)),
                ast::Number::Complex { .. } => None,
            },
            Expr::UnaryOp(u) if u.op == ast::UnaryOp::USub => {
                match self.value(scope, &u.operand, depth + 1)? {
                    HostValue::Int(i) => Some(HostValue::Int(-i)),
                    HostValue::Float(f) => Some(HostValue::Float(-f)),
                    _ => None,
                }
            }
            Expr::BinOp(b) => {
                let (x, y) = (
                    self.value(scope, &b.left, depth + 1)?,
                    self.value(scope, &b.right, depth + 1)?,
                );
                match python_arithmetic(Operator::from_ast(b.op), number(&x)?, number(&y)?).ok()? {
                    Number::Int(i) => Some(HostValue::Int(i)),
                    Number::Float(f) => Some(HostValue::Float(f)),
                }
            }
            Expr::Tuple(ast::ExprTuple { elts, .. }) | Expr::List(ast::ExprList { elts, .. }) => {
                let items: Option<Vec<_>> =
                    elts.iter().map(|e| self.value(scope, e, depth + 1)).collect();
                Some(HostValue::Tuple { items: items?, names: None })
            }
            Expr::Name(n) => self.bound(scope, n.id.as_str(), depth + 1),
            Expr::Attribute(a) => match self.value(scope, &a.value, depth + 1)? {
                HostValue::Object(o, _) => self.attribute(o, a.attr.as_str()).ok()?,
                HostValue::Constexpr(v) if a.attr.as_str() == "value" => Some(*v),
                _ => None,
            },
            Expr::Call(c) => {
                let mut args = Vec::new();
                for e in &c.arguments.args {
                    args.push(self.value(scope, e, depth + 1)?);
                }
                match (self.value(scope, &c.func, depth + 1)?, args.as_slice()) {
                    (HostValue::Builtin(b), [v]) if b == "constexpr" => {
                        Some(HostValue::Constexpr(Box::new(v.clone())))
                    }
                    (HostValue::Object(o, _), args) => self.call(o, args, &[]).ok(),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// What a name means in a module.
    fn bound(&self, scope: Scope<'_>, name: &str, depth: usize) -> Option<HostValue> {
        let from = scope.module;
        let Some(bound) = scope.names.bound.get(name) else {
            return self.of_stars(scope, name, depth);
        };
        match bound {
            Bound::Path(path) => {
                self.path(from, path, depth).or_else(|| Some(self.module(from, path)))
            }
            Bound::Jit(f) => Some(HostValue::Function(*f)),
            Bound::Value(value) => Some(value.clone()),
            Bound::Other(what) => Some(self.object(from, name, what.to_string())),
        }
    }

    /// What `from ... import *` brings by this name. Of a module that is not at hand it may bring any.
    fn of_stars(&self, scope: Scope<'_>, name: &str, depth: usize) -> Option<HostValue> {
        if name.starts_with('_') {
            return None;
        }
        let from = scope.module;
        let stars = || scope.names.stars.iter().rev();
        let found = stars().find_map(|star| self.path(from, &member(star, name), depth));
        found.or_else(|| {
            let is_known = |star: &str| {
                star == "math" || star.starts_with("triton") || self.import(star, from).is_some()
            };
            let star = stars().find(|star| !is_known(star))?;
            let what = format!("`{name}`, which `from {star} import *` may bring");
            Some(self.object(from, name, what))
        })
    }
}

/// The dotted path of something in a module.
fn member(module: &str, name: &str) -> String {
    // Behind dots alone there is none more.
    let dot = if module.ends_with('.') { "" } else { "." };
    format!("{module}{dot}{name}")
}

impl Host for FileHost {
    fn source(&self, function: FnRef) -> Result<FunctionSource, HostError> {
        let (f, module) = self.function(function)?;
        Ok(FunctionSource {
            name: f.name.clone(),
            source: module.source.clone(),
            range: f.range.clone(),
        })
    }

    fn resolve(&self, function: FnRef, name: &str) -> Result<Option<HostValue>, HostError> {
        let (_, module) = self.function(function)?;
        Ok(self.bound(module.scope(), name, 0))
    }

    fn attribute(&self, object: ObjRef, name: &str) -> Result<Option<HostValue>, HostError> {
        let found = self.known().objects.get(object.0 as usize).cloned();
        Ok(found.and_then(|(from, path)| {
            let path = member(&path, name);
            // Of other modules nothing is known, so they may have it.
            let opaque = || (!path.starts_with("triton.")).then(|| self.module(from, &path));
            self.path(from, &path, 0).or_else(opaque)
        }))
    }

    fn default(&self, function: FnRef, param: &str) -> Result<HostValue, HostError> {
        let (f, module) = self.function(function)?;
        let default = f.defaults.get(param);
        let default = default.ok_or_else(|| HostError(format!("`{param}` has no default")))?;
        match self.value(module.scope(), default, 0) {
            // A default may be any global.
            Some(HostValue::Constexpr(v)) => Ok(*v),
            Some(v) => Ok(v),
            None => Err(HostError(format!(
                "the default of `{param}` is known only when the module runs"
            ))),
        }
    }

    fn call(
        &self,
        object: ObjRef,
        args: &[HostValue],
        kwargs: &[(String, HostValue)],
    ) -> Result<HostValue, HostError> {
        let path = self.known().objects.get(object.0 as usize).cloned().unwrap_or_default().1;
        let unknown = || {
            HostError(format!(
                "`{path}` cannot be called without running Python; only functions of `math` are understood, and those under `@triton.jit` in this file and in modules found beside it"
            ))
        };
        let numbers: Option<Vec<f64>> = args
            .iter()
            .map(|v| match v {
                HostValue::Int(i) => Some(*i as f64),
                HostValue::Float(f) => Some(*f),
                HostValue::Bool(b) => Some(*b as u8 as f64),
                _ => None,
            })
            .collect();
        let (Some(numbers), true) = (numbers, kwargs.is_empty()) else { return Err(unknown()) };
        let function = path.strip_prefix("math.").ok_or_else(unknown)?;
        let result = match (function, numbers.as_slice()) {
            ("log2", [x]) => x.log2(),
            ("log", [x]) => x.ln(),
            ("log10", [x]) => x.log10(),
            ("exp", [x]) => x.exp(),
            ("sqrt", [x]) => x.sqrt(),
            ("sin", [x]) => x.sin(),
            ("cos", [x]) => x.cos(),
            ("pow", [x, y]) => x.powf(*y),
            ("floor", [x]) => return Ok(HostValue::Int(x.floor() as i128)),
            ("ceil", [x]) => return Ok(HostValue::Int(x.ceil() as i128)),
            _ => return Err(unknown()),
        };
        Ok(HostValue::Float(result))
    }
}
