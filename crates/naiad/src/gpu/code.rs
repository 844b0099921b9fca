//! A kernel's way from Tile IR to machine code that is loaded, and its launch.

use super::cache;
use super::faults::Faults;
use super::{Gpu, error};
use crate::settings::Settings;
use crate::{Error, Result};
use naiad_cuda::{Function as Loaded, JitOptions, Linked, Module, RawStream, Uses, link};
use naiad_diag::{Diagnostic, Id};
use naiad_interp::Arg;
use naiad_ir::tile::{Tile, TileOp};
use naiad_ir::{Function, Inst};
use naiad_opt::ranges::Inputs;
use smallvec::SmallVec;
use std::ffi::{CString, c_void};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What a kernel is compiled for.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Target {
    pub options: naiad_gpu::Options,
    /// Most registers of a thread.
    pub max_registers: Option<u32>,
}

/// A kernel as PTX, which needs no GPU.
pub struct Ptx {
    pub code: naiad_gpu::Code,
    pub text: String,
    func: Function<Tile>,
    inputs: Inputs,
    target: Target,
}

impl Ptx {
    /// The kernel as Placed IR: tiles with their layouts. Made anew, for people to look at.
    pub fn placed(&self) -> Result<String> {
        crate::guard(format_args!("placing `{}`", self.func.name), || {
            let placed = naiad_gpu::placed(&self.func, &self.inputs, &self.target.options);
            let (placed, _) = placed.map_err(|why| no_code(&why, &self.func))?;
            Ok(placed.to_string())
        })
    }
}

/// A kernel that is loaded on a GPU.
pub struct GpuCode {
    gpu: &'static Gpu,
    name: Arc<str>,
    function: Loaded,
    pub ptx: Ptx,
    /// Machine code.
    pub cubin: Vec<u8>,
    pub times: Times,
    faults: Option<Arc<Faults>>,
}

/// How long the parts of a compilation took.
#[derive(Copy, Clone, Default, Debug)]
pub struct Times {
    /// Tile IR to PTX.
    pub compile: Duration,
    /// PTX to machine code, by the driver's compiler or from the cache.
    pub link: Duration,
    /// Machine code to the GPU.
    pub load: Duration,
    /// Whether the machine code was kept from before.
    pub cached: bool,
}

/// Compiles Tile IR to PTX.
pub fn ptx(func: &Function<Tile>, inputs: &Inputs, target: &Target) -> Result<Ptx> {
    crate::guard(format_args!("compiling `{}` for a GPU", func.name), || {
        let code = naiad_gpu::compile(func, inputs, &target.options);
        let code = code.map_err(|why| no_code(&why, func))?;
        let kernel = naiad_ptx::Kernel {
            func: &code.func,
            threads: code.threads,
            shared_bytes: code.shared_bytes,
            max_regs: target.max_registers,
            lines: !Settings::get().no_lines,
        };
        let chip = naiad_ptx::Target { capability: target.options.capability };
        let text = naiad_ptx::write(&kernel, chip).map_err(|why| match why.op {
            "asm" => {
                let message = format!("kernel `{}`: inline assembly: {}", func.name, why.why);
                Error::from(at_assembly(func, Diagnostic::new(Id::InlineAsm, message)))
            }
            _ => {
                let message = format!("kernel `{}` cannot be written as PTX: {why}", func.name);
                Diagnostic::new(Id::Internal, message).into()
            }
        })?;
        let (func, inputs, target) = (func.clone(), inputs.clone(), target.clone());
        Ok(Ptx { code, text, func, inputs, target })
    })
}

/// Points to the kernel's inline assembly, if it has one piece.
fn at_assembly(func: &Function<Tile>, report: Diagnostic) -> Diagnostic {
    match assembly(func)[..] {
        [only] => report.primary_at(&func.places, func.loc(only), ""),
        _ => report,
    }
}

fn assembly(func: &Function<Tile>) -> Vec<Inst> {
    let mut found = Vec::new();
    func.walk(&mut |inst| {
        if matches!(func.op(inst), TileOp::InlineAsm { .. }) {
            found.push(inst);
        }
    });
    found
}

/// Why a kernel does not run on a GPU.
pub(crate) fn no_code(why: &naiad_gpu::Unsupported, func: &Function<Tile>) -> Error {
    let message = format!("kernel `{}` is not compiled for a GPU: {}", func.name, why.what);
    let report = Diagnostic::new(Id::NoGpuCode, message);
    match why.loc {
        Some(loc) => report.primary_at(&func.places, loc, ""),
        None => report,
    }
    .into()
}

impl GpuCode {
    /// Compiles, and loads on a GPU. What the kernel needs is held against what the GPU has.
    pub fn new(
        gpu: &'static Gpu,
        func: &Function<Tile>,
        inputs: &Inputs,
        target: &Target,
    ) -> Result<GpuCode> {
        let start = Instant::now();
        let ptx = ptx(func, inputs, target)?;
        let compile = start.elapsed();
        room_for(gpu, &func.name, &ptx.code, target)?;

        let start = Instant::now();
        // The most registers stand in the text.
        let options = JitOptions { line_info: !Settings::get().no_lines, ..JitOptions::default() };
        let (capability, driver) = (gpu.facts().capability(), gpu.driver_version());
        let key = cache::Key { ptx: &ptx.text, capability, driver, options };
        let kept = cache::load(&key);
        let cached = kept.is_some();
        let cubin = match kept {
            Some(cubin) => cubin,
            None => {
                let Linked { cubin, .. } = machine_code(gpu, &func.name, &ptx, options)?;
                cache::store(&key, &cubin);
                cubin
            }
        };
        let link = start.elapsed();

        let start = Instant::now();
        // SAFETY: it was linked for a device of this kind by this driver.
        let function = unsafe { Module::load(gpu.context(), &cubin) }.and_then(|module| {
            let name = CString::new(naiad_ptx::entry_name(&func.name)).unwrap_or_default();
            module.function(&name, ptx.code.shared_bytes)
        });
        let function = function.map_err(|e| gpu.fault(&e))?;
        let times = Times { compile, link, load: start.elapsed(), cached };
        let name = Arc::from(func.name.as_str());
        let faults = match &ptx.code.watch {
            Some(watch) => Some(Arc::new(Faults::new(gpu, watch)?)),
            None => None,
        };
        faults.iter().for_each(|faults| gpu.watch(faults));
        let made = GpuCode { gpu, name, function, ptx, cubin, times, faults };
        made.registers_suffice()?;
        Ok(made)
    }

    /// What a thread and a block use.
    pub fn uses(&self) -> Uses {
        self.function.uses()
    }

    /// Bytes of shared memory of a block.
    pub fn shared_bytes(&self) -> u32 {
        self.ptx.code.shared_bytes
    }

    /// Threads of a block.
    pub fn threads(&self) -> u32 {
        self.ptx.code.threads
    }

    /// Blocks that one multiprocessor runs at a time.
    pub fn blocks_per_multiprocessor(&self) -> Result<u32> {
        let blocks = self.function.blocks_per_multiprocessor(self.threads(), self.shared_bytes());
        blocks.map_err(|e| self.gpu.fault(&e))
    }

    /// Queues the programs of a grid; of a kernel that tells of its faults waits for them.
    ///
    /// # Safety
    ///
    /// The arguments are those that the code was compiled for. Their memory is the GPU's, and there until
    /// the launch is done; the kernel touches no other. The stream is one of the GPU's.
    pub(crate) unsafe fn launch(
        &self,
        grid: [u32; 3],
        args: &[Arg],
        stream: RawStream,
    ) -> Result<()> {
        // A value is read from its first bytes, as many as its type has.
        let mut values = SmallVec::<[u64; 24]>::new();
        for arg in args {
            values.push(match arg {
                Arg::Scalar(bits) => *bits,
                Arg::Tensor(tensor) => tensor.address as u64,
            });
        }
        values.push(u64::from(grid[0]));
        let mut watching = self.faults.as_ref().map(|faults| (faults, faults.lock()));
        // What a graph launches later is told of at the next wait.
        let mut is_later = false;
        if let Some((faults, record)) = &mut watching {
            is_later = stream.is_capturing(self.gpu.context()).map_err(|e| self.gpu.fault(&e))?;
            values.extend(faults.begin(record, grid, args));
        }
        let mut params = SmallVec::<[*const c_void; 24]>::new();
        for value in &values {
            params.push(std::ptr::from_ref(value).cast());
        }
        let blocks = self.ptx.code.blocks(grid);
        self.fits(blocks)?;
        self.gpu.remember(&self.name, grid);
        // SAFETY: a value for each parameter; the rest is the caller's promise.
        let queued = unsafe {
            self.function.launch(blocks, self.threads(), self.shared_bytes(), stream, &params)
        };
        queued.map_err(|e| self.gpu.fault(&e))?;
        if let Some((faults, mut record)) = watching.filter(|_| !is_later) {
            let done = self.gpu.wait();
            faults.judge(&mut record, &done)?;
            return done;
        }
        match Settings::get().cuda_sync && !is_later {
            true => self.gpu.synchronize(),
            false => Ok(()),
        }
    }

    fn fits(&self, blocks: [u32; 3]) -> Result<()> {
        let facts = self.gpu.facts();
        let most = [facts.max_grid_x, facts.max_grid_y, facts.max_grid_z];
        match (0..3).find(|&axis| blocks[axis] > most[axis]) {
            None => Ok(()),
            Some(axis) => {
                let message = format!(
                    "the launch of `{}` has {} programs along axis {axis}, and a GPU runs at most {} there",
                    self.name, blocks[axis], most[axis]
                );
                let report = Diagnostic::new(Id::BadGrid, message);
                Err(report.help("number them along axis 0, which has room for 2147483647").into())
            }
        }
    }

    /// A block must find room for the registers of its threads.
    fn registers_suffice(&self) -> Result<()> {
        let (uses, threads) = (self.uses(), self.threads());
        if threads <= uses.max_threads {
            return Ok(());
        }
        let message = format!(
            "`{}` takes {} registers a thread, so a block can have {} threads; num_warps={} asks for {threads}",
            self.name,
            uses.registers,
            uses.max_threads,
            threads / self.gpu.facts().warp_size.max(1)
        );
        let most = self.gpu.facts().registers_per_block / threads.max(1) / 8 * 8;
        let help = format!("lower `num_warps` or the tiles, or launch with `maxnreg={most}`");
        Err(out_of_resources(
            message,
            "registers",
            threads * uses.registers,
            self.gpu.facts().registers_per_block,
        )
        .help(help)
        .into())
    }
}

/// The driver's compiler, whose refusal is a fault of ours, or of inline assembly.
fn machine_code(gpu: &Gpu, name: &str, ptx: &Ptx, options: JitOptions) -> Result<Linked> {
    let text = CString::new(ptx.text.as_str()).unwrap_or_default();
    let file = CString::new(format!("{name}.ptx")).unwrap_or_default();
    link(gpu.context(), &file, &text, &options).map_err(|e| match e {
        naiad_cuda::Error::Compile { code, log } => {
            let message = format!("the driver refuses the PTX of `{name}`: {code}");
            let report = match assembly(&ptx.func).is_empty() {
                true => Diagnostic::new(Id::Internal, message),
                false => at_assembly(&ptx.func, Diagnostic::new(Id::InlineAsm, message)).help(
                    "the assembler's words are about the kernel's inline assembly, most likely",
                ),
            };
            Error::from(report.note(log))
        }
        other => error(&other),
    })
}

/// What the code asks for, against what the GPU has.
fn room_for(gpu: &Gpu, name: &str, code: &naiad_gpu::Code, target: &Target) -> Result<()> {
    let facts = gpu.facts();
    if code.shared_bytes > facts.shared_per_block_optin {
        let message = format!(
            "`{name}` takes {} bytes of shared memory a block, and {} has {}",
            code.shared_bytes, facts.name, facts.shared_per_block_optin
        );
        let help = match target.options.num_stages {
            0 | 1 => "make the tiles smaller: the block sizes among the kernel's constexprs".into(),
            n => format!(
                "lower `num_stages`, which is {n}, or make the tiles smaller: the block sizes among the kernel's constexprs"
            ),
        };
        let report = out_of_resources(
            message,
            "shared memory",
            code.shared_bytes,
            facts.shared_per_block_optin,
        );
        return Err(report.help(help).into());
    }
    if code.threads > facts.max_threads {
        let message = format!(
            "`{name}` has {} threads a block with num_warps={}, and {} runs at most {}",
            code.threads, target.options.num_warps, facts.name, facts.max_threads
        );
        let help =
            format!("lower `num_warps` to at most {}", facts.max_threads / facts.warp_size.max(1));
        let report = out_of_resources(message, "threads", code.threads, facts.max_threads);
        return Err(report.help(help).into());
    }
    Ok(())
}

/// Tuners read the numbers off the note and go on with the next configuration.
fn out_of_resources(message: String, what: &str, required: u32, limit: u32) -> Diagnostic {
    let note = format!("out of resource: {what}, required: {required}, limit: {limit}");
    Diagnostic::new(Id::OutOfResources, message).note(note)
}
