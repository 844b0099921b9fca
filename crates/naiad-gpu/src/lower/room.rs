//! The part of shared memory that ops use for themselves, one after the other.
//!
//! Whoever writes there has to wait until all threads have read what stood there before. Ops that need
//! little use two halves by turns: between one's reads and the next but one's writes stands the barrier
//! of the op between them, so that none has to be put in.

use super::Lower;

/// Bytes of a half.
const HALF: u32 = 2048;

/// What of it may still be read by a thread that is behind.
#[derive(Copy, Clone, Default)]
pub struct InUse {
    halves: [bool; 2],
    /// The half that is next.
    next: usize,
}

/// What an op got.
#[derive(Copy, Clone)]
pub struct Room {
    /// Where it begins.
    pub at: u32,
    half: Option<usize>,
}

impl InUse {
    /// Nothing is known of what other threads still read.
    pub const ALL: InUse = InUse { halves: [true; 2], next: 0 };

    pub fn any(self) -> bool {
        self.halves.contains(&true)
    }

    /// What holds where either may.
    pub fn or(self, other: InUse) -> InUse {
        let halves = [0, 1].map(|h| self.halves[h] || other.halves[h]);
        InUse { halves, next: self.next }
    }

    /// Behind a barrier.
    pub fn clear(&mut self) {
        self.halves = [false; 2];
    }
}

impl Lower<'_> {
    /// Room for so many bytes, once it is free.
    pub fn begin_use(&mut self, bytes: u32) -> Room {
        let small = bytes <= HALF;
        let half = small.then_some(self.in_use.next);
        let taken = match half {
            Some(half) => self.in_use.halves[half],
            None => self.in_use.any(),
        };
        if taken {
            self.sync();
        }
        let from = self.reserved.next_multiple_of(16);
        let at = from + half.map_or(0, |half| half as u32 * HALF);
        self.bytes = self.bytes.max(at + bytes);
        Room { at, half }
    }

    /// All that the thread wanted of it is read.
    pub fn end_use(&mut self, room: Room) {
        match room.half {
            Some(half) => {
                self.in_use.halves[half] = true;
                self.in_use.next = 1 - half;
            }
            None => self.in_use.halves = [true; 2],
        }
    }
}
