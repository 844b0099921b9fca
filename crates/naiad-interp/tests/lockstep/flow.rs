//! Control flow under masks, elementwise ops, registers.

use super::*;

fn numbers(body: &str, threads: u32, n: i32) -> Vec<i32> {
    let (mut x, mut y) = (Vec::from_iter(0..threads as i32), vec![0; threads as usize]);
    run(body, threads, &mut x, &mut y, n);
    y
}

fn want(threads: i32, f: impl Fn(i32) -> i32) -> Vec<i32> {
    (0..threads).map(f).collect()
}

#[test]
fn threads_add() {
    let body = "
        %a = load %xt disp=0 elem=i32 : i32
        %b = binary.mul %a, %n : i32
        %c = binary.add %b, %t : i32
        store %yt, %c disp=0";
    assert_eq!(numbers(body, 64, 3), want(64, |i| 4 * i));
}

#[test]
fn branches_part_and_meet() {
    let body = "
        %c = compare.lt %t, %n : i1
        %r, %s = if %c {
          %one = const value=1:i32 : i32
          %a = binary.add %t, %one : i32
          yield values=[%a, %t]
        } {
          store %xt, %four disp=0
          yield values=[%t, %four]
        } : i32, i32
        %q = binary.mul %r, %s : i32
        store %yt, %q disp=0";
    for n in [0, 1, 40, 64, 100] {
        let f = |i| if i < n { (i + 1) * i } else { i * 4 };
        assert_eq!(numbers(body, 64, n), want(64, f));
    }
}

/// Threads go round as often as each has to, and what is carried changes places.
#[test]
fn loops_end_thread_by_thread() {
    let body = "
        %zero = const value=0:i32 : i32
        %one = const value=1:i32 : i32
        %a, %b = for %zero, %t, %one inits=[%zero, %one] {
        ^(%i: i32, %p: i32, %q: i32):
          %s = binary.add %p, %q : i32
          %m = const value=1000:i32 : i32
          %r = binary.rem %s, %m : i32
          yield values=[%q, %r]
        } : i32, i32
        store %yt, %a disp=0";
    let fibonacci = |n| (0..n).fold((0, 1), |(a, b), _| (b, (a + b) % 1000)).0;
    assert_eq!(numbers(body, 96, 0), want(96, fibonacci));
}

#[test]
fn loops_count_down_and_not_at_all() {
    let body = "
        %by = const value=-3:i32 : i32
        %zero = const value=0:i32 : i32
        %a = for %t, %n, %by inits=[%zero] {
        ^(%i: i32, %p: i32):
          %s = binary.add %p, %i : i32
          yield values=[%s]
        } : i32
        store %yt, %a disp=0";
    let f = |t: i32| (0..).map(|i| t - 3 * i).take_while(|&i| i > 10).sum();
    assert_eq!(numbers(body, 32, 10), want(32, f));
}

#[test]
fn while_loops_end_thread_by_thread() {
    // Steps of the Collatz sequence.
    let body = "
        %one = const value=1:i32 : i32
        %two = const value=2:i32 : i32
        %three = const value=3:i32 : i32
        %zero = const value=0:i32 : i32
        %first = binary.add %t, %one : i32
        %last, %steps = while inits=[%first, %zero] {
        ^(%v: i32, %k: i32):
          %goes = compare.gt %v, %one : i1
          condition %goes values=[%v, %k]
        } {
        ^(%w: i32, %j: i32):
          %odd = binary.rem %w, %two : i32
          %is = compare.eq %odd, %one : i1
          %next = if %is {
            %up = binary.mul %w, %three : i32
            %u = binary.add %up, %one : i32
            yield values=[%u]
          } {
            %half = binary.idiv %w, %two : i32
            yield values=[%half]
          } : i32
          %more = binary.add %j, %one : i32
          yield values=[%next, %more]
        } : i32, i32
        %sum = binary.add %last, %steps : i32
        store %yt, %sum disp=0";
    let f = |t| {
        let (mut v, mut steps) = (t + 1, 0);
        while v > 1 {
            v = if v % 2 == 1 { 3 * v + 1 } else { v / 2 };
            steps += 1;
        }
        1 + steps
    };
    assert_eq!(numbers(body, 64, 0), want(64, f));
}

#[test]
fn vectors_are_taken_apart_and_put_together() {
    let body = "
        %two = const value=2:i32 : i32
        %v = pack lanes=[%t, %two, %n, %four] : i32x4
        %w = shuffle %v, %v order=(3,0,5,2) : i32x4
        %i = iota elem=i32 lanes=4 : i32x4
        %p = binary.mul %w, %i : i32x4
        %a = extract %p lane=1 : i32
        %b = extract %p lane=2 : i32
        %c = extract %p lane=3 : i32
        %s = splat %a lanes=2 : i32x2
        %sa = extract %s lane=1 : i32
        %ab = binary.add %sa, %b : i32
        %abc = binary.add %ab, %c : i32
        %m = compare.gt %p, %w : i1x4
        %any = any %m : i1
        %all = all %m : i1
        %e = cast %any to=i32 : i32
        %f = cast %all to=i32 : i32
        %ef = binary.sub %e, %f : i32
        %r = binary.add %abc, %ef : i32
        store %yt, %r disp=0";
    // Lanes are 4, t, 2, 7 times 0, 1, 2, 3.
    assert_eq!(numbers(body, 32, 7), want(32, |t| t + 4 + 21 + 1));
}

#[test]
fn registers_are_each_threads_own() {
    let body = "
        %r = regs elem=i32 lanes=2 count=3 : <3*i32x2>
        %v = pack lanes=[%t, %n] : i32x2
        regs_set %r, %v index=1
        %c = compare.lt %t, %n : i1
        if %c {
          %w = pack lanes=[%n, %t] : i32x2
          regs_set %r, %w index=1
          yield
        } {
          yield
        }
        %g = regs_get %r index=1 : i32x2
        %z = regs_get %r index=2 : i32x2
        %a = extract %g lane=0 : i32
        %b = extract %z lane=1 : i32
        %s = binary.add %a, %b : i32
        store %yt, %s disp=0";
    assert_eq!(numbers(body, 32, 9), want(32, |t| if t < 9 { 9 } else { t }));
}

#[test]
fn narrow_floats_are_converted() {
    let body = "
        %f = cast %t to=fp32 : fp32
        %third = const value=0.33:fp32 : fp32
        %g = binary.mul %f, %third : fp32
        %h = cast %g to=fp16 : fp16
        %b = bitcast %h to=i16 : i16
        %w = cast %b to=i32 : i32
        store %yt, %w disp=0";
    let f = |t: i32| i32::from(half::f16::from_f32(t as f32 * 0.33).to_bits() as i16);
    assert_eq!(numbers(body, 32, 0), want(32, f));
}

#[test]
fn native_functions_are_near() {
    let body = "
        %one = const value=1.0:fp32 : fp32
        %f = cast %t to=fp32 : fp32
        %g = binary.add %f, %one : fp32
        %a = native.exp2 args=[%g] : fp32
        %b = native.log2 args=[%a] : fp32
        %c = native.reciprocal args=[%b] : fp32
        %d = native.rsqrt args=[%c] : fp32
        %e = native.div args=[%d, %c] : fp32
        store %yt, %e disp=0";
    let (mut x, mut y) = (vec![0i32; 32], vec![0f32; 32]);
    run(body, 32, &mut x, &mut y, 0);
    for (t, y) in y.iter().enumerate() {
        let g = t as f32 + 1.0;
        assert!((y - g.powf(1.5)).abs() <= 1e-5 * y.abs(), "{y} of thread {t}");
    }
}

#[test]
fn assembly_and_the_clock_run() {
    let body = r#"
        %before = machine.globaltimer : i64
        %a = asm text="bfind.u32 $0, $1;" constraints="=r,r" args=[%t] results=(i32) is_pure=true : i32
        %after = machine.globaltimer : i64
        %later = compare.gt %after, %before : i1
        %zero = const value=-77:i32 : i32
        %r = select %later, %a, %zero : i32
        store %yt, %r disp=0"#;
    assert_eq!(numbers(body, 64, 0)[1..], want(64, |t| t.max(1).ilog2() as i32)[1..]);
}

/// Blocks know their places, in whatever order they are run.
#[test]
fn blocks_cover_the_grid() {
    let body = "
        %bx = block_id axis=0 : i32
        %by = block_id axis=1 : i32
        %bz = block_id axis=2 : i32
        %nx = num_blocks axis=0 : i32
        %ny = num_blocks axis=1 : i32
        %p = binary.mul %bz, %ny : i32
        %q = binary.add %p, %by : i32
        %r = binary.mul %q, %nx : i32
        %s = binary.add %r, %bx : i32
        %sl = cast %s to=i64 : i64
        %fl = const value=128:i64 : i64
        %o = binary.mul %sl, %fl : i64
        %a = addr_add %yt, %o : addr
        store %a, %s disp=0";
    for shuffle in [None, Some(1), Some(12345)] {
        let (mut x, mut y) = ([0i32], vec![-1i32; 32 * 30]);
        let options = Options { shuffle, ..Options::default() };
        let (_, ended) = run_with(body, 32, [5, 3, 2], (&mut x, &mut y, 0), &options);
        assert_eq!(ended.unwrap().blocks, 30);
        assert_eq!(y, Vec::from_iter((0..32 * 30).map(|i| i / 32)));
    }
}

#[test]
fn code_for_a_cpu_is_refused() {
    let func = kernel("%s = scratch bytes=64 align=16 : addr");
    let shape = BlockShape { threads: 32, shared_bytes: 0 };
    let refused = Code::new(func.clone(), shape).err().unwrap();
    assert!(refused.message.contains("`scratch` is for a CPU"), "{}", refused.message);
    let text = r#"asm text="bar.sync 0;" constraints="" args=[] results=() is_pure=false"#;
    let refused = Code::new(kernel(text), shape).err().unwrap();
    assert_eq!(refused.id, naiad_diag::Id::InlineAsm, "{refused:#?}");
    for threads in [0, 48, 2048] {
        assert!(Code::new(func.clone(), BlockShape { threads, shared_bytes: 0 }).is_err());
    }
}

/// Each block adds itself to a counter and waits until all have, twice.
#[test]
fn blocks_wait_for_each_other() {
    let barrier = |i: u32, per_thread: u32| {
        format!(
            "%one{i} = const value=1:i32 : i32
            %goal{i} = const value={}:i32 : i32
            %in{i} = atomic.add %y, %one{i} : i32
            while {{
              %v{i} = atomic_load %y elem=i32 : i32
              %c{i} = compare.lt %v{i}, %goal{i} : i1
              condition %c{i}
            }} {{
              yield
            }}\n",
            (i + 1) * per_thread
        )
    };
    let body = barrier(0, 32 * 40) + &barrier(1, 32 * 40);
    for shuffle in [None, Some(7)] {
        let (mut x, mut y) = ([0i32], [0i32; 32]);
        let options = Options { shuffle, ..Options::default() };
        let (func, ended) = run_with(&body, 32, [40, 1, 1], (&mut x, &mut y, 0), &options);
        let stats = ended.unwrap_or_else(|f| panic!("{:#?}", f.diagnostic(&func)));
        assert_eq!((stats.blocks, y[0]), (40, 2 * 32 * 40));
    }
}

/// Each block waits for the one behind it; the last looks at the clock for a while first.
#[test]
fn blocks_wait_for_later_ones() {
    let body = "
        %b = block_id axis=0 : i32
        %nb = num_blocks axis=0 : i32
        %one = const value=1:i32 : i32
        %zero = const value=0:i32 : i32
        %bl = cast %b to=i64 : i64
        %size = const value=4:i64 : i64
        %o = binary.mul %bl, %size : i64
        %mine = addr_add %y, %o : addr
        %next = addr_add %mine, %size : addr
        %lastb = binary.sub %nb, %one : i32
        %islast = compare.eq %b, %lastb : i1
        %got = if %islast {
          %start = machine.globaltimer : i64
          %long = const value=500000:i64 : i64
          %until = binary.add %start, %long : i64
          while {
            %now = machine.globaltimer : i64
            %c = compare.lt %now, %until : i1
            condition %c
          } {
            yield
          }
          yield values=[%one]
        } {
          %g = while {
            %v = atomic_load %next elem=i32 : i32
            %c2 = compare.eq %v, %zero : i1
            condition %c2 values=[%v]
          } {
          ^(%u: i32):
            yield
          } : i32
          yield values=[%g]
        } : i32
        %w = binary.add %got, %one : i32
        atomic_store %mine, %w";
    let (mut x, mut y) = ([0i32], [0i32; 100]);
    let given = (&mut x[..], &mut y[..], 0);
    let (func, ended) = run_with(body, 32, [100, 1, 1], given, &Options::default());
    ended.unwrap_or_else(|f| panic!("{:#?}", f.diagnostic(&func)));
    assert_eq!(y.to_vec(), Vec::from_iter((0..100).map(|i| 101 - i)));
}

/// Who has ended is waited for no longer, by a barrier, a vote or a loop.
#[test]
fn threads_end_before_the_others() {
    let body = "
        %zero = const value=0:i32 : i32
        %one = const value=1:i32 : i32
        %thirty2 = const value=32:i32 : i32
        %first = compare.lt %t, %thirty2 : i1
        %rounds = for %zero, %n, %one inits=[%zero] {
        ^(%i: i32, %p: i32):
          %late = compare.eq %i, %four : i1
          %go = binary.and %late, %first : i1
          if %go {
            exit
            yield
          } {
            yield
          }
          barrier
          %q = binary.add %p, %one : i32
          store %yt, %q disp=0
          yield values=[%q]
        } : i32
        %any = block_vote.any %first : i1
        %all = block_vote.all %first : i1
        %both = binary.or %any, %all : i1
        if %both {
          store %yt, %zero disp=0
          yield
        } {
          yield
        }";
    let ended = |t: i32, n: i32| match t < 32 {
        _ if n <= 4 => 0,
        true => 4,
        false => n,
    };
    for n in [3, 4, 5, 9] {
        assert_eq!(numbers(body, 96, n), want(96, |t| ended(t, n)), "{n}");
    }
}
