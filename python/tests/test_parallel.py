"""Compilation by several threads."""

import concurrent.futures
import gc
import sys
import threading
import time

import pytest

import naiad as triton
import naiad.language as tl

np = pytest.importorskip("numpy")

X = np.zeros(16, np.float32)

calls = []
meet = None


@triton.constexpr_function
def slow(n):
    calls.append(n)
    time.sleep(0.05)
    return n


@triton.jit
def calls_slow(x, N: tl.constexpr):
    tl.store(x + slow(N), 1.0)


def test_one_specialization_is_compiled_by_one_thread():
    calls.clear()
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: calls_slow[(1,)](X, N=3), range(8)))
    assert calls == [3] and X[3] == 1
    assert len(calls_slow.device_caches[0][0]) == 1


def test_what_fails_fails_for_all_who_wait():
    @triton.jit
    def fails(x, N: tl.constexpr):
        tl.static_assert(slow(N) != N)

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(fails.warmup, X, N=1) for _ in range(4)]
    for future in futures:
        with pytest.raises(triton.CompileTimeAssertionFailure):
            future.result()


@triton.constexpr_function
def meets(n):
    if n > 1:
        # Passed only if two threads are in here at a time.
        meet.wait(timeout=20)
    return n


@triton.jit
def meeting(x, N: tl.constexpr):
    tl.store(x + meets(N), 1.0)


def test_configurations_are_compiled_at_the_same_time(monkeypatch):
    global meet
    meet = threading.Barrier(2)
    monkeypatch.setattr("naiad.runtime.autotuner._cores", lambda: 2)
    configs = [triton.Config({"N": n}) for n in (1, 2, 3)]

    def bench(fn, quantiles):
        fn()
        return [1.0] * 3

    x = np.zeros(16, np.float32)
    triton.autotune(configs, key=[], do_bench=bench)(meeting)[(1,)](x)
    assert not meet.broken and x.tolist() == [0, 1] + [0] * 14


@triton.constexpr_function
def launches_another(n):
    inner.warmup(X, N=n)
    outer_itself.warmup(X, N=n - 1) if n else None
    return n


@triton.jit
def inner(x, N: tl.constexpr):
    tl.store(x, N)


@triton.jit
def outer_itself(x, N: tl.constexpr):
    tl.store(x, launches_another(N))


def test_a_compilation_within_another_does_not_wait_for_itself():
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for future in [pool.submit(outer_itself.warmup, X, N=2) for _ in range(4)]:
            assert future.result(timeout=30).name == "outer_itself"


def test_async_mode_compiles_in_the_background():
    calls.clear()

    @triton.jit
    def kernel(x, N: tl.constexpr):
        tl.store(x + slow(N), 2.0)

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        with triton.AsyncCompileMode(pool):
            future = kernel.warmup(X, N=5)
            # It waits for the code that is being compiled, and compiles none itself.
            kernel[(1,)](X, N=5)
            kernel.warmup(X, N=6)
        assert future.result().name == future.name == "kernel"
    assert sorted(calls) == [5, 6] and X[5] == 2


def test_async_mode_raises_what_went_wrong():
    @triton.jit
    def kernel(x):
        tl.static_assert(False, "no")

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        with pytest.raises(triton.CompileTimeAssertionFailure):
            with triton.AsyncCompileMode(pool):
                kernel.warmup(X)
        with triton.AsyncCompileMode(pool, ignore_errors=True):
            kernel.warmup(X)
        with pytest.raises(ZeroDivisionError):
            with triton.AsyncCompileMode(pool):
                kernel.warmup(X)
                1 // 0


def test_threads_that_launch_rebind_and_collect():
    """Nothing waits in a circle, whatever Python switches to in the middle of a compilation."""
    module = globals()
    old = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)

    def work(seed):
        out = np.zeros(1, np.float32)
        for i in range(40):

            @triton.jit
            def own(x):
                return x + 2.0

            restless[(1,)](out, N=(seed * 7 + i) % 5, F=own if i % 3 == 0 else adds)
            if i % 10 == 0:
                module["REBOUND"] = tl.constexpr(float(i % 4))

    threads = [threading.Thread(target=work, args=(seed,), daemon=True) for seed in range(6)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=60)
    finally:
        sys.setswitchinterval(old)
    assert not any(thread.is_alive() for thread in threads)


REBOUND = tl.constexpr(1.0)


@triton.constexpr_function
def collects(n):
    gc.collect(0)
    return n


@triton.jit
def adds(x):
    return x + 1.0


@triton.jit
def restless(out, N: tl.constexpr, F: tl.constexpr):
    tl.store(out, F(tl.load(out) * 0 + REBOUND + collects(N)))
