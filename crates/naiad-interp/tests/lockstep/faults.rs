//! What is found wrong.

use super::*;

/// The kind of the fault, the op, and the other one.
#[track_caller]
fn finds(body: &str, threads: u32, kind: FaultKind, op: &str, other: Option<&str>, words: &str) {
    let (found, at, with, message) = fault(body, threads);
    assert_eq!((found, at.as_str(), with.as_deref()), (kind, op, other), "{message}");
    assert!(message.contains(words), "{message}");
}

/// A transpose of 16 x 16 through shared memory, without and with its barrier.
#[test]
fn missing_barriers_are_races() {
    let transpose = |barrier: &str| {
        format!(
            "%v = load %xt disp=0 elem=i32 : i32
            shared_store %st, %v disp=0
            {barrier}
            %sixteen = const value=16:i32 : i32
            %row = binary.rem %t, %sixteen : i32
            %column = binary.idiv %t, %sixteen : i32
            %a = binary.mul %row, %sixteen : i32
            %b = binary.add %a, %column : i32
            %c = binary.mul %b, %four : i32
            %d = binary.add %base, %c : i32
            %w = shared_load %d disp=0 elem=i32 : i32
            store %yt, %w disp=0"
        )
    };
    let (mut x, mut y) = (Vec::from_iter(0..256), vec![0; 256]);
    run(&transpose("barrier"), 256, &mut x, &mut y, 0);
    assert_eq!(y, Vec::from_iter((0..256).map(|i| i % 16 * 16 + i / 16)));
    let race = |barrier: &str, words: &str| {
        let kind = FaultKind::SharedRace;
        finds(&transpose(barrier), 256, kind, "shared_load", Some("shared_store"), words);
    };
    race("", "of thread 1 reads byte 64 of shared memory, which thread 16 wrote with no barrier");
    race("warp_barrier", "of thread 2 reads byte 128 of shared memory, which thread 32 wrote");
}

#[test]
fn a_warp_barrier_orders_one_warp() {
    let neighbour = |between: &str, by: u32| {
        format!(
            "shared_store %st, %t disp=0
            {between}
            %by = const value={by}:i32 : i32
            %o = binary.xor %t4, %by : i32
            %p = binary.add %base, %o : i32
            %v = shared_load %p disp=0 elem=i32 : i32
            store %yt, %v disp=0"
        )
    };
    let (mut x, mut y) = ([0i32], vec![0; 64]);
    run(&neighbour("warp_barrier", 4), 64, &mut x, &mut y, 0);
    assert_eq!(y, Vec::from_iter((0..64).map(|t| t ^ 1)));
    let race = |body: &str| {
        finds(body, 64, FaultKind::SharedRace, "shared_load", Some("shared_store"), "")
    };
    // Another warp is not ordered by it, and a shuffle orders nothing.
    race(&neighbour("warp_barrier", 128));
    race(&neighbour("%z = warp_shuffle.xor %t, %four : i32", 4));
    race(&neighbour("", 4));
}

#[test]
fn writes_race_with_reads_and_writes() {
    // A second round overwrites what the neighbour may not have read yet.
    let body = "
        shared_store %st, %t disp=0
        barrier
        %o = binary.xor %t4, %four : i32
        %p = binary.add %base, %o : i32
        %v = shared_load %p disp=0 elem=i32 : i32
        shared_store %st, %v disp=0";
    finds(body, 32, FaultKind::SharedRace, "shared_store", Some("shared_load"), "writes byte 0");
    let body = "shared_store %base, %t disp=0";
    finds(
        body,
        32,
        FaultKind::SharedRace,
        "shared_store",
        Some("shared_store"),
        "which thread 0 wrote",
    );
    let body = "
        shared_store %base, %n disp=0
        barrier
        %v = shared_load %base disp=0 elem=i32 : i32
        shared_store %base, %n disp=0";
    finds(
        body,
        64,
        FaultKind::SharedRace,
        "shared_store",
        Some("shared_load"),
        "threads of several warps",
    );
    // The same number by all, and read behind the barrier only, is well.
    run(
        "shared_store %base, %n disp=0\n barrier\n %v = shared_load %base disp=0 elem=i32 : i32",
        64,
        &mut [0i32],
        &mut [0i32],
        0,
    );
    // Atomic updates are ordered among themselves only.
    let body = "
        shared_store %st, %t disp=0
        barrier
        %a = shared_atomic.add %base, %t : i32
        %v = shared_load %base disp=0 elem=i32 : i32";
    finds(
        body,
        32,
        FaultKind::SharedRace,
        "shared_load",
        Some("shared_atomic"),
        "several threads of warp 0",
    );
}

#[test]
fn shared_memory_has_bounds_and_contents() {
    let at = |by: i32, rest: &str| {
        format!("%by = const value={by}:i32 : i32\n %a = binary.add %base, %by : i32\n {rest}")
    };
    let load = "%v = shared_load %a disp=0 elem=i32 : i32";
    let store = "shared_store %a, %n disp=0";
    let range = FaultKind::SharedRange;
    finds(
        &at(4096, load),
        32,
        range,
        "shared_load",
        None,
        "4 bytes at byte 4096 of shared memory, which has 4096",
    );
    finds(&at(4094, store), 32, range, "shared_store", None, "at byte 4094");
    finds(&at(-4, store), 32, range, "shared_store", None, "at byte -4");
    finds("%v = shared_load %t4 disp=0 elem=i32 : i32", 32, range, "shared_load", None, "");
    finds(&at(2, store), 32, FaultKind::Misaligned, "shared_store", None, "no multiple of 4");
    let vector = "%v = pack lanes=[%n, %n, %n, %n] : i32x4\n shared_store %a, %v disp=0";
    finds(&at(8, vector), 32, FaultKind::Misaligned, "shared_store", None, "no multiple of 16");
    finds(
        &at(0, load),
        32,
        FaultKind::SharedUnwritten,
        "shared_load",
        None,
        "byte 0 of shared memory, which the block has not written",
    );
}

/// What an earlier block wrote counts for nothing.
#[test]
fn each_block_begins_with_empty_shared_memory() {
    let body = "
        %zero = const value=0:i32 : i32
        %b = block_id axis=0 : i32
        %first = compare.eq %b, %zero : i1
        shared_store %st, %t disp=0 mask=%first
        %v = shared_load %st disp=0 elem=i32 : i32";
    let given = (&mut [0i32][..], &mut [0i32][..], 0);
    let (_, ended) = run_with(body, 32, [2, 1, 1], given, &Options::default());
    let fault = ended.unwrap_err();
    assert_eq!((fault.kind, fault.block), (FaultKind::SharedUnwritten, [1, 0, 0]));
}

#[test]
fn parts_of_blocks_and_warps_are_found() {
    let under = |op: &str, n: u32| {
        format!(
            "%few = const value={n}:i32 : i32
            %c = compare.lt %t, %few : i1
            if %c {{
              {op}
              yield
            }} {{
              yield
            }}"
        )
    };
    let divergence = FaultKind::Divergence;
    finds(
        &under("barrier", 32),
        64,
        divergence,
        "barrier",
        None,
        "is reached by 32 of the block's 64 threads",
    );
    let ops = [
        ("warp_barrier", "warp_barrier"),
        ("warp_shuffle", "%z = warp_shuffle.xor %t, %four : i32"),
        ("warp_vote", "%z = warp_vote.any %c : i1"),
        ("load_matrix", "%z = load_matrix %base disp=0 count=1 transposed=false : i32"),
        (
            "mma",
            "%f = const value=0.0:fp32 : fp32\n %a, %b, %d, %e = mma.f16 a=[%t, %t, %t, %t] b=[%t, %t] c=[%f, %f, %f, %f] : fp32, fp32, fp32, fp32",
        ),
    ];
    for (name, op) in ops {
        finds(
            &under(op, 40),
            64,
            divergence,
            name,
            None,
            "is reached by 8 of the 32 threads of warp 1",
        );
    }
    // A whole warp may go its way.
    let body = under("%z = warp_shuffle.xor %t, %four : i32\n warp_barrier", 32);
    run(&body, 64, &mut [0i32], &mut [0i32], 0);
    // In a loop that threads leave at different times.
    let body = "
        %zero = const value=0:i32 : i32
        %one = const value=1:i32 : i32
        for %zero, %t, %one {
        ^(%i: i32):
          barrier
          yield
        }";
    finds(body, 32, divergence, "barrier", None, "31 of the block's 32");
}

#[test]
fn global_memory_has_bounds() {
    let load = |disp: i32| format!("%v = load %xt disp={disp} elem=i32 : i32");
    let out = FaultKind::OutOfBounds;
    finds(&load(1024), 32, out, "load", None, "at byte 1024 of its 1024");
    finds(&load(-4), 32, out, "load", None, "is in no argument's memory");
    finds(&load(2), 32, FaultKind::Misaligned, "load", None, "accesses 4 bytes at once");
    finds(
        "%z = const value=0:i64 : i64\n %a = bitcast %z to=addr : addr\n store %a, %n disp=0",
        32,
        out,
        "store",
        None,
        "at address 0x0",
    );
    finds("async_copy %base, %xt disp=1024 bytes=4", 32, out, "async_copy", None, "reads 4 bytes");
    finds(
        "%v = atomic.add %xt, %n : i32\n %w = load %xt disp=4 elem=i64 lanes=2 : i64x2",
        32,
        FaultKind::Misaligned,
        "load",
        None,
        "16 bytes at once",
    );
}

#[test]
fn what_is_read_only_is_not_written() {
    let func = kernel("store %xt, %n disp=0");
    let mut x = [0i32; 32];
    let Arg::Tensor(mut given) = tensor(&mut x) else { unreachable!() };
    given.writable = false;
    let code = Code::new(func, BlockShape { threads: 32, shared_bytes: 0 }).unwrap();
    let args = [Arg::Tensor(given.clone()), Arg::Tensor(given), Arg::Scalar(0)];
    // SAFETY: the array is there.
    let fault = unsafe { code.run([1, 1, 1], &args, &Options::default()) }.unwrap_err();
    assert_eq!(fault.kind, FaultKind::ReadOnly);
    assert!(fault.what.contains("`x`, which is read-only"), "{}", fault.what);
}

#[test]
fn copies_in_flight_are_left_alone() {
    let copy = "async_copy %st, %xt disp=0 bytes=4\n async_commit\n";
    let flight = FaultKind::InFlight;
    let with = Some("async_copy");
    let after = |rest: &str| format!("{copy}{rest}");
    finds(
        &after("%v = shared_load %st disp=0 elem=i32 : i32"),
        32,
        flight,
        "shared_load",
        with,
        "begun by thread 0",
    );
    finds(&after("barrier\n shared_store %st, %n disp=0"), 32, flight, "shared_store", with, "");
    finds(&after("store %xt, %n disp=0"), 32, flight, "store", with, "may not have read yet");
    finds(&after(copy), 32, flight, "async_copy", with, "");
    // Without a commit there is nothing to wait for.
    let body = "async_copy %st, %xt disp=0 bytes=4\n async_wait pending=0\n %v = shared_load %st disp=0 elem=i32 : i32";
    finds(body, 32, flight, "shared_load", with, "");
    finds("async_copy %st, %xt disp=0 bytes=8", 32, FaultKind::Misaligned, "async_copy", None, "");
}

#[test]
fn lanes_are_those_of_a_warp() {
    finds(
        "%k = const value=32:i32 : i32\n %v = warp_shuffle.xor %t, %k : i32",
        32,
        FaultKind::BadLane,
        "warp_shuffle",
        None,
        "lane 32",
    );
}

#[test]
fn traps_and_endless_loops_end_a_run() {
    finds("trap", 32, FaultKind::Trap, "trap", None, "ends the launch");
    let spin = "
        %zero = const value=0:i32 : i32
        while {
          %v = atomic_load %y elem=i32 : i32
          %c = compare.eq %v, %zero : i1
          condition %c
        } {
          yield
        }";
    finds(spin, 32, FaultKind::Stuck, "while", None, "waits for what no other block will do");
    let none = "
        %zero = const value=0:i32 : i32
        for %zero, %n, %zero {
        ^(%i: i32):
          yield
        }";
    finds(none, 32, FaultKind::Stuck, "for", None, "step 0");
}

/// A lock that threads take one after the other is no endless loop; that it is not run to its end in
/// lockstep is another matter, and there is none here.
#[test]
fn counting_loops_go_on() {
    let body = "
        %one = const value=1:i32 : i32
        while {
          %v = atomic.add %y, %one : i32
          %c = compare.lt %v, %n : i1
          condition %c
        } {
          yield
        }";
    let mut y = [0i32; 1];
    run(body, 32, &mut [0i32], &mut y, 1000);
    assert!(y[0] >= 1000);
}

/// Each element of a print comes once.
#[test]
fn elements_are_printed_once() {
    let print = |value: &str, index: &str| {
        format!(
            "print prefix=\"t\" of=<64xi32> operand=0 operands=1 program=[%n, %n, %n] index=[{index}] value={value}"
        )
    };
    let twice = format!("{}\n{}", print("%t", "%t"), print("%t", "%t"));
    let words = "prints element 0 of <64xi32> once more";
    // Of 64 elements 32 threads print half, and then the same half.
    finds(&twice, 32, FaultKind::Print, "print", None, words);
    let words = "of which elements lack";
    finds(&print("%t", "%t"), 32, FaultKind::Print, "return", None, words);
    finds(&print("%t", "%t4"), 32, FaultKind::Print, "print", None, "prints element 64");
}

/// Prints are shown whole, in the order of the tile.
#[test]
fn prints_are_tiles() {
    let body = "
        %zero = const value=0:i32 : i32
        %one = const value=1:i32 : i32
        %i = binary.xor %t, %one : i32
        %v = binary.mul %i, %n : i32
        print prefix=\"v\" of=<64xi32> operand=0 operands=2 program=[%n, %one, %zero] index=[%i] value=%v
        %c = compare.eq %t, %zero : i1
        if %c {
          print prefix=\"v\" of=i32 operand=1 operands=2 program=[%n, %one, %zero] value=%four
          print prefix=\"end\" of=i32 operand=0 operands=0 program=[%n, %one, %zero]
          yield
        } {
          yield
        }";
    let said = std::sync::Mutex::new(Vec::new());
    let print = |p: &naiad_interp::Printed<'_>| {
        let operands: Vec<Vec<u64>> = p.operands.iter().map(|o| o.images()).collect();
        said.lock().unwrap().push((p.prefix.to_string(), p.program, operands));
    };
    let options = Options { print: Some(&print), ..Options::default() };
    let given = (&mut [0i32][..], &mut [0i32][..], 7);
    run_with(body, 64, [1; 3], given, &options).1.unwrap();
    let values = vec![(0..64).map(|i| 7 * i).collect(), vec![4]];
    let want = [("v".to_string(), [7, 1, 0], values), ("end".to_string(), [7, 1, 0], vec![])];
    assert_eq!(said.into_inner().unwrap(), want);
}
