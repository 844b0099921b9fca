//! Atomic ops: made once for each element, by the thread that owns it.

use super::{Lower, Lowered, Registers};
use naiad_ir::thread::ThreadOp;
use naiad_ir::tile::{Constant, Sem, TileOp};
use naiad_ir::{Inst, OpInfo, Scalar, Value};

impl Lower<'_> {
    pub fn atomic(
        &mut self,
        inst: Inst,
        op: &TileOp,
        results: &[Value],
    ) -> Lowered<Vec<Registers>> {
        let (ptr, mask, sem) = match op {
            TileOp::AtomicRmw { ptr, mask, sem, .. }
            | TileOp::AtomicLoad { ptr, mask, sem, .. }
            | TileOp::AtomicStore { ptr, mask, sem, .. } => (*ptr, *mask, *sem),
            TileOp::AtomicCas { ptr, sem, .. } => (*ptr, None, *sem),
            _ => return self.unsupported(format!("`{}` as an atomic op", op.name())),
        };
        if let Some(pointer) = self.f.ty(ptr).ty.elem.pointer() {
            self.guard(inst, ptr, mask, pointer.pointee.into());
        }
        // What other threads of the program wrote before is seen by whoever sees this.
        if sem != Sem::Relaxed {
            self.sync();
        }
        let layout = self.layout(ptr);
        let owner = self.owner(layout.as_ref());
        let masks = mask.map(|m| self.get(m).clone());
        let count = self.get(ptr).len();
        let copies: usize = layout.map_or(0, |l| {
            let bits = l.registers().iter().enumerate().filter(|(_, b)| **b == 0);
            bits.map(|(i, _)| 1 << i).sum()
        });
        let mut old: Registers = Vec::new();
        for r in 0..count {
            if r & copies != 0 {
                let original = old.get(r & !copies).copied();
                old.extend(original);
                continue;
            }
            let mask = masks.as_ref().map(|m| m[r]);
            let cond = self.both(mask, owner);
            let value = match cond {
                None => self.atomic_op(op, r),
                Some(cond) => {
                    let branch = self.b.begin_branch();
                    let value = self.atomic_op(op, r);
                    let then = self.b.end_branch(branch, value.into_iter().collect());
                    let branch = self.b.begin_branch();
                    let nothing = value.map(|v| {
                        let elem = self.b.vector(v).elem;
                        self.zero(elem)
                    });
                    let otherwise = self.b.end_branch(branch, nothing.into_iter().collect());
                    self.b.ops(ThreadOp::If { cond, then, otherwise }).first().copied()
                }
            };
            old.extend(value);
        }
        let Some(&result) = results.first() else {
            if sem != Sem::Relaxed {
                self.sync();
            }
            return Ok(vec![]);
        };
        if !self.is_used(result) {
            if sem != Sem::Relaxed {
                self.sync();
            }
            return Ok(vec![old]);
        }
        let told = match layout {
            None => vec![self.told_to_all(old[0])],
            Some(layout) => self.told_to_replicas(&old, result, &layout),
        };
        Ok(vec![told])
    }

    fn is_used(&self, value: Value) -> bool {
        let mut used = false;
        self.f.walk(&mut |inst| self.f.op(inst).each_value(&mut |v| used |= v == value));
        used
    }

    fn zero(&mut self, elem: naiad_ir::thread::ThreadElem) -> Value {
        match elem.scalar() {
            Some(s) => self.b.constant(Constant { ty: s, bits: 0 }, 1),
            None => {
                let zero = self.b.constant(Constant::int(Scalar::I64, 0), 1);
                self.b.bitcast(zero, elem)
            }
        }
    }

    /// What owners have, for their replicas too.
    fn told_to_replicas(
        &mut self,
        old: &Registers,
        result: Value,
        layout: &crate::layout::Layout,
    ) -> Registers {
        if layout.replicas() == (0, 0) {
            return old.clone();
        }
        let (elem, shape) = (self.elem(result), self.shape(result));
        let bits = crate::layout::numel_bits(&shape);
        let room = self.put(old, elem, layout, bits);
        self.sync();
        let out = self.take(room, elem, layout, 0);
        self.end_use(room);
        out
    }

    fn atomic_op(&mut self, op: &TileOp, r: usize) -> Option<Value> {
        let at = |lower: &Self, v: Value| lower.get(v)[r];
        match op {
            TileOp::AtomicRmw { f, ptr, value, sem, scope, .. } => {
                let (addr, value) = (at(self, *ptr), at(self, *value));
                Some(self.b.op(ThreadOp::Atomic { f: *f, addr, value, sem: *sem, scope: *scope }))
            }
            TileOp::AtomicCas { ptr, compare, value, sem, scope } => {
                let (addr, compare, value) = (at(self, *ptr), at(self, *compare), at(self, *value));
                let (sem, scope) = (*sem, *scope);
                Some(self.b.op(ThreadOp::AtomicCas { addr, compare, value, sem, scope }))
            }
            TileOp::AtomicLoad { ptr, sem, scope, .. } => {
                let elem = self.f.ty(*ptr).ty.elem.pointer().map(|p| p.pointee)?;
                let addr = at(self, *ptr);
                let (elem, sem, scope) = (elem.into(), *sem, *scope);
                Some(self.b.op(ThreadOp::AtomicLoad { addr, elem, sem, scope }))
            }
            TileOp::AtomicStore { ptr, value, sem, scope, .. } => {
                let (addr, value) = (at(self, *ptr), at(self, *value));
                self.b.run(ThreadOp::AtomicStore { addr, value, sem: *sem, scope: *scope });
                None
            }
            _ => None,
        }
    }
}
