//! The stated bounds of the elementary functions, on a sample; `examples/accuracy.rs` takes every
//! `f32`.

mod common;

use common::{FUNCTIONS, apply, mix};
use naiad_ir::scalar::{Lane, UnaryFn};
use naiad_ir::types::Scalar;

#[test]
fn f32_sampled() {
    // A stride coprime to 2^32 meets every exponent with ever new significands.
    let strided = (0..1u64 << 32).step_by(24_593).map(|i| f32::from_bits(i as u32));
    let specials = [0, 1, 0x7fffff, 0x800000, 0x7f7fffff, 0x7f800000, 0x7f800001, 0x7fc00000];
    let specials = specials.iter().flat_map(|&i| [i, i | 1 << 31]).map(f32::from_bits);
    let inputs: Vec<f32> = strided.chain(specials).collect();
    for f in FUNCTIONS {
        let (error, at) = f.worst_f32(&inputs);
        assert!(error <= f.bound_f32, "{}({:e}) is off by {error} ulp", f.f, inputs[at]);
    }
}

#[test]
fn f64_sampled() {
    for f in FUNCTIONS {
        let inputs: Vec<f64> = (0..20_000).map(|i| f.sample_f64(i)).collect();
        let (error, at) = f.worst_f64(&inputs);
        assert!(error <= f.bound_f64, "{}({:e}) is off by {error} ulp", f.f, inputs[at]);
    }
}

/// The oracle has the digits of 2/pi from the same source as the code, the standard library has not.
#[test]
fn reduction_of_huge_arguments() {
    for i in 0..50_000 {
        let x = f64::from_bits(mix(i));
        let eval = |f: UnaryFn| f64::from_bits(f.eval(Scalar::F64, x.to_bits()).unwrap());
        let near = |got: f64, exact: f64| (got - exact).abs() < 4e-16 || !x.is_finite();
        assert!(near(eval(UnaryFn::Sin), x.sin()), "sin({x:e})");
        assert!(near(eval(UnaryFn::Cos), x.cos()), "cos({x:e})");
    }
}

/// A loop with the features of the machine, and one element at a time without, give the same bits.
#[test]
fn vectorized_and_single_results_agree() {
    fn check<T: Lane>(f: UnaryFn, ty: Scalar) {
        let inputs: Vec<T> = (0..4096).map(|i| T::from_image(mix(i))).collect();
        let mut results = vec![T::default(); inputs.len()];
        apply(f, &inputs, &mut results);
        for (x, y) in inputs.iter().zip(&results) {
            let (single, same) = (f.eval(ty, x.image()).map(T::from_image), Some(*y));
            // NaN is not equal to itself; its payload is unspecified.
            let both_nan = *y != *y && single != single;
            assert!(single == same || both_nan, "{f} {ty} of image {:#x}", x.image());
            assert!(both_nan || single.map(T::image) == same.map(T::image));
        }
    }
    for f in FUNCTIONS {
        check::<f32>(f.f, Scalar::F32);
        check::<f64>(f.f, Scalar::F64);
    }
}
