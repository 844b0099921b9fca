//! Which launches are too small for machine code.
//!
//! Machine code takes milliseconds to make, and tests launch most kernels once, on a few thousand elements.
//! So the first launch of a kernel is the reference executor's where that ends sooner. Nobody must see by
//! the results which of the two it was: what depends on the order in which numbers are combined is combined
//! in that of machine code, and a kernel of which only the compiler knows that is machine code from the first
//! launch on.

use naiad_interp::Code;
use naiad_opt::is_order_free;

/// Launches of less than this, in half nanoseconds as [`Code::work`] counts them, are small: a quarter of
/// what machine code takes at the median of kernels.
const SMALL: u64 = 2_000_000;

/// Which first launches of a kernel are small, and how they are run.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Small {
    /// The most programs that one may have; 0 where none is small.
    pub programs: u64,
    /// Numbers are combined in the order of machine code.
    pub in_order: bool,
}

impl Small {
    pub fn of(code: &Code) -> Small {
        let in_order = !is_order_free(code.func());
        let most = if in_order { naiad_cpu::programs_in_order(code.func()) } else { u64::MAX };
        let fit = code.work(in_order).map_or(0, |work| SMALL / work.max(1));
        Small { programs: fit.min(most), in_order }
    }
}
