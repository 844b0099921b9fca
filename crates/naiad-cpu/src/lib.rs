//! Kernels as machine code of this CPU.
//!
//! **What may differ from the reference executor.** Elementwise results have the same bits, payloads
//! and signs of NaN apart. Sums, products of matrices and scans of floats are combined in another
//! [order], unless it is told to take ours. A program that goes wrong in several ways may be reported for another one of them; a launch
//! that goes wrong does so in the same program. Which lane remains where several of one store meet in
//! one element, and what programs see of one another that no atomic orders, is not defined.
//!
//! **How that is tested.** `tests/random.rs` makes kernels at random, of all ops on values and of all ways
//! to reach memory: arguments that overlap, shifts in place, offsets that wrap, strides, gathers, masks,
//! loops that carry tiles and pointers, reductions, scans, transposes, products and atomics. Each kernel
//! is run by both executors, before and after optimization, and must leave the same memory, or a fault in
//! the same program; floats are summed where sums are exact. Each argument's memory lies by itself, next
//! to pages that nobody may touch. A few kernels run with all tests; `NAIAD_RANDOM_MINUTES` lets them run
//! for longer, and what fails is made small. A fault that is found becomes a test in `tests/regress.rs`,
//! and is looked for in its whole family.
//!
//! `tests/rows.rs` goes through rows of many lengths by loops that carry a tile.
//!
//! Last run for long on 2026-12-01, on a busy machine: 25,900 kernels of values and 5,500 of memory, some of
//! them for AVX2, some under valgrind, some with registers, stack and scratch memory filled with changing
//! bytes before each run. None found wrong code. Not explained is seed 504123 of 2026-11-30, which gave
//! other bits once and in no repetition since.

pub mod clif;
pub mod dist;
pub mod facts;
pub mod launch;
mod native;
mod order;
mod peel;
pub mod runtime;
pub mod wide;

pub use facts::Facts;
pub use launch::{Arg, Code, Fault, Host, Options, Outcome};
pub use naiad_kernels::Level as Processor;
pub use order::{multiplies_as_optimized, multiply, programs_in_order};
pub use peel::peel;
pub use wide::Level;

use naiad_ir::Function;
use naiad_ir::tile::Tile;

/// Makes a verified kernel smaller and plainer, before [`peel`]. Whoever runs it in the [order] of machine code has
/// the same bits from here on.
pub fn optimize(func: &mut Function<Tile>) {
    naiad_opt::optimize(func);
    order::accumulate_products(func);
}

/// Which arguments a kernel may write through.
pub fn written(func: &Function<Tile>) -> Vec<bool> {
    dist::plan::written(func)
}
