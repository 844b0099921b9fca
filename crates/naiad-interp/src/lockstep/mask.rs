//! Sets of a block's threads.

use naiad_ir::thread::fragments::WARP;

/// Threads of a block at most, as on every NVIDIA GPU.
pub const MAX_THREADS: usize = 1024;

const WARPS: usize = MAX_THREADS / WARP as usize;

/// A set of threads: a bit for each, a word for each warp.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Mask {
    warps: [u32; WARPS],
}

impl Mask {
    pub const NONE: Mask = Mask { warps: [0; WARPS] };

    /// The first `count` threads, a multiple of a warp's.
    pub fn first(count: usize) -> Mask {
        let mut mask = Mask::NONE;
        mask.warps[..count / WARP as usize].fill(u32::MAX);
        mask
    }

    /// The threads whose lane of `i1` is true; the lanes of whole warps are bytes 0 or 1.
    pub fn of_lanes(lanes: &[u8]) -> Mask {
        let mut mask = Mask::NONE;
        for (word, lanes) in mask.warps.iter_mut().zip(lanes.chunks_exact(WARP as usize)) {
            for (i, eight) in lanes.as_chunks::<8>().0.iter().enumerate() {
                // Gathers the lowest bits of 8 bytes in the highest byte; no two products meet in a bit.
                let bits = u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56;
                *word |= (bits as u32) << (8 * i);
            }
        }
        mask
    }

    pub fn and(&self, other: &Mask) -> Mask {
        let mut out = *self;
        out.warps.iter_mut().zip(&other.warps).for_each(|(a, b)| *a &= b);
        out
    }

    pub fn or(&self, other: &Mask) -> Mask {
        let mut out = *self;
        out.warps.iter_mut().zip(&other.warps).for_each(|(a, b)| *a |= b);
        out
    }

    pub fn without(&self, other: &Mask) -> Mask {
        let mut out = *self;
        out.warps.iter_mut().zip(&other.warps).for_each(|(a, b)| *a &= !b);
        out
    }

    pub fn remove(&mut self, thread: usize) {
        self.warps[thread / 32] &= !(1 << (thread % 32));
    }

    pub fn is_empty(&self) -> bool {
        self.warps.iter().all(|&w| w == 0)
    }

    /// The threads of a warp, as bits.
    pub fn warp(&self, warp: usize) -> u32 {
        self.warps[warp]
    }

    /// Warps of which any thread is in the set.
    pub fn warps(&self) -> impl Iterator<Item = usize> + use<> {
        let warps = self.warps;
        (0..WARPS).filter(move |&w| warps[w] != 0)
    }

    /// The threads in order.
    pub fn threads(&self) -> impl Iterator<Item = usize> + use<> {
        let warps = self.warps;
        (0..WARPS).flat_map(move |w| {
            let mut left = warps[w];
            std::iter::from_fn(move || {
                let bit = left.trailing_zeros();
                left &= left.wrapping_sub(1);
                (bit < 32).then(|| w * 32 + bit as usize)
            })
        })
    }

    pub fn count(&self) -> u32 {
        self.warps.iter().map(|w| w.count_ones()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_become_bits() {
        let lanes: Vec<u8> = (0..96).map(|i| u8::from(i % 3 == 0 || i == 64)).collect();
        let mask = Mask::of_lanes(&lanes);
        let threads: Vec<usize> = mask.threads().collect();
        let want: Vec<usize> = (0..96).filter(|&i| lanes[i] != 0).collect();
        assert_eq!(threads, want);
        assert_eq!(mask.count() as usize, want.len());
        assert_eq!(mask.warps().collect::<Vec<_>>(), [0, 1, 2]);
        assert!(mask.without(&mask).is_empty());
        assert_eq!(Mask::first(96).and(&mask), mask);
    }
}
