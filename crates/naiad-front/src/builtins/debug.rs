//! What a kernel says while it runs: printing and assertions.

use crate::lower::{Args, Lower, Operand};
use crate::source::Result;
use crate::value::{Const, Val};
use naiad_diag::Id;
use naiad_ir::scalar::{BinaryFn, Predicate, UnaryFn};
use naiad_ir::tile::{Text, Texts, TileOp, broadcast_shapes};
use naiad_ir::{Elem, Scalar, Value};
use ruff_python_ast::{self as ast, Expr};
use ruff_text_size::{Ranged, TextRange};

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
    if let Some(word) = words.iter().find(|w| w.contains(char::is_control)) {
        let message = format!("{word:?} holds a control character, which would break the lines");
        return Err(l.error(Id::BadArgument, message, a.range, ""));
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
    let text = l.place(o.range).text().to_string();
    let expr = crate::source::expression(&text);
    assert_that(l, &o, expr.as_ref().map(|e| (e, text.as_str())), &message, mask, a.range)?;
    Ok(Val::NONE)
}

/// An assertion on a value of the kernel; `source` is how the text writes it.
pub fn assert_that(
    l: &mut Lower<'_>,
    cond: &Operand,
    source: Option<(&Expr, &str)>,
    message: &str,
    mask: Option<Value>,
    range: TextRange,
) -> Result<()> {
    let v = l.tensor(cond)?;
    let (mut values, mut names) = (Vec::new(), Texts::new());
    if let Some((expr, text)) = source {
        watched(l, v, expr, text, &mut values, &mut names);
    }
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

/// What a condition was made from, with the names that the text gives it: the two sides of each
/// comparison. The text and the ops are walked together; where they part, nothing more is watched.
fn watched(
    l: &Lower<'_>,
    cond: Value,
    expr: &Expr,
    text: &str,
    values: &mut Vec<Value>,
    names: &mut Texts,
) {
    let mut cond = cond;
    while let Some(TileOp::Splat { src, .. } | TileOp::Broadcast { src, .. }) =
        l.b.func.defining_op(cond)
    {
        cond = *src;
    }
    match (l.b.func.defining_op(cond), expr) {
        (Some(&TileOp::Compare { a, b, .. }), Expr::Compare(c)) if c.comparators.len() == 1 => {
            for (value, side) in [(a, &*c.left), (b, &c.comparators[0])] {
                let name = &text[side.range().start().to_usize()..side.range().end().to_usize()];
                let literal = matches!(side, Expr::NumberLiteral(_) | Expr::UnaryOp(_));
                if !literal && !names.iter().any(|n| &*n.0 == name) {
                    values.push(value);
                    names.push(Text(name.into()));
                }
            }
        }
        (Some(&TileOp::Binary { f: BinaryFn::And | BinaryFn::Or, a, b }), _) => {
            let (x, y) = match expr {
                Expr::BinOp(ast::ExprBinOp { left, right, .. }) => (&**left, &**right),
                Expr::BoolOp(e) if e.values.len() == 2 => (&e.values[0], &e.values[1]),
                _ => return,
            };
            watched(l, a, x, text, values, names);
            watched(l, b, y, text, values, names);
        }
        (Some(&TileOp::Unary { f: UnaryFn::Not, x }), Expr::UnaryOp(e)) => {
            watched(l, x, &e.operand, text, values, names);
        }
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
        assert_that(
            l,
            &cond,
            None,
            "a value that was expected to be 0 is not",
            Some(mask),
            a.range,
        )?;
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
    if !l.options.debug || !l.options.sanitize_overflow || !watched {
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
