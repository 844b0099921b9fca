//! Operators on values: Python's arithmetic on constexprs, Triton's on values of the kernel.
//!
//! The rules by which two operands get one type are in [`Lower::common_type`], numbered as in the
//! language's reference: a literal adopts the other operand's type if its kind is not higher (W),
//! then fp64 wins, division of floats gives fp32, and so on down to C's rules for integers.

use super::Lower;
use crate::source::Result;
use crate::value::{Const, Number, Val};
use naiad_diag::{Diagnostic, Id};
use naiad_ir::scalar::{BinaryFn, Predicate, UnaryFn};
use naiad_ir::tile::{TileOp, broadcast_shapes};
use naiad_ir::{Elem, Kind, Scalar, Shape, ShapeError, Type, Value};
use ruff_python_ast as ast;
use ruff_text_size::TextRange;

/// A value with the place of its expression.
#[derive(Clone)]
pub(crate) struct Operand {
    pub val: Val,
    pub range: TextRange,
}

impl Operand {
    pub fn new(val: Val, range: TextRange) -> Operand {
        Operand { val, range }
    }
}

/// A binary operator of the source.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(crate) enum Operator {
    Add,
    Sub,
    Mul,
    Div,
    FloorDiv,
    Mod,
    Pow,
    MatMul,
    LShift,
    RShift,
    /// Bitwise `&`, `|`, `^`, and the boolean operators on i1.
    Bits(BinaryFn, &'static str),
}

impl Operator {
    pub fn from_ast(op: ast::Operator) -> Operator {
        match op {
            ast::Operator::Add => Operator::Add,
            ast::Operator::Sub => Operator::Sub,
            ast::Operator::Mult => Operator::Mul,
            ast::Operator::Div => Operator::Div,
            ast::Operator::FloorDiv => Operator::FloorDiv,
            ast::Operator::Mod => Operator::Mod,
            ast::Operator::Pow => Operator::Pow,
            ast::Operator::MatMult => Operator::MatMul,
            ast::Operator::LShift => Operator::LShift,
            ast::Operator::RShift => Operator::RShift,
            ast::Operator::BitAnd => Operator::Bits(BinaryFn::And, "&"),
            ast::Operator::BitOr => Operator::Bits(BinaryFn::Or, "|"),
            ast::Operator::BitXor => Operator::Bits(BinaryFn::Xor, "^"),
        }
    }

    /// Of the method that Python calls for the operator, such as `__lshift__`.
    pub fn from_method(name: &str) -> Option<Operator> {
        Some(match name {
            "__add__" => Operator::Add,
            "__sub__" => Operator::Sub,
            "__mul__" => Operator::Mul,
            "__truediv__" => Operator::Div,
            "__floordiv__" => Operator::FloorDiv,
            "__mod__" => Operator::Mod,
            "__lshift__" => Operator::LShift,
            "__rshift__" => Operator::RShift,
            "__and__" => Operator::Bits(BinaryFn::And, "&"),
            "__or__" => Operator::Bits(BinaryFn::Or, "|"),
            "__xor__" => Operator::Bits(BinaryFn::Xor, "^"),
            _ => return None,
        })
    }

    pub fn symbol(self) -> &'static str {
        match self {
            Operator::Add => "+",
            Operator::Sub => "-",
            Operator::Mul => "*",
            Operator::Div => "/",
            Operator::FloorDiv => "//",
            Operator::Mod => "%",
            Operator::Pow => "**",
            Operator::MatMul => "@",
            Operator::LShift => "<<",
            Operator::RShift => ">>",
            Operator::Bits(_, symbol) => symbol,
        }
    }

    /// Whether the rules for division apply.
    fn divides(self) -> bool {
        matches!(self, Operator::Div | Operator::FloorDiv | Operator::Mod)
    }
}

/// The common type of two integers by C's rules; i1 counts as an unsigned integer of width 1.
pub(crate) fn int_promotion(a: Scalar, b: Scalar) -> Scalar {
    let rank = |s: Scalar| s.bits();
    if a.is_signed() == b.is_signed() {
        return if rank(a) >= rank(b) { a } else { b };
    }
    let (signed, unsigned) = if a.is_signed() { (a, b) } else { (b, a) };
    if rank(unsigned) >= rank(signed) { unsigned } else { signed }
}

impl Lower<'_> {
    pub fn binary(
        &mut self,
        op: Operator,
        left: Operand,
        right: Operand,
        range: TextRange,
    ) -> Result<Val> {
        match (&left.val, &right.val) {
            (Val::Const(a), Val::Const(b)) => self.const_binary(op, a, b, range),
            (Val::Tuple(_), _) | (_, Val::Tuple(_)) => self.tuple_binary(op, &left, &right, range),
            _ => {
                let is_pointer =
                    |o: &Operand| matches!(o.val, Val::Tensor(v) if self.ty(v).is_pointer());
                if is_pointer(&left) || is_pointer(&right) {
                    return self.pointer_arithmetic(op, &left, &right, range);
                }
                self.tensor_binary(op, &left, &right, range)
            }
        }
    }

    fn operator_error(
        &mut self,
        op: Operator,
        left: &Operand,
        right: &Operand,
        range: TextRange,
    ) -> Box<Diagnostic> {
        let (a, b) = (self.describe(&left.val), self.describe(&right.val));
        let message = match op {
            // Test suites look for these words.
            Operator::Bits(..) => {
                format!("invalid operands of type {a} and {b} for `{}`", op.symbol())
            }
            _ => format!("`{}` is not defined between {a} and {b}", op.symbol()),
        };
        let (l, r) = (self.place(left.range), self.place(right.range));
        let e = self.error(Id::TypeMismatch, message, range, "");
        Box::new(e.secondary(l, a).secondary(r, b))
    }

    fn tensor_binary(
        &mut self,
        op: Operator,
        left: &Operand,
        right: &Operand,
        range: TextRange,
    ) -> Result<Val> {
        if matches!(op, Operator::Pow | Operator::MatMul) {
            let e = self.operator_error(op, left, right, range);
            let help = match op {
                Operator::MatMul => "use `tl.dot(a, b)`",
                _ => "multiply, or use `libdevice.pow`; `**` is for compile-time numbers",
            };
            return Err(Box::new((*e).help(help)));
        }
        let (a, b) = self.promoted(op.symbol(), op.divides(), left, right, range)?;
        let ty = self.ty(a);
        let Elem::Scalar(s) = ty.elem else {
            return Err(self.operator_error(op, left, right, range));
        };
        let f = match op {
            Operator::Add => BinaryFn::Add,
            Operator::Sub => BinaryFn::Sub,
            Operator::Mul => BinaryFn::Mul,
            Operator::Div if s.is_float() => BinaryFn::Div,
            Operator::Div => {
                // Integers divide as fp32, whatever their width.
                let (x, y) = (self.b.cast(a, Scalar::F32)?, self.b.cast(b, Scalar::F32)?);
                return Ok(Val::Tensor(self.b.binary(BinaryFn::Div, x, y)?));
            }
            Operator::FloorDiv if s.is_int() => BinaryFn::Idiv,
            Operator::Mod => BinaryFn::Rem,
            Operator::LShift if s.is_int() => BinaryFn::Shl,
            Operator::RShift if s.is_int() => return self.shift_right(a, b, left, ty),
            Operator::Bits(f, _) if s.is_int() => f,
            _ => {
                let e = self.operator_error(op, left, right, range);
                return Err(Box::new(match op {
                    Operator::FloorDiv => {
                        (*e).help("divide with `/` and round with `tl.floor`; `//` is for integers")
                    }
                    _ => *e,
                }));
            }
        };
        crate::builtins::debug::check_overflow(self, f, (a, b), range)?;
        Ok(Val::Tensor(self.b.binary(f, a, b)?))
    }

    /// `>>` is arithmetic if the left operand's own type is signed, whatever both were promoted to.
    fn shift_right(&mut self, a: Value, b: Value, left: &Operand, ty: Type) -> Result<Val> {
        let own = self.runtime_type(&left.val).and_then(|t| t.elem.scalar());
        let common = ty.elem.scalar().unwrap_or(Scalar::I32);
        let own_signed = match &left.val {
            // A literal takes the other's type, and with it its sign.
            Val::Const(_) => common.is_signed(),
            _ => own.is_some_and(Scalar::is_signed),
        };
        if own_signed == common.is_signed() {
            return Ok(Val::Tensor(self.b.binary(BinaryFn::Shr, a, b)?));
        }
        let twin = with_sign(common, own_signed);
        let (x, y) = (self.b.cast(a, twin)?, self.b.cast(b, twin)?);
        let shifted = self.b.binary(BinaryFn::Shr, x, y)?;
        Ok(Val::Tensor(self.b.cast(shifted, common)?))
    }

    /// Both operands as values of one type and shape.
    pub fn promoted(
        &mut self,
        what: &str,
        divides: bool,
        left: &Operand,
        right: &Operand,
        range: TextRange,
    ) -> Result<(Value, Value)> {
        let scalar = self.common_type(what, divides, left, right, range)?;
        let a = self.adopt(left, scalar, range)?;
        let b = self.adopt(right, scalar, range)?;
        self.broadcast_pair(what, (a, left), (b, right), range)
    }

    /// The element type that a binary operation computes in.
    pub fn common_type(
        &mut self,
        what: &str,
        divides: bool,
        left: &Operand,
        right: &Operand,
        range: TextRange,
    ) -> Result<Scalar> {
        let mut types = [Scalar::I32; 2];
        let mut literal = [false; 2];
        for (i, o) in [left, right].into_iter().enumerate() {
            literal[i] = matches!(o.val, Val::Const(_));
            match self.runtime_type(&o.val).and_then(|t| t.elem.scalar()) {
                Some(s) => types[i] = s,
                None => {
                    let d = self.describe(&o.val);
                    let message = format!("`{what}` is not defined for {d}");
                    return Err(self.error(
                        Id::TypeMismatch,
                        message,
                        o.range,
                        "this is no number",
                    ));
                }
            }
        }
        let [mut a, mut b] = types;
        // (W) a literal of no higher kind adopts the type of the other operand.
        let rank = |s: Scalar| match s.kind() {
            Kind::Bool => 0,
            Kind::Unsigned | Kind::Signed => 1,
            Kind::Float => 2,
        };
        match literal {
            [true, false] if rank(a) <= rank(b) => a = b,
            [false, true] if rank(b) <= rank(a) => b = a,
            _ => {}
        }
        let either = |s: Scalar| a == s || b == s;
        let any_float = a.is_float() || b.is_float();
        Ok(if either(Scalar::F64) {
            Scalar::F64
        } else if (divides && any_float) || either(Scalar::F32) {
            Scalar::F32
        } else if either(Scalar::F16) {
            Scalar::F16
        } else if a == Scalar::BF16 && b == Scalar::BF16 {
            Scalar::BF16
        } else if either(Scalar::BF16) {
            Scalar::F32
        } else if a.is_fp8() && b.is_fp8() {
            if a == b { a } else { Scalar::F16 }
        } else if any_float {
            let (x, y) = (a.triton_name(), b.triton_name());
            let message = format!("`{what}` is not defined between {x} and {y}");
            let e = self.error(Id::TypeMismatch, message, range, "");
            return Err(Box::new((*e).help("cast the fp8 operand to a wider float first")));
        } else if divides && a.is_signed() != b.is_signed() {
            let (x, y) = (a.triton_name(), b.triton_name());
            let message = format!(
                "Cannot use `{what}` between {x} and {y} because they have different signedness"
            );
            let e = self.error(Id::TypeMismatch, message, range, "");
            return Err(Box::new(
                (*e).help("cast one of them so that both are signed or both unsigned"),
            ));
        } else {
            int_promotion(a, b)
        })
    }

    /// The operand as a value of element type `scalar`; a literal is checked to fit.
    pub fn adopt(&mut self, o: &Operand, scalar: Scalar, _range: TextRange) -> Result<Value> {
        match &o.val {
            Val::Tensor(v) => Ok(self.b.cast(*v, scalar)?),
            Val::Const(c) => {
                if let Some(Number::Int(i)) = c.as_number()
                    && scalar.is_int()
                    && !(scalar.int_min()..=scalar.int_max()).contains(&i)
                {
                    let t = scalar.triton_name();
                    let message = format!(
                        "the literal {i} is out of range for {t}, the type of the other operand"
                    );
                    let e = self.error(
                        Id::LiteralRange,
                        message,
                        o.range,
                        format!("{t} holds {} to {}", scalar.int_min(), scalar.int_max()),
                    );
                    return Err(Box::new(
                        (*e).help("cast the other operand to a wider type first"),
                    ));
                }
                self.literal(c, scalar)
            }
            other => {
                let what = self.describe(other);
                Err(self.error(Id::TypeMismatch, format!("{what} is no number"), o.range, ""))
            }
        }
    }

    pub fn broadcast_pair(
        &mut self,
        what: &str,
        (a, left): (Value, &Operand),
        (b, right): (Value, &Operand),
        range: TextRange,
    ) -> Result<(Value, Value)> {
        let (sa, sb) = (self.ty(a).shape, self.ty(b).shape);
        match broadcast_shapes(sa, sb) {
            Ok(shape) => Ok((self.b.broadcast_to(a, shape)?, self.b.broadcast_to(b, shape)?)),
            Err(axis) => Err(self.shape_mismatch(what, (left, sa), (right, sb), axis, range)),
        }
    }

    /// Two shapes that do not fit: both shapes, the operands, and where their variables were made.
    pub fn shape_mismatch(
        &mut self,
        what: &str,
        (left, sa): (&Operand, Shape),
        (right, sb): (&Operand, Shape),
        axis: usize,
        range: TextRange,
    ) -> Box<Diagnostic> {
        let rank = sa.rank().max(sb.rank());
        let dim = |s: Shape| (axis + s.rank()).checked_sub(rank).map_or(1, |i| s.dim(i));
        let message = format!("the shapes {sa} and {sb} do not match in `{what}`");
        let label = format!("axis {axis}: {} against {}", dim(sa), dim(sb));
        let mut d = *self.error(Id::ShapeMismatch, message, range, label);
        for (o, shape) in [(left, sa), (right, sb)] {
            let place = self.place(o.range);
            let name = place.text().to_string();
            d = d.secondary(place, format!("shape {shape}"));
            if let Some(binding) = self.frame().env.get(name.as_str()) {
                d = d.secondary(
                    binding.place.clone(),
                    format!("`{name}` gets its shape {shape} here"),
                );
            }
        }
        let transposed = sa.rank() == 2 && sb.rank() == 2 && sa.permuted(&[1, 0]) == sb;
        Box::new(if transposed {
            d.help("one shape is the other transposed: `tl.trans` one of them, or build it for the transposed tile")
        } else {
            d.note("extents must be equal or 1; a tile of lower rank gets leading axes of 1")
                .help("line axes up with `[:, None]` and `[None, :]`")
        })
    }

    pub fn bad_shape(&mut self, e: ShapeError, range: TextRange) -> Box<Diagnostic> {
        match e {
            ShapeError::NotPowerOfTwo(d) => {
                let message = format!("{d} is no extent of a tile: it must be a power of 2");
                let d = *self.error(Id::BadShape, message, range, "");
                Box::new(d)
            }
            ShapeError::TooLarge(n) => {
                let message = format!(
                    "a tile of {n} elements is too large: at most {} are possible",
                    naiad_ir::types::MAX_NUMEL
                );
                self.error(Id::BadShape, message, range, "")
            }
            ShapeError::TooManyDims(n) => {
                self.error(Id::BadShape, format!("a tile cannot have {n} axes"), range, "")
            }
        }
    }

    // ---- pointers -----------------------------------------------------------------------------

    fn pointer_arithmetic(
        &mut self,
        op: Operator,
        left: &Operand,
        right: &Operand,
        range: TextRange,
    ) -> Result<Val> {
        let is_pointer =
            |l: &Self, o: &Operand| matches!(o.val, Val::Tensor(v) if l.ty(v).is_pointer());
        let (ptr, off) = match op {
            Operator::Add if is_pointer(self, right) => (right, left),
            Operator::Add | Operator::Sub => (left, right),
            _ => return Err(self.operator_error(op, left, right, range)),
        };
        let (Val::Tensor(p), Some(off_ty)) = (&ptr.val, self.runtime_type(&off.val)) else {
            return Err(self.operator_error(op, left, right, range));
        };
        if !off_ty.elem.scalar().is_some_and(Scalar::is_int) || !is_pointer(self, ptr) {
            let e = self.operator_error(op, left, right, range);
            let help = if off_ty.is_pointer() {
                "subtract or add element counts, not pointers"
            } else {
                "cast the offset to an integer"
            };
            return Err(Box::new((*e).help(help)));
        }
        let Some(offset) = self.materialize(&off.val)? else {
            return Err(self.operator_error(op, left, right, range));
        };
        let (p, mut offset) = self.broadcast_pair(op.symbol(), (*p, ptr), (offset, off), range)?;
        if op == Operator::Sub {
            // Negated in its own type: an unsigned offset then moves up, as on a GPU.
            offset = self.b.unary(UnaryFn::Neg, offset)?;
        }
        Ok(Val::Tensor(self.b.op(TileOp::PtrAdd { ptr: p, offset })?))
    }

    // ---- comparisons --------------------------------------------------------------------------

    pub fn compare_values(
        &mut self,
        p: Predicate,
        left: &Operand,
        right: &Operand,
        range: TextRange,
    ) -> Result<Val> {
        let is_tensor = |o: &Operand| matches!(o.val, Val::Tensor(_));
        if !is_tensor(left) && !is_tensor(right) {
            return self.const_compare(p, left, right, range);
        }
        for (a, b) in [(left, right), (right, left)] {
            if matches!(a.val, Val::Tensor(v) if self.ty(v).is_pointer()) {
                let e = self.error(Id::TypeMismatch, "pointers cannot be compared", range, "");
                let help = if b.val.is_none() {
                    "write `ptr is None` or `ptr is not None`"
                } else {
                    "cast both with `.to(tl.int64)`"
                };
                return Err(Box::new((*e).help(help)));
            }
        }
        let (a, b) = self.promoted(symbol(p), false, left, right, range)?;
        Ok(Val::Tensor(self.b.compare(p, a, b)?))
    }

    fn const_compare(
        &mut self,
        p: Predicate,
        left: &Operand,
        right: &Operand,
        range: TextRange,
    ) -> Result<Val> {
        if let Predicate::Eq | Predicate::Ne = p
            && let Some(equal) = left.val.const_eq(&right.val)
        {
            return Ok(Val::bool(equal == (p == Predicate::Eq)));
        }
        let ordering = match (&left.val, &right.val) {
            (Val::Const(Const::Str(a)), Val::Const(Const::Str(b))) => Some(Some(a.cmp(b))),
            (Val::Const(a), Val::Const(b)) => match (a.as_number(), b.as_number()) {
                (Some(x), Some(y)) => Some(x.compare(&y)),
                _ => None,
            },
            _ => None,
        };
        let Some(ordering) = ordering else {
            let (a, b) = (self.describe(&left.val), self.describe(&right.val));
            return Err(self.error(
                Id::TypeMismatch,
                format!("`{}` is not defined between {a} and {b}", symbol(p)),
                range,
                "",
            ));
        };
        use std::cmp::Ordering::{Equal, Greater, Less};
        Ok(Val::bool(match p {
            Predicate::Eq => ordering == Some(Equal),
            Predicate::Ne => ordering != Some(Equal),
            Predicate::Lt => ordering == Some(Less),
            Predicate::Le => matches!(ordering, Some(Less | Equal)),
            Predicate::Gt => ordering == Some(Greater),
            Predicate::Ge => matches!(ordering, Some(Greater | Equal)),
        }))
    }

    // ---- compile-time values ------------------------------------------------------------------

    fn const_binary(
        &mut self,
        op: Operator,
        a: &Const,
        b: &Const,
        range: TextRange,
    ) -> Result<Val> {
        if let (Operator::Add, Const::Str(x), Const::Str(y)) = (op, a, b) {
            return Ok(Val::str(&format!("{x}{y}")));
        }
        let result = match (a.as_number(), b.as_number()) {
            (Some(x), Some(y)) => python_arithmetic(op, x, y),
            _ => Err(Arithmetic::Undefined),
        };
        let bools =
            matches!((a, b), (Const::Bool(_), Const::Bool(_))) && matches!(op, Operator::Bits(..));
        match result {
            Ok(Number::Int(i)) if bools => Ok(Val::bool(i != 0)),
            Ok(Number::Int(i)) => Ok(Val::int(i)),
            Ok(Number::Float(f)) => Ok(Val::Const(Const::Float(f))),
            Err(why) => {
                let id =
                    if why == Arithmetic::Undefined { Id::TypeMismatch } else { Id::LiteralRange };
                let message = match why {
                    Arithmetic::Undefined => {
                        format!("`{}` is not defined between {a} and {b}", op.symbol())
                    }
                    Arithmetic::NegativeShift => {
                        format!("{a} {} {b} shifts by a negative count", op.symbol())
                    }
                    Arithmetic::ByZero => format!("division by zero: {a} {} {b}", op.symbol()),
                    Arithmetic::TooLarge => format!(
                        "{a} {} {b} is out of range: it has more than 127 bits",
                        op.symbol()
                    ),
                };
                Err(self.error(id, message, range, "at compile time"))
            }
        }
    }

    fn tuple_binary(
        &mut self,
        op: Operator,
        left: &Operand,
        right: &Operand,
        range: TextRange,
    ) -> Result<Val> {
        match (op, &left.val, &right.val) {
            (Operator::Add, Val::Tuple(a), Val::Tuple(b)) => {
                Ok(Val::tuple(a.items.iter().chain(&b.items).cloned().collect()))
            }
            (Operator::Mul, Val::Tuple(t), Val::Const(Const::Int(n)))
            | (Operator::Mul, Val::Const(Const::Int(n)), Val::Tuple(t)) => {
                let n = usize::try_from((*n).max(0)).unwrap_or(usize::MAX);
                if t.items.len().saturating_mul(n) > 1 << 16 {
                    let message =
                        format!("a tuple of {} times {n} values is too large", t.items.len());
                    return Err(self.error(Id::TooLarge, message, range, ""));
                }
                Ok(Val::tuple(std::iter::repeat_n(&t.items, n).flatten().cloned().collect()))
            }
            _ => Err(self.operator_error(op, left, right, range)),
        }
    }
}

/// How the source writes a comparison.
fn symbol(p: Predicate) -> &'static str {
    match p {
        Predicate::Eq => "==",
        Predicate::Ne => "!=",
        Predicate::Lt => "<",
        Predicate::Le => "<=",
        Predicate::Gt => ">",
        Predicate::Ge => ">=",
    }
}

/// The integer type of the same width with the sign wanted.
fn with_sign(s: Scalar, signed: bool) -> Scalar {
    let twins = [
        (Scalar::I8, Scalar::U8),
        (Scalar::I16, Scalar::U16),
        (Scalar::I32, Scalar::U32),
        (Scalar::I64, Scalar::U64),
    ];
    let found = twins.into_iter().find(|&(i, u)| i == s || u == s);
    found.map_or(s, |(i, u)| if signed { i } else { u })
}

#[derive(PartialEq)]
pub(crate) enum Arithmetic {
    Undefined,
    ByZero,
    NegativeShift,
    TooLarge,
}

/// Python's arithmetic: `//` and `%` round down, `/` gives floats, integers do not wrap.
pub(crate) fn python_arithmetic(
    op: Operator,
    x: Number,
    y: Number,
) -> std::result::Result<Number, Arithmetic> {
    use Arithmetic::{ByZero, NegativeShift, TooLarge, Undefined};
    let count = |shift: i128| match u32::try_from(shift) {
        Err(_) if shift < 0 => Err(NegativeShift),
        counted => Ok(counted.unwrap_or(u32::MAX)),
    };
    if let (Number::Int(a), Number::Int(b)) = (x, y) {
        let int = |r: Option<i128>| r.map(Number::Int).ok_or(TooLarge);
        return match op {
            Operator::Add => int(a.checked_add(b)),
            Operator::Sub => int(a.checked_sub(b)),
            Operator::Mul => int(a.checked_mul(b)),
            Operator::Div if b == 0 => Err(ByZero),
            Operator::Div => Ok(Number::Float(a as f64 / b as f64)),
            Operator::FloorDiv | Operator::Mod if b == 0 => Err(ByZero),
            Operator::FloorDiv => int(a
                .checked_div_euclid(b)
                .map(|q| if b < 0 && a.rem_euclid(b) != 0 { q - 1 } else { q })),
            Operator::Mod => {
                int(a.checked_rem(b).map(|r| if r != 0 && (r < 0) != (b < 0) { r + b } else { r }))
            }
            Operator::Pow if b < 0 && a == 0 => Err(ByZero),
            Operator::Pow if b < 0 => Ok(Number::Float((a as f64).powf(b as f64))),
            Operator::Pow => int(u32::try_from(b).ok().and_then(|e| a.checked_pow(e))),
            Operator::LShift => {
                let shift = count(b)?;
                if a == 0 {
                    return Ok(Number::Int(0));
                }
                int((shift < 127).then(|| a.checked_mul(1i128 << shift)).flatten())
            }
            Operator::RShift => {
                let shift = count(b)?;
                Ok(Number::Int(a >> shift.min(127)))
            }
            Operator::Bits(BinaryFn::And, _) => Ok(Number::Int(a & b)),
            Operator::Bits(BinaryFn::Or, _) => Ok(Number::Int(a | b)),
            Operator::Bits(BinaryFn::Xor, _) => Ok(Number::Int(a ^ b)),
            Operator::Bits(..) | Operator::MatMul => Err(Undefined),
        };
    }
    let (a, b) = (x.as_f64(), y.as_f64());
    Ok(Number::Float(match op {
        Operator::Add => a + b,
        Operator::Sub => a - b,
        Operator::Mul => a * b,
        Operator::Div | Operator::FloorDiv | Operator::Mod if b == 0.0 => return Err(ByZero),
        Operator::Div => a / b,
        Operator::FloorDiv => (a / b).floor(),
        Operator::Mod => {
            let r = a % b;
            if r != 0.0 && (r < 0.0) != (b < 0.0) { r + b } else { r }
        }
        Operator::Pow => a.powf(b),
        _ => return Err(Undefined),
    }))
}
