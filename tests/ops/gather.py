"""`tl.gather`, `tl.flip`: every axis and type, methods, refusals."""

import numpy as np
import pytest

from ._common import SIZES, refused, same, value
from ._numbers import ALL, INTS, TYPES, Typed, samples

COVERS = ["gather", "flip"]


@pytest.mark.parametrize(
    "shape, to, axis",
    [
        ((8,), (8,), 0),
        ((8,), (2,), 0),
        ((4,), (16,), -1),
        ((4, 8), (4, 2), 1),
        ((4, 8), (16, 8), 0),
        ((4, 8), (4, 8), -1),
        ((2, 4, 8), (2, 16, 8), 1),
        ((2, 2, 2, 4), (2, 2, 2, 1), 3),
    ],
)
def test_gather(shape, to, axis):
    x = np.arange(int(np.prod(shape)), dtype=np.int32).reshape(shape)
    i = np.random.default_rng(2).integers(0, shape[axis], to).astype(np.int32)
    want = np.take_along_axis(x, i, axis)
    for call in (
        f"tl.gather(x, i, {axis})",
        f"x.gather(i, axis={axis})",
        f"tl.gather(src=x, index=i, axis={axis})",
    ):
        same(value(call, "int32", to, {"x": x, "i": i}), want)


@pytest.mark.parametrize("name", ALL)
def test_every_type(name):
    x = samples(name, 16)
    i = np.arange(15, -1, -1, dtype=np.int32)
    got = value("tl.gather(x, i, 0)", name, inputs={"x": Typed(name, x), "i": i})
    assert got.tobytes() == x[::-1].tobytes()
    assert value("tl.flip(x)", name, inputs={"x": Typed(name, x)}).tobytes() == x[::-1].tobytes()


@pytest.mark.parametrize("name", INTS)
def test_indices_of_every_type(name):
    i = np.array([3, 0, 2, 2], TYPES[name].storage)
    assert value(
        "tl.gather(x, i, 0)", "int32", (4,), {"x": np.arange(4, dtype=np.int32) * 7, "i": i}
    ).tolist() == [21, 0, 14, 14]


def test_an_index_out_of_range_ends():
    # What it reads is not said; the host must survive it.
    i = np.array([0, 99, -1, 2**31 - 1], np.int32)
    got = value("tl.gather(x, i, 0)", "int32", (4,), {"x": np.arange(1, 5, dtype=np.int32), "i": i})
    assert got[0] == 1


@pytest.mark.parametrize(
    "call, id",
    [
        ("tl.gather(x, f, 0)", "type-mismatch"), ("tl.gather(x, i, 1)", None), ("tl.gather(x, i, -2)", None),
        ("tl.gather(x, i[:, None], 0)", "shape-mismatch"), ("tl.gather(y, i[:, None], 1)", "shape-mismatch"),
        ("tl.gather(x, i)", "bad-call"), ("tl.gather(s, s, 0)", None), ("tl.gather(x, i, n)", "not-constexpr"),
    ],
)  # fmt: skip
def test_gathers_that_are_refused(call, id):
    refused(call, id, x="float32", i="int32", f="float32", y="float32[4, 4]", s="scalar int32", n=7)


@pytest.mark.parametrize("shape", [(1,), (8,), (4, 8), (2, 4, 8), (2, 2, 4, 2)])
def test_flip(shape):
    x = np.arange(int(np.prod(shape)), dtype=np.int32).reshape(shape)
    for axis in range(-len(shape), len(shape)):
        for call in (f"tl.flip(x, {axis})", f"x.flip(dim={axis})"):
            same(value(call, "int32", inputs={"x": x}), np.flip(x, axis))
    for call in ("tl.flip(x)", "x.flip()", "tl.flip(x, None)"):
        same(value(call, "int32", inputs={"x": x}), np.flip(x, -1))


@pytest.mark.parametrize("n", SIZES)
def test_flip_of_odd_sizes(n):
    # The padding comes first then, so that the other end is looked at.
    x = np.arange(3 * n, dtype=np.int32).reshape(n, 3)
    same(value("tl.flip(tl.flip(x, 0), 0)", "int32", inputs={"x": x}), x)


@pytest.mark.parametrize("axis", ["1", "-2", "(0,)", "n", "0.0"])
def test_axes_that_are_refused(axis):
    refused(f"tl.flip(x, {axis})", None, x="int32", n=5)
