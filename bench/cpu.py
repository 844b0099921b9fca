"""Naiad's machine code beside torch, NumPy and a plain copy, on two threads of this CPU.

    python bench/cpu.py                             NumPy alone, or torch too where it is installed
    python bench/cpu.py --only softmax --quick      some rows, fewer rounds
    python bench/cpu.py --compile --json cpu.json   torch.compile too, which needs a C++ compiler
    python bench/cpu.py --cold                      source to first result, step by step

All sides run in this process on the same buffers, which stay. Each result is first compared with
float64. Then come rounds: in each, every side in turn rests, runs once unmeasured, and is timed for
some milliseconds; the median of those calls is its time in that round. A time that a thread spent
waiting for a core is taken again, since then another process was measured too. What is printed is
the median over the rounds; ratios are those of the sides within a round, with their quartiles.

torch writes to `out=` where it has one, so that it allocates nothing. Two cases differ. GELU is
`torch.ops.aten.gelu.out`, since `torch.nn.functional.gelu` takes no `out`. `layer_norm` has none
that saves it work: it runs as it is, normalizes too, and allocates its result. The copy moves as
many bytes as the kernel has to: for sums, which hardly write, it copies half of the input.
"""

import argparse
import datetime
import importlib
import json
import os
import platform
import statistics
import sys
import time
from pathlib import Path
from typing import Callable, NamedTuple

THREADS = 2
# Before NumPy is imported, whose matrix product reads it then. And a kernel without machine code is
# to fail rather than run in the reference executor.
os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = str(THREADS)
os.environ["NAIAD_EXECUTOR"] = "cpu"

import numpy as np

import naiad
from naiad import _naiad

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
sys.path.insert(0, str(EXAMPLES))
naiad.alias.install()

import bias_add
import common
import gelu
import matmul
import row_stats
import row_sum
import softmax
import transpose

try:
    import torch
except ImportError:
    torch = None

BURST = 4e-3  # seconds for which a side is timed in a round
REST = 12e-3  # seconds after which the threads of the side before are asleep: torch's spin for 8 ms
DISTURBED = 0.02  # of a burst's time, that its threads waited for a core


class Case(NamedTuple):
    """One row of the table."""

    kernel: str
    shape: str
    # By name, what is measured.
    sides: dict[str, Callable[[], None]]
    # What the kernel computes, in float64, and into which arrays.
    want: tuple
    outputs: tuple
    tolerance: float
    # By side, the largest ratio to it that is asked.
    bars: dict[str, float]
    flops: int = 0
    # By side, what gives its results if they are elsewhere.
    results: dict[str, Callable[[], tuple]] = {}


# Arrays ------------------------------------------------------------------------------------------


def empty(*shape, dtype=np.float32):
    """An array that begins at a line of cache, as torch's tensors do."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    storage = np.full(size + 64, 0xFF, np.uint8)  # written, so that the memory is there
    start = -storage.ctypes.data % 64
    return storage[start : start + size].view(dtype).reshape(shape)


def normal(*shape):
    x = empty(*shape)
    np.random.default_rng(2024).standard_normal(dtype=np.float32, out=x)
    return x


def tensors(*arrays):
    """The same memory as torch sees it."""
    return [torch.from_numpy(x) for x in arrays] if torch else [None] * len(arrays)


def copying(x, out):
    if not torch:
        return lambda: np.copyto(out, x)
    x, out = tensors(x, out)
    return lambda: out.copy_(x)


# Kernels -----------------------------------------------------------------------------------------


def bias_add_case(rows, cols):
    x, bias, out = normal(rows, cols), normal(cols), empty(rows, cols)
    X, BIAS, OUT = tensors(x, bias, out)

    def compiled(x, bias, out):
        out.copy_(x + bias)

    sides = {
        "naiad": lambda: bias_add.bias_add(x, bias, out),
        "torch": lambda: torch.add(X, BIAS, out=OUT),
        "compile": compile_of(compiled, X, BIAS, OUT),
        "numpy": lambda: np.add(x, bias, out=out),
        "copy": copying(x, out),
    }
    want = common.f64(x) + common.f64(bias)
    return Case("bias_add", f"{rows}x{cols}", sides, (want,), (out,), 1e-7, {"torch": 1.0})


def padded_case(rows, cols, stride):
    """Many programs that do little. A copy of the lines of cache that rows and padding share."""
    x, bias, out = normal(rows, stride), normal(cols), empty(rows, stride)
    inside, outside = x[:, :cols], out[:, :cols]
    X, BIAS, OUT = tensors(inside, bias, outside)

    def compiled(x, bias, out):
        out.copy_(x + bias)

    sides = {
        "naiad": lambda: bias_add.bias_add(inside, bias, outside),
        "torch": lambda: torch.add(X, BIAS, out=OUT),
        "compile": compile_of(compiled, X, BIAS, OUT),
        "numpy": lambda: np.add(inside, bias, out=outside),
        "copy": copying(x, out),
    }
    want = common.f64(inside) + common.f64(bias)
    shape = f"{rows}x{cols}, stride {stride}"
    return Case("bias_add", shape, sides, (want,), (outside,), 1e-7, {"copy": 2.0})


def row_stats_case(rows, cols):
    x, mean, var = normal(rows, cols), empty(rows), empty(rows)
    X, MEAN, VAR = tensors(x, mean, var)
    half = x.reshape(2, -1)
    spare = empty(*half[0].shape)
    block = naiad.next_power_of_2(cols)
    last = [None]

    def layer_norm():
        last[0] = torch.native_layer_norm(X, [cols], None, None, 1e-5)

    def compiled(x, mean, var):
        v, m = torch.var_mean(x, 1, correction=0)
        mean.copy_(m)
        var.copy_(v)

    def in_numpy():
        np.mean(x, axis=1, out=mean)
        np.var(x, axis=1, out=var)

    def torch_results():
        _, mean, rstd = last[0]
        return mean.numpy().ravel(), (1 / rstd.double() ** 2 - 1e-5).numpy().ravel()

    launch = row_stats.row_stats_kernel[(rows,)]
    sides = {
        "naiad": lambda: launch(x, mean, var, cols, *common.strides(x), BLOCK=block),
        "torch": layer_norm,
        "compile": compile_of(compiled, X, MEAN, VAR),
        "numpy": in_numpy,
        "copy": copying(half[0], spare),
    }
    want, outputs, bars = row_stats.reference(x), (mean, var), {"torch": 0.3}
    theirs = {"torch": torch_results}
    return Case("row_stats", f"{rows}x{cols}", sides, want, outputs, 1e-5, bars, results=theirs)


def gelu_case(rows, cols):
    n = rows * cols
    x, out, spare = normal(n), empty(n), empty(n)
    X, OUT = tensors(x, out)

    def compiled(x, out):
        out.copy_(torch.nn.functional.gelu(x, approximate="tanh"))

    def in_numpy():
        np.multiply(x, x, out=spare)
        np.multiply(spare, np.float32(0.044715), out=spare)
        np.add(spare, np.float32(1.0), out=spare)
        np.multiply(spare, x, out=spare)
        np.multiply(spare, np.float32(0.7978845608028654), out=spare)
        np.tanh(spare, out=spare)
        np.add(spare, np.float32(1.0), out=spare)
        np.multiply(spare, x, out=spare)
        np.multiply(spare, np.float32(0.5), out=out)

    launch = gelu.gelu_kernel[(naiad.cdiv(n, 1024),)]
    sides = {
        "naiad": lambda: launch(x, out, n, 1, 1, BLOCK=1024),
        "torch": lambda: torch.ops.aten.gelu.out(X, approximate="tanh", out=OUT),
        "compile": compile_of(compiled, X, OUT),
        "numpy": in_numpy,
        "copy": copying(x, out),
    }
    want = (gelu.reference(x),)
    return Case("gelu", f"{rows}x{cols}", sides, want, (out,), 1e-6, {"torch": 0.5})


def softmax_case(rows, cols):
    x, out, peak = normal(rows, cols), empty(rows, cols), empty(rows, 1)
    X, OUT = tensors(x, out)

    def compiled(x, out):
        out.copy_(torch.softmax(x, -1))

    def in_numpy():
        np.max(x, axis=1, keepdims=True, out=peak)
        np.subtract(x, peak, out=out)
        np.exp(out, out=out)
        np.sum(out, axis=1, keepdims=True, out=peak)
        np.divide(out, peak, out=out)

    sides = {
        "naiad": lambda: softmax.softmax(x, out),
        "torch": lambda: torch.softmax(X, -1, out=OUT),
        "compile": compile_of(compiled, X, OUT),
        "numpy": in_numpy,
        "copy": copying(x, out),
    }
    bars = {"torch": 1.3 if cols <= 1024 else 1.6}
    return Case("softmax", f"{rows}x{cols}", sides, (softmax.reference(x),), (out,), 1e-6, bars)


def transpose_case(rows, cols, tile):
    x, out = normal(rows, cols), empty(cols, rows)
    X, OUT = tensors(x, out)

    def compiled(x, out):
        out.copy_(x.t())

    sides = {
        "naiad": lambda: transpose.transpose(x, out, (tile, tile)),
        "torch": lambda: OUT.copy_(X.t()),
        "compile": compile_of(compiled, X, OUT),
        "numpy": lambda: np.copyto(out, x.T),
        "copy": copying(x.ravel(), out.ravel()),
    }
    bars = {"torch": 0.35, **({"copy": 1.5} if tile == 32 and rows * cols >= 1 << 24 else {})}
    shape = f"{rows}x{cols}, tile {tile}"
    return Case("transpose", shape, sides, (common.f64(x).T,), (out,), 0.0, bars)


def row_sum_case(rows, cols):
    x, out = normal(rows, cols), empty(rows)
    X, OUT = tensors(x, out)
    half = x.reshape(2, -1)
    spare = empty(*half[0].shape)

    def compiled(x, out):
        out.copy_(torch.sum(x, 1))

    launch = row_sum.row_sum_kernel[(rows,)]
    sides = {
        "naiad": lambda: launch(x, out, cols, *common.strides(x), BLOCK=2048),
        "torch": lambda: torch.sum(X, 1, out=OUT),
        "compile": compile_of(compiled, X, OUT),
        "numpy": lambda: np.sum(x, axis=1, out=out),
        "copy": copying(half[0], spare),
    }
    want = (common.f64(x).sum(axis=1),)
    return Case("row_sum", f"{rows}x{cols}", sides, want, (out,), 1e-6, {"torch": 1.0})


def matmul_case(n, tile, dtype="float32"):
    """Products in half precision are held against torch's in bfloat16, whatever naiad's type is."""
    a, b = normal(n, n), normal(n, n)
    if dtype == "float32":
        out = empty(n, n)
        A, B, OUT = tensors(a, b, out)
        numpy = lambda: np.matmul(a, b, out=out)
        theirs, tolerance, bar = {}, 2e-6, 1.55 if n <= 512 else 1.3
    else:
        if not torch:
            return None
        numpy = None
        bf16 = [torch.from_numpy(x).bfloat16() for x in (a, b)]
        A, B = bf16
        OUT = torch.empty(n, n, dtype=torch.bfloat16)
        if dtype == "bfloat16":
            a, b, out = A, B, OUT
            tolerance = 2.0**-8
        else:
            # What bfloat16 holds of these numbers float16 holds too, so that the product is one.
            a, b = (x.to(torch.float16) for x in bf16)
            out = torch.empty(n, n, dtype=torch.float16)
            tolerance = 2.0**-11
        bar = 0.4
        theirs = dict.fromkeys(("torch", "compile"), lambda: (OUT,))

    def compiled(a, b, out):
        out.copy_(a @ b)

    sides = {
        "naiad": lambda: matmul.matmul(a, b, out=out, tile=tile),
        "torch": lambda: torch.mm(A, B, out=OUT),
        "compile": compile_of(compiled, A, B, OUT),
        **({"numpy": numpy} if numpy else {}),
    }
    want = (wide(a) @ wide(b),)
    shape = f"{n}^3, tile {'x'.join(map(str, tile))}"
    name = {"float32": "matmul", "bfloat16": "matmul bf16", "float16": "matmul fp16"}[dtype]
    bars, flops = {"torch": bar}, 2 * n**3
    return Case(name, shape, sides, want, (out,), tolerance, bars, flops, theirs)


def wide(x):
    return x.astype(np.float64) if isinstance(x, np.ndarray) else x.double().numpy()


def cases():
    """(name, a function that makes the case) for each row of the table."""
    both = (1024, 1024), (8192, 4096)
    for shape in both:
        yield "bias_add", lambda: bias_add_case(*shape)
    yield "bias_add padded", lambda: padded_case(1 << 20, 17, 32)
    for name, make in ("row_stats", row_stats_case), ("gelu", gelu_case), ("softmax", softmax_case):
        for shape in both:
            yield name, lambda: make(*shape)
    for shape in both:
        for tile in 32, 64:
            yield "transpose", lambda: transpose_case(*shape, tile)
    for shape in *both, (64, 65536), (512, 65536):
        yield "row_sum", lambda: row_sum_case(*shape)
    for dtype in "float32", "bfloat16", "float16":
        for n in 512, 2048:
            for tile in (64, 64, 32), (128, 64, 64):
                yield f"matmul {dtype}", lambda: matmul_case(n, tile, dtype)


# Measurement -------------------------------------------------------------------------------------

_compiling = False


def compile_of(function, *args):
    """The function by torch.compile, if that was asked for."""
    if not (torch and _compiling):
        return None
    made = torch.compile(function, dynamic=False)
    return lambda: made(*args)


def waited():
    """Seconds that this process's threads were ready to run and had no core; 0 where unknown."""
    total = 0
    try:
        for task in os.scandir("/proc/self/task"):
            total += int(Path(task.path, "schedstat").read_text().split()[1])
    except (OSError, IndexError, ValueError):
        return 0.0
    return total * 1e-9


def burst(run):
    """(seconds of a call, part of the time that was spent waiting for a core)."""
    time.sleep(REST)
    run()
    times, before = [], waited()
    while not times or sum(times) < BURST:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times), (waited() - before) / sum(times)


def sample(run, tries):
    """The burst that was disturbed least, of so many at most."""
    found = []
    while len(found) < tries and (not found or min(found)[0] > DISTURBED):
        seconds, disturbed = burst(run)
        found.append((disturbed, seconds))
    return min(found)


def growth(run):
    """By how many bytes a run makes the process grow, at its peak; None where unknown."""

    def field(name):
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(x.split()[1]) << 10 for x in lines if x.startswith(name))

    try:
        Path("/proc/self/clear_refs").write_text("5")
        before = field("VmRSS")
        run()
        return field("VmHWM") - before
    except OSError:
        return None


def verify(case, side):
    """Runs a side on outputs that hold NaN; the largest error of what it leaves there."""
    for out in case.outputs:
        out.fill(np.nan) if isinstance(out, np.ndarray) else out.fill_(float("nan"))
    case.sides[side]()
    if side == "copy":
        return 0.0
    got = case.results.get(side, lambda: case.outputs)()
    got = tuple(x if isinstance(x, np.ndarray) else x.double().numpy() for x in got)
    return common.largest_error(got, case.want)


def quartiles(values):
    if len(values) < 2:
        return [values[0]] * 3
    return statistics.quantiles(values, n=4, method="inclusive")


def measure(case, rounds, tries):
    """The row's record."""
    record = {"kernel": case.kernel, "shape": case.shape, "bars": case.bars}
    sides = {name: run for name, run in case.sides.items() if run and (torch or name not in ("torch", "compile"))}
    case = case._replace(sides=sides)
    for side in list(sides):
        try:
            error = verify(case, side)
        except Exception as e:  # such as a kernel without machine code: the rest is measured
            record[f"{side}_failure"] = str(e).splitlines()[0]
            del sides[side]
            continue
        # What others compute in half precision is theirs to answer for.
        if side == "naiad" and not error <= case.tolerance:
            record["naiad_failure"] = f"error {error:.1e} exceeds {case.tolerance:.1e}"
            del sides[side]
        record[f"{side}_error"] = error
    if "naiad" in sides:
        record["growth"] = growth(sides["naiad"])
    taken = {side: [] for side in sides}
    disturbed = 0
    for number in range(rounds):
        # Nobody always follows the same one.
        order = list(sides)[number % len(sides) :] + list(sides)[: number % len(sides)]
        for side in order:
            part, seconds = sample(sides[side], tries)
            disturbed += part > DISTURBED
            taken[side].append(seconds)
    record["samples"] = rounds * len(sides)
    record["disturbed"] = disturbed
    for side, seconds in taken.items():
        record[side] = {"seconds": quartiles(seconds), "best": min(seconds)}
        if side != "naiad" and "naiad" in sides:
            ratios = [ours / theirs for ours, theirs in zip(taken["naiad"], seconds)]
            best = min(taken["naiad"]) / min(seconds)
            record[side]["ratio"] = {"quartiles": quartiles(ratios), "of_best": best}
    if case.flops and "naiad" in sides:
        record["gflops"] = case.flops / record["naiad"]["seconds"][1] * 1e-9
    return record


# Cold --------------------------------------------------------------------------------------------


def fresh(name):
    """The module of an example anew, so that its kernels were never seen."""
    for each in "bias_add", "gelu", "matmul", "row_stats", "row_sum", "softmax", "transpose":
        sys.modules.pop(each, None)
    return importlib.import_module(name)


def launches(name):
    """The kernel of an example, newly made, with a grid and its arguments."""
    module = fresh(name)
    x, out, row, column = normal(1024, 1024), empty(1024, 1024), normal(1024), empty(1024)
    s, n = common.strides(x), 1024
    if name == "bias_add":
        return module.bias_add_kernel, (n,), (x, row, out, n, *s, 1, *s), {"BLOCK": 1024}
    if name == "row_stats":
        return module.row_stats_kernel, (n,), (x, column, empty(n), n, *s), {"BLOCK": 1024}
    if name == "gelu":
        return module.gelu_kernel, (n,), (x.ravel(), out.ravel(), n * n, 1, 1), {"BLOCK": 1024}
    if name == "softmax":
        return module.softmax_kernel, (n,), (x, out, n, *s, *s), {"BLOCK": 1024}
    if name == "row_sum":
        return module.row_sum_kernel, (n,), (x, column, n, *s), {"BLOCK": 2048}
    if name == "transpose":
        tile = {"BLOCK_ROWS": 32, "BLOCK_COLS": 32}
        return module.transpose_kernel, (32, 32), (x, out, n, n, *s, *s), tile
    n = 512
    a, b, c = normal(n, n), normal(n, n), empty(n, n)
    s = common.strides(a)
    tile = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32, "GROUP_M": 8, "ACTIVATION": "gelu"}
    return module.matmul_kernel, (64,), (a, b, c, n, n, n, *s, *s, *s), tile


COLD = "bias_add", "row_stats", "gelu", "softmax", "row_sum", "transpose", "matmul"


def cold(options):
    """Source to first result: the front end, what comes after it, and of that the run itself."""
    print(f"{'kernel':<12}{'cold ms':>9}{'quartiles':>16}{'front end':>11}{'machine code':>14}{'run':>8}")
    rows = []
    for name in COLD:
        if options.only and not any(part in name for part in options.only):
            continue
        totals, parts = [], []
        for _ in range(options.rounds):
            kernel, grid, args, tile = launches(name)
            time.sleep(REST)
            start = time.perf_counter()
            kernel[grid](*args, **tile)
            totals.append((time.perf_counter() - start) * 1e3)
            # The steps, of a kernel that is fresh again.
            kernel, grid, args, tile = launches(name)
            time.sleep(REST)
            marks = [time.perf_counter()]
            for step in kernel.warmup, kernel[grid], kernel[grid]:
                step(*args, **tile)
                marks.append(time.perf_counter())
            front, code, run = ((b - a) * 1e3 for a, b in zip(marks, marks[1:]))
            parts.append((front, code - run, run))
        if options.tile_ir:
            Path(options.tile_ir).mkdir(parents=True, exist_ok=True)
            compiled = kernel.warmup(*args, **tile)
            Path(options.tile_ir, f"{name}.tir").write_text(compiled.asm["tile"])
        front, code, run = map(statistics.median, zip(*parts))
        low, median, high = quartiles(totals)
        row = {"kernel": name, "cold": [low, median, high], "front": front, "machine": code, "run": run}
        rows.append({**row, "best": min(totals)})
        spread = f"{low:.2f} to {high:.2f}"
        print(f"{name:<12}{median:>9.2f}{spread:>16}{front:>11.2f}{code:>14.2f}{run:>8.2f}", flush=True)
    if rows:
        print(f"\nmedian over the examples: {statistics.median(r['cold'][1] for r in rows):.2f} ms")
    save(options, {"cold": rows})


# The table ---------------------------------------------------------------------------------------

SIDES = "naiad", "torch", "compile", "numpy", "copy"


def head():
    columns = "".join(f"{side:>10}" for side in SIDES)
    print(f"{'kernel':<13}{'shape':<24}{columns}{'to torch':>22}{'to copy':>9}  {'bar':<22}")
    print("─" * 142)


def show(record):
    line = f"{record['kernel']:<13}{record['shape']:<24}"
    for side in SIDES:
        found = record.get(side)
        line += f"{milliseconds(found['seconds'][1]) if found else '-':>10}"
    line += f"{spread(record, 'torch'):>22}{ratio(record, 'copy'):>9}  {judged(record)}"
    if "gflops" in record:
        line += f"  {record['gflops']:.0f} GFLOP/s"
    if record["disturbed"]:
        line += f"  {record['disturbed']}/{record['samples']} disturbed"
    for side in SIDES:
        if failure := record.get(f"{side}_failure"):
            line += f"\n{'':<13}{side}: {failure}"
    print(line, flush=True)


def markdown(records):
    """The table of docs/performance.md: times and bars by the best of the rounds."""
    sides = [side for side in SIDES if any(side in record for record in records)]
    rows = [["kernel", "shape", *sides, "best to torch's", "median of ratios", "bar"]]
    for record in records:
        times = [milliseconds(record[s]["best"]) if s in record else "" for s in sides]
        found = record.get("torch", {}).get("ratio")
        best = f"{found['of_best']:.2f}" if found else ""
        about = best, ratio(record, "torch"), judged(record, by_best=True).replace("MISSED", "**missed**")
        rows.append([record["kernel"], record["shape"], *times, *about])
    rows.insert(1, ["---"] * len(rows[0]))
    print("\n".join(f"| {' | '.join(row)} |" for row in rows))


def milliseconds(seconds):
    return f"{seconds * 1e3:.3g}" if seconds < 1 else f"{seconds * 1e3:.0f}"


def ratio(record, side):
    found = record.get(side, {}).get("ratio")
    return f"{found['quartiles'][1]:.2f}" if found else "-"


def spread(record, side):
    found = record.get(side, {}).get("ratio")
    if not found:
        return "-"
    low, median, high = found["quartiles"]
    return f"{median:.2f} ({low:.2f} to {high:.2f})"


def judged(record, by_best=False):
    """Each bar, and whether it is met by the median or the best; 5 % of noise are allowed."""
    words = []
    for side, bar in record["bars"].items():
        found = record.get(side, {}).get("ratio")
        took = found and (found["of_best"] if by_best else found["quartiles"][1])
        met = "" if not found else " met" if took <= 1.05 * bar else " MISSED"
        words.append(f"{bar:g} {side}{met}")
    return ", ".join(words)


def save(options, content):
    if not options.json:
        return
    about = {
        "time": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "machine": platform.machine(),
        "processor": processor(),
        "cores": os.cpu_count(),
        "threads": THREADS,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "torch": torch.__version__ if torch else None,
        "load": os.getloadavg(),
        "rounds": options.rounds,
    }
    Path(options.json).write_text(json.dumps({**about, **content}, indent=2) + "\n")


def processor():
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((x.split(":")[1].strip() for x in lines if x.startswith("model name")), "unknown")


def main():
    global _compiling
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", metavar="NAME", action="append", help="rows whose kernel's name has this")
    parser.add_argument("--quick", action="store_true", help="5 rounds instead of 15, nothing taken again")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--compile", action="store_true", help="torch.compile too")
    parser.add_argument("--cold", action="store_true", help="source to first result instead")
    parser.add_argument("--tile-ir", metavar="FOLDER", help="with --cold: write each kernel's Tile IR there")
    parser.add_argument("--markdown", action="store_true", help="print the table for docs/performance.md too")
    parser.add_argument("--json", metavar="FILE", help="write what was measured here too")
    options = parser.parse_args()
    options.rounds = options.rounds or (5 if options.quick else 15)
    _compiling = options.compile
    _naiad.configure(False, THREADS)
    if torch:
        torch.set_num_threads(THREADS)
        torch.set_grad_enabled(False)
    if options.cold:
        return cold(options)
    head()
    records = []
    for name, make in cases():
        if options.only and not any(part in name for part in options.only):
            continue
        case = make()
        if case:
            records.append(measure(case, options.rounds, 1 if options.quick else 4))
            show(records[-1])
    save(options, {"rows": records})
    if options.markdown:
        print()
        markdown(records)


if __name__ == "__main__":
    main()
