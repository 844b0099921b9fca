//! Functions of numbers, one lane at a time.
//!
//! Roundings are named, so that nothing is fused or flushed to zero. Integer functions that are total
//! here and unspecified in PTX (division by 0) are completed.

use crate::bytes::{Byte, joined, shifted};
use crate::emit::{Class, Emit, Operand};
use naiad_ir::Scalar;
use naiad_ir::scalar::{BinaryFn, Predicate, TernaryFn, UnaryFn};
use naiad_ir::thread::{NativeFn, ThreadElem};

/// A row that should have been expanded, as an error.
fn foreign(name: &str, of: Scalar) -> String {
    format!("there is neither an instruction for `{name}` of {of} nor an expansion")
}

/// The type of instructions that compute with numbers of this type: 8 bits are computed in 32.
fn compute(of: Scalar) -> &'static str {
    match of {
        Scalar::I8 | Scalar::I32 => "s32",
        Scalar::U8 | Scalar::U32 => "u32",
        Scalar::I16 => "s16",
        Scalar::U16 => "u16",
        Scalar::I64 => "s64",
        Scalar::U64 => "u64",
        Scalar::F32 => "f32",
        Scalar::F64 => "f64",
        Scalar::I1 => "pred",
        _ => "b32",
    }
}

/// The same without signs: `b32`.
fn bits(of: Scalar) -> &'static str {
    Class::of(of.into()).ty()
}

impl Emit {
    pub fn unary(&mut self, f: UnaryFn, of: Scalar, x: Operand) -> Result<Operand, String> {
        use UnaryFn::{Abs, Brev, Ceil, Clz, Floor, Neg, Not, Popc, Rint, Sqrt, SqrtRn, Trunc};
        let (ty, class) = (compute(of), Class::of(of.into()));
        if of.is_bool() {
            return match f {
                Neg | Abs | Popc | Brev => Ok(x),
                Not | Clz => Ok(self.not(x)),
                _ => Err(foreign(f.name(), of)),
            };
        }
        let x = self.reg(x);
        if of.is_float() {
            let opcode = match f {
                Neg => format!("neg.{ty}"),
                Abs => format!("abs.{ty}"),
                Floor => format!("cvt.rmi.{ty}.{ty}"),
                Ceil => format!("cvt.rpi.{ty}.{ty}"),
                Trunc => format!("cvt.rzi.{ty}.{ty}"),
                Rint => format!("cvt.rni.{ty}.{ty}"),
                Sqrt | SqrtRn => format!("sqrt.rn.{ty}"),
                _ => return Err(foreign(f.name(), of)),
            };
            return Ok(self.ins(&opcode, class, [x]));
        }
        let made = match f {
            Neg => self.ins(&format!("neg.{}", signed(ty)), class, [x]),
            Not => self.ins(&format!("not.{}", bits(of)), class, [x]),
            Abs if of.is_signed() => self.ins(&format!("abs.{ty}"), class, [x]),
            Abs => return Ok(x),
            Popc | Clz | Brev => self.count(f, of, x),
            _ => return Err(foreign(f.name(), of)),
        };
        Ok(self.wrapped(of, made))
    }

    /// Functions of bits, which there are of 32 and of 64.
    fn count(&mut self, f: UnaryFn, of: Scalar, x: Operand) -> Operand {
        let name = match f {
            UnaryFn::Popc => "popc",
            UnaryFn::Clz => "clz",
            _ => "brev",
        };
        let is_brev = f == UnaryFn::Brev;
        if of.bits() == 64 {
            let class = if is_brev { Class::Double } else { Class::Word };
            let made = self.ins(&format!("{name}.b64"), class, [x]);
            return if is_brev { made } else { self.ins("cvt.u64.u32", Class::Double, [made]) };
        }
        let unused = i64::from(32 - of.bits());
        let word = self.zero_extended(of, x);
        let mut made = self.ins(&format!("{name}.b32"), Class::Word, [word]);
        if unused > 0 && f == UnaryFn::Clz {
            made = self.ins("sub.s32", Class::Word, [made, Operand::word(unused)]);
        }
        if unused > 0 && is_brev {
            made = self.ins("shr.u32", Class::Word, [made, Operand::word(unused)]);
        }
        if of.bits() == 16 { self.ins("cvt.u16.u32", Class::Half, [made]) } else { made }
    }

    pub fn binary(
        &mut self,
        f: BinaryFn,
        of: Scalar,
        x: Operand,
        y: Operand,
    ) -> Result<Operand, String> {
        use BinaryFn::{
            Add, And, Div, DivRn, Idiv, Max, MaxNan, Min, MinNan, Mul, Or, Rem, Shl, Shr, Sub,
            Umulhi, Xor,
        };
        let (ty, class) = (compute(of), Class::of(of.into()));
        if of.is_bool() {
            return match f {
                Add | Sub | Xor => Ok(self.xor(x, y)),
                Mul | Idiv | And | Min | MinNan => Ok(self.and(x, y)),
                Or | Max | MaxNan => Ok(self.or(x, y)),
                Rem | Shl | Shr => {
                    let not = self.not(y);
                    Ok(self.and(x, not))
                }
                Umulhi => Ok(Operand::Imm(Class::Pred, 0)),
                _ => Err(foreign(f.name(), of)),
            };
        }
        if of.is_float() {
            let opcode = match f {
                Add => format!("add.rn.{ty}"),
                Sub => format!("sub.rn.{ty}"),
                Mul => format!("mul.rn.{ty}"),
                Div | DivRn => format!("div.rn.{ty}"),
                Min => format!("min.{ty}"),
                Max => format!("max.{ty}"),
                MinNan if of == Scalar::F32 => "min.NaN.f32".to_string(),
                MaxNan if of == Scalar::F32 => "max.NaN.f32".to_string(),
                _ => return Err(foreign(f.name(), of)),
            };
            return Ok(self.ins(&opcode, class, [x, y]));
        }
        let made = match f {
            Add => self.ins(&format!("add.{}", signed(ty)), class, [x, y]),
            Sub => self.ins(&format!("sub.{}", signed(ty)), class, [x, y]),
            Mul => match self.wide_product(x, y) {
                Some(made) => made,
                None => self.ins(&format!("mul.lo.{ty}"), class, [x, y]),
            },
            Min | MinNan => self.ins(&format!("min.{ty}"), class, [x, y]),
            Max | MaxNan => self.ins(&format!("max.{ty}"), class, [x, y]),
            And => self.ins(&format!("and.{}", bits(of)), class, [x, y]),
            Or if of.bits() == 32 => self.join(x, y),
            Or => self.ins(&format!("or.{}", bits(of)), class, [x, y]),
            Xor => self.ins(&format!("xor.{}", bits(of)), class, [x, y]),
            Umulhi => self.high_product(of, x, y),
            Idiv => self.quotient(of, x, y),
            Rem => self.rest(of, x, y),
            Shl | Shr => self.shift(f, of, x, y),
            _ => return Err(foreign(f.name(), of)),
        };
        // Of canonical operands these are canonical.
        let stays = matches!(f, Min | MinNan | Max | MaxNan | And | Or | Xor);
        Ok(if stays { made } else { self.wrapped(of, made) })
    }

    /// The product of two words, of 64 bits. Addresses are made so, and `ptxas` takes three or four
    /// instructions where it is told of doublewords instead.
    fn wide_product(&mut self, x: Operand, y: Operand) -> Option<Operand> {
        let (&(a, signed), other) = match self.widened.get(&x) {
            Some(x) => (x, y),
            None => (self.widened.get(&y)?, x),
        };
        let b = match (self.widened.get(&other), other.known_int()) {
            (Some(&(b, also)), _) if also == signed => b,
            (_, Some(n)) if i32::try_from(n).is_ok() && (signed || n >= 0) => Operand::word(n),
            _ => return None,
        };
        let opcode = if signed { "mul.wide.s32" } else { "mul.wide.u32" };
        Some(self.ins(opcode, Class::Double, [a, b]))
    }

    pub fn ternary(
        &mut self,
        f: TernaryFn,
        of: Scalar,
        [x, y, z]: [Operand; 3],
    ) -> Result<Operand, String> {
        match f {
            TernaryFn::Fma if of.is_float() => {
                let class = Class::of(of.into());
                Ok(self.ins(&format!("fma.rn.{}", compute(of)), class, [x, y, z]))
            }
            // A NaN loses against a bound: `max`, then `min`.
            TernaryFn::Clamp => {
                let raised = self.binary(BinaryFn::Max, of, x, y)?;
                self.binary(BinaryFn::Min, of, raised, z)
            }
            TernaryFn::Fma | TernaryFn::FmaOdd => Err(foreign(f.name(), of)),
        }
    }

    pub fn compare(&mut self, p: Predicate, of: ThreadElem, x: Operand, y: Operand) -> Operand {
        let name = match p {
            Predicate::Eq => "eq",
            Predicate::Ne => "ne",
            Predicate::Lt => "lt",
            Predicate::Le => "le",
            Predicate::Gt => "gt",
            Predicate::Ge => "ge",
        };
        let Some(of) = of.scalar() else { return self.setp(&format!("setp.{name}.u64"), x, y) };
        if of.is_bool() {
            return self.compare_bools(p, x, y);
        }
        // `ne` alone is true where the operands are not ordered.
        let name = if of.is_float() && p == Predicate::Ne { "neu" } else { name };
        self.setp(&format!("setp.{name}.{}", compute(of)), x, y)
    }

    fn compare_bools(&mut self, p: Predicate, x: Operand, y: Operand) -> Operand {
        match p {
            Predicate::Ne => self.xor(x, y),
            Predicate::Eq => {
                let differ = self.xor(x, y);
                self.not(differ)
            }
            Predicate::Lt => {
                let not = self.not(x);
                self.and(not, y)
            }
            Predicate::Le => {
                let not = self.not(x);
                self.or(not, y)
            }
            Predicate::Gt => self.compare_bools(Predicate::Lt, y, x),
            Predicate::Ge => self.compare_bools(Predicate::Le, y, x),
        }
    }

    /// `yes` where the predicate is true.
    pub fn select(&mut self, cond: Operand, yes: Operand, no: Operand) -> Operand {
        if yes == no {
            return yes;
        }
        if let Some(known) = cond.known() {
            return if known != 0 { yes } else { no };
        }
        if yes.class() == Class::Pred {
            let (yes, not) = (self.and(cond, yes), self.not(cond));
            let no = self.and(not, no);
            return self.or(yes, no);
        }
        let opcode = format!("selp.{}", yes.class().ty());
        self.ins(&opcode, yes.class(), [yes, no, cond])
    }

    pub fn not(&mut self, x: Operand) -> Operand {
        match x.known() {
            Some(known) => Operand::Imm(Class::Pred, known ^ 1),
            None => self.ins("not.pred", Class::Pred, [x]),
        }
    }

    pub fn and(&mut self, x: Operand, y: Operand) -> Operand {
        match (x.known(), y.known()) {
            (Some(0), _) | (_, Some(0)) => Operand::Imm(Class::Pred, 0),
            (Some(_), _) => y,
            (_, Some(_)) => x,
            _ if x == y => x,
            _ => self.ins("and.pred", Class::Pred, [x, y]),
        }
    }

    pub fn or(&mut self, x: Operand, y: Operand) -> Operand {
        match (x.known(), y.known()) {
            (Some(0), _) => y,
            (_, Some(0)) => x,
            (Some(_), _) | (_, Some(_)) => Operand::Imm(Class::Pred, 1),
            _ if x == y => x,
            _ => self.ins("or.pred", Class::Pred, [x, y]),
        }
    }

    fn xor(&mut self, x: Operand, y: Operand) -> Operand {
        match (x.known(), y.known()) {
            (Some(0), _) => y,
            (_, Some(0)) => x,
            (Some(_), _) => self.not(y),
            (_, Some(_)) => self.not(x),
            _ => self.ins("xor.pred", Class::Pred, [x, y]),
        }
    }

    /// What was computed in more bits than the type has, in the form in which it is held.
    fn wrapped(&mut self, of: Scalar, x: Operand) -> Operand {
        if of.bits() == 8 { self.extend_byte(of.into(), x) } else { x }
    }

    /// An integer of at most 32 bits as a word without its sign.
    pub fn zero_extended(&mut self, of: Scalar, x: Operand) -> Operand {
        match of.bits() {
            16 => {
                let x = self.reg(x);
                self.ins("cvt.u32.u16", Class::Word, [x])
            }
            8 if of.is_signed() => self.extend_byte(Scalar::U8.into(), x),
            _ => x,
        }
    }

    /// The high half of the unsigned product.
    fn high_product(&mut self, of: Scalar, x: Operand, y: Operand) -> Operand {
        if of.bits() == 8 {
            let (x, y) = (self.zero_extended(of, x), self.zero_extended(of, y));
            let product = self.ins("mul.lo.u32", Class::Word, [x, y]);
            return self.ins("shr.u32", Class::Word, [product, Operand::word(8)]);
        }
        self.ins(&format!("mul.hi.u{}", of.bits()), Class::of(of.into()), [x, y])
    }

    /// The quotient rounded toward zero: 0 by 0, and what wraps by -1, of which PTX says nothing.
    fn quotient(&mut self, of: Scalar, x: Operand, y: Operand) -> Operand {
        let (ty, class) = (compute(of), Class::of(of.into()));
        let quotient = self.ins(&format!("div.{ty}"), class, [x, y]);
        let known = y.known_int();
        let mut quotient = quotient;
        if of.is_signed() && known.is_none_or(|y| y == -1) {
            let minus = self.ins(&format!("neg.{ty}"), class, [x]);
            let is_one = self.setp(&format!("setp.eq.{ty}"), y, Operand::imm(class, -1));
            quotient = self.select(is_one, minus, quotient);
        }
        if known.is_none_or(|y| y == 0) {
            let zero = Operand::imm(class, 0);
            let by_zero = self.setp(&format!("setp.eq.{ty}"), y, zero);
            quotient = self.select(by_zero, zero, quotient);
        }
        quotient
    }

    /// The remainder of [`Emit::quotient`]; with a quotient of 0 by 0 it is `x` there, as it must be.
    fn rest(&mut self, of: Scalar, x: Operand, y: Operand) -> Operand {
        let (ty, class) = (compute(of), Class::of(of.into()));
        if y.known_int().is_some_and(|y| y != 0 && y != -1) {
            return self.ins(&format!("rem.{ty}"), class, [x, y]);
        }
        let quotient = self.quotient(of, x, y);
        let whole = self.ins(&format!("mul.lo.{ty}"), class, [quotient, y]);
        self.ins(&format!("sub.{}", signed(ty)), class, [x, whole])
    }

    /// Shifts, by amounts of any size: PTX too shifts everything out from the width on, and reads the
    /// amount as 32 bits without a sign.
    fn shift(&mut self, f: BinaryFn, of: Scalar, x: Operand, y: Operand) -> Operand {
        let opcode = match f {
            BinaryFn::Shl => format!("shl.{}", bits(of)),
            _ => format!("shr.{}", compute(of)),
        };
        let by = match (of.bits(), y.known()) {
            (_, Some(by)) => Operand::word(by.min(64) as i64),
            (64, None) => {
                let most = self.ins("min.u64", Class::Double, [y, Operand::imm(Class::Double, 64)]);
                self.ins("cvt.u32.u64", Class::Word, [most])
            }
            (16, None) => self.ins("cvt.u32.u16", Class::Word, [y]),
            // A negative number of 8 bits is a large one of 32.
            (_, None) => y,
        };
        let made = self.ins(&opcode, Class::of(of.into()), [x, by]);
        match (of.bits(), by.known_int()) {
            (32, Some(bits)) if f == BinaryFn::Shl => {
                self.holds(made, shifted(self.bytes_of(x), bits))
            }
            (32, Some(bits)) if !of.is_signed() => {
                self.holds(made, shifted(self.bytes_of(x), -bits))
            }
            _ => made,
        }
    }

    /// The bits of two words. Where they are bytes side by side, the word may be there already.
    fn join(&mut self, x: Operand, y: Operand) -> Operand {
        let bytes = joined(self.bytes_of(x), self.bytes_of(y));
        if !bytes.contains(&Byte::Unknown)
            && let Some(word) = self.word_of(bytes)
        {
            return word;
        }
        let made = self.ins("or.b32", Class::Word, [x, y]);
        self.holds(made, bytes)
    }

    pub fn native(&mut self, f: NativeFn, args: &[Operand]) -> Operand {
        let opcode = match f {
            NativeFn::Exp2 => "ex2.approx.f32",
            NativeFn::Log2 => "lg2.approx.f32",
            NativeFn::Sin => "sin.approx.f32",
            NativeFn::Cos => "cos.approx.f32",
            NativeFn::Tanh => "tanh.approx.f32",
            NativeFn::Rsqrt => "rsqrt.approx.f32",
            NativeFn::Sqrt => "sqrt.approx.f32",
            NativeFn::Reciprocal => "rcp.approx.f32",
            NativeFn::Div => "div.full.f32",
        };
        let dst = self.fresh(Class::Word);
        self.put(opcode, dst, args);
        dst
    }
}

/// Sums have no unsigned form that differs; negation has none at all.
fn signed(ty: &'static str) -> &'static str {
    match ty {
        "u16" => "s16",
        "u32" => "s32",
        "u64" => "s64",
        ty => ty,
    }
}
