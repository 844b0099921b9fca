//! What is said of a kernel's faults while it runs.

use crate::memory::{Memory, Origin, Tensor};
use naiad_diag::{Diagnostic, Id, Loc, Severity};
use naiad_ir::ptx_asm::Refusal;
use naiad_ir::tile::Tile as TileIr;
use naiad_ir::{Dialect, Function, Inst, Scalar, Shape};
use std::sync::{Mutex, PoisonError};

pub type Fault = Box<Diagnostic>;

/// The op that is running, and where.
#[derive(Copy, Clone)]
pub struct Site<'a> {
    pub func: &'a Function<TileIr>,
    pub inst: Inst,
    /// The program's coordinates and its number in the order of starting.
    pub program: [u32; 3],
    pub number: u64,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Access {
    Load,
    Store,
    Atomic,
    AtomicLoad,
    AtomicStore,
}

impl Access {
    fn verb(self) -> &'static str {
        match self {
            Access::Load => "reads",
            Access::Store => "writes",
            Access::Atomic => "atomically updates",
            Access::AtomicLoad => "atomically reads",
            Access::AtomicStore => "atomically writes",
        }
    }

    pub fn writes(self) -> bool {
        !matches!(self, Access::Load | Access::AtomicLoad)
    }
}

/// One lane of an access.
#[derive(Copy, Clone)]
pub struct Lane<'a> {
    pub access: Access,
    pub shape: &'a Shape,
    /// Its number in row-major order.
    pub lane: usize,
    pub address: i64,
    pub elem: Scalar,
    pub masked: bool,
    pub origin: Origin,
}

impl Site<'_> {
    pub fn report(&self, id: Id, message: String, label: String) -> Diagnostic {
        Diagnostic::new(id, message).primary_at(&self.func.places, self.loc(), label)
    }

    pub fn loc(&self) -> Loc {
        self.func.loc(self.inst)
    }

    fn at_lane(&self, id: Id, message: String, lane: &Lane<'_>) -> Diagnostic {
        self.at(id, message, lane.shape, lane.lane)
    }

    /// A report about a lane, with the lane as a note too: IR that was read from text has no source.
    pub fn at(&self, id: Id, message: String, shape: &Shape, lane: usize) -> Diagnostic {
        let program = program(self.program);
        let place = match shape.is_scalar() {
            true => format!("in {program}"),
            false => format!("lane {} of {program}", index(shape, lane)),
        };
        let report = self.report(id, message, place.clone());
        if report.labels.is_empty() {
            return report.note(place);
        }
        report
    }

    /// A loop that would never end.
    pub fn zero_step(&self) -> Fault {
        let label = format!("the step is 0 in {}", program(self.program));
        let message = format!("kernel `{}`: the step of a range must not be 0", self.func.name);
        Box::new(self.report(Id::BadArgument, message, label))
    }

    /// Inline assembly that is not run here.
    pub fn not_assembled(&self, refusal: &Refusal) -> Fault {
        not_assembled(self.func, self.inst, refusal)
    }

    pub fn out_of_bounds(&self, memory: &Memory<'_>, lane: &Lane<'_>) -> Fault {
        let verb = lane.access.verb();
        let Some(t) = memory.tensor(lane.origin) else {
            let message = format!(
                "kernel `{}` {verb} address {:#x}, which is in no argument's memory",
                self.func.name, lane.address
            );
            let report = self.at_lane(Id::OutOfBounds, message, lane);
            let report = report
                .note("the pointer was made from an integer, or chosen from several pointers");
            return Box::new(
                report.help(
                    "only the memory of the launch's arguments can be reached; `naiad.expose(x)` adds that of others",
                ),
            );
        };
        let element = Element::of(t, lane);
        let message = format!(
            "kernel `{}` {verb} outside the memory of `{}`: {element}",
            self.func.name, t.name
        );
        let range = describe(t, lane.elem);
        let report = self.at_lane(Id::OutOfBounds, message, lane).note(range);
        Box::new(with_mask_help(report, lane))
    }

    pub fn outside_view(&self, t: &Tensor<'_>, lane: &Lane<'_>) -> Fault {
        let element = Element::of(t, lane);
        let message = format!(
            "kernel `{}` {} outside the view of `{}`, though inside its memory: {element}",
            self.func.name,
            lane.access.verb(),
            t.name
        );
        let report = self.at_lane(Id::OutsideView, message, lane).note(describe(t, lane.elem));
        Box::new(with_mask_help(report, lane))
    }

    pub fn read_only(&self, t: &Tensor<'_>, lane: &Lane<'_>) -> Fault {
        let message = format!(
            "kernel `{}` {} `{}`, which is read-only",
            self.func.name,
            lane.access.verb(),
            t.name
        );
        Box::new(
            self.at_lane(Id::OutOfBounds, message, lane).help("pass a tensor that may be written"),
        )
    }

    pub fn misaligned(&self, t: &Tensor<'_>, lane: &Lane<'_>) -> Fault {
        let message = format!(
            "kernel `{}` {} `{}` at address {:#x}, which is no multiple of {} bytes",
            self.func.name,
            lane.access.verb(),
            t.name,
            lane.address,
            lane.elem.size()
        );
        Box::new(self.at_lane(Id::Misaligned, message, lane))
    }

    pub fn no_memory(&self, lane: &Lane<'_>) -> Fault {
        let (verb, size) = (lane.access.verb(), lane.elem.size());
        let (id, why) = match lane.address.cast_unsigned().is_multiple_of(size as u64) {
            true => (Id::OutOfBounds, "where no memory is".to_string()),
            false => (Id::Misaligned, format!("which is no multiple of {size} bytes")),
        };
        let message =
            format!("kernel `{}` {verb} address {:#x}, {why}", self.func.name, lane.address);
        let report = self.at_lane(id, message, lane);
        Box::new(
            report.note("the pointer was made from an integer, or chosen from several pointers"),
        )
    }
}

/// Inline assembly that is not run here, in a kernel of any dialect.
pub fn not_assembled<D: Dialect>(func: &Function<D>, inst: Inst, refusal: &Refusal) -> Fault {
    let name = &func.name;
    let (message, label) = match &refusal.statement {
        Some(text) => (
            format!("kernel `{name}`: inline assembly with `{text}` runs only on a GPU"),
            refusal.why.clone(),
        ),
        None => (
            format!("kernel `{name}`: inline assembly cannot be run: {}", refusal.why),
            String::new(),
        ),
    };
    let report = Diagnostic::new(Id::InlineAsm, message);
    let report = report.primary_at(&func.places, func.loc(inst), label);
    let report = match report.labels.is_empty() && refusal.statement.is_some() {
        true => report.note(refusal.why.clone()),
        false => report,
    };
    Box::new(report.help(
        "arithmetic on registers is evaluated here too; for the rest write the same in the language",
    ))
}

/// A tensor's extent, counted in elements of the access.
fn describe(t: &Tensor<'_>, elem: Scalar) -> String {
    let size = elem.size() as i128;
    let first = t.lo as i128 - t.address as i128;
    let end = first + t.len as i128;
    let memory = if t.len == 0 {
        "it has no memory".to_string()
    } else if first % size == 0 && end % size == 0 {
        format!("its memory holds elements {} to {}", first / size, end / size - 1)
    } else {
        format!("its memory holds bytes {first} to {}", end - 1)
    };
    match &t.view {
        Some(view) => {
            let dims: Vec<String> = view.shape.iter().map(usize::to_string).collect();
            let dims = if dims.len() == 1 { format!("{},", dims[0]) } else { dims.join(", ") };
            format!("`{}` has shape ({dims}) of {}; {memory}", t.name, view.elem)
        }
        None => format!("`{}` points to {elem}; {memory}", t.name),
    }
}

fn with_mask_help(report: Diagnostic, lane: &Lane<'_>) -> Diagnostic {
    if lane.masked {
        report.help(
            "the mask is true in this lane; compare each index with the extent of its own axis",
        )
    } else if lane.shape.is_scalar() {
        report.help("check the index before the access, or add a mask")
    } else {
        report.help("add a mask that is false in such lanes, as in `mask=offsets < n`")
    }
}

/// An element of a tensor, by its distance from element 0.
struct Element {
    bytes: i128,
    size: i128,
}

impl Element {
    fn of(t: &Tensor<'_>, lane: &Lane<'_>) -> Element {
        Element { bytes: lane.address as i128 - t.address as i128, size: lane.elem.size() as i128 }
    }
}

impl std::fmt::Display for Element {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.bytes % self.size == 0 {
            write!(f, "element {}", self.bytes / self.size)
        } else {
            write!(f, "byte {}", self.bytes)
        }
    }
}

pub fn program([x, y, z]: [u32; 3]) -> String {
    format!("program ({x}, {y}, {z})")
}

pub fn index(shape: &Shape, lane: usize) -> String {
    let parts: Vec<String> =
        shape.dims().zip(shape.strides()).map(|(n, s)| (lane / s % n).to_string()).collect();
    if parts.len() == 1 { parts.concat() } else { format!("({})", parts.join(", ")) }
}

/// Findings that do not end the launch: for each op and kind the worst, and of these the one of the first
/// program, so that the report does not depend on how programs were spread over threads.
#[derive(Default)]
pub struct Findings(Mutex<Vec<Found>>);

struct Found {
    inst: Inst,
    number: u64,
    finding: Diagnostic,
}

impl Findings {
    fn all(&self) -> std::sync::MutexGuard<'_, Vec<Found>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn add(&self, site: &Site<'_>, finding: Diagnostic) {
        let found = Found { inst: site.inst, number: site.number, finding };
        let mut all = self.all();
        match all.iter_mut().find(|f| f.inst == site.inst && f.finding.id == found.finding.id) {
            Some(old) if is_news(old, found.finding.severity, site.number) => *old = found,
            Some(_) => {}
            None => all.push(found),
        }
    }

    /// Whether a finding of this kind and severity, of this program at this op, would be a new one.
    pub fn wants(&self, site: &Site<'_>, id: Id, severity: Severity) -> bool {
        let all = self.all();
        let old = all.iter().find(|f| f.inst == site.inst && f.finding.id == id);
        old.is_none_or(|old| is_news(old, severity, site.number))
    }

    /// Whether there is a finding of this kind at an op, of this severity or a worse one.
    pub fn has(&self, inst: Inst, id: Id, severity: Severity) -> bool {
        let all = self.all();
        all.iter().any(|f| f.inst == inst && f.finding.id == id && f.finding.severity >= severity)
    }

    /// Makes a finding at an op worse, now that more is known of it.
    pub fn escalate(
        &self,
        inst: Inst,
        id: Id,
        severity: Severity,
        change: impl FnOnce(&mut Diagnostic),
    ) {
        let mut all = self.all();
        if let Some(found) = all.iter_mut().find(|f| f.inst == inst && f.finding.id == id)
            && found.finding.severity < severity
        {
            found.finding.severity = severity;
            change(&mut found.finding);
        }
    }

    /// What there is to say: in the order of the kernel's text, one finding of a kind for each line, and
    /// none that its line allows.
    pub fn take(self) -> Vec<Diagnostic> {
        let mut all = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        all.sort_by_key(|f| (f.inst, std::cmp::Reverse(f.finding.severity), f.number));
        let mut out: Vec<Diagnostic> = Vec::new();
        for Found { finding, .. } in all {
            if finding.is_allowed() {
                continue;
            }
            let line = |d: &Diagnostic| d.place().map(|p| (p.source.name.clone(), p.line()));
            match out
                .iter_mut()
                .find(|d| d.id == finding.id && line(d).is_some() && line(d) == line(&finding))
            {
                Some(same) if same.severity < finding.severity => *same = finding,
                Some(_) => {}
                None => out.push(finding),
            }
        }
        out
    }
}

fn is_news(old: &Found, severity: Severity, number: u64) -> bool {
    let worse = severity > old.finding.severity;
    worse || severity == old.finding.severity && number < old.number
}
