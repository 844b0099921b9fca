"""`tl.load`: masks, `other`, broadcasting of pointers, hints, every type, views, refusals."""

import numpy as np
import pytest

import naiad as triton

from ._common import SIZES, define, refused, same, tiles, value
from ._numbers import ALL, INTS, TYPES, Typed, array, samples

COVERS = ["load"]

I = "tl.arange(0, 8)"


def loaded(arguments, dtype="int32", shape=(8,), **inputs):
    inputs.setdefault("p", np.arange(8, dtype=np.int32) + 1)
    return tiles(f"r = tl.load({arguments})", inputs, pointers="pq", r=(dtype, shape))


@pytest.mark.parametrize("name", ALL)
def test_every_type_keeps_its_bits(name):
    x = samples(name, 256)
    got = loaded("p + tl.arange(0, 256)", name, (256,), p=Typed(name, x))
    assert got.tobytes() == x.tobytes()
    got = loaded(
        "p + tl.arange(0, 256), mask=tl.arange(0, 256) < 100", name, (256,), p=Typed(name, x)
    )
    assert got[:100].tobytes() == x[:100].tobytes()
    # What a masked lane without `other` reads is 0, as on a GPU.
    assert got[100:].tobytes() == bytes(156 * x.itemsize)


def test_bytes_of_bools_are_true_unless_zero():
    x = np.array([0, 1, 2, 128, 255, 0, 7, 0], np.uint8)
    kernel = define(
        """
        @triton.jit
        def kernel(out, p: "*i1"):
            i = tl.arange(0, 8)
            x = tl.load(p + i)
            tl.static_assert(x.dtype == tl.int1)
            tl.store(out + i, x)
        """
    )["kernel"]
    out = np.zeros(8, np.int32)
    kernel[(1,)](out, x)
    assert out.tolist() == (x != 0).astype(int).tolist()


# ---- shapes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(1,), (8,), (4, 2), (2, 1, 4), (2, 2, 2, 2)])
def test_ranks(shape):
    n = int(np.prod(shape))
    got = loaded(
        f"p + tl.arange(0, {n}).reshape{shape}", shape=shape, p=np.arange(n, dtype=np.int32)
    )
    same(got, np.arange(n, dtype=np.int32).reshape(shape))


def test_scalars():
    assert loaded("p + 3", shape=()) == 4
    assert loaded("pointer=p", shape=()) == 1
    for mask in ("True", "n > 3", "mask"):
        assert loaded(f"p + 3, {mask if mask != 'mask' else 'mask=True'}", shape=(), n=5) == 4
    for mask in ("False", "n > 7"):
        assert loaded(f"p + 3, {mask}", shape=(), n=5) == 0
        assert loaded(f"p + 3, {mask}, 9", shape=(), n=5) == 9
        assert loaded(f"p + 3, mask={mask}, other=n", shape=(), n=5) == 5


@pytest.mark.parametrize("n", SIZES)
def test_odd_sizes(n):
    x = samples("int64", n)
    block = triton.next_power_of_2(n)
    got = loaded(
        f"p + tl.arange(0, {block}), mask=tl.arange(0, {block}) < n, other=-7",
        "int64",
        (block,),
        p=x,
        n=n,
    )
    same(got[:n], x)
    assert (got[n:] == -7).all()


@pytest.mark.parametrize("n", [0, *SIZES])
def test_a_grid_of_programs(n):
    kernel = define(
        """
        @triton.jit
        def kernel(out, x, n, BLOCK: tl.constexpr):
            i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)
        """
    )["kernel"]
    x, out = samples("float32", n) if n else np.zeros(0, np.float32), np.zeros(n, np.float32)
    kernel[(triton.cdiv(n, 16),)](out, x, n, BLOCK=16)
    same(out, x)
    kernel[(1,)](out, x, n, BLOCK=2048)
    same(out, x)


VIEWS = {
    "transposed": lambda a: a.T,
    "every third": lambda a: a[:, ::3],
    "backwards": lambda a: a[::-1, ::-1],
    "a part": lambda a: a[3:7, 5:13],
    "repeated": lambda a: np.broadcast_to(a[2], (8, 16)),
}


@pytest.mark.parametrize("view", VIEWS)
def test_views(view):
    x = VIEWS[view](np.arange(256, dtype=np.float64).reshape(16, 16))
    same(value("x", "float64", inputs={"x": x}), x)


@pytest.mark.parametrize("mask", ["None", "cols < n", "rows < m", "(rows < m) & (cols < n)", "c"])
@pytest.mark.parametrize("width", [32, 64, 128, 256])
@pytest.mark.parametrize("name", ["int8", "float16", "float32", "int64"])
def test_rows_that_begin_anywhere(name, width, mask):
    """Short rows that are not aligned, as a GPU reads them in the pieces that its memory is cut into."""
    kernel = define(
        f"""
        @triton.jit
        def kernel(out, x, chosen, m, n, stride, WIDTH: tl.constexpr):
            rows, cols = tl.arange(0, 8)[:, None], tl.arange(0, WIDTH)[None, :]
            c = tl.load(chosen + rows * WIDTH + cols) != 0
            got = tl.load(x + rows * stride + cols, mask={mask}{"" if mask == "None" else ", other=9"})
            tl.store(out + rows * WIDTH + cols, got)
        """
    )["kernel"]
    stride, (m, n) = width + 13, (5, width - 3)
    chosen = np.random.default_rng(width).integers(0, 2, (8, width)).astype(np.int8)
    rows, cols = np.arange(8)[:, None], np.arange(width)[None, :]
    asked = {"None": True, "cols < n": cols < n, "rows < m": rows < m, "c": chosen != 0}
    live = asked.get(mask, (rows < m) & (cols < n))
    memory = samples(name, 8 * stride + 40)
    for start in (0, 1, 5, 31, 33):
        x = memory[start:]
        out = np.zeros((8, width), memory.dtype)
        kernel[(1,)](out, x, chosen, m, n, stride, WIDTH=width)
        same(out, np.where(live, x[: 8 * stride].reshape(8, stride)[:, :width], memory.dtype.type(9)))


# ---- masks and other ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "mask, want",
    [
        (f"{I} < 3", [1, 2, 3, 0, 0, 0, 0, 0]),
        (f"{I} % 2 == 0", [1, 0, 3, 0, 5, 0, 7, 0]),
        ("True", [1, 2, 3, 4, 5, 6, 7, 8]),
        ("False", [0] * 8),
        ("1", [1, 2, 3, 4, 5, 6, 7, 8]),
        ("None", [1, 2, 3, 4, 5, 6, 7, 8]),
        ("n > 0", [1, 2, 3, 4, 5, 6, 7, 8]),
        ("n < 0", [0] * 8),
        ("c", [1, 0, 0, 4, 0, 0, 7, 0]),
    ],
)
def test_masks(mask, want):
    c = np.arange(8) % 3 == 0
    for arguments in (f"p + {I}, {mask}", f"p + {I}, mask={mask}"):
        assert loaded(arguments, n=5, c=c).tolist() == want


@pytest.mark.parametrize(
    "other, fill",
    [
        ("-1", [-1] * 8), ("7.9", [7] * 8), ("True", [1] * 8), ("n", [5] * 8), ("f", [2] * 8),
        (f"{I} * 10", range(0, 80, 10)), ("2**31 - 1", [2**31 - 1] * 8), ("c", [1, 0, 0, 1, 0, 0, 1, 0]),
        ("n.to(tl.int64) + (1 << 32)", [5] * 8),
    ],
)  # fmt: skip
def test_other_is_cast_and_broadcast(other, fill):
    c = np.arange(8) % 3 == 0
    want = [v if v <= 3 else f for v, f in zip(range(1, 9), fill)]
    for arguments in (f"p + {I}, {I} < 3, {other}", f"p + {I}, mask={I} < 3, other={other}"):
        assert loaded(arguments, n=5, f=2.75, c=c).tolist() == want


@pytest.mark.parametrize("name", [n for n in ALL if not TYPES[n].is_fp8])
def test_other_of_every_type(name):
    got = loaded(f"p + {I}, {I} < 4, 1", name, p=Typed(name, array(name, np.zeros(8))))
    same(got, array(name, [0, 0, 0, 0, 1, 1, 1, 1]), name)


def test_other_for_a_mask_that_is_one_value():
    assert loaded(f"p + {I}, False, {I}").tolist() == list(range(8))


def test_masked_lanes_may_point_anywhere():
    bad = f"p + tl.where({I} < 4, {I}, 1 << 30)"
    assert loaded(f"{bad}, mask={I} < 4").tolist() == [1, 2, 3, 4, 0, 0, 0, 0]
    with pytest.raises(triton.OutOfBoundsError):
        loaded(bad)
    for at in (-1, 8, 1 << 30, -(1 << 31)):
        with pytest.raises(triton.OutOfBoundsError):
            loaded(f"p + n + {at}", shape=(), n=np.array(0, np.int32))


def test_a_load_broadcasts_its_pointers_up_to_the_mask():
    row = "p + tl.arange(0, 4)[None, :]"
    mask = "(tl.arange(0, 2) == 0)[:, None]"
    assert loaded(f"{row}, mask={mask}", shape=(2, 4)).tolist() == [[1, 2, 3, 4], [0] * 4]
    assert loaded(f"{row}, mask={mask}, other=-1", shape=(2, 4)).tolist() == [
        [1, 2, 3, 4],
        [-1] * 4,
    ]
    other = "tl.arange(0, 2)[:, None] - 9"
    assert loaded(f"{row}, mask=False, other={other}", shape=(2, 4)).tolist() == [
        [-9] * 4,
        [-8] * 4,
    ]
    assert loaded(f"p + tl.arange(0, 4), mask={mask}", shape=(2, 4)).tolist() == [
        [1, 2, 3, 4],
        [0] * 4,
    ]


# ---- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments, id, message",
    [
        (f"p, {I} < 3", "pointer-shape", "the mask has shape"),
        (f"p, True, {I}", "pointer-shape", "`other` has shape"),
        (f"p + {I}, other=0", "bad-argument", "without a mask"),
        (f"p + {I}, tl.arange(0, 4) < 2", "pointer-shape", "the mask has shape"),
        ("n", "bad-argument", "a pointer is wanted"),
        ("0", "bad-argument", "a pointer is wanted"),
        ("", "bad-call", ""),
        ("p, cache_modifier='.xx'", None, "cache modifier"),
        ("p, eviction_policy='evict_never'", None, "eviction policy"),
        ("p, boundary_check=(0,)", "bad-argument", "for block pointers"),
        ("p, masks=True", "bad-call", ""),
    ],
)
def test_loads_that_are_refused(arguments, id, message):
    refused(f"tl.load({arguments})", id, message, p="int32", n=7, pointers="p")


@pytest.mark.parametrize("name", [*INTS, "float32"])
def test_masks_of_other_types_are_refused(name):
    refused(
        f"tl.load(p + {I}, mask=m)",
        "type-mismatch",
        "must be boolean (int1)",
        p="int32",
        m=name,
        pointers="p",
    )


# ---- hints ----------------------------------------------------------------------------------------

CACHE = ["", ".ca", ".cg", ".cs", ".cv", "ca", "cg", "cs", "cv"]
EVICTION = ["", "evict_normal", "evict_first", "evict_last"]


@pytest.mark.parametrize(
    "hints",
    [f"cache_modifier={c!r}" for c in CACHE]
    + [f"eviction_policy={e!r}" for e in EVICTION]
    + ["volatile=True", "volatile=False", "boundary_check=()", "padding_option=''"]
    + ["cache_modifier='.cg', eviction_policy='evict_last', volatile=True"],
)
def test_hints_change_nothing(hints):
    assert loaded(f"p + {I}, {hints}").tolist() == list(range(1, 9))
    assert loaded(f"p + {I}, mask={I} < 2, other=0, {hints}").tolist() == [1, 2, 0, 0, 0, 0, 0, 0]


def test_const_pointers_and_read_only_arrays():
    kernel = define(
        """
        @triton.jit
        def kernel(out, p: tl.const):
            tl.store(out, tl.load(p))
        """
    )["kernel"]
    x, out = np.array([42], np.int32), np.zeros(1, np.int32)
    x.flags.writeable = False
    kernel[(1,)](out, x)
    assert out[0] == 42


def test_a_load_sees_what_was_stored_before_it():
    body = f"tl.store(p + {I}, {I} * 2)\na = tl.load(p + 7 - {I})\ntl.store(p + {I}, a)\nr = tl.load(p + {I})"
    got = tiles(body, {"p": np.zeros(8, np.int32)}, pointers="p", r=("int32", (8,)))
    assert got.tolist() == list(range(14, -1, -2))


def test_arrays_of_other_libraries_byte_order_and_alignment():
    for x in (np.zeros(8, ">i4"), np.zeros(33, np.uint8)[1:].view(np.int32)[:8]):
        if x.dtype.isnative:
            assert loaded(f"p + {I}", p=x).tolist() == [0] * 8
        else:
            with pytest.raises(TypeError, match="byte order"):
                define("@triton.jit\ndef kernel(p):\n    tl.load(p)")["kernel"][(1,)](x)
