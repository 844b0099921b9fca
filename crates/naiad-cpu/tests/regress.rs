//! Faults of machine code that were fixed, each with the least kernel that showed it.

#[path = "../../naiad-interp/tests/common/mod.rs"]
mod common;
#[path = "common/machine.rs"]
mod machine;

use common::*;
use machine::{Machine, fault};
use naiad_interp::Arg;

/// Runs a kernel of pointers to i32 and numbers both ways: what it writes and what it says must agree.
/// Memory is counted up from 1.
fn agree(text: &str, elements: &[usize], numbers: &[i64]) {
    let func = kernel(text);
    let fresh =
        || -> Vec<Vec<i32>> { elements.iter().map(|&n| (1..=n as i32).collect()).collect() };
    let mut memory = fresh();
    let mut args: Vec<Arg> = memory.iter_mut().map(|m| tensor(m)).collect();
    args.extend(numbers.iter().map(|&n| int(n)));
    let said_by_reference = run(&func, [2, 1, 1], &args, &PLAIN).map(|_| ()).map_err(|d| fault(&d));
    let expected: Vec<Vec<i32>> = memory.clone();
    for optimize in [false, true] {
        let machine = Machine::new(&func, &args, optimize);
        for (m, f) in memory.iter_mut().zip(fresh()) {
            m.copy_from_slice(&f);
        }
        let is = machine.run([2, 1, 1], &args, 1).map_err(|d| fault(&d));
        assert_eq!(said_by_reference, is, "optimized: {optimize}");
        if is.is_ok() {
            assert_eq!(expected, memory, "optimized: {optimize}");
        }
    }
}

#[test]
fn tiles_kept_in_a_branch_are_not_there_behind_it() {
    agree(
        "tile @k(%p p: *i32, %n n: i32) {
          %i = arange start=0 end=16 : <16xi32>
          %x = binary.mul %i, %i : <16xi32>
          %zero = const value=0:i32 : i32
          %c = compare.gt %n, %zero : i1
          if %c {
            %f = flip %x axis=0 : <16xi32>
            yield values=[]
          } {
            yield values=[]
          }
          %one = const value=1:i32 : i32
          for %zero, %n, %one inits=[] {
            ^(%k: i32):
            %g = flip %x axis=0 : <16xi32>
            yield values=[]
          }
          %q = splat %p shape=(16,) : <16x*i32>
          %a = ptr_add %q, %i : <16x*i32>
          store %a, %x
          return
        }",
        &[16],
        &[0],
    );
}

#[test]
fn a_transpose_in_place_reads_all_before_it_writes() {
    for body in [
        // x = load(p); store(p, x^T)
        "%x = load %a : <4x4xi32>\n%y = permute %x order=(1,0) : <4x4xi32>\nstore %a, %y",
        // store(p, v); store(q, load(p)^T)
        "%v = binary.mul %o, %o : <4x4xi32>\nstore %a, %v\n%x = load %a : <4x4xi32>\n%y = permute %x order=(1,0) : <4x4xi32>\nstore %b, %y",
    ] {
        agree(
            &format!(
                "tile @k(%p p: *i32, %r q: *i32) {{
                  %i = arange start=0 end=4 : <4xi32>
                  %rows = expand_dims %i axis=1 : <4x1xi32>
                  %rows4 = broadcast %rows shape=(4,4) : <4x4xi32>
                  %four = const value=4:i32 : i32
                  %fours = splat %four shape=(4,4) : <4x4xi32>
                  %down = binary.mul %rows4, %fours : <4x4xi32>
                  %cols = expand_dims %i axis=0 : <1x4xi32>
                  %cols4 = broadcast %cols shape=(4,4) : <4x4xi32>
                  %o = binary.add %down, %cols4 : <4x4xi32>
                  %q = splat %p shape=(4,4) : <4x4x*i32>
                  %a = ptr_add %q, %o : <4x4x*i32>
                  %s = splat %r shape=(4,4) : <4x4x*i32>
                  %b = ptr_add %s, %o : <4x4x*i32>
                  {body}
                  return
                }}"
            ),
            &[16, 16],
            &[],
        );
    }
}

#[test]
fn lanes_that_wrap_onto_one_another_are_read_before_any_is_written() {
    // Element i of 512 is read and written at i % 256: in narrow numbers, by a remainder.
    for wrapped in [
        "%b = cast %i to=u8 : <512xu8>\n%o = cast %b to=i32 : <512xi32>",
        "%m = const value=256:i32 : i32\n%ms = splat %m shape=(512,) : <512xi32>\n%o = binary.rem %i, %ms : <512xi32>",
    ] {
        for from in ["%o", "%i"] {
            agree(
                &format!(
                    "tile @k(%p p: *i32) {{
                      %i = arange start=0 end=512 : <512xi32>
                      {wrapped}
                      %q = splat %p shape=(512,) : <512x*i32>
                      %a = ptr_add %q, {from} : <512x*i32>
                      %x = load %a : <512xi32>
                      %y = binary.add %x, %i : <512xi32>
                      %b2 = ptr_add %q, %o : <512x*i32>
                      store %b2, %y
                      return
                    }}"
                ),
                &[512],
                &[],
            );
        }
    }
}

#[test]
fn a_bound_in_narrow_numbers_is_not_the_same_bound_in_wide_ones() {
    agree(
        "tile @k(%p p: *i32, %n n: i32) {
          %i = arange start=0 end=256 : <256xi32>
          %ns = splat %n shape=(256,) : <256xi32>
          %mask = compare.lt %i, %ns : <256xi1>
          %j = cast %i to=i8 : <256xi8>
          %m = cast %ns to=i8 : <256xi8>
          %narrow = compare.lt %j, %m : <256xi1>
          %zero = const value=0:i32 : i32
          %zeros = splat %zero shape=(256,) : <256xi32>
          %x = select %narrow, %i, %zeros : <256xi32>
          %q = splat %p shape=(256,) : <256x*i32>
          %a = ptr_add %q, %i : <256x*i32>
          store %a, %x mask=%mask
          return
        }",
        &[256],
        &[200],
    );
}

#[test]
fn formulas_beyond_64_bits_are_no_formulas() {
    // 2^63 - 8 + i, as i32: -8 + i.
    agree(
        "tile @k(%p p: *i32) {
          %i = arange start=0 end=16 : <16xi32>
          %w = cast %i to=i64 : <16xi64>
          %far = const value=9223372036854775800:i64 : i64
          %fars = splat %far shape=(16,) : <16xi64>
          %sum = binary.add %w, %fars : <16xi64>
          %o = cast %sum to=i32 : <16xi32>
          %zero = const value=0:i32 : i32
          %zeros = splat %zero shape=(16,) : <16xi32>
          %mask = compare.ge %o, %zeros : <16xi1>
          %q = splat %p shape=(16,) : <16x*i32>
          %a = ptr_add %q, %i : <16x*i32>
          store %a, %o mask=%mask
          return
        }",
        &[16],
        &[],
    );
    // Steps of 2^61 bytes: element 8 is element 0 again, and those between are nowhere.
    agree(
        "tile @k(%p p: *i32) {
          %i = arange start=0 end=16 : <16xi32>
          %w = cast %i to=i64 : <16xi64>
          %step = const value=576460752303423488:i64 : i64
          %steps = splat %step shape=(16,) : <16xi64>
          %o = binary.mul %w, %steps : <16xi64>
          %nine = const value=9:i32 : i32
          %nines = splat %nine shape=(16,) : <16xi32>
          %mask = compare.lt %i, %nines : <16xi1>
          %q = splat %p shape=(16,) : <16x*i32>
          %a = ptr_add %q, %o : <16x*i32>
          store %a, %i mask=%mask
          return
        }",
        &[16],
        &[],
    );
}

const MATRIX: &str = "
  %i = arange start=0 end=16 : <16xi32>
  %rows = expand_dims %i axis=1 : <16x1xi32>
  %rows16 = broadcast %rows shape=(16,16) : <16x16xi32>
  %wide = const value=16:i32 : i32
  %wides = splat %wide shape=(16,16) : <16x16xi32>
  %down = binary.mul %rows16, %wides : <16x16xi32>
  %cols = expand_dims %i axis=0 : <1x16xi32>
  %cols16 = broadcast %cols shape=(16,16) : <16x16xi32>
  %o = binary.add %down, %cols16 : <16x16xi32>
  %q = splat %p shape=(16,16) : <16x16x*i32>
  %at = ptr_add %q, %o : <16x16x*i32>
  %x = load %at : <16x16xi32>
  %a = cast %x to=i8 : <16x16xi8>
  %r = splat %out shape=(16,16) : <16x16x*i32>
  %to = ptr_add %r, %o : <16x16x*i32>
  %zero = const value=0:i32 : i32
  %one = const value=1:i32 : i32
";

#[test]
fn an_accumulator_from_outside_a_loop_starts_anew_in_each_round() {
    // Of a product before the loop, and of a loop around it.
    agree(
        &format!(
            "tile @k(%p p: *i32, %out out: *i32, %n n: i32) {{ {MATRIX}
              %first = dot %a, %a out=i32 precision=ieee : <16x16xi32>
              %zeros = splat %zero shape=(16,16) : <16x16xi32>
              %sum = for %zero, %n, %one inits=[%zeros] {{
                ^(%k: i32, %s: <16x16xi32>):
                %d = dot %a, %a acc=%first out=i32 precision=ieee : <16x16xi32>
                %next = binary.add %s, %d : <16x16xi32>
                yield values=[%next]
              }} : <16x16xi32>
              store %to, %sum
              return
            }}"
        ),
        &[256, 256],
        &[3],
    );
    agree(
        &format!(
            "tile @k(%p p: *i32, %out out: *i32, %n n: i32) {{ {MATRIX}
              %zeros = splat %zero shape=(16,16) : <16x16xi32>
              %all = for %zero, %n, %one inits=[%zeros] {{
                ^(%k: i32, %t: <16x16xi32>):
                %sum = for %zero, %n, %one inits=[%zeros] {{
                  ^(%l: i32, %s: <16x16xi32>):
                  %d = dot %a, %a acc=%t out=i32 precision=ieee : <16x16xi32>
                  %next = binary.add %s, %d : <16x16xi32>
                  yield values=[%next]
                }} : <16x16xi32>
                yield values=[%sum]
              }} : <16x16xi32>
              store %to, %all
              return
            }}"
        ),
        &[256, 256],
        &[3],
    );
}

#[test]
fn what_stands_for_lanes_that_are_never_masked_off_is_read_all_the_same() {
    for op in [
        "%y = load %a mask=%mask other=%x : <16xi32>",
        "%z = binary.add %i, %i : <16xi32>\n%y = select %mask, %z, %x : <16xi32>",
    ] {
        agree(
            &format!(
                "tile @k(%p p: *i32, %r r: *i32, %n n: i32) {{
                  %i = arange start=0 end=16 : <16xi32>
                  %ns = splat %n shape=(16,) : <16xi32>
                  %mask = compare.lt %i, %ns : <16xi1>
                  %q = splat %p shape=(16,) : <16x*i32>
                  %a = ptr_add %q, %i : <16x*i32>
                  %square = binary.mul %i, %i : <16xi32>
                  %s = splat %r shape=(16,) : <16x*i32>
                  %far = ptr_add %s, %square : <16x*i32>
                  %x = load %far : <16xi32>
                  {op}
                  store %a, %y mask=%mask
                  return
                }}"
            ),
            &[16, 64],
            &[16],
        );
    }
}

#[test]
fn tiles_that_wait_are_made_before_a_function_is_called_on_numbers() {
    // The tile is kept for the assembly; the region's loop must not be the place where that is done.
    agree(
        "tile @k(%p p: *i32, %n n: i32) {
          %i = arange start=0 end=16 : <16xi32>
          %zero = const value=0:i32 : i32
          %one = const value=1:i32 : i32
          %x = map inputs=[%n] pack=1 {
            ^(%a: i32):
            %l = const value=0:i32 : i32
            %u = const value=3:i32 : i32
            %s = const value=1:i32 : i32
            %b = for %l, %u, %s inits=[%a] {
              ^(%k: i32, %c: i32):
              %d = binary.add %c, %k : i32
              yield values=[%d]
            } : i32
            yield values=[%b]
          } : i32
          %y = inline_asm args=[%i, %i] text=\"prmt.b32 $0, $1, $2, 0x6240;\" constraints=\"=r,r,r\" shape=(16) results=(i32) is_pure=true pack=1 : <16xi32>
          %q = splat %p shape=(16,) : <16x*i32>
          %a2 = ptr_add %q, %i : <16x*i32>
          %xs = splat %x shape=(16,) : <16xi32>
          for %zero, %n, %one inits=[] {
            ^(%k2: i32):
            %z = binary.add %y, %i : <16xi32>
            %w = binary.add %z, %xs : <16xi32>
            store %a2, %w
            yield values=[]
          }
          return
        }",
        &[16],
        &[2],
    );
}

#[test]
fn sums_are_made_before_they_are_joined() {
    agree(
        "tile @k(%p p: *i32) {
          %i = arange start=0 end=16 : <16xi32>
          %x = reduce inputs=[%i] axis=0 {
            ^(%a: i32, %b: i32):
            %c = binary.xor %a, %b : i32
            yield values=[%c]
          } : i32
          %y = reduce inputs=[%i] axis=0 {
            ^(%a2: i32, %b2: i32):
            %c2 = binary.add %a2, %b2 : i32
            yield values=[%c2]
          } : i32
          %z = join %x, %y : <2xi32>
          %j = arange start=0 end=2 : <2xi32>
          %q = splat %p shape=(2,) : <2x*i32>
          %at = ptr_add %q, %j : <2x*i32>
          store %at, %z
          return
        }",
        &[2],
        &[],
    );
}

#[test]
fn a_kept_tile_is_made_behind_the_stores_that_its_loads_see() {
    for dear in [
        // A function of what was stored, in the same lane and wanted again after the loop nest.
        "%z = binary.rem %y, %sevens : <16x16xi32>\nstore %to, %z",
        // The same turned round and back.
        "%t = permute %y order=(1,0) : <16x16xi32>\n%z = binary.rem %t, %sevens : <16x16xi32>\n%u = permute %z order=(1,0) : <16x16xi32>\nstore %to, %u",
    ] {
        agree(
            &format!(
                "tile @k(%p p: *i32, %out out: *i32) {{ {MATRIX}
                  %seven = const value=7:i32 : i32
                  %sevens = splat %seven shape=(16,16) : <16x16xi32>
                  %twice = binary.add %o, %o : <16x16xi32>
                  store %at, %twice
                  %y = load %at : <16x16xi32>
                  {dear}
                  %f = flip %z axis=0 : <16x16xi32>
                  store %at, %f
                  return
                }}"
            ),
            &[256, 256],
            &[],
        );
    }
}

#[test]
fn booleans_that_are_moved_become_0_or_1() {
    // Element 240 is 241, whose first byte is not 0 and not 1.
    for turned in ["%b", "%t"] {
        agree(
            &format!(
                "tile @k(%p p: *i32, %out out: *i32) {{ {MATRIX}
                  %in = bitcast %p to=*i1 : *i1
                  %first = const value=960:i32 : i32
                  %from = ptr_add %in, %first : *i1
                  %all = splat %from shape=(16,16) : <16x16x*i1>
                  %far = ptr_add %all, %cols16 : <16x16x*i1>
                  %b = load %far : <16x16xi1>
                  %t = permute %b order=(1,0) : <16x16xi1>
                  %bytes = bitcast %out to=*i1 : *i1
                  %bytes16 = splat %bytes shape=(16,16) : <16x16x*i1>
                  %into = ptr_add %bytes16, %o : <16x16x*i1>
                  store %into, {turned}
                  return
                }}"
            ),
            &[256, 256],
            &[],
        );
    }
}

#[test]
fn stores_past_the_cache_leave_the_same_memory() {
    // Outputs of 16 MiB are beyond the cache. A row begins at a line of cache, or not.
    for (start, elem) in [(0, "i32"), (1, "i32"), (16, "i32"), (0, "i8"), (64, "i16")] {
        agree(
            &format!(
                "tile @k(%p p: *i32, %r r: *i32, %n n: i32) {{
                  %i = arange start=0 end=1024 : <1024xi32>
                  %ns = splat %n shape=(1024,) : <1024xi32>
                  %mask = compare.lt %i, %ns : <1024xi1>
                  %pid = program_id axis=0 : i32
                  %long = const value=2048:i32 : i32
                  %far = binary.mul %pid, %long : i32
                  %start = const value={start}:i32 : i32
                  %at = binary.add %far, %start : i32
                  %q = splat %p shape=(1024,) : <1024x*i32>
                  %a = ptr_add %q, %i : <1024x*i32>
                  %x = load %a mask=%mask : <1024xi32>
                  %y = cast %x to={elem} : <1024x{elem}>
                  %narrow = bitcast %r to=*{elem} : *{elem}
                  %row = ptr_add %narrow, %at : *{elem}
                  %s = splat %row shape=(1024,) : <1024x*{elem}>
                  %b = ptr_add %s, %i : <1024x*{elem}>
                  store %b, %y mask=%mask
                  return
                }}"
            ),
            &[1024, 4 << 20],
            &[1000],
        );
    }
}

#[test]
fn a_load_goes_wrong_where_it_stands() {
    // Nobody wants it, or only somebody who does not run.
    for (want, n) in [
        ("", 0),
        ("if %c {\n store %a, %x\n yield values=[]\n} {\n yield values=[]\n}", 0),
        ("for %zero, %n, %one inits=[] {\n^(%k: i32):\n store %a, %x\n yield values=[]\n}", 0),
        ("for %zero, %n, %one inits=[] {\n^(%k: i32):\n store %a, %x\n yield values=[]\n}", 2),
    ] {
        // Beyond the end by a formula, and by an address for each lane.
        for far in ["%i", "%square"] {
            for start in [0, 1, 16] {
                agree(
                    &format!(
                        "tile @k(%p p: *i32, %r r: *i32, %n n: i32) {{
                          %i = arange start=0 end=16 : <16xi32>
                          %square = binary.mul %i, %i : <16xi32>
                          %zero = const value=0:i32 : i32
                          %one = const value=1:i32 : i32
                          %c = compare.gt %n, %zero : i1
                          %start = const value={start}:i32 : i32
                          %from = ptr_add %r, %start : *i32
                          %s = splat %from shape=(16,) : <16x*i32>
                          %b = ptr_add %s, {far} : <16x*i32>
                          %x = load %b : <16xi32>
                          %q = splat %p shape=(16,) : <16x*i32>
                          %a = ptr_add %q, %i : <16x*i32>
                          {want}
                          return
                        }}"
                    ),
                    &[16, 226],
                    &[n],
                );
            }
        }
    }
}
