"""Views, uninitialized memory, outputs that are left unwritten, undefined lanes."""

import numpy as np
import triton
import triton.language as tl


@triton.jit
def row_sums(x_ptr, out_ptr, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + cols, mask=cols < stride, other=0.0)  # finds: error[outside-view]; lints: note[stride-bound]
    tl.store(out_ptr + row, tl.sum(x))


@triton.jit
def row_sums_right(x_ptr, out_ptr, n, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + cols, mask=cols < n, other=0.0)
    tl.store(out_ptr + row, tl.sum(x))


def padded_rows():
    base = np.ones((8, 128), np.float32)
    x = base[:, :100]
    out = np.zeros(8, np.float32)
    row_sums[(8,)](x, out, 128, BLOCK=128)
    row_sums_right[(8,)](x, out, 100, 128, BLOCK=128)
    assert (out == 100).all()


@triton.jit
def peeks(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    # Read beyond the view, and never used there.
    x = tl.load(x_ptr + cols)  # finds: note[outside-view]
    tl.store(out_ptr + cols, x, mask=cols < n)


def unused_lanes():
    out = np.zeros(10, np.float32)
    peeks[(1,)](np.ones(16, np.float32)[:10], out, 10, BLOCK=16)


@triton.jit
def flipped(x_ptr, out_ptr, n, stride, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    mask = i < n
    x = tl.load(x_ptr + i * stride, mask=mask)
    tl.store(out_ptr + i, x, mask=mask)


def negative_strides():
    x = np.arange(10, dtype=np.float32)[::-1]
    out = np.zeros(10, np.float32)
    flipped[(1,)](x, out, 10, -1, BLOCK=16)
    assert (out == x).all()


@triton.jit
def add_one(out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out_ptr + i, 1.0, mask=i < n)  # finds: error[uninitialized-read]


def accumulating():
    add_one[(4,)](np.empty(4096, np.float32), 4096, BLOCK=1024)
    # Told, or written by the host, it is silent.
    out = np.empty(4096, np.float32)
    out[:] = 0
    add_one[(4,)](out, 4096, BLOCK=1024)


@triton.jit
def copy(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)  # finds: error[uninitialized-read]
    tl.store(out_ptr + i, x, mask=i < n)


def copying():
    copy[(4,)](np.empty(100, np.float32), np.empty(100, np.float32), 100, BLOCK=32)


@triton.jit
def too_few(out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, i, mask=i < n)  # finds: warning[unwritten-output]


def unwritten():
    too_few[(4,)](np.empty(128, np.int32), 128, BLOCK=16)
    # What was initialized may be written in part.
    too_few[(4,)](np.zeros(128, np.int32), 128, BLOCK=16)
    # What the launch does not touch is no output of it.
    too_few[(8,)](np.empty(128, np.int32), 128, BLOCK=16)


@triton.jit
def copy_under_mask(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    x = tl.load(x_ptr + i, mask=mask)
    tl.store(out_ptr + i, x * 2 + 1, mask=mask)


@triton.jit
def copy_past_mask(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, x)  # finds: error[undefined-used]


@triton.jit
def decides(x_ptr, out_ptr, n):
    x = tl.load(x_ptr, mask=n > 0)
    if x > 0:  # finds: error[undefined-used]
        tl.store(out_ptr, 1.0)


def undefined_lanes():
    decides[(1,)](np.ones(1, np.float32), np.zeros(1, np.float32), 0)
    copy_under_mask[(4,)](np.ones(100, np.float32), np.zeros(100, np.float32), 100, BLOCK=32)
    copy_past_mask[(1,)](np.ones(10, np.float32), np.zeros(16, np.float32), 10, BLOCK=16)


@triton.jit
def rows_of(ids_ptr, table_ptr, out_ptr, n, WIDTH: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    cols = tl.arange(0, WIDTH)
    ids = tl.load(ids_ptr + i, mask=i < n)
    mask = (i < n)[:, None]
    x = tl.load(table_ptr + ids[:, None] * WIDTH + cols[None, :], mask=mask, other=0.0)
    tl.store(out_ptr + i[:, None] * WIDTH + cols[None, :], x, mask=mask)


@triton.jit
def rows_of_unmasked(ids_ptr, table_ptr, out_ptr, n, WIDTH: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    cols = tl.arange(0, WIDTH)
    ids = tl.load(ids_ptr + i, mask=i < n)
    x = tl.load(table_ptr + ids[:, None] * WIDTH + cols[None, :])  # finds: error[undefined-used]
    tl.store(out_ptr + i[:, None] * WIDTH + cols[None, :], x, mask=(i < n)[:, None])


def embeddings():
    ids = np.array([3, 1, 2], np.int32)
    table = np.arange(64, dtype=np.float32).reshape(4, 16)
    for kernel in rows_of, rows_of_unmasked:
        out = np.zeros((3, 16), np.float32)
        kernel[(1,)](ids, table, out, 3, WIDTH=16, BLOCK=4)
        assert (out == table[ids]).all()


padded_rows()
unused_lanes()
negative_strides()
accumulating()
copying()
unwritten()
undefined_lanes()
embeddings()


@triton.jit
def flat_copy(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)  # finds: note[flat-index]
    tl.store(out_ptr + i, x, mask=i < n)


@triton.jit
def strided_copy(x_ptr, out_ptr, m, n, xm, xn, om, on, BLOCK: tl.constexpr):
    rows = tl.arange(0, BLOCK)[:, None]
    cols = tl.arange(0, BLOCK)[None, :]
    mask = (rows < m) & (cols < n)
    x = tl.load(x_ptr + rows * xm + cols * xn, mask=mask)
    tl.store(out_ptr + rows * om + cols * on, x, mask=mask)


def transposed_views():
    x = np.arange(6, dtype=np.float32).reshape(2, 3).T
    out = np.empty((3, 2), np.float32)
    flat_copy[(1,)](x, out, 6, BLOCK=8)
    assert out.tolist() == [[0, 1], [2, 3], [4, 5]]
    strided_copy[(1,)](x, out, 3, 2, 1, 3, 2, 1, BLOCK=4)
    assert (out == x).all()
    # Where all have the same strides, elements need no order.
    same = np.empty((2, 3), np.float32).T
    flat_copy[(1,)](x, same, 6, BLOCK=8)
    assert (same == x).all()


transposed_views()


@triton.jit
def sums_of(addresses_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x_ptr = tl.load(addresses_ptr + row).to(tl.pointer_type(tl.float32))
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)  # finds: error[out-of-bounds]
    tl.store(out_ptr + row, tl.sum(x))


def addresses():
    parts = [np.full(10, k, np.float32) for k in range(3)]
    table = np.array([x.__array_interface__["data"][0] for x in parts], np.int64)
    out = np.empty(3, np.float32)
    try:
        sums_of[(3,)](table, out, 10, BLOCK=16)
    except triton.KernelError as e:
        assert "naiad.expose" in str(e)
    for x in parts:
        triton.expose(x)
    sums_of[(3,)](table, out, 10, BLOCK=16)
    assert out.tolist() == [0, 10, 20]


addresses()
