//! Inline assembly on tiles: packs, shapes and forms, and what is said where it cannot run.

mod common;
use common::*;
use naiad_diag::Id;
use naiad_interp::LaunchOptions;

/// Loads 64 of `elem` and a number, applies the assembly, and stores its two results.
fn text(asm: &str, constraints: &str, elem: &str, outs: [&str; 2], pack: usize) -> String {
    format!(
        "tile @asm(%x x: *{elem}, %y y: *{}, %z z: *{}, %n n: i32) {{
  %r = arange start=0 end=64 : <64xi32>
  %xs = splat %x shape=(64,) : <64x*{elem}>
  %xp = ptr_add %xs, %r : <64x*{elem}>
  %v0 = load %xp : <64x{elem}>
  %v = reshape %v0 shape=(4,16) : <4x16x{elem}>
  %i = reshape %r shape=(4,16) : <4x16xi32>
  %ns = splat %n shape=(4,16) : <4x16xi32>
  %a, %b = inline_asm args=[%v, %i, %ns] text={asm:?} constraints=\"{constraints}\" shape=(4,16) results=({},{}) is_pure=true pack={pack} : <4x16x{}>, <4x16x{}>
  %a0 = reshape %a shape=(64,) : <64x{}>
  %b0 = reshape %b shape=(64,) : <64x{}>
  %ys = splat %y shape=(64,) : <64x*{}>
  %yp = ptr_add %ys, %r : <64x*{}>
  store %yp, %a0
  %zs = splat %z shape=(64,) : <64x*{}>
  %zp = ptr_add %zs, %r : <64x*{}>
  store %zp, %b0
  return
}}",
        outs[0], outs[1], outs[0], outs[1], outs[0], outs[1], outs[0], outs[1], outs[0], outs[0],
        outs[1], outs[1]
    )
}

#[test]
fn one_element_at_a_time() {
    let asm = "{ .reg .b32 t; // twice\n add.s32 t, $2, $2; add.s32 $0, t, $4; mul.wide.s32 $1, $3, -3; }";
    let func = kernel(&text(asm, "=&r,=&l,r,r,r", "i32", ["i32", "i64"], 1));
    let mut x: Vec<i32> = (0..64).map(|i| i * 1000 - 7).collect();
    let (mut y, mut z) = (vec![0i32; 64], vec![0i64; 64]);
    let args = [tensor(&mut x), tensor(&mut y), tensor(&mut z), int(5)];
    ok(&func, [1, 1, 1], &args);
    assert_eq!(y, x.iter().map(|x| 2 * x + 5).collect::<Vec<_>>());
    assert_eq!(z, (0..64).map(|i| -3 * i).collect::<Vec<i64>>());
}

#[test]
fn narrow_elements_share_registers() {
    // Four bytes at once are turned round; the second result is each byte by itself.
    let asm = "{ .reg .b8 t<4>; prmt.b32 $0, $5, $5, 0x0123; mov.b32 {t0, t1, t2, t3}, $5;
      cvt.s32.s8 $1, t0; cvt.s32.s8 $2, t1; cvt.s32.s8 $3, t2; cvt.s32.s8 $4, t3; }";
    let constraints = "=r,=r,=r,=r,=r,r,r,r,r,r,r,r,r,r";
    let func = kernel(&text(asm, constraints, "i8", ["i8", "i32"], 4));
    let mut x: Vec<i8> = (0..64).map(|i| i * 2 - 60).collect();
    let (mut y, mut z) = (vec![0i8; 64], vec![0i32; 64]);
    let args = [tensor(&mut x), tensor(&mut y), tensor(&mut z), int(5)];
    ok(&func, [1, 1, 1], &args);
    let turned: Vec<i8> =
        x.chunks(4).flat_map(|c| c.iter().rev().copied().collect::<Vec<_>>()).collect();
    assert_eq!(y, turned);
    assert_eq!(z, x.iter().map(|&x| i32::from(x)).collect::<Vec<_>>());
}

#[test]
fn scalars_and_the_clock() {
    let func = kernel(
        "tile @now(%o out: *i64) {
  %one = const value=1:i32 : i32
  %t, %u = inline_asm args=[%one] text=\"mov.u64 $0, %globaltimer; shl.b32 $1, $2, 4;\" constraints=\"=l,=r,r\" shape=() results=(i64,i32) is_pure=false pack=1 : i64, i32
  %w = cast %u to=i64 : i64
  %s = binary.add %t, %w : i64
  store %o, %s
  return
}",
    );
    let clock = || 1 << 50;
    for naive in [false, true] {
        let mut out = vec![0i64];
        let options = LaunchOptions { naive, clock: Some(&clock), ..PLAIN };
        run(&func, [1, 1, 1], &[tensor(&mut out)], &options).unwrap();
        assert_eq!(out, [(1 << 50) + 16]);
    }
}

#[test]
fn what_only_a_gpu_runs_is_named_where_it_is_reached() {
    let body = |asm: &str, constraints: &str| {
        kernel(&format!(
            "tile @deep(%n n: i32) {{
  %z = const value=0:i32 : i32
  %c = compare.gt %n, %z : i1
  if %c {{
    %t = inline_asm args=[%n] text={asm:?} constraints=\"{constraints}\" shape=() results=(i32) is_pure=true pack=1 : i32
    yield
  }} {{
    yield
  }}
  return
}}"
        ))
    };
    let func = body("bar.sync 0; mov.u32 $0, $1;", "=r,r");
    run(&func, [4, 1, 1], &[int(0)], &PLAIN).unwrap();
    let fault = run(&func, [4, 1, 1], &[int(1)], &PLAIN).unwrap_err();
    assert_eq!(fault.id, Id::InlineAsm);
    assert_eq!(
        said(&fault),
        "error[inline-asm]: kernel `deep`: inline assembly with `bar.sync 0` runs only on a GPU\n\
         note: the instruction is not known here\n\
         help: arithmetic on registers is evaluated here too; for the rest write the same in the language"
    );
    let fault = run(&body("mov.u32 $0, $1;", "=r,r,r"), [1, 1, 1], &[int(1)], &PLAIN).unwrap_err();
    assert_eq!(
        fault.message,
        "kernel `deep`: inline assembly cannot be run: the constraints name 2 input registers, the values fill 1"
    );
}
