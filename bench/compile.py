"""How long kernels take to compile, from their text to verified Tile IR.

    python bench/compile.py

Prints milliseconds, the best of several rounds, in each of which a kernel is compiled that was not
compiled before: one of 700 lines with 129 arguments, which is the largest of the public kernels; and
the configurations of tuned kernels of three sizes, one after another and over threads.
"""

import argparse
import concurrent.futures
import linecache
import os
import time

import numpy as np

import naiad as triton
import naiad.language as tl


def make():
    """A kernel that is new to the compiler."""

    @triton.jit
    def layers(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, DEPTH: tl.constexpr):
        rows = tl.program_id(0) * BM + tl.arange(0, BM)
        columns = tl.program_id(1) * BN + tl.arange(0, BN)
        inner = tl.arange(0, 16)
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for _ in tl.static_range(DEPTH):
            for k in range(0, K, 16):
                at = inner + k
                x = tl.load(a + rows[:, None] * K + at[None, :], mask=at[None, :] < K, other=0.0)
                y = tl.load(b + at[:, None] * N + columns[None, :], mask=at[:, None] < K, other=0.0)
                acc += tl.dot(x, y)
            acc = tl.where(acc > 0, acc, tl.exp(acc) - 1)
        mask = (rows[:, None] < M) & (columns[None, :] < N)
        tl.store(c + rows[:, None] * N + columns[None, :], acc, mask=mask)

    return layers


BLOCKS = [(m, n) for m in (16, 32, 64, 128) for n in (16, 32, 64, 128)]


def round_of(depth, pool):
    kernel, x = make(), np.zeros(16, np.float32)

    def compile(blocks):
        kernel.warmup(x, x, x, 64, 64, 64, BM=blocks[0], BN=blocks[1], DEPTH=depth)

    start = time.perf_counter()
    compile(BLOCKS[0])
    list(pool.map(compile, BLOCKS[1:])) if pool else [compile(b) for b in BLOCKS[1:]]
    return (time.perf_counter() - start) * 1e3


def long_kernel(number, lines=700, arguments=129):
    """A kernel of loads, masks, arithmetic, reductions and branches over many pointers."""
    pointers = [f"p{i}" for i in range(arguments - 3)]
    body = ["at = tl.program_id(0) * B + tl.arange(0, B)", "acc = tl.zeros((B,), tl.float32)"]
    forms = [
        "x = tl.load({p} + at * s, mask=at < n, other=0.0)",
        "acc += x * 2.0 + tl.exp(x - tl.max(x, 0))",
        "acc = tl.where(acc > x, acc, tl.sqrt(tl.abs(acc)))",
        "if n > {i}:\n        acc = acc * 0.5",
        "tl.store({p} + at, acc / (tl.sum(acc, 0) + 1.0), mask=at < n)",
    ]
    i = 0
    while sum(line.count("\n") + 1 for line in body) < lines - 2:
        body.append(forms[i % len(forms)].format(p=pointers[i % len(pointers)], i=i))
        i += 1
    head = f"@triton.jit\ndef kernel({', '.join(pointers)}, n, s, B: tl.constexpr):\n    "
    text = head + "\n    ".join(body) + "\n"
    name = f"<long kernel {number}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    namespace = {"triton": triton, "tl": tl}
    exec(compile(text, name, "exec"), namespace)
    return namespace["kernel"], [np.zeros(16, np.float32)] * len(pointers)


def long_round(number):
    kernel, arrays = long_kernel(number)
    start = time.perf_counter()
    kernel.warmup(*arrays, 64, 5, B=64)
    return (time.perf_counter() - start) * 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    print(f"700 lines, 129 arguments: {min(map(long_round, range(options.rounds))):.1f}\n")
    print(f"{'layers':>6} {'serial':>10} {f'{options.threads} threads':>10} {'gain':>6}")
    for depth in (1, 8, 40):
        serial = min(round_of(depth, None) for _ in range(options.rounds))
        with concurrent.futures.ThreadPoolExecutor(options.threads) as pool:
            spread = min(round_of(depth, pool) for _ in range(options.rounds))
        print(f"{depth:>6} {serial:>10.2f} {spread:>10.2f} {serial / spread:>6.2f}")


if __name__ == "__main__":
    main()
