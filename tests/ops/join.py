"""`tl.join`, `split`, `interleave`, `cat`."""

import numpy as np
import pytest

from ._common import refused, same, tiles, value
from ._numbers import ALL, Typed, samples

COVERS = ["join", "split", "interleave", "cat"]


def numbered(shape, start=0):
    return np.asarray(np.arange(start, start + int(np.prod(shape)), dtype=np.int32).reshape(shape))


SHAPES = [(), (1,), (8,), (4, 2), (2, 1, 4), (2, 2, 2)]


@pytest.mark.parametrize("shape", SHAPES)
def test_join_and_split(shape):
    x, y = numbered(shape), numbered(shape, 100)
    want = np.stack([x, y], -1)
    for call in ("tl.join(x, y)", "tl.join(a=x, b=y)"):
        same(value(call, "int32", want.shape, {"x": x, "y": y}), want)
    for call in ("tl.split(z)", "z.split()", "tl.split(a=z)"):
        a, b = tiles(f"a, b = {call}", {"z": want}, a=("int32", shape), b=("int32", shape))
        same(a, x)
        same(b, y)


@pytest.mark.parametrize("shape", SHAPES)
def test_interleave(shape):
    x, y = numbered(shape), numbered(shape, 100)
    want = np.stack([x, y], -1).reshape((*shape[:-1], -1))
    for call in ("tl.interleave(x, y)", "tl.interleave(a=x, b=y)"):
        same(value(call, "int32", want.shape, {"x": x, "y": y}), want)


@pytest.mark.parametrize("function", ["join", "interleave"])
@pytest.mark.parametrize(
    "a, b", [((), (4,)), ((4, 1), (2,)), ((1, 2), (4, 1)), ((2, 1, 1), (4, 2))]
)
def test_shapes_broadcast(a, b, function):
    x, y = numbered(a), numbered(b, 100)
    want = np.stack(np.broadcast_arrays(x, y), -1)
    if function == "interleave":
        want = want.reshape((*want.shape[:-2], -1))
    same(value(f"tl.{function}(x, y)", "int32", want.shape, {"x": x, "y": y}), want)


@pytest.mark.parametrize(
    "shape, dims",
    [((1,), [0]), ((8,), [0, -1]), ((4, 2), [0, 1, -1, -2]), ((2, 1, 4), [0, 1, 2, -2])],
)
def test_cat(shape, dims):
    x, y = numbered(shape), numbered(shape, 100)
    for dim in dims:
        want = np.concatenate([x, y], dim)
        for call in (
            f"tl.cat(x, y, dim={dim})",
            f"tl.cat(x, y, False, {dim})",
            f"tl.cat(input=x, other=y, dim={dim})",
        ):
            same(value(call, "int32", want.shape, {"x": x, "y": y}), want)
    same(
        value("tl.cat(x, y)", "int32", (2 * shape[0], *shape[1:]), {"x": x, "y": y}),
        np.concatenate([x, y]),
    )
    got = value(
        "tl.cat(x, y, can_reorder=True)", "int32", (2 * shape[0], *shape[1:]), {"x": x, "y": y}
    )
    assert sorted(got.ravel()) == sorted([*x.ravel(), *y.ravel()])


@pytest.mark.parametrize("name", ALL)
def test_every_type(name):
    x, y = samples(name, 8), samples(name, 8, seed=5)
    inputs = {"x": Typed(name, x), "y": Typed(name, y)}
    both = np.stack([x, y], -1)
    for call, want in [
        ("tl.join(x, y)", both),
        ("tl.interleave(x, y)", both.ravel()),
        ("tl.cat(x, y)", np.concatenate([x, y])),
        ("tl.split(tl.join(x, y))[1]", y),
    ]:
        assert (
            value(call, name, want.shape, inputs).tobytes() == np.ascontiguousarray(want).tobytes()
        )


@pytest.mark.parametrize("function", ["join", "interleave", "cat"])
def test_types_are_not_promoted(function):
    refused(f"tl.{function}(x, y)", "type-mismatch", x="int32", y="float32")
    refused(f"tl.{function}(x, y)", "type-mismatch", x="float16", y="bfloat16")


@pytest.mark.parametrize("call", ["tl.split(x)", "x.split()"])
@pytest.mark.parametrize("shape", [(), (4,), (2, 4), (2, 1)])
def test_splits_that_are_refused(shape, call):
    refused(call, "bad-shape", "last axis of extent 2", x=np.zeros(shape))


@pytest.mark.parametrize(
    "call, id",
    [
        ("tl.cat(x, y)", "shape-mismatch"),
        ("tl.join(x, y)", "shape-mismatch"),
        ("tl.interleave(x, y)", "shape-mismatch"),
        ("tl.cat(x, x, dim=1)", None),
        ("tl.cat(x, x, dim=-2)", None),
    ],
)
def test_shapes_that_are_refused(call, id):
    refused(call, id, x=np.zeros(8), y=np.zeros(4))
    refused("tl.cat(x, x)", None, x=np.zeros(()))


def test_three_joins_make_a_tile_of_eight():
    body = "a = tl.join(x, x + 1)\nb = tl.join(a, a + 2)\nr = tl.join(b, b + 4).reshape(8)"
    got = tiles(body, {"x": np.array(0, np.int32)}, r=("int32", (8,)))
    assert got.tolist() == [0, 4, 2, 6, 1, 5, 3, 7]
