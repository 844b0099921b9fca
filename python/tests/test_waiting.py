"""Programs that wait for one another, as machine code: locks, barriers, chains, and what goes wrong with them."""

import os
import signal
import sys
import threading
import time

import numpy as np
import pytest

import naiad

# A ticket lock and a plain one around a sum that is not atomic.
LOCKS = """
    @triton.jit
    def spin(x, total, lock, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        v = tl.load(x + tl.program_id(0) * BLOCK + i)
        while tl.atomic_cas(lock, 0, 1) == 1:
            pass
        tl.store(total + i, tl.load(total + i) + v)
        tl.debug_barrier()
        tl.atomic_xchg(lock, 0)

    @triton.jit
    def ticket(x, total, lock, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        v = tl.load(x + tl.program_id(0) * BLOCK + i)
        mine = tl.atomic_add(lock, 1)
        while tl.atomic_add(lock + 1, 0) != mine:
            pass
        tl.store(total + i, tl.load(total + i) + v)
        tl.atomic_add(lock + 1, 1)
    """


@pytest.mark.parametrize("name", ["spin", "ticket"])
@pytest.mark.parametrize("programs", [1, 7, 500])
def test_locks_exclude(define, name, programs):
    x = np.random.default_rng(1).integers(-99, 99, (programs, 64)).astype(np.float32)
    total, lock = np.zeros(64, np.float32), np.zeros(2, np.int32)
    kernel = define(LOCKS)[name]
    for n in range(1, 4):
        lock[:] = 0
        kernel[(programs,)](x, total, lock, BLOCK=64)
        np.testing.assert_array_equal(total, n * x.sum(0))


GRID_BARRIER = """
    @triton.jit
    def kernel(x, sums, out, count, ROUNDS: tl.constexpr, BLOCK: tl.constexpr):
        pid = tl.program_id(0)
        n = tl.num_programs(0)
        i = tl.arange(0, BLOCK)
        v = tl.load(x + pid * BLOCK + i)
        for r in range(ROUNDS):
            tl.store(sums + pid, tl.sum(v))
            tl.debug_barrier()
            tl.atomic_add(count, 1)
            while tl.load(count, volatile=True) < (2 * r + 1) * n:
                pass
            v += tl.load(sums + (pid + 1) % n)
            tl.atomic_add(count, 1)
            while tl.atomic_add(count, 0) < (2 * r + 2) * n:
                pass
        tl.store(out + pid * BLOCK + i, v)
    """


@pytest.mark.parametrize("programs", [1, 2, 3, 64, 1000])
def test_a_barrier_of_the_whole_grid(define, programs):
    x = np.random.default_rng(2).integers(0, 5, (programs, 16)).astype(np.int32)
    sums, out, count = np.zeros(programs, np.int32), np.zeros_like(x), np.zeros(1, np.int32)
    define(GRID_BARRIER)["kernel"][(programs,)](x, sums, out, count, ROUNDS=3, BLOCK=16)
    for _ in range(3):
        x = x + np.roll(x.sum(1), -1)[:, None]
    np.testing.assert_array_equal(out, x)


# Each program keeps a tile while it waits for the one behind it.
CHAIN = """
    @triton.jit
    def kernel(x, out, flags, BLOCK: tl.constexpr):
        pid = tl.program_id(0)
        i = tl.arange(0, BLOCK)
        mine = tl.cumsum(tl.load(x + pid * BLOCK + i))
        if pid + 1 < tl.num_programs(0):
            while tl.atomic_add(flags + pid + 1, 0) == 0:
                pass
            mine += tl.load(out + (pid + 1) * BLOCK + i)
        tl.store(out + pid * BLOCK + i, mine)
        tl.debug_barrier()
        tl.atomic_xchg(flags + pid, 1)
    """


@pytest.mark.parametrize("programs, block", [(1, 16), (2, 256), (300, 256), (3000, 16), (100_000, 1)])
def test_a_chain_of_programs_that_wait_for_their_successors(define, programs, block):
    x = np.random.default_rng(3).integers(-9, 9, (programs, block)).astype(np.int32)
    out, flags = np.zeros_like(x), np.zeros(programs, np.int32)
    define(CHAIN)["kernel"][(programs,)](x, out, flags, BLOCK=block)
    np.testing.assert_array_equal(out, x.cumsum(1)[::-1].cumsum(0)[::-1])


# Decoupled look-back: a scan in one pass, whose programs add up what those before them have published so far.
LOOK_BACK = """
    @triton.jit
    def kernel(x, out, parts, totals, state, n, BLOCK: tl.constexpr):
        pid = tl.program_id(0)
        i = pid * BLOCK + tl.arange(0, BLOCK)
        v = tl.load(x + i, mask=i < n, other=0)
        own = tl.sum(v)
        tl.store(parts + pid, own)
        tl.debug_barrier()
        tl.atomic_xchg(state + pid, 1)
        before = own * 0
        at = pid - 1
        while at >= 0:
            seen = tl.atomic_add(state + at, 0)
            if seen == 1:
                before += tl.load(parts + at)
                at -= 1
            elif seen == 2:
                before += tl.load(totals + at)
                at = -1
        tl.store(totals + pid, before + own)
        tl.debug_barrier()
        tl.atomic_xchg(state + pid, 2)
        tl.store(out + i, before + tl.cumsum(v), mask=i < n)
    """


@pytest.mark.parametrize("n", [1, 64, 1000, 100_001])
def test_a_scan_with_decoupled_look_back(define, n):
    x = np.random.default_rng(4).integers(-50, 50, n).astype(np.int64)
    programs = naiad.cdiv(n, 64)
    parts, totals, state = (np.zeros(programs, t) for t in (np.int64, np.int64, np.int32))
    out = np.zeros_like(x)
    define(LOOK_BACK)["kernel"][(programs,)](x, out, parts, totals, state, n, BLOCK=64)
    np.testing.assert_array_equal(out, x.cumsum())


# Programs share the steps of a sum evenly; who has the end of a row waits for those that have its start.
SPLIT = """
    @triton.jit
    def kernel(x, out, part, flag, STEPS: tl.constexpr, EACH: tl.constexpr, BLOCK: tl.constexpr):
        pid = tl.program_id(0)
        at = pid * EACH
        end = at + EACH
        i = tl.arange(0, BLOCK)
        while at < end:
            row = at // STEPS
            stop = tl.minimum(end, (row + 1) * STEPS)
            sum = tl.zeros((BLOCK,), tl.float32)
            begin = at
            while at < stop:
                sum += tl.load(x + at * BLOCK + i)
                at += 1
            if stop == (row + 1) * STEPS:
                other = pid
                while begin > row * STEPS:
                    other -= 1
                    while tl.atomic_cas(flag + other, 1, 1) != 1:
                        pass
                    sum += tl.load(part + other * BLOCK + i)
                    begin = other * EACH
                tl.store(out + row, tl.sum(sum))
            else:
                tl.store(part + pid * BLOCK + i, sum)
                tl.debug_barrier()
                tl.atomic_xchg(flag + pid, 1)
    """


@pytest.mark.parametrize("rows, steps, programs", [(1, 12, 4), (6, 10, 4), (5, 7, 35), (8, 9, 3), (30, 50, 500)])
def test_a_split_sum_waits_for_its_parts(define, rows, steps, programs):
    x = np.random.default_rng(5).integers(-9, 9, (rows, steps, 32)).astype(np.float32)
    out = np.zeros(rows, np.float32)
    part, flag = np.zeros((programs, 32), np.float32), np.zeros(programs, np.int32)
    each = rows * steps // programs
    kernel = define(SPLIT)["kernel"]
    kernel[(programs,)](x, out, part, flag, STEPS=steps, EACH=each, BLOCK=32)
    np.testing.assert_array_equal(out, x.sum((1, 2)))


def test_a_deadlock_is_told_and_leaves_nothing_behind(define):
    source = """
        @triton.jit
        def kernel(x, flag):
            tl.atomic_add(x, 1)
            while tl.atomic_add(flag, 0) == 0:
                pass
        """
    kernel = define(source)["kernel"]
    for programs in (1, 2, 700):
        x, flag = np.zeros(1, np.int32), np.zeros(1, np.int32)
        with pytest.raises(naiad.DeadlockError) as caught:
            kernel[(programs,)](x, flag)
        assert x[0] == programs
        text = str(caught.value)
        assert "waits for a value" in text or f"{programs} programs wait for values" in text
        assert "waited for here by program (0, 0, 0)" in text
        flag[0] = 1
        kernel[(programs,)](x, flag)
        assert x[0] == 2 * programs


@pytest.mark.parametrize(
    "dtype, asks",
    [
        ("int32", "tl.atomic_add(flag, 0) == 0"),
        ("int64", "tl.atomic_or(flag, 0) == 0"),
        ("int32", "tl.atomic_and(flag, -1) == 0"),
        ("uint32", "tl.atomic_xor(flag, 0) == 0"),
        ("int32", "tl.atomic_max(flag, -5) == 0"),
        ("int32", "tl.atomic_min(flag, 5) == 0"),
        ("int32", "tl.atomic_xchg(flag, 0) == 0"),
        ("int64", "tl.atomic_cas(flag, 1, 0) == 0"),
        ("int32", "tl.atomic_load(flag) == 0"),
        ("int32", "tl.load(flag, volatile=True) == 0"),
        ("float32", "tl.atomic_add(flag, 0.0) < 1.0"),
        ("float64", "tl.atomic_max(flag, -1.0) < 1.0"),
    ],
)
def test_whoever_only_asks_writes_nothing(define, dtype, asks):
    source = f"""
        @triton.jit
        def kernel(flag):
            while {asks}:
                pass
        """
    with pytest.raises(naiad.DeadlockError):
        define(source)["kernel"][(3,)](np.zeros(1, dtype))


def test_a_fault_among_programs_that_wait(define):
    source = """
        @triton.jit(debug=True)
        def kernel(x, flags, wild):
            pid = tl.program_id(0)
            if pid == 5:
                tl.store(x + wild, 1)
                tl.atomic_xchg(flags, 1)
            while tl.atomic_add(flags, 0) == 0:
                pass
            tl.device_assert(pid != 7, "not seven")
            tl.store(x + pid, pid)
        """
    kernel = define(source)["kernel"]
    x, flags = np.zeros(16, np.int32), np.zeros(1, np.int32)
    for _ in range(3):
        with pytest.raises(naiad.OutOfBoundsError, match=r"program \(5, 0, 0\)"):
            kernel[(16,)](x, flags, 1 << 40)
        with pytest.raises(naiad.DeviceAssertError, match="not seven"):
            kernel[(16,)](x, flags, 5)
        flags[:] = 0
        kernel[(6,)](x, flags, 5)
        np.testing.assert_array_equal(x[:6], np.arange(6))
        flags[:] = 0


def test_what_is_printed_among_programs_that_wait(define, capfd):
    """Python's own stack is the one that prints: it looks at how much of it there is."""
    source = """
        @triton.jit
        def kernel(turn):
            pid = tl.program_id(0)
            while tl.atomic_add(turn, 0) != pid:
                pass
            tl.device_print("turn of", pid)
            tl.atomic_add(turn, 1)
        """
    define(source)["kernel"][(20,)](np.zeros(1, np.int32))
    lines = [line.split()[-2] for line in capfd.readouterr().out.splitlines()]
    assert lines == [str(i) for i in range(20)]


def test_two_threads_launch_at_a_time(define):
    barrier, chain = define(GRID_BARRIER)["kernel"], define(CHAIN)["kernel"]
    failed = []

    def launch(seed):
        x = np.random.default_rng(seed).integers(0, 5, (50, 16)).astype(np.int32)
        try:
            for _ in range(10):
                sums, out, count = np.zeros(50, np.int32), np.zeros_like(x), np.zeros(1, np.int32)
                barrier[(50,)](x, sums, out, count, ROUNDS=1, BLOCK=16)
                np.testing.assert_array_equal(out, x + np.roll(x.sum(1), -1)[:, None])
                out, flags = np.zeros_like(x), np.zeros(50, np.int32)
                chain[(50,)](x, out, flags, BLOCK=16)
                np.testing.assert_array_equal(out, x.cumsum(1)[::-1].cumsum(0)[::-1])
        except BaseException as e:  # noqa: BLE001
            failed.append(e)

    threads = [threading.Thread(target=launch, args=(seed,)) for seed in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failed, failed


def test_programs_that_do_not_fit_into_memory_are_told(define):
    # The tile is never made, but every program that waits has room for it: 128 MiB.
    source = """
        @triton.jit
        def kernel(x, flag, BLOCK: tl.constexpr):
            while tl.atomic_add(flag, 0) == 0:
                if tl.load(x) != 0:
                    i = tl.arange(0, BLOCK)
                    tl.store(x + i, tl.sort(tl.load(x + i)))
            tl.atomic_xchg(flag, 1)
        """
    x, flag = np.zeros(1, np.float64), np.zeros(1, np.int32)
    kernel = define(source)["kernel"]
    with pytest.raises(naiad.KernelError, match="runs out of memory.*have not started"):
        kernel[(1000,)](x, flag, BLOCK=1 << 20)
    with pytest.raises(naiad.DeadlockError):
        kernel[(3,)](x, flag, BLOCK=1 << 20)


def test_loops_that_write_let_others_run(define):
    """Programs that take and leave a lock until another sets a flag wait for it, too."""
    source = """
        @triton.jit
        def kernel(lock, flag, rounds):
            pid = tl.program_id(0)
            if pid == tl.num_programs(0) - 1:
                tl.atomic_xchg(flag, 1)
            done = 0
            while done == 0:
                while tl.atomic_cas(lock, 0, 1) == 1:
                    pass
                tl.store(rounds, tl.load(rounds) + 1)
                done = tl.load(flag, volatile=True)
                tl.atomic_xchg(lock, 0)
        """
    lock, flag, rounds = np.zeros(1, np.int32), np.zeros(1, np.int32), np.zeros(1, np.int64)
    define(source)["kernel"][(100,)](lock, flag, rounds)
    assert rounds[0] >= 100 and lock[0] == 0


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
@pytest.mark.parametrize("programs", [1, 300])
def test_ctrl_c_stops_programs_that_wait(define, programs):
    # They count while they wait, and so are not known to wait for ever.
    source = """
        @triton.jit
        def kernel(flag, rounds):
            n = tl.program_id(0)
            while tl.load(flag, volatile=True) == 0:
                n += 1
                tl.atomic_add(rounds, 1)
        """
    kernel = define(source)["kernel"]
    flag, rounds = np.ones(1, np.int32), np.zeros(1, np.int32)
    kernel[(programs,)](flag, rounds)
    flag[0] = 0
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    start = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        kernel[(programs,)](flag, rounds)
    assert time.perf_counter() - start < 5 and rounds[0] != 0
    flag[0] = 1
    kernel[(programs,)](flag, rounds)
