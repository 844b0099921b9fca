//! What a layout means for memory: transactions of a warp, banks of shared memory.

use super::{LANE_BITS, Layout, axis_bits};
use naiad_ir::Shape;
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// Bytes of global memory that are moved together.
const SECTOR: usize = 32;
/// Bytes that all banks of shared memory have in a row.
const BANK_ROW: u32 = 128;

impl Layout {
    /// The bits of a register's number along the lowest bits of an index from `low` on: registers that
    /// hold neighbours, at most `1 << most` of them.
    pub fn neighbours(&self, low: u32, most: u32) -> Vec<usize> {
        let at = |bit: u32| self.registers().iter().position(|&b| b == 1 << (low + bit));
        (0..most).map_while(at).collect()
    }

    /// The registers in groups of those that differ in some bits of their number alone, in the order of
    /// these bits. Replicas of others are left out.
    pub fn groups(&self, bits: &[usize]) -> Vec<Vec<usize>> {
        let taken: usize = bits.iter().map(|b| 1 << b).sum();
        let copies = self.registers().iter().enumerate().filter(|(_, b)| **b == 0);
        let copies: usize = copies.map(|(i, _)| 1 << i).sum();
        let leaders = (0..self.count()).filter(|r| r & (taken | copies) == 0);
        let member = |r: usize, i: usize| -> usize {
            r | bits.iter().enumerate().map(|(at, b)| (i >> at & 1) << b).sum::<usize>()
        };
        leaders.map(|r| (0..1 << bits.len()).map(|i| member(r, i)).collect()).collect()
    }
}

/// Sectors that all warps of a block touch as they read or write a tile whose elements are neighbours
/// in memory along one axis, and rows of it far apart, `vector` elements of a thread at once.
pub fn sectors(layout: &Layout, shape: &Shape, axis: usize, size: usize, vector: usize) -> usize {
    let (low, bits) = axis_bits(shape, axis);
    let along = |index: u32| (index >> low & ((1 << bits) - 1)) as usize;
    let mut total = 0;
    let vector_bits = layout.neighbours(low, vector.trailing_zeros());
    let leaders = (0..layout.count()).filter(|r| vector_bits.iter().all(|b| r >> b & 1 == 0));
    for register in leaders {
        for warp in 0..1 << layout.warps().len() {
            let mut touched = BTreeSet::new();
            for lane in 0..1 << LANE_BITS {
                let index = layout.element(register, lane, warp);
                let row = index & !(((1 << bits) - 1) << low);
                let first = along(index) * size;
                for sector in first / SECTOR..=(first + size * vector - 1) / SECTOR {
                    touched.insert((row, sector));
                }
            }
            total += touched.len();
        }
    }
    total
}

/// Most bits of a tile's index.
const MAX_INDEX_BITS: usize = 20;

/// A linear map from a tile's indices to positions in shared memory, in elements.
///
/// As with layouts it is given by the positions of single bits; it is invertible.
#[derive(Copy, Clone, PartialEq, Eq, Hash)]
pub struct Swizzle {
    bases: [u32; MAX_INDEX_BITS],
    bits: u8,
}

impl Swizzle {
    /// Bit `i` of an index leads to `bases[i]`.
    pub fn new(bases: &[u32]) -> Swizzle {
        let mut all = [0; MAX_INDEX_BITS];
        all[..bases.len()].copy_from_slice(bases);
        Swizzle { bases: all, bits: bases.len() as u8 }
    }

    pub fn bases(&self) -> &[u32] {
        &self.bases[..usize::from(self.bits)]
    }

    /// Whether each index has a position of its own, among as many.
    pub fn is_invertible(&self) -> bool {
        let bits = self.bases().len() as u32;
        super::rank(self.bases().iter().copied()) == bits
            && self.bases().iter().all(|&b| u64::from(b) < 1 << bits)
    }

    pub fn position(&self, index: u32) -> u32 {
        super::xor(self.bases(), index as usize)
    }

    /// Positions instead of indices.
    pub fn of(&self, layout: &Layout) -> Layout {
        layout.map(|b| self.position(b))
    }
}

/// `s1_2_4_8`.
impl fmt::Display for Swizzle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> = self.bases().iter().map(u32::to_string).collect();
        write!(f, "s{}", words.join("_"))
    }
}

impl fmt::Debug for Swizzle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Swizzle {
    type Err = String;

    fn from_str(text: &str) -> Result<Swizzle, String> {
        let wrong = || format!("`{text}` is no swizzle");
        let words = text.strip_prefix('s').ok_or_else(wrong)?.split('_').filter(|w| !w.is_empty());
        let bases: Vec<u32> =
            words.map(|w| w.parse().map_err(|_| wrong())).collect::<Result<_, _>>()?;
        if bases.len() > MAX_INDEX_BITS {
            return Err(wrong());
        }
        Ok(Swizzle::new(&bases))
    }
}

/// How often the banks are asked for one access of a warp.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Banks {
    /// Rows of banks that have to be read or written one after the other.
    pub wavefronts: u32,
    /// How many would do for as many bytes.
    pub least: u32,
}

impl Banks {
    /// For a layout of positions: each lane takes `vector` elements of `size` bytes from where it leads.
    pub fn of(positions: &Layout, size: u32, vector: u32) -> Banks {
        let bytes = size * vector;
        // Wide accesses are made by a part of the warp at a time.
        let together = (BANK_ROW / bytes.max(4)).min(32);
        let mut wavefronts = 0;
        for first in (0..32).step_by(together as usize) {
            // Words that lie in one bank, but in different rows.
            let mut rows = vec![BTreeSet::new(); 32];
            for lane in first..first + together as usize {
                let start = positions.element(0, lane, 0) * size;
                for word in start / 4..(start + bytes).div_ceil(4) {
                    rows[(word % 32) as usize].insert(word / 32);
                }
            }
            wavefronts += rows.iter().map(|r| r.len() as u32).max().unwrap_or(0);
        }
        Banks { wavefronts, least: 32 / together }
    }
}
