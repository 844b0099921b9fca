//! Tile IR: the kernel as its author wrote it, with inlined helpers and known types.
//!
//! A function is run once for each program of the grid. Values are scalars, pointers or tiles of
//! them; a tile's extents are powers of two. Meaning, in short:
//!
//! - Elementwise ops (`unary`, `binary`, `ternary`, `compare`, `select`, `cast`, `bitcast`,
//!   `ptr_add`) want equal shapes; nothing broadcasts by itself. A scalar function's meaning is its
//!   row in [`crate::scalar`]; integers wrap.
//! - `ptr_add` counts in elements of the pointee; the offset is extended to 64 bits by its own
//!   signedness first, so an offset that wrapped in 32 bits stays wrapped.
//! - `load` reads the lanes whose mask is true; others give `other`, or 0 without one, and touch no
//!   memory. `store` writes the lanes whose mask is true; of several lanes that write to one
//!   address any one wins.
//! - Memory ops of one program take effect in program order. Between programs only atomics order.
//! - `for` runs its block for `iv = lower, lower + step, …` while `iv < upper` (`>` if the step is
//!   negative), compared as signed numbers; the bounds are read once. The block's parameters are
//!   the induction variable and the carried values, its `yield` gives their next values, and the
//!   op's results are the last ones.
//! - `while` runs its first block, which ends in `condition`; while that is true the second block
//!   runs with the values passed and yields the first one's next arguments.
//! - `if` runs one of two blocks, and its results are what that block yields.
//! - `reduce` and `scan` combine along one axis with a region over scalars: parameters
//!   `a1..ak, b1..bk`, yield of `k`. The function is taken to be associative, for `reduce` also
//!   commutative; the order of combination is the executor's. The region sees no outer value.
//! - `map` calls its region once for every `pack` consecutive elements (in row-major order): its
//!   parameters are `pack` elements of the first input, then of the second, …, and it yields `pack`
//!   elements of each result in the same way. It may branch and loop by its elements.
//! - `sort` and `topk` order by value, NaN last, and are not stable: of equal elements (`0` and `-0`)
//!   any comes first. `gather` takes no index outside the axis; what it then gives is unspecified,
//!   though never anything but an element of the source. `histogram` drops other values.
//! - `print` and `assert` of one program happen in program order.
//!
//! `ops` holds the table, `infer` the result types that each row names, `verify` what types cannot
//! show, `build` what front ends and passes use to make ops.

mod build;
mod combine;
mod infer;
mod ops;
mod print;
mod verify;

pub use build::{BuildError, Builder, broadcast_shapes};
pub use combine::one_function;
pub use ops::{
    AtomicOp, Axes, CacheModifier, Constant, Eviction, HintKind, LoopHints, MachineFact, MemHints,
    Precision, Scalars, Scope, Sem, Text, Texts, TileOp,
};
pub use print::print_label;

use crate::function::Function;
use crate::op::Dialect;

/// The dialect of Tile IR.
#[derive(Clone, PartialEq, Debug)]
pub struct Tile;

impl Dialect for Tile {
    const KEYWORD: &'static str = "tile";
    type Op = TileOp;
    type Type = crate::types::Type;

    fn verify_op(func: &Function<Tile>, op: &TileOp) -> Result<(), String> {
        verify::op(func, op)
    }
}
