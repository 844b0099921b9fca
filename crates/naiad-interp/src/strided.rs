//! Copies between strided blocks of memory: what loads, stores, broadcasts and transposes come to.

use smallvec::SmallVec;

/// One axis of a copy: how many elements, and the bytes between neighbours on either side.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Dim {
    pub n: usize,
    pub dst: isize,
    pub src: isize,
}

pub type Dims = SmallVec<[Dim; 4]>;

/// Copies a block, outermost axis first.
///
/// # Safety
///
/// Every address that the axes reach is valid for reading (`src`) or writing (`dst`) an element of
/// `size` bytes, and the two sides do not overlap. Nothing need be aligned. `size` is 1, 2, 4 or 8.
pub unsafe fn copy(dst: *mut u8, src: *const u8, dims: &[Dim], size: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        match size {
            1 => copy_as::<u8>(dst, src, dims),
            2 => copy_as::<u16>(dst, src, dims),
            4 => copy_as::<u32>(dst, src, dims),
            _ => copy_as::<u64>(dst, src, dims),
        }
    }
}

/// Drops axes of one element and merges axes that are one on both sides.
fn normalize(dims: &[Dim]) -> Option<Dims> {
    let mut out = Dims::new();
    for &d in dims {
        match d.n {
            0 => return None,
            1 => continue,
            _ => {}
        }
        if let Some(last) = out.last_mut()
            && last.dst == d.dst * d.n as isize
            && last.src == d.src * d.n as isize
        {
            *last = Dim { n: last.n * d.n, ..d };
            continue;
        }
        out.push(d);
    }
    Some(out)
}

unsafe fn copy_as<T: Copy>(dst: *mut u8, src: *const u8, dims: &[Dim]) {
    let Some(dims) = normalize(dims) else { return };
    // SAFETY: only addresses that the axes reach are touched, here and below.
    unsafe {
        match dims.split_last() {
            None => dst.cast::<T>().write_unaligned(src.cast::<T>().read_unaligned()),
            Some((&inner, [])) => row::<T>(dst, src, inner),
            Some((&inner, rest)) => {
                // Both sides would jump: a transpose goes by blocks that stay in the cache.
                let size = size_of::<T>() as isize;
                let (&next, outer) = rest.split_last().unwrap_or((&inner, &[]));
                let crossed =
                    inner.dst == size && next.src == size || inner.src == size && next.dst == size;
                // Where rows of the destination overlap, the last in row-major order has to win.
                let apart = |a: Dim, b: Dim| {
                    a.dst.unsigned_abs() >= b.dst.unsigned_abs().saturating_mul(b.n)
                };
                let apart = apart(next, inner) || apart(inner, next);
                let crossed = crossed && apart && next.src != 0 && next.dst != 0 && inner.n >= 8;
                if crossed {
                    each(dst, src, outer, &mut |d, s| block::<T>(d, s, next, inner));
                } else {
                    each(dst, src, rest, &mut |d, s| row::<T>(d, s, inner));
                }
            }
        }
    }
}

/// Calls `f` with the addresses of each combination of indices of `dims`.
fn each(dst: *mut u8, src: *const u8, dims: &[Dim], f: &mut dyn FnMut(*mut u8, *const u8)) {
    let mut index: SmallVec<[usize; 4]> = SmallVec::from_elem(0, dims.len());
    let (mut d, mut s) = (dst, src);
    loop {
        f(d, s);
        let mut axis = dims.len();
        loop {
            if axis == 0 {
                return;
            }
            axis -= 1;
            let dim = dims[axis];
            index[axis] += 1;
            d = d.wrapping_offset(dim.dst);
            s = s.wrapping_offset(dim.src);
            if index[axis] < dim.n {
                break;
            }
            index[axis] = 0;
            d = d.wrapping_offset(-(dim.dst * dim.n as isize));
            s = s.wrapping_offset(-(dim.src * dim.n as isize));
        }
    }
}

#[inline(always)]
unsafe fn row<T: Copy>(dst: *mut u8, src: *const u8, dim: Dim) {
    let size = size_of::<T>() as isize;
    // SAFETY: only addresses that the axis reaches are touched.
    unsafe {
        if dim.dst == size && dim.src == size {
            std::ptr::copy_nonoverlapping(src, dst, dim.n * size_of::<T>());
        } else if dim.dst == size && dim.src == 0 {
            let value = src.cast::<T>().read_unaligned();
            let dst = dst.cast::<T>();
            for i in 0..dim.n {
                dst.add(i).write_unaligned(value);
            }
        } else {
            for i in 0..dim.n as isize {
                let value = src.offset(i * dim.src).cast::<T>().read_unaligned();
                dst.offset(i * dim.dst).cast::<T>().write_unaligned(value);
            }
        }
    }
}

/// Two axes in blocks of 16 by 16.
unsafe fn block<T: Copy>(dst: *mut u8, src: *const u8, outer: Dim, inner: Dim) {
    const EDGE: usize = 16;
    for o in (0..outer.n).step_by(EDGE) {
        for i in (0..inner.n).step_by(EDGE) {
            for y in o..outer.n.min(o + EDGE) {
                let part = Dim { n: EDGE.min(inner.n - i), ..inner };
                let d = y as isize * outer.dst + i as isize * inner.dst;
                let s = y as isize * outer.src + i as isize * inner.src;
                // SAFETY: a part of what the axes reach.
                unsafe { row::<T>(dst.wrapping_offset(d), src.wrapping_offset(s), part) };
            }
        }
    }
}
