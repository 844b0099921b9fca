"""`tl.map_elementwise`: control flow for each element, several tiles and results, packs, refusals."""

import numpy as np
import pytest

from ._common import SIZES, functions, refused, same, tiles, value
from ._numbers import ALL, INTS, TYPES, Typed, decode, samples, wrap

COVERS = ["map_elementwise"]

FUNCTIONS = functions(
    """
@triton.jit
def itself(x):
    return x

@triton.jit
def collatz(x):
    n = 0
    while x > 1:
        if x % 2 == 0:
            x = x // 2
        else:
            x = 3 * x + 1
        n += 1
    return n

@triton.jit
def gcd(a, b):
    while b != 0:
        t = a % b
        a = b
        b = t
    return a

@triton.jit
def compare(a, b):
    if a < b:
        r = -1
    elif a > b:
        r = 1
    else:
        r = 0
    return r

@triton.jit
def early(x):
    if x < 0:
        return -x
    if x < 10:
        return x * 2
    return x + 100

@triton.jit
def divided(a, b):
    return a // b, a % b

@triton.jit
def as_float(x):
    return x.to(tl.float32) * 0.5

@triton.jit
def mixed(x):
    return x > 0, x.to(tl.float64), x

@triton.jit
def swap_pairs(a, b):
    return b, a

@triton.jit
def sums(a0, a1, a2, a3, b0, b1, b2, b3):
    return a0 + b3, a1 + b2, a2 + b1, a3 + b0

@triton.jit
def two_of_two(a0, a1, b0, b1):
    return a0 + a1, b0 + b1, a0 - a1, b0 - b1

@triton.jit
def summed(x, y):
    s = 0
    for i in range(y):
        s += x + i
    return s

@triton.jit
def one_of_pair(a, b):
    return a

@triton.jit
def ragged(a, b):
    return a, b.to(tl.float32)

@triton.jit
def nothing(x):
    pass
"""
)


def mapped(call, dtype, shape, inputs, **options):
    return value(call, dtype, shape, inputs, names=FUNCTIONS, **options)


def collatz(x):
    n = 0
    while x > 1:
        x, n = x // 2 if x % 2 == 0 else 3 * x + 1, n + 1
    return n


@pytest.mark.parametrize("shape", [(), (1,), (32,), (4, 8), (2, 1, 4), (2, 2, 4, 2)])
def test_loops_that_each_element_leaves_when_it_is_done(shape):
    n = int(np.prod(shape))
    x = np.asarray(np.arange(1, n + 1, dtype=np.int32).reshape(shape))
    want = np.vectorize(collatz)(x).astype(np.int32).reshape(shape)
    for call in (
        "tl.map_elementwise(collatz, x)",
        "tl.map_elementwise(collatz, x, pack=1)",
    ):
        same(mapped(call, "int32", shape, {"x": x}), want)


@pytest.mark.parametrize("name", [n for n in INTS if n not in ("int8", "uint8")])
@pytest.mark.parametrize("n", SIZES)
def test_two_tiles_of_odd_sizes(n, name):
    a, b = (np.arange(n) * 12 % 127).astype(name), (np.arange(n) * 9 % 125).astype(name)
    same(mapped("tl.map_elementwise(gcd, a, b)", name, (n,), {"a": a, "b": b}), np.gcd(a, b))


@pytest.mark.parametrize("name", ALL)
def test_every_type_keeps_its_bits(name):
    x = samples(name, 32)
    got = mapped("tl.map_elementwise(itself, x)", name, (32,), {"x": Typed(name, x)})
    assert got.tobytes() == x.tobytes()


def test_branches():
    a = np.array([[1, 2, 3, 4]] * 4, np.int32)
    want = np.sign(a - a.T).astype(np.int32)
    same(mapped("tl.map_elementwise(compare, a, b)", "int32", (4, 4), {"a": a, "b": a.T}), want)
    x = np.array([-5, 0, 3, 9, 10, 11, -(2**31), 2**31 - 1], np.int32)
    want = wrap("int32", [5, 0, 6, 18, 110, 111, 2**31, 2**31 + 99])
    same(mapped("tl.map_elementwise(early, x)", "int32", (8,), {"x": x}), want)


def test_branches_on_nan_and_zeros():
    a = np.array([np.nan, 1, 0.0, -0.0, np.inf, -np.inf, np.nan, 2], np.float32)
    b = np.array([1, np.nan, -0.0, 0.0, np.inf, np.inf, np.nan, 1], np.float32)
    want = np.array([0, 0, 0, 0, 0, -1, 0, 1], np.int32)
    same(mapped("tl.map_elementwise(compare, a, b)", "int32", (8,), {"a": a, "b": b}), want)


def test_operands_broadcast():
    a = np.array([12, 18, 24, 30], np.int32)
    b = np.array([4, 9], np.int32)
    want = np.gcd(a[None, :], b[:, None])
    call = "tl.map_elementwise(gcd, a[None, :], b[:, None])"
    same(mapped(call, "int32", (2, 4), {"a": a, "b": b}), want)
    same(mapped("tl.map_elementwise(gcd, a, 6)", "int32", (4,), {"a": a}), np.gcd(a, 6))
    call = "tl.map_elementwise(gcd, a, s)"
    same(mapped(call, "int32", (4,), {"a": a, "s": np.int32(9)}), np.gcd(a, 9))


def test_several_results_of_several_types():
    a = np.arange(20, 28, dtype=np.int32)
    b = np.array([3, 4, 5, 6, 7, 8, 9, 10], np.int32)
    q, r = tiles(
        "q, r = tl.map_elementwise(divided, a, b)",
        {"a": a, "b": b},
        names=FUNCTIONS,
        q=("int32", (8,)),
        r=("int32", (8,)),
    )
    same(q, a // b)
    same(r, a % b)
    x = np.array([-1.5, 0, 2, np.inf], np.float32)
    p, d, s = tiles(
        "p, d, s = tl.map_elementwise(mixed, x)",
        {"x": x},
        names=FUNCTIONS,
        p=("int1", (4,)),
        d=("float64", (4,)),
        s=("float32", (4,)),
    )
    assert p.tolist() == [False, False, True, True]
    same(d, x.astype(np.float64))
    same(s, x)


def test_the_result_has_the_type_that_is_returned():
    x = np.array([1, -2, 3, 7], np.int8)
    same(mapped("tl.map_elementwise(as_float, x)", "float32", (4,), {"x": x}), x / np.float32(2))


@pytest.mark.parametrize("shape", [(2,), (64,), (4, 8), (8, 1, 2)])
def test_packs_of_consecutive_elements(shape):
    x = np.arange(int(np.prod(shape)), dtype=np.int32).reshape(shape)
    want = x.reshape(-1, 2)[:, ::-1].reshape(shape)
    got = mapped("tl.map_elementwise(swap_pairs, x, pack=2)", "int32", shape, {"x": x})
    same(got, np.ascontiguousarray(want))


def test_packs_are_grouped_by_argument_and_by_result():
    a, b = np.arange(16, dtype=np.int32), np.arange(100, 116, dtype=np.int32)
    got = mapped("tl.map_elementwise(sums, a, b, pack=4)", "int32", (16,), {"a": a, "b": b})
    same(got, a + b.reshape(4, 4)[:, ::-1].reshape(16))
    p, m = tiles(
        "p, m = tl.map_elementwise(two_of_two, a, b, pack=2)",
        {"a": a, "b": b},
        names=FUNCTIONS,
        p=("int32", (16,)),
        m=("int32", (16,)),
    )
    pairs = [v.reshape(8, 2) for v in (a, b)]
    same(p, np.stack([v.sum(1) for v in pairs], 1).astype(np.int32).reshape(16))
    same(m, np.stack([v[:, 0] - v[:, 1] for v in pairs], 1).reshape(16))


def test_trip_counts_of_one_element_each():
    x, y = np.arange(8, dtype=np.int32), np.array([0, 1, 2, 3, 0, 7, 1, 5], np.int32)
    want = np.array([sum(a + i for i in range(n)) for a, n in zip(x, y)], np.int32)
    same(mapped("tl.map_elementwise(summed, x, y)", "int32", (8,), {"x": x, "y": y}), want)


def test_views():
    x = np.arange(1, 65, dtype=np.int32).reshape(8, 8)
    for view in (x.T, x[::-1, ::2], x[4:, :2]):
        want = np.vectorize(collatz)(view).astype(np.int32)
        same(mapped("tl.map_elementwise(collatz, x)", "int32", view.shape, {"x": view}), want)


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float8e5", "float8e4nv"])
def test_narrow_floats_compare(name):
    x = samples(name, 32)
    numbers = decode(name, x)
    with np.errstate(invalid="ignore"):
        want = np.where(numbers < 1, -1, np.where(numbers > 1, 1, 0)).astype(np.int32)
    call = f"tl.map_elementwise(compare, x, tl.full((32,), 1.0, tl.{TYPES[name].name}))"
    same(mapped(call, "int32", (32,), {"x": Typed(name, x)}), want)


@pytest.mark.parametrize(
    "call, id, message",
    [
        ("tl.map_elementwise(itself)", "bad-argument", "at least one tile"),
        ("tl.map_elementwise()", "bad-call", ""),
        ("tl.map_elementwise(gcd, x)", "bad-call", ""),
        ("tl.map_elementwise(itself, x, x)", "bad-call", ""),
        ("tl.map_elementwise(x, x)", None, ""),
        ("tl.map_elementwise(gcd, x, tl.arange(0, 4))", "shape-mismatch", ""),
        ("tl.map_elementwise(swap_pairs, x, pack=3)", "bad-argument", "must divide the 8 elements"),
        ("tl.map_elementwise(swap_pairs, x, pack=0)", "bad-argument", "must divide"),
        ("tl.map_elementwise(swap_pairs, x, pack=16)", "bad-argument", "must divide"),
        ("tl.map_elementwise(one_of_pair, x, pack=2)", "bad-return", "2 for each result"),
        ("tl.map_elementwise(ragged, x, pack=2)", "bad-return", "int32 and float32"),
        ("tl.map_elementwise(nothing, x)", None, ""),
        ("tl.map_elementwise(swap_pairs, x, pack=s)", "not-constexpr", ""),
    ],
)
def test_maps_that_are_refused(call, id, message):
    refused(call, id, message, names=FUNCTIONS, x="int32", s="scalar int32")
