//! `naiad lint`: what can be said of kernels without launching them.
//!
//! Types of arguments are not known here. Where defaults and annotations leave some open, they are
//! guessed, and then only such findings are kept as cannot come from a wrong guess: a false report
//! costs more trust than a missed one.

use crate::Common;
use crate::output::Output;
use clap::Args;
use naiad::{
    Annotation, Diagnostic, HostValue, Id, Kernel, LiveHost, Module, Param, ParamSpec, Scalar,
    Type, Value,
};

#[derive(Args)]
pub struct Lint {
    #[arg(required = true)]
    files: Vec<String>,
    #[command(flatten)]
    pub common: Common,
}

impl Lint {
    pub fn main(&self, output: &mut Output) -> i32 {
        let found = self.files.iter().flat_map(|file| lint_file(file));
        found.for_each(|d| output.diagnostic(d));
        output.exit_code()
    }
}

fn lint_file(file: &str) -> Vec<Diagnostic> {
    let module = match Module::from_file(file) {
        Ok(module) => module,
        Err(e) => return vec![*e.into_diagnostic()],
    };
    let kernels = module.kernels().into_iter();
    let mut found: Vec<Diagnostic> = Vec::new();
    for d in kernels.flat_map(|name| lint_kernel(&module, name)) {
        // A helper that several kernels call is reported once.
        if !found.contains(&d) {
            found.push(d);
        }
    }
    found
}

fn lint_kernel(module: &Module, name: &str) -> Vec<Diagnostic> {
    let kernel = match module.kernel(name) {
        Ok(kernel) => kernel,
        Err(e) => return vec![*e.into_diagnostic()],
    };
    let guess = Guess::new(&kernel);
    match kernel.compile(&guess.specs) {
        Ok(compiled) => compiled.findings.iter().filter(|d| guess.bears(d)).cloned().collect(),
        Err(e) => Some(*e.into_diagnostic()).filter(|d| guess.bears(d)).into_iter().collect(),
    }
}

/// A specialization made up from what the text says.
struct Guess {
    specs: Vec<ParamSpec>,
    /// Names of the parameters for which the text did not say enough.
    guessed: Vec<String>,
}

impl Guess {
    fn new<H: LiveHost>(kernel: &Kernel<H>) -> Guess {
        let mut guess = Guess { specs: Vec::new(), guessed: Vec::new() };
        for param in &kernel.signature().params {
            let said = said(kernel, param);
            if said.is_none() {
                guess.guessed.push(param.info.name.clone());
            }
            guess.specs.push(said.unwrap_or_else(|| guessed(param)));
        }
        guess
    }

    /// Whether a finding holds whatever the arguments are.
    fn bears(&self, d: &Diagnostic) -> bool {
        let of_the_text = match d.id {
            Id::SyntaxError
            | Id::UnsupportedPython
            | Id::UnknownTlName
            | Id::BadGlobal
            | Id::Internal => true,
            // A name that nothing assigns; one that some path assigns may depend on a guess.
            Id::UndefinedName => d.labels.len() == 1,
            // Of literals only: an extent made from a guess is no news.
            Id::BadShape => d.place().is_some_and(|place| {
                let words = place.text().split(|c: char| !c.is_alphanumeric() && c != '_');
                let mut names =
                    words.filter(|w| w.starts_with(|c: char| c.is_alphabetic() || c == '_'));
                names.all(|w| ["tl", "triton", "language", "arange", "zeros", "full"].contains(&w))
            }),
            _ => false,
        };
        of_the_text || self.guessed.is_empty()
    }
}

/// What default and annotation say.
fn said<H: LiveHost>(kernel: &Kernel<H>, param: &Param) -> Option<ParamSpec> {
    if param.info.variadic {
        return Some(ParamSpec::Tuple { items: Vec::new(), names: None });
    }
    if let Annotation::Forced(elem) = param.annotation {
        return Some(ParamSpec::Value(Type { elem, ..Type::I32 }));
    }
    match kernel.default(&param.info.name) {
        Ok(Value::Host(value)) if param.info.has_default && param.info.is_constexpr => {
            Some(ParamSpec::Constexpr(value))
        }
        _ => None,
    }
}

fn guessed(param: &Param) -> ParamSpec {
    let name = param.info.name.to_lowercase();
    if param.info.is_constexpr {
        ParamSpec::Constexpr(HostValue::Int(16))
    } else if name.contains("ptr") || name.len() == 1 && name != "n" && name != "m" && name != "k" {
        ParamSpec::Value(Type::pointer(Scalar::F32))
    } else {
        ParamSpec::Value(Type::I32)
    }
}
