"""`tl.fdiv`, `div_rn`, `fma`, `umulhi`, `cdiv`."""

import fractions

import numpy as np
import pytest

from ._common import SIZES, compiles, refused, same, tiles, value
from ._numbers import INTS, TYPES, Typed, common, crossed, decode, encode, samples, wrap

COVERS = ["fdiv", "div_rn", "fma", "umulhi", "cdiv"]

PAIRS = [
    ("float32", "float32"), ("float64", "float64"), ("float16", "float16"), ("bfloat16", "float16"),
    ("float32", "float64"), ("float16", "int32"), ("uint8", "bfloat16"),
]  # fmt: skip


def quotients(a, b, n=48):
    name = common(a, b, True)
    x, y = crossed(a, b, n)
    with np.errstate(all="ignore"):
        p, q = (decode(k, v).astype(TYPES[name].storage) for k, v in ((a, x), (b, y)))
        return name, {"x": Typed(a, x), "y": Typed(b, y)}, p / q


@pytest.mark.parametrize("a, b", PAIRS)
@pytest.mark.parametrize(
    "arguments",
    ["x, y", "x=x, y=y", "x, y, ieee_rounding=True", "x, y, True", "x, y, approx=False"],
)
def test_fdiv(arguments, a, b):
    name, inputs, want = quotients(a, b)
    same(value(f"tl.fdiv({arguments})", name, inputs=inputs), want)


def test_fdiv_approximately():
    name, inputs, want = quotients("float32", "float32")
    got = value("tl.fdiv(x, y, approx=True)", name, inputs=inputs)
    with np.errstate(all="ignore"):
        small = np.abs(got / want - 1) < 1e-5
    assert (
        small | (got == want) | np.isnan(want) | (np.abs(want) < 1e-37) | (np.abs(want) > 1e37)
    ).all()


@pytest.mark.parametrize("arguments", ["x, y", "x=x, y=y"])
def test_div_rn(arguments):
    name, inputs, want = quotients("float32", "float32", 64)
    same(value(f"tl.div_rn({arguments})", name, inputs=inputs), want)


def test_literals_and_shapes():
    x = np.array([1.0, 3.0], np.float32)
    same(value("tl.fdiv(1.0, x)", "float32", inputs={"x": x}), 1 / x)
    same(value("tl.div_rn(x, 3)", "float32", inputs={"x": x}), x / np.float32(3))
    same(value("tl.fdiv(x[:, None], x[None, :])", "float32", (2, 2), {"x": x}), x[:, None] / x)
    refused("tl.fdiv(x, y)", "shape-mismatch", x=np.zeros(8), y=np.zeros(4))


@pytest.mark.parametrize("function", ["fdiv", "div_rn"])
@pytest.mark.parametrize("name", ["int32", "uint8", "int1"])
def test_integers_are_refused(name, function):
    refused(f"tl.{function}(x, x)", "type-mismatch", "wants floats", x=name)


def test_fdiv_is_not_both_exact_and_approximate():
    refused("tl.fdiv(x, x, ieee_rounding=True, approx=True)", None, x="float32")


# ---- fma ------------------------------------------------------------------------------------------


def fused(x, y, z):
    """The exact value, rounded to odd in float64, or what float64 makes of infinities and NaN."""
    if not all(map(np.isfinite, (x, y, z))):
        with np.errstate(all="ignore"):
            return np.float64(x) * y + z
    F = fractions.Fraction
    exact = F(float(x)) * F(float(y)) + F(float(z))
    try:
        near = float(exact)
    except OverflowError:
        return np.copysign(np.inf, exact)
    if exact == 0:
        return np.float64(x) * y + z
    if F(near) != exact and np.float64(near).view(np.uint64) % 2 == 0:
        # Of the two neighbours the odd one, so that rounding again rounds as once.
        near = np.nextafter(near, np.inf if exact > F(near) else -np.inf)
    return near


@pytest.mark.parametrize(
    "name", ["float16", "bfloat16", "float32"]
)
def test_fma_rounds_once(name):
    x, y = crossed(name, name, 40)
    z = np.resize(samples(name, 301, seed=9), x.shape)
    exact = np.array([fused(*v) for v in zip(*(decode(name, v) for v in (x, y, z)))])
    inputs = {"x": Typed(name, x), "y": Typed(name, y), "z": Typed(name, z)}
    got = value("tl.fma(x, y, z)", name, inputs=inputs)
    same(got, encode(name, exact), name)


def test_fma_of_float16_rounds_a_near_tie_once():
    # 3 * 683 lies half way between 2048 and 2050; the least addend decides.
    x = {"x": np.array([3.0], np.float16), "y": np.float16(683), "z": np.float16(2.0**-24)}
    assert value("tl.fma(x, y, z)", "float16", (1,), x).tolist() == [2050.0]


def test_fma_of_float64():
    x = np.array([1 + 2.0**-30, 3.0, 1e200], np.float64)
    z = np.array([-(1 + 2.0**-29), 0.25, -np.inf])
    F = fractions.Fraction
    want = [
        float(F(a) * F(a) + F(b)) if np.isfinite(b) else b for a, b in zip(x.tolist(), z.tolist())
    ]
    assert value("tl.fma(x, y=x, z=z)", "float64", (3,), {"x": x, "z": z}).tolist() == want


def test_fma_promotes_and_broadcasts():
    compiles("tl.static_assert(tl.fma(x, 2.0, 1.0).dtype == tl.float16)", x="float16")
    compiles("tl.static_assert(tl.fma(x, y, 1).dtype == tl.float32)", x="float16", y="float32")
    compiles("tl.static_assert(tl.fma(x, x, y).dtype == tl.float64)", x="float16", y="float64")
    x, y = np.array([1.0, 2.0], np.float32), np.array([[3.0], [4.0]], np.float32)
    same(value("tl.fma(x, y, 0.5)", "float32", (2, 2), {"x": x, "y": y}), x * y + np.float32(0.5))
    refused("tl.fma(x, x, x)", "type-mismatch", "wants floats", x="int32")
    refused("tl.fma(x, x)", "bad-call", x="float32")


@pytest.mark.parametrize("n", SIZES)
def test_odd_sizes(n):
    x = samples("float32", n)
    with np.errstate(all="ignore"):
        want = (x.astype(np.float64) * 0.5 + 1).astype(np.float32)
    same(value("tl.fma(x, 0.5, 1.0)", "float32", inputs={"x": x}), want)


# ---- umulhi ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("a", ["int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("b", ["int32", "uint32", "int64", "uint64", "int8", "uint16"])
def test_umulhi_takes_the_operands_as_unsigned(a, b):
    name = common(a, b)
    bits = TYPES[name].bits
    x, y = crossed(a, b, 24)
    p, q = (wrap(f"uint{bits}", v.astype(object)) for v in (x, y))
    want = wrap(name, [int(u) * int(v) >> bits for u, v in zip(p, q)])
    same(value("tl.umulhi(x, y)", name, inputs={"x": x, "y": y}), want)
    same(value("tl.umulhi(x=x, y=y)", name, inputs={"x": x, "y": y}), want)


@pytest.mark.parametrize("name", ["int1", "int8", "uint8", "int16", "uint16", "float32", "float64"])
def test_umulhi_of_other_types(name):
    refused("tl.umulhi(x, x)", "type-mismatch", "32 or 64 bits", x=name)


def test_umulhi_of_literals():
    x = np.array([1 << 20, 3 << 30], np.uint32)
    assert value("tl.umulhi(x, 0xD2511F53)", "uint32", inputs={"x": x}).tolist() == [
        int(v) * 0xD2511F53 >> 32 for v in x
    ]


# ---- cdiv -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", INTS)
def test_cdiv(name):
    """`(x + (y - 1)) // y` in the type, truncating: so it is wrong for negative numbers, as in Triton."""
    x, y = crossed(name, name, 24)
    x, y = x[y != 0], y[y != 0]
    top = wrap(name, x.astype(object) + (y.astype(object) - 1)).astype(object)
    want = [
        abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) for a, b in zip(top, y.astype(object))
    ]
    keep = np.array([not (a == TYPES[name].low and b == -1) for a, b in zip(top, y.astype(object))])
    for call in ("tl.cdiv(x, y)", "x.cdiv(y)", "tl.cdiv(x=x, div=y)", "x.cdiv(div=y)"):
        same(value(call, name, inputs={"x": x, "y": y})[keep], wrap(name, want)[keep])


def test_cdiv_of_scalars_and_constexprs():
    for n in (1, 7, 8, 9):
        assert tiles("r = tl.to_tensor(tl.cdiv(n, 4))", {"n": n}, r="int32") == -(-n // 4)
    compiles("tl.static_assert(tl.cdiv(9, 4) == 3)", "x = tl.zeros((tl.cdiv(9, 4) + 1,), tl.int8)")
    assert value("tl.cdiv(n, 4)", "int64", inputs={"n": 2**40 + 1}) == 2**38 + 1
    refused("tl.cdiv(x, 4)", "type-mismatch", x="float32")
    # The sum is unsigned already when it is divided.
    compiles("tl.static_assert(tl.cdiv(x, y).dtype == tl.uint32)", x="int32", y="uint32")
    refused("tl.cdiv(x, y)", "type-mismatch", "signedness", x="int64", y="uint32")
