//! A layout for every tile.
//!
//! ```text
//!   natural   forwards: the layout that a value would have of its own: loads as memory lies, products
//!             as the matrix units have them, what is computed of them alike          natural.rs
//!   wanted    backwards: the layouts in which a value is asked for; what is cheap to compute again is
//!             computed in each, all else in one and converted                         wanted.rs
//!   emit      forwards again: Placed IR, each op where it stood                       emit.rs
//! ```
//!
//! Values come in three kinds. *Cheap* ones (index arithmetic, and whatever no memory was read for) and
//! *transparent* ones (which only pass elements on: broadcasts, reshapes) are made in every layout that
//! is asked for. All others have a *home*: the one layout in which they are computed.

mod emit;
mod natural;
mod wanted;

use crate::Unsupported;
use crate::layout::{Layout, numel_bits, sectors};
use crate::placed::{Placed, Run};
use crate::watch::Watch;
use naiad_ir::tile::{Tile, TileOp};
use naiad_ir::{Function, Shape, Value};
use naiad_opt::axis::AxisInfo;

/// Places a kernel's tiles on `1 << warp_bits` warps.
pub fn place(
    func: &Function<Tile>,
    info: &AxisInfo,
    warp_bits: u32,
    options: &crate::Options,
    watch: Option<&Watch>,
) -> Result<Function<Placed>, Unsupported> {
    let context = Context { func, info, warp_bits, options, watch };
    let natural = natural::natural(&context);
    let wanted = wanted::wanted(&context, &natural);
    let placed = emit::emit(&context, &wanted)?;
    if cfg!(debug_assertions)
        && let Err(e) = naiad_ir::verify(&placed)
    {
        unreachable!("after placement: {}\n{placed}", e.message);
    }
    Ok(placed)
}

/// What all of placement looks at.
#[derive(Copy, Clone)]
struct Context<'a> {
    func: &'a Function<Tile>,
    info: &'a AxisInfo,
    warp_bits: u32,
    options: &'a crate::Options,
    watch: Option<&'a Watch>,
}

/// Bytes that one thread moves at once.
const VECTOR_BYTES: usize = 16;
/// Registers that a warp has of a row that begins anywhere, before the next warp has the row's next
/// part: of one line of the cache that two warps read, each reads it.
pub const ROW_REGISTERS: u32 = 4;

impl Context<'_> {
    fn shape(&self, value: Value) -> Shape {
        self.func.ty(value).shape
    }

    fn is_tile(&self, value: Value) -> bool {
        !self.func.ty(value).is_scalar()
    }

    /// The layout that gives a tile to threads along its axes, the first of `order` fastest, `vector`
    /// neighbours a thread.
    fn blocked(&self, shape: &Shape, order: &[usize], vector: u32) -> Layout {
        let bits = order.iter().flat_map(|&axis| {
            let (low, bits) = crate::layout::axis_bits(shape, axis);
            (low..low + bits).map(|b| 1 << b)
        });
        // No thread goes idle for the sake of another's vectors.
        let spare = numel_bits(shape).saturating_sub(5 + self.warp_bits);
        let vector = vector.trailing_zeros().min(spare);
        Layout::in_order(bits, vector as usize, self.warp_bits as usize)
    }

    /// The layout for tiles of which nothing is known.
    fn default(&self, shape: &Shape) -> Layout {
        let order: Vec<usize> = (0..shape.rank()).rev().collect();
        self.blocked(shape, &order, 4)
    }

    /// How memory lies that a tile of pointers leads to: the axis along which neighbours lie together,
    /// and how many of them a thread may move at once.
    fn run(&self, ptr: Value) -> (usize, u32) {
        let shape = self.shape(ptr);
        let size = self.func.ty(ptr).elem.pointer().map_or(1, |p| p.pointee.size());
        // Of axes as good as each other the last.
        let axis = (0..shape.rank())
            .max_by_key(|&a| (self.info.along(ptr, a).contiguity.min(shape.dim(a) as u32), a))
            .unwrap_or(0);
        let vector = self.info.vector(ptr, axis, size).min(shape.dim(axis) as u32);
        (axis, vector.min((VECTOR_BYTES / size).max(1) as u32))
    }

    /// What is known of an access, for whoever makes it.
    fn known_run(&self, inst: naiad_ir::Inst) -> Run {
        let (ptr, mask) = match self.func.op(inst) {
            TileOp::Load { ptr, mask, .. } | TileOp::Store { ptr, mask, .. } => (*ptr, *mask),
            TileOp::Compare { .. } => return self.known_alike(self.func.results(inst)[0]),
            _ => return Run::NONE,
        };
        if !self.is_tile(ptr) {
            return Run::NONE;
        }
        let (axis, vector) = self.run(ptr);
        let extent = self.shape(ptr).dim(axis) as u32;
        let together = self.info.along(ptr, axis).contiguity.min(extent);
        let alike = mask.map_or(extent, |m| self.info.along(m, axis).constancy.min(extent));
        Run { axis: axis as u32, together, vector, mask: alike }
    }

    /// What is known of a mask: how many neighbours are alike, along the axis where most are.
    fn known_alike(&self, mask: Value) -> Run {
        if !self.is_tile(mask) {
            return Run::NONE;
        }
        let alike = |axis: usize| self.info.along(mask, axis).constancy;
        let axis = (0..self.shape(mask).rank()).max_by_key(|&a| (alike(a), a)).unwrap_or(0);
        let mask = alike(axis).min(self.shape(mask).dim(axis) as u32);
        Run { axis: axis as u32, mask, ..Run::NONE }
    }

    /// The layout in which memory is read and written best.
    fn coalesced(&self, ptr: Value) -> Layout {
        let shape = self.shape(ptr);
        let (first, vector) = self.run(ptr);
        let mut order: Vec<usize> = (0..shape.rank()).rev().filter(|&a| a != first).collect();
        order.sort_by_key(|&a| std::cmp::Reverse(self.info.along(ptr, a).contiguity));
        order.insert(0, first);
        let together = self.info.along(ptr, first).contiguity.min(shape.dim(first) as u32);
        match vector {
            1 => self.in_rows(&shape, &order, together),
            _ => self.blocked(&shape, &order, vector),
        }
    }

    /// The layout for rows that begin anywhere: a warp has as much of one as it can move together.
    fn in_rows(&self, shape: &Shape, order: &[usize], together: u32) -> Layout {
        let all = self.blocked(shape, order, 1);
        let bits = numel_bits(shape);
        let spare = bits.saturating_sub(5 + self.warp_bits);
        let further = (together / 32).clamp(1, ROW_REGISTERS).trailing_zeros().min(spare) as usize;
        // Warps follow behind the bits that registers take.
        let mut rest = all.warps().iter().chain(all.registers()).copied();
        let mut registers: Vec<u32> = rest.by_ref().take(further).collect();
        let warps: Vec<u32> = rest.by_ref().take(all.warps().len()).collect();
        registers.extend(rest);
        Layout::new(&registers, *all.lanes(), &warps)
    }

    /// What an access in a layout costs: sectors, and accesses.
    fn access_cost(&self, ptr: Value, layout: &Layout) -> (usize, usize) {
        let shape = self.shape(ptr);
        let size = self.func.ty(ptr).elem.pointer().map_or(1, |p| p.pointee.size());
        let (axis, vector) = self.run(ptr);
        let (low, _) = crate::layout::axis_bits(&shape, axis);
        let bits = layout.neighbours(low, vector.trailing_zeros()).len();
        (sectors(layout, &shape, axis, size, 1 << bits), layout.count() >> bits)
    }

    /// Whether an access in a layout is about as good as the best.
    fn is_good_access(&self, ptr: Value, layout: &Layout) -> bool {
        let best = self.access_cost(ptr, &self.coalesced(ptr));
        let this = self.access_cost(ptr, &layout.without_copies());
        this.0 * 4 <= best.0 * 5 && this.1 <= best.1 * 4
    }
}
