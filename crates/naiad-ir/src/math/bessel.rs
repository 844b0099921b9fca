//! Bessel functions of order 0 and 1, in `f64`.
//!
//! Below 8 polynomials, above the modulus and phase form, with both as polynomials in `1/x^2`:
//!
//! ```text
//!   J(x) = sqrt(2/(pi x)) M cos t     Y(x) = sqrt(2/(pi x)) M sin t     t = x - (2n + 1) pi/4 + A/x
//! ```
//!
//! (Abramowitz and Stegun 9.2.17; Harrison, "Fast and accurate Bessel function computation", 2009, for
//! its use.) The phase is reduced like the argument of [`super::sin`], so large arguments lose nothing.
//! Below 8 the zeros of J, and of Y from 4 on, are split off as factors. So the error is small beside
//! the envelope everywhere; close to the other zeros it is not small beside the result.

use super::ops::{copy_sign, either_poly, flip, poly_of, scaled, sign_bit, two_sum};
use super::trig::{reduce, wave};
use super::{FloatOps, exp_parts, log};

/// Where the modulus and phase form starts.
const LARGE: f64 = 8.0;

/// A zero, as a sum of two numbers.
type Zero = (f64, f64);

struct Order {
    /// Zeros of J below 8, and J over `z - zero^2` (and over `x` for order 1), on either side of
    /// `z = x^2 = 24`.
    j_zeros: [Zero; 2],
    j_low: &'static [f64],
    j_high: &'static [f64],
    /// What Y has besides its logarithm (and pole) below 4.
    y_low: &'static [f64],
    /// The zero of Y between 4 and 8, and Y over `x - zero` there, around 6.
    y_zero: Zero,
    y_high: &'static [f64],
    modulus: &'static [f64],
    phase: &'static [f64],
    /// Right angles that the phase starts behind, besides half of one.
    behind: i64,
}

const ZERO: Order = Order {
    j_zeros: [
        (2.404825557695773, -1.176691651530894e-16),
        (5.520078110286311, 8.088597146146722e-17),
    ],
    j_low: &[
        0.0032649839799786503,
        -0.0001568356211117314,
        3.176287192052305e-06,
        -3.702856008814559e-08,
        2.8465830897676383e-10,
        -1.5613651800613115e-12,
        6.438655766189315e-15,
        -2.0726496430449053e-17,
        5.358834382407004e-20,
        -1.1380618855315567e-22,
        2.0232317124044787e-25,
        -3.037464890423352e-28,
    ],
    j_high: &[
        0.0005377619122316435,
        -3.702613393496157e-05,
        9.470042386250816e-07,
        -1.3030492647869807e-08,
        1.1346140794945324e-10,
        -6.859785657361054e-13,
        3.0593103218456596e-15,
        -1.050406851673527e-17,
        2.866646944750939e-20,
        -6.374365692506987e-23,
        1.178093844259138e-25,
        -1.8425492162246733e-28,
        2.4213008208788134e-31,
    ],
    y_low: &[
        -0.07380429510868723,
        0.17760601686906713,
        -0.01607396802593842,
        0.0005386026668616454,
        -9.49500520521471e-06,
        1.0358476033336911e-07,
        -7.693079892941275e-10,
        4.1435655906056465e-12,
        -1.6932696867874877e-14,
        5.4309027165283185e-17,
        -1.402949074141642e-19,
        2.952288950495615e-22,
        -4.545946413918937e-25,
    ],
    y_zero: (7.086051060301773, -8.835285723085408e-17),
    y_high: &[
        0.2653601607842459,
        0.0831911314176544,
        -0.04265178397956475,
        -0.006536020068349424,
        0.0020655334750247886,
        0.0001809955623406864,
        -4.5658914495735285e-05,
        -2.815493386660475e-06,
        6.001483271086027e-07,
        2.628968868472705e-08,
        -4.9603988235993735e-09,
        -2.0073088528886543e-10,
        3.3536402890572076e-11,
        4.596808026847467e-13,
        -6.634191274214326e-14,
        -1.4942077420561157e-14,
        1.9564316546823105e-15,
        -2.0995684614691887e-16,
        7.411204932801751e-17,
        -1.2710260176062393e-17,
    ],
    modulus: &[
        1.0,
        -0.06249999999967159,
        0.10351562391869601,
        -0.5428452756224771,
        5.8477448591817165,
        -106.49493384305586,
        2862.249147133814,
        -96452.6111045749,
        3303036.5355466586,
        -93035955.23574671,
        1748265562.3604608,
        -15683177946.35876,
    ],
    phase: &[
        -0.12499999999999857,
        0.06510416665638986,
        -0.20957029057835763,
        1.6380439857558289,
        -23.462675303155745,
        531.143497412862,
        -16728.468059938816,
        618783.6093938593,
        -21972507.57852234,
        619492115.1714824,
        -11452935869.791838,
        100363852738.61302,
    ],
    behind: 0,
};

const ONE: Order = Order {
    j_zeros: [
        (3.8317059702075125, -1.5269184090088067e-16),
        (7.015586669815619, -9.414165653410389e-17),
    ],
    j_low: &[
        0.0004408140463762851,
        -1.7031264828270723e-05,
        2.87264040880572e-07,
        -2.8620603285690127e-09,
        1.917958264911565e-11,
        -9.314350274785288e-14,
        3.4436150544753712e-16,
        -1.0040989796198292e-18,
        2.3717534535577074e-21,
        -4.635053115700554e-24,
        7.629003748024427e-27,
        -1.0674030759611129e-29,
    ],
    j_high: &[
        0.00011351153728865521,
        -5.350658733728542e-06,
        1.0459907925446281e-07,
        -1.1679648811005938e-09,
        8.57052947670225e-12,
        -4.481894737963085e-14,
        1.7621314639495236e-16,
        -5.412019279065821e-19,
        1.3364653410895618e-21,
        -2.7142499524786724e-24,
        4.617019083620112e-27,
        -6.688488318672937e-30,
        8.241815259231225e-33,
    ],
    y_low: &[
        -0.19605709064623894,
        0.054348688160510236,
        -0.0029553053360798012,
        7.164268749970182e-05,
        -9.926740619196513e-07,
        8.931879613080951e-09,
        -5.6480243675664046e-11,
        2.649478765733834e-13,
        -9.591213812110802e-16,
        2.7598386809923548e-18,
        -6.4010062737478325e-21,
        1.0767283041778891e-23,
    ],
    y_zero: (5.429681040794135, 4.162514026670377e-16),
    y_high: &[
        -0.30686397756106465,
        0.08387882521533158,
        0.03994461656847659,
        -0.00846445122434029,
        -0.0015436345305421659,
        0.00028077916555281483,
        3.055982738270556e-05,
        -4.94731300624837e-06,
        -3.455164437224543e-07,
        5.040514799288505e-08,
        3.088346765634304e-09,
        -4.2511857175848596e-10,
        -7.81727569914064e-12,
        6.134321919518734e-13,
        3.06357401908764e-13,
        -4.841808166664127e-14,
        4.913658312682736e-15,
        -7.745367148305705e-16,
        3.298344356168884e-16,
        -5.850546512552197e-17,
    ],
    modulus: &[
        1.0,
        0.18749999999962855,
        -0.1933593737776199,
        0.8052962653505845,
        -7.738876292470164,
        132.31993946126997,
        -3424.0615741830266,
        112823.59086741733,
        -3815940.539275253,
        106763392.76305936,
        -1998677077.5546186,
        17889047313.3811,
    ],
    phase: &[
        0.3749999999999984,
        -0.16406249998837147,
        0.37089841271042706,
        -2.369373100321211,
        30.609953023769496,
        -654.1139173560318,
        19907.927713683297,
        -722006.2758074056,
        25362964.80747424,
        -710885504.0315175,
        13098260859.878979,
        -114543991709.53513,
    ],
    behind: 1,
};

/// The Bessel function of the first kind of order 0.
#[inline(always)]
pub fn j0<B: FloatOps>(b: &mut B, x: B::F) -> B::F {
    let size = b.abs(x);
    let small = j_small(b, size, &ZERO);
    let (_, large) = large(b, size, &ZERO);
    choose(b, size, small, large)
}

/// The Bessel function of the first kind of order 1.
#[inline(always)]
pub fn j1<B: FloatOps>(b: &mut B, x: B::F) -> B::F {
    let size = b.abs(x);
    let small = j_small(b, size, &ONE);
    let small = b.mul(small, size);
    let (_, large) = large(b, size, &ONE);
    let result = choose(b, size, small, large);
    // Odd; the result itself may be negative.
    let sign = sign_bit(b, x);
    flip(b, result, sign)
}

/// The Bessel function of the second kind of order 0: NaN for negative numbers.
#[inline(always)]
pub fn y0<B: FloatOps>(b: &mut B, x: B::F) -> B::F {
    let j = j_small(b, x, &ZERO);
    let z = b.mul(x, x);
    let rest = poly_of(b, z, ZERO.y_low);
    let two_over_pi = b.constant(std::f64::consts::FRAC_2_PI);
    let log_x = log(b, x);
    let factor = b.mul(two_over_pi, log_x);
    let low = b.mul_add(factor, j, rest);
    y_whole(b, x, low, &ZERO)
}

/// The Bessel function of the second kind of order 1: NaN for negative numbers.
#[inline(always)]
pub fn y1<B: FloatOps>(b: &mut B, x: B::F) -> B::F {
    let j = j_small(b, x, &ONE);
    let j = b.mul(j, x);
    let z = b.mul(x, x);
    let rest = poly_of(b, z, ONE.y_low);
    let two_over_pi = b.constant(std::f64::consts::FRAC_2_PI);
    let log_x = log(b, x);
    let product = b.mul(log_x, j);
    let pole = b.div(two_over_pi, x);
    let rest = b.mul(rest, x);
    let low = b.mul_add(product, two_over_pi, rest);
    let low = b.sub(low, pole);
    y_whole(b, x, low, &ONE)
}

/// J over `x` to the order, for `0 <= x < 8`.
#[inline(always)]
fn j_small<B: FloatOps>(b: &mut B, x: B::F, order: &Order) -> B::F {
    let z = b.mul(x, x);
    let cut = b.constant(24.0);
    let is_low = b.lt(z, cut);
    let (low, high) = (b.constant(12.0), b.constant(44.0));
    let from_low = b.sub(z, low);
    let from_high = b.sub(z, high);
    let p_low = poly_of(b, from_low, order.j_low);
    let p_high = poly_of(b, from_high, order.j_high);
    let mut result = b.select(is_low, p_low, p_high);
    for zero in order.j_zeros {
        let distance = from_zero(b, x, zero);
        let at = b.constant(zero.0);
        let sum = b.add(x, at);
        let factor = b.mul(distance, sum);
        result = b.mul(result, factor);
    }
    result
}

/// `x` less a zero.
#[inline(always)]
fn from_zero<B: FloatOps>(b: &mut B, x: B::F, zero: Zero) -> B::F {
    let (high, low) = (b.constant(zero.0), b.constant(zero.1));
    let distance = b.sub(x, high);
    b.sub(distance, low)
}

/// Y from its value below 4.
#[inline(always)]
fn y_whole<B: FloatOps>(b: &mut B, x: B::F, low: B::F, order: &Order) -> B::F {
    let six = b.constant(6.0);
    let from_six = b.sub(x, six);
    let p = poly_of(b, from_six, order.y_high);
    let distance = from_zero(b, x, order.y_zero);
    let middle = b.mul(p, distance);
    let four = b.constant(4.0);
    let is_low = b.lt(x, four);
    let small = b.select(is_low, low, middle);
    let (large, _) = large(b, x, order);
    let result = choose(b, x, small, large);
    let (zero, nan) = (b.constant(0.0), b.constant(f64::NAN));
    let minus_inf = b.constant(f64::NEG_INFINITY);
    let negative = b.lt(x, zero);
    let result = b.select(negative, nan, result);
    let is_zero = b.eq(x, zero);
    b.select(is_zero, minus_inf, result)
}

/// The values below 8 and from 8 on; 0 at infinity, NaN for NaN.
#[inline(always)]
fn choose<B: FloatOps>(b: &mut B, x: B::F, small: B::F, large: B::F) -> B::F {
    let (zero, inf) = (b.constant(0.0), b.constant(f64::INFINITY));
    let limit = b.constant(LARGE);
    let is_small = b.lt(x, limit);
    let result = b.select(is_small, small, large);
    let is_inf = b.eq(x, inf);
    let result = b.select(is_inf, zero, result);
    let is_nan = b.ne(x, x);
    b.select(is_nan, x, result)
}

/// `(Y, J)` for `x >= 8`.
#[inline(always)]
fn large<B: FloatOps>(b: &mut B, x: B::F, order: &Order) -> (B::F, B::F) {
    let one = b.constant(1.0);
    let inverse = b.div(one, x);
    let z = b.mul(inverse, inverse);
    let modulus = poly_of(b, z, order.modulus);
    let phase = poly_of(b, z, order.phase);
    let phase = b.mul(phase, inverse);

    // r - pi/4, or a right angle more where that is closer to 0.
    let (quadrant, r, r_low) = reduce(b, x);
    let zero = b.constant(0.0);
    let (eighth, minus_eighth) =
        (b.constant(std::f64::consts::FRAC_PI_4), b.constant(-std::f64::consts::FRAC_PI_4));
    let (eighth_low, minus_eighth_low) =
        (b.constant(3.061616997868383e-17), b.constant(-3.061616997868383e-17));
    let negative = b.lt(r, zero);
    let by = b.select(negative, eighth, minus_eighth);
    let by_low = b.select(negative, eighth_low, minus_eighth_low);
    let (start, start_less) = (b.int(-order.behind), b.int(-order.behind - 1));
    let turns = b.select_int(negative, start_less, start);
    let quadrant = b.int_add(quadrant, turns);
    let (t, lost) = two_sum(b, r, by);
    let low = b.add(lost, by_low);
    let low = b.add(low, r_low);
    let (t, lost) = two_sum(b, t, phase);
    let low = b.add(low, lost);
    let (t, low) = two_sum(b, t, low);

    let sine = wave(b, quadrant, t, low);
    let unit = b.int(1);
    let next = b.int_add(quadrant, unit);
    let cosine = wave(b, next, t, low);
    let factor = b.constant(0.7978845608028654);
    let root = b.sqrt(x);
    let envelope = b.div(factor, root);
    let envelope = b.mul(envelope, modulus);
    (b.mul(envelope, sine), b.mul(envelope, cosine))
}

/// The modified Bessel function of the first kind of order 0.
///
/// A polynomial in `x^2` below 8 (16 terms, error 2^-55), above `e^x / sqrt x` times one in `1/x` on either side of
/// 16 (16 terms, error 2^-54).
#[inline(always)]
pub fn cyl_bessel_i0<B: FloatOps>(b: &mut B, x: B::F) -> B::F {
    let size = b.abs(x);
    let z = b.mul(size, size);
    let small = poly_of(
        b,
        z,
        &[
            1.0,
            0.25,
            0.015624999999999977,
            0.00043402777777779505,
            6.781684027771296e-06,
            6.781684027919234e-08,
            4.709502795105348e-10,
            2.4028075678318145e-12,
            9.385965799722374e-15,
            2.896908911943955e-17,
            7.242074023232607e-20,
            1.4967788365810095e-22,
            2.5901730139031223e-25,
            3.9335500269592676e-28,
            4.199213785396858e-31,
            8.566974102061117e-34,
        ],
    );
    modified(
        b,
        size,
        small,
        &[
            0.40052897918718267,
            0.0517124928122482,
            0.03108353379079691,
            0.03586438621039007,
            0.06319051385558234,
            0.15333709201295945,
            0.48379411386188026,
            1.915236814086934,
            9.302177601543903,
            54.78378662057509,
            374.1019572397224,
            2759.6243774886548,
            40335.44672368314,
            828439.3164623658,
            4834538.823724041,
            -53435264.87835042,
        ],
        &[
            0.4038923361468227,
            0.05609571928059154,
            0.03984538506609152,
            0.062238968110557236,
            0.18367424971699237,
            0.8871473559192731,
            3.768177292211355,
            -19.106787173891686,
            -510.21897415291517,
            -1527.9636215160306,
            41019.34175168034,
            197349.88693031855,
            -3831233.0328805116,
            -11789773.588313507,
            299382313.27126944,
            45775157.71723748,
        ],
    )
}

/// The modified Bessel function of the first kind of order 1, as [`cyl_bessel_i0`].
#[inline(always)]
pub fn cyl_bessel_i1<B: FloatOps>(b: &mut B, x: B::F) -> B::F {
    let size = b.abs(x);
    let z = b.mul(size, size);
    let p = poly_of(
        b,
        z,
        &[
            0.5,
            0.06249999999999995,
            0.0026041666666667407,
            5.4253472222178126e-05,
            6.781684027911078e-07,
            5.651403354119877e-09,
            3.363930596012752e-11,
            1.5017545159504082e-13,
            5.214436772513835e-16,
            1.4484120115329982e-18,
            3.292983550876898e-21,
            6.215257976835213e-24,
            1.0239338950490274e-26,
            1.168493594660355e-29,
            2.5893030584590247e-32,
        ],
    );
    let small = b.mul(p, size);
    let result = modified(
        b,
        size,
        small,
        &[
            0.394220213406121,
            -0.15265274530923525,
            -0.050961398810871174,
            -0.04937623965771945,
            -0.07986853460225762,
            -0.18416871575914492,
            -0.5616328896573248,
            -2.1697788753723053,
            -10.34533069574019,
            -60.03805464192633,
            -405.86900105749055,
            -2973.767483707967,
            -42424.70536548133,
            -865940.6191050751,
            -5215331.601430599,
            53350310.77490363,
        ],
        &[
            0.38446685410720083,
            -0.15969829015857495,
            -0.0627490322212862,
            -0.08175866351782275,
            -0.2195135287235965,
            -1.0113858056291474,
            -4.351419793557399,
            18.252931458593377,
            543.0917677560205,
            1840.462233724366,
            -42216.33494381215,
            -226095.65870842387,
            3916307.193754098,
            14128028.536473392,
            -307792150.2964452,
            -177221650.5284446,
        ],
    );
    copy_sign(b, result, x)
}

#[inline(always)]
fn modified<B: FloatOps>(b: &mut B, x: B::F, small: B::F, far: &[f64], near: &[f64]) -> B::F {
    let one = b.constant(1.0);
    let w = b.div(one, x);
    let cut = b.constant(1.0 / 16.0);
    let is_far = b.lt(w, cut);
    let (far_centre, near_centre) = (b.constant(1.0 / 32.0), b.constant(3.0 / 32.0));
    let centre = b.select(is_far, far_centre, near_centre);
    let from_centre = b.sub(w, centre);
    let p = either_poly(b, is_far, from_centre, far, near);
    let root = b.sqrt(x);
    let p = b.div(p, root);
    let (head, tail, n) = exp_parts(b, x, None);
    let power = b.add(head, tail);
    let product = b.mul(power, p);
    let large = scaled(b, product, n);
    let limit = b.constant(LARGE);
    let is_small = b.lt(x, limit);
    let result = b.select(is_small, small, large);
    let inf = b.constant(f64::INFINITY);
    let finite = b.lt(x, inf);
    b.select(finite, result, x)
}
