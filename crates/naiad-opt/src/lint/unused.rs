//! Masks and program ids that nothing uses.
//!
//! An op without uses may belong to a branch that these types and constants do not take. So the text is
//! asked as well: a name that stands in the function once, where it is assigned, is used nowhere.

use super::{Lint, assigned, function_text, occurrences};
use crate::ranges::Inputs;
use naiad_diag::Id;
use naiad_ir::scalar::BinaryFn;
use naiad_ir::tile::TileOp;
use naiad_ir::{Inst, OpInfo, Scalar};

pub fn check(lint: &mut Lint<'_>, declared: &Inputs) {
    let func = lint.func;
    let mut used = vec![false; func.num_values()];
    let (mut masks, mut ids, mut stores) = (Vec::new(), Vec::new(), Vec::new());
    let mut identified = false;
    func.walk(&mut |inst| {
        let op = func.op(inst);
        op.each_value(&mut |v| used[v.index()] = true);
        match op {
            TileOp::Compare { .. } | TileOp::Binary { f: BinaryFn::And | BinaryFn::Or, .. } => {
                masks.push(inst);
            }
            TileOp::ProgramId { .. } => {
                identified = true;
                ids.push(inst);
            }
            TileOp::Store { .. } => stores.push(inst),
            _ => {}
        }
    });
    let is_unused = |inst: Inst| func.results(inst).iter().all(|r| !used[r.index()]);
    for inst in masks.into_iter().filter(|&inst| is_unused(inst)) {
        let ty = func.ty(func.results(inst)[0]);
        if ty.elem.scalar() == Some(Scalar::I1) && !ty.is_scalar() {
            mask(lint, inst);
        }
    }
    for inst in ids.into_iter().filter(|&inst| is_unused(inst)) {
        program_id(lint, inst);
    }
    // A kernel may be made for one program.
    let several = declared.grid.is_some_and(|grid| grid.iter().any(|&n| n > 1));
    if let (false, true, Some(&store)) = (identified, several, stores.first()) {
        let message = format!("kernel `{}` never asks which program it is", func.name);
        let d = lint.at(
            store,
            Id::UnusedProgramId,
            message,
            "every program of a grid stores the same here",
        );
        lint.found(d.help("choose each program's part by `tl.program_id(0)`"));
    }
}

fn mask(lint: &mut Lint<'_>, inst: Inst) {
    let Some(place) = lint.place(inst) else { return };
    let Some(name) = assigned(&place) else { return };
    if occurrences(function_text(&place), name) != 1 {
        return;
    }
    let message =
        format!("kernel `{}` computes the mask `{name}` and does not use it", lint.func.name);
    let d = lint.at(inst, Id::UnusedMask, message, "nothing is masked by it");
    lint.found(d.help(format!("give it to the loads and stores that it is for: `mask={name}`")));
}

fn program_id(lint: &mut Lint<'_>, inst: Inst) {
    let TileOp::ProgramId { axis } = lint.func.op(inst) else { return };
    let Some(place) = lint.place(inst) else { return };
    let Some(name) = assigned(&place) else { return };
    if occurrences(function_text(&place), name) != 1 {
        return;
    }
    let message = format!("kernel `{}` does not use its program id `{name}`", lint.func.name);
    let label = format!("programs that differ along axis {axis} alone do the same");
    let d = lint.at(inst, Id::UnusedProgramId, message, &label);
    lint.found(d);
}
