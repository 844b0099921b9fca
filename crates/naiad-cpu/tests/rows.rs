//! Rows of any length through a tile of one size: each length gives the bits that the reference executor
//! does, also where all that is summed are zeros, whose sum has a sign.

#[path = "../../naiad-interp/tests/common/mod.rs"]
mod common;
#[path = "common/machine.rs"]
mod machine;

use common::*;
use machine::{Machine, fault};

const TILE: i64 = 64;
/// Elements behind each other in memory.
const LENGTH: usize = 5 * TILE as usize;

/// Runs a kernel of a row, a result and the row's length for many lengths.
fn agree(text: &str, row: &[f32], lengths: &[i64]) {
    let func = kernel(text);
    let mut row = row.to_vec();
    let mut out = vec![0f32; TILE as usize];
    let mut args = [tensor(&mut row), tensor(&mut out), int(0)];
    let machines = [false, true].map(|optimize| Machine::new(&func, &args, optimize));
    let bits = |out: &[f32]| -> Vec<u32> { out.iter().map(|x| x.to_bits()).collect() };
    for &n in lengths {
        args[2] = int(n);
        out.fill(7.0);
        let was = run(&func, [1, 1, 1], &args, &PLAIN).map(|_| ()).map_err(|d| fault(&d));
        let expected = bits(&out);
        for (machine, optimized) in machines.iter().zip([false, true]) {
            out.fill(7.0);
            let is = machine.run([1, 1, 1], &args, 1).map_err(|d| fault(&d));
            assert_eq!(was, is, "length {n}, optimized: {optimized}\n{text}");
            if is.is_ok() {
                assert_eq!(expected, bits(&out), "length {n}, optimized: {optimized}\n{text}");
            }
        }
    }
}

/// Lengths around whole vectors and whole tiles.
fn lengths() -> Vec<i64> {
    let near = |n: i64| [n - 1, n, n + 1];
    let mut all: Vec<i64> = [16, 32, TILE, TILE + 32, 2 * TILE, 3 * TILE].map(near).concat();
    all.extend([-5, 0, 1, 5, 4 * TILE, LENGTH as i64]);
    all
}

fn whole_numbers() -> Vec<f32> {
    (0..LENGTH).map(|i| ((i * 7 + 3) % 17) as f32 - 8.0).collect()
}

/// Of these the order of additions matters.
fn thirds() -> Vec<f32> {
    (0..LENGTH).map(|i| (i as f32 + 0.5) / 3.0 - 40.0).collect()
}

/// A row through a loop that starts with a constant; `end` says what becomes of the tile %r.
fn streamed(f: &str, start: &str, other: &str, end: &str) -> String {
    format!(
        "tile @k(%p p: *fp32, %o o: *fp32, %n n: i32) {{
          %i = arange start=0 end=64 : <64xi32>
          %c = const value={start}:fp32 : fp32
          %t = splat %c shape=(64,) : <64xfp32>
          %d = const value={other}:fp32 : fp32
          %other = splat %d shape=(64,) : <64xfp32>
          %zero = const value=0:i32 : i32
          %step = const value=64:i32 : i32
          %end = splat %n shape=(64,) : <64xi32>
          %q = splat %p shape=(64,) : <64x*fp32>
          %r = for %zero, %n, %step inits=[%t] {{
          ^(%k: i32, %x: <64xfp32>):
            %s = splat %k shape=(64,) : <64xi32>
            %at = binary.add %i, %s : <64xi32>
            %a = ptr_add %q, %at : <64x*fp32>
            %m = compare.lt %at, %end : <64xi1>
            %l = load %a mask=%m other=%other : <64xfp32>
            %y = binary.{f} %x, %l : <64xfp32>
            yield values=[%y]
          }} : <64xfp32>
          {end}
          return
        }}"
    )
}

fn reduced(f: &str, v: &str) -> String {
    format!(
        "%z = reduce inputs=[{v}] axis=0 {{
         ^(%e: fp32, %g: fp32):
           %h = binary.{f} %e, %g : fp32
           yield values=[%h]
         }} : fp32
         store %o, %z"
    )
}

#[test]
fn sums_of_rows_in_a_loop() {
    for f in ["add", "max", "min"] {
        for start in ["0.0", "-0.0", "1.0"] {
            for other in ["0.0", "-0.0", "2.0"] {
                let text = streamed(f, start, other, &reduced(f, "%r"));
                agree(&text, &whole_numbers(), &lengths());
                if f == "add" {
                    agree(&text, &[-0.0; LENGTH], &lengths());
                }
            }
        }
    }
}

#[test]
fn tiles_of_rows_in_a_loop() {
    let end = "%w = splat %o shape=(64,) : <64x*fp32>
         %b = ptr_add %w, %i : <64x*fp32>
         store %b, %r";
    agree(&streamed("add", "0.0", "0.0", end), &thirds(), &lengths());
}

#[test]
fn a_row_that_ends_before_it_is_read_to_the_end() {
    // Lengths beyond the memory are faults, in the round that the loop would have them in.
    let text = streamed("add", "0.0", "0.0", &reduced("add", "%r"));
    for elements in [1, 63, 64, 65, 130] {
        agree(&text, &whole_numbers()[..elements], &[1, 64, 65, 128, 129, 200]);
    }
}

#[test]
fn signs_of_sums_of_zeros() {
    for other in ["0.0", "-0.0"] {
        for start in ["0.0", "-0.0"] {
            // The constant is on either side, or absent.
            for sum in
                ["%v = binary.add %l, %t : <64xfp32>", "%v = binary.add %t, %l : <64xfp32>", ""]
            {
                let v = if sum.is_empty() { "%l" } else { "%v" };
                let text = format!(
                    "tile @k(%p p: *fp32, %o o: *fp32, %n n: i32) {{
                      %i = arange start=0 end=64 : <64xi32>
                      %c = const value={start}:fp32 : fp32
                      %t = splat %c shape=(64,) : <64xfp32>
                      %d = const value={other}:fp32 : fp32
                      %other = splat %d shape=(64,) : <64xfp32>
                      %end = splat %n shape=(64,) : <64xi32>
                      %q = splat %p shape=(64,) : <64x*fp32>
                      %a = ptr_add %q, %i : <64x*fp32>
                      %m = compare.lt %i, %end : <64xi1>
                      %l = load %a mask=%m other=%other : <64xfp32>
                      {sum}
                      {}
                      return
                    }}",
                    reduced("add", v)
                );
                agree(&text, &[-0.0; LENGTH], &lengths());
                agree(&text, &whole_numbers(), &lengths());
            }
        }
    }
}
