//! Scalar semantics: what every elementwise operation does to one element, defined once.
//!
//! ```text
//!   table.rs      the rows: UnaryFn, BinaryFn, TernaryFn, Predicate   -> int.rs, crate::math
//!   lane.rs       the types that are computed in
//!   eval.rs       from (function, type) to a loop body, or to one result
//!   properties.rs commutative, associative, identity
//!   cast.rs       conversions between all pairs of types, of one element
//!   slice.rs      the same for slices
//!   format.rs     the float formats of at most 32 bits
//!   show.rs       numbers as text
//! ```
//!
//! **Compute types.** Functions are computed in a [`Lane`]: `bool`, the integers, `f32` and `f64`.
//! The other floats are widened to `f32`, which is exact, and the result is rounded once to the
//! type. For `+ - * /` and `sqrt` on fp16, bf16 and fp8 that is the correctly rounded result, because
//! `f32` has more than twice their bits; an `fma` there is rounded to `f32` first.
//!
//! **Bit images.** Single values travel as `u64`: the bits of the type, zero-extended. Slices in
//! memory are bytes in the order of the machine, [`Scalar::size`] bytes an element, an `i1` a byte
//! that is 0 or 1 (any other value reads as 1).
//!
//! **Integers are total.** Sums, differences and products wrap, `i1` is arithmetic modulo 2.
//! `x idiv 0` is 0 and `x rem 0` is `x`, so that `x = (x idiv y) * y + x rem y` always holds; the
//! least number divided by -1 wraps to itself. A shift by the width or more, or by a negative number,
//! shifts everything out: 0, or the sign for an arithmetic right shift.
//!
//! To add a function: a row in `table.rs`, its implementation (`int.rs`, or a generic function in
//! `crate::math`), and its public name in the front end.

mod cast;
mod eval;
mod format;
mod int;
mod lane;
mod properties;
mod show;
mod slice;
mod table;

pub use cast::{Rounding, cast_bits};
pub use eval::{BinaryVisitor, PredicateVisitor, TernaryVisitor, UnaryVisitor};
pub use format::{Format, Nan};
pub use int::IntLane;
pub use lane::{FloatLane, Lane, Lanewise};
pub use show::show;
pub use slice::{cast_slice, narrow_slice, widen_slice};
pub use table::{BinaryFn, Predicate, TernaryFn, UnaryFn};

use crate::types::Scalar;

impl Scalar {
    /// The type that functions on this type are computed in: itself, or fp32 for narrower floats.
    pub const fn compute_type(self) -> Scalar {
        if self.is_float() && self.bits() < 32 { Scalar::F32 } else { self }
    }

    /// The bits that an image of this type may have set.
    pub const fn mask(self) -> u64 {
        u64::MAX >> (64 - self.bits())
    }
}
