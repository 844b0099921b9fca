//! A block's threads on their way through the function.

use super::Options;
use super::code::Code;
use super::fault::{Fault, FaultKind};
use super::global::Global;
use super::mask::Mask;
use super::print::Unfinished;
use super::shared::{BASE, Shared};
use super::stats::Stats;
use super::turns::Turns;
use super::values::{Values, Word, with_word};
use crate::args::Arg;
use naiad_ir::ptx_asm::Registers;
use naiad_ir::scalar::cast_slice;
use naiad_ir::thread::ThreadOp;
use naiad_ir::tile::MachineFact;
use naiad_ir::{Block, Inst, Value};
use std::thread::Scope;

pub type Run<T> = Result<T, Box<Fault>>;

/// Rounds of a loop that looks at memory, and finds what it waits for in none, until others get their turn.
const PATIENCE: u32 = 64;

/// Rounds of loops between two looks at whether to stop.
const LOOK: u32 = 1024;

/// A run of a kernel, block after block.
pub struct Exec<'a> {
    pub code: &'a Code,
    pub values: Values,
    pub global: Global<'a>,
    pub shared: Shared,
    pub stats: Stats,
    pub options: &'a Options<'a>,
    /// All threads, and those of them that have ended.
    pub full: Mask,
    pub gone: Mask,
    pub block: [u32; 3],
    blocks: [u32; 3],
    pub turns: &'a Turns,
    /// Starts a thread for other blocks.
    start: &'a dyn Fn(),
    /// How often memory changed that other blocks may wait for, and how often when they were told.
    pub changes: u64,
    told: u64,
    /// How often something changed that this block alone sees.
    pub own_changes: u64,
    /// Accesses that are there to see what others write, and looks at the clock.
    pub polls: u64,
    pub looks: u64,
    rounds: u32,
    pub registers: Registers,
    pub prints: Vec<Unfinished>,
}

impl Code {
    /// Runs the kernel by all threads of a grid of blocks. `args` are those of the function's parameters,
    /// addresses being tensors.
    ///
    /// # Safety
    ///
    /// The storage of each tensor argument is valid for reads, and for writes where `writable`, until this
    /// returns; and so is the memory that the options expose.
    ///
    /// # Panics
    ///
    /// Where there are not as many arguments as parameters.
    pub unsafe fn run(
        &self,
        blocks: [u32; 3],
        args: &[Arg],
        options: &Options<'_>,
    ) -> Result<Stats, Box<Fault>> {
        assert_eq!(self.func.params().len(), args.len(), "arguments of `{}`", self.func.name);
        // Three factors below 2^32 may pass 64 bits; nobody lives to see the end of such a grid.
        let total = blocks.iter().fold(1u64, |n, &b| n.saturating_mul(u64::from(b)));
        let turns = Turns::new(total, Stats::new(&self.func));
        let launch = Launch { code: self, blocks, total, args, options, turns: &turns };
        std::thread::scope(|scope| launch.work(scope));
        turns.outcome()
    }
}

/// What the threads of a launch know.
#[derive(Copy, Clone)]
struct Launch<'a> {
    code: &'a Code,
    blocks: [u32; 3],
    total: u64,
    args: &'a [Arg],
    options: &'a Options<'a>,
    turns: &'a Turns,
}

impl<'a> Launch<'a> {
    /// Runs blocks on this thread; those that wait for others start more threads.
    fn work<'scope>(self, scope: &'scope Scope<'scope, 'a>) {
        let start = move || {
            scope.spawn(move || self.work(scope));
        };
        let mut exec = Exec::new(&self, &start);
        self.turns.work(|number| {
            exec.begin(order(number, self.total, self.options.shuffle));
            let full = exec.full;
            exec.block(self.code.func.entry(), &full)?;
            exec.printed()?;
            Ok(exec.tells())
        });
        self.turns.count(&exec.stats);
    }
}

/// The block that is run as this one.
fn order(number: u64, total: u64, shuffle: Option<u64>) -> u64 {
    let Some(seed) = shuffle else { return number };
    // Steps of a length that has no factor in common with the total reach every block.
    let gcd = |mut a: u64, mut b: u64| {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let step = (total / 2 + seed % total..).find(|&s| gcd(s, total) == 1).unwrap_or(1);
    ((u128::from(number) * u128::from(step) + u128::from(seed)) % u128::from(total)) as u64
}

impl<'a> Exec<'a> {
    fn new(launch: &Launch<'a>, start: &'a dyn Fn()) -> Exec<'a> {
        let Launch { code, blocks, args, options, turns, .. } = *launch;
        let threads = code.layout.threads;
        let mut exec = Exec {
            code,
            values: Values::new(&code.layout),
            global: Global::new(&code.func.param_names, args, options.exposed),
            shared: Shared::new(code.shape.shared_bytes as usize, code.granule, threads),
            stats: Stats::new(&code.func),
            options,
            full: Mask::first(threads),
            gone: Mask::NONE,
            block: [0; 3],
            blocks,
            turns,
            start,
            changes: 0,
            told: 0,
            own_changes: 0,
            polls: 0,
            looks: 0,
            rounds: 0,
            registers: Registers::default(),
            prints: Vec::new(),
        };
        for (&param, arg) in code.func.params().iter().zip(args) {
            let image = match arg {
                Arg::Scalar(bits) => bits & code.scalar(param).mask(),
                Arg::Tensor(t) => t.address as u64,
            };
            exec.every(param, |_, _| image);
        }
        code.func.walk(&mut |inst| exec.constant(inst));
        exec
    }

    fn begin(&mut self, number: u64) {
        let [x, y, _] = self.blocks.map(u64::from);
        self.block = [number % x, number / x % y, number / x / y].map(|c| c as u32);
        self.gone = Mask::NONE;
        self.shared.begin();
        self.stats.blocks += 1;
    }

    /// Sets a value in all threads, by the lane and the thread.
    pub fn every(&mut self, value: Value, f: impl Fn(usize, usize) -> u64) {
        let slot = self.code.slot(value);
        for row in 0..slot.rows {
            with_word!(slot.size, T => {
                let lanes = self.values.row_mut::<T>(slot, row).iter_mut().enumerate();
                lanes.for_each(|(t, x)| *x = T::of(f(row, t)));
            });
        }
    }

    /// Sets what is the same in every block.
    fn constant(&mut self, inst: Inst) {
        let code = self.code;
        let Some(&result) = code.func.results(inst).first() else { return };
        match code.func.op(inst) {
            ThreadOp::Const { value, .. } => self.every(result, |_, _| value.bits),
            ThreadOp::Iota { .. } => self.every(result, |row, _| row as u64),
            ThreadOp::ThreadId {} => self.every(result, |_, t| t as u64),
            ThreadOp::SharedBase {} => self.every(result, |_, _| BASE),
            ThreadOp::NumBlocks { axis } => {
                let count = u64::from(self.blocks[*axis as usize]);
                self.every(result, |_, _| count);
            }
            _ => {}
        }
    }

    pub fn fault<T>(
        &self,
        kind: FaultKind,
        inst: Inst,
        thread: Option<usize>,
        what: String,
    ) -> Run<T> {
        let block = self.block;
        Err(Box::new(Fault { kind, inst, other: None, block, thread, what }))
    }

    /// The threads in which a scalar of `i1` is true.
    pub fn holds(&self, cond: Value) -> Mask {
        Mask::of_lanes(self.values.row::<u8>(self.code.slot(cond), 0))
    }

    /// Copies values for these threads.
    fn pass(&mut self, from: &[Value], to: &[Value], mask: &Mask) {
        for (&from, &to) in from.iter().zip(to) {
            self.values.copy(self.code.slot(from), self.code.slot(to), mask);
        }
    }

    /// Runs a block's ops for some threads; what it passes on is left to the op around it.
    fn block(&mut self, block: Block, mask: &Mask) -> Run<()> {
        let code = self.code;
        for &inst in code.func.insts(block) {
            let mask = &mask.without(&self.gone);
            if mask.is_empty() {
                return Ok(());
            }
            self.inst(inst, mask)?;
            if let Some(claims) = self.options.claims {
                self.judge(claims, inst, &mask.without(&self.gone))?;
            }
        }
        Ok(())
    }

    #[deny(clippy::wildcard_enum_match_arm)]
    fn inst(&mut self, inst: Inst, mask: &Mask) -> Run<()> {
        let code = self.code;
        let op = code.func.op(inst);
        let results = code.func.results(inst);
        let slot = |i: usize| code.slot(results[i]);
        match op {
            // Set once for all blocks.
            ThreadOp::Const { .. }
            | ThreadOp::Iota { .. }
            | ThreadOp::ThreadId {}
            | ThreadOp::SharedBase {}
            | ThreadOp::NumBlocks { .. } => {}
            ThreadOp::BlockId { axis } => {
                let number = u64::from(self.block[*axis as usize]);
                self.every(results[0], |_, _| number);
            }
            ThreadOp::Splat { src, .. } => {
                for row in 0..slot(0).rows {
                    self.values.copy_row((code.slot(*src), 0), (slot(0), row), &self.full);
                }
            }
            ThreadOp::Extract { src, lane } => {
                let from = (code.slot(*src), *lane as usize);
                self.values.copy_row(from, (slot(0), 0), &self.full);
            }
            ThreadOp::Shuffle { a, b, order } => {
                let (a, b) = (code.slot(*a), code.slot(*b));
                for (row, &i) in order.0.iter().enumerate() {
                    let i = i as usize;
                    let from = if i < a.rows { (a, i) } else { (b, i - a.rows) };
                    self.values.copy_row(from, (slot(0), row), &self.full);
                }
            }
            ThreadOp::Pack { lanes } => {
                for (row, &lane) in lanes.iter().enumerate() {
                    self.values.copy_row((code.slot(lane), 0), (slot(0), row), &self.full);
                }
            }
            ThreadOp::Any { mask } => self.fold_lanes(*mask, results[0], |a, b| a | b),
            ThreadOp::All { mask } => self.fold_lanes(*mask, results[0], |a, b| a & b),
            ThreadOp::Unary { x, .. } => self.elementwise(inst, &[*x]),
            ThreadOp::Binary { a, b, .. } | ThreadOp::Compare { a, b, .. } => {
                self.elementwise(inst, &[*a, *b]);
            }
            ThreadOp::Ternary { a, b, c, .. } => self.elementwise(inst, &[*a, *b, *c]),
            ThreadOp::Select { cond, yes, no } => self.elementwise(inst, &[*cond, *yes, *no]),
            ThreadOp::AddrAdd { addr, offset } => self.elementwise(inst, &[*addr, *offset]),
            ThreadOp::Native { f, args } => self.native(inst, *f, args),
            ThreadOp::Cast { src, to, rounding } => {
                let from = code.scalar(*src);
                let (src, dst) = self.values.bytes_and(code.slot(*src), slot(0));
                cast_slice(from, *to, *rounding, src, dst);
            }
            ThreadOp::Bitcast { src, .. } => {
                self.values.copy(code.slot(*src), slot(0), &self.full);
            }
            ThreadOp::Load { .. }
            | ThreadOp::Store { .. }
            | ThreadOp::Gather { .. }
            | ThreadOp::Scatter { .. }
            | ThreadOp::Atomic { .. }
            | ThreadOp::AtomicCas { .. }
            | ThreadOp::AtomicLoad { .. }
            | ThreadOp::AtomicStore { .. }
            | ThreadOp::SharedLoad { .. }
            | ThreadOp::SharedStore { .. }
            | ThreadOp::SharedAtomic { .. }
            | ThreadOp::AsyncCopy { .. } => self.access(inst, mask)?,
            ThreadOp::AsyncCommit {} => self.shared.commit(mask),
            ThreadOp::AsyncWait { pending } => self.shared.wait(mask, *pending),
            ThreadOp::Barrier {}
            | ThreadOp::BlockVote { .. }
            | ThreadOp::WarpBarrier {}
            | ThreadOp::WarpShuffle { .. }
            | ThreadOp::WarpVote { .. }
            | ThreadOp::LoadMatrix { .. }
            | ThreadOp::Mma { .. } => self.together(inst, mask)?,
            ThreadOp::Regs { .. } => {
                let zeros = slot(0);
                for row in 0..zeros.rows {
                    with_word!(zeros.size, T => {
                        let row = self.values.row_mut::<T>(zeros, row);
                        mask.threads().for_each(|t| row[t] = T::of(0));
                    });
                }
            }
            ThreadOp::RegsGet { regs, index } => {
                let first = *index as usize * slot(0).rows;
                for row in 0..slot(0).rows {
                    let from = (code.slot(*regs), first + row);
                    self.values.copy_row(from, (slot(0), row), &self.full);
                }
            }
            ThreadOp::RegsSet { regs, value, index } => {
                let value = code.slot(*value);
                self.own_changes += 1;
                for row in 0..value.rows {
                    let to = (code.slot(*regs), *index as usize * value.rows + row);
                    self.values.copy_row((value, row), to, mask);
                }
            }
            ThreadOp::Machine { what } => {
                let image = match what {
                    MachineFact::GlobalTimer => self.time(),
                    MachineFact::Smid => 0,
                };
                self.every(results[0], |_, _| image);
            }
            ThreadOp::Asm { args, .. } => self.assembly(inst, args, mask),
            ThreadOp::Print { .. } => self.print(inst, mask)?,
            ThreadOp::Exit {} => self.gone = self.gone.or(mask),
            ThreadOp::Trap {} => {
                let thread = mask.threads().next();
                self.fault(FaultKind::Trap, inst, thread, "ends the launch".to_string())?;
            }
            ThreadOp::For { lower, upper, step, inits, body } => {
                self.for_loop(inst, [*lower, *upper, *step], inits, *body, mask)?;
            }
            ThreadOp::While { inits, before, after } => {
                self.while_loop(inst, inits, [*before, *after], mask)?;
            }
            ThreadOp::If { cond, then, otherwise } => {
                let holds = self.holds(*cond);
                for (block, mask) in [(*then, mask.and(&holds)), (*otherwise, mask.without(&holds))]
                {
                    if !mask.is_empty() {
                        self.block(block, &mask)?;
                        self.pass(yielded(code, block), results, &mask);
                    }
                }
            }
            // What they pass is read by the op around.
            ThreadOp::Yield { .. } | ThreadOp::Condition { .. } | ThreadOp::Return {} => {}
            ThreadOp::Scratch { .. } | ThreadOp::RuntimeCall { .. } | ThreadOp::Guard { .. } => {
                unreachable!("refused when the code was made")
            }
        }
        Ok(())
    }
}

/// Loops.
impl Exec<'_> {
    fn for_loop(
        &mut self,
        inst: Inst,
        [lower, upper, step]: [Value; 3],
        inits: &[Value],
        body: Block,
        mask: &Mask,
    ) -> Run<()> {
        let code = self.code;
        let ty = code.scalar(lower);
        let [mut at, mut end, mut by] = [(); 3].map(|()| vec![0i64; code.layout.threads]);
        self.values.integers(code.slot(lower), ty, &mut at);
        self.values.integers(code.slot(upper), ty, &mut end);
        self.values.integers(code.slot(step), ty, &mut by);
        let (iv, carried) = code.func.block_params(body).split_at(1);
        let iv = code.slot(iv[0]);
        let yielded = yielded(code, body);
        let is_free = |v: &Value| !carried.contains(v);
        self.pass(inits, carried, mask);
        let mut active = *mask;
        if let Some(t) = mask.threads().find(|&t| by[t] == 0 && at[t] < end[t]) {
            self.fault(FaultKind::Stuck, inst, Some(t), "has the step 0".to_string())?;
        }
        loop {
            for t in active.threads() {
                if if by[t] < 0 { at[t] <= end[t] } else { at[t] >= end[t] } {
                    active.remove(t);
                }
            }
            if active.is_empty() {
                break;
            }
            with_word!(iv.size, T => {
                let row = self.values.row_mut::<T>(iv, 0);
                active.threads().for_each(|t| row[t] = T::of(at[t] as u64));
            });
            self.look(inst)?;
            self.block(body, &active)?;
            active = active.without(&self.gone);
            if yielded.iter().all(is_free) {
                self.pass(yielded, carried, &active);
            } else {
                // What is carried may change places. The loop's results are nobody's until it ends.
                let results = code.func.results(inst);
                self.pass(yielded, results, &active);
                self.pass(results, carried, &active);
            }
            for t in active.threads() {
                match at[t].checked_add(by[t]) {
                    Some(next) => at[t] = next,
                    None => active.remove(t),
                }
            }
        }
        self.pass(carried, code.func.results(inst), mask);
        Ok(())
    }

    fn while_loop(
        &mut self,
        inst: Inst,
        inits: &[Value],
        [before, after]: [Block; 2],
        mask: &Mask,
    ) -> Run<()> {
        let code = self.code;
        let Some(ThreadOp::Condition { cond, values }) = code.func.terminator(before) else {
            return Ok(());
        };
        let carried = code.func.block_params(before);
        self.pass(inits, carried, mask);
        let mut active = *mask;
        let mut last: Vec<Vec<u8>> = Vec::new();
        let mut idle = 0;
        loop {
            let (changes, polls) = (self.changes, self.polls);
            let steady = (self.own_changes, self.looks);
            self.look(inst)?;
            self.block(before, &active)?;
            active = active.without(&self.gone);
            let goes_on = self.holds(*cond);
            self.pass(values, code.func.results(inst), &active.without(&goes_on));
            active = active.and(&goes_on);
            if active.is_empty() {
                return Ok(());
            }
            self.pass(values, code.func.block_params(after), &active);
            self.block(after, &active)?;
            active = active.without(&self.gone);
            self.pass(yielded(code, after), carried, &active);
            if self.changes != changes {
                (idle, last) = (0, Vec::new());
                continue;
            }
            // A round that changed nothing will be followed by another such.
            idle += 1;
            let now = carried.iter().map(|&v| self.values.bytes(code.slot(v)));
            let same = now.clone().eq(last.iter().map(Vec::as_slice));
            last = now.map(<[u8]>::to_vec).collect();
            if same && steady == (self.own_changes, self.looks) {
                self.wait(inst, false, &active)?;
            } else if self.polls != polls && idle % PATIENCE == 0 {
                self.wait(inst, true, &active)?;
            }
        }
    }

    /// How often memory changed since this was asked last.
    fn tells(&mut self) -> u64 {
        self.changes - std::mem::replace(&mut self.told, self.changes)
    }

    /// Lets other blocks go on, since this one waits for them.
    fn wait(&mut self, inst: Inst, can_end_by_itself: bool, active: &Mask) -> Run<()> {
        let (block, thread) = (self.block, active.threads().next());
        let changes = self.tells();
        self.turns.wait(changes, can_end_by_itself, self.start, || {
            let what = "waits for what no other block will do".to_string();
            Box::new(Fault { kind: FaultKind::Stuck, inst, other: None, block, thread, what })
        })
    }

    /// Looks now and then whether the run is to stop.
    fn look(&mut self, inst: Inst) -> Run<()> {
        self.rounds += 1;
        if self.rounds.is_multiple_of(LOOK) && self.options.interrupt.is_some_and(|asks| asks()) {
            return self.fault(FaultKind::Interrupted, inst, None, "was interrupted".to_string());
        }
        Ok(())
    }
}

/// What a region gives.
fn yielded(code: &Code, block: Block) -> &[Value] {
    match code.func.terminator(block) {
        Some(ThreadOp::Yield { values }) => values,
        _ => &[],
    }
}
