"""`tl.flip`: every axis and dtype, its spellings, views, what it undoes, refusals."""

import numpy as np
import pytest

from ._common import SIZES, power, refused, same, tiles, value
from ._numbers import ALL, Typed, samples

COVERS = ["flip"]

SHAPES = [(1,), (8,), (64,), (4, 8), (1, 8), (8, 1), (2, 4, 8), (2, 1, 4), (2, 2, 4, 2)]


def numbered(shape):
    return np.asarray(np.arange(int(np.prod(shape)), dtype=np.int32).reshape(shape))


@pytest.mark.parametrize("shape", SHAPES)
def test_axes(shape):
    x = numbered(shape)
    for axis in range(-len(shape), len(shape)):
        for call in (f"tl.flip(x, {axis})", f"x.flip(dim={axis})", f"tl.flip(x=x, dim={axis})"):
            same(value(call, "int32", inputs={"x": x}), np.flip(x, axis))
    # The default is the last axis.
    for call in ("tl.flip(x)", "x.flip()", "tl.flip(x, None)"):
        same(value(call, "int32", inputs={"x": x}), np.flip(x, -1))


@pytest.mark.parametrize("name", ALL)
def test_every_type_keeps_its_bits(name):
    x = samples(name, 32)
    got = value("tl.flip(x)", name, inputs={"x": Typed(name, x)})
    assert got.tobytes() == x[::-1].tobytes()


@pytest.mark.parametrize("n", SIZES)
def test_what_pads_comes_to_the_front(n):
    x = np.arange(1, n + 1, dtype=np.int64)
    padded = np.zeros(power(n), np.int64)
    padded[:n] = x
    got = value("tl.flip(x)", "int64", (power(n),), inputs={"x": x}, other={"x": "0"})
    same(got, padded[::-1])


def test_views():
    x = numbered((8, 8))
    for view in (x.T, x[::-1, ::2], x[4:, :2]):
        for axis in (0, 1):
            same(value(f"tl.flip(x, {axis})", "int32", inputs={"x": view}), np.flip(view, axis))


def test_pointers_and_what_is_not_in_memory():
    x = np.arange(8, dtype=np.float32)
    same(
        value("tl.load(tl.flip(x + tl.arange(0, 8)))", "float32", (8,), {"x": x}, pointers="x"),
        x[::-1],
    )
    same(value("tl.flip(tl.arange(3, 11))", "int32", (8,)), np.arange(10, 2, -1, dtype=np.int32))
    same(
        value("tl.flip(tl.full((2, 4), 7, tl.int8), 0)", "int8", (2, 4)),
        np.full((2, 4), 7, np.int8),
    )


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_twice_is_nothing(axis):
    x = numbered((2, 4, 8))
    same(value(f"tl.flip(tl.flip(x, {axis}), {axis})", "int32", inputs={"x": x}), x)


def test_in_a_loop():
    x = numbered((8,))
    got = tiles("r = x\nfor i in range(3):\n    r = tl.flip(r) + i", {"x": x}, r=("int32", (8,)))
    same(got, x[::-1] + np.int32(3))


@pytest.mark.parametrize(
    "call, id",
    [
        ("tl.flip(x, 2)", "bad-argument"),
        ("tl.flip(x, -3)", "bad-argument"),
        ("tl.flip(x, 0, 1)", "bad-call"),
        ("tl.flip()", "bad-call"),
        ("n = 0\ntl.flip(x, n)", "not-constexpr"),
        ("tl.flip(x, (0, 1))", None),
        ("tl.flip(x, axis=0)", "bad-call"),
    ],
)
def test_flips_that_are_refused(call, id):
    refused(call, id, x="int32[4, 8]")
