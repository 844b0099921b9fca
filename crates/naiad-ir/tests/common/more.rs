//! The functions beyond `tl.math`: what fp32 is measured against, and exact values in fp64.

use super::{Function, error, oracle, row};
use naiad_ir::scalar::{BinaryFn, UnaryFn};
use naiad_ir::types::Scalar;
use oracle::Exact;

const UNUSED: fn(f64) -> Exact = |_| (f64::NAN, 0.0).into();

/// `r` with `x = n + r`, and the sign of `cos(pi n)`.
fn turn(x: f64) -> (f64, f64) {
    let n = x.round_ties_even();
    (x - n, if n % 2.0 == 0.0 { 1.0 } else { -1.0 })
}

fn sinpi(x: f64) -> f64 {
    let (r, sign) = turn(x);
    let sine = (std::f64::consts::PI * r).sin() * sign;
    if r == 0.0 { 0f64.copysign(x) } else { sine }
}

fn cospi(x: f64) -> f64 {
    let (r, sign) = turn(x);
    let left = 0.5 - r.abs();
    if left == 0.0 { 0.0 } else { (std::f64::consts::PI * left).sin() * sign }
}

fn logb(x: f64) -> f64 {
    match x.abs() {
        0.0 => f64::NEG_INFINITY,
        // Every fp32 is normal in fp64.
        size if size.is_finite() => ((size.to_bits() >> 52) as i64 - 1023) as f64,
        size => size,
    }
}

/// Measured in fp32; fp64 has vectors.
#[rustfmt::skip]
pub const FUNCTIONS: &[Function] = &[
    measured(UnaryFn::Exp10, 1.0, |x| 10f64.powf(x)),
    measured(UnaryFn::Expm1, 2.0, f64::exp_m1),
    measured(UnaryFn::Log10, 1.0, f64::log10),
    measured(UnaryFn::Log1p, 2.0, f64::ln_1p),
    measured(UnaryFn::Tan, 2.0, f64::tan),
    measured(UnaryFn::Sinpi, 2.0, sinpi),
    measured(UnaryFn::Cospi, 2.0, cospi),
    measured(UnaryFn::Asin, 2.0, f64::asin),
    measured(UnaryFn::Acos, 2.0, f64::acos),
    measured(UnaryFn::Atan, 2.0, f64::atan),
    measured(UnaryFn::Sinh, 2.0, f64::sinh),
    measured(UnaryFn::Cosh, 2.0, f64::cosh),
    measured(UnaryFn::Asinh, 2.0, libm::asinh),
    measured(UnaryFn::Acosh, 2.0, |x| if x < 1.0 { f64::NAN } else { libm::acosh(x) }),
    measured(UnaryFn::Atanh, 2.0, libm::atanh),
    measured(UnaryFn::Cbrt, 1.0, f64::cbrt),
    measured(UnaryFn::Erfc, 2.0, libm::erfc),
    measured(UnaryFn::SqrtRn, 0.5, f64::sqrt),
    measured(UnaryFn::Trunc, 0.0, f64::trunc),
    measured(UnaryFn::Round, 0.0, f64::round),
    measured(UnaryFn::Rint, 0.0, f64::round_ties_even),
    measured(UnaryFn::Logb, 0.0, logb),
];

const fn measured(f: UnaryFn, bound: f64, exact: fn(f64) -> f64) -> Function {
    row(f, (bound, f64::INFINITY), exact, UNUSED, super::ANY)
}

/// Stated bounds in fp64, in ulp. Of a Bessel function it is the ulp of its envelope where that is
/// larger, of `lgamma` of a negative number that of 1.
pub const VECTOR_BOUNDS: &[(&str, f64)] = &[
    ("exp10", 1.0),
    ("expm1", 2.0),
    ("log10", 1.0),
    ("log1p", 2.0),
    ("tan", 2.0),
    ("sinpi", 2.0),
    ("cospi", 2.0),
    ("asin", 2.0),
    ("acos", 2.0),
    ("atan", 2.0),
    ("sinh", 2.0),
    ("cosh", 2.0),
    ("asinh", 2.0),
    ("acosh", 2.0),
    ("atanh", 2.0),
    ("cbrt", 1.0),
    ("erfc", 2.0),
    ("erfcx", 4.0),
    ("erfinv", 4.0),
    ("erfcinv", 4.0),
    ("normcdf", 4.0),
    ("normcdfinv", 4.0),
    ("lgamma", 4.0),
    ("tgamma", 5.0),
    ("j0", 6.0),
    ("j1", 6.0),
    ("y0", 12.0),
    ("y1", 12.0),
    ("i0", 5.0),
    ("i1", 5.0),
    ("pow", 1.0),
    ("atan2", 2.0),
    ("hypot", 1.0),
    ("fmod", 0.0),
    ("remainder", 0.0),
];

/// An exact value.
pub struct Vector<'a> {
    pub name: &'a str,
    pub arguments: Vec<f64>,
    pub exact: Exact,
}

/// The lines of a file that `vectors.py` made.
pub fn vectors(text: &str) -> impl Iterator<Item = Vector<'_>> {
    text.lines().map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        let image = |w: &&str| f64::from_bits(u64::from_str_radix(w, 16).expect("an image"));
        let [name, arguments @ .., high, low, n] = words.as_slice() else {
            panic!("not a vector: {line}")
        };
        let n = n.parse().expect("an exponent");
        let exact = Exact { sum: (image(high), image(low)), n };
        Vector { name, arguments: arguments.iter().map(image).collect(), exact }
    })
}

impl Vector<'_> {
    /// The error of the function in ulp.
    pub fn error(&self) -> f64 {
        let bits: Vec<u64> = self.arguments.iter().map(|x| x.to_bits()).collect();
        let image = match bits.as_slice() {
            [x] => UnaryFn::from_name(self.name).and_then(|f| f.eval(Scalar::F64, *x)),
            [x, y] => BinaryFn::from_name(self.name).and_then(|f| f.eval(Scalar::F64, *x, *y)),
            _ => None,
        };
        let got = f64::from_bits(image.expect("a function of the table"));
        let rounded = self.exact.rounded();
        let error = error(self.exact, rounded, got, 52, -1022);
        let x = self.arguments[0];
        let floor = match self.name {
            "j0" | "j1" | "y0" | "y1" => (0.7978845608028654 / x.abs().sqrt()).min(1.0),
            "lgamma" if x < 0.0 => 1.0,
            _ => return error,
        };
        let exponent = |x: f64| ((x.to_bits() >> 52) & 0x7ff) as i32;
        // A result of the wrong sign close to a zero is small beside the envelope too.
        let error = if error.is_finite() {
            error
        } else {
            (got - rounded).abs() * 2f64.powi(52 - (exponent(rounded) - 1023))
        };
        let larger = (exponent(floor) - exponent(rounded)).max(0);
        error * 2f64.powi(-larger)
    }
}

/// The error of an fp32 result in ulp.
pub fn error_f32(exact: f64, got: f32) -> f64 {
    error((exact, 0.0).into(), f64::from(exact as f32), f64::from(got), 23, -126)
}

/// A function of two arguments in fp32, what it is measured against, and the stated bound.
pub type Pair = (BinaryFn, fn(f64, f64) -> f64, f64);

#[rustfmt::skip]
pub const PAIRS: &[Pair] = &[
    (BinaryFn::Pow, f64::powf, 1.0),
    (BinaryFn::Atan2, f64::atan2, 2.0),
    (BinaryFn::Hypot, f64::hypot, 1.0),
    (BinaryFn::Fmod, |x, y| x % y, 0.0),
    (BinaryFn::Remainder, libm::remainder, 0.0),
];

/// Arguments `i` of the sample: any images, or near 1 with a moderate second one.
pub fn pair(i: u64) -> (f32, f32) {
    let random = super::mix(i);
    if i.is_multiple_of(2) {
        return (f32::from_bits(random as u32), f32::from_bits((random >> 32) as u32));
    }
    let unit = |r: u32| (r >> 8) as f32 / (1 << 24) as f32;
    (unit(random as u32) * 4.0, unit((random >> 32) as u32) * 80.0 - 40.0)
}

/// The error of one result for the sample's arguments `i`.
pub fn pair_error(f: BinaryFn, exact: fn(f64, f64) -> f64, i: u64) -> f64 {
    let (x, y) = pair(i);
    let image = f.eval(Scalar::F32, u64::from(x.to_bits()), u64::from(y.to_bits()));
    let got = f32::from_bits(image.expect("a function of fp32") as u32);
    error_f32(exact(f64::from(x), f64::from(y)), got)
}
