"""Row-wise softmax: in one kernel, and as the five passes over memory that it saves.

A row that is -inf throughout has no softmax (0 / 0). Here it gives zeros, as attention wants for a
query that may look at nothing; torch and NumPy give NaN.
"""

import numpy as np
import triton
import triton.language as tl

import common


@triton.jit
def softmax_kernel(
    x_ptr, out_ptr,
    n_cols, x_row_stride, x_col_stride, out_row_stride, out_col_stride,
    BLOCK: tl.constexpr,
):
    """Each program handles one whole row; BLOCK is at least n_cols."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols

    # The padding is -inf: it is never the maximum, and exp(-inf) = 0 adds nothing to the sum. Zeros
    # would be the maximum of a negative row, and add exp(0 - maximum) to the sum of any.
    x_ptrs = x_ptr + row * x_row_stride + cols * x_col_stride
    x = tl.load(x_ptrs, mask=mask, other=-float("inf"))

    # With the maximum subtracted no exponent is above 0, so exp cannot overflow. In a row of -inf
    # that would be -inf - -inf = NaN: subtract 0 there.
    row_max = tl.max(x, axis=0)
    shift = tl.where(row_max == -float("inf"), 0.0, row_max)
    e = tl.exp(x - shift)

    # The sum is at least exp(0) = 1, except in a row of -inf: there it is 0, and 0 / 1 is 0.
    total = tl.sum(e, axis=0)
    y = e / tl.where(total == 0.0, 1.0, total)
    tl.store(out_ptr + row * out_row_stride + cols * out_col_stride, y, mask=mask)


def softmax(x, out=None):
    n_rows, n_cols = x.shape
    out = common.empty(n_rows, n_cols, like=x) if out is None else out
    block = max(1, triton.next_power_of_2(n_cols))
    strides = *common.strides(x), *common.strides(out)
    softmax_kernel[(n_rows,)](x, out, n_cols, *strides, BLOCK=block)
    return out


# The same in five kernels. The one above reads the matrix once and writes it once; these together
# read a matrix five times and write one three times, with two vectors of one value per row between.


@triton.jit
def row_max_kernel(x_ptr, max_ptr, n_cols, x_row_stride, x_col_stride, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x_ptrs = x_ptr + row * x_row_stride + cols * x_col_stride
    x = tl.load(x_ptrs, mask=mask, other=-float("inf"))
    tl.store(max_ptr + row, tl.max(x, axis=0))


@triton.jit
def subtract_kernel(
    x_ptr, max_ptr, out_ptr, n_cols, x_row_stride, x_col_stride, BLOCK: tl.constexpr
):
    """out is contiguous, like everything that the later passes touch."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * x_row_stride + cols * x_col_stride, mask=mask)
    row_max = tl.load(max_ptr + row)
    shift = tl.where(row_max == -float("inf"), 0.0, row_max)
    tl.store(out_ptr + row * n_cols + cols, x - shift, mask=mask)


@triton.jit
def exp_kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask)
    tl.store(out_ptr + row * n_cols + cols, tl.exp(x), mask=mask)


@triton.jit
def row_total_kernel(x_ptr, total_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    # After exp the neutral padding is 0: each reduction has its own.
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0)
    tl.store(total_ptr + row, tl.sum(x, axis=0))


@triton.jit
def divide_kernel(x_ptr, total_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask)
    total = tl.load(total_ptr + row)
    y = x / tl.where(total == 0.0, 1.0, total)
    tl.store(out_ptr + row * n_cols + cols, y, mask=mask)


def softmax_five_passes(x):
    n_rows, n_cols = x.shape
    grid, block = (n_rows,), max(1, triton.next_power_of_2(n_cols))
    maxima, totals = common.empty(n_rows, like=x), common.empty(n_rows, like=x)
    shifted = common.empty(n_rows, n_cols, like=x)
    exps = common.empty(n_rows, n_cols, like=x)
    out = common.empty(n_rows, n_cols, like=x)
    row_max_kernel[grid](x, maxima, n_cols, *common.strides(x), BLOCK=block)
    subtract_kernel[grid](x, maxima, shifted, n_cols, *common.strides(x), BLOCK=block)
    exp_kernel[grid](shifted, exps, n_cols, BLOCK=block)
    row_total_kernel[grid](exps, totals, n_cols, BLOCK=block)
    divide_kernel[grid](exps, totals, out, n_cols, BLOCK=block)
    return out


def reference(x):
    x = common.f64(x)
    row_max = x.max(axis=1, keepdims=True, initial=-np.inf)
    e = np.exp(x - np.where(np.isneginf(row_max), 0.0, row_max))
    total = e.sum(axis=1, keepdims=True)
    return e / np.where(total == 0.0, 1.0, total)


TOLERANCE = 1e-6


def check():
    for compute in softmax, softmax_five_passes:
        # By hand: with zeros for padding the first would be 0.0321, 0.2369, 0.0871.
        x = common.array(np.array([[-3, -1, -2]], np.float32))
        want = np.array([[0.09003057, 0.66524096, 0.24472847]])
        common.expect(compute(x), want, TOLERANCE, compute.__name__)

        for shape in (1, 1), (3, 31), (2, 33), (5, 127), (4, 64), (2, 1021), (0, 5), (5, 0):
            for layout, x in common.views(*shape):
                what = f"{compute.__name__}, {shape} {layout}"
                common.expect(compute(x), reference(x), TOLERANCE, what)

        # Some -inf, nothing but -inf, and values that overflow an exp without the subtraction.
        x = common.normal(4, 33)
        x[0, ::2] = -np.inf
        x[1, :] = -np.inf
        x[2, :] *= 1000.0
        x[3, :] = 3e38
        got = compute(x)
        common.expect(got, reference(x), TOLERANCE, f"{compute.__name__}, extreme rows")
        common.expect(got[1], np.zeros(33), 0.0, f"{compute.__name__} of a row of -inf")


def cases():
    x = common.normal(1024, 1024)
    out = common.empty(1024, 1024, like=x)
    want = reference(x)
    yield common.measure("softmax", "1024x1024", lambda: softmax(x, out), want, TOLERANCE)
    run = lambda: softmax_five_passes(x)
    yield common.measure("softmax (five passes)", "1024x1024", run, want, TOLERANCE)


if __name__ == "__main__":
    common.main(check, cases)
