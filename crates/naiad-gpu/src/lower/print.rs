//! Prints: each element by the thread that owns it.

use super::Lower;
use crate::layout::axis_bits;
use naiad_ir::thread::ThreadOp;
use naiad_ir::tile::Text;
use naiad_ir::{Shape, Type, Value};

impl Lower<'_> {
    pub fn print(&mut self, prefix: &Text, args: &[Value], hex: bool) {
        let axes = [1, 2].map(|axis| self.b.op(ThreadOp::BlockId { axis }));
        let program = vec![self.program, axes[0], axes[1]];
        let operands = args.len() as u32;
        let line = |of: Type, operand: u32, index: Vec<Value>, value: Option<Value>| {
            let (prefix, program) = (prefix.clone(), program.clone());
            ThreadOp::Print { prefix, hex, of, operand, operands, program, index, value }
        };
        if args.is_empty() {
            let first = self.owner(None);
            return self.where_true(first, |lower| lower.b.run(line(Type::I32, 0, vec![], None)));
        }
        for (operand, &arg) in args.iter().enumerate() {
            let (of, layout) = (self.f.ty(arg).ty, self.layout(arg));
            let registers = self.get(arg).clone();
            let elements = layout.map(|layout| self.elements(&layout, 0));
            let owner = self.owner(layout.as_ref());
            self.where_true(owner, |lower| {
                for (r, &value) in registers.iter().enumerate() {
                    if layout.is_some_and(|l| l.without_copies_of(r) != r) {
                        continue;
                    }
                    let index = match &elements {
                        Some(elements) => lower.index_along_axes(elements[r], &of.shape),
                        None => vec![],
                    };
                    lower.b.run(line(of, operand as u32, index, Some(value)));
                }
            });
        }
    }

    /// Does what has no result where the condition holds; without one everywhere.
    pub fn where_true(&mut self, cond: Option<Value>, body: impl FnOnce(&mut Self)) {
        let Some(cond) = cond else { return body(self) };
        let branch = self.b.begin_branch();
        body(self);
        let then = self.b.end_branch(branch, vec![]);
        let branch = self.b.begin_branch();
        let otherwise = self.b.end_branch(branch, vec![]);
        self.b.run(ThreadOp::If { cond, then, otherwise });
    }

    /// The index along each axis, of an element of a number.
    fn index_along_axes(&mut self, flat: Value, shape: &Shape) -> Vec<Value> {
        let axis = |axis: usize| {
            let (low, bits) = axis_bits(shape, axis);
            let above = self.shift_right(flat, i64::from(low));
            // Nothing is above the first axis.
            if axis == 0 { above } else { self.and(above, (1 << bits) - 1) }
        };
        (0..shape.rank()).map(axis).collect()
    }
}
