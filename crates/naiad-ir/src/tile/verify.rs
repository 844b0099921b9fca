//! What the types of a Tile IR op do not show.
//!
//! - `for`: the block's parameters are the induction variable and the inits' types; its yield
//!   gives those types.
//! - `while`: the first block's parameters have the inits' types and it ends in `condition`; the
//!   second's have the types that `condition` passes, and its yield gives the inits' types.
//! - `if`: both blocks have no parameters and yield the same types.
//! - `reduce`, `scan`: the region has two scalar parameters for each input and yields one for each;
//!   it uses no value from outside and holds only pure ops.
//! - `map`: the region has `pack` scalar parameters for each input and yields `pack` scalars for each
//!   result; it uses no value from outside and holds only pure ops.
//! - `return` stands only at the end of the entry block, `yield` and `condition` only in regions.

use super::{Tile, TileOp};
use crate::entities::{Block, Value};
use crate::function::Function;
use crate::op::OpInfo;
use crate::types::{Shape, Type};

type F = Function<Tile>;

fn types(f: &F, values: &[Value]) -> Vec<Type> {
    values.iter().map(|&v| f.ty(v)).collect()
}

fn params(f: &F, block: Block, want: &[Type], what: &str) -> Result<(), String> {
    let have = types(f, f.block_params(block));
    if have == want {
        return Ok(());
    }
    Err(format!("{what} has parameters {}, wants {}", list(&have), list(want)))
}

fn yields(f: &F, block: Block, want: &[Type], what: &str) -> Result<(), String> {
    let Some(TileOp::Yield { values }) = f.terminator(block) else {
        return Err(format!("{what} must end in `yield`"));
    };
    let have = types(f, values);
    if have == want {
        return Ok(());
    }
    Err(format!("{what} yields {}, wants {}", list(&have), list(want)))
}

fn list(types: &[Type]) -> String {
    let names: Vec<String> = types.iter().map(Type::to_string).collect();
    format!("({})", names.join(", "))
}

pub(super) fn op(f: &F, op: &TileOp) -> Result<(), String> {
    match op {
        TileOp::For { lower, inits, body, .. } => {
            let carried = types(f, inits);
            let mut want = vec![f.ty(*lower)];
            want.extend(&carried);
            params(f, *body, &want, "the loop's body")?;
            yields(f, *body, &carried, "the loop's body")
        }
        TileOp::While { inits, before, after } => {
            let carried = types(f, inits);
            params(f, *before, &carried, "the loop's test")?;
            let Some(TileOp::Condition { values, .. }) = f.terminator(*before) else {
                return Err("the loop's test must end in `condition`".to_string());
            };
            params(f, *after, &types(f, values), "the loop's body")?;
            yields(f, *after, &carried, "the loop's body")
        }
        TileOp::If { then, otherwise, .. } => {
            let Some(TileOp::Yield { values }) = f.terminator(*then) else {
                return Err("the first branch must end in `yield`".to_string());
            };
            let want = types(f, values);
            params(f, *then, &[], "the first branch")?;
            params(f, *otherwise, &[], "the second branch")?;
            yields(f, *otherwise, &want, "the second branch")
        }
        TileOp::Reduce { inputs, body, .. } | TileOp::Scan { inputs, body, .. } => {
            let one: Vec<Type> =
                inputs.iter().map(|&v| f.ty(v).with_shape(Shape::SCALAR)).collect();
            let two = [one.clone(), one.clone()].concat();
            params(f, *body, &two, "the combine function")?;
            yields(f, *body, &one, "the combine function")?;
            isolated(f, *body)
        }
        TileOp::Map { inputs, pack, body } => {
            let scalar = |&v: &Value| f.ty(v).with_shape(Shape::SCALAR);
            let want: Vec<Type> = inputs.iter().flat_map(|v| vec![scalar(v); *pack]).collect();
            params(f, *body, &want, "the function")?;
            isolated(f, *body)
        }
        _ => Ok(()),
    }
}

/// The region uses only its own values and does nothing but compute.
fn isolated(f: &F, body: Block) -> Result<(), String> {
    let mut own: rustc_hash::FxHashSet<Value> = f.block_params(body).iter().copied().collect();
    let mut error = None;
    f.walk_block(body, &mut |inst| {
        let op = f.op(inst);
        if !op.fits_in_region() {
            error = Some(format!("a function of elements may not contain `{}`", op.name()));
        }
        op.each_block(&mut |b| own.extend(f.block_params(b)));
        own.extend(f.results(inst));
        op.each_value(&mut |v| {
            if !own.contains(&v) {
                error = Some(format!("the function uses {v} from outside"));
            }
        });
    });
    error.map_or(Ok(()), Err)
}
