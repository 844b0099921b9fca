//! Random kernels about memory: machine code leaves in it what the reference executor leaves, and finds
//! the same programs at fault.

#[path = "../../naiad-interp/tests/common/mod.rs"]
mod common;
#[path = "common/drive.rs"]
mod drive;
#[path = "../../naiad-interp/tests/common/generator.rs"]
mod generator;
#[path = "common/gen.rs"]
mod kernels;
#[path = "common/machine.rs"]
mod machine;

use common::*;
use drive::drive;
use generator::{Random, images};
use kernels::Kernel;
use machine::{Machine, fault, limit_processor, patience};
use naiad_interp::{Arg, LaunchOptions, TensorArg};
use naiad_ir::Scalar;
use naiad_ir::scalar::{Rounding, cast_bits};

/// Memory of small numbers.
fn contents(bytes: usize, elem: Scalar, seed: u64) -> Vec<u64> {
    let mut r = Random(seed | 1);
    let mut out = Vec::new();
    for _ in 0..bytes / elem.size() {
        let x = (r.next() % 17) as i64 - 8;
        let bits = cast_bits(Scalar::I64, elem, Rounding::Nearest, x as u64);
        out.extend_from_slice(&bits.to_le_bytes()[..elem.size()]);
    }
    out.resize(bytes.next_multiple_of(8), 0u8);
    out.chunks_exact(8).map(|c| u64::from_le_bytes(c.try_into().unwrap())).collect()
}

/// The program that a fault speaks of.
fn program(fault: &str) -> Option<&str> {
    let at = fault.find("program (")?;
    fault[at..].split_inclusive(')').next()
}

#[test]
fn same_memory() {
    limit_processor();
    let make = |seed| {
        let kernel = kernels::generate(seed);
        (kernel.text.clone(), kernel)
    };
    drive(100, make, |text, about: &Kernel| {
        let func = kernel(text);
        let fresh: Vec<Vec<u64>> = about
            .memories
            .iter()
            .enumerate()
            .map(|(i, &(bytes, elem))| match about.zeros == Some(i) {
                true => vec![0; bytes.div_ceil(8)],
                false => contents(bytes, elem, i as u64 * 77),
            })
            .collect();
        // In one place for all runs: a wild access may hit it.
        let mut memory = fresh.clone();
        let mut args = Vec::new();
        for p in &about.pointers {
            let start = memory[p.memory].as_mut_ptr() as usize;
            args.push(Arg::Tensor(TensorArg {
                address: start + p.offset,
                storage: start..start + about.memories[p.memory].0,
                view: None,
                writable: p.writable,
            }));
        }
        let number =
            |(i, &n): (usize, &i64)| Arg::Scalar(if i < 3 { n as u32 as u64 } else { n as u64 });
        args.extend(about.numbers.iter().enumerate().map(number));
        let patience = patience();
        let plain = LaunchOptions { interrupt: Some(&patience), ..PLAIN };
        let was = run(&func, about.grid, &args, &plain).map(|_| ()).map_err(|d| fault(&d));
        let expected = memory.clone();
        let mut fate = if was.is_ok() { "ran" } else { "failed" };
        for optimize in [false, true] {
            let machine = Machine::new(&func, &args, optimize);
            for (m, f) in memory.iter_mut().zip(&fresh) {
                m.copy_from_slice(f);
            }
            let is = machine.run(about.grid, &args, about.threads).map_err(|d| fault(&d));
            match (&was, &is) {
                (Err(a), Err(b)) if a != b && program(a) == program(b) => {
                    // Of several faults of one program machine code may find another one first: it
                    // does in one loop what the program does in several.
                    fate = "failed in another way";
                }
                _ if was != is => {
                    return Err(format!("another fault\n{was:#?}\n{is:#?}, optimized: {optimize}"));
                }
                _ => {}
            }
            if was.is_err() {
                continue;
            }
            for (i, &(bytes, elem)) in about.memories.iter().enumerate() {
                let flat = |m: &[u64]| -> Vec<u64> {
                    let all: Vec<u8> = m.iter().flat_map(|x| x.to_le_bytes()).collect();
                    images(&all, elem, bytes / elem.size())
                };
                let (x, y) = (flat(&expected[i]), flat(&memory[i]));
                if let Some(at) = (0..x.len()).find(|&at| x[at] != y[at]) {
                    let differ = (0..x.len()).filter(|&at| x[at] != y[at]).count();
                    let pointers: Vec<_> =
                        about.pointers.iter().map(|p| (p.memory, p.offset)).collect();
                    return Err(format!(
                        "other memory\nmemory {i} of {elem} at {at}: {:x} became {:x}, {differ} differ; optimized: {optimize}; numbers {:?}, grid {:?}, pointers {pointers:?}",
                        x[at], y[at], about.numbers, about.grid,
                    ));
                }
            }
        }
        Ok(fate)
    });
}
