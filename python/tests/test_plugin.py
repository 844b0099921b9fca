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

    def run(*options, text=SUITE, conftest="import triton\nprint('triton is', triton.jit.__module__)"):
        (tmp_path / "tests").mkdir(exist_ok=True)
        (tmp_path / "conftest.py").write_text(textwrap.dedent(conftest))
        (tmp_path / "tests" / "test_suite.py").write_text(textwrap.dedent(text))
        (tmp_path / "pytest.ini").write_text("[pytest]\n")
        command = [sys.executable, "-m", "pytest", "-p", "naiad.plugin", "-p", "no:cacheprovider", *options]
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

        @pytest.mark.parametrize("module", ["triton.experimental.gluon", "triton.profiler"])
        def test(module):
            with pytest.raises(ImportError, match="is not part of Naiad"):
                __import__(module)

        def test_skip():
            pytest.importorskip("triton.experimental.gluon")
        """
    done = suite("--naiad", "tests", text=text)
    assert "2 passed, 1 skipped" in done.stdout, done.stdout


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
