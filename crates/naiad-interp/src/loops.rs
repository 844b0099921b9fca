//! The loops over contiguous lanes, one for each scalar function and compute type.
//!
//! ```text
//!   BinaryFn::Add, i32  --dispatch-->  visit::<i32>(Row)  -->  map2::<i32, i32, Row>  : Loop
//! ```
//!
//! A loop is written once for each number of arguments and instantiated by the visitors of
//! [`naiad_ir::scalar`]; what comes out is a plain function pointer, so that an op is dispatched once
//! for a launch and not for each run. Each instance exists twice, for a machine with fused
//! multiply-add and wide vectors and for any machine; both give the same bits.

use naiad_ir::Scalar;
use naiad_ir::scalar::{
    BinaryFn, BinaryVisitor, Lane, Lanewise, Predicate, PredicateVisitor, TernaryFn,
    TernaryVisitor, UnaryFn, UnaryVisitor,
};
use std::mem::MaybeUninit;

/// Reads `n` lanes behind each of the first pointers and writes `n` lanes.
///
/// Pointers are aligned to the lane's type and valid for `n` lanes; the output overlaps no input.
pub type Loop = unsafe fn([*const u8; 3], *mut u8, usize);

/// Whether this machine has what the wide instances are compiled for.
pub fn wide() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("f16c")
            && is_x86_feature_detected!("bmi2")
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        false
    }
}

/// A generic loop and its instance for wide machines.
macro_rules! loops {
    ($( $(#[$doc:meta])* $any:ident, $wide:ident <$($t:ident),*> where $F:ident: $of:path,
        |$ins:ident, $out:ident, $n:ident| $body:block )*) => { $(
        $(#[$doc])*
        #[inline(always)]
        unsafe fn $any<$($t: Copy,)* $F: $of>($ins: [*const u8; 3], $out: *mut u8, $n: usize) $body

        #[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2,fma,f16c,bmi2"))]
        unsafe fn $wide<$($t: Copy,)* $F: $of>(ins: [*const u8; 3], out: *mut u8, n: usize) {
            // SAFETY: the caller's promise.
            unsafe { $any::<$($t,)* $F>(ins, out, n) }
        }
    )* };
}

loops! {
    map1, map1_wide<A> where F: Lanewise<(A,), A>, |ins, out, n| {
        let f: F = the();
        // SAFETY: the promise of `Loop`.
        let (a, out) = unsafe { (lanes::<A>(ins[0], n), lanes_mut::<A>(out, n)) };
        for (o, &x) in out.iter_mut().zip(a) {
            o.write(f.at((x,)));
        }
    }

    map2, map2_wide<A, O> where F: Lanewise<(A, A), O>, |ins, out, n| {
        let f: F = the();
        // SAFETY: the promise of `Loop`.
        let (a, b, out) = unsafe { (lanes::<A>(ins[0], n), lanes::<A>(ins[1], n), lanes_mut::<O>(out, n)) };
        for ((o, &x), &y) in out.iter_mut().zip(a).zip(b) {
            o.write(f.at((x, y)));
        }
    }

    map3, map3_wide<A> where F: Lanewise<(A, A, A), A>, |ins, out, n| {
        let f: F = the();
        // SAFETY: the promise of `Loop`.
        let (a, b) = unsafe { (lanes::<A>(ins[0], n), lanes::<A>(ins[1], n)) };
        // SAFETY: as before.
        let (c, out) = unsafe { (lanes::<A>(ins[2], n), lanes_mut::<A>(out, n)) };
        for (((o, &x), &y), &z) in out.iter_mut().zip(a).zip(b).zip(c) {
            o.write(f.at((x, y, z)));
        }
    }

    /// The inclusive scan of a row.
    scan, scan_wide<A> where F: Lanewise<(A, A), A>, |ins, out, n| {
        let f: F = the();
        // SAFETY: the promise of `Loop`.
        let (a, out) = unsafe { (lanes::<A>(ins[0], n), lanes_mut::<A>(out, n)) };
        let mut rows = out.iter_mut().zip(a);
        let Some((o, &first)) = rows.next() else { return };
        let mut last = first;
        o.write(last);
        for (o, &x) in rows {
            last = f.at((last, x));
            o.write(last);
        }
    }

    /// The inclusive scan of a row from its end.
    scan_back, scan_back_wide<A> where F: Lanewise<(A, A), A>, |ins, out, n| {
        let f: F = the();
        // SAFETY: the promise of `Loop`.
        let (a, out) = unsafe { (lanes::<A>(ins[0], n), lanes_mut::<A>(out, n)) };
        let mut rows = out.iter_mut().zip(a).rev();
        let Some((o, &first)) = rows.next() else { return };
        let mut last = first;
        o.write(last);
        for (o, &x) in rows {
            last = f.at((last, x));
            o.write(last);
        }
    }
}

/// The function of a type that has one value only: the rows of the scalar tables.
#[inline(always)]
fn the<F: Copy>() -> F {
    const { assert!(size_of::<F>() == 0, "rows of the scalar tables hold nothing") };
    // SAFETY: a type of size 0 has no bytes to be wrong, and the visitor was shown a value of it.
    unsafe { std::mem::transmute_copy(&()) }
}

#[inline(always)]
unsafe fn lanes<'a, T>(p: *const u8, n: usize) -> &'a [T] {
    // SAFETY: the promise of `Loop`.
    unsafe { std::slice::from_raw_parts(p.cast(), n) }
}

#[inline(always)]
unsafe fn lanes_mut<'a, T>(p: *mut u8, n: usize) -> &'a mut [MaybeUninit<T>] {
    // SAFETY: the promise of `Loop`.
    unsafe { std::slice::from_raw_parts_mut(p.cast(), n) }
}

#[derive(Copy, Clone)]
enum Want {
    Map,
    Scan { reverse: bool },
}

struct Pick {
    wide: bool,
    want: Want,
}

impl UnaryVisitor for Pick {
    type Out = Loop;
    fn visit<T: Lane>(self, f: impl Lanewise<(T,), T>) -> Loop {
        fn of<T: Lane, F: Lanewise<(T,), T>>(wide: bool, _: F) -> Loop {
            if wide { map1_wide::<T, F> } else { map1::<T, F> }
        }
        of(self.wide, f)
    }
}

impl BinaryVisitor for Pick {
    type Out = Loop;
    fn visit<T: Lane>(self, f: impl Lanewise<(T, T), T>) -> Loop {
        fn of<T: Lane, F: Lanewise<(T, T), T>>(wide: bool, want: Want, _: F) -> Loop {
            match (want, wide) {
                (Want::Map, true) => map2_wide::<T, T, F>,
                (Want::Map, false) => map2::<T, T, F>,
                (Want::Scan { reverse: false }, true) => scan_wide::<T, F>,
                (Want::Scan { reverse: false }, false) => scan::<T, F>,
                (Want::Scan { reverse: true }, true) => scan_back_wide::<T, F>,
                (Want::Scan { reverse: true }, false) => scan_back::<T, F>,
            }
        }
        of(self.wide, self.want, f)
    }
}

impl TernaryVisitor for Pick {
    type Out = Loop;
    fn visit<T: Lane>(self, f: impl Lanewise<(T, T, T), T>) -> Loop {
        fn of<T: Lane, F: Lanewise<(T, T, T), T>>(wide: bool, _: F) -> Loop {
            if wide { map3_wide::<T, F> } else { map3::<T, F> }
        }
        of(self.wide, f)
    }
}

impl PredicateVisitor for Pick {
    type Out = Loop;
    fn visit<T: Lane>(self, f: impl Lanewise<(T, T), bool>) -> Loop {
        fn of<T: Lane, F: Lanewise<(T, T), bool>>(wide: bool, _: F) -> Loop {
            if wide { map2_wide::<T, bool, F> } else { map2::<T, bool, F> }
        }
        of(self.wide, f)
    }
}

const fn pick(wide: bool) -> Pick {
    Pick { wide, want: Want::Map }
}

/// The loop of a function on lanes of `ty`, which is a compute type or narrower.
pub fn unary(f: UnaryFn, ty: Scalar, wide: bool) -> Option<Loop> {
    f.dispatch(ty.compute_type(), pick(wide))
}

pub fn binary(f: BinaryFn, ty: Scalar, wide: bool) -> Option<Loop> {
    f.dispatch(ty.compute_type(), pick(wide))
}

pub fn ternary(f: TernaryFn, ty: Scalar, wide: bool) -> Option<Loop> {
    f.computed(ty).dispatch(ty.compute_type(), pick(wide))
}

/// Gives lanes of `i1`.
pub fn compare(p: Predicate, ty: Scalar, wide: bool) -> Option<Loop> {
    p.dispatch(ty.compute_type(), pick(wide))
}

/// The scan of one row with a binary function.
pub fn row_scan(f: BinaryFn, ty: Scalar, reverse: bool, wide: bool) -> Option<Loop> {
    f.dispatch(ty.compute_type(), Pick { wide, want: Want::Scan { reverse } })
}

macro_rules! raw_loops {
    ($( $(#[$doc:meta])* $any:ident, $wide:ident $(<$t:ident>)?, |$ins:ident, $out:ident, $n:ident| $body:block )*) => { $(
        $(#[$doc])*
        #[inline(always)]
        unsafe fn $any$(<$t: Copy>)?($ins: [*const u8; 3], $out: *mut u8, $n: usize) $body

        #[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2,fma,f16c,bmi2"))]
        unsafe fn $wide$(<$t: Copy>)?(ins: [*const u8; 3], out: *mut u8, n: usize) {
            // SAFETY: the caller's promise.
            unsafe { $any$(::<$t>)?(ins, out, n) }
        }
    )* };
}

raw_loops! {
    choose, choose_wide<T>, |ins, out, n| {
        // SAFETY: the promise of `Loop`; lanes of `i1` are bytes 0 or 1.
        let (c, yes) = unsafe { (lanes::<u8>(ins[0], n), lanes::<T>(ins[1], n)) };
        // SAFETY: as before.
        let (no, out) = unsafe { (lanes::<T>(ins[2], n), lanes_mut::<T>(out, n)) };
        for (((o, &c), &y), &z) in out.iter_mut().zip(c).zip(yes).zip(no) {
            o.write(if c != 0 { y } else { z });
        }
    }

    /// `address + offset * element size`, the size being the first lane behind the third pointer.
    advance, advance_wide, |ins, out, n| {
        // SAFETY: the promise of `Loop`.
        let (base, by) = unsafe { (lanes::<i64>(ins[0], n), lanes::<i64>(ins[1], n)) };
        // SAFETY: as before.
        let (size, out) = unsafe { (lanes::<i64>(ins[2], 1)[0], lanes_mut::<i64>(out, n)) };
        for ((o, &x), &y) in out.iter_mut().zip(base).zip(by) {
            o.write(x.wrapping_add(y.wrapping_mul(size)));
        }
    }
}

/// Where the first argument's lanes are true the second's, else the third's; by the lanes' size.
pub fn select(size: usize, wide: bool) -> Loop {
    match (size, wide) {
        (1, true) => choose_wide::<u8>,
        (2, true) => choose_wide::<u16>,
        (4, true) => choose_wide::<u32>,
        (_, true) => choose_wide::<u64>,
        (1, false) => choose::<u8>,
        (2, false) => choose::<u16>,
        (4, false) => choose::<u32>,
        (_, false) => choose::<u64>,
    }
}

/// Addresses, offsets (as i64) and the element's size to addresses.
pub fn pointer_add(wide: bool) -> Loop {
    if wide { advance_wide } else { advance }
}
