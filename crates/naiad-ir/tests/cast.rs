//! Conversions, against a search for the nearest value in the list of all values of a format.

#[path = "common/mod.rs"]
mod common;

use common::mix;
use naiad_ir::scalar::{Rounding, cast_bits, cast_slice, narrow_slice, widen_slice};
use naiad_ir::types::Scalar;

const ROUNDINGS: [Rounding; 2] = [Rounding::Nearest, Rounding::TowardZero];
const NARROW: [Scalar; 7] = [
    Scalar::F16,
    Scalar::BF16,
    Scalar::F8E5,
    Scalar::F8E4NV,
    Scalar::F8E4B15,
    Scalar::F8E5B16,
    Scalar::F8E4B8,
];

/// The value of an image, straight from the definition of the format.
fn value(ty: Scalar, image: u64) -> f64 {
    let (exponent_bits, bias) = match ty {
        Scalar::F16 => (5, 15),
        Scalar::BF16 => (8, 127),
        Scalar::F8E5 => (5, 15),
        Scalar::F8E4NV => (4, 7),
        Scalar::F8E4B15 => (4, 15),
        Scalar::F8E5B16 => (5, 16),
        Scalar::F8E4B8 => (4, 8),
        _ => panic!("{ty} is not narrow"),
    };
    let mantissa_bits = ty.bits() - 1 - exponent_bits;
    let sign = if image >> (ty.bits() - 1) == 1 { -1.0 } else { 1.0 };
    let exponent = (image >> mantissa_bits) as i32 & ((1 << exponent_bits) - 1);
    let mantissa = (image & ((1 << mantissa_bits) - 1)) as f64 / f64::from(1 << mantissa_bits);
    let ieee = matches!(ty, Scalar::F16 | Scalar::BF16 | Scalar::F8E5);
    let all_ones = exponent == (1 << exponent_bits) - 1;
    match ty {
        _ if ieee && all_ones && mantissa == 0.0 => sign * f64::INFINITY,
        _ if ieee && all_ones => f64::NAN,
        Scalar::F8E4NV if image & 0x7f == 0x7f => f64::NAN,
        Scalar::F8E5B16 | Scalar::F8E4B8 if image == 0x80 => f64::NAN,
        Scalar::F8E4B15 if image & 0x7f == 0x7f => sign * 1.75,
        _ if exponent == 0 => sign * mantissa * 2f64.powi(1 - bias),
        _ => sign * (1.0 + mantissa) * 2f64.powi(exponent - bias),
    }
}

/// The finite values that are not negative, ascending, with their images.
fn values(ty: Scalar) -> Vec<(f64, u64)> {
    let images = 0..1u64 << (ty.bits() - 1);
    let all = images.map(|image| (value(ty, image), image));
    // e4b15 has its largest value twice, and the lower image is the one to use.
    let written = |image: u64| ty != Scalar::F8E4B15 || image != 0x7f;
    all.filter(|&(v, image)| v.is_finite() && written(image)).collect()
}

/// What a conversion of `x` has to give, and `None` for some NaN.
fn nearest(ty: Scalar, list: &[(f64, u64)], x: f64, rounding: Rounding) -> Option<u64> {
    let sign = u64::from(x.is_sign_negative()) << (ty.bits() - 1);
    let saturates = ty.is_fp8();
    let (largest, top) = list[list.len() - 1];
    if x.is_nan() {
        return (ty == Scalar::F8E4B15).then_some(sign | top);
    }
    let size = x.abs();
    let step = largest - list[list.len() - 2].0;
    let image = if size.is_infinite() {
        if saturates { top } else { top + 1 }
    } else if size >= largest {
        let overflows = rounding == Rounding::Nearest && size >= largest + step / 2.0;
        if overflows && !saturates { top + 1 } else { top }
    } else {
        let above = list.partition_point(|&(v, _)| v <= size);
        let ((low, low_image), (high, high_image)) = (list[above - 1], list[above]);
        // Exact: the three are close together or powers of two apart in few bits.
        let (to_low, to_high) = (size - low, high - size);
        let up = to_high < to_low || (to_high == to_low && high_image % 2 == 0);
        if up && rounding == Rounding::Nearest { high_image } else { low_image }
    };
    let unsigned_zero = matches!(ty, Scalar::F8E5B16 | Scalar::F8E4B8);
    Some(if image == 0 && unsigned_zero { 0 } else { sign | image })
}

#[test]
fn every_narrow_float_widens_exactly_and_comes_back() {
    for ty in NARROW {
        for image in 0..1u64 << ty.bits() {
            let expected = value(ty, image);
            let f64_image = cast_bits(ty, Scalar::F64, Rounding::Nearest, image);
            let f32_image = cast_bits(ty, Scalar::F32, Rounding::Nearest, image);
            let got = [f64::from_bits(f64_image), f32::from_bits(f32_image as u32).into()];
            for got in got {
                let same = got == expected && got.is_sign_negative() == expected.is_sign_negative();
                assert!(same || got.is_nan() && expected.is_nan(), "{ty} {image:#x}: {got}");
            }
            let canonical = expected.is_finite() && (ty != Scalar::F8E4B15 || image & 0x7f != 0x7f);
            if canonical {
                for rounding in ROUNDINGS {
                    assert_eq!(cast_bits(Scalar::F64, ty, rounding, f64_image), image, "{ty}");
                    assert_eq!(cast_bits(Scalar::F32, ty, rounding, f32_image), image, "{ty}");
                }
            }
        }
    }
}

#[test]
fn narrowing_rounds_once_to_the_right_neighbour() {
    for ty in NARROW {
        let list = values(ty);
        let check = |x: f64| {
            for rounding in ROUNDINGS {
                let check_from = |from: Scalar, image: u64, x: f64| {
                    let got = cast_bits(from, ty, rounding, image);
                    match nearest(ty, &list, x, rounding) {
                        Some(expected) => {
                            assert_eq!(got, expected, "{from} {x:e} to {ty} {rounding:?}");
                        }
                        None => assert!(value(ty, got).is_nan(), "{from} {x:e} to {ty}"),
                    }
                };
                check_from(Scalar::F64, x.to_bits(), x);
                let single = x as f32;
                check_from(Scalar::F32, single.to_bits().into(), single.into());
            }
        };
        // Every value, every tie, and what lies next to them in f64 and in f32.
        for pair in list.windows(2) {
            let (low, high) = (pair[0].0, pair[1].0);
            for x in [low, (low + high) / 2.0, high] {
                let single = x as f32;
                let near = [x, x.next_up(), x.next_down()].into_iter();
                let near = near.chain([single.next_up().into(), single.next_down().into()]);
                near.for_each(|x| [x, -x].into_iter().for_each(check));
            }
        }
        let (largest, _) = list[list.len() - 1];
        let step = largest - list[list.len() - 2].0;
        let overflow = largest + step / 2.0;
        for x in [overflow, overflow.next_down(), overflow.next_up(), f64::INFINITY, f64::NAN, 0.0]
        {
            [x, -x].into_iter().for_each(check);
        }
        // Every fp16 and bf16, as its f32; and random images.
        (0..1 << 16).for_each(|i| check(f32::from_bits(i << 16).into()));
        (0..1 << 16).for_each(|i| check(value(Scalar::F16, i)));
        (0..100_000).for_each(|i| check(f64::from_bits(mix(i))));
        (0..100_000).for_each(|i| check(f32::from_bits(mix(i) as u32).into()));
    }
}

#[test]
fn f64_to_f32_truncates_when_asked() {
    for i in 0..200_000 {
        // Random significands with exponents around the whole f32 range.
        let random = mix(i);
        let exponent = (random >> 52) % 320 + 1023 - 160;
        let x = f64::from_bits(random & (u64::MAX >> 12) | exponent << 52);
        let nearest = x as f32;
        let back = f64::from(nearest);
        let truncated = if back > x { nearest.next_down() } else { nearest };
        let got = |r| cast_bits(Scalar::F64, Scalar::F32, r, x.to_bits()) as u32;
        assert_eq!(got(Rounding::Nearest), nearest.to_bits(), "{x:e}");
        assert_eq!(got(Rounding::TowardZero), truncated.to_bits(), "{x:e}");
    }
}

#[test]
fn integers_round_once() {
    // bf16 has 8 bits, so near the ties of 64-bit integers a double rounding shows.
    let list = values(Scalar::BF16);
    for i in 0..100_000u64 {
        let random = mix(i);
        let near_tie = (random >> (random % 56) & 0x1ff) << (i % 55);
        for x in [random, near_tie, near_tie.wrapping_add(1), near_tie.wrapping_sub(1)] {
            let cast = cast_bits(Scalar::U64, Scalar::BF16, Rounding::Nearest, x);
            if x < 256 {
                // Exact, and the list has fractions there.
                assert_eq!(cast, u64::from((x as f32).to_bits() >> 16));
                continue;
            }
            let above = list.partition_point(|&(v, _)| v as i128 <= i128::from(x));
            let ((low, low_image), (high, high_image)) = (list[above - 1], list[above]);
            let (to_low, to_high) = (i128::from(x) - low as i128, high as i128 - i128::from(x));
            let up = to_high < to_low || to_high == to_low && high_image % 2 == 0;
            let expected = if up { high_image } else { low_image };
            assert_eq!(cast, expected, "{x}");
        }
    }
    // Just above a tie, by less than an f64 or f32 between would keep.
    let x = (1u64 << 63) + (1 << 55) + 1;
    assert_eq!(cast_bits(Scalar::U64, Scalar::BF16, Rounding::Nearest, x), 0x5f01);
    let x = -(1i64 << 62) - (1 << 54) - 1;
    assert_eq!(cast_bits(Scalar::I64, Scalar::BF16, Rounding::Nearest, x as u64), 0xde81);
}

#[test]
fn floats_become_integers() {
    let cases: &[(f64, Scalar, i64)] = &[
        (2.9, Scalar::I32, 2),
        (-2.9, Scalar::I32, -2),
        (3e9, Scalar::I32, i32::MAX as i64),
        (-3e9, Scalar::I32, i32::MIN as i64),
        (1e30, Scalar::I64, i64::MAX),
        (f64::NEG_INFINITY, Scalar::I64, i64::MIN),
        (-1.0, Scalar::U32, 0),
        (5e9, Scalar::U32, u32::MAX as i64),
        (1e30, Scalar::U64, -1),
        (40000.0, Scalar::I16, i16::MAX as i64),
        (-1.0, Scalar::U16, 0),
        // To 8 bits by way of a saturated 16.
        (300.0, Scalar::I8, 300 - 256),
        (1e9, Scalar::I8, -1),
        (-1e9, Scalar::I8, 0),
        (-129.0, Scalar::I8, 127),
        (257.0, Scalar::U8, 1),
        (1e9, Scalar::U8, 255),
        (-5.0, Scalar::U8, 0),
        (0.5, Scalar::I1, 1),
        (-0.0, Scalar::I1, 0),
        (f64::NAN, Scalar::I1, 1),
    ];
    for &(x, to, expected) in cases {
        let got = cast_bits(Scalar::F64, to, Rounding::Nearest, x.to_bits());
        assert_eq!(got, expected as u64 & to.mask(), "{x} to {to}");
    }
    for to in Scalar::ALL.iter().filter(|ty| ty.is_int() && !ty.is_bool()) {
        assert_eq!(cast_bits(Scalar::F32, *to, Rounding::Nearest, 0x7fc00000), 0, "NaN to {to}");
    }
}

#[test]
fn integers_extend_and_wrap() {
    let cases = [
        (Scalar::I8, Scalar::I64, 0x80, 0xffff_ffff_ffff_ff80),
        (Scalar::U8, Scalar::I64, 0x80, 0x80),
        (Scalar::I1, Scalar::I32, 1, 1),
        (Scalar::I8, Scalar::U32, 0xff, 0xffff_ffff),
        (Scalar::I64, Scalar::I8, 0x1234, 0x34),
        (Scalar::I32, Scalar::I1, 2, 1),
        (Scalar::U64, Scalar::F64, u64::MAX, 0x43f0_0000_0000_0000),
        (Scalar::I1, Scalar::F32, 1, 0x3f80_0000),
    ];
    for (from, to, x, expected) in cases {
        assert_eq!(cast_bits(from, to, Rounding::Nearest, x), expected, "{from} {x:#x} to {to}");
    }
}

/// Slices give what single elements give, for all pairs, with payloads of NaN.
#[test]
fn slices_agree_with_single_elements() {
    fn get(ty: Scalar, bytes: &[u8]) -> u64 {
        let mut image = [0; 8];
        image[..ty.size()].copy_from_slice(bytes);
        u64::from_le_bytes(image)
    }
    // More than a chunk and no multiple of a vector. Half of the images are of plain numbers.
    const COUNT: usize = 1003;
    for &from in Scalar::ALL {
        let mut src = Vec::new();
        for i in 0..COUNT as u64 {
            let plain = ((mix(i) % 2_000_000) as f64 - 1e6) / 1024.0;
            let plain = cast_bits(Scalar::F64, from, Rounding::Nearest, plain.to_bits());
            let image = if i % 2 == 0 { mix(i) & from.mask() } else { plain };
            src.extend(&image.to_le_bytes()[..from.size()]);
        }
        for &to in Scalar::ALL {
            for rounding in ROUNDINGS {
                let mut dst = vec![0; COUNT * to.size()];
                cast_slice(from, to, rounding, &src, &mut dst);
                let pairs = src.chunks_exact(from.size()).zip(dst.chunks_exact(to.size()));
                for (x, y) in pairs {
                    let expected = cast_bits(from, to, rounding, get(from, x));
                    assert_eq!(get(to, y), expected, "{from} {x:?} to {to} {rounding:?}");
                }
            }
        }
    }
}

/// Every fp16 and bf16 through the slice conversions, and lengths that do not match.
#[test]
fn sixteen_bit_slices() {
    for ty in [Scalar::F16, Scalar::BF16] {
        let src: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_ne_bytes).collect();
        let mut wide = vec![0f32; 1 << 16];
        widen_slice(ty, &src, &mut wide);
        for (i, x) in wide.iter().enumerate() {
            let expected = cast_bits(ty, Scalar::F32, Rounding::Nearest, i as u64);
            assert_eq!(u64::from(x.to_bits()), expected, "{ty} {i:#x}");
        }
        let mut back = vec![0; src.len()];
        narrow_slice(ty, Rounding::Nearest, &wide, &mut back);
        for (i, (a, b)) in src.chunks(2).zip(back.chunks(2)).enumerate() {
            assert!(a == b || wide[i].is_nan(), "{ty} {i:#x}");
        }
        let mut short = vec![7; 5];
        cast_slice(ty, ty, Rounding::Nearest, &src, &mut short);
        assert_eq!(short[..4], src[..4]);
        assert_eq!(short[4], 7);
        narrow_slice(ty, Rounding::Nearest, &wide, &mut short);
        narrow_slice(ty, Rounding::Nearest, &wide[..1], &mut short);
        narrow_slice(ty, Rounding::TowardZero, &wide, &mut short);
        widen_slice(ty, &src[..3], &mut wide);
    }
}
