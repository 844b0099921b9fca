//! Checks of the repository itself.
//!
//! `cargo run -p xtask -- tidy`   what a reader counts on: dependency edges, file sizes, forbidden
//!                                calls, and that ARCHITECTURE.md's table is the truth
//! `cargo run -p xtask -- ptx [bless]`
//!                                golden PTX and what ptxas makes of it; `bless` writes both anew
//! `cargo run -p xtask -- conformance PATH [ARGUMENTS]`
//!                                Triton's own tests, of the checkout at PATH; writes
//!                                docs/conformance.md (see tools/conformance.py)

mod tidy;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.split_first() {
        Some((command, [])) if command == "tidy" => tidy::run(&root()),
        Some((command, [])) if command == "ptx" => ptx(false),
        Some((command, [option])) if command == "ptx" && option == "bless" => ptx(true),
        Some((command, rest)) if command == "conformance" && !rest.is_empty() => conformance(rest),
        _ => {
            eprintln!(
                "usage: cargo run -p xtask -- tidy | ptx [bless] | conformance PATH [ARGUMENTS]"
            );
            ExitCode::from(2)
        }
    }
}

/// The tests of `naiad-ptx` and `naiad-gpu`, which without an assembler would skip what needs it.
fn ptx(bless: bool) -> ExitCode {
    let Some(assembler) = assembler() else {
        eprintln!("error: there is no ptxas");
        eprintln!("  = help: `make ptxas` installs it into .venv; NAIAD_PTXAS may name another");
        return ExitCode::from(2);
    };
    let mut tests = Command::new(env!("CARGO"));
    tests
        .args(["test", "-p", "naiad-ptx", "-p", "naiad-gpu"])
        .current_dir(root())
        .env("NAIAD_PTXAS", assembler);
    if bless {
        tests.env("NAIAD_BLESS", "1");
    }
    match tests.status() {
        Ok(status) => ExitCode::from(u8::from(!status.success())),
        Err(e) => {
            eprintln!("error: cargo cannot be started: {e}");
            ExitCode::from(2)
        }
    }
}

/// `ptxas` as Python's package installs it.
fn assembler() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("NAIAD_PTXAS") {
        return Some(path.into());
    }
    let inside = |folder: PathBuf| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = entries.map(|e| e.path()).collect();
        paths.sort();
        paths
    };
    let pythons = inside(root().join(".venv/lib"));
    let toolkits = pythons.iter().flat_map(|p| inside(p.join("site-packages/nvidia")));
    toolkits.map(|t| t.join("bin/ptxas")).find(|p| p.exists())
}

/// Hands over to Python, where the tests run.
fn conformance(arguments: &[String]) -> ExitCode {
    let root = root();
    let python = std::env::var_os("NAIAD_PYTHON").map_or(root.join(".venv/bin/python"), Into::into);
    let status = Command::new(&python)
        .arg(root.join("tools/conformance.py"))
        .args(arguments)
        .arg("--report")
        .arg(root.join("docs/conformance.md"))
        .status();
    match status {
        Ok(status) => ExitCode::from(u8::from(!status.success())),
        Err(e) => {
            eprintln!("error: `{}` cannot be started: {e}", python.display());
            eprintln!("  = help: name a Python that has torch and pytest in NAIAD_PYTHON");
            ExitCode::from(2)
        }
    }
}

/// The repository, whose folder `xtask` this program was built in.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}
