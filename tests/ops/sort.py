"""`tl.sort`, `topk`, `bitonic_merge`: types, axes, directions, k, refusals."""

import numpy as np
import pytest

from ._common import SIZES, refused, same, value
from ._numbers import ALL, FLOATS, TYPES, Typed, decode, samples
from .max import numeric, promoted

COVERS = ["sort", "topk", "bitonic_merge"]


def ordered(x, axis=-1, descending=False):
    x = np.sort(x, axis)
    return np.flip(x, axis) if descending else x


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("descending", [False, True])
def test_every_type_is_kept(descending, name):
    x = samples(name, 128)
    x = np.resize(x[~np.isnan(decode(name, x))] if TYPES[name].is_float else x, 128)
    want = ordered(numeric(name, x), descending=descending)
    got = value(f"tl.sort(x, descending={descending})", name, inputs={"x": Typed(name, x)})
    same(numeric(name, got) + 0, want + 0)
    # The images are those that came in, in another order.
    assert sorted(got.tolist(), key=repr) == sorted(x.tolist(), key=repr)


@pytest.mark.parametrize("shape", [(1,), (2,), (64,), (4, 8), (2, 4, 8), (2, 2, 2, 4), (8, 1)])
def test_shapes(shape):
    x = np.random.default_rng(1).integers(-99, 99, shape).astype(np.int32)
    axis = len(shape) - 1
    for call in (
        "tl.sort(x)",
        f"tl.sort(x, {axis})",
        "tl.sort(x, dim=-1)",
        "tl.sort(x, None, False)",
    ):
        same(value(call, "int32", inputs={"x": x}), ordered(x))
    for call in ("tl.sort(x, descending=True)", f"tl.sort(x, {axis}, True)"):
        same(value(call, "int32", inputs={"x": x}), ordered(x, descending=True))


@pytest.mark.parametrize("n", SIZES)
def test_odd_sizes(n):
    x = np.random.default_rng(n).standard_normal(n).astype(np.float32)
    same(value("tl.sort(x)", "float32", inputs={"x": x}, other={"x": "float('inf')"}), np.sort(x))


@pytest.mark.parametrize("name", FLOATS)
def test_a_nan_keeps_the_numbers(name):
    """Where it ends up is not said, nor that the others stay in order around it."""
    x = samples(name, 32)
    got = value("tl.sort(x)", name, inputs={"x": Typed(name, x)})
    a, b = decode(name, x), decode(name, got)
    assert np.isnan(a).sum() == np.isnan(b).sum()
    assert sorted(a[~np.isnan(a)].tolist()) == sorted(b[~np.isnan(b)].tolist())


@pytest.mark.parametrize("shape", [(8,), (4, 8), (2, 2, 16)])
def test_bitonic_merge_orders_bitonic_sequences(shape):
    x = np.random.default_rng(3).integers(-99, 99, shape).astype(np.int32)
    half = shape[-1] // 2
    x[..., :half].sort(-1)
    x[..., half:] = ordered(x[..., half:], descending=True)
    for call, down in (
        ("tl.bitonic_merge(x)", False),
        ("tl.bitonic_merge(x, dim=-1)", False),
        ("tl.bitonic_merge(x, None, True)", True),
        ("tl.bitonic_merge(x, descending=True)", True),
    ):
        same(value(call, "int32", inputs={"x": x}), ordered(x, descending=down))


@pytest.mark.parametrize(
    "name", ["int8", "uint16", "int32", "uint64", "float16", "bfloat16", "float32", "float64"]
)
@pytest.mark.parametrize("k", [1, 2, 8, 32])
def test_topk(k, name):
    x = samples(name, 64)
    x = np.resize(x[~np.isnan(decode(name, x))] if TYPES[name].is_float else x, (2, 32))
    numbers = numeric(name, x)
    # A true selection is computed in at least 32 bits, and stays so.
    out = promoted(name) if k < 32 else name
    for arguments, down in (
        (f"{k}", True),
        (f"k={k}, dim=1", True),
        (f"{k}, -1, True", True),
        (f"{k}, descending=False", False),
    ):
        want = ordered(numbers, descending=down)[:, :k]
        got = value(f"tl.topk(x, {arguments})", out, (2, k), {"x": Typed(name, x)})
        same(numeric(out, got) + 0.0, want + 0.0)


@pytest.mark.parametrize(
    "call", ["tl.sort(x)", "tl.sort(x, 2)", "tl.sort(x, dim=(0,))", "tl.topk(x, 2)"]
)
@pytest.mark.parametrize("shape", [()])
def test_scalars_have_no_order(shape, call):
    refused(call, None, x=np.zeros(shape))


@pytest.mark.parametrize("k", ["3", "16", "0", "-1", "2.0", "n"])
def test_numbers_that_are_refused(k):
    refused(f"tl.topk(x, {k})", None, x="int32", n=4)
    refused("tl.topk(x)", "bad-call", x="int32")


@pytest.mark.parametrize(
    "function", ["tl.sort(x, {})", "tl.topk(x, 2, {})", "tl.bitonic_merge(x, {})"]
)
def test_axes_that_are_refused(function):
    for axis in ("2", "-3", "(1,)", "n"):
        refused(function.format(axis), None, x="int32[4, 4]", n=5)


def test_other_axes():
    """Triton orders the last axis only; this is more than it asks for."""
    x = np.random.default_rng(5).integers(-99, 99, (8, 4, 2)).astype(np.int32)
    for axis in (0, 1, -2, -3):
        same(value(f"tl.sort(x, {axis})", "int32", inputs={"x": x}), ordered(x, axis))
        top = ordered(x, axis, True).take([0, 1], axis)
        same(value(f"tl.topk(x, 2, {axis})", "int32", top.shape, {"x": x}), top)
