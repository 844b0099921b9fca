//! Placed IR: Tile IR in which every tile has a layout.
//!
//! A value is a scalar, which all threads of the block have alike; a tile, spread over them by its
//! [`Layout`]; or a tile in shared memory, by a [`Swizzle`]. A tile is one value still, so that what is
//! done with memory can be moved, staged and put into pipelines as a whole.
//!
//! - Ops of Tile IR do what they do there, on tiles in layouts that fit each other: the verifier has the
//!   rules, beside it. Ops that only pass elements on (reshapes, permutations, unbroadcasts) move none.
//! - `convert` brings a tile into another layout, through registers, shuffles or shared memory.
//! - `alloc` is shared memory for `slots` tiles, until `free`. `copy_async` begins to copy from memory
//!   into a slot, zeros where the mask is false; `commit` closes a group of such copies; `wait` ends when
//!   at most `pending` groups are not done, for all threads. `read` takes a tile out of a slot.
//!
//! Result types are part of an op, and so is what is known of the memory that it reads or writes: a
//! layout is a decision and no consequence.

mod ops;
pub mod rules;
mod types;
mod verify;

pub use ops::{Extra, PlacedOp, Run, Watched, What};
pub use types::{Place, PlacedType};

use naiad_ir::{Dialect, Function};

/// The dialect of Placed IR.
#[derive(Clone, PartialEq, Debug)]
pub struct Placed;

impl Dialect for Placed {
    const KEYWORD: &'static str = "placed";
    type Op = PlacedOp;
    type Type = PlacedType;

    fn verify_op(func: &Function<Placed>, op: &PlacedOp) -> Result<(), String> {
        verify::op(func, op)
    }
}
