//! What the accuracy test and the accuracy example share: the functions measured, their stated
//! bounds, evaluation of slices the way an executor does it, and the error in ulp.
#![allow(dead_code, reason = "each of the two uses a part")]

pub mod more;
mod oracle;

use naiad_ir::scalar::{Lane, Lanewise, UnaryFn, UnaryVisitor};
use oracle::Exact;
use std::any::Any;

/// A function under measurement.
pub struct Function {
    pub f: UnaryFn,
    /// The function in `f64`, accurate far beyond `f32`.
    exact_f32: fn(f64) -> f64,
    /// The function to about 100 bits.
    exact_f64: fn(f64) -> Exact,
    /// Stated bounds in ulp.
    pub bound_f32: f64,
    pub bound_f64: f64,
    /// The interval outside which `f64` results are 0, infinite, NaN or 1, or sampling is by bits.
    range: (f64, f64),
}

const fn row(
    f: UnaryFn,
    (bound_f32, bound_f64): (f64, f64),
    exact_f32: fn(f64) -> f64,
    exact_f64: fn(f64) -> Exact,
    range: (f64, f64),
) -> Function {
    Function { f, exact_f32, exact_f64, bound_f32, bound_f64, range }
}

const ANY: (f64, f64) = (f64::NEG_INFINITY, f64::INFINITY);

#[rustfmt::skip]
pub const FUNCTIONS: &[Function] = &[
    row(UnaryFn::Exp, (1.0, 1.0), f64::exp, oracle::exp, (-746.0, 710.0)),
    row(UnaryFn::Exp2, (1.0, 1.0), f64::exp2, oracle::exp2, (-1076.0, 1025.0)),
    row(UnaryFn::Log, (1.0, 1.0), f64::ln, |x| oracle::log(x).into(), ANY),
    row(UnaryFn::Log2, (1.0, 1.0), f64::log2, |x| oracle::log2(x).into(), ANY),
    row(UnaryFn::Sqrt, (0.5, 0.5), f64::sqrt, |x| oracle::sqrt(x).into(), ANY),
    row(UnaryFn::Rsqrt, (2.0, 2.0), |x| 1.0 / x.sqrt(), |x| oracle::rsqrt(x).into(), ANY),
    row(UnaryFn::Sin, (2.0, 2.0), f64::sin, |x| oracle::sin(x).into(), ANY),
    row(UnaryFn::Cos, (2.0, 2.0), f64::cos, |x| oracle::cos(x).into(), ANY),
    row(UnaryFn::Tanh, (2.0, 2.0), f64::tanh, |x| oracle::tanh(x).into(), (-20.0, 20.0)),
    row(UnaryFn::Erf, (2.0, 2.0), libm::erf, |x| oracle::erf(x).into(), (-6.0, 6.0)),
    row(UnaryFn::Floor, (0.0, 0.0), f64::floor, |x| (x.floor(), 0.0).into(), ANY),
    row(UnaryFn::Ceil, (0.0, 0.0), f64::ceil, |x| (x.ceil(), 0.0).into(), ANY),
];

impl Function {
    /// The greatest error over the inputs, and the first input that has it.
    pub fn worst_f32(&self, inputs: &[f32]) -> (f64, usize) {
        let mut results = vec![0.0; inputs.len()];
        apply(self.f, inputs, &mut results);
        worst(inputs.iter().zip(&results).map(|(&x, &got)| {
            let exact = (self.exact_f32)(f64::from(x));
            error((exact, 0.0).into(), f64::from(exact as f32), f64::from(got), 23, -126)
        }))
    }

    /// The same in `f64`.
    pub fn worst_f64(&self, inputs: &[f64]) -> (f64, usize) {
        let mut results = vec![0.0; inputs.len()];
        apply(self.f, inputs, &mut results);
        worst(inputs.iter().zip(&results).map(|(&x, &got)| {
            let exact = (self.exact_f64)(x);
            error(exact, exact.rounded(), got, 52, -1022)
        }))
    }

    /// Input `index` of the sample: specials first, then alternately uniform on the interesting range
    /// and uniform over bit images.
    pub fn sample_f64(&self, index: u64) -> f64 {
        const SPECIAL: [f64; 10] = [
            0.0,
            -0.0,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::NAN,
            f64::MAX,
            f64::MIN,
            f64::MIN_POSITIVE,
            5e-324,
            -5e-324,
        ];
        if let Some(x) = SPECIAL.get(index as usize) {
            return *x;
        }
        let random = mix(index);
        let (low, high) = if self.range == ANY { (-10.0, 10.0) } else { self.range };
        let unit = (random >> 11) as f64 / (1u64 << 53) as f64;
        if index.is_multiple_of(2) { low + unit * (high - low) } else { f64::from_bits(random) }
    }
}

/// The finalizer of SplitMix64: a random-looking image of a counter.
pub fn mix(index: u64) -> u64 {
    let z = index.wrapping_add(1).wrapping_mul(0x9e3779b97f4a7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58476d1ce4e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d049bb133111eb);
    z ^ (z >> 31)
}

fn worst(errors: impl Iterator<Item = f64>) -> (f64, usize) {
    let greater = |a: (f64, usize), b: (f64, usize)| if b.0 > a.0 { b } else { a };
    errors.enumerate().map(|(i, e)| (e, i)).fold((0.0, 0), greater)
}

/// `|got - exact|` in units of the last place of `exact`; infinite if the two are of different sorts.
/// `rounded` is `exact` in the format of the result, whose least normal exponent is `least`.
fn error(exact: Exact, rounded: f64, got: f64, mantissa: i32, least: i32) -> f64 {
    let sum = exact.sum;
    if sum.0.is_nan() || got.is_nan() {
        return if sum.0.is_nan() && got.is_nan() { 0.0 } else { f64::INFINITY };
    }
    let same_sort = got.is_infinite() == rounded.is_infinite()
        && got.is_sign_negative() == sum.0.is_sign_negative();
    if !same_sort {
        return f64::INFINITY;
    }
    // Zero has no last place, and neither has what f64 rounds to it.
    if got == rounded && (got.is_infinite() || sum.0 == 0.0) {
        return 0.0;
    }
    let exponent = ((sum.0.to_bits() >> 52) & 0x7ff) as i32 - 1023;
    let last_place = exponent.max(least - exact.n) - mantissa;
    let got = oracle::scale((got, 0.0), -exact.n).0;
    let distance = ((got - sum.0) - sum.1).abs();
    oracle::scale((distance, 0.0), -last_place).0
}

/// Applies a function to a slice, as an executor does: one loop, instantiated per function and type,
/// compiled for the features of the machine.
pub fn apply<T: Lane>(f: UnaryFn, inputs: &[T], results: &mut [T]) {
    struct Loop<'a, T>(&'a [T], &'a mut [T]);

    impl<T: Lane> UnaryVisitor for Loop<'_, T> {
        type Out = ();

        fn visit<U: Lane>(self, f: impl Lanewise<(U,), U>) {
            // The dispatch is on T's own type, so U is T.
            let inputs: &dyn Any = &self.0.to_vec();
            let Some(inputs) = inputs.downcast_ref::<Vec<U>>() else { return };
            let mut computed = vec![U::default(); inputs.len()];
            map(f, inputs, &mut computed);
            let computed: &dyn Any = &computed;
            let Some(computed) = computed.downcast_ref::<Vec<T>>() else { return };
            self.1.copy_from_slice(computed);
        }
    }

    f.dispatch(T::SCALAR, Loop(inputs, results));
}

fn map<T: Lane>(f: impl Lanewise<(T,), T>, inputs: &[T], results: &mut [T]) {
    #[inline(always)]
    fn body<T: Lane>(f: impl Lanewise<(T,), T>, inputs: &[T], results: &mut [T]) {
        for (x, y) in inputs.iter().zip(results) {
            *y = f.at((*x,));
        }
    }

    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2,fma")]
        fn wide<T: Lane>(f: impl Lanewise<(T,), T>, inputs: &[T], results: &mut [T]) {
            body(f, inputs, results);
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            // SAFETY: the features are there.
            return unsafe { wide(f, inputs, results) };
        }
    }
    body(f, inputs, results);
}
