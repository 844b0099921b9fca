"""Elementwise functions of one float, as `tl.f`, `tl.math.f` and methods; `tl.abs` of every type."""

import math

import numpy as np
import pytest

from ._common import SIZES, close, compiles, define, refused, same, value
from ._numbers import ALL, FLOATS, FP8, SIGNED, TYPES, UNSIGNED, Typed, decode, samples

COVERS = [
    "abs", "exp", "exp2", "log", "log2", "sin", "cos", "sqrt", "sqrt_rn", "rsqrt", "erf", "floor",
    "ceil", "libdevice.tanh",
]  # fmt: skip

erf = np.vectorize(math.erf, otypes=[float])

# The function in float64, and the units in the last place allowed in float32 and in float64.
FUNCTIONS = {
    "exp": (np.exp, 1, 2),
    "exp2": (np.exp2, 1, 2),
    "log": (np.log, 1, 2),
    "log2": (np.log2, 1, 2),
    "sin": (np.sin, 1, 2),
    "cos": (np.cos, 1, 2),
    "sqrt": (np.sqrt, 0.5, 0.5),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 1.5, 2),
    "erf": (erf, 1, 2),
    "floor": (np.floor, 0, 0),
    "ceil": (np.ceil, 0, 0),
}
# What libdevice holds only.
LIBDEVICE = {"tanh": (np.tanh, 1, 2)}


def arguments(dtype):
    """Corners, every size, and the ranges in which the functions have their shapes."""
    rng = np.random.default_rng(7)
    return np.concatenate(
        [
            samples(np.dtype(dtype).name, 2048),
            rng.uniform(-1, 1, 512),
            rng.uniform(-8, 8, 512),
            rng.uniform(-110, 110, 512),
            np.linspace(0.99, 1.01, 256),
            np.arange(-128, 128) * (np.pi / 4),
        ]
    ).astype(dtype)


def check(call, f, ulps, dtype):
    x = arguments(dtype)
    with np.errstate(all="ignore"):
        want = f(x.astype(np.float64))
    close(value(call, np.dtype(dtype).name, inputs={"x": x}), want, ulps)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name, dtype):
    f, *ulps = FUNCTIONS[name]
    check(f"tl.{name}(x)", f, ulps[dtype is np.float64], dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", LIBDEVICE)
def test_functions_of_libdevice(name, dtype):
    f, *ulps = LIBDEVICE[name]
    for place in ("tl.extra.libdevice", "tl.extra.cuda.libdevice", "tl.math", "tl.libdevice"):
        check(f"{place}.{name}(x)", f, ulps[dtype is np.float64], dtype)


def test_sqrt_rn_is_correctly_rounded():
    with np.errstate(invalid="ignore"):
        x = np.abs(arguments(np.float32))
        same(value("tl.sqrt_rn(x)", "float32", inputs={"x": x}), np.sqrt(x))


@pytest.mark.parametrize("name", [*FUNCTIONS, "sqrt_rn"])
def test_spellings(name):
    x = np.linspace(0.1, 4, 16, dtype=np.float32)
    want = value(f"tl.{name}(x)", "float32", inputs={"x": x})
    for call in (f"tl.math.{name}(x)", f"x.{name}()", f"tl.{name}(x=x)"):
        same(value(call, "float32", inputs={"x": x}), want)
    # A literal becomes a float32, an integer too.
    one = value(f"tl.{name}(x)", "float32", inputs={"x": np.float32(1)})
    same(value(f"tl.{name}(1.0)", "float32"), one)
    same(value(f"tl.{name}(1)", "float32"), one)


SPECIAL = [
    ("exp", [np.inf, -np.inf, 0.0, -0.0], [np.inf, 0.0, 1.0, 1.0]),
    ("exp", [88.8, -104.0, 89.0, -110.0], [np.inf, 0.0, np.inf, 0.0]),
    ("exp2", [128.0, -151.0, 127.0, -149.0], [np.inf, 0.0, 2.0**127, 2.0**-149]),
    ("log", [0.0, -0.0, -1.0, np.inf], [-np.inf, -np.inf, np.nan, np.inf]),
    ("log2", [8.0, 0.25, 0.0, 2.0**-149], [3.0, -2.0, -np.inf, -149.0]),
    ("sin", [np.inf, 0.0, -0.0, np.nan], [np.nan, 0.0, -0.0, np.nan]),
    ("cos", [np.inf, 0.0, -0.0, np.nan], [np.nan, 1.0, 1.0, np.nan]),
    ("sqrt", [4.0, 0.0, -0.0, -1.0], [2.0, 0.0, -0.0, np.nan]),
    ("rsqrt", [4.0, 0.0, np.inf, -1.0], [0.5, np.inf, 0.0, np.nan]),
    ("erf", [np.inf, -np.inf, 0.0, -0.0], [1.0, -1.0, 0.0, -0.0]),
    ("floor", [1.5, -1.5, -0.0, 2.0**30], [1.0, -2.0, -0.0, 2.0**30]),
    ("ceil", [1.5, -1.5, -0.5, -np.inf], [2.0, -1.0, -0.0, -np.inf]),
    ("floor", [np.nan, np.inf, 0.25, -0.25], [np.nan, np.inf, 0.0, -1.0]),
]


@pytest.mark.parametrize("name, x, want", SPECIAL)
def test_special_values(name, x, want):
    x, want = np.array(x, np.float32), np.array(want, np.float32)
    same(value(f"tl.{name}(x)", "float32", inputs={"x": x}), want)


def test_large_angles_are_reduced_exactly():
    x = np.array([1e5, 1e8, 1e22, 3e38, -12345678.0], np.float32)
    for name in ("sin", "cos"):
        close(
            value(f"tl.{name}(x)", "float32", inputs={"x": x}),
            FUNCTIONS[name][0](x.astype(np.float64)),
            1,
        )


@pytest.mark.parametrize("name", [*FUNCTIONS, "sqrt_rn"])
def test_other_types_are_refused(name):
    wrong = [t for t in ALL if t not in ("float32", "float64")] + ["float64"] * (name == "sqrt_rn")
    for dtype in wrong:
        refused(f"tl.{name}(x)", "type-mismatch", "wants float32", x=dtype)
    refused(f"tl.{name}(p)", "type-mismatch", p="float32", pointers="p")


@pytest.mark.parametrize("shape", [(), (1,), (4, 2), (2, 1, 4), (2, 2, 2, 2)])
def test_ranks(shape):
    x = np.asarray(np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape))
    same(value("tl.sqrt(x)", "float32", inputs={"x": x}), np.sqrt(x))


@pytest.mark.parametrize("n", SIZES)
def test_odd_sizes_and_views(n):
    x = np.linspace(0, 9, 3 * n, dtype=np.float32)
    for view in (x[::3], x[n::-1], x[1 : n + 1]):
        same(value("x.floor()", "float32", inputs={"x": view}), np.floor(view))


def test_a_grid_of_programs():
    kernel = define(
        """
        @triton.jit
        def kernel(out, x, n, BLOCK: tl.constexpr):
            i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            tl.store(out + i, tl.math.exp2(tl.load(x + i, mask=i < n)), mask=i < n)
        """
    )["kernel"]
    for n in (0, *SIZES):
        x, out = np.arange(n, dtype=np.float32) % 100, np.zeros(n, np.float32)
        kernel[(-(-n // 128),)](out, x, n, BLOCK=128)
        same(out, np.exp2(x))


# ---- abs ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SIGNED)
def test_abs_of_integers_wraps_at_the_least(name):
    x = samples(name, 64)
    with np.errstate(over="ignore"):
        same(value("tl.abs(x)", name, inputs={"x": x}), np.abs(x))
    assert TYPES[name].low in value("x.abs()", name, inputs={"x": x})


@pytest.mark.parametrize("name", [*UNSIGNED, "int1"])
def test_abs_of_unsigned_integers_is_nothing(name):
    x = samples(name, 64)
    same(value("tl.abs(x=x)", name, inputs={"x": x}), x)


@pytest.mark.parametrize("name", FLOATS + FP8)
def test_abs_of_floats_clears_the_sign(name):
    x = samples(name, 128)
    if TYPES[name].is_fp8:
        x = x[np.isfinite(decode(name, x))]
    got = value("tl.math.abs(x)", name, inputs={"x": Typed(name, x)})
    same(decode(name, got), np.abs(decode(name, x)))


def test_abs_of_literals():
    compiles("tl.static_assert(tl.abs(-3).dtype == tl.int32)")
    assert value("tl.abs(-3)", "int32") == 3
    assert value("tl.abs(-2.5)", "float32") == 2.5
    refused("tl.abs(p)", "type-mismatch", p="float32", pointers="p")
