//! The tangent, and sine and cosine of half turns.

use super::FloatOps;
use super::ops::{copy_sign, fast_two_sum, flip, pick, poly, sign_bit, two_product};
use super::trig::{finite_or_nan, reduce, wave};

/// `tan x` for `x` in radians, within 2 ulp for every finite `x`; NaN for an infinity.
///
/// After the reduction of [`super::sin`], `tan r = r + r^3 p(r^2)` for `|r| <= pi/4`, error 2^-29 of the
/// cube (7 terms) or 2^-56 (15 terms), kept as a sum of two numbers, into which the low part of `r` goes by the
/// derivative `1 + tan^2`. In odd quadrants the result is `-1 / tan r`, the quotient corrected once.
#[inline(always)]
pub fn tan<B: FloatOps>(b: &mut B, x: B::F) -> B::F {
    let size = b.abs(x);
    let (quadrant, r, r_low) = reduce(b, size);
    let z = b.mul(r, r);
    let p = poly(
        b,
        z,
        &[
            0.33333351494093316,
            0.13332607714037267,
            0.0540658133787542,
            0.021253491937536086,
            0.010906350377596415,
            4.2907068815686904e-06,
            0.004416539100610703,
        ],
        &[
            0.3333333333333338,
            0.13333333333324981,
            0.053968253973077855,
            0.02186948839508409,
            0.008863237982758137,
            0.003592100328040076,
            0.0014560489771825572,
            0.0005888496955294093,
            0.00024379712512001393,
            8.345728473992521e-05,
            6.737999550186124e-05,
            -2.580215735402753e-05,
            4.8751945748707404e-05,
            -2.432003165304727e-05,
            9.806934509532684e-06,
        ],
    );
    let cube = b.mul(r, z);
    let tail = b.mul(cube, p);
    let (head, lost) = fast_two_sum(b, r, tail);
    let one = b.constant(1.0);
    let slope = b.mul_add(head, head, one);
    let low = b.mul_add(r_low, slope, lost);
    let even = b.add(head, low);

    let minus_one = b.constant(-1.0);
    let guess = b.div(minus_one, head);
    // 1 + guess (head + low), from which the correction is guess times it.
    let rest = b.mul_add(guess, head, one);
    let rest = b.mul_add(guess, low, rest);
    let odd = b.mul_add(guess, rest, guess);

    let (unit, zero) = (b.int(1), b.int(0));
    let parity = b.and(quadrant, unit);
    let is_even = b.int_eq(parity, zero);
    let result = b.select(is_even, even, odd);
    let sign = sign_bit(b, x);
    let result = flip(b, result, sign);
    finite_or_nan(b, x, size, result)
}

/// `sin(pi x)`, within 2 ulp; the zero at an integer has the sign of `x`.
#[inline(always)]
pub fn sinpi<B: FloatOps>(b: &mut B, x: B::F) -> B::F {
    let size = b.abs(x);
    let (quadrant, r, r_low) = half_turns(b, size);
    let result = wave(b, quadrant, r, r_low);
    let sign = sign_bit(b, x);
    let result = flip(b, result, sign);
    let zero = b.constant(0.0);
    let signed = copy_sign(b, zero, x);
    let is_zero = b.eq(result, zero);
    let result = b.select(is_zero, signed, result);
    finite_or_nan(b, x, size, result)
}

/// `cos(pi x)`, within 2 ulp; `+0` halfway between integers.
#[inline(always)]
pub fn cospi<B: FloatOps>(b: &mut B, x: B::F) -> B::F {
    let size = b.abs(x);
    let (quadrant, r, r_low) = half_turns(b, size);
    let one = b.int(1);
    let quadrant = b.int_add(quadrant, one);
    let result = wave(b, quadrant, r, r_low);
    // -0 + 0 is 0.
    let zero = b.constant(0.0);
    let result = b.add(result, zero);
    finite_or_nan(b, x, size, result)
}

/// `(q, r, r_low)` with `pi x = (4k + q) pi/2 + r + r_low` and `|r| <= pi/4`, for `x >= 0`: exact up to
/// the product with pi. Only the two low bits of `q` count.
#[inline(always)]
fn half_turns<B: FloatOps>(b: &mut B, x: B::F) -> (B::I, B::F, B::F) {
    // x mod 2: the quotient and the difference are exact.
    let (half, two) = (b.constant(0.5), b.constant(-2.0));
    let turns = b.mul(x, half);
    let turns = b.trunc(turns);
    let part = b.mul_add(two, turns, x);
    // The nearest half, by the sum whose unit in the last place is 1.
    let magic = b.constant(1.5 * (1u64 << B::MANTISSA) as f64);
    let twice = b.add(part, part);
    let sum = b.add(twice, magic);
    let n = b.sub(sum, magic);
    let (sum, magic) = (b.bits(sum), b.bits(magic));
    let quadrant = b.int_sub(sum, magic);
    let minus_half = b.constant(-0.5);
    let rest = b.mul_add(n, minus_half, part);
    let pi_high = pick(b, 3.1415927410125732, std::f64::consts::PI);
    let pi_low = pick(b, -8.742277657347586e-08, 1.2246467991473532e-16);
    let (r, lost) = two_product(b, rest, pi_high);
    (quadrant, r, b.mul_add(rest, pi_low, lost))
}
