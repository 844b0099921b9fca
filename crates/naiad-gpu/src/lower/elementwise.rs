//! Ops that work lane by lane, on each register of a thread.

use super::{Lower, Lowered, Registers, stored};
use crate::layout::axis_bits;
use crate::placed::{PlacedOp, Run, What};
use naiad_ir::scalar::{BinaryFn, Rounding, UnaryFn};
use naiad_ir::thread::{NativeFn, ThreadOp};
use naiad_ir::tile::{Constant, TileOp};
use naiad_ir::{OpInfo, Scalar, Value};

impl Lower<'_> {
    pub fn lanewise(&mut self, op: &TileOp, result: Value, run: Run) -> Lowered<Registers> {
        let mut operands = Vec::new();
        op.each_value(&mut |v| operands.push(v));
        let count = self.layout(result).map_or(1, |l| l.count());
        let uniform = operands.iter().position(|&v| self.is_splat(v));
        // Registers whose results are alike need one comparison.
        let alike: usize = self.layout(result).map_or(0, |layout| {
            let (low, _) = axis_bits(&self.shape(result), run.axis as usize);
            layout.neighbours(low, run.mask.trailing_zeros()).into_iter().map(|b| 1 << b).sum()
        });
        let mut registers: Registers = Vec::with_capacity(count);
        // Equal operands make equal results: of a splat one is computed.
        let mut last: Option<(Vec<Value>, Value)> = None;
        for r in 0..count {
            if r & alike != 0 {
                registers.push(registers[r & !alike]);
                continue;
            }
            let args: Vec<Value> = operands.iter().map(|&v| self.get(v)[r]).collect();
            if let Some((known, value)) = &last
                && *known == args
            {
                registers.push(*value);
                continue;
            }
            let value = match self.element(op, &args, uniform) {
                Some(value) => value,
                None => return self.unsupported(format!("`{}` lane by lane", op.name())),
            };
            last = Some((args, value));
            registers.push(value);
        }
        Ok(registers)
    }

    fn is_splat(&self, value: Value) -> bool {
        let op = self.f.defining_op(value);
        matches!(op, Some(PlacedOp { what: What::Tile(TileOp::Splat { .. }), .. }))
    }

    /// One element. Narrow floats are computed in fp32 and rounded. `uniform`: which argument is
    /// the same in all threads.
    fn element(&mut self, op: &TileOp, args: &[Value], uniform: Option<usize>) -> Option<Value> {
        let ty = self.b.vector(args[0]).elem.scalar();
        let wide = |lower: &mut Self| -> Option<(Scalar, Scalar, Vec<Value>)> {
            let (ty, compute) = (ty?, ty?.compute_type());
            let args = args.iter().map(|&v| lower.b.cast(v, compute, Rounding::Nearest)).collect();
            Some((ty, compute, args))
        };
        Some(match op {
            TileOp::Unary { f, .. } => {
                let (ty, compute, args) = wide(self)?;
                let value = self.unary(*f, compute, args[0]);
                self.b.cast(value, ty, Rounding::Nearest)
            }
            TileOp::Binary { f, .. } => {
                let (ty, compute, args) = wide(self)?;
                let fast = !self.options.precise && compute == Scalar::F32 && *f == BinaryFn::Div;
                if compute == Scalar::I64 && *f == BinaryFn::Add {
                    let ((a, more), (b, yet)) = (self.sum(args[0]), self.sum(args[1]));
                    let ((a, far), (b, away)) = (self.root(a), self.root(b));
                    let root = self.b.add(a, b);
                    let far = self.far(far, away);
                    let base = self.away(root, far);
                    let constant = more.wrapping_add(yet);
                    let all = self.b.i64(constant);
                    let sum = self.b.add(base, all);
                    return Some(self.note_sum(sum, base, constant));
                }
                if let Some(which @ 0..=1) = uniform
                    && (compute, *f) == (Scalar::I64, BinaryFn::Mul)
                {
                    return Some(self.multiple(args[1 - which], args[which]));
                }
                let value = match fast {
                    true => self.b.op(ThreadOp::Native { f: NativeFn::Div, args }),
                    false => self.b.binary(*f, args[0], args[1]),
                };
                self.b.cast(value, ty, Rounding::Nearest)
            }
            TileOp::Ternary { f, .. } => {
                let (ty, _, args) = wide(self)?;
                let f = f.computed(ty);
                let value = self.b.op(ThreadOp::Ternary { f, a: args[0], b: args[1], c: args[2] });
                self.b.cast(value, ty, Rounding::Nearest)
            }
            TileOp::Compare { p, .. } => {
                let (_, _, args) = wide(self)?;
                self.b.compare(*p, args[0], args[1])
            }
            TileOp::Select { .. } => self.b.select(args[0], args[1], args[2]),
            TileOp::Cast { to: Scalar::I64, .. } if ty.is_some_and(Scalar::is_int) => {
                self.widened(args[0])
            }
            TileOp::Cast { to, rounding, .. } => self.b.cast(args[0], *to, *rounding),
            TileOp::Bitcast { to, .. } => self.b.bitcast(args[0], stored(*to)),
            TileOp::PtrAdd { ptr, .. } => {
                let size = self.f.ty(*ptr).ty.elem.pointer().map_or(1, |p| p.pointee.size());
                let offset = self.widened(args[1]);
                let ((ptr, before), (offset, more)) = (self.sum(args[0]), self.sum(offset));
                let ((ptr, far), (offset, away)) = (self.root(ptr), self.root(offset));
                let scale = self.b.i64(size as i64);
                let bytes = self.b.mul(offset, scale);
                let away = away.map(|away| self.b.mul(away, scale));
                let root = self.b.addr_add(ptr, bytes);
                let far = self.far(far, away);
                let base = self.away(root, far);
                // Addresses are numbers modulo 2^64, so that their parts may be added in any order.
                let constant = before.wrapping_add(more.wrapping_mul(size as i64));
                let constant_bytes = self.b.i64(constant);
                let address = self.b.addr_add(base, constant_bytes);
                self.note_sum(address, base, constant)
            }
            _ => return None,
        })
    }

    /// A number of 64 bits times one that is the same in all threads: the threads' own part once for all
    /// registers, and what these are apart in all threads at once.
    fn multiple(&mut self, value: Value, by: Value) -> Value {
        let (base, constant) = self.sum(value);
        let root = self.b.binary(BinaryFn::Mul, base, by);
        if constant == 0 {
            return root;
        }
        let constant = self.b.i64(constant);
        let far = self.b.binary(BinaryFn::Mul, constant, by);
        self.away(root, Some(far))
    }

    /// An integer with 64 bits.
    fn widened(&mut self, value: Value) -> Value {
        let (base, constant) = self.sum(value);
        let base = self.b.cast(base, Scalar::I64, Rounding::Nearest);
        let more = self.b.i64(constant);
        let wide = self.b.add(base, more);
        self.note_sum(wide, base, constant)
    }

    /// A function of one number, by the chip's own instruction where that is close enough.
    fn unary(&mut self, f: UnaryFn, ty: Scalar, x: Value) -> Value {
        if self.options.precise || ty != Scalar::F32 {
            return self.b.unary(f, x);
        }
        let native = |lower: &mut Self, f, x| lower.b.op(ThreadOp::Native { f, args: vec![x] });
        let scaled = |lower: &mut Self, x, by: f64| {
            let by = lower.b.constant(Constant::float(Scalar::F32, by), 1);
            lower.b.binary(BinaryFn::Mul, x, by)
        };
        match f {
            UnaryFn::Exp => {
                let x = scaled(self, x, std::f64::consts::LOG2_E);
                native(self, NativeFn::Exp2, x)
            }
            UnaryFn::Exp2 => native(self, NativeFn::Exp2, x),
            UnaryFn::Log => {
                let y = native(self, NativeFn::Log2, x);
                scaled(self, y, std::f64::consts::LN_2)
            }
            UnaryFn::Log2 => native(self, NativeFn::Log2, x),
            UnaryFn::Rsqrt => native(self, NativeFn::Rsqrt, x),
            UnaryFn::Sqrt => native(self, NativeFn::Sqrt, x),
            _ => self.b.unary(f, x),
        }
    }
}
