//! What the text of one module says: its imports, constants and functions under `@triton.jit`.

use super::{FileHost, Scope};
use crate::host::{FnRef, HostValue};
use crate::source::is_constexpr_text;
use naiad_diag::Source;
use ruff_python_ast::{self as ast, Expr, Stmt};
use ruff_text_size::{Ranged, TextRange};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// A module that was read.
pub(super) struct Module {
    /// Its number, and its file.
    pub id: usize,
    pub source: Arc<Source>,
    pub names: Names,
    /// Functions under `@triton.jit`, in the order of the text.
    pub functions: Vec<(String, FnRef)>,
}

/// The names of a module.
#[derive(Default)]
pub(super) struct Names {
    pub bound: BTreeMap<String, Bound>,
    /// Modules whose names are imported all together, by their dotted paths.
    pub stars: Vec<String>,
}

/// What a module-level name is bound to.
pub(super) enum Bound {
    /// A module, or something in one, by its dotted path; dots ahead of it make it relative.
    Path(String),
    Jit(FnRef),
    Value(HostValue),
    Other(&'static str),
}

pub(super) struct JitFunction {
    pub name: String,
    /// The module that it is of.
    pub module: usize,
    pub range: Range<usize>,
    pub defaults: BTreeMap<String, Expr>,
}

impl Module {
    /// Reads the statements of a module. Those before one have been read when it is.
    pub fn read(host: &FileHost, id: usize, source: Arc<Source>, body: &[Stmt]) -> Module {
        let mut module = Module { id, source, names: Names::default(), functions: Vec::new() };
        module.statements(host, body);
        module
    }

    pub fn scope(&self) -> Scope<'_> {
        Scope { module: self.id, names: &self.names }
    }

    fn bind(&mut self, name: &str, bound: Bound) {
        self.names.bound.insert(name.to_string(), bound);
    }

    fn text(&self, range: TextRange) -> &str {
        &self.source.text[range.start().to_usize()..range.end().to_usize()]
    }

    fn statements(&mut self, host: &FileHost, body: &[Stmt]) {
        for stmt in body {
            match stmt {
                Stmt::Import(s) => s.names.iter().for_each(|a| self.import(a)),
                Stmt::ImportFrom(s) => self.import_from(s),
                Stmt::FunctionDef(def) => self.function(host, def),
                Stmt::ClassDef(c) => self.bind(&c.name, Bound::Other("a class")),
                Stmt::Assign(s) => {
                    for target in &s.targets {
                        self.assign(host, target, &s.value, false);
                    }
                }
                Stmt::AnnAssign(s) => {
                    let text = self.text(s.annotation.range());
                    let constexpr = is_constexpr_text(text.trim_matches(['"', '\'']));
                    if let Some(value) = &s.value {
                        self.assign(host, &s.target, value, constexpr);
                    }
                }
                // Imports often stand under `try` or `if`.
                Stmt::If(s) => {
                    self.statements(host, &s.body);
                    s.elif_else_clauses.iter().for_each(|c| self.statements(host, &c.body));
                }
                Stmt::Try(s) => {
                    self.statements(host, &s.body);
                    self.statements(host, &s.orelse);
                }
                _ => {}
            }
        }
    }

    fn import(&mut self, alias: &ast::Alias) {
        let path = alias.name.as_str();
        let top = path.split('.').next().unwrap_or(path);
        match &alias.asname {
            Some(name) => self.bind(name, Bound::Path(path.to_string())),
            None => self.bind(top, Bound::Path(top.to_string())),
        }
    }

    fn import_from(&mut self, s: &ast::StmtImportFrom) {
        let mut module = ".".repeat(s.level as usize);
        module += s.module.as_ref().map_or("", |m| m.as_str());
        for alias in &s.names {
            if alias.name.as_str() == "*" {
                self.names.stars.push(module.clone());
                continue;
            }
            let bound = alias.asname.as_ref().unwrap_or(&alias.name);
            self.bind(bound, Bound::Path(super::member(&module, &alias.name)));
        }
    }

    fn function(&mut self, host: &FileHost, def: &ast::StmtFunctionDef) {
        let is_jit = def.decorator_list.iter().any(|d| {
            let callee = match &d.expression {
                Expr::Call(c) => &c.func,
                other => other,
            };
            let text = self.text(callee.range());
            text == "jit" || text.ends_with(".jit")
        });
        if !is_jit {
            return self.bind(&def.name, Bound::Other("a Python function without `@triton.jit`"));
        }
        let first = def.decorator_list.first().map_or(def.range().start(), |d| d.range().start());
        let start = self.source.text[..first.to_usize()].rfind('\n').map_or(0, |i| i + 1);
        let p = &def.parameters;
        let defaults = p.posonlyargs.iter().chain(&p.args).chain(&p.kwonlyargs);
        let defaults = defaults
            .filter_map(|p| Some((p.parameter.name.to_string(), (**p.default.as_ref()?).clone())));
        let reference = host.add(JitFunction {
            name: def.name.to_string(),
            module: self.id,
            range: start..def.range().end().to_usize(),
            defaults: defaults.collect(),
        });
        self.bind(&def.name, Bound::Jit(reference));
        self.functions.push((def.name.to_string(), reference));
    }

    fn assign(&mut self, host: &FileHost, target: &Expr, value: &Expr, constexpr: bool) {
        if let Expr::Name(name) = target {
            // Evaluated with what is bound so far, as Python does.
            let bound = match host.value(self.scope(), value, 0) {
                Some(HostValue::Constexpr(v)) => Bound::Value(HostValue::Constexpr(v)),
                Some(v) if constexpr => Bound::Value(HostValue::Constexpr(Box::new(v))),
                Some(v) => Bound::Value(v),
                None => Bound::Other("a value that only running the module tells"),
            };
            self.bind(&name.id, bound);
        }
    }
}
