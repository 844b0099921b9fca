import triton
import triton.language as tl


# kernel(x_ptr: *fp32, n: i32)
@triton.jit
def arange(x_ptr, n):
    offsets = tl.arange(0, 17)


# kernel(x_ptr: *fp32, n: i32)
@triton.jit
def carried(x_ptr, n):
    total = 0
    for i in range(n):
        total += tl.load(x_ptr + i)
    tl.store(x_ptr, total)


# kernel(x_ptr: *fp32, n: i32)
@triton.jit
def pointer(x_ptr, n):
    values = tl.arange(0, 16)
    tl.store(x_ptr, values)


# kernel(x_ptr: *fp32, n: i32)
@triton.jit
def misspelled(x_ptr, n):
    values = tl.aragne(0, 16)


# kernel(x_ptr: *fp32, n: i32)
@triton.jit
def statement(x_ptr, n):
    for i in range(n):
        if i > 3:
            break


# kernel(x_ptr: *fp32, n: i32)
@triton.jit
def extent(x_ptr, n):
    BLOCK = 16
    offsets = tl.arange(0, BLOCK)
