//! Printing: results to stdout, diagnostics to stderr.

use clap::ValueEnum;
use naiad::{Diagnostic, Severity, render};
use std::io::{IsTerminal, Write, stderr, stdout};

#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum Format {
    /// As rustc draws them.
    #[default]
    Human,
    /// One JSON object on each line.
    Json,
}

impl Format {
    pub fn name(self) -> &'static str {
        match self {
            Format::Human => "human",
            Format::Json => "json",
        }
    }
}

pub struct Output {
    format: Format,
    style: render::Style,
}

impl Output {
    pub fn new(format: Format) -> Output {
        let style =
            if stderr().is_terminal() { render::Style::COLOR } else { render::Style::PLAIN };
        Output { format, style }
    }

    pub fn result(&self, text: &str) {
        // A reader that closed the pipe has seen enough.
        let _ = writeln!(stdout(), "{}", text.trim_end());
    }

    pub fn diagnostic(&self, d: &Diagnostic) {
        let text = match self.format {
            Format::Human => render::human(d, self.style) + "\n",
            Format::Json => render::json(d).to_string(),
        };
        let _ = writeln!(stderr(), "{text}");
    }

    /// The exit code of a command that found these.
    pub fn exit_code<'d>(&self, found: impl IntoIterator<Item = &'d Diagnostic>) -> i32 {
        found.into_iter().any(|d| d.severity == Severity::Error) as i32
    }

    /// Prints the error and gives the exit code.
    pub fn fail(&self, error: &naiad::Error) -> i32 {
        self.diagnostic(error.diagnostic());
        1
    }
}
