//! Matrix products.

use crate::lower::{Args, Lower};
use crate::source::Result;
use crate::value::Val;
use naiad_diag::Id;
use naiad_ir::Scalar;
use naiad_ir::tile::{Axes, Precision, TileOp};

pub fn dot(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let (xo, yo) = (a.need(0).clone(), a.need(1).clone());
    let ((mut x, sx), (mut y, sy)) = (l.number_tile(&xo)?, l.number_tile(&yo)?);
    // Keywords of Triton 1, in kernels that never dropped them.
    for (operand, i) in [(&mut x, 7), (&mut y, 8)] {
        let rank = l.ty(*operand).shape.rank();
        if l.const_bool(a.opt(i), false)? && rank >= 2 {
            let mut order: Axes = (0..rank as u32).collect();
            order.swap(rank - 2, rank - 1);
            *operand = l.b.op(TileOp::Permute { src: *operand, order })?;
        }
    }
    operand_types(l, a, sx, sy)?;
    let (shx, shy) = (l.ty(x).shape, l.ty(y).shape);
    let rank = shx.rank();
    if rank < 2 || rank != shy.rank() {
        let message = format!(
            "`tl.dot` wants two tiles of one rank of at least 2, not shapes {shx} and {shy}"
        );
        return Err(l.error(Id::ShapeMismatch, message, a.range, ""));
    }
    if let Some(axis) = (0..rank - 2).find(|&i| shx.dim(i) != shy.dim(i)) {
        return Err(l.shape_mismatch("dot", (&xo, shx), (&yo, shy), axis, a.range));
    }
    let (k, k2) = (shx.dim(rank - 1), shy.dim(rank - 2));
    if k != k2 {
        let message = format!(
            "the inner extents of `tl.dot` differ: {shx} has {k} columns, {shy} has {k2} rows"
        );
        let (lx, ly) = (l.place(xo.range), l.place(yo.range));
        let mut d = *l.error(Id::ShapeMismatch, message, a.range, "");
        for (place, shape) in [(lx, shx), (ly, shy)] {
            let name = place.text().to_string();
            d = d.secondary(place, format!("shape {shape}"));
            if let Some(binding) = l.frame().env.get(name.as_str()) {
                d = d.secondary(
                    binding.place.clone(),
                    format!("`{name}` gets its shape {shape} here"),
                );
            }
        }
        return Err(Box::new(if shy.dim(rank - 1) == k {
            d.help("transpose the second operand: `tl.dot(a, tl.trans(b))` or `b.T`")
        } else {
            d
        }));
    }
    let acc = match a.opt(2) {
        Some(o) => Some((l.tensor(o)?, o.clone())),
        None => None,
    };
    let acc_type = acc.as_ref().and_then(|(v, _)| l.ty(*v).elem.scalar());
    let out = match a.opt(6) {
        Some(o) => Some(l.scalar_type(&o.clone())?),
        None => None,
    };
    let out = result_type(l, a, sx, out, acc_type)?;
    let precision = precision(l, a)?;
    let acc = match acc {
        None => None,
        Some((v, o)) => {
            let want = l.ty(x).with_elem(out).with_shape(
                shx.with_dim(rank - 1, shy.dim(rank - 1)).map_err(|e| l.bad_shape(e, a.range))?,
            );
            if l.ty(v) != want {
                let (have, want) =
                    (crate::value::type_name(l.ty(v)), crate::value::type_name(want));
                let e = l.error(
                    Id::TypeMismatch,
                    format!("the accumulator is {have}, the product {want}"),
                    o.range,
                    "",
                );
                return Err(Box::new(
                    (*e).help("start it with `tl.zeros` of the product's shape and type"),
                ));
            }
            Some(v)
        }
    };
    if let Err(e) = shx.with_dim(rank - 1, shy.dim(rank - 1)) {
        return Err(l.bad_shape(e, a.range));
    }
    Ok(Val::Tensor(l.b.op(TileOp::Dot { a: x, b: y, acc, out, precision })?))
}

fn operand_types(l: &mut Lower<'_>, a: &Args, sx: Scalar, sy: Scalar) -> Result<()> {
    let takes = |s: Scalar| s.is_float() || s == Scalar::I8;
    if takes(sx) && takes(sy) && (sx == sy || (sx.is_fp8() && sy.is_fp8())) {
        return Ok(());
    }
    let message =
        format!("`tl.dot` is not defined between {} and {}", sx.triton_name(), sy.triton_name());
    let e = l.error(Id::TypeMismatch, message, a.range, "");
    let help = if sx == sy {
        "it takes int8, fp8, float16, bfloat16, float32 and float64"
    } else {
        "cast one operand: both must have the same type"
    };
    Err(Box::new((*e).help(help)))
}

/// int8 gives int32; fp32 and bf16 fp32; fp16 and fp8 what is asked for, fp16 or fp32.
fn result_type(
    l: &mut Lower<'_>,
    a: &Args,
    operand: Scalar,
    asked: Option<Scalar>,
    acc: Option<Scalar>,
) -> Result<Scalar> {
    let natural = match operand {
        Scalar::I8 => Scalar::I32,
        Scalar::F64 => Scalar::F64,
        _ => Scalar::F32,
    };
    let half = operand == Scalar::F16 || operand.is_fp8();
    match asked {
        None if half && acc == Some(Scalar::F16) => Ok(Scalar::F16),
        None => Ok(natural),
        Some(s) if s == natural || (half && s == Scalar::F16) => Ok(s),
        // The product of integers stays what it is, whatever is asked for; and kernels name fp32 for
        // every type.
        Some(_) if operand.is_int() => Ok(natural),
        Some(Scalar::F32) => Ok(natural),
        Some(s) => {
            let message =
                format!("a product of {} does not give {}", operand.triton_name(), s.triton_name());
            let e = l.error(Id::TypeMismatch, message, a.range, "");
            Err(Box::new((*e).help(format!(
                "take `out_dtype=tl.{}` and cast the result",
                natural.triton_name()
            ))))
        }
    }
}

fn precision(l: &mut Lower<'_>, a: &Args) -> Result<Precision> {
    let names: Vec<&str> = Precision::ALL.iter().map(|p| p.name()).collect();
    let given =
        l.option(a.opt(3), "input precision", None, |w| Precision::from_name(w).map(Some), &names)?;
    let allow = match a.opt(4) {
        Some(o) => Some(l.const_bool(Some(&o.clone()), true)?),
        None => None,
    };
    match (given, allow) {
        (Some(_), Some(_)) => Err(l.error(
            Id::BadCall,
            "`input_precision` and `allow_tf32` say the same: give one of them",
            a.range,
            "",
        )),
        (Some(p), None) => Ok(p),
        (None, Some(false)) => Ok(Precision::Ieee),
        (None, Some(true) | None) => Ok(Precision::Tf32),
    }
}
