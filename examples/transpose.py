"""Transposes a matrix tile by tile: two-dimensional tiles, and a mask for each side."""

import numpy as np
import triton
import triton.language as tl

import common


@triton.jit
def transpose_kernel(
    x_ptr, out_ptr,
    n_rows, n_cols,
    x_row_stride, x_col_stride, out_row_stride, out_col_stride,
    BLOCK_ROWS: tl.constexpr, BLOCK_COLS: tl.constexpr,
):
    """Each program moves one tile of x, BLOCK_ROWS by BLOCK_COLS."""
    rows = tl.program_id(0).to(tl.int64) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)
    cols = tl.program_id(1).to(tl.int64) * BLOCK_COLS + tl.arange(0, BLOCK_COLS)

    # Reading, rows run down the tile and cols across it.
    x_ptrs = x_ptr + rows[:, None] * x_row_stride + cols[None, :] * x_col_stride
    x_mask = (rows[:, None] < n_rows) & (cols[None, :] < n_cols)
    tile = tl.load(x_ptrs, mask=x_mask)

    # Writing, cols run down and rows across, so the mask is built anew in that order. With x_mask
    # again, a tile that isn't square is an error of shapes. One that is square gets through, and
    # loses part of the edge or writes beyond it.
    out_ptrs = out_ptr + cols[:, None] * out_row_stride + rows[None, :] * out_col_stride
    out_mask = (cols[:, None] < n_cols) & (rows[None, :] < n_rows)
    tl.store(out_ptrs, tl.trans(tile), mask=out_mask)


def transpose(x, out=None, tile=(32, 32)):
    """x.T, moved in memory (NumPy's own x.T only swaps the strides)."""
    n_rows, n_cols = x.shape
    out = common.empty(n_cols, n_rows, like=x) if out is None else out
    block_rows, block_cols = tile
    grid = (triton.cdiv(n_rows, block_rows), triton.cdiv(n_cols, block_cols))
    transpose_kernel[grid](
        x, out, n_rows, n_cols,
        *common.strides(x), *common.strides(out),
        BLOCK_ROWS=block_rows, BLOCK_COLS=block_cols,
    )
    return out


TOLERANCE = 0.0  # values are moved, not computed


def check():
    for tile in (32, 32), (32, 16), (8, 64):
        for shape in (1, 1), (1, 31), (33, 1), (31, 65), (67, 37), (64, 32), (0, 5), (5, 0):
            for layout, x in common.views(*shape):
                what = f"transpose in tiles {tile}, {shape} {layout}"
                common.expect(transpose(x, tile=tile), common.f64(x).T, TOLERANCE, what)

        # Into the middle of a larger array, whose rest must stay as it is.
        x = common.normal(31, 65)
        storage = common.array(np.zeros((70, 40), np.float32))
        transpose(x, out=storage[2:67, 4:35], tile=tile)
        want = np.zeros((70, 40))
        want[2:67, 4:35] = common.f64(x).T
        common.expect(storage, want, TOLERANCE, f"transpose in tiles {tile} into a larger array")


def cases():
    for rows, cols in (1024, 1024), (1021, 517):
        x = common.normal(rows, cols)
        out = common.empty(cols, rows, like=x)
        run, want = lambda: transpose(x, out), common.f64(x).T
        yield common.measure("transpose", f"{rows}x{cols}", run, want, TOLERANCE)


if __name__ == "__main__":
    common.main(check, cases)
