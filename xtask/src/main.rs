//! Checks of the repository itself.
//!
//! `cargo run -p xtask -- tidy`   what a reader counts on: dependency edges, file sizes, forbidden
//!                                calls, and that ARCHITECTURE.md's table is the truth

mod tidy;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    let command = std::env::args().nth(1);
    match command.as_deref() {
        Some("tidy") => tidy::run(&root()),
        _ => {
            eprintln!("usage: cargo run -p xtask -- tidy");
            ExitCode::from(2)
        }
    }
}

/// The repository, whose folder `xtask` this program was built in.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}
