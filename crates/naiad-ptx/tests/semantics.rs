//! What the text of functions and conversions computes, without a GPU.
//!
//! The text of a scalar function is a straight line, which `naiad_ir::ptx_asm` evaluates by what PTX
//! says of each instruction. Parameters and stores become operands of that; the results must be those
//! of `naiad_ir::scalar`, to the bit but for NaN payloads.

mod common;

use common::scalars::{Row, What, rows, stored, straight};
use naiad_ir::Scalar;
use naiad_ir::ptx_asm::{Interface, Program, Registers};
use naiad_ir::scalar::{Rounding, cast_bits};
use naiad_ptx::{Kernel, Target};

/// The function's PTX as a text with operands: `$0` and on for what is stored, then the parameters.
fn operands(ptx: &str, results: usize) -> String {
    let body =
        ptx.split_once("\n{\n").and_then(|(_, body)| body.rsplit_once('}')).expect("a body").0;
    let mut out = String::new();
    let mut stored = 0;
    for line in body.lines() {
        let line = line.trim();
        if line == "ret;" || line.starts_with("cvta") {
            continue;
        }
        if let Some(rest) = line.strip_prefix("ld.param.") {
            let (ty, rest) = rest.split_once(' ').expect("a type");
            let (register, param) = rest.split_once(", [param_").expect("a parameter");
            let param: usize = param.trim_end_matches("];").parse().expect("a number");
            let param = param + results;
            out += &match ty {
                "s8" => format!("cvt.s32.s8 {register}, ${param};\n"),
                "u8" => format!("cvt.u32.u8 {register}, ${param};\n"),
                ty => format!("mov.{ty} {register}, ${param};\n"),
            };
        } else if let Some(rest) = line.strip_prefix("st.global.") {
            let (ty, rest) = rest.split_once(' ').expect("a type");
            let (_, value) = rest.split_once("], ").expect("a value");
            let ty = if ty.ends_with('8') { "b32" } else { ty };
            out += &format!("mov.{ty} ${stored}, {value}\n");
            stored += 1;
        } else {
            out += &format!("{line}\n");
        }
    }
    assert_eq!(stored, results, "{ptx}");
    out
}

fn constraint(of: Scalar) -> &'static str {
    match of.bits() {
        16 => "h",
        64 => "l",
        _ => "r",
    }
}

/// Runs a row on all its inputs, so many at a time.
fn check(row: &Row, lanes: u32, target: Target) {
    let func = straight(row, lanes);
    let kernel = Kernel { func: &func, threads: 32, shared_bytes: 0, max_regs: None };
    let ptx = naiad_ptx::write(&kernel, target).unwrap_or_else(|e| panic!("{e}"));
    let n = lanes as usize;
    let text = operands(&ptx, n);
    let mut words = vec![format!("={}", constraint(stored(row))); n];
    words.extend(vec![constraint(row.of).to_string(); n * row.arity()]);
    // The address that results go to.
    words.push("l".to_string());
    let mut args = vec![row.of.bits(); n * row.arity()];
    args.push(64);
    let results = vec![stored(row).bits(); n];
    let interface = Interface { args: &args, results: &results, pack: 1 };
    let program = Program::parse(&text, &words.join(","), &interface)
        .unwrap_or_else(|e| panic!("{}: {e:?}\n{text}", row.name()));
    let (inputs, mut registers) = (row.inputs(), Registers::default());
    for (i, _) in inputs.iter().enumerate() {
        let lane = |l: usize| &inputs[(i + l * 7) % inputs.len()];
        let mut images: Vec<u64> = (0..row.arity())
            .flat_map(|a| (0..n).map(move |l| (a, l)))
            .map(|(a, l)| lane(l)[a])
            .collect();
        images.push(0);
        let mut got = vec![0; n];
        program.call(&mut registers, &images, &mut got, &mut || 0);
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
