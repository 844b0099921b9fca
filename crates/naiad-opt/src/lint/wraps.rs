//! Offsets in 32 bits that overflow for sizes which the source declares.
//!
//! Any product of two arguments may overflow, so what nothing is declared of is not looked at.

use super::Lint;
use crate::interval::Interval;
use crate::ranges::{Inputs, Ranges};
use naiad_diag::Id;
use naiad_ir::scalar::BinaryFn;
use naiad_ir::tile::TileOp;
use naiad_ir::{Inst, OpInfo, Scalar, Value};

pub fn check(lint: &mut Lint<'_>, declared: &Inputs) {
    if declared.grid.is_none() && declared.params.iter().all(|p| p.range.is_none()) {
        return;
    }
    let func = lint.func;
    let ranges = Ranges::new(func, declared);
    let mut seen = vec![false; func.num_values()];
    let mut pending: Vec<Value> = Vec::new();
    func.walk(&mut |inst| {
        if let TileOp::PtrAdd { offset, .. } = func.op(inst) {
            pending.push(*offset);
        }
    });
    while let Some(value) = pending.pop() {
        if std::mem::replace(&mut seen[value.index()], true) {
            continue;
        }
        let naiad_ir::function::Def::Result(inst, _) = func.def(value) else { continue };
        match func.op(inst) {
            TileOp::Load { .. } | TileOp::Compare { .. } => continue,
            &TileOp::Binary { f: f @ (BinaryFn::Add | BinaryFn::Sub | BinaryFn::Mul), a, b }
                if func.ty(value).elem.scalar() == Some(Scalar::I32) && ranges.may_wrap(value) =>
            {
                if is_declared(lint, a, declared)
                    && is_declared(lint, b, declared)
                    && let (Some(x), Some(y)) = (ranges.of(a), ranges.of(b))
                {
                    overflows(lint, inst, f, x, y);
                    continue;
                }
            }
            _ => {}
        }
        func.op(inst).each_value(&mut |v| pending.push(v));
    }
}

/// Whether everything that a number is made of has a range by declaration.
fn is_declared(lint: &Lint<'_>, value: Value, declared: &Inputs) -> bool {
    let func = lint.func;
    let mut seen = vec![false; func.num_values()];
    let mut pending = vec![value];
    while let Some(value) = pending.pop() {
        if std::mem::replace(&mut seen[value.index()], true) {
            continue;
        }
        let known = match func.defining_op(value) {
            None => {
                let param = func.params().iter().position(|&p| p == value);
                param.is_some_and(|i| declared.params.get(i).is_some_and(|p| p.range.is_some()))
            }
            Some(TileOp::ProgramId { .. } | TileOp::NumPrograms { .. }) => declared.grid.is_some(),
            Some(TileOp::Const { .. } | TileOp::Arange { .. }) => true,
            Some(op)
                if op.is_lanewise()
                    || super::masks::axis_behind(func, op, func.ty(value).shape).is_some() =>
            {
                op.each_value(&mut |v| pending.push(v));
                true
            }
            Some(_) => false,
        };
        if !known {
            return false;
        }
    }
    true
}

fn overflows(lint: &mut Lint<'_>, inst: Inst, f: BinaryFn, x: Interval, y: Interval) {
    let message = format!("kernel `{}`: an offset may wrap around in 32 bits", lint.func.name);
    let sign = match f {
        BinaryFn::Add => "+",
        BinaryFn::Sub => "-",
        _ => "*",
    };
    let label = format!(
        "up to {} {sign} {}, past {}",
        x.hi,
        if f == BinaryFn::Sub { y.lo } else { y.hi },
        i32::MAX
    );
    let d = lint.at(inst, Id::WrappedOffset, message, &label);
    let d = d
        .help("compute the offset in 64 bits: `tl.program_id(0).to(tl.int64)`, or cast the stride");
    lint.found(naiad_diag::Diagnostic { severity: naiad_diag::Severity::Warning, ..d });
}
