//! Functions whose result is exact: roundings to integers, remainders, exponents, neighbours.

use super::FloatOps;
use super::ops::{copy_sign, scaled, shl, shr};

/// To the nearest integer, halves away from zero.
#[inline(always)]
pub fn round_away<B: FloatOps>(b: &mut B, x: B::F) -> B::F {
    let whole = b.trunc(x);
    // Exact, and 0 for numbers that are integers because of their size.
    let part = b.sub(x, whole);
    let part = b.abs(part);
    let (half, one) = (b.constant(0.5), b.constant(1.0));
    let step = copy_sign(b, one, x);
    let next = b.add(whole, step);
    let up = b.ge(part, half);
    let result = b.select(up, next, whole);
    copy_sign(b, result, x)
}

/// To the nearest integer, halves to even: the sum with `2^MANTISSA` has a unit in the last place of 1.
#[inline(always)]
pub fn rint<B: FloatOps>(b: &mut B, x: B::F) -> B::F {
    let size = b.abs(x);
    let limit = b.constant((1u64 << B::MANTISSA) as f64);
    let sum = b.add(size, limit);
    let rounded = b.sub(sum, limit);
    let small = b.lt(size, limit);
    let result = b.select(small, rounded, size);
    copy_sign(b, result, x)
}

/// The magnitude of `x` with the sign of `y`.
#[inline(always)]
pub fn copysign<B: FloatOps>(b: &mut B, x: B::F, y: B::F) -> B::F {
    copy_sign(b, x, y)
}

/// `x - y` where positive, else `+0`; NaN if either is.
#[inline(always)]
pub fn fdim<B: FloatOps>(b: &mut B, x: B::F, y: B::F) -> B::F {
    let difference = b.sub(x, y);
    let zero = b.constant(0.0);
    let not_above = b.le(x, y);
    b.select(not_above, zero, difference)
}

/// The number next to `x` on the way to `y`; `y` if they are equal.
#[inline(always)]
pub fn nextafter<B: FloatOps>(b: &mut B, x: B::F, y: B::F) -> B::F {
    let zero = b.constant(0.0);
    let image = b.bits(x);
    let (one, minus_one) = (b.int(1), b.int(-1));
    // Images of one sign are ordered as the magnitudes are.
    let up = b.lt(x, y);
    let positive = b.lt(zero, x);
    let away = b.select_int(up, one, minus_one);
    let back = b.select_int(up, minus_one, one);
    let step = b.select_int(positive, away, back);
    let stepped = b.int_add(image, step);
    let stepped = b.with_bits(stepped);
    let least = b.with_bits(one);
    let least = copy_sign(b, least, y);
    let is_zero = b.eq(x, zero);
    let result = b.select(is_zero, least, stepped);
    let equal = b.eq(x, y);
    let result = b.select(equal, y, result);
    let nan = b.add(x, y);
    let (x_is_nan, y_is_nan) = (b.ne(x, x), b.ne(y, y));
    let result = b.select(x_is_nan, nan, result);
    b.select(y_is_nan, nan, result)
}

/// The exponent of `x` as a float: `x = m 2^e` with `1 <= |m| < 2`. `-inf` for zeros, `inf` for
/// infinities.
#[inline(always)]
pub fn logb<B: FloatOps>(b: &mut B, x: B::F) -> B::F {
    let size = b.abs(x);
    let (e, _) = parts(b, size);
    let e = b.to_float(e);
    let (zero, inf) = (b.constant(0.0), b.constant(f64::INFINITY));
    let finite = b.lt(size, inf);
    let result = b.select(finite, e, size);
    let minus_inf = b.constant(f64::NEG_INFINITY);
    let is_zero = b.eq(size, zero);
    b.select(is_zero, minus_inf, result)
}

/// `x 2^n`, rounded once, for an integer `n`. Beyond a few times the range of exponents `n` does not
/// matter, so that one rounded to this type serves.
#[inline(always)]
pub fn ldexp<B: FloatOps>(b: &mut B, x: B::F, n: B::F) -> B::F {
    let size = b.abs(x);
    let (e, m) = parts(b, size);
    let most = b.constant(4.0 * B::BIAS as f64);
    let least = b.neg(most);
    let above = b.gt(n, most);
    let n = b.select(above, most, n);
    let below = b.lt(n, least);
    let n = b.select(below, least, n);
    let e = b.to_float(e);
    let total = b.add(e, n);
    // Within the bounds of `scaled`, whose ends are infinity and zero already.
    let most = b.constant(1.5 * B::BIAS as f64);
    let least = b.neg(most);
    let above = b.gt(total, most);
    let total = b.select(above, most, total);
    let below = b.lt(total, least);
    let total = b.select(below, least, total);
    let magic = b.constant(1.5 * (1u64 << B::MANTISSA) as f64);
    let sum = b.add(total, magic);
    let (sum, magic) = (b.bits(sum), b.bits(magic));
    let total = b.int_sub(sum, magic);
    let result = scaled(b, m, total);
    let (zero, inf) = (b.constant(0.0), b.constant(f64::INFINITY));
    let finite = b.lt(size, inf);
    let result = b.select(finite, result, x);
    let is_zero = b.eq(size, zero);
    let result = b.select(is_zero, x, result);
    copy_sign(b, result, x)
}

/// `(e, m)` with `x = m 2^e` and `1 <= m < 2`, for positive finite `x`.
#[inline(always)]
fn parts<B: FloatOps>(b: &mut B, x: B::F) -> (B::I, B::F) {
    let least = b.constant((1.0 - B::BIAS as f64).exp2());
    let subnormal = b.lt(x, least);
    let lift = b.constant((1u64 << B::MANTISSA) as f64);
    let lifted = b.mul(x, lift);
    let normal = b.select(subnormal, lifted, x);
    let image = b.bits(normal);
    let biased = shr(b, image, B::MANTISSA);
    let exponent = shl(b, biased, B::MANTISSA);
    let mantissa = b.int_sub(image, exponent);
    let one = b.constant(1.0);
    let one = b.bits(one);
    let m = b.or(mantissa, one);
    let (bias, more) = (b.int(B::BIAS), b.int(B::BIAS + i64::from(B::MANTISSA)));
    let bias = b.select_int(subnormal, more, bias);
    (b.int_sub(biased, bias), b.with_bits(m))
}

/// The remainder of the division that rounds toward zero, exact whatever the size of the quotient; it
/// has the sign of `x`. NaN for an infinite `x` and for `y = 0`.
///
/// With `x = m 2^e` and `y = k 2^f` in integers and `d = e - f >= 0`, the remainder is `2^f` times
/// `m 2^d mod k`; the power is formed by squaring, with one step for each bit of an exponent and all
/// residues between `-k/2` and `k/2`. A product modulo `k` is the difference of the integer products
/// `a b` and `q k`, of which the low halves suffice, as it is below `3k/2` in size if `q` is the rounded
/// quotient in floats.
#[inline(always)]
pub fn fmod<B: FloatOps>(b: &mut B, x: B::F, y: B::F) -> B::F {
    let (size, divisor) = (b.abs(x), b.abs(y));
    let (m, e) = integer(b, size);
    let (k, f) = integer(b, divisor);
    let d = b.int_sub(e, f);
    let modulus = Modulus::new(b, k);

    // m mod k. The quotient is off by at most one, so that the difference is exact.
    let m_float = b.to_float(m);
    let quotient = b.div(m_float, modulus.float);
    let quotient = b.trunc(quotient);
    let minus = b.neg(quotient);
    let rest = b.mul_add(minus, modulus.float, m_float);
    let rest = modulus.centred_float(b, rest);
    let rest = small_int(b, rest);

    let bits = if B::BITS == 32 { 8 } else { 11 };
    let (zero, one) = (b.int(0), b.int(1));
    let mut power = one;
    for bit in (0..bits).rev() {
        power = modulus.mul(b, power, power);
        let doubled = b.int_add(power, power);
        let doubled = modulus.centred(b, doubled);
        let mask = b.int(1 << bit);
        let is_set = b.and(d, mask);
        let is_clear = b.int_eq(is_set, zero);
        power = b.select_int(is_clear, power, doubled);
    }
    let rest = modulus.mul(b, rest, power);
    let rest = b.to_float(rest);
    let nothing = b.constant(0.0);
    let negative = b.lt(rest, nothing);
    let raised = b.add(rest, modulus.float);
    let rest = b.select(negative, raised, rest);
    let unit = b.int(B::BIAS + i64::from(B::MANTISSA));
    let exponent = b.int_sub(f, unit);
    let result = scaled(b, rest, exponent);

    let is_less = b.lt(size, divisor);
    let result = b.select(is_less, size, result);
    let result = copy_sign(b, result, x);
    let (inf, nan) = (b.constant(f64::INFINITY), b.constant(f64::NAN));
    let finite = b.lt(size, inf);
    let result = b.select(finite, result, nan);
    let by_zero = b.eq(divisor, nothing);
    let result = b.select(by_zero, nan, result);
    let no_number = b.ne(y, y);
    b.select(no_number, nan, result)
}

/// The remainder of the division that rounds to nearest, halves to even (IEEE 754's); exact. A zero has
/// the sign of `x`.
#[inline(always)]
pub fn remainder<B: FloatOps>(b: &mut B, x: B::F, y: B::F) -> B::F {
    let (size, divisor) = (b.abs(x), b.abs(y));
    let rest = fmod(b, size, divisor);
    let below = b.sub(rest, divisor);
    let other = b.neg(below);
    // At a tie x/y is a half more than an integer of few bits, so that the division is exact.
    let (half, two) = (b.constant(0.5), b.constant(2.0));
    let ratio = b.div(size, divisor);
    let whole = b.trunc(ratio);
    let halved = b.mul(whole, half);
    let halved = b.trunc(halved);
    let twice = b.mul(halved, two);
    let even = b.eq(twice, whole);
    let more = b.gt(rest, other);
    let tied = b.eq(rest, other);
    let at_tie = b.select(even, rest, below);
    let result = b.select(more, below, rest);
    let result = b.select(tied, at_tie, result);
    let inf = b.constant(f64::INFINITY);
    let y_inf = b.eq(divisor, inf);
    let result = b.select(y_inf, rest, result);
    let image = b.bits(result);
    let sign = super::ops::sign_bit(b, x);
    let image = b.xor(image, sign);
    b.with_bits(image)
}

/// `(m, e)` with `x = m 2^(e - BIAS - MANTISSA)` in integers, for finite `x >= 0`.
#[inline(always)]
fn integer<B: FloatOps>(b: &mut B, x: B::F) -> (B::I, B::I) {
    let image = b.bits(x);
    let stored = b.int((1 << B::MANTISSA) - 1);
    let mantissa = b.and(image, stored);
    let e = shr(b, image, B::MANTISSA);
    let (zero, one) = (b.int(0), b.int(1));
    let implicit = b.int(1 << B::MANTISSA);
    let with_implicit = b.or(mantissa, implicit);
    let subnormal = b.int_eq(e, zero);
    let m = b.select_int(subnormal, mantissa, with_implicit);
    (m, b.select_int(subnormal, one, e))
}

/// The integer that a float of at most `2^MANTISSA` in size is.
#[inline(always)]
fn small_int<B: FloatOps>(b: &mut B, x: B::F) -> B::I {
    // By halves, which the sum with the magic number holds.
    let half = b.constant(0.5);
    let halved = b.mul(x, half);
    let halved = b.trunc(halved);
    let minus_two = b.constant(-2.0);
    let last = b.mul_add(minus_two, halved, x);
    let magic = b.constant(1.5 * (1u64 << B::MANTISSA) as f64);
    let (halved, last) = (b.add(halved, magic), b.add(last, magic));
    let (halved, last, magic) = (b.bits(halved), b.bits(last), b.bits(magic));
    let (halved, last) = (b.int_sub(halved, magic), b.int_sub(last, magic));
    let twice = b.int_add(halved, halved);
    b.int_add(twice, last)
}

/// An integer below `2^(MANTISSA + 1)` to reduce by.
struct Modulus<B: FloatOps> {
    int: B::I,
    float: B::F,
    half: B::F,
    minus_half: B::F,
}

impl<B: FloatOps> Modulus<B> {
    #[inline(always)]
    fn new(b: &mut B, int: B::I) -> Modulus<B> {
        let float = b.to_float(int);
        let half = b.constant(0.5);
        let half = b.mul(float, half);
        Modulus { int, float, half, minus_half: b.neg(half) }
    }

    /// `x`, below three halves of the modulus in size, brought to one half.
    #[inline(always)]
    fn centred(&self, b: &mut B, x: B::I) -> B::I {
        let float = b.to_float(x);
        let (less, more) = (b.int_sub(x, self.int), b.int_add(x, self.int));
        let is_high = b.gt(float, self.half);
        let is_low = b.lt(float, self.minus_half);
        let x = b.select_int(is_high, less, x);
        b.select_int(is_low, more, x)
    }

    #[inline(always)]
    fn centred_float(&self, b: &mut B, x: B::F) -> B::F {
        let (less, more) = (b.sub(x, self.float), b.add(x, self.float));
        let is_high = b.gt(x, self.half);
        let is_low = b.lt(x, self.minus_half);
        let x = b.select(is_high, less, x);
        b.select(is_low, more, x)
    }

    /// The product of two centred residues, centred.
    #[inline(always)]
    fn mul(&self, b: &mut B, x: B::I, y: B::I) -> B::I {
        let (fx, fy) = (b.to_float(x), b.to_float(y));
        let product = b.mul(fx, fy);
        let quotient = b.div(product, self.float);
        let magic = b.constant(1.5 * (1u64 << B::MANTISSA) as f64);
        let sum = b.add(quotient, magic);
        let (sum, magic) = (b.bits(sum), b.bits(magic));
        let quotient = b.int_sub(sum, magic);
        let (low, taken) = (b.int_mul(x, y), b.int_mul(quotient, self.int));
        let rest = b.int_sub(low, taken);
        self.centred(b, rest)
    }
}
