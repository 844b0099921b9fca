//! Random loops of all ops that are written.

use super::{Random, Trial, levels};
use naiad_ir::scalar::{BinaryFn, Predicate, Rounding, TernaryFn, UnaryFn};
use naiad_ir::thread::ThreadOp;
use naiad_ir::{Scalar, Value};

const LOOPS: u64 = 400;
const ROUNDS: usize = 3;

/// A value of a loop with its type.
type Typed = (Value, Scalar);

struct Loop {
    t: Trial,
    r: Random,
    values: Vec<Typed>,
}

impl Loop {
    fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.r.below(all.len() as u64) as usize]
    }

    /// Mostly something late.
    fn any(&mut self) -> Typed {
        let from = self.values.len().saturating_sub(1 + self.r.below(6) as usize);
        self.values[from]
    }

    fn like(&mut self, ty: Scalar) -> Value {
        let same: Vec<Typed> = self.values.iter().filter(|v| v.1 == ty).copied().collect();
        match same.is_empty() {
            true => {
                let (x, _) = self.any();
                self.t.b.cast(x, ty, Rounding::Nearest)
            }
            false => self.pick(&same).0,
        }
    }

    fn op(&mut self) {
        let (x, ty) = self.any();
        // Narrow floats are not computed with.
        let made = match self.r.below(12) {
            _ if ty.compute_type() != ty => {
                Some((self.t.b.cast(x, Scalar::F32, Rounding::Nearest), Scalar::F32))
            }
            0 | 1 => {
                let f = self.pick(&[UnaryFn::Neg, UnaryFn::Abs, UnaryFn::Not, UnaryFn::Exp2]);
                f.accepts(ty).then(|| (self.t.b.unary(f, x), ty))
            }
            2..=4 => {
                let f = self.pick(BinaryFn::ALL);
                let y = self.like(ty);
                // What is a long sequence of the others is tested by itself.
                let long = matches!(f, BinaryFn::Pow | BinaryFn::Atan2 | BinaryFn::Fmod);
                (f.accepts(ty) && !long).then(|| (self.t.b.binary(f, x, y), ty))
            }
            5 => {
                let f = self.pick(TernaryFn::ALL);
                let (b, c) = (self.like(ty), self.like(ty));
                let op = ThreadOp::Ternary { f, a: x, b, c };
                f.accepts(ty).then(|| (self.t.b.op(op), ty))
            }
            6 => {
                let (p, y) = (self.pick(Predicate::ALL), self.like(ty));
                Some((self.t.b.compare(p, x, y), Scalar::I1))
            }
            7 | 8 => {
                let (mask, y) = (self.like(Scalar::I1), self.like(ty));
                Some((self.t.b.select(mask, x, y), ty))
            }
            9 => (self.t.b.func.params().len() < 10).then(|| {
                let s = self.t.scalar(ty);
                (self.t.b.splat(s, self.t.lanes), ty)
            }),
            _ => {
                let to = self.pick(Scalar::ALL);
                // It has no NaN, and would show the sign of one, which is nobody's business.
                let to = if to == Scalar::F8E4B15 { Scalar::F8E5 } else { to };
                let rounding = self.pick(Rounding::ALL);
                Some((self.t.b.cast(x, to, rounding), to))
            }
        };
        self.values.extend(made);
    }
}

#[test]
fn same_numbers() {
    let mut written = [0; 2];
    for seed in 0..LOOPS {
        let mut r = Random(0x9e37_79b9_7f4a_7c15u64.wrapping_mul(seed + 1));
        let lanes = [4, 8, 16, 64][r.below(4) as usize];
        let t = Trial::new(&format!("random {seed}"), lanes);
        let mut l = Loop { t, r, values: Vec::new() };
        for _ in 0..2 + l.r.below(3) {
            let ty = l.pick(Scalar::ALL);
            let x = l.t.input(ty);
            l.values.push((x, ty));
        }
        for _ in 0..4 + l.r.below(24) {
            l.op();
        }
        for _ in 0..1 + l.r.below(4) {
            let (x, _) = l.any();
            l.t.output(x);
        }
        for (level, count) in levels().zip(&mut written) {
            *count += u64::from(l.t.is_wide(level));
        }
        l.t.compare(ROUNDS);
    }
    for (level, count) in levels().zip(written) {
        assert!(count > LOOPS / 4, "{level:?}: {count} of {LOOPS} are written");
    }
}
