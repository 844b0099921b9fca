//! That no entry leaves the upper halves of registers in use; see the crate's page for why.

use crate::convert::{NARROW, narrow, widen};
use crate::copy::{STREAM, copy2d};
use crate::dot::dot;
use crate::rows::{histogram, sort, topk};
use naiad_ir::Scalar;
use std::arch::asm;
use std::arch::x86_64::__cpuid_count;

/// Registers whose contents differ from zero: bit 2 for the upper halves of 256 bits, bit 6 for those of
/// 512. `None` where the processor does not say.
fn in_use() -> Option<u32> {
    let says = is_x86_feature_detected!("xsavec") && __cpuid_count(0xd, 1).eax & 4 != 0;
    if !says {
        return None;
    }
    let bits: u32;
    // SAFETY: the processor has `xgetbv` with this argument.
    unsafe { asm!("xgetbv", in("ecx") 1, out("eax") bits, out("edx") _, options(nomem, nostack)) };
    Some(bits & (1 << 2 | 1 << 6))
}

/// Calls an entry and looks at the registers that it leaves.
fn check(what: &str, call: impl FnOnce()) {
    call();
    if let Some(bits) = in_use() {
        assert_eq!(bits, 0, "{what} leaves upper halves in use");
    }
}

#[test]
fn copies() {
    let (src, mut dst) = ([1u64; 4096], [0u64; 4096]);
    let (from, to) = (src.as_ptr().cast::<u8>(), dst.as_mut_ptr().cast::<u8>());
    for size in [1, 2, 4, 8] {
        for n in [1, 5, 16, 64] {
            for hints in [0, STREAM] {
                let row = 64 * size;
                for strides in [[row, size, row, size], [size, row, row, size], [row, size, 0, 0]] {
                    let [d0, d1, s0, s1] = strides;
                    check("copy2d", || {
                        // SAFETY: the arrays hold 64 rows of 64 elements.
                        unsafe { copy2d(to, d0, d1, from, s0, s1, n, n, size, hints) }
                    });
                }
            }
        }
    }
}

#[test]
fn products() {
    let (a, b, mut c) = ([0u64; 4096], [0u64; 4096], [0u64; 4096]);
    let (a, b, c) = (a.as_ptr().cast(), b.as_ptr().cast(), c.as_mut_ptr().cast());
    for &ty in Scalar::ALL {
        let sums = match ty {
            Scalar::F64 => Scalar::F64,
            _ if ty.is_float() => Scalar::F32,
            _ => Scalar::I32,
        };
        let size = ty.size() as i64;
        for n in [1, 5, 16, 33, 64] {
            for [s0, s1] in [[64 * size, size], [size, 64 * size]] {
                check("dot", || {
                    let row = 64 * sums.size() as i64;
                    let (ty, sums) = (ty as i64, sums as i64);
                    // SAFETY: the arrays hold 64 rows of 64 elements.
                    unsafe { dot(a, s0, s1, b, s0, s1, c, row, n, n, n, ty, ty, sums) }
                });
            }
        }
    }
}

#[test]
fn rows() {
    let (src, mut dst) = ([1u64; 512], [0u64; 512]);
    let (from, to) = (src.as_ptr().cast::<u8>(), dst.as_mut_ptr().cast::<u8>());
    for n in [1, 7, 16, 100, 256] {
        for ty in NARROW.map(|ty| ty as i64) {
            // SAFETY: the arrays hold two rows of 256 elements.
            check("widen", || unsafe { widen(to, 1024, from, 512, 2, n, ty) });
            // SAFETY: as above.
            check("narrow", || unsafe { narrow(to, 512, from, 1024, 2, n, ty) });
        }
        for ty in Scalar::ALL {
            let code = *ty as i64;
            // SAFETY: as above.
            check("sort", || unsafe { sort(to, from, 2, n, code, 0) });
            // SAFETY: as above.
            check("topk", || unsafe { topk(to, from, 2, n, 1, code, 1) });
            if ty.is_int() {
                // SAFETY: as above.
                check("histogram", || unsafe { histogram(to, from, from, n, 16, code) });
            }
        }
    }
}

/// The other tests would hold of a processor that always says 0.
#[test]
fn the_processor_tells() {
    if in_use().is_none() || !is_x86_feature_detected!("avx2") {
        return;
    }
    let bits: u32;
    // SAFETY: the processor has both instructions, and what they change is said.
    unsafe {
        asm!(
            "vpcmpeqd ymm0, ymm0, ymm0",
            "xgetbv",
            "vzeroupper",
            in("ecx") 1,
            out("eax") bits,
            out("edx") _,
            out("xmm0") _,
            options(nomem, nostack)
        );
    }
    assert_ne!(bits & 1 << 2, 0);
}
