//! The kernel's lines in the text, so that profilers and debuggers show them beside its instructions.
//!
//! A helper's op is shown in the helper, with the calls that led there.

use crate::emit::Line;
use naiad_ir::thread::Thread;
use naiad_ir::{Function, Inst, Loc};
use rustc_hash::FxHashMap;
use std::fmt::Write as _;
use std::rc::Rc;
use std::sync::Arc;

#[derive(Default)]
pub struct Lines {
    files: Vec<String>,
    /// The names of helpers; a label of a name is its place here.
    helpers: Vec<String>,
    known: FxHashMap<Loc, Rc<Line>>,
    /// Where places stand by the text's address and where they begin in it: to count lines takes a walk
    /// through the text.
    counted: FxHashMap<(usize, usize), [u32; 3]>,
}

impl Lines {
    /// Where an op stands.
    pub fn of(&mut self, func: &Function<Thread>, inst: Inst) -> Option<Rc<Line>> {
        self.line(func, func.loc(inst))
    }

    fn line(&mut self, func: &Function<Thread>, loc: Loc) -> Option<Rc<Line>> {
        if let Some(known) = self.known.get(&loc) {
            return Some(known.clone());
        }
        let at = self.count(func, loc)?;
        let caller = self.line(func, func.places.called_from(loc));
        let called_from = caller.map(|at| (self.label(func.places.function(loc)), at));
        let line = Rc::new(Line { at, called_from });
        self.known.insert(loc, line.clone());
        Some(line)
    }

    /// File, line and column.
    fn count(&mut self, func: &Function<Thread>, loc: Loc) -> Option<[u32; 3]> {
        let place = func.places.place(loc)?;
        let (source, start) = (place.source, place.range.start);
        let key = (Arc::as_ptr(&source).addr(), start);
        if let Some(&known) = self.counted.get(&key) {
            return Some(known);
        }
        let file = number(&mut self.files, &source.name) + 1;
        let (line, column) = source.line_col(start);
        let at = [file as u32, line, column];
        self.counted.insert(key, at);
        Some(at)
    }

    fn label(&mut self, helper: &str) -> String {
        format!("$helper{}", number(&mut self.helpers, helper))
    }

    /// In front of the function.
    pub fn files(&self) -> String {
        let mut out = String::new();
        for (i, file) in self.files.iter().enumerate() {
            // Between its quotes PTX takes printable ASCII as it is, and nothing else.
            let plain = |c: char| if matches!(c, ' '..='~') && c != '"' { c } else { '?' };
            let file: String = file.chars().map(plain).collect();
            let _ = writeln!(out, ".file {} \"{file}\"", i + 1);
        }
        if !out.is_empty() {
            out.push('\n');
        }
        out
    }

    /// Behind the function: what helpers are called.
    pub fn helpers(&self) -> String {
        let mut out = String::new();
        if self.helpers.is_empty() {
            return out;
        }
        out += ".section .debug_str\n{\n";
        for (i, helper) in self.helpers.iter().enumerate() {
            let bytes: Vec<String> = helper.bytes().chain([0]).map(|b| b.to_string()).collect();
            let _ = writeln!(out, "$helper{i}:\n\t.b8 {}", bytes.join(", "));
        }
        out += "}\n";
        out
    }
}

/// The place of a name in a list, at whose end it is put if it is new.
fn number(names: &mut Vec<String>, name: &str) -> usize {
    names.iter().position(|known| known == name).unwrap_or_else(|| {
        names.push(name.to_string());
        names.len() - 1
    })
}
