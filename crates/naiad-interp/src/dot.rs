//! Matrix products. Narrow floats are widened to fp32 and accumulate there; fp32 is IEEE.

use crate::slab::Slab;
use crate::tile::Tile;
use naiad_ir::{Scalar, Shape};

pub fn dot(a: &Tile, b: &Tile, acc: Option<&Tile>, out: Scalar, shape: Shape) -> Tile {
    let rank = shape.rank();
    let (m, n) = (shape.dim(rank - 2), shape.dim(rank - 1));
    let k = a.shape.dim(rank - 1);
    let batch = shape.numel() / (m * n);
    let wide = match a.ty {
        Scalar::F64 => Scalar::F64,
        _ if a.ty.is_int() => Scalar::I32,
        _ => Scalar::F32,
    };
    let to = |t: &Tile| crate::cast::cast(t, wide, Default::default()).slab();
    let (sa, sb) = (to(a), to(b));
    let start = acc.map(|t| to(t));
    let (na, nb, nc) = (batch * m * k, batch * k * n, batch * m * n);
    let result = match wide {
        Scalar::F32 => Slab::build::<f32>(nc, |c| {
            begin(c, start.as_ref(), 0.0);
            let (a, b) = (sa.lanes::<f32>(na), sb.lanes::<f32>(nb));
            for i in 0..batch {
                let (a, b, c) = (&a[i * m * k..], &b[i * k * n..], &mut c[i * m * n..]);
                // SAFETY: the slices hold m x k, k x n and m x n elements from here on, row-major.
                unsafe {
                    matrixmultiply::sgemm(m, k, n, 1.0, a.as_ptr(), k as isize, 1, b.as_ptr(), n as isize, 1, 1.0, c.as_mut_ptr(), n as isize, 1);
                }
            }
        }),
        Scalar::F64 => Slab::build::<f64>(nc, |c| {
            begin(c, start.as_ref(), 0.0);
            let (a, b) = (sa.lanes::<f64>(na), sb.lanes::<f64>(nb));
            for i in 0..batch {
                let (a, b, c) = (&a[i * m * k..], &b[i * k * n..], &mut c[i * m * n..]);
                // SAFETY: as above.
                unsafe {
                    matrixmultiply::dgemm(m, k, n, 1.0, a.as_ptr(), k as isize, 1, b.as_ptr(), n as isize, 1, 1.0, c.as_mut_ptr(), n as isize, 1);
                }
            }
        }),
        _ => Slab::build::<i32>(nc, |c| {
            begin(c, start.as_ref(), 0);
            let (a, b) = (sa.lanes::<i32>(na), sb.lanes::<i32>(nb));
            for row in 0..batch * m {
                let b = &b[row / m * k * n..];
                let c = &mut c[row * n..(row + 1) * n];
                for (i, &x) in a[row * k..(row + 1) * k].iter().enumerate() {
                    for (c, &y) in c.iter_mut().zip(&b[i * n..(i + 1) * n]) {
                        *c = c.wrapping_add(x.wrapping_mul(y));
                    }
                }
            }
        }),
    };
    crate::cast::cast(&Tile::dense(wide, shape, result), out, Default::default())
}

fn begin<T: crate::slab::Plain>(c: &mut [T], start: Option<&Slab>, zero: T) {
    match start {
        Some(s) => c.copy_from_slice(s.lanes::<T>(c.len())),
        None => c.fill(zero),
    }
}
