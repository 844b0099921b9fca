//! What a kernel tells of its faults, read when its launch is done.
//!
//! The record is memory of the host, so that it is there also where the kernel broke the GPU's context.

use super::{Gpu, error};
use crate::watched::Watched;
use crate::{Error, Result};
use naiad_cuda::Mapped;
use naiad_interp::Arg;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The record of one kernel's launches, which are made one at a time.
pub struct Faults {
    watched: Watched,
    record: Mutex<Record>,
}

pub struct Record {
    memory: Mapped,
    /// The grid and the arguments of the latest launch.
    launched: Option<([u32; 3], Vec<Arg>)>,
}

impl Faults {
    pub fn new(gpu: &Gpu, watch: &naiad_gpu::Watch) -> Result<Faults> {
        let memory = Mapped::new(gpu.context(), watch.words()).map_err(|e| error(&e))?;
        let record = Mutex::new(Record { memory, launched: None });
        Ok(Faults { watched: Watched::new(watch), record })
    }

    /// Taken for the time of a launch.
    pub fn lock(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what is launched; gives what the code gets behind the kernel's own arguments.
    pub fn begin(
        &self,
        record: &mut Record,
        grid: [u32; 3],
        args: &[Arg],
    ) -> impl Iterator<Item = u64> {
        record.launched = Some((grid, args.to_vec()));
        self.watched.arguments(record.memory.address(), args)
    }

    /// What a launch that has been waited for says; `done` is what came of waiting.
    pub fn judge(&self, record: &mut Record, done: &Result<()>) -> Result<()> {
        let Some((grid, args)) = &record.launched else { return Ok(()) };
        let Err(e) = self.watched.judge(&record.memory.read(), *grid, args) else { return Ok(()) };
        let mut report = e.diagnostic().clone().note(format!("launched with the grid {grid:?}"));
        record.memory.clear();
        if done.is_err() {
            report = report.note("nothing more can be done with the GPU in this process");
        }
        Err(Error::from(report))
    }

    /// The same for whoever waited for all launches; one that is being made is its maker's.
    pub fn told(&self, done: &Result<()>) -> Result<()> {
        match self.record.try_lock() {
            Ok(mut record) => self.judge(&mut record, done),
            Err(_) => Ok(()),
        }
    }
}
