//! Where things stand: source texts and ranges in them, with the chain of calls that led there.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// One text that code was read from.
///
/// The text is whole wherever there is a file, so that line numbers are the editor's. Generated
/// code has no file: its name is then in angle brackets, and `first_line` is 1.
#[derive(PartialEq, Eq, Hash)]
pub struct Source {
    /// Path, or a name in angle brackets for text that is in no file.
    pub name: String,
    pub text: String,
    /// Number that the text's first line has in its file; 1 for a whole file.
    pub first_line: u32,
}

impl Source {
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Arc<Source> {
        Arc::new(Source { name: name.into(), text: text.into(), first_line: 1 })
    }

    /// Line (as numbered in the file) and column, both from 1; columns count characters.
    pub fn line_col(&self, offset: usize) -> (u32, u32) {
        let mut offset = offset.min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        let before = &self.text[..offset];
        let line = before.bytes().filter(|&b| b == b'\n').count() as u32;
        let col = before.rsplit('\n').next().unwrap_or("").chars().count() as u32;
        (self.first_line + line, col + 1)
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Source({})", self.name)
    }
}

/// A range of bytes of a source.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    pub source: Arc<Source>,
    pub range: Range<usize>,
}

impl Place {
    pub fn new(source: Arc<Source>, range: Range<usize>) -> Place {
        Place { source, range }
    }

    /// The text covered; empty where the range does not fit the source.
    pub fn text(&self) -> &str {
        self.source.text.get(self.range.clone()).unwrap_or("")
    }

    pub fn line(&self) -> u32 {
        self.source.line_col(self.range.start).0
    }
}

impl fmt::Display for Place {
    /// `file:line:column`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (line, col) = self.source.line_col(self.range.start);
        write!(f, "{}:{line}:{col}", self.source.name)
    }
}

/// A place with its chain of calls, as an index into [`Places`]. `Loc::NONE` is no place.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Loc(u32);

impl Loc {
    pub const NONE: Loc = Loc(u32::MAX);

    pub fn is_none(self) -> bool {
        self == Loc::NONE
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct LocData {
    source: u32,
    start: u32,
    end: u32,
    function: u32,
    called_from: Loc,
}

/// The places that one function's ops refer to.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Places {
    sources: Vec<Arc<Source>>,
    functions: Vec<String>,
    locs: Vec<LocData>,
}

impl Places {
    /// Records a place in a function, reached through the call at `called_from` (`Loc::NONE` in the
    /// kernel itself).
    pub fn add(
        &mut self,
        source: &Arc<Source>,
        range: Range<usize>,
        function: &str,
        called_from: Loc,
    ) -> Loc {
        let source = match self.sources.iter().rposition(|s| Arc::ptr_eq(s, source)) {
            Some(i) => i,
            None => {
                self.sources.push(source.clone());
                self.sources.len() - 1
            }
        };
        let function = match self.functions.iter().rposition(|f| f == function) {
            Some(i) => i,
            None => {
                self.functions.push(function.to_string());
                self.functions.len() - 1
            }
        };
        let data = LocData {
            source: source as u32,
            start: range.start as u32,
            end: range.end as u32,
            function: function as u32,
            called_from,
        };
        // Neighbouring ops often come from one expression.
        if self.locs.last() != Some(&data) {
            self.locs.push(data);
        }
        Loc(self.locs.len() as u32 - 1)
    }

    pub fn place(&self, loc: Loc) -> Option<Place> {
        let data = self.locs.get(loc.0 as usize)?;
        let source = self.sources[data.source as usize].clone();
        Some(Place::new(source, data.start as usize..data.end as usize))
    }

    /// The name of the function that `loc` is in.
    pub fn function(&self, loc: Loc) -> &str {
        let data = self.locs.get(loc.0 as usize);
        data.and_then(|d| self.functions.get(d.function as usize)).map_or("", String::as_str)
    }

    /// The call through which `loc` was reached.
    pub fn called_from(&self, loc: Loc) -> Loc {
        self.locs.get(loc.0 as usize).map_or(Loc::NONE, |d| d.called_from)
    }

    /// The place and then the calls that led to it, innermost first.
    pub fn chain(&self, loc: Loc) -> Vec<Place> {
        let mut out = Vec::new();
        let mut at = loc;
        while let Some(place) = self.place(at) {
            out.push(place);
            at = self.called_from(at);
        }
        out
    }
}
