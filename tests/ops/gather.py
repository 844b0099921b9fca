"""`tl.gather`: axes, types of sources and indices, extents of the result, spellings, refusals."""

import numpy as np
import pytest

from ._common import SIZES, power, refused, same, tiles, value
from ._numbers import ALL, INTS, Typed, samples

COVERS = ["gather"]


def problem(shape, axis, extent, seed=0):
    """A source of that shape and indices into one of its axes."""
    rng = np.random.default_rng([seed, *shape])
    at = list(shape)
    at[axis] = extent
    x = rng.integers(-999, 999, shape).astype(np.int32)
    return x, rng.integers(0, shape[axis], at).astype(np.int32)


@pytest.mark.parametrize("extent", [1, 4, 32])
@pytest.mark.parametrize("shape", [(1,), (8,), (4, 8), (8, 1), (2, 4, 8), (2, 2, 4, 2)])
def test_axes_and_extents(shape, extent):
    for axis in range(-len(shape), len(shape)):
        x, i = problem(shape, axis, extent)
        want = np.take_along_axis(x, i, axis)
        for call in (
            f"tl.gather(x, i, {axis})",
            f"x.gather(i, {axis})",
            f"tl.gather(src=x, index=i, axis={axis})",
            f"x.gather(index=i, axis={axis})",
        ):
            same(value(call, "int32", want.shape, {"x": x, "i": i}), want)


@pytest.mark.parametrize("name", ALL)
def test_every_type_keeps_its_bits(name):
    x = samples(name, 32)
    i = np.random.default_rng(1).integers(0, 32, 64).astype(np.int32)
    got = value("tl.gather(x, i, 0)", name, (64,), {"x": Typed(name, x), "i": i})
    assert got.tobytes() == x[i].tobytes()


@pytest.mark.parametrize("name", INTS)
def test_every_type_of_index(name):
    x = np.arange(100, 228, dtype=np.int64)
    i = np.array([127, 0, 5, 5, 64, 1, 2, 3]).astype(name)
    same(value("tl.gather(x, i, 0)", "int64", (8,), {"x": x, "i": i}), x[i.astype(int)])


@pytest.mark.parametrize("n", SIZES)
def test_odd_sizes(n):
    x, i = problem((3, n), 1, n)
    same(value("tl.gather(x, i, 1)", "int32", inputs={"x": x, "i": i}), np.take_along_axis(x, i, 1))


@pytest.mark.parametrize("n", [1, 2, 8, 64])
def test_permutations_and_their_inverse(n):
    p = np.random.default_rng(n).permutation(n).astype(np.int32)
    x = np.arange(n, dtype=np.float32) * 3
    inverse = np.argsort(p).astype(np.int32)
    body = "r = tl.gather(tl.gather(x, p, 0), inverse, 0)"
    same(tiles(body, {"x": x, "p": p, "inverse": inverse}, r=("float32", (n,))), x)


def test_rotations_by_a_number_of_the_launch():
    x = np.arange(16, dtype=np.int32)
    for by in (0, 1, 5, 16):
        body = "r = tl.gather(x, (tl.arange(0, 16) + by) % 16, 0)"
        same(tiles(body, {"x": x, "by": by}, r=("int32", (16,))), np.roll(x, -by))


def test_pointers():
    x = np.arange(8, dtype=np.int32) * 5
    i = np.array([7, 0, 3, 3], np.int32)
    got = value(
        "tl.load(tl.gather(x + tl.arange(0, 8), i, 0))",
        "int32",
        (4,),
        {"x": x, "i": i},
        pointers="x",
    )
    same(got, x[i])


@pytest.mark.parametrize("bad", [-1, 8, 2**31 - 1, -(2**31)])
def test_an_index_outside_gives_some_element_of_the_source(bad):
    x = np.arange(10, 18, dtype=np.int32)
    i = np.array([bad, 1, 2, 3], np.int32)
    got = value("tl.gather(x, i, 0)", "int32", (4,), {"x": x, "i": i})
    assert got[0] in x
    assert got[1:].tolist() == [11, 12, 13]


@pytest.mark.parametrize("n", [31, 33])
def test_indices_that_masks_made_zero(n):
    x = np.arange(n, dtype=np.int32) + 7
    i = np.arange(n, dtype=np.int32)[::-1].copy()
    want = np.full(power(n), 7, np.int32)
    want[:n] = x[::-1]
    same(value("tl.gather(x, i, 0)", "int32", (power(n),), {"x": x, "i": i}), want)


@pytest.mark.parametrize(
    "call, id, message",
    [
        ("tl.gather(x, i, 2)", "bad-argument", ""),
        ("tl.gather(x, i, -3)", "bad-argument", ""),
        ("tl.gather(x, i)", "bad-call", ""),
        ("tl.gather(x, x.to(tl.float32), 0)", "type-mismatch", "must be integers"),
        ("tl.gather(x, tl.arange(0, 8), 0)", "shape-mismatch", "of one rank"),
        ("tl.gather(s, s, 0)", "shape-mismatch", "of one rank"),
        ("tl.gather(x, j, 0)", "shape-mismatch", ""),
        ("n = 1\ntl.gather(x, i, n)", "not-constexpr", ""),
        ("tl.gather(x, None, 0)", None, ""),
    ],
)
def test_gathers_that_are_refused(call, id, message):
    refused(call, id, message, x="int32[4, 8]", i="int32[4, 8]", j="int32[4, 4]", s="scalar int32")
