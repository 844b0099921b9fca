//! The hot path: from the arguments of a Python call to a launch.

use crate::call::{self, Call};
use crate::check;
use crate::compiled::PyCompiled;
use crate::convert::{
    Hold, Nesting, field_names, int, is_a, numpy_scalar, opaque, plain, to_host, to_python,
};
use crate::describe::{describe, hex, options};
use crate::errors::{exception, human, refused};
use crate::gpu;
use crate::grid;
use crate::host::{PyHost, default_object};
use crate::run::run;
use crate::tensor::{Trouble, plain_tensor, tensor};
use crate::warm::Warm;
use naiad::{
    Descriptor, Diagnostic, GpuCode, Grid, HostValue, Kernel, KernelOptions, Location,
    ParamSelector, ParamSpec, Slot, Value,
};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyFloat, PyInt, PyString, PyTuple, PyType};
use pyo3::{PyTraverseError, PyVisit, intern};
use std::sync::Arc;

/// One kernel with its compiled variants.
#[pyclass(name = "Kernel", module = "naiad._naiad", frozen)]
pub struct PyKernel {
    pub core: Kernel<PyHost>,
    /// What the parameters are called.
    names: Vec<Py<PyString>>,
    /// Their defaults, as they were when the kernel was first used.
    pub defaults: Vec<Option<Py<PyAny>>>,
    warm: Warm,
}

/// A compiled variant, kept for further launches.
pub type Ready = naiad::Ready<PyHost>;

type Object<'py> = Bound<'py, PyAny>;
/// A parameter: its name, its type, and its value if that is fixed.
type Described<'py> = (String, Object<'py>, Object<'py>);
type Arguments<'py> = naiad::Bound<PyBackedStr, Object<'py>>;

#[pymethods]
impl PyKernel {
    /// `function` is the `JITFunction`; `annotations` are those whose meaning Python knows.
    #[new]
    #[pyo3(signature = (
        function, annotations, do_not_specialize, do_not_specialize_on_alignment, debug, cuda_capability=None
    ))]
    fn new(
        function: &Object<'_>,
        annotations: Vec<Option<String>>,
        do_not_specialize: Vec<Object<'_>>,
        do_not_specialize_on_alignment: Vec<Object<'_>>,
        debug: bool,
        cuda_capability: Option<(u32, u32)>,
    ) -> PyResult<PyKernel> {
        let options = KernelOptions {
            do_not_specialize: select("do_not_specialize", &do_not_specialize)?,
            do_not_specialize_on_alignment: select(
                "do_not_specialize_on_alignment",
                &do_not_specialize_on_alignment,
            )?,
            annotations,
            debug,
            cuda_capability,
        };
        let host = Arc::new(PyHost::new(function));
        let py = function.py();
        let core = Kernel::new(host, PyHost::KERNEL, options).map_err(|e| exception(py, &e))?;
        let params = core.signature().params.iter();
        let names = params.map(|p| PyString::intern(py, &p.info.name).unbind()).collect();
        let python = function.getattr(intern!(py, "fn"))?;
        let default = |p: &naiad::Param| match p.info.has_default {
            true => default_object(&python, &p.info.name).map(Bound::unbind).ok(),
            false => None,
        };
        let defaults = core.signature().params.iter().map(default).collect();
        Ok(PyKernel { core, names, defaults, warm: Warm::default() })
    }

    /// What Python has found about the kernel; none where its line allows it.
    fn finding(
        &self,
        py: Python<'_>,
        id: &str,
        message: &str,
        notes: Vec<String>,
        help: Vec<String>,
    ) -> PyResult<Option<check::Finding>> {
        let source = self.core.source().map_err(|e| exception(py, &e))?;
        check::finding(id, message, notes, help, &source)
    }

    /// Binds, compiles where needed, and runs the grid's programs.
    fn launch<'py>(
        slf: &Bound<'py, Self>,
        py: Python<'py>,
        grid: &Object<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: &Bound<'py, PyDict>,
    ) -> PyResult<Bound<'py, PyCompiled>> {
        let kwargs = call::items(kwargs)?;
        PyKernel::launch_on(slf, py, grid, &Call::new(args, &kwargs), None)
    }

    /// Compiles for these arguments. A `silent` compilation leaves what there is to show of it to
    /// the next launch or compilation that uses it.
    fn compile(
        slf: &Bound<'_, Self>,
        py: Python<'_>,
        silent: bool,
        args: &Bound<'_, PyTuple>,
        kwargs: &Bound<'_, PyDict>,
    ) -> PyResult<PyCompiled> {
        let this = slf.get();
        let kwargs = call::items(kwargs)?;
        let bound = this.bind_arguments(py, &Call::new(args, &kwargs))?;
        let (mut launch, _) = this.prepare(py, bound)?;
        if !silent {
            show_news(py, &launch)?;
        }
        let gpu = match launch.location() {
            Location::Host => None,
            Location::Cuda(_) => {
                gpu::choose_prints(py, &mut launch)?;
                Some(gpu::code(py, &launch, None)?)
            }
        };
        Ok(PyCompiled::of(slf, &launch, gpu))
    }

    /// The arguments by the names of their parameters, defaults included; then the launch options.
    fn bind<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: &Bound<'py, PyDict>,
    ) -> PyResult<(Bound<'py, PyDict>, Bound<'py, PyDict>)> {
        let kwargs = call::items(kwargs)?;
        let bound = self.bind_arguments(py, &Call::new(args, &kwargs))?;
        let options = PyDict::new(py);
        for (name, value) in &bound.options {
            options.set_item(&**name, value)?;
        }
        Ok((self.by_name(py, &bound)?, options))
    }

    /// What a compilation for these arguments would be of: the key of the variant, whether that is
    /// compiled, and for each parameter its type and, where it is constexpr, its value.
    fn describe<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: &Bound<'py, PyDict>,
    ) -> PyResult<(String, bool, Vec<Described<'py>>, Bound<'py, PyDict>)> {
        let kwargs = call::items(kwargs)?;
        let request = self.request(py, self.bind_arguments(py, &Call::new(args, &kwargs))?)?;
        let key = hex(request.key());
        let params = self.describe_params(py, request.specs())?;
        let options = options(py, request.config())?;
        Ok((key, request.find(&self.core).is_ok(), params, options))
    }

    /// The compiled variants, each with its key. Their launch options are the usual ones.
    fn variants(slf: &Bound<'_, Self>) -> Vec<(String, PyCompiled)> {
        let one = |(key, compiled): (Vec<u8>, Arc<naiad::Compiled>)| {
            let (kernel, config) = (slf.clone().unbind(), naiad::LaunchConfig::default());
            (hex(&key), PyCompiled { kernel, compiled, config, specs: Vec::new(), gpu: None })
        };
        slf.get().core.compiled().into_iter().map(one).collect()
    }

    /// Forgets what was compiled.
    fn clear(&self) {
        self.core.clear();
        self.warm.clear();
    }

    /// For each parameter: name, the annotation's text or None, whether constexpr, whether 1 may be
    /// folded, whether alignment may be assumed.
    #[getter]
    pub fn params(&self) -> Vec<(String, Option<String>, bool, bool, bool)> {
        let params = self.core.signature().params.iter();
        let row = |p: &naiad::Param| {
            let (name, text) = (p.info.name.clone(), p.info.annotation.clone());
            (name, text, p.info.is_constexpr, p.specialize, p.assume_alignment)
        };
        params.map(row).collect()
    }

    /// How many variants are compiled.
    fn __len__(&self) -> usize {
        self.core.variants()
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.core.host().visit(&visit)?;
        self.defaults.iter().try_for_each(|default| visit.call(default))?;
        self.warm.visit(&visit)?;
        let mut result = Ok(());
        self.core.try_each_watch(|watch| {
            if result.is_ok() {
                result = watch.visit(&visit);
            }
        });
        result
    }

    /// What a launch returned knows its kernel, so the two would keep one another.
    fn __clear__(&self) {
        self.warm.clear();
    }
}

/// The parameters that an option of `@triton.jit` lists, by name or by position.
fn select(option: &str, listed: &[Object<'_>]) -> PyResult<Vec<ParamSelector>> {
    let one = |s: &Object<'_>| {
        if let Ok(name) = s.extract::<String>() {
            return Ok(ParamSelector::Name(name));
        }
        match s.extract::<i64>() {
            Ok(i) => Ok(ParamSelector::Index(usize::try_from(i).unwrap_or(usize::MAX))),
            Err(_) => Err(PyTypeError::new_err(format!(
                "`{option}` lists parameters by name or by position, and {} is neither",
                s.repr()?
            ))),
        }
    };
    listed.iter().map(one).collect()
}

impl PyKernel {
    /// A launch, on a GPU's current stream unless another is given.
    pub fn launch_on<'py>(
        slf: &Bound<'py, Self>,
        py: Python<'py>,
        grid: &Object<'py>,
        call: &Call<'_, 'py>,
        stream: Option<usize>,
    ) -> PyResult<Bound<'py, PyCompiled>> {
        let this = slf.get();
        // What runs Python comes before all looks at what the kernel depends on.
        let mut bound = None;
        let counts = match grid.is_callable() {
            true => this.grid(py, grid, bound.insert(this.bind_arguments(py, call)?)),
            false => grid::counts(py, grid),
        };
        if !check::is_active()
            && counts.is_ok()
            && let Some((mut launch, compiled)) = this.warm.launch(this, py, call)?
        {
            let gpu = this.start(py, &mut launch, counts?, stream)?;
            let same =
                gpu.as_ref().map(Arc::as_ptr) == compiled.get().gpu.as_ref().map(Arc::as_ptr);
            return match same {
                true => Ok(compiled),
                false => Bound::new(py, PyCompiled::of(slf, &launch, gpu)),
            };
        }
        let bound = bound.map_or_else(|| this.bind_arguments(py, call), Ok)?;
        let grid = counts?;
        let debug = this.core.config().debug || bound.options.iter().any(|(k, _)| **k == *"debug");
        let given = debug.then(|| bound.slots.clone());
        let (mut launch, ready) = this.prepare(py, bound)?;
        show_news(py, &launch)?;
        if let (Some(given), Location::Cuda(_)) = (given, launch.location()) {
            launch.know_memory(&gpu::memory(given)?);
        }
        let gpu = this.start(py, &mut launch, grid, stream)?;
        let compiled = Bound::new(py, PyCompiled::of(slf, &launch, gpu))?;
        if let Some(ready) = ready.filter(|_| !debug) {
            this.warm.remember(this, call, ready, &compiled);
        }
        Ok(compiled)
    }

    /// Runs a launch, or queues it on a GPU and gives its code there.
    fn start(
        &self,
        py: Python<'_>,
        launch: &mut naiad::Launch,
        grid: Grid,
        stream: Option<usize>,
    ) -> PyResult<Option<Arc<GpuCode>>> {
        let checked = check::is_active();
        if let Location::Cuda(ordinal) = launch.location()
            && !checked
        {
            gpu::choose_prints(py, launch)?;
            return gpu::start(py, launch, grid, ordinal, stream).map(Some);
        }
        let (ended, before) = run(py, launch, grid)?;
        if checked {
            check::launched(py, self.core.name(), &ended, &before)?;
        }
        let found = ended.map_err(|e| exception(py, &e))?;
        if !checked {
            report(py, &[], &found.findings)?;
        }
        Ok(None)
    }

    fn bind_arguments<'py>(
        &self,
        py: Python<'py>,
        call: &Call<'_, 'py>,
    ) -> PyResult<Arguments<'py>> {
        let (args, by_keyword) = call.values().split_at(call.positional());
        let keywords = call.names().iter().zip(by_keyword).map(|(name, value)| {
            // No parameter has a name that is no text, and the message that says so needs some.
            let name = PyBackedStr::try_from(Bound::clone(name))
                .or_else(|_| PyBackedStr::try_from(PyString::new(py, &name.to_string_lossy())));
            Ok((name?, Bound::clone(value)))
        });
        let keywords = keywords.collect::<PyResult<Vec<_>>>()?;
        let args = args.iter().map(|value| Bound::clone(value));
        let bound = self.core.signature().bind(args, keywords);
        let mut bound = bound.map_err(|e| exception(py, &e))?;
        for (slot, default) in bound.slots.iter_mut().zip(&self.defaults) {
            if let (Slot::Default, Some(default)) = (&*slot, default) {
                *slot = Slot::Given(default.bind(py).clone());
            }
        }
        Ok(bound)
    }

    pub fn describe_params<'py>(
        &self,
        py: Python<'py>,
        specs: &[ParamSpec],
    ) -> PyResult<Vec<Described<'py>>> {
        let params = self.core.signature().params.iter().zip(specs);
        let one = |(param, spec): (&naiad::Param, &ParamSpec)| {
            let (ty, value) = describe(py, self.core.host(), spec)?;
            Ok((param.info.name.clone(), ty, value))
        };
        params.map(one).collect()
    }

    fn by_name<'py>(
        &self,
        py: Python<'py>,
        bound: &Arguments<'py>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let names = PyDict::new(py);
        let params = self.core.signature().params.iter().zip(&self.names);
        for (slot, (param, name)) in bound.slots.iter().zip(params) {
            let value = match slot {
                Slot::Given(value) => value.clone(),
                Slot::Rest(values) => PyTuple::new(py, values)?.into_any(),
                Slot::Default => match self.core.default(&param.info.name) {
                    Ok(Value::Host(value)) => to_python(py, self.core.host(), &value)?,
                    Ok(_) => continue,
                    Err(e) => return Err(exception(py, &e)),
                },
            };
            names.set_item(name, value)?;
        }
        Ok(names)
    }

    /// The grid of a function, which is asked with all arguments.
    fn grid<'py>(
        &self,
        py: Python<'py>,
        grid: &Object<'py>,
        bound: &Arguments<'py>,
    ) -> PyResult<Grid> {
        let meta = self.by_name(py, bound)?;
        grid::asked(py, grid, &meta)
    }

    /// The launch; compiles first where needed.
    fn prepare(
        &self,
        py: Python<'_>,
        bound: Arguments<'_>,
    ) -> PyResult<(naiad::Launch, Option<Ready>)> {
        match self.request(py, bound)?.find(&self.core) {
            Ok((launch, ready)) => Ok((launch, Some(ready))),
            // Detached: other threads run Python meanwhile, and may compile too. The front end's
            // questions attach again.
            Err(request) => {
                let launch = py.detach(|| request.compile(&self.core));
                Ok((launch.map_err(|e| exception(py, &e))?, None))
            }
        }
    }

    /// Judges arguments and launch options.
    fn request(&self, py: Python<'_>, bound: Arguments<'_>) -> PyResult<naiad::Request> {
        let signature = self.core.signature();
        let mut slots = Vec::with_capacity(bound.slots.len());
        for (index, slot) in bound.slots.into_iter().enumerate() {
            let convert = |object: Object<'_>| {
                let value = self.value(&object, signature.params[index].info.is_constexpr);
                value.map_err(|trouble| self.refuse_argument(&object, index, trouble))
            };
            slots.push(match slot {
                Slot::Given(object) => Slot::Given(convert(object)?),
                Slot::Rest(objects) => {
                    Slot::Rest(objects.into_iter().map(convert).collect::<PyResult<_>>()?)
                }
                Slot::Default => Slot::Default,
            });
        }
        let host = self.core.host();
        let options = bound.options.iter().map(|(k, v)| Ok((k, to_host(host, v, Hold::Weakly)?)));
        let options = options.collect::<PyResult<Vec<_>>>()?;
        self.core.request(slots, options).map_err(|e| exception(py, &e))
    }

    /// What to raise where the argument of a parameter is in trouble.
    pub fn refuse_argument(&self, object: &Object<'_>, index: usize, trouble: Trouble) -> PyErr {
        let py = object.py();
        let misfit =
            |why: &str, help| exception(py, &self.core.signature().misfit(index, why, help));
        match trouble {
            Trouble::Unfit { why, help } => misfit(&why, Some(help)),
            Trouble::Python(e) => match refused(py, &e) {
                Some(why) => {
                    let wide = object.is_instance_of::<PyInt>();
                    misfit(&why, wide.then_some("kernels hold integers of up to 64 bits"))
                }
                None => e,
            },
        }
    }

    /// What an object is as the argument of a parameter.
    pub fn value(&self, object: &Object<'_>, is_constexpr: bool) -> Result<Value, Trouble> {
        // By class alone first: nearly all arguments are numbers of Python's own or plain tensors.
        if let Ok(i) = object.cast_exact::<PyInt>() {
            return Ok(Value::Host(HostValue::Int(int(i)?)));
        }
        if let Ok(f) = object.cast_exact::<PyFloat>() {
            return Ok(Value::Host(HostValue::Float(f.value())));
        }
        if let Some(tensor) = plain_tensor(object)? {
            return Ok(Value::Tensor(tensor));
        }
        let host = self.core.host();
        if let Ok(tuple) = object.cast::<PyTuple>()
            && !is_constexpr
        {
            let _deeper = Nesting::enter()?;
            let items = tuple.iter().map(|x| self.value(&x, false)).collect::<Result<_, _>>()?;
            return Ok(Value::Tuple { items, names: field_names(object)? });
        }
        if let Some(value) = plain(host, object, Hold::Weakly)? {
            return Ok(Value::Host(value));
        }
        // Of a constexpr only the value counts. As a run-time argument the scalar's width would be
        // lost, so there it is refused with all that has memory and is no tensor.
        if is_constexpr && let Some(number) = numpy_scalar(object)? {
            return Ok(Value::Host(to_host(host, &number, Hold::Weakly)?));
        }
        // Memory before other objects, which stand in keys by what they are.
        match tensor(object)? {
            Some(tensor) => Ok(Value::Tensor(tensor)),
            None if is_descriptor(object)? => descriptor(object),
            None => Ok(Value::Host(opaque(host, object, Hold::Weakly)?)),
        }
    }
}

fn is_descriptor(object: &Object<'_>) -> PyResult<bool> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let class = CLASS.import(object.py(), "naiad.tools.tensor_descriptor", "TensorDescriptor")?;
    Ok(is_a(object, class))
}

/// A `TensorDescriptor` of the host.
fn descriptor(object: &Object<'_>) -> Result<Value, Trouble> {
    let Some(base) = tensor(&object.getattr("base")?)? else {
        let why = "is a descriptor of something that is no tensor".to_string();
        return Err(Trouble::Unfit { why, help: "give it a tensor or an array" });
    };
    Ok(Value::Descriptor(Box::new(Descriptor {
        base,
        shape: object.getattr("shape")?.extract()?,
        strides: object.getattr("strides")?.extract()?,
        block_shape: object.getattr("block_shape")?.extract()?,
        pad_with_nan: object.getattr("padding")?.eq("nan")?,
        round_f32_to_tf32: object.getattr("round_f32_to_tf32")?.is_truthy()?,
    })))
}

/// Shows what there is to show of a compilation, unless that was done.
fn show_news(py: Python<'_>, launch: &naiad::Launch) -> PyResult<()> {
    match launch.take_news() {
        true => report(py, &launch.compiled().printed, &launch.compiled().findings),
        false => Ok(()),
    }
}

/// Prints what `tl.static_print` printed, and findings as warnings.
fn report(py: Python<'_>, printed: &[String], findings: &[Diagnostic]) -> PyResult<()> {
    if !printed.is_empty() {
        let print = py.import("builtins")?.getattr("print")?;
        let no_end = PyDict::new(py);
        no_end.set_item("end", "")?;
        for text in printed {
            print.call((text,), Some(&no_end))?;
        }
    }
    for finding in findings {
        py.import("naiad.errors")?.getattr("warn")?.call1((finding.id.name(), human(finding)))?;
    }
    Ok(())
}
