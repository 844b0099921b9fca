"""Faults that were found once. Each test is the whole family's smallest member."""

import subprocess
import sys

import numpy as np
import pytest

import naiad as triton
import naiad.language as tl


@triton.jit
def copy(out, x, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n, other=0.0), mask=i < n)


@triton.jit
def put(out, value):
    tl.store(out, value)


@triton.jit
def stepped(out, step):
    for i in range(0, 5, step):
        tl.store(out, i)


@triton.jit
def overlapping(out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i[:, None] + i[None, :], i[:, None] * N + i[None, :])


@triton.jit
def repeated(out):
    t = (1,) * 1000000000000
    tl.store(out, len(t))


class Interface:
    def __init__(self, shape, address):
        self.__array_interface__ = {
            "shape": shape,
            "typestr": "<f4",
            "data": (address, False),
            "version": 3,
        }


def test_a_view_that_leaves_its_array_is_refused():
    x = np.zeros(10, np.float32)
    wide = np.lib.stride_tricks.as_strided(x, shape=(5000,), strides=(4,))
    with pytest.raises(TypeError, match="outside the array that owns its memory"):
        copy[(1,)](np.zeros(5000, np.float32), wide, 5000, BLOCK=8192)


def test_views_inside_their_array_are_taken():
    base = np.arange(64, dtype=np.float32)
    for view in (base[8:16], base.reshape(8, 8)[3], np.broadcast_to(base[:8], (4, 8))[2]):
        out = np.zeros(8, np.float32)
        copy[(1,)](out, view, 8, BLOCK=8)
        np.testing.assert_array_equal(out, view)


@pytest.mark.parametrize("value", [np.int64(7), np.int32(7), np.float32(7), np.bool_(True)])
def test_a_numpy_scalar_is_no_pointer(value):
    out = np.zeros(1)
    with pytest.raises(TypeError, match="NumPy scalar"):
        put[(1,)](out, value)
    put[(1,)](out, value.item())
    assert out[0] == float(value)


@pytest.mark.parametrize("shape, address", [((1000,), 0), ((1 << 40, 1 << 40), 4096)])
def test_an_array_that_cannot_exist_is_refused(shape, address):
    with pytest.raises(TypeError):
        put[(1,)](Interface(shape, address), 1.0)


def test_a_loop_that_never_ends_is_reported():
    with pytest.raises(triton.TritonError, match="step of a range must not be 0"):
        stepped[(1,)](np.zeros(1, np.int32), 0)


def test_of_overlapping_lanes_the_last_in_row_major_order_is_stored():
    n = 32
    out = np.zeros(2 * n, np.int32)
    overlapping[(1,)](out, N=n)
    want = np.zeros(2 * n, np.int32)
    for i in range(n):
        for j in range(n):
            want[i + j] = i * n + j
    np.testing.assert_array_equal(out, want)


def test_a_tuple_is_not_repeated_without_end():
    with pytest.raises(triton.CompilationError, match="too large"):
        repeated[(1,)](np.zeros(1, np.int32))


def test_names_that_are_not_there_yet_say_so(tmp_path):
    for name in ("target_info.current_target",):
        script = tmp_path / "script.py"
        script.write_text(
            "import numpy as np\nimport triton\nimport triton.language as tl\n\n"
            f"@triton.jit\ndef k(x):\n    tl.{name}(tl.arange(0, 8))\n\n"
            "k[(1,)](np.zeros(8))\n"
        )
        done = subprocess.run(
            [sys.executable, "-m", "naiad", "run", str(script)], capture_output=True, text=True
        )
        assert done.returncode == 1
        assert f"`tl.{name}` is not supported by Naiad yet" in done.stderr


def test_lint_evaluates_a_module_once(tmp_path):
    file = tmp_path / "chain.py"
    lines = ["import triton.language as tl", "A0 = 1"]
    lines += [f"A{i} = A{i - 1} + A{i - 1}" for i in range(1, 60)]
    lines += ["N = 16", "N = N * 2"]
    file.write_text("\n".join(lines) + "\n")
    command = [sys.executable, "-m", "naiad", "lint", str(file)]
    assert subprocess.run(command, timeout=20, capture_output=True).returncode == 0


def test_lint_finds_a_name_that_nothing_assigns(tmp_path):
    file = tmp_path / "misspelled.py"
    file.write_text(
        "import triton\nimport triton.language as tl\n\n"
        "@triton.jit\ndef k(x, n):\n    offsets = tl.arange(0, 8)\n    tl.store(x + ofsets, n)\n"
    )
    command = [sys.executable, "-m", "naiad", "lint", str(file)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert "`ofsets` is not defined" in done.stderr and "did you mean `offsets`?" in done.stderr


def test_objects_without_memory_and_without_end(define):
    kernel = define("@triton.jit\ndef k(x, C: tl.constexpr): tl.store(x, 1.0)")["k"]
    nothing = triton.MockTensor(np.dtype("float32"))
    with pytest.raises(triton.OutOfBoundsError, match="no memory"):
        kernel[(1,)](nothing, 1)
    endless = []
    endless.append(endless)
    deep = ()
    for _ in range(10_000):
        deep = (deep,)
    for nested in (endless, deep):
        with pytest.raises(ValueError, match="nested"):
            kernel[(1,)](np.zeros(1, np.float32), nested)
    with pytest.raises(ValueError, match="nested"):
        kernel[(1,)](deep, 1)
