"""`tools/shards.py`: tests over processes, some of which die."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SHARDS = Path(__file__).resolve().parents[2] / "tools" / "shards.py"
CASES = """
import os, sys, time
import pytest

@pytest.mark.parametrize("i", range(20))
def test_good(i):
    pass

def test_wrong():
    assert 1 == 2

def test_skipped():
    pytest.skip("no reason")

def test_ends_its_process():
    print("last words", file=sys.__stderr__, flush=True)
    os._exit(70)

def test_hangs():
    time.sleep(1000)

def test_breaks_the_context():
    raise RuntimeError("CUDA error: an illegal memory access was encountered")
"""


def run(tmp_path, *args):
    (tmp_path / "test_cases.py").write_text(CASES)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    command = [sys.executable, SHARDS, ".", "--json", "found.json", *args]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=200)
    found = json.loads((tmp_path / "found.json").read_text())
    return done, found, {line["case"].split("::")[1]: line["why"] for line in found["bad"]}


@pytest.mark.skipif(sys.platform == "win32", reason="needs process groups")
def test_every_case_has_a_result_whatever_ends_its_process(tmp_path):
    done, found, bad = run(tmp_path, "--shards", "2", "--case-seconds", "5")
    assert found["counts"] == {"passed": 20, "skipped": 1, "failed": 2, "ended": 2}, done.stdout + done.stderr
    assert bad == {
        "test_wrong": "assert # == #",
        "test_ends_its_process": "ended its process with 70: last words",
        "test_hangs": "took more than 5 s",
        "test_breaks_the_context": "RuntimeError: CUDA error: an illegal memory access was encountered",
    }
    assert (found["started again"], found["not run"], done.returncode) == (3, [], 1)


@pytest.mark.skipif(sys.platform == "win32", reason="needs process groups")
def test_what_there_was_no_time_for_is_said(tmp_path):
    done, found, bad = run(tmp_path, "--shards", "1", "--seconds", "8", "-k", "hangs or wrong")
    missing = [case.split("::")[1] for case in found["not run"]]
    assert (missing, list(bad), done.returncode) == (["test_hangs"], ["test_wrong"], 1), done.stdout + done.stderr
    assert "1 failed, 1 not run" in done.stdout.splitlines()[-1]


@pytest.mark.skipif(sys.platform == "win32", reason="needs process groups")
def test_nothing_is_wrong_where_all_is_well(tmp_path):
    done, found, _ = run(tmp_path, "--shards", "2", "-k", "good or skipped")
    assert done.returncode == 0 and found["counts"] == {"passed": 20, "skipped": 1}, done.stdout + done.stderr
