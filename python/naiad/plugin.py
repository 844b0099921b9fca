"""The pytest plugin: ``pytest --naiad`` runs a suite with `triton` meaning Naiad, and cuda the CPU.

Without the option it does nothing.
"""

import time

import pytest

from . import _naiad, alias, cuda, spawn


def pytest_addoption(parser):
    group = parser.getgroup("naiad", "kernels without a GPU (naiad)")
    # The word behind a bare `--naiad` is a path of tests, so the mode is part of the option's name.
    for option, mode, what in [
        ("--naiad", "run", "run Triton kernels by Naiad, and serve `cuda` by the CPU"),
        ("--naiad=run", "run", "the same"),
        ("--naiad=check", "check", "and check every launch: an error fails the test"),
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


def pytest_configure(config):
    if config.option.naiad is not None and config.option.naiad_stats:
        config.pluginmanager.register(_Stats(), "naiad-stats")


def pytest_report_header(config):
    if config.option.naiad is None:
        return None
    gpu = cuda.gpus.chosen(config.option.naiad_gpu)
    mode = ", every launch checked" if config.option.naiad == "check" else ""
    return f"naiad: kernels run by naiad {_naiad.__version__}{mode}; without a GPU `cuda` is the CPU, as {gpu.name}"


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
