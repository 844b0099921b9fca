//! The compiled variants of one kernel, shared by all threads that launch it.
//!
//! Nothing is asked of the host, and nothing of the host's is freed, while the table is locked: a
//! host that runs Python may switch to a thread that waits for that very lock.

use crate::ParamSpec;
use crate::recorder::{Answers, LiveHost};
use crate::signature::Signature;
use naiad_front::Compiled;
use naiad_interp::Code;
use rustc_hash::FxHashMap;
use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Variants that differ only in what the host had answered, or in the number of warps that they asked
/// for; the oldest are dropped.
const MAX_ALIKE: usize = 8;
/// Specializations of one kernel. Whoever makes more of them than this makes them without end, as by
/// a new object for a constexpr in each launch, and then memory must not grow without end too.
const MAX_KEYS: usize = 4096;

/// One compiled variant.
pub(crate) struct Variant<W> {
    pub made: Arc<Made>,
    watch: W,
}

pub(crate) struct Made {
    pub compiled: Arc<Compiled>,
    /// The same, ready for the reference executor.
    pub code: Code,
    /// The same as machine code.
    pub machine: crate::executor::Compiled,
    /// The same for GPUs.
    #[cfg(feature = "cuda")]
    pub gpu: crate::gpu::Compiled,
    pub answers: Answers,
    /// Where the kernel asked for it.
    num_warps: Option<u32>,
    /// Whether its findings and prints are yet to be shown.
    news: AtomicBool,
}

impl<W> Variant<W> {
    /// Whether the host sees at a glance that it would answer as it did.
    pub fn holds<H: LiveHost<Watch = W>>(&self, host: &H) -> bool {
        host.unchanged(&self.watch)
    }
}

impl Made {
    pub fn new(
        compiled: Compiled,
        #[cfg_attr(not(feature = "cuda"), expect(unused_variables))] specs: &[ParamSpec],
        #[cfg_attr(not(feature = "cuda"), expect(unused_variables))] signature: &Signature,
        answers: Answers,
        num_warps: u32,
    ) -> Made {
        Made {
            #[cfg(feature = "cuda")]
            gpu: crate::gpu::Compiled::new(&compiled.func, specs, signature),
            num_warps: compiled.asked_num_warps.then_some(num_warps),
            code: Code::new(compiled.func.clone()),
            machine: crate::executor::Compiled::default(),
            compiled: Arc::new(compiled),
            answers,
            news: AtomicBool::new(true),
        }
    }

    fn fits(&self, num_warps: u32) -> bool {
        self.num_warps.is_none_or(|n| n == num_warps)
    }

    /// True once: for who is to show the findings and prints.
    pub fn take_news(&self) -> bool {
        // Read before written: launches by many threads share this line of cache.
        self.news.load(Ordering::Relaxed) && self.news.swap(false, Ordering::Relaxed)
    }
}

pub(crate) struct Variants<W> {
    state: Mutex<State<W>>,
    /// Wakes those who wait for what another thread compiles.
    ended: Condvar,
}

struct State<W> {
    /// By the encoded specs, newest last.
    known: FxHashMap<Vec<u8>, VecDeque<Arc<Variant<W>>>>,
    /// The key of the variant that was added last.
    latest: Vec<u8>,
    /// What is being compiled, with the process that does it: the thread that a fork leaves behind
    /// in the parent never ends here.
    making: FxHashMap<Vec<u8>, u32>,
}

thread_local! {
    /// Whether this thread is compiling something.
    static COMPILING: Cell<bool> = const { Cell::new(false) };
}

/// The right to compile one specialization; ends when dropped.
pub(crate) struct Turn<'v, W> {
    variants: &'v Variants<W>,
    /// None for a compilation within another.
    key: Option<Vec<u8>>,
}

impl<W> Default for Variants<W> {
    fn default() -> Variants<W> {
        let (known, making) = (FxHashMap::default(), FxHashMap::default());
        let state = State { known, latest: Vec::new(), making };
        Variants { state: Mutex::new(state), ended: Condvar::new() }
    }
}

impl<W> Variants<W> {
    fn lock(&self) -> MutexGuard<'_, State<W>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The variant of this key whose answers the host would still give.
    pub fn find<H: LiveHost<Watch = W>>(
        &self,
        host: &H,
        key: &[u8],
        num_warps: u32,
    ) -> Option<Arc<Variant<W>>> {
        let newest = self.lock().known.get(key)?.back()?.clone();
        if newest.made.fits(num_warps) && newest.holds(host) {
            return Some(newest);
        }
        drop(newest);
        let alike: Vec<_> = self.lock().known.get(key)?.iter().rev().cloned().collect();
        let held = |v: &&Arc<Variant<W>>| v.made.fits(num_warps) && v.made.answers.still_hold(host);
        let held = host.together(|| alike.iter().find(held))?;
        // With a watch on what now stands, and in front of the others.
        self.insert(host, key.to_vec(), held.made.clone()).or_else(|| Some(held.clone()))
    }

    /// The last variant whose answers the host would still give: a compilation for other arguments
    /// will ask much the same.
    pub fn latest<H: LiveHost<Watch = W>>(&self, host: &H) -> Option<Arc<Made>> {
        let state = self.lock();
        let latest = state.known.get(&state.latest)?.back()?.clone();
        drop(state);
        latest.holds(host).then(|| latest.made.clone())
    }

    /// Waits until no other thread compiles this key. None: one did, so look again.
    pub fn begin(&self, key: &[u8]) -> Option<Turn<'_, W>> {
        // The host may run Python that launches kernels. A thread that waited in the middle of
        // compiling could wait for itself, or for one that waits for it: it compiles on its own.
        if COMPILING.get() {
            return Some(Turn { variants: self, key: None });
        }
        let process = std::process::id();
        let mut state = self.lock();
        if state.making.get(key) != Some(&process) {
            state.making.insert(key.to_vec(), process);
            COMPILING.set(true);
            return Some(Turn { variants: self, key: Some(key.to_vec()) });
        }
        while state.making.contains_key(key) {
            state = self.ended.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        None
    }

    /// Keeps what was compiled, unless the host changed its answers meanwhile.
    pub fn add<H: LiveHost<Watch = W>>(&self, host: &H, key: Vec<u8>, made: Made) -> Arc<Made> {
        let made = Arc::new(made);
        self.insert(host, key, made.clone());
        made
    }

    /// None where the host no longer gives these answers.
    fn insert<H: LiveHost<Watch = W>>(
        &self,
        host: &H,
        key: Vec<u8>,
        made: Arc<Made>,
    ) -> Option<Arc<Variant<W>>> {
        // First the watch and then the look: whatever changes in between is seen by one of them.
        let watch = host.together(|| {
            let watch = host.watch(&made.answers.questions());
            made.answers.still_hold(host).then_some(watch)
        });
        let variant = Arc::new(Variant { made: made.clone(), watch: watch? });
        let mut dropped = Vec::new();
        let mut state = self.lock();
        if state.known.len() >= MAX_KEYS && !state.known.contains_key(&key) {
            dropped.extend(state.known.drain().flat_map(|(_, alike)| alike));
        }
        state.latest.clone_from(&key);
        let alike = state.known.entry(key).or_default();
        let same = alike.iter().position(|v| Arc::ptr_eq(&v.made, &made));
        dropped.extend(same.and_then(|i| alike.remove(i)));
        if alike.len() >= MAX_ALIKE {
            dropped.extend(alike.pop_front());
        }
        alike.push_back(variant.clone());
        drop(state);
        drop(dropped);
        Some(variant)
    }

    /// Shows every watch to `f`; none where the table is in use at this moment.
    pub fn try_each(&self, mut f: impl FnMut(&W)) {
        if let Ok(state) = self.state.try_lock() {
            state.known.values().flatten().for_each(|v| f(&v.watch));
        }
    }

    /// Every variant with its key.
    pub fn all(&self) -> Vec<(Vec<u8>, Arc<Made>)> {
        let state = self.lock();
        let each = |(key, alike): (&Vec<u8>, &VecDeque<Arc<Variant<W>>>)| {
            alike.iter().map(|v| (key.clone(), v.made.clone())).collect::<Vec<_>>()
        };
        state.known.iter().flat_map(each).collect()
    }

    /// Forgets them all: whoever runs one runs it to its end.
    pub fn clear(&self) {
        let forgotten = std::mem::take(&mut self.lock().known);
        drop(forgotten);
    }

    /// How many variants there are.
    pub fn len(&self) -> usize {
        self.lock().known.values().map(VecDeque::len).sum()
    }
}

impl<W> Drop for Turn<'_, W> {
    fn drop(&mut self) {
        if let Some(key) = &self.key {
            COMPILING.set(false);
            self.variants.lock().making.remove(key);
            self.variants.ended.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn one_thread_compiles_and_the_others_wait() {
        let variants = Variants::<()>::default();
        let turns = AtomicUsize::new(0);
        std::thread::scope(|s| {
            for _ in 0..4 {
                s.spawn(|| {
                    if let Some(_turn) = variants.begin(b"key") {
                        turns.fetch_add(1, Ordering::SeqCst);
                        // Long enough for the others to arrive, and to be counted if they went on.
                        std::thread::sleep(std::time::Duration::from_millis(50));
                    }
                });
            }
        });
        assert_eq!(turns.into_inner(), 1);
        assert!(variants.lock().making.is_empty());
    }

    #[test]
    fn a_thread_that_compiles_never_waits() {
        let variants = Variants::<()>::default();
        let _outer = variants.begin(b"key").unwrap();
        drop(variants.begin(b"key").unwrap());
        assert!(variants.lock().making.contains_key(&b"key"[..]));
    }
}
