//! Global and shared memory: vectors, masks, atomics, asynchronous copies.

use super::*;

/// Reverses numbers through shared memory.
#[test]
fn shared_memory_carries_values_to_other_threads() {
    let body = "
        %a = load %xt disp=0 elem=i32 : i32
        shared_store %st, %a disp=0
        barrier
        %last = const value=508:i32 : i32
        %o = binary.sub %last, %t4 : i32
        %p = binary.add %base, %o : i32
        %b = shared_load %p disp=0 elem=i32 : i32
        store %yt, %b disp=0";
    let (mut x, mut y) = (Vec::from_iter(0..128), vec![0; 128]);
    run(body, 128, &mut x, &mut y, 0);
    assert_eq!(y, Vec::from_iter((0..128).rev()));
}

#[test]
fn vectors_move_whole_or_lane_by_lane() {
    // Each thread loads four numbers, of which those of multiples of 3 are masked off, and stores the
    // others of a second mask.
    let body = "
        %sixteen = const value=16:i64 : i64
        %tl = cast %t to=i64 : i64
        %o = binary.mul %tl, %sixteen : i64
        %xa = addr_add %x, %o : addr
        %ya = addr_add %y, %o : addr
        %i = iota elem=i32 lanes=4 : i32x4
        %t4v = splat %t4 lanes=4 : i32x4
        %e = binary.add %t4v, %i : i32x4
        %three = const value=3:i32 lanes=4 : i32x4
        %zero = const value=0:i32 lanes=4 : i32x4
        %r = binary.rem %e, %three : i32x4
        %m = compare.ne %r, %zero : i1x4
        %v = load %xa disp=0 elem=i32 lanes=4 mask=%m : i32x4
        %nv = splat %n lanes=4 : i32x4
        %w = binary.add %v, %nv : i32x4
        %nm = compare.lt %e, %nv : i1x4
        store %ya, %w disp=0 mask=%nm";
    let (mut x, mut y) = (Vec::from_iter(0..128), vec![-1; 128]);
    run(body, 32, &mut x, &mut y, 50);
    let f = |i: i32| match i {
        50.. => -1,
        i if i % 3 == 0 => 50,
        i => 50 + i,
    };
    assert_eq!(y, Vec::from_iter((0..128).map(f)));
}

#[test]
fn masked_lanes_touch_no_memory() {
    // Threads from n on are far outside of x and y, and of shared memory.
    let body = "
        %in = compare.lt %t, %n : i1
        %in2 = splat %in lanes=2 : i1x2
        %far = const value=1000000:i64 : i64
        %zero = const value=0:i64 : i64
        %d = select %in, %zero, %far : i64
        %xd = addr_add %xt, %d : addr
        %t8 = addr_add %yt, %t4l : addr
        %yd = addr_add %t8, %d : addr
        %v = load %xd disp=0 elem=i32 mask=%in : i32
        %ds = cast %d to=i32 : i32
        %sd = binary.add %st, %ds : i32
        shared_store %sd, %v disp=0 mask=%in
        %w = shared_load %sd disp=0 elem=i32 mask=%in : i32
        %pair = pack lanes=[%t, %w] : i32x2
        store %yd, %pair disp=0 mask=%in2";
    let (mut x, mut y) = (Vec::from_iter(10..14), vec![-1; 8]);
    run(body, 32, &mut x, &mut y, 4);
    assert_eq!(y, [0, 10, 1, 11, 2, 12, 3, 13]);
}

#[test]
fn lanes_gather_and_scatter() {
    let body = "
        %i = iota elem=i64 lanes=2 : i64x2
        %size = const value=128:i64 lanes=2 : i64x2
        %o = binary.mul %i, %size : i64x2
        %xs = splat %xt lanes=2 : addrx2
        %ys = splat %yt lanes=2 : addrx2
        %xa = addr_add %xs, %o : addrx2
        %ya = addr_add %ys, %o : addrx2
        %v = gather %xa elem=i32 : i32x2
        %w = shuffle %v, %v order=(1,0) : i32x2
        scatter %ya, %w";
    let (mut x, mut y) = (Vec::from_iter(0..64), vec![0; 64]);
    run(body, 32, &mut x, &mut y, 0);
    assert_eq!(y, Vec::from_iter((32..64).chain(0..32)));
}

#[test]
fn atomics_count_every_thread() {
    let body = "
        %one = const value=1:i32 : i32
        %old = atomic.add %y, %t : i32
        %eight = const value=8:i64 : i64
        %y8 = addr_add %y, %eight : addr
        %max = atomic.max %y8, %t : i32
        %zero = const value=0:i32 : i32
        %first = compare.eq %t, %zero : i1
        if %first {
          shared_store %base, %zero disp=0
          yield
        } {
          yield
        }
        barrier
        %s = shared_atomic.add %base, %one : i32
        barrier
        %sum = shared_load %base disp=0 elem=i32 : i32
        %four64 = const value=4:i64 : i64
        %y4 = addr_add %y, %four64 : addr
        %was = atomic_cas %y4, %zero, %sum : i32
        %v = atomic_load %y4 elem=i32 : i32
        %tw = const value=12:i64 : i64
        %y12 = addr_add %y, %tw : addr
        atomic_store %y12, %v";
    let (mut x, mut y) = ([0i32], vec![0; 4]);
    run(body, 64, &mut x, &mut y, 0);
    assert_eq!(y, [63 * 32, 64, 63, 64]);
}

/// A pipeline of two stages: each round waits for its own copies and begins those of the round after
/// next.
fn pipeline(wait: u32, barrier_behind: &str, barrier_before_copy: &str) -> String {
    format!(
        "%zero = const value=0:i32 : i32
        %one = const value=1:i32 : i32
        %two = const value=2:i32 : i32
        %rounds = const value=4:i32 : i32
        %stage = const value=256:i32 : i32
        %last = const value=252:i32 : i32
        %s1 = binary.add %st, %stage : i32
        async_copy %st, %xt disp=0 bytes=4
        async_commit
        async_copy %s1, %xt disp=256 bytes=4
        async_commit
        %mirror = binary.sub %last, %t4 : i32
        %sum = for %zero, %rounds, %one inits=[%zero] {{
        ^(%i: i32, %acc: i32):
          async_wait pending={wait}
          {barrier_behind}
          %which = binary.rem %i, %two : i32
          %at = binary.mul %which, %stage : i32
          %buffer = binary.add %base, %at : i32
          %other = binary.add %buffer, %mirror : i32
          %v = shared_load %other disp=0 elem=i32 : i32
          %next = binary.add %acc, %v : i32
          {barrier_before_copy}
          %ahead = binary.add %i, %two : i32
          %more = compare.lt %ahead, %rounds : i1
          %mine = binary.add %buffer, %t4 : i32
          %off = binary.mul %ahead, %stage : i32
          %offl = cast %off to=i64 : i64
          %from = addr_add %xt, %offl : addr
          async_copy %mine, %from disp=0 bytes=4 mask=%more
          async_commit
          yield values=[%next]
        }} : i32
        store %yt, %sum disp=0"
    )
}

#[test]
fn pipelines_give_what_they_copy() {
    let (mut x, mut y) = (Vec::from_iter(0..256), vec![0; 64]);
    run(&pipeline(1, "barrier", "barrier"), 64, &mut x, &mut y, 0);
    let f = |t: i32| (0..4).map(|i| 64 * i + 63 - t).sum::<i32>();
    assert_eq!(y, Vec::from_iter((0..64).map(f)));
}

#[test]
fn pipelines_that_do_not_wait_are_found() {
    // Not waiting for the round's own copies.
    let (kind, op, other, what) = fault(&pipeline(2, "barrier", "barrier"), 64);
    assert_eq!(
        (kind, op.as_str(), other.as_deref()),
        (FaultKind::InFlight, "shared_load", Some("async_copy")),
        "{what}"
    );
    // Waiting for them, but not for those of other threads.
    let (kind, op, other, what) = fault(&pipeline(1, "", "barrier"), 64);
    assert_eq!(
        (kind, op.as_str(), other.as_deref()),
        (FaultKind::SharedRace, "shared_load", Some("async_copy")),
        "{what}"
    );
    // Overwriting what others may still read.
    let (kind, op, other, what) = fault(&pipeline(1, "barrier", ""), 64);
    assert_eq!(
        (kind, op.as_str(), other.as_deref()),
        (FaultKind::SharedRace, "async_copy", Some("shared_load")),
        "{what}"
    );
}

#[test]
fn a_copy_that_is_masked_off_writes_zeros() {
    let body = "
        %m = compare.lt %t, %n : i1
        async_copy %st, %xt disp=0 bytes=4 mask=%m
        async_commit
        async_wait pending=0
        %v = shared_load %st disp=0 elem=i32 : i32
        store %yt, %v disp=0";
    let (mut x, mut y) = (vec![5i32; 10], vec![-1; 32]);
    run(body, 32, &mut x, &mut y, 10);
    assert_eq!(y, Vec::from_iter((0..32).map(|t| if t < 10 { 5 } else { 0 })));
}
