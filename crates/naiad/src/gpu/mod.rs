//! GPUs: code for them, and launches on them.
//!
//! ```text
//!   Tile IR ── code ──> Thread IR ──> PTX ── the driver, or cache ──> machine code ── loaded ──> launch
//! ```
//!
//! A launch is queued and not waited for: what is wrong with it is found at the next wait, or by any
//! later call. Nothing but the address of a tensor is known to its kernel, and what it touches is not
//! guarded as on a CPU: a kernel that strays is run in debug mode, or under the checker on the CPU, to be
//! told its line. In debug mode a launch is waited for, and what its kernel found is read: see
//! `faults.rs`.

mod buffer;
mod cache;
mod code;
mod faults;
mod variants;

pub use buffer::CudaBuffer;
pub(crate) use code::no_code;
pub use code::{GpuCode, Ptx, Target, Times, ptx};
pub(crate) use variants::{Asks, Compiled, Key, Known};

use crate::settings::Settings;
use crate::{Error, Result};
use faults::Faults;
use naiad_cuda::{Context, Driver, Facts};
use naiad_diag::{Diagnostic, Id};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

/// A GPU that is ready for work; there is one of each in a process.
pub struct Gpu {
    context: Arc<Context>,
    /// The latest launches that nobody has waited for.
    launched: Mutex<VecDeque<(Arc<str>, [u32; 3])>>,
    /// The records of kernels that tell of their faults.
    faults: Mutex<Vec<Weak<Faults>>>,
}

/// How many launches are remembered for the message of a fault.
const REMEMBERED: usize = 8;
/// More devices than a machine has.
const MOST: usize = 64;

impl Gpu {
    /// The GPU of this number; starts it the first time.
    pub fn get(ordinal: u32) -> Result<&'static Gpu> {
        static GPUS: [OnceLock<Result<Gpu>>; MOST] = [const { OnceLock::new() }; MOST];
        let Some(gpu) = GPUS.get(ordinal as usize) else {
            let message = format!("there is no GPU {ordinal}");
            return Err(Diagnostic::new(Id::Gpu, message).into());
        };
        gpu.get_or_init(|| Gpu::start(ordinal)).as_ref().map_err(Error::clone)
    }

    /// How many there are; 0 where there is no driver.
    pub fn count() -> u32 {
        Driver::get().map_or(0, Driver::devices)
    }

    fn start(ordinal: u32) -> Result<Gpu> {
        let context = Driver::get().and_then(|driver| Context::primary(driver, ordinal));
        let context = context.map_err(|e| {
            let report = Diagnostic::new(Id::Gpu, format!("GPU {ordinal} cannot be used: {e}"));
            Error::from(match e.code() {
                Some(naiad_cuda::Code::NotInitialized) => report.help(FORKED),
                _ => report,
            })
        })?;
        Ok(Gpu { context, launched: Mutex::default(), faults: Mutex::default() })
    }

    pub fn facts(&self) -> &Facts {
        self.context.facts()
    }

    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// The newest CUDA that its driver knows, times 1000.
    pub fn driver_version(&self) -> u32 {
        self.context.driver().version()
    }

    /// Waits until all that was queued is done; a fault of a launch comes back here.
    pub fn synchronize(&self) -> Result<()> {
        let done = self.wait();
        let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        faults.retain(|faults| faults.strong_count() > 0);
        for faults in faults.iter().filter_map(Weak::upgrade) {
            faults.told(&done)?;
        }
        done
    }

    /// Waits, and looks at no record.
    fn wait(&self) -> Result<()> {
        let done = self.context.synchronize().map_err(|e| self.fault(&e));
        if done.is_ok() {
            self.lock().clear();
        }
        done
    }

    /// The message for an error of a call that is about no GPU in particular.
    pub fn broken(e: &naiad_cuda::Error) -> Error {
        match Gpu::get(0) {
            Ok(gpu) => gpu.fault(e),
            Err(_) => error(e),
        }
    }

    /// Notes that a kernel has a record to look at.
    fn watch(&self, faults: &Arc<Faults>) {
        let mut all = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(Arc::downgrade(faults));
    }

    /// Notes a launch, for the message of a fault.
    fn remember(&self, kernel: &Arc<str>, grid: [u32; 3]) {
        let mut launched = self.lock();
        if launched.len() == REMEMBERED {
            launched.pop_front();
        }
        launched.push_back((kernel.clone(), grid));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<(Arc<str>, [u32; 3])>> {
        self.launched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The message for an error of a call that may tell of an earlier launch.
    #[cold]
    fn fault(&self, e: &naiad_cuda::Error) -> Error {
        if !e.is_sticky() {
            return error(e);
        }
        let launched = self.lock();
        let listed = launched.iter().rev().map(|(name, grid)| format!("`{name}` with {grid:?}"));
        let listed = listed.collect::<Vec<_>>().join(", ");
        let message = match launched.len() {
            1 => format!("the launch of {listed} broke the GPU's context: {e}"),
            _ => format!("a launch broke the GPU's context: {e}"),
        };
        let report = Diagnostic::new(Id::Gpu, message);
        let report = match launched.len() {
            0 | 1 => report,
            _ => report.note(format!("launched since the last wait, the latest first: {listed}")),
        };
        let report = report.note("nothing more can be done with the GPU in this process");
        let report = match (launched.len(), Settings::get().cuda_sync) {
            (0 | 1, _) | (_, true) => report,
            _ => report.help(
                "with NAIAD_CUDA_SYNC=1 in the environment each launch is waited for, and this error names the one at fault",
            ),
        };
        report
            .help("launched with `debug=True` a kernel tells the line of a stray access")
            .help("`naiad check` runs the script on the CPU, and finds more")
            .into()
    }
}

impl std::fmt::Debug for Gpu {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "GPU {}, {}", self.context.ordinal(), self.facts().name)
    }
}

const FORKED: &str = "a process that forks after it has used a GPU cannot use it in the child: start the child by `spawn`";

/// The message for an error of the driver that is about nothing else.
fn error(e: &naiad_cuda::Error) -> Error {
    let report = Diagnostic::new(Id::Gpu, e.to_string());
    match e.code() {
        Some(naiad_cuda::Code::NotInitialized) => report.help(FORKED).into(),
        Some(naiad_cuda::Code::OutOfMemory) => Diagnostic { id: Id::OutOfMemory, ..report }.into(),
        _ => report.into(),
    }
}

/// Whether the driver lets GPUs use this memory of the host.
pub(crate) fn shares(address: usize) -> bool {
    Driver::get().is_ok_and(|driver| driver.shares(address))
}
