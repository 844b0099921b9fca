"""`tl.tuple` and tuples of the language; `tl._log2`, which libraries of kernels call."""

import numpy as np
import pytest

from ._common import compiles, refused, tiles

COVERS = ["tuple", "_log2"]


@pytest.mark.parametrize(
    "call", ["tl.tuple((1, 2, 3))", "tl.tuple([1, 2, 3])", "tl.tuple(values=(1, 2, 3))"]
)
def test_a_tuple_of_values(call):
    compiles(
        f"tl.static_assert(len({call}) == 3)",
        f"T: tl.constexpr = {call}",
        "tl.static_assert(T[1] == 2)",
    )


def test_run_time_elements():
    body = """
        t = tl.tuple((x, n, None, tl.float16))
        tl.static_assert(t[0].shape == (8,))
        tl.static_assert(t[2] is None)
        tl.static_assert(t[3] == tl.float16)
        u = t[:2] + (x * 2,)
        r = u[0] + u[1] + u[2]
    """
    x = np.arange(8, dtype=np.int32)
    assert tiles(body, {"x": x, "n": 5}, r=("int32", (8,))).tolist() == (3 * x + 5).tolist()


def test_tuples_go_through_functions_loops_and_branches():
    before = """
@triton.jit
def swap(t):
    return t[1], t[0]
"""
    body = """
        t = (n, n * 10)
        for i in range(3):
            t = swap(t)
        if n > 5:
            t = swap(t)
        a, b = t
    """
    for n in (3, 7):
        a, b = tiles(body, {"n": n}, before=before, a="int32", b="int32")
        assert (a, b) == ((30, 3) if n <= 5 else (7, 70))


def test_tuples_that_are_arguments():
    body = "tl.store(t[0], t[1] + t[2][0])\ntl.static_assert(len(t) == 3)"
    out = np.zeros(1, np.int32)
    tiles(body, {"t": (out, 7, (5, 1))})
    assert out[0] == 12


@pytest.mark.parametrize(
    "body",
    [
        "t = (1, 2)\nt[0] = 3",
        "a, *b = (1, 2)",
        "a, b = (1, 2, 3)",
        "a, b, c = (1, 2)",
        "t = (n, n)\nt[n]",
        "(1, 2)[2]",
        "(1, 2) + 3",
    ],
)
def test_what_is_refused(body):
    refused(body, None, n=7)


@pytest.mark.parametrize("n", [1, 2, 8, 1024, 2**20])
def test_the_logarithm_of_powers_of_two(n):
    compiles(f"tl.static_assert(tl._log2({n}) == {n.bit_length() - 1})")
