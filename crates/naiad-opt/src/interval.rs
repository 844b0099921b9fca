//! Intervals of integers, and what functions of numbers make of them.
//!
//! Arithmetic is exact first, and then asked whether the type can hold it. Where it cannot, a lane may
//! have wrapped, and nothing is known but the type.
//!
//! | | result | example |
//! |---|---|---|
//! | `a + b` | `lo + lo ..= hi + hi` | `0..=15 + 64..=64` is `64..=79` |
//! | `a * b` | between the products of the ends | `-2..=3 * 4..=5` is `-10..=15` |
//! | `a idiv b`, `b > 0` | between the quotients of the ends, towards zero | `-7..=7 idiv 2..=4` is `-3..=3` |
//! | `a rem b`, `b > 0` | sign of `a`, below `b`, no farther from 0 than `a` | `-3..=100 rem 8..=8` is `-3..=7` |
//! | `a & b`, one of them not negative | `0 ..= ` that one's `hi` | `? & 7..=7` is `0..=7` |
//! | `a >> k` | both ends shifted | `0..=1023 >> 4` is `0..=63` |

use naiad_ir::Scalar;
use naiad_ir::scalar::BinaryFn;
use std::ops::{Add, Mul, Neg, Sub};

/// The numbers `lo..=hi`, which are not none.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Interval {
    pub lo: i128,
    pub hi: i128,
}

impl std::fmt::Display for Interval {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}..={}", self.lo, self.hi)
    }
}

impl Interval {
    pub const fn new(lo: i128, hi: i128) -> Interval {
        debug_assert!(lo <= hi);
        Interval { lo, hi }
    }

    pub const fn point(x: i128) -> Interval {
        Interval { lo: x, hi: x }
    }

    /// All numbers of an integer type.
    pub const fn of_type(ty: Scalar) -> Interval {
        Interval { lo: ty.int_min(), hi: ty.int_max() }
    }

    pub fn is_point(self) -> bool {
        self.lo == self.hi
    }

    pub fn contains(self, other: Interval) -> bool {
        self.lo <= other.lo && other.hi <= self.hi
    }

    /// The least interval that holds both.
    pub fn hull(self, other: Interval) -> Interval {
        Interval { lo: self.lo.min(other.lo), hi: self.hi.max(other.hi) }
    }

    /// The numbers in both, if there are any.
    pub fn meet(self, other: Interval) -> Option<Interval> {
        let (lo, hi) = (self.lo.max(other.lo), self.hi.min(other.hi));
        (lo <= hi).then_some(Interval { lo, hi })
    }

    pub fn abs(self) -> Interval {
        if self.lo >= 0 {
            self
        } else if self.hi <= 0 {
            -self
        } else {
            Interval { lo: 0, hi: self.hi.max(self.lo.saturating_neg()) }
        }
    }

    fn around(ends: &[i128]) -> Interval {
        let (mut lo, mut hi) = (ends[0], ends[0]);
        for &e in ends {
            (lo, hi) = (lo.min(e), hi.max(e));
        }
        Interval { lo, hi }
    }
}

// Ends have at most 64 bits, or come from a few sums and products of such: beyond 128 bits they stay at
// the last number, which no type holds.
impl Add for Interval {
    type Output = Interval;
    fn add(self, other: Interval) -> Interval {
        Interval { lo: self.lo.saturating_add(other.lo), hi: self.hi.saturating_add(other.hi) }
    }
}

impl Sub for Interval {
    type Output = Interval;
    fn sub(self, other: Interval) -> Interval {
        self + -other
    }
}

impl Neg for Interval {
    type Output = Interval;
    fn neg(self) -> Interval {
        Interval { lo: self.hi.saturating_neg(), hi: self.lo.saturating_neg() }
    }
}

impl Mul for Interval {
    type Output = Interval;
    fn mul(self, other: Interval) -> Interval {
        let ends = [
            self.lo.saturating_mul(other.lo),
            self.lo.saturating_mul(other.hi),
            self.hi.saturating_mul(other.lo),
            self.hi.saturating_mul(other.hi),
        ];
        Interval::around(&ends)
    }
}

/// What a function of two integers of one type gives, and whether no lane wrapped.
pub fn binary(f: BinaryFn, ty: Scalar, a: Interval, b: Interval) -> (Interval, bool) {
    let all = Interval::of_type(ty);
    let exact = |x: Interval| if all.contains(x) { (x, true) } else { (all, false) };
    // Functions that cannot wrap.
    let plain = |x: Option<Interval>| (x.unwrap_or(all), true);
    match f {
        BinaryFn::Add => exact(a + b),
        BinaryFn::Sub => exact(a - b),
        BinaryFn::Mul => exact(a * b),
        BinaryFn::Shl => match shift_count(ty, b) {
            // A shift by the width or more gives 0, which no product does.
            Some((least, most)) => exact(a * Interval::new(1i128 << least, 1i128 << most)),
            None => (all, false),
        },
        BinaryFn::Min | BinaryFn::MinNan => {
            plain(Some(Interval::new(a.lo.min(b.lo), a.hi.min(b.hi))))
        }
        BinaryFn::Max | BinaryFn::MaxNan => {
            plain(Some(Interval::new(a.lo.max(b.lo), a.hi.max(b.hi))))
        }
        // The least number divided by -1 wraps; so only positive divisors are followed.
        BinaryFn::Idiv => plain(
            (b.lo > 0)
                .then(|| Interval::around(&[a.lo / b.lo, a.lo / b.hi, a.hi / b.lo, a.hi / b.hi])),
        ),
        // `x rem 0` is `x`, whose distance from 0 is then the bound.
        BinaryFn::Rem => {
            let below = if b.lo > 0 { b.hi - 1 } else { i128::MAX };
            plain(Some(Interval::new(
                a.lo.min(0).max(below.saturating_neg()),
                a.hi.max(0).min(below),
            )))
        }
        BinaryFn::And => match (a.lo >= 0, b.lo >= 0) {
            (true, true) => plain(Some(Interval::new(0, a.hi.min(b.hi)))),
            (true, false) => plain(Some(Interval::new(0, a.hi))),
            (false, true) => plain(Some(Interval::new(0, b.hi))),
            (false, false) => plain(None),
        },
        BinaryFn::Or | BinaryFn::Xor => plain((a.lo >= 0 && b.lo >= 0).then(|| {
            let bits = 128 - (a.hi | b.hi).leading_zeros();
            let least = if f == BinaryFn::Or { a.lo.max(b.lo) } else { 0 };
            Interval::new(least, (1i128 << bits) - 1)
        })),
        BinaryFn::Shr => plain(shift_count(ty, b).map(|(least, most)| {
            Interval::around(&[a.lo >> least, a.lo >> most, a.hi >> least, a.hi >> most])
        })),
        BinaryFn::Umulhi => (all, false),
        BinaryFn::Div
        | BinaryFn::DivRn
        | BinaryFn::Pow
        | BinaryFn::Atan2
        | BinaryFn::Hypot
        | BinaryFn::Fmod
        | BinaryFn::Remainder
        | BinaryFn::Copysign
        | BinaryFn::Nextafter
        | BinaryFn::Fdim
        | BinaryFn::Ldexp => (all, false),
    }
}

/// The least and the greatest count of a shift that is inside the type.
fn shift_count(ty: Scalar, by: Interval) -> Option<(u32, u32)> {
    let inside = by.lo >= 0 && by.hi < i128::from(ty.bits());
    inside.then_some((by.lo as u32, by.hi as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every pair of small intervals, against every pair of numbers in them.
    #[test]
    fn intervals_hold_what_the_functions_give() {
        let types = [Scalar::I8, Scalar::U8, Scalar::I1];
        let mut checked = 0;
        for ty in types {
            let all = Interval::of_type(ty);
            let ends: Vec<i128> =
                [-128, -127, -100, -7, -2, -1, 0, 1, 2, 3, 7, 8, 100, 127, 200, 255]
                    .into_iter()
                    .filter(|x| (all.lo..=all.hi).contains(x))
                    .collect();
            let intervals: Vec<Interval> = ends
                .iter()
                .flat_map(|&lo| ends.iter().filter(move |&&hi| hi >= lo).map(move |&hi| (lo, hi)))
                .map(|(lo, hi)| Interval::new(lo, hi))
                .collect();
            for f in BinaryFn::ALL.iter().copied().filter(|f| f.accepts(ty)) {
                for &a in &intervals {
                    for &b in &intervals {
                        let (out, exact) = binary(f, ty, a, b);
                        for x in samples(a) {
                            for y in samples(b) {
                                let image = |x: i128| x as u64 & ty.mask();
                                let r = f.eval(ty, image(x), image(y)).unwrap();
                                let r = naiad_ir::tile::Constant { ty, bits: r }.as_int().unwrap();
                                assert!(
                                    out.contains(Interval::point(r)),
                                    "{f} of {ty}: {x} in {a}, {y} in {b} give {r}, not in {out}"
                                );
                                let whole = match f {
                                    BinaryFn::Add => x + y,
                                    BinaryFn::Sub => x - y,
                                    BinaryFn::Mul => x * y,
                                    BinaryFn::Shl if exact => x << y,
                                    _ => r,
                                };
                                assert!(!exact || whole == r, "{f} of {ty}: {x}, {y} wrapped");
                                checked += 1;
                            }
                        }
                    }
                }
            }
        }
        assert!(checked > 1_000_000);
    }

    fn samples(i: Interval) -> impl Iterator<Item = i128> {
        let middle = (i.lo + i.hi) / 2;
        let mut all = vec![i.lo, i.lo + 1, middle, i.hi - 1, i.hi, 0, 1, -1, 8];
        all.retain(|&x| i.lo <= x && x <= i.hi);
        all.sort_unstable();
        all.dedup();
        all.into_iter()
    }
}
