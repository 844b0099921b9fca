//! Control flow.

use crate::emit::{Class, Lanes, Operand};
use crate::writer::{Made, Writer, Written};
use naiad_ir::thread::ThreadOp;
use naiad_ir::{Block, Scalar, Value};
use smallvec::smallvec;

impl Writer<'_> {
    /// Registers that take values like these one after the other, and hold them now.
    fn registers(&mut self, values: &[Lanes]) -> Made {
        values.iter().map(|v| v.iter().map(|&x| self.emit.copy(x)).collect()).collect()
    }

    fn pass(&mut self, targets: &[Lanes], values: &[Lanes]) {
        let flat = |all: &[Lanes]| all.iter().flatten().copied().collect::<Vec<_>>();
        self.emit.moves(&flat(targets), &flat(values));
    }

    fn yields(&self, block: Block) -> Result<Made, String> {
        match self.func.terminator(block) {
            Some(ThreadOp::Yield { values }) => self.all(values),
            _ => Err(format!("{block} does not yield")),
        }
    }

    /// ```text
    ///          iv = lower; if (!(iv < upper)) goto end
    ///   loop:  ...
    ///          again = iv < limit; iv += step; if (again) goto loop
    ///   end:
    /// ```
    ///
    /// The sum of induction variable and step may leave the type, as Thread IR's does not. So it is the
    /// variable before that step which is tested, against the bound less a step, where that is no
    /// number of the type against the least.
    pub fn for_loop(
        &mut self,
        bounds: [Value; 3],
        inits: &[Value],
        body: Block,
    ) -> Result<Made, String> {
        let of = self.scalar(bounds[0])?;
        let [lower, upper, step] = bounds;
        let [lower, upper, step] =
            [self.one(lower)?, self.one(upper)?, self.one(step)?].map(|x| self.emit.counter(of, x));
        let inits = self.all(inits)?;
        if let Some((lower, step)) = lower.known_int().zip(step.known_int())
            && upper
                .known_int()
                .is_some_and(|upper| if step < 0 { lower <= upper } else { lower >= upper })
        {
            return Ok(inits);
        }
        let carried = self.registers(&inits);
        let rounds = Rounds::new(self, lower, upper, step);
        let (again, end) = (self.emit.new_label("loop"), self.emit.new_label("end"));
        let skip = rounds.skips(self);
        if let Some(skip) = skip {
            self.emit.branch(skip, true, end);
        }
        self.emit.place(again);
        let iv = rounds.variable(self, of);
        let params = self.func.block_params(body);
        self.set(params[0], smallvec![iv]);
        self.set_all(&params[1..], carried.clone());
        self.block(body)?;
        let next = self.yields(body)?;
        let more = rounds.test(self);
        self.pass(&carried, &next);
        rounds.step(self);
        self.emit.branch(more, true, again);
        if skip.is_some() {
            self.emit.place(end);
        }
        Ok(carried)
    }

    /// ```text
    ///   loop:  (before) if (!cond) goto end
    ///          (after)  goto loop
    ///   end:
    /// ```
    pub fn while_loop(
        &mut self,
        inits: &[Value],
        before: Block,
        after: Block,
    ) -> Result<Made, String> {
        let inits = self.all(inits)?;
        let carried = self.registers(&inits);
        let (again, end) = (self.emit.new_label("loop"), self.emit.new_label("end"));
        self.emit.place(again);
        self.set_all(self.func.block_params(before), carried.clone());
        self.block(before)?;
        let Some(ThreadOp::Condition { cond, values }) = self.func.terminator(before) else {
            return Err(format!("{before} does not end in a condition"));
        };
        let cond = self.one(*cond)?;
        self.emit.branch(cond, false, end);
        // Nothing writes these before the next round.
        let passed = self.all(values)?;
        self.set_all(self.func.block_params(after), passed.clone());
        self.block(after)?;
        let next = self.yields(after)?;
        self.pass(&carried, &next);
        self.emit.jump(again);
        self.emit.place(end);
        Ok(passed)
    }

    pub fn if_else(&mut self, cond: Value, then: Block, otherwise: Block) -> Result<Made, String> {
        let cond = self.one(cond)?;
        if let Some(known) = cond.known() {
            let taken = if known != 0 { then } else { otherwise };
            self.block(taken)?;
            return self.yields(taken);
        }
        let (no, end) = (self.emit.new_label("else"), self.emit.new_label("end"));
        let is_empty = self.func.insts(otherwise).len() == 1;
        let results = self.yield_types(then)?;
        let one_sided = is_empty && results.is_empty();
        self.emit.branch(cond, false, if one_sided { end } else { no });
        self.branch(then, &results)?;
        if !one_sided {
            self.emit.jump(end);
            self.emit.place(no);
            self.branch(otherwise, &results)?;
        }
        self.emit.place(end);
        Ok(results)
    }

    fn branch(&mut self, block: Block, results: &[Lanes]) -> Written {
        self.block(block)?;
        let values = self.yields(block)?;
        self.pass(results, &values);
        Ok(())
    }

    /// Fresh registers for what a block yields.
    fn yield_types(&mut self, block: Block) -> Result<Made, String> {
        let Some(ThreadOp::Yield { values }) = self.func.terminator(block) else {
            return Err(format!("{block} does not yield"));
        };
        values
            .iter()
            .map(|&v| {
                let v = self.vector(v)?;
                Ok((0..v.lanes).map(|_| self.emit.fresh(Class::of(v.elem))).collect())
            })
            .collect()
    }
}

/// How a counted loop goes on.
struct Rounds {
    /// What is counted.
    counter: Operand,
    /// The condition under which there is no round, as an opcode and its operands.
    skip: Option<(&'static str, Operand, Operand)>,
    step: Operand,
    how: How,
}

enum How {
    /// The step is known: another round where the counter is below (`lt`) or above (`gt`) the limit.
    Until(&'static str, Operand),
    /// It is not. If it is negative, the counter has all bits flipped, so that it counts up to the
    /// bound, and another round follows where the distance is more than the step's size.
    Flipped { signs: Operand, upper: Operand },
}

impl Rounds {
    fn new(w: &mut Writer<'_>, lower: Operand, upper: Operand, step: Operand) -> Rounds {
        let class = lower.class();
        let e = &mut w.emit;
        let Some(by) = step.known_int() else {
            let signs =
                e.ins(&op("shr", class), class, [step, Operand::word(class.bits() as i64 - 1)]);
            let xor = format!("xor.{}", class.ty());
            let [lower, upper] = [lower, upper].map(|x| e.ins(&xor, class, [x, signs]));
            let flipped = e.ins(&xor, class, [step, signs]);
            let step = e.ins(&op("sub", class), class, [flipped, signs]);
            let counter = e.copy(lower);
            let skip = Some(("ge", lower, upper));
            return Rounds { counter, skip, step, how: How::Flipped { signs, upper } };
        };
        let bits = class.bits();
        let (least, most) = (i64::MIN >> (64 - bits), i64::MAX >> (64 - bits));
        let (skip, test) = if by < 0 { ("le", "gt") } else { ("ge", "lt") };
        // The nearest bound that has a number a step before it.
        let (clamp, nearest) = if by < 0 { ("min", most + by) } else { ("max", least + by) };
        // Above a lower bound that is not as near to the end of the type as that, every bound has one.
        let far =
            lower.known_int().is_some_and(|l| if by < 0 { l <= nearest } else { l >= nearest });
        let limit = match upper.known_int() {
            Some(upper) if by < 0 => Operand::imm(class, upper.min(nearest) - by),
            Some(upper) => Operand::imm(class, upper.max(nearest) - by),
            None if far => e.ins(&op("sub", class), class, [upper, step]),
            None => {
                let bound = e.ins(&op(clamp, class), class, [upper, Operand::imm(class, nearest)]);
                e.ins(&op("sub", class), class, [bound, step])
            }
        };
        let known = lower.known_int().is_some() && upper.known_int().is_some();
        let skip = (!known).then_some((skip, lower, upper));
        Rounds { counter: e.copy(lower), skip, step, how: How::Until(test, limit) }
    }

    fn skips(&self, w: &mut Writer<'_>) -> Option<Operand> {
        let (name, x, y) = self.skip?;
        Some(w.emit.setp(&op(&format!("setp.{name}"), x.class()), x, y))
    }

    /// The induction variable.
    fn variable(&self, w: &mut Writer<'_>, of: Scalar) -> Operand {
        let class = self.counter.class();
        let counter = match self.how {
            How::Until(..) => self.counter,
            How::Flipped { signs, .. } => {
                w.emit.ins(&format!("xor.{}", class.ty()), class, [self.counter, signs])
            }
        };
        let counted = if class == Class::Double { Scalar::I64 } else { Scalar::I32 };
        w.emit.int_to_int(counted, of, counter)
    }

    fn test(&self, w: &mut Writer<'_>) -> Operand {
        let class = self.counter.class();
        match self.how {
            How::Until(name, limit) => {
                w.emit.setp(&op(&format!("setp.{name}"), class), self.counter, limit)
            }
            How::Flipped { upper, .. } => {
                let distance = w.emit.ins(&op("sub", class), class, [upper, self.counter]);
                w.emit.setp(&format!("setp.gt.u{}", class.bits()), distance, self.step)
            }
        }
    }

    fn step(&self, w: &mut Writer<'_>) {
        let class = self.counter.class();
        w.emit.put(&op("add", class), self.counter, &[self.counter, self.step]);
    }
}

/// An instruction on signed numbers.
fn op(name: &str, class: Class) -> String {
    format!("{name}.s{}", class.bits())
}
