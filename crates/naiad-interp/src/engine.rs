//! Applies a loop to whole tiles: the one place where operands of any form meet.
//!
//! ```text
//!   operand, any form --> chunk of lanes in the compute type --\
//!   operand, any form --> chunk of lanes in the compute type ---> Loop --> chunk --> narrowed --> slab
//! ```
//!
//! A dense operand in row-major order is read where it lies; a uniform one is spread over one chunk,
//! once. Other forms, and floats narrower than fp32, are written out a chunk at a time into buffers
//! that stay in the cache. So a loop sees nothing but contiguous lanes.

use crate::casts::{self, Cast};
use crate::loops::Loop;
use crate::slab::Slab;
use crate::tile::{Dense, Tile};
use naiad_ir::scalar::cast_bits;
use naiad_ir::{Scalar, Shape};
use std::mem::MaybeUninit;

/// Lanes of a chunk; a power of two.
pub const CHUNK: usize = 1024;

/// Room for one chunk of any type.
#[repr(align(64))]
pub struct Buffer([MaybeUninit<u64>; CHUNK]);

impl Buffer {
    #[inline(always)]
    pub const fn new() -> Buffer {
        Buffer([MaybeUninit::uninit(); CHUNK])
    }

    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.0.as_mut_ptr().cast()
    }
}

/// An operand: lanes of a type, to be computed in its compute type.
#[derive(Copy, Clone)]
pub struct In<'a> {
    pub tile: &'a Tile,
    pub ty: Scalar,
}

/// Applies `f` lane by lane. `out` is the type of the result; where it is a narrow float the loop's
/// fp32 lanes are rounded to it.
pub fn map(f: Loop, ins: &[In<'_>], out: Scalar, shape: &Shape) -> Tile {
    if ins.iter().all(|i| i.tile.uniform().is_some()) {
        let mut images = [0u64; 3];
        for (image, i) in images.iter_mut().zip(ins) {
            *image = widened(i.ty, i.tile.uniform().unwrap_or(0));
        }
        return Tile::Uniform(narrowed(out, apply(f, images)));
    }
    let numel = shape.numel();
    let slab = Slab::new(numel * out.size());
    let mut buffers = [const { Buffer::new() }; 3];
    let [b0, b1, b2] = &mut buffers;
    let mut rest = [b2, b1, b0].into_iter().rev();
    let mut sources: [Option<Source<'_>>; 3] = [None, None, None];
    for (slot, i) in sources.iter_mut().zip(ins) {
        *slot = rest.next().map(|buffer| Source::new(*i, shape, buffer));
    }
    let narrow = casts::is_narrow(out);
    let mut wide_out = Buffer::new();
    let chunk = numel.min(CHUNK);
    for start in (0..numel).step_by(chunk) {
        let mut pointers = [std::ptr::null(); 3];
        for (p, source) in pointers.iter_mut().zip(sources.iter_mut().flatten()) {
            *p = source.chunk(start, chunk);
        }
        // SAFETY: sources give aligned chunks of the loop's types, and the slab has room for all
        // lanes and is nobody else's.
        unsafe {
            let dst = slab.as_mut_ptr().add(start * out.size());
            if narrow {
                f(pointers, wide_out.as_mut_ptr(), chunk);
                casts::narrow(out, wide_out.as_mut_ptr().cast(), dst, chunk);
            } else {
                f(pointers, dst, chunk);
            }
        }
    }
    Tile::Dense(Dense::new(slab))
}

/// Converts lanes by value.
pub fn cast(how: Cast, x: In<'_>, to: Scalar, shape: &Shape) -> Tile {
    match how {
        Cast::Loop(f) => map(f, &[x], to, shape),
        Cast::Lanes { from, to, rounding } => {
            if let Some(image) = x.tile.uniform() {
                return Tile::Uniform(cast_bits(from, to, rounding, image));
            }
            let src = x.tile.dense(from, shape);
            let slab = Slab::new(shape.numel() * to.size());
            for i in 0..shape.numel() {
                // SAFETY: both have room for all lanes.
                unsafe {
                    let image = read_image(src.at(from.size()).add(i * from.size()), from.size());
                    let image = cast_bits(from, to, rounding, image);
                    write_image(slab.as_mut_ptr().add(i * to.size()), to.size(), image);
                }
            }
            Tile::Dense(Dense::new(slab))
        }
    }
}

/// Where chunks of an operand come from.
pub struct Source<'a> {
    operand: In<'a>,
    shape: Shape,
    buffer: &'a mut Buffer,
    /// The buffer holds a uniform operand already.
    filled: bool,
}

impl<'a> Source<'a> {
    pub fn new(operand: In<'a>, shape: &Shape, buffer: &'a mut Buffer) -> Source<'a> {
        Source { operand, shape: *shape, buffer, filled: false }
    }

    /// Lanes `start..start + n` in the compute type; `n` is a chunk's length.
    pub fn chunk(&mut self, start: usize, n: usize) -> *const u8 {
        let In { tile, ty } = self.operand;
        let buffer = self.buffer.as_mut_ptr();
        if self.filled {
            return buffer;
        }
        let narrow = casts::is_narrow(ty);
        // SAFETY: a buffer has room for a chunk of 8-byte lanes, hence for one of fp32 in its first
        // half and one of narrower lanes in its second.
        unsafe {
            match tile {
                Tile::Uniform(image) => {
                    let wide = Tile::Uniform(widened(ty, *image));
                    wide.fill(ty.compute_type(), &self.shape, start, n, buffer);
                    self.filled = true;
                }
                Tile::Dense(d) if d.strides.is_none() => {
                    let src = d.at(ty.size()).add(start * ty.size());
                    if !narrow {
                        return src;
                    }
                    casts::widen(ty, src, buffer.cast(), n);
                }
                Tile::Dense(_) | Tile::Affine(_) | Tile::Rect(_) if narrow => {
                    let raw = buffer.add(CHUNK * 4);
                    tile.fill(ty, &self.shape, start, n, raw);
                    casts::widen(ty, raw, buffer.cast(), n);
                }
                Tile::Dense(_) | Tile::Affine(_) | Tile::Rect(_) => {
                    tile.fill(ty, &self.shape, start, n, buffer);
                }
            }
        }
        buffer
    }
}

/// One lane through a loop, on images in the compute types.
pub fn apply(f: Loop, images: [u64; 3]) -> u64 {
    let mut out = 0u64;
    let p = |i: usize| (&raw const images[i]).cast::<u8>();
    // SAFETY: an image holds a lane of any type, at its start on a little-endian machine.
    unsafe { f([p(0), p(1), p(2)], (&raw mut out).cast(), 1) };
    out
}

pub fn widened(ty: Scalar, image: u64) -> u64 {
    if !casts::is_narrow(ty) {
        return image;
    }
    let mut out = 0f32;
    // SAFETY: one lane each.
    unsafe { casts::widen(ty, (&raw const image).cast(), &mut out, 1) };
    u64::from(out.to_bits())
}

pub fn narrowed(ty: Scalar, image: u64) -> u64 {
    if !casts::is_narrow(ty) {
        return image;
    }
    let mut out = 0u64;
    // SAFETY: one lane each.
    unsafe { casts::narrow(ty, &f32::from_bits(image as u32), (&raw mut out).cast(), 1) };
    out
}

/// The image of one element in memory.
///
/// # Safety
///
/// The address is valid for reading `size` bytes.
pub unsafe fn read_image(at: *const u8, size: usize) -> u64 {
    // SAFETY: the caller's promise.
    unsafe {
        match size {
            1 => u64::from(at.read()),
            2 => u64::from(at.cast::<u16>().read_unaligned()),
            4 => u64::from(at.cast::<u32>().read_unaligned()),
            _ => at.cast::<u64>().read_unaligned(),
        }
    }
}

/// Writes the image of one element.
///
/// # Safety
///
/// The address is valid for writing `size` bytes.
pub unsafe fn write_image(at: *mut u8, size: usize, image: u64) {
    // SAFETY: the caller's promise.
    unsafe {
        match size {
            1 => at.write(image as u8),
            2 => at.cast::<u16>().write_unaligned(image as u16),
            4 => at.cast::<u32>().write_unaligned(image as u32),
            _ => at.cast::<u64>().write_unaligned(image),
        }
    }
}

#[cfg(target_endian = "big")]
compile_error!("bit images are read from the low end of 64-bit numbers");
