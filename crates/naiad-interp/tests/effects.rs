//! Atomic loads and stores, printing, assertions, assumptions, the clock.

mod common;
use common::*;
use naiad_diag::Id;
use naiad_interp::{Arg, LaunchOptions, PolicyKind, Printed, TensorArg};
use naiad_ir::scalar::show;
use naiad_ir::{Scalar, Shape};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

fn each(mut f: impl FnMut(LaunchOptions<'static>)) {
    for naive in [false, true] {
        for threads in [1, 2, 3] {
            f(LaunchOptions { naive, threads, ..PLAIN });
        }
    }
}

#[test]
fn atomic_loads_and_stores_move_every_type() {
    for &elem in Scalar::ALL {
        let text = format!(
            "tile @move(%x x: *{elem}, %o out: *{elem}, %n n: i32) {{
  %r = arange start=0 end=16 : <16xi32>
  %ns = splat %n shape=(16,) : <16xi32>
  %m = compare.lt %r, %ns : <16xi1>
  %xs = splat %x shape=(16,) : <16x*{elem}>
  %xp = ptr_add %xs, %r : <16x*{elem}>
  %v = atomic_load %xp mask=%m : <16x{elem}>
  %os = splat %o shape=(16,) : <16x*{elem}>
  %op = ptr_add %os, %r : <16x*{elem}>
  atomic_store %op, %v mask=%m sem=release
  %last = const value=15:i32 : i32
  %q = ptr_add %o, %last : *{elem}
  %w = atomic_load %x : {elem}
  atomic_store %q, %w
  return
}}"
        );
        let func = kernel(&text);
        let size = elem.size();
        let mut x: Vec<u64> =
            (0..16u64).map(|i| i.wrapping_mul(0x0102_0407_1121_4181) | 1).collect();
        let mut out = vec![0u64; 16];
        for n in [0, 11, 15] {
            each(|options| {
                out.fill(0);
                let args = [tensor(&mut x), tensor(&mut out), int(n as i64)];
                run(&func, [1, 1, 1], &args, &options).unwrap();
                let bytes = |all: &[u64]| -> Vec<u8> {
                    let all: Vec<u8> = all.iter().flat_map(|x| x.to_le_bytes()).collect();
                    all[..16 * size].to_vec()
                };
                let mut want = vec![0u8; 16 * size];
                want[..n * size].copy_from_slice(&bytes(&x)[..n * size]);
                want[15 * size..].copy_from_slice(&bytes(&x)[..size]);
                if elem.is_bool() {
                    want.iter_mut().for_each(|b| *b = u8::from(*b != 0));
                }
                assert_eq!(bytes(&out), want, "{elem} {n}");
            });
        }
    }
}

#[test]
fn atomic_accesses_are_judged() {
    let load = kernel(
        "tile @get(%x x: *i32, %n n: i64) {
  %p = ptr_add %x, %n : *i32
  %v = atomic_load %p : i32
  return
}",
    );
    let store = kernel(
        "tile @put(%x x: *i32, %n n: i64) {
  %p = ptr_add %x, %n : *i32
  %v = const value=1:i32 : i32
  atomic_store %p, %v
  return
}",
    );
    let mut x = vec![0i32; 8];
    let fault = run(&load, [1, 1, 1], &[tensor(&mut x), int(8)], &PLAIN).unwrap_err();
    assert_eq!(fault.message, "kernel `get` atomically reads outside the memory of `x`: element 8");
    let fault = run(&store, [1, 1, 1], &[tensor(&mut x), int(-1)], &PLAIN).unwrap_err();
    assert_eq!(
        fault.message,
        "kernel `put` atomically writes outside the memory of `x`: element -1"
    );
    let Arg::Tensor(t) = tensor(&mut x) else { panic!() };
    let fixed = Arg::Tensor(TensorArg { writable: false, ..t.clone() });
    run(&load, [1, 1, 1], &[fixed.clone(), int(0)], &PLAIN).unwrap();
    let fault = run(&store, [1, 1, 1], &[fixed, int(0)], &PLAIN).unwrap_err();
    assert_eq!(fault.message, "kernel `put` atomically writes `x`, which is read-only");
    let odd = Arg::Tensor(TensorArg { address: t.address + 2, ..t });
    for (func, verb) in [(&load, "reads"), (&store, "writes")] {
        let fault = run(func, [1, 1, 1], &[odd.clone(), int(0)], &PLAIN).unwrap_err();
        assert_eq!(fault.id, Id::Misaligned);
        assert!(fault.message.contains(&format!("atomically {verb} `x`")), "{}", fault.message);
    }
    assert_eq!(x, [0; 8]);
}

/// Programs pass a number on, the first waiting for the last to begin.
const RELAY: &str = "tile @relay(%f flags: *i32, %o out: *i32, %go go: i32) {
  %pid = program_id axis=0 : i32
  %n = num_programs axis=0 : i32
  %one = const value=1:i32 : i32
  %next = binary.add %pid, %one : i32
  %fp = ptr_add %f, %next : *i32
  %last = compare.eq %next, %n : i1
  %zero = const value=0:i32 : i32
  %start = select %last, %go, %zero : i32
  %old = atomic_load %fp : i32
  %either = binary.or %start, %old : i32
  %is = compare.ne %start, %zero : i1
  if %is {
    atomic_store %fp, %start
    yield
  } {
    yield
  }
  while {
    %v = atomic_load %fp sem=acquire : i32
    %wait = compare.eq %v, %zero : i1
    condition %wait
  } {
    yield
  }
  %mine = ptr_add %f, %pid : *i32
  atomic_store %mine, %one sem=release
  %op = ptr_add %o, %pid : *i32
  store %op, %next
  return
}";

#[test]
fn programs_wait_for_atomic_stores() {
    let func = kernel(RELAY);
    let n = 40;
    each(|options| {
        let (mut flags, mut out) = (vec![0i32; n + 1], vec![0i32; n]);
        let args = [tensor(&mut flags), tensor(&mut out), int(1)];
        run(&func, [n as u32, 1, 1], &args, &options).unwrap();
        assert_eq!(out, (1..=n as i32).collect::<Vec<_>>());
        // Nobody begins: all wait, and that is found out.
        flags.fill(0);
        let args = [tensor(&mut flags), tensor(&mut out), int(0)];
        let fault = run(&func, [n as u32, 1, 1], &args, &options).unwrap_err();
        assert_eq!(fault.id, Id::Deadlock);
        assert!(said(&fault).contains("`atomic_load`, waited for here"), "{}", said(&fault));
    });
}

/// Waits for a flag until a time has passed, which is no deadlock.
const PATIENT: &str = "tile @patient(%f flag: *i32, %o out: *i64) {
  %zero = const value=0:i32 : i32
  %long = const value=50000:i64 : i64
  %begin = machine.globaltimer : i64
  %end = binary.add %begin, %long : i64
  while {
    %v = atomic_load %f : i32
    %unset = compare.eq %v, %zero : i1
    %now = machine.globaltimer : i64
    %early = compare.lt %now, %end : i1
    %wait = binary.and %unset, %early : i1
    condition %wait
  } {
    yield
  }
  %after = machine.globaltimer : i64
  %took = binary.sub %after, %begin : i64
  %id = machine.smid : i32
  %wide = cast %id to=i64 : i64
  store %o, %took
  %one = const value=1:i32 : i32
  %q = ptr_add %o, %one : *i64
  store %q, %wide
  return
}";

#[test]
fn time_passes_with_a_clock_and_without() {
    let func = kernel(PATIENT);
    let ticks = AtomicU64::new(1 << 40);
    let clock = || ticks.fetch_add(333, SeqCst);
    each(|options| {
        for clock in [None, Some(&clock as &(dyn Fn() -> u64 + Sync))] {
            let (mut flag, mut out) = (vec![0i32], vec![0i64, -1]);
            let args = [tensor(&mut flag), tensor(&mut out)];
            run(&func, [1, 1, 1], &args, &LaunchOptions { clock, ..options }).unwrap();
            assert!((50_000..60_000).contains(&out[0]), "{out:?}");
            assert_eq!(out[1], 0);
        }
    });
}

#[test]
fn prints_reach_the_sink_in_order() {
    let func = kernel(
        "tile @show(%x x: *fp32, %n n: i32) {
  %pid = program_id axis=0 : i32
  %r = arange start=0 end=4 : <4xi32>
  %e = expand_dims %r axis=0 : <1x4xi32>
  %b = broadcast %e shape=(2,4) : <2x4xi32>
  %s = splat %n shape=(4,) : <4xi32>
  %m = compare.lt %r, %s : <4xi1>
  print prefix=\"first, \\\"quoted\\\"\" args=[%pid, %b]
  print prefix=\"\" args=[%m, %x] hex=true
  print prefix=\"é\\n\"
  return
}",
    );
    let mut x = vec![0f32; 4];
    let address = x.as_ptr() as u64;
    each(|options| {
        let seen = Mutex::new(Vec::new());
        let sink = |p: &Printed<'_>| {
            let operands: Vec<(String, Shape, Vec<u64>)> = p
                .operands
                .iter()
                .map(|o| (o.ty.elem.to_string(), o.ty.shape, o.images()))
                .collect();
            seen.lock().unwrap().push((p.program[0], p.prefix.to_string(), p.hex, operands));
            assert_eq!(p.kernel, "show");
        };
        let args = [tensor(&mut x), int(3)];
        run(&func, [5, 1, 1], &args, &LaunchOptions { print: Some(&sink), ..options }).unwrap();
        let mut seen = seen.into_inner().unwrap();
        assert_eq!(seen.len(), 15);
        // Stable: each program's own order stays.
        seen.sort_by_key(|p| p.0);
        for (pid, three) in seen.chunks(3).enumerate() {
            let row = |n: i64| Shape::new(&[n]).unwrap();
            let two = Shape::new(&[2, 4]).unwrap();
            assert_eq!(three[0].1, "first, \"quoted\"");
            assert_eq!(
                three[0].3,
                [
                    ("i32".to_string(), Shape::SCALAR, vec![pid as u64]),
                    ("i32".to_string(), two, vec![0, 1, 2, 3, 0, 1, 2, 3])
                ]
            );
            assert!(three[1].2 && !three[0].2);
            assert_eq!(
                three[1].3,
                [
                    ("i1".to_string(), row(4), vec![1, 1, 1, 0]),
                    ("*fp32".to_string(), Shape::SCALAR, vec![address])
                ]
            );
            assert_eq!((three[2].1.as_str(), three[2].3.len()), ("é\n", 0));
        }
        // Without a sink nothing is done.
        run(&func, [5, 1, 1], &args, &options).unwrap();
    });
}

const CHECK: &str = "tile @check(%x x: *fp16, %n n: i32, %m m: i32) {
  %pid = program_id axis=0 : i32
  %r = arange start=0 end=8 : <8xi32>
  %r2 = reshape %r shape=(2,4) : <2x4xi32>
  %ps = splat %pid shape=(2,4) : <2x4xi32>
  %at = binary.add %r2, %ps : <2x4xi32>
  %xs = splat %x shape=(2,4) : <2x4x*fp16>
  %xp = ptr_add %xs, %at : <2x4x*fp16>
  %v = load %xp : <2x4xfp16>
  %z = const value=0.0:fp16 : fp16
  %zs = splat %z shape=(2,4) : <2x4xfp16>
  %ok = compare.ge %v, %zs : <2x4xi1>
  %ms = splat %m shape=(2,4) : <2x4xi32>
  %mask = compare.lt %r2, %ms : <2x4xi1>
  assert %ok mask=%mask message=\"negative, says \\\"check\\\"\" values=[%v, %at] names=(\"v\",\"pid + r\")
  return
}";

#[test]
fn the_first_failing_lane_is_reported() {
    let func = kernel(CHECK);
    let mut x = vec![0x2e66u16; 64]; // 0.1
    x[9] = 0xae66;
    x[10] = 0xfc00;
    let half = |x: &mut Vec<u16>| {
        let Arg::Tensor(t) = tensor(x) else { panic!() };
        Arg::Tensor(t)
    };
    each(|options| {
        run(&func, [2, 1, 1], &[half(&mut x), int(0), int(8)], &options).unwrap();
        let fault = run(&func, [50, 1, 1], &[half(&mut x), int(0), int(8)], &options).unwrap_err();
        assert_eq!(
            said(&fault),
            "error[device-assert]: kernel `check`: device-side assertion failed: negative, says \"check\"\n\
             note: lane (1, 3) of program (2, 0, 0)\n\
             note: there `v` is -0.1, `pid + r` is 9\n\
             note: 1 of 8 lanes fails"
        );
        // With the mask programs 2 to 5 see nothing, and the sixth sees both.
        let fault = run(&func, [50, 1, 1], &[half(&mut x), int(0), int(5)], &options).unwrap_err();
        assert!(said(&fault).contains("lane (1, 0) of program (5, 0, 0)"), "{}", said(&fault));
        run(&func, [50, 1, 1], &[half(&mut x), int(0), int(0)], &options).unwrap();
    });
}

#[test]
fn a_scalar_assertion_without_a_message() {
    let func = kernel(
        "tile @one(%n n: i32) {
  %z = const value=0:i32 : i32
  %ok = compare.gt %n, %z : i1
  assert %ok message=\"\"
  return
}",
    );
    run(&func, [3, 1, 1], &[int(1)], &PLAIN).unwrap();
    let fault = run(&func, [3, 1, 1], &[int(0)], &PLAIN).unwrap_err();
    assert_eq!(
        said(&fault),
        "error[device-assert]: kernel `one`: device-side assertion failed\nnote: in program (0, 0, 0)"
    );
}

#[test]
fn assumptions_are_judged_under_the_checked_policy() {
    let func = kernel(
        "tile @hope(%n n: i32) {
  %r = arange start=0 end=8 : <8xi32>
  %ns = splat %n shape=(8,) : <8xi32>
  %ok = compare.lt %r, %ns : <8xi1>
  assume %ok
  return
}",
    );
    each(|options| {
        run(&func, [2, 1, 1], &[int(5)], &options).unwrap();
        let checked = LaunchOptions { policy: PolicyKind::Checked, ..options };
        run(&func, [2, 1, 1], &[int(8)], &checked).unwrap();
        let fault = run(&func, [2, 1, 1], &[int(5)], &checked).unwrap_err();
        assert_eq!(
            said(&fault),
            "error[false-assume]: kernel `hope`: what `tl.assume` promises does not hold\n\
             note: lane 5 of program (0, 0, 0)\n\
             note: 3 of 8 lanes fail\n\
             help: compilers build on the promise, so that a kernel may do anything where it is false"
        );
    });
}

#[test]
fn numbers_are_shown_short_and_exactly() {
    for (ty, image, want) in [
        (Scalar::I1, 1, "True"),
        (Scalar::I8, 0x80, "-128"),
        (Scalar::U64, u64::MAX, "18446744073709551615"),
        (Scalar::F16, 0x2e66, "0.1"),
        (Scalar::F16, 0x7bff, "65504.0"),
        (Scalar::F8E5, 0x5f, "448.0"),
        (Scalar::BF16, 0x3dcd, "0.1"),
        (Scalar::BF16, 0x0001, "9e-41"),
        (Scalar::F32, 0x3dcc_cccd, "0.1"),
        (Scalar::F32, 0x8000_0000, "-0.0"),
        (Scalar::F64, 0x7ff0 << 48, "inf"),
        (Scalar::F8E5, 0xfc, "-inf"),
        (Scalar::F8E4NV, 0x7f, "nan"),
        (Scalar::F8E4B15, 0x7f, "1.75"),
    ] {
        assert_eq!(show(ty, image), want, "{ty} {image:x}");
    }
    // All images of the narrow floats come back.
    for &ty in Scalar::ALL.iter().filter(|t| t.is_float() && t.bits() <= 16) {
        for image in 0..1u64 << ty.bits() {
            let text = show(ty, image);
            let value: f64 = text.parse().unwrap();
            let back = naiad_ir::tile::Constant::float(ty, value);
            let same = |x| naiad_ir::scalar::cast_bits(ty, Scalar::F64, Default::default(), x);
            let (a, b) = (f64::from_bits(same(image)), f64::from_bits(same(back.bits)));
            let saturates = ty.is_fp8() && a.is_infinite();
            assert!(a == b || a.is_nan() || saturates, "{ty} {image:x} {text}");
        }
    }
}

/// Writes, waits for the program's own threads, reads back; a hint gives its operand.
const ORDERED: &str = "tile @ordered(%p p: *i32, %n n: i32) {
  %i = arange start=0 end=8 : <8xi32>
  %known = hint.multiple_of %i values=(8) : <8xi32>
  %base = splat %p shape=(8) : <8x*i32>
  %at = ptr_add %base, %known : <8x*i32>
  %m = splat %n shape=(8) : <8xi32>
  %x = binary.mul %known, %m : <8xi32>
  store %at, %x
  barrier
  %back = load %at : <8xi32>
  %twice = binary.add %back, %back : <8xi32>
  store %at, %twice
  return
}";

#[test]
fn a_barrier_keeps_the_order_and_a_hint_the_value() {
    let func = kernel(ORDERED);
    each(|options| {
        let mut memory = vec![-1i32; 8];
        run(&func, [1, 1, 1], &[tensor(&mut memory), int(5)], &options).unwrap();
        assert_eq!(memory, [0, 10, 20, 30, 40, 50, 60, 70]);
    });
}
