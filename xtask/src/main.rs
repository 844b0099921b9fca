//! Checks of the repository itself.
//!
//! `cargo run -p xtask -- tidy`   what a reader counts on: dependency edges, file sizes, forbidden
//!                                calls, and that ARCHITECTURE.md's table is the truth
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
        Some((command, rest)) if command == "conformance" && !rest.is_empty() => conformance(rest),
        _ => {
            eprintln!("usage: cargo run -p xtask -- tidy | conformance PATH [ARGUMENTS]");
            ExitCode::from(2)
        }
    }
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
