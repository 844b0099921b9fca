"""Findings that are about the lanes of a tile."""

import numpy as np
import triton
import triton.language as tl


@triton.jit
def mean(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + cols, mask=cols < n, other=1.0)
    tl.store(out_ptr, tl.sum(x) / n)


mean[(1,)](np.ones(100, np.float32), np.zeros(1, np.float32), 100, BLOCK=128)


@triton.jit
def total(x_ptr, out_ptr, m, n, M: tl.constexpr, N: tl.constexpr):
    rows = tl.arange(0, M)[:, None]
    cols = tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + rows * n + cols, mask=(rows < m) & (cols < n))
    tl.store(out_ptr, tl.min(x))


total[(1,)](np.ones((31, 15), np.float32), np.zeros(1, np.float32), 31, 15, M=32, N=16)


@triton.jit
def extremes(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    p = tl.make_block_ptr(x_ptr, (n,), (1,), (0,), (BLOCK,), (0,))
    x = tl.load(p, boundary_check=(0,), padding_option="zero")
    tl.store(out_ptr, tl.argmax(x, 0))
    tl.store(out_ptr + 1, tl.max(x))
    tl.store(out_ptr + 2, tl.min(tl.load(p, boundary_check=(0,))))


extremes[(1,)](np.array([-3, -1, -2], np.int32), np.zeros(3, np.int32), 3, BLOCK=4)
extremes[(1,)](np.array([3, 1, 2], np.int32), np.zeros(3, np.int32), 3, BLOCK=4)


@triton.jit
def triangle(x_ptr, out_ptr, N: tl.constexpr):
    rows = tl.arange(0, N)[:, None]
    cols = tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + rows * N + cols, mask=cols <= rows, other=-1.0)
    tl.store(out_ptr + tl.arange(0, N), tl.sum(x, 1))


triangle[(1,)](np.ones((64, 64), np.float32), np.zeros(64, np.float32), N=64)


@triton.jit
def transpose(x_ptr, out_ptr, m, n, BLOCK: tl.constexpr):
    rows = tl.arange(0, BLOCK)[:, None]
    cols = tl.arange(0, BLOCK)[None, :]
    mask = (rows < m) & (cols < n)
    x = tl.load(x_ptr + rows * n + cols, mask=mask)
    tl.store(out_ptr + cols * BLOCK + rows, x)


transpose[(1,)](np.ones((5, 7), np.float32), np.zeros((8, 8), np.float32), 5, 7, BLOCK=8)


@triton.jit
def copy(x_ptr, out_ptr, stride, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    tl.store(out_ptr + cols, tl.load(x_ptr + cols, mask=cols < stride), mask=cols < stride)


copy[(1,)](np.ones((2, 12), np.float32)[:, :10], np.zeros(16, np.float32), 12, BLOCK=16)


@triton.jit
def spill(out_ptr, stride, M: tl.constexpr, N: tl.constexpr):
    rows = tl.arange(0, M)[:, None]
    cols = tl.arange(0, N)[None, :]
    tl.store(out_ptr + rows * stride + cols, 1.0, mask=(cols < stride) & (rows < 3))


# The last of all: it ends its launch.
spill[(1,)](np.zeros((3, 8), np.float32)[:, :6], 8, M=4, N=16)
