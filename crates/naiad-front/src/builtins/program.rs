//! Programs, ranges, compile-time checks, and promises to the compiler.

use crate::lower::{Args, Lower, Operand};
use crate::source::Result;
use crate::value::{Const, Iter, Val};
use naiad_diag::Id;
use naiad_ir::tile::{Axes, HintKind, LoopHints, TileOp};
use std::rc::Rc;

fn grid_axis(l: &mut Lower<'_>, a: &Args) -> Result<u32> {
    let axis = l.const_int(a.need(0), "a grid axis")?;
    if (0..3).contains(&axis) {
        return Ok(axis as u32);
    }
    let range = a.need(0).range;
    Err(l.error(Id::BadArgument, format!("a grid has the axes 0, 1 and 2, not {axis}"), range, ""))
}

pub fn program_id(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let axis = grid_axis(l, a)?;
    Ok(Val::Tensor(l.b.op(TileOp::ProgramId { axis })?))
}

pub fn num_programs(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let axis = grid_axis(l, a)?;
    Ok(Val::Tensor(l.b.op(TileOp::NumPrograms { axis })?))
}

pub fn constexpr(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let o = a.need(0);
    if let Val::Tensor(_) = o.val {
        let what = l.describe(&o.val);
        return Err(l.error(
            Id::NotConstexpr,
            "a run-time value cannot become a constexpr",
            o.range,
            format!("this is {what}"),
        ));
    }
    Ok(o.val.clone())
}

/// The type that a constexpr of this value has.
pub fn constexpr_type(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    Ok(Val::ConstexprType(Rc::new(constexpr(l, a)?)))
}

/// What a constexpr holds. Here it is that, so any value is its own.
pub fn unwrapped(_: &mut Lower<'_>, a: &Args) -> Result<Val> {
    Ok(a.need(0).val.clone())
}

/// A tuple or list as a tuple.
pub fn tuple(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    match a.opt(0).map(|o| (&o.val, o)) {
        None => Ok(Val::tuple(Vec::new())),
        Some((Val::Tuple(t), _)) => Ok(Val::Tuple(t.clone())),
        Some((other, o)) => {
            let what = l.describe(other);
            let message = format!("`tl.tuple` wants a tuple or a list, not {what}");
            Err(l.error(Id::BadArgument, message, o.range, ""))
        }
    }
}

/// `range(stop)`, `range(start, stop)`, `range(start, stop, step)`.
fn bounds(a: &Args) -> [Val; 3] {
    let first = a.need(0).val.clone();
    let step = a.opt(2).map_or(Val::int(1), |o| o.val.clone());
    match a.opt(1) {
        Some(stop) => [first, stop.val.clone(), step],
        None => [Val::int(0), first, step],
    }
}

pub fn range(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let mut hints = LoopHints::default();
    // Python's own `range` takes the hints and does not heed them.
    if a.entry.path == "range" {
        let count = |l: &mut Lower<'_>, o: Option<&Operand>| -> Result<Option<u32>> {
            match o {
                None => Ok(None),
                Some(o) => Ok(u32::try_from(l.const_int(o, "a loop option")?).ok()),
            }
        };
        hints = LoopHints {
            num_stages: count(l, a.opt(3))?,
            unroll: count(l, a.opt(4))?,
            disallow_acc_multi_buffer: l.const_bool(a.opt(5), false)?,
            flatten: l.const_bool(a.opt(6), false)?,
            warp_specialize: l.const_bool(a.opt(7), false)?,
            disable_licm: l.const_bool(a.opt(8), false)?,
        };
    }
    Ok(Val::Iter(Rc::new(Iter { bounds: bounds(a), unrolled: false, hints })))
}

pub fn static_range(_: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let hints = LoopHints::default();
    Ok(Val::Iter(Rc::new(Iter { bounds: bounds(a), unrolled: true, hints })))
}

/// `while tl.condition(c, ...)`: the options are advice.
pub fn condition(_: &mut Lower<'_>, a: &Args) -> Result<Val> {
    Ok(a.need(0).val.clone())
}

pub fn static_assert(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let o = a.need(0);
    let Val::Const(c) = &o.val else {
        let what = l.describe(&o.val);
        let e = l.error(
            Id::NotConstexpr,
            "`tl.static_assert` wants a condition known at compile time",
            o.range,
            format!("this is {what}"),
        );
        return Err(Box::new((*e).help("assert on constexprs, shapes and dtypes")));
    };
    if c.truthy() {
        return Ok(Val::NONE);
    }
    let text = match a.opt(1).map(|m| &m.val) {
        Some(Val::Const(Const::Str(s))) if !s.is_empty() => format!("static assertion failed: {s}"),
        _ => "static assertion failed".to_string(),
    };
    Err(l.error(Id::StaticAssert, text, o.range, "false at compile time"))
}

pub fn static_print(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let words: Vec<String> = a.rest.iter().map(|o| l.display(&o.val)).collect();
    let between = l.const_str(a.opt(1))?.unwrap_or_else(|| " ".into());
    let end = l.const_str(a.opt(2))?.unwrap_or_else(|| "\n".into());
    l.printed.push(words.join(&between) + &end);
    Ok(Val::NONE)
}

pub fn debug_barrier(l: &mut Lower<'_>, _: &Args) -> Result<Val> {
    l.b.ops(TileOp::Barrier {})?;
    Ok(Val::NONE)
}

pub fn assume(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let o = a.need(0);
    match &o.val {
        // A promise about single elements is none that anything here could use.
        Val::Tensor(_) if l.regions > 0 => Ok(Val::NONE),
        Val::Tensor(v) => {
            let cond = l.nonzero(*v)?;
            l.b.ops(TileOp::Assume { cond })?;
            Ok(Val::NONE)
        }
        Val::Const(c) if !c.truthy() => {
            let message = "this assumption never holds";
            Err(l.error(Id::StaticAssert, message, o.range, "false at compile time"))
        }
        _ => Ok(Val::NONE),
    }
}

fn hint(l: &mut Lower<'_>, a: &Args, kind: HintKind) -> Result<Val> {
    let Val::Tensor(src) = a.need(0).val else {
        // Of a constexpr everything is known already.
        return Ok(a.need(0).val.clone());
    };
    let values = l.dims(std::slice::from_ref(a.need(1)), "a hint")?;
    let want = l.ty(src).shape.rank().max(1);
    if values.len() != want {
        let range = a.need(1).range;
        let message =
            format!("{want} values are wanted, one for each axis; {} are given", values.len());
        return Err(l.error(Id::BadArgument, message, range, ""));
    }
    let values: Option<Axes> = values.into_iter().map(|v| u32::try_from(v).ok()).collect();
    let Some(values) = values else {
        let range = a.need(1).range;
        return Err(l.error(
            Id::BadArgument,
            "a hint's value must be a positive integer",
            range,
            "",
        ));
    };
    Ok(Val::Tensor(l.b.op(TileOp::Hint { src, kind, values })?))
}

pub fn multiple_of(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    hint(l, a, HintKind::MultipleOf)
}

pub fn max_contiguous(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    hint(l, a, HintKind::MaxContiguous)
}

pub fn max_constancy(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    hint(l, a, HintKind::MaxConstancy)
}
