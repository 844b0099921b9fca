//! How programs share blocks.
//!
//! A program of small tiles takes one warp, and a block has several of them side by side. Where tiles are
//! smaller still a warp runs several programs at once: each op is made for all of them before the next, so
//! that all their loads are under way together. A block at the grid's end runs what is left one by one.

use super::{Lower, Lowered};
use naiad_ir::scalar::{BinaryFn, Predicate};
use naiad_ir::thread::{Lanes, ThreadOp};
use naiad_ir::tile::Constant;
use naiad_ir::{Def, Scalar, Value};
use rustc_hash::FxHashMap;

/// How programs share a block.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Sharing {
    /// Bits of the number of a warp within its program.
    pub warp_bits: u32,
    /// Programs of a block that run side by side; more than one only where each has one warp.
    pub side_by_side: u32,
    /// Programs that a warp runs at once.
    pub at_once: u32,
}

impl Sharing {
    /// Programs of a block.
    pub fn programs(self) -> u32 {
        self.side_by_side * self.at_once
    }

    /// Threads of a block.
    pub fn threads(self) -> u32 {
        (32 << self.warp_bits) * self.side_by_side
    }
}

impl Lower<'_> {
    /// The kernel's body, for each of the block's programs.
    pub fn all_programs(&mut self) -> Lowered<()> {
        let sharing = self.sharing;
        if sharing.programs() == 1 {
            return self.block(self.f.entry());
        }
        let (id, block, base) = (self.thread, self.program, self.shared);
        let slot = self.shift_right(id, 5);
        self.thread = self.and(id, 31);
        // How much memory each has is known at the end; the op is mended then.
        let unknown = Constant::int(Scalar::I32, 0);
        let stride = self.b.op(ThreadOp::Const { value: unknown, lanes: Lanes(1) });
        let offset = self.b.binary(BinaryFn::Mul, slot, stride);
        self.shared = self.b.binary(BinaryFn::Add, base, offset);
        let first = self.mul(block, i64::from(sharing.programs()));
        let first = self.add(first, slot);
        match sharing.at_once {
            1 => self.one_program(first)?,
            _ => self.programs_at_once(block, first)?,
        }
        self.bytes = self.bytes.next_multiple_of(128);
        if let Def::Result(inst, _) = self.b.func.def(stride) {
            let value = Constant::int(Scalar::I32, i128::from(self.bytes));
            *self.b.func.op_mut(inst) = ThreadOp::Const { value, lanes: Lanes(1) };
        }
        Ok(())
    }

    /// The body for a program, if there is one of that number.
    fn one_program(&mut self, program: Value) -> Lowered<()> {
        self.program = program;
        let exists = self.b.compare(Predicate::Lt, program, self.programs);
        let branch = self.b.begin_branch();
        self.block(self.f.entry())?;
        let then = self.b.end_branch(branch, vec![]);
        let branch = self.b.begin_branch();
        let otherwise = self.b.end_branch(branch, vec![]);
        self.b.run(ThreadOp::If { cond: exists, then, otherwise });
        Ok(())
    }

    fn programs_at_once(&mut self, block: Value, first: Value) -> Lowered<()> {
        let Sharing { side_by_side, at_once, .. } = self.sharing;
        let before = self.mul(block, i64::from(self.sharing.programs()));
        let left = self.b.binary(BinaryFn::Sub, self.programs, before);
        let all = self.i32(i64::from(self.sharing.programs()));
        let has_all = self.b.compare(Predicate::Ge, left, all);

        let branch = self.b.begin_branch();
        let params = self.values[0].clone();
        self.values.resize(at_once as usize, params.clone());
        let numbers: Vec<Value> =
            (0..at_once).map(|i| self.add_constant(first, i64::from(i * side_by_side))).collect();
        for &inst in self.f.insts(self.f.entry()) {
            for (which, &number) in numbers.iter().enumerate() {
                (self.which, self.program) = (which, number);
                self.inst(inst)?;
            }
        }
        let then = self.b.end_branch(branch, vec![]);

        let branch = self.b.begin_branch();
        self.which = 0;
        self.values[0] = params;
        let (zero, end, one) = (self.i32(0), self.i32(i64::from(at_once)), self.i32(1));
        self.in_use = super::room::InUse::ALL;
        let l = self.b.begin_for([zero, end, one], vec![]);
        let further = self.mul(l.iv, i64::from(side_by_side));
        let program = self.add(first, further);
        self.one_program(program)?;
        self.b.end_for(l, vec![]);
        let otherwise = self.b.end_branch(branch, vec![]);
        self.b.run(ThreadOp::If { cond: has_all, then, otherwise });
        Ok(())
    }

    /// The values of the program that is being made.
    pub fn known(&mut self) -> &mut FxHashMap<Value, super::Registers> {
        &mut self.values[self.which]
    }
}
