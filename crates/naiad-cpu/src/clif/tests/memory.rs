//! Loads and stores with masks, gathers and scatters, atomics, registers, scratch.

use super::{LANES, Probe, for_loop};
use naiad_ir::scalar::{BinaryFn, Predicate};
use naiad_ir::thread::{Builder, Lanes, ThreadElem, ThreadOp, Vector};
use naiad_ir::tile::{AtomicOp, Constant, MemHints, Scope, Sem};
use naiad_ir::{Scalar, Value};

fn elems() -> impl Iterator<Item = ThreadElem> {
    Scalar::ALL.iter().map(|&s| ThreadElem::Scalar(s)).chain([ThreadElem::Addr])
}

/// A mask with lanes of the width of the type that it is compared in.
fn mask(p: &mut Probe, of: Scalar, lanes: u32) -> Value {
    let (x, y) = (p.input(of, lanes), p.input(of, lanes));
    p.b.compare(Predicate::Lt, x, y)
}

fn load(addr: Value, disp: i64, ty: Vector, mask: Value) -> ThreadOp {
    let (elem, lanes) = (ty.elem, Lanes(ty.lanes));
    ThreadOp::Load { addr, disp, elem, lanes, mask: Some(mask), hints: MemHints::default() }
}

fn store(addr: Value, value: Value, disp: i64, mask: Value) -> ThreadOp {
    ThreadOp::Store { addr, value, disp, mask: Some(mask), hints: MemHints::default() }
}

#[test]
fn masks_of_all_widths() {
    for elem in elems() {
        for lanes in [1, 2, 4, 8, 16, 32, 64] {
            let mut p = Probe::new(&format!("masked_{elem}x{lanes}"));
            let ty = Vector::of(elem, lanes);
            let always = p.b.constant(Constant::bool(true), lanes);
            let never = p.b.constant(Constant::bool(false), lanes);
            let mut masks = vec![always, never];
            for of in [Scalar::I8, Scalar::I16, Scalar::F32, Scalar::I64] {
                masks.push(mask(&mut p, of, lanes));
            }
            let first = mask(&mut p, Scalar::U8, 1);
            masks.push(p.b.splat(first, lanes));
            let base = p.base();
            for mask in masks {
                let from = p.place(ty);
                let x = p.b.op(load(base, from, ty, mask));
                p.output(x);
                let to = p.place(ty);
                p.b.run(store(base, x, to, mask));
                p.watch(to, ty);
            }
            p.check(if lanes > 16 { 8 } else { 20 });
        }
    }
}

/// Addresses somewhere in a table of 64 elements, which the index says.
fn addresses(p: &mut Probe, table: i64, elem: ThreadElem, lanes: u32) -> Value {
    let index = p.input(Scalar::U8, lanes);
    let most = p.b.constant(Constant::int(Scalar::U8, 63), lanes);
    let index = p.b.binary(BinaryFn::And, index, most);
    let index = p.b.cast(index, Scalar::I64, Default::default());
    let size = p.b.constant(Constant::int(Scalar::I64, elem.size() as i128), lanes);
    let offset = p.b.binary(BinaryFn::Mul, index, size);
    let (base, table) = (p.base(), p.b.i64(table));
    let base = p.b.addr_add(base, table);
    let base = p.b.splat(base, lanes);
    p.b.op(ThreadOp::AddrAdd { addr: base, offset })
}

#[test]
fn gathers_and_scatters() {
    for elem in elems() {
        for lanes in LANES {
            let mut p = Probe::new(&format!("gather_{elem}x{lanes}"));
            let ty = Vector::of(elem, 64);
            let table = p.place(ty);
            let addr = addresses(&mut p, table, elem, lanes);
            let mask = mask(&mut p, Scalar::I16, lanes);
            let all = p.b.op(ThreadOp::Gather { addr, elem, mask: None });
            let some = p.b.op(ThreadOp::Gather { addr, elem, mask: Some(mask) });
            p.output(all);
            p.output(some);
            let table = p.place(ty);
            let addr = addresses(&mut p, table, elem, lanes);
            p.b.run(ThreadOp::Scatter { addr, value: all, mask: None });
            let other = addresses(&mut p, table, elem, lanes);
            p.b.run(ThreadOp::Scatter { addr: other, value: some, mask: Some(mask) });
            p.watch(table, ty);
            p.check(20);
        }
    }
}

#[test]
fn atomics() {
    for &ty in Scalar::ALL {
        let mut p = Probe::new(&format!("atomic_{ty}"));
        let of = Vector::scalar(ty);
        let base = p.base();
        let (sem, scope) = (Sem::Relaxed, Scope::Gpu);
        for &f in AtomicOp::ALL {
            if f.accepts(ty) {
                let (value, at) = (p.input(ty, 1), p.place(of));
                let offset = p.b.i64(at);
                let addr = p.b.addr_add(base, offset);
                let old = p.b.op(ThreadOp::Atomic { f, addr, value, sem, scope });
                p.output(old);
                p.watch(at, of);
            }
        }
        if AtomicOp::cas_accepts(ty) {
            let (compare, value, at) = (p.input(ty, 1), p.input(ty, 1), p.place(of));
            let offset = p.b.i64(at);
            let addr = p.b.addr_add(base, offset);
            for compare in [compare, value] {
                let old = p.b.op(ThreadOp::AtomicCas { addr, compare, value, sem, scope });
                p.output(old);
                let old = p.b.op(ThreadOp::AtomicCas { addr, compare: old, value, sem, scope });
                p.output(old);
            }
            p.watch(at, of);
        }
        let (value, at) = (p.input(ty, 1), p.place(of));
        let offset = p.b.i64(at);
        let addr = p.b.addr_add(base, offset);
        let seen = p.b.op(ThreadOp::AtomicLoad { addr, elem: ty.into(), sem, scope });
        p.output(seen);
        p.b.run(ThreadOp::AtomicStore { addr, value, sem, scope });
        p.watch(at, of);
        p.check(40);
    }
}

#[test]
fn registers_round_a_loop() {
    for elem in elems() {
        for lanes in LANES {
            let mut p = Probe::new(&format!("regs_{elem}x{lanes}"));
            let regs = p.b.op(ThreadOp::Regs { elem, lanes: Lanes(lanes), count: 3 });
            let (x, y) = (p.input(elem, lanes), p.input(elem, lanes));
            let rounds = p.input(Scalar::U8, 1);
            let rounds = p.b.cast(rounds, Scalar::I64, Default::default());
            p.b.run(ThreadOp::RegsSet { regs, value: x, index: 1 });
            let (zero, one) = (p.b.i64(0), p.b.i64(1));
            // The registers turn, and a new value comes in.
            for_loop(&mut p.b, [zero, rounds, one], vec![y], |b, _, carried| {
                let [r0, r1, r2] = [0, 1, 2].map(|index| b.op(ThreadOp::RegsGet { regs, index }));
                for (value, index) in [(r1, 0), (r2, 1), (carried[0], 2)] {
                    b.run(ThreadOp::RegsSet { regs, value, index });
                }
                vec![r0]
            });
            for index in 0..3 {
                let r = p.b.op(ThreadOp::RegsGet { regs, index });
                p.output(r);
            }
            p.check(10);
        }
    }
}

#[test]
fn scratch_keeps_what_is_alive() {
    fn scratch(b: &mut Builder, bytes: usize) -> Value {
        b.op(ThreadOp::Scratch { bytes, align: 64 })
    }
    let mut p = Probe::new("scratch");
    let ty = Vector::of(Scalar::I32.into(), 4);
    let [x, y, z] = [0; 3].map(|_| p.input(ty.elem, ty.lanes));
    let (one, two) = (scratch(&mut p.b, 16), scratch(&mut p.b, 32));
    p.b.store(one, 0, x);
    p.b.store(two, 16, y);
    let (low, high, step) = (p.b.i64(0), p.b.i64(3), p.b.i64(1));
    let sum = for_loop(&mut p.b, [low, high, step], vec![z], |b, _, carried| {
        let inner = scratch(b, 16);
        b.store(inner, 0, carried[0]);
        let again = scratch(b, 16);
        b.store(again, 0, x);
        let [p, q, r] = [(inner, 0), (again, 0), (two, 16)].map(|(at, d)| b.load(at, d, ty));
        let sum = b.binary(BinaryFn::Add, p, q);
        vec![b.binary(BinaryFn::Xor, sum, r)]
    });
    p.output(sum[0]);
    let back = p.b.load(one, 0, ty);
    p.output(back);
    let late = scratch(&mut p.b, 16);
    p.b.store(late, 0, z);
    let [back, kept] = [(late, 0), (two, 16)].map(|(at, d)| p.b.load(at, d, ty));
    p.output(back);
    p.output(kept);
    p.check(20);
}
