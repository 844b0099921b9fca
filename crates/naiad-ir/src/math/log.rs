//! The logarithms.

use super::FloatOps;
use super::ops::{pick, poly, sar, shl};

/// The natural logarithm, within 1 ulp.
///
/// `x = 2^e m` with `m` in `[sqrt(1/2), sqrt(2))`, and `log_of_mantissa` gives `log m`. Then
/// `e ln 2` is added in two parts, the high one with so many trailing zeros that `e` times it is
/// exact. No cancellation: where `e` is not 0, `|log x| >= 0.34`.
#[inline(always)]
pub fn log<B: FloatOps>(b: &mut B, x: B::F) -> B::F {
    let (e, f) = split(b, x);
    let (half_square, rest) = log_of_mantissa(b, f);
    let ln2_high = pick(b, 0.693145751953125, 0.6931471803691238);
    let ln2_low = pick(b, 1.4286068203094173e-6, 1.9082149292705877e-10);
    // e ln2_high + (f - (half_square - (rest + e ln2_low))), from the least to the greatest.
    let low = b.mul_add(e, ln2_low, rest);
    let low = b.sub(low, half_square);
    let low = b.add(low, f);
    let result = b.mul_add(e, ln2_high, low);
    special(b, x, result)
}

/// The logarithm to base 2, within 1 ulp.
///
/// `log m` is kept as a sum `high + low` with `high = f - f^2/2`, multiplied by `log2 e` as a sum of
/// two constants, and added to `e` by Dekker's fast two-sum, whose error term is kept. So a power of
/// two gives its exponent exactly.
#[inline(always)]
pub fn log2<B: FloatOps>(b: &mut B, x: B::F) -> B::F {
    let (e, f) = split(b, x);
    let (half_square, rest) = log_of_mantissa(b, f);
    let high = b.sub(f, half_square);
    let lost = b.sub(f, high);
    let lost = b.sub(lost, half_square);
    let low = b.add(lost, rest);

    let log2e_high = pick(b, 1.4426950216293335, std::f64::consts::LOG2_E);
    let log2e_low = pick(b, 1.9259629911266175e-8, 2.0355273740931033e-17);
    let product = b.mul(high, log2e_high);
    let minus_product = b.neg(product);
    let error = b.mul_add(high, log2e_high, minus_product);
    let error = b.mul_add(high, log2e_low, error);
    let error = b.mul_add(low, log2e_high, error);

    let sum = b.add(e, product);
    let lost = b.sub(e, sum);
    let lost = b.add(lost, product);
    let error = b.add(error, lost);
    let result = b.add(sum, error);
    special(b, x, result)
}

/// `(e, m - 1)` with `x = 2^e m` and `m` in `[sqrt(1/2), sqrt(2))`, for positive finite `x`.
///
/// Subtracting the image of `sqrt(1/2)` before looking at the exponent moves the cut from a power of
/// two to there. A subnormal is multiplied into the normal range first.
#[inline(always)]
fn split<B: FloatOps>(b: &mut B, x: B::F) -> (B::F, B::F) {
    let least = pick(b, f64::from(f32::MIN_POSITIVE), f64::MIN_POSITIVE);
    let lift = b.constant((1u64 << B::MANTISSA) as f64);
    let lifted = b.mul(x, lift);
    let subnormal = b.lt(x, least);
    let x = b.select(subnormal, lifted, x);
    let none = b.constant(0.0);
    let lifted_by = b.constant(-f64::from(B::MANTISSA));
    let correction = b.select(subnormal, lifted_by, none);

    let cut = b.constant(std::f64::consts::FRAC_1_SQRT_2);
    let cut = b.bits(cut);
    let image = b.bits(x);
    let above = b.int_sub(image, cut);
    let e = sar(b, above, B::MANTISSA);
    let exponent = shl(b, e, B::MANTISSA);
    let m = b.int_sub(image, exponent);
    let m = b.with_bits(m);
    let one = b.constant(1.0);
    let f = b.sub(m, one);
    let e = b.to_float(e);
    (b.add(e, correction), f)
}

/// `log(1 + f)` as `f - (half_square - rest)`: the pair `(f^2 / 2, rest)`.
///
/// With `s = f / (2 + f)`, `log(1 + f) = log((1+s)/(1-s)) = 2s + s R(s^2)`, an odd function of `s`,
/// `|s| <= 0.1716`; and `2s = f - s f`, so that the leading term is exact (Tang, "Table-driven
/// implementation of the logarithm function", 1990, and fdlibm use the same identity). Here
/// `R = s^2 L(s^2)`, error 2^-29 (3 terms) or 2^-58 (7 terms).
#[inline(always)]
fn log_of_mantissa<B: FloatOps>(b: &mut B, f: B::F) -> (B::F, B::F) {
    let two = b.constant(2.0);
    let half = b.constant(0.5);
    let below = b.add(two, f);
    let s = b.div(f, below);
    let z = b.mul(s, s);
    let series = poly(
        b,
        z,
        &[0.6666677671658281, 0.39977495625360465, 0.2987307230899216],
        &[
            0.6666666666666735,
            0.39999999999411096,
            0.28571428743261956,
            0.22222198476053195,
            0.18183569736506416,
            0.1531390332860208,
            0.14797506906957764,
        ],
    );
    let half_f = b.mul(half, f);
    let half_square = b.mul(half_f, f);
    // 2s + s R = f - s f + s R = f - (f^2/2 - s (f^2/2 + R)), because s f = f^2/2 - s f^2/2.
    let inner = b.mul_add(z, series, half_square);
    (half_square, b.mul(s, inner))
}

/// Puts in the results for zero, infinity, negative numbers and NaN.
#[inline(always)]
fn special<B: FloatOps>(b: &mut B, x: B::F, result: B::F) -> B::F {
    let zero = b.constant(0.0);
    let inf = b.constant(f64::INFINITY);
    let minus_inf = b.constant(f64::NEG_INFINITY);
    let nan = b.constant(f64::NAN);
    let finite = b.lt(x, inf);
    // +inf and NaN, which a logarithm keeps.
    let result = b.select(finite, result, x);
    let negative = b.lt(x, zero);
    let result = b.select(negative, nan, result);
    let is_zero = b.eq(x, zero);
    b.select(is_zero, minus_inf, result)
}
