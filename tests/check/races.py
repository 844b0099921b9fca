"""Programs, and lanes of one program, that use the same elements."""

import numpy as np
import triton
import triton.language as tl


@triton.jit
def scatter_add(x_ptr, ids_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ids = tl.load(ids_ptr + i)
    old = tl.load(out_ptr + ids)  # finds: error[race]
    tl.store(out_ptr + ids, old + tl.load(x_ptr + i))  # finds: error[race]


@triton.jit
def scatter_add_right(x_ptr, ids_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ids = tl.load(ids_ptr + i)
    tl.atomic_add(out_ptr + ids, tl.load(x_ptr + i))


def lost_updates():
    x = np.ones(8, np.float32)
    ids = np.array([0, 1, 2, 3, 3, 4, 5, 6], np.int32)
    scatter_add[(2,)](x, ids, np.zeros(8, np.float32), BLOCK=4)
    out = np.zeros(8, np.float32)
    scatter_add_right[(2,)](x, ids, out, BLOCK=4)
    assert out[3] == 2


@triton.jit
def last_wins(out_ptr):
    tl.store(out_ptr, tl.program_id(0))  # finds: error[race]


@triton.jit
def all_alike(out_ptr):
    tl.store(out_ptr, 7)  # finds: warning[same-value-race]


def one_element():
    last_wins[(4,)](np.zeros(1, np.int32))
    last_wins[(1,)](np.zeros(1, np.int32))
    all_alike[(4,)](np.zeros(1, np.int32))


@triton.jit
def shift(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n - 1)  # finds: error[race]
    tl.store(x_ptr + i + 1, x, mask=i < n - 1)


@triton.jit
def double(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(x_ptr + i, x + x, mask=i < n)


def in_place():
    shift[(4,)](np.arange(128, dtype=np.float32), 128, BLOCK=32)
    x = np.arange(5000, dtype=np.float32)
    double[(5,)](x, 5000, BLOCK=1024)
    assert (x == 2 * np.arange(5000)).all()


@triton.jit
def under_lock(x_ptr, out_ptr, lock_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * BLOCK + i)
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    total = tl.load(out_ptr + i) + x
    tl.store(out_ptr + i, total)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0)


@triton.jit
def under_relaxed_lock(x_ptr, out_ptr, lock_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * BLOCK + i)
    while tl.atomic_cas(lock_ptr, 0, 1, sem="relaxed") == 1:
        pass
    total = tl.load(out_ptr + i) + x  # finds: warning[weak-order]
    tl.store(out_ptr + i, total)  # finds: warning[weak-order]
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0, sem="relaxed")


@triton.jit
def under_narrow_lock(x_ptr, out_ptr, lock_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * BLOCK + i)
    while tl.atomic_cas(lock_ptr, 0, 1, scope="cta") == 1:  # finds: error[narrow-scope]
        pass
    tl.atomic_add(out_ptr + i, x)
    tl.atomic_xchg(lock_ptr, 0)


def locks():
    x = np.ones(8 * 32, np.float32)
    for kernel in under_lock, under_relaxed_lock, under_narrow_lock:
        out = np.zeros(32, np.float32)
        kernel[(8,)](x, out, np.zeros(1, np.int32), BLOCK=32)
        assert (out == 8).all()


@triton.jit
def split_sum(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * BLOCK + i)
    tl.atomic_add(out_ptr + i, x)


@triton.jit
def zero_then_add(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    if tl.program_id(0) == 0:
        tl.store(out_ptr + i, 0.0)
    x = tl.load(x_ptr + tl.program_id(0) * BLOCK + i)
    tl.atomic_add(out_ptr + i, x)  # finds: error[race]


def atomics():
    x = np.ones(8 * 32, np.float32)
    split_sum[(8,)](x, np.zeros(32, np.float32), BLOCK=32)
    zero_then_add[(8,)](x, np.zeros(32, np.float32), BLOCK=32)


@triton.jit
def hand_over(x_ptr, out_ptr, flag_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    if tl.program_id(0) == 0:
        tl.store(out_ptr + i, tl.load(x_ptr + i) * 2)
        tl.debug_barrier()
        tl.atomic_xchg(flag_ptr, 1, sem="release")
    else:
        while tl.atomic_add(flag_ptr, 0, sem="acquire") == 0:
            pass
        tl.store(out_ptr + BLOCK + i, tl.load(out_ptr + i) + 1)


@triton.jit
def hand_over_by_polling(x_ptr, out_ptr, flag_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    if tl.program_id(0) == 0:
        tl.store(out_ptr + i, tl.load(x_ptr + i) * 2)
        tl.debug_barrier()
        tl.atomic_xchg(flag_ptr, 1, sem="release")
    else:
        while tl.load(flag_ptr, volatile=True) == 0:
            pass
        y = tl.load(out_ptr + i)  # finds: warning[weak-order]
        tl.store(out_ptr + BLOCK + i, y + 1)


def messages():
    x = np.ones(32, np.float32)
    for kernel in hand_over, hand_over_by_polling:
        out = np.zeros(64, np.float32)
        kernel[(2,)](x, out, np.zeros(1, np.int32), BLOCK=32)
        assert (out[32:] == 3).all()


@triton.jit
def reversed_through_memory(x_ptr, scratch_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(scratch_ptr + i, tl.load(x_ptr + i))
    y = tl.load(scratch_ptr + BLOCK - 1 - i)  # finds: warning[missing-barrier]
    tl.store(out_ptr + i, y)


@triton.jit
def reversed_with_barrier(x_ptr, scratch_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(scratch_ptr + i, tl.load(x_ptr + i))
    same = tl.load(scratch_ptr + i)
    tl.debug_barrier()
    tl.store(out_ptr + i, tl.load(scratch_ptr + BLOCK - 1 - i) + same - same)


@triton.jit
def many_stores_before(scratch_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    for k in range(n):
        tl.store(scratch_ptr + k * BLOCK + i, k)
    tl.store(out_ptr + i, tl.load(scratch_ptr + i))  # finds: note[check-limit]


@triton.jit
def many_stores_and_a_barrier(scratch_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    for k in range(n):
        tl.store(scratch_ptr + k * BLOCK + i, k)
    tl.debug_barrier()
    tl.store(scratch_ptr + i, 1.0)
    tl.store(out_ptr + i, tl.load(scratch_ptr + i))


def lanes_of_one_program():
    x = np.arange(32, dtype=np.float32)
    for kernel in many_stores_before, many_stores_and_a_barrier:
        kernel[(1,)](np.zeros(300 * 32, np.float32), np.zeros(32, np.float32), 300, BLOCK=32)
    for kernel in reversed_through_memory, reversed_with_barrier:
        out = np.zeros(32, np.float32)
        kernel[(1,)](x, np.zeros(32, np.float32), out, BLOCK=32)
        assert (out == x[::-1]).all()


lost_updates()
one_element()
in_place()
locks()
atomics()
messages()
lanes_of_one_program()
