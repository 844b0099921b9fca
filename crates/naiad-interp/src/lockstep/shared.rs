//! Shared memory of a block, and what is known of each part of it.
//!
//! Time is counted in *epochs*, which barriers of the block end, and within them in *steps* of each
//! warp, which its `warp_barrier`s end. Of two accesses the first is ordered before the second if both
//! are of one thread, or of one warp in different steps, or of different epochs; if they are not, and
//! one writes, it is a race, whatever the order in which they happen to run here. For each *granule* of
//! memory, bytes that are always accessed together, the last write and the reads since are kept. Writes
//! of the same bytes by one op are no race: which of them is last makes no difference.
//!
//! An asynchronous copy takes its bytes when it begins, and they arrive at the wait for its group. In
//! between nobody may touch the place. Arriving counts as a write of the thread that waits, then.

use super::fault::FaultKind;
use super::mask::Mask;
use naiad_ir::Inst;

/// What shared addresses begin with; not 0, so that who forgets `shared_base` finds out.
pub const BASE: u64 = 1024;

/// More than one thread, of one warp or of several.
const MANY: u32 = 1 << 31;
const OF_ALL: u32 = u32::MAX;

/// Accesses to a granule, of one thread or of several.
#[derive(Copy, Clone)]
struct Stamp {
    /// 0 for none.
    epoch: u32,
    step: u32,
    /// A thread, `MANY | warp`, or `OF_ALL`.
    who: u32,
    inst: Inst,
}

#[derive(Copy, Clone)]
struct Cell {
    write: Stamp,
    read: Stamp,
    /// The last write was atomic.
    atomic: bool,
    in_flight: bool,
}

/// A copy begun.
struct Copy {
    thread: u32,
    /// The number of its group among the thread's.
    group: u32,
    at: u64,
    bytes: u32,
    data: [u8; 16],
    inst: Inst,
    /// The place in global memory that it reads; none where zeros are written.
    from: Option<u64>,
}

/// What is wrong with an access, and the op that it is wrong with.
pub type Problem = (FaultKind, String, Option<Inst>);

pub struct Shared {
    data: Vec<u8>,
    granule: usize,
    cells: Vec<Cell>,
    epoch: u32,
    /// The epoch in which the block began.
    first: u32,
    /// By warp.
    steps: [u32; 32],
    copies: Vec<Copy>,
    /// Groups that each thread has closed.
    groups: Vec<u32>,
}

/// One access of a thread.
#[derive(Copy, Clone)]
pub struct Access {
    pub inst: Inst,
    pub thread: usize,
    /// The address.
    pub at: u64,
}

impl Shared {
    pub fn new(bytes: usize, granule: usize, threads: usize) -> Shared {
        let never = Stamp { epoch: 0, step: 0, who: OF_ALL, inst: Inst::new(0) };
        let cell = Cell { write: never, read: never, atomic: false, in_flight: false };
        Shared {
            data: vec![0xa5; bytes],
            granule,
            cells: vec![cell; bytes.div_ceil(granule)],
            epoch: 0,
            first: 0,
            steps: [0; 32],
            copies: Vec::new(),
            groups: vec![0; threads],
        }
    }

    /// Begins a block.
    pub fn begin(&mut self) {
        for copy in std::mem::take(&mut self.copies) {
            self.land(&copy);
        }
        self.epoch += 1;
        self.first = self.epoch;
        self.groups.fill(0);
    }

    /// Orders the accesses of all threads.
    pub fn barrier(&mut self) {
        self.epoch += 1;
    }

    /// Orders the accesses of a warp's threads.
    pub fn warp_barrier(&mut self, warp: usize) {
        self.steps[warp] += 1;
    }

    /// The bytes that a thread reads.
    pub fn read(&mut self, a: Access, bytes: usize, align: usize) -> Result<&[u8], Problem> {
        let at = self.locate(a, bytes, align)?;
        for i in at / self.granule..(at + bytes).div_ceil(self.granule) {
            self.read_cell(a, i)?;
        }
        Ok(&self.data[at..at + bytes])
    }

    /// The bytes `from..from + bytes` of a row of memory that is asked for as a whole.
    pub fn read_part(
        &mut self,
        a: Access,
        row: usize,
        from: usize,
        bytes: usize,
    ) -> Result<&[u8], Problem> {
        let at = self.locate(a, row, row)? + from;
        for i in at / self.granule..(at + bytes).div_ceil(self.granule) {
            self.read_cell(a, i)?;
        }
        Ok(&self.data[at..at + bytes])
    }

    /// Writes bytes of a thread; says whether they are others than before.
    pub fn write(&mut self, a: Access, bytes: &[u8], align: usize) -> Result<bool, Problem> {
        let at = self.locate(a, bytes.len(), align)?;
        for (i, part) in (at / self.granule..).zip(bytes.chunks(self.granule)) {
            let start = i * self.granule;
            let same = &self.data[start..start + part.len()] == part;
            self.write_cell(a, i, same)?;
        }
        let place = &mut self.data[at..at + bytes.len()];
        let changed = place != bytes;
        place.copy_from_slice(bytes);
        Ok(changed)
    }

    /// The place of an atomic update by a thread.
    pub fn update(&mut self, a: Access, bytes: usize) -> Result<&mut [u8], Problem> {
        let at = self.locate(a, bytes, bytes)?;
        let now = self.now(a);
        for i in at / self.granule..(at + bytes).div_ceil(self.granule) {
            self.landed(a, i)?;
            self.initialized(a, i)?;
            let cell = self.cells[i];
            let atomics = cell.atomic && cell.write.epoch == self.epoch;
            if !atomics && !self.ordered(&cell.write, a.thread) {
                return Err(self.race(a, i, cell.write, "updates", "wrote"));
            }
            if !self.ordered(&cell.read, a.thread) {
                return Err(self.race(a, i, cell.read, "updates", "read"));
            }
            let write = if atomics { merge(cell.write, now) } else { now };
            self.cells[i] = Cell { write, atomic: true, ..cell };
        }
        Ok(&mut self.data[at..at + bytes])
    }

    /// Begins a copy to shared memory.
    pub fn copy(&mut self, a: Access, data: &[u8], from: Option<u64>) -> Result<(), Problem> {
        let at = self.locate(a, data.len(), data.len())?;
        for i in at / self.granule..(at + data.len()).div_ceil(self.granule) {
            self.write_cell(a, i, false)?;
            self.cells[i].in_flight = true;
        }
        let mut bytes = [0; 16];
        bytes[..data.len()].copy_from_slice(data);
        self.copies.push(Copy {
            thread: a.thread as u32,
            group: self.groups[a.thread],
            at: at as u64,
            bytes: data.len() as u32,
            data: bytes,
            inst: a.inst,
            from,
        });
        Ok(())
    }

    /// Closes the groups of threads.
    pub fn commit(&mut self, mask: &Mask) {
        mask.threads().for_each(|t| self.groups[t] += 1);
    }

    /// Waits until at most `pending` groups of each of the threads are not done.
    pub fn wait(&mut self, mask: &Mask, pending: u32) {
        let copies = std::mem::take(&mut self.copies);
        for copy in copies {
            let (thread, closed) = (copy.thread as usize, self.groups[copy.thread as usize]);
            let waits = mask.warp(thread / 32) >> (thread % 32) & 1 != 0;
            if waits && copy.group.saturating_add(pending) < closed {
                self.land(&copy);
            } else {
                self.copies.push(copy);
            }
        }
    }

    /// The copy in flight that reads some of these bytes of global memory.
    pub fn reader_of(&self, at: u64, bytes: usize) -> Option<Inst> {
        let reads = |c: &&Copy| {
            c.from.is_some_and(|from| from < at + bytes as u64 && at < from + u64::from(c.bytes))
        };
        self.copies.iter().find(reads).map(|c| c.inst)
    }

    fn land(&mut self, copy: &Copy) {
        let (at, bytes) = (copy.at as usize, copy.bytes as usize);
        self.data[at..at + bytes].copy_from_slice(&copy.data[..bytes]);
        let a = Access { inst: copy.inst, thread: copy.thread as usize, at: copy.at };
        let now = self.now(a);
        for cell in &mut self.cells[at / self.granule..(at + bytes).div_ceil(self.granule)] {
            cell.write = now;
            cell.in_flight = false;
        }
    }

    fn locate(&self, a: Access, bytes: usize, align: usize) -> Result<usize, Problem> {
        let at = a.at.wrapping_sub(BASE);
        if at.checked_add(bytes as u64).is_none_or(|end| end > self.data.len() as u64) {
            let what = format!(
                "accesses {bytes} bytes at byte {} of shared memory, which has {}",
                at as i64,
                self.data.len()
            );
            return Err((FaultKind::SharedRange, what, None));
        }
        if !at.is_multiple_of(align as u64) {
            let what = format!(
                "accesses {bytes} bytes at once at byte {at} of shared memory, which is no multiple of {align}"
            );
            return Err((FaultKind::Misaligned, what, None));
        }
        Ok(at as usize)
    }

    fn now(&self, a: Access) -> Stamp {
        let step = self.steps[a.thread / 32];
        Stamp { epoch: self.epoch, step, who: a.thread as u32, inst: a.inst }
    }

    /// Whether accesses happened before what a thread does now.
    fn ordered(&self, before: &Stamp, thread: usize) -> bool {
        let warp = thread as u32 / 32;
        let same_warp = before.who != OF_ALL
            && warp == if before.who & MANY != 0 { before.who & !MANY } else { before.who / 32 };
        before.epoch < self.epoch
            || before.who == thread as u32
            || same_warp && before.step < self.steps[warp as usize]
    }

    fn read_cell(&mut self, a: Access, i: usize) -> Result<(), Problem> {
        self.landed(a, i)?;
        self.initialized(a, i)?;
        let cell = self.cells[i];
        if !self.ordered(&cell.write, a.thread) {
            return Err(self.race(a, i, cell.write, "reads", "wrote"));
        }
        let now = self.now(a);
        self.cells[i].read =
            if cell.read.epoch == self.epoch { merge(cell.read, now) } else { now };
        Ok(())
    }

    fn write_cell(&mut self, a: Access, i: usize, same: bool) -> Result<(), Problem> {
        self.landed(a, i)?;
        let cell = self.cells[i];
        if !self.ordered(&cell.read, a.thread) {
            return Err(self.race(a, i, cell.read, "writes", "read"));
        }
        let now = self.now(a);
        let write = if self.ordered(&cell.write, a.thread) {
            now
        } else if same && cell.write.inst == a.inst && !cell.atomic {
            merge(cell.write, now)
        } else {
            return Err(self.race(a, i, cell.write, "writes", "wrote"));
        };
        self.cells[i] = Cell { write, atomic: false, ..cell };
        Ok(())
    }

    fn landed(&self, a: Access, i: usize) -> Result<(), Problem> {
        if !self.cells[i].in_flight {
            return Ok(());
        }
        let granule = self.granule;
        let covers = |c: &&Copy| {
            let at = c.at as usize;
            (at / granule..(at + c.bytes as usize).div_ceil(granule)).contains(&i)
        };
        let copy = self.copies.iter().find(covers);
        let by = copy.map_or(String::new(), |c| format!(", begun by thread {}", c.thread));
        let what = format!(
            "of thread {} uses byte {} of shared memory, which an asynchronous copy{by} may not have reached",
            a.thread,
            i * granule
        );
        Err((FaultKind::InFlight, what, copy.map(|c| c.inst)))
    }

    fn initialized(&self, a: Access, i: usize) -> Result<(), Problem> {
        if self.cells[i].write.epoch >= self.first {
            return Ok(());
        }
        let what = format!(
            "of thread {} reads byte {} of shared memory, which the block has not written",
            a.thread,
            i * self.granule
        );
        Err((FaultKind::SharedUnwritten, what, None))
    }

    fn race(&self, a: Access, i: usize, with: Stamp, does: &str, did: &str) -> Problem {
        let other = match with.who {
            OF_ALL => "threads of several warps".to_string(),
            who if who & MANY != 0 => format!("several threads of warp {}", who & !MANY),
            who => format!("thread {who}"),
        };
        let what = format!(
            "of thread {} {does} byte {} of shared memory, which {other} {did} with no barrier between",
            a.thread,
            i * self.granule
        );
        (FaultKind::SharedRace, what, Some(with.inst))
    }
}

/// Accesses of the same kind in one epoch, as one. Of one warp only the last step counts: what it did
/// before is ordered within it, and for other warps nothing of the epoch is.
fn merge(old: Stamp, new: Stamp) -> Stamp {
    let warp = |who: u32| if who & MANY != 0 { who & !MANY } else { who / 32 };
    let who = if old.who == OF_ALL || warp(old.who) != warp(new.who) {
        OF_ALL
    } else if old.who == new.who || old.step < new.step {
        new.who
    } else {
        MANY | warp(new.who)
    };
    Stamp { who, ..new }
}
