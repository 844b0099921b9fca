//! Memory beyond the arguments stays below 64 MiB. A process of its own, since the peak is its.

#![cfg(target_os = "linux")]

mod common;
use common::*;
use naiad_interp::LaunchOptions;

/// The most memory that this process has had, in bytes.
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|l| l.starts_with("VmHWM")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 1024
}

#[test]
fn launches_stay_small() {
    let two = LaunchOptions { threads: 2, ..PLAIN };
    // A million programs.
    let tiny = kernel(
        "tile @tiny(%x x: *i32) {
  %pid = program_id axis=0 : i32
  %m = const value=1023:i32 : i32
  %i = binary.and %pid, %m : i32
  %r = arange start=0 end=64 : <64xi32>
  %xp = ptr_add %x, %i : *i32
  %ps = splat %xp shape=(64,) : <64x*i32>
  %pp = ptr_add %ps, %r : <64x*i32>
  %v = load %pp : <64xi32>
  %w = binary.mul %v, %r : <64xi32>
  store %pp, %w
  return
}",
    );
    let mut x = vec![1i32; 2048];
    let before = peak();
    run(&tiny, [1 << 20, 1, 1], &[tensor(&mut x)], &two).unwrap();
    assert!(peak() - before < 8 << 20, "{} bytes more", peak() - before);
    // The largest tiles, a new one at each step.
    let large = kernel(
        "tile @large(%x x: *fp32) {
  %r = arange start=0 end=1048576 : <1048576xi32>
  %xs = splat %x shape=(1048576,) : <1048576x*fp32>
  %xp = ptr_add %xs, %r : <1048576x*fp32>
  %v = load %xp : <1048576xfp32>
  %a = binary.mul %v, %v : <1048576xfp32>
  %b = binary.add %a, %a : <1048576xfp32>
  %c = unary.exp %b : <1048576xfp32>
  %z = const value=0:i32 : i32
  %n = const value=20:i32 : i32
  %one = const value=1:i32 : i32
  %d = for %z, %n, %one inits=[%c] {
    ^(%i: i32, %t: <1048576xfp32>):
    %u = binary.mul %t, %t : <1048576xfp32>
    %w = unary.sqrt %u : <1048576xfp32>
    yield values=[%w]
  } : <1048576xfp32>
  %s = scan inputs=[%d] axis=0 {
    ^(%p: fp32, %q: fp32):
    %m = binary.max %p, %q : fp32
    yield values=[%m]
  } : <1048576xfp32>
  store %xp, %s
  return
}",
    );
    let mut x = vec![0.5f32; 1 << 20];
    let before = peak();
    run(&large, [4, 1, 1], &[tensor(&mut x)], &two).unwrap();
    assert!(peak() - before < 64 << 20, "{} bytes more", peak() - before);
    // Two thousand programs that all hold a tile while they wait for the last.
    let barrier = kernel(
        "tile @barrier(%x x: *fp32, %c count: *i32) {
  %r = arange start=0 end=1024 : <1024xi32>
  %xs = splat %x shape=(1024,) : <1024x*fp32>
  %xp = ptr_add %xs, %r : <1024x*fp32>
  %v = load %xp : <1024xfp32>
  %zero = const value=0:i32 : i32
  %one = const value=1:i32 : i32
  %n = num_programs axis=0 : i32
  %old = atomic.add %c, %one : i32
  while {
    %now = atomic.add %c, %zero : i32
    %less = compare.lt %now, %n : i1
    condition %less
  } {
    yield
  }
  store %xp, %v
  return
}",
    );
    let (mut x, mut count) = (vec![0.5f32; 1024], vec![0i32]);
    let before = peak();
    run(&barrier, [2000, 1, 1], &[tensor(&mut x), tensor(&mut count)], &two).unwrap();
    assert!(peak() - before < 64 << 20, "{} bytes more", peak() - before);
}
