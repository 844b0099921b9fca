//! Strides where widths are meant, and outputs that are taken for contiguous.
//!
//! Which numbers are strides is known by their names alone: types do not tell.

use super::Lint;
use naiad_diag::Id;
use naiad_ir::scalar::{BinaryFn, Predicate};
use naiad_ir::tile::{Tile, TileOp};
use naiad_ir::{Function, Inst, OpInfo, Value};

fn is_stride(name: &str) -> bool {
    name.to_lowercase().contains("stride")
}

pub fn check(lint: &mut Lint<'_>) {
    let func = lint.func;
    let made = made_of_lanes(func);
    let (mut compares, mut stores, mut loads) = (Vec::new(), Vec::new(), Vec::new());
    func.walk(&mut |inst| match *func.op(inst) {
        TileOp::Compare { p: Predicate::Lt, a, b } => compares.push((inst, a, b)),
        TileOp::Compare { p: Predicate::Gt, a, b } => compares.push((inst, b, a)),
        TileOp::Store { ptr, .. } => stores.push((inst, ptr)),
        TileOp::Load { ptr, .. } => loads.push((inst, ptr)),
        _ => {}
    });
    for (inst, index, limit) in compares {
        if made[index.index()] && !func.ty(index).is_scalar() {
            bound(lint, inst, limit);
        }
    }
    // Strides are this kernel's way if at least two tensors have some, and no input has rows without.
    let all: Vec<(Inst, Address)> =
        loads.iter().map(|&(i, ptr)| (i, Address::new(lint, &made, ptr))).collect();
    if all.iter().any(|(_, address)| !address.strided && address.width.is_some()) {
        return;
    }
    let outputs = stores.iter().map(|&(i, ptr)| (i, Address::new(lint, &made, ptr)));
    let mut strided: Vec<(Inst, Option<usize>)> = Vec::new();
    for (inst, address) in all.into_iter().chain(outputs).filter(|(_, a)| a.strided) {
        if strided.iter().all(|(_, base)| *base != address.base) {
            strided.push((inst, address.base));
        }
    }
    if let [(first, _), _, ..] = strided[..] {
        for (inst, ptr) in stores {
            let address = Address::new(lint, &made, ptr);
            output(lint, inst, address, first);
        }
    }
}

/// `cols < stride`, where the width is meant.
fn bound(lint: &mut Lint<'_>, inst: Inst, limit: Value) {
    let func = lint.func;
    let Some(param) = plain_param(lint, limit).filter(|&i| is_stride(&func.param_names[i])) else {
        return;
    };
    let name = func.param_names[param].clone();
    let message = format!("kernel `{}` compares lanes with the stride `{name}`", func.name);
    let d = lint.at(inst, Id::StrideBound, message, "a stride counts the padding between rows too");
    let d = d.note(
        "where rows are padded, lanes from the width up to the stride are outside the tensor",
    );
    lint.found(d.help("compare with the number of columns"));
}

/// Of each value whether lanes differ by their numbers.
fn made_of_lanes(func: &Function<Tile>) -> Vec<bool> {
    let mut made = vec![false; func.num_values()];
    func.walk(&mut |inst| {
        let op = func.op(inst);
        let mut of_lanes = matches!(op, TileOp::Arange { .. });
        if !matches!(op, TileOp::Load { .. }) {
            op.each_value(&mut |v| of_lanes |= made[v.index()]);
        }
        func.results(inst).iter().for_each(|r| made[r.index()] = of_lanes);
    });
    made
}

/// The parameter that a number is, in whatever type and shape.
fn plain_param(lint: &Lint<'_>, value: Value) -> Option<usize> {
    match lint.func.defining_op(value) {
        None => lint.func.params().iter().position(|&p| p == value),
        Some(
            TileOp::Splat { src, .. } | TileOp::Cast { src, .. } | TileOp::Broadcast { src, .. },
        ) => plain_param(lint, *src),
        Some(_) => None,
    }
}

/// An output that is addressed by widths, where other tensors are by strides.
fn output(lint: &mut Lint<'_>, inst: Inst, address: Address, other: Inst) {
    let func = lint.func;
    let (Some(base), Some(width), false) = (address.base, address.width, address.strided) else {
        return;
    };
    // Strides that are this tensor's by their names are used elsewhere, or are 1.
    let name = func.param_names[base].clone();
    let stem = |name: &str| {
        let lower = name.to_lowercase();
        lower.replace("_ptrs", "").replace("_ptr", "").replace("ptr", "").replace("_pointer", "")
    };
    let own =
        func.param_names.iter().any(|n| is_stride(n) && n.to_lowercase().contains(&stem(&name)));
    if own {
        return;
    }
    let width = &func.param_names[width];
    let message = format!(
        "kernel `{}` addresses `{name}` as if it were contiguous, and other tensors by their strides",
        func.name
    );
    let label = format!("rows are taken to be `{width}` elements apart");
    let d = lint.at(inst, Id::FlatIndex, message, &label);
    let d = lint.also(d, other, "here a stride is used");
    lint.found(
        d.help(format!("pass the strides of `{name}` too, or see that it is always contiguous")),
    );
}

/// What an address is made of.
struct Address {
    base: Option<usize>,
    /// A stride takes part.
    strided: bool,
    /// A parameter that is no stride, by which numbers of lanes are multiplied: of one row for each
    /// program, which is how kernels keep sums of their own, nothing is said.
    width: Option<usize>,
}

impl Address {
    fn new(lint: &Lint<'_>, made: &[bool], ptr: Value) -> Address {
        let func = lint.func;
        let mut out = Address { base: None, strided: false, width: None };
        let mut pending = vec![ptr];
        let mut seen = vec![false; func.num_values()];
        while let Some(v) = pending.pop() {
            if std::mem::replace(&mut seen[v.index()], true) {
                continue;
            }
            let Some(op) = func.defining_op(v) else {
                let param = func.params().iter().position(|&p| p == v);
                if func.ty(v).is_pointer() {
                    out.base = param;
                }
                out.strided |= param.is_some_and(|i| is_stride(&func.param_names[i]));
                continue;
            };
            if let TileOp::Load { .. } = op {
                continue;
            }
            if let &TileOp::Binary { f: BinaryFn::Mul, a, b } = op {
                for (x, y) in [(a, b), (b, a)] {
                    let param = plain_param(lint, x).filter(|&i| !is_stride(&func.param_names[i]));
                    out.width = out.width.or(param.filter(|_| made[y.index()]));
                }
            }
            op.each_value(&mut |v| pending.push(v));
        }
        out
    }
}
