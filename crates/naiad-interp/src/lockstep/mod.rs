//! The lockstep executor: runs a GPU kernel's Thread IR without a GPU, and judges it.
//!
//! ```text
//!   code      a slot for each value, a loop for each elementwise op     code.rs, values.rs
//!   turns     which block goes on, where they wait for each other       turns.rs
//!     exec    one block: control flow under masks, elementwise ops      exec.rs, mask.rs
//!       access   loads, stores, atomics, asynchronous copies            access.rs
//!         global   which addresses there are                            global.rs
//!         shared   races, barriers, copies in flight                    shared.rs
//!       warp     shuffles, votes, matrix products                       warp.rs
//!       ops      assembly, the machine's functions                      ops.rs
//!       print    what threads print, put together to tiles              print.rs
//!     stats   transactions as a GPU makes them                          stats.rs
//!     fault   what is wrong, and where                                  fault.rs
//! ```
//!
//! All threads of a block go through the function together, one op after the other: where they part, both
//! ways are gone under masks. That is one of the orders in which a GPU may run them, so its results count,
//! and it is the tidiest of all, so it hides every missing barrier. Those are found by the order that
//! barriers give and not by the one that happens here, see `shared.rs`. Blocks are run one after another,
//! unless they wait for each other.
//!
//! What a fault says is nearly always about a compiler, so the checks are those of the machine, and stricter
//! where the machine forgives: memory is never used before it is written, and an op for a whole warp is never
//! reached by a part of one.

mod access;
mod code;
mod exec;
mod fault;
mod global;
mod mask;
mod ops;
mod print;
mod shared;
mod stats;
mod turns;
mod values;
mod warp;

pub use code::Code;
pub use fault::{Fault, FaultKind};
pub use stats::{OpStats, Stats};

use crate::debug::Printed;
use naiad_ir::thread::uniform::Uniform;
use std::ops::Range;

/// What a block is.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct BlockShape {
    pub threads: u32,
    pub shared_bytes: u32,
}

/// A line that a thread of a GPU prints.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Element {
    pub program: [u32; 3],
    pub prefix: String,
    pub operand: u32,
    pub index: Vec<u32>,
    /// The image of the element; nothing where a print has no operands.
    pub value: Option<u64>,
}

/// How a kernel is run.
#[derive(Copy, Clone, Default)]
pub struct Options<'a> {
    /// Counts transactions.
    pub count: bool,
    /// What is claimed to be uniform is held against what threads have: a test of the analysis.
    pub claims: Option<&'a Uniform>,
    /// Runs the blocks in an order that this number gives, instead of one after the other.
    pub shuffle: Option<u64>,
    /// Asked now and then whether to stop.
    pub interrupt: Option<&'a (dyn Fn() -> bool + Sync)>,
    /// What is done with prints; nothing is printed without it.
    pub print: Option<&'a (dyn Fn(&Printed<'_>) + Sync)>,
    /// What is done with each element that a thread prints, instead; that some lack is no fault then.
    pub print_elements: Option<&'a (dyn Fn(&Element) + Sync)>,
    /// Nanoseconds of a clock. Without it time passes only where it is read.
    pub clock: Option<&'a (dyn Fn() -> u64 + Sync)>,
    /// Memory that is no argument's and may be reached all the same.
    pub exposed: &'a [Range<usize>],
}
