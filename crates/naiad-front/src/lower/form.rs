//! What values are made of as they cross the edge of a region, and their truth as conditions.

use super::Lower;
use crate::source::Result;
use crate::value::{Const, Tuple, Val, Window, type_name};
use naiad_diag::Id;
use naiad_ir::scalar::Predicate;
use naiad_ir::tile::{BuildError, TileOp};
use naiad_ir::{Elem, Scalar, Shape, Type, Value};
use ruff_text_size::TextRange;
use std::rc::Rc;
use std::sync::Arc;

/// What a value is made of, as it crosses the edge of a region.
#[derive(Clone)]
pub(super) enum Form {
    /// Known at compile time, the same on every path.
    Fixed(Val),
    Tensor(Type),
    Tuple(Vec<Form>, Option<Arc<[String]>>),
    /// One such window, and the types of its run-time parts.
    Window(Rc<Window>, Vec<Type>),
}

impl PartialEq for Form {
    fn eq(&self, other: &Form) -> bool {
        match (self, other) {
            (Form::Fixed(a), Form::Fixed(b)) => a.const_eq(b) == Some(true),
            (Form::Tensor(a), Form::Tensor(b)) => a == b,
            (Form::Tuple(a, _), Form::Tuple(b, _)) => a == b,
            (Form::Window(a, x), Form::Window(b, y)) => a.same_form(b) && x == y,
            _ => false,
        }
    }
}

impl Form {
    pub fn types(&self, out: &mut Vec<Type>) {
        match self {
            Form::Fixed(_) => {}
            Form::Tensor(ty) => out.push(*ty),
            Form::Tuple(items, _) => items.iter().for_each(|f| f.types(out)),
            Form::Window(_, types) => out.extend(types),
        }
    }

    /// The value of this form, its run-time parts taken from `values` in order.
    pub fn rebuild(&self, values: &mut impl Iterator<Item = Value>) -> Val {
        match self {
            Form::Fixed(v) => v.clone(),
            Form::Tensor(_) => values.next().map_or(Val::NONE, Val::Tensor),
            Form::Tuple(items, names) => {
                let items = items.iter().map(|f| f.rebuild(values)).collect();
                Val::Tuple(Rc::new(Tuple { items, names: names.clone() }))
            }
            Form::Window(w, _) => Val::Window(Rc::new(w.with_values(values))),
        }
    }
}

/// A condition, decided now or at run time.
pub(crate) enum Cond {
    Known(bool),
    Runtime(Value),
}

impl Lower<'_> {
    /// The type that the value has, or would have as one of the running kernel.
    pub fn runtime_type(&self, val: &Val) -> Option<Type> {
        match val {
            Val::Tensor(v) => Some(self.ty(*v)),
            Val::Const(c) => c.natural_type().map(Type::scalar),
            _ => None,
        }
    }

    /// Whether the value, or a part of it, is or could be one of the running kernel.
    pub(super) fn is_run_time(&self, val: &Val) -> bool {
        match val {
            Val::Tuple(t) => t.items.iter().any(|v| self.is_run_time(v)),
            Val::Window(_) => true,
            other => self.runtime_type(other).is_some(),
        }
    }

    pub(super) fn form(&self, val: &Val) -> Form {
        match val {
            Val::Tensor(v) => Form::Tensor(self.ty(*v)),
            Val::Tuple(t) => {
                Form::Tuple(t.items.iter().map(|v| self.form(v)).collect(), t.names.clone())
            }
            Val::Window(w) => Form::Window(w.clone(), w.values().map(|v| self.ty(v)).collect()),
            other => Form::Fixed(other.clone()),
        }
    }

    /// The form that both values can take; constexprs that differ become run-time scalars.
    pub(super) fn join(&self, a: &Val, b: &Val) -> Option<Form> {
        if let (Val::Tuple(x), Val::Tuple(y)) = (a, b) {
            if x.items.len() != y.items.len() {
                return None;
            }
            let items = x.items.iter().zip(&y.items).map(|(x, y)| self.join(x, y));
            return Some(Form::Tuple(items.collect::<Option<Vec<_>>>()?, x.names.clone()));
        }
        if let (Val::Window(_), Val::Window(_)) = (a, b) {
            let form = self.form(a);
            return (form == self.form(b)).then_some(form);
        }
        let (ta, tb) = (self.runtime_type(a), self.runtime_type(b));
        if a.const_eq(b) == Some(true) && ta == tb {
            return Some(Form::Fixed(a.clone()));
        }
        match (ta, tb) {
            (Some(x), Some(y)) if x == y => Some(Form::Tensor(x)),
            _ => None,
        }
    }

    pub(super) fn flatten(&mut self, val: &Val, form: &Form, out: &mut Vec<Value>) -> Result<()> {
        match (form, val) {
            (Form::Fixed(_), _) => Ok(()),
            (Form::Tensor(_), _) => {
                let value = self.materialize(val)?;
                out.push(
                    value
                        .ok_or_else(|| BuildError("a value without a run-time form".to_string()))?,
                );
                Ok(())
            }
            (Form::Tuple(forms, _), Val::Tuple(t)) => {
                for (form, item) in forms.iter().zip(&t.items) {
                    self.flatten(item, form, out)?;
                }
                Ok(())
            }
            (Form::Window(..), Val::Window(w)) => {
                out.extend(w.values());
                Ok(())
            }
            (Form::Tuple(..) | Form::Window(..), _) => {
                Err(BuildError("a value of another form than was".to_string()).into())
            }
        }
    }

    /// Values for a path on which nobody reads them.
    pub(super) fn zeros(&mut self, form: &Form, out: &mut Vec<Value>) -> Result<()> {
        let mut types = Vec::new();
        form.types(&mut types);
        for ty in types {
            out.push(self.b.full(ty, 0)?);
        }
        Ok(())
    }

    /// The truth of a value: of a compile-time one by Python's rules, of a run-time scalar by
    /// comparing it with 0.
    pub fn condition(&mut self, val: &Val, range: TextRange) -> Result<Cond> {
        let value = match val {
            Val::Tensor(v) => *v,
            Val::Const(c @ (Const::None | Const::Bool(_) | Const::Int(_))) => {
                return Ok(Cond::Known(c.truthy()));
            }
            other => {
                let what = self.describe(other);
                let message = "a condition at compile time is a bool, an integer or None";
                let label = format!("this is {what}");
                let e = self.error(Id::TypeMismatch, message, range, label);
                let help = "compare it: `x != 0.0`, `x != \"\"`, `len(x) > 0`, `x is not None`";
                return Err(Box::new((*e).help(help)));
            }
        };
        let ty = self.ty(value);
        if ty.shape.numel() != 1 {
            let what = type_name(ty);
            let e = self.error(
                Id::AmbiguousCondition,
                "Boolean value of Tensor with more than one value is ambiguous: a condition must be a scalar",
                range,
                format!("this is {what}"),
            );
            return Err(Box::new((*e).help("choose lane by lane with `tl.where(condition, a, b)`, or reduce it with `tl.max` or `tl.sum` first")));
        }
        let mut scalar = value;
        if !ty.is_scalar() {
            scalar = self.b.op(TileOp::Reshape { src: value, shape: Shape::SCALAR })?;
        }
        if ty.is_pointer() {
            scalar = self.b.op(TileOp::Bitcast { src: scalar, to: Elem::Scalar(Scalar::I64) })?;
        }
        Ok(Cond::Runtime(self.nonzero(scalar)?))
    }

    /// Lane by lane `x != 0`; of i1 the value itself.
    pub fn nonzero(&mut self, x: Value) -> Result<Value> {
        let ty = self.ty(x);
        if ty.elem == Elem::Scalar(Scalar::I1) {
            return Ok(x);
        }
        let zero = self.b.full(ty, 0)?;
        Ok(self.b.compare(Predicate::Ne, x, zero)?)
    }
}
