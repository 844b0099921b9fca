//! Loads and stores.
//!
//! Addresses of an access are affine or one by one; active lanes are a box or one by one. A box of
//! affine addresses is one range test and a copy of each row. Everything else walks the lanes, each
//! tested before it is touched.
//!
//! Programs run at once on several threads and may race, as on a GPU. Plain accesses go through raw
//! pointers and are copies of bytes; a race makes the bytes unspecified and nothing else.

use crate::args::{Arg, TensorArg, View};
use crate::fault::{Fault, FaultKind};
use crate::policy::Policy;
use crate::slab::Slab;
use crate::tile::{Box_, Lanes, Origin, Tile, box_is_empty, for_box_rows, with_storage, with_width};
use naiad_ir::{Scalar, Shape};
use std::marker::PhantomData;

/// The arguments' memory, and how it is judged.
pub struct Memory<'a, P> {
    args: &'a [Arg],
    /// Never any compressed path: the oracle for those.
    naive: bool,
    policy: PhantomData<P>,
}

/// One access of a tile of addresses.
pub struct Access<'t> {
    pub ptr: &'t Tile,
    pub mask: Option<&'t Tile>,
    /// The element in memory.
    pub elem: Scalar,
    pub writes: bool,
}

impl<'a, P: Policy> Memory<'a, P> {
    pub fn new(args: &'a [Arg], naive: bool) -> Memory<'a, P> {
        Memory { args, naive, policy: PhantomData }
    }

    fn tensor(&self, arg: u32) -> Option<&'a TensorArg> {
        match self.args.get(arg as usize) {
            Some(Arg::Tensor(t)) => Some(t),
            _ => None,
        }
    }

    /// The argument that an address belongs to: the one it came from, or the one that holds it.
    fn owner(&self, origin: Origin, address: usize) -> Option<(u32, &'a TensorArg)> {
        match origin {
            Origin::Arg(i) => self.tensor(i).map(|t| (i, t)),
            Origin::Address => {
                let all = (0..self.args.len() as u32).filter_map(|i| Some((i, self.tensor(i)?)));
                let mut holding = all.filter(|(_, t)| t.storage.contains(&address));
                holding.next()
            }
        }
    }

    /// Tests `size` bytes at an address.
    pub fn check(&self, a: &Access<'_>, lane: usize, address: usize) -> Result<(), Fault> {
        let size = a.elem.size();
        let fault = |kind, arg| {
            Err(Fault { kind, lane, shape: a.ptr.shape, address, arg, size, writes: a.writes })
        };
        let Some((arg, t)) = self.owner(a.ptr.origin, address) else {
            return fault(FaultKind::OutOfBounds, None);
        };
        let end = address.checked_add(size);
        if address < t.storage.start || end.is_none_or(|e| e > t.storage.end) {
            return fault(FaultKind::OutOfBounds, Some(arg));
        }
        if a.writes && !t.writable {
            return fault(FaultKind::ReadOnly, Some(arg));
        }
        if P::VIEWS && t.view.as_ref().is_some_and(|v| !in_view(v, t.address, address)) {
            return fault(FaultKind::OutsideView, Some(arg));
        }
        Ok(())
    }

    /// Whether a box of affine addresses lies wholly where it may be accessed. No means only that
    /// the lanes have to be tested one by one.
    fn box_is_fine(&self, a: &Access<'_>, base: i64, steps: &[i64], area: &Box_) -> bool {
        let Some((_, t)) = self.owner(a.ptr.origin, base as usize) else { return false };
        let (mut low, mut high) = (base as i128, base as i128);
        for (&step, &(lo, hi)) in steps.iter().zip(area) {
            let (x, y) = (step as i128 * lo as i128, step as i128 * (hi as i128 - 1));
            low += x.min(y);
            high += x.max(y);
        }
        let inside = low >= t.storage.start as i128 && high + a.elem.size() as i128 <= t.storage.end as i128;
        let viewed = !P::VIEWS || t.view.as_ref().is_none_or(|v| covers(v, t.address, low, high));
        inside && viewed && (!a.writes || t.writable)
    }

    /// The lanes to access as a box over affine addresses, already tested.
    fn as_box(&self, a: &Access<'_>) -> Option<(i64, Box_)> {
        if self.naive {
            return None;
        }
        let area = match a.mask {
            None => crate::tile::full_box(a.ptr.shape),
            Some(mask) => mask.as_box()?,
        };
        let (base, steps) = a.ptr.as_affine()?;
        (box_is_empty(&area) || self.box_is_fine(a, base, &steps, &area)).then_some((base, area))
    }

    /// Calls `f(lane, address)` for each active lane, after its test.
    fn each(&self, a: &Access<'_>, mut f: impl FnMut(usize, usize)) -> Result<(), Fault> {
        for lane in 0..a.ptr.numel() {
            if a.mask.is_some_and(|m| m.lane(lane) & 1 == 0) {
                continue;
            }
            let address = a.ptr.lane(lane) as usize;
            self.check(a, lane, address)?;
            f(lane, address);
        }
        Ok(())
    }

    /// The lanes read; inactive ones give `other`, or 0.
    pub fn load(&self, a: &Access<'_>, other: Option<&Tile>) -> Result<Tile, Fault> {
        let shape = a.ptr.shape;
        let tile = if a.elem.is_bool() {
            // A byte in memory may be anything; a bool here is 0 or 1.
            let bytes = self.load_words(&Access { elem: Scalar::U8, ..*a }, None)?;
            let mut out = crate::cast::cast(&bytes, Scalar::I1, Default::default());
            if let (Some(mask), Some(other)) = (a.mask, other) {
                out = crate::elementwise::select(mask, &out, other);
            }
            out
        } else {
            self.load_words(a, other)?
        };
        Ok(if shape.is_scalar() { Tile::uniform(a.elem, shape, tile.lane(0)) } else { tile })
    }

    fn load_words(&self, a: &Access<'_>, other: Option<&Tile>) -> Result<Tile, Fault> {
        let shape = a.ptr.shape;
        let count = shape.numel();
        let plan = self.as_box(a);
        let mut result = Ok(());
        let slab = with_width!(a.elem, T => Slab::build::<T>(count, |out| {
            let full = a.mask.is_none_or(|m| m.as_uniform() == Some(1));
            if !full {
                match other.map(|o| (o, o.as_uniform())) {
                    None => out.fill(0),
                    Some((_, Some(image))) => out.fill(image as T),
                    Some((o, None)) => {
                        let slab = o.slab();
                        // SAFETY: the elements have T's size, and any bits are a number.
                        let source = unsafe { std::slice::from_raw_parts(slab.lanes::<T>(count).as_ptr(), count) };
                        out.copy_from_slice(source);
                    }
                }
            }
            match &plan {
                Some((base, area)) => {
                    let steps = affine_steps(a.ptr);
                    let inner = steps.last().copied().unwrap_or(0);
                    for_box_rows(shape, area, |start, len| {
                        let address = row_address(*base, &steps, shape, start);
                        // SAFETY: the box was tested to lie inside the argument's storage.
                        unsafe { read_row::<T>(address, inner, &mut out[start..start + len]) };
                    });
                }
                None => {
                    result = self.each(a, |lane, address| {
                        // SAFETY: `each` has tested the address.
                        out[lane] = unsafe { (address as *const T).read_unaligned() };
                    });
                }
            }
        }));
        result.map(|()| Tile::dense(a.elem, shape, slab))
    }

    pub fn store(&self, a: &Access<'_>, value: &Tile) -> Result<(), Fault> {
        let shape = a.ptr.shape;
        let count = shape.numel();
        if let Some((base, area)) = self.as_box(a) {
            let steps = affine_steps(a.ptr);
            let inner = steps.last().copied().unwrap_or(0);
            let uniform = value.as_uniform();
            let slab = if uniform.is_some() { Slab::filled::<u64>(1, 0) } else { value.slab() };
            with_width!(a.elem, T => {
                for_box_rows(shape, &area, |start, len| {
                    let address = row_address(base, &steps, shape, start);
                    // SAFETY: the box was tested to lie inside writable storage.
                    unsafe {
                        match uniform {
                            Some(image) => fill_row::<T>(address, inner, len, image as T),
                            None => write_row::<T>(address, inner, &slab.lanes::<T>(count)[start..start + len]),
                        }
                    }
                });
            });
            return Ok(());
        }
        with_storage!(a.elem, T => self.each(a, |lane, address| {
            let element = <T as crate::tile::Image>::of(value.lane(lane));
            // SAFETY: `each` has tested the address.
            unsafe { (address as *mut T).write_unaligned(element) };
        }))
    }

    /// Calls `f(lane, address)` for each active lane of an atomic access: tested and aligned.
    pub fn each_aligned(&self, a: &Access<'_>, mut f: impl FnMut(usize, usize)) -> Result<(), Fault> {
        let size = a.elem.size();
        let mut misaligned = None;
        self.each(a, |lane, address| {
            if misaligned.is_none() && address % size != 0 {
                misaligned = Some((lane, address));
            }
            if misaligned.is_none() {
                f(lane, address);
            }
        })?;
        match misaligned {
            None => Ok(()),
            Some((lane, address)) => Err(Fault {
                kind: FaultKind::Misaligned,
                lane,
                shape: a.ptr.shape,
                address,
                arg: self.owner(a.ptr.origin, address).map(|o| o.0),
                size,
                writes: true,
            }),
        }
    }
}

fn affine_steps(ptr: &Tile) -> crate::tile::Steps {
    match &ptr.lanes {
        Lanes::Affine { steps, .. } => steps.clone(),
        _ => crate::tile::Steps::from_elem(0, ptr.shape.rank()),
    }
}

fn row_address(base: i64, steps: &[i64], shape: Shape, lane: usize) -> usize {
    let mut at = base;
    for ((&step, stride), dim) in steps.iter().zip(shape.strides()).zip(shape.dims()) {
        at = at.wrapping_add(step.wrapping_mul((lane / stride % dim) as i64));
    }
    at as usize
}

/// # Safety
///
/// `out.len()` elements at `address`, `step` bytes apart, are readable.
unsafe fn read_row<T: Copy>(address: usize, step: i64, out: &mut [T]) {
    if step == size_of::<T>() as i64 {
        // SAFETY: by the caller; a copy of bytes needs no alignment.
        unsafe { std::ptr::copy_nonoverlapping(address as *const u8, out.as_mut_ptr().cast::<u8>(), size_of_val(out)) };
        return;
    }
    let mut at = address;
    for o in out {
        // SAFETY: by the caller.
        *o = unsafe { (at as *const T).read_unaligned() };
        at = at.wrapping_add(step as usize);
    }
}

/// # Safety
///
/// `row.len()` elements at `address`, `step` bytes apart, are writable.
unsafe fn write_row<T: Copy>(address: usize, step: i64, row: &[T]) {
    if step == size_of::<T>() as i64 {
        // SAFETY: by the caller.
        unsafe { std::ptr::copy_nonoverlapping(row.as_ptr().cast::<u8>(), address as *mut u8, size_of_val(row)) };
        return;
    }
    let mut at = address;
    for &r in row {
        // SAFETY: by the caller.
        unsafe { (at as *mut T).write_unaligned(r) };
        at = at.wrapping_add(step as usize);
    }
}

/// # Safety
///
/// `len` elements at `address`, `step` bytes apart, are writable.
unsafe fn fill_row<T: Copy>(address: usize, step: i64, len: usize, value: T) {
    let mut at = address;
    for _ in 0..len {
        // SAFETY: by the caller.
        unsafe { (at as *mut T).write_unaligned(value) };
        at = at.wrapping_add(step as usize);
    }
}

/// Whether an address is that of an element of the view. Of views whose elements overlap (stride 0,
/// or sliding windows) this may say yes where some other index has to be taken, never no wrongly.
fn in_view(view: &View, first: usize, address: usize) -> bool {
    let size = view.elem.size() as i128;
    let bytes = address as i128 - first as i128;
    let mut offset = bytes.div_euclid(size);
    if view.shape.contains(&0) {
        return false;
    }
    // Turn negative strides round, then take off the largest strides first.
    let mut axes: Vec<(i128, i128)> = Vec::new();
    for (&n, &s) in view.shape.iter().zip(&view.strides) {
        if s < 0 {
            offset -= s as i128 * (n as i128 - 1);
        }
        if s != 0 && n > 1 {
            axes.push((s.unsigned_abs() as i128, n as i128));
        }
    }
    axes.sort_unstable_by_key(|a| std::cmp::Reverse(a.0));
    let overlapping = axes.windows(2).any(|w| w[0].0 < w[1].0 * w[1].1)
        && axes.windows(2).any(|w| w[0].0 <= w[1].0 * (w[1].1 - 1));
    if overlapping {
        let span: i128 = axes.iter().map(|&(s, n)| s * (n - 1)).sum();
        return (0..=span).contains(&offset);
    }
    for (stride, n) in axes {
        if offset < 0 {
            return false;
        }
        offset -= stride * (offset / stride).min(n - 1);
    }
    offset == 0
}

/// Whether the view has no holes and holds all addresses from `low` to `high`.
fn covers(view: &View, first: usize, low: i128, high: i128) -> bool {
    let size = view.elem.size() as i128;
    let mut axes: Vec<(i128, i128)> = view
        .shape
        .iter()
        .zip(&view.strides)
        .filter(|(n, _)| **n != 1)
        .map(|(&n, &s)| (s.unsigned_abs() as i128, n as i128))
        .collect();
    axes.sort_unstable();
    let mut dense = 1;
    for &(s, n) in &axes {
        if s != dense || n == 0 {
            return false;
        }
        dense *= n;
    }
    let start: i128 = view.shape.iter().zip(&view.strides).map(|(&n, &s)| (s as i128).min(0) * (n as i128 - 1)).sum();
    let start = first as i128 + start * size;
    low >= start && high < start + dense * size
}
