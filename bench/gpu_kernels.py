"""Kernels that `gpu.py` measures beside those of the examples."""

import triton
import triton.language as tl


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr,
    M, N, K,
    a_row_stride, a_col_stride, b_row_stride, b_col_stride, c_row_stride, c_col_stride,
    PRECISION: tl.constexpr, GELU: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):
    """As in the examples, with the precision of products of fp32 as an argument."""
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    first_m = pid // (GROUP_M * tiles_n) * GROUP_M
    bands = tl.minimum(tiles_m - first_m, GROUP_M)
    place = pid % (GROUP_M * tiles_n)
    tile_m = first_m + place % bands
    tile_n = place // bands

    rows = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + rows[:, None] * a_row_stride + k[None, :] * a_col_stride
    b_ptrs = b_ptr + k[:, None] * b_row_stride + cols[None, :] * b_col_stride
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        left = K - start
        a = tl.load(a_ptrs, mask=(rows[:, None] < M) & (k[None, :] < left), other=0.0)
        b = tl.load(b_ptrs, mask=(k[:, None] < left) & (cols[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc, input_precision=PRECISION)
        a_ptrs += BLOCK_K * a_col_stride
        b_ptrs += BLOCK_K * b_row_stride
    if GELU:
        inner = 0.7978845608028654 * (acc + 0.044715 * acc * acc * acc)
        # tanh(y) = 1 - 2 / (exp(2 y) + 1), which overflows to the right limits.
        acc = 0.5 * acc * (2.0 - 2.0 / (tl.exp(2.0 * inner) + 1.0))
    c_ptrs = c_ptr + rows[:, None] * c_row_stride + cols[None, :] * c_col_stride
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=(rows[:, None] < M) & (cols[None, :] < N))


def matmul(a, b, out, tile, num_warps, num_stages, precision="tf32", gelu=False, group=8):
    (M, K), N = a.shape, b.shape[1]
    grid = (triton.cdiv(M, tile[0]) * triton.cdiv(N, tile[1]),)
    return matmul_kernel[grid](
        a, b, out, M, N, K, *a.stride(), *b.stride(), *out.stride(),
        PRECISION=precision, GELU=gelu,
        BLOCK_M=tile[0], BLOCK_N=tile[1], BLOCK_K=tile[2], GROUP_M=group,
        num_warps=num_warps, num_stages=num_stages,
    )


@triton.jit
def layer_norm_kernel(x_ptr, out_ptr, weight_ptr, bias_ptr, row_stride, n_cols, eps, BLOCK: tl.constexpr):
    """Each program handles one row that fits a tile."""
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * row_stride + cols, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / n_cols
    centred = tl.where(mask, x - mean, 0.0)
    var = tl.sum(centred * centred, axis=0) / n_cols
    weight = tl.load(weight_ptr + cols, mask=mask).to(tl.float32)
    bias = tl.load(bias_ptr + cols, mask=mask).to(tl.float32)
    y = centred / tl.sqrt(var + eps) * weight + bias
    tl.store(out_ptr + row * row_stride + cols, y.to(out_ptr.dtype.element_ty), mask=mask)


def layer_norm(x, weight, bias, out, eps=1e-5):
    rows, cols = x.shape
    block = triton.next_power_of_2(cols)
    warps = min(max(block // 256, 1), 8)
    return layer_norm_kernel[(rows,)](x, out, weight, bias, x.stride(0), cols, eps, BLOCK=block, num_warps=warps)


@triton.jit
def layer_norm_passes_kernel(
    x_ptr, out_ptr, weight_ptr, bias_ptr, mean_ptr, rstd_ptr, row_stride, n_cols, eps, BLOCK: tl.constexpr
):
    """Each program passes over a row of any length three times, and keeps what a backward pass wants."""
    row = tl.program_id(0)
    x_ptr += row * row_stride
    out_ptr += row * row_stride
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / n_cols
    squares = tl.zeros([BLOCK], tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
        centred = tl.where(cols < n_cols, x - mean, 0.0)
        squares += centred * centred
    rstd = 1 / tl.sqrt(tl.sum(squares, axis=0) / n_cols + eps)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < n_cols
        weight = tl.load(weight_ptr + cols, mask=mask)
        bias = tl.load(bias_ptr + cols, mask=mask)
        x = tl.load(x_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        y = (x - mean) * rstd * weight + bias
        tl.store(out_ptr + cols, y.to(out_ptr.dtype.element_ty), mask=mask)


def layer_norm_passes(x, weight, bias, out, mean, rstd, eps=1e-5):
    """As libraries launch it: a tile of up to 64 KiB, a warp for each 256 elements."""
    rows, cols = x.shape
    block = min(65536 // x.element_size(), triton.next_power_of_2(cols))
    warps = min(max(block // 256, 1), 8)
    return layer_norm_passes_kernel[(rows,)](
        x, out, weight, bias, mean, rstd, x.stride(0), cols, eps, BLOCK=block, num_warps=warps
    )


@triton.jit
def copy_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)
