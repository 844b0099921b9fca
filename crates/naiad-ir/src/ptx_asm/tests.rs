use super::*;

/// Runs a text once: widths with the elements of each argument, widths of the results.
fn call(
    text: &str,
    constraints: &str,
    args: &[(u32, &[u64])],
    results: &[u32],
    pack: usize,
) -> Vec<u64> {
    let widths: Vec<u32> = args.iter().map(|a| a.0).collect();
    let interface = Interface { args: &widths, results, pack };
    let program = Program::parse(text, constraints, &interface)
        .unwrap_or_else(|r| panic!("{:?}: {}", r.statement, r.why));
    let elements: Vec<u64> = args.iter().flat_map(|a| a.1.to_vec()).collect();
    let mut out = vec![0xdead; results.len() * pack];
    // Registers that were used before must make no difference.
    let mut registers = Registers { slots: vec![u64::MAX; 99], sources: vec![7; 3] };
    program.call(&mut registers, &elements, &mut out, &mut || 0x1234_5678_9abc_def0);
    out
}

/// One instruction of 32-bit registers: its result for up to four operands.
fn word(instruction: &str, args: &[u64]) -> u64 {
    let text = format!("{instruction};");
    let constraints = vec!["r"; args.len()].join(",");
    let args: Vec<[u64; 1]> = args.iter().map(|&a| [a]).collect();
    let args: Vec<(u32, &[u64])> = args.iter().map(|a| (32, &a[..])).collect();
    call(&text, &format!("=r,{constraints}"), &args, &[32], 1)[0]
}

fn long(instruction: &str, args: &[u64]) -> u64 {
    let constraints = vec!["l"; args.len()].join(",");
    let args: Vec<[u64; 1]> = args.iter().map(|&a| [a]).collect();
    let args: Vec<(u32, &[u64])> = args.iter().map(|a| (64, &a[..])).collect();
    call(&format!("{instruction};"), &format!("=l,{constraints}"), &args, &[64], 1)[0]
}

fn f(x: f32) -> u64 {
    u64::from(x.to_bits())
}

#[test]
fn integers() {
    for (instruction, args, want) in [
        ("add.u32 $0, $1, $2", &[0xffff_ffff, 2][..], 1),
        ("add.sat.s32 $0, $1, $2", &[0x7fff_ffff, 2], 0x7fff_ffff),
        ("sub.s32 $0, $1, $2", &[3, 5], 0xffff_fffe),
        ("mul.lo.s32 $0, $1, $2", &[0xffff_fffe, 3], 0xffff_fffa),
        ("mul.hi.u32 $0, $1, $2", &[0xffff_ffff, 0xffff_ffff], 0xffff_fffe),
        ("mul.hi.s32 $0, $1, $2", &[0xffff_ffff, 0xffff_ffff], 0),
        ("mul.wide.s16 $0, $1, $2", &[0x1_fffe, 3], 0xffff_fffa),
        ("mad.lo.u32 $0, $1, $2, $3", &[3, 4, 5], 17),
        ("mad.hi.u32 $0, $1, $2, $3", &[0x8000_0000, 6, 5], 8),
        ("div.s32 $0, $1, $2", &[0xffff_fff9, 2], 0xffff_fffd),
        ("rem.s32 $0, $1, $2", &[0xffff_fff9, 2], 0xffff_ffff),
        ("min.s32 $0, $1, $2", &[0xffff_ffff, 1], 0xffff_ffff),
        ("max.u32 $0, $1, $2", &[0xffff_ffff, 1], 0xffff_ffff),
        ("abs.s32 $0, $1", &[0xffff_fffd], 3),
        ("neg.s32 $0, $1", &[1], 0xffff_ffff),
        ("sad.u32 $0, $1, $2, $3", &[3, 10, 100], 107),
        ("and.b32 $0, $1, 0xF0U", &[0x1ff], 0xf0),
        ("not.b32 $0, $1", &[0xf], 0xffff_fff0),
        ("cnot.b32 $0, $1", &[0], 1),
        ("shl.b32 $0, $1, $2", &[1, 31], 0x8000_0000),
        ("shl.b32 $0, $1, $2", &[1, 32], 0),
        ("shr.s32 $0, $1, $2", &[0x8000_0000, 40], 0xffff_ffff),
        ("shr.u32 $0, $1, 4", &[0x8000_0000], 0x0800_0000),
        ("lop3.b32 $0, $1, $2, $3, 0xea", &[0b1100, 0b1010, 0b0001], 0b1001),
        ("lop3.b32 $0, $1, $2, $3, 0x96", &[0xff00_ff00, 0xf0f0_f0f0, 0xcccc_cccc], 0xc33c_c33c),
        ("prmt.b32 $0, $1, $2, 0x6140", &[0x3322_1100, 0x7766_5544], 0x6611_4400),
        ("prmt.b32 $0, $1, $2, 0x000b", &[0x8000_0011, 0], 0x1111_11ff),
        ("bfe.u32 $0, $1, 4, 8", &[0xabcd], 0xbc),
        ("bfe.s32 $0, $1, 4, 8", &[0xabcd], 0xffff_ffbc),
        ("bfe.s32 $0, $1, 28, 8", &[0x8000_0000], 0xffff_fff8),
        ("bfi.b32 $0, $1, $2, 4, 8", &[0xfff, 0xabcd_0123], 0xabcd_0ff3),
        ("popc.b32 $0, $1", &[0xf0f1], 9),
        ("clz.b32 $0, $1", &[1], 31),
        ("clz.b32 $0, $1", &[0], 32),
        ("brev.b32 $0, $1", &[3], 0xc000_0000),
        ("bfind.u32 $0, $1", &[0x100], 8),
        ("bfind.shiftamt.u32 $0, $1", &[0x100], 23),
        ("bfind.s32 $0, $1", &[0xffff_ff00], 7),
        ("bfind.u32 $0, $1", &[0], 0xffff_ffff),
        ("shf.l.wrap.b32 $0, $1, $2, 8", &[0x1122_3344, 0xaabb_ccdd], 0xbbcc_dd11),
        ("shf.r.wrap.b32 $0, $1, $2, 40", &[0x1122_3344, 0xaabb_ccdd], 0xdd11_2233),
        ("shf.r.clamp.b32 $0, $1, $2, 40", &[0x1122_3344, 0xaabb_ccdd], 0xaabb_ccdd),
        ("dp4a.u32.u32 $0, $1, $2, $3", &[0x0102_03ff, 0x0101_0102, 5], 521),
        ("dp4a.s32.s32 $0, $1, $2, $3", &[0x0102_03ff, 0x0101_0102, 5], 9),
        ("mov.u32 $0, $1", &[77], 77),
        ("mov.b32 $0, -1", &[0], 0xffff_ffff),
        ("mov.b32 $0, 010", &[0], 8),
        ("mov.b32 $0, 0b101", &[0], 5),
        ("mov.f32 $0, 0f40490FDB", &[0], 0x4049_0fdb),
        ("mov.b32 $0, 1.5", &[0], 0x3fc0_0000),
    ] {
        assert_eq!(word(instruction, args), want, "{instruction}");
    }
    for (instruction, args, want) in [
        ("mul.hi.u64 $0, $1, $2", &[u64::MAX, u64::MAX][..], u64::MAX - 1),
        ("mul.hi.s64 $0, $1, $2", &[u64::MAX, 5], u64::MAX),
        ("mul.wide.u32 $0, $1, $2", &[0xffff_ffff, 0xffff_ffff], 0xffff_fffe_0000_0001),
        ("mad.wide.s32 $0, $1, $2, $3", &[0xffff_ffff, 7, 10], 3),
        ("shr.s64 $0, $1, 60", &[1 << 63], u64::MAX << 3),
        ("popc.b64 $0, $1", &[u64::MAX], 64),
        ("cvt.s64.s32 $0, $1", &[0xffff_ffff], u64::MAX),
        ("cvt.u64.u32 $0, $1", &[0xffff_ffff], 0xffff_ffff),
        ("bfi.b64 $0, $1, $2, 60, 8", &[0xff, 0], 0xf << 60),
        ("mov.u64 $0, %globaltimer", &[0], 0x1234_5678_9abc_def0),
    ] {
        assert_eq!(long(instruction, args), want, "{instruction}");
    }
}

#[test]
fn floats() {
    let nan = f(f32::NAN);
    for (instruction, args, want) in [
        ("add.f32 $0, $1, $2", &[f(1.5), f(2.0)][..], f(3.5)),
        ("add.rn.ftz.f32 $0, $1, $2", &[1, f(0.0)], 0),
        ("sub.f32 $0, $1, 1.0", &[f(4.0)], f(3.0)),
        ("mul.sat.f32 $0, $1, $2", &[f(4.0), f(2.0)], f(1.0)),
        ("mul.sat.f32 $0, $1, $2", &[nan, f(2.0)], 0),
        ("fma.rn.f32 $0, $1, $1, $2", &[0x3f80_0800, f(-1.0)], 0x3a00_0400),
        ("fma.rn.relu.f32 $0, $1, $1, $2", &[f(1.0), f(-3.0)], 0),
        ("neg.f32 $0, $1", &[f(0.0)], 0x8000_0000),
        ("abs.f32 $0, $1", &[f(-2.5)], f(2.5)),
        ("min.f32 $0, $1, $2", &[nan, f(2.0)], f(2.0)),
        ("max.NaN.f32 $0, $1, $2", &[f(1.0), f(2.0)], f(2.0)),
        ("copysign.f32 $0, $1, $2", &[f(-1.0), f(2.0)], f(-2.0)),
        ("div.full.f32 $0, $1, $2", &[f(1.0), f(4.0)], f(0.25)),
        ("rcp.approx.ftz.f32 $0, $1", &[f(8.0)], f(0.125)),
        ("sqrt.approx.f32 $0, $1", &[f(9.0)], f(3.0)),
        ("rsqrt.approx.f32 $0, $1", &[f(16.0)], f(0.25)),
        ("ex2.approx.ftz.f32 $0, $1", &[f(5.0)], f(32.0)),
        ("lg2.approx.f32 $0, $1", &[f(1024.0)], f(10.0)),
        ("tanh.approx.f32 $0, $1", &[f(0.0)], f(0.0)),
        ("sin.approx.f32 $0, $1", &[f(0.0)], f(0.0)),
        ("cos.approx.f32 $0, $1", &[f(0.0)], f(1.0)),
        // Halves: 1.0 is 3c00, 2.0 is 4000, 3.0 is 4200; as bf16 3f80, 4000, 4040.
        ("add.f16x2 $0, $1, $2", &[0x4000_3c00, 0x3c00_3c00], 0x4200_4000),
        ("sub.bf16x2 $0, $1, $2", &[0x4040_3f80, 0x3f80_3f80], 0x4000_0000),
        ("mul.rn.bf16x2 $0, $1, $2", &[0x4040_4000, 0x3f80_4000], 0x4040_4080),
        ("fma.rn.f16x2 $0, $1, $2, $3", &[0x4000_3c00, 0x4000_3c00, 0x3c00_bc00], 0x4500_0000),
        ("fma.rn.relu.bf16x2 $0, $1, $1, $2", &[0x3f80_3f80, 0xc000_3f80], 0x0000_4000),
        ("neg.f16x2 $0, $1", &[0x0000_bc00], 0x8000_3c00),
        ("abs.bf16x2 $0, $1", &[0xbf80_8000], 0x3f80_0000),
        ("min.f16x2 $0, $1, $2", &[0x3c00_4000, 0x4000_3c00], 0x3c00_3c00),
        ("max.NaN.bf16x2 $0, $1, $2", &[0x3f80_4000, 0x4000_3f80], 0x4000_4000),
        ("ex2.approx.f16x2 $0, $1", &[0x4000_3c00], 0x4400_4000),
        ("tanh.approx.bf16x2 $0, $1", &[0x0000_7f80], 0x0000_3f80),
    ] {
        assert_eq!(word(instruction, args), want, "{instruction}");
    }
}

#[test]
fn conversions() {
    for (instruction, args, want) in [
        // The first operand is the upper half.
        ("cvt.rn.f16x2.f32 $0, $1, $2", &[f(1.0), f(2.0)][..], 0x3c00_4000),
        ("cvt.rz.f16x2.f32 $0, $1, $2", &[f(65520.0), f(0.1)], 0x7bff_2e66),
        ("cvt.rn.bf16x2.f32 $0, $1, $2", &[f(3.0), f(-1.0)], 0x4040_bf80),
        ("cvt.rn.relu.bf16x2.f32 $0, $1, $2", &[f(3.0), f(-1.0)], 0x4040_0000),
        ("cvt.rn.satfinite.e4m3x2.f32 $0, $1, $2", &[f(1.0), f(1000.0)], 0x387e),
        ("cvt.rn.satfinite.e5m2x2.f32 $0, $1, $2", &[f(1.0), f(-1e9)], 0x3cfb),
        ("cvt.rn.satfinite.e4m3x2.f16x2 $0, $1", &[0x3c00_4000], 0x3840),
        ("cvt.rn.f16x2.e4m3x2 $0, $1", &[0x387e], 0x3c00_5f00),
        ("cvt.rn.f16x2.e5m2x2 $0, $1", &[0x3cfb], 0x3c00_fb00),
        ("cvt.rn.satfinite.e4m3x2.f32 $0, $1, $2", &[f(f32::NAN), f(0.0)], 0x7f00),
        ("cvt.f32.f16 $0, $1", &[0x3c01], 0x3f80_2000),
        ("cvt.f32.bf16 $0, $1", &[0x4049], 0x4049_0000),
        ("cvt.rn.f16.f32 $0, $1", &[f(65520.0)], 0x7c00),
        ("cvt.rn.satfinite.f16.f32 $0, $1", &[f(65520.0)], 0x7bff),
        ("cvt.rn.bf16.f32 $0, $1", &[0x3f80_8000], 0x3f80),
        ("cvt.rz.bf16.f32 $0, $1", &[0x3f80_ffff], 0x3f80),
        ("cvt.rna.tf32.f32 $0, $1", &[0x3f80_1000], 0x3f80_2000),
        ("cvt.rn.tf32.f32 $0, $1", &[0x3f80_1000], 0x3f80_0000),
        ("cvt.rni.s32.f32 $0, $1", &[f(-2.5)], 0xffff_fffe),
        ("cvt.rzi.s32.f32 $0, $1", &[f(-2.9)], 0xffff_fffe),
        ("cvt.rmi.s32.f32 $0, $1", &[f(-2.1)], 0xffff_fffd),
        ("cvt.rpi.u32.f32 $0, $1", &[f(2.1)], 3),
        ("cvt.rzi.u32.f32 $0, $1", &[f(-5.0)], 0),
        ("cvt.rni.sat.s8.f32 $0, $1", &[f(-200.0)], 0xffff_ff80),
        ("cvt.rzi.s32.f32 $0, $1", &[f(f32::NAN)], 0),
        ("cvt.rni.f32.f32 $0, $1", &[f(2.5)], f(2.0)),
        ("cvt.sat.f32.f32 $0, $1", &[f(-2.0)], 0),
        ("cvt.rn.f32.s32 $0, $1", &[0xffff_ffff], f(-1.0)),
        ("cvt.rn.f32.u32 $0, $1", &[0xffff_ffff], f(4294967296.0)),
        ("cvt.rz.f32.u32 $0, $1", &[0xffff_ffff], 0x4f7f_ffff),
        ("cvt.rn.f16.s8 $0, $1", &[0x1fe], 0xc000),
        ("cvt.s32.s8 $0, $1", &[0x1ff], 0xffff_ffff),
        ("cvt.u32.u8 $0, $1", &[0x1ff], 0xff),
        ("cvt.sat.s8.s32 $0, $1", &[1000], 127),
        ("cvt.sat.u8.s32 $0, $1", &[0xffff_fff0], 0),
        ("cvt.pack.sat.u8.s32.b32 $0, $1, $2, $3", &[300, 0xffff_ffff, 0x0102], 0x0102_ff00),
        ("cvt.pack.sat.s16.s32 $0, $1, $2", &[0x8000_0000, 5], 0x8000_0005),
    ] {
        assert_eq!(word(instruction, args), want, "{instruction}");
    }
}

#[test]
fn blocks_registers_predicates_and_vectors() {
    let text = "{ // halves change places, unless the number is small
        .reg .pred p, q; .reg .b16 lo, hi;
        .reg .b32 t<2>;
        setp.lt.u32 p|q, $1, 0x10000;  /* q is
        the opposite */
        mov.b32 {lo, hi}, $1;
        mov.b32 t0, {hi, lo};
        mov.b32 t1, $1;
        @q mov.b32 t1, t0;
        @!q add.u32 t1, t1, 1;
        selp.b32 $0, t1, 5, p;
        @q mov.b32 $0, t1; }";
    assert_eq!(call(text, "=&r,r,~{memory}", &[(32, &[0x1_0002])], &[32], 1), [0x0002_0001]);
    assert_eq!(call(text, "=&r,r", &[(32, &[8])], &[32], 1), [9]);
    // An inner block's names hide and end with it; a register may have a dollar sign in its name.
    let text =
        ".reg .b32 $$a; mov.b32 $$a, 1; { .reg .b32 $$a; mov.b32 $$a, 2; add.s32 $0, $$a, $$a; }
        add.s32 $0, $0, $$a;";
    assert_eq!(call(text, "=r", &[], &[32], 1), [5]);
    // Tied: the input starts in the output's register.
    assert_eq!(call("add.u32 $0, $0, $2;", "=r,0,r", &[(32, &[4]), (32, &[5])], &[32], 1), [9]);
    // Two results, one dropped; comparisons joined with a predicate.
    let text = "{ .reg .pred p; setp.eq.f32 p, $1, $1; setp.gtu.and.f32 p|_, $1, 0f00000000, p;
        selp.u32 $0, 1, 0, p; }";
    for (x, want) in [(1.0f32, 1), (-1.0, 0), (f32::NAN, 0)] {
        assert_eq!(call(text, "=r,f", &[(32, &[f(x)])], &[32], 1), [want], "{x}");
    }
}

#[test]
fn packs_share_registers() {
    // Four bytes in one register, doubled; and a number of each in four others.
    let text = "{ .reg .b8 t<4>; mov.b32 {t0, t1, t2, t3}, $5;
        cvt.u32.u8 $1, t0; cvt.u32.u8 $2, t1; cvt.u32.u8 $3, t2; cvt.u32.u8 $4, t3;
        add.u32 $0, $5, $5; }";
    let args: &[(u32, &[u64])] = &[(8, &[1, 2, 3, 100])];
    let out = call(text, "=r,=r,=r,=r,=r,r", args, &[8, 32], 4);
    assert_eq!(out, [2, 4, 6, 200, 1, 2, 3, 100]);
    // Two halves in one register, two words in two.
    let text = "cvt.rn.f16x2.f32 $0, $2, $1;";
    assert_eq!(call(text, "=r,f,f", &[(32, &[f(1.0), f(2.0)])], &[16], 2), [0x3c00, 0x4000]);
    // Two bytes fill half a register; one alone has one.
    assert_eq!(call("mov.b16 $0, $1;", "=h,h", &[(8, &[1, 2])], &[8], 2), [1, 2]);
    assert_eq!(call("shl.b32 $0, $1, 1;", "=r,r", &[(8, &[0x81])], &[8], 1), [2]);
    assert_eq!(
        call("add.s64 $0, $2, 1; mov.u64 $1, $3;", "=l,=l,l,l", &[(64, &[1, 2])], &[64], 2),
        [2, 2]
    );
}

#[test]
fn what_is_not_understood_is_refused_by_name() {
    let refuse = |text: &str, constraints: &str| {
        let interface = Interface { args: &[32], results: &[32], pack: 1 };
        let refusal = Program::parse(text, constraints, &interface).err().unwrap();
        (refusal.statement.unwrap_or_default(), refusal.why)
    };
    for (text, statement) in [
        ("mov.u32 $0, $1; ld.global.b32 $0, [$1];", "ld.global.b32 $0, [$1]"),
        ("bar.sync 0;", "bar.sync 0"),
        ("mov.u32 $0, %tid.x;", "mov.u32 $0, %tid.x"),
        ("mov.u32 $0, %smid;", "mov.u32 $0, %smid"),
        ("add.rm.f32 $0, $1, $1;", "add.rm.f32 $0, $1, $1"),
        ("add.u32 $0, $1;", "add.u32 $0, $1"),
        ("add.u32 $0, $1, $7;", "add.u32 $0, $1, $7"),
        ("add.u32 $0, nobody, 1;", "add.u32 $0, nobody, 1"),
        ("add.u32 $0, $1, 1.5.2;", "add.u32 $0, $1, 1.5.2"),
        ("prmt.b32.f4e $0, $1, $1, 0;", "prmt.b32.f4e $0, $1, $1, 0"),
        ("loop: bra loop;", "loop: bra loop"),
        ("@p bra done;", "@p bra done"),
        (".reg .q32 a;", ".reg .q32 a"),
        ("shfl.sync.bfly.b32 $0, $1, 1, 31, -1;", "shfl.sync.bfly.b32 $0, $1, 1, 31, -1"),
        ("{ .reg .pred p; mov.u32 $0, p; }", "mov.u32 $0, p"),
        ("gibberish é {", "gibberish é {"),
        ("mov.u32 $0, $$x;", "mov.u32 $0, $x"),
    ] {
        assert_eq!(refuse(text, "=r,r").0, statement);
    }
    assert!(refuse("", "=r").1.contains("name 0 input registers, the values fill 1"));
    assert!(refuse("", "=r,v").1.contains("`v`"));
    assert!(refuse("", "=r,4").1.contains("ties to no output"));
}

/// Whatever stands in a text, it is run or refused.
#[test]
fn mutated_texts_never_panic() {
    let seeds = [
        "{ .reg .pred p, q; .reg .b16 lo, hi; .reg .b32 t<2>; setp.lt.u32 p|q, $1, 0x10000;
         mov.b32 {lo, hi}, $1; mov.b32 t0, {hi, lo}; @!q add.u32 t1, t1, -1; selp.b32 $0, t1, 5, p; }",
        "lop3.b32 $0, $1, $1, $1, 0x96; bfe.s32 $0, $0, 31, 200; bfi.b32 $0, $0, $1, 99, 255; shl.b32 $0, $0, -1;",
        "cvt.rn.satfinite.e4m3x2.f32 $0, $1, 1e400; cvt.rni.s64.f32 $0, $1; fma.rn.f16x2 $0, $1, $1, $0;",
        "mad.wide.s32 $0, $1, $1, 5; mul.hi.u64 $0, $1, --9; div.s64 $0, $1, 0; abs.s64 $0, $1; bfind.s64 $0, $1;",
        "dp4a.s32.u32 $0, $1, $1, $0; prmt.b32 $0, $1, $1, 0xffffffff; shf.l.clamp.b32 $0, $1, $1, 77; {{{{{",
    ];
    let words = [
        "{", "}", ";", "$", "$$", ",", ".", "@p ", "|", "!", "0x", "-", "_", "9", " ", "é", ".b64",
        ".f64", "<9>", "/*",
    ];
    let mut state = 0x2545_f491_4f6c_dd1du64;
    let mut below = |n: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as usize % n
    };
    let mut understood = 0;
    for i in 0..40_000 {
        let mut text: Vec<char> = seeds[i % seeds.len()].chars().collect();
        for _ in 0..below(4) {
            let at = below(text.len());
            match below(3) {
                0 => drop(text.remove(at)),
                1 => {
                    let next = (at + 1) % text.len();
                    text.swap(at, next);
                }
                _ => drop(text.splice(at..at, words[below(words.len())].chars())),
            }
        }
        let text: String = text.into_iter().collect();
        let interface = Interface { args: &[32], results: &[32], pack: 1 };
        let Ok(program) = Program::parse(&text, "=r,r", &interface) else { continue };
        understood += 1;
        for image in [0, 1, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 0x7fc0_0000] {
            program.call(&mut Registers::default(), &[image], &mut [0], &mut || 0);
        }
    }
    assert!(understood > 10_000, "{understood}");
    let deep = format!("mov.b32 $0, {}x{};", "{".repeat(100_000), "}".repeat(100_000));
    let interface = Interface { args: &[], results: &[32], pack: 1 };
    assert!(Program::parse(&deep, "=r", &interface).is_err());
    assert!(Program::parse(&"{".repeat(100_000), "=r", &interface).is_ok());
}

/// Sums of products of fp16 against whole numbers: every value is a multiple of 2^-24.
#[test]
fn halves_are_fused_with_one_rounding() {
    let scaled = |image: u64| -> i128 {
        let (e, m) = ((image >> 10 & 31) as u32, i128::from(image & 0x3ff));
        let x = if e == 0 { m } else { (m + 1024) << (e - 1) };
        if image >> 15 != 0 { -x } else { x }
    };
    // In units of 2^-48; the image whose number is nearest, ties to the even one.
    let nearest = |x: i128| -> u64 {
        let size = x.unsigned_abs() as i128;
        let (mut lo, mut hi) = (0u64, 0x7c00u64);
        while hi - lo > 1 {
            let middle = (lo + hi) / 2;
            if scaled(middle) << 24 <= size { lo = middle } else { hi = middle }
        }
        let (below, above) = (size - (scaled(lo) << 24), (scaled(lo + 1) << 24) - size);
        let image = if below > above || below == above && lo & 1 != 0 { lo + 1 } else { lo };
        image | if x < 0 { 0x8000 } else { 0 }
    };
    let mut state = 88172645463325252u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let image = state >> 20 & 0xffff;
        if image & 0x7c00 == 0x7c00 { image & 0xbfff } else { image }
    };
    for i in 0..200_000 {
        let (a, b) = (next(), next());
        let product = scaled(a) * scaled(b);
        // Near a tie of the sum, now and then.
        let c = if i % 2 == 0 { next() } else { nearest(-product) };
        let c = if c & 0x7c00 == 0x7c00 { 0x3c00 } else { c };
        let sum = product + (scaled(c) << 24);
        if sum == 0 {
            continue;
        }
        let text = word("fma.rn.f16 $0, $1, $2, $3", &[a, b, c]);
        assert_eq!(text, nearest(sum), "{a:x} {b:x} {c:x}");
    }
}
