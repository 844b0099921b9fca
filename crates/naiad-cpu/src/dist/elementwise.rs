//! Ops that work lane by lane, on scalars and on short vectors alike.

use super::{Dist, Result, stored};
use naiad_ir::scalar::{BinaryFn, Predicate, Rounding, TernaryFn, UnaryFn};
use naiad_ir::thread::{Builder, Expand, ThreadElem, ThreadOp};
use naiad_ir::tile::{Constant, TileOp};
use naiad_ir::{Inst, OpInfo, Scalar, Value};

/// Functions on floats that Thread IR has ops for; the others are made of them.
fn has_op(f: UnaryFn) -> bool {
    matches!(
        f,
        UnaryFn::Neg
            | UnaryFn::Abs
            | UnaryFn::Floor
            | UnaryFn::Ceil
            | UnaryFn::Trunc
            | UnaryFn::Sqrt
            | UnaryFn::SqrtRn
    )
}

/// Runs `$body` with a recorder of the float type's operations.
macro_rules! expanded {
    ($b:expr, $ty:expr, $lanes:expr, |$e:ident| $body:expr) => {
        match $ty {
            Scalar::F64 => {
                let $e = &mut Expand::<64> { builder: $b, lanes: $lanes };
                $body
            }
            _ => {
                let $e = &mut Expand::<32> { builder: $b, lanes: $lanes };
                $body
            }
        }
    };
}

/// A function of one number; narrow floats are computed in fp32 and rounded.
pub(super) fn unary(b: &mut Builder, f: UnaryFn, x: Value) -> Option<Value> {
    let (ty, lanes) = number(b, x)?;
    let c = ty.compute_type();
    let wide = b.cast(x, c, Rounding::Nearest);
    let y = match ty.is_float() && !has_op(f) {
        true => expanded!(b, c, lanes, |e| f.expand(e, (wide,)))?,
        false => b.unary(f, wide),
    };
    Some(b.cast(y, ty, Rounding::Nearest))
}

pub(super) fn binary(b: &mut Builder, f: BinaryFn, x: Value, y: Value) -> Option<Value> {
    let (ty, lanes) = number(b, x)?;
    let c = ty.compute_type();
    let (wx, wy) = (b.cast(x, c, Rounding::Nearest), b.cast(y, c, Rounding::Nearest));
    let has_op = matches!(
        f,
        BinaryFn::Add | BinaryFn::Sub | BinaryFn::Mul | BinaryFn::Div | BinaryFn::DivRn
    );
    let z = match ty.is_float() && !has_op {
        true => expanded!(b, c, lanes, |e| f.expand(e, (wx, wy)))?,
        false => b.binary(f, wx, wy),
    };
    Some(b.cast(z, ty, Rounding::Nearest))
}

fn ternary(b: &mut Builder, f: TernaryFn, args: [Value; 3]) -> Option<Value> {
    let (ty, lanes) = number(b, args[0])?;
    let (f, c) = (f.computed(ty), ty.compute_type());
    let [x, y, z] = args.map(|v| b.cast(v, c, Rounding::Nearest));
    let out = match ty.is_float() && f != TernaryFn::Fma {
        true => expanded!(b, c, lanes, |e| f.expand(e, (x, y, z)))?,
        false => b.op(ThreadOp::Ternary { f, a: x, b: y, c: z }),
    };
    Some(b.cast(out, ty, Rounding::Nearest))
}

fn compare(b: &mut Builder, p: Predicate, x: Value, y: Value) -> Option<Value> {
    let (ty, _) = number(b, x)?;
    let c = ty.compute_type();
    let (x, y) = (b.cast(x, c, Rounding::Nearest), b.cast(y, c, Rounding::Nearest));
    Some(b.compare(p, x, y))
}

fn number(b: &Builder, x: Value) -> Option<(Scalar, u32)> {
    let v = b.vector(x);
    Some((v.elem.scalar()?, v.lanes))
}

/// Scalars among vectors are repeated, so that all have as many lanes.
pub(super) fn unify(b: &mut Builder, args: &mut [Value]) {
    let lanes = args.iter().map(|&v| b.vector(v).lanes).max().unwrap_or(1);
    for v in args {
        if b.vector(*v).lanes != lanes {
            *v = b.splat(*v, lanes);
        }
    }
}

/// An integer as one of 64 bits, by its own signedness.
pub(super) fn wide_int(b: &mut Builder, x: Value) -> Value {
    if let Some(c) = b.known_int(x)
        && b.vector(x).is_scalar()
    {
        return b.i64(c);
    }
    b.cast(x, Scalar::I64, Rounding::Nearest)
}

/// The bits of a number or an address as an integer.
pub(super) fn image(b: &mut Builder, x: Value) -> Value {
    match b.vector(x).elem {
        ThreadElem::Addr => b.bitcast(x, Scalar::I64),
        ThreadElem::Scalar(s) if s.is_float() => b.bitcast(
            x,
            [Scalar::I8, Scalar::I16, Scalar::I32, Scalar::I64][s.size().ilog2() as usize],
        ),
        ThreadElem::Scalar(_) => wide_int(b, x),
    }
}

impl Dist<'_> {
    /// An op that works lane by lane, on operands in the order in which it has them.
    pub(super) fn lanewise(&mut self, inst: Inst, args: &[Value]) -> Result<Value> {
        let mut args: smallvec::SmallVec<[Value; 3]> = args.iter().copied().collect();
        let b = &mut self.b;
        unify(b, &mut args);
        let out = match self.f.op(inst) {
            TileOp::Const { value } => Some(b.constant(*value, 1)),
            TileOp::Unary { f, .. } => unary(b, *f, args[0]),
            TileOp::Binary { f, .. } => binary(b, *f, args[0], args[1]),
            TileOp::Ternary { f, .. } => ternary(b, *f, [args[0], args[1], args[2]]),
            TileOp::Compare { p, .. } => compare(b, *p, args[0], args[1]),
            TileOp::Select { .. } => Some(b.select(args[0], args[1], args[2])),
            TileOp::Cast { to, rounding, .. } => Some(b.cast(args[0], *to, *rounding)),
            TileOp::Bitcast { to, .. } => Some(b.bitcast(args[0], stored(*to))),
            TileOp::Hint { .. } => Some(args[0]),
            TileOp::PtrAdd { ptr, .. } => {
                let size = self.f.ty(*ptr).elem.pointer().map_or(1, |p| p.pointee.size());
                let offset = wide_int(b, args[1]);
                let lanes = b.vector(offset).lanes;
                let size = b.constant(Constant::int(Scalar::I64, size as i128), lanes);
                let bytes = match b.known_int(size) {
                    Some(1) => offset,
                    _ => b.binary(BinaryFn::Mul, offset, size),
                };
                Some(b.op(ThreadOp::AddrAdd { addr: args[0], offset: bytes }))
            }
            _ => None,
        };
        match out {
            Some(out) => Ok(out),
            None => self.unsupported(inst, format!("`{}` lane by lane", self.f.op(inst).name())),
        }
    }
}
