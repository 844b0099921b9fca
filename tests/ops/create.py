"""`tl.arange`, `full`, `zeros`, `zeros_like`, `to_tensor`: bounds, shapes of every rank, dtypes, literals."""

import numpy as np
import pytest

from ._common import refused, same, tiles, value
from ._numbers import ALL, INTS, SIGNED, TYPES, UNSIGNED, Typed, array, samples

COVERS = ["arange", "full", "zeros", "zeros_like", "to_tensor", "TRITON_MAX_TENSOR_NUMEL"]

SHAPES = [(), (1,), (8,), (2, 4), (1, 8), (2, 1, 4), (2, 2, 2, 2)]


@pytest.mark.parametrize(
    "start, end", [(0, 1), (0, 16), (1, 5), (3, 4), (100, 228), (2**31 - 4, 2**31), (0, 1 << 16)]
)
def test_arange(start, end):
    got = value(f"tl.arange({start}, {end})", "int32", (end - start,))
    same(got, np.arange(start, end, dtype=np.int32))


@pytest.mark.parametrize(
    "call", ["tl.arange(start=0, end=8)", "tl.arange(0, end=N)", "tl.arange(0, 2 * M)"]
)
def test_arange_takes_constexprs(call):
    got = tiles(f"N: tl.constexpr = 8\nM: tl.constexpr = 4\nr = {call}", r=("int32", (8,)))
    assert got.tolist() == list(range(8))


def test_arange_above_int32_wraps():
    got = value("tl.arange(2147483646, 2147483650)", "int32", (4,))
    assert got.tolist() == [2**31 - 2, 2**31 - 1, -(2**31), 1 - 2**31]


@pytest.mark.parametrize(
    "call, id, message",
    [
        ("tl.arange(0, 3)", "bad-shape", "must be a power of 2"),
        ("tl.arange(0, 0)", "bad-argument", "start < end"),
        ("tl.arange(4, 0)", "bad-argument", "start < end"),
        ("tl.arange(-4, 4)", "bad-argument", "0 <= start"),
        ("tl.arange(0, 1 << 33)", "bad-argument", "2**32"),
        ("tl.arange(0, 1 << 21)", "bad-shape", "too large"),
        ("n = 16\ntl.arange(0, n)", "not-constexpr", ""),
        ("tl.arange(0, 8.0)", "bad-argument", "must be an integer"),
        ("tl.arange(8)", "bad-call", ""),
    ],
)
def test_aranges_that_are_refused(call, id, message):
    refused(call, id, message)


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("shape", SHAPES)
def test_full_and_zeros(shape, dtype):
    one = array(dtype, np.ones(shape))
    literal = "1.0" if TYPES[dtype].is_float else "1"
    same(value(f"tl.full({shape}, {literal}, tl.{dtype})", dtype, shape), one, dtype)
    same(value(f"tl.full({list(shape)}, True, dtype=tl.{dtype})", dtype, shape), one, dtype)
    zero = np.zeros(shape, one.dtype)
    same(value(f"tl.zeros({shape}, tl.{dtype})", dtype, shape), zero, dtype)
    same(value(f"tl.zeros(shape={list(shape)}, dtype=tl.{dtype})", dtype, shape), zero, dtype)
    same(value("tl.zeros_like(x)", dtype, shape, {"x": Typed(dtype, one)}), zero, dtype)


@pytest.mark.parametrize("dtype", [name for name in ALL if not TYPES[name].is_fp8])
def test_full_of_a_scalar_tensor_casts_it(dtype):
    want = np.full(4, array(dtype, 7 if TYPES[dtype].bits > 1 else 1))
    for n in (7, 7.0):
        same(value(f"tl.full((4,), n, tl.{dtype})", dtype, (4,), {"n": n}), want, dtype)


def test_full_takes_constexprs():
    got = tiles("N: tl.constexpr = 4\nr = tl.full((N, 2 * N), N, tl.int8)", r=("int8", (4, 8)))
    assert (got == 4).all()
    got = tiles("r = tl.zeros(x.shape, x.dtype)", {"x": np.ones((2, 4))}, r=("float64", (2, 4)))
    assert (got == 0).all()


@pytest.mark.parametrize(
    "literal, dtype, want",
    [
        ("300", "int8", 44),
        ("2**40 + 5", "int32", 5),
        ("-1", "int64", -1),
        ("2**64 - 1", "uint64", 2**64 - 1),
        ("3.0", "int32", 3),
        ("-3", "float32", -3),
        ("0.1", "float16", np.float16(0.1)),
        ("0.1", "float64", 0.1),
        ("1e300", "float32", np.inf),
        ("float('-inf')", "float32", -np.inf),
        ("float('nan')", "float64", np.nan),
        ("-0.0", "float32", np.float32(-0.0)),
        ("5", "int1", True),
    ],
)
def test_literals_that_fill(literal, dtype, want):
    same(
        value(f"tl.full((4,), {literal}, tl.{dtype})", dtype, (4,)),
        np.full(4, want, TYPES[dtype].storage),
    )


@pytest.mark.parametrize("dtype", SIGNED)
def test_a_fractional_literal_fills_no_integers(dtype):
    refused(f"tl.full((4,), 1.5, tl.{dtype})", "literal-range", "cannot fill")


@pytest.mark.parametrize("dtype", UNSIGNED)
def test_a_negative_literal_fills_no_unsigned_integers(dtype):
    refused(f"tl.full((4,), -1, tl.{dtype})", "literal-range", "cannot fill")


@pytest.mark.parametrize(
    "call, id",
    [
        ("tl.full((3,), 0, tl.int32)", "bad-shape"),
        ("tl.full((0,), 0, tl.int32)", "bad-shape"),
        ("tl.full((1 << 11, 1 << 10), 0, tl.int8)", "bad-shape"),
        ("tl.zeros((4,))", "bad-call"),
        ("tl.full((4,), 0)", "bad-call"),
        ("tl.full((4,), tl.arange(0, 4), tl.int32)", "bad-argument"),
        ("n = 4\ntl.zeros((n,), tl.int32)", "not-constexpr"),
    ],
)
def test_shapes_that_are_refused(call, id):
    refused(call, id)


def test_the_largest_tile():
    assert tiles("r = tl.to_tensor(tl.TRITON_MAX_TENSOR_NUMEL)", r="int32") == 1 << 20
    got = value("tl.sum(tl.full((tl.TRITON_MAX_TENSOR_NUMEL,), 1, tl.int32))", "int32", ())
    assert got == 1 << 20
    refused("tl.zeros((2 * tl.TRITON_MAX_TENSOR_NUMEL,), tl.int8)", "bad-shape", "too large")


NATURAL = [
    ("True", "int1", True),
    ("0", "int32", 0),
    ("2147483647", "int32", 2**31 - 1),
    ("-2147483648", "int32", -(2**31)),
    ("2147483648", "uint32", 2**31),
    ("4294967295", "uint32", 2**32 - 1),
    ("4294967296", "int64", 2**32),
    ("-2147483649", "int64", -(2**31) - 1),
    ("9223372036854775807", "int64", 2**63 - 1),
    ("9223372036854775808", "uint64", 2**63),
    ("18446744073709551615", "uint64", 2**64 - 1),
    ("0.0", "float32", 0.0),
    ("1.1", "float32", np.float32(1.1)),
    ("float('inf')", "float32", np.inf),
    ("float('nan')", "float32", np.nan),
    ("3.4028234e38", "float32", np.float32(3.4028234e38)),
    ("1.1754943508222875e-38", "float32", np.float32(2.0**-126)),
    ("1e-40", "float64", 1e-40),
    ("1e39", "float64", 1e39),
    ("-1e300", "float64", -1e300),
]


@pytest.mark.parametrize("literal, dtype, want", NATURAL)
def test_the_natural_types_of_literals(literal, dtype, want):
    want = np.array(want, TYPES[dtype].storage)
    same(value(f"tl.to_tensor({literal})", dtype), want)
    same(value(f"tl.to_tensor(x={literal})", dtype), want)
    # An assignment makes the same of it.
    same(tiles(f"r = {literal}", r=dtype), want)


def test_literals_of_more_than_64_bits():
    refused("tl.to_tensor(1 << 64)", "bad-argument", "18446744073709551616")
    refused("tl.to_tensor(-(1 << 63) - 1)", "bad-argument", "-9223372036854775809")
    refused("x = 1 << 64\ny = tl.zeros((4,), tl.int32) + x", None, "18446744073709551616")


@pytest.mark.parametrize("name", INTS)
def test_to_tensor_leaves_tensors_alone(name):
    x = samples(name, 8)
    same(value("tl.to_tensor(x)", name, inputs={"x": x}), x)


@pytest.mark.parametrize("n", [1, 5, 2**31, 2**40, -(2**31) - 1, 2**63])
def test_to_tensor_of_arguments(n):
    dtype = "int32" if n < 2**31 and n >= -(2**31) else "int64" if n < 2**63 else "uint64"
    assert int(value("tl.to_tensor(n)", dtype, inputs={"n": n})) == n
