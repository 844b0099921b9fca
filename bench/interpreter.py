"""Times the examples under Triton's interpreter and under naiad, side by side.

    python bench/interpreter.py
    python bench/interpreter.py --triton-python venv-triton/bin/python
    python bench/interpreter.py --only triton

Each side is a process of its own, since both answer to `import triton`. Each gives the median of
whole calls (allocation and launch included) after a first one that compiles and is compared with
NumPy. The exit status is 1 if a ratio is below the least that is asked, or a result is wrong.
"""

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LEAST_RATIO = 50.0


def worker(out):
    """Runs in the process that is measured: one record for each row of the examples' table."""
    sys.path.insert(0, str(ROOT / "examples"))
    import demo

    rows = [row for example in demo.EXAMPLES for row in example.cases()]
    Path(out).write_text(json.dumps([row._asdict() for row in rows]))


def measure(side, python):
    """{(kernel, shape): row} as measured under one side."""
    print(f"measuring under {side} ...", file=sys.stderr)
    command = {"triton": [python], "naiad": [python, "-m", "naiad", "run"]}[side]
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    if side == "triton":
        environment["TRITON_INTERPRET"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "rows.json"
        command += [__file__, "--worker", str(out)]
        if subprocess.run(command, env=environment).returncode != 0:
            sys.exit(f"the examples fail under {side}")
        rows = json.loads(out.read_text())
    wrong = [row["kernel"] for row in rows if not row["error"] <= row["tolerance"]]
    if wrong:
        sys.exit(f"wrong results under {side}: {', '.join(wrong)}")
    return {(row["kernel"], row["shape"]): row for row in rows}


def compare(sides):
    """One record per case: the seconds of each side, and their ratio where both were measured."""
    records = []
    for kernel, shape in next(iter(sides.values())):
        record = {"kernel": kernel, "shape": shape}
        for side, rows in sides.items():
            record[f"{side}_seconds"] = rows[kernel, shape]["seconds"]
        if len(sides) == 2:
            record["ratio"] = record["triton_seconds"] / record["naiad_seconds"]
        records.append(record)
    return records


def show(records):
    print(f"{'kernel':<26}{'shape':<20}{'interpreter':>14}{'naiad':>14}{'ratio':>10}")
    print("─" * 84)
    for record in records:
        line = f"{record['kernel']:<26}{record['shape']:<20}"
        for side in "triton", "naiad":
            seconds = record.get(f"{side}_seconds")
            line += f"{'-' if seconds is None else f'{seconds * 1e3:.3f} ms':>14}"
        print(line + (f"{record['ratio']:>10.0f}" if "ratio" in record else f"{'-':>10}"))


def save(records):
    now = datetime.datetime.now(datetime.timezone.utc)
    content = {
        "time": now.isoformat(timespec="seconds"),
        "processor": processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "rows": records,
    }
    folder = ROOT / "bench" / "results"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"interpreter-{now:%Y%m%dT%H%M%SZ}.json"
    path.write_text(json.dumps(content, indent=2) + "\n")
    print(f"\nwritten to {path.relative_to(ROOT)}")


def processor():
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((x.split(":")[1].strip() for x in lines if x.startswith("model name")), "unknown")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--triton-python", default=sys.executable, help="has triton and torch")
    parser.add_argument("--naiad-python", default=sys.executable, help="has naiad and NumPy")
    parser.add_argument("--only", choices=("triton", "naiad"), help="measure one side alone")
    parser.add_argument("--worker", metavar="FILE", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return worker(options.worker)

    pythons = {"triton": options.triton_python, "naiad": options.naiad_python}
    sides = {s: measure(s, python) for s, python in pythons.items() if options.only in (None, s)}
    records = compare(sides)
    show(records)
    save(records)
    slow = [r for r in records if r.get("ratio", LEAST_RATIO) < LEAST_RATIO]
    if slow:
        slow = (f"{r['kernel']} {r['shape']}" for r in slow)
        sys.exit(f"less than {LEAST_RATIO:g} times as fast as the interpreter: {', '.join(slow)}")


if __name__ == "__main__":
    main()
