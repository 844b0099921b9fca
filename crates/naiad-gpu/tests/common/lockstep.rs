//! Kernels as code for a GPU, run in lockstep.

#![allow(dead_code, reason = "each test file uses a part")]

#[path = "../../../naiad-cpu/tests/common/patience.rs"]
pub mod patience;

use naiad_gpu::{Code, Extent, Options};
use naiad_interp::lockstep::{self, BlockShape};
use naiad_interp::{Arg, TensorArg};
use naiad_ir::thread::uniform::{self, Uniform};
use naiad_ir::tile::{Constant, Tile};
use naiad_ir::{Elem, Function, Scalar};
use naiad_opt::interval::Interval;
use naiad_opt::ranges::{Inputs, Param};
use patience::{COMPARED, patience};
use std::sync::{Arc, Mutex};

/// A kernel's code for arguments like those that it was made for.
pub struct Machine {
    gpu: Code,
    code: lockstep::Code,
    uniform: Uniform,
    /// What it was compiled for, for reports.
    pub how: String,
}

/// Why there is no code.
pub enum Refused {
    /// Not compiled, and said so.
    Unsupported(String),
    /// Compiled to what no GPU may be given.
    Wrong(String),
}

/// What a number chooses to compile for.
pub fn options(seed: u64) -> Options {
    let pick = |at: u64, n: u64| (seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (8 * at)) % n;
    Options {
        capability: [80, 89, 90][pick(3, 3) as usize],
        num_warps: 1 << pick(4, 4),
        num_stages: 1 + pick(5, 4) as u32,
        precise: true,
        guarded: pick(6, 3) == 0,
        few_programs: pick(7, 2) == 0,
        prints: None,
    }
}

/// What is known of a launch with these arguments.
pub fn inputs(func: &Function<Tile>, args: &[Arg], grid: Option<[u32; 3]>) -> Inputs {
    let once = naiad_opt::once(func);
    let param = |i: usize, arg: &Arg, elem: Elem| match (arg, elem) {
        (Arg::Scalar(bits), Elem::Scalar(s)) if s.is_int() && s != Scalar::I1 => {
            let number = Constant { ty: s, bits: *bits & s.mask() }.as_int().map(Interval::point);
            let once = once[i].filter(|once| number.is_some_and(|n| once.contains(n)));
            Param {
                range: if *bits == 1 { number } else { once },
                divisible: Some(1 << bits.trailing_zeros().min(4)),
            }
        }
        (Arg::Tensor(t), _) => {
            Param { range: None, divisible: Some(1 << t.address.trailing_zeros().min(4)) }
        }
        _ => Param::default(),
    };
    let all = args.iter().zip(func.params()).enumerate();
    let params = all.map(|(i, (a, &p))| param(i, a, func.ty(p).elem)).collect();
    Inputs { grid, params }
}

impl Machine {
    /// Compiled for what `seed` chooses.
    pub fn new(
        func: &Function<Tile>,
        args: &[Arg],
        grid: [u32; 3],
        seed: u64,
    ) -> Result<Machine, Refused> {
        let inputs = match seed % 3 {
            0 => Inputs::default(),
            1 => inputs(func, args, None),
            _ => inputs(func, args, Some(grid)),
        };
        Machine::with(func, &inputs, &options(seed))
    }

    pub fn with(
        func: &Function<Tile>,
        inputs: &Inputs,
        options: &Options,
    ) -> Result<Machine, Refused> {
        let gpu = naiad_gpu::compile(func, inputs, options)
            .map_err(|why| Refused::Unsupported(why.what))?;
        let wrong = |what: &str, why: &str| Refused::Wrong(format!("{what}: {why}\n{options:?}"));
        naiad_ir::verify(&gpu.func).map_err(|d| wrong("not well formed", &d.message))?;
        uniform::check(&gpu.func).map_err(|d| wrong("not uniform", &d.message))?;
        let shape = BlockShape { threads: gpu.threads, shared_bytes: gpu.shared_bytes };
        let code = lockstep::Code::new(Arc::new(gpu.func.clone()), shape)
            .map_err(|d| wrong("not run", &d.message))?;
        let how = format!("{options:?}, {inputs:?}");
        Ok(Machine { uniform: Uniform::new(&gpu.func), gpu, code, how })
    }

    /// Runs a grid of programs; a fault is told in lines.
    pub fn run(&self, grid: [u32; 3], args: &[Arg], shuffle: Option<u64>) -> Result<(), String> {
        let mut all = args.to_vec();
        all.push(Arg::Scalar(u64::from(grid[0])));
        let mut record = vec![0u64; self.gpu.watch.as_ref().map_or(0, |watch| watch.words())];
        if let Some(watch) = &self.gpu.watch {
            let memory = |extent: Extent| match &args[extent.arg] {
                Arg::Tensor(t) if t.writable || !extent.write => t.storage.clone(),
                _ => 0..0,
            };
            let address = record.as_mut_ptr() as usize;
            let storage = address..address + size_of_val(&record[..]);
            let own = TensorArg { address, storage, view: None, writable: true };
            all.push(Arg::Tensor(own));
            all.extend(watch.arguments(0, memory).skip(1).map(Arg::Scalar));
        }
        let patience = patience(COMPARED);
        let options = lockstep::Options {
            claims: Some(&self.uniform),
            shuffle,
            interrupt: Some(&patience),
            ..lockstep::Options::default()
        };
        // SAFETY: the tests own the memory of the arguments.
        let ended = unsafe { self.code.run(self.gpu.blocks(grid), &all, &options) };
        if let Some(found) = self.gpu.watch.as_ref().and_then(|watch| watch.found(&record)) {
            return Err(format!("the kernel says that it failed: {found:?}\n{}", self.how));
        }
        ended.map(|_| ()).map_err(|fault| {
            let d = fault.diagnostic(&self.gpu.func);
            format!("fault {:?}: {}\n{}\n{:?}", fault.kind, d.message, self.how, d.notes)
        })
    }
}

impl Machine {
    /// What the threads print, of a kernel that watches for no faults; in order.
    pub fn prints(&self, grid: [u32; 3], args: &[Arg]) -> Vec<lockstep::Element> {
        let mut all = args.to_vec();
        all.push(Arg::Scalar(u64::from(grid[0])));
        let said = Mutex::new(Vec::new());
        let print = |element: &lockstep::Element| said.lock().unwrap().push(element.clone());
        let options =
            lockstep::Options { print_elements: Some(&print), ..lockstep::Options::default() };
        // SAFETY: the tests own the memory of the arguments.
        unsafe { self.code.run(self.gpu.blocks(grid), &all, &options) }.unwrap();
        let mut said = said.into_inner().unwrap();
        said.sort();
        said
    }
}
