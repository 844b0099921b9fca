//! Expressions.

use super::form::Cond;
use super::operator::{Operand, Operator};
use super::{Lower, call};
use crate::names;
use crate::source::Result;
use crate::value::{Const, Val, type_name};
use naiad_diag::{Diagnostic, Id};
use naiad_ir::scalar::{BinaryFn, Predicate, UnaryFn};
use naiad_ir::tile::TileOp;
use naiad_ir::{Elem, Scalar, Value};
use ruff_python_ast::{self as ast, CmpOp, Expr};
use ruff_text_size::{Ranged, TextRange};

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
            Expr::ListComp(c) => self.comprehension(c),
            Expr::Named(n) => {
                let val = self.eval(&n.value)?;
                self.assign_to(&n.target, val.clone(), n.value.range())?;
                // The expression's value is what the name got, which has decayed.
                self.eval(&n.target.clone().load())
            }
            other => Err(self.unsupported_expr(other)),
        }
    }

    /// `[f(x) for x in items if test(x)]` over a tuple, whose tests are known at compile time.
    fn comprehension(&mut self, c: &ast::ExprListComp) -> Result<Val> {
        let refuse = |l: &mut Self, id: Id, message: &str, range: TextRange| {
            let help =
                "a comprehension runs one name over a tuple: `[f(x) for x in items if TEST]`";
            Box::new((*l.error(id, message, range, "")).help(help))
        };
        let [generator] = c.generators.as_slice() else {
            let message = "a comprehension in a kernel has one `for`";
            return Err(refuse(self, Id::UnsupportedPython, message, c.range()));
        };
        let Expr::Name(name) = &generator.target else {
            let message = "a comprehension in a kernel runs one name";
            return Err(refuse(self, Id::UnsupportedPython, message, generator.target.range()));
        };
        let Val::Tuple(items) = self.eval(&generator.iter)? else {
            let message = "a comprehension in a kernel runs over a tuple";
            return Err(refuse(self, Id::TypeMismatch, message, generator.iter.range()));
        };
        let (name, place) = (name.id.as_str(), self.place(name.range()));
        let outer = self.frame().env.get(name).cloned();
        let mut out = Vec::new();
        for item in &items.items {
            self.bind(name, item.clone(), place.clone());
            let mut wanted = true;
            for test in &generator.ifs {
                let val = self.eval(test)?;
                match self.condition(&val, test.range())? {
                    Cond::Known(holds) => wanted &= holds,
                    Cond::Runtime(_) => {
                        let message = "the test of a comprehension must be known at compile time";
                        return Err(self.error(Id::NotConstexpr, message, test.range(), ""));
                    }
                }
            }
            if wanted {
                out.push(self.eval(&c.elt)?);
            }
        }
        // The name is the comprehension's own.
        match outer {
            Some(binding) => self.frame_mut().env.insert(name.into(), binding),
            None => self.frame_mut().env.remove(name),
        };
        Ok(Val::tuple(out))
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
                    return Err(self.error(
                        Id::TypeMismatch,
                        format!("cannot spread {what}"),
                        e.range(),
                        "this is no tuple",
                    ));
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
                let d = self.error(
                    Id::UndefinedName,
                    format!("`{name}` is not defined here: {why}"),
                    n.range(),
                    "",
                );
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
            ast::Number::Int(i) => match crate::source::integer(i) {
                Some(i) => Ok(Val::int(i)),
                None => Err(self.error(
                    Id::LiteralRange,
                    "this integer is out of range: it has more than 127 bits",
                    n.range(),
                    "",
                )),
            },
            ast::Number::Complex { .. } => Err(self.error(
                Id::UnsupportedPython,
                "kernels have no complex numbers",
                n.range(),
                "",
            )),
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
                            ast::InterpolatedStringElement::Interpolation(i)
                                if i.format_spec.is_some() =>
                            {
                                let message = "formats in f-strings are not supported in a kernel";
                                let e = self.error(Id::UnsupportedPython, message, i.range(), "");
                                let help =
                                    "write `{x}` alone, or make the text outside of the kernel";
                                return Err(Box::new((*e).help(help)));
                            }
                            ast::InterpolatedStringElement::Interpolation(i) => {
                                // `{x=}` shows itself, and then what it is.
                                out.push_str(i.debug_text.as_ref().map_or("", |t| t.as_str()));
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
                let elem = ty
                    .elem
                    .scalar()
                    .map_or_else(|| ty.elem.to_string(), |s| s.triton_name().to_string());
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
                    self.error(
                        Id::TypeMismatch,
                        format!("bad operand of unary `{}`: {c}", op.as_str()),
                        range,
                        "",
                    )
                })
            }
            (Val::Tensor(v), op) => {
                let ty = self.ty(*v);
                let f = match (op, ty.elem) {
                    (ast::UnaryOp::USub, Elem::Scalar(_)) => UnaryFn::Neg,
                    (ast::UnaryOp::Invert, Elem::Scalar(s)) if s.is_int() => UnaryFn::Not,
                    _ => {
                        let what = type_name(ty);
                        let message =
                            format!("unary `{}` is not defined for a {what}", op.as_str());
                        return Err(self.error(Id::TypeMismatch, message, range, ""));
                    }
                };
                Ok(Val::Tensor(self.sign_op(f, *v)?))
            }
            (other, op) => {
                let what = self.describe(other);
                Err(self.error(
                    Id::TypeMismatch,
                    format!("unary `{}` is not defined for {what}", op.as_str()),
                    range,
                    "",
                ))
            }
        }
    }

    /// `-x` or the magnitude. Both are exact on the bits, which keeps the infinities of fp8: any other
    /// function of fp8 is one of a wider type, from which they do not come back.
    pub fn sign_op(&mut self, f: UnaryFn, x: Value) -> Result<Value> {
        let ty = self.ty(x);
        let bit = match f {
            UnaryFn::Neg => BinaryFn::Xor,
            _ => BinaryFn::And,
        };
        if ty.elem != Elem::Scalar(Scalar::F8E5) || !matches!(f, UnaryFn::Neg | UnaryFn::Abs) {
            return Ok(self.b.unary(f, x)?);
        }
        let bits = self.b.op(TileOp::Bitcast { src: x, to: Elem::Scalar(Scalar::U8) })?;
        let mask = if f == UnaryFn::Neg { 0x80 } else { 0x7f };
        let mask = self.b.full(ty.with_elem(Scalar::U8), mask)?;
        let bits = self.b.binary(bit, bits, mask)?;
        Ok(self.b.op(TileOp::Bitcast { src: bits, to: ty.elem })?)
    }

    fn logical_not(&mut self, val: Val, range: TextRange) -> Result<Val> {
        match val {
            Val::Tensor(v) => {
                let bit = self.want_bool(v, "not", range)?;
                Ok(Val::Tensor(self.b.unary(UnaryFn::Not, bit)?))
            }
            other => Ok(Val::bool(other.truth() == Some(false))),
        }
    }

    /// `and`, `or` and `not` want i1; what Triton says of other types there is a failed bitcast.
    fn want_bool(&mut self, v: Value, op: &str, range: TextRange) -> Result<Value> {
        let ty = self.ty(v);
        if ty.elem == Elem::Scalar(Scalar::I1) {
            return Ok(v);
        }
        let what = type_name(ty);
        let e = self.error(
            Id::TypeMismatch,
            format!("`{op}` wants booleans of the running kernel, not {what}"),
            range,
            format!("this is {what}"),
        );
        let help =
            if op == "not" { "write `x == 0`" } else { "write `(a != 0) & (b != 0)`, or with `|`" };
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
                let Some(truth) = val.truth() else { continue };
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
                    let (x, y) = (
                        self.want_bool(left, b.op.as_str(), left_range)?,
                        self.want_bool(v, b.op.as_str(), e.range())?,
                    );
                    let f = Operator::Bits(
                        if is_and { BinaryFn::And } else { BinaryFn::Or },
                        if is_and { "and" } else { "or" },
                    );
                    let joined = self.binary(
                        f,
                        Operand::new(Val::Tensor(x), left_range),
                        Operand::new(Val::Tensor(y), e.range()),
                        b.range(),
                    )?;
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
                Some(joined) => self.binary(
                    Operator::Bits(BinaryFn::And, "and"),
                    Operand::new(joined, range),
                    Operand::new(part, range),
                    range,
                )?,
            });
            left = right;
        }
        Ok(acc.unwrap_or(Val::bool(true)))
    }

    fn compare_one(
        &mut self,
        op: CmpOp,
        left: &Operand,
        right: &Operand,
        range: TextRange,
    ) -> Result<Val> {
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
                    (a, b) => {
                        a.const_eq(b).unwrap_or(false)
                            && self.runtime_type(a) == self.runtime_type(b)
                    }
                };
                return Ok(Val::bool(same == (op == CmpOp::Is)));
            }
            CmpOp::In | CmpOp::NotIn => {
                let Val::Tuple(t) = &right.val else {
                    return Err(self.error(
                        Id::TypeMismatch,
                        "`in` is supported for tuples of compile-time values only",
                        range,
                        "",
                    ));
                };
                let mut found = false;
                for item in &t.items {
                    match item.const_eq(&left.val) {
                        Some(equal) => found |= equal,
                        None => {
                            return Err(self.error(
                                Id::NotConstexpr,
                                "`in` wants values known at compile time",
                                range,
                                "",
                            ));
                        }
                    }
                }
                return Ok(Val::bool(found == (op == CmpOp::In)));
            }
        };
        let result = self.compare_values(predicate, left, right, range)?;
        if let (Val::Tensor(v), true) = (&result, self.options.debug) {
            let sides = [left, right].into_iter().filter_map(|o| match o.val {
                Val::Tensor(side) => Some((side, self.place(o.range).text().to_string())),
                _ => None,
            });
            let compared = super::Compared { sides: sides.collect(), depth: self.frames.len() };
            self.compared.insert(*v, compared);
        }
        Ok(result)
    }

    fn if_expr(&mut self, i: &ast::ExprIf) -> Result<Val> {
        let cond = self.eval(&i.test)?;
        match self.condition(&cond, i.test.range())? {
            Cond::Known(true) => self.eval(&i.body),
            Cond::Known(false) => self.eval(&i.orelse),
            Cond::Runtime(c) => self.conditional(c, i),
        }
    }

    fn call(&mut self, c: &ast::ExprCall) -> Result<Val> {
        let callee = self.eval(&c.func)?;
        call::call(self, callee, c)
    }

    fn unsupported_expr(&mut self, e: &Expr) -> Box<Diagnostic> {
        let (what, help) = match e {
            Expr::Lambda(_) => {
                ("`lambda`", "define the function at module level under `@triton.jit`")
            }
            Expr::Dict(_) | Expr::Set(_) => {
                ("a dictionary or set", "use separate variables or a tuple")
            }
            Expr::SetComp(_) | Expr::DictComp(_) | Expr::Generator(_) => {
                ("a comprehension", "write the elements out, or use `tl.static_range`")
            }
            Expr::Await(_) | Expr::Yield(_) | Expr::YieldFrom(_) => {
                ("`await` and `yield`", "a kernel runs to its end")
            }
            Expr::Starred(_) => ("`*` here", "spread tuples only in calls and tuple displays"),
            Expr::Slice(_) => ("a slice here", "tiles take only full slices, as in `x[:, None]`"),
            Expr::BytesLiteral(_) => ("a bytes literal", "use a string"),
            _ => (
                "this expression",
                "kernels hold arithmetic, comparisons, calls, attributes and `x[:, None]`",
            ),
        };
        let error = self.error(
            Id::UnsupportedPython,
            format!("{what} is not supported in a kernel"),
            e.range(),
            "",
        );
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
