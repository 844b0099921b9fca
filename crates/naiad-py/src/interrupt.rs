//! Ctrl-C during a launch.
//!
//! Python handles a signal between two bytecodes of its main thread, and a launch lies between two.
//! So for the time of a launch on the main thread a handler of ours stands before Python's: it
//! raises a flag that the executor polls, then calls Python's. That takes two system calls for each
//! launch and no second thread. Where a script took SIGINT away from Python, nothing is changed.

pub use imp::Interruptible;

#[cfg(unix)]
mod imp {
    use std::cell::UnsafeCell;
    use std::mem::MaybeUninit;
    use std::sync::atomic::{AtomicBool, Ordering};

    static FLAG: AtomicBool = AtomicBool::new(false);

    struct Previous(UnsafeCell<MaybeUninit<libc::sigaction>>);

    // SAFETY: written by the main thread before our handler is installed, read by the handler.
    unsafe impl Sync for Previous {}

    static PREVIOUS: Previous = Previous(UnsafeCell::new(MaybeUninit::uninit()));

    extern "C" fn on_signal(
        signal: libc::c_int,
        info: *mut libc::siginfo_t,
        context: *mut libc::c_void,
    ) {
        FLAG.store(true, Ordering::Relaxed);
        // SAFETY: this handler is installed only after PREVIOUS was written and only where the
        // handler in it is a function, of the kind that its flags say.
        unsafe {
            let previous = (*PREVIOUS.0.get()).assume_init_ref();
            if previous.sa_flags & libc::SA_SIGINFO != 0 {
                let f: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) =
                    std::mem::transmute(previous.sa_sigaction);
                f(signal, info, context);
            } else {
                let f: extern "C" fn(libc::c_int) = std::mem::transmute(previous.sa_sigaction);
                f(signal);
            }
        }
    }

    /// A span of time in which Ctrl-C raises a flag.
    pub struct Interruptible {
        installed: bool,
    }

    impl Interruptible {
        pub fn begin() -> Interruptible {
            Interruptible { installed: is_main_thread() && install() }
        }

        pub fn flag(&self) -> Option<&'static AtomicBool> {
            self.installed.then_some(&FLAG)
        }
    }

    fn install() -> bool {
        // SAFETY: plain calls with structures of our own. PREVIOUS is not in use: only the main
        // thread comes here, and it is not inside another `Interruptible`, since no Python runs
        // during a launch.
        unsafe {
            let mut previous = MaybeUninit::<libc::sigaction>::uninit();
            if libc::sigaction(libc::SIGINT, std::ptr::null(), previous.as_mut_ptr()) != 0 {
                return false;
            }
            let previous = previous.assume_init();
            if [libc::SIG_DFL, libc::SIG_IGN].contains(&previous.sa_sigaction) {
                return false;
            }
            *PREVIOUS.0.get() = MaybeUninit::new(previous);
            FLAG.store(false, Ordering::Relaxed);
            let mut ours = previous;
            ours.sa_sigaction = on_signal as *const () as usize;
            ours.sa_flags |= libc::SA_SIGINFO;
            libc::sigaction(libc::SIGINT, &ours, std::ptr::null_mut()) == 0
        }
    }

    impl Drop for Interruptible {
        fn drop(&mut self) {
            if self.installed {
                // SAFETY: PREVIOUS was written by `install`.
                unsafe {
                    let previous = (*PREVIOUS.0.get()).as_ptr();
                    libc::sigaction(libc::SIGINT, previous, std::ptr::null_mut());
                }
            }
        }
    }

    #[cfg(target_os = "linux")]
    fn is_main_thread() -> bool {
        // SAFETY: two calls without arguments that cannot fail.
        unsafe { libc::getpid() as libc::c_long == libc::syscall(libc::SYS_gettid) }
    }

    #[cfg(target_vendor = "apple")]
    fn is_main_thread() -> bool {
        // SAFETY: a call without arguments that cannot fail.
        unsafe { libc::pthread_main_np() == 1 }
    }

    #[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
    fn is_main_thread() -> bool {
        false
    }
}

#[cfg(not(unix))]
mod imp {
    use std::sync::atomic::AtomicBool;

    /// Without POSIX signals a launch runs to its end.
    pub struct Interruptible;

    impl Interruptible {
        pub fn begin() -> Interruptible {
            Interruptible
        }

        pub fn flag(&self) -> Option<&'static AtomicBool> {
            None
        }
    }
}
