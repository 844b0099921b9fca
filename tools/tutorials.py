"""Runs Triton's tutorials 01 to 09 under Naiad and prints what came of each:

    python tools/tutorials.py PATH [--only 01 02 ...] [--longest 1024]

PATH is the folder of the tutorials, whose text is left as it is; the Python needs Naiad, torch, pytest and
tabulate. They compare their kernels with torch's results and raise, or print a cross, where these differ. All but
two are run as scripts. Two ask for so much that a CPU would be at it for days:

06  measures attention for lengths of 1024 to 16384: its own benchmarks are run, for lengths up to `--longest`.
09  runs each of eight products with 8192 rows and columns 20,000 times for its profile: its validation is run in both
    precisions, then its benchmark, which takes the number of repetitions as an argument, with one.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ATTENTION = """
import runpy, sys
tutorial = runpy.run_path(sys.argv[1], run_name="tutorial")
benchmarks = tutorial["bench_flash_attention"]
for benchmark in benchmarks.benchmarks:
    benchmark.x_vals = [x for x in benchmark.x_vals if x <= int(sys.argv[2])]
benchmarks.run(print_data=True)
"""

PERSISTENT = """
import runpy, sys, torch
tutorial = runpy.run_path(sys.argv[1], run_name="tutorial")
for dtype in torch.float16, torch.float8_e4m3fn:
    torch.manual_seed(0)
    tutorial["validate"](32, 32, 32, dtype)
    tutorial["validate"](8192, 8192, 512, dtype)
    tutorial["bench"](512, dtype, reps=1, warmup_reps=0)
"""

DRIVERS = {"06": ATTENTION, "09": PERSISTENT}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path)
    parser.add_argument("--only", nargs="*", default=[f"{i:02}" for i in range(1, 10)])
    parser.add_argument("--longest", type=int, default=1024)
    options = parser.parse_args()
    failed = False
    for number in options.only:
        # Beside some lie variants for CPUs, by the fork that has these.
        [script] = [f for f in options.path.resolve().glob(f"{number}-*.py") if not f.stem.endswith("-cpu")]
        came, seconds = run(number, script, options.longest)
        failed |= came != "ran"
        print(f"| {script.stem} | {came} | {seconds:.0f} s |", flush=True)
    sys.exit(failed)


def run(number, script, longest):
    """What came of it, and how long it took."""
    # Threads of torch's that wait awake would take the processor from the kernels.
    environment = {**os.environ, "MPLBACKEND": "Agg", "OMP_WAIT_POLICY": "passive"}
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "naiad", "run"]
        if number in DRIVERS:
            driver = Path(folder) / "driver.py"
            driver.write_text(DRIVERS[number])
            command += [str(driver), str(script), str(longest)]
        else:
            command += [str(script)]
        start = time.perf_counter()
        done = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True)
        seconds = time.perf_counter() - start
    print(done.stdout, file=sys.stderr)
    if done.returncode:
        return f"failed with {done.returncode}", seconds
    return ("differs from torch" if "❌" in done.stdout else "ran"), seconds


if __name__ == "__main__":
    main()
