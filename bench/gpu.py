"""Kernels on a GPU: Naiad beside Triton, torch and torch.compile, each verified before it is timed.

    python bench/gpu.py --json gpu.json --markdown gpu.md
    python bench/gpu.py --quick                 # without torch.compile, and the largest sizes of each once
    python bench/gpu.py --only matmul
    python bench/gpu.py --small                 # tiny sizes: tries the program itself, on a CPU too

Times are milliseconds, medians between events of the GPU; caches are flushed before each run. What runs
here is not what ends the program: each case is measured in a process that is replaced when a kernel breaks
the GPU's context or takes too long, and what cannot be compiled is said in its row.
"""

import argparse
import datetime
import importlib.util
import json
import os
import platform
import select
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parent / "examples"
MODULES = ("gelu", "bias_add", "row_stats", "softmax", "row_sum", "transpose", "gpu_kernels")
SIDES = ("naiad", "triton", "torch", "torch.compile")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", help="writes everything that was measured")
    parser.add_argument("--markdown", help="writes the table")
    parser.add_argument("--only", default="", help="cases whose name has this in it; several between commas")
    parser.add_argument("--quick", action="store_true", help="no torch.compile, and shorter runs")
    parser.add_argument("--small", action="store_true", help="tiny sizes")
    parser.add_argument("--seconds", type=float, default=470, help="no case is begun after as many")
    parser.add_argument("--case-seconds", type=float, default=75, help="a case that takes longer is given up")
    parser.add_argument("--sides", default=",".join(SIDES))
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker is not None:
        return work(args)
    return lead(args)


# The process that is asked ---------------------------------------------------------------------------


def lead(args):
    start = time.monotonic()
    rows, facts, first = [], {}, 0
    while True:
        lines, ended = follow(args, first, start)
        for line in lines:
            if "facts" in line:
                facts.update(line["facts"])
            elif "case" in line:
                rows.append(line)
        began = [line["begin"] for line in lines if "begin" in line]
        if ended == "done" or not began:
            if ended not in ("done", "no more time"):
                print(f"the measuring process did not start: {ended}", file=sys.stderr)
            break
        # It died in the middle of this one.
        index, name = began[-1]
        if not rows or rows[-1]["case"] != name:
            rows.append({"case": name, "group": "", "error": ended})
            show(rows[-1])
        first = index + 1
        if ended == "no more time":
            break
    result = {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "arguments": sys.argv[1:],
        "seconds": round(time.monotonic() - start, 1),
        "facts": facts,
        "rows": rows,
    }
    if args.json:
        Path(args.json).write_text(json.dumps(result, indent=1))
    text = markdown(result)
    if args.markdown:
        Path(args.markdown).write_text(text)
    print("\n" + text)
    return 0


def follow(args, first, start):
    """Runs a measuring process from a case on; gives its lines, and how it ended."""
    command = [sys.executable, __file__, *sys.argv[1:], "--worker", str(first)]
    environment = {**os.environ, "EXAMPLES_ON": "cuda", "PYTHONUNBUFFERED": "1"}
    lines = []
    with tempfile.TemporaryDirectory() as cache, tempfile.TemporaryFile("w+") as errors:
        # Compilations are to be cold.
        for name in ("NAIAD_CACHE_DIR", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR"):
            environment[name] = os.path.join(cache, name)
        environment["CUDA_CACHE_DISABLE"] = "1"
        worker = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment)
        ended, since = None, time.monotonic()
        while ended is None:
            ready, _, _ = select.select([worker.stdout], [], [], 1.0)
            if ready:
                text = worker.stdout.readline()
                if not text:
                    worker.wait()
                    break
                try:
                    line = json.loads(text)
                except ValueError:
                    print(text, end="")
                    continue
                lines.append(line)
                since = time.monotonic()
                if "case" in line:
                    show(line)
            # Before the first case stand the imports, which take as long as they take.
            most = args.case_seconds if any("begin" in line for line in lines) else 180
            if not ready and time.monotonic() - since > most:
                ended = f"took more than {most:.0f} s"
            if ended is None and "begin" not in (lines[-1] if lines else {}) and time.monotonic() - start > args.seconds:
                ended = "no more time"
        if ended is not None:
            worker.kill()
            worker.wait()
            return lines, ended
        errors.seek(0)
        said = errors.read().strip().splitlines()
        if worker.returncode == 0:
            return lines, "done"
        return lines, said[-1] if said else f"ended with {worker.returncode}"


def show(row):
    text = row.get("error") or "  ".join(
        f"{side} {found['ms']:.4g}" if "ms" in found else f"{side}: {found['error'].splitlines()[0][:70]}"
        for side, found in row["sides"].items()
    )
    print(f"{row['case']:<36} {text}", flush=True)


def markdown(result):
    facts = result["facts"]
    lines = [f"# {facts.get('device', 'no device')}, {result['date'][:10]}", ""]
    lines += [f"{name}: {value}  " for name, value in facts.items() if name != "device"]
    lines += ["", "| case | naiad ms | GB/s or TFLOP/s | Triton ms | naiad / Triton | torch ms | torch.compile ms |"]
    lines += ["|---|---|---|---|---|---|---|"]
    for row in result["rows"]:
        if "error" in row:
            lines.append(f"| {row['case']} | {cell(row['error'])} | | | | | |")
            continue
        sides = row["sides"]
        ms = {side: found.get("ms") for side, found in sides.items()}
        ours, theirs = ms.get("naiad"), ms.get("triton")
        rate = ""
        if ours and row["bytes"]:
            rate = f"{row['bytes'] / ours / 1e6:.0f}"
        elif ours and row["flops"]:
            rate = f"{row['flops'] / ours / 1e9:.0f}"
        ratio = f"{ours / theirs:.2f}" if ours and theirs else ""
        cells = [said(sides.get("naiad")), rate, said(sides.get("triton")), ratio]
        cells += [said(sides.get("torch")), said(sides.get("torch.compile"))]
        lines.append(f"| {row['case']} | {' | '.join(cells)} |")
    lines += ["", "Cold compilation, ms: Naiad's source to PTX, PTX to machine code, loading it; all of Triton's.", ""]
    lines += ["| case | Naiad to PTX | driver | load | first launch | Triton's first launch |", "|---|---|---|---|---|---|"]
    for row in result["rows"]:
        ours, theirs = (row.get("sides", {}).get(side, {}) for side in ("naiad", "triton"))
        if "times" in ours or "first_ms" in theirs:
            times = ours.get("times", {})
            parts = [f"{times[k] * 1e3:.1f}" if k in times else "" for k in ("compile", "link", "load")]
            parts += [f"{side['first_ms']:.0f}" if "first_ms" in side else "" for side in (ours, theirs)]
            lines.append(f"| {row['case']} | {' | '.join(parts)} |")
    return "\n".join(lines) + "\n"


def said(found):
    if not found:
        return ""
    return f"{found['ms']:.4g}" if "ms" in found else cell(found["error"])


def cell(text):
    return text.strip().splitlines()[0][:90].replace("|", "/")


# The process that measures ---------------------------------------------------------------------------


def say(**line):
    print(json.dumps(line), flush=True)


def load(compiler, language):
    """The kernels' modules, under one compiler: there `triton` is this one."""
    names = {"triton": compiler, "triton.language": language}
    before = {name: sys.modules.get(name) for name in (*names, *MODULES)}
    sys.modules.update(names)
    found = {}
    try:
        for name in MODULES:
            folder = HERE if name == "gpu_kernels" else EXAMPLES
            spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
            module = importlib.util.module_from_spec(spec)
            sys.modules[name] = module
            spec.loader.exec_module(module)
            found[name] = module
    finally:
        for name, module in before.items():
            if module is None:
                sys.modules.pop(name, None)
            else:
                sys.modules[name] = module
    return found


def work(args):
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cpu":
        os.environ["EXAMPLES_ON"] = "cpu"
    sys.path[:0] = [str(HERE), str(EXAMPLES)]
    import naiad
    import naiad.language
    import naiad.testing

    from gpu_cases import cases

    wanted = args.sides.split(",")
    compilers = {}
    if "naiad" in wanted:
        compilers["naiad"] = load(naiad, naiad.language)
    try:
        import triton
        import triton.language

        if "triton" in wanted and device == "cuda":
            compilers["triton"] = load(triton, triton.language)
    except ImportError:
        triton = None
    if args.worker == 0:
        say(facts=facts(torch, naiad, triton, device))
        if device == "cuda":
            say(facts=launches(compilers, torch))
    for index, (name, make) in enumerate(cases(device, args.small)):
        if index < args.worker or not any(part in name for part in args.only.split(",")):
            continue
        say(begin=[index, name])
        torch.manual_seed(index)
        try:
            case = make()
            row = measure(case, compilers, args, wanted, torch, naiad)
        except Exception as e:
            row = {"error": describe(e)}
        say(case=name, **row)
        case = None
        if device == "cuda":
            # A broken context fails here, and ends the process.
            torch.cuda.synchronize()
            torch.cuda.empty_cache()


def facts(torch, naiad, triton, device):
    found = {
        "device": torch.cuda.get_device_name() if device == "cuda" else platform.processor() or "CPU",
        "torch": torch.__version__,
        "triton": triton.__version__ if triton else "not installed",
        "naiad": naiad.__version__,
    }
    if device == "cuda":
        from naiad.testing import do_bench

        x = torch.empty(1 << 30, dtype=torch.float32, device=device)
        y = torch.empty_like(x)
        ms = do_bench(lambda: y.copy_(x), return_mode="median")
        found["copy GB/s"] = round(8 * x.numel() / ms / 1e6)
    return found


def launches(compilers, torch):
    """Microseconds of the host for one launch of a kernel of four arguments."""
    x, y = torch.zeros(1024, device="cuda"), torch.zeros(1024, device="cuda")
    found = {}
    for name, modules in compilers.items():
        kernel = modules["gpu_kernels"].copy_kernel
        try:
            kernel[(1,)](x, y, 1024, BLOCK=1024)
            best = []
            for _ in range(40):
                torch.cuda.synchronize()
                start = time.perf_counter()
                for _ in range(200):
                    kernel[(1,)](x, y, 1024, BLOCK=1024)
                best.append((time.perf_counter() - start) / 200 * 1e6)
            torch.cuda.synchronize()
            found[f"launch, {name}, us"] = f"{min(best):.2f} (median {statistics.median(best):.2f})"
        except Exception as e:
            found[f"launch, {name}, us"] = describe(e)
    return found


def measure(case, compilers, args, wanted, torch, naiad):
    want = case.want()
    sides = {}
    for name, modules in compilers.items():
        sides[name] = best_of(case, case.ours(modules), want, args, torch, naiad)
    if "torch" in wanted and case.eager:
        sides["torch"] = timed(case.eager, args, naiad)
    if "torch.compile" in wanted and case.compiled and not args.quick:
        function, arguments = case.compiled
        try:
            torch._dynamo.reset()
            run = torch.compile(function)
            start = time.perf_counter()
            run(*arguments)
            first = (time.perf_counter() - start) * 1e3
            sides["torch.compile"] = {**timed(lambda: run(*arguments), args, naiad), "first_ms": first}
        except Exception as e:
            sides["torch.compile"] = {"error": describe(e)}
    return {"group": case.group, "bytes": case.bytes, "flops": case.flops, "sides": sides}


def best_of(case, configs, want, args, torch, naiad):
    """The fastest of the configurations that give the right results."""
    found = {}
    for name, run in configs.items():
        for out in case.out:
            out.fill_(float("nan"))
        try:
            start = time.perf_counter()
            compiled = run()
            if case.out[0].is_cuda:
                torch.cuda.synchronize()
            first = (time.perf_counter() - start) * 1e3
        except Exception as e:
            if broken(torch, case):
                raise
            found[name] = {"error": describe(e)}
            continue
        off = max(error(got, right) for got, right in zip(case.out, want))
        # Negated, since a NaN is not larger.
        if not off <= case.tolerance:
            found[name] = {"error": f"wrong: off by {off:.2e}, where {case.tolerance:.0e} is allowed"}
            continue
        found[name] = {**timed(run, args, naiad), "first_ms": first, "off": off, **about(compiled)}
    right = {name: side for name, side in found.items() if "ms" in side}
    if not right:
        return {"error": next(iter(found.values()))["error"], "all": found}
    best = min(right, key=lambda name: right[name]["ms"])
    return {**right[best], "config": best, "all": found if len(found) > 1 else {}}


def broken(torch, case):
    if not case.out[0].is_cuda:
        return False
    try:
        torch.cuda.synchronize()
        return False
    except Exception:
        return True


def about(compiled):
    """What a launch returned says of the code. Wrappers of the examples return their result."""
    found = {}
    for name in ("n_regs", "n_spills"):
        value = getattr(compiled, name, None)
        if isinstance(value, int):
            found[name] = value
    times = getattr(compiled, "times", None)
    if isinstance(times, dict) and times:
        found["times"] = times
    return found


def error(got, want):
    """The largest difference, as a part of the largest magnitude."""
    difference = (got.double() - want.double()).abs().max().item()
    return difference / max(want.double().abs().max().item(), 1e-30)


def timed(run, args, naiad):
    warmup, rep = (5, 40) if args.quick else (20, 120)
    if args.small:
        warmup, rep = 1, 5
    try:
        low, ms, high = naiad.testing.do_bench(run, warmup, rep, quantiles=[0.25, 0.5, 0.75])
    except Exception as e:
        return {"error": describe(e)}
    return {"ms": ms, "quartiles": [low, high]}


def describe(e):
    text = str(e).strip() or type(e).__name__
    return f"{type(e).__name__}: {text}"[:2000]


if __name__ == "__main__":
    sys.exit(main())
