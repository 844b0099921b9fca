//! Kernels as machine code, beside the reference executor.

#![allow(dead_code, reason = "each test file uses a part")]

#[path = "patience.rs"]
pub mod patience;

use naiad_cpu::dist::SiteInfo;
use naiad_cpu::{Facts, Outcome, Processor, written};
use naiad_diag::{Diagnostic, Id};
use naiad_interp::{Arg, Code, Oracle};
use naiad_ir::tile::Tile;
use naiad_ir::{Function, Inst};
use patience::{COMPARED, patience};
use std::sync::{Arc, Mutex};

/// A kernel's machine code for arguments like those that it was made for.
pub struct Machine {
    pub func: Arc<Function<Tile>>,
    code: naiad_cpu::Code,
}

/// Code is for the processor that `NAIAD_CPU` names, as docs/settings.md says.
pub fn limit_processor() {
    if let Some(name) = std::env::var("NAIAD_CPU").ok().filter(|name| !name.is_empty()) {
        let processor = Processor::available().find(|p| p.name() == name);
        assert!(processor.is_some_and(Processor::limit), "this is no `{name}`");
    }
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

impl Machine {
    pub fn new(func: &Arc<Function<Tile>>, args: &[Arg], optimize: bool) -> Machine {
        let mut func = func.clone();
        if optimize {
            naiad_cpu::optimize(Arc::make_mut(&mut func));
            naiad_cpu::peel(Arc::make_mut(&mut func));
            naiad_ir::verify(&func).unwrap_or_else(|e| panic!("{}\n{func}", e.message));
        }
        let arguments: Vec<_> = args.iter().map(argument).collect();
        let facts = Facts::of(&arguments, &written(&func));
        match naiad_cpu::Code::new(&func, &facts) {
            Ok(code) => Machine { func, code },
            Err(d) => panic!("{}\n{func}", d.message),
        }
    }

    pub fn run(&self, grid: [u32; 3], args: &[Arg], threads: usize) -> Result<(), Box<Diagnostic>> {
        let reference = Code::new(self.func.clone());
        let oracle = Oracle::new(&reference, grid, args, &[], None, None)?;
        let arguments: Vec<_> = args.iter().map(argument).collect();
        let host = Host { oracle: &oracle, fault: Mutex::new(None) };
        let patience = patience(COMPARED);
        let options = naiad_cpu::Options { threads, interrupt: Some(&patience), flag: None };
        // SAFETY: the facts are those of the arguments, whose memory the tests own.
        match unsafe { self.code.launch(grid, &arguments, &host, &options) } {
            Outcome::Ended => Ok(()),
            Outcome::Stopped => {
                let fault = host.fault.into_inner().unwrap();
                Err(fault.map_or_else(|| Box::new(Diagnostic::new(Id::Interrupted, "")), |f| f.1))
            }
            Outcome::Fault(f) => {
                let (number, lane) = (f.program, f.lane as usize);
                Err(match f.site {
                    SiteInfo::Access { inst, arg, .. } => {
                        oracle.access(inst, number, lane, f.address, arg)
                    }
                    SiteInfo::Misaligned { inst, arg } => {
                        oracle.misaligned(inst, number, lane, f.address, arg)
                    }
                    SiteInfo::ZeroStep { inst } => oracle.zero_step(inst, number),
                    site @ (SiteInfo::Stopped | SiteInfo::Host { .. } | SiteInfo::Wait { .. }) => {
                        panic!("a guard that cannot fail: {site:?}")
                    }
                })
            }
            Outcome::Deadlock(waiting) => Err(oracle.deadlock(&waiting)),
            Outcome::Full { waiting, unstarted } => Err(Box::new(Diagnostic::new(
                Id::OutOfMemory,
                format!("{waiting} wait, {unstarted} have not started"),
            ))),
        }
    }
}

/// What a fault says. Its help is about the op as it is written, which optimizing changes.
pub fn fault(d: &Diagnostic) -> String {
    let mut lines = vec![format!("[{}] {}", d.id, d.message)];
    lines.extend(d.labels.iter().map(|l| format!("at {}: {}", l.place, l.text)));
    lines.extend(d.notes.iter().map(|n| format!("note: {n}")));
    lines.join("\n")
}

struct Host<'a> {
    oracle: &'a Oracle<'a>,
    fault: Mutex<Option<(u64, Box<Diagnostic>)>>,
}

impl naiad_cpu::Host for Host<'_> {
    unsafe fn run(&self, inst: Inst, program: u64, worker: usize, buffers: &[*mut u8]) -> bool {
        // SAFETY: the caller's promise.
        let done = unsafe { self.oracle.effect(inst, program, worker, buffers) };
        let Err(fault) = done else { return true };
        let mut first = self.fault.lock().unwrap();
        if first.as_ref().is_none_or(|(p, _)| *p > program) {
            *first = Some((program, fault));
        }
        false
    }
}
