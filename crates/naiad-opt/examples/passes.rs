//! Optimizes kernels given as text, and times it:
//! `cargo run --release -p naiad-opt --example passes -- [--print] FILE.tir...`
//!
//! `naiad compile FILE::KERNEL --signature ... --emit tile` makes such text.

use naiad_diag::Source;
use naiad_ir::tile::Tile;
use naiad_ir::{Function, OpInfo};
use std::time::{Duration, Instant};

fn ops(func: &Function<Tile>) -> usize {
    let mut n = 0;
    func.walk(&mut |inst| n += usize::from(!func.op(inst).is_terminator()));
    n
}

/// The best of many runs, each on a copy of its own.
fn best(func: &Function<Tile>, run: impl Fn(&mut Function<Tile>)) -> Duration {
    let once = || {
        let mut copy = func.clone();
        let start = Instant::now();
        run(&mut copy);
        start.elapsed()
    };
    (0..200).map(|_| once()).min().unwrap_or_default()
}

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for the terminal")]
fn main() {
    let (flags, files): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|a| a.starts_with("--"));
    for file in files {
        let text = match std::fs::read_to_string(&file) {
            Ok(text) => text,
            Err(e) => {
                eprintln!("{file}: {e}");
                continue;
            }
        };
        let func = match naiad_ir::text::parse::<Tile>(&Source::new(file.as_str(), text)) {
            Ok(func) => func,
            Err(d) => {
                eprintln!("{file}: {}", d.message);
                continue;
            }
        };
        let mut after = func.clone();
        naiad_opt::optimize(&mut after);
        if flags.iter().any(|f| f == "--print") {
            println!("{after}");
        }
        println!(
            "{file}: {} ops -> {}; optimize {:?}, canonicalize {:?}, split {:?}, licm {:?}, dce {:?}",
            ops(&func),
            ops(&after),
            best(&func, naiad_opt::optimize),
            best(&func, naiad_opt::canonicalize),
            best(&func, |f| _ = naiad_opt::split_carried(f)),
            best(&func, naiad_opt::licm),
            best(&func, naiad_opt::dce),
        );
    }
}
