"""`tl.dot_scaled`: every pair of formats against float64, scales on either side, packing, refusals."""

import itertools

import numpy as np
import pytest

from ._common import refused, tiles
from ._numbers import TYPES, Typed, array, decode

COVERS = ["dot_scaled"]

E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
E2M1 = np.concatenate([E2M1, -E2M1])
TYPE_OF = {"e4m3": "float8e4nv", "e5m2": "float8e5", "bf16": "bfloat16", "fp16": "float16"}
FORMATS = ["e2m1", *TYPE_OF]


def operand(format, shape, seed, packed_axis, raw=False):
    """Random numbers of the format: how a kernel gets them, and their values."""
    rng = np.random.default_rng([seed, len(format), *shape])
    if format == "e2m1":
        nibbles = rng.integers(0, 16, shape).astype(np.uint8)
        pairs = np.moveaxis(nibbles, packed_axis, 0)
        packed = np.moveaxis(pairs[0::2] | pairs[1::2] << 4, 0, packed_axis)
        return np.ascontiguousarray(packed), E2M1[nibbles]
    # Few bits, so that each value is one of the format, and sums stay near their terms.
    values = rng.integers(-7, 8, shape) * 2.0 ** rng.integers(-3, 2, shape)
    name = TYPE_OF[format]
    if format == "e5m2":
        values = np.where(np.abs(rng.integers(-7, 8, shape)) > 3, np.sign(values), values)
    image = array(name, values)
    values = decode(name, image)
    if raw:
        return image.view(f"u{image.itemsize}"), values
    return Typed(name, image), values


def scales(shape, seed, low=122, high=132):
    return np.random.default_rng([seed, *shape]).integers(low, high, shape).astype(np.uint8)


def factor(scale, group=32):
    """Of each element along the last axis, by the definition of E8M0; 255 is NaN."""
    values = np.where(scale == 255, np.nan, np.ldexp(1.0, scale.astype(int) - 127))
    return np.repeat(values, group, -1)


def check(got, a, b, acc=0.0):
    """Within the rounding of K sums in fp32."""
    want = acc + a @ b
    bound = (np.abs(a) @ np.abs(b) + np.abs(acc)) * a.shape[-1] * 2.0**-23
    nan = np.isnan(want)
    assert (np.isnan(got) == nan).all()
    error = np.abs(got.astype(np.float64) - want)
    assert (error[~nan] <= np.broadcast_to(bound, want.shape)[~nan]).all(), np.nanmax(error)


def run(
    a,
    a_scale,
    lhs,
    b,
    b_scale,
    rhs,
    shape,
    options="",
    **more,
):
    inputs = {"a": a, "b": b, "sa": a_scale, "sb": b_scale, **more}
    # A scale that is absent is no parameter.
    inputs = {name: x for name, x in inputs.items() if x is not None}
    sa, sb = (name if name in inputs else "None" for name in ("sa", "sb"))
    body = f"r = tl.dot_scaled(a, {sa}, {lhs!r}, b, {sb}, {rhs!r}{options})"
    return tiles(body, inputs, r=("float32", shape))


def problem(lhs, rhs, m=16, n=16, k=64, batch=(), raw=False, seed=1, lhs_axis=-1, rhs_axis=-2):
    a, av = operand(lhs, (*batch, m, k), seed, lhs_axis, raw)
    b, bv = operand(rhs, (*batch, k, n), seed + 1, rhs_axis, raw)
    return a, av, b, bv


@pytest.mark.parametrize("lhs, rhs", list(itertools.product(FORMATS, FORMATS)))
def test_formats(lhs, rhs):
    a, av, b, bv = problem(lhs, rhs)
    for left, right in itertools.product((False, True), repeat=2):
        sa = scales((16, 2), 3) if left else None
        sb = scales((16, 2), 4) if right else None
        got = run(a, sa, lhs, b, sb, rhs, (16, 16))
        x = av * factor(sa) if left else av
        y = bv * factor(sb).T if right else bv
        check(got, x, y)


@pytest.mark.parametrize(
    "lhs, rhs", [("e4m3", "e5m2"), ("bf16", "e2m1"), ("e2m1", "fp16"), ("bf16", "bf16")]
)
def test_images_as_integers(lhs, rhs):
    """Operands of fp8, bf16 and fp16 may be integers of their width."""
    a, av, b, bv = problem(lhs, rhs, raw=True)
    sa, sb = scales((16, 2), 3), scales((16, 2), 4)
    check(run(a, sa, lhs, b, sb, rhs, (16, 16)), av * factor(sa), bv * factor(sb).T)


@pytest.mark.parametrize(
    "m, n, k", [(1, 1, 32), (16, 32, 32), (32, 16, 128), (5, 3, 64), (33, 31, 32), (1, 127, 256)]
)
def test_sizes(m, n, k):
    a, av, b, bv = problem("e4m3", "e2m1", m, n, k)
    sa, sb = scales((m, k // 32), 3), scales((n, k // 32), 4)
    got = run(a, sa, "e4m3", b, sb, "e2m1", (m, n))
    check(got, av * factor(sa), bv * factor(sb).T)


@pytest.mark.parametrize("lhs, rhs", [("e2m1", "e2m1"), ("e5m2", "bf16"), ("fp16", "e4m3")])
def test_three_axes(lhs, rhs):
    a, av, b, bv = problem(lhs, rhs, batch=(4,))
    sa, sb = scales((4, 16, 2), 3), scales((4, 16, 2), 4)
    got = run(a, sa, lhs, b, sb, rhs, (4, 16, 16))
    check(got, av * factor(sa), bv * np.swapaxes(factor(sb), -1, -2))


@pytest.mark.parametrize("batch", [(), (2,)])
def test_packed_along_the_other_axis(batch):
    for left, right in ((False, True), (True, False), (False, False), (True, True)):
        a, av, b, bv = problem(
            "e2m1", "e2m1", 16, 32, 64, batch, lhs_axis=-1 if left else -2, rhs_axis=-2 if right else -1
        )  # fmt: skip
        sa, sb = scales((*batch, 16, 2), 3), scales((*batch, 32, 2), 4)
        options = f", lhs_k_pack={left}, rhs_k_pack={right}"
        got = run(a, sa, "e2m1", b, sb, "e2m1", (*batch, 16, 32), options)
        check(got, av * factor(sa), bv * np.swapaxes(factor(sb), -1, -2))


def test_the_lower_nibble_comes_first():
    a = np.zeros((1, 16), np.uint8)
    a[0, 0], a[0, 5] = 0x21, 0xF0
    b = np.zeros((32, 1))
    b[[0, 1, 10, 11]] = [[1], [16], [256], [4096]]
    got = run(a, None, "e2m1", Typed("bfloat16", array("bfloat16", b)), None, "bf16", (1, 1))
    assert got[0, 0] == 0.5 * 1 + 1.0 * 16 + 0 * 256 + -6.0 * 4096


def test_every_nibble():
    a = np.zeros((16, 16), np.uint8)
    a[:, 3] = np.arange(16)
    b = array("bfloat16", np.eye(32)[:, 6:7])
    got = run(a, None, "e2m1", Typed("bfloat16", b), None, "bf16", (16, 1))
    assert got[:, 0].tolist() == E2M1.tolist()


@pytest.mark.parametrize("format", ["e4m3", "e5m2"])
def test_every_fp8(format):
    name = TYPE_OF[format]
    a = np.zeros((256, 32), np.uint8)
    a[:, 4] = np.arange(256)
    b = Typed("bfloat16", array("bfloat16", np.eye(32)[:, 4:5]))
    got = run(a, None, format, b, None, "bf16", (256, 1))[:, 0]
    np.testing.assert_array_equal(got, TYPES[name].values.astype(np.float32))


# ---- scales ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("exponent", [0, 1, 2, 100, 126, 127, 128, 200, 253])
@pytest.mark.parametrize("format", ["e2m1", "e4m3", "e5m2", "bf16"])
def test_powers_of_two(format, exponent):
    """From the smallest, which is no normal number, to the largest that products leave finite."""
    a, av, b, _ = problem(format, "bf16", 16, 1, 32)
    av = np.sign(av) * np.minimum(np.abs(av), 1.5)
    if format == "e2m1":
        nibbles = np.array(
            [
                np.flatnonzero((E2M1 == v) & (np.signbit(E2M1) == np.signbit(v)))[0]
                for v in av.ravel()
            ],
            np.uint8,
        )
        nibbles = nibbles.reshape(av.shape)
        a = nibbles[:, 0::2] | nibbles[:, 1::2] << 4
    else:
        a = Typed(TYPE_OF[format], array(TYPE_OF[format], av))
        av = decode(a.name, a.array)
    one = np.eye(32)[:, 9:10]
    sa = np.full((16, 1), exponent, np.uint8)
    got = run(a, sa, format, Typed("bfloat16", array("bfloat16", one)), None, "bf16", (16, 1))
    np.testing.assert_array_equal(
        got[:, 0], (av[:, 9] * 2.0 ** (exponent - 127)).astype(np.float32)
    )


@pytest.mark.parametrize("side", ["lhs", "rhs"])
@pytest.mark.parametrize("lhs, rhs", [("e2m1", "e4m3"), ("e5m2", "bf16"), ("bf16", "fp16")])
def test_a_scale_of_255_is_nan(lhs, rhs, side):
    a, av, b, bv = problem(lhs, rhs)
    sa, sb = scales((16, 2), 3), scales((16, 2), 4)
    if side == "lhs":
        sa[3, 1] = sa[9, 0] = 255
    else:
        sb[0, 0] = sb[15, 1] = 255
    x, y = av * factor(sa), bv * factor(sb).T
    got = run(a, sa, lhs, b, sb, rhs, (16, 16))
    bad = np.zeros((16, 16), bool)
    bad[[3, 9] if side == "lhs" else np.s_[:]] |= side == "lhs"
    if side == "rhs":
        bad[:, [0, 15]] = True
    assert (np.isnan(got) == bad).all()
    check(got, x, y)


def test_groups_along_k_have_their_own_scale():
    a = Typed("bfloat16", array("bfloat16", np.ones((1, 128))))
    b = Typed("bfloat16", array("bfloat16", np.ones((128, 1))))
    sa = np.array([[127, 128, 129, 130]], np.uint8)
    sb = np.array([[127, 127, 128, 120]], np.uint8)
    got = run(a, sa, "bf16", b, sb, "bf16", (1, 1))
    assert got[0, 0] == 32 * (1 + 2 + 8 + 8 / 128)


@pytest.mark.parametrize("lhs, rhs", [("e2m1", "e2m1"), ("e2m1", "bf16"), ("e4m3", "e2m1")])
def test_scales_in_fp8_are_for_groups_of_16(lhs, rhs):
    a, av, b, bv = problem(lhs, rhs)
    values = [0.25, 0.5, 1, 1.5, 2, 3, 448, 0]
    sa = np.random.default_rng(5).choice(values, (16, 4))
    sb = np.random.default_rng(6).choice(values, (16, 4))
    got = run(
        a, Typed("float8e4nv", array("float8e4nv", sa)), lhs,
        b, Typed("float8e4nv", array("float8e4nv", sb)), rhs, (16, 16),
    )  # fmt: skip
    check(got, av * np.repeat(sa, 16, -1), bv * np.repeat(sb, 16, -1).T)


@pytest.mark.parametrize(
    "value, exponent", [(0, 17), (0, 100), (2.0**-10, 20), (2.0**-14, 28), (2.0**15, -26)]
)
def test_scales_beyond_fp16_of_numbers_within(value, exponent):
    """Beside fp16 an operand is scaled first and converted then."""
    a = Typed("float16", array("float16", np.ones((1, 32))))
    b = Typed("float8e5", array("float8e5", np.full((32, 1), value)))
    scale = np.full((1, 1), 127 + exponent, np.uint8)
    got = run(a, None, "fp16", b, scale, "e5m2", (1, 1))
    assert got[0, 0] == 32 * value * 2.0**exponent


# ---- the accumulator and other arguments ----------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        "tl.dot_scaled(a, sa, 'e4m3', b, sb, 'e2m1', c)",
        "tl.dot_scaled(a, sa, 'e4m3', b, sb, 'e2m1', acc=c)",
        "tl.dot_scaled(lhs=a, lhs_scale=sa, lhs_format='e4m3', rhs=b, rhs_scale=sb, rhs_format='e2m1', acc=c, fast_math=False, lhs_k_pack=True, rhs_k_pack=True, out_dtype=tl.float32)",
        "tl.dot_scaled(a, sa, 'e4m3', b, sb, 'e2m1', c, True)",
        "tl.dot_scaled(a, sa, 'e4m3', b, sb, 'e2m1', c, fast_math=True)",
        "tl.dot_scaled(a, sa, 'e4m3', b, sb, 'e2m1', c, False, True, True, tl.float32)",
        "c + tl.dot_scaled(a, sa, 'e4m3', b, sb, 'e2m1')",
        "c + tl.dot_scaled(a, sa, 'e4m3', b, sb, 'e2m1', None)",
    ],
)
def test_spellings(call):
    a, av, b, bv = problem("e4m3", "e2m1")
    sa, sb = scales((16, 2), 3), scales((16, 2), 4)
    c = np.random.default_rng(7).integers(-99, 99, (16, 16)).astype(np.float32)
    inputs = {"a": a, "b": b, "sa": sa, "sb": sb, "c": c}
    check(
        tiles(f"r = {call}", inputs, r=("float32", (16, 16))), av * factor(sa), bv * factor(sb).T, c
    )


def test_formats_from_constexprs():
    a, av, b, bv = problem("e5m2", "e4m3")
    body = "F: tl.constexpr = 'e5m2'\nr = tl.dot_scaled(a, None, F, b, None, 'e' + '4m3')"
    check(tiles(body, {"a": a, "b": b}, r=("float32", (16, 16))), av, bv)


def test_in_a_loop_over_k():
    k = 96
    a, av, b, bv = problem("e2m1", "e4m3", k=k)
    sa, sb = scales((16, 3), 3), scales((16, 3), 4)
    body = f"""
        r = tl.zeros((16, 16), tl.float32)
        i, j = tl.arange(0, 16), tl.arange(0, 32)
        for k in range(3):
            x = tl.load(a + i[:, None] * {k // 2} + k * 16 + tl.arange(0, 16)[None, :])
            y = tl.load(b + (k * 32 + j[:, None]) * 16 + i[None, :])
            u = tl.load(sa + i[:, None] * 3 + k)
            v = tl.load(sb + i[:, None] * 3 + k)
            r = tl.dot_scaled(x, u, "e2m1", y, v, "e4m3", acc=r)
    """
    inputs = {"a": a, "b": b, "sa": sa, "sb": sb}
    got = tiles(body, inputs, pointers=["a", "b", "sa", "sb"], r=("float32", (16, 16)))
    check(got, av * factor(sa), bv * factor(sb).T)


def test_views():
    a, av, b, bv = problem("bf16", "e4m3", k=16 * 4, n=32)
    sa, sb = scales((16, 2), 3), scales((32, 2), 4)
    flip = {
        "a": Typed(a.name, np.asfortranarray(a.array)),
        "b": Typed(b.name, b.array[:, ::-1]),
        "sa": np.asfortranarray(sa),
        "sb": sb[::-1],
    }
    body = "r = tl.dot_scaled(a, sa, 'bf16', b, sb, 'e4m3')"
    got = tiles(body, flip, r=("float32", (16, 32)))
    check(got, av * factor(sa), (bv * factor(sb).T)[:, ::-1])


# ---- refusals -------------------------------------------------------------------------------------

TYPES_OF_REFUSALS = {
    "x": "uint8[16, 32]", "y": "uint8[32, 16]", "s": "uint8[16, 1]", "t": "uint8[16, 2]",
    "f": "float32[16, 32]", "h": "float16[16, 32]", "w": "float32[16, 16]", "d": "float64[16, 16]",
    "z": "uint8[64, 16]", "i": "int8[16, 1]", "q": "uint8[2, 2, 16, 32]", "p": "uint8[2, 2, 32, 16]",
}  # fmt: skip


@pytest.mark.parametrize(
    "arguments, id, message",
    [
        ("x, s, 'e3m2', y, s, 'e4m3'", "static-assert", "e3m2"),
        ("x, s, 'e4m3', y, s, 'fp4'", "static-assert", "fp4"),
        ("x, s, 'e4m3', y, s, 'e4m3', out_dtype=tl.float16", "static-assert", "float32"),
        ("x, t, 'e4m3', y, s, 'e4m3'", "static-assert", "32 elements along K"),
        ("x, s, 'e4m3', y, t, 'e4m3'", "static-assert", "32 elements along K"),
        ("x, s, 'e4m3', z, t, 'e4m3'", None, ""),
        ("x, s, 'e4m3', y, s", "bad-call", ""),
        ("x, s, s, y, s, 'e4m3'", None, ""),
        ("x, s, 'e4m3', y, s, 'e4m3', acc=d", None, ""),
        ("x, s, 'e4m3', y, s, 'e4m3', acc=s", None, ""),
        ("x, s, 'e4m3', s, s, 'e4m3'", None, ""),
    ],
)
def test_calls_that_are_refused(arguments, id, message):
    refused(f"tl.dot_scaled({arguments})", id, message, **TYPES_OF_REFUSALS)


@pytest.mark.parametrize(
    "arguments",
    [
        "f, None, 'bf16', y, s, 'e4m3'",
        "f, s, 'e4m3', y, s, 'e4m3'",
        "h, s, 'bf16', y, s, 'e4m3'",
        "h, s, 'e5m2', y, s, 'e4m3'",
        "x, s, 'fp16', y, s, 'e4m3'",
        "x.to(tl.int32), s, 'e4m3', y, s, 'e4m3'",
    ],
)
def test_operands_of_another_type_than_their_format(arguments):
    refused(f"tl.dot_scaled({arguments})", None, **TYPES_OF_REFUSALS)


@pytest.mark.parametrize("option", ["lhs_k_pack=False", "rhs_k_pack=False"])
def test_only_e2m1_is_packed(option):
    refused(f"tl.dot_scaled(x, s, 'e4m3', y, s, 'e4m3', {option})", None, **TYPES_OF_REFUSALS)


@pytest.mark.parametrize("scale", ["i", "s.to(tl.int32)", "s.to(tl.float32)"])
def test_scales_of_other_types(scale):
    refused(f"tl.dot_scaled(x, {scale}, 'e4m3', y, s, 'e4m3')", None, **TYPES_OF_REFUSALS)


def test_four_axes():
    refused("tl.dot_scaled(q, None, 'e4m3', p, None, 'e4m3')", None, **TYPES_OF_REFUSALS)
