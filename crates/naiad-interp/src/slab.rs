//! Memory of dense tiles: reference-counted slabs out of a pool of the thread.
//!
//! ```text
//!   Slab ──> Head (references, size class) | 64 bytes further: the elements, aligned to 64
//! ```
//!
//! A tile's size is a power of two, so a slab's size class is its size and free slabs are kept by
//! class, last in first out: the next tile gets memory that is still in the cache. Slabs never leave
//! their thread, hence counting needs no atomics. Memory is zeroed when it comes from the system and
//! not again, so every byte of a slab is initialized, though with old numbers.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::cell::{Cell, RefCell};
use std::ptr::NonNull;

const HEAD: usize = 64;
const CLASSES: usize = 32;
const MIN_CLASS: u32 = 6;

#[repr(C, align(64))]
struct Head {
    references: Cell<usize>,
    class: u32,
}

/// A block of bytes with shared ownership inside one thread.
pub struct Slab(NonNull<Head>);

struct Pool {
    free: [Vec<NonNull<Head>>; CLASSES],
    held: usize,
    limit: usize,
}

thread_local! {
    static POOL: RefCell<Pool> =
        const { RefCell::new(Pool { free: [const { Vec::new() }; CLASSES], held: 0, limit: 0 }) };
}

/// Sets how many bytes of free slabs this thread keeps, and frees what is beyond.
pub fn set_pool_limit(bytes: usize) {
    POOL.with_borrow_mut(|pool| {
        pool.limit = bytes;
        for class in (0..CLASSES).rev() {
            while pool.held > pool.limit {
                let Some(head) = pool.free[class].pop() else { break };
                pool.held -= 1 << class;
                // SAFETY: a slab in the pool has no owner.
                unsafe { release(head) };
            }
        }
    });
}

impl Drop for Pool {
    fn drop(&mut self) {
        for head in self.free.iter_mut().flat_map(std::mem::take) {
            // SAFETY: a slab in the pool has no owner.
            unsafe { release(head) };
        }
    }
}

fn layout(class: u32) -> Layout {
    // The class is at most that of the largest tile, so neither sum nor rounding overflows.
    Layout::from_size_align(HEAD + (1 << class), 64).unwrap_or(Layout::new::<Head>())
}

unsafe fn release(head: NonNull<Head>) {
    // SAFETY: allocated by `Slab::new` with the layout of its class.
    unsafe {
        let class = head.as_ref().class;
        dealloc(head.as_ptr().cast(), layout(class));
    }
}

impl Slab {
    /// A slab of at least `bytes` bytes with any content.
    pub fn new(bytes: usize) -> Slab {
        let class = bytes.next_power_of_two().trailing_zeros().max(MIN_CLASS);
        assert!((class as usize) < CLASSES, "a tile of {bytes} bytes");
        let reused = POOL.try_with(|pool| {
            let mut pool = pool.borrow_mut();
            let head = pool.free[class as usize].pop()?;
            pool.held -= 1 << class;
            Some(head)
        });
        if let Ok(Some(head)) = reused {
            // SAFETY: a slab in the pool has no owner, and its head is initialized.
            unsafe { head.as_ref() }.references.set(1);
            return Slab(head);
        }
        let layout = layout(class);
        // SAFETY: the layout's size is not 0; the head is written before it is read.
        unsafe {
            let raw = alloc_zeroed(layout).cast::<Head>();
            let Some(head) = NonNull::new(raw) else { handle_alloc_error(layout) };
            head.write(Head { references: Cell::new(1), class });
            Slab(head)
        }
    }

    pub fn as_ptr(&self) -> *const u8 {
        self.as_mut_ptr()
    }

    /// The elements, to be written by whoever made the slab, before it is shared.
    pub fn as_mut_ptr(&self) -> *mut u8 {
        // SAFETY: the elements follow the head in the same allocation.
        unsafe { self.0.as_ptr().cast::<u8>().add(HEAD) }
    }

    /// Whether two are the same memory.
    pub fn same(&self, other: &Slab) -> bool {
        self.0 == other.0
    }
}

impl Clone for Slab {
    fn clone(&self) -> Slab {
        // SAFETY: the head lives as long as a reference to it.
        let references = &unsafe { self.0.as_ref() }.references;
        references.set(references.get() + 1);
        Slab(self.0)
    }
}

impl Drop for Slab {
    fn drop(&mut self) {
        // SAFETY: the head lives as long as a reference to it.
        let head = unsafe { self.0.as_ref() };
        let left = head.references.get() - 1;
        head.references.set(left);
        if left > 0 {
            return;
        }
        let class = head.class;
        let kept = POOL.try_with(|pool| {
            let mut pool = pool.borrow_mut();
            let fits = pool.held + (1 << class) <= pool.limit;
            if fits {
                pool.held += 1 << class;
                pool.free[class as usize].push(self.0);
            }
            fits
        });
        if kept != Ok(true) {
            // SAFETY: that was the last reference.
            unsafe { release(self.0) };
        }
    }
}
