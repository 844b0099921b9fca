//! Loop-invariant code motion.
//!
//! A pure op moves before the outermost loop in which its operands do not change. It moves out of
//! loops only: out of a branch it would be computed where it was not asked for. Loads stay, since a
//! write in the loop may change what they read, and so does what must not be read in a round that
//! never comes. What moves is computed once even where the loop has no round; pure ops have no faults.
//!
//! ```text
//!   depth of a region          0      1         2        3
//!                              { for { if      { for    { x = op … } } } }
//!   x with operands of depth 0 goes to depth 2, before the inner loop: the `if` holds it.
//! ```

use crate::structure::{Flow, Structured};
use naiad_ir::op::Effects;
use naiad_ir::{Block, Function, Inst, OpInfo};
use smallvec::SmallVec;

pub fn licm<D: Structured>(func: &mut Function<D>) {
    let entry = func.entry();
    let depths = vec![0; func.num_values()];
    Mover { func, depths, open: Vec::new() }.block(entry, false);
}

struct Mover<'a, D: Structured> {
    func: &'a mut Function<D>,
    /// How many regions stand around each value.
    depths: Vec<u32>,
    /// The blocks around the place where the walk is.
    open: Vec<OpenBlock>,
}

struct OpenBlock {
    /// The ops so far. The op whose region is walked comes after what moves out of it.
    insts: Vec<Inst>,
    /// The block's ops may move before the op whose region it is.
    leaves: bool,
}

impl<D: Structured> Mover<'_, D> {
    fn block(&mut self, block: Block, leaves: bool) {
        let depth = self.open.len() as u32;
        for &param in self.func.block_params(block) {
            self.depths[param.index()] = depth;
        }
        let list = self.func.take_insts(block);
        self.open.push(OpenBlock { insts: Vec::with_capacity(list.len()), leaves });
        for inst in list {
            self.inst(inst);
        }
        if let Some(done) = self.open.pop() {
            self.func.set_insts(block, done.insts);
        }
    }

    fn inst(&mut self, inst: Inst) {
        let op = self.func.op(inst);
        let (effects, flow, keeps) = (op.effects(), D::flow(op), D::keeps_invariants(op));
        let loops = matches!(flow, Flow::For { .. } | Flow::While { .. }) && !keeps;
        let mut blocks: SmallVec<[Block; 2]> = SmallVec::new();
        op.each_block(&mut |b| blocks.push(b));
        for b in blocks {
            self.block(b, loops);
        }
        let target = if effects == Effects::Pure { self.target(inst) } else { self.open.len() - 1 };
        for &result in self.func.results(inst) {
            self.depths[result.index()] = target as u32;
        }
        self.open[target].insts.push(inst);
    }

    /// The depth to which an op may move.
    fn target(&self, inst: Inst) -> usize {
        let mut least = 0;
        self.func.op(inst).each_value(&mut |v| least = least.max(self.depths[v.index()] as usize));
        let mut target = self.open.len() - 1;
        while target > least && self.open[target].leaves {
            target -= 1;
        }
        target
    }
}
