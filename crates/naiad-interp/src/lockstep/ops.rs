//! Ops of each thread that touch no memory.

use super::code::Step;
use super::exec::{Exec, Run};
use super::fault::FaultKind;
use super::mask::Mask;
use naiad_ir::scalar::{Rounding, cast_bits};
use naiad_ir::thread::NativeFn;
use naiad_ir::thread::uniform::{Uniform, Uniformity};
use naiad_ir::{Inst, Scalar, Value};

impl Exec<'_> {
    /// Runs an op's loop over all lanes of all threads. Those that are not on this way get numbers that
    /// nobody looks at: no function fails on any.
    pub fn elementwise(&mut self, inst: Inst, operands: &[Value]) {
        let code = self.code;
        let Step::Loop(f) = code.step(inst) else { return };
        let out = code.slot(code.func.results(inst)[0]);
        let mut ins = [std::ptr::null(); 3];
        for (p, &v) in ins.iter_mut().zip(operands) {
            *p = self.values.start(code.slot(v));
        }
        let n = self.values.len(out);
        // SAFETY: the verifier gave the operands and the result equal numbers of lanes, of the types
        // that the loop was looked up for; slots are aligned and do not overlap.
        unsafe { f(ins, self.values.start_mut(out), n) };
    }

    pub fn native(&mut self, inst: Inst, f: NativeFn, args: &[Value]) {
        if f != NativeFn::Reciprocal {
            return self.elementwise(inst, args);
        }
        let out = self.code.slot(self.code.func.results(inst)[0]);
        for row in 0..out.rows {
            let from = self.values.row::<u32>(self.code.slot(args[0]), row).to_vec();
            let lanes = self.values.row_mut::<u32>(out, row).iter_mut().zip(from);
            lanes.for_each(|(o, x)| *o = (1.0 / f32::from_bits(x)).to_bits());
        }
    }

    /// `any` and `all`.
    pub fn fold_lanes(&mut self, mask: Value, result: Value, f: impl Fn(u8, u8) -> u8) {
        let (from, to) = (self.code.slot(mask), self.code.slot(result));
        self.values.copy_row((from, 0), (to, 0), &self.full);
        for row in 1..from.rows {
            let lanes = self.values.row::<u8>(from, row).to_vec();
            let out = self.values.row_mut::<u8>(to, 0).iter_mut();
            out.zip(lanes).for_each(|(o, x)| *o = f(*o, x));
        }
    }

    /// Inline assembly, thread by thread.
    pub fn assembly(&mut self, inst: Inst, args: &[Value], mask: &Mask) {
        let code = self.code;
        let Step::Asm(program) = code.step(inst) else { return };
        let results = code.func.results(inst);
        let mut out = vec![0; results.len()];
        let mut registers = std::mem::take(&mut self.registers);
        for t in mask.threads() {
            let images: Vec<u64> =
                args.iter().map(|&v| self.values.image(code.slot(v), 0, t)).collect();
            program.call(&mut registers, &images, &mut out, &mut || self.time());
            for (&v, &image) in results.iter().zip(&out) {
                self.values.set(code.slot(v), 0, t, image & code.scalar(v).mask());
            }
        }
        self.registers = registers;
    }

    /// Holds the results of an op against what is claimed of them. Threads that combine the same numbers in
    /// another order may get another NaN, which is nobody's promise.
    pub fn judge(&self, claims: &Uniform, inst: Inst, mask: &Mask) -> Run<()> {
        for &result in self.code.func.results(inst) {
            let level = claims.of(result);
            let slot = self.code.slot(result);
            let of_type = self.code.scalar(result);
            let is_nan = |x| {
                let wide = cast_bits(of_type, Scalar::F64, Rounding::Nearest, x);
                of_type.is_float() && f64::from_bits(wide).is_nan()
            };
            let differ = |x, y| x != y && !(is_nan(x) && is_nan(y));
            for row in 0..slot.rows {
                let mut first = None;
                for t in mask.threads() {
                    let (image, of) = match level {
                        Uniformity::Thread => break,
                        Uniformity::Warp => (self.values.image(slot, row, t), t / 32),
                        Uniformity::Block => (self.values.image(slot, row, t), 0),
                    };
                    match first {
                        Some((x, same)) if same == of && differ(x, image) => {
                            let what = format!("gives thread {t} another {level:?}-uniform value");
                            return self.fault(FaultKind::FalseClaim, inst, Some(t), what);
                        }
                        Some((_, same)) if same == of => {}
                        _ => first = Some((image, of)),
                    }
                }
            }
        }
        Ok(())
    }

    /// The time.
    pub fn time(&mut self) -> u64 {
        self.looks += 1;
        self.options.clock.map_or_else(|| self.turns.look() * 1000, |clock| clock())
    }
}
