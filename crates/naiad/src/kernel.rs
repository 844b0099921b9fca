//! A kernel with its compiled variants.

use crate::executor::{self, Executor};
use crate::ready::Ready;
use crate::recorder::{LiveHost, Recorder};
use crate::settings::Settings;
use crate::signature::{Signature, Slot};
use crate::specialize::{Located, Specialization, Values, encode_spec};
use crate::value::Location;
use crate::variants::{Made, Variants};
use crate::{
    Args, CompileOptions, Compiled, Device, Error, FnRef, FunctionSource, Grid, HostValue,
    IntoGrid, LaunchConfig, ParamSpec, Result, Value, guard,
};
use naiad_diag::{Diagnostic, Id};
use naiad_front::Syntax;
use naiad_interp::{Arg, LaunchOptions, Report};
use std::sync::{Arc, Mutex, PoisonError};
#[cfg(feature = "cuda")]
use {
    crate::{Gpu, GpuCode, PrintOptions},
    naiad_cuda::RawStream,
    naiad_interp::PolicyKind,
};

/// What `@triton.jit(...)` says beside the function.
#[derive(Clone, Default, Debug)]
pub struct KernelOptions {
    /// Parameters whose integers never become constexpr.
    pub do_not_specialize: Vec<ParamSelector>,
    /// Parameters whose alignment nothing may be concluded from.
    pub do_not_specialize_on_alignment: Vec<ParamSelector>,
    /// The annotations that the host knows better than the text says them, by position: an alias
    /// has the name of what it stands for.
    pub annotations: Vec<Option<String>>,
    /// Launches check assertions and integer overflow unless they say otherwise.
    pub debug: bool,
    /// Compute capability of the NVIDIA GPU that `tl.target_info` speaks of, if of any.
    pub cuda_capability: Option<(u32, u32)>,
}

/// A parameter, by name or by position.
#[derive(Clone, PartialEq, Debug)]
pub enum ParamSelector {
    Name(String),
    Index(usize),
}

/// A kernel: its parameters, and its compiled variants, one for each combination of argument types
/// and constexpr values that was launched.
pub struct Kernel<H: LiveHost> {
    host: Arc<H>,
    function: FnRef,
    signature: Signature,
    options: KernelOptions,
    /// For the first compilation, which as a rule is the only one.
    syntax: Mutex<Option<Syntax>>,
    pub(crate) variants: Variants<H::Watch>,
}

/// Arguments judged and encoded: what a launch needs besides code.
pub struct Request {
    specs: Vec<ParamSpec>,
    key: Vec<u8>,
    args: Vec<Arg>,
    config: LaunchConfig,
    location: Location,
}

/// What launches have in common that differ in their run-time values only.
pub(crate) struct Plan {
    pub made: Arc<Made>,
    /// What each parameter became.
    pub specs: Vec<ParamSpec>,
    pub config: LaunchConfig,
    pub location: Location,
    /// How many run-time arguments there are.
    pub args: usize,
}

/// A launch that is ready to run: arguments judged, code compiled.
pub struct Launch {
    plan: Arc<Plan>,
    args: Vec<Arg>,
    /// What a GPU shows of its prints; all where this is not given.
    #[cfg(feature = "cuda")]
    prints: Option<Arc<naiad_gpu::Prints>>,
}

impl<H: LiveHost> Kernel<H> {
    /// Parses the kernel and reads its parameters; nothing is compiled yet.
    pub fn new(host: Arc<H>, function: FnRef, options: KernelOptions) -> Result<Kernel<H>> {
        let parse = || Ok(Syntax::of(&*host, function)?);
        let syntax = guard("reading a kernel", parse)?;
        let info = syntax.info();
        let mut signature = Signature::new(&info, &options.annotations);
        for index in signature.select("do_not_specialize", &options.do_not_specialize)? {
            signature.params[index].specialize = false;
        }
        let unaligned = &options.do_not_specialize_on_alignment;
        for index in signature.select("do_not_specialize_on_alignment", unaligned)? {
            signature.params[index].assume_alignment = false;
        }
        let (syntax, variants) = (Mutex::new(Some(syntax)), Variants::default());
        Ok(Kernel { host, function, signature, options, syntax, variants })
    }

    pub fn name(&self) -> &str {
        &self.signature.kernel
    }

    pub fn signature(&self) -> &Signature {
        &self.signature
    }

    /// The kernel's text.
    pub fn source(&self) -> Result<FunctionSource> {
        self.host.source(self.function).map_err(|e| {
            let message = format!("the source of `{}` cannot be read: {e}", self.name());
            Error::from(Diagnostic::new(Id::BadEncoding, message))
        })
    }

    pub fn host(&self) -> &H {
        &self.host
    }

    /// What launches have without options of their own.
    pub fn config(&self) -> LaunchConfig {
        let KernelOptions { debug, cuda_capability, .. } = self.options;
        LaunchConfig { debug, cuda_capability, ..LaunchConfig::default() }
    }

    /// Compiles the kernel for a specialization written out, or finds it compiled.
    pub fn compile(&self, specs: &[ParamSpec]) -> Result<Arc<Compiled>> {
        self.compile_as(specs, &self.config())
    }

    pub(crate) fn compile_as(
        &self,
        specs: &[ParamSpec],
        config: &LaunchConfig,
    ) -> Result<Arc<Compiled>> {
        let options = config.compile_options();
        let made = self.make(&encode_specs(specs, &options), specs, &options)?;
        made.take_news();
        Ok(made.compiled.clone())
    }

    /// Makes a launch of arguments sorted to their parameters and of launch options.
    pub fn prepare<K: AsRef<str>>(
        &self,
        slots: impl IntoIterator<Item = Slot<Value>>,
        options: impl IntoIterator<Item = (K, HostValue)>,
    ) -> Result<Launch> {
        self.request(slots, options)?.compile(self)
    }

    /// The first half of [`Kernel::prepare`]: judges arguments and options.
    pub fn request<K: AsRef<str>>(
        &self,
        slots: impl IntoIterator<Item = Slot<Value>>,
        options: impl IntoIterator<Item = (K, HostValue)>,
    ) -> Result<Request> {
        let mut config = self.config();
        for (name, value) in options {
            config.set(name.as_ref(), &value)?;
        }
        let mut special = Specialization::new(self.signature.params.len());
        for (slot, param) in slots.into_iter().zip(&self.signature.params) {
            let value = match slot {
                Slot::Given(value) => value,
                Slot::Rest(values) => Value::tuple(values),
                Slot::Default => self.default(&param.info.name)?,
            };
            special.push(&self.signature, value)?;
        }
        let Specialization { specs, values: Values { args, memory } } = special;
        let location = self.locate(&memory)?;
        if let Location::Cuda(ordinal) = location {
            config.cuda_capability = Some(capability(ordinal)?);
        }
        let key = encode_specs(&specs, &config.compile_options());
        Ok(Request { key, specs, args, config, location })
    }

    /// Where a launch runs: where all of its memory is.
    fn locate(&self, memory: &[Located]) -> Result<Location> {
        let Some((first, rest)) = memory.split_first() else { return Ok(Location::Host) };
        if rest.iter().all(|m| m.location == first.location) {
            return Ok(first.location);
        }
        let away = memory.iter().find(|m| m.location != Location::Host).unwrap_or(first);
        // Memory of the host that was made to be shared with GPUs counts as theirs.
        let foreign = |m: &&Located| match m.location {
            Location::Host => !shares(m.address),
            there => there != away.location,
        };
        let Some(other) = memory.iter().find(foreign) else { return Ok(away.location) };
        let params = &self.signature.params;
        let (here, there) = (&params[other.param as usize].info, &params[away.param as usize].info);
        let message = format!(
            "the arguments of `{}` are on different devices: `{}` is {}, and `{}` is {}",
            self.name(),
            there.name,
            away.location,
            here.name,
            other.location
        );
        let report = Diagnostic::new(Id::BadLaunch, message);
        let report = self.signature.at(other.param as usize, report, "this parameter");
        let to = match away.location {
            Location::Host => String::new(),
            Location::Cuda(n) => format!(": `x.to(\"cuda:{n}\")` in torch"),
        };
        Err(report.help(format!("move one to where the other is{to}")).into())
    }

    /// The value that a parameter has when nothing is given for it.
    pub fn default(&self, param: &str) -> Result<Value> {
        let value = self.host.default(self.function, param).map_err(|e| {
            let message =
                format!("the default of `{param}` of `{}` cannot be read: {e}", self.name());
            Error::from(Diagnostic::new(Id::BadLaunch, message))
        })?;
        Ok(Value::Host(value))
    }

    /// Compiles, unless that was done before or is being done by another thread.
    fn make(&self, key: &[u8], specs: &[ParamSpec], options: &CompileOptions) -> Result<Arc<Made>> {
        let num_warps = options.num_warps;
        let find = || self.variants.find(&*self.host, key, num_warps);
        loop {
            if let Some(variant) = find() {
                return Ok(variant.made.clone());
            }
            Settings::checked()?;
            let Some(_turn) = self.variants.begin(key) else { continue };
            // It may have been finished between the look and the turn.
            if let Some(variant) = find() {
                return Ok(variant.made.clone());
            }
            let latest = self.variants.latest(&*self.host);
            let recorder = Recorder::new(&*self.host, latest.as_ref().map(|made| &made.answers));
            let made = guard(format_args!("compiling `{}`", self.name()), || {
                let syntax = self.syntax.lock().unwrap_or_else(PoisonError::into_inner).take();
                let syntax = match syntax {
                    Some(syntax) => syntax,
                    None => Syntax::of(&recorder, self.function)?,
                };
                let compiled = syntax.compile(&recorder, specs, options)?;
                let answers = recorder.into_answers();
                Ok(Made::new(compiled, specs, &self.signature, answers, num_warps))
            })?;
            return Ok(self.variants.add(&*self.host, key.to_vec(), made));
        }
    }

    /// The compiled variants, each with its key.
    pub fn compiled(&self) -> Vec<(Vec<u8>, Arc<Compiled>)> {
        let all = self.variants.all().into_iter();
        all.map(|(key, made)| (key, made.compiled.clone())).collect()
    }

    /// Forgets what was compiled.
    pub fn clear(&self) {
        self.variants.clear();
    }

    /// How many variants are compiled.
    pub fn variants(&self) -> usize {
        self.variants.len()
    }

    /// Shows what the host watches for each variant, unless another thread is at it just now.
    pub fn try_each_watch(&self, f: impl FnMut(&H::Watch)) {
        self.variants.try_each(f);
    }

    /// Launches on [`Device::cpu`] and waits for the result.
    pub fn launch(&self, grid: impl IntoGrid, args: Args<'_>) -> Result<Report> {
        self.launch_on(&Device::cpu(), grid, args)
    }

    /// Launches on `device` and waits for the result.
    pub fn launch_on(
        &self,
        device: &Device,
        grid: impl IntoGrid,
        args: Args<'_>,
    ) -> Result<Report> {
        let grid = grid.into_grid()?;
        let (positional, keywords) = args.into_parts()?;
        let bound = self.signature.bind(positional, keywords)?;
        let options = bound.options.into_iter().map(|(name, value)| match value {
            Value::Host(v) => Ok((name, v)),
            Value::Tensor(_) | Value::Tuple { .. } | Value::Descriptor(_) => {
                Err(Error::from(Diagnostic::new(
                    Id::BadLaunch,
                    format!("the launch option `{name}` cannot be {}", value.describe()),
                )))
            }
        });
        #[cfg_attr(not(feature = "cuda"), expect(unused_mut, reason = "GPUs alone are told more"))]
        let mut launch = self.prepare(bound.slots, options.collect::<Result<Vec<_>>>()?)?;
        let has_memory = launch.args.iter().any(|a| matches!(a, Arg::Tensor(_)));
        if has_memory && launch.location() != device.location() {
            let message = format!(
                "the arguments of `{}` are {}, and the launch is to run {}",
                self.name(),
                launch.location(),
                device.location()
            );
            let help = "launch with slices on `Device::cpu()`, and with buffers of a GPU on `Device::cuda`";
            return Err(Diagnostic::new(Id::BadLaunch, message).help(help).into());
        }
        #[cfg(feature = "cuda")]
        if launch.location() != Location::Host && launch.prints() {
            launch.show_prints(device.print_options());
        }
        // SAFETY: `Args` borrows the memory of every tensor in it until here, and mutably where
        // the kernel may write.
        device.run(|executor, options| unsafe { launch.run(grid, executor, options) })
    }
}

impl Request {
    /// What each parameter becomes.
    pub fn specs(&self) -> &[ParamSpec] {
        &self.specs
    }

    /// Names the variant among those of its kernel.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// The launch options as they were understood.
    pub fn config(&self) -> LaunchConfig {
        self.config
    }

    /// The launch, where the code for it is at hand, with what makes others like it; the request itself
    /// otherwise.
    pub fn find<H: LiveHost>(
        self,
        kernel: &Kernel<H>,
    ) -> std::result::Result<(Launch, Ready<H>), Request> {
        match kernel.variants.find(&*kernel.host, &self.key, self.config.num_warps) {
            Some(variant) => {
                let launch = self.launch(variant.made.clone());
                let ready = Ready::new(&variant, &launch.plan);
                Ok((launch, ready))
            }
            None => Err(self),
        }
    }

    /// The launch; compiles first where needed. May wait for another thread that compiles the same,
    /// so nothing may be held here that the host needs for its answers.
    pub fn compile<H: LiveHost>(self, kernel: &Kernel<H>) -> Result<Launch> {
        let made = kernel.make(&self.key, &self.specs, &self.config.compile_options())?;
        Ok(self.launch(made))
    }

    fn launch(self, made: Arc<Made>) -> Launch {
        let Request { args, specs, config, location, .. } = self;
        Launch::new(Arc::new(Plan { made, specs, config, location, args: args.len() }), args)
    }
}

impl Launch {
    pub(crate) fn new(plan: Arc<Plan>, args: Vec<Arg>) -> Launch {
        Launch {
            plan,
            args,
            #[cfg(feature = "cuda")]
            prints: None,
        }
    }

    pub fn compiled(&self) -> &Arc<Compiled> {
        &self.plan.made.compiled
    }

    /// What each parameter became.
    pub fn specs(&self) -> &[ParamSpec] {
        &self.plan.specs
    }

    pub fn config(&self) -> LaunchConfig {
        self.plan.config
    }

    /// Where its memory is, and where it runs.
    pub fn location(&self) -> Location {
        self.plan.location
    }

    /// Whether the findings and prints of the compilation are yet to be shown. True once: whoever
    /// asks shows them.
    pub fn take_news(&self) -> bool {
        self.plan.made.take_news()
    }

    /// Whether the kernel makes pointers of integers, and so may reach memory that is exposed.
    pub fn makes_pointers(&self) -> bool {
        self.plan.made.code.makes_pointers()
    }

    /// Runs the programs of the grid; an empty grid runs nothing.
    ///
    /// # Safety
    ///
    /// The storage of each tensor argument is valid for reads, and for writes where it is writable,
    /// until this returns; and so is the memory that the options expose.
    pub unsafe fn run(
        &self,
        grid: Grid,
        executor: Executor,
        options: &LaunchOptions<'_>,
    ) -> Result<Report> {
        if grid.is_empty() {
            return Ok(Report::default());
        }
        #[cfg(feature = "cuda")]
        if let Location::Cuda(_) = self.plan.location {
            if options.policy == PolicyKind::Checked {
                return Err(no_checks_there(&self.plan.made.compiled.func.name));
            }
            let code = self.gpu_code(Some(grid))?;
            // SAFETY: as promised to this function; the default stream waits for all others.
            return unsafe { self.start(&code, grid, RawStream::DEFAULT) }
                .map(|()| Report::default());
        }
        let Made { compiled, code, machine, .. } = &*self.plan.made;
        guard(format_args!("running `{}`", compiled.func.name), || {
            // SAFETY: as promised to this function.
            unsafe {
                let (grid, args) = (grid.counts(), &self.args);
                executor::run(machine, code, grid, args, executor, &self.plan.config, options)
            }
        })
    }
}

#[cfg(feature = "cuda")]
impl Launch {
    /// The code for the GPU that the launch is to run on, if it is at hand. Without a grid it is that for
    /// a large one.
    pub fn find_gpu_code(&self, grid: Option<Grid>) -> Option<Result<Arc<GpuCode>>> {
        let Location::Cuda(ordinal) = self.plan.location else { return None };
        let gpu = Gpu::get(ordinal).ok()?;
        self.plan.made.gpu.find(&self.gpu_key(gpu, grid))
    }

    /// The code for the GPU that the launch is to run on; compiles it where needed.
    pub fn gpu_code(&self, grid: Option<Grid>) -> Result<Arc<GpuCode>> {
        let Location::Cuda(ordinal) = self.plan.location else {
            let message = "code for a GPU was asked of a launch on the CPU";
            return Err(Diagnostic::new(Id::Internal, message).into());
        };
        let gpu = Gpu::get(ordinal)?;
        self.plan.made.gpu.make(self.gpu_key(gpu, grid), gpu, &self.plan.made.compiled.func)
    }

    fn gpu_key(&self, gpu: &Gpu, grid: Option<Grid>) -> crate::gpu::Key {
        let Plan { made, config, .. } = &*self.plan;
        made.gpu.key(gpu, config, &self.args, self.prints.as_ref(), grid)
    }

    /// Whether the kernel prints, and on a GPU has other code for what is shown.
    pub fn prints(&self) -> bool {
        self.plan.made.gpu.prints()
    }

    /// Chooses what a GPU shows of the kernel's prints. It shows them as lines, whatever the layout.
    pub fn show_prints(&mut self, options: &PrintOptions) {
        self.prints = options.on_gpu().map(Arc::new);
    }

    /// Says where memory on the GPU begins and ends that arguments may be in. Of a tensor in none of it
    /// it is not known, and no access through it counts as outside.
    pub fn know_memory(&mut self, memory: &[std::ops::Range<usize>]) {
        for arg in &mut self.args {
            let Arg::Tensor(tensor) = arg else { continue };
            tensor.storage = holder(memory, tensor.address).unwrap_or(0..usize::MAX);
        }
    }

    /// Queues the programs of the grid on a stream; an empty grid runs nothing. Waits for nothing but, in
    /// debug mode, for what the kernel finds at fault.
    ///
    /// # Safety
    ///
    /// `code` is this launch's. The memory of each argument is the GPU's, and there until the launch is
    /// done; the kernel touches no other. The stream is one of the GPU's.
    pub unsafe fn start(&self, code: &GpuCode, grid: Grid, stream: RawStream) -> Result<()> {
        if grid.is_empty() {
            return Ok(());
        }
        // SAFETY: as promised to this function.
        unsafe { code.launch(grid.counts(), &self.args, stream) }
    }
}

/// The least memory that an address is in. An empty view may begin where its memory ends; but where one
/// ends another may begin.
#[cfg(feature = "cuda")]
fn holder(memory: &[std::ops::Range<usize>], at: usize) -> Option<std::ops::Range<usize>> {
    let holds = |range: &&std::ops::Range<usize>| range.start <= at && at <= range.end;
    memory.iter().filter(holds).min_by_key(|r| (at == r.end, r.len())).cloned()
}

/// The checker judges values and accesses on the CPU.
#[cfg(feature = "cuda")]
pub(crate) fn no_checks_there(kernel: &str) -> Error {
    let message =
        format!("the launch of `{kernel}` is to be checked, and its tensors are on a GPU");
    Diagnostic::new(Id::BadLaunch, message)
        .note("checked launches run on the CPU")
        .help("give it tensors of the CPU: `x.cpu()`")
        .into()
}

/// The compute capability of a GPU.
#[cfg(feature = "cuda")]
fn capability(ordinal: u32) -> Result<(u32, u32)> {
    let facts = Gpu::get(ordinal)?.facts();
    Ok((facts.major, facts.minor))
}

#[cfg(not(feature = "cuda"))]
fn capability(_: u32) -> Result<(u32, u32)> {
    let message = "the arguments are on a GPU, and this build of Naiad runs on the CPU";
    Err(Diagnostic::new(Id::BadLaunch, message).help("copy them to the CPU first").into())
}

/// Whether GPUs may use this memory of the host.
fn shares(address: usize) -> bool {
    #[cfg(feature = "cuda")]
    return crate::gpu::shares(address);
    #[cfg(not(feature = "cuda"))]
    {
        let _ = address;
        false
    }
}

/// Without the number of warps, which few kernels ask for: to most it would be needless variants.
fn encode_specs(specs: &[ParamSpec], options: &CompileOptions) -> Vec<u8> {
    // Room for as many integers that are constexpr, which take the most of what is common.
    let mut key = Vec::with_capacity(specs.len() * 20 + 1);
    let told = options.cuda_capability;
    let flags = [options.debug, options.sanitize_overflow, told.is_some()];
    key.push(flags.iter().rev().fold(0, |byte, &flag| 2 * byte + u8::from(flag)));
    key.extend(told.into_iter().flat_map(|(major, minor)| [major as u8, minor as u8]));
    specs.iter().for_each(|s| encode_spec(s, &mut key));
    key
}

#[cfg(all(test, feature = "cuda"))]
mod tests {
    use super::holder;

    #[test]
    fn memory_that_begins_where_other_memory_ends() {
        let memory = [64..128, 128..4096, 96..128];
        assert_eq!(holder(&memory, 128), Some(128..4096));
        assert_eq!(holder(&memory, 100), Some(96..128));
        assert_eq!(holder(&memory, 4096), Some(128..4096));
        assert_eq!(holder(&memory, 8192), None);
    }
}
