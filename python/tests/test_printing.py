"""What kernels print, and what their assertions say."""

import io
import sys

import numpy as np
import pytest

import naiad

KERNEL = """
    @triton.jit(debug=True)
    def show(x, n, BLOCK: tl.constexpr):
        pid = tl.program_id(0)
        offsets = pid * BLOCK + tl.arange(0, BLOCK)
        v = tl.load(x + offsets, mask=offsets < n)
        tl.device_print("v", v)
        tl.device_assert(v >= 0, "negative", mask=offsets < n)
"""


@pytest.fixture
def show(define):
    return define(KERNEL)["show"]


def test_text_goes_to_stdout(show, capsys):
    show[(1,)](np.array([0.5, 1, 2, 3], np.float32), 4, BLOCK=4)
    out = capsys.readouterr().out
    assert out == "show program (0, 0, 0)  v: float32[4]\n[0.5 1.0 2.0 3.0]\n"


def test_the_environment_chooses(show, capsys, monkeypatch):
    x = np.arange(8, dtype=np.int64)
    monkeypatch.setenv("NAIAD_PRINT", "layout=lines;program=1;lanes=0:2")
    show[(2,)](x, 8, BLOCK=4)
    assert capsys.readouterr().out == "pid (1, 0, 0) idx (0) v: 4\npid (1, 0, 0) idx (1) v: 5\n"
    monkeypatch.setenv("NAIAD_PRINT", "layout=row")
    with pytest.raises(naiad.LaunchError, match="there is no layout `row`"):
        show[(2,)](x, 8, BLOCK=4)


def test_a_failing_launch_has_printed(show, capsys):
    x = np.array([1, 2, -3, -4], np.float32)
    with pytest.raises(naiad.DeviceAssertError, match="negative") as e:
        show[(1,)](x, 4, BLOCK=4)
    assert "[ 1.0  2.0 -3.0 -4.0]" in capsys.readouterr().out
    assert "lane 2 of program (0, 0, 0)" in str(e.value)
    assert "2 of 4 lanes fail" in str(e.value)


def test_blocks_are_never_mixed(show, monkeypatch):
    class Slow(io.StringIO):
        """A stream written in Python, during whose writes other threads run."""

        def write(self, text):
            for c in text:
                super().write(c)

    stream = Slow()
    monkeypatch.setattr(sys, "stdout", stream)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        show[(200,)](np.zeros(1600, np.int32), 1600, BLOCK=8)
    finally:
        sys.setswitchinterval(interval)
    lines = stream.getvalue().splitlines()
    heads = {f"show program ({p}, 0, 0)  v: int32[8]" for p in range(200)}
    assert set(lines[::2]) == heads
    assert lines[1::2] == ["[0 0 0 0 0 0 0 0]"] * 200


def test_a_stream_that_fails(show, monkeypatch):
    class Closed:
        def write(self, text):
            raise BrokenPipeError("closed")

    monkeypatch.setattr(sys, "stdout", Closed())
    with pytest.raises(BrokenPipeError):
        show[(3,)](np.zeros(12, np.int32), 12, BLOCK=4)
    monkeypatch.setattr(sys, "stdout", None)
    show[(3,)](np.zeros(12, np.int32), 12, BLOCK=4)
