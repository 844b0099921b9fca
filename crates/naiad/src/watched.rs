//! What the record of a watched launch says, in the reference executor's words: see [`naiad_gpu::Watch`].

use crate::Result;
use naiad_gpu::{Extent, Watch};
use naiad_interp::{Arg, Oracle};
use std::ops::Range;
use std::sync::Arc;

/// A watched kernel, and the reference executor's view of it.
pub(crate) struct Watched {
    pub watch: Watch,
    reference: naiad_interp::Code,
}

impl Watched {
    pub fn new(watch: &Watch) -> Watched {
        let reference = naiad_interp::Code::new(Arc::new(watch.func.clone()));
        Watched { watch: watch.clone(), reference }
    }

    /// What the code gets behind the kernel's own arguments.
    pub fn arguments(&self, record: u64, args: &[Arg]) -> impl Iterator<Item = u64> {
        self.watch.arguments(record, |extent| memory(args, extent))
    }

    /// What went wrong in a launch with these arguments, by its record.
    pub fn judge(&self, record: &[u64], grid: [u32; 3], args: &[Arg]) -> Result<()> {
        let Some(found) = self.watch.found(record) else { return Ok(()) };
        let oracle = Oracle::new(&self.reference, grid, args, &[], None, None)?;
        let (inst, arg) = (found.site.inst, found.site.arg);
        let lanes = (found.lane, found.count);
        let address = found.values.first().copied().unwrap_or(0);
        Err(match self.watch.size_of(found.site) {
            None => oracle.assertion(inst, found.program, lanes, found.values),
            Some(_) if found.site.made => {
                oracle.no_memory(inst, found.program, found.lane, address)
            }
            // What is outside as well is said to be that.
            Some(size) if !address.is_multiple_of(size as u64) => {
                oracle.misaligned(inst, found.program, found.lane, address, arg)
            }
            Some(_) => oracle.access(inst, found.program, found.lane, address, arg),
        }
        .into())
    }
}

fn memory(args: &[Arg], extent: Extent) -> Range<usize> {
    match args.get(extent.arg) {
        Some(Arg::Tensor(t)) if t.writable || !extent.write => t.storage.clone(),
        _ => 0..0,
    }
}
