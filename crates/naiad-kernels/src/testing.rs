//! What tests of kernels share: random numbers, and buffers that a stray write shows in.

/// A small generator of random numbers, the same in each run.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn bits(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.bits() >> 33) as usize % n
    }

    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    pub fn bytes(&mut self, n: usize) -> Vec<u8> {
        (0..n).map(|_| self.bits() as u8).collect()
    }
}

/// Where the elements of a box lie: at `base + i * s0 + j * s1` of a buffer of `len` bytes that has
/// a margin on either side.
#[derive(Copy, Clone, Debug)]
pub struct Place {
    pub base: usize,
    pub strides: [isize; 2],
    pub len: usize,
}

impl Place {
    /// A place for `n` elements of `size` bytes, of which no two overlap unless a stride is 0.
    pub fn random(random: &mut Random, n: [usize; 2], size: usize, zeros: bool) -> Place {
        let inner = random.below(2);
        let mut strides = [0isize; 2];
        strides[inner] = (size * random.pick(&[1, 1, 1, 2, 3])) as isize;
        let extent = strides[inner] as usize * n[inner].max(1);
        let gap = random.pick(&[0, 0, 1, size, 3 * size + 1, 64, 4096]);
        // Often such that all lines begin at the same place in a cache line.
        let outer =
            if random.below(3) == 0 { (extent + gap).next_multiple_of(64) } else { extent + gap };
        strides[1 - inner] = outer as isize;
        for stride in &mut strides {
            if random.below(6) == 0 {
                *stride = -*stride;
            }
            if zeros && random.below(6) == 0 {
                *stride = 0;
            }
        }
        let reach = |axis: usize| strides[axis] * n[axis].saturating_sub(1) as isize;
        let low = reach(0).min(0) + reach(1).min(0);
        let high = reach(0).max(0) + reach(1).max(0);
        let margin = 64 + random.below(2) * random.below(64);
        let base = margin.wrapping_add_signed(-low);
        Place { base, strides, len: base.wrapping_add_signed(high) + size + 64 }
    }

    pub fn at(&self, i: usize, j: usize) -> usize {
        let offset = i as isize * self.strides[0] + j as isize * self.strides[1];
        self.base.wrapping_add_signed(offset)
    }
}

/// Bytes that begin at a multiple of 64.
pub struct Buffer {
    bytes: Vec<u8>,
    start: usize,
}

impl Buffer {
    pub fn new(bytes: &[u8]) -> Buffer {
        let mut all = vec![0; bytes.len() + 64];
        let start = all.as_ptr().align_offset(64);
        all[start..start + bytes.len()].copy_from_slice(bytes);
        Buffer { bytes: all, start }
    }

    pub fn at(&mut self, offset: usize) -> *mut u8 {
        self.bytes[self.start + offset..].as_mut_ptr()
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..][..self.bytes.len() - 64]
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        let len = self.bytes.len() - 64;
        &mut self.bytes[self.start..][..len]
    }
}
