//! What a kernel computes stays the same: the reference executor runs it before and after.

#[path = "../../naiad-interp/tests/common/mod.rs"]
mod common;
#[path = "../../naiad-interp/tests/common/generator.rs"]
mod generator;

use common::*;
use generator::{INPUT, Kind, Random, generate, images};
use naiad_interp::{Arg, TensorArg};
use naiad_ir::Function;
use naiad_ir::tile::Tile;
use naiad_opt::Room;
use naiad_opt::interval::Interval;
use naiad_opt::ranges::{Inputs, Param};
use std::sync::Arc;

/// What a random kernel leaves behind, or what it says is wrong.
fn outcome(func: &Arc<Function<Tile>>, input: &mut [u8], out: &mut [u64]) -> Result<(), String> {
    out.fill(0x55);
    let start = input.as_mut_ptr() as usize;
    let args = [
        Arg::Tensor(TensorArg {
            address: start + INPUT / 4,
            storage: start..start + INPUT,
            view: None,
            writable: false,
        }),
        tensor(out),
        int(13),
    ];
    run(func, [PROGRAMS as u32, 1, 1], &args, &PLAIN).map(|_| ()).map_err(|d| d.message.clone())
}

const PROGRAMS: usize = 3;

type Pass = fn(&mut Function<Tile>);

/// Each kernel goes through the pipeline, and one in turn of the passes alone.
const ALONE: &[(&str, Pass)] = &[
    ("canonicalize", naiad_opt::canonicalize),
    ("cse", naiad_opt::cse),
    ("split_carried", |func| _ = naiad_opt::split_carried(func)),
    ("licm", naiad_opt::licm),
    ("dce", naiad_opt::dce),
    ("optimize_for", |func| naiad_opt::optimize_for(func, &known())),
    ("reuse", |func| {
        naiad_opt::canonicalize(func);
        naiad_opt::reuse(func, &known(), Room { elements: 1 << 20, branches: true });
    }),
];

/// What is known of the launches of this test.
fn known() -> Inputs {
    let n = Param { range: Some(Interval::point(13)), divisible: None };
    Inputs {
        grid: Some([PROGRAMS as u32, 1, 1]),
        params: vec![Param::default(), Param::default(), n],
    }
}

#[test]
fn random_kernels() {
    let mut input = vec![0u8; INPUT];
    let mut random = Random(12345);
    input.iter_mut().for_each(|byte| *byte = random.next() as u8);
    let (mut completed, mut failed) = (0, 0);
    let rounds: u64 =
        option_env!("NAIAD_RANDOM_ROUNDS").and_then(|n| n.parse().ok()).unwrap_or(600);
    for seed in 0..rounds {
        let (text, stored, bytes) = generate(seed, Kind::All);
        let before = kernel(&text);
        // Aligned for every type, and in one place for all runs: a wild access may hit it.
        let mut out = vec![0u64; bytes * PROGRAMS / 8 + 1];
        let was = outcome(&before, &mut input, &mut out);
        let out_before: Vec<u8> = out.iter().flat_map(|x| x.to_le_bytes()).collect();
        if was.is_err() {
            failed += 1;
        } else {
            completed += 1;
        }
        let alone = ALONE[seed as usize % ALONE.len()];
        for (name, pass) in [("optimize", naiad_opt::optimize as Pass), alone] {
            let mut after = Function::clone(&before);
            pass(&mut after);
            let after = Arc::new(after);
            let place = format!("seed {seed} after {name}");
            naiad_ir::verify(&after).unwrap_or_else(|d| panic!("{place}: {}\n{text}", d.message));
            let is = outcome(&after, &mut input, &mut out);
            let out_after: Vec<u8> = out.iter().flat_map(|x| x.to_le_bytes()).collect();
            assert_eq!(was, is, "{place}\n{text}\n{after}");
            if was.is_err() {
                continue;
            }
            for p in 0..PROGRAMS {
                for (i, &(elem, at, n)) in stored.iter().enumerate() {
                    let from = p * bytes + at;
                    let x = images(&out_before[from..], elem, n);
                    let y = images(&out_after[from..], elem, n);
                    assert_eq!(x, y, "{place}, program {p}, value {i} of {elem}\n{text}\n{after}");
                }
            }
        }
    }
    assert!(completed > 4 * failed, "{completed} kernels ran, {failed} failed");
}
