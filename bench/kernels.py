"""Times products of matrices by library kernels, as programs call them, beside torch's.

    cargo build --release -p naiad-cpu --example kernels
    python bench/kernels.py target/release/examples/kernels

Both compute the same product with two threads and take turns, so that what else the machine does hits
both alike. Printed are the best times and the median of the ratios of neighbouring runs.
"""

import argparse
import statistics
import subprocess
import time

import torch

TILES = [(64, 64, 32), (128, 64, 64)]
TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", help="the example `kernels` of naiad-cpu")
    parser.add_argument("--types", nargs="*", default=["fp32", "bf16"], choices=list(TYPES))
    parser.add_argument("--sizes", nargs="*", type=int, default=[512, 1024, 2048])
    parser.add_argument("--runs", type=int, default=9)
    args = parser.parse_args()
    torch.set_num_threads(2)
    server = subprocess.Popen(
        [args.program, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )

    def ours(name, size, tile):
        # torch's threads spin for a while after their work, on the cores that this one's need.
        time.sleep(0.02)
        server.stdin.write(f"matmul {name} {size} {tile[0]} {tile[1]} {tile[2]}\n")
        server.stdin.flush()
        return float(server.stdout.readline())

    for name in args.types:
        for size in args.sizes:
            a = torch.randn(size, size).to(TYPES[name])
            b = torch.randn(size, size).to(TYPES[name])
            out = torch.empty(size, size, dtype=TYPES[name])

            def theirs():
                time.sleep(0.02)
                start = time.perf_counter()
                torch.mm(a, b, out=out)
                return time.perf_counter() - start

            for tile in TILES:
                ours(name, size, tile), theirs()
                pairs = [(ours(name, size, tile), theirs()) for _ in range(args.runs)]
                ratio = statistics.median(x / y for x, y in pairs)
                best = [min(side) for side in zip(*pairs)]
                flops = [2 * size**3 / t / 1e9 for t in best]
                print(
                    f"{name} {size}^3 tile {'x'.join(map(str, tile))}: {best[0] * 1e3:.2f} ms "
                    f"({flops[0]:.0f} GFLOP/s), torch {best[1] * 1e3:.2f} ({flops[1]:.0f}), "
                    f"ratio of best {best[0] / best[1]:.2f}, median ratio {ratio:.2f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
