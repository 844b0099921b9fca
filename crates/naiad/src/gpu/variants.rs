//! Which code of a kernel serves a launch on a GPU.
//!
//! Code is compiled for a GPU, for launch options and for facts of the arguments: by which power of two
//! an integer or an address is divisible (1 to 16), whether an integer is 1, and whether it is one for
//! which loops run once. Known are one byte for each argument, so that a launch whose code is there finds
//! it by comparing a few bytes.

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
    /// And whether it is one of these.
    Within(Numbers),
}

/// Integers of one type, to be compared as 64 bits.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Numbers {
    first: i64,
    last: i64,
    /// Upper bits of an argument that are copies of its sign.
    unused: u32,
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
const WITHIN: u8 = 16;

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

    /// Of each argument of a kernel.
    pub fn of_all(func: &Function<Tile>) -> Vec<Asks> {
        let once = naiad_opt::once(func);
        let each = func.params().iter().zip(once).map(|(&param, numbers)| {
            let elem = func.ty(param).elem;
            match (Asks::of(elem), numbers.and_then(|n| Numbers::new(elem, n))) {
                (Asks::Value, Some(numbers)) => Asks::Within(numbers),
                (asks, _) => asks,
            }
        });
        each.collect()
    }
}

impl Numbers {
    fn new(elem: Elem, numbers: Interval) -> Option<Numbers> {
        let ty = elem.scalar()?;
        let (first, last) = (i64::try_from(numbers.lo).ok()?, i64::try_from(numbers.hi).ok()?);
        // Arguments come extended by zeros.
        let unused = if ty.is_signed() { 64 - ty.bits() } else { 0 };
        Some(Numbers { first, last, unused })
    }

    fn contain(self, bits: u64) -> bool {
        let number = (bits << self.unused) as i64 >> self.unused;
        (self.first..=self.last).contains(&number)
    }

    fn interval(self) -> Interval {
        Interval::new(self.first.into(), self.last.into())
    }
}

impl Known {
    pub fn new<'a>(args: impl IntoIterator<Item = (&'a Arg, Asks)>) -> Known {
        let fact = |(arg, asks): (&Arg, Asks)| {
            let bits = match arg {
                Arg::Scalar(bits) => *bits,
                Arg::Tensor(tensor) => tensor.address as u64,
            };
            let divisible = bits.trailing_zeros().min(4) as u8;
            match asks {
                Asks::Nothing => 0,
                Asks::Value | Asks::Within(_) if bits == 1 => ONE,
                Asks::Value | Asks::Divisible => divisible,
                Asks::Within(numbers) => divisible | if numbers.contain(bits) { WITHIN } else { 0 },
            }
        };
        let mut known = SmallVec::new();
        for arg in args {
            known.push(fact(arg));
        }
        Known(known)
    }

    /// As the compiler takes them, of a kernel of which this was asked.
    pub fn inputs(&self, asked: &[Asks]) -> Inputs {
        let param = |(&fact, asks): (&u8, &Asks)| {
            let range = match asks {
                _ if fact == ONE => Some(Interval::point(1)),
                Asks::Within(numbers) if fact & WITHIN != 0 => Some(numbers.interval()),
                _ => None,
            };
            let divisible = match fact & !WITHIN {
                ONE => Some(1),
                0 => None,
                log => Some(1 << log),
            };
            Param { range, divisible }
        };
        let params = self.0.iter().zip(asked).map(param).collect();
        Inputs { grid: None, params }
    }
}

impl Compiled {
    pub fn new(func: &Function<Tile>, specs: &[ParamSpec], signature: &Signature) -> Compiled {
        let mut allowed = Vec::with_capacity(func.params().len());
        for (spec, param) in specs.iter().zip(&signature.params) {
            let may = param.specialize && param.assume_alignment;
            allowed.extend(std::iter::repeat_n(may, values(spec)));
        }
        let asks = Asks::of_all(func).into_iter().zip(allowed);
        let asks: Vec<Asks> =
            asks.map(|(asks, allowed)| if allowed { asks } else { Asks::Nothing }).collect();
        let options = LaunchConfig::default().target(0).options;
        let loops_go = asks.iter().any(|asks| matches!(asks, Asks::Within(_)));
        let minds_few = naiad_gpu::minds_few_programs(func, loops_go, &options);
        let mut prints = false;
        func.walk(&mut |inst| prints |= matches!(func.op(inst), TileOp::Print { .. }));
        Compiled { asks, minds_few, prints, known: Mutex::default() }
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
        let inputs = key.facts.inputs(&self.asks);
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

#[cfg(test)]
mod tests {
    use super::*;
    use naiad_diag::Source;

    const TEXT: &str = "tile @k(%x x: *i32, %n n: i32, %m m: i32) {
  %zero = const value=0:i32 : i32
  %step = const value=1024:i32 : i32
  for %zero, %n, %step {
  ^(%i: i32):
    %p = ptr_add %x, %i : *i32
    %v = load %p : i32
    %w = binary.add %v, %m : i32
    store %p, %w
    yield
  }
  return
}";

    #[test]
    fn code_is_shared_by_launches_that_are_alike() {
        let parsed = naiad_ir::text::parse::<Tile>(&Source::new("test", TEXT));
        let func = parsed.unwrap_or_else(|d| panic!("{}", d.message));
        let asks = Asks::of_all(&func);
        let known = |n: i32, m: i32| {
            let args = [4096, n, m].map(|x| Arg::Scalar(u64::from(x as u32)));
            Known::new(args.iter().zip(asks.iter().copied()))
        };
        let range = |n: i32| known(n, 0).inputs(&asks).params[1].range;
        let once = Some(Interval::new(1, 1024));
        for (n, want) in [
            (2, once),
            (1000, once),
            (1024, once),
            (1, Some(Interval::point(1))),
            (0, None),
            (1025, None),
            (-2, None),
            (i32::MIN, None),
        ] {
            assert_eq!(range(n), want, "{n}");
        }
        assert!(known(1000, 8) == known(24, 24));
        assert!(known(1000, 8) != known(1032, 8));
        assert!(known(1040, 5) == known(2000, 1005), "both of several rounds");
        let inputs = known(1000, 48).inputs(&asks);
        let divisible: Vec<_> = inputs.params.iter().map(|p| p.divisible).collect();
        assert_eq!(divisible, [Some(16), Some(8), Some(16)]);
        assert_eq!(inputs.params[2].range, None);
    }
}
