//! A function in SSA form, whatever its dialect.
//!
//! Control flow is structured: an op's regions are single blocks, so "is defined before" is "stands
//! earlier in this block or in one around it". Blocks and ops are never freed one by one; a pass
//! unlinks what it drops.

use crate::entities::{Block, Inst, Value};
use crate::op::{Dialect, OpInfo};
use naiad_diag::{Loc, Places};
use smallvec::SmallVec;

/// Where a value comes from.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Def {
    Result(Inst, u32),
    Param(Block, u32),
}

#[derive(Clone, PartialEq, Debug)]
struct ValueData<T> {
    ty: T,
    def: Def,
}

#[derive(Clone, PartialEq, Debug)]
struct InstData<D: Dialect> {
    op: D::Op,
    results: SmallVec<[Value; 1]>,
    loc: Loc,
}

#[derive(Clone, PartialEq, Debug, Default)]
struct BlockData {
    params: Vec<Value>,
    insts: Vec<Inst>,
}

/// One kernel.
#[derive(Clone, PartialEq, Debug)]
pub struct Function<D: Dialect> {
    pub name: String,
    /// Names of the parameters, which are the values of the entry block's.
    pub param_names: Vec<String>,
    pub places: Places,
    values: Vec<ValueData<D::Type>>,
    insts: Vec<InstData<D>>,
    blocks: Vec<BlockData>,
}

impl<D: Dialect> Function<D> {
    pub fn new(name: impl Into<String>) -> Function<D> {
        Function {
            name: name.into(),
            param_names: Vec::new(),
            places: Places::default(),
            values: Vec::new(),
            insts: Vec::new(),
            blocks: vec![BlockData::default()],
        }
    }

    /// The block at which the function starts.
    pub fn entry(&self) -> Block {
        Block::new(0)
    }

    pub fn params(&self) -> &[Value] {
        self.block_params(self.entry())
    }

    pub fn add_param(&mut self, name: impl Into<String>, ty: D::Type) -> Value {
        self.param_names.push(name.into());
        self.add_block_param(self.entry(), ty)
    }

    pub fn new_block(&mut self) -> Block {
        self.blocks.push(BlockData::default());
        Block::new(self.blocks.len() - 1)
    }

    pub fn add_block_param(&mut self, block: Block, ty: D::Type) -> Value {
        let index = self.blocks[block.index()].params.len() as u32;
        let value = self.new_value(ty, Def::Param(block, index));
        self.blocks[block.index()].params.push(value);
        value
    }

    /// Appends an op; its result types are inferred.
    pub fn push(&mut self, block: Block, op: D::Op, loc: Loc) -> Result<Inst, String> {
        let inst = self.create(op, loc)?;
        self.blocks[block.index()].insts.push(inst);
        Ok(inst)
    }

    /// Makes an op that stands nowhere yet; its result types are inferred.
    pub fn create(&mut self, op: D::Op, loc: Loc) -> Result<Inst, String> {
        let types = op.infer(self)?;
        let inst = Inst::new(self.insts.len());
        let results = types
            .into_iter()
            .enumerate()
            .map(|(i, ty)| self.new_value(ty, Def::Result(inst, i as u32)))
            .collect();
        self.insts.push(InstData { op, results, loc });
        Ok(inst)
    }

    fn new_value(&mut self, ty: D::Type, def: Def) -> Value {
        self.values.push(ValueData { ty, def });
        Value::new(self.values.len() - 1)
    }

    pub fn ty(&self, value: Value) -> D::Type {
        self.values[value.index()].ty
    }

    pub fn def(&self, value: Value) -> Def {
        self.values[value.index()].def
    }

    /// The op that made `value`; none for a parameter of a block.
    pub fn defining_op(&self, value: Value) -> Option<&D::Op> {
        match self.def(value) {
            Def::Result(inst, _) => Some(self.op(inst)),
            Def::Param(..) => None,
        }
    }

    pub fn op(&self, inst: Inst) -> &D::Op {
        &self.insts[inst.index()].op
    }

    pub fn op_mut(&mut self, inst: Inst) -> &mut D::Op {
        &mut self.insts[inst.index()].op
    }

    pub fn loc(&self, inst: Inst) -> Loc {
        self.insts[inst.index()].loc
    }

    pub fn results(&self, inst: Inst) -> &[Value] {
        &self.insts[inst.index()].results
    }

    pub fn insts(&self, block: Block) -> &[Inst] {
        &self.blocks[block.index()].insts
    }

    /// Replaces a block's list of ops, which is how passes drop and move ops.
    pub fn set_insts(&mut self, block: Block, insts: Vec<Inst>) {
        self.blocks[block.index()].insts = insts;
    }

    /// Takes a block's list of ops out.
    pub fn take_insts(&mut self, block: Block) -> Vec<Inst> {
        std::mem::take(&mut self.blocks[block.index()].insts)
    }

    /// Gives an op one more result, for a pass that adds a carried value.
    pub fn add_result(&mut self, inst: Inst, ty: D::Type) -> Value {
        let index = self.results(inst).len() as u32;
        let value = self.new_value(ty, Def::Result(inst, index));
        self.insts[inst.index()].results.push(value);
        value
    }

    /// Drops the results whose positions `keep` refuses.
    pub fn retain_results(&mut self, inst: Inst, mut keep: impl FnMut(usize) -> bool) {
        let mut results = std::mem::take(&mut self.insts[inst.index()].results);
        let mut at = 0;
        results.retain(|_| {
            at += 1;
            keep(at - 1)
        });
        for (i, &value) in results.iter().enumerate() {
            self.values[value.index()].def = Def::Result(inst, i as u32);
        }
        self.insts[inst.index()].results = results;
    }

    /// Drops the parameters whose positions `keep` refuses.
    pub fn retain_block_params(&mut self, block: Block, mut keep: impl FnMut(usize) -> bool) {
        let mut params = std::mem::take(&mut self.blocks[block.index()].params);
        let mut at = 0;
        params.retain(|_| {
            at += 1;
            keep(at - 1)
        });
        for (i, &value) in params.iter().enumerate() {
            self.values[value.index()].def = Def::Param(block, i as u32);
        }
        self.blocks[block.index()].params = params;
    }

    pub fn block_params(&self, block: Block) -> &[Value] {
        &self.blocks[block.index()].params
    }

    pub fn terminator(&self, block: Block) -> Option<&D::Op> {
        self.insts(block).last().map(|&i| self.op(i)).filter(|op| op.is_terminator())
    }

    pub fn num_values(&self) -> usize {
        self.values.len()
    }

    pub fn num_insts(&self) -> usize {
        self.insts.len()
    }

    pub fn num_blocks(&self) -> usize {
        self.blocks.len()
    }

    /// Calls `f` with every linked op, outer ops before those in their regions.
    pub fn walk(&self, f: &mut dyn FnMut(Inst)) {
        self.walk_block(self.entry(), f);
    }

    pub fn walk_block(&self, block: Block, f: &mut dyn FnMut(Inst)) {
        for &inst in self.insts(block) {
            f(inst);
            self.op(inst).each_block(&mut |b| self.walk_block(b, f));
        }
    }
}
