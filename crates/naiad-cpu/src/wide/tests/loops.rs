//! What is around the ops: what is carried, addresses, and more values than registers.

use super::{Trial, levels};
use crate::clif::tests::{execute, table};
use crate::clif::{Options, write_with};
use crate::native::expand;
use crate::wide::{Other, When, write};
use naiad_interp::thread::Outcome;
use naiad_ir::Scalar;
use naiad_ir::Value;
use naiad_ir::scalar::{BinaryFn, TernaryFn};
use naiad_ir::thread::{Builder, ThreadOp, ThreadType, Vector};
use naiad_ir::tile::{Constant, Eviction, MemHints};

#[test]
fn sums() {
    for ty in [Scalar::F32, Scalar::F64, Scalar::I32, Scalar::I64] {
        for lanes in [4, 16, 64] {
            let mut t = Trial::carrying("sums", lanes, |b| {
                let zero = b.constant(Constant { ty, bits: 0 }, lanes);
                vec![zero, zero, zero]
            });
            let (x, y) = (t.input(ty), t.input(ty));
            let [a, b, c] = [0, 1, 2].map(|i| t.next[i]);
            let sum = t.b.binary(BinaryFn::Add, a, x);
            let difference = t.b.binary(BinaryFn::Sub, y, b);
            // An old value after its successor is there.
            let late = t.b.binary(BinaryFn::Add, c, sum);
            let later = t.b.binary(BinaryFn::Sub, late, a);
            t.output(later);
            t.next = vec![sum, difference, late];
            t.check(40);
        }
    }
}

/// Values that a round passes on under other names.
#[test]
fn rotations() {
    for count in [2usize, 3, 9, 40] {
        let lanes = 16;
        let mut t = Trial::carrying("rotations", lanes, |b| {
            (0..count).map(|i| b.constant(Constant::int(Scalar::I32, i as i128), lanes)).collect()
        });
        let mut next = t.next.clone();
        next.rotate_left(1);
        let x = t.input(Scalar::I32);
        next[0] = t.b.binary(BinaryFn::Add, next[0], x);
        // One and the same value twice, one that is not changed, and one that is the same in all rounds.
        if count > 3 {
            next[1] = next[0];
            next[2] = t.next[2];
            next[3] = t.b.constant(Constant::int(Scalar::I32, 77), lanes);
        }
        t.next = next;
        t.check(40);
    }
}

/// Starts that the code around the loop computes.
#[test]
fn vectors_from_outside() {
    for lanes in [4, 16, 64] {
        for ty in [Scalar::F32, Scalar::I8, Scalar::F16, Scalar::I64] {
            if ty.size() as u32 * lanes < 4 {
                continue;
            }
            let mut t = Trial::carrying("outside", lanes, |b| {
                let base = b.func.params()[0];
                let x = b.load(base, 64, Vector::of(ty.into(), lanes));
                vec![x]
            });
            let outside = t.b.func.op(t.b.func.insts(t.b.func.entry())[1]).clone();
            assert!(matches!(outside, ThreadOp::Load { .. }));
            let first = t.input(ty);
            let bits = t.b.bitcast(first, first_int(ty));
            let acc = t.b.bitcast(t.next[0], first_int(ty));
            let mixed = t.b.binary(BinaryFn::Xor, bits, acc);
            t.next = vec![t.b.bitcast(mixed, ty)];
            t.check(20);
        }
    }
}

fn first_int(ty: Scalar) -> Scalar {
    match ty.size() {
        1 => Scalar::I8,
        2 => Scalar::I16,
        4 => Scalar::I32,
        _ => Scalar::I64,
    }
}

/// Far more values at once than there are registers, of numbers and of masks.
#[test]
fn many_values() {
    for (lanes, count) in [(16, 20), (16, 50), (64, 12), (8, 40)] {
        let mut t = Trial::new("many", lanes);
        let xs: Vec<Value> = (0..count).map(|_| t.input(Scalar::F32)).collect();
        let masks: Vec<Value> = (1..count)
            .map(|i| t.b.compare(naiad_ir::scalar::Predicate::Lt, xs[i - 1], xs[i]))
            .collect();
        let mut all = Vec::new();
        for i in 0..count {
            let (a, b, c) = (xs[i], xs[(i * 7 + 3) % count], xs[(i * 5 + 1) % count]);
            all.push(t.b.op(ThreadOp::Ternary { f: TernaryFn::Fma, a, b, c }));
        }
        for i in 1..count {
            let chosen = t.b.select(masks[i - 1], all[i], xs[count - i]);
            t.output(chosen);
        }
        for &x in all.iter().rev() {
            t.output(x);
        }
        t.check(12);
    }
}

/// More constants and invariants than registers.
#[test]
fn many_invariants() {
    for lanes in [8, 16, 64] {
        let mut t = Trial::new("invariants", lanes);
        let x = t.input(Scalar::F32);
        let scalars: Vec<Value> = (0..6).map(|_| t.scalar(Scalar::F32)).collect();
        let splats: Vec<Value> = scalars.iter().map(|&s| t.b.splat(s, lanes)).collect();
        let mut y = x;
        for i in 0..60u32 {
            let c = t.b.constant(Constant::float(Scalar::F32, f64::from(i) * 0.37 - 9.0), lanes);
            let s = splats[i as usize % 6];
            let both = t.b.binary(BinaryFn::Mul, c, s);
            let z = match i % 4 {
                0 => t.b.binary(BinaryFn::Add, y, c),
                1 => t.b.op(ThreadOp::Ternary { f: TernaryFn::Fma, a: y, b: s, c }),
                2 => t.b.op(ThreadOp::Ternary { f: TernaryFn::Fma, a: c, b: both, c: y }),
                _ => t.b.binary(BinaryFn::Sub, s, y),
            };
            y = z;
        }
        t.output(y);
        t.check(20);
    }
}

/// Numbers made of the induction variable.
#[test]
fn induction() {
    for ty in [Scalar::I8, Scalar::I16, Scalar::I32, Scalar::I64] {
        for lanes in [4, 16, 64] {
            let mut t = Trial::new("induction", lanes);
            let iv = t.l.as_ref().map(|l| l.iv).expect("in the loop");
            let (k, s) = (t.b.i64(-37), t.scalar(Scalar::I64));
            let scaled = t.b.mul(iv, k);
            let moved = t.b.add(scaled, s);
            for x in [iv, scaled, moved] {
                let x = t.b.cast(x, ty, naiad_ir::scalar::Rounding::Nearest);
                let x = t.b.splat(x, lanes);
                let row = t.b.iota(ty, lanes);
                let x = t.b.binary(BinaryFn::Add, x, row);
                t.output(x);
            }
            t.check(20);
        }
    }
}

/// Addresses of all kinds: strides that are scales, numbers, scalars, and 0, forwards and backwards.
#[test]
fn addresses() {
    for lanes in [4u32, 16] {
        let mut t = Trial::new("addresses", lanes);
        let x = t.input(Scalar::I32);
        let iv = t.l.as_ref().map(|l| l.iv).expect("in the loop");
        let trips = super::MOST as i64;
        let ty = Vector::of(Scalar::I32.into(), lanes);
        let s = t.scalar(Scalar::I8);
        let stride = t.b.cast(s, Scalar::I64, naiad_ir::scalar::Rounding::Nearest);
        let seven = t.b.i64(7);
        let stride = t.b.binary(BinaryFn::And, stride, seven);
        let known: Vec<Value> = [0, 1, 2, 3, 4, 8, 12, 64].map(|k| t.b.i64(k)).into();
        for k in known.into_iter().chain([stride]) {
            let offset = t.b.mul(iv, k);
            let forwards = t.b.addr_add(t.base, offset);
            let at = t.bytes as i64;
            t.bytes += 64 * trips as usize * lanes as usize + 128;
            t.b.store(forwards, at, x);
            let y = t.b.load(forwards, at, ty);
            t.output(y);
            let none = t.b.i64(0);
            let back = t.b.sub(none, offset);
            let backwards = t.b.addr_add(t.base, back);
            t.bytes += 64 * trips as usize * lanes as usize + 128;
            let at = t.bytes as i64 - 128;
            t.b.store(backwards, at, x);
            let y = t.b.load(backwards, at, ty);
            t.output(y);
        }
        // As many streams as there may be, or more: written or not, the results are right.
        t.compare(30);
        let _ = levels();
    }
}

#[test]
fn stores_past_the_cache() {
    let mut b = Builder::new("past");
    let [base, upper, _flag] =
        [ThreadType::ADDR, ThreadType::I64, ThreadType::I64].map(|ty| b.func.add_param("p", ty));
    let bounds = [b.i64(0), upper, b.i64(16)];
    let l = b.begin_for(bounds, Vec::new());
    let size = b.i64(4);
    let offset = b.mul(l.iv, size);
    let addr = b.addr_add(base, offset);
    let x = b.load(addr, 0, Vector::of(Scalar::F32.into(), 16));
    let value = b.binary(BinaryFn::Add, x, x);
    let hints = MemHints { evict: Eviction::First, ..MemHints::default() };
    b.run(ThreadOp::Store { addr, value, disp: 1024, mask: None, hints });
    b.end_for(l, Vec::new());
    b.run(ThreadOp::Return {});
    let func = expand(&b.func).into_owned();
    for level in levels() {
        let mut past = 0;
        func.walk(&mut |inst| {
            let other = write(&func, func.op(inst), level).and_then(|wide| wide.other);
            if let Some(Other { when: When::Writes { aligned, .. }, .. }) = other {
                past += aligned.len();
            }
        });
        assert_eq!(past, 1, "{level:?}");
        let options = Options { wide: Some(level), past_cache: Some(2), far: None };
        let machine = write_with(options, &func, &table()).expect("machine code");
        for flag in [0, 1] {
            for off in [0, 4, 64, 1] {
                let mut memory = vec![0u8; 4096];
                let start = memory.as_ptr().align_offset(64) + off;
                for i in 0..256 {
                    memory[start + 4 * i..][..4].copy_from_slice(&(i as f32).to_le_bytes());
                }
                let slots = [memory[start..].as_mut_ptr() as u64, 256, flag];
                assert_eq!(execute(&machine, &slots), Outcome::Ended);
                for i in 0..256 {
                    let got = &memory[start + 1024 + 4 * i..][..4];
                    assert_eq!(got, (2.0 * i as f32).to_le_bytes(), "{level:?} {flag} {off}");
                }
            }
        }
    }
}

#[test]
fn asks_ahead_for_what_is_far() {
    let mut b = Builder::new("far");
    let [base, upper, _flag] =
        [ThreadType::ADDR, ThreadType::I64, ThreadType::I64].map(|ty| b.func.add_param("p", ty));
    let scratch = b.op(ThreadOp::Scratch { bytes: 1024, align: 64 });
    let ty = Vector::of(Scalar::F32.into(), 16);
    // To scratch memory, and to its double; then both sums back.
    for round in 0..3 {
        let bounds = [b.i64(0), upper, b.i64(16)];
        let l = b.begin_for(bounds, Vec::new());
        let size = b.i64(4);
        let offset = b.mul(l.iv, size);
        let [far, near] = [base, scratch].map(|addr| b.addr_add(addr, offset));
        let mut x = b.load(far, 0, ty);
        if round > 0 {
            let sum = b.load(near, 0, ty);
            x = b.binary(BinaryFn::Add, x, sum);
        }
        if round < 2 {
            b.store(near, 0, x)
        } else {
            b.store(far, 1024, x)
        }
        b.end_for(l, Vec::new());
    }
    b.run(ThreadOp::Return {});
    let func = expand(&b.func).into_owned();
    for level in levels() {
        let mut asking = 0;
        func.walk(&mut |inst| {
            let other = write(&func, func.op(inst), level).and_then(|wide| wide.other);
            asking += u32::from(other.is_some_and(|other| matches!(other.when, When::Reads)));
        });
        assert_eq!(asking, 3, "{level:?}");
        let options = Options { wide: Some(level), past_cache: None, far: Some(2) };
        let machine = write_with(options, &func, &table()).expect("machine code");
        for flag in [0, 1] {
            let mut memory: Vec<f32> = (0..512).map(|i| i as f32).collect();
            let slots = [memory.as_mut_ptr() as u64, 256, flag];
            assert_eq!(execute(&machine, &slots), Outcome::Ended);
            for i in 0..256 {
                assert_eq!(memory[256 + i], 3.0 * i as f32, "{level:?} {flag}");
            }
        }
    }
}
