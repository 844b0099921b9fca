"""`tl.inline_asm_elementwise`: the short PTX that a CPU understands, packs, several results, refusals."""

import numpy as np
import pytest

import naiad as triton

from ._common import SIZES, close, refused, same, tiles, value
from ._numbers import TYPES, Typed, array, decode, encode, samples

COVERS = ["inline_asm_elementwise"]


def asm(text, constraints, args, dtype, pack=1, is_pure=True):
    return f"tl.inline_asm_elementwise({text!r}, {constraints!r}, [{args}], tl.{dtype}, {is_pure}, {pack})"


def run(text, constraints, dtype, inputs, pack=1, shape=None):
    return value(asm(text, constraints, ", ".join(inputs), dtype, pack), dtype, shape, inputs)


# ---- spellings ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        "tl.inline_asm_elementwise('add.s32 $0, $1, $2;', '=r,r,r', [x, y], tl.int32, True, 1)",
        "tl.inline_asm_elementwise('add.s32 $0, $1, $2;', '=r,r,r', args=[x, y], dtype=tl.int32, is_pure=False, pack=1)",
        "tl.inline_asm_elementwise(asm='add.s32 $0, $1, $2;', constraints='=r,r,r', args=(x, y), dtype=tl.int32, is_pure=True, pack=1)",
        "tl.inline_asm_elementwise('add.s32 $0, $2, $1', '=r, r, r', [y, x], tl.int32, True, 1)",
        "tl.inline_asm_elementwise('{\\n\\t.reg .s32 t;\\n mov.b32 t, $1; // a copy\\n add.s32 $0, t, $2;\\n}', '=r,r,r', [x, y], tl.int32, True, 1)",
        "tl.inline_asm_elementwise('/* none */ add.s32 $0, $1, $2;', '=&r,r,r', [x, y], tl.int32, True, 1)",
    ],
)
def test_spellings(call):
    x, y = np.arange(8, dtype=np.int32), np.arange(8, dtype=np.int32) * 7
    same(value(call, "int32", inputs={"x": x, "y": y}), x + y)


def test_texts_from_elsewhere():
    x = np.arange(8, dtype=np.int32)
    body = "TEXT: tl.constexpr = 'add.s32 $0, $1, ' + '5;'\n"
    body += "r = tl.inline_asm_elementwise(TEXT, '=r,r', [x], tl.int32, is_pure=True, pack=1)"
    same(tiles(body, {"x": x}, r=("int32", (8,))), x + 5)


@pytest.mark.parametrize("n", SIZES)
def test_odd_sizes(n):
    x = np.arange(n, dtype=np.uint32) * 77777
    same(run("shl.b32 $0, $1, 3;", "=r,r", "uint32", {"x": x}), x << 3)


@pytest.mark.parametrize("shape", [(), (1,), (8,), (4, 8), (2, 1, 4), (2, 2, 4, 2)])
def test_shapes(shape):
    x = np.asarray(np.arange(int(np.prod(shape)), dtype=np.int32).reshape(shape))
    same(run("neg.s32 $0, $1;", "=r,r", "int32", {"x": x}), np.asarray(-x))


def test_operands_broadcast():
    a, b = np.arange(4, dtype=np.int32), np.arange(2, dtype=np.int32) * 100
    call = asm("add.s32 $0, $1, $2;", "=r,r,r", "a[None, :], b[:, None]", "int32")
    same(value(call, "int32", (2, 4), {"a": a, "b": b}), a[None, :] + b[:, None])
    call = asm("add.s32 $0, $1, $2;", "=r,r,r", "a, 5", "int32")
    same(value(call, "int32", (4,), {"a": a}), a + 5)


# ---- one instruction ------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["rsqrt.approx.f32 $0, $1;", "rsqrt.approx.ftz.f32 $0, $1;"])
def test_rsqrt(text):
    x = np.array([1, 4, 0.25, 2, 3, 1e-30, 1e30, np.inf], np.float32)
    close(run(text, "=f,f", "float32", {"x": x}), 1 / np.sqrt(x.astype(np.float64)), 2)
    # Zero of either sign goes to infinity of that sign, what is negative to NaN.
    x = np.array([0.0, -0.0, -1, np.nan], np.float32)
    got = run(text, "=f,f", "float32", {"x": x})
    same(got, np.array([np.inf, -np.inf, np.nan, np.nan], np.float32))


@pytest.mark.parametrize(
    "text, f, ulps",
    [
        ("ex2.approx.f32", np.exp2, 2),
        ("ex2.approx.ftz.f32", np.exp2, 2),
        ("lg2.approx.f32", np.log2, 2),
        ("sin.approx.f32", np.sin, 2),
        ("cos.approx.f32", np.cos, 2),
        ("tanh.approx.f32", np.tanh, 2),
        ("sqrt.approx.f32", np.sqrt, 1),
        ("sqrt.rn.f32", np.sqrt, 0.5),
        ("rcp.approx.f32", lambda x: 1 / x, 1),
        ("rcp.rn.f32", lambda x: 1 / x, 0.5),
    ],
)
def test_functions(text, f, ulps):
    x = np.random.default_rng(2).uniform(0.01, 9, 256).astype(np.float32)
    got = run(f"{text} $0, $1;", "=f,f", "float32", {"x": x})
    close(got, f(x.astype(np.float64)), ulps, floor=2.0**-8)


U, V, W = (np.random.default_rng(i).integers(0, 2**32, 64).astype(np.uint32) for i in (1, 2, 3))


def lop3(a, b, c, table):
    """Bit by bit: the place in the table is made of one bit of each."""
    out = np.zeros_like(a)
    for bit in range(32):
        at = [(v >> bit & 1).astype(int) for v in (a, b, c)]
        out |= ((table >> (at[0] << 2 | at[1] << 1 | at[2])) & 1).astype(np.uint32) << bit
    return out


def prmt(a, b, how):
    """Bytes of the two words by number; 8 more asks for the sign alone."""
    pool = [(v >> (8 * i) & 255).astype(np.uint32) for v in (a, b) for i in range(4)]
    out = np.zeros_like(a)
    for i in range(4):
        code = how >> (4 * i) & 15
        byte = pool[code & 7]
        byte = np.where(byte >> 7, 255, 0).astype(np.uint32) if code & 8 else byte
        out |= byte << np.uint32(8 * i)
    return out


@pytest.mark.parametrize("table", [0x00, 0x01, 0x80, 0x96, 0xCA, 0xE8, 0xEA, 0xF8, 0xFF, 0x6A])
def test_lop3(table):
    got = run(
        f"lop3.b32 $0, $1, $2, $3, {hex(table)};", "=r,r,r,r", "uint32", {"a": U, "b": V, "c": W}
    )
    same(got, lop3(U, V, W, table))


@pytest.mark.parametrize("how", [0x3210, 0x7654, 0x5410, 0x7632, 0x0123, 0x6140, 0xBA98, 0x4F0C])
def test_prmt(how):
    got = run(f"prmt.b32 $0, $1, $2, {hex(how)};", "=r,r,r", "uint32", {"a": U, "b": V})
    same(got, prmt(U, V, how))


@pytest.mark.parametrize(
    "text, f",
    [
        ("and.b32 $0, $1, $2;", lambda a, b: a & b),
        ("or.b32 $0, $1, $2;", lambda a, b: a | b),
        ("xor.b32 $0, $1, $2;", lambda a, b: a ^ b),
        ("not.b32 $0, $1;", lambda a, b: ~a),
        ("shl.b32 $0, $1, 7;", lambda a, b: a << 7),
        ("shr.u32 $0, $1, 9;", lambda a, b: a >> 9),
        ("shr.b32 $0, $1, 32;", lambda a, b: a * 0),
        ("shr.s32 $0, $1, 9;", lambda a, b: (a.view(np.int32) >> 9).view(np.uint32)),
        ("add.u32 $0, $1, $2;", lambda a, b: a + b),
        ("sub.s32 $0, $1, $2;", lambda a, b: a - b),
        ("mul.lo.u32 $0, $1, $2;", lambda a, b: a * b),
        ("mul.hi.u32 $0, $1, $2;", lambda a, b: (a.astype(np.uint64) * b >> 32).astype(np.uint32)),
        ("mad.lo.u32 $0, $1, $2, 5;", lambda a, b: a * b + np.uint32(5)),
        ("max.u32 $0, $1, $2;", np.maximum),
        ("min.s32 $0, $1, $2;", lambda a, b: np.minimum(a.view("i4"), b.view("i4")).view("u4")),
        ("bfe.u32 $0, $1, 4, 12;", lambda a, b: a >> 4 & 0xFFF),
        ("mov.b32 $0, $2;", lambda a, b: b),
        ("mov.u32 $0, 0x80000001;", lambda a, b: a * 0 + np.uint32(0x80000001)),
        ("popc.b32 $0, $1;", lambda a, b: np.array([bin(v).count("1") for v in a], np.uint32)),
        ("brev.b32 $0, $1;", lambda a, b: np.array([int(f"{v:032b}"[::-1], 2) for v in a], "u4")),
    ],
)
def test_words(text, f):
    with np.errstate(over="ignore"):
        want = f(U, V)
    same(run(text, "=r,r,r", "uint32", {"a": U, "b": V}), want)


@pytest.mark.parametrize(
    "text, f",
    [
        ("add.f32 $0, $1, $2;", np.add),
        ("sub.rn.f32 $0, $1, $2;", np.subtract),
        ("mul.f32 $0, $1, $2;", np.multiply),
        ("div.rn.f32 $0, $1, $2;", np.divide),
        ("min.f32 $0, $1, $2;", np.fmin),
        ("max.f32 $0, $1, $2;", np.fmax),
        ("min.NaN.f32 $0, $1, $2;", np.minimum),
        ("neg.f32 $0, $1;", lambda a, b: -a),
        ("abs.f32 $0, $1;", lambda a, b: np.abs(a)),
        ("copysign.f32 $0, $2, $1;", np.copysign),
        ("fma.rn.f32 $0, $1, $2, 0f00000000;", np.multiply),
    ],
)
def test_floats(text, f):
    a, b = samples("float32", 64), samples("float32", 64, 1)
    # Which zero `min` and `max` give of two is left open, and `fma` adds a zero of its own.
    keep = (a != 0) & (b != 0)
    with np.errstate(all="ignore"):
        want = f(a, b)
    keep &= ~((want == 0) & ("fma" in text))
    same(run(text, "=f,f,f", "float32", {"a": a, "b": b})[keep], want[keep])


def test_64_bits():
    x = np.array([1, 2**63, 2**40 + 5, 2**64 - 1], np.uint64)
    same(run("shr.u64 $0, $1, 33;", "=l,l", "uint64", {"x": x}), x >> np.uint64(33))
    d = np.array([1.5, -2.0, np.inf, 1e300])
    same(run("mul.f64 $0, $1, 0d4000000000000000;", "=d,d", "float64", {"x": d}), d * 2)
    same(run("cvt.u32.u64 $0, $1;", "=r,l", "uint32", {"x": x}), x.astype(np.uint32))


def test_selection_by_predicates():
    a, b = np.arange(-4, 4, dtype=np.int32), np.zeros(8, np.int32)
    text = "{ .reg .pred p; setp.lt.s32 p, $1, $2; selp.b32 $0, 7, $1, p; }"
    same(run(text, "=r,r,r", "int32", {"a": a, "b": b}), np.where(a < 0, 7, a).astype(np.int32))
    text = "{ .reg .pred p; setp.ge.s32 p, $1, $2; mov.b32 $0, $1; @!p neg.s32 $0, $1; }"
    same(run(text, "=r,r,r", "int32", {"a": a, "b": b}), np.abs(a))


# ---- conversions ----------------------------------------------------------------------------------

FINITE = np.array(
    [0.0, -0.0, 1.0, -2.5, 0.3, 1000.1, -1e-3, 3.0e38, 65504, 65520, 7e-8, 2.0**-26, 448, 464, 500, -1e9],
    np.float32,
)  # fmt: skip


@pytest.mark.parametrize(
    "text, constraints, name",
    [
        ("cvt.rn.f16.f32 $0, $1;", "=h,f", "float16"),
        ("cvt.rn.bf16.f32 $0, $1;", "=h,f", "bfloat16"),
        ("cvt.rz.f16.f32 $0, $1;", "=h,f", "float16"),
        ("cvt.rz.bf16.f32 $0, $1;", "=h,f", "bfloat16"),
    ],
)
def test_from_fp32(text, constraints, name):
    want = encode(name, FINITE.astype(np.float64), toward_zero=".rz" in text)
    same(run(text, constraints, name, {"x": FINITE}), want, name)


@pytest.mark.parametrize("name, ptx", [("float16", "f16"), ("bfloat16", "bf16")])
def test_to_fp32(name, ptx):
    x = samples(name, 64)
    got = run(f"cvt.f32.{ptx} $0, $1;", "=f,h", "float32", {"x": Typed(name, x)})
    same(got, decode(name, x).astype(np.float32))


@pytest.mark.parametrize(
    "kind, f", [("rni", np.rint), ("rzi", np.trunc), ("rmi", np.floor), ("rpi", np.ceil)]
)
def test_to_integers(kind, f):
    x = np.array([0.5, 1.5, -0.5, -2.7, 2.5, 3e9, -3e9, 7.999], np.float32)
    want = np.clip(f(x.astype(np.float64)), -(2**31), 2**31 - 1).astype(np.int32)
    same(run(f"cvt.{kind}.s32.f32 $0, $1;", "=r,f", "int32", {"x": x}), want)
    # NaN becomes 0.
    nan = np.full(8, np.nan, np.float32)
    assert not run(f"cvt.{kind}.s32.f32 $0, $1;", "=r,f", "int32", {"x": nan}).any()


def test_from_integers():
    x = np.array([0, 1, -1, 2**24 + 1, -(2**31), 2**31 - 1, 77, -78], np.int32)
    same(run("cvt.rn.f32.s32 $0, $1;", "=f,r", "float32", {"x": x}), x.astype(np.float32))
    u = x.view(np.uint32)
    same(run("cvt.rn.f32.u32 $0, $1;", "=f,r", "float32", {"x": u}), u.astype(np.float32))


@pytest.mark.parametrize(
    "name, ptx", [("float16", "rn.f16x2"), ("bfloat16", "rn.bf16x2"), ("float16", "rz.f16x2")]
)
def test_two_halves_of_one_register(name, ptx):
    """The first operand of a packed conversion is the upper half, which is the later element."""
    want = encode(name, FINITE.astype(np.float64), toward_zero=ptx.startswith("rz"))
    got = run(f"cvt.{ptx}.f32 $0, $2, $1;", "=r,f,f", name, {"x": FINITE}, pack=2)
    same(got, want, name)


@pytest.mark.parametrize("name, ptx", [("float8e4nv", "e4m3x2"), ("float8e5", "e5m2x2")])
def test_two_fp8_of_one_register(name, ptx):
    want = encode(name, FINITE.astype(np.float64))
    text = "{ .reg .b16 t; cvt.rn.satfinite.%s.f32 t, $2, $1; mov.b32 $0, {t, t}; }" % ptx
    got = run(text, "=r,f,f", name, {"x": FINITE}, pack=2)
    same(got, want, name)


@pytest.mark.parametrize("name, ptx", [("float8e4nv", "e4m3x2"), ("float8e5", "e5m2x2")])
def test_four_fp8_of_one_register(name, ptx):
    want = encode(name, FINITE.astype(np.float64))
    text = f"""
    {{
        .reg .b16 lo, hi;
        cvt.rn.satfinite.{ptx}.f32 lo, $2, $1;
        cvt.rn.satfinite.{ptx}.f32 hi, $4, $3;
        mov.b32 $0, {{lo, hi}};
    }}
    """
    same(run(text, "=r,f,f,f,f", name, {"x": FINITE}, pack=4), want, name)


@pytest.mark.parametrize("name, ptx", [("float8e4nv", "e4m3x2"), ("float8e5", "e5m2x2")])
def test_fp8_to_halves(name, ptx):
    x = np.arange(256).astype(np.uint8)
    x = x[np.isfinite(TYPES[name].values)]
    x = np.resize(x, 256)
    text = f"""
    {{
        .reg .b16 lo, hi;
        mov.b32 {{lo, hi}}, $2;
        cvt.rn.f16x2.{ptx} $0, lo;
        cvt.rn.f16x2.{ptx} $1, hi;
    }}
    """
    got = run(text, "=r,=r,r", "float16", {"x": Typed(name, x)}, pack=4)
    same(got, decode(name, x).astype(np.float16))


# ---- packs ----------------------------------------------------------------------------------------


def test_nibbles_unpacked_four_at_a_time():
    """Two results of four bytes each, from one register of four bytes."""
    x = np.random.default_rng(8).integers(0, 256, 64).astype(np.uint8)
    body = """
        lo, hi = tl.inline_asm_elementwise(
            asm='''
            {
                and.b32 $0, $2, 0x0F0F0F0F;
                shr.u32 $1, $2, 4;
                and.b32 $1, $1, 0x0F0F0F0F;
            }
            ''',
            constraints='=&r,=&r,r',
            args=[x],
            dtype=(tl.uint8, tl.uint8),
            is_pure=True,
            pack=4,
        )
    """
    lo, hi = tiles(body, {"x": x}, lo=("uint8", (64,)), hi=("uint8", (64,)))
    same(lo, x & np.uint8(15))
    same(hi, x >> 4)


def test_signed_nibbles_as_bf16():
    """The way of int4 weights: sign extension by shifts, conversion by way of fp32, halves packed."""
    x = np.random.default_rng(9).integers(0, 256, 32).astype(np.uint8)
    text = """
    {
        .reg .b32 t<4>;
        .reg .f32 f<4>;
        shl.b32 t0, $2, 28;
        shr.s32 t0, t0, 28;
        shl.b32 t1, $2, 24;
        shr.s32 t1, t1, 28;
        shl.b32 t2, $2, 20;
        shr.s32 t2, t2, 28;
        shl.b32 t3, $2, 16;
        shr.s32 t3, t3, 28;
        cvt.rn.f32.s32 f0, t0;
        cvt.rn.f32.s32 f1, t1;
        cvt.rn.f32.s32 f2, t2;
        cvt.rn.f32.s32 f3, t3;
        cvt.rn.bf16x2.f32 $0, f2, f0;
        cvt.rn.bf16x2.f32 $1, f3, f1;
    }
    """
    body = f"lo, hi = tl.inline_asm_elementwise({text!r}, '=r,=r,r', [x], (tl.bfloat16, tl.bfloat16), True, 2)"
    lo, hi = tiles(body, {"x": x}, lo=("bfloat16", (32,)), hi=("bfloat16", (32,)))

    def signed(v):
        return (v.astype(np.int64) ^ 8) - 8

    same(lo, array("bfloat16", signed(x & 15)), "bfloat16")
    same(hi, array("bfloat16", signed(x >> 4)), "bfloat16")


@pytest.mark.parametrize("pack", [1, 2, 4])
def test_packs_of_bytes(pack):
    """What is not in a register's elements is not looked at."""
    x, y = np.arange(64, dtype=np.uint8), np.arange(64, 128, dtype=np.uint8)
    got = run("xor.b32 $0, $1, $2;", "=r,r,r", "uint8", {"x": x, "y": y}, pack=pack)
    same(got, x ^ y)


@pytest.mark.parametrize("pack", [1, 2, 4])
def test_packs_of_words(pack):
    """Words do not share a register, so a pack has a register for each."""
    x = np.arange(32, dtype=np.int32)
    text = "".join(f"add.s32 ${i}, ${i + pack}, {i + 1};" for i in range(pack))
    constraints = ",".join(["=r"] * pack + ["r"] * pack)
    got = run(text, constraints, "int32", {"x": x}, pack=pack)
    same(got, x + 1 + x % pack)


def test_a_tuple_of_one_result():
    x = np.arange(8, dtype=np.int32)
    body = "r = tl.inline_asm_elementwise('neg.s32 $0, $1;', '=r,r', [x], (tl.int32,), True, 1)[0]"
    same(tiles(body, {"x": x}, r=("int32", (8,))), -x)


def test_no_arguments():
    call = asm("mov.u32 $0, 42;", "=r", "", "int32")
    assert value(call, "int32") == 42
    assert value(asm("mov.u64 $0, %globaltimer;", "=l", "", "int64", is_pure=False), "int64") > 0


# ---- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, shown",
    [
        ("ld.global.b32 $0, [$1];", "ld.global.b32"),
        ("st.global.b32 [$1], $0;", "st.global.b32"),
        ("bar.sync 0;", "bar.sync"),
        ("mov.u32 $0, %tid.x;", "%tid.x"),
        ("mov.u32 $0, %laneid;", "%laneid"),
        ("shfl.sync.bfly.b32 $0, $1, 1, 31, -1;", "shfl"),
        ("bra L; L: mov.b32 $0, $1;", "bra"),
        ("frobnicate.b32 $0, $1;", "frobnicate"),
        ("add.s32.quickly $0, $1, $1;", "add.s32.quickly"),
        ("add.s32 $0, $1;", "add.s32"),
        ("add.s32 $0, $1, $7;", "$7"),
        ("add.s32 $0, $1, t;", "t"),
        ("v_mov_b32 $0, $1", "v_mov_b32"),
    ],
)
def test_texts_that_only_a_gpu_can_run(text, shown):
    refused(
        asm(text, "=r,r", "x", "int32"),
        "inline-asm",
        shown,
        error=triton.CompilationError,
        x="int32",
    )


@pytest.mark.parametrize(
    "call, id, message",
    [
        (asm("mov.b32 $0, $1;", "=r,q", "x", "int32"), "inline-asm", "`q`"),
        (asm("mov.b32 $0, $1;", "=r", "x", "int32"), "inline-asm", "registers"),
        (asm("mov.b32 $0, $1;", "r", "x", "int32"), "inline-asm", "registers"),
        (asm("mov.b32 $0, $1;", "=r,r,r", "x", "int32"), "inline-asm", "registers"),
        (asm("mov.b32 $0, $1;", "=r,r", "x", "int32", pack=3), "bad-argument", "must divide"),
        (asm("mov.b32 $0, $1;", "=r,r", "x", "int32", pack=0), "bad-argument", "must divide"),
        ("tl.inline_asm_elementwise('', '', [x], (), True, 1)", "bad-argument", "at least one"),
        ("tl.inline_asm_elementwise('', '=r,r', [x], tl.int32)", "bad-call", ""),
        (asm("mov.b32 $0, $1;", "=r,r,r", "x, tl.arange(0, 4)", "int32"), "shape-mismatch", ""),
        ("tl.inline_asm_elementwise(x, '=r,r', [x], tl.int32, True, 1)", None, ""),
        ("tl.inline_asm_elementwise('', '=r,r', [x], 5, True, 1)", None, ""),
    ],
)
def test_calls_that_are_refused(call, id, message):
    refused(call, id, message, error=triton.CompilationError, x="int32")
