//! Which launches are too small for machine code.
//!
//! Machine code takes milliseconds to make, and tests launch most kernels once, on a few thousand elements.
//! So the first launch of a kernel is the reference executor's where that ends sooner. Nobody must see by
//! the results which of the two it was: kernels whose results depend on the order in which an executor
//! combines numbers are machine code from the first launch on.

use naiad_interp::Code;
use naiad_opt::is_order_free;

/// Launches of less than this, in half nanoseconds as [`Code::work`] counts them, are small: a quarter of
/// what machine code takes at the median of kernels.
const SMALL: u64 = 2_000_000;

/// The most programs that a first launch may have to be small; 0 where none is.
pub fn programs(code: &Code) -> u64 {
    let work = code.work().filter(|_| is_order_free(code.func()));
    work.map_or(0, |work| SMALL / work.max(1))
}
