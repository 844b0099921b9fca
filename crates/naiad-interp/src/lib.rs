//! The reference executor: runs Tile IR as it is written, and judges whoever runs it otherwise.
//!
//! ```text
//!   launch            arguments -> registers, threads            lib.rs, args.rs
//!     schedule        programs over threads; waiting, deadlock   schedule.rs
//!       exec          one program: frames, registers             exec.rs    <- code.rs: liveness, loops
//!         ops         what ops compute                           ops.rs
//!           formula   ... on compressed tiles                    formula.rs, shapes.rs
//!           engine    ... lane by lane, by loops over chunks     engine.rs, loops.rs, casts.rs
//!           combine   reduce, scan, map and their regions        combine.rs, mapping.rs, region.rs
//!           sorting   sort, gather, histogram                    sorting.rs
//!           dot       matrix products                            dot.rs
//!         access      loads and stores; atomics                  access.rs, atomics.rs
//!           memory    which addresses may be touched             memory.rs
//!   oracle            its words and doings for other executors   oracle.rs
//!     check           what is judged of a checked launch         check/     <- policy.rs: when
//! ```
//!
//! A tile is kept in one of four forms, see [`tile`]: index arithmetic and masks stay formulas and
//! boxes, so the common load or store is two comparisons and a copy. The option `naive` turns all of
//! that off; both must give the same bits, which the tests hold.
//!
//! [`thread`] is an evaluator of Thread IR, and [`lockstep`] runs that of GPUs, apart from all this.
//!
//! What must hold, whatever a kernel does: no byte outside the arguments' storage is read or written;
//! nothing panics; a program that waits lets others run.

mod access;
pub mod args;
mod assembly;
mod atomics;
mod casts;
mod check;
mod code;
mod combine;
mod debug;
mod dot;
mod engine;
mod exec;
mod fault;
mod formula;
pub mod lockstep;
mod loops;
mod mapping;
mod memory;
mod ops;
mod oracle;
pub mod poison;
mod policy;
mod region;
mod schedule;
mod shapes;
mod slab;
mod sorting;
mod strided;
pub mod thread;
mod tile;

pub use args::{Arg, Axes, LaunchOptions, Multiply, PolicyKind, TensorArg, View};
pub use code::Code;
pub use debug::{Operand, Printed};
pub use oracle::Oracle;

use crate::exec::Shared;
use crate::memory::Origin;
use naiad_diag::{Diagnostic, Id};
use naiad_ir::Function;
use naiad_ir::tile::Tile as TileIr;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// What a launch found besides what it computed.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// What was found and did not end the launch; some may be errors all the same.
    pub findings: Vec<Diagnostic>,
    /// Of a checked launch: the arguments that it changed after it had read them, so that a second launch
    /// finds others.
    pub updated: Vec<String>,
}

/// Runs `grid[0] * grid[1] * grid[2]` programs of a verified kernel. On an error other programs may
/// have written what they would have written.
///
/// # Safety
///
/// The storage of each tensor argument is valid for reads, and for writes where `writable`, until
/// this returns; and so is the memory that the options expose.
pub unsafe fn launch(
    code: &Code,
    grid: [u32; 3],
    args: &[Arg],
    options: &LaunchOptions<'_>,
) -> Result<Report, Box<Diagnostic>> {
    let arguments = bind(&code.func, args)?;
    // Three factors below 2^32 may pass 64 bits; nobody lives to see the end of such a grid.
    let total = grid.iter().fold(1u64, |n, &g| n.saturating_mul(u64::from(g)));
    if total == 0 {
        return Ok(Report::default());
    }
    let threads = match options.threads {
        0 => cores(),
        n => n,
    };
    let workers = (threads as u64).min(total) as usize;
    let exposed = code.reachable(options.exposed);
    let memory = memory::Memory::new(&code.func.param_names, args, exposed);
    let findings = fault::Findings::default();
    let clock_reads = AtomicU64::new(0);
    let board = schedule::Board::new(total, workers, options.interrupt);
    let checker = match options.policy {
        PolicyKind::Plain => None,
        PolicyKind::Checked => {
            Some(check::Checker::new(&code.func, &memory, total, options.uninitialized))
        }
    };
    let shared = Shared {
        code,
        memory: &memory,
        findings: &findings,
        check: checker.as_ref(),
        grid,
        arguments: &arguments,
        naive: options.naive,
        in_order: options.in_order,
        print: options.print,
        clock: options.clock,
        clock_reads: &clock_reads,
        stopped: &|number| board.stopped(number),
    };
    match options.policy {
        PolicyKind::Plain => schedule::run::<policy::Plain>(&shared, &board, options.long),
        PolicyKind::Checked => schedule::run::<check::Checked>(&shared, &board, options.long),
    }
    let ended = board.has_ended();
    let mut updated = Vec::new();
    if let (Some(checker), true) = (&checker, ended) {
        checker.finish(&shared);
        updated = checker.updated(&shared);
    }
    let findings = findings.take();
    if let Err(fault) = board.outcome(code) {
        // What was found before is not lost with what ended the launch.
        if let Some(found) = options.found {
            found.lock().unwrap_or_else(PoisonError::into_inner).extend(findings);
        }
        return Err(fault);
    }
    Ok(Report { findings, updated })
}

/// How many threads this process may run at once. Asked of the system once: on Linux the answer is
/// read from files, which takes longer than many a launch.
fn cores() -> usize {
    // No `OnceLock`: a fork could leave that half initialized.
    static CORES: AtomicUsize = AtomicUsize::new(0);
    match CORES.load(Ordering::Relaxed) {
        0 => {
            let n = std::thread::available_parallelism().map_or(1, usize::from);
            CORES.store(n, Ordering::Relaxed);
            n
        }
        n => n,
    }
}

/// What a program's parameters start with.
fn bind(func: &Function<TileIr>, args: &[Arg]) -> Result<Vec<(u64, Origin)>, Box<Diagnostic>> {
    let wrong = |message: String| Box::new(Diagnostic::new(Id::BadLaunch, message));
    let params = func.params();
    if params.len() != args.len() {
        let message =
            format!("`{}` takes {} arguments, {} are given", func.name, params.len(), args.len());
        return Err(wrong(message));
    }
    let mut regs = Vec::with_capacity(args.len());
    for (i, (&param, arg)) in params.iter().zip(args).enumerate() {
        let ty = func.ty(param);
        let name = func.param_names.get(i).map_or("?", String::as_str);
        regs.push(match arg {
            _ if !ty.is_scalar() => {
                return Err(wrong(format!("parameter `{name}` is a tile, which no argument is")));
            }
            Arg::Scalar(bits) => (bits & tile::stored(ty.elem).mask(), Origin::Unknown),
            Arg::Tensor(_) if !ty.is_pointer() => {
                return Err(wrong(format!(
                    "parameter `{name}` is a number, the argument a tensor"
                )));
            }
            Arg::Tensor(t) => (t.address as u64, Origin::Arg(i as u32)),
        });
    }
    Ok(regs)
}
