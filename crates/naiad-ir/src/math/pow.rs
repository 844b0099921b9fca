//! Powers.

use super::ops::{flip, sign_bit, two_product};
use super::{FloatOps, exp_parts, log_pair};

/// `x^y`, within 1 ulp, with the special cases of C99's Annex F: `pow(x, 0)` and `pow(1, y)` are 1 even
/// for a NaN; a negative `x` has powers for integers `y` only, negative ones where `y` is odd.
///
/// `e^(y log |x|)` with the logarithm and its product with `y` as sums of two numbers, since the product
/// may be as large as the greatest exponent and its absolute error is the relative one of the power.
#[inline(always)]
pub fn pow<B: FloatOps>(b: &mut B, x: B::F, y: B::F) -> B::F {
    let (zero, half, one) = (b.constant(0.0), b.constant(0.5), b.constant(1.0));
    let (inf, minus_inf) = (b.constant(f64::INFINITY), b.constant(f64::NEG_INFINITY));
    let nan = b.constant(f64::NAN);
    let size = b.abs(x);
    let (high, low) = log_pair(b, size);
    let x_zero = b.eq(size, zero);
    let x_inf = b.eq(size, inf);
    let high = b.select(x_zero, minus_inf, high);
    let high = b.select(x_inf, inf, high);
    let (p, p_low) = two_product(b, y, high);
    let p_low = b.mul_add(y, low, p_low);
    // Far outside, where the low part may be no number, it does not matter.
    let p_size = b.abs(p);
    let far = b.constant(2000.0);
    let inside = b.lt(p_size, far);
    let p_low = b.select(inside, p_low, zero);
    let (head, tail, n) = exp_parts(b, p, Some(p_low));
    let power = b.add(head, tail);
    let power = super::ops::scaled(b, power, n);

    let y_size = b.abs(y);
    let whole = b.trunc(y);
    let is_whole = b.eq(whole, y);
    let halved = b.mul(y, half);
    let halves = b.trunc(halved);
    let is_even = b.eq(halves, halved);
    let sign = sign_bit(b, x);
    let negated = flip(b, power, sign);
    let odd_or_not = b.select(is_even, power, negated);
    let result = b.select(is_whole, odd_or_not, power);
    // A negative finite number to a power that is not whole.
    let of_negative = b.select(is_whole, result, nan);
    let of_negative = b.select(x_inf, result, of_negative);
    let negative = b.lt(x, zero);
    let result = b.select(negative, of_negative, result);

    let sum = b.add(x, y);
    let (x_is_nan, y_is_nan) = (b.ne(x, x), b.ne(y, y));
    let result = b.select(x_is_nan, sum, result);
    let result = b.select(y_is_nan, sum, result);
    let y_inf = b.eq(y_size, inf);
    let x_unit = b.eq(size, one);
    let unit_or = b.select(x_unit, one, result);
    let result = b.select(y_inf, unit_or, result);
    let x_one = b.eq(x, one);
    let result = b.select(x_one, one, result);
    let y_zero = b.eq(y, zero);
    b.select(y_zero, one, result)
}
