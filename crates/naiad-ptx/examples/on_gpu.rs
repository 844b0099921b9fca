//! Every scalar function, and random functions, on this machine's GPU, against the executors' results:
//! `cargo run -p naiad-ptx --example on_gpu`. Says what differs, and measures how far the chip's own
//! functions are from the truth.

#![allow(clippy::print_stdout, reason = "a program for people")]

#[path = "../tests/common/probe.rs"]
#[allow(dead_code, reason = "shared with the tests")]
mod probe;
#[path = "../tests/common/scalars.rs"]
#[allow(dead_code, reason = "shared with the tests")]
mod scalars;

use naiad_cuda::{Context, Driver, JitOptions, Memory, Module, RawStream, link};
use naiad_ir::Scalar;
use naiad_ir::thread::{Builder, Lanes, NativeFn, ThreadOp, ThreadType};
use naiad_ir::tile::Constant;
use naiad_ptx::{Kernel, Target, entry_name};
use probe::{Line, probe};
use scalars::{Row, THREADS, over_arrays, rows};
use std::ffi::{CString, c_void};
use std::process::ExitCode;
use std::sync::Arc;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const RANDOM: u64 = 400;
const ROUNDS: u64 = 4;

fn main() -> ExitCode {
    match test() {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(e) => {
            println!("failed: {e}");
            ExitCode::FAILURE
        }
    }
}

/// How many functions gave something else.
fn test() -> Outcome<usize> {
    let context = Context::primary(Driver::get()?, 0)?;
    let capability = context.facts().capability();
    println!("a chip of sm_{capability}");
    let mut wrong = 0;
    // The text for an older chip is another where that has not all instructions.
    for target in [80, 89, 90].into_iter().filter(|&t| t <= capability) {
        wrong += functions(&context, Target { capability: target })?;
        wrong += random(&context, Target { capability: target })?;
    }
    errors(&context)?;
    Ok(wrong)
}

/// A module of all texts.
fn load(context: &Arc<Context>, texts: &[String]) -> Outcome<Arc<Module>> {
    let (mut head, mut entries) = (String::new(), String::new());
    for text in texts {
        let (version, entry) = text.split_once("\n\n").ok_or("a text without a head")?;
        // Of one length, so that the greatest is the newest.
        head = head.max(version.to_string());
        entries += entry;
    }
    let text = CString::new(format!("{head}\n\n{entries}"))?;
    let linked = link(context, c"on_gpu.ptx", &text, &JitOptions::default())?;
    // SAFETY: linked for this device.
    Ok(unsafe { Module::load(context, &linked.cubin)? })
}

fn on_device(context: &Arc<Context>, bytes: &[u8]) -> Outcome<Memory> {
    let mut memory = Memory::new(context, bytes.len().max(1))?;
    memory.write(bytes)?;
    Ok(memory)
}

fn bytes_of(images: impl Iterator<Item = u64>, of: Scalar) -> Vec<u8> {
    images.flat_map(|x| x.to_le_bytes().into_iter().take(of.size())).collect()
}

fn images_of(bytes: &[u8], of: Scalar) -> Vec<u64> {
    let image = |element: &[u8]| {
        let mut image = [0; 8];
        image[..element.len()].copy_from_slice(element);
        u64::from_le_bytes(image)
    };
    bytes.chunks_exact(of.size()).map(image).collect()
}

fn functions(context: &Arc<Context>, target: Target) -> Outcome<usize> {
    let rows = rows();
    let write = |row: &Row| {
        let func = over_arrays(row);
        naiad_ptx::write(
            &Kernel {
                func: &func,
                threads: THREADS,
                shared_bytes: 0,
                max_regs: None,
                lines: false,
            },
            target,
        )
    };
    let module = load(context, &rows.iter().map(write).collect::<Result<Vec<_>, _>>()?)?;
    let (mut wrong, mut results) = (0, 0);
    for row in &rows {
        let inputs = row.inputs();
        let mut arrays = Vec::new();
        for operand in 0..row.arity() {
            let images = inputs.iter().map(|x| x[operand]);
            arrays.push(on_device(context, &bytes_of(images, row.of))?);
        }
        let mut found = vec![0xa5u8; inputs.len() * row.result.size()];
        arrays.push(on_device(context, &found)?);
        let addresses: Vec<u64> = arrays.iter().map(Memory::address).collect();
        let length = i32::try_from(inputs.len())?;
        let mut params: Vec<*const c_void> =
            addresses.iter().map(|a| std::ptr::from_ref(a).cast()).collect();
        params.push(std::ptr::from_ref(&length).cast());
        let name = CString::new(entry_name(&row.name()))?;
        let function = module.function(&name, 0)?;
        let blocks = (length as u32).div_ceil(THREADS);
        // SAFETY: the parameters are of the kernel's types; the copy back waits for it.
        unsafe { function.launch([blocks, 1, 1], THREADS, 0, RawStream::DEFAULT, &params)? };
        arrays[row.arity()].read(&mut found)?;
        let found = images_of(&found, row.result);
        let want: Vec<u64> = inputs.iter().map(|x| row.eval(x)).collect();
        let differ: Vec<usize> =
            (0..want.len()).filter(|&i| !row.agrees(found[i], want[i])).collect();
        results += want.len();
        if let Some(&i) = differ.first() {
            wrong += 1;
            println!(
                "  {} differs {} times of {}: of {:x?} it is {:#x}, should be {:#x}",
                row.name(),
                differ.len(),
                want.len(),
                inputs[i],
                found[i],
                want[i]
            );
        }
    }
    let count = rows.len();
    println!(
        "text for sm_{}: {count} functions, {results} results, {wrong} functions differ",
        target.capability
    );
    Ok(wrong)
}

fn random(context: &Arc<Context>, target: Target) -> Outcome<usize> {
    let probes: Vec<_> = (0..RANDOM).map(probe).collect();
    let texts = probes.iter().map(|p| {
        naiad_ptx::write(
            &Kernel { func: &p.func, threads: 1, shared_bytes: 0, max_regs: None, lines: false },
            target,
        )
    });
    let module = load(context, &texts.collect::<Result<Vec<_>, _>>()?)?;
    let mut wrong = 0;
    for probe in &probes {
        let function = module.function(&CString::new(entry_name(&probe.func.name))?, 0)?;
        for round in 0..ROUNDS {
            let mut want = probe.buffer(round);
            let start: Vec<u8> = want.iter().flat_map(|line| line.0).collect();
            let memory = on_device(context, &start)?;
            let address = memory.address();
            let params = [std::ptr::from_ref(&address).cast()];
            // SAFETY: the function accesses the buffer only; the copy back waits for it.
            unsafe { function.launch([1, 1, 1], 1, 0, RawStream::DEFAULT, &params)? };
            let mut found = vec![0u8; start.len()];
            memory.read(&mut found)?;
            let have: Vec<Line> = found.as_chunks().0.iter().map(|&line| Line(line)).collect();
            probe.evaluate(&mut want);
            if let Some(difference) = probe.difference(&want, &have) {
                wrong += 1;
                println!("  {}, round {round}: {difference}", probe.func.name);
                break;
            }
        }
    }
    println!("text for sm_{}: {RANDOM} random functions, {wrong} differ", target.capability);
    Ok(wrong)
}

/// A function in `f64`, of one or two numbers, and the bits of fp32 that are tried.
type Truth = (NativeFn, fn(f64, f64) -> f64, std::ops::Range<f32>);

const TRUTHS: [Truth; 9] = [
    (NativeFn::Exp2, |x, _| x.exp2(), -126.0..128.0),
    (NativeFn::Log2, |x, _| x.log2(), 1e-30..1e30),
    (NativeFn::Sin, |x, _| x.sin(), -3.2..3.2),
    (NativeFn::Cos, |x, _| x.cos(), -3.2..3.2),
    (NativeFn::Tanh, |x, _| x.tanh(), -9.0..9.0),
    (NativeFn::Rsqrt, |x, _| 1.0 / x.sqrt(), 1e-30..1e30),
    (NativeFn::Sqrt, |x, _| x.sqrt(), 1e-30..1e30),
    (NativeFn::Reciprocal, |x, _| 1.0 / x, 1e-30..1e30),
    (NativeFn::Div, |x, y| x / y, 1e-15..1e15),
];

/// The greatest errors of the chip's own functions over a sample of a range.
fn errors(context: &Arc<Context>) -> Outcome<()> {
    const SAMPLE: usize = 1 << 20;
    let capability = context.facts().capability().min(90);
    for (f, truth, range) in TRUTHS {
        let text = native(f, Target { capability })?;
        let module = load(context, &[text])?;
        let function = module.function(c"native", 0)?;
        let x: Vec<f32> = sample(&range, SAMPLE, 0x9e37_79b9);
        let y: Vec<f32> = sample(&range, SAMPLE, 0x85eb_ca6b);
        let bytes = |x: &[f32]| -> Vec<u8> { x.iter().flat_map(|x| x.to_le_bytes()).collect() };
        let arrays = [on_device(context, &bytes(&x))?, on_device(context, &bytes(&y))?];
        let out = Memory::new(context, 4 * SAMPLE)?;
        let addresses = [arrays[0].address(), arrays[1].address(), out.address()];
        let params = addresses.each_ref().map(|a| std::ptr::from_ref(a).cast());
        let blocks = (SAMPLE as u32).div_ceil(THREADS);
        // SAFETY: the parameters are of the kernel's types; the copy back waits for it.
        unsafe { function.launch([blocks, 1, 1], THREADS, 0, RawStream::DEFAULT, &params)? };
        let mut found = vec![0u8; 4 * SAMPLE];
        out.read(&mut found)?;
        let (mut relative, mut absolute, mut ulps) = (0f64, 0f64, 0f64);
        for (i, word) in found.as_chunks::<4>().0.iter().enumerate() {
            let exact = truth(x[i].into(), y[i].into());
            let error = (f64::from(f32::from_le_bytes(*word)) - exact).abs();
            let nearest = (exact.abs() as f32).max(f32::MIN_POSITIVE);
            absolute = absolute.max(error);
            relative = relative.max(error / exact.abs());
            ulps = ulps.max(error / (f64::from(nearest.next_up()) - f64::from(nearest)));
        }
        println!(
            "native.{} from {:e} to {:e}: 2^{:.2} absolute, 2^{:.2} relative, {ulps:.2} ulp",
            f.name(),
            range.start,
            range.end,
            absolute.log2(),
            relative.log2()
        );
    }
    Ok(())
}

/// Numbers of a range, evenly over their images if all are positive.
fn sample(range: &std::ops::Range<f32>, count: usize, seed: u32) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f64::from(state) / 4_294_967_296.0
    };
    let even = |t: f64| match range.start > 0.0 {
        true => {
            let [low, high] = [range.start, range.end].map(|x| f64::from(x.to_bits()));
            f32::from_bits((low + t * (high - low)) as u32)
        }
        false => range.start + (t * f64::from(range.end - range.start)) as f32,
    };
    (0..count).map(|_| even(next())).collect()
}

/// The function on two arrays, into a third.
fn native(f: NativeFn, target: Target) -> Outcome<String> {
    let mut b = Builder::new("native");
    let [x, y, out] = ["x", "y", "out"].map(|name| b.func.add_param(name, ThreadType::ADDR));
    let (thread, block) = (b.op(ThreadOp::ThreadId {}), b.op(ThreadOp::BlockId { axis: 0 }));
    let int = |b: &mut Builder, of, x: u32| {
        b.op(ThreadOp::Const { value: Constant::int(of, x.into()), lanes: Lanes(1) })
    };
    let threads = int(&mut b, Scalar::I32, THREADS);
    let first = b.binary(naiad_ir::scalar::BinaryFn::Mul, block, threads);
    let index = b.binary(naiad_ir::scalar::BinaryFn::Add, first, thread);
    let index = b.cast(index, Scalar::I64, Default::default());
    let size = b.i64(4);
    let offset = b.mul(index, size);
    let f32s = naiad_ir::thread::Vector::scalar(Scalar::F32);
    let args = [x, y].into_iter().take(f.arity());
    let args: Vec<_> = args
        .map(|array| {
            let at = b.addr_add(array, offset);
            b.load(at, 0, f32s)
        })
        .collect();
    let result = b.op(ThreadOp::Native { f, args });
    let at = b.addr_add(out, offset);
    b.store(at, 0, result);
    b.run(ThreadOp::Return {});
    Ok(naiad_ptx::write(
        &Kernel { func: &b.func, threads: THREADS, shared_bytes: 0, max_regs: None, lines: false },
        target,
    )?)
}
