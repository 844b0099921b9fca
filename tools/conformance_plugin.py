"""pytest's part of the conformance run: chooses cases and writes down how each ends."""

import importlib.util
import json
import os
import signal
import sys
import time
import zlib

import pytest
from conformance_cases import exclusion

_settings = json.loads(os.environ["CONFORMANCE"])
_record = open(_settings["record"], "a")


if "helpers" in _settings:
    # The tests' own version of Triton's helpers, where the Triton at hand is of another.
    _spec = importlib.util.spec_from_file_location("triton._internal_testing", _settings["helpers"])
    sys.modules[_spec.name] = importlib.util.module_from_spec(_spec)
    _spec.loader.exec_module(sys.modules[_spec.name])


class _Launches:
    """Sums the processor time within `kernel[grid](...)`, compilation included: other processes of the
    machine do not change it."""

    seconds = 0.0
    depth = 0

    @classmethod
    def watch(cls):
        from triton.runtime.jit import JITFunction, KernelInterface

        # In Triton one inherits the other's.
        own = JITFunction.__getitem__ is not KernelInterface.__getitem__
        for owner in (KernelInterface, JITFunction) if own else (KernelInterface,):
            owner.__getitem__ = cls._timed(owner.__getitem__)

    @classmethod
    def _timed(cls, original):
        def getitem(kernel, grid):
            launch = original(kernel, grid)

            def run(*args, **kwargs):
                # What a launch launches in turn is its own time.
                cls.depth += 1
                start = time.process_time()
                try:
                    return launch(*args, **kwargs)
                finally:
                    cls.depth -= 1
                    if cls.depth == 0:
                        cls.seconds += time.process_time() - start

            return run

        return getitem


def _write(kind, case, **facts):
    _record.write(json.dumps({"kind": kind, "case": case, **facts}) + "\n")
    _record.flush()


if _settings.get("check"):
    from naiad import _naiad, check

    _naiad.configure(True, 0)

    class _Collector(check.Collector):
        """What is found in one case. A fault is raised in the case, which is there to see it or fails."""

        def __init__(self, case):
            super().__init__()
            self.case = case

        def launched(self, kernel, findings, failed):
            super().launched(kernel, findings[:-1] if failed else findings, failed)

        def write(self):
            found = [(f.id, f.severity, *(f.place or ("", 0))) for f in self.found()]
            _write("checked", self.case, launches=self.launches, found=found)

    class _Child(_Collector):
        """The same in a process that was forked: it ends without a word, so each launch is written at once."""

        def launched(self, kernel, findings, failed):
            one = _Collector(self.case)
            one.launched(kernel, findings, failed)
            one.write()

    _case_now = None
    os.register_at_fork(after_in_child=lambda: check.collect(_Child(_case_now)))


def _case(nodeid):
    """The name of a case below its file."""
    return nodeid.split("::", 1)[1]


def _done():
    with open(_settings["record"]) as file:
        rows = [json.loads(line) for line in file if line.endswith("\n")]
    return {row["case"] for row in rows}


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    index, count = _settings["shard"]
    done = _done()
    mine, others = [], []
    # By name, so that runs which collect other cases take the same of those that they share.
    chosen = [i for i in items if zlib.crc32(_case(i.nodeid).encode()) % _settings["every"] == 0]
    for item in chosen[index::count]:
        case = _case(item.nodeid)
        reason = exclusion(_settings["file"], case, _settings.get("check", False))
        if case in done:
            others.append(item)
        elif reason is not None:
            _write("excluded", case, reason=reason)
            others.append(item)
        else:
            mine.append(item)
    config.hook.pytest_deselected(items=others)
    _Launches.watch()
    _import_what_is_late()
    items[:] = mine


def _import_what_is_late():
    """torch imports much at the first comparison, whichever case has it."""
    import torch

    torch.testing.assert_close(torch.zeros(1), torch.zeros(1))


_bodies = {}


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem):
    start = time.process_time()
    try:
        return (yield)
    finally:
        _bodies[_case(pyfuncitem.nodeid)] = time.process_time() - start


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    _write("begun", _case(item.nodeid))
    if _settings.get("check"):
        global _case_now
        _case_now = _case(item.nodeid)
        collector = _Collector(_case_now)
        check.collect(collector)

    def too_long(*_):
        raise TimeoutError(f"longer than {_settings['seconds']} seconds")

    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(_settings["seconds"])
    _Launches.seconds = 0.0
    try:
        return (yield)
    finally:
        signal.alarm(0)
        if _settings.get("check"):
            collector.write()


_reports = {}


def pytest_runtest_logreport(report):
    name = _case(report.nodeid)
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
    seconds = _bodies.pop(name, 0.0)
    _write("ended", name, outcome=outcome, why=why, seconds=seconds, launches=_Launches.seconds)


def _shorten(report):
    crash = getattr(report.longrepr, "reprcrash", None)
    return (crash.message if crash else str(report.longrepr))[:1500]
