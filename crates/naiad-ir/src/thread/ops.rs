//! The table of Thread IR's ops, and the attributes that they carry.

use super::types::ThreadElem;
use super::{RuntimeFn, Thread, infer};
use crate::entities::{Block, Value};
use crate::op::{Attr, attr_enum, ops};
use crate::scalar::{BinaryFn, Predicate, Rounding, TernaryFn, UnaryFn};
use crate::tile::{AtomicOp, Constant, MemHints, Sem};
use smallvec::SmallVec;

ops! {
    /// An op of Thread IR.
    pub enum ThreadOp for Thread {
        // Values from nothing.
        /// A constant in every lane.
        "const" Const { value: Constant, lanes: Lanes } Pure => infer::constant;
        /// `0, 1, …, lanes - 1`.
        "iota" Iota { elem: ThreadElem, lanes: Lanes } Pure => infer::iota;

        // Lanes.
        /// A scalar in every lane.
        "splat" Splat { src: Value, lanes: Lanes } Pure => infer::splat;
        /// One lane.
        "extract" Extract { src: Value, lane: u32 } Pure => infer::extract;
        /// Lane `i` is lane `order[i]` of the first operand, or of the second, counted on from there.
        "shuffle" Shuffle { a: Value, b: Value, order: Permutation } Pure => infer::shuffle;
        /// Whether any lane is true.
        "any" Any { mask: Value } Pure => infer::any_all;
        /// Whether every lane is true.
        "all" All { mask: Value } Pure => infer::any_all;

        // Elementwise.
        /// A function of one number.
        "unary" Unary { f: UnaryFn, x: Value } Pure lanewise => infer::unary;
        /// A function of two numbers.
        "binary" Binary { f: BinaryFn, a: Value, b: Value } Pure lanewise => infer::binary;
        /// A function of three numbers.
        "ternary" Ternary { f: TernaryFn, a: Value, b: Value, c: Value } Pure lanewise => infer::ternary;
        /// A comparison; gives i1.
        "compare" Compare { p: Predicate, a: Value, b: Value } Pure lanewise => infer::compare;
        /// Lane by lane the second operand where the first is true, else the third.
        "select" Select { cond: Value, yes: Value, no: Value } Pure lanewise => infer::select;
        /// Conversion of numbers by value.
        "cast" Cast { src: Value, to: crate::Scalar, rounding: Rounding } Pure lanewise => infer::cast;
        /// The same bits as another element of the same width.
        "bitcast" Bitcast { src: Value, to: ThreadElem } Pure lanewise => infer::bitcast;
        /// Moves an address by a number of bytes, an i64.
        "addr_add" AddrAdd { addr: Value, offset: Value } Pure lanewise => infer::addr_add;

        // Memory.
        /// Reads consecutive lanes.
        "load" Load { addr: Value, disp: i64, elem: ThreadElem, lanes: Lanes, mask: Option<Value>, hints: MemHints } Reads => infer::load;
        /// Writes consecutive lanes.
        "store" Store { addr: Value, value: Value, disp: i64, mask: Option<Value>, hints: MemHints } Writes => infer::store;
        /// Reads a lane at each address.
        "gather" Gather { addr: Value, elem: ThreadElem, mask: Option<Value> } Reads => infer::gather;
        /// Writes a lane at each address, in the order of the lanes.
        "scatter" Scatter { addr: Value, value: Value, mask: Option<Value> } Writes => infer::scatter;
        /// Atomically replaces memory by a function of it and `value`; gives what was there before.
        "atomic" Atomic { f: AtomicOp, addr: Value, value: Value, sem: Sem } Writes => infer::atomic;
        /// Atomically stores `value` where memory equals `compare`; gives what was there before.
        "atomic_cas" AtomicCas { addr: Value, compare: Value, value: Value, sem: Sem } Writes => infer::atomic_cas;
        /// Atomically reads.
        "atomic_load" AtomicLoad { addr: Value, elem: ThreadElem, sem: Sem } Writes => infer::atomic_load;
        /// Atomically writes.
        "atomic_store" AtomicStore { addr: Value, value: Value, sem: Sem } Writes => infer::atomic_store;

        // Registers that are not SSA.
        /// An array of registers, all 0.
        "regs" Regs { elem: ThreadElem, lanes: Lanes, count: u32 } Stays => infer::regs;
        /// Reads a register.
        "regs_get" RegsGet { regs: Value, index: u32 } Reads => infer::regs_get;
        /// Writes a register.
        "regs_set" RegsSet { regs: Value, value: Value, index: u32 } Writes => infer::regs_set;

        // For a CPU.
        /// Memory for this block's time.
        "scratch" Scratch { bytes: usize, align: usize } Stays => infer::scratch;
        /// Calls a function of the runtime.
        "runtime_call" RuntimeCall { f: RuntimeFn, args: Vec<Value> } Writes => infer::runtime_call;
        /// Ends the run where the condition is false.
        "guard" Guard { cond: Value, site: Site, values: Vec<Value> } Writes => infer::guard;

        // Control flow.
        /// A counted loop.
        "for" For { lower: Value, upper: Value, step: Value, inits: Vec<Value>, body: Block } Control => infer::for_loop;
        /// A loop with its test in front.
        "while" While { inits: Vec<Value>, before: Block, after: Block } Control => infer::while_loop;
        /// One of two blocks.
        "if" If { cond: Value, then: Block, otherwise: Block } Control => infer::if_else;
        /// Ends a region with the values that it gives.
        "yield" Yield { values: Vec<Value> } Terminator => infer::nothing_of;
        /// Ends a `while`'s first block.
        "condition" Condition { cond: Value, values: Vec<Value> } Terminator => infer::condition;
        /// Ends the run.
        "return" Return {} Terminator => infer::nothing;
    }
}

attr_enum! {
    /// Families of ops that some targets lack.
    pub enum Capability {
        /// Every target has these.
        Core = "core",
        /// Scratch memory, calls of the runtime, guards.
        Cpu = "cpu",
    }
}

impl ThreadOp {
    /// What a target must have to run the op.
    pub fn capability(&self) -> Capability {
        match self {
            ThreadOp::Scratch { .. } | ThreadOp::RuntimeCall { .. } | ThreadOp::Guard { .. } => {
                Capability::Cpu
            }
            _ => Capability::Core,
        }
    }
}

/// A number of lanes; 1 is left out in text.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Lanes(pub u32);

impl Attr for Lanes {
    fn to_word(&self) -> String {
        self.0.to_string()
    }
    fn from_word(word: &str) -> Option<Lanes> {
        word.parse().ok().map(Lanes)
    }
    fn omitted() -> Option<Lanes> {
        Some(Lanes(1))
    }
}

impl Attr for ThreadElem {
    fn to_word(&self) -> String {
        self.to_string()
    }
    fn from_word(word: &str) -> Option<ThreadElem> {
        word.parse().ok()
    }
}

/// The place in the kernel that a guard speaks of: a number that its maker has a table for.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Site(pub u32);

impl Attr for Site {
    fn to_word(&self) -> String {
        self.0.to_string()
    }
    fn from_word(word: &str) -> Option<Site> {
        word.parse().ok().map(Site)
    }
}

/// Numbers of lanes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Permutation(pub SmallVec<[u32; 16]>);

impl Attr for Permutation {
    fn to_word(&self) -> String {
        let items: Vec<String> = self.0.iter().map(u32::to_string).collect();
        format!("({})", items.join(","))
    }
    fn from_word(word: &str) -> Option<Permutation> {
        let inner = word.strip_prefix('(')?.strip_suffix(')')?;
        let items = inner.split(',').filter(|s| !s.trim().is_empty());
        items.map(|s| s.trim().parse().ok()).collect::<Option<_>>().map(Permutation)
    }
}
