//! Ops that a machine lacks, as ops that it has.
//!
//! A function of the scalar table that a target has no instruction for is replaced by what its row
//! says it is made of, and a conversion by the steps of [`super::convert`], so that compiled code
//! computes the bits that the executors do. A float that is printed is widened to fp64. Which ops a
//! target has is its own table: behind this pass its writer meets no others.

use super::convert;
use super::{Builder, Expand, Thread, ThreadElem, ThreadOp, Vector};
use crate::entities::{Block, Inst, Value};
use crate::function::Function;
use crate::op::OpInfo;
use crate::scalar::Rounding;
use crate::types::Scalar;
use rustc_hash::FxHashMap;
use std::borrow::Cow;

/// Whether a target has the op, which stands in the function or may be put there. It is asked of
/// functions of numbers, of conversions and of prints only.
pub type IsNative<'a> = &'a dyn Fn(&Function<Thread>, &ThreadOp) -> bool;

/// The function with native ops only; itself if there are no others.
pub fn expand<'f>(func: &'f Function<Thread>, is_native: IsNative) -> Cow<'f, Function<Thread>> {
    let mut native = true;
    func.walk(&mut |inst| native &= stays(func, func.op(inst), is_native));
    if native {
        return Cow::Borrowed(func);
    }
    let mut builder = Builder::at_end(func.clone());
    let staging = builder.func.new_block();
    let mut pass = Pass { builder, is_native, staging, replaced: FxHashMap::default() };
    pass.block(func.entry());
    Cow::Owned(pass.builder.func)
}

fn stays(func: &Function<Thread>, op: &ThreadOp, is_native: IsNative) -> bool {
    match op {
        ThreadOp::Unary { .. }
        | ThreadOp::Binary { .. }
        | ThreadOp::Ternary { .. }
        | ThreadOp::Cast { .. }
        | ThreadOp::Print { .. } => is_native(func, op),
        _ => true,
    }
}

struct Pass<'n> {
    builder: Builder,
    is_native: IsNative<'n>,
    /// The block that expansions are made in before they are linked where they belong.
    staging: Block,
    replaced: FxHashMap<Value, Value>,
}

impl Pass<'_> {
    fn block(&mut self, block: Block) {
        let old = self.builder.func.insts(block).to_vec();
        let mut new = Vec::with_capacity(old.len());
        self.builder.enter(self.staging);
        for inst in old {
            let replaced = &self.replaced;
            self.builder.func.op_mut(inst).each_value_mut(&mut |v| {
                *v = replaced.get(v).copied().unwrap_or(*v);
            });
            if self.widens_print(inst) {
                new.extend_from_slice(self.builder.func.insts(self.staging));
                self.builder.func.set_insts(self.staging, Vec::new());
                new.push(inst);
                continue;
            }
            if let Some(value) = self.inst(inst) {
                self.replaced.insert(self.builder.func.results(inst)[0], value);
                new.extend_from_slice(self.builder.func.insts(self.staging));
                self.builder.func.set_insts(self.staging, Vec::new());
                continue;
            }
            new.push(inst);
            let mut regions = Vec::new();
            self.builder.func.op(inst).each_block(&mut |b| regions.push(b));
            for &region in &regions {
                self.block(region);
            }
            if !regions.is_empty() {
                // Constants made in a region are not seen behind it.
                self.builder.enter(self.staging);
            }
        }
        self.builder.func.set_insts(block, new);
    }

    /// Has a print show its float in fp64, where the target prints no narrower ones.
    fn widens_print(&mut self, inst: Inst) -> bool {
        let func = &self.builder.func;
        let op = func.op(inst);
        let ThreadOp::Print { value: Some(src), .. } = *op else { return false };
        if stays(func, op, self.is_native) {
            return false;
        }
        self.builder.loc = func.loc(inst);
        let (to, rounding) = (Scalar::F64, Rounding::Nearest);
        let wide = convert::cast(&mut self.builder, self.is_native, src, to, rounding);
        if let ThreadOp::Print { value, .. } = self.builder.func.op_mut(inst) {
            *value = wide.or(*value);
        }
        true
    }

    /// The value that takes the place of the op's result, if it is not native.
    fn inst(&mut self, inst: Inst) -> Option<Value> {
        let func = &self.builder.func;
        let op = func.op(inst).clone();
        if stays(func, &op, self.is_native) {
            return None;
        }
        let Vector { elem, lanes } = func.ty(func.results(inst)[0]).vector()?;
        self.builder.loc = func.loc(inst);
        if let ThreadOp::Cast { src, to, rounding } = op {
            return convert::cast(&mut self.builder, self.is_native, src, to, rounding);
        }
        if elem == ThreadElem::Scalar(Scalar::F64) {
            made_of(&mut Expand::<64> { builder: &mut self.builder, lanes }, &op)
        } else {
            made_of(&mut Expand::<32> { builder: &mut self.builder, lanes }, &op)
        }
    }
}

fn made_of<const BITS: u32>(b: &mut Expand<'_, BITS>, op: &ThreadOp) -> Option<Value> {
    match *op {
        ThreadOp::Unary { f, x } => f.expand(b, (x,)),
        ThreadOp::Binary { f, a, b: y } => f.expand(b, (a, y)),
        ThreadOp::Ternary { f, a, b: y, c } => f.expand(b, (a, y, c)),
        _ => None,
    }
}
