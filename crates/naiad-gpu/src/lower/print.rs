//! Prints: each element by the thread that owns it, as far as [`Prints`](crate::Prints) lets it be shown.

use super::Lower;
use crate::layout::axis_bits;
use naiad_ir::scalar::Predicate;
use naiad_ir::thread::ThreadOp;
use naiad_ir::tile::Text;
use naiad_ir::{Shape, Type, Value};

impl Lower<'_> {
    pub fn print(&mut self, prefix: &Text, args: &[Value], hex: bool) {
        if self.options.prints.as_ref().is_some_and(|prints| prints.off) {
            return;
        }
        let axes = [1, 2].map(|axis| self.b.op(ThreadOp::BlockId { axis }));
        let program = vec![self.program, axes[0], axes[1]];
        let operands = args.len() as u32;
        let line = |of: Type, operand: u32, index: Vec<Value>, value: Option<Value>| {
            let (prefix, program) = (prefix.clone(), program.clone());
            ThreadOp::Print { prefix, hex, of, operand, operands, program, index, value }
        };
        let shown = self.program_is_shown(&program);
        if args.is_empty() {
            let first = self.owner(None);
            let first = self.both(shown, first);
            return self.where_true(first, |lower| lower.b.run(line(Type::I32, 0, vec![], None)));
        }
        for (operand, &arg) in args.iter().enumerate() {
            let (of, layout) = (self.f.ty(arg).ty, self.layout(arg));
            let registers = self.get(arg).clone();
            let elements = layout.map(|layout| self.elements(&layout, 0));
            let Some(window) = self.window(&of.shape) else { continue };
            let owner = self.owner(layout.as_ref());
            let owner = self.both(shown, owner);
            self.where_true(owner, |lower| {
                for (r, &value) in registers.iter().enumerate() {
                    if layout.is_some_and(|l| l.without_copies_of(r) != r) {
                        continue;
                    }
                    let index = match &elements {
                        Some(elements) => lower.index_along_axes(elements[r], &of.shape),
                        None => vec![],
                    };
                    let within = lower.within(&index, &window);
                    lower.where_true(within, |lower| {
                        lower.b.run(line(of, operand as u32, index, Some(value)));
                    });
                }
            });
        }
    }

    /// Whether the program is one of those that print; all do without a condition.
    fn program_is_shown(&mut self, program: &[Value]) -> Option<Value> {
        let wanted = self.options.prints.as_ref().map_or([None; 3], |prints| prints.program);
        let mut shown = None;
        for (&at, wanted) in program.iter().zip(wanted) {
            let Some(wanted) = wanted else { continue };
            // No program of any grid has the largest number.
            let wanted = self.i32(i64::from(wanted.min(i32::MAX as u32)));
            let is_it = self.b.compare(Predicate::Eq, at, wanted);
            shown = self.both(shown, Some(is_it));
        }
        shown
    }

    /// The indices that are shown along each axis, none where all are; nothing if no element is shown.
    fn window(&self, shape: &Shape) -> Option<Vec<Option<(usize, usize)>>> {
        let lanes = self.options.prints.as_ref().map_or(&[][..], |prints| &prints.lanes);
        let axis = |(axis, n): (usize, usize)| match lanes.get(axis) {
            Some(&Some((start, end))) => {
                let (start, end) = (start.min(n), end.min(n));
                (start < end).then_some(((start, end) != (0, n)).then_some((start, end)))
            }
            _ => Some(None),
        };
        shape.dims().enumerate().map(axis).collect()
    }

    /// Whether an element's indices are among those that are shown.
    fn within(&mut self, index: &[Value], window: &[Option<(usize, usize)>]) -> Option<Value> {
        let mut within = None;
        for (&at, range) in index.iter().zip(window) {
            let &Some((start, end)) = range else { continue };
            let [start, end] = [start, end].map(|bound| self.i32(bound as i64));
            let not_before = self.b.compare(Predicate::Ge, at, start);
            let before = self.b.compare(Predicate::Lt, at, end);
            within = self.both(within, Some(not_before));
            within = self.both(within, Some(before));
        }
        within
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
