//! What the types of a Thread IR op do not show.
//!
//! - `for`: the body's parameters are the induction variable and the inits' types; its yield gives
//!   those types.
//! - `while`: the first block's parameters have the inits' types and it ends in `condition`; the
//!   second's have the types that `condition` passes, and its yield gives the inits' types.
//! - `if`: both blocks have no parameters and yield the same types.
//! - a register array is no value that loops or branches pass on.
//! - vectors of narrow floats are not computed with: that is in the ops' rows.

use super::{Thread, ThreadOp, ThreadType};
use crate::entities::{Block, Value};
use crate::function::Function;

type F = Function<Thread>;

fn types(f: &F, values: &[Value]) -> Vec<ThreadType> {
    values.iter().map(|&v| f.ty(v)).collect()
}

fn list(types: &[ThreadType]) -> String {
    let names: Vec<String> = types.iter().map(ThreadType::to_string).collect();
    format!("({})", names.join(", "))
}

fn same(have: &[ThreadType], want: &[ThreadType], what: &str) -> Result<(), String> {
    if let Some(regs) = want.iter().find(|t| matches!(t, ThreadType::Regs { .. })) {
        return Err(format!("{what}: {regs} cannot be passed on"));
    }
    if have == want {
        return Ok(());
    }
    Err(format!("{what} are {}, wants {}", list(have), list(want)))
}

fn params(f: &F, block: Block, want: &[ThreadType], what: &str) -> Result<(), String> {
    same(&types(f, f.block_params(block)), want, &format!("parameters of {what}"))
}

fn yields(f: &F, block: Block, want: &[ThreadType], what: &str) -> Result<(), String> {
    let Some(ThreadOp::Yield { values }) = f.terminator(block) else {
        return Err(format!("{what} must end in `yield`"));
    };
    same(&types(f, values), want, &format!("yields of {what}"))
}

pub(super) fn op(f: &F, op: &ThreadOp) -> Result<(), String> {
    match op {
        ThreadOp::For { lower, inits, body, .. } => {
            let carried = types(f, inits);
            let all = [&[f.ty(*lower)], &carried[..]].concat();
            params(f, *body, &all, "the loop's body")?;
            yields(f, *body, &carried, "the loop's body")
        }
        ThreadOp::While { inits, before, after } => {
            let carried = types(f, inits);
            params(f, *before, &carried, "the loop's test")?;
            let Some(ThreadOp::Condition { values, .. }) = f.terminator(*before) else {
                return Err("the loop's test must end in `condition`".to_string());
            };
            params(f, *after, &types(f, values), "the loop's body")?;
            yields(f, *after, &carried, "the loop's body")
        }
        ThreadOp::If { then, otherwise, .. } => {
            let Some(ThreadOp::Yield { values }) = f.terminator(*then) else {
                return Err("the first branch must end in `yield`".to_string());
            };
            let want = types(f, values);
            params(f, *then, &[], "the first branch")?;
            params(f, *otherwise, &[], "the second branch")?;
            yields(f, *otherwise, &want, "the second branch")
        }
        _ => Ok(()),
    }
}
