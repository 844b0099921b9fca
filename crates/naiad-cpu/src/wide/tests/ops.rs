//! Every op on every type and number of lanes; and which of them are left to Cranelift.

use super::{Level, Trial, levels};
use crate::clif::tests::COMPUTED;
use naiad_ir::Scalar;
use naiad_ir::scalar::{BinaryFn, Predicate, Rounding, TernaryFn, UnaryFn};
use naiad_ir::thread::{Lanes, ThreadElem, ThreadOp};
use naiad_ir::tile::Constant;

const LANES: [u32; 4] = [4, 8, 16, 64];
const ROUNDS: usize = 12;

/// Checks trials of ops, each of its own; gives those that are not written.
#[derive(Default)]
struct Survey {
    left: Vec<String>,
}

impl Survey {
    fn one(&mut self, name: &str, lanes: u32, build: impl Fn(&mut Trial)) {
        let mut t = Trial::new(&format!("{name} x{lanes}"), lanes);
        build(&mut t);
        for level in levels() {
            if !t.is_wide(level) {
                self.left.push(format!("{level:?} {name} x{lanes}"));
            }
        }
        t.compare(ROUNDS);
    }

    /// That everything is written where the machine has the widest vectors.
    fn has_all(self) {
        let left = self.left.iter().find(|l| l.starts_with("Avx512"));
        assert_eq!(left, None, "left to Cranelift");
    }

    /// That these are.
    fn has(self, names: &[&str]) {
        if Level::host() != Some(Level::Avx512) {
            return;
        }
        for name in names {
            let start = format!("Avx512 {name} x");
            let left = self.left.iter().find(|l| l.starts_with(&start));
            assert_eq!(left, None, "left to Cranelift");
        }
    }
}

fn each(types: &[Scalar], mut f: impl FnMut(Scalar, u32)) {
    for &ty in types {
        for lanes in LANES {
            f(ty, lanes);
        }
    }
}

#[test]
fn unary() {
    let mut survey = Survey::default();
    each(&COMPUTED, |ty, lanes| {
        for &f in UnaryFn::ALL {
            if f.accepts(ty) && (ty.is_int() || lanes == 16) {
                survey.one(&format!("{f} {ty}"), lanes, |t| {
                    let x = t.input(ty);
                    let y = t.b.unary(f, x);
                    t.output(y);
                });
            }
        }
    });
    survey.has(&["neg fp32", "abs fp32", "sqrt fp32", "exp fp32", "tanh fp32", "log fp32"]);
}

#[test]
fn binary() {
    let mut survey = Survey::default();
    each(&COMPUTED, |ty, lanes| {
        for &f in BinaryFn::ALL {
            if f.accepts(ty) && (ty.is_int() || lanes == 16) {
                survey.one(&format!("{f} {ty}"), lanes, |t| {
                    let (x, y) = (t.input(ty), t.input(ty));
                    let z = t.b.binary(f, x, y);
                    t.output(z);
                });
            }
        }
    });
    survey.has(&["add fp32", "mul fp32", "div fp32", "max fp32", "add i32", "and i32"]);
}

#[test]
fn by_a_constant() {
    let mut survey = Survey::default();
    each(&COMPUTED, |ty, lanes| {
        for f in [BinaryFn::Shl, BinaryFn::Shr, BinaryFn::Mul, BinaryFn::Add] {
            if !f.accepts(ty) {
                continue;
            }
            survey.one(&format!("{f} {ty} by a constant"), lanes, |t| {
                let x = t.input(ty);
                for by in [0, 1, 5, 7, 31, 63, 200] {
                    let y = t.b.constant(Constant { ty, bits: by & ty.mask() }, t.lanes);
                    let z = t.b.binary(f, x, y);
                    t.output(z);
                    let z = t.b.binary(f, y, x);
                    t.output(z);
                }
            });
            survey.one(&format!("{f} {ty} by a scalar"), lanes, |t| {
                let (x, y) = (t.input(ty), t.scalar(ty));
                let y = t.b.splat(y, t.lanes);
                let z = t.b.binary(f, x, y);
                t.output(z);
                let z = t.b.binary(f, y, x);
                t.output(z);
            });
        }
    });
    survey.has_all();
}

#[test]
fn ternary() {
    let mut survey = Survey::default();
    each(&COMPUTED, |ty, lanes| {
        for &f in TernaryFn::ALL {
            if f.accepts(ty) {
                survey.one(&format!("{f} {ty}"), lanes, |t| {
                    let [x, y, z] = [0; 3].map(|_| t.input(ty));
                    for [a, b, c] in [[x, y, z], [x, x, z], [x, y, x], [x, y, y], [z, z, z]] {
                        let out = t.b.op(ThreadOp::Ternary { f, a, b, c });
                        t.output(out);
                    }
                });
            }
        }
    });
    survey.has_all();
}

#[test]
fn compare_and_select() {
    let mut survey = Survey::default();
    each(&COMPUTED, |ty, lanes| {
        for &p in Predicate::ALL {
            survey.one(&format!("compare {p} {ty}"), lanes, |t| {
                let (x, y) = (t.input(ty), t.input(ty));
                let mask = t.b.compare(p, x, y);
                t.output(mask);
                for [yes, no] in [[x, y], [y, x]] {
                    let chosen = t.b.select(mask, yes, no);
                    t.output(chosen);
                }
            });
        }
    });
    for from in COMPUTED {
        for to in COMPUTED {
            for lanes in LANES {
                survey.one(&format!("select {to} by {from}"), lanes, |t| {
                    let (x, y, yes, no) = (t.input(from), t.input(from), t.input(to), t.input(to));
                    let mask = t.b.compare(Predicate::Lt, x, y);
                    let same = t.b.compare(Predicate::Eq, yes, no);
                    let both = t.b.binary(BinaryFn::And, mask, same);
                    let either = t.b.binary(BinaryFn::Xor, same, mask);
                    for m in [mask, both, either] {
                        let chosen = t.b.select(m, yes, no);
                        t.output(chosen);
                        let chosen = t.b.select(m, same, mask);
                        t.output(chosen);
                    }
                });
            }
        }
    }
    survey.has_all();
}

#[test]
fn casts() {
    let mut survey = Survey::default();
    for &from in Scalar::ALL {
        for &to in Scalar::ALL {
            for &rounding in Rounding::ALL {
                for lanes in LANES {
                    survey.one(&format!("cast {from} {to} {rounding:?}"), lanes, |t| {
                        let x = t.input(from);
                        let y = t.b.cast(x, to, rounding);
                        t.output(y);
                    });
                }
            }
        }
    }
    survey.has_all();
}

#[test]
fn accesses() {
    let mut survey = Survey::default();
    let elems = Scalar::ALL.iter().map(|&s| ThreadElem::Scalar(s)).chain([ThreadElem::Addr]);
    for elem in elems {
        for lanes in LANES {
            survey.one(&format!("copy {elem}"), lanes, |t| {
                let x = t.input(elem);
                t.output(x);
                if elem != ThreadElem::Scalar(Scalar::I1) {
                    let s = t.scalar(elem);
                    let s = t.b.splat(s, t.lanes);
                    t.output(s);
                }
            });
            survey.one(&format!("masked copy {elem}"), lanes, |t| {
                let (a, b) = (t.input(Scalar::I32), t.input(Scalar::I32));
                let mask = t.b.compare(Predicate::Lt, a, b);
                let x = t.masked_input(elem, Some(mask));
                t.masked_output(x, Some(mask));
                t.output(x);
            });
            if elem.scalar().is_some_and(|s| s.is_int() && !s.is_bool()) {
                survey.one(&format!("iota {elem}"), lanes, |t| {
                    let x = t.b.op(ThreadOp::Iota { elem, lanes: Lanes(t.lanes) });
                    t.output(x);
                });
            }
        }
    }
    survey.has(&["copy fp16", "copy bf16", "masked copy fp32", "iota i32"]);
}
