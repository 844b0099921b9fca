//! Kernels for a GPU: tiles spread over the threads of a block.
//!
//! ```text
//!   Tile IR, facts of a launch
//!      │  place      a layout for every tile            place/, layout/
//!   Placed IR        tiles with layouts, shared memory   placed/
//!      │  lower      what one thread does                lower/
//!   Thread IR ──> PTX text (naiad-ptx), or the lockstep executor (naiad-interp)
//! ```
//!
//! How a kernel is called: its parameters are those of the Tile IR function, in order, pointers as
//! addresses, and behind them one `i32`, the number of programs along axis 0 of the grid. Blocks stand
//! for programs: along axis 0 each for [`Code::programs`] of them, along the others each for one. A
//! block has [`Code::threads`] threads and [`Code::shared_bytes`] bytes of shared memory.

use naiad_ir::Function;
use naiad_ir::thread::Thread;

/// A kernel that is ready to be written as PTX, or run in the lockstep executor.
#[derive(Clone, Debug)]
pub struct Code {
    pub func: Function<Thread>,
    /// Threads of a block.
    pub threads: u32,
    /// Programs of the grid's axis 0 that a block runs.
    pub programs: u32,
    /// Bytes of shared memory of a block.
    pub shared_bytes: u32,
}

impl Code {
    /// Blocks along each axis for a grid of programs.
    pub fn blocks(&self, grid: [u32; 3]) -> [u32; 3] {
        [grid[0].div_ceil(self.programs), grid[1], grid[2]]
    }
}

/// What a kernel is compiled for.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Options {
    /// The chip's compute capability times 10: 80, 89, 90.
    pub capability: u32,
    pub num_warps: u32,
    pub num_stages: u32,
    /// Elementary functions to the bit as on a CPU, instead of the chip's own.
    pub precise: bool,
}
