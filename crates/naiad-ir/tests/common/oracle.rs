//! Elementary functions in double-double arithmetic, about 100 bits: slow, simple, and sharing no
//! code or coefficients with the functions under test (series instead of minimax polynomials; only
//! the digits of 2/pi are the same).

/// The unevaluated sum of a number and a much smaller one.
pub type Double = (f64, f64);

/// `sum * 2^n`, which may be out of the range of an `f64` or among its subnormals.
#[derive(Copy, Clone)]
pub struct Exact {
    pub sum: Double,
    pub n: i32,
}

impl From<Double> for Exact {
    fn from(sum: Double) -> Exact {
        Exact { sum, n: 0 }
    }
}

impl Exact {
    /// The nearest `f64`, but for a second rounding.
    pub fn rounded(self) -> f64 {
        scale(self.sum, self.n).0
    }
}

const LN2: Double = (std::f64::consts::LN_2, 2.3190468138462996e-17);
const LN2_THIRD: f64 = 5.707708438416212e-34;
const PI_2: Double = (std::f64::consts::FRAC_PI_2, 6.123233995736766e-17);
const TWO_OVER_SQRT_PI: Double = (std::f64::consts::FRAC_2_SQRT_PI, 1.533545961316588e-17);

fn two_sum(x: f64, y: f64) -> Double {
    let sum = x + y;
    let part = sum - x;
    (sum, (x - (sum - part)) + (y - part))
}

fn fast_two_sum(x: f64, y: f64) -> Double {
    let sum = x + y;
    (sum, y - (sum - x))
}

fn add(x: Double, y: Double) -> Double {
    let (high, low) = two_sum(x.0, y.0);
    let (low_high, low_low) = two_sum(x.1, y.1);
    let (high, low) = fast_two_sum(high, low + low_high);
    fast_two_sum(high, low + low_low)
}

fn neg(x: Double) -> Double {
    (-x.0, -x.1)
}

fn mul(x: Double, y: Double) -> Double {
    let high = x.0 * y.0;
    let low = x.0.mul_add(y.0, -high) + (x.0 * y.1 + x.1 * y.0);
    fast_two_sum(high, low)
}

fn div(x: Double, y: Double) -> Double {
    let first = x.0 / y.0;
    let rest = add(x, neg(mul(y, (first, 0.0))));
    let second = rest.0 / y.0;
    let rest = add(rest, neg(mul(y, (second, 0.0))));
    add(fast_two_sum(first, second), (rest.0 / y.0, 0.0))
}

/// `x * 2^n`, in two steps that stay in range if the result does.
pub fn scale(x: Double, n: i32) -> Double {
    let step = |n: i32| f64::from_bits(((n + 1023) as u64) << 52);
    let (a, b) = (step(n / 2), step(n - n / 2));
    (x.0 * a * b, x.1 * a * b)
}

/// The sum of a series whose term `n` is the term before times `next(n)`, until it stops mattering.
fn series(first: Double, mut next: impl FnMut(u32) -> Double) -> Double {
    let (mut sum, mut term) = (first, first);
    for n in 1..400 {
        term = mul(term, next(n));
        sum = add(sum, term);
        if term.0.abs() <= sum.0.abs() * 1e-33 {
            break;
        }
    }
    sum
}

/// `e^x - 1` for `|x|` up to about 1.
fn exp_minus_one(x: Double) -> Double {
    series(x, |n| div(x, (f64::from(n + 1), 0.0)))
}

/// `(e^r, n)` with `e^x = 2^n e^r`, for `|x|` below 2000.
fn exp_split(x: Double) -> (Double, i32) {
    let n = (x.0 / LN2.0).round();
    let r = add(x, neg(mul((n, 0.0), LN2)));
    let r = add(r, (-n * LN2_THIRD, 0.0));
    (add((1.0, 0.0), exp_minus_one(r)), n as i32)
}

pub fn exp(x: f64) -> Exact {
    if x.is_nan() || x.abs() >= 800.0 {
        return (x.exp(), 0.0).into();
    }
    let (sum, n) = exp_split((x, 0.0));
    Exact { sum, n }
}

pub fn exp2(x: f64) -> Exact {
    if x.is_nan() || x.abs() >= 1100.0 {
        return (x.exp2(), 0.0).into();
    }
    let n = x.round();
    let sum = add((1.0, 0.0), exp_minus_one(mul((x - n, 0.0), LN2)));
    Exact { sum, n: n as i32 }
}

/// The natural logarithm by one Newton step for `e^y = x` from a good guess.
pub fn log(x: f64) -> Double {
    if !(x > 0.0 && x < f64::INFINITY) {
        return (x.ln(), 0.0);
    }
    let (m, e) = normalized(x);
    let guess = m.ln();
    // x e^-guess - 1 is about 1e-16, so its logarithm is itself, less half its square.
    let inverse = exp_minus_one((-guess, 0.0));
    let rest = add((m - 1.0, 0.0), mul((m, 0.0), inverse));
    let rest = add(rest, (-0.5 * rest.0 * rest.0, 0.0));
    let log_m = add((guess, 0.0), rest);
    let shift = add(mul((e, 0.0), LN2), (e * LN2_THIRD, 0.0));
    add(shift, log_m)
}

pub fn log2(x: f64) -> Double {
    if !(x > 0.0 && x < f64::INFINITY) {
        return (x.log2(), 0.0);
    }
    let (m, e) = normalized(x);
    add((e, 0.0), div(log(m), LN2))
}

/// `(m, e)` with `x = m 2^e` and `m` in about `[0.7, 1.4)`.
fn normalized(x: f64) -> (f64, f64) {
    let lifted = if x < f64::MIN_POSITIVE { x * 2f64.powi(54) } else { x };
    let lift = if x < f64::MIN_POSITIVE { 54 } else { 0 };
    let stored = (lifted.to_bits() >> 52) as i32 - 1023;
    let m = f64::from_bits(lifted.to_bits() & (u64::MAX >> 12) | 1023 << 52);
    let (m, stored) =
        if m > std::f64::consts::SQRT_2 { (m / 2.0, stored + 1) } else { (m, stored) };
    (m, f64::from(stored - lift))
}

pub fn sqrt(x: f64) -> Double {
    if !(x > 0.0 && x < f64::INFINITY) {
        return (x.sqrt(), 0.0);
    }
    // The operand is brought near 1 by an even power of two, so that the residual is exact.
    let e = (((x.to_bits() >> 52) as i32 - 1023) / 2) * 2;
    let m = scale((x, 0.0), -e).0;
    let root = m.sqrt();
    let rest = (-root).mul_add(root, m) / (2.0 * root);
    scale((root, rest), e / 2)
}

pub fn rsqrt(x: f64) -> Double {
    if !(x > 0.0 && x < f64::INFINITY) {
        return (1.0 / x.sqrt(), 0.0);
    }
    div((1.0, 0.0), sqrt(x))
}

pub fn tanh(x: f64) -> Double {
    if x.is_nan() || x.abs() >= 40.0 || x == 0.0 {
        return (x.tanh(), 0.0);
    }
    // tanh x = (e^2x - 1) / (e^2x + 1).
    let twice = (2.0 * x, 0.0);
    let less_one = if x.abs() < 0.5 {
        exp_minus_one(twice)
    } else {
        let (power, n) = exp_split(twice);
        add(scale(power, n), (-1.0, 0.0))
    };
    div(less_one, add(less_one, (2.0, 0.0)))
}

/// `erf x = 2/sqrt(pi) e^(-x^2) x sum (2 x^2)^n / (1 3 5 ... (2n+1))`: every term is positive.
pub fn erf(x: f64) -> Double {
    if x.is_nan() || x.abs() >= 7.0 || x == 0.0 {
        return (if x.is_nan() || x == 0.0 { x } else { x.signum() }, 0.0);
    }
    if x.abs() < 1e-150 {
        // The square would underflow; the series is its first term.
        return mul(TWO_OVER_SQRT_PI, (x, 0.0));
    }
    let square = mul((x, 0.0), (x, 0.0));
    let twice = (2.0 * square.0, 2.0 * square.1);
    let sum = series((x, 0.0), |n| div(twice, (f64::from(2 * n + 1), 0.0)));
    let (power, n) = exp_split(neg(square));
    mul(mul(scale(power, n), sum), TWO_OVER_SQRT_PI)
}

pub fn sin(x: f64) -> Double {
    if !x.is_finite() || x == 0.0 {
        return (x.sin(), 0.0);
    }
    let (quadrant, r) = reduce(x.abs());
    let result = wave(quadrant, r);
    if x < 0.0 { neg(result) } else { result }
}

pub fn cos(x: f64) -> Double {
    if !x.is_finite() {
        return (f64::NAN, 0.0);
    }
    let (quadrant, r) = reduce(x.abs());
    wave(quadrant + 1, r)
}

/// `sin(quadrant * pi/2 + r)` by the Taylor series.
fn wave(quadrant: u64, r: Double) -> Double {
    let minus_square = neg(mul(r, r));
    let term = |k: u32| div(minus_square, (f64::from(k * (k + 1)), 0.0));
    let value = if quadrant.is_multiple_of(2) {
        series(r, |n| term(2 * n))
    } else {
        series((1.0, 0.0), |n| term(2 * n - 1))
    };
    if quadrant & 2 != 0 { neg(value) } else { value }
}

/// Quadrant and remainder of `x >= 0` by `pi/2`, from a product with 256 bits of `2/pi`.
fn reduce(x: f64) -> (u64, Double) {
    if x < std::f64::consts::FRAC_PI_4 {
        return (0, (x, 0.0));
    }
    let e = (x.to_bits() >> 52) as i64 - 1023 - 52;
    let m = x.to_bits() & (u64::MAX >> 12) | 1 << 52;
    // The first bit that matters has the weight 2^(1 - e) in 2/pi, and so 2 in the product.
    let word = |from: i64| (0..64).fold(0u64, |w, i| w << 1 | bit(from + i));
    let mut product = [0u64; 4];
    let mut carry = 0u128;
    for i in (0..4).rev() {
        let sum = u128::from(m) * u128::from(word(e - 2 + 64 * i as i64)) + carry;
        product[i] = sum as u64;
        carry = sum >> 64;
    }
    let quadrant = product[0] >> 62;
    // The fraction, as signed fixed point with the quadrant shifted out.
    let shifted = |i: usize| product[i] << 2 | product.get(i + 1).map_or(0, |w| w >> 62);
    let negative = shifted(0) >> 63 == 1;
    let flip = if negative { u64::MAX } else { 0 };
    let mut fraction = (0.0, 0.0);
    for i in 0..3 {
        let word = shifted(i) ^ flip;
        let unit = 2f64.powi(-64 * (i as i32 + 1));
        let (high, low) = ((word >> 32) as f64 * 4294967296.0, (word & 0xffffffff) as f64);
        fraction = add(fraction, two_sum(high * unit, low * unit));
    }
    let r = mul(fraction, PI_2);
    if negative { (quadrant + 1, neg(r)) } else { (quadrant, r) }
}

/// The bit of weight `2^-(at + 1)` of `2/pi`.
fn bit(at: i64) -> u64 {
    if at < 0 { 0 } else { TWO_OVER_PI[at as usize / 64] >> (63 - at % 64) & 1 }
}

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
