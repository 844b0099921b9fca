//! Kernels whose programs wait for one another.

#![allow(dead_code, reason = "each test file uses a part")]

/// A lock around an increment that is not atomic.
pub const LOCK: &str = "tile @lock(%l lock: *i32, %c counter: *i32) {
  %zero = const value=0:i32 : i32
  %one = const value=1:i32 : i32
  while {
    %got = atomic_cas %l, %zero, %one : i32
    %taken = compare.ne %got, %zero : i1
    condition %taken
  } {
    yield
  }
  %v = load %c : i32
  %w = binary.add %v, %one : i32
  store %c, %w
  %old = atomic.xchg %l, %zero : i32
  return
}";

/// Program p waits for the flag that p + 1 sets, as in stream-K.
pub const CHAIN: &str = "tile @chain(%f flags: *i32, %o out: *i32, %n n: i32) {
  %zero = const value=0:i32 : i32
  %one = const value=1:i32 : i32
  %pid = program_id axis=0 : i32
  %next = binary.add %pid, %one : i32
  %last = compare.ge %next, %n : i1
  %nf = ptr_add %f, %next : *i32
  %v = if %last {
    yield values=[%zero]
  } {
    %g = while inits=[%zero] {
      ^(%seen: i32):
      %unset = compare.eq %seen, %zero : i1
      condition %unset values=[%seen]
    } {
      ^(%old: i32):
      %now = load %nf hints=volatile : i32
      yield values=[%now]
    } : i32
    %op1 = ptr_add %o, %next : *i32
    %x = load %op1 : i32
    yield values=[%x]
  } : i32
  %sum = binary.add %v, %pid : i32
  %op = ptr_add %o, %pid : *i32
  store %op, %sum
  %mf = ptr_add %f, %pid : *i32
  %set = atomic.xchg %mf, %one sem=release : i32
  return
}";

/// All programs meet, then each reads what its neighbour wrote.
pub const BARRIER: &str = "tile @barrier(%c count: *i32, %o out: *i32, %q q: *i32) {
  %zero = const value=0:i32 : i32
  %one = const value=1:i32 : i32
  %pid = program_id axis=0 : i32
  %n = num_programs axis=0 : i32
  %op = ptr_add %o, %pid : *i32
  store %op, %pid
  %old = atomic.add %c, %one : i32
  while {
    %now = atomic.add %c, %zero : i32
    %less = compare.lt %now, %n : i1
    condition %less
  } {
    yield
  }
  %next = binary.add %pid, %one : i32
  %wrapped = binary.rem %next, %n : i32
  %np = ptr_add %o, %wrapped : *i32
  %v = load %np : i32
  %qp = ptr_add %q, %pid : *i32
  store %qp, %v
  return
}";
