# Kernels as people write them, for tests that run one before and after the passes. `with` gives the
# arguments that are numbers.
import triton
import triton.language as tl


# kernel(a: *fp16, b: *fp16, c: *fp16, M: i32, N: i32, K: i32, am: i32, ak: i32, bk: i32, bn: i32, cm: i32, cn: i32, BM=16, BN=16, BK=16)
# with(M=20, N=18, K=40, am=40, ak=1, bk=18, bn=1, cm=18, cn=1)
@triton.jit
def moving_pointers(a, b, c, M, N, K, am, ak, bk, bn, cm, cn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = (tl.program_id(0) * BM + tl.arange(0, BM)) % M
    cols = (tl.program_id(1) * BN + tl.arange(0, BN)) % N
    inner = tl.arange(0, BK)
    a_tile = a + rows[:, None] * am + inner[None, :] * ak
    b_tile = b + inner[:, None] * bk + cols[None, :] * bn
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        left = K - k * BK
        x = tl.load(a_tile, mask=inner[None, :] < left, other=0.0)
        y = tl.load(b_tile, mask=inner[:, None] < left, other=0.0)
        acc = tl.dot(x, y, acc)
        a_tile += BK * ak
        b_tile += BK * bk
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    inside = (rows[:, None] < M) & (cols[None, :] < N)
    tl.store(c + rows[:, None] * cm + cols[None, :] * cn, acc.to(tl.float16), mask=inside)


# kernel(q: *fp16, k: *fp16, v: *fp16, out: *fp16, n: i32, scale: fp32, D=16, BM=16, BN=16, CAUSAL=True)
# kernel(q: *fp16, k: *fp16, v: *fp16, out: *fp16, n: i32, scale: fp32, D=16, BM=16, BN=16, CAUSAL=False)
# with(n=40, scale=0)
@triton.jit
def attention(q, k, v, out, n, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr):
    start = tl.program_id(0) * BM
    rows = start + tl.arange(0, BM)
    cols = tl.arange(0, BN)
    d = tl.arange(0, D)
    qs = tl.load(q + rows[:, None] * D + d[None, :], mask=rows[:, None] < n, other=0.0)
    k_tile = k + d[:, None] + cols[None, :] * D
    v_tile = v + cols[:, None] * D + d[None, :]
    top = tl.full([BM], float("-inf"), dtype=tl.float32)
    total = tl.full([BM], 1.0, dtype=tl.float32)
    acc = tl.zeros([BM, D], dtype=tl.float32)
    end = tl.minimum(start + BM, n) if CAUSAL else n
    for at in range(0, end, BN):
        at = tl.multiple_of(at, BN)
        inside = (at + cols) < n
        ks = tl.load(k_tile, mask=inside[None, :], other=0.0)
        score = tl.dot(qs, ks) * scale
        if CAUSAL:
            score = tl.where(rows[:, None] >= (at + cols)[None, :], score, float("-inf"))
        score = tl.where(inside[None, :], score, float("-inf"))
        new_top = tl.maximum(top, tl.max(score, 1))
        p = tl.exp2(score - new_top[:, None])
        old = tl.exp2(top - new_top)
        total = total * old + tl.sum(p, 1)
        vs = tl.load(v_tile, mask=inside[:, None], other=0.0)
        acc = acc * old[:, None] + tl.dot(p.to(tl.float16), vs)
        top = new_top
        k_tile += BN * D
        v_tile += BN * D
    acc = acc / total[:, None]
    tl.store(out + rows[:, None] * D + d[None, :], acc.to(tl.float16), mask=rows[:, None] < n)


# kernel(x: *fp32, w: *fp32, b: *fp32, y: *fp32, mean: *fp32, stride: i32, n: i32, eps: fp32, B=16)
# with(stride=50, n=50, eps=0)
@triton.jit
def layer_norm(x, w, b, y, mean, stride, n, eps, B: tl.constexpr):
    row = tl.program_id(0)
    x += row * stride
    y += row * stride
    total = tl.zeros([B], dtype=tl.float32)
    for at in range(0, n, B):
        cols = at + tl.arange(0, B)
        total += tl.load(x + cols, mask=cols < n, other=0.0).to(tl.float32)
    m = tl.sum(total, axis=0) / n
    squares = tl.zeros([B], dtype=tl.float32)
    for at in range(0, n, B):
        cols = at + tl.arange(0, B)
        v = tl.load(x + cols, mask=cols < n, other=0.0).to(tl.float32)
        v = tl.where(cols < n, v - m, 0.0)
        squares += v * v
    r = 1 / tl.sqrt(tl.sum(squares, axis=0) / n + eps)
    tl.store(mean + row, m)
    for at in range(0, n, B):
        cols = at + tl.arange(0, B)
        inside = cols < n
        v = tl.load(x + cols, mask=inside, other=0.0).to(tl.float32)
        z = (v - m) * r * tl.load(w + cols, mask=inside) + tl.load(b + cols, mask=inside)
        tl.store(y + cols, z, mask=inside)


# kernel(x: *fp32, out: *fp32, n: i32, B=16)
# with(n=100)
@triton.jit
def moving_offsets(x, out, n, B: tl.constexpr):
    offs = tl.arange(0, B) + tl.program_id(0) * n
    acc = tl.zeros([B], dtype=tl.float32)
    left = n
    while left > 0:
        acc += tl.load(x + offs, mask=tl.arange(0, B) < left, other=0.0)
        offs += B
        left -= B
    tl.store(out + tl.program_id(0) * B + tl.arange(0, B), acc)


# kernel(x: *fp32, out: *fp32, n: i32, B=32)
# with(n=77)
@triton.jit
def shift_in_place(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i, mask=i < n)
    tl.store(x + i + 1, v, mask=i + 1 < n)
    w = tl.load(x + i, mask=i < n)
    tl.store(out + i, w, mask=i < n)


# kernel(x: *fp32, out: *fp32, seed: i32, n: i32, p: fp32, B=64)
# with(seed=7, n=60, p=1056964608)
@triton.jit
def dropout(x, out, seed, n, p, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    keep = tl.rand(seed, i) > p
    v = tl.load(x + i, mask=i < n, other=0.0)
    tl.store(out + i, tl.where(keep, v / (1 - p), 0.0), mask=i < n)


# kernel(x: *i32, out: *i32, n: i32, B=64)
# with(n=50)
@triton.jit
def running_sums(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i, mask=i < n, other=0)
    s = tl.cumsum(v, 0)
    half = s.reshape(2, B // 2)
    swapped = tl.trans(half)
    a, b = tl.split(swapped)
    tl.store(out + i, s, mask=i < n)
    tl.store(out + B + tl.arange(0, B // 2), tl.maximum(a, b) // 4)


# kernel(x: *fp32, count: *i32, out: *fp32, n: i32, SPLIT=2, B=16)
# with(n=30)
@triton.jit
def atomics(x, count, out, n, SPLIT: tl.constexpr, B: tl.constexpr):
    i = tl.arange(0, B)
    for part in tl.static_range(SPLIT):
        at = part * B + i
        tl.atomic_add(out + i, tl.load(x + at, mask=at < n, other=0.0), sem="relaxed")
    if tl.atomic_add(count, 1) == 0:
        tl.store(out + B, 1.0)


# kernel(x: *i8, scale: *fp32, out: *fp16, rows: i32, n: i32, stride: i64, B=32)
# with(rows=3, n=29, stride=29)
@triton.jit
def dequantize(x, scale, out, rows, n, stride, B: tl.constexpr):
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        i = tl.arange(0, B)
        v = tl.load(x + row * stride + i, mask=i < n, other=0)
        s = tl.load(scale + row)
        tl.store(out + row * stride + i, (v.to(tl.float32) * s / 8.0).to(tl.float16), mask=i < n)


# kernel(x: *fp32, out: *fp32, rows: i32, cols: i32, T=16)
# with(rows=20, cols=19)
@triton.jit
def transpose(x, out, rows, cols, T: tl.constexpr):
    r = tl.program_id(0) * T + tl.arange(0, T)
    c = tl.program_id(1) * T + tl.arange(0, T)
    v = tl.load(x + r[:, None] * cols + c[None, :], mask=(r[:, None] < rows) & (c[None, :] < cols))
    to = (c[:, None] < cols) & (r[None, :] < rows)
    tl.store(out + c[:, None] * rows + r[None, :], tl.trans(v), mask=to)
