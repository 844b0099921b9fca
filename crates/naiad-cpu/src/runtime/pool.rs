//! The threads that launches run on: started once, kept, and woken for each launch.
//!
//! ```text
//!   run --invitation in a slot each--> workers: take it | chunks until none is left | done
//!    |                                 (spin a while, then sleep until the next invitation)
//!    '--- chunks itself; takes back the invitations nobody took; waits for those who did
//!
//!   programs   | share of thread 0       | share of thread 1       | ...
//!   chunks     | half      | quarter | ..|     a thread takes its own share from the front, then
//!                                              helps with the others
//! ```
//!
//! Each thread has the same share in each launch of a size, so what one launch left in a core's cache
//! the next one finds there: a launch that streams through a cache's worth takes up to twice as long
//! where programs change threads, since their lines then come from the other core's cache.
//!
//! The calling thread never waits for a worker to wake up: if it has done all the work by then, it
//! takes the invitation back. So a short launch costs what it costs on one thread, and one whose
//! workers still spin costs well under a microsecond more.
//!
//! One launch has the workers at a time. Another one at the same time, from a second thread or from
//! within a job, runs on its own thread alone, and so nothing can wait in a circle. After a `fork` the
//! child has none of the threads and may have copied the pool in any state: it makes a new one.

use smallvec::SmallVec;
use std::any::Any;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::null_mut;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::thread::{self, Thread};

/// What runs programs: a range of them, on the worker of this number. False stops the launch.
pub type Job<'a> = dyn Fn(Range<u64>, usize) -> bool + Sync + 'a;

/// Runs programs `0..total` on at most `threads` threads, the calling one among them.
///
/// They are handed out in chunks, large ones first; all but the last begin and end at multiples of
/// `grain`. The number that the job gets is below `threads`, and no two of its calls at one time have
/// the same. Once it returns false no chunk is begun, and the result is false. A panic in the job is
/// raised here, after all threads have stopped.
pub fn run(threads: usize, total: u64, grain: u64, job: &Job<'_>) -> bool {
    let grain = grain.max(1);
    let chunks = usize::try_from(total.div_ceil(grain)).unwrap_or(usize::MAX);
    let threads = threads.clamp(1, MAX_THREADS).min(chunks.max(1));
    if threads > 1 {
        let pool = Pool::current();
        // Whoever holds the lock has the workers; see above for why nobody waits for it.
        let workers = match pool.workers.try_lock() {
            Ok(workers) => Some(workers),
            Err(TryLockError::Poisoned(workers)) => Some(workers.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        };
        if let Some(mut workers) = workers {
            return run_on(&mut workers, threads, total, grain, job);
        }
    }
    let launch = Launch::new(1, total, grain, job);
    launch.work(0);
    launch.outcome()
}

/// More threads than any machine has cores; a greater number is a mistake of the caller.
pub const MAX_THREADS: usize = 1024;

/// Turns of the loop in which a thread waits before it sleeps. A turn is the processor's pause of 40 to
/// 140 cycles, so this is 60 to 250 microseconds: more than a script mostly takes between two launches.
/// A thread that has to be woken comes 20 microseconds late, which made a launch of 65 one of 86.
const SPINS: u32 = 5000;

fn run_on(
    workers: &mut Vec<Worker>,
    threads: usize,
    total: u64,
    grain: u64,
    job: &Job<'_>,
) -> bool {
    while workers.len() + 1 < threads {
        // Fewer threads do as well, where the system gives no more.
        let Some(worker) = Worker::start(workers.len()) else { break };
        workers.push(worker);
    }
    let launch = Launch::new(threads, total, grain, job);
    let invited = &workers[..workers.len().min(threads - 1)];
    for worker in invited {
        worker.slot.invite(&launch, &worker.thread);
    }
    launch.work(0);
    let taken = invited.iter().filter(|worker| !worker.slot.take_back()).count();
    launch.wait_for(taken);
    launch.outcome()
}

/// How many threads this process may run at once. Asked of the system once: on Linux the answer is read
/// from files, which takes longer than many a launch.
pub fn cores() -> usize {
    // No `OnceLock`: a fork could leave that half initialized.
    static CORES: AtomicUsize = AtomicUsize::new(0);
    match CORES.load(Relaxed) {
        0 => {
            let n = thread::available_parallelism().map_or(1, usize::from);
            CORES.store(n, Relaxed);
            n
        }
        n => n,
    }
}

const NO_CORE: usize = usize::MAX;

/// The core on which this thread runs, where the system tells.
fn core() -> usize {
    #[cfg(target_os = "linux")]
    // SAFETY: it has no preconditions.
    return usize::try_from(unsafe { libc::sched_getcpu() }).unwrap_or(NO_CORE);
    #[cfg(not(target_os = "linux"))]
    return NO_CORE;
}

/// Leaves a core, if this thread runs there, for any other one that it may use.
///
/// A system may wake a worker on the core of the thread that wakes it, though others are idle: Linux
/// does where few cores share a cache, once the worker has slept there. Then the two run one after the
/// other, launch after launch, since neither is ever ready long enough for the system to part them.
fn leave_core(core: usize) {
    #[cfg(target_os = "linux")]
    // SAFETY: the sets are as large as the system is told, and the core is below their size.
    unsafe {
        const BYTES: usize = size_of::<libc::cpu_set_t>();
        if core >= 8 * BYTES || self::core() != core {
            return;
        }
        let mut all: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, BYTES, &raw mut all) != 0 {
            return;
        }
        let mut others = all;
        libc::CPU_CLR(core, &mut others);
        if libc::CPU_COUNT(&others) > 0 && libc::sched_setaffinity(0, BYTES, &raw const others) == 0
        {
            // It is elsewhere now, and may be moved again.
            libc::sched_setaffinity(0, BYTES, &raw const all);
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = core;
}

/// The workers of one process.
struct Pool {
    process: u32,
    workers: Mutex<Vec<Worker>>,
}

impl Pool {
    fn current() -> &'static Pool {
        static CURRENT: AtomicPtr<Pool> = AtomicPtr::new(null_mut());
        let process = process();
        let old = CURRENT.load(Acquire);
        // SAFETY: what the pointer holds is leaked, so it lives for ever.
        if let Some(pool) = unsafe { old.as_ref() }
            && pool.process == process
        {
            return pool;
        }
        // A pool of the process that this one was forked from stays as it is: a lock in it may be held
        // by a thread that does not exist here.
        let new = Box::into_raw(Box::new(Pool { process, workers: Mutex::default() }));
        match CURRENT.compare_exchange(old, new, AcqRel, Acquire) {
            // SAFETY: as above; it is leaked now.
            Ok(_) => unsafe { &*new },
            Err(other) => {
                // SAFETY: nobody else has seen `new`; the other thread's one is leaked.
                unsafe {
                    drop(Box::from_raw(new));
                    &*other
                }
            }
        }
    }
}

/// The number of this process, where a process can be forked.
fn process() -> u32 {
    #[cfg(unix)]
    // SAFETY: it has no preconditions.
    return unsafe { libc::getpid() } as u32;
    #[cfg(not(unix))]
    return 0;
}

struct Worker {
    slot: Arc<Slot>,
    thread: Thread,
}

impl Worker {
    fn start(index: usize) -> Option<Worker> {
        let (launch, caller) = (AtomicPtr::new(null_mut()), NO_CORE.into());
        let slot = Arc::new(Slot { launch, asleep: false.into(), caller });
        let name = format!("naiad-{}", index + 1);
        let of_thread = Arc::clone(&slot);
        let main = move || {
            loop {
                // SAFETY: whoever takes an invitation may use the launch until it says it is done.
                unsafe { (*of_thread.next()).take_part(index + 1) };
            }
        };
        let handle = thread::Builder::new().name(name).spawn(main).ok()?;
        Some(Worker { slot, thread: handle.thread().clone() })
    }
}

/// Where a worker finds its invitation to a launch.
struct Slot {
    /// Null, or a launch that lives at least until somebody takes this pointer out.
    launch: AtomicPtr<Launch<'static>>,
    asleep: AtomicBool,
    /// The core on which the thread ran that woke the worker.
    caller: AtomicUsize,
}

impl Slot {
    fn invite(&self, launch: &Launch<'_>, worker: &Thread) {
        let launch = std::ptr::from_ref(launch).cast_mut().cast();
        // Sequentially consistent, as what a worker does before it sleeps: either it sees the
        // invitation or this thread sees that it sleeps.
        self.launch.store(launch, SeqCst);
        if self.asleep.load(SeqCst) {
            self.caller.store(core(), Relaxed);
            worker.unpark();
        }
    }

    /// Whether the invitation was still there.
    fn take_back(&self) -> bool {
        !self.launch.swap(null_mut(), AcqRel).is_null()
    }

    /// Waits for an invitation and takes it.
    fn next(&self) -> *const Launch<'static> {
        let mut turns = 0;
        loop {
            if !self.launch.load(Relaxed).is_null() {
                let launch = self.launch.swap(null_mut(), AcqRel);
                if !launch.is_null() {
                    return launch;
                }
            }
            if turns < SPINS {
                turns += 1;
                std::hint::spin_loop();
                continue;
            }
            self.asleep.store(true, SeqCst);
            if self.launch.load(SeqCst).is_null() {
                thread::park();
            }
            self.asleep.store(false, Relaxed);
            leave_core(self.caller.load(Relaxed));
            // Whoever woke this thread may have finished without it, and launches again soon.
            turns = 0;
        }
    }
}

/// One call of `run`, on its stack.
struct Launch<'a> {
    job: &'a Job<'a>,
    grain: u64,
    /// One for each thread.
    shares: SmallVec<[Share; 4]>,
    stopped: AtomicBool,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    caller: Thread,
    /// How many workers are done; with `SLEEPS` once the caller sleeps until they are.
    done: AtomicUsize,
}

/// Programs that one thread begins with. In a line of cache of its own, since mostly one thread counts
/// in it.
#[repr(align(64))]
struct Share {
    /// The first program that nobody has begun.
    next: AtomicU64,
    end: u64,
    /// No chunk is smaller, but the last one.
    least: u64,
}

/// Into how many chunks a share is divided at most, about: so late the last one may end.
const PARTS: u64 = 64;

const SLEEPS: usize = 1 << (usize::BITS - 1);

impl<'a> Launch<'a> {
    fn new(threads: usize, total: u64, grain: u64, job: &'a Job<'a>) -> Launch<'a> {
        // In units of the grain.
        let units = u128::from(total.div_ceil(grain));
        let border = |i: usize| {
            let unit = units * i as u128 / threads as u128;
            u64::try_from(unit * u128::from(grain)).unwrap_or(total).min(total)
        };
        let share = |i: usize| {
            let (start, end) = (border(i), border(i + 1));
            let least = ((end - start) / PARTS / grain * grain).max(grain);
            Share { next: AtomicU64::new(start), end, least }
        };
        Launch {
            job,
            grain,
            shares: (0..threads).map(share).collect(),
            stopped: AtomicBool::new(false),
            panic: Mutex::new(None),
            caller: thread::current(),
            done: AtomicUsize::new(0),
        }
    }

    /// Runs chunks until none is left.
    fn work(&self, worker: usize) {
        while !self.stopped.load(Relaxed)
            && let Some(chunk) = self.chunk(worker)
        {
            let ran = catch_unwind(AssertUnwindSafe(|| (self.job)(chunk, worker)));
            if matches!(ran, Ok(true)) {
                continue;
            }
            self.stopped.store(true, Relaxed);
            if let Err(panic) = ran {
                *self.panic.lock().unwrap_or_else(PoisonError::into_inner) = Some(panic);
            }
        }
    }

    /// The next chunk: of the worker's own share as long as there is something left of it.
    fn chunk(&self, worker: usize) -> Option<Range<u64>> {
        let threads = self.shares.len();
        let own = self.shares[worker].take(2, self.grain);
        // Of another's share a smaller part, since its thread is at it too.
        own.or_else(|| {
            (1..threads).find_map(|i| self.shares[(worker + i) % threads].take(4, self.grain))
        })
    }

    /// What an invited worker does. The launch may be gone when this returns.
    fn take_part(&self, worker: usize) {
        self.work(worker);
        let caller = self.caller.clone();
        if self.done.fetch_add(1, Release) & SLEEPS != 0 {
            caller.unpark();
        }
    }

    fn wait_for(&self, taken: usize) {
        for _ in 0..SPINS {
            if self.done.load(Acquire) == taken {
                return;
            }
            std::hint::spin_loop();
        }
        while self.done.fetch_or(SLEEPS, AcqRel) & !SLEEPS != taken {
            thread::park();
        }
    }

    /// Whether the job never returned false. Only when all threads have stopped.
    fn outcome(self) -> bool {
        if let Some(panic) = self.panic.into_inner().unwrap_or_else(PoisonError::into_inner) {
            resume_unwind(panic);
        }
        !self.stopped.into_inner()
    }
}

impl Share {
    /// A part of what is left, so that chunks are few, and small near the end, where one thread would
    /// wait for another.
    fn take(&self, part: u64, grain: u64) -> Option<Range<u64>> {
        let mut start = self.next.load(Relaxed);
        while start < self.end {
            let left = self.end - start;
            let size = (left / part / grain * grain).max(self.least).min(left);
            let end = start + size;
            match self.next.compare_exchange_weak(start, end, Relaxed, Relaxed) {
                Ok(_) => return Some(start..end),
                Err(now) => start = now,
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU8;

    /// Runs `total` programs and says how often each ran.
    fn counts(threads: usize, total: u64, grain: u64) -> Vec<u8> {
        let counts: Vec<AtomicU8> = (0..total).map(|_| AtomicU8::new(0)).collect();
        let busy: Vec<AtomicBool> = (0..threads.max(1)).map(|_| AtomicBool::new(false)).collect();
        let finished = run(threads, total, grain, &|chunk, worker| {
            assert!(!busy[worker].swap(true, SeqCst), "two jobs with one worker's number");
            assert!(chunk.start % grain.max(1) == 0 && chunk.start < chunk.end);
            for i in chunk {
                counts[i as usize].fetch_add(1, SeqCst);
            }
            busy[worker].store(false, SeqCst);
            true
        });
        assert!(finished);
        counts.into_iter().map(AtomicU8::into_inner).collect()
    }

    #[test]
    fn each_program_runs_once() {
        for threads in [0, 1, 2, 3, 7] {
            for total in [0, 1, 2, 5, 64, 1000] {
                for grain in [0, 1, 3, 64, u64::MAX] {
                    let counts = counts(threads, total, grain);
                    assert!(counts.iter().all(|&c| c == 1), "{threads} {total} {grain}");
                }
            }
        }
    }

    #[test]
    fn a_thread_begins_with_its_own_share_and_helps_with_the_others() {
        let job: &Job<'_> = &|_, _| true;
        let launch = Launch::new(3, 3000, 1, job);
        assert_eq!(launch.chunk(1), Some(1000..1500));
        assert_eq!(launch.chunk(0), Some(0..500));
        let rest: Vec<Range<u64>> = std::iter::from_fn(|| launch.chunk(1)).collect();
        assert!(rest.iter().take_while(|c| c.start < 2000).all(|c| c.start >= 1500));
        assert_eq!(rest.iter().map(|c| c.end - c.start).sum::<u64>(), 2000);
        // Shares are of whole grains, but for the last one.
        let launch = Launch::new(2, 100, 64, job);
        assert_eq!([launch.chunk(1), launch.chunk(1)], [Some(64..100), Some(0..64)]);
        let launch = Launch::new(2, u64::MAX, 1, job);
        assert_eq!(launch.chunk(1).map(|c| c.start), Some(u64::MAX / 2));
    }

    #[test]
    fn many_launches_in_a_row_and_after_a_sleep() {
        for round in 0..2000 {
            if round % 500 == 0 {
                // The workers are asleep by now.
                thread::sleep(std::time::Duration::from_millis(5));
            }
            assert_eq!(counts(3, 17, 1), [1; 17]);
        }
    }

    #[test]
    fn false_stops_the_launch() {
        let ran = AtomicU64::new(0);
        let finished = run(2, u64::MAX, 1, &|chunk, _| {
            ran.fetch_add(1, SeqCst);
            chunk.start == 0 && ran.load(SeqCst) < 4
        });
        assert!(!finished && ran.load(SeqCst) < 8);
    }

    #[test]
    fn nested_calls_and_two_callers_at_once() {
        let total = AtomicU64::new(0);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        run(3, 8, 1, &|outer, _| {
                            run(3, 8, 1, &|inner, _| {
                                let programs = outer.end - outer.start;
                                total.fetch_add(programs * (inner.end - inner.start), SeqCst);
                                true
                            })
                        });
                    }
                });
            }
        });
        assert_eq!(total.into_inner(), 4 * 50 * 64);
    }

    #[test]
    fn a_panic_reaches_the_caller_and_the_pool_lives_on() {
        for at in [0, 63] {
            let caught = catch_unwind(|| {
                run(2, 64, 1, &|chunk, _| {
                    assert!(!chunk.contains(&at), "on purpose");
                    true
                })
            });
            assert!(caught.is_err());
            assert_eq!(counts(2, 9, 1), [1; 9]);
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_forked_child_has_a_pool_of_its_own() {
        // The fork is made within a launch, when the parent's pool is in the worst of states.
        let status = Mutex::new(None);
        run(2, 2, 1, &|chunk, _| {
            if chunk.start > 0 {
                return true;
            }
            // SAFETY: the child calls nothing that would need the parent's other threads: memory
            // is allocated by the system's allocator, which is usable after a fork.
            unsafe {
                let child = libc::fork();
                if child == 0 {
                    let right = counts(3, 100, 1).iter().all(|&c| c == 1);
                    libc::_exit(if right { 7 } else { 1 });
                }
                let mut code = 0;
                assert_eq!(libc::waitpid(child, &mut code, 0), child);
                *status.lock().unwrap() = Some(libc::WEXITSTATUS(code));
            }
            true
        });
        assert_eq!(status.into_inner().unwrap(), Some(7));
    }
}
