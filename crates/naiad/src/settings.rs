//! What the environment asks of launches, read once in a process: docs/settings.md tells users.
//!
//! A variable that says something else than it may is an error of each launch, and not passed over: who
//! misspells an executor's name would else measure something else than he thinks.

use crate::{Executor, Result};
use naiad_cpu::Processor;
use naiad_diag::{Diagnostic, Id};
use std::sync::OnceLock;

#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    /// `NAIAD_EXECUTOR`: what runs kernels on a CPU.
    pub executor: Executor,
    /// `NAIAD_PRECISE`: elementary functions on a GPU as on a CPU.
    pub precise: bool,
    /// `NAIAD_CUDA_SYNC`: each launch on a GPU is waited for, so that a fault is told at the launch that made
    /// it.
    #[cfg_attr(not(feature = "cuda"), expect(dead_code))]
    pub cuda_sync: bool,
    /// `TRITON_DISABLE_LINE_INFO`: code for a GPU does not name the kernel's lines.
    #[cfg_attr(not(feature = "cuda"), expect(dead_code))]
    pub no_lines: bool,
    wrong: Option<Box<Diagnostic>>,
}

impl Settings {
    /// Where a variable is wrong, what holds without it; see [`Settings::checked`].
    pub fn get() -> &'static Settings {
        static SETTINGS: OnceLock<Settings> = OnceLock::new();
        SETTINGS.get_or_init(|| {
            // What is no text is no name either, and is told as such.
            let variable =
                |name: &str| Some(std::env::var_os(name)?.to_string_lossy().into_owned());
            let settings = Settings::read(variable);
            // Nothing has chosen code for this processor yet: whoever does has come by here.
            if let Some(processor) = settings.0 {
                Processor::limit(processor);
            }
            settings.1
        })
    }

    /// The settings, if all variables say something that they may.
    pub fn checked() -> Result<&'static Settings> {
        let settings = Settings::get();
        match &settings.wrong {
            None => Ok(settings),
            Some(wrong) => Err((**wrong).clone().into()),
        }
    }

    /// By what variables say; and `NAIAD_CPU`, the processor for which this one is to be taken.
    fn read(variable: impl Fn(&str) -> Option<String>) -> (Option<Processor>, Settings) {
        let said = |name: &str| variable(name).filter(|text| !text.is_empty());
        let mut wrong = None;
        let mut one_of = |name: &str, text: &str, names: &[&str]| {
            let given = Diagnostic::new(Id::BadLaunch, format!("`{name}` is `{text}`"));
            wrong = Some(Box::new(given.help(format!("it may be {}", listed(names)))));
        };
        let processor = said("NAIAD_CPU").and_then(|text| {
            let found = Processor::available().find(|p| p.name() == text);
            if found.is_none() {
                let names: Vec<_> = Processor::available().map(Processor::name).collect();
                one_of("NAIAD_CPU", &text, &names);
            }
            found
        });
        let executor = said("NAIAD_EXECUTOR").and_then(|text| {
            let found = Executor::from_name(&text);
            if found.is_none() {
                let names: Vec<_> = Executor::NAMES.iter().map(|(name, _)| *name).collect();
                one_of("NAIAD_EXECUTOR", &text, &names);
            }
            found
        });
        let mut flag = |name: &str| {
            let Some(text) = said(name) else { return false };
            let is = |words: &[&str]| words.contains(&&*text.to_lowercase());
            if !is(&YES) && !is(&NO) {
                one_of(name, &text, &["1", "0"]);
            }
            is(&YES)
        };
        let settings = Settings {
            executor: executor.unwrap_or_default(),
            precise: flag("NAIAD_PRECISE"),
            cuda_sync: flag("NAIAD_CUDA_SYNC"),
            // Triton's own, which passes over any other word.
            no_lines: said("TRITON_DISABLE_LINE_INFO")
                .is_some_and(|text| YES.contains(&&*text.to_lowercase())),
            wrong,
        };
        (processor, settings)
    }
}

/// What turns a setting on, and off, in small letters or capital ones.
const YES: [&str; 5] = ["1", "true", "on", "yes", "y"];
const NO: [&str; 5] = ["0", "false", "off", "no", "n"];

fn listed(names: &[&str]) -> String {
    let quoted: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> (Option<Processor>, Settings) {
        let find = |name: &str| variables.iter().find(|(n, _)| *n == name);
        Settings::read(|name| find(name).map(|(_, text)| text.to_string()))
    }

    #[test]
    fn variables_are_read() {
        let (processor, settings) = read(&[
            ("NAIAD_EXECUTOR", "interp"),
            ("NAIAD_CPU", "portable"),
            ("NAIAD_PRECISE", "0"),
            ("NAIAD_CUDA_SYNC", "1"),
            ("TRITON_DISABLE_LINE_INFO", "True"),
        ]);
        assert_eq!(processor, Some(Processor::Portable));
        assert_eq!(settings.executor, Executor::Reference);
        assert_eq!((settings.precise, settings.cuda_sync, settings.no_lines), (false, true, true));
        assert!(settings.wrong.is_none());
    }

    #[test]
    fn flags_are_on_or_off() {
        let precise = |text| read(&[("NAIAD_PRECISE", text)]).1;
        for (text, on) in [("1", true), ("Yes", true), ("0", false), ("false", false), ("", false)]
        {
            let settings = precise(text);
            assert!(settings.precise == on && settings.wrong.is_none(), "{text}");
        }
        for text in ["2", "ture", "1 "] {
            let wrong = precise(text).wrong.expect("an error");
            assert!(wrong.message.contains(&format!("`NAIAD_PRECISE` is `{text}`")));
        }
        assert!(read(&[("NAIAD_CUDA_SYNC", "si")]).1.wrong.is_some());
        assert!(read(&[("TRITON_DISABLE_LINE_INFO", "si")]).1.wrong.is_none());
    }

    #[test]
    fn what_is_empty_is_not_said() {
        let (processor, settings) = read(&[("NAIAD_EXECUTOR", ""), ("NAIAD_CPU", "")]);
        assert_eq!((processor, settings.executor), (None, Executor::Auto));
        assert!(settings.wrong.is_none());
    }

    #[test]
    fn what_may_not_be_said_is_told() {
        let wrong = |name, text| read(&[(name, text)]).1.wrong.expect("an error").message;
        let executor = wrong("NAIAD_EXECUTOR", "gpu");
        assert!(executor.contains("`NAIAD_EXECUTOR` is `gpu`"), "{executor}");
        let processor = wrong("NAIAD_CPU", "avx1024");
        assert!(processor.contains("`NAIAD_CPU` is `avx1024`"), "{processor}");
        assert_eq!(listed(&["a"]), "`a`");
        assert_eq!(listed(&["a", "b", "c"]), "`a`, `b` or `c`");
    }
}
