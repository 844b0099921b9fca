//! Loads and stores: masks, strides, bounds, and what is said of faults.

mod common;
use common::*;
use naiad_interp::{Arg, LaunchOptions, PolicyKind, TensorArg, View};
use smallvec::smallvec;

const ADD: &str = "tile @add(%x x: *fp32, %y y: *fp32, %o out: *fp32, %n n: i32) {
  %pid = program_id axis=0 : i32
  %b = const value=128:i32 : i32
  %s = binary.mul %pid, %b : i32
  %r = arange start=0 end=128 : <128xi32>
  %st = splat %s shape=(128,) : <128xi32>
  %offs = binary.add %st, %r : <128xi32>
  %nt = splat %n shape=(128,) : <128xi32>
  %m = compare.lt %offs, %nt : <128xi1>
  %xs = splat %x shape=(128,) : <128x*fp32>
  %xp = ptr_add %xs, %offs : <128x*fp32>
  %xv = load %xp mask=%m : <128xfp32>
  %ys = splat %y shape=(128,) : <128x*fp32>
  %yp = ptr_add %ys, %offs : <128x*fp32>
  %yv = load %yp mask=%m : <128xfp32>
  %v = binary.add %xv, %yv : <128xfp32>
  %os = splat %o shape=(128,) : <128x*fp32>
  %op = ptr_add %os, %offs : <128x*fp32>
  store %op, %v mask=%m
  return
}";

#[test]
fn adds_with_a_mask() {
    let func = kernel(ADD);
    let n = 1000;
    let mut x: Vec<f32> = (0..n).map(|i| i as f32).collect();
    let mut y: Vec<f32> = (0..n).map(|i| 0.5 * i as f32).collect();
    let want: Vec<f32> = (0..n).map(|i| 1.5 * i as f32).collect();
    let mut out = vec![-1f32; n];
    let args = [tensor(&mut x), tensor(&mut y), tensor(&mut out), int(n as i64)];
    ok(&func, [8, 1, 1], &args);
    assert_eq!(out, want);
}

#[test]
fn names_the_lane_out_of_bounds() {
    let func = kernel(ADD);
    let n = 1000;
    let (mut x, mut y, mut out) = (vec![0f32; n], vec![0f32; n], vec![0f32; n]);
    let args = [tensor(&mut x), tensor(&mut y), tensor(&mut out), int(1010)];
    for naive in [false, true] {
        for threads in [1, 2] {
            let fault = run(&func, [8, 1, 1], &args, &LaunchOptions { naive, threads, ..PLAIN })
                .unwrap_err();
            assert_eq!(
                said(&fault),
                "error[out-of-bounds]: kernel `add` reads outside the memory of `x`: element 1000\n\
                 note: lane 104 of program (7, 0, 0)\n\
                 note: `x` has shape (1000,) of fp32; its memory holds elements 0 to 999\n\
                 help: the mask is true in this lane; compare each index with the extent of its own axis"
            );
        }
    }
}

#[test]
fn an_empty_grid_runs_nothing() {
    let func = kernel(ADD);
    let args = [int(0), int(0), int(0), int(0)];
    ok(&func, [0, 5, 5], &args);
    ok(&func, [5, 5, 0], &args);
}

/// Copies a 16 by 16 tile; strides of either side are arguments.
const COPY2: &str = "tile @copy2(%x x: *i32, %o out: *i32, %sx sx: i32, %so so: i32, %tx tx: i32, %to to: i32, %rows rows: i32, %cols cols: i32) {
  %r = arange start=0 end=16 : <16xi32>
  %ri = expand_dims %r axis=1 : <16x1xi32>
  %ci = expand_dims %r axis=0 : <1x16xi32>
  %rt = splat %rows shape=(16,1) : <16x1xi32>
  %ct = splat %cols shape=(1,16) : <1x16xi32>
  %rm = compare.lt %ri, %rt : <16x1xi1>
  %cm = compare.lt %ci, %ct : <1x16xi1>
  %rmb = broadcast %rm shape=(16,16) : <16x16xi1>
  %cmb = broadcast %cm shape=(16,16) : <16x16xi1>
  %m = binary.and %rmb, %cmb : <16x16xi1>
  %rb = broadcast %ri shape=(16,16) : <16x16xi32>
  %cb = broadcast %ci shape=(16,16) : <16x16xi32>
  %sxt = splat %sx shape=(16,16) : <16x16xi32>
  %txt = splat %tx shape=(16,16) : <16x16xi32>
  %sot = splat %so shape=(16,16) : <16x16xi32>
  %tot = splat %to shape=(16,16) : <16x16xi32>
  %a1 = binary.mul %rb, %sxt : <16x16xi32>
  %a2 = binary.mul %cb, %txt : <16x16xi32>
  %a = binary.add %a1, %a2 : <16x16xi32>
  %b1 = binary.mul %rb, %sot : <16x16xi32>
  %b2 = binary.mul %cb, %tot : <16x16xi32>
  %b = binary.add %b1, %b2 : <16x16xi32>
  %xs = splat %x shape=(16,16) : <16x16x*i32>
  %xp = ptr_add %xs, %a : <16x16x*i32>
  %minus = const value=-7:i32 : i32
  %other = splat %minus shape=(16,16) : <16x16xi32>
  %v = load %xp mask=%m other=%other : <16x16xi32>
  %os = splat %o shape=(16,16) : <16x16x*i32>
  %op = ptr_add %os, %b : <16x16x*i32>
  store %op, %v
  return
}";

#[test]
fn copies_with_any_strides() {
    let func = kernel(COPY2);
    let mut x: Vec<i32> = (0..1024).collect();
    for (sx, tx, so, to) in [
        (16, 1, 16, 1),
        (1, 16, 16, 1),
        (16, 1, 1, 16),
        (32, 2, 16, 1),
        (-16, 1, 16, 1),
        (-16, -2, 1, 16),
        (0, 1, 16, 1),
        (5, 0, 16, 1),
        (0, 0, 16, 1),
    ] {
        for (rows, cols) in [(16, 16), (3, 5), (0, 9), (16, 7), (1, 1), (40, 40), (-2, 4)] {
            let mut want = vec![-7i32; 256];
            let base = 512i32;
            for r in 0..16 {
                for c in 0..16 {
                    let v = if r < rows && c < cols { base + r * sx + c * tx } else { -7 };
                    want[(r * so + c * to) as usize] = v;
                }
            }
            for naive in [false, true] {
                let mut out = vec![0i32; 256];
                let Arg::Tensor(mut t) = tensor(&mut x) else { panic!() };
                t.address += 4 * base as usize;
                let args = [
                    Arg::Tensor(t),
                    tensor(&mut out),
                    int(sx.into()),
                    int(so.into()),
                    int(tx.into()),
                    int(to.into()),
                    int(rows.into()),
                    int(cols.into()),
                ];
                run(&func, [1, 1, 1], &args, &LaunchOptions { naive, ..PLAIN }).unwrap();
                assert_eq!(out, want, "{sx} {tx} {so} {to} {rows} {cols} {naive}");
            }
        }
    }
}

#[test]
fn names_the_lane_of_two_axes() {
    let func = kernel(COPY2);
    let mut x = vec![0i32; 100];
    let mut out = vec![0i32; 256];
    let args =
        [tensor(&mut x), tensor(&mut out), int(-16), int(16), int(1), int(1), int(16), int(16)];
    let fault = run(&func, [1, 1, 1], &args, &PLAIN).unwrap_err();
    assert_eq!(
        said(&fault),
        "error[out-of-bounds]: kernel `copy2` reads outside the memory of `x`: element -16\n\
         note: lane (1, 0) of program (0, 0, 0)\n\
         note: `x` has shape (100,) of i32; its memory holds elements 0 to 99\n\
         help: the mask is true in this lane; compare each index with the extent of its own axis"
    );
}

/// A view of `rows x cols` in rows of `pitch` elements.
fn padded(data: &mut [i32], rows: usize, cols: usize, pitch: isize, first: usize) -> Arg {
    let Arg::Tensor(t) = tensor(data) else { panic!() };
    let view = View {
        elem: naiad_ir::Scalar::I32,
        shape: smallvec![rows, cols],
        strides: smallvec![pitch, 1],
    };
    Arg::Tensor(TensorArg { address: t.address + 4 * first, view: Some(view), ..t })
}

#[test]
fn the_checked_policy_knows_views() {
    let func = kernel(COPY2);
    let checked = LaunchOptions { policy: PolicyKind::Checked, ..PLAIN };
    let mut x: Vec<i32> = (0..1024).collect();
    let mut out = vec![0i32; 1024];
    let whole = |cols: i64, x: &mut [i32], out: &mut [i32]| {
        [
            padded(x, 16, 10, 20, 40),
            padded(out, 16, 16, 17, 3),
            int(20),
            int(17),
            int(1),
            int(1),
            int(16),
            int(cols),
        ]
    };
    // Inside its view.
    let args = whole(10, &mut x, &mut out);
    assert!(run(&func, [1, 1, 1], &args, &checked).unwrap().findings.is_empty());
    // A load from the padding is a finding, and goes on.
    let args = whole(11, &mut x, &mut out);
    let report = run(&func, [1, 1, 1], &args, &checked).unwrap();
    assert_eq!(
        report.findings.iter().map(said).collect::<Vec<_>>(),
        [
            "error[outside-view]: kernel `copy2` reads outside the view of `x`, though inside its memory: element 10\n\
          note: lane (0, 10) of program (0, 0, 0)\n\
          note: `x` has shape (16, 10) of i32; its memory holds elements -40 to 983\n\
          note: what was read is stored here\n\
          help: the mask is true in this lane; compare each index with the extent of its own axis"
        ]
    );
    assert_eq!(out[3 + 10], 50);
    assert!(run(&func, [1, 1, 1], &args, &PLAIN).unwrap().findings.is_empty());
    // A store to the padding is an error.
    let args = [
        padded(&mut x, 16, 16, 20, 40),
        padded(&mut out, 16, 10, 17, 3),
        int(20),
        int(17),
        int(1),
        int(1),
        int(16),
        int(16),
    ];
    let fault = run(&func, [1, 1, 1], &args, &checked).unwrap_err();
    assert_eq!(
        fault.message,
        "kernel `copy2` writes outside the view of `out`, though inside its memory: element 10"
    );
    // A view that runs backwards.
    let args = [
        padded(&mut x, 16, 16, -20, 400),
        padded(&mut out, 16, 16, 17, 3),
        int(-20),
        int(17),
        int(1),
        int(1),
        int(16),
        int(16),
    ];
    assert!(run(&func, [1, 1, 1], &args, &checked).unwrap().findings.is_empty());
    assert_eq!(out[3 + 17], 380);
}

#[test]
fn a_pointer_of_no_known_origin_may_be_in_any_view_of_the_storage() {
    let func = kernel(
        "tile @both(%a a: *i32, %b b: *i32, %o out: *i64) {
  %i = bitcast %b to=i64 : i64
  %z = const value=0:i64 : i64
  %j = binary.add %i, %z : i64
  %p = bitcast %j to=*i32 : *i32
  %v = load %p : i32
  store %p, %v
  return
}",
    );
    let checked = LaunchOptions { policy: PolicyKind::Checked, ..PLAIN };
    let (mut x, mut out) = (vec![7i32; 8], vec![0i64]);
    let start = x.as_mut_ptr() as usize;
    let part = |first: usize| {
        let view = View { elem: naiad_ir::Scalar::I32, shape: smallvec![2], strides: smallvec![1] };
        Arg::Tensor(TensorArg {
            address: start + 4 * first,
            storage: start..start + 32,
            view: Some(view),
            writable: true,
        })
    };
    let args = [part(0), part(4), tensor(&mut out)];
    assert!(run(&func, [1, 1, 1], &args, &checked).unwrap().findings.is_empty());
    let fault =
        run(&func, [1, 1, 1], &[part(0), int(start as i64 + 12), args[2].clone()], &checked);
    assert_eq!(fault.unwrap_err().id, naiad_diag::Id::OutsideView);
}

#[test]
fn read_only_memory_is_not_written() {
    let func = kernel(ADD);
    let (mut x, mut y, mut out) = (vec![0f32; 128], vec![0f32; 128], vec![5f32; 128]);
    let Arg::Tensor(o) = tensor(&mut out) else { panic!() };
    let args =
        [tensor(&mut x), tensor(&mut y), Arg::Tensor(TensorArg { writable: false, ..o }), int(128)];
    let fault = run(&func, [1, 1, 1], &args, &PLAIN).unwrap_err();
    assert_eq!(fault.message, "kernel `add` writes `out`, which is read-only");
    assert!(out.iter().all(|&v| v == 5.0));
}

/// Adds one through pointers that were integers.
const GROUPED: &str = "tile @grouped(%t table: *i64, %n n: i32) {
  %pid = program_id axis=0 : i32
  %tp = ptr_add %t, %pid : *i64
  %a = load %tp : i64
  %p = bitcast %a to=*fp32 : *fp32
  %r = arange start=0 end=16 : <16xi32>
  %ps = splat %p shape=(16,) : <16x*fp32>
  %pp = ptr_add %ps, %r : <16x*fp32>
  %nt = splat %n shape=(16,) : <16xi32>
  %m = compare.lt %r, %nt : <16xi1>
  %v = load %pp mask=%m : <16xfp32>
  %one = const value=1.0:fp32 : fp32
  %ones = splat %one shape=(16,) : <16xfp32>
  %w = binary.add %v, %ones : <16xfp32>
  store %pp, %w mask=%m
  return
}";

#[test]
fn integers_become_pointers_into_arguments_only() {
    let text = GROUPED.replace("%n n: i32)", "%n n: i32, %x x: *fp32, %y y: *fp32)");
    let func = kernel(&text);
    let (mut x, mut y) = (vec![1f32; 12], vec![2f32; 12]);
    let mut table = vec![x.as_ptr() as i64, y.as_ptr() as i64];
    let args = [tensor(&mut table), int(12), tensor(&mut x), tensor(&mut y)];
    run(&func, [2, 1, 1], &args, &PLAIN).unwrap();
    assert_eq!((x[11], y[11]), (2.0, 3.0));
    // The same without `x` and `y`, and with addresses out of thin air.
    let func = kernel(GROUPED);
    for address in [x.as_ptr() as i64, 0, -1, 1, i64::MAX, i64::MIN, 0x1234_5678] {
        let mut table = vec![address];
        let args = [tensor(&mut table), int(12)];
        for naive in [false, true] {
            let fault =
                run(&func, [1, 1, 1], &args, &LaunchOptions { naive, ..PLAIN }).unwrap_err();
            assert_eq!(
                fault.message,
                format!(
                    "kernel `grouped` reads address {address:#x}, which is in no argument's memory"
                )
            );
        }
    }
    assert_eq!((x[11], y[11]), (2.0, 3.0));
}

#[test]
fn pointers_are_chosen_lane_by_lane() {
    let func = kernel(
        "tile @pick(%x x: *i32, %y y: *i32, %o out: *i32) {
  %r = arange start=0 end=8 : <8xi32>
  %one = const value=1:i32 : i32
  %ones = splat %one shape=(8,) : <8xi32>
  %zero = const value=0:i32 : i32
  %zeros = splat %zero shape=(8,) : <8xi32>
  %bit = binary.and %r, %ones : <8xi32>
  %odd = compare.ne %bit, %zeros : <8xi1>
  %xs = splat %x shape=(8,) : <8x*i32>
  %ys = splat %y shape=(8,) : <8x*i32>
  %xp = ptr_add %xs, %r : <8x*i32>
  %yp = ptr_add %ys, %r : <8x*i32>
  %p = select %odd, %xp, %yp : <8x*i32>
  %v = load %p : <8xi32>
  %os = splat %o shape=(8,) : <8x*i32>
  %op = ptr_add %os, %r : <8x*i32>
  store %op, %v
  return
}",
    );
    let mut x: Vec<i32> = (0..8).collect();
    let mut y: Vec<i32> = (100..108).collect();
    let mut out = vec![0; 8];
    let args = [tensor(&mut x), tensor(&mut y), tensor(&mut out)];
    ok(&func, [1, 1, 1], &args);
    assert_eq!(out, [100, 1, 102, 3, 104, 5, 106, 7]);
}

#[test]
fn offsets_wrap_in_their_own_type() {
    // 2^31 - 4 + arange wraps to the least number at lane 4.
    let func = kernel(
        "tile @wrap(%o out: *i32, %big big: i32) {
  %r = arange start=0 end=8 : <8xi32>
  %bs = splat %big shape=(8,) : <8xi32>
  %a = binary.add %r, %bs : <8xi32>
  %z = const value=0:i32 : i32
  %zs = splat %z shape=(8,) : <8xi32>
  %neg = compare.lt %a, %zs : <8xi1>
  %n = cast %neg to=i32 : <8xi32>
  %b = binary.add %a, %n : <8xi32>
  %os = splat %o shape=(8,) : <8x*i32>
  %op = ptr_add %os, %r : <8x*i32>
  store %op, %b
  return
}",
    );
    let mut out = vec![0; 8];
    let big = i32::MAX - 3;
    let args = [tensor(&mut out), int(i64::from(big as u32))];
    ok(&func, [1, 1, 1], &args);
    let want: Vec<i32> =
        (0..8).map(|i| big.wrapping_add(i)).map(|a| a.wrapping_add(i32::from(a < 0))).collect();
    assert_eq!(out, want);
}

#[test]
fn booleans_are_bytes() {
    let func = kernel(
        "tile @flip(%x x: *i1, %o out: *i1) {
  %r = arange start=0 end=8 : <8xi32>
  %xs = splat %x shape=(8,) : <8x*i1>
  %xp = ptr_add %xs, %r : <8x*i1>
  %v = load %xp : <8xi1>
  %w = unary.not %v : <8xi1>
  %os = splat %o shape=(8,) : <8x*i1>
  %op = ptr_add %os, %r : <8x*i1>
  store %op, %w
  return
}",
    );
    let mut x: Vec<u8> = vec![0, 1, 2, 255, 0, 128, 0, 7];
    let mut out = vec![9u8; 8];
    ok(&func, [1, 1, 1], &[tensor(&mut x), tensor(&mut out)]);
    assert_eq!(out, [1, 0, 0, 0, 1, 0, 1, 0]);
}
