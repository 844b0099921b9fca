//! Reductions, scans, products and casts against straightforward Rust.

mod common;
use common::*;
use naiad_ir::Scalar;
use naiad_ir::scalar::{Rounding, cast_bits};
use std::fmt::Write;

/// Loads `x` (and `y`) of these extents, applies `body`, which makes `%r` (and `%s`), and stores them.
fn whole_tiles(
    dims: &[usize],
    elems: [&str; 2],
    body: &str,
    out_dims: &[usize],
    outs: [&str; 2],
) -> String {
    let shape = |dims: &[usize]| {
        format!("({})", dims.iter().map(usize::to_string).collect::<Vec<_>>().join(","))
    };
    let ty = |dims: &[usize], elem: &str| {
        if dims.is_empty() {
            elem.to_string()
        } else {
            format!("<{}{elem}>", dims.iter().map(|d| format!("{d}x")).collect::<String>())
        }
    };
    let mut text = String::new();
    let mut pointers = |name: &str, base: &str, dims: &[usize], elem: &str| {
        if dims.is_empty() {
            return base.to_string();
        }
        let n: usize = dims.iter().product();
        let _ = writeln!(text, "  %{name}0 = arange start=0 end={n} : <{n}xi32>");
        let _ = writeln!(
            text,
            "  %{name}1 = reshape %{name}0 shape={} : {}",
            shape(dims),
            ty(dims, "i32")
        );
        let _ = writeln!(
            text,
            "  %{name}2 = splat {base} shape={} : {}",
            shape(dims),
            ty(dims, &format!("*{elem}"))
        );
        let _ = writeln!(
            text,
            "  %{name}3 = ptr_add %{name}2, %{name}1 : {}",
            ty(dims, &format!("*{elem}"))
        );
        format!("%{name}3")
    };
    let (px, py) = (pointers("px", "%xp", dims, elems[0]), pointers("py", "%yp", dims, elems[1]));
    let (pr, ps) =
        (pointers("pr", "%rp", out_dims, outs[0]), pointers("ps", "%sp", out_dims, outs[1]));
    format!(
        "tile @k(%xp x: *{}, %yp y: *{}, %rp r: *{}, %sp s: *{}) {{\n{text}  %x = load {px} : {}\n  %y = load {py} : {}\n{body}\n  store {pr}, %r\n  store {ps}, %s\n  return\n}}",
        elems[0],
        elems[1],
        outs[0],
        outs[1],
        ty(dims, elems[0]),
        ty(dims, elems[1])
    )
}

fn numbers(n: usize) -> Vec<f32> {
    (0..n).map(|i| ((i * 7919 + 13) % 1009) as f32 / 64.0 - 8.0).collect()
}

#[test]
fn reductions_by_one_function() {
    let dims = [4usize, 8, 16];
    let n = 512;
    let mut x = numbers(n);
    let mut y: Vec<i32> = (0..n as i32).map(|i| (i * 7919) % 1009 - 500).collect();
    for axis in 0..3 {
        let mut to = dims.to_vec();
        to.remove(axis);
        let t = to.iter().map(|d| format!("{d}x")).collect::<String>();
        let body = format!(
            "  %r = reduce inputs=[%x] axis={axis} {{\n ^(%a: fp32, %b: fp32):\n %c = binary.add %a, %b : fp32\n yield values=[%c]\n }} : <{t}fp32>
  %s = reduce inputs=[%y] axis={axis} {{\n ^(%d: i32, %e: i32):\n %f = binary.max %e, %d : i32\n yield values=[%f]\n }} : <{t}i32>"
        );
        let func = kernel(&whole_tiles(&dims, ["fp32", "i32"], &body, &to, ["fp32", "i32"]));
        let (mut r, mut s) = (vec![0f32; n / dims[axis]], vec![0i32; n / dims[axis]]);
        ok(&func, [1, 1, 1], &[tensor(&mut x), tensor(&mut y), tensor(&mut r), tensor(&mut s)]);
        let inner: usize = dims[axis + 1..].iter().product();
        for (i, (&r, &s)) in r.iter().zip(&s).enumerate() {
            let at = |k: usize| i / inner * inner * dims[axis] + k * inner + i % inner;
            let sum: f64 = (0..dims[axis]).map(|k| f64::from(x[at(k)])).sum();
            let max = (0..dims[axis]).map(|k| y[at(k)]).max().unwrap();
            assert!((f64::from(r) - sum).abs() < 1e-4 && s == max);
        }
    }
}

const ARGMAX: &str = "{\n ^(%a: fp32, %i: i32, %b: fp32, %j: i32):
 %gt = compare.gt %a, %b : i1
 %eq = compare.eq %a, %b : i1
 %lt = compare.lt %i, %j : i1
 %tie = binary.and %eq, %lt : i1
 %left = binary.or %gt, %tie : i1
 %v = select %left, %a, %b : fp32
 %k = select %left, %i, %j : i32
 yield values=[%v, %k]\n }";

#[test]
fn reductions_by_a_region() {
    let dims = [8usize, 64];
    let n = 512;
    let mut x: Vec<f32> = (0..n).map(|i| ((i * 37) % 41) as f32).collect();
    let mut y: Vec<i32> = (0..n).collect();
    for axis in 0..2 {
        let to = [dims[1 - axis]];
        let body = format!(
            "  %r, %s = reduce inputs=[%x, %y] axis={axis} {ARGMAX} : <{}xfp32>, <{}xi32>",
            to[0], to[0]
        );
        let func = kernel(&whole_tiles(&dims, ["fp32", "i32"], &body, &to, ["fp32", "i32"]));
        let (mut r, mut s) = (vec![0f32; to[0]], vec![0i32; to[0]]);
        ok(&func, [1, 1, 1], &[tensor(&mut x), tensor(&mut y), tensor(&mut r), tensor(&mut s)]);
        for i in 0..to[0] {
            let at = |k: usize| if axis == 1 { i * 64 + k } else { k * 64 + i };
            let best = (0..dims[axis]).map(at).fold(None, |best: Option<usize>, k| match best {
                Some(b) if x[b] >= x[k] => Some(b),
                _ => Some(k),
            });
            assert_eq!((r[i], s[i]), (x[best.unwrap()], best.unwrap() as i32));
        }
    }
    // To one scalar, and with a loop in the region.
    let body = format!(
        "  %x0 = reshape %x shape=(512,) : <512xfp32>\n  %y0 = reshape %y shape=(512,) : <512xi32>
  %r, %s0 = reduce inputs=[%x0, %y0] axis=0 {ARGMAX} : fp32, i32
  %s = reduce inputs=[%y0] axis=0 {{\n ^(%a9: i32, %b9: i32):
 %z = const value=0:i32 : i32\n %o = const value=1:i32 : i32\n %two = const value=2:i32 : i32
 %c9 = for %z, %two, %o inits=[%b9] {{\n ^(%q: i32, %w: i32):\n %u = binary.add %w, %q : i32\n yield values=[%u]\n }} : i32
 %d9 = binary.max %a9, %c9 : i32\n yield values=[%d9]\n }} : i32"
    );
    let func = kernel(&whole_tiles(&dims, ["fp32", "i32"], &body, &[], ["fp32", "i32"]));
    let (mut r, mut s) = (vec![0f32], vec![0i32]);
    ok(&func, [1, 1, 1], &[tensor(&mut x), tensor(&mut y), tensor(&mut r), tensor(&mut s)]);
    assert_eq!((r[0], s[0]), (40.0, 512));
}

#[test]
fn scans_in_both_directions() {
    let dims = [4usize, 8, 4];
    let n = 128;
    let mut x: Vec<f32> = (0..n).map(|i| ((i * 29) % 17) as f32).collect();
    let mut y: Vec<i32> = (0..n as i32).map(|i| (i * 31) % 19).collect();
    for axis in 0..3 {
        for reverse in [false, true] {
            let rev = if reverse { " reverse=true" } else { "" };
            // A running sum; and pairs (multiplier, addend) of x -> a x + b, which do not commute.
            let body = format!(
                "  %r = scan inputs=[%x] axis={axis}{rev} {{\n ^(%a: fp32, %b: fp32):\n %c = binary.add %a, %b : fp32\n yield values=[%c]\n }} : <4x8x4xfp32>
  %three = const value=3:i32 : i32
  %m = splat %three shape=(4,8,4) : <4x8x4xi32>
  %s0, %s = scan inputs=[%m, %y] axis={axis}{rev} {{\n ^(%p: i32, %q: i32, %u: i32, %v: i32):
 %pu = binary.mul %p, %u : i32\n %qu = binary.mul %q, %u : i32\n %w = binary.add %qu, %v : i32\n yield values=[%pu, %w]\n }} : <4x8x4xi32>, <4x8x4xi32>"
            );
            let func = kernel(&whole_tiles(&dims, ["fp32", "i32"], &body, &dims, ["fp32", "i32"]));
            let (mut r, mut s) = (vec![0f32; n], vec![0i32; n]);
            ok(&func, [1, 1, 1], &[tensor(&mut x), tensor(&mut y), tensor(&mut r), tensor(&mut s)]);
            let inner: usize = dims[axis + 1..].iter().product();
            for row in 0..n / dims[axis] {
                let (mut sum, mut affine) = (0f32, 0i32);
                for k in 0..dims[axis] {
                    let k = if reverse { dims[axis] - 1 - k } else { k };
                    let at = row / inner * inner * dims[axis] + k * inner + row % inner;
                    sum += x[at];
                    affine = affine.wrapping_mul(3).wrapping_add(y[at]);
                    assert_eq!((r[at], s[at]), (sum, affine), "axis {axis} {reverse}");
                }
            }
        }
    }
}

#[test]
fn a_scan_may_exchange_its_values() {
    // (a, b) with (c, d) gives (d, c): the values of the last change places at each step.
    let body = "  %z = cast %x to=i32 : <8xi32>
  %r0, %s = scan inputs=[%z, %y] axis=0 {\n ^(%a: i32, %b: i32, %c: i32, %d: i32):\n yield values=[%d, %c]\n } : <8xi32>, <8xi32>
  %r = cast %r0 to=fp32 : <8xfp32>";
    let func = kernel(&whole_tiles(&[8], ["fp32", "i32"], body, &[8], ["fp32", "i32"]));
    let mut x: Vec<f32> = (0..8).map(|i| i as f32).collect();
    let mut y: Vec<i32> = (100..108).collect();
    let (mut r, mut s) = (vec![0f32; 8], vec![0i32; 8]);
    ok(&func, [1, 1, 1], &[tensor(&mut x), tensor(&mut y), tensor(&mut r), tensor(&mut s)]);
    // Not associative, so the grouping shows; what must hold is that no half-written value is read.
    for i in 0..8 {
        let (a, b) = (r[i] as i32, s[i]);
        assert!(
            (a, b) == (i as i32, 100 + i as i32) || (a, b) == (100 + i as i32, i as i32),
            "{i}: {a} {b}"
        );
    }
}

#[test]
fn products_of_fp32_transposed_and_batched() {
    // x is read as it is and y as 2 batches of 16 x 8, transposed.
    let body = "  %xt = reshape %x shape=(2,8,16) : <2x8x16xfp32>
  %y0 = reshape %y shape=(2,8,16) : <2x8x16xfp32>
  %yt = permute %y0 order=(0,2,1) : <2x16x8xfp32>
  %r = dot %xt, %yt out=fp32 precision=ieee : <2x8x8xfp32>
  %s = dot %xt, %yt acc=%r out=fp32 precision=ieee : <2x8x8xfp32>";
    let func = kernel(&whole_tiles(&[256], ["fp32", "fp32"], body, &[2, 8, 8], ["fp32", "fp32"]));
    let (mut x, mut y) = (numbers(256), numbers(256));
    y.reverse();
    let (mut r, mut s) = (vec![0f32; 128], vec![0f32; 128]);
    ok(&func, [1, 1, 1], &[tensor(&mut x), tensor(&mut y), tensor(&mut r), tensor(&mut s)]);
    for b in 0..2 {
        for i in 0..8 {
            for j in 0..8 {
                let want: f64 = (0..16)
                    .map(|k| {
                        f64::from(x[b * 128 + i * 16 + k]) * f64::from(y[b * 128 + j * 16 + k])
                    })
                    .sum();
                let at = b * 64 + i * 8 + j;
                assert!(
                    (f64::from(r[at]) - want).abs() < 1e-3
                        && (f64::from(s[at]) - 2.0 * want).abs() < 2e-3
                );
            }
        }
    }
}

#[test]
fn products_of_other_types() {
    let body = "  %xt = reshape %x shape=(16,16) : <16x16xi8>
  %xu = permute %xt order=(1,0) : <16x16xi8>
  %r = dot %xt, %xu out=i32 : <16x16xi32>
  %y0 = reshape %y shape=(16,16) : <16x16xfp32>
  %h = cast %y0 to=fp16 : <16x16xfp16>
  %s0 = dot %h, %h out=fp16 : <16x16xfp16>
  %s = cast %s0 to=fp32 : <16x16xfp32>";
    let func = kernel(&whole_tiles(&[256], ["i8", "fp32"], body, &[16, 16], ["i32", "fp32"]));
    let mut x: Vec<i8> = (0..256).map(|i| (i * 37) as u8 as i8).collect();
    let mut y: Vec<f32> = (0..256).map(|i| (i % 13) as f32 - 6.0).collect();
    let (mut r, mut s) = (vec![0i32; 256], vec![0f32; 256]);
    ok(&func, [1, 1, 1], &[tensor(&mut x), tensor(&mut y), tensor(&mut r), tensor(&mut s)]);
    for i in 0..16 {
        for j in 0..16 {
            let want: i32 =
                (0..16).map(|k| i32::from(x[i * 16 + k]) * i32::from(x[j * 16 + k])).sum();
            assert_eq!(r[i * 16 + j], want);
            // Small integers: exact in fp32 and in fp16.
            let want: f32 = (0..16).map(|k| y[i * 16 + k] * y[k * 16 + j]).sum();
            assert_eq!(s[i * 16 + j], want);
        }
    }
}

#[test]
fn narrow_floats_round_once_per_op() {
    for (name, ty) in [
        ("fp16", Scalar::F16),
        ("bf16", Scalar::BF16),
        ("fp8e5", Scalar::F8E5),
        ("fp8e4nv", Scalar::F8E4NV),
    ] {
        let body = format!(
            "  %a = cast %x to={name} : <64x{name}>
  %b = cast %y to={name} : <64x{name}>
  %c = binary.mul %a, %b : <64x{name}>
  %d = binary.add %c, %b : <64x{name}>
  %r = cast %d to=fp32 : <64xfp32>
  %e = reduce inputs=[%d] axis=0 {{\n ^(%p: {name}, %q: {name}):\n %t = binary.max %p, %q : {name}\n yield values=[%t]\n }} : {name}
  %f = splat %e shape=(64,) : <64x{name}>
  %s = cast %f to=fp32 : <64xfp32>"
        );
        let func = kernel(&whole_tiles(&[64], ["fp32", "fp32"], &body, &[64], ["fp32", "fp32"]));
        let (mut x, mut y) = (numbers(64), numbers(64));
        y.reverse();
        let (mut r, mut s) = (vec![0f32; 64], vec![0f32; 64]);
        ok(&func, [1, 1, 1], &[tensor(&mut x), tensor(&mut y), tensor(&mut r), tensor(&mut s)]);
        let round = |v: f32| {
            let image = cast_bits(Scalar::F32, ty, Rounding::Nearest, v.to_bits().into());
            f32::from_bits(cast_bits(ty, Scalar::F32, Rounding::Nearest, image) as u32)
        };
        let want: Vec<f32> =
            x.iter().zip(&y).map(|(&x, &y)| round(round(round(x) * round(y)) + round(y))).collect();
        assert_eq!(r, want, "{name}");
        assert_eq!(s[0], want.iter().copied().fold(f32::MIN, f32::max));
    }
}

#[test]
fn long_tiles_go_by_chunks() {
    // More lanes than a chunk, with a transposed and a broadcast operand.
    let body = "  %xt = permute %x order=(1,0) : <64x64xfp32>
  %c0 = reduce inputs=[%x] axis=0 {\n ^(%a: fp32, %b: fp32):\n %c = binary.max %a, %b : fp32\n yield values=[%c]\n } : <64xfp32>
  %c1 = expand_dims %c0 axis=1 : <64x1xfp32>
  %c2 = broadcast %c1 shape=(64,64) : <64x64xfp32>
  %r = binary.sub %xt, %c2 : <64x64xfp32>
  %s = binary.add %r, %y : <64x64xfp32>";
    let func = kernel(&whole_tiles(&[64, 64], ["fp32", "fp32"], body, &[64, 64], ["fp32", "fp32"]));
    let (mut x, mut y) = (numbers(4096), numbers(4096));
    let (mut r, mut s) = (vec![0f32; 4096], vec![0f32; 4096]);
    ok(&func, [1, 1, 1], &[tensor(&mut x), tensor(&mut y), tensor(&mut r), tensor(&mut s)]);
    for i in 0..64 {
        let top = (0..64).map(|k| x[k * 64 + i]).fold(f32::MIN, f32::max);
        for j in 0..64 {
            assert_eq!(r[i * 64 + j], x[j * 64 + i] - top);
            assert_eq!(s[i * 64 + j], x[j * 64 + i] - top + y[i * 64 + j]);
        }
    }
}
