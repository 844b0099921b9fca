"""Predicates and attributes of dtypes, on the host and in kernels."""

import numpy as np
import pytest

import naiad as triton
import naiad.language as tl

from ._common import compiles, define, refused
from ._numbers import ALL, TYPES

COVERS = [
    "dtype.is_int", "dtype.is_int_signed", "dtype.is_int_unsigned", "dtype.is_bool", "dtype.is_floating",
    "dtype.is_standard_floating", "dtype.is_fp8", "dtype.is_fp16", "dtype.is_bf16", "dtype.is_fp32",
    "dtype.is_fp64", "dtype.is_fp8e5", "dtype.is_fp8e4nv", "dtype.is_fp8e4b15", "dtype.is_fp8e4b8",
    "dtype.is_fp8e5b16", "dtype.is_int1", "dtype.is_int8", "dtype.is_int16", "dtype.is_int32",
    "dtype.is_int64", "dtype.is_uint8", "dtype.is_uint16", "dtype.is_uint32", "dtype.is_uint64",
    "dtype.is_ptr", "dtype.is_block", "dtype.is_const",
    "dtype.get_int_max_value", "dtype.get_int_min_value",
]  # fmt: skip

PREDICATES = {
    "is_int": lambda t: t.is_int,
    "is_int_signed": lambda t: t.kind == "int",
    "is_int_unsigned": lambda t: t.kind in ("uint", "bool"),
    "is_bool": lambda t: t.kind == "bool",
    "is_floating": lambda t: t.is_float,
    "is_standard_floating": lambda t: t.is_float and t.bits > 8,
    "is_fp8": lambda t: t.is_fp8,
    "is_ptr": lambda t: False,
    "is_block": lambda t: False,
    "is_const": lambda t: False,
}
ONE_TYPE = {
    "is_fp16": "float16", "is_bf16": "bfloat16", "is_fp32": "float32", "is_fp64": "float64",
    "is_fp8e5": "float8e5", "is_fp8e4nv": "float8e4nv", "is_fp8e4b15": "float8e4b15",
    "is_fp8e4b8": "float8e4b8", "is_fp8e5b16": "float8e5b16", "is_int1": "int1", "is_int8": "int8",
    "is_int16": "int16", "is_int32": "int32", "is_int64": "int64", "is_uint8": "uint8",
    "is_uint16": "uint16", "is_uint32": "uint32", "is_uint64": "uint64",
}  # fmt: skip
PREDICATES |= {word: lambda t, name=name: t.name == name for word, name in ONE_TYPE.items()}


@pytest.mark.parametrize("name", ALL)
def test_predicates(name):
    lines = []
    for word, holds in PREDICATES.items():
        want = holds(TYPES[name])
        lines.append(f"tl.static_assert(tl.{name}.{word}() == {want}, '{word}')")
        lines.append(f"tl.static_assert(x.dtype.{word}() == {want}, 'x {word}')")
        if word not in ("is_ptr", "is_block", "is_const"):
            # A tile's type answers for its elements.
            lines.append(f"tl.static_assert(x.dtype.scalar.{word}() == {want}, 'scalar {word}')")
    compiles(*lines, x=name)


HOST_LACKS = {"is_block", "is_const"}


@pytest.mark.parametrize("word", sorted(PREDICATES))
def test_predicates_on_the_host(word):
    for name in ALL:
        predicate = getattr(getattr(tl, name), word, None)
        if predicate is None and word in HOST_LACKS:
            continue
        assert predicate() == PREDICATES[word](TYPES[name]), name


def test_pointers_and_tiles():
    kernel = define(
        """
        @triton.jit
        def kernel(p, q: tl.const):
            tl.static_assert(p.dtype.is_ptr())
            tl.static_assert(not p.dtype.is_const())
            tl.static_assert(q.dtype.is_ptr() and q.dtype.is_const())
            tl.static_assert(not p.dtype.is_floating())
            tl.static_assert(not p.dtype.is_int())
            tl.static_assert(p.dtype.element_ty.is_fp32())
            x = tl.load(p + tl.arange(0, 4))
            tl.static_assert(x.type.is_block())
            tl.static_assert(not x.dtype.is_block())
            tl.static_assert((p + tl.arange(0, 4)).dtype.is_ptr())
            tl.static_assert(not tl.load(p).type.is_block())
        """
    )["kernel"]
    kernel[(1,)](np.zeros(4, np.float32), np.zeros(4, np.float32))


# ---- attributes -----------------------------------------------------------------------------------

MANTISSA = {"float32": 23, "float64": 52}
BIAS = {"float32": 127, "float64": 1023}


def attributes(name):
    t = TYPES[name]
    yield (
        "name",
        repr(t.short if t.kind != "bool" and t.is_float else {"int1": "int1"}.get(name, name)),
    )
    yield "primitive_bitwidth", t.bits
    yield "itemsize", t.storage.itemsize
    yield "scalar", f"tl.{name}"
    if t.is_int:
        yield "int_bitwidth", t.bits
        yield "get_int_max_value()", t.high
        yield "get_int_min_value()", t.low
    else:
        yield "fp_mantissa_width", MANTISSA.get(name, t.mantissa)
        yield "exponent_bias", BIAS.get(name, t.bias)


@pytest.mark.parametrize("name", ALL)
def test_attributes_in_kernels(name):
    lines = [
        f"tl.static_assert(x.dtype.{attribute} == {want}, '{attribute}')"
        for attribute, want in attributes(name)
    ]
    compiles(*lines, x=name)


@pytest.mark.parametrize("name", ALL)
def test_attributes_on_the_host(name):
    for attribute, want in attributes(name):
        if attribute == "scalar":
            assert tl.__dict__[name].scalar == tl.__dict__[name]
        elif attribute != "name":
            assert eval(f"tl.{name}.{attribute}", {"tl": tl}) == want, attribute


@pytest.mark.parametrize(
    "name, want",
    [
        ("float32", "fp32"),
        ("float16", "fp16"),
        ("bfloat16", "bf16"),
        ("float8e5", "fp8e5"),
        ("float8e4nv", "fp8e4nv"),
        ("int32", "int32"),
        ("uint8", "uint8"),
        ("int1", "int1"),
    ],
)
def test_names_are_those_of_triton(name, want):
    assert getattr(tl, name).name == str(getattr(tl, name)) == want


@pytest.mark.parametrize(
    "name, want",
    [
        ("float32", "fp32"),
        ("float16", "fp16"),
        ("bfloat16", "bf16"),
        ("float8e5", "fp8e5"),
        ("int32", "int32"),
        ("uint8", "uint8"),
        ("int1", "int1"),
    ],
)
def test_names_in_kernels(name, want):
    compiles(f"tl.static_assert(x.dtype.name == '{want}', x.dtype.name)", x=name)


def test_what_a_type_lacks():
    for attribute in ("int_bitwidth", "nothing", "element_ty.nothing"):
        refused(f"x.dtype.{attribute}", "unknown-attribute", x="float32")
    refused("x.dtype.fp_mantissa_width", "unknown-attribute", x="int32")
    refused("tl.float32.is_int32_t()", "unknown-attribute")


def test_dtypes_choose_code():
    kernel = define(
        """
        @triton.jit
        def kernel(out, x):
            v = tl.load(x)
            if v.dtype.is_floating():
                tl.store(out, 1)
            elif v.dtype.is_int_unsigned():
                tl.store(out, 2)
            else:
                tl.store(out, 3 + x.dtype.element_ty.primitive_bitwidth)
        """
    )["kernel"]
    for name, want in (
        ("float16", 1),
        ("float64", 1),
        ("uint8", 2),
        ("int1", 2),
        ("int16", 19),
        ("int64", 67),
    ):
        out = np.zeros(1, np.int32)
        kernel[(1,)](out, np.zeros(1, TYPES[name].storage))
        assert out[0] == want


def test_dtypes_are_arguments_and_defaults():
    kernel = define(
        """
        @triton.jit
        def kernel(out, A: tl.constexpr, B: tl.constexpr = tl.int8):
            tl.static_assert(A == tl.float16)
            x = tl.full((4,), 300.5, tl.float32).to(A)
            tl.store(out, x.dtype.primitive_bitwidth * 100 + B.primitive_bitwidth)
        """
    )["kernel"]
    out = np.zeros(1, np.int32)
    kernel[(1,)](out, tl.float16)
    assert out[0] == 1608
    with pytest.raises(triton.CompileTimeAssertionFailure):
        kernel[(1,)](out, A=tl.float32)
