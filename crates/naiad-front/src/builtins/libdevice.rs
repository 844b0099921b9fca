//! The functions of `libdevice` that are not one function of the table of scalar functions on their
//! arguments as they are: several arguments, other result types, compositions.
//!
//! A `fast_…` name is the precise function. Where CUDA rounds to a direction, the rounded result is
//! compared with the exact one and moved by one number if it lies on the wrong side.

use super::create::number;
use crate::lower::{Args, Lower, Operand};
use crate::source::Result;
use crate::value::{Val, type_name};
use naiad_diag::Id;
use naiad_ir::scalar::{BinaryFn, Predicate, TernaryFn, UnaryFn};
use naiad_ir::tile::TileOp;
use naiad_ir::types::Elem;
use naiad_ir::{Scalar, Value};

const FLOATS: &[Scalar] = &[Scalar::F32, Scalar::F64];
const F32: &[Scalar] = &[Scalar::F32];
const F64: &[Scalar] = &[Scalar::F64];
const INTS: &[Scalar] = &[Scalar::I32, Scalar::I64, Scalar::U32, Scalar::U64];
const INTS_32: &[Scalar] = &[Scalar::I32, Scalar::U32];

/// The name without its module.
fn word(a: &Args) -> &'static str {
    a.entry.path.trim_start_matches("libdevice.")
}

/// How a name's last part rounds.
#[derive(Copy, Clone, PartialEq)]
enum Direction {
    Nearest,
    Zero,
    Down,
    Up,
}

fn direction(a: &Args) -> Direction {
    match word(a).rsplit('_').next() {
        Some("rz") => Direction::Zero,
        Some("rd") => Direction::Down,
        Some("ru") => Direction::Up,
        _ => Direction::Nearest,
    }
}

fn refuse<T>(l: &mut Lower<'_>, a: &Args, accepted: &[Scalar], found: &str) -> Result<T> {
    let names: Vec<&str> = accepted.iter().map(|s| s.triton_name()).collect();
    let names = match names.as_slice() {
        [rest @ .., last] if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        all => all.join(""),
    };
    let name = a.entry.display_name();
    let e = l.error(
        Id::TypeMismatch,
        format!("`{name}` wants {names}, not {found}"),
        a.range,
        format!("this is {found}"),
    );
    let cast = accepted.first().map_or("float32", |s| s.triton_name());
    Err(Box::new((*e).help(format!("cast it first: `.to(tl.{cast})`"))))
}

/// The only argument. An integer literal is a number for a function of floats.
fn one(l: &mut Lower<'_>, a: &Args, accepted: &[Scalar]) -> Result<(Value, Scalar)> {
    let o = a.need(0).clone();
    let x = match (&o.val, number(&o.val)) {
        (Val::Const(c), Some(_)) => {
            let natural = c.natural_type().unwrap_or(Scalar::F32);
            let ty = if accepted.contains(&natural) { natural } else { accepted[0] };
            l.literal(c, ty)?
        }
        _ => l.tensor(&o)?,
    };
    checked(l, a, x, accepted)
}

fn checked(l: &mut Lower<'_>, a: &Args, x: Value, accepted: &[Scalar]) -> Result<(Value, Scalar)> {
    match l.ty(x).elem {
        Elem::Scalar(s) if accepted.contains(&s) => Ok((x, s)),
        _ => {
            let what = type_name(l.ty(x));
            refuse(l, a, accepted, &what)
        }
    }
}

/// The first `n` arguments as values of one type and shape, after the ordinary promotion.
fn several(
    l: &mut Lower<'_>,
    a: &Args,
    n: usize,
    accepted: &[Scalar],
) -> Result<(Vec<Value>, Scalar)> {
    let what = a.entry.display_name();
    let given: Vec<Operand> = (0..n).map(|i| a.need(i).clone()).collect();
    let mut s = l.common_type(&what, false, &given[0], &given[1], a.range)?;
    for o in &given[2..] {
        // What the earlier ones became takes part as a value, a literal among them as well.
        let so_far = l.adopt(&given[0], s, a.range)?;
        let so_far = Operand::new(Val::Tensor(so_far), a.range);
        s = l.common_type(&what, false, &so_far, o, a.range)?;
    }
    if !accepted.contains(&s) {
        return refuse(l, a, accepted, s.triton_name());
    }
    let mut values = Vec::with_capacity(n);
    for o in &given {
        values.push(l.adopt(o, s, a.range)?);
    }
    for i in 1..n {
        let (x, y) =
            l.broadcast_pair(&what, (values[0], &given[0]), (values[i], &given[i]), a.range)?;
        (values[0], values[i]) = (x, y);
    }
    let shape = l.ty(values[0]).shape;
    for v in &mut values {
        *v = l.b.broadcast_to(*v, shape)?;
    }
    Ok((values, s))
}

/// A constant beside `like`, of its type and shape.
fn constant(l: &mut Lower<'_>, like: Value, x: f64) -> Result<Value> {
    let ty = l.ty(like);
    let scalar = match ty.elem {
        Elem::Scalar(s) if s.is_int() => l.b.int(s, x as i128)?,
        _ => l.b.float(ty.elem.scalar().unwrap_or(Scalar::F32), x)?,
    };
    Ok(l.b.broadcast_to(scalar, ty.shape)?)
}

fn bits(l: &mut Lower<'_>, x: Value, to: Scalar) -> Result<Value> {
    Ok(l.b.op(TileOp::Bitcast { src: x, to: Elem::Scalar(to) })?)
}

fn inverse(l: &mut Lower<'_>, x: Value) -> Result<Value> {
    let one = constant(l, x, 1.0)?;
    Ok(l.b.binary(BinaryFn::Div, one, x)?)
}

/// A function of the table, on fp32 by way of fp64 if it is defined there only.
pub(super) fn apply(l: &mut Lower<'_>, f: UnaryFn, x: Value) -> Result<Value> {
    match l.ty(x).elem {
        Elem::Scalar(s) if !f.accepts(s) && s == Scalar::F32 => {
            let wide = l.b.cast(x, Scalar::F64)?;
            let result = l.b.unary(f, wide)?;
            Ok(l.b.cast(result, s)?)
        }
        _ => Ok(l.b.unary(f, x)?),
    }
}

/// `fast_sinf` and its kin.
pub fn fast(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let (x, _) = one(l, a, F32)?;
    let f = match word(a) {
        "fast_cosf" => UnaryFn::Cos,
        "fast_exp10f" => UnaryFn::Exp10,
        "fast_expf" => UnaryFn::Exp,
        "fast_log10f" => UnaryFn::Log10,
        "fast_log2f" => UnaryFn::Log2,
        "fast_logf" => UnaryFn::Log,
        "fast_sinf" => UnaryFn::Sin,
        "fast_tanf" => UnaryFn::Tan,
        _ => UnaryFn::Tanh,
    };
    Ok(Val::Tensor(l.b.unary(f, x)?))
}

/// Two floats of one type.
pub fn pair(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let name = word(a);
    let accepted = if name.starts_with("fast_") { F32 } else { FLOATS };
    let (v, s) = several(l, a, 2, accepted)?;
    if name == "rhypot" {
        return inverse_norm(l, &v, s);
    }
    let f = match name {
        "atan2" => BinaryFn::Atan2,
        "copysign" => BinaryFn::Copysign,
        "fdim" => BinaryFn::Fdim,
        "fmod" => BinaryFn::Fmod,
        "hypot" => BinaryFn::Hypot,
        "nextafter" => BinaryFn::Nextafter,
        "remainder" => BinaryFn::Remainder,
        "add_rn" => BinaryFn::Add,
        "sub_rn" => BinaryFn::Sub,
        "mul_rn" => BinaryFn::Mul,
        "fast_powf" => BinaryFn::Pow,
        "div_rn" => BinaryFn::DivRn,
        _ => BinaryFn::Div,
    };
    Ok(Val::Tensor(l.b.binary(f, v[0], v[1])?))
}

/// `norm3d`, `norm4d` and their inverses.
pub fn norm(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let n = if word(a).contains('3') { 3 } else { 4 };
    let (v, s) = several(l, a, n, FLOATS)?;
    if word(a).starts_with('r') {
        return inverse_norm(l, &v, s);
    }
    Ok(Val::Tensor(length(l, &v)?))
}

/// The length of a vector: one hypotenuse upon another.
fn length(l: &mut Lower<'_>, v: &[Value]) -> Result<Value> {
    let mut result = v[0];
    for &x in &v[1..] {
        result = l.b.binary(BinaryFn::Hypot, result, x)?;
    }
    Ok(result)
}

/// The inverse of a length, also where only the length is beyond the type: of float32 in float64, of
/// float64 by a quarter of it.
fn inverse_norm(l: &mut Lower<'_>, v: &[Value], s: Scalar) -> Result<Val> {
    let mut wide = Vec::new();
    for &x in v {
        wide.push(l.b.cast(x, Scalar::F64)?);
    }
    let whole = length(l, &wide)?;
    let result = inverse(l, whole)?;
    if s != Scalar::F64 {
        return Ok(Val::Tensor(l.b.cast(result, s)?));
    }
    let ty = l.ty(whole);
    let quarter = l.b.float(Scalar::F64, 0.25)?;
    let quarter = l.b.broadcast_to(quarter, ty.shape)?;
    for x in &mut wide {
        *x = l.b.binary(BinaryFn::Mul, *x, quarter)?;
    }
    let part = length(l, &wide)?;
    let of_part = l.b.binary(BinaryFn::Div, quarter, part)?;
    let infinity = l.b.float(Scalar::F64, f64::INFINITY)?;
    let infinity = l.b.broadcast_to(infinity, ty.shape)?;
    let beyond = l.b.compare(Predicate::Eq, whole, infinity)?;
    Ok(Val::Tensor(l.b.select(beyond, of_part, result)?))
}

/// A float and an integer of 32 bits, as floats; or two floats. An integer becomes a literal or, if it
/// is known at run time only, a float64, which holds it.
fn float_and_int(l: &mut Lower<'_>, a: &Args) -> Result<(Value, Value, Scalar, Scalar)> {
    let (xo, no) = (a.need(0).clone(), a.need(1).clone());
    let is_int = |l: &Lower<'_>, v: &Val| match v {
        Val::Tensor(v) => l.ty(*v).elem.scalar().is_some_and(Scalar::is_int),
        _ => false,
    };
    if !is_int(l, &no.val) || matches!(xo.val, Val::Const(_)) {
        let (v, s) = several(l, a, 2, FLOATS)?;
        return Ok((v[0], v[1], s, s));
    }
    let x = l.tensor(&xo)?;
    let (x, s) = checked(l, a, x, FLOATS)?;
    let n = l.tensor(&no)?;
    let narrow = l.ty(n).elem.scalar().is_some_and(|s| s.bits() <= 32);
    if !narrow {
        let what = type_name(l.ty(n));
        return refuse(l, a, &[Scalar::F32, Scalar::F64, Scalar::I32], &what);
    }
    let (x, n) = l.broadcast_pair(&a.entry.display_name(), (x, &xo), (n, &no), a.range)?;
    let x = l.b.cast(x, Scalar::F64)?;
    let n = l.b.cast(n, Scalar::F64)?;
    Ok((x, n, Scalar::F64, s))
}

/// `pow`: a float to a float or to an int32. An integer exponent is exact: of a float32 the power is
/// then computed in float64.
pub fn pow(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let (x, y, _, s) = float_and_int(l, a)?;
    let power = l.b.binary(BinaryFn::Pow, x, y)?;
    Ok(Val::Tensor(l.b.cast(power, s)?))
}

/// `ldexp` and `scalbn`.
pub fn ldexp(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let no = a.need(1).clone();
    let n = l.tensor(&no)?;
    let Elem::Scalar(ty) = l.ty(n).elem else {
        let what = type_name(l.ty(n));
        return refuse(l, a, &[Scalar::I32], &what);
    };
    if !ty.is_int() || ty.bits() > 32 {
        return refuse(l, a, &[Scalar::I32], ty.triton_name());
    }
    let (x, s) = one(l, a, FLOATS)?;
    let xo = a.need(0).clone();
    let (x, n) = l.broadcast_pair(&a.entry.display_name(), (x, &xo), (n, &no), a.range)?;
    // Rounding to float32 is harmless: numbers that it changes are far out of range.
    let n = l.b.cast(n, s)?;
    Ok(Val::Tensor(l.b.binary(BinaryFn::Ldexp, x, n)?))
}

/// The predicates, which give int1.
pub fn predicate(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let accepted = match word(a) {
        "finitef" => F32,
        "isfinited" => F64,
        _ => FLOATS,
    };
    let (x, _) = one(l, a, accepted)?;
    if word(a) == "isnan" {
        return Ok(Val::Tensor(l.b.compare(Predicate::Ne, x, x)?));
    }
    let size = l.b.unary(UnaryFn::Abs, x)?;
    let inf = constant(l, x, f64::INFINITY)?;
    let p = if word(a) == "isinf" { Predicate::Eq } else { Predicate::Lt };
    Ok(Val::Tensor(l.b.compare(p, size, inf)?))
}

/// `signbit`: 1 or 0, as int32.
pub fn signbit(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let (x, s) = one(l, a, FLOATS)?;
    let image = bits(l, x, if s == Scalar::F32 { Scalar::I32 } else { Scalar::I64 })?;
    let zero = constant(l, image, 0.0)?;
    let negative = l.b.compare(Predicate::Lt, image, zero)?;
    Ok(Val::Tensor(l.b.cast(negative, Scalar::I32)?))
}

/// `ilogb`: the exponent as int32; its least number for 0 and NaN, its greatest for infinities.
pub fn ilogb(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let (x, _) = one(l, a, FLOATS)?;
    let e = l.b.unary(UnaryFn::Logb, x)?;
    let e = l.b.cast(e, Scalar::I32)?;
    let least = constant(l, e, f64::from(i32::MIN))?;
    let nan = l.b.compare(Predicate::Ne, x, x)?;
    Ok(Val::Tensor(l.b.select(nan, least, e)?))
}

/// `llrint` and `llround`: to an int64.
pub fn to_int64(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let (x, _) = one(l, a, FLOATS)?;
    let f = if word(a) == "llrint" { UnaryFn::Rint } else { UnaryFn::Round };
    let whole = l.b.unary(f, x)?;
    Ok(Val::Tensor(l.b.cast(whole, Scalar::I64)?))
}

/// `saturatef`: brought between 0 and 1; 0 for NaN.
pub fn saturatef(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let (x, _) = one(l, a, F32)?;
    let (zero, one) = (constant(l, x, 0.0)?, constant(l, x, 1.0)?);
    Ok(Val::Tensor(l.b.op(TileOp::Ternary { f: TernaryFn::Clamp, a: x, b: zero, c: one })?))
}

/// `rcbrt` and `rcp_rn`.
pub fn reciprocal(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let (x, _) = one(l, a, FLOATS)?;
    let x = if word(a) == "rcbrt" { l.b.unary(UnaryFn::Cbrt, x)? } else { x };
    Ok(Val::Tensor(inverse(l, x)?))
}

/// `sqrt_rn`.
pub fn sqrt_rn(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let (x, _) = one(l, a, FLOATS)?;
    Ok(Val::Tensor(l.b.unary(UnaryFn::SqrtRn, x)?))
}

/// `rsqrt_rn`: in float64, rounded to float32.
pub fn rsqrt_rn(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let (x, s) = one(l, a, F32)?;
    let wide = l.b.cast(x, Scalar::F64)?;
    let root = l.b.unary(UnaryFn::SqrtRn, wide)?;
    let result = inverse(l, root)?;
    Ok(Val::Tensor(l.b.cast(result, s)?))
}

/// `rcp64h`: the reciprocal with a low word of zeros.
pub fn rcp64h(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let (x, s) = one(l, a, F64)?;
    let result = inverse(l, x)?;
    let image = bits(l, result, Scalar::I64)?;
    let mask = constant(l, image, -4294967296.0)?;
    let high = l.b.binary(BinaryFn::And, image, mask)?;
    Ok(Val::Tensor(bits(l, high, s)?))
}

/// `clz`, `ffs` and `popc`, which give int32, and `brev`.
pub fn of_bits(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let (x, _) = one(l, a, INTS)?;
    let result = match word(a) {
        "brev" => return Ok(Val::Tensor(l.b.unary(UnaryFn::Brev, x)?)),
        "clz" => l.b.unary(UnaryFn::Clz, x)?,
        "popc" => l.b.unary(UnaryFn::Popc, x)?,
        _ => {
            // The bits up to the lowest that is set are those where x and x - 1 differ; 0 has none.
            let one = constant(l, x, 1.0)?;
            let less = l.b.binary(BinaryFn::Sub, x, one)?;
            let differ = l.b.binary(BinaryFn::Xor, x, less)?;
            let count = l.b.unary(UnaryFn::Popc, differ)?;
            let zero = constant(l, x, 0.0)?;
            let none = l.b.compare(Predicate::Eq, x, zero)?;
            l.b.select(none, zero, count)?
        }
    };
    Ok(Val::Tensor(l.b.cast(result, Scalar::I32)?))
}

/// `mulhi`: the high half of the product, signed if the type is.
pub fn mulhi(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let (v, s) = several(l, a, 2, INTS)?;
    let (x, y) = (v[0], v[1]);
    let mut high = l.b.binary(BinaryFn::Umulhi, x, y)?;
    if s.is_signed() {
        // Reading a negative x as unsigned adds 2^w to it, and y to the high half.
        let zero = constant(l, x, 0.0)?;
        for (x, y) in [(x, y), (y, x)] {
            let negative = l.b.compare(Predicate::Lt, x, zero)?;
            let excess = l.b.select(negative, y, zero)?;
            high = l.b.binary(BinaryFn::Sub, high, excess)?;
        }
    }
    Ok(Val::Tensor(high))
}

/// `hadd` and `rhadd`: the mean, rounded down or up, without overflow.
pub fn mean(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let (v, _) = several(l, a, 2, INTS_32)?;
    let (x, y) = (v[0], v[1]);
    let differ = l.b.binary(BinaryFn::Xor, x, y)?;
    let one = constant(l, x, 1.0)?;
    let half = l.b.binary(BinaryFn::Shr, differ, one)?;
    let (common, f) = match word(a) {
        "hadd" => (BinaryFn::And, BinaryFn::Add),
        _ => (BinaryFn::Or, BinaryFn::Sub),
    };
    let common = l.b.binary(common, x, y)?;
    Ok(Val::Tensor(l.b.binary(f, common, half)?))
}

/// `mul24`: the low half of the product of the low 24 bits, which are signed if the type is.
pub fn mul24(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let (v, _) = several(l, a, 2, INTS_32)?;
    let eight = constant(l, v[0], 8.0)?;
    let mut low = Vec::new();
    for x in v {
        let up = l.b.binary(BinaryFn::Shl, x, eight)?;
        low.push(l.b.binary(BinaryFn::Shr, up, eight)?);
    }
    Ok(Val::Tensor(l.b.binary(BinaryFn::Mul, low[0], low[1])?))
}

/// `sad(x, y, z)`: `|x - y| + z`.
pub fn sad(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let (v, s) = several(l, a, 2, INTS_32)?;
    let zo = a.need(2).clone();
    let z = l.adopt(&zo, s, a.range)?;
    let top = l.b.binary(BinaryFn::Max, v[0], v[1])?;
    let bottom = l.b.binary(BinaryFn::Min, v[0], v[1])?;
    let distance = l.b.binary(BinaryFn::Sub, top, bottom)?;
    let at = Operand::new(Val::Tensor(distance), a.range);
    let (x, z) = l.broadcast_pair(&a.entry.display_name(), (distance, &at), (z, &zo), a.range)?;
    Ok(Val::Tensor(l.b.binary(BinaryFn::Add, x, z)?))
}

/// `byte_perm(x, y, s)`: byte `i` is byte `(s >> 4i) & 7` of the eight of `y:x`.
pub fn byte_perm(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let (v, s) = several(l, a, 3, INTS_32)?;
    let mut words = Vec::new();
    for x in v {
        let x = l.b.cast(x, Scalar::U32)?;
        words.push(l.b.cast(x, Scalar::U64)?);
    }
    let (low, selector) = (words[0], words[2]);
    let width = constant(l, low, 32.0)?;
    let high = l.b.binary(BinaryFn::Shl, words[1], width)?;
    let eight = l.b.binary(BinaryFn::Or, high, low)?;
    let (index, three, byte) =
        (constant(l, low, 7.0)?, constant(l, low, 3.0)?, constant(l, low, 255.0)?);
    let mut result = constant(l, low, 0.0)?;
    for i in 0..4 {
        let by = constant(l, low, f64::from(4 * i))?;
        let which = l.b.binary(BinaryFn::Shr, selector, by)?;
        let which = l.b.binary(BinaryFn::And, which, index)?;
        let which = l.b.binary(BinaryFn::Shl, which, three)?;
        let picked = l.b.binary(BinaryFn::Shr, eight, which)?;
        let picked = l.b.binary(BinaryFn::And, picked, byte)?;
        let to = constant(l, low, f64::from(8 * i))?;
        let placed = l.b.binary(BinaryFn::Shl, picked, to)?;
        result = l.b.binary(BinaryFn::Or, result, placed)?;
    }
    Ok(Val::Tensor(l.b.cast(result, s)?))
}

/// `float_as_int` and its kin.
pub fn reinterpret(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let (from, to) = match word(a) {
        "float_as_int" => (Scalar::F32, Scalar::I32),
        "float_as_uint" => (Scalar::F32, Scalar::U32),
        "int_as_float" => (Scalar::I32, Scalar::F32),
        "uint_as_float" => (Scalar::U32, Scalar::F32),
        "double_as_longlong" => (Scalar::F64, Scalar::I64),
        _ => (Scalar::I64, Scalar::F64),
    };
    let (x, _) = one(l, a, &[from])?;
    Ok(Val::Tensor(bits(l, x, to)?))
}

/// `double2hiint` and `double2loint`: one half of the bits.
pub fn half_of_double(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let (x, _) = one(l, a, F64)?;
    let mut image = bits(l, x, Scalar::I64)?;
    if word(a) == "double2hiint" {
        let width = constant(l, image, 32.0)?;
        image = l.b.binary(BinaryFn::Shr, image, width)?;
    }
    Ok(Val::Tensor(l.b.cast(image, Scalar::I32)?))
}

/// `hiloint2double`: a double from its two halves.
pub fn hiloint2double(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let (v, _) = several(l, a, 2, INTS_32)?;
    let high = l.b.cast(v[0], Scalar::I64)?;
    let low = l.b.cast(v[1], Scalar::U32)?;
    let low = l.b.cast(low, Scalar::I64)?;
    let width = constant(l, high, 32.0)?;
    let high = l.b.binary(BinaryFn::Shl, high, width)?;
    let image = l.b.binary(BinaryFn::Or, high, low)?;
    Ok(Val::Tensor(bits(l, image, Scalar::F64)?))
}

fn type_of_word(word: &str) -> Scalar {
    match word {
        "float" => Scalar::F32,
        "double" => Scalar::F64,
        "int" => Scalar::I32,
        "uint" => Scalar::U32,
        "ll" => Scalar::I64,
        _ => Scalar::U64,
    }
}

/// `float2int_rz` and its kin: the name has source, result and direction.
pub fn convert(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let (types, _) = word(a).rsplit_once('_').unwrap_or((word(a), ""));
    let (from, to) = types.split_once('2').unwrap_or((types, ""));
    let (from, to) = (type_of_word(from), type_of_word(to));
    let (x, _) = one(l, a, &[from])?;
    let direction = direction(a);
    if to.is_int() {
        let f = match direction {
            Direction::Nearest => UnaryFn::Rint,
            Direction::Zero => UnaryFn::Trunc,
            Direction::Down => UnaryFn::Floor,
            Direction::Up => UnaryFn::Ceil,
        };
        let whole = l.b.unary(f, x)?;
        return Ok(Val::Tensor(l.b.cast(whole, to)?));
    }
    let nearest = l.b.cast(x, to)?;
    let back = l.b.cast(nearest, from)?;
    let mut over = l.b.compare(Predicate::Gt, back, x)?;
    let under = l.b.compare(Predicate::Lt, back, x)?;
    if from.is_int() {
        // The power of two above the greatest integer comes back as that integer.
        let limit = constant(l, nearest, from.int_max() as f64 + 1.0)?;
        let beyond = l.b.compare(Predicate::Ge, nearest, limit)?;
        over = l.b.binary(BinaryFn::Or, over, beyond)?;
    }
    Ok(Val::Tensor(directed(l, nearest, over, under, direction)?))
}

/// The nearest number moved to the side that the direction wants, where it is over or under the exact
/// value.
fn directed(
    l: &mut Lower<'_>,
    nearest: Value,
    over: Value,
    under: Value,
    direction: Direction,
) -> Result<Value> {
    let down = constant(l, nearest, f64::NEG_INFINITY)?;
    let up = constant(l, nearest, f64::INFINITY)?;
    let lower = l.b.binary(BinaryFn::Nextafter, nearest, down)?;
    let lower = l.b.select(over, lower, nearest)?;
    let higher = l.b.binary(BinaryFn::Nextafter, nearest, up)?;
    let higher = l.b.select(under, higher, nearest)?;
    Ok(match direction {
        Direction::Nearest => nearest,
        Direction::Down => lower,
        Direction::Up => higher,
        Direction::Zero => {
            // A result that was rounded to zero is right, with its sign.
            let zero = constant(l, nearest, 0.0)?;
            let positive = l.b.compare(Predicate::Gt, nearest, zero)?;
            let negative = l.b.compare(Predicate::Lt, nearest, zero)?;
            let result = l.b.select(negative, higher, nearest)?;
            l.b.select(positive, lower, result)?
        }
    })
}

/// Arithmetic on float32 that rounds to a direction: `add_rz`, `mul_rd`, `rcp_ru` and so on.
///
/// In float64 a product of two float32 is exact and a sum is the exact one as two numbers, so each case
/// comes down to comparing the rounded result with the exact one there.
pub fn directed_arithmetic(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let (operation, _) = word(a).rsplit_once('_').unwrap_or((word(a), ""));
    let direction = direction(a);
    let n = match operation {
        "rcp" | "sqrt" => 1,
        "fma" => 3,
        _ => 2,
    };
    let given = if n == 1 { vec![one(l, a, F32)?.0] } else { several(l, a, n, F32)?.0 };
    let mut v = given.clone();
    match operation {
        "rcp" => v.insert(0, constant(l, given[0], 1.0)?),
        "sub" => v[1] = l.b.unary(UnaryFn::Neg, v[1])?,
        _ => {}
    }
    let mut wide = Vec::new();
    for &x in &v {
        wide.push(l.b.cast(x, Scalar::F64)?);
    }
    let (nearest, over, under) = match operation {
        "add" | "sub" | "mul" | "fma" => {
            let (x, y) = match operation {
                "mul" => {
                    let product = l.b.binary(BinaryFn::Mul, wide[0], wide[1])?;
                    let none = constant(l, product, -0.0)?;
                    (product, none)
                }
                "fma" => (l.b.binary(BinaryFn::Mul, wide[0], wide[1])?, wide[2]),
                _ => (wide[0], wide[1]),
            };
            // Downwards an exact 0 of two numbers that cancel is -0; mirrored it comes out so.
            let sum = if direction == Direction::Down && operation != "mul" {
                let (x, y) = (l.b.unary(UnaryFn::Neg, x)?, l.b.unary(UnaryFn::Neg, y)?);
                let sum = l.b.binary(BinaryFn::Add, x, y)?;
                l.b.unary(UnaryFn::Neg, sum)?
            } else {
                l.b.binary(BinaryFn::Add, x, y)?
            };
            let of_y = l.b.binary(BinaryFn::Sub, sum, x)?;
            let of_x = l.b.binary(BinaryFn::Sub, sum, of_y)?;
            let lost_x = l.b.binary(BinaryFn::Sub, x, of_x)?;
            let lost_y = l.b.binary(BinaryFn::Sub, y, of_y)?;
            let lost = l.b.binary(BinaryFn::Add, lost_x, lost_y)?;
            let nearest = l.b.cast(sum, Scalar::F32)?;
            let back = l.b.cast(nearest, Scalar::F64)?;
            // back - sum is exact where they are close, and else its sign is right.
            let off = l.b.binary(BinaryFn::Sub, back, sum)?;
            (
                nearest,
                l.b.compare(Predicate::Gt, off, lost)?,
                l.b.compare(Predicate::Lt, off, lost)?,
            )
        }
        "sqrt" => {
            let root = l.b.unary(UnaryFn::SqrtRn, v[0])?;
            let back = l.b.cast(root, Scalar::F64)?;
            let square = l.b.binary(BinaryFn::Mul, back, back)?;
            let over = l.b.compare(Predicate::Gt, square, wide[0])?;
            (root, over, l.b.compare(Predicate::Lt, square, wide[0])?)
        }
        _ => {
            let quotient = l.b.binary(BinaryFn::Div, v[0], v[1])?;
            let back = l.b.cast(quotient, Scalar::F64)?;
            // By the sign of the divisor, the product compares as the quotient does.
            let size = l.b.unary(UnaryFn::Abs, wide[1])?;
            let product = l.b.binary(BinaryFn::Mul, back, size)?;
            let one = constant(l, size, 1.0)?;
            let sign = l.b.binary(BinaryFn::Copysign, one, wide[1])?;
            let above = l.b.binary(BinaryFn::Mul, wide[0], sign)?;
            // An exact quotient that is infinite is neither.
            let zero = constant(l, size, 0.0)?;
            let inf = constant(l, size, f64::INFINITY)?;
            let divides = l.b.compare(Predicate::Gt, size, zero)?;
            let finite = l.b.compare(Predicate::Lt, size, inf)?;
            let proper = l.b.binary(BinaryFn::And, divides, finite)?;
            let over = l.b.compare(Predicate::Gt, product, above)?;
            let under = l.b.compare(Predicate::Lt, product, above)?;
            let over = l.b.binary(BinaryFn::And, over, proper)?;
            (quotient, over, l.b.binary(BinaryFn::And, under, proper)?)
        }
    };
    Ok(Val::Tensor(directed(l, nearest, over, under, direction)?))
}
