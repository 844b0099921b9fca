"""The pytest plugin: ``pytest --naiad`` runs a suite with `triton` meaning Naiad, and cuda the CPU.

Without the option it does nothing.
"""

import time

import pytest

from . import _naiad, alias, check, cuda, spawn


def pytest_addoption(parser):
    group = parser.getgroup("naiad", "kernels without a GPU (naiad)")
    # The word behind a bare `--naiad` is a path of tests, so the mode is part of the option's name.
    for option, mode, what in [
        ("--naiad", "run", "run Triton kernels by Naiad, and serve `cuda` by the CPU"),
        ("--naiad=run", "run", "the same"),
        ("--naiad=check", "check", "and check every launch: what is wrong with one fails its test"),
    ]:
        group.addoption(option, action="store_const", const=mode, dest="naiad", default=None, help=what)
    group.addoption(
        "--naiad-gpu", metavar="NAME", default=None, help=f"the GPU that `cuda` stands for: {', '.join(cuda.gpus.GPUS)}"
    )
    group.addoption(
        "--naiad-stats",
        action="store_true",
        default=False,
        help="count each test's launches and programs, and time compilation and launches",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config):
    # Before any conftest.py, which may import triton.
    options = early_config.known_args_namespace
    if options.naiad is None:
        for name in ("naiad_gpu", "naiad_stats"):
            if getattr(options, name):
                raise pytest.UsageError(f"`--{name.replace('_', '-')}` needs `--naiad`")
        return
    try:
        # The header of the run tells of it.
        cuda.install(options.naiad_gpu, tell=False, always=options.naiad == "check")
        alias.install()
    except (ValueError, ImportError) as e:
        raise pytest.UsageError(f"--naiad: {e}") from e
    spawn.inherit(options.naiad == "check", options.naiad_gpu)
    _naiad.configure(options.naiad == "check", 0)
    if options.naiad == "check":
        check.watch_memory()


def pytest_configure(config):
    if config.option.naiad is not None and config.option.naiad_stats:
        config.pluginmanager.register(_Stats(), "naiad-stats")
    if config.option.naiad == "check":
        config.pluginmanager.register(_Checks(config.option.verbose > 0), "naiad-checks")


def pytest_report_header(config):
    if config.option.naiad is None:
        return None
    gpu = cuda.gpus.chosen(config.option.naiad_gpu)
    mode = ", every launch checked" if config.option.naiad == "check" else ""
    return f"naiad: kernels run by naiad {_naiad.__version__}{mode}; without a GPU `cuda` is the CPU, as {gpu.name}"


class _Collector(check.Collector):
    """What is found of one phase of a test. A fault is raised in the test, which may be there to see it."""

    def launched(self, kernel, findings, failed):
        super().launched(kernel, findings[:-1] if failed else findings, failed)


class _Checks:
    """Fails tests by what is found of their launches, and shows at the end what fails none. Workers send
    along with their reports what they found."""

    def __init__(self, verbose):
        self.verbose = verbose
        self.launches = 0
        self.phase = None
        # By severity and text: the tests.
        self.found = {}

    def _check(self, item, when):
        self.phase = phase = _Collector()
        before = check.collect(phase)
        failed = True
        try:
            result = yield
            failed = False
            return result
        finally:
            check.collect(before)
            errors = [f.human().strip("\n") for f in phase.found("error")]
            if errors and failed:
                item.add_report_section(when, "naiad check", "\n\n".join(errors))
            elif errors:
                pytest.fail("\n\n".join(errors), pytrace=False)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item):
        return (yield from self._check(item, "setup"))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item):
        return (yield from self._check(item, "call"))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item):
        return (yield from self._check(item, "teardown"))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item, call):
        report = yield
        if self.phase is not None:
            rest = [(f.severity, f.human().strip("\n")) for f in self.phase.found("note", "warning")]
            # Reports travel from workers with whatever stands in them.
            report.naiad_found = {"launches": self.phase.launches, "rest": rest}
            self.phase = None
        return report

    def pytest_runtest_logreport(self, report):
        found = getattr(report, "naiad_found", None)
        if found is None:
            return
        self.launches += found["launches"]
        for severity, text in found["rest"]:
            self.found.setdefault((severity, text), []).append(report.nodeid)

    def pytest_terminal_summary(self, terminalreporter):
        write = terminalreporter.write_line
        terminalreporter.section("checked by naiad")
        write(f"{self.launches} {'launch' if self.launches == 1 else 'launches'} checked")
        notes = 0
        for (severity, text), tests in sorted(self.found.items(), key=lambda row: row[0][0] == "note"):
            if severity == "note" and not self.verbose:
                notes += 1
                continue
            others = f" and {len(tests) - 1} more" if len(tests) > 1 else ""
            write(f"\nin {tests[0]}{others}:\n{text}")
        if notes:
            write(f"\nnotes, which `-v` shows: {notes}")


class _Stats:
    """Counts what kernels do in each test. Workers send their counts along with their reports."""

    def __init__(self):
        self.rows = []
        self.current = None

    def pytest_sessionstart(self, session):
        from .runtime.jit import JITFunction

        run = JITFunction.run

        def counted(function, *args, grid, warmup=False, **kwargs):
            if self.current is None:
                return run(function, *args, grid=grid, warmup=warmup, **kwargs)
            return self._count(run, function, args, grid, warmup, kwargs)

        JITFunction.run = counted

    def _count(self, run, function, args, grid, warmup, kwargs):
        count = self.current
        start = time.perf_counter()
        # What is compiled already is found at once.
        function._kernel.compile(False, args, kwargs)
        count["compile"] += time.perf_counter() - start
        if warmup:
            return run(function, *args, grid=grid, warmup=True, **kwargs)
        sizes = grid(function.bind(*args, **kwargs)[0]) if callable(grid) else grid
        programs = 1
        for size in sizes:
            programs *= int(size)
        count["launches"] += 1
        count["programs"] += programs
        start = time.perf_counter()
        try:
            return run(function, *args, grid=tuple(sizes), **kwargs)
        finally:
            count["run"] += time.perf_counter() - start

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        self.current = {"launches": 0, "programs": 0, "compile": 0.0, "run": 0.0}
        try:
            return (yield)
        finally:
            self.current = None

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item, call):
        report = yield
        if call.when == "teardown" and self.current is not None and self.current["launches"]:
            # Reports travel from workers with what stands here.
            report.user_properties.append(("naiad", dict(self.current)))
        return report

    def pytest_runtest_logreport(self, report):
        if report.when == "teardown":
            self.rows += [(report.nodeid, row) for name, row in report.user_properties if name == "naiad"]

    def pytest_terminal_summary(self, terminalreporter):
        write = terminalreporter.write_line
        terminalreporter.section("kernels by naiad")
        if not self.rows:
            write("no test launched a kernel")
            return
        write(f"{'launches':>9}{'programs':>11}{'compile s':>11}{'run s':>9}  test")
        rows = sorted(self.rows, key=lambda row: -(row[1]["compile"] + row[1]["run"]))
        total = {name: sum(row[name] for _, row in rows) for name in rows[0][1]}
        for test, row in [*rows, (f"{len(rows)} tests", total)]:
            write(f"{row['launches']:>9}{row['programs']:>11}{row['compile']:>11.3f}{row['run']:>9.3f}  {test}")
