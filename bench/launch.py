"""What a launch costs from Python once its kernel is compiled: `kernel[grid](...)`, all of it.

    python bench/launch.py
    python bench/launch.py --json launch.json

Prints microseconds for one launch: the best of many rounds of 1,000 launches, since what disturbs a
measurement makes it longer and never shorter. One program runs in each launch. Kernels of 1, 4 and
12 arguments copy 1,024 numbers, the first of them one; the last row is a kernel that does nothing,
which is what there is beside the executor. torch is measured where it is installed.

The last column is one launch behind a copy of 4 MiB, as launches are between kernels that move much:
Python and the launch then find little of themselves in the core's own caches.
"""

import argparse
import datetime
import importlib.util
import json
import os
import platform
import statistics
import time

import numpy as np

import naiad as triton
import naiad.language as tl

LAUNCHES = 1000


@triton.jit
def bump(x_ptr):
    tl.store(x_ptr, tl.load(x_ptr) + 1)


@triton.jit
def copy(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


@triton.jit
def fuse(
    x_ptr, w_ptr, b_ptr, y_ptr, rows, columns, x_stride, y_stride, scale, eps, BLOCK: tl.constexpr, ACT: tl.constexpr
):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * x_stride + i, mask=i < columns)
    tl.store(y_ptr + row * y_stride + i, x, mask=i < columns)


@triton.jit
def nothing(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    pass


def cases(make):
    """(what, arguments, kernel, positional arguments, keywords), the tensors made by `make`."""
    x, y, w, b = (make() for _ in range(4))
    yield "1 argument", bump, (x,), {}
    yield "4 arguments", copy, (x, y, 1024), {"BLOCK": 1024}
    numbers = (1, 1024, 1024, 1024, 0.5, 1e-5)
    yield "12 arguments", fuse, (x, w, b, y, *numbers), {"BLOCK": 1024, "ACT": "relu", "num_warps": 4}
    yield "4, no work", nothing, (x, y, 1024), {"BLOCK": 1024}


def measure(launch, rounds):
    """Microseconds of one launch: the best round, and the median of them."""
    launch()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(LAUNCHES):
            launch()
        times.append((time.perf_counter() - start) / LAUNCHES * 1e6)
    return min(times), statistics.median(times)


def behind_a_copy(launch, launches=300):
    """The median of microseconds of one launch that follows a copy."""
    data = np.ones(1 << 20, np.float32)
    out = np.empty_like(data)
    times = []
    for _ in range(launches):
        np.copyto(out, data)
        start = time.perf_counter()
        launch()
        times.append((time.perf_counter() - start) * 1e6)
    return statistics.median(times)


def rows(rounds):
    makers = {"NumPy": lambda: np.zeros(1024, np.float32)}
    if importlib.util.find_spec("torch"):
        import torch

        makers["torch"] = lambda: torch.zeros(1024)
    for library, make in makers.items():
        for what, kernel, args, kwargs in cases(make):
            grids = {
                "tuple": lambda: kernel[(1,)](*args, **kwargs),
                "lambda": lambda: kernel[lambda meta: (1,)](*args, **kwargs),
            }
            for grid, launch in grids.items():
                best, median = measure(launch, rounds)
                row = {"library": library, "kernel": what, "grid": grid, "best_us": best, "median_us": median}
                yield {**row, "cold_us": behind_a_copy(launch)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--json", metavar="FILE", help="write the rows here too")
    options = parser.parse_args()
    print(f"{'tensors':<9}{'kernel':<14}{'grid':<9}{'best us':>9}{'median us':>11}{'cold us':>9}")
    found = []
    for row in rows(options.rounds):
        found.append(row)
        times = f"{row['best_us']:>9.2f}{row['median_us']:>11.2f}{row['cold_us']:>9.2f}"
        print(f"{row['library']:<9}{row['kernel']:<14}{row['grid']:<9}{times}")
    if options.json:
        now = datetime.datetime.now(datetime.timezone.utc)
        about = {
            "time": now.isoformat(timespec="seconds"),
            "machine": platform.machine(),
            "cores": os.cpu_count(),
            "python": platform.python_version(),
            "launches": LAUNCHES,
            "rounds": options.rounds,
        }
        with open(options.json, "w") as out:
            json.dump({**about, "rows": found}, out, indent=2)


if __name__ == "__main__":
    main()
