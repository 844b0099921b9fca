//! The logarithms.

use super::FloatOps;
use super::ops::{fast_two_sum, less_product, pick, poly, power_of_two, sar, shl, two_product};

/// The natural logarithm, within 1 ulp.
///
/// `x = 2^e m` with `m` in `[sqrt(1/2), sqrt(2))`, and `log_of_mantissa` gives `log m`. Then
/// `e ln 2` is added in two parts, the high one with so many trailing zeros that `e` times it is
/// exact. No cancellation: where `e` is not 0, `|log x| >= 0.34`.
#[inline(always)]
pub fn log<B: FloatOps>(b: &mut B, x: B::F) -> B::F {
    let (e, f) = split(b, x);
    let (half_square, rest) = log_of_mantissa(b, f);
    let result = assemble(b, e, f, half_square, rest);
    special(b, x, result)
}

/// `e ln 2 + (f - (half_square - rest))`, from the least to the greatest.
#[inline(always)]
fn assemble<B: FloatOps>(b: &mut B, e: B::F, f: B::F, half_square: B::F, rest: B::F) -> B::F {
    let ln2_high = pick(b, 0.693145751953125, 0.6931471803691238);
    let ln2_low = pick(b, 1.4286068203094173e-6, 1.9082149292705877e-10);
    let low = b.mul_add(e, ln2_low, rest);
    let low = b.sub(low, half_square);
    let low = b.add(low, f);
    b.mul_add(e, ln2_high, low)
}

/// The logarithm to base 2, within 1 ulp.
///
/// `log m` is kept as a sum `high + low` with `high = f - f^2/2`, multiplied by `log2 e` as a sum of
/// two constants, and added to `e` by Dekker's fast two-sum, whose error term is kept. So a power of
/// two gives its exponent exactly.
#[inline(always)]
pub fn log2<B: FloatOps>(b: &mut B, x: B::F) -> B::F {
    let factor_high = pick(b, 1.4426950216293335, std::f64::consts::LOG2_E);
    let factor_low = pick(b, 1.9259629911266175e-8, 2.0355273740931033e-17);
    let (e, f) = split(b, x);
    let (product, error) = times_log(b, f, factor_high, factor_low);
    let (sum, lost) = fast_two_sum(b, e, product);
    let error = b.add(error, lost);
    let result = b.add(sum, error);
    special(b, x, result)
}

/// The logarithm to base 10, within 1 ulp.
///
/// As [`log2`], with `e log10 2` added in two parts, of which the high one is exact.
#[inline(always)]
pub fn log10<B: FloatOps>(b: &mut B, x: B::F) -> B::F {
    let factor_high = pick(b, 0.4342944920063019, std::f64::consts::LOG10_E);
    let factor_low = pick(b, -1.0103049952192578e-08, 1.098319650216765e-17);
    let (e, f) = split(b, x);
    let (product, error) = times_log(b, f, factor_high, factor_low);
    let unit_high = pick(b, 0.301025390625, 0.30102999566383914);
    let unit_low = pick(b, 4.605038981195214e-06, 1.42050232272661e-13);
    let whole = b.mul(e, unit_high);
    let (sum, lost) = fast_two_sum(b, whole, product);
    let error = b.add(error, lost);
    let error = b.mul_add(e, unit_low, error);
    let result = b.add(sum, error);
    special(b, x, result)
}

/// `factor * log(1 + f)` as the sum of two numbers, with the factor given as such a sum.
#[inline(always)]
fn times_log<B: FloatOps>(b: &mut B, f: B::F, high: B::F, low: B::F) -> (B::F, B::F) {
    let (half_square, rest) = log_of_mantissa(b, f);
    let log_high = b.sub(f, half_square);
    let lost = b.sub(f, log_high);
    let lost = b.sub(lost, half_square);
    let log_low = b.add(lost, rest);
    let (product, error) = two_product(b, log_high, high);
    let error = b.mul_add(log_high, low, error);
    (product, b.mul_add(log_low, high, error))
}

/// `log(1 + x)`, within 2 ulp.
#[inline(always)]
pub fn log1p<B: FloatOps>(b: &mut B, x: B::F) -> B::F {
    let result = log1p_sum(b, x, None, None);
    let zero = b.constant(0.0);
    let one = b.constant(1.0);
    let u = b.add(one, x);
    let result = special(b, u, result);
    // Keeps the sign of a zero.
    let is_zero = b.eq(x, zero);
    b.select(is_zero, x, result)
}

/// `log(1 + x + low) + doublings ln 2` for `x > -1` and finite.
///
/// `1 + x` is rounded only to find the exponent `e`; then `f = 2^-e x + (2^-e - 1)` has one rounding,
/// none if `e` is 0, and the rest is as in [`log`]. Where `x` is so large that 1 does not reach its
/// significand, `f` is taken off that directly, since `2^-e` may be out of range.
#[inline(always)]
pub(super) fn log1p_sum<B: FloatOps>(
    b: &mut B,
    x: B::F,
    low: Option<B::F>,
    doublings: Option<B::F>,
) -> B::F {
    let one = b.constant(1.0);
    let u = b.add(one, x);
    let (e, m) = near_one(b, u);
    let zero = b.int(0);
    let minus_e = b.int_sub(zero, e);
    let unit = power_of_two(b, minus_e);
    let less = b.sub(unit, one);
    let fused = b.mul_add(x, unit, less);
    let direct = b.sub(m, one);
    let most = b.constant((1u64 << (B::MANTISSA + 3)) as f64);
    let moderate = b.lt(x, most);
    let f = b.select(moderate, fused, direct);

    let (half_square, rest) = log_of_mantissa(b, f);
    let e = b.to_float(e);
    let e = match doublings {
        Some(more) => b.add(e, more),
        None => e,
    };
    let rest = match low {
        Some(low) => {
            let relative = b.div(low, u);
            b.add(rest, relative)
        }
        None => rest,
    };
    assemble(b, e, f, half_square, rest)
}

/// The natural logarithm of a positive finite number as the sum of two, to about 10 bits more than
/// the width (for powers, whose exponents magnify its error).
///
/// With `s` as in `log_of_mantissa`, but as a sum of two numbers, `log m = s (2 + (2/3 s^2 + s^4
/// R(s^2)))`, error of `R` relative to the logarithm 2^-36 (3 terms) or 2^-64 (7 terms). Only `s^4 R`,
/// below 2^-12 of the whole, is computed without its rounding error.
#[inline(always)]
pub(super) fn log_pair<B: FloatOps>(b: &mut B, x: B::F) -> (B::F, B::F) {
    let (e, f) = split(b, x);
    let two = b.constant(2.0);
    let (below, below_low) = fast_two_sum(b, two, f);
    let s = b.div(f, below);
    let rest = less_product(b, s, below, f);
    let rest = less_product(b, s, below_low, rest);
    let s_low = b.div(rest, below);
    let (z, z_low) = two_product(b, s, s);
    let twice = b.add(s, s);
    let z_low = b.mul_add(twice, s_low, z_low);

    let third_high = pick(b, 0.6666666865348816, 0.6666666666666666);
    let third_low = pick(b, -1.9868215517249155e-08, 3.700743415417188e-17);
    let (t, t_low) = two_product(b, z, third_high);
    let t_low = b.mul_add(z, third_low, t_low);
    let t_low = b.mul_add(z_low, third_high, t_low);
    let r = poly(
        b,
        z,
        &[0.400001532647421, 0.28547020895829395, 0.23421326749615484],
        &[
            0.4000000000000229,
            0.2857142857008372,
            0.22222222522884696,
            0.18181784097533893,
            0.15386770191219284,
            0.13256508768539468,
            0.13199278786667928,
        ],
    );
    let square = b.mul(z, z);
    let w = b.mul(square, r);
    let (u, u_low) = fast_two_sum(b, t, w);
    let u_low = b.add(u_low, t_low);
    let (v, v_low) = fast_two_sum(b, two, u);
    let v_low = b.add(v_low, u_low);
    let (p, p_low) = two_product(b, s, v);
    let p_low = b.mul_add(s, v_low, p_low);
    let p_low = b.mul_add(s_low, v, p_low);

    let ln2_high = pick(b, 0.693145751953125, 0.693147180559663);
    let ln2_low = pick(b, 1.4286068203094173e-06, 2.8235290563031577e-13);
    let whole = b.mul(e, ln2_high);
    let (sum, low) = fast_two_sum(b, whole, p);
    let low = b.add(low, p_low);
    let low = b.mul_add(e, ln2_low, low);
    fast_two_sum(b, sum, low)
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

    let (e, m) = near_one(b, x);
    let one = b.constant(1.0);
    let f = b.sub(m, one);
    let e = b.to_float(e);
    (b.add(e, correction), f)
}

/// `(e, m)` as in [`split`], for positive normal `x`.
#[inline(always)]
fn near_one<B: FloatOps>(b: &mut B, x: B::F) -> (B::I, B::F) {
    let cut = b.constant(std::f64::consts::FRAC_1_SQRT_2);
    let cut = b.bits(cut);
    let image = b.bits(x);
    let above = b.int_sub(image, cut);
    let e = sar(b, above, B::MANTISSA);
    let exponent = shl(b, e, B::MANTISSA);
    let m = b.int_sub(image, exponent);
    (e, b.with_bits(m))
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
