//! Making Thread IR: an insertion point, shorthands, and elementary functions out of its ops.

use super::ops::{Lanes, Permutation, ThreadOp};
use super::types::{ThreadElem, ThreadType, Vector};
use super::{RuntimeFn, Thread};
use crate::entities::{Block, Value};
use crate::function::Function;
use crate::math::FloatOps;
use crate::op::OpInfo;
use crate::scalar::{BinaryFn, Predicate, Rounding, TernaryFn, UnaryFn};
use crate::tile::{Constant, MemHints};
use crate::types::Scalar;
use naiad_diag::Loc;
use rustc_hash::FxHashMap;

/// A function under construction. The makers of Thread IR are compilers, so that an op whose operands
/// do not fit is a fault of theirs: it panics, with the op.
pub struct Builder {
    pub func: Function<Thread>,
    block: Block,
    /// Place given to the ops that are made.
    pub loc: Loc,
    /// Constants made in the present block, which need no second op.
    constants: FxHashMap<(Constant, u32), Value>,
}

impl Builder {
    pub fn new(name: &str) -> Builder {
        Builder::at_end(Function::new(name))
    }

    /// Goes on at the end of the function's first block.
    pub fn at_end(func: Function<Thread>) -> Builder {
        Builder { block: func.entry(), func, loc: Loc::NONE, constants: FxHashMap::default() }
    }

    pub fn block(&self) -> Block {
        self.block
    }

    pub fn ty(&self, value: Value) -> ThreadType {
        self.func.ty(value)
    }

    /// The type of a value that is no register array.
    pub fn vector(&self, value: Value) -> Vector {
        match self.func.ty(value) {
            ThreadType::Vector(v) => v,
            ThreadType::Regs { .. } => panic!("{value} is an array of registers"),
        }
    }

    /// Makes ops at the end of `block` from now on; gives the block used so far.
    pub fn enter(&mut self, block: Block) -> Block {
        self.constants.clear();
        std::mem::replace(&mut self.block, block)
    }

    /// Appends an op with any number of results.
    pub fn ops(&mut self, op: ThreadOp) -> Vec<Value> {
        match self.func.push(self.block, op.clone(), self.loc) {
            Ok(inst) => self.func.results(inst).to_vec(),
            Err(why) => panic!("`{}` was built that does not fit: {why}: {op:?}", op.name()),
        }
    }

    /// Appends an op with one result.
    pub fn op(&mut self, op: ThreadOp) -> Value {
        self.ops(op)[0]
    }

    /// Appends an op without a result.
    pub fn run(&mut self, op: ThreadOp) {
        self.ops(op);
    }

    pub fn constant(&mut self, value: Constant, lanes: u32) -> Value {
        if let Some(&v) = self.constants.get(&(value, lanes)) {
            return v;
        }
        let v = self.op(ThreadOp::Const { value, lanes: Lanes(lanes) });
        self.constants.insert((value, lanes), v);
        v
    }

    /// The integer of a constant.
    pub fn known_int(&self, value: Value) -> Option<i64> {
        match self.func.defining_op(value)? {
            ThreadOp::Const { value, .. } => i64::try_from(value.as_int()?).ok(),
            _ => None,
        }
    }

    pub fn i64(&mut self, value: i64) -> Value {
        self.constant(Constant::int(Scalar::I64, i128::from(value)), 1)
    }

    pub fn bool(&mut self, value: bool) -> Value {
        self.constant(Constant::bool(value), 1)
    }

    /// The scalar in `lanes` lanes.
    pub fn splat(&mut self, src: Value, lanes: u32) -> Value {
        if lanes == 1 {
            return src;
        }
        if let Some(&ThreadOp::Const { value, .. }) = self.func.defining_op(src) {
            return self.constant(value, lanes);
        }
        self.op(ThreadOp::Splat { src, lanes: Lanes(lanes) })
    }

    pub fn iota(&mut self, elem: Scalar, lanes: u32) -> Value {
        match lanes {
            1 => self.constant(Constant::int(elem, 0), 1),
            n => self.op(ThreadOp::Iota { elem: elem.into(), lanes: Lanes(n) }),
        }
    }

    pub fn extract(&mut self, src: Value, lane: u32) -> Value {
        if self.vector(src).is_scalar() {
            return src;
        }
        self.op(ThreadOp::Extract { src, lane })
    }

    /// Lanes of one vector in another order.
    pub fn permute(&mut self, src: Value, order: impl IntoIterator<Item = u32>) -> Value {
        let order = Permutation(order.into_iter().collect());
        self.op(ThreadOp::Shuffle { a: src, b: src, order })
    }

    pub fn unary(&mut self, f: UnaryFn, x: Value) -> Value {
        self.op(ThreadOp::Unary { f, x })
    }

    pub fn binary(&mut self, f: BinaryFn, a: Value, b: Value) -> Value {
        self.op(ThreadOp::Binary { f, a, b })
    }

    pub fn compare(&mut self, p: Predicate, a: Value, b: Value) -> Value {
        self.op(ThreadOp::Compare { p, a, b })
    }

    pub fn select(&mut self, cond: Value, yes: Value, no: Value) -> Value {
        self.op(ThreadOp::Select { cond, yes, no })
    }

    pub fn cast(&mut self, src: Value, to: Scalar, rounding: Rounding) -> Value {
        if self.vector(src).elem == ThreadElem::Scalar(to) {
            return src;
        }
        self.op(ThreadOp::Cast { src, to, rounding })
    }

    pub fn bitcast(&mut self, src: Value, to: impl Into<ThreadElem>) -> Value {
        let to = to.into();
        if self.vector(src).elem == to {
            return src;
        }
        self.op(ThreadOp::Bitcast { src, to })
    }

    /// `a + b` of i64, folded where constant.
    pub fn add(&mut self, a: Value, b: Value) -> Value {
        match (self.known_int(a), self.known_int(b)) {
            (Some(0), _) => b,
            (_, Some(0)) => a,
            (Some(x), Some(y)) => self.i64(x.wrapping_add(y)),
            _ => self.binary(BinaryFn::Add, a, b),
        }
    }

    /// `a - b` of i64, folded where constant.
    pub fn sub(&mut self, a: Value, b: Value) -> Value {
        match (self.known_int(a), self.known_int(b)) {
            (_, Some(0)) => a,
            (Some(x), Some(y)) => self.i64(x.wrapping_sub(y)),
            _ => self.binary(BinaryFn::Sub, a, b),
        }
    }

    /// `a * b` of i64, folded where constant.
    pub fn mul(&mut self, a: Value, b: Value) -> Value {
        match (self.known_int(a), self.known_int(b)) {
            (Some(1), _) => b,
            (_, Some(1)) => a,
            (Some(x), Some(y)) => self.i64(x.wrapping_mul(y)),
            (Some(0), _) | (_, Some(0)) => self.i64(0),
            _ => self.binary(BinaryFn::Mul, a, b),
        }
    }

    pub fn addr_add(&mut self, addr: Value, offset: Value) -> Value {
        if self.known_int(offset) == Some(0) {
            return addr;
        }
        self.op(ThreadOp::AddrAdd { addr, offset })
    }

    pub fn load(&mut self, addr: Value, disp: i64, ty: Vector) -> Value {
        self.op(ThreadOp::Load {
            addr,
            disp,
            elem: ty.elem,
            lanes: Lanes(ty.lanes),
            mask: None,
            hints: MemHints::default(),
        })
    }

    pub fn store(&mut self, addr: Value, disp: i64, value: Value) {
        self.run(ThreadOp::Store { addr, value, disp, mask: None, hints: MemHints::default() });
    }

    pub fn call(&mut self, f: RuntimeFn, args: Vec<Value>) -> Vec<Value> {
        self.ops(ThreadOp::RuntimeCall { f, args })
    }

    /// Begins a counted loop: ops are made in its body until [`Builder::end_for`].
    pub fn begin_for(&mut self, [lower, upper, step]: [Value; 3], inits: Vec<Value>) -> ForLoop {
        let body = self.func.new_block();
        let iv = self.func.add_block_param(body, self.ty(lower));
        let carried =
            inits.iter().map(|&v| self.func.add_block_param(body, self.func.ty(v))).collect();
        let outer = self.enter(body);
        ForLoop { iv, carried, bounds: [lower, upper, step], inits, body, outer }
    }

    /// Ends a counted loop with the next values of what it carries; gives the last ones.
    pub fn end_for(&mut self, l: ForLoop, next: Vec<Value>) -> Vec<Value> {
        self.run(ThreadOp::Yield { values: next });
        self.enter(l.outer);
        let [lower, upper, step] = l.bounds;
        self.ops(ThreadOp::For { lower, upper, step, inits: l.inits, body: l.body })
    }

    /// Begins a branch: ops are made in it until [`Builder::end_branch`].
    pub fn begin_branch(&mut self) -> Branch {
        let block = self.func.new_block();
        Branch { block, outer: self.enter(block) }
    }

    /// Ends a branch with the values that it gives; it is to be one of [`ThreadOp::If`]'s.
    pub fn end_branch(&mut self, branch: Branch, values: Vec<Value>) -> Block {
        self.run(ThreadOp::Yield { values });
        self.enter(branch.outer);
        branch.block
    }

    /// One of two branches, which give the same number of values.
    pub fn if_else(
        &mut self,
        cond: Value,
        then: impl FnOnce(&mut Builder) -> Vec<Value>,
        otherwise: impl FnOnce(&mut Builder) -> Vec<Value>,
    ) -> Vec<Value> {
        let branch = self.begin_branch();
        let values = then(self);
        let then = self.end_branch(branch, values);
        let branch = self.begin_branch();
        let values = otherwise(self);
        let otherwise = self.end_branch(branch, values);
        self.ops(ThreadOp::If { cond, then, otherwise })
    }
}

/// A counted loop under construction.
pub struct ForLoop {
    /// The induction variable.
    pub iv: Value,
    pub carried: Vec<Value>,
    bounds: [Value; 3],
    inits: Vec<Value>,
    body: Block,
    outer: Block,
}

/// A branch under construction.
pub struct Branch {
    block: Block,
    outer: Block,
}

/// Records the operations of an elementary function on vectors of `BITS`-bit floats.
pub struct Expand<'b, const BITS: u32> {
    pub builder: &'b mut Builder,
    pub lanes: u32,
}

impl<const BITS: u32> Expand<'_, BITS> {
    const FLOAT: Scalar = if BITS == 32 { Scalar::F32 } else { Scalar::F64 };
    const INT: Scalar = if BITS == 32 { Scalar::I32 } else { Scalar::I64 };
    const UINT: Scalar = if BITS == 32 { Scalar::U32 } else { Scalar::U64 };

    fn unsigned(&mut self, x: Value) -> Value {
        self.builder.bitcast(x, Self::UINT)
    }

    fn signed(&mut self, x: Value) -> Value {
        self.builder.bitcast(x, Self::INT)
    }
}

macro_rules! recorded {
    ($( $name:ident ($($x:ident),+) => $make:ident $f:ident :: $row:ident; )*) => { $(
        fn $name(&mut self, $($x: Value),+) -> Value {
            self.builder.$make($f::$row, $($x),+)
        }
    )* };
}

impl<const BITS: u32> FloatOps for Expand<'_, BITS> {
    type F = Value;
    type I = Value;
    type M = Value;
    const BITS: u32 = BITS;

    fn constant(&mut self, value: f64) -> Value {
        self.builder.constant(Constant::float(Self::FLOAT, value), self.lanes)
    }

    fn int(&mut self, value: i64) -> Value {
        self.builder.constant(Constant::int(Self::INT, i128::from(value)), self.lanes)
    }

    recorded! {
        add(x, y) => binary BinaryFn::Add;
        sub(x, y) => binary BinaryFn::Sub;
        mul(x, y) => binary BinaryFn::Mul;
        div(x, y) => binary BinaryFn::Div;
        neg(x) => unary UnaryFn::Neg;
        abs(x) => unary UnaryFn::Abs;
        sqrt(x) => unary UnaryFn::SqrtRn;
        floor(x) => unary UnaryFn::Floor;
        ceil(x) => unary UnaryFn::Ceil;
        trunc(x) => unary UnaryFn::Trunc;
        eq(x, y) => compare Predicate::Eq;
        ne(x, y) => compare Predicate::Ne;
        lt(x, y) => compare Predicate::Lt;
        le(x, y) => compare Predicate::Le;
        int_add(x, y) => binary BinaryFn::Add;
        int_sub(x, y) => binary BinaryFn::Sub;
        int_mul(x, y) => binary BinaryFn::Mul;
        umulhi(x, y) => binary BinaryFn::Umulhi;
        and(x, y) => binary BinaryFn::And;
        or(x, y) => binary BinaryFn::Or;
        xor(x, y) => binary BinaryFn::Xor;
        shl(x, by) => binary BinaryFn::Shl;
        sar(x, by) => binary BinaryFn::Shr;
        int_eq(x, y) => compare Predicate::Eq;
    }

    fn mul_add(&mut self, a: Value, b: Value, c: Value) -> Value {
        self.builder.op(ThreadOp::Ternary { f: TernaryFn::Fma, a, b, c })
    }

    fn select(&mut self, mask: Value, x: Value, y: Value) -> Value {
        self.builder.select(mask, x, y)
    }

    fn select_int(&mut self, mask: Value, x: Value, y: Value) -> Value {
        self.builder.select(mask, x, y)
    }

    fn bits(&mut self, x: Value) -> Value {
        self.builder.bitcast(x, Self::INT)
    }

    fn with_bits(&mut self, x: Value) -> Value {
        self.builder.bitcast(x, Self::FLOAT)
    }

    fn to_float(&mut self, x: Value) -> Value {
        self.builder.cast(x, Self::FLOAT, Rounding::Nearest)
    }

    fn shr(&mut self, x: Value, by: Value) -> Value {
        let (x, by) = (self.unsigned(x), self.unsigned(by));
        let shifted = self.builder.binary(BinaryFn::Shr, x, by);
        self.signed(shifted)
    }

    fn ult(&mut self, x: Value, y: Value) -> Value {
        let (x, y) = (self.unsigned(x), self.unsigned(y));
        self.builder.compare(Predicate::Lt, x, y)
    }
}
