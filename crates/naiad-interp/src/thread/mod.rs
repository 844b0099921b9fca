//! An evaluator of Thread IR: one thread, op by op, lane by lane, with nothing clever in it.
//!
//! It is the oracle of whoever makes Thread IR or writes machine code from it. A value is the bit
//! images of its lanes; what functions compute is what [`naiad_ir::scalar`] says. Accesses go to the
//! process's own memory, as those of compiled code do.

mod memory;
mod ops;

use memory::Buffer;
use naiad_ir::op::OpInfo;
use naiad_ir::scalar::{BinaryFn, Predicate};
use naiad_ir::thread::{RuntimeFn, Thread, ThreadOp, ThreadType};
use naiad_ir::{Block, Function, Inst, Scalar, Value};
use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};

/// How a run ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// At `return`.
    Ended,
    /// At a guard.
    Failed { site: u32, values: Vec<i64> },
}

/// What a function of the runtime gives for its arguments.
pub type Runtime<'r> = &'r mut dyn FnMut(RuntimeFn, &[u64]) -> Vec<u64>;

/// Runs a verified function. `slots[i]` is the image of parameter `i`; bits beyond its type are
/// ignored.
///
/// # Panics
/// Where the function does not pass the verifier, or has ops of a GPU.
///
/// # Safety
/// The memory that the function then reads and writes may be read and written.
pub unsafe fn run(func: &Function<Thread>, slots: &[u64], runtime: Runtime<'_>) -> Outcome {
    let values = vec![Lanes::new(); func.num_values()];
    let mut thread = Evaluator { func, values, regs: FxHashMap::default(), runtime };
    for (&param, &image) in func.params().iter().zip(slots) {
        let elem = thread.vector(param).elem;
        thread.values[param.index()] = smallvec![image & ops::mask(elem)];
    }
    match thread.block(func.entry()) {
        Ok(_) => Outcome::Ended,
        Err(failed) => failed,
    }
}

/// Images of a value's lanes.
type Lanes = SmallVec<[u64; 4]>;

struct Evaluator<'a> {
    func: &'a Function<Thread>,
    values: Vec<Lanes>,
    regs: FxHashMap<Value, Vec<Lanes>>,
    runtime: Runtime<'a>,
}

impl Evaluator<'_> {
    fn get(&self, value: Value) -> &Lanes {
        &self.values[value.index()]
    }

    fn one(&self, value: Value) -> u64 {
        self.get(value)[0]
    }

    fn all(&self, values: &[Value]) -> Vec<Lanes> {
        values.iter().map(|&v| self.get(v).clone()).collect()
    }

    fn vector(&self, value: Value) -> naiad_ir::thread::Vector {
        let ThreadType::Vector(v) = self.func.ty(value) else { panic!("{value} is no vector") };
        v
    }

    fn scalar(&self, value: Value) -> Scalar {
        self.vector(value).elem.scalar().unwrap_or_else(|| panic!("{value} is no number"))
    }

    fn set(&mut self, values: &[Value], lanes: Vec<Lanes>) {
        for (&v, lanes) in values.iter().zip(lanes) {
            self.values[v.index()] = lanes;
        }
    }

    /// Runs the ops of a block; gives what its last one passes on.
    fn block(&mut self, block: Block) -> Result<Vec<Lanes>, Outcome> {
        let mut scratch = Vec::new();
        let mut passed = Vec::new();
        for &inst in self.func.insts(block) {
            passed = self.inst(inst, &mut scratch)?;
            let results = self.func.results(inst);
            if !results.is_empty() {
                self.set(results, std::mem::take(&mut passed));
            }
        }
        Ok(passed)
    }

    /// Runs an op; gives its results, or what it passes on.
    #[deny(clippy::wildcard_enum_match_arm)]
    fn inst(&mut self, inst: Inst, scratch: &mut Vec<Buffer>) -> Result<Vec<Lanes>, Outcome> {
        let op = self.func.op(inst);
        Ok(match op {
            ThreadOp::Const { .. }
            | ThreadOp::Iota { .. }
            | ThreadOp::Splat { .. }
            | ThreadOp::Extract { .. }
            | ThreadOp::Shuffle { .. }
            | ThreadOp::Any { .. }
            | ThreadOp::All { .. }
            | ThreadOp::Unary { .. }
            | ThreadOp::Binary { .. }
            | ThreadOp::Ternary { .. }
            | ThreadOp::Compare { .. }
            | ThreadOp::Select { .. }
            | ThreadOp::Cast { .. }
            | ThreadOp::Bitcast { .. }
            | ThreadOp::AddrAdd { .. } => vec![self.pure(op)],
            ThreadOp::Load { .. }
            | ThreadOp::Store { .. }
            | ThreadOp::Gather { .. }
            | ThreadOp::Scatter { .. }
            | ThreadOp::Atomic { .. }
            | ThreadOp::AtomicCas { .. }
            | ThreadOp::AtomicLoad { .. }
            | ThreadOp::AtomicStore { .. } => self.access(op).into_iter().collect(),
            ThreadOp::Regs { elem: _, lanes, count } => {
                let zeros = vec![smallvec![0; lanes.0 as usize]; *count as usize];
                self.regs.insert(self.func.results(inst)[0], zeros);
                vec![Lanes::new()]
            }
            ThreadOp::RegsGet { regs, index } => vec![self.regs[regs][*index as usize].clone()],
            ThreadOp::RegsSet { regs, value, index } => {
                let lanes = self.get(*value).clone();
                if let Some(registers) = self.regs.get_mut(regs) {
                    registers[*index as usize] = lanes;
                }
                vec![]
            }
            ThreadOp::Scratch { bytes, align: _ } => {
                scratch.push(Buffer::new(*bytes));
                vec![smallvec![scratch[scratch.len() - 1].address()]]
            }
            ThreadOp::RuntimeCall { f, args } => {
                let args: Vec<u64> = args.iter().map(|&a| self.one(a)).collect();
                (self.runtime)(*f, &args).into_iter().map(|r| smallvec![r]).collect()
            }
            ThreadOp::Guard { cond, site, values } => {
                if self.one(*cond) == 0 {
                    let values = values.iter().map(|&v| self.one(v) as i64).collect();
                    return Err(Outcome::Failed { site: site.0, values });
                }
                vec![]
            }
            ThreadOp::For { lower, upper, step, inits, body } => {
                return self.for_loop([*lower, *upper, *step], inits, *body);
            }
            ThreadOp::While { inits, before, after } => {
                let mut carried = self.all(inits);
                loop {
                    self.set(self.func.block_params(*before), carried);
                    let mut passed = self.block(*before)?;
                    if passed.pop().is_none_or(|cond| cond[0] == 0) {
                        return Ok(passed);
                    }
                    self.set(self.func.block_params(*after), passed);
                    carried = self.block(*after)?;
                }
            }
            ThreadOp::If { cond, then, otherwise } => {
                self.block(if self.one(*cond) == 0 { *otherwise } else { *then })?
            }
            ThreadOp::Yield { values } => self.all(values),
            // The condition goes last.
            ThreadOp::Condition { cond, values } => {
                let mut passed = self.all(values);
                passed.push(self.get(*cond).clone());
                passed
            }
            ThreadOp::Return {} => vec![],
            naiad_ir::gpu_op!() => panic!("one thread has no `{}`", op.name()),
        })
    }

    fn for_loop(
        &mut self,
        [lower, upper, step]: [Value; 3],
        inits: &[Value],
        body: Block,
    ) -> Result<Vec<Lanes>, Outcome> {
        let ty = self.scalar(lower);
        let unused = 64 - ty.bits();
        let signed = |image: u64| i128::from((image << unused) as i64 >> unused);
        let [mut at, end, step] = [lower, upper, step].map(|v| signed(self.one(v)));
        let mut carried = self.all(inits);
        while if step < 0 { at > end } else { at < end } {
            let params = self.func.block_params(body);
            self.set(&params[..1], vec![smallvec![at as u64 & ty.mask()]]);
            self.set(&params[1..], carried);
            carried = self.block(body)?;
            at += step;
        }
        Ok(carried)
    }
}

/// What functions and comparisons want of verified IR.
fn accepted<T>(result: Option<T>, f: impl std::fmt::Display, ty: Scalar) -> T {
    result.unwrap_or_else(|| panic!("`{f}` is not defined on {ty}"))
}

fn binary(f: BinaryFn, ty: Scalar, x: u64, y: u64) -> u64 {
    accepted(f.eval(ty, x, y), f, ty)
}

fn compare(p: Predicate, ty: Scalar, x: u64, y: u64) -> u64 {
    u64::from(accepted(p.eval(ty, x, y), p, ty))
}
