//! Prints: elements that threads print, put together to tiles.
//!
//! A GPU's threads print a line for each element. Here a print is shown when all its elements have come,
//! as any other executor shows it: whole, and in the order of the tile; or each as it comes, for who wants
//! to know what a GPU would print.

use super::Element;
use super::exec::{Exec, Run};
use super::fault::FaultKind;
use super::mask::Mask;
use crate::debug::{Operand, Printed};
use naiad_ir::thread::ThreadOp;
use naiad_ir::{Inst, Type, Value};

/// A print of a program of which elements are missing.
pub struct Unfinished {
    program: [u32; 3],
    operands: Vec<Option<Elements>>,
}

struct Elements {
    ty: Type,
    images: Vec<u64>,
    has: Vec<bool>,
    missing: usize,
}

impl Unfinished {
    fn is_done(&self) -> bool {
        self.operands.iter().all(|o| o.as_ref().is_some_and(|o| o.missing == 0))
    }
}

impl Exec<'_> {
    pub fn print(&mut self, inst: Inst, mask: &Mask) -> Run<()> {
        let code = self.code;
        let ThreadOp::Print { prefix, of, operand, operands, program, index, value, .. } =
            code.func.op(inst)
        else {
            return Ok(());
        };
        for t in mask.threads() {
            let image = |e: &Self, v: Value| e.values.image(code.slot(v), 0, t);
            let mut at = [0; 3];
            at.iter_mut().zip(program).for_each(|(at, &v)| *at = image(self, v) as u32);
            if let Some(print) = self.options.print_elements {
                let index = index.iter().map(|&v| image(self, v) as u32).collect();
                let value = value.map(|v| image(self, v));
                let (prefix, operand) = (prefix.0.to_string(), *operand);
                print(&Element { program: at, prefix, operand, index, value });
                continue;
            }
            let found = self.prints.iter().position(|p| p.program == at);
            let which = found.unwrap_or_else(|| {
                let operands = (0..*operands).map(|_| None).collect();
                self.prints.push(Unfinished { program: at, operands });
                self.prints.len() - 1
            });
            if let Some(value) = value {
                let strides = of.shape.strides().zip(index);
                let place = strides.map(|(s, &v)| s as u64 * image(self, v)).sum::<u64>() as usize;
                let value = image(self, *value);
                let n = of.shape.numel();
                let elements =
                    self.prints[which].operands[*operand as usize].get_or_insert_with(|| {
                        Elements { ty: *of, images: vec![0; n], has: vec![false; n], missing: n }
                    });
                if place >= n || elements.ty != *of || elements.has[place] {
                    let what =
                        format!("prints element {place} of {of} once more, or where none is");
                    return self.fault(FaultKind::Print, inst, Some(t), what);
                }
                (elements.images[place], elements.has[place]) = (value, true);
                elements.missing -= 1;
            }
            if self.prints[which].is_done() {
                let done = self.prints.swap_remove(which);
                self.show(inst, &done);
            }
        }
        Ok(())
    }

    fn show(&self, inst: Inst, done: &Unfinished) {
        let (Some(print), ThreadOp::Print { prefix, hex, .. }) =
            (self.options.print, self.code.func.op(inst))
        else {
            return;
        };
        let operands = done.operands.iter().flatten();
        let operands: Vec<Operand<'_>> =
            operands.map(|o| Operand::of_images(o.ty, &o.images)).collect();
        print(&Printed {
            kernel: &self.code.func.name,
            program: done.program,
            prefix: &prefix.0,
            hex: *hex,
            operands: &operands,
        });
    }

    /// At a block's end: whether a print lacks elements.
    pub fn printed(&self) -> Run<()> {
        let Some(print) = self.prints.first() else { return Ok(()) };
        let last = self.code.func.insts(self.code.func.entry()).last();
        let Some(&last) = last else { return Ok(()) };
        let what =
            format!("ends with a print of program {:?} of which elements lack", print.program);
        self.fault(FaultKind::Print, last, None, what)
    }
}
