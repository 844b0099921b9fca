//! How long functions take to be written as machine code, and how fast a few loops then are.
//!
//! `cargo run -p naiad-cpu --example writer`

#![allow(clippy::print_stdout, reason = "it prints a table")]

use naiad_cpu::clif::{Machine, Report, RuntimeTable, write};
use naiad_ir::scalar::{BinaryFn, TernaryFn, UnaryFn};
use naiad_ir::thread::{Builder, Thread, ThreadOp, ThreadType, Vector};
use naiad_ir::tile::Constant;
use naiad_ir::{Function, Scalar, Value};
use std::time::Instant;

const F32: Scalar = Scalar::F32;

fn main() {
    println!(
        "{:12} {:>5} {:>9} {:>7} {:>9} {:>8}",
        "loop", "lanes", "write us", "bytes", "run us", "GB/s"
    );
    for lanes in [4, 8, 16] {
        let name = "bias";
        report(name, lanes, 12, &loop_over(name, lanes, |b, [x, y]| b.binary(BinaryFn::Add, x, y)));
        let name = "gelu";
        report(name, lanes, 8, &loop_over(name, lanes, |b, [x, _]| gelu(b, x, lanes)));
        let name = "exp sum";
        report(name, lanes, 4, &sum(name, lanes, |b, x| b.unary(UnaryFn::Exp, x)));
        let name = "to fp16";
        report(name, lanes, 6, &through(name, lanes, F32, Scalar::F16));
        let name = "from fp16";
        report(name, lanes, 6, &through(name, lanes, Scalar::F16, F32));
        let name = "to bf16";
        report(name, lanes, 6, &through(name, lanes, F32, Scalar::BF16));
        let name = "idiv";
        report(name, lanes, 8, &divided(name, lanes));
    }
}

const N: usize = 1 << 20;

/// The median time of writing, and the best time of a run over 2^20 elements.
fn report(name: &str, lanes: u32, bytes_each: usize, func: &Function<Thread>) {
    naiad_ir::verify(func).expect("verified");
    // SAFETY: the functions call nothing.
    let table = unsafe { RuntimeTable::new(|_| 0) };
    let times = |count: usize, f: &mut dyn FnMut()| {
        let mut times: Vec<f64> = (0..count)
            .map(|_| {
                let start = Instant::now();
                f();
                start.elapsed().as_secs_f64() * 1e6
            })
            .collect();
        times.sort_by(f64::total_cmp);
        times
    };
    let mut machine: Option<Machine> = None;
    let writing = times(15, &mut || machine = write(func, &table).ok());
    let machine = machine.expect("written");
    let x: Vec<f32> = (0..N).map(|i| (i % 1000) as f32 / 100.0 - 5.0).collect();
    let y = x.clone();
    let mut out = vec![0f32; N];
    let slots = [x.as_ptr() as u64, y.as_ptr() as u64, out.as_mut_ptr() as u64, N as u64];
    let running = times(21, &mut || {
        // SAFETY: the arrays have as many elements as the function is told, and it has no frame.
        let ended =
            unsafe { machine.run(slots.as_ptr(), std::ptr::null_mut(), &mut Report::default()) };
        assert!(ended);
    });
    let (write, bytes, run) = (writing[writing.len() / 2], machine.code_bytes(), running[0]);
    let rate = (N * bytes_each) as f64 / run / 1e3;
    println!("{name:12} {lanes:5} {write:9.0} {bytes:7} {run:9.0} {rate:8.1}");
}

/// A function of two vectors in a loop over all elements.
fn loop_over(
    name: &str,
    lanes: u32,
    f: impl Fn(&mut Builder, [Value; 2]) -> Value,
) -> Function<Thread> {
    let ty = Vector::of(F32.into(), lanes);
    looped(name, lanes, |b, [x, y, out], at| {
        let four = b.i64(4);
        let offset = b.mul(at, four);
        let [x, y, out] = [x, y, out].map(|p| b.addr_add(p, offset));
        let [x, y] = [x, y].map(|p| b.load(p, 0, ty));
        let z = f(b, [x, y]);
        b.store(out, 0, z);
    })
}

fn through(name: &str, lanes: u32, from: Scalar, to: Scalar) -> Function<Thread> {
    looped(name, lanes, |b, [x, _, out], at| {
        let [x, out] = [(x, from), (out, to)].map(|(p, ty)| {
            let size = b.i64(ty.size() as i64);
            let offset = b.mul(at, size);
            b.addr_add(p, offset)
        });
        let x = b.load(x, 0, Vector::of(from.into(), lanes));
        let y = b.cast(x, to, Default::default());
        b.store(out, 0, y);
    })
}

fn divided(name: &str, lanes: u32) -> Function<Thread> {
    looped(name, lanes, |b, [x, _, out], at| {
        let four = b.i64(4);
        let offset = b.mul(at, four);
        let [x, out] = [x, out].map(|p| b.addr_add(p, offset));
        let x = b.load(x, 0, Vector::of(Scalar::I32.into(), lanes));
        let by = b.constant(Constant::int(Scalar::I32, 77), lanes);
        let y = b.binary(BinaryFn::Idiv, x, by);
        b.store(out, 0, y);
    })
}

fn sum(name: &str, lanes: u32, f: impl Fn(&mut Builder, Value) -> Value) -> Function<Thread> {
    let ty = Vector::of(F32.into(), lanes);
    let mut b = Builder::new(name);
    let [x, _, out] = ["x", "y", "out"].map(|p| b.func.add_param(p, ThreadType::ADDR));
    let n = b.func.add_param("n", ThreadType::I64);
    let (zero, step) = (b.i64(0), b.i64(i64::from(lanes)));
    let start = b.constant(Constant::float(F32, 0.0), lanes);
    let l = b.begin_for([zero, n, step], vec![start]);
    let four = b.i64(4);
    let offset = b.mul(l.iv, four);
    let p = b.addr_add(x, offset);
    let x = b.load(p, 0, ty);
    let y = f(&mut b, x);
    let next = b.binary(BinaryFn::Add, l.carried[0], y);
    let total = b.end_for(l, vec![next])[0];
    b.store(out, 0, total);
    b.run(ThreadOp::Return {});
    b.func
}

fn looped(
    name: &str,
    lanes: u32,
    body: impl Fn(&mut Builder, [Value; 3], Value),
) -> Function<Thread> {
    let mut b = Builder::new(name);
    let pointers = ["x", "y", "out"].map(|p| b.func.add_param(p, ThreadType::ADDR));
    let n = b.func.add_param("n", ThreadType::I64);
    let (zero, step) = (b.i64(0), b.i64(i64::from(lanes)));
    let l = b.begin_for([zero, n, step], vec![]);
    body(&mut b, pointers, l.iv);
    b.end_for(l, vec![]);
    b.run(ThreadOp::Return {});
    b.func
}

/// `x (1 + tanh(c (x + d x^3))) / 2`
fn gelu(b: &mut Builder, x: Value, lanes: u32) -> Value {
    let of = |b: &mut Builder, x: f64| b.constant(Constant::float(F32, x), lanes);
    let [half, one, c, d] = [0.5, 1.0, 0.797_884_560_802_865_4, 0.044_715].map(|x| of(b, x));
    let square = b.binary(BinaryFn::Mul, x, x);
    let cube = b.binary(BinaryFn::Mul, square, x);
    let inner = b.op(ThreadOp::Ternary { f: TernaryFn::Fma, a: cube, b: d, c: x });
    let inner = b.binary(BinaryFn::Mul, inner, c);
    let tanh = b.unary(UnaryFn::Tanh, inner);
    let sum = b.binary(BinaryFn::Add, tanh, one);
    let product = b.binary(BinaryFn::Mul, x, sum);
    b.binary(BinaryFn::Mul, product, half)
}
