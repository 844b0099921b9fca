//! Reductions and scans.
//!
//! A tile is seen as `[outer, n, inner]` with the axis in the middle. A reduction combines its first
//! half with its second until one is left: a tree, so that sums stay accurate, of loops over whole
//! halves, so that they vectorize. A scan whose function is one op runs along the axis; any other
//! doubles its reach in each round. A region that is more than one op is evaluated on all lanes of a
//! round at once, never element by element.

use crate::elementwise::{self, Loop, vectorized};
use crate::slab::{Plain, Slab};
use crate::tile::{Tile, with_storage};
use naiad_ir::scalar::{BinaryFn, BinaryVisitor, Lane, Lanewise};
use naiad_ir::tile::{Tile as Dialect, TileOp};
use naiad_ir::{Block, Function, Scalar, Shape, Value};
use rustc_hash::FxHashMap;

/// The axis of a combination in the middle.
#[derive(Copy, Clone)]
struct View3 {
    outer: usize,
    n: usize,
    inner: usize,
}

fn view(shape: Shape, axis: usize) -> View3 {
    let dims: Vec<usize> = shape.dims().collect();
    View3 {
        outer: dims[..axis].iter().product(),
        n: dims[axis],
        inner: dims[axis + 1..].iter().product(),
    }
}

fn line(count: usize) -> Shape {
    Shape::new(&[count as i64]).unwrap_or(Shape::SCALAR)
}

/// The one op that a region is, if it is one op on its two parameters.
pub fn single(func: &Function<Dialect>, body: Block) -> Option<BinaryFn> {
    let [inst, end] = func.insts(body) else { return None };
    let (TileOp::Binary { f, a, b }, TileOp::Yield { values }) = (func.op(*inst), func.op(*end)) else { return None };
    let [x, y] = func.block_params(body) else { return None };
    let direct = a == x && b == y;
    let swapped = a == y && b == x && f.is_commutative();
    (values.as_slice() == func.results(*inst) && (direct || swapped)).then_some(*f)
}

/// Evaluates a region over scalars on whole tiles, lane by lane: its parameters get `args`.
pub fn lifted(func: &Function<Dialect>, body: Block, args: &[Tile]) -> Result<Vec<Tile>, String> {
    let shape = args.first().map_or(Shape::SCALAR, |t| t.shape);
    let mut env: FxHashMap<Value, Tile> = func.block_params(body).iter().copied().zip(args.iter().cloned()).collect();
    region(func, body, shape, &mut env)
}

fn region(func: &Function<Dialect>, body: Block, shape: Shape, env: &mut FxHashMap<Value, Tile>) -> Result<Vec<Tile>, String> {
    for &inst in func.insts(body) {
        let op = func.op(inst);
        let get = |v: &Value| env[v].clone();
        let result = match op {
            TileOp::Yield { values } => return Ok(values.iter().map(get).collect()),
            TileOp::Const { value } => Tile::uniform(value.ty, shape, value.bits),
            TileOp::Unary { f, x } => elementwise::unary(*f, &env[x]),
            TileOp::Binary { f, a, b } => elementwise::binary(*f, &env[a], &env[b]),
            TileOp::Ternary { f, a, b, c } => elementwise::ternary(*f, &env[a], &env[b], &env[c]),
            TileOp::Compare { p, a, b } => elementwise::compare(*p, &env[a], &env[b]),
            TileOp::Select { cond, yes, no } => elementwise::select(&env[cond], &env[yes], &env[no]),
            TileOp::Cast { src, to, rounding } => crate::cast::cast(&env[src], *to, *rounding),
            TileOp::Bitcast { src, to } => crate::cast::bitcast(&env[src], crate::tile::stored(*to)),
            TileOp::If { cond, then, otherwise } => {
                // Pure on both sides, so both may run and each lane takes its own.
                let cond = get(cond);
                let yes = region(func, *then, shape, env)?;
                let no = region(func, *otherwise, shape, env)?;
                for ((&result, y), n) in func.results(inst).iter().zip(&yes).zip(&no) {
                    env.insert(result, elementwise::select(&cond, y, n));
                }
                continue;
            }
            other => {
                use naiad_ir::OpInfo;
                return Err(format!("`{}` in a combine function", other.name()));
            }
        };
        env.insert(func.results(inst)[0], result);
    }
    Ok(Vec::new())
}

// ---- reduce -----------------------------------------------------------------------------------

struct Halves<'a> {
    x: &'a Slab,
    at: View3,
}

impl BinaryVisitor for Halves<'_> {
    type Out = Slab;
    fn visit<T: Lane>(self, f: impl Lanewise<(T, T), T>) -> Slab {
        let View3 { outer, n, inner } = self.at;
        let source = elementwise::lanes::<T>(self.x, outer * n * inner);
        elementwise::build::<T>(outer * inner, |out| {
            let mut scratch = vec![T::default(); (n * inner / 2).max(1)];
            for (row, out) in source.chunks_exact(n * inner).zip(out.chunks_exact_mut(inner)) {
                vectorized(Tree { row, scratch: &mut scratch, inner, out, f });
            }
        })
    }
}

struct Tree<'a, T, F> {
    row: &'a [T],
    scratch: &'a mut [T],
    inner: usize,
    out: &'a mut [T],
    f: F,
}

impl<T: Lane, F: Lanewise<(T, T), T>> Loop for Tree<'_, T, F> {
    type Out = ();
    #[inline(always)]
    fn run(self) {
        let Tree { row, scratch, inner, out, f } = self;
        if row.len() == inner {
            return out.copy_from_slice(row);
        }
        let mut len = row.len() / 2;
        let (a, b) = row.split_at(len);
        for ((s, &a), &b) in scratch.iter_mut().zip(a).zip(b) {
            *s = f.at((a, b));
        }
        while len > inner {
            len /= 2;
            let (a, b) = scratch.split_at_mut(len);
            for (a, &b) in a.iter_mut().zip(&b[..len]) {
                *a = f.at((*a, b));
            }
        }
        out.copy_from_slice(&scratch[..inner]);
    }
}

pub fn reduce(func: &Function<Dialect>, body: Block, inputs: &[Tile], axis: usize) -> Result<Vec<Tile>, String> {
    let shape = inputs[0].shape;
    let at = view(shape, axis);
    let out = shape.without(axis);
    if let (Some(f), [x]) = (single(func, body), inputs)
        && x.ty.compute_type() == x.ty
        && let Some(slab) = f.dispatch(x.ty, Halves { x: &x.slab(), at })
    {
        return Ok(vec![finished(Tile::dense(x.ty, out, slab))]);
    }
    let mut parts: Vec<Tile> = inputs.to_vec();
    let mut n = at.n;
    while n > 1 {
        n /= 2;
        let mut args = Vec::with_capacity(2 * parts.len());
        for which in [0, 1] {
            args.extend(parts.iter().map(|p| part(p, View3 { n: 2 * n, ..at }, which)));
        }
        parts = lifted(func, body, &args)?;
    }
    Ok(parts.into_iter().map(|p| p.densified_to(out)).collect())
}

/// Scalars are uniform, so that they count as such everywhere.
fn finished(tile: Tile) -> Tile {
    if tile.shape.is_scalar() { Tile::uniform(tile.ty, tile.shape, tile.lane(0)) } else { tile }
}

/// One half along the axis, as a line of lanes.
fn part(x: &Tile, at: View3, which: usize) -> Tile {
    let View3 { outer, n, inner } = at;
    let (run, count) = (n / 2 * inner, outer * n / 2 * inner);
    if let Some(image) = x.as_uniform() {
        return Tile::uniform(x.ty, line(count), image);
    }
    let slab = x.slab();
    let half = with_storage!(x.ty, T => {
        let source = slab.lanes::<T>(2 * count);
        Slab::build::<T>(count, |out| {
            for (o, s) in out.chunks_exact_mut(run).zip(source.chunks_exact(2 * run)) {
                o.copy_from_slice(&s[which * run..(which + 1) * run]);
            }
        })
    });
    Tile::dense(x.ty, line(count), half)
}

// ---- scan -------------------------------------------------------------------------------------

struct Along<'a> {
    x: &'a Slab,
    at: View3,
    reverse: bool,
}

impl BinaryVisitor for Along<'_> {
    type Out = Slab;
    fn visit<T: Lane>(self, f: impl Lanewise<(T, T), T>) -> Slab {
        let View3 { outer, n, inner } = self.at;
        let count = outer * n * inner;
        let source = elementwise::lanes::<T>(self.x, count);
        elementwise::build::<T>(count, |out| {
            out.copy_from_slice(source);
            for block in out.chunks_exact_mut(n * inner) {
                for i in 1..n {
                    // The row before, in the direction of the scan, and this one.
                    let (from, to) = if self.reverse { (n - i, n - 1 - i) } else { (i - 1, i) };
                    for k in 0..inner {
                        let combined = f.at((block[from * inner + k], block[to * inner + k]));
                        block[to * inner + k] = combined;
                    }
                }
            }
        })
    }
}

pub fn scan(func: &Function<Dialect>, body: Block, inputs: &[Tile], axis: usize, reverse: bool) -> Result<Vec<Tile>, String> {
    let shape = inputs[0].shape;
    let at = view(shape, axis);
    if let (Some(f), [x]) = (single(func, body), inputs)
        && x.ty.compute_type() == x.ty
        && let Some(slab) = f.dispatch(x.ty, Along { x: &x.slab(), at, reverse })
    {
        return Ok(vec![Tile::dense(x.ty, shape, slab)]);
    }
    let count = shape.numel();
    let mut parts: Vec<Tile> = inputs.iter().map(|x| Tile { shape: line(count), ..x.clone().densified() }).collect();
    let mut reach = 1;
    while reach < at.n {
        let moved: Vec<Tile> = parts.iter().map(|p| shifted(p, at, reach, reverse)).collect();
        let args: Vec<Tile> = moved.into_iter().chain(parts.iter().cloned()).collect();
        let combined = lifted(func, body, &args)?;
        let reached = reached(at, reach, reverse);
        parts = combined.iter().zip(&parts).map(|(c, p)| elementwise::select(&reached, c, p)).collect();
        reach *= 2;
    }
    Ok(parts.into_iter().map(|p| p.densified_to(shape)).collect())
}

/// The lanes that have another one `reach` before them in the direction of the scan.
fn reached(at: View3, reach: usize, reverse: bool) -> Tile {
    let count = at.outer * at.n * at.inner;
    let slab = Slab::build::<bool>(count, |out| {
        for (lane, o) in out.iter_mut().enumerate() {
            let i = lane / at.inner % at.n;
            *o = if reverse { i + reach < at.n } else { i >= reach };
        }
    });
    Tile::dense(Scalar::I1, line(count), slab)
}

/// Each lane's value moved `reach` further along the axis; where none comes from, its own.
fn shifted(x: &Tile, at: View3, reach: usize, reverse: bool) -> Tile {
    let count = x.numel();
    let slab = x.slab();
    let moved = with_storage!(x.ty, T => {
        let source = slab.lanes::<T>(count);
        Slab::build::<T>(count, |out| shift::<T>(source, out, at, reach, reverse))
    });
    Tile::dense(x.ty, x.shape, moved)
}

fn shift<T: Plain>(source: &[T], out: &mut [T], at: View3, reach: usize, reverse: bool) {
    let (block, by) = (at.n * at.inner, reach * at.inner);
    for (o, s) in out.chunks_exact_mut(block).zip(source.chunks_exact(block)) {
        o.copy_from_slice(s);
        if reverse {
            o[..block - by].copy_from_slice(&s[by..]);
        } else {
            o[by..].copy_from_slice(&s[..block - by]);
        }
    }
}
