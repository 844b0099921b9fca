//! A kernel with its compiled variants.

use crate::executor::{self, Executor};
use crate::recorder::{LiveHost, Recorder};
use crate::signature::{Signature, Slot};
use crate::specialize::{Specialization, encode_spec};
use crate::variants::{Made, Variants};
use crate::{
    Args, CompileOptions, Compiled, Device, Error, FnRef, Grid, HostValue, IntoGrid, LaunchConfig,
    ParamSpec, Result, Value, guard,
};
use naiad_diag::{Diagnostic, Id};
use naiad_interp::{Arg, LaunchOptions, Report};
use std::sync::Arc;

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
    variants: Variants<H::Watch>,
}

/// Arguments judged and encoded: what a launch needs besides code.
pub struct Request {
    specs: Vec<ParamSpec>,
    key: Vec<u8>,
    args: Vec<Arg>,
    config: LaunchConfig,
}

/// A launch that is ready to run: arguments judged, code compiled.
pub struct Launch {
    made: Arc<Made>,
    args: Vec<Arg>,
    /// What each parameter became.
    pub specs: Vec<ParamSpec>,
    pub config: LaunchConfig,
}

impl<H: LiveHost> Kernel<H> {
    /// Parses the kernel and reads its parameters; nothing is compiled yet.
    pub fn new(host: Arc<H>, function: FnRef, options: KernelOptions) -> Result<Kernel<H>> {
        let info = guard("reading a kernel", || Ok(naiad_front::inspect(&*host, function)?))?;
        let mut signature = Signature::new(&info, &options.annotations);
        for index in signature.select("do_not_specialize", &options.do_not_specialize)? {
            signature.params[index].specialize = false;
        }
        let unaligned = &options.do_not_specialize_on_alignment;
        for index in signature.select("do_not_specialize_on_alignment", unaligned)? {
            signature.params[index].assume_alignment = false;
        }
        Ok(Kernel { host, function, signature, options, variants: Variants::default() })
    }

    pub fn name(&self) -> &str {
        &self.signature.kernel
    }

    pub fn signature(&self) -> &Signature {
        &self.signature
    }

    pub fn host(&self) -> &H {
        &self.host
    }

    /// What launches have without options of their own.
    fn config(&self) -> LaunchConfig {
        let KernelOptions { debug, cuda_capability, .. } = self.options;
        LaunchConfig { debug, cuda_capability, ..LaunchConfig::default() }
    }

    /// Compiles the kernel for a specialization written out, or finds it compiled.
    pub fn compile(&self, specs: &[ParamSpec]) -> Result<Arc<Compiled>> {
        let config = self.config();
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
        let Specialization { specs, args } = special;
        let key = encode_specs(&specs, &config.compile_options());
        Ok(Request { key, specs, args, config })
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
        loop {
            if let Some(made) = self.variants.find(&*self.host, key, num_warps) {
                return Ok(made);
            }
            let Some(_turn) = self.variants.begin(key) else { continue };
            // It may have been finished between the look and the turn.
            if let Some(made) = self.variants.find(&*self.host, key, num_warps) {
                return Ok(made);
            }
            let latest = self.variants.latest(&*self.host);
            let recorder = Recorder::new(&*self.host, latest.as_ref().map(|made| &made.answers));
            let made = guard(format_args!("compiling `{}`", self.name()), || {
                let compiled = naiad_front::compile(&recorder, self.function, specs, options)?;
                Ok(Made::new(compiled, recorder.into_answers(), num_warps))
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
        let launch = self.prepare(bound.slots, options.collect::<Result<Vec<_>>>()?)?;
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

    /// The launch, where the code for it is at hand; the request itself otherwise.
    pub fn find<H: LiveHost>(self, kernel: &Kernel<H>) -> std::result::Result<Launch, Request> {
        match kernel.variants.find(&*kernel.host, &self.key, self.config.num_warps) {
            Some(made) => {
                Ok(Launch { made, args: self.args, specs: self.specs, config: self.config })
            }
            None => Err(self),
        }
    }

    /// The launch; compiles first where needed. May wait for another thread that compiles the same,
    /// so nothing may be held here that the host needs for its answers.
    pub fn compile<H: LiveHost>(self, kernel: &Kernel<H>) -> Result<Launch> {
        let made = kernel.make(&self.key, &self.specs, &self.config.compile_options())?;
        Ok(Launch { made, args: self.args, specs: self.specs, config: self.config })
    }
}

impl Launch {
    pub fn compiled(&self) -> &Arc<Compiled> {
        &self.made.compiled
    }

    /// Whether the findings and prints of the compilation are yet to be shown. True once: whoever
    /// asks shows them.
    pub fn take_news(&self) -> bool {
        self.made.take_news()
    }

    /// Runs the programs of the grid; an empty grid runs nothing.
    ///
    /// # Safety
    ///
    /// The storage of each tensor argument is valid for reads, and for writes where it is writable,
    /// until this returns.
    pub unsafe fn run(
        &self,
        grid: Grid,
        executor: Executor,
        options: &LaunchOptions<'_>,
    ) -> Result<Report> {
        if grid.is_empty() {
            return Ok(Report::default());
        }
        let Made { compiled, code, machine, .. } = &*self.made;
        guard(format_args!("running `{}`", compiled.func.name), || {
            // SAFETY: as promised to this function.
            unsafe { executor::run(machine, code, grid.counts(), &self.args, executor, options) }
        })
    }
}

/// Without the number of warps, which few kernels ask for: to most it would be needless variants.
fn encode_specs(specs: &[ParamSpec], options: &CompileOptions) -> Vec<u8> {
    // Room for as many integers that are constexpr, which take the most of what is common.
    let mut key = Vec::with_capacity(specs.len() * 20 + 1);
    key.push(u8::from(options.debug) + 2 * u8::from(options.sanitize_overflow));
    specs.iter().for_each(|s| encode_spec(s, &mut key));
    key
}
