//! Which accesses of different programs are ordered.
//!
//! A program's life is cut into *epochs*: a new one begins where it acquires or releases. A release
//! publishes what the program knows at a place in memory, an acquire takes it over: then all up to the
//! release comes before all after the acquire. What read-modify-write operations do to a place goes on
//! with the release before (a release sequence). *Weak* order, by relaxed atomics and volatile loads, is
//! kept beside the strong one: hardware may break it.
//!
//! Where no access of a kernel can acquire, epochs are programs and nothing is ordered.

use naiad_ir::tile::{Scope, Sem};
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// For programs, up to which of their epochs everything is known.
type Clock = Arc<FxHashMap<u32, u32>>;

#[derive(Clone)]
struct Epoch {
    program: u32,
    /// Counts the program's epochs, from 1.
    number: u32,
    strong: Clock,
    weak: Clock,
}

#[derive(Default)]
struct Place {
    strong: Clock,
    weak: Clock,
    last: Option<(u32, Scope)>,
}

#[derive(Default)]
struct State {
    epochs: Vec<Epoch>,
    places: FxHashMap<usize, Place>,
}

#[derive(Default)]
pub struct Sync(Mutex<State>);

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Order {
    Strong,
    Weak,
    None,
}

fn join(a: &Clock, b: &Clock) -> Clock {
    if Arc::ptr_eq(a, b) || b.iter().all(|(p, n)| a.get(p).is_some_and(|m| m >= n)) {
        return a.clone();
    }
    if a.is_empty() {
        return b.clone();
    }
    let mut all = a.clone();
    let known = Arc::make_mut(&mut all);
    for (&program, &number) in b.iter() {
        let mine = known.entry(program).or_default();
        *mine = (*mine).max(number);
    }
    all
}

fn with(clock: &Clock, program: u32, number: u32) -> Clock {
    let mut all = clock.clone();
    Arc::make_mut(&mut all).insert(program, number);
    all
}

impl Sync {
    fn with<T>(&self, f: impl FnOnce(&mut State) -> T) -> T {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A program's first epoch.
    pub fn begin(&self, program: u32) -> u32 {
        self.with(|s| {
            let (strong, weak) = (Clock::default(), Clock::default());
            s.push(Epoch { program, number: 1, strong, weak })
        })
    }

    pub fn program(&self, epoch: u32) -> u32 {
        self.with(|s| s.epochs[epoch as usize].program)
    }

    /// Whether everything in epoch `a` comes before what epoch `b` does.
    pub fn order(&self, a: u32, b: u32) -> Order {
        self.with(|s| {
            let (a, b) = (&s.epochs[a as usize], &s.epochs[b as usize]);
            let knows = |clock: &Clock| clock.get(&a.program).is_some_and(|&n| n >= a.number);
            match a.program == b.program || knows(&b.strong) {
                true => Order::Strong,
                false if knows(&b.weak) => Order::Weak,
                false => Order::None,
            }
        })
    }

    /// A program's operation on a place: what it acquires and releases. Gives the epoch from here on,
    /// and the program whose operation of a narrower scope was met there.
    pub fn operate(&self, epoch: u32, place: usize, how: Operation) -> (u32, Option<u32>) {
        self.with(|s| {
            let mut e = s.epochs[epoch as usize].clone();
            let at = s.places.entry(place).or_default();
            let narrow = at.last.filter(|&(program, scope)| {
                program != e.program && (scope == Scope::Cta || how.scope == Scope::Cta)
            });
            if how.reads {
                if how.sem.acquires() && narrow.is_none() {
                    e.strong = join(&e.strong, &at.strong);
                }
                e.weak = join(&join(&e.weak, &at.weak), &at.strong);
            }
            if how.writes {
                let (strong, weak) = match how.reads {
                    true => (at.strong.clone(), at.weak.clone()),
                    // A plain atomic store ends the sequence.
                    false => Default::default(),
                };
                at.strong = strong;
                if how.sem.releases() {
                    at.strong = join(&at.strong, &with(&e.strong, e.program, e.number));
                }
                at.weak = join(&weak, &with(&e.weak, e.program, e.number));
                at.last = Some((e.program, how.scope));
            }
            let old = &s.epochs[epoch as usize];
            let learned = !Arc::ptr_eq(&old.strong, &e.strong) || !Arc::ptr_eq(&old.weak, &e.weak);
            if !learned && !how.writes {
                // Nothing has begun: a poll that found nothing new.
                return (epoch, narrow.map(|n| n.0));
            }
            e.number += 1;
            (s.push(e), narrow.map(|n| n.0))
        })
    }
}

/// What an operation does for order.
#[derive(Copy, Clone)]
pub struct Operation {
    pub reads: bool,
    pub writes: bool,
    pub sem: Sem,
    pub scope: Scope,
}

impl State {
    fn push(&mut self, epoch: Epoch) -> u32 {
        self.epochs.push(epoch);
        self.epochs.len() as u32 - 1
    }
}

trait Orders {
    fn acquires(self) -> bool;
    fn releases(self) -> bool;
}

impl Orders for Sem {
    fn acquires(self) -> bool {
        matches!(self, Sem::AcqRel | Sem::Acquire)
    }

    fn releases(self) -> bool {
        matches!(self, Sem::AcqRel | Sem::Release)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RMW: Operation =
        Operation { reads: true, writes: true, sem: Sem::AcqRel, scope: Scope::Gpu };

    #[test]
    fn a_release_orders_what_acquires_it() {
        let sync = Sync::default();
        let (a, b, c) = (sync.begin(0), sync.begin(1), sync.begin(2));
        assert_eq!(sync.order(a, b), Order::None);
        sync.operate(a, 64, RMW);
        let (b2, _) = sync.operate(b, 64, RMW);
        assert_eq!(sync.order(a, b2), Order::Strong);
        assert_eq!(sync.order(a, b), Order::None);
        // Through a second program.
        let (c2, _) = sync.operate(c, 64, RMW);
        assert_eq!(sync.order(a, c2), Order::Strong);
        assert_eq!(sync.order(b, c2), Order::Strong);
    }

    #[test]
    fn relaxed_order_is_weak_and_a_narrow_scope_none() {
        let relaxed = Operation { sem: Sem::Relaxed, ..RMW };
        let sync = Sync::default();
        let (a, b) = (sync.begin(0), sync.begin(1));
        sync.operate(a, 64, relaxed);
        let (b2, _) = sync.operate(b, 64, relaxed);
        assert_eq!(sync.order(a, b2), Order::Weak);
        let narrow = Operation { scope: Scope::Cta, ..RMW };
        let (c, d) = (sync.begin(2), sync.begin(3));
        sync.operate(c, 128, narrow);
        let (d2, met) = sync.operate(d, 128, narrow);
        assert_eq!((sync.order(c, d2), met), (Order::Weak, Some(2)));
    }
}
