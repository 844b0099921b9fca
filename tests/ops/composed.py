"""`tl.sigmoid`, `softmax`, `swizzle2d`."""

import itertools

import numpy as np
import pytest

import naiad as triton
import naiad.language as tl

from ._common import SIZES, close, compiles, refused, same, tiles, value
from ._numbers import ALL

COVERS = ["sigmoid", "softmax", "swizzle2d"]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("call", ["tl.sigmoid(x)", "x.sigmoid()", "tl.sigmoid(x=x)"])
def test_sigmoid(call, dtype):
    x = np.concatenate([np.linspace(-85, 40, 1000), [0.0, -0.0, np.inf, -np.inf, np.nan]]).astype(
        dtype
    )
    wide = x.astype(np.longdouble)
    with np.errstate(all="ignore"):
        want = (1 / (1 + np.exp(-wide))).astype(np.float64)
    close(value(call, np.dtype(dtype).name, inputs={"x": x}), want, 3)


@pytest.mark.parametrize("name", [n for n in ALL if n not in ("float32", "float64")])
def test_sigmoid_of_other_types(name):
    refused("tl.sigmoid(x)", "type-mismatch", "wants float32 or float64", x=name)


def softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


@pytest.mark.parametrize(
    "dtype, result", [("float32", "float32"), ("float64", "float64"), ("float16", "float32")]
)
@pytest.mark.parametrize(
    "shape, arguments, axis",
    [
        ((8,), "", 0), ((4, 8), "", 0), ((4, 8), ", 1", 1), ((4, 8), ", dim=-1", 1), ((4, 8), ", -2", 0),
        ((2, 4, 8), ", dim=1", 1), ((2, 2, 4, 2), ", dim=2", 2), ((4, 8), ", dim=1, keep_dims=True", 1),
        ((1, 16), ", 1, ieee_rounding=True", 1), ((16, 1), ", 1", 1),
    ],
)  # fmt: skip
def test_softmax(shape, arguments, axis, dtype, result):
    x = (np.random.default_rng(1).standard_normal(shape) * 8).astype(dtype)
    want = softmax(x.astype(np.float64), axis)
    got = value(f"tl.softmax(x{arguments})", result, inputs={"x": x})
    np.testing.assert_allclose(got, want, rtol=1e-12 if result == "float64" else 2e-6)
    same(value(f"x.softmax({arguments.removeprefix(', ')})", result, inputs={"x": x}), got)


def test_softmax_takes_the_maximum_off_first():
    x = np.array([1000.0, 1001.0, -np.inf, -1e30], np.float32)
    np.testing.assert_allclose(
        value("tl.softmax(x)", "float32", inputs={"x": x}), softmax(x.astype(float), 0), rtol=1e-6
    )


@pytest.mark.parametrize("n", SIZES)
def test_softmax_of_odd_sizes(n):
    x = np.linspace(-3, 5, n, dtype=np.float32)
    got = value("tl.softmax(x)", "float32", inputs={"x": x}, other={"x": "float('-inf')"})
    np.testing.assert_allclose(got, softmax(x.astype(float), 0), rtol=4e-6)


def test_softmax_that_is_refused():
    refused("tl.softmax(x)", None, x="int32")
    refused("tl.softmax(x, 2)", None, x="float32[4, 4]")
    refused("tl.softmax(x)", "bad-shape", x="scalar float32")


# ---- swizzle2d ------------------------------------------------------------------------------------


def swizzled(i, j, rows, columns, group):
    ij, per = i * columns + j, group * columns
    first = ij // per * group
    high = min(rows - first, group)
    return first + ij % per % high, ij % per // high


@triton.jit
def order(out, rows, columns, group):
    i, j = tl.swizzle2d(tl.program_id(0), tl.program_id(1), rows, columns, group)
    tl.store(out + 2 * (tl.program_id(0) * columns + tl.program_id(1)), i)
    tl.store(out + 2 * (tl.program_id(0) * columns + tl.program_id(1)) + 1, j)


@pytest.mark.parametrize(
    "rows, columns, group",
    [(4, 4, 2), (5, 7, 3), (8, 2, 8), (3, 5, 4), (1, 1, 1), (7, 1, 2), (2, 9, 1)],
)
def test_swizzle2d(rows, columns, group):
    out = np.full((rows, columns, 2), -1, np.int32)
    order[(rows, columns)](out, rows, columns, group)
    places = list(itertools.product(range(rows), range(columns)))
    want = [swizzled(i, j, rows, columns, group) for i, j in places]
    same(out, np.array(want, np.int32).reshape(out.shape))
    assert sorted(want) == places


def test_swizzle2d_of_tiles_and_constexprs():
    ij = np.arange(16, dtype=np.int32)
    body = "i, j = tl.swizzle2d(i=x // 4, j=x % 4, size_i=4, size_j=4, size_g=2)"
    i, j = tiles(body, {"x": ij}, i=("int32", (16,)), j=("int32", (16,)))
    assert list(zip(i, j)) == [swizzled(k // 4, k % 4, 4, 4, 2) for k in range(16)]
    compiles("tl.static_assert(tl.swizzle2d(1, 1, 4, 4, 2) == (1, 2))")
    assert swizzled(1, 1, 4, 4, 2) == (1, 2)
