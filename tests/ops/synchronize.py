"""`tl.atomic_load`, `atomic_store`, `atomic_poll`: types, masks, order, programs that wait for others."""

import numpy as np
import pytest

import naiad as triton

from ._common import SIZES, define, refused, same, tiles
from ._numbers import ALL, TYPES, Typed, array, decode, samples

COVERS = ["atomic_load", "atomic_store", "atomic_poll"]

I = "tl.arange(0, 8)"
POLLED = ["int16", "int32", "int64", "uint16", "uint32", "uint64"]


# ---- load -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL)
def test_load_of_every_type(name):
    x = samples(name, 32)
    inputs = {"p": Typed(name, x)}
    got = tiles("r = tl.atomic_load(p + tl.arange(0, 32))", inputs, pointers="p", r=(name, (32,)))
    assert got.tobytes() == x.tobytes()


@pytest.mark.parametrize(
    "call",
    [
        "tl.atomic_load(p)",
        "p.atomic_load()",
        "tl.atomic_load(pointer=p)",
        "tl.atomic_load(p, True)",
        "tl.atomic_load(p, mask=True, sem='acquire', scope='gpu')",
        "p.atomic_load(None, 'relaxed', 'sys')",
        "tl.atomic_load(p, sem=None, scope='cta')",
    ],
)
def test_load_of_a_scalar(call):
    for name in ("int32", "float64", "int8"):
        p = {"p": Typed(name, array(name, [5, 6]))}
        assert decode(name, tiles(f"r = {call}", p, pointers="p", r=name)) == 5


def test_masked_lanes_are_not_read():
    x = np.arange(1, 9, dtype=np.int32)
    got = tiles(
        f"r = tl.atomic_load(p + {I} * 1000, mask={I} == 0)",
        {"p": x},
        pointers="p",
        r=("int32", (8,)),
    )
    assert got.tolist() == [1] + [0] * 7
    got = tiles("r = tl.atomic_load(p + 99, mask=False)", {"p": x}, pointers="p", r="int32")
    assert got == 0


@pytest.mark.parametrize("n", SIZES)
def test_load_of_odd_sizes_and_ranks(n):
    x = np.arange(3 * n, dtype=np.int64).reshape(3, n)
    b = triton.next_power_of_2(n)
    i, j = "tl.arange(0, 4)[:, None]", f"tl.arange(0, {b})[None, :]"
    body = f"r = tl.atomic_load(p + {i} * {n} + {j}, mask=({i} < 3) & ({j} < {n}))"
    same(tiles(body, {"p": x}, pointers="p", r=("int64", (3, n))), x)


# ---- store ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL)
def test_store_of_every_type(name):
    x = samples(name, 32)
    p = np.zeros_like(x)
    body = "tl.atomic_store(p + tl.arange(0, 32), v)"
    tiles(body, {"p": Typed(name, p), "v": Typed(name, x)}, pointers="p")
    assert p.tobytes() == x.tobytes()


@pytest.mark.parametrize(
    "call",
    [
        "tl.atomic_store(p, 3)",
        "p.atomic_store(3)",
        "tl.atomic_store(pointer=p, val=3)",
        "tl.atomic_store(p, 3, True)",
        "tl.atomic_store(p, 3, mask=True, sem='release', scope='gpu')",
        "p.atomic_store(3, None, 'relaxed', 'sys')",
        "tl.atomic_store(p, 3, sem=None, scope='cta')",
    ],
)
def test_store_of_a_scalar(call):
    for name in ("int32", "float64", "int8"):
        p = array(name, [5, 6])
        tiles(call, {"p": Typed(name, p)}, pointers="p")
        assert decode(name, p).tolist() == [3, 6]


def test_stored_values_are_cast_and_broadcast():
    for what, number in (("2.9", 2), ("True", 1), ("v", 3), ("v[None]", 3)):
        p = np.zeros(8, np.int64)
        inputs = {"p": p, "v": np.array(3.5, np.float32)}
        tiles(f"tl.atomic_store(p + {I}, {what})", inputs, pointers="p")
        assert p.tolist() == [number] * 8
    p = np.full(8, 9, np.bool_)
    tiles(f"tl.atomic_store(p + {I}, {I} * 256 * ({I} % 2))", {"p": p}, pointers="p")
    assert p.view(np.uint8).tolist() == [0, 1] * 4


def test_masked_lanes_are_not_written():
    p = np.arange(8, dtype=np.int32)
    tiles(f"tl.atomic_store(p + {I}, 50, mask={I} % 3 == 0)", {"p": p}, pointers="p")
    assert p.tolist() == [50, 1, 2, 50, 4, 5, 50, 7]
    tiles(f"tl.atomic_store(p + {I} * 99, 60, {I} < 1)", {"p": p}, pointers="p")
    assert p.tolist() == [60, 1, 2, 50, 4, 5, 50, 7]


def test_one_of_several_values_for_one_address_wins():
    p = np.zeros(1, np.int32)
    tiles(f"tl.atomic_store(p + {I} * 0, {I} + 1)", {"p": p}, pointers="p")
    assert p[0] in range(1, 9)


# ---- poll -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", POLLED)
def test_poll_of_what_is_there(name):
    calls = [
        "tl.atomic_poll(p, 7)",
        "p.atomic_poll(7)",
        "tl.atomic_poll(p, 7, 'acquire', 'gpu', 1000)",
        "tl.atomic_poll(pointer=p, expected=7, sem='relaxed', scope='sys', timeout_ns=10)",
        "tl.atomic_poll(p, seven)",
        "tl.atomic_poll(p, 7, timeout_ns=None)",
        "tl.atomic_poll(p, 7, timeout_ns=0)",
    ]
    for call in calls:
        inputs = {"p": array(name, [7]), "seven": np.int8(7)}
        assert tiles(f"r = {call}", inputs, pointers="p", r="int1") == True  # noqa: E712


@pytest.mark.parametrize("name", POLLED)
@pytest.mark.parametrize("patience", ["0", "1", "1000", "n"])
def test_poll_that_runs_out_of_time(patience, name):
    inputs = {"p": array(name, [7]), "n": 100_000}
    body = f"r = tl.atomic_poll(p, 8, timeout_ns={patience})"
    assert not tiles(body, inputs, pointers="p", r="int1")


def test_poll_compares_all_bits():
    p = np.array([2**32 + 7], np.int64)
    assert not tiles("r = tl.atomic_poll(p, 7, timeout_ns=10)", {"p": p}, pointers="p", r="int1")
    p = np.array([-1], np.int16)
    assert tiles("r = tl.atomic_poll(p, -1, timeout_ns=10)", {"p": p}, pointers="p", r="int1")


def test_poll_without_an_end_is_reported():
    with pytest.raises(triton.DeadlockError) as caught:
        tiles("tl.atomic_poll(p, 1)", {"p": np.zeros(1, np.int32)}, pointers="p")
    assert caught.value.diagnostic["id"] == "deadlock"


# ---- programs that wait for others ----------------------------------------------------------------

HAND_OVER = """
    @triton.jit
    def kernel(data, flag, out, BLOCK: tl.constexpr):
        pid = tl.program_id(0)
        i = tl.arange(0, BLOCK)
        if pid == {producer}:
            tl.store(data + i, i * 3 + 1)
            {post}
        else:
            {wait}
            tl.store(out + pid * BLOCK + i, tl.load(data + i))
"""

POSTS = [
    "tl.atomic_store(flag, 1)",
    "tl.atomic_xchg(flag, 1, sem='release')",
    "tl.atomic_add(flag, 1)",
]
WAITS = [
    "tl.atomic_poll(flag, 1)",
    "tl.atomic_poll(flag, 1, timeout_ns=60_000_000_000)",
    "while tl.atomic_load(flag) != 1:\n                pass",
]


@pytest.mark.parametrize("producer", [0, 1, 6])
@pytest.mark.parametrize("post", POSTS)
@pytest.mark.parametrize("wait", WAITS)
def test_a_producer_and_its_consumers(wait, post, producer):
    """Whichever program comes first, what was stored before the flag is seen after it."""
    kernel = define(HAND_OVER.format(producer=producer, post=post, wait=wait))["kernel"]
    data, flag, out = np.zeros(32, np.int32), np.zeros(1, np.int32), np.zeros((7, 32), np.int32)
    kernel[(7,)](data, flag, out, BLOCK=32)
    want = np.tile(np.arange(32, dtype=np.int32) * 3 + 1, (7, 1))
    want[producer] = 0
    same(out, want)


@pytest.mark.parametrize("backwards", [False, True])
def test_a_chain_of_programs(backwards):
    """A prefix sum over blocks, each of which waits for the one before."""
    kernel = define(
        """
        @triton.jit
        def kernel(x, sums, out, BLOCK: tl.constexpr, BACKWARDS: tl.constexpr):
            pid = tl.program_id(0)
            if BACKWARDS:
                pid = tl.num_programs(0) - 1 - pid
            i = pid * BLOCK + tl.arange(0, BLOCK)
            v = tl.load(x + i)
            before = tl.full((), 0, tl.int64)
            if pid > 0:
                tl.atomic_poll(sums + 2 * (pid - 1), 1)
                before = tl.load(sums + 2 * (pid - 1) + 1)
            tl.store(sums + 2 * pid + 1, before + tl.sum(v))
            tl.atomic_store(sums + 2 * pid, 1)
            tl.store(out + i, before + tl.cumsum(v))
        """
    )["kernel"]
    x = np.arange(41 * 16, dtype=np.int64)
    sums, out = np.zeros((41, 2), np.int64), np.zeros_like(x)
    kernel[(41,)](x, sums, out, BLOCK=16, BACKWARDS=backwards)
    same(out, x.cumsum())


def test_a_barrier_of_all_programs():
    """Every program has written before any reads, round after round."""
    kernel = define(
        """
        @triton.jit
        def kernel(x, count, out, N: tl.constexpr, ROUNDS: tl.constexpr):
            pid = tl.program_id(0)
            for r in range(ROUNDS):
                tl.store(x + r * N + pid, pid * (r + 1))
                tl.atomic_add(count + r, 1)
                tl.atomic_poll(count + r, N)
                tl.store(out + r * N + pid, tl.load(x + r * N + (pid + 1) % N))
        """
    )["kernel"]
    x, count, out = np.zeros((3, 16), np.int32), np.zeros(3, np.int32), np.zeros((3, 16), np.int32)
    kernel[(16,)](x, count, out, N=16, ROUNDS=3)
    same(out, np.roll(np.arange(16), -1)[None, :] * np.arange(1, 4, dtype=np.int32)[:, None])


# ---- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call, id, message",
    [
        ("tl.atomic_load(p, sem='release')", "bad-argument", "memory order"),
        ("tl.atomic_load(p, sem='acq_rel')", "bad-argument", "memory order"),
        ("tl.atomic_store(p, 1, sem='acquire')", "bad-argument", "memory order"),
        ("tl.atomic_store(p, 1, sem='acq_rel')", "bad-argument", "memory order"),
        ("tl.atomic_poll(p, 1, sem='release')", "bad-argument", "memory order"),
        ("tl.atomic_load(p, scope='block')", "bad-argument", "scope"),
        ("tl.atomic_store(p, 1, scope='block')", "bad-argument", "scope"),
        ("tl.atomic_poll(p, 1, scope='block')", "bad-argument", "scope"),
        ("tl.atomic_load(5)", "bad-argument", "a pointer is wanted"),
        ("tl.atomic_store(5, 1)", "bad-argument", "a pointer is wanted"),
        ("tl.atomic_store(p)", "bad-call", ""),
        ("tl.atomic_poll(p)", "bad-call", ""),
        (f"tl.atomic_store(p, {I})", "pointer-shape", "the value has shape"),
        (f"tl.atomic_store(p, 1, {I} < 3)", "pointer-shape", "the mask has shape"),
        (f"tl.atomic_load(p, {I} < 3)", "pointer-shape", "the mask has shape"),
        (f"tl.atomic_load(p + {I}, {I})", "type-mismatch", "must be boolean"),
        (f"tl.atomic_poll(p + {I}, 1)", "type-mismatch", "one integer of 16, 32 or 64 bits"),
        ("tl.atomic_poll(f, 1)", "type-mismatch", "one integer of 16, 32 or 64 bits"),
        ("tl.atomic_poll(b, 1)", "type-mismatch", "one integer of 16, 32 or 64 bits"),
        (f"tl.atomic_poll(p, {I})", "pointer-shape", ""),
    ],
)  # fmt: skip
def test_calls_that_are_refused(call, id, message):
    refused(call, id, message, p="int32", f="float32", b="int8", pointers="pfb")


def test_pointers_to_const_and_outside():
    text = "@triton.jit\ndef kernel(p: tl.const):\n    tl.atomic_store(p, tl.atomic_load(p) + 1)"
    with pytest.raises(triton.CompilationError) as caught:
        define(text)["kernel"][(1,)](np.zeros(1, np.int32))
    assert caught.value.diagnostic["id"] == "const-store"
    for call in ("tl.atomic_load(p + 8)", "tl.atomic_store(p - 1, 1)", "tl.atomic_poll(p + 9, 0)"):
        with pytest.raises(triton.OutOfBoundsError):
            tiles(call, {"p": np.zeros(8, np.int32)}, pointers="p")


@pytest.mark.parametrize("name", [n for n in ALL if n not in POLLED and not TYPES[n].bits == 1])
def test_types_that_are_not_polled(name):
    refused("tl.atomic_poll(p, 1)", "type-mismatch", "waits for one integer", p=name, pointers="p")
