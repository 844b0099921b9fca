//! Random kernels: their code for a GPU, run in lockstep, leaves in memory the bits that the reference
//! executor does.
//!
//! Each kernel is compiled for one chip, number of warps and number of stages, which its seed chooses, and
//! run with its blocks in order and in another one. Kernels that fail by themselves say nothing, since
//! code for a GPU is not guarded. See `drive.rs` for the variables that make a run longer.

#[path = "../../naiad-interp/tests/common/mod.rs"]
mod common;
#[path = "../../naiad-cpu/tests/common/drive.rs"]
mod drive;
#[path = "../../naiad-interp/tests/common/generator.rs"]
mod generator;
#[path = "../../naiad-cpu/tests/common/gen.rs"]
mod kernels;
#[path = "common/lockstep.rs"]
mod lockstep;

use common::*;
use drive::{Fate, drive};
use generator::{INPUT, Kind, Random, generate, images};
use kernels::Kernel;
use lockstep::{Machine, Refused, bytes_of, contents, patience};
use naiad_interp::{Arg, LaunchOptions, TensorArg};
use naiad_ir::Function;
use naiad_ir::tile::{Tile, TileOp};

/// Not a multiple of the programs that share a block.
const PROGRAMS: usize = 3;

/// What memory holds before a launch.
const FRESH: u64 = 0x5555_5555_5555_5555;

#[test]
fn same_bits() {
    hold_bits(60, Kind::Exact, |_| true);
}

/// Nobody can tell by its results which executor ran a kernel that is free of order.
#[test]
fn same_bits_in_any_order() {
    hold_bits(40, Kind::All, naiad_opt::is_order_free);
}

fn hold_bits(rounds: u64, kind: Kind, chosen: fn(&Function<Tile>) -> bool) {
    let mut input = vec![0u64; INPUT / 8];
    let mut random = Random(12345);
    input.iter_mut().for_each(|word| *word = random.next() ^ random.next() << 40);
    let start = input.as_mut_ptr() as usize;
    let make = |seed| {
        let (text, stored, bytes) = generate(seed, kind);
        (text, (stored, bytes, seed))
    };
    drive(rounds, make, |text, (stored, bytes, seed)| {
        let func = kernel(text);
        if !chosen(&func) {
            return Ok("not chosen");
        }
        let mut out = vec![0u64; bytes * PROGRAMS / 8 + 1];
        let args = [
            Arg::Tensor(TensorArg {
                address: start + INPUT / 4,
                storage: start..start + INPUT,
                view: None,
                writable: false,
            }),
            tensor(&mut out),
            int(13),
        ];
        let grid = [PROGRAMS as u32, 1, 1];
        out.fill(FRESH);
        let patience = patience();
        let plain = LaunchOptions { interrupt: Some(&patience), ..PLAIN };
        if run(&func, grid, &args, &plain).is_err() {
            return Ok("failed");
        }
        let expected = bytes_of(&out);
        let machine = match Machine::new(&func, &args, grid, *seed) {
            Ok(machine) => machine,
            Err(why) => return refused(why),
        };
        for shuffle in [None, Some(*seed)] {
            out.fill(FRESH);
            machine.run(grid, &args, shuffle)?;
            let got = bytes_of(&out);
            for p in 0..PROGRAMS {
                for (i, &(elem, at, n)) in stored.iter().enumerate() {
                    let from = p * bytes + at;
                    let x = images(&expected[from..], elem, n);
                    let y = images(&got[from..], elem, n);
                    if x != y {
                        return Err(format!(
                            "other bits\nprogram {p}, value {i} of {elem} at {at}, {}\n{x:x?}\n{y:x?}",
                            machine.how
                        ));
                    }
                }
            }
        }
        Ok("ran")
    });
}

#[test]
fn same_memory() {
    let make = |seed| {
        let kernel = kernels::generate(seed);
        (kernel.text.clone(), (kernel, seed))
    };
    drive(80, make, |text, (about, seed): &(Kernel, u64)| {
        let func = kernel(text);
        // Blocks that wait for one another are not all under way at once.
        if about.zeros.is_some() || meets_itself(&func) {
            return Ok("not chosen");
        }
        // Programs that write where others read are in a race on a GPU.
        let parallel = about.threads > 1;
        let grid = if parallel { about.grid.map(|n| n.min(3)) } else { [1; 3] };
        let fresh: Vec<Vec<u64>> = about
            .memories
            .iter()
            .enumerate()
            .map(|(i, &(bytes, elem))| contents(bytes, elem, i as u64 * 77))
            .collect();
        let mut memory = fresh.clone();
        let mut args = Vec::new();
        for p in &about.pointers {
            let start = memory[p.memory].as_mut_ptr() as usize;
            args.push(Arg::Tensor(TensorArg {
                address: start + p.offset,
                storage: start..start + about.memories[p.memory].0,
                view: None,
                writable: p.writable,
            }));
        }
        let number =
            |(i, &n): (usize, &i64)| Arg::Scalar(if i < 3 { n as u32 as u64 } else { n as u64 });
        args.extend(about.numbers.iter().enumerate().map(number));
        let patience = patience();
        let plain = LaunchOptions { interrupt: Some(&patience), ..PLAIN };
        if run(&func, grid, &args, &plain).is_err() {
            return Ok("failed");
        }
        let expected = memory.clone();
        let machine = match Machine::new(&func, &args, grid, *seed) {
            Ok(machine) => machine,
            Err(why) => return refused(why),
        };
        for shuffle in [None, Some(*seed)] {
            for (m, f) in memory.iter_mut().zip(&fresh) {
                m.copy_from_slice(f);
            }
            machine.run(grid, &args, shuffle)?;
            for (i, &(bytes, elem)) in about.memories.iter().enumerate() {
                let flat = |m: &[u64]| images(&bytes_of(m), elem, bytes / elem.size());
                let (x, y) = (flat(&expected[i]), flat(&memory[i]));
                if let Some(at) = (0..x.len()).find(|&at| x[at] != y[at]) {
                    let differ = (0..x.len()).filter(|&at| x[at] != y[at]).count();
                    let pointers: Vec<_> =
                        about.pointers.iter().map(|p| (p.memory, p.offset)).collect();
                    return Err(format!(
                        "other memory\nmemory {i} of {elem} at {at}: {:x} became {:x}, {differ} differ; {}; numbers {:?}, grid {grid:?}, pointers {pointers:?}",
                        x[at], y[at], machine.how, about.numbers,
                    ));
                }
            }
        }
        Ok("ran")
    });
}

/// Whether what the kernel leaves may depend on which of its lanes comes first at an element.
fn meets_itself(func: &Function<Tile>) -> bool {
    let mut meets = false;
    func.walk(&mut |inst| {
        meets |= match func.op(inst) {
            TileOp::AtomicRmw { ptr, .. }
            | TileOp::AtomicCas { ptr, .. }
            | TileOp::AtomicStore { ptr, .. } => !func.ty(*ptr).is_scalar(),
            _ => false,
        }
    });
    meets
}

/// What is refused is no failure; what is compiled and may not be run is.
fn refused(why: Refused) -> Result<Fate, String> {
    match why {
        Refused::Unsupported(_) => Ok("refused"),
        Refused::Wrong(what) => Err(what),
    }
}
