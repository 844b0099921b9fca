//! A random kernel with its memory, run by the reference executor, for whoever must do the same.
//!
//! ```text
//!   | ... 32 GiB | argument's memory | 32 GiB ... | ... 32 GiB | another one's | 32 GiB ... |
//!      nobody may touch this       page              nobody may touch this
//! ```
//!
//! Each memory lies by itself, begins or ends with a page, and whoever leaves its pages crashes. So no
//! address that a kernel makes up leads into the memory of another argument, unless its offset is of 64
//! bits: what such a kernel does would depend on where its memory is. The addresses are the same each
//! time, as far as the system allows it, and so a seed that fails fails again.

use crate::common::{PLAIN, run};
use crate::generator::{INPUT, Random, images};
use crate::patience::{REFERENCE, patience};
use naiad_diag::{Diagnostic, Id};
use naiad_interp::{Arg, LaunchOptions, Multiply, TensorArg};
use naiad_ir::scalar::{Rounding, cast_bits};
use naiad_ir::tile::Tile;
use naiad_ir::{Function, Scalar};
use std::sync::Arc;

/// A kernel, and all that a launch of it needs.
pub struct Kernel {
    pub text: String,
    pub grid: [u32; 3],
    pub threads: usize,
    pub memories: Vec<Memory>,
    pub pointers: Vec<Pointer>,
    /// Arguments behind the pointers.
    pub numbers: Vec<u64>,
    /// What is compared; all the memory if there is nothing here.
    pub parts: Vec<Part>,
}

#[derive(Copy, Clone)]
pub struct Memory {
    pub bytes: usize,
    pub elem: Scalar,
    pub at_first: Contents,
}

#[derive(Copy, Clone, PartialEq, Eq)]
pub enum Contents {
    /// Small numbers.
    Small,
    /// Any bits.
    Any,
    Byte(u8),
}

/// An argument that is memory.
pub struct Pointer {
    pub elem: Scalar,
    /// Which memory, and how many bytes after its start the view begins.
    pub memory: usize,
    pub offset: usize,
    pub writable: bool,
}

/// Elements in a memory.
#[derive(Copy, Clone)]
pub struct Part {
    pub memory: usize,
    pub elem: Scalar,
    /// In bytes.
    pub at: usize,
    pub count: usize,
}

/// Not a multiple of the programs that share a block of a GPU.
const PROGRAMS: usize = 3;

/// A kernel of values: each of its programs writes all of them.
pub fn of_values(seed: u64, kind: crate::generator::Kind) -> Kernel {
    let (text, stored, bytes) = crate::generator::generate(seed, kind);
    let part = |program: usize, &(elem, at, count): &(Scalar, usize, usize)| Part {
        memory: 1,
        elem,
        at: program * bytes + at,
        count,
    };
    let parts = (0..PROGRAMS).flat_map(|p| stored.iter().map(move |s| part(p, s))).collect();
    let memory = |bytes, at_first| Memory { bytes, elem: Scalar::I8, at_first };
    let pointer = |memory, offset, writable| Pointer { elem: Scalar::I8, memory, offset, writable };
    Kernel {
        text,
        grid: [PROGRAMS as u32, 1, 1],
        threads: 1,
        memories: vec![
            memory(INPUT, Contents::Any),
            memory(bytes * PROGRAMS, Contents::Byte(0x55)),
        ],
        pointers: vec![pointer(0, INPUT / 4, false), pointer(1, 0, true)],
        numbers: vec![13],
        parts,
    }
}

impl Kernel {
    fn parts(&self) -> Vec<Part> {
        if !self.parts.is_empty() {
            return self.parts.clone();
        }
        let all = self.memories.iter().enumerate();
        let whole = |(memory, m): (usize, &Memory)| Part {
            memory,
            elem: m.elem,
            at: 0,
            count: m.bytes / m.elem.size(),
        };
        all.map(whole).collect()
    }
}

/// A kernel on its way through the executors.
pub struct Trial<'k> {
    pub args: Vec<Arg>,
    pub grid: [u32; 3],
    kernel: &'k Kernel,
    memories: Apart,
    fresh: Vec<Vec<u8>>,
    expected: Vec<Vec<u8>>,
}

impl<'k> Trial<'k> {
    pub fn new(kernel: &'k Kernel, grid: [u32; 3]) -> Trial<'k> {
        let all = kernel.memories.iter().enumerate();
        let fresh: Vec<Vec<u8>> = all.map(|(i, m)| contents(m, i as u64 * 77)).collect();
        let sizes: Vec<usize> = kernel.memories.iter().map(|m| m.bytes).collect();
        let memories = Apart::new(&sizes, kernel.text.len());
        let mut args = Vec::new();
        for p in &kernel.pointers {
            let start = memories.starts[p.memory];
            args.push(Arg::Tensor(TensorArg {
                address: start + p.offset,
                storage: start..start + kernel.memories[p.memory].bytes,
                view: None,
                writable: p.writable,
            }));
        }
        args.extend(kernel.numbers.iter().map(|&bits| Arg::Scalar(bits)));
        Trial { args, grid, kernel, memories, fresh, expected: Vec::new() }
    }

    /// Runs the kernel, or what is left of it, by the reference executor, in an order of its own or in this
    /// one.
    pub fn expect(
        &mut self,
        func: &Arc<Function<Tile>>,
        in_order: Option<Multiply>,
    ) -> Result<(), Box<Diagnostic>> {
        self.reset();
        let patience = patience(REFERENCE);
        let options = LaunchOptions { interrupt: Some(&patience), in_order, ..PLAIN };
        let ran = run(func, self.grid, &self.args, &options);
        self.expected = self.memories.contents();
        ran.map(|_| ())
    }

    /// Whether the reference executor was stopped, which says nothing of the kernel.
    pub fn took_long(ran: &Result<(), Box<Diagnostic>>) -> bool {
        ran.as_ref().is_err_and(|d| d.id == Id::Interrupted)
    }

    /// All memory as it was.
    pub fn reset(&mut self) {
        self.memories.fill(&self.fresh);
    }

    /// What is in memory now must be what the reference executor left there.
    pub fn compare(&self, how: &str) -> Result<(), String> {
        if let Some(memory) = self.memories.left() {
            return Err(format!("wrote beside an argument\nmemory {memory}, {how}"));
        }
        let now = self.memories.contents();
        for (i, p) in self.kernel.parts().into_iter().enumerate() {
            let elements = |all: &[Vec<u8>]| images(&all[p.memory][p.at..], p.elem, p.count);
            let (x, y) = (elements(&self.expected), elements(&now));
            let Some(at) = (0..x.len()).find(|&at| x[at] != y[at]) else { continue };
            let differ = (0..x.len()).filter(|&at| x[at] != y[at]).count();
            let pointers: Vec<_> =
                self.kernel.pointers.iter().map(|p| (p.memory, p.offset)).collect();
            return Err(format!(
                "other memory\npart {i}, {} of {} in memory {} at {}: element {at} is {:x} and became {:x}, {differ} differ; {how}; numbers {:?}, grid {:?}, pointers {pointers:?}",
                p.count, p.elem, p.memory, p.at, x[at], y[at], self.kernel.numbers, self.grid,
            ));
        }
        Ok(())
    }
}

fn contents(memory: &Memory, seed: u64) -> Vec<u8> {
    let mut r = Random(seed | 1);
    let size = memory.elem.size();
    let one = |_| {
        let bits = match memory.at_first {
            Contents::Byte(byte) => u64::from_ne_bytes([byte; 8]),
            Contents::Any => r.next(),
            Contents::Small => {
                let x = (r.next() % 17) as i64 - 8;
                cast_bits(Scalar::I64, memory.elem, Rounding::Nearest, x as u64)
            }
        };
        bits.to_le_bytes().into_iter().take(size)
    };
    (0..memory.bytes / size).flat_map(one).collect()
}

/// Memories far from one another.
struct Apart {
    /// All that is reserved.
    start: usize,
    reserved: usize,
    /// Where each memory starts, and the pages that hold it.
    starts: Vec<usize>,
    sizes: Vec<usize>,
    pages: Vec<(usize, usize)>,
}

/// No offset of 32 bits passes this, in elements of any type.
const APART: usize = 1 << 36;

/// Where the reservation begins, if the system has nothing there.
const WISHED: usize = 0x2000_0000_0000;

/// What is beside a memory in its pages.
const BESIDE: u8 = 0xa5;

impl Apart {
    /// `variant` chooses how memories lie in their pages.
    fn new(sizes: &[usize], variant: usize) -> Apart {
        let reserved = APART * sizes.len();
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: new memory at a place that the system chooses.
        let start =
            unsafe { libc::mmap(WISHED as *mut _, reserved, libc::PROT_NONE, flags, -1, 0) };
        assert_ne!(start, libc::MAP_FAILED, "no addresses are left");
        // SAFETY: a question.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        let start = start as usize;
        let (mut starts, mut pages) = (Vec::new(), Vec::new());
        for (i, &bytes) in sizes.iter().enumerate() {
            let first = start + i * APART + APART / 2;
            let length = bytes.next_multiple_of(page).max(page);
            let usable = libc::PROT_READ | libc::PROT_WRITE;
            // SAFETY: pages of the reservation.
            let done = unsafe { libc::mprotect(first as *mut _, length, usable) };
            assert_eq!(done, 0, "no memory is left");
            // SAFETY: these pages are usable now.
            unsafe { (first as *mut u8).write_bytes(BESIDE, length) };
            let room = length - bytes;
            let at = match (variant + i) % 3 {
                0 => 0,
                // Aligned for elements only.
                1 => 8.min(room / 8 * 8),
                _ => room / 8 * 8,
            };
            starts.push(first + at);
            pages.push((first, length));
        }
        Apart { start, reserved, starts, sizes: sizes.to_vec(), pages }
    }

    fn contents(&self) -> Vec<Vec<u8>> {
        let all = self.starts.iter().zip(&self.sizes);
        // SAFETY: usable memory, in which nobody writes now.
        all.map(|(&at, &n)| unsafe { std::slice::from_raw_parts(at as *const u8, n) }.to_vec())
            .collect()
    }

    fn fill(&mut self, with: &[Vec<u8>]) {
        for (&at, bytes) in self.starts.iter().zip(with) {
            // SAFETY: as much memory is there.
            unsafe { (at as *mut u8).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        }
    }

    /// The first memory beside which something was written.
    fn left(&self) -> Option<usize> {
        (0..self.starts.len()).find(|&i| {
            let (first, length) = self.pages[i];
            // SAFETY: usable memory, in which nobody writes now.
            let page = unsafe { std::slice::from_raw_parts(first as *const u8, length) };
            let at = self.starts[i] - first;
            let beside = page[..at].iter().chain(&page[at + self.sizes[i]..]);
            beside.copied().any(|byte| byte != BESIDE)
        })
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        // SAFETY: reserved by `new`.
        unsafe { libc::munmap(self.start as *mut _, self.reserved) };
    }
}
