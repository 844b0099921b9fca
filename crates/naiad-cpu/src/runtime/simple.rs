//! temporary
use naiad_ir::Scalar;
use naiad_ir::scalar::{Rounding, cast_bits};
pub unsafe extern "C" fn dot(
    a: *const u8,
    as0: i64,
    as1: i64,
    b: *const u8,
    bs0: i64,
    bs1: i64,
    c: *mut u8,
    cs0: i64,
    m: i64,
    n: i64,
    k: i64,
    at: i64,
    bt: i64,
    ct: i64,
) {
    let (at, bt, ct) =
        (Scalar::ALL[at as usize], Scalar::ALL[bt as usize], Scalar::ALL[ct as usize]);
    let read = |p: *const u8, t: Scalar| -> f64 {
        let mut bits = 0u64;
        unsafe { std::ptr::copy_nonoverlapping(p, (&raw mut bits).cast(), t.size()) };
        f64::from_bits(cast_bits(t, Scalar::F64, Rounding::Nearest, bits))
    };
    for i in 0..m {
        for j in 0..n {
            let mut sum = 0.0;
            for l in 0..k {
                unsafe {
                    sum += read(a.offset((i * as0 + l * as1) as isize), at)
                        * read(b.offset((l * bs0 + j * bs1) as isize), bt);
                }
            }
            unsafe {
                let p = c.offset((i * cs0) as isize).add(j as usize * ct.size());
                let v = read(p, ct) + sum;
                let bits = cast_bits(Scalar::F64, ct, Rounding::Nearest, v.to_bits());
                std::ptr::copy_nonoverlapping((&raw const bits).cast(), p, ct.size());
            }
        }
    }
}
