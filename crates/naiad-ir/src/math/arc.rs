//! The inverse trigonometric functions.

use super::FloatOps;
use super::ops::{copy_sign, less_product, pick, poly};

/// `k pi / 4` for `k` up to 4, in `f32` and what that leaves.
const QUARTERS: [(f64, f64); 5] = [
    (0.0, 0.0),
    (0.7853981852531433, -2.1855694143368964e-08),
    (1.5707963705062866, -4.371138828673793e-08),
    (2.356194496154785, -5.962440319251527e-09),
    (3.1415927410125732, -8.742277657347586e-08),
];

/// The same in `f64`.
const WIDE_QUARTERS: [(f64, f64); 5] = [
    (0.0, 0.0),
    (std::f64::consts::FRAC_PI_4, 3.061616997868383e-17),
    (std::f64::consts::FRAC_PI_2, 6.123233995736766e-17),
    (2.356194490192345, 9.184850993605148e-17),
    (std::f64::consts::PI, 1.2246467991473532e-16),
];

#[inline(always)]
fn quarters<B: FloatOps>(b: &mut B, k: usize) -> (B::F, B::F) {
    (pick(b, QUARTERS[k].0, WIDE_QUARTERS[k].0), pick(b, QUARTERS[k].1, WIDE_QUARTERS[k].1))
}

/// `atan x`, within 2 ulp.
///
/// A ratio `y / x` of positive numbers is brought to `|t| <= 1/2` by `atan(y/x) = atan t + base`:
///
/// ```text
///   y < x/2        t = y / x              base 0
///   y < 2x         t = (y - x) / (y + x)  base pi/4
///   else           t = -x / y             base pi/2
/// ```
///
/// and `atan t = t + t^3 p(t^2)`, error 2^-27 (5 terms) or 2^-56 (12 terms). The middle difference is
/// exact, by Sterbenz. (The addition theorem is that of Hart and others, "Computer Approximations",
/// 1968.)
#[inline(always)]
pub fn atan<B: FloatOps>(b: &mut B, x: B::F) -> B::F {
    let size = b.abs(x);
    let one = b.constant(1.0);
    let [t, tail, base, base_low] = reduced(b, size, one);
    let rest = b.add(tail, base_low);
    let rest = b.add(t, rest);
    let result = b.add(base, rest);
    copy_sign(b, result, x)
}

/// `t`, `t^3 p(t^2)` and the base in two numbers for the ratio `y / x` of [`atan`].
#[inline(always)]
fn reduced<B: FloatOps>(b: &mut B, y: B::F, x: B::F) -> [B::F; 4] {
    let (half, two) = (b.constant(0.5), b.constant(2.0));
    let low = b.mul(x, half);
    let high = b.mul(x, two);
    let is_low = b.lt(y, low);
    let is_middle = b.lt(y, high);
    let minus_x = b.neg(x);
    let (less, more) = (b.sub(y, x), b.add(y, x));
    let above = b.select(is_middle, less, minus_x);
    let above = b.select(is_low, y, above);
    let below = b.select(is_middle, more, y);
    let below = b.select(is_low, x, below);
    let bases = [0, 1, 2].map(|k| quarters(b, k));
    let base = b.select(is_middle, bases[1].0, bases[2].0);
    let base = b.select(is_low, bases[0].0, base);
    let base_low = b.select(is_middle, bases[1].1, bases[2].1);
    let base_low = b.select(is_low, bases[0].1, base_low);

    let t = b.div(above, below);
    let z = b.mul(t, t);
    let p = poly(
        b,
        z,
        &[
            -0.3333323652404601,
            0.199943115353472,
            -0.14176022882665623,
            0.1016477429865067,
            -0.05140306633329206,
        ],
        &[
            -0.33333333333332993,
            0.199999999999053,
            -0.1428571427656062,
            0.11111110666582387,
            -0.09090896405020231,
            0.0769207623672848,
            -0.06663832683206651,
            0.058584381745375565,
            -0.05122584806983504,
            0.041880281633687615,
            -0.027457954527665637,
            0.010132024240233952,
        ],
    );
    let cube = b.mul(t, z);
    [t, b.mul(cube, p), base, base_low]
}

/// The angle of the point `(x, y)`, within 2 ulp, with the special cases of C99's Annex F.
///
/// As [`atan`] on the sizes; for negative `x` (and `-0`) the result is `(pi - base) - atan t`.
#[inline(always)]
pub fn atan2<B: FloatOps>(b: &mut B, y: B::F, x: B::F) -> B::F {
    let (zero, one) = (b.constant(0.0), b.constant(1.0));
    let inf = b.constant(f64::INFINITY);
    let (across, up) = (b.abs(x), b.abs(y));
    // An infinity is to a finite number as 1 to 0, and to an infinity as 1 to 1.
    let (x_inf, y_inf) = (b.eq(across, inf), b.eq(up, inf));
    let x_part = b.select(y_inf, zero, across);
    let x_part = b.select(x_inf, one, x_part);
    let y_part = b.select(x_inf, zero, up);
    let y_part = b.select(y_inf, one, y_part);
    // The sum of the two must not overflow; what a quarter takes from a small one does not matter
    // beside a large one.
    let limit = b.constant((B::BIAS as f64 - 2.0).exp2());
    let quarter = b.constant(0.25);
    let x_large = b.gt(x_part, limit);
    let factor = b.select(x_large, quarter, one);
    let y_large = b.gt(y_part, limit);
    let factor = b.select(y_large, quarter, factor);
    let x_part = b.mul(x_part, factor);
    let y_part = b.mul(y_part, factor);
    // 0 / 0 is taken as 0 / 1.
    let y_zero = b.eq(y_part, zero);
    let x_part = b.select(y_zero, one, x_part);
    let [t, tail, base, base_low] = reduced(b, y_part, x_part);

    let unit = copy_sign(b, one, x);
    let left = b.lt(unit, zero);
    // The mirrored bases are the multiples 4, 3, 2 of pi/4; the parts of the others tell which.
    let (first, second) = (quarters(b, 1), quarters(b, 2));
    let (third, fourth) = (quarters(b, 3), quarters(b, 4));
    let is_second = b.eq(base, second.0);
    let is_first = b.eq(base, first.0);
    let mirrored = b.select(is_first, third.0, fourth.0);
    let mirrored = b.select(is_second, second.0, mirrored);
    let mirrored_low = b.select(is_first, third.1, fourth.1);
    let mirrored_low = b.select(is_second, second.1, mirrored_low);
    let base_high = b.select(left, mirrored, base);
    let base_low = b.select(left, mirrored_low, base_low);
    let (minus_t, minus_tail) = (b.neg(t), b.neg(tail));
    let t = b.select(left, minus_t, t);
    let tail = b.select(left, minus_tail, tail);

    let rest = b.add(tail, base_low);
    let rest = b.add(t, rest);
    let result = b.add(base_high, rest);
    let result = copy_sign(b, result, y);
    let nan = b.add(x, y);
    let x_is_nan = b.ne(x, x);
    let y_is_nan = b.ne(y, y);
    let result = b.select(x_is_nan, nan, result);
    b.select(y_is_nan, nan, result)
}

/// `asin x`, NaN beyond 1 in size, within 2 ulp.
///
/// Up to 1/2, `x + x^3 p(x^2)`, error 2^-31 of the cube (6 terms) or 2^-58 (13 terms). Above,
/// `pi/2 - 2 asin sqrt((1 - x)/2)`, where `1 - x` is exact and the root is kept in two numbers.
#[inline(always)]
pub fn asin<B: FloatOps>(b: &mut B, x: B::F) -> B::F {
    let (is_small, s, s_low, tail) = half_angle(b, x);
    let small = b.add(s, tail);
    let (right, right_low) = quarters(b, 2);
    let rest = b.add(tail, s_low);
    let rest = b.add(rest, rest);
    let rest = b.sub(right_low, rest);
    let twice = b.add(s, s);
    let rest = b.sub(twice, rest);
    let large = b.sub(right, rest);
    let result = b.select(is_small, small, large);
    copy_sign(b, result, x)
}

/// `acos x`, NaN beyond 1 in size, within 2 ulp.
///
/// From the parts of [`asin`]: `2 asin sqrt((1 - x)/2)` above 1/2, `pi/2 - asin x` between -1/2 and 1/2,
/// and `pi` less the first below.
#[inline(always)]
pub fn acos<B: FloatOps>(b: &mut B, x: B::F) -> B::F {
    let (is_small, s, s_low, tail) = half_angle(b, x);
    let zero = b.constant(0.0);
    let negative = b.lt(x, zero);
    let (right, right_low) = quarters(b, 2);
    let (straight, straight_low) = quarters(b, 4);

    let signed = copy_sign(b, s, x);
    let signed_tail = copy_sign(b, tail, x);
    let rest = b.sub(right_low, signed_tail);
    let rest = b.sub(signed, rest);
    let middle = b.sub(right, rest);

    let twice = b.add(s, s);
    let low = b.add(tail, s_low);
    let low = b.add(low, low);
    let near_one = b.add(twice, low);
    let rest = b.sub(straight_low, low);
    let rest = b.sub(twice, rest);
    let near_minus_one = b.sub(straight, rest);
    let ends = b.select(negative, near_minus_one, near_one);
    b.select(is_small, middle, ends)
}

/// `(|x| <= 1/2, s, s_low, tail)` with `asin(s + s_low) = s + s_low + tail` for `s = |x|`, or
/// `s = sqrt((1 - |x|)/2)` if `|x|` is larger; `tail` is positive.
#[inline(always)]
fn half_angle<B: FloatOps>(b: &mut B, x: B::F) -> (B::M, B::F, B::F, B::F) {
    let size = b.abs(x);
    let (zero, half, one) = (b.constant(0.0), b.constant(0.5), b.constant(1.0));
    let is_small = b.le(size, half);
    let square = b.mul(size, size);
    let rest = b.sub(one, size);
    let rest = b.mul(rest, half);
    let z = b.select(is_small, square, rest);
    let root = b.sqrt(rest);
    let lost = less_product(b, root, root, rest);
    let twice = b.add(root, root);
    let root_low = b.div(lost, twice);
    let at_end = b.eq(rest, zero);
    let root_low = b.select(at_end, zero, root_low);
    let s = b.select(is_small, size, root);
    let s_low = b.select(is_small, zero, root_low);
    let p = poly(
        b,
        z,
        &[
            0.16666659874583797,
            0.07500510952919986,
            0.044515702532943534,
            0.03181779204641132,
            0.014401874595637904,
            0.03756625754753887,
        ],
        &[
            0.16666666666666763,
            0.07499999999970294,
            0.044642857175092254,
            0.030381942684907185,
            0.022372215626022717,
            0.017351600670048484,
            0.01398095498087568,
            0.011397825121144655,
            0.010786274852303773,
            0.003683923897056127,
            0.021761537394655455,
            -0.021074765568512455,
            0.032675458269457,
        ],
    );
    let cube = b.mul(s, z);
    (is_small, s, s_low, b.mul(cube, p))
}
