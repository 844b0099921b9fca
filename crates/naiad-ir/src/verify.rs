//! The verifier of any dialect. It runs after the front end and between passes in debug builds.
//!
//! Checked here, in this order, for each op in each linked block:
//! 1. every operand is defined earlier in the block or in one around it, and is linked;
//! 2. each op and each block is linked at one place only;
//! 3. an op that ends a block stands at its end, and every block has one;
//! 4. the result types are those that the op's row infers;
//! 5. what the dialect itself asks of the op ([`Dialect::verify_op`]).

use crate::entities::{Block, Inst};
use crate::function::Function;
use crate::op::{Dialect, OpInfo};
use naiad_diag::{Diagnostic, Id};

/// The first rule that is broken, as a report of a fault of ours.
pub fn verify<D: Dialect>(func: &Function<D>) -> Result<(), Box<Diagnostic>> {
    let mut v = Verifier {
        func,
        defined: vec![false; func.num_values()],
        inst_seen: vec![false; func.num_insts()],
        block_seen: vec![false; func.num_blocks()],
    };
    v.block(func.entry()).map_err(|(inst, message)| {
        let diagnostic =
            Diagnostic::new(Id::Internal, format!("broken IR in `{}`: {message}", func.name));
        Box::new(match inst {
            Some(inst) => diagnostic.primary_at(&func.places, func.loc(inst), ""),
            None => diagnostic,
        })
    })
}

struct Verifier<'a, D: Dialect> {
    func: &'a Function<D>,
    defined: Vec<bool>,
    inst_seen: Vec<bool>,
    block_seen: Vec<bool>,
}

type Checked = Result<(), (Option<Inst>, String)>;

impl<D: Dialect> Verifier<'_, D> {
    fn block(&mut self, block: Block) -> Checked {
        let func = self.func;
        if std::mem::replace(&mut self.block_seen[block.index()], true) {
            return Err((None, format!("{block} is a region of two ops")));
        }
        for &param in func.block_params(block) {
            self.defined[param.index()] = true;
        }
        let insts = func.insts(block);
        for (i, &inst) in insts.iter().enumerate() {
            let last = i + 1 == insts.len();
            self.inst(inst, last).map_err(|message| (Some(inst), message))?;
            let mut regions = Vec::new();
            func.op(inst).each_block(&mut |b| regions.push(b));
            for region in regions {
                self.block(region)?;
            }
            func.op(inst)
                .infer(func)
                .and_then(|types| {
                    let have: Vec<D::Type> =
                        func.results(inst).iter().map(|&r| func.ty(r)).collect();
                    if types.as_slice() == have.as_slice() {
                        D::verify_op(func, func.op(inst))
                    } else {
                        Err(format!("results have types {have:?}, should have {types:?}"))
                    }
                })
                .map_err(|m| (Some(inst), format!("{}: {m}", func.op(inst).name())))?;
            for &result in func.results(inst) {
                self.defined[result.index()] = true;
            }
        }
        if func.terminator(block).is_none() {
            return Err((insts.last().copied(), format!("{block} has no op that ends it")));
        }
        // What a block defines ends with it.
        for &inst in insts {
            for &result in func.results(inst) {
                self.defined[result.index()] = false;
            }
        }
        for &param in func.block_params(block) {
            self.defined[param.index()] = false;
        }
        Ok(())
    }

    fn inst(&mut self, inst: Inst, last: bool) -> Result<(), String> {
        let op = self.func.op(inst);
        if std::mem::replace(&mut self.inst_seen[inst.index()], true) {
            return Err(format!("`{}` is linked twice", op.name()));
        }
        if op.is_terminator() != last {
            return Err(format!("`{}` stands in the wrong place of its block", op.name()));
        }
        let mut error = Ok(());
        op.each_value(&mut |v| {
            if !self.defined.get(v.index()).copied().unwrap_or(false) {
                error = Err(format!("`{}` uses {v}, which is not defined before it", op.name()));
            }
        });
        error
    }
}
