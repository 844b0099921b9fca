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
#[path = "../../naiad-cpu/tests/common/trial.rs"]
mod trial;

use common::kernel;
use drive::{Fate, drive};
use generator::Kind;
use lockstep::{Machine, Refused, patience};
use naiad_ir::Function;
use naiad_ir::tile::{Tile, TileOp};
use std::sync::Arc;
use trial::{Contents, Kernel, Trial, of_values};

#[test]
fn same_bits() {
    hold(60, |seed| of_values(seed, Kind::Exact), |_, _| true);
}

/// Nobody can tell by its results which executor ran a kernel that is free of order.
#[test]
fn same_bits_in_any_order() {
    let chosen = |func: &Function<Tile>, _: &Kernel| naiad_opt::is_order_free(func);
    hold(40, |seed| of_values(seed, Kind::All), chosen);
}

#[test]
fn same_memory() {
    // Blocks that wait for one another are not all under way at once.
    let waits = |about: &Kernel| about.memories.iter().any(|m| m.at_first == Contents::Byte(0));
    hold(80, kernels::generate, move |func, about| !waits(about) && !meets_itself(func));
}

/// Code for a GPU and the reference executor do the same to memory, for the random kernels that are chosen.
fn hold(rounds: u64, make: fn(u64) -> Kernel, chosen: impl Fn(&Function<Tile>, &Kernel) -> bool) {
    let make = |seed| {
        let kernel = make(seed);
        (kernel.text.clone(), (kernel, seed))
    };
    drive(rounds, make, |text, (about, seed)| {
        let func = kernel(text);
        match chosen(&func, about) {
            true => same(&func, about, *seed),
            false => Ok("not chosen"),
        }
    });
}

/// Programs that write where others read are in a race on a GPU.
fn grid(about: &Kernel) -> [u32; 3] {
    let apart = about.threads > 1 || !about.parts.is_empty();
    if apart { about.grid.map(|n| n.min(3)) } else { [1; 3] }
}

fn same(func: &Arc<Function<Tile>>, about: &Kernel, seed: u64) -> Result<Fate, String> {
    let mut trial = Trial::new(about, grid(about));
    let was = trial.expect(func, None);
    if was.is_err() {
        return Ok(if Trial::took_long(&was) { "took long" } else { "failed" });
    }
    let machine = match Machine::new(func, &trial.args, trial.grid, seed) {
        Ok(machine) => machine,
        // What is refused is no failure; what is compiled and may not be run is.
        Err(Refused::Unsupported(_)) => return Ok("refused"),
        Err(Refused::Wrong(what)) => return Err(what),
    };
    for shuffle in [None, Some(seed)] {
        trial.reset();
        machine.run(trial.grid, &trial.args, shuffle)?;
        trial.compare(&machine.how)?;
    }
    Ok("ran")
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
