//! What is judged while a kernel runs.
//!
//! A policy is a type, so that what a plain run does not do costs it nothing. Values carry the
//! policy's `Lanes`: under a plain run nothing, and nothing yet under the checked one, where the class
//! of each lane (data, padding, undefined) will stand. They are derived beside the numbers: by
//! [`Policy::pure`] for ops that compute and by [`Policy::loaded`] for what comes from memory.

use naiad_ir::tile::TileOp;

pub trait Policy: Sync + 'static {
    /// What is known of a value's lanes besides their numbers.
    type Lanes: Clone + Default;

    /// Accesses are judged by the tensors' logical views too, not by their storage alone.
    const VIEWS: bool;

    /// What the kernel promises of its values is judged.
    const PROMISES: bool;

    /// What is known of the result of an op that computes, from its operands.
    fn pure(op: &TileOp, operands: &mut dyn Iterator<Item = &Self::Lanes>) -> Self::Lanes;

    /// What is known of lanes that were read through these pointers.
    fn loaded(pointers: &Self::Lanes) -> Self::Lanes;
}

/// Values, and accesses within storage.
pub struct Plain;

impl Policy for Plain {
    type Lanes = ();
    const VIEWS: bool = false;
    const PROMISES: bool = false;

    fn pure(_: &TileOp, _: &mut dyn Iterator<Item = &()>) {}
    fn loaded((): &()) {}
}

/// Also accesses within the logical view, and promises.
pub struct Checked;

impl Policy for Checked {
    type Lanes = ();
    const VIEWS: bool = true;
    const PROMISES: bool = true;

    fn pure(_: &TileOp, _: &mut dyn Iterator<Item = &()>) {}
    fn loaded((): &()) {}
}
