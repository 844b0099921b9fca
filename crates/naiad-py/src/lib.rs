//! The extension module `naiad._naiad`: what the Python package needs from Rust, and no more.
//!
//! ```text
//! launcher   kernel[grid], and the call of it
//! grid       what stands in the brackets
//! call       the arguments of a call
//! kernel     Kernel: bind, specialize, launch
//! warm       launches like those before: the hot path
//! run        a launch given to the executor
//! tensor     memory of torch's tensors, and of whatever else has some
//! array      memory of NumPy's arrays
//! dlpack     what torch says of its tensors in C
//! convert    values between Python and the front end
//! compiled   compiled variants, as launches return them
//! gpu        launches on GPUs
//! describe   compiled variants, to be looked at
//! host       a running Python as the front end's host
//! interned   objects by number
//! watch      what a compiled variant depends on, seen at a glance
//! dtype      tl.dtype, tl.pointer_type
//! errors     diagnostics as exceptions
//! interrupt  Ctrl-C during a launch
//! check      checked launches, uninitialized memory
//! screen     what kernels print, to Python's sys.stdout
//! cli        the command, in this interpreter
//! ```

mod array;
mod call;
mod check;
mod cli;
mod compiled;
mod convert;
mod describe;
mod dlpack;
mod dtype;
mod errors;
mod gpu;
mod grid;
mod host;
mod interned;
mod interrupt;
mod kernel;
mod launcher;
mod names;
mod run;
mod screen;
mod tensor;
mod warm;
mod watch;

use pyo3::prelude::*;

#[pymodule]
mod _naiad {
    #[pymodule_export]
    use crate::check::{Finding, is_checked, mark_initialized, mark_uninitialized, sarif};
    #[pymodule_export]
    use crate::cli::cli_main;
    #[pymodule_export]
    use crate::compiled::PyCompiled;
    #[pymodule_export]
    use crate::dtype::{DType, PointerType};
    #[pymodule_export]
    use crate::gpu::{gpu_count, gpu_facts, gpu_synchronize};
    #[pymodule_export]
    use crate::host::function_end;
    #[pymodule_export]
    use crate::kernel::PyKernel;
    #[pymodule_export]
    use crate::launcher::{Launchable, set_hooked};
    #[pymodule_export]
    use crate::names::{dtype_names, language_names, public_names};
    #[pymodule_export]
    use crate::run::configure;
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        // A panic is reported as a diagnostic by whoever catches it; what Rust would print besides
        // says nothing to a user of Python. NAIAD_BACKTRACE keeps it, for developers.
        if std::env::var_os("NAIAD_BACKTRACE").is_none() {
            std::panic::set_hook(Box::new(|_| {}));
        }
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("MAX_NUMEL", naiad::MAX_NUMEL)
    }
}
