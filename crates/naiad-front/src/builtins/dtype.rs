//! Methods of dtypes.

use crate::lower::{Args, Lower};
use crate::source::Result;
use crate::value::Val;
use naiad_diag::Id;
use naiad_ir::{Elem, Scalar, Type};

/// `is_floating()` and its kin: the row's name says which.
pub fn predicate(_: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let Val::DType(ty) = a.need(0).val else { return Ok(Val::bool(false)) };
    let word = a.entry.path.trim_start_matches("dtype.is_");
    Ok(Val::bool(holds(word, ty)))
}

/// The least or the greatest integer of the type.
pub fn limit(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    match a.need(0).val {
        Val::DType(Type { elem: Elem::Scalar(s), .. }) if s.is_int() => {
            let greatest = a.entry.path.ends_with("max_value");
            Ok(Val::int(if greatest { s.int_max() } else { s.int_min() }))
        }
        _ => {
            let what = l.describe(&a.need(0).val);
            let message = format!("an integer type is wanted, not {what}");
            Err(l.error(Id::TypeMismatch, message, a.range, ""))
        }
    }
}

/// The extents of a tile's type, `x.type.get_block_shapes()`.
pub fn get_block_shapes(_: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let Val::DType(ty) = a.need(0).val else { return Ok(Val::NONE) };
    Ok(Val::tuple(ty.shape.dims().map(|d| Val::int(d as i128)).collect()))
}

/// `core.get_int_dtype(bitwidth, signed)`, which public sorting kernels borrow from Triton.
pub fn get_int_dtype(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let bits = l.const_int(a.need(0), "the width of an integer type")?;
    let signed = l.const_int(a.need(1), "the signedness of an integer type")? != 0;
    // There is one boolean, whatever its sign.
    let fits = |s: &Scalar| {
        s.is_int() && s.bits() as i128 == bits && (s.is_bool() || s.is_signed() == signed)
    };
    match Scalar::ALL.iter().copied().find(fits) {
        Some(s) => Ok(Val::DType(Type::scalar(s))),
        None => Err(l.error(
            Id::BadArgument,
            format!("there is no integer type of {bits} bits"),
            a.need(0).range,
            "",
        )),
    }
}

fn holds(word: &str, ty: Type) -> bool {
    match (word, ty.elem) {
        ("block", _) => !ty.is_scalar(),
        ("ptr", elem) => elem.pointer().is_some(),
        ("const", elem) => elem.pointer().is_some_and(|p| p.is_const),
        (_, Elem::Pointer(_)) => false,
        ("int", Elem::Scalar(s)) => s.is_int(),
        ("int_signed", Elem::Scalar(s)) => s.is_signed(),
        ("int_unsigned", Elem::Scalar(s)) => s.is_int() && !s.is_signed(),
        ("bool", Elem::Scalar(s)) => s.is_bool(),
        ("floating", Elem::Scalar(s)) => s.is_float(),
        ("standard_floating", Elem::Scalar(s)) => s.is_float() && !s.is_fp8(),
        ("fp8", Elem::Scalar(s)) => s.is_fp8(),
        // `is_int32`, `is_fp16`, `is_bf16`: the name of one type.
        (name, Elem::Scalar(s)) => {
            Scalar::from_triton_name(name).or(Scalar::from_name(name)) == Some(s)
        }
    }
}
