//! What a kernel says to whoever debugs it: printed values, assertions, promises that do not hold.

use crate::engine::read_image;
use crate::fault::{Fault, Site};
use crate::tile::{Tile, stored};
use naiad_diag::Id;
use naiad_ir::scalar::show;
use naiad_ir::{Elem, Scalar, Shape, Type};

/// One `print` of one program.
pub struct Printed<'a> {
    pub kernel: &'a str,
    pub program: [u32; 3],
    /// The user's text.
    pub prefix: &'a str,
    /// Values are wanted in hexadecimal.
    pub hex: bool,
    pub operands: &'a [Operand<'a>],
}

/// A value to be printed.
pub struct Operand<'a> {
    pub ty: Type,
    lanes: Lanes<'a>,
}

enum Lanes<'a> {
    Tile(&'a Tile),
    Images(&'a [u64]),
}

impl<'a> Operand<'a> {
    pub(crate) fn new(ty: Type, tile: &'a Tile) -> Operand<'a> {
        Operand { ty, lanes: Lanes::Tile(tile) }
    }

    /// Of the lanes' bits in row-major order.
    pub(crate) fn of_images(ty: Type, images: &'a [u64]) -> Operand<'a> {
        Operand { ty, lanes: Lanes::Images(images) }
    }

    /// The bits of each lane in row-major order, zero-extended; of a pointer its address.
    pub fn images(&self) -> Vec<u64> {
        match self.lanes {
            Lanes::Tile(tile) => images(tile, stored(self.ty.elem), &self.ty.shape),
            Lanes::Images(images) => images.to_vec(),
        }
    }
}

fn images(tile: &Tile, ty: Scalar, shape: &Shape) -> Vec<u64> {
    let (n, size) = (shape.numel(), ty.size());
    if let Some(image) = tile.uniform() {
        return vec![image; n];
    }
    let dense = tile.dense(ty, shape);
    // SAFETY: the tile has all lanes.
    (0..n).map(|i| unsafe { read_image(dense.at(size).add(i * size), size) }).collect()
}

/// Lanes in which a condition does not hold.
pub struct Failed {
    pub shape: Shape,
    /// The first one, in row-major order.
    pub lane: usize,
    pub count: usize,
}

/// The lanes whose mask is true and whose condition is not; none if there are none.
pub fn failing(cond: &Tile, mask: Option<&Tile>, shape: &Shape) -> Option<Failed> {
    if cond.uniform().is_some_and(|c| c != 0) || mask.and_then(Tile::uniform) == Some(0) {
        return None;
    }
    let n = shape.numel();
    let cond = cond.dense(Scalar::I1, shape);
    let mask = mask.map(|m| m.dense(Scalar::I1, shape));
    // SAFETY: both have all lanes, of one byte each.
    let lane = |i: usize| unsafe {
        *cond.at(1).add(i) == 0 && mask.as_ref().is_none_or(|m| *m.at(1).add(i) != 0)
    };
    let mut failing = (0..n).filter(|&i| lane(i));
    let first = failing.next()?;
    Some(Failed { shape: *shape, lane: first, count: 1 + failing.count() })
}

/// The bits of a lane.
pub fn image(tile: &Tile, ty: Type, lane: usize) -> u64 {
    images(tile, stored(ty.elem), &ty.shape).get(lane).copied().unwrap_or(0)
}

/// The fault of an assertion; `values` are named, and are the bits of the first lane.
pub fn assertion(
    site: &Site<'_>,
    text: &str,
    failed: &Failed,
    values: &[(&str, Elem, u64)],
) -> Fault {
    let colon = if text.is_empty() { "" } else { ": " };
    let message = format!("kernel `{}`: device-side assertion failed{colon}{text}", site.func.name);
    let mut report = site.at(Id::DeviceAssert, message, &failed.shape, failed.lane);
    if !values.is_empty() {
        let value = |&(name, elem, image): &(&str, Elem, u64)| {
            format!("`{name}` is {}", element(elem, image))
        };
        let all: Vec<String> = values.iter().map(value).collect();
        report = report.note(format!("there {}", all.join(", ")));
    }
    Box::new(match how_many(failed) {
        Some(note) => report.note(note),
        None => report,
    })
}

pub fn false_assumption(site: &Site<'_>, failed: &Failed) -> Fault {
    let message = format!("kernel `{}`: what `tl.assume` promises does not hold", site.func.name);
    let mut report = site.at(Id::FalseAssume, message, &failed.shape, failed.lane);
    report.notes.extend(how_many(failed));
    Box::new(
        report.help(
            "compilers build on the promise, so that a kernel may do anything where it is false",
        ),
    )
}

fn how_many(failed: &Failed) -> Option<String> {
    let n = failed.shape.numel();
    let verb = if failed.count == 1 { "fails" } else { "fail" };
    (n > 1).then(|| format!("{} of {n} lanes {verb}", failed.count))
}

fn element(elem: Elem, image: u64) -> String {
    match elem {
        Elem::Scalar(ty) => show(ty, image),
        Elem::Pointer(_) => format!("{image:#x}"),
    }
}
