//! Compiled kernels, and launches of them.
//!
//! ```text
//!   arguments -> slots ------+
//!   programs, in chunks ---->+--> machine code --> ended | a guard failed: which one, and where
//!     over the pool's threads      |
//!                                  +--> calls of the runtime: the context
//! ```
//!
//! Programs that may wait for one another go one by one, by way of [`waiting`].

use crate::clif::{self, Machine};
use crate::dist::{Distributed, Param, SiteInfo, distribute, plan};
use crate::facts::Facts;
use crate::runtime::fiber::Turn;
use crate::runtime::waiting::{self, End};
use crate::runtime::{pool, table};
use crate::wide::Level;
use naiad_diag::Diagnostic;
use naiad_ir::tile::Tile;
use naiad_ir::{Function, Inst};
use smallvec::SmallVec;
use std::cell::Cell;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

/// A kernel as machine code, for arguments of which the facts hold.
pub struct Code {
    machine: Machine,
    params: Vec<Param>,
    sites: Vec<SiteInfo>,
    /// About how many vectors a program computes; none if it loops.
    work: Option<u64>,
}

/// Vectors that are computed in some ten microseconds.
const SHORT: u64 = 20_000;

/// Bytes of an output from which its stores go past the cache: they will have left it before anybody
/// reads them.
const STREAMED: usize = 16 << 20;

/// Bytes of an argument from which what is read of it comes from beyond the cache, as a rule. Sums of rows
/// gain by asking ahead from 28 MiB on where the cache has 32, and lose up to 16.
const FAR: usize = 24 << 20;

/// Vectors that are computed between two looks at whether to stop: some milliseconds.
const SLICE: u64 = 1 << 22;

/// An argument.
#[derive(Clone, Debug)]
pub enum Arg {
    /// Bits of the parameter's type, zero-extended.
    Scalar(u64),
    /// Memory: the address that the kernel gets, the addresses that it may touch, and whether it may
    /// write them.
    Tensor { address: usize, storage: Range<usize>, writable: bool },
}

/// What compiled code leaves to whoever launches it.
pub trait Host: Sync {
    /// Does what an op does: buffers of its operands, then of its results, in row-major order, an `i1`
    /// as a byte. False ends the launch; the host knows why.
    ///
    /// # Safety
    ///
    /// The buffers have the sizes that the site's types say.
    unsafe fn run(&self, inst: Inst, program: u64, worker: usize, buffers: &[*mut u8]) -> bool;
}

/// How a launch ended.
#[derive(Clone, PartialEq, Debug)]
pub enum Outcome {
    Ended,
    /// It was asked to stop, or its host did.
    Stopped,
    Fault(Fault),
    /// These programs wait for values that nobody writes, each where this op asks for one.
    Deadlock(Vec<(u64, Inst)>),
    /// So many programs wait for others, and so many have not started: there is no room for more.
    Full {
        waiting: u64,
        unstarted: u64,
    },
}

/// What a kernel did wrong, in the first of its programs that did.
#[derive(Clone, PartialEq, Debug)]
pub struct Fault {
    pub site: SiteInfo,
    pub program: u64,
    /// In row-major order.
    pub lane: u64,
    pub address: u64,
}

/// What calls of the runtime know of the launch.
pub struct Context<'a> {
    sites: &'a [SiteInfo],
    args: &'a [Arg],
    host: &'a dyn Host,
    worker: usize,
    /// Of a program that may wait for others.
    turn: Option<&'a Turn<'a>>,
    /// The memory that the last read, and the last write, was found to be in: where the next lane is as
    /// a rule.
    last: [Cell<(usize, usize)>; 2],
}

/// The flag of a launch that nobody interrupts.
static NEVER: AtomicBool = AtomicBool::new(false);

/// How a launch runs.
#[derive(Copy, Clone, Default)]
pub struct Options<'a> {
    /// Threads over which programs are spread; 0 means as many as there are cores.
    pub threads: usize,
    /// Asked again and again whether to stop the launch.
    pub interrupt: Option<&'a (dyn Fn() -> bool + Sync)>,
    /// Loops stop where this is set, which `interrupt` then says too.
    pub flag: Option<&'a AtomicBool>,
}

impl Code {
    /// Compiles a verified kernel. An error is a fault of ours.
    pub fn new(func: &Function<Tile>, facts: &Facts) -> Result<Code, Box<Diagnostic>> {
        Code::with(Level::host(), func, facts)
    }

    /// Compiles a verified kernel with loops over such vectors beside Cranelift's code, or none.
    pub fn with(
        wide: Option<Level>,
        func: &Function<Tile>,
        facts: &Facts,
    ) -> Result<Code, Box<Diagnostic>> {
        let Distributed { func: loops, params, sites } =
            distribute(func, facts, Level::vector_bytes(wide))?;
        if cfg!(debug_assertions) {
            naiad_ir::verify(&loops)?;
        }
        let position = |p: Param| params.iter().position(|&have| have == p);
        let (past_cache, far) = (position(Param::Stream), position(Param::Far));
        let options = clif::Options { wide, past_cache, far };
        let machine = clif::write_with(options, &loops, table::table())?;
        Ok(Code { machine, params, sites, work: plan::work(func) })
    }

    /// Bytes of machine code.
    pub fn code_bytes(&self) -> usize {
        self.machine.code_bytes()
    }

    /// Whether a launch of so many programs surely takes less than some ten microseconds.
    pub fn is_short(&self, programs: u64) -> bool {
        self.work.is_some_and(|w| w.saturating_mul(programs) < SHORT)
    }

    /// Runs the programs of a grid.
    ///
    /// # Safety
    ///
    /// The facts hold of the arguments. Their storage is valid for reads, and for writes where they may
    /// be written, until this returns.
    pub unsafe fn launch(
        &self,
        grid: [u32; 3],
        args: &[Arg],
        host: &dyn Host,
        options: &Options<'_>,
    ) -> Outcome {
        let total = grid.iter().fold(1u64, |n, &g| n.saturating_mul(u64::from(g)));
        if total == 0 {
            return Outcome::Ended;
        }
        let threads = match options.threads {
            0 => pool::cores(),
            n => n,
        };
        let stop = AtomicU8::new(0);
        let interrupt = options.interrupt;
        let fault = Mutex::new(None);
        let flag = options.flag.unwrap_or(&NEVER);
        let run = Run { code: self, grid, args, host, stop: &stop, interrupt, flag, fault };
        let end = if self.waits() {
            // SAFETY: as promised to this function.
            unsafe { run.waiting(total, threads) }
        } else {
            // SAFETY: as promised to this function.
            unsafe { run.all(total, threads) }
        };
        let fault = run.fault.into_inner().unwrap_or_else(PoisonError::into_inner);
        match (fault, end) {
            (Some(fault), _) => Outcome::Fault(fault),
            (None, End::Ended) => Outcome::Ended,
            (None, End::Stopped) => Outcome::Stopped,
            (None, End::Full { waiting, unstarted }) => Outcome::Full { waiting, unstarted },
            (None, End::Deadlock(waiting)) => {
                let at = |(program, site): (u64, u32)| match self.sites.get(site as usize) {
                    Some(SiteInfo::Wait { inst }) => Some((program, *inst)),
                    _ => None,
                };
                Outcome::Deadlock(waiting.into_iter().filter_map(at).collect())
            }
        }
    }

    /// Whether programs may wait for one another.
    fn waits(&self) -> bool {
        self.sites.iter().any(|site| matches!(site, SiteInfo::Wait { .. }))
    }
}

/// One launch.
struct Run<'a> {
    code: &'a Code,
    grid: [u32; 3],
    args: &'a [Arg],
    host: &'a dyn Host,
    stop: &'a AtomicU8,
    interrupt: Option<&'a (dyn Fn() -> bool + Sync)>,
    flag: &'a AtomicBool,
    fault: Mutex<Option<Fault>>,
}

impl Run<'_> {
    fn asked_to_stop(&self) -> bool {
        if self.interrupt.is_some_and(|asks| asks()) {
            self.stop.store(1, Ordering::Relaxed);
        }
        self.stop.load(Ordering::Relaxed) != 0
    }

    /// Runs programs that wait for no others, each as far as it goes.
    ///
    /// # Safety
    ///
    /// As for [`Code::launch`].
    unsafe fn all(&self, total: u64, threads: usize) -> End {
        // Between slices somebody looks whether the launch is to stop.
        let slice = self.code.work.map_or(64, |w| (SLICE / w.max(1)).clamp(16, SLICE));
        let job = |programs: Range<u64>, worker: usize| {
            let mut at = programs.start;
            while at < programs.end {
                let end = programs.end.min(at.saturating_add(slice));
                // SAFETY: as promised to this function.
                if self.asked_to_stop() || !unsafe { self.programs(at..end, worker, None) } {
                    return false;
                }
                at = end;
            }
            true
        };
        let ended = if threads == 1 || total == 1 || self.code.is_short(total) {
            job(0..total, 0)
        } else {
            pool::run(threads, total, 1, &job)
        };
        if ended { End::Ended } else { End::Stopped }
    }

    /// Runs programs that may wait for one another.
    ///
    /// # Safety
    ///
    /// As for [`Code::launch`].
    unsafe fn waiting(&self, total: u64, threads: usize) -> End {
        let machine = &self.code.machine;
        waiting::run(&waiting::Grid {
            total,
            threads,
            stack_bytes: machine.stack_bytes(),
            scratch_bytes: machine.frame_bytes(),
            stopped: &|| self.asked_to_stop(),
            job: &|program, worker, turn| {
                // SAFETY: as promised to this function.
                unsafe { self.programs(program..program + 1, worker, Some(turn)) };
            },
        })
    }

    /// Runs some programs, in their order; whether the launch goes on.
    ///
    /// # Safety
    ///
    /// As for [`Code::launch`].
    unsafe fn programs(
        &self,
        programs: Range<u64>,
        worker: usize,
        turn: Option<&Turn<'_>>,
    ) -> bool {
        let (sites, last) = (&*self.code.sites, Default::default());
        let context = Context { sites, args: self.args, host: self.host, worker, turn, last };
        let slots = self.slots(&programs, &context);
        let mut report = clif::Report::default();
        let ended = with_frame(self.code.machine.frame_bytes(), |frame| {
            // SAFETY: slots are made after the code's own parameters, and the frame has its size; the
            // memory of arguments is the caller's promise, and nothing else is touched.
            unsafe { self.code.machine.run(slots.as_ptr(), frame, &mut report) }
        });
        if self.streams() {
            order_stores();
        }
        if ended {
            return true;
        }
        self.stop.store(1, Ordering::Relaxed);
        let site = self.code.sites.get(report.site as usize);
        if let Some(site) = site.filter(|s| !s.stops_only()) {
            let [program, lane, address, _] = report.values.map(|v| v as u64);
            let fault = Fault { site: site.clone(), program, lane, address };
            let mut first = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
            if first.as_ref().is_none_or(|f| f.program > program) {
                *first = Some(fault);
            }
        }
        false
    }

    /// Whether some argument that may be written is larger than the cache.
    fn streams(&self) -> bool {
        self.args.iter().any(|arg| match arg {
            Arg::Tensor { storage, writable, .. } => *writable && storage.len() >= STREAMED,
            Arg::Scalar(_) => false,
        })
    }

    /// Whether some argument lies beyond the cache.
    fn reads_far(&self) -> bool {
        self.args.iter().any(|arg| match arg {
            Arg::Tensor { storage, .. } => storage.len() >= FAR,
            Arg::Scalar(_) => false,
        })
    }

    fn slots(&self, programs: &Range<u64>, context: &Context<'_>) -> SmallVec<[u64; 32]> {
        let [x, y, _] = self.grid.map(u64::from);
        let first = programs.start;
        let coordinates = [first % x, first / x % y, first / x / y];
        // No memory lies there, so that every address is outside.
        let nowhere = u64::MAX;
        let storage = |i: usize, write: bool| match &self.args[i] {
            Arg::Tensor { storage, writable, .. }
                if storage.start != 0 && !storage.is_empty() && (*writable || !write) =>
            {
                (storage.start as u64, storage.end as u64)
            }
            _ => (nowhere, nowhere),
        };
        let slot = |&p: &Param| match p {
            Param::Arg(i) => match &self.args[i] {
                Arg::Scalar(bits) => *bits,
                Arg::Tensor { address, .. } => *address as u64,
            },
            Param::ReadFrom(i) => storage(i, false).0,
            Param::ReadTo(i) => storage(i, false).1,
            Param::WriteFrom(i) => storage(i, true).0,
            Param::WriteTo(i) => storage(i, true).1,
            Param::Grid(d) => u64::from(self.grid[d]),
            Param::First(d) => coordinates[d],
            Param::Number => first,
            Param::Count => programs.end - programs.start,
            Param::Context => (&raw const *context).addr() as u64,
            Param::Stream => u64::from(self.streams()),
            Param::Far => u64::from(self.reads_far()),
            Param::Interrupt => self.flag.as_ptr().addr() as u64,
            Param::Stop => self.stop.as_ptr().addr() as u64,
            Param::Writes => context.turn.map_or(0, |turn| turn.writes.as_ptr().addr() as u64),
        };
        let mut slots = SmallVec::new();
        for param in &self.code.params {
            slots.push(slot(param));
        }
        slots
    }
}

impl Context<'_> {
    /// Whether an access of this site may touch the element at the address, whatever it was made from.
    pub(crate) fn may_access(&self, site: u32, address: usize) -> bool {
        let Some(SiteInfo::Access { elem, write, .. }) = self.sites.get(site as usize) else {
            return false;
        };
        let Some(end) = address.checked_add(elem.size()) else { return false };
        let holds = |(from, to): (usize, usize)| from <= address && end <= to;
        let last = &self.last[usize::from(*write)];
        if holds(last.get()) {
            return true;
        }
        let memory = |arg: &Arg| match arg {
            Arg::Tensor { storage, writable, .. } => {
                let may = storage.start != 0 && (*writable || !*write);
                Some((storage.start, storage.end)).filter(|memory| may && holds(*memory))
            }
            Arg::Scalar(_) => None,
        };
        let Some(found) = self.args.iter().find_map(memory) else { return false };
        last.set(found);
        true
    }

    /// # Safety
    ///
    /// `table` holds an address for each buffer of the site.
    pub(crate) unsafe fn host(&self, site: u32, program: u64, table: *const *mut u8) -> bool {
        let Some(SiteInfo::Host { inst, buffers, clock }) = self.sites.get(site as usize) else {
            return false;
        };
        // SAFETY: the caller's promise.
        let buffers = unsafe { std::slice::from_raw_parts(table, buffers.len()) };
        // SAFETY: compiled code gives buffers of the sizes of the site's types.
        let run = || unsafe { self.host.run(*inst, program, self.worker, buffers) };
        let Some(turn) = self.turn else { return run() };
        turn.clocks.set(turn.clocks.get() + u64::from(*clock));
        // SAFETY: a host knows nothing of turns.
        unsafe { turn.on_worker(run) }
    }

    /// Whether a program goes on whose loop at this site has come to the end of a round.
    pub(crate) fn wait(&self, site: u32, same: bool) -> bool {
        self.turn.is_none_or(|turn| turn.wait(site, same))
    }
}

/// Sees that stores past the cache are done before whatever this thread does next.
fn order_stores() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the instruction has no conditions.
    unsafe {
        std::arch::x86_64::_mm_sfence()
    }
}

/// Frames up to this size are kept for the thread's next launch.
const KEPT: usize = 4 << 20;

/// Scratch memory for one run. A program that waits within it keeps it, and what runs meanwhile gets another.
fn with_frame<T>(bytes: usize, run: impl FnOnce(*mut u8) -> T) -> T {
    thread_local! {
        static FRAME: Cell<Frame> = const { Cell::new(Frame::EMPTY) };
    }
    let mut frame = FRAME.take();
    if frame.bytes < bytes {
        frame = Frame::new(bytes);
    }
    let out = run(frame.start);
    if frame.bytes <= KEPT {
        FRAME.set(frame);
    }
    out
}

struct Frame {
    /// Where scratch memory is in what was allocated.
    start: *mut u8,
    bytes: usize,
}

/// A page of memory: addresses that differ by whole ones look alike to a load behind a store, until all
/// of their bits are compared.
const PAGE: usize = 4096;

impl Frame {
    const EMPTY: Frame = Frame { start: std::ptr::null_mut(), bytes: 0 };

    /// What is allocated for a frame, and where in it the frame begins.
    ///
    /// A loop that goes along a large array and a tile in scratch memory loads the array's next elements
    /// behind stores to the tile. Where they are a little ahead in their page of where the tile is in its
    /// own, each load waits for a store that it has nothing to do with: sums of rows take up to 1.6 times
    /// as long. Large arrays begin where pages do, so tiles of a page begin in the middle of one. Less
    /// than a page stays where it comes to be, since of many programs that wait each has a frame.
    fn layout(bytes: usize) -> (std::alloc::Layout, usize) {
        let (align, skip) = if bytes >= PAGE { (PAGE, PAGE / 2) } else { (64, 0) };
        // Sizes of scratch memory are sums of tile sizes, far below the limit.
        let layout = std::alloc::Layout::from_size_align(bytes + skip, align);
        (layout.unwrap_or(std::alloc::Layout::new::<u64>()), skip)
    }

    fn new(bytes: usize) -> Frame {
        let (layout, skip) = Frame::layout(bytes);
        // SAFETY: the size is not 0: a frame is made only where more is wanted than there is.
        let memory = unsafe { std::alloc::alloc(layout) };
        if memory.is_null() {
            std::alloc::handle_alloc_error(layout);
        }
        // SAFETY: so much was allocated before the frame's own bytes.
        Frame { start: unsafe { memory.add(skip) }, bytes }
    }
}

impl Default for Frame {
    fn default() -> Frame {
        Frame::EMPTY
    }
}

impl Drop for Frame {
    fn drop(&mut self) {
        if self.bytes > 0 {
            let (layout, skip) = Frame::layout(self.bytes);
            // SAFETY: made by `new` with this layout, and the start is so far behind the memory's.
            unsafe { std::alloc::dealloc(self.start.sub(skip), layout) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{PAGE, with_frame};

    #[test]
    fn tiles_of_a_page_begin_in_the_middle_of_one() {
        for bytes in [64, PAGE - 64, PAGE, 3 * PAGE + 64, 8 << 20] {
            with_frame(bytes, |start| {
                let at = start.addr();
                assert_eq!(at % 64, 0);
                assert!(bytes < PAGE || at % PAGE == PAGE / 2, "{bytes}");
                // SAFETY: the frame has so many bytes.
                unsafe { start.write_bytes(1, bytes) };
            });
        }
    }
}
