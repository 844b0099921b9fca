//! A kernel with its compiled variants.

use crate::recorder::{Answer, Recorder};
use crate::signature::{Signature, Slot};
use crate::specialize::{Specialization, encode_spec};
use crate::{
    Args, CompileOptions, Compiled, Device, Error, FnRef, Grid, Host, HostValue, IntoGrid,
    LaunchConfig, ParamSpec, Result, Value, guard,
};
use naiad_diag::{Diagnostic, Id};
use naiad_interp::{Arg, LaunchOptions, Report};
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// What `@triton.jit(...)` says beside the function.
#[derive(Clone, Default, Debug)]
pub struct KernelOptions {
    /// Parameters whose integers never become constexpr.
    pub do_not_specialize: Vec<ParamSelector>,
    /// Launches check assertions and integer overflow unless they say otherwise.
    pub debug: bool,
}

/// A parameter, by name or by position.
#[derive(Clone, PartialEq, Debug)]
pub enum ParamSelector {
    Name(String),
    Index(usize),
}

/// A kernel: its parameters, and its compiled variants, one for each combination of argument types
/// and constexpr values that was launched.
pub struct Kernel<H> {
    host: Arc<H>,
    function: FnRef,
    signature: Signature,
    options: KernelOptions,
    /// By the encoded specs; under one key, variants that differ in what the host had answered.
    variants: Mutex<FxHashMap<Vec<u8>, Vec<Variant>>>,
}

struct Variant {
    answers: Vec<Answer>,
    /// Where the kernel asked for it.
    num_warps: Option<u32>,
    compiled: Arc<Compiled>,
}

/// A launch that is ready to run: arguments judged, code compiled.
pub struct Launch {
    compiled: Arc<Compiled>,
    args: Vec<Arg>,
    pub config: LaunchConfig,
    /// Whether this launch had to compile: then its findings and prints are news.
    pub fresh: bool,
}

impl<H: Host> Kernel<H> {
    /// Parses the kernel and reads its parameters; nothing is compiled yet.
    pub fn new(host: Arc<H>, function: FnRef, options: KernelOptions) -> Result<Kernel<H>> {
        let info = guard("reading a kernel", || Ok(naiad_front::inspect(&*host, function)?))?;
        let mut signature = Signature::new(&info);
        for selector in &options.do_not_specialize {
            let index = match selector {
                ParamSelector::Name(name) => signature.index_of(name),
                ParamSelector::Index(i) => Some(*i).filter(|i| *i < signature.params.len()),
            };
            // Triton ignores what names no parameter.
            let Some(index) = index else { continue };
            if signature.params[index].info.is_constexpr {
                let name = &signature.params[index].info.name;
                let message = format!("`{name}` is constexpr and in `do_not_specialize` at once");
                let d =
                    signature.at(index, Diagnostic::new(Id::BadLaunch, message), "constexpr here");
                return Err(d
                    .help("a constexpr is specialized on by its nature: drop one of the two")
                    .into());
            }
            signature.params[index].specialize = false;
        }
        Ok(Kernel { host, function, signature, options, variants: Mutex::default() })
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

    /// Compiles the kernel for a specialization written out, or finds it compiled.
    pub fn compile(&self, specs: &[ParamSpec]) -> Result<Arc<Compiled>> {
        let config = LaunchConfig { debug: self.options.debug, ..LaunchConfig::default() };
        self.variant(specs, &config.compile_options()).map(|(compiled, _)| compiled)
    }

    /// Makes a launch of arguments sorted to their parameters and of launch options.
    pub fn prepare<K: AsRef<str>>(
        &self,
        slots: impl IntoIterator<Item = Slot<Value>>,
        options: impl IntoIterator<Item = (K, HostValue)>,
    ) -> Result<Launch> {
        let mut config = LaunchConfig { debug: self.options.debug, ..LaunchConfig::default() };
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
        let (compiled, fresh) = self.variant(&special.specs, &config.compile_options())?;
        Ok(Launch { compiled, args: special.args, config, fresh })
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

    fn variant(
        &self,
        specs: &[ParamSpec],
        options: &CompileOptions,
    ) -> Result<(Arc<Compiled>, bool)> {
        let mut key = Vec::with_capacity(specs.len() * 4 + 1);
        key.push(u8::from(options.debug) + 2 * u8::from(options.sanitize_overflow));
        specs.iter().for_each(|s| encode_spec(s, &mut key));
        if let Some(compiled) = self.find(&key, options) {
            return Ok((compiled, false));
        }
        // Not under the lock: the host may run Python, which may launch kernels.
        let recorder = Recorder::new(&*self.host);
        let doing = format!("compiling `{}`", self.name());
        let compiled =
            guard(&doing, || Ok(naiad_front::compile(&recorder, self.function, specs, options)?))?;
        let variant = Variant {
            answers: recorder.into_answers(),
            num_warps: compiled.asked_num_warps.then_some(options.num_warps),
            compiled: Arc::new(compiled),
        };
        let compiled = variant.compiled.clone();
        let mut variants = self.variants.lock().unwrap_or_else(PoisonError::into_inner);
        variants.entry(key).or_default().push(variant);
        Ok((compiled, true))
    }

    fn find(&self, key: &[u8], options: &CompileOptions) -> Option<Arc<Compiled>> {
        let variants = self.variants.lock().unwrap_or_else(PoisonError::into_inner);
        // The newest first: what was redefined seldom goes back.
        let mut candidates = variants.get(key)?.iter().rev();
        candidates
            .find(|v| {
                v.num_warps.is_none_or(|n| n == options.num_warps)
                    && v.answers.iter().all(|a| a.still_holds(&*self.host))
            })
            .map(|v| v.compiled.clone())
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
        device.run(|options| unsafe { launch.run(grid, options) })
    }
}

impl Launch {
    pub fn compiled(&self) -> &Compiled {
        &self.compiled
    }

    /// The variant itself, to be kept.
    pub fn compiled_arc(&self) -> Arc<Compiled> {
        self.compiled.clone()
    }

    /// Runs the programs of the grid; an empty grid runs nothing.
    ///
    /// # Safety
    ///
    /// The storage of each tensor argument is valid for reads, and for writes where it is writable,
    /// until this returns.
    pub unsafe fn run(&self, grid: Grid, options: &LaunchOptions<'_>) -> Result<Report> {
        if grid.is_empty() {
            return Ok(Report::default());
        }
        guard(&format!("running `{}`", self.compiled.func.name), || {
            // SAFETY: as promised to this function.
            Ok(unsafe {
                naiad_interp::launch(&self.compiled.func, grid.counts(), &self.args, options)
            }?)
        })
    }
}
