//! How memory looks that nobody has written since it was made.
//!
//! Whoever makes uninitialized memory under the checker fills it with a pattern that depends on the
//! address alone. What still has the pattern when a kernel comes to read it has not been written, by
//! whomever; so nothing has to be told of writes that the checker does not see.
//!
//! A unit is two bytes, `0x7fa0` and five bits of a hash of the address. As a float of 16 or 32 bits
//! that is a NaN which no arithmetic gives, as an integer an unlikely number.

use std::ops::Range;

fn unit(address: usize) -> u16 {
    0x7fa0 | ((address >> 1) as u32).wrapping_mul(0x9e37_79b1).wrapping_shr(27) as u16
}

fn byte(address: usize) -> u8 {
    unit(address).to_le_bytes()[address & 1]
}

/// Fills memory with the pattern.
///
/// # Safety
///
/// The addresses are valid for writing, and nobody else uses them meanwhile.
pub unsafe fn fill(range: Range<usize>) {
    let inner = range.start.next_multiple_of(2)..range.end & !1;
    for at in inner.clone().step_by(2) {
        // SAFETY: the caller's promise.
        unsafe { (at as *mut u16).write(unit(at)) };
    }
    for at in (range.start..inner.start.min(range.end)).chain(inner.end.max(range.start)..range.end)
    {
        // SAFETY: the caller's promise.
        unsafe { (at as *mut u8).write(byte(at)) };
    }
}

/// Whether `size` bytes still have the pattern.
///
/// # Safety
///
/// The addresses are valid for reading.
pub unsafe fn is_fresh(address: usize, size: usize) -> bool {
    // SAFETY: the caller's promise.
    (address..address + size).all(|at| unsafe { (at as *const u8).read() } == byte(at))
}

/// Calls `found` with each element of `size` bytes that has the pattern. A single small element may have
/// it by chance, so fewer than four bytes in a row do not count.
///
/// # Safety
///
/// The addresses are valid for reading.
pub unsafe fn scan(range: Range<usize>, size: usize, found: &mut dyn FnMut(usize)) {
    let n = range.len() / size;
    let least = 4usize.div_ceil(size);
    let mut run = 0;
    for i in 0..=n {
        // SAFETY: the caller's promise.
        if i < n && unsafe { element_is_fresh(range.start + i * size, size) } {
            run += 1;
            continue;
        }
        if run >= least {
            (i - run..i).for_each(&mut *found);
        }
        run = 0;
    }
}

#[inline(always)]
unsafe fn element_is_fresh(at: usize, size: usize) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        match size {
            4 if at.is_multiple_of(2) => {
                let want = u32::from(unit(at)) | u32::from(unit(at + 2)) << 16;
                (at as *const u32).read_unaligned() == want
            }
            2 if at.is_multiple_of(2) => (at as *const u16).read() == unit(at),
            _ => is_fresh(at, size),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_told_from_what_is_not() {
        let mut data = vec![0f32; 300];
        let range = data.as_mut_ptr_range();
        let range = range.start as usize..range.end as usize;
        // SAFETY: the vector's own memory.
        unsafe {
            let all = |range: &Range<usize>| {
                let mut all = Vec::new();
                scan(range.clone(), 4, &mut |i| all.push(i));
                all
            };
            assert!(all(&range).is_empty());
            fill(range.clone());
            data[7] = 1.0;
            assert_eq!(all(&range), (0..300).filter(|&i| i != 7).collect::<Vec<_>>());
            assert!(is_fresh(range.start, 4) && !is_fresh(range.start + 28, 4));
        }
        assert!(data[0].is_nan() && !data[7].is_nan());
    }
}
