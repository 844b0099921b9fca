//! Thread IR: what one processor does, on scalars and short vectors.
//!
//! It stands between tiles and machine code. Nothing in it is a tile; addresses are bytes; every
//! loop, bound and vector is explicit. Meaning, in short:
//!
//! - A value is a vector of lanes, one for a scalar, of a number or an address; a mask is a vector of
//!   `i1`. How many lanes fit the machine is a writer's matter: it splits what is too wide.
//! - Elementwise ops want equal numbers of lanes; nothing but `splat` repeats a scalar. Functions on
//!   floats work on fp32 and fp64 only; narrower floats are storage, loaded, stored and cast. Their
//!   meaning is that of [`crate::scalar`], to the bit, but for the payload and the sign of a NaN.
//! - `load` and `store` take consecutive lanes at `addr + disp`; lanes whose mask is false touch no
//!   memory and read as 0. `gather` and `scatter` take an address for each lane. No access needs to be
//!   aligned. Memory effects happen in program order. A lane of `i1` is a byte, true if not 0.
//! - Atomic ops are scalar.
//! - `for`, `while`, `if` are those of Tile IR.
//! - `regs` is an array of registers that is not SSA: `regs_get` reads what the last `regs_set` before
//!   it wrote, and its indices are constants. It is 0 at first.
//! - `scratch` is memory of its own that lasts until the end of the block in which the op stands; what
//!   it holds at first is unspecified, and each run of the op may give the same memory again.
//! - `guard` ends the run where its condition is false, with its site and values for the report.
//! - `runtime_call` calls a function of the table [`RuntimeFn`].
//!
//! On a GPU the function is what one thread of a block does. Threads have `thread_id`, blocks a place
//! in a grid; 32 threads of consecutive numbers are a warp. Functions are called as their parameters
//! say; what is the same for all threads of a block is *uniform*. Where an op speaks of all threads of
//! a block or warp, all of them come to it together, or it is a fault. A mask that is a `splat`
//! predicates a whole access; with any other mask an access is made lane by lane. An access lies at a
//! multiple of its size, or of 16 bytes if it is larger: whoever makes a vector access there promises
//! that, and a lane alone is as large as its type.
//!
//! The families of one kind of target are known by their [`Capability`]: a writer refuses what its
//! target lacks, and the common core never depends on them.

mod build;
mod convert;
mod expand;
pub mod fragments;
mod infer;
mod ops;
mod runtime;
mod types;
pub mod uniform;
mod verify;

pub use build::{Branch, Builder, Expand, ForLoop};
pub use expand::{IsNative, expand};
pub use ops::{
    Capability, Lanes, MmaKind, NativeFn, Permutation, ShuffleMode, Site, ThreadOp, VoteMode,
};
pub use runtime::RuntimeFn;
pub use types::{MAX_LANES, ThreadElem, ThreadType, Vector};

use crate::function::Function;
use crate::op::Dialect;

/// The dialect of Thread IR.
#[derive(Clone, PartialEq, Debug)]
pub struct Thread;

impl Dialect for Thread {
    const KEYWORD: &'static str = "thread";
    type Op = ThreadOp;
    type Type = ThreadType;

    fn verify_op(func: &Function<Thread>, op: &ThreadOp) -> Result<(), String> {
        verify::op(func, op)
    }
}
