//! Atomic accesses.
//!
//! | | instruction |
//! |---|---|
//! | xchg, and, or, xor, integer add, min and max, add of fp16, fp32, fp64 | `atom`, of which `ptxas` makes a reduction where nothing needs the old value |
//! | add of bf16 | `atom` from sm_90 on, before that a loop |
//! | min and max of fp32, fp64 | `atom` of their images, by the value's sign: positive ones are ordered as integers, negative ones the other way round |
//! | min and max of fp16, bf16 | a loop of `atom.cas` with the same |
//! | compare and swap | `atom.cas`, of 16, 32 or 64 bits |
//! | load, store | `ld.acquire`, `st.release`; what such an access cannot order a fence does |
//!
//! The assembler takes the words behind `atom` in any order. Here they stand as Triton writes them, since
//! people look for them in its PTX: `atom.global.gpu.acq_rel.add`, but `atom.global.acq_rel.gpu.cas`.

use crate::emit::{Class, Emit, Operand};
use crate::memory::{Place, Space, address};
use naiad_ir::Scalar;
use naiad_ir::scalar::{BinaryFn, Rounding};
use naiad_ir::thread::ThreadElem;
use naiad_ir::tile::{AtomicOp, Scope, Sem};

/// Which accesses an atomic one is ordered with, and for whom.
#[derive(Copy, Clone)]
pub struct Order {
    pub sem: Sem,
    pub scope: Scope,
}

impl Order {
    /// Threads of a block meet at barriers: their atomics on shared memory order nothing.
    pub const SHARED: Order = Order { sem: Sem::Relaxed, scope: Scope::Cta };
}

impl Emit {
    /// The old value.
    pub fn atomic(
        &mut self,
        f: AtomicOp,
        of: Scalar,
        place: Place,
        value: Operand,
        order: Order,
    ) -> Result<Operand, String> {
        let place = self.reachable(place);
        if of.is_float() && matches!(f, AtomicOp::Min | AtomicOp::Max) && of.bits() >= 32 {
            return Ok(self.atomic_of_images(f, of, place, value, order));
        }
        let Some(native) = self.native_atomic(f, of) else {
            return self.atomic_loop(f, of, place, value, order);
        };
        let (value, old) = (self.reg(value), self.fresh(Class::of(of.into())));
        let (address, words) = (address(place), update_words(place, order));
        self.line(format_args!("{words}.{native} {old}, {address}, {value}"));
        Ok(old)
    }

    /// The operation and type of the instruction, if there is one.
    fn native_atomic(&mut self, f: AtomicOp, of: Scalar) -> Option<String> {
        let bits = of.bits();
        let kind = if of.is_signed() { 's' } else { 'u' };
        match f {
            AtomicOp::Xchg | AtomicOp::And | AtomicOp::Or | AtomicOp::Xor => {
                Some(if f == AtomicOp::Xchg {
                    format!("exch.b{bits}")
                } else {
                    format!("{}.b{bits}", f.name())
                })
            }
            AtomicOp::Add => match of {
                Scalar::F32 | Scalar::F64 => Some(format!("add.f{bits}")),
                Scalar::F16 => Some("add.noftz.f16".to_string()),
                Scalar::BF16 if self.target.capability >= 90 => {
                    self.needs(78);
                    Some("add.noftz.bf16".to_string())
                }
                _ if of.is_int() => Some(format!("add.u{bits}")),
                _ => None,
            },
            AtomicOp::Min | AtomicOp::Max if of.is_int() => {
                Some(format!("{}.{kind}{bits}", f.name()))
            }
            AtomicOp::Min | AtomicOp::Max => None,
        }
    }

    /// The greater or lesser of two floats.
    fn atomic_of_images(
        &mut self,
        f: AtomicOp,
        of: Scalar,
        place: Place,
        value: Operand,
        order: Order,
    ) -> Operand {
        let negative = self.is_negative(of, value);
        let (value, old) = (self.reg(value), self.fresh(Class::of(of.into())));
        let (address, words) = (address(place), update_words(place, order));
        let ops = ops_on_images(f, of);
        if let Some(negative) = negative.known() {
            let op = &ops[negative as usize];
            self.line(format_args!("{words}.{op} {old}, {address}, {value}"));
            return old;
        }
        for (not, op) in ["!", ""].iter().zip(&ops) {
            self.line(format_args!("@{not}{negative} {words}.{op} {old}, {address}, {value}"));
        }
        old
    }

    /// Whether a float has the sign of negative numbers.
    fn is_negative(&mut self, of: Scalar, value: Operand) -> Operand {
        if let Some(image) = value.known() {
            return Operand::imm(Class::Pred, (image >> (of.bits() - 1) & 1) as i64);
        }
        let zero = Operand::imm(value.class(), 0);
        self.setp(&format!("setp.lt.s{}", of.bits()), value, zero)
    }

    /// Computes the new value from what was seen last until that is what is replaced.
    fn atomic_loop(
        &mut self,
        f: AtomicOp,
        of: Scalar,
        place: Place,
        value: Operand,
        order: Order,
    ) -> Result<Operand, String> {
        let class = Class::of(of.into());
        let (ty, space, scope) = (class.ty(), place.space.name(), order.scope.name());
        let words = update_words(place, order);
        let seen = self.load_by(&format!("ld.relaxed.{scope}.{space}"), of.into(), place);
        let again = self.new_label("loop");
        self.place(again);
        let new = self.updated(f, of, seen, value)?;
        let old = self.swap_by(&words, of, place, seen, new);
        let differs = self.setp(&format!("setp.ne.{ty}"), old, seen);
        self.mov(seen, old);
        self.branch(differs, true, again);
        Ok(seen)
    }

    fn updated(
        &mut self,
        f: AtomicOp,
        of: Scalar,
        old: Operand,
        value: Operand,
    ) -> Result<Operand, String> {
        match f {
            AtomicOp::Min | AtomicOp::Max if of.is_float() => {
                let negative = self.is_negative(of, value);
                let class = value.class();
                let [positive, other] =
                    ops_on_images(f, of).map(|op| self.ins(&op, class, [old, value]));
                Ok(self.select(negative, other, positive))
            }
            AtomicOp::Add => {
                let wide = of.compute_type();
                let [old, value] =
                    [old, value].map(|x| self.cast(of, wide, Rounding::Nearest, &[x])[0]);
                let new = self.binary(BinaryFn::Add, wide, old, value)?;
                Ok(self.cast(wide, of, Rounding::Nearest, &[new])[0])
            }
            _ => Err(format!("there is no atomic `{}` of {of}", f.name())),
        }
    }

    /// Stores `new` where memory has the bits of `old`; gives what it had.
    pub fn swap(
        &mut self,
        of: Scalar,
        place: Place,
        old: Operand,
        new: Operand,
        order: Order,
    ) -> Operand {
        let (sem, scope, space) = (order.sem.name(), order.scope.name(), place.space.name());
        self.swap_by(&format!("atom.{space}.{sem}.{scope}"), of, place, old, new)
    }

    fn swap_by(
        &mut self,
        words: &str,
        of: Scalar,
        place: Place,
        old: Operand,
        new: Operand,
    ) -> Operand {
        let place = self.reachable(place);
        let class = Class::of(of.into());
        let (old, new, seen) = (self.reg(old), self.reg(new), self.fresh(class));
        let (ty, address) = (class.ty(), address(place));
        self.line(format_args!("{words}.cas.{ty} {seen}, {address}, {old}, {new}"));
        seen
    }

    /// A load acquires. To release, what stands before it is fenced off.
    pub fn atomic_load(&mut self, elem: ThreadElem, base: Operand, order: Order) -> Operand {
        if matches!(order.sem, Sem::AcqRel | Sem::Release) {
            self.fence(order.scope);
        }
        let acquires = matches!(order.sem, Sem::AcqRel | Sem::Acquire);
        let sem = if acquires { Sem::Acquire } else { Sem::Relaxed };
        let opcode = format!("ld.{}.{}.global", sem.name(), order.scope.name());
        let place = Place { space: Space::Global, base: self.reg(base), disp: 0 };
        self.load_by(&opcode, elem, place)
    }

    /// A store releases. To acquire, what stands behind it is fenced off.
    pub fn atomic_store(&mut self, elem: ThreadElem, base: Operand, value: Operand, order: Order) {
        let releases = matches!(order.sem, Sem::AcqRel | Sem::Release);
        let sem = if releases { Sem::Release } else { Sem::Relaxed };
        let opcode = format!("st.{}.{}.global", sem.name(), order.scope.name());
        let place = Place { space: Space::Global, base: self.reg(base), disp: 0 };
        self.store_by(&opcode, elem, place, value);
        if matches!(order.sem, Sem::AcqRel | Sem::Acquire) {
            self.fence(order.scope);
        }
    }

    fn fence(&mut self, scope: Scope) {
        self.line(format_args!("fence.acq_rel.{}", scope.name()));
    }
}

/// How an instruction that updates memory begins.
fn update_words(place: Place, order: Order) -> String {
    format!("atom.{}.{}.{}", place.space.name(), order.scope.name(), order.sem.name())
}

/// The greater or lesser of floats as an operation on their images: where the value is positive, and where it
/// is negative.
fn ops_on_images(f: AtomicOp, of: Scalar) -> [String; 2] {
    let bits = of.bits();
    match f {
        AtomicOp::Max => [format!("max.s{bits}"), format!("min.u{bits}")],
        _ => [format!("min.s{bits}"), format!("max.u{bits}")],
    }
}
