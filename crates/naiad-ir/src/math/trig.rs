//! Sine and cosine, with exact reduction of arguments of any size.

use super::FloatOps;
use super::ops::{flip, pick, poly, sar, shl, shr, sign_bit};

/// `sin x` for `x` in radians, within 2 ulp for every finite `x`; NaN for an infinity.
#[inline(always)]
pub fn sin<B: FloatOps>(b: &mut B, x: B::F) -> B::F {
    let size = b.abs(x);
    let (quadrant, r, r_low) = reduce(b, size);
    let result = wave(b, quadrant, r, r_low);
    let sign = sign_bit(b, x);
    let result = flip(b, result, sign);
    finite_or_nan(b, x, size, result)
}

/// `cos x` for `x` in radians, within 2 ulp for every finite `x`; NaN for an infinity.
#[inline(always)]
pub fn cos<B: FloatOps>(b: &mut B, x: B::F) -> B::F {
    let size = b.abs(x);
    let (quadrant, r, r_low) = reduce(b, size);
    let one = b.int(1);
    let quadrant = b.int_add(quadrant, one);
    let result = wave(b, quadrant, r, r_low);
    finite_or_nan(b, x, size, result)
}

/// `sin(quadrant * pi/2 + r + r_low)` for `|r| <= pi/4`.
///
/// `sin r = r + r^3 S(r^2)`, error 2^-28 (3 terms) or 2^-58 (6 terms), and
/// `cos r = 1 - r^2/2 + r^4 C(r^2)`, error 2^-33 or 2^-64. The low part of the argument enters by
/// the first derivative, `cos r` and `-sin r`, of which the leading terms suffice.
#[inline(always)]
pub(super) fn wave<B: FloatOps>(b: &mut B, quadrant: B::I, r: B::F, r_low: B::F) -> B::F {
    let one = b.constant(1.0);
    let minus_half = b.constant(-0.5);
    let z = b.mul(r, r);
    let s = poly(
        b,
        z,
        &[-0.16666654936701328, 0.008332177686620664, -0.00019517234691648588],
        &[
            -0.16666666666666632,
            0.008333333333322413,
            -0.0001984126982980783,
            2.7557313691920477e-06,
            -2.50507581150722e-08,
            1.5896795616091106e-10,
        ],
    );
    let c = poly(
        b,
        z,
        &[0.041666646854673674, -0.0013887366913186015, 2.4438379801094965e-05],
        &[
            0.0416666666666666,
            -0.0013888888888874125,
            2.480158728948215e-05,
            -2.755731435231791e-07,
            2.0875723270715568e-09,
            -1.1359647654546747e-11,
        ],
    );
    // 1 - z/2 is rounded; `lost` is what the rounding took (exact, by Sterbenz).
    let head = b.mul_add(minus_half, z, one);
    let lost = b.sub(one, head);
    let lost = b.mul_add(minus_half, z, lost);

    let cube = b.mul(z, r);
    let sine_tail = b.mul(cube, s);
    let sine_tail = b.mul_add(r_low, head, sine_tail);
    let sine = b.add(r, sine_tail);

    let minus_r = b.neg(r);
    let tail = b.mul_add(minus_r, r_low, lost);
    let fourth = b.mul(z, z);
    let tail = b.mul_add(fourth, c, tail);
    let cosine = b.add(head, tail);

    let (unit, zero) = (b.int(1), b.int(0));
    let odd = b.and(quadrant, unit);
    let is_sine = b.int_eq(odd, zero);
    let value = b.select(is_sine, sine, cosine);
    // Quadrants 2 and 3 are negative: bit 1 of the quadrant moves to the sign.
    let negative = shr(b, quadrant, 1);
    let negative = shl(b, negative, B::BITS - 1);
    flip(b, value, negative)
}

#[inline(always)]
pub(super) fn finite_or_nan<B: FloatOps>(b: &mut B, x: B::F, size: B::F, result: B::F) -> B::F {
    let inf = b.constant(f64::INFINITY);
    let finite = b.lt(size, inf);
    let nan = b.sub(x, x);
    b.select(finite, result, nan)
}

/// `(q, r, r_low)` with `x = (4k + q) pi/2 + r + r_low`, `|r| <= pi/4`, for `x >= 0`. Only the two
/// low bits of `q` count.
///
/// Payne and Hanek, "Radian reduction for trigonometric functions" (1983). With `x = m 2^e`, `m` an
/// integer, the bits of `2/pi` of weight `2^-j`, `j <= e - 2`, contribute multiples of 4 to
/// `x * 2/pi`, so they may be skipped; and bits far behind contribute too little to matter. What
/// remains is the product of `m` and a window of three words of `2/pi`:
///
/// ```text
///   2/pi = 0.[0 ... 0 | skipped ][ a0 ][ a1 ][ a2 ] ignored
///   m * (a0 a1 a2) mod 2^3W  =  [ q | fraction      ][ fraction ] dropped
/// ```
///
/// The fraction then has 2W - 2 bits, off by about one unit. A multiple of pi/2 is never closer to a
/// float than about 2^-30 (f32) or 2^-62 (f64) of the float's quadrant, so W bits of it survive the
/// worst cancellation, which is more than the significand.
///
/// After the worst cancellations `leading` below is 0; then the roundings of `rest` and of its product
/// with pi/2 add up, and there the greatest error of [`sin`] and [`cos`] in `f32` is found.
///
/// `wave` is accurate without reduction below pi/4, and there the fixed point would lose bits.
#[inline(always)]
pub(super) fn reduce<B: FloatOps>(b: &mut B, x: B::F) -> (B::I, B::F, B::F) {
    let width = B::BITS;
    let (a, m) = window(b, x);

    // Two words of the product, without what lies above (multiples of 4) and below.
    let low = b.int_mul(m, a[1]);
    let carried = b.umulhi(m, a[2]);
    let low = b.int_add(low, carried);
    let carry = b.ult(low, carried);
    let high = b.int_mul(m, a[0]);
    let carried = b.umulhi(m, a[1]);
    let high = b.int_add(high, carried);
    let (unit, zero) = (b.int(1), b.int(0));
    let carry = b.select_int(carry, unit, zero);
    let high = b.int_add(high, carry);

    // The quadrant off the top; the fraction, read as a signed number, is nearest to a quadrant.
    let quadrant = shr(b, high, width - 2);
    let fraction = shl(b, high, 2);
    let top = shr(b, low, width - 2);
    let fraction = b.or(fraction, top);
    let fraction_low = shl(b, low, 2);
    let half = shr(b, fraction, width - 1);
    let quadrant = b.int_add(quadrant, half);

    // Sign and magnitude, so that a small magnitude has leading zeros and keeps its low bits in the
    // conversion. The complement is the negative but for one unit in the last place. `leading` takes
    // as many bits as a significand has, so that it is exact; `rest` is what follows.
    let sign = sar(b, fraction, width - 1);
    let fraction = b.xor(fraction, sign);
    let fraction_low = b.xor(fraction_low, sign);
    let guard = width - B::MANTISSA - 2;
    let mask = b.int((1 << guard) - 1);
    let rest = b.and(fraction, mask);
    let leading = b.int_sub(fraction, rest);
    let leading = b.to_float(leading);
    let rest = shl(b, rest, width - 1 - guard);
    let fraction_low = shr(b, fraction_low, guard + 1);
    let rest = b.or(rest, fraction_low);
    let rest = b.to_float(rest);
    let unit_high = b.constant((-f64::from(width)).exp2());
    let unit_low = b.constant((-f64::from(2 * width - guard - 1)).exp2());
    let f_high = b.mul(leading, unit_high);
    let f_low = b.mul(rest, unit_low);

    // Times pi/2, as a sum of two floats.
    let pi_high = pick(b, 1.5707963705062866, std::f64::consts::FRAC_PI_2);
    let pi_low = pick(b, -4.3711390001862426e-08, 6.123233995736766e-17);
    let product = b.mul(f_high, pi_high);
    let minus_product = b.neg(product);
    let error = b.mul_add(f_high, pi_high, minus_product);
    let error = b.mul_add(f_high, pi_low, error);
    let error = b.mul_add(f_low, pi_high, error);
    let r = b.add(product, error);
    let r_low = b.sub(product, r);
    let r_low = b.add(r_low, error);
    let sign = shl(b, sign, width - 1);
    let r = flip(b, r, sign);
    let r_low = flip(b, r_low, sign);

    let cut = b.constant(std::f64::consts::FRAC_PI_4);
    let small = b.lt(x, cut);
    let nothing = b.constant(0.0);
    let quadrant = b.select_int(small, zero, quadrant);
    let r = b.select(small, x, r);
    let r_low = b.select(small, nothing, r_low);
    (quadrant, r, r_low)
}

/// The window of three words of `2/pi` for `x >= 1/2`, and the significand to multiply it by.
///
/// The exponents of `[1/2, 2^128)` are one more than 4 words of 32 bits have bits (likewise for
/// 64-bit words and `f64`), which would cost another level of selects; so the octave of 1/2 shares
/// the offset of the octave of 1, and all other significands are doubled instead.
#[inline(always)]
fn window<B: FloatOps>(b: &mut B, x: B::F) -> ([B::I; 3], B::I) {
    let width = B::BITS;
    let image = b.bits(x);
    let stored = b.int((1 << B::MANTISSA) - 1);
    let m = b.and(image, stored);
    let implicit = b.int(1 << B::MANTISSA);
    let m = b.or(m, implicit);
    let exponent = shr(b, image, B::MANTISSA);
    let bias = b.int(B::BIAS);
    let offset = b.int_sub(exponent, bias);
    let (zero, doubled) = (b.int(0), shl(b, m, 1));
    let minus_one = b.int(-1);
    let is_half = b.int_eq(offset, minus_one);
    let m = b.select_int(is_half, m, doubled);
    let offset = b.select_int(is_half, zero, offset);

    // The word that holds the first bit, by a barrel shifter over words.
    let index_bits = if width == 32 { 2 } else { 4 };
    let strings = if width == 32 { &WORDS_32 } else { &WORDS_64 };
    let mut words = [zero; WORDS];
    let mut live = (1 << index_bits) + 3;
    for (i, word) in words.iter_mut().enumerate().take(live) {
        *word = b.int(strings[i]);
    }
    for level in (0..index_bits).rev() {
        let step = 1 << level;
        live -= step;
        let bit = b.int(i64::from(width) << level);
        let bit = b.and(offset, bit);
        let stay = b.int_eq(bit, zero);
        for i in 0..live {
            words[i] = b.select_int(stay, words[i], words[i + step]);
        }
    }

    // Then the bits within the word. The right shift is done in two steps because a shift by the
    // whole width is not one.
    let in_word = b.int(i64::from(width) - 1);
    let left = b.and(offset, in_word);
    let right = b.int_sub(in_word, left);
    let mut a = [zero; 3];
    for (i, a) in a.iter_mut().enumerate() {
        let head = b.shl(words[i], left);
        let tail = shr(b, words[i + 1], 1);
        let tail = b.shr(tail, right);
        *a = b.or(head, tail);
    }
    (a, m)
}

/// Words of the string that a window is cut from; 32-bit arguments need the first 7.
const WORDS: usize = 19;

const WORDS_32: [i64; WORDS] = string(32, 23);
const WORDS_64: [i64; WORDS] = string(64, 52);

/// `2/pi` as words of `width` bits, behind zeros for the bits before the point.
///
/// At offset 0 the doubled significand has the exponent `e = -mantissa - 1`, and a window starts at
/// the bit of weight `2^(1 - e)`: `mantissa + 3` places before the first bit behind the point.
const fn string(width: usize, mantissa: usize) -> [i64; WORDS] {
    let zeros = mantissa + 3;
    let mut words = [0; WORDS];
    let mut i = zeros;
    while i < WORDS * width {
        let at = i - zeros;
        let bit = (TWO_OVER_PI[at / 64] >> (63 - at % 64)) as i64 & 1;
        words[i / width] |= bit << (width - 1 - i % width);
        i += 1;
    }
    words
}

/// The first 1,280 bits of `2/pi` behind the point.
const TWO_OVER_PI: [u64; 20] = [
    0xa2f9836e4e441529,
    0xfc2757d1f534ddc0,
    0xdb6295993c439041,
    0xfe5163abdebbc561,
    0xb7246e3a424dd2e0,
    0x06492eea09d1921c,
    0xfe1deb1cb129a73e,
    0xe88235f52ebb4484,
    0xe99c7026b45f7e41,
    0x3991d639835339f4,
    0x9c845f8bbdf9283b,
    0x1ff897ffde05980f,
    0xef2f118b5a0a6d1f,
    0x6d367ecf27cb09b7,
    0x4f463f669e5fea2d,
    0x7527bac7ebe5f17b,
    0x3d0739f78a5292ea,
    0x6bfb5fb11f8d5d08,
    0x56033046fc7b6bab,
    0xf0cfbc209af4361d,
];
