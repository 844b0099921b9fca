//! The walk over a kernel's ops, in program order.

use super::group::Root;
use super::lanes::{Map, Nest};
use super::plan::{self, Class};
use super::{Dist, Param, Place, Result};
use naiad_ir::scalar::Predicate;
use naiad_ir::thread::ThreadOp;
use naiad_ir::tile::{Constant, TileOp};
use naiad_ir::{Block, Inst, OpInfo, Scalar, Shape, Value};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

impl Dist<'_> {
    /// The loop over programs, whose body is the kernel.
    pub(super) fn programs(
        &mut self,
        first: [Value; 3],
        number: Value,
        count: Value,
    ) -> Result<()> {
        let (zero, one) = (self.b.i64(0), self.b.i64(1));
        let l = self.b.begin_for([zero, count, one], first.to_vec());
        self.number = self.b.add(number, l.iv);
        self.program = [l.carried[0], l.carried[1], l.carried[2]];
        self.stop_if_asked();
        self.block(self.f.entry())?;
        self.close_group()?;
        let next = self.next_program();
        self.b.end_for(l, next);
        self.b.run(ThreadOp::Return {});
        Ok(())
    }

    /// The coordinates of the program after this one.
    fn next_program(&mut self) -> Vec<Value> {
        let one = self.b.constant(Constant::int(Scalar::I32, 1), 1);
        let zero = self.b.constant(Constant::int(Scalar::I32, 0), 1);
        let mut next = Vec::new();
        let mut carry: Option<Value> = None;
        for d in 0..3 {
            let here = self.program[d];
            let above = self.b.binary(naiad_ir::scalar::BinaryFn::Add, here, one);
            let stepped = match carry {
                Some(carry) => self.b.select(carry, above, here),
                None => above,
            };
            let full = self.b.compare(Predicate::Eq, stepped, self.grid[d]);
            next.push(if d < 2 { self.b.select(full, zero, stepped) } else { stepped });
            carry = Some(full);
        }
        next
    }

    /// Ends the run if the launch is to stop, in a loop that may be long.
    pub(super) fn poll(&mut self) {
        self.go_on_unless(&[Param::Stop, Param::Interrupt]);
    }

    /// Ends the run if another program's has ended with a fault.
    fn stop_if_asked(&mut self) {
        self.go_on_unless(&[Param::Stop]);
    }

    fn go_on_unless(&mut self, flags: &[Param]) {
        let mut asked = None;
        for &flag in flags {
            let flag = self.param(flag);
            let set = self.b.load(flag, 0, naiad_ir::thread::Vector::scalar(Scalar::U8));
            asked = Some(match asked {
                Some(asked) => self.b.binary(naiad_ir::scalar::BinaryFn::Or, asked, set),
                None => set,
            });
        }
        let Some(asked) = asked else { return };
        let zero = self.b.constant(Constant::int(Scalar::U8, 0), 1);
        let cond = self.b.compare(Predicate::Eq, asked, zero);
        let site = self.site(super::SiteInfo::Stopped);
        let values = vec![self.number];
        self.b.run(ThreadOp::Guard { cond, site, values });
    }

    /// The ops of a block, but for the one that ends it.
    pub(super) fn block(&mut self, block: Block) -> Result<()> {
        let waiting = self.waiting.len();
        for &inst in self.f.insts(block) {
            if !self.f.op(inst).is_terminator() {
                self.inst(inst)?;
            }
        }
        self.waiting.truncate(waiting);
        Ok(())
    }

    fn inst(&mut self, inst: Inst) -> Result<()> {
        self.now = self.plan.position(inst);
        self.b.loc = self.f.loc(inst);
        let op = self.f.op(inst);
        if matches!(op, TileOp::For { .. } | TileOp::While { .. } | TileOp::If { .. }) {
            return self.control(inst);
        }
        let mut tiles = self.f.results(inst).iter().any(|&r| !self.f.ty(r).is_scalar());
        op.each_value(&mut |v| tiles |= !self.f.ty(v).is_scalar());
        if !tiles {
            return self.scalar_op(inst);
        }
        match plan::class(self.f, inst) {
            Class::Virtual => self.virtual_op(inst),
            Class::Root => self.root(inst),
            Class::Whole => self.whole(inst),
        }
    }

    /// A tile that waits until something needs its elements.
    fn virtual_op(&mut self, inst: Inst) -> Result<()> {
        let result = self.f.results(inst)[0];
        if self.f.ty(result).is_scalar() {
            return self.only_element(inst);
        }
        if let TileOp::Load { hints, .. } = self.f.op(inst) {
            if self.plan.communicates || hints.volatile {
                return self.keep(result);
            }
            self.waiting.push(inst);
            // What nobody wants, or only somebody in a loop or a branch that may not run, may still
            // be a load that goes wrong.
            if !self.plan.is_surely_wanted(result) {
                self.add_root(Root::Check { inst })?;
            }
        }
        if self.plan.used_in_loop(self.f, result) {
            let dear = self.cost(result, &mut FxHashMap::default()) >= super::group::DEAR;
            let whole = self.plan.users(result).iter().any(|&u| {
                plan::class(self.f, u) == Class::Whole
                    && !matches!(self.f.op(u), TileOp::Yield { .. } | TileOp::Condition { .. })
            });
            if dear || whole {
                return self.keep(result);
            }
        }
        Ok(())
    }

    /// A tile's only element as a scalar.
    fn only_element(&mut self, inst: Inst) -> Result<()> {
        let mut src = None;
        self.f.op(inst).each_value(&mut |v| src = Some(v));
        let Some(src) = src else { return self.unsupported(inst, "a scalar of nothing") };
        let buffer = self.dense(src)?;
        let ty = naiad_ir::thread::Vector::of(buffer.elem, 1);
        let value = self.b.load(buffer.addr, 0, ty);
        self.places.insert(self.f.results(inst)[0], Place::Scalar(value));
        Ok(())
    }

    fn root(&mut self, inst: Inst) -> Result<()> {
        match self.f.op(inst) {
            TileOp::Store { ptr, hints, .. } => {
                self.before_write(Some(*ptr))?;
                self.count_write(None);
                self.add_root(Root::Store { inst })?;
                self.now += 1;
                if self.plan.communicates || hints.volatile {
                    self.close_group()?;
                }
                Ok(())
            }
            op @ TileOp::Reduce { inputs, axis, .. } => match plan::simple_reduction(self.f, op) {
                Some(f) => {
                    let (input, start) = self.apart_from_constant(inputs[0], f);
                    self.add_root(Root::Reduce { inst, input, f, axis: *axis, start })?;
                    self.now += 1;
                    Ok(())
                }
                None => self.whole(inst),
            },
            _ => self.whole(inst),
        }
    }

    /// Keeps what waiting loads would read, as far as it is wanted after a write to this pointer, or to
    /// any.
    pub(super) fn before_write(&mut self, ptr: Option<Value>) -> Result<()> {
        for load in self.waiting.clone() {
            let value = self.f.results(load)[0];
            let wanted = !self.places.has(value) && self.plan.last_use(value) > self.now;
            let source = self.access(load).map(|a| a.ptr);
            let hit = match (ptr, source) {
                (Some(p), Some(q)) => self.may_alias(p, q),
                _ => true,
            };
            if wanted && hit {
                self.keep(value)?;
            }
        }
        Ok(())
    }

    /// A nest of no loops, for what is done once.
    pub(super) fn point(&mut self) -> Nest {
        let mut n = Nest {
            shape: Shape::SCALAR,
            va: 0,
            lanes: 1,
            index: SmallVec::new(),
            vector: false,
            memo: Vec::new(),
            rows: Vec::new(),
            reaches: FxHashMap::default(),
            known: Vec::new(),
            fits: Vec::new(),
        };
        n.open();
        n
    }

    /// Runs the open group if it makes something that the op wants.
    pub(super) fn settle(&mut self, inst: Inst) -> Result<()> {
        let mut pending = false;
        self.f.op(inst).each_value(&mut |v| pending |= self.is_pending(v));
        if pending { self.close_group() } else { Ok(()) }
    }

    fn scalar_op(&mut self, inst: Inst) -> Result<()> {
        self.settle(inst)?;
        let op = self.f.op(inst);
        let value = match *op {
            TileOp::ProgramId { axis } => self.program[axis as usize],
            TileOp::NumPrograms { axis } => self.grid[axis as usize],
            TileOp::Load { ptr, .. } => {
                let stored = self.open.as_ref().is_some_and(|g| {
                    g.roots.iter().any(|r| match r {
                        Root::Store { inst } => {
                            self.access(*inst).is_none_or(|a| self.may_alias(a.ptr, ptr))
                        }
                        Root::Reduce { .. } | Root::Keep { .. } | Root::Check { .. } => false,
                    })
                });
                if stored || self.plan.communicates {
                    self.close_group()?;
                }
                let mut n = self.point();
                self.load_lanes(&mut n, inst, &Map::new())?
            }
            TileOp::Store { ptr, .. } => {
                self.before_write(Some(ptr))?;
                self.close_group()?;
                self.count_write(None);
                let mut n = self.point();
                return self.store_lanes(&mut n, inst, &Map::new());
            }
            _ if op.is_lanewise() => {
                let mut args: SmallVec<[Value; 3]> = SmallVec::new();
                let mut missing = None;
                op.each_value(&mut |v| match self.places.get(v) {
                    Some(Place::Scalar(s)) => args.push(*s),
                    _ => missing = Some(v),
                });
                if let Some(v) = missing {
                    return self.unsupported(inst, format!("the scalar {v} here"));
                }
                self.lanewise(inst, &args)?
            }
            _ => return self.whole(inst),
        };
        self.places.insert(self.f.results(inst)[0], Place::Scalar(value));
        Ok(())
    }
}
