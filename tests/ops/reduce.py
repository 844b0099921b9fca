"""`tl.reduce`: combine functions of one and several tiles, dtypes, axes, refusals."""

import numpy as np
import pytest

from ._common import SIZES, functions, refused, same, tiles, value
from ._numbers import ALL, TYPES, Typed, samples
from .sum import AXES

COVERS = ["reduce"]

FUNCTIONS = functions(
    """
@triton.jit
def plus(a, b):
    return a + b

@triton.jit
def larger(a, b):
    return tl.maximum(a, b)

@triton.jit
def both(a, b):
    return a & b

@triton.jit
def last(a, b):
    return b

@triton.jit
def branching(a, b):
    if a > b:
        r = a
    else:
        r = b
    return r

@triton.jit
def composed(a, b):
    return larger(a, b)

@triton.jit
def wider(a, b):
    return a.to(tl.int64) + b

@triton.jit
def mean(m1, n1, m2, n2):
    n = n1 + n2
    return (m1 * n1 + m2 * n2) / n, n

@triton.jit
def farthest(v1, i1, v2, i2):
    left = (tl.abs(v1) > tl.abs(v2)) | ((tl.abs(v1) == tl.abs(v2)) & (i1 < i2))
    return tl.where(left, v1, v2), tl.where(left, i1, i2)

@triton.jit
def three(a, b, c, x, y, z):
    return a + x, tl.minimum(b, y), c | z

@triton.jit
def one_of_two(a, b, x, y):
    return a

@triton.jit
def tile(a, b):
    return tl.full((2,), 0, tl.int32)

@triton.jit
def nothing(a, b):
    pass
"""
)


def reduced(call, dtype, shape=None, inputs=None):
    return value(call, dtype, shape, inputs, names=FUNCTIONS)


@pytest.mark.parametrize("shape, axis, numpy_axis", AXES)
@pytest.mark.parametrize("keep", [False, True])
def test_axes(keep, shape, axis, numpy_axis):
    x = np.random.default_rng(8).integers(-99, 99, shape).astype(np.int32)
    for name, f in (
        ("plus", np.add),
        ("larger", np.maximum),
        ("both", np.bitwise_and),
        ("branching", np.maximum),
        ("composed", np.maximum),
    ):
        want = np.asarray(f.reduce(x, axis=numpy_axis, keepdims=keep), np.int32)
        for call in (
            f"tl.reduce(x, {axis}, {name}, {keep})",
            f"x.reduce(axis={axis}, combine_fn={name}, keep_dims={keep})",
        ):
            same(reduced(call, "int32", want.shape, {"x": x}), want)


@pytest.mark.parametrize("name", [n for n in ALL if not TYPES[n].is_fp8])
def test_the_type_is_kept(name):
    """Unlike `sum` and `max`, which widen."""
    x = samples(name, 8)
    got = reduced("tl.reduce(x, 0, larger)", name, (), {"x": Typed(name, x)})
    assert got.shape == ()
    got = reduced("tl.reduce(x, 0, plus)", name, (), {"x": Typed(name, np.zeros(8, x.dtype))})
    same(got, np.zeros((), x.dtype), name)


def test_a_sum_in_a_narrow_type_wraps():
    x = np.full(8, 100, np.int8)
    assert reduced("tl.reduce(x, 0, plus)", "int8", (), {"x": x}) == np.int64(800).astype(np.int8)


def test_what_a_wider_result_becomes():
    """The result returns to the type of the tile."""
    x = np.arange(8, dtype=np.int32)
    assert reduced("tl.reduce(x, 0, wider)", "int32", (), {"x": x}) == 28


@pytest.mark.parametrize("n", SIZES)
def test_several_tiles_of_several_types(n):
    a = np.arange(n, dtype=np.int64)
    b = np.linspace(5, -5, n).astype(np.float32)
    c = (1 << (np.arange(n) % 31)).astype(np.uint32)
    body = "p, q, r = tl.reduce((a, b, c), axis=0, combine_fn=three)"
    p, q, r = tiles(
        body,
        {"a": a, "b": b, "c": c},
        other={"b": "1e30"},
        names=FUNCTIONS,
        p=("int64", ()),
        q=("float32", ()),
        r=("uint32", ()),
    )
    assert p == a.sum() and q == b.min() and r == np.bitwise_or.reduce(c)


def test_pairs_along_an_axis():
    x = np.random.default_rng(9).standard_normal((4, 8)).astype(np.float32)
    body = "m, n = tl.reduce((x, tl.full((4, 8), 1.0, tl.float32)), {}, mean{})"
    for axis in (0, 1):
        shape = x.mean(axis).shape
        m, n = tiles(
            body.format(axis, ""),
            {"x": x},
            names=FUNCTIONS,
            m=("float32", shape),
            n=("float32", shape),
        )
        np.testing.assert_allclose(m, x.mean(axis), rtol=1e-4, atol=1e-6)
        assert (n == x.shape[axis]).all()
        kept = x.mean(axis, keepdims=True).shape
        m, n = tiles(
            body.format(axis, ", keep_dims=True"),
            {"x": x},
            names=FUNCTIONS,
            m=("float32", kept),
            n=("float32", kept),
        )
        np.testing.assert_allclose(m, x.mean(axis, keepdims=True), rtol=1e-4, atol=1e-6)


def test_indices_travel_with_values():
    x = np.array([[1.0, -9.0, 9.0, 2.0], [0.5, 0.25, -0.5, 0.0]], np.float32)
    body = (
        "v, i = tl.reduce((x, tl.arange(0, 4)[None, :] + tl.zeros((2, 4), tl.int32)), 1, farthest)"
    )
    v, i = tiles(body, {"x": x}, names=FUNCTIONS, v=("float32", (2,)), i=("int32", (2,)))
    assert v.tolist() == [-9.0, 0.5] and i.tolist() == [1, 0]


def test_the_form_of_what_goes_in_comes_out():
    x = np.arange(8, dtype=np.int32)
    assert reduced("tl.reduce(x, 0, plus)", "int32", (), {"x": x}) == 28
    assert reduced("tl.reduce((x,), 0, plus)[0]", "int32", (), {"x": x}) == 28


def test_a_function_that_is_an_argument():
    before = "@triton.jit\ndef total(x, f: tl.constexpr):\n    return tl.reduce(x, 0, f)\n"
    call = "total(x, plus) + total(x, larger)"
    x = np.arange(8, dtype=np.int32)
    assert value(call, "int32", (), {"x": x}, before=before, names=FUNCTIONS) == 35


@pytest.mark.parametrize(
    "call, id, message",
    [
        ("tl.reduce(x, 1, plus)", None, ""),
        ("tl.reduce(x, (0,), plus)", None, ""),
        ("tl.reduce(x, 0)", "bad-call", ""),
        ("tl.reduce(x, 0, 5)", None, ""),
        ("tl.reduce(x, 0, mean)", None, ""),
        ("tl.reduce((x, x), 0, plus)", None, ""),
        ("tl.reduce((x, x), 0, one_of_two)", "bad-return", "returns 1 values, 2 are wanted"),
        ("tl.reduce((x, y), 0, one_of_two)", "shape-mismatch", ""),
        ("tl.reduce((), 0, plus)", "bad-argument", "at least one tile"),
        ("tl.reduce(x, 0, tile)", "bad-return", ""),
        ("tl.reduce(x, 0, nothing)", None, ""),
        ("tl.reduce(s, 0, plus)", "bad-shape", "wants a tile, not a scalar"),
    ],
)
def test_reductions_that_are_refused(call, id, message):
    refused(call, id, message, names=FUNCTIONS, x="int32", y="int32[4]", s="scalar int32")
