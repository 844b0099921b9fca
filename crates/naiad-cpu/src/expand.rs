//! Elementary functions as operations that the machine has.
//!
//! A function of the scalar table that no machine has an instruction for is replaced by what its row
//! says it is made of, so that compiled code computes the bits that the executors do. Everything
//! behind this pass meets only functions that [`is_native`].

use naiad_ir::op::OpInfo;
use naiad_ir::scalar::{BinaryFn, TernaryFn, UnaryFn};
use naiad_ir::thread::{Builder, Expand, Thread, ThreadElem, ThreadOp, Vector};
use naiad_ir::{Block, Function, Inst, Scalar, Value};
use rustc_hash::FxHashMap;
use std::borrow::Cow;

/// The function with native rows only; itself if there are no others.
pub fn expand(func: &Function<Thread>) -> Cow<'_, Function<Thread>> {
    let mut native = true;
    func.walk(&mut |inst| native &= is_native(func, func.op(inst)));
    if native {
        return Cow::Borrowed(func);
    }
    let mut builder = Builder::at_end(func.clone());
    let staging = builder.func.new_block();
    let mut pass = Pass { builder, staging, replaced: FxHashMap::default() };
    pass.block(func.entry());
    Cow::Owned(pass.builder.func)
}

/// Whether the op may stand in a function that is written: all but elementary functions of floats.
pub fn is_native(func: &Function<Thread>, op: &ThreadOp) -> bool {
    let is_int =
        |v: Value| func.ty(v).vector().and_then(|v| v.elem.scalar()).is_some_and(Scalar::is_int);
    match op {
        ThreadOp::Unary { f, x } => {
            use UnaryFn::{Abs, Ceil, Floor, Neg, Rint, Sqrt, SqrtRn, Trunc};
            matches!(f, Neg | Abs | Floor | Ceil | Trunc | Rint | Sqrt | SqrtRn) || is_int(*x)
        }
        ThreadOp::Binary { f, a, .. } => {
            use BinaryFn::{Add, Div, Mul, Sub};
            matches!(f, Add | Sub | Mul | Div) || is_int(*a)
        }
        ThreadOp::Ternary { f, a, .. } => matches!(f, TernaryFn::Fma) || is_int(*a),
        _ => true,
    }
}

struct Pass {
    builder: Builder,
    /// The block that expansions are made in before they are linked where they belong.
    staging: Block,
    replaced: FxHashMap<Value, Value>,
}

impl Pass {
    fn block(&mut self, block: Block) {
        let old = self.builder.func.insts(block).to_vec();
        let mut new = Vec::with_capacity(old.len());
        self.builder.enter(self.staging);
        for inst in old {
            let replaced = &self.replaced;
            self.builder.func.op_mut(inst).each_value_mut(&mut |v| {
                *v = replaced.get(v).copied().unwrap_or(*v);
            });
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

    /// The value that takes the place of the op's result, if it is not native.
    fn inst(&mut self, inst: Inst) -> Option<Value> {
        let func = &self.builder.func;
        let op = func.op(inst).clone();
        if is_native(func, &op) {
            return None;
        }
        let Vector { elem, lanes } = func.ty(func.results(inst)[0]).vector()?;
        self.builder.loc = func.loc(inst);
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
