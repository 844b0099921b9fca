//! Loops, branches, guards, registers, calls.

use super::{Probe, for_loop};
use naiad_ir::Scalar;
use naiad_ir::scalar::{BinaryFn, Predicate};
use naiad_ir::thread::{RuntimeFn, Site, ThreadOp, Vector};
use naiad_ir::tile::Constant;

fn signed(ty: Scalar) -> Scalar {
    match ty.bits() {
        8 => Scalar::I8,
        16 => Scalar::I16,
        32 => Scalar::I32,
        _ => Scalar::I64,
    }
}

#[test]
fn loops_count_as_they_must() {
    for ty in [Scalar::I8, Scalar::I16, Scalar::I32, Scalar::I64, Scalar::U8, Scalar::U32] {
        for step in [None, Some(1), Some(3), Some(-1), Some(-5)] {
            let mut p = Probe::new(&format!("loop_{ty}"));
            // Few rounds, at both ends of the type and in the middle.
            let least = p.input(Scalar::U8, 1);
            let three = p.b.constant(Constant::int(Scalar::U8, 3), 1);
            let which = p.b.binary(BinaryFn::Rem, least, three);
            let signed = signed(ty);
            let bases = [signed.int_min() + 128, 0, signed.int_max() - 127];
            let [low, mid, high] = bases.map(|x| p.b.constant(Constant::int(ty, x), 1));
            let [zero, one] = [0, 1].map(|x| p.b.constant(Constant::int(Scalar::U8, x), 1));
            let is_low = p.b.compare(Predicate::Eq, which, zero);
            let is_mid = p.b.compare(Predicate::Eq, which, one);
            let base = p.b.select(is_mid, mid, high);
            let base = p.b.select(is_low, low, base);
            let [lower, upper] = [0; 2].map(|_| {
                let by = p.input(Scalar::I8, 1);
                let by = p.b.cast(by, ty, Default::default());
                p.b.binary(BinaryFn::Add, base, by)
            });
            let step = match step {
                Some(s) => p.b.constant(Constant::int(ty, s), 1),
                None => {
                    let s = p.input(ty, 1);
                    let one = p.b.constant(Constant::int(ty, 1), 1);
                    p.b.binary(BinaryFn::Or, s, one)
                }
            };
            let bits = p.b.constant(Constant::int(Scalar::I64, 7), 1);
            let sum =
                for_loop(&mut p.b, [lower, upper, step], vec![bits, lower], |b, iv, carried| {
                    let thirty = b.i64(31);
                    let sum = b.mul(carried[0], thirty);
                    let wide = b.cast(iv, Scalar::I64, Default::default());
                    vec![b.add(sum, wide), iv]
                });
            p.output(sum[0]);
            p.output(sum[1]);
            p.check(200);
        }
    }
}

#[test]
fn branches_while_guards_and_calls() {
    let mut p = Probe::new("mixed");
    let (x, y) = (p.input(Scalar::F32, 8), p.input(Scalar::F32, 8));
    let n = p.input(Scalar::U8, 1);
    let n = p.b.cast(n, Scalar::I64, Default::default());
    let less = p.b.compare(Predicate::Lt, x, y);
    let any = p.b.op(ThreadOp::Any { mask: less });
    let chosen = p.b.if_else(
        any,
        |b| vec![b.binary(BinaryFn::Add, x, y), less],
        |b| {
            let bytes = b.constant(Constant::int(Scalar::I8, 3), 8);
            let narrow = b.compare(Predicate::Eq, bytes, bytes);
            vec![b.binary(BinaryFn::Mul, x, y), narrow]
        },
    );
    p.output(chosen[0]);
    p.output(chosen[1]);

    let (before, after) = (p.b.func.new_block(), p.b.func.new_block());
    let carried = p.b.func.add_block_param(before, Vector::I64.into());
    let outer = p.b.enter(before);
    let zero = p.b.i64(0);
    let cond = p.b.compare(Predicate::Gt, carried, zero);
    let twice = p.b.add(carried, carried);
    p.b.run(ThreadOp::Condition { cond, values: vec![carried, twice] });
    let passed = p.b.func.add_block_param(after, Vector::I64.into());
    p.b.func.add_block_param(after, Vector::I64.into());
    p.b.enter(after);
    let two = p.b.i64(2);
    let less = p.b.binary(BinaryFn::Idiv, passed, two);
    p.b.run(ThreadOp::Yield { values: vec![less] });
    p.b.enter(outer);
    let ends = p.b.ops(ThreadOp::While { inits: vec![n], before, after });
    p.output(ends[0]);
    p.output(ends[1]);

    let base = p.base();
    let site = p.b.bitcast(n, Scalar::I64);
    let zero_address = p.b.bitcast(n, naiad_ir::thread::ThreadElem::Addr);
    let ok = p.b.call(RuntimeFn::MayAccess, vec![zero_address, site, zero_address, n]);
    p.output(ok[0]);
    let _ = base;
    let hundred = p.b.i64(100);
    let cond = p.b.compare(Predicate::Lt, n, hundred);
    p.b.run(ThreadOp::Guard { cond, site: Site(42), values: vec![n, hundred] });
    p.output(n);
    p.check(200);
}
