//! Memory of dense tiles: shared buffers that return to a pool of their thread.
//!
//! A program allocates and frees many buffers of few sizes, so a freed one is handed out again while
//! it is still in cache.

use std::cell::RefCell;
use std::rc::Rc;

/// Bytes that a thread's pool keeps at most.
const POOL_BYTES: usize = 16 << 20;

#[derive(Default)]
struct Pool {
    /// Free buffers by the logarithm of their capacity in words.
    free: Vec<Vec<Vec<u64>>>,
    bytes: usize,
}

thread_local! {
    static POOL: RefCell<Pool> = RefCell::default();
}

/// Words, so that any element type is aligned.
struct Buffer(Vec<u64>);

impl Drop for Buffer {
    fn drop(&mut self) {
        let words = std::mem::take(&mut self.0);
        let bytes = words.capacity() * 8;
        if !words.capacity().is_power_of_two() {
            return;
        }
        // The pool is gone while a thread ends; the buffer is then simply freed.
        let _ = POOL.try_with(|pool| {
            let mut pool = pool.borrow_mut();
            if pool.bytes + bytes <= POOL_BYTES {
                let class = words.capacity().trailing_zeros() as usize;
                if pool.free.len() <= class {
                    pool.free.resize_with(class + 1, Vec::new);
                }
                pool.free[class].push(words);
                pool.bytes += bytes;
            }
        });
    }
}

/// A type whose every bit pattern that a slab of it holds is valid.
///
/// # Safety
///
/// Implementors have no padding and accept any bytes; `bool` does not, and a slab read as `bool`
/// holds only what was written as `bool` or zeros.
pub unsafe trait Plain: Copy + 'static {}

macro_rules! plain {
    ($($t:ty),*) => { $( unsafe impl Plain for $t {} )* };
}
plain!(bool, i8, i16, i32, i64, u8, u16, u32, u64, f32, f64);

/// Lanes of a tile in row-major order. Cloning shares.
#[derive(Clone)]
pub struct Slab(Rc<Buffer>);

impl Slab {
    /// A buffer for `count` elements of `T`, filled by `fill`. It may hold old values before.
    pub fn build<T: Plain>(count: usize, fill: impl FnOnce(&mut [T])) -> Slab {
        let words = (count * size_of::<T>()).div_ceil(8).max(1).next_power_of_two();
        let class = words.trailing_zeros() as usize;
        let pooled = POOL.with(|pool| {
            let mut pool = pool.borrow_mut();
            let found = pool.free.get_mut(class).and_then(Vec::pop);
            if found.is_some() {
                pool.bytes -= words * 8;
            }
            found
        });
        let mut buffer = Buffer(pooled.unwrap_or_else(|| {
            let mut fresh = Vec::with_capacity(words);
            fresh.resize(words, 0);
            fresh
        }));
        if std::any::TypeId::of::<T>() == std::any::TypeId::of::<bool>() {
            buffer.0[..words].fill(0);
        }
        // SAFETY: the buffer has room for `count` elements, is aligned to 8 bytes, and `T` is plain.
        let slice = unsafe { std::slice::from_raw_parts_mut(buffer.0.as_mut_ptr().cast::<T>(), count) };
        fill(slice);
        Slab(Rc::new(buffer))
    }

    pub fn filled<T: Plain>(count: usize, value: T) -> Slab {
        Slab::build(count, |out| out.fill(value))
    }

    /// The first `count` elements.
    pub fn lanes<T: Plain>(&self, count: usize) -> &[T] {
        assert!(count * size_of::<T>() <= self.0.0.len() * 8, "a slab is read past its end");
        // SAFETY: in bounds by the assertion, aligned, initialized when it was built.
        unsafe { std::slice::from_raw_parts(self.0.0.as_ptr().cast::<T>(), count) }
    }
}
