"""`tl.reshape`, `view`, `ravel`, `.item`: row-major order, every type, spellings of shapes."""

import numpy as np
import pytest

from ._common import refused, same, tiles, value
from ._numbers import ALL, Typed, samples

COVERS = ["reshape", "view", "ravel", "item"]

SHAPES = [
    ((16,), (4, 4)), ((4, 4), (16,)), ((2, 8), (8, 2)), ((2, 2, 4), (4, 4)), ((16,), (2, 2, 2, 2)),
    ((2, 2, 2, 2), (1, 16)), ((1,), (1, 1, 1)), ((1, 1), ()), ((), (1,)), ((16,), (16,)),
]  # fmt: skip


def numbered(shape):
    return np.asarray(np.arange(int(np.prod(shape)), dtype=np.int32).reshape(shape))


@pytest.mark.parametrize("function", ["reshape", "view"])
@pytest.mark.parametrize("shape, to", SHAPES)
def test_reshape_and_view(shape, to, function):
    x = numbered(shape)
    args = ", ".join(map(str, to))
    calls = [f"tl.{function}(x, {to})", f"tl.{function}(x, {list(to)})", f"x.{function}({to})"]
    calls += [f"tl.{function}(x, {args})", f"x.{function}({args})"] * bool(to)
    for call in calls:
        same(value(call, "int32", to, {"x": x}), x.reshape(to))


@pytest.mark.parametrize("name", ALL)
def test_every_type(name):
    x = samples(name, 16)
    for call in (
        "tl.reshape(x, 4, 4)",
        "x.view(2, 8).reshape((4, 4))",
        "tl.ravel(x.reshape(2, 2, 4)).view(4, 4)",
    ):
        assert value(call, name, (4, 4), {"x": Typed(name, x)}).tobytes() == x.tobytes()


@pytest.mark.parametrize("shape", [(), (1,), (8,), (2, 4), (2, 2, 2), (2, 1, 4, 2)])
@pytest.mark.parametrize("call", ["tl.ravel(x)", "x.ravel()", "tl.ravel(x, can_reorder=False)"])
def test_ravel(call, shape):
    x = numbered(shape)
    same(value(call, "int32", (x.size,), {"x": x}), x.ravel())


@pytest.mark.parametrize(
    "call", ["tl.reshape(x, (2, 4), can_reorder=True)", "tl.ravel(x, can_reorder=True)"]
)
def test_an_order_that_is_free_keeps_the_elements(call):
    x = numbered((8,))
    shape = (2, 4) if "reshape" in call else (8,)
    assert sorted(value(call, "int32", shape, {"x": x}).ravel()) == x.tolist()


@pytest.mark.parametrize(
    "call, id",
    [
        ("tl.reshape(x, 4)", "shape-mismatch"),
        ("tl.reshape(x, 4, 4)", "shape-mismatch"),
        ("tl.view(x, ())", "shape-mismatch"),
        ("tl.reshape(x, -1)", None),
        ("tl.reshape(x, 2, -1)", None),
        ("tl.reshape(x, 8.0)", None),
        ("n = 8\ntl.reshape(x, n)", "not-constexpr"),
        ("tl.reshape(x, 3, 3)", None),
    ],
)
def test_shapes_that_are_refused(call, id):
    refused(call, id, x=numbered((8,)))


@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (1, 1, 1)])
@pytest.mark.parametrize("name", ALL)
def test_item(name, shape):
    x = samples(name, 4)[3:].reshape(shape)
    assert value("x.item()", name, (), {"x": Typed(name, x)}).tobytes() == x.tobytes()


def test_item_of_several_elements():
    refused("x.item()", "bad-shape", "wants one element", x=numbered((2,)))


def test_pointers_are_reshaped():
    x = numbered((8,))
    body = "r = tl.load((p + tl.arange(0, 8)).reshape(2, 4))"
    same(tiles(body, {"p": x}, pointers="p", r=("int32", (2, 4))), x.reshape(2, 4))


def test_views_of_arrays():
    x = np.arange(64, dtype=np.float32).reshape(8, 8)
    for view in (x.T, x[::-1], x[:, ::-1], x[2:6, 4:]):
        want = view.reshape(-1, 2)
        same(value(f"tl.reshape(x, {want.shape})", "float32", want.shape, {"x": view}), want)
