//! The error function.

use super::ops::{copy_sign, poly};
use super::{FloatOps, exp};

/// `erf x`, within 2 ulp.
///
/// Below 1, `x + x q(x^2)`, error 2^-30 (7 terms) or 2^-63 (13 terms). Above,
/// `1 - t e^(-x^2) p(t)` with `t = 2 / (2 + |x|)`, the form of Shepherd and Laframboise, "Chebyshev
/// approximation of (1 + 2x) exp(x^2) erfc x" (1981): `t` maps the half line to a finite interval
/// on which `e^(x^2) erfc x / t` is smooth. Error 2^-32 (6 terms) or 2^-64 (14 terms) relative to 1.
/// The square in the exponent is split into its rounded value and what was lost. From 6 on the
/// result is 1 in either width.
#[inline(always)]
pub fn erf<B: FloatOps>(b: &mut B, x: B::F) -> B::F {
    let size = b.abs(x);
    let one = b.constant(1.0);
    let is_small = b.lt(size, one);

    let q = erf_series(b, size);
    let small = b.mul_add(size, q, size);

    let most = b.constant(6.0);
    let beyond = b.gt(size, most);
    let near = b.select(beyond, most, size);
    let two = b.constant(2.0);
    let below = b.add(near, two);
    let t = b.div(two, below);
    let p = poly(
        b,
        t,
        &[
            0.27891758922430077,
            0.31267373505270163,
            0.13128766488480928,
            0.381335139903658,
            -0.053727313187067895,
            -0.05100602403515588,
        ],
        &[
            0.2820957147168285,
            0.2820802747130068,
            0.24686938495882813,
            0.1772689945668117,
            0.07147914808520428,
            0.07249352651209047,
            -0.3675280323637596,
            0.8197321048919871,
            -1.7439273152014132,
            2.4736007412640624,
            -2.1763182735268454,
            1.1754257672202701,
            -0.3628465306023852,
            0.04957488400915668,
        ],
    );
    // e^-(square + lost) = e^-square (1 - lost), with lost below 2^-18.
    let minus_near = b.neg(near);
    let minus_square = b.mul(minus_near, near);
    let lost = b.mul_add(near, near, minus_square);
    let power = exp(b, minus_square);
    let minus_lost = b.neg(lost);
    let power = b.mul_add(power, minus_lost, power);
    let scaled = b.mul(t, power);
    let minus_scaled = b.neg(scaled);
    let large = b.mul_add(minus_scaled, p, one);

    let result = b.select(is_small, small, large);
    // `near` kept a NaN, so the result has one; the sign is that of x, -0 included.
    copy_sign(b, result, x)
}

/// `q(x^2)` with `erf x = x + x q(x^2)`, for `|x|` below 1.
#[inline(always)]
pub(super) fn erf_series<B: FloatOps>(b: &mut B, x: B::F) -> B::F {
    let z = b.mul(x, x);
    poly(
        b,
        z,
        &[
            0.12837916591378504,
            -0.37612627135930865,
            0.11283600175959689,
            -0.026854444587068038,
            0.005189535340923635,
            -0.0008020841360619397,
            7.889119957544483e-05,
        ],
        &[
            0.1283791670955126,
            -0.3761263890318375,
            0.11283791670954885,
            -0.02686617064507787,
            0.00522397762482839,
            -0.000854832698142363,
            0.00012055331132900507,
            -1.4925595771154102e-05,
            1.6461008465584945e-06,
            -1.6350396133054441e-07,
            1.4660328354721725e-08,
            -1.1374955121983577e-09,
            5.960685514044635e-11,
        ],
    )
}
