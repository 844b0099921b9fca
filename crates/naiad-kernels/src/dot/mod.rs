//! proto
mod micro;
mod vector;
use micro::*;

pub unsafe fn proto(a: *const f32, lda: usize, b: *const f32, ldb: usize, c: *mut f32, ldc: usize, m: usize, n: usize, k: usize, fam: usize, prefetch: bool) {
    let family = [&AVX512_F32, &AVX2_F32, &PORTABLE_F32][fam];
    let mut pack = std::mem::MaybeUninit::<[[f32;16]; 16 * 64]>::uninit();
    let bp: *mut f32 = pack.as_mut_ptr().cast();
    let bp = ((bp as usize + 63) & !63) as *mut f32;
    unsafe { pk(b, ldb, bp, n, k); }
    let mut j = 0;
    while j < n {
        let &(w, kernels) = family.widths.iter().find(|(w, _)| w * family.lanes <= n - j).unwrap();
        let mut i = 0;
        let panels = m / 6 + 1;
        let mut p = 0;
        let share = (k * n / 16).div_ceil(panels);
        while i < m {
            let &(r, kernel) = kernels.iter().find(|(r, _)| *r <= m - i).unwrap();
            if prefetch && j == 0 {
                use std::arch::x86_64::*;
                for ii in i..i + r {
                    for kk in (0..k).step_by(16) {
                        unsafe { _mm_prefetch::<_MM_HINT_T1>(a.wrapping_add(ii * lda + k + kk).cast()) };
                    }
                }
                let lines = n / 16;
                for x in p..(p + share).min(k * lines) {
                    unsafe { _mm_prefetch::<_MM_HINT_T1>(b.wrapping_add((k + x / lines) * ldb + (x % lines) * 16).cast()) };
                }
                p += share;
            }
            unsafe {
                kernel(&Block {
                    a: a.wrapping_add(i * lda).cast(), a_row: lda as isize * 4, a_step: 4,
                    b: bp.wrapping_add(j).cast(), b_step: n as isize * 4,
                    c: c.wrapping_add(i * ldc + j).cast(), c_row: ldc as isize * 4,
                    steps: k, tail: None });
            }
            i += r;
        }
        j += w * family.lanes;
    }
}

#[target_feature(enable = "avx512f")]
unsafe fn pk(b: *const f32, ldb: usize, bp: *mut f32, n: usize, k: usize) {
    use std::arch::x86_64::*;
    for kk in 0..k {
        let mut j = 0;
        while j < n {
            unsafe { _mm512_storeu_ps(bp.wrapping_add(kk * n + j), _mm512_loadu_ps(b.wrapping_add(kk * ldb + j))); }
            j += 16;
        }
    }
}
