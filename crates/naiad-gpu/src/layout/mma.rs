//! Layouts of the operands of `mma`.
//!
//! Fragments of PTX's `mma.sync` by the bits of a thread's lane `t` and register, 16-bit elements:
//!
//! | | register bits | lane bits 0, 1 | lane bits 2, 3, 4 |
//! |---|---|---|---|
//! | `a`, m x k | k 0; m 3; k 3 | k 1, 2 | m 0, 1, 2 |
//! | `b`, k x n | k 0; k 3 | k 1, 2 | n 0, 1, 2 |
//! | `c`, m x n | n 0; m 3 | n 1, 2 | m 0, 1, 2 |
//!
//! Narrower or wider elements of `a` and `b` have more or fewer bits of k in a register.

use super::{LANE_BITS, Layout, axis_bits};
use naiad_ir::Shape;

/// Which operand of a product.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Operand {
    A,
    B,
}

/// How warps share the sums of a product: the bits of a warp's number along m, then along n.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Warps {
    pub along_m: u32,
    pub along_n: u32,
}

/// How `1 << bits` warps share sums of an `m` x `n` tile so that they read the least: as square as goes.
pub fn warps(shape: &Shape, bits: u32) -> Warps {
    let rank = shape.rank();
    let (m, n) = (axis_bits(shape, rank - 2).1, axis_bits(shape, rank - 1).1);
    let mut shared = Warps { along_m: 0, along_n: 0 };
    for _ in 0..bits {
        // Extents that a warp still has.
        let (wm, wn) = (m - shared.along_m, n - shared.along_n);
        if wm > 4 && (wm >= wn || wn <= 3) {
            shared.along_m += 1;
        } else if wn > 3 {
            shared.along_n += 1;
        } else if wm > 4 {
            shared.along_m += 1;
        } else {
            break;
        }
    }
    shared
}

/// The layout of sums, `m` x `n` in the last two axes; those before are in registers.
pub fn accumulator(shape: &Shape, warp_bits: u32) -> Layout {
    let rank = shape.rank();
    let ((m_low, m_bits), (n_low, n_bits)) =
        (axis_bits(shape, rank - 2), axis_bits(shape, rank - 1));
    let (m, n) = (|i: u32| 1 << (m_low + i), |i: u32| 1 << (n_low + i));
    let shared = warps(shape, warp_bits);
    let lanes: [u32; LANE_BITS] = [n(1), n(2), m(0), m(1), m(2)];
    let mut registers = vec![n(0), m(3)];
    // Tiles of a warp that are neighbours stay together.
    registers.extend((3..n_bits - shared.along_n).map(n));
    registers.extend((4..m_bits - shared.along_m).map(m));
    registers.extend((m_low + m_bits..super::numel_bits(shape)).map(|i| 1 << i));
    let along_m = (m_bits - shared.along_m..m_bits).map(m);
    let along_n = (n_bits - shared.along_n..n_bits).map(n);
    let mut by_warp: Vec<u32> = along_m.chain(along_n).collect();
    by_warp.resize(warp_bits as usize, 0);
    Layout::new(&registers, lanes, &by_warp)
}

/// The layout of an operand (`a` is m x k, `b` is k x n) of the product whose sums of shape `sums` are
/// in [`accumulator`]; `packed` bits of k lie in a 32-bit register.
pub fn operand(which: Operand, shape: &Shape, sums: &Shape, packed: u32, warp_bits: u32) -> Layout {
    let rank = shape.rank();
    let (row, column) = (axis_bits(shape, rank - 2), axis_bits(shape, rank - 1));
    let shared = warps(sums, warp_bits);
    let ((k_low, k_bits), (o_low, o_bits)) = match which {
        Operand::A => (column, row),
        Operand::B => (row, column),
    };
    let (k, o) = (|i: u32| 1 << (k_low + i), |i: u32| 1 << (o_low + i));
    let lanes = [k(packed), k(packed + 1), o(0), o(1), o(2)];
    let mut registers: Vec<u32> = (0..packed).map(k).collect();
    let (own, first) = match which {
        Operand::A => {
            registers.push(o(3));
            (shared.along_m, 4)
        }
        Operand::B => (shared.along_n, 3),
    };
    registers.extend((packed + 2..k_bits).map(k));
    registers.extend((first..o_bits - own).map(o));
    registers.extend((row.0 + row.1..super::numel_bits(shape)).map(|i| 1 << i));
    let mine = (o_bits - own..o_bits).map(o);
    let others = |n: u32| std::iter::repeat_n(0, n as usize);
    let mut by_warp: Vec<u32> = match which {
        Operand::A => mine.chain(others(shared.along_n)).collect(),
        Operand::B => others(shared.along_m).chain(mine).collect(),
    };
    by_warp.resize(warp_bits as usize, 0);
    Layout::new(&registers, lanes, &by_warp)
}
