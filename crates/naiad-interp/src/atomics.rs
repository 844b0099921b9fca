//! Atomic access: really atomic, one lane after another.
//!
//! All orders are carried out as sequentially consistent, which is stronger than what is asked for.

use crate::fault::Fault;
use crate::memory::{Access, Memory};
use crate::policy::Policy;
use crate::slab::Slab;
use crate::tile::{Image, Tile, with_storage};
use naiad_ir::Scalar;
use naiad_ir::scalar::BinaryFn;
use naiad_ir::tile::AtomicOp;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering::SeqCst};

/// What an atomic op did, besides its result.
pub struct Done {
    pub old: Tile,
    /// Whether memory is different now in some lane.
    pub changed: bool,
}

/// Replaces the element at an aligned address by `f` of it, unless that is none; gives the old one.
///
/// # Safety
///
/// The address is aligned to `size` and valid for reads and writes.
unsafe fn update(address: usize, size: usize, f: impl Fn(u64) -> Option<u64>) -> u64 {
    macro_rules! cell {
        ($A:ty, $t:ty) => {{
            // SAFETY: by the caller.
            let cell = unsafe { <$A>::from_ptr(address as *mut $t) };
            let result = cell.fetch_update(SeqCst, SeqCst, |old| f(old as u64).map(|new| new as $t));
            match result {
                Ok(old) | Err(old) => old as u64,
            }
        }};
    }
    match size {
        2 => cell!(AtomicU16, u16),
        4 => cell!(AtomicU32, u32),
        _ => cell!(AtomicU64, u64),
    }
}

fn run<P: Policy>(memory: &Memory<'_, P>, a: &Access<'_>, mut f: impl FnMut(usize, usize) -> (u64, bool)) -> Result<Done, Fault> {
    let (shape, count) = (a.ptr.shape, a.ptr.numel());
    let mut changed = false;
    let mut result = Ok(());
    let slab = with_storage!(a.elem, T => Slab::build::<T>(count, |out| {
        out.fill(T::of(0));
        result = memory.each_aligned(a, |lane, address| {
            let (old, new) = f(lane, address);
            out[lane] = T::of(old);
            changed |= new;
        });
    }));
    result?;
    let old = Tile::dense(a.elem, shape, slab);
    let old = if shape.is_scalar() { Tile::uniform(a.elem, shape, old.lane(0)) } else { old };
    Ok(Done { old, changed })
}

pub fn rmw<P: Policy>(memory: &Memory<'_, P>, a: &Access<'_>, op: AtomicOp, value: &Tile) -> Result<Done, Fault> {
    let ty = a.elem;
    let size = ty.size();
    run(memory, a, |lane, address| {
        let v = value.lane(lane);
        let new_of = |old: u64| apply(op, ty, old, v);
        // SAFETY: `each_aligned` has tested the address.
        let old = unsafe { update(address, size, |old| Some(new_of(old))) };
        (old, new_of(old) != old)
    })
}

fn apply(op: AtomicOp, ty: Scalar, old: u64, value: u64) -> u64 {
    let f = match op {
        AtomicOp::Xchg => return value,
        AtomicOp::Add => BinaryFn::Add,
        AtomicOp::And => BinaryFn::And,
        AtomicOp::Or => BinaryFn::Or,
        AtomicOp::Xor => BinaryFn::Xor,
        AtomicOp::Max => BinaryFn::Max,
        AtomicOp::Min => BinaryFn::Min,
    };
    f.eval(ty, old, value).unwrap_or(old)
}

pub fn cas<P: Policy>(memory: &Memory<'_, P>, a: &Access<'_>, compare: &Tile, value: &Tile) -> Result<Done, Fault> {
    let size = a.elem.size();
    run(memory, a, |lane, address| {
        let (want, new) = (compare.lane(lane), value.lane(lane));
        // SAFETY: `each_aligned` has tested the address.
        let old = unsafe { update(address, size, |old| (old == want).then_some(new)) };
        (old, old == want && new != old)
    })
}
