"""`triton.cdiv` and `triton.next_power_of_2`, on the host and in kernels."""

import numpy as np
import pytest

import naiad as triton

from ._common import compiles, refused, tiles

COVERS = ["triton.cdiv", "triton.next_power_of_2"]

PAIRS = [
    (0, 4),
    (1, 4),
    (4, 4),
    (5, 4),
    (1021, 64),
    (7, 1),
    (2**40 + 1, 2**20),
    (-7, 2),
    (-8, 4),
    (10**30, 10**15),
]


@pytest.mark.parametrize("x, y", PAIRS)
def test_cdiv_rounds_up(x, y):
    want = -(-x // y)
    assert triton.cdiv(x, y) == want
    compiles(f"tl.static_assert(triton.cdiv({x}, {y}) == {want})")
    compiles(f"tl.static_assert(triton.cdiv(x={x}, y={y}) == {want})")


POWERS = [0, 1, 2, 3, 4, 5, 7, 8, 9, 1021, 1024, 1025, 2**31 - 1, 2**31, 2**40 + 1, 2**62]


@pytest.mark.parametrize("n", POWERS)
def test_next_power_of_2(n):
    want = 1 << (n - 1).bit_length() if n else 0
    assert triton.next_power_of_2(n) == want
    compiles(f"tl.static_assert(triton.next_power_of_2({n}) == {want})")
    compiles(f"tl.static_assert(triton.next_power_of_2(n={n}) == {want})")


def test_results_are_shapes():
    body = "N: tl.constexpr = 13\nr = tl.arange(0, triton.next_power_of_2(N)) + triton.cdiv(N, 4)"
    assert tiles(body, r=("int32", (16,))).tolist() == list(range(4, 20))
    body = "r = tl.zeros((triton.cdiv(x.shape[0], 4),), tl.int8)"
    tiles(body, {"x": np.zeros(16)}, r=("int8", (4,)))


def test_an_argument_that_is_one_is_known():
    assert tiles("r = tl.to_tensor(triton.cdiv(n, 4))", {"n": 1}, r="int32") == 1


@pytest.mark.parametrize(
    "call", ["triton.cdiv(n, 4)", "triton.cdiv(4, n)", "triton.next_power_of_2(n)"]
)
def test_run_time_values_are_refused(call):
    refused(call, "not-constexpr", n=7)


def test_other_refusals():
    refused("triton.cdiv(1, 0)", None)
    refused("triton.cdiv(1)", "bad-call")
    refused("triton.next_power_of_2()", "bad-call")
