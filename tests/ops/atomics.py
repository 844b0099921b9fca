"""Atomics: every op and dtype, old values, masks, repeated addresses, words for order and scope, programs at once."""

import numpy as np
import pytest

import naiad as triton

from ._common import SIZES, define, refused, tiles
from ._numbers import ALL, TYPES, Typed, array, decode, encode, samples, wrap

COVERS = [
    "atomic_add", "atomic_max", "atomic_min", "atomic_and", "atomic_or", "atomic_xor", "atomic_xchg",
    "atomic_cas", "atomic_load", "atomic_store", "atomic_poll",
]  # fmt: skip

I = "tl.arange(0, 8)"

WIDE = ["int32", "uint32", "int64", "uint64"]
OPS = {
    "atomic_add": (lambda a, b: a + b, [*WIDE, "float16", "bfloat16", "float32", "float64"]),
    "atomic_max": (max, [*WIDE, "float32", "float64"]),
    "atomic_min": (min, [*WIDE, "float32", "float64"]),
    "atomic_and": (lambda a, b: a & b, WIDE),
    "atomic_or": (lambda a, b: a | b, WIDE),
    "atomic_xor": (lambda a, b: a ^ b, WIDE),
    "atomic_xchg": (lambda a, b: b, [*WIDE, "float32", "float64"]),
}
PAIRS = [(op, name) for op, (_, names) in OPS.items() for name in names]


def apply(op, name, a, b):
    """One step on numbers, in the type."""
    result = OPS[op][0](a, b)
    if TYPES[name].is_float:
        return decode(name, encode(name, result)).item()
    return int(wrap(name, result))


def numbers(name, x):
    return [v.item() for v in decode(name, x).ravel()]


def finite(name, n, seed=0):
    x = samples(name, 4 * n, seed)
    if TYPES[name].is_float:
        with np.errstate(all="ignore"):
            x = x[np.abs(decode(name, x)) < 1e6]
    return x[:n].copy()


@pytest.mark.parametrize("op, name", PAIRS)
def test_every_type(op, name):
    p, v = finite(name, 32), finite(name, 32, seed=6)
    before = p.copy()
    i = "tl.arange(0, 32)"
    got = tiles(
        f"r = tl.{op}(p + {i}, v)",
        {"p": Typed(name, p), "v": Typed(name, v)},
        pointers="p",
        r=(name, (32,)),
    )
    assert got.tobytes() == before.tobytes()
    want = [apply(op, name, a, b) for a, b in zip(numbers(name, before), numbers(name, v))]
    assert numbers(name, p) == want


@pytest.mark.parametrize("op, name", PAIRS)
def test_scalars_and_spellings(op, name):
    calls = [
        f"tl.{op}(p, v)",
        f"tl.{op}(pointer=p, val=v)",
        f"p.{op}(v)",
        f"tl.{op}(p, v, None, None, None)",
    ]
    calls += [f"tl.{op}(p, v, mask=True)", f"tl.{op}(p, v, sem='relaxed', scope='cta')"]
    for call in calls:
        p, v = array(name, [5, 6]), array(name, 3)
        old = tiles(f"r = {call}", {"p": Typed(name, p), "v": Typed(name, v)}, pointers="p", r=name)
        assert numbers(name, old) == [5]
        assert numbers(name, p) == [apply(op, name, 5, 3), 6]


@pytest.mark.parametrize("op, name", PAIRS)
def test_masked_lanes_do_nothing(op, name):
    p = array(name, [7] * 8)
    mask = f"{I} % 2 == 0"
    got = tiles(
        f"r = tl.{op}(p + {I}, 2, mask={mask})", {"p": Typed(name, p)}, pointers="p", r=(name, (8,))
    )
    assert numbers(name, got)[::2] == [7] * 4
    assert numbers(name, p) == [apply(op, name, 7, 2), 7] * 4
    # A masked lane may point anywhere, and a mask may be a constexpr.
    tiles(
        f"tl.{op}(p + {I} * 1000, 2, mask={I} < 0)\ntl.{op}(p + {I}, 2, False)",
        {"p": Typed(name, p)},
        pointers="p",
    )
    assert numbers(name, p) == [apply(op, name, 7, 2), 7] * 4


@pytest.mark.parametrize("op, name", PAIRS)
def test_repeated_addresses_all_take_effect(op, name):
    """Each lane gets the value that some other left, so old values and the last are a chain."""
    v = array(name, [3, 5, 9, 17, 33, 65, 129, 257])
    p = array(name, [1])
    got = tiles(
        f"r = tl.{op}(p + {I} * 0, v)",
        {"p": Typed(name, p), "v": Typed(name, v)},
        pointers="p",
        r=(name, (8,)),
    )
    left = [apply(op, name, a, b) for a, b in zip(numbers(name, got), numbers(name, v))]
    assert sorted([*numbers(name, got), *numbers(name, p)]) == sorted([1, *left])
    if op != "atomic_xchg":
        end = 1
        for x in numbers(name, v):
            end = apply(op, name, end, x)
        assert numbers(name, p) == [end]


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("sem", [None, "acquire", "release", "acq_rel", "relaxed"])
@pytest.mark.parametrize("scope", [None, "gpu", "cta", "sys"])
def test_words_for_order_and_scope(scope, sem, op):
    p = np.array([6], np.int32)
    assert (
        tiles(f"r = tl.{op}(p, 3, sem={sem!r}, scope={scope!r})", {"p": p}, pointers="p", r="int32")
        == 6
    )
    assert p[0] == apply(op, "int32", 6, 3)


@pytest.mark.parametrize("op", [*OPS, "atomic_cas"])
def test_other_words(op):
    values = "0, 1" if op == "atomic_cas" else "1"
    refused(f"tl.{op}(p, {values}, sem='seq_cst')", None, "memory order", p="int32", pointers="p")
    refused(f"tl.{op}(p, {values}, scope='block')", None, "scope", p="int32", pointers="p")


@pytest.mark.parametrize("op", OPS)
def test_values_are_cast_and_broadcast(op):
    for value, number in (("2.9", 2), ("True", 1), ("v", 3), ("v[None]", 3)):
        p = np.array([5, 6, 7, 8, 9, 10, 11, 12], np.int64)
        tiles(
            f"tl.{op}(p + {I}, {value}, mask=True)",
            {"p": p, "v": np.array(3.5, np.float32)},
            pointers="p",
        )
        assert p.tolist() == [apply(op, "int64", a, number) for a in range(5, 13)]


@pytest.mark.parametrize("op", OPS)
def test_types_that_are_refused(op):
    # Of floats `and`, `or` and `xor` are not ruled out by the language.
    skip = (
        ["float16", "bfloat16", "float32", "float64"]
        if op in ("atomic_and", "atomic_or", "atomic_xor")
        else []
    )
    for name in ALL:
        if name not in OPS[op][1] + skip and not (op == "atomic_xchg" and TYPES[name].bits == 16):
            refused(f"tl.{op}(p, 1)", "type-mismatch", "is not defined for", p=name, pointers="p")


@pytest.mark.parametrize(
    "arguments, id, message",
    [
        (f"p, {I}", "pointer-shape", "the value has shape"),
        (f"p, 1, mask={I} < 3", "pointer-shape", "the mask has shape"),
        (f"p + {I}, tl.arange(0, 4)", "pointer-shape", "the value has shape"),
        (f"p + {I}, 1, mask={I}", "type-mismatch", "must be boolean"),
        ("n, 1", "bad-argument", "a pointer is wanted"),
        ("p", "bad-call", ""),
    ],
)
def test_calls_that_are_refused(arguments, id, message):
    for op in OPS:
        refused(f"tl.{op}({arguments})", id, message, p="int32", n=7, pointers="p")


def test_pointers_to_const_and_outside():
    kernel = define("@triton.jit\ndef kernel(p: tl.const):\n    tl.atomic_add(p, 1)")["kernel"]
    with pytest.raises(triton.CompilationError) as caught:
        kernel[(1,)](np.zeros(1, np.int32))
    assert caught.value.diagnostic["id"] == "const-store"
    with pytest.raises(triton.OutOfBoundsError):
        tiles("tl.atomic_add(p + 8, 1)", {"p": np.zeros(8, np.int32)}, pointers="p")


@pytest.mark.parametrize("name", ["float32", "float64"])
@pytest.mark.parametrize("op", ["atomic_max", "atomic_min"])
def test_extrema_of_floats_order_all_images(op, name):
    """Zeros by their sign, NaN beyond the infinity of its sign; in a kernel's first launch as in others."""
    kernel = define(
        f"""
        @triton.jit
        def kernel(p, v, r):
            i = tl.arange(0, 8)
            tl.store(r + i, tl.{op}(p + i, tl.load(v + i)))
        """
    )["kernel"]
    nan = np.copysign(np.array(np.nan, TYPES[name].storage), [-1, 1])
    corners = np.array([nan[0], -np.inf, -2.5, -0.0, 0.0, 3.0, np.inf, nan[1]], nan.dtype)
    as_int = lambda x: x.view(f"i{x.itemsize}")
    signed = as_int(corners)
    # The order of images: that of integers, and the other way round below zero.
    place = np.where(signed < 0, np.iinfo(signed.dtype).min - signed - 1, signed)
    for start in range(len(corners)):
        p, r = np.full(8, corners[start]), np.zeros(8, corners.dtype)
        kernel[(1,)](p, corners, r)
        wins = place > place[start] if op == "atomic_max" else place < place[start]
        want = np.where(wins, signed, signed[start])
        np.testing.assert_array_equal(as_int(p), want)
        np.testing.assert_array_equal(as_int(r), signed[start])


@pytest.mark.parametrize(
    "op, name",
    [
        ("atomic_add", "int32"),
        ("atomic_add", "uint64"),
        ("atomic_max", "int64"),
        ("atomic_xor", "uint32"),
        ("atomic_add", "float64"),
    ],
)
@pytest.mark.parametrize("n", [0, *SIZES])
def test_programs_at_once(n, op, name):
    kernel = define(
        f"""
        @triton.jit
        def kernel(p, x, n, BLOCK: tl.constexpr):
            i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            v = tl.load(x + i, mask=i < n)
            tl.{op}(p + i % 3, v, mask=i < n)
        """
    )["kernel"]
    x = (np.arange(n) * 37 % 1009).astype(TYPES[name].storage)
    p = np.zeros(3, x.dtype)
    kernel[(triton.cdiv(n, 16),)](p, x, n, BLOCK=16)
    want = [0] * 3
    for i, v in enumerate(x.tolist()):
        want[i % 3] = apply(op, name, want[i % 3], v)
    assert p.tolist() == want


# ---- compare and swap -----------------------------------------------------------------------------

CAS = [name for name in ALL if TYPES[name].bits >= 16]


@pytest.mark.parametrize("name", CAS)
def test_cas(name):
    p = array(name, range(8))
    cmp, val = array(name, [0, 9, 2, 9, 4, 9, 6, 9]), array(name, range(10, 18))
    inputs = {"p": Typed(name, p), "c": Typed(name, cmp), "v": Typed(name, val)}
    got = tiles(f"r = tl.atomic_cas(p + {I}, c, v)", inputs, pointers="p", r=(name, (8,)))
    assert numbers(name, got) == list(range(8))
    assert numbers(name, p) == [10, 1, 12, 3, 14, 5, 16, 7]


@pytest.mark.parametrize("name", CAS)
def test_cas_of_scalars(name):
    for call in (
        "tl.atomic_cas(p, c, v)",
        "p.atomic_cas(c, v)",
        "tl.atomic_cas(pointer=p, cmp=c, val=v, sem='acquire', scope='sys')",
    ):
        p = array(name, [5, 6])
        inputs = {
            "p": Typed(name, p),
            "c": Typed(name, array(name, 5)),
            "v": Typed(name, array(name, 3)),
        }
        for left in (5, 3):
            assert numbers(name, tiles(f"r = {call}", inputs, pointers="p", r=name)) == [left]
        assert numbers(name, p) == [3, 6]


@pytest.mark.parametrize("name", [name for name in ALL if TYPES[name].bits < 16])
def test_cas_of_narrow_types(name):
    refused("tl.atomic_cas(p, p, p)", "type-mismatch", "is not defined for", p=name, pointers="p")


@pytest.mark.parametrize(
    "arguments",
    [
        "p, x, y", "p, y, x", f"p + {I}, y, y", f"p + {I}, 0, 1", "p, y, y.to(tl.int64)",
        f"p + {I}, {I}, y", "p, y[None], y",
    ],
)  # fmt: skip
def test_cas_neither_casts_nor_broadcasts(arguments):
    refused(
        f"tl.atomic_cas({arguments})",
        "type-mismatch",
        p="int32",
        x="scalar int64",
        y="scalar int32",
        pointers="p",
    )


def test_cas_compares_images_of_floats():
    p = np.array([0.0, np.nan], np.float32)
    body = "tl.atomic_cas(p, zero, two)\ntl.atomic_cas(p + 1, nan, two)"
    inputs = {"p": p, "zero": np.float32(-0.0), "nan": np.float32(np.nan), "two": np.float32(2)}
    tiles(body, inputs, pointers="p")
    assert p.tolist() == [0.0, 2.0]


def test_a_lock_guards_what_is_no_atomic():
    kernel = define(
        """
        @triton.jit
        def kernel(lock, total):
            while tl.atomic_cas(lock, 0, 1, sem="acquire") == 1:
                pass
            tl.store(total, tl.load(total) + tl.program_id(0))
            tl.atomic_xchg(lock, 0, sem="release")
        """
    )["kernel"]
    lock, total = np.zeros(1, np.int32), np.zeros(1, np.int32)
    kernel[(100,)](lock, total)
    assert total[0] == sum(range(100)) and lock[0] == 0


# ---- loads, stores, waiting -----------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in ALL if not TYPES[name].is_fp8])
def test_atomic_loads_and_stores(name):
    x = samples(name, 8)
    p = np.zeros(8, x.dtype)
    inputs = {"p": Typed(name, p), "x": Typed(name, x)}
    body = f"tl.atomic_store(p + {I}, x)\nr = tl.atomic_load(p + {I})"
    got = tiles(body, inputs, pointers="p", r=(name, (8,)))
    assert got.tobytes() == p.tobytes() == x.tobytes()


@pytest.mark.parametrize(
    "load",
    [
        "tl.atomic_load(p)", "p.atomic_load()", "tl.atomic_load(pointer=p, mask=None, sem='acquire', scope='gpu')",
        "tl.atomic_load(p, True, 'relaxed', 'sys')", "tl.atomic_load(p, sem='relaxed', scope='cta')",
    ],
)  # fmt: skip
def test_spellings_of_atomic_loads(load):
    assert tiles(f"r = {load}", {"p": np.array([7], np.int32)}, pointers="p", r="int32") == 7


@pytest.mark.parametrize(
    "store",
    [
        "tl.atomic_store(p, 7)", "p.atomic_store(7)", "tl.atomic_store(pointer=p, val=7.9, mask=None, sem='release', scope='gpu')",
        "tl.atomic_store(p, 7, True, 'relaxed', 'sys')", "tl.atomic_store(p, v)",
    ],
)  # fmt: skip
def test_spellings_of_atomic_stores(store):
    p = np.zeros(2, np.int32)
    tiles(store, {"p": p, "v": np.array(7, np.int64)}, pointers="p")
    assert p.tolist() == [7, 0]


def test_masks_of_atomic_loads_and_stores():
    p = np.arange(8, dtype=np.int32)
    got = tiles(
        f"r = tl.atomic_load(p + {I} * 3, mask={I} < 2)", {"p": p}, pointers="p", r=("int32", (8,))
    )
    assert got[:2].tolist() == [0, 3]
    tiles(f"tl.atomic_store(p + {I} * 3, 99, mask={I} < 2)", {"p": p}, pointers="p")
    assert p.tolist() == [99, 1, 2, 99, 4, 5, 6, 7]


@pytest.mark.parametrize(
    "name", [name for name in ALL if TYPES[name].bits >= 16 and not TYPES[name].is_float]
)
def test_polls_that_are_met_at_once(name):
    for call in (
        "tl.atomic_poll(p, 5)",
        "p.atomic_poll(expected=5)",
        "tl.atomic_poll(p, 5, sem='relaxed', scope='sys')",
        "tl.atomic_poll(p, 5, timeout_ns=1000)",
    ):
        assert tiles(f"r = {call}", {"p": array(name, [5])}, pointers="p", r="int1")


def test_a_poll_waits_for_another_program():
    kernel = define(
        """
        @triton.jit
        def kernel(flag, data):
            if tl.program_id(0) == 0:
                tl.store(data, 42)
                tl.atomic_store(flag, 1)
            else:
                tl.atomic_poll(flag, 1)
                tl.store(data + tl.program_id(0), tl.load(data) + tl.program_id(0))
        """
    )["kernel"]
    flag, data = np.zeros(1, np.int32), np.zeros(9, np.int32)
    kernel[(9,)](flag, data)
    assert data.tolist() == [42, *range(43, 51)]


@pytest.mark.parametrize(
    "call",
    [
        "tl.atomic_load(p, sem='release')", "tl.atomic_load(p, sem='acq_rel')", "tl.atomic_store(p, 1, sem='acquire')",
        "tl.atomic_store(p, 1, sem='acq_rel')", "tl.atomic_poll(p, 1, sem='release')", "tl.atomic_load(p, scope='block')",
        "tl.atomic_load(n)", "tl.atomic_store(p)", "tl.atomic_poll(p)", "tl.atomic_poll(b, 1)", "tl.atomic_poll(f, 1)",
        f"tl.atomic_store(p, {I})", f"tl.atomic_load(p, mask={I} < 2)",
    ],
)  # fmt: skip
def test_one_way_atomics_that_are_refused(call):
    refused(call, None, p="int32", b="int8", f="float32", n=7, pointers="pbf")
