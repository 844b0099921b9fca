//! Control flow.

use super::Report;
use super::lanes::{Lanes, part_type};
use super::memory::ACCESS;
use super::writer::{Made, Writer, Written};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, InstBuilder, types};
use naiad_ir::thread::ThreadOp;
use naiad_ir::{Block, Value};
use smallvec::SmallVec;
use std::mem::offset_of;

/// Values of a report.
const MAX_VALUES: usize = 4;

/// What a jump passes on.
pub type Args = SmallVec<[ir::BlockArg; 8]>;

impl Writer<'_, '_> {
    pub fn guard(&mut self, cond: Value, site: u32, values: &[Value]) -> Written {
        let cond = self.one(cond)?;
        let values = values.iter().map(|&v| self.one(v)).collect::<Result<Vec<_>, _>>()?;
        let b = &mut self.emit.b;
        let (on, failed) = (b.create_block(), b.create_block());
        b.set_cold_block(failed);
        b.ins().brif(cond, on, &[], failed, &[]);
        b.seal_block(failed);
        b.seal_block(on);
        self.emit.enter(on);
        self.failures.push((failed, site, values));
        Ok(())
    }

    pub fn failures(&mut self) {
        for (block, site, values) in std::mem::take(&mut self.failures) {
            let e = &mut self.emit;
            e.enter(block);
            let site = e.iconst(types::I32, i64::from(site));
            e.b.ins().store(ACCESS, site, self.report, offset_of!(Report, site) as i32);
            let count = values.len().min(MAX_VALUES);
            let count = e.iconst(types::I32, count as i64);
            e.b.ins().store(ACCESS, count, self.report, offset_of!(Report, count) as i32);
            for (i, v) in values.into_iter().take(MAX_VALUES).enumerate() {
                let at = offset_of!(Report, values) + 8 * i;
                e.b.ins().store(ACCESS, v, self.report, at as i32);
            }
            let failed = e.iconst(types::I8, 0);
            e.b.ins().return_(&[failed]);
        }
    }

    /// The op that ends a block, as its values.
    fn yields(&self, block: Block) -> Result<Vec<Lanes>, String> {
        match self.func.terminator(block) {
            Some(ThreadOp::Yield { values }) => self.all(values),
            _ => Err(format!("{block} does not yield")),
        }
    }

    /// Parameters of a Cranelift block that take values like these.
    pub fn block_params(&mut self, block: ir::Block, like: &[Lanes]) -> Made {
        like.iter()
            .map(|x| {
                let ty = part_type(x.lane, x.count);
                let parts =
                    (0..x.num_parts()).map(|_| self.emit.b.append_block_param(block, ty)).collect();
                Lanes::vector(x.lane, x.count, parts)
            })
            .collect()
    }

    /// Arguments for parameters that were made by [`Writer::block_params`]: masks take their width.
    pub fn block_args(&mut self, params: &[Lanes], values: &[Lanes]) -> Args {
        let mut args = Args::new();
        for (param, value) in params.iter().zip(values) {
            let value = if param.lane == value.lane {
                value.clone()
            } else {
                self.emit.mask_of(value, param.lane.bits())
            };
            args.extend(self.emit.parts(&value).into_iter().map(ir::BlockArg::from));
        }
        args
    }

    pub fn bind(&mut self, params: &[Value], values: &[Lanes]) {
        for (&p, v) in params.iter().zip(values) {
            self.values[p.index()] = Some(v.clone());
        }
    }

    /// ```text
    ///   jump test(lower, inits)
    ///   test(iv, carried):  brif iv < upper, inside, exit
    ///   inside:             ...; jump test(iv + step, next)
    /// ```
    ///
    /// The test is in front, so that what is carried is passed on in one place: Cranelift takes loads
    /// into instructions only where nothing above them is used twice. A test behind would cost the
    /// same two jumps a round, since what it passes on has to be moved on the way.
    ///
    /// A loop that counts down is turned round: all bits flipped, it counts up. What is narrower than 64
    /// bits is counted in 64, where bound plus step fits. In 64 bits the induction variable may wrap
    /// before it reaches the bound, so that the rounds are counted instead.
    pub fn for_loop(
        &mut self,
        bounds: [Value; 3],
        inits: &[Value],
        body: Block,
    ) -> Result<Made, String> {
        let bounds = [self.get(bounds[0])?, self.get(bounds[1])?, self.get(bounds[2])?];
        let inits = self.all(inits)?;
        let (narrow, wide) = (bounds[0].lane, types::I64);
        let bounds = bounds.map(|x| self.emit.resize(&x, 64, true));
        let known = [1, 2].map(|i| bounds[i].known_int());
        let [mut lower, mut upper, step] = bounds.map(|x| self.emit.one(&x));
        let counts_up = known[1].is_some_and(|step| step >= 0);
        let b = &mut self.emit.b;
        let (mut size, mut flip) = (step, None);
        if !counts_up {
            let signs = b.ins().sshr_imm_u(step, 63);
            [lower, upper] = [lower, upper].map(|x| b.ins().bxor(x, signs));
            size = b.ins().iabs(step);
            flip = Some(signs);
        }
        let fits = matches!(known, [Some(end), Some(by)] if end.checked_add(by).is_some());
        let rounds = if narrow == wide && !(fits && counts_up) {
            Some(self.rounds(lower, upper, size, known[1].filter(|_| counts_up)))
        } else {
            None
        };

        let [test, inside, exit] = [0; 3].map(|_| self.emit.b.create_block());
        let [at, left] = [0; 2].map(|_| self.emit.b.append_block_param(test, wide));
        let carried = self.block_params(test, &inits);
        let mut enter: Args = SmallVec::from_iter([lower.into(), rounds.unwrap_or(lower).into()]);
        enter.extend(self.block_args(&carried, &inits));
        self.emit.b.ins().jump(test, &enter);
        self.emit.enter(test);
        // The block that is named last is laid out first, which is to be the body.
        let b = &mut self.emit.b;
        let ends = match rounds {
            Some(_) => b.ins().icmp_imm_u(IntCC::Equal, left, 0),
            None => b.ins().icmp(IntCC::SignedGreaterThanOrEqual, at, upper),
        };
        b.ins().brif(ends, exit, &[], inside, &[]);
        self.emit.b.seal_block(inside);
        self.emit.b.seal_block(exit);

        self.emit.enter(inside);
        let iv = flip.map_or(at, |signs| self.emit.b.ins().bxor(at, signs));
        let iv = self.emit.resize(&Lanes::scalar(wide, iv), narrow.bits(), true);
        let params = self.func.block_params(body);
        self.bind(&params[..1], &[iv]);
        self.bind(&params[1..], &carried);
        self.block(body)?;
        let values = self.yields(body)?;
        let b = &mut self.emit.b;
        let next = b.ins().iadd(at, size);
        let left = if rounds.is_some() { b.ins().iadd_imm_s(left, -1) } else { next };
        let mut back: Args = SmallVec::from_iter([next.into(), left.into()]);
        back.extend(self.block_args(&carried, &values));
        self.emit.b.ins().jump(test, &back);
        self.emit.b.seal_block(test);
        self.emit.enter(exit);
        Ok(carried)
    }

    /// How often a loop that counts up runs. One that never moves on never ends, as far as anybody
    /// can tell.
    fn rounds(
        &mut self,
        lower: ir::Value,
        upper: ir::Value,
        size: ir::Value,
        known: Option<i64>,
    ) -> ir::Value {
        let b = &mut self.emit.b;
        let runs = b.ins().icmp(IntCC::SignedLessThan, lower, upper);
        let distance = b.ins().isub(upper, lower);
        let before_last = b.ins().iadd_imm_s(distance, -1);
        let whole = match known {
            Some(size) if size > 0 && size.count_ones() == 1 => {
                b.ins().ushr_imm_u(before_last, i64::from(size.trailing_zeros()))
            }
            Some(size) if size > 0 => {
                let size = b.ins().iconst(types::I64, size);
                b.ins().udiv(before_last, size)
            }
            _ => {
                let one = b.ins().iconst(types::I64, 1);
                let divisor = b.ins().umax(size, one);
                let whole = b.ins().udiv(before_last, divisor);
                let forever = b.ins().iconst(types::I64, i64::MAX);
                b.ins().select(size, whole, forever)
            }
        };
        let rounds = b.ins().iadd_imm_s(whole, 1);
        let none = b.ins().iconst(types::I64, 0);
        b.ins().select(runs, rounds, none)
    }

    pub fn while_loop(
        &mut self,
        inits: &[Value],
        before: Block,
        after: Block,
    ) -> Result<Made, String> {
        let inits = self.all(inits)?;
        let [test, inside, exit] = [0; 3].map(|_| self.emit.b.create_block());
        let carried = self.block_params(test, &inits);
        let enter = self.block_args(&carried, &inits);
        self.emit.b.ins().jump(test, &enter);

        self.emit.enter(test);
        self.bind(self.func.block_params(before), &carried);
        self.block(before)?;
        let Some(ThreadOp::Condition { cond, values }) = self.func.terminator(before) else {
            return Err(format!("{before} has no condition"));
        };
        let (cond, passed) = (self.one(*cond)?, self.all(values)?);
        let b = &mut self.emit.b;
        let ends = b.ins().icmp_imm_u(IntCC::Equal, cond, 0);
        b.ins().brif(ends, exit, &[], inside, &[]);
        self.emit.b.seal_block(inside);
        self.emit.b.seal_block(exit);

        self.emit.enter(inside);
        self.bind(self.func.block_params(after), &passed);
        self.block(after)?;
        let values = self.yields(after)?;
        let back = self.block_args(&carried, &values);
        self.emit.b.ins().jump(test, &back);
        self.emit.b.seal_block(test);
        self.emit.enter(exit);
        Ok(passed.into())
    }

    pub fn if_else(&mut self, cond: Value, then: Block, otherwise: Block) -> Result<Made, String> {
        let cond = self.one(cond)?;
        let b = &mut self.emit.b;
        let (yes, no, join) = (b.create_block(), b.create_block(), b.create_block());
        b.ins().brif(cond, yes, &[], no, &[]);
        b.seal_block(yes);
        b.seal_block(no);

        self.emit.enter(yes);
        self.block(then)?;
        let values = self.yields(then)?;
        let results = self.block_params(join, &values);
        let args = self.block_args(&results, &values);
        self.emit.b.ins().jump(join, &args);

        self.emit.enter(no);
        self.block(otherwise)?;
        let values = self.yields(otherwise)?;
        let args = self.block_args(&results, &values);
        self.emit.b.ins().jump(join, &args);
        self.emit.b.seal_block(join);
        self.emit.enter(join);
        Ok(results)
    }
}
