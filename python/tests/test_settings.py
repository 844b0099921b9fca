"""What the environment asks for: docs/settings.md."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = """
import numpy as np, triton, triton.language as tl

@triton.jit
def double(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(x_ptr + i, x + x, mask=i < n)

x = np.arange(1000, dtype=np.float32)
double[(1,)](x, 1000, BLOCK=1024)
assert (x == np.arange(0, 2000, 2)).all()
print("done")
"""


def run(tmp_path, **variables):
    path = tmp_path / "double.py"
    path.write_text(SCRIPT)
    run = [sys.executable, "-m", "naiad", "run", str(path)]
    return subprocess.run(run, env={**os.environ, **variables}, capture_output=True, text=True)


@pytest.mark.parametrize(
    "name, value, names",
    [("NAIAD_EXECUTOR", "jit", "`auto`, `eager`"), ("NAIAD_CPU", "avx1024", "`portable`")],
)
def test_a_misspelled_setting_is_an_error(tmp_path, name, value, names):
    done = run(tmp_path, **{name: value})
    assert done.returncode != 0 and "done" not in done.stdout
    assert f"`{name}` is `{value}`" in done.stderr and names in done.stderr


@pytest.mark.parametrize("executor", ["", "auto", "eager", "interp"])
@pytest.mark.parametrize("cpu", ["", "portable"])
def test_every_executor_runs_for_every_processor(tmp_path, executor, cpu):
    done = run(tmp_path, NAIAD_EXECUTOR=executor, NAIAD_CPU=cpu)
    assert done.stdout == "done\n", done.stderr


def test_code_is_for_the_processor_that_is_asked_for(tmp_path):
    """Only AVX-512 leaves lanes out of a load, so only there the rest of a tile is one."""
    path = tmp_path / "double.py"
    path.write_text(SCRIPT)
    command = [sys.executable, "-m", "naiad", "compile", f"{path}::double", "--emit", "thread"]
    command += ["--signature", "x_ptr=*fp32,n=i32,BLOCK=1024"]

    def masked(cpu):
        env = {**os.environ, "NAIAD_CPU": cpu}
        done = subprocess.run(command, env=env, capture_output=True, text=True)
        return re.search(r"load .* lanes=\d+ mask=", done.stdout), done

    found, done = masked("portable")
    assert done.returncode == 0 and "load" in done.stdout and not found
    found, done = masked("avx512")
    assert found or "`NAIAD_CPU` is `avx512`" in done.stderr


def test_the_page_names_every_variable_that_is_read():
    """Those for developers of Naiad are said where they are: in tests, tools and xtask."""
    page = (ROOT / "docs/settings.md").read_text()
    sources = [*ROOT.glob("crates/*/src/**/*.rs"), *ROOT.glob("python/naiad/**/*.py")]
    read = {name for path in sources for name in re.findall(r"\bNAIAD_[A-Z_]+", path.read_text())}
    assert {"NAIAD_EXECUTOR", "NAIAD_GPU"} <= read
    # Minutes of random tests are spoken of in the crate that they are of.
    assert not {name for name in read - {"NAIAD_RANDOM_MINUTES"} if name not in page}
