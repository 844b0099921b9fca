"""The objects of `triton.language`."""

import pytest

import naiad as triton
import naiad.language as tl


def test_public_names():
    assert len(set(tl.__all__)) == len(tl.__all__)
    missing = [name for name in tl.__all__ if not hasattr(tl, name)]
    assert not missing
    assert {"load", "store", "dot", "float32", "constexpr", "make_block_ptr"} <= set(tl.__all__)


def test_dtypes():
    assert (str(tl.float32), repr(tl.int8)) == ("fp32", "triton.language.int8")
    assert tl.float32 == tl.dtype("fp32") and tl.float32 != tl.float64
    assert len({tl.float32, tl.dtype("fp32")}) == 1
    assert (tl.bfloat16.primitive_bitwidth, tl.int1.itemsize, tl.int64.int_bitwidth) == (16, 1, 64)
    assert (tl.float8e4nv.exponent_bias, tl.float16.fp_mantissa_width) == (7, 10)
    assert tl.uint8.is_int_unsigned() and tl.float8e5.is_fp8() and tl.int1.is_bool()
    assert (tl.int8.get_int_min_value(), tl.uint64.get_int_max_value()) == (-128, 2**64 - 1)
    assert isinstance(tl.float32, tl.dtype)
    with pytest.raises(AttributeError):
        tl.float32.int_bitwidth
    with pytest.raises(TypeError, match="no dtype 'fp33'"):
        tl.dtype("fp33")


def test_pointer_types():
    pointer = tl.pointer_type(tl.float16)
    assert pointer.is_ptr() and pointer.element_ty == tl.float16 and isinstance(pointer, tl.dtype)
    assert tl.pointer_type(tl.float16, const=True).is_const()


def test_constexprs():
    four = tl.constexpr(4)
    assert (four + 1).value == 5 and (1 - four).value == -3 and bool(four == 4)
    assert list(range(4))[four - 1] == 3 and [0] * four == [0] * 4
    assert tl.constexpr(four).value == 4


def test_host_arithmetic():
    assert [triton.next_power_of_2(n) for n in (0, 1, 3, 64, 65)] == [0, 1, 4, 64, 128]
    assert triton.cdiv(7, 2) == 4


def test_old_places_of_functions():
    from naiad.language.extra import libdevice
    from naiad.language.extra.cuda import libdevice as cuda

    assert tl.math.tanh is libdevice.tanh is tl.libdevice.tanh
    assert tl.extra.cuda.libdevice.tanh is cuda.tanh is libdevice.tanh
    with pytest.raises(AttributeError):
        tl.math.nonsense
