"""Whole kernels that are right, and must be left in peace; and two with what they must be told."""

import numpy as np
import triton
import triton.language as tl

rng = np.random.default_rng(11)


def normal(*shape):
    return rng.standard_normal(shape).astype(np.float32)


@triton.jit
def attention(
    q_ptr, k_ptr, v_ptr, out_ptr, n, scale,
    CAUSAL: tl.constexpr, D: tl.constexpr, M: tl.constexpr, N: tl.constexpr,
):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    d = tl.arange(0, D)
    live = rows[:, None] < n
    q = tl.load(q_ptr + rows[:, None] * D + d[None, :], mask=live, other=0.0)
    highest = tl.full([M], float("-inf"), tl.float32)
    total = tl.zeros([M], tl.float32)
    acc = tl.zeros([M, D], tl.float32)
    end = tl.minimum(n, (tl.program_id(0) + 1) * M) if CAUSAL else n
    for start in range(0, end, N):
        cols = start + tl.arange(0, N)
        inside = cols[:, None] < n
        k = tl.load(k_ptr + cols[:, None] * D + d[None, :], mask=inside, other=0.0)
        s = tl.dot(q, tl.trans(k)) * scale
        keep = cols[None, :] < n
        if CAUSAL:
            keep = keep & (cols[None, :] <= rows[:, None])
        s = tl.where(keep, s, float("-inf"))
        new = tl.maximum(highest, tl.max(s, 1))
        p = tl.exp(s - new[:, None])
        alpha = tl.exp(highest - new)
        total = total * alpha + tl.sum(p, 1)
        v = tl.load(v_ptr + cols[:, None] * D + d[None, :], mask=inside, other=0.0)
        acc = tl.dot(p, v, acc * alpha[:, None])
        highest = new
    tl.store(out_ptr + rows[:, None] * D + d[None, :], acc / total[:, None], mask=live)


def flash_attention():
    for n in 16, 40, 77:
        q, k, v = normal(n, 16), normal(n, 16), normal(n, 16)
        for causal in False, True:
            out = np.empty((n, 16), np.float32)
            attention[(triton.cdiv(n, 16),)](q, k, v, out, n, 0.25, CAUSAL=causal, D=16, M=16, N=32)
            s = q @ k.T * 0.25
            if causal:
                s[np.triu_indices(n, 1)] = -np.inf
            p = np.exp(s - s.max(1, keepdims=True))
            assert np.allclose(out, p / p.sum(1, keepdims=True) @ v, atol=1e-4)


@triton.jit
def online_softmax(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    highest = -float("inf")
    total = 0.0
    for start in range(0, n, BLOCK):
        mask = start + cols < n
        x = tl.load(x_ptr + row * n + start + cols, mask=mask, other=0.0)
        new = tl.maximum(highest, tl.max(x))  # finds: note[padding-reduced]; lints: note[padding-reduced]
        e = tl.where(mask, tl.exp(x - new), 0.0)
        total = total * tl.exp(highest - new) + tl.sum(e)
        highest = new
    for start in range(0, n, BLOCK):
        mask = start + cols < n
        x = tl.load(x_ptr + row * n + start + cols, mask=mask, other=0.0)
        tl.store(out_ptr + row * n + start + cols, tl.exp(x - highest) / total, mask=mask)


def running_maximum():
    x = normal(3, 40) - 4
    out = np.empty_like(x)
    online_softmax[(3,)](x, out, 40, BLOCK=16)
    e = np.exp(x)
    assert np.allclose(out, e / e.sum(1, keepdims=True), rtol=1e-4)


@triton.jit
def layer_norm_backward(
    dx_ptr, dy_ptr, dw_ptr, x_ptr, w_ptr, mean_ptr, rstd_ptr, lock_ptr, count_ptr, n,
    GROUPS: tl.constexpr, BLOCK: tl.constexpr,
):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n
    x = tl.load(x_ptr + row * n + cols, mask=mask, other=0)
    dy = tl.load(dy_ptr + row * n + cols, mask=mask, other=0)
    w = tl.load(w_ptr + cols, mask=mask)
    mean = tl.load(mean_ptr + row)
    rstd = tl.load(rstd_ptr + row)
    xhat = tl.where(mask, (x - mean) * rstd, 0.0)
    wdy = tl.where(mask, w * dy, 0.0)
    c1 = tl.sum(xhat * wdy, axis=0) / n
    c2 = tl.sum(wdy, axis=0) / n
    tl.store(dx_ptr + row * n + cols, (wdy - (xhat * c1 + c2)) * rstd, mask=mask)
    group = row % GROUPS
    partial = dy * xhat
    while tl.atomic_cas(lock_ptr + group, 0, 1) == 1:
        pass
    count = tl.load(count_ptr + group)
    if count == 0:
        tl.atomic_xchg(count_ptr + group, 1)
    else:
        partial += tl.load(dw_ptr + group * n + cols, mask=mask)
    tl.store(dw_ptr + group * n + cols, partial, mask=mask)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr + group, 0)


@triton.jit
def sum_of_groups(dw_ptr, out_ptr, m, n, M: tl.constexpr, N: tl.constexpr):
    cols = tl.program_id(0) * N + tl.arange(0, N)
    acc = tl.zeros((M, N), tl.float32)
    for start in range(0, m, M):
        rows = start + tl.arange(0, M)
        mask = (rows[:, None] < m) & (cols[None, :] < n)
        acc += tl.load(dw_ptr + rows[:, None] * n + cols[None, :], mask=mask, other=0.0)
    tl.store(out_ptr + cols, tl.sum(acc, axis=0), mask=cols < n)


def layer_norm():
    m, n, groups = 12, 50, 3
    x, dy, w = normal(m, n), normal(m, n), normal(n)
    mean, rstd = x.mean(1), 1 / np.sqrt(x.var(1) + 1e-5)
    dx, dw, out = np.empty_like(x), np.empty((groups, n), np.float32), np.empty(n, np.float32)
    locks = np.zeros((2, groups), np.int32)
    layer_norm_backward[(m,)](dx, dy, dw, x, w, mean, rstd, locks[0], locks[1], n, GROUPS=groups, BLOCK=64)
    sum_of_groups[(triton.cdiv(n, 32),)](dw, out, groups, n, M=2, N=32)
    xhat = (x - mean[:, None]) * rstd[:, None]
    assert np.allclose(out, (dy * xhat).sum(0), atol=1e-4)


@triton.jit
def cross_entropy(x_ptr, labels_ptr, out_ptr, n, CAP: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + cols, mask=cols < n, other=-float("inf"))
    label = tl.load(labels_ptr + row)
    at = tl.load(x_ptr + row * n + label)
    highest = tl.max(x)
    loss = tl.log(tl.sum(tl.exp(x - highest))) + highest - at
    tl.store(out_ptr + row, loss)


@triton.jit
def capped_cross_entropy(x_ptr, labels_ptr, out_ptr, n, CAP: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + cols, mask=cols < n, other=-float("inf"))
    # The fill is -CAP from here on.
    x = CAP * (2 / (1 + tl.exp(-2 * x / CAP)) - 1)
    label = tl.load(labels_ptr + row)
    at = tl.sum(tl.where(cols == label, x, 0.0))
    highest = tl.max(x)
    loss = tl.log(tl.sum(tl.exp(x - highest))) + highest - at  # finds: error[padding-reduced]
    tl.store(out_ptr + row, loss)


def cross_entropies():
    x = normal(4, 50)
    labels = np.array([0, 7, 49, 3], np.int32)
    out = np.empty(4, np.float32)
    for kernel in cross_entropy, capped_cross_entropy:
        kernel[(4,)](x, labels, out, 50, CAP=3.0, BLOCK=64)


@triton.jit
def best(x_ptr, index_ptr, top_ptr, n, K: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + cols, mask=cols < n, other=-float("inf"))
    tl.store(index_ptr + row, tl.argmax(x, 0))
    tl.store(top_ptr + row * K + tl.arange(0, K), tl.topk(x, K))


def argmax_and_topk():
    x = normal(5, 27)
    x[3] = -np.inf
    index, top = np.empty(5, np.int32), np.empty((5, 4), np.float32)
    best[(5,)](x, index, top, 27, K=4, BLOCK=32)
    assert (index == x.argmax(1)).all()
    assert (top == -np.sort(-x, 1)[:, :4]).all()


@triton.jit
def quantize(x_ptr, out_ptr, scale_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n
    x = tl.load(x_ptr + row * n + cols, mask=mask, other=0.0)
    scale = tl.max(tl.abs(x)) / 127
    tl.store(out_ptr + row * n + cols, (x / scale).to(tl.int8), mask=mask)
    tl.store(scale_ptr + row, scale)


@triton.jit
def dropout(x_ptr, out_ptr, n, p, seed, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    x = tl.load(x_ptr + i, mask=mask)
    keep = tl.rand(seed, i) > p
    tl.store(out_ptr + i, tl.where(keep, x / (1 - p), 0.0), mask=mask)


def quantization_and_dropout():
    x = normal(6, 45)
    quantize[(6,)](x, np.empty((6, 45), np.int8), np.empty(6, np.float32), 45, BLOCK=64)
    dropout[(5,)](x, np.empty_like(x), 270, 0.3, 5, BLOCK=64)


@triton.jit
def matmul(
    a_ptr, b_ptr, c_ptr, m, n, k, am, ak, bk, bn,
    SPLIT: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
):
    # Rows past the end wrap around, and are masked at the store.
    rows = (tl.program_id(0) * M + tl.arange(0, M)) % m
    cols = (tl.program_id(1) * N + tl.arange(0, N)) % n
    ks = tl.program_id(2) * K + tl.arange(0, K)
    a = a_ptr + rows[:, None] * am + ks[None, :] * ak
    b = b_ptr + ks[:, None] * bk + cols[None, :] * bn
    acc = tl.zeros((M, N), tl.float32)
    for i in range(0, tl.cdiv(k, K * SPLIT)):
        left = k - i * K * SPLIT
        x = tl.load(a, mask=ks[None, :] < left, other=0.0)
        y = tl.load(b, mask=ks[:, None] < left, other=0.0)
        acc += tl.dot(x, y)
        a += K * SPLIT * ak
        b += K * SPLIT * bk
    rows = tl.program_id(0) * M + tl.arange(0, M)
    cols = tl.program_id(1) * N + tl.arange(0, N)
    mask = (rows[:, None] < m) & (cols[None, :] < n)
    out = c_ptr + rows[:, None] * n + cols[None, :]
    if SPLIT == 1:
        tl.store(out, acc, mask=mask)
    else:
        tl.atomic_add(out, acc, mask=mask)


def products():
    a, b = normal(45, 70), normal(70, 33)
    for split in 1, 3:
        c = np.empty((45, 33), np.float32) if split == 1 else np.zeros((45, 33), np.float32)
        grid = (triton.cdiv(45, 16), triton.cdiv(33, 16), split)
        matmul[grid](a, b, c, 45, 33, 70, 70, 1, 33, 1, SPLIT=split, M=16, N=16, K=16)
        assert np.allclose(c, a @ b, atol=1e-4)


flash_attention()
running_maximum()
layer_norm()
cross_entropies()
argmax_and_topk()
quantization_and_dropout()
products()
