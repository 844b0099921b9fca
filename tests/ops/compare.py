"""Comparisons, `not`, `and`, `or`, and the methods `.logical_and`, `.logical_or`."""

import operator

import numpy as np
import pytest

from ._common import SIZES, compiles, refused, same, tiles, value
from ._numbers import (
    ALL,
    FLOATS,
    FP8,
    INTS,
    TYPES,
    Typed,
    common,
    crossed,
    decode,
    samples,
    wrap,
)

COVERS = ["logical_and", "logical_or"]

SYMBOLS = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt,
    "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


@pytest.mark.parametrize("symbol", SYMBOLS)
@pytest.mark.parametrize("a", ["int1", *INTS])
def test_integers_in_the_promoted_type(a, symbol):
    for b in ["int1", *INTS]:
        name = common(a, b)
        x, y = crossed(a, b, 20)
        want = SYMBOLS[symbol](wrap(name, x.astype(object)), wrap(name, y.astype(object)))
        same(value(f"x {symbol} y", "int1", inputs={"x": x, "y": y}), want)


@pytest.mark.parametrize("symbol", SYMBOLS)
@pytest.mark.parametrize("name", FLOATS + FP8)
def test_floats_with_nan_and_both_zeros(name, symbol):
    x, y = crossed(name, name, 40)
    want = SYMBOLS[symbol](decode(name, x), decode(name, y))
    same(value(f"x {symbol} y", "int1", inputs={"x": Typed(name, x), "y": Typed(name, y)}), want)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("symbol", SYMBOLS)
def test_literals(symbol, name):
    literal = "1" if TYPES[name].kind != "bool" else "True"
    x = samples(name, 64)
    want = SYMBOLS[symbol](decode(name, x), 1)
    same(value(f"x {symbol} {literal}", "int1", inputs={"x": Typed(name, x)}), want)
    want = SYMBOLS[symbol](1, decode(name, x))
    same(value(f"{literal} {symbol} x", "int1", inputs={"x": Typed(name, x)}), want)


def test_a_fraction_is_compared_with_integers_in_float32():
    x = np.array([2, 3, -3], np.int64)
    assert value("x > 2.5", "int1", inputs={"x": x}).tolist() == [False, True, False]


def test_chains():
    x = np.arange(-8, 8)
    same(value("-3 < x <= 4", "int1", inputs={"x": x}), (-3 < x) & (x <= 4))
    same(value("0 <= x < 4 != x", "int1", inputs={"x": x}), (0 <= x) & (x < 4))
    same(value("3 < 2 < x", "int1", (), {"x": x})[None], np.array([False]))


def test_what_is_compared_at_compile_time():
    compiles(
        "tl.static_assert(1 < 2.5)",
        "tl.static_assert('a' == 'a')",
        "tl.static_assert('a' != 'b')",
        "tl.static_assert(1 < 2 < 3)",
        "tl.static_assert(tl.int32 != tl.int64)",
        "tl.static_assert(x.dtype == tl.float16)",
        "tl.static_assert((1, 2) == (1, 2))",
        "tl.static_assert(None is None)",
        "tl.static_assert(x is not None)",
        "tl.static_assert(not None)",
        "tl.static_assert(True == 1)",
        x="float16",
    )


@pytest.mark.parametrize("body", ["p == p", "p < p", "p != None", "p == 0"])
def test_pointers_are_not_compared(body):
    refused(body, "type-mismatch", "pointers cannot be compared", p="int32", pointers=["p"])


@pytest.mark.parametrize("body", ["x in (1, 2)", "x not in (1, 2)"])
def test_membership_of_run_time_values_is_refused(body):
    refused(body, None, "`in`", x="int32")


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("shape", [(), (1, 1)])
def test_odd_sizes(shape, n):
    x, y = samples("int16", n).reshape(n, *shape), samples("int16", n, seed=4).reshape(n, *shape)
    same(value("x <= y", "int1", inputs={"x": x, "y": y}), x <= y)


# ---- and, or, not ---------------------------------------------------------------------------------

BOOLS = {"x": np.array([False, False, True, True]), "y": np.array([False, True, False, True])}


@pytest.mark.parametrize(
    "expression, want",
    [
        ("x and y", [0, 0, 0, 1]), ("x or y", [0, 1, 1, 1]), ("not x", [1, 1, 0, 0]),
        ("x & y", [0, 0, 0, 1]), ("x | y", [0, 1, 1, 1]), ("x ^ y", [0, 1, 1, 0]), ("~x", [1, 1, 0, 0]),
        ("x.logical_and(y)", [0, 0, 0, 1]), ("x.logical_or(y)", [0, 1, 1, 1]),
        ("x.logical_and(other=y)", [0, 0, 0, 1]), ("x.logical_or(other=y)", [0, 1, 1, 1]),
        ("x and True", [0, 0, 1, 1]), ("True and x", [0, 0, 1, 1]), ("x or False", [0, 0, 1, 1]),
        ("False or x", [0, 0, 1, 1]), ("x.logical_and(False)", [0, 0, 0, 0]),
        ("x and y or not x", [1, 1, 0, 1]),
    ],
)  # fmt: skip
def test_booleans(expression, want):
    got = value(expression, "int1", (4,), BOOLS)
    assert got.tolist() == [bool(w) for w in want]


def test_scalars():
    for x in (False, True):
        for y in (False, True):
            inputs = {"x": np.array(x), "y": np.array(y)}
            assert value("x and y", "int1", (), inputs) == (x and y)
            assert value("x or y", "int1", (), inputs) == (x or y)
            assert value("not x", "int1", (), inputs) == (not x)


@pytest.mark.parametrize("name", [name for name in ALL if not TYPES[name].is_fp8])
def test_the_methods_ask_whether_a_value_is_zero(name):
    x, y = crossed(name, name, 16)
    p, q = decode(name, x) != 0, decode(name, y) != 0
    inputs = {"x": Typed(name, x), "y": Typed(name, y)}
    same(value("x.logical_and(y)", "int1", inputs=inputs), p & q)
    same(value("x.logical_or(y)", "int1", inputs=inputs), p | q)


def test_the_methods_broadcast():
    x, y = np.array([[True], [False]]), np.array([False, True, True, False])
    same(value("x.logical_or(y)", "int1", (2, 4), {"x": x, "y": y}), x | y)
    same(value("x.logical_and(y)", "int1", (2, 4), {"x": x, "y": y}), x & y)


def test_compile_time_operands_are_folded_by_their_truth():
    compiles(
        "tl.static_assert((3 and 5) == 5)",
        "tl.static_assert((0 or 7) == 7)",
        "tl.static_assert((None or 7) == 7)",
        "tl.static_assert((0 and undefined) == 0)",
        "tl.static_assert((1 or undefined) == 1)",
        "tl.static_assert(not 0)",
    )
    # A run-time value is not known to be true, and what follows it decides.
    assert value("n and 3", "int32", inputs={"n": 7}) == 7
    assert tiles("r = tl.to_tensor(n or 5)", {"n": 7}, r="int32") == 5
    assert tiles("r = tl.to_tensor(n and 0)", {"n": 7}, r="int32") == 0


@pytest.mark.parametrize(
    "condition", ["not not 2.5", "(2.5 and 3) == 3", "('' or 3) == 3", "(0.0 or 3) == 3", "not ''"]
)
def test_the_truth_of_other_constants(condition):
    """Only an `if` wants a bool, an integer or None."""
    compiles(f"tl.static_assert({condition})")


def test_a_missing_pointer_guards_its_load():
    body = "r = x is not None and tl.load(x) > 0"
    assert tiles("r = tl.to_tensor(x is not None and tl.load(x) > 0)", {"x": None}, r="int1") == 0
    x = np.array([4.0])
    assert tiles(body, {"x": x}, pointers=["x"], r="int1") == 1


@pytest.mark.parametrize("body", ["not x", "x and x", "x or x"])
@pytest.mark.parametrize("name", ["int32", "uint8", "float32", "float16"])
def test_wider_operands_are_refused(body, name):
    refused(body, "type-mismatch", x=f"scalar {name}")
