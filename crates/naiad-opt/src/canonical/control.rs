//! Loops and branches whose course is known, in any dialect.

use crate::rewrite::{Outcome, Rewriter};
use crate::structure::{Flow, Structured, trip_count};
use naiad_ir::Inst;
use smallvec::SmallVec;

pub(super) fn simplify<D: Structured>(r: &mut Rewriter<'_, D>, inst: Inst) -> Outcome {
    let op = r.func.op(inst);
    match D::flow(op) {
        Flow::For { body } => match trip_count(r.func, inst) {
            Some(0) => Outcome::Becomes(D::passed(op).into()),
            Some(1) => {
                let lower = D::bounds(op).map(|[lower, ..]| lower);
                Outcome::Inline(
                    body,
                    lower.into_iter().chain(D::passed(op).iter().copied()).collect(),
                )
            }
            _ => Outcome::Keep,
        },
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
