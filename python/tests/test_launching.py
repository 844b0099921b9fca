"""The way from ``kernel[grid](...)`` to the executor: what must hold however short it is."""

import copy
import concurrent.futures
import os
import signal
import sys
import threading
import time

import pytest

import naiad as triton
import naiad.language as tl
from naiad import knobs
from naiad.runtime.jit import JITFunction

np = pytest.importorskip("numpy")


@triton.jit
def add(x_ptr, y_ptr, n, BY: tl.constexpr = 1, BLOCK: tl.constexpr = 64):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n) + BY, mask=i < n)


@triton.jit
def count_in_the_last(out_ptr, n):
    total = 0
    if tl.program_id(0) == tl.num_programs(0) - 1:
        for i in range(n):
            total += i % 2
        tl.store(out_ptr, total)


@triton.jit
def show(x_ptr):
    tl.device_print("x", tl.load(x_ptr))


def arrays(n=100):
    return np.arange(n, dtype=np.float32), np.zeros(n, np.float32)


def test_arguments_in_every_way():
    x, y = arrays()
    for args, kwargs in [
        ((x, y, 100), {}),
        ((x, y, 100, 1, 64), {}),
        ((x,), {"n": 100, "y_ptr": y}),
        ((), {"BLOCK": 64, "n": 100, "y_ptr": y, "x_ptr": x, "num_warps": 8}),
        # A name that is equal to the parameter's, and another object.
        ((x, y), {"".join(["", "n"]): 100, "".join(["BL", "OCK"]): 64}),
        ((x, y, np.int64(100).item(), True), {}),
    ]:
        for grid in (2,), [2], (2, 1), (np.int32(2),), lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),):
            y[:] = 0
            add[grid](*args, **kwargs)
            np.testing.assert_array_equal(y, x + 1)


def test_a_launcher_can_be_kept():
    x, y = arrays()
    launch = add[(2,)]
    for by in 1, 2, 1:
        launch(x, y, 100, by)
        np.testing.assert_array_equal(y, x + by)


def test_what_a_launch_returns():
    compiled = add[(2,)](*arrays(), 100, num_warps=2)
    assert compiled.name == "add" and compiled.metadata.num_warps == 2
    assert "tile @add" in compiled.asm["tile"]
    x, y = arrays()
    compiled[(2,)](x, y, 100, 5, 64)
    np.testing.assert_array_equal(y, x + 5)


def test_hooks_that_come_after_the_launcher(monkeypatch):
    log = []
    x, y = arrays()
    launch = add[(2,)]
    launch(x, y, 100)
    hook = lambda about: log.append(about.get()["name"])
    knobs.runtime.launch_enter_hook.add(hook)
    try:
        launch(x, y, 100)
    finally:
        knobs.runtime.launch_enter_hook.remove(hook)
    launch(x, y, 100)
    assert log == ["add"]

    settings = knobs.runtime.copy()
    settings.launch_exit_hook = lambda about: log.append("other settings")
    monkeypatch.setattr(knobs, "runtime", settings)
    launch(x, y, 100)
    assert log == ["add", "other settings"]


def test_debug_that_comes_after_the_launcher(monkeypatch):
    @triton.jit
    def fails(x):
        tl.device_assert(tl.load(x) > 0)

    launch = fails[(1,)]
    launch(np.zeros(1))
    monkeypatch.setattr(knobs.runtime, "debug", True)
    with pytest.raises(triton.TritonError, match="assertion"):
        launch(np.zeros(1))


def test_whoever_has_a_run_of_its_own_launches_by_it(monkeypatch):
    seen = []

    class Mine(JITFunction):
        def run(self, *args, grid, warmup=False, **kwargs):
            seen.append("subclass")
            return super().run(*args, grid=grid, warmup=warmup, **kwargs)

    x, y = arrays()
    Mine(add.fn)[(2,)](x, y, 100)
    np.testing.assert_array_equal(y, x + 1)

    kernel = triton.jit(add.fn)
    monkeypatch.setattr(kernel, "run", lambda *args, grid, **kwargs: seen.append(("instance", grid)), raising=False)
    kernel[(2,)](x, y, 100)

    original = JITFunction.run
    monkeypatch.setattr(JITFunction, "run", lambda self, *args, **kwargs: seen.append("class"))
    triton.jit(add.fn)[(2,)](x, y, 100)
    monkeypatch.setattr(JITFunction, "run", original)
    assert seen == ["subclass", ("instance", (2,)), "class"]


def test_threads_launch_at_once():
    def work(by):
        x, y = arrays()
        for _ in range(300):
            add[(2,)](x, y, 100, BY=by)
        return np.array_equal(y, x + by)

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, [1, 2, 3, 1]))


def test_other_threads_run_during_a_long_launch():
    ticks, out = [], np.zeros(1, np.int32)
    done = threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    start = time.perf_counter()
    # Its first program is short, as for most grids whose programs are not alike.
    count_in_the_last[(2,)](out, 200_000_000)
    end = time.perf_counter()
    done.set()
    thread.join()
    assert out[0] == 100_000_000
    assert any(start + (end - start) / 2 < t < end for t in ticks)


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
def test_ctrl_c_stops_a_launch_whose_first_program_is_short():
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    start = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        count_in_the_last[(2,)](np.zeros(1, np.int32), 2**31 - 1)
    assert time.perf_counter() - start < 5
    timer.join()


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
def test_ctrl_c_after_a_stream_has_launched(monkeypatch):
    """Both launches are long, one within the other: neither may leave anything behind."""

    class Stream:
        depth = 0

        def write(self, text):
            if Stream.depth == 0:
                Stream.depth += 1
                count_in_the_last[(1,)](np.zeros(1, np.int32), 20_000)

        def flush(self):
            pass

    @triton.jit
    def long_and_shown(x_ptr, n):
        total = 0
        for i in range(n):
            total += i % 2
        tl.device_print("total", total)

    stdout = sys.stdout
    monkeypatch.setattr(sys, "stdout", Stream())
    long_and_shown[(1,)](np.zeros(1), 20_000)
    monkeypatch.setattr(sys, "stdout", stdout)
    assert Stream.depth == 1
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(1)


def test_subclasses_and_kin_of_arrays(tmp_path):
    class Sub(np.ndarray):
        pass

    x, y = arrays()
    mapped = np.memmap(tmp_path / "x", np.float32, "w+", shape=100)
    mapped[:] = x
    for source in x.view(Sub), mapped, np.asfortranarray(x), x[:], x.reshape(10, 10).T.ravel(order="A"):
        y[:] = 0
        add[(2,)](source, y.view(Sub), 100)
        np.testing.assert_array_equal(y, np.asarray(source) + 1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: np.zeros(4, ">f4"), "foreign byte order"),
        (lambda: np.zeros(4, "c8"), "complex64"),
        (lambda: np.zeros(4, [("a", "f4")]), "which kernels cannot hold"),
        (lambda: np.float32(3), "NumPy scalar"),
        (lambda: np.zeros(4, "S3"), "which kernels cannot hold"),
    ],
)
def test_arrays_that_kernels_cannot_take(make, message):
    for _ in range(2):
        with pytest.raises(triton.LaunchError, match=message):
            add[(1,)](make(), arrays()[1], 4)


def test_arrays_without_axes():
    @triton.jit
    def double(x_ptr):
        tl.store(x_ptr, 2 * tl.load(x_ptr))

    x = np.array(21.0)
    double[(1,)](x)
    assert x[()] == 42


def test_what_is_read_only_stays_as_it_is():
    x, y = arrays()
    y.flags.writeable = False
    with pytest.raises(triton.OutOfBoundsError, match="read-only"):
        add[(2,)](x, y, 100)
    assert not y.any()


def test_a_copy_of_what_holds_a_kernel_holds_the_same_kernel():
    x, y = arrays()
    add[(2,)](x, y, 100)
    assert copy.deepcopy({"kernel": add})["kernel"] is add


def test_parameters_named_as_those_of_run(monkeypatch):
    @triton.jit
    def kernel(x_ptr, grid, warmup, self, args, kwargs):
        tl.store(x_ptr, grid + 10 * warmup + 100 * self + 1000 * args + 10000 * kwargs)

    x = np.zeros(1, np.int32)
    # The first launch, and one whose kernel is there.
    for _ in range(2):
        kernel[(1,)](x, grid=1, warmup=2, self=3, args=4, kwargs=5)
        assert x[0] == 54321
    # Hooks are called by way of `run`, which has a `grid` of its own.
    monkeypatch.setattr(knobs.runtime, "launch_enter_hook", lambda about: None)
    with pytest.raises(TypeError, match="grid"):
        kernel[(1,)](x, grid=1, warmup=2, self=3, args=4, kwargs=5)
