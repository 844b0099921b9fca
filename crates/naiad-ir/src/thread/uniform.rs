//! Which values are the same in all threads of a warp or of a block, and whether ops for all of them are
//! reached by all.
//!
//! For every bit of a value is known on what it may depend: on each of the five bits of a thread's number
//! in its warp (the *lane bits*), and on the warp.
//!
//! ```text
//!   %t = thread_id            bits 0 to 4: lane bits 0 to 4; bits 5 to 9: the warp
//!   %w = shr %t, 5            bits 0 to 4: the warp                       uniform in a warp
//!   %q = and %t, 3            bit 0: lane bit 0; bit 1: lane bit 1
//!   %o = shuffle.xor %x, 4    as %x
//!   %m = max %x, %o           as %x, but no more on lane bit 2, since both threads get the same
//! ```
//!
//! The last is how sums over a warp become uniform. What several threads load from one address is the same
//! for all: whether somebody writes it meanwhile is a race, which is another matter; only atomic and volatile
//! accesses are there to see such writes. A value that comes out of a branch or loop depends on what decided
//! the way.
//!
//! Checked by [`check`]:
//! - a `barrier` is not reached in dependence on a thread or warp;
//! - `warp_barrier`, `warp_shuffle`, `warp_vote`, `load_matrix`, `mma` are not reached in dependence on a
//!   thread within its warp.

use super::{ShuffleMode, Thread, ThreadOp, ThreadType};
use crate::entities::{Block, Inst, Value};
use crate::function::Function;
use crate::op::OpInfo;
use crate::scalar::BinaryFn;
use crate::types::Scalar;
use naiad_diag::{Diagnostic, Id};

/// For whom a value is the same.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Uniformity {
    /// Each thread may have its own.
    Thread,
    /// All threads of a warp have the same.
    Warp,
    /// All threads of a block have the same.
    Block,
}

/// What values depend on.
pub struct Uniform {
    of: Vec<Depends>,
}

/// A set of what a bit depends on: lane bits 0 to 4, and the warp's number.
type Set = u8;

const LANE_BITS: u32 = 5;
const LANES: Set = (1 << LANE_BITS) - 1;
const WARPS: Set = 1 << LANE_BITS;
const EVERYTHING: Set = LANES | WARPS;
/// Bits that a thread's number may have set: a block has up to 1024 threads.
const ID_BITS: usize = 10;

/// By the bit of the value's image; all lanes of a vector, or of a register array, are taken together.
#[derive(Copy, Clone, PartialEq, Eq)]
struct Depends([Set; 64]);

impl Uniform {
    pub fn new(func: &Function<Thread>) -> Uniform {
        let of = vec![Depends::NOTHING; func.num_values()];
        let mut walk = Walk { func, of, changed: true };
        // Sets only grow, so that this ends.
        while std::mem::take(&mut walk.changed) {
            walk.block(func.entry(), 0);
        }
        Uniform { of: walk.of }
    }

    pub fn of(&self, value: Value) -> Uniformity {
        level(self.of[value.index()].all())
    }
}

/// The first op for all threads of a block or warp that a part of them may reach, as a report of a fault
/// of ours.
pub fn check(func: &Function<Thread>) -> Result<(), Box<Diagnostic>> {
    let uniform = Uniform::new(func);
    check_block(func, &uniform, func.entry(), 0).map_err(|(inst, decides)| {
        let by = match level(decides) {
            Uniformity::Thread => "each thread",
            Uniformity::Warp | Uniformity::Block => "each warp",
        };
        let op = func.op(inst).name();
        let message = format!(
            "broken IR in `{}`: `{op}` is reached as {by} decides, and wants all of them",
            func.name
        );
        let report = Diagnostic::new(Id::Internal, message);
        Box::new(report.primary_at(&func.places, func.loc(inst), ""))
    })
}

fn check_block(
    func: &Function<Thread>,
    uniform: &Uniform,
    block: Block,
    decides: Set,
) -> Result<(), (Inst, Set)> {
    for &inst in func.insts(block) {
        let op = func.op(inst);
        let tolerates = match op {
            ThreadOp::Barrier {} | ThreadOp::BlockVote { .. } => 0,
            ThreadOp::WarpBarrier {}
            | ThreadOp::WarpShuffle { .. }
            | ThreadOp::WarpVote { .. }
            | ThreadOp::LoadMatrix { .. }
            | ThreadOp::Mma { .. } => WARPS,
            _ => EVERYTHING,
        };
        if decides & !tolerates != 0 {
            return Err((inst, decides));
        }
        let inside = decides | decided(func, op, &|v| uniform.of[v.index()].all());
        let mut checked = Ok(());
        op.each_block(&mut |b| {
            if checked.is_ok() {
                checked = check_block(func, uniform, b, inside);
            }
        });
        checked?;
    }
    Ok(())
}

fn level(set: Set) -> Uniformity {
    match set {
        0 => Uniformity::Block,
        WARPS => Uniformity::Warp,
        _ => Uniformity::Thread,
    }
}

/// What decides how often, or whether, an op's regions are run.
fn decided(func: &Function<Thread>, op: &ThreadOp, of: &dyn Fn(Value) -> Set) -> Set {
    match op {
        ThreadOp::If { cond, .. } => of(*cond),
        ThreadOp::For { lower, upper, step, .. } => of(*lower) | of(*upper) | of(*step),
        ThreadOp::While { before, .. } => match func.terminator(*before) {
            Some(ThreadOp::Condition { cond, .. }) => of(*cond),
            _ => EVERYTHING,
        },
        _ => 0,
    }
}

/// What a region passes on.
fn passed(func: &Function<Thread>, block: Block) -> &[Value] {
    match func.terminator(block) {
        Some(ThreadOp::Yield { values } | ThreadOp::Condition { values, .. }) => values,
        _ => &[],
    }
}

struct Walk<'f> {
    func: &'f Function<Thread>,
    of: Vec<Depends>,
    changed: bool,
}

impl Walk<'_> {
    fn of(&self, value: Value) -> Depends {
        self.of[value.index()]
    }

    fn add(&mut self, value: Value, more: Depends) {
        let of = &mut self.of[value.index()];
        let joined = of.join(more);
        self.changed |= *of != joined;
        *of = joined;
    }

    /// Passes values on, by a way that these things decide.
    fn pass(&mut self, from: &[Value], to: &[Value], decides: Set) {
        for (&from, &to) in from.iter().zip(to) {
            let mut more = self.of(from);
            more.0[..self.width(to)].iter_mut().for_each(|s| *s |= decides);
            self.add(to, more);
        }
    }

    fn width(&self, value: Value) -> usize {
        match self.func.ty(value) {
            ThreadType::Vector(v) | ThreadType::Regs { of: v, .. } => v.elem.bits() as usize,
        }
    }

    fn block(&mut self, block: Block, decides: Set) {
        for &inst in self.func.insts(block) {
            self.inst(inst, decides);
        }
    }

    fn inst(&mut self, inst: Inst, decides: Set) {
        let func = self.func;
        let (op, results) = (func.op(inst), func.results(inst));
        let inside = decides | decided(func, op, &|v| self.of(v).all());
        match op {
            ThreadOp::If { then, otherwise, cond } => {
                let by = self.of(*cond).all();
                for &block in [then, otherwise] {
                    self.block(block, inside);
                    self.pass(passed(func, block), results, by);
                }
            }
            ThreadOp::For { lower, step, inits, body, .. } => {
                // Threads that are in a round are in the same one.
                let (iv, carried) = func.block_params(*body).split_at(1);
                let counts = self.of(*lower).arithmetic(self.of(*step), self.width(iv[0]));
                self.add(iv[0], counts);
                self.pass(inits, carried, 0);
                self.block(*body, inside);
                self.pass(passed(func, *body), carried, 0);
                self.pass(carried, results, decided(func, op, &|v| self.of(v).all()));
            }
            ThreadOp::While { inits, before, after } => {
                let carried = func.block_params(*before);
                self.pass(inits, carried, 0);
                self.block(*before, inside);
                self.pass(passed(func, *before), func.block_params(*after), 0);
                self.block(*after, inside);
                self.pass(passed(func, *after), carried, 0);
                let by = decided(func, op, &|v| self.of(v).all());
                self.pass(passed(func, *before), results, by);
            }
            ThreadOp::RegsSet { regs, value, .. } => self.pass(&[*value], &[*regs], decides),
            _ => {
                for &result in results {
                    let mut more = self.value(op);
                    more.0[self.width(result)..].fill(0);
                    self.add(result, more);
                }
            }
        }
    }

    /// What the results of an op without regions depend on.
    fn value(&self, op: &ThreadOp) -> Depends {
        match op {
            ThreadOp::ThreadId {} => Depends(std::array::from_fn(|bit| match bit {
                0..ID_BITS if bit < LANE_BITS as usize => 1 << bit,
                0..ID_BITS => WARPS,
                _ => 0,
            })),
            ThreadOp::Splat { src, .. }
            | ThreadOp::Extract { src, .. }
            | ThreadOp::Bitcast { src, .. } => self.of(*src),
            ThreadOp::Shuffle { a, b, .. } => self.of(*a).join(self.of(*b)),
            ThreadOp::RegsGet { regs, .. } => self.of(*regs),
            ThreadOp::Pack { lanes } => {
                lanes.iter().fold(Depends::NOTHING, |all, &v| all.join(self.of(v)))
            }
            ThreadOp::Select { cond, yes, no } => {
                self.of(*yes).join(self.of(*no)).each(|s| s | self.of(*cond).all())
            }
            ThreadOp::Binary { f, a, b } => self.binary(*f, *a, *b),
            ThreadOp::AddrAdd { addr, offset } => self.of(*addr).arithmetic(self.of(*offset), 64),
            ThreadOp::Cast { src, to, .. } => self.cast(*src, *to),
            ThreadOp::WarpShuffle { mode, src, lane } => {
                let lane = self.of(*lane).all();
                match mode {
                    // Whatever the threads have, they all get that of one of them.
                    ShuffleMode::Index => {
                        self.of(*src).each(|s| if s == 0 { 0 } else { s & WARPS | lane })
                    }
                    // Of a value that some lane bits do not matter to, those of the other thread do not
                    // either, if the other differs in the same bits for all.
                    ShuffleMode::Xor => self.of(*src).each(|s| if s == 0 { 0 } else { s | lane }),
                    ShuffleMode::Up | ShuffleMode::Down => {
                        self.of(*src).each(|s| if s & LANES == 0 { s } else { EVERYTHING })
                    }
                }
            }
            ThreadOp::WarpVote { cond, .. } => {
                Depends::all_bits(if self.of(*cond).all() == 0 { 0 } else { WARPS })
            }
            ThreadOp::BlockVote { .. } => Depends::NOTHING,
            // Others may change what these see, or each thread changes it for the next.
            ThreadOp::Atomic { .. }
            | ThreadOp::AtomicCas { .. }
            | ThreadOp::AtomicLoad { .. }
            | ThreadOp::SharedAtomic { .. }
            | ThreadOp::LoadMatrix { .. }
            | ThreadOp::Mma { .. }
            | ThreadOp::Machine { .. }
            | ThreadOp::Asm { is_pure: false, .. } => Depends::all_bits(EVERYTHING),
            ThreadOp::Load { hints, .. } if hints.volatile => Depends::all_bits(EVERYTHING),
            // The rest are functions of their operands, or of what all threads see.
            _ => {
                let mut all = 0;
                op.each_value(&mut |v| all |= self.of(v).all());
                Depends::all_bits(all)
            }
        }
    }

    fn binary(&self, f: BinaryFn, a: Value, b: Value) -> Depends {
        let (x, y) = (self.of(a), self.of(b));
        let (known_a, known_b) = (self.known(a), self.known(b));
        let width = self.width(a);
        let by = known_b.filter(|&by| by < width as u64).map(|by| by as usize);
        let found = match (f, by) {
            (BinaryFn::And, _) => {
                let keeps = |known: Option<u64>, d: Depends| {
                    d.each_bit(|bit, s| if known.is_none_or(|k| k >> bit & 1 != 0) { s } else { 0 })
                };
                keeps(known_b, x).join(keeps(known_a, y))
            }
            (BinaryFn::Or | BinaryFn::Xor, _) => x.join(y),
            (BinaryFn::Shl, Some(by)) => x.up(by),
            (BinaryFn::Mul, Some(factor)) if factor.is_power_of_two() => {
                x.up(factor.trailing_zeros() as usize)
            }
            (BinaryFn::Shr, Some(by)) => x.down(by, width, self.is_signed(a)),
            (BinaryFn::Add | BinaryFn::Sub | BinaryFn::Mul, _) if self.is_int(a) => {
                x.arithmetic(y, width)
            }
            _ => Depends::all_bits(x.all() | y.all()),
        };
        // A function of the own value and of that of the thread on the other side of a lane bit.
        match self.partner(a, b).or_else(|| self.partner(b, a)) {
            Some(bit) if f.is_commutative() => Depends::all_bits(found.all() & !bit),
            _ => found,
        }
    }

    /// The lane bit by which `other` is `value` of another thread.
    fn partner(&self, value: Value, other: Value) -> Option<Set> {
        match self.func.defining_op(other)? {
            ThreadOp::WarpShuffle { mode: ShuffleMode::Xor, src, lane } if *src == value => {
                let by = self.known(*lane)?;
                (by < 32 && by.is_power_of_two()).then_some(by as Set)
            }
            _ => None,
        }
    }

    fn cast(&self, src: Value, to: Scalar) -> Depends {
        let from = self.of(src);
        if !self.is_int(src) || !to.is_int() || to.is_bool() {
            return Depends::all_bits(from.all());
        }
        let width = self.width(src);
        let sign = if self.is_signed(src) { from.0[width - 1] } else { 0 };
        from.each_bit(|bit, s| if bit < width { s } else { sign })
    }

    fn scalar(&self, value: Value) -> Option<Scalar> {
        self.func.ty(value).vector()?.elem.scalar()
    }

    fn is_int(&self, value: Value) -> bool {
        self.scalar(value).is_none_or(Scalar::is_int)
    }

    fn is_signed(&self, value: Value) -> bool {
        self.scalar(value).is_some_and(Scalar::is_signed)
    }

    /// The bits of a constant.
    fn known(&self, value: Value) -> Option<u64> {
        match self.func.defining_op(value)? {
            ThreadOp::Const { value, .. } => Some(value.bits),
            ThreadOp::Splat { src, .. } => self.known(*src),
            _ => None,
        }
    }
}

impl Depends {
    const NOTHING: Depends = Depends([0; 64]);

    const fn all_bits(set: Set) -> Depends {
        Depends([set; 64])
    }

    fn all(&self) -> Set {
        self.0.iter().fold(0, |all, s| all | s)
    }

    fn join(&self, other: Depends) -> Depends {
        self.each_bit(|bit, s| s | other.0[bit])
    }

    fn each(&self, f: impl Fn(Set) -> Set) -> Depends {
        Depends(self.0.map(f))
    }

    fn each_bit(&self, f: impl Fn(usize, Set) -> Set) -> Depends {
        Depends(std::array::from_fn(|bit| f(bit, self.0[bit])))
    }

    /// Shifted to higher bits.
    fn up(&self, by: usize) -> Depends {
        self.each_bit(|bit, _| if bit >= by { self.0[bit - by] } else { 0 })
    }

    /// Shifted to lower bits.
    fn down(&self, by: usize, width: usize, signed: bool) -> Depends {
        let above = if signed { self.0[width - 1] } else { 0 };
        self.each_bit(|bit, _| if bit + by < width { self.0[bit + by] } else { above })
    }

    /// Sums, differences and products: a bit depends on no higher ones.
    fn arithmetic(&self, other: Depends, width: usize) -> Depends {
        let both = self.join(other);
        let mut below = 0;
        let mut out = Depends::NOTHING;
        for bit in 0..width {
            below |= both.0[bit];
            out.0[bit] = below;
        }
        out
    }
}
