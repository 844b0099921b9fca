"""`tl.max`, `min`, `argmax`, `argmin`: promoted types, indices, ties, NaN, axes, refusals."""

import numpy as np
import pytest

from ._common import SIZES, refused, same, tiles, value
from ._numbers import ALL, FLOATS, INTS, TYPES, Typed, array, decode, encode, samples
from .sum import AXES

COVERS = ["max", "min", "argmax", "argmin"]

BOTH = {"max": (np.fmax, np.argmax), "min": (np.fmin, np.argmin)}


def promoted(name):
    t = TYPES[name]
    if t.bits >= 32:
        return name
    return "float32" if t.is_float else "int32"


def numeric(name, x):
    return (
        decode(name, x)
        if TYPES[name].is_float
        else x.astype(np.int64 if TYPES[name].bits < 64 else x.dtype)
    )


@pytest.mark.parametrize("function", BOTH)
@pytest.mark.parametrize("shape, axis, numpy_axis", AXES)
@pytest.mark.parametrize("keep", [False, True])
def test_axes(keep, shape, axis, numpy_axis, function):
    x = np.random.default_rng(2).permutation(int(np.prod(shape))).astype(np.int32).reshape(shape)
    want = np.asarray(BOTH[function][0].reduce(x, axis=numpy_axis, keepdims=keep), np.int32)
    calls = [
        f"tl.{function}(x, {axis}, keep_dims={keep})",
        f"x.{function}(axis={axis}, keep_dims={keep})",
    ]
    if not keep:
        calls += [
            f"tl.{function}(x, {axis})",
            f"tl.{function}(input=x, axis={axis}, return_indices=False)",
        ]
        calls += [f"tl.{function}(x)", f"x.{function}()"] * (numpy_axis is None)
    for call in calls:
        same(value(call, "int32", want.shape, {"x": x}), want)
    if numpy_axis is None:
        return
    at = np.asarray(BOTH[function][1](x, axis=numpy_axis, keepdims=keep), np.int32)
    for call in (
        f"tl.arg{function}(x, {axis}, keep_dims={keep})",
        f"x.arg{function}({axis}, True, {keep})",
        f"tl.arg{function}(input=x, axis={axis}, tie_break_left=False, keep_dims={keep})",
    ):
        same(value(call, "int32", at.shape, {"x": x}), at)
    call = f"v, i = tl.{function}(x, {axis}, return_indices=True, keep_dims={keep})"
    v, i = tiles(call, {"x": x}, v=("int32", want.shape), i=("int32", at.shape))
    same(v, want)
    same(i, at)


@pytest.mark.parametrize("function", BOTH)
@pytest.mark.parametrize("name", ALL)
def test_every_type(name, function):
    x = samples(name, 256)
    numbers = numeric(name, x)
    best = BOTH[function][0].reduce(numbers)
    out = promoted(name)
    want = np.array(best).astype(TYPES[out].storage)
    same(value(f"tl.{function}(x)", out, (), {"x": Typed(name, x)}), want)
    # With indices the value keeps its type, and without ties or NaN there is one answer.
    x = x[~np.isnan(numbers)] if TYPES[name].is_float else x
    numbers = numeric(name, x)
    first = int(BOTH[function][1](numbers))
    pad = (
        {"x": "-float('inf')" if function == "max" else "float('inf')"}
        if TYPES[name].is_float
        else {}
    )
    if TYPES[name].is_fp8 or len(x) != 256:
        keep = 1 << (len(x).bit_length() - 1)
        x, numbers, pad = x[:keep], numbers[:keep], {}
        first = int(BOTH[function][1](numbers))
    body = f"v, i = tl.{function}(x, 0, return_indices=True)"
    v, i = tiles(body, {"x": Typed(name, x)}, other=pad, v=(name, ()), i=("int32", ()))
    assert numeric(name, v) == numbers[first] and i == first
    assert value(f"tl.arg{function}(x, 0)", "int32", (), {"x": Typed(name, x)}) == first


@pytest.mark.parametrize("function", BOTH)
@pytest.mark.parametrize("name", ["int8", "int64", "uint32", "float16", "float32", "int1"])
def test_ties_go_to_the_left(name, function):
    x = array(name, [0, 1, 0, 1, 1, 0, 1, 0])
    first = 1 if function == "max" else 0
    inputs = {"x": x}
    for call in (
        f"tl.arg{function}(x, 0)",
        f"tl.arg{function}(x, axis=0, tie_break_left=True)",
        f"tl.{function}(x, 0, True)[1]",
        f"tl.{function}(x, 0, True, True)[1]",
    ):
        assert value(call, "int32", (), inputs) == first
    # Otherwise any of them will do.
    for call in (
        f"tl.arg{function}(x, 0, tie_break_left=False)",
        f"tl.{function}(x, 0, return_indices=True, return_indices_tie_break_left=False)[1]",
    ):
        assert x[value(call, "int32", (), inputs)] == x[first]


@pytest.mark.parametrize("function", BOTH)
@pytest.mark.parametrize("name", FLOATS)
def test_a_nan_loses(name, function):
    for where in ([0], [7], [3, 4], [0, 1, 2, 3, 4, 5, 6]):
        values = np.array([3.0, -1.0, 2.5, 0.0, 7.0, -4.0, 1.0, 2.0])
        values[where] = np.nan
        x = encode(name, values)
        f, at = BOTH[function]
        inputs = {"x": Typed(name, x)}
        want = np.array(f.reduce(values)).astype(TYPES[promoted(name)].storage)
        same(value(f"tl.{function}(x)", promoted(name), (), inputs), want)
        clean = np.where(np.isnan(values), -np.inf if function == "max" else np.inf, values)
        assert value(f"tl.arg{function}(x, 0)", "int32", (), inputs) == at(clean)
    x = encode(name, np.full(8, np.nan))
    got = value(f"tl.{function}(x)", promoted(name), (), {"x": Typed(name, x)})
    assert np.isnan(decode(promoted(name), got))
    assert 0 <= value(f"tl.arg{function}(x, 0)", "int32", (), {"x": Typed(name, x)}) < 8


@pytest.mark.parametrize("function", BOTH)
def test_zeros_of_both_signs_are_one_value(function):
    x = np.array([0.0, -0.0, -0.0, 0.0], np.float32)
    assert value(f"tl.{function}(x)", "float32", (), {"x": x}) == 0
    assert value(f"tl.arg{function}(x, 0)", "int32", (), {"x": x}) == 0


@pytest.mark.parametrize("function", BOTH)
@pytest.mark.parametrize("n", SIZES)
def test_odd_sizes(n, function):
    x = np.random.default_rng(n).standard_normal((2, n)).astype(np.float32)
    pad = {"x": "-float('inf')" if function == "max" else "float('inf')"}
    f, at = BOTH[function]
    same(value(f"tl.{function}(x, 1)", "float32", (2,), {"x": x}, other=pad), f.reduce(x, 1))
    same(
        value(f"tl.arg{function}(x, 1)", "int32", (2,), {"x": x}, other=pad),
        at(x, 1).astype(np.int32),
    )
    same(value(f"tl.{function}(x, 0)", "float32", (n,), {"x": x}, other=pad), f.reduce(x, 0))


def test_views():
    x = np.random.default_rng(4).permutation(64).reshape(8, 8)
    for view in (x.T, x[::-1, ::2], x[4:, :2]):
        same(value("tl.max(x, 1)", "int64", view.shape[:1], {"x": view}), view.max(1))
        same(
            value("tl.argmin(x, 0)", "int32", view.shape[1:], {"x": view}),
            view.argmin(0).astype(np.int32),
        )


@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin"])
def test_refusals(name):
    for axis in ("1", "-2", "(0,)"):
        refused(f"tl.{name}(x, {axis})", None, x="int32")
    refused(f"tl.{name}(x, 0)", "bad-shape", "wants a tile, not a scalar", x="scalar int32")
    refused(f"n = 0\ntl.{name}(x, n)", "not-constexpr", x="int32")
    refused(f"tl.{name}(x, 0, keep=True)", "bad-call", x="int32")
    refused(f"tl.{name}(p, 0)", None, p="int32", pointers="p")


@pytest.mark.parametrize("name", ["max", "min"])
def test_indices_want_an_axis(name):
    refused(f"tl.{name}(x, return_indices=True)", "bad-call", "wants an axis", x="int32")
    refused(f"tl.{name}(x, None, True)", None, x="int32")
    refused(f"tl.arg{name}(x)", "bad-call", x="int32")


@pytest.mark.parametrize("name", INTS)
def test_unsigned_integers_are_compared_as_such(name):
    t = TYPES[name]
    x = np.array([t.low, t.high, 0, 1], t.storage)
    out = promoted(name)
    assert value("tl.max(x)", out, (), {"x": x}) == t.high
    assert value("tl.min(x)", out, (), {"x": x}) == t.low
