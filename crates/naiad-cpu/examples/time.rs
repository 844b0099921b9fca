//! Times a kernel's way to machine code, and the code without Python around it:
//! `time [none|avx2|avx512] FILE.tir GRID ARG...`: with the widest vectors of this machine, or these.
//!
//! The grid is `X`, `X,Y` or `X,Y,Z`. An argument is a number, or `f1048576`: memory of so many random
//! floats. Figures are the best and the median of runs that take half a second, since the machine may
//! be shared.
#![allow(clippy::print_stdout)]

use naiad_cpu::{Arg, Code, Facts, Host, Level, Options, Outcome};
use naiad_diag::Source;
use naiad_ir::Inst;
use naiad_ir::tile::Tile;
use std::hint::black_box;
use std::time::Instant;

struct Alone;

impl Host for Alone {
    unsafe fn run(&self, _: Inst, _: u64, _: usize, _: &[*mut u8]) -> bool {
        false
    }
}

fn main() {
    let mut words = std::env::args().skip(1).peekable();
    let levels = [("none", None), ("avx2", Some(Level::Avx2)), ("avx512", Some(Level::Avx512))];
    let named = words.peek().and_then(|w| levels.iter().find(|(name, _)| name == w));
    let level = named.map_or_else(Level::host, |(_, level)| {
        words.next();
        *level
    });
    let path = words.next().expect("a file of Tile IR");
    let text = std::fs::read_to_string(&path).expect("the file can be read");
    let grid: Vec<u32> =
        words.next().expect("a grid").split(',').map(|n| n.parse().expect("a number")).collect();
    let grid = std::array::from_fn(|i| grid.get(i).copied().unwrap_or(1));
    let mut memory: Vec<Vec<f32>> = Vec::new();
    let args: Vec<Arg> = words
        .map(|word| match word.strip_prefix('f') {
            None => Arg::Scalar(word.parse::<i64>().expect("a number or memory") as u64),
            Some(n) => {
                let mut floats = floats(n.parse().expect("a number of floats"));
                let storage = floats.as_mut_ptr_range();
                memory.push(floats);
                // A line of cache begins with the first.
                let start = (storage.start as usize).next_multiple_of(64);
                let storage = start..storage.end as usize;
                Arg::Tensor { address: start, storage, writable: true }
            }
        })
        .collect();

    let func = naiad_ir::text::parse::<Tile>(&Source::new(path, text)).expect("Tile IR");
    let mut optimized = func.clone();
    report("optimize", || {
        optimized = func.clone();
        naiad_cpu::optimize(&mut optimized);
        naiad_cpu::peel(&mut optimized);
    });
    let facts = Facts::of(&args, &naiad_cpu::written(&optimized));
    let vector = Level::vector_bytes(level);
    let distribute = || naiad_cpu::dist::distribute(&optimized, &facts, vector).expect("loops");
    report("distribute", || drop(black_box(distribute())));
    let (loops, table) = (distribute().func, naiad_cpu::runtime::table::table());
    let options = naiad_cpu::clif::Options { wide: level, past_cache: None, far: None };
    let write = || naiad_cpu::clif::write_with(options, &loops, table).expect("machine code");
    report("write", || drop(black_box(write())));
    println!(
        "{} ops of Thread IR, {} bytes of code",
        loops.to_string().lines().count(),
        write().code_bytes()
    );

    let code = Code::with(level, &optimized, &facts).unwrap_or_else(|e| panic!("{e:?}"));
    for threads in [1, 2] {
        let options = Options { threads, interrupt: None, flag: None };
        // SAFETY: the facts are those of the arguments, whose memory lives until the end.
        let launch = || unsafe { code.launch(grid, &args, &Alone, &options) };
        report(&format!("run, {threads} threads"), || assert_eq!(launch(), Outcome::Ended));
    }
}

/// So many floats, and what aligns them.
fn floats(n: usize) -> Vec<f32> {
    let mut state = 1u32;
    let next = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..n + 16).map(next).collect()
}

fn report(what: &str, mut f: impl FnMut()) {
    let mut times = Vec::new();
    let start = Instant::now();
    while times.len() < 3 || start.elapsed().as_secs_f64() < 0.5 {
        let once = Instant::now();
        f();
        times.push(once.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    println!("{what:<16} best {:>8.3} ms, median {:>8.3}", times[0], times[times.len() / 2]);
}
