//! Where kernels run.

use crate::{Executor, Location, PrintOptions, Printer, nanoseconds};
use naiad_interp::{LaunchOptions, PolicyKind};

/// A device with how it is to be used.
#[derive(Clone, Debug)]
pub struct Device {
    threads: usize,
    checked: bool,
    executor: Executor,
    printer: Printer,
    #[cfg(feature = "cuda")]
    gpu: Option<&'static crate::Gpu>,
}

impl Device {
    /// The CPU, all cores; kernels print to the standard output.
    pub fn cpu() -> Device {
        let printer = Printer::stdout(PrintOptions::default());
        Device {
            threads: 0,
            checked: false,
            executor: Executor::from_env(),
            printer,
            #[cfg(feature = "cuda")]
            gpu: None,
        }
    }

    /// The NVIDIA GPU of this number, for kernels whose memory is [`CudaBuffer`](crate::CudaBuffer)s.
    /// Launches are queued, and done when a buffer is read or [`Device::synchronize`] returns.
    ///
    /// # Safety
    ///
    /// Code on a GPU is not guarded. Every kernel that is launched on the device touches nothing but the
    /// memory of its arguments.
    #[cfg(feature = "cuda")]
    pub unsafe fn cuda(ordinal: u32) -> crate::Result<Device> {
        Ok(Device { gpu: Some(crate::Gpu::get(ordinal)?), ..Device::cpu() })
    }

    /// Where memory must be for launches on it.
    pub(crate) fn location(&self) -> Location {
        #[cfg(feature = "cuda")]
        if let Some(gpu) = self.gpu {
            return Location::Cuda(gpu.context().ordinal());
        }
        Location::Host
    }

    /// The GPU, if it is one.
    #[cfg(feature = "cuda")]
    pub fn gpu(&self) -> Option<&'static crate::Gpu> {
        self.gpu
    }

    /// Waits for all launches. On a CPU they were over when they returned.
    pub fn synchronize(&self) -> crate::Result<()> {
        #[cfg(feature = "cuda")]
        if let Some(gpu) = self.gpu {
            return gpu.synchronize();
        }
        Ok(())
    }

    /// Spreads programs over `threads` threads; 0 means as many as there are cores.
    pub fn threads(self, threads: usize) -> Device {
        Device { threads, ..self }
    }

    /// Judges every access by the tensor's logical view too, not only by its storage.
    pub fn checked(self, checked: bool) -> Device {
        Device { checked, ..self }
    }

    /// What runs kernels, instead of what `NAIAD_EXECUTOR` asks for.
    pub fn executor(self, executor: Executor) -> Device {
        Device { executor, ..self }
    }

    /// Where what kernels print goes, and how. A GPU's goes to the standard output, in lines; which of
    /// them is as the options say.
    pub fn printer(self, printer: Printer) -> Device {
        Device { printer, ..self }
    }

    #[cfg(feature = "cuda")]
    pub(crate) fn print_options(&self) -> &PrintOptions {
        self.printer.options()
    }

    pub(crate) fn run<T>(&self, launch: impl FnOnce(Executor, &LaunchOptions<'_>) -> T) -> T {
        let policy = if self.checked { PolicyKind::Checked } else { PolicyKind::Plain };
        let options = LaunchOptions {
            policy,
            threads: self.threads,
            print: Some(&|printed| self.printer.print(printed)),
            clock: Some(&nanoseconds),
            ..LaunchOptions::PLAIN
        };
        launch(self.executor, &options)
    }
}
