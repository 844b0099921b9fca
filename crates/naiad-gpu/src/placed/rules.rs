//! Which layouts fit each other: for ops that move no element, what the operands have to be in for a
//! result in a layout, and the other way.

use crate::layout::{Layout, axis_bits};
use naiad_ir::tile::TileOp;
use naiad_ir::{OpInfo, Shape, Value};

/// The layout that the tiles among the operands have to be in for a result of `shape` in `result`. None
/// if there is none, or if the op moves elements.
pub fn operands(
    op: &TileOp,
    shape_of: impl Fn(Value) -> Shape,
    shape: &Shape,
    result: &Layout,
) -> Option<Layout> {
    match op {
        TileOp::ExpandDims { .. } | TileOp::Reshape { .. } => Some(*result),
        TileOp::Broadcast { src, .. } => Some(result.unbroadcast(shape, &shape_of(*src))),
        TileOp::Permute { order, .. } => {
            let mut inverse = vec![0; order.len()];
            for (i, &axis) in order.iter().enumerate() {
                inverse[axis as usize] = i as u32;
            }
            Some(result.permuted(shape, &inverse))
        }
        TileOp::Join { .. } => without_bit(result, 0),
        TileOp::Cat { axis, .. } => {
            let (low, bits) = axis_bits(shape, *axis);
            without_bit(result, low + bits - 1)
        }
        TileOp::Split { .. } => Some(with_bit(result, 0)),
        TileOp::Map { pack, .. } | TileOp::InlineAsm { pack, .. } => {
            holds_together(result, *pack).then_some(*result)
        }
        TileOp::Load { .. } | TileOp::AtomicRmw { .. } | TileOp::AtomicCas { .. } => Some(*result),
        TileOp::AtomicLoad { .. } | TileOp::Scan { .. } | TileOp::Flip { .. } => Some(*result),
        op if op.is_lanewise() => Some(*result),
        _ => None,
    }
}

/// The layout of the result where the tiles among the operands are in `layout`.
pub fn result(op: &TileOp, shape_of: impl Fn(Value) -> Shape, layout: &Layout) -> Option<Layout> {
    match op {
        TileOp::ExpandDims { .. } | TileOp::Reshape { .. } => Some(*layout),
        TileOp::Broadcast { .. } => None,
        TileOp::Permute { src, order } => Some(layout.permuted(&shape_of(*src), order)),
        TileOp::Join { .. } => Some(with_bit(layout, 0)),
        TileOp::Cat { a, axis, .. } => {
            let (low, bits) = axis_bits(&shape_of(*a), *axis);
            Some(with_bit(layout, low + bits))
        }
        TileOp::Split { .. } => without_bit(layout, 0),
        TileOp::Reduce { inputs, axis, .. } => {
            Some(layout.without_axis(&shape_of(*inputs.first()?), *axis).without_copies())
        }
        TileOp::Map { pack, .. } | TileOp::InlineAsm { pack, .. } => {
            holds_together(layout, *pack).then_some(*layout)
        }
        TileOp::Load { .. } | TileOp::AtomicRmw { .. } | TileOp::AtomicCas { .. } => Some(*layout),
        TileOp::AtomicLoad { .. } | TileOp::Scan { .. } | TileOp::Flip { .. } => Some(*layout),
        op if op.is_lanewise() => Some(*layout),
        _ => None,
    }
}

/// Whether every `pack` consecutive elements lie in one thread.
fn holds_together(layout: &Layout, pack: usize) -> bool {
    let bits = pack.trailing_zeros();
    layout.neighbours(0, bits).len() == bits as usize
}

/// Indices with one more bit, which the lowest bit of a register's number decides.
fn with_bit(layout: &Layout, bit: u32) -> Layout {
    let low = (1 << bit) - 1;
    let wider = layout.map(|b| b & low | (b & !low) << 1);
    let mut registers = vec![1 << bit];
    registers.extend(wider.registers());
    Layout::new(&registers, lanes(&wider), wider.warps())
}

/// Indices without a bit that one bit of a register's number decides, and it alone.
fn without_bit(layout: &Layout, bit: u32) -> Option<Layout> {
    let at = layout.registers().iter().position(|&b| b == 1 << bit)?;
    let mut registers = layout.registers().to_vec();
    registers.remove(at);
    let rest = Layout::new(&registers, lanes(layout), layout.warps());
    let all = registers.iter().chain(layout.lanes()).chain(layout.warps());
    if all.copied().any(|b| b >> bit & 1 == 1) {
        return None;
    }
    let low = (1 << bit) - 1;
    Some(rest.map(|b| b & low | b >> 1 & !low))
}

fn lanes(layout: &Layout) -> [u32; 5] {
    std::array::from_fn(|i| layout.lanes()[i])
}
