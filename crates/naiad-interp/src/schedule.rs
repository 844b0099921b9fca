//! Spreads programs over threads, and keeps programs that wait for one another moving.
//!
//! ```text
//!   grid --chunks, by an atomic counter--> worker: run | waits? -> parked | run the next one
//!                                          worker: none left to start -> rounds over the parked ones
//! ```
//!
//! A program stays on its worker. One that waits is parked, and the worker starts the next: whoever
//! it waits for may not have begun. When none is left to start, the worker goes round its parked
//! programs. If a round moves nothing, the worker is stuck as of the *epoch* in which the round began;
//! whatever moves raises the epoch. When all workers are stuck as of the present epoch, each has seen
//! all that was written and none can go on: a deadlock. (A write would have been made in a round that
//! raised the epoch before its worker could be stuck in it.)

use crate::args::Long;
use crate::code::Code;
use crate::exec::{Exec, Pause, Program, Shared};
use crate::fault::{Fault, program};
use crate::policy::Policy;
use crate::slab;
use naiad_diag::{Diagnostic, Id};
use naiad_ir::tile::Tile;
use naiad_ir::{Function, Inst};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Bytes of free tiles that all threads together may keep.
const POOL_BYTES: usize = 24 << 20;

/// A launch of less than this, in half nanoseconds, is short: the calling thread runs it alone.
const SHORT: u64 = 200_000;

/// A worker that has ended is never in the way of a deadlock.
const ENDED: u64 = u64::MAX;

/// A program that waits when the launch ends: its number, its coordinates and where.
pub type Waits = (u64, [u32; 3], Option<Inst>);

/// State of a launch that workers share.
pub struct Board<'a> {
    total: u64,
    chunk: u64,
    next: AtomicU64,
    interrupt: Option<&'a (dyn Fn() -> bool + Sync)>,
    /// Programs from this number on are to stop: a program of this number has failed.
    fails_from: AtomicU64,
    fault: Mutex<Option<(u64, Fault)>>,
    epoch: AtomicU64,
    /// For each worker the epoch as of which it is stuck, plus 1; 0 if it is not.
    stuck: Vec<AtomicU64>,
    deadlocked: AtomicBool,
    waiting: Mutex<Vec<Waits>>,
}

impl<'a> Board<'a> {
    pub fn new(
        total: u64,
        workers: usize,
        interrupt: Option<&'a (dyn Fn() -> bool + Sync)>,
    ) -> Board<'a> {
        Board {
            total,
            chunk: (total / (workers as u64 * 16)).clamp(1, 256),
            next: AtomicU64::new(0),
            interrupt,
            fails_from: AtomicU64::new(u64::MAX),
            fault: Mutex::new(None),
            epoch: AtomicU64::new(0),
            stuck: (0..workers).map(|_| AtomicU64::new(0)).collect(),
            deadlocked: AtomicBool::new(false),
            waiting: Mutex::new(Vec::new()),
        }
    }

    /// Whether a program is to stop: the first fault in the order of programs is the one reported.
    pub fn stopped(&self, number: u64) -> bool {
        number >= self.fails_from.load(SeqCst) || self.interrupted() || self.deadlocked.load(SeqCst)
    }

    fn interrupted(&self) -> bool {
        self.interrupt.is_some_and(|interrupt| interrupt())
    }

    fn fail(&self, number: u64, fault: Fault) {
        let mut slot = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        if slot.as_ref().is_none_or(|(n, _)| *n > number) {
            *slot = Some((number, fault));
            self.fails_from.fetch_min(number, SeqCst);
        }
    }

    fn chunk(&self) -> std::ops::Range<u64> {
        let start = self.next.fetch_add(self.chunk, SeqCst).min(self.total);
        start..(start + self.chunk).min(self.total)
    }

    /// Whether all programs have come to their end.
    pub fn has_ended(&self) -> bool {
        self.fails_from.load(SeqCst) == u64::MAX
            && !self.interrupted()
            && !self.deadlocked.load(SeqCst)
    }

    /// What ended the launch, if anything did.
    pub fn outcome(self, code: &Code) -> Result<(), Fault> {
        let interrupted = self.interrupted();
        if let Some((_, fault)) = self.fault.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(fault);
        }
        if self.deadlocked.load(SeqCst) {
            let mut waiting = self.waiting.into_inner().unwrap_or_else(PoisonError::into_inner);
            waiting.sort_by_key(|w| w.0);
            return Err(deadlock(&code.func, &waiting));
        }
        if interrupted {
            return Err(Box::new(Diagnostic::new(Id::Interrupted, "the launch was interrupted")));
        }
        Ok(())
    }
}

/// The fault of programs that wait forever, in their order.
pub fn deadlock(func: &Function<Tile>, waiting: &[Waits]) -> Fault {
    let message = match waiting {
        [(_, p, _)] => {
            format!(
                "kernel `{}` deadlocks: {} waits for a value that nobody writes",
                func.name,
                program(*p)
            )
        }
        all => format!(
            "kernel `{}` deadlocks: {} programs wait for values that nobody writes",
            func.name,
            all.len()
        ),
    };
    let mut places: Vec<(Inst, Vec<[u32; 3]>)> = Vec::new();
    for &(_, coordinates, inst) in waiting {
        let Some(inst) = inst else { continue };
        match places.iter_mut().find(|(i, _)| *i == inst) {
            Some((_, programs)) => programs.push(coordinates),
            None => places.push((inst, vec![coordinates])),
        }
    }
    let mut report = Diagnostic::new(Id::Deadlock, message);
    for (n, (inst, programs)) in places.iter().enumerate() {
        let mut who: Vec<String> = programs.iter().take(3).map(|p| program(*p)).collect();
        if programs.len() > 3 {
            who.push(format!("{} more", programs.len() - 3));
        }
        let text = format!("waited for here by {}", who.join(", "));
        let loc = func.loc(*inst);
        report = match (n, func.places.place(loc)) {
            (0, Some(_)) => report.primary_at(&func.places, loc, text),
            (_, Some(place)) => report.secondary(place, text),
            (_, None) => {
                use naiad_ir::OpInfo;
                report.note(format!("`{}`, {text}", func.op(*inst).name()))
            }
        };
    }
    Box::new(report.help(
        "all programs have started; see that whoever is waited for sets the value on every path, \
         and that the grid has as many programs as are counted",
    ))
}

/// Runs all programs of the grid.
pub fn run<P: Policy>(shared: &Shared<'_>, board: &Board<'_>, long: Option<&Long<'_>>) {
    let mut first = Worker::<P>::new(shared, board, 0);
    // One program, or the start of it, shows whether the grid is worth the start of threads. What
    // seems short is run as far as it is.
    first.exec.budget = SHORT;
    first.work(1);
    if first.exec.cost.saturating_mul(board.total) < SHORT {
        first.work(u64::MAX);
    }
    first.exec.budget = u64::MAX;
    if first.is_done() {
        return alone(first);
    }
    let mut first = Some(first);
    let mut rest = || match first.take() {
        Some(first) if board.stuck.len() == 1 => alone(first),
        Some(first) => spread(first, shared),
        None => {}
    };
    if let Some(long) = long {
        long(&mut rest);
    }
    rest();
}

/// Runs what is left of the grid on this thread.
fn alone<P: Policy>(first: Worker<'_, P>) {
    for other in &first.board.stuck[1..] {
        other.store(ENDED, SeqCst);
    }
    first.run();
}

/// Runs what is left of the grid on this thread and on new ones.
fn spread<P: Policy>(first: Worker<'_, P>, shared: &Shared<'_>) {
    let board = first.board;
    std::thread::scope(|scope| {
        for id in 1..board.stuck.len() {
            // Fewer threads do as well, where the system gives no more.
            let worker = move || Worker::<P>::new(shared, board, id).run();
            if std::thread::Builder::new().spawn_scoped(scope, worker).is_err() {
                board.stuck[id].store(ENDED, SeqCst);
            }
        }
        first.run();
    });
}

struct Worker<'a, P: Policy> {
    board: &'a Board<'a>,
    id: usize,
    exec: Exec<'a, P>,
    chunk: std::ops::Range<u64>,
    parked: VecDeque<Program<P>>,
    /// A program that has ended, whose registers the next one gets.
    spare: Option<Program<P>>,
}

impl<'a, P: Policy> Worker<'a, P> {
    fn new(shared: &'a Shared<'a>, board: &'a Board<'a>, id: usize) -> Worker<'a, P> {
        slab::set_pool_limit(POOL_BYTES / board.stuck.len());
        let exec = Exec::new(shared, id);
        Worker { board, id, exec, chunk: 0..0, parked: VecDeque::new(), spare: None }
    }

    fn run(mut self) {
        if let Some(p) = self.parked.pop_back() {
            self.resume(p);
        }
        self.work(u64::MAX);
        self.rounds();
        if self.board.deadlocked.load(SeqCst) {
            let mut waiting = self.board.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            waiting.extend(self.parked.iter().map(|p| (p.number, p.coordinates, p.waits_at)));
        }
        let board = self.board;
        let id = self.id;
        drop(self);
        slab::set_pool_limit(0);
        board.epoch.fetch_add(1, SeqCst);
        board.stuck[id].store(ENDED, SeqCst);
    }

    /// Whether every program of the grid has ended.
    fn is_done(&self) -> bool {
        let started = self.chunk.is_empty() && self.board.next.load(SeqCst) >= self.board.total;
        started && self.parked.is_empty()
    }

    /// Starts programs, at most so many and within the budget, and runs them until they end or wait.
    fn work(&mut self, most: u64) {
        for _ in 0..most {
            if self.exec.cost > self.exec.budget {
                return;
            }
            let Some(number) = self.next_number() else { return };
            if self.board.stopped(number) {
                // Parked programs of lower numbers go on: theirs may be the fault to report.
                return;
            }
            let mut p = self.spare.take().unwrap_or_default();
            self.exec.start(&mut p, number);
            if self.resume(p) {
                // Something ended, which is what the last to be parked is likeliest to wait for.
                for _ in 0..self.parked.len() {
                    let Some(p) = self.parked.pop_back() else { break };
                    self.resume_front(p);
                }
            }
        }
    }

    fn next_number(&mut self) -> Option<u64> {
        if self.chunk.is_empty() {
            self.chunk = self.board.chunk();
        }
        self.chunk.next()
    }

    /// Runs a program; parks it at the back if it waits. Says whether it ended.
    fn resume(&mut self, p: Program<P>) -> bool {
        match self.step(p) {
            Step::Ended => true,
            Step::Waits(p, _) => {
                self.parked.push_back(p);
                false
            }
        }
    }

    fn resume_front(&mut self, p: Program<P>) {
        if let Step::Waits(p, _) = self.step(p) {
            self.parked.push_front(p);
        }
    }

    fn step(&mut self, mut p: Program<P>) -> Step<P> {
        let number = p.number;
        let ran = catch_unwind(AssertUnwindSafe(|| self.exec.resume(&mut p)));
        match ran {
            Ok(Ok(Pause::Finished)) => {
                self.spare = Some(p);
                Step::Ended
            }
            Ok(Ok(Pause::Waiting { stuck, wrote })) => Step::Waits(p, !stuck || wrote),
            Ok(Ok(Pause::Stopped)) => Step::Ended,
            Ok(Err(fault)) => {
                if fault.id != Id::Interrupted {
                    self.board.fail(number, fault);
                }
                Step::Ended
            }
            Err(panic) => {
                let report = Diagnostic::of_panic("running a program", &*panic);
                self.board.fail(number, Box::new(report));
                Step::Ended
            }
        }
    }

    /// Goes round the parked programs until all have ended.
    fn rounds(&mut self) {
        let board = self.board;
        // What this worker wrote so far is news to those that were stuck before.
        board.epoch.fetch_add(1, SeqCst);
        let mut idle = 0u32;
        while !self.parked.is_empty() {
            let epoch = board.epoch.load(SeqCst);
            let mut moved = false;
            for _ in 0..self.parked.len() {
                let Some(p) = self.parked.pop_front() else { break };
                if board.stopped(p.number) {
                    if board.deadlocked.load(SeqCst) {
                        self.parked.push_back(p);
                        return;
                    }
                    moved = true;
                    continue;
                }
                match self.step(p) {
                    Step::Ended => moved = true,
                    Step::Waits(p, moving) => {
                        moved |= moving;
                        self.parked.push_back(p);
                    }
                }
            }
            if moved {
                board.stuck[self.id].store(0, SeqCst);
                board.epoch.fetch_add(1, SeqCst);
                idle = 0;
                continue;
            }
            if board.epoch.load(SeqCst) == epoch {
                board.stuck[self.id].store(epoch + 1, SeqCst);
                let all =
                    |s: &AtomicU64| matches!(s.load(SeqCst), ENDED) || s.load(SeqCst) == epoch + 1;
                if board.stuck.iter().all(all) && board.epoch.load(SeqCst) == epoch {
                    // A fault of a program that these waited for explains more than a deadlock.
                    board.deadlocked.store(true, SeqCst);
                    return;
                }
            }
            idle += 1;
            if idle < 64 {
                std::thread::yield_now();
            } else {
                std::thread::sleep(Duration::from_micros(50));
            }
        }
    }
}

enum Step<P: Policy> {
    Ended,
    /// It waits; true if it has moved all the same.
    Waits(Program<P>, bool),
}
