//! Loops and branches.
//!
//! A number that a loop carries is a carried value here too. A tile that it carries has a buffer that
//! each round changes in its place, if every element of the new tile wants nothing of the old one but
//! the same element; else it has two: a round reads the one and writes the other, and their addresses
//! change places.

use super::elementwise::{image, wide_int};
use super::group::Root;
use super::plan;
use super::{Buffer, Dist, Param, Place, Result, SiteInfo, stored};
use naiad_ir::scalar::{BinaryFn, Predicate, Rounding};
use naiad_ir::thread::{RuntimeFn, ThreadOp, ThreadType, Vector};
use naiad_ir::tile::TileOp;
use naiad_ir::{Block, Inst, OpInfo, Value};

/// What is carried round a loop, one for each value of the kernel's loop.
struct Slot {
    /// Of a tile: its first buffer.
    tile: Option<Buffer>,
    /// There is no other.
    in_place: bool,
}

impl Dist<'_> {
    pub(super) fn control(&mut self, inst: Inst) -> Result<()> {
        self.before_region(inst)?;
        match self.f.op(inst).clone() {
            TileOp::For { lower, upper, step, inits, body, .. } => {
                self.for_loop(inst, [lower, upper, step], &inits, body)
            }
            TileOp::While { inits, before, after } => self.while_loop(inst, &inits, before, after),
            TileOp::If { cond, then, otherwise } => self.branch(inst, cond, then, otherwise),
            _ => self.unsupported(inst, "control flow"),
        }
    }

    /// What is wanted after, or in, a region that writes memory must be read before it.
    fn before_region(&mut self, inst: Inst) -> Result<()> {
        let mut written = Vec::new();
        let mut any = false;
        self.inner_ops(inst, &mut |op| match op {
            TileOp::Store { ptr, .. }
            | TileOp::AtomicRmw { ptr, .. }
            | TileOp::AtomicCas { ptr, .. }
            | TileOp::AtomicStore { ptr, .. } => written.push(*ptr),
            TileOp::Barrier {} | TileOp::AtomicLoad { .. } => any = true,
            _ => {}
        });
        if any {
            self.before_write(None)?;
        }
        for ptr in written {
            self.before_write(Some(ptr))?;
        }
        Ok(())
    }

    /// Begins to carry values: scalars as they are, of tiles two addresses.
    /// `params` and `next` are what a round gets and passes on.
    fn carry(
        &mut self,
        inits: &[Value],
        params: &[Value],
        next: &[Value],
    ) -> Result<(Vec<Slot>, Vec<Value>)> {
        let mut slots = Vec::new();
        let mut values: Vec<Result<Value>> = Vec::new();
        for (i, &init) in inits.iter().enumerate() {
            let ty = self.f.ty(init);
            if ty.is_scalar() {
                if self.is_pending(init) {
                    self.close_group()?;
                }
                values.push(self.scalar(init));
                slots.push(Slot { tile: None, in_place: false });
                continue;
            }
            let elem = stored(ty.elem);
            let now = self.new_buffer(elem, ty.shape, None);
            self.add_root(Root::Keep { value: init, into: Some(now.clone()) })?;
            let in_place = self.plan.changes_in_place(self.f, params[i], next[i]);
            if !in_place {
                let other = self.new_buffer(elem, ty.shape, None);
                values.extend([Ok(now.addr), Ok(other.addr)]);
            }
            slots.push(Slot { tile: Some(now), in_place });
        }
        self.close_group()?;
        Ok((slots, values.into_iter().collect::<Result<Vec<_>>>()?))
    }

    /// Places of the parameters of a region, from what is carried.
    fn receive(&mut self, params: &[Value], slots: &[Slot], carried: &[Value]) {
        let mut carried = carried.iter();
        for (&param, slot) in params.iter().zip(slots) {
            if let (Some(buffer), true) = (&slot.tile, slot.in_place) {
                self.places.insert(param, Place::Buffer(buffer.clone()));
                continue;
            }
            let Some(&value) = carried.next() else { return };
            let place = match &slot.tile {
                None => Place::Scalar(value),
                Some(buffer) => {
                    carried.next();
                    Place::Buffer(Buffer { addr: value, ..buffer.clone() })
                }
            };
            self.places.insert(param, place);
        }
    }

    /// The next values of what is carried.
    fn pass(&mut self, next: &[Value], slots: &[Slot], carried: &[Value]) -> Result<Vec<Value>> {
        let mut at = 0;
        let mut swapped = Vec::new();
        for (&value, slot) in next.iter().zip(slots) {
            let Some(buffer) = &slot.tile else {
                at += 1;
                continue;
            };
            let (now, other) = match slot.in_place {
                true => (buffer.addr, buffer.addr),
                false => (carried[at], carried[at + 1]),
            };
            at += if slot.in_place { 0 } else { 2 };
            // Changed already.
            let stays = matches!(self.places.get(value), Some(Place::Buffer(b))
                if b.addr == now && b.strides == buffer.strides && b.elem == buffer.elem);
            if !stays {
                let into = Some(Buffer { addr: other, ..buffer.clone() });
                self.add_root(Root::Keep { value, into })?;
            }
            swapped.push(if stays { [now, other] } else { [other, now] });
        }
        self.close_group()?;
        let mut swapped = swapped.into_iter();
        let mut out = Vec::new();
        for (&value, slot) in next.iter().zip(slots) {
            match &slot.tile {
                None => out.push(self.scalar(value)?),
                Some(_) => {
                    let pair = swapped.next();
                    if !slot.in_place {
                        out.extend(pair.into_iter().flatten());
                    }
                }
            }
        }
        Ok(out)
    }

    fn yielded(&self, block: Block) -> Vec<Value> {
        match self.f.terminator(block) {
            Some(TileOp::Yield { values }) => values.clone(),
            _ => Vec::new(),
        }
    }

    /// The position of a block's end.
    fn at_end(&mut self, block: Block) {
        if let Some(&last) = self.f.insts(block).last() {
            self.now = self.plan.position(last);
        }
    }

    fn for_loop(
        &mut self,
        inst: Inst,
        bounds: [Value; 3],
        inits: &[Value],
        body: Block,
    ) -> Result<()> {
        self.settle(inst)?;
        let params = self.f.block_params(body).to_vec();
        let (slots, values) = self.carry(inits, &params[1..], &self.yielded(body))?;
        let ty = self.b.vector(self.scalar(bounds[0])?).elem;
        let mut wide = [bounds[0]; 3];
        for (w, v) in wide.iter_mut().zip(bounds) {
            let v = self.scalar(v)?;
            *w = wide_int(&mut self.b, v);
        }
        let zero = self.b.i64(0);
        if self.b.known_int(wide[2]).is_none_or(|s| s == 0) {
            let cond = self.b.compare(Predicate::Ne, wide[2], zero);
            let site = self.site(SiteInfo::ZeroStep { inst });
            let values = vec![self.number];
            self.b.run(ThreadOp::Guard { cond, site, values });
        }
        let l = self.b.begin_for(wide, values);
        let entered = self.places.enter();
        self.poll();
        let iv = match ty.scalar() {
            Some(s) => self.b.cast(l.iv, s, Rounding::Nearest),
            None => l.iv,
        };
        self.places.insert(params[0], Place::Scalar(iv));
        self.receive(&params[1..], &slots, &l.carried);
        self.block(body)?;
        self.at_end(body);
        let next = self.pass(&self.yielded(body), &slots, &l.carried.clone())?;
        let last = self.b.end_for(l, next);
        self.places.leave(entered);
        let results = self.f.results(inst).to_vec();
        self.receive(&results, &slots, &last);
        Ok(())
    }

    fn while_loop(
        &mut self,
        inst: Inst,
        inits: &[Value],
        before: Block,
        after: Block,
    ) -> Result<()> {
        self.settle(inst)?;
        let params = self.f.block_params(before).to_vec();
        // The body gets what the test passes on, not what it got.
        let none = vec![inits.first().copied().unwrap_or(Value::new(0)); inits.len()];
        let (slots, inits) = self.carry(inits, &params, &none)?;
        let Some(TileOp::Condition { cond, values: passed }) = self.f.terminator(before).cloned()
        else {
            return self.unsupported(inst, "a loop without a condition");
        };
        // Tiles that the test passes on have a buffer each, which the body only reads.
        let mut buffers = Vec::new();
        for &v in &passed {
            let ty = self.f.ty(v);
            let tile = !ty.is_scalar();
            buffers.push(tile.then(|| self.new_buffer(stored(ty.elem), ty.shape, None)));
        }
        let types: Vec<ThreadType> = inits.iter().map(|&v| self.b.ty(v)).collect();
        let test = self.b.func.new_block();
        let carried: Vec<Value> =
            types.iter().map(|&ty| self.b.func.add_block_param(test, ty)).collect();
        let outer = self.b.enter(test);
        let entered = self.places.enter();
        self.poll();
        self.receive(self.f.block_params(before), &slots, &carried);
        self.block(before)?;
        self.at_end(before);
        for (&v, buffer) in passed.iter().zip(&buffers) {
            if let Some(buffer) = buffer {
                self.add_root(Root::Keep { value: v, into: Some(buffer.clone()) })?;
            }
        }
        self.close_group()?;
        let mut scalars = Vec::new();
        for (&v, buffer) in passed.iter().zip(&buffers) {
            if buffer.is_none() {
                scalars.push(self.scalar(v)?);
            }
        }
        let cond = self.scalar(cond)?;
        let values = [&scalars[..], &carried[..]].concat();
        let types: Vec<ThreadType> = values.iter().map(|&v| self.b.ty(v)).collect();
        self.b.run(ThreadOp::Condition { cond, values });
        self.places.leave(entered);
        let body = self.b.func.new_block();
        let params: Vec<Value> =
            types.iter().map(|&ty| self.b.func.add_block_param(body, ty)).collect();
        self.b.enter(body);
        let entered = self.places.enter();
        let place = |this: &mut Self, targets: &[Value], values: &[Value]| {
            let mut values = values.iter();
            for (&target, buffer) in targets.iter().zip(&buffers) {
                let place = match buffer {
                    Some(b) => Place::Buffer(b.clone()),
                    None => match values.next() {
                        Some(&v) => Place::Scalar(v),
                        None => continue,
                    },
                };
                this.places.insert(target, place);
            }
        };
        place(self, self.f.block_params(after), &params);
        self.block(after)?;
        self.at_end(after);
        let carried = params[scalars.len()..].to_vec();
        let values = self.pass(&self.yielded(after), &slots, &carried)?;
        if let Some(waits_at) = plan::waits_at(self.f, inst) {
            self.end_round(waits_at, &slots, &carried, &values)?;
        }
        self.b.run(ThreadOp::Yield { values });
        self.places.leave(entered);
        self.b.enter(outer);
        let results = self.b.ops(ThreadOp::While { inits, before: test, after: body });
        place(self, self.f.results(inst), &results);
        Ok(())
    }

    /// Ends a round of a loop that may wait for other programs: lets them run.
    fn end_round(
        &mut self,
        waits_at: Inst,
        slots: &[Slot],
        carried: &[Value],
        next: &[Value],
    ) -> Result<()> {
        // Tiles are not compared: a loop that only waits carries none.
        let mut same = self.b.bool(slots.iter().all(|slot| slot.tile.is_none()));
        for (&old, &new) in carried.iter().zip(next).filter(|(old, new)| old != new) {
            let (old, new) = (image(&mut self.b, old), image(&mut self.b, new));
            let equal = self.b.compare(Predicate::Eq, old, new);
            same = self.b.binary(BinaryFn::And, same, equal);
        }
        let same = wide_int(&mut self.b, same);
        let site = self.site(SiteInfo::Wait { inst: waits_at });
        let context = self.param(Param::Context);
        let number = self.b.i64(i64::from(site.0));
        let cond = self.b.call(RuntimeFn::Wait, vec![context, number, same])[0];
        self.b.run(ThreadOp::Guard { cond, site, values: vec![self.number] });
        Ok(())
    }

    /// Counts that the program has written memory; where `changed` is given, if that is so.
    pub(super) fn count_write(&mut self, changed: Option<Value>) {
        if !self.plan.waits {
            return;
        }
        let by = match changed {
            Some(changed) => wide_int(&mut self.b, changed),
            None => self.b.i64(1),
        };
        let count = self.param(Param::Writes);
        let before = self.b.load(count, 0, Vector::I64);
        let now = self.b.add(before, by);
        self.b.store(count, 0, now);
    }

    fn branch(&mut self, inst: Inst, cond: Value, then: Block, otherwise: Block) -> Result<()> {
        self.settle(inst)?;
        self.close_group()?;
        let cond = self.scalar(cond)?;
        let results = self.f.results(inst).to_vec();
        let mut buffers = Vec::new();
        for &r in &results {
            let ty = self.f.ty(r);
            let tile = !ty.is_scalar();
            buffers.push(tile.then(|| self.new_buffer(stored(ty.elem), ty.shape, None)));
        }
        let mut blocks = Vec::new();
        for block in [then, otherwise] {
            let branch = self.b.begin_branch();
            let entered = self.places.enter();
            self.block(block)?;
            self.at_end(block);
            let yielded = self.yielded(block);
            for (&v, buffer) in yielded.iter().zip(&buffers) {
                if let Some(buffer) = buffer {
                    self.add_root(Root::Keep { value: v, into: Some(buffer.clone()) })?;
                }
            }
            self.close_group()?;
            let mut values = Vec::new();
            for (&v, buffer) in yielded.iter().zip(&buffers) {
                if buffer.is_none() {
                    values.push(self.scalar(v)?);
                }
            }
            blocks.push(self.b.end_branch(branch, values));
            self.places.leave(entered);
        }
        let op = ThreadOp::If { cond, then: blocks[0], otherwise: blocks[1] };
        let mut scalars = self.b.ops(op).into_iter();
        for (&r, buffer) in results.iter().zip(buffers) {
            let place = match buffer {
                Some(b) => Place::Buffer(b),
                None => match scalars.next() {
                    Some(v) => Place::Scalar(v),
                    None => continue,
                },
            };
            self.places.insert(r, place);
        }
        Ok(())
    }

    /// Shows every op inside an op's regions.
    fn inner_ops(&self, inst: Inst, f: &mut dyn FnMut(&TileOp)) {
        let func = self.f;
        func.op(inst).each_block(&mut |b| func.walk_block(b, &mut |inner| f(func.op(inner))));
    }
}
