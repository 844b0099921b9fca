"""`tl.tuple` and tuples: made, taken apart, joined, compared; from the launch, in loops and branches."""

from typing import NamedTuple

import numpy as np
import pytest

import naiad as triton

from ._common import compiles, define, functions, refused, same, tiles, value

COVERS = ["tuple"]


@pytest.mark.parametrize(
    "make",
    [
        "(x, y, 3)",
        "tl.tuple((x, y, 3))",
        "tl.tuple([x, y, 3])",
        "tl.tuple(values=(x, y, 3))",
        "[x, y, 3]",
        "tl.tuple([x]) + (y, 3)",
        "(0, x, y, 3, 4)[1:-1]",
        "tl.tuple((x, y)) + tl.tuple([3])",
        "[e for e in (x, y, 3)]",
        "tl.core.tuple([x, y, 3])",
    ],
)
def test_making(make):
    x, y = np.arange(4, dtype=np.int32), np.full(4, 50, np.int32)
    body = f"t = {make}\na, b, c = t\nr = a + b * t[-1] + c * t[2] + len(t)"
    same(tiles(body, {"x": x, "y": y}, r=("int32", (4,))), x + 150 + 9 + 3)


HOLDS = [
    "len(tl.tuple()) == 0", "len(tl.tuple([])) == 0", "len(tl.tuple((1,))) == 1",
    "tl.tuple((1, 2))[0] == 1", "tl.tuple((1, 2))[-1] == 2", "tl.tuple((1, 2, 3))[1:][0] == 2",
    "len(tl.tuple((1, 2, 3))[::2]) == 2", "tl.tuple((1, 2, 3))[::-1][0] == 3",
    "(1, 2) == (1, 2)", "tl.tuple((1, 2)) == (1, 2)", "(1, 2) != (1, 3)", "not ((1, 2) == (1, 2, 3))",
    "tl.tuple((1, (2, 3)))[1][0] == 2", "len((1, 2) * 3) == 6", "((1, 2) * 2)[2] == 1",
    "len((1, 2) + (3,)) == 3", "(x.shape + (1,))[1] == 1", "len(x.shape[:-1] + (2 * x.shape[-1],)) == 1",
    "tl.tuple((tl.int32, 'a', None))[1] == 'a'", "tl.tuple((tl.int32, None))[0] == tl.int32",
    "tl.tuple((None,))[0] is None",
]  # fmt: skip


@pytest.mark.parametrize("condition", HOLDS)
def test_what_is_known_at_compile_time(condition):
    compiles(f"tl.static_assert({condition})", x="int32")


def test_elements_of_a_literal_become_run_time_values_when_assigned():
    """So a tuple held by a variable gives no shape, and one in an expression does."""
    assert value("tl.arange(0, (2, 4)[1])", "int32", (4,)).tolist() == [0, 1, 2, 3]
    compiles("t: tl.constexpr = (2, 4)", "tl.arange(0, t[1])", x="int32")
    refused("t = (2, 4)\ntl.arange(0, t[1])", "not-constexpr", x="int32")


def test_nested_ones_taken_apart():
    body = "((a, b), c), d = ((1, 2), 3), x\n(a, b) = (b, a)\nr = a * 1000 + b * 100 + c * 10 + d"
    assert tiles(body, {"x": np.int32(4)}, r="int32") == 2134


@pytest.mark.parametrize("n", [0, 1, 5])
def test_carried_by_loops(n):
    body = """
        t = (x, x * 2, 0)
        for i in range(n):
            t = (t[1], t[0] + 1, t[2] + i)
        r = t[0] * 100 + t[1] * 10 + t[2]
        u = (t, (1,))
        k = 0
        while k < n:
            u = (u[0], (u[1][0] * 2,))
            k += 1
        q = u[1][0]
    """
    a, b, c = 3, 6, 0
    for i in range(n):
        a, b, c = b, a + 1, c + i
    r, q = tiles(body, {"x": np.int32(3), "n": np.int32(n)}, r="int32", q="int32")
    assert (r, q) == (a * 100 + b * 10 + c, 2**n)


@pytest.mark.parametrize("n", [1, 9])
def test_changed_by_branches(n):
    body = """
        t = (x, 1)
        if n > 5:
            t = (x * 2, 7)
            u = (x, (x, 5))
        else:
            u = (x + 1, (x, 6))
        r = t[0] + t[1] + u[0] + u[1][1]
    """
    x = np.arange(4, dtype=np.int32)
    want = x * 2 + 7 + x + 5 if n > 5 else x + 1 + x + 1 + 6
    same(tiles(body, {"x": x, "n": n}, r=("int32", (4,))), want)


HELPERS = functions(
    """
@triton.jit
def swapped(t):
    return t[1], t[0]

@triton.jit
def total(t):
    s = 0
    for i in tl.static_range(len(t)):
        s += t[i]
    return s

@triton.jit
def spread(a, b, c):
    return a * 100 + b * 10 + c

@triton.jit
def collected(*args):
    return total(args) + len(args)
"""
)


@pytest.mark.parametrize(
    "expression, want",
    [
        ("total((x, x, 4))", 10),
        ("total(tl.tuple([x, 1]))", 4),
        ("total(())", 0),
        ("spread(*swapped((1, x)), 5)", 315),
        ("spread(*(1, 2, x))", 123),
        ("collected(1, 2, x)", 9),
        ("collected(*(x, x))", 8),
        ("swapped(swapped((x, 9)))[0]", 3),
    ],
)
def test_to_and_from_functions(expression, want):
    assert value(expression, "int32", (), {"x": np.int32(3)}, names=HELPERS) == want


class Pair(NamedTuple):
    first: object
    second: object


def test_from_the_launch():
    kernel = define(
        """
        @triton.jit
        def kernel(both, numbers, out, B: tl.constexpr):
            i = tl.arange(0, B)
            v = tl.load(both[0] + i) * numbers[0] + tl.load(both[1] + i) * numbers[1][0]
            tl.store(out + i, v + numbers[1][1])
        """
    )["kernel"]
    x, y, out = np.arange(4, dtype=np.int32), np.full(4, 9, np.int32), np.zeros(4, np.int32)
    for a, b, c in ((2, 3, 5), (1, 1, 1), (16, 0, -7)):
        kernel[(1,)]((x, y), (a, (b, c)), out, B=4)
        same(out, x * a + y * b + c)


def test_named_ones_of_the_launch():
    kernel = define(
        """
        @triton.jit
        def kernel(p, out, B: tl.constexpr):
            i = tl.arange(0, B)
            a, b = p
            tl.store(out + i, tl.load(p.first + i) + p.second + tl.load(a + i) * b + len(p))
        """
    )["kernel"]
    x, out = np.arange(4, dtype=np.int32), np.zeros(4, np.int32)
    kernel[(1,)](Pair(x, 5), out, B=4)
    same(out, x + 5 + x * 5 + 2)


def test_constants_of_the_launch():
    kernel = define(
        """
        @triton.jit
        def kernel(out, SHAPE: tl.constexpr, none):
            tl.static_assert(none[0] is None)
            tl.store(out + tl.arange(0, SHAPE[0] * SHAPE[1]), len(SHAPE))
        """
    )["kernel"]
    out = np.zeros(16, np.int32)
    kernel[(1,)](out, (2, 4), (None,))
    assert out.tolist() == [2] * 8 + [0] * 8
    kernel[(1,)](out, (4, 4), (None,))
    assert out.tolist() == [2] * 16


def test_on_the_host():
    t = triton.language.tuple((1, 2))
    assert t == (1, 2) and isinstance(t, tuple)


@pytest.mark.parametrize(
    "body, id, message",
    [
        ("tl.tuple(5)", "bad-argument", "wants a tuple or a list"),
        ("tl.tuple(x)", "bad-argument", "wants a tuple or a list"),
        ("tl.tuple(1, 2)", "bad-call", ""),
        ("a, b = (1, 2, 3)", None, "too many values to unpack"),
        ("a, b, c = (1, 2)", None, "not enough values to unpack"),
        ("a, *b = (1, 2)", "unsupported-python", ""),
        ("t = (1, 2)\nt[0] = 5", "unsupported-python", ""),
        ("(1, 2)[n]", "not-constexpr", ""),
        ("(1, 2)[2]", None, ""),
        ("(1, 2)[-3]", None, ""),
        ("t = (x, 1)\nfor i in range(n):\n    t = (x,)", "loop-type-change", ""),
        ("t = (x, 1)\nfor i in range(n):\n    t = (x, 1.5)", "loop-type-change", ""),
        ("for e in (1, 2):\n    pass", "type-mismatch", ""),
        ("(1, 2) + x", None, ""),
        ("(1, 2).append(3)", None, ""),
    ],
)
def test_what_is_refused(body, id, message):
    refused(body, id, message, x="int32", n="scalar int32")


@pytest.mark.parametrize("changed", ["(x, x)", "(x, 1.5)", "(x,)", "(x, (1, 2))"])
def test_branches_that_change_an_element_s_type(changed):
    body = f"t = (x, 1)\nif n > 1:\n    t = {changed}\ny = t[0]"
    refused(body, "branch-type-mismatch", x="int32", n="scalar int32")
