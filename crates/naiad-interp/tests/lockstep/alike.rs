//! Each op of one thread gives what the one-thread evaluator gives.

use super::*;
use naiad_ir::Scalar;
use naiad_ir::scalar::{BinaryFn, Predicate, Rounding, TernaryFn, UnaryFn};
use naiad_ir::thread::{Builder, Lanes, ThreadOp, ThreadType};
use naiad_ir::{Inst, Value};

const THREADS: u64 = 32;

fn images(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed | 1;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        // Ends, small numbers, and anything.
        match state % 5 {
            0 => state >> 60,
            1 => (state >> 60).wrapping_neg(),
            2 => 1 << (state >> 58),
            _ => state.wrapping_mul(0x2545_f491_4f6c_dd1d),
        }
    }
}

/// Bytes of a thread's operands and results.
const ROOM: u64 = 512;

/// Loads up to three operands of a type and a boolean one, runs ops on them and stores the results. Of a
/// NaN only that it is one counts.
fn check(ty: Scalar, lanes: u32, ops: impl Fn(&mut Builder, [Value; 4]) -> Vec<Value>) {
    let mut b = Builder::new("alike");
    let x = b.func.add_param("x", ThreadType::ADDR);
    let size = u64::from(lanes) * ty.size() as u64;
    let vector = naiad_ir::thread::Vector::of(ty.into(), lanes);
    let loaded = [0, 1, 2].map(|i| b.load(x, (i * size) as i64, vector));
    let mask = b.load(x, 3 * size as i64, vector.with_elem(Scalar::I1.into()));
    let [p, q, r] = loaded;
    let mut stored = Vec::new();
    let mut at = 3 * size + u64::from(lanes);
    for result in ops(&mut b, [p, q, r, mask]) {
        let v = b.vector(result);
        let bytes = v.elem.size() as u64 * u64::from(v.lanes);
        at = at.next_multiple_of(bytes.min(16));
        let not_nan = v
            .elem
            .scalar()
            .filter(|s| s.is_float() && s.compute_type() == *s)
            .map(|_| b.compare(Predicate::Eq, result, result));
        let kept = match not_nan {
            Some(kept) => {
                let zero = b.constant(
                    naiad_ir::tile::Constant { ty: v.elem.scalar().unwrap(), bits: 0 },
                    v.lanes,
                );
                b.select(kept, result, zero)
            }
            None => result,
        };
        b.store(x, at as i64, kept);
        stored.push(at..at + bytes);
        at += bytes;
    }
    assert!(at <= ROOM, "{at}");
    b.run(ThreadOp::Return {});
    let func = b.func;
    verify(&func).unwrap_or_else(|e| panic!("{e:#?}"));

    // The same for one thread with an address, and for many with a base and their numbers.
    let mut many = Builder::new("alike");
    let base = many.func.add_param("x", ThreadType::ADDR);
    let t = many.op(ThreadOp::ThreadId {});
    let t = many.cast(t, Scalar::I64, Rounding::Nearest);
    let room = many.i64(ROOM as i64);
    let offset = many.mul(t, room);
    let mine = many.addr_add(base, offset);
    let mut map = vec![mine; func.num_values()];
    for &inst in func.insts(func.entry()) {
        copy(&func, inst, &mut many, &mut map);
    }
    let many = many.func;
    verify(&many).unwrap_or_else(|e| panic!("{e:#?}"));

    let mut next = images(size + ty.bits() as u64);
    let mut memory = vec![0u64; (THREADS * ROOM / 8) as usize];
    memory.iter_mut().for_each(|m| *m = next());
    let mut other = memory.clone();
    for thread in 0..THREADS {
        let slot = other.as_mut_ptr() as u64 + thread * ROOM;
        // SAFETY: the buffer is there.
        unsafe { naiad_interp::thread::run(&func, &[slot], &mut |_, _| vec![]) };
    }
    let shape = BlockShape { threads: THREADS as u32, shared_bytes: 0 };
    let code = Code::new(Arc::new(many), shape).unwrap();
    // SAFETY: the buffer is there.
    let ended = unsafe { code.run([1, 1, 1], &[tensor(&mut memory)], &Options::default()) };
    ended.unwrap_or_else(|f| panic!("{f:?}"));
    let same = memory == other;
    if !same {
        let i = (0..memory.len()).find(|&i| memory[i] != other[i]).unwrap();
        panic!("{ty} x {lanes}, word {i}: {:x} for {:x} in\n{func}", memory[i], other[i]);
    }
}

/// Copies an op with its operands replaced.
fn copy(func: &Function<Thread>, inst: Inst, into: &mut Builder, map: &mut [Value]) {
    let mut op = func.op(inst).clone();
    op.each_value_mut(&mut |v| *v = map[v.index()]);
    let results = into.ops(op);
    func.results(inst).iter().zip(results).for_each(|(&from, to)| map[from.index()] = to);
}

fn computed() -> impl Iterator<Item = Scalar> {
    Scalar::ALL.iter().copied().filter(|s| s.compute_type() == *s)
}

#[test]
fn functions_are_alike() {
    for ty in computed() {
        for lanes in [1, 4] {
            for &f in UnaryFn::ALL.iter().filter(|f| f.accepts(ty)) {
                check(ty, lanes, |b, [x, ..]| vec![b.unary(f, x)]);
            }
            for &f in BinaryFn::ALL.iter().filter(|f| f.accepts(ty)) {
                check(ty, lanes, |b, [x, y, ..]| vec![b.binary(f, x, y)]);
            }
            for &f in TernaryFn::ALL.iter().filter(|f| f.accepts(ty)) {
                check(ty, lanes, |b, [x, y, z, _]| {
                    vec![b.op(ThreadOp::Ternary { f, a: x, b: y, c: z })]
                });
            }
            for &p in Predicate::ALL {
                check(ty, lanes, |b, [x, y, ..]| vec![b.compare(p, x, y)]);
            }
        }
    }
}

#[test]
fn conversions_are_alike() {
    for &from in Scalar::ALL {
        for &to in Scalar::ALL {
            for rounding in [Rounding::Nearest, Rounding::TowardZero] {
                check(from, 2, |b, [x, ..]| {
                    let made = b.op(ThreadOp::Cast { src: x, to, rounding });
                    // What a NaN becomes where only its kind counts is seen in the wide types.
                    if to.is_float() && from.is_float() && to.compute_type() != to {
                        return vec![b.cast(made, Scalar::F32, Rounding::Nearest)];
                    }
                    vec![made]
                });
            }
        }
    }
}

#[test]
fn lanes_are_alike() {
    for &ty in Scalar::ALL {
        for lanes in [1, 2, 8] {
            check(ty, lanes, |b, [x, y, _, mask]| {
                let chosen = b.select(mask, x, y);
                let (any, all) = (b.op(ThreadOp::Any { mask }), b.op(ThreadOp::All { mask }));
                let last = b.extract(y, lanes - 1);
                let spread = b.splat(last, 4);
                let mixed = b.permute(x, (0..lanes).rev());
                let chosen_where = b.op(ThreadOp::Splat { src: any, lanes: Lanes(2) });
                vec![chosen, all, spread, mixed, chosen_where]
            });
        }
    }
}
