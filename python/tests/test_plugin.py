"""`pytest --naiad`: suites that import triton, run where there is none."""

import importlib.util
import os
import subprocess
import sys
import textwrap

import pytest

SUITE = """
    import numpy as np, pytest, triton, triton.language as tl

    @triton.jit
    def ones(ptr, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(ptr + i, 1.0, mask=i < n)

    @pytest.mark.parametrize("n", [5, 20])
    def test_ones(n):
        x = np.zeros(n, np.float32)
        ones[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, n, BLOCK=8)
        ones[(2,)](x, n, BLOCK=8)
        assert x[:16].all()

    def test_that_launches_nothing():
        pass
    """


@pytest.fixture
def suite(tmp_path):
    """Runs pytest with the plugin, in a folder with a conftest.py that imports triton."""

    def run(*options, text=SUITE, conftest="import triton\nprint('triton is', triton.jit.__module__)", cache=False):
        (tmp_path / "tests").mkdir(exist_ok=True)
        (tmp_path / "conftest.py").write_text(textwrap.dedent(conftest))
        (tmp_path / "tests" / "test_suite.py").write_text(textwrap.dedent(text))
        (tmp_path / "pytest.ini").write_text("[pytest]\n")
        command = [sys.executable, "-m", "pytest", "-p", "naiad.plugin", *([] if cache else ["-p", "no:cacheprovider"]), *options]
        env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, env=env)

    return run


def test_a_suite_passes_in_a_folder_given_behind_the_option(suite):
    done = suite("--naiad", "tests")
    assert done.returncode == 0 and "3 passed" in done.stdout, done.stdout + done.stderr
    assert "naiad: kernels run by naiad" in done.stdout and "kernels by naiad =" not in done.stdout


def test_without_the_option_nothing_changes(suite):
    look = """
        import sys
        def test():
            assert not any(type(finder).__module__.startswith("naiad") for finder in sys.meta_path)
        """
    done = suite("tests", text=look, conftest="")
    assert done.returncode == 0 and "naiad:" not in done.stdout, done.stdout
    assert suite("--naiad-stats").returncode == suite("--naiad-gpu", "l4").returncode == 4


@pytest.mark.parametrize("workers", [0, 2])
def test_statistics(suite, workers):
    if workers and importlib.util.find_spec("xdist") is None:
        pytest.skip("needs pytest-xdist")
    done = suite("--naiad=run", "--naiad-stats", "tests", *(["-n", str(workers)] if workers else []))
    assert done.returncode == 0 and "3 passed" in done.stdout, done.stdout + done.stderr
    table = done.stdout[done.stdout.index("kernels by naiad =") :].splitlines()[1:]
    rows = {row.split(maxsplit=4)[-1]: row.split()[:2] for row in table if row.strip()}
    assert rows["tests/test_suite.py::test_ones[5]"] == ["2", "3"]
    assert rows["tests/test_suite.py::test_ones[20]"] == ["2", "5"]
    assert rows["2 tests"] == ["4", "8"]
    assert "launches_nothing" not in done.stdout


CHECKED = """
    import numpy as np, pytest, triton, triton.language as tl

    @triton.jit
    def highest(x_ptr, out_ptr, n, fill, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        x = tl.load(x_ptr + i, mask=i < n, other=fill)
        tl.store(out_ptr, tl.max(x))

    def launch(fill, x=(-3, -1, -2)):
        out = np.zeros(1, np.float32)
        highest[(1,)](np.array(x, np.float32), out, 3, fill, BLOCK=4)
        return out[0]

    def test_right():
        assert launch(float("-inf")) == -1

    def test_wrong():
        launch(0.0)

    def test_wrong_and_failing():
        assert launch(0.0) == -1

    @pytest.mark.xfail(strict=True)
    def test_expected():
        launch(0.0)

    @pytest.fixture
    def before():
        launch(0.0)

    def test_whose_fixture_is_wrong(before):
        pass

    @triton.jit
    def ones(ptr, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(ptr + i, 1.0, mask=i < n)

    @pytest.mark.parametrize("programs", [1, 2])
    def test_with_a_warning(programs):
        ones[(programs,)](np.empty(10, np.float32), 10, BLOCK=4)

    def test_that_expects_a_fault():
        with pytest.raises(triton.OutOfBoundsError):
            ones[(1,)](np.zeros(30, np.float32)[:3], 4, BLOCK=4)
    """


@pytest.mark.parametrize("workers", [0, 2])
def test_check_fails_tests_by_their_launches(suite, workers):
    if workers and importlib.util.find_spec("xdist") is None:
        pytest.skip("needs pytest-xdist")
    done = suite("--naiad=check", "tests", *(["-n", str(workers)] if workers else []), text=CHECKED)
    assert done.returncode == 1 and "every launch checked" in done.stdout, done.stdout + done.stderr
    assert "2 failed, 4 passed, 1 xfailed, 1 error" in done.stdout, done.stdout
    # The message is the failure's text, with the kernel's line and no traceback of ours.
    wrong = done.stdout.split("_ test_wrong _")[1].split("_ test_wrong_and_failing _")[0]
    assert "error[padding-reduced]" in wrong and "|     tl.store(out_ptr, tl.max(x))" in wrong
    assert "Traceback" not in wrong and "plugin.py" not in wrong
    # What failed already says so itself, and what was found besides.
    failing = done.stdout.split("_ test_wrong_and_failing _")[1]
    assert "assert launch(0.0) == -1" in failing and "naiad check call" in failing
    summary = done.stdout.split("= checked by naiad =")[1]
    assert "8 launches checked" in summary and summary.count("warning[unwritten-output]") == 2


def test_check_leaves_what_failed_to_the_next_run(suite):
    assert suite("--naiad=check", "tests", text=CHECKED, cache=True).returncode == 1
    done = suite("--naiad=check", "--lf", "tests", text=CHECKED, cache=True)
    assert "2 failed" in done.stdout and "1 error" in done.stdout and "passed" not in done.stdout, done.stdout


PROCESSES = """
    import multiprocessing

    def in_child(pipe, fill):
        try:
            launch(fill)
            pipe.send("")
        except triton.KernelError as e:
            pipe.send(str(e))

    @pytest.mark.parametrize("start", ["fork", "spawn"])
    def test_children(start):
        context = multiprocessing.get_context(start)
        said = []
        for fill in float("-inf"), 0.0:
            ours, theirs = context.Pipe(duplex=False)
            child = context.Process(target=in_child, args=(theirs, fill))
            child.start()
            said.append(ours.recv())
            child.join()
        assert said[0] == "" and "padding-reduced" in said[1] and "tl.max(x)" in said[1]
    """


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
def test_check_raises_in_processes_that_a_test_starts(suite):
    head = CHECKED[: CHECKED.index("    def test_right")]
    done = suite("--naiad=check", "tests", text=head + PROCESSES)
    assert done.returncode == 0 and "2 passed" in done.stdout, done.stdout


def test_check_shows_a_warning_once(suite):
    same = CHECKED.replace('"programs", [1, 2]', '"programs", [2, 2]')
    summary = suite("--naiad=check", "tests", "-k", "warning", text=same).stdout.split("= checked by naiad =")[1]
    assert summary.count("warning[unwritten-output]") == 1 and "and 1 more:" in summary, summary


def test_check_judges_by_the_view(suite):
    past = SUITE.replace("np.zeros(n, np.float32)", "np.zeros(30, np.float32)[:n]")
    past = past.replace("mask=i < n", "mask=i < n + 1")
    assert suite("--naiad", "tests", text=past).returncode == 0
    done = suite("--naiad=check", "tests", text=past)
    assert done.returncode == 1 and "outside-view" in done.stdout


def test_triton_that_is_imported_already(suite, tmp_path):
    (tmp_path / "early.py").write_text("import sys, types\nsys.modules['triton'] = types.ModuleType('triton')\n")
    done = suite("-p", "early", "--naiad", "tests")
    assert done.returncode == 4 and "already imported" in done.stderr


def test_what_is_refused_is_named(suite):
    text = """
        import importlib.util, pytest

        @pytest.mark.parametrize("module", ["experimental.gluon", "profiler.viewer", "profiler.language"])
        def test(module):
            with pytest.raises(ImportError, match="is not part of Naiad|no GPU for Proton"):
                __import__(f"triton.{module}")

        def test_skip():
            pytest.importorskip("triton.experimental.gluon")
        """
    done = suite("--naiad", "tests", text=text)
    assert "3 passed, 1 skipped" in done.stdout, done.stdout


def test_what_is_to_be_profiled_runs(suite):
    text = """
        import pytest
        import triton.profiler as proton

        @proton.scope("decorated")
        def twice(x):
            return 2 * x

        def test():
            with pytest.warns(UserWarning, match="triton.profiler. records nothing"):
                session = proton.start("name", hook="triton")
            proton.deactivate(session)
            proton.activate(session)
            with proton.scope("around", metrics={"flops": 1.0}), proton.cpu_timed_scope("timed"):
                proton.enter_scope("within")
                assert twice(2) == 4
                proton.exit_scope("within")
            proton.finalize()
            with pytest.warns(UserWarning, match="records nothing"):
                assert proton.profile(name="all")(twice)(3) == 6

        def test_scopes_let_errors_pass():
            with pytest.raises(ZeroDivisionError), proton.scope("fails"):
                1 // 0
        """
    done = suite("--naiad", "tests", text=text)
    assert "2 passed" in done.stdout, done.stdout


def test_an_unknown_gpu(suite):
    done = suite("--naiad", "--naiad-gpu", "voodoo", "tests")
    assert done.returncode == 4 and "h100" in done.stderr


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch")
def test_cuda_is_served(suite):
    text = """
        import torch, triton

        def test(capfd):
            x = torch.ones(2, device="cuda")
            assert x.is_cuda and torch.cuda.get_device_capability() == (8, 9)
            assert capfd.readouterr().err == ""
        """
    done = suite("--naiad", "--naiad-gpu", "L4", "tests", text=text, conftest="")
    assert done.returncode == 0 and "NVIDIA L4" in done.stdout, done.stdout


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch")
def test_cuda_is_served_where_pytest_loads_all_modules(suite):
    """As in the folder of Triton's tutorials, whose pytest.ini takes every file for one of tests: pytest's own loader
    then loads torch as well."""
    body = """
        import torch, triton

        def test():
            assert torch.zeros(1, device="cuda").is_cuda
            assert torch.__spec__.loader is torch.__loader__ and "naiad" not in type(torch.__loader__).__module__
        """
    done = suite("--naiad", "tests", "-o", "python_files=*.py", text=body)
    assert done.returncode == 0, done.stdout + done.stderr
