//! Operands as microkernels want them: converted to their elements, in rows without gaps.

use super::micro::Family;
use crate::convert::{self, NARROW, Rows};
use crate::copy::Copy2d;
use crate::dispatch::Kernels as All;
use crate::word::Word;
#[cfg(target_arch = "x86_64")]
use crate::word::{Ymm, Zmm};
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
    Rows(convert::Kernel),
    /// Two of consecutive `k` make one.
    Pairs(&'static Pairs),
    /// One for one and one at a time, for types that nobody is in a hurry with.
    Single { from: Scalar, to: Scalar },
}

/// How pairs are made, and whether any of their halves is not to be multiplied in this way.
#[derive(Copy, Clone)]
pub(crate) struct Pairs {
    /// Halves, one for one.
    pub halves: unsafe fn(&Rows) -> bool,
    /// Rows of pairs, first halves from the source's rows, and second ones from others as far apart.
    pub zip: unsafe fn(&Rows, *const u8) -> bool,
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
        let line = conversion.steps(k) * family.size;
        let rows = Rows {
            dst: scratch.first,
            dst_row: line as isize,
            src: self.at,
            src_row: self.own,
            rows: own,
            n: k,
        };
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
                Conversion::Rows(_) | Conversion::Pairs(_) if self.k != self.size as isize => {
                    let row = k as isize * self.size as isize;
                    self.copy(kernels, [own, k], scratch.second, [row, self.size as isize]);
                    let copy =
                        Operand { at: scratch.second, own: row, k: self.size as isize, ..*self };
                    return copy.pack_lines(kernels, conversion, [own, k], family, scratch);
                }
                Conversion::Rows(convert) => convert(&rows),
                Conversion::Pairs(pairs) => {
                    if k % 2 == 1 {
                        // Pairs that lack their second half.
                        for i in 1..=own {
                            scratch.first.wrapping_add(i * line - 4).write_bytes(0, 4);
                        }
                    }
                    unfit = (pairs.halves)(&rows);
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
        let rows = |s: usize, rows: usize| Rows {
            dst: step_at(s),
            dst_row: line as isize,
            src: self.from(0, s).at,
            src_row: self.k,
            rows,
            n: own,
        };
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
                Conversion::Rows(_) | Conversion::Pairs(_) if !self.contiguous_along_own() => {
                    let row = own as isize * self.size as isize;
                    self.copy(kernels, [own, k], scratch.second, [self.size as isize, row]);
                    let copy =
                        Operand { at: scratch.second, own: self.size as isize, k: row, ..*self };
                    return copy.pack_steps(kernels, conversion, [own, k], family, full, scratch);
                }
                Conversion::Rows(convert) => convert(&rows(0, k)),
                Conversion::Pairs(pairs) => {
                    let whole = Rows { src_row: 2 * self.k, ..rows(0, k / 2) };
                    unfit = (pairs.zip)(&whole, self.from(0, 1).at);
                    if k % 2 == 1 {
                        // Pairs that lack their second half.
                        const ZEROS: &[u8] = &[0; 2 * super::MAX_OWN];
                        let last = Rows { dst: step_at(k / 2), ..rows(k - 1, 1) };
                        unfit |= (pairs.zip)(&last, ZEROS.as_ptr());
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
            Conversion::None | Conversion::Rows(_) | Conversion::Single { .. } => k,
        }
    }

    /// To elements of type `to`, which is f32, f64 or i32.
    pub fn to(kernels: &All, from: Scalar, to: Scalar) -> Conversion {
        if from == to {
            return Conversion::None;
        }
        match NARROW.iter().position(|&ty| ty == from) {
            Some(place) if to == Scalar::F32 => Conversion::Rows(kernels.convert.widen[place]),
            _ => Conversion::Single { from, to },
        }
    }
}

/// An element that is half of a pair.
trait Half {
    const SIZE: usize;

    /// Words whose low 16 bits are the halves.
    unsafe fn load<W: Word>(at: *const u8) -> W;
    /// Words that are not 0 where a half is not to be multiplied as such.
    unsafe fn unfit<W: Word>(x: W) -> W;
}

impl Half for i8 {
    const SIZE: usize = 1;

    #[inline(always)]
    unsafe fn load<W: Word>(at: *const u8) -> W {
        // SAFETY: the caller's.
        unsafe { W::load8_signed(at).and(W::splat(0xffff)) }
    }

    #[inline(always)]
    unsafe fn unfit<W: Word>(_: W) -> W {
        // SAFETY: the caller's.
        unsafe { W::splat(0) }
    }
}

impl Half for u8 {
    const SIZE: usize = 1;

    #[inline(always)]
    unsafe fn load<W: Word>(at: *const u8) -> W {
        // SAFETY: the caller's.
        unsafe { W::load8(at) }
    }

    #[inline(always)]
    unsafe fn unfit<W: Word>(_: W) -> W {
        // SAFETY: the caller's.
        unsafe { W::splat(0) }
    }
}

struct Bf16;

impl Half for Bf16 {
    const SIZE: usize = 2;

    #[inline(always)]
    unsafe fn load<W: Word>(at: *const u8) -> W {
        // SAFETY: the caller's.
        unsafe { W::load16(at) }
    }

    #[inline(always)]
    unsafe fn unfit<W: Word>(x: W) -> W {
        // SAFETY: the caller's.
        unsafe {
            // Subnormal: the instruction takes it for 0.
            let magnitude = x.and(W::splat(0x7fff));
            W::select(magnitude.lt(W::splat(0x80)), magnitude, W::splat(0))
        }
    }
}

/// Halves in rows, as [`convert::each_row`] would make them; whether any is unfit.
#[inline(always)]
unsafe fn halves<W: Word, H: Half>(t: &Rows) -> bool {
    let (mut dst, mut src) = (t.dst, t.src);
    // SAFETY: the caller's.
    unsafe {
        let (mut unfit, mut unfit_rest) = (W::splat(0), 0u32);
        for _ in 0..t.rows {
            let (mut to, mut from) = (dst, src);
            let mut left = t.n;
            while left >= W::LANES {
                let x = H::load::<W>(from);
                unfit = unfit.or(H::unfit(x));
                x.store16(to);
                (to, from) = (to.wrapping_add(W::LANES * 2), from.wrapping_add(W::LANES * H::SIZE));
                left -= W::LANES;
            }
            for _ in 0..left {
                let x = H::load::<u32>(from);
                unfit_rest |= H::unfit(x);
                x.store16(to);
                (to, from) = (to.wrapping_add(2), from.wrapping_add(H::SIZE));
            }
            dst = dst.wrapping_offset(t.dst_row);
            src = src.wrapping_offset(t.src_row);
        }
        unfit.any() | unfit_rest.any()
    }
}

/// Pairs in rows; whether any half is unfit.
#[inline(always)]
unsafe fn zip<W: Word, H: Half>(t: &Rows, mut second: *const u8) -> bool {
    let (mut dst, mut first) = (t.dst, t.src);
    // SAFETY: the caller's.
    unsafe {
        let (mut unfit, mut unfit_rest) = (W::splat(0), 0u32);
        for _ in 0..t.rows {
            let mut i = 0;
            while i + W::LANES <= t.n {
                let x = H::load::<W>(first.wrapping_add(i * H::SIZE));
                let y = H::load::<W>(second.wrapping_add(i * H::SIZE));
                unfit = unfit.or(H::unfit(x)).or(H::unfit(y));
                pair(x, y).store32(dst.wrapping_add(i * 4));
                i += W::LANES;
            }
            for i in i..t.n {
                let x = H::load::<u32>(first.wrapping_add(i * H::SIZE));
                let y = H::load::<u32>(second.wrapping_add(i * H::SIZE));
                unfit_rest |= H::unfit(x) | H::unfit(y);
                pair(x, y).store32(dst.wrapping_add(i * 4));
            }
            dst = dst.wrapping_offset(t.dst_row);
            first = first.wrapping_offset(t.src_row);
            second = second.wrapping_offset(t.src_row);
        }
        unfit.any() | unfit_rest.any()
    }
}

/// Pairs as they lie in memory.
#[inline(always)]
unsafe fn pair<W: Word>(x: W, y: W) -> W {
    let (low, high) = if cfg!(target_endian = "big") { (y, x) } else { (x, y) };
    // SAFETY: the caller's.
    unsafe { low.or(high.shl(16)) }
}

macro_rules! pairs {
    ($word:ident $half:ident #[$compile:meta]) => {{
        #[$compile]
        unsafe fn in_rows(rows: &Rows) -> bool {
            // SAFETY: the caller's.
            unsafe { halves::<$word, $half>(rows) }
        }
        #[$compile]
        unsafe fn zipped(rows: &Rows, second: *const u8) -> bool {
            // SAFETY: the caller's.
            unsafe { zip::<$word, $half>(rows, second) }
        }
        Pairs { halves: in_rows, zip: zipped }
    }};
}

macro_rules! kernels {
    ($name:ident: $word:ident, #[$compile:meta]) => {
        pub(crate) static $name: Kernels = Kernels {
    i8: pairs!($word i8 #[$compile]),
    u8: pairs!($word u8 #[$compile]),
    bf16: pairs!($word Bf16 #[$compile]),
        };
    };
}

kernels! { PORTABLE: u32, #[inline(never)] }
#[cfg(target_arch = "x86_64")]
kernels! { AVX2: Ymm, #[target_feature(enable = "avx2")] }

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use super::*;
    use std::arch::x86_64::*;

    kernels! { WORDS: Zmm, #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")] }

    /// The product of pairs of bf16 is so fast that making them in words takes a fifth of the time.
    pub(crate) static AVX512: Kernels = Kernels {
        i8: WORDS.i8,
        u8: WORDS.u8,
        bf16: Pairs { halves: bf16_in_rows, zip: bf16_zipped },
    };

    const LANES: usize = 32;

    /// The next lanes of a row, and which of them there are.
    #[inline(always)]
    unsafe fn load(at: *const u8, left: usize) -> (__m512i, __mmask32) {
        let mask = u32::MAX >> (LANES - left.min(LANES));
        // SAFETY: the caller's; lanes beyond are not read.
        (unsafe { _mm512_maskz_loadu_epi16(mask, at.cast()) }, mask)
    }

    /// Lanes that are subnormal.
    #[inline(always)]
    unsafe fn unfit(x: __m512i) -> __mmask32 {
        // SAFETY: the caller's.
        unsafe {
            let no_exponent = _mm512_testn_epi16_mask(x, _mm512_set1_epi16(0x7f80));
            _mm512_mask_test_epi16_mask(no_exponent, x, _mm512_set1_epi16(0x7f))
        }
    }

    #[target_feature(enable = "avx512f,avx512bw")]
    unsafe fn bf16_in_rows(t: &Rows) -> bool {
        let (mut dst, mut src) = (t.dst, t.src);
        let mut all = 0;
        for _ in 0..t.rows {
            let mut i = 0;
            while i < t.n {
                // SAFETY: the caller's.
                unsafe {
                    let (x, mask) = load(src.wrapping_add(2 * i), t.n - i);
                    all |= unfit(x);
                    _mm512_mask_storeu_epi16(dst.wrapping_add(2 * i).cast(), mask, x);
                }
                i += LANES;
            }
            dst = dst.wrapping_offset(t.dst_row);
            src = src.wrapping_offset(t.src_row);
        }
        all != 0
    }

    #[target_feature(enable = "avx512f,avx512bw")]
    unsafe fn bf16_zipped(t: &Rows, mut second: *const u8) -> bool {
        let (mut dst, mut first) = (t.dst, t.src);
        let mut all = 0;
        // Words of a first and a second half, by their places in the two registers together.
        let pairs = |from: i32| {
            let mut at = [0i32; 16];
            for (i, at) in (from..).zip(&mut at) {
                *at = i | (i + LANES as i32) << 16;
            }
            // SAFETY: it has as many bytes.
            unsafe { _mm512_loadu_si512(at.as_ptr().cast()) }
        };
        let (low, high) = (pairs(0), pairs(16));
        for _ in 0..t.rows {
            let mut i = 0;
            while i < t.n {
                let left = t.n - i;
                // SAFETY: the caller's.
                unsafe {
                    let (x, mask) = load(first.wrapping_add(2 * i), left);
                    let (y, _) = load(second.wrapping_add(2 * i), left);
                    all |= unfit(x) | unfit(y);
                    let to = dst.wrapping_add(4 * i);
                    let words = _mm512_permutex2var_epi16(x, low, y);
                    _mm512_mask_storeu_epi32(to.cast(), mask as __mmask16, words);
                    if left > 16 {
                        let words = _mm512_permutex2var_epi16(x, high, y);
                        let mask = (mask >> 16) as __mmask16;
                        _mm512_mask_storeu_epi32(to.wrapping_add(64).cast(), mask, words);
                    }
                }
                i += LANES;
            }
            dst = dst.wrapping_offset(t.dst_row);
            first = first.wrapping_offset(t.src_row);
            second = second.wrapping_offset(t.src_row);
        }
        all != 0
    }
}

#[cfg(target_arch = "x86_64")]
pub(crate) use avx512::AVX512;
