//! The checked policy: values as ever, and a judgement of everything that a launch does.
//!
//! ```text
//!   lanes      what each lane of a value is owed to: data, padding, undefined, arbitrary
//!   derive     ... through ops that work lane by lane
//!   points     ... where lanes meet: did flagged lanes change the result?
//!   products   ... in matrix products, sorting and counting
//!   judge      ... and did that change what is stored? by a private run (replay) without them
//!   touch      loads, stores and atomics: views, undefined lanes, specials
//!   wrap       offsets that wrapped, up to the address
//!   numeric    where NaN and infinities come from; zero divisors
//!   regions    memory by storages; uninitialized elements and unwritten outputs
//!   shadow     who wrote and read each element
//!   sync       which programs are ordered
//!   races      ... and which are not though they share an element
//!   promise    hints that do not hold
//!   flat       views that are addressed as if they were contiguous
//!   facts      what is known of the kernel's text beforehand
//!   report     how it is said; report_memory: of memory and programs
//! ```
//!
//! What is found and is not a fault that ends the launch goes to [`crate::fault::Findings`]: the worst of
//! each kind for each op.

mod derive;
mod facts;
mod flat;
mod judge;
mod lanes;
mod numeric;
mod points;
mod products;
mod promise;
mod races;
mod regions;
mod replay;
mod report;
mod report_memory;
mod shadow;
mod sync;
mod touch;
mod wrap;

pub use lanes::Lanes;
pub use races::Recent;
pub use replay::Overlay;

use crate::code::{Code, Prepared};
use crate::combine::Job;
use crate::dot;
use crate::exec::{Exec, Program, Shared, Val, Vals, read};
use crate::fault::Fault;
use crate::memory::Memory;
use crate::ops::{Env, Reg, Results};
use crate::policy::{Known, Policy};
use crate::sorting;
use crate::tile::{Tile, stored};
use crate::{engine::In, shapes};
use derive::Operand;
use facts::{Facts, Recurrence};
use lanes::Class;
use naiad_diag::{Id, Severity};
use naiad_ir::scalar::BinaryFn;
use naiad_ir::tile::{Tile as TileIr, TileOp, one_function};
use naiad_ir::{Function, Inst, OpInfo, Scalar, Shape, Value};
use points::{Input, Point};
use regions::Regions;
use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Mutex;

pub struct Checked;

/// What is kept for each program.
#[derive(Default)]
pub struct State {
    /// The program runs for its checker alone.
    pub private: Option<Overlay>,
    /// The epoch that it is in, see [`sync`]; its number and 1 where nothing is ever ordered.
    pub epoch: u32,
    /// What it stored since the last barrier.
    pub recent: Vec<Recent>,
    /// It stored more than is remembered.
    pub forgot: bool,
    /// What it does if nothing is left out, once that was asked.
    pub base: Option<Rc<replay::Private>>,
}

impl State {
    /// What was stored before is seen by all lanes from here on.
    fn passed_barrier(&mut self) {
        self.recent.clear();
        self.forgot = false;
    }
}

/// What the programs of a checked launch share.
pub struct Checker {
    pub facts: Facts,
    pub regions: Regions,
    views: flat::Views,
    /// Only where some access may order programs.
    sync: Option<sync::Sync>,
    log: Mutex<Vec<races::Read>>,
    judged: Mutex<FxHashMap<Inst, judge::Tries>>,
    traced: Mutex<FxHashMap<Inst, u32>>,
    /// How an op wrapped, in words.
    wraps: Mutex<FxHashMap<Inst, String>>,
    /// Programs are too many to be told apart by 31 bits.
    crowded: bool,
}

impl Checker {
    pub fn new(
        func: &Function<TileIr>,
        memory: &Memory<'_>,
        programs: u64,
        fresh: &[Range<usize>],
    ) -> Checker {
        let facts = Facts::new(func);
        let regions = Regions::new(func, &facts, memory, fresh);
        let orders = regions.all.iter().any(|r| r.acquires);
        Checker {
            sync: (orders && regions.all.iter().any(|r| r.shadow.is_some() || r.narrow))
                .then(Default::default),
            facts,
            regions,
            views: flat::Views::new(memory),
            log: Mutex::default(),
            judged: Mutex::default(),
            traced: Mutex::default(),
            wraps: Mutex::default(),
            crowded: programs >= u64::from(shadow::AND_OTHERS),
        }
    }

    /// What can be said only when all programs have ended.
    pub fn finish(&self, shared: &Shared<'_>) {
        races::sweep(self, shared);
        touch::unwritten(self, shared);
        flat::finish(self, shared);
    }

    /// Names of the arguments that the launch changed and read before.
    pub fn updated(&self, shared: &Shared<'_>) -> Vec<String> {
        races::updated(self, shared)
    }
}

/// The checker of a checked launch.
pub fn checker<'a>(exec: &Exec<'a, Checked>) -> &'a Checker {
    exec.shared.check.expect("a checked launch has a checker")
}

type P = Program<Checked>;

impl Policy for Checked {
    type Lanes = Lanes;
    type State = State;
    const CHECKED: bool = true;

    fn begins(exec: &Exec<'_, Checked>, p: &mut P) {
        let number = p.number as u32;
        let epoch = checker(exec).sync.as_ref().map_or(number.wrapping_add(1), |s| s.begin(number));
        p.state = State { epoch, ..State::default() };
    }

    fn computed(
        exec: &mut Exec<'_, Checked>,
        p: &mut P,
        inst: Inst,
        results: &mut Results,
    ) -> Result<Known<Checked>, Fault> {
        let code = exec.shared.code;
        let op = code.func.op(inst);
        let mut class = Class::K;
        let mut plain = true;
        op.each_value(&mut |v| {
            let lanes = &read(code, p, v).lanes;
            class = class.max(lanes.class);
            plain &= lanes.is_plain();
        });
        divisor(exec, p, inst, op);
        let known = if plain {
            smallvec![Lanes::all(class); results.len()]
        } else {
            flagged(exec, p, inst, op, results)?
        };
        let known = wrapped(exec, p, inst, op, results, known);
        if let TileOp::Hint { src, kind, values } = op {
            promise::check(exec, p, inst, *src, *kind, values);
        }
        if let Some(own) = &p.state.private
            && own.borrow().trace.is_some()
        {
            trace(exec, p, inst, op, results, &known);
        }
        Ok(known)
    }

    fn branches(exec: &mut Exec<'_, Checked>, p: &mut P, inst: Inst, cond: Value) {
        let lanes = &read(exec.shared.code, p, cond).lanes;
        if lanes.class >= Class::U && p.state.private.is_none() {
            let lanes = lanes.clone();
            touch::used(exec, p, inst, &lanes, lanes.class, None, "decides a branch here");
        }
    }

    fn touches(
        exec: &mut Exec<'_, Checked>,
        p: &mut P,
        inst: Inst,
        op: &TileOp,
    ) -> Result<(), Fault> {
        touch::before(exec, p, inst, op)
    }

    fn touched(
        exec: &mut Exec<'_, Checked>,
        p: &mut P,
        inst: Inst,
        op: &TileOp,
        results: &mut Vals<Checked>,
        changed: bool,
    ) {
        touch::after(exec, p, inst, op, results, changed);
    }

    fn overlay(p: &P) -> Option<Overlay> {
        p.state.private.clone()
    }
}

fn operand<'p>(code: &Code, facts: &Facts, p: &'p P, v: Value) -> Operand<'p> {
    let Val { reg, lanes } = read(code, p, v);
    let ty = stored(code.func.ty(v).elem);
    Operand { lanes, tile: &reg.tile, ty, uniform: facts.uniform(v) }
}

fn input<'p>(code: &Code, p: &'p P, v: Value) -> Input<'p> {
    let Val { reg, lanes } = read(code, p, v);
    let ty = code.func.ty(v);
    Input { tile: &reg.tile, lanes, ty: stored(ty.elem), shape: ty.shape }
}

/// The classes of an op's results where not all operands are plain; judges where lanes meet.
fn flagged(
    exec: &mut Exec<'_, Checked>,
    p: &mut P,
    inst: Inst,
    op: &TileOp,
    results: &mut Results,
) -> Result<Known<Checked>, Fault> {
    let shared = exec.shared;
    let code = shared.code;
    let func = &*code.func;
    let facts = &checker(exec).facts;
    let shape = func.results(inst).first().map_or(Shape::SCALAR, |&r| func.ty(r).shape);
    let lanes = |v: Value| &read(code, p, v).lanes;
    let of = |v: Value| operand(code, facts, p, v);
    let from = |v: Value| func.ty(v).shape;
    let point = match op {
        TileOp::Splat { src, .. } => {
            return Ok(smallvec![lanes(*src).moved(&shape, |t, _| t.clone())]);
        }
        TileOp::ExpandDims { src, axis } => {
            return Ok(smallvec![lanes(*src).moved(&shape, |t, _| shapes::expand_dims(
                t,
                &from(*src),
                &shape,
                *axis
            ))]);
        }
        TileOp::Broadcast { src, .. } => {
            return Ok(smallvec![lanes(*src).moved(&shape, |t, _| shapes::broadcast(
                t,
                &from(*src),
                &shape
            ))]);
        }
        TileOp::Reshape { src, .. } => {
            return Ok(smallvec![lanes(*src).moved(&shape, |t, ty| shapes::reshape(
                t,
                ty,
                &from(*src),
                &shape
            ))]);
        }
        TileOp::Permute { src, order } => {
            return Ok(smallvec![lanes(*src).moved(&shape, |t, _| shapes::permute(
                t,
                &from(*src),
                &shape,
                order
            ))]);
        }
        TileOp::Flip { src, axis } => {
            return Ok(smallvec![lanes(*src).moved(&shape, |t, _| shapes::flip(t, &shape, *axis))]);
        }
        TileOp::Split { src } => {
            let half = |i| lanes(*src).moved(&shape, |t, ty| shapes::split(t, ty, &from(*src), i));
            return Ok(smallvec![half(0), half(1)]);
        }
        TileOp::Join { a, b } => {
            return Ok(smallvec![stacked(lanes(*a), lanes(*b), &from(*a), &shape, None)]);
        }
        TileOp::Cat { a, b, axis } => {
            return Ok(smallvec![stacked(lanes(*a), lanes(*b), &from(*a), &shape, Some(*axis))]);
        }
        TileOp::Select { cond, yes, no } => {
            return Ok(smallvec![derive::select(of(*cond), of(*yes), of(*no), &shape)]);
        }
        TileOp::Binary { f, a, b } => {
            let own = derive::binary(*f, of(*a), of(*b), &shape);
            let side = facts.recurrence(inst);
            let (acc, t) = match side {
                None => return Ok(smallvec![own]),
                Some(Recurrence::First) => (*a, *b),
                Some(Recurrence::Second) => (*b, *a),
            };
            points::recurrence(input(code, p, acc), input(code, p, t), &results[0], own)
        }
        TileOp::Sort { src, .. } | TileOp::TopK { src, .. } => {
            return Ok(smallvec![products::sort(input(code, p, *src), &results[0].tile, &shape)]);
        }
        TileOp::Gather { src, index, axis } => {
            let ty = stored(func.ty(*index).elem);
            let (source, at) = (lanes(*src), In { tile: &read(code, p, *index).reg.tile, ty });
            let chosen = source.moved(&shape, |t, ty| {
                sorting::gather(t, ty, &from(*src), at, &shape, *axis, code.wide)
            });
            let chosen = Operand { lanes: &chosen, ..of(*src) };
            return Ok(smallvec![derive::elementwise(&[chosen, of(*index)], &shape)]);
        }
        TileOp::Reduce { .. } | TileOp::Scan { .. } => combined(exec, p, inst, op, results)?,
        TileOp::Dot { a, b, acc, out, .. } => {
            let (x, y) = (input(code, p, *a), input(code, p, *b));
            let start = acc.map(|v| &read(code, p, v).reg.tile);
            let again = |s: &Tile, t: &Tile| {
                let (s, t) =
                    (dot::Matrix::new(s, x.ty, x.shape), dot::Matrix::new(t, y.ty, y.shape));
                dot::dot(&s, &t, start, *out, &shape, None)
            };
            products::dot(x, y, acc.map(lanes), (&results[0], *out, shape), again)
        }
        TileOp::Histogram { src, mask, bins } => {
            let x = input(code, p, *src);
            let mask = mask.map(|m| &read(code, p, m).reg.tile);
            let at = In { tile: x.tile, ty: x.ty };
            let again =
                |m: &Tile| sorting::histogram(at, Some(m), &x.shape, *bins as usize, code.wide);
            products::histogram(x, mask, (&results[0], shape), again)
        }
        TileOp::Map { inputs, .. } => {
            let all: SmallVec<[Operand<'_>; 4]> = inputs.iter().map(|&v| of(v)).collect();
            let lanes = derive::elementwise(&all, &shape);
            return Ok(smallvec![lanes; results.len()]);
        }
        op => {
            let mut all: SmallVec<[Operand<'_>; 4]> = SmallVec::new();
            op.each_value(&mut |v| all.push(of(v)));
            return Ok(smallvec![derive::elementwise(&all, &shape); results.len()]);
        }
    };
    if let Some(suspect) = point.suspect {
        judge::suspect(exec, p, inst, results, suspect);
    }
    Ok(point.lanes)
}

/// The classes of two tiles as one.
fn stacked(a: &Lanes, b: &Lanes, from: &Shape, to: &Shape, axis: Option<usize>) -> Lanes {
    let (x, y) = (Tile::Dense(a.bytes(from)), Tile::Dense(b.bytes(from)));
    let both = match axis {
        None => shapes::join(&x, &y, Scalar::U8, from),
        Some(axis) => shapes::cat(&x, &y, Scalar::U8, from, axis),
    };
    Lanes::each(both.dense(Scalar::U8, to), to, derive::source_of(a, b))
}

fn combined(
    exec: &Exec<'_, Checked>,
    p: &P,
    inst: Inst,
    op: &TileOp,
    results: &Results,
) -> Result<Point, Fault> {
    let (TileOp::Reduce { inputs, axis, body } | TileOp::Scan { inputs, axis, body, .. }) = op
    else {
        return Err(crate::ops::internal(op));
    };
    let shared = exec.shared;
    let code = shared.code;
    let number = p.number;
    let stopped = move || (shared.stopped)(number);
    let &Prepared::Combine(how) = code.prepared(inst) else { return Err(crate::ops::internal(op)) };
    let Some(&first) = inputs.first() else { return Err(crate::ops::internal(op)) };
    let env = Env {
        code,
        program: p.coordinates,
        grid: shared.grid,
        lift: None,
        naive: shared.naive,
        in_order: shared.in_order,
        stopped: &stopped,
    };
    let job = Job {
        env,
        body: *body,
        types: inputs.iter().map(|&v| code.scalar(v)).collect(),
        shape: code.func.ty(first).shape,
        axis: *axis,
    };
    let regs: SmallVec<[Reg; 2]> = inputs.iter().map(|&v| read(code, p, v).reg.clone()).collect();
    let lanes: SmallVec<[&Lanes; 2]> = inputs.iter().map(|&v| &read(code, p, v).lanes).collect();
    let function = one_function(&code.func, *body).filter(|f| f.is_commutative());
    match op {
        TileOp::Scan { reverse, .. } => {
            points::scan(&job, how, function, &regs, &lanes, results, *reverse)
        }
        _ => points::reduce(&job, how, function, &regs, &lanes, results),
    }
}

/// Carries on what integers and addresses would be if none had wrapped, and finds those that wrap.
fn wrapped(
    exec: &Exec<'_, Checked>,
    p: &P,
    inst: Inst,
    op: &TileOp,
    results: &Results,
    mut known: Known<Checked>,
) -> Known<Checked> {
    let code = exec.shared.code;
    let checker = checker(exec);
    if !matches!(op, TileOp::PtrAdd { .. }) && !checker.facts.is_address(inst) {
        return known;
    }
    let (Some(reg), Some(lanes)) = (results.first(), known.first_mut()) else { return known };
    let shape = code.func.results(inst).first().map_or(Shape::SCALAR, |&r| code.func.ty(r).shape);
    let int = |v: Value| {
        let Val { reg, lanes } = read(code, p, v);
        wrap::Int { tile: &reg.tile, lanes, ty: code.scalar(v) }
    };
    let exact = match op {
        TileOp::Binary { f, a, b } => {
            let found = wrap::binary(*f, int(*a), int(*b), &reg.tile, &shape, inst);
            if found.as_ref().is_some_and(|e| e.at == inst) {
                let mut wraps =
                    checker.wraps.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                wraps.entry(inst).or_insert_with(|| report::wrapping(*f, int(*a), int(*b), &shape));
            }
            found
        }
        TileOp::Unary { f, x } => wrap::unary(*f, int(*x), &shape),
        TileOp::Select { cond, yes, no } => {
            wrap::select(&read(code, p, *cond).reg.tile, int(*yes), int(*no), &shape)
        }
        TileOp::Cast { src, to, .. } if to.is_signed() => {
            read(code, p, *src).lanes.exact().cloned()
        }
        TileOp::Hint { src, .. } => read(code, p, *src).lanes.exact().cloned(),
        TileOp::PtrAdd { ptr, offset } => {
            let size = code.func.ty(*ptr).elem.pointer().map_or(1, |p| p.pointee.size());
            wrap::pointer(int(*ptr), int(*offset), size, &shape)
        }
        // Moves of lanes have taken it along.
        _ => return known,
    };
    if exact.is_some() || lanes.exact().is_some() {
        *lanes = std::mem::take(lanes).with_exact(exact);
    }
    known
}

/// Integer division by zero in a lane that is no padding.
fn divisor(exec: &Exec<'_, Checked>, p: &P, inst: Inst, op: &TileOp) {
    let TileOp::Binary { f: BinaryFn::Idiv | BinaryFn::Rem, b, .. } = op else { return };
    let code = exec.shared.code;
    let (ty, shape) = (code.scalar(*b), code.func.ty(*b).shape);
    if !ty.is_int() || p.state.private.is_some() {
        return;
    }
    let Val { reg, lanes } = read(code, p, *b);
    let Some((lane, class)) = numeric::zero_lane(&reg.tile, ty, &shape, lanes) else { return };
    // What is no data may stand in lanes that nobody looks at.
    let severity =
        if class == Class::V || shape.is_scalar() { Severity::Error } else { Severity::Warning };
    let site = exec.site(p, inst);
    if exec.shared.findings.wants(&site, Id::ZeroDivisor, severity) {
        exec.shared.findings.add(&site, report::zero_divisor(&site, &shape, lane, severity));
    }
}

/// Shows a tracing run what an op made of its operands.
fn trace(
    exec: &Exec<'_, Checked>,
    p: &P,
    inst: Inst,
    op: &TileOp,
    results: &Results,
    known: &Known<Checked>,
) {
    let code = exec.shared.code;
    let func = &*code.func;
    let Some(own) = &p.state.private else { return };
    let seen = |v: Value, reg: &Reg| -> bool {
        stored(func.ty(v).elem).is_float() && !matches!(reg.tile, Tile::Affine(_))
    };
    let mut operands = SmallVec::<[Value; 4]>::new();
    op.each_value(&mut |v| operands.push(v));
    let regs: SmallVec<[(Value, Reg); 4]> =
        operands.iter().map(|&v| (v, read(code, p, v).reg.clone())).collect();
    let view = |v: Value, tile| numeric::Seen {
        value: v,
        tile,
        ty: code.scalar(v),
        shape: func.ty(v).shape,
        carried: touch::is_carried(func, v),
    };
    let operands: Vec<numeric::Seen<'_>> =
        regs.iter().map(|(v, reg)| view(*v, &reg.tile)).collect();
    let mut own = own.borrow_mut();
    let Some(trace) = &mut own.trace else { return };
    for ((&result, reg), lanes) in func.results(inst).iter().zip(results).zip(known) {
        if seen(result, reg) {
            trace.see((inst, op.is_lanewise()), &operands, &view(result, &reg.tile), lanes);
        }
    }
}
