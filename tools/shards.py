"""Runs tests over processes that may die: each case has a result, or is told to have had none.

    python tools/shards.py tests/ops --shards 15 --seconds 400 --json ops.json

Each process runs the cases whose names hash to it. One that ends in the middle of a case (a GPU's broken
context ends it) or takes too long over it is replaced by another that goes on behind that case. Of pytest it
needs nothing else, so that it runs where nothing can be installed. The end is a summary: what failed, by its
reasons, and what did not run. The exit code is 0 if every case ran and none failed. Arguments that are not
known here are pytest's.
"""

import argparse
import collections
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from pathlib import Path

import pytest

import gpu_summary

# What a process says of a GPU that nothing can be done with any more: later cases would fail of it too.
STICKY = re.compile(r"CUDA error: (?!out of memory)|CUDA_ERROR_(?!OUT_OF_MEMORY|INVALID_)\w+")
# Starts of one shard without a case being begun, after which it is given up.
FRUITLESS = 2


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shards", type=int, default=max((os.cpu_count() or 2) - 1, 1), help="processes")
    parser.add_argument("--seconds", type=float, default=3600, help="for everything")
    parser.add_argument("--case-seconds", type=float, default=60, help="for one case")
    parser.add_argument("--start-seconds", type=float, default=240, help="for a process until its first case")
    parser.add_argument("--json", help="writes what failed, how, and what did not run")
    args, rest = parser.parse_known_args()
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="naiad-shards-") as folder:
        shards = [Shard(index, args, rest, Path(folder), start + args.seconds) for index in range(args.shards)]
        for shard in shards:
            shard.start()
        said = start
        while any(shard.is_alive() for shard in shards):
            time.sleep(0.1)
            if time.monotonic() - said > 20:
                said = time.monotonic()
                print(f"{said - start:4.0f} s: {counted(results_of(shards))}", flush=True)
        for shard in shards:
            shard.join()
    return tell(shards, args, time.monotonic() - start)


# The process that is asked ---------------------------------------------------------------------------


class Shard(threading.Thread):
    """One part of the cases, and the processes that run it one after the other."""

    def __init__(self, index, args, rest, folder, deadline):
        super().__init__(daemon=True)
        self.args, self.rest, self.deadline = args, rest, deadline
        self.name = f"{index}/{args.shards}"
        self.lines = folder / f"{index}.jsonl"
        self.output = folder / f"{index}.txt"
        self.cases, self.results, self.trouble, self.starts = [], {}, [], 0

    def run(self):
        fruitless = 0
        while fruitless < FRUITLESS and time.monotonic() < self.deadline:
            before = len(self.results)
            ended = self.follow()
            if ended is None:
                return
            fruitless = 0 if len(self.results) > before else fruitless + 1
            if fruitless == FRUITLESS:
                self.trouble.append(f"shard {self.name} does not get to a case: {ended}")

    def follow(self):
        """Runs one process; gives why it ended before its cases did."""
        self.starts += 1
        command = [
            *(sys.executable, "-m", "pytest", "-qq", "--tb=short", "--no-summary", "-p", "no:cacheprovider"),
            # What is written to the standard error as a process dies is not to be captured.
            *("--capture=sys", "--continue-on-collection-errors", "-p", "shards"),
            # In one word each: a path of its own would be taken for a test's folder, and the repository's settings missed.
            *(f"--shard={self.name}", f"--shard-lines={self.lines}", *self.rest),
        ]
        path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
        first = self.lines.stat().st_size if self.lines.exists() else 0
        began, since = None, time.monotonic()
        with open(self.output, "w") as output:
            process = subprocess.Popen(
                command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": path}, start_new_session=True,
            )
        ended = None
        while True:
            code = process.poll()
            text, first = read_lines(self.lines, first)
            for line in text:
                since = time.monotonic()
                if "cases" in line:
                    self.cases = self.cases or line["cases"]
                elif "begin" in line:
                    began = line["begin"]
                elif "broken" in line:
                    self.trouble.append(f"{line['broken']}: {line['why']}")
                else:
                    self.results[line["case"]] = line
                    began = None
            if code is not None:
                if code in (0, 1, 5) and began is None:
                    return None
                ended = f"ended its process with {code}: {last_line(self.output)}"
                break
            now = time.monotonic()
            most = self.args.case_seconds if began else self.args.start_seconds
            if now > self.deadline:
                ended = "no more time"
            elif now - since > most:
                ended = f"took more than {most:.0f} s"
            if ended is not None:
                kill(process)
                break
            time.sleep(0.05)
        if began is not None and ended != "no more time":
            self.results[began] = {"case": began, "outcome": "ended", "why": ended}
            with open(self.lines, "a") as file:
                file.write(json.dumps(self.results[began]) + "\n")
        return ended


def read_lines(path, first):
    """The whole lines of a file behind a place in it, and the place behind them."""
    if not path.exists():
        return [], first
    with open(path, "rb") as file:
        file.seek(first)
        data = file.read()
    whole = data[: data.rfind(b"\n") + 1]
    return [json.loads(line) for line in whole.splitlines()], first + len(whole)


def last_line(path):
    lines = [line for line in path.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1].strip()[:300] if lines else "it said nothing"


def kill(process):
    """With the processes that a case started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def results_of(shards):
    return [result for shard in shards for result in list(shard.results.values())]


def counted(results):
    counts = collections.Counter(result["outcome"] for result in results)
    return ", ".join(f"{counts[kind]} {kind}" for kind in ("passed", "skipped", "failed", "ended") if counts[kind])


def tell(shards, args, seconds):
    results = results_of(shards)
    bad = sorted((r for r in results if r["outcome"] in ("failed", "ended")), key=lambda result: result["case"])
    missing = [case for shard in shards for case in shard.cases if case not in shard.results]
    # A module that cannot be imported is told of by every shard.
    trouble = list(dict.fromkeys(line for shard in shards for line in shard.trouble))
    again = sum(max(shard.starts - 1, 0) for shard in shards)
    if args.json:
        found = {
            "seconds": round(seconds, 1), "shards": args.shards, "started again": again, "trouble": trouble,
            "counts": collections.Counter(result["outcome"] for result in results),
            "bad": bad, "not run": missing,
            "slowest": sorted(results, key=lambda result: -result.get("seconds", 0))[:20],
        }
        Path(args.json).write_text(json.dumps(found, indent=1))
    gpu_summary.write(print, [(result["why"], result["case"]) for result in bad])
    for line in trouble:
        print(line)
    for case in missing[:10]:
        print(f"not run: {case}")
    print(
        f"{counted(results) or 'nothing ran'}, {len(missing)} not run, in {seconds:.0f} s"
        f" over {args.shards} processes, {again} of them started again"
    )
    return 1 if bad or missing or trouble or not results else 0


# The process that runs cases: a plugin of pytest's ---------------------------------------------------


def pytest_addoption(parser):
    parser.addoption("--shard", default="0/1", help="which part of how many")
    parser.addoption("--shard-lines", help="a file for results; cases whose results it has are not run again")


def pytest_configure(config):
    config.pluginmanager.register(Reporter(config), "naiad-shard")


class Reporter:
    def __init__(self, config):
        self.part, self.parts = map(int, config.getoption("--shard").split("/"))
        path = Path(config.getoption("--shard-lines"))
        self.done = {line["case"] for line in read_lines(path, 0)[0] if "case" in line}
        self.file = open(path, "a")
        self.outcome = None

    def say(self, **line):
        self.file.write(json.dumps(line) + "\n")
        self.file.flush()

    def pytest_collectreport(self, report):
        if report.failed:
            self.say(broken=report.nodeid, why=gpu_summary.reason(str(report.longrepr)))

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config, items):
        """Behind `-k` and its like."""
        mine = [item for item in items if zlib.crc32(item.nodeid.encode()) % self.parts == self.part]
        self.say(cases=[item.nodeid for item in mine])
        items[:] = [item for item in mine if item.nodeid not in self.done]

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report):
        """No dots, in the midst of which last words would stand."""
        return report.outcome, "", ""

    def pytest_runtest_logstart(self, nodeid):
        self.outcome = {"case": nodeid, "outcome": "passed", "seconds": 0.0}
        self.say(begin=nodeid)

    def pytest_runtest_logreport(self, report):
        self.outcome["seconds"] = round(self.outcome["seconds"] + report.duration, 3)
        if report.failed:
            text = str(report.longrepr)
            self.outcome.setdefault("why", gpu_summary.reason(text))
            self.outcome.update(outcome="failed", sticky=bool(STICKY.search(text)))
        elif report.skipped and self.outcome["outcome"] == "passed":
            self.outcome["outcome"] = "skipped"

    def pytest_runtest_logfinish(self):
        sticky = self.outcome.pop("sticky", False)
        self.say(**self.outcome)
        if sticky:
            os._exit(70)


if __name__ == "__main__":
    sys.exit(main())
