//! Regions that combine two elements, as reductions and scans have them.

use super::{Tile, TileOp};
use crate::scalar::BinaryFn;
use crate::{Block, Function};

/// The function that a region is, if it is nothing but a single one of its two parameters, in either
/// order where that gives the same.
pub fn one_function(func: &Function<Tile>, body: Block) -> Option<BinaryFn> {
    let (&[inst, _], &[x, y]) = (func.insts(body), func.block_params(body)) else { return None };
    let (TileOp::Binary { f, a, b }, Some(TileOp::Yield { values })) =
        (func.op(inst), func.terminator(body))
    else {
        return None;
    };
    let both = (*a, *b) == (x, y) || f.is_commutative() && (*a, *b) == (y, x);
    (both && values.as_slice() == func.results(inst)).then_some(*f)
}
