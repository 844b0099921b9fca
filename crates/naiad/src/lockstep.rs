//! Launches on the CPU by the code for a GPU, whose threads go in lockstep: whoever tests the compiler for
//! GPUs runs every test of the language so, on a machine that has none.

use crate::gpu::{Asks, Known, no_code};
use crate::watched::Watched;
use crate::{LaunchConfig, Result};
use naiad_interp::lockstep::{BlockShape, Code, Options};
use naiad_interp::{Arg, LaunchOptions, Report, TensorArg};
use naiad_ir::thread::uniform;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The chip that code is made for.
const CAPABILITY: u32 = 90;

/// Code of one variant, for each of the options and facts that it was launched with.
#[derive(Default)]
pub(crate) struct Compiled {
    /// What is asked of each argument.
    asks: OnceLock<Vec<Asks>>,
    known: Mutex<Vec<(Key, Result<Arc<Ready>>)>>,
}

type Key = (naiad_gpu::Options, Known);

struct Ready {
    code: Code,
    gpu: naiad_gpu::Code,
    watched: Option<Watched>,
}

impl Compiled {
    fn get(
        &self,
        code: &naiad_interp::Code,
        args: &[Arg],
        config: &LaunchConfig,
    ) -> Result<Arc<Ready>> {
        let options = naiad_gpu::Options { precise: true, ..config.target(CAPABILITY).options };
        let func = code.func();
        let asks = self.asks.get_or_init(|| Asks::of_all(func));
        let key = (options.clone(), Known::new(args.iter().zip(asks.iter().copied())));
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, found)) = known.iter().find(|(k, _)| *k == key) {
            return found.clone();
        }
        let inputs = key.1.inputs(asks);
        let made = naiad_gpu::compile(func, &inputs, &options).map_err(|why| no_code(&why, func));
        let made = made.and_then(|gpu| {
            naiad_ir::verify(&gpu.func)?;
            uniform::check(&gpu.func)?;
            let shape = BlockShape { threads: gpu.threads, shared_bytes: gpu.shared_bytes };
            let code = Code::new(Arc::new(gpu.func.clone()), shape)?;
            let watched = gpu.watch.as_ref().map(Watched::new);
            Ok(Arc::new(Ready { code, gpu, watched }))
        });
        known.push((key, made.clone()));
        made
    }

    /// Runs a launch.
    ///
    /// # Safety
    ///
    /// As for [`naiad_interp::launch`].
    pub unsafe fn run(
        &self,
        code: &naiad_interp::Code,
        grid: [u32; 3],
        args: &[Arg],
        config: &LaunchConfig,
        options: &LaunchOptions<'_>,
    ) -> Result<Report> {
        let ready = self.get(code, args, config)?;
        let mut all = args.to_vec();
        all.push(Arg::Scalar(u64::from(grid[0])));
        let mut record = vec![0u64; ready.watched.as_ref().map_or(0, |w| w.watch.words())];
        if let Some(watched) = &ready.watched {
            let mut more = watched.arguments(record.as_mut_ptr() as u64, args);
            all.extend(more.next().map(|address| Arg::Tensor(memory(address as usize, &record))));
            all.extend(more.map(Arg::Scalar));
        }
        let how = Options {
            interrupt: options.interrupt,
            print: options.print,
            clock: options.clock,
            exposed: code.reachable(options.exposed),
            ..Options::default()
        };
        // SAFETY: as promised to this function.
        let ended = unsafe { ready.code.run(ready.gpu.blocks(grid), &all, &how) };
        if let Some(watched) = &ready.watched {
            watched.judge(&record, grid, args)?;
        }
        match ended {
            Ok(_) => Ok(Report::default()),
            Err(fault) => Err(fault.diagnostic(&ready.gpu.func).into()),
        }
    }
}

/// Words that the kernel may write.
fn memory(address: usize, words: &[u64]) -> TensorArg {
    let storage = address..address + size_of_val(words);
    TensorArg { address, storage, view: None, writable: true }
}
