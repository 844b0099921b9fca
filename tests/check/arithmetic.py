"""Offsets that wrap, NaN and infinities, zero divisors, promises that do not hold."""

import numpy as np
import triton
import triton.language as tl


@triton.jit
def row_starts(x_ptr, out_ptr, stride):
    row = tl.program_id(0) * 65536
    x = tl.load(x_ptr + row * stride)  # finds: error[wrapped-offset]
    tl.store(out_ptr + tl.program_id(0), x)


@triton.jit
def row_starts_in_64_bits(x_ptr, out_ptr, stride):
    row = tl.program_id(0).to(tl.int64) * 65536
    x = tl.load(x_ptr + row * stride)
    tl.store(out_ptr + tl.program_id(0), x)


def large_offsets():
    # Pages that nobody touches cost nothing.
    x = np.zeros(4 * 65536 * 8192 + 1, np.int8)
    out = np.zeros(5, np.int8)
    row_starts_in_64_bits[(5,)](x, out, 8192)
    try:
        row_starts[(5,)](x, out, 8192)
    except triton.KernelError as e:
        assert "begins at 262144" in str(e), e


@triton.jit
def hashed(ids_ptr, table_ptr, out_ptr, SIZE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    ids = tl.load(ids_ptr + i)
    slot = (ids.to(tl.uint32) * 2654435761) % SIZE
    mixed = (ids * 1103515245 + 12345) & (SIZE - 1)
    x = tl.load(table_ptr + slot) + tl.load(table_ptr + mixed)
    tl.store(out_ptr + i, x)


def hashes():
    ids = np.arange(1, 33, dtype=np.int32) * 7919
    hashed[(1,)](ids, np.zeros(64, np.float32), np.zeros(32, np.float32), SIZE=64, BLOCK=32)


@triton.jit
def softmax(x_ptr, out_ptr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row)
    d = x - tl.max(x)  # finds: warning[numeric-origin]
    e = tl.exp(d)
    tl.store(out_ptr + row, e / tl.sum(e))


@triton.jit
def tanh_by_exp(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    e = tl.exp(2 * x)  # finds: warning[numeric-origin]
    tl.store(out_ptr + i, (e - 1) / (e + 1))


@triton.jit
def soft_cap(x_ptr, out_ptr, cap, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    y = tl.load(x_ptr + i) / cap
    up = tl.exp(y)  # finds: warning[numeric-origin]
    down = tl.exp(-y)
    tl.store(out_ptr + i, cap * (up - down) / (up + down))


@triton.jit
def passed_on(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i) * 2)


@triton.jit
def moved(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N * N)
    x = tl.load(x_ptr + i)
    square = tl.reshape(x, (N, N))
    tl.store(out_ptr + i, tl.flip(x, 0))
    tl.store(out_ptr + 16 + i, tl.sort(x))
    tl.store(out_ptr + 32 + i, tl.cumsum(x, 0))
    tl.store(out_ptr + 48 + i, tl.cumsum(x, 0, reverse=True))
    tl.store(out_ptr + 64 + i, tl.gather(x, i ^ 5, 0))
    tl.store(out_ptr + 80 + i, tl.reshape(tl.trans(square), (N * N,)))
    tl.store(out_ptr + 96 + i, tl.reshape(tl.dot(square, square, acc=square), (N * N,)))
    tl.store(out_ptr + 112 + i, tl.associative_scan(x, 0, larger))


@triton.jit
def larger(a, b):
    return tl.maximum(a, b)


def specials():
    x = np.zeros((3, 8), np.float32)
    x[1] = -np.inf
    softmax[(3,)](x, np.zeros_like(x), BLOCK=8)
    tanh_by_exp[(1,)](np.full(8, 50, np.float32), np.zeros(8, np.float32), BLOCK=8)
    soft_cap[(1,)](np.array([5000, -10000], np.float32), np.zeros(2, np.float32), 50.0, BLOCK=2)
    # What comes from memory is nobody's fault here.
    passed_on[(1,)](np.full(8, np.nan, np.float32), np.zeros(8, np.float32), BLOCK=8)
    # Nor is it where lanes move.
    x = np.zeros(16, np.float32)
    x[3], x[9] = np.inf, np.nan
    moved[(1,)](x, np.zeros((8, 16), np.float32), N=4)


@triton.jit
def groups(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    tl.store(out_ptr + i, 100 // x, mask=i < n)  # finds: error[zero-divisor]


def divisors():
    groups[(1,)](np.array([1, 2, 4], np.int32), np.zeros(3, np.int32), 3, BLOCK=4)
    groups[(1,)](np.array([1, 0, 4], np.int32), np.zeros(3, np.int32), 3, BLOCK=4)


@triton.jit
def promises(x_ptr, out_ptr, start, BLOCK: tl.constexpr):
    i = tl.max_contiguous(start + tl.arange(0, BLOCK), BLOCK)
    i = tl.multiple_of(i, BLOCK)  # finds: warning[false-hint]
    tl.store(out_ptr + i, tl.load(x_ptr + i))


def hints():
    x = np.zeros(64, np.float32)
    promises[(1,)](x, np.zeros(64, np.float32), 16, BLOCK=16)
    promises[(1,)](x, np.zeros(64, np.float32), 3, BLOCK=16)


large_offsets()
hashes()
specials()
divisors()
hints()
