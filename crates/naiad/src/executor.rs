//! Which executor runs a launch, and how its findings become messages.
//!
//! Machine code (`naiad-cpu`) runs launches; the reference executor (`naiad-interp`) runs those that are
//! checked, and a kernel's first one where that is [small](small). What machine code finds wrong is told in
//! the reference executor's words.

use crate::settings::Settings;
use crate::small::Small;
use crate::{LaunchConfig, Result};
use naiad_cpu::dist::SiteInfo;
use naiad_cpu::{Facts, Level, Outcome};
use naiad_diag::{Diagnostic, Id};
use naiad_interp::{Arg, LaunchOptions, Oracle, PolicyKind, Report};
use naiad_ir::tile::Tile;
use naiad_ir::{Function, Inst};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// What runs kernels on a CPU.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum Executor {
    /// Machine code, but the reference executor for a first launch that ends sooner than machine code is
    /// made. The results are the same bits.
    #[default]
    Auto,
    /// Machine code from the first launch on.
    Eager,
    /// The reference executor.
    Reference,
    /// Code for a GPU, run without one: for whoever tests the compiler.
    Lockstep,
}

impl Executor {
    /// What options and the environment call each.
    pub(crate) const NAMES: [(&str, Executor); 5] = [
        ("auto", Executor::Auto),
        ("eager", Executor::Eager),
        ("cpu", Executor::Eager),
        ("interp", Executor::Reference),
        ("lockstep", Executor::Lockstep),
    ];

    /// By its name.
    pub fn from_name(name: &str) -> Option<Executor> {
        Executor::NAMES.iter().find(|(n, _)| *n == name).map(|&(_, executor)| executor)
    }

    /// What `NAIAD_EXECUTOR` asks for, read once.
    pub fn from_env() -> Executor {
        Settings::get().executor
    }
}

/// Machine code of one variant, for each set of facts that it was launched with.
#[derive(Default)]
pub(crate) struct Compiled {
    written: OnceLock<Vec<bool>>,
    /// The kernel behind the passes, if a first launch had to know it.
    optimized: OnceLock<Arc<Function<Tile>>>,
    known: Mutex<Vec<(Facts, Code)>>,
    /// Whether there was a launch before.
    launched: AtomicBool,
    #[cfg(feature = "cuda")]
    lockstep: crate::lockstep::Compiled,
}

/// An error is a fault of ours.
type Code = std::result::Result<Arc<Machine>, Box<Diagnostic>>;

/// A kernel's machine code, with the IR that it was made from.
struct Machine {
    code: naiad_cpu::Code,
    func: Arc<Function<Tile>>,
    /// The same for the reference executor, which tells what went wrong.
    reference: OnceLock<naiad_interp::Code>,
}

impl Compiled {
    /// Whether this is the first launch.
    fn is_first(&self) -> bool {
        // Later ones, which are many, only read.
        !self.launched.load(Ordering::Relaxed) && !self.launched.swap(true, Ordering::Relaxed)
    }

    fn get(&self, code: &naiad_interp::Code, args: &[naiad_cpu::Arg]) -> Code {
        let written = self.written.get_or_init(|| naiad_cpu::written(code.func()));
        let facts = Facts::of(args, written);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, found)) = known.iter().find(|(f, _)| *f == facts) {
            return found.clone();
        }
        let mut func = match self.optimized.get() {
            Some(optimized) => Function::clone(optimized),
            None => optimized(code.func()),
        };
        naiad_cpu::peel(&mut func);
        let made = naiad_cpu::Code::new(&func, &facts).map(|code| {
            Arc::new(Machine { code, func: Arc::new(func), reference: OnceLock::new() })
        });
        known.push((facts, made.clone()));
        made
    }

    /// The kernel for the reference executor as it becomes machine code, where that has another order.
    fn in_order(&self, code: &naiad_interp::Code) -> Option<naiad_interp::Code> {
        naiad_cpu::multiplies_as_optimized(code.func()).then(|| {
            let func = self.optimized.get_or_init(|| Arc::new(optimized(code.func())));
            naiad_interp::Code::new(func.clone())
        })
    }
}

fn optimized(func: &Function<Tile>) -> Function<Tile> {
    let mut func = func.clone();
    naiad_cpu::optimize(&mut func);
    func
}

/// What a kernel is on its way to machine code.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Stage {
    /// Tile IR behind the passes.
    Optimized,
    /// Thread IR: loops over short vectors.
    Thread,
    /// Cranelift's IR.
    Clif,
}

/// A verified kernel at a stage, as text. No two of its arguments overlap.
pub fn stage(func: &Function<Tile>, stage: Stage) -> Result<String> {
    Settings::checked()?;
    let mut func = optimized(func);
    if stage == Stage::Optimized {
        return Ok(func.to_string());
    }
    naiad_cpu::peel(&mut func);
    let vector = Level::vector_bytes(Level::host());
    let loops = naiad_cpu::dist::distribute(&func, &Facts::default(), vector)?.func;
    Ok(match stage {
        Stage::Optimized | Stage::Thread => loops.to_string(),
        Stage::Clif => naiad_cpu::clif::text(&loops, naiad_cpu::runtime::table::table())?,
    })
}

/// Runs a launch.
///
/// # Safety
///
/// As for [`naiad_interp::launch`].
pub(crate) unsafe fn run(
    machine: &Compiled,
    code: &naiad_interp::Code,
    grid: [u32; 3],
    args: &[Arg],
    executor: Executor,
    #[cfg_attr(not(feature = "cuda"), expect(unused_variables))] config: &LaunchConfig,
    options: &LaunchOptions<'_>,
) -> Result<Report> {
    let plain = options.policy == PolicyKind::Plain && !options.naive;
    #[cfg(feature = "cuda")]
    if executor == Executor::Lockstep && plain {
        // SAFETY: as promised to this function.
        return unsafe { machine.lockstep.run(code, grid, args, config, options) };
    }
    let first = executor == Executor::Auto && plain && machine.is_first();
    let small = first.then(|| Small::of(code)).filter(|small| programs(grid) <= small.programs);
    if small.is_some_and(|small| small.in_order) {
        let options = LaunchOptions { in_order: Some(naiad_cpu::multiply), ..*options };
        let settled = machine.in_order(code);
        let code = settled.as_ref().unwrap_or(code);
        // SAFETY: as promised to this function.
        return Ok(unsafe { naiad_interp::launch(code, grid, args, &options) }?);
    }
    if executor != Executor::Reference && plain && small.is_none() {
        let mut arguments = SmallVec::<[naiad_cpu::Arg; 8]>::new();
        for arg in args {
            arguments.push(argument(arg));
        }
        let found = machine.get(code, &arguments)?;
        // Behind the arguments stands what only pointers made of integers reach.
        arguments.extend(code.reachable(options.exposed).iter().map(exposed));
        // SAFETY: as promised to this function; the code was made for these facts.
        return unsafe { run_machine(&found, grid, args, &arguments, options) };
    }
    // SAFETY: as promised to this function.
    Ok(unsafe { naiad_interp::launch(code, grid, args, options) }?)
}

fn programs(grid: [u32; 3]) -> u64 {
    grid.iter().fold(1, |n, &g| n.saturating_mul(u64::from(g)))
}

fn argument(arg: &Arg) -> naiad_cpu::Arg {
    match arg {
        Arg::Scalar(bits) => naiad_cpu::Arg::Scalar(*bits),
        Arg::Tensor(t) => naiad_cpu::Arg::Tensor {
            address: t.address,
            storage: t.storage.clone(),
            writable: t.writable,
        },
    }
}

fn exposed(range: &Range<usize>) -> naiad_cpu::Arg {
    naiad_cpu::Arg::Tensor { address: range.start, storage: range.clone(), writable: true }
}

/// # Safety
///
/// As for [`run`].
unsafe fn run_machine(
    machine: &Machine,
    grid: [u32; 3],
    args: &[Arg],
    arguments: &[naiad_cpu::Arg],
    options: &LaunchOptions<'_>,
) -> Result<Report> {
    let reference =
        || machine.reference.get_or_init(|| naiad_interp::Code::new(machine.func.clone()));
    let found = &machine.code;
    let (exposed, print, clock) = (options.exposed, options.print, options.clock);
    let oracle = || Oracle::new(reference(), grid, args, exposed, print, clock);
    let host = Effects { make: &oracle, oracle: OnceLock::new(), fault: Mutex::new(None) };
    let how = naiad_cpu::Options {
        threads: options.threads,
        interrupt: options.interrupt,
        flag: options.flag,
    };
    let mut outcome = Outcome::Stopped;
    let mut launch = || {
        // SAFETY: as promised to this function.
        outcome = unsafe { found.launch(grid, arguments, &host, &how) };
    };
    match options.long {
        Some(long) if !found.is_short(programs(grid)) => long(&mut launch),
        _ => launch(),
    }
    match outcome {
        Outcome::Ended => Ok(Report::default()),
        Outcome::Stopped => {
            let fault = host.fault.into_inner().unwrap_or_else(PoisonError::into_inner);
            Err(match fault {
                Some((_, fault)) => fault.into(),
                None => Diagnostic::new(Id::Interrupted, "the launch was interrupted").into(),
            })
        }
        Outcome::Fault(f) => {
            let (number, lane) = (f.program, f.lane as usize);
            let oracle = oracle()?;
            Err(match f.site {
                SiteInfo::Access { inst, arg, .. } => {
                    oracle.access(inst, number, lane, f.address, arg)
                }
                SiteInfo::Misaligned { inst, arg } => {
                    oracle.misaligned(inst, number, lane, f.address, arg)
                }
                SiteInfo::ZeroStep { inst } => oracle.zero_step(inst, number),
                SiteInfo::Stopped | SiteInfo::Host { .. } | SiteInfo::Wait { .. } => {
                    Box::new(Diagnostic::new(Id::Internal, "a guard failed that cannot fail"))
                }
            }
            .into())
        }
        Outcome::Deadlock(waiting) => Err(oracle()?.deadlock(&waiting).into()),
        Outcome::Full { waiting, unstarted } => {
            let message = format!(
                "kernel `{}` runs out of memory: {waiting} programs wait for others, with their tiles, and \
                 there is no room for {unstarted} that have not started",
                machine.func.name
            );
            let report = Diagnostic::new(Id::OutOfMemory, message).help(
                "let programs wait only for those before them in the grid, or launch fewer: a GPU holds a \
                 few thousand at once, and hangs where these wait for others",
            );
            Err(report.into())
        }
    }
}

/// Ops that machine code leaves to the reference executor.
struct Effects<'a> {
    make: &'a (dyn Fn() -> std::result::Result<Oracle<'a>, Box<Diagnostic>> + Sync),
    /// Made when first asked for: most kernels never ask.
    oracle: OnceLock<std::result::Result<Oracle<'a>, Box<Diagnostic>>>,
    /// What the first program that failed was told.
    fault: Mutex<Option<(u64, Box<Diagnostic>)>>,
}

impl naiad_cpu::Host for Effects<'_> {
    unsafe fn run(&self, inst: Inst, program: u64, worker: usize, buffers: &[*mut u8]) -> bool {
        let done = match self.oracle.get_or_init(self.make) {
            // SAFETY: the caller's promise.
            Ok(oracle) => unsafe { oracle.effect(inst, program, worker, buffers) },
            Err(e) => Err(e.clone()),
        };
        let Err(fault) = done else { return true };
        let mut first = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        if first.as_ref().is_none_or(|(p, _)| *p > program) {
            *first = Some((program, fault));
        }
        false
    }
}

#[cfg(test)]
#[path = "executor_tests.rs"]
mod tests;
