//! Printing: results to stdout, diagnostics to stderr or to a file.

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
    /// A SARIF 2.1.0 log.
    Sarif,
    /// Annotations of GitHub's, one on each line.
    Github,
}

impl Format {
    pub fn name(self) -> &'static str {
        match self {
            Format::Human => "human",
            Format::Json => "json",
            Format::Sarif => "sarif",
            Format::Github => "github",
        }
    }
}

/// What a command has to say, kept until it has ended: a SARIF log is one document.
pub struct Output {
    format: Format,
    said: Vec<Diagnostic>,
}

impl Output {
    pub fn new(format: Format) -> Output {
        Output { format, said: Vec::new() }
    }

    pub fn result(&self, text: &str) {
        // A reader that closed the pipe has seen enough.
        let _ = writeln!(stdout(), "{}", text.trim_end());
    }

    pub fn diagnostic(&mut self, d: Diagnostic) {
        self.said.push(d);
    }

    /// Says an error and gives the exit code.
    pub fn fail(&mut self, error: naiad::Error) -> i32 {
        self.diagnostic(*error.into_diagnostic());
        1
    }

    /// The exit code of a command that said this much.
    pub fn exit_code(&self, deny_warnings: bool) -> i32 {
        let least = if deny_warnings { Severity::Warning } else { Severity::Error };
        self.said.iter().any(|d| d.severity >= least) as i32
    }

    /// Writes all that was said.
    pub fn finish(&self, file: Option<&str>) -> Result<(), String> {
        let Some(file) = file else {
            let style = match stderr().is_terminal() {
                true => render::Style::COLOR,
                false => render::Style::PLAIN,
            };
            // If nobody can be told, nobody can be told of that.
            let _ = stderr().write_all(self.render(style).as_bytes());
            return Ok(());
        };
        let text = self.render(render::Style::PLAIN);
        std::fs::write(file, text).map_err(|e| format!("`{file}` cannot be written: {e}"))
    }

    fn render(&self, style: render::Style) -> String {
        let base = std::env::current_dir().map_or(String::new(), |d| d.display().to_string());
        if self.format == Format::Sarif {
            return format!("{:#}\n", render::sarif(&self.said, &base, env!("CARGO_PKG_VERSION")));
        }
        let one = |d| match self.format {
            Format::Human => render::human(d, style) + "\n\n",
            Format::Json => render::json(d).to_string() + "\n",
            Format::Sarif | Format::Github => render::github(d, &base) + "\n",
        };
        self.said.iter().map(one).collect()
    }
}

/// Says what is wrong with the command itself.
pub fn complain(text: &str) {
    let _ = writeln!(stderr(), "error: {text}");
}
