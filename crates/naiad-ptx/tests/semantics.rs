//! What the text of functions and conversions computes, without a GPU: the results of
//! `naiad_ir::scalar`, to the bit but for NaN payloads.

mod common;

use common::machine::Machine;
use common::scalars::{Row, What, rows, stored, straight};
use naiad_ir::scalar::{Rounding, cast_bits};
use naiad_ptx::{Kernel, Target};

/// Runs a row on all its inputs, so many at a time.
fn check(row: &Row, lanes: u32, target: Target) {
    let func = straight(row, lanes);
    let kernel = Kernel { func: &func, threads: 32, shared_bytes: 0, max_regs: None, lines: false };
    let ptx = naiad_ptx::write(&kernel, target).unwrap_or_else(|e| panic!("{e}"));
    let machine = Machine::new(&ptx);
    let (n, inputs) = (lanes as usize, row.inputs());
    for (i, _) in inputs.iter().enumerate() {
        let lane = |l: usize| &inputs[(i + l * 7) % inputs.len()];
        let places = (0..row.arity()).flat_map(|a| (0..n).map(move |l| (a, l)));
        let mut params: Vec<u64> = places.map(|(a, l)| lane(l)[a]).collect();
        let mut got = vec![0u64; n];
        params.push(got.as_mut_ptr() as u64);
        // SAFETY: the kernel stores a result to each of these.
        unsafe { machine.run(&params) };
        for (l, &got) in got.iter().enumerate() {
            let want = row.eval(lane(l));
            let extended = cast_bits(row.result, stored(row), Rounding::Nearest, got);
            assert!(
                row.result.is_fp8() && got <= 0xff || extended == got,
                "{}: {got:#x} is not extended\n{ptx}",
                row.name()
            );
            let got = got & row.result.mask();
            assert!(
                row.agrees(got, want),
                "{} of {:x?}: {got:#x}, should be {want:#x}\n{ptx}",
                row.name(),
                lane(l)
            );
        }
    }
}

/// Functions that are made of others are long; the others are seen in their parts.
fn is_short(row: &Row) -> bool {
    match row.f {
        What::Unary(_) | What::Binary(_) | What::Ternary(_) => {
            !row.of.is_float() || row.arity() == 1
        }
        What::Compare(_) | What::Cast(_) => true,
    }
}

#[test]
fn results_are_those_of_the_table() {
    for row in rows() {
        check(&row, 1, Target { capability: 80 });
        if is_short(&row) {
            check(&row, 2, Target { capability: 90 });
        }
    }
}
