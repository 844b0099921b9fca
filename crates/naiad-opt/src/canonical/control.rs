//! Loops and branches whose course is known, in any dialect.

use crate::rewrite::{Outcome, Rewriter};
use crate::structure::{Flow, Structured, trip_count};
use naiad_ir::Inst;
use smallvec::SmallVec;

pub(super) fn simplify<D: Structured>(r: &mut Rewriter<'_, D>, inst: Inst) -> Outcome {
    let op = r.func.op(inst);
    match D::flow(op) {
        Flow::For { .. } => {
            let rounds = trip_count(r.func, inst).and_then(|n| i128::try_from(n).ok());
            rounds.map_or(Outcome::Keep, |n| of_rounds::<D>(op, n))
        }
        Flow::If { then, otherwise } => {
            match D::condition(op).and_then(|c| D::constant(r.func, c)) {
                Some(c) => {
                    Outcome::Inline(if c.bits != 0 { then } else { otherwise }, SmallVec::new())
                }
                None => Outcome::Keep,
            }
        }
        Flow::While { before, .. } => {
            let condition = r.func.terminator(before).and_then(D::condition);
            match condition.and_then(|c| D::constant(r.func, c)) {
                Some(c) if c.bits == 0 => Outcome::Inline(before, D::passed(op).into()),
                _ => Outcome::Keep,
            }
        }
        Flow::Other | Flow::Straight => Outcome::Keep,
    }
}

/// What becomes of a `for` of so many rounds.
pub(super) fn of_rounds<D: Structured>(op: &D::Op, rounds: i128) -> Outcome {
    match (rounds, D::flow(op), D::bounds(op)) {
        (0, ..) => Outcome::Becomes(D::passed(op).into()),
        (1, Flow::For { body }, Some([lower, ..])) => {
            let arguments = [lower].into_iter().chain(D::passed(op).iter().copied());
            Outcome::Inline(body, arguments.collect())
        }
        _ => Outcome::Keep,
    }
}
