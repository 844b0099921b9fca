//! Runs one program: registers, an explicit stack of frames, and the ops.
//!
//! ```text
//!   Program   registers | frames: [entry] [for, iv = 3] [while, in its test] ...
//!   Exec      runs a program until it ends, fails, or has gone round a loop waiting
//! ```
//!
//! A program holds all of its state, so it can be put aside in the middle of a loop and go on later,
//! which is how programs that wait for one another run on few threads. A loop *spins* if one round of
//! it polled memory (an atomic or volatile read) and changed none. It is *stuck* if the round also
//! ended in the state in which it began: then only another program's write can make a difference.

use crate::access::{self, Context, Target};
use crate::args::Multiply;
use crate::assembly;
use crate::atomics::{self, Update};
use crate::check::{Checker, Overlay};
use crate::code::Code;
use crate::debug::{self, Operand, Printed};
use crate::engine::In;
use crate::fault::{Fault, Findings, Site};
use crate::memory::{Memory, Origin};
use crate::ops::{self, Env, Read, Reg, Results};
use crate::policy::Policy;
use crate::region::signed;
use crate::tile::{Tile, number};
use naiad_ir::tile::{MachineFact, TileOp};
use naiad_ir::{Block, Effects, Inst, OpInfo, Scalar, Value};
use smallvec::SmallVec;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What all programs of a launch share.
pub struct Shared<'a> {
    pub code: &'a Code,
    pub memory: &'a Memory<'a>,
    pub findings: &'a Findings,
    /// What the checks of a checked launch share.
    pub check: Option<&'a Checker>,
    pub grid: [u32; 3],
    /// The image that each parameter starts with, and what it points into.
    pub arguments: &'a [(u64, Origin)],
    pub naive: bool,
    pub in_order: Option<Multiply>,
    pub print: Option<&'a (dyn Fn(&Printed<'_>) + Sync)>,
    pub clock: Option<&'a (dyn Fn() -> u64 + Sync)>,
    /// How often the clock was read.
    pub clock_reads: &'a AtomicU64,
    /// Whether programs from this number on are to stop, or all.
    pub stopped: &'a (dyn Fn(u64) -> bool + Sync),
}

/// Rounds without any write in the whole loop after which a program counts as stuck although its own
/// state changes: it may only be counting.
const PATIENCE: u64 = 1 << 26;

/// Nanoseconds that pass with each reading where the launch has no clock.
const TICK: u64 = 1000;

impl Shared<'_> {
    /// Nanoseconds of a clock that all programs share.
    fn time(&self) -> u64 {
        let reads = self.clock_reads.fetch_add(1, Relaxed);
        self.clock.map_or(reads * TICK, |clock| clock())
    }
}

/// Small ops between two looks at the stop flag.
const POLL_OPS: u32 = 2048;

/// A value of a program, with what the policy knows of it.
#[derive(Clone, Default)]
pub struct Val<L> {
    pub reg: Reg,
    pub lanes: L,
}

/// How often a program read and wrote memory.
#[derive(Copy, Clone, Default, PartialEq)]
pub struct Traffic {
    reads: u64,
    /// Reads that see other programs' writes: atomic and volatile ones.
    polls: u64,
    pub writes: u64,
    /// Readings of the clock: a loop that reads it may be waiting for a time, which comes by itself.
    clocks: u64,
}

enum Kind {
    Straight,
    For { at: i128, end: i128, step: i128, ty: Scalar },
    While,
}

struct Frame {
    block: Block,
    next: usize,
    /// The op whose region this is; none for the kernel itself.
    owner: Option<Inst>,
    kind: Kind,
    /// At the start of this round of a loop.
    traffic: Traffic,
    /// The carried values at the start of this round, where they are all plain images.
    state: Option<SmallVec<[u64; 4]>>,
}

/// A program of the grid, from its start to its end.
pub struct Program<P: Policy> {
    pub number: u64,
    pub coordinates: [u32; 3],
    regs: Vec<Val<P::Lanes>>,
    frames: Vec<Frame>,
    pub traffic: Traffic,
    /// Rounds in a row that changed nothing in memory.
    spins: u64,
    /// The last of these rounds changed nothing in the program either.
    repeats: bool,
    /// The op that polled last.
    pub waits_at: Option<Inst>,
    pub state: P::State,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Pause {
    Finished,
    /// It waits; `stuck` if nothing but another program's write can help. `wrote` tells whether it
    /// changed memory since it was resumed.
    Waiting {
        stuck: bool,
        wrote: bool,
    },
    Stopped,
}

pub struct Exec<'a, P: Policy> {
    pub shared: &'a Shared<'a>,
    /// The number of the worker that this is.
    worker: usize,
    ops: u32,
    /// About how long all ops so far took, see [`Code::cost`].
    pub cost: u64,
    /// Programs pause where the cost passes this.
    pub budget: u64,
    /// Where ops put what they give; empty between them.
    pub results: Results,
    policy: std::marker::PhantomData<P>,
}

impl<P: Policy> Program<P> {
    pub fn register(&self, register: usize) -> &Tile {
        &self.regs[register].reg.tile
    }

    pub fn set_register(&mut self, register: usize, tile: Tile) {
        self.regs[register].reg = Reg::from(tile);
    }
}

impl<P: Policy> Default for Program<P> {
    fn default() -> Program<P> {
        Program {
            number: 0,
            coordinates: [0; 3],
            regs: Vec::new(),
            frames: Vec::new(),
            traffic: Traffic::default(),
            spins: 0,
            repeats: false,
            waits_at: None,
            state: P::State::default(),
        }
    }
}

struct Regs<'r, 'a, L> {
    code: &'a Code,
    regs: &'r [Val<L>],
}

impl<L> Read for Regs<'_, '_, L> {
    fn reg(&self, value: Value) -> &Reg {
        &self.regs[self.code.register(value)].reg
    }
}

impl<'a, P: Policy> Exec<'a, P> {
    pub fn new(shared: &'a Shared<'a>, worker: usize) -> Exec<'a, P> {
        Exec {
            shared,
            worker,
            ops: 0,
            cost: 0,
            budget: u64::MAX,
            results: Results::new(),
            policy: std::marker::PhantomData,
        }
    }

    /// Sets a program to the kernel's start. One that has ended may be used again.
    pub fn start(&self, p: &mut Program<P>, number: u64) {
        let [x, y, _] = self.shared.grid.map(u64::from);
        p.number = number;
        p.coordinates = [number % x, number / x % y, number / x / y].map(|c| c as u32);
        let code = self.shared.code;
        p.regs.clear();
        p.regs.resize(code.registers, Val::default());
        p.frames.clear();
        p.traffic = Traffic::default();
        p.spins = 0;
        p.repeats = false;
        p.waits_at = None;
        P::begins(self, p);
        for (&param, argument) in code.func.params().iter().zip(self.shared.arguments) {
            let &(image, origin) = argument;
            if let Some(target) = code.target(param) {
                p.regs[target].reg = Reg { tile: Tile::Uniform(image), origin };
            }
        }
        p.frames.push(Frame {
            block: code.func.entry(),
            next: 0,
            owner: None,
            kind: Kind::Straight,
            traffic: Traffic::default(),
            state: None,
        });
    }

    /// Runs on until the program ends, waits or fails.
    pub fn resume(&mut self, p: &mut Program<P>) -> Result<Pause, Fault> {
        let func = &*self.shared.code.func;
        let writes = p.traffic.writes;
        loop {
            let Some(frame) = p.frames.last_mut() else { return Ok(Pause::Finished) };
            let Some(&inst) = func.insts(frame.block).get(frame.next) else {
                // A block without an end: the verifier lets none through.
                return Ok(Pause::Finished);
            };
            frame.next += 1;
            let cost = self.shared.code.cost(inst);
            self.cost += u64::from(cost);
            // Large tiles make an op take as long as many small ones.
            self.ops += 1 + (cost >> 10);
            if self.ops >= POLL_OPS {
                self.ops = 0;
                if (self.shared.stopped)(p.number) {
                    return Ok(Pause::Stopped);
                }
            }
            if self.step(p, inst)? {
                let stuck = p.repeats || p.spins > PATIENCE;
                return Ok(Pause::Waiting { stuck, wrote: p.traffic.writes != writes });
            }
            if self.cost > self.budget {
                return Ok(Pause::Waiting { stuck: false, wrote: true });
            }
        }
    }

    /// One op. Says whether the program now waits.
    fn step(&mut self, p: &mut Program<P>, inst: Inst) -> Result<bool, Fault> {
        let code = self.shared.code;
        match code.func.op(inst) {
            TileOp::For { lower, upper, step, inits, body, .. } => {
                let ty = signed(code.scalar(*lower));
                let bound = |v: Value| number(ty, read(code, p, v).reg.tile.uniform().unwrap_or(0));
                let (at, end, step) = (bound(*lower), bound(*upper), bound(*step));
                if step == 0 {
                    return Err(self.site(p, inst).zero_step());
                }
                P::branches(self, p, inst, *upper);
                let carried = all(code, p, inits);
                kill(p, code.dies_at_begin(inst));
                if done(at, end, step) {
                    self.leave(p, inst, carried);
                    return Ok(false);
                }
                let kind = Kind::For { at, end, step, ty };
                self.enter(p, *body, Some(inst), kind);
                self.set_round(p, at, ty, carried);
                Ok(false)
            }
            TileOp::While { inits, before, .. } => {
                let carried = all(code, p, inits);
                kill(p, code.dies_at_begin(inst));
                self.enter(p, *before, Some(inst), Kind::While);
                if let Some(frame) = p.frames.last_mut() {
                    frame.state = state(&carried);
                }
                self.set(p, code.func.block_params(*before), carried);
                Ok(false)
            }
            TileOp::If { cond, then, otherwise } => {
                let taken = read(code, p, *cond).reg.tile.uniform() != Some(0);
                P::branches(self, p, inst, *cond);
                kill(p, code.dies_at_begin(inst));
                self.enter(p, if taken { *then } else { *otherwise }, Some(inst), Kind::Straight);
                Ok(false)
            }
            TileOp::Condition { cond, values } => {
                let go_on = read(code, p, *cond).reg.tile.uniform() != Some(0);
                P::branches(self, p, inst, *cond);
                let values = all(code, p, values);
                kill(p, code.dies_at_begin(inst));
                let Some(frame) = p.frames.last_mut() else { return Ok(false) };
                let owner = frame.owner;
                let Some(TileOp::While { after, .. }) = owner.map(|o| code.func.op(o)) else {
                    return Err(ops::internal(code.func.op(inst)));
                };
                if go_on {
                    (frame.block, frame.next) = (*after, 0);
                    self.set(p, code.func.block_params(*after), values);
                } else {
                    p.frames.pop();
                    if let Some(owner) = owner {
                        self.leave(p, owner, values);
                    }
                }
                Ok(false)
            }
            TileOp::Yield { values } => {
                let values = all(code, p, values);
                kill(p, code.dies_at_begin(inst));
                self.end_block(p, values)
            }
            TileOp::Return {} => {
                p.frames.clear();
                p.regs.clear();
                Ok(false)
            }
            op => match op.effects() {
                Effects::Reads | Effects::Writes | Effects::Stays => {
                    self.effect(p, inst, op)?;
                    Ok(false)
                }
                Effects::Pure | Effects::Control | Effects::Terminator => {
                    self.evaluate(p, inst)?;
                    Ok(false)
                }
            },
        }
    }

    /// An op that computes and does nothing else.
    fn evaluate(&mut self, p: &mut Program<P>, inst: Inst) -> Result<(), Fault> {
        let (shared, number) = (self.shared, p.number);
        let stopped = move || (shared.stopped)(number);
        let code = shared.code;
        let env = Env {
            code,
            program: p.coordinates,
            grid: shared.grid,
            lift: None,
            naive: shared.naive,
            in_order: shared.in_order,
            stopped: &stopped,
        };
        self.results.clear();
        ops::evaluate(&env, inst, &Regs { code, regs: &p.regs }, &mut self.results)?;
        if P::CHECKED {
            return self.set_known(p, inst);
        }
        kill(p, code.dies_at_begin(inst));
        for (&value, reg) in code.func.results(inst).iter().zip(&mut self.results) {
            if let Some(target) = code.target(value) {
                std::mem::swap(&mut p.regs[target].reg, reg);
            }
        }
        self.results.clear();
        Ok(())
    }

    /// Hands an op's results over together with what the policy knows of them.
    fn set_known(&mut self, p: &mut Program<P>, inst: Inst) -> Result<(), Fault> {
        let code = self.shared.code;
        let mut results = std::mem::take(&mut self.results);
        let known = P::computed(self, p, inst, &mut results)?;
        kill(p, code.dies_at_begin(inst));
        for ((&value, reg), lanes) in
            code.func.results(inst).iter().zip(results.drain(..)).zip(known)
        {
            if let Some(target) = code.target(value) {
                p.regs[target] = Val { reg, lanes };
            }
        }
        self.results = results;
        Ok(())
    }

    /// Where a program is.
    pub fn site(&self, p: &Program<P>, inst: Inst) -> Site<'a> {
        let func = &*self.shared.code.func;
        Site { func, inst, program: p.coordinates, number: p.number }
    }

    /// What an access needs; stores are judged by the views of their tensors too where that is asked.
    pub fn context(&self, p: &Program<P>, inst: Inst) -> Context<'a> {
        Context {
            site: self.site(p, inst),
            memory: self.shared.memory,
            views: P::CHECKED,
            naive: self.shared.naive,
        }
    }

    fn enter(&self, p: &mut Program<P>, block: Block, owner: Option<Inst>, kind: Kind) {
        p.frames.push(Frame { block, next: 0, owner, kind, traffic: p.traffic, state: None });
    }

    /// Ends an op with regions.
    fn leave(&self, p: &mut Program<P>, inst: Inst, values: Vals<P>) {
        let code = self.shared.code;
        kill(p, code.dies_at_end(inst));
        self.set(p, code.func.results(inst), values);
    }

    fn set(&self, p: &mut Program<P>, targets: &[Value], values: Vals<P>) {
        for (&target, value) in targets.iter().zip(values) {
            if let Some(register) = self.shared.code.target(target) {
                p.regs[register] = value;
            }
        }
    }

    /// Sets the parameters of a counted loop's next round.
    fn set_round(&self, p: &mut Program<P>, at: i128, ty: Scalar, carried: Vals<P>) {
        let Some(block) = p.frames.last().map(|f| f.block) else { return };
        let params = self.shared.code.func.block_params(block);
        let iv = Val {
            reg: Reg::from(Tile::Uniform(at as u64 & ty.mask())),
            lanes: P::Lanes::default(),
        };
        self.set(p, params, std::iter::once(iv).chain(carried).collect());
    }

    fn end_block(&mut self, p: &mut Program<P>, values: Vals<P>) -> Result<bool, Fault> {
        let code = self.shared.code;
        let traffic = p.traffic;
        let Some(frame) = p.frames.last_mut() else { return Ok(false) };
        let owner = frame.owner;
        // Whether this round of the loop has changed nothing in memory, and asked for a change.
        let before = std::mem::replace(&mut frame.traffic, traffic);
        let quiet = before.writes == traffic.writes;
        match &mut frame.kind {
            Kind::Straight => {
                p.frames.pop();
                if let Some(owner) = owner {
                    self.leave(p, owner, values);
                }
                Ok(false)
            }
            Kind::For { at, end, step, ty } => {
                *at += *step;
                if done(*at, *end, *step) {
                    p.frames.pop();
                    if let Some(owner) = owner {
                        self.leave(p, owner, values);
                    }
                    return Ok(false);
                }
                frame.next = 0;
                let (at, ty) = (*at, *ty);
                self.set_round(p, at, ty, values);
                // The induction variable moves, so this loop ends by itself: it may wait, but is
                // never stuck.
                let waits = quiet && before.polls != traffic.polls;
                p.spins = if waits { p.spins + 1 } else { 0 };
                p.repeats = false;
                Ok(waits)
            }
            Kind::While => {
                let Some(TileOp::While { before: test, .. }) = owner.map(|o| code.func.op(o))
                else {
                    return Ok(false);
                };
                let new = state(&values);
                let same = new.is_some() && new == frame.state;
                let polled = before.polls != traffic.polls;
                let waits = quiet && (polled || same && before.reads != traffic.reads);
                frame.state = new;
                (frame.block, frame.next) = (*test, 0);
                self.set(p, code.func.block_params(*test), values);
                let timed = before.clocks != traffic.clocks;
                p.spins = if waits && !timed { p.spins + 1 } else { 0 };
                p.repeats = waits && same && !timed;
                Ok(waits)
            }
        }
    }

    /// An op that has an effect: on memory, on the user's screen, or on whether the launch goes on.
    pub fn effect(&mut self, p: &mut Program<P>, inst: Inst, op: &TileOp) -> Result<(), Fault> {
        let shared = self.shared;
        let code = shared.code;
        let func = &*code.func;
        P::touches(self, p, inst, op)?;
        let overlay = P::overlay(p);
        let cx = self.context(p, inst);
        let tile = |v: Value| &read(code, p, v).reg.tile;
        let mut results: SmallVec<[Tile; 1]> = SmallVec::new();
        let mut wrote = false;
        let mut traffic = p.traffic;
        let mut polled = false;
        let target = |ptr: &Value, mask: &Option<Value>| target(code, p, *ptr, *mask);
        let used = func.results(inst).first().is_some_and(|&r| code.target(r).is_some());
        match op {
            TileOp::Load { ptr, mask, other, hints } => {
                let t = target(ptr, mask);
                let other = other.map(tile);
                results.push(match &overlay {
                    None => access::load(&cx, &t, other)?,
                    Some(own) => own.borrow().load(&cx, &t, other)?,
                });
                traffic.reads += 1;
                polled = hints.volatile;
            }
            TileOp::Store { ptr, value, mask, .. } => {
                let t = target(ptr, mask);
                match &overlay {
                    None => access::store(&cx, &t, tile(*value))?,
                    Some(own) => own.borrow_mut().store(&cx, &t, tile(*value))?,
                }
                traffic.writes += u64::from(t.has_lanes());
            }
            TileOp::AtomicRmw { f, ptr, value, mask, .. } => {
                let how = Some(Update::Rmw(*f));
                let t = target(ptr, mask);
                let (tile, changed) = atomic(&cx, &t, how, Some(tile(*value)), used, &overlay)?;
                wrote = changed;
                polled = true;
                results.push(tile);
            }
            TileOp::AtomicCas { ptr, compare, value, .. } => {
                let how = Some(Update::Cas(tile(*compare)));
                let t = target(ptr, &None);
                let (tile, changed) = atomic(&cx, &t, how, Some(tile(*value)), used, &overlay)?;
                wrote = changed;
                polled = true;
                results.push(tile);
            }
            TileOp::AtomicLoad { ptr, mask, .. } => {
                let t = target(ptr, mask);
                results.push(atomic(&cx, &t, None, None, used, &overlay)?.0);
                polled = true;
            }
            TileOp::AtomicStore { ptr, value, mask, .. } => {
                let t = target(ptr, mask);
                wrote = atomic(&cx, &t, None, Some(tile(*value)), false, &overlay)?.1;
            }
            // One program is run by one thread, in order.
            TileOp::Barrier {} => {}
            TileOp::Print { prefix, args, hex } => {
                if let (Some(print), None) = (shared.print, &overlay) {
                    let operand = |&v: &Value| Operand::new(func.ty(v), tile(v));
                    let operands: SmallVec<[Operand<'_>; 2]> = args.iter().map(operand).collect();
                    print(&Printed {
                        kernel: &func.name,
                        program: p.coordinates,
                        prefix: &prefix.0,
                        hex: *hex,
                        operands: &operands,
                    });
                }
            }
            TileOp::Assert { cond, mask, message, values, names } => {
                let shape = func.ty(*cond).shape;
                if let Some(failed) = debug::failing(tile(*cond), mask.map(tile), &shape) {
                    let shown = values.iter().zip(names);
                    let shown = shown.map(|(&v, name)| {
                        let ty = func.ty(v);
                        (&*name.0, ty.elem, debug::image(tile(v), ty, failed.lane))
                    });
                    let shown: SmallVec<[_; 2]> = shown.collect();
                    return Err(debug::assertion(&cx.site, &message.0, &failed, &shown));
                }
            }
            TileOp::Assume { cond } => {
                let shape = func.ty(*cond).shape;
                if P::CHECKED
                    && let Some(failed) = debug::failing(tile(*cond), None, &shape)
                {
                    return Err(debug::false_assumption(&cx.site, &failed));
                }
            }
            TileOp::Machine { what } => {
                let image = match what {
                    MachineFact::GlobalTimer => {
                        traffic.clocks += 1;
                        shared.time()
                    }
                    MachineFact::Smid => self.worker as u64,
                };
                results.push(Tile::Uniform(image));
            }
            TileOp::InlineAsm { args, pack, shape, .. } => {
                let program = match code.assembly(inst) {
                    Some(Ok(program)) => program,
                    Some(Err(refusal)) => return Err(cx.site.not_assembled(refusal)),
                    None => return Err(ops::internal(op)),
                };
                let operands: SmallVec<[In<'_>; 4]> =
                    args.iter().map(|&v| In { tile: tile(v), ty: code.scalar(v) }).collect();
                let outs = func.results(inst).iter().map(|&v| code.scalar(v)).collect();
                let job = assembly::Job { program, shape: *shape, pack: *pack, outs };
                traffic.clocks += u64::from(program.reads_clock());
                results.extend(assembly::run(&job, &operands, &mut || shared.time()));
            }
            _ => return Err(ops::internal(op)),
        }
        if polled {
            traffic.reads += 1;
            traffic.polls += 1;
            p.waits_at = Some(inst);
        }
        traffic.writes += u64::from(wrote);
        p.traffic = traffic;
        let value = |tile| Val { reg: Reg::from(tile), lanes: P::Lanes::default() };
        let mut values: Vals<P> = results.into_iter().map(value).collect();
        if P::CHECKED {
            P::touched(self, p, inst, op, &mut values, wrote);
        }
        kill(p, code.dies_at_begin(inst));
        self.set(p, func.results(inst), values);
        Ok(())
    }
}

/// An atomic operation: an update, a load (of neither update nor value), or a store.
fn atomic(
    cx: &Context<'_>,
    t: &Target<'_>,
    how: Option<Update<'_>>,
    value: Option<&Tile>,
    used: bool,
    overlay: &Option<Overlay>,
) -> Result<(Tile, bool), Fault> {
    if let Some(own) = overlay {
        return own.borrow_mut().update(cx, t, how, value, used);
    }
    match (how, value) {
        (Some(how), Some(value)) => atomics::update(cx, t, how, value),
        (None, Some(value)) => Ok((Tile::Uniform(0), atomics::store(cx, t, value)?)),
        (_, None) => Ok((atomics::load(cx, t)?, false)),
    }
}

/// What an access with these operands touches.
pub fn target<'p, P: Policy>(
    code: &Code,
    p: &'p Program<P>,
    ptr: Value,
    mask: Option<Value>,
) -> Target<'p> {
    let ty = code.func.ty(ptr);
    let Reg { tile: addresses, origin } = &read(code, p, ptr).reg;
    let elem = ty.elem.pointer().map_or(Scalar::I8, |p| p.pointee);
    let mask = mask.map(|m| &read(code, p, m).reg.tile);
    Target { addresses, origin: *origin, mask, elem, shape: ty.shape }
}

/// Values that go together: those that a loop carries, those that an op gives.
pub type Vals<P> = SmallVec<[Val<<P as Policy>::Lanes>; 2]>;

/// The value in its register.
pub fn read<'p, P: Policy>(code: &Code, p: &'p Program<P>, value: Value) -> &'p Val<P::Lanes> {
    &p.regs[code.register(value)]
}

fn all<P: Policy>(code: &Code, p: &Program<P>, values: &[Value]) -> Vals<P> {
    values.iter().map(|&v| read(code, p, v).clone()).collect()
}

fn kill<P: Policy>(p: &mut Program<P>, registers: &[u32]) {
    for &register in registers {
        let tile = &mut p.regs[register as usize].reg.tile;
        // An image holds no memory, and writing the whole register costs more than this test.
        if tile.uniform().is_none() {
            *tile = Tile::Uniform(0);
        }
    }
}

fn done(at: i128, end: i128, step: i128) -> bool {
    if step < 0 { at <= end } else { at >= end }
}

/// The images of values that are all uniform: equal states are equal rounds.
fn state<L>(values: &[Val<L>]) -> Option<SmallVec<[u64; 4]>> {
    values.iter().map(|v| v.reg.tile.uniform()).collect()
}
