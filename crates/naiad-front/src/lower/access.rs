//! Attributes of values, and indices.

use super::Lower;
use crate::names;
use crate::source::Result;
use crate::value::{Const, Tuple, Val, type_name};
use naiad_diag::{Diagnostic, Id};
use naiad_ir::tile::{Axes, TileOp};
use naiad_ir::{Elem, Type, Value};
use ruff_python_ast::{self as ast, Expr};
use ruff_text_size::{Ranged, TextRange};
use std::rc::Rc;

impl Lower<'_> {
    /// An attribute or method; none if the object has no such one.
    pub fn attribute(&mut self, object: &Val, name: &str, range: TextRange) -> Result<Option<Val>> {
        let found = match object {
            Val::Tensor(v) => {
                let ty = self.ty(*v);
                match name {
                    "dtype" => Some(Val::DType(ty.with_shape(naiad_ir::Shape::SCALAR))),
                    "type" => Some(Val::DType(ty)),
                    "shape" => {
                        Some(Val::tuple(ty.shape.dims().map(|d| Val::int(d as i128)).collect()))
                    }
                    "numel" => Some(Val::int(ty.shape.numel() as i128)),
                    "T" if ty.shape.rank() == 2 => Some(Val::Tensor(
                        self.b.op(TileOp::Permute { src: *v, order: Axes::from_slice(&[1, 0]) })?,
                    )),
                    "T" => {
                        let what = type_name(ty);
                        return Err(self.error(
                            Id::BadShape,
                            format!("`.T` wants rank 2, not {what}"),
                            range,
                            "",
                        ));
                    }
                    _ => None,
                }
            }
            // `.value` of a constexpr is what a constexpr already is here. Dtypes and functions are
            // seen with it where they came in through a constexpr parameter.
            Val::Const(_) | Val::DType(_) | Val::Function(_) if name == "value" => {
                Some(object.clone())
            }
            Val::Const(c) if name == "dtype" => {
                c.natural_type().map(|s| Val::DType(Type::scalar(s)))
            }
            Val::Const(_) if name == "type" => Some(Val::ConstexprType(Rc::new(object.clone()))),
            // A tuple that is known whole can be nothing but a constexpr.
            Val::Tuple(_) if name == "type" && object.const_eq(object).is_some() => {
                Some(Val::ConstexprType(Rc::new(object.clone())))
            }
            Val::ConstexprType(value) if name == "value" => Some((**value).clone()),
            Val::DType(ty) => self.dtype_attribute(*ty, name),
            Val::Tuple(t) => {
                let field = t.names.as_ref().and_then(|n| n.iter().position(|f| f == name));
                field
                    .and_then(|i| t.items.get(i).cloned())
                    .or((name == "value").then(|| object.clone()))
            }
            Val::Object(o, _) => {
                let found = self.host.attribute(*o, name);
                found
                    .map_err(|e| self.error(Id::UnknownAttribute, e.0, range, ""))?
                    .map(Val::from_host)
            }
            Val::Window(w) => crate::builtins::window::attribute(self, w, name),
            Val::Builtin(_)
            | Val::Function(_)
            | Val::ConstexprType(_)
            | Val::Method(..)
            | Val::Iter(_)
            | Val::Undefined(_)
            | Val::Missing(_)
            | Val::Const(_) => None,
        };
        if found.is_some() {
            return Ok(found);
        }
        let entry = names::Receiver::of(object).and_then(|r| names::method_entry(name, r));
        Ok(entry.map(|entry| Val::Method(Rc::new(object.clone()), entry)))
    }

    pub(super) fn unknown_attribute(
        &mut self,
        object: &Val,
        a: &ast::ExprAttribute,
    ) -> Box<Diagnostic> {
        let name = a.attr.as_str();
        if let Val::Object(_, what) = object
            && let Some(prefix) = names::language_module(what)
        {
            let path =
                if prefix.is_empty() { name.to_string() } else { format!("{prefix}.{name}") };
            let shown = self.place(a.range()).text().to_string();
            let e = self.error(
                Id::UnknownTlName,
                format!("`{shown}` is not a name of the Triton language that Naiad supports"),
                a.attr.range(),
                "",
            );
            return Box::new(match names::nearest(&path, names::paths()) {
                Some(n) => (*e).help(format!("did you mean `tl.{n}`?")),
                None => *e,
            });
        }
        let what = self.describe(object);
        let e = self.error(
            Id::UnknownAttribute,
            format!("{what} has no attribute `{name}`"),
            a.attr.range(),
            "",
        );
        let nearest =
            names::Receiver::of(object).and_then(|r| names::nearest(name, names::methods(r)));
        Box::new(match nearest {
            Some(n) => (*e).help(format!("did you mean `.{n}`?")),
            None => *e,
        })
    }

    fn dtype_attribute(&mut self, ty: Type, name: &str) -> Option<Val> {
        let scalar = naiad_ir::Shape::SCALAR;
        Some(match (name, ty.elem) {
            ("element_ty", Elem::Pointer(p)) if ty.is_scalar() => {
                Val::DType(Type::scalar(p.pointee))
            }
            ("element_ty" | "scalar", _) => Val::DType(ty.with_shape(scalar)),
            ("shape", _) => Val::tuple(ty.shape.dims().map(|d| Val::int(d as i128)).collect()),
            ("numel", _) => Val::int(ty.shape.numel() as i128),
            ("name", Elem::Scalar(s)) if s.is_int() => Val::str(s.triton_name()),
            ("name", _) => Val::str(&ty.elem.to_string()),
            ("primitive_bitwidth", Elem::Scalar(s)) => Val::int(s.bits() as i128),
            ("primitive_bitwidth", Elem::Pointer(_)) => Val::int(64),
            ("int_bitwidth", Elem::Scalar(s)) if s.is_int() => Val::int(s.bits() as i128),
            ("itemsize", Elem::Scalar(s)) => Val::int(s.size() as i128),
            ("exponent_bias", Elem::Scalar(s)) if s.is_float() => {
                Val::int(i128::from(s.float_format().map_or(0, |f| f.0)))
            }
            ("fp_mantissa_width", Elem::Scalar(s)) if s.is_float() => {
                Val::int(i128::from(s.float_format().map_or(0, |f| f.1)))
            }
            _ => return None,
        })
    }

    pub(super) fn subscript(&mut self, s: &ast::ExprSubscript) -> Result<Val> {
        let object = self.eval(&s.value)?;
        match &object {
            Val::Tensor(v) => self.index_tile(*v, s),
            Val::Tuple(t) => self.index_tuple(t, s),
            other => {
                let what = self.describe(other);
                Err(self.error(
                    Id::TypeMismatch,
                    format!("{what} cannot be indexed"),
                    s.range(),
                    "",
                ))
            }
        }
    }

    /// `x[:, None]`: full slices keep an axis, `None` puts one in.
    fn index_tile(&mut self, v: Value, s: &ast::ExprSubscript) -> Result<Val> {
        let indices: Vec<&Expr> = match &*s.slice {
            Expr::Tuple(t) => t.elts.iter().collect(),
            one => vec![one],
        };
        let ty = self.ty(v);
        let mut out = v;
        let (mut axis, mut kept) = (0, 0);
        for index in indices {
            match index {
                Expr::Slice(slice) => {
                    // `None:` is `:` too.
                    let mut is_full = true;
                    for bound in [&slice.lower, &slice.upper, &slice.step].into_iter().flatten() {
                        is_full &= self.eval(bound)?.is_none();
                    }
                    if is_full {
                        kept += 1;
                        // Of a scalar all axes are new, and kernels write `:` beside them.
                        axis += usize::from(!ty.is_scalar());
                        continue;
                    }
                }
                other => {
                    if self.eval(other)?.is_none() {
                        out = self.expand_dims(out, axis, other.range())?;
                        axis += 1;
                        continue;
                    }
                }
            }
            if ty.is_scalar() && ty.is_pointer() {
                let message = "a pointer cannot be indexed";
                let e = self.error(Id::TypeMismatch, message, s.range(), "");
                let help = "read memory with `tl.load(ptr + offsets, mask=...)`";
                return Err(Box::new((*e).help(help)));
            }
            let e = self.error(
                Id::TypeMismatch,
                "a tile is indexed by `:` and `None` only",
                index.range(),
                "",
            );
            return Err(Box::new((*e).help("a tile is one value: pick elements with `tl.where` and a reduction, `tl.gather`, or by loading them again")));
        }
        if kept > ty.shape.rank() && (!ty.is_scalar() || out == v) {
            let message = format!("{kept} axes are indexed, the tile has {}", ty.shape.rank());
            return Err(self.error(
                Id::BadShape,
                message,
                s.slice.range(),
                format!("shape {}", ty.shape),
            ));
        }
        Ok(Val::Tensor(out))
    }

    pub fn expand_dims(&mut self, v: Value, axis: usize, range: TextRange) -> Result<Value> {
        let ty = self.ty(v);
        if axis > ty.shape.rank() {
            let message = format!("axis {axis} cannot be put into a tile of shape {}", ty.shape);
            return Err(self.error(Id::BadShape, message, range, ""));
        }
        if ty.is_scalar() {
            let shape = ty.shape.with_inserted(0, 1).unwrap_or(ty.shape);
            return Ok(self.b.op(TileOp::Splat { src: v, shape })?);
        }
        if let Err(e) = ty.shape.with_inserted(axis, 1) {
            return Err(self.bad_shape(e, range));
        }
        Ok(self.b.op(TileOp::ExpandDims { src: v, axis })?)
    }

    fn index_tuple(&mut self, t: &Tuple, s: &ast::ExprSubscript) -> Result<Val> {
        let len = t.items.len() as i128;
        let int = |l: &mut Self, e: &Expr| -> Result<i128> {
            match l.eval(e)? {
                Val::Const(Const::Int(i)) => Ok(i),
                Val::Const(Const::Bool(b)) => Ok(b as i128),
                other => {
                    let what = l.describe(&other);
                    Err(l.error(
                        Id::NotConstexpr,
                        "a tuple is indexed by constexpr integers",
                        e.range(),
                        format!("this is {what}"),
                    ))
                }
            }
        };
        if let Expr::Slice(slice) = &*s.slice {
            let step = slice.step.as_ref().map_or(Ok(1), |e| int(self, e))?;
            if step == 0 {
                return Err(self.error(
                    Id::BadArgument,
                    "a slice's step must not be 0",
                    slice.range(),
                    "",
                ));
            }
            let clamp = |i: i128| {
                let i = if i < 0 { i + len } else { i };
                if step > 0 { i.clamp(0, len) } else { i.clamp(-1, len - 1) }
            };
            let lower = match &slice.lower {
                Some(e) => clamp(int(self, e)?),
                None => {
                    if step > 0 {
                        0
                    } else {
                        len - 1
                    }
                }
            };
            let upper = match &slice.upper {
                Some(e) => clamp(int(self, e)?),
                None => {
                    if step > 0 {
                        len
                    } else {
                        -1
                    }
                }
            };
            let mut items = Vec::new();
            let mut i = lower;
            while (step > 0 && i < upper) || (step < 0 && i > upper) {
                items.push(t.items[i as usize].clone());
                i += step;
            }
            return Ok(Val::tuple(items));
        }
        let i = int(self, &s.slice)?;
        let at = if i < 0 { i + len } else { i };
        match usize::try_from(at).ok().and_then(|i| t.items.get(i)) {
            Some(item) => Ok(item.clone()),
            None => Err(self.error(
                Id::BadArgument,
                format!("index {i} is out of range for a tuple of {len}"),
                s.slice.range(),
                "",
            )),
        }
    }
}
