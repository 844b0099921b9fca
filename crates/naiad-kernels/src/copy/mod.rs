//! Copies of two-dimensional boxes of elements: rows, broadcasts, transposes and whatever else strides
//! can say.
//!
//! ```text
//!   destination contiguous along an axis, called 1 from here on; source
//!     contiguous along it     rows.rs: registers, or the C library
//!     the same all along it   the element written over and over; the first row copied to the others
//!     contiguous along 0      transpose.rs: blocks in registers
//!   anything else             one element at a time
//! ```

pub(crate) mod rows;
pub(crate) mod transpose;

use crate::dispatch::{self, Kernels};
use rows::Rows;
use transpose::Transpose;

/// Store past the caches where whole cache lines are written.
pub const STREAM: i64 = 1;
/// The next call will read the box of the source that follows this one along axis 0.
pub const NEXT_0: i64 = 2;
/// The same along axis 1.
pub const NEXT_1: i64 = 4;

/// A cache line. Stores past the caches fill them whole: parts of one cost as much as all of it, twice.
pub(crate) const LINE: usize = 64;

/// Copies `n0 x n1` elements of `size` bytes each: element `(i, j)` is at `base + i * s0 + j * s1` on
/// either side. Strides are in bytes and may be anything; of elements that are written to one address
/// any one wins. Nothing is copied where an extent is not positive.
///
/// `hints` are bits: [`STREAM`], and [`NEXT_0`] or [`NEXT_1`] if the source is not in the caches. A
/// wrong hint costs time, nothing else.
///
/// # Safety
///
/// `size` is 1, 2, 4 or 8. All elements of the source may be read and all of the destination written,
/// and no byte belongs to both. No alignment is needed.
pub unsafe extern "C" fn copy2d(
    dst: *mut u8,
    dst_s0: i64,
    dst_s1: i64,
    src: *const u8,
    src_s0: i64,
    src_s1: i64,
    n0: i64,
    n1: i64,
    size: i64,
    hints: i64,
) {
    if n0 <= 0 || n1 <= 0 {
        return;
    }
    let copy = Copy2d {
        dst,
        dst_strides: [dst_s0 as isize, dst_s1 as isize],
        src,
        src_strides: [src_s0 as isize, src_s1 as isize],
        n: [n0 as usize, n1 as usize],
        size: size as usize,
    };
    // SAFETY: the caller's.
    unsafe { copy.run(Kernels::here(), hints) }
}

/// A copy with at least one element.
#[derive(Copy, Clone)]
pub(crate) struct Copy2d {
    pub dst: *mut u8,
    pub dst_strides: [isize; 2],
    pub src: *const u8,
    pub src_strides: [isize; 2],
    pub n: [usize; 2],
    pub size: usize,
}

impl Copy2d {
    pub unsafe fn run(mut self, kernels: &Kernels, hints: i64) {
        if hints & (NEXT_0 | NEXT_1) != 0 {
            self.prefetch(hints);
        }
        // Axis 1 is to be the one along which the destination is contiguous. One element is no row.
        let contiguous =
            |axis: usize| self.dst_strides[axis] == self.size as isize && self.n[axis] > 1;
        if contiguous(0) && !contiguous(1) {
            self.dst_strides.reverse();
            self.src_strides.reverse();
            self.n.reverse();
        }
        let size = self.size as isize;
        let stream = hints & STREAM != 0;
        // SAFETY: the caller's.
        unsafe {
            match self.src_strides {
                _ if self.dst_strides[1] != size => self.singly(),
                [_, s1] if s1 == size => self.rows(kernels, stream),
                [_, 0] => self.broadcast(kernels, stream),
                [s0, _] if s0 == size => self.transpose(kernels, stream),
                _ => self.singly(),
            }
        }
        if stream {
            fence();
        }
    }

    unsafe fn rows(mut self, kernels: &Kernels, stream: bool) {
        let bytes = self.n[1] * self.size;
        if self.dst_strides[0] == bytes as isize && self.src_strides[0] == bytes as isize {
            self.n = [1, self.n[0] * self.n[1]];
        }
        let bytes = self.n[1] * self.size;
        let rows = Rows {
            dst: self.dst,
            dst_row: self.dst_strides[0],
            src: self.src,
            src_row: self.src_strides[0],
            rows: self.n[0],
            bytes,
        };
        // SAFETY: the caller's.
        unsafe { kernels.rows[usize::from(stream && bytes >= LINE)](&rows) }
    }

    unsafe fn broadcast(mut self, kernels: &Kernels, stream: bool) {
        let bytes = self.n[1] * self.size;
        let apart = self.dst_strides[0].unsigned_abs() >= bytes;
        // SAFETY: the caller's; the rows are apart where one is copied to another.
        unsafe {
            if self.src_strides[0] != 0 || !apart {
                return self.singly();
            }
            let first = self.dst;
            Copy2d { n: [1, self.n[1]], ..self }.singly();
            self.n[0] -= 1;
            if self.n[0] > 0 {
                self.dst = self.dst.wrapping_offset(self.dst_strides[0]);
                self.src = first;
                self.rows(kernels, stream);
            }
        }
    }

    unsafe fn transpose(self, kernels: &Kernels, stream: bool) {
        let kernel = kernels.transpose[self.size.trailing_zeros() as usize & 3];
        let part = |from: usize, to: usize, stream: bool| Transpose {
            dst: self.dst.wrapping_add(from * self.size),
            dst_line: self.dst_strides[0],
            dst_lines: self.n[0],
            src: self.src.wrapping_offset(self.src_strides[1].wrapping_mul(from as isize)),
            src_line: self.src_strides[1],
            src_lines: to - from,
            stream,
        };
        // Elements before the first boundary of a cache line, if that is the same in all lines.
        let bytes = self.dst.addr().wrapping_neg() % LINE;
        let head = bytes / self.size;
        let per_line = LINE / self.size;
        let aligned = self.dst_strides[0] % LINE as isize == 0
            && bytes.is_multiple_of(self.size)
            && head < self.n[1];
        // SAFETY: the caller's; what is streamed is whole cache lines.
        unsafe {
            if !stream || !aligned || self.n[1] - head < per_line {
                return kernel(&part(0, self.n[1], false));
            }
            let tail = head + (self.n[1] - head) / per_line * per_line;
            kernel(&part(0, head, false));
            kernel(&part(head, tail, true));
            kernel(&part(tail, self.n[1], false));
        }
    }

    unsafe fn singly(self) {
        // SAFETY: the caller's.
        unsafe {
            match self.size {
                1 => self.elements::<u8>(),
                2 => self.elements::<u16>(),
                4 => self.elements::<u32>(),
                _ => self.elements::<u64>(),
            }
        }
    }

    /// One element at a time; where that is one element many times, in registers.
    unsafe fn elements<T: Copy>(self) {
        let (mut dst, mut src) = (self.dst, self.src);
        let [d1, s1] = [self.dst_strides[1], self.src_strides[1]];
        for _ in 0..self.n[0] {
            let (mut to, mut from) = (dst, src);
            // SAFETY: the caller's.
            unsafe {
                if s1 == 0 && d1 == size_of::<T>() as isize {
                    let x = src.cast::<T>().read_unaligned();
                    for j in 0..self.n[1] {
                        dst.cast::<T>().wrapping_add(j).write_unaligned(x);
                    }
                } else {
                    for _ in 0..self.n[1] {
                        to.cast::<T>().write_unaligned(from.cast::<T>().read_unaligned());
                        to = to.wrapping_offset(d1);
                        from = from.wrapping_offset(s1);
                    }
                }
            }
            dst = dst.wrapping_offset(self.dst_strides[0]);
            src = src.wrapping_offset(self.src_strides[0]);
        }
    }

    /// Asks for what the next call will read, so that it arrives while this one works: tiles of a
    /// matrix are many short lines far apart, which a processor does not foresee.
    fn prefetch(&self, hints: i64) {
        let size = self.size as isize;
        let Some(axis) = self.src_strides.iter().position(|&s| s == size) else { return };
        let step = |axis: usize| self.src_strides[axis].wrapping_mul(self.n[axis] as isize);
        let ahead = step(if hints & NEXT_0 != 0 { 0 } else { 1 });
        let bytes = self.n[axis] * self.size;
        let mut line = self.src.wrapping_offset(ahead);
        for _ in 0..self.n[1 - axis] {
            for x in (0..bytes).step_by(LINE) {
                dispatch::prefetch_far(line.wrapping_add(x));
            }
            line = line.wrapping_offset(self.src_strides[1 - axis]);
        }
    }
}

/// Makes stores past the caches visible before whatever is stored after.
fn fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every such processor has it.
    unsafe {
        std::arch::x86_64::_mm_sfence()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::Level;
    use crate::testing::{Buffer, Place, Random};

    /// Copies random bytes from one place to the other at all levels and compares all of the destination's
    /// buffer with a copy by single elements.
    fn check(random: &mut Random, n: [usize; 2], size: usize, from: Place, to: Place, hints: i64) {
        let src = random.bytes(from.len);
        let before = random.bytes(to.len);
        let mut want = before.clone();
        for i in 0..n[0] {
            for j in 0..n[1] {
                want[to.at(i, j)..][..size].copy_from_slice(&src[from.at(i, j)..][..size]);
            }
        }
        for level in Level::available() {
            let (mut src, mut dst) = (Buffer::new(&src), Buffer::new(&before));
            let copy = Copy2d {
                dst: dst.at(to.base),
                dst_strides: to.strides,
                src: src.at(from.base),
                src_strides: from.strides,
                n,
                size,
            };
            // SAFETY: the buffers hold both boxes.
            unsafe { copy.run(Kernels::of(level), hints) };
            assert!(
                dst.bytes() == want,
                "{level:?} {n:?} of {size}, {from:?} to {to:?}, hints {hints}"
            );
        }
    }

    const EXTENTS: &[usize] = &[1, 2, 3, 4, 7, 8, 13, 15, 16, 17, 31, 32, 33, 64, 67, 128];

    #[test]
    fn boxes_with_any_strides() {
        let mut random = Random::new(1);
        for round in 0..6000 {
            let size = 1 << (round % 4);
            let n = [random.pick(EXTENTS), random.pick(EXTENTS)];
            let from = Place::random(&mut random, n, size, true);
            let to = Place::random(&mut random, n, size, false);
            let hints = random.below(8) as i64;
            check(&mut random, n, size, from, to, hints);
        }
    }

    #[test]
    fn long_rows() {
        let mut random = Random::new(2);
        for bytes in [2048, 4095, 4096, 5001, 20_000] {
            for rows in [1, 3] {
                for hints in [0, STREAM] {
                    let n = [rows, bytes];
                    let from = Place::random(&mut random, n, 1, false);
                    let to = Place::random(&mut random, n, 1, false);
                    check(&mut random, n, 1, from, to, hints);
                }
            }
        }
    }

    #[test]
    fn nothing_is_touched_where_an_extent_is_not_positive() {
        for (n0, n1) in [(0, 5), (5, 0), (-1, 5), (3, i64::MIN)] {
            let null = std::ptr::null_mut();
            // SAFETY: there are no elements.
            unsafe { copy2d(null, 4, 4, null, 4, 4, n0, n1, 4, STREAM | NEXT_0) };
        }
    }

    #[test]
    fn one_of_several_elements_at_an_address_wins() {
        for strides in [[0, 4], [4, 0], [0, 0], [4, 4]] {
            let src: Vec<u32> = (100..150).collect();
            let mut dst = [0u32; 64];
            // SAFETY: the elements lie within the arrays.
            unsafe {
                let dst = dst.as_mut_ptr().cast();
                copy2d(dst, strides[0], strides[1], src.as_ptr().cast(), 20, 4, 10, 5, 4, STREAM);
            }
            let written = dst.iter().filter(|&&x| x != 0).count();
            let expected = if strides == [4, 4] {
                14
            } else {
                (strides[0] / 4 * 9 + strides[1] / 4 * 4 + 1) as usize
            };
            assert_eq!(written, expected, "{strides:?}");
            assert!(dst.iter().all(|x| *x == 0 || src.contains(x)), "{strides:?}");
        }
    }
}
