"""GELU in its tanh form, elementwise, without overflow for inputs of any size."""

import numpy as np
import triton
import triton.language as tl

import common


@triton.jit
def tanh(x):
    """The hyperbolic tangent, by exponentials that cannot overflow.

    (exp(2x) - 1) / (exp(2x) + 1) is inf / inf = NaN from x = 45 on. exp(-2|x|) stays within 0 to 1
    instead, and the sign is put back afterwards.
    """
    e = tl.exp(-2.0 * tl.abs(x))
    t = (1.0 - e) / (1.0 + e)
    return tl.where(x < 0, -t, t)


@triton.jit
def gelu_tanh(x):
    """x times the normal distribution function at x, approximated by a tanh.

    The argument of tanh grows like the cube of x: at x = 11 it is 56, and the naive tanh is NaN.
    """
    return 0.5 * x * (1.0 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))


@triton.jit
def gelu_kernel(x_ptr, out_ptr, n, x_stride, out_stride, BLOCK: tl.constexpr):
    """Each program handles BLOCK elements of a vector."""
    index = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = index < n  # the last program's lanes may reach past the end
    # Half-precision inputs are computed in float32; the store rounds to the output's type.
    x = tl.load(x_ptr + index * x_stride, mask=mask).to(tl.float32)
    tl.store(out_ptr + index * out_stride, gelu_tanh(x), mask=mask)


def gelu(x, block=1024):
    """GELU of an array of any shape."""
    flat = x.reshape(-1)  # a view where the strides allow one, else a copy
    n = flat.shape[0]
    out = common.empty(n, like=x)
    grid = (triton.cdiv(n, block),)
    gelu_kernel[grid](flat, out, n, *common.strides(flat), *common.strides(out), BLOCK=block)
    return out.reshape(x.shape)


def reference(x):
    x = common.f64(x)
    return 0.5 * x * (1.0 + np.tanh(np.sqrt(2.0 / np.pi) * (x + 0.044715 * x**3)))


TOLERANCE = 1e-6


def check():
    for n in 1, 31, 33, 1021, 2048, 0:
        x = common.normal(n)
        common.expect(gelu(x), reference(x), TOLERANCE, f"gelu, {n} elements")

    for shape in (1, 31), (33, 7):
        for layout, x in common.views(*shape):
            common.expect(gelu(x), reference(x), TOLERANCE, f"gelu, {shape} {layout}")
    x = common.normal(3 * 100)[5::3]
    common.expect(gelu(x), reference(x), TOLERANCE, "gelu, every third element")
    if common.ON == "numpy":
        common.expect(gelu(x[::-1]), reference(x[::-1]), TOLERANCE, "gelu, backwards")

    # Far out GELU is x on one side and 0 on the other, and NaN nowhere.
    for size in 11.0, 50.0, 1e4, 3e38:
        x = common.array(np.array([size, -size, 0.0], np.float32))
        common.expect(gelu(x), np.array([size, 0.0, 0.0]), TOLERANCE, f"gelu at +-{size:g}")

    x = common.normal(1000, dtype=np.float16)
    common.expect(gelu(x), reference(x), 5e-4, "gelu, float16")


def cases():
    n = 1 << 20
    x = common.normal(n)
    yield common.measure("gelu", f"{n}", lambda: gelu(x), reference(x), TOLERANCE)


if __name__ == "__main__":
    common.main(check, cases)
