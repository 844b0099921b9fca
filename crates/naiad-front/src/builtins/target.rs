//! What is the machine's: its clocks and facts, and assembly.

use crate::lower::{Args, Lower};
use crate::source::Result;
use crate::value::Val;
use naiad_diag::Id;
use naiad_ir::tile::{MachineFact, Scalars, Text, TileOp, broadcast_shapes};
use naiad_ir::{Elem, Shape};

pub fn globaltimer(l: &mut Lower<'_>, _: &Args) -> Result<Val> {
    Ok(Val::Tensor(l.b.op(TileOp::Machine { what: MachineFact::GlobalTimer })?))
}

pub fn smid(l: &mut Lower<'_>, _: &Args) -> Result<Val> {
    Ok(Val::Tensor(l.b.op(TileOp::Machine { what: MachineFact::Smid })?))
}

pub fn num_warps(l: &mut Lower<'_>, _: &Args) -> Result<Val> {
    l.asked_num_warps = true;
    Ok(Val::int(i128::from(l.options.num_warps)))
}

pub fn num_threads(l: &mut Lower<'_>, _: &Args) -> Result<Val> {
    l.asked_num_warps = true;
    Ok(Val::int(32 * i128::from(l.options.num_warps)))
}

/// Advice on when the next kernel may start: a launch here waits for the one before.
pub fn no_effect(_: &mut Lower<'_>, _: &Args) -> Result<Val> {
    Ok(Val::NONE)
}

/// The GPU that kernels are told they run on, if any.
pub fn is_cuda(l: &mut Lower<'_>, _: &Args) -> Result<Val> {
    Ok(Val::bool(l.options.cuda_capability.is_some()))
}

pub fn is_hip(_: &mut Lower<'_>, _: &Args) -> Result<Val> {
    Ok(Val::bool(false))
}

pub fn cuda_capability_geq(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let major = l.const_int(a.need(0), "a major version")?;
    let minor = match a.opt(1) {
        Some(o) => l.const_int(o, "a minor version")?,
        None => 0,
    };
    let have = l.options.cuda_capability;
    Ok(Val::bool(have.is_some_and(|(x, y)| (i128::from(x), i128::from(y)) >= (major, minor))))
}

/// `tl.inline_asm_elementwise(asm, constraints, args, dtype, is_pure, pack)`.
pub fn inline_asm(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let text = l.const_str(Some(a.need(0)))?.unwrap_or_default();
    let constraints = l.const_str(Some(a.need(1)))?.unwrap_or_default();
    let operands = l.each(a.need(2));
    let (dtypes, tuple) = match &a.need(3).val {
        Val::Tuple(_) => (l.each(a.need(3)), true),
        _ => (vec![a.need(3).clone()], false),
    };
    let is_pure = l.const_bool(Some(&a.need(4).clone()), true)?;
    let pack = l.const_int(a.need(5), "`pack`")?;
    let (mut args, mut shape) = (Vec::new(), Shape::SCALAR);
    for o in &operands {
        let v = l.tensor(o)?;
        let own = l.ty(v).shape;
        shape = match broadcast_shapes(shape, own) {
            Ok(shape) => shape,
            Err(axis) => {
                let first = operands[0].clone();
                let what = "inline_asm_elementwise";
                return Err(l.shape_mismatch(what, (&first, shape), (o, own), axis, a.range));
            }
        };
        args.push(v);
    }
    for v in &mut args {
        *v = l.b.broadcast_to(*v, shape)?;
        // Assembly knows an address as a number.
        if let Elem::Pointer(_) = l.ty(*v).elem {
            let to = Elem::Scalar(naiad_ir::Scalar::U64);
            *v = l.b.op(TileOp::Bitcast { src: *v, to })?;
        }
    }
    let mut results = Scalars::new();
    for o in &dtypes {
        results.push(l.scalar_type(o)?);
    }
    let fits = usize::try_from(pack)
        .ok()
        .filter(|&p| p > 0 && (shape.is_scalar() || shape.numel().is_multiple_of(p)));
    let (Some(pack), false) = (fits, results.is_empty()) else {
        let message = match results.first() {
            None => "inline assembly must give at least one result".to_string(),
            Some(_) => format!(
                "`pack` must divide the {} elements of a tile, {pack} does not",
                shape.numel()
            ),
        };
        return Err(l.error(Id::BadArgument, message, a.range, ""));
    };
    let op = TileOp::InlineAsm {
        text: Text((&*text).into()),
        constraints: Text((&*constraints).into()),
        args,
        shape,
        results,
        is_pure,
        pack,
    };
    let made = l.b.ops(op)?;
    Ok(match made.as_slice() {
        [one] if !tuple => Val::Tensor(*one),
        _ => Val::tuple(made.into_iter().map(Val::Tensor).collect()),
    })
}
