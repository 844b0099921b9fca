//! The table of public names: everything that a kernel may call, and the function that builds it.
//!
//! A row is the name below `triton.language`, its parameters (`name=` may be left out, `*name`
//! takes the rest), and what makes its value. Rows marked as methods can be called on a tensor.
//! `table` has the language's own names, `libdevice` those of the library of that name.

mod libdevice;
mod table;

use crate::lower::{Args, Lower};
use crate::source::Result;
use crate::value::Val;
use naiad_ir::scalar::UnaryFn;
use rustc_hash::FxHashMap;
use std::sync::OnceLock;

/// One public name.
pub(crate) struct Entry {
    pub path: &'static str,
    pub params: &'static str,
    pub kind: Kind,
    pub call: Call,
}

/// Where a name can be used.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// As `tl.name`.
    Name,
    /// As `tl.name` and as a method of a tensor.
    Method,
    /// As a method of a tensor only.
    MethodOnly,
    /// As a method of a dtype only.
    DType,
    /// As a method of a block pointer or a tensor descriptor only.
    Window,
    /// As a builtin function of Python.
    Python,
}

#[derive(Copy, Clone)]
pub(crate) enum Call {
    Function(fn(&mut Lower<'_>, &Args) -> Result<Val>),
    /// An elementwise function of floats.
    Unary(UnaryFn),
    /// The function of this name in the library that is written in the language itself.
    Library,
    /// No function, but this value.
    Value(fn() -> Val),
    /// Another spelling of this path.
    Alias(&'static str),
    /// A name of Triton that Naiad does not have.
    Missing,
}

impl Entry {
    /// As messages show it.
    pub fn display_name(&self) -> String {
        match self.kind {
            Kind::Name | Kind::Method => match self.path.strip_prefix("triton.") {
                Some(_) => self.path.to_string(),
                None => format!("tl.{}", self.path),
            },
            Kind::MethodOnly | Kind::DType | Kind::Window => {
                format!(".{}", self.path.rsplit('.').next().unwrap_or(self.path))
            }
            Kind::Python => self.path.trim_start_matches("python.").to_string(),
        }
    }
}

type F = fn(&mut Lower<'_>, &Args) -> Result<Val>;

const fn name(path: &'static str, params: &'static str, f: F) -> Entry {
    Entry { path, params, kind: Kind::Name, call: Call::Function(f) }
}

const fn method(path: &'static str, params: &'static str, f: F) -> Entry {
    Entry { path, params, kind: Kind::Method, call: Call::Function(f) }
}

const fn only(path: &'static str, params: &'static str, f: F) -> Entry {
    Entry { path, params, kind: Kind::MethodOnly, call: Call::Function(f) }
}

const fn of_dtype(path: &'static str, f: F) -> Entry {
    Entry { path, params: "self", kind: Kind::DType, call: Call::Function(f) }
}

const fn of_window(path: &'static str, params: &'static str, f: F) -> Entry {
    Entry { path, params, kind: Kind::Window, call: Call::Function(f) }
}

const fn python(path: &'static str, params: &'static str, f: F) -> Entry {
    Entry { path, params, kind: Kind::Python, call: Call::Function(f) }
}

const fn unary(path: &'static str, f: UnaryFn) -> Entry {
    Entry { path, params: "x", kind: Kind::Method, call: Call::Unary(f) }
}

/// The same in `libdevice`, which numbers its parameters.
const fn real(path: &'static str, f: UnaryFn) -> Entry {
    Entry { path, params: "arg0", kind: Kind::Name, call: Call::Unary(f) }
}

const fn value(path: &'static str, f: fn() -> Val) -> Entry {
    Entry { path, params: "", kind: Kind::Name, call: Call::Value(f) }
}

const fn alias(path: &'static str, of: &'static str) -> Entry {
    Entry { path, params: "", kind: Kind::Name, call: Call::Alias(of) }
}

const fn library(path: &'static str) -> Entry {
    Entry { path, params: "", kind: Kind::Name, call: Call::Library }
}

const fn missing(path: &'static str) -> Entry {
    Entry { path, params: "", kind: Kind::Name, call: Call::Missing }
}

fn rows() -> impl Iterator<Item = &'static Entry> {
    table::TABLE.iter().chain(libdevice::TABLE)
}

fn index() -> &'static FxHashMap<&'static str, &'static Entry> {
    static INDEX: OnceLock<FxHashMap<&'static str, &'static Entry>> = OnceLock::new();
    INDEX.get_or_init(|| rows().map(|e| (e.path, e)).collect())
}

/// Modules whose names are, or once were, found below other ones, and where those names are now.
const MODULES: &[(&str, &[&str])] = &[
    ("math.", &["", "libdevice."]),
    ("extra.cuda.libdevice.", &["libdevice.", ""]),
    ("extra.hip.libdevice.", &["libdevice.", ""]),
    ("extra.intel.libdevice.", &["libdevice.", ""]),
    ("extra.libdevice.", &["libdevice.", ""]),
    ("libdevice.", &[""]),
    ("core.", &[""]),
    ("standard.", &[""]),
    ("random.", &[""]),
];

/// The row of a name, under any spelling of its module that Triton has had. None for names that no
/// version of Triton has.
pub(crate) fn lookup(path: &str) -> Option<&'static Entry> {
    let index = index();
    let found = index.get(path).copied().or_else(|| {
        MODULES.iter().find_map(|(module, now)| {
            let name = path.strip_prefix(module)?;
            now.iter().find_map(|now| index.get(format!("{now}{name}").as_str())).copied()
        })
    })?;
    match found.call {
        Call::Alias(of) => lookup(of),
        _ => Some(found),
    }
}

/// Whether a public name exists under this path; for hosts that build modules from the table.
pub fn is_public(path: &str) -> bool {
    lookup(path).is_some_and(|e| matches!(e.kind, Kind::Name | Kind::Method))
}

/// Whether names of the language are found below this path.
pub fn is_module(path: &str) -> bool {
    let below = format!("{path}.");
    path == "extra"
        || MODULES.iter().any(|(m, _)| m.starts_with(&below))
        || rows().any(|e| e.path.starts_with(&below))
}

/// What is in `tl.math`. Up to Triton 2.3 all of libdevice was there too, and is still found.
const MATH: &[&str] = &[
    "abs", "ceil", "cos", "div_rn", "erf", "exp", "exp2", "fdiv", "floor", "fma", "log", "log2",
    "rsqrt", "sin", "sqrt", "sqrt_rn", "umulhi",
];

/// The functions of the language by the module that they are found in: `""`, `math`,
/// `extra.libdevice`, `extra.cuda`, `target_info`.
pub fn modules() -> Vec<(&'static str, Vec<&'static str>)> {
    let below = |prefix: &str| {
        let names = rows().filter(|e| matches!(e.kind, Kind::Name | Kind::Method));
        let names = names.filter_map(|e| e.path.strip_prefix(prefix));
        names.filter(|name| !name.contains('.')).collect()
    };
    vec![
        ("", below("")),
        ("math", [MATH.to_vec(), below("math.")].concat()),
        ("extra.libdevice", below("libdevice.")),
        ("extra.cuda", below("extra.cuda.")),
        ("target_info", below("target_info.")),
    ]
}

/// A name as documentation and tests see it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PublicName {
    /// `load`, `libdevice.tanh`, `triton.cdiv`, `dtype.is_fp8`, `window.load`, `python.len`.
    pub path: &'static str,
    /// As it is called: `tl.load(pointer, mask=, other=)`; of a value only its name.
    pub signature: String,
    /// Whether tensors have it as a method.
    pub is_method: bool,
    pub state: State,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum State {
    Supported,
    /// Another spelling of this path, most often an older one.
    Alias(&'static str),
    /// A kernel that uses it is refused at its line.
    Missing,
}

/// Every row, in the order of the tables.
pub fn table() -> Vec<PublicName> {
    let public = |e: &'static Entry| PublicName {
        path: e.path,
        signature: match e.call {
            Call::Function(_) | Call::Unary(_) => format!("{}({})", e.display_name(), e.params),
            Call::Library => format!("{}({})", e.display_name(), crate::library::params(e.path)),
            Call::Value(_) | Call::Alias(_) | Call::Missing => e.display_name(),
        },
        is_method: matches!(e.kind, Kind::Method | Kind::MethodOnly),
        state: match e.call {
            Call::Alias(of) => State::Alias(of),
            Call::Missing => State::Missing,
            _ => State::Supported,
        },
    };
    rows().map(public).collect()
}

/// Candidates for what a misspelled name may have meant.
pub(crate) fn paths() -> impl Iterator<Item = &'static str> {
    let of_kernels = |e: &&Entry| {
        matches!(e.kind, Kind::Name | Kind::Method)
            && !matches!(e.call, Call::Alias(_) | Call::Missing)
            && !e.path.starts_with("triton.")
    };
    rows().filter(of_kernels).map(|e| e.path)
}

pub(crate) fn python_builtin(name: &str) -> Option<&'static Entry> {
    index().get(format!("python.{name}").as_str()).copied()
}

/// What has methods.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Receiver {
    Tensor,
    DType,
    Window,
}

impl Receiver {
    pub fn of(val: &Val) -> Option<Receiver> {
        match val {
            // An argument that happens to be 1 is a constexpr.
            Val::Tensor(_) | Val::Const(_) => Some(Receiver::Tensor),
            Val::DType(_) => Some(Receiver::DType),
            Val::Window(_) => Some(Receiver::Window),
            _ => None,
        }
    }

    const fn has(self, kind: Kind) -> bool {
        match kind {
            Kind::Method | Kind::MethodOnly => matches!(self, Receiver::Tensor),
            Kind::DType => matches!(self, Receiver::DType),
            Kind::Window => matches!(self, Receiver::Window),
            Kind::Name | Kind::Python => false,
        }
    }

    const fn prefix(self) -> &'static str {
        match self {
            Receiver::Tensor => "",
            Receiver::DType => "dtype.",
            Receiver::Window => "window.",
        }
    }
}

pub(crate) fn method_entry(name: &str, of: Receiver) -> Option<&'static Entry> {
    let path = format!("{}{name}", of.prefix());
    index().get(path.as_str()).copied().filter(|e| of.has(e.kind))
}

pub(crate) fn methods(of: Receiver) -> impl Iterator<Item = &'static str> {
    rows().filter(move |e| of.has(e.kind)).map(move |e| e.path.trim_start_matches(of.prefix()))
}

/// The name below `triton.language` of the module that a host describes as such; none for others.
pub(crate) fn language_module(what: &str) -> Option<&str> {
    let name = what.strip_prefix("module '")?.strip_suffix('\'')?;
    let rest =
        name.strip_prefix("triton.language").or_else(|| name.strip_prefix("naiad.language"))?;
    Some(rest.trim_start_matches('.'))
}

/// The candidate that a misspelled name most likely meant.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (name.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|c| (edit_distance(name, c), c))
        .filter(|&(d, _)| d <= limit)
        .min()
        .map(|(_, c)| c)
}

/// Insertions, deletions, replacements and swaps of neighbours that lead from one word to the other.
fn edit_distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![(0..=b.len()).collect::<Vec<usize>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replace = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replace.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}
