//! The clock that kernels read.

use std::sync::OnceLock;
use std::time::Instant;

/// Nanoseconds since the first call in this process, by a clock that never goes back.
pub fn nanoseconds() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}
