//! Instructions: from an opcode with its types to a function of images.

use super::mask;
use crate::scalar::{BinaryFn, Rounding, TernaryFn, UnaryFn, cast_bits};
use crate::types::Scalar;

/// From the images of the sources to that of the result. Sources come masked to their types.
pub(super) type Function = Box<dyn Fn(&[u64]) -> u64 + Send + Sync>;

/// What an opcode takes and gives.
pub(super) struct Shape {
    pub f: Function,
    pub target: Ty,
    pub sources: Vec<Ty>,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Kind {
    Bits,
    Unsigned,
    Signed,
    Float(Scalar),
    Tf32,
    Predicate,
}

/// A type of PTX: lanes of a kind side by side, mostly one.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Ty {
    kind: Kind,
    lane: u32,
    lanes: u32,
}

const fn ty(kind: Kind, lane: u32, lanes: u32) -> Ty {
    Ty { kind, lane, lanes }
}

const U32: Ty = ty(Kind::Unsigned, 32, 1);
const F32: Ty = ty(Kind::Float(Scalar::F32), 32, 1);

impl Ty {
    pub const PRED: Ty = ty(Kind::Predicate, 1, 1);

    pub fn from_name(name: &str) -> Option<Ty> {
        Some(match name {
            "pred" => Ty::PRED,
            "f16" => ty(Kind::Float(Scalar::F16), 16, 1),
            "f16x2" => ty(Kind::Float(Scalar::F16), 16, 2),
            "bf16" => ty(Kind::Float(Scalar::BF16), 16, 1),
            "bf16x2" => ty(Kind::Float(Scalar::BF16), 16, 2),
            "f32" => F32,
            "f32x2" => ty(Kind::Float(Scalar::F32), 32, 2),
            "f64" => ty(Kind::Float(Scalar::F64), 64, 1),
            "e4m3x2" => ty(Kind::Float(Scalar::F8E4NV), 8, 2),
            "e5m2x2" => ty(Kind::Float(Scalar::F8E5), 8, 2),
            "tf32" => ty(Kind::Tf32, 32, 1),
            _ => {
                let kind = match name.get(..1)? {
                    "b" => Kind::Bits,
                    "u" => Kind::Unsigned,
                    "s" => Kind::Signed,
                    _ => return None,
                };
                let bits = name.get(1..)?.parse().ok()?;
                return matches!(bits, 8 | 16 | 32 | 64).then_some(ty(kind, bits, 1));
            }
        })
    }

    pub fn bits_of(bits: u32) -> Option<Ty> {
        matches!(bits, 8 | 16 | 32).then_some(ty(Kind::Bits, bits, 1))
    }

    pub fn bits(self) -> u32 {
        self.lane * self.lanes
    }

    pub fn is_signed(self) -> bool {
        self.kind == Kind::Signed
    }

    /// The type of one float.
    pub fn float(self) -> Option<Scalar> {
        match self.kind {
            Kind::Float(s) if self.lanes == 1 => Some(s),
            _ => None,
        }
    }

    /// The type of each float of one or more.
    pub fn each(self) -> Option<Scalar> {
        match self.kind {
            Kind::Float(s) => Some(s),
            _ => None,
        }
    }

    pub fn is_tf32(self) -> bool {
        self.kind == Kind::Tf32
    }

    /// Bits of one lane.
    pub fn lane(self) -> u32 {
        self.lane
    }

    pub fn lanes(self) -> u32 {
        self.lanes
    }

    pub fn is_int(self) -> bool {
        matches!(self.kind, Kind::Bits | Kind::Unsigned | Kind::Signed)
    }

    pub fn number(self, image: u64) -> i128 {
        if self.is_signed() {
            let unused = 64 - self.lane;
            i128::from((image << unused) as i64 >> unused)
        } else {
            i128::from(image & mask(self.lane))
        }
    }

    pub fn saturate(self, x: i128) -> u64 {
        let (lo, hi) = match self.is_signed() {
            true => (-(1i128 << (self.lane - 1)), (1i128 << (self.lane - 1)) - 1),
            false => (0, i128::from(mask(self.lane))),
        };
        x.clamp(lo, hi) as u64 & mask(self.lane)
    }
}

struct Instruction<'a> {
    base: &'a str,
    mods: Vec<&'a str>,
    types: Vec<Ty>,
    operands: usize,
}

/// The meaning of an opcode with so many operands; none if it is not known here, down to each modifier.
pub(super) fn compile(opcode: &str, operands: usize) -> Option<Shape> {
    let mut words = opcode.split('.');
    let base = words.next()?;
    let mut mods: Vec<&str> = words.collect();
    let mut types = Vec::new();
    while let Some(ty) = mods.last().and_then(|word| Ty::from_name(word)) {
        types.insert(0, ty);
        mods.pop();
    }
    let mut instruction = Instruction { base, mods, types, operands };
    let shape = instruction.compile()?;
    instruction.mods.is_empty().then_some(shape)
}

fn shape(
    target: Ty,
    sources: &[Ty],
    f: impl Fn(&[u64]) -> u64 + Send + Sync + 'static,
) -> Option<Shape> {
    Some(Shape { f: Box::new(f), target, sources: sources.to_vec() })
}

/// Lane by lane.
fn lanes(ty: Ty, n: usize, f: impl Fn(&[u64]) -> u64 + Send + Sync + 'static) -> Option<Shape> {
    let sources = vec![ty; n];
    if ty.lanes == 1 {
        return shape(ty, &sources, f);
    }
    shape(ty, &sources, move |x| {
        let mut out = 0;
        for lane in 0..ty.lanes {
            let shift = lane * ty.lane;
            let mut one = [0; 3];
            for (o, x) in one.iter_mut().zip(x) {
                *o = x >> shift & mask(ty.lane);
            }
            out |= (f(&one[..n]) & mask(ty.lane)) << shift;
        }
        out
    })
}

impl Instruction<'_> {
    fn take(&mut self, word: &str) -> bool {
        let at = self.mods.iter().position(|m| *m == word);
        at.map(|i| self.mods.remove(i)).is_some()
    }

    fn compile(&mut self) -> Option<Shape> {
        match self.base {
            "cvt" => return super::convert::compile(self.operands, &mut self.mods, &self.types),
            "dp4a" => return self.dot(),
            _ => {}
        }
        let &[t] = self.types.as_slice() else { return None };
        match self.base {
            "mov" => shape(t, &[t], |x| x[0]),
            "selp" => shape(t, &[t, t, Ty::PRED], |x| if x[2] != 0 { x[0] } else { x[1] }),
            "setp" => self.setp(t),
            "and" | "or" | "xor" | "not" | "cnot" if t.each().is_none() => self.logic(t),
            _ if t.each().is_some() => self.float(t),
            _ if t.is_int() => self.integer(t),
            _ => None,
        }
    }

    fn logic(&mut self, t: Ty) -> Option<Shape> {
        let m = mask(t.bits());
        match self.base {
            "and" => shape(t, &[t; 2], |x| x[0] & x[1]),
            "or" => shape(t, &[t; 2], |x| x[0] | x[1]),
            "xor" => shape(t, &[t; 2], |x| x[0] ^ x[1]),
            "not" => shape(t, &[t], move |x| !x[0] & m),
            _ => shape(t, &[t], |x| u64::from(x[0] == 0)),
        }
    }

    fn integer(&mut self, t: Ty) -> Option<Shape> {
        let bits = t.lane;
        let n = move |x: u64| t.number(x);
        let wrap = move |x: i128| x as u64 & mask(bits);
        // The half of a product that is asked for; a wide one is a type of twice the width.
        let wide = ty(t.kind, (2 * bits).min(64), 1);
        let product = self.base == "mul" || self.base == "mad";
        let part =
            if product { ["lo", "hi", "wide"].into_iter().find(|m| self.take(m)) } else { None };
        match (self.base, part) {
            ("mul", Some("lo")) => shape(t, &[t; 2], move |x| wrap(n(x[0]).wrapping_mul(n(x[1])))),
            ("mul", Some("hi")) => {
                shape(t, &[t; 2], move |x| wrap(n(x[0]).wrapping_mul(n(x[1])) >> bits))
            }
            ("mul", Some(_)) if bits < 64 => {
                shape(wide, &[t; 2], move |x| (n(x[0]) * n(x[1])) as u64 & mask(2 * bits))
            }
            ("mad", Some("lo")) => shape(t, &[t; 3], move |x| {
                wrap(n(x[0]).wrapping_mul(n(x[1])).wrapping_add(n(x[2])))
            }),
            ("mad", Some("hi")) => shape(t, &[t; 3], move |x| {
                wrap((n(x[0]).wrapping_mul(n(x[1])) >> bits).wrapping_add(n(x[2])))
            }),
            ("mad", Some(_)) if bits < 64 => shape(wide, &[t, t, wide], move |x| {
                (n(x[0]) * n(x[1])).wrapping_add(i128::from(x[2])) as u64 & mask(2 * bits)
            }),
            ("add" | "sub", _) => {
                let sign = if self.base == "add" { 1 } else { -1 };
                if self.take("sat") {
                    return shape(t, &[t; 2], move |x| t.saturate(n(x[0]) + sign * n(x[1])));
                }
                shape(t, &[t; 2], move |x| wrap(n(x[0]) + sign * n(x[1])))
            }
            ("div", _) => {
                shape(t, &[t; 2], move |x| wrap(n(x[0]).checked_div(n(x[1])).unwrap_or(0)))
            }
            ("rem", _) => {
                shape(t, &[t; 2], move |x| wrap(n(x[0]).checked_rem(n(x[1])).unwrap_or(n(x[0]))))
            }
            ("min", _) => shape(t, &[t; 2], move |x| wrap(n(x[0]).min(n(x[1])))),
            ("max", _) => shape(t, &[t; 2], move |x| wrap(n(x[0]).max(n(x[1])))),
            ("neg", _) => shape(t, &[t], move |x| wrap(-n(x[0]))),
            ("abs", _) => shape(t, &[t], move |x| wrap(n(x[0]).abs())),
            ("sad", _) => shape(t, &[t; 3], move |x| wrap(n(x[2]) + (n(x[0]) - n(x[1])).abs())),
            ("shl", _) => shape(t, &[t, U32], move |x| match x[1] < u64::from(bits) {
                true => x[0] << x[1] & mask(bits),
                false => 0,
            }),
            ("shr", _) => shape(t, &[t, U32], move |x| wrap(n(x[0]) >> x[1].min(u64::from(bits)))),
            ("popc", _) => shape(U32, &[t], |x| u64::from(x[0].count_ones())),
            ("clz", _) => shape(U32, &[t], move |x| u64::from(x[0].leading_zeros() - (64 - bits))),
            ("brev", _) => shape(t, &[t], move |x| x[0].reverse_bits() >> (64 - bits)),
            ("bfind", _) => {
                let distance = self.take("shiftamt");
                shape(U32, &[t], move |x| {
                    let x = if n(x[0]) < 0 { !x[0] & mask(bits) } else { x[0] };
                    match x.checked_ilog2() {
                        None => mask(32),
                        Some(at) => u64::from(if distance { bits - 1 - at } else { at }),
                    }
                })
            }
            ("bfe", _) => shape(t, &[t, U32, U32], move |x| {
                let (at, len) = (x[1] & 0xff, x[2] & 0xff);
                let top = (at + len).saturating_sub(1).min(u64::from(bits) - 1);
                let fill = t.is_signed() && len > 0 && x[0] >> top & 1 != 0;
                let bit = |i: u64| match i < len && at + i < u64::from(bits) {
                    true => x[0] >> (at + i) & 1,
                    false => u64::from(fill),
                };
                (0..u64::from(bits)).fold(0, |all, i| all | bit(i) << i)
            }),
            ("bfi", _) => shape(t, &[t, t, U32, U32], move |x| {
                let (at, len) = (x[2] & 0xff, (x[3] & 0xff).min(64) as u32);
                if at >= u64::from(bits) {
                    return x[1];
                }
                let field = mask(len) << at & mask(bits);
                x[1] & !field | x[0] << at & field
            }),
            ("lop3", _) => shape(t, &[t, t, t, U32], move |x| {
                let bit = |i: u32| {
                    let row = (x[0] >> i & 1) << 2 | (x[1] >> i & 1) << 1 | (x[2] >> i & 1);
                    (x[3] >> row & 1) << i
                };
                (0..bits).fold(0, |all, i| all | bit(i))
            }),
            ("prmt", _) => shape(t, &[t, t, U32], |x| {
                let bytes = x[1] << 32 | x[0];
                let pick = |i: u32| {
                    let how = x[2] >> (4 * i) & 15;
                    let byte = bytes >> (8 * (how & 7)) & 0xff;
                    let byte =
                        if how & 8 != 0 { if byte >> 7 != 0 { 0xff } else { 0 } } else { byte };
                    byte << (8 * i)
                };
                (0..4).fold(0, |all, i| all | pick(i))
            }),
            ("shf", _) => {
                let left = self.take("l");
                let wraps = self.take("wrap");
                if !left && !self.take("r") || !wraps && !self.take("clamp") || bits != 32 {
                    return None;
                }
                shape(t, &[t, t, U32], move |x| {
                    let by = if wraps { x[2] & 31 } else { x[2].min(32) };
                    let both = x[1] << 32 | x[0];
                    if left { both << by >> 32 } else { both >> by & mask(32) }
                })
            }
            _ => None,
        }
    }

    fn float(&mut self, t: Ty) -> Option<Shape> {
        let s = t.each()?;
        if t.lane == 8 {
            return None;
        }
        let (ftz, sat, relu) = (self.take("ftz"), self.take("sat"), self.take("relu"));
        let flush = move |x: u64| if ftz { flushed(s, x) } else { x };
        let finish = move |x: u64| {
            let x = flush(x);
            let x = if sat { clamped(s, x, Some(1.0)) } else { x };
            if relu { clamped(s, x, None) } else { x }
        };
        let one =
            move |f: UnaryFn| lanes(t, 1, move |x| finish(f.eval(s, flush(x[0])).unwrap_or(0)));
        let two = move |f: BinaryFn| {
            lanes(t, 2, move |x| finish(f.eval(s, flush(x[0]), flush(x[1])).unwrap_or(0)))
        };
        let sign = 1u64 << (t.lane - 1);
        match self.base {
            // Arithmetic rounds to nearest, the only way known here.
            "add" | "sub" | "mul" | "fma" | "mad" => {
                self.take("rn");
                match self.base {
                    "add" => two(BinaryFn::Add),
                    "sub" => two(BinaryFn::Sub),
                    "mul" => two(BinaryFn::Mul),
                    _ => lanes(t, 3, move |x| {
                        let [a, b, c] = [x[0], x[1], x[2]].map(&flush);
                        finish(TernaryFn::Fma.eval(s, a, b, c).unwrap_or(0))
                    }),
                }
            }
            "min" | "max" => {
                let nan = self.take("NaN");
                two(match (self.base, nan) {
                    ("min", false) => BinaryFn::Min,
                    ("min", true) => BinaryFn::MinNan,
                    (_, false) => BinaryFn::Max,
                    (_, true) => BinaryFn::MaxNan,
                })
            }
            "neg" => lanes(t, 1, move |x| flush(x[0]) ^ sign),
            "abs" => lanes(t, 1, move |x| flush(x[0]) & !sign),
            "copysign" => lanes(t, 2, move |x| x[0] & sign | x[1] & !sign),
            "div" => {
                (self.take("rn") || self.take("full") || self.take("approx")).then_some(())?;
                two(BinaryFn::Div)
            }
            "sqrt" => {
                (self.take("rn") || self.take("approx")).then_some(())?;
                one(UnaryFn::Sqrt)
            }
            "rcp" => {
                (self.take("rn") || self.take("approx")).then_some(())?;
                let number_one = from_f64(s, 1.0);
                lanes(t, 1, move |x| {
                    finish(BinaryFn::Div.eval(s, number_one, flush(x[0])).unwrap_or(0))
                })
            }
            _ => {
                let f = match self.base {
                    "ex2" => UnaryFn::Exp2,
                    "lg2" => UnaryFn::Log2,
                    "rsqrt" => UnaryFn::Rsqrt,
                    "tanh" => UnaryFn::Tanh,
                    "sin" => UnaryFn::Sin,
                    "cos" => UnaryFn::Cos,
                    _ => return None,
                };
                self.take("approx").then_some(())?;
                one(f)
            }
        }
    }

    /// Bit 0 is the first target's, bit 1 the second's, which is the comparison's opposite.
    fn setp(&mut self, t: Ty) -> Option<Shape> {
        let ftz = self.take("ftz");
        let how = if self.mods.is_empty() { return None } else { self.mods.remove(0) };
        let word = ["and", "or", "xor"].into_iter().find(|m| self.take(m));
        let compare: Box<dyn Fn(u64, u64) -> bool + Send + Sync> = match t.float() {
            Some(s) => {
                let unordered = how.len() == 3 && how.ends_with('u');
                let plain = if unordered { &how[..2] } else { how };
                let holds = ordering(plain);
                if holds.is_none() && !matches!(how, "num" | "nan") {
                    return None;
                }
                let how = how.to_string();
                Box::new(move |a, b| {
                    let flush = |x| if ftz { flushed(s, x) } else { x };
                    let order = to_f64(s, flush(a)).partial_cmp(&to_f64(s, flush(b)));
                    match (how.as_str(), order) {
                        ("num", order) => order.is_some(),
                        ("nan", order) => order.is_none(),
                        (_, Some(order)) => holds.is_some_and(|h| h(order)),
                        (_, None) => unordered,
                    }
                })
            }
            None if t.is_int() && !ftz => {
                let (how, t) = match how {
                    "lo" => ("lt", ty(Kind::Unsigned, t.lane, 1)),
                    "ls" => ("le", ty(Kind::Unsigned, t.lane, 1)),
                    "hi" => ("gt", ty(Kind::Unsigned, t.lane, 1)),
                    "hs" => ("ge", ty(Kind::Unsigned, t.lane, 1)),
                    how => (how, t),
                };
                let holds = ordering(how)?;
                Box::new(move |a, b| holds(t.number(a).cmp(&t.number(b))))
            }
            None => return None,
        };
        let mut sources = vec![t, t];
        sources.extend(word.map(|_| Ty::PRED));
        shape(Ty::PRED, &sources, move |x| {
            let first = compare(x[0], x[1]);
            let join = |p: bool| match (word, x.get(2).is_some_and(|&c| c != 0)) {
                (Some("and"), c) => p && c,
                (Some("or"), c) => p || c,
                (Some(_), c) => p != c,
                (None, _) => p,
            };
            u64::from(join(first)) | u64::from(join(!first)) << 1
        })
    }

    /// Four products of bytes, added up.
    fn dot(&mut self) -> Option<Shape> {
        let &[a, b] = self.types.as_slice() else { return None };
        if a.lane != 32 || b.lane != 32 || !a.is_int() || !b.is_int() {
            return None;
        }
        let sum = if a.is_signed() || b.is_signed() { ty(Kind::Signed, 32, 1) } else { U32 };
        let byte = |t: Ty, x: u64, i: u32| ty(t.kind, 8, 1).number(x >> (8 * i));
        shape(sum, &[a, b, sum], move |x| {
            let products = (0..4).map(|i| byte(a, x[0], i) * byte(b, x[1], i)).sum::<i128>();
            (sum.number(x[2]) + products) as u64 & mask(32)
        })
    }
}

fn ordering(how: &str) -> Option<fn(std::cmp::Ordering) -> bool> {
    Some(match how {
        "eq" => std::cmp::Ordering::is_eq,
        "ne" => std::cmp::Ordering::is_ne,
        "lt" => std::cmp::Ordering::is_lt,
        "le" => std::cmp::Ordering::is_le,
        "gt" => std::cmp::Ordering::is_gt,
        "ge" => std::cmp::Ordering::is_ge,
        _ => return None,
    })
}

pub(super) fn to_f64(s: Scalar, image: u64) -> f64 {
    f64::from_bits(cast_bits(s, Scalar::F64, Rounding::Nearest, image))
}

pub(super) fn from_f64(s: Scalar, x: f64) -> u64 {
    cast_bits(Scalar::F64, s, Rounding::Nearest, x.to_bits())
}

/// Zero of the number's sign in the place of a subnormal.
pub(super) fn flushed(s: Scalar, image: u64) -> u64 {
    let exponent = match s {
        Scalar::F16 => 0x7c00,
        Scalar::BF16 => 0x7f80,
        Scalar::F32 => 0x7f80_0000,
        _ => return image,
    };
    if image & exponent == 0 { image & 1 << (s.bits() - 1) } else { image }
}

/// Not below 0, and not above a limit; of NaN comes 0 where there is one, as PTX has it.
pub(super) fn clamped(s: Scalar, image: u64, most: Option<f64>) -> u64 {
    let x = to_f64(s, image);
    match most {
        _ if x.is_nan() && most.is_none() => image,
        _ if x.is_nan() || x <= 0.0 => 0,
        Some(most) if x > most => from_f64(s, most),
        _ => image,
    }
}
