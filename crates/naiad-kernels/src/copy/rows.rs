//! Copies of rows that are contiguous on both sides.

use super::LINE;

/// Rows of `bytes` bytes each; strides in bytes. A stride of the source may be 0.
#[derive(Copy, Clone)]
pub struct Rows {
    pub dst: *mut u8,
    pub dst_row: isize,
    pub src: *const u8,
    pub src_row: isize,
    pub rows: usize,
    pub bytes: usize,
}

/// Copies the rows. They may lie at any address; the two sides do not overlap.
pub type Kernel = unsafe fn(&Rows);

/// Copies through the caches, and past them.
pub type Kernels = [Kernel; 2];

/// A row this long is the C library's: it starts slower and knows more.
const LONG: usize = 4096;

/// Registers that copy.
trait Wide {
    const BYTES: usize;
    unsafe fn copy(dst: *mut u8, src: *const u8);
    /// The same past the caches; `dst` is aligned.
    unsafe fn stream(dst: *mut u8, src: *const u8);
}

#[inline(always)]
unsafe fn rows<W: Wide>(t: &Rows) {
    let (mut dst, mut src) = (t.dst, t.src);
    for _ in 0..t.rows {
        // SAFETY: the caller's.
        unsafe { row::<W>(dst, src, t.bytes) };
        dst = dst.wrapping_offset(t.dst_row);
        src = src.wrapping_offset(t.src_row);
    }
}

#[inline(always)]
unsafe fn row<W: Wide>(dst: *mut u8, src: *const u8, bytes: usize) {
    // SAFETY: the caller's.
    unsafe {
        if bytes >= LONG {
            return std::ptr::copy_nonoverlapping(src, dst, bytes);
        }
        if bytes < W::BYTES {
            return short(dst, src, bytes);
        }
        let mut at = 0;
        while at + W::BYTES <= bytes {
            W::copy(dst.wrapping_add(at), src.wrapping_add(at));
            at += W::BYTES;
        }
        if at < bytes {
            // The last bytes, some of them for the second time.
            let at = bytes - W::BYTES;
            W::copy(dst.wrapping_add(at), src.wrapping_add(at));
        }
    }
}

/// Fewer bytes than a register has: two overlapping pieces, or at 16 bytes and more a few.
#[inline(always)]
unsafe fn short(dst: *mut u8, src: *const u8, bytes: usize) {
    macro_rules! pieces {
        ($t:ty) => {{
            let size = size_of::<$t>();
            let mut at = 0;
            loop {
                let x = src.wrapping_add(at).cast::<$t>().read_unaligned();
                dst.wrapping_add(at).cast::<$t>().write_unaligned(x);
                if at + size == bytes {
                    return;
                }
                at = (at + size).min(bytes - size);
            }
        }};
    }
    // SAFETY: the caller's.
    unsafe {
        match bytes {
            0 => {}
            1 => pieces!(u8),
            2..4 => pieces!(u16),
            4..8 => pieces!(u32),
            8..16 => pieces!(u64),
            _ => pieces!(u128),
        }
    }
}

#[inline(always)]
unsafe fn streamed<W: Wide>(t: &Rows) {
    let (mut dst, mut src) = (t.dst, t.src);
    for _ in 0..t.rows {
        let head = (dst.addr().wrapping_neg() % LINE).min(t.bytes);
        let lines = (t.bytes - head) / LINE * LINE;
        let (mut to, mut from) = (dst.wrapping_add(head), src.wrapping_add(head));
        // SAFETY: the caller's.
        unsafe {
            row::<W>(dst, src, head);
            let end = to.wrapping_add(lines);
            while to != end {
                W::stream(to, from);
                to = to.wrapping_add(W::BYTES);
                from = from.wrapping_add(W::BYTES);
            }
            row::<W>(to, from, t.bytes - head - lines);
        }
        dst = dst.wrapping_offset(t.dst_row);
        src = src.wrapping_offset(t.src_row);
    }
}

macro_rules! kernels {
    ($name:ident: #[$compile:meta] $wide:ident($bytes:literal), $load:ident, $store:ident, $stream:ident) => {
        pub static $name: Kernels = {
            struct $wide;

            impl Wide for $wide {
                const BYTES: usize = $bytes;

                #[inline(always)]
                unsafe fn copy(dst: *mut u8, src: *const u8) {
                    // SAFETY: the caller's.
                    unsafe { $store(dst.cast(), $load(src.cast())) }
                }

                #[inline(always)]
                unsafe fn stream(dst: *mut u8, src: *const u8) {
                    // SAFETY: the caller's.
                    unsafe { $stream(dst.cast(), $load(src.cast())) }
                }
            }

            #[$compile]
            unsafe fn plain(t: &Rows) {
                // SAFETY: the caller's.
                unsafe { rows::<$wide>(t) }
            }

            #[$compile]
            unsafe fn past_caches(t: &Rows) {
                // SAFETY: the caller's.
                unsafe { streamed::<$wide>(t) }
            }

            [plain, past_caches]
        };
    };
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::*;
    use std::arch::x86_64::*;

    kernels! {
        PORTABLE: #[inline(never)]
        Sse(16), _mm_loadu_si128, _mm_storeu_si128, _mm_stream_si128
    }
    kernels! {
        AVX2: #[target_feature(enable = "avx2")]
        Avx(32), _mm256_loadu_si256, _mm256_storeu_si256, _mm256_stream_si256
    }
    kernels! {
        AVX512: #[target_feature(enable = "avx512f")]
        Zmm(64), _mm512_loadu_si512, _mm512_storeu_si512, _mm512_stream_si512
    }
}

#[cfg(target_arch = "x86_64")]
pub use x86::{AVX2, AVX512, PORTABLE};

#[cfg(not(target_arch = "x86_64"))]
mod other {
    use super::*;

    unsafe fn load(at: *const u128) -> u128 {
        // SAFETY: the caller's.
        unsafe { at.read_unaligned() }
    }

    unsafe fn store(at: *mut u128, x: u128) {
        // SAFETY: the caller's.
        unsafe { at.write_unaligned(x) }
    }

    kernels! { PORTABLE: #[inline(never)] Plain(16), load, store, store }
}

#[cfg(not(target_arch = "x86_64"))]
pub use other::PORTABLE;
