"""Adds a bias to each row of a matrix: masks, strides, and a grid of one or two dimensions."""

import numpy as np
import triton
import triton.language as tl

import common


@triton.jit
def bias_add_kernel(
    x_ptr, bias_ptr, out_ptr,
    n_cols,
    x_row_stride, x_col_stride, bias_stride, out_row_stride, out_col_stride,
    BLOCK: tl.constexpr,
):
    """Each program handles one whole row; BLOCK is at least n_cols."""
    # An array arrives as a pointer to its first element; its strides say how many elements to step
    # for the next row or column. The row is 64 bits wide, because row * stride may pass 2**31.
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)

    # A tile's size is a power of two; a row's length need not be. With 17 columns BLOCK is 32, and
    # the mask keeps lanes 17..31 from reading and writing what isn't the row's. It compares with
    # the number of columns, never with the stride: in a padded matrix that counts the padding too.
    mask = cols < n_cols

    x = tl.load(x_ptr + row * x_row_stride + cols * x_col_stride, mask=mask)
    bias = tl.load(bias_ptr + cols * bias_stride, mask=mask)
    tl.store(out_ptr + row * out_row_stride + cols * out_col_stride, x + bias, mask=mask)


@triton.jit
def bias_add_wide_kernel(
    x_ptr, bias_ptr, out_ptr,
    n_cols,
    x_row_stride, x_col_stride, bias_stride, out_row_stride, out_col_stride,
    BLOCK: tl.constexpr,
):
    """Each program handles BLOCK columns of one row: the grid is rows by blocks of columns."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < n_cols  # only a row's last block has lanes to mask off
    x = tl.load(x_ptr + row * x_row_stride + cols * x_col_stride, mask=mask)
    bias = tl.load(bias_ptr + cols * bias_stride, mask=mask)
    tl.store(out_ptr + row * out_row_stride + cols * out_col_stride, x + bias, mask=mask)


def bias_add(x, bias, out=None):
    """x + bias, a program for each row."""
    n_rows, n_cols = x.shape
    out = common.empty(n_rows, n_cols, like=x) if out is None else out
    block = max(1, triton.next_power_of_2(n_cols))
    bias_add_kernel[(n_rows,)](
        x, bias, out, n_cols,
        *common.strides(x), *common.strides(bias), *common.strides(out),
        BLOCK=block,
    )
    return out


def bias_add_wide(x, bias, out=None, block=1024):
    """x + bias for long rows, a program for each block of columns."""
    n_rows, n_cols = x.shape
    out = common.empty(n_rows, n_cols, like=x) if out is None else out
    bias_add_wide_kernel[(n_rows, triton.cdiv(n_cols, block))](
        x, bias, out, n_cols,
        *common.strides(x), *common.strides(bias), *common.strides(out),
        BLOCK=block,
    )
    return out


TOLERANCE = 1e-7  # one rounding of a float32 sum


def check():
    for add in bias_add, bias_add_wide:
        for shape in (1, 1), (1, 31), (3, 33), (7, 17), (2, 1021), (4, 64), (0, 5), (5, 0):
            for layout, x in common.views(*shape):
                bias = common.normal(2 * shape[1])[::2]
                want = common.f64(x) + common.f64(bias)
                common.expect(add(x, bias), want, TOLERANCE, f"{add.__name__}, {shape} {layout}")

        # The output may be padded too, and its padding belongs to someone else.
        x, bias = common.normal(7, 17), common.normal(17)
        storage = common.array(np.zeros((7, 32), np.float32))
        add(x, bias, out=storage[:, :17])
        want = np.zeros((7, 32))
        want[:, :17] = common.f64(x) + common.f64(bias)
        common.expect(storage, want, TOLERANCE, f"{add.__name__} into padded rows")


def cases():
    for add, kernel, shape, width in (
        (bias_add, "bias_add", (1024, 1024), 1024),
        (bias_add, "bias_add (padded rows)", (1024, 17), 32),
        (bias_add_wide, "bias_add_wide", (16, 65536), 65536),
        (bias_add_wide, "bias_add_wide", (8, 128000), 128000),
    ):
        rows, cols = shape
        x, bias = common.normal(rows, width)[:, :cols], common.normal(cols)
        out = common.empty(rows, cols, like=x)
        want = common.f64(x) + common.f64(bias)
        yield common.measure(kernel, f"{rows}x{cols}", lambda: add(x, bias, out), want, TOLERANCE)


if __name__ == "__main__":
    common.main(check, cases)
