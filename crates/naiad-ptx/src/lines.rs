//! The kernel's lines in the text, so that profilers and debuggers show them beside its instructions.
//!
//! A helper's op is shown in the helper, and not at the calls that led there.

use crate::emit::Line;
use naiad_ir::thread::Thread;
use naiad_ir::{Function, Inst};
use rustc_hash::FxHashMap;
use std::fmt::Write as _;
use std::sync::Arc;

#[derive(Default)]
pub struct Lines {
    files: Vec<String>,
    /// Lines of places that were met before, by the text's address and where they begin in it: to count
    /// lines takes a walk through the text.
    known: FxHashMap<(usize, usize), Line>,
}

impl Lines {
    /// Where an op stands.
    pub fn of(&mut self, func: &Function<Thread>, inst: Inst) -> Option<Line> {
        let place = func.places.place(func.loc(inst))?;
        let (source, start) = (place.source, place.range.start);
        let key = (Arc::as_ptr(&source).addr(), start);
        if let Some(&known) = self.known.get(&key) {
            return Some(known);
        }
        let at = self.files.iter().position(|f| *f == source.name).unwrap_or_else(|| {
            self.files.push(source.name.clone());
            self.files.len() - 1
        });
        let (line, column) = source.line_col(start);
        let line = Line { file: at as u32 + 1, line, column };
        self.known.insert(key, line);
        Some(line)
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
}
