//! A host for a bare `.py` file: no Python needed.
//!
//! What a module's text says outright is known: imports, functions, and names bound to literals,
//! `tl.constexpr(...)`, dtypes and arithmetic on those. What would have to be run is not.

use crate::host::{FnRef, FunctionSource, Host, HostError, HostValue, ObjRef};
use crate::lower::{Operator, python_arithmetic};
use crate::names;
use crate::source::{is_constexpr_text, parse};
use crate::value::Number;
use naiad_diag::{Diagnostic, Source};
use naiad_ir::{Elem, Scalar};
use ruff_python_ast::{self as ast, Expr, Stmt};
use ruff_text_size::Ranged;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

/// The kernels and module-level names of one file.
pub struct FileHost {
    source: Arc<Source>,
    functions: Vec<JitFunction>,
    names: BTreeMap<String, Bound>,
    /// Dotted paths of modules and their members, by [`ObjRef`].
    objects: Mutex<Vec<String>>,
}

struct JitFunction {
    name: String,
    range: Range<usize>,
    defaults: BTreeMap<String, Expr>,
}

/// What a module-level name is bound to.
enum Bound {
    /// A module, or something in one, by its dotted path.
    Path(String),
    Jit(FnRef),
    Value(HostValue),
    Other(&'static str),
}

impl FileHost {
    /// Reads the module-level imports, constants and functions of a file's text.
    pub fn new(source: Arc<Source>) -> Result<FileHost, Box<Diagnostic>> {
        let module = parse(&source.text, &source, 0)?;
        let mut host = FileHost {
            source,
            functions: Vec::new(),
            names: BTreeMap::new(),
            objects: Mutex::new(Vec::new()),
        };
        host.read(&module.body);
        Ok(host)
    }

    /// The names of the functions under `@triton.jit`, in the order of the text.
    pub fn kernels(&self) -> Vec<&str> {
        self.functions.iter().map(|f| f.name.as_str()).collect()
    }

    pub fn kernel(&self, name: &str) -> Option<FnRef> {
        // Of several definitions the last one counts, as in Python.
        let index = self.functions.iter().rposition(|f| f.name == name)?;
        Some(FnRef(index as u32))
    }

    fn read(&mut self, body: &[Stmt]) {
        for stmt in body {
            match stmt {
                Stmt::Import(s) => s.names.iter().for_each(|a| self.import(a)),
                Stmt::ImportFrom(s) => {
                    let module = s.module.as_ref().map_or("", |m| m.as_str());
                    for alias in &s.names {
                        let bound = alias.asname.as_ref().unwrap_or(&alias.name).to_string();
                        self.names.insert(bound, Bound::Path(format!("{module}.{}", alias.name)));
                    }
                }
                Stmt::FunctionDef(def) => self.function(def),
                Stmt::ClassDef(c) => {
                    self.names.insert(c.name.to_string(), Bound::Other("a class"));
                }
                Stmt::Assign(s) => {
                    for target in &s.targets {
                        self.assign(target, &s.value, false);
                    }
                }
                Stmt::AnnAssign(s) => {
                    let text = &self.source.text[std_range(s.annotation.range())];
                    let constexpr = is_constexpr_text(text.trim_matches(['"', '\'']));
                    if let Some(value) = &s.value {
                        self.assign(&s.target, value, constexpr);
                    }
                }
                // Imports often stand under `try` or `if`.
                Stmt::If(s) => {
                    self.read(&s.body);
                    s.elif_else_clauses.iter().for_each(|c| self.read(&c.body));
                }
                Stmt::Try(s) => {
                    self.read(&s.body);
                    self.read(&s.orelse);
                }
                _ => {}
            }
        }
    }

    fn import(&mut self, alias: &ast::Alias) {
        let path = alias.name.to_string();
        match &alias.asname {
            Some(name) => self.names.insert(name.to_string(), Bound::Path(path)),
            None => {
                let top = path.split('.').next().unwrap_or(&path).to_string();
                self.names.insert(top.clone(), Bound::Path(top))
            }
        };
    }

    fn function(&mut self, def: &ast::StmtFunctionDef) {
        let is_jit = def.decorator_list.iter().any(|d| {
            let callee = match &d.expression {
                Expr::Call(c) => &c.func,
                other => other,
            };
            let text = &self.source.text[std_range(callee.range())];
            text == "jit" || text.ends_with(".jit")
        });
        if !is_jit {
            self.names.insert(
                def.name.to_string(),
                Bound::Other("a Python function without `@triton.jit`"),
            );
            return;
        }
        let first = def.decorator_list.first().map_or(def.range().start(), |d| d.range().start());
        let start = self.source.text[..first.to_usize()].rfind('\n').map_or(0, |i| i + 1);
        let p = &def.parameters;
        let defaults = p.posonlyargs.iter().chain(&p.args).chain(&p.kwonlyargs);
        let defaults = defaults
            .filter_map(|p| Some((p.parameter.name.to_string(), (**p.default.as_ref()?).clone())));
        let function = JitFunction {
            name: def.name.to_string(),
            range: start..def.range().end().to_usize(),
            defaults: defaults.collect(),
        };
        let reference = FnRef(self.functions.len() as u32);
        self.names.insert(function.name.clone(), Bound::Jit(reference));
        self.functions.push(function);
    }

    fn assign(&mut self, target: &Expr, value: &Expr, constexpr: bool) {
        if let Expr::Name(name) = target {
            // Evaluated with what is bound so far, as Python does.
            let bound = match self.value(value, 0) {
                Some(HostValue::Constexpr(v)) => Bound::Value(HostValue::Constexpr(v)),
                Some(v) if constexpr => Bound::Value(HostValue::Constexpr(Box::new(v))),
                Some(v) => Bound::Value(v),
                None => Bound::Other("a value that only running the module tells"),
            };
            self.names.insert(name.id.to_string(), bound);
        }
    }

    /// The table of objects; it is whole even if a thread died while it held it.
    fn objects(&self) -> MutexGuard<'_, Vec<String>> {
        self.objects.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn object(&self, path: String, what: String) -> HostValue {
        let mut objects = self.objects();
        let index = objects.iter().position(|p| *p == path).unwrap_or_else(|| {
            objects.push(path);
            objects.len() - 1
        });
        HostValue::Object(ObjRef(index as u32), what)
    }

    /// What a dotted path means, as far as Naiad knows the module.
    fn path(&self, path: &str) -> Option<HostValue> {
        if let Some(name) = path.strip_prefix("triton.language.") {
            if let Some(s) = Scalar::from_triton_name(name) {
                return Some(HostValue::DType(Elem::Scalar(s)));
            }
            if names::is_public(name) {
                return Some(HostValue::Builtin(name.to_string()));
            }
            return names::is_module(name).then(|| self.module(path));
        }
        match path {
            "triton" | "triton.language" | "math" => Some(self.module(path)),
            "triton.cdiv" | "triton.next_power_of_2" => Some(HostValue::Builtin(path.to_string())),
            "math.pi" => Some(HostValue::Float(std::f64::consts::PI)),
            "math.e" => Some(HostValue::Float(std::f64::consts::E)),
            "math.tau" => Some(HostValue::Float(std::f64::consts::TAU)),
            "math.inf" => Some(HostValue::Float(f64::INFINITY)),
            "math.nan" => Some(HostValue::Float(f64::NAN)),
            _ if path.starts_with("math.") => {
                Some(self.object(path.to_string(), format!("`{path}`")))
            }
            _ if path.starts_with("triton.") => None,
            _ => Some(self.module(path)),
        }
    }

    fn module(&self, path: &str) -> HostValue {
        self.object(path.to_string(), format!("module '{path}'"))
    }

    /// A module-level expression, without running anything.
    fn value(&self, e: &Expr, depth: usize) -> Option<HostValue> {
        if depth > 64 {
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
                match self.value(&u.operand, depth + 1)? {
                    HostValue::Int(i) => Some(HostValue::Int(-i)),
                    HostValue::Float(f) => Some(HostValue::Float(-f)),
                    _ => None,
                }
            }
            Expr::BinOp(b) => {
                let (x, y) = (self.value(&b.left, depth + 1)?, self.value(&b.right, depth + 1)?);
                match python_arithmetic(Operator::from_ast(b.op), number(&x)?, number(&y)?).ok()? {
                    Number::Int(i) => Some(HostValue::Int(i)),
                    Number::Float(f) => Some(HostValue::Float(f)),
                }
            }
            Expr::Tuple(ast::ExprTuple { elts, .. }) | Expr::List(ast::ExprList { elts, .. }) => {
                let items: Option<Vec<_>> = elts.iter().map(|e| self.value(e, depth + 1)).collect();
                Some(HostValue::Tuple { items: items?, names: None })
            }
            Expr::Name(n) => self.bound(n.id.as_str()),
            Expr::Attribute(a) => match self.value(&a.value, depth + 1)? {
                HostValue::Object(o, _) => self.attribute(o, a.attr.as_str()).ok()?,
                HostValue::Constexpr(v) if a.attr.as_str() == "value" => Some(*v),
                _ => None,
            },
            Expr::Call(c) => {
                let mut args = Vec::new();
                for e in &c.arguments.args {
                    args.push(self.value(e, depth + 1)?);
                }
                match (self.value(&c.func, depth + 1)?, args.as_slice()) {
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

    fn bound(&self, name: &str) -> Option<HostValue> {
        match self.names.get(name)? {
            Bound::Path(path) => self.path(path).or_else(|| Some(self.module(path))),
            Bound::Jit(f) => Some(HostValue::Function(*f)),
            Bound::Value(value) => Some(value.clone()),
            Bound::Other(what) => Some(self.object(name.to_string(), what.to_string())),
        }
    }
}

fn std_range(range: ruff_text_size::TextRange) -> Range<usize> {
    range.start().to_usize()..range.end().to_usize()
}

impl Host for FileHost {
    fn source(&self, function: FnRef) -> Result<FunctionSource, HostError> {
        let f = self.functions.get(function.0 as usize);
        let f = f.ok_or_else(|| HostError("there is no such function".to_string()))?;
        Ok(FunctionSource {
            name: f.name.clone(),
            source: self.source.clone(),
            range: f.range.clone(),
        })
    }

    fn resolve(&self, _: FnRef, name: &str) -> Result<Option<HostValue>, HostError> {
        Ok(self.bound(name))
    }

    fn attribute(&self, object: ObjRef, name: &str) -> Result<Option<HostValue>, HostError> {
        let path = self.objects().get(object.0 as usize).cloned();
        Ok(path.and_then(|p| self.path(&format!("{p}.{name}"))))
    }

    fn default(&self, function: FnRef, param: &str) -> Result<HostValue, HostError> {
        let default = self.functions.get(function.0 as usize).and_then(|f| f.defaults.get(param));
        let default = default.ok_or_else(|| HostError(format!("`{param}` has no default")))?;
        match self.value(default, 0) {
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
        let path = self.objects().get(object.0 as usize).cloned().unwrap_or_default();
        let unknown = || {
            HostError(format!(
                "`{path}` cannot be called without running Python; only functions under `@triton.jit` and of `math` are understood"
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
