//! Functions on integers. Every one is defined on every input; the choices stand in the module docs.

use super::Lane;

/// A lane that holds an integer.
pub trait IntLane: Lane {
    fn neg(self) -> Self;
    fn not(self) -> Self;
    /// Wraps at the least number.
    fn abs(self) -> Self;
    fn add(self, y: Self) -> Self;
    fn sub(self, y: Self) -> Self;
    fn mul(self, y: Self) -> Self;
    /// Rounds toward zero; 0 if `y` is 0.
    fn idiv(self, y: Self) -> Self;
    /// Has the sign of `self`, which it equals if `y` is 0.
    fn rem(self, y: Self) -> Self;
    fn min(self, y: Self) -> Self;
    fn max(self, y: Self) -> Self;
    fn and(self, y: Self) -> Self;
    fn or(self, y: Self) -> Self;
    fn xor(self, y: Self) -> Self;
    fn shl(self, y: Self) -> Self;
    /// Arithmetic if the type is signed.
    fn shr(self, y: Self) -> Self;
    /// The high half of the product of the operands read as unsigned.
    fn umulhi(self, y: Self) -> Self;
    fn lt(self, y: Self) -> bool;
    /// How many bits are set.
    fn popc(self) -> Self;
    /// How many zeros stand above the highest bit that is set.
    fn clz(self) -> Self;
    /// The bits in reverse.
    fn brev(self) -> Self;

    #[inline(always)]
    fn clamp(self, low: Self, high: Self) -> Self {
        self.max(low).min(high)
    }

    #[inline(always)]
    fn eq(self, y: Self) -> bool {
        self == y
    }

    #[inline(always)]
    fn ne(self, y: Self) -> bool {
        self != y
    }

    #[inline(always)]
    fn le(self, y: Self) -> bool {
        !y.lt(self)
    }

    #[inline(always)]
    fn gt(self, y: Self) -> bool {
        y.lt(self)
    }

    #[inline(always)]
    fn ge(self, y: Self) -> bool {
        !self.lt(y)
    }
}

macro_rules! int_lane {
    ($( $t:ident, $u:ident, $wide:ident, |$x:ident| $abs:expr; )*) => { $(
        #[rustfmt::skip]
        impl IntLane for $t {
            #[inline(always)] fn neg(self) -> $t { self.wrapping_neg() }
            #[inline(always)] fn not(self) -> $t { !self }
            #[inline(always)] fn abs(self) -> $t { let $x = self; $abs }
            #[inline(always)] fn add(self, y: $t) -> $t { self.wrapping_add(y) }
            #[inline(always)] fn sub(self, y: $t) -> $t { self.wrapping_sub(y) }
            #[inline(always)] fn mul(self, y: $t) -> $t { self.wrapping_mul(y) }
            #[inline(always)] fn idiv(self, y: $t) -> $t {
                if y == 0 { 0 } else { self.wrapping_div(y) }
            }
            #[inline(always)] fn rem(self, y: $t) -> $t {
                if y == 0 { self } else { self.wrapping_rem(y) }
            }
            #[inline(always)] fn min(self, y: $t) -> $t { Ord::min(self, y) }
            #[inline(always)] fn max(self, y: $t) -> $t { Ord::max(self, y) }
            #[inline(always)] fn and(self, y: $t) -> $t { self & y }
            #[inline(always)] fn or(self, y: $t) -> $t { self | y }
            #[inline(always)] fn xor(self, y: $t) -> $t { self ^ y }
            #[inline(always)] fn shl(self, y: $t) -> $t {
                let inside = (y as $u) < $t::BITS as $u;
                if inside { self.wrapping_shl(y as u32) } else { 0 }
            }
            // The greatest shift inside the type leaves only copies of the sign (or, after one more
            // step, zeros), so an arithmetic shift is clamped to it.
            #[inline(always)] fn shr(self, y: $t) -> $t {
                let most = ($t::BITS - 1) as $u;
                let by = Ord::min(y as $u, most) as u32;
                let shifted = self.wrapping_shr(by);
                if $t::MIN == 0 && y as $u > most { 0 } else { shifted }
            }
            #[inline(always)] fn umulhi(self, y: $t) -> $t {
                ((self as $u as $wide * y as $u as $wide) >> $t::BITS) as $t
            }
            #[inline(always)] fn lt(self, y: $t) -> bool { self < y }
            #[inline(always)] fn popc(self) -> $t { self.count_ones() as $t }
            #[inline(always)] fn clz(self) -> $t { self.leading_zeros() as $t }
            #[inline(always)] fn brev(self) -> $t { self.reverse_bits() }
        }
    )* };
}

int_lane! {
    i8, u8, u16, |x| x.wrapping_abs();
    i16, u16, u32, |x| x.wrapping_abs();
    i32, u32, u64, |x| x.wrapping_abs();
    i64, u64, u128, |x| x.wrapping_abs();
    u8, u8, u16, |x| x;
    u16, u16, u32, |x| x;
    u32, u32, u64, |x| x;
    u64, u64, u128, |x| x;
}

/// An unsigned integer of one bit.
#[rustfmt::skip]
impl IntLane for bool {
    #[inline(always)] fn neg(self) -> bool { self }
    #[inline(always)] fn not(self) -> bool { !self }
    #[inline(always)] fn abs(self) -> bool { self }
    #[inline(always)] fn add(self, y: bool) -> bool { self ^ y }
    #[inline(always)] fn sub(self, y: bool) -> bool { self ^ y }
    #[inline(always)] fn mul(self, y: bool) -> bool { self & y }
    #[inline(always)] fn idiv(self, y: bool) -> bool { self & y }
    #[inline(always)] fn rem(self, y: bool) -> bool { self & !y }
    #[inline(always)] fn min(self, y: bool) -> bool { self & y }
    #[inline(always)] fn max(self, y: bool) -> bool { self | y }
    #[inline(always)] fn and(self, y: bool) -> bool { self & y }
    #[inline(always)] fn or(self, y: bool) -> bool { self | y }
    #[inline(always)] fn xor(self, y: bool) -> bool { self ^ y }
    #[inline(always)] fn shl(self, y: bool) -> bool { self & !y }
    #[inline(always)] fn shr(self, y: bool) -> bool { self & !y }
    #[inline(always)] fn umulhi(self, _: bool) -> bool { false }
    #[inline(always)] fn lt(self, y: bool) -> bool { !self & y }
    #[inline(always)] fn popc(self) -> bool { self }
    #[inline(always)] fn clz(self) -> bool { !self }
    #[inline(always)] fn brev(self) -> bool { self }
}
