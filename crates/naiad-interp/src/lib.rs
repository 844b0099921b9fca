//! The reference executor: Tile IR run as it stands, every access tested.
//!
//! It is an oracle, so it sees no optimizer and takes no liberty: each op is computed for all lanes
//! of a tile before the next one. What makes it fast is only how values are kept.
//!
//! ```text
//!   lib       launch
//!   schedule  programs over threads; suspended ones; deadlock
//!   exec      one program: a stack of frames, so that it can stop in the middle
//!   tile      values: uniform, affine, box, dense        slab   memory of dense ones
//!   elementwise, cast, shape, combine, dot               ops on values
//!   memory, atomics                                      ops on the arguments' memory
//!   policy, fault                                        what is judged, and how it is told
//! ```
//!
//! Whatever a kernel does, nothing outside its arguments' storage is read or written.

pub mod args;
mod atomics;
mod cast;
mod combine;
mod dot;
mod elementwise;
mod exec;
mod fault;
mod memory;
mod policy;
mod schedule;
mod shape;
mod slab;
mod tile;

pub use args::{Arg, LaunchOptions, PolicyKind, TensorArg, View};

use naiad_diag::{Diagnostic, Id};
use naiad_ir::{Function, tile::Tile};

/// What a launch found besides what it computed.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Warnings and notes; an error ends the launch and is returned instead.
    pub findings: Vec<Diagnostic>,
}

/// Runs `grid[0] * grid[1] * grid[2]` programs of a verified kernel. On an error other programs may
/// have written what they would have written.
///
/// # Safety
///
/// The storage of each tensor argument is valid for reads, and for writes where `writable`, until
/// this returns.
pub unsafe fn launch(
    func: &Function<Tile>,
    grid: [u32; 3],
    args: &[Arg],
    options: &LaunchOptions<'_>,
) -> Result<Report, Box<Diagnostic>> {
    if func.params().len() != args.len() {
        let message = format!("`{}` takes {} arguments at run time, {} are given", func.name, func.params().len(), args.len());
        return Err(Box::new(Diagnostic::new(Id::BadLaunch, message)));
    }
    match options.policy {
        PolicyKind::Plain => schedule::run::<policy::Plain>(func, grid, args, options),
        PolicyKind::Checked => schedule::run::<policy::Checked>(func, grid, args, options),
    }
    .map(|()| Report::default())
}
