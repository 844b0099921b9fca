//! Short rows of memory that begin anywhere.
//!
//! Where a row is not aligned, 32 neighbours of it lie across two lines of the cache, and across five
//! sectors instead of four. So a warp reads such a row in the pieces that memory is divided into, one
//! more than it has registers; each lane then passes on what it read to the lane that is to have it. Of a
//! row of 64 elements that begins 5 elements behind a multiple of 32:
//!
//! ```text
//!   register    0: lanes 0 ................ 31 | 1: lanes 0 ................ 31
//!   line           5 .............. 31 | 0 ................... 31 | 0 ... 4
//!   piece          0                   | 1                        | 2
//! ```
//!
//! How far a row is behind a multiple of 32, `behind` here, is known at run time only, and differs from
//! row to row. Lane `l` reads of piece `p` the element `32 p + l - behind`: that is of register `p`, or
//! where `l < behind` of the one before, in lane `l - behind` modulo 32.
//!
//! This pays where a tile has short rows, far from one another in memory. Of a long row a warp's
//! neighbours find in the cache what this warp read of their lines; and the same for writes was tried,
//! and brought nothing. Of elements narrower than 4 bytes, 32 are so few sectors that the accesses more
//! cost more than the sectors less: on an H200 transpositions of 8191x16385 in fp16 take 0.34 ms in pieces
//! and 0.23 without in tiles of 32x32, 0.28 and 0.19 in tiles of 128x32. Those in fp32 take 0.35 and 0.43
//! in tiles of 32x32, 0.31 and 0.35 in tiles of 64x64, but 0.39 and 0.29 in tiles of 128x32.

use super::{Lower, Registers};
use crate::layout::{LANE_BITS, Layout, axis_bits};
use crate::place::ROW_REGISTERS;
use crate::placed::Run;
use naiad_ir::scalar::{BinaryFn, Predicate, Rounding};
use naiad_ir::thread::ThreadElem;
use naiad_ir::tile::MemHints;
use naiad_ir::{Scalar, Shape, Value};

const LANES: i64 = 1 << LANE_BITS;

/// Rows of a tile up to which it is read in pieces.
const ROWS: usize = 64;

/// How a row lies to the lines of memory.
struct Place {
    /// The address of what this lane reads of the first piece.
    first: Value,
    lane: Value,
    behind: Value,
    /// Whether this lane's part of a piece is of the register of the piece's number.
    same: Value,
}

impl Lower<'_> {
    /// The registers of each row, in order, if a tile has short rows that are not aligned and a warp
    /// holds all of each.
    pub fn rows(
        &self,
        shape: &Shape,
        layout: Option<&Layout>,
        run: Run,
        size: usize,
    ) -> Option<Vec<Vec<usize>>> {
        let layout = layout?;
        let (low, bits) = axis_bits(shape, run.axis as usize);
        let further = bits.checked_sub(LANE_BITS as u32)?;
        let short = size >= 4 && 1 << further <= ROW_REGISTERS;
        let few = shape.rank() > 1 && shape.numel() >> bits <= ROWS;
        let whole = run.vector == 1 && run.together == 1 << bits;
        let lanes = (0..LANE_BITS as u32).all(|i| layout.lanes()[i as usize] == 1 << (low + i));
        let registers = layout.neighbours(low + LANE_BITS as u32, further);
        let fits = short && few && whole && lanes && registers.len() == further as usize;
        fits.then(|| layout.groups(&registers))
    }

    /// Reads a row. Of masks, each `alike` neighbours are the same; what is masked out is 0.
    pub fn load_row(
        &mut self,
        at: &[Value],
        masks: Option<&[Value]>,
        alike: u32,
        elem: ThreadElem,
        hints: MemHints,
    ) -> Registers {
        let size = elem.size() as i64;
        let place = self.place_of_row(at[0], size);
        let wanted = self.wanted(&place, at.len(), masks, alike);
        // Lane `l` is to have element `32 r + l`, which lane `l + behind` has read, of the next piece
        // where that is past the last lane.
        let from = self.add(place.lane, place.behind);
        let lanes = self.i32(LANES);
        let same = self.b.compare(Predicate::Lt, from, lanes);
        let mut read = Registers::new();
        for (piece, mask) in wanted.into_iter().enumerate() {
            let constant = piece as i64 * LANES * size;
            let bytes = self.b.i64(constant);
            let address = self.b.addr_add(place.first, bytes);
            let address = self.note_sum(address, place.first, constant);
            read.push(self.load_op(address, elem, 1, Some(mask), hints));
        }
        let read: Registers = read.into_iter().map(|v| self.shuffle_from(v, from)).collect();
        read.windows(2).map(|two| self.b.select(same, two[0], two[1])).collect()
    }

    /// `at` is the address of this lane's element of the row's first register.
    fn place_of_row(&mut self, at: Value, size: i64) -> Place {
        let lane = self.lane();
        let address = self.b.bitcast(at, Scalar::I64);
        let log = self.b.i64(i64::from(size.trailing_zeros()));
        let element = self.b.binary(BinaryFn::Shr, address, log);
        let element = self.b.cast(element, Scalar::I32, Rounding::Nearest);
        let start = self.b.binary(BinaryFn::Sub, element, lane);
        let behind = self.and(start, LANES - 1);
        let back = self.mul(behind, -size);
        let back = self.b.cast(back, Scalar::I64, Rounding::Nearest);
        let first = self.b.addr_add(at, back);
        let same = self.b.compare(Predicate::Ge, lane, behind);
        Place { first, lane, behind, same }
    }

    /// Whether this lane reads something of each piece of a row of `count` registers.
    fn wanted(
        &mut self,
        place: &Place,
        count: usize,
        masks: Option<&[Value]>,
        alike: u32,
    ) -> Vec<Value> {
        if let Some(masks) = masks
            && i64::from(alike) < LANES * count as i64
        {
            return self.moved_masks(place, masks);
        }
        let mut inside = vec![self.b.bool(true); count + 1];
        inside[0] = place.same;
        inside[count] = self.b.compare(Predicate::Lt, place.lane, place.behind);
        match masks {
            Some(masks) => {
                inside.into_iter().map(|i| self.b.binary(BinaryFn::And, i, masks[0])).collect()
            }
            None => inside,
        }
    }

    /// Masks of elements, as lanes have these, for the lanes that read them. One word has a bit for each
    /// register, so that all are passed on at once.
    fn moved_masks(&mut self, place: &Place, masks: &[Value]) -> Vec<Value> {
        let zero = self.i32(0);
        let mut all = zero;
        for (r, &mask) in masks.iter().enumerate() {
            let bit = self.i32(1 << r);
            let bit = self.b.select(mask, bit, zero);
            all = self.b.binary(BinaryFn::Or, all, bit);
        }
        let from = self.b.binary(BinaryFn::Sub, place.lane, place.behind);
        let from = self.and(from, LANES - 1);
        let bits = self.shuffle_from(all, from);
        // From here on bit `p` is for piece `p`, whose element may be of the register before. Outside of
        // the row there is no such bit.
        let further = self.shift_left(bits, 1);
        let bits = self.b.select(place.same, bits, further);
        let bit = |lower: &mut Self, piece: usize| {
            let bit = lower.and(bits, 1 << piece);
            lower.b.compare(Predicate::Ne, bit, zero)
        };
        (0..=masks.len()).map(|piece| bit(self, piece)).collect()
    }
}
