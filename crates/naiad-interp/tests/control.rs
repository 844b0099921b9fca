//! Loops and branches.

mod common;
use common::*;

#[test]
fn counted_loops_run_as_signed_numbers() {
    let func = kernel(
        "tile @count(%lo lo: i32, %hi hi: i32, %st st: i32, %o out: *i32) {
  %z = const value=0:i32 : i32
  %one = const value=1:i32 : i32
  %n, %sum = for %lo, %hi, %st inits=[%z, %z] {
    ^(%i: i32, %c: i32, %s: i32):
    %d = binary.add %c, %one : i32
    %t = binary.add %s, %i : i32
    yield values=[%d, %t]
  } : i32, i32
  store %o, %n
  %p = ptr_add %o, %one : *i32
  store %p, %sum
  return
}",
    );
    for (lo, hi, step, n, sum) in [
        (0, 10, 1, 10, 45),
        (0, 10, 3, 4, 18),
        (10, 0, -1, 10, 55),
        (10, 0, -4, 3, 18),
        (5, 5, 1, 0, 0),
        (5, 0, 1, 0, 0),
        (i32::MAX - 2, i32::MAX, 1, 2, (i32::MAX - 2).wrapping_add(i32::MAX - 1)),
        (i32::MAX - 2, i32::MAX, 100, 1, i32::MAX - 2),
    ] {
        let mut out = vec![-1i32; 2];
        ok(&func, [1, 1, 1], &[int(lo.into()), int(hi.into()), int(step.into()), tensor(&mut out)]);
        assert_eq!(out, [n, sum], "{lo} {hi} {step}");
    }
}

#[test]
fn branches_and_nested_loops() {
    // Collatz steps of the program's id plus one, by a while in an if in a for.
    let func = kernel(
        "tile @collatz(%o out: *i32, %x unused: *i32) {
  %z = const value=0:i32 : i32
  %one = const value=1:i32 : i32
  %two = const value=2:i32 : i32
  %three = const value=3:i32 : i32
  %pid = program_id axis=0 : i32
  %start = binary.add %pid, %one : i32
  %a, %b = while inits=[%start, %z] {
    ^(%v: i32, %n: i32):
    %go = compare.ne %v, %one : i1
    condition %go values=[%v, %n]
  } {
    ^(%w: i32, %m: i32):
    %odd = binary.rem %w, %two : i32
    %is = compare.eq %odd, %one : i1
    %next = if %is {
      %t = binary.mul %w, %three : i32
      %u = binary.add %t, %one : i32
      yield values=[%u]
    } {
      %h = binary.idiv %w, %two : i32
      yield values=[%h]
    } : i32
    %k = binary.add %m, %one : i32
    yield values=[%next, %k]
  } : i32, i32
  %p = ptr_add %o, %pid : *i32
  store %p, %b
  return
}",
    );
    let n = 2000;
    let mut out = vec![-1i32; n];
    ok(&func, [n as u32, 1, 1], &[tensor(&mut out), int(0)]);
    for (i, &steps) in out.iter().enumerate() {
        let (mut v, mut want) = (i + 1, 0);
        while v != 1 {
            v = if v % 2 == 1 { 3 * v + 1 } else { v / 2 };
            want += 1;
        }
        assert_eq!(steps, want);
    }
}

#[test]
fn carried_tiles_change_places() {
    let func = kernel(
        "tile @swap(%x x: *i32, %o out: *i32) {
  %r = arange start=0 end=8 : <8xi32>
  %xs = splat %x shape=(8,) : <8x*i32>
  %xp = ptr_add %xs, %r : <8x*i32>
  %v = load %xp : <8xi32>
  %z = const value=0:i32 : i32
  %n = const value=5:i32 : i32
  %one = const value=1:i32 : i32
  %a, %b, %c = for %z, %n, %one inits=[%v, %r, %v] {
    ^(%i: i32, %p: <8xi32>, %q: <8xi32>, %k: <8xi32>):
    %s = binary.add %p, %q : <8xi32>
    yield values=[%q, %s, %v]
  } : <8xi32>, <8xi32>, <8xi32>
  %d = binary.add %b, %c : <8xi32>
  %os = splat %o shape=(8,) : <8x*i32>
  %op = ptr_add %os, %r : <8x*i32>
  store %op, %d
  return
}",
    );
    let mut x: Vec<i32> = (0..8).map(|i| i * 10).collect();
    let mut out = vec![0i32; 8];
    ok(&func, [1, 1, 1], &[tensor(&mut x), tensor(&mut out)]);
    for i in 0..8 {
        let (mut p, mut q) = (x[i], i as i32);
        for _ in 0..5 {
            (p, q) = (q, p + q);
        }
        assert_eq!(out[i], q + x[i]);
    }
}

#[test]
fn a_launch_that_does_not_fit_is_refused() {
    let func = kernel("tile @one(%x x: *i32, %n n: i32) {\n  return\n}");
    let mut x = vec![0i32];
    for args in [vec![], vec![int(0)], vec![int(0), tensor(&mut x)]] {
        let fault = run(&func, [1, 1, 1], &args, &PLAIN).unwrap_err();
        assert_eq!(fault.id, naiad_diag::Id::BadLaunch);
    }
}

#[test]
fn many_small_programs() {
    let func = kernel(
        "tile @inc(%o out: *i32) {
  %x = program_id axis=0 : i32
  %y = program_id axis=1 : i32
  %n = num_programs axis=0 : i32
  %a = binary.mul %y, %n : i32
  %b = binary.add %a, %x : i32
  %p = ptr_add %o, %b : *i32
  %v = load %p : i32
  %w = binary.add %v, %b : i32
  store %p, %w
  return
}",
    );
    let mut out = vec![0i32; 1 << 18];
    run(
        &func,
        [1 << 10, 1 << 8, 1],
        &[tensor(&mut out)],
        &naiad_interp::LaunchOptions { threads: 2, ..PLAIN },
    )
    .unwrap();
    assert!(out.iter().enumerate().all(|(i, &v)| v == i as i32));
}
