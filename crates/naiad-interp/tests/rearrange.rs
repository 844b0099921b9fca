//! `flip`, `sort`, `topk`, `gather`, `histogram` and `map` against straightforward Rust.

mod common;
use common::*;
use naiad_ir::Scalar;
use naiad_ir::scalar::{Rounding, cast_bits};
use std::cmp::Ordering;

const SHAPES: &[&[usize]] =
    &[&[1], &[8], &[256], &[4, 8], &[8, 1], &[2, 4, 16], &[1, 1, 32], &[2, 2048], &[8192]];

fn ty(elem: &str, dims: &[usize]) -> String {
    format!("<{}{elem}>", dims.iter().map(|d| format!("{d}x")).collect::<String>())
}

fn shape(dims: &[usize]) -> String {
    format!("({})", dims.iter().map(|d| format!("{d},")).collect::<String>())
}

/// Pointers `%name` to consecutive elements behind the parameter `%base`.
fn pointers(name: &str, base: &str, elem: &str, dims: &[usize]) -> String {
    let n: usize = dims.iter().product();
    let (s, p) = (shape(dims), ty(&format!("*{elem}"), dims));
    format!(
        "  %{name}a = arange start=0 end={n} : <{n}xi32>
  %{name}r = reshape %{name}a shape={s} : {}
  %{name}s = splat {base} shape={s} : {p}
  %{name} = ptr_add %{name}s, %{name}r : {p}\n",
        ty("i32", dims)
    )
}

/// Loads `%v` of `dims`, applies `body`, which makes `%w` of `to`, and stores that. A body without its
/// result's type gets it.
fn unary(elem: &str, dims: &[usize], body: &str, out: &str, to: &[usize]) -> String {
    let body =
        if body.ends_with('>') { body.to_string() } else { format!("{body} : {}", ty(out, to)) };
    format!(
        "tile @k(%x x: *{elem}, %o out: *{out}) {{\n{}{}  %v = load %p : {}\n  {body}\n  store %q, %w\n  return\n}}",
        pointers("p", "%x", elem, dims),
        pointers("q", "%o", out, to),
        ty(elem, dims)
    )
}

/// Bytes of `n` elements: small numbers, so that many are equal, and any bits among them.
fn bytes(elem: Scalar, n: usize) -> Vec<u8> {
    let mut state = 0x1234_5678_9abc_def1u64 ^ (n as u64) << 32;
    let mut out = Vec::new();
    for i in 0..n {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let small = cast_bits(Scalar::I32, elem, Rounding::Nearest, (state >> 40) % 16);
        let image = match i % 4 {
            0 => state >> 3,
            1 if elem.is_float() => small | 1 << (elem.bits() - 1),
            _ => small,
        } & elem.mask();
        out.extend_from_slice(&image.to_le_bytes()[..elem.size()]);
    }
    out
}

fn images(bytes: &[u8], elem: Scalar) -> Vec<u64> {
    let image = |b: &[u8]| b.iter().rev().fold(0, |all, &b| all << 8 | u64::from(b));
    bytes.chunks(elem.size()).map(image).collect()
}

/// Numbers by their values, zeros equal, NaN last.
fn order(elem: Scalar, a: u64, b: u64) -> Ordering {
    if elem.is_int() {
        let value = |x: u64| {
            let unused = 128 - elem.bits();
            let x = i128::from(x) << unused;
            if elem.is_signed() { x >> unused } else { (x as u128 >> unused) as i128 }
        };
        return value(a).cmp(&value(b));
    }
    let value = |x| f64::from_bits(cast_bits(elem, Scalar::F64, Rounding::Nearest, x));
    let (a, b) = (value(a), value(b));
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

fn run_bytes(text: &str, input: &mut [u8], out_bytes: usize) -> Vec<u8> {
    let func = kernel(text);
    let mut out = vec![0u8; out_bytes];
    // Vectors of bytes lie where they lie: neither loads nor stores ask for alignment.
    ok(&func, [1, 1, 1], &[tensor(input), tensor(&mut out)]);
    out
}

#[test]
fn sorts_every_type() {
    for &elem in Scalar::ALL {
        for &dims in SHAPES {
            let n: usize = dims.iter().product();
            let last = dims[dims.len() - 1];
            let mut input = bytes(elem, n);
            if elem.is_bool() {
                input.iter_mut().for_each(|b| *b &= 1);
            }
            for descending in [false, true] {
                let mut want = images(&input, elem);
                for row in want.chunks_mut(last) {
                    row.sort_by(|&a, &b| {
                        let o = order(elem, a, b);
                        if descending { o.reverse() } else { o }
                    });
                }
                let body = format!("%w = sort %v descending={descending}");
                let text = unary(elem.name(), dims, &body, elem.name(), dims);
                let out = run_bytes(&text, &mut input, n * elem.size());
                assert_eq!(images(&out, elem), want, "{elem} {dims:?}");
                for k in [1, last / 2, last].into_iter().filter(|&k| k > 0) {
                    let mut to = dims.to_vec();
                    *to.last_mut().unwrap() = k;
                    let body = format!("%w = topk %v k={k} descending={descending}");
                    let text = unary(elem.name(), dims, &body, elem.name(), &to);
                    let out = run_bytes(&text, &mut input, n / last * k * elem.size());
                    let heads: Vec<u64> =
                        want.chunks(last).flat_map(|row| row[..k].to_vec()).collect();
                    assert_eq!(images(&out, elem), heads, "{elem} {dims:?} {k}");
                }
            }
        }
    }
}

#[test]
fn flips_along_each_axis() {
    for &elem in &[Scalar::I8, Scalar::F16, Scalar::I32, Scalar::F64] {
        for &dims in SHAPES {
            let n: usize = dims.iter().product();
            let mut input = bytes(elem, n);
            for axis in 0..dims.len() {
                let text = unary(
                    elem.name(),
                    dims,
                    &format!("%w = flip %v axis={axis}"),
                    elem.name(),
                    dims,
                );
                let out = run_bytes(&text, &mut input, n * elem.size());
                let inner: usize = dims[axis + 1..].iter().product();
                let all = images(&input, elem);
                let want: Vec<u64> = (0..n)
                    .map(|i| {
                        let at = i / inner % dims[axis];
                        all[i - at * inner + (dims[axis] - 1 - at) * inner]
                    })
                    .collect();
                assert_eq!(images(&out, elem), want, "{elem} {dims:?} {axis}");
            }
        }
    }
}

#[test]
fn gathers_by_indices_of_every_type() {
    for &index in Scalar::ALL.iter().filter(|s| s.is_int()) {
        for elem in [Scalar::U8, Scalar::BF16, Scalar::F32, Scalar::I64] {
            for (dims, axis, m) in [
                (&[8][..], 0, 32),
                (&[8], 0, 2),
                (&[4, 8], 0, 16),
                (&[4, 8], 1, 2),
                (&[2, 4, 8], 1, 4),
            ] {
                let n: usize = dims.iter().product();
                let mut to = dims.to_vec();
                to[axis] = m;
                let count: usize = to.iter().product();
                let mut input = bytes(elem, n);
                let mut at: Vec<u8> = Vec::new();
                let top = if index.is_bool() { 2 } else { dims[axis] };
                let chosen: Vec<usize> = (0..count).map(|i| (i * 7 + i / 3) % top).collect();
                chosen.iter().for_each(|&i| {
                    at.extend_from_slice(&(i as u64).to_le_bytes()[..index.size()]);
                });
                let text = format!(
                    "tile @k(%x x: *{elem}, %i i: *{index}, %o out: *{elem}) {{\n{}{}{}  %v = load %p : {}\n  %at = load %q : {}\n  %w = gather %v, %at axis={axis} : {}\n  store %r, %w\n  return\n}}",
                    pointers("p", "%x", elem.name(), dims),
                    pointers("q", "%i", index.name(), &to),
                    pointers("r", "%o", elem.name(), &to),
                    ty(elem.name(), dims),
                    ty(index.name(), &to),
                    ty(elem.name(), &to)
                );
                let func = kernel(&text);
                let mut out = vec![0u8; count * elem.size()];
                let args = [tensor(&mut input), tensor(&mut at), tensor(&mut out)];
                ok(&func, [1, 1, 1], &args);
                let inner: usize = dims[axis + 1..].iter().product();
                let all = images(&input, elem);
                let want: Vec<u64> = (0..count)
                    .map(|i| {
                        let (outer, rest) = (i / (m * inner), i % inner);
                        all[(outer * dims[axis] + chosen[i]) * inner + rest]
                    })
                    .collect();
                assert_eq!(images(&out, elem), want, "{elem} by {index} {dims:?} {axis}");
            }
        }
    }
}

#[test]
fn wild_indices_give_elements_of_the_source() {
    for index in ["i8", "i32", "u32", "i64", "u64"] {
        let text = format!(
            "tile @k(%x x: *i32, %i i: *{index}, %o out: *i32) {{\n{}{}{}  %v = load %p : <8xi32>\n  %at = load %q : <16x{index}>\n  %w = gather %v, %at axis=0 : <16xi32>\n  store %r, %w\n  return\n}}",
            pointers("p", "%x", "i32", &[8]),
            pointers("q", "%i", index, &[16]),
            pointers("r", "%o", "i32", &[16]),
        );
        let func = kernel(&text);
        let mut x: Vec<i32> = (100..108).collect();
        let mut at = vec![0x8000_0000_ffff_ff85u64 as i64; 16];
        at[3] = i64::MAX;
        let mut out = vec![0i32; 16];
        ok(&func, [1, 1, 1], &[tensor(&mut x), tensor(&mut at), tensor(&mut out)]);
        assert!(out.iter().all(|v| x.contains(v)), "{out:?}");
    }
}

/// A gathered pointer still knows its tensor, so that faults name it.
#[test]
fn gathered_pointers_are_checked() {
    let text = format!(
        "tile @k(%x x: *i32, %o out: *i32) {{\n{}{}  %i = arange start=0 end=4 : <4xi32>\n  %pf = flip %p axis=0 : <8x*i32>\n  %g = gather_pointers : i32\n  return\n}}",
        pointers("p", "%x", "i32", &[8]),
        pointers("q", "%o", "i32", &[4]),
    );
    let text = text.replace(
        "%g = gather_pointers : i32",
        "%g = gather %pf, %i axis=0 : <4x*i32>\n  %v = load %g : <4xi32>\n  store %q, %v",
    );
    let func = kernel(&text);
    let (mut x, mut out): (Vec<i32>, _) = ((0..8).collect(), vec![0i32; 4]);
    ok(&func, [1, 1, 1], &[tensor(&mut x), tensor(&mut out)]);
    assert_eq!(out, [7, 6, 5, 4]);
    let mut x: Vec<i32> = (0..6).collect();
    let fault = run(&func, [1, 1, 1], &[tensor(&mut x), tensor(&mut out)], &PLAIN);
    assert!(said(&fault.unwrap_err()).contains("outside the memory of `x`: element 7"));
}

#[test]
fn histograms_drop_what_is_no_bin() {
    for &elem in Scalar::ALL.iter().filter(|s| s.is_int()) {
        for n in [1usize, 64, 4096] {
            let mut input = bytes(elem, n);
            if elem.is_bool() {
                input.iter_mut().for_each(|b| *b &= 1);
            }
            let values = images(&input, elem);
            for masked in [false, true] {
                let bins = 8usize;
                let (mask, rest) = if masked {
                    let mask = format!(
                        "  %mc = const value=1:i32 : i32\n  %ms = splat %mc shape=({n},) : <{n}xi32>\n  %mb = binary.and %pa, %ms : <{n}xi32>\n  %m = cast %mb to=i1 : <{n}xi1>\n"
                    );
                    (mask, " mask=%m")
                } else {
                    (String::new(), "")
                };
                let text = unary(
                    elem.name(),
                    &[n],
                    &format!("%w = histogram %v{rest} bins={bins}"),
                    "i32",
                    &[bins],
                );
                let text = text.replace("  %w = histogram", &format!("{mask}  %w = histogram"));
                let out = run_bytes(&text, &mut input, bins * 4);
                let mut want = vec![0u64; bins];
                for (i, &x) in values.iter().enumerate() {
                    let negative = elem.is_signed() && x >> (elem.bits() - 1) != 0;
                    if !negative && x < bins as u64 && (!masked || i % 2 == 1) {
                        want[x as usize] += 1;
                    }
                }
                assert_eq!(images(&out, Scalar::I32), want, "{elem} {n} {masked}");
            }
        }
    }
}

#[test]
fn maps_elements_with_and_without_packs() {
    // Lanewise, by branches of lanes, and with a loop; to another type.
    let bodies = [
        ("%c = binary.add %a, %a : i32\n    yield values=[%c]", "i32"),
        (
            "%z = const value=0:i32 : i32\n    %n = compare.lt %a, %z : i1\n    %c = if %n {\n yield values=[%z]\n } {\n %d = binary.mul %a, %a : i32\n yield values=[%d]\n } : i32\n    %e = cast %c to=i64 : i64\n    yield values=[%e]",
            "i64",
        ),
        (
            "%z = const value=0:i32 : i32\n    %one = const value=1:i32 : i32\n    %m = const value=7:i32 : i32\n    %u = binary.and %a, %m : i32\n    %c = for %z, %u, %one inits=[%z] {\n ^(%i: i32, %s: i32):\n %t = binary.add %s, %i : i32\n yield values=[%t]\n } : i32\n    %e = cast %c to=i64 : i64\n    yield values=[%e]",
            "i64",
        ),
    ];
    let oracles: [fn(i32) -> i64; 3] = [
        |a| i64::from(a.wrapping_add(a)),
        |a| if a < 0 { 0 } else { i64::from(a.wrapping_mul(a)) },
        |a| (0..i64::from(a & 7)).sum(),
    ];
    for dims in [&[1][..], &[64], &[4, 16], &[2, 2, 8]] {
        let n: usize = dims.iter().product();
        let mut x: Vec<i32> =
            (0..n as i32).map(|i| i.wrapping_mul(0x9e37_79b1u32 as i32) >> 20).collect();
        for ((body, out), oracle) in bodies.iter().zip(oracles) {
            let text = unary(
                "i32",
                dims,
                &format!("%w = map inputs=[%v] pack=1 {{\n    ^(%a: i32):\n    {body}\n  }}"),
                out,
                dims,
            );
            let func = kernel(&text);
            let (mut narrow, mut wide) = (vec![0i32; n], vec![0i64; n]);
            let arg = if *out == "i32" { tensor(&mut narrow) } else { tensor(&mut wide) };
            ok(&func, [1, 1, 1], &[tensor(&mut x), arg]);
            let want: Vec<i64> = x.iter().map(|&a| oracle(a)).collect();
            let have =
                if *out == "i32" { narrow.iter().map(|&x| i64::from(x)).collect() } else { wide };
            assert_eq!(have, want, "{dims:?} {body}");
        }
        // Packs of two: sum and difference change places in the second result; then the same by loops.
        if n < 2 {
            continue;
        }
        let idle = "%z = const value=0:i32 : i32\n    %one = const value=1:i32 : i32\n    %l = for %z, %one, %one inits=[%a] {\n ^(%i: i32, %keep: i32):\n yield values=[%keep]\n } : i32\n    ";
        for (first, left) in [("", "%a"), (idle, "%l")] {
            let text = unary(
                "i32",
                dims,
                &format!(
                    "%w, %y = map inputs=[%v, %v] pack=2 {{\n    ^(%a: i32, %b: i32, %c: i32, %d: i32):\n    {first}%s = binary.add {left}, %d : i32\n    %t = binary.sub %b, %c : i32\n    yield values=[%s, %t, %t, %s]\n  }} : {}, {}",
                    ty("i32", dims),
                    ty("i32", dims)
                ),
                "i32",
                dims,
            );
            for second in [false, true] {
                let text = if second {
                    text.replace("store %q, %w", "store %q, %y")
                } else {
                    text.clone()
                };
                let func = kernel(&text);
                let mut out = vec![0i32; n];
                ok(&func, [1, 1, 1], &[tensor(&mut x), tensor(&mut out)]);
                let want: Vec<i32> = x
                    .chunks(2)
                    .flat_map(|p| {
                        let (s, t) = (p[0].wrapping_add(p[1]), p[1].wrapping_sub(p[0]));
                        if second { [t, s] } else { [s, t] }
                    })
                    .collect();
                assert_eq!(out, want, "{dims:?}");
            }
        }
    }
}

/// A scalar taken out of a tile in any form is the same in every lane of a splat, and counts a loop.
#[test]
fn scalars_out_of_tiles() {
    let sources = [
        ("%l = load %xp : <2xi32>", 7, 9),
        ("%l = arange start=3 end=5 : <2xi32>", 3, 4),
        ("%b = compare.gt %r, %zeros : <2xi1>\n  %l = cast %b to=i32 : <2xi32>", 0, 1),
    ];
    for (source, first, second) in sources {
        let func = kernel(&format!(
            "tile @k(%x x: *i32, %o out: *i32) {{
  %z = const value=0:i32 : i32
  %one = const value=1:i32 : i32
  %zeros = splat %z shape=(2,) : <2xi32>
  %r = arange start=0 end=2 : <2xi32>
  %xs = splat %x shape=(2,) : <2x*i32>
  %xp = ptr_add %xs, %r : <2x*i32>
  {source}
  %a, %b2 = split %l : i32, i32
  %m = binary.add %l, %zeros : <2xi32>
  %sum = reduce inputs=[%m] axis=0 {{
  ^(%p: i32, %q: i32):
    %s = binary.add %p, %q : i32
    yield values=[%s]
  }} : i32
  %as = splat %a shape=(1,) : <1xi32>
  %ar = reshape %as shape=() : i32
  %n = for %z, %ar, %one inits=[%z] {{
  ^(%i: i32, %c: i32):
    %d = binary.add %c, %one : i32
    yield values=[%d]
  }} : i32
  %big = splat %a shape=(1024,) : <1024xi32>
  %big2 = splat %b2 shape=(1024,) : <1024xi32>
  %shown = splat %n shape=(1024,) : <1024xi32>
  %i1 = binary.add %big, %big2 : <1024xi32>
  %i2 = binary.add %i1, %shown : <1024xi32>
  %k = arange start=0 end=1024 : <1024xi32>
  %os = splat %o shape=(1024,) : <1024x*i32>
  %op = ptr_add %os, %k : <1024x*i32>
  store %op, %i2
  return
}}"
        ));
        let (mut x, mut out) = (vec![7i32, 9], vec![-1i32; 1024]);
        ok(&func, [1, 1, 1], &[tensor(&mut x), tensor(&mut out)]);
        assert_eq!(out, vec![2 * first + second; 1024], "{source}");
    }
    // One lane of a range, and of a mask, as a scalar.
    let func = kernel(
        "tile @k(%o out: *i32) {
  %z = const value=0:i32 : i32
  %one = const value=1:i32 : i32
  %r = arange start=5 end=6 : <1xi32>
  %n = reshape %r shape=() : i32
  %rs = arange start=0 end=4 : <4xi32>
  %three = const value=3:i32 : i32
  %ts = splat %three shape=(4,) : <4xi32>
  %m = compare.lt %rs, %ts : <4xi1>
  %pairs = reshape %m shape=(2,2) : <2x2xi1>
  %ma, %mb = split %pairs : <2xi1>, <2xi1>
  %c, %d = split %mb : i1, i1
  %sum = for %z, %n, %one inits=[%z] {
  ^(%i: i32, %acc: i32):
    %t = if %d {
      yield values=[%z]
    } {
      yield values=[%one]
    } : i32
    %next = binary.add %acc, %t : i32
    yield values=[%next]
  } : i32
  store %o, %sum
  return
}",
    );
    let mut out = vec![-1i32];
    ok(&func, [1, 1, 1], &[tensor(&mut out)]);
    assert_eq!(out, [5]);
}
