"""Kernels of `gpu_sanitize.py` that pass a tile's values from thread to thread."""

import triton
import triton.language as tl


@triton.jit
def scan_kernel(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out_ptr + i, tl.cumsum(tl.load(x_ptr + i), 0))


@triton.jit
def sort_kernel(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out_ptr + i, tl.sort(tl.load(x_ptr + i)))


@triton.jit
def reverse_kernel(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out_ptr + i, tl.flip(tl.load(x_ptr + i)))


@triton.jit
def gather_kernel(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    tl.store(out_ptr + i, tl.gather(x, x % 64, 0))


@triton.jit
def histogram_kernel(x_ptr, out_ptr, N: tl.constexpr):
    tl.store(out_ptr + tl.arange(0, 64), tl.histogram(tl.load(x_ptr + tl.arange(0, N)), 64))


@triton.jit
def argmax_kernel(x_ptr, out_ptr, N: tl.constexpr):
    tl.store(out_ptr, tl.argmax(tl.load(x_ptr + tl.arange(0, N)), 0))
