import triton


@triton.jit
def kernel(x_ptr, n:
    pass
