//! Matrix products.
//!
//! fp32 and fp64 go to the `matrixmultiply` crate, which packs operands and works in blocks of
//! registers; it takes strides, so a transposed operand is not copied. Narrower floats are widened to
//! fp32, multiplied and summed there, and rounded once to the result's type. Integers are exact,
//! modulo the width of the result.
//!
//! A launch in the order of machine code brings the function by which that multiplies floats.

use crate::args::Multiply;
use crate::casts;
use crate::engine::{self, In};
use crate::loops;
use crate::slab::Slab;
use crate::tile::{Dense, Tile};
use naiad_ir::scalar::Rounding;
use naiad_ir::{Scalar, Shape};
use smallvec::SmallVec;

/// An operand.
pub struct Matrix {
    dense: Dense,
    ty: Scalar,
    shape: Shape,
}

impl Matrix {
    pub fn new(tile: &Tile, ty: Scalar, shape: Shape) -> Matrix {
        let dense = match tile {
            Tile::Dense(d) => d.clone(),
            Tile::Uniform(_) | Tile::Affine(_) | Tile::Rect(_) => tile.dense(ty, &shape),
        };
        Matrix { dense, ty, shape }
    }

    fn convert(&self, to: Scalar) -> Matrix {
        let dense = convert(&Tile::Dense(self.dense.clone()), self.ty, to, &self.shape);
        Matrix { dense, ty: to, shape: self.shape }
    }

    /// Address of the first element of product `batch`, and the strides of rows and columns.
    fn part(&self, batch: usize) -> (*const u8, isize, isize) {
        let strides = self.dense.strides(&self.shape);
        let rank = self.shape.rank();
        let mut offset = 0isize;
        let mut rest = batch;
        for d in (0..rank - 2).rev() {
            offset += (rest % self.shape.dim(d)) as isize * strides[d] as isize;
            rest /= self.shape.dim(d);
        }
        let size = self.ty.size();
        let at = self.dense.at(size).wrapping_offset(offset * size as isize);
        (at, strides[rank - 2] as isize, strides[rank - 1] as isize)
    }
}

/// The lanes in another type, in row-major order.
fn convert(tile: &Tile, from: Scalar, to: Scalar, shape: &Shape) -> Dense {
    if from == to {
        return tile.dense(to, shape);
    }
    let how = casts::cast(from, to, Rounding::Nearest, loops::wide());
    engine::cast(how, In { tile, ty: from }, to, shape).dense(to, shape)
}

/// `a * b`, and `acc` where there is one, over the last two axes.
pub fn dot(
    a: &Matrix,
    b: &Matrix,
    acc: Option<&Tile>,
    out: Scalar,
    shape: &Shape,
    multiply: Option<Multiply>,
) -> Tile {
    if let (Some(multiply), Scalar::F32 | Scalar::F64) = (multiply, out) {
        return dot_by(multiply, a, b, acc, out, shape);
    }
    // The type of the sums.
    let work = match (out.is_float(), a.ty) {
        (true, Scalar::F64) => Scalar::F64,
        (true, _) if out == Scalar::F64 => Scalar::F64,
        (true, _) => Scalar::F32,
        (false, _) if out.bits() <= 32 => Scalar::I32,
        (false, _) => Scalar::I64,
    };
    let (a, b) = (
        if a.ty == work { a } else { &a.convert(work) },
        if b.ty == work { b } else { &b.convert(work) },
    );
    let rank = shape.rank();
    let (m, n, k) = (shape.dim(rank - 2), shape.dim(rank - 1), a.shape.dim(rank - 1));
    let size = work.size();
    let slab = Slab::new(shape.numel() * size);
    let dst = slab.as_mut_ptr();
    let start = match acc {
        Some(acc) => convert(acc, out, work, shape),
        None => Tile::Uniform(0).dense(work, shape),
    };
    // SAFETY: both have all lanes.
    unsafe { std::ptr::copy_nonoverlapping(start.at(size), dst, shape.numel() * size) };
    drop(start);
    // Without an accumulator the first block of sums is stored, so that a product of -0 stays -0.
    let beta = if acc.is_some() { 1.0 } else { 0.0 };
    let batches: usize = shape.dims().take(rank - 2).product();
    for batch in 0..batches {
        let ((pa, ra, ca), (pb, rb, cb)) = (a.part(batch), b.part(batch));
        // SAFETY: the strides are those of the operands' lanes; the result is row-major.
        unsafe {
            let c = dst.add(batch * m * n * size);
            let rc = n as isize;
            match work {
                Scalar::F64 => matrixmultiply::dgemm(
                    m,
                    k,
                    n,
                    1.0,
                    pa.cast(),
                    ra,
                    ca,
                    pb.cast(),
                    rb,
                    cb,
                    beta,
                    c.cast(),
                    rc,
                    1,
                ),
                Scalar::F32 => matrixmultiply::sgemm(
                    m,
                    k,
                    n,
                    1.0,
                    pa.cast(),
                    ra,
                    ca,
                    pb.cast(),
                    rb,
                    cb,
                    beta as f32,
                    c.cast(),
                    rc,
                    1,
                ),
                Scalar::I64 => integers::<i64>([m, n, k], (pa, ra, ca), (pb, rb, cb), c.cast()),
                _ => integers::<i32>([m, n, k], (pa, ra, ca), (pb, rb, cb), c.cast()),
            }
        }
    }
    let sums = Tile::Dense(Dense::new(slab));
    if out == work { sums } else { Tile::Dense(convert(&sums, work, out, shape)) }
}

/// The same by another's function, which takes the operands as they are.
fn dot_by(
    multiply: Multiply,
    a: &Matrix,
    b: &Matrix,
    acc: Option<&Tile>,
    out: Scalar,
    shape: &Shape,
) -> Tile {
    let rank = shape.rank();
    let (m, n, k) = (shape.dim(rank - 2), shape.dim(rank - 1), a.shape.dim(rank - 1));
    let size = out.size();
    let slab = Slab::new(shape.numel() * size);
    let start = acc.unwrap_or(&Tile::Uniform(0)).dense(out, shape);
    // SAFETY: both have all lanes.
    unsafe {
        std::ptr::copy_nonoverlapping(start.at(size), slab.as_mut_ptr(), shape.numel() * size)
    };
    let place = |ty: Scalar| Scalar::ALL.iter().position(|&t| t == ty).unwrap_or(0) as i64;
    let bytes = |stride: isize, ty: Scalar| stride as i64 * ty.size() as i64;
    for batch in 0..shape.dims().take(rank - 2).product() {
        let ((pa, ra, ca), (pb, rb, cb)) = (a.part(batch), b.part(batch));
        // SAFETY: the strides are those of the operands' lanes; the result is row-major, and new.
        unsafe {
            multiply(
                pa,
                bytes(ra, a.ty),
                bytes(ca, a.ty),
                pb,
                bytes(rb, b.ty),
                bytes(cb, b.ty),
                slab.as_mut_ptr().add(batch * m * n * size),
                (n * size) as i64,
                m as i64,
                n as i64,
                k as i64,
                place(a.ty),
                place(b.ty),
                place(out),
            );
        }
    }
    Tile::Dense(Dense::new(slab))
}

trait Integer: Copy {
    fn multiply_add(self, x: Self, y: Self) -> Self;
}

impl Integer for i32 {
    #[inline(always)]
    fn multiply_add(self, x: i32, y: i32) -> i32 {
        self.wrapping_add(x.wrapping_mul(y))
    }
}

impl Integer for i64 {
    #[inline(always)]
    fn multiply_add(self, x: i64, y: i64) -> i64 {
        self.wrapping_add(x.wrapping_mul(y))
    }
}

type Operand = (*const u8, isize, isize);

/// Adds the product to `c`, a row of `b` at a time.
unsafe fn integers<T: Integer>([m, n, k]: [usize; 3], a: Operand, b: Operand, c: *mut T) {
    let mut row: SmallVec<[T; 128]> = SmallVec::new();
    // SAFETY: the strides are those of the operands' lanes.
    unsafe {
        for p in 0..k as isize {
            let from = b.0.cast::<T>().wrapping_offset(p * b.1);
            row.clear();
            row.extend((0..n as isize).map(|j| *from.wrapping_offset(j * b.2)));
            for i in 0..m {
                let x = *a.0.cast::<T>().wrapping_offset(i as isize * a.1 + p * a.2);
                let out = std::slice::from_raw_parts_mut(c.add(i * n), n);
                for (o, &y) in out.iter_mut().zip(&row) {
                    *o = o.multiply_add(x, y);
                }
            }
        }
    }
}
