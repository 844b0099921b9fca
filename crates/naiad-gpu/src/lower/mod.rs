//! What one thread does.
//!
//! A tile is the values of a thread's registers, in the order of its layout; a scalar is one value. Ops
//! that move no element are made register by register. The others:
//!
//! ```text
//!   access      global memory, by vectors as far as layout, addresses and mask allow    access.rs
//!   rows        tiles read from global memory by short rows that begin anywhere        rows.rs
//!   atomics     one thread for each element, its result told to the replicas            atomics.rs
//!   exchange    conversions; whatever goes through shared memory                        exchange.rs
//!   combine     reductions and scans: registers, then lanes, then warps                 combine.rs
//!   order       sort, topk, gather, histogram                                           order.rs
//!   print       each element printed by its owner                                       print.rs
//!   staged      tiles in slots of shared memory                                      staged.rs
//!   faults      assertions, guards of accesses                                         faults.rs
//!   dot         matrix units, or multiply-adds                                          dot.rs
//!   control     loops, branches, regions over elements                                  control.rs
//!   programs    how programs share blocks                                            programs.rs
//!   index       which element a place holds, as arithmetic on the thread's number       index.rs
//! ```
//!
//! Shared memory that an op needs for itself is the same for all of them: see `room.rs`.

mod access;
mod atomics;
mod combine;
mod control;
mod dot;
mod elementwise;
mod exchange;
mod faults;
mod index;
mod order;
mod print;
mod programs;
mod room;
mod rows;
mod staged;

use crate::layout::Layout;
use crate::placed::{Extra, Placed, PlacedOp, What};
use crate::watch::Watch;
use crate::{Code, Options, Unsupported};
use naiad_ir::thread::{Builder, ThreadElem, ThreadOp, Vector};
use naiad_ir::tile::TileOp;
use naiad_ir::{Elem, Function, Inst, Scalar, Shape, Value};
pub use programs::Sharing;
use room::InUse;
use rustc_hash::FxHashMap;

type Lowered<T> = Result<T, Unsupported>;

/// The values of a tile's registers; one for a scalar.
type Registers = Vec<Value>;

struct Lower<'a> {
    f: &'a Function<Placed>,
    options: &'a Options,
    sharing: Sharing,
    b: Builder,
    /// Of each program that is made at once.
    values: Vec<FxHashMap<Value, Registers>>,
    /// Which of them it is just now.
    which: usize,
    /// The thread's number within its program.
    thread: Value,
    /// The program's number along axis 0, and how many there are.
    program: Value,
    programs: Value,
    /// Where the program's shared memory begins, and its bytes.
    shared: Value,
    bytes: u32,
    /// Bytes at its start that are not for the ops' own needs.
    reserved: u32,
    /// What ops left in shared memory that a thread may still be reading.
    in_use: InUse,
    /// Where buffers in shared memory begin.
    buffers: FxHashMap<Value, u32>,
    /// Numbers and addresses that are another and a constant, so that a thread's registers share the
    /// other. Of numbers narrower than 64 bits those alone whose sum does not wrap.
    sums: FxHashMap<Value, (Value, i64)>,
    /// Numbers of 64 bits and addresses that are another, and a number that is the same in all threads.
    apart: FxHashMap<Value, (Value, Value)>,
    /// Elements that were taken out of 32-bit words, with the words.
    words: FxHashMap<Vec<Value>, Value>,
    watch: Option<&'a Watch>,
    /// The address of the record of faults; where arguments' memory begins, and its bytes.
    record: Option<Value>,
    extents: Vec<[Value; 2]>,
}

/// Lowers a placed kernel.
pub fn lower(
    f: &Function<Placed>,
    sharing: Sharing,
    options: &Options,
    watch: Option<Watch>,
) -> Lowered<Code> {
    let mut b = Builder::new(&f.name);
    b.func.places = f.places.clone();
    let mut values = FxHashMap::default();
    for (&param, name) in f.params().iter().zip(&f.param_names) {
        let ty = Vector::of(stored(f.ty(param).ty.elem), 1);
        values.insert(param, vec![b.func.add_param(name, ty.into())]);
    }
    let programs = b.func.add_param("programs", Vector::I32.into());
    let id = b.op(ThreadOp::ThreadId {});
    let block = b.op(ThreadOp::BlockId { axis: 0 });
    let base = b.op(ThreadOp::SharedBase {});
    let mut lower = Lower {
        f,
        options,
        sharing,
        b,
        values: vec![values],
        which: 0,
        thread: id,
        program: block,
        programs,
        shared: base,
        bytes: 0,
        reserved: 0,
        in_use: InUse::default(),
        buffers: FxHashMap::default(),
        sums: FxHashMap::default(),
        apart: FxHashMap::default(),
        words: FxHashMap::default(),
        watch: watch.as_ref(),
        record: None,
        extents: Vec::new(),
    };
    lower.add_watch_params();
    lower.all_programs()?;
    lower.b.run(ThreadOp::Return {});
    let shared_bytes = lower.bytes * sharing.side_by_side;
    let mut func = lower.b.func;
    naiad_opt::cse(&mut func);
    naiad_opt::licm(&mut func);
    naiad_opt::dce(&mut func);
    if cfg!(debug_assertions)
        && let Err(e) = naiad_ir::verify(&func)
    {
        unreachable!("after lowering: {}\n{func}", e.message);
    }
    let (threads, programs) = (sharing.threads(), sharing.programs());
    Ok(Code { func, threads, programs, shared_bytes, watch })
}

/// The element by which Thread IR knows an element of a tile.
fn stored(elem: Elem) -> ThreadElem {
    match elem {
        Elem::Scalar(s) => ThreadElem::Scalar(s),
        Elem::Pointer(_) => ThreadElem::Addr,
    }
}

impl Lower<'_> {
    fn get(&self, value: Value) -> &Registers {
        match self.values[self.which].get(&value) {
            Some(registers) => registers,
            None => panic!("{value} has no registers\n{}", self.f),
        }
    }

    /// A scalar.
    fn one(&self, value: Value) -> Value {
        self.get(value)[0]
    }

    fn layout(&self, value: Value) -> Option<Layout> {
        self.f.ty(value).layout()
    }

    fn shape(&self, value: Value) -> Shape {
        self.f.ty(value).ty.shape
    }

    fn elem(&self, value: Value) -> ThreadElem {
        stored(self.f.ty(value).ty.elem)
    }

    fn scalar_of(&self, value: Value) -> Option<Scalar> {
        self.f.ty(value).ty.elem.scalar()
    }

    fn unsupported<T>(&self, what: impl Into<String>) -> Lowered<T> {
        Err(Unsupported { what: what.into(), loc: Some(self.b.loc) })
    }

    /// All threads of the program wait for each other.
    fn sync(&mut self) {
        self.b.run(match self.sharing.warp_bits {
            0 => ThreadOp::WarpBarrier {},
            _ => ThreadOp::Barrier {},
        });
        self.in_use.clear();
    }

    fn inst(&mut self, inst: Inst) -> Lowered<()> {
        self.b.loc = self.f.loc(inst);
        let PlacedOp { what, results: types, .. } = self.f.op(inst);
        let results = self.f.results(inst);
        let made = match what {
            What::Tile(op) => self.tile_op(inst, op)?,
            What::Extra(op) => self.extra(inst, op, results)?,
        };
        debug_assert_eq!(made.len(), types.len(), "{what:?}");
        for (&result, registers) in results.iter().zip(made) {
            self.known().insert(result, registers);
        }
        Ok(())
    }

    fn extra(&mut self, inst: Inst, op: &Extra, results: &[Value]) -> Lowered<Vec<Registers>> {
        match op {
            Extra::Convert { src } => {
                let (from, to) = (self.layout(*src), self.layout(results[0]));
                let registers = self.get(*src).clone();
                match from.zip(to) {
                    Some((from, to)) => {
                        let shape = self.shape(*src);
                        let elem = self.elem(*src);
                        Ok(vec![self.convert(&registers, elem, &shape, &from, &to)])
                    }
                    None => Ok(vec![registers]),
                }
            }
            Extra::Alloc => Ok(vec![self.alloc(results[0])]),
            Extra::Free { buffer } => {
                self.free(*buffer);
                Ok(vec![])
            }
            Extra::Read { buffer, slot } => Ok(vec![self.read(*buffer, *slot, results[0])?]),
            Extra::CopyAsync { buffer, slot, ptr, mask, .. } => {
                let run = self.f.op(inst).run;
                self.copy_async(inst, [*buffer, *slot, *ptr], *mask, run)?;
                Ok(vec![])
            }
            Extra::Commit => {
                self.b.run(ThreadOp::AsyncCommit {});
                Ok(vec![])
            }
            Extra::Wait { pending } => {
                self.b.run(ThreadOp::AsyncWait { pending: *pending });
                self.sync();
                Ok(vec![])
            }
        }
    }

    fn tile_op(&mut self, inst: Inst, op: &TileOp) -> Lowered<Vec<Registers>> {
        let results = self.f.results(inst);
        let one = |registers: Registers| Ok(vec![registers]);
        match op {
            TileOp::ProgramId { axis: 0 } => one(vec![self.program]),
            TileOp::ProgramId { axis } => one(vec![self.b.op(ThreadOp::BlockId { axis: *axis })]),
            TileOp::NumPrograms { axis: 0 } => one(vec![self.programs]),
            TileOp::NumPrograms { axis } => {
                one(vec![self.b.op(ThreadOp::NumBlocks { axis: *axis })])
            }
            TileOp::Const { value } => one(vec![self.b.constant(*value, 1)]),
            TileOp::Arange { start, .. } => {
                let Some(layout) = self.layout(results[0]) else {
                    return self.unsupported("a range without a layout");
                };
                one(self.elements(&layout, *start))
            }
            TileOp::Splat { src, .. } => {
                let count = self.layout(results[0]).map_or(1, |l| l.count());
                one(vec![self.one(*src); count])
            }
            TileOp::ExpandDims { src, .. }
            | TileOp::Reshape { src, .. }
            | TileOp::Permute { src, .. }
            | TileOp::Hint { src, .. } => one(self.get(*src).clone()),
            TileOp::Broadcast { src, .. } => one(self.broadcast(*src, results[0])),
            TileOp::Join { a, b } => one(self.interleave(results[0], *a, *b, 1)),
            TileOp::Cat { a, b, axis } => {
                let (low, bits) = crate::layout::axis_bits(&self.shape(results[0]), *axis);
                one(self.interleave(results[0], *a, *b, 1 << (low + bits - 1)))
            }
            TileOp::Split { src } => Ok(self.halves(*src)),
            TileOp::Flip { src, axis } => one(self.flip(*src, *axis)),
            TileOp::Load { ptr, mask, other, hints } => {
                one(self.load(inst, *ptr, *mask, *other, *hints))
            }
            TileOp::Store { ptr, value, mask, hints } => {
                self.store(inst, *ptr, *value, *mask, *hints);
                Ok(vec![])
            }
            TileOp::AtomicRmw { .. }
            | TileOp::AtomicCas { .. }
            | TileOp::AtomicLoad { .. }
            | TileOp::AtomicStore { .. } => self.atomic(inst, op, results),
            TileOp::Barrier {} => {
                self.sync();
                Ok(vec![])
            }
            TileOp::Dot { a, b, acc, .. } => one(self.dot(op, results[0], *a, *b, *acc)?),
            TileOp::Reduce { inputs, axis, body } => self.reduce(inputs, *axis, *body),
            TileOp::Scan { inputs, axis, reverse, body } => {
                self.scan(inputs, *axis, *reverse, *body)
            }
            TileOp::Map { inputs, pack, body } => self.map(inputs, results, *pack, *body),
            TileOp::Sort { src, descending } => {
                let sorted = self.sort(*src, *descending)?;
                one(self.reordered(sorted, *src, results[0]))
            }
            TileOp::TopK { src, descending, .. } => {
                let sorted = self.sort(*src, *descending)?;
                one(self.first_of(sorted, *src, results[0]))
            }
            TileOp::Gather { src, index, axis } => {
                one(self.gather(results[0], *src, *index, *axis))
            }
            TileOp::Histogram { src, mask, .. } => one(self.histogram(results[0], *src, *mask)),
            TileOp::Print { prefix, args, hex } => {
                self.print(prefix, args, *hex);
                Ok(vec![])
            }
            TileOp::Assert { cond, mask, values, .. } => {
                self.assert(inst, *cond, *mask, values);
                Ok(vec![])
            }
            TileOp::Machine { what } => {
                // Threads that read it one by one would each decide by another time.
                let fact = self.b.op(ThreadOp::Machine { what: *what });
                one(vec![self.told_to_all(fact)])
            }
            TileOp::InlineAsm { .. } => self.inline_asm(op, results),
            TileOp::Assume { .. } => Ok(vec![]),
            TileOp::For { .. } | TileOp::While { .. } | TileOp::If { .. } => self.control(inst, op),
            // What these pass on is asked for by the op around them.
            TileOp::Yield { .. } | TileOp::Condition { .. } | TileOp::Return {} => Ok(vec![]),
            TileOp::Unary { .. }
            | TileOp::Binary { .. }
            | TileOp::Ternary { .. }
            | TileOp::Compare { .. }
            | TileOp::Select { .. }
            | TileOp::Cast { .. }
            | TileOp::Bitcast { .. }
            | TileOp::PtrAdd { .. } => one(self.lanewise(op, results[0], self.f.op(inst).run)?),
        }
    }

    /// Each element of an unbroadcast tile where the result wants it.
    fn broadcast(&mut self, src: Value, result: Value) -> Registers {
        let from = self.get(src).clone();
        let Some(layout) = self.layout(result) else { return from };
        // What the source has of a register's bits.
        let narrow = {
            let (to, shape) = (self.shape(result), self.shape(src));
            let mut out = layout;
            let mut now = to;
            for axis in 0..to.rank() {
                if shape.dim(axis) != to.dim(axis) {
                    out = out.without_axis(&now, axis);
                    now = now.with_dim(axis, 1).unwrap_or(now);
                }
            }
            out
        };
        (0..layout.count()).map(|r| from[narrow.without_copies_at(r)]).collect()
    }

    /// Two tiles as halves of one, told apart by a bit of the index that is a register's.
    fn interleave(&mut self, result: Value, a: Value, b: Value, bit: u32) -> Registers {
        let (a, b) = (self.get(a).clone(), self.get(b).clone());
        let Some(layout) = self.layout(result) else { return a };
        let at = layout.registers().iter().position(|&x| x == bit).unwrap_or(0);
        (0..layout.count())
            .map(|r| {
                let rest = r & ((1 << at) - 1) | r >> (at + 1) << at;
                if r >> at & 1 == 0 { a[rest] } else { b[rest] }
            })
            .collect()
    }

    fn halves(&mut self, src: Value) -> Vec<Registers> {
        let all = self.get(src).clone();
        let at =
            self.layout(src).and_then(|l| l.registers().iter().position(|&x| x == 1)).unwrap_or(0);
        let half = |which: usize| -> Registers {
            let mine = all.iter().enumerate().filter(|(r, _)| r >> at & 1 == which);
            mine.map(|(_, &v)| v).collect()
        };
        vec![half(0), half(1)]
    }
}
