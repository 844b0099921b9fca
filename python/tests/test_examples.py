"""Every example passes its own checks through naiad, on NumPy arrays."""

import importlib
import subprocess
import sys
from pathlib import Path

import naiad
import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SHARED = {"common", "demo"}
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.py") if path.stem not in SHARED)


@pytest.fixture(autouse=True)
def import_examples(monkeypatch):
    naiad.alias.install()
    monkeypatch.syspath_prepend(EXAMPLES)


@pytest.mark.parametrize("name", NAMES)
def test_check(name):
    importlib.import_module(name).check()


def test_the_demo_runs_every_example():
    assert sorted(example.__name__ for example in importlib.import_module("demo").EXAMPLES) == NAMES


def test_a_wrong_kernel_is_refused_with_both_shapes():
    script = EXAMPLES / "wrong" / "reused_mask.py"
    command = [sys.executable, "-m", "naiad", "run", str(script)]
    result = subprocess.run(command, capture_output=True, text=True)
    output = result.stdout + result.stderr
    assert result.returncode != 0, output
    assert "(32, 16)" in output and "(16, 32)" in output, output
    assert "tl.store(out_ptrs, tl.trans(tile), mask=mask)" in output, output
