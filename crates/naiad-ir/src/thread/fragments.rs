//! Which elements of a small matrix each thread of a warp holds.
//!
//! These are the layouts of PTX's `mma.sync` and `ldmatrix`, which all kinds of [`MmaKind`] share once
//! they are counted in registers. With `g = thread / 4`, `t = thread % 4` and `p` elements in a register
//! of 32 bits (4 of a byte, 2 of 16 bits, 1 of tf32; the first is in the low bits), part `e` of register
//! `r` is
//!
//! | operand | row | column |
//! |---|---|---|
//! | `a`, `m` x `k` | `g + 8 (r % 2)` | `p t + e + 4 p (r / 2)` |
//! | `b`, `k` x `n` | `p t + e + 4 p r` | `g` |
//! | `c`, `m` x `n` | `g + 8 (r / 2)` | `2 t + r % 2` |
//! | a tile of `load_matrix` | `g` | `2 t + e` |
//!
//! So one `load_matrix` of four tiles, the upper left, lower left, upper right and lower right quarter of
//! a 16 x 16 matrix, gives the four registers of an `a` of 16-bit elements.

use super::MmaKind;
use crate::types::Scalar;

/// Threads of a warp.
pub const WARP: u32 = 32;

impl MmaKind {
    /// The type of the elements of `a` and `b`; of tf32, the one that they are cut from.
    #[inline]
    pub const fn elem(self) -> Scalar {
        match self {
            MmaKind::F16 => Scalar::F16,
            MmaKind::Bf16 => Scalar::BF16,
            MmaKind::Tf32 => Scalar::F32,
            MmaKind::S8 => Scalar::I8,
            MmaKind::U8 => Scalar::U8,
            MmaKind::E4m3 => Scalar::F8E4NV,
            MmaKind::E5m2 => Scalar::F8E5,
        }
    }

    /// Elements of `a` and `b` in a register.
    #[inline]
    pub const fn per_register(self) -> u32 {
        32 / self.elem().bits()
    }
}

/// Row and column (`k`) in `a` of part `part` of a thread's register `register` (0 to 3).
#[inline]
pub const fn a_index(kind: MmaKind, thread: u32, register: u32, part: u32) -> (u32, u32) {
    let p = kind.per_register();
    (thread / 4 + 8 * (register % 2), p * (thread % 4) + part + 4 * p * (register / 2))
}

/// Row (`k`) and column in `b` of part `part` of a thread's register `register` (0 or 1).
#[inline]
pub const fn b_index(kind: MmaKind, thread: u32, register: u32, part: u32) -> (u32, u32) {
    let p = kind.per_register();
    (p * (thread % 4) + part + 4 * p * register, thread / 4)
}

/// Row and column in `c`, and in the sum, of a thread's register `register` (0 to 3).
#[inline]
pub const fn c_index(thread: u32, register: u32) -> (u32, u32) {
    (thread / 4 + 8 * (register / 2), 2 * (thread % 4) + register % 2)
}

/// Row and column in an 8 x 8 tile of part `part` (0 or 1) of what `load_matrix` gives a thread.
#[inline]
pub const fn tile_index(thread: u32, part: u32) -> (u32, u32) {
    (thread / 4, 2 * (thread % 4) + part)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each element of each operand is held once.
    #[test]
    fn fragments_cover_their_matrices() {
        for &kind in MmaKind::ALL {
            let [m, n, k] = kind.extents();
            let mut seen =
                [vec![0; (m * k) as usize], vec![0; (k * n) as usize], vec![0; (m * n) as usize]];
            for thread in 0..WARP {
                for register in 0..4 {
                    for part in 0..kind.per_register() {
                        let (row, column) = a_index(kind, thread, register, part);
                        seen[0][(row * k + column) as usize] += 1;
                        if register < 2 {
                            let (row, column) = b_index(kind, thread, register, part);
                            seen[1][(row * n + column) as usize] += 1;
                        }
                    }
                    let (row, column) = c_index(thread, register);
                    seen[2][(row * n + column) as usize] += 1;
                }
            }
            assert!(seen.iter().flatten().all(|&times| times == 1), "{}", kind.name());
        }
    }

    /// Places written out in the PTX ISA's figures.
    #[test]
    fn fragments_are_those_of_ptx() {
        // m16n8k16 of 16 bits: a5 of thread 7 is the second half of its third register.
        assert_eq!(a_index(MmaKind::F16, 7, 2, 1), (1, 15));
        assert_eq!(a_index(MmaKind::F16, 7, 1, 0), (9, 6));
        assert_eq!(b_index(MmaKind::Bf16, 7, 1, 1), (15, 1));
        assert_eq!(a_index(MmaKind::Tf32, 31, 3, 0), (15, 7));
        assert_eq!(b_index(MmaKind::Tf32, 5, 1, 0), (5, 1));
        assert_eq!(a_index(MmaKind::S8, 1, 2, 3), (0, 23));
        assert_eq!(b_index(MmaKind::E4m3, 30, 1, 0), (24, 7));
        assert_eq!(c_index(13, 3), (11, 3));
    }
}
