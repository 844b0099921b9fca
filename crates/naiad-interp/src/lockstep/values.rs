//! The values of a block's threads, side by side.
//!
//! A value of `n` lanes is `n` rows, one for each lane, of an element for each thread. So an elementwise
//! op is one loop over contiguous lanes, whatever the width of its vectors, and to take a lane out of a
//! vector, or to put scalars together to one, is to copy rows.

use super::mask::Mask;
use naiad_ir::Scalar;
use naiad_ir::thread::{ThreadElem, ThreadType};

/// Where a value lies.
#[derive(Copy, Clone, Debug)]
pub struct Slot {
    /// In bytes; a multiple of 64.
    at: usize,
    /// Bytes of an element.
    pub size: usize,
    /// Lanes of a vector, or of all the vectors of a register array.
    pub rows: usize,
}

/// Room for values.
pub struct Values {
    lines: Vec<Line>,
    threads: usize,
}

#[repr(C, align(64))]
#[derive(Copy, Clone)]
struct Line([u8; 64]);

/// Hands out slots for a number of threads.
pub struct Layout {
    pub threads: usize,
    pub bytes: usize,
}

impl Layout {
    pub fn slot(&mut self, ty: ThreadType) -> Slot {
        let (of, count) = match ty {
            ThreadType::Vector(v) => (v, 1),
            ThreadType::Regs { of, count } => (of, count),
        };
        let slot = Slot { at: self.bytes, size: of.elem.size(), rows: (of.lanes * count) as usize };
        self.bytes += (slot.size * slot.rows * self.threads).next_multiple_of(64);
        slot
    }
}

/// An unsigned number as wide as an element.
pub trait Word: Copy + PartialEq + 'static {
    fn image(self) -> u64;
    fn of(image: u64) -> Self;
}

macro_rules! words {
    ($($t:ty)*) => { $(
        impl Word for $t {
            #[inline(always)]
            fn image(self) -> u64 { self as u64 }
            #[inline(always)]
            fn of(image: u64) -> $t { image as $t }
        }
    )* };
}
words!(u8 u16 u32 u64);

/// Evaluates the body with `$T` as the word of `$size` bytes.
macro_rules! with_word {
    ($size:expr, $T:ident => $body:expr) => {
        match $size {
            1 => {
                type $T = u8;
                $body
            }
            2 => {
                type $T = u16;
                $body
            }
            4 => {
                type $T = u32;
                $body
            }
            _ => {
                type $T = u64;
                $body
            }
        }
    };
}
pub(super) use with_word;

impl Values {
    pub fn new(layout: &Layout) -> Values {
        Values {
            lines: vec![Line([0; 64]); layout.bytes.div_ceil(64).max(1)],
            threads: layout.threads,
        }
    }

    fn base(&self) -> *const u8 {
        self.lines.as_ptr().cast()
    }

    /// Lane `row` of every thread.
    pub fn row<T: Word>(&self, slot: Slot, row: usize) -> &[T] {
        assert!(size_of::<T>() == slot.size && row < slot.rows);
        // SAFETY: the layout gave the slot room for its rows, in lines of 64 bytes, so that rows are
        // aligned to their elements; any bytes are a word.
        unsafe {
            let at = self.base().add(slot.at + row * self.threads * slot.size);
            std::slice::from_raw_parts(at.cast(), self.threads)
        }
    }

    pub fn row_mut<T: Word>(&mut self, slot: Slot, row: usize) -> &mut [T] {
        assert!(size_of::<T>() == slot.size && row < slot.rows);
        let threads = self.threads;
        // SAFETY: as in `row`.
        unsafe {
            let at = self.lines.as_mut_ptr().cast::<u8>();
            let at = at.add(slot.at + row * threads * slot.size);
            std::slice::from_raw_parts_mut(at.cast(), threads)
        }
    }

    /// Where all the lanes of a value lie.
    pub fn start(&self, slot: Slot) -> *const u8 {
        // SAFETY: slots are inside.
        unsafe { self.base().add(slot.at) }
    }

    pub fn start_mut(&mut self, slot: Slot) -> *mut u8 {
        // SAFETY: slots are inside.
        unsafe { self.lines.as_mut_ptr().cast::<u8>().add(slot.at) }
    }

    /// Elements of all the lanes.
    pub fn len(&self, slot: Slot) -> usize {
        slot.rows * self.threads
    }

    /// All bytes of a value.
    pub fn bytes(&self, slot: Slot) -> &[u8] {
        // SAFETY: as in `row`.
        unsafe { std::slice::from_raw_parts(self.start(slot), self.len(slot) * slot.size) }
    }

    /// All bytes of two different values.
    pub fn bytes_and(&mut self, from: Slot, to: Slot) -> (&[u8], &mut [u8]) {
        assert!(from.at != to.at);
        let (n, m) = (self.len(from) * from.size, self.len(to) * to.size);
        // SAFETY: as in `row`; slots do not overlap.
        unsafe {
            let to = std::slice::from_raw_parts_mut(self.start_mut(to), m);
            (std::slice::from_raw_parts(self.start(from), n), to)
        }
    }

    pub fn fill(&mut self, slot: Slot, byte: u8) {
        let n = self.len(slot) * slot.size;
        // SAFETY: as in `row`.
        unsafe { self.start_mut(slot).write_bytes(byte, n) };
    }

    /// One lane of one thread.
    pub fn image(&self, slot: Slot, row: usize, thread: usize) -> u64 {
        with_word!(slot.size, T => self.row::<T>(slot, row)[thread].image())
    }

    pub fn set(&mut self, slot: Slot, row: usize, thread: usize, image: u64) {
        with_word!(slot.size, T => self.row_mut::<T>(slot, row)[thread] = T::of(image));
    }

    /// A lane of all threads, as integers of their type.
    pub fn integers(&self, slot: Slot, ty: Scalar, out: &mut [i64]) {
        let unused = 64 - ty.bits();
        with_word!(slot.size, T => {
            for (o, x) in out.iter_mut().zip(self.row::<T>(slot, 0)) {
                *o = (x.image() << unused) as i64 >> unused;
            }
        });
    }

    /// Copies lane `from.1` of one value to lane `to.1` of another, for these threads.
    pub fn copy_row(&mut self, from: (Slot, usize), to: (Slot, usize), mask: &Mask) {
        with_word!(to.0.size, T => {
            assert!(from.1 < from.0.rows && to.1 < to.0.rows && from.0.size == to.0.size);
            let (threads, size) = (self.threads, size_of::<T>());
            let (src, dst) = self.bytes_and(from.0, to.0);
            let src = &src[from.1 * threads * size..][..threads * size];
            let dst = &mut dst[to.1 * threads * size..][..threads * size];
            if mask.count() as usize == threads {
                dst.copy_from_slice(src);
            } else {
                for t in mask.threads() {
                    dst[t * size..][..size].copy_from_slice(&src[t * size..][..size]);
                }
            }
        });
    }

    /// Copies a value for these threads.
    pub fn copy(&mut self, from: Slot, to: Slot, mask: &Mask) {
        for row in 0..to.rows {
            self.copy_row((from, row), (to, row), mask);
        }
    }

    /// Rows `first..first + count` of one thread as bytes in memory.
    pub fn gather(&self, slot: Slot, first: usize, count: usize, thread: usize, out: &mut [u8]) {
        with_word!(slot.size, T => {
            for (row, place) in out.chunks_exact_mut(size_of::<T>()).take(count).enumerate() {
                let word = self.row::<T>(slot, first + row)[thread];
                place.copy_from_slice(&word.image().to_le_bytes()[..size_of::<T>()]);
            }
        });
    }

    /// The other way. A lane of `i1` is true if its byte is not 0.
    pub fn scatter(
        &mut self,
        slot: Slot,
        first: usize,
        elem: ThreadElem,
        thread: usize,
        bytes: &[u8],
    ) {
        let is_bool = elem == ThreadElem::Scalar(Scalar::I1);
        with_word!(slot.size, T => {
            for (row, place) in bytes.chunks_exact(size_of::<T>()).enumerate() {
                let mut image = [0; 8];
                image[..size_of::<T>()].copy_from_slice(place);
                let image = u64::from_le_bytes(image);
                let image = if is_bool { u64::from(image != 0) } else { image };
                self.row_mut::<T>(slot, first + row)[thread] = T::of(image);
            }
        });
    }
}
