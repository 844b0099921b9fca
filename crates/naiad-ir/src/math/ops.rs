//! The operations that elementary functions are made of.

/// The operations on one floating-point width, and on integers and masks of the same width.
///
/// `F` is a float, `I` an integer of as many bits, `M` the outcome of a comparison. A method either
/// computes (host) or records (builder), which is why it takes `&mut self` and why there is no way
/// to look at a value. Arithmetic is IEEE 754 with round to nearest even and with subnormals;
/// integers wrap. Payload and sign of a NaN result are unspecified.
pub trait FloatOps {
    type F: Copy;
    type I: Copy;
    type M: Copy;

    /// Width of `F` and `I`: 32 or 64.
    const BITS: u32;

    /// Bits of the significand that are stored: 23 or 52.
    const MANTISSA: u32 = if Self::BITS == 32 { 23 } else { 52 };

    /// Bias of the exponent: 127 or 1023.
    const BIAS: i64 = if Self::BITS == 32 { 127 } else { 1023 };

    /// The constant, rounded to the width.
    fn constant(&mut self, value: f64) -> Self::F;
    /// The constant, wrapped to the width.
    fn int(&mut self, value: i64) -> Self::I;

    fn add(&mut self, x: Self::F, y: Self::F) -> Self::F;
    fn sub(&mut self, x: Self::F, y: Self::F) -> Self::F;
    fn mul(&mut self, x: Self::F, y: Self::F) -> Self::F;
    fn div(&mut self, x: Self::F, y: Self::F) -> Self::F;
    /// `x * y + z` with one rounding.
    fn mul_add(&mut self, x: Self::F, y: Self::F, z: Self::F) -> Self::F;
    fn neg(&mut self, x: Self::F) -> Self::F;
    fn abs(&mut self, x: Self::F) -> Self::F;
    /// Correctly rounded.
    fn sqrt(&mut self, x: Self::F) -> Self::F;
    fn floor(&mut self, x: Self::F) -> Self::F;
    fn ceil(&mut self, x: Self::F) -> Self::F;
    fn trunc(&mut self, x: Self::F) -> Self::F;

    /// `x == y`, false if either is NaN.
    fn eq(&mut self, x: Self::F, y: Self::F) -> Self::M;
    /// `x != y`, true if either is NaN.
    fn ne(&mut self, x: Self::F, y: Self::F) -> Self::M;
    /// `x < y`, false if either is NaN.
    fn lt(&mut self, x: Self::F, y: Self::F) -> Self::M;
    /// `x <= y`, false if either is NaN.
    fn le(&mut self, x: Self::F, y: Self::F) -> Self::M;

    /// `x > y`, false if either is NaN.
    #[inline(always)]
    fn gt(&mut self, x: Self::F, y: Self::F) -> Self::M {
        self.lt(y, x)
    }

    /// `x >= y`, false if either is NaN.
    #[inline(always)]
    fn ge(&mut self, x: Self::F, y: Self::F) -> Self::M {
        self.le(y, x)
    }

    /// `x` where the mask holds, else `y`.
    fn select(&mut self, mask: Self::M, x: Self::F, y: Self::F) -> Self::F;
    /// `x` where the mask holds, else `y`.
    fn select_int(&mut self, mask: Self::M, x: Self::I, y: Self::I) -> Self::I;

    /// The bit image.
    fn bits(&mut self, x: Self::F) -> Self::I;
    /// The float with this bit image.
    fn with_bits(&mut self, x: Self::I) -> Self::F;
    /// The nearest float to a signed integer, ties to even.
    fn to_float(&mut self, x: Self::I) -> Self::F;

    fn int_add(&mut self, x: Self::I, y: Self::I) -> Self::I;
    fn int_sub(&mut self, x: Self::I, y: Self::I) -> Self::I;
    /// Low half of the product.
    fn int_mul(&mut self, x: Self::I, y: Self::I) -> Self::I;
    /// High half of the unsigned product.
    fn umulhi(&mut self, x: Self::I, y: Self::I) -> Self::I;
    fn and(&mut self, x: Self::I, y: Self::I) -> Self::I;
    fn or(&mut self, x: Self::I, y: Self::I) -> Self::I;
    fn xor(&mut self, x: Self::I, y: Self::I) -> Self::I;
    /// Shift left; the caller keeps `0 <= by < BITS`, and a host takes `by` modulo `BITS`.
    fn shl(&mut self, x: Self::I, by: Self::I) -> Self::I;
    /// Logical shift right, with `by` as in [`FloatOps::shl`].
    fn shr(&mut self, x: Self::I, by: Self::I) -> Self::I;
    /// Arithmetic shift right, with `by` as in [`FloatOps::shl`].
    fn sar(&mut self, x: Self::I, by: Self::I) -> Self::I;
    /// `x == y`.
    fn int_eq(&mut self, x: Self::I, y: Self::I) -> Self::M;
    /// `x < y` as unsigned integers.
    fn ult(&mut self, x: Self::I, y: Self::I) -> Self::M;
}

// Idioms that the functions share. They are free functions so that an implementor of `FloatOps`
// cannot give them another meaning.

/// The polynomial with ascending coefficients at `x`, by Horner's scheme: `wide` for 64 bits, else
/// `narrow`.
#[inline(always)]
pub(super) fn poly<B: FloatOps>(b: &mut B, x: B::F, narrow: &[f64], wide: &[f64]) -> B::F {
    poly_of(b, x, if B::BITS == 32 { narrow } else { wide })
}

/// [`poly`] with the same coefficients in either width.
#[inline(always)]
pub(super) fn poly_of<B: FloatOps>(b: &mut B, x: B::F, coefficients: &[f64]) -> B::F {
    let (last, rest) = coefficients.split_last().unwrap_or((&0.0, &[]));
    let mut sum = b.constant(*last);
    for &c in rest.iter().rev() {
        let c = b.constant(c);
        sum = b.mul_add(sum, x, c);
    }
    sum
}

/// The polynomial with ascending coefficients at `x`: the ones or, where the mask does not hold, the
/// others, of which there are as many.
#[inline(always)]
pub(super) fn either_poly<B: FloatOps>(
    b: &mut B,
    mask: B::M,
    x: B::F,
    ones: &[f64],
    others: &[f64],
) -> B::F {
    debug_assert_eq!(ones.len(), others.len());
    let mut sum = b.constant(0.0);
    for (&c, &d) in ones.iter().zip(others).rev() {
        let (c, d) = (b.constant(c), b.constant(d));
        let c = b.select(mask, c, d);
        sum = b.mul_add(sum, x, c);
    }
    sum
}

/// A constant that depends on the width.
#[inline(always)]
pub(super) fn pick<B: FloatOps>(b: &mut B, narrow: f64, wide: f64) -> B::F {
    b.constant(if B::BITS == 32 { narrow } else { wide })
}

/// The magnitude of `x` with the sign of `sign`.
#[inline(always)]
pub(super) fn copy_sign<B: FloatOps>(b: &mut B, x: B::F, sign: B::F) -> B::F {
    let mask = b.int(1 << (B::BITS - 1));
    let magnitude = b.abs(x);
    let magnitude = b.bits(magnitude);
    let sign = b.bits(sign);
    let sign = b.and(sign, mask);
    let both = b.or(magnitude, sign);
    b.with_bits(both)
}

/// `x << by` for a constant shift.
#[inline(always)]
pub(super) fn shl<B: FloatOps>(b: &mut B, x: B::I, by: u32) -> B::I {
    let by = b.int(i64::from(by));
    b.shl(x, by)
}

/// `x >> by`, logical, for a constant shift.
#[inline(always)]
pub(super) fn shr<B: FloatOps>(b: &mut B, x: B::I, by: u32) -> B::I {
    let by = b.int(i64::from(by));
    b.shr(x, by)
}

/// `x >> by`, arithmetic, for a constant shift.
#[inline(always)]
pub(super) fn sar<B: FloatOps>(b: &mut B, x: B::I, by: u32) -> B::I {
    let by = b.int(i64::from(by));
    b.sar(x, by)
}

/// `z - x * y` with one rounding.
#[inline(always)]
pub(super) fn less_product<B: FloatOps>(b: &mut B, x: B::F, y: B::F, z: B::F) -> B::F {
    let minus = b.neg(x);
    b.mul_add(minus, y, z)
}

/// `x + y` as the rounded sum and what the rounding took, exactly (Knuth).
#[inline(always)]
pub(super) fn two_sum<B: FloatOps>(b: &mut B, x: B::F, y: B::F) -> (B::F, B::F) {
    let sum = b.add(x, y);
    let of_y = b.sub(sum, x);
    let of_x = b.sub(sum, of_y);
    let (lost_x, lost_y) = (b.sub(x, of_x), b.sub(y, of_y));
    (sum, b.add(lost_x, lost_y))
}

/// [`two_sum`] where `x` is 0 or not smaller in size than `y` (Dekker).
#[inline(always)]
pub(super) fn fast_two_sum<B: FloatOps>(b: &mut B, x: B::F, y: B::F) -> (B::F, B::F) {
    let sum = b.add(x, y);
    let of_y = b.sub(sum, x);
    (sum, b.sub(y, of_y))
}

/// `x * y` as the rounded product and what the rounding took, exactly but for underflow.
#[inline(always)]
pub(super) fn two_product<B: FloatOps>(b: &mut B, x: B::F, y: B::F) -> (B::F, B::F) {
    let product = b.mul(x, y);
    let minus = b.neg(product);
    (product, b.mul_add(x, y, minus))
}

/// `x` with its sign flipped where the sign bit of `sign`, the only one that may be set, is.
#[inline(always)]
pub(super) fn flip<B: FloatOps>(b: &mut B, x: B::F, sign: B::I) -> B::F {
    let image = b.bits(x);
    let image = b.xor(image, sign);
    b.with_bits(image)
}

/// The sign bit of `x`, alone.
#[inline(always)]
pub(super) fn sign_bit<B: FloatOps>(b: &mut B, x: B::F) -> B::I {
    let image = b.bits(x);
    let mask = b.int(1 << (B::BITS - 1));
    b.and(image, mask)
}

/// `2^n` for a normal exponent `n`.
#[inline(always)]
pub(super) fn power_of_two<B: FloatOps>(b: &mut B, n: B::I) -> B::F {
    let bias = b.int(B::BIAS);
    let exponent = b.int_add(n, bias);
    let image = shl(b, exponent, B::MANTISSA);
    b.with_bits(image)
}

/// `x * 2^n`, rounded once, for `n` from twice the least to twice the greatest normal exponent.
///
/// `2^n` itself may be out of range, so the factor is split in two halves. The first product is
/// exact if it stays normal, as it does for `x` near 1, and only the second rounds to a subnormal.
#[inline(always)]
pub(super) fn scaled<B: FloatOps>(b: &mut B, x: B::F, n: B::I) -> B::F {
    let half = sar(b, n, 1);
    let rest = b.int_sub(n, half);
    let first = power_of_two(b, half);
    let second = power_of_two(b, rest);
    let x = b.mul(x, first);
    b.mul(x, second)
}
