//! Loads as early as they can be, so that memory answers while something else is computed.
//!
//! Between two ops that other ops may not pass (stores, atomics, barriers, control flow) the loads whose
//! addresses and masks need nothing but arithmetic go first, with that arithmetic. They then hold
//! registers for longer: where all of them together would take many, nothing is moved.

use naiad_ir::op::{Effects, OpInfo};
use naiad_ir::tile::{Tile, TileOp};
use naiad_ir::{Block, Def, Function, Inst, Value};
use rustc_hash::FxHashSet;

/// Bytes of a thread that loads may wait in.
const MOST_BYTES: usize = 256;

/// Moves loads up, in every block; a program has so many threads.
pub fn hoist(func: &mut Function<Tile>, threads: usize) {
    let mut blocks = vec![func.entry()];
    while let Some(block) = blocks.pop() {
        for &inst in func.insts(block) {
            let op = func.op(inst);
            if !op.is_isolated() {
                op.each_block(&mut |b| blocks.push(b));
            }
        }
        within(func, block, threads);
    }
}

fn within(func: &mut Function<Tile>, block: Block, threads: usize) {
    let old = func.take_insts(block);
    let mut new = Vec::with_capacity(old.len());
    let is_wall = |inst: &Inst| {
        !matches!(func.op(*inst).effects(), Effects::Pure | Effects::Reads)
            || is_volatile(func, *inst)
    };
    for part in old.split_inclusive(|inst| is_wall(inst)) {
        let (body, wall) = match part.split_last() {
            Some((last, rest)) if is_wall(last) => (rest, Some(*last)),
            _ => (part, None),
        };
        let early = early(func, body, threads);
        new.extend(body.iter().copied().filter(|inst| early.contains(inst)));
        new.extend(body.iter().copied().filter(|inst| !early.contains(inst)));
        new.extend(wall);
    }
    func.set_insts(block, new);
}

fn is_volatile(func: &Function<Tile>, inst: Inst) -> bool {
    matches!(func.op(inst), TileOp::Load { hints, .. } if hints.volatile)
}

/// The loads that may go first, and what they need.
fn early(func: &Function<Tile>, body: &[Inst], threads: usize) -> FxHashSet<Inst> {
    let here: FxHashSet<Inst> = body.iter().copied().collect();
    let mut early: FxHashSet<Inst> = FxHashSet::default();
    let mut bytes = 0;
    for &inst in body {
        let TileOp::Load { .. } = func.op(inst) else { continue };
        let mut needed: FxHashSet<Inst> = FxHashSet::default();
        let mut work = vec![inst];
        let mut only_arithmetic = true;
        while let Some(next) = work.pop() {
            if !needed.insert(next) {
                continue;
            }
            func.op(next).each_value(&mut |v: Value| {
                if let Def::Result(by, _) = func.def(v)
                    && here.contains(&by)
                {
                    let mut has_region = false;
                    func.op(by).each_block(&mut |_| has_region = true);
                    only_arithmetic &= func.op(by).effects() == Effects::Pure && !has_region;
                    only_arithmetic &= !matches!(func.op(by), TileOp::Dot { .. });
                    work.push(by);
                }
            });
        }
        if only_arithmetic {
            let ty = func.ty(func.results(inst)[0]);
            let size = ty.elem.scalar().map_or(8, naiad_ir::Scalar::size);
            bytes += (ty.shape.numel() * size).div_ceil(threads);
            early.extend(needed);
        }
    }
    if bytes > MOST_BYTES { FxHashSet::default() } else { early }
}
