//! Random kernels: machine code gives the bits that the reference executor does, and its faults.

#[path = "../../naiad-interp/tests/common/mod.rs"]
mod common;
#[path = "common/drive.rs"]
mod drive;
#[path = "../../naiad-interp/tests/common/generator.rs"]
mod generator;
#[path = "common/machine.rs"]
mod machine;

use common::*;
use drive::drive;
use generator::{INPUT, Kind, Random, generate, images};
use machine::{Machine, fault, limit_processor, patience};
use naiad_interp::{Arg, LaunchOptions, Multiply, TensorArg};
use naiad_ir::Function;
use naiad_ir::tile::Tile;
use std::sync::Arc;

const PROGRAMS: usize = 3;

#[test]
fn same_bits() {
    hold_bits(200, Kind::Exact, |_| true);
}

/// Nobody can tell by its results which executor ran a kernel that is free of order.
#[test]
fn same_bits_in_any_order() {
    hold_bits(120, Kind::All, naiad_opt::is_order_free);
}

/// Nor where the reference executor combines numbers in the order of machine code.
#[test]
fn same_bits_in_order() {
    let multiply: Multiply = naiad_cpu::multiply;
    let chosen = |func: &_| naiad_cpu::programs_in_order(func) >= PROGRAMS as u64;
    hold_bits_in(120, Kind::All, chosen, Some(multiply));
}

/// Machine code and the reference executor do the same to memory, for the random kernels that are chosen.
fn hold_bits(rounds: u64, kind: Kind, chosen: fn(&Function<Tile>) -> bool) {
    hold_bits_in(rounds, kind, chosen, None);
}

fn hold_bits_in(
    rounds: u64,
    kind: Kind,
    chosen: fn(&Function<Tile>) -> bool,
    in_order: Option<Multiply>,
) {
    limit_processor();
    let mut input = vec![0u8; INPUT];
    let mut random = Random(12345);
    input.iter_mut().for_each(|byte| *byte = random.next() as u8);
    let start = input.as_mut_ptr() as usize;
    let make = |seed| {
        let (text, stored, bytes) = generate(seed, kind);
        (text, (stored, bytes))
    };
    drive(rounds, make, |text, (stored, bytes)| {
        let func = kernel(text);
        if !chosen(&func) {
            return Ok("not chosen");
        }
        // Aligned for every type, and in one place for all runs: a wild access may hit it.
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
        let bytes_of =
            |out: &[u64]| -> Vec<u8> { out.iter().flat_map(|x| x.to_le_bytes()).collect() };
        let patience = patience();
        let mut ran = false;
        let plain = LaunchOptions { interrupt: Some(&patience), in_order, ..PLAIN };
        for optimize in [false, true] {
            let mut settled = func.clone();
            if optimize && in_order.is_some() && naiad_cpu::multiplies_as_optimized(&func) {
                naiad_cpu::optimize(Arc::make_mut(&mut settled));
            }
            out.fill(0x55);
            let was = run(&settled, grid, &args, &plain).map(|_| ()).map_err(|d| fault(&d));
            let expected = bytes_of(&out);
            let machine = Machine::new(&func, &args, optimize);
            out.fill(0x55);
            let is = machine.run(grid, &args, 1).map_err(|d| fault(&d));
            ran = was.is_ok();
            if was != is {
                return Err(format!("another fault\n{was:#?}\n{is:#?}, optimized: {optimize}"));
            }
            if was.is_err() {
                continue;
            }
            let got = bytes_of(&out);
            for p in 0..PROGRAMS {
                for (i, &(elem, at, n)) in stored.iter().enumerate() {
                    let from = p * bytes + at;
                    let x = images(&expected[from..], elem, n);
                    let y = images(&got[from..], elem, n);
                    if x != y {
                        return Err(format!(
                            "other bits\nprogram {p}, value {i} of {elem} at {at}, optimized: {optimize}\n{x:x?}\n{y:x?}"
                        ));
                    }
                }
            }
        }
        Ok(if ran { "ran" } else { "failed" })
    });
}
