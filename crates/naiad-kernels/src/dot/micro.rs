//! The microkernels: `rows x (vectors * lanes)` of sums in registers, over all of `k`.

use super::vector::*;

/// Operands and sums of one call of a microkernel; strides in bytes.
#[derive(Copy, Clone)]
pub(crate) struct Block {
    pub a: *const u8,
    pub a_row: isize,
    pub a_step: isize,
    /// Rows of whole vectors, one a step.
    pub b: *const u8,
    pub b_step: isize,
    pub c: *mut u8,
    pub c_row: isize,
    pub steps: usize,
    /// Lanes of the last vector of sums that there are, if not all.
    pub tail: Option<usize>,
}

/// Adds the product to the sums.
pub(crate) type Kernel = unsafe fn(&Block);

/// The microkernels of one kind of sum at one level.
pub(crate) struct Family {
    pub lanes: usize,
    /// Bytes of an element, of operands and sums.
    pub size: usize,
    /// By the number of vectors in a row, falling; and then by the number of rows, falling to 1.
    pub widths: &'static [(usize, &'static [(usize, Kernel)])],
}

impl Family {
    /// The multiple of the lanes, which are a power of two, that is not greater.
    pub fn down(&self, n: usize) -> usize {
        n & !(self.lanes - 1)
    }

    /// The one that is not less.
    pub fn up(&self, n: usize) -> usize {
        self.down(n + self.lanes - 1)
    }
}

#[inline(always)]
unsafe fn multiply<V: Vector, const ROWS: usize, const WIDTH: usize>(block: &Block) {
    let Block { a, a_row, a_step, b, b_step, c, c_row, steps, tail } = *block;
    // Nothing that calls a closure, such as `from_fn` or `map`: that would be a function without the
    // target features, and if it is not inlined it passes vectors in memory.
    let width = const { (V::LANES * V::SIZE) as isize };
    // SAFETY: the caller's.
    unsafe {
        let mut sums = [[V::zero(); WIDTH]; ROWS];
        let mut c_row_at = c;
        for row in &mut sums {
            let mut at = c_row_at;
            for (j, sum) in row.iter_mut().enumerate() {
                *sum = match tail {
                    Some(lanes) if j == WIDTH - 1 => V::load_first(at, lanes),
                    _ => V::load(at),
                };
                at = at.wrapping_offset(width);
            }
            c_row_at = c_row_at.wrapping_offset(c_row);
        }
        let (mut a, mut b) = (a, b);
        for _ in 0..steps {
            let mut vectors = [V::zero(); WIDTH];
            let mut at = b;
            for vector in &mut vectors {
                *vector = V::load(at);
                at = at.wrapping_offset(width);
            }
            let mut at = a;
            for row in &mut sums {
                let x = V::splat(at);
                for (sum, vector) in row.iter_mut().zip(vectors) {
                    *sum = sum.plus_product(x, vector);
                }
                at = at.wrapping_offset(a_row);
            }
            a = a.wrapping_offset(a_step);
            b = b.wrapping_offset(b_step);
        }
        let mut c_row_at = c;
        for row in sums {
            let mut at = c_row_at;
            for (j, sum) in row.into_iter().enumerate() {
                match tail {
                    Some(lanes) if j == WIDTH - 1 => sum.store_first(at, lanes),
                    _ => sum.store(at),
                }
                at = at.wrapping_offset(width);
            }
            c_row_at = c_row_at.wrapping_offset(c_row);
        }
    }
}

/// A family of kernels, compiled with the target features of its level.
macro_rules! family {
    (#[$compile:meta] $name:ident: $vector:ty; $($width:literal x $($rows:literal)+;)+) => {
        pub(crate) static $name: Family = Family {
            lanes: <$vector as Vector>::LANES,
            size: <$vector as Vector>::SIZE,
            widths: &[$( ($width, &[$( ($rows, {
                #[$compile]
                unsafe fn kernel(block: &Block) {
                    // SAFETY: the caller's.
                    unsafe { multiply::<$vector, $rows, $width>(block) }
                }
                kernel
            }) ),+]) ),+],
        };
    };
}

// Strips are as large as the registers allow: sums, a row of B's vectors, and one element of A. Fewer
// vectors leave room for more rows, and there are no fewer multiplications for each load.
family! { #[inline(never)] PORTABLE_F32: Lanes<f32, 4>; 2 x 4 2 1; 1 x 8 4 2 1; }
family! { #[inline(never)] PORTABLE_F64: Lanes<f64, 2>; 2 x 4 2 1; 1 x 8 4 2 1; }
family! { #[inline(never)] PORTABLE_I32: Lanes<Int, 4>; 1 x 4 1; }
family! { #[inline(never)] PORTABLE_INTS: Lanes<IntPair, 4>; 1 x 4 1; }

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::*;

    family! { #[target_feature(enable = "avx2,fma")] AVX2_F32: F32x8; 2 x 6 4 2 1; 1 x 8 4 2 1; }
    family! { #[target_feature(enable = "avx2,fma")] AVX2_F64: F64x4; 2 x 6 4 2 1; 1 x 8 4 2 1; }
    family! { #[target_feature(enable = "avx2,fma")] AVX2_I32: I32x8; 1 x 8 4 1; }
    family! { #[target_feature(enable = "avx2,fma")] AVX2_INTS: IntPairx8; 2 x 6 4 2 1; 1 x 8 4 2 1; }

    family! {
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
        AVX512_F32: F32x16; 4 x 6 4 2 1; 2 x 12 8 4 2 1; 1 x 16 8 4 2 1;
    }
    family! {
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
        AVX512_F64: F64x8; 4 x 6 4 2 1; 2 x 12 8 4 2 1; 1 x 16 8 4 2 1;
    }
    family! {
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
        AVX512_INTS: IntPairx16; 4 x 6 4 2 1; 2 x 12 8 4 2 1; 1 x 16 8 4 2 1;
    }
    family! {
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
        VNNI_INTS: VnniPairx16; 4 x 6 4 2 1; 2 x 12 8 4 2 1; 1 x 16 8 4 2 1;
    }
    family! {
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
        BF16_PAIRS: Bf16Pairx16; 4 x 6 4 2 1; 2 x 12 8 4 2 1; 1 x 16 8 4 2 1;
    }
}

#[cfg(target_arch = "x86_64")]
pub(crate) use x86::*;
