# Arguments of builtins, shapes and memory.
import triton
import triton.language as tl


# kernel(x: *fp32, n: i32)
@triton.jit
def missing_argument(x, n):
    tl.store(x)  # error: [bad-call] `tl.store` lacks `value`


# kernel(x: *fp32, n: i32)
@triton.jit
def unknown_keyword(x, n):
    tl.load(x, maks=n > 0)  # error: [bad-call] `tl.load` has no parameter `maks`


# kernel(x: *fp32, n: i32)
@triton.jit
def too_many(x, n):
    tl.program_id(0, 1)  # error: [bad-call] `tl.program_id` takes 1 arguments, 2 are given


# kernel(x: *fp32, n: i32)
@triton.jit
def bad_axis(x, n):
    tl.program_id(3)  # error: [bad-argument] a grid has the axes 0, 1 and 2, not 3


# kernel(x: *fp32, n: i32)
@triton.jit
def not_a_power_of_two(x, n):
    tl.arange(0, 17)  # error: [bad-shape] the length of `tl.arange` must be a power of 2: 17 is not


# kernel(x: *fp32, n: i32)
@triton.jit
def offset_start(x, n):
    tl.arange(1, 5)  # ir: arange start=1 end=5 : <4xi32>


# kernel(x: *fp32, n: i32)
@triton.jit
def run_time_extent(x, n):
    tl.arange(0, n)  # error: [not-constexpr] the end of `tl.arange` must be known at compile time


# kernel(x: *fp32, n: i32)
@triton.jit
def too_many_elements(x, n):
    tl.zeros((2048, 2048), tl.float32)  # error: [bad-shape] a tile of 4194304 elements is too large


# kernel(x: *fp32, n: i32)
@triton.jit
def store_to_scalar_pointer(x, n):
    tl.store(x, tl.arange(0, 16))  # error: [pointer-shape] the value has shape (16,), the pointer ()


# kernel(x: *fp32, n: i32)
@triton.jit
def store_is_not_broadcast_up(x, n):
    r = tl.arange(0, 16)
    tl.store(x + r, tl.zeros((16, 16), tl.float32))  # error: [pointer-shape] the value has shape (16, 16), the pointer (16,)


# kernel(x: *fp32, n: i32)
@triton.jit
def load_is_broadcast_up(x, n):
    r = tl.arange(0, 16)
    tl.load(x + r[None, :], mask=r[:, None] < n)  # ir: : <16x16xfp32>


# kernel(x: *kfp32, n: i32)
@triton.jit
def const_pointer(x, n):
    tl.store(x, 1.0)  # error: [const-store] this pointer is to const


# kernel(x: *fp32, n: i32)
@triton.jit
def number_as_pointer(x, n):
    tl.load(n)  # error: [bad-argument] a pointer is wanted here, not int32


# kernel(x: *fp32, n: i32)
@triton.jit
def mask_of_integers(x, n):
    tl.load(x, mask=n)  # error: [type-mismatch] a mask must be boolean (int1), not int32


# kernel(x: *fp32, n: i32)
@triton.jit
def other_without_mask(x, n):
    tl.load(x, other=0.0)  # error: [bad-argument] `other` is given without a mask


# kernel(x: *fp32, n: i32)
@triton.jit
def cache_word(x, n):
    tl.load(x, cache_modifier=".cx")  # error: [bad-argument] ".cx" is no cache modifier


# kernel(x: *fp32, n: i32)
@triton.jit
def inner_extents(x, n):
    a = tl.zeros((16, 32), tl.float16)
    tl.dot(a, a)  # error: [shape-mismatch] the inner extents of `tl.dot` differ: (16, 32) has 32 columns, (16, 32) has 16 rows


# kernel(x: *fp32, n: i32)
@triton.jit
def mixed_dot(x, n):
    a = tl.zeros((16, 16), tl.float16)
    tl.dot(a, a.to(tl.bfloat16))  # error: [type-mismatch] `tl.dot` is not defined between float16 and bfloat16


# kernel(x: *fp32, n: i32)
@triton.jit
def atomic_on_bytes(x, n):
    p = x.to(tl.pointer_type(tl.int8))
    tl.atomic_add(p, 1)  # error: [type-mismatch] `tl.atomic_add` is not defined for int8


# kernel(x: *fp32, n: i32)
@triton.jit
def shapes(x, n):
    a = tl.zeros((4, 8), tl.float32)
    tl.static_assert(a.T.shape[0] == 8 and a[None].shape == (1, 4, 8) and tl.ravel(a).shape == (32,))
    tl.static_assert(tl.join(a, a).shape == (4, 8, 2) and tl.interleave(a, a).shape == (4, 16))
    tl.static_assert(tl.sum(a, axis=1, keep_dims=True).shape == (4, 1) and tl.max(a).shape == ())
    tl.static_assert(tl.sum(a > 0, axis=0).dtype == tl.uint32 and tl.max(a.to(tl.float16), 0).dtype == tl.float32)
    tl.static_assert(tl.reshape(a, (2, 16)).shape == (2, 16) and a.reshape(2, 16).permute(1, 0).shape[0] == 16)
    v, i = tl.max(a, 0, return_indices=True)
    tl.static_assert(i.dtype == tl.int32 and tl.cumsum(a.to(tl.int8), 0).dtype == tl.int32)
    tl.static_assert(tl.cumsum(a.to(tl.bfloat16), 0).dtype == tl.bfloat16)


# kernel(x: *fp32, n: i32)
@triton.jit
def bad_index(x, n):
    r = tl.arange(0, 16)
    r[0]  # error: [type-mismatch] a tile is indexed by `:` and `None` only


# kernel(x: *fp32, n: i32)
@triton.jit
def unknown_method(x, n):
    tl.arange(0, 16).reshap(4, 4)  # error: [unknown-attribute] int32 tile of shape (16,) has no attribute `reshap`


# kernel(x: *i32)
@triton.jit
def comprehensions(x):
    i = tl.program_id(0)
    parts = [i + j for j in (1, 2, 3, 4) if j % 2 == 0]
    tl.static_assert(len(parts) == 2)
    tl.store(x, parts[0] + parts[1])


# kernel(x: *i32)
@triton.jit
def comprehension_over_a_tile(x):
    y = [i for i in tl.arange(0, 4)]  # error: [type-mismatch] a comprehension in a kernel runs over a tuple
    tl.store(x, y)


# kernel(x: *i32, n: i32)
@triton.jit
def comprehension_test(x, n):
    y = [i for i in (1, 2) if n > i]  # error: [not-constexpr] the test of a comprehension must be known at compile time
    tl.store(x, y)


# kernel(x: *i32)
@triton.jit
def float_extent(x):
    tl.store(x + tl.arange(0, 16 / 2), 0)  # error: [bad-argument] the end of `tl.arange` must be an integer, not the float 8.0


# kernel(x: *i32)
@triton.jit
def float_mask(x):
    tl.load(x, mask=1.5)  # error: [type-mismatch] a mask must be boolean (int1), not float32


# kernel(x: *i32)
@triton.jit
def negative_shift(x):
    tl.store(x, 1 << -1)  # error: [literal-range] 1 << -1 shifts by a negative count


# kernel(x: *i32)
@triton.jit
async def asynchronous(x):  # error: [unsupported-python] `asynchronous` is an `async` function
    tl.store(x, 1)
