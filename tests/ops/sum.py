"""`tl.sum`, `xor_sum`, `reduce_or`: widening, axes, `keep_dims`, `dtype=`, wrapping, refusals."""

import numpy as np
import pytest

from ._common import SIZES, compiles, refused, same, tiles, value
from ._numbers import ALL, FLOATS, INTS, TYPES, Typed, array, decode, encode, samples, wrap

COVERS = ["sum", "xor_sum", "reduce_or"]

INTEGERS = ["int1", *INTS]

# Every way to name an axis, with NumPy's.
AXES = [
    ((8,), "0", 0), ((8,), "-1", -1), ((8,), "None", None), ((4, 8), "0", 0), ((4, 8), "1", 1),
    ((4, 8), "-1", -1), ((4, 8), "-2", -2), ((4, 8), "None", None), ((2, 4, 8), "0", 0),
    ((2, 4, 8), "1", 1), ((2, 4, 8), "2", 2), ((2, 4, 8), "None", None), ((2, 2, 2, 4), "-3", -3),
    ((2, 2, 2, 4), "3", 3), ((2, 1, 4), "1", 1), ((1,), "0", 0), ((1, 1), "None", None),
]  # fmt: skip


def widened(name):
    t = TYPES[name]
    if t.is_float or t.bits >= 32:
        return name
    return "int32" if t.kind == "int" else "uint32"


def folded(f, x, axis, keep):
    """NumPy's reduction of Python's numbers."""
    got = f.reduce(x, axis=axis, keepdims=keep)
    return np.asarray(got, object)


@pytest.mark.parametrize("shape, axis, numpy_axis", AXES)
@pytest.mark.parametrize("keep", [False, True])
def test_axes(shape, axis, numpy_axis, keep):
    x = np.arange(int(np.prod(shape)), dtype=np.int32).reshape(shape) * 7 - 50
    for name, f in (("sum", np.add), ("xor_sum", np.bitwise_xor), ("reduce_or", np.bitwise_or)):
        want = np.asarray(f.reduce(x, axis=numpy_axis, keepdims=keep), np.int32)
        calls = [f"tl.{name}(x, {axis}, {keep})", f"x.{name}(axis={axis}, keep_dims={keep})"]
        calls += [f"tl.{name}(input=x, axis={axis}, keep_dims={keep})"]
        if not keep:
            calls.append(f"tl.{name}(x, axis={axis})")
            if numpy_axis is None and name != "reduce_or":
                calls += [f"tl.{name}(x)", f"x.{name}()"]
        for call in calls:
            same(value(call, "int32", want.shape, {"x": x}), want)


@pytest.mark.parametrize("name", INTEGERS)
def test_sums_of_integers_widen_and_wrap(name):
    x = samples(name, 64).reshape(8, 8)
    out = widened(name)
    for axis in (0, 1, None):
        want = wrap(out, folded(np.add, x.astype(object) + 0, axis, False))
        same(value(f"tl.sum(x, {axis})", out, want.shape, {"x": x}), want)


@pytest.mark.parametrize("name", FLOATS)
def test_sums_of_floats_stay_in_their_type(name):
    x = array(name, np.arange(64).reshape(8, 8) % 5 - 1.5)
    for axis in (0, 1, None):
        want = encode(name, decode(name, x).sum(axis))
        same(value(f"tl.sum(x, {axis})", name, want.shape, {"x": Typed(name, x)}), want, name)


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
def test_sums_that_round_are_as_good_as_any_order(name):
    x = encode(name, np.random.default_rng(3).uniform(0, 1, 256))
    got = decode(name, value("tl.sum(x)", name, (), {"x": Typed(name, x)}))
    exact = decode(name, x).sum()
    digits = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}[name]
    assert abs(got - exact) <= 255 * 2.0**-digits * exact


@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
def test_infinities_and_nan_pass_through_sums(name):
    dtype = TYPES[name].storage
    for x in ([np.inf, 1, 2, 3], [np.inf, -np.inf, 0, 0], [np.nan, 1, 2, 3], [-0.0] * 4):
        with np.errstate(invalid="ignore"):
            want = np.array(sum(np.array(x)), dtype)
        same(np.abs(value("tl.sum(x)", name, (), {"x": np.array(x, dtype)})), np.abs(want))


DTYPES = [
    ("int8", "int64"), ("int8", "int16"), ("int1", "int32"), ("uint8", "float32"), ("float16", "float32"),
    ("bfloat16", "float32"), ("float32", "float64"), ("int32", "int64"), ("float32", "int32"), ("int64", "int8"),
]  # fmt: skip


@pytest.mark.parametrize("name, out", DTYPES)
def test_the_dtype_is_that_of_the_addends(name, out):
    x = array(name, [1, 0, 1, 1] if name == "int1" else [1.75, 100, 3, 5])
    addends = decode(name, x)
    if TYPES[out].is_int:
        want = wrap(out, sum(int(v) for v in addends))
    else:
        want = array(out, float(addends.astype(float).sum()))
    same(value(f"tl.sum(x, dtype=tl.{out})", out, (), {"x": Typed(name, x)}), want)
    same(value(f"x.sum(0, False, tl.{out})", out, (), {"x": Typed(name, x)}), want)


@pytest.mark.parametrize("name", INTEGERS)
def test_bitwise_reductions_keep_their_type(name):
    x = samples(name, 64).reshape(8, 8)
    for function, f in (("xor_sum", np.bitwise_xor), ("reduce_or", np.bitwise_or)):
        for axis in (0, 1, None):
            want = np.asarray(f.reduce(x, axis=axis))
            same(value(f"tl.{function}(x, {axis})", name, want.shape, {"x": x}), want)


@pytest.mark.parametrize("function", ["xor_sum", "reduce_or"])
@pytest.mark.parametrize("name", FLOATS)
def test_floats_have_no_bits_to_reduce(name, function):
    refused(f"tl.{function}(x, 0)", "type-mismatch", "wants integers", x=name)


@pytest.mark.parametrize("n", SIZES)
def test_odd_sizes(n):
    x = samples("int64", n)
    same(value("tl.sum(x)", "int64", (), {"x": x}), wrap("int64", sum(map(int, x))))
    rows = np.arange(3 * n, dtype=np.float64).reshape(3, n)
    same(value("tl.sum(x, 1)", "float64", (3,), {"x": rows}), rows.sum(1))
    same(value("tl.sum(x, 0)", "float64", (n,), {"x": rows}), rows.sum(0))


def test_views():
    x = np.arange(64, dtype=np.int32).reshape(8, 8)
    for view in (x.T, x[::-1, ::2], x[4:, :2], np.broadcast_to(x[3], (4, 8))):
        same(value("tl.sum(x, 0)", "int32", view.shape[1:], {"x": view}), view.sum(0, np.int32))


@pytest.mark.parametrize("function", ["sum", "xor_sum", "reduce_or"])
@pytest.mark.parametrize(
    "axis",
    ["1", "-2", "(0,)", "0.0", "'x'"],
)
def test_axes_that_are_refused(axis, function):
    refused(f"tl.{function}(x, {axis})", None, x="int32")


@pytest.mark.parametrize("function", ["sum", "xor_sum", "reduce_or"])
def test_other_refusals(function):
    refused(f"tl.{function}(x, 0)", "bad-shape", "wants a tile, not a scalar", x="scalar int32")
    refused(f"tl.{function}(x, None)", "bad-shape", "wants a tile, not a scalar", x="scalar int32")
    refused(f"n = 0\ntl.{function}(x, n)", "not-constexpr", x="int32")
    refused(f"tl.{function}(x, 0, keep=True)", "bad-call", x="int32")
    refused(f"tl.{function}(p, 0)", None, p="int32", pointers="p")


def test_reduce_or_has_no_default_axis():
    refused("tl.reduce_or(x)", "bad-call", x="int32")


def test_several_in_a_row():
    x = np.arange(64, dtype=np.int32).reshape(4, 2, 8)
    body = "a = tl.sum(x, 1)\nb = tl.sum(a, 0)\nc = tl.sum(b - tl.sum(a, 0, keep_dims=True), axis=None)"
    a, b, c = tiles(body, {"x": x}, a=("int32", (4, 8)), b=("int32", (8,)), c=("int32", ()))
    same(a, x.sum(1, np.int32))
    same(b, x.sum((0, 1), np.int32))
    assert c == 0


def test_types_seen_by_the_kernel():
    for name in ALL:
        if not TYPES[name].is_fp8:
            compiles(f"tl.static_assert(tl.sum(x, 0).dtype == tl.{widened(name)})", x=name)
