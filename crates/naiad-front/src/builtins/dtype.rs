//! Methods of dtypes.

use crate::lower::{Args, Lower};
use crate::source::Result;
use crate::value::Val;
use naiad_ir::{Elem, Scalar, Type};

/// `is_floating()` and its kin: the row's name says which.
pub fn predicate(_: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let Val::DType(ty) = a.need(0).val else { return Ok(Val::bool(false)) };
    let word = a.entry.path.trim_start_matches("dtype.is_");
    Ok(Val::bool(holds(word, ty)))
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
