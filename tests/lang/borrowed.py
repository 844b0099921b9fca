# What public kernels write of Triton's insides.
import triton
import triton.language as tl
from triton.language import core
from triton.language.standard import _log2

HALF = tl.constexpr(tl.float16)


# kernel(x: *fp32, n: i32)
@triton.jit
def operators_as_methods(x, n):
    k = tl.arange(0, 16)
    tl.static_assert(k.__lshift__(4).__rshift__(2).dtype == tl.int32)
    k.__lshift__(n)  # ir: shl


# kernel(x: *fp32, n: i32)
@triton.jit
def operator_as_method_on_floats(x, n):
    tl.load(x).__lshift__(4)  # error: [type-mismatch] `<<` is not defined between float32 and the constexpr 4


@triton.jit
def plus_one(a):
    return a + 1


@triton.jit
def applied(a, f: tl.constexpr, T: tl.constexpr):
    return f.value(a).to(T.value)


# kernel(x: *fp32, n: i32)
@triton.jit
def values_of_constexprs(x, n):
    tl.static_assert(HALF.value == tl.float16)
    tl.static_assert(applied(n, plus_one, HALF).dtype == tl.float16)


# kernel(x: *fp32, n: i32)
@triton.jit
def types_and_logarithms(x, n):
    tl.static_assert(core.get_int_dtype(bitwidth=16, signed=False) == tl.uint16)
    tl.static_assert(tl.core.get_int_dtype(1, True) == tl.int1)
    tl.static_assert(_log2(1) == 0 and _log2(9) == 3 and tl.standard._log2(1024) == 10)
    tl.static_assert(not core.CONSTEXPR_0 and tl.core._constexpr_to_value(tl.int8) == tl.int8)
    core.get_int_dtype(7, True)  # error: [bad-argument] there is no integer type of 7 bits


# kernel(x: *fp32, n: i32)
@triton.jit
def nan_is_kept(x, n):
    tl.static_assert(tl.TRITON_MAX_TENSOR_NUMEL == 1048576)
    v = tl.load(x)
    tl.maximum(v, 0.0, propagate_nan=tl.PropagateNan.ALL)  # ir: max_nan


# kernel(x: *fp32, n: i32)
@triton.jit
def hints_of_a_plain_range(x, n):
    for i in range(n, flatten=True, num_stages=3):
        tl.store(x + i, 1.0)
    for j in range(n, unroll=2):  # error: [bad-call] `range` has no parameter `unroll`
        tl.store(x + j, 1.0)


# kernel(x: *fp32, n: i32)
@triton.jit
def bounds_that_are_none(x, n):
    a = tl.zeros((4, 8), tl.float32)
    tl.static_assert(a[None, None:, :None].shape == (1, 4, 8))
    a[0:, :]  # error: [type-mismatch] a tile is indexed by `:` and `None` only


# kernel(x: *fp32, n: i32)
@triton.jit
def axes_of_scalars(x, n):
    tl.static_assert(n[:, None].shape == (1,) and n[None, :].shape == (1,) and n[None, :, None].shape == (1, 1))


# kernel(x: *fp32, n: i32)
@triton.jit
def extents_of_a_type(x, n):
    a = tl.zeros((4, 8), tl.float32)
    tl.static_assert(a.type.get_block_shapes() == (4, 8) and tl.full(a.type.get_block_shapes(), 0, tl.int8).shape[1] == 8)


# kernel(x: *fp32, n: i32)
@triton.jit
def rounding_to_the_same_type(x, n):
    v = tl.load(x)
    tl.store(x, v.to(dtype=x.dtype.element_ty, fp_downcast_rounding="rtne"))
    v.to(tl.float64, fp_downcast_rounding="rtne")  # error: [bad-argument] a rounding mode is for narrowing floats, not for float32 to float64
