//! Global memory: the arguments' storages.

use super::fault::FaultKind;
use crate::args::Arg;
use crate::memory::{Memory, Origin};
use std::ops::Range;

pub struct Global<'a> {
    memory: Memory<'a>,
    /// The storage that was found last, and whether it may be written.
    found: Range<u64>,
    writable: bool,
}

impl<'a> Global<'a> {
    pub fn new(names: &'a [String], args: &'a [Arg], exposed: &[Range<usize>]) -> Global<'a> {
        Global { memory: Memory::new(names, args, exposed), found: 0..0, writable: false }
    }

    /// Whether a thread may access these bytes, which are to lie at a multiple of `align`.
    pub fn check(
        &mut self,
        at: u64,
        bytes: usize,
        align: usize,
        write: bool,
    ) -> Result<(), (FaultKind, String)> {
        let inside = self.found.start <= at && at.saturating_add(bytes as u64) <= self.found.end;
        if !inside || write && !self.writable {
            self.find(at, bytes, write)?;
        }
        if !at.is_multiple_of(align as u64) {
            let what = format!(
                "accesses {bytes} bytes at once at address {at:#x}, which is no multiple of {align}"
            );
            return Err((FaultKind::Misaligned, what));
        }
        Ok(())
    }

    fn find(&mut self, at: u64, bytes: usize, write: bool) -> Result<(), (FaultKind, String)> {
        let lo = i128::from(at);
        let verb = if write { "writes" } else { "reads" };
        match self.memory.find(Origin::Unknown, lo, lo + bytes as i128, write) {
            Some(t) if write && !t.writable => {
                let what = format!("writes `{}`, which is read-only", t.name);
                Err((FaultKind::ReadOnly, what))
            }
            Some(t) => {
                self.found = t.lo as u64..(t.lo + t.len) as u64;
                self.writable = t.writable;
                Ok(())
            }
            None => Err((FaultKind::OutOfBounds, format!("{verb} {}", self.place(at, bytes)))),
        }
    }

    /// An address outside, by the argument that is nearest.
    fn place(&self, at: u64, bytes: usize) -> String {
        let distance = |lo: usize, len: usize| {
            let (at, lo) = (i128::from(at), lo as i128);
            (lo - at).max(at - (lo + len as i128)).max(0)
        };
        let tensors = self.memory.tensors.iter().flatten();
        match tensors.min_by_key(|t| distance(t.lo, t.len)) {
            Some(t) => format!(
                "{bytes} bytes at address {at:#x}, which is in no argument's memory; the nearest is `{}`, at byte {} of its {}",
                t.name,
                i128::from(at) - t.lo as i128,
                t.len
            ),
            None => format!("{bytes} bytes at address {at:#x}, and no argument has memory"),
        }
    }
}
