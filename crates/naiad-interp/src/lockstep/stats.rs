//! What a run counts: memory transactions as a GPU makes them.
//!
//! | space | unit | rule |
//! |---|---|---|
//! | global | sector | an aligned 32 bytes; each that an access of a warp touches is moved once |
//! | shared | wavefront | 32 banks of 4 bytes each give one word; a word that several threads ask for is given once |
//!
//! An access of up to 4 bytes a thread is made for the warp's 32 threads together, of 8 bytes for 16 and of
//! 16 bytes for 8 of them; a wider one is several accesses of 16 bytes.

use naiad_ir::thread::Thread;
use naiad_ir::{Function, Inst};

/// Bytes of the widest access of a thread.
pub const WIDEST: usize = 16;
const SECTOR: u64 = 32;
const BANKS: usize = 32;

/// Counts of one op.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct OpStats {
    /// How often warps ran it; of accesses to memory, how many a warp made.
    pub warps: u64,
    /// Bytes that threads asked for.
    pub bytes: u64,
    /// Sectors of global memory.
    pub sectors: u64,
    /// Wavefronts of shared memory.
    pub wavefronts: u64,
    /// Wavefronts that there would be without bank conflicts.
    pub least_wavefronts: u64,
}

/// Counts of a run.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Stats {
    /// By the op.
    pub ops: Vec<OpStats>,
    pub blocks: u64,
}

impl Stats {
    pub(super) fn new(func: &Function<Thread>) -> Stats {
        Stats { ops: vec![OpStats::default(); func.num_insts()], blocks: 0 }
    }

    pub fn of(&self, inst: Inst) -> OpStats {
        self.ops.get(inst.index()).copied().unwrap_or_default()
    }

    /// The sum over ops that `f` chooses.
    pub fn sum(&self, f: impl Fn(Inst) -> bool) -> OpStats {
        let mut sum = OpStats::default();
        let ops = self.ops.iter().enumerate();
        ops.filter(|(i, _)| f(Inst::new(*i))).for_each(|(_, op)| sum.add(op));
        sum
    }

    /// Adds the counts of other blocks.
    pub(super) fn add(&mut self, other: &Stats) {
        self.ops.iter_mut().zip(&other.ops).for_each(|(op, other)| op.add(other));
        self.blocks += other.blocks;
    }
}

impl OpStats {
    fn add(&mut self, other: &OpStats) {
        self.warps += other.warps;
        self.bytes += other.bytes;
        self.sectors += other.sectors;
        self.wavefronts += other.wavefronts;
        self.least_wavefronts += other.least_wavefronts;
    }

    /// An access of a warp's threads `active` at their addresses.
    pub fn global(&mut self, at: &[u64], active: u32, bytes: usize) {
        for piece in (0..bytes).step_by(WIDEST) {
            let n = WIDEST.min(bytes - piece);
            let mut sectors = Few::new();
            for t in threads(active) {
                let lo = at[t].wrapping_add(piece as u64);
                let hi = lo.wrapping_add(n as u64 - 1);
                (lo / SECTOR..=hi / SECTOR).for_each(|s| sectors.insert(s));
            }
            self.warps += 1;
            self.sectors += sectors.count as u64;
            self.bytes += u64::from(active.count_ones()) * n as u64;
        }
    }

    /// An access of a warp's threads at places in shared memory.
    pub fn shared(&mut self, at: &[u64], active: u32, bytes: usize) {
        for piece in (0..bytes).step_by(WIDEST) {
            self.banks(at, active, piece as u64, WIDEST.min(bytes - piece));
            self.warps += 1;
        }
    }

    /// What the banks give for `bytes` bytes of each thread, `piece` behind its place.
    pub fn banks(&mut self, at: &[u64], active: u32, piece: u64, bytes: usize) {
        let together = (128 / bytes.max(4)).min(32);
        for first in (0..32).step_by(together) {
            let group = active & ((u64::MAX >> (64 - together)) << first) as u32;
            if group == 0 {
                continue;
            }
            let mut words = Few::new();
            for t in threads(group) {
                let lo = at[t].wrapping_add(piece);
                let hi = lo.wrapping_add(bytes as u64 - 1);
                (lo / 4..=hi / 4).for_each(|w| words.insert(w));
            }
            let mut banks = [0u64; BANKS];
            words.each(|w| banks[w as usize % BANKS] += 1);
            self.wavefronts += banks.iter().max().copied().unwrap_or(0);
            self.least_wavefronts += 1;
        }
        self.bytes += u64::from(active.count_ones()) * bytes as u64;
    }
}

fn threads(active: u32) -> impl Iterator<Item = usize> {
    (0..32).filter(move |i| active >> i & 1 != 0)
}

/// A set of at most 64 numbers.
struct Few {
    numbers: [u64; 64],
    count: usize,
}

impl Few {
    fn new() -> Few {
        Few { numbers: [0; 64], count: 0 }
    }

    fn insert(&mut self, number: u64) {
        let known = &self.numbers[..self.count];
        // Threads mostly come in the order of their addresses.
        if known.last() != Some(&number) && !known.contains(&number) {
            self.numbers[self.count] = number;
            self.count += 1;
        }
    }

    fn each(&self, f: impl FnMut(u64)) {
        self.numbers[..self.count].iter().copied().for_each(f);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared(bytes: usize, at: impl Fn(u64) -> u64) -> u64 {
        let at: Vec<u64> = (0..32).map(at).collect();
        let mut op = OpStats::default();
        op.shared(&at, u32::MAX, bytes);
        op.wavefronts
    }

    fn global(bytes: usize, at: impl Fn(u64) -> u64) -> u64 {
        let at: Vec<u64> = (0..32).map(at).collect();
        let mut op = OpStats::default();
        op.global(&at, u32::MAX, bytes);
        op.sectors
    }

    #[test]
    fn banks_conflict_as_on_a_gpu() {
        assert_eq!(shared(4, |t| 4 * t), 1);
        assert_eq!(shared(4, |t| 8 * t), 2);
        assert_eq!(shared(4, |t| 128 * t), 32);
        assert_eq!(shared(4, |t| 132 * t), 1, "a padded column");
        assert_eq!(shared(4, |_| 0), 1, "all read one word");
        assert_eq!(shared(2, |t| 2 * t), 1);
        assert_eq!(shared(1, |t| 128 * (t % 4)), 4);
        assert_eq!(shared(8, |t| 8 * t), 2);
        assert_eq!(shared(16, |t| 16 * t), 4);
        assert_eq!(shared(16, |t| 128 * t), 32);
        assert_eq!(shared(32, |t| 32 * t), 16, "two accesses, each of every other 16 bytes");
    }

    #[test]
    fn sectors_are_counted_once() {
        assert_eq!(global(4, |t| 4 * t), 4);
        assert_eq!(global(4, |t| 4 * t + 16), 5, "not aligned to a sector");
        assert_eq!(global(4, |t| 32 * t), 32);
        assert_eq!(global(16, |t| 16 * t), 16);
        assert_eq!(global(2, |_| 64), 1);
        assert_eq!(global(8, |t| 32 * (t / 4) + 8 * (t % 4)), 8);
    }
}
