//! The hyperbolic functions but `tanh`, and their inverses.

use super::ops::{copy_sign, fast_two_sum, less_product, poly, two_product, two_sum};
use super::{FloatOps, exp_shifted, log1p_sum};

/// `sinh x`, within 2 ulp.
///
/// Below 1 `x + x^3 p(x^2)`, error 2^-25 of the cube (3 terms) or 2^-56 (7 terms). Above, with
/// `E = e^|x| / 2`, which overflows only where the result does, `E - 1/(4E)`.
#[inline(always)]
pub fn sinh<B: FloatOps>(b: &mut B, x: B::F) -> B::F {
    let size = b.abs(x);
    let z = b.mul(size, size);
    let p = poly(
        b,
        z,
        &[0.16666718224327576, 0.008330212075979618, 0.0002037736347862986],
        &[
            0.16666666666666669,
            0.008333333333333139,
            0.00019841269841437654,
            2.7557319155340915e-06,
            2.5052123398450672e-08,
            1.6057240318987106e-10,
            7.759313550554788e-13,
        ],
    );
    let cube = b.mul(z, p);
    let small = b.mul_add(cube, size, size);
    let (half, rest) = halves(b, size);
    let large = b.sub(half, rest);
    let one = b.constant(1.0);
    let is_small = b.lt(size, one);
    let result = b.select(is_small, small, large);
    copy_sign(b, result, x)
}

/// `cosh x`, within 2 ulp: `E + 1/(4E)` with `E` as in [`sinh`].
#[inline(always)]
pub fn cosh<B: FloatOps>(b: &mut B, x: B::F) -> B::F {
    let size = b.abs(x);
    let (half, rest) = halves(b, size);
    b.add(half, rest)
}

/// `e^x / 2` and `e^-x / 2` for `x >= 0`.
#[inline(always)]
fn halves<B: FloatOps>(b: &mut B, x: B::F) -> (B::F, B::F) {
    let half = exp_shifted(b, x, -1);
    let quarter = b.constant(0.25);
    (half, b.div(quarter, half))
}

/// The inverse of [`sinh`], within 2 ulp.
///
/// `log(1 + (x + (sqrt(x^2 + 1) - 1)))`, the difference as `x^2 / (1 + sqrt(x^2 + 1))`, which does not
/// cancel; the outer sum is kept in two numbers. From `2^(MANTISSA + 4)` on it is `log(1 + x) + ln 2`.
#[inline(always)]
pub fn asinh<B: FloatOps>(b: &mut B, x: B::F) -> B::F {
    let size = b.abs(x);
    let (zero, one) = (b.constant(0.0), b.constant(1.0));
    let square = b.mul(size, size);
    let sum = b.add(square, one);
    let root = b.sqrt(sum);
    let below = b.add(one, root);
    let excess = b.div(square, below);
    let (a, a_low) = fast_two_sum(b, size, excess);
    let most = b.constant((1u64 << (B::MANTISSA + 4)) as f64);
    let big = b.gt(size, most);
    let a = b.select(big, size, a);
    let a_low = b.select(big, zero, a_low);
    let doublings = b.select(big, one, zero);
    let result = log1p_sum(b, a, Some(a_low), Some(doublings));
    let result = keep_unless_finite(b, size, result);
    copy_sign(b, result, x)
}

/// The inverse of [`cosh`], NaN below 1, within 2 ulp.
///
/// With `t = x - 1`, `log(1 + (t + sqrt(t^2 + 2t)))`; radicand, root and sum are kept in two numbers
/// each. Large arguments as in [`asinh`].
#[inline(always)]
pub fn acosh<B: FloatOps>(b: &mut B, x: B::F) -> B::F {
    let (zero, one) = (b.constant(0.0), b.constant(1.0));
    let t = b.sub(x, one);
    let (square, square_low) = two_product(b, t, t);
    let twice = b.add(t, t);
    let (p, p_low) = two_sum(b, twice, square);
    let p_low = b.add(p_low, square_low);
    let root = b.sqrt(p);
    let rest = less_product(b, root, root, p);
    let rest = b.add(rest, p_low);
    let twice_root = b.add(root, root);
    let root_low = b.div(rest, twice_root);
    let none = b.eq(p, zero);
    let root_low = b.select(none, zero, root_low);
    let (a, a_low) = fast_two_sum(b, root, t);
    let a_low = b.add(a_low, root_low);
    let most = b.constant((1u64 << (B::MANTISSA + 4)) as f64);
    let big = b.gt(x, most);
    let a = b.select(big, x, a);
    let a_low = b.select(big, zero, a_low);
    let doublings = b.select(big, one, zero);
    let result = log1p_sum(b, a, Some(a_low), Some(doublings));
    let result = keep_unless_finite(b, x, result);
    let outside = b.lt(x, one);
    let nan = b.constant(f64::NAN);
    b.select(outside, nan, result)
}

/// The inverse of the hyperbolic tangent, infinite at 1 and -1, NaN beyond, within 2 ulp.
///
/// `log(1 + 2x / (1 - x)) / 2`, the quotient kept in two numbers.
#[inline(always)]
pub fn atanh<B: FloatOps>(b: &mut B, x: B::F) -> B::F {
    let size = b.abs(x);
    let one = b.constant(1.0);
    let minus = b.neg(size);
    let (below, below_low) = fast_two_sum(b, one, minus);
    let twice = b.add(size, size);
    let a = b.div(twice, below);
    let rest = less_product(b, a, below, twice);
    let rest = less_product(b, a, below_low, rest);
    let a_low = b.div(rest, below);
    let result = log1p_sum(b, a, Some(a_low), None);
    let half = b.constant(0.5);
    let result = b.mul(result, half);
    let (inf, nan) = (b.constant(f64::INFINITY), b.constant(f64::NAN));
    let inside = b.lt(size, one);
    let at_end = b.eq(size, one);
    let beyond = b.select(at_end, inf, nan);
    let result = b.select(inside, result, beyond);
    copy_sign(b, result, x)
}

/// The result where `x` is finite, else `x`.
#[inline(always)]
fn keep_unless_finite<B: FloatOps>(b: &mut B, x: B::F, result: B::F) -> B::F {
    let inf = b.constant(f64::INFINITY);
    let finite = b.lt(x, inf);
    b.select(finite, result, x)
}
