//! How findings are said.

use super::judge::Verdict;
use super::lanes::{Arbitrary, Class, Lanes, slice};
use super::numeric::{self, Origin};
use super::points::Suspect;
use super::wrap::Int;
use super::{Checked, checker};
use crate::exec::{Exec, Shared};
use crate::fault::{Site, index, program};
use crate::tile::number;
use naiad_diag::text::{call, fill_of, mask_of};
use naiad_diag::{Diagnostic, Id, LaneKind, Picture, Severity};
use naiad_ir::function::Def;
use naiad_ir::scalar::{BinaryFn, show};
use naiad_ir::tile::{HintKind, TileOp, one_function};
use naiad_ir::{Inst, Scalar, Shape, Value};

pub type Run<'e, 'a> = &'e Exec<'a, Checked>;

/// A finding at an op, with its place as a note where the op has no source.
pub fn at(site: &Site<'_>, id: Id, message: String, label: String) -> Diagnostic {
    let report = site.report(id, message, label.clone());
    if report.labels.is_empty() { report.note(label) } else { report }
}

/// Adds another place, where there is one.
pub fn also(
    report: Diagnostic,
    site: &Site<'_>,
    inst: Inst,
    text: impl Into<String>,
) -> Diagnostic {
    match site.func.places.place(site.func.loc(inst)) {
        Some(place) => report.secondary(place, text),
        None => report,
    }
}

fn also_in(report: &mut Diagnostic, site: &Site<'_>, text: String) {
    let named = std::mem::replace(report, Diagnostic::new(report.id, ""));
    *report = match site.func.places.place(site.loc()) {
        Some(place) => named.secondary(place, text),
        None => named.note(text),
    };
}

fn text_of(site: &Site<'_>, inst: Inst) -> Option<String> {
    let place = site.func.places.place(site.func.loc(inst))?;
    Some(place.text().to_string()).filter(|t| !t.is_empty())
}

/// The name of the tensor that an access goes to, as far as the text shows.
pub fn tensor_name(shared: &Shared<'_>, check: &super::Checker, inst: Inst) -> Option<String> {
    let mut ptr = None;
    if let TileOp::Load { ptr: p, .. }
    | TileOp::Store { ptr: p, .. }
    | TileOp::AtomicRmw { ptr: p, .. } = shared.code.func.op(inst)
    {
        ptr = Some(*p);
    }
    let base = check.facts.base(ptr?)?;
    Some(shared.memory.tensors.get(base as usize)?.as_ref()?.name.to_string())
}

/// What a point is called: the function that the source calls, or the kind of op.
fn point_name(site: &Site<'_>) -> String {
    use naiad_ir::OpInfo;
    let text = text_of(site, site.inst);
    if let Some((callee, _)) = text.as_deref().and_then(call) {
        return format!("`{callee}`");
    }
    match site.func.op(site.inst) {
        TileOp::Binary { .. } => "the accumulation".into(),
        op => format!("`{}`", op.name()),
    }
}

/// The fill that a function leaves data unchanged by, as source.
fn neutral_text(site: &Site<'_>) -> Option<String> {
    let func = site.func;
    let of = |f: BinaryFn, x: Value| f.identity_text(crate::tile::stored(func.ty(x).elem));
    match func.op(site.inst) {
        TileOp::Reduce { body, inputs, .. } | TileOp::Scan { body, inputs, .. } => {
            let f = one_function(func, *body)
                .filter(|f| f.is_commutative())
                .or_else(|| extreme(site))?;
            of(f, *inputs.first()?)
        }
        TileOp::Binary { f, a, .. } => of(*f, *a),
        TileOp::Dot { .. } => Some("0.0".to_string()),
        _ => None,
    }
}

/// What a reduction with indices looks for, by the name that it is called by.
fn extreme(site: &Site<'_>) -> Option<BinaryFn> {
    let text = text_of(site, site.inst)?;
    let (callee, _) = call(&text)?;
    match callee.rsplit('.').next()? {
        "argmax" | "max" => Some(BinaryFn::Max),
        "argmin" | "min" => Some(BinaryFn::Min),
        _ => None,
    }
}

/// The argument of a load that says what it gives where it reads nothing.
fn fill_name(site: &Site<'_>, load: Inst) -> &'static str {
    fill_of(&text_of(site, load).unwrap_or_default())
}

/// Lanes that are no data at a point where lanes meet.
pub fn reduced(
    exec: Run<'_, '_>,
    site: &Site<'_>,
    s: &Suspect,
    verdict: &Verdict,
    severity: Severity,
) -> Diagnostic {
    let shared = exec.shared;
    let is_undefined = s.class == Class::U;
    let (id, what) = match is_undefined {
        true => (Id::UndefinedReduced, "undefined lanes"),
        false => (Id::PaddingReduced, "padding lanes"),
    };
    let tensor = s.source.and_then(|x| tensor_name(shared, checker(exec), x.inst));
    let of = tensor.map_or(String::new(), |t| format!(" of `{t}`"));
    let point = point_name(site);
    let ends = match (verdict, s.changed) {
        (_, false) => ", where they happen to hold what changes nothing",
        (Verdict::Changes | Verdict::Together(_), _) => " and change what the kernel stores",
        (Verdict::Unchanged, _) => " and change it, though not what the kernel stores",
        (Verdict::Unknown, _) => " and change it",
    };
    let message = format!("kernel `{}`: {what}{of} reach {point}{ends}", site.func.name);
    let noun = if is_undefined { "undefined" } else { "padding" };
    let mut label =
        format!("{} of {} lanes are {noun} in {}", s.flagged, s.lanes, program(site.program));
    let shape = written_shape(site, s);
    if let Some((lane, image)) = s.example {
        label += &format!("; lane {} holds {}", index(&shape, lane), show(s.ty, image));
    }
    let mut report = at(site, id, message, label).picture(picture(&s.classes, &shape));
    report.severity = severity;
    let load = s.source.map(|x| x.inst);
    if let Some(load) = load {
        let from = match is_undefined {
            true => format!(
                "loaded here without `{}`: such lanes are undefined (NVIDIA GPUs read 0)",
                fill_name(site, load)
            ),
            false => "the lanes are masked off here".to_string(),
        };
        report = also(report, site, load, from);
    }
    match verdict {
        Verdict::Together(others) => {
            for &other in others {
                report =
                    also(report, site, other, "and here: only together they change what is stored");
            }
        }
        Verdict::Unknown => {
            report = report.note(
                "whether that changes what the kernel stores is not known: it reads what programs write, so it cannot be run again",
            );
        }
        Verdict::Changes | Verdict::Unchanged => {}
    }
    match fix(site, load) {
        Some(help) => report.help(help),
        None => report,
    }
}

/// The shape of what the source reduces: of all axes at once it is made one axis first.
fn written_shape(site: &Site<'_>, s: &Suspect) -> Shape {
    let func = site.func;
    if let TileOp::Reduce { inputs, .. } = func.op(site.inst)
        && let Some(Def::Result(inst, _)) = inputs.first().map(|&v| func.def(v))
        && let TileOp::Reshape { src, .. } = func.op(inst)
    {
        return func.ty(*src).shape;
    }
    s.shape
}

/// Which lanes of a value are data.
fn picture(lanes: &Lanes, shape: &Shape) -> Option<Picture> {
    let classes = lanes.bytes(shape);
    let arbitrary = match lanes.source().and_then(|s| s.arbitrary) {
        Some(Arbitrary::OutsideView) => LaneKind::Outside,
        Some(Arbitrary::Uninitialized) | None => LaneKind::Unwritten,
    };
    let kind = |i: usize| match Class::of_byte(u64::from(slice(&classes, shape)[i])) {
        Class::K | Class::V => LaneKind::Data,
        Class::P => LaneKind::Padding,
        Class::U => LaneKind::Undefined,
        Class::X => arbitrary,
    };
    Picture::new(&shape.dims().collect::<Vec<_>>(), kind)
}

/// What to write instead.
fn fix(site: &Site<'_>, load: Option<Inst>) -> Option<String> {
    let neutral = neutral_text(site)?;
    let load_text = load.and_then(|l| text_of(site, l));
    let (mask, words) = mask_of(load_text.as_deref());
    let text = text_of(site, site.inst)?;
    let help = match (site.func.op(site.inst), call(&text)) {
        (TileOp::Reduce { .. } | TileOp::Scan { .. }, Some((callee, args))) => {
            let value = args.first()?;
            format!(
                "set them to {neutral} first: `{callee}(tl.where({mask}, {value}, {neutral}), ...)`"
            )
        }
        (TileOp::Binary { f: BinaryFn::Add, .. }, _) => format!(
            "set them to {neutral} before they are added: `tl.where({mask}, ..., {neutral})`"
        ),
        (TileOp::Dot { .. }, _) => {
            return Some(
                "mask the loads of both factors along the axis that is summed, with `other=0.0`"
                    .into(),
            );
        }
        _ => format!("set them to {neutral} first: `tl.where({mask}, ..., {neutral})`"),
    };
    Some(help + words)
}

/// More of a load of arbitrary bits: a point that they change.
pub fn reaches(report: &mut Diagnostic, site: &Site<'_>, verdict: &Verdict) {
    let how = match verdict {
        Verdict::Unknown => "and changes the result here",
        _ => "and changes the result here, and what the kernel stores",
    };
    also_in(report, site, how.to_string());
}

/// ... or a store, an address or a branch.
pub fn has_effect(report: &mut Diagnostic, site: &Site<'_>, how: &str) {
    also_in(report, site, format!("what was read {how}"));
}

pub fn padding_added(
    exec: Run<'_, '_>,
    site: &Site<'_>,
    lanes: &Lanes,
    (lane, image, ty): (usize, u64, Scalar),
    shape: &Shape,
    in_address: bool,
) -> Diagnostic {
    let tensor = lanes.source().and_then(|x| tensor_name(exec.shared, checker(exec), x.inst));
    let of = tensor.map_or(String::new(), |t| format!(" of `{t}`"));
    let how = if in_address {
        "are addresses of an atomic operation"
    } else {
        "take part in an atomic operation"
    };
    let message = format!("kernel `{}`: padding lanes{of} {how}", site.func.name);
    let place = format!(
        "lane {} of {} brings {}",
        index(shape, lane),
        program(site.program),
        show(ty, image)
    );
    let mut report = at(site, Id::PaddingReduced, message, place);
    if let Some(source) = lanes.source() {
        report = also(report, site, source.inst, "the lanes are masked off here");
    }
    report.help("give the operation the mask that the values were loaded with")
}

pub fn undefined_used(
    exec: Run<'_, '_>,
    site: &Site<'_>,
    lanes: &Lanes,
    lane: Option<(usize, &Shape)>,
    how: &str,
) -> Diagnostic {
    let source = lanes.source();
    let tensor = source.and_then(|x| tensor_name(exec.shared, checker(exec), x.inst));
    let of = tensor.map_or(String::new(), |t| format!(" of `{t}`"));
    let verb = match how {
        "is stored here" => "stores",
        "is part of an address here" => "addresses memory by",
        _ => "decides by",
    };
    let message =
        format!("kernel `{}` {verb} lanes{of} that a mask left undefined", site.func.name);
    let place = match lane {
        Some((lane, shape)) if !shape.is_scalar() => {
            format!("lane {} of {}", index(shape, lane), program(site.program))
        }
        _ => format!("in {}", program(site.program)),
    };
    let drawn = lane.and_then(|(_, shape)| picture(lanes, shape));
    let report = at(site, Id::UndefinedUsed, message, place).picture(drawn);
    let fill = source.map_or("other", |s| fill_name(site, s.inst));
    let report = match source {
        Some(s) => also(report, site, s.inst, format!("loaded here without `{fill}`")),
        None => report,
    };
    report
        .note(format!(
            "what a load without `{fill}` does not read is undefined; NVIDIA GPUs give 0"
        ))
        .help(format!("give the load `{fill}=...`, or a mask here that is false in such lanes"))
}

/// How an op wraps, in words, from the first operands that made it do so.
pub fn wrapping(f: BinaryFn, a: Int<'_>, b: Int<'_>, shape: &Shape) -> String {
    let most = a.ty.int_max();
    let images = |x: Int<'_>| -> Vec<i128> {
        let dense = x.tile.dense(x.ty, shape);
        let size = x.ty.size();
        // SAFETY: the tile has all lanes.
        let image =
            |i: usize| unsafe { crate::engine::read_image(dense.at(size).add(i * size), size) };
        (0..shape.numel()).map(|i| number(x.ty, image(i))).collect()
    };
    let (sign, apply): (&str, fn(i128, i128) -> i128) = match f {
        BinaryFn::Add => ("+", |x, y| x + y),
        BinaryFn::Sub => ("-", |x, y| x - y),
        _ => ("*", |x, y| x * y),
    };
    let (a_lanes, b_lanes) = (images(a), images(b));
    // By its values, whatever the form that it is kept in.
    let b_varies = b_lanes.iter().any(|y| *y != b_lanes[0]);
    let lanes = a_lanes.into_iter().zip(b_lanes);
    let wraps = |&(x, y): &(i128, i128)| {
        let r = apply(x, y);
        r > most || r < a.ty.int_min()
    };
    let Some((x, y)) = lanes.into_iter().find(wraps) else { return String::new() };
    let mut text = format!("{x} {sign} {y} = {} is past {most}, the largest {}", apply(x, y), a.ty);
    if f == BinaryFn::Mul && x > 0 && y > 0 {
        // The factor that varies is the one that a launch makes larger.
        let (varies, fixed) = if b_varies { (y, x) } else { (x, y) };
        let begins = most / fixed + 1;
        if begins <= varies {
            text += &format!("; with a factor of {fixed} that begins at {begins}");
        }
    }
    text
}

pub fn wrapped(site: &Site<'_>, op: Inst, how: &str, shape: &Shape, lane: usize) -> Diagnostic {
    let here = Site { inst: op, ..*site };
    let message = format!(
        "kernel `{}`: an offset wraps around in 32 bits, and the address is another than was meant",
        site.func.name
    );
    let place = match shape.is_scalar() {
        true => format!("in {}", program(site.program)),
        false => format!("lane {} of {}", index(shape, lane), program(site.program)),
    };
    let report = at(&here, Id::WrappedOffset, message, how.to_string());
    also(report, site, site.inst, format!("used in an address here, {place}"))
        .help("compute the offset in 64 bits: `tl.program_id(0).to(tl.int64)`, or cast the stride")
}

pub fn numeric_origin(
    exec: Run<'_, '_>,
    site: &Site<'_>,
    origin: &Origin,
    store: Inst,
    _ptr: Value,
    (shape, lane): (&Shape, usize),
) -> Diagnostic {
    use naiad_ir::OpInfo;
    let what = if numeric::is_nan(origin.ty, origin.image) { "a NaN" } else { "an infinity" };
    let name = tensor_name(exec.shared, checker(exec), store);
    let to = name.map_or(String::new(), |n| format!(" to `{n}`"));
    let message =
        format!("kernel `{}` makes {what} that leads to what it stores{to}", site.func.name);
    let func = site.func;
    let op = match func.op(origin.inst) {
        TileOp::Unary { f, .. } => f.name(),
        TileOp::Binary { f, .. } => f.name(),
        TileOp::Ternary { f, .. } => f.name(),
        op => op.name(),
    };
    let shown: Vec<String> = origin.operands.iter().map(|&(ty, image)| show(ty, image)).collect();
    let of = if shown.is_empty() { String::new() } else { format!(" of {}", shown.join(" and ")) };
    let at_lane = match origin.shape.is_scalar() {
        true => format!("in {}", program(site.program)),
        false => format!("lane {} of {}", index(&origin.shape, origin.lane), program(site.program)),
    };
    let label = format!("`{op}`{of} is {}, {at_lane}", show(origin.ty, origin.image));
    let report = at(site, Id::NumericOrigin, message, label);
    also(report, site, store, format!("stored here, lane {}", index(shape, lane)))
}

pub fn zero_divisor(site: &Site<'_>, shape: &Shape, lane: usize, severity: Severity) -> Diagnostic {
    let message = format!("kernel `{}` divides an integer by zero", site.func.name);
    let mut report = site.at(Id::ZeroDivisor, message, shape, lane);
    report.severity = severity;
    report.help(
        "what comes of it differs between machines: choose another divisor there by `tl.where`",
    )
}

pub fn false_hint(
    site: &Site<'_>,
    kind: HintKind,
    values: &[u32],
    shape: &Shape,
    lane: usize,
    seen: i64,
) -> Diagnostic {
    let list: Vec<String> = values.iter().map(u32::to_string).collect();
    let message = format!(
        "kernel `{}`: what `tl.{}({})` promises does not hold",
        site.func.name,
        kind.name(),
        list.join(", ")
    );
    let place = match shape.is_scalar() {
        true => format!("{seen} in {}", program(site.program)),
        false => format!("lane {} of {} is {seen}", index(shape, lane), program(site.program)),
    };
    at(site, Id::FalseHint, message, place)
        .note("compilers build wide memory accesses on the promise, and these then go elsewhere")
}

pub fn crowded(site: &Site<'_>) -> Diagnostic {
    at(
        site,
        Id::CheckLimit,
        format!("kernel `{}`: races were not looked for", site.func.name),
        String::new(),
    )
    .note("the grid has more programs than can be told apart, 2147483646")
}
