//! Every op on every type and number of lanes.

use super::{COMPUTED, LANES, Probe};
use naiad_ir::Scalar;
use naiad_ir::scalar::{BinaryFn, Predicate, TernaryFn, UnaryFn};
use naiad_ir::thread::{Lanes, ThreadElem, ThreadOp};

const ROUNDS: usize = 40;

fn each(name: &str, build: impl Fn(&mut Probe, Scalar, u32)) {
    for ty in COMPUTED {
        for lanes in LANES {
            let mut p = Probe::new(&format!("{name}_{ty}x{lanes}"));
            build(&mut p, ty, lanes);
            p.check(ROUNDS);
        }
    }
}

/// What the writer has instructions or sequences for.
fn native(ty: Scalar, of_floats: bool) -> bool {
    ty.is_int() || of_floats
}

#[test]
fn unary() {
    each("unary", |p, ty, lanes| {
        let x = p.input(ty, lanes);
        for &f in UnaryFn::ALL {
            use UnaryFn::{Abs, Ceil, Floor, Neg, Rint, Sqrt, SqrtRn, Trunc};
            let of_floats = matches!(f, Neg | Abs | Floor | Ceil | Trunc | Rint | Sqrt | SqrtRn);
            if f.accepts(ty) && native(ty, of_floats) {
                let y = p.b.unary(f, x);
                p.output(y);
            }
        }
    });
}

#[test]
fn binary() {
    each("binary", |p, ty, lanes| {
        let (x, y) = (p.input(ty, lanes), p.input(ty, lanes));
        for &f in BinaryFn::ALL {
            use BinaryFn::{Add, Div, Mul, Sub};
            if f.accepts(ty) && native(ty, matches!(f, Add | Sub | Mul | Div)) {
                let z = p.b.binary(f, x, y);
                p.output(z);
            }
        }
    });
}

#[test]
fn binary_with_one_scalar() {
    each("uniform", |p, ty, lanes| {
        let (x, y) = (p.input(ty, lanes), p.input(ty, 1));
        let y = p.b.splat(y, lanes);
        for &f in BinaryFn::ALL {
            use BinaryFn::{Add, Div, Mul, Sub};
            if f.accepts(ty) && native(ty, matches!(f, Add | Sub | Mul | Div)) {
                let z = p.b.binary(f, x, y);
                p.output(z);
            }
        }
    });
}

#[test]
fn ternary() {
    each("ternary", |p, ty, lanes| {
        let [x, y, z] = [0; 3].map(|_| p.input(ty, lanes));
        for f in [TernaryFn::Fma, TernaryFn::Clamp] {
            if f.accepts(ty) && native(ty, f == TernaryFn::Fma) {
                let out = p.b.op(ThreadOp::Ternary { f, a: x, b: y, c: z });
                p.output(out);
            }
        }
    });
}

#[test]
fn compare_and_select() {
    each("compare", |p, ty, lanes| {
        let [x, y, a, b] = [0; 4].map(|_| p.input(ty, lanes));
        let wide = [p.input(Scalar::F64, lanes), p.input(Scalar::F64, lanes)];
        let narrow = [p.input(Scalar::I8, lanes), p.input(Scalar::I8, lanes)];
        for &f in Predicate::ALL {
            let mask = p.b.compare(f, x, y);
            p.output(mask);
            let other = p.b.compare(f, a, y);
            let both = p.b.binary(BinaryFn::And, mask, other);
            for [yes, no] in [[a, b], [x, y], [y, x], wide, narrow, [mask, other]] {
                let chosen = p.b.select(mask, yes, no);
                p.output(chosen);
                let chosen = p.b.select(both, yes, no);
                p.output(chosen);
            }
            let any = p.b.op(ThreadOp::Any { mask });
            let all = p.b.op(ThreadOp::All { mask });
            p.output(any);
            p.output(all);
        }
    });
}

#[test]
fn lanes_move() {
    let elems = Scalar::ALL.iter().map(|&s| ThreadElem::Scalar(s)).chain([ThreadElem::Addr]);
    for elem in elems {
        for lanes in LANES {
            let mut p = Probe::new(&format!("lanes_{elem}x{lanes}"));
            let (x, y, s) = (p.input(elem, lanes), p.input(elem, lanes), p.input(elem, 1));
            for n in [1, 2, 4, 16, 64] {
                let many = p.b.splat(s, n);
                p.output(many);
                if elem.scalar().is_some_and(Scalar::is_int) {
                    let row = p.b.op(ThreadOp::Iota { elem, lanes: Lanes(n) });
                    p.output(row);
                }
            }
            for lane in 0..lanes {
                let one = p.b.op(ThreadOp::Extract { src: x, lane });
                p.output(one);
            }
            let n = 2 * lanes;
            let orders: Vec<Vec<u32>> = vec![
                (0..lanes).rev().collect(),
                (0..lanes).map(|i| i / 2 + i % 2 * lanes).collect(),
                (0..n).rev().collect(),
                (0..n).map(|i| i * 7 % n).collect(),
                vec![n - 1],
                vec![n - 1, 0],
                vec![lanes - 1; 8],
                (0..32).map(|i| i * 5 % n).collect(),
            ];
            for order in orders {
                let order = naiad_ir::thread::Permutation(order.into());
                let out = p.b.op(ThreadOp::Shuffle { a: x, b: y, order });
                p.output(out);
            }
            p.check(4);
        }
    }
}

#[test]
fn bits_keep() {
    for &from in Scalar::ALL {
        for &to in Scalar::ALL {
            if from.bits() != to.bits() {
                continue;
            }
            for lanes in LANES {
                let mut p = Probe::new(&format!("bits_{from}_{to}x{lanes}"));
                let x = p.input(from, lanes);
                let y = p.b.bitcast(x, to);
                p.output(y);
                p.check(4);
            }
        }
    }
}
