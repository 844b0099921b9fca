//! Kernels as machine code of this CPU.

pub mod clif;
pub mod dist;
pub mod facts;
pub mod launch;
mod native;
pub mod runtime;
pub mod wide;

pub use facts::Facts;
pub use launch::{Arg, Code, CompileError, Fault, Host, Options, Outcome};
pub use wide::Level;

use naiad_ir::Function;
use naiad_ir::tile::Tile;

/// Which arguments a kernel may write through.
pub fn written(func: &Function<Tile>) -> Vec<bool> {
    dist::plan::written(func)
}
