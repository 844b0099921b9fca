//! Launches on GPUs, and what Python asks about them.

use crate::dlpack;
use crate::errors::exception;
use crate::screen;
use crate::tensor::storage_on_gpu;
use naiad::cuda::RawStream;
use naiad::{Gpu, GpuCode, Grid, Slot};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::ops::Range;
use std::sync::Arc;

/// How many GPUs there are; 0 where there is no driver.
#[pyfunction]
pub fn gpu_count() -> u32 {
    Gpu::count()
}

/// What a GPU is. The names are those of torch's properties of a device; clocks are in kHz, sizes in bytes.
#[pyfunction]
pub fn gpu_facts(py: Python<'_>, ordinal: u32) -> PyResult<Bound<'_, PyDict>> {
    let gpu = Gpu::get(ordinal).map_err(|e| exception(py, &e))?;
    let facts = gpu.facts();
    let dict = PyDict::new(py);
    dict.set_item("name", &facts.name)?;
    dict.set_item("total_memory", facts.memory)?;
    for (name, value) in [
        ("major", facts.major),
        ("minor", facts.minor),
        ("multi_processor_count", facts.multiprocessors),
        ("L2_cache_size", facts.l2_cache),
        ("shared_memory_per_multiprocessor", facts.shared_per_multiprocessor),
        ("shared_memory_per_block_optin", facts.shared_per_block_optin),
        ("shared_memory_per_block", facts.shared_per_block),
        ("max_threads_per_multi_processor", facts.max_threads_per_multiprocessor),
        ("max_threads_per_block", facts.max_threads),
        ("regs_per_multiprocessor", facts.registers_per_multiprocessor),
        ("warp_size", facts.warp_size),
        ("clock_rate", facts.clock),
        ("memory_clock_rate", facts.memory_clock),
        ("memory_bus_width", facts.memory_bus_width),
    ] {
        dict.set_item(name, value)?;
    }
    Ok(dict)
}

/// Waits for all launches on a GPU, and raises what went wrong with them.
#[pyfunction]
pub fn gpu_synchronize(py: Python<'_>, ordinal: u32) -> PyResult<()> {
    let done = py.detach(|| Gpu::get(ordinal)?.synchronize());
    done.map_err(|e| exception(py, &e))
}

/// Where the memory of the tensors among a launch's arguments begins and ends. Only a kernel that watches
/// where it goes wants to know.
pub fn memory(slots: Vec<Slot<Bound<'_, PyAny>>>) -> PyResult<Vec<Range<usize>>> {
    let mut found = Vec::new();
    for slot in slots {
        match slot {
            Slot::Given(object) => memory_of(&object, &mut found)?,
            Slot::Rest(objects) => {
                objects.iter().try_for_each(|object| memory_of(object, &mut found))?;
            }
            Slot::Default => {}
        }
    }
    Ok(found)
}

fn memory_of(object: &Bound<'_, PyAny>, found: &mut Vec<Range<usize>>) -> PyResult<()> {
    let py = object.py();
    if let Ok(items) = object.cast::<PyTuple>() {
        return items.iter().try_for_each(|item| memory_of(&item, found));
    }
    if let Some(range) = storage_on_gpu(object)? {
        found.push(range);
    } else if let Some(base) = object.getattr_opt(intern!(py, "base"))?
        && !base.is_none()
    {
        // Descriptors, and tensors that are reinterpreted.
        return memory_of(&base, found);
    }
    Ok(())
}

/// Has `NAIAD_PRINT` choose what is shown of a kernel that prints.
pub fn choose_prints(py: Python<'_>, launch: &mut naiad::Launch) -> PyResult<()> {
    if launch.prints() {
        launch.show_prints(&screen::settings().map_err(|e| exception(py, &e))?);
    }
    Ok(())
}

/// The code of a launch; compiles it where needed, while other threads run Python.
pub fn code(py: Python<'_>, launch: &naiad::Launch, grid: Option<Grid>) -> PyResult<Arc<GpuCode>> {
    let compile = || py.detach(|| launch.gpu_code(grid));
    let code = launch.find_gpu_code(grid).unwrap_or_else(compile);
    code.map_err(|e| exception(py, &e))
}

/// Queues a launch, and gives its code.
pub fn start(
    py: Python<'_>,
    launch: &naiad::Launch,
    grid: Grid,
    ordinal: u32,
    stream: Option<usize>,
) -> PyResult<Arc<GpuCode>> {
    let code = code(py, launch, Some(grid))?;
    let stream = match stream {
        Some(given) => given,
        None => current_stream(py, ordinal)?,
    };
    // SAFETY: the code is this launch's. Its tensors live at least until this returns, and memory that
    // torch and others free is not given to anyone before what is queued on its stream is done. What the
    // kernel touches besides is the kernel's to answer for, as with any code for a GPU.
    let queued = unsafe { launch.start(&code, grid, RawStream::from_address(stream)) };
    queued.map_err(|e| exception(py, &e)).map(|()| code)
}

/// torch's current stream; the default stream where there is no torch.
fn current_stream(py: Python<'_>, ordinal: u32) -> PyResult<usize> {
    if let Some(stream) = dlpack::current_stream(py, ordinal) {
        return Ok(stream);
    }
    let modules = py.import(intern!(py, "sys"))?.getattr(intern!(py, "modules"))?;
    match modules.cast::<PyDict>()?.get_item(intern!(py, "torch"))? {
        Some(torch) => {
            let torch = torch.getattr(intern!(py, "_C"))?;
            // A torch without CUDA has none.
            match torch.getattr_opt(intern!(py, "_cuda_getCurrentRawStream"))? {
                Some(ask) => ask.call1((ordinal,))?.extract(),
                None => Ok(0),
            }
        }
        None => Ok(0),
    }
}
