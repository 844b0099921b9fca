//! Times the library kernels: `cargo run --release -p naiad-cpu --example kernels [part]...`.
//!
//! Figures are the best of many runs, for the machine may be shared.
#![allow(clippy::print_stdout)]

use naiad_cpu::runtime::pool;
use std::time::Instant;

const THREADS: usize = 2;

fn main() {
    let parts: Vec<String> = std::env::args().skip(1).collect();
    let wanted = |name: &str| parts.is_empty() || parts.iter().any(|p| p == name);
    if wanted("pool") {
        launches();
    }
}

/// The least time of a call, in seconds.
fn best(runs: usize, mut f: impl FnMut()) -> f64 {
    let once = |f: &mut dyn FnMut()| {
        let start = Instant::now();
        f();
        start.elapsed().as_secs_f64()
    };
    (0..runs).map(|_| once(&mut f)).fold(f64::INFINITY, f64::min)
}

fn launches() {
    let job = |_: std::ops::Range<u64>, _: usize| true;
    let mut times: Vec<f64> =
        (0..20_000).map(|_| best(1, || assert!(pool::run(THREADS, 64, 1, &job)))).collect();
    times.sort_by(f64::total_cmp);
    println!(
        "launch of an empty job, workers awake: median {:.2} µs, 99th percentile {:.2}",
        times[10_000] * 1e6,
        times[19_800] * 1e6
    );
    let mut times: Vec<f64> = (0..200)
        .map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(1));
            best(1, || assert!(pool::run(THREADS, 64, 1, &job)))
        })
        .collect();
    times.sort_by(f64::total_cmp);
    println!("the same, workers asleep: median {:.2} µs", times[100] * 1e6);
    // Both must take part: each waits for the other.
    let both = || {
        let met = std::sync::atomic::AtomicU32::new(0);
        pool::run(THREADS, 2, 1, &|_, _| {
            met.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            while met.load(std::sync::atomic::Ordering::SeqCst) < 2 {
                std::hint::spin_loop();
            }
            true
        });
    };
    for (sleep, name) in [(0, "awake"), (1, "asleep")] {
        let mut times: Vec<f64> = (0..500)
            .map(|_| {
                if sleep > 0 {
                    std::thread::sleep(std::time::Duration::from_millis(sleep));
                }
                best(1, both)
            })
            .collect();
        times.sort_by(f64::total_cmp);
        println!("two threads meet, worker {name}: median {:.2} µs", times[250] * 1e6);
    }
    let spins = best(100, || (0..1000).for_each(|_| std::hint::spin_loop()));
    println!("1000 pauses: {:.2} µs", spins * 1e6);
}
