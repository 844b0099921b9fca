//! `FloatOps` on the machine that runs this program.
//!
//! Every method is `inline(always)`, so that a loop inside a `#[target_feature]` function gets the
//! fused multiply-add and the rounding instructions of that feature; elsewhere they are calls, with
//! the same result.

use super::FloatOps;

/// Operations on `f32`.
#[derive(Copy, Clone, Debug, Default)]
pub struct HostF32;

/// Operations on `f64`.
#[derive(Copy, Clone, Debug, Default)]
pub struct HostF64;

macro_rules! host {
    ($host:ident, $f:ident, $i:ident, $u:ident, $wide:ident) => {
        #[rustfmt::skip]
        impl FloatOps for $host {
            type F = $f;
            type I = $i;
            type M = bool;
            const BITS: u32 = $i::BITS;

            #[inline(always)] fn constant(&mut self, value: f64) -> $f { value as $f }
            #[inline(always)] fn int(&mut self, value: i64) -> $i { value as $i }
            #[inline(always)] fn add(&mut self, x: $f, y: $f) -> $f { x + y }
            #[inline(always)] fn sub(&mut self, x: $f, y: $f) -> $f { x - y }
            #[inline(always)] fn mul(&mut self, x: $f, y: $f) -> $f { x * y }
            #[inline(always)] fn div(&mut self, x: $f, y: $f) -> $f { x / y }
            #[inline(always)] fn mul_add(&mut self, x: $f, y: $f, z: $f) -> $f { x.mul_add(y, z) }
            #[inline(always)] fn neg(&mut self, x: $f) -> $f { -x }
            #[inline(always)] fn abs(&mut self, x: $f) -> $f { x.abs() }
            #[inline(always)] fn sqrt(&mut self, x: $f) -> $f { x.sqrt() }
            #[inline(always)] fn floor(&mut self, x: $f) -> $f { x.floor() }
            #[inline(always)] fn ceil(&mut self, x: $f) -> $f { x.ceil() }
            #[inline(always)] fn trunc(&mut self, x: $f) -> $f { x.trunc() }
            #[inline(always)] fn eq(&mut self, x: $f, y: $f) -> bool { x == y }
            #[inline(always)] fn ne(&mut self, x: $f, y: $f) -> bool { x != y }
            #[inline(always)] fn lt(&mut self, x: $f, y: $f) -> bool { x < y }
            #[inline(always)] fn le(&mut self, x: $f, y: $f) -> bool { x <= y }
            #[inline(always)] fn select(&mut self, m: bool, x: $f, y: $f) -> $f { if m { x } else { y } }
            #[inline(always)] fn select_int(&mut self, m: bool, x: $i, y: $i) -> $i { if m { x } else { y } }
            #[inline(always)] fn bits(&mut self, x: $f) -> $i { x.to_bits() as $i }
            #[inline(always)] fn with_bits(&mut self, x: $i) -> $f { $f::from_bits(x as $u) }
            #[inline(always)] fn to_float(&mut self, x: $i) -> $f { x as $f }
            #[inline(always)] fn int_add(&mut self, x: $i, y: $i) -> $i { x.wrapping_add(y) }
            #[inline(always)] fn int_sub(&mut self, x: $i, y: $i) -> $i { x.wrapping_sub(y) }
            #[inline(always)] fn int_mul(&mut self, x: $i, y: $i) -> $i { x.wrapping_mul(y) }
            #[inline(always)] fn umulhi(&mut self, x: $i, y: $i) -> $i {
                ((x as $u as $wide * y as $u as $wide) >> $i::BITS) as $i
            }
            #[inline(always)] fn and(&mut self, x: $i, y: $i) -> $i { x & y }
            #[inline(always)] fn or(&mut self, x: $i, y: $i) -> $i { x | y }
            #[inline(always)] fn xor(&mut self, x: $i, y: $i) -> $i { x ^ y }
            #[inline(always)] fn shl(&mut self, x: $i, by: $i) -> $i { x.wrapping_shl(by as u32) }
            #[inline(always)] fn shr(&mut self, x: $i, by: $i) -> $i { (x as $u).wrapping_shr(by as u32) as $i }
            #[inline(always)] fn sar(&mut self, x: $i, by: $i) -> $i { x.wrapping_shr(by as u32) }
            #[inline(always)] fn int_eq(&mut self, x: $i, y: $i) -> bool { x == y }
            #[inline(always)] fn ult(&mut self, x: $i, y: $i) -> bool { (x as $u) < y as $u }
        }
    };
}

host!(HostF32, f32, i32, u32, u64);
host!(HostF64, f64, i64, u64, u128);
