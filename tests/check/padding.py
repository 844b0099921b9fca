"""Padding lanes where lanes meet: sums, maxima, products, accumulations."""

import numpy as np
import triton
import triton.language as tl


@triton.jit
def variance(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    mask = cols < n
    x = tl.load(x_ptr + cols, mask=mask, other=0.0)
    mean = tl.sum(x) / n
    d = x - mean
    var = tl.sum(d * d) / n  # finds: error[padding-reduced]; lints: warning[padding-reduced]
    tl.store(out_ptr, var)


@triton.jit
def variance_masked(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    mask = cols < n
    x = tl.load(x_ptr + cols, mask=mask, other=0.0)
    mean = tl.sum(x) / n
    d = tl.where(mask, x - mean, 0.0)
    tl.store(out_ptr, tl.sum(d * d) / n)


@triton.jit
def variance_times_mask(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    mask = cols < n
    x = tl.load(x_ptr + cols, mask=mask, other=0.0)
    d = (x - tl.sum(x) / n) * mask
    tl.store(out_ptr, tl.sum(d * d) / n)


def variances():
    out = np.zeros(1, np.float32)
    for kernel, right in (variance, False), (variance_masked, True), (variance_times_mask, True):
        for n, block in (3, 4), (17, 32):
            x = np.arange(1, n + 1, dtype=np.float32)
            kernel[(1,)](x, out, n, BLOCK=block)
            assert np.isclose(out[0], x.var(), rtol=1e-5) == right, (kernel, n, out[0])


@triton.jit
def variance_in_blocks(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, n, BLOCK):
        cols = start + lanes
        total += tl.load(x_ptr + cols, mask=cols < n, other=0.0)
    mean = tl.sum(total) / n
    squares = tl.zeros([BLOCK], tl.float32)
    for start in range(0, n, BLOCK):
        cols = start + lanes
        d = tl.load(x_ptr + cols, mask=cols < n, other=0.0) - mean
        squares += d * d  # finds: error[padding-reduced]; lints: warning[padding-reduced]
    tl.store(out_ptr, tl.sum(squares) / n)


def two_blocks():
    x = np.arange(40, dtype=np.float32)
    out = np.zeros(1, np.float32)
    variance_in_blocks[(1,)](x, out, 40, BLOCK=32)
    assert out[0] > 1.5 * x.var()


@triton.jit
def highest(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + cols, mask=cols < n, other=0.0)
    tl.store(out_ptr, tl.max(x))  # finds: error[padding-reduced]; lints: note[padding-reduced]


@triton.jit
def highest_right(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + cols, mask=cols < n, other=-float("inf"))
    tl.store(out_ptr, tl.max(x))


@triton.jit
def highest_undefined(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + cols, mask=cols < n)
    tl.store(out_ptr, tl.max(x))  # finds: error[undefined-reduced]; lints: warning[undefined-reduced]


@triton.jit
def total_undefined(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + cols, mask=cols < n)
    tl.store(out_ptr, tl.sum(x))  # finds: warning[undefined-reduced]; lints: note[undefined-reduced]


@triton.jit
def largest_magnitude(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + cols, mask=cols < n, other=0.0)
    tl.store(out_ptr, tl.max(tl.abs(x)))


def maxima():
    x = np.array([-3, -1, -2], np.float32)
    out = np.zeros(1, np.float32)
    for kernel, want in [
        (highest, 0),
        (highest_right, -1),
        (highest_undefined, 0),
        (total_undefined, -6),
        (largest_magnitude, 3),
    ]:
        kernel[(1,)](x, out, 3, BLOCK=4)
        assert out[0] == want, (kernel, out[0])


@triton.jit
def softmax_zeros(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    mask = cols < n
    x = tl.load(x_ptr + cols, mask=mask, other=0.0)
    e = tl.exp(x - tl.max(x))  # finds: note[padding-reduced]; lints: note[padding-reduced]
    total = tl.sum(e)  # finds: error[padding-reduced]; lints: warning[padding-reduced]
    tl.store(out_ptr + cols, e / total, mask=mask)


@triton.jit
def softmax_right(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    mask = cols < n
    x = tl.load(x_ptr + cols, mask=mask, other=-float("inf"))
    e = tl.exp(x - tl.max(x))
    tl.store(out_ptr + cols, e / tl.sum(e), mask=mask)


def softmaxes():
    x = np.array([-3, -1, -2], np.float32)
    want = np.exp(x) / np.exp(x).sum()
    for kernel, right in (softmax_zeros, False), (softmax_right, True):
        out = np.zeros(3, np.float32)
        kernel[(1,)](x, out, 3, BLOCK=4)
        assert np.allclose(out, want) == right


@triton.jit
def neighbours(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for k in range(-1, 2):
        at = i + k
        total += tl.load(x_ptr + at, mask=(at >= 0) & (at < n), other=0.0) * (k + 2)
    left = tl.load(x_ptr + i - 1, mask=(i > 0) & (i <= n), other=0.0)
    right = tl.load(x_ptr + i + 1, mask=i + 1 < n, other=0.0)
    tl.store(out_ptr + i, total + left + right, mask=i < n)


def halo():
    x = np.arange(1, 101, dtype=np.float32)
    out = np.zeros(100, np.float32)
    neighbours[(4,)](x, out, 100, BLOCK=32)
    padded = np.pad(x, 1)
    assert np.allclose(out, 2 * padded[:-2] + 2 * padded[1:-1] + 4 * padded[2:])


@triton.jit
def counts(ids_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    ids = tl.load(ids_ptr + i, mask=i < n, other=0)
    tl.atomic_add(out_ptr + ids, 1)  # finds: error[padding-reduced]


@triton.jit
def counts_right(ids_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    ids = tl.load(ids_ptr + i, mask=i < n, other=0)
    tl.atomic_add(out_ptr + ids, 1, mask=i < n)


@triton.jit
def histogram(ids_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    ids = tl.load(ids_ptr + i, mask=i < n, other=0)
    tl.store(out_ptr + tl.arange(0, 4), tl.histogram(ids, 4))  # finds: error[padding-reduced]


def counting():
    ids = np.array([0, 1, 3, 3, 2], np.int32)
    for kernel, extra in (counts, 3), (counts_right, 0), (histogram, 3):
        out = np.zeros(4, np.int32)
        kernel[(1,)](ids, out, 5, BLOCK=8)
        assert out.tolist() == [1 + extra, 1, 1, 2]


@triton.jit
def running_sum(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=1.0)
    tl.store(out_ptr + i, tl.cumsum(x, 0), mask=i < n)


@triton.jit
def running_sum_from_the_end(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=1.0)
    y = tl.cumsum(x, 0, reverse=True)  # finds: error[padding-reduced]
    tl.store(out_ptr + i, y, mask=i < n)


def scans():
    x = np.ones(5, np.float32)
    out = np.zeros(5, np.float32)
    running_sum[(1,)](x, out, 5, BLOCK=8)
    assert out.tolist() == [1, 2, 3, 4, 5]
    running_sum_from_the_end[(1,)](x, out, 5, BLOCK=8)
    assert out.tolist() == [8, 7, 6, 5, 4]


@triton.jit
def allowed(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + cols, mask=cols < n, other=0.0)
    tl.store(out_ptr, tl.max(x))  # naiad: allow(padding-reduced)


def silenced():
    allowed[(1,)](np.full(3, -1, np.float32), np.zeros(1, np.float32), 3, BLOCK=4)


@triton.jit
def refilled(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    mask = cols < n
    x = tl.where(mask, tl.load(x_ptr + cols, mask=mask), 0.0)
    # What is chosen in the place of padding is padding too.
    tl.store(out_ptr, tl.max(x))  # finds: error[padding-reduced]; lints: note[padding-reduced]
    tl.store(out_ptr + 1, tl.sum(x))


@triton.jit
def in_block(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    p = tl.make_block_ptr(x_ptr, (n,), (1,), (0,), (BLOCK,), (0,))
    x = tl.load(p, boundary_check=(0,), padding_option="zero")
    tl.store(out_ptr, tl.max(x))  # finds: error[padding-reduced]; lints: note[padding-reduced]
    tl.store(out_ptr + 1, tl.sum(x))


@triton.jit
def by_descriptor(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    described = tl.make_tensor_descriptor(x_ptr, [n], [1], [BLOCK])
    x = described.load([0])
    tl.store(out_ptr, tl.max(x))  # finds: error[padding-reduced]; lints: note[padding-reduced]
    tl.store(out_ptr + 1, tl.sum(x))


def fills():
    x = np.array([-3, -1, -2], np.float32)
    for kernel in refilled, in_block, by_descriptor:
        out = np.zeros(2, np.float32)
        kernel[(1,)](x, out, 3, BLOCK=4)
        assert out.tolist() == [0, -6]


@triton.jit
def ordered(x_ptr, out_ptr, n, FILL: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=FILL)
    tl.store(out_ptr + i, tl.sort(x), mask=i < n)


def sorting():
    x = np.array([3, 1, 2], np.float32)
    out = np.zeros(3, np.float32)
    ordered[(1,)](x, out, 3, FILL=float("inf"), BLOCK=4)
    assert out.tolist() == [1, 2, 3]


@triton.jit
def by_ticket(x_ptr, out_ptr, tickets_ptr, n, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    ticket = tl.atomic_add(tickets_ptr, 1)
    x = tl.load(x_ptr + cols, mask=cols < n, other=0.0)
    # It cannot be run again: the next ticket would be another.
    tl.store(out_ptr + ticket, tl.max(x))  # finds: warning[padding-reduced]; lints: note[padding-reduced]


@triton.jit
def highest_of_two(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + cols, mask=cols < n, other=0.0)
    y = tl.load(y_ptr + cols, mask=cols < n, other=0.0)
    # Either alone changes nothing.
    a = tl.max(x)  # finds: error[padding-reduced]; lints: note[padding-reduced]
    b = tl.max(y)  # finds: error[padding-reduced]; lints: note[padding-reduced]
    tl.store(out_ptr, tl.maximum(a, b))


def verdicts():
    x = np.array([-3, -1, -2], np.float32)
    by_ticket[(4,)](x, np.zeros(4, np.float32), np.zeros(1, np.int32), 3, BLOCK=4)
    out = np.zeros(1, np.float32)
    highest_of_two[(1,)](x, x, out, 3, BLOCK=4)
    assert out[0] == 0


variances()
fills()
sorting()
verdicts()
two_blocks()
maxima()
softmaxes()
halo()
counting()
scans()
silenced()
