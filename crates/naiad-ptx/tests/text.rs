//! The writer's text: `tests/ptx/*.tir`.
//!
//! A case is a title behind `////`, a function of Thread IR and, behind a line `// ----`, its PTX or
//! the error. Behind a `|` the title may name another target than sm_80, and the block:
//! `//// products of fp8 | sm_89 threads=32 shared=4096 regs=64`. `NAIAD_BLESS=1` rewrites the texts.
//!
//! Where there is a `ptxas` (see `common/mod.rs`), it must take every text, for its own target and for
//! those behind it; what it says of registers, spills and shared memory stands in
//! `tests/ptx/usage.txt`, so that a change shows what it costs. `cargo run -p xtask -- ptx` runs all this,
//! and fails where there is no assembler.

mod common;

use common::Assembler;
use naiad_diag::Source;
use naiad_ir::thread::{Thread, ThreadOp};
use naiad_ptx::{Kernel, Target};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

const CASE: &str = "//// ";
const BETWEEN: &str = "// ----\n";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/ptx")
}

fn blesses() -> bool {
    std::env::var_os("NAIAD_BLESS").is_some()
}

/// Held while the files are read or rewritten: tests run side by side.
static FILES: Mutex<()> = Mutex::new(());

/// The files with their texts.
fn files() -> Vec<(PathBuf, String)> {
    let entries = std::fs::read_dir(folder()).expect("tests/ptx");
    let paths = entries.flatten().map(|e| e.path());
    let mut paths: Vec<PathBuf> =
        paths.filter(|p| p.extension().is_some_and(|e| e == "tir")).collect();
    paths.sort();
    let read = |p: PathBuf| {
        let text = std::fs::read_to_string(&p).expect("a file of cases");
        (p, text)
    };
    paths.into_iter().map(read).collect()
}

/// What the title of a case asks for.
struct Options {
    target: Target,
    threads: u32,
    shared_bytes: u32,
    max_regs: Option<u32>,
}

impl Options {
    fn of(title: &str) -> Options {
        let mut options = Options {
            target: Target { capability: 80 },
            threads: 128,
            shared_bytes: 0,
            max_regs: None,
        };
        let words = title.split_once('|').map_or("", |(_, words)| words);
        for word in words.split_whitespace() {
            let number = |prefix: &str| word.strip_prefix(prefix).and_then(|n| n.parse().ok());
            if let Some(capability) = number("sm_") {
                options.target.capability = capability;
            } else if let Some(n) = number("threads=") {
                options.threads = n;
            } else if let Some(n) = number("shared=") {
                options.shared_bytes = n;
            } else if let Some(n) = number("regs=") {
                options.max_regs = Some(n);
            } else {
                panic!("{title}: `{word}` is no option");
            }
        }
        options
    }
}

fn text(title: &str, source: &str) -> Result<String, String> {
    let func = naiad_ir::text::parse::<Thread>(&Source::new("case.tir", source))
        .unwrap_or_else(|e| panic!("{title}: {e:?}"));
    naiad_ir::verify(&func).unwrap_or_else(|e| panic!("{title}: {}", e.message));
    let Options { target, threads, shared_bytes, max_regs } = Options::of(title);
    let kernel = Kernel { func: &func, threads, shared_bytes, max_regs, lines: false };
    naiad_ptx::write(&kernel, target).map_err(|e| e.to_string())
}

#[test]
fn texts_are_as_they_were() {
    let _held = FILES.lock();
    for (path, file) in files() {
        let mut cases = file.split(CASE);
        let mut blessed = cases.next().unwrap_or("").to_string();
        for case in cases {
            let input = case.split(BETWEEN).next().unwrap_or("").trim_end();
            let (title, source) = input.split_once('\n').expect("a title");
            let ptx = text(title, source).unwrap_or_else(|why| format!("// error: {why}"));
            let spaced = if blessed.is_empty() || blessed.ends_with("\n\n") { "" } else { "\n" };
            blessed += &format!("{spaced}{CASE}{input}\n{BETWEEN}{}\n", ptx.trim_end());
        }
        if blesses() {
            std::fs::write(&path, blessed).expect("the file may be written");
        } else {
            let name = path.display();
            assert!(
                blessed == file,
                "{name}: run with NAIAD_BLESS=1 and look at the difference:\n{blessed}"
            );
        }
    }
}

#[test]
fn every_op_has_a_text() {
    let _held = FILES.lock();
    let all: String = files().into_iter().map(|(_, file)| file).collect();
    for (name, _) in ThreadOp::TABLE {
        let stands = |word: &str| word == *name || word.split('.').next() == Some(name);
        let found = all.lines().any(|line| {
            let op = line.split_once(" = ").map_or(line, |(_, op)| op);
            op.split_whitespace().next().is_some_and(stands)
        });
        assert!(found, "no case has the op `{name}`");
    }
}

#[test]
fn ptxas_takes_the_texts() {
    let Some(assembler) = Assembler::find() else { return };
    let head = format!("# What ptxas {} makes of the cases here.\n", assembler.version());
    let mut usage = head.clone();
    let held = FILES.lock();
    let files = files();
    drop(held);
    for (path, file) in files {
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        usage += &format!("\n{name}\n");
        for case in file.split(CASE).skip(1) {
            let input = case.split(BETWEEN).next().unwrap_or("");
            let (title, source) = input.split_once('\n').expect("a title");
            let Ok(ptx) = text(title, source) else { continue };
            let least = Options::of(title).target.capability;
            let targets = [80, 89, 90].into_iter().filter(|&t| t >= least);
            let used = targets.map(|t| match assembler.run(&ptx, t) {
                Ok(used) => format!("sm_{t} {used}"),
                Err(why) => panic!("{name}: {title}: sm_{t}: {why}\n{ptx}"),
            });
            let used: Vec<String> = used.collect();
            let title = title.split('|').next().unwrap_or("").trim();
            usage += &format!("  {title}: {}\n", used.join("; "));
        }
    }
    let path = folder().join("usage.txt");
    if blesses() {
        std::fs::write(&path, usage).expect("the file may be written");
    } else {
        let before = std::fs::read_to_string(&path).unwrap_or_default();
        // Another version may take other registers.
        let other = !before.starts_with(&head);
        assert!(
            other || before == usage,
            "run with NAIAD_BLESS=1 and look at the difference:\n{usage}"
        );
    }
}
