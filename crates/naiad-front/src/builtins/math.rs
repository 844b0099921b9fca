//! Elementwise functions.

use super::create::number;
use super::libdevice;
use crate::lower::{Args, Lower, Operand, Operator};
use crate::source::Result;
use crate::value::{Const, Number, Val, type_name};
use naiad_diag::Id;
use naiad_ir::scalar::{BinaryFn, TernaryFn, UnaryFn};
use naiad_ir::tile::TileOp;
use naiad_ir::{Elem, Scalar, Value};

/// A function of fp32 or fp64; narrower floats are not promoted, as in Triton.
pub fn unary(l: &mut Lower<'_>, f: UnaryFn, a: &Args) -> Result<Val> {
    let o = a.need(0);
    let x = match (&o.val, number(&o.val)) {
        (Val::Const(c), Some(n)) => {
            let wide = matches!(n, Number::Float(_)) && c.natural_type() == Some(Scalar::F64);
            l.literal(c, if wide { Scalar::F64 } else { Scalar::F32 })?
        }
        _ => l.tensor(o)?,
    };
    match l.ty(x).elem {
        Elem::Scalar(Scalar::F32) => {}
        Elem::Scalar(Scalar::F64) if f != UnaryFn::SqrtRn => {}
        _ => {
            let (name, what) = (a.entry.display_name(), type_name(l.ty(x)));
            let e = l.error(
                Id::TypeMismatch,
                format!("`{name}` wants float32 or float64, not {what}"),
                o.range,
                format!("this is {what}"),
            );
            return Err(Box::new((*e).help("cast it first: `.to(tl.float32)`")));
        }
    }
    Ok(Val::Tensor(libdevice::apply(l, f, x)?))
}

pub fn abs(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let (x, s) = l.number_tile(a.need(0))?;
    if s.is_int() && !s.is_signed() {
        return Ok(Val::Tensor(x));
    }
    Ok(Val::Tensor(l.sign_op(UnaryFn::Abs, x)?))
}

/// Both branches are evaluated; all three operands broadcast together.
pub fn where_(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let co = a.need(0).clone();
    let cond = l.tensor(&co)?;
    let cond = l.nonzero(cond)?;
    let (xo, yo) = (a.need(1).clone(), a.need(2).clone());
    let pointers =
        |l: &Lower<'_>, o: &Operand| matches!(o.val, Val::Tensor(v) if l.ty(v).is_pointer());
    let (x, y) = if pointers(l, &xo) || pointers(l, &yo) {
        let (x, y) = (l.tensor(&xo)?, l.tensor(&yo)?);
        if l.ty(x).elem != l.ty(y).elem {
            let (tx, ty) = (type_name(l.ty(x)), type_name(l.ty(y)));
            return Err(l.error(
                Id::TypeMismatch,
                format!("`tl.where` cannot choose between {tx} and {ty}"),
                a.range,
                "",
            ));
        }
        l.broadcast_pair("where", (x, &xo), (y, &yo), a.range)?
    } else {
        l.promoted("where", false, &xo, &yo, a.range)?
    };
    let (cond, x) = l.broadcast_pair("where", (cond, &co), (x, &xo), a.range)?;
    let shape = l.ty(cond).shape;
    let y = l.b.broadcast_to(y, shape)?;
    Ok(Val::Tensor(l.b.select(cond, x, y)?))
}

fn propagates(l: &mut Lower<'_>, o: Option<&Operand>) -> Result<bool> {
    l.option(
        o,
        "NaN policy",
        false,
        |w| match w {
            "all" => Some(true),
            "none" => Some(false),
            _ => None,
        },
        &["none", "all"],
    )
}

fn extremum(l: &mut Lower<'_>, a: &Args, plain: BinaryFn, nan: BinaryFn) -> Result<Val> {
    let f = if propagates(l, a.opt(2))? { nan } else { plain };
    pairwise(l, a, f)
}

/// A binary function after the ordinary promotion.
fn pairwise(l: &mut Lower<'_>, a: &Args, f: BinaryFn) -> Result<Val> {
    let (x, y) = l.promoted(a.entry.path, false, a.need(0), a.need(1), a.range)?;
    Ok(Val::Tensor(l.b.binary(f, x, y)?))
}

pub fn maximum(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    extremum(l, a, BinaryFn::Max, BinaryFn::MaxNan)
}

pub fn minimum(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    extremum(l, a, BinaryFn::Min, BinaryFn::MinNan)
}

/// Three operands of one type and shape, and that type.
fn three(l: &mut Lower<'_>, a: &Args) -> Result<([Value; 3], Scalar)> {
    let what = a.entry.path;
    let [x, y, z] = [a.need(0).clone(), a.need(1).clone(), a.need(2).clone()];
    let first = l.common_type(what, false, &x, &y, a.range)?;
    // The third joins whatever the first two became; a literal among them has adopted already.
    let joined = Operand::new(Val::Tensor(l.adopt(&x, first, a.range)?), x.range);
    let s = l.common_type(what, false, &joined, &z, a.range)?;
    let (vx, vy, vz) =
        (l.adopt(&x, s, a.range)?, l.adopt(&y, s, a.range)?, l.adopt(&z, s, a.range)?);
    let (vx, vy) = l.broadcast_pair(what, (vx, &x), (vy, &y), a.range)?;
    let (vx, vz) = l.broadcast_pair(what, (vx, &x), (vz, &z), a.range)?;
    let shape = l.ty(vx).shape;
    let vy = l.b.broadcast_to(vy, shape)?;
    Ok(([vx, vy, vz], s))
}

pub fn clamp(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let propagate = propagates(l, a.opt(3))?;
    let ([x, lo, hi], _) = three(l, a)?;
    if propagate {
        let low = l.b.binary(BinaryFn::MaxNan, x, lo)?;
        return Ok(Val::Tensor(l.b.binary(BinaryFn::MinNan, low, hi)?));
    }
    Ok(Val::Tensor(l.b.op(TileOp::Ternary { f: TernaryFn::Clamp, a: x, b: lo, c: hi })?))
}

pub fn fma(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let ([x, y, z], s) = three(l, a)?;
    if !s.is_float() {
        return Err(l.error(
            Id::TypeMismatch,
            format!("`tl.fma` wants floats, not {}", s.triton_name()),
            a.range,
            "",
        ));
    }
    Ok(Val::Tensor(l.b.op(TileOp::Ternary { f: TernaryFn::Fma, a: x, b: y, c: z })?))
}

fn operator(l: &mut Lower<'_>, a: &Args, op: Operator) -> Result<Val> {
    let watched = l.options.sanitize_overflow;
    l.options.sanitize_overflow &= l.const_bool(a.opt(2), true)?;
    let result = l.binary(op, a.need(0).clone(), a.need(1).clone(), a.range);
    l.options.sanitize_overflow = watched;
    result
}

pub fn add(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    operator(l, a, Operator::Add)
}

pub fn sub(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    operator(l, a, Operator::Sub)
}

pub fn mul(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    operator(l, a, Operator::Mul)
}

/// Division of floats. On a CPU all forms are correctly rounded.
pub fn fdiv(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let exact = l.const_bool(a.opt(2), false)?;
    if exact && l.const_bool(a.opt(3), false)? {
        let message = "`ieee_rounding` and `approx` exclude each other";
        return Err(l.error(Id::BadArgument, message, a.range, ""));
    }
    let (x, y) = l.promoted("fdiv", true, a.need(0), a.need(1), a.range)?;
    float_div(l, a, if exact { BinaryFn::DivRn } else { BinaryFn::Div }, x, y)
}

pub fn div_rn(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let (x, y) = l.promoted("div_rn", true, a.need(0), a.need(1), a.range)?;
    float_div(l, a, BinaryFn::DivRn, x, y)
}

fn float_div(l: &mut Lower<'_>, a: &Args, f: BinaryFn, x: Value, y: Value) -> Result<Val> {
    if !l.ty(x).elem.scalar().is_some_and(Scalar::is_float) {
        let (name, what) = (a.entry.display_name(), type_name(l.ty(x)));
        return Err(l.error(
            Id::TypeMismatch,
            format!("`{name}` wants floats, not {what}"),
            a.range,
            "",
        ));
    }
    Ok(Val::Tensor(l.b.binary(f, x, y)?))
}

pub fn umulhi(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let (x, y) = l.promoted("umulhi", false, a.need(0), a.need(1), a.range)?;
    match l.ty(x).elem {
        Elem::Scalar(s) if s.is_int() && s.bits() >= 32 => {
            Ok(Val::Tensor(l.b.binary(BinaryFn::Umulhi, x, y)?))
        }
        _ => {
            let what = type_name(l.ty(x));
            Err(l.error(
                Id::TypeMismatch,
                format!("`tl.umulhi` wants integers of 32 or 64 bits, not {what}"),
                a.range,
                "",
            ))
        }
    }
}

/// `(x + (y - 1)) // y`, which truncates.
pub fn cdiv(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let (x, y) = (a.need(0).clone(), a.need(1).clone());
    let at = |val: Val| Operand::new(val, a.range);
    let less = l.binary(Operator::Sub, y.clone(), at(Val::int(1)), a.range)?;
    let sum = l.binary(Operator::Add, x, at(less), a.range)?;
    l.binary(Operator::FloorDiv, at(sum), y, a.range)
}

pub fn sigmoid(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let e = {
        let (x, s) = l.number_tile(a.need(0))?;
        if !matches!(s, Scalar::F32 | Scalar::F64) {
            let range = a.need(0).range;
            let e = l.error(
                Id::TypeMismatch,
                format!("`tl.sigmoid` wants float32 or float64, not {}", s.triton_name()),
                range,
                "",
            );
            return Err(Box::new((*e).help("cast it first: `.to(tl.float32)`")));
        }
        let minus = l.b.unary(UnaryFn::Neg, x)?;
        l.b.unary(UnaryFn::Exp, minus)?
    };
    let one = {
        let c = l.b.float(l.ty(e).elem.scalar().unwrap_or(Scalar::F32), 1.0)?;
        l.b.broadcast_to(c, l.ty(e).shape)?
    };
    let below = l.b.binary(BinaryFn::Add, one, e)?;
    Ok(Val::Tensor(l.b.binary(BinaryFn::Div, one, below)?))
}

pub fn logical_and(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    logical(l, a, Operator::Bits(BinaryFn::And, "and"))
}

pub fn logical_or(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    logical(l, a, Operator::Bits(BinaryFn::Or, "or"))
}

fn logical(l: &mut Lower<'_>, a: &Args, op: Operator) -> Result<Val> {
    let mut sides = Vec::new();
    for o in [a.need(0).clone(), a.need(1).clone()] {
        let v = match &o.val {
            Val::Const(_) => l.tensor(&o)?,
            _ => l.number_tile(&o)?.0,
        };
        sides.push(Operand::new(Val::Tensor(l.nonzero(v)?), o.range));
    }
    match (sides.pop(), sides.pop()) {
        (Some(right), Some(left)) => l.binary(op, left, right, a.range),
        _ => Ok(Val::NONE),
    }
}

/// Row-major indices to indices in groups of `size_g` rows, each group walked column by column.
pub fn swizzle2d(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let at = |val: Val| Operand::new(val, a.range);
    let [i, j, size_i, size_j, size_g] = [0, 1, 2, 3, 4].map(|k| a.need(k).clone());
    let mut op = |o: Operator, x: Operand, y: Operand| l.binary(o, x, y, a.range).map(at);
    let row = op(Operator::Mul, i, size_j.clone())?;
    let ij = op(Operator::Add, row, j)?;
    let per = op(Operator::Mul, size_g.clone(), size_j)?;
    let group = op(Operator::FloorDiv, ij.clone(), per.clone())?;
    let first = op(Operator::Mul, group, size_g.clone())?;
    let left = op(Operator::Sub, size_i, first.clone())?;
    let inside = op(Operator::Mod, ij, per)?;
    let rows = match (number(&left.val), number(&size_g.val)) {
        (Some(x), Some(y)) => at(if x.as_f64() < y.as_f64() { left.val } else { size_g.val }),
        _ => {
            let (x, y) = l.promoted("swizzle2d", false, &left, &size_g, a.range)?;
            at(Val::Tensor(l.b.binary(BinaryFn::Min, x, y)?))
        }
    };
    let mut op = |o: Operator, x: Operand, y: Operand| l.binary(o, x, y, a.range).map(at);
    let within = op(Operator::Mod, inside.clone(), rows.clone())?;
    let new_i = op(Operator::Add, first, within)?;
    let new_j = op(Operator::FloorDiv, inside, rows)?;
    Ok(Val::tuple(vec![new_i.val, new_j.val]))
}

/// `triton.cdiv`, which runs at compile time.
pub fn host_cdiv(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let help = "use `tl.cdiv` for run-time values";
    for o in [a.need(0).clone(), a.need(1).clone()] {
        if let Val::Tensor(_) = o.val {
            let e = l.error(
                Id::NotConstexpr,
                "`triton.cdiv` works on compile-time values only",
                o.range,
                "known only at run time",
            );
            return Err(Box::new((*e).help(help)));
        }
    }
    cdiv(l, a)
}

pub fn next_power_of_2(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let n = l.const_int(a.need(0), "the argument of `triton.next_power_of_2`")?;
    let rounded = u128::try_from(n)
        .ok()
        .and_then(|n| if n == 0 { Some(0) } else { n.checked_next_power_of_two() });
    let rounded = rounded.and_then(|r| i128::try_from(r).ok());
    Ok(Val::Const(Const::Int(rounded.unwrap_or(0))))
}

/// The whole logarithm to base 2 of a constexpr: a private name of Triton's that public kernels use.
pub fn whole_log2(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let n = l.const_int(a.need(0), "the argument of `tl._log2`")?;
    Ok(Val::int(u128::try_from(n).ok().and_then(u128::checked_ilog2).unwrap_or(0).into()))
}
