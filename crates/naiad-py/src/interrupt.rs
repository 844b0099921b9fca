//! Ctrl-C during a launch.
//!
//! Python handles a signal between two bytecodes of its main thread, and a launch lies between two.
//! So for the time of a long launch on the main thread a handler of ours stands before Python's: it
//! raises a flag that the executor polls, then calls Python's. That takes a few system calls and no
//! second thread. Where a script took SIGINT away from Python, nothing is changed.

pub use imp::{Listening, flag, raised};

#[cfg(unix)]
mod imp {
    use std::cell::UnsafeCell;
    use std::mem::MaybeUninit;
    use std::sync::atomic::{AtomicBool, Ordering};

    static RAISED: AtomicBool = AtomicBool::new(false);

    struct Previous(UnsafeCell<MaybeUninit<libc::sigaction>>);

    // SAFETY: written by the main thread before our handler is installed, read by the handler.
    unsafe impl Sync for Previous {}

    static PREVIOUS: Previous = Previous(UnsafeCell::new(MaybeUninit::uninit()));

    extern "C" fn on_signal(
        signal: libc::c_int,
        info: *mut libc::siginfo_t,
        context: *mut libc::c_void,
    ) {
        RAISED.store(true, Ordering::Relaxed);
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

    /// Whether Ctrl-C was pressed. Only those who listen are concerned.
    pub fn raised() -> bool {
        RAISED.load(Ordering::Relaxed)
    }

    /// The flag itself, where Ctrl-C is for the launches of this thread. It is down while nobody listens.
    pub fn flag() -> Option<&'static AtomicBool> {
        is_main_thread().then_some(&RAISED)
    }

    /// A span of time in which Ctrl-C raises the flag.
    pub struct Listening {
        /// False within another one: what a launch prints may run Python that launches.
        outermost: bool,
    }

    impl Listening {
        /// None where Ctrl-C is not for the launches of this thread.
        pub fn begin() -> Option<Listening> {
            if !is_main_thread() {
                return None;
            }
            // SAFETY: plain calls with structures of our own. Only the main thread comes here, so
            // PREVIOUS is in use only if our handler is installed, and then it is left alone.
            unsafe {
                let mut previous = MaybeUninit::<libc::sigaction>::uninit();
                if libc::sigaction(libc::SIGINT, std::ptr::null(), previous.as_mut_ptr()) != 0 {
                    return None;
                }
                let mut ours = previous.assume_init();
                let handler = on_signal as *const () as usize;
                if ours.sa_sigaction == handler {
                    return Some(Listening { outermost: false });
                }
                if [libc::SIG_DFL, libc::SIG_IGN].contains(&ours.sa_sigaction) {
                    return None;
                }
                *PREVIOUS.0.get() = MaybeUninit::new(ours);
                RAISED.store(false, Ordering::Relaxed);
                ours.sa_sigaction = handler;
                ours.sa_flags |= libc::SA_SIGINFO;
                let installed = libc::sigaction(libc::SIGINT, &ours, std::ptr::null_mut()) == 0;
                installed.then_some(Listening { outermost: true })
            }
        }
    }

    impl Drop for Listening {
        fn drop(&mut self) {
            if self.outermost {
                // SAFETY: PREVIOUS was written when this began.
                unsafe {
                    let previous = (*PREVIOUS.0.get()).as_ptr();
                    libc::sigaction(libc::SIGINT, previous, std::ptr::null_mut());
                }
                RAISED.store(false, Ordering::Relaxed);
            }
        }
    }

    /// Every launch asks, and the kernel's answer costs a tenth of one: it is kept for each thread. A fork
    /// makes its thread the main one of the new process.
    #[cfg(target_os = "linux")]
    fn is_main_thread() -> bool {
        use std::sync::Once;
        use std::sync::atomic::AtomicUsize;
        static FORKS: AtomicUsize = AtomicUsize::new(0);
        static COUNTS_FORKS: Once = Once::new();
        extern "C" fn forked() {
            FORKS.fetch_add(1, Ordering::Relaxed);
        }
        thread_local! {
            /// Behind how many forks the thread asked, and the answer.
            static KNOWN: std::cell::Cell<Option<(usize, bool)>> = const { std::cell::Cell::new(None) };
        }
        let forks = FORKS.load(Ordering::Relaxed);
        if let Some((asked, is_main)) = KNOWN.get()
            && asked == forks
        {
            return is_main;
        }
        // SAFETY: what is called in a forked process changes one number and nothing else.
        COUNTS_FORKS.call_once(|| unsafe {
            libc::pthread_atfork(None, None, Some(forked));
        });
        // SAFETY: two calls without arguments that cannot fail.
        let is_main = unsafe { libc::getpid() as libc::c_long == libc::syscall(libc::SYS_gettid) };
        KNOWN.set(Some((forks, is_main)));
        is_main
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
    /// Without POSIX signals a launch runs to its end.
    pub struct Listening(());

    impl Listening {
        pub fn begin() -> Option<Listening> {
            None
        }
    }

    pub fn raised() -> bool {
        false
    }

    pub fn flag() -> Option<&'static std::sync::atomic::AtomicBool> {
        None
    }
}
