//! The table of scalar functions: integers against wide arithmetic, floats at the corners, and what
//! the properties claim.

#[path = "common/mod.rs"]
mod common;

use common::mix;
use naiad_ir::math::{HostF32, HostF64};
use naiad_ir::scalar::{BinaryFn, Predicate, Rounding, TernaryFn, UnaryFn, cast_bits};
use naiad_ir::types::Scalar;

#[test]
fn names_are_unique_and_lead_back() {
    fn check<F: Copy + PartialEq + std::fmt::Debug>(
        all: &[F],
        name: fn(F) -> &'static str,
        doc: fn(F) -> &'static str,
        from_name: fn(&str) -> Option<F>,
    ) {
        for &f in all {
            assert_eq!(from_name(name(f)), Some(f));
            assert!(doc(f).ends_with('.') && !doc(f).starts_with(' '), "{f:?}: {}", doc(f));
        }
        assert_eq!(from_name("nothing"), None);
    }
    check(UnaryFn::ALL, UnaryFn::name, UnaryFn::doc, UnaryFn::from_name);
    check(BinaryFn::ALL, BinaryFn::name, BinaryFn::doc, BinaryFn::from_name);
    check(TernaryFn::ALL, TernaryFn::name, TernaryFn::doc, TernaryFn::from_name);
    check(Predicate::ALL, Predicate::name, Predicate::doc, Predicate::from_name);
    assert_eq!(BinaryFn::MinNan.to_string(), "min_nan");
}

/// Numbers of a type, as exact integers; every one if there are few, else the ends and a sample.
fn integers(ty: Scalar) -> Vec<i128> {
    if ty.bits() <= 8 {
        return (ty.int_min()..=ty.int_max()).collect();
    }
    let ends = [ty.int_min(), ty.int_min() + 1, ty.int_max(), ty.int_max() - 1];
    let small = -3..70;
    let random = (0..60).map(|i| number(ty, mix(i)));
    ends.into_iter().chain(small).chain(random).map(|x| number(ty, x as u64)).collect()
}

fn number(ty: Scalar, image: u64) -> i128 {
    let image = i128::from(image & ty.mask());
    if image > ty.int_max() { image - (1 << ty.bits()) } else { image }
}

/// The definitions, in integers wide enough not to wrap; the result is wrapped by the caller.
fn reference(f: BinaryFn, ty: Scalar, x: i128, y: i128) -> Option<i128> {
    let unsigned = |x: i128| x as u64 as u128 & u128::from(ty.mask());
    let by = unsigned(y).min(127) as u32;
    let inside = unsigned(y) < u128::from(ty.bits());
    Some(match f {
        BinaryFn::Add => x + y,
        BinaryFn::Sub => x - y,
        BinaryFn::Mul => x.wrapping_mul(y),
        BinaryFn::Idiv => x.checked_div(y).unwrap_or(0),
        BinaryFn::Rem => x.checked_rem(y).unwrap_or(x),
        BinaryFn::Min | BinaryFn::MinNan => x.min(y),
        BinaryFn::Max | BinaryFn::MaxNan => x.max(y),
        BinaryFn::And => x & y,
        BinaryFn::Or => x | y,
        BinaryFn::Xor => x ^ y,
        BinaryFn::Shl => {
            if inside {
                x << by
            } else {
                0
            }
        }
        BinaryFn::Shr => x >> by,
        BinaryFn::Umulhi => ((unsigned(x) * unsigned(y)) >> ty.bits()) as i128,
        BinaryFn::Div
        | BinaryFn::DivRn
        | BinaryFn::Pow
        | BinaryFn::Atan2
        | BinaryFn::Hypot
        | BinaryFn::Fmod
        | BinaryFn::Remainder
        | BinaryFn::Copysign
        | BinaryFn::Nextafter
        | BinaryFn::Fdim
        | BinaryFn::Ldexp => return None,
    })
}

#[test]
fn integer_functions_follow_their_definitions() {
    for &ty in Scalar::ALL.iter().filter(|ty| ty.is_int()) {
        let numbers = integers(ty);
        let image = |x: i128| x as u64 & ty.mask();
        for &x in &numbers {
            let unary = |f: UnaryFn| f.eval(ty, image(x));
            assert_eq!(unary(UnaryFn::Neg), Some(image(-x)), "neg {ty} {x}");
            assert_eq!(unary(UnaryFn::Not), Some(image(!x)), "not {ty} {x}");
            assert_eq!(unary(UnaryFn::Abs), Some(image(x.abs())), "abs {ty} {x}");
            assert_eq!(unary(UnaryFn::Exp), None);
            for &y in &numbers {
                for &f in BinaryFn::ALL {
                    let expected = reference(f, ty, x, y).map(image);
                    assert_eq!(f.eval(ty, image(x), image(y)), expected, "{f} {ty} {x} {y}");
                }
                let holds = |p: Predicate| p.eval(ty, image(x), image(y));
                assert_eq!(holds(Predicate::Eq), Some(x == y));
                assert_eq!(holds(Predicate::Ne), Some(x != y));
                assert_eq!(holds(Predicate::Lt), Some(x < y), "{ty} {x} {y}");
                assert_eq!(holds(Predicate::Le), Some(x <= y));
                assert_eq!(holds(Predicate::Gt), Some(x > y));
                assert_eq!(holds(Predicate::Ge), Some(x >= y));
            }
        }
    }
}

/// Images of a float type: every one of 8 bits, a sample of the others with the specials.
fn images(ty: Scalar) -> Vec<u64> {
    if ty.bits() <= 8 {
        return (0..=ty.mask()).collect();
    }
    let special = [0.0, 1.0, 1.5, f64::INFINITY, f64::NAN, f64::MAX, 1e-40, 5e-324];
    let special = special.into_iter().flat_map(|x| [x, -x]);
    let special = special.map(|x| cast_bits(Scalar::F64, ty, Rounding::Nearest, x.to_bits()));
    special.chain((0..200).map(|i| mix(i) & ty.mask())).collect()
}

fn is_nan(ty: Scalar, image: u64) -> bool {
    Predicate::Ne.eval(ty, image, image) == Some(true)
}

#[test]
fn identities_and_symmetries_hold() {
    for &ty in Scalar::ALL {
        let images = if ty.is_float() {
            images(ty)
        } else {
            integers(ty).iter().map(|&x| x as u64 & ty.mask()).collect()
        };
        // e4b15 reads two images as its largest number and writes one.
        let canonical = |x: u64| if ty == Scalar::F8E4B15 && x & 0x7f == 0x7f { x - 1 } else { x };
        let same = |x: u64, y: u64| x == y || is_nan(ty, x) && is_nan(ty, y);
        for &f in BinaryFn::ALL {
            let Some(at) = f.eval(ty, images[0], images[0]).map(|_| f.identity(ty)) else {
                assert!(!f.accepts(ty) && f.identity(ty).is_none());
                continue;
            };
            assert!(f.accepts(ty));
            for &x in &images {
                // Inf of an fp8 format saturates in any operation.
                let inf = ty == Scalar::F8E5 && x & 0x7f == 0x7c;
                if let Some(e) = at.filter(|_| !inf) {
                    for got in [f.eval(ty, e, x), f.eval(ty, x, e)] {
                        let got = got.unwrap();
                        assert!(same(got, canonical(x)), "{f} {ty} {x:#x} {e:#x}: {got:#x}");
                    }
                }
                for &y in images.iter().step_by(3).filter(|_| f.is_commutative()) {
                    let (a, b) = (f.eval(ty, x, y).unwrap(), f.eval(ty, y, x).unwrap());
                    assert!(same(a, b), "{f} {ty} {x:#x} {y:#x}");
                }
                for &y in images.iter().step_by(7).filter(|_| f.is_associative(ty)) {
                    let z = images[(x ^ y) as usize % images.len()];
                    let apply = |x, y| f.eval(ty, x, y).unwrap();
                    let (a, b) = (apply(apply(x, y), z), apply(x, apply(y, z)));
                    assert!(same(a, b), "{f} {ty} {x:#x} {y:#x} {z:#x}");
                }
            }
        }
        for (&x, &y) in images.iter().zip(images.iter().rev()) {
            for &p in Predicate::ALL {
                assert_eq!(p.eval(ty, x, y), p.swapped().eval(ty, y, x));
                if let Some(not) = p.negated(ty) {
                    assert_eq!(p.eval(ty, x, y), not.eval(ty, x, y).map(|holds| !holds));
                }
            }
        }
    }
}

#[test]
fn floats_at_the_corners() {
    const NAN: f32 = f32::NAN;
    const INF: f32 = f32::INFINITY;
    let cases = [
        (BinaryFn::Min, 1.0, NAN, 1.0),
        (BinaryFn::Min, NAN, 1.0, 1.0),
        (BinaryFn::Max, NAN, NAN, NAN),
        (BinaryFn::Min, 0.0, -0.0, -0.0),
        (BinaryFn::Min, -0.0, 0.0, -0.0),
        (BinaryFn::Max, -0.0, 0.0, 0.0),
        (BinaryFn::Max, 0.0, -0.0, 0.0),
        (BinaryFn::Max, -INF, 2.0, 2.0),
        (BinaryFn::MinNan, 1.0, NAN, NAN),
        (BinaryFn::MaxNan, NAN, 1.0, NAN),
        (BinaryFn::MaxNan, 3.0, 4.0, 4.0),
        (BinaryFn::Div, 1.0, 0.0, INF),
        (BinaryFn::Rem, 7.5, 2.0, 1.5),
        (BinaryFn::Rem, -7.5, 2.0, -1.5),
        (BinaryFn::Rem, 7.5, INF, 7.5),
        (BinaryFn::Rem, 7.5, 0.0, NAN),
        (BinaryFn::Rem, INF, 2.0, NAN),
    ];
    for (f, x, y, expected) in cases {
        let bits = |x: f32| u64::from(x.to_bits());
        let got = f.eval(Scalar::F32, bits(x), bits(y)).unwrap();
        let got = f32::from_bits(got as u32);
        let same = got.to_bits() == expected.to_bits() || got.is_nan() && expected.is_nan();
        assert!(same, "{f}({x}, {y}) is {got}");
        let wide = |x: f32| f64::from(x).to_bits();
        let got = f64::from_bits(f.eval(Scalar::F64, wide(x), wide(y)).unwrap());
        let same = got.to_bits() == wide(expected) || got.is_nan() && expected.is_nan();
        assert!(same, "{f}({x}, {y}) is {got} in fp64");
    }
    let bits = |x: f32| u64::from(x.to_bits());
    let clamp = |x| TernaryFn::Clamp.eval(Scalar::F32, bits(x), bits(-1.0), bits(1.0));
    assert_eq!(clamp(3.0), Some(bits(1.0)));
    assert_eq!(clamp(-3.0), Some(bits(-1.0)));
    assert_eq!(clamp(NAN), Some(bits(-1.0)));
    let (third, three) = (bits(1.0 / 3.0), bits(3.0));
    let fused = TernaryFn::Fma.eval(Scalar::F32, third, three, bits(-1.0));
    assert_eq!(fused, Some(bits((1.0f32 / 3.0).mul_add(3.0, -1.0))));
    assert_eq!(TernaryFn::Fma.eval(Scalar::I32, 1, 2, 3), None);
    assert_eq!(TernaryFn::Clamp.eval(Scalar::I8, 0x80, 0xff, 1), Some(0xff));
}

/// `+ - * /` and the root on narrow floats are the exact results, rounded once.
#[test]
fn narrow_arithmetic_is_correctly_rounded() {
    let narrow = Scalar::ALL.iter().copied().filter(|ty| ty.compute_type() != *ty);
    for ty in narrow {
        let exact = |x: u64| f64::from_bits(cast_bits(ty, Scalar::F64, Rounding::Nearest, x));
        let rounded = |x: f64| cast_bits(Scalar::F64, ty, Rounding::Nearest, x.to_bits());
        let same = |x: u64, y: u64| x == y || is_nan(ty, x) && is_nan(ty, y);
        for &x in &images(ty) {
            // f64 rounds these by less than could matter to 11 bits.
            let root = UnaryFn::Sqrt.eval(ty, x).unwrap();
            let expected = rounded(exact(x).sqrt());
            assert!(same(root, expected) || exact(x) < 0.0, "sqrt {ty} {x:#x}");
            for &y in &images(ty) {
                let (a, b) = (exact(x), exact(y));
                let cases = [
                    (BinaryFn::Add, a + b),
                    (BinaryFn::Sub, a - b),
                    (BinaryFn::Mul, a * b),
                    (BinaryFn::Div, a / b),
                ];
                for (f, expected) in cases {
                    let got = f.eval(ty, x, y).unwrap();
                    let expected = rounded(expected);
                    // What e4b15 makes of a NaN has an unspecified sign, as the NaN has.
                    let nan = (ty == Scalar::F8E4B15).then_some(0x7f);
                    let same = same(got, expected) || nan.is_some_and(|m| got & m == expected & m);
                    assert!(same, "{f} {ty} {x:#x} {y:#x}: {got:#x}, not {expected:#x}");
                }
            }
        }
    }
}

/// What a compiler would build is what the executor computes.
#[test]
fn expansion_and_evaluation_agree() {
    for i in 0..500 {
        let (x, y) = (mix(i), mix(i + 1000));
        let (x, y) = if i % 2 == 0 { (x, y) } else { ((x % 9000) << 16, (y % 9000) << 16) };
        let single = |x: u64| f32::from_bits(x as u32);
        let double = f64::from_bits;
        for &f in UnaryFn::ALL {
            let built = f.expand(&mut HostF32, (single(x),)).map(|r| u64::from(r.to_bits()));
            same(Scalar::F32, f.eval(Scalar::F32, x & u64::from(u32::MAX)), built);
            let built = f.expand(&mut HostF64, (double(x),)).map(f64::to_bits);
            same(Scalar::F64, f.eval(Scalar::F64, x), built);
        }
        for &f in BinaryFn::ALL {
            let built = f.expand(&mut HostF64, (double(x), double(y))).map(f64::to_bits);
            same(Scalar::F64, f.eval(Scalar::F64, x, y), built);
        }
        for &p in Predicate::ALL {
            let built = p.expand(&mut HostF64, (double(x), double(y)));
            assert_eq!(p.eval(Scalar::F64, x, y), built);
        }
    }

    fn same(ty: Scalar, a: Option<u64>, b: Option<u64>) {
        let nan = |x: Option<u64>| x.is_some_and(|x| is_nan(ty, x));
        assert!(a == b || nan(a) && nan(b), "{a:x?} {b:x?}");
    }
}
