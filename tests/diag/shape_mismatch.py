import triton
import triton.language as tl


@triton.jit
def helper(x, y):
    return x + y


# kernel(x_ptr: *fp32, BLOCK=32)
@triton.jit
def shapes(x_ptr, BLOCK: tl.constexpr):
    a = tl.load(x_ptr + tl.arange(0, 16))
    b = tl.load(x_ptr + tl.arange(0, BLOCK))
    tl.store(x_ptr, helper(a, b))


# kernel(x_ptr: *fp32, n: i32)
@triton.jit
def reused_mask(x_ptr, n):
    rows = tl.arange(0, 32)
    cols = tl.arange(0, 16)
    mask = (rows[:, None] < n) & (cols[None, :] < n)
    tile = tl.load(x_ptr + rows[:, None] * n + cols[None, :], mask=mask)
    tl.store(x_ptr + cols[:, None] * n + rows[None, :], tl.trans(tile), mask=mask)
