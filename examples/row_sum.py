"""The sum of each row, by a loop over blocks: rows of any length through a tile of one size."""

import numpy as np
import triton
import triton.language as tl

import common


@triton.jit
def row_sum_kernel(
    x_ptr, out_ptr,
    n_cols, x_row_stride, x_col_stride,
    BLOCK: tl.constexpr,
):
    """Each program goes along one row, BLOCK columns at a time."""
    row = tl.program_id(0).to(tl.int64)

    # A sum for each lane, in float32 from the start: a variable that a loop carries keeps its type.
    # The lanes are added up once, after the loop, which is cheaper than a reduction in each step.
    sums = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        # 1..10 in blocks of 4 is 1 2 3 4, 5 6 7 8, 9 10 and two lanes of padding: 0 for a sum.
        x_ptrs = x_ptr + row * x_row_stride + cols * x_col_stride
        sums += tl.load(x_ptrs, mask=cols < n_cols, other=0.0)
    tl.store(out_ptr + row, tl.sum(sums, axis=0))


def row_sum(x, block=2048):
    n_rows, n_cols = x.shape
    out = common.empty(n_rows, like=x)
    row_sum_kernel[(n_rows,)](x, out, n_cols, *common.strides(x), BLOCK=block)
    return out


TOLERANCE = 1e-6


def check():
    x = common.array(np.arange(1, 11, dtype=np.float32).reshape(1, 10))
    common.expect(row_sum(x, block=4), np.array([55.0]), 0.0, "row_sum of 1..10 in blocks of 4")

    for block in 4, 32, 1024:
        for shape in (1, 1), (3, 31), (2, 33), (5, 127), (4, 64), (0, 5), (5, 0):
            for layout, x in common.views(*shape):
                want = common.f64(x).sum(axis=1)
                what = f"row_sum in blocks of {block}, {shape} {layout}"
                common.expect(row_sum(x, block=block), want, TOLERANCE, what)


def cases():
    x = common.normal(64, 65536)
    want = common.f64(x).sum(axis=1)
    yield common.measure("row_sum", "64x65536", lambda: row_sum(x), want, TOLERANCE)


if __name__ == "__main__":
    common.main(check, cases)
