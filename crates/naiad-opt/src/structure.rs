//! What passes over any dialect need to know of its control flow.
//!
//! Both dialects have the same three control ops. How values flow through them:
//!
//! ```text
//!   for    inits[i]  -> params[i + 1] of the body (params[0] counts)
//!          yield[i]  -> params[i + 1] of the next round, or results[i] after the last
//!          inits[i]  -> results[i] where there is no round
//!   while  inits[i]  -> params[i] of the test
//!          passed[j] -> params[j] of the body, or results[j] where the condition is false
//!          yield[i]  -> params[i] of the test again
//!   if     yield[i] of the branch taken -> results[i]
//! ```
//!
//! Here `passed` is the list of the `condition` that ends a test. An op with regions that is none of
//! the three is [`Flow::Other`]; its regions are functions of their parameters.

use naiad_ir::thread::{Thread, ThreadOp};
use naiad_ir::tile::{Constant, Tile, TileOp};
use naiad_ir::{Block, Dialect, Function, Inst, OpInfo, Value};

/// The kind of an op with regions, and the regions.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Flow {
    /// No regions.
    Straight,
    For {
        body: Block,
    },
    While {
        before: Block,
        after: Block,
    },
    If {
        then: Block,
        otherwise: Block,
    },
    /// Regions that are functions of their parameters.
    Other,
}

/// Bounds of a `for`: lower, upper, step.
pub type Bounds = [Value; 3];

/// A dialect whose control ops passes may rewrite.
pub trait Structured: Dialect {
    fn flow(op: &Self::Op) -> Flow;

    /// Bounds of a `for`.
    fn bounds(op: &Self::Op) -> Option<Bounds>;

    /// The condition of an `if`, or of the `condition` that ends a test.
    fn condition(op: &Self::Op) -> Option<Value>;

    /// The initial values of a loop, or the values that a terminator passes on.
    fn passed(op: &Self::Op) -> &[Value];

    /// The same, to be edited.
    fn passed_mut(op: &mut Self::Op) -> Option<&mut Vec<Value>>;

    /// The constant that a scalar is.
    fn constant(func: &Function<Self>, value: Value) -> Option<Constant>;

    /// Whether the author asked that nothing be moved out of a loop.
    fn keeps_invariants(op: &Self::Op) -> bool;

    /// Whether a read may be left out where nobody uses what it reads. In Tile IR it may be the
    /// kernel's fault that a run has to report; in Thread IR that is a matter of guards.
    fn is_idle_read(op: &Self::Op) -> bool;

    /// The values that a block's terminator passes on.
    fn values_of_terminator(func: &Function<Self>, block: Block) -> &[Value] {
        func.terminator(block).map_or(&[], |op| Self::passed(op))
    }

    /// The terminator's list of a block, to be edited.
    fn terminator_values_mut(func: &mut Function<Self>, block: Block) -> Option<&mut Vec<Value>> {
        let last = *func.insts(block).last()?;
        Self::passed_mut(func.op_mut(last))
    }
}

/// Implements [`Structured`] for a dialect whose control ops have the common names and fields.
macro_rules! structured {
    ($Dialect:ident, $Op:ident, const $constant:pat => $value:expr, |$keeper:ident| $keeps:expr, |$read:ident| $idle:expr) => {
        impl Structured for $Dialect {
            fn flow(op: &$Op) -> Flow {
                match op {
                    $Op::For { body, .. } => Flow::For { body: *body },
                    $Op::While { before, after, .. } => {
                        Flow::While { before: *before, after: *after }
                    }
                    $Op::If { then, otherwise, .. } => {
                        Flow::If { then: *then, otherwise: *otherwise }
                    }
                    op => {
                        let mut flow = Flow::Straight;
                        op.each_block(&mut |_| flow = Flow::Other);
                        flow
                    }
                }
            }

            fn bounds(op: &$Op) -> Option<Bounds> {
                match op {
                    $Op::For { lower, upper, step, .. } => Some([*lower, *upper, *step]),
                    _ => None,
                }
            }

            fn condition(op: &$Op) -> Option<Value> {
                match op {
                    $Op::If { cond, .. } | $Op::Condition { cond, .. } => Some(*cond),
                    _ => None,
                }
            }

            fn passed(op: &$Op) -> &[Value] {
                match op {
                    $Op::For { inits: values, .. }
                    | $Op::While { inits: values, .. }
                    | $Op::Yield { values }
                    | $Op::Condition { values, .. } => values,
                    _ => &[],
                }
            }

            fn passed_mut(op: &mut $Op) -> Option<&mut Vec<Value>> {
                match op {
                    $Op::For { inits: values, .. }
                    | $Op::While { inits: values, .. }
                    | $Op::Yield { values }
                    | $Op::Condition { values, .. } => Some(values),
                    _ => None,
                }
            }

            fn constant(func: &Function<$Dialect>, value: Value) -> Option<Constant> {
                match func.defining_op(value) {
                    Some($constant) => Some($value),
                    _ => None,
                }
            }

            fn keeps_invariants($keeper: &$Op) -> bool {
                $keeps
            }

            fn is_idle_read($read: &$Op) -> bool {
                $idle
            }
        }
    };
}

structured!(
    Tile,
    TileOp,
    const TileOp::Const { value } => *value,
    |op| matches!(op, TileOp::For { hints, .. } if hints.disable_licm),
    |_op| false
);
structured!(
    Thread,
    ThreadOp,
    const ThreadOp::Const { value, .. } => *value,
    |_op| false,
    |op| match op {
        ThreadOp::Load { hints, .. } => !hints.volatile,
        ThreadOp::Gather { .. } | ThreadOp::RegsGet { .. } => true,
        _ => false,
    }
);

/// How often a `for` runs, where its bounds are constants. A step of 0, which is a fault of the
/// kernel when it runs, has no count.
pub fn trip_count<D: Structured>(func: &Function<D>, inst: Inst) -> Option<u128> {
    let bounds = D::bounds(func.op(inst))?;
    let number = |v: Value| D::constant(func, v).and_then(signed);
    let [_, _, Some(step)] = bounds.map(number) else { return None };
    if step == 0 {
        return None;
    }
    if bounds[0] == bounds[1] {
        return Some(0);
    }
    let (lower, upper) = (number(bounds[0])?, number(bounds[1])?);
    let distance = if step > 0 { upper - lower } else { lower - upper };
    Some(if distance <= 0 { 0 } else { distance.unsigned_abs().div_ceil(step.unsigned_abs()) })
}

/// A constant's bits as a signed number of its width, which is how loops compare.
pub fn signed(constant: Constant) -> Option<i128> {
    constant.as_int()?;
    let unused = 64 - constant.ty.bits();
    Some(i128::from((constant.bits << unused) as i64 >> unused))
}
