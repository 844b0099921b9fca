"""Hints: `tl.multiple_of`, `max_contiguous`, `max_constancy`, `assume`, `debug_barrier`."""

import numpy as np
import pytest

from ._common import compiles, define, refused, same, tiles, value
from ._numbers import ALL, Typed, samples

COVERS = ["multiple_of", "max_contiguous", "max_constancy", "assume", "debug_barrier"]

HINTS = ["multiple_of", "max_contiguous", "max_constancy"]


@pytest.mark.parametrize("hint", HINTS)
@pytest.mark.parametrize(
    "shape, values",
    [
        ((8,), "8"),
        ((8,), "(8,)"),
        ((8,), "[4]"),
        ((4, 8), "(4, 8)"),
        ((4, 8), "[1, 8]"),
        ((2, 2, 2), "(1, 1, 2)"),
        ((), "16"),
        ((8,), "A"),
        ((8,), "(A,)"),
    ],
)
def test_the_value_is_returned(shape, values, hint):
    # True promises: of multiples, of runs, and of constancy of length 1 and 2.
    x = np.zeros(shape, np.int32)
    if hint == "max_contiguous":
        values = values.replace("16", "1").replace("8", "1").replace("4", "1").replace("2", "1")
    for call in (f"tl.{hint}(x, {values})", f"tl.{hint}(input=x, values={values})"):
        got = tiles(
            f"A: tl.constexpr = {'1' if hint == 'max_contiguous' else '2'}\nr = {call}",
            {"x": x},
            r=("int32", shape),
        )
        same(got, x)


@pytest.mark.parametrize("name", ALL)
def test_every_type(name):
    x = samples(name, 8)
    for hint in HINTS:
        assert (
            value(f"tl.{hint}(x, 1)", name, inputs={"x": Typed(name, x)}).tobytes() == x.tobytes()
        )


@pytest.mark.parametrize("hint", HINTS)
def test_pointers_and_constexprs(hint):
    p = np.arange(8, dtype=np.int32)
    body = f"i = tl.{hint}(tl.arange(0, 8), 1)\nr = tl.load(tl.{hint}(p + i, 1))"
    same(tiles(body, {"p": p}, pointers="p", r=("int32", (8,))), p)
    assert value(f"tl.{hint}(n, 1)", "int32", inputs={"n": 1}) == 1
    compiles(f"tl.static_assert(tl.{hint}(16, 16) == 16)")


def test_the_idiom_of_matrix_products():
    x = np.arange(64, dtype=np.float32)
    body = "i = tl.max_contiguous(tl.multiple_of((tl.arange(0, 16) + 16) % 64, 16), 16)\nr = tl.load(p + i)"
    same(tiles(body, {"p": x}, pointers="p", r=("float32", (16,))), x[16:32])


@pytest.mark.parametrize("hint", HINTS)
@pytest.mark.parametrize("values", ["(1, 1)", "()", "[1, 1, 1]", "-1", "'a'"])
def test_values_that_are_refused(hint, values):
    refused(f"tl.{hint}(x, {values})", None, x="int32")
    refused(f"tl.{hint}(x, 1)", "bad-argument", "2 values are wanted", x="int32[4, 4]")
    refused(f"n = 8\ntl.{hint}(x, n)", "not-constexpr", x="int32")
    refused(f"tl.{hint}(x)", "bad-call", x="int32")


@pytest.mark.parametrize(
    "condition", ["n > 0", "n % 2 == 1", "x >= 0", "True", "n == 7", "x[:, None] >= 0", "n"]
)
def test_assumptions_that_hold(condition):
    x = np.arange(8, dtype=np.int32)
    same(
        tiles(
            f"tl.assume({condition})\ntl.assume(cond={condition})\nr = x * n",
            {"x": x, "n": 7},
            r=("int32", (8,)),
        ),
        x * 7,
    )


def test_assume_wants_a_condition():
    refused("tl.assume()", "bad-call")


def test_an_assumption_that_cannot_hold():
    refused("tl.assume(x.shape[0] == 3)", None, x="int32")


def test_barriers_in_every_place():
    kernel = define(
        """
        @triton.jit
        def kernel(p, n, BLOCK: tl.constexpr):
            i = tl.arange(0, BLOCK)
            tl.store(p + i, i)
            tl.debug_barrier()
            for k in range(n):
                v = tl.load(p + BLOCK - 1 - i)
                tl.debug_barrier()
                tl.store(p + i, v + 1)
                tl.debug_barrier()
            if n > 2:
                tl.debug_barrier()
        """
    )["kernel"]
    for n in range(5):
        out = np.zeros(16, np.int32)
        kernel[(1,)](out, n, BLOCK=16)
        i = np.arange(16)
        assert out.tolist() == ((i if n % 2 == 0 else 15 - i) + n).tolist()
    refused("tl.debug_barrier(1)", "bad-call")
