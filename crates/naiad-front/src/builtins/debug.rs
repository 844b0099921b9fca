//! What a kernel says while it runs: printing and assertions.

use crate::lower::{Args, Lower, Operand};
use crate::source::Result;
use crate::value::{Const, Val};
use naiad_diag::Id;
use naiad_ir::scalar::{BinaryFn, Predicate, UnaryFn};
use naiad_ir::tile::{Text, Texts, TileOp, broadcast_shapes};
use naiad_ir::{Elem, Scalar, Value};
use ruff_text_size::TextRange;

/// `tl.device_print("prefix", x, y, hex=True)`. Python's `print` does the same, and there the prefix
/// may be left out.
pub fn device_print(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let is_python = a.entry.path.starts_with("python.");
    let (first, rest) = match a.rest.split_first() {
        Some((first, rest)) => (Some(first), rest),
        None => (None, &[][..]),
    };
    let (prefix, values) = match first.map(|o| (&o.val, o)) {
        None => ("".into(), rest),
        Some((Val::Const(Const::Str(s)), _)) => (s.clone(), rest),
        Some(_) if is_python => ("".into(), &a.rest[..]),
        Some((other, o)) => {
            let (what, range) = (l.describe(other), o.range);
            let message = format!("the prefix of `tl.device_print` must be a string, not {what}");
            let e = l.error(Id::BadArgument, message, range, "");
            return Err(Box::new((*e).help("write `tl.device_print(\"x\", x)`")));
        }
    };
    let mut args = Vec::new();
    let mut words = vec![prefix.to_string()];
    for o in values {
        match &o.val {
            // What is known now joins the prefix.
            Val::Const(Const::Str(s)) if args.is_empty() => words.push(s.to_string()),
            _ => args.push(l.tensor(o)?),
        }
    }
    let hex = match a.opt(1) {
        Some(o) => l.const_bool(Some(&o.clone()), false)?,
        None => false,
    };
    // A prefix stands in a line: what would break it becomes a space.
    for word in &mut words {
        *word = word.trim().replace(char::is_control, " ");
    }
    words.retain(|w| !w.is_empty());
    l.b.ops(TileOp::Print { prefix: Text(words.join(" ").into()), args, hex })?;
    Ok(Val::NONE)
}

/// `tl.device_assert(cond, msg, mask)`: checked in debug mode only, as in Triton.
pub fn device_assert(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let o = a.need(0).clone();
    let message = l.const_str(a.opt(1))?.unwrap_or_default();
    if !l.options.debug {
        return Ok(Val::NONE);
    }
    let mask = match a.opt(2) {
        Some(m) => {
            let v = l.tensor(&m.clone())?;
            Some(l.nonzero(v)?)
        }
        None => None,
    };
    assert_that(l, &o, &message, mask, a.range)?;
    Ok(Val::NONE)
}

/// An assertion on a value of the kernel. A function of elements checks none, as in Triton.
pub fn assert_that(
    l: &mut Lower<'_>,
    cond: &Operand,
    message: &str,
    mask: Option<Value>,
    range: TextRange,
) -> Result<()> {
    let v = l.tensor(cond)?;
    if l.regions > 0 {
        return Ok(());
    }
    let (mut values, mut names) = (Vec::new(), Texts::new());
    watched(l, v, &mut values, &mut names);
    let mut cond = l.nonzero(v)?;
    let mut shape = l.ty(cond).shape;
    if let Some(m) = mask {
        match broadcast_shapes(shape, l.ty(m).shape) {
            Ok(wider) => shape = wider,
            Err(_) => {
                let (sc, sm) = (shape, l.ty(m).shape);
                let message = format!("the condition has shape {sc}, its mask {sm}");
                return Err(l.error(Id::ShapeMismatch, message, range, ""));
            }
        }
    }
    cond = l.b.broadcast_to(cond, shape)?;
    let mask = match mask {
        Some(m) => Some(l.b.broadcast_to(m, shape)?),
        None => None,
    };
    for v in &mut values {
        *v = l.b.broadcast_to(*v, shape)?;
    }
    let message = Text(message.into());
    l.b.ops(TileOp::Assert { cond, mask, message, values, names })?;
    Ok(())
}

/// What a condition was made from, with the names that the text gives it: the sides of each
/// comparison that this function makes.
fn watched(l: &Lower<'_>, cond: Value, values: &mut Vec<Value>, names: &mut Texts) {
    if let Some(compared) = l.compared.get(&cond).filter(|c| c.depth == l.frames.len()) {
        for (value, name) in &compared.sides {
            if !names.iter().any(|n| *n.0 == **name) {
                values.push(*value);
                names.push(Text(name.as_str().into()));
            }
        }
        return;
    }
    match l.b.func.defining_op(cond) {
        Some(&TileOp::Splat { src, .. } | &TileOp::Broadcast { src, .. }) => {
            watched(l, src, values, names);
        }
        Some(&TileOp::Binary { f: BinaryFn::And | BinaryFn::Or, a, b }) => {
            watched(l, a, values, names);
            watched(l, b, values, names);
        }
        Some(&TileOp::Unary { f: UnaryFn::Not, x }) => watched(l, x, values, names),
        _ => {}
    }
}

/// The operand itself; in debug mode a lane of it that is not 0 where the mask is true is an error.
pub fn expect_zero(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let x = l.tensor(a.need(0))?;
    if l.options.debug && !l.ty(x).is_pointer() {
        let mask = l.tensor(a.need(1))?;
        let mask = l.nonzero(mask)?;
        let some = l.nonzero(x)?;
        let cond = Operand::new(Val::Tensor(l.b.unary(UnaryFn::Not, some)?), a.range);
        assert_that(l, &cond, "a value that was expected to be 0 is not", Some(mask), a.range)?;
    }
    Ok(Val::Tensor(x))
}

/// In debug mode, an integer operation of fewer than 64 bits whose exact result its type does not
/// hold is an error.
pub fn check_overflow(
    l: &mut Lower<'_>,
    f: BinaryFn,
    (a, b): (Value, Value),
    range: TextRange,
) -> Result<()> {
    let watched = matches!(f, BinaryFn::Add | BinaryFn::Sub | BinaryFn::Mul);
    let Elem::Scalar(s) = l.ty(a).elem else { return Ok(()) };
    if !l.options.debug || !l.options.sanitize_overflow || !watched || l.regions > 0 {
        return Ok(());
    }
    if !s.is_int() || s.is_bool() || s.bits() >= 64 {
        return Ok(());
    }
    let wide = l.ty(a).with_elem(Scalar::I64);
    let (x, y) = (l.b.cast(a, Scalar::I64)?, l.b.cast(b, Scalar::I64)?);
    let exact = l.b.binary(f, x, y)?;
    let (low, high) = (l.b.full(wide, s.int_min())?, l.b.full(wide, s.int_max())?);
    let above = l.b.compare(Predicate::Ge, exact, low)?;
    let below = l.b.compare(Predicate::Le, exact, high)?;
    let cond = l.b.binary(BinaryFn::And, above, below)?;
    let message = format!("{} overflow detected for operation {}", s.triton_name(), f.name());
    let text = l.place(range).text().to_string();
    let mut names = Texts::new();
    names.push(Text(text.into()));
    l.b.ops(TileOp::Assert {
        cond,
        mask: None,
        message: Text(message.into()),
        values: vec![exact],
        names,
    })?;
    Ok(())
}
