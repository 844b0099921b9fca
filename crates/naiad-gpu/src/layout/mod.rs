//! Linear layouts: which thread holds which element of a tile.
//!
//! A tile's extents are powers of two, so an element is known by the bits of its row-major index. A
//! place is a register of a thread, known by the bits of its register, lane and warp numbers. A layout
//! is a linear map over F2 from the bits of places to the bits of indices: it is given by the index
//! that each single bit of a place leads to (its *bases*), and of other places the index is the xor of
//! the bases of their bits. (Zhou et al., "Linear Layouts", 2025, have the idea at length.)
//!
//! A row of 16 elements over two warps of 4 lanes (say), each lane with two neighbours:
//!
//! | bit of a place | index it leads to |
//! |---|---|
//! | register 0 | 1 |
//! | lane 0, lane 1 | 2, 4 |
//! | warp 0 | 8 |
//!
//! Register 1 of lane 3 in warp 1 holds element 1 ^ 2 ^ 4 ^ 8 = 15. A basis of 0 says that the places
//! which differ in this bit hold the same element: they are *replicas*, of which the one whose bit is 0
//! *owns* it. A layout is *sound* if every element has a place.
//!
//! What tiles go through is the same for layouts: a reshape changes nothing at all, an inserted axis of
//! extent 1 neither; a permutation of axes permutes bits of indices; a reduced or unbroadcast axis takes
//! its bits out, so that places which differed in them alone become replicas.

mod convert;
mod memory;
mod mma;

pub use convert::{Conversion, conversion, swizzle};
pub use memory::{Banks, Swizzle, sectors};
pub use mma::{Operand, accumulator, operand};

#[cfg(test)]
mod tests;

use naiad_ir::Shape;
use std::fmt;
use std::str::FromStr;

/// Bits of a lane's number.
pub const LANE_BITS: usize = 5;
/// Most bits of a register's number, and of a warp's.
const MAX_REGISTER_BITS: usize = 14;
const MAX_WARP_BITS: usize = 7;

/// A map from registers, lanes and warps to elements.
#[derive(Copy, Clone, PartialEq, Eq, Hash)]
pub struct Layout {
    registers: [u32; MAX_REGISTER_BITS],
    lanes: [u32; LANE_BITS],
    warps: [u32; MAX_WARP_BITS],
    register_bits: u8,
    warp_bits: u8,
}

impl Layout {
    /// A layout of these bases.
    ///
    /// # Panics
    /// Where there are more than a block has places for.
    pub fn new(registers: &[u32], lanes: [u32; LANE_BITS], warps: &[u32]) -> Layout {
        let mut layout = Layout {
            registers: [0; MAX_REGISTER_BITS],
            lanes,
            warps: [0; MAX_WARP_BITS],
            register_bits: registers.len() as u8,
            warp_bits: warps.len() as u8,
        };
        layout.registers[..registers.len()].copy_from_slice(registers);
        layout.warps[..warps.len()].copy_from_slice(warps);
        layout
    }

    /// The layout that gives the bits of the index, in this order, first `vector` of them to registers,
    /// then lanes, then warps, and what is left to registers again. Where bits run out, replicas are made.
    pub fn in_order(
        bits: impl IntoIterator<Item = u32>,
        vector: usize,
        warp_bits: usize,
    ) -> Layout {
        let mut bits = bits.into_iter();
        let mut registers: Vec<u32> = bits.by_ref().take(vector).collect();
        let lanes = std::array::from_fn(|_| bits.next().unwrap_or(0));
        let warps: Vec<u32> = (0..warp_bits).map(|_| bits.next().unwrap_or(0)).collect();
        registers.extend(bits);
        Layout::new(&registers, lanes, &warps)
    }

    /// Bases of a register's bits.
    pub fn registers(&self) -> &[u32] {
        &self.registers[..usize::from(self.register_bits)]
    }

    pub fn lanes(&self) -> &[u32; LANE_BITS] {
        &self.lanes
    }

    pub fn warps(&self) -> &[u32] {
        &self.warps[..usize::from(self.warp_bits)]
    }

    /// Registers that a thread has.
    pub fn count(&self) -> usize {
        1 << self.register_bits
    }

    /// The element in a place.
    pub fn element(&self, register: usize, lane: usize, warp: usize) -> u32 {
        xor(self.registers(), register) ^ xor(&self.lanes, lane) ^ xor(self.warps(), warp)
    }

    /// The part of the index that the register decides.
    pub fn register_part(&self, register: usize) -> u32 {
        xor(self.registers(), register)
    }

    fn bases(&self) -> impl Iterator<Item = u32> + '_ {
        self.registers().iter().chain(&self.lanes).chain(self.warps()).copied()
    }

    /// The layout with another function of each basis.
    pub fn map(&self, f: impl Fn(u32) -> u32) -> Layout {
        let mut out = *self;
        let bases = out.registers.iter_mut().chain(&mut out.lanes).chain(&mut out.warps);
        bases.for_each(|b| *b = f(*b));
        out
    }

    /// Without registers that are replicas of others.
    pub fn without_copies(&self) -> Layout {
        let registers: Vec<u32> = self.registers().iter().copied().filter(|&b| b != 0).collect();
        Layout::new(&registers, self.lanes, self.warps())
    }

    /// Which register of [`Layout::without_copies`] stands for a register of this.
    pub fn without_copies_at(&self, register: usize) -> usize {
        let kept = (0..self.registers().len()).filter(|&i| self.registers[i] != 0);
        kept.enumerate().map(|(to, from)| (register >> from & 1) << to).sum()
    }

    /// The register of which another is a copy, whatever the thread: itself if it is none.
    pub fn without_copies_of(&self, register: usize) -> usize {
        let copies = (0..self.registers().len()).filter(|&i| self.registers[i] == 0);
        register & !copies.map(|i| 1 << i).sum::<usize>()
    }

    /// Whether each element of a tile has a place.
    pub fn covers(&self, shape: &Shape) -> bool {
        rank(self.bases()) == numel_bits(shape)
            && self.bases().all(|b| u64::from(b) < shape.numel() as u64)
    }

    /// The bits of a lane's and of a warp's number that make replicas.
    pub fn replicas(&self) -> (u32, u32) {
        // A basis that the ones before it span makes a replica too.
        let mut before: Vec<u32> = self.registers().to_vec();
        let mut masks = [0u32; 2];
        for (mask, bases) in masks.iter_mut().zip([&self.lanes[..], self.warps()]) {
            for (i, &b) in bases.iter().enumerate() {
                let was = rank(before.iter().copied());
                before.push(b);
                *mask |= u32::from(rank(before.iter().copied()) == was) << i;
            }
        }
        (masks[0], masks[1])
    }

    /// The layout of a tile from which an axis is taken out; places that differed along it alone are
    /// replicas. Registers stay as many: see [`Layout::without_copies`].
    pub fn without_axis(&self, shape: &Shape, axis: usize) -> Layout {
        let (low, bits) = axis_bits(shape, axis);
        self.map(|b| b & ((1 << low) - 1) | b >> (low + bits) << low)
    }

    /// Behind a broadcast `shape` of a tile of extents `from`: what a tile that is broadcast has to be in.
    pub fn unbroadcast(&self, shape: &Shape, from: &Shape) -> Layout {
        let mut out = *self;
        let mut now = *shape;
        for axis in 0..shape.rank() {
            if from.dim(axis) != shape.dim(axis) {
                out = out.without_axis(&now, axis);
                now = now.with_dim(axis, 1).unwrap_or(now);
            }
        }
        out.without_copies()
    }

    /// The layout of the permuted tile, whose axis `i` is the axis `order[i]` of a tile of `shape`.
    pub fn permuted(&self, shape: &Shape, order: &[u32]) -> Layout {
        let order: Vec<usize> = order.iter().map(|&a| a as usize).collect();
        let to = shape.permuted(&order);
        self.map(|b| {
            let parts = (0..order.len()).map(|i| {
                let (from_low, bits) = axis_bits(shape, order[i]);
                let (to_low, _) = axis_bits(&to, i);
                (b >> from_low & ((1 << bits) - 1)) << to_low
            });
            parts.sum()
        })
    }
}

/// The lowest bit of an index along an axis, and how many there are.
pub fn axis_bits(shape: &Shape, axis: usize) -> (u32, u32) {
    let low: u32 = (axis + 1..shape.rank()).map(|d| shape.dim(d).trailing_zeros()).sum();
    (low, shape.dim(axis).trailing_zeros())
}

pub fn numel_bits(shape: &Shape) -> u32 {
    shape.numel().trailing_zeros()
}

fn xor(bases: &[u32], bits: usize) -> u32 {
    bases.iter().enumerate().filter(|(i, _)| bits >> i & 1 == 1).fold(0, |x, (_, b)| x ^ b)
}

/// Dimension of what vectors over F2 span.
pub fn rank(vectors: impl IntoIterator<Item = u32>) -> u32 {
    let mut pivots: Vec<u32> = Vec::new();
    for v in vectors {
        let rest = pivots.iter().fold(v, |v, &p| v.min(v ^ p));
        if rest != 0 {
            pivots.push(rest);
            pivots.sort_unstable_by(|a, b| b.cmp(a));
        }
    }
    pivots.len() as u32
}

/// Solves `xor of chosen vectors = target`; which are chosen, as bits.
pub fn solve(vectors: &[u32], target: u32) -> Option<u64> {
    // Each row: a combination of vectors, and which they are.
    let mut pivots: Vec<(u32, u64)> = Vec::new();
    let reduce = |pivots: &[(u32, u64)], mut v: u32, mut by: u64| {
        for &(p, which) in pivots {
            if v ^ p < v {
                (v, by) = (v ^ p, by ^ which);
            }
        }
        (v, by)
    };
    for (i, &v) in vectors.iter().enumerate() {
        let (rest, by) = reduce(&pivots, v, 1 << i);
        if rest != 0 {
            pivots.push((rest, by));
            pivots.sort_unstable_by_key(|&(v, _)| std::cmp::Reverse(v));
        }
    }
    let (rest, by) = reduce(&pivots, target, 0);
    (rest == 0).then_some(by)
}

/// `r1_2l4_8_16_32_64w128_256`: registers, lanes, warps.
impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (letter, bases) in [("r", self.registers()), ("l", &self.lanes), ("w", self.warps())] {
            let words: Vec<String> = bases.iter().map(u32::to_string).collect();
            write!(f, "{letter}{}", words.join("_"))?;
        }
        Ok(())
    }
}

impl fmt::Debug for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Layout {
    type Err = String;

    fn from_str(text: &str) -> Result<Layout, String> {
        let wrong = || format!("`{text}` is no layout");
        let rest = text.strip_prefix('r').ok_or_else(wrong)?;
        let (registers, rest) = rest.split_once('l').ok_or_else(wrong)?;
        let (lanes, warps) = rest.split_once('w').ok_or_else(wrong)?;
        let list = |part: &str| -> Result<Vec<u32>, String> {
            let words = part.split('_').filter(|w| !w.is_empty());
            words.map(|w| w.parse().map_err(|_| wrong())).collect()
        };
        let (registers, lanes, warps) = (list(registers)?, list(lanes)?, list(warps)?);
        if registers.len() > MAX_REGISTER_BITS || warps.len() > MAX_WARP_BITS {
            return Err(wrong());
        }
        let lanes = lanes.try_into().map_err(|_| wrong())?;
        Ok(Layout::new(&registers, lanes, &warps))
    }
}
