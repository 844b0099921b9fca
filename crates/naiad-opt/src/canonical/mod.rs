//! Canonical form of Tile IR: one way to write each thing, and the shorter one.
//!
//! | what | canonical |
//! |---|---|
//! | constant operands | folded, by the same functions that executors call |
//! | a constant or a uniform operand of a commutative function | stands right |
//! | the same scalar in every lane | one `splat`, outside all elementwise ops and shape ops |
//! | repeated rows or columns | one `broadcast`, outside elementwise ops |
//! | axes of extent 1 | `expand_dims` in ascending order, not `reshape` or `permute` |
//! | `x - c` of a signed type | `x + -c` |
//! | uniform parts of an address | added to the scalar base: `splat(p + k) + tile` |
//! | an offset of a pointer | before its extension to 64 bits, where that is exact |
//! | a mask that is true, an `other` that is 0 | left out |
//! | `if` of a constant, loops of no round or one | gone |
//! | `if` of nothing but results that are numbers | `select` |
//! | a quotient or remainder by a power of two, where nothing is negative | a shift, an `and` |
//!
//! Every rule keeps the bits of every lane, NaN payloads apart: on floats only what is exact is done
//! (`x * 1`, `x - 0`, `x / 4` as `x * 0.25`; never `x + 0`, which is wrong for `-0`). Equal ops are
//! merged on the way, since rules compare operands by identity.

mod arith;
mod cast;
mod control;
mod known;
mod memory;
mod shape;
mod uniform;
mod values;

pub(crate) use values::{splat_of, uniform_constant};

use crate::ranges::Ranges;
use crate::rewrite::{Outcome, Rewriter, Rules, rewrite};
use naiad_ir::tile::{Tile, TileOp};
use naiad_ir::{Function, Inst, OpInfo, Value};
use smallvec::SmallVec;

pub fn canonicalize(func: &mut Function<Tile>) {
    rewrite(func, &Canonical { ranges: None });
}

/// The same, with the help of what numbers can be: a comparison or a minimum may be decided, a number
/// may be one alone.
pub fn canonicalize_within(func: &mut Function<Tile>, ranges: &Ranges) {
    rewrite(func, &Canonical { ranges: Some(ranges) });
}

struct Canonical<'a> {
    ranges: Option<&'a Ranges>,
}

type R<'a, 'f> = &'a mut Rewriter<'f, Tile>;

impl Rules<Tile> for Canonical<'_> {
    fn parameter(&self, func: &Function<Tile>, param: Value) -> Option<TileOp> {
        Some(TileOp::Const { value: self.ranges?.constant(func, param)? })
    }

    fn simplify(&self, r: &mut Rewriter<'_, Tile>, inst: Inst) -> Outcome {
        if let Some(ranges) = self.ranges {
            let known = match r.func.op(inst) {
                TileOp::For { .. } => known::rounds(r, inst, ranges),
                _ => known::simplify(r, inst, ranges),
            };
            match known {
                Outcome::Keep => {}
                known => return known,
            }
        }
        let own = match r.func.op(inst) {
            &TileOp::Unary { f, x } => arith::unary(r, inst, f, x),
            &TileOp::Binary { f, a, b } => arith::binary(r, inst, f, a, b),
            &TileOp::Ternary { f, a, b, c } => arith::ternary(r, inst, f, [a, b, c]),
            &TileOp::Compare { p, a, b } => arith::compare(r, inst, p, a, b),
            &TileOp::Select { cond, yes, no } => arith::select(r, inst, cond, yes, no),
            &TileOp::Cast { src, to, rounding } => cast::cast(r, inst, src, to, rounding),
            &TileOp::Bitcast { src, to } => cast::bitcast(r, inst, src, to),
            &TileOp::PtrAdd { ptr, offset } => memory::ptr_add(r, inst, ptr, offset, self.ranges),
            TileOp::For { .. } | TileOp::While { .. } | TileOp::If { .. } => {
                control::simplify(r, inst)
            }
            TileOp::Load { .. }
            | TileOp::Store { .. }
            | TileOp::AtomicRmw { .. }
            | TileOp::AtomicLoad { .. }
            | TileOp::AtomicStore { .. }
            | TileOp::Histogram { .. }
            | TileOp::Assert { .. }
            | TileOp::Assume { .. } => memory::masked(r, inst),
            _ => shape::simplify(r, inst),
        };
        match own {
            Outcome::Keep if r.func.op(inst).is_lanewise() => uniform::lift(r, inst),
            own => own,
        }
    }

    fn finish(&self, r: &mut Rewriter<'_, Tile>, inst: Inst) -> Option<SmallVec<[Value; 1]>> {
        match *r.func.op(inst) {
            TileOp::If { cond, then, otherwise } => arith::choose(r, inst, cond, then, otherwise),
            _ => None,
        }
    }
}

/// The outcome of a rule that found a value, or nothing.
fn found(value: Option<Value>) -> Outcome {
    value.map_or(Outcome::Keep, Outcome::value)
}
