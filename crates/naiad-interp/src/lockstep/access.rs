//! Accesses to memory.
//!
//! An access of a vector is made by all threads at once, as one *wave*, or by all threads lane by lane, a
//! wave for each lane: so do GPUs, and so transactions are counted.

use super::code::Step;
use super::exec::{Exec, Run};
use super::fault::{Fault, FaultKind};
use super::mask::{MAX_THREADS, Mask};
use super::shared::{Access, Problem};
use super::stats::WIDEST;
use super::values::Word;
use crate::engine::{read_image, write_image};
use naiad_ir::thread::{ThreadElem, ThreadOp};
use naiad_ir::{Inst, Scalar, Value};

/// Lanes that are accessed at once, at an address for each thread.
struct Wave {
    inst: Inst,
    mask: Mask,
    at: [u64; MAX_THREADS],
    /// The first of the value's lanes, and how many.
    first: usize,
    lanes: usize,
    elem: ThreadElem,
}

impl Wave {
    fn bytes(&self) -> usize {
        self.lanes * self.elem.size()
    }

    /// What addresses are to be multiples of: wider accesses are made in pieces.
    fn align(&self) -> usize {
        self.bytes().min(WIDEST)
    }
}

impl Exec<'_> {
    pub fn access(&mut self, inst: Inst, mask: &Mask) -> Run<()> {
        let code = self.code;
        match code.func.op(inst) {
            ThreadOp::Load { addr, disp, elem, lanes, mask: wanted, hints } => {
                let lanes = lanes.0 as usize;
                self.polls += u64::from(hints.volatile);
                self.waves(inst, mask, (*addr, *disp), (*elem, lanes), *wanted, Exec::load)
            }
            ThreadOp::Store { addr, value, disp, mask: wanted, hints: _ } => {
                let what = (code.vector(*value).elem, code.slot(*value).rows);
                let store = |e: &mut Self, w: &Wave| e.store(w, *value);
                self.waves(inst, mask, (*addr, *disp), what, *wanted, store)
            }
            ThreadOp::SharedLoad { at, disp, elem, lanes, mask: wanted } => {
                let lanes = lanes.0 as usize;
                self.waves(inst, mask, (*at, *disp), (*elem, lanes), *wanted, Exec::shared_load)
            }
            ThreadOp::SharedStore { at, value, disp, mask: wanted } => {
                let what = (code.vector(*value).elem, code.slot(*value).rows);
                let store = |e: &mut Self, w: &Wave| e.shared_store(w, *value);
                self.waves(inst, mask, (*at, *disp), what, *wanted, store)
            }
            ThreadOp::Gather { addr, elem, mask: wanted } => {
                self.lane_waves(inst, mask, *addr, *elem, *wanted, Exec::load)
            }
            ThreadOp::Scatter { addr, value, mask: wanted } => {
                let store = |e: &mut Self, w: &Wave| e.store(w, *value);
                self.lane_waves(inst, mask, *addr, code.vector(*value).elem, *wanted, store)
            }
            ThreadOp::Atomic { f, addr, value, .. } => {
                let ty = code.scalar(*value);
                self.atomic(inst, mask, *addr, ty.into(), true, |e, t, old| {
                    f.eval(ty, old, e.values.image(code.slot(*value), 0, t))
                })
            }
            ThreadOp::AtomicCas { addr, compare, value, .. } => {
                let ty = code.scalar(*value);
                self.atomic(inst, mask, *addr, ty.into(), true, |e, t, old| {
                    if old == e.values.image(code.slot(*compare), 0, t) {
                        e.values.image(code.slot(*value), 0, t)
                    } else {
                        old
                    }
                })
            }
            ThreadOp::AtomicLoad { addr, elem, .. } => {
                self.atomic(inst, mask, *addr, *elem, false, |_, _, old| old)
            }
            ThreadOp::AtomicStore { addr, value, .. } => {
                let elem = code.vector(*value).elem;
                self.atomic(inst, mask, *addr, elem, true, |e, t, _| {
                    e.values.image(code.slot(*value), 0, t)
                })
            }
            ThreadOp::SharedAtomic { f, at, value } => {
                let ty = code.scalar(*value);
                let wave = self.wave(inst, mask, (*at, 0), (0, 1), ty.into());
                self.count_shared(&wave);
                for t in mask.threads() {
                    let a = Access { inst, thread: t, at: wave.at[t] };
                    let operand = self.values.image(code.slot(*value), 0, t);
                    let place = self.shared.update(a, ty.size());
                    let place = match place {
                        Ok(place) => place,
                        Err(problem) => return self.problem(inst, t, problem),
                    };
                    let mut image = [0; 8];
                    image[..place.len()].copy_from_slice(place);
                    let old = u64::from_le_bytes(image);
                    let new = f.eval(ty, old, operand);
                    place.copy_from_slice(&new.to_le_bytes()[..ty.size()]);
                    self.own_changes += u64::from(new != old);
                    self.values.set(code.slot(code.func.results(inst)[0]), 0, t, old);
                }
                Ok(())
            }
            ThreadOp::AsyncCopy { at, addr, disp, bytes, mask: wanted } => {
                self.async_copy(inst, mask, [*at, *addr], *disp, *bytes as usize, *wanted)
            }
            _ => Ok(()),
        }
    }

    /// The addresses of a wave.
    fn wave(
        &self,
        inst: Inst,
        mask: &Mask,
        (addr, disp): (Value, i64),
        (first, lanes): (usize, usize),
        elem: ThreadElem,
    ) -> Wave {
        let mut wave = Wave { inst, mask: *mask, at: [0; MAX_THREADS], first, lanes, elem };
        let slot = self.code.slot(addr);
        if slot.size == 8 {
            for (at, &base) in wave.at.iter_mut().zip(self.values.row::<u64>(slot, 0)) {
                *at = base.wrapping_add_signed(disp);
            }
        } else {
            for (at, &base) in wave.at.iter_mut().zip(self.values.row::<u32>(slot, 0)) {
                *at = i64::from(base as i32).wrapping_add(disp) as u64;
            }
        }
        wave
    }

    /// The threads that want a lane.
    fn wanting(&self, mask: &Mask, wanted: Option<Value>, lane: usize) -> Mask {
        match wanted {
            None => *mask,
            Some(w) => mask.and(&Mask::of_lanes(self.values.row::<u8>(self.code.slot(w), lane))),
        }
    }

    /// Makes an access of consecutive lanes in its waves.
    fn waves(
        &mut self,
        inst: Inst,
        mask: &Mask,
        (addr, disp): (Value, i64),
        (elem, lanes): (ThreadElem, usize),
        wanted: Option<Value>,
        f: impl Fn(&mut Self, &Wave) -> Run<()>,
    ) -> Run<()> {
        self.clear_unwanted(inst, wanted);
        let whole = matches!(self.code.step(inst), Step::Whole(true));
        let at_once = if whole { lanes } else { 1 };
        for first in (0..lanes).step_by(at_once) {
            let mask = self.wanting(mask, wanted, first);
            if !mask.is_empty() {
                let disp = disp.wrapping_add((first * elem.size()) as i64);
                f(self, &self.wave(inst, &mask, (addr, disp), (first, at_once), elem))?;
            }
        }
        Ok(())
    }

    /// Makes an access at an address for each lane.
    fn lane_waves(
        &mut self,
        inst: Inst,
        mask: &Mask,
        addr: Value,
        elem: ThreadElem,
        wanted: Option<Value>,
        f: impl Fn(&mut Self, &Wave) -> Run<()>,
    ) -> Run<()> {
        self.clear_unwanted(inst, wanted);
        let slot = self.code.slot(addr);
        for lane in 0..slot.rows {
            let mask = self.wanting(mask, wanted, lane);
            let mut wave = Wave { inst, mask, at: [0; MAX_THREADS], first: lane, lanes: 1, elem };
            let row = self.values.row::<u64>(slot, lane);
            wave.at[..row.len()].copy_from_slice(row);
            f(self, &wave)?;
        }
        Ok(())
    }

    /// Lanes that are not wanted read as 0.
    fn clear_unwanted(&mut self, inst: Inst, wanted: Option<Value>) {
        if let (Some(_), Some(&result)) = (wanted, self.code.func.results(inst).first()) {
            self.values.fill(self.code.slot(result), 0);
        }
    }

    /// Looks whether each thread may access its bytes.
    fn check(&mut self, w: &Wave, write: bool) -> Run<()> {
        let (bytes, align) = (w.bytes(), w.align());
        for t in w.mask.threads() {
            if let Err((kind, what)) = self.global.check(w.at[t], bytes, align, write) {
                return self.fault(kind, w.inst, Some(t), what);
            }
            if write && let Some(copy) = self.shared.reader_of(w.at[t], bytes) {
                let what = "writes memory that an asynchronous copy may not have read yet";
                let problem = (FaultKind::InFlight, what.to_string(), Some(copy));
                return self.problem(w.inst, t, problem);
            }
        }
        if self.options.count {
            let op = &mut self.stats.ops[w.inst.index()];
            for warp in w.mask.warps() {
                op.global(&w.at[warp * 32..], w.mask.warp(warp), bytes);
            }
        }
        Ok(())
    }

    fn load(&mut self, w: &Wave) -> Run<()> {
        self.check(w, false)?;
        let slot = self.code.slot(self.code.func.results(w.inst)[0]);
        let is_bool = w.elem == Scalar::I1.into();
        super::values::with_word!(slot.size, T => {
            for lane in 0..w.lanes {
                let row = self.values.row_mut::<T>(slot, w.first + lane);
                for t in w.mask.threads() {
                    let at = w.at[t] + (lane * size_of::<T>()) as u64;
                    // SAFETY: the memory was found in an argument's storage.
                    let word = unsafe { (at as *const T).read_unaligned() };
                    row[t] = if is_bool { T::of(u64::from(word.image() != 0)) } else { word };
                }
            }
        });
        Ok(())
    }

    fn store(&mut self, w: &Wave, value: Value) -> Run<()> {
        self.check(w, true)?;
        let slot = self.code.slot(value);
        let mut changed = false;
        super::values::with_word!(slot.size, T => {
            for lane in 0..w.lanes {
                let row = self.values.row::<T>(slot, w.first + lane);
                for t in w.mask.threads() {
                    let at = w.at[t] + (lane * size_of::<T>()) as u64;
                    // SAFETY: the memory was found in an argument's storage that may be written.
                    unsafe {
                        changed |= (at as *const T).read_unaligned() != row[t];
                        (at as *mut T).write_unaligned(row[t]);
                    }
                }
            }
        });
        self.changes += u64::from(changed);
        Ok(())
    }

    /// Updates memory thread by thread; the result is what was there.
    fn atomic(
        &mut self,
        inst: Inst,
        mask: &Mask,
        addr: Value,
        elem: ThreadElem,
        write: bool,
        next: impl Fn(&Self, usize, u64) -> u64,
    ) -> Run<()> {
        let wave = self.wave(inst, mask, (addr, 0), (0, 1), elem);
        self.check(&wave, write)?;
        self.polls += 1;
        let result = self.code.func.results(inst).first().map(|&r| self.code.slot(r));
        for t in mask.threads() {
            let at = wave.at[t];
            // SAFETY: the memory was found in an argument's storage, that may be written if it is to be.
            let old = unsafe { read_image(at as *const u8, elem.size()) };
            let old = if elem == Scalar::I1.into() { u64::from(old != 0) } else { old };
            if write {
                let new = next(self, t, old);
                self.changes += u64::from(new != old);
                // SAFETY: as before.
                unsafe { write_image(at as *mut u8, elem.size(), new) };
            }
            if let Some(result) = result {
                self.values.set(result, 0, t, old);
            }
        }
        Ok(())
    }

    fn shared_load(&mut self, w: &Wave) -> Run<()> {
        self.count_shared(w);
        let slot = self.code.slot(self.code.func.results(w.inst)[0]);
        for t in w.mask.threads() {
            let a = Access { inst: w.inst, thread: t, at: w.at[t] };
            match self.shared.read(a, w.bytes(), w.align()) {
                Ok(bytes) => self.values.scatter(slot, w.first, w.elem, t, bytes),
                Err(problem) => return self.problem(w.inst, t, problem),
            }
        }
        Ok(())
    }

    fn shared_store(&mut self, w: &Wave, value: Value) -> Run<()> {
        self.count_shared(w);
        let slot = self.code.slot(value);
        let mut bytes = vec![0; w.bytes()];
        for t in w.mask.threads() {
            let a = Access { inst: w.inst, thread: t, at: w.at[t] };
            self.values.gather(slot, w.first, w.lanes, t, &mut bytes);
            match self.shared.write(a, &bytes, w.align()) {
                Ok(changed) => self.own_changes += u64::from(changed),
                Err(problem) => return self.problem(w.inst, t, problem),
            }
        }
        Ok(())
    }

    fn async_copy(
        &mut self,
        inst: Inst,
        mask: &Mask,
        [at, addr]: [Value; 2],
        disp: i64,
        bytes: usize,
        wanted: Option<Value>,
    ) -> Run<()> {
        let wants = self.wanting(mask, wanted, 0);
        let byte = ThreadElem::Scalar(Scalar::U8);
        let from = self.wave(inst, &wants, (addr, disp), (0, bytes), byte);
        self.check(&from, false)?;
        let to = self.wave(inst, mask, (at, 0), (0, bytes), byte);
        self.own_changes += 1;
        for t in mask.threads() {
            let a = Access { inst, thread: t, at: to.at[t] };
            let reads = wants.warp(t / 32) >> (t % 32) & 1 != 0;
            let mut data = [0u8; 16];
            if reads {
                // SAFETY: the memory was found in an argument's storage.
                unsafe {
                    std::ptr::copy_nonoverlapping(
                        from.at[t] as *const u8,
                        data.as_mut_ptr(),
                        bytes,
                    );
                }
            }
            let begun = self.shared.copy(a, &data[..bytes], reads.then_some(from.at[t]));
            if let Err(problem) = begun {
                return self.problem(inst, t, problem);
            }
        }
        Ok(())
    }

    fn count_shared(&mut self, w: &Wave) {
        if self.options.count {
            let op = &mut self.stats.ops[w.inst.index()];
            for warp in w.mask.warps() {
                op.shared(&w.at[warp * 32..], w.mask.warp(warp), w.bytes());
            }
        }
    }

    pub fn problem<T>(&self, inst: Inst, thread: usize, (kind, what, other): Problem) -> Run<T> {
        let block = self.block;
        Err(Box::new(Fault { kind, inst, other, block, thread: Some(thread), what }))
    }
}
