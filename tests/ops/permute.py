"""`tl.trans`, `permute` and `.T`: every permutation of up to four axes, spellings, refusals."""

import itertools

import numpy as np
import pytest

from ._common import refused, same, tiles, value
from ._numbers import ALL, Typed, samples

COVERS = ["trans", "permute"]

SHAPE = (2, 4, 1, 8)


def numbered(shape):
    return np.arange(int(np.prod(shape)), dtype=np.int32).reshape(shape)


@pytest.mark.parametrize("rank", [1, 2, 3, 4])
def test_every_permutation(rank):
    x = numbered(SHAPE[:rank])
    for axes in itertools.permutations(range(rank)):
        want = x.transpose(axes)
        args = ", ".join(map(str, axes))
        calls = [f"tl.permute(x, {args})", f"tl.permute(x, ({args},))", f"x.permute({args})"]
        calls += [f"tl.trans(x, {args})", f"x.trans(({args},))", f"tl.permute(x, [{args}])"]
        for call in calls:
            same(value(call, "int32", want.shape, {"x": x}), want)


@pytest.mark.parametrize("shape", [(4, 8), (8, 1), (2, 4, 8), (2, 2, 4, 8)])
def test_trans_swaps_the_last_two_axes(shape):
    x = numbered(shape)
    want = x.swapaxes(-1, -2)
    for call in (
        "tl.trans(x)",
        "x.trans()",
        "tl.trans(tl.trans(tl.trans(x)))",
        "tl.trans(input=x)",
    ):
        same(value(call, "int32", want.shape, {"x": x}), want)


@pytest.mark.parametrize("shape", [(4, 8), (1, 8), (8, 8)])
def test_the_attribute(shape):
    x = numbered(shape)
    same(value("x.T", "int32", shape[::-1], {"x": x}), x.T)
    same(value("x.T.T + x", "int32", shape, {"x": x}), 2 * x)


@pytest.mark.parametrize("name", ALL)
def test_every_type(name):
    x = samples(name, 32).reshape(4, 8)
    got = value("tl.trans(x)", name, (8, 4), {"x": Typed(name, x)})
    assert got.tobytes() == np.ascontiguousarray(x.T).tobytes()


def test_views_of_arrays():
    x = numbered((8, 16))
    for view in (x.T, x[::-1, ::2], x[4:, 3:11], np.broadcast_to(x[0, :8], (4, 8))):
        same(value("tl.permute(x, 1, 0)", "int32", view.T.shape, {"x": view}), view.T)


def test_odd_sizes():
    x = numbered((31, 33))
    same(value("tl.trans(x)", "int32", (33, 31), {"x": x}), x.T)


def test_pointers():
    x = numbered((4, 8))
    body = "r = tl.load((p + tl.arange(0, 32).reshape(4, 8)).T)"
    same(tiles(body, {"p": x}, pointers="p", r=("int32", (8, 4))), x.T)


@pytest.mark.parametrize(
    "call",
    [
        "tl.permute(x, 0)",
        "tl.permute(x, 0, 0)",
        "tl.permute(x, 0, 2)",
        "tl.permute(x, 0, 1, 2)",
        "tl.trans(x, 1)",
        "tl.permute(x)",
    ],
)
def test_no_permutation(call):
    refused(call, None, x=numbered((2, 4)))


@pytest.mark.parametrize("shape", [(8,), ()])
def test_too_few_axes(shape):
    refused("tl.trans(x)", "bad-shape", "at least two axes", x=np.zeros(shape))
    refused("x.T", None, x=np.zeros(shape))


def test_the_attribute_is_for_rank_2():
    refused("x.T", "bad-shape", "rank 2", x=np.zeros((2, 2, 2)))
