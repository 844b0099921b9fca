//! Products of all types against sums in `f64` or `i64`, at all levels.

use super::*;
use crate::cpu::Level;
use crate::testing::{Buffer, Place, Random};
use naiad_ir::scalar::{Rounding, cast_bits};

const FLOATS: [Scalar; 9] = [
    Scalar::F8E5,
    Scalar::F8E4NV,
    Scalar::F8E4B15,
    Scalar::F8E5B16,
    Scalar::F8E4B8,
    Scalar::F16,
    Scalar::BF16,
    Scalar::F32,
    Scalar::F64,
];
const INTS: [Scalar; 9] = [
    Scalar::I1,
    Scalar::I8,
    Scalar::I16,
    Scalar::I32,
    Scalar::I64,
    Scalar::U8,
    Scalar::U16,
    Scalar::U32,
    Scalar::U64,
];

/// A number that all float types have, such that sums of products of it are exact; or any integer.
fn element(random: &mut Random, ty: Scalar) -> u64 {
    if ty.is_float() {
        let quarters = random.below(13) as f64 - 6.0;
        cast_bits(Scalar::F64, ty, Rounding::Nearest, (quarters / 4.0).to_bits())
    } else {
        random.bits() & ty.mask()
    }
}

/// A number: of floats its value, of integers its low 32 bits.
fn value(ty: Scalar, image: u64) -> f64 {
    f64::from_bits(cast_bits(ty, Scalar::F64, Rounding::Nearest, image))
}

fn get(bytes: &[u8], at: usize, size: usize) -> u64 {
    let mut image = [0; 8];
    image[..size].copy_from_slice(&bytes[at..at + size]);
    u64::from_ne_bytes(image)
}

fn put(bytes: &mut [u8], at: usize, size: usize, image: u64) {
    bytes[at..at + size].copy_from_slice(&image.to_ne_bytes()[..size]);
}

fn random_matrix(random: &mut Random, n: [usize; 2], ty: Scalar) -> (Place, Vec<u8>) {
    let place = Place::random(random, n, ty.size(), true);
    let mut bytes = random.bytes(place.len);
    for i in 0..n[0] {
        for j in 0..n[1] {
            put(&mut bytes, place.at(i, j), ty.size(), element(random, ty));
        }
    }
    (place, bytes)
}

/// Multiplies random matrices at all levels and compares all of C's buffer.
fn check(random: &mut Random, [m, n, k]: [usize; 3], [a_ty, b_ty, c_ty]: [Scalar; 3]) {
    let (a_place, a) = random_matrix(random, [m, k], a_ty);
    let (b_place, b) = random_matrix(random, [k, n], b_ty);
    let size = c_ty.size();
    let row = n * size + random.pick(&[0, 0, 1, 60, 64]);
    let start = 64 + random.below(2) * random.below(64);
    let mut c = random.bytes(start + m * row + 64);
    let mut want = c.clone();
    for i in 0..m {
        for j in 0..n {
            let at = start + i * row + j * size;
            let before = element(random, c_ty);
            put(&mut c, at, size, before);
            let x = |s: usize| get(&a, a_place.at(i, s), a_ty.size());
            let y = |s: usize| get(&b, b_place.at(s, j), b_ty.size());
            let sum = if c_ty == Scalar::I32 {
                let low = |ty, image| cast_bits(ty, Scalar::I32, Rounding::Nearest, image) as i32;
                let terms = (0..k).map(|s| low(a_ty, x(s)).wrapping_mul(low(b_ty, y(s))));
                u64::from(terms.fold(before as i32, i32::wrapping_add) as u32)
            } else {
                let terms = (0..k).map(|s| value(a_ty, x(s)) * value(b_ty, y(s)));
                let sum = value(c_ty, before) + terms.sum::<f64>();
                cast_bits(Scalar::F64, c_ty, Rounding::Nearest, sum.to_bits())
            };
            put(&mut want, at, size, sum);
        }
    }
    for level in Level::available() {
        let (mut a, mut b, mut c) = (Buffer::new(&a), Buffer::new(&b), Buffer::new(&c));
        let product = Product {
            a: Operand::new(a.at(a_place.base), a_ty, a_place.strides[0], a_place.strides[1]),
            b: Operand::new(b.at(b_place.base), b_ty, b_place.strides[1], b_place.strides[0]),
            c: c.at(start),
            c_row: row as isize,
            m,
            n,
            k,
            ahead: random.below(2) == 1,
        };
        // SAFETY: the buffers hold the matrices.
        unsafe { product.run(Kernels::of(level), c_ty) };
        let what = format!("{level:?}: {m}x{n}x{k} of {a_ty} and {b_ty}, {a_place:?}, {b_place:?}");
        for i in 0..m {
            for j in 0..n {
                let at = start + i * row + j * size;
                let (got, want) = (get(c.bytes(), at, size), get(&want, at, size));
                // Zeros may differ in sign.
                let equal =
                    got == want || (c_ty.is_float() && value(c_ty, got) == value(c_ty, want));
                assert!(equal, "{what}: ({i}, {j}) is {got:#x}, not {want:#x}");
                put(&mut c.bytes_mut()[at..], 0, size, want);
            }
        }
        assert!(c.bytes() == want, "{what}: bytes that are not C's");
    }
}

const EXTENTS: &[usize] = &[1, 2, 3, 4, 5, 7, 8, 12, 15, 16, 17, 24, 31, 32, 33, 48, 63, 64];

#[test]
fn all_types_with_any_strides() {
    let mut random = Random::new(5);
    let mut pairs: Vec<[Scalar; 3]> = Vec::new();
    for a in FLOATS {
        pairs.extend(FLOATS.map(|b| [a, b, Scalar::F64]));
        if a != Scalar::F64 {
            pairs
                .extend(FLOATS.iter().filter(|&&b| b != Scalar::F64).map(|&b| [a, b, Scalar::F32]));
        }
    }
    for a in INTS {
        pairs.extend(INTS.map(|b| [a, b, Scalar::I32]));
    }
    for types in pairs {
        for _ in 0..4 {
            let extents = [(); 3].map(|()| random.pick(EXTENTS));
            check(&mut random, extents, types);
        }
    }
}

/// The types that products are usually of.
const USUAL: [[Scalar; 3]; 7] = [
    [Scalar::F32, Scalar::F32, Scalar::F32],
    [Scalar::F64, Scalar::F64, Scalar::F64],
    [Scalar::F16, Scalar::F16, Scalar::F32],
    [Scalar::BF16, Scalar::BF16, Scalar::F32],
    [Scalar::F8E5, Scalar::F8E4NV, Scalar::F32],
    [Scalar::I8, Scalar::I8, Scalar::I32],
    [Scalar::U8, Scalar::I8, Scalar::I32],
];

#[test]
fn usual_types_with_any_strides() {
    let mut random = Random::new(6);
    for _ in 0..150 {
        for types in USUAL {
            let extents = [(); 3].map(|()| random.pick(EXTENTS));
            check(&mut random, extents, types);
        }
    }
}

#[test]
fn more_than_one_block_along_each_axis() {
    let mut random = Random::new(7);
    for types in USUAL {
        for extents in [[300, 5, 3], [3, 301, 5], [2, 3, 403], [70, 140, 259], [257, 66, 129]] {
            check(&mut random, extents, types);
        }
    }
}

/// Sums that are not exact stay within the error of summing in any order.
#[test]
fn rounding_errors_are_those_of_one_rounding_a_term() {
    let mut random = Random::new(8);
    let [m, n, k] = [20, 40, 200];
    for ty in [Scalar::F32, Scalar::F16, Scalar::BF16] {
        let mut matrix = |count: usize| -> Vec<u8> {
            let number = |random: &mut Random| random.bits() as f64 / u64::MAX as f64 - 0.5;
            let image = |x: f64| cast_bits(Scalar::F64, ty, Rounding::Nearest, x.to_bits());
            (0..count)
                .flat_map(|_| image(number(&mut random)).to_ne_bytes()[..ty.size()].to_vec())
                .collect()
        };
        let (a, b) = (matrix(m * k), matrix(k * n));
        let size = ty.size();
        for level in Level::available() {
            let mut c = vec![0f32; m * n];
            let product = Product {
                a: Operand::new(a.as_ptr(), ty, (k * size) as isize, size as isize),
                b: Operand::new(b.as_ptr(), ty, size as isize, (n * size) as isize),
                c: c.as_mut_ptr().cast(),
                c_row: 4 * n as isize,
                m,
                n,
                k,
                ahead: false,
            };
            // SAFETY: the vectors hold the matrices.
            unsafe { product.run(Kernels::of(level), Scalar::F32) };
            for i in 0..m {
                for j in 0..n {
                    let term = |s: usize| {
                        value(ty, get(&a, (i * k + s) * size, size))
                            * value(ty, get(&b, (s * n + j) * size, size))
                    };
                    let sum: f64 = (0..k).map(term).sum();
                    let sizes: f64 = (0..k).map(|s| term(s).abs()).sum();
                    let error = (f64::from(c[i * n + j]) - sum).abs();
                    // Sums of the sizes bound each partial sum; two roundings a term at most.
                    let bound = sizes * (2 * k) as f64 * f64::from(f32::EPSILON) / 2.0;
                    assert!(error <= bound, "{level:?} {ty}: {error} of {sum}");
                }
            }
        }
    }
}

/// The instruction for pairs of bf16 takes subnormal numbers for 0, which they are not where the
/// other factor is large.
#[test]
fn subnormal_operands_count() {
    for ty in [Scalar::BF16, Scalar::F16, Scalar::F8E5, Scalar::F8E4NV, Scalar::F8E4B8] {
        let (bias, _) = ty.float_format().unwrap();
        // The least number, and a power of two.
        let (least, large) = (1u64, (bias as u64 + 3) << ty.float_format().unwrap().1);
        let want = value(ty, least) * value(ty, large) * 5.0;
        for [x, y] in [[least, large], [large, least]] {
            for level in Level::available() {
                let bytes = |image: u64| -> Vec<u8> {
                    (0..40 * 40).flat_map(|_| image.to_ne_bytes()[..ty.size()].to_vec()).collect()
                };
                let (a, b) = (bytes(x), bytes(y));
                let mut c = [[0f32; 33]; 7];
                let size = ty.size() as isize;
                let product = Product {
                    a: Operand::new(a.as_ptr(), ty, 5 * size, size),
                    b: Operand::new(b.as_ptr(), ty, size, 33 * size),
                    c: c.as_mut_ptr().cast(),
                    c_row: 33 * 4,
                    m: 7,
                    n: 33,
                    k: 5,
                    ahead: false,
                };
                // SAFETY: the vectors hold the matrices.
                unsafe { product.run(Kernels::of(level), Scalar::F32) };
                let all = c.iter().flatten().all(|&c| f64::from(c) == want);
                assert!(all, "{level:?} {ty}: {} is not {want}", c[0][0]);
            }
        }
    }
}

#[test]
fn nothing_is_done_where_an_extent_is_not_positive() {
    for [m, n, k] in [[0, 4, 4], [4, 0, 4], [4, 4, 0], [-1, 4, 4], [4, i64::MIN, 4]] {
        let f32 = Scalar::F32 as i64;
        let null = std::ptr::null_mut();
        // SAFETY: there are no elements.
        unsafe { dot(null, 4, 4, null, 4, 4, null, 4, m, n, k, f32, f32, f32 | NEXT_K) };
    }
}

#[test]
fn the_entry_takes_codes_of_types() {
    let (a, b) = ([1f32, 2.0, 3.0, 4.0], [5f32, 6.0, 7.0, 8.0]);
    let mut c = [100f32; 4];
    let code = Scalar::F32 as i64;
    let (a, b, at) = (a.as_ptr().cast(), b.as_ptr().cast(), c.as_mut_ptr().cast());
    // SAFETY: the arrays hold the matrices.
    unsafe { dot(a, 8, 4, b, 8, 4, at, 8, 2, 2, 2, code, code, code | NEXT_K) };
    assert_eq!(c, [119.0, 122.0, 143.0, 150.0]);
    assert!(Scalar::ALL.iter().enumerate().all(|(i, &ty)| ty as usize == i));
}
