//! Every op on every type and number of lanes.

use super::{COMPUTED, LANES, Probe, execute, for_loop, same, targets, write};
use naiad_ir::Scalar;
use naiad_ir::scalar::{BinaryFn, Predicate, Rounding, TernaryFn, UnaryFn, cast_bits};
use naiad_ir::thread::{Builder, Lanes, ThreadElem, ThreadOp, ThreadType, Vector};

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

#[test]
fn unary() {
    each("unary", |p, ty, lanes| {
        let x = p.input(ty, lanes);
        for &f in UnaryFn::ALL {
            if f.accepts(ty) && (ty.is_int() || is_one_instruction(f)) {
                let y = p.b.unary(f, x);
                p.output(y);
            }
        }
    });
}

fn is_one_instruction(f: UnaryFn) -> bool {
    use UnaryFn::{Abs, Ceil, Floor, Neg, Rint, Sqrt, SqrtRn, Trunc};
    matches!(f, Neg | Abs | Floor | Ceil | Trunc | Rint | Sqrt | SqrtRn)
}

/// Elementary functions are made of ops that the other tests run on all lanes, so that a few will do.
#[test]
fn elementary() {
    for ty in [Scalar::F32, Scalar::F64] {
        for lanes in [1, 4, 8] {
            for &f in UnaryFn::ALL {
                if f.accepts(ty) && !is_one_instruction(f) && (lanes == 4 || f <= UnaryFn::Erf) {
                    let mut p = Probe::new(&format!("{f}_{ty}x{lanes}"));
                    let x = p.input(ty, lanes);
                    let y = p.b.unary(f, x);
                    p.output(y);
                    p.check(60);
                }
            }
            for &f in BinaryFn::ALL {
                if f.accepts(ty) && lanes == 4 {
                    let mut p = Probe::new(&format!("{f}_{ty}x{lanes}"));
                    let (x, y) = (p.input(ty, lanes), p.input(ty, lanes));
                    let z = p.b.binary(f, x, y);
                    p.output(z);
                    p.check(60);
                }
            }
        }
    }
}

#[test]
fn binary() {
    each("binary", |p, ty, lanes| {
        let (x, y) = (p.input(ty, lanes), p.input(ty, lanes));
        for &f in BinaryFn::ALL {
            use BinaryFn::{Add, Div, Max, Min, MinNan, Mul, Sub};
            if f.accepts(ty)
                && (ty.is_int() || matches!(f, Add | Sub | Mul | Div | Min | Max | MinNan))
            {
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
        let known =
            [0, 1, 5, 7, 31, 255].map(|k| naiad_ir::tile::Constant { ty, bits: k & ty.mask() });
        let known = known.map(|k| p.b.constant(k, lanes));
        for &f in BinaryFn::ALL {
            if f.accepts(ty) && ty.is_int() {
                for y in [&[y], &known[..]].concat() {
                    let z = p.b.binary(f, x, y);
                    p.output(z);
                }
            }
        }
    });
}

#[test]
fn ternary() {
    each("ternary", |p, ty, lanes| {
        let [x, y, z] = [0; 3].map(|_| p.input(ty, lanes));
        for &f in TernaryFn::ALL {
            if f.accepts(ty) {
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

#[test]
fn casts() {
    for &from in Scalar::ALL {
        for lanes in LANES {
            for &rounding in Rounding::ALL {
                let mut p = Probe::new(&format!("cast_{from}x{lanes}"));
                let x = p.input(from, lanes);
                for &to in Scalar::ALL {
                    let y = p.b.cast(x, to, rounding);
                    p.output(y);
                }
                p.check(100);
            }
        }
    }
}

/// All images of the floats of at most 16 bits, and what lies around the middle between any two.
#[test]
fn casts_of_all_narrow_floats() {
    for &narrow in Scalar::ALL.iter().filter(|s| s.is_float() && s.bits() < 32) {
        for &rounding in Rounding::ALL {
            for from in [Scalar::F32, Scalar::F64, narrow] {
                let mut b = Builder::new("sweep");
                let [src, dst] = ["src", "dst"].map(|n| b.func.add_param(n, ThreadType::ADDR));
                let count = b.func.add_param("count", ThreadType::I64);
                let (zero, step) = (b.i64(0), b.i64(8));
                let to = if from == narrow { Scalar::F32 } else { narrow };
                for_loop(&mut b, [zero, count, step], vec![], |b, i, _| {
                    let at = |b: &mut Builder, base, ty: Scalar| {
                        let size = b.i64(ty.size() as i64);
                        let offset = b.mul(i, size);
                        b.addr_add(base, offset)
                    };
                    let from_at = at(b, src, from);
                    let x = b.load(from_at, 0, Vector::of(from.into(), 8));
                    let y = b.cast(x, to, rounding);
                    let to_at = at(b, dst, to);
                    b.store(to_at, 0, y);
                    vec![]
                });
                b.run(ThreadOp::Return {});

                let images = 0..=narrow.mask();
                let numbers: Vec<u64> = if from == narrow {
                    images.collect()
                } else {
                    let wide = |i| cast_bits(narrow, from, Rounding::Nearest, i);
                    let middle = |i| match from {
                        Scalar::F64 => {
                            let [a, b] =
                                [i, i + 1].map(|i| f64::from_bits(wide(i & narrow.mask())));
                            (a / 2.0 + b / 2.0).to_bits()
                        }
                        _ => {
                            let [a, b] =
                                [i, i + 1].map(|i| f32::from_bits(wide(i & narrow.mask()) as u32));
                            u64::from((a / 2.0 + b / 2.0).to_bits())
                        }
                    };
                    let around = |m: u64| [m.wrapping_sub(1), m, m + 1].map(|m| m & from.mask());
                    images.flat_map(|i| [around(wide(i)), around(middle(i))]).flatten().collect()
                };
                let padded = numbers.len().next_multiple_of(8);
                let mut input = vec![0u8; padded * from.size()];
                for (bytes, x) in input.chunks_exact_mut(from.size()).zip(&numbers) {
                    bytes.copy_from_slice(&x.to_le_bytes()[..from.size()]);
                }
                let mut output = vec![0u8; padded * to.size()];
                let slots = [input.as_ptr() as u64, output.as_mut_ptr() as u64, padded as u64];
                for (_, target) in targets() {
                    execute(&write(target, &b.func), &slots);
                    for (&x, bytes) in numbers.iter().zip(output.chunks_exact(to.size())) {
                        let mut got = [0; 8];
                        got[..to.size()].copy_from_slice(bytes);
                        let (got, want) =
                            (u64::from_le_bytes(got), cast_bits(from, to, rounding, x));
                        assert!(
                            same(to.into(), got, want),
                            "{x:#x}: {from} to {to}, {rounding:?}: {got:#x}, not {want:#x}"
                        );
                    }
                }
            }
        }
    }
}
