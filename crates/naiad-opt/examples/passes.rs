//! Optimizes kernels given as text, and times it:
//! `cargo run --release -p naiad-opt --example passes -- [--print] FILE.tir...`
//!
//! `naiad compile FILE::KERNEL --signature ... --emit tile` makes such text.

use naiad_diag::Source;
use naiad_ir::tile::Tile;
use naiad_ir::{Function, OpInfo};
use naiad_opt::axis::AxisInfo;
use naiad_opt::ranges::{Inputs, Ranges};
use std::hint::black_box;
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
        let inputs = Inputs::default();
        let ranges = Ranges::new(&func, &inputs);
        println!("{file}: {} ops -> {}", ops(&func), ops(&after));
        let times: [(&str, Duration); 8] = [
            ("optimize", best(&func, naiad_opt::optimize)),
            ("canonicalize", best(&func, naiad_opt::canonicalize)),
            ("split_carried", best(&func, |f| _ = naiad_opt::split_carried(f))),
            ("licm", best(&func, naiad_opt::licm)),
            ("dce", best(&func, naiad_opt::dce)),
            ("ranges", best(&func, |f| _ = black_box(Ranges::new(f, &inputs)))),
            ("axes", best(&func, |f| _ = black_box(AxisInfo::new(f, &inputs, &ranges)))),
            ("verify", best(&func, |f| _ = black_box(naiad_ir::verify(f)))),
        ];
        let shown = times.map(|(name, time)| format!("{name} {:.1}", time.as_nanos() as f64 / 1e3));
        println!("  us: {}", shown.join(", "));
    }
}
