//! Operands as microkernels want them: converted to their elements, in rows without gaps.

use super::micro::Family;
use crate::convert::{self, NARROW};
use crate::copy::Copy2d;
use crate::dispatch::Kernels as All;
use naiad_ir::Scalar;
use naiad_ir::scalar::{Rounding, cast_bits};

/// A matrix of `k` and one axis of its own (`m` or `n`).
#[derive(Copy, Clone)]
pub(super) struct Operand {
    pub at: *const u8,
    pub ty: Scalar,
    pub size: usize,
    /// In bytes, along its own axis.
    pub own: isize,
    /// In bytes, along `k`.
    pub k: isize,
}

/// From elements in memory to those of a family.
#[derive(Copy, Clone)]
pub(super) enum Conversion {
    /// They are the same.
    None,
    /// One for one.
    Row(convert::Row),
    /// Two of consecutive `k` make one.
    Pairs(&'static Pairs),
    /// One for one and one at a time, for types that nobody is in a hurry with.
    Single { from: Scalar, to: Scalar },
}

/// How halves of pairs are made, and whether any of them is not to be multiplied in this way.
pub(crate) struct Pairs {
    /// `(dst, src, n)`: so many halves in a row.
    pub halves: unsafe fn(*mut u8, *const u8, usize) -> bool,
    /// `(dst, first, second, n)`: so many pairs, halves of which are in two rows.
    pub zip: unsafe fn(*mut u8, *const u8, *const u8, usize) -> bool,
}

/// The conversions of a level.
pub(crate) struct Kernels {
    pub i8: Pairs,
    pub u8: Pairs,
    pub bf16: Pairs,
}

/// What an operand's block has become; strides in bytes.
#[derive(Copy, Clone)]
pub(super) struct Packed {
    pub at: *const u8,
    pub own: isize,
    pub step: isize,
    /// Whether a half of a pair is not to be multiplied as such.
    pub unfit: bool,
}

/// Where blocks are put. `second` has room for the block in the operand's own type.
#[derive(Copy, Clone)]
pub(super) struct Scratch {
    pub first: *mut u8,
    pub second: *mut u8,
}

impl Operand {
    pub fn new(at: *const u8, ty: Scalar, own: isize, k: isize) -> Operand {
        Operand { at, ty, size: ty.size(), own, k }
    }

    /// The operand from element `(own, k)` on.
    pub fn from(&self, own: usize, k: usize) -> Operand {
        let offset =
            self.own.wrapping_mul(own as isize).wrapping_add(self.k.wrapping_mul(k as isize));
        Operand { at: self.at.wrapping_offset(offset), ..*self }
    }

    /// The elements where they are.
    pub fn here(&self) -> Packed {
        Packed { at: self.at, own: self.own, step: self.k, unfit: false }
    }

    pub fn contiguous_along_own(&self) -> bool {
        self.own == self.size as isize
    }

    /// Puts a block of `own x k` elements in rows along `k`, one for each of `own`.
    pub unsafe fn pack_lines(
        &self,
        kernels: &All,
        conversion: Conversion,
        [own, k]: [usize; 2],
        family: &Family,
        scratch: Scratch,
    ) -> Packed {
        let mut unfit = false;
        let steps = conversion.steps(k);
        let line = steps * family.size;
        // SAFETY: the caller's; the scratch has room.
        unsafe {
            match conversion {
                Conversion::None => {
                    self.copy(
                        kernels,
                        [own, k],
                        scratch.first,
                        [line as isize, self.size as isize],
                    );
                }
                Conversion::Single { from, to } => {
                    self.singly([from, to], [own, k], scratch.first, [line, family.size]);
                }
                Conversion::Row(_) | Conversion::Pairs(_) if self.k != self.size as isize => {
                    let row = k as isize * self.size as isize;
                    self.copy(kernels, [own, k], scratch.second, [row, self.size as isize]);
                    let copy =
                        Operand { at: scratch.second, own: row, k: self.size as isize, ..*self };
                    return copy.pack_lines(kernels, conversion, [own, k], family, scratch);
                }
                Conversion::Row(row) => {
                    for i in 0..own {
                        row(scratch.first.wrapping_add(i * line), self.from(i, 0).at, k);
                    }
                }
                Conversion::Pairs(pairs) => {
                    for i in 0..own {
                        let to = scratch.first.wrapping_add(i * line);
                        if k % 2 == 1 {
                            // The pair that lacks its second half.
                            to.wrapping_add(line - 4).cast::<u32>().write_unaligned(0);
                        }
                        unfit |= (pairs.halves)(to, self.from(i, 0).at, k);
                    }
                }
            }
        }
        Packed { at: scratch.first, own: line as isize, step: family.size as isize, unfit }
    }

    /// Puts a block of `own x k` elements in rows along its own axis, one for each step of `k`, each
    /// filled up with zeros to `full` elements.
    pub unsafe fn pack_steps(
        &self,
        kernels: &All,
        conversion: Conversion,
        [own, k]: [usize; 2],
        family: &Family,
        full: usize,
        scratch: Scratch,
    ) -> Packed {
        let mut unfit = false;
        let steps = conversion.steps(k);
        let (used, line) = (own * family.size, full * family.size);
        let step_at = |s: usize| scratch.first.wrapping_add(s * line);
        // SAFETY: the caller's; the scratch has room.
        unsafe {
            match conversion {
                Conversion::None => {
                    self.copy(
                        kernels,
                        [own, k],
                        scratch.first,
                        [self.size as isize, line as isize],
                    );
                }
                Conversion::Single { from, to } => {
                    self.singly([from, to], [own, k], scratch.first, [family.size, line]);
                }
                Conversion::Row(_) | Conversion::Pairs(_) if !self.contiguous_along_own() => {
                    let row = own as isize * self.size as isize;
                    self.copy(kernels, [own, k], scratch.second, [self.size as isize, row]);
                    let copy =
                        Operand { at: scratch.second, own: self.size as isize, k: row, ..*self };
                    return copy.pack_steps(kernels, conversion, [own, k], family, full, scratch);
                }
                Conversion::Row(row) => {
                    for s in 0..steps {
                        row(step_at(s), self.from(0, s).at, own);
                    }
                }
                Conversion::Pairs(pairs) => {
                    // The second half of a pair that lacks it.
                    const ZEROS: &[u8] = &[0; 2 * super::MAX_OWN];
                    for s in 0..steps {
                        let first = self.from(0, 2 * s).at;
                        let second =
                            if 2 * s + 1 < k { self.from(0, 2 * s + 1).at } else { ZEROS.as_ptr() };
                        unfit |= (pairs.zip)(step_at(s), first, second, own);
                    }
                }
            }
            if used < line {
                for s in 0..steps {
                    step_at(s).wrapping_add(used).write_bytes(0, line - used);
                }
            }
        }
        Packed { at: scratch.first, own: family.size as isize, step: line as isize, unfit }
    }

    unsafe fn copy(&self, kernels: &All, n: [usize; 2], dst: *mut u8, dst_strides: [isize; 2]) {
        let src_strides = [self.own, self.k];
        let size = self.size;
        let copy = Copy2d { dst, dst_strides, src: self.at, src_strides, n, size };
        // SAFETY: the caller's.
        unsafe { copy.run(kernels, 0) }
    }

    unsafe fn singly(
        &self,
        [from, to]: [Scalar; 2],
        [own, k]: [usize; 2],
        dst: *mut u8,
        dst_strides: [usize; 2],
    ) {
        for i in 0..own {
            for s in 0..k {
                let at = dst.wrapping_add(i * dst_strides[0] + s * dst_strides[1]);
                // SAFETY: the caller's.
                unsafe {
                    let image = read(self.from(i, s).at, from.size());
                    write(at, to.size(), cast_bits(from, to, Rounding::Nearest, image));
                }
            }
        }
    }
}

/// The image of an element of so many bytes.
unsafe fn read(at: *const u8, size: usize) -> u64 {
    // SAFETY: the caller's.
    unsafe {
        match size {
            1 => u64::from(at.read()),
            2 => u64::from(at.cast::<u16>().read_unaligned()),
            4 => u64::from(at.cast::<u32>().read_unaligned()),
            _ => at.cast::<u64>().read_unaligned(),
        }
    }
}

/// Writes the image of an element of 4 or 8 bytes.
unsafe fn write(at: *mut u8, size: usize, image: u64) {
    // SAFETY: the caller's.
    unsafe {
        match size {
            4 => at.cast::<u32>().write_unaligned(image as u32),
            _ => at.cast::<u64>().write_unaligned(image),
        }
    }
}

impl Conversion {
    /// How many elements of the family `k` elements are.
    pub fn steps(&self, k: usize) -> usize {
        match self {
            Conversion::Pairs(_) => k.div_ceil(2),
            Conversion::None | Conversion::Row(_) | Conversion::Single { .. } => k,
        }
    }

    /// To elements of type `to`, which is f32, f64 or i32.
    pub fn to(kernels: &All, from: Scalar, to: Scalar) -> Conversion {
        if from == to {
            return Conversion::None;
        }
        match NARROW.iter().position(|&ty| ty == from) {
            Some(place) if to == Scalar::F32 => Conversion::Row(kernels.convert.widen[place]),
            _ => Conversion::Single { from, to },
        }
    }
}

/// An element that is half of a pair.
trait Half: Copy {
    /// In the low 16 bits.
    fn wide(self) -> u32;
    /// Whether a pair of it is not to be multiplied as such.
    fn unfit(self) -> bool;
}

impl Half for i8 {
    #[inline(always)]
    fn wide(self) -> u32 {
        u32::from(i16::from(self) as u16)
    }

    #[inline(always)]
    fn unfit(self) -> bool {
        false
    }
}

impl Half for u8 {
    #[inline(always)]
    fn wide(self) -> u32 {
        u32::from(self)
    }

    #[inline(always)]
    fn unfit(self) -> bool {
        false
    }
}

/// A bf16.
impl Half for u16 {
    #[inline(always)]
    fn wide(self) -> u32 {
        u32::from(self)
    }

    #[inline(always)]
    fn unfit(self) -> bool {
        // Subnormal: the instruction takes it for 0.
        (self & 0x7fff).wrapping_sub(1) < 0x7f
    }
}

#[inline(always)]
unsafe fn halves<H: Half>(dst: *mut u8, src: *const u8, n: usize) -> bool {
    let mut unfit = false;
    for i in 0..n {
        // SAFETY: the caller's.
        unsafe {
            let x = src.cast::<H>().wrapping_add(i).read_unaligned();
            unfit |= x.unfit();
            dst.cast::<u16>().wrapping_add(i).write_unaligned(x.wide() as u16);
        }
    }
    unfit
}

#[inline(always)]
unsafe fn zip<H: Half>(dst: *mut u8, first: *const u8, second: *const u8, n: usize) -> bool {
    let mut unfit = false;
    for i in 0..n {
        // SAFETY: the caller's.
        unsafe {
            let x = first.cast::<H>().wrapping_add(i).read_unaligned();
            let y = second.cast::<H>().wrapping_add(i).read_unaligned();
            unfit |= x.unfit() | y.unfit();
            let (low, high) = if cfg!(target_endian = "big") { (y, x) } else { (x, y) };
            dst.cast::<u32>().wrapping_add(i).write_unaligned(low.wide() | high.wide() << 16);
        }
    }
    unfit
}

macro_rules! pairs {
    ($half:ident #[$compile:meta]) => {{
        #[$compile]
        unsafe fn in_rows(dst: *mut u8, src: *const u8, n: usize) -> bool {
            // SAFETY: the caller's.
            unsafe { halves::<$half>(dst, src, n) }
        }
        #[$compile]
        unsafe fn zipped(dst: *mut u8, first: *const u8, second: *const u8, n: usize) -> bool {
            // SAFETY: the caller's.
            unsafe { zip::<$half>(dst, first, second, n) }
        }
        Pairs { halves: in_rows, zip: zipped }
    }};
}

macro_rules! kernels {
    ($name:ident: #[$compile:meta]) => {
        pub(crate) static $name: Kernels = Kernels {
    i8: pairs!(i8 #[$compile]),
    u8: pairs!(u8 #[$compile]),
    bf16: pairs!(u16 #[$compile]),
        };
    };
}

kernels! { PORTABLE: #[inline(never)] }
#[cfg(target_arch = "x86_64")]
kernels! { AVX2: #[target_feature(enable = "avx2")] }
#[cfg(target_arch = "x86_64")]
kernels! { AVX512: #[target_feature(enable = "avx512f,avx512bw,avx512vl")] }
