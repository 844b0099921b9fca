//! Measures the error of the elementary functions and keeps `docs/accuracy.md` true.
//!
//! ```text
//! cargo run --release -p naiad-ir --example accuracy             print the tables
//! cargo run --release -p naiad-ir --example accuracy -- --write  and put them into the page
//!                                                       --more   only the functions of libdevice
//!                                               --vectors FILE   more exact values, of `vectors.py`
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

use common::more::{self, PAIRS, VECTOR_BOUNDS, vectors};
use common::{FUNCTIONS, Function};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/accuracy.md");
const BEGIN: &str = "<!-- measured: begin -->";
const END: &str = "<!-- measured: end -->";
const SAMPLES: u64 = 10_000_000;

const MORE_BEGIN: &str = "<!-- measured, libdevice: begin -->";
const MORE_END: &str = "<!-- measured, libdevice: end -->";
/// Every so manieth fp32 for these; coprime to 2^32, so that all exponents and ends occur.
const STRIDE: u64 = 67;
const PAIR_SAMPLES: u64 = 10_000_000;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let write = args.iter().any(|a| a == "--write");
    let file = args.iter().position(|a| a == "--vectors").and_then(|i| args.get(i + 1));
    let more = match libdevice(file.map(String::as_str)) {
        Ok(page) => page,
        Err(e) => {
            eprintln!("cannot read the vectors: {e}");
            std::process::exit(1);
        }
    };
    println!("{more}");
    if write && let Err(e) = rewrite(&more, MORE_BEGIN, MORE_END) {
        eprintln!("cannot write {PAGE}: {e}");
        std::process::exit(1);
    }
    if args.iter().any(|a| a == "--more") {
        return;
    }
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
    if write && let Err(e) = rewrite(&page, BEGIN, END) {
        eprintln!("cannot write {PAGE}: {e}");
        std::process::exit(1);
    }
}

/// The tables of the functions beyond `tl.math`.
fn libdevice(file: Option<&str>) -> std::io::Result<String> {
    let count = (1u64 << 32) / STRIDE;
    let mut page = format!(
        "\n### fp32: every {STRIDE}th input, {count} of them\n\n\
         | function | greatest error seen (ulp) | at x = | bits of x | faithful there |\n|---|---|---|---|---|\n"
    );
    for f in more::FUNCTIONS {
        let start = Instant::now();
        let worst = parallel(count, |chunk| {
            let inputs: Vec<f32> = chunk.map(|i| f32::from_bits((i * STRIDE) as u32)).collect();
            f.worst_f32(&inputs)
        });
        let x = f32::from_bits((worst.at * STRIDE) as u32);
        page += &row(f, worst.error, format!("{x:e}"), format!("`{:#010x}`", x.to_bits()));
        eprintln!("{} fp32: {:.4} ulp, {:.1?}", f.f.name(), worst.error, start.elapsed());
    }
    page += &format!(
        "\n### fp32, two arguments: {PAIR_SAMPLES} pairs, half of them of any bits\n\n\
         | function | greatest error seen (ulp) | at (x, y) = |\n|---|---|---|\n"
    );
    for &(f, exact, _) in PAIRS {
        let worst = parallel(PAIR_SAMPLES, |chunk| {
            let errors = chunk.map(|i| more::pair_error(f, exact, i)).enumerate();
            errors.fold((0.0, 0), |a, (i, e)| if e > a.0 { (e, i) } else { a })
        });
        let (x, y) = more::pair(worst.at);
        page += &format!("| `{f}` | {:.4} | {x:e}, {y:e} |\n", up(worst.error));
        eprintln!("{f} fp32: {:.4} ulp", worst.error);
    }
    let text = match file {
        Some(path) => std::fs::read_to_string(path)?,
        None => include_str!("../tests/vectors.txt").to_string(),
    };
    page += "\n### fp64: random inputs against exact values (sampled, not a bound)\n\n\
             | function | inputs | greatest error seen (ulp) | at |\n|---|---|---|---|\n";
    for (name, _) in VECTOR_BOUNDS {
        let (mut count, mut worst, mut at) = (0, 0.0, String::new());
        for vector in vectors(&text).filter(|v| v.name == *name) {
            count += 1;
            let error = vector.error();
            if error > worst {
                let arguments: Vec<String> =
                    vector.arguments.iter().map(|x| format!("{x:e}")).collect();
                (worst, at) = (error, arguments.join(", "));
            }
        }
        page += &format!("| `{name}` | {count} | {:.4} | {at} |\n", up(worst));
    }
    Ok(page)
}

/// Rounded up to four places, so that the number printed is a bound.
fn up(error: f64) -> f64 {
    (error * 1e4).ceil() / 1e4
}

/// A result is faithful if it is one of the two numbers next to the exact value: an error below 1.
fn row(f: &Function, error: f64, x: String, bits: String) -> String {
    let faithful = if error < 1.0 { "yes" } else { "no" };
    let error = up(error);
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

fn rewrite(tables: &str, begin: &str, end: &str) -> std::io::Result<()> {
    let old = std::fs::read_to_string(PAGE)?;
    let missing = || std::io::Error::other("the markers are missing");
    let (head, rest) = old.split_once(begin).ok_or_else(missing)?;
    let (_, tail) = rest.split_once(end).ok_or_else(missing)?;
    std::fs::write(PAGE, format!("{head}{begin}\n{tables}\n{end}{tail}"))
}
