//! Where scratch buffers lie in the frame.
//!
//! The linked ops are numbered in program order, an op before those in its regions. A buffer is live
//! from its op to its last use; a use inside a region of an op of the buffer's block lasts as long as
//! that op, since a loop runs its region again. Buffers that are never live together may share
//! memory. The greatest are placed first, each at the lowest offset that is free, which wastes little.
//!
//! A use is followed through ops that only compute addresses. Where an address goes elsewhere (into
//! memory, round a loop, out of a branch), the buffer lives to the end of its block.

use naiad_ir::thread::{Thread, ThreadOp};
use naiad_ir::{Block, Function, Inst, OpInfo, Value};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// Alignment of the frame, and the greatest of a buffer.
const ALIGN: usize = 64;

/// Offsets of the buffers of a function.
pub struct Frame {
    offsets: FxHashMap<Inst, usize>,
    pub bytes: usize,
}

impl Frame {
    pub fn new(func: &Function<Thread>) -> Frame {
        let mut order = Order {
            func,
            last: vec![0; func.num_insts()],
            block: vec![func.entry(); func.num_insts()],
            parent: vec![None; func.num_blocks()],
            next: 0,
        };
        let mut scratch = Vec::new();
        order.number(func.entry(), &mut scratch);
        if scratch.is_empty() {
            return Frame { offsets: FxHashMap::default(), bytes: 0 };
        }
        Frame::place(order.buffers(scratch))
    }

    pub fn offset(&self, scratch: Inst) -> usize {
        self.offsets[&scratch]
    }

    fn place(mut buffers: Vec<Buffer>) -> Frame {
        buffers.sort_by_key(|b| (std::cmp::Reverse(b.bytes), b.start));
        let mut placed: Vec<(Buffer, usize)> = Vec::new();
        for buffer in buffers {
            let mut taken: Vec<(usize, usize)> = placed
                .iter()
                .filter(|(b, _)| b.start <= buffer.end && buffer.start <= b.end)
                .map(|(b, at)| (*at, at + b.bytes))
                .collect();
            taken.sort_unstable();
            let mut at = 0usize;
            for (from, to) in taken {
                if at + buffer.bytes <= from {
                    break;
                }
                at = at.max(to.next_multiple_of(buffer.align));
            }
            placed.push((buffer, at));
        }
        let end = placed.iter().map(|(b, at)| at + b.bytes).max().unwrap_or(0);
        let offsets = placed.iter().map(|(b, at)| (b.inst, *at)).collect();
        Frame { offsets, bytes: end.next_multiple_of(ALIGN) }
    }
}

#[derive(Copy, Clone)]
struct Buffer {
    inst: Inst,
    bytes: usize,
    align: usize,
    /// The first and the last number of an op that it is live at.
    start: usize,
    end: usize,
}

struct Order<'f> {
    func: &'f Function<Thread>,
    /// The greatest number of each op and of those in its regions.
    last: Vec<usize>,
    /// The block of each op, and the op of each block.
    block: Vec<Block>,
    parent: Vec<Option<Inst>>,
    next: usize,
}

impl Order<'_> {
    /// Numbers the ops of a block; collects its buffers, live nowhere but at their ops.
    fn number(&mut self, block: Block, scratch: &mut Vec<Buffer>) {
        for &inst in self.func.insts(block) {
            let start = self.next;
            self.next += 1;
            self.block[inst.index()] = block;
            let op = self.func.op(inst);
            if let ThreadOp::Scratch { bytes, align } = op {
                let (bytes, align) = (*bytes, *align);
                scratch.push(Buffer { inst, bytes, align, start, end: start });
            }
            let mut regions: SmallVec<[Block; 2]> = SmallVec::new();
            op.each_block(&mut |b| regions.push(b));
            for region in regions {
                self.parent[region.index()] = Some(inst);
                self.number(region, scratch);
            }
            self.last[inst.index()] = self.next - 1;
        }
    }

    /// The buffers with their true ends.
    fn buffers(&self, mut buffers: Vec<Buffer>) -> Vec<Buffer> {
        // Which buffers an address may point into.
        let mut of: FxHashMap<Value, SmallVec<[usize; 1]>> = FxHashMap::default();
        for (i, b) in buffers.iter().enumerate() {
            of.insert(self.func.results(b.inst)[0], SmallVec::from_slice(&[i]));
        }
        self.func.walk(&mut |inst| {
            let op = self.func.op(inst);
            let mut computed: SmallVec<[usize; 4]> = SmallVec::new();
            op.each_value(&mut |v| {
                for &i in of.get(&v).into_iter().flatten() {
                    let home = self.home(&buffers[i]);
                    let until = match fate(op, v) {
                        Fate::Lost => self.end_of(home),
                        Fate::Used | Fate::Computed => self.use_in(home, inst),
                    };
                    buffers[i].end = buffers[i].end.max(until);
                    if matches!(fate(op, v), Fate::Computed) && !computed.contains(&i) {
                        computed.push(i);
                    }
                }
            });
            if !computed.is_empty() {
                for &result in self.func.results(inst) {
                    of.insert(result, SmallVec::from_slice(&computed));
                }
            }
        });
        buffers
    }

    fn home(&self, buffer: &Buffer) -> Block {
        self.block[buffer.inst.index()]
    }

    fn end_of(&self, block: Block) -> usize {
        self.func.insts(block).last().map_or(0, |i| self.last[i.index()])
    }

    /// The number up to which a use at `inst` keeps a buffer of `block` alive.
    fn use_in(&self, block: Block, inst: Inst) -> usize {
        let mut at = inst;
        while self.block[at.index()] != block {
            match self.parent[self.block[at.index()].index()] {
                Some(outer) => at = outer,
                None => break,
            }
        }
        self.last[at.index()]
    }
}

/// What an op does with an address that it is given.
enum Fate {
    /// It is done with it when it is done.
    Used,
    /// Its results are addresses of the same buffers.
    Computed,
    /// It may come up again anywhere.
    Lost,
}

#[deny(clippy::wildcard_enum_match_arm)]
fn fate(op: &ThreadOp, address: Value) -> Fate {
    match op {
        ThreadOp::Splat { .. }
        | ThreadOp::Extract { .. }
        | ThreadOp::Shuffle { .. }
        | ThreadOp::Select { .. }
        | ThreadOp::Bitcast { .. }
        | ThreadOp::AddrAdd { .. } => Fate::Computed,
        ThreadOp::Compare { .. }
        | ThreadOp::Load { .. }
        | ThreadOp::Gather { .. }
        | ThreadOp::Atomic { .. }
        | ThreadOp::AtomicCas { .. }
        | ThreadOp::AtomicLoad { .. }
        | ThreadOp::RuntimeCall { .. }
        | ThreadOp::Guard { .. } => Fate::Used,
        // What is stored comes up again, the place does not.
        ThreadOp::Store { value, .. }
        | ThreadOp::Scatter { value, .. }
        | ThreadOp::AtomicStore { value, .. }
            if *value != address =>
        {
            Fate::Used
        }
        ThreadOp::Store { .. }
        | ThreadOp::Scatter { .. }
        | ThreadOp::AtomicStore { .. }
        | ThreadOp::RegsSet { .. }
        | ThreadOp::For { .. }
        | ThreadOp::While { .. }
        | ThreadOp::If { .. }
        | ThreadOp::Yield { .. }
        | ThreadOp::Condition { .. } => Fate::Lost,
        // These take no addresses, but for bit casts that went before.
        ThreadOp::Const { .. }
        | ThreadOp::Iota { .. }
        | ThreadOp::Any { .. }
        | ThreadOp::All { .. }
        | ThreadOp::Unary { .. }
        | ThreadOp::Binary { .. }
        | ThreadOp::Ternary { .. }
        | ThreadOp::Cast { .. }
        | ThreadOp::Regs { .. }
        | ThreadOp::RegsGet { .. }
        | ThreadOp::Scratch { .. }
        | ThreadOp::Return {}
        | naiad_ir::gpu_op!() => Fate::Lost,
    }
}
