//! The complementary error function and what follows from it: its scaled form, the normal
//! distribution, and the inverses.

use super::ops::{
    copy_sign, either_poly, flip, less_product, pick, poly_of, scaled, sign_bit, two_product,
    two_sum,
};
use super::{FloatOps, erf_series, exp_parts, log};

/// `1 - erf x`, within 2 ulp in `f32`, also where it is small.
#[inline(always)]
pub fn erfc<B: FloatOps>(b: &mut B, x: B::F) -> B::F {
    let zero = b.constant(0.0);
    complement(b, x, zero, 0)
}

/// The distribution function of the normal distribution, `erfc(-x / sqrt 2) / 2`. The argument is kept
/// in two numbers, since far out the function magnifies its rounding.
#[inline(always)]
pub fn normcdf<B: FloatOps>(b: &mut B, x: B::F) -> B::F {
    let high = pick(b, -0.7071067690849304, -std::f64::consts::FRAC_1_SQRT_2);
    let low = pick(b, -1.2101617485882343e-08, 4.833646656726457e-17);
    // An infinity has no low part.
    let most = b.constant(1000.0);
    let least = b.constant(-1000.0);
    let above = b.gt(x, most);
    let near = b.select(above, most, x);
    let below = b.lt(near, least);
    let near = b.select(below, least, near);
    let (u, u_low) = two_product(b, near, high);
    let u_low = b.mul_add(near, low, u_low);
    complement(b, u, u_low, -1)
}

/// `e^(x^2) erfc x`, which falls as `1 / x`.
#[inline(always)]
pub fn erfcx<B: FloatOps>(b: &mut B, x: B::F) -> B::F {
    let size = b.abs(x);
    let far = b.constant(1e17);
    let is_far = b.gt(size, far);
    let near = b.select(is_far, far, size);
    let (value, value_low) = scaled_tail(b, near);
    let right = b.add(value, value_low);
    let half_slope = b.constant(0.5641895835477563);
    let asymptote = b.div(half_slope, size);
    let right = b.select(is_far, asymptote, right);

    let (square, lost) = two_product(b, near, near);
    let (head, tail, n) = exp_parts(b, square, Some(lost));
    let power = b.add(head, tail);
    let one = b.int(1);
    let n = b.int_add(n, one);
    let twice = scaled(b, power, n);
    let left = b.sub(twice, right);
    let zero = b.constant(0.0);
    let negative = b.lt(x, zero);
    b.select(negative, left, right)
}

/// `2^shift erfc(x + low)`.
///
/// Up to 11/16 in size `(1 - x) - x q`, the series of `erf`, of which the last term is small; above, and mirrored below, `e^(-x^2)` times
/// [`scaled_tail`], with the square in two numbers and all that was lost on the way put in at the end.
#[inline(always)]
fn complement<B: FloatOps>(b: &mut B, x: B::F, low: B::F, shift: i64) -> B::F {
    let size = b.abs(x);
    let most = pick(b, 11.0, 28.0);
    let beyond = b.gt(size, most);
    let near = b.select(beyond, most, size);
    let sign = sign_bit(b, x);
    let low_of_size = flip(b, low, sign);
    let (tail, _, _) = far_tail(b, near, low_of_size, shift);

    let (one, two) = (b.constant((shift as f64).exp2()), b.constant((shift as f64 + 1.0).exp2()));
    let q = erf_series(b, size);
    let signed = b.mul(x, one);
    let head = b.sub(one, signed);
    let lost = b.sub(one, head);
    let lost = b.sub(lost, signed);
    let rest = less_product(b, signed, q, lost);
    let middle = b.add(head, rest);

    let left = b.sub(two, tail);
    let zero = b.constant(0.0);
    let negative = b.lt(x, zero);
    let ends = b.select(negative, left, tail);
    let cut = b.constant(0.6875);
    let is_small = b.lt(size, cut);
    b.select(is_small, middle, ends)
}

/// `2^shift erfc(x + low)` for `x >= 0`, and the two parts of [`scaled_tail`].
#[inline(always)]
fn far_tail<B: FloatOps>(b: &mut B, x: B::F, low: B::F, shift: i64) -> (B::F, B::F, B::F) {
    let (value, value_low) = scaled_tail(b, x);
    let minus = b.neg(x);
    let (minus_square, lost) = two_product(b, minus, x);
    let minus_twice = b.add(minus, minus);
    let lost = b.mul_add(minus_twice, low, lost);
    let (head, tail, n) = exp_parts(b, minus_square, Some(lost));
    let power = b.add(head, tail);
    let power_low = b.sub(head, power);
    let power_low = b.add(power_low, tail);
    let (product, product_low) = two_product(b, power, value);
    let product_low = b.mul_add(power_low, value, product_low);
    let product_low = b.mul_add(power, value_low, product_low);
    let sum = b.add(product, product_low);
    let shift = b.int(shift);
    let n = b.int_add(n, shift);
    (scaled(b, sum, n), value, value_low)
}

/// `e^(x^2) erfc x` for `x >= 0` as a sum of two numbers, so that what follows adds little but its own
/// rounding.
///
/// `t g(t)` with `t = 2 / (2 + x)`, after Shepherd and Laframboise, "Chebyshev approximation of
/// (1 + 2x) exp(x^2) erfc x" (1981). In `f32` one polynomial for `x >= 0.49`, error 2^-33 (11 terms); in
/// `f64` one on either side of `t = 0.45`, error 2^-53 (19 terms).
#[inline(always)]
fn scaled_tail<B: FloatOps>(b: &mut B, x: B::F) -> (B::F, B::F) {
    let two = b.constant(2.0);
    let (below, below_low) = two_sum(b, x, two);
    let t = b.div(two, below);
    let rest = less_product(b, t, below, two);
    let rest = less_product(b, t, below_low, rest);
    let t_low = b.div(rest, below);
    let (from_centre, first, others) = if B::BITS == 32 {
        let centre = b.constant(0.484375);
        let from_centre = b.sub(t, centre);
        let first = b.constant(NARROW[0]);
        (from_centre, first, poly_of(b, from_centre, &NARROW[1..]))
    } else {
        let cut = b.constant(0.45);
        let is_low = b.lt(t, cut);
        let (low, high) = (b.constant(0.225), b.constant(0.725));
        let centre = b.select(is_low, low, high);
        let from_centre = b.sub(t, centre);
        let (low, high) = (b.constant(LOW[0]), b.constant(HIGH[0]));
        let first = b.select(is_low, low, high);
        (from_centre, first, either_poly(b, is_low, from_centre, &LOW[1..], &HIGH[1..]))
    };
    let (slope, slope_low) = two_product(b, from_centre, others);
    let (g, g_low) = two_sum(b, first, slope);
    let g_low = b.add(g_low, slope_low);
    // What the rounding of the first coefficient took; in fp64 nothing is known of it.
    let first_low = pick(b, NARROW[0] - NARROW[0] as f32 as f64, 0.0);
    let g_low = b.add(g_low, first_low);
    let (value, value_low) = two_product(b, t, g);
    let value_low = b.mul_add(t, g_low, value_low);
    (value, b.mul_add(t_low, g, value_low))
}

const NARROW: [f64; 11] = [
    0.5001903617115409,
    0.6698030363738019,
    0.5518632116968535,
    0.15626394560414325,
    -0.16362939902688176,
    -0.11265899015779873,
    0.09236563986007841,
    0.06442289253849057,
    -0.08093279700118382,
    -0.025021521875667627,
    0.062405477835213025,
];

const LOW: [f64; 19] = [
    0.3602735435863949,
    0.4234636651909487,
    0.38800055713505077,
    0.23229638201963296,
    0.018403554142690275,
    -0.11901077422274349,
    -0.08285707108121242,
    0.0567413083458467,
    0.09956777313771371,
    -0.029673217975155586,
    -0.1213317171167326,
    0.02231206215811911,
    0.16634222772054474,
    -0.03801257217918894,
    -0.2537412736144891,
    0.09682350356415936,
    0.3956576167868486,
    -0.17329332313300808,
    -0.46792867489806883,
];

const HIGH: [f64; 19] = [
    0.6948724869727037,
    0.9520266005456224,
    0.5974107551091644,
    -0.036876049939906605,
    -0.20651440730606208,
    0.03795352404856907,
    0.08258292850179046,
    -0.05173471593418724,
    -0.01720332259806915,
    0.03925346629216494,
    -0.01667298937781127,
    -0.01147079483856846,
    0.019931652024024738,
    -0.009874188192634355,
    -0.0043432490887641865,
    0.01136975211137403,
    -0.008300152236664637,
    -0.0017095313582750345,
    0.006652480494659253,
];

/// The inverse of the error function; infinite at 1 and -1, NaN beyond.
#[inline(always)]
pub fn erfinv<B: FloatOps>(b: &mut B, x: B::F) -> B::F {
    let size = b.abs(x);
    let one = b.constant(1.0);
    let rest = b.sub(one, size);
    let result = inverse(b, size, rest);
    copy_sign(b, result, x)
}

/// The inverse of [`erfc`]; infinite at 0, negatively at 2, NaN outside.
#[inline(always)]
pub fn erfcinv<B: FloatOps>(b: &mut B, x: B::F) -> B::F {
    let (one, two) = (b.constant(1.0), b.constant(2.0));
    let mirrored = b.sub(two, x);
    let is_left = b.gt(x, one);
    let rest = b.select(is_left, mirrored, x);
    let signed = b.sub(one, x);
    let size = b.abs(signed);
    let result = inverse(b, size, rest);
    copy_sign(b, result, signed)
}

/// The inverse of [`normcdf`]; infinite at 0 and 1, NaN outside.
#[inline(always)]
pub fn normcdfinv<B: FloatOps>(b: &mut B, x: B::F) -> B::F {
    let twice = b.add(x, x);
    let z = erfcinv(b, twice);
    let minus_root = b.constant(-std::f64::consts::SQRT_2);
    b.mul(minus_root, z)
}

/// The `z >= 0` with `erf z = x` and `erfc z = rest`, for `f64`.
///
/// A first guess, good to 2^-24, from a polynomial in `x^2` below 3/4 and in `sqrt(-log(rest (2 - rest)))`
/// above (as in Giles, "Approximating the erfinv function", 2010); then one step of Halley's iteration
/// on whichever of the two equations does not cancel. The second is used as a ratio, so that far out
/// nothing underflows but `rest` itself, which is scaled.
#[inline(always)]
fn inverse<B: FloatOps>(b: &mut B, x: B::F, rest: B::F) -> B::F {
    let (zero, one, two) = (b.constant(0.0), b.constant(1.0), b.constant(2.0));
    let cut = b.constant(0.75);
    let is_small = b.lt(x, cut);
    let square = b.mul(x, x);
    let p = poly_of(
        b,
        square,
        &[
            0.8862269252396148,
            0.23201377008268834,
            0.12754785992399967,
            0.08681289447873579,
            0.060755218497475914,
            0.09143184239212011,
            -0.1921763003314785,
            0.9369092779017184,
            -2.2091106376892533,
            3.546890960517381,
            -3.1793077732955073,
            1.3491972251932427,
        ],
    );
    let small = b.mul(x, p);
    let other = b.sub(two, rest);
    let product = b.mul(rest, other);
    let w = log(b, product);
    let w = b.neg(w);
    let s = b.sqrt(w);
    let first = b.constant(2.95);
    let from_first = b.sub(s, first);
    let near = poly_of(
        b,
        from_first,
        &[
            2.7826864262183038,
            1.0019506520551495,
            0.007377231737645404,
            -0.0036716660104196158,
            0.0011991322487523257,
            -0.00022354299522781842,
            -6.230491002281805e-05,
            8.225821159402945e-05,
            -2.2482888978108472e-05,
            -8.096282154247405e-06,
            4.3347891969128065e-06,
            3.0835502433419044e-07,
            -2.626307323965895e-07,
        ],
    );
    let second = b.constant(16.0);
    let from_second = b.sub(s, second);
    let far = poly_of(
        b,
        from_second,
        &[
            15.917016806679511,
            1.0032412222008196,
            -0.0001418760733578409,
            6.37985593130379e-06,
            -2.9850777435616784e-07,
            9.760850571356778e-09,
            5.167290171107389e-10,
            8.189574588516751e-11,
            -2.2660928771836893e-11,
            -1.3870523606814087e-12,
            3.0066449279592145e-13,
            1.1370591885263777e-14,
            -1.9044268341751618e-15,
            -4.798957370819005e-17,
            5.7339557334190914e-18,
        ],
    );
    let between = b.constant(4.95);
    let is_near = b.lt(s, between);
    let large = b.select(is_near, near, far);
    let z = b.select(is_small, small, large);

    // The step of Newton's iteration, (erfc z - rest) sqrt(pi)/2 e^(z^2), two ways.
    let half_root_pi = b.constant(0.886226925452758);
    let (tail, value, value_low) = far_tail(b, z, zero, 64);
    let lift = b.constant(64f64.exp2());
    let lifted = b.mul(rest, lift);
    let ratio = b.div(lifted, tail);
    let excess = b.sub(one, ratio);
    let scaled_erfc = b.add(value, value_low);
    let by_tail = b.mul(excess, scaled_erfc);
    let q = erf_body(b, z);
    let missing = b.sub(x, q);
    let minus = b.neg(z);
    let minus_square = b.mul(minus, z);
    let (head, tail, n) = exp_parts(b, minus_square, None);
    let power = b.add(head, tail);
    let power = scaled(b, power, n);
    let by_body = b.div(missing, power);
    let step = b.select(is_small, by_body, by_tail);
    let step = b.mul(step, half_root_pi);
    // Halley: half the second derivative over the first is -z.
    let below = less_product(b, step, z, one);
    let step = b.div(step, below);
    let result = b.add(z, step);

    let (inf, nan) = (b.constant(f64::INFINITY), b.constant(f64::NAN));
    let inside = b.gt(rest, zero);
    let at_end = b.eq(rest, zero);
    let beyond = b.select(at_end, inf, nan);
    b.select(inside, result, beyond)
}

/// `erf z` for `0 <= z < 0.9`.
#[inline(always)]
fn erf_body<B: FloatOps>(b: &mut B, z: B::F) -> B::F {
    let q = erf_series(b, z);
    b.mul_add(z, q, z)
}
