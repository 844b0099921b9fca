"""What `naiad lint` says without a launch: beside the line, and nothing else. Nothing here is run."""

import triton
import triton.language as tl
from triton.language import core


# Masks and program ids ----------------------------------------------------------------------------


@triton.jit
def forgotten_mask(x_ptr, out_ptr, m, n, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    cols = tl.arange(0, BLOCK)
    out_mask = rows < m  # lints: warning[unused-mask]
    tl.store(out_ptr + rows, tl.load(x_ptr + cols, mask=cols < n), mask=cols < n)


@triton.jit
def mask_of_another_branch(x_ptr, out_ptr, n, EVEN: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    if EVEN:
        x = tl.load(x_ptr + i)
    else:
        x = tl.load(x_ptr + i, mask=mask)
    tl.store(out_ptr + i, x)


@triton.jit
def scalar_condition(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    last = tl.program_id(0) == tl.num_programs(0) - 1
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


# naiad: signature(x_ptr=*fp32, out_ptr=*fp32, n=i32, BLOCK=16, grid=4)
@triton.jit
def same_everywhere(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)  # lints: note[unused-program-id]


@triton.jit
def for_one_program(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


# Strides ------------------------------------------------------------------------------------------


@triton.jit
def contiguous_output(x_ptr, y_ptr, out_ptr, stride_xm, stride_xn, stride_ym, stride_yn, m, n, B: tl.constexpr):
    rows = (tl.program_id(0) * B + tl.arange(0, B))[:, None]
    cols = (tl.program_id(1) * B + tl.arange(0, B))[None, :]
    mask = (rows < m) & (cols < n)
    x = tl.load(x_ptr + rows * stride_xm + cols * stride_xn, mask=mask)
    y = tl.load(y_ptr + rows * stride_ym + cols * stride_yn, mask=mask)
    tl.store(out_ptr + rows * n + cols, x + y, mask=mask)  # lints: note[flat-index]


@triton.jit
def strided_output(x_ptr, out_ptr, stride_xm, stride_xn, stride_om, m, n, B: tl.constexpr):
    rows = (tl.program_id(0) * B + tl.arange(0, B))[:, None]
    cols = (tl.program_id(1) * B + tl.arange(0, B))[None, :]
    mask = (rows < m) & (cols < n)
    x = tl.load(x_ptr + rows * stride_xm + cols * stride_xn, mask=mask)
    tl.store(out_ptr + rows * stride_om + cols, x, mask=mask)


@triton.jit
def stride_past_which_nothing_is(x_ptr, out_ptr, row_stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = (cols < n) & (row * row_stride >= 0)
    tl.store(out_ptr + row, tl.sum(tl.load(x_ptr + row * row_stride + cols, mask=mask, other=0.0)))


# Divisors -----------------------------------------------------------------------------------------


@triton.jit
def mean_of_block(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    cols = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + cols, mask=cols < n, other=0.0)
    tl.store(out_ptr + tl.program_id(0), tl.sum(x) / BLOCK)  # lints: warning[block-divisor]


@triton.jit
def mean_of_whole_block(x_ptr, out_ptr, BLOCK: tl.constexpr):
    cols = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + tl.program_id(0), tl.sum(tl.load(x_ptr + cols)) / BLOCK)


@triton.jit
def mean_of_all_lanes_by_name(x_ptr, out_ptr, RANK: tl.constexpr):
    cols = tl.arange(0, RANK)
    x = tl.load(x_ptr + cols, mask=cols < RANK, other=0.0)
    tl.store(out_ptr + tl.program_id(0), tl.sum(x) / RANK)


# Padding ------------------------------------------------------------------------------------------


@triton.jit
def columns_and_rows(x_ptr, out_ptr, m, n, M: tl.constexpr, N: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    cols = tl.arange(0, N)
    mask = (rows < m)[:, None] & (cols < n)[None, :]
    x = tl.load(x_ptr + rows[:, None] * n + cols[None, :], mask=mask, other=0.0)
    mean = tl.sum(x, axis=1) / n
    d = x - mean[:, None]
    wrong = tl.sum(d * d, axis=1)  # lints: warning[padding-reduced]
    right = tl.sum(tl.where(cols[None, :] < n, d * d, 0.0), axis=1)
    tl.store(out_ptr + rows, wrong + right, mask=rows < m)


@triton.jit
def rows_alone(x_ptr, out_ptr, m, n, M: tl.constexpr, N: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    cols = tl.arange(0, N)
    x = tl.load(x_ptr + rows[:, None] * N + cols[None, :], mask=rows[:, None] < m)
    x -= tl.max(x, axis=1)[:, None]
    tl.store(out_ptr + rows, tl.sum(tl.exp(x), axis=1), mask=rows < m)


@triton.jit
def products(a_ptr, b_ptr, out_ptr, k, B: tl.constexpr):
    i = tl.arange(0, B)
    acc = tl.zeros((B, B), tl.float32)
    for start in range(0, k, B):
        a_mask = i[None, :] < k - start
        a = tl.load(a_ptr + i[:, None] * k + start + i[None, :], mask=a_mask)
        b = tl.load(b_ptr + (start + i)[:, None] * B + i[None, :], mask=i[:, None] < k - start)
        acc += tl.dot(a, b)  # lints: note[undefined-reduced]
        zeros = tl.load(a_ptr + i[:, None] * k + start + i[None, :], mask=a_mask, other=0.0)
        acc += tl.dot(zeros, b)
        ones = tl.load(a_ptr + i[:, None] * k + start + i[None, :], mask=a_mask, other=1.0)
        acc += tl.dot(ones, tl.load(b_ptr + (start + i)[:, None] * B + i[None, :]))  # lints: warning[padding-reduced]
    tl.store(out_ptr + i[:, None] * B + i[None, :], acc)


@triton.jit
def named_fill(x_ptr, out_ptr, n, FILL: tl.constexpr, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    tl.store(out_ptr + tl.program_id(0), tl.max(tl.load(x_ptr + cols, mask=cols < n, other=FILL)))


@triton.jit
def chosen_by_data(x_ptr, keep_ptr, out_ptr, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    keep = tl.load(keep_ptr + cols) != 0
    tl.store(out_ptr + tl.program_id(0), tl.sum(tl.load(x_ptr + cols, mask=keep)))


@triton.jit
def counted(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + cols, mask=cols < n, other=0.0)
    wrong = tl.sum((x == 0.0).to(tl.int32))  # lints: warning[padding-reduced]
    right = tl.sum(((x == 0.0) & (cols < n)).to(tl.int32))
    tl.store(out_ptr + tl.program_id(0), wrong + right)


@triton.jit
def capped_and_scaled(x_ptr, out_ptr, n, scale, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + cols, mask=cols < n, other=float("-inf")) * scale
    p = tl.exp(x - tl.max(x))
    tl.store(out_ptr + tl.program_id(0), tl.sum(p))


@triton.jit
def window(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    block = tl.make_block_ptr(x_ptr, (n,), (1,), (tl.program_id(0) * BLOCK,), (BLOCK,), (0,))
    undefined = tl.load(block, boundary_check=(0,))
    zeros = tl.load(block, boundary_check=(0,), padding_option="zero")
    tl.store(out_ptr + tl.program_id(0), tl.sum(undefined))  # lints: note[undefined-reduced]
    tl.store(out_ptr + tl.program_id(0), tl.sum(zeros))


@triton.jit
def meant(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + cols, mask=cols < n)
    # naiad: allow(undefined-reduced)
    tl.store(out_ptr + tl.program_id(0), tl.sum(x))


# Sizes --------------------------------------------------------------------------------------------


# naiad: signature(x_ptr=*fp32, out_ptr=*fp32, stride=i32<=8192, BLOCK=1024, grid=262_145)
@triton.jit
def many_rows(x_ptr, out_ptr, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x = tl.load(x_ptr + row * stride + tl.arange(0, BLOCK))  # lints: warning[wrapped-offset]
    tl.store(out_ptr + row, tl.sum(x))


# naiad: signature(x_ptr=*fp32, out_ptr=*fp32, stride=i32<=8191, BLOCK=1024, grid=262_144)
# naiad: signature(x_ptr=*fp32, out_ptr=*fp32, stride=i64<=8192, BLOCK=1024, grid=262_145)
@triton.jit
def fewer_rows(x_ptr, out_ptr, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x = tl.load(x_ptr + row * stride + tl.arange(0, BLOCK))
    tl.store(out_ptr + row, tl.sum(x))


@triton.jit
def undeclared_rows(x_ptr, out_ptr, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x = tl.load(x_ptr + row * stride + tl.arange(0, BLOCK))
    tl.store(out_ptr + row, tl.sum(x))


# Types --------------------------------------------------------------------------------------------


@triton.jit
def types_from_use(Q, indices, W, lengths, p, BLOCK: tl.constexpr):
    i = tl.load(indices + tl.arange(0, BLOCK))
    length = tl.load(lengths + tl.program_id(0))
    w = tl.load(W + i, mask=i < length, other=0.0)
    tl.store(Q + i, w * tl.exp(p), mask=i < length)


@triton.jit
def helper(a, b):
    return a * tl.exp(b)


@triton.jit
def no_types_fit(x_ptr, n, ONE: tl.constexpr):
    tl.static_assert(ONE == 12345)  # lints: note[check-limit]
    tl.store(x_ptr + n, helper(1.0, 2.0))


@triton.jit
def wrong_whatever_the_types(x_ptr, n):
    tl.store(x_ptr, tl.summ(n))  # lints: error[unknown-tl-name]


# What is wrong here may be wrong only with what was guessed.
@triton.jit
def known_by_what_it_is_given(x_ptr, out_ptr, n, rows, ACT: tl.constexpr, BLOCK_K: tl.constexpr):
    if ACT == "gelu":
        y = 1.0
    if isinstance(n, tl.tensor) and n.dtype == core.int32:
        n += 1
    tl.static_assert(BLOCK_K > 0, f"{BLOCK_K=}")
    tl.store(out_ptr + n, y)  # lints: note[check-limit]


class Pair:
    def __init__(self, a, b):
        self.a, self.b = a, b


@triton.jit
def of_a_class():
    pair = Pair(tl.arange(0, 4), 1)  # lints: note[check-limit]


@triton.jit
def refuses_other_modes(x_ptr, MODE: tl.constexpr):
    if MODE == "set":
        tl.store(x_ptr, 1)
    else:
        raise ValueError(MODE)  # lints: note[check-limit]


@triton.jit
def of_a_tuple(x_ptr, strides):
    x = tl.load(x_ptr + strides[1] * tl.arange(0, 16))  # lints: note[check-limit]
    tl.store(x_ptr + tl.arange(0, 16), x)


@triton.jit
def extent_of_a_guess(x_ptr, BLOCK_K: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, 16))
    y = x.reshape(1, BLOCK_K // 999, 16)  # lints: note[check-limit]
    tl.store(x_ptr + tl.arange(0, 16), tl.sum(y))


# Host code may be long: here are brackets in texts and comments, ((( and more than parsers take at once.
HINTS = {"a (": 1, 'b [': """c {{{""", "d": f"{len('(')} ("}


# Numbers that are made of each other again and again: each is looked at once.
# naiad: signature(x_ptr=*fp32, out_ptr=*fp32, n=i32<=4, BLOCK=16, grid=4)
@triton.jit
def made_of_each_other(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at = tl.program_id(0)
    mask, before = i < n, i < 2 * n
    for _ in tl.static_range(48):
        at = (at + at * n) % 7
        mask, before = mask & before, mask
    tl.store(out_ptr + i, tl.load(x_ptr + at), mask=(i < at) & mask)
