//! The exponential functions.

use super::FloatOps;
use super::ops::{fast_two_sum, pick, poly, power_of_two, scaled, two_product, two_sum};

/// `e^x`, within 1 ulp.
///
/// Cody and Waite, "Software Manual for the Elementary Functions" (1980): with `n` the integer
/// nearest to `x / ln 2` and `r = x - n ln 2`, `|r| <= 0.3466`, `e^x = 2^n e^r`. `ln 2` is split in
/// two, and each product is fused, so `r` is off by little more than its own rounding. The
/// polynomial is `e^r = 1 + r + r^2 q(r)`, error 2^-28 (degree 6) or 2^-58 (degree 11).
#[inline(always)]
pub fn exp<B: FloatOps>(b: &mut B, x: B::F) -> B::F {
    let (head, tail, scale) = exp_parts(b, x, None);
    let power = b.add(head, tail);
    scaled(b, power, scale)
}

/// `(head, tail, n)` with `e^(x + low) = 2^n (head + tail)`: the parts of [`exp`] before its last
/// rounding. `low` is what the rounding of `x` took.
#[inline(always)]
pub(super) fn exp_parts<B: FloatOps>(b: &mut B, x: B::F, low: Option<B::F>) -> (B::F, B::F, B::I) {
    // Beyond these bounds the result is 0 or inf anyway; inside them `2^n` can be built from two
    // normal factors. Comparing keeps a NaN.
    let x = between(b, x, (-105.0, 92.0), (-746.0, 720.0));
    let reciprocal = b.constant(std::f64::consts::LOG2_E);
    let (n, scale) = round(b, x, reciprocal);
    let minus_ln2_high = pick(b, -0.6931471824645996, -std::f64::consts::LN_2);
    let minus_ln2_low = pick(b, 1.904654299957768e-9, -2.3190468138462996e-17);
    let r = b.mul_add(n, minus_ln2_high, x);
    let r = b.mul_add(n, minus_ln2_low, r);
    let (r, low) = match low {
        Some(low) => {
            let (r, low) = two_sum(b, r, low);
            (r, Some(low))
        }
        None => (r, None),
    };
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
    let tail = match low {
        Some(low) => b.mul_add(low, head, tail),
        None => tail,
    };
    (head, tail, scale)
}

/// `e^x * 2^by`, with one rounding at the end, so that the power itself may overflow.
#[inline(always)]
pub(super) fn exp_shifted<B: FloatOps>(b: &mut B, x: B::F, by: i64) -> B::F {
    let (head, tail, n) = exp_parts(b, x, None);
    let power = b.add(head, tail);
    let by = b.int(by);
    let n = b.int_add(n, by);
    scaled(b, power, n)
}

/// `e^x - 1`, within 2 ulp.
///
/// With `n` and `r` as in [`exp`], `(2^n - 1) + 2^n (r + r^2 q(r))`, error of the polynomial relative
/// to `r` 2^-26 (5 terms) or 2^-60 (11 terms). All of it is halved, since `2^n` may overflow where the
/// result does not.
#[inline(always)]
pub fn expm1<B: FloatOps>(b: &mut B, x: B::F) -> B::F {
    // Below the lower bound the result is -1 to the last place, at the upper one it overflows.
    let near = between(b, x, (-30.0, 89.0), (-60.0, 710.0));
    let reciprocal = b.constant(std::f64::consts::LOG2_E);
    let (n, scale) = round(b, near, reciprocal);
    let minus_ln2_high = pick(b, -0.6931471824645996, -std::f64::consts::LN_2);
    let minus_ln2_low = pick(b, 1.904654299957768e-9, -2.3190468138462996e-17);
    let r = b.mul_add(n, minus_ln2_high, near);
    let r = b.mul_add(n, minus_ln2_low, r);
    let q = poly(
        b,
        r,
        &[
            0.500000006096783,
            0.16666542838986254,
            0.04166628649329428,
            0.008366607998571907,
            0.0013946150712757595,
        ],
        &[
            0.5,
            0.16666666666666677,
            0.0416666666666667,
            0.008333333333321582,
            0.0013888888888866717,
            0.000198412698862607,
            2.4801587360811964e-05,
            2.7557244065303353e-06,
            2.7557242523370124e-07,
            2.510908986213648e-08,
            2.092452055012148e-09,
        ],
    );
    let square = b.mul(r, r);
    let less_one = b.mul_add(square, q, r);

    let one_int = b.int(1);
    let half_scale = b.int_sub(scale, one_int);
    let half_power = power_of_two(b, half_scale);
    let half = b.constant(0.5);
    let whole = b.sub(half_power, half);
    let sum = b.mul_add(half_power, less_one, whole);
    let large = b.add(sum, sum);
    let zero = b.int(0);
    let is_small = b.int_eq(scale, zero);
    // Without a reduction the sum would only lose the bits of a subnormal.
    let result = b.select(is_small, less_one, large);
    let nothing = b.constant(0.0);
    let is_zero = b.eq(x, nothing);
    let result = b.select(is_zero, x, result);
    let finite = b.constant(f64::INFINITY);
    let finite = b.lt(x, finite);
    b.select(finite, result, x)
}

/// `10^x`, within 1 ulp.
///
/// As [`exp`], with `r = x - n log10 2`, `|r| <= 0.151`, and `10^r = 1 + r ln 10 + r^2 q(r)`, error
/// 2^-28 (5 terms) or 2^-57 (10 terms). The product with `ln 10` is kept as a sum of two numbers.
#[inline(always)]
pub fn exp10<B: FloatOps>(b: &mut B, x: B::F) -> B::F {
    let x = between(b, x, (-46.0, 39.0), (-325.0, 309.0));
    let reciprocal = b.constant(std::f64::consts::LOG2_10);
    let (n, scale) = round(b, x, reciprocal);
    let minus_high = pick(b, -0.3010300099849701, -std::f64::consts::LOG10_2);
    let minus_low = pick(b, 1.432098883924482e-08, 2.8037281277851704e-18);
    let r = b.mul_add(n, minus_high, x);
    let r = b.mul_add(n, minus_low, r);
    let q = poly(
        b,
        r,
        &[
            2.650949104946301,
            2.0346605147984156,
            1.1712422813507126,
            0.5416862674016288,
            0.20791162895420948,
        ],
        &[
            2.650949055239206,
            2.03467859229348,
            1.1712551489080019,
            0.539382929193916,
            0.206995849565301,
            0.06808936533298933,
            0.019597617566876672,
            0.005013910221809913,
            0.001157600955078702,
            0.00024229924193585405,
        ],
    );
    let ln10_high = pick(b, 2.3025851249694824, std::f64::consts::LN_10);
    let ln10_low = pick(b, -3.1975435632602967e-08, -2.1707562233822494e-16);
    let (linear, error) = two_product(b, r, ln10_high);
    let error = b.mul_add(r, ln10_low, error);
    let one = b.constant(1.0);
    let (head, lost) = fast_two_sum(b, one, linear);
    let lost = b.add(lost, error);
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
