//! Passes and analyses that know no target.
//!
//! ```text
//!   passes
//!     canonicalize   one way to write each thing; constants folded; equal ops merged    canonical/
//!     split_carried  carried tiles of pointers -> an invariant tile and a scalar        split.rs
//!     licm           what does not change in a loop is computed before it               licm.rs
//!     dce            what nobody needs goes                                             dce.rs
//!     cse            equal ops merged, nothing else                                     cse()
//!     reuse          what was loaded before is not loaded again                         reuse.rs
//!   analyses
//!     ranges         between which numbers integers lie, what does not wrap             ranges.rs
//!     axis           runs of equal, of consecutive, of divisible elements               axis.rs
//!     affine         which tiles are formulas of the lane's index                       affine.rs
//!     origin         which argument a pointer was made from                             origin.rs
//!     order          which kernels give one result in any order of combination          order.rs
//!     rounds         for which arguments loops run once                                 rounds.rs
//!   lint             what can be said of a kernel without a launch                       lint/
//! ```
//!
//! `cse`, `dce` and `licm` work on any dialect; [`structure`] says what they need to know of one, and
//! `rewrite` is the walk that `cse` and `canonicalize` share. Each pass is linear in the size of the
//! function, and the verifier finds nothing behind it.

pub mod affine;
pub mod axis;
mod canonical;
mod dce;
pub mod interval;
mod licm;
mod lint;
mod numbering;
mod order;
pub mod origin;
pub mod ranges;
mod reuse;
mod rewrite;
mod rounds;
mod split;
pub mod structure;

pub use canonical::{canonicalize, canonicalize_within};
pub use dce::dce;
pub use licm::licm;
pub use lint::lint;
pub use order::{is_order_free, is_order_free_but};
pub use reuse::{Room, reuse};
pub use rounds::once;
pub use split::split_carried;

use naiad_ir::Function;
use naiad_ir::tile::Tile;
use ranges::{Inputs, Ranges};
use structure::Structured;

/// Makes a verified kernel smaller and plainer. What it computes stays the same, to the bit (payloads
/// of NaN apart), and so do its faults.
pub fn optimize(func: &mut Function<Tile>) {
    optimize_for(func, &Inputs::default());
}

/// The same, for launches of which something is known.
pub fn optimize_for(func: &mut Function<Tile>, inputs: &Inputs) {
    pass(func, "canonicalize", canonicalize);
    pass(func, "split_carried", |f| _ = split_carried(f));
    pass(func, "licm", licm);
    // Slots that were split are dead, and what stands in their place has a shorter form; what came out
    // of two loops may be one.
    pass(func, "canonicalize within ranges", |f| {
        let ranges = Ranges::new(f, inputs);
        canonicalize_within(f, &ranges);
    });
    pass(func, "dce", dce);
}

/// Merges equal ops.
pub fn cse<D: Structured>(func: &mut Function<D>) {
    rewrite::rewrite(func, &rewrite::NoRules);
}

/// In debug builds the verifier runs behind every pass.
fn pass<D: Structured>(func: &mut Function<D>, name: &str, run: impl FnOnce(&mut Function<D>)) {
    run(func);
    if cfg!(debug_assertions)
        && let Err(e) = naiad_ir::verify(func)
    {
        unreachable!("after {name}: {}\n{func}", e.message);
    }
}
