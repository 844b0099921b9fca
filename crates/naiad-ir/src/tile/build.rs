//! Making Tile IR: an insertion point, and the small sugar that is not in the IR itself.

use super::ops::{Constant, LoopHints};
use super::{Tile, TileOp};
use crate::entities::{Block, Value};
use crate::function::Function;
use crate::scalar::{BinaryFn, Predicate, Rounding, UnaryFn};
use crate::types::{Elem, Scalar, Shape, Type};
use naiad_diag::Loc;

/// An op that could not be made since its operands do not fit: a fault of the caller.
#[derive(Debug, Clone, PartialEq)]
pub struct BuildError(pub String);

type Built = Result<Value, BuildError>;

/// A function under construction.
pub struct Builder {
    pub func: Function<Tile>,
    block: Block,
    /// Place given to the ops that are made.
    pub loc: Loc,
}

impl Builder {
    pub fn new(name: &str) -> Builder {
        let func = Function::new(name);
        Builder { block: func.entry(), func, loc: Loc::NONE }
    }

    pub fn ty(&self, value: Value) -> Type {
        self.func.ty(value)
    }

    pub fn block(&self) -> Block {
        self.block
    }

    /// Makes ops at the end of `block` from now on; gives the block used so far.
    pub fn enter(&mut self, block: Block) -> Block {
        std::mem::replace(&mut self.block, block)
    }

    /// Appends an op with any number of results.
    pub fn ops(&mut self, op: TileOp) -> Result<Vec<Value>, BuildError> {
        let inst = self.func.push(self.block, op, self.loc).map_err(BuildError)?;
        Ok(self.func.results(inst).to_vec())
    }

    /// Appends an op with one result.
    pub fn op(&mut self, op: TileOp) -> Built {
        self.ops(op)?.first().copied().ok_or_else(|| BuildError("the op has no result".to_string()))
    }

    pub fn constant(&mut self, value: Constant) -> Built {
        self.op(TileOp::Const { value })
    }

    pub fn int(&mut self, ty: Scalar, value: i128) -> Built {
        self.constant(Constant::int(ty, value))
    }

    pub fn float(&mut self, ty: Scalar, value: f64) -> Built {
        self.constant(Constant::float(ty, value))
    }

    /// A constant of any type and shape: a number, or for a pointer its address.
    pub fn full(&mut self, ty: Type, value: i128) -> Built {
        let scalar = match ty.elem {
            Elem::Scalar(s) if s.is_float() => self.float(s, value as f64)?,
            Elem::Scalar(s) => self.int(s, value)?,
            Elem::Pointer(_) => {
                let address = self.int(Scalar::I64, value)?;
                self.op(TileOp::Bitcast { src: address, to: ty.elem })?
            }
        };
        self.broadcast_to(scalar, ty.shape)
    }

    pub fn unary(&mut self, f: UnaryFn, x: Value) -> Built {
        self.op(TileOp::Unary { f, x })
    }

    pub fn binary(&mut self, f: BinaryFn, a: Value, b: Value) -> Built {
        self.op(TileOp::Binary { f, a, b })
    }

    pub fn compare(&mut self, p: Predicate, a: Value, b: Value) -> Built {
        self.op(TileOp::Compare { p, a, b })
    }

    pub fn select(&mut self, cond: Value, yes: Value, no: Value) -> Built {
        self.op(TileOp::Select { cond, yes, no })
    }

    /// A cast by value; nothing where the type is right already.
    pub fn cast(&mut self, src: Value, to: Scalar) -> Built {
        if self.ty(src).elem == Elem::Scalar(to) {
            return Ok(src);
        }
        self.op(TileOp::Cast { src, to, rounding: Rounding::Nearest })
    }

    /// Broadcasts a scalar, or a tile of no higher rank whose extents are equal or 1.
    pub fn broadcast_to(&mut self, src: Value, shape: Shape) -> Built {
        let from = self.ty(src).shape;
        if from == shape {
            return Ok(src);
        }
        if from.is_scalar() {
            return self.op(TileOp::Splat { src, shape });
        }
        let mut src = src;
        for _ in from.rank()..shape.rank() {
            src = self.op(TileOp::ExpandDims { src, axis: 0 })?;
        }
        if self.ty(src).shape == shape {
            return Ok(src);
        }
        self.op(TileOp::Broadcast { src, shape })
    }

    /// Reduces along `axis`; `combine` gets the scalars `a1..ak, b1..bk` and gives `k` of them.
    pub fn reduce<E: From<BuildError>>(
        &mut self,
        inputs: Vec<Value>,
        axis: usize,
        combine: impl FnOnce(&mut Builder, &[Value]) -> Result<Vec<Value>, E>,
    ) -> Result<Vec<Value>, E> {
        let body = self.combine_region(&inputs, combine)?;
        Ok(self.ops(TileOp::Reduce { inputs, axis, body })?)
    }

    /// Scans along `axis`; `combine` as for [`Builder::reduce`].
    pub fn scan<E: From<BuildError>>(
        &mut self,
        inputs: Vec<Value>,
        axis: usize,
        reverse: bool,
        combine: impl FnOnce(&mut Builder, &[Value]) -> Result<Vec<Value>, E>,
    ) -> Result<Vec<Value>, E> {
        let body = self.combine_region(&inputs, combine)?;
        Ok(self.ops(TileOp::Scan { inputs, axis, reverse, body })?)
    }

    fn combine_region<E: From<BuildError>>(
        &mut self,
        inputs: &[Value],
        combine: impl FnOnce(&mut Builder, &[Value]) -> Result<Vec<Value>, E>,
    ) -> Result<Block, E> {
        let body = self.func.new_block();
        let types: Vec<Type> = inputs.iter().map(|&v| self.ty(v).with_shape(Shape::SCALAR)).collect();
        let params: Vec<Value> =
            types.iter().chain(&types).map(|&ty| self.func.add_block_param(body, ty)).collect();
        let back = self.enter(body);
        let values = combine(self, &params)?;
        self.ops(TileOp::Yield { values })?;
        self.enter(back);
        Ok(body)
    }

    /// A counted loop: `body` gets the induction variable and the carried values and gives the next
    /// ones, which must have the types of `inits`.
    pub fn for_loop<E: From<BuildError>>(
        &mut self,
        bounds: [Value; 3],
        inits: Vec<Value>,
        hints: LoopHints,
        body: impl FnOnce(&mut Builder, Value, &[Value]) -> Result<Vec<Value>, E>,
    ) -> Result<Vec<Value>, E> {
        let [lower, upper, step] = bounds;
        let block = self.func.new_block();
        let iv = self.func.add_block_param(block, self.ty(lower));
        let carried: Vec<Value> =
            inits.iter().map(|&v| self.func.add_block_param(block, self.func.ty(v))).collect();
        let back = self.enter(block);
        let values = body(self, iv, &carried)?;
        self.ops(TileOp::Yield { values })?;
        self.enter(back);
        Ok(self.ops(TileOp::For { lower, upper, step, inits, hints, body: block })?)
    }
}

/// The shape that two broadcast to, or the first axis (of the result) where they cannot.
pub fn broadcast_shapes(a: Shape, b: Shape) -> Result<Shape, usize> {
    let rank = a.rank().max(b.rank());
    let dim = |s: Shape, i: usize| (i + s.rank()).checked_sub(rank).map_or(1, |j| s.dim(j));
    let mut dims = Vec::with_capacity(rank);
    for i in 0..rank {
        let (x, y) = (dim(a, i), dim(b, i));
        if x != y && x != 1 && y != 1 {
            return Err(i);
        }
        dims.push(x.max(y) as i64);
    }
    // Two shapes within the limits can broadcast past them.
    Shape::new(&dims).map_err(|_| 0)
}
