//! Which argument a pointer was made from: what guards of an access compare its address with.

use naiad_ir::tile::{Tile, TileOp};
use naiad_ir::{Block, Function, Inst, Value};

/// Where a pointer, or a tile of pointers, comes from.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Origin {
    /// One argument, by its number among the parameters.
    Arg(usize),
    /// One of several, or a number.
    Unknown,
}

/// The origin of every value.
pub struct Origins(Vec<Option<Origin>>);

impl Origins {
    /// Goes round loops until what goes in agrees with what comes back.
    pub fn new(f: &Function<Tile>) -> Origins {
        // None until something is known: of values around a loop.
        let mut origins = vec![None; f.num_values()];
        for (i, &p) in f.params().iter().enumerate() {
            let is_pointer = f.ty(p).is_pointer();
            origins[p.index()] = Some(if is_pointer { Origin::Arg(i) } else { Origin::Unknown });
        }
        let mut order = Vec::new();
        f.walk(&mut |inst| order.push(inst));
        let mut changed = true;
        while changed {
            changed = false;
            for &inst in &order {
                for (to, from) in flows(f, inst) {
                    let from = from.map_or(Some(Origin::Unknown), |v| origins[v.index()]);
                    let old = origins[to.index()];
                    let new = join(old, from);
                    if new != old {
                        origins[to.index()] = new;
                        changed = true;
                    }
                }
            }
        }
        Origins(origins)
    }

    pub fn of(&self, v: Value) -> Origin {
        self.0[v.index()].unwrap_or(Origin::Unknown)
    }
}

impl Origin {
    pub fn arg(self) -> Option<usize> {
        match self {
            Origin::Arg(i) => Some(i),
            Origin::Unknown => None,
        }
    }
}

fn join(a: Option<Origin>, b: Option<Origin>) -> Option<Origin> {
    match (a, b) {
        (None, o) | (o, None) => o,
        (a, b) if a == b => a,
        _ => Some(Origin::Unknown),
    }
}

/// Which values an op passes pointers to, each with where it comes from; none: from nowhere known.
fn flows(f: &Function<Tile>, inst: Inst) -> Vec<(Value, Option<Value>)> {
    let results = f.results(inst);
    let yields = |block: Block| match f.terminator(block) {
        Some(TileOp::Yield { values } | TileOp::Condition { values, .. }) => values.clone(),
        _ => Vec::new(),
    };
    let pairs = |to: &[Value], from: &[Value]| -> Vec<(Value, Option<Value>)> {
        to.iter().copied().zip(from.iter().copied().map(Some)).collect()
    };
    match f.op(inst) {
        TileOp::For { inits, body, .. } => {
            let params = &f.block_params(*body)[1..];
            let back = yields(*body);
            [pairs(params, inits), pairs(params, &back), pairs(results, params)].concat()
        }
        TileOp::While { inits, before, after } => [
            pairs(f.block_params(*before), inits),
            pairs(f.block_params(*after), &yields(*before)),
            pairs(results, &yields(*before)),
            pairs(f.block_params(*before), &yields(*after)),
        ]
        .concat(),
        TileOp::If { then, otherwise, .. } => {
            [pairs(results, &yields(*then)), pairs(results, &yields(*otherwise))].concat()
        }
        TileOp::PtrAdd { ptr, .. } => pairs(results, &[*ptr]),
        TileOp::Select { yes, no, .. } => {
            [pairs(results, &[*yes]), pairs(results, &[*no])].concat()
        }
        TileOp::Join { a, b } | TileOp::Cat { a, b, .. } => {
            [pairs(results, &[*a]), pairs(results, &[*b])].concat()
        }
        TileOp::Splat { src, .. }
        | TileOp::ExpandDims { src, .. }
        | TileOp::Broadcast { src, .. }
        | TileOp::Reshape { src, .. }
        | TileOp::Permute { src, .. }
        | TileOp::Flip { src, .. }
        | TileOp::Gather { src, .. }
        | TileOp::Hint { src, .. } => pairs(results, &[*src]),
        TileOp::Split { src } => results.iter().map(|&r| (r, Some(*src))).collect(),
        TileOp::Bitcast { src, .. } if f.ty(*src).is_pointer() => pairs(results, &[*src]),
        _ => results.iter().filter(|&&r| f.ty(r).is_pointer()).map(|&r| (r, None)).collect(),
    }
}
