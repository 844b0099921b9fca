//! Functions of numbers.

use super::values::{full, is_splat, splat, splat_of, uniform_constant};
use super::{R, found};
use crate::rewrite::Outcome;
use crate::structure::Structured;
use naiad_ir::scalar::{BinaryFn, Predicate, Rounding, TernaryFn, UnaryFn, cast_bits};
use naiad_ir::tile::{Constant, Tile, TileOp};
use naiad_ir::{Block, Inst, Scalar, Type, Value};
use smallvec::SmallVec;

/// The type of the lanes; operands of these functions are never pointers.
fn scalar(ty: Type) -> Scalar {
    ty.elem.scalar().unwrap_or(Scalar::I64)
}

fn edit(r: R<'_, '_>, inst: Inst, op: TileOp) -> Outcome {
    *r.func.op_mut(inst) = op;
    Outcome::Edited
}

pub(super) fn unary(r: R<'_, '_>, inst: Inst, f: UnaryFn, x: Value) -> Outcome {
    let (ty, loc) = (r.func.ty(x), r.func.loc(inst));
    let s = scalar(ty);
    if let Some(c) = uniform_constant(r.func, x)
        && let Some(bits) = f.eval(s, c.bits)
    {
        return Outcome::value(full(r, Constant { ty: s, bits }, ty.shape, loc));
    }
    match (f, r.func.defining_op(x)) {
        (UnaryFn::Neg | UnaryFn::Not, Some(&TileOp::Unary { f: g, x }))
            if f == g && survives(s) =>
        {
            Outcome::value(x)
        }
        (UnaryFn::Abs, Some(TileOp::Unary { f: UnaryFn::Abs, .. })) => Outcome::value(x),
        (UnaryFn::Not, Some(&TileOp::Compare { p, a, b })) => {
            match p.negated(scalar(r.func.ty(a))) {
                Some(p) => edit(r, inst, TileOp::Compare { p, a, b }),
                None => Outcome::Keep,
            }
        }
        // One bit is its own negative, and its own size.
        (UnaryFn::Neg | UnaryFn::Abs, _) if s.is_bool() => Outcome::value(x),
        (UnaryFn::Abs, _) if s.is_int() && !s.is_signed() => Outcome::value(x),
        _ => Outcome::Keep,
    }
}

pub(super) fn binary(r: R<'_, '_>, inst: Inst, f: BinaryFn, a: Value, b: Value) -> Outcome {
    let (ty, loc) = (r.func.ty(a), r.func.loc(inst));
    let s = scalar(ty);
    let (left, right) = (uniform_constant(r.func, a), uniform_constant(r.func, b));
    if let (Some(x), Some(y)) = (left, right)
        && let Some(bits) = f.eval(s, x.bits, y.bits)
    {
        return Outcome::value(full(r, Constant { ty: s, bits }, ty.shape, loc));
    }
    if f.is_commutative() && rank(r, a) > rank(r, b) {
        return edit(r, inst, TileOp::Binary { f, a: b, b: a });
    }
    if let Some(bits) = fixed(f, s, a == b, left, right) {
        return Outcome::value(full(r, Constant { ty: s, bits }, ty.shape, loc));
    }
    let same = a == b && is_idempotent(f, s);
    if same || right.is_some_and(|c| is_right_identity(f, s, c.bits)) {
        return Outcome::value(a);
    }
    if let Some(c) = right {
        match f {
            // The least number has no negative.
            BinaryFn::Sub if s.is_signed() && c.as_int() != Some(s.int_min()) => {
                let negative = BinaryFn::Sub.eval(s, 0, c.bits).unwrap_or(0);
                let b = full(r, Constant { ty: s, bits: negative }, ty.shape, loc);
                return edit(r, inst, TileOp::Binary { f: BinaryFn::Add, a, b });
            }
            BinaryFn::Div | BinaryFn::DivRn => {
                if let Some(c) = exact_reciprocal(c) {
                    let b = full(r, c, ty.shape, loc);
                    return edit(r, inst, TileOp::Binary { f: BinaryFn::Mul, a, b });
                }
            }
            _ => {}
        }
    }
    if left.is_some_and(|c| c.bits == 0) && f == BinaryFn::Sub && s.is_int() {
        return edit(r, inst, TileOp::Unary { f: UnaryFn::Neg, x: b });
    }
    regroup(r, inst, f, a, b)
}

/// Constants stand right of uniform tiles, and those right of everything else.
fn rank(r: R<'_, '_>, value: Value) -> u8 {
    match uniform_constant(r.func, value) {
        Some(_) => 2,
        None => u8::from(is_splat(r, value)),
    }
}

/// `(x f c) f d` is `x f (c f d)`, where regrouping is exact, for constants and uniform tiles.
fn regroup(r: R<'_, '_>, inst: Inst, f: BinaryFn, a: Value, b: Value) -> Outcome {
    let ty = r.func.ty(a);
    let Some(&TileOp::Binary { f: g, a: x, b: c }) = r.func.defining_op(a) else {
        return Outcome::Keep;
    };
    let s = scalar(ty);
    if f != g || !s.is_int() || !f.is_commutative() || !f.is_associative(s) {
        return Outcome::Keep;
    }
    let both = |of: fn(R<'_, '_>, Value) -> bool, r: R<'_, '_>| of(r, c) && of(r, b);
    let constants = both(|r, v| uniform_constant(r.func, v).is_some(), r);
    let uniform = both(is_splat, r) && !is_splat(r, x);
    if !constants && !uniform {
        return Outcome::Keep;
    }
    let loc = r.func.loc(inst);
    let inner = |r: R<'_, '_>, v: Value| splat_of(r.func, v).unwrap_or(v);
    let (c, d) = (inner(r, c), inner(r, b));
    let sum = r.make(TileOp::Binary { f, a: c, b: d }, loc);
    let b = splat(r, sum, ty.shape, loc);
    // A value of its own: what is known of the old one, that it does not wrap say, is not true of this.
    Outcome::value(r.make(TileOp::Binary { f, a: x, b }, loc))
}

/// The result where it is one whatever the other operand is, for integers.
fn fixed(
    f: BinaryFn,
    s: Scalar,
    equal: bool,
    left: Option<Constant>,
    right: Option<Constant>,
) -> Option<u64> {
    if !s.is_int() {
        return None;
    }
    let (left, right) = (left.map(|c| c.bits), right.map(|c| c.bits));
    let (least, most) = (Constant::int(s, s.int_min()).bits, Constant::int(s, s.int_max()).bits);
    match f {
        BinaryFn::Mul | BinaryFn::And | BinaryFn::Umulhi if right == Some(0) => Some(0),
        BinaryFn::Or if right == Some(s.mask()) => right,
        BinaryFn::Min | BinaryFn::MinNan if right == Some(least) => right,
        BinaryFn::Max | BinaryFn::MaxNan if right == Some(most) => right,
        BinaryFn::Sub | BinaryFn::Xor if equal => Some(0),
        // x rem 0 is x, so x rem x is 0 for 0 too. x idiv x is 0 there and 1 elsewhere.
        BinaryFn::Rem if equal || right == Some(1) => Some(0),
        BinaryFn::Idiv | BinaryFn::Rem | BinaryFn::Shl | BinaryFn::Shr if left == Some(0) => {
            Some(0)
        }
        _ => None,
    }
}

/// Whether a function that gives its operand gives all of it. In 8 bits infinities do not outlive an
/// operation: its result is converted from fp32, and such conversions saturate.
fn survives(s: Scalar) -> bool {
    !s.is_fp8()
}

/// Whether `f(x, x)` is `x`.
fn is_idempotent(f: BinaryFn, s: Scalar) -> bool {
    let chooses = matches!(
        f,
        BinaryFn::And
            | BinaryFn::Or
            | BinaryFn::Min
            | BinaryFn::Max
            | BinaryFn::MinNan
            | BinaryFn::MaxNan
    );
    chooses && survives(s)
}

/// Whether `f(x, e)` is `x` for every `x`.
fn is_right_identity(f: BinaryFn, s: Scalar, e: u64) -> bool {
    match f {
        _ if !survives(s) => false,
        // Also for -0, of which +0 is taken.
        BinaryFn::Sub | BinaryFn::Shl | BinaryFn::Shr => e == 0,
        BinaryFn::Idiv => e == 1,
        BinaryFn::Div | BinaryFn::DivRn => e == Constant::float(s, 1.0).bits,
        _ => f.identity(s) == Some(e),
    }
}

/// `1 / c` where multiplying by it is dividing by `c`, to the bit: both round the same number once.
fn exact_reciprocal(c: Constant) -> Option<Constant> {
    let x = c.as_f64();
    let is_power = x.is_normal() && x.to_bits() << 12 == 0;
    let inverse = Constant::float(c.ty, 1.0 / x);
    (is_power && inverse.as_f64() == 1.0 / x).then_some(inverse)
}

pub(super) fn ternary(r: R<'_, '_>, inst: Inst, f: TernaryFn, x: [Value; 3]) -> Outcome {
    let (ty, loc) = (r.func.ty(x[0]), r.func.loc(inst));
    let s = scalar(ty);
    let constants = x.map(|v| uniform_constant(r.func, v).map(|c| c.bits));
    if let [Some(a), Some(b), Some(c)] = constants
        && let Some(bits) = f.eval(s, a, b, c)
    {
        return Outcome::value(full(r, Constant { ty: s, bits }, ty.shape, loc));
    }
    Outcome::Keep
}

pub(super) fn compare(r: R<'_, '_>, inst: Inst, p: Predicate, a: Value, b: Value) -> Outcome {
    let (ty, loc) = (r.func.ty(a), r.func.loc(inst));
    let s = scalar(ty);
    let (left, right) = (uniform_constant(r.func, a), uniform_constant(r.func, b));
    let known = match (left, right) {
        (Some(x), Some(y)) => p.eval(s, x.bits, y.bits),
        // A NaN equals nothing, itself included, and is neither less nor greater.
        _ if a == b => match p {
            Predicate::Lt | Predicate::Gt => Some(false),
            Predicate::Eq | Predicate::Le | Predicate::Ge if s.is_int() => Some(true),
            Predicate::Ne if s.is_int() => Some(false),
            _ => None,
        },
        (None, Some(y)) => at_the_end(p, y),
        _ => None,
    };
    if let Some(known) = known {
        return Outcome::value(full(r, Constant::bool(known), ty.shape, loc));
    }
    if rank(r, a) > rank(r, b) {
        return edit(r, inst, TileOp::Compare { p: p.swapped(), a: b, b: a });
    }
    if let Some(c) = right
        && s.is_bool()
    {
        match (p, c.bits != 0) {
            (Predicate::Eq, true) | (Predicate::Ne, false) => return Outcome::value(a),
            (Predicate::Eq, false) | (Predicate::Ne, true) => {
                return edit(r, inst, TileOp::Unary { f: UnaryFn::Not, x: a });
            }
            _ => {}
        }
    }
    Outcome::Keep
}

/// What a comparison with the least or the greatest number of a type always gives.
fn at_the_end(p: Predicate, c: Constant) -> Option<bool> {
    let y = c.as_int()?;
    match p {
        Predicate::Lt if y == c.ty.int_min() => Some(false),
        Predicate::Ge if y == c.ty.int_min() => Some(true),
        Predicate::Gt if y == c.ty.int_max() => Some(false),
        Predicate::Le if y == c.ty.int_max() => Some(true),
        _ => None,
    }
}

pub(super) fn select(r: R<'_, '_>, inst: Inst, cond: Value, yes: Value, no: Value) -> Outcome {
    if yes == no {
        return Outcome::value(yes);
    }
    if let Some(c) = uniform_constant(r.func, cond) {
        return Outcome::value(if c.bits != 0 { yes } else { no });
    }
    if let Some(&TileOp::Unary { f: UnaryFn::Not, x }) = r.func.defining_op(cond) {
        return edit(r, inst, TileOp::Select { cond: x, yes: no, no: yes });
    }
    let is_bool = r.func.ty(yes).elem.scalar() == Some(Scalar::I1);
    if is_bool {
        let known = |v| uniform_constant(r.func, v).map(|c| c.bits != 0);
        match (known(yes), known(no)) {
            (Some(true), Some(false)) => return Outcome::value(cond),
            (Some(false), Some(true)) => {
                return edit(r, inst, TileOp::Unary { f: UnaryFn::Not, x: cond });
            }
            (Some(true), None) => {
                return edit(r, inst, TileOp::Binary { f: BinaryFn::Or, a: cond, b: no });
            }
            (None, Some(false)) => {
                return edit(r, inst, TileOp::Binary { f: BinaryFn::And, a: cond, b: yes });
            }
            _ => {}
        }
    }
    found(None)
}

/// An `if` whose branches hold nothing: its results are choices. A chosen pointer would not show which
/// argument it came from, so pointers stay.
pub(super) fn choose(
    r: R<'_, '_>,
    inst: Inst,
    cond: Value,
    then: Block,
    otherwise: Block,
) -> Option<SmallVec<[Value; 1]>> {
    let results: SmallVec<[Value; 2]> = r.func.results(inst).into();
    let idle = [then, otherwise].iter().all(|&b| r.func.insts(b).len() == 1);
    if !idle || results.iter().any(|&v| r.func.ty(v).is_pointer()) {
        return None;
    }
    let loc = r.func.loc(inst);
    let one = |(i, &result): (usize, &Value)| {
        let yes = Tile::values_of_terminator(r.func, then)[i];
        let no = Tile::values_of_terminator(r.func, otherwise)[i];
        let cond = splat(r, cond, r.func.ty(result).shape, loc);
        r.make(TileOp::Select { cond, yes, no }, loc)
    };
    Some(results.iter().enumerate().map(one).collect())
}

/// A constant converted.
pub(super) fn convert(c: Constant, to: Scalar, rounding: Rounding) -> Constant {
    Constant { ty: to, bits: cast_bits(c.ty, to, rounding, c.bits) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &[Scalar] = &[
        Scalar::I1,
        Scalar::I8,
        Scalar::U8,
        Scalar::F8E5,
        Scalar::F8E4NV,
        Scalar::F8E4B15,
        Scalar::F8E5B16,
        Scalar::F8E4B8,
    ];

    fn same(ty: Scalar, a: u64, b: u64) -> bool {
        let nan = |x| Constant { ty, bits: x }.as_f64().is_nan();
        a == b || ty.is_float() && nan(a) && nan(b)
    }

    /// Every rule about two operands, on every operand of the small types.
    #[test]
    fn rules_of_binary_functions_hold() {
        let mut uses = 0;
        for &ty in SMALL {
            for &f in BinaryFn::ALL.iter().filter(|f| f.accepts(ty)) {
                let eval = |x, y| f.eval(ty, x, y).unwrap();
                for c in 0..=ty.mask() {
                    let constant = Constant { ty, bits: c };
                    let right = fixed(f, ty, false, None, Some(constant));
                    let left = fixed(f, ty, false, Some(constant), None);
                    let twice = fixed(f, ty, true, None, None);
                    let neutral = is_right_identity(f, ty, c);
                    let inverse = exact_reciprocal(constant)
                        .filter(|_| matches!(f, BinaryFn::Div | BinaryFn::DivRn));
                    // Floats cost more to compute, and every third bit image will do.
                    let step = if ty.is_float() { 3 } else { 1 };
                    let ends = [ty.mask() / 2, ty.mask() - ty.mask() / 64];
                    for x in (0..=ty.mask()).step_by(step).chain(ends) {
                        let mut check = |have: u64, want: Option<u64>, rule: &str| {
                            let Some(want) = want else { return };
                            uses += 1;
                            assert!(same(ty, have, want), "{f} of {ty}, {x:#x}, {c:#x}: {rule}");
                        };
                        check(eval(x, c), right, "fixed by the right");
                        check(eval(c, x), left, "fixed by the left");
                        check(eval(x, x), twice, "fixed by equality");
                        check(eval(x, x), is_idempotent(f, ty).then_some(x), "idempotent");
                        check(eval(x, c), neutral.then_some(x), "neutral");
                        let product = inverse.and_then(|i| BinaryFn::Mul.eval(ty, x, i.bits));
                        check(eval(x, c), product, "reciprocal");
                    }
                }
            }
        }
        assert!(uses > 50_000, "{uses}");
    }

    /// Rules that only floats of more bits can break.
    #[test]
    fn reciprocals_are_exact() {
        for ty in [Scalar::F16, Scalar::BF16, Scalar::F32, Scalar::F64] {
            let mut found = 0;
            for e in -1074..1024 {
                let x = f64::exp2(f64::from(e));
                for x in [x, -x, 1.5 * x] {
                    let c = Constant::float(ty, x);
                    let Some(inverse) = exact_reciprocal(c) else { continue };
                    found += 1;
                    assert_eq!(c.as_f64() * inverse.as_f64(), 1.0, "{x} as {ty}");
                    for y in [1.0, 3.1, -7.3e-5, 1e30, 6e-8, 65504.0, f64::INFINITY, 1e-308] {
                        let y = Constant::float(ty, y).bits;
                        let quotient = BinaryFn::Div.eval(ty, y, c.bits).unwrap();
                        let product = BinaryFn::Mul.eval(ty, y, inverse.bits).unwrap();
                        assert!(same(ty, quotient, product), "{y:#x} by {x} as {ty}");
                    }
                }
            }
            assert!(found > 50, "{found} of {ty}");
        }
    }
}
