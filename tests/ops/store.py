"""`tl.store`: implicit casts of every pair, masks, broadcasting to the pointer, hints, refusals."""

import numpy as np
import pytest

import naiad as triton

from ._common import SIZES, define, refused, same, tiles
from ._numbers import ALL, FLOATS, INTS, TYPES, Typed, array, decode, encode, exact, samples, wrap

COVERS = ["store"]

I = "tl.arange(0, 8)"


def stored(arguments, dtype="int32", size=8, fill=-1, **inputs):
    """What `tl.store(arguments)` leaves in an array `p` of so many elements."""
    p = array(dtype, np.full(size, fill)) if np.ndim(fill) == 0 else fill
    tiles(f"tl.store({arguments})", {"p": Typed(dtype, p), **inputs}, pointers="p")
    return p


@pytest.mark.parametrize("name", ALL)
def test_every_type_keeps_its_bits(name):
    x = samples(name, 256)
    got = stored("p + tl.arange(0, 256), x", name, 256, 0, x=Typed(name, x))
    assert got.tobytes() == x.tobytes()


VALUES = {
    "int": [0, 1, -1, 100, -128, 300, 70000, 2**40 + 5],
    "uint": [0, 1, 2, 200, 255, 300, 70000, 2**31],
}


@pytest.mark.parametrize("source", [n for n in ALL if not TYPES[n].is_fp8])
def test_values_are_cast_to_the_pointee(source):
    s = TYPES[source]
    values = (
        [0.0, 1.5, -1.5, 100.9, -100.9, 7.0, 0.25, -0.0]
        if s.is_float
        else VALUES.get(s.kind, [0, 1] * 4)
    )
    x = array(source, values)
    numbers = decode(source, x)
    for target in ALL:
        t = TYPES[target]
        if t.is_fp8 and s.is_int:
            continue
        if t.kind == "bool":
            want = numbers != 0
        elif t.is_float:
            want = (
                x.astype(t.storage)
                if s.is_int and t.bits >= 32
                else encode(target, exact(source, x))
            )
        else:
            whole = [int(v) for v in numbers]
            if t.kind == "uint":
                # Negative floats do not fit; what becomes of them is not defined.
                whole = [abs(v) if s.is_float else v for v in whole]
            want = wrap(target, whole)
        keep = np.ones(8, bool) if not (s.is_float and t.kind == "uint") else numbers >= 0
        got = stored(f"p + {I}, x", target, fill=0, x=Typed(source, x))
        same(got[keep], want[keep], target)


def test_bools_are_stored_as_0_and_1():
    kernel = define(
        """
        @triton.jit
        def kernel(p: "*i1", x):
            i = tl.arange(0, 4)
            tl.store(p + i, tl.load(x + i))
        """
    )["kernel"]
    for x in (np.array([256, 0, -1, 2], np.int32), np.array([0.5, 0.0, np.nan, -0.0], np.float32)):
        out = np.full(4, 77, np.uint8)
        kernel[(1,)](out, x)
        assert out.tolist() == (x != 0).astype(int).tolist()


@pytest.mark.parametrize(
    "literal, dtype, want",
    [
        ("3", "float32", 3.0), ("2.75", "int32", 2), ("-2.75", "int8", -2), ("True", "int64", 1),
        ("300", "int8", 44), ("-1", "uint8", 255), ("0.1", "float64", np.float64(np.float32(0.1))),
        ("float('inf')", "float16", np.inf), ("2**63", "uint64", 2**63), ("5", "int1", True),
    ],
)  # fmt: skip
def test_literals_are_cast_from_their_natural_type(literal, dtype, want):
    want = np.full(8, want, TYPES[dtype].storage)
    same(stored(f"p + {I}, {literal}", dtype, fill=0), want)
    same(stored(f"p, {literal}", dtype, fill=0)[:1], want[:1])


@pytest.mark.parametrize("shape", [(1,), (8,), (4, 2), (2, 1, 4), (2, 2, 2, 2)])
def test_ranks(shape):
    n = int(np.prod(shape))
    got = stored(
        f"p + tl.arange(0, {n}).reshape{shape}, x",
        size=n,
        x=np.arange(n, dtype=np.int32).reshape(shape),
    )
    assert got.tolist() == list(range(n))


@pytest.mark.parametrize(
    "x, want",
    [
        ((), [5] * 8),
        ((1,), [5] * 8),
        ((1, 1), [5] * 8),
        ((2, 1), [5] * 4 + [6] * 4),
        ((4,), [5, 6, 7, 8] * 2),
    ],
)
def test_values_broadcast_to_the_pointer(x, want):
    x = np.asarray(np.arange(5, 5 + int(np.prod(x)), dtype=np.int32).reshape(x))
    assert stored("p + tl.arange(0, 8).reshape(2, 4), x", x=x).tolist() == want


SPELLINGS = [
    "p + {i}, {i}, {m}", "pointer=p + {i}, value={i}, mask={m}", "p + {i}, {i}, mask={m}",
    "p + {i}, mask={m}, value={i}",
]  # fmt: skip


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize(
    "mask, want",
    [
        (f"{I} < 3", [0, 1, 2, -1, -1, -1, -1, -1]), ("True", list(range(8))), ("False", [-1] * 8),
        ("None", list(range(8))), ("n > 0", list(range(8))), ("n < 0", [-1] * 8),
        ("c", [0, -1, -1, 3, -1, -1, 6, -1]), ("0", [-1] * 8),
    ],
)  # fmt: skip
def test_masks(mask, want, spelling):
    c = np.arange(8) % 3 == 0
    assert stored(spelling.format(i=I, m=mask), n=5, c=c).tolist() == want


def test_the_method():
    p = np.zeros(8, np.int32)
    tiles(f"(p + {I}).store({I}, {I} < 4)\np.store(9)", {"p": p}, pointers="p")
    assert p.tolist() == [9, 1, 2, 3, 0, 0, 0, 0]


def test_masked_lanes_may_point_anywhere():
    bad = f"p + tl.where({I} < 4, {I}, 1 << 30)"
    assert stored(f"{bad}, 3, mask={I} < 4").tolist() == [3] * 4 + [-1] * 4
    with pytest.raises(triton.OutOfBoundsError):
        stored(f"{bad}, 3")
    for at in (-1, 8, 1 << 40):
        with pytest.raises(triton.OutOfBoundsError):
            stored(f"p + {at}, 3")


@pytest.mark.parametrize("n", [0, *SIZES])
def test_odd_sizes_leave_the_rest_alone(n):
    kernel = define(
        """
        @triton.jit
        def kernel(out, n, BLOCK: tl.constexpr):
            i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            tl.store(out + i, i, mask=i < n)
        """
    )["kernel"]
    out = np.full(2048, -1, np.int16)
    kernel[(triton.cdiv(n, 64),)](out, n, BLOCK=64)
    assert out[:n].tolist() == list(range(n)) and (out[n:] == -1).all()


VIEWS = {
    "transposed": lambda a: a.T,
    "every third": lambda a: a[:, ::3],
    "backwards": lambda a: a[::-1, ::-1],
    "a part": lambda a: a[3:7, 5:13],
}


@pytest.mark.parametrize("name", ["int8", "float16", "float32", "int64"])
@pytest.mark.parametrize("view", VIEWS)
def test_views_are_written_in_place(view, name):
    base = np.zeros((16, 16), TYPES[name].storage)
    want = base.copy()
    rows, columns = VIEWS[view](base).shape
    body = f"i, j = tl.arange(0, {triton.next_power_of_2(rows)})[:, None], tl.arange(0, {triton.next_power_of_2(columns)})[None, :]\n"
    a, b = (s // base.itemsize for s in VIEWS[view](base).strides)
    body += f"tl.store(p + i * {a} + j * {b}, i + 2 * j, mask=(i < {rows}) & (j < {columns}))"
    tiles(body, {"p": VIEWS[view](base)}, pointers="p")
    VIEWS[view](want)[...] = np.arange(rows)[:, None] + 2 * np.arange(columns)
    same(base, want)


def test_of_lanes_that_meet_one_is_stored():
    assert stored(f"p + {I} // 8, {I}")[0] in range(8)


@pytest.mark.parametrize(
    "arguments, id, message",
    [
        (f"p, {I}", "pointer-shape", "the value has shape"),
        (f"p, 1, {I} < 3", "pointer-shape", "the mask has shape"),
        (f"p + {I}, tl.arange(0, 4)", "pointer-shape", "the value has shape"),
        (
            "p + tl.arange(0, 4)[None, :], tl.zeros((2, 4), tl.int32)",
            "pointer-shape",
            "the value has shape",
        ),
        (
            "p + tl.arange(0, 4)[None, :], 1, mask=tl.full((2, 1), True, tl.int1)",
            "pointer-shape",
            "the mask",
        ),
        ("n, 1", "bad-argument", "a pointer is wanted"),
        ("p", "bad-call", ""),
        ("p, None", None, ""),
        ("p, 1, cache_modifier='.ca2'", None, "cache modifier"),
        ("p, 1, eviction_policy='no'", None, "eviction policy"),
        ("p, 1, boundary_check=(0,)", "bad-argument", "for block pointers"),
    ],
)
def test_stores_that_are_refused(arguments, id, message):
    refused(f"tl.store({arguments})", id, message, p="int32", n=7, pointers="p")


@pytest.mark.parametrize("name", [*INTS, *FLOATS])
def test_masks_of_other_types_are_refused(name):
    body = f"tl.store(p + {I}, 1, mask=m)"
    refused(body, "type-mismatch", "must be boolean (int1)", p="int32", m=name, pointers="p")


@pytest.mark.parametrize(
    "hints",
    [f"cache_modifier={c!r}" for c in ("", ".wb", ".cg", ".cs", ".wt", "wb", "wt")]
    + [f"eviction_policy={e!r}" for e in ("", "evict_normal", "evict_first", "evict_last")],
)
def test_hints_change_nothing(hints):
    assert stored(f"p + {I}, {I}, {hints}").tolist() == list(range(8))


@pytest.mark.parametrize(
    "annotation", ["tl.const", "'*ki32'", "tl.pointer_type(tl.int32, const=True)"]
)
def test_nothing_is_stored_through_a_pointer_to_const(annotation):
    kernel = define(f"@triton.jit\ndef kernel(p: {annotation}):\n    tl.store(p, 1)")["kernel"]
    x = np.zeros(1, np.int32)
    with pytest.raises(triton.CompilationError) as caught:
        kernel[(1,)](x)
    assert caught.value.diagnostic["id"] == "const-store" and x[0] == 0


def test_an_address_is_stored_as_a_number():
    p = np.zeros(2, np.int64)
    tiles("tl.store(p + 1, p)", {"p": p}, pointers="p")
    assert p.tolist() == [0, p.ctypes.data]


def test_nothing_is_stored_in_read_only_arrays():
    p = np.zeros(8, np.int32)
    p.flags.writeable = False
    with pytest.raises(triton.TritonError):
        tiles("tl.store(p, 1)", {"p": p}, pointers="p")
    assert not p.any()
