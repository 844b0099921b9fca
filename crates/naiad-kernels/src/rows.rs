//! Sorting rows, the first few of each sorted row, and counting.
//!
//! Sorting goes by *keys*: unsigned numbers of the element's width whose order is that of the values,
//! with NaN, of either sign, above all numbers. An image has one key and a key one image, so that keys
//! are sorted by themselves and turned back. Negative zero comes before zero; they are equal, and either
//! may come first.

use naiad_ir::Scalar;
use naiad_ir::scalar::{Format, Nan};

/// Sorts each of `rows` rows of `n` contiguous elements of `src` into `dst`.
///
/// # Safety
///
/// The type is a position in [`Scalar::ALL`]. `src` may be read and `dst` written, as many elements,
/// and no byte belongs to both. No alignment is needed.
pub unsafe extern "C" fn sort(
    dst: *mut u8,
    src: *const u8,
    rows: i64,
    n: i64,
    ty: i64,
    descending: i64,
) {
    // SAFETY: the caller's.
    unsafe { topk(dst, src, rows, n, n, ty, descending) }
}

/// The first `k` elements of each sorted row of `n`.
///
/// # Safety
///
/// As for [`sort`]; a row of `dst` has `k` elements, at most `n`.
pub unsafe extern "C" fn topk(
    dst: *mut u8,
    src: *const u8,
    rows: i64,
    n: i64,
    k: i64,
    ty: i64,
    descending: i64,
) {
    let Some(&ty) = Scalar::ALL.get(ty as usize) else { return };
    let (rows, n, k) = (rows.max(0) as usize, n.max(0) as usize, k.clamp(0, n.max(0)) as usize);
    let order = Order::of(ty, descending != 0);
    for r in 0..rows {
        let (dst, src) = (dst.wrapping_add(r * k * ty.size()), src.wrapping_add(r * n * ty.size()));
        // SAFETY: the caller's.
        unsafe {
            match ty.size() {
                1 if n >= IMAGES => count_row(&order, dst, src, [n, k]),
                1 => sort_row::<u8>(&order, dst, src, [n, k]),
                2 => sort_row::<u16>(&order, dst, src, [n, k]),
                4 => sort_row::<u32>(&order, dst, src, [n, k]),
                _ => sort_row::<u64>(&order, dst, src, [n, k]),
            }
        }
    }
}

/// How many of `count` integers are `0, 1, …, bins - 1`; with a mask, of those where its byte is not 0.
/// Others are not counted.
///
/// # Safety
///
/// The type is the position of an integer in [`Scalar::ALL`]. `src` and `mask`, unless it is null, may
/// be read, and `bins` elements of `dst` of 4 bytes be written, none of which belongs to the others. No
/// alignment is needed.
pub unsafe extern "C" fn histogram(
    dst: *mut u8,
    src: *const u8,
    mask: *const u8,
    count: i64,
    bins: i64,
    ty: i64,
) {
    let Some(&ty) = Scalar::ALL.get(ty as usize) else { return };
    let (count, bins) = (count.max(0) as usize, bins.max(0) as usize);
    macro_rules! counted {
        ($t:ty, $number:expr) => {{
            let number: fn($t) -> u64 = $number;
            for i in 0..count {
                // SAFETY: the caller's.
                unsafe {
                    if !mask.is_null() && mask.wrapping_add(i).read() == 0 {
                        continue;
                    }
                    let x = number(src.cast::<$t>().wrapping_add(i).read_unaligned());
                    if x < bins as u64 {
                        let place = dst.cast::<i32>().wrapping_add(x as usize);
                        place.write_unaligned(place.read_unaligned().wrapping_add(1));
                    }
                }
            }
        }};
    }
    // SAFETY: the caller's.
    unsafe { dst.write_bytes(0, 4 * bins) };
    // Negative numbers become greater than any number of bins.
    match ty {
        Scalar::I1 => counted!(u8, |x| u64::from(x != 0)),
        Scalar::I8 => counted!(i8, |x| i64::from(x) as u64),
        Scalar::I16 => counted!(i16, |x| i64::from(x) as u64),
        Scalar::I32 => counted!(i32, |x| i64::from(x) as u64),
        _ => match ty.size() {
            1 => counted!(u8, u64::from),
            2 => counted!(u16, u64::from),
            4 => counted!(u32, u64::from),
            _ => counted!(u64, |x| x),
        },
    }
}

/// How images become keys.
#[derive(Copy, Clone)]
struct Order {
    float: bool,
    signed: bool,
    /// How many negative images are NaN: keys begin after those, which so come to the end.
    negative_nans: u64,
    /// Whether the image that would be negative zero is the NaN.
    nan_is_negative_zero: bool,
    /// What a key is turned round with.
    turn: u64,
}

impl Order {
    fn of(ty: Scalar, descending: bool) -> Order {
        let (nan, mantissa) = match Format::of(ty) {
            Some(format) => (format.nan, format.mantissa),
            None => (Nan::Ieee, f64::MANTISSA_DIGITS - 1),
        };
        let negative_nans = match nan {
            _ if !ty.is_float() => 0,
            Nan::Ieee => (1 << mantissa) - 1,
            Nan::AllOnes => 1,
            Nan::NegativeZero | Nan::Absent => 0,
        };
        Order {
            float: ty.is_float(),
            signed: ty.is_signed(),
            negative_nans,
            nan_is_negative_zero: ty.is_float() && nan == Nan::NegativeZero,
            turn: if descending { u64::MAX } else { 0 },
        }
    }
}

/// An image, and its key, of some width.
trait Image: Copy + Ord {
    fn key(self, order: &Order) -> Self;
    fn image(self, order: &Order) -> Self;
}

macro_rules! images {
    ($($t:ident)+) => { $(
        impl Image for $t {
            #[inline(always)]
            fn key(self, order: &Order) -> $t {
                const SIGN: $t = 1 << ($t::BITS - 1);
                let key = if order.float {
                    // Negative numbers the other way round, below the others.
                    let flipped = self ^ if self & SIGN == 0 { SIGN } else { $t::MAX };
                    if !order.nan_is_negative_zero {
                        flipped.wrapping_sub(order.negative_nans as $t)
                    } else if self == SIGN {
                        $t::MAX
                    } else {
                        // The place of negative zero is free.
                        flipped - $t::from(self & SIGN == 0)
                    }
                } else if order.signed {
                    self ^ SIGN
                } else {
                    self
                };
                key ^ order.turn as $t
            }

            #[inline(always)]
            fn image(self, order: &Order) -> $t {
                const SIGN: $t = 1 << ($t::BITS - 1);
                let key = self ^ order.turn as $t;
                if order.float {
                    let flipped = if !order.nan_is_negative_zero {
                        key.wrapping_add(order.negative_nans as $t)
                    } else if key == $t::MAX {
                        return SIGN;
                    } else {
                        key + $t::from(key >= SIGN - 1)
                    };
                    flipped ^ if flipped & SIGN == 0 { $t::MAX } else { SIGN }
                } else if order.signed {
                    key ^ SIGN
                } else {
                    key
                }
            }
        }
    )+ };
}

images!(u8 u16 u32 u64);

/// A number at any address.
#[derive(Copy, Clone)]
#[repr(C, packed)]
struct Unaligned<T>(T);

impl<T: Copy> Unaligned<T> {
    #[inline(always)]
    fn get(self) -> T {
        self.0
    }
}

/// How many images an element of one byte has.
const IMAGES: usize = 256;

/// Elements of one byte: as many of each as there are.
unsafe fn count_row(order: &Order, dst: *mut u8, src: *const u8, [n, k]: [usize; 2]) {
    let mut counts = [0usize; IMAGES];
    for i in 0..n {
        // SAFETY: the caller's.
        let x = unsafe { src.wrapping_add(i).read() };
        counts[usize::from(x.key(order))] += 1;
    }
    let mut at = 0;
    for (key, count) in counts.into_iter().enumerate() {
        let count = count.min(k - at);
        // SAFETY: the caller's.
        unsafe { dst.wrapping_add(at).write_bytes((key as u8).image(order), count) };
        at += count;
    }
}

/// How many elements are compared at once with the last of the first `k`.
const CHUNK: usize = 64;

unsafe fn sort_row<T: Image>(order: &Order, dst: *mut u8, src: *const u8, [n, k]: [usize; 2]) {
    if k == 0 {
        return;
    }
    // SAFETY: the caller's; such elements need no alignment.
    let (first, src) = unsafe {
        (
            std::slice::from_raw_parts_mut(dst.cast::<Unaligned<T>>(), k),
            std::slice::from_raw_parts(src.cast::<Unaligned<T>>(), n),
        )
    };
    for (key, x) in first.iter_mut().zip(src) {
        key.0 = x.get().key(order);
    }
    if k < n {
        // A heap with the greatest of the first `k` on top: what is not less is not among them.
        first.sort_unstable_by_key(|x| std::cmp::Reverse(x.get()));
        for chunk in src[k..].chunks(CHUNK) {
            let top = first[0].get();
            let any = chunk.iter().fold(false, |any, x| any | (x.get().key(order) < top));
            if any {
                chunk.iter().for_each(|x| replace_top(first, x.get().key(order)));
            }
        }
    }
    first.sort_unstable_by_key(|x| x.get());
    for x in first {
        x.0 = x.get().image(order);
    }
}

/// Puts a key into a heap in place of its greatest, if it is less.
fn replace_top<T: Image>(heap: &mut [Unaligned<T>], key: T) {
    if key >= heap[0].get() {
        return;
    }
    let mut at = 0;
    loop {
        let mut child = 2 * at + 1;
        if child >= heap.len() {
            break;
        }
        if child + 1 < heap.len() && heap[child].get() < heap[child + 1].get() {
            child += 1;
        }
        let greater = heap[child].get();
        if greater <= key {
            break;
        }
        heap[at].0 = greater;
        at = child;
    }
    heap[at].0 = key;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;
    use naiad_ir::scalar::{Rounding, cast_bits};
    use std::cmp::Ordering;

    fn get(bytes: &[u8], i: usize, size: usize) -> u64 {
        let mut image = [0; 8];
        image[..size].copy_from_slice(&bytes[i * size..][..size]);
        u64::from_ne_bytes(image)
    }

    /// The order of the language.
    fn compare(ty: Scalar, x: u64, y: u64) -> Ordering {
        if ty.is_float() {
            let value =
                |image| f64::from_bits(cast_bits(ty, Scalar::F64, Rounding::Nearest, image));
            let (x, y) = (value(x), value(y));
            return match (x.is_nan(), y.is_nan()) {
                (false, false) => x.partial_cmp(&y).unwrap(),
                (x, y) => x.cmp(&y),
            };
        }
        let wide = |image| {
            let unused = 64 - ty.bits();
            if ty.is_signed() {
                i128::from((image << unused) as i64 >> unused)
            } else {
                i128::from(image)
            }
        };
        wide(x).cmp(&wide(y))
    }

    fn images(random: &mut Random, ty: Scalar, n: usize) -> Vec<u64> {
        let few = random.below(2) == 0;
        let mut all: Vec<u64> = (0..n)
            .map(|_| {
                let bits = random.bits() & ty.mask();
                // Equal elements; and what is special in floats is at the ends of exponents.
                match random.below(4) {
                    0 if few => bits & 3,
                    1 if ty.is_float() => bits | ty.mask() >> 1 & !0xff,
                    2 if ty.is_float() => bits & !(ty.mask() >> 1),
                    _ => bits,
                }
            })
            .collect();
        match random.below(6) {
            0 => all.sort_by(|&x, &y| compare(ty, x, y)),
            1 => all.sort_by(|&x, &y| compare(ty, y, x)),
            _ => {}
        }
        all
    }

    #[test]
    fn rows_of_all_types_sorted_and_their_first_elements() {
        let mut random = Random::new(9);
        for &ty in Scalar::ALL {
            let size = ty.size();
            for _ in 0..60 {
                let n = 1 << random.below(11);
                let k = if random.below(2) == 0 { n } else { 1 + random.below(n) };
                let (rows, skip) = (random.below(3), random.below(8));
                let descending = random.below(2) == 1;
                let src: Vec<u64> = images(&mut random, ty, rows * n);
                let mut bytes = vec![0; skip];
                bytes.extend(src.iter().flat_map(|x| x.to_ne_bytes()[..size].to_vec()));
                let mut out = vec![77u8; skip + rows * k * size + 8];
                // SAFETY: the vectors hold the rows.
                unsafe {
                    let (to, from) = (out.as_mut_ptr().add(skip), bytes.as_ptr().add(skip));
                    let [n, k, ty] = [n as i64, k as i64, ty as i64];
                    if n == k {
                        sort(to, from, rows as i64, n, ty, i64::from(descending));
                    } else {
                        topk(to, from, rows as i64, n, k, ty, i64::from(descending));
                    }
                }
                for r in 0..rows {
                    let mut want = src[r * n..][..n].to_vec();
                    want.sort_by(|&x, &y| {
                        let order = compare(ty, x, y);
                        if descending { order.reverse() } else { order }
                    });
                    let row = &out[skip + r * k * size..][..k * size];
                    for (i, &want) in want.iter().take(k).enumerate() {
                        let got = get(row, i, size);
                        assert!(
                            compare(ty, got, want) == Ordering::Equal,
                            "{ty} {n} {k}: at {i} {got:#x}, not {want:#x}"
                        );
                    }
                    if k == n {
                        // The same elements, to the bit.
                        let mut got: Vec<u64> = (0..n).map(|i| get(row, i, size)).collect();
                        got.sort_unstable();
                        want.sort_unstable();
                        assert_eq!(got, want, "{ty}");
                    }
                }
                assert!(out[..skip].iter().chain(&out[out.len() - 8..]).all(|&x| x == 77));
            }
        }
    }

    #[test]
    fn keys_turn_back_into_images() {
        for &ty in Scalar::ALL.iter().filter(|ty| ty.bits() <= 16) {
            for descending in [false, true] {
                let order = Order::of(ty, descending);
                for image in 0..=ty.mask() {
                    let back = match ty.size() {
                        1 => u64::from((image as u8).key(&order).image(&order)),
                        _ => u64::from((image as u16).key(&order).image(&order)),
                    };
                    assert_eq!(back, image, "{ty}");
                }
            }
        }
    }

    #[test]
    fn histograms_of_all_integers() {
        let mut random = Random::new(10);
        for &ty in Scalar::ALL.iter().filter(|ty| ty.is_int()) {
            let size = ty.size();
            for round in 0..40 {
                let (count, bins) = (random.below(300), 1 << random.below(9));
                let numbers: Vec<u64> = (0..count)
                    .map(|_| if round % 2 == 0 { random.bits() } else { random.bits() % 300 } & ty.mask())
                    .collect();
                let skip = random.below(4);
                let mut src = vec![0; skip];
                src.extend(numbers.iter().flat_map(|x| x.to_ne_bytes()[..size].to_vec()));
                let mask: Vec<u8> = (0..count).map(|_| random.below(3) as u8).collect();
                let masked = random.below(2) == 1;
                let mut out = vec![77u8; skip + 4 * bins + 8];
                let at = if masked { mask.as_ptr() } else { std::ptr::null() };
                // SAFETY: the vectors hold as many elements.
                unsafe {
                    let (to, from) = (out.as_mut_ptr().add(skip), src.as_ptr().add(skip));
                    histogram(to, from, at, count as i64, bins as i64, ty as i64);
                }
                for bin in 0..bins {
                    let counted = |i: usize| !masked || mask[i] != 0;
                    let wide = |x| cast_bits(ty, Scalar::I64, Rounding::Nearest, x);
                    let all = numbers.iter().enumerate();
                    let want = all.filter(|&(i, &x)| counted(i) && wide(x) == bin as u64).count();
                    assert_eq!(get(&out[skip..], bin, 4), want as u64, "{ty}: bin {bin} of {bins}");
                }
                assert!(out[..skip].iter().chain(&out[out.len() - 8..]).all(|&x| x == 77));
            }
        }
    }

    #[test]
    fn nothing_is_done_where_there_is_nothing() {
        let null = std::ptr::null_mut();
        // SAFETY: there are no elements.
        unsafe {
            for (rows, n, k) in [(0, 4, 2), (3, 0, 0), (3, 4, 0), (-1, 4, 4), (2, -1, 1)] {
                topk(null, null, rows, n, k, Scalar::F32 as i64, 0);
            }
            sort(null, null, 3, 0, Scalar::F64 as i64, 1);
            histogram(null, null, null, -1, 0, Scalar::I32 as i64);
        }
    }
}
