//! Which block goes on.
//!
//! One block runs at a time, each to its end before the next begins, on the thread that launches. Only a
//! block that waits for another in a loop gives its turn away: it stays where it is, on its thread, and
//! another thread goes on with
//! 1. the block that has waited for longest and for which something has changed in memory, else
//! 2. the next block that has not begun, else
//! 3. the block that has waited for longest and looks at the clock, since time changes by itself.
//!
//! When there is none, they wait for each other for ever.

use super::exec::Run;
use super::fault::{Fault, FaultKind};
use super::stats::Stats;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Blocks that wait at a time; a GPU has room for no more than some thousands.
const MOST_WAITING: usize = 512;

/// No wait has this number.
const NOBODY: u64 = u64::MAX;

/// What the threads of a launch share.
pub struct Turns {
    state: Mutex<State>,
    passed_on: Condvar,
    total: u64,
    /// Looks at a clock that goes on when it is looked at.
    looks: AtomicU64,
}

struct State {
    /// The next block that has not begun.
    next: u64,
    /// How often memory was changed, as far as those who gave their turn away have told.
    changes: u64,
    waiting: VecDeque<Waiting>,
    /// Counts who waited; a wait's number is whose turn it is.
    waits: u64,
    turn: u64,
    fault: Option<Box<Fault>>,
    stats: Stats,
}

struct Waiting {
    number: u64,
    /// What had changed when it began to wait.
    seen: u64,
    looks_at_clock: bool,
}

enum Next {
    Waiting(u64),
    Block,
    Nobody,
}

impl Turns {
    pub fn new(total: u64, stats: Stats) -> Turns {
        let state = State {
            next: 0,
            changes: 0,
            waiting: VecDeque::new(),
            waits: 0,
            turn: 0,
            fault: None,
            stats,
        };
        let (state, passed_on) = (Mutex::new(state), Condvar::new());
        Turns { state, passed_on, total, looks: AtomicU64::new(0) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs blocks by `run`, which says how often each changed memory since it last told, until there are no
    /// more to begin with. To be called once at first, and once by each thread that [`Turns::wait`] starts.
    pub fn work(&self, mut run: impl FnMut(u64) -> Run<u64>) {
        let panicked = Panicked(self);
        let mut next = self.next(0);
        while let Some(number) = next {
            next = match run(number) {
                Ok(changes) => self.next(changes),
                Err(fault) => {
                    self.end(fault);
                    None
                }
            };
        }
        std::mem::forget(panicked);
    }

    /// Counts what one thread has counted.
    pub fn count(&self, stats: &Stats) {
        self.lock().stats.add(stats);
    }

    /// The end of the launch, when all threads have ended.
    pub fn outcome(self) -> Run<Stats> {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        match state.fault {
            Some(fault) => Err(fault),
            None => Ok(state.stats),
        }
    }

    /// The next block for a thread whose turn it is; none if another goes on, or nobody.
    fn next(&self, changes: u64) -> Option<u64> {
        let mut state = self.lock();
        state.changes += changes;
        if state.fault.is_some() {
            return None;
        }
        match state.choose(self.total) {
            Next::Block => {
                state.next += 1;
                return Some(state.next - 1);
            }
            Next::Waiting(number) => state.turn = number,
            // Whoever waits finds out by himself.
            Next::Nobody => state.turn = NOBODY,
        }
        self.passed_on.notify_all();
        None
    }

    fn end(&self, fault: Box<Fault>) {
        let mut state = self.lock();
        state.fault = state.fault.take().or(Some(fault));
        self.passed_on.notify_all();
    }

    /// Gives the turn away, by `start` to a new thread, until something may have changed. `changes` is how
    /// often the block has changed memory since it last told. `stuck` is the fault if nothing can change any
    /// more.
    pub fn wait(
        &self,
        changes: u64,
        looks_at_clock: bool,
        start: &dyn Fn(),
        stuck: impl FnOnce() -> Box<Fault>,
    ) -> Run<()> {
        let mut state = self.lock();
        state.changes += changes;
        state.waits += 1;
        let number = state.waits;
        let seen = state.changes;
        state.waiting.push_back(Waiting { number, seen, looks_at_clock });
        match state.choose(self.total) {
            Next::Block => start(),
            Next::Waiting(other) => {
                state.turn = other;
                self.passed_on.notify_all();
            }
            Next::Nobody => state.turn = NOBODY,
        }
        loop {
            if state.fault.is_some() || state.turn == NOBODY {
                // Only the first is told.
                let fault = state.fault.get_or_insert_with(stuck).clone();
                self.passed_on.notify_all();
                return Err(fault);
            }
            if state.turn == number {
                return Ok(());
            }
            state = self.passed_on.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Microseconds of a clock that goes on when it is looked at.
    pub fn look(&self) -> u64 {
        self.looks.fetch_add(1, Ordering::Relaxed) + 1
    }
}

impl State {
    fn choose(&mut self, total: u64) -> Next {
        let has_news = |w: &Waiting| w.seen != self.changes;
        let found = self.waiting.iter().position(has_news);
        if found.is_none() && self.next < total && self.waiting.len() < MOST_WAITING {
            return Next::Block;
        }
        let found = found.or_else(|| self.waiting.iter().position(|w| w.looks_at_clock));
        match found.and_then(|i| self.waiting.remove(i)) {
            Some(w) => Next::Waiting(w.number),
            None => Next::Nobody,
        }
    }
}

/// Ends the launch for all others when a thread panics.
struct Panicked<'t>(&'t Turns);

impl Drop for Panicked<'_> {
    fn drop(&mut self) {
        let (inst, block) = (naiad_ir::Inst::new(0), [0; 3]);
        let what = "panicked".to_string();
        let kind = FaultKind::Interrupted;
        self.0.end(Box::new(Fault { kind, inst, other: None, block, thread: None, what }));
    }
}
