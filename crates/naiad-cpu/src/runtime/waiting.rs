//! Runs programs that may wait for one another, so that each gets on.
//!
//! ```text
//!   grid --numbers, by an atomic counter--> worker: start | waits? -> parked | start the next one
//!                                           worker: none to start -> turns over the parked ones
//! ```
//!
//! Compiled code calls [`Turn::wait`] at the end of each round of a loop that may wait. After some idle rounds
//! the program is suspended ([`super::fiber`]), and its worker starts another. Few are parked as long as that
//! gets on: a worker starts more than its room only when a whole turn over those that wait has ended none.
//!
//! A program that was resumed, ran a whole round and did nothing but wait is *stuck*. A worker whose turn has
//! found all of its programs stuck is stuck as of the *epoch* in which the turn began; whatever moves raises
//! the epoch before its worker's next turn. When all workers are stuck as of the present epoch, each has seen
//! all that was written and none can go on: a deadlock. (A write would have been made in a turn that raised
//! the epoch before its worker could be stuck in it.)

use super::fiber::{Fiber, Order, Stack, Turn};
use super::pool;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Runs a program on the worker of this number.
pub type Job<'a> = dyn Fn(u64, usize, &Turn<'_>) + Sync + 'a;

/// What is to be run, and how.
pub struct Grid<'a> {
    pub total: u64,
    pub threads: usize,
    /// What compiled code needs of its stack, and of other memory.
    pub stack_bytes: usize,
    pub scratch_bytes: usize,
    /// Asked again and again whether to stop the launch; stays true once it is. A program that has failed
    /// says so here.
    pub stopped: &'a (dyn Fn() -> bool + Sync),
    pub job: &'a Job<'a>,
}

/// How it ended.
#[derive(Debug, PartialEq)]
pub enum End {
    Ended,
    Stopped,
    /// Programs wait for values that nobody writes, each in the loop of this site.
    Deadlock(Vec<(u64, u32)>),
    /// So many programs wait for others, and so many have not started: there is no memory for them.
    Full {
        waiting: u64,
        unstarted: u64,
    },
}

/// Bytes that the programs of a launch may hold while they wait.
const MOST_BYTES: usize = 2 << 30;

/// Bytes that a program holds besides scratch memory, as a rule.
const STATE: usize = 4 << 10;

/// Programs that a worker starts before it looks what became of those that wait.
const ROOM: usize = 64;

/// Idle rounds until a program is suspended, where another worker may do now what it waits for.
const ROUNDS: u64 = 64;

/// Runs all programs of the grid.
pub fn run(grid: &Grid<'_>) -> End {
    let total = usize::try_from(grid.total).unwrap_or(usize::MAX);
    let workers = grid.threads.clamp(1, pool::MAX_THREADS).min(total);
    let board = Board {
        grid,
        next: AtomicU64::new(0),
        epoch: AtomicU64::new(0),
        stuck: (0..workers).map(|_| AtomicU64::new(ABSENT)).collect(),
        over: AtomicBool::new(false),
        waiting: Mutex::default(),
    };
    // A worker that never comes is missed by nobody: the others run all programs.
    let work = |_, worker| {
        if let Some(stack) = Stack::new(grid.stack_bytes) {
            Worker::new(&board, worker, stack).run();
        }
        true
    };
    match workers {
        1 => work(0..1, 0),
        _ => pool::run(workers, workers as u64, 1, &work),
    };
    // Ending those that wait stops the launch, too.
    if !board.over.into_inner() && (grid.stopped)() {
        return End::Stopped;
    }
    let mut waiting = board.waiting.into_inner().unwrap_or_else(PoisonError::into_inner);
    let unstarted = grid.total - board.next.into_inner();
    if unstarted > 0 {
        End::Full { waiting: waiting.len() as u64, unstarted }
    } else if waiting.is_empty() {
        End::Ended
    } else {
        waiting.sort_unstable();
        End::Deadlock(waiting)
    }
}

/// What the workers of a launch share.
struct Board<'a> {
    grid: &'a Grid<'a>,
    /// The first program that nobody has started.
    next: AtomicU64,
    epoch: AtomicU64,
    /// For each worker the epoch as of which it is stuck, plus 1; 0 if it is not.
    stuck: Vec<AtomicU64>,
    /// No program can go on.
    over: AtomicBool,
    /// Those that waited then, and the sites of their loops.
    waiting: Mutex<Vec<(u64, u32)>>,
}

/// A worker that has not come, or has gone, is never in the way of a deadlock.
const ABSENT: u64 = u64::MAX;

impl Board<'_> {
    fn stopped(&self) -> bool {
        self.over.load(SeqCst) || (self.grid.stopped)()
    }

    fn has_unstarted(&self) -> bool {
        self.next.load(SeqCst) < self.grid.total
    }

    fn take(&self) -> Option<u64> {
        let below = |n| (n < self.grid.total).then_some(n + 1);
        self.next.fetch_update(SeqCst, SeqCst, below).ok()
    }

    /// Whether all workers are stuck as of this epoch, and nothing has moved since.
    fn all_stuck(&self, epoch: u64) -> bool {
        let stuck = |s: &AtomicU64| [ABSENT, epoch + 1].contains(&s.load(SeqCst));
        self.stuck.iter().all(stuck) && self.epoch.load(SeqCst) == epoch
    }
}

struct Worker<'a> {
    board: &'a Board<'a>,
    id: usize,
    /// Programs that wait, in the order in which they were started. They go before their stack.
    parked: Vec<Fiber>,
    stack: Stack,
    /// So many programs may be parked before no other is started, and at the very most.
    room: usize,
    most: usize,
    /// A program has ended or moved since the last turn began.
    moved: bool,
}

impl<'a> Worker<'a> {
    fn new(board: &'a Board<'a>, id: usize, stack: Stack) -> Worker<'a> {
        let each = board.grid.scratch_bytes + STATE;
        let most = (MOST_BYTES / each / board.stuck.len()).max(1);
        Worker { board, id, parked: Vec::new(), stack, room: ROOM.min(most), most, moved: false }
    }

    fn run(mut self) {
        let _present = Present::new(self.board, self.id);
        let mut idle = 0u32;
        while !self.board.stopped() {
            if self.parked.len() < self.room
                && let Some(program) = self.board.take()
            {
                self.start(program);
            } else if self.parked.is_empty() {
                break;
            } else if self.turn() {
                idle = 0;
            } else {
                // Somebody else runs what these wait for.
                idle += 1;
                match idle {
                    ..64 => std::thread::yield_now(),
                    _ => std::thread::sleep(Duration::from_micros(50)),
                }
            }
        }
        self.end();
    }

    fn start(&mut self, program: u64) {
        let (job, worker) = (self.board.grid.job, self.id);
        // SAFETY: the worker's fibers go before its stack, and the worker before whoever made the grid goes on.
        let fiber =
            unsafe { Fiber::new(&mut self.stack, program, move |turn| job(program, worker, turn)) };
        self.parked.push(fiber);
        if self.go_on(self.parked.len() - 1) {
            self.wake();
        }
    }

    /// Some program ended, which is what the last to be parked is likeliest to wait for.
    fn wake(&mut self) {
        while let Some(last) = self.parked.len().checked_sub(1)
            && self.go_on(last)
        {}
    }

    fn go_on(&mut self, at: usize) -> bool {
        // With others to look after, or nobody to do meanwhile what it waits for, one round is enough.
        let rounds = if self.parked.len() == 1 && self.board.stuck.len() > 1 { ROUNDS } else { 1 };
        self.resume(at, Order::GoOn { rounds })
    }

    /// Runs a parked program until it waits again, or ends, which is said: then it is parked no more.
    fn resume(&mut self, at: usize, order: Order) -> bool {
        let fiber = &mut self.parked[at];
        if let Some(pause) = fiber.resume(&mut self.stack, order) {
            fiber.site = pause.site;
            self.moved |= pause.moving;
            return false;
        }
        self.parked.remove(at);
        self.moved = true;
        self.board.epoch.fetch_add(1, SeqCst);
        true
    }

    /// Runs every parked program once. Whether that was of use; if not, this may be the end.
    fn turn(&mut self) -> bool {
        let board = self.board;
        if std::mem::take(&mut self.moved) {
            board.stuck[self.id].store(0, SeqCst);
            board.epoch.fetch_add(1, SeqCst);
        }
        let epoch = board.epoch.load(SeqCst);
        let (mut seen, mut at, before) = (epoch, 0, self.parked.len());
        while at < self.parked.len() && !board.stopped() {
            at += usize::from(!self.go_on(at));
            let now = board.epoch.load(SeqCst);
            if std::mem::replace(&mut seen, now) != now {
                self.wake();
            }
        }
        if self.parked.len() == before && self.room < self.most && board.has_unstarted() {
            // Those that have not started may be waited for.
            self.room = (2 * self.room).min(self.most);
            return true;
        }
        if self.moved || board.stopped() {
            return true;
        }
        if board.epoch.load(SeqCst) == epoch {
            board.stuck[self.id].store(epoch + 1, SeqCst);
            if board.all_stuck(epoch) {
                board.over.store(true, SeqCst);
            }
        }
        false
    }

    /// Ends what still waits.
    fn end(&mut self) {
        let board = self.board;
        if board.over.load(SeqCst) {
            let mut waiting = board.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            waiting.extend(self.parked.iter().map(|f| (f.program, f.site)));
        }
        while let Some(last) = self.parked.len().checked_sub(1) {
            self.resume(last, Order::Stop);
        }
    }
}

/// While this is there a worker counts.
struct Present<'a>(&'a Board<'a>, usize);

impl<'a> Present<'a> {
    /// To be made before a program is taken: who finds none left must see that this worker is there.
    fn new(board: &'a Board<'a>, id: usize) -> Present<'a> {
        board.stuck[id].store(0, SeqCst);
        Present(board, id)
    }
}

impl Drop for Present<'_> {
    fn drop(&mut self) {
        let Present(board, id) = self;
        if std::thread::panicking() {
            // Nobody ends this worker's programs, for which others may wait.
            board.over.store(true, SeqCst);
        }
        board.epoch.fetch_add(1, SeqCst);
        board.stuck[*id].store(ABSENT, SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    fn run_with(
        threads: usize,
        total: u64,
        scratch_bytes: usize,
        job: &(dyn Fn(u64, &Turn<'_>) + Sync),
    ) -> End {
        let job = |program, _, turn: &Turn<'_>| job(program, turn);
        run(&Grid { total, threads, stack_bytes: 0, scratch_bytes, stopped: &|| false, job: &job })
    }

    /// What compiled code does: polls, in a loop that carries nothing.
    fn poll(turn: &Turn<'_>, flag: &AtomicBool) -> bool {
        while !flag.load(SeqCst) {
            if !turn.wait(7, true) {
                return false;
            }
        }
        true
    }

    fn set(turn: &Turn<'_>, flag: &AtomicBool) {
        flag.store(true, SeqCst);
        turn.writes.set(turn.writes.get() + 1);
    }

    fn flags(n: u64) -> Vec<AtomicBool> {
        (0..n).map(|_| AtomicBool::new(false)).collect()
    }

    #[test]
    fn each_program_waits_for_its_neighbours() {
        for threads in [1, 2, 3] {
            for total in [1, 2, 63, 3000] {
                // There and back: for all behind, then for all before.
                let (there, back) = (flags(total + 1), flags(total + 1));
                there[total as usize].store(true, SeqCst);
                back[0].store(true, SeqCst);
                let job = |program: u64, turn: &Turn<'_>| {
                    let at = program as usize;
                    assert!(poll(turn, &there[at + 1]));
                    set(turn, &there[at]);
                    assert!(poll(turn, &back[at]));
                    set(turn, &back[at + 1]);
                };
                assert_eq!(run_with(threads, total, 0, &job), End::Ended);
                assert!(back.iter().all(|flag| flag.load(SeqCst)));
            }
        }
    }

    #[test]
    fn programs_that_wait_for_ever_are_named() {
        for threads in [1, 2, 3] {
            let never = AtomicBool::new(false);
            let ended = AtomicU64::new(0);
            let job = |program: u64, turn: &Turn<'_>| {
                if program.is_multiple_of(3) {
                    assert!(!poll(turn, &never));
                }
                ended.fetch_add(1, SeqCst);
            };
            let waiting = (0..200).filter(|p| p % 3 == 0).map(|p| (p, 7)).collect();
            assert_eq!(run_with(threads, 200, 0, &job), End::Deadlock(waiting));
            assert_eq!(ended.into_inner(), 200);
        }
    }

    #[test]
    fn as_many_wait_as_there_is_room_for() {
        let scratch = MOST_BYTES / 6 - STATE;
        for (threads, total) in [(1, 6), (1, 7), (1, 10), (2, 10), (3, 10)] {
            let last = AtomicBool::new(false);
            let job = |program: u64, turn: &Turn<'_>| {
                if program == total - 1 {
                    set(turn, &last);
                }
                poll(turn, &last);
            };
            match run_with(threads, total, scratch, &job) {
                End::Ended => assert_eq!(total, 6),
                // Each worker has its part of the room, and some may not come.
                End::Full { waiting, unstarted } => {
                    assert!(total > 6 && waiting + unstarted == total);
                    assert!((6 / threads as u64..=6).contains(&waiting));
                }
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn who_writes_all_the_time_lets_others_run() {
        for threads in [1, 2] {
            let last = AtomicBool::new(false);
            let job = |program: u64, turn: &Turn<'_>| {
                if program == 99 {
                    set(turn, &last);
                }
                while !last.load(SeqCst) {
                    turn.writes.set(turn.writes.get() + 1);
                    assert!(turn.wait(1, true));
                }
            };
            assert_eq!(run_with(threads, 100, 0, &job), End::Ended);
        }
    }

    #[test]
    fn launches_stop_when_they_are_told() {
        for threads in [1, 2] {
            let asked = AtomicU64::new(0);
            let job = |_: u64, _: usize, turn: &Turn<'_>| {
                // It moves, as far as anybody can tell.
                while turn.wait(1, false) {}
            };
            let stopped = || asked.fetch_add(1, SeqCst) > 1000;
            let grid = Grid {
                total: 500,
                threads,
                stack_bytes: 0,
                scratch_bytes: 0,
                stopped: &stopped,
                job: &job,
            };
            assert_eq!(run(&grid), End::Stopped);
        }
    }

    #[test]
    fn a_panic_reaches_the_caller_though_others_wait() {
        for threads in [1, 2] {
            let never = AtomicBool::new(false);
            let job = |program: u64, turn: &Turn<'_>| {
                assert!(program != 50, "on purpose");
                poll(turn, &never);
            };
            let caught = catch_unwind(AssertUnwindSafe(|| run_with(threads, 100, 0, &job)));
            assert!(caught.is_err());
        }
    }
}
