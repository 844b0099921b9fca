//! The table of public names: everything that a kernel may call, and the function that builds it.
//!
//! A row is the name below `triton.language`, its parameters (`name=` may be left out, `*name`
//! takes the rest), and what makes its value. Rows marked as methods can be called on a tensor.

use crate::builtins::{create, dot, dtype, math, memory, program, python, reduce, shape};
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
    /// As a builtin function of Python.
    Python,
}

#[derive(Copy, Clone)]
pub(crate) enum Call {
    Function(fn(&mut Lower<'_>, &Args) -> Result<Val>),
    /// An elementwise function of floats.
    Unary(UnaryFn),
    /// No function, but this value.
    Value(fn() -> Val),
}

impl Entry {
    /// As messages show it.
    pub fn display_name(&self) -> String {
        match self.kind {
            Kind::Name | Kind::Method => match self.path.strip_prefix("triton.") {
                Some(_) => self.path.to_string(),
                None => format!("tl.{}", self.path),
            },
            Kind::MethodOnly | Kind::DType => {
                format!(".{}", self.path.trim_start_matches("dtype."))
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

const fn python(path: &'static str, params: &'static str, f: F) -> Entry {
    Entry { path, params, kind: Kind::Python, call: Call::Function(f) }
}

const fn unary(path: &'static str, f: UnaryFn) -> Entry {
    Entry { path, params: "x", kind: Kind::Method, call: Call::Unary(f) }
}

const fn value(path: &'static str, f: fn() -> Val) -> Entry {
    Entry { path, params: "", kind: Kind::Name, call: Call::Value(f) }
}

static TABLE: &[Entry] = &[
    // Program, constexpr, control.
    name("program_id", "axis", program::program_id),
    name("num_programs", "axis", program::num_programs),
    name("constexpr", "value", program::constexpr),
    name(
        "range",
        "arg1, arg2=, step=, num_stages=, loop_unroll_factor=, disallow_acc_multi_buffer=, flatten=, warp_specialize=, disable_licm=",
        program::range,
    ),
    name("static_range", "arg1, arg2=, step=", program::static_range),
    name("condition", "arg1, disable_licm=", program::condition),
    name("static_assert", "cond, msg=", program::static_assert),
    name("static_print", "*values, sep=, end=, file=, flush=", program::static_print),
    name("debug_barrier", "", program::debug_barrier),
    name("assume", "cond", program::assume),
    name("multiple_of", "input, values", program::multiple_of),
    name("max_contiguous", "input, values", program::max_contiguous),
    name("max_constancy", "input, values", program::max_constancy),
    value("TRITON_MAX_TENSOR_NUMEL", || Val::int(naiad_ir::types::MAX_NUMEL as i128)),
    // Creation.
    name("arange", "start, end", create::arange),
    name("full", "shape, value, dtype", create::full),
    name("zeros", "shape, dtype", create::zeros),
    name("zeros_like", "input", create::zeros_like),
    name("to_tensor", "x", create::to_tensor),
    method("cast", "input, dtype, fp_downcast_rounding=, bitcast=", create::cast),
    only("to", "self, dtype, fp_downcast_rounding=, bitcast=", create::cast),
    name("pointer_type", "element_ty, address_space=, const=", create::pointer_type),
    // Shape.
    method("broadcast_to", "input, *shape", shape::broadcast_to),
    name("broadcast", "input, other", shape::broadcast),
    method("expand_dims", "input, axis", shape::expand_dims),
    method("unsqueeze", "input, dim", shape::expand_dims),
    method("squeeze", "input, dim", shape::squeeze),
    method("reshape", "input, *shape, can_reorder=", shape::reshape),
    method("view", "input, *shape", shape::reshape),
    method("ravel", "x, can_reorder=", shape::ravel),
    method("trans", "input, *dims", shape::trans),
    method("permute", "input, *dims", shape::permute),
    name("join", "a, b", shape::join),
    method("split", "a", shape::split),
    name("cat", "input, other, can_reorder=, dim=", shape::cat),
    name("interleave", "a, b", shape::interleave),
    only("item", "self", shape::item),
    // Memory.
    name(
        "load",
        "pointer, mask=, other=, boundary_check=, padding_option=, cache_modifier=, eviction_policy=, volatile=",
        memory::load,
    ),
    method(
        "store",
        "pointer, value, mask=, boundary_check=, cache_modifier=, eviction_policy=",
        memory::store,
    ),
    method("atomic_add", "pointer, val, mask=, sem=, scope=", memory::atomic_rmw),
    method("atomic_max", "pointer, val, mask=, sem=, scope=", memory::atomic_rmw),
    method("atomic_min", "pointer, val, mask=, sem=, scope=", memory::atomic_rmw),
    method("atomic_and", "pointer, val, mask=, sem=, scope=", memory::atomic_rmw),
    method("atomic_or", "pointer, val, mask=, sem=, scope=", memory::atomic_rmw),
    method("atomic_xor", "pointer, val, mask=, sem=, scope=", memory::atomic_rmw),
    method("atomic_xchg", "pointer, val, mask=, sem=, scope=", memory::atomic_rmw),
    method("atomic_cas", "pointer, cmp, val, sem=, scope=", memory::atomic_cas),
    // Linear algebra.
    name(
        "dot",
        "input, other, acc=, input_precision=, allow_tf32=, max_num_imprecise_acc=, out_dtype=",
        dot::dot,
    ),
    // Elementwise.
    name("where", "condition, x, y", math::where_),
    name("maximum", "x, y, propagate_nan=", math::maximum),
    name("minimum", "x, y, propagate_nan=", math::minimum),
    name("clamp", "x, min, max, propagate_nan=", math::clamp),
    name("fma", "x, y, z", math::fma),
    name("add", "x, y, sanitize_overflow=", math::add),
    name("sub", "x, y, sanitize_overflow=", math::sub),
    name("mul", "x, y, sanitize_overflow=", math::mul),
    name("fdiv", "x, y, ieee_rounding=, approx=", math::fdiv),
    name("div_rn", "x, y", math::div_rn),
    name("umulhi", "x, y", math::umulhi),
    method("cdiv", "x, div", math::cdiv),
    method("sigmoid", "x", math::sigmoid),
    method("softmax", "x, dim=, keep_dims=, ieee_rounding=", reduce::softmax),
    only("logical_and", "self, other", math::logical_and),
    only("logical_or", "self, other", math::logical_or),
    name("swizzle2d", "i, j, size_i, size_j, size_g", math::swizzle2d),
    method("abs", "x", math::abs),
    unary("exp", UnaryFn::Exp),
    unary("exp2", UnaryFn::Exp2),
    unary("log", UnaryFn::Log),
    unary("log2", UnaryFn::Log2),
    unary("sin", UnaryFn::Sin),
    unary("cos", UnaryFn::Cos),
    unary("sqrt", UnaryFn::Sqrt),
    unary("sqrt_rn", UnaryFn::SqrtRn),
    unary("rsqrt", UnaryFn::Rsqrt),
    unary("erf", UnaryFn::Erf),
    unary("floor", UnaryFn::Floor),
    unary("ceil", UnaryFn::Ceil),
    unary("libdevice.tanh", UnaryFn::Tanh),
    value("PropagateNan.NONE", || Val::str("none")),
    value("PropagateNan.ALL", || Val::str("all")),
    // Reductions and scans.
    method("sum", "input, axis=, keep_dims=, dtype=", reduce::sum),
    method(
        "max",
        "input, axis=, return_indices=, return_indices_tie_break_left=, keep_dims=",
        reduce::max,
    ),
    method(
        "min",
        "input, axis=, return_indices=, return_indices_tie_break_left=, keep_dims=",
        reduce::min,
    ),
    method("argmax", "input, axis, tie_break_left=, keep_dims=", reduce::argmax),
    method("argmin", "input, axis, tie_break_left=, keep_dims=", reduce::argmin),
    method("xor_sum", "input, axis=, keep_dims=", reduce::xor_sum),
    method("reduce_or", "input, axis, keep_dims=", reduce::reduce_or),
    method("reduce", "input, axis, combine_fn, keep_dims=", reduce::reduce),
    method("associative_scan", "input, axis, combine_fn, reverse=", reduce::associative_scan),
    method("cumsum", "input, axis=, reverse=, dtype=", reduce::cumsum),
    method("cumprod", "input, axis=, reverse=, dtype=", reduce::cumprod),
    // Of `triton` itself.
    name("triton.cdiv", "x, y", math::host_cdiv),
    name("triton.next_power_of_2", "n", math::next_power_of_2),
    // Python's own.
    python("python.range", "arg1, arg2=, step=", program::range),
    python("python.len", "obj", python::len),
    python("python.min", "*args", python::min),
    python("python.max", "*args", python::max),
    python("python.print", "*values", program::static_print),
    python("python.int", "x", python::int),
    python("python.float", "x", python::float),
    python("python.isinstance", "obj, classes", python::isinstance),
    python("python.getattr", "obj, name, default=", python::getattr),
    python("python.hasattr", "obj, name", python::hasattr),
    // Of dtypes.
    of_dtype("dtype.is_int", dtype::predicate),
    of_dtype("dtype.is_int_signed", dtype::predicate),
    of_dtype("dtype.is_int_unsigned", dtype::predicate),
    of_dtype("dtype.is_bool", dtype::predicate),
    of_dtype("dtype.is_floating", dtype::predicate),
    of_dtype("dtype.is_standard_floating", dtype::predicate),
    of_dtype("dtype.is_fp8", dtype::predicate),
    of_dtype("dtype.is_fp16", dtype::predicate),
    of_dtype("dtype.is_bf16", dtype::predicate),
    of_dtype("dtype.is_fp32", dtype::predicate),
    of_dtype("dtype.is_fp64", dtype::predicate),
    of_dtype("dtype.is_fp8e5", dtype::predicate),
    of_dtype("dtype.is_fp8e4nv", dtype::predicate),
    of_dtype("dtype.is_fp8e4b15", dtype::predicate),
    of_dtype("dtype.is_fp8e4b8", dtype::predicate),
    of_dtype("dtype.is_fp8e5b16", dtype::predicate),
    of_dtype("dtype.is_int1", dtype::predicate),
    of_dtype("dtype.is_int8", dtype::predicate),
    of_dtype("dtype.is_int16", dtype::predicate),
    of_dtype("dtype.is_int32", dtype::predicate),
    of_dtype("dtype.is_int64", dtype::predicate),
    of_dtype("dtype.is_uint8", dtype::predicate),
    of_dtype("dtype.is_uint16", dtype::predicate),
    of_dtype("dtype.is_uint32", dtype::predicate),
    of_dtype("dtype.is_uint64", dtype::predicate),
    of_dtype("dtype.is_ptr", dtype::predicate),
    of_dtype("dtype.is_block", dtype::predicate),
    of_dtype("dtype.is_const", dtype::predicate),
];

fn index() -> &'static FxHashMap<&'static str, &'static Entry> {
    static INDEX: OnceLock<FxHashMap<&'static str, &'static Entry>> = OnceLock::new();
    INDEX.get_or_init(|| TABLE.iter().map(|e| (e.path, e)).collect())
}

/// Modules whose names are, or once were, found below other ones.
const PREFIXES: &[&str] =
    &["math.", "extra.cuda.libdevice.", "extra.hip.libdevice.", "extra.libdevice.", "libdevice."];

/// The row of a name, under any spelling of its module that Triton has had.
pub(crate) fn lookup(path: &str) -> Option<&'static Entry> {
    let index = index();
    if let Some(entry) = index.get(path) {
        return Some(entry);
    }
    let bare = PREFIXES.iter().find_map(|p| path.strip_prefix(p))?;
    index.get(bare).or_else(|| index.get(format!("libdevice.{bare}").as_str())).copied()
}

/// Whether a public name exists under this path; for hosts that build modules from the table.
pub fn is_public(path: &str) -> bool {
    lookup(path).is_some_and(|e| matches!(e.kind, Kind::Name | Kind::Method))
}

/// Every public name, below `triton.language` or beginning with `triton.`.
pub fn public_names() -> impl Iterator<Item = &'static str> {
    TABLE.iter().filter(|e| matches!(e.kind, Kind::Name | Kind::Method)).map(|e| e.path)
}

/// The same, as candidates for what a misspelled name may have meant.
pub(crate) fn paths() -> impl Iterator<Item = &'static str> {
    public_names().filter(|p| !p.starts_with("triton."))
}

pub(crate) fn python_builtin(name: &str) -> Option<&'static Entry> {
    index().get(format!("python.{name}").as_str()).copied()
}

/// A method of tensors, or of dtypes.
pub(crate) fn method_entry(name: &str, of_dtype: bool) -> Option<&'static Entry> {
    if of_dtype {
        return index().get(format!("dtype.{name}").as_str()).copied();
    }
    index().get(name).copied().filter(|e| matches!(e.kind, Kind::Method | Kind::MethodOnly))
}

pub(crate) fn methods(of_dtype: bool) -> impl Iterator<Item = &'static str> {
    TABLE
        .iter()
        .filter(move |e| match e.kind {
            Kind::DType => of_dtype,
            Kind::Method | Kind::MethodOnly => !of_dtype,
            Kind::Name | Kind::Python => false,
        })
        .map(|e| e.path.trim_start_matches("dtype."))
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
