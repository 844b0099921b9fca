//! A compiled variant, as a launch returns it.

use crate::call::{self, Call};
use crate::describe::options;
use crate::errors::exception;
use crate::host::PyHost;
use crate::kernel::PyKernel;
use naiad::{GpuCode, ParamSpec};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple};
use pyo3::{PyTraverseError, PyVisit, intern};
use std::sync::Arc;

type Object<'py> = Bound<'py, PyAny>;

/// A compiled variant, as a launch returns it.
#[pyclass(name = "CompiledKernel", module = "naiad._naiad", frozen)]
pub struct PyCompiled {
    pub kernel: Py<PyKernel>,
    pub compiled: Arc<naiad::Compiled>,
    pub config: naiad::LaunchConfig,
    pub specs: Vec<ParamSpec>,
    /// What runs on a GPU, where that is where it ran.
    pub gpu: Option<Arc<GpuCode>>,
}

/// A compiled variant with a grid, to be given arguments.
#[pyclass(module = "naiad._naiad", frozen)]
struct Relaunch {
    kernel: Py<PyKernel>,
    grid: Py<PyAny>,
    options: Py<PyDict>,
}

#[pymethods]
impl PyCompiled {
    /// What the function calls itself for these types, where it has something to say to that.
    #[getter]
    fn name<'py>(&self, py: Python<'py>) -> PyResult<Object<'py>> {
        let kernel = self.kernel.bind(py).get();
        let function = kernel.core.host().functions.get(py, PyHost::KERNEL.0)?;
        if function.getattr(intern!(py, "_repr"))?.is_none() {
            return Ok(PyString::new(py, &self.compiled.func.name).into_any());
        }
        let params = kernel.describe_params(py, &self.specs)?;
        function.call_method1(intern!(py, "_called"), (params,))
    }

    /// Texts of the stages of compilation, by name; for a GPU the machine code too.
    #[getter]
    fn asm<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stages = PyDict::new(py);
        stages.set_item("tile", self.compiled.func.to_string())?;
        if let Some(gpu) = &self.gpu {
            stages.set_item("placed", gpu.ptx.placed().map_err(|e| exception(py, &e))?)?;
            stages.set_item("thread", gpu.ptx.code.func.to_string())?;
            stages.set_item("ptx", &gpu.ptx.text)?;
            stages.set_item("cubin", PyBytes::new(py, &gpu.cubin))?;
        }
        Ok(stages)
    }

    /// The launch options that code reads back from a compiled kernel.
    #[getter]
    fn options<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        options(py, self.config)
    }

    /// Options and facts of this variant as a named tuple.
    #[getter]
    fn metadata<'py>(&self, py: Python<'py>) -> PyResult<Object<'py>> {
        let fields = self.options(py)?;
        fields.set_item("name", self.name(py)?)?;
        fields.set_item("hash", self.hash(py)?)?;
        if let Some(gpu) = &self.gpu {
            fields.set_item("shared", gpu.shared_bytes())?;
        }
        py.import("naiad.compiler")?.call_method("metadata", (), Some(&fields))
    }

    /// Names the code: equal for equal code.
    #[getter]
    fn hash(&self, py: Python<'_>) -> PyResult<String> {
        let text = self.compiled.func.to_string();
        let digest = py.import("hashlib")?.call_method1("sha256", (text.as_bytes(),))?;
        digest.call_method0("hexdigest")?.extract()
    }

    // A CPU's registers are not shared out among programs. Kernels that size their grid by them
    // divide by these, so they are not 0.

    /// Registers of a thread.
    #[getter]
    fn n_regs(&self) -> u32 {
        self.gpu.as_ref().map_or(1, |gpu| gpu.uses().registers)
    }

    /// Registers of a thread, 32 bits each, that are kept in memory.
    #[getter]
    fn n_spills(&self) -> u32 {
        self.gpu.as_ref().map_or(0, |gpu| gpu.uses().local_bytes / 4)
    }

    /// Threads that a block can have, as the registers allow.
    #[getter]
    fn n_max_threads(&self) -> u32 {
        self.gpu.as_ref().map_or(1024, |gpu| gpu.uses().max_threads)
    }

    /// Blocks that a multiprocessor runs at a time; None on a CPU.
    #[getter]
    fn blocks_per_multiprocessor(&self, py: Python<'_>) -> PyResult<Option<u32>> {
        let blocks = self.gpu.as_ref().map(|gpu| gpu.blocks_per_multiprocessor()).transpose();
        blocks.map_err(|e| exception(py, &e))
    }

    /// Seconds that the parts of the compilation took, and whether the machine code came from the cache.
    #[getter]
    fn times<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let times = PyDict::new(py);
        if let Some(gpu) = &self.gpu {
            times.set_item("compile", gpu.times.compile.as_secs_f64())?;
            times.set_item("link", gpu.times.link.as_secs_f64())?;
            times.set_item("load", gpu.times.load.as_secs_f64())?;
            times.set_item("cached", gpu.times.cached)?;
        }
        Ok(times)
    }

    /// What is to be loaded is loaded.
    fn _init_handles(&self) {}

    /// `compiled[grid](*args)` launches this variant's kernel with its options again; all
    /// parameters are given by position.
    fn __getitem__(&self, py: Python<'_>, grid: Py<PyAny>) -> PyResult<Relaunch> {
        let options = self.options(py)?;
        // A parameter that is called as an option is given with the others.
        for (name, ..) in self.kernel.get().params() {
            if options.contains(&name)? {
                options.del_item(name)?;
            }
        }
        let options = options.unbind();
        Ok(Relaunch { kernel: self.kernel.clone_ref(py), grid, options })
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.kernel)
    }
}

impl PyCompiled {
    pub fn of(
        kernel: &Bound<'_, PyKernel>,
        launch: &naiad::Launch,
        gpu: Option<Arc<GpuCode>>,
    ) -> PyCompiled {
        let compiled = launch.compiled().clone();
        let (config, specs) = (launch.config(), launch.specs().to_vec());
        PyCompiled { kernel: kernel.clone().unbind(), compiled, config, specs, gpu }
    }
}

#[pymethods]
impl Relaunch {
    #[pyo3(signature = (*args, stream = None))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        stream: Option<usize>,
    ) -> PyResult<Bound<'py, PyCompiled>> {
        let (kernel, grid) = (self.kernel.bind(py), self.grid.bind(py));
        let options = call::items(self.options.bind(py))?;
        PyKernel::launch_on(kernel, py, grid, &Call::new(args, &options), stream)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.kernel)?;
        visit.call(&self.grid)?;
        visit.call(&self.options)
    }
}
