//! Measures the error of the elementary functions and keeps `docs/accuracy.md` true.
//!
//! ```text
//! cargo run --release -p naiad-ir --example accuracy             print the tables
//! cargo run --release -p naiad-ir --example accuracy -- --write  and put them into the page
//! ```
//!
//! `f32`: all 2^32 inputs, against a function in `f64`. `f64`: 10^7 random inputs each, against a
//! double-double evaluation (see `oracle.rs`), so a bound there is an observation.
//!
//! The error is `|result - exact|` in units of the last place of the exact value, where a unit never
//! falls below the least subnormal. A result of NaN, infinity or a signed zero must be right as such:
//! a wrong one counts as infinite error.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line program")]

#[path = "../tests/common/mod.rs"]
mod common;

use common::{FUNCTIONS, Function};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/accuracy.md");
const BEGIN: &str = "<!-- measured: begin -->";
const END: &str = "<!-- measured: end -->";
const SAMPLES: u64 = 10_000_000;

fn main() {
    let write = std::env::args().any(|a| a == "--write");
    let mut page = String::from(
        "\n## fp32: every input\n\n\
         | function | greatest error (ulp) | at x = | bits of x | faithful |\n|---|---|---|---|---|\n",
    );
    for f in FUNCTIONS {
        let start = Instant::now();
        let worst = parallel(1 << 32, |chunk| {
            let inputs: Vec<f32> = chunk.map(|i| f32::from_bits(i as u32)).collect();
            f.worst_f32(&inputs)
        });
        let x = f32::from_bits(worst.at as u32);
        page += &row(f, worst.error, format!("{x:e}"), format!("`{:#010x}`", x.to_bits()));
        eprintln!("{} fp32: {:.4} ulp, {:.1?}", f.f.name(), worst.error, start.elapsed());
    }
    page += "\n## fp64: 10,000,000 random inputs each (sampled, not a bound)\n\n\
             | function | greatest error seen (ulp) | at x = | bits of x | faithful there |\n|---|---|---|---|---|\n";
    for f in FUNCTIONS {
        let start = Instant::now();
        let worst = parallel(SAMPLES, |chunk| {
            let inputs: Vec<f64> = chunk.map(|i| f.sample_f64(i)).collect();
            f.worst_f64(&inputs)
        });
        let x = f.sample_f64(worst.at);
        page += &row(f, worst.error, format!("{x:e}"), format!("`{:#018x}`", x.to_bits()));
        eprintln!("{} fp64: {:.4} ulp, {:.1?}", f.f.name(), worst.error, start.elapsed());
    }
    println!("{page}");
    if write && let Err(e) = rewrite(&page) {
        eprintln!("cannot write {PAGE}: {e}");
        std::process::exit(1);
    }
}

/// A result is faithful if it is one of the two numbers next to the exact value: an error below 1.
fn row(f: &Function, error: f64, x: String, bits: String) -> String {
    let faithful = if error < 1.0 { "yes" } else { "no" };
    // Up, so that the number printed is a bound.
    let error = (error * 1e4).ceil() / 1e4;
    format!("| `{}` | {error:.4} | {x} | {bits} | {faithful} |\n", f.f.name())
}

#[derive(Copy, Clone)]
struct Worst {
    error: f64,
    at: u64,
}

/// The greatest error over `0..count`, and the first index that has it, on all cores. `error` gives
/// that of a chunk, with its place in the chunk.
fn parallel(count: u64, error: impl Fn(Range<u64>) -> (f64, usize) + Sync) -> Worst {
    const CHUNK: u64 = 1 << 13;
    let next = AtomicU64::new(0);
    let work = || {
        let mut worst = Worst { error: 0.0, at: 0 };
        loop {
            let start = next.fetch_add(CHUNK, Ordering::Relaxed);
            if start >= count {
                return worst;
            }
            let (error, place) = error(start..(start + CHUNK).min(count));
            if error > worst.error {
                worst = Worst { error, at: start + place as u64 };
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let found = workers.into_iter().filter_map(|w| w.join().ok());
        // Two threads may meet the same error; the lower index wins, so that runs agree.
        found.fold(Worst { error: 0.0, at: 0 }, |a, b| {
            if b.error > a.error || (b.error == a.error && b.at < a.at) { b } else { a }
        })
    })
}

fn rewrite(tables: &str) -> std::io::Result<()> {
    let old = std::fs::read_to_string(PAGE)?;
    let missing = || std::io::Error::other("the markers are missing");
    let (head, rest) = old.split_once(BEGIN).ok_or_else(missing)?;
    let (_, tail) = rest.split_once(END).ok_or_else(missing)?;
    std::fs::write(PAGE, format!("{head}{BEGIN}\n{tables}\n{END}{tail}"))
}
