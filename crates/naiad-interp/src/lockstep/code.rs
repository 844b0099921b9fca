//! A kernel made ready to run by a number of threads.

use super::BlockShape;
use super::mask::MAX_THREADS;
use super::values::{Layout, Slot};
use crate::fault::not_assembled;
use crate::loops::{self, Loop};
use naiad_diag::{Diagnostic, Id};
use naiad_ir::op::OpInfo;
use naiad_ir::ptx_asm::{Interface, Program};
use naiad_ir::scalar::{BinaryFn, UnaryFn};
use naiad_ir::thread::fragments::WARP;
use naiad_ir::thread::{Capability, NativeFn, Thread, ThreadOp, ThreadType, Vector};
use naiad_ir::{Function, Inst, Scalar, Value};
use std::sync::Arc;

/// What an op was looked up to.
pub enum Step {
    Nothing,
    /// An elementwise op.
    Loop(Loop),
    Asm(Box<Program>),
    /// Of an access to memory: whether all lanes are accessed at once.
    Whole(bool),
}

/// Everything that can be known of a kernel before a launch.
pub struct Code {
    pub(super) func: Arc<Function<Thread>>,
    pub(super) shape: BlockShape,
    pub(super) layout: Layout,
    /// Where values lie, by the value.
    slots: Vec<Slot>,
    /// By the op.
    steps: Vec<Step>,
    /// Bytes that every access to shared memory is a multiple of and aligned to.
    pub(super) granule: usize,
}

impl Code {
    /// Makes a verified function ready; says what of it cannot be run by threads of a block.
    pub fn new(func: Arc<Function<Thread>>, shape: BlockShape) -> Result<Code, Box<Diagnostic>> {
        let threads = shape.threads as usize;
        let fits = threads > 0 && threads <= MAX_THREADS && threads.is_multiple_of(WARP as usize);
        if !fits {
            let message =
                format!("a block has whole warps and up to {MAX_THREADS} threads, not {threads}");
            return Err(Box::new(Diagnostic::new(Id::Internal, message)));
        }
        let mut layout = Layout { threads, bytes: 0 };
        let slots = (0..func.num_values()).map(|i| layout.slot(func.ty(Value::new(i)))).collect();
        let mut steps: Vec<Step> = (0..func.num_insts()).map(|_| Step::Nothing).collect();
        let mut granule = 16;
        let (mut refused, wide) = (None, loops::wide());
        func.walk(&mut |inst| {
            match step(&func, inst, wide) {
                Ok(step) => steps[inst.index()] = step,
                Err(why) => refused = refused.take().or(Some(why)),
            }
            granule = granule.min(at_once(&func, func.op(inst)));
        });
        if let Some(why) = refused {
            return Err(why);
        }
        Ok(Code { func, shape, layout, slots, steps, granule })
    }

    pub fn func(&self) -> &Function<Thread> {
        &self.func
    }

    pub(super) fn slot(&self, value: Value) -> Slot {
        self.slots[value.index()]
    }

    pub(super) fn step(&self, inst: Inst) -> &Step {
        &self.steps[inst.index()]
    }

    pub(super) fn vector(&self, value: Value) -> Vector {
        match self.func.ty(value) {
            ThreadType::Vector(v) | ThreadType::Regs { of: v, .. } => v,
        }
    }

    /// The type of a number; an address counts as one of 64 bits.
    pub(super) fn scalar(&self, value: Value) -> Scalar {
        self.vector(value).elem.scalar().unwrap_or(Scalar::U64)
    }
}

fn step(func: &Function<Thread>, inst: Inst, wide: bool) -> Result<Step, Box<Diagnostic>> {
    let op = func.op(inst);
    let refused = |why: &str| {
        let message = format!("kernel `{}`: `{}` {why}", func.name, op.name());
        let report = Diagnostic::new(Id::Internal, message);
        Box::new(report.primary_at(&func.places, func.loc(inst), ""))
    };
    if op.capability() == Capability::Cpu {
        return Err(refused("is for a CPU"));
    }
    let elem = |v: Value| match func.ty(v) {
        ThreadType::Vector(v) | ThreadType::Regs { of: v, .. } => v.elem,
    };
    let ty = |v: Value| elem(v).scalar().unwrap_or(Scalar::U64);
    let found = match op {
        ThreadOp::Unary { f, x } => loops::unary(*f, ty(*x), wide),
        ThreadOp::Binary { f, a, .. } => loops::binary(*f, ty(*a), wide),
        ThreadOp::Ternary { f, a, .. } => loops::ternary(*f, ty(*a), wide),
        ThreadOp::Compare { p, a, .. } => loops::compare(*p, ty(*a), wide),
        ThreadOp::Select { yes, .. } => Some(loops::select(elem(*yes).size(), wide)),
        ThreadOp::AddrAdd { .. } => loops::binary(BinaryFn::Add, Scalar::I64, wide),
        ThreadOp::Native { f, .. } => native(*f, wide),
        ThreadOp::Load { mask, .. }
        | ThreadOp::Store { mask, .. }
        | ThreadOp::SharedLoad { mask, .. }
        | ThreadOp::SharedStore { mask, .. } => return Ok(Step::Whole(is_whole(func, mask))),
        ThreadOp::Asm { text, constraints, args, .. } => {
            let args: Vec<u32> = args.iter().map(|&v| elem(v).bits()).collect();
            let results: Vec<u32> = func.results(inst).iter().map(|&v| elem(v).bits()).collect();
            let interface = Interface { args: &args, results: &results, pack: 1 };
            return match Program::parse(&text.0, &constraints.0, &interface) {
                Ok(program) => Ok(Step::Asm(Box::new(program))),
                Err(refusal) => Err(not_assembled(func, inst, &refusal)),
            };
        }
        _ => return Ok(Step::Nothing),
    };
    found.map(Step::Loop).ok_or_else(|| refused("is not defined on its operands"))
}

/// The precise function in the place of the machine's.
fn native(f: NativeFn, wide: bool) -> Option<Loop> {
    let f = match f {
        NativeFn::Exp2 => UnaryFn::Exp2,
        NativeFn::Log2 => UnaryFn::Log2,
        NativeFn::Sin => UnaryFn::Sin,
        NativeFn::Cos => UnaryFn::Cos,
        NativeFn::Tanh => UnaryFn::Tanh,
        NativeFn::Rsqrt => UnaryFn::Rsqrt,
        NativeFn::Sqrt => UnaryFn::SqrtRn,
        // By way of a division: see `Exec::native`.
        NativeFn::Reciprocal | NativeFn::Div => {
            return loops::binary(BinaryFn::Div, Scalar::F32, wide);
        }
    };
    loops::unary(f, Scalar::F32, wide)
}

/// Whether a masked access is made as a whole: its mask is the same in all lanes by its form.
fn is_whole(func: &Function<Thread>, mask: &Option<Value>) -> bool {
    mask.is_none_or(|m| {
        func.ty(m) == ThreadType::BOOL
            || matches!(func.defining_op(m), Some(ThreadOp::Splat { .. } | ThreadOp::Const { .. }))
    })
}

/// Bytes of shared memory that an op accesses at once, at most 16.
fn at_once(func: &Function<Thread>, op: &ThreadOp) -> usize {
    let vector = |v: Vector, mask: &Option<Value>| {
        let lanes = if is_whole(func, mask) { v.lanes as usize } else { 1 };
        (v.elem.size() * lanes).min(16)
    };
    match op {
        ThreadOp::SharedLoad { elem, lanes, mask, .. } => vector(Vector::of(*elem, lanes.0), mask),
        ThreadOp::SharedStore { value, mask, .. } => match func.ty(*value) {
            ThreadType::Vector(v) | ThreadType::Regs { of: v, .. } => vector(v, mask),
        },
        ThreadOp::SharedAtomic { value, .. } => match func.ty(*value) {
            ThreadType::Vector(v) | ThreadType::Regs { of: v, .. } => v.elem.size(),
        },
        // A thread gets 4 bytes of a row.
        ThreadOp::LoadMatrix { .. } => 4,
        ThreadOp::AsyncCopy { bytes, .. } => *bytes as usize,
        _ => 16,
    }
}
