"""`tl.map_elementwise`: control flow on each element, packs, several tiles and results, refusals."""

import numpy as np
import pytest

from ._common import SIZES, functions, refused, same, tiles, value

COVERS = ["map_elementwise"]

FUNCTIONS = functions(
    """
@triton.jit
def sign(x):
    if x > 0:
        r = 1
    elif x < 0:
        r = -1
    else:
        r = 0
    return r

@triton.jit
def steps(n):
    k = 0
    while n > 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        k += 1
    return k

@triton.jit
def gcd(a, b):
    while b != 0:
        t = a % b
        a = b
        b = t
    return a

@triton.jit
def both(a, b):
    return a + b, a.to(tl.float32) * 0.5

@triton.jit
def swap(a0, a1):
    return a1, a0

@triton.jit
def pairs(a0, a1, b0, b1):
    return a0 + a1, a0 - a1, b0 * b1, b0

@triton.jit
def three(a0, a1):
    return a0, a1, a0

@triton.jit
def mixed(a0, a1):
    return a0, a1.to(tl.float32)

@triton.jit
def nothing(a):
    pass
"""
)


@pytest.mark.parametrize("shape", [(), (1,), (8,), (4, 8), (2, 2, 4)])
def test_branches(shape):
    x = np.asarray(np.arange(int(np.prod(shape)), dtype=np.int32).reshape(shape) - 3)
    for call in ("tl.map_elementwise(sign, x)", "tl.map_elementwise(sign, x, pack=1)"):
        same(value(call, "int32", shape, {"x": x}, names=FUNCTIONS), np.sign(x))


@pytest.mark.parametrize("n", SIZES)
def test_loops_of_each_element(n):
    x = np.arange(1, n + 1, dtype=np.int32)
    y = x * 37 % 64 + 1
    want = []
    for m in x.tolist():
        k = 0
        while m > 1:
            m, k = m // 2 if m % 2 == 0 else 3 * m + 1, k + 1
        want.append(k)
    same(
        value("tl.map_elementwise(steps, x)", "int32", inputs={"x": x}, names=FUNCTIONS),
        np.array(want, np.int32),
    )
    same(
        value("tl.map_elementwise(gcd, x, y)", "int32", inputs={"x": x, "y": y}, names=FUNCTIONS),
        np.gcd(x, y),
    )


def test_tiles_broadcast():
    x, y = np.arange(1, 9, dtype=np.int32), np.array([[6], [4]], np.int32)
    same(
        value("tl.map_elementwise(gcd, x, y)", "int32", (2, 8), {"x": x, "y": y}, names=FUNCTIONS),
        np.gcd(x, y),
    )


def test_several_results():
    x, y = np.arange(8, dtype=np.int32), np.arange(8, dtype=np.int32) * 10
    a, b = tiles(
        "a, b = tl.map_elementwise(both, x, y)",
        {"x": x, "y": y},
        names=FUNCTIONS,
        a=("int32", (8,)),
        b=("float32", (8,)),
    )
    same(a, x + y)
    same(b, (x * 0.5).astype(np.float32))


def test_packs():
    x = np.arange(8, dtype=np.int32)
    got = value("tl.map_elementwise(swap, x, pack=2)", "int32", inputs={"x": x}, names=FUNCTIONS)
    assert got.tolist() == [1, 0, 3, 2, 5, 4, 7, 6]
    y = x + 10
    a, b = tiles(
        "a, b = tl.map_elementwise(pairs, x, y, pack=2)",
        {"x": x, "y": y},
        names=FUNCTIONS,
        a=("int32", (8,)),
        b=("int32", (8,)),
    )
    assert a.tolist() == [1, -1, 5, -1, 9, -1, 13, -1]
    assert b.tolist() == [110, 10, 156, 12, 210, 14, 272, 16]


@pytest.mark.parametrize(
    "call",
    [
        "tl.map_elementwise(sign)", "tl.map_elementwise()", "tl.map_elementwise(sign, x, x)",
        "tl.map_elementwise(sign, x, pack=3)", "tl.map_elementwise(sign, x, pack=0)", "tl.map_elementwise(three, x, pack=2)",
        "tl.map_elementwise(mixed, x, pack=2)", "tl.map_elementwise(gcd, x, y)", "tl.map_elementwise(5, x)",
        "tl.map_elementwise(nothing, x)", "tl.map_elementwise(swap, x, pack=n)",
    ],
)  # fmt: skip
def test_calls_that_are_refused(call):
    refused(call, None, names=FUNCTIONS, x="int32", y="int32[4]", n=2)
