//! Making Tile IR: an insertion point, and the small sugar that is not in the IR itself.

use super::ops::Constant;
use super::{Tile, TileOp};
use crate::entities::{Block, Value};
use crate::function::Function;
use crate::scalar::{BinaryFn, Predicate, Rounding, UnaryFn};
use crate::types::{Elem, Scalar, Shape, Type};
use naiad_diag::{Diagnostic, Id, Loc};

/// An op that could not be made since its operands do not fit: a fault of the caller.
#[derive(Debug, Clone, PartialEq)]
pub struct BuildError(pub String);

impl From<BuildError> for Box<Diagnostic> {
    fn from(e: BuildError) -> Box<Diagnostic> {
        Box::new(
            Diagnostic::new(Id::Internal, format!("an op was built that does not fit: {}", e.0))
                .help("this is a bug of Naiad; please report it with the kernel"),
        )
    }
}

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
