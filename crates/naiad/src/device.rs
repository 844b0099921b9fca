//! Where kernels run.

use naiad_interp::{LaunchOptions, PolicyKind};

/// A device with how it is to be used.
#[derive(Clone, Debug)]
pub struct Device {
    threads: usize,
    checked: bool,
}

impl Device {
    /// The CPU, all cores.
    pub fn cpu() -> Device {
        Device { threads: 0, checked: false }
    }

    /// Spreads programs over `threads` threads; 0 means as many as there are cores.
    pub fn threads(self, threads: usize) -> Device {
        Device { threads, ..self }
    }

    /// Judges every access by the tensor's logical view too, not only by its storage.
    pub fn checked(self, checked: bool) -> Device {
        Device { checked, ..self }
    }

    pub(crate) fn options(&self) -> LaunchOptions<'static> {
        let policy = if self.checked { PolicyKind::Checked } else { PolicyKind::Plain };
        LaunchOptions {
            policy,
            naive: false,
            threads: self.threads,
            interrupt: None,
            print: None,
            clock: None,
        }
    }
}
