"""Checks Naiad on a machine with a GPU, where nothing can be built: what is to be run was built before.

    python tools/gpu_check.py --build        on the machine that builds: a wheel and the driver's self-test
    python tools/gpu_check.py                on the machine with the GPU
    python tools/gpu_check.py --only ops,sanitizer

`--build` writes `.gpu/`, which git ignores; carry it to the other machine, where this installs the wheel
into a folder of its own and runs with it:

    self      the self-test of `naiad-cuda`
    launch    kernels from Python on torch's tensors: results, streams, graphs, faults, what a launch costs
    ops       tests/ops with the arrays on the GPU, over processes (`shards.py`)
    python    python/tests, likewise
    sanitizer kernels under compute-sanitizer's racecheck, each in a process of its own (`gpu_sanitize.py`)
    bench     bench/gpu.py

Each part says what failed; the last lines are a summary. The exit code is the number of parts that failed.
What `--seconds` leaves no time for is said, and counts as failed.
"""

import argparse
import glob
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILT = ROOT / ".gpu"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", action="store_true")
    parser.add_argument("--only", default="self,launch,ops,python,sanitizer")
    parser.add_argument("--out", default=os.environ.get("OUT", "."), help="a folder for logs")
    parser.add_argument("--bench", default="--quick", help="arguments for bench/gpu.py")
    parser.add_argument("--shards", type=int, default=max((os.cpu_count() or 2) - 1, 1), help="processes for tests")
    parser.add_argument("--sanitize", default="", help="arguments for gpu_sanitize.py")
    parser.add_argument("--seconds", type=float, default=540, help="for everything")
    args = parser.parse_args()
    return build() if args.build else check(args)


def build():
    """A wheel for every Python from 3.10 on, of the profile that all else here is built with."""
    shutil.rmtree(BUILT, ignore_errors=True)
    BUILT.mkdir()
    maturin = shutil.which("maturin", path=f"{ROOT}/.venv/bin:{os.environ['PATH']}")
    subprocess.run(
        [maturin, "build", "--quiet", "--profile", "dev", "--compatibility", "linux", "--out", BUILT],
        cwd=ROOT, check=True,
    )
    subprocess.run(["cargo", "build", "--quiet", "-p", "naiad-cuda", "--example", "selftest"], cwd=ROOT, check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    shutil.copy(target / "debug/examples/selftest", BUILT / "selftest")
    for path in sorted(BUILT.iterdir()):
        print(f"{path.relative_to(ROOT)}  {path.stat().st_size / 2**20:.1f} MiB")
    return 0


def check(args):
    start = time.monotonic()
    site = Path(tempfile.mkdtemp(prefix="naiad-site-"))
    wheels = glob.glob(f"{BUILT}/*.whl")
    if not wheels:
        print(f"there is no wheel in {BUILT}: run with --build first, and carry the folder")
        return 1
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--target", site, *wheels]
    subprocess.run(install, check=True)
    # Beside the tests' own folders the repository's package, which has no extension, must not be found.
    env = {**os.environ, "PYTHONPATH": f"{site}{os.pathsep}{ROOT / 'tools'}", "NAIAD_CACHE_DIR": str(site / "cache"), "PYTHONUNBUFFERED": "1"}
    pytest = [sys.executable, "-m", "pytest", "-q", "--tb=no", "-p", "no:cacheprovider", "-p", "gpu_summary"]
    parts = {
        "self": lambda left: [str(BUILT / "selftest")],
        "launch": lambda left: [*pytest, "tools/gpu_tests.py"],
        "ops": lambda left: shards("tests/ops", left, args),
        "python": lambda left: shards("python/tests", left, args),
        "sanitizer": lambda left: [
            *(sys.executable, "tools/gpu_sanitize.py", "--seconds", f"{left:.0f}"), *shlex.split(args.sanitize),
        ],
        "bench": lambda left: [
            *(sys.executable, "bench/gpu.py", "--json", f"{args.out}/gpu.json", "--markdown", f"{args.out}/gpu.md"),
            *shlex.split(args.bench),
        ],
    }
    results = {}
    for name in args.only.split(","):
        left = max(args.seconds - (time.monotonic() - start), 5)
        log = Path(args.out) / f"gpu-{name}.log"
        print(f"== {name}", flush=True)
        extra = {"NAIAD_TEST_DEVICE": "cuda", "NAIAD_PRECISE": "1"} if name == "ops" else {}
        results[name] = run(parts[name](max(left - 10, 1)), {**env, **extra}, log, left, tail=80)
    print("== summary")
    for name, (code, last, seconds) in results.items():
        print(f"{name:8} {'ok' if code == 0 else f'FAILED ({code})':12} {seconds:6.1f} s  {last}")
    return sum(code != 0 for code, _, _ in results.values())


def shards(tests, left, args):
    """Ends by itself some seconds before its time, so that what did not run is told."""
    name = tests.replace("/", "-")
    return [
        *(sys.executable, "tools/shards.py", tests, "--shards", str(args.shards), "--seconds", f"{left:.0f}"),
        *("--json", f"{args.out}/gpu-{name}.json"),
    ]


def run(command, env, log, seconds, tail):
    """Runs a part with its output in a log, of which the end is shown."""
    start = time.monotonic()
    with open(log, "w") as file:
        try:
            done = subprocess.run(command, cwd=ROOT, env=env, stdout=file, stderr=subprocess.STDOUT, timeout=seconds)
            code = done.returncode
        except subprocess.TimeoutExpired:
            code = 124
    text = log.read_text(errors="replace")
    # The names of what failed stand in the log; what it was stands before them.
    lines = [line for line in text.rstrip().splitlines() if not line.startswith(("FAILED ", "ERROR "))]
    print("\n".join(lines[-tail:]), flush=True)
    return code, lines[-1] if lines else "", time.monotonic() - start


if __name__ == "__main__":
    sys.exit(main())
