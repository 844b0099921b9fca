//! Atomics, and programs that wait for one another.

mod common;
#[path = "common/waiting.rs"]
mod kernels;

use common::*;
use kernels::*;
use naiad_diag::Id;
use naiad_interp::LaunchOptions;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

fn each(mut f: impl FnMut(LaunchOptions<'static>)) {
    for naive in [false, true] {
        for threads in [1, 2, 3] {
            f(LaunchOptions { naive, threads, ..PLAIN });
        }
    }
}

#[test]
fn atomics_of_all_programs_add_up() {
    let func = kernel(
        "tile @count(%c c: *i32, %f f: *fp32, %h h: *fp16, %hist hist: *i32, %hi hi: *fp32) {
  %one = const value=1:i32 : i32
  %old = atomic.add %c, %one : i32
  %x = cast %old to=fp32 : fp32
  %half = const value=0.5:fp32 : fp32
  %f0 = atomic.add %f, %half : fp32
  %small = const value=1.0:fp16 : fp16
  %h0 = atomic.add %h, %small : fp16
  %r = arange start=0 end=16 : <16xi32>
  %three = const value=3:i32 : i32
  %threes = splat %three shape=(16,) : <16xi32>
  %bin = binary.and %r, %threes : <16xi32>
  %hs = splat %hist shape=(16,) : <16x*i32>
  %hp = ptr_add %hs, %bin : <16x*i32>
  %ones = splat %one shape=(16,) : <16xi32>
  %ten = const value=10:i32 : i32
  %tens = splat %ten shape=(16,) : <16xi32>
  %m = compare.lt %r, %tens : <16xi1>
  %h1 = atomic.add %hp, %ones mask=%m : <16xi32>
  %m0 = atomic.max %hi, %x : fp32
  return
}",
    );
    each(|options| {
        let (mut c, mut f, mut h, mut hist, mut hi) =
            (vec![0i32], vec![0f32], vec![0u16], vec![0i32; 4], vec![-1f32]);
        let args =
            [tensor(&mut c), tensor(&mut f), tensor(&mut h), tensor(&mut hist), tensor(&mut hi)];
        run(&func, [10, 10, 10], &args, &options).unwrap();
        assert_eq!((c[0], f[0], hi[0]), (1000, 500.0, 999.0));
        assert_eq!(half(h[0]), 1000.0);
        assert_eq!(hist, [3000, 3000, 2000, 2000]);
    });
}

fn half(bits: u16) -> f32 {
    let bits = naiad_ir::scalar::cast_bits(
        naiad_ir::Scalar::F16,
        naiad_ir::Scalar::F32,
        naiad_ir::scalar::Rounding::Nearest,
        bits.into(),
    );
    f32::from_bits(bits as u32)
}

#[test]
fn lanes_with_one_address_take_turns() {
    let func = kernel(
        "tile @turns(%c c: *i32, %o out: *i32, %q q: *u64) {
  %r = arange start=0 end=8 : <8xi32>
  %cs = splat %c shape=(8,) : <8x*i32>
  %old = atomic.add %cs, %r : <8xi32>
  %os = splat %o shape=(8,) : <8x*i32>
  %op = ptr_add %os, %r : <8x*i32>
  store %op, %old
  %a = const value=7:u64 : u64
  %b = const value=9:u64 : u64
  %c0 = atomic_cas %q, %a, %b : u64
  %c1 = atomic_cas %q, %a, %b : u64
  %x = atomic.xor %q, %c1 : u64
  %y = atomic.xchg %q, %a : u64
  %z = atomic.or %q, %y : u64
  return
}",
    );
    each(|options| {
        let (mut c, mut out, mut q) = (vec![100i32], vec![0i32; 8], vec![7u64]);
        let args = [tensor(&mut c), tensor(&mut out), tensor(&mut q)];
        run(&func, [1, 1, 1], &args, &options).unwrap();
        assert_eq!(out, [100, 100, 101, 103, 106, 110, 115, 121]);
        // 7 -> 9, not 7 again, 9 ^ 9 = 0, 0 -> 7, 7 | 0.
        assert_eq!((c[0], q[0]), (128, 7));
    });
}

#[test]
fn atomics_want_aligned_addresses() {
    let func = kernel(
        "tile @odd(%c c: *i8) {
  %one = const value=1:i32 : i32
  %p = ptr_add %c, %one : *i8
  %q = bitcast %p to=*i32 : *i32
  %old = atomic.add %q, %one : i32
  return
}",
    );
    // Aligned storage, so that the address is off by exactly one.
    let mut c = vec![0u64; 2];
    let fault = run(&func, [1, 1, 1], &[tensor(&mut c)], &PLAIN).unwrap_err();
    assert_eq!(fault.id, Id::Misaligned);
}

#[test]
fn a_spin_lock_excludes() {
    let func = kernel(LOCK);
    each(|options| {
        let (mut lock, mut counter) = (vec![0i32], vec![0i32]);
        run(&func, [500, 1, 1], &[tensor(&mut lock), tensor(&mut counter)], &options).unwrap();
        assert_eq!((lock[0], counter[0]), (0, 500));
    });
}

#[test]
fn a_chain_of_flags_runs_backwards() {
    let func = kernel(CHAIN);
    each(|options| {
        let n = 100usize;
        let (mut flags, mut out) = (vec![0i32; n], vec![0i32; n]);
        let args = [tensor(&mut flags), tensor(&mut out), int(n as i64)];
        run(&func, [n as u32, 1, 1], &args, &options).unwrap();
        assert_eq!(out[0], 4950);
    });
}

#[test]
fn all_programs_meet_at_a_barrier() {
    let func = kernel(BARRIER);
    each(|options| {
        let n = 300;
        let (mut count, mut out, mut q) = (vec![0i32], vec![0i32; n], vec![0i32; n]);
        let args = [tensor(&mut count), tensor(&mut out), tensor(&mut q)];
        run(&func, [n as u32, 1, 1], &args, &options).unwrap();
        let want: Vec<i32> = (0..n).map(|i| ((i + 1) % n) as i32).collect();
        assert_eq!(q, want);
    });
}

#[test]
fn a_deadlock_names_who_waits() {
    // The lock is never free.
    let func = kernel(LOCK);
    each(|options| {
        let (mut lock, mut counter) = (vec![1i32], vec![0i32]);
        let args = [tensor(&mut lock), tensor(&mut counter)];
        let fault = run(&func, [5, 1, 1], &args, &options).unwrap_err();
        assert_eq!(
            said(&fault),
            "error[deadlock]: kernel `lock` deadlocks: 5 programs wait for values that nobody writes\n\
             note: `atomic_cas`, waited for here by program (0, 0, 0), program (1, 0, 0), program (2, 0, 0), 2 more\n\
             help: all programs have started; see that whoever is waited for sets the value on every path, and that the grid has as many programs as are counted"
        );
    });
    // A barrier for one more program than there is.
    let func = kernel(&BARRIER.replace("compare.lt %now, %n", "compare.le %now, %n"));
    each(|options| {
        let (mut count, mut out, mut q) = (vec![0i32], vec![0i32; 50], vec![0i32; 50]);
        let args = [tensor(&mut count), tensor(&mut out), tensor(&mut q)];
        let fault = run(&func, [50, 1, 1], &args, &options).unwrap_err();
        assert_eq!(
            fault.message,
            "kernel `barrier` deadlocks: 50 programs wait for values that nobody writes"
        );
    });
}

#[test]
fn a_fault_of_the_awaited_program_is_what_is_reported() {
    // Program 1 should set the flag, and reads outside of `out` first.
    let func = kernel(CHAIN);
    each(|options| {
        let (mut flags, mut out) = (vec![0i32; 10], vec![0i32; 5]);
        let args = [tensor(&mut flags), tensor(&mut out), int(10)];
        let fault = run(&func, [10, 1, 1], &args, &options).unwrap_err();
        assert_eq!(fault.id, Id::OutOfBounds);
    });
}

#[test]
fn a_launch_can_be_interrupted() {
    let endless = kernel(
        "tile @endless(%x x: *i32) {
  %one = const value=1:i32 : i32
  %z = const value=0:i32 : i32
  %r = while inits=[%z] {
    ^(%i: i32):
    %t = compare.eq %one, %one : i1
    condition %t values=[%i]
  } {
    ^(%j: i32):
    %k = binary.add %j, %one : i32
    yield values=[%k]
  } : i32
  return
}",
    );
    // Polls with a counter, so it is not stuck for certain.
    let polling = kernel(
        "tile @polling(%x x: *i32) {
  %one = const value=1:i32 : i32
  %z = const value=0:i32 : i32
  %r = while inits=[%z] {
    ^(%i: i32):
    %v = load %x hints=volatile : i32
    %t = compare.eq %v, %z : i1
    condition %t values=[%i]
  } {
    ^(%j: i32):
    %k = binary.add %j, %one : i32
    yield values=[%k]
  } : i32
  return
}",
    );
    for func in [endless, polling] {
        for threads in [1, 2] {
            let flag = AtomicBool::new(false);
            let mut x = vec![0i32];
            let args = [tensor(&mut x)];
            let fault = std::thread::scope(|scope| {
                scope.spawn(|| {
                    std::thread::sleep(std::time::Duration::from_millis(20));
                    flag.store(true, Ordering::SeqCst);
                });
                let interrupt = || flag.load(Ordering::SeqCst);
                let options = LaunchOptions { interrupt: Some(&interrupt), threads, ..PLAIN };
                run(&func, [4, 1, 1], &args, &options).unwrap_err()
            });
            assert_eq!(fault.id, Id::Interrupted);
        }
    }
}

#[test]
fn a_host_hears_of_launches_that_take_long() {
    let counting = kernel(
        "tile @counting(%n n: i32, %o out: *i32) {
  %pid = program_id axis=0 : i32
  %z = const value=0:i32 : i32
  %one = const value=1:i32 : i32
  %end = binary.mul %n, %pid : i32
  %r = for %z, %end, %one inits=[%z] {
    ^(%i: i32, %c: i32):
    %d = binary.add %c, %one : i32
    yield values=[%d]
  } : i32
  %p = ptr_add %o, %pid : *i32
  store %p, %r
  return
}",
    );
    // The first program of each is short, and says nothing of the second.
    for (rounds, is_long) in [(3, false), (1_000_000, true)] {
        for threads in [1, 2] {
            let mut out = vec![-1; 2];
            let called = AtomicUsize::new(0);
            let long = |rest: &mut dyn FnMut()| {
                called.fetch_add(1, Ordering::SeqCst);
                rest();
            };
            let options = LaunchOptions { long: Some(&long), threads, ..PLAIN };
            run(&counting, [2, 1, 1], &[int(rounds), tensor(&mut out)], &options).unwrap();
            assert_eq!(out, [0, rounds as i32]);
            assert_eq!(called.into_inner(), usize::from(is_long));
        }
    }
}

#[test]
fn a_poll_with_a_limit_gives_up() {
    let func = kernel(
        "tile @bounded(%x x: *i32, %o out: *i32) {
  %z = const value=0:i32 : i32
  %one = const value=1:i32 : i32
  %n = const value=100:i32 : i32
  %r = for %z, %n, %one inits=[%z] {
    ^(%i: i32, %c: i32):
    %v = atomic.add %x, %z : i32
    %d = binary.add %c, %one : i32
    yield values=[%d]
  } : i32
  store %o, %r
  return
}",
    );
    each(|options| {
        let (mut x, mut out) = (vec![0i32], vec![0i32]);
        run(&func, [3, 1, 1], &[tensor(&mut x), tensor(&mut out)], &options).unwrap();
        assert_eq!(out[0], 100);
    });
}
