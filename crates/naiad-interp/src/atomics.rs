//! Atomic operations on the arguments' memory.
//!
//! Each lane is one operation of the machine, in row-major order, so lanes with one address all take
//! effect. Every order that a kernel can ask for is given as sequentially consistent. What the machine
//! has no instruction for (floats, minimum and maximum, 16-bit types) is a loop of compare-and-swap.

use crate::access::{Chunk, Context, Cursor, Target, each_lane};
use crate::combine::unless_scalar;
use crate::engine::{read_image, write_image};
use crate::fault::{Access, Fault};
use crate::slab::Slab;
use crate::tile::{Dense, Tile};
use naiad_ir::tile::AtomicOp;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::SeqCst};

/// What an atomic op does.
#[derive(Copy, Clone)]
pub enum Update<'a> {
    Rmw(AtomicOp),
    /// Stores where memory equals these lanes.
    Cas(&'a Tile),
}

/// The old lanes, and whether any element is another than before.
pub fn update(
    cx: &Context<'_>,
    t: &Target<'_>,
    how: Update<'_>,
    value: &Tile,
) -> Result<(Tile, bool), Fault> {
    let (ty, size, numel) = (t.elem, t.elem.size(), t.shape.numel());
    let mut changed = false;
    let slab = Slab::new(numel * size);
    let dst = slab.as_mut_ptr();
    // SAFETY: the slab has room for all lanes.
    unsafe { Tile::Uniform(0).fill(ty, &t.shape, 0, numel, dst) };
    let expected = match how {
        Update::Rmw(_) => None,
        Update::Cas(compare) => Some(compare.dense(ty, &t.shape)),
    };
    each_cell(cx, t, Access::Atomic, Some(value), &mut |at, lane, chunk| {
        let value = chunk.value(lane - chunk.start, size);
        // SAFETY: the expected lanes are as many as the access's.
        let wanted =
            expected.as_ref().map(|e| unsafe { read_image(e.at(size).add(lane * size), size) });
        let next = |old| match how {
            Update::Rmw(f) => f.eval(ty, old, value),
            Update::Cas(_) => {
                if Some(old) == wanted {
                    value
                } else {
                    old
                }
            }
        };
        // SAFETY: the cursor found the element in a storage that may be written, and it is
        // aligned; the slab has an element for each lane.
        unsafe {
            let old = fetch(at, size, next);
            changed |= next(old) != old;
            write_image(dst.add(lane * size), size, old);
        }
    })?;
    Ok((unless_scalar(Tile::Dense(Dense::new(slab)), ty, &t.shape), changed))
}

/// The lanes as they are in memory; 0 where the mask is false.
pub fn load(cx: &Context<'_>, t: &Target<'_>) -> Result<Tile, Fault> {
    let (ty, size, numel) = (t.elem, t.elem.size(), t.shape.numel());
    let slab = Slab::new(numel * size);
    let dst = slab.as_mut_ptr();
    // SAFETY: the slab has room for all lanes.
    unsafe { Tile::Uniform(0).fill(ty, &t.shape, 0, numel, dst) };
    each_cell(cx, t, Access::AtomicLoad, None, &mut |at, lane, _| {
        macro_rules! of {
            ($atomic:ty) => {
                // SAFETY: the element is valid and aligned, as `each_cell` found.
                u64::from(unsafe { <$atomic>::from_ptr(at.cast()) }.load(SeqCst))
            };
        }
        let image = match size {
            1 => of!(AtomicU8),
            2 => of!(AtomicU16),
            4 => of!(AtomicU32),
            _ => of!(AtomicU64),
        };
        let image = if ty.is_bool() { u64::from(image != 0) } else { image };
        // SAFETY: the slab has an element for each lane.
        unsafe { write_image(dst.add(lane * size), size, image) };
    })?;
    Ok(unless_scalar(Tile::Dense(Dense::new(slab)), ty, &t.shape))
}

/// Writes lanes; says whether any element is another than before.
pub fn store(cx: &Context<'_>, t: &Target<'_>, value: &Tile) -> Result<bool, Fault> {
    let size = t.elem.size();
    let mut changed = false;
    each_cell(cx, t, Access::AtomicStore, Some(value), &mut |at, lane, chunk| {
        let value = chunk.value(lane - chunk.start, size);
        // SAFETY: the element is valid and aligned and may be written, as `each_cell` found.
        changed |= unsafe { fetch(at, size, |_| value) } != value;
    })?;
    Ok(changed)
}

/// Calls `f` with the place in memory of each lane that is not masked off: inside a storage that the
/// access may use, and aligned.
fn each_cell(
    cx: &Context<'_>,
    t: &Target<'_>,
    access: Access,
    value: Option<&Tile>,
    f: &mut dyn FnMut(*mut u8, usize, &Chunk),
) -> Result<(), Fault> {
    let mut cursor = Cursor::new(cx, t, access);
    each_lane(t, value, &mut |chunk| {
        for i in 0..chunk.n {
            let Some(address) = chunk.address(i) else { continue };
            let lane = chunk.start + i;
            let at = cursor.locate(address, lane)?;
            if !(address as usize).is_multiple_of(t.elem.size())
                && let Some(fault) = cursor.misaligned(address, lane)
            {
                return Err(fault);
            }
            f(at, lane, &chunk);
        }
        Ok(())
    })
}

/// Replaces an element by a function of it, at once; gives the old one.
unsafe fn fetch(at: *mut u8, size: usize, f: impl Fn(u64) -> u64) -> u64 {
    macro_rules! of {
        ($atomic:ty, $t:ty) => {{
            // SAFETY: the caller found the element valid and aligned. Plain accesses of other programs
            // may race with it, as on a GPU.
            let cell = unsafe { <$atomic>::from_ptr(at.cast()) };
            let update = cell.fetch_update(SeqCst, SeqCst, |old| Some(f(old as u64) as $t));
            update.unwrap_or_else(|old| old) as u64
        }};
    }
    match size {
        1 => of!(AtomicU8, u8),
        2 => of!(AtomicU16, u16),
        4 => of!(AtomicU32, u32),
        _ => of!(AtomicU64, u64),
    }
}
