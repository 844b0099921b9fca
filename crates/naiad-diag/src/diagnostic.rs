//! The one type of all messages to users.

use crate::{Id, Loc, Picture, Place, Places};
use std::any::Any;

#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum Severity {
    Note,
    Warning,
    Error,
}

impl Severity {
    pub const fn name(self) -> &'static str {
        match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

/// A place and what it has to do with the matter.
#[derive(Clone, PartialEq, Debug)]
pub struct Label {
    pub place: Place,
    pub text: String,
    pub primary: bool,
}

/// A message: one primary sentence that stands alone, and details around it.
#[derive(Clone, PartialEq, Debug)]
pub struct Diagnostic {
    pub id: Id,
    pub severity: Severity,
    pub message: String,
    pub labels: Vec<Label>,
    /// Calls that led to the primary place, innermost first.
    pub called_from: Vec<Place>,
    /// The tile that the message is about.
    pub picture: Option<Box<Picture>>,
    pub notes: Vec<String>,
    /// What to write instead.
    pub help: Vec<String>,
}

impl Diagnostic {
    /// A diagnostic of the severity that its id has by default.
    pub fn new(id: Id, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            id,
            severity: id.severity(),
            message: message.into(),
            labels: Vec::new(),
            called_from: Vec::new(),
            picture: None,
            notes: Vec::new(),
            help: Vec::new(),
        }
    }

    /// The report of a panic in Naiad, from what the panic carries.
    pub fn of_panic(doing: &str, payload: &(dyn Any + Send)) -> Diagnostic {
        let what = payload
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| payload.downcast_ref::<&str>().copied())
            .unwrap_or("a panic without a message");
        Diagnostic::new(Id::Internal, format!("Naiad failed while {doing}: {what}"))
            .help("this is a bug of Naiad, not of your kernel; please report it with the kernel and the launch")
    }

    pub fn primary(mut self, place: Place, text: impl Into<String>) -> Diagnostic {
        self.labels.push(Label { place, text: text.into(), primary: true });
        self
    }

    pub fn secondary(mut self, place: Place, text: impl Into<String>) -> Diagnostic {
        self.labels.push(Label { place, text: text.into(), primary: false });
        self
    }

    /// Labels the place of `loc` and takes over its chain of calls.
    pub fn primary_at(mut self, places: &Places, loc: Loc, text: impl Into<String>) -> Diagnostic {
        let mut chain = places.chain(loc).into_iter();
        if let Some(place) = chain.next() {
            self = self.primary(place, text);
        }
        self.called_from = chain.collect();
        self
    }

    pub fn picture(mut self, picture: Option<Picture>) -> Diagnostic {
        self.picture = picture.map(Box::new).or(self.picture);
        self
    }

    pub fn note(mut self, text: impl Into<String>) -> Diagnostic {
        self.notes.push(text.into());
        self
    }

    pub fn help(mut self, text: impl Into<String>) -> Diagnostic {
        self.help.push(text.into());
        self
    }

    /// The place that the message is about, where there is one.
    pub fn place(&self) -> Option<&Place> {
        self.labels.iter().find(|l| l.primary).map(|l| &l.place)
    }

    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}
