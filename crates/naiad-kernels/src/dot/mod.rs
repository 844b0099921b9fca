//! Matrix products of tiles.
//!
//! ```text
//!   C += A B     blocks of k and n: B's block -> packed.rs -> rows of whole vectors
//!                  blocks of m:     A's block -> packed.rs -> its elements, or where they are
//!                    strips of rows x vectors: micro.rs, sums in registers over all of the block's k
//! ```
//!
//! A is read an element at a time, so it can stay where it is unless its type has to be converted. B
//! is read by vectors, once for each strip of rows, and lies in scratch for that: rows of a matrix lie
//! a power of two apart, and so in few places of the first-level cache.
//!
//! | types | computed in | sums |
//! |---|---|---|
//! | f32 | f32 | f32, fused where the machine can |
//! | f16, bf16, fp8 | widened to f32 | the same |
//! | bf16, on machines with instructions for it | pairs of bf16 | f32; if no operand is subnormal |
//! | f64 | f64 | f64 |
//! | 8-bit integers | pairs of i16, exact | i32, wrapping |
//! | other integers | their low 32 bits | i32, wrapping |
//! | any floats, summed in f64 | f64 | f64 |

pub(crate) mod micro;
pub(crate) mod packed;
mod vector;

pub(crate) use micro::Family;

use crate::copy::LINE;
use crate::dispatch::{Kernels, prefetch_near};
use micro::Block;
use naiad_ir::Scalar;
use packed::{Conversion, Operand, Packed, Scratch};
use std::mem::MaybeUninit;

/// Families of microkernels of a level.
pub(crate) struct Families {
    pub f32: &'static Family,
    pub f64: &'static Family,
    pub i32: &'static Family,
    /// Pairs of i16, into i32.
    pub ints: &'static Family,
    /// Pairs of bf16, into f32.
    pub bf16: Option<&'static Family>,
}

/// Added to the type of `c`: the next call takes both operands from where these end along `k`, and they
/// are not in the caches. A wrong hint costs time, nothing else.
pub const NEXT_K: i64 = 1 << 8;

/// Adds the product of an `m x k` matrix `a` and a `k x n` matrix `b` to an `m x n` matrix `c`, whose
/// rows are contiguous and `c_s0` bytes apart. Nothing is done where an extent is not positive.
///
/// Products are summed in any order, and those of floats may be fused with their addition.
///
/// # Safety
///
/// Types are positions in [`Scalar::ALL`]; `c` is `i32` for integers, and `f32` or `f64` for floats.
/// All elements of the operands may be read and those of `c` written; no byte of `c` belongs to an
/// operand or to two elements. No alignment is needed.
pub unsafe extern "C" fn dot(
    a: *const u8,
    a_s0: i64,
    a_s1: i64,
    b: *const u8,
    b_s0: i64,
    b_s1: i64,
    c: *mut u8,
    c_s0: i64,
    m: i64,
    n: i64,
    k: i64,
    a_type: i64,
    b_type: i64,
    c_type: i64,
) {
    let types =
        [a_type, b_type, c_type & (NEXT_K - 1)].map(|t| Scalar::ALL.get(t as usize).copied());
    let [Some(a_type), Some(b_type), Some(sums)] = types else { return };
    if m <= 0 || n <= 0 || k <= 0 {
        return;
    }
    let product = Product {
        a: Operand::new(a, a_type, a_s0 as isize, a_s1 as isize),
        b: Operand::new(b, b_type, b_s1 as isize, b_s0 as isize),
        c,
        c_row: c_s0 as isize,
        m: m as usize,
        n: n as usize,
        k: k as usize,
        ahead: c_type & NEXT_K != 0,
    };
    // SAFETY: the caller's.
    unsafe { product.run(Kernels::here(), sums) }
}

/// Bytes that a block of an operand takes in scratch: half a first-level cache or more.
const BLOCK: usize = 32 << 10;

/// Greatest `k` of a block: of f32, 64 columns by so many fill `BLOCK`.
const MAX_K: usize = 128;

/// Greatest extent of a block along an operand's own axis.
const MAX_OWN: usize = 256;

/// Rows closer than this many bytes spread over the first-level cache well enough.
const NEAR: usize = 1024;

/// Up to so many rows of C there are so few strips that B is better read where it is.
const FEW: usize = 16;

/// A product of at least one term.
#[derive(Copy, Clone)]
struct Product {
    a: Operand,
    b: Operand,
    c: *mut u8,
    c_row: isize,
    m: usize,
    n: usize,
    k: usize,
    ahead: bool,
}

/// How a product is computed.
#[derive(Copy, Clone)]
struct Way {
    family: &'static Family,
    a: Conversion,
    b: Conversion,
}

impl Way {
    /// The fastest one. The second is the one for blocks whose elements are unfit for it.
    fn choose(kernels: &Kernels, [a, b]: [Scalar; 2], sums: Scalar) -> (Way, Option<Way>) {
        let Families { f32, f64, i32, ints, bf16 } = kernels.families;
        let plain = |family, to| Way {
            family,
            a: Conversion::to(kernels, a, to),
            b: Conversion::to(kernels, b, to),
        };
        let pairs = |family, a, b| Way { family, a: Conversion::Pairs(a), b: Conversion::Pairs(b) };
        let bytes = |ty: Scalar| match ty {
            Scalar::I8 => Some(&kernels.packing.i8),
            Scalar::U8 | Scalar::I1 => Some(&kernels.packing.u8),
            _ => None,
        };
        match (sums, bf16) {
            (Scalar::F64, _) => (plain(f64, Scalar::F64), None),
            (Scalar::F32, Some(bf16)) if [a, b] == [Scalar::BF16; 2] => {
                let halves = &kernels.packing.bf16;
                (pairs(bf16, halves, halves), Some(plain(f32, Scalar::F32)))
            }
            (Scalar::F32, _) => (plain(f32, Scalar::F32), None),
            _ => match (bytes(a), bytes(b)) {
                (Some(a), Some(b)) => (pairs(ints, a, b), None),
                _ => (plain(i32, Scalar::I32), None),
            },
        }
    }
}

/// What is put in scratch, and how much of each axis at a time.
#[derive(Copy, Clone)]
struct Plan {
    way: Way,
    /// For blocks with unfit elements.
    other: Option<Way>,
    a_here: bool,
    b_here: bool,
    m: usize,
    n: usize,
    k: usize,
    /// Bytes of the blocks of B and of A.
    bytes: [usize; 2],
}

/// Scratch on the stack: neither allocated nor shared, and in the caches from the last call.
#[repr(C, align(64))]
struct Area<const BYTES: usize>(MaybeUninit<[u8; BYTES]>);

impl Product {
    unsafe fn run(&self, kernels: &Kernels, sums: Scalar) {
        let (way, other) = Way::choose(kernels, [self.a.ty, self.b.ty], sums);
        // SAFETY: the caller's.
        unsafe { self.run_in(kernels, way, other) }
    }

    unsafe fn run_in(&self, kernels: &Kernels, way: Way, other: Option<Way>) {
        let plan = self.plan(way, other);
        // The larger of the blocks before conversion, which never makes them smaller.
        let all = plan.bytes[0] + plan.bytes[1] + plan.bytes[0].max(plan.bytes[1]);
        // SAFETY: the caller's; the areas have as many bytes.
        unsafe {
            if all == 0 && self.k <= MAX_K {
                self.strips(way, self.a.here(), self.b.here());
            } else if all <= SMALL {
                self.run_with::<SMALL>(kernels, &plan);
            } else if all <= MEDIUM {
                self.run_with::<MEDIUM>(kernels, &plan);
            } else {
                self.run_with::<{ 3 * BLOCK }>(kernels, &plan);
            }
        }
    }

    fn plan(&self, way: Way, other: Option<Way>) -> Plan {
        let Way { family, a, b } = way;
        let k = self.k.min(MAX_K);
        let line = a.steps(k) * family.size;
        let most = family.up(self.m.max(self.n));
        // A division takes as long as all the rest of this.
        let fit = if most <= MAX_OWN && most * line <= BLOCK {
            MAX_OWN
        } else {
            family.down((BLOCK / line).min(MAX_OWN))
        };
        let b_near = self.m <= FEW || self.b.k.unsigned_abs() <= NEAR;
        let whole = self.b.contiguous_along_own() && family.down(self.n) == self.n;
        let b_here = matches!(b, Conversion::None) && whole && b_near;
        let a_here = matches!(a, Conversion::None) && !self.a_far();
        let m = if a_here { self.m } else { self.m.min(fit) };
        let n = if b_here { self.n } else { self.n.min(fit) };
        let bytes = |here: bool, own: usize| if here { 0 } else { family.up(own) * line };
        Plan { way, other, a_here, b_here, m, n, k, bytes: [bytes(b_here, n), bytes(a_here, m)] }
    }

    /// Whether A is in rows along `m` that are far apart: each strip would come back to all of them.
    fn a_far(&self) -> bool {
        self.a.contiguous_along_own() && self.a.k.unsigned_abs() > NEAR && self.m > FEW
    }

    /// Does nothing but make room: rustc 1.95 puts the code that touches the pages of a large frame
    /// after a test that leaves early, where it overwrites a register that is in use (r11). Here there
    /// is no such test, as long as `blocks` is not inlined.
    #[inline(never)]
    unsafe fn run_with<const BYTES: usize>(&self, kernels: &Kernels, plan: &Plan) {
        let mut area = MaybeUninit::<Area<BYTES>>::uninit();
        // SAFETY: the caller's.
        unsafe { self.blocks(kernels, plan, area.as_mut_ptr().cast()) }
    }

    #[inline(never)]
    unsafe fn blocks(&self, kernels: &Kernels, plan: &Plan, b_scratch: *mut u8) {
        let a_scratch = b_scratch.wrapping_add(plan.bytes[0]);
        let second = a_scratch.wrapping_add(plan.bytes[1]);
        for (k0, k) in Blocks::new(self.k, plan.k) {
            for (n0, n) in Blocks::new(self.n, plan.n) {
                let scratch = Scratch { first: b_scratch, second };
                // SAFETY: the caller's.
                let b = unsafe { self.packed_b(kernels, plan, [n0, n], [k0, k], scratch) };
                for (m0, m) in Blocks::new(self.m, plan.m) {
                    let scratch = Scratch { first: a_scratch, second };
                    // SAFETY: the caller's.
                    let a = unsafe { self.packed_a(kernels, plan, [m0, m], [k0, k], scratch) };
                    let part = Product {
                        a: self.a.from(m0, k0),
                        b: self.b.from(n0, k0),
                        c: self.c_at(m0, n0, plan.way.family),
                        m,
                        n,
                        k,
                        ..*self
                    };
                    // SAFETY: the caller's.
                    unsafe {
                        match plan.other {
                            Some(other) if a.unfit || b.unfit => part.run_in(kernels, other, None),
                            _ => part.strips(plan.way, a, b),
                        }
                    }
                }
            }
        }
    }

    fn c_at(&self, i: usize, j: usize, family: &Family) -> *mut u8 {
        self.c.wrapping_offset(self.c_row.wrapping_mul(i as isize)).wrapping_add(j * family.size)
    }

    unsafe fn packed_b(
        &self,
        kernels: &Kernels,
        plan: &Plan,
        [n0, n]: [usize; 2],
        [k0, k]: [usize; 2],
        scratch: Scratch,
    ) -> Packed {
        let (b, family) = (self.b.from(n0, k0), plan.way.family);
        if plan.b_here {
            return b.here();
        }
        // SAFETY: the caller's.
        unsafe { b.pack_steps(kernels, plan.way.b, [n, k], family, family.up(n), scratch) }
    }

    unsafe fn packed_a(
        &self,
        kernels: &Kernels,
        plan: &Plan,
        [m0, m]: [usize; 2],
        [k0, k]: [usize; 2],
        scratch: Scratch,
    ) -> Packed {
        let (a, family, conversion) = (self.a.from(m0, k0), plan.way.family, plan.way.a);
        if plan.a_here {
            return a.here();
        }
        // SAFETY: the caller's.
        unsafe {
            // Elements are read one at a time, in either order: as they come, then.
            match conversion {
                Conversion::None | Conversion::Rows(_) if a.contiguous_along_own() => {
                    a.pack_steps(kernels, conversion, [m, k], family, m, scratch)
                }
                _ => a.pack_lines(kernels, conversion, [m, k], family, scratch),
            }
        }
    }

    /// The product of blocks that fit the caches.
    unsafe fn strips(&self, way: Way, a: Packed, b: Packed) {
        let family = way.family;
        // All of it is asked for during the first column of strips.
        let mut ahead = None;
        let mut j = 0;
        while j < self.n {
            let left = family.up(self.n - j);
            let fits = |width: &usize| width * family.lanes <= left;
            let Some(&(width, kernels)) = family.widths.iter().find(|(width, _)| fits(width))
            else {
                return;
            };
            if self.ahead && j == 0 {
                let strips = self.m.div_ceil(kernels[0].0);
                let of = |operand, own| Ahead::of(operand, own, self.k, strips);
                ahead = Some([of(&self.a, self.m), of(&self.b, self.n)]);
            }
            let columns = (width * family.lanes).min(self.n - j);
            let tail = columns - family.down(columns);
            let mut i = 0;
            while i < self.m {
                let Some(&(rows, kernel)) = kernels.iter().find(|(rows, _)| *rows <= self.m - i)
                else {
                    return;
                };
                for ahead in ahead.iter_mut().flatten() {
                    ahead.prefetch();
                }
                let block = Block {
                    a: a.at.wrapping_offset(a.own.wrapping_mul(i as isize)),
                    a_row: a.own,
                    a_step: a.step,
                    b: b.at.wrapping_add(j * family.size),
                    b_step: b.step,
                    c: self.c_at(i, j, family),
                    c_row: self.c_row,
                    steps: way.a.steps(self.k),
                    tail: (tail > 0).then_some(tail),
                };
                // SAFETY: the caller's; the level has the family's instructions.
                unsafe { kernel(&block) };
                i += rows;
            }
            ahead = None;
            j += columns;
        }
    }
}

/// An extent in parts: where each begins and how long it is.
struct Blocks {
    at: usize,
    extent: usize,
    step: usize,
}

impl Blocks {
    fn new(extent: usize, step: usize) -> Blocks {
        Blocks { at: 0, extent, step }
    }
}

impl Iterator for Blocks {
    type Item = (usize, usize);

    fn next(&mut self) -> Option<(usize, usize)> {
        let at = self.at;
        let length = self.step.min(self.extent - at);
        self.at += length;
        (length > 0).then_some((at, length))
    }
}

/// Scratch of the commonest tiles, and of twice those.
const SMALL: usize = 16 << 10;
const MEDIUM: usize = 48 << 10;

/// The part of an operand that comes next along `k`, asked for line by line while this one is used.
struct Ahead {
    at: *const u8,
    line: isize,
    /// Bytes of a line.
    bytes: usize,
    left: usize,
    share: usize,
}

impl Ahead {
    fn of(operand: &Operand, own: usize, k: usize, strips: usize) -> Ahead {
        let at = operand.from(0, k).at;
        let size = operand.size;
        let (line, bytes, left) = if operand.contiguous_along_own() {
            (operand.k, own * size, k)
        } else if operand.k == size as isize {
            (operand.own, k * size, own)
        } else {
            (0, 0, 0)
        };
        Ahead { at, line, bytes, left, share: left.div_ceil(strips) }
    }

    /// Asks for a share of the lines.
    fn prefetch(&mut self) {
        for _ in 0..self.share.min(self.left) {
            for x in (0..self.bytes).step_by(LINE) {
                prefetch_near(self.at.wrapping_add(x));
            }
            self.at = self.at.wrapping_offset(self.line);
            self.left -= 1;
        }
    }
}

#[cfg(test)]
mod tests;
