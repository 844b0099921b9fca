//! How findings about memory and about the order of programs are said.

use super::checker;
use super::regions::Region;
use super::report::{Run, also, at, tensor_name};
use crate::access::Target;
use crate::exec::Shared;
use crate::fault::{Lane, Site, index, program};
use crate::memory::Tensor;
use naiad_diag::{Diagnostic, Id};
use naiad_ir::{Inst, Scalar, Shape};

pub fn uninitialized(site: &Site<'_>, t: &Tensor<'_>, lane: &Lane<'_>) -> Diagnostic {
    let (bytes, size) = (lane.address as i128 - t.address as i128, lane.elem.size() as i128);
    let message = format!(
        "kernel `{}` reads element {} of `{}`, which nobody has written",
        site.func.name,
        bytes / size,
        t.name
    );
    site.at(Id::UninitializedRead, message, lane.shape, lane.lane)
        .note("the memory was made uninitialized, and still is what it was made as")
        .help(format!("fill `{}` before the launch, as with `zeros` in place of `empty`", t.name))
}

pub fn unwritten(
    site: &Site<'_>,
    t: &Tensor<'_>,
    n: usize,
    left: usize,
    first: &[usize],
) -> Diagnostic {
    let first = match first {
        [i] => i.to_string(),
        all => format!("({})", all.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")),
    };
    let message = format!(
        "kernel `{}`: {left} of {n} elements of `{}` were never written (first: {first})",
        site.func.name, t.name
    );
    at(site, Id::UnwrittenOutput, message, "the launch stores to it here".into())
        .note(format!("`{}` was made uninitialized, and the rest of it still is", t.name))
        .help("see that the grid has enough programs, and that no mask is too narrow")
}

/// An element by the name of its tensor, as `x[5]`.
fn element(
    shared: &Shared<'_>,
    origin: crate::memory::Origin,
    address: usize,
    elem: Scalar,
) -> String {
    let at = address as i128;
    let size = elem.size() as i128;
    let tensor =
        shared.memory.tensor(origin).or_else(|| shared.memory.find(origin, at, at + size, false));
    let Some(t) = tensor else { return format!("address {address:#x}") };
    let bytes = at - t.address as i128;
    match bytes % size {
        0 => format!("`{}[{}]`", t.name, bytes / size),
        _ => format!("byte {bytes} of `{}`", t.name),
    }
}

fn coordinates(shared: &Shared<'_>, number: u32) -> String {
    let [x, y, _] = shared.grid.map(u64::from);
    let n = u64::from(number);
    program([n % x, n / x % y, n / x / y].map(|c| c as u32))
}

const ORDER_HELP: &str =
    "let every element be one program's, or combine them by `tl.atomic_add` and its kin";

pub fn both_write(
    exec: Run<'_, '_>,
    site: &Site<'_>,
    id: Id,
    t: &Target<'_>,
    address: usize,
    other: u32,
) -> Diagnostic {
    let shared = exec.shared;
    let mut both =
        [(u64::from(other), coordinates(shared, other)), (site.number, program(site.program))];
    both.sort();
    let name = element(shared, t.origin, address, t.elem);
    let [a, b] = both.map(|b| b.1);
    let same = if id == Id::SameValueRace { " the same value to" } else { "" };
    let message = format!(
        "kernel `{}`: {a} and {b} both write{same} {name}, and nothing orders them",
        site.func.name
    );
    at(site, id, message, "written here".into()).help(ORDER_HELP)
}

#[allow(clippy::too_many_arguments, reason = "a crossing has as many parts")]
pub fn crossing(
    shared: &Shared<'_>,
    site: &Site<'_>,
    id: Id,
    region: &Region,
    elem: Scalar,
    address: usize,
    (writer, reader, others): (u32, u32, bool),
) -> Diagnostic {
    let name = element(shared, crate::memory::Origin::Unknown, address, elem);
    let reads = match others && writer == reader {
        true => "another program".to_string(),
        false => coordinates(shared, reader),
    };
    let ends = match id {
        Id::WeakOrder => "only relaxed atomics or volatile loads order them",
        Id::SameValueRace => {
            "nothing orders them; only that what is written was there before hides it"
        }
        _ => "nothing orders them",
    };
    let message = format!(
        "kernel `{}`: {reads} reads {name}, which {} writes, and {ends}",
        site.func.name,
        coordinates(shared, writer)
    );
    let mut report = at(site, id, message, "read here".into());
    if let Some(&store) = region.stores.first() {
        report = also(report, site, store, "written here");
    }
    match id {
        Id::WeakOrder => report.help("use atomics with `sem=\"acquire\"` and `sem=\"release\"`"),
        _ => report.help("let no program read what another writes in the same launch: write to another tensor, or launch twice"),
    }
}

pub fn weak_order(
    exec: Run<'_, '_>,
    site: &Site<'_>,
    region: &Region,
    t: &Target<'_>,
    first: usize,
    other: u32,
) -> Diagnostic {
    let name = element(exec.shared, t.origin, region.address(first), t.elem);
    let message = format!(
        "kernel `{}`: {} and {} write {name}, and only relaxed atomics or volatile loads order them",
        site.func.name,
        coordinates(exec.shared, other),
        program(site.program)
    );
    at(site, Id::WeakOrder, message, "written here".into())
        .help("use atomics with `sem=\"acquire\"` and `sem=\"release\"`")
}

pub fn narrow_scope(
    exec: Run<'_, '_>,
    site: &Site<'_>,
    t: &Target<'_>,
    address: usize,
    other: u32,
) -> Diagnostic {
    let name = element(exec.shared, t.origin, address, t.elem);
    let message = format!(
        "kernel `{}`: an atomic of scope `cta` orders the threads of one program only, and {name} is also used by {}",
        site.func.name,
        coordinates(exec.shared, other)
    );
    at(site, Id::NarrowScope, message, format!("in {}", program(site.program)))
        .help("leave out `scope=\"cta\"`: the default is the whole GPU")
}

pub fn missing_barrier(
    exec: Run<'_, '_>,
    site: &Site<'_>,
    t: &Target<'_>,
    lane: usize,
    (store, stored_shape, from): (Inst, &Shape, usize),
) -> Diagnostic {
    let name = tensor_name(exec.shared, checker(exec), site.inst);
    let name = name.map_or("memory".to_string(), |n| format!("`{n}`"));
    let message = format!(
        "kernel `{}` reads from {name} what another lane of the program stored, with no barrier between",
        site.func.name
    );
    let report = site.at(Id::MissingBarrier, message, &t.shape, lane);
    also(report, site, store, format!("stored by lane {}", index(stored_shape, from)))
        .note("on a GPU lanes are threads, and a thread's store is not at once seen by the others")
        .help("put `tl.debug_barrier()` between the two")
}

pub fn forgotten(site: &Site<'_>, remembered: usize) -> Diagnostic {
    let message = format!(
        "kernel `{}`: this read was compared with the last {remembered} stores of its program only",
        site.func.name
    );
    at(site, Id::CheckLimit, message, format!("in {}", program(site.program)))
        .note("a barrier may be missing after one of the stores before, since the last barrier")
}

pub fn flat(site: &Site<'_>, t: &Tensor<'_>, shape: &[usize], strides: &[isize]) -> Diagnostic {
    let list = |all: Vec<String>| {
        if all.len() == 1 { format!("({},)", all[0]) } else { format!("({})", all.join(", ")) }
    };
    let shape = list(shape.iter().map(usize::to_string).collect());
    let strides = list(strides.iter().map(isize::to_string).collect());
    let message = format!(
        "kernel `{}` addresses `{}` as if it were contiguous, and it has the strides {strides}",
        site.func.name, t.name
    );
    at(site, Id::FlatIndex, message, "one element of memory after the other".into())
        .note(format!("`{}` has shape {shape}; another tensor of that shape has other strides", t.name))
        .help("pass the strides and compute offsets from them, or make the tensor contiguous before the launch")
}
