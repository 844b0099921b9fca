//! One program, op by op.
//!
//! Control flow is a stack of frames, not recursion: a program that spins can be put aside in the
//! middle of a loop and taken up again later.

use crate::args::Arg;
use crate::fault::Fault;
use crate::memory::{Access, Memory};
use crate::policy::Policy;
use crate::tile::{Origin, Tile, stored};
use crate::{atomics, cast, combine, dot, elementwise, shape};
use naiad_diag::{Diagnostic, Id};
use naiad_ir::tile::{Tile as Dialect, TileOp};
use naiad_ir::{Block, Function, Inst, OpInfo, Scalar, Value};
use std::sync::atomic::{AtomicBool, Ordering};

/// What is known of a kernel before its programs run.
pub struct Plan<'f> {
    pub func: &'f Function<Dialect>,
    /// The values that nobody reads after an op.
    dies: Vec<Vec<Value>>,
}

impl<'f> Plan<'f> {
    pub fn new(func: &'f Function<Dialect>) -> Plan<'f> {
        let mut dies = vec![Vec::new(); func.num_insts()];
        let mut last_use: Vec<Option<(Block, Inst)>> = vec![None; func.num_values()];
        plan_block(func, func.entry(), &mut last_use, &mut dies);
        Plan { func, dies }
    }
}

/// Finds, for each value that a block defines, the last op of that block that uses it, be it within
/// a region: a value from outside must outlive all iterations of a loop.
fn plan_block(func: &Function<Dialect>, block: Block, last_use: &mut [Option<(Block, Inst)>], dies: &mut [Vec<Value>]) {
    let mut own: Vec<Value> = func.block_params(block).to_vec();
    for &inst in func.insts(block) {
        own.extend(func.results(inst));
    }
    for &v in &own {
        last_use[v.index()] = Some((block, inst_of(func, block, v)));
    }
    for &inst in func.insts(block) {
        let mut note = |v: Value| {
            if let Some((home, at)) = &mut last_use[v.index()]
                && *home == block
            {
                *at = inst;
            }
        };
        func.op(inst).each_value(&mut note);
        func.op(inst).each_block(&mut |b| {
            func.walk_block(b, &mut |inner| func.op(inner).each_value(&mut note));
        });
        func.op(inst).each_block(&mut |b| plan_block(func, b, last_use, dies));
    }
    for v in own {
        if let Some((_, inst)) = last_use[v.index()] {
            dies[inst.index()].push(v);
        }
    }
}

/// The op at which an unused value dies: its own, or the block's first for a parameter.
fn inst_of(func: &Function<Dialect>, block: Block, v: Value) -> Inst {
    match func.def(v) {
        naiad_ir::Def::Result(inst, _) => inst,
        naiad_ir::Def::Param(..) => func.insts(block)[0],
    }
}

/// Why a program stopped running.
pub enum Stop {
    Finished,
    /// It waits in a loop for memory to change. `stuck` says that nothing of its own changed since
    /// the last round either, so only others can end the loop.
    Spins { stuck: bool },
    Failed(Box<Diagnostic>),
}

enum Frame {
    Straight { block: Block, at: usize },
    For { inst: Inst, body: Block, at: usize, next: i128, upper: i128, step: i128, spin: Spin },
    While { inst: Inst, before: Block, after: Block, in_after: bool, at: usize, spin: Spin },
}

/// How often a loop went round without any sign of getting on.
#[derive(Default)]
struct Spin {
    rounds: u32,
    entered: Option<Vec<Tile>>,
    reads: u64,
    writes: u64,
}

/// Rounds of reading memory without a change after which a loop is taken to spin.
const PATIENCE: u32 = 64;

/// The state of one program between ops.
pub struct Program {
    pub id: [u32; 3],
    frames: Vec<Frame>,
    values: Vec<Option<Tile>>,
    /// Accesses that read memory which others may change, and those that changed it.
    reads: u64,
    writes: u64,
    /// The loop that spins, for the report.
    pub spinning_at: Option<Inst>,
}

/// The executor of programs of one launch, on one thread.
pub struct Exec<'a, P> {
    plan: &'a Plan<'a>,
    args: &'a [Arg],
    memory: Memory<'a, P>,
    grid: [u32; 3],
    naive: bool,
    stop: &'a dyn Fn() -> bool,
    spare: Vec<Vec<Option<Tile>>>,
}

impl<'a, P: Policy> Exec<'a, P> {
    pub fn new(plan: &'a Plan<'a>, args: &'a [Arg], grid: [u32; 3], naive: bool, stop: &'a dyn Fn() -> bool) -> Exec<'a, P> {
        Exec { plan, args, memory: Memory::new(args, naive), grid, naive, stop, spare: Vec::new() }
    }

    pub fn start(&mut self, id: [u32; 3]) -> Program {
        let func = self.plan.func;
        let mut values = self.spare.pop().unwrap_or_else(|| vec![None; func.num_values()]);
        for (i, (&param, arg)) in func.params().iter().zip(self.args).enumerate() {
            let ty = func.ty(param);
            values[param.index()] = Some(match arg {
                Arg::Scalar(bits) => {
                    let scalar = stored(ty.elem);
                    Tile::uniform(scalar, ty.shape, bits & scalar.mask())
                }
                Arg::Tensor(t) => Tile::uniform(Scalar::I64, ty.shape, t.address as u64).with_origin(Origin::Arg(i as u32)),
            });
        }
        let frames = vec![Frame::Straight { block: func.entry(), at: 0 }];
        Program { id, frames, values, reads: 0, writes: 0, spinning_at: None }
    }

    /// Takes back a finished program's memory.
    pub fn finish(&mut self, program: Program) {
        let mut values = program.values;
        values.fill(None);
        self.spare.push(values);
    }

    fn get<'p>(&self, p: &'p Program, v: Value) -> &'p Tile {
        p.values[v.index()].as_ref().expect("verified IR defines values before their uses")
    }

    fn set(&self, p: &mut Program, v: Value, tile: Tile) {
        let tile = if self.naive { tile.densified() } else { tile };
        p.values[v.index()] = Some(tile);
    }

    fn take(&self, p: &Program, values: &[Value]) -> Vec<Tile> {
        values.iter().map(|&v| self.get(p, v).clone()).collect()
    }

    fn give(&self, p: &mut Program, values: &[Value], tiles: Vec<Tile>) {
        for (&v, tile) in values.iter().zip(tiles) {
            self.set(p, v, tile);
        }
    }

    fn drop_dead(&self, p: &mut Program, inst: Inst) {
        for v in &self.plan.dies[inst.index()] {
            p.values[v.index()] = None;
        }
    }

    /// Runs until the program ends, fails, or waits for others.
    pub fn run(&mut self, p: &mut Program) -> Stop {
        let func = self.plan.func;
        loop {
            let Some(frame) = p.frames.last_mut() else { return Stop::Finished };
            let (block, at) = match frame {
                Frame::Straight { block, at } => (*block, at),
                Frame::For { body, at, .. } => (*body, at),
                Frame::While { before, after, in_after, at, .. } => (if *in_after { *after } else { *before }, at),
            };
            let inst = func.insts(block)[*at];
            *at += 1;
            let result = match func.op(inst) {
                TileOp::Return {} => return Stop::Finished,
                TileOp::Yield { values } => self.yielded(p, inst, values),
                TileOp::Condition { cond, values } => self.condition(p, inst, *cond, values),
                TileOp::If { cond, then, otherwise } => {
                    let taken = if self.get(p, *cond).lane(0) & 1 != 0 { *then } else { *otherwise };
                    p.frames.push(Frame::Straight { block: taken, at: 0 });
                    continue;
                }
                TileOp::For { lower, upper, step, inits, body, .. } => {
                    let bound = |v: &Value| signed(self.get(p, *v));
                    let (next, upper, step) = (bound(lower), bound(upper), bound(step));
                    let carried = self.take(p, inits);
                    if step == 0 {
                        return Stop::Failed(self.failed(p, inst, Id::BadArgument, "the step of a loop is 0", ""));
                    }
                    let frame = Frame::For { inst, body: *body, at: 0, next, upper, step, spin: Spin::default() };
                    p.frames.push(frame);
                    self.iterate(p, carried);
                    continue;
                }
                TileOp::While { inits, before, after } => {
                    let carried = self.take(p, inits);
                    self.give(p, func.block_params(*before), carried);
                    p.frames.push(Frame::While { inst, before: *before, after: *after, in_after: false, at: 0, spin: Spin::default() });
                    continue;
                }
                op => {
                    let done = self.op(p, inst, op).map(|()| None);
                    self.drop_dead(p, inst);
                    done
                }
            };
            match result {
                Ok(None) => {}
                Ok(Some(stop)) => return stop,
                Err(diagnostic) => return Stop::Failed(diagnostic),
            }
        }
    }

    /// Starts the next iteration of the loop on top with these carried values, or ends the loop.
    fn iterate(&self, p: &mut Program, carried: Vec<Tile>) {
        let func = self.plan.func;
        let Some(Frame::For { inst, body, at, next, upper, step, .. }) = p.frames.last_mut() else { return };
        let (inst, body) = (*inst, *body);
        let goes_on = if *step > 0 { *next < *upper } else { *next > *upper };
        if !goes_on {
            p.frames.pop();
            self.give(p, func.results(inst), carried);
            self.drop_dead(p, inst);
            return;
        }
        let iv = *next;
        *next += *step;
        *at = 0;
        let params = func.block_params(body);
        let ty = stored(func.ty(params[0]).elem);
        p.values[params[0].index()] = Some(Tile::uniform(ty, naiad_ir::Shape::SCALAR, iv as u64 & ty.mask()));
        self.give(p, &params[1..], carried);
    }

    fn yielded(&self, p: &mut Program, inst: Inst, values: &[Value]) -> Result<Option<Stop>, Box<Diagnostic>> {
        let func = self.plan.func;
        let tiles = self.take(p, values);
        self.drop_dead(p, inst);
        match p.frames.last() {
            Some(Frame::Straight { .. }) => {
                p.frames.pop();
                let owner = self.owner(p);
                self.give(p, func.results(owner), tiles);
                self.drop_dead(p, owner);
                Ok(None)
            }
            Some(Frame::For { inst: owner, .. }) => {
                let owner = *owner;
                let stop = self.went_round(p, owner, &[]);
                self.iterate(p, tiles);
                stop
            }
            Some(Frame::While { inst: owner, before, .. }) => {
                let (owner, before) = (*owner, *before);
                let stop = self.went_round(p, owner, &tiles);
                if let Some(Frame::While { in_after, at, .. }) = p.frames.last_mut() {
                    *in_after = false;
                    *at = 0;
                }
                self.give(p, func.block_params(before), tiles);
                stop
            }
            None => Ok(None),
        }
    }

    /// The `if` whose branch has just ended: the op before the place of the frame below.
    fn owner(&self, p: &Program) -> Inst {
        let func = self.plan.func;
        let (block, at) = match p.frames.last() {
            Some(Frame::Straight { block, at }) => (*block, *at),
            Some(Frame::For { body, at, .. }) => (*body, *at),
            Some(Frame::While { before, after, in_after, at, .. }) => (if *in_after { *after } else { *before }, *at),
            None => (func.entry(), 1),
        };
        func.insts(block)[at - 1]
    }

    fn condition(&self, p: &mut Program, inst: Inst, cond: Value, values: &[Value]) -> Result<Option<Stop>, Box<Diagnostic>> {
        let func = self.plan.func;
        let goes_on = self.get(p, cond).lane(0) & 1 != 0;
        let tiles = self.take(p, values);
        self.drop_dead(p, inst);
        let Some(Frame::While { inst: owner, after, in_after, at, .. }) = p.frames.last_mut() else { return Ok(None) };
        let (owner, after) = (*owner, *after);
        if goes_on {
            *in_after = true;
            *at = 0;
            self.give(p, func.block_params(after), tiles);
        } else {
            p.frames.pop();
            self.give(p, func.results(owner), tiles);
            self.drop_dead(p, owner);
        }
        Ok(None)
    }

    /// At the end of a round of a loop: whether the program spins, and whether the launch is over.
    fn went_round(&self, p: &mut Program, owner: Inst, carried: &[Tile]) -> Result<Option<Stop>, Box<Diagnostic>> {
        let (reads, writes) = (p.reads, p.writes);
        let Some(Frame::For { spin, .. } | Frame::While { spin, .. }) = p.frames.last_mut() else { return Ok(None) };
        let waits = reads > spin.reads && writes == spin.writes;
        let unchanged = waits
            && spin.entered.as_ref().is_some_and(|old| old.len() == carried.len() && old.iter().zip(carried).all(|(a, b)| a.same(b)));
        let in_while = matches!(self.plan.func.op(owner), TileOp::While { .. });
        spin.rounds = if waits { spin.rounds + 1 } else { 0 };
        (spin.reads, spin.writes) = (reads, writes);
        if waits && in_while {
            spin.entered = Some(carried.to_vec());
        }
        let spins = spin.rounds >= PATIENCE;
        if (self.stop)() {
            return Err(Box::new(interrupted(self.plan.func)));
        }
        if !spins {
            return Ok(None);
        }
        p.spinning_at = Some(owner);
        Ok(Some(Stop::Spins { stuck: unchanged && in_while }))
    }

    fn failed(&self, p: &Program, inst: Inst, id: Id, message: &str, label: &str) -> Box<Diagnostic> {
        let func = self.plan.func;
        let [x, y, z] = p.id;
        let message = format!("kernel `{}`, program ({x}, {y}, {z}): {message}", func.name);
        Box::new(Diagnostic::new(id, message).primary_at(&func.places, func.loc(inst), label))
    }

    fn fault(&self, p: &Program, inst: Inst, fault: &Fault) -> Box<Diagnostic> {
        Box::new(fault.report(self.plan.func, self.args, inst, p.id))
    }

    /// Any op without control flow.
    fn op(&self, p: &mut Program, inst: Inst, op: &TileOp) -> Result<(), Box<Diagnostic>> {
        let func = self.plan.func;
        let results = func.results(inst);
        let shape_of = |i: usize| func.ty(results[i]).shape;
        let tile = match op {
            TileOp::Const { value } => Tile::uniform(value.ty, naiad_ir::Shape::SCALAR, value.bits),
            TileOp::ProgramId { axis } => Tile::uniform(Scalar::I32, naiad_ir::Shape::SCALAR, p.id[*axis as usize] as u64),
            TileOp::NumPrograms { axis } => Tile::uniform(Scalar::I32, naiad_ir::Shape::SCALAR, self.grid[*axis as usize] as u64),
            TileOp::Arange { start, end } => shape::arange(*start, *end, shape_of(0)),
            TileOp::Splat { src, .. } => shape::splat(self.get(p, *src), shape_of(0)),
            TileOp::ExpandDims { src, axis } => shape::expand_dims(self.get(p, *src), *axis, shape_of(0)),
            TileOp::Broadcast { src, .. } => shape::broadcast(self.get(p, *src), shape_of(0)),
            TileOp::Reshape { src, .. } if shape_of(0).is_scalar() => shape::splat(self.get(p, *src), shape_of(0)),
            TileOp::Reshape { src, .. } => shape::reshape(self.get(p, *src), shape_of(0)),
            TileOp::Permute { src, order } => shape::permute(self.get(p, *src), order, shape_of(0)),
            TileOp::Join { a, b } => shape::join(self.get(p, *a), self.get(p, *b), shape_of(0)),
            TileOp::Split { src } => {
                let halves = [0, 1].map(|i| shape::half(self.get(p, *src), i, shape_of(0)));
                self.give(p, results, halves.into());
                return Ok(());
            }
            TileOp::Cat { a, b, axis } => shape::cat(self.get(p, *a), self.get(p, *b), *axis, shape_of(0)),
            TileOp::Unary { f, x } => elementwise::unary(*f, self.get(p, *x)),
            TileOp::Binary { f, a, b } => elementwise::binary(*f, self.get(p, *a), self.get(p, *b)),
            TileOp::Ternary { f, a, b, c } => elementwise::ternary(*f, self.get(p, *a), self.get(p, *b), self.get(p, *c)),
            TileOp::Compare { p: predicate, a, b } => elementwise::compare(*predicate, self.get(p, *a), self.get(p, *b)),
            TileOp::Select { cond, yes, no } => elementwise::select(self.get(p, *cond), self.get(p, *yes), self.get(p, *no)),
            TileOp::Cast { src, to, rounding } => cast::cast(self.get(p, *src), *to, *rounding),
            TileOp::Bitcast { src, to } => cast::bitcast(self.get(p, *src), stored(*to)),
            TileOp::PtrAdd { ptr, offset } => {
                let size = func.ty(*ptr).elem.pointer().map_or(1, |t| t.pointee.size());
                elementwise::ptr_add(self.get(p, *ptr), self.get(p, *offset), size)
            }
            TileOp::Load { ptr, mask, other, .. } => {
                let access = self.access(p, *ptr, *mask, false);
                let loaded = self.memory.load(&access, other.map(|o| self.get(p, o)));
                let tile = loaded.map_err(|f| self.fault(p, inst, &f))?;
                p.reads += 1;
                tile
            }
            TileOp::Store { ptr, value, mask, .. } => {
                let access = self.access(p, *ptr, *mask, true);
                let stored = self.memory.store(&access, self.get(p, *value));
                stored.map_err(|f| self.fault(p, inst, &f))?;
                p.writes += 1;
                return Ok(());
            }
            TileOp::AtomicRmw { f, ptr, value, mask, .. } => {
                let access = self.access(p, *ptr, *mask, true);
                let done = atomics::rmw(&self.memory, &access, *f, self.get(p, *value));
                let done = done.map_err(|f| self.fault(p, inst, &f))?;
                p.reads += 1;
                p.writes += done.changed as u64;
                done.old
            }
            TileOp::AtomicCas { ptr, compare, value, .. } => {
                let access = self.access(p, *ptr, None, true);
                let done = atomics::cas(&self.memory, &access, self.get(p, *compare), self.get(p, *value));
                let done = done.map_err(|f| self.fault(p, inst, &f))?;
                p.reads += 1;
                p.writes += done.changed as u64;
                done.old
            }
            TileOp::Dot { a, b, acc, out, .. } => {
                dot::dot(self.get(p, *a), self.get(p, *b), acc.map(|v| self.get(p, v)), *out, shape_of(0))
            }
            TileOp::Reduce { inputs, axis, body } => {
                let tiles = combine::reduce(func, *body, &self.take(p, inputs), *axis);
                let tiles = tiles.map_err(|m| self.failed(p, inst, Id::UnsupportedPython, &format!("{m} is not supported yet"), ""))?;
                self.give(p, results, tiles);
                return Ok(());
            }
            TileOp::Scan { inputs, axis, reverse, body } => {
                let tiles = combine::scan(func, *body, &self.take(p, inputs), *axis, *reverse);
                let tiles = tiles.map_err(|m| self.failed(p, inst, Id::UnsupportedPython, &format!("{m} is not supported yet"), ""))?;
                self.give(p, results, tiles);
                return Ok(());
            }
            TileOp::Hint { src, .. } => self.get(p, *src).clone(),
            // One program is one thread here, so its accesses are ordered already.
            TileOp::Barrier {} | TileOp::Assume { .. } => return Ok(()),
            TileOp::For { .. } | TileOp::While { .. } | TileOp::If { .. } | TileOp::Yield { .. } | TileOp::Condition { .. } | TileOp::Return {} => {
                return Ok(());
            }
        };
        self.set(p, results[0], tile);
        Ok(())
    }

    fn access<'p>(&self, p: &'p Program, ptr: Value, mask: Option<Value>, writes: bool) -> Access<'p> {
        let elem = self.plan.func.ty(ptr).elem.pointer().map_or(Scalar::I8, |t| t.pointee);
        Access { ptr: self.get(p, ptr), mask: mask.map(|m| self.get(p, m)), elem, writes }
    }

    /// How often this program has changed memory.
    pub fn writes(p: &Program) -> u64 {
        p.writes
    }
}

/// A loop's bound: compared as a signed number even if its type is unsigned.
fn signed(x: &Tile) -> i128 {
    let unused = 64 - x.ty.bits();
    ((x.lane(0) << unused) as i64 >> unused) as i128
}

pub fn interrupted(func: &Function<Dialect>) -> Diagnostic {
    Diagnostic::new(Id::Interrupted, format!("the launch of `{}` was interrupted", func.name))
}

/// Whether a flag from outside is set.
pub fn is_set(flag: Option<&AtomicBool>) -> bool {
    flag.is_some_and(|f| f.load(Ordering::Relaxed))
}
