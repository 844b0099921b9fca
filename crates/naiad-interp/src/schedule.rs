//! Programs over threads, and programs that wait for one another.
//!
//! Threads take programs from one counter. A program that spins is put aside; its thread goes on
//! with others, new ones first, and comes back to it when memory has changed. Programs live on the
//! thread that started them.
//!
//! Deadlock: every thread is out of new programs, and has gone round all its waiting ones without a
//! change of memory by anyone. Since they would do the same again, nothing can ever move.

use crate::args::{Arg, LaunchOptions};
use crate::exec::{Exec, Plan, Program, Stop, interrupted, is_set};
use crate::policy::Policy;
use naiad_diag::{Diagnostic, Id};
use naiad_ir::Function;
use naiad_ir::tile::Tile as Dialect;
use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

/// What the threads of one launch share.
struct Shared {
    next: AtomicU64,
    total: u64,
    grid: [u32; 3],
    /// Grows with every change of memory by a program that stopped, and with every finished one.
    changes: AtomicU64,
    /// For each thread the count of changes at which it found itself stuck, plus 1; `DONE` once it
    /// has nothing left to do.
    stuck: Vec<AtomicU64>,
    over: AtomicBool,
    /// The error of the lowest program so far.
    error: Mutex<Option<(u64, Box<Diagnostic>)>>,
}

const DONE: u64 = u64::MAX;

impl Shared {
    fn fail(&self, program: u64, diagnostic: Box<Diagnostic>) {
        let mut error = self.error.lock().unwrap_or_else(|e| e.into_inner());
        if error.as_ref().is_none_or(|(p, _)| program < *p) {
            *error = Some((program, diagnostic));
        }
        self.over.store(true, SeqCst);
    }

    fn id(&self, index: u64) -> [u32; 3] {
        let [x, y, _] = self.grid.map(u64::from);
        [(index % x) as u32, (index / x % y) as u32, (index / x / y) as u32]
    }

    fn index(&self, id: [u32; 3]) -> u64 {
        let ([x, y, _], [i, j, k]) = (self.grid.map(u64::from), id.map(u64::from));
        i + x * (j + y * k)
    }
}

pub fn run<P: Policy>(func: &Function<Dialect>, grid: [u32; 3], args: &[Arg], options: &LaunchOptions<'_>) -> Result<(), Box<Diagnostic>> {
    let total: u64 = grid.iter().map(|&g| u64::from(g)).product();
    if total == 0 {
        return Ok(());
    }
    let plan = Plan::new(func);
    let machine = std::thread::available_parallelism().map_or(1, |n| n.get());
    let threads = if options.threads == 0 { machine } else { options.threads };
    let threads = threads.min(usize::try_from(total).unwrap_or(usize::MAX)).max(1);
    let shared = Shared {
        next: AtomicU64::new(0),
        total,
        grid,
        changes: AtomicU64::new(0),
        stuck: (0..threads).map(|_| AtomicU64::new(0)).collect(),
        over: AtomicBool::new(false),
        error: Mutex::new(None),
    };
    let work = |thread: usize| worker::<P>(&plan, args, &shared, options, thread);
    if threads == 1 {
        work(0);
    } else {
        std::thread::scope(|scope| {
            for thread in 1..threads {
                scope.spawn(move || work(thread));
            }
            work(0);
        });
    }
    let Shared { error, .. } = shared;
    match error.into_inner().unwrap_or_else(|e| e.into_inner()) {
        Some((_, diagnostic)) => Err(diagnostic),
        None => Ok(()),
    }
}

fn worker<P: Policy>(plan: &Plan<'_>, args: &[Arg], shared: &Shared, options: &LaunchOptions<'_>, thread: usize) {
    let stop = || shared.over.load(SeqCst) || is_set(options.interrupt);
    let mut exec = Exec::<P>::new(plan, args, shared.grid, options.naive, &stop);
    let mut waiting: VecDeque<Waiting> = VecDeque::new();
    loop {
        if stop() {
            if !shared.over.load(SeqCst) {
                shared.fail(u64::MAX, Box::new(interrupted(plan.func)));
            }
            break;
        }
        let changes = shared.changes.load(SeqCst);
        // One that may have got what it waits for; else a new one; else any that waits.
        let woken = waiting.iter().position(|w| w.since != changes || !w.stuck);
        let fresh = || {
            let index = shared.next.load(SeqCst);
            if index >= shared.total { None } else { Some(shared.next.fetch_add(1, SeqCst)).filter(|&i| i < shared.total) }
        };
        let program = match woken.filter(|_| waiting.len() > 1024 || shared.next.load(SeqCst) >= shared.total || turn(&waiting)) {
            Some(i) => waiting.remove(i).map(|w| w.program),
            None => fresh().map(|index| exec.start(shared.id(index))),
        };
        let Some(mut program) = program else {
            if waiting.is_empty() {
                shared.stuck[thread].store(DONE, SeqCst);
                break;
            }
            if let Some(i) = woken {
                // Not its turn above, but nothing else is left.
                if let Some(w) = waiting.remove(i) {
                    step(&mut exec, shared, w.program, &mut waiting, thread);
                }
                continue;
            }
            if all_stuck(shared, thread, changes) {
                report_deadlock(plan, shared, &waiting);
                break;
            }
            std::thread::sleep(Duration::from_micros(50));
            continue;
        };
        program.spinning_at = None;
        step(&mut exec, shared, program, &mut waiting, thread);
    }
    shared.stuck[thread].store(DONE, SeqCst);
}

struct Waiting {
    program: Program,
    /// The count of changes when it stopped.
    since: u64,
    stuck: bool,
}

/// Waiting programs get every second turn, so that neither they nor new ones starve.
fn turn(waiting: &VecDeque<Waiting>) -> bool {
    waiting.len() % 2 == 0
}

fn step<P: Policy>(exec: &mut Exec<'_, P>, shared: &Shared, mut program: Program, waiting: &mut VecDeque<Waiting>, thread: usize) {
    shared.stuck[thread].store(0, SeqCst);
    let seen = shared.changes.load(SeqCst);
    let before = Exec::<P>::writes(&program);
    let stopped = exec.run(&mut program);
    let changed = Exec::<P>::writes(&program) != before;
    if changed {
        shared.changes.fetch_add(1, SeqCst);
    }
    match stopped {
        Stop::Finished => {
            shared.changes.fetch_add(1, SeqCst);
            exec.finish(program);
        }
        Stop::Spins { stuck } => {
            let since = if changed { seen + 1 } else { seen };
            waiting.push_back(Waiting { program, since, stuck });
        }
        Stop::Failed(diagnostic) => shared.fail(shared.index(program.id), diagnostic),
    }
}

/// Notes that this thread is stuck, and tells whether all are at the same count of changes.
fn all_stuck(shared: &Shared, thread: usize, changes: u64) -> bool {
    shared.stuck[thread].store(changes + 1, SeqCst);
    let all = shared.stuck.iter().all(|s| matches!(s.load(SeqCst), s if s == changes + 1 || s == DONE));
    all && shared.changes.load(SeqCst) == changes && shared.next.load(SeqCst) >= shared.total
}

fn report_deadlock(plan: &Plan<'_>, shared: &Shared, waiting: &VecDeque<Waiting>) {
    let func = plan.func;
    let Some(first) = waiting.front() else { return };
    let [x, y, z] = first.program.id;
    let message = format!("kernel `{}` deadlocks: programs wait for memory that no program will change", func.name);
    let mut d = Diagnostic::new(Id::Deadlock, message);
    if let Some(inst) = first.program.spinning_at {
        d = d.primary_at(&func.places, func.loc(inst), format!("program ({x}, {y}, {z}) waits in this loop"));
    }
    let ids: Vec<String> = waiting.iter().take(8).map(|w| format!("({}, {}, {})", w.program.id[0], w.program.id[1], w.program.id[2])).collect();
    let more = if waiting.len() > 8 { format!(" and {} more", waiting.len() - 8) } else { String::new() };
    d = d.note(format!("waiting: programs {}{more}; all others have ended", ids.join(", ")));
    d = d.help("see that whoever is waited for sets the flag on every path, and that the grid is as large as the count that is waited for");
    shared.fail(shared.index(first.program.id), Box::new(d));
}
