//! The reference executor.

pub mod args;

pub use args::{Arg, LaunchOptions, PolicyKind, TensorArg, View};

use naiad_diag::Diagnostic;
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
    _func: &Function<Tile>,
    _grid: [u32; 3],
    _args: &[Arg],
    _options: &LaunchOptions<'_>,
) -> Result<Report, Box<Diagnostic>> {
    todo!()
}
