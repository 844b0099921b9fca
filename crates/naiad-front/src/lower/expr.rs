//! Expressions.

use super::form::Cond;
use super::operator::{Operand, Operator};
use super::{Lower, call};
use crate::names;
use crate::source::Result;
use crate::value::{Const, Tuple, Val, type_name};
use naiad_diag::{Diagnostic, Id};
use naiad_ir::scalar::{BinaryFn, Predicate, UnaryFn};
use naiad_ir::tile::{Axes, TileOp};
use naiad_ir::{Elem, Scalar, Type, Value};
use ruff_python_ast::{self as ast, CmpOp, Expr};
use ruff_text_size::{Ranged, TextRange};
use std::rc::Rc;

impl Lower<'_> {
    /// The value of an expression. Ops made for it carry its place.
    pub fn eval(&mut self, e: &Expr) -> Result<Val> {
        // Long chains of operators make deep trees.
        stacker::maybe_grow(128 << 10, 4 << 20, || {
            let outer = self.b.loc;
            self.b.loc = self.loc(e.range());
            let val = self.eval_here(e);
            self.b.loc = outer;
            val
        })
    }

    fn eval_here(&mut self, e: &Expr) -> Result<Val> {
        match e {
            Expr::Name(n) => self.name(n),
            Expr::NumberLiteral(n) => self.number(n),
            Expr::BooleanLiteral(b) => Ok(Val::bool(b.value)),
            Expr::NoneLiteral(_) => Ok(Val::NONE),
            Expr::EllipsisLiteral(_) => Ok(Val::Const(Const::Ellipsis)),
            Expr::StringLiteral(s) => Ok(Val::str(s.value.to_str())),
            Expr::FString(f) => self.f_string(f),
            Expr::Tuple(ast::ExprTuple { elts, .. }) | Expr::List(ast::ExprList { elts, .. }) => {
                Ok(Val::tuple(self.items(elts)?))
            }
            Expr::BinOp(b) => {
                let left = Operand::new(self.eval(&b.left)?, b.left.range());
                let right = Operand::new(self.eval(&b.right)?, b.right.range());
                self.binary(Operator::from_ast(b.op), left, right, b.range())
            }
            Expr::UnaryOp(u) => self.unary(u),
            Expr::BoolOp(b) => self.bool_op(b),
            Expr::Compare(c) => self.compare(c),
            Expr::If(i) => self.if_expr(i),
            Expr::Attribute(a) => {
                let object = self.eval(&a.value)?;
                match self.attribute(&object, a.attr.as_str(), a.range())? {
                    Some(val) => Ok(val),
                    None => Err(self.unknown_attribute(&object, a)),
                }
            }
            Expr::Subscript(s) => self.subscript(s),
            Expr::Call(c) => self.call(c),
            Expr::Named(n) => {
                let val = self.eval(&n.value)?;
                self.assign_to(&n.target, val.clone(), n.value.range())?;
                // The expression's value is what the name got, which has decayed.
                self.eval(&n.target.clone().load())
            }
            other => Err(self.unsupported_expr(other)),
        }
    }

    /// Elements of a tuple display or an argument list, with `*tuple` spread.
    pub fn items(&mut self, elts: &[Expr]) -> Result<Vec<Val>> {
        let mut out = Vec::with_capacity(elts.len());
        for e in elts {
            let Expr::Starred(star) = e else {
                out.push(self.eval(e)?);
                continue;
            };
            match self.eval(&star.value)? {
                Val::Tuple(t) => out.extend(t.items.iter().cloned()),
                other => {
                    let what = self.describe(&other);
                    return Err(self.error(Id::TypeMismatch, format!("cannot spread {what}"), e.range(), "this is no tuple"));
                }
            }
        }
        Ok(out)
    }

    fn name(&mut self, n: &ast::ExprName) -> Result<Val> {
        let name = n.id.as_str();
        if let Some(binding) = self.frame().env.get(name) {
            let binding = binding.clone();
            if let Val::Undefined(why) = &binding.val {
                let d = self.error(Id::UndefinedName, format!("`{name}` is not defined here: {why}"), n.range(), "");
                let d = d.secondary(binding.place.clone(), "assigned here");
                return Err(Box::new(d.help(format!("give `{name}` a value before"))));
            }
            return Ok(binding.val);
        }
        let function = self.frame().function;
        let resolved = self.host.resolve(function, name);
        let resolved = resolved.map_err(|e| self.error(Id::UndefinedName, e.0, n.range(), ""))?;
        match resolved {
            Some(value) => self.global(name, value, n.range()),
            None => match names::python_builtin(name) {
                Some(entry) => Ok(Val::Builtin(entry)),
                None => Err(self.undefined(name, n.range())),
            },
        }
    }

    /// A name of the module. Plain numbers there are refused, as Triton does: a kernel compiled
    /// with one would not notice that it changes.
    fn global(&mut self, name: &str, value: crate::HostValue, range: TextRange) -> Result<Val> {
        use crate::HostValue as H;
        match value {
            H::Bool(_) | H::Int(_) | H::Float(_) | H::Str(_) => {
                let val = Val::from_host(value);
                let Val::Const(c) = &val else { return Ok(val) };
                let e = self.error(
                    Id::BadGlobal,
                    format!("Cannot access global variable `{name}` from a kernel: it is not a constexpr"),
                    range,
                    format!("this is the plain value {c}"),
                );
                Err(Box::new((*e)
                    .note("kernels are compiled once; a plain global could change without their noticing")
                    .help(format!("write `{name} = tl.constexpr({c})`, or pass it as an argument"))))
            }
            other => Ok(Val::from_host(other)),
        }
    }

    fn undefined(&mut self, name: &str, range: TextRange) -> Box<Diagnostic> {
        let mut known: Vec<&str> = self.frame().env.keys().map(|k| &**k).collect();
        known.sort_unstable();
        let nearest = names::nearest(name, known).map(str::to_string);
        let e = self.error(Id::UndefinedName, format!("`{name}` is not defined"), range, "");
        Box::new(match nearest {
            Some(n) => (*e).help(format!("did you mean `{n}`?")),
            None => *e,
        })
    }

    fn number(&mut self, n: &ast::ExprNumberLiteral) -> Result<Val> {
        match &n.value {
            ast::Number::Float(f) => Ok(Val::Const(Const::Float(*f))),
            ast::Number::Int(i) => {
                let parsed = match i.as_u64() {
                    Some(i) => Some(i as i128),
                    None => i.to_string().replace('_', "").parse::<i128>().ok(),
                };
                match parsed {
                    Some(i) => Ok(Val::int(i)),
                    None => Err(self.error(Id::LiteralRange, "this integer is out of range: it has more than 127 bits", n.range(), "")),
                }
            }
            ast::Number::Complex { .. } => {
                Err(self.error(Id::UnsupportedPython, "kernels have no complex numbers", n.range(), ""))
            }
        }
    }

    fn f_string(&mut self, f: &ast::ExprFString) -> Result<Val> {
        let mut out = String::new();
        for part in &f.value {
            match part {
                ast::FStringPart::Literal(s) => out.push_str(&s.value),
                ast::FStringPart::FString(f) => {
                    for element in &f.elements {
                        match element {
                            ast::InterpolatedStringElement::Literal(s) => out.push_str(&s.value),
                            ast::InterpolatedStringElement::Interpolation(i) => {
                                let val = self.eval(&i.expression)?;
                                out.push_str(&self.display(&val));
                            }
                        }
                    }
                }
            }
        }
        Ok(Val::str(&out))
    }

    /// The value as `tl.static_print` and f-strings show it.
    pub fn display(&self, val: &Val) -> String {
        match val {
            Val::Const(Const::Str(s)) => s.to_string(),
            Val::Const(c) => c.to_string(),
            Val::Tuple(t) => {
                let items: Vec<String> = t.items.iter().map(|v| self.display(v)).collect();
                format!("({}{})", items.join(", "), if items.len() == 1 { "," } else { "" })
            }
            Val::DType(ty) => ty.to_string(),
            Val::Tensor(v) => {
                let ty = self.ty(*v);
                let dims: Vec<String> = ty.shape.dims().map(|d| d.to_string()).collect();
                let elem = ty.elem.scalar().map_or_else(|| ty.elem.to_string(), |s| s.triton_name().to_string());
                format!("{elem}[{}]", dims.join(", "))
            }
            other => self.describe(other),
        }
    }

    // ---- operators ----------------------------------------------------------------------------

    fn unary(&mut self, u: &ast::ExprUnaryOp) -> Result<Val> {
        let val = self.eval(&u.operand)?;
        let range = u.range();
        match (&val, u.op) {
            (_, ast::UnaryOp::Not) => self.logical_not(val, u.operand.range()),
            (Val::Const(c), op) => {
                use crate::value::Number;
                let result = match (c.as_number(), op) {
                    (Some(Number::Int(i)), ast::UnaryOp::USub) => i.checked_neg().map(Const::Int),
                    (Some(Number::Int(i)), ast::UnaryOp::UAdd) => Some(Const::Int(i)),
                    (Some(Number::Int(i)), ast::UnaryOp::Invert) => Some(Const::Int(!i)),
                    (Some(Number::Float(f)), ast::UnaryOp::USub) => Some(Const::Float(-f)),
                    (Some(Number::Float(f)), ast::UnaryOp::UAdd) => Some(Const::Float(f)),
                    _ => None,
                };
                result.map(Val::Const).ok_or_else(|| {
                    self.error(Id::TypeMismatch, format!("bad operand of unary `{}`: {c}", op.as_str()), range, "")
                })
            }
            (Val::Tensor(v), op) => {
                let ty = self.ty(*v);
                let f = match (op, ty.elem) {
                    (ast::UnaryOp::USub, Elem::Scalar(_)) => UnaryFn::Neg,
                    (ast::UnaryOp::Invert, Elem::Scalar(s)) if s.is_int() => UnaryFn::Not,
                    _ => {
                        let what = type_name(ty);
                        let message = format!("unary `{}` is not defined for a {what}", op.as_str());
                        return Err(self.error(Id::TypeMismatch, message, range, ""));
                    }
                };
                Ok(Val::Tensor(self.b.unary(f, *v)?))
            }
            (other, op) => {
                let what = self.describe(other);
                Err(self.error(Id::TypeMismatch, format!("unary `{}` is not defined for {what}", op.as_str()), range, ""))
            }
        }
    }

    fn logical_not(&mut self, val: Val, range: TextRange) -> Result<Val> {
        match val {
            Val::Tensor(v) => {
                let bit = self.want_bool(v, "not", range)?;
                Ok(Val::Tensor(self.b.unary(UnaryFn::Not, bit)?))
            }
            other => match self.condition(&other, range)? {
                Cond::Known(b) => Ok(Val::bool(!b)),
                Cond::Runtime(c) => Ok(Val::Tensor(self.b.unary(UnaryFn::Not, c)?)),
            },
        }
    }

    /// `and`, `or` and `not` want i1; what Triton says of other types there is a failed bitcast.
    fn want_bool(&mut self, v: Value, op: &str, range: TextRange) -> Result<Value> {
        let ty = self.ty(v);
        if ty.elem == Elem::Scalar(Scalar::I1) {
            return Ok(v);
        }
        let what = type_name(ty);
        let e = self.error(Id::TypeMismatch, format!("`{op}` wants booleans of the running kernel, not {what}"), range, format!("this is {what}"));
        let help = if op == "not" { "write `x == 0`" } else { "write `(a != 0) & (b != 0)`, or with `|`" };
        Err(Box::new((*e).help(help)))
    }

    /// Compile-time operands fold from left to right, by truth alone, as long as they decide;
    /// run-time operands are all evaluated and combined bit by bit.
    fn bool_op(&mut self, b: &ast::ExprBoolOp) -> Result<Val> {
        let is_and = b.op == ast::BoolOp::And;
        let mut acc: Option<(Value, TextRange)> = None;
        let mut last = Val::NONE;
        for (i, e) in b.values.iter().enumerate() {
            let val = self.eval(e)?;
            let Val::Tensor(v) = val else {
                let Cond::Known(truth) = self.condition(&val, e.range())? else { continue };
                let decides = truth != is_and;
                let is_last = i + 1 == b.values.len();
                // An operand that decides is the result; one that does not is dropped, unless it
                // is all there is.
                if decides || (is_last && acc.is_none()) {
                    return Ok(val);
                }
                last = val;
                continue;
            };
            acc = Some(match acc {
                None => (v, e.range()),
                Some((left, left_range)) => {
                    let (x, y) = (self.want_bool(left, b.op.as_str(), left_range)?, self.want_bool(v, b.op.as_str(), e.range())?);
                    let f = Operator::Bits(if is_and { BinaryFn::And } else { BinaryFn::Or }, if is_and { "and" } else { "or" });
                    let joined = self.binary(f, Operand::new(Val::Tensor(x), left_range), Operand::new(Val::Tensor(y), e.range()), b.range())?;
                    match joined {
                        Val::Tensor(v) => (v, TextRange::new(left_range.start(), e.range().end())),
                        other => return Ok(other),
                    }
                }
            });
        }
        Ok(acc.map_or(last, |(v, _)| Val::Tensor(v)))
    }

    /// A chain is the conjunction of its parts; operands in the middle are evaluated once.
    fn compare(&mut self, c: &ast::ExprCompare) -> Result<Val> {
        let mut left = Operand::new(self.eval(&c.left)?, c.left.range());
        let mut acc: Option<Val> = None;
        for (op, e) in c.ops.iter().zip(c.comparators.iter()) {
            let right = Operand::new(self.eval(e)?, e.range());
            let range = TextRange::new(left.range.start(), e.range().end());
            let part = self.compare_one(*op, &left, &right, range)?;
            if let Val::Const(k) = &part
                && !k.truthy()
            {
                return Ok(part);
            }
            acc = Some(match acc {
                None | Some(Val::Const(_)) => part,
                Some(Val::Tensor(_)) if matches!(part, Val::Const(_)) => acc.unwrap_or(part),
                Some(joined) => self.binary(Operator::Bits(BinaryFn::And, "and"), Operand::new(joined, range), Operand::new(part, range), range)?,
            });
            left = right;
        }
        Ok(acc.unwrap_or(Val::bool(true)))
    }

    fn compare_one(&mut self, op: CmpOp, left: &Operand, right: &Operand, range: TextRange) -> Result<Val> {
        let predicate = match op {
            CmpOp::Eq => Predicate::Eq,
            CmpOp::NotEq => Predicate::Ne,
            CmpOp::Lt => Predicate::Lt,
            CmpOp::LtE => Predicate::Le,
            CmpOp::Gt => Predicate::Gt,
            CmpOp::GtE => Predicate::Ge,
            CmpOp::Is | CmpOp::IsNot => {
                // Identity is known at compile time: a value of the running kernel is never None.
                let same = match (&left.val, &right.val) {
                    (Val::Tensor(a), Val::Tensor(b)) => a == b,
                    (a, b) => a.const_eq(b).unwrap_or(false) && self.runtime_type(a) == self.runtime_type(b),
                };
                return Ok(Val::bool(same == (op == CmpOp::Is)));
            }
            CmpOp::In | CmpOp::NotIn => {
                let Val::Tuple(t) = &right.val else {
                    return Err(self.error(Id::UnsupportedPython, "`in` is supported for tuples of compile-time values only", range, ""));
                };
                let mut found = false;
                for item in &t.items {
                    match item.const_eq(&left.val) {
                        Some(equal) => found |= equal,
                        None => return Err(self.error(Id::NotConstexpr, "`in` wants values known at compile time", range, "")),
                    }
                }
                return Ok(Val::bool(found == (op == CmpOp::In)));
            }
        };
        self.compare_values(predicate, left, right, range)
    }

    fn if_expr(&mut self, i: &ast::ExprIf) -> Result<Val> {
        let cond = self.eval(&i.test)?;
        match self.condition(&cond, i.test.range())? {
            Cond::Known(true) => self.eval(&i.body),
            Cond::Known(false) => self.eval(&i.orelse),
            Cond::Runtime(c) => self.conditional(c, i),
        }
    }

    // ---- attributes and indices ---------------------------------------------------------------

    /// An attribute or method; none if the object has no such one.
    pub fn attribute(&mut self, object: &Val, name: &str, range: TextRange) -> Result<Option<Val>> {
        let found = match object {
            Val::Tensor(v) => {
                let ty = self.ty(*v);
                match name {
                    "dtype" => Some(Val::DType(ty.with_shape(naiad_ir::Shape::SCALAR))),
                    "type" => Some(Val::DType(ty)),
                    "shape" => Some(Val::tuple(ty.shape.dims().map(|d| Val::int(d as i128)).collect())),
                    "numel" => Some(Val::int(ty.shape.numel() as i128)),
                    "T" if ty.shape.rank() == 2 => Some(Val::Tensor(self.b.op(TileOp::Permute { src: *v, order: Axes::from_slice(&[1, 0]) })?)),
                    "T" => {
                        let what = type_name(ty);
                        return Err(self.error(Id::BadShape, format!("`.T` wants rank 2, not {what}"), range, ""));
                    }
                    _ => None,
                }
            }
            // `.value` of a constexpr is what a constexpr already is here.
            Val::Const(_) if name == "value" => Some(object.clone()),
            Val::Const(c) if matches!(name, "dtype" | "type") => c.natural_type().map(|s| Val::DType(Type::scalar(s))),
            Val::DType(ty) => self.dtype_attribute(*ty, name),
            Val::Tuple(t) => {
                let field = t.names.as_ref().and_then(|n| n.iter().position(|f| f == name));
                field.and_then(|i| t.items.get(i).cloned()).or((name == "value").then(|| object.clone()))
            }
            Val::Object(o, _) => {
                let found = self.host.attribute(*o, name);
                found.map_err(|e| self.error(Id::UnknownAttribute, e.0, range, ""))?.map(Val::from_host)
            }
            Val::Builtin(_) | Val::Function(_) | Val::Method(..) | Val::Iter(_) | Val::Undefined(_) | Val::Const(_) => None,
        };
        if found.is_some() || !matches!(object, Val::Tensor(_) | Val::Const(_) | Val::DType(_)) {
            return Ok(found);
        }
        let entry = names::method_entry(name, matches!(object, Val::DType(_)));
        Ok(entry.map(|entry| Val::Method(Rc::new(object.clone()), entry)))
    }

    fn unknown_attribute(&mut self, object: &Val, a: &ast::ExprAttribute) -> Box<Diagnostic> {
        let name = a.attr.as_str();
        if let Val::Object(_, what) = object
            && let Some(prefix) = names::language_module(what)
        {
            let path = if prefix.is_empty() { name.to_string() } else { format!("{prefix}.{name}") };
            let shown = self.place(a.range()).text().to_string();
            let e = self.error(Id::UnknownTlName, format!("`{shown}` is not a name of the Triton language that Naiad supports"), a.attr.range(), "");
            return Box::new(match names::nearest(&path, names::paths()) {
                Some(n) => (*e).help(format!("did you mean `tl.{n}`?")),
                None => *e,
            });
        }
        let what = self.describe(object);
        let e = self.error(Id::UnknownAttribute, format!("{what} has no attribute `{name}`"), a.attr.range(), "");
        let nearest = match object {
            Val::Tensor(_) | Val::Const(_) | Val::DType(_) => names::nearest(name, names::methods(matches!(object, Val::DType(_)))),
            _ => None,
        };
        Box::new(match nearest {
            Some(n) => (*e).help(format!("did you mean `.{n}`?")),
            None => *e,
        })
    }

    fn dtype_attribute(&mut self, ty: Type, name: &str) -> Option<Val> {
        let scalar = naiad_ir::Shape::SCALAR;
        Some(match (name, ty.elem) {
            ("element_ty", Elem::Pointer(p)) if ty.is_scalar() => Val::DType(Type::scalar(p.pointee)),
            ("element_ty" | "scalar", _) => Val::DType(ty.with_shape(scalar)),
            ("shape", _) => Val::tuple(ty.shape.dims().map(|d| Val::int(d as i128)).collect()),
            ("numel", _) => Val::int(ty.shape.numel() as i128),
            ("name", _) => Val::str(&ty.elem.to_string()),
            ("primitive_bitwidth", Elem::Scalar(s)) => Val::int(s.bits() as i128),
            ("primitive_bitwidth", Elem::Pointer(_)) => Val::int(64),
            ("int_bitwidth", Elem::Scalar(s)) if s.is_int() => Val::int(s.bits() as i128),
            ("itemsize", Elem::Scalar(s)) => Val::int(s.size() as i128),
            ("fp_mantissa_width", Elem::Scalar(s)) if s.is_float() => Val::int(match s {
                Scalar::F8E4NV | Scalar::F8E4B8 | Scalar::F8E4B15 => 3,
                Scalar::F8E5 | Scalar::F8E5B16 => 2,
                Scalar::BF16 => 7,
                Scalar::F16 => 10,
                Scalar::F32 => 23,
                _ => 52,
            }),
            _ => return None,
        })
    }

    fn subscript(&mut self, s: &ast::ExprSubscript) -> Result<Val> {
        let object = self.eval(&s.value)?;
        match &object {
            Val::Tensor(v) => self.index_tile(*v, s),
            Val::Tuple(t) => self.index_tuple(t, s),
            other => {
                let what = self.describe(other);
                Err(self.error(Id::TypeMismatch, format!("{what} cannot be indexed"), s.range(), ""))
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
        if ty.is_scalar() && ty.is_pointer() {
            let e = self.error(Id::UnsupportedPython, "a pointer cannot be indexed", s.range(), "");
            return Err(Box::new((*e).help("read memory with `tl.load(ptr + offsets, mask=...)`")));
        }
        let mut out = v;
        let (mut axis, mut kept) = (0, 0);
        for index in indices {
            match index {
                Expr::Slice(ast::ExprSlice { lower: None, upper: None, step: None, .. }) => {
                    kept += 1;
                    axis += 1;
                    continue;
                }
                Expr::Slice(_) => {}
                other => {
                    if self.eval(other)?.is_none() {
                        out = self.expand_dims(out, axis, other.range())?;
                        axis += 1;
                        continue;
                    }
                }
            }
            let e = self.error(Id::UnsupportedPython, "a tile is indexed by `:` and `None` only", index.range(), "");
            return Err(Box::new((*e).help("a tile is one value: pick elements with `tl.where` and a reduction, `tl.gather`, or by loading them again")));
        }
        if kept > ty.shape.rank() {
            let message = format!("{kept} axes are indexed, the tile has {}", ty.shape.rank());
            return Err(self.error(Id::BadShape, message, s.slice.range(), format!("shape {}", ty.shape)));
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
                    Err(l.error(Id::NotConstexpr, "a tuple is indexed by constexpr integers", e.range(), format!("this is {what}")))
                }
            }
        };
        if let Expr::Slice(slice) = &*s.slice {
            let step = slice.step.as_ref().map_or(Ok(1), |e| int(self, e))?;
            if step == 0 {
                return Err(self.error(Id::BadArgument, "a slice's step must not be 0", slice.range(), ""));
            }
            let clamp = |i: i128| {
                let i = if i < 0 { i + len } else { i };
                if step > 0 { i.clamp(0, len) } else { i.clamp(-1, len - 1) }
            };
            let lower = match &slice.lower {
                Some(e) => clamp(int(self, e)?),
                None => if step > 0 { 0 } else { len - 1 },
            };
            let upper = match &slice.upper {
                Some(e) => clamp(int(self, e)?),
                None => if step > 0 { len } else { -1 },
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
            None => Err(self.error(Id::BadArgument, format!("index {i} is out of range for a tuple of {len}"), s.slice.range(), "")),
        }
    }

    fn call(&mut self, c: &ast::ExprCall) -> Result<Val> {
        let callee = self.eval(&c.func)?;
        call::call(self, callee, c)
    }

    fn unsupported_expr(&mut self, e: &Expr) -> Box<Diagnostic> {
        let (what, help) = match e {
            Expr::Lambda(_) => ("`lambda`", "define the function at module level under `@triton.jit`"),
            Expr::Dict(_) | Expr::Set(_) => ("a dictionary or set", "use separate variables or a tuple"),
            Expr::ListComp(_) | Expr::SetComp(_) | Expr::DictComp(_) | Expr::Generator(_) => ("a comprehension", "write the elements out, or use `tl.static_range`"),
            Expr::Await(_) | Expr::Yield(_) | Expr::YieldFrom(_) => ("`await` and `yield`", "a kernel runs to its end"),
            Expr::Starred(_) => ("`*` here", "spread tuples only in calls and tuple displays"),
            Expr::Slice(_) => ("a slice here", "tiles take only full slices, as in `x[:, None]`"),
            Expr::BytesLiteral(_) => ("a bytes literal", "use a string"),
            _ => ("this expression", "see docs/language.md for what kernels may contain"),
        };
        let error = self.error(Id::UnsupportedPython, format!("{what} is not supported in a kernel"), e.range(), "");
        Box::new((*error).help(help))
    }
}

trait Load {
    fn load(self) -> Expr;
}

impl Load for Box<Expr> {
    /// The target of a walrus, as an expression that reads it.
    fn load(mut self) -> Expr {
        if let Expr::Name(n) = &mut *self {
            n.ctx = ast::ExprContext::Load;
        }
        *self
    }
}
