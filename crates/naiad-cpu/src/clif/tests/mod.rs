//! Machine code against the evaluator of Thread IR.
//!
//! A [`Probe`] is a function that loads operands from one buffer and stores results into it. It is run
//! by the evaluator and as code for this machine and for lesser ones of its kind, on numbers that are
//! special and on random ones, and all must leave the same numbers.

mod control;
mod frame;
mod memory;
mod ops;
mod random;

use super::target::{Target, features};
use super::{Machine, Report, RuntimeTable, write_for};
use naiad_interp::thread::{Outcome, run};
use naiad_ir::scalar::{Rounding, cast_bits};
use naiad_ir::thread::{Builder, RuntimeFn, Thread, ThreadElem, ThreadOp, ThreadType, Vector};
use naiad_ir::{Function, Scalar, Value};
use naiad_kernels::Level as Processor;
use std::sync::OnceLock;

/// Types that functions are computed in.
pub const COMPUTED: [Scalar; 11] = [
    Scalar::I1,
    Scalar::I8,
    Scalar::I16,
    Scalar::I32,
    Scalar::I64,
    Scalar::U8,
    Scalar::U16,
    Scalar::U32,
    Scalar::U64,
    Scalar::F32,
    Scalar::F64,
];

pub const LANES: [u32; 5] = [1, 2, 4, 8, 16];

pub struct Probe {
    pub b: Builder,
    base: Value,
    bytes: usize,
    inputs: Vec<(usize, Vector)>,
    outputs: Vec<(usize, Vector)>,
}

impl Probe {
    pub fn new(name: &str) -> Probe {
        let mut b = Builder::new(name);
        let base = b.func.add_param("base", ThreadType::ADDR);
        Probe { b, base, bytes: 0, inputs: Vec::new(), outputs: Vec::new() }
    }

    /// Room in the buffer: where it is, and its address.
    pub fn room(&mut self, bytes: usize) -> i64 {
        let at = self.bytes;
        // Not aligned: accesses need not be.
        self.bytes += bytes + 1;
        at as i64
    }

    pub fn base(&self) -> Value {
        self.base
    }

    /// Numbers that the check chooses.
    pub fn input(&mut self, elem: impl Into<ThreadElem>, lanes: u32) -> Value {
        let ty = Vector::of(elem.into(), lanes);
        let at = self.place(ty);
        self.b.load(self.base, at, ty)
    }

    /// Room for numbers that the check chooses.
    pub fn place(&mut self, ty: Vector) -> i64 {
        let at = self.room(ty.elem.size() * ty.lanes as usize);
        self.inputs.push((at as usize, ty));
        at
    }

    /// A number that must come out the same.
    pub fn output(&mut self, value: Value) {
        let ty = self.b.vector(value);
        let at = self.room(ty.elem.size() * ty.lanes as usize);
        self.b.store(self.base, at, value);
        self.outputs.push((at as usize, ty));
    }

    /// Numbers in the buffer that must be the same in the end.
    pub fn watch(&mut self, at: i64, ty: Vector) {
        self.outputs.push((at as usize, ty));
    }

    pub fn finish(&mut self) -> Function<Thread> {
        self.b.run(ThreadOp::Return {});
        naiad_ir::verify(&self.b.func).expect("verified");
        self.b.func.clone()
    }

    pub fn check(mut self, rounds: usize) {
        let func = self.finish();
        let machines: Vec<_> = targets().iter().map(|(n, t)| (*n, write(t, &func))).collect();
        let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ self.bytes as u64);
        for round in 0..rounds {
            let mut memory = vec![0u8; self.bytes + 64];
            for &(at, ty) in &self.inputs {
                for lane in 0..ty.lanes as usize {
                    let size = ty.elem.size();
                    let image = random.image(ty.elem.scalar().unwrap_or(Scalar::U64));
                    memory[at + lane * size..][..size]
                        .copy_from_slice(&image.to_le_bytes()[..size]);
                }
            }
            let mut expected = memory.clone();
            let slots = [expected.as_mut_ptr() as u64];
            // SAFETY: the function accesses the buffer only.
            let outcome = unsafe { run(&func, &slots, &mut runtime) };
            for (target, machine) in &machines {
                let mut memory = memory.clone();
                let got = execute(machine, &[memory.as_mut_ptr() as u64]);
                assert_eq!(got, outcome, "{}", func.name);
                for &(at, ty) in &self.outputs {
                    let [want, got] = [&expected, &memory].map(|m| images(m, at, ty));
                    let same = want.iter().zip(&got).all(|(&x, &y)| same(ty.elem, x, y));
                    let name = &func.name;
                    assert!(
                        same,
                        "{name}, round {round}, {}: {ty} at {at}:\nwant {want:x?}\ngot  {got:x?}\n{}\n{}",
                        target,
                        inputs(&self.inputs, &expected),
                        func,
                    );
                }
            }
        }
    }
}

/// A counted loop.
pub fn for_loop(
    b: &mut Builder,
    bounds: [Value; 3],
    inits: Vec<Value>,
    body: impl FnOnce(&mut Builder, Value, &[Value]) -> Vec<Value>,
) -> Vec<Value> {
    let l = b.begin_for(bounds, inits);
    let next = body(b, l.iv, &l.carried);
    b.end_for(l, next)
}

fn inputs(inputs: &[(usize, Vector)], memory: &[u8]) -> String {
    inputs
        .iter()
        .map(|&(at, ty)| format!("{ty} at {at}: {:x?}\n", images(memory, at, ty)))
        .collect()
}

fn images(memory: &[u8], at: usize, ty: Vector) -> Vec<u64> {
    let size = ty.elem.size();
    let lane = |i: usize| {
        let mut image = [0; 8];
        image[..size].copy_from_slice(&memory[at + i * size..][..size]);
        u64::from_le_bytes(image)
    };
    (0..ty.lanes as usize).map(lane).collect()
}

/// Whether two images are equal, or two NaN.
pub fn same(elem: ThreadElem, x: u64, y: u64) -> bool {
    let is_nan = |image| {
        elem.scalar().is_some_and(|s| {
            s.is_float()
                && f64::from_bits(cast_bits(s, Scalar::F64, Rounding::Nearest, image)).is_nan()
        })
    };
    x == y || is_nan(x) && is_nan(y)
}

pub fn host() -> &'static Target {
    Target::host().expect("a target")
}

/// This machine, and what it would be with fewer features.
pub fn targets() -> Vec<(&'static str, &'static Target)> {
    static LESSER: OnceLock<Vec<(&str, Target)>> = OnceLock::new();
    let lesser = LESSER.get_or_init(|| {
        let below = [Processor::Portable, Processor::Avx2];
        let of = |p: Processor| (p.name(), Target::with(features(p)).expect("a target"));
        Processor::available().filter(|p| below.contains(p)).map(of).collect()
    });
    [("host", host())].into_iter().chain(lesser.iter().map(|(n, t)| (*n, t))).collect()
}

pub fn write(target: &Target, func: &Function<Thread>) -> Machine {
    match write_for(target, func, &table(), [None; 2]) {
        Ok(machine) => machine,
        Err(e) => panic!("{}\n{}", e.message, func),
    }
}

pub fn execute(machine: &Machine, slots: &[u64]) -> Outcome {
    #[repr(align(64))]
    #[derive(Clone)]
    struct Line(#[allow(dead_code, reason = "only its size and alignment matter")] [u8; 64]);
    let mut frame = vec![Line([0x5a; 64]); machine.frame_bytes().div_ceil(64)];
    let mut report = Report::default();
    // SAFETY: the frame is as large and aligned as it must be; the functions access what they are given.
    let ended = unsafe { machine.run(slots.as_ptr(), frame.as_mut_ptr().cast(), &mut report) };
    if ended {
        return Outcome::Ended;
    }
    let values = report.values[..report.count as usize].to_vec();
    Outcome::Failed { site: report.site, values }
}

/// The functions of the runtime for tests: they mix their arguments, but for atomics.
pub fn runtime(f: RuntimeFn, args: &[u64]) -> Vec<u64> {
    let mix = args.iter().fold(f as u64, |sum, &x| sum.wrapping_mul(31).wrapping_add(x));
    match f {
        RuntimeFn::AtomicRmw | RuntimeFn::AtomicCas => vec![mix],
        RuntimeFn::MayAccess | RuntimeFn::Host | RuntimeFn::Wait => vec![mix & 1],
        RuntimeFn::Copy2d
        | RuntimeFn::Dot
        | RuntimeFn::Sort
        | RuntimeFn::TopK
        | RuntimeFn::Histogram => vec![],
    }
}

pub fn table() -> RuntimeTable {
    extern "C" fn four<const F: usize>(a: u64, b: u64, c: u64, d: u64) -> u64 {
        runtime(RuntimeFn::ALL[F], &[a, b, c, d])[0]
    }
    extern "C" fn nothing() {}
    let address = |f: RuntimeFn| match f {
        RuntimeFn::MayAccess => four::<{ RuntimeFn::MayAccess as usize }> as *const () as usize,
        RuntimeFn::Host => four::<{ RuntimeFn::Host as usize }> as *const () as usize,
        RuntimeFn::AtomicRmw => atomic_rmw as *const () as usize,
        RuntimeFn::AtomicCas => four::<{ RuntimeFn::AtomicCas as usize }> as *const () as usize,
        RuntimeFn::Copy2d
        | RuntimeFn::Dot
        | RuntimeFn::Sort
        | RuntimeFn::TopK
        | RuntimeFn::Histogram
        | RuntimeFn::Wait => nothing as *const () as usize,
    };
    // SAFETY: the functions that the tests call are as their signatures say.
    unsafe { RuntimeTable::new(address) }
}

/// An update of one thread: the evaluator's.
extern "C" fn atomic_rmw(address: u64, ty: u64, op: u64, value: u64) -> u64 {
    use naiad_ir::tile::AtomicOp;
    let (ty, op) = (Scalar::ALL[ty as usize], AtomicOp::ALL[op as usize]);
    let mut b = Builder::new("update");
    let params = [ThreadType::ADDR, Vector::scalar(ty).into()].map(|t| b.func.add_param("", t));
    let out = b.func.add_param("out", ThreadType::ADDR);
    let old = b.op(ThreadOp::Atomic {
        f: op,
        addr: params[0],
        value: params[1],
        sem: naiad_ir::tile::Sem::AcqRel,
        scope: naiad_ir::tile::Scope::Gpu,
    });
    b.store(out, 0, old);
    b.run(ThreadOp::Return {});
    let mut old = 0u64;
    // SAFETY: the caller's promise.
    unsafe { run(&b.func, &[address, value, &raw mut old as u64], &mut runtime) };
    old
}

/// Random numbers, many of them special.
pub struct Random(pub u64);

impl Random {
    pub fn bits(&mut self) -> u64 {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        (self.bits() >> 11) % n
    }

    pub fn image(&mut self, ty: Scalar) -> u64 {
        let pick = self.bits();
        let image = match self.below(4) {
            0 if ty.is_float() => {
                let values = [
                    0.0,
                    -0.0,
                    1.0,
                    -1.5,
                    f64::INFINITY,
                    f64::NEG_INFINITY,
                    f64::NAN,
                    f64::MAX,
                    f64::MIN_POSITIVE,
                    5e-324,
                    1.0 / 3.0,
                    2147483648.0,
                    -2147483648.0,
                    4294967296.0,
                    65504.0,
                    65520.0,
                    3.4e38,
                    1e-40,
                    6e-8,
                    448.0,
                    57344.0,
                ];
                let value = values[self.below(values.len() as u64) as usize].to_bits();
                cast_bits(Scalar::F64, ty, Rounding::Nearest, value)
            }
            1 if ty.is_float() => {
                let value = (self.bits() as i64 as f64) / 2f64.powi(self.below(80) as i32 + 20);
                cast_bits(Scalar::F64, ty, Rounding::Nearest, value.to_bits())
            }
            0 => {
                let near = [
                    0,
                    1,
                    u64::MAX,
                    1 << 63,
                    u64::MAX >> 1,
                    ty.mask() >> 1,
                    ty.mask(),
                    ty.mask() >> 1 | 1,
                ];
                near[self.below(near.len() as u64) as usize]
                    .wrapping_add(self.below(3))
                    .wrapping_sub(1)
            }
            1 => self.below(70),
            _ => pick,
        };
        image & ty.mask()
    }
}
