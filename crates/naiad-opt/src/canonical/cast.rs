//! Conversions.

use super::R;
use super::arith::convert;
use super::values::{full, uniform_constant};
use crate::rewrite::Outcome;
use naiad_ir::scalar::Rounding;
use naiad_ir::tile::{Constant, TileOp};
use naiad_ir::{Elem, Inst, Scalar, Value};

pub(super) fn cast(
    r: R<'_, '_>,
    inst: Inst,
    src: Value,
    to: Scalar,
    rounding: Rounding,
) -> Outcome {
    let (ty, loc) = (r.func.ty(src), r.func.loc(inst));
    let Some(from) = ty.elem.scalar() else { return Outcome::Keep };
    if from == to {
        return Outcome::value(src);
    }
    if let Some(c) = uniform_constant(r.func, src) {
        return Outcome::value(full(r, convert(c, to, rounding), ty.shape, loc));
    }
    if let Some(&TileOp::Cast { src: inner, to: middle, .. }) = r.func.defining_op(src)
        && let Some(first) = r.func.ty(inner).elem.scalar()
        && is_one_step(first, middle, to, rounding)
    {
        *r.func.op_mut(inst) = TileOp::Cast { src: inner, to, rounding };
        return Outcome::Edited;
    }
    if rounding != Rounding::Nearest && !rounds(from, to) {
        *r.func.op_mut(inst) = TileOp::Cast { src, to, rounding: Rounding::Nearest };
        return Outcome::Edited;
    }
    Outcome::Keep
}

/// Whether a conversion looks at its rounding: only those from a float to a narrower one do.
fn rounds(from: Scalar, to: Scalar) -> bool {
    from.is_float() && to.is_float() && !holds(to, from)
}

/// Whether a conversion by way of `middle` is the one from `first` to `last`.
fn is_one_step(first: Scalar, middle: Scalar, last: Scalar, rounding: Rounding) -> bool {
    if holds(middle, first) {
        // A conversion to 8 bits saturates infinities, and no conversion does not.
        if first == last && first.is_fp8() {
            return false;
        }
        // A float saturates where an integer keeps its low bits, and rounds as it is told, where an
        // integer is always rounded to nearest.
        let differs = first.is_int() && middle.is_float();
        return !differs
            || if last.is_float() {
                rounding == Rounding::Nearest
            } else {
                last.is_bool() || holds(last, first)
            };
    }
    // Low bits of low bits.
    let cuts = |s: Scalar| s.is_int() && !s.is_bool();
    first.is_int() && cuts(middle) && cuts(last) && last.bits() <= middle.bits()
}

/// Whether every value of type `small` is one of type `wide`, and converting to that keeps it.
pub(super) fn holds(wide: Scalar, small: Scalar) -> bool {
    let digits = |s: Scalar| match s {
        Scalar::F64 => 53,
        Scalar::F32 => 24,
        Scalar::F16 => 11,
        Scalar::BF16 => 8,
        _ => 0,
    };
    match (wide.is_float(), small.is_float()) {
        (false, false) => {
            // Any number is converted to one bit by a comparison with 0.
            (!wide.is_bool() || small.is_bool())
                && wide.int_min() <= small.int_min()
                && small.int_max() <= wide.int_max()
        }
        (true, false) => small.bits() - u32::from(small.is_signed()) <= digits(wide),
        (true, true) => {
            wide == small || wide == Scalar::F64 || wide == Scalar::F32 && small.bits() < 32
        }
        (false, true) => false,
    }
}

pub(super) fn bitcast(r: R<'_, '_>, inst: Inst, src: Value, to: Elem) -> Outcome {
    let (ty, loc) = (r.func.ty(src), r.func.loc(inst));
    if ty.elem == to {
        return Outcome::value(src);
    }
    if let (Elem::Scalar(to), Some(c)) = (to, uniform_constant(r.func, src)) {
        return Outcome::value(full(r, Constant { ty: to, bits: c.bits }, ty.shape, loc));
    }
    if let Some(&TileOp::Bitcast { src: inner, .. }) = r.func.defining_op(src) {
        *r.func.op_mut(inst) = TileOp::Bitcast { src: inner, to };
        return Outcome::Edited;
    }
    Outcome::Keep
}

#[cfg(test)]
mod tests {
    use super::*;
    use naiad_ir::scalar::cast_bits;

    /// Numbers at which conversions differ, and some between.
    fn images(ty: Scalar) -> Vec<u64> {
        if ty.bits() <= 8 {
            return (0..=ty.mask()).collect();
        }
        let mut out: Vec<u64> = (0..ty.bits()).flat_map(|b| [1u64 << b, (1 << b) - 1]).collect();
        out.extend(out.clone().iter().map(|x| !x & ty.mask()));
        let floats =
            [0.5, 1.5, 2.5, 126.9, 127.0, 255.5, 256.0, 1e5, 65519.9, 3e38, 1e300, f64::NAN];
        for x in floats.into_iter().chain([f64::INFINITY, 1e-8, 1e-40, 2049.0, 16777217.0]) {
            for x in [x, -x] {
                out.push(cast_bits(Scalar::F64, ty, Rounding::Nearest, x.to_bits()));
            }
        }
        out
    }

    fn same(ty: Scalar, a: u64, b: u64) -> bool {
        let nan = |x| f64::from_bits(cast_bits(ty, Scalar::F64, Rounding::Nearest, x)).is_nan();
        a == b || ty.is_float() && nan(a) && nan(b)
    }

    #[test]
    fn two_steps_that_are_one_give_the_same() {
        let mut steps = 0;
        for &first in Scalar::ALL {
            for &middle in Scalar::ALL {
                for &last in Scalar::ALL {
                    for &rounding in Rounding::ALL {
                        if !is_one_step(first, middle, last, rounding) {
                            continue;
                        }
                        steps += 1;
                        for x in images(first) {
                            let way = cast_bits(first, middle, Rounding::Nearest, x);
                            let two = cast_bits(middle, last, rounding, way);
                            let one = cast_bits(first, last, rounding, x);
                            assert!(
                                same(last, two, one),
                                "{x:#x}: {first} to {middle} to {last} {rounding:?}: {two:#x}, {one:#x}"
                            );
                        }
                    }
                }
            }
        }
        assert!(steps > 2000, "{steps}");
    }

    #[test]
    fn a_type_that_holds_another_keeps_its_values() {
        for &wide in Scalar::ALL {
            for &small in Scalar::ALL.iter().filter(|&&s| holds(wide, s)) {
                for x in images(small) {
                    let bits = cast_bits(small, wide, Rounding::Nearest, x);
                    let there = Constant { ty: wide, bits }.as_f64();
                    let here = Constant { ty: small, bits: x }.as_f64();
                    let kept = here == there || here.is_nan() && there.is_nan();
                    assert!(kept, "{here}: {small} to {wide} gives {there}");
                }
            }
        }
    }
}
