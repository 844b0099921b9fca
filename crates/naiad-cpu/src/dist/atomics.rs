//! Atomic ops: lane after lane, in row-major order.

use super::access::Access;
use super::elementwise::image;
use super::lanes::{Nest, identity};
use super::{Dist, Place, Result, SiteInfo};
use naiad_ir::scalar::{BinaryFn, Predicate};
use naiad_ir::thread::{Builder, ThreadOp};
use naiad_ir::tile::{AtomicOp, Constant, TileOp};
use naiad_ir::{Inst, OpInfo, Scalar, Value};

impl Dist<'_> {
    pub(super) fn atomic(&mut self, inst: Inst) -> Result<()> {
        self.settle(inst)?;
        let op = self.f.op(inst).clone();
        let (ptr, mask) = match &op {
            TileOp::AtomicRmw { ptr, mask, .. }
            | TileOp::AtomicLoad { ptr, mask, .. }
            | TileOp::AtomicStore { ptr, mask, .. } => (*ptr, *mask),
            TileOp::AtomicCas { ptr, .. } => (*ptr, None),
            _ => return self.unsupported(inst, "an atomic op"),
        };
        self.before_write(None)?;
        self.close_group()?;
        let Some(elem) = self.f.ty(ptr).elem.pointer().map(|p| p.pointee) else {
            return self.unsupported(inst, "an atomic op on numbers");
        };
        let write = !matches!(op, TileOp::AtomicLoad { .. });
        let access = Access { inst, ptr, mask, elem, write };
        let shape = self.shape(ptr);
        // Whole tiles first: in the loop their elements would be computed between the updates.
        let mut operands = Vec::new();
        op.each_value(&mut |v| operands.push(v));
        for &v in &operands {
            if !shape.is_scalar() && v != ptr && Some(v) != mask {
                self.keep(v)?;
            }
        }
        self.close_group()?;
        let result = self.f.results(inst).first().copied();
        let used = result.filter(|&r| !self.plan.users(r).is_empty());
        if shape.is_scalar() {
            let mut n = self.point();
            let old = self.update(&mut n, &op, &access)?;
            if let (Some(r), Some(old)) = (used, old) {
                self.places.insert(r, Place::Scalar(old));
            }
            return Ok(());
        }
        let out = used.map(|_| self.new_buffer(elem.into(), shape, None));
        let map = identity(shape.rank());
        self.each_element(shape, &mut |this, n| {
            let old = this.update(n, &op, &access)?;
            if let (Some(out), Some(old)) = (&out, old) {
                this.write_buffer(n, out, &map, old);
            }
            Ok(())
        })?;
        if let (Some(r), Some(out)) = (used, out) {
            self.set(r, out);
        }
        Ok(())
    }

    /// One lane of an atomic op; gives what was there before, 0 where masked off.
    fn update(&mut self, n: &mut Nest, op: &TileOp, access: &Access) -> Result<Option<Value>> {
        let map = identity(n.shape.rank());
        let addr = self.eval(n, access.ptr, &map)?;
        let mut values = Vec::new();
        let operands: Vec<Value> = match op {
            TileOp::AtomicRmw { value, .. } | TileOp::AtomicStore { value, .. } => vec![*value],
            TileOp::AtomicCas { compare, value, .. } => vec![*compare, *value],
            _ => Vec::new(),
        };
        for v in operands {
            values.push(self.eval(n, v, &map)?);
        }
        let cond = match access.mask {
            Some(mask) => Some(self.eval(n, mask, &map)?),
            None => None,
        };
        let branch = cond.map(|_| self.b.begin_branch());
        self.check(n, access, &map, addr);
        self.check_alignment(n, access, addr);
        let old = match *op {
            TileOp::AtomicRmw { f, sem, scope, .. } => {
                let value = values[0];
                let old = self.b.op(ThreadOp::Atomic { f, addr, value, sem, scope });
                let changed = self.is_changed(f, old, value);
                self.count_write(changed);
                Some(old)
            }
            TileOp::AtomicCas { sem, scope, .. } => {
                let (compare, value) = (values[0], values[1]);
                let old = self.b.op(ThreadOp::AtomicCas { addr, compare, value, sem, scope });
                let changed = self.is_exchanged(old, compare, value);
                self.count_write(changed);
                Some(old)
            }
            TileOp::AtomicLoad { sem, scope, .. } => {
                Some(self.b.op(ThreadOp::AtomicLoad { addr, elem: access.elem.into(), sem, scope }))
            }
            TileOp::AtomicStore { sem, scope, .. } => {
                self.b.run(ThreadOp::AtomicStore { addr, value: values[0], sem, scope });
                self.count_write(None);
                None
            }
            _ => None,
        };
        let (Some(branch), Some(cond)) = (branch, cond) else { return Ok(old) };
        let then = self.b.end_branch(branch, old.into_iter().collect());
        let branch = self.b.begin_branch();
        let zero = Constant { ty: access.elem, bits: 0 };
        let none = old.map(|_| self.b.constant(zero, 1));
        let otherwise = self.b.end_branch(branch, none.into_iter().collect());
        Ok(self.b.ops(ThreadOp::If { cond, then, otherwise }).pop())
    }

    /// Whether an update has changed memory, for programs that may wait: those that only ask, as by adding
    /// 0, are to be told from others. None where nobody asks, or where it is not worth finding out.
    fn is_changed(&mut self, f: AtomicOp, old: Value, value: Value) -> Option<Value> {
        let elem = self.b.vector(old).elem.scalar()?;
        if !self.plan.waits || elem != elem.compute_type() {
            return None;
        }
        let zero = self.b.constant(Constant { ty: elem, bits: 0 }, 1);
        let b = &mut self.b;
        let (x, y) = match f {
            AtomicOp::Add | AtomicOp::Xor => (value, zero),
            AtomicOp::Max | AtomicOp::Min => {
                let [value, old] = [value, old].map(|x| ordered(b, x));
                let p = if f == AtomicOp::Max { Predicate::Gt } else { Predicate::Lt };
                return Some(b.compare(p, value, old));
            }
            AtomicOp::And => (b.binary(BinaryFn::And, old, value), old),
            AtomicOp::Or => (b.binary(BinaryFn::Or, old, value), old),
            AtomicOp::Xchg => (image(b, old), image(b, value)),
        };
        Some(b.compare(Predicate::Ne, x, y))
    }

    fn is_exchanged(&mut self, old: Value, compare: Value, value: Value) -> Option<Value> {
        if !self.plan.waits {
            return None;
        }
        let b = &mut self.b;
        let [old, compare, value] = [old, compare, value].map(|v| image(b, v));
        let hit = b.compare(Predicate::Eq, old, compare);
        let other = b.compare(Predicate::Ne, value, compare);
        Some(b.binary(BinaryFn::And, hit, other))
    }

    fn check_alignment(&mut self, n: &Nest, access: &Access, addr: Value) {
        let size = access.elem.size() as i64;
        if size == 1 {
            return;
        }
        let image = self.b.bitcast(addr, Scalar::I64);
        let (low, zero) = (self.b.i64(size - 1), self.b.i64(0));
        let rest = self.b.binary(BinaryFn::And, image, low);
        let cond = self.b.compare(Predicate::Eq, rest, zero);
        let site = self.site(SiteInfo::Misaligned {
            inst: access.inst,
            arg: self.plan.origin(access.ptr).arg(),
        });
        let lane = self.lane_number(n, access, &identity(n.shape.rank()));
        let values = vec![self.number, lane, addr];
        self.b.run(ThreadOp::Guard { cond, site, values });
    }
}

/// What stands for a number where the greater of two is found: of a float its image with a sign, so that
/// NaN has its place too, as [`AtomicOp::eval`] says.
fn ordered(b: &mut Builder, x: Value) -> Value {
    if !b.vector(x).elem.scalar().is_some_and(Scalar::is_float) {
        return x;
    }
    let image = image(b, x);
    let int = if b.vector(image).elem.size() == 8 { Scalar::I64 } else { Scalar::I32 };
    let [last, sizes] =
        [i128::from(int.bits()) - 1, int.int_max()].map(|n| b.constant(Constant::int(int, n), 1));
    let sign = b.binary(BinaryFn::Shr, image, last);
    let flipped = b.binary(BinaryFn::And, sign, sizes);
    b.binary(BinaryFn::Xor, image, flipped)
}
