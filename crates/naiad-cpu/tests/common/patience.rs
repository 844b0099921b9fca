//! How long a test lets a kernel run.

#![allow(dead_code, reason = "each test file uses a part")]

use std::time::Duration;

/// Ends kernels that run for seconds: what is made smaller may lose the end of a loop. Seconds of the
/// processor, so that nobody is stopped because the machine is busy.
pub fn patience(seconds: u64) -> impl Fn() -> bool + Sync {
    let end = processor_time() + Duration::from_secs(seconds);
    move || processor_time() > end
}

/// How long the reference executor may take for a kernel; whoever is compared with it may take longer, so
/// that what the one ends the other one does.
pub const REFERENCE: u64 = 3;
pub const COMPARED: u64 = 30;

fn processor_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: it writes the time to where it is told.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
