//! Loads and stores.
//!
//! The common access has addresses in a formula and a mask that is a box: the least and the greatest
//! address decide whether it is inside, and it is a strided copy. Every other access, and every one
//! that those two addresses do not clear, is walked lane by lane, which also finds the lane to name.

use crate::engine::{Buffer, CHUNK, In, Source, read_image, write_image};
use crate::fault::{Access, Fault, Lane, Site};
use crate::memory::{Memory, Origin, Tensor};
use crate::slab::Slab;
use crate::strided::{self, Dim, Dims};
use crate::tile::{Affine, Dense, Rect, Tile};
use naiad_diag::{LaneKind, Picture};
use naiad_ir::{Scalar, Shape};
use smallvec::SmallVec;

/// What an access needs besides its operands.
pub struct Context<'a> {
    pub site: Site<'a>,
    pub memory: &'a Memory<'a>,
    /// Judge what is written by the views too. (What is read outside of one is the checker's.)
    pub views: bool,
    /// Walk every lane.
    pub naive: bool,
}

/// Pointers and their mask.
#[derive(Copy, Clone)]
pub struct Target<'a> {
    pub addresses: &'a Tile,
    pub origin: Origin,
    pub mask: Option<&'a Tile>,
    pub elem: Scalar,
    pub shape: Shape,
}

impl Target<'_> {
    fn masked_off(&self) -> bool {
        self.mask.and_then(Tile::uniform) == Some(0)
    }

    /// The access as a picture, by what each lane that is not masked off, and its address, is.
    pub fn picture(&self, kind: &dyn Fn(usize, i64) -> LaneKind) -> Option<Picture> {
        let mut kinds = vec![LaneKind::Off; self.shape.numel()];
        let walked = each_lane(self, None, &mut |chunk| {
            for i in 0..chunk.n {
                if let Some(address) = chunk.address(i) {
                    let lane = chunk.start + i;
                    kinds[lane] = kind(lane, address);
                }
            }
            Ok(())
        });
        debug_assert!(walked.is_ok());
        Picture::new(&self.shape.dims().collect::<Vec<_>>(), |lane| kinds[lane])
    }

    /// Whether any lane is not masked off, in whatever form the mask is.
    pub fn has_lanes(&self) -> bool {
        match self.mask {
            // A box is nowhere empty.
            None | Some(Tile::Rect(_)) => true,
            Some(Tile::Uniform(image)) => *image != 0,
            Some(mask @ (Tile::Affine(_) | Tile::Dense(_))) => {
                let lanes = mask.dense(Scalar::I1, &self.shape).row_major(1, &self.shape);
                // SAFETY: a row-major tile has a byte for each lane.
                (0..self.shape.numel()).any(|i| unsafe { *lanes.at(1).add(i) } != 0)
            }
        }
    }
}

/// The address of an access to one element that is inside and not masked off.
fn single(cx: &Context<'_>, t: &Target<'_>, access: Access) -> Option<*mut u8> {
    if cx.naive || !matches!(t.mask, None | Some(Tile::Uniform(_))) {
        return None;
    }
    let address = t.addresses.uniform()? as i64;
    let (lo, hi) = (i128::from(address), i128::from(address) + t.elem.size() as i128);
    let tensor = cx.memory.find(t.origin, lo, hi, access.writes())?;
    let clear = !access.writes() || !cx.views || surely_in_view(cx, t.origin, tensor, lo, hi);
    (clear && (tensor.writable || !access.writes())).then_some(address as usize as *mut u8)
}

/// An access that is one strided block inside one tensor.
struct Block {
    steps: Affine,
    /// `lo..hi` of each axis.
    range: Rect,
    whole: bool,
    /// Address of the block's first lane.
    address: usize,
}

fn block(cx: &Context<'_>, t: &Target<'_>, access: Access) -> Option<Block> {
    if cx.naive {
        return None;
    }
    let (range, whole): (Rect, bool) = match t.mask {
        None | Some(Tile::Uniform(_)) => (t.shape.dims().map(|n| (0, n as u32)).collect(), true),
        Some(Tile::Rect(r)) => (r.clone(), false),
        Some(Tile::Affine(_) | Tile::Dense(_)) => return None,
    };
    let steps = Affine::of(t.addresses, Scalar::I64, &t.shape)?;
    let mut address = i128::from(steps.base);
    let (mut least, mut most) = (0, 0);
    for (&step, &(lo, hi)) in steps.steps.iter().zip(&range) {
        address += i128::from(step) * i128::from(lo);
        let far = i128::from(step) * i128::from(hi - 1 - lo);
        least += far.min(0);
        most += far.max(0);
    }
    let (lo, hi) = (address + least, address + most + t.elem.size() as i128);
    let tensor = cx.memory.find(t.origin, lo, hi, access.writes())?;
    let clear = !access.writes() || !cx.views || surely_in_view(cx, t.origin, tensor, lo, hi);
    let clear = clear && (tensor.writable || !access.writes());
    // Checked to be inside a storage, hence an address.
    clear.then_some(Block { steps, range, whole, address: address as usize })
}

fn surely_in_view(
    cx: &Context<'_>,
    origin: Origin,
    found: &Tensor<'_>,
    lo: i128,
    hi: i128,
) -> bool {
    cx.memory.outside_view(origin, found, |t| t.surely_in_view(lo, hi)).is_none()
}

pub fn load(cx: &Context<'_>, t: &Target<'_>, other: Option<&Tile>) -> Result<Tile, Fault> {
    let zero = Tile::Uniform(0);
    let other = other.unwrap_or(&zero);
    if t.masked_off() {
        return Ok(other.clone());
    }
    let size = t.elem.size();
    if let Some(at) = single(cx, t, Access::Load) {
        // SAFETY: the element lies in a storage.
        let image = unsafe { read_image(at, size) };
        return Ok(Tile::Uniform(if t.elem.is_bool() { u64::from(image != 0) } else { image }));
    }
    let Some(b) = block(cx, t, Access::Load) else { return load_lanes(cx, t, other) };
    if b.whole {
        return Ok(load_whole(t, &b));
    }
    let slab = Slab::new(t.shape.numel() * size);
    let dst = slab.as_mut_ptr();
    let mut first = 0;
    let mut dims = Dims::new();
    for (((stride, &(lo, hi)), &step), _) in
        t.shape.strides().zip(&b.range).zip(&b.steps.steps).zip(t.shape.dims())
    {
        first += lo as usize * stride;
        dims.push(Dim { n: (hi - lo) as usize, dst: (stride * size) as isize, src: step as isize });
    }
    // SAFETY: the slab has room for all lanes; the block lies in a storage, as `block` found.
    unsafe {
        other.fill(t.elem, &t.shape, 0, t.shape.numel(), dst);
        strided::copy(dst.add(first * size), b.address as *const u8, &dims, size);
    }
    normalize(t.elem, dst, t.shape.numel());
    Ok(Tile::Dense(Dense::new(slab)))
}

/// A load of every lane: axes along which the address stays are read once.
fn load_whole(t: &Target<'_>, b: &Block) -> Tile {
    let size = t.elem.size();
    let mut strides: SmallVec<[i32; 4]> = SmallVec::from_elem(0, t.shape.rank());
    let mut numel = 1;
    for (d, n) in t.shape.dims().enumerate().rev() {
        if b.steps.steps[d] != 0 {
            strides[d] = numel as i32;
            numel *= n;
        }
    }
    let slab = Slab::new(numel * size);
    let mut dims = Dims::new();
    for ((n, &stride), &step) in t.shape.dims().zip(&strides).zip(&b.steps.steps) {
        if step != 0 {
            dims.push(Dim { n, dst: stride as isize * size as isize, src: step as isize });
        }
    }
    // SAFETY: the slab has room for the lanes that differ; the block lies in a storage.
    unsafe { strided::copy(slab.as_mut_ptr(), b.address as *const u8, &dims, size) };
    normalize(t.elem, slab.as_mut_ptr(), numel);
    Tile::Dense(Dense::new(slab).view(0, strides, &t.shape))
}

/// Bytes of `i1` are true if they are not 0.
fn normalize(elem: Scalar, lanes: *mut u8, n: usize) {
    if elem.is_bool() {
        // SAFETY: `n` bytes of a new slab.
        for byte in unsafe { std::slice::from_raw_parts_mut(lanes, n) } {
            *byte = u8::from(*byte != 0);
        }
    }
}

pub fn store(cx: &Context<'_>, t: &Target<'_>, value: &Tile) -> Result<(), Fault> {
    if t.masked_off() {
        return Ok(());
    }
    let size = t.elem.size();
    if t.shape.is_scalar()
        && let (Some(image), Some(at)) = (value.uniform(), single(cx, t, Access::Store))
    {
        // SAFETY: the element lies in a storage that may be written.
        unsafe { write_image(at, size, image) };
        return Ok(());
    }
    let Some(b) = block(cx, t, Access::Store) else { return store_lanes(cx, t, value) };
    let image;
    let dense;
    let (src, strides): (*const u8, SmallVec<[isize; 4]>) = match value.uniform() {
        Some(x) => {
            image = x;
            ((&raw const image).cast(), SmallVec::from_elem(0, t.shape.rank()))
        }
        None => {
            dense = match value {
                Tile::Dense(d) => d.clone(),
                Tile::Uniform(_) | Tile::Affine(_) | Tile::Rect(_) => value.dense(t.elem, &t.shape),
            };
            let strides = dense.strides(&t.shape);
            (dense.at(size), strides.iter().map(|&s| s as isize * size as isize).collect())
        }
    };
    let mut first = 0;
    let mut dims = Dims::new();
    for ((&stride, &(lo, hi)), &step) in strides.iter().zip(&b.range).zip(&b.steps.steps) {
        first += lo as isize * stride;
        dims.push(Dim { n: (hi - lo) as usize, dst: step as isize, src: stride });
    }
    // SAFETY: the value's lanes lie in its slab; the block lies in a storage that may be written.
    unsafe { strided::copy(b.address as *mut u8, src.wrapping_offset(first), &dims, size) };
    Ok(())
}

/// Looks up the addresses of one access's lanes, most of which are where the one before was.
pub struct Cursor<'c, 'a> {
    cx: &'c Context<'a>,
    t: &'c Target<'c>,
    access: Access,
    tensor: Option<&'a Tensor<'a>>,
    lo: usize,
    /// Number of addresses at which an element may start.
    span: usize,
    /// The view has to be asked for each lane.
    ask_view: bool,
}

impl<'c, 'a> Cursor<'c, 'a> {
    pub fn new(cx: &'c Context<'a>, t: &'c Target<'c>, access: Access) -> Cursor<'c, 'a> {
        Cursor { cx, t, access, tensor: None, lo: 0, span: 0, ask_view: false }
    }

    /// The address of a lane that is not masked off, as a pointer that may be used.
    #[inline(always)]
    pub fn locate(&mut self, address: i64, lane: usize) -> Result<*mut u8, Fault> {
        let inside = (address as usize).wrapping_sub(self.lo) < self.span;
        if !inside || self.ask_view {
            self.look_up(address, lane)?;
        }
        Ok(address as usize as *mut u8)
    }

    fn lane(&self, address: i64, lane: usize) -> Lane<'c> {
        Lane {
            access: self.access,
            shape: &self.t.shape,
            lane,
            address,
            elem: self.t.elem,
            masked: self.t.mask.is_some(),
            origin: self.t.origin,
        }
    }

    /// A fault with a picture of which lanes are inside. Of checked launches only: machine code, whose
    /// faults must read as those of plain launches, does not know the other lanes.
    fn drawn(&self, fault: Fault, inside: &dyn Fn(i128, i128, i64) -> bool) -> Fault {
        if !self.cx.views {
            return fault;
        }
        let picture = self.t.picture(&|_, address| {
            let lo = i128::from(address);
            match inside(lo, lo + self.t.elem.size() as i128, address) {
                true => LaneKind::Inside,
                false => LaneKind::Outside,
            }
        });
        Box::new(fault.picture(picture))
    }

    #[cold]
    fn look_up(&mut self, address: i64, lane: usize) -> Result<(), Fault> {
        let size = self.t.elem.size();
        let (lo, hi) = (i128::from(address), i128::from(address) + size as i128);
        let cx = self.cx;
        let Some(tensor) = cx.memory.find(self.t.origin, lo, hi, self.access.writes()) else {
            let fault = cx.site.out_of_bounds(cx.memory, &self.lane(address, lane));
            return Err(self.drawn(fault, &|lo, hi, _| {
                cx.memory.find(self.t.origin, lo, hi, self.access.writes()).is_some()
            }));
        };
        if self.access.writes() && !tensor.writable {
            return Err(cx.site.read_only(tensor, &self.lane(address, lane)));
        }
        let inside = |t: &Tensor<'_>| t.in_view(address, size);
        let views = cx.views && self.access.writes();
        if views && let Some(owner) = cx.memory.outside_view(self.t.origin, tensor, inside) {
            let fault = cx.site.outside_view(owner, &self.lane(address, lane));
            return Err(self.drawn(fault, &|_, _, address| owner.in_view(address, size)));
        }
        self.tensor = Some(tensor);
        self.lo = tensor.lo;
        self.span = (tensor.len + 1).saturating_sub(size);
        self.ask_view = views;
        Ok(())
    }

    /// The fault of an atomic operation on an address that is not aligned.
    pub fn misaligned(&self, address: i64, lane: usize) -> Option<Fault> {
        Some(self.cx.site.misaligned(self.tensor?, &self.lane(address, lane)))
    }
}

/// Calls `f` with the lane, its address and its value, for every lane whose mask is true.
pub fn each_lane(
    t: &Target<'_>,
    value: Option<&Tile>,
    f: &mut dyn FnMut(Chunk) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let numel = t.shape.numel();
    let chunk = numel.min(CHUNK);
    let (mut b0, mut b1) = (Buffer::new(), Buffer::new());
    let mut addresses = Source::new(In { tile: t.addresses, ty: Scalar::I64 }, &t.shape, &mut b0);
    let mut mask = t.mask.map(|m| Source::new(In { tile: m, ty: Scalar::I1 }, &t.shape, &mut b1));
    // Values travel as the bits that they are, so narrow floats are not widened.
    let bits = match t.elem.size() {
        1 => Scalar::U8,
        2 => Scalar::U16,
        4 => Scalar::U32,
        _ => Scalar::U64,
    };
    let mut b2 = Buffer::new();
    let mut values = value.map(|v| Source::new(In { tile: v, ty: bits }, &t.shape, &mut b2));
    for start in (0..numel).step_by(chunk) {
        f(Chunk {
            start,
            n: chunk,
            addresses: addresses.chunk(start, chunk).cast(),
            mask: mask.as_mut().map(|m| m.chunk(start, chunk)),
            values: values.as_mut().map_or(std::ptr::null(), |v| v.chunk(start, chunk)),
        })?;
    }
    Ok(())
}

/// Some lanes of an access, written out.
pub struct Chunk {
    pub start: usize,
    pub n: usize,
    addresses: *const i64,
    mask: Option<*const u8>,
    values: *const u8,
}

impl Chunk {
    #[inline(always)]
    pub fn address(&self, i: usize) -> Option<i64> {
        debug_assert!(i < self.n);
        // SAFETY: sources give chunks of `n` lanes.
        unsafe {
            if self.mask.is_some_and(|m| *m.add(i) == 0) {
                return None;
            }
            Some(*self.addresses.add(i))
        }
    }

    /// The bits of lane `i`'s value; only where the walk was given values.
    #[inline(always)]
    pub fn value(&self, i: usize, size: usize) -> u64 {
        // SAFETY: as before.
        unsafe { read_image(self.values.add(i * size), size) }
    }
}

fn load_lanes(cx: &Context<'_>, t: &Target<'_>, other: &Tile) -> Result<Tile, Fault> {
    let numel = t.shape.numel();
    let size = t.elem.size();
    let slab = Slab::new(numel * size);
    let dst = slab.as_mut_ptr();
    if t.mask.is_some() {
        // SAFETY: the slab has room for all lanes.
        unsafe { other.fill(t.elem, &t.shape, 0, numel, dst) };
    }
    let mut cursor = Cursor::new(cx, t, Access::Load);
    macro_rules! walk {
        ($t:ty) => {
            each_lane(t, None, &mut |chunk| {
                for i in 0..chunk.n {
                    let Some(address) = chunk.address(i) else { continue };
                    let at = cursor.locate(address, chunk.start + i)?;
                    // SAFETY: the cursor found the element in a storage; the slab has all lanes.
                    unsafe {
                        let value = at.cast::<$t>().read_unaligned();
                        dst.cast::<$t>().add(chunk.start + i).write(value);
                    }
                }
                Ok(())
            })
        };
    }
    match size {
        1 => walk!(u8),
        2 => walk!(u16),
        4 => walk!(u32),
        _ => walk!(u64),
    }?;
    normalize(t.elem, dst, numel);
    if t.shape.is_scalar() {
        // SAFETY: the slab has one lane.
        return Ok(Tile::Uniform(unsafe { read_image(dst, size) }));
    }
    Ok(Tile::Dense(Dense::new(slab)))
}

fn store_lanes(cx: &Context<'_>, t: &Target<'_>, value: &Tile) -> Result<(), Fault> {
    let size = t.elem.size();
    let mut cursor = Cursor::new(cx, t, Access::Store);
    each_lane(t, Some(value), &mut |chunk| {
        for i in 0..chunk.n {
            let Some(address) = chunk.address(i) else { continue };
            let at = cursor.locate(address, chunk.start + i)?;
            // SAFETY: the cursor found the element in a storage that may be written.
            unsafe { write_image(at, size, chunk.value(i, size)) };
        }
        Ok(())
    })
}
