//! Which kernels give one result, whoever runs them.

use naiad_ir::tile::{Tile, TileOp, one_function};
use naiad_ir::{Block, Elem, Function, Value};

/// Whether results are the same bits, NaN payloads apart, in whatever order an executor combines lanes.
pub fn is_order_free(func: &Function<Tile>) -> bool {
    is_order_free_but(func, &|_| false)
}

/// The same, but for ops that are `known` to be combined in one order.
pub fn is_order_free_but(func: &Function<Tile>, known: &dyn Fn(&TileOp) -> bool) -> bool {
    let mut free = true;
    func.walk(&mut |inst| {
        let op = func.op(inst);
        free = free && (is_free(func, op) || known(op));
    });
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
        // Of several inputs together, as `argmax` has them, equal ones may differ in the others.
        TileOp::Reduce { inputs, body, .. } | TileOp::Scan { inputs, body, .. } => {
            inputs.len() == 1 && is_grouped_freely(func, *body)
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

/// Whether a region combines two numbers by one function that gives the same however they are grouped, as
/// the greater of two floats is: zeros are ordered by their sign. Not all of integers do: the high half of
/// a product is that of other products then.
fn is_grouped_freely(func: &Function<Tile>, body: Block) -> bool {
    let ty = func.ty(func.block_params(body)[0]).elem.scalar();
    one_function(func, body)
        .zip(ty)
        .is_some_and(|(f, ty)| f.is_commutative() && f.is_associative(ty))
}

#[cfg(test)]
mod tests {
    use super::is_order_free;
    use naiad_ir::Function;
    use naiad_ir::tile::Tile;

    #[test]
    fn only_what_may_be_regrouped_is_free() {
        let free = |ty: &str, body: &str| {
            let text = format!(
                "tile @f(%x x: *{ty}, %p p: {ty}) {{
  %v = splat %p shape=(4,) : <4x{ty}>
  %s = reduce inputs=[%v] axis=0 {{
    ^(%a: {ty}, %b: {ty}):
    %c = {body} : {ty}
    yield values=[%c]
  }} : {ty}
  store %x, %s
  return
}}
"
            );
            let source = naiad_diag::Source::new("f", text);
            let func: Function<Tile> = naiad_ir::text::parse(&source).expect("a kernel");
            is_order_free(&func)
        };
        assert!(free("i32", "binary.add %a, %b") && free("u8", "binary.min %b, %a"));
        // Of floats the sum rounds; the high half of a product does as much; a difference is no sum.
        assert!(!free("fp32", "binary.add %a, %b") && !free("fp16", "binary.mul %a, %b"));
        assert!(free("fp32", "binary.max %a, %b") && free("bf16", "binary.min_nan %a, %b"));
        assert!(!free("u32", "binary.umulhi %a, %b") && !free("i32", "binary.sub %a, %b"));
        assert!(!free("i32", "binary.add %a, %a"));
    }
}
