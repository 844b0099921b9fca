//! A function's text, parsed. The only place that calls the Python parser.

use crate::host::{FnRef, FunctionSource, Host};
use crate::scan::Nesting;
use crate::{KernelInfo, ParamInfo};
use naiad_diag::{Diagnostic, Id, Place, Source};
use ruff_python_ast::{self as ast, Expr, Stmt};
use ruff_text_size::{Ranged, TextRange};
use std::ops::Range;
use std::sync::Arc;

pub(crate) type Result<T> = std::result::Result<T, Box<Diagnostic>>;

/// What is put before an indented `def` so that it parses where it stands; all offsets then shift
/// by one constant, and no line is changed.
const WRAPPER: &str = "if 1:\n";

/// One `def`, with what it takes to turn the parser's offsets into places.
pub(crate) struct Parsed {
    pub def: ast::StmtFunctionDef,
    pub params: Vec<ParamInfo>,
    pub source: Arc<Source>,
    /// Added to the parser's offsets to give those in `source`.
    shift: isize,
}

impl Parsed {
    pub fn new(host: &dyn Host, function: FnRef) -> Result<Parsed> {
        let text =
            host.source(function).map_err(|e| Box::new(Diagnostic::new(Id::NoKernel, e.0)))?;
        Parsed::from_source(&text)
    }

    pub fn from_source(text: &FunctionSource) -> Result<Parsed> {
        let FunctionSource { name, source, range } = text;
        let slice = source.text.get(range.clone()).unwrap_or("");
        let indented = slice.starts_with([' ', '\t']);
        let (module, shift) = if indented {
            let wrapped = format!("{WRAPPER}{slice}");
            (
                parse(&wrapped, source, range.start as isize - WRAPPER.len() as isize)?,
                range.start as isize - WRAPPER.len() as isize,
            )
        } else {
            (parse(slice, source, range.start as isize)?, range.start as isize)
        };
        let mut body = module.body;
        if indented {
            body = match body.into_iter().next() {
                Some(Stmt::If(wrapper)) => wrapper.body,
                _ => Default::default(),
            };
        }
        let def = body.into_iter().find_map(|s| match s {
            Stmt::FunctionDef(def) => Some(def),
            _ => None,
        });
        let Some(def) = def else {
            let message = format!("the source of `{name}` holds no `def`");
            return Err(Box::new(Diagnostic::new(Id::NoKernel, message)));
        };
        if def.is_async {
            let at = Place::new(source.clone(), shifted(def.name.range(), shift));
            let message = format!("`{name}` is an `async` function, which no kernel can be");
            let d = Diagnostic::new(Id::UnsupportedPython, message).primary(at, "");
            return Err(Box::new(d.help("write `def`")));
        }
        let mut parsed = Parsed { def, params: Vec::new(), source: source.clone(), shift };
        parsed.params = parsed.read_params()?;
        Ok(parsed)
    }

    fn read_params(&self) -> Result<Vec<ParamInfo>> {
        let p = &self.def.parameters;
        if let Some(kwarg) = &p.kwarg {
            let at = self.place(kwarg.range());
            return Err(Box::new(
                Diagnostic::new(
                    Id::UnsupportedPython,
                    "a kernel cannot take `**` keyword arguments",
                )
                .primary(at, "Triton has no dictionaries at run time")
                .help("name each parameter"),
            ));
        }
        let one = |p: &ast::Parameter, has_default: bool, variadic: bool| {
            let annotation = p.annotation.as_deref().map(|a| self.annotation_text(a));
            let is_constexpr = annotation.as_deref().is_some_and(is_constexpr_text);
            ParamInfo { name: p.name.to_string(), annotation, has_default, is_constexpr, variadic }
        };
        let mut out = Vec::new();
        for p in p.posonlyargs.iter().chain(&p.args) {
            out.push(one(&p.parameter, p.default.is_some(), false));
        }
        if let Some(vararg) = &p.vararg {
            out.push(one(vararg, false, true));
        }
        for p in &p.kwonlyargs {
            out.push(one(&p.parameter, p.default.is_some(), false));
        }
        Ok(out)
    }

    /// The annotation as text; one in quotes without them.
    pub fn annotation_text(&self, annotation: &Expr) -> String {
        match annotation {
            Expr::StringLiteral(s) => s.value.to_str().to_string(),
            other => self.place(other.range()).text().to_string(),
        }
    }

    pub fn info(&self) -> KernelInfo {
        let places = self.param_places();
        KernelInfo { name: self.def.name.to_string(), params: self.params.clone(), places }
    }

    fn param_places(&self) -> Vec<Place> {
        let p = &self.def.parameters;
        let mut out: Vec<Place> = Vec::new();
        out.extend(p.posonlyargs.iter().chain(&p.args).map(|p| self.place(p.parameter.range())));
        out.extend(p.vararg.iter().map(|p| self.place(p.range())));
        out.extend(p.kwonlyargs.iter().map(|p| self.place(p.parameter.range())));
        out
    }

    pub fn range(&self, range: TextRange) -> Range<usize> {
        shifted(range, self.shift)
    }

    pub fn place(&self, range: TextRange) -> Place {
        Place::new(self.source.clone(), self.range(range))
    }
}

/// Whether an annotation means a compile-time parameter, under whatever name the module is known.
pub(crate) fn is_constexpr_text(text: &str) -> bool {
    let last = text.rsplit('.').next().unwrap_or(text).trim();
    last == "constexpr"
}

fn shifted(range: TextRange, shift: isize) -> Range<usize> {
    let at =
        |offset: ruff_text_size::TextSize| (offset.to_usize() as isize + shift).max(0) as usize;
    at(range.start())..at(range.end())
}

/// An integer literal; none beyond 127 bits.
pub(crate) fn integer(i: &ast::Int) -> Option<i128> {
    // Those of more than 64 bits are kept as they are written.
    match i.as_u64() {
        Some(i) => Some(i128::from(i)),
        None => {
            let text = i.to_string().replace('_', "").to_ascii_lowercase();
            let radix = [("0x", 16), ("0o", 8), ("0b", 2)];
            let based = radix.iter().find_map(|(p, r)| Some((text.strip_prefix(p)?, *r)));
            let (digits, radix) = based.unwrap_or((&text, 10));
            i128::from_str_radix(digits, radix).ok()
        }
    }
}

/// Parses a module's text; an error is placed in `source`.
pub(crate) fn parse(text: &str, source: &Arc<Source>, shift: isize) -> Result<ast::ModModule> {
    check_nesting(text, source, shift)?;
    match ruff_python_parser::parse_module(text) {
        Ok(parsed) => Ok(parsed.into_syntax()),
        Err(e) => {
            let place = Place::new(source.clone(), shifted(e.location, shift));
            let message = format!("this is not Python: {}", lower_first(&e.error.to_string()));
            Err(Box::new(Diagnostic::new(Id::SyntaxError, message).primary(place, "")))
        }
    }
}

/// Trees are walked and freed by recursion, so their depth has to be bounded before there is one.
fn check_nesting(text: &str, source: &Arc<Source>, shift: isize) -> Result<()> {
    const MAX_DEPTH: usize = 200;
    const MAX_OPERATORS: usize = 4000;
    let bytes = text.as_bytes();
    // Most texts are too short to be nested so deeply, wherever their brackets stand.
    let brackets = bytes.iter().filter(|b| matches!(b, b'(' | b'[' | b'{')).count();
    if bytes.len() <= MAX_OPERATORS && brackets <= MAX_DEPTH {
        return Ok(());
    }
    let mut nesting = Nesting::default();
    let mut at = 0;
    while at < bytes.len() {
        at += nesting.step(bytes, at);
        if nesting.open.len() > MAX_DEPTH || nesting.operators > MAX_OPERATORS {
            let at = (at as isize - 1 + shift).max(0) as usize;
            return Err(Box::new(
                Diagnostic::new(Id::TooLarge, "this expression is nested too deeply or too long")
                    .primary(Place::new(source.clone(), at..at + 1), ""),
            ));
        }
    }
    Ok(())
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        Some(c) if !text.starts_with("F-") && !text.starts_with("T-") => {
            c.to_lowercase().chain(chars).collect()
        }
        _ => text.to_string(),
    }
}
