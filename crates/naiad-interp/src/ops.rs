//! What each op without effects computes, on tiles in any form.
//!
//! An op is evaluated at its value's own shape, or *lifted*: in the region of a `reduce`, `scan` or
//! `map` scalars stand for whole tiles, and every op works lane by lane at the shape of those.

use crate::args::Multiply;
use crate::code::{Code, Prepared};
use crate::combine;
use crate::dot;
use crate::engine::{self, In};
use crate::fault::Fault;
use crate::formula;
use crate::mapping;
use crate::memory::Origin;
use crate::shapes;
use crate::sorting;
use crate::tile::{Affine, Tile, stored};
use naiad_diag::{Diagnostic, Id};
use naiad_ir::tile::TileOp;
use naiad_ir::{Inst, Scalar, Shape, Value};
use smallvec::{SmallVec, smallvec};

/// A value: its lanes, and for pointers what they were made from.
#[derive(Clone)]
pub struct Reg {
    pub tile: Tile,
    pub origin: Origin,
}

impl Default for Reg {
    fn default() -> Reg {
        Reg::from(Tile::Uniform(0))
    }
}

impl From<Tile> for Reg {
    fn from(tile: Tile) -> Reg {
        Reg { tile, origin: Origin::Unknown }
    }
}

/// Where operands are.
pub trait Read {
    fn reg(&self, value: Value) -> &Reg;
}

/// What ops need to know besides their operands.
#[derive(Copy, Clone)]
pub struct Env<'a> {
    pub code: &'a Code,
    pub program: [u32; 3],
    pub grid: [u32; 3],
    /// The shape that scalars stand for.
    pub lift: Option<Shape>,
    /// Tiles are always dense.
    pub naive: bool,
    /// See [`crate::LaunchOptions`].
    pub in_order: Option<Multiply>,
    /// Whether the launch is to stop.
    pub stopped: &'a dyn Fn() -> bool,
}

pub type Results = SmallVec<[Reg; 1]>;

impl Env<'_> {
    pub fn shape(&self, value: Value) -> Shape {
        self.lift.unwrap_or_else(|| self.code.func.ty(value).shape)
    }
}

/// Computes an op that touches no memory and has no control flow in it; `results` is empty and gets
/// what it gives. (A value is some 60 bytes, so each move that can be left out counts.)
pub fn evaluate<R: Read>(
    env: &Env<'_>,
    inst: Inst,
    regs: &R,
    results: &mut Results,
) -> Result<(), Fault> {
    let code = env.code;
    let func = &*code.func;
    let op = func.op(inst);
    let tile = |v: Value| &regs.reg(v).tile;
    let ty = |v: Value| stored(func.ty(v).elem);
    let shape = |v: Value| env.shape(v);
    // Ops with one result have its shape here; the others ask for what they need.
    let out = func.results(inst).first().map_or(Shape::SCALAR, |&v| env.shape(v));
    let operand = |v: Value| In { tile: tile(v), ty: ty(v) };
    let looped = |ins: &[In<'_>], ty: Scalar| match code.prepared(inst) {
        Prepared::Loop(f) => Ok(engine::map(*f, ins, ty, &out)),
        _ => Err(internal(op)),
    };
    let result: Reg = match op {
        TileOp::Const { value } => Tile::Uniform(value.bits).into(),
        TileOp::ProgramId { axis } => Tile::Uniform(u64::from(env.program[*axis as usize])).into(),
        TileOp::NumPrograms { axis } => Tile::Uniform(u64::from(env.grid[*axis as usize])).into(),
        TileOp::Arange { start, end } => {
            let range = Affine { base: *start, steps: smallvec![i64::from(end - start > 1)] };
            // A range may pass 2^31, and wraps there.
            let lanes = range.clone().tile(Scalar::I32, &out).unwrap_or(Tile::Affine(range));
            match lanes {
                Tile::Affine(ref a) if a.range(&out).1 > Scalar::I32.int_max() => {
                    Tile::Dense(lanes.dense(Scalar::I32, &out)).into()
                }
                lanes => lanes.into(),
            }
        }
        TileOp::Splat { src, .. } => {
            let reg = regs.reg(*src);
            Reg { tile: reg.tile.clone(), origin: reg.origin }
        }
        TileOp::ExpandDims { src, axis } => {
            moved(regs.reg(*src), shapes::expand_dims(tile(*src), &shape(*src), &out, *axis))
        }
        TileOp::Broadcast { src, .. } => {
            moved(regs.reg(*src), shapes::broadcast(tile(*src), &shape(*src), &out))
        }
        TileOp::Reshape { src, .. } => {
            moved(regs.reg(*src), shapes::reshape(tile(*src), ty(*src), &shape(*src), &out))
        }
        TileOp::Permute { src, order } => {
            moved(regs.reg(*src), shapes::permute(tile(*src), &shape(*src), &out, order))
        }
        TileOp::Flip { src, axis } => moved(regs.reg(*src), shapes::flip(tile(*src), &out, *axis)),
        TileOp::Join { a, b } => Reg {
            tile: shapes::join(tile(*a), tile(*b), ty(*a), &shape(*a)),
            origin: common(regs, *a, *b),
        },
        TileOp::Cat { a, b, axis } => Reg {
            tile: shapes::cat(tile(*a), tile(*b), ty(*a), &shape(*a), *axis),
            origin: common(regs, *a, *b),
        },
        TileOp::Split { src } => {
            let half =
                |i| moved(regs.reg(*src), shapes::split(tile(*src), ty(*src), &shape(*src), i));
            results.push(half(0));
            results.push(half(1));
            finish(env, inst, results);
            return Ok(());
        }
        TileOp::Unary { f, x } => match formula::unary(*f, ty(*x), tile(*x), &out) {
            Some(tile) => tile.into(),
            None => looped(&[operand(*x)], ty(*x))?.into(),
        },
        TileOp::Binary { f, a, b } => match formula::binary(*f, ty(*a), tile(*a), tile(*b), &out) {
            Some(tile) => tile.into(),
            None => looped(&[operand(*a), operand(*b)], ty(*a))?.into(),
        },
        TileOp::Ternary { f: _, a, b, c } => {
            looped(&[operand(*a), operand(*b), operand(*c)], ty(*a))?.into()
        }
        TileOp::Compare { p, a, b } => match formula::compare(*p, ty(*a), tile(*a), tile(*b), &out)
        {
            Some(tile) => tile.into(),
            None => looped(&[operand(*a), operand(*b)], Scalar::I1)?.into(),
        },
        TileOp::Select { cond, yes, no } => match tile(*cond).uniform() {
            Some(0) => regs.reg(*no).clone(),
            Some(_) => regs.reg(*yes).clone(),
            None => {
                // Lanes are moved as the bits that they are.
                let bits = bits_type(ty(*yes));
                let arm = |v: Value| In { tile: tile(v), ty: bits };
                let lanes = looped(&[operand(*cond), arm(*yes), arm(*no)], bits)?;
                Reg { tile: lanes, origin: common(regs, *yes, *no) }
            }
        },
        TileOp::Cast { src, to, .. } => match formula::cast(ty(*src), *to, tile(*src), &out) {
            Some(tile) => tile.into(),
            None => match code.prepared(inst) {
                Prepared::Cast(how) => engine::cast(*how, operand(*src), *to, &out).into(),
                _ => return Err(internal(op)),
            },
        },
        TileOp::Bitcast { src, to } => {
            moved(regs.reg(*src), reinterpret(tile(*src), ty(*src), stored(*to), &out))
        }
        TileOp::PtrAdd { ptr, offset } => {
            let origin = regs.reg(*ptr).origin;
            let size = func.ty(*ptr).elem.pointer().map_or(1, |p| p.pointee.size());
            let moved = formula::pointer_add(tile(*ptr), tile(*offset), ty(*offset), size, &out);
            match (moved, code.prepared(inst)) {
                (Some(tile), _) => Reg { tile, origin },
                (None, Prepared::Pointer { widen, add }) => {
                    let offsets = match widen {
                        Some(f) => engine::map(*f, &[operand(*offset)], Scalar::I64, &out),
                        None => tile(*offset).clone(),
                    };
                    let size = Tile::Uniform(size as u64);
                    let ins =
                        [tile(*ptr), &offsets, &size].map(|tile| In { tile, ty: Scalar::I64 });
                    Reg { tile: engine::map(*add, &ins, Scalar::I64, &out), origin }
                }
                (None, _) => return Err(internal(op)),
            }
        }
        TileOp::Dot { a, b, acc, out: to, precision: _ } => {
            let (a, b) = (
                dot::Matrix::new(tile(*a), ty(*a), shape(*a)),
                dot::Matrix::new(tile(*b), ty(*b), shape(*b)),
            );
            dot::dot(&a, &b, acc.map(tile), *to, &out, env.in_order).into()
        }
        TileOp::Reduce { inputs, axis, body } | TileOp::Scan { inputs, axis, body, .. } => {
            let &Prepared::Combine(how) = code.prepared(inst) else { return Err(internal(op)) };
            let Some(&first) = inputs.first() else { return Err(internal(op)) };
            let ins: SmallVec<[Reg; 2]> = inputs.iter().map(|&v| regs.reg(v).clone()).collect();
            let types: SmallVec<[Scalar; 2]> = inputs.iter().map(|&v| ty(v)).collect();
            let job = combine::Job {
                env: Env { lift: None, ..*env },
                body: *body,
                types,
                shape: shape(first),
                axis: *axis,
            };
            *results = match (op, how) {
                (TileOp::Scan { reverse, .. }, how) => combine::scan(&job, how, ins, *reverse)?,
                (_, how) => combine::reduce(&job, how, ins)?,
            };
            finish(env, inst, results);
            return Ok(());
        }
        TileOp::Map { inputs, pack, body } => {
            let &Prepared::Combine(how) = code.prepared(inst) else { return Err(internal(op)) };
            let Some(&first) = inputs.first() else { return Err(internal(op)) };
            let ins: SmallVec<[Reg; 2]> = inputs.iter().map(|&v| regs.reg(v).clone()).collect();
            let job = mapping::Job {
                env: *env,
                body: *body,
                pack: *pack,
                types: inputs.iter().map(|&v| ty(v)).collect(),
                outs: func.results(inst).iter().map(|&v| ty(v)).collect(),
                shape: shape(first),
            };
            *results = mapping::map(&job, how, &ins)?;
            finish(env, inst, results);
            return Ok(());
        }
        TileOp::Sort { src, descending } | TileOp::TopK { src, descending, .. } => {
            sorting::sort(tile(*src), ty(*src), &shape(*src), &out, *descending).into()
        }
        TileOp::Gather { src, index, axis } => {
            let (from, index, wide) = (shape(*src), operand(*index), code.wide);
            moved(
                regs.reg(*src),
                sorting::gather(tile(*src), ty(*src), &from, index, &out, *axis, wide),
            )
        }
        TileOp::Histogram { src, mask, bins } => {
            let (mask, bins) = (mask.map(tile), *bins as usize);
            sorting::histogram(operand(*src), mask, &shape(*src), bins, code.wide).into()
        }
        TileOp::Hint { src, .. } => regs.reg(*src).clone(),
        TileOp::Load { .. }
        | TileOp::Store { .. }
        | TileOp::AtomicRmw { .. }
        | TileOp::AtomicCas { .. }
        | TileOp::AtomicLoad { .. }
        | TileOp::AtomicStore { .. }
        | TileOp::Print { .. }
        | TileOp::Assert { .. }
        | TileOp::Machine { .. }
        | TileOp::InlineAsm { .. }
        | TileOp::Barrier {}
        | TileOp::Assume { .. }
        | TileOp::For { .. }
        | TileOp::While { .. }
        | TileOp::If { .. }
        | TileOp::Yield { .. }
        | TileOp::Condition { .. }
        | TileOp::Return {} => return Err(internal(op)),
    };
    results.push(result);
    finish(env, inst, results);
    Ok(())
}

/// A scalar is always an image: where it was taken out of a tile, the tile's other lanes may lie
/// around it. In naive mode every tile is written out at once.
fn finish(env: &Env<'_>, inst: Inst, results: &mut Results) {
    for (reg, &value) in results.iter_mut().zip(env.code.func.results(inst)) {
        if reg.tile.uniform().is_some() && !env.naive {
            continue;
        }
        let (shape, ty) = (env.shape(value), env.code.scalar(value));
        if shape.is_scalar() {
            reg.tile = combine::unless_scalar(reg.tile.clone(), ty, &shape);
        } else if env.naive {
            reg.tile = Tile::Dense(reg.tile.dense(ty, &shape));
        }
    }
}

fn moved(from: &Reg, tile: Tile) -> Reg {
    Reg { tile, origin: from.origin }
}

/// What pointers chosen from two tiles were made from.
fn common<R: Read>(regs: &R, a: Value, b: Value) -> Origin {
    let (x, y) = (regs.reg(a).origin, regs.reg(b).origin);
    if x == y { x } else { Origin::Unknown }
}

pub fn bits_type(ty: Scalar) -> Scalar {
    match ty.size() {
        1 => Scalar::U8,
        2 => Scalar::U16,
        4 => Scalar::U32,
        _ => Scalar::U64,
    }
}

/// Lanes that are chosen by a mask, where the op itself has no loop for it.
pub fn choose(env: &Env<'_>, cond: &Tile, yes: &Reg, no: &Reg, ty: Scalar, shape: &Shape) -> Reg {
    let bits = bits_type(ty);
    let ins = [
        In { tile: cond, ty: Scalar::I1 },
        In { tile: &yes.tile, ty: bits },
        In { tile: &no.tile, ty: bits },
    ];
    let f = crate::loops::select(ty.size(), env.code.wide);
    let origin = if yes.origin == no.origin { yes.origin } else { Origin::Unknown };
    Reg { tile: engine::map(f, &ins, bits, shape), origin }
}

/// The same bits as another type of the same width.
fn reinterpret(x: &Tile, from: Scalar, to: Scalar, shape: &Shape) -> Tile {
    match x {
        Tile::Affine(a) => {
            let formula = if to.is_int() { a.clone().tile(to, shape) } else { None };
            formula.unwrap_or_else(|| Tile::Dense(x.dense(from, shape)))
        }
        Tile::Uniform(_) | Tile::Rect(_) | Tile::Dense(_) => x.clone(),
    }
}

/// An op where it cannot stand: the verifier lets none through.
pub fn internal(op: &TileOp) -> Fault {
    use naiad_ir::OpInfo;
    Box::new(
        Diagnostic::new(Id::Internal, format!("`{}` cannot be executed here", op.name()))
            .help("this is a bug of Naiad; please report it with the kernel"),
    )
}
