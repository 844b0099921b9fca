"""Tiles whose masks do not fit: products, transposes, attention past the end of a view."""

import numpy as np
import triton
import triton.language as tl

rng = np.random.default_rng(5)


def normal(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def ends(error, launch):
    try:
        launch()
    except triton.KernelError as e:
        assert error in str(e), e
    else:
        raise AssertionError("the launch should have failed")


@triton.jit
def matmul_unmasked(a_ptr, b_ptr, c_ptr, k, n, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    cols = tl.program_id(1) * N + tl.arange(0, N)
    acc = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        ks = start + tl.arange(0, K)
        a = tl.load(a_ptr + rows[:, None] * k + ks[None, :])
        b = tl.load(b_ptr + ks[:, None] * n + cols[None, :])  # finds: error[out-of-bounds]
        acc += tl.dot(a, b)
    tl.store(c_ptr + rows[:, None] * n + cols[None, :], acc)


@triton.jit
def matmul_in_a_view(a_ptr, b_ptr, c_ptr, k, am, bk, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    cols = tl.program_id(1) * N + tl.arange(0, N)
    acc = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        ks = start + tl.arange(0, K)
        a = tl.load(a_ptr + rows[:, None] * am + ks[None, :])  # finds: error[outside-view]
        b = tl.load(b_ptr + ks[:, None] * bk + cols[None, :])  # finds: note[outside-view]
        acc += tl.dot(a, b)
    tl.store(c_ptr + rows[:, None] * 64 + cols[None, :], acc)


def products():
    c = np.zeros((64, 64), np.float32)
    a, b = normal(64, 50), normal(50, 64)
    ends("outside the memory of `b_ptr`", lambda: matmul_unmasked[(2, 2)](a, b, c, 50, 64, M=32, N=32, K=32))
    # The same out of larger arrays: what lies beyond the views is summed.
    a, b = normal(64, 64), normal(64, 64)
    matmul_in_a_view[(2, 2)](a[:, :50], b[:50], c, 50, 64, 64, M=32, N=32, K=32)
    assert not np.allclose(c, a[:, :50] @ b[:50])


@triton.jit
def transpose(x_ptr, out_ptr, m, n, T: tl.constexpr):
    rows = tl.program_id(0) * T + tl.arange(0, T)
    cols = tl.program_id(1) * T + tl.arange(0, T)
    mask = (rows[:, None] < m) & (cols[None, :] < n)
    x = tl.load(x_ptr + rows[:, None] * n + cols[None, :], mask=mask)
    out = out_ptr + cols[:, None] * m + rows[None, :]
    tl.store(out, tl.trans(x), mask=mask)  # finds: error[out-of-bounds], error[undefined-used]


def transposes():
    x, out = normal(31, 65), np.zeros((65, 31), np.float32)
    ends("outside the memory of `out_ptr`", lambda: transpose[(1, 3)](x, out, 31, 65, T=32))


@triton.jit
def attend(q_ptr, k_ptr, v_ptr, out_ptr, n, D: tl.constexpr, N: tl.constexpr):
    rows = tl.arange(0, 16)
    cols = tl.arange(0, N)
    d = tl.arange(0, D)
    q = tl.load(q_ptr + rows[:, None] * D + d[None, :])
    k = tl.load(k_ptr + cols[None, :] * D + d[:, None], mask=cols[None, :] < n, other=0.0)
    s = tl.where(cols[None, :] < n, tl.dot(q, k), float("-inf"))
    p = tl.exp(s - tl.max(s, 1)[:, None])
    p = p / tl.sum(p, 1)[:, None]
    v = tl.load(v_ptr + cols[:, None] * D + d[None, :])  # finds: error[outside-view]
    tl.store(out_ptr + rows[:, None] * D + d[None, :], tl.dot(p, v))


def attention():
    v = np.full((32, 16), np.nan, np.float32)
    v[:20] = normal(20, 16)
    out = np.zeros((16, 16), np.float32)
    attend[(1,)](normal(16, 16), normal(20, 16), v[:20], out, 20, D=16, N=32)
    assert np.isnan(out).all()


@triton.jit
def scale(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    mask = i < n
    x = tl.load(x_ptr + i, mask=mask, other=0.0)
    tl.store(out_ptr + i, 2 * x)  # finds: error[outside-view]


def forgotten_mask():
    base = np.zeros(16, np.float32)
    ends("outside the view of `out_ptr`", lambda: scale[(1,)](normal(10), base[:10], 10, BLOCK=16))


products()
transposes()
attention()
forgotten_mask()
