//! Kernels for a GPU: tiles spread over the threads of a block.
//!
//! ```text
//!   Tile IR, facts of a launch
//!      │  place      a layout for every tile            place/, layout/
//!   Placed IR        tiles with layouts, shared memory   placed/
//!      │  stage      products' operands fetched ahead     stage.rs
//!      │  lower      what one thread does                lower/
//!   Thread IR ──> PTX text (naiad-ptx), or the lockstep executor (naiad-interp)
//! ```
//!
//! How a kernel is called: its parameters are those of the Tile IR function, in order, pointers as
//! addresses, and behind them one `i32`, the number of programs along axis 0 of the grid, and what
//! [`Watch::arguments`] says where there is a watch. Blocks stand for programs: along axis 0 each for [`Code::programs`] of them, along the others each for one. A
//! block has [`Code::threads`] threads and [`Code::shared_bytes`] bytes of shared memory.

pub mod layout;
mod lower;
mod place;
pub mod placed;
mod stage;
mod watch;

pub use lower::Sharing;
pub use watch::{Extent, Found, SiteInfo, Watch};

use naiad_diag::Loc;
use naiad_ir::thread::Thread;
use naiad_ir::tile::{Tile, TileOp};
use naiad_ir::{Function, Scalar};
use naiad_opt::axis::AxisInfo;
use naiad_opt::ranges::{Inputs, Ranges};
use placed::Placed;
use std::sync::Arc;

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
    /// What it tells of faults.
    pub watch: Option<Watch>,
}

impl Code {
    /// Blocks along each axis for a grid of programs.
    pub fn blocks(&self, grid: [u32; 3]) -> [u32; 3] {
        [grid[0].div_ceil(self.programs), grid[1], grid[2]]
    }
}

/// What a kernel is compiled for.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Options {
    /// The chip's compute capability times 10: 80, 89, 90.
    pub capability: u32,
    pub num_warps: u32,
    pub num_stages: u32,
    /// Elementary functions to the bit as on a CPU, instead of the chip's own.
    pub precise: bool,
    /// Accesses to memory are held against the extents of the arguments.
    pub guarded: bool,
    /// The grid has so few programs that with one warp each most of the chip would wait for them.
    pub few_programs: bool,
    /// What is shown of its prints; all where this is not given.
    pub prints: Option<Arc<Prints>>,
}

/// What is shown of a kernel's prints. It is part of the code, since a GPU's text goes where nobody chooses
/// from it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Prints {
    /// Nothing is shown.
    pub off: bool,
    /// Coordinates of the programs that print; none for any along that axis.
    pub program: [Option<u32>; 3],
    /// For each axis of a tile, the first one first, the indices `start..end` that are shown; none for
    /// all, as along the axes beyond the list.
    pub lanes: Vec<Option<(usize, usize)>>,
}

/// Compiles a verified kernel for launches of which `inputs` is known.
pub fn compile(
    func: &Function<Tile>,
    inputs: &Inputs,
    options: &Options,
) -> Result<Code, Unsupported> {
    let (placed, sharing, watch) = prepare(func, inputs, options)?;
    lower::lower(&placed, sharing, options, watch)
}

/// The kernel as Placed IR, and how its programs share blocks.
pub fn placed(
    func: &Function<Tile>,
    inputs: &Inputs,
    options: &Options,
) -> Result<(Function<Placed>, Sharing), Unsupported> {
    let (placed, sharing, _) = prepare(func, inputs, options)?;
    Ok((placed, sharing))
}

fn prepare(
    func: &Function<Tile>,
    inputs: &Inputs,
    options: &Options,
) -> Result<(Function<Placed>, Sharing, Option<Watch>), Unsupported> {
    let mut func = func.clone();
    naiad_opt::optimize_for(&mut func, inputs);
    let mut sharing = sharing(&func, is_straight(&func), options);
    let elements = KEPT * (32 << sharing.warp_bits);
    let room = naiad_opt::Room { elements, branches: sharing.at_once == 1 };
    naiad_opt::reuse(&mut func, inputs, room);
    let watch = Watch::new(&func, options.guarded);
    if watch.is_some() {
        // A program that ends would end the others that its warp makes.
        sharing.at_once = 1;
    }
    let ranges = Ranges::new(&func, inputs);
    let info = AxisInfo::new(&func, inputs, &ranges);
    let mut placed = place::place(&func, &info, sharing.warp_bits, options, watch.as_ref())?;
    stage::stage(&mut placed, options.num_stages);
    if cfg!(debug_assertions)
        && let Err(e) = naiad_ir::verify(&placed)
    {
        unreachable!("after staging: {}\n{placed}", e.message);
    }
    Ok((placed, sharing, watch))
}

/// Elements of a tile up to which a warp does for a program.
const ONE_WARP: usize = 256;

/// The same where it reduces, so that no other warps have to be waited for; and of what it loads then the
/// bytes. On an H200 rows of 1024 in fp16 took 0.73 to 0.94 of the time that they take with four warps,
/// and rows of 1000 in fp32 1.01 to 1.02 times as long.
const ONE_WARP_REDUCES: usize = 1024;
const ONE_WARP_LOADS: usize = 2048;

/// Elements from which on a program does not make do with one warp if there are few programs. With loops
/// it does all the same: their rounds follow one another faster where no other warps are waited for.
const FEW_PROGRAMS: usize = 1024;

/// Elements of all tiles of one size that a warp has under way at once.
const AT_ONCE: usize = 128;

/// Elements of a tile that a thread rather keeps in its registers than loads again. With 64 a layer norm
/// of 16384 columns took 0.230 ms on an H200, and 0.157 where it loads each pass.
const KEPT: usize = 32;

/// Elements of a tile that a thread has registers for; beyond, a program has more warps than it is launched
/// with. On an H200 rows of 65536 in fp32 took a softmax 0.89 ms with the four warps of the launch and 0.42
/// with 16. Where a thread also waits for others, to reduce, half of it is better, as long as a block's
/// warps have 128 registers a thread: rows of 16384 in fp16 took 0.215 ms with four warps, 0.150 with eight.
const FITS: usize = 128;
const FITS_REDUCES: usize = 64;

/// Whether code for few programs is other code: see [`Options::few_programs`]. `is_straight`: loops of the
/// kernel may turn out to be none.
pub fn minds_few_programs(func: &Function<Tile>, is_straight: bool, options: &Options) -> bool {
    let is_straight = is_straight || self::is_straight(func);
    let of = |few| sharing(func, is_straight, &Options { few_programs: few, ..options.clone() });
    of(true) != of(false)
}

/// Programs are not made at once that branch or loop, nor where one would be in the others' words.
fn is_straight(func: &Function<Tile>) -> bool {
    func.insts(func.entry()).iter().all(|&inst| {
        use TileOp::{For, If, Print, While};
        !matches!(func.op(inst), For { .. } | While { .. } | If { .. } | Print { .. })
    })
}

/// Small tiles do not need all warps of a block: several programs share it.
fn sharing(func: &Function<Tile>, straight: bool, options: &Options) -> Sharing {
    let (mut largest, mut loaded, mut product, mut reduces) = (1, 0, false, false);
    func.walk(&mut |inst| {
        product |= matches!(func.op(inst), TileOp::Dot { .. });
        reduces |= matches!(func.op(inst), TileOp::Reduce { .. });
        for &result in func.results(inst) {
            let ty = func.ty(result);
            largest = largest.max(ty.shape.numel());
            if matches!(func.op(inst), TileOp::Load { .. }) {
                loaded = loaded.max(ty.shape.numel() * ty.elem.scalar().map_or(8, Scalar::size));
            }
        }
    });
    let mut warps = options.num_warps.next_power_of_two().max(1);
    let mut raise = |elements: usize, most: u32| {
        while largest > elements * 32 * warps as usize && warps < most {
            warps *= 2;
        }
    };
    raise(FITS, 32);
    if reduces && !product {
        raise(FITS_REDUCES, 16);
    }
    let reduces = reduces && largest <= ONE_WARP_REDUCES && loaded <= ONE_WARP_LOADS;
    let one_warp = reduces || largest <= ONE_WARP;
    let one_warp = one_warp && !(options.few_programs && straight && largest >= FEW_PROGRAMS);
    if !one_warp || product {
        return Sharing { warp_bits: warps.trailing_zeros(), side_by_side: 1, at_once: 1 };
    }
    let at_once = if straight { (AT_ONCE / largest).clamp(1, 4) as u32 } else { 1 };
    // A block of fewer warps would leave places of a multiprocessor empty.
    Sharing { warp_bits: 0, side_by_side: warps.max(4), at_once }
}

/// Why a kernel has no code for a GPU.
#[derive(Clone, Debug)]
pub struct Unsupported {
    pub what: String,
    /// Where in the kernel.
    pub loc: Option<Loc>,
}
