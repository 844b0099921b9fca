//! Functions of a few exact or correctly rounded operations.

use super::FloatOps;

/// `1 / sqrt(x)`: two correctly rounded steps, hence within 1.5 ulp.
#[inline(always)]
pub fn rsqrt<B: FloatOps>(b: &mut B, x: B::F) -> B::F {
    let one = b.constant(1.0);
    let root = b.sqrt(x);
    b.div(one, root)
}

/// `x - y * trunc(x / y)` with one fused step, as NVIDIA's `%` on floats. Where the quotient is
/// large this is not an exact `fmod`. `x` if `y` is infinite.
#[inline(always)]
pub fn rem<B: FloatOps>(b: &mut B, x: B::F, y: B::F) -> B::F {
    let quotient = b.div(x, y);
    let whole = b.trunc(quotient);
    let minus_whole = b.neg(whole);
    let rest = b.mul_add(minus_whole, y, x);
    let inf = b.constant(f64::INFINITY);
    let size = b.abs(y);
    let y_is_inf = b.eq(size, inf);
    b.select(y_is_inf, x, rest)
}

/// The smaller; of a NaN and a number the number; `-0 < +0`.
#[inline(always)]
pub fn min<B: FloatOps>(b: &mut B, x: B::F, y: B::F) -> B::F {
    let smaller = ordered_min(b, x, y);
    let y_is_nan = b.ne(y, y);
    b.select(y_is_nan, x, smaller)
}

/// The larger; of a NaN and a number the number; `-0 < +0`.
#[inline(always)]
pub fn max<B: FloatOps>(b: &mut B, x: B::F, y: B::F) -> B::F {
    let larger = ordered_max(b, x, y);
    let y_is_nan = b.ne(y, y);
    b.select(y_is_nan, x, larger)
}

/// The smaller, NaN if either is NaN; `-0 < +0`.
#[inline(always)]
pub fn min_nan<B: FloatOps>(b: &mut B, x: B::F, y: B::F) -> B::F {
    let smaller = ordered_min(b, x, y);
    or_nan(b, x, y, smaller)
}

/// The larger, NaN if either is NaN; `-0 < +0`.
#[inline(always)]
pub fn max_nan<B: FloatOps>(b: &mut B, x: B::F, y: B::F) -> B::F {
    let larger = ordered_max(b, x, y);
    or_nan(b, x, y, larger)
}

/// `x * y + z` where the product is exact, rounded to odd: of the two numbers around a sum that is
/// none, the one with an odd significand. (Boldo and Melquiond, "Emulation of FMA and correctly
/// rounded sums: proved algorithms using rounding to odd", 2008.) A sum with its error by Knuth's
/// two-sum; where that lies on the other side of an even result, the result moves there.
#[inline(always)]
pub fn fma_odd<B: FloatOps>(b: &mut B, x: B::F, y: B::F, z: B::F) -> B::F {
    let product = b.mul(x, y);
    let sum = b.add(product, z);
    let from_z = b.sub(sum, product);
    let from_product = b.sub(sum, from_z);
    let lost_z = b.sub(z, from_z);
    let lost_product = b.sub(product, from_product);
    let lost = b.add(lost_product, lost_z);

    let (zero, one, none) = (b.constant(0.0), b.int(1), b.int(0));
    let image = b.bits(sum);
    let (up, down) = (b.lt(zero, lost), b.lt(lost, zero));
    let (away, toward) = (b.int(1), b.int(-1));
    let positive = b.le(zero, sum);
    // The image of a negative number grows as the number falls.
    let (if_up, if_down) =
        (b.select_int(positive, away, toward), b.select_int(positive, toward, away));
    let step = b.select_int(down, if_down, none);
    let step = b.select_int(up, if_up, step);
    let odd = b.and(image, one);
    let is_odd = b.int_eq(odd, one);
    let step = b.select_int(is_odd, none, step);
    let moved = b.int_add(image, step);
    b.with_bits(moved)
}

/// `min(max(x, low), high)`: a NaN `x` gives `low`, as on NVIDIA.
#[inline(always)]
pub fn clamp<B: FloatOps>(b: &mut B, x: B::F, low: B::F, high: B::F) -> B::F {
    let raised = max(b, x, low);
    min(b, raised, high)
}

/// The smaller of two numbers, and `y` if either is NaN. Equal operands differ in bits only where
/// they are zeros, and then or-ing the images gives `-0` if there is one.
#[inline(always)]
fn ordered_min<B: FloatOps>(b: &mut B, x: B::F, y: B::F) -> B::F {
    let (xb, yb) = (b.bits(x), b.bits(y));
    let either = b.or(xb, yb);
    let either = b.with_bits(either);
    let less = b.lt(x, y);
    let picked = b.select(less, x, y);
    let equal = b.eq(x, y);
    b.select(equal, either, picked)
}

/// The counterpart of [`ordered_min`]: and-ing the images of two zeros gives `+0` if there is one.
#[inline(always)]
fn ordered_max<B: FloatOps>(b: &mut B, x: B::F, y: B::F) -> B::F {
    let (xb, yb) = (b.bits(x), b.bits(y));
    let both = b.and(xb, yb);
    let both = b.with_bits(both);
    let more = b.gt(x, y);
    let picked = b.select(more, x, y);
    let equal = b.eq(x, y);
    b.select(equal, both, picked)
}

#[inline(always)]
fn or_nan<B: FloatOps>(b: &mut B, x: B::F, y: B::F, number: B::F) -> B::F {
    let nan = b.add(x, y);
    let x_is_nan = b.ne(x, x);
    let y_is_nan = b.ne(y, y);
    let result = b.select(x_is_nan, nan, number);
    b.select(y_is_nan, nan, result)
}
