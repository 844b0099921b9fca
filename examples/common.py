"""What the examples share: arrays for either runtime, comparison, timing and the table.

A kernel is the same source under naiad and under Triton; only the arrays around it differ. naiad
takes NumPy arrays as they are, Triton wants torch tensors. `EXAMPLES_ON` overrides the choice made
here: `numpy`, or `cpu` or `cuda` for torch tensors on that device.
"""

import os
import statistics
import sys
import time
from typing import NamedTuple

import numpy as np


def _default_kind():
    if "naiad" in sys.modules:
        return "numpy"
    return "cpu" if os.environ.get("TRITON_INTERPRET") == "1" else "cuda"


ON = os.environ.get("EXAMPLES_ON") or _default_kind()
if ON != "numpy":
    import torch


# Arrays ------------------------------------------------------------------------------------------


def array(values):
    """A NumPy array in the form that kernels take here."""
    return values if ON == "numpy" else torch.from_numpy(values).to(ON)


def numpy(x):
    return x if isinstance(x, np.ndarray) else x.cpu().numpy()


def f64(x):
    """A float64 copy, from which references are computed."""
    return numpy(x).astype(np.float64)


def strides(x):
    """Strides in elements, as pointer arithmetic in a kernel counts them."""
    if isinstance(x, np.ndarray):
        return tuple(stride // x.itemsize for stride in x.strides)
    return x.stride()


def empty(*shape, like):
    """An uninitialized array of `like`'s element type, on `like`'s device."""
    if isinstance(like, np.ndarray):
        return np.empty(shape, like.dtype)
    return like.new_empty(shape)


_rng = np.random.default_rng(2024)


def normal(*shape, dtype=np.float32):
    """Normally distributed values."""
    return array(_rng.standard_normal(shape).astype(dtype))


def views(rows, cols):
    """Yields (description, view): matrices of one shape, laid out in memory in different ways.

    What lies in the storage but outside the view is NaN, so that one read beyond the view shows.
    """
    layouts = {
        "contiguous": ((rows, cols), lambda base: base),
        "padded rows": ((rows, cols + 15), lambda base: base[:, :cols]),
        "transposed": ((cols, rows), lambda base: base.T),
        "offset": ((rows + 2, cols + 3), lambda base: base[2:, 3:]),
        "every other": ((2 * rows, 3 * cols), lambda base: base[::2, ::3]),
    }
    if ON == "numpy":  # torch has no negative strides
        layouts["reversed"] = ((rows, cols), lambda base: base[::-1, ::-1])
    for description, (shape, view) in layouts.items():
        base = np.full(shape, np.nan, np.float32)
        view(base)[...] = _rng.standard_normal((rows, cols))
        yield description, view(array(base))


# Comparison and timing ---------------------------------------------------------------------------


def largest_error(got, want):
    """Largest |got - want|, relative to the largest finite |want|.

    An infinity or NaN in one place of only one of the two makes the error infinite. Results that
    are tuples are compared one by one.
    """
    if isinstance(want, tuple):
        return max(largest_error(*pair) for pair in zip(got, want, strict=True))
    got = f64(got)
    assert got.shape == want.shape, f"shape {got.shape} instead of {want.shape}"
    scale = np.abs(want, where=np.isfinite(want), out=np.zeros(want.shape)).max(initial=0.0) or 1.0
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    difference = np.abs(np.subtract(got, want, where=~same, out=np.zeros(want.shape)))
    return float(np.nan_to_num(difference, nan=np.inf).max(initial=0.0)) / scale


def expect(got, want, tolerance, what):
    error = largest_error(got, want)
    assert error <= tolerance, f"{what}: error {error:.1e} exceeds {tolerance:.1e}"


class Row(NamedTuple):
    """One line of the table."""

    kernel: str
    shape: str
    error: float
    seconds: float
    tolerance: float


def measure(kernel, shape, run, want, tolerance):
    """Runs once to compare (and to compile), then repeatedly to time: the median of calls."""
    error = largest_error(run(), want)
    times = []
    while not times or (sum(times) < 0.2 and len(times) < 500):
        start = time.perf_counter()
        run()
        if ON == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return Row(kernel, shape, error, statistics.median(times), tolerance)


# The table ---------------------------------------------------------------------------------------


def show(rows):
    """Prints the rows as they come; returns how many exceed their tolerance."""
    print(f"{'kernel':<32}{'shape':<20}{'largest error':>14}{'time':>12}")
    print("─" * 78)
    failures = 0
    for row in rows:
        line = f"{row.kernel:<32}{row.shape:<20}{row.error:>14.1e}{duration(row.seconds):>12}"
        if not row.error <= row.tolerance:
            failures += 1
            line += f"  exceeds {row.tolerance:.0e}"
        print(line, flush=True)
    return failures


def duration(seconds):
    for unit, scale in ("s", 1.0), ("ms", 1e-3), ("µs", 1e-6):
        if seconds >= scale:
            break
    return f"{seconds / scale:.3g} {unit}"


def main(check, cases):
    """What an example does when it is run as a script."""
    check()
    sys.exit(1 if show(cases()) else 0)
