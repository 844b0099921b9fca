//! Which kernels give one result, whoever runs them.

use naiad_ir::tile::{Tile, TileOp};
use naiad_ir::{Elem, Function, Value};

/// Whether results are the same bits, NaN payloads apart, in whatever order an executor combines lanes.
pub fn is_order_free(func: &Function<Tile>) -> bool {
    let mut free = true;
    func.walk(&mut |inst| free &= is_free(func, func.op(inst)));
    free
}

// A new op does not compile until it is judged here.
#[deny(clippy::wildcard_enum_match_arm)]
fn is_free(func: &Function<Tile>, op: &TileOp) -> bool {
    let is_integer = |v: &Value| match func.ty(*v).elem {
        Elem::Scalar(ty) => ty.is_int(),
        Elem::Pointer(_) => true,
    };
    match op {
        // Of what is combined, in whatever order, only integers give one result; and of several inputs
        // together, as `argmax` has them, equal ones may differ in the others.
        TileOp::Reduce { inputs, .. } | TileOp::Scan { inputs, .. } => {
            inputs.len() == 1 && is_integer(&inputs[0])
        }
        TileOp::Dot { out, .. } => out.is_int(),
        TileOp::AtomicRmw { value, .. } => is_integer(value),
        // Zeros of either sign are equal.
        TileOp::Sort { src, .. } | TileOp::TopK { src, .. } => is_integer(src),
        TileOp::Const { .. }
        | TileOp::ProgramId { .. }
        | TileOp::NumPrograms { .. }
        | TileOp::Arange { .. }
        | TileOp::Splat { .. }
        | TileOp::ExpandDims { .. }
        | TileOp::Broadcast { .. }
        | TileOp::Reshape { .. }
        | TileOp::Permute { .. }
        | TileOp::Join { .. }
        | TileOp::Split { .. }
        | TileOp::Cat { .. }
        | TileOp::Flip { .. }
        | TileOp::Unary { .. }
        | TileOp::Binary { .. }
        | TileOp::Ternary { .. }
        | TileOp::Compare { .. }
        | TileOp::Select { .. }
        | TileOp::Cast { .. }
        | TileOp::Bitcast { .. }
        | TileOp::PtrAdd { .. }
        | TileOp::Load { .. }
        | TileOp::Store { .. }
        | TileOp::AtomicCas { .. }
        | TileOp::AtomicLoad { .. }
        | TileOp::AtomicStore { .. }
        | TileOp::Barrier { .. }
        | TileOp::Map { .. }
        | TileOp::Gather { .. }
        | TileOp::Histogram { .. }
        | TileOp::Print { .. }
        | TileOp::Assert { .. }
        | TileOp::Machine { .. }
        | TileOp::InlineAsm { .. }
        | TileOp::Hint { .. }
        | TileOp::Assume { .. }
        | TileOp::For { .. }
        | TileOp::While { .. }
        | TileOp::If { .. }
        | TileOp::Yield { .. }
        | TileOp::Condition { .. }
        | TileOp::Return { .. } => true,
    }
}
