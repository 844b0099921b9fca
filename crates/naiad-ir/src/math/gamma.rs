//! The gamma function and its logarithm, in `f64`.

use super::ops::{fast_two_sum, poly_of, scaled, two_product, two_sum};
use super::{FloatOps, exp_parts, log, log_pair, sinpi};

/// Stirling's series starts here.
const LARGE: f64 = 8.0;

/// `log |gamma x|`, infinite at 0 and at negative integers.
///
/// With `y` the distance from 2, `log gamma(2 + y) = y L(y)` for `|y| <= 1/2`, error 2^-53 (19 terms).
/// Arguments below 1.5 go up to there, arguments up to 8 come down, by `gamma(x + 1) = x gamma x`: the
/// logarithm of one product. Above, Stirling's series, its correction `S(1/x^2)/x`, error 2^-54 (6
/// terms). Negative arguments are reflected: `log(pi / |sin pi x|) - log gamma(1 - x)`.
///
/// Near the zeros between negative integers the error is small beside the terms, not the result.
#[inline(always)]
pub fn lgamma<B: FloatOps>(b: &mut B, x: B::F) -> B::F {
    let size = b.abs(x);
    let (zero, half, one) = (b.constant(0.0), b.constant(0.5), b.constant(1.0));
    let (y, product, is_product_above) = walk(b, size, size);
    let limit = b.constant(LARGE);
    let is_large = b.ge(size, limit);
    let argument = b.select(is_large, size, product);
    let log_of = log(b, argument);
    let minus_log = b.neg(log_of);
    let log_of_product = b.select(is_product_above, log_of, minus_log);
    let l = poly_of(
        b,
        y,
        &[
            0.42278433509846713,
            0.32246703342411326,
            -0.06735230105319831,
            0.02058080842778057,
            -0.007385551028649739,
            0.002890510331023538,
            -0.0011927539127574397,
            0.0005096695156807931,
            -0.00022315473518243537,
            9.945766997390095e-05,
            -4.492653095416427e-05,
            2.0505617829962098e-05,
            -9.437237865389276e-06,
            4.3845879102208e-06,
            -2.049749979057044e-06,
            9.203188014557842e-07,
            -4.2005214732183685e-07,
            2.78490654897848e-07,
            -1.4328709487073994e-07,
        ],
    );
    let near = b.mul_add(y, l, log_of_product);

    // (x - 1/2)(log x - 1) + (log(2 pi) - 1)/2 + S/x, which does not overflow before the result does.
    let less = b.sub(size, half);
    let factor = b.sub(log_of, one);
    let constant = b.constant(0.4189385332046727);
    let correction = stirling(b, size);
    let rest = b.add(constant, correction);
    let far = b.mul_add(less, factor, rest);
    let right = b.select(is_large, far, near);

    // gamma(1 - x) = -x gamma(-x).
    let sine = sinpi(b, size);
    let sine = b.abs(sine);
    let below = b.mul(sine, size);
    let pi = b.constant(std::f64::consts::PI);
    let ratio = b.div(pi, below);
    let reflected = log(b, ratio);
    let reflected = b.sub(reflected, right);
    let inf = b.constant(f64::INFINITY);
    let whole = b.trunc(size);
    let is_whole = b.eq(whole, size);
    let reflected = b.select(is_whole, inf, reflected);
    // Close to 0 it is -log |x| on either side, and the product above would underflow.
    let tiny = b.constant((-60f64).exp2());
    let is_tiny = b.lt(size, tiny);
    let left = b.select(is_tiny, right, reflected);
    let negative = b.lt(x, zero);
    let result = b.select(negative, left, right);
    let finite = b.lt(size, inf);
    b.select(finite, result, size)
}

/// The gamma function: infinite at 0 with the sign of the zero, NaN at negative integers and `-inf`.
///
/// As [`lgamma`], but below 8 by `gamma(2 + y)` (19 terms, error 2^-55) and a product or a quotient, and
/// above by the exponential of Stirling's series, kept as a sum of two numbers.
#[inline(always)]
pub fn tgamma<B: FloatOps>(b: &mut B, x: B::F) -> B::F {
    let size = b.abs(x);
    let (zero, half) = (b.constant(0.0), b.constant(0.5));
    let negative = b.lt(x, zero);
    // Between -1/2 and 1/2 the way up needs no reflection.
    let is_small = b.lt(size, half);
    let signed = b.select(is_small, x, size);
    let (y, product, is_product_above) = walk(b, size, signed);
    let g = poly_of(
        b,
        y,
        &[
            1.0,
            0.4227843350984668,
            0.4118403304264427,
            0.08157691924716735,
            0.0742490107531692,
            -0.00026698207450288176,
            0.011154045733605086,
            -0.002852645635981126,
            0.0021039329872328746,
            -0.0009195770523671823,
            0.0004903930895858708,
            -0.0002409088276360265,
            0.00012163681984922392,
            -6.099152807078839e-05,
            3.063504831957521e-05,
            -1.452455788959517e-05,
            7.090622662274911e-06,
            -5.161270531743515e-06,
            2.73803486081234e-06,
        ],
    );
    let times = b.mul(g, product);
    let over = b.div(g, product);
    let near = b.select(is_product_above, times, over);

    let (log_high, log_low) = log_pair(b, size);
    let less = b.sub(size, half);
    let (p, p_low) = two_product(b, less, log_high);
    let p_low = b.mul_add(less, log_low, p_low);
    let minus_size = b.neg(size);
    let (q, q_low) = two_sum(b, p, minus_size);
    let q_low = b.add(q_low, p_low);
    let constant = b.constant(0.9189385332046728);
    let constant_low = b.constant(-3.8782941580672414e-17);
    let correction = stirling(b, size);
    let (c, c_low) = fast_two_sum(b, constant, correction);
    let c_low = b.add(c_low, constant_low);
    let (q, lost) = two_sum(b, q, c);
    let q_low = b.add(q_low, lost);
    let q_low = b.add(q_low, c_low);
    // The reflection divides by gamma.
    let (minus_q, minus_low) = (b.neg(q), b.neg(q_low));
    let q = b.select(negative, minus_q, q);
    let q_low = b.select(negative, minus_low, q_low);
    let q_size = b.abs(q);
    let far = b.constant(2000.0);
    let inside = b.lt(q_size, far);
    let q_low = b.select(inside, q_low, zero);
    let (head, tail, n) = exp_parts(b, q, Some(q_low));
    let power = b.add(head, tail);
    let power = scaled(b, power, n);

    let limit = b.constant(LARGE);
    let is_large = b.ge(size, limit);
    let right = b.select(is_large, power, near);
    let sine = sinpi(b, size);
    let below = b.mul(sine, size);
    let minus_pi = b.constant(-std::f64::consts::PI);
    let ratio = b.div(minus_pi, below);
    let by_power = b.mul(ratio, power);
    let by_near = b.div(ratio, near);
    let reflected = b.select(is_large, by_power, by_near);
    let (inf, nan) = (b.constant(f64::INFINITY), b.constant(f64::NAN));
    let whole = b.trunc(size);
    let is_whole = b.eq(whole, size);
    let reflected = b.select(is_whole, nan, reflected);
    let left = b.select(is_small, near, reflected);
    let result = b.select(negative, left, right);
    let is_zero = b.eq(size, zero);
    let one = b.constant(1.0);
    let pole = b.div(one, x);
    let result = b.select(is_zero, pole, result);
    let is_inf = b.eq(x, inf);
    b.select(is_inf, inf, result)
}

/// `(y, p, up)` with `gamma x = gamma(2 + y) p` or, if not `up`, `gamma(2 + y) / p`, for `0 <= x < 8`.
/// Below 1/2 it is `signed` that is taken to 2, which has the size `x`.
#[inline(always)]
fn walk<B: FloatOps>(b: &mut B, x: B::F, signed: B::F) -> (B::F, B::F, B::M) {
    let (half, one, two) = (b.constant(0.5), b.constant(1.0), b.constant(2.0));
    let (low, high) = (b.constant(1.5), b.constant(2.5));
    let mut t = x;
    let mut product = one;
    for _ in 0..6 {
        let less = b.sub(t, one);
        let more = b.mul(product, less);
        let goes = b.ge(t, high);
        t = b.select(goes, less, t);
        product = b.select(goes, more, product);
    }
    let down = b.sub(t, two);
    let next = b.add(signed, one);
    let twice = b.mul(signed, next);
    let y_from_one = b.sub(x, one);
    let from_zero = b.lt(x, half);
    let from_one = b.lt(x, low);
    let y = b.select(from_one, y_from_one, down);
    let y = b.select(from_zero, signed, y);
    let product = b.select(from_one, x, product);
    let product = b.select(from_zero, twice, product);
    let up = b.ge(x, low);
    (y, product, up)
}

/// What Stirling's formula lacks of `log gamma x`, for `x >= 8`.
#[inline(always)]
fn stirling<B: FloatOps>(b: &mut B, x: B::F) -> B::F {
    let one = b.constant(1.0);
    let inverse = b.div(one, x);
    let square = b.mul(inverse, inverse);
    let s = poly_of(
        b,
        square,
        &[
            0.0833333333333333,
            -0.0027777777776099803,
            0.0007936506668558375,
            -0.000595202936509099,
            0.000837308375558168,
            -0.0016532372384759177,
        ],
    );
    b.mul(s, inverse)
}
