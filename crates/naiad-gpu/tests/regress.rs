//! Faults that were found, as small as they are.

#[path = "../../naiad-interp/tests/common/mod.rs"]
mod common;
#[path = "common/lockstep.rs"]
mod lockstep;

use common::{int, kernel, tensor};
use lockstep::{Machine, Refused};
use naiad_gpu::Options;
use naiad_opt::ranges::Inputs;

/// The kernel's code, for a number of warps.
fn machine(text: &str, num_warps: u32) -> Machine {
    machine_with(text, num_warps, false)
}

fn machine_with(text: &str, num_warps: u32, guarded: bool) -> Machine {
    let options = Options {
        capability: 80,
        num_warps,
        num_stages: 3,
        precise: true,
        guarded,
        few_programs: false,
        prints: None,
    };
    match Machine::with(&kernel(text), &Inputs::default(), &options) {
        Ok(machine) => machine,
        Err(Refused::Unsupported(why) | Refused::Wrong(why)) => panic!("{why}"),
    }
}

/// Of equal elements this region takes the second, so that lanes which combine the same two, each with
/// its own first, took each other's.
#[test]
fn threads_agree_on_which_of_equal_elements_is_the_greatest() {
    let text = "tile @f(%x x: *i32, %y y: *i32) {
  %i = arange start=0 end=256 : <256xi32>
  %xs = splat %x shape=(256,) : <256x*i32>
  %xp = ptr_add %xs, %i : <256x*i32>
  %v = load %xp : <256xi32>
  %best, %at = reduce inputs=[%v, %i] axis=0 {
  ^(%a: i32, %ai: i32, %b: i32, %bi: i32):
    %g = compare.gt %a, %b : i1
    %c = select %g, %a, %b : i32
    %ci = select %g, %ai, %bi : i32
    yield values=[%c, %ci]
  } : i32, i32
  %all = splat %at shape=(256,) : <256xi32>
  %ys = splat %y shape=(256,) : <256x*i32>
  %yp = ptr_add %ys, %i : <256x*i32>
  store %yp, %all
  return
}";
    for warps in [1, 2, 4] {
        let mut x = vec![7i32; 256];
        let mut y = vec![-1i32; 256];
        machine(text, warps).run([1; 3], &[tensor(&mut x), tensor(&mut y)], None).unwrap();
        assert!((0..256).contains(&y[0]) && y.iter().all(|&at| at == y[0]), "{warps}: {y:?}");
    }
}

/// A sum of fewer elements than the block has threads is added once, though many threads have it.
#[test]
fn replicas_add_once() {
    let text = "tile @f(%y y: *i32, %n n: i32) {
  %i = arange start=0 end=1024 : <1024xi32>
  %r = reshape %i shape=(8, 128) : <8x128xi32>
  %s = reduce inputs=[%r] axis=1 {
  ^(%a: i32, %b: i32):
    %c = binary.add %a, %b : i32
    yield values=[%c]
  } : <8xi32>
  %j = arange start=0 end=8 : <8xi32>
  %ys = splat %y shape=(8,) : <8x*i32>
  %yp = ptr_add %ys, %j : <8x*i32>
  %was = atomic.add %yp, %s : <8xi32>
  %one = atomic.add %y, %n : i32
  return
}";
    for warps in [1, 2, 4, 8] {
        let mut y = vec![0i32; 8];
        machine(text, warps).run([3, 1, 1], &[tensor(&mut y), int(5)], Some(1)).unwrap();
        let rows =
            (0..8).map(|r| 3 * (r * 128..(r + 1) * 128).sum::<i32>() + 15 * i32::from(r == 0));
        assert_eq!(y, rows.collect::<Vec<i32>>(), "{warps} warps");
    }
}

/// A `while` ends behind its test, whose reductions other threads may still be reading, whatever its body
/// waited for.
#[test]
fn what_a_loops_test_reads_is_not_overwritten_behind_it() {
    let sum = |to: &str, of: &str| {
        format!(
            "  %{to} = reduce inputs=[%{of}] axis=0 {{
  ^(%{to}a: i32, %{to}b: i32):
    %{to}c = binary.add %{to}a, %{to}b : i32
    yield values=[%{to}c]
  }} : i32
"
        )
    };
    let text = format!(
        "tile @f(%y y: *i32, %n n: i32) {{
  %i = arange start=0 end=2048 : <2048xi32>
  %zero = const value=0:i32 : i32
  %one = const value=1:i32 : i32
  %k1, %v1 = while inits=[%zero, %i] {{
  ^(%k: i32, %v: <2048xi32>):
{}  %some = compare.ne %t, %zero : i1
  %more = compare.lt %k, %n : i1
  %both = binary.and %some, %more : i1
  condition %both values=[%k, %v]
  }} {{
  ^(%l: i32, %w: <2048xi32>):
{}{}  %m = binary.add %l, %one : i32
  %p = binary.sub %a, %b : i32
  %ps = splat %p shape=(2048,) : <2048xi32>
  %u = binary.add %w, %ps : <2048xi32>
  yield values=[%m, %u]
  }} : i32, <2048xi32>
{}  store %y, %last
  return
}}",
        sum("t", "v"),
        sum("a", "w"),
        sum("b", "w"),
        sum("last", "v1"),
    );
    for warps in [2, 4, 8] {
        let mut y = vec![0i32];
        machine(&text, warps).run([1; 3], &[tensor(&mut y), int(3)], None).unwrap();
        assert_eq!(y[0], 2047 * 1024, "{warps} warps");
    }
}

/// What a guard has threads wait for where it fails is not waited for where it holds: a warp that has used
/// all of the shared memory for ops waits before it uses it again.
#[test]
fn guards_that_hold_wait_for_nobody() {
    let gather = |to: &str, of: &str| {
        format!("  %{to} = gather %{of}, %j axis=0 : <1024xi32>\n  store %yp, %{to}\n")
    };
    let text = format!(
        "tile @f(%x x: *i32, %y y: *i32, %n n: i32) {{
  %i = arange start=0 end=1024 : <1024xi32>
  %ns = splat %n shape=(1024,) : <1024xi32>
  %j = binary.xor %i, %ns : <1024xi32>
  %xs = splat %x shape=(1024,) : <1024x*i32>
  %xp = ptr_add %xs, %i : <1024x*i32>
  %ys = splat %y shape=(1024,) : <1024x*i32>
  %yp = ptr_add %ys, %i : <1024x*i32>
  %v = load %xp : <1024xi32>
{}{}{}{}  %s = reduce inputs=[%d] axis=0 {{
  ^(%p: i32, %q: i32):
    %r = binary.add %p, %q : i32
    yield values=[%r]
  }} : i32
  store %y, %s
  return
}}",
        gather("a", "v"),
        gather("b", "a"),
        gather("c", "b"),
        gather("d", "c"),
    );
    for warps in [1, 4] {
        let (mut x, mut y) = (Vec::from_iter(0..1024i32), vec![0i32; 1024]);
        let args = [tensor(&mut x), tensor(&mut y), int(37)];
        machine_with(&text, warps, true).run([1; 3], &args, None).unwrap();
        assert_eq!(y[0], 1023 * 512, "{warps} warps");
        assert_eq!(y[1..], x[1..], "{warps} warps");
    }
}
