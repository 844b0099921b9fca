//! Which code of a kernel serves a launch on a GPU.
//!
//! Code is compiled for a GPU, for launch options and for facts of the arguments: by which power of two
//! an integer or an address is divisible (1 to 16), and whether an integer is 1. Known are one byte for
//! each argument, so that a launch whose code is there finds it by comparing a few bytes.

use super::{Gpu, GpuCode, Target};
use crate::signature::Signature;
use crate::{Error, Grid, LaunchConfig, ParamSpec};
use naiad_gpu::Prints;
use naiad_interp::Arg;
use naiad_ir::tile::{Tile, TileOp};
use naiad_ir::{Elem, Function};
use naiad_opt::interval::Interval;
use naiad_opt::ranges::{Inputs, Param};
use smallvec::SmallVec;
use std::sync::{Arc, Mutex, PoisonError};

/// The code of one variant, for each GPU, options and facts that it was launched with.
pub(crate) struct Compiled {
    /// What may be asked of each argument of the code.
    asks: Vec<Asks>,
    /// Whether few programs get other code than many.
    minds_few: bool,
    /// Whether it prints, so that what is shown makes other code.
    prints: bool,
    known: Mutex<Vec<(Key, Code)>>,
}

type Code = Result<Arc<GpuCode>, Error>;

/// What may be built on an argument.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Asks {
    Nothing,
    /// By what a number, or an address, is divisible.
    Divisible,
    /// And whether it is 1.
    Value,
}

/// What is known of each argument, a byte each.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Known(SmallVec<[u8; 24]>);

#[derive(PartialEq, Eq)]
pub(crate) struct Key {
    gpu: u32,
    target: Target,
    facts: Known,
}

const ONE: u8 = 8;

/// So many programs a multiprocessor are few: see [`naiad_gpu::Options::few_programs`].
const FEW: u64 = 8;

impl Asks {
    /// Of an argument of which nothing is forbidden.
    pub fn of(elem: Elem) -> Asks {
        match elem {
            Elem::Pointer(_) => Asks::Divisible,
            Elem::Scalar(s) if s.is_int() && !s.is_bool() => Asks::Value,
            Elem::Scalar(_) => Asks::Nothing,
        }
    }
}

impl Known {
    pub fn new<'a>(args: impl IntoIterator<Item = (&'a Arg, Asks)>) -> Known {
        let fact = |(arg, asks): (&Arg, Asks)| {
            let bits = match arg {
                Arg::Scalar(bits) => *bits,
                Arg::Tensor(tensor) => tensor.address as u64,
            };
            match asks {
                Asks::Nothing => 0,
                Asks::Value if bits == 1 => ONE,
                Asks::Value | Asks::Divisible => bits.trailing_zeros().min(4) as u8,
            }
        };
        Known(args.into_iter().map(fact).collect())
    }

    /// As the compiler takes them, for a kernel of so many parameters.
    pub fn inputs(&self, params: usize) -> Inputs {
        let param = |&fact: &u8| match fact {
            ONE => Param { range: Some(Interval::point(1)), divisible: Some(1) },
            0 => Param::default(),
            log => Param { range: None, divisible: Some(1 << log) },
        };
        let mut all: Vec<Param> = self.0.iter().map(param).collect();
        all.resize(params, Param::default());
        Inputs { grid: None, params: all }
    }
}

impl Compiled {
    pub fn new(func: &Function<Tile>, specs: &[ParamSpec], signature: &Signature) -> Compiled {
        let mut allowed = Vec::with_capacity(func.params().len());
        for (spec, param) in specs.iter().zip(&signature.params) {
            let may = param.specialize && param.assume_alignment;
            allowed.extend(std::iter::repeat_n(may, values(spec)));
        }
        let asks = func.params().iter().zip(allowed).map(|(&param, allowed)| match allowed {
            true => Asks::of(func.ty(param).elem),
            false => Asks::Nothing,
        });
        let options = LaunchConfig::default().target(0).options;
        let minds_few = naiad_gpu::minds_few_programs(func, &options);
        let mut prints = false;
        func.walk(&mut |inst| prints |= matches!(func.op(inst), TileOp::Print { .. }));
        Compiled { asks: asks.collect(), minds_few, prints, known: Mutex::default() }
    }

    /// Whether the kernel prints.
    pub fn prints(&self) -> bool {
        self.prints
    }

    /// What the code for a launch depends on.
    pub fn key(
        &self,
        gpu: &Gpu,
        config: &LaunchConfig,
        args: &[Arg],
        prints: Option<&Arc<Prints>>,
        grid: Option<Grid>,
    ) -> Key {
        let facts = Known::new(args.iter().zip(self.asks.iter().copied()));
        let mut target = config.target(gpu.facts().capability());
        let programs = |grid: Grid| grid.counts().iter().map(|&n| u64::from(n)).product::<u64>();
        target.options.few_programs = self.minds_few
            && grid.is_some_and(|g| programs(g) <= FEW * u64::from(gpu.facts().multiprocessors));
        target.options.prints = prints.filter(|_| self.prints).cloned();
        Key { gpu: gpu.context().ordinal(), target, facts }
    }

    /// The code, if it is there.
    pub fn find(&self, key: &Key) -> Option<Code> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.iter().find(|(k, _)| k == key).map(|(_, code)| code.clone())
    }

    /// The code; compiles it where it is not there. Two threads that ask for the same at once compile it
    /// twice: neither may wait for the other, which may wait for the host.
    pub fn make(&self, key: Key, gpu: &'static Gpu, func: &Function<Tile>) -> Code {
        if let Some(code) = self.find(&key) {
            return code;
        }
        let inputs = key.facts.inputs(func.params().len());
        let made = GpuCode::new(gpu, func, &inputs, &key.target).map(Arc::new);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, first)) = known.iter().find(|(k, _)| *k == key) {
            return first.clone();
        }
        known.push((key, made.clone()));
        made
    }
}

/// How many arguments of the code a parameter is.
fn values(spec: &ParamSpec) -> usize {
    match spec {
        ParamSpec::Value(_) => 1,
        ParamSpec::Constexpr(_) => 0,
        ParamSpec::Tuple { items, .. } => items.iter().map(values).sum(),
        ParamSpec::Descriptor(d) => 1 + 2 * d.block.rank(),
    }
}
