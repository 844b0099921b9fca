//! For which arguments a loop runs once.
//!
//! Kernels that take rows of any length pass over them in tiles, and most launches of them have rows that
//! fit one tile. There each loop is its body: what two of them load is loaded once, and nothing is
//! carried. Which launches those are is a matter of a few integers:
//!
//! ```text
//!   for start in range(0, n, 1024)                  once for n in 1..=1024
//!   for i in range(0, (n + 1023) // 1024)           the same
//! ```
//!
//! Nothing rests on what is found here: it says what is worth asking of a launch. That the loop runs
//! once then follows from the argument's interval, by [`Ranges::rounds`].

use crate::canonical::uniform_constant;
use crate::canonicalize;
use crate::interval::Interval;
use crate::ranges::{Inputs, Param, Ranges};
use crate::structure::{Structured, signed};
use naiad_ir::scalar::BinaryFn;
use naiad_ir::tile::{Tile, TileOp};
use naiad_ir::{Function, Inst, Scalar, Value};

/// No body of more ops is worth a second variant of the kernel.
const OPS: usize = 256;

/// So many arguments are asked at most: each may double a kernel's variants.
const ASKED: usize = 2;

/// For each parameter the numbers for which loops that it bounds run once, where a kernel gains by it.
///
/// These are loops of the kernel itself, in none and around none, that load and multiply no matrices: a
/// loop over products is of many rounds where its time matters.
pub fn once(func: &Function<Tile>) -> Vec<Option<Interval>> {
    let mut asked = vec![None; func.params().len()];
    if !func.insts(func.entry()).iter().any(|&inst| gains(func, inst)) {
        return asked;
    }
    let mut func = func.clone();
    canonicalize(&mut func);
    let loops: Vec<Inst> =
        func.insts(func.entry()).iter().copied().filter(|&inst| gains(&func, inst)).collect();
    for &inst in &loops {
        let Some((param, numbers)) = condition(&func, inst) else { continue };
        let both = asked[param].map_or(Some(numbers), |other| numbers.meet(other));
        let more = asked.iter().flatten().count() < ASKED || asked[param].is_some();
        if more && both.is_some() {
            asked[param] = both;
        }
    }
    // Of no use is what the ranges do not follow, as where a sum may wrap.
    let known = |&range: &Option<Interval>| Param { range, divisible: None };
    let inputs = Inputs { grid: None, params: asked.iter().map(known).collect() };
    let ranges = Ranges::new(&func, &inputs);
    let runs_once = |&inst: &Inst| ranges.rounds(&func, inst) == Some(Interval::point(1));
    let mut of_use = vec![false; asked.len()];
    for inst in loops.iter().filter(|inst| runs_once(inst)) {
        if let Some((param, _)) = condition(&func, *inst) {
            of_use[param] = true;
        }
    }
    asked.into_iter().zip(of_use).map(|(numbers, of_use)| numbers.filter(|_| of_use)).collect()
}

fn gains(func: &Function<Tile>, inst: Inst) -> bool {
    let &TileOp::For { body, .. } = func.op(inst) else { return false };
    let (mut ops, mut loads, mut fits) = (0, false, true);
    func.walk_block(body, &mut |inst| {
        use TileOp::{Dot, For, Load, While};
        ops += 1;
        loads |= matches!(func.op(inst), Load { .. });
        fits &= !matches!(func.op(inst), Dot { .. } | For { .. } | While { .. });
    });
    loads && fits && ops <= OPS
}

/// The parameter whose numbers decide that a loop runs once, and those numbers.
fn condition(func: &Function<Tile>, inst: Inst) -> Option<(usize, Interval)> {
    let [lower, upper, step] = Tile::bounds(func.op(inst))?;
    let number = |v: Value| Tile::constant(func, v).and_then(signed);
    let (from, by) = (number(lower)?, number(step).filter(|&by| by > 0)?);
    before(func, upper, Interval::new(from + 1, from + by))
}

/// The parameter that a scalar is made from, and its numbers that make it one of these.
fn before(func: &Function<Tile>, value: Value, numbers: Interval) -> Option<(usize, Interval)> {
    if let Some(i) = func.params().iter().position(|&p| p == value) {
        let ty = func.ty(value).elem.scalar().filter(|s| s.is_int())?;
        // Within 64 bits, so that a launch compares them as they come.
        let fits = Interval::of_type(ty).meet(Interval::of_type(Scalar::I64))?;
        return Some((i, numbers.meet(fits)?));
    }
    match *func.defining_op(value)? {
        TileOp::Cast { src, .. } | TileOp::Hint { src, .. } => before(func, src, numbers),
        TileOp::Binary { f, a, b } => {
            let c = uniform_constant(func, b)?.as_int()?;
            let Interval { lo, hi } = numbers;
            let numbers = match f {
                BinaryFn::Add => numbers - Interval::point(c),
                BinaryFn::Sub => numbers + Interval::point(c),
                BinaryFn::Idiv if c > 0 && lo > 0 => Interval::new(lo * c, hi * c + c - 1),
                BinaryFn::Shr if (0..64).contains(&c) && lo > 0 => {
                    Interval::new(lo << c, (hi << c) + (1 << c) - 1)
                }
                BinaryFn::Mul if c > 0 && lo > 0 && (lo + c - 1) / c <= hi / c => {
                    Interval::new((lo + c - 1) / c, hi / c)
                }
                _ => return None,
            };
            before(func, a, numbers)
        }
        _ => None,
    }
}
