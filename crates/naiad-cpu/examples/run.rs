//! Times machine code alone: `run FILE.tir GRID THREADS ARG...`, where an argument is `f32:COUNT` (a
//! buffer), or a number.

use naiad_cpu::{Arg, Code, Facts, Host, Options};
use naiad_diag::Source;
use naiad_ir::Inst;
use naiad_ir::tile::Tile;
use std::time::Instant;

struct Nothing;

impl Host for Nothing {
    unsafe fn run(&self, _: Inst, _: u64, _: usize, _: &[*mut u8]) -> bool {
        true
    }
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let text = std::fs::read_to_string(&args[0]).expect("the file can be read");
    let source = Source::new(args[0].as_str(), text);
    let mut func = naiad_ir::text::parse::<Tile>(&source).expect("the file holds Tile IR");
    let grid: Vec<u32> = args[1].split('x').map(|n| n.parse().expect("a grid")).collect();
    let threads = args[2].parse().expect("a number of threads");
    let start = Instant::now();
    naiad_opt::optimize(&mut func);
    let optimized = start.elapsed();
    let code = Code::new(&func, &Facts::default()).expect("machine code");
    let compiled = start.elapsed();
    println!("passes {optimized:?}, code {:?}, {} bytes", compiled - optimized, code.code_bytes());
    let mut buffers: Vec<Vec<f32>> = Vec::new();
    let mut given = Vec::new();
    for arg in &args[3..] {
        if let Some(count) = arg.strip_prefix("f32:") {
            let count: usize = count.parse().expect("a number of elements");
            let mut data: Vec<f32> =
                (0..count).map(|i| (i * 7 % 1013) as f32 / 300.0 - 1.5).collect();
            let range = data.as_mut_ptr_range();
            let storage = range.start as usize..range.end as usize;
            given.push(Arg::Tensor { address: storage.start, storage, writable: true });
            buffers.push(data);
        } else {
            given.push(Arg::Scalar(arg.parse::<i64>().expect("a number") as u64));
        }
    }
    let grid = [0, 1, 2].map(|d| grid.get(d).copied().unwrap_or(1));
    let mut times = Vec::new();
    for _ in 0..50 {
        let start = Instant::now();
        // SAFETY: the storage of each argument is its buffer's, which lives on.
        let outcome = unsafe {
            code.launch(grid, &given, &Nothing, &Options { threads, interrupt: None, flag: None })
        };
        times.push(start.elapsed());
        assert_eq!(outcome, naiad_cpu::Outcome::Ended);
    }
    times.sort();
    println!("least {:?}, median {:?}", times[0], times[times.len() / 2]);
}
