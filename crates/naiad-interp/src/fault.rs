//! Faults of a kernel, from where they are found to the message about them.

use crate::args::{Arg, TensorArg};
use naiad_diag::{Diagnostic, Id};
use naiad_ir::tile::{Tile as Dialect, TileOp};
use naiad_ir::{Function, Inst, Shape};

/// What a program did wrong, before it is told where.
#[derive(Clone, Debug)]
pub struct Fault {
    pub kind: FaultKind,
    /// The lane of the tile that was accessed.
    pub lane: usize,
    pub shape: Shape,
    pub address: usize,
    /// The argument that the pointer came from, where one is known.
    pub arg: Option<u32>,
    /// Bytes of the access.
    pub size: usize,
    pub writes: bool,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum FaultKind {
    OutOfBounds,
    OutsideView,
    ReadOnly,
    Misaligned,
}

impl Fault {
    pub fn report(&self, func: &Function<Dialect>, args: &[Arg], inst: Inst, program: [u32; 3]) -> Diagnostic {
        let tensor = self.arg.and_then(|i| match args.get(i as usize) {
            Some(Arg::Tensor(t)) => Some(t),
            _ => None,
        });
        let verb = if self.writes { "writes" } else { "reads" };
        let name = tensor.map_or("memory".to_string(), |t| format!("`{}`", t.name));
        let lane = lane_index(self.shape, self.lane);
        let [x, y, z] = program;
        let who = if self.shape.is_scalar() { format!("program ({x}, {y}, {z})") } else { format!("lane {lane} of program ({x}, {y}, {z})") };
        let (id, message) = match self.kind {
            FaultKind::OutOfBounds if tensor.is_none() => (Id::OutOfBounds, format!("{verb} an address that belongs to no argument")),
            FaultKind::OutOfBounds => (Id::OutOfBounds, format!("{verb} {name} out of bounds")),
            FaultKind::OutsideView => (Id::OutsideView, format!("{verb} {name} outside its view, though inside its storage")),
            FaultKind::ReadOnly => (Id::OutOfBounds, format!("writes {name}, which is read-only")),
            FaultKind::Misaligned => (Id::Misaligned, format!("an atomic access to {name} is not aligned to its size")),
        };
        let op = match func.op(inst) {
            TileOp::Load { .. } => "this load",
            TileOp::Store { .. } => "this store",
            _ => "this atomic",
        };
        let message = format!("kernel `{}` {message}", func.name);
        let mut d = Diagnostic::new(id, message).primary_at(&func.places, func.loc(inst), format!("{op}, {who}"));
        match tensor {
            Some(t) => d = d.note(describe(t, self.address, self.size)),
            None => d = d.note(format!("the address is {:#x}", self.address)),
        }
        match self.kind {
            FaultKind::OutOfBounds | FaultKind::OutsideView if tensor.is_some() => {
                let masked = matches!(func.op(inst), TileOp::Load { mask: Some(_), .. } | TileOp::Store { mask: Some(_), .. } | TileOp::AtomicRmw { mask: Some(_), .. });
                d.help(if masked {
                    "the mask is true in this lane: compare the index of each axis with the extent of that axis, not with a stride"
                } else {
                    "there is no mask: give one that is true only for indices inside the tensor, such as `mask=offsets < n`"
                })
            }
            FaultKind::OutOfBounds => d.help("the pointer was made from an integer or from no argument: kernels reach only the memory of their arguments"),
            FaultKind::ReadOnly => d.help("pass an array that may be written"),
            _ => d,
        }
    }
}

/// A lane by its index along each axis.
fn lane_index(shape: Shape, lane: usize) -> String {
    let index: Vec<String> = shape.strides().zip(shape.dims()).map(|(s, d)| (lane / s % d).to_string()).collect();
    match index.as_slice() {
        [one] => one.clone(),
        several => format!("[{}]", several.join(", ")),
    }
}

fn describe(t: &TensorArg, address: usize, size: usize) -> String {
    let bytes = address as i128 - t.address as i128;
    let element = bytes.div_euclid(size as i128);
    let (first, last) = (t.storage.start as i128 - t.address as i128, t.storage.end as i128 - t.address as i128);
    let mut text = format!("element {element} of `{}`", t.name);
    if bytes.rem_euclid(size as i128) != 0 {
        text += &format!(" (byte {bytes})");
    }
    if let Some(view) = &t.view {
        let dims: Vec<String> = view.shape.iter().map(|d| d.to_string()).collect();
        let strides: Vec<String> = view.strides.iter().map(|s| s.to_string()).collect();
        text += &format!(", whose shape is ({}) and strides ({})", dims.join(", "), strides.join(", "));
    }
    let (lo, hi) = (first.div_euclid(size as i128), last.div_euclid(size as i128));
    text + &format!("; its storage holds elements {lo} to {}", hi - 1)
}
