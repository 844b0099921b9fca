//! What can be said of a kernel without a launch.
//!
//! ```text
//!   padding   what masked lanes hold where lanes meet; a sum of fewer lanes divided by all   padding.rs
//!   masks     masks, taken apart into bounds                                                 masks.rs
//!   unused    masks and program ids that nothing uses                                        unused.rs
//!   strides   strides where widths are meant; outputs taken for contiguous                   strides.rs
//!   wraps     offsets that sizes, as declared, overflow                                      wraps.rs
//! ```
//!
//! Findings have the kinds of the checker's, and are notes where only a run can tell. A false report
//! costs trust: where text or types leave it open whether anything is wrong, nothing is said.

mod masks;
mod padding;
mod strides;
mod unused;
mod wraps;

use crate::ranges::Inputs;
use naiad_diag::text::call;
use naiad_diag::{Diagnostic, Id, Place};
use naiad_ir::tile::{Tile, TileOp};
use naiad_ir::{Function, Inst, OpInfo};

/// Reviews a kernel as the front end made it. `declared` is what the source says of its arguments and
/// its grid; offsets are judged by that alone.
pub fn lint(func: &Function<Tile>, declared: &Inputs) -> Vec<Diagnostic> {
    // Equal masks must be one value.
    let mut merged = func.clone();
    crate::cse(&mut merged);
    let mut lint = Lint { func: &merged, found: Vec::new() };
    padding::check(&mut lint);
    unused::check(&mut lint, declared);
    strides::check(&mut lint);
    wraps::check(&mut lint, declared);
    lint.finish()
}

/// The kernel under review, and what was found.
struct Lint<'f> {
    func: &'f Function<Tile>,
    found: Vec<Diagnostic>,
}

impl Lint<'_> {
    fn at(&self, inst: Inst, id: Id, message: String, label: &str) -> Diagnostic {
        Diagnostic::new(id, message).primary_at(&self.func.places, self.func.loc(inst), label)
    }

    /// Adds another place, unless it is the same.
    fn also(&self, d: Diagnostic, inst: Inst, text: &str) -> Diagnostic {
        match self.place(inst) {
            Some(place) if d.place() != Some(&place) => d.secondary(place, text),
            _ => d,
        }
    }

    fn place(&self, inst: Inst) -> Option<Place> {
        self.func.places.place(self.func.loc(inst))
    }

    fn text(&self, inst: Inst) -> Option<String> {
        Some(self.place(inst)?.text().to_string()).filter(|text| !text.is_empty())
    }

    /// What a place where lanes meet is called.
    fn point(&self, inst: Inst) -> String {
        if let Some((callee, _)) = self.text(inst).as_deref().and_then(call) {
            return format!("`{callee}`");
        }
        match self.func.op(inst) {
            TileOp::Binary { .. } => "the accumulation".into(),
            op => format!("`{}`", op.name()),
        }
    }

    fn found(&mut self, d: Diagnostic) {
        self.found.push(d);
    }

    /// The findings, one of a kind for each line, the worst of them; in the order of the text.
    fn finish(self) -> Vec<Diagnostic> {
        let mut out: Vec<Diagnostic> = Vec::new();
        let line = |d: &Diagnostic| d.place().map(|p| (p.source.name.clone(), p.line()));
        for d in self.found.into_iter().filter(|d| !d.is_allowed()) {
            match out.iter_mut().find(|o| o.id == d.id && line(o).is_some() && line(o) == line(&d))
            {
                Some(same) if same.severity < d.severity => *same = d,
                Some(_) => {}
                None => out.push(d),
            }
        }
        out.sort_by_key(|d| d.place().map(|p| p.range.start));
        out
    }
}

/// The text of the function that a place is in, from its `def` or decorator to the next thing of the
/// module's.
fn function_text(place: &Place) -> &str {
    let text = &place.source.text;
    let is_head = |line: &str| {
        line.starts_with(|c: char| !c.is_whitespace() && c != '#' && c != ')' && c != ']')
    };
    let (mut start, mut at, mut inside) = (0, 0, false);
    for line in text.split_inclusive('\n') {
        let behind = at > place.range.start;
        // A decorator and its `def` are two heads of one function.
        if is_head(line) {
            if behind {
                return &text[start..at];
            }
            if inside || !line.starts_with("def ") {
                start = at;
            }
            inside = line.starts_with("def ");
        }
        at += line.len();
    }
    &text[start..]
}

/// How often a name stands in a text.
fn occurrences(text: &str, name: &str) -> usize {
    // Comments name what the code does not use.
    let code = text.lines().map(|line| line.split('#').next().unwrap_or(""));
    code.flat_map(naiad_diag::text::names).filter(|&n| n == name).count()
}

/// The name to which the statement at a place assigns, if that is all it does.
fn assigned(place: &Place) -> Option<&str> {
    let text = &place.source.text;
    let start = text.get(..place.range.start)?.rfind('\n').map_or(0, |i| i + 1);
    let before = &text[start..place.range.start];
    let (name, rest) = before.split_once('=')?;
    let plain = |c: char| c.is_alphanumeric() || c == '_';
    let name = name.trim();
    (!name.is_empty() && name.chars().all(plain) && !rest.contains('=')).then_some(name)
}
