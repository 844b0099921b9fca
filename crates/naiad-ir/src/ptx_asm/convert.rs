//! `cvt`: conversions, of one number or of two side by side.

use super::instr::{Shape, Ty, clamped, flushed, from_f64, to_f64};
use crate::scalar::{Rounding, cast_bits};
use crate::types::Scalar;

/// How the fraction goes where a float becomes an integer.
#[derive(Copy, Clone)]
enum Integral {
    Nearest,
    Zero,
    Down,
    Up,
}

#[derive(Copy, Clone)]
struct Options {
    rounding: Rounding,
    integral: Option<Integral>,
    ftz: bool,
    sat: bool,
    satfinite: bool,
    relu: bool,
}

fn shape(
    target: Ty,
    sources: &[Ty],
    f: impl Fn(&[u64]) -> u64 + Send + Sync + 'static,
) -> Option<Shape> {
    Some(Shape { f: Box::new(f), target, sources: sources.to_vec() })
}

pub(super) fn compile(operands: usize, mods: &mut Vec<&str>, types: &[Ty]) -> Option<Shape> {
    let mut take = |word: &str| {
        let at = mods.iter().position(|m| *m == word);
        at.map(|i| mods.remove(i)).is_some()
    };
    if take("pack") {
        return if take("sat") { pack(types) } else { None };
    }
    let &[to, from] = types else { return None };
    if to.is_tf32() {
        let away = take("rna");
        (away || take("rn")).then_some(())?;
        return shape(to, &[from], move |x| tf32(x[0], away));
    }
    let integral = match () {
        () if take("rni") => Some(Integral::Nearest),
        () if take("rzi") => Some(Integral::Zero),
        () if take("rmi") => Some(Integral::Down),
        () if take("rpi") => Some(Integral::Up),
        () => None,
    };
    let rounding = if take("rz") { Rounding::TowardZero } else { Rounding::Nearest };
    take("rn");
    let options = Options {
        rounding,
        integral,
        ftz: take("ftz"),
        sat: take("sat"),
        satfinite: take("satfinite"),
        relu: take("relu"),
    };
    let one = lane(to, from, options)?;
    let (width, source) = (to.lane(), from.lane());
    match (to.lanes(), from.lanes(), operands) {
        (1, 1, 2) => shape(to, &[from], move |x| one(x[0])),
        // The first of two operands becomes the upper half.
        (2, 1, 3) => shape(to, &[from; 2], move |x| one(x[0]) << width | one(x[1])),
        (2, 2, 2) => shape(to, &[from], move |x| {
            let low = super::mask(source);
            one(x[0] >> source & low) << width | one(x[0] & low)
        }),
        _ => None,
    }
}

/// One number.
fn lane(
    to: Ty,
    from: Ty,
    o: Options,
) -> Option<impl Fn(u64) -> u64 + Send + Sync + Copy + 'static> {
    let (s, d) = (from.each(), to.each());
    if !(s.is_some() || from.is_int()) || !(d.is_some() || to.is_int()) {
        return None;
    }
    // Toward zero a long integer would be rounded twice.
    if s.is_none() && d.is_some() && o.rounding != Rounding::Nearest && from.lane() == 64 {
        return None;
    }
    if d.is_none() && s.is_some() && o.integral.is_none() {
        return None;
    }
    Some(move |x: u64| {
        let x = match s {
            Some(s) if o.ftz => flushed(s, x),
            _ => x,
        };
        match (s, d) {
            (None, None) if o.sat => to.saturate(from.number(x)),
            (None, None) => from.number(x) as u64 & super::mask(to.lane()),
            (None, Some(d)) => match o.rounding {
                Rounding::Nearest => {
                    // Through the widest integer of the same sign.
                    let (wide, image) = match from.is_signed() {
                        true => (Scalar::I64, from.number(x) as i64 as u64),
                        false => (Scalar::U64, x),
                    };
                    finish(d, cast_bits(wide, d, Rounding::Nearest, image), o)
                }
                Rounding::TowardZero => {
                    let exact = (from.number(x) as f64).to_bits();
                    finish(d, cast_bits(Scalar::F64, d, Rounding::TowardZero, exact), o)
                }
            },
            // A NaN is 0 only where neither side has 64 bits.
            (Some(s), None) if to_f64(s, x).is_nan() && (s == Scalar::F64 || to.lane() == 64) => {
                1 << (to.lane() - 1)
            }
            (Some(s), None) => {
                // `as` saturates, and makes NaN 0.
                to.saturate(integral(to_f64(s, x), o.integral) as i128)
            }
            (Some(s), Some(d)) => {
                let number = to_f64(s, x);
                let rounded = if o.integral.is_some() {
                    from_f64(d, integral(number, o.integral))
                } else if d.is_fp8() && number.is_nan() {
                    // The one NaN that the instruction gives.
                    0x7f
                } else {
                    cast_bits(s, d, o.rounding, x)
                };
                finish(d, rounded, o)
            }
        }
    })
}

fn finish(d: Scalar, x: u64, o: Options) -> u64 {
    let x = if o.ftz { flushed(d, x) } else { x };
    let x = if o.sat { clamped(d, x, Some(1.0)) } else { x };
    let x = if o.relu { clamped(d, x, None) } else { x };
    if !o.satfinite || d.is_fp8() {
        return x;
    }
    let number = to_f64(d, x);
    if !number.is_infinite() {
        return x;
    }
    // The image before infinity's is the largest number.
    x - 1
}

fn integral(x: f64, how: Option<Integral>) -> f64 {
    match how {
        Some(Integral::Nearest) => x.round_ties_even(),
        Some(Integral::Zero) => x.trunc(),
        Some(Integral::Down) => x.floor(),
        Some(Integral::Up) => x.ceil(),
        None => x,
    }
}

/// Ten bits of significand, the rest zero.
fn tf32(image: u64, away: bool) -> u64 {
    let x = image as u32;
    if x & 0x7f80_0000 == 0x7f80_0000 {
        return if x & 0x7f_ffff != 0 { 0x7fff_ffff } else { image };
    }
    let half = if away { 0x1000 } else { 0xfff + (x >> 13 & 1) };
    u64::from(x.wrapping_add(half) & !0x1fff)
}

/// `cvt.pack.sat`: two integers saturated side by side, below what a third brings.
fn pack(types: &[Ty]) -> Option<Shape> {
    let word = Ty::bits_of(32)?;
    match *types {
        [to, from] if to.lane() == 16 && from.is_int() && to.is_int() => {
            shape(word, &[from; 2], move |x| {
                to.saturate(from.number(x[0])) << 16 | to.saturate(from.number(x[1]))
            })
        }
        [to, from, rest] if to.lane() == 8 && from.is_int() && to.is_int() && rest == word => {
            shape(word, &[from, from, word], move |x| {
                let two = to.saturate(from.number(x[0])) << 8 | to.saturate(from.number(x[1]));
                (x[2] << 16 | two) & super::mask(32)
            })
        }
        _ => None,
    }
}
