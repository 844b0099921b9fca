//! The exponential functions.

use super::FloatOps;
use super::ops::{pick, poly, sar, shl};

/// `e^x`, within 1 ulp.
///
/// Cody and Waite, "Software Manual for the Elementary Functions" (1980): with `n` the integer
/// nearest to `x / ln 2` and `r = x - n ln 2`, `|r| <= 0.3466`, `e^x = 2^n e^r`. `ln 2` is split in
/// two, and each product is fused, so `r` is off by little more than its own rounding. The
/// polynomial is `e^r = 1 + r + r^2 q(r)`, error 2^-28 (degree 6) or 2^-58 (degree 11).
#[inline(always)]
pub fn exp<B: FloatOps>(b: &mut B, x: B::F) -> B::F {
    // Beyond these bounds the result is 0 or inf anyway; inside them `2^n` can be built from two
    // normal factors. Comparing keeps a NaN.
    let x = between(b, x, (-105.0, 90.0), (-746.0, 710.0));
    let reciprocal = b.constant(std::f64::consts::LOG2_E);
    let (n, scale) = round(b, x, reciprocal);
    let minus_ln2_high = pick(b, -0.6931471824645996, -std::f64::consts::LN_2);
    let minus_ln2_low = pick(b, 1.904654299957768e-9, -2.3190468138462996e-17);
    let r = b.mul_add(n, minus_ln2_high, x);
    let r = b.mul_add(n, minus_ln2_low, r);
    let q = poly(
        b,
        r,
        &[
            0.4999999344802411,
            0.16666520631470685,
            0.04166838800351872,
            0.008368716905445958,
            0.0013814600604689033,
        ],
        &[
            0.5000000000000011,
            0.16666666666666413,
            0.041666666666530155,
            0.008333333333494463,
            0.0013888888943630851,
            0.00019841269506570939,
            2.48014930981182e-05,
            2.755758638512543e-06,
            2.763024866065372e-07,
            2.500005688945574e-08,
        ],
    );
    // 1 + r is rounded; `lost` is what the rounding took (exact: Dekker's fast two-sum). Without it
    // the rounding of the tail, as large as r, would cost another quarter of an ulp.
    let one = b.constant(1.0);
    let head = b.add(one, r);
    let lost = b.sub(one, head);
    let lost = b.add(lost, r);
    let square = b.mul(r, r);
    let tail = b.mul_add(square, q, lost);
    let power = b.add(head, tail);
    scaled(b, power, scale)
}

/// `2^x`, within 1 ulp.
///
/// As [`exp`], but `r = x - n`, `|r| <= 1/2`, is exact, and `2^r = 1 + r q(r)`, error 2^-29 (degree
/// 6) or 2^-58 (degree 11).
#[inline(always)]
pub fn exp2<B: FloatOps>(b: &mut B, x: B::F) -> B::F {
    let x = between(b, x, (-151.0, 129.0), (-1076.0, 1025.0));
    let one = b.constant(1.0);
    let (n, scale) = round(b, x, one);
    let r = b.sub(x, n);
    let q = poly(
        b,
        r,
        &[
            0.6931472028575775,
            0.24022647913517775,
            0.05550332465218319,
            0.009618437354250563,
            0.0013398876922582888,
            0.00015353367662639675,
        ],
        &[
            std::f64::consts::LN_2,
            0.2402265069591013,
            0.055504108664820084,
            0.009618129107594114,
            0.00133335581467746,
            0.00015403530457120524,
            1.5252733493166203e-05,
            1.3215435277785956e-06,
            1.0178199548907312e-07,
            7.073784071375668e-09,
            4.4347756833598473e-10,
        ],
    );
    let power = b.mul_add(r, q, one);
    scaled(b, power, scale)
}

/// `x` brought between the bounds of its width; NaN stays.
#[inline(always)]
fn between<B: FloatOps>(b: &mut B, x: B::F, narrow: (f64, f64), wide: (f64, f64)) -> B::F {
    let low = pick(b, narrow.0, wide.0);
    let high = pick(b, narrow.1, wide.1);
    let below = b.lt(x, low);
    let x = b.select(below, low, x);
    let above = b.gt(x, high);
    b.select(above, high, x)
}

/// The integer nearest to `x * factor`, as a float and as an integer.
///
/// Adding `1.5 * 2^MANTISSA` leaves a unit in the last place of one, so the sum is rounded to an
/// integer, which stands in the low bits of its image. Unlike a conversion this is defined, and the
/// same everywhere, for a NaN too.
#[inline(always)]
fn round<B: FloatOps>(b: &mut B, x: B::F, factor: B::F) -> (B::F, B::I) {
    let magic = b.constant(1.5 * (1u64 << B::MANTISSA) as f64);
    let sum = b.mul_add(x, factor, magic);
    let n = b.sub(sum, magic);
    let (sum, magic) = (b.bits(sum), b.bits(magic));
    (n, b.int_sub(sum, magic))
}

/// `x * 2^n`, rounded once, for `n` from twice the least to twice the greatest normal exponent.
///
/// `2^n` itself may be out of range, so the factor is split in two halves. The first product is
/// exact because it stays normal, and only the second rounds to a subnormal.
#[inline(always)]
fn scaled<B: FloatOps>(b: &mut B, x: B::F, n: B::I) -> B::F {
    let half = sar(b, n, 1);
    let rest = b.int_sub(n, half);
    let first = power_of_two(b, half);
    let second = power_of_two(b, rest);
    let x = b.mul(x, first);
    b.mul(x, second)
}

#[inline(always)]
fn power_of_two<B: FloatOps>(b: &mut B, n: B::I) -> B::F {
    let bias = b.int(B::BIAS);
    let exponent = b.int_add(n, bias);
    let image = shl(b, exponent, B::MANTISSA);
    b.with_bits(image)
}
