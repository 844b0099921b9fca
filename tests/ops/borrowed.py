"""What public kernels take of Triton's insides: operators as methods, helpers of `tl.core`."""

import operator

import numpy as np
import pytest

import naiad as triton
import naiad.language as tl

from ._common import compiles, define, refused, tiles

COVERS = [
    "__add__",
    "__sub__",
    "__mul__",
    "__truediv__",
    "__floordiv__",
    "__mod__",
    "__lshift__",
    "__rshift__",
    "__and__",
    "__or__",
    "__xor__",
    "get_int_dtype",
    "dtype.get_block_shapes",
    "CONSTEXPR_0",
    "_constexpr_to_value",
    "_unwrap_if_constexpr",
]


@pytest.mark.parametrize(
    "name, dtype",
    [
        ("__add__", "int32"),
        ("__sub__", "int32"),
        ("__mul__", "int32"),
        ("__truediv__", "float32"),
        ("__floordiv__", "int32"),
        ("__mod__", "int32"),
        ("__lshift__", "int32"),
        ("__rshift__", "int32"),
        ("__and__", "int32"),
        ("__or__", "int32"),
        ("__xor__", "int32"),
    ],
)
def test_an_operator_as_a_method(name, dtype):
    got = tiles(f"r = tl.arange(0, 16).{name}(3)", r=(dtype, (16,)))
    assert np.array_equal(got, getattr(operator, name)(np.arange(16), 3).astype(dtype))


def test_operators_in_a_row():
    got = tiles("r = (tl.arange(0, 16) * 17).__lshift__(4).to(tl.int8).__rshift__(4)", r=("int8", (16,)))
    assert np.array_equal(got, ((np.arange(16) * 272).astype("int8")) >> 4)
    refused("tl.zeros((4,), tl.float32).__lshift__(1)", "type-mismatch")


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_the_integer_type_of_a_width(bits):
    for signed, name in ((True, f"int{bits}"), (False, f"uint{bits}")):
        assert tl.core.get_int_dtype(bits, signed) == getattr(tl, name)
        compiles(
            f"T: tl.constexpr = tl.core.get_int_dtype(bitwidth={bits}, signed={signed})",
            f"tl.static_assert(T == tl.{name})",
        )
    refused("tl.core.get_int_dtype(7, True)", "bad-argument")


def test_the_extents_of_a_type():
    body = "v = tl.zeros((4, 8), tl.float32)\nr = tl.full(v.type.get_block_shapes(), 7, tl.int32)"
    assert np.array_equal(tiles(body, r=("int32", (4, 8))), np.full((4, 8), 7))


def test_helpers_are_values_of_the_host_too():
    make = triton.constexpr_function(tl.core.get_int_dtype)
    text = """
        @triton.jit
        def kernel(x, flag: tl.constexpr = tl.core.CONSTEXPR_0):
            T: tl.constexpr = make(x.dtype.element_ty.primitive_bitwidth, True)
            tl.static_assert(T == tl.int32 and flag == 0)
            tl.static_assert(tl.core._constexpr_to_value(flag) == 0)
            tl.store(x, tl.core._unwrap_if_constexpr(7))
    """
    x = np.zeros(1, np.float32)
    define(text, make=make)["kernel"][(1,)](x)
    assert x[0] == 7


def test_functions_under_constexpr():
    text = """
        @tl.constexpr
        def wider(dtype):
            return tl.float32 if dtype.is_fp16() else dtype

        @triton.jit
        def kernel(x, name: tl.constexpr):
            tl.static_assert(wider(tl.float16) == tl.float32 and wider(tl.int8) == tl.int8)
            tl.static_assert(tl.dtype(name) == tl.float16 and name == "fp16")
            tl.store(x, 1.0)
    """
    x = np.zeros(1, np.float32)
    define(text)["kernel"][(1,)](x, "fp16")
    assert x[0] == 1
