//! Random kernels: the compressed forms must give the same bits as dense tiles walked lane by lane.

mod common;
#[path = "common/generator.rs"]
mod generator;

use common::*;
use generator::{INPUT, Kind, Random, generate, images, ty};
use naiad_interp::{Arg, LaunchOptions, PolicyKind, Report, TensorArg};
use naiad_ir::Type;

#[test]
fn compressed_and_naive_agree_and_checks_change_nothing() {
    let mut input = vec![0u8; INPUT];
    let mut random = Random(12345);
    for byte in &mut input {
        *byte = random.next() as u8;
    }
    let (mut completed, mut failed) = (0, 0);
    let rounds: u64 =
        option_env!("NAIAD_RANDOM_ROUNDS").and_then(|n| n.parse().ok()).unwrap_or(1500);
    for seed in 0..rounds {
        let (text, stored, bytes) = generate(seed, Kind::All);
        let func = kernel(&text);
        let programs = 3;
        // Aligned for every type, and in one place for both runs: a wild access may hit it.
        let mut out = vec![0u64; bytes * programs / 8 + 1];
        let (plain, checked) = (PolicyKind::Plain, PolicyKind::Checked);
        let ways = [(true, plain), (false, plain), (true, checked), (false, checked)];
        let outcome = ways.map(|(naive, policy)| {
            out.fill(0x55);
            let start = input.as_mut_ptr() as usize;
            let args = [
                Arg::Tensor(TensorArg {
                    address: start + INPUT / 4,
                    storage: start..start + INPUT,
                    view: None,
                    writable: false,
                }),
                tensor(&mut out),
                int(13),
            ];
            let options = LaunchOptions { naive, policy, ..PLAIN };
            let result = run(&func, [programs as u32, 1, 1], &args, &options);
            let found = |r: Report| r.findings.iter().map(said).collect::<Vec<_>>();
            (result.map(found).map_err(|d| said(&d)), out.clone())
        });
        let [(a, out_a), (b, out_b), (c, _), (d, out_d)] = outcome;
        assert_eq!(a, b, "seed {seed}\n{text}");
        // Findings do not depend on the forms either.
        if c != d {
            let (c, d) = (c.unwrap_or_default(), d.unwrap_or_default());
            let only = |a: &[String], b: &[String]| {
                a.iter().filter(|x| !b.contains(x)).cloned().collect::<Vec<_>>().join("\n")
            };
            panic!(
                "seed {seed}: naive finds\n{}\ncompressed finds\n{}\n{text}",
                only(&c, &d),
                only(&d, &c)
            );
        }
        // A checked launch ends where an offset has wrapped, or a store leaves a view; else it computes
        // what a plain one does.
        if d.is_ok() {
            assert!(b.is_ok() && out_b == out_d, "seed {seed}\n{text}");
        }
        if a.is_err() {
            failed += 1;
            continue;
        }
        completed += 1;
        let bytes_of =
            |out: &[u64]| -> Vec<u8> { out.iter().flat_map(|x| x.to_le_bytes()).collect() };
        let (out_a, out_b) = (bytes_of(&out_a), bytes_of(&out_b));
        for p in 0..programs {
            for (i, &(elem, at, n)) in stored.iter().enumerate() {
                let from = p * bytes + at;
                let (x, y) = (images(&out_a[from..], elem, n), images(&out_b[from..], elem, n));
                assert_eq!(x, y, "seed {seed}, program {p}, value {i} of {elem}\n{text}");
            }
        }
    }
    assert!(completed > 4 * failed, "{completed} kernels ran, {failed} failed");
}

#[test]
fn types_print_as_the_generator_writes_them() {
    let t: Type = ty("fp32", &[4, 8]).parse().unwrap();
    assert_eq!(t.to_string(), "<4x8xfp32>");
}
