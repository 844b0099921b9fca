"""What the tests share."""

import linecache
import os
import subprocess
import sys
import textwrap

import pytest

# So that what a test launches once is run by machine code, too.
os.environ.setdefault("NAIAD_EXECUTOR", "eager")

import naiad
import naiad.language as tl


@pytest.fixture
def define():
    """Defines a function from text, as a notebook's cell does; returns what the text bound."""
    cells = []

    def define(text, **namespace):
        text = textwrap.dedent(text)
        name = f"<cell {len(cells)} of {os.environ.get('PYTEST_CURRENT_TEST', '')}>"
        cells.append(name)
        linecache.cache[name] = (len(text), None, text.splitlines(True), name)
        namespace = {"triton": naiad, "tl": tl, "__name__": "cell", **namespace}
        exec(compile(text, name, "exec"), namespace)
        return namespace

    yield define
    for name in cells:
        linecache.cache.pop(name, None)


@pytest.fixture
def naiad_command(tmp_path):
    """Runs `python -m naiad ...` in a directory of its own; scripts are given as text."""

    def write(**scripts):
        for name, text in scripts.items():
            (tmp_path / f"{name}.py").write_text(textwrap.dedent(text))

    def start(*args, **scripts):
        write(**scripts)
        command = [sys.executable, *args]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen(command, cwd=tmp_path, **pipes)

    def run(*args, **scripts):
        process = start("-m", "naiad", *args, **scripts)
        stdout, stderr = process.communicate(timeout=120)
        return subprocess.CompletedProcess(args, process.returncode, stdout, stderr)

    run.start = start
    run.directory = tmp_path
    return run
