"""`tl.broadcast`, `broadcast_to`, `expand_dims`, `unsqueeze`, `squeeze`, and indexing with `None` and `:`."""

import numpy as np
import pytest

from ._common import compiles, refused, same, tiles, value
from ._numbers import ALL, Typed, samples

COVERS = ["broadcast", "broadcast_to", "expand_dims", "unsqueeze", "squeeze"]


def numbered(shape, dtype=np.int32):
    return np.asarray(np.arange(int(np.prod(shape)), dtype=dtype).reshape(shape))


BROADCASTS = [
    ((), ()), ((), (8,)), ((), (2, 4)), ((1,), (8,)), ((8,), (8,)), ((1, 4), (2, 4)), ((2, 1), (2, 4)),
    ((1, 1), (4, 8)), ((1, 4, 1), (2, 4, 2)), ((2, 1, 1, 2), (2, 4, 2, 2)),
]  # fmt: skip


@pytest.mark.parametrize("shape, to", BROADCASTS)
def test_broadcast_to(shape, to):
    x = numbered(shape)
    want = np.broadcast_to(x, to)
    args = ", ".join(map(str, to))
    calls = [
        f"tl.broadcast_to(x, {to})",
        f"tl.broadcast_to(x, {list(to)})",
        f"x.broadcast_to({to})",
    ]
    calls += [f"tl.broadcast_to(x, {args})", f"x.broadcast_to({args})"] * bool(to)
    for call in calls:
        same(value(call, "int32", to, {"x": x}), want)


@pytest.mark.parametrize("name", ALL)
def test_every_type(name):
    x = samples(name, 8)
    got = value("tl.broadcast_to(x[:, None], 8, 4)", name, (8, 4), {"x": Typed(name, x)})
    assert got.tobytes() == np.broadcast_to(x[:, None], (8, 4)).tobytes()


@pytest.mark.parametrize(
    "shape, to",
    [((8,), "2, 8"), ((2, 4), "4, 4"), ((4, 2), "2, 4"), ((1, 4), "4"), ((8,), "4"), ((8,), "()")],
)
def test_broadcasts_that_are_refused(shape, to):
    refused(f"tl.broadcast_to(x, {to})", "shape-mismatch", "does not broadcast", x=numbered(shape))


def test_broadcasts_to_no_shape():
    refused("tl.broadcast_to(x, 3)", "bad-shape", x=numbered((1,)))
    refused("n = 8\ntl.broadcast_to(x, n)", "not-constexpr", x=numbered((1,)))
    refused("tl.broadcast_to(x, 1 << 11, 1 << 11)", "bad-shape", x=numbered((1, 1)))


@pytest.mark.parametrize(
    "a, b",
    [
        ((), ()),
        ((), (8,)),
        ((4, 1), (8,)),
        ((1, 8), (4, 1)),
        ((2, 1, 4), (8, 1)),
        ((1, 1, 1, 2), (2, 2, 2, 1)),
    ],
)
def test_broadcast_returns_both(a, b):
    x, y = numbered(a), numbered(b, np.float32)
    want = np.broadcast_arrays(x, y)
    shape = want[0].shape
    for call in ("tl.broadcast(x, y)", "tl.broadcast(input=x, other=y)"):
        got = tiles(f"p, q = {call}", {"x": x, "y": y}, p=("int32", shape), q=("float32", shape))
        same(got[0], want[0])
        same(got[1], want[1])


def test_broadcast_that_is_refused():
    refused("tl.broadcast(x, y)", "shape-mismatch", x=numbered((8,)), y=numbered((4,)))


AXES = [
    ((), "0", 0), ((4,), "0", 0), ((4,), "1", 1), ((4,), "-1", -1), ((4,), "-2", -2), ((2, 4), "1", 1),
    ((2, 4), "-1", -1), ((2, 4), "(0, 1)", (0, 1)), ((2, 4), "(0, 3)", (0, 3)), ((4,), "(-1, 0)", (-1, 0)),
    ((4,), "[0, 1]", (0, 1)), ((2, 2, 2), "2", 2),
]  # fmt: skip


@pytest.mark.parametrize("shape, axis, numpy_axis", AXES)
def test_expand_dims(shape, axis, numpy_axis):
    x = numbered(shape)
    want = np.expand_dims(x, numpy_axis)
    for call in (
        f"tl.expand_dims(x, {axis})",
        f"x.expand_dims({axis})",
        f"tl.expand_dims(x, axis={axis})",
    ):
        same(value(call, "int32", want.shape, {"x": x}), want)
    if isinstance(numpy_axis, int):
        for call in (f"tl.unsqueeze(x, {axis})", f"x.unsqueeze(dim={axis})"):
            same(value(call, "int32", want.shape, {"x": x}), want)


@pytest.mark.parametrize("axis", ["2", "-3", "(0, 0)", "(0, -3)"])
def test_axes_that_are_refused(axis):
    refused(f"tl.expand_dims(x, {axis})", None, x=numbered((4,)))


@pytest.mark.parametrize(
    "shape, axis",
    [((1,), 0), ((1, 4), 0), ((4, 1), 1), ((4, 1), -1), ((2, 1, 4), -2), ((1, 1, 1, 2), 2)],
)
def test_squeeze(shape, axis):
    x = numbered(shape)
    want = np.squeeze(x, axis)
    for call in (f"tl.squeeze(x, {axis})", f"x.squeeze({axis})", f"tl.squeeze(x, dim={axis})"):
        same(value(call, "int32", want.shape, {"x": x}), want)


def test_squeezes_that_are_refused():
    refused("tl.squeeze(x, 0)", "bad-shape", "has extent 4", x=numbered((4, 1)))
    refused("tl.squeeze(x, 2)", None, x=numbered((4, 1)))


# ---- indexing -------------------------------------------------------------------------------------

INDICES = [
    ((4,), "[:]"), ((4,), "[None]"), ((4,), "[:, None]"), ((4,), "[None, :]"), ((4,), "[None, :, None]"),
    ((4,), "[:, None, None]"), ((2, 4), "[:, None]"), ((2, 4), "[:, None, :]"), ((2, 4), "[None]"),
    ((2, 4), "[:, :]"), ((2, 4), "[:, :, None]"), ((2, 4), "[None, :, None, :]"), ((), "[None]"),
    ((), "[None, None]"), ((2, 2, 2), "[:, :, None, :]"), ((2, 4), "[:]"),
]  # fmt: skip


@pytest.mark.parametrize("shape, index", INDICES)
def test_indexing(shape, index):
    x = numbered(shape)
    want = np.asarray(eval(f"x{index}", {"x": x}))
    same(value(f"x{index}", "int32", want.shape, {"x": x}), want)


def test_a_constexpr_none_is_an_index():
    got = tiles("N: tl.constexpr = None\nr = x[:, N]", {"x": numbered((4,))}, r=("int32", (4, 1)))
    same(got, numbered((4, 1)))


@pytest.mark.parametrize(
    "index", ["[0]", "[-1]", "[0:2]", "[::2]", "[x]", "[...]", "[:, 0]", "[True]", "[y > 0]"]
)
def test_indices_that_are_refused(index):
    refused(f"x{index}", None, x=numbered((4,)), y=numbered((4,)))


def test_too_many_indices():
    refused("x[:, :]", "bad-shape", "2 axes are indexed, the tile has 1", x=numbered((4,)))
    refused("x[:]", "bad-shape", x="scalar int32")


def test_tiles_are_not_assigned_into():
    refused("x[:] = 0", "unsupported-python", x=numbered((4,)))


def test_shapes_are_tuples_of_constexprs():
    compiles(
        "tl.static_assert(x.shape == (2, 4))",
        "tl.static_assert(x.shape[1] == 4)",
        "tl.static_assert(x.shape[-2] == 2)",
        "tl.static_assert(len(x.shape) == 2)",
        "tl.static_assert(x.numel == 8)",
        "y = tl.zeros(x.shape[:-1] + [2 * x.shape[-1]], tl.int8)",
        "tl.static_assert(y.shape == (2, 8))",
        "tl.static_assert(x[:, None].type.shape == (2, 1, 4))",
        x="float32[2, 4]",
    )
