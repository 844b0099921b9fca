"""Matrix product with a fused activation: tails in M, N and K, and programs in cache order."""

import numpy as np
import triton
import triton.language as tl

import common
import gelu
from gelu import gelu_tanh


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr,
    M, N, K,
    a_row_stride, a_col_stride, b_row_stride, b_col_stride, c_row_stride, c_col_stride,
    ACTIVATION: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
):
    """Each program computes one tile of C, BLOCK_M by BLOCK_N."""
    # Programs with neighbouring numbers run at about the same time. Going along C row by row, they
    # would read all of B for a single band of A. So they go column by column through a group of
    # GROUP_M bands, and find what they share in the cache.
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    first_m = pid // (GROUP_M * tiles_n) * GROUP_M
    bands = tl.minimum(tiles_m - first_m, GROUP_M)  # the last group may have fewer
    place = pid % (GROUP_M * tiles_n)
    tile_m = first_m + place % bands
    tile_n = place // bands

    rows = tile_m.to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tile_n.to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        # Padding along K is summed into every element of the tile, so it must be 0, and in both
        # operands: beyond the edge of one may lie a NaN, and 0 * NaN is NaN. Padding along M and N
        # stays in rows and columns of its own, which the store leaves out.
        a = tl.load(
            a_ptr + rows[:, None] * a_row_stride + k[None, :] * a_col_stride,
            mask=(rows[:, None] < M) & (k[None, :] < K),
            other=0.0,
        )
        b = tl.load(
            b_ptr + k[:, None] * b_row_stride + cols[None, :] * b_col_stride,
            mask=(k[:, None] < K) & (cols[None, :] < N),
            other=0.0,
        )
        # For float32 operands a GPU's default would be tf32, which keeps 10 bits of each mantissa.
        acc = tl.dot(a, b, acc, input_precision="ieee")

    # ACTIVATION is known at compile time, so a branch not taken leaves no trace in the code. The
    # tile is still in registers here: the activation costs no trip through memory.
    if ACTIVATION == "relu":
        acc = tl.maximum(acc, 0.0)
    elif ACTIVATION == "gelu":
        acc = gelu_tanh(acc)

    c_ptrs = c_ptr + rows[:, None] * c_row_stride + cols[None, :] * c_col_stride
    c_mask = (rows[:, None] < M) & (cols[None, :] < N)
    tl.store(c_ptrs, acc, mask=c_mask)  # rounds to C's type, if that is narrower


def matmul(a, b, activation=None, out=None, tile=(64, 64, 32), group=8):
    """activation(a @ b); the activation is None, "relu" or "gelu"."""
    (M, K), N = a.shape, b.shape[1]
    assert b.shape[0] == K, f"cannot multiply {M}x{K} by {b.shape[0]}x{N}"
    out = common.empty(M, N, like=a) if out is None else out
    block_m, block_n, block_k = tile
    grid = (triton.cdiv(M, block_m) * triton.cdiv(N, block_n),)
    matmul_kernel[grid](
        a, b, out, M, N, K,
        *common.strides(a), *common.strides(b), *common.strides(out),
        ACTIVATION=activation,
        BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k,
        GROUP_M=group,
    )
    return out


def reference(a, b, activation=None):
    c = common.f64(a) @ common.f64(b)
    if activation == "relu":
        return np.maximum(c, 0.0)
    return gelu.reference(c) if activation == "gelu" else c


TOLERANCE = 2e-6


def check():
    for m, n, k in (1, 1, 1), (31, 33, 37), (64, 64, 50), (129, 65, 1), (3, 97, 131), (32, 32, 64):
        for activation in None, "relu", "gelu":
            a, b = common.normal(m, k), common.normal(k, n)
            got, want = matmul(a, b, activation), reference(a, b, activation)
            common.expect(got, want, TOLERANCE, f"matmul, {m}x{k} by {k}x{n}, {activation}")

    # Many small tiles, so that there is more than one group and the last has fewer bands.
    a, b = common.normal(5 * 16 + 3, 40), common.normal(40, 3 * 16 + 1)
    got = matmul(a, b, tile=(16, 16, 16), group=4)
    common.expect(got, reference(a, b), TOLERANCE, "matmul in groups")

    for (a_layout, a), (b_layout, b) in zip(common.views(33, 50), common.views(50, 17)):
        what = f"matmul, {a_layout} by {b_layout}"
        common.expect(matmul(a, b), reference(a, b), TOLERANCE, what)
        common.expect(matmul(b.T, a.T), reference(a, b).T, TOLERANCE, f"{what}, transposed")

    # No rows, no columns; and a sum of nothing, which is 0.
    for m, n, k in (0, 5, 7), (5, 0, 7), (5, 7, 0):
        a, b = common.normal(m, k), common.normal(k, n)
        common.expect(matmul(a, b), reference(a, b), TOLERANCE, f"matmul, {m}x{k} by {k}x{n}")

    a, b = common.normal(65, 70, dtype=np.float16), common.normal(70, 33, dtype=np.float16)
    common.expect(matmul(a, b), reference(a, b), 1e-3, "matmul, float16")


def cases():
    for activation, (m, n, k) in (
        (None, (512, 512, 512)),
        ("relu", (512, 512, 512)),
        ("gelu", (512, 512, 512)),
        (None, (257, 129, 509)),
    ):
        a, b = common.normal(m, k), common.normal(k, n)
        out = common.empty(m, n, like=a)
        yield common.measure(
            f"matmul + {activation}" if activation else "matmul",
            f"{m}x{k} by {k}x{n}",
            lambda: matmul(a, b, activation, out),
            reference(a, b, activation),
            TOLERANCE,
        )


if __name__ == "__main__":
    common.main(check, cases)
