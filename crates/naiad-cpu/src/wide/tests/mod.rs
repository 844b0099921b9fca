//! Wide loops against the evaluator of Thread IR.
//!
//! A [`Trial`] is a function with one loop, which reads arrays, computes, and writes arrays. It is run
//! by the evaluator and at every level that this machine has, on numbers that are special and on
//! random ones, for few and for many rounds, and all must leave the same numbers.

mod bytes;
mod loops;
mod ops;
mod random;

use super::Level;
use crate::clif::tests::{Random, execute, runtime, same, table};
use crate::clif::{Options, write_with};
use crate::native::expand;
use naiad_interp::thread::{Outcome, run};
use naiad_ir::thread::{Builder, ForLoop, Lanes, Thread, ThreadElem, ThreadOp, ThreadType, Vector};
use naiad_ir::tile::MemHints;
use naiad_ir::{Function, Scalar, Value};

/// Rounds of a loop, at most.
const MOST: usize = 11;

/// The levels that this machine has.
fn levels() -> impl Iterator<Item = Level> {
    [Level::Avx2, Level::Avx512].into_iter().filter(|&l| Level::host().is_some_and(|h| l <= h))
}

struct Trial {
    b: Builder,
    base: Value,
    lanes: u32,
    l: Option<ForLoop>,
    next: Vec<Value>,
    bytes: usize,
    inputs: Vec<(usize, ThreadElem)>,
    outputs: Vec<(usize, Vector, usize)>,
}

impl Trial {
    /// A loop in whose every round as many elements are at hand.
    fn new(name: &str, lanes: u32) -> Trial {
        Trial::carrying(name, lanes, |_| Vec::new())
    }

    fn carrying(name: &str, lanes: u32, inits: impl FnOnce(&mut Builder) -> Vec<Value>) -> Trial {
        let mut b = Builder::new(name);
        let base = b.func.add_param("base", ThreadType::ADDR);
        let lower = b.func.add_param("lower", ThreadType::I64);
        let upper = b.func.add_param("upper", ThreadType::I64);
        let step = b.i64(lanes.into());
        let inits = inits(&mut b);
        let l = b.begin_for([lower, upper, step], inits);
        let next = l.carried.clone();
        // The first line is for scalars.
        Trial {
            b,
            base,
            lanes,
            l: Some(l),
            next,
            bytes: 64,
            inputs: Vec::new(),
            outputs: Vec::new(),
        }
    }

    fn array(&mut self, elem: ThreadElem) -> usize {
        let at = self.bytes;
        // Not aligned: accesses need not be.
        self.bytes += elem.size() * self.lanes as usize * MOST + 1;
        at
    }

    /// The address of this round's part of an array with such elements.
    fn address(&mut self, elem: ThreadElem) -> Value {
        let iv = self.l.as_ref().map(|l| l.iv).expect("in the loop");
        let size = self.b.i64(elem.size() as i64);
        let offset = self.b.mul(iv, size);
        self.b.addr_add(self.base, offset)
    }

    /// Numbers that the check chooses.
    fn input(&mut self, elem: impl Into<ThreadElem>) -> Value {
        self.masked_input(elem, None)
    }

    fn masked_input(&mut self, elem: impl Into<ThreadElem>, mask: Option<Value>) -> Value {
        let elem = elem.into();
        let at = self.array(elem);
        self.inputs.push((at, elem));
        let addr = self.address(elem);
        self.b.op(ThreadOp::Load {
            addr,
            disp: at as i64,
            elem,
            lanes: Lanes(self.lanes),
            mask,
            hints: MemHints::default(),
        })
    }

    /// Numbers that must come out the same.
    fn output(&mut self, value: Value) {
        self.masked_output(value, None);
    }

    fn masked_output(&mut self, value: Value, mask: Option<Value>) {
        let of = self.b.vector(value);
        let at = self.array(of.elem);
        self.outputs.push((at, of, MOST));
        let addr = self.address(of.elem);
        let disp = at as i64;
        self.b.run(ThreadOp::Store { addr, value, disp, mask, hints: MemHints::default() });
    }

    /// A number that is the same in every round.
    fn scalar(&mut self, elem: impl Into<ThreadElem>) -> Value {
        let elem = elem.into();
        let param = self.b.func.add_param("scalar", ThreadType::Vector(Vector::of(elem, 1)));
        assert!(self.b.func.params().len() < 12);
        param
    }

    fn finish(&mut self) -> Function<Thread> {
        if let Some(l) = self.l.take() {
            let next = std::mem::take(&mut self.next);
            for last in self.b.end_for(l, next) {
                let of = self.b.vector(last);
                let at = self.array(of.elem);
                self.b.store(self.base, at as i64, last);
                self.outputs.push((at, of, 1));
            }
            self.b.run(ThreadOp::Return {});
        }
        naiad_ir::verify(&self.b.func).expect("verified");
        expand(&self.b.func).into_owned()
    }

    /// Whether the loop is written at this level.
    fn is_wide(&mut self, level: Level) -> bool {
        let func = self.finish();
        let mut found = false;
        func.walk(&mut |inst| found |= super::write(&func, func.op(inst), level).is_some());
        found
    }

    /// Compares the loop at every level, where it must be written.
    fn check(mut self, rounds: usize) {
        for level in levels() {
            assert!(self.is_wide(level), "{level:?}: not written: {}", self.finish());
        }
        self.compare(rounds);
    }

    fn compare(&mut self, rounds: usize) {
        let func = self.finish();
        let machines: Vec<_> = levels()
            .filter(|&level| self.is_wide(level))
            .map(|level| {
                let options = Options { wide: Some(level), past_cache: None, far: None };
                (level, write_with(options, &func, &table()))
            })
            .collect();
        let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ self.bytes as u64);
        for round in 0..rounds {
            let mut memory = vec![0u8; self.bytes + 64];
            for &(at, elem) in &self.inputs {
                let size = elem.size();
                for lane in 0..self.lanes as usize * MOST {
                    let image = random.image(elem.scalar().unwrap_or(Scalar::U64));
                    memory[at + lane * size..][..size]
                        .copy_from_slice(&image.to_le_bytes()[..size]);
                }
            }
            let trips = random.below(MOST as u64 + 1);
            // The last round may be one that the step passes over.
            let upper = (trips * u64::from(self.lanes)).saturating_sub(random.below(2));
            let mut slots = vec![0, 0, upper];
            for &param in &func.params()[3..] {
                let of = func.ty(param).vector().and_then(|v| v.elem.scalar());
                slots.push(random.image(of.unwrap_or(Scalar::U64)));
            }
            let mut expected = memory.clone();
            slots[0] = expected.as_mut_ptr() as u64;
            // SAFETY: the function accesses the buffer only.
            let outcome = unsafe { run(&func, &slots, &mut runtime) };
            assert_eq!(outcome, Outcome::Ended);
            for (level, machine) in &machines {
                let machine = machine.as_ref().expect("machine code");
                let mut memory = memory.clone();
                slots[0] = memory.as_mut_ptr() as u64;
                assert_eq!(execute(machine, &slots), outcome, "{}", func.name);
                for &(at, of, times) in &self.outputs {
                    let size = of.elem.size();
                    for i in 0..of.lanes as usize * times {
                        let [want, got] = [&expected, &memory].map(|m| {
                            let mut image = [0; 8];
                            image[..size].copy_from_slice(&m[at + i * size..][..size]);
                            u64::from_le_bytes(image)
                        });
                        assert!(
                            same(of.elem, want, got),
                            "{}, {level:?}, round {round}, {trips} trips, {of} at {at}, lane {i}: \
                             want {want:x}, got {got:x}\n{}{func}",
                            func.name,
                            self.show(&expected, i),
                        );
                    }
                }
            }
        }
    }

    fn show(&self, memory: &[u8], lane: usize) -> String {
        let one = |&(at, elem): &(usize, ThreadElem)| {
            let bytes = &memory[at + lane * elem.size()..][..elem.size()];
            let hex: String = bytes.iter().rev().map(|b| format!("{b:02x}")).collect();
            format!("{elem} at {at}: {hex}\n")
        };
        self.inputs.iter().map(one).collect()
    }
}
