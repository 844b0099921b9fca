//! Making tiles, and casts.

use crate::lower::{Args, Lower, Operand};
use crate::source::Result;
use crate::value::{Const, Number, Val, type_name};
use naiad_diag::{Diagnostic, Id};
use naiad_ir::scalar::Rounding;
use naiad_ir::tile::TileOp;
use naiad_ir::{Elem, Pointer, Scalar, Shape, Type, Value};

pub fn arange(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let start = l.const_int(a.need(0), "the start of `tl.arange`")?;
    let end = l.const_int(a.need(1), "the end of `tl.arange`")?;
    if start < 0 || start >= end || end > 1 << 32 {
        let message = format!("`tl.arange` wants 0 <= start < end < 2**32, not {start} and {end}");
        return Err(l.error(Id::BadArgument, message, a.range, ""));
    }
    let len = end - start;
    if !(len as u64).is_power_of_two() {
        let rounded = (len as u64).next_power_of_two();
        let from = if start == 0 { String::new() } else { format!("{start} + ") };
        let message = format!("the length of `tl.arange` must be a power of 2: {len} is not");
        let e = l.error(Id::BadShape, message, a.range, format!("{len} elements"));
        return Err(Box::new(
            (*e).help(format!("use {from}`tl.arange(0, {rounded})` and a mask such as `offsets < {len}` on loads and stores; on the host `triton.next_power_of_2({len})` gives {rounded}")),
        ));
    }
    if let Err(e) = Shape::new(&[len as i64]) {
        return Err(l.bad_shape(e, a.range));
    }
    Ok(Val::Tensor(l.b.op(TileOp::Arange { start: start as i64, end: end as i64 })?))
}

pub fn full(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let shape = l.shape(std::slice::from_ref(a.need(0)), a.range)?;
    let dtype = l.scalar_type(a.need(2))?;
    let value = a.need(1);
    let scalar = match &value.val {
        Val::Const(c) => {
            let n = c.as_number();
            let fits = match n {
                Some(Number::Float(f)) => dtype.is_float() || f.fract() == 0.0,
                Some(Number::Int(i)) => i >= 0 || dtype.is_float() || dtype.is_signed(),
                None => false,
            };
            if !fits {
                let message = format!("{c} cannot fill a tile of {}", dtype.triton_name());
                return Err(l.error(Id::LiteralRange, message, value.range, ""));
            }
            l.literal(c, dtype)?
        }
        _ => {
            let (v, _) = l.number_tile(value)?;
            if !l.ty(v).is_scalar() {
                let what = type_name(l.ty(v));
                return Err(l.error(
                    Id::BadArgument,
                    format!("`tl.full` wants a scalar value, not {what}"),
                    value.range,
                    "",
                ));
            }
            l.b.cast(v, dtype)?
        }
    };
    Ok(Val::Tensor(l.b.broadcast_to(scalar, shape)?))
}

pub fn zeros(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let shape = l.shape(std::slice::from_ref(a.need(0)), a.range)?;
    let dtype = l.scalar_type(a.need(1))?;
    Ok(Val::Tensor(l.b.full(Type::tile(dtype, shape), 0)?))
}

pub fn zeros_like(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let v = l.tensor(a.need(0))?;
    let ty = l.ty(v);
    Ok(Val::Tensor(l.b.full(ty, 0)?))
}

pub fn to_tensor(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    Ok(Val::Tensor(l.tensor(a.need(0))?))
}

pub fn pointer_type(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let pointee = l.scalar_type(a.need(0))?;
    let is_const = l.const_bool(a.opt(2), false)?;
    Ok(Val::DType(Type {
        elem: Elem::Pointer(Pointer { pointee, is_const }),
        shape: Shape::SCALAR,
    }))
}

/// `tl.cast` and `.to`. On a constexpr too: an argument that happened to be 1 is one.
pub fn cast(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let src = l.tensor(a.need(0))?;
    let to = l.elem_type(a.need(1))?;
    let rounding = l.option(
        a.opt(2),
        "rounding mode",
        None,
        |w| Some(Rounding::from_name(w)).filter(Option::is_some),
        &["rtne", "rtz"],
    )?;
    let bitcast = l.const_bool(a.opt(3), false)?;
    let ty = l.ty(src);
    match (ty.elem, to) {
        (Elem::Scalar(from), Elem::Scalar(to)) if !bitcast => {
            cast_numbers(l, a, src, from, to, rounding)
        }
        (Elem::Scalar(from), Elem::Scalar(to)) => {
            if from.bits() != to.bits() {
                let message = format!(
                    "Cannot bitcast {} to {}: {} and {} bits",
                    from.triton_name(),
                    to.triton_name(),
                    from.bits(),
                    to.bits()
                );
                return Err(l.error(Id::TypeMismatch, message, a.range, ""));
            }
            Ok(Val::Tensor(bits(l, src, Elem::Scalar(to))?))
        }
        (Elem::Pointer(_), Elem::Pointer(_)) => Ok(Val::Tensor(bits(l, src, to)?)),
        (Elem::Pointer(_), Elem::Scalar(s)) if s.is_int() && s.bits() == 64 => {
            Ok(Val::Tensor(bits(l, src, to)?))
        }
        (Elem::Pointer(_), Elem::Scalar(Scalar::I1)) => {
            let address = bits(l, src, Elem::Scalar(Scalar::I64))?;
            Ok(Val::Tensor(l.nonzero(address)?))
        }
        (Elem::Scalar(s), Elem::Pointer(_)) if s.is_int() => {
            let address = l.b.cast(src, Scalar::I64)?;
            Ok(Val::Tensor(bits(l, address, to)?))
        }
        _ => {
            let (from, to) = (type_name(ty), type_name(Type { elem: to, shape: Shape::SCALAR }));
            let e =
                l.error(Id::TypeMismatch, format!("{from} cannot be cast to {to}"), a.range, "");
            Err(Box::new(
                (*e).help("a pointer casts to `tl.int64`, `tl.uint64` and other pointer types"),
            ))
        }
    }
}

fn bits(l: &mut Lower<'_>, src: Value, to: Elem) -> Result<Value> {
    if l.ty(src).elem == to { Ok(src) } else { Ok(l.b.op(TileOp::Bitcast { src, to })?) }
}

fn cast_numbers(
    l: &mut Lower<'_>,
    a: &Args,
    src: Value,
    from: Scalar,
    to: Scalar,
    rounding: Option<Rounding>,
) -> Result<Val> {
    // Before the rounding mode is judged: a kernel that is written for several types gives one for all.
    if from == to {
        return Ok(Val::Tensor(src));
    }
    if rounding.is_some() && !(from.is_float() && to.is_float() && to.bits() < from.bits()) {
        let message = format!(
            "a rounding mode is for narrowing floats, not for {} to {}",
            from.triton_name(),
            to.triton_name()
        );
        return Err(rounding_error(l, a.opt(2).unwrap_or(a.need(1)), message));
    }
    if (from.is_fp8() && to.is_int() && !to.is_bool()) || (from.is_int() && to.is_fp8()) {
        let message = format!("{} cannot be cast to {}", from.triton_name(), to.triton_name());
        let e = l.error(Id::TypeMismatch, message, a.range, "");
        return Err(Box::new((*e).help("go through a wider float, such as `tl.float32`")));
    }
    let rounding = rounding.unwrap_or(Rounding::Nearest);
    Ok(Val::Tensor(l.b.op(TileOp::Cast { src, to, rounding })?))
}

fn rounding_error(l: &mut Lower<'_>, o: &Operand, message: String) -> Box<Diagnostic> {
    l.error(Id::BadArgument, message, o.range, "")
}

/// A literal that is a number, for functions that compute on compile-time numbers too.
pub(crate) fn number(c: &Val) -> Option<Number> {
    match c {
        Val::Const(c) => Const::as_number(c),
        _ => None,
    }
}
