"""Wrong on purpose: a transpose that reuses the mask of its input for its output.

The tile is 32 x 16 and its transpose 16 x 32, so the mask no longer fits: an error when the kernel is
compiled. The kernel done right is in `../transpose.py`.
"""

import numpy as np
import triton
import triton.language as tl


@triton.jit
def transpose_kernel(
    x_ptr, out_ptr,
    n_rows, n_cols, x_row_stride, out_row_stride,
    BLOCK_ROWS: tl.constexpr, BLOCK_COLS: tl.constexpr,
):
    rows = tl.program_id(0) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)
    cols = tl.program_id(1) * BLOCK_COLS + tl.arange(0, BLOCK_COLS)
    mask = (rows[:, None] < n_rows) & (cols[None, :] < n_cols)
    tile = tl.load(x_ptr + rows[:, None] * x_row_stride + cols[None, :], mask=mask)
    out_ptrs = out_ptr + cols[:, None] * out_row_stride + rows[None, :]
    tl.store(out_ptrs, tl.trans(tile), mask=mask)


x = np.arange(31 * 65, dtype=np.float32).reshape(31, 65)
out = np.empty((65, 31), np.float32)
grid = (triton.cdiv(31, 32), triton.cdiv(65, 16))
transpose_kernel[grid](x, out, 31, 65, 65, 31, BLOCK_ROWS=32, BLOCK_COLS=16)
