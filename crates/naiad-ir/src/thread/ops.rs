//! The table of Thread IR's ops, and the attributes that they carry.

use super::types::ThreadElem;
use super::{RuntimeFn, Thread, infer};
use crate::entities::{Block, Value};
use crate::op::{Attr, attr_enum, ops};
use crate::scalar::{BinaryFn, Predicate, Rounding, TernaryFn, UnaryFn};
use crate::tile::{AtomicOp, Constant, MachineFact, MemHints, Scalars, Scope, Sem, Text};
use crate::types::Type;
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
        "atomic" Atomic { f: AtomicOp, addr: Value, value: Value, sem: Sem, scope: Scope } Writes => infer::atomic;
        /// Atomically stores `value` where memory equals `compare`; gives what was there before.
        "atomic_cas" AtomicCas { addr: Value, compare: Value, value: Value, sem: Sem, scope: Scope } Writes => infer::atomic_cas;
        /// Atomically reads.
        "atomic_load" AtomicLoad { addr: Value, elem: ThreadElem, sem: Sem, scope: Scope } Writes => infer::atomic_load;
        /// Atomically writes.
        "atomic_store" AtomicStore { addr: Value, value: Value, sem: Sem, scope: Scope } Writes => infer::atomic_store;

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

        // For a GPU: where a thread is.
        /// The thread's number in its block, as i32.
        "thread_id" ThreadId {} Pure => infer::thread_id;
        /// The block's number along a grid axis, as i32.
        "block_id" BlockId { axis: u32 } Pure => infer::grid_axis;
        /// The grid's extent in blocks along an axis, as i32.
        "num_blocks" NumBlocks { axis: u32 } Pure => infer::grid_axis;

        // For a GPU: memory that a block's threads share. Its addresses are i32.
        /// Where the block's shared memory begins.
        "shared_base" SharedBase {} Pure => infer::thread_id;
        /// Reads consecutive lanes of shared memory.
        "shared_load" SharedLoad { at: Value, disp: i64, elem: ThreadElem, lanes: Lanes, mask: Option<Value> } Reads => infer::shared_load;
        /// Writes consecutive lanes of shared memory.
        "shared_store" SharedStore { at: Value, value: Value, disp: i64, mask: Option<Value> } Writes => infer::shared_store;
        /// Atomically replaces shared memory by a function of it and `value`; gives what was there.
        "shared_atomic" SharedAtomic { f: AtomicOp, at: Value, value: Value } Writes => infer::shared_atomic;
        /// Waits for all threads of the block; what they wrote before is seen behind it.
        "barrier" Barrier {} Writes => infer::nothing;
        /// A `barrier` at which all threads learn whether any, or every one, of them passes true.
        "block_vote" BlockVote { mode: VoteMode, cond: Value } Writes => infer::warp_vote;
        /// A barrier for the threads of a warp.
        "warp_barrier" WarpBarrier {} Writes => infer::nothing;
        /// Begins to copy `bytes` (4, 8 or 16) from memory to shared memory; where the mask is false
        /// zeros are written and nothing is read. Done at the `async_wait` for its group.
        "async_copy" AsyncCopy { at: Value, addr: Value, disp: i64, bytes: u32, mask: Option<Value> } Writes => infer::async_copy;
        /// Closes the thread's group of copies begun.
        "async_commit" AsyncCommit {} Writes => infer::nothing;
        /// Waits until at most `pending` of the thread's groups are not done.
        "async_wait" AsyncWait { pending: u32 } Writes => infer::async_wait;

        // For a GPU: the 32 threads of a warp together. All of them must come here together.
        /// The value that another thread of the warp passes: the one whose number `lane` has in its five
        /// low bits, or of the own number xor, plus or minus `lane` (its own if there is no such thread),
        /// which is then 0 to 31.
        "warp_shuffle" WarpShuffle { mode: ShuffleMode, src: Value, lane: Value } Stays => infer::warp_shuffle;
        /// Whether any, or every, thread of the warp passes true.
        "warp_vote" WarpVote { mode: VoteMode, cond: Value } Stays => infer::warp_vote;
        /// Four lanes of 32 bits out of 8 x 8 tiles of 16-bit elements: thread `8 j + i` passes where
        /// row `i` of tile `j` begins, and result `j` has of tile `j` row `thread / 4` the elements
        /// `2 (thread % 4)` and the next; of the transposed tile if `transposed`.
        "load_matrix" LoadMatrix { at: Value, disp: i64, count: u32, transposed: bool } Reads => infer::load_matrix;
        /// `c + a b` of the table [`MmaKind`]; fragments are those of PTX's `mma.sync`.
        "mma" Mma { kind: MmaKind, a: Vec<Value>, b: Vec<Value>, c: Vec<Value> } Stays => infer::mma;

        // For a GPU: the rest.
        /// A vector of scalars.
        "pack" Pack { lanes: Vec<Value> } Pure => infer::pack;
        /// A function as fast as the machine has it, in about the accuracy of fp32.
        "native" Native { f: NativeFn, args: Vec<Value> } Pure => infer::native;
        /// Something of the machine.
        "machine" Machine { what: MachineFact } Stays => infer::machine;
        /// PTX text over scalars; constraints are LLVM's.
        "asm" Asm { text: Text, constraints: Text, args: Vec<Value>, results: Scalars, is_pure: bool } Stays => infer::asm;
        /// Prints an element, at `index`, of the `operand`th of a print's operands, which is a tile or
        /// scalar of type `of`; without operands the prefix alone. `program` is where the program is in
        /// its grid. A print is done when all elements of all its operands have come, each once.
        "print" Print { prefix: Text, hex: bool, of: Type, operand: u32, operands: u32, program: Vec<Value>, index: Vec<Value>, value: Option<Value> } Writes => infer::print;
        /// Ends the thread's run. Those that are left wait for it no longer.
        "exit" Exit {} Writes => infer::nothing;
        /// Ends the launch with an error.
        "trap" Trap {} Writes => infer::nothing;

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
        /// Blocks of threads with shared memory, warps, matrix units.
        Gpu = "gpu",
    }

    /// Whose value a thread gets in a `warp_shuffle`.
    pub enum ShuffleMode [suffix] {
        Index = "index",
        Xor = "xor",
        Up = "up",
        Down = "down",
    }

    /// What a vote asks.
    pub enum VoteMode [suffix] {
        Any = "any",
        All = "all",
    }

    /// A product of small matrices by a warp: `m` x `k` (row-major fragments) by `k` x `n`.
    pub enum MmaKind [suffix] {
        /// 16 x 8 x 16 of fp16 into fp32.
        F16 = "f16",
        /// 16 x 8 x 16 of bf16 into fp32.
        Bf16 = "bf16",
        /// 16 x 8 x 8 of fp32 of which 19 bits count, into fp32.
        Tf32 = "tf32",
        /// 16 x 8 x 32 of i8 into i32.
        S8 = "s8",
        /// 16 x 8 x 32 of u8 into i32.
        U8 = "u8",
        /// 16 x 8 x 32 of fp8e4nv into fp32.
        E4m3 = "e4m3",
        /// 16 x 8 x 32 of fp8e5 into fp32.
        E5m2 = "e5m2",
    }

    /// Functions of fp32 that a GPU has instructions for; results may differ in the last bits from
    /// machine to machine.
    pub enum NativeFn [suffix] {
        Exp2 = "exp2",
        Log2 = "log2",
        Sin = "sin",
        Cos = "cos",
        Tanh = "tanh",
        Rsqrt = "rsqrt",
        Sqrt = "sqrt",
        Reciprocal = "reciprocal",
        /// Division with at most 2 ulp.
        Div = "div",
    }
}

impl MmaKind {
    /// Extents `m`, `n`, `k`.
    #[inline]
    pub const fn extents(self) -> [u32; 3] {
        let k = match self {
            MmaKind::F16 | MmaKind::Bf16 => 16,
            MmaKind::Tf32 => 8,
            MmaKind::S8 | MmaKind::U8 | MmaKind::E4m3 | MmaKind::E5m2 => 32,
        };
        [16, 8, k]
    }

    /// The type of sums.
    #[inline]
    pub const fn sum(self) -> crate::Scalar {
        match self {
            MmaKind::S8 | MmaKind::U8 => crate::Scalar::I32,
            _ => crate::Scalar::F32,
        }
    }
}

impl NativeFn {
    pub const fn arity(self) -> usize {
        match self {
            NativeFn::Div => 2,
            _ => 1,
        }
    }
}

/// The ops of the capability [`Capability::Gpu`], as a pattern: for whoever matches on all ops and has
/// none of these.
#[macro_export]
macro_rules! gpu_op {
    () => {
        $crate::thread::ThreadOp::ThreadId {}
            | $crate::thread::ThreadOp::BlockId { .. }
            | $crate::thread::ThreadOp::NumBlocks { .. }
            | $crate::thread::ThreadOp::SharedBase {}
            | $crate::thread::ThreadOp::SharedLoad { .. }
            | $crate::thread::ThreadOp::SharedStore { .. }
            | $crate::thread::ThreadOp::SharedAtomic { .. }
            | $crate::thread::ThreadOp::Barrier {}
            | $crate::thread::ThreadOp::BlockVote { .. }
            | $crate::thread::ThreadOp::WarpBarrier {}
            | $crate::thread::ThreadOp::AsyncCopy { .. }
            | $crate::thread::ThreadOp::AsyncCommit {}
            | $crate::thread::ThreadOp::AsyncWait { .. }
            | $crate::thread::ThreadOp::WarpShuffle { .. }
            | $crate::thread::ThreadOp::WarpVote { .. }
            | $crate::thread::ThreadOp::LoadMatrix { .. }
            | $crate::thread::ThreadOp::Mma { .. }
            | $crate::thread::ThreadOp::Pack { .. }
            | $crate::thread::ThreadOp::Native { .. }
            | $crate::thread::ThreadOp::Machine { .. }
            | $crate::thread::ThreadOp::Asm { .. }
            | $crate::thread::ThreadOp::Print { .. }
            | $crate::thread::ThreadOp::Exit {}
            | $crate::thread::ThreadOp::Trap {}
    };
}

impl ThreadOp {
    /// What a target must have to run the op.
    pub fn capability(&self) -> Capability {
        match self {
            ThreadOp::Scratch { .. } | ThreadOp::RuntimeCall { .. } | ThreadOp::Guard { .. } => {
                Capability::Cpu
            }
            crate::gpu_op!() => Capability::Gpu,
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
