"""`tl.associative_scan`, `cumsum`, `cumprod`: axes, directions, widening, several tiles, refusals."""

import numpy as np
import pytest

from ._common import SIZES, functions, refused, same, tiles, value
from ._numbers import ALL, FLOATS, INTS, TYPES, Typed, array, decode, encode, samples, wrap
from .reduce import FUNCTIONS
from .sum import widened

COVERS = ["associative_scan", "cumsum", "cumprod"]

SCANS = {"cumsum": np.add, "cumprod": np.multiply}
SHAPES = [(1,), (8,), (4, 8), (2, 4, 8), (2, 2, 4, 2), (1, 8), (8, 1)]


def accumulated(f, x, axis, reverse=False):
    if reverse:
        return np.flip(f.accumulate(np.flip(x, axis), axis=axis, dtype=x.dtype), axis)
    return f.accumulate(x, axis=axis, dtype=x.dtype)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("function", SCANS)
def test_axes_and_directions(function, shape):
    x = np.random.default_rng(1).integers(-9, 9, shape).astype(np.int32)
    f = SCANS[function]
    for axis in range(-len(shape), len(shape)):
        for reverse in (False, True):
            with np.errstate(over="ignore"):
                want = accumulated(f, x, axis, reverse)
            calls = [
                f"tl.{function}(x, {axis}, {reverse})",
                f"x.{function}(axis={axis}, reverse={reverse})",
            ]
            calls += [f"tl.{function}(input=x, axis={axis})"] * (not reverse)
            for call in calls:
                same(value(call, "int32", inputs={"x": x}), want)
    # The default axis is the first, whatever the rank.
    same(value(f"tl.{function}(x)", "int32", inputs={"x": x}), accumulated(f, x, 0))
    same(value(f"x.{function}(reverse=True)", "int32", inputs={"x": x}), accumulated(f, x, 0, True))


@pytest.mark.parametrize("name", ["int1", *INTS])
@pytest.mark.parametrize("function", SCANS)
def test_integers_widen_and_wrap(function, name):
    x, out = samples(name, 32), widened(name)
    want = wrap(out, SCANS[function].accumulate(x.astype(object) + 0))
    same(value(f"tl.{function}(x)", out, inputs={"x": x}), want)


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("function", SCANS)
def test_floats_stay_in_their_type(function, name):
    values = [1, 2, -1, 4, 0.5, 0.25, 2, -2]
    x = array(name, values)
    want = encode(name, SCANS[function].accumulate(np.array(values, float)))
    same(value(f"tl.{function}(x)", name, inputs={"x": Typed(name, x)}), want, name)


@pytest.mark.parametrize("function", SCANS)
@pytest.mark.parametrize(
    "name, out",
    [
        ("int8", "int64"),
        ("int1", "int32"),
        ("float16", "float32"),
        ("int32", "float64"),
        ("float32", "int32"),
        ("int32", "int8"),
    ],
)
def test_the_dtype_is_that_of_the_elements(name, out, function):
    x = array(name, [1, 1, 1, 0] if name == "int1" else [3, 7, 9, 11])
    elements = [int(v) for v in decode(name, x)]
    want = SCANS[function].accumulate(np.array(elements, object))
    want = wrap(out, want) if TYPES[out].is_int else array(out, want.astype(float))
    same(value(f"tl.{function}(x, dtype=tl.{out})", out, inputs={"x": Typed(name, x)}), want)
    same(value(f"x.{function}(0, False, tl.{out})", out, inputs={"x": Typed(name, x)}), want)


@pytest.mark.parametrize("n", SIZES)
def test_odd_sizes(n):
    x = np.arange(2 * n, dtype=np.int64).reshape(2, n) % 97
    same(value("tl.cumsum(x, 1)", "int64", inputs={"x": x}), x.cumsum(1))
    same(value("tl.cumsum(x, 0)", "int64", inputs={"x": x}), x.cumsum(0))
    same(
        value("tl.cumsum(x, 1, reverse=True)", "int64", inputs={"x": x}),
        accumulated(np.add, x, 1, True),
    )


def test_views():
    x = np.arange(64, dtype=np.int32).reshape(8, 8)
    for view in (x.T, x[::-1, ::2], x[4:, :2]):
        same(value("tl.cumsum(x, 1)", "int32", inputs={"x": view}), view.cumsum(1, np.int32))


def test_sums_that_round_are_as_good_as_any_order():
    x = np.random.default_rng(6).uniform(0, 1, 512).astype(np.float32)
    got = value("tl.cumsum(x)", "float32", inputs={"x": x})
    np.testing.assert_allclose(got, x.astype(np.float64).cumsum(), rtol=512 * 2.0**-24)


# ---- combine functions ----------------------------------------------------------------------------

MORE = FUNCTIONS | functions(
    """
@triton.jit
def line(a1, b1, a2, b2):
    return a2 * a1, a2 * b1 + b2

@triton.jit
def segmented(s1, f1, s2, f2):
    return tl.where(f2, s2, s1 + s2), f1 | f2
"""
)


@pytest.mark.parametrize("shape", SHAPES)
def test_one_tile(shape):
    x = np.random.default_rng(5).integers(-99, 99, shape).astype(np.int32)
    functions = {
        "plus": np.add,
        "larger": np.maximum,
        "both": np.bitwise_and,
        "branching": np.maximum,
    }
    for name, f in functions.items():
        for axis in (0, -1):
            for reverse in (False, True):
                want = accumulated(f, x, axis, reverse)
                for call in (
                    f"tl.associative_scan(x, {axis}, {name}, {reverse})",
                    f"x.associative_scan(axis={axis}, combine_fn={name}, reverse={reverse})",
                ):
                    same(value(call, "int32", inputs={"x": x}, names=MORE), want)


@pytest.mark.parametrize("name", [n for n in ALL if not TYPES[n].is_fp8])
def test_the_type_is_kept(name):
    x = array(name, [1, 1, 0, 1, 1, 0, 0, 1])
    with np.errstate(all="ignore"):
        numbers = decode(name, x)
        want = (
            wrap(name, np.add.accumulate(numbers.astype(object) + 0))
            if TYPES[name].is_int
            else encode(name, numbers.cumsum())
        )
    same(
        value("tl.associative_scan(x, 0, plus)", name, inputs={"x": Typed(name, x)}, names=MORE),
        want,
        name,
    )


@pytest.mark.parametrize("n", [1, 31, 127])
@pytest.mark.parametrize("reverse", [False, True])
def test_a_recurrence(reverse, n):
    """`h = a * h + b`, which many kernels of state-space models scan."""
    rng = np.random.default_rng(n)
    a, b = rng.integers(-2, 3, n), rng.integers(-9, 9, n)
    h, want = 0, []
    for p, q in list(zip(a.tolist(), b.tolist()))[:: -1 if reverse else 1]:
        h = p * h + q
        want.append(h)
    want = wrap("int64", want[:: -1 if reverse else 1])
    body = f"p, q = tl.associative_scan((a, b), 0, line, reverse={reverse})"
    # What lies beyond the end must not matter when scanning from there: it is the identity.
    inputs = {"a": a, "b": b}
    got = tiles(
        body, inputs, other={"a": "1", "b": "0"}, names=MORE, p=("int64", (n,)), q=("int64", (n,))
    )
    same(got[1], want)


def test_several_tiles_of_several_types():
    x = np.arange(1, 9, dtype=np.float32)
    starts = np.array([1, 0, 0, 1, 0, 1, 0, 0], bool)
    got = tiles(
        "s, f = tl.associative_scan((x, c), 0, segmented)",
        {"x": x, "c": starts},
        names=MORE,
        s=("float32", (8,)),
        f=("int1", (8,)),
    )
    assert got[0].tolist() == [1, 3, 6, 4, 9, 6, 13, 21]
    assert got[1].tolist() == [True] * 8


def test_the_form_of_what_goes_in_comes_out():
    x = np.arange(4, dtype=np.int32)
    assert value(
        "tl.associative_scan((x,), 0, plus)[0]", "int32", inputs={"x": x}, names=MORE
    ).tolist() == [0, 1, 3, 6]


@pytest.mark.parametrize(
    "call, id",
    [
        ("tl.associative_scan(x, 1, plus)", None),
        ("tl.associative_scan(x, 0)", "bad-call"),
        ("tl.associative_scan((x, x), 0, plus)", None),
        ("tl.associative_scan((x, x), 0, one_of_two)", "bad-return"),
        ("tl.associative_scan((x, y), 0, one_of_two)", "shape-mismatch"),
        ("tl.associative_scan(x, 0, tile)", "bad-return"),
        ("tl.associative_scan(s, 0, plus)", None),
        ("tl.cumsum(x, 1)", None),
        ("tl.cumsum(x, -2)", None),
        ("tl.cumsum(s)", "bad-shape"),
        ("tl.cumprod(s)", "bad-shape"),
        ("tl.cumprod(x, axis=(0,))", None),
        ("n = 0\ntl.cumsum(x, n)", "not-constexpr"),
    ],
)
def test_scans_that_are_refused(call, id):
    refused(call, id, names=FUNCTIONS, x="int32", y="int32[4]", s="scalar int32")
