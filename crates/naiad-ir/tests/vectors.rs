//! The functions beyond those of `accuracy.rs`: fp64 against exact values made by `vectors.py`, fp32
//! against the standard library in fp64, and all at their corners.

mod common;

use common::more::{FUNCTIONS, PAIRS, VECTOR_BOUNDS, pair, pair_error, vectors};
use naiad_ir::scalar::{BinaryFn, UnaryFn};
use naiad_ir::types::Scalar;

#[test]
fn f64_against_exact_values() {
    for vector in vectors(include_str!("vectors.txt")) {
        let bound = VECTOR_BOUNDS.iter().find(|(name, _)| *name == vector.name).map(|b| b.1);
        let bound = bound.unwrap_or_else(|| panic!("{} has no bound", vector.name));
        let error = vector.error();
        assert!(error <= bound, "{}{:?} is off by {error} ulp", vector.name, vector.arguments);
    }
}

#[test]
fn f32_sampled() {
    let strided = (0..1u64 << 32).step_by(49_157).map(|i| f32::from_bits(i as u32));
    let specials = [0, 1, 0x7fffff, 0x800000, 0x7f7fffff, 0x7f800000, 0x7fc00000, 0x3f800000];
    let specials = specials.iter().flat_map(|&i| [i, i | 1 << 31]).map(f32::from_bits);
    let inputs: Vec<f32> = strided.chain(specials).collect();
    let off = FUNCTIONS.iter().filter_map(|f| {
        let (error, at) = f.worst_f32(&inputs);
        (error > f.bound_f32).then(|| format!("{}({:e}) is off by {error} ulp", f.f, inputs[at]))
    });
    assert_eq!(off.collect::<Vec<_>>(), Vec::<String>::new());
}

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;
const TINY: f64 = 5e-324;

fn same(got: f64, expected: f64) -> bool {
    got.to_bits() == expected.to_bits() || got.is_nan() && expected.is_nan()
}

#[test]
fn corners_of_one_argument() {
    use UnaryFn as F;
    #[rustfmt::skip]
    let cases: &[(UnaryFn, &[(f64, f64)])] = &[
        (F::Trunc, &[(-0.5, -0.0), (2.7, 2.0), (INF, INF), (NAN, NAN), (1e300, 1e300)]),
        (F::Round, &[(0.5, 1.0), (-0.5, -1.0), (2.5, 3.0), (0.49999999999999994, 0.0), (-0.2, -0.0),
            (4503599627370497.0, 4503599627370497.0), (-INF, -INF), (NAN, NAN), (TINY, 0.0)]),
        (F::Rint, &[(0.5, 0.0), (1.5, 2.0), (-2.5, -2.0), (-0.2, -0.0), (0.49999999999999994, 0.0),
            (4503599627370497.0, 4503599627370497.0), (INF, INF), (NAN, NAN)]),
        (F::Logb, &[(8.5, 3.0), (0.0, -INF), (-0.0, -INF), (-INF, INF), (TINY, -1074.0), (NAN, NAN)]),
        (F::Expm1, &[(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -1.0), (NAN, NAN), (TINY, TINY),
            (710.0, INF), (-800.0, -1.0)]),
        (F::Exp10, &[(0.0, 1.0), (2.0, 100.0), (INF, INF), (-INF, 0.0), (309.0, INF), (-330.0, 0.0), (NAN, NAN)]),
        (F::Log10, &[(1.0, 0.0), (1000.0, 3.0), (0.0, -INF), (-0.0, -INF), (-1.0, NAN), (INF, INF), (NAN, NAN)]),
        (F::Log1p, &[(0.0, 0.0), (-0.0, -0.0), (-1.0, -INF), (-1.5, NAN), (INF, INF), (-INF, NAN), (NAN, NAN), (TINY, TINY)]),
        (F::Tan, &[(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (NAN, NAN), (TINY, TINY)]),
        (F::Sinpi, &[(0.0, 0.0), (-0.0, -0.0), (1.0, 0.0), (-2.0, -0.0), (0.5, 1.0), (1.5, -1.0), (1e300, 0.0), (INF, NAN)]),
        (F::Cospi, &[(0.0, 1.0), (0.5, 0.0), (1.5, 0.0), (1.0, -1.0), (1e300, 1.0), (-INF, NAN)]),
        (F::Asin, &[(0.0, 0.0), (-0.0, -0.0), (1.0, std::f64::consts::FRAC_PI_2), (1.1, NAN), (-INF, NAN), (NAN, NAN)]),
        (F::Acos, &[(1.0, 0.0), (-1.0, std::f64::consts::PI), (0.0, std::f64::consts::FRAC_PI_2), (1.1, NAN), (NAN, NAN)]),
        (F::Atan, &[(-0.0, -0.0), (INF, std::f64::consts::FRAC_PI_2), (-INF, -std::f64::consts::FRAC_PI_2), (NAN, NAN)]),
        (F::Sinh, &[(-0.0, -0.0), (INF, INF), (-INF, -INF), (NAN, NAN), (TINY, TINY), (-711.0, -INF)]),
        (F::Cosh, &[(0.0, 1.0), (INF, INF), (-INF, INF), (NAN, NAN), (711.0, INF)]),
        (F::Asinh, &[(-0.0, -0.0), (INF, INF), (-INF, -INF), (NAN, NAN), (TINY, TINY)]),
        (F::Acosh, &[(1.0, 0.0), (0.9, NAN), (-INF, NAN), (INF, INF), (NAN, NAN)]),
        (F::Atanh, &[(-0.0, -0.0), (1.0, INF), (-1.0, -INF), (1.1, NAN), (INF, NAN), (NAN, NAN), (TINY, TINY)]),
        (F::Cbrt, &[(-0.0, -0.0), (27.0, 3.0), (-8.0, -2.0), (INF, INF), (-INF, -INF), (NAN, NAN)]),
        (F::Erfc, &[(0.0, 1.0), (INF, 0.0), (-INF, 2.0), (NAN, NAN), (30.0, 0.0)]),
        (F::Erfcx, &[(0.0, 1.0), (INF, 0.0), (-INF, INF), (NAN, NAN), (-30.0, INF)]),
        (F::Erfinv, &[(0.0, 0.0), (-0.0, -0.0), (1.0, INF), (-1.0, -INF), (1.5, NAN), (NAN, NAN)]),
        (F::Erfcinv, &[(0.0, INF), (1.0, 0.0), (2.0, -INF), (-1.0, NAN), (3.0, NAN), (NAN, NAN)]),
        (F::Normcdf, &[(0.0, 0.5), (INF, 1.0), (-INF, 0.0), (NAN, NAN)]),
        (F::Normcdfinv, &[(0.0, -INF), (1.0, INF), (-0.5, NAN), (2.0, NAN), (NAN, NAN)]),
        (F::Lgamma, &[(1.0, 0.0), (2.0, 0.0), (0.0, INF), (-0.0, INF), (-3.0, INF), (INF, INF), (-INF, INF), (NAN, NAN)]),
        (F::Tgamma, &[(1.0, 1.0), (5.0, 24.0), (0.0, INF), (-0.0, -INF), (-3.0, NAN), (INF, INF), (-INF, NAN), (NAN, NAN), (172.0, INF)]),
        (F::J0, &[(0.0, 1.0), (INF, 0.0), (NAN, NAN)]),
        (F::J1, &[(0.0, 0.0), (-0.0, -0.0), (INF, 0.0), (NAN, NAN)]),
        (F::Y0, &[(0.0, -INF), (-1.0, NAN), (INF, 0.0), (NAN, NAN)]),
        (F::Y1, &[(0.0, -INF), (-1.0, NAN), (INF, 0.0), (NAN, NAN)]),
        (F::I0, &[(0.0, 1.0), (INF, INF), (-INF, INF), (NAN, NAN), (-720.0, INF)]),
        (F::I1, &[(-0.0, -0.0), (INF, INF), (-INF, -INF), (NAN, NAN)]),
    ];
    let mut off = Vec::new();
    for (f, points) in cases {
        for &(x, expected) in *points {
            let got = f64::from_bits(f.eval(Scalar::F64, x.to_bits()).unwrap());
            if !same(got, expected) {
                off.push(format!("{f}({x:e}) is {got:e}, not {expected:e}"));
            }
        }
    }
    assert_eq!(off, Vec::<String>::new());
}

#[test]
fn corners_of_two_arguments() {
    use BinaryFn as F;
    use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, PI};
    type Points<'a> = &'a [(f64, f64, f64)];
    #[rustfmt::skip]
    let cases: &[(BinaryFn, Points<'_>)] = &[
        (F::Pow, &[(NAN, 0.0, 1.0), (1.0, NAN, 1.0), (-1.0, INF, 1.0), (-1.0, -INF, 1.0), (2.0, 3.0, 8.0),
            (-2.0, 3.0, -8.0), (-2.0, 2.0, 4.0), (-2.0, 0.5, NAN), (0.0, -1.0, INF), (-0.0, -1.0, -INF),
            (-0.0, -2.0, INF), (-0.0, 3.0, -0.0), (-0.0, 2.0, 0.0), (0.0, -INF, INF), (0.5, -INF, INF),
            (0.5, INF, 0.0), (2.0, INF, INF), (2.0, -INF, 0.0), (-INF, -3.0, -0.0), (-INF, -2.0, 0.0),
            (-INF, 3.0, -INF), (-INF, 0.5, INF), (INF, 2.0, INF), (INF, -2.0, 0.0), (NAN, 1.0, NAN),
            (2.0, NAN, NAN), (10.0, 400.0, INF), (10.0, -400.0, 0.0), (-2.0, 9007199254740992.0, INF),
            (2.0, -1074.0, TINY), (3.0, 1.0, 3.0), (9.0, 0.5, 3.0)]),
        (F::Atan2, &[(0.0, 1.0, 0.0), (-0.0, 1.0, -0.0), (0.0, -1.0, PI), (-0.0, -0.0, -PI), (0.0, 0.0, 0.0),
            (0.0, -0.0, PI), (1.0, 0.0, FRAC_PI_2), (-1.0, -0.0, -FRAC_PI_2), (INF, INF, FRAC_PI_4),
            (INF, -INF, 3.0 * FRAC_PI_4), (-INF, 1.0, -FRAC_PI_2), (1.0, INF, 0.0), (-1.0, -INF, -PI),
            (NAN, 1.0, NAN), (1.0, NAN, NAN), (TINY, 1.7e308, 0.0), (1.7e308, 1.7e308, FRAC_PI_4)]),
        (F::Hypot, &[(3.0, 4.0, 5.0), (INF, NAN, INF), (NAN, -INF, INF), (NAN, 1.0, NAN), (0.0, -0.0, 0.0),
            (TINY, 0.0, TINY), (3e300, 4e300, 5e300), (f64::MAX, f64::MAX, INF)]),
        (F::Fmod, &[(5.5, 2.0, 1.5), (-5.5, 2.0, -1.5), (5.5, -2.0, 1.5), (6.0, 3.0, 0.0), (-6.0, 3.0, -0.0),
            (1.0, INF, 1.0), (INF, 1.0, NAN), (1.0, 0.0, NAN), (NAN, 1.0, NAN), (1.0, NAN, NAN),
            (f64::MAX, TINY, 0.0), (0.0, 1.0, 0.0), (-0.0, 1.0, -0.0), (1e300, 3.0, 1e300 % 3.0)]),
        (F::Remainder, &[(5.0, 2.0, 1.0), (7.0, 2.0, -1.0), (-7.0, 2.0, 1.0), (3.0, 2.0, -1.0), (1.0, 2.0, 1.0),
            (6.0, 3.0, 0.0), (-6.0, 3.0, -0.0), (1.0, INF, 1.0), (INF, 1.0, NAN), (1.0, 0.0, NAN), (1.0, NAN, NAN)]),
        (F::Copysign, &[(1.0, -0.0, -1.0), (-3.0, 2.0, 3.0), (INF, -1.0, -INF)]),
        (F::Nextafter, &[(1.0, 2.0, 1.0000000000000002), (1.0, 0.0, 0.9999999999999999), (0.0, 1.0, TINY),
            (0.0, -1.0, -TINY), (TINY, -1.0, 0.0), (-1.0, 0.0, -0.9999999999999999), (f64::MAX, INF, INF),
            (INF, 0.0, f64::MAX), (0.0, -0.0, -0.0), (1.0, NAN, NAN), (NAN, 1.0, NAN)]),
        (F::Fdim, &[(3.0, 1.0, 2.0), (1.0, 3.0, 0.0), (INF, INF, 0.0), (NAN, 1.0, NAN), (1.0, NAN, NAN), (INF, 1.0, INF)]),
        (F::Ldexp, &[(1.5, 3.0, 12.0), (-1.0, -1074.0, -TINY), (1.0, -1075.0, 0.0), (TINY, 2000.0, 5e-324 * 2f64.powi(1000) * 2f64.powi(1000)),
            (1.0, 1e9, INF), (-1.0, -1e9, -0.0), (-0.0, 5.0, -0.0), (INF, -5.0, INF), (NAN, 1.0, NAN), (1.0, 1023.0, 8.98846567431158e307)]),
    ];
    for (f, points) in cases {
        for &(x, y, expected) in *points {
            let got = f64::from_bits(f.eval(Scalar::F64, x.to_bits(), y.to_bits()).unwrap());
            assert!(same(got, expected), "{f}({x:e}, {y:e}) is {got:e}, not {expected:e}");
        }
    }
}

/// The remainders are exact, so that Rust's own is a reference; and fp32 has one in fp64.
#[test]
fn remainders_of_f32_are_exact() {
    for i in 0..40_000 {
        let (x, y) = (common::mix(i) as u32, common::mix(i + 500_000) as u32);
        let (fx, fy) = (f32::from_bits(x), f32::from_bits(y));
        let eval = |f: BinaryFn| {
            f32::from_bits(f.eval(Scalar::F32, u64::from(x), u64::from(y)).unwrap() as u32)
        };
        let (got, expected) = (eval(BinaryFn::Fmod), fx % fy);
        assert!(same(f64::from(got), f64::from(expected)), "{fx:e} % {fy:e} is {got:e}");
        let (got, expected) = (eval(BinaryFn::Remainder), libm::remainderf(fx, fy));
        assert!(same(f64::from(got), f64::from(expected)), "remainder({fx:e}, {fy:e}) is {got:e}");
    }
}

#[test]
fn two_arguments_of_f32() {
    for &(f, exact, bound) in PAIRS {
        for i in 0..60_000 {
            let error = pair_error(f, exact, i);
            assert!(error <= bound, "{f}{:?} is off by {error} ulp", pair(i));
        }
    }
}

#[test]
fn rare_functions_are_of_fp64_only() {
    assert!(!UnaryFn::Lgamma.accepts(Scalar::F32) && UnaryFn::Lgamma.accepts(Scalar::F64));
    assert!(UnaryFn::Tan.accepts(Scalar::F16));
}

#[test]
fn bits_of_integers() {
    for i in 0..2000 {
        let x = common::mix(i) >> (i % 64);
        let eval = |f: UnaryFn, ty: Scalar, x: u64| f.eval(ty, x).unwrap();
        assert_eq!(eval(UnaryFn::Popc, Scalar::U64, x), u64::from(x.count_ones()));
        assert_eq!(eval(UnaryFn::Clz, Scalar::I64, x), u64::from(x.leading_zeros()));
        assert_eq!(eval(UnaryFn::Brev, Scalar::I64, x), x.reverse_bits());
        let x = x as u32;
        assert_eq!(eval(UnaryFn::Popc, Scalar::I32, u64::from(x)), u64::from(x.count_ones()));
        assert_eq!(eval(UnaryFn::Clz, Scalar::I32, u64::from(x)), u64::from(x.leading_zeros()));
        assert_eq!(eval(UnaryFn::Brev, Scalar::U32, u64::from(x)), u64::from(x.reverse_bits()));
    }
}
