"""Mean and population variance of each row: in one tile, and streamed over blocks."""

import numpy as np
import triton
import triton.language as tl

import common


@triton.jit
def row_stats_kernel(
    x_ptr, mean_ptr, var_ptr,
    n_cols, x_row_stride, x_col_stride,
    BLOCK: tl.constexpr,
):
    """Each program handles one whole row; BLOCK is at least n_cols."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols

    # The padding lanes hold 0, which a sum doesn't notice; dividing by BLOCK would notice them.
    x = tl.load(x_ptr + row * x_row_stride + cols * x_col_stride, mask=mask, other=0.0)
    mean = tl.sum(x, axis=0) / n_cols

    # Centring turns the padding's 0 into -mean, whose square would count. So it is masked again.
    centred = tl.where(mask, x - mean, 0.0)
    var = tl.sum(centred * centred, axis=0) / n_cols

    tl.store(mean_ptr + row, mean)
    tl.store(var_ptr + row, var)


@triton.jit
def row_stats_streaming_kernel(
    x_ptr, mean_ptr, var_ptr,
    n_cols, x_row_stride, x_col_stride,
    BLOCK: tl.constexpr,
):
    """Each program goes along one row in blocks, for rows that are too long for one tile.

    Keeping the sums of x and of x * x would be shorter, but where the mean is large against the
    deviation the two nearly cancel. Count, mean and M2 (the sum of squared distances from the mean)
    combine without that loss: Welford's method, in the form of Chan, Golub and LeVeque.
    """
    row = tl.program_id(0).to(tl.int64)
    count = 0.0
    mean = 0.0
    m2 = 0.0
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < n_cols
        x = tl.load(x_ptr + row * x_row_stride + cols * x_col_stride, mask=mask, other=0.0)

        # The last block counts fewer columns than BLOCK.
        block_count = tl.minimum(n_cols - start, BLOCK).to(tl.float32)
        block_mean = tl.sum(x, axis=0) / block_count
        centred = tl.where(mask, x - block_mean, 0.0)
        block_m2 = tl.sum(centred * centred, axis=0)

        # The new mean lies between the two means, and the distance of the means adds to M2.
        delta = block_mean - mean
        total = count + block_count
        share = block_count / total
        mean += delta * share
        m2 += block_m2 + delta * delta * count * share
        count = total

    tl.store(mean_ptr + row, mean)
    tl.store(var_ptr + row, m2 / count)


def row_stats(x):
    """(mean, population variance) of each row, which must fit in one tile."""
    n_rows, n_cols = x.shape
    assert n_cols > 0, "a row of no elements has no mean"
    mean, var = common.empty(n_rows, like=x), common.empty(n_rows, like=x)
    block = triton.next_power_of_2(n_cols)
    row_stats_kernel[(n_rows,)](x, mean, var, n_cols, *common.strides(x), BLOCK=block)
    return mean, var


def row_stats_streaming(x, block=2048):
    """(mean, population variance) of each row, of any length."""
    n_rows, n_cols = x.shape
    assert n_cols > 0, "a row of no elements has no mean"
    mean, var = common.empty(n_rows, like=x), common.empty(n_rows, like=x)
    row_stats_streaming_kernel[(n_rows,)](x, mean, var, n_cols, *common.strides(x), BLOCK=block)
    return mean, var


def reference(x):
    x = common.f64(x)
    return x.mean(axis=1), x.var(axis=1)


TOLERANCE = 1e-5  # float32 values near 100 are 7.6e-6 apart


def check():
    for stats, options in (row_stats, {}), (row_stats_streaming, {"block": 16}):
        # By hand: 1, 2, 3 has mean 2 and variance 2/3; 1..17 has mean 9 and variance 24.
        for n, mean, var in (3, 2.0, 2 / 3), (17, 9.0, 24.0):
            x = common.array(np.arange(1, n + 1, dtype=np.float32).reshape(1, n))
            want = np.array([mean]), np.array([var])
            common.expect(stats(x, **options), want, TOLERANCE, f"{stats.__name__} of 1..{n}")

        for shape in (1, 1), (3, 31), (2, 33), (5, 127), (3, 64), (0, 7):
            for layout, x in common.views(*shape):
                x += 100.0  # a mean large against the deviation, where cancellation would show
                what = f"{stats.__name__}, {shape} {layout}"
                common.expect(stats(x, **options), reference(x), TOLERANCE, what)


def cases():
    for stats, (rows, cols) in (row_stats, (1024, 1024)), (row_stats_streaming, (64, 65536)):
        x = common.normal(rows, cols)
        x += 100.0
        shape = f"{rows}x{cols}"
        yield common.measure(stats.__name__, shape, lambda: stats(x), reference(x), TOLERANCE)


if __name__ == "__main__":
    common.main(check, cases)
