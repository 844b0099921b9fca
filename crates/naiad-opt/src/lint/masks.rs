//! Masks, taken apart.
//!
//! A mask is a conjunction of *bounds*, each true or false along some axes only:
//!
//! ```text
//! (rows < m)[:, None] & (cols < n)[None, :]      rows < m along axis 0, cols < n along axis 1
//! ```
//!
//! Two bounds are the same if they compare the same values along the same axes, however they were moved
//! there: the function must have been through `cse`.

use naiad_ir::function::Def;
use naiad_ir::scalar::{BinaryFn, Predicate};
use naiad_ir::tile::{Tile, TileOp};
use naiad_ir::{Function, Shape, Value};
use smallvec::{SmallVec, smallvec};

/// One of the conditions that a mask is made of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bound {
    root: Root,
    /// The axis of the tile for each axis of the root.
    axes: SmallVec<[usize; 2]>,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Root {
    /// An index beside a number.
    Compare(Predicate, Value, Value),
    Other(Value),
}

impl Bound {
    /// Whether the bound changes along an axis.
    pub fn varies(&self, axis: usize) -> bool {
        self.axes.contains(&axis)
    }

    /// Whether it and another change along a common axis.
    pub fn meets(&self, other: &Bound) -> bool {
        self.axes.iter().any(|&axis| other.varies(axis))
    }

    pub fn is_scalar(&self) -> bool {
        self.axes.is_empty()
    }

    pub fn axes(&self) -> &[usize] {
        &self.axes
    }

    /// The values that it is made of.
    pub fn values(&self) -> SmallVec<[Value; 2]> {
        match self.root {
            Root::Compare(_, a, b) => smallvec![a, b],
            Root::Other(v) => smallvec![v],
        }
    }

    /// The bound with its axes renumbered; none if one of them is gone.
    pub fn moved(&self, to: impl Fn(usize) -> Option<usize>) -> Option<Bound> {
        let axes = self.axes.iter().map(|&axis| to(axis)).collect::<Option<_>>()?;
        Some(Bound { root: self.root, axes })
    }
}

/// Where an op that only moves lanes puts an axis of its operand; none for other ops, and where the axis
/// is lost.
pub fn axis_behind(
    func: &Function<Tile>,
    op: &TileOp,
    to: Shape,
) -> Option<(Value, impl Fn(usize) -> Option<usize>)> {
    let (src, moved): (Value, SmallVec<[Option<usize>; 4]>) = match op {
        TileOp::ExpandDims { src, axis } => {
            let rank = func.ty(*src).shape.rank();
            (*src, (0..rank).map(|d| Some(if d < *axis { d } else { d + 1 })).collect())
        }
        TileOp::Broadcast { src, .. } | TileOp::Flip { src, .. } | TileOp::Hint { src, .. } => {
            (*src, (0..to.rank()).map(Some).collect())
        }
        TileOp::Splat { src, .. } => (*src, SmallVec::new()),
        TileOp::Permute { src, order } => (
            *src,
            (0..order.len()).map(|d| order.iter().position(|&from| from as usize == d)).collect(),
        ),
        // All axes as one, which is how a whole tile is reduced.
        TileOp::Reshape { src, .. } if to.rank() == 1 => {
            (*src, (0..func.ty(*src).shape.rank()).map(|_| Some(0)).collect())
        }
        _ => return None,
    };
    Some((src, move |axis: usize| moved.get(axis).copied().flatten()))
}

/// The bounds that a mask is made of.
pub fn bounds(func: &Function<Tile>, mask: Value) -> Vec<Bound> {
    let mut all: Vec<Bound> = Vec::new();
    let (mut pending, mut seen) = (vec![mask], Vec::new());
    while let Some(part) = pending.pop() {
        if seen.contains(&part) {
            continue;
        }
        seen.push(part);
        if let Some(&TileOp::Binary { f: BinaryFn::And, a, b }) = func.defining_op(part) {
            // The first of the two is the next to be seen.
            pending.extend([b, a]);
            continue;
        }
        for bound in single(func, part) {
            if !all.contains(&bound) {
                all.push(bound);
            }
        }
    }
    all
}

/// The bounds of a mask that is no conjunction itself, though it may be one that was moved.
fn single(func: &Function<Tile>, mask: Value) -> Vec<Bound> {
    let Def::Result(inst, _) = func.def(mask) else { return vec![other(func, mask)] };
    match func.op(inst) {
        TileOp::Const { value } if value.bits != 0 => Vec::new(),
        TileOp::Compare { p, a, b } => vec![compare(func, mask, *p, *a, *b)],
        op => match axis_behind(func, op, func.ty(mask).shape) {
            Some((src, to)) => {
                bounds(func, src).into_iter().filter_map(|bound| bound.moved(&to)).collect()
            }
            None => vec![other(func, mask)],
        },
    }
}

fn other(func: &Function<Tile>, mask: Value) -> Bound {
    let shape = func.ty(mask).shape;
    let axes = (0..shape.rank()).filter(|&d| shape.dim(d) > 1).collect();
    Bound { root: Root::Other(mask), axes }
}

fn compare(func: &Function<Tile>, mask: Value, p: Predicate, a: Value, b: Value) -> Bound {
    let ((x, x_axes), (y, y_axes)) = (peeled(func, a), peeled(func, b));
    let axes = match (func.ty(x).is_scalar(), func.ty(y).is_scalar()) {
        (false, true) => x_axes,
        (true, false) => y_axes,
        (true, true) => SmallVec::new(),
        (false, false) => return other(func, mask),
    };
    Bound { root: Root::Compare(p, x, y), axes }
}

/// What a value is a moved form of, and where its axes went.
fn peeled(func: &Function<Tile>, value: Value) -> (Value, SmallVec<[usize; 2]>) {
    let shape = func.ty(value).shape;
    if let Some(op) = func.defining_op(value)
        && !matches!(op, TileOp::Reshape { .. })
        && let Some((src, to)) = axis_behind(func, op, shape)
    {
        let (root, axes) = peeled(func, src);
        if let Some(axes) = axes.iter().map(|&axis| to(axis)).collect::<Option<_>>() {
            return (root, axes);
        }
    }
    (value, (0..shape.rank()).filter(|&d| shape.dim(d) > 1).collect())
}
