//! Programs that can be suspended in the middle of compiled code.
//!
//! All programs of a worker run on one stack, apart from the worker's own. What a suspended program has on it
//! is kept aside until it goes on: from where it is suspended to the stack's end, a kilobyte or two. So the
//! addresses of what is there stay as they are, a program that waits takes little memory and no pages of its
//! own, and the stack that runs is always the one that is in the caches. There is one guard behind it,
//! however many programs wait.
//!
//! A program stays with its worker, so nothing goes from thread to thread, and what the runtime keeps for a
//! thread within a call is still there when the call ends.

use corosensei::stack::{DefaultStack, Stack as _, StackPointer};
use corosensei::{Coroutine, CoroutineResult, Yielder};
use smallvec::SmallVec;
use std::cell::{Cell, RefCell};
use std::mem::ManuallyDrop;
use std::ptr::{copy_nonoverlapping, with_exposed_provenance, with_exposed_provenance_mut};

/// What a suspended program is told: that it may have so many idle rounds, or that it is to end.
#[derive(Copy, Clone)]
pub enum Order {
    GoOn { rounds: u64 },
    Stop,
}

/// Why a program is suspended.
pub struct Pause {
    /// Of the loop in which it waits.
    pub site: u32,
    /// Unless it does nothing but wait for another program's write.
    pub moving: bool,
    /// Nothing that it has on the stack lies lower.
    low: usize,
}

/// The stack that the programs of a worker share.
pub struct Stack {
    /// Its own; a pointer, since the programs know the stack, too.
    memory: *mut DefaultStack,
    /// Where it ends.
    base: usize,
    /// The program whose state is on it.
    holds: Option<u64>,
}

/// Stacks are multiples of so many bytes. Pages that nobody touches cost nothing.
const UNIT: usize = 256 << 10;

/// Bytes for the runtime and its library kernels, of which matrix products want most, and for handlers of
/// signals.
const RUNTIME: usize = 240 << 10;

/// Bytes below [`mark`] that it takes to leave a stack: a frame of corosensei and some registers.
const LEAVING: usize = 1024;

thread_local! {
    /// A stack from this thread's last launch.
    static KEPT: Cell<Option<Box<DefaultStack>>> = const { Cell::new(None) };
}

impl Stack {
    /// A stack for compiled code that wants so many bytes of it. None where the system gives no memory.
    pub fn new(bytes: usize) -> Option<Stack> {
        let bytes = (RUNTIME + bytes).next_multiple_of(UNIT);
        let kept = if bytes == UNIT { KEPT.take() } else { None };
        let memory = kept.or_else(|| DefaultStack::new(bytes).ok().map(Box::new))?;
        let base = memory.base().get();
        Some(Stack { memory: Box::into_raw(memory), base, holds: None })
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: it was made of a box, and whoever ran on it is gone.
        let memory = unsafe { Box::from_raw(self.memory) };
        // With its guard it is some pages larger.
        if memory.base().get() - memory.limit().get() < 2 * UNIT {
            KEPT.set(Some(memory));
        }
    }
}

/// A worker's stack as a coroutine knows it.
struct Shared(*mut DefaultStack);

// SAFETY: the stack has a guard, and lives longer than those that run on it: who makes them promises that.
// That they are many is seen to by their worker, which never lets one run on what another has left there.
unsafe impl corosensei::stack::Stack for Shared {
    fn base(&self) -> StackPointer {
        // SAFETY: it lives.
        unsafe { (*self.0).base() }
    }

    fn limit(&self) -> StackPointer {
        // SAFETY: it lives.
        unsafe { (*self.0).limit() }
    }

    #[cfg(windows)]
    fn teb_fields(&self) -> corosensei::stack::StackTebFields {
        // SAFETY: it lives.
        unsafe { (*self.0).teb_fields() }
    }

    #[cfg(windows)]
    fn update_teb_fields(&mut self, stack_limit: usize, guaranteed_stack_bytes: usize) {
        // SAFETY: it lives, and nobody else uses it now.
        unsafe { (*self.0).update_teb_fields(stack_limit, guaranteed_stack_bytes) }
    }
}

/// A program on its way.
pub struct Fiber {
    pub program: u64,
    /// Of the loop in which it waits.
    pub site: u32,
    coroutine: ManuallyDrop<Coroutine<Order, Pause, (), Shared>>,
    /// What it had on the stack when it was suspended, up to the stack's end.
    saved: Vec<u8>,
}

impl Fiber {
    /// A program that has not begun. It must be resumed before anything else is done with the stack.
    ///
    /// # Safety
    ///
    /// The stack and what the function refers to live until the fiber is dropped.
    pub unsafe fn new(stack: &mut Stack, program: u64, run: impl FnOnce(&Turn<'_>)) -> Fiber {
        stack.holds = Some(program);
        let shared = Shared(stack.memory);
        let body = |yielder: &Yielder<Order, Pause>, order: Order| {
            if let Order::GoOn { rounds } = order {
                run(&Turn::new(yielder, rounds));
            }
        };
        // SAFETY: the caller's promise.
        let coroutine = unsafe { Coroutine::with_stack_unchecked(shared, body) };
        let coroutine = ManuallyDrop::new(coroutine);
        Fiber { program, site: 0, coroutine, saved: Vec::new() }
    }

    /// Runs the program until it waits again; none when it has come to its end.
    pub fn resume(&mut self, stack: &mut Stack, order: Order) -> Option<Pause> {
        let base = stack.base;
        if stack.holds.replace(self.program) != Some(self.program) {
            let (from, bytes) = (self.saved.as_ptr(), self.saved.len());
            // SAFETY: it was there, and nobody runs on the stack now.
            unsafe { copy_nonoverlapping(from, with_exposed_provenance_mut(base - bytes), bytes) };
        }
        match self.coroutine.resume(order) {
            CoroutineResult::Yield(pause) => {
                let bytes = base - pause.low;
                self.saved.clear();
                self.saved.reserve_exact(bytes);
                // SAFETY: the stack has so many bytes above this address, and so has the vector.
                unsafe {
                    let from = with_exposed_provenance::<u8>(pause.low);
                    copy_nonoverlapping(from, self.saved.as_mut_ptr(), bytes);
                    self.saved.set_len(bytes);
                }
                Some(pause)
            }
            CoroutineResult::Return(()) => {
                stack.holds = None;
                None
            }
        }
    }
}

impl Drop for Fiber {
    fn drop(&mut self) {
        if !self.coroutine.done() {
            // Only after a panic of ours. Compiled code cannot be unwound, so what the program holds is lost.
            // SAFETY: nothing refers to what is on the stack but what is on it.
            unsafe { self.coroutine.force_reset() };
        }
        // SAFETY: here alone.
        unsafe { ManuallyDrop::drop(&mut self.coroutine) };
    }
}

/// Rounds of a loop that does more than wait until its program is suspended all the same: what it does need
/// not be what ends it.
const BUSY: u64 = 1024;

/// Rounds without a write after which a program counts as waiting although its own state changes: it may only
/// be counting.
const PATIENCE: u64 = 1 << 26;

/// What a running program has to do with others: for calls of the runtime.
///
/// A round of a loop is *fruitless* if it wrote no memory, and *idle* if it also left what the loop carries as
/// it was: then only another program's write, or time, can make a difference.
pub struct Turn<'a> {
    yielder: &'a Yielder<Order, Pause>,
    /// How often the program has written memory; compiled code counts.
    pub writes: Cell<u64>,
    /// How often it has read the clock: a loop that does may wait for a time, which comes by itself.
    pub clocks: Cell<u64>,
    /// For each loop by its site, the writes and the clock readings at the end of its last round.
    loops: RefCell<SmallVec<[(u32, u64, u64); 2]>>,
    /// Fruitless rounds in a row.
    fruitless: Cell<u64>,
    /// Rounds since the program was started or resumed, and how many it may have if they are idle.
    rounds: Cell<u64>,
    allowed: Cell<u64>,
    /// The loop in which it was suspended last, and its writes until then.
    suspended: Cell<Option<(u32, u64)>>,
}

impl<'a> Turn<'a> {
    fn new(yielder: &'a Yielder<Order, Pause>, rounds: u64) -> Turn<'a> {
        Turn {
            yielder,
            writes: Cell::new(0),
            clocks: Cell::new(0),
            loops: RefCell::default(),
            fruitless: Cell::new(0),
            rounds: Cell::new(0),
            allowed: Cell::new(rounds),
            suspended: Cell::new(None),
        }
    }

    /// A round of the loop of this site is over; `same` if what it carries is as it was before. Suspends the
    /// program now and then. Whether it is to go on.
    pub fn wait(&self, site: u32, same: bool) -> bool {
        let (writes, clocks) = (self.writes.get(), self.clocks.get());
        let before = self.end_round((site, writes, clocks));
        // What was before the first round is not known, which costs one round.
        let fruitless = before.is_some_and(|(_, w, _)| w == writes);
        let timed = before.is_none_or(|(.., c)| c != clocks);
        self.fruitless.set(if fruitless && !timed { self.fruitless.get() + 1 } else { 0 });
        let rounds = self.rounds.get() + 1;
        self.rounds.set(rounds);
        let idle = fruitless && same;
        if rounds < if idle { self.allowed.get() } else { BUSY } {
            if idle {
                std::hint::spin_loop();
            }
            return true;
        }
        // A whole round was run since the program was resumed, so that it has seen what others wrote before.
        let again = self.suspended.replace(Some((site, writes))) == Some((site, writes));
        let waits = idle && again && !timed || self.fruitless.get() > PATIENCE;
        match self.yielder.suspend(Pause { site, moving: !waits, low: mark() - LEAVING }) {
            Order::GoOn { rounds } => {
                self.rounds.set(0);
                self.allowed.set(rounds);
                true
            }
            Order::Stop => false,
        }
    }

    /// What was noted at the end of the loop's last round.
    fn end_round(&self, now: (u32, u64, u64)) -> Option<(u32, u64, u64)> {
        let mut loops = self.loops.borrow_mut();
        if let Some(last) = loops.iter_mut().find(|l| l.0 == now.0) {
            return Some(std::mem::replace(last, now));
        }
        loops.push(now);
        None
    }

    /// Calls a function on the worker's own stack, which has room for anything: a host may run Python there,
    /// which wants to know the stack that it is on.
    ///
    /// # Safety
    ///
    /// The function calls nothing of this turn.
    pub unsafe fn on_worker<R>(&self, f: impl FnOnce() -> R) -> R {
        struct Here<F>(F);
        // SAFETY: it stays on this thread. What the bound is to keep out, a suspension on the wrong stack, the
        // caller does.
        unsafe impl<F> Send for Here<F> {}
        impl<R, F: FnOnce() -> R> Here<F> {
            fn run(self) -> R {
                (self.0)()
            }
        }
        let here = Here(f);
        self.yielder.on_parent_stack(move || here.run())
    }
}

/// An address below what its caller has on the stack.
#[inline(never)]
fn mark() -> usize {
    let here = 0u8;
    std::hint::black_box(&raw const here).expose_provenance()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What lies below what is kept of a program was not touched by leaving the stack.
    #[test]
    fn all_that_is_on_the_stack_is_kept() {
        let mut stack = Stack::new(0).unwrap();
        let base = stack.base;
        let paint = |bytes: usize| {
            // SAFETY: it is the stack's memory, on which nobody runs.
            unsafe {
                std::slice::from_raw_parts_mut(
                    with_exposed_provenance_mut::<u8>(base - bytes),
                    bytes,
                )
            }
        };
        paint(UNIT / 2).fill(0xa5);
        // SAFETY: the stack lives longer.
        let mut fiber = unsafe { Fiber::new(&mut stack, 0, |turn| assert!(!turn.wait_now())) };
        let pause = fiber.resume(&mut stack, Order::GoOn { rounds: 1 }).unwrap();
        let touched = paint(UNIT / 2).iter().position(|&byte| byte != 0xa5).unwrap();
        let lowest = base - UNIT / 2 + touched;
        assert!(
            lowest >= pause.low + LEAVING / 4,
            "{} bytes below the mark",
            pause.low + LEAVING - lowest
        );
        assert!(fiber.resume(&mut stack, Order::Stop).is_none());
    }

    impl Turn<'_> {
        fn wait_now(&self) -> bool {
            self.wait(0, true) && self.wait(0, true)
        }
    }
}
