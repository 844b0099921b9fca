"""pytest's part of the conformance run: chooses cases and writes down how each ends."""

import json
import os
import re
import signal

import pytest
from conformance_cases import EXCLUDED

_settings = json.loads(os.environ["CONFORMANCE"])
_record = open(_settings["record"], "a")


def _write(kind, case, **facts):
    _record.write(json.dumps({"kind": kind, "case": case, **facts}) + "\n")
    _record.flush()


def _done():
    with open(_settings["record"]) as file:
        rows = [json.loads(line) for line in file if line.endswith("\n")]
    return {row["case"] for row in rows}


def exclusion(file, name):
    """Why a case is not run; None if it is."""
    for pattern, cases, reason in EXCLUDED:
        if re.fullmatch(pattern, file) and re.fullmatch(cases, name):
            return reason
    return None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    index, count = _settings["shard"]
    done = _done()
    mine, others = [], []
    for item in items[index::count]:
        reason = exclusion(_settings["file"], item.name)
        if item.name in done:
            others.append(item)
        elif reason is not None:
            _write("excluded", item.name, reason=reason)
            others.append(item)
        else:
            mine.append(item)
    config.hook.pytest_deselected(items=others)
    items[:] = mine


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    _write("begun", item.name)

    def too_long(*_):
        raise TimeoutError(f"longer than {_settings['seconds']} seconds")

    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(_settings["seconds"])
    try:
        return (yield)
    finally:
        signal.alarm(0)


_reports = {}


def pytest_runtest_logreport(report):
    name = report.nodeid.split("::", 1)[1]
    phases = _reports.setdefault(name, {})
    phases[report.when] = report
    if report.when != "teardown":
        return
    del _reports[name]
    outcome, why = "passed", ""
    for phase in phases.values():
        if phase.failed:
            outcome, why = "failed", _shorten(phase)
            break
        if phase.skipped:
            # A case that Triton expects to fail is as little a statement as one that it skips.
            outcome = "xfailed" if hasattr(phase, "wasxfail") else "skipped"
            why = getattr(phase, "wasxfail", "") or str(phase.longrepr[-1])
            break
    call = phases.get("call")
    _write("ended", name, outcome=outcome, why=why, seconds=call.duration if call else 0.0)


def _shorten(report):
    crash = getattr(report.longrepr, "reprcrash", None)
    return (crash.message if crash else str(report.longrepr))[:1500]
