"""Runs Triton's own tests, unmodified, on Naiad, and writes what came of it.

    python tools/conformance.py PATH [-k EXPRESSION] [-n PROCESSES] [--every N] [--report FILE] [FILE ...]

PATH is a checkout of Triton, or its `python/test/unit`. The Python that runs this needs torch, NumPy,
SciPy and pytest. `--interpreter` runs the same cases on Triton's own interpreter instead, for which
Triton must be installed; a later report compares the times. `--check` checks every launch, and lists
what was found in cases that pass: the language's own tests are right, so an error there is a false one
unless it is shown to be true.
"""

import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from conformance_cases import FILES, exclusion

ROOT = pathlib.Path(__file__).resolve().parent.parent
HERE = pathlib.Path(__file__).resolve().parent
# Makes `import triton` mean Naiad in every Python that is started, those that tests start too.
SITE = "import naiad.alias\nnaiad.alias.install()\n"


def main():
    args = arguments()
    unit = find_unit(args.path)
    results = args.results / ("interpreter" if args.interpreter else "checked" if args.check else "naiad")
    results.mkdir(parents=True, exist_ok=True)
    for name in args.files or FILES:
        if not (unit / name).exists():
            print(f"{name}: not in this checkout")
            continue
        if not args.report_only:
            run_file(unit, name, results, args)
        cases = load(results, name, args.check)
        print(f"{name}: {summary(cases)}", flush=True)
        if args.check:
            show_findings(results, name, cases)
    if args.report and not args.interpreter:
        from conformance_report import write

        write(args.report, args.results, unit)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("path", type=pathlib.Path)
    parser.add_argument("files", nargs="*", help="of python/test/unit; all that are known to fit")
    parser.add_argument("-k", default="", help="pytest's choice by name")
    parser.add_argument("-n", type=int, default=os.cpu_count() or 1, help="processes at a time")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="run one case of N only, the same ones each time")
    parser.add_argument("--seconds", type=int, default=300, help="that one case may take")
    parser.add_argument("--interpreter", action="store_true")
    parser.add_argument("--check", action="store_true", help="check every launch, and list what is found")
    parser.add_argument("--results", type=pathlib.Path, default=ROOT / "target" / "conformance")
    parser.add_argument("--report", type=pathlib.Path, help="write this page, of all results so far")
    parser.add_argument("--report-only", action="store_true", help="run nothing")
    return parser.parse_intermixed_args()


def find_unit(path):
    for unit in (path / "python" / "test" / "unit", path):
        if (unit / "language" / "test_core.py").exists():
            return unit.resolve()
    sys.exit(f"error: no tests of Triton's are in `{path}`: name a checkout, or its python/test/unit")


def run_file(unit, name, results, args):
    """Runs the cases of one file, spread over processes."""
    with tempfile.TemporaryDirectory() as site:
        (pathlib.Path(site) / "sitecustomize.py").write_text(SITE)
        # A run before this one may have had more processes.
        for path in results.glob(f"{flat(name)}.*"):
            path.unlink()
        shards = [Shard(unit, name, results, args, site, index) for index in range(args.n)]
        for shard in shards:
            shard.start()
        for shard in shards:
            shard.finish()


class Shard:
    """Every n-th case of a file, in one process after another: one that dies takes a single case
    with it."""

    def __init__(self, unit, name, results, args, site, index):
        self.unit, self.name, self.args, self.site = unit, name, args, site
        self.record = results / f"{flat(name)}.{index}.jsonl"
        self.record.write_text("")
        self.index = index

    def start(self):
        path = [str(HERE)]
        environment = dict(os.environ)
        # After each op torch's threads would spin for some milliseconds, which whatever comes next is
        # charged with, the launch of a kernel too.
        environment.setdefault("OMP_WAIT_POLICY", "passive")
        if self.args.interpreter:
            environment["TRITON_INTERPRET"] = "1"
        else:
            path += [self.site, str(ROOT / "python")]
        settings = {
            "file": self.name,
            "shard": [self.index, self.args.n],
            "every": self.args.every,
            "record": str(self.record),
            "seconds": self.args.seconds,
            "check": self.args.check,
        }
        helpers = self.unit.parent.parent / "triton" / "_internal_testing.py"
        if self.args.interpreter and helpers.exists():
            settings["helpers"] = str(helpers)
        environment["CONFORMANCE"] = json.dumps(settings)
        environment["PYTHONPATH"] = os.pathsep.join([*path, os.environ.get("PYTHONPATH", "")])
        tests = self.unit.parent
        command = [sys.executable, "-m", "pytest", "-q", "--tb=line"]
        command += ["-p", "conformance_plugin", "-p", "no:cacheprovider", "-c", os.devnull]
        command += [f"--rootdir={tests}", f"--confcutdir={tests}", "--device=cpu", str(self.unit / self.name)]
        command += ["-k", self.args.k] if self.args.k else []
        command += ["-m", "interpreter"] if self.args.interpreter else []
        log = open(self.record.with_suffix(".log"), "a")
        self.process = subprocess.Popen(command, cwd=self.unit, env=environment, stdout=log, stderr=log)

    def finish(self):
        while True:
            code = self.process.wait()
            rows = read(self.record)
            begun = {row["case"] for row in rows if row["kind"] == "begun"}
            ended = {row["case"] for row in rows if row["kind"] == "ended"}
            lost = begun - ended
            if not lost:
                # Where nothing was collected there is something to be said.
                if code not in (0, 1, 5):
                    print(f"  {self.name}: pytest ended with {code}: see {self.record.with_suffix('.log')}")
                return
            with open(self.record, "a") as file:
                for case in lost:
                    row = {"kind": "ended", "case": case, "outcome": "failed", "why": f"the process died ({code})"}
                    file.write(json.dumps({**row, "seconds": 0.0}) + "\n")
            self.start()


def flat(name):
    return name.replace("/", ".").removesuffix(".py")


def read(path):
    # A process that dies may leave half a line.
    rows = []
    for line in path.read_text().splitlines():
        try:
            rows.append(json.loads(line))
        except ValueError:
            pass
    return rows


def load(results, name, checked=False):
    """What became of each case of a file: {case: row}."""
    rows = [row for path in sorted(results.glob(f"{flat(name)}.*.jsonl")) for row in read(path)]
    cases = {}
    for row in rows:
        # The table may have changed since the run.
        reason = exclusion(name, row["case"], checked)
        if reason is not None:
            cases[row["case"]] = {"kind": "excluded", "reason": reason}
        elif row["kind"] == "ended":
            cases[row["case"]] = row
    return cases


def show_findings(results, name, cases):
    """Counts the launches and the findings of cases that pass, by kind and line."""
    rows = [row for path in sorted(results.glob(f"{flat(name)}.*.jsonl")) for row in read(path)]
    rows = [row for row in rows if row["kind"] == "checked" and cases.get(row["case"], {}).get("outcome") == "passed"]
    counts = collections.Counter()
    for row in rows:
        # Of each kind and line one for each case.
        counts.update({tuple(found) for found in row["found"]})
    print(f"  {sum(row['launches'] for row in rows)} launches checked")
    for (id, severity, file, line), n in sorted(counts.items(), key=lambda x: (x[0][1], -x[1])):
        print(f"  {severity}[{id}] in {n} cases at {pathlib.Path(file).name}:{line}")


def summary(cases):
    counts = collections.Counter(row.get("outcome", "excluded") for row in cases.values())
    return ", ".join(f"{count} {what}" for what, count in sorted(counts.items())) or "nothing"


if __name__ == "__main__":
    main()
