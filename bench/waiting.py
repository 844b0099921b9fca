"""Kernels whose programs wait for one another, as machine code and by the reference executor.

    python bench/waiting.py

Each side runs in a process of its own, on whole calls; what is printed is the best of 15, in ms. Results are verified
against NumPy.
"""

import os
import subprocess
import sys
import time

ROUNDS = 15
SIDES = {"machine code": "eager", "reference": "interp"}


def cases():
    import numpy as np

    import naiad
    import naiad.language as tl

    @naiad.jit
    def locked_sum(x, total, lock, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        v = tl.load(x + tl.program_id(0) * BLOCK + i)
        while tl.atomic_cas(lock, 0, 1) == 1:
            pass
        tl.store(total + i, tl.load(total + i) + v)
        tl.debug_barrier()
        tl.atomic_xchg(lock, 0)

    @naiad.jit
    def grid_barriers(x, count, ROUNDS: tl.constexpr, BLOCK: tl.constexpr):
        pid = tl.program_id(0)
        n = tl.num_programs(0)
        i = tl.arange(0, BLOCK)
        for r in range(ROUNDS):
            v = tl.load(x + (r * n + (pid + 1) % n) * BLOCK + i)
            tl.store(x + ((r + 1) * n + pid) * BLOCK + i, v + 1)
            tl.debug_barrier()
            tl.atomic_add(count, 1)
            while tl.load(count, volatile=True) < (r + 1) * n:
                pass

    @naiad.jit
    def look_back_scan(x, out, sums, state, BLOCK: tl.constexpr):
        pid = tl.program_id(0)
        i = pid * BLOCK + tl.arange(0, BLOCK)
        v = tl.load(x + i)
        own = tl.sum(v)
        tl.store(sums + 2 * pid, own)
        tl.debug_barrier()
        tl.atomic_xchg(state + pid, 1)
        before = own * 0
        at = pid - 1
        while at >= 0:
            seen = tl.atomic_add(state + at, 0)
            if seen == 1:
                before += tl.load(sums + 2 * at)
                at -= 1
            elif seen == 2:
                before += tl.load(sums + 2 * at + 1)
                at = -1
        tl.store(sums + 2 * pid + 1, before + own)
        tl.debug_barrier()
        tl.atomic_xchg(state + pid, 2)
        tl.store(out + i, before + tl.cumsum(v))

    rng = np.random.default_rng(0)
    flags = np.zeros(1024, np.int32)

    x, total = rng.integers(-9, 9, (512, 1024)).astype(np.float32), np.zeros(1024, np.float32)
    yield (
        "a sum under a spin lock, 512 programs of 1024 elements",
        lambda: locked_sum[(512,)](x, total, flags, BLOCK=1024),
        lambda: (total == x.sum(0)).all(),
        [total, flags],
    )
    y = np.zeros((11, 128, 1024), np.int32)
    yield (
        "10 barriers of the grid, 128 programs of 1024 elements",
        lambda: grid_barriers[(128,)](y, flags, ROUNDS=10, BLOCK=1024),
        lambda: (y[10] == 10).all(),
        [flags],
    )
    z, out, sums = rng.integers(-9, 9, 1 << 20), np.zeros(1 << 20, np.int64), np.zeros(2048, np.int64)
    yield (
        "a scan with decoupled look-back, 1024 programs of 1024 elements",
        lambda: look_back_scan[(1024,)](z, out, sums, flags, BLOCK=1024),
        lambda: (out == z.cumsum()).all(),
        [flags],
    )


def measure():
    for name, launch, verify, zeroed in cases():
        best = float("inf")
        for _ in range(ROUNDS):
            for array in zeroed:
                array[:] = 0
            start = time.perf_counter()
            launch()
            best = min(best, time.perf_counter() - start)
            assert verify(), name
        print(f"{name}\t{best * 1e3:.3f}", flush=True)


def main():
    if len(sys.argv) > 1:
        return measure()
    columns = []
    for executor in SIDES.values():
        environment = {**os.environ, "NAIAD_EXECUTOR": executor}
        command = [sys.executable, __file__, "one side"]
        done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
        columns.append(dict(line.split("\t") for line in done.stdout.splitlines()))
    print("| kernel | " + " | ".join(SIDES) + " |\n|---|---|---|")
    for name in columns[0]:
        print(f"| {name} | " + " | ".join(column[name] for column in columns) + " |")


main()
