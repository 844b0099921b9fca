//! `naiad lint`: what can be said of kernels without launching them.
//!
//! Types of arguments are not known here. A comment above a kernel may say them,
//!
//! ```text
//! # naiad: signature(x_ptr=*fp16, n=i32<=300000, BLOCK=1024, grid=4096)
//! ```
//!
//! as `naiad compile --signature` does, and besides how large numbers may be and how many programs there
//! are. Otherwise they are guessed, see [`crate::guess`]; where no guess compiles, that is said.

use crate::guess::{Guess, bears};
use crate::output::Output;
use crate::{Common, Deny};
use clap::Args;
use naiad::{Declared, Diagnostic, FunctionSource, Id, Kernel, LiveHost, Module, Place};
use std::collections::HashSet;
use std::path::PathBuf;

#[derive(Args)]
pub struct Lint {
    #[arg(required = true)]
    files: Vec<String>,
    /// What counts as an error too.
    #[arg(long, value_enum, value_name = "WHAT")]
    deny: Option<Deny>,
    #[command(flatten)]
    pub common: Common,
}

impl Lint {
    pub fn main(&self, output: &mut Output) -> i32 {
        let mut found: Vec<Diagnostic> = Vec::new();
        let mut told = HashSet::new();
        for d in self.files.iter().flat_map(|file| lint_file(file)) {
            // A helper that several kernels call, or files, is reported once; the messages name the
            // kernels, so the place tells.
            let is_news = match d.place() {
                Some(at) => told.insert((d.id.name(), whole(&at.source.name), at.range.clone())),
                None => !found.contains(&d),
            };
            if is_news && !d.is_allowed() {
                found.push(d);
            }
        }
        found.into_iter().for_each(|d| output.diagnostic(d));
        output.exit_code(self.deny == Some(Deny::Warnings))
    }
}

/// A file's path, however it is named.
fn whole(name: &str) -> PathBuf {
    std::fs::canonicalize(name).unwrap_or_else(|_| name.into())
}

fn lint_file(file: &str) -> Vec<Diagnostic> {
    let module = match Module::from_file(file) {
        Ok(module) => module,
        Err(e) => return vec![*e.into_diagnostic()],
    };
    module.kernels().into_iter().flat_map(|name| lint_kernel(&module, name)).collect()
}

fn lint_kernel(module: &Module, name: &str) -> Vec<Diagnostic> {
    let read = || -> naiad::Result<_> {
        let kernel = module.kernel(name)?;
        let source = kernel.source()?;
        Ok((kernel, source))
    };
    let (kernel, source) = match read() {
        Ok(read) => read,
        Err(e) => return vec![*e.into_diagnostic()],
    };
    let signatures = signatures(&source);
    if signatures.is_empty() {
        return lint_guessed(&kernel, &source);
    }
    signatures.iter().flat_map(|place| lint_declared(&kernel, place)).collect()
}

/// With the types that a comment says.
fn lint_declared<H: LiveHost>(kernel: &Kernel<H>, place: &Place) -> Vec<Diagnostic> {
    let run = || -> naiad::Result<_> {
        let (types, declared) =
            declared(place.text(), kernel.signature().index_of("grid").is_none())?;
        Ok((kernel.parse_specs(&types)?, declared))
    };
    let (specs, declared) = match run() {
        Ok(read) => read,
        // What is wrong is in the comment.
        Err(e) => return vec![e.into_diagnostic().primary(place.clone(), "")],
    };
    match kernel.compile(&specs) {
        Ok(compiled) => [compiled.findings.clone(), naiad::review(&compiled, &declared)].concat(),
        Err(e) => vec![*e.into_diagnostic()],
    }
}

fn lint_guessed<H: LiveHost>(kernel: &Kernel<H>, source: &FunctionSource) -> Vec<Diagnostic> {
    let guess = Guess::new(kernel);
    let (all_said, result) = guess.compile(kernel);
    match result {
        Ok(compiled) => {
            let found = compiled.findings.iter().filter(|d| all_said || bears(d)).cloned();
            found.chain(naiad::review(&compiled, &Declared::default())).collect()
        }
        Err(e) if bears(&e) => vec![*e],
        // A function that others call is seen where they call it, and may give something back.
        Err(e) if is_helper(source) || e.id == Id::BadReturn => Vec::new(),
        Err(e) if all_said && !is_opaque(&e) => vec![*e],
        Err(e) => {
            let why = match all_said {
                true => "what it calls is known only when the file runs",
                false => "with types that were guessed for its arguments it does not compile",
            };
            let message = format!("kernel `{}` was not reviewed: {why}", kernel.name());
            let mut d =
                Diagnostic::new(Id::CheckLimit, message).note(format!("{}: {}", e.id, e.message));
            if let Some(place) = e.called_from.last().or(e.place()) {
                d = d.primary(place.clone(), "");
            }
            if !all_said {
                d = d.help(
                    "say them above the kernel: `# naiad: signature(x_ptr=*fp32, n=i32, BLOCK=1024)`",
                );
            }
            vec![d]
        }
    }
}

const MARK: &str = "naiad: signature(";

/// The signatures in the comments right above a function and between its decorators.
fn signatures(source: &FunctionSource) -> Vec<Place> {
    let text = &source.source.text;
    let mut start = source.range.start;
    while let Some(line) =
        text[..start].lines().next_back().filter(|l| l.trim_start().starts_with('#'))
    {
        start -= (line.len() + 1).min(start);
    }
    let head = text[source.range.start..]
        .find("def ")
        .map_or(source.range.end, |i| source.range.start + i);
    let mut found = Vec::new();
    let mut at = start;
    while let Some(i) = text[at..head].find(MARK) {
        let from = at + i + MARK.len();
        let end = text[from..head].find(')').map_or(from, |i| from + i);
        found.push(Place::new(source.source.clone(), from..end));
        at = end.max(from);
    }
    found
}

/// What a signature says of types, and of sizes.
fn declared(text: &str, grid_is_ours: bool) -> naiad::Result<(String, Declared)> {
    let bad = |what: &str| {
        let message = format!("`{what}` is no number of programs, and no largest number");
        naiad::Error::from(Diagnostic::new(Id::BadLaunch, message))
    };
    let (mut types, mut declared) = (Vec::new(), Declared::default());
    for item in text.split(',') {
        match (item.split_once("<="), item.split_once('=')) {
            (Some((head, most)), _) => {
                let name = head.split('=').next().unwrap_or(head).trim().to_string();
                let most = most.trim().replace('_', "").parse().map_err(|_| bad(most.trim()))?;
                declared.at_most.insert(name, most);
                types.push(head.to_string());
            }
            (None, Some((name, count))) if grid_is_ours && name.trim() == "grid" => {
                let counts = count.split('x').map(|n| n.trim().replace('_', "").parse::<u32>());
                let counts =
                    counts.collect::<Result<Vec<_>, _>>().map_err(|_| bad(count.trim()))?;
                let mut grid = [1; 3];
                if counts.len() > 3 {
                    return Err(bad(count.trim()));
                }
                grid[..counts.len()].copy_from_slice(&counts);
                declared.grid = Some(grid);
            }
            _ => types.push(item.to_string()),
        }
    }
    Ok((types.join(","), declared))
}

/// Whether an error may be of objects, such as classes, that are known only when the file runs.
fn is_opaque(d: &Diagnostic) -> bool {
    matches!(d.id, Id::BadCall | Id::NotConstexpr | Id::UnknownAttribute)
}

/// Whether other functions of the file call it, or pass it on, and nothing launches it.
fn is_helper(source: &FunctionSource) -> bool {
    let (text, name) = (&source.source.text, source.name.as_str());
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut called = false;
    for (i, _) in text.match_indices(name) {
        let (before, after) = (&text[..i], &text[i + name.len()..]);
        if before.ends_with(is_word) || after.starts_with(is_word) || before.ends_with("def ") {
            continue;
        }
        match after.trim_start().chars().next() {
            Some('[') => return false,
            Some('(' | ')' | ',') => called = true,
            _ => {}
        }
    }
    called
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_signature_declares() {
        let (types, known) = declared("x=*fp32, n=i32<=300_000, B=16, grid=4 x 2", true).unwrap();
        assert_eq!(types, "x=*fp32, n=i32, B=16");
        assert_eq!(known.at_most["n"], 300_000);
        assert_eq!(known.grid, Some([4, 2, 1]));
        assert_eq!(declared("grid=i32", false).unwrap().0, "grid=i32");
        assert!(declared("n=i32<=many", true).is_err() && declared("grid=few", true).is_err());
    }
}
