//! Ops that have been seen, so that an equal one can be recognized.
//!
//! The table has a scope for each region: what a region holds is forgotten at its end, so whatever is
//! found stands before and dominates. An undo log makes leaving a scope cost what entering values
//! into it did.

use crate::structure::Structured;
use naiad_ir::{Function, Inst};
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};

#[derive(Default)]
pub struct Numbering {
    /// By the hash of the op; the op itself is compared. Of two ops with one hash the later is kept,
    /// which loses a merge and nothing else.
    seen: FxHashMap<u64, Inst>,
    /// What each entry of the open scopes has replaced.
    log: Vec<(u64, Option<Inst>)>,
}

/// An open scope, to be given back.
#[must_use]
pub struct Scope(usize);

impl Numbering {
    pub fn enter(&mut self) -> Scope {
        Scope(self.log.len())
    }

    pub fn leave(&mut self, Scope(start): Scope) {
        for (hash, before) in self.log.drain(start..).rev() {
            match before {
                Some(inst) => self.seen.insert(hash, inst),
                None => self.seen.remove(&hash),
            };
        }
    }

    /// An op that has been seen and equals this one. Only pure ops without regions are ever seen.
    pub fn find<D: Structured>(&self, func: &Function<D>, op: &D::Op) -> Option<Inst> {
        self.seen.get(&hash::<D>(op)).copied().filter(|&inst| func.op(inst) == op)
    }

    /// The op that equals this one, or none, and this one is entered. It is pure and has no regions.
    pub fn find_or_add<D: Structured>(&mut self, func: &Function<D>, inst: Inst) -> Option<Inst> {
        let op = func.op(inst);
        let hash = hash::<D>(op);
        let before = self.seen.get(&hash).copied();
        if let Some(same) = before
            && func.op(same) == op
        {
            return Some(same);
        }
        self.seen.insert(hash, inst);
        self.log.push((hash, before));
        None
    }
}

fn hash<D: Structured>(op: &D::Op) -> u64 {
    let mut hasher = FxHasher::default();
    std::mem::discriminant(op).hash(&mut hasher);
    op.hash(&mut hasher);
    hasher.finish()
}
