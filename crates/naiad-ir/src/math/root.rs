//! The cube root and the hypotenuse.

use super::FloatOps;
use super::ops::{
    copy_sign, fast_two_sum, less_product, pick, poly_of, power_of_two, shl, shr, two_product,
};

/// The cube root, within 1 ulp.
///
/// `|x| = 2^(3q) a` with `a` in `[1, 8)`. A quartic gives the root of the significand to 2^-16, a step
/// of Halley's iteration cubes that error, and a last step of Newton's, its residual formed without
/// error, leaves little but the last rounding.
#[inline(always)]
pub fn cbrt<B: FloatOps>(b: &mut B, x: B::F) -> B::F {
    let size = b.abs(x);
    // A subnormal is multiplied by a cube of a power of two.
    let lift = if B::BITS == 32 { 24 } else { 54 };
    let least = b.constant((1.0 - B::BIAS as f64).exp2());
    let subnormal = b.lt(size, least);
    let factor = b.constant(f64::from(lift).exp2());
    let lifted = b.mul(size, factor);
    let normal = b.select(subnormal, lifted, size);
    let zero = b.int(0);
    let correction = b.int(i64::from(lift / 3));
    let correction = b.select_int(subnormal, correction, zero);

    let image = b.bits(normal);
    let biased = shr(b, image, B::MANTISSA);
    let exponent = shl(b, biased, B::MANTISSA);
    let mantissa = b.int_sub(image, exponent);
    let one = b.constant(1.0);
    let one = b.bits(one);
    let m = b.or(mantissa, one);
    let m = b.with_bits(m);
    // biased + up is a multiple of 3 where the exponent is; a third by a product, exact up to 2^15.
    let (up, offset) = if B::BITS == 32 { (2, 43) } else { (0, 341) };
    let up = b.int(up);
    let shifted = b.int_add(biased, up);
    let third = b.int(0xaaab);
    let third = b.int_mul(shifted, third);
    let third = shr(b, third, 17);
    let three = b.int(3);
    let whole = b.int_mul(third, three);
    let rest = b.int_sub(shifted, whole);
    let offset = b.int(offset);
    let q = b.int_sub(third, offset);
    let q = b.int_sub(q, correction);

    let (unit, two) = (b.int(1), b.int(2));
    let is_one = b.int_eq(rest, unit);
    let is_two = b.int_eq(rest, two);
    let (f1, f2, f4) = (b.constant(1.0), b.constant(2.0), b.constant(4.0));
    let (root2, root4) = (b.constant(1.2599210498948732), b.constant(1.5874010519681994));
    let by = b.select(is_two, f4, f1);
    let by = b.select(is_one, f2, by);
    let root_by = b.select(is_two, root4, f1);
    let root_by = b.select(is_one, root2, root_by);
    let a = b.mul(m, by);
    let y = poly_of(
        b,
        m,
        &[
            0.5069741984975284,
            0.7181686659088289,
            -0.30062691282616855,
            0.08609829199447562,
            -0.010605047001706306,
        ],
    );
    let y = b.mul(y, root_by);

    let square = b.mul(y, y);
    let cube = b.mul(square, y);
    let twice = b.add(a, a);
    let above = b.add(cube, twice);
    let below = b.add(cube, cube);
    let below = b.add(below, a);
    let ratio = b.div(above, below);
    let y = b.mul(y, ratio);

    let (square, square_low) = two_product(b, y, y);
    let rest = less_product(b, square, y, a);
    let rest = less_product(b, square_low, y, rest);
    let three = b.constant(3.0);
    let slope = b.mul(square, three);
    let step = b.div(rest, slope);
    let y = b.add(y, step);
    let unit = power_of_two(b, q);
    let result = b.mul(y, unit);

    let (nothing, inf) = (b.constant(0.0), b.constant(f64::INFINITY));
    let finite = b.lt(size, inf);
    let result = b.select(finite, result, size);
    let is_zero = b.eq(size, nothing);
    let result = b.select(is_zero, size, result);
    copy_sign(b, result, x)
}

/// `sqrt(x^2 + y^2)` without undue overflow, within 1 ulp; infinite if either is, even beside a NaN.
///
/// The arguments are scaled by a power of two where a square would leave the range, and the sum of the
/// squares and its root are kept in two numbers each.
#[inline(always)]
pub fn hypot<B: FloatOps>(b: &mut B, x: B::F, y: B::F) -> B::F {
    let (x, y) = (b.abs(x), b.abs(y));
    let x_less = b.lt(x, y);
    let high = b.select(x_less, y, x);
    let low = b.select(x_less, x, y);
    let (one, zero) = (b.constant(1.0), b.constant(0.0));
    let top = pick(b, 60f64.exp2(), 500f64.exp2());
    let bottom = pick(b, (-30f64).exp2(), (-400f64).exp2());
    let down = pick(b, (-70f64).exp2(), (-600f64).exp2());
    let down_again = pick(b, 70f64.exp2(), 600f64.exp2());
    let up = pick(b, 90f64.exp2(), 700f64.exp2());
    let up_again = pick(b, (-90f64).exp2(), (-700f64).exp2());
    let is_high = b.gt(high, top);
    let is_low = b.lt(high, bottom);
    let by = b.select(is_high, down, one);
    let by = b.select(is_low, up, by);
    let back = b.select(is_high, down_again, one);
    let back = b.select(is_low, up_again, back);
    let (h, l) = (b.mul(high, by), b.mul(low, by));
    let (square, square_low) = two_product(b, h, h);
    let (other, other_low) = two_product(b, l, l);
    let (sum, lost) = fast_two_sum(b, square, other);
    let lost = b.add(lost, square_low);
    let lost = b.add(lost, other_low);
    let root = b.sqrt(sum);
    let rest = less_product(b, root, root, sum);
    let rest = b.add(rest, lost);
    let twice = b.add(root, root);
    let step = b.div(rest, twice);
    let better = b.add(root, step);
    let is_zero = b.eq(sum, zero);
    let better = b.select(is_zero, zero, better);
    let result = b.mul(better, back);
    let nan = b.add(x, y);
    let ordered = b.eq(nan, nan);
    let result = b.select(ordered, result, nan);
    let inf = b.constant(f64::INFINITY);
    let x_inf = b.eq(x, inf);
    let y_inf = b.eq(y, inf);
    let result = b.select(x_inf, inf, result);
    b.select(y_inf, inf, result)
}
