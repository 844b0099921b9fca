//! Times the library kernels: `cargo run --release -p naiad-cpu --example kernels [part]...`, where a part
//! is `pool`, `tiles`, `matmul`, `copy`, `convert` or `rows`. Figures are the best of many runs, for the
//! machine may be shared; ratios are medians of runs that take turns.
//!
//! With `serve` it answers lines `matmul TYPE SIZE M N K` with the seconds of one run, so that
//! `bench/kernels.py` can take turns with torch.
#![allow(clippy::print_stdout)]

use naiad_cpu::runtime::pool;
use naiad_ir::Scalar;
use naiad_kernels::convert;
use naiad_kernels::copy::{NEXT_0, STREAM, copy2d};
use naiad_kernels::dot::{NEXT_K, dot};
use naiad_kernels::rows::topk;
use std::collections::HashMap;
use std::io::BufRead;
use std::ops::Range;
use std::time::{Duration, Instant};

const THREADS: usize = 2;

fn main() {
    let parts: Vec<String> = std::env::args().skip(1).collect();
    if parts.iter().any(|p| p == "serve") {
        return serve();
    }
    let wanted = |name: &str| parts.is_empty() || parts.iter().any(|p| p == name);
    for (name, run) in [
        ("pool", launches as fn()),
        ("tiles", tiles),
        ("matmul", matmuls),
        ("copy", copies),
        ("convert", conversions),
        ("rows", rows),
    ] {
        if wanted(name) {
            run();
        }
    }
}

/// The time of a call, in seconds.
fn time(f: impl FnOnce()) -> f64 {
    let start = Instant::now();
    f();
    start.elapsed().as_secs_f64()
}

/// The least time of a call, in seconds.
fn best(runs: usize, mut f: impl FnMut()) -> f64 {
    (0..runs).map(|_| time(&mut f)).fold(f64::INFINITY, f64::min)
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

fn launches() {
    let empty = || assert!(pool::run(THREADS, 64, 1, &|_, _| true));
    // Both must take part: each waits for the other.
    let meeting = || {
        let met = std::sync::atomic::AtomicU32::new(0);
        pool::run(THREADS, 2, 1, &|_, _| {
            met.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            while met.load(std::sync::atomic::Ordering::SeqCst) < 2 {
                std::hint::spin_loop();
            }
            true
        });
    };
    for (name, launch) in [("empty job", &empty as &dyn Fn()), ("two threads that meet", &meeting)]
    {
        for (workers, pause) in [("awake", 0), ("asleep", 1)] {
            let times = (0..300).map(|_| {
                std::thread::sleep(Duration::from_millis(pause));
                if pause == 0 {
                    launch();
                }
                time(launch)
            });
            println!("pool: {name}, workers {workers}: {:.2} µs", median(times.collect()) * 1e6);
        }
    }
}

/// A matrix that begins at a multiple of 64, as tensors of torch do.
struct Matrix {
    bytes: Vec<u8>,
    start: usize,
    ty: Scalar,
    /// Elements from row to row and from column to column.
    steps: [usize; 2],
}

impl Matrix {
    fn new(ty: Scalar, rows: usize, columns: usize) -> Matrix {
        let number = |i: usize| ((i * 7919) % 1000) as f64 / 500.0 - 1.0;
        let image = |i: usize| {
            let rounding = naiad_ir::scalar::Rounding::Nearest;
            naiad_ir::scalar::cast_bits(Scalar::F64, ty, rounding, number(i).to_bits())
        };
        let some: Vec<u8> =
            (0..1000).flat_map(|i| image(i).to_ne_bytes()[..ty.size()].to_vec()).collect();
        let len = rows * columns * ty.size();
        let mut bytes: Vec<u8> = Vec::with_capacity(len + 64);
        let start = bytes.as_ptr().align_offset(64);
        bytes.resize(start, 0);
        bytes.extend(some.iter().copied().cycle().take(len));
        Matrix { bytes, start, ty, steps: [columns, 1] }
    }

    /// Bytes from row to row and from column to column.
    fn strides(&self) -> [i64; 2] {
        self.steps.map(|step| (step * self.ty.size()) as i64)
    }

    /// The same shape, but contiguous along columns.
    fn transposed(ty: Scalar, rows: usize, columns: usize) -> Matrix {
        Matrix { steps: [1, rows], ..Matrix::new(ty, columns, rows) }
    }

    fn at(&self, i: usize, j: usize) -> *const u8 {
        let [row, column] = self.strides();
        self.bytes.as_ptr().wrapping_add(self.start + i * row as usize + j * column as usize)
    }
}

/// Adds a product of tiles to a tile of sums with `n` columns.
fn multiply(
    a: &Matrix,
    at: [usize; 2],
    b: &Matrix,
    from: [usize; 2],
    c: *mut u8,
    tile: [usize; 3],
    hints: i64,
) {
    let [m, n, k] = tile.map(|x| x as i64);
    let ([a0, a1], [b0, b1]) = (a.strides(), b.strides());
    let (size, c_type) = match a.ty {
        Scalar::F64 => (8, Scalar::F64),
        ty if ty.is_int() => (4, Scalar::I32),
        _ => (4, Scalar::F32),
    };
    let (pa, pb) = (a.at(at[0], at[1]), b.at(from[0], from[1]));
    let types = [a.ty as i64, b.ty as i64, c_type as i64 | hints];
    // SAFETY: the matrices have the tiles.
    unsafe { dot(pa, a0, a1, pb, b0, b1, c, n * size, m, n, k, types[0], types[1], types[2]) }
}

/// Tiles in the nearest cache, again and again.
fn tiles() {
    for ty in [
        Scalar::F32,
        Scalar::BF16,
        Scalar::F16,
        Scalar::F8E5,
        Scalar::F8E4NV,
        Scalar::I8,
        Scalar::F64,
    ] {
        for [m, n, k] in
            [[64, 64, 32], [128, 64, 64], [128, 128, 64], [16, 16, 16], [64, 128, 32], [1, 64, 64]]
        {
            let a = [Matrix::new(ty, m, k), Matrix::transposed(ty, m, k)];
            let b = [Matrix::new(ty, k, n), Matrix::transposed(ty, k, n)];
            let mut c = vec![0u64; m * n];
            let repeats = (20_000_000 / (m * n * k)).max(1);
            let ways = [("A B", &a[0], &b[0]), ("A Bt", &a[0], &b[1]), ("At B", &a[1], &b[0])];
            for (name, a, b) in ways {
                let c = c.as_mut_ptr().cast();
                let tile = || multiply(a, [0, 0], b, [0, 0], c, [m, n, k], 0);
                let seconds = best(7, || (0..repeats).for_each(|_| tile())) / repeats as f64;
                let flops = 2.0 * (m * n * k) as f64 / seconds / 1e9;
                let time = seconds * 1e9;
                println!("tile: {ty} {name} {m}x{n}x{k}: {flops:.1} GFLOP/s, {time:.0} ns");
            }
        }
    }
}

/// A product as programs compute it: one program a tile, a loop along `k`, sums in a scratch tile that
/// starts as zeros and is stored at the end.
struct Programs {
    a: Matrix,
    b: Matrix,
    c: Vec<u8>,
    size: usize,
}

impl Programs {
    fn new(ty: Scalar, size: usize) -> Programs {
        let (a, b) = (Matrix::new(ty, size, size), Matrix::new(ty, size, size));
        Programs { a, b, c: vec![0; size * size * 8], size }
    }

    fn run(&mut self, [m, n, k]: [usize; 3], hints: i64) {
        let columns = self.size / n;
        let sum = if self.a.ty == Scalar::F64 { 8 } else { 4 };
        let c = self.c.as_mut_ptr() as usize;
        let job = |programs: Range<u64>, _: usize| {
            let mut scratch = vec![0u8; m * n * sum + 64];
            let start = scratch.as_ptr().align_offset(64);
            let sums = &mut scratch[start..start + m * n * sum];
            for p in programs {
                let (i, j) = (p as usize / columns * m, p as usize % columns * n);
                sums.fill(0);
                for s in (0..self.size).step_by(k) {
                    multiply(&self.a, [i, s], &self.b, [s, j], sums.as_mut_ptr(), [m, n, k], hints);
                }
                let row = self.size * sum;
                let to = (c as *mut u8).wrapping_add(i * row + j * sum);
                let (row, tile_row) = (row as i64, (n * sum) as i64);
                let [m, n, size] = [m, n, sum].map(|x| x as i64);
                // SAFETY: the product has the tile, and no other program writes it.
                unsafe { copy2d(to, row, size, sums.as_ptr(), tile_row, size, m, n, size, 0) };
            }
            true
        };
        pool::run(THREADS, (self.size / m * columns) as u64, 1, &job);
    }
}

fn matmuls() {
    for ty in [Scalar::F32, Scalar::BF16, Scalar::F16, Scalar::I8, Scalar::F64] {
        for size in [512, 1024, 2048] {
            let mut programs = Programs::new(ty, size);
            for tile in [[64, 64, 32], [128, 64, 64]] {
                for hints in [0, NEXT_K] {
                    let seconds =
                        best(if size > 1024 { 5 } else { 15 }, || programs.run(tile, hints));
                    let flops = 2.0 * (size as f64).powi(3) / seconds / 1e9;
                    println!(
                        "matmul: {ty} {size} {tile:?} hints {hints}: {:.3} ms, {flops:.0} GFLOP/s",
                        seconds * 1e3
                    );
                }
            }
        }
    }
}

/// Whole transposes by tiles and copies by rows, each beside a copy of the same bytes by rows.
fn copies() {
    for (rows, columns) in [(1024usize, 1024usize), (8192, 4096)] {
        for ty in [Scalar::F32, Scalar::F16, Scalar::F64] {
            let (src, dst) = (Matrix::new(ty, rows, columns), Matrix::new(ty, columns, rows));
            let size = ty.size() as i64;
            let to = dst.at(0, 0) as usize;
            let (row, to_row) = (columns as i64 * size, rows as i64 * size);
            let plain = |hints: i64| {
                let job = |r: Range<u64>, _: usize| {
                    let (at, n) = (r.start as i64 * row, (r.end - r.start) as i64);
                    let to = (to as *mut u8).wrapping_add(at as usize);
                    // SAFETY: both have as many bytes.
                    unsafe {
                        copy2d(
                            to,
                            row,
                            size,
                            src.at(0, 0).wrapping_add(at as usize),
                            row,
                            size,
                            n,
                            columns as i64,
                            size,
                            hints,
                        )
                    };
                    true
                };
                time(|| assert!(pool::run(THREADS, rows as u64, 1, &job)))
            };
            let transposed = |tile: usize, hints: i64| {
                let across = columns / tile;
                let job = |programs: Range<u64>, _: usize| {
                    for p in programs {
                        let (i, j) = (p as usize / across * tile, p as usize % across * tile);
                        let to =
                            (to as *mut u8).wrapping_add(j * to_row as usize + i * size as usize);
                        let n = tile as i64;
                        // SAFETY: source and destination have the tile.
                        unsafe {
                            copy2d(to, to_row, size, src.at(i, j), size, row, n, n, size, hints)
                        };
                    }
                    true
                };
                time(|| assert!(pool::run(THREADS, (rows / tile * across) as u64, 1, &job)))
            };
            let runs = if rows > 1024 { 9 } else { 101 };
            for tile in [32, 64] {
                for (name, hints) in [
                    ("", 0),
                    (", streamed", STREAM),
                    (", streamed with the next asked for", STREAM | NEXT_0),
                ] {
                    let mut ratios = Vec::new();
                    let mut least = f64::INFINITY;
                    for _ in 0..runs {
                        let t = transposed(tile, hints);
                        let copy = plain(0).min(plain(STREAM));
                        least = least.min(t);
                        ratios.push(t / copy);
                    }
                    println!(
                        "copy: transpose {rows}x{columns} of {ty}, tile {tile}{name}: {:.3} ms, {:.2} copies",
                        least * 1e3,
                        median(ratios)
                    );
                }
            }
            let copy = best(runs, || _ = plain(0)).min(best(runs, || _ = plain(STREAM)));
            println!("copy: {rows}x{columns} of {ty} by rows: {:.3} ms", copy * 1e3);
        }
    }
}

/// Rows of tiles in the nearest cache, to fp32 and back.
fn conversions() {
    for ty in [Scalar::F16, Scalar::BF16, Scalar::F8E5, Scalar::F8E4NV, Scalar::F8E4B8] {
        for (rows, n) in [(64usize, 64usize), (1, 4096), (64, 16)] {
            let (narrow, wide) = (Matrix::new(ty, rows, n), Matrix::new(Scalar::F32, rows, n));
            let (small, large) = (narrow.at(0, 0).cast_mut(), wide.at(0, 0).cast_mut());
            let (rows, columns, row) = (rows as i64, n as i64, (n * ty.size()) as i64);
            // SAFETY: the matrices have as many elements, and nobody else reads them.
            let widened = || unsafe {
                convert::widen(large, 4 * columns, small, row, rows, columns, ty as i64)
            };
            // SAFETY: as above.
            let narrowed = || unsafe {
                convert::narrow(small, row, large, 4 * columns, rows, columns, ty as i64)
            };
            for (name, f) in [("to fp32", &widened as &dyn Fn()), ("from fp32", &narrowed)] {
                let seconds = best(7, || (0..1000).for_each(|_| f())) / 1000.0;
                let each = seconds / (rows * columns) as f64;
                println!(
                    "convert: {ty} {name}, {rows} rows of {n}: {:.3} ns an element",
                    each * 1e9
                );
            }
        }
    }
}

fn rows() {
    for ty in [Scalar::F32, Scalar::I64, Scalar::F16, Scalar::I8] {
        for n in [16usize, 128, 1024, 16384] {
            let count = (1 << 18) / n;
            let mut numbers = 88172645463325252u64;
            let bytes = (0..count * n * ty.size()).map(|_| {
                numbers ^= numbers << 13;
                numbers ^= numbers >> 7;
                numbers ^= numbers << 17;
                (numbers >> 32) as u8
            });
            let src: Vec<u8> = bytes.collect();
            let mut dst = src.clone();
            for k in [n, 8] {
                // SAFETY: the vectors hold the rows.
                let sorted = || unsafe {
                    let [rows, n, k] = [count, n, k].map(|x| x as i64);
                    topk(dst.as_mut_ptr(), src.as_ptr(), rows, n, k, ty as i64, 1)
                };
                let each = best(5, sorted) / (count * n) as f64;
                println!("rows: the first {k} of {n} sorted {ty}: {:.2} ns an element", each * 1e9);
            }
        }
    }
}

/// Answers lines on standard input.
fn serve() {
    let mut all: HashMap<(String, usize), Programs> = HashMap::new();
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let ["matmul", ty, rest @ ..] = words.as_slice() else { continue };
        let numbers: Vec<usize> = rest.iter().filter_map(|w| w.parse().ok()).collect();
        let (Some(scalar), &[size, m, n, k]) = (Scalar::from_name(ty), numbers.as_slice()) else {
            continue;
        };
        let programs =
            all.entry((ty.to_string(), size)).or_insert_with(|| Programs::new(scalar, size));
        println!("{}", time(|| programs.run([m, n, k], NEXT_K)));
    }
}
