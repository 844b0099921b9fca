"""Writes docs/conformance.md from the results of conformance runs."""

import collections
import re

from conformance import load
from conformance_cases import EXCLUDED, FILES, explanation

HEAD = """# Conformance: Triton's own tests on Naiad

Written by `cargo run -p xtask -- conformance PATH`, where PATH is a checkout of Triton; do not edit.
The tests are run as they are, with `--device=cpu`, on a machine without a GPU, and nothing of them is
part of this repository. The Python in `NAIAD_PYTHON` (else `.venv/bin/python`) needs torch, NumPy,
SciPy and pytest. Behind PATH may stand `-k EXPRESSION`, `-n PROCESSES` and the files to run.

What comes of Triton's tutorials is in docs/scripts.md.

Last written from the tests of Triton's fork for CPUs, which are those of release 3.7 with more skips.

A case is *skipped* or *expected to fail* where the test itself says so: it asks for a particular GPU, or
spares the fork's own compiler. A case is *excluded* where tools/conformance_cases.py says so; the reasons
are below.
"""


def write(page, results, unit):
    ours = {name: load(results / "naiad", name) for name in FILES}
    ours = {name: cases for name, cases in ours.items() if cases}
    text = [HEAD, by_file(ours), failures(ours), exclusions(ours), skips(ours)]
    theirs = {name: load(results / "interpreter", name) for name in FILES}
    text.append(times(ours, theirs))
    page.write_text("\n".join(part for part in text if part))


def count(cases, outcome):
    return sum(row.get("outcome", "excluded") == outcome for row in cases.values())


def table(heads, rows):
    lines = ["| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def share(passed, failed):
    return f"{100 * passed / (passed + failed):.1f} %" if passed + failed else "–"


def by_file(ours):
    columns = ["passed", "failed", "skipped", "xfailed", "excluded"]
    rows = []
    for name, cases in ours.items():
        numbers = [count(cases, what) for what in columns]
        rows.append([f"`{name}`", *numbers, share(*numbers[:2])])
    sums = [sum(row[i] for row in rows) for i in range(1, 6)]
    rows.append(["**all**", *sums, f"**{share(*sums[:2])}**"])
    heads = ["file", "passed", "failed", "skipped", "expected to fail", "excluded", "passed of those run"]
    return "## Results\n\n" + table(heads, rows)


def failures(ours):
    found = collections.Counter()
    example = {}
    for name, cases in ours.items():
        for case, row in cases.items():
            if row.get("outcome") == "failed":
                key = name, case.split("[")[0]
                found[key] += 1
                example.setdefault(key, (case, row["why"]))
    rows = []
    for key, number in found.most_common():
        case, why = example[key]
        row = [f"`{key[0]}`", f"`{cell(case)}`", number, cell(first_line(why)), explanation(key[0], case)]
        rows.append(row)
    heads = ["file", "a case of it", "cases", "what it says", "why"]
    return "## What fails\n\n" + table(heads, rows) if rows else ""


def first_line(why):
    lines = [line.strip() for line in why.splitlines() if line.strip()]
    # Behind the bare name of an exception stands its message.
    if len(lines) > 1 and re.fullmatch(r"[\w.]+:", lines[0]):
        return lines[0] + " " + lines[1]
    return lines[0] if lines else ""


def cell(text):
    # The paths of whoever ran this are nobody's business.
    text = re.sub(r"/\S*/(?=[\w.-]+)", "", text)
    text = re.sub(r"0x[0-9a-f]+", "0x…", text)
    return (text if len(text) <= 160 else text[:160] + "…").replace("|", "\\|")


def exclusions(ours):
    numbers = collections.Counter()
    for name, cases in ours.items():
        numbers.update(row["reason"] for row in cases.values() if row["kind"] == "excluded")
    rows = [[f"`{file}`", f"`{cell(cases)}`", reason] for file, cases, reason in EXCLUDED]
    counts = [[reason, number] for reason, number in numbers.most_common()]
    text = "## What is excluded, and why\n\n" + table(["reason", "cases"], counts)
    return text + "\n" + table(["file", "cases (a regular expression)", "reason"], rows)


def skips(ours):
    reasons = collections.Counter()
    for cases in ours.values():
        for row in cases.values():
            if row.get("outcome") in ("skipped", "xfailed"):
                reasons[cell(row["why"].removeprefix("Skipped: ").removeprefix("reason: "))] += 1
    return "## Why tests skip themselves\n\n" + table(["reason", "cases"], reasons.most_common(30)) if reasons else ""


def times(ours, theirs):
    rows = []
    for name, cases in theirs.items():
        mine = ours.get(name, {})
        both = [
            case
            for case, row in cases.items()
            if row.get("outcome") == "passed" and mine.get(case, {}).get("outcome") == "passed"
        ]
        if both:
            parts = [(side, part) for part in ("launches", "seconds") for side in (mine, cases)]
            seconds = [sum(side[case].get(part, 0.0) for case in both) for side, part in parts]
            rows.append([f"`{name}`", len(both), *seconds])
    if not rows:
        return ""
    rows.append(["**all**", *(sum(row[i] for row in rows) for i in range(1, 6))])
    shown = [[name, n, *beside(*seconds[:2]), *beside(*seconds[2:])] for name, n, *seconds in rows]
    heads = ["file", "cases that pass on both", *["Naiad, s", "interpreter, s", "ratio"] * 2]
    return TIMES + table(heads, shown)


TIMES = """## Time beside Triton's interpreter

Processor time of all threads, on two cores of one machine; torch's threads sleep where they have nothing to do,
for both (`OMP_WAIT_POLICY=passive`). The first three columns are the time within `kernel[grid](...)`,
compilation included. The other three are that of the tests' bodies, most of which is their own: inputs are made
and results compared in NumPy, torch and Python.

"""


def beside(mine, theirs):
    return f"{mine:.2f}", f"{theirs:.2f}", f"{mine / theirs:.2f}" if theirs else "–"
