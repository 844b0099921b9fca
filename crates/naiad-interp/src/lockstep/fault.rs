//! What a run ends with when something is wrong.

use naiad_diag::{Diagnostic, Id};
use naiad_ir::thread::Thread;
use naiad_ir::{Function, Inst, OpInfo};

/// Kinds of what can be wrong.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum FaultKind {
    /// An access outside the arguments' memory.
    OutOfBounds,
    /// A write to memory that may only be read.
    ReadOnly,
    /// An address that is no multiple of the bytes that are accessed at once.
    Misaligned,
    /// An access outside the block's shared memory.
    SharedRange,
    /// A read of shared memory that the block never wrote.
    SharedUnwritten,
    /// Two threads use the same shared memory, one of them writes, and nothing orders them.
    SharedRace,
    /// Shared memory is used that an asynchronous copy may still write, or memory written that one reads.
    InFlight,
    /// Some threads of a block or warp do not come to an op for all of them.
    Divergence,
    /// A thread of the warp is named that there cannot be.
    BadLane,
    /// Threads have different values of what is claimed to be uniform.
    FalseClaim,
    /// An element is printed twice, or never.
    Print,
    /// A `trap`.
    Trap,
    /// A loop that never ends: by itself, or since it waits for another block.
    Stuck,
    /// The run was stopped from outside.
    Interrupted,
}

/// Something wrong, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    pub kind: FaultKind,
    /// The op that came upon it.
    pub inst: Inst,
    /// The other op of a race, or the copy in flight.
    pub other: Option<Inst>,
    pub block: [u32; 3],
    pub thread: Option<usize>,
    /// What happens, without who does it.
    pub what: String,
}

impl Fault {
    pub fn diagnostic(&self, func: &Function<Thread>) -> Diagnostic {
        let id = match self.kind {
            FaultKind::OutOfBounds | FaultKind::ReadOnly => Id::OutOfBounds,
            FaultKind::Misaligned => Id::Misaligned,
            FaultKind::Trap => Id::DeviceAssert,
            FaultKind::Stuck => Id::Deadlock,
            FaultKind::Interrupted => Id::Interrupted,
            FaultKind::SharedRange
            | FaultKind::SharedUnwritten
            | FaultKind::SharedRace
            | FaultKind::InFlight
            | FaultKind::Divergence
            | FaultKind::FalseClaim
            | FaultKind::Print
            | FaultKind::BadLane => Id::Internal,
        };
        let op = func.op(self.inst).name();
        let message = format!("kernel `{}`: `{op}` {}", func.name, self.what);
        let [x, y, z] = self.block;
        let place = match self.thread {
            Some(thread) => format!("in thread {thread} of block ({x}, {y}, {z})"),
            None => format!("in block ({x}, {y}, {z})"),
        };
        let mut report = Diagnostic::new(id, message);
        report.severity = naiad_diag::Severity::Error;
        let mut report = report.primary_at(&func.places, func.loc(self.inst), place.clone());
        if report.labels.is_empty() {
            report = report.note(place);
        }
        let Some(other) = self.other else { return report };
        let name = func.op(other).name();
        match func.places.chain(func.loc(other)).into_iter().next() {
            Some(place) => report.secondary(place, format!("the other is this `{name}`")),
            None => report.note(format!("the other is a `{name}`")),
        }
    }
}
