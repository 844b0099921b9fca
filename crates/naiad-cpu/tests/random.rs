//! Random kernels: machine code leaves in memory the bits that the reference executor does, and finds the
//! same programs at fault. See `drive.rs` for the variables that make a run longer.
//!
//! With `NAIAD_CPU=avx2` all of it runs under `valgrind --smc-check=all-non-file`, which tells what is read
//! before it is written, by machine code too.

#[path = "../../naiad-interp/tests/common/mod.rs"]
mod common;
#[path = "common/drive.rs"]
mod drive;
#[path = "../../naiad-interp/tests/common/generator.rs"]
mod generator;
#[path = "common/gen.rs"]
mod kernels;
#[path = "common/machine.rs"]
mod machine;
#[path = "common/trial.rs"]
mod trial;

use common::kernel;
use drive::{Fate, drive};
use generator::Kind;
use machine::{Machine, fault, limit_processor, patience};
use naiad_interp::Multiply;
use naiad_ir::Function;
use naiad_ir::tile::Tile;
use std::sync::Arc;
use trial::{Kernel, Trial, of_values};

#[test]
fn same_bits() {
    hold(200, |seed| of_values(seed, Kind::Exact), |_, _| true, None);
}

/// Nobody can tell by its results which executor ran a kernel that is free of order.
#[test]
fn same_bits_in_any_order() {
    let chosen = |func: &Function<Tile>, _: &Kernel| naiad_opt::is_order_free(func);
    hold(120, |seed| of_values(seed, Kind::All), chosen, None);
}

/// Nor where the reference executor combines numbers in the order of machine code.
#[test]
fn same_bits_in_order() {
    let chosen = |func: &Function<Tile>, about: &Kernel| {
        naiad_cpu::programs_in_order(func) >= u64::from(about.grid[0])
    };
    hold(120, |seed| of_values(seed, Kind::All), chosen, Some(naiad_cpu::multiply));
}

#[test]
fn same_memory() {
    hold(100, kernels::generate, |_, _| true, None);
}

/// Machine code and the reference executor do the same to memory, for the random kernels that are chosen.
fn hold(
    rounds: u64,
    make: fn(u64) -> Kernel,
    chosen: fn(&Function<Tile>, &Kernel) -> bool,
    in_order: Option<Multiply>,
) {
    limit_processor();
    let make = |seed| {
        let kernel = make(seed);
        (kernel.text.clone(), kernel)
    };
    drive(rounds, make, |text, about| {
        let func = kernel(text);
        match chosen(&func, about) {
            true => same(&func, about, in_order),
            false => Ok("not chosen"),
        }
    });
}

fn same(
    func: &Arc<Function<Tile>>,
    about: &Kernel,
    in_order: Option<Multiply>,
) -> Result<Fate, String> {
    let mut trial = Trial::new(about, about.grid);
    let mut was = trial.expect(func, in_order);
    let mut fate = if was.is_ok() { "ran" } else { "failed" };
    for optimize in [false, true] {
        if optimize && in_order.is_some() && naiad_cpu::multiplies_as_optimized(func) {
            let mut optimized = func.clone();
            naiad_cpu::optimize(Arc::make_mut(&mut optimized));
            was = trial.expect(&optimized, in_order);
        }
        if Trial::took_long(&was) {
            return Ok("took long");
        }
        let machine = Machine::new(func, &trial.args, optimize);
        trial.reset();
        let is = machine.run(about.grid, &trial.args, about.threads).map_err(|d| fault(&d));
        let how = format!("optimized: {optimize}");
        match (was.as_ref().map_err(|d| fault(d)), is) {
            (Ok(()), Ok(())) => trial.compare(&how)?,
            (Err(was), Err(is)) if was == is => {}
            // Of several faults of one program machine code may find another one first: it does in one
            // loop what the program does in several.
            (Err(was), Err(is)) if program(&was).is_some() && program(&was) == program(&is) => {
                fate = "failed in another way";
            }
            (was, is) => return Err(format!("another fault\n{was:#?}\n{is:#?}, {how}")),
        }
    }
    Ok(fate)
}

/// The program that a fault speaks of.
fn program(fault: &str) -> Option<&str> {
    let at = fault.find("program (")?;
    fault[at..].split_inclusive(')').next()
}
