"""`naiad run` and the alias under which it runs scripts."""

import os
import signal
import sys
import sysconfig
import time
from pathlib import Path

import pytest

KERNEL = """
    import triton
    import triton.language as tl

    @triton.jit
    def kernel(ptr, n, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(ptr + i, 1.0, mask=i < n)
    """


def test_a_script_sees_its_arguments(naiad_command):
    text = "import sys, triton, helper\nprint(__name__, sys.argv, triton.__version__, helper.x)\nsys.exit(3)"
    done = naiad_command("run", "script.py", "--flag", "a", script=text, helper="x = 5")
    assert done.stdout == "__main__ ['script.py', '--flag', 'a'] 3.8.0 5\n"
    assert (done.returncode, done.stderr) == (3, "")


def test_imports_under_the_alias(naiad_command):
    text = """
        import triton, naiad
        import triton.language as tl
        import triton.language.core, triton.runtime.driver
        from triton.language.extra import libdevice
        from triton.language.extra.cuda import libdevice as cuda
        from triton.runtime import JITFunction, driver
        from triton.runtime.autotuner import Autotuner
        from triton.compiler.errors import CompilationError
        from triton.testing import do_bench
        import triton.testing
        assert tl is naiad.language is triton.language
        assert triton.jit is naiad.jit and CompilationError is naiad.CompilationError
        assert naiad.language.__spec__.name == "naiad.language"
        assert naiad.__version__ != triton.__version__
        try:
            import triton.ops
        except ModuleNotFoundError as e:
            print(e)
        """
    done = naiad_command("run", "script.py", script=text)
    assert (done.stdout, done.stderr) == ("No module named 'triton.ops'\n", "")


def test_the_alias_refuses_to_replace_triton(naiad_command):
    text = """
        import sys, types
        sys.modules["triton"] = types.ModuleType("triton")
        import naiad
        try:
            naiad.alias.install()
        except ImportError as e:
            print(e)
        """
    stdout, _ = naiad_command.start("script.py", script=text).communicate(timeout=60)
    assert "already imported" in stdout


def test_an_error_of_a_kernel_is_shown_alone(naiad_command):
    text = KERNEL + "\n    kernel[(1,)](None, 3, BLOK=4)\n"
    done = naiad_command("run", "script.py", script=text)
    assert done.returncode == 1
    assert done.stderr.startswith("error[bad-launch]: `kernel` has no parameter `BLOK`")
    assert "launched at" in done.stderr and "Traceback" not in done.stderr


def test_other_errors_have_the_scripts_traceback(naiad_command):
    done = naiad_command("run", "script.py", script="def f():\n    1 / 0\nf()")
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stderr and "line 3" in done.stderr
    assert "naiad" not in done.stderr.replace(str(naiad_command.directory), "")


def test_wrong_command_lines(naiad_command):
    assert naiad_command("run").returncode == 2
    assert naiad_command("nonsense").returncode == 2
    missing = naiad_command("run", "missing.py")
    assert missing.returncode == 2 and "cannot be read" in missing.stderr


def test_compile_prints_ir(naiad_command):
    done = naiad_command("compile", "k.py::kernel", "--signature", "ptr=*fp32,n=i32,BLOCK=16", k=KERNEL)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("tile @kernel(%0 ptr: *fp32, %1 n: i32)")


def test_stats_count_instructions_alone(naiad_command, monkeypatch):
    folders = [path.parent for path in Path(sysconfig.get_path("purelib")).glob("nvidia/*/bin/ptxas")]
    if not folders:
        pytest.skip("there is no ptxas: `make ptxas` installs it")
    monkeypatch.setenv("PATH", f"{folders[0]}{os.pathsep}{os.environ['PATH']}")
    signature = ("--signature", "ptr=*fp32,n=i32,BLOCK=16", "--gpu", "sm_90")
    done = naiad_command("compile", "k.py::kernel", *signature, "--emit", "stats", k=KERNEL)
    assert done.returncode == 0, done.stderr
    [code] = [int(line.split()[-1]) for line in done.stdout.splitlines() if line.startswith("bytes of code")]
    naiad_command("compile", "k.py::kernel", *signature, "--emit", "cubin", "-o", "k.cubin")
    # Instructions have 16 bytes; names, lines and tables take most of the file.
    whole = (naiad_command.directory / "k.cubin").stat().st_size
    assert code > 0 and code % 16 == 0 and 2 * code < whole


def test_lint_reports_what_no_argument_can_mend(naiad_command):
    bad = """
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(x_ptr):
            tl.store(x_ptr + tl.arange(0, 100), 1.0)
        """
    done = naiad_command("lint", "bad.py", "good.py", bad=bad, good=KERNEL)
    assert done.returncode == 1
    assert "bad.py" in done.stderr and "good.py" not in done.stderr
    assert "error[bad-shape]" in done.stderr
    assert naiad_command("lint", "good.py").returncode == 0


SPIN = """
    import numpy as np, triton, triton.language as tl

    @triton.jit
    def count(ptr, n):
        s = 0
        for i in range(n):
            s += i
        tl.store(ptr, s)

    x = np.zeros(1, np.int32)
    count[(0,)](x, 5)
    print("ready", flush=True)
    count[(1,)](x, 2**31 - 2)
    """


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
def test_ctrl_c_stops_a_launch(naiad_command):
    process = naiad_command.start("-m", "naiad", "run", "spin.py", spin=SPIN)
    try:
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.5)
        start = time.perf_counter()
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=10)
        assert (process.returncode, stderr) == (130, "interrupted\n")
        assert time.perf_counter() - start < 2
    finally:
        process.kill()
