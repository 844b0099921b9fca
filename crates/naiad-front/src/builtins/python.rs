//! Python's own functions, as far as kernels may call them.

use super::create::number;
use crate::lower::{Args, Lower, Operand, Operator};
use crate::source::Result;
use crate::value::{Const, Number, Val};
use naiad_diag::Id;
use naiad_ir::scalar::BinaryFn;

pub fn len(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    match &a.need(0).val {
        Val::Tuple(t) => Ok(Val::int(t.items.len() as i128)),
        Val::Const(Const::Str(s)) => Ok(Val::int(s.chars().count() as i128)),
        Val::Tensor(v) if !l.ty(*v).is_scalar() => Ok(Val::int(l.ty(*v).shape.dim(0) as i128)),
        other => {
            let what = l.describe(other);
            Err(l.error(Id::BadArgument, format!("{what} has no length"), a.need(0).range, ""))
        }
    }
}

/// The extremum of compile-time numbers, or of scalars pair by pair.
fn extremum(
    l: &mut Lower<'_>,
    a: &Args,
    f: BinaryFn,
    keep_left: std::cmp::Ordering,
) -> Result<Val> {
    let items: Vec<Operand> = match a.rest.as_slice() {
        [Operand { val: Val::Tuple(t), range }] => {
            t.items.iter().map(|v| Operand::new(v.clone(), *range)).collect()
        }
        several => several.to_vec(),
    };
    let mut items = items.into_iter();
    let Some(mut best) = items.next() else {
        return Err(l.error(Id::BadCall, "at least one argument is wanted", a.range, ""));
    };
    for next in items {
        let val = match (number(&best.val), number(&next.val)) {
            (Some(x), Some(y)) => {
                let left = x.compare(&y).is_none_or(|o| o == keep_left || o.is_eq());
                if left { best.val.clone() } else { next.val.clone() }
            }
            _ => {
                let (x, y) = l.promoted(f.name(), false, &best, &next, a.range)?;
                Val::Tensor(l.b.binary(f, x, y)?)
            }
        };
        best = Operand::new(val, a.range);
    }
    Ok(best.val)
}

pub fn min(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    extremum(l, a, BinaryFn::Min, std::cmp::Ordering::Less)
}

pub fn max(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    extremum(l, a, BinaryFn::Max, std::cmp::Ordering::Greater)
}

fn known_number(l: &mut Lower<'_>, a: &Args, what: &str) -> Result<Number> {
    let o = a.need(0);
    if let Some(n) = number(&o.val) {
        return Ok(n);
    }
    let (d, range) = (l.describe(&o.val), o.range);
    let e = l.error(
        Id::NotConstexpr,
        format!("`{what}()` wants a number known at compile time"),
        range,
        format!("this is {d}"),
    );
    Err(Box::new((*e).help("use `.to(...)` for run-time values")))
}

pub fn int(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    Ok(match known_number(l, a, "int")? {
        Number::Int(i) => Val::int(i),
        Number::Float(f) => Val::int(f as i128),
    })
}

pub fn float(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    if let Val::Const(Const::Str(s)) = &a.need(0).val {
        let parsed = s.trim().parse::<f64>();
        return parsed
            .map(|f| Val::Const(Const::Float(f)))
            .map_err(|_| l.error(Id::BadArgument, format!("'{s}' is no number"), a.range, ""));
    }
    Ok(Val::Const(Const::Float(known_number(l, a, "float")?.as_f64())))
}

/// `x.__lshift__(n)` and its kin: the row's name says which operator.
pub fn operator(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    match Operator::from_method(a.entry.path) {
        Some(op) => l.binary(op, a.need(0).clone(), a.need(1).clone(), a.range),
        None => Ok(Val::NONE),
    }
}

/// Whether the value is of a class; classes are known by their names.
pub fn isinstance(_: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let object = &a.need(0).val;
    let is = |class: &Val| {
        let name = match class {
            Val::Object(_, what) => what
                .trim_end_matches('\'')
                .rsplit(['.', '\'', ' '])
                .next()
                .unwrap_or("")
                .to_string(),
            Val::Builtin(e) => e.path.trim_start_matches("python.").to_string(),
            _ => String::new(),
        };
        let class_of_type = match object {
            Val::DType(ty) if !ty.is_scalar() => "block_type",
            Val::DType(ty) if ty.is_pointer() => "pointer_type",
            _ => "",
        };
        name == class_of_type
            || matches!(
                (name.as_str(), object),
                ("tensor", Val::Tensor(_))
                    | ("tuple", Val::Tuple(_))
                    | ("dtype", Val::DType(_))
                    | ("tensor_descriptor", Val::Window(_))
                    | ("constexpr", Val::Const(_))
                    | ("constexpr_type", Val::ConstexprType(_))
                    | ("bool", Val::Const(Const::Bool(_)))
                    | ("str", Val::Const(Const::Str(_)))
                    | ("int", Val::Const(Const::Int(_) | Const::Bool(_)))
                    | ("float", Val::Const(Const::Float(_)))
            )
    };
    Ok(Val::bool(match &a.need(1).val {
        Val::Tuple(t) => t.items.iter().any(is),
        one => is(one),
    }))
}

pub fn getattr(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let Some(name) = l.const_str(Some(a.need(1)))? else { return Ok(Val::NONE) };
    let object = a.need(0).val.clone();
    if let Some(val) = l.attribute(&object, &name, a.range)? {
        return Ok(val);
    }
    match a.opt(2) {
        Some(default) => Ok(default.val.clone()),
        None => {
            let what = l.describe(&object);
            Err(l.error(
                Id::UnknownAttribute,
                format!("{what} has no attribute `{name}`"),
                a.range,
                "",
            ))
        }
    }
}

pub fn hasattr(l: &mut Lower<'_>, a: &Args) -> Result<Val> {
    let Some(name) = l.const_str(Some(a.need(1)))? else { return Ok(Val::bool(false)) };
    let object = a.need(0).val.clone();
    Ok(Val::bool(l.attribute(&object, &name, a.range)?.is_some()))
}
