//! The error of this crate: a diagnostic.

use naiad_diag::{Diagnostic, Id, render};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong, with its places in the kernel's source. `Display` draws it as rustc would.
#[derive(Clone, PartialEq)]
pub struct Error(Box<Diagnostic>);

impl Error {
    pub fn diagnostic(&self) -> &Diagnostic {
        &self.0
    }

    pub fn into_diagnostic(self) -> Box<Diagnostic> {
        self.0
    }

    pub fn id(&self) -> Id {
        self.0.id
    }

    pub fn with_help(mut self, help: impl Into<String>) -> Error {
        self.0.help.push(help.into());
        self
    }
}

impl From<Diagnostic> for Error {
    fn from(d: Diagnostic) -> Error {
        Error(Box::new(d))
    }
}

impl From<Box<Diagnostic>> for Error {
    fn from(d: Box<Diagnostic>) -> Error {
        Error(d)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&render::human(&self.0, render::Style::PLAIN))
    }
}

impl fmt::Debug for Error {
    /// As `Display`: `unwrap` and `main() -> Result` then show the drawing.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {}

/// Runs `f`; a panic in it becomes an `internal` error, since it is a fault of Naiad and not of
/// whoever called.
pub fn guard<T>(doing: impl fmt::Display, f: impl FnOnce() -> Result<T>) -> Result<T> {
    // What a panic leaves half done is dropped with the closure: callers share only caches whose
    // entries are inserted whole.
    catch_unwind(AssertUnwindSafe(f))
        .unwrap_or_else(|payload| Err(Diagnostic::of_panic(&doing.to_string(), &*payload).into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_a_bug_report() {
        let error = guard::<()>("testing", || panic!("index {} out of range", 3)).unwrap_err();
        assert_eq!(error.id(), Id::Internal);
        assert!(error.to_string().contains("Naiad failed while testing: index 3 out of range"));
    }
}
