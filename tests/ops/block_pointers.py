"""`tl.make_block_ptr`, `tl.advance`, and loads and stores through block pointers (Triton 2.1 to 3.8)."""

import itertools

import numpy as np
import pytest

from ._common import refused, same, tiles
from ._numbers import ALL, FLOATS, Typed, decode, samples

COVERS = ["make_block_ptr", "advance", "window.advance"]


def pointer(shape, strides, offsets, block, base="p"):
    order = tuple(range(len(block)))[::-1]
    return f"tl.make_block_ptr({base}, {shape}, {strides}, {offsets}, {block}, {order})"


def window(x, offsets, block, checked, fill=0):
    """What a load of a block finds, or raises where it reads beyond the array unchecked."""
    out = np.full(block, fill, x.dtype)
    for index in itertools.product(*map(range, block)):
        at = tuple(o + i for o, i in zip(offsets, index))
        if all(0 <= a < n for d, (a, n) in enumerate(zip(at, x.shape)) if d in checked):
            out[index] = x[at]
    return out


def strides(x):
    return tuple(s // x.itemsize for s in x.strides)


@pytest.mark.parametrize("name", ALL)
def test_every_type(name):
    x = samples(name, 64).reshape(8, 8)
    bp = pointer((8, 8), (8, 1), (2, 4), (4, 4))
    got = tiles(f"r = tl.load({bp})", {"p": Typed(name, x)}, pointers="p", r=(name, (4, 4)))
    assert got.tobytes() == x[2:6, 4:8].tobytes()
    out = np.zeros_like(x)
    body = f"tl.store({bp.replace('(p', '(q')}, tl.load({bp}))"
    tiles(body, {"p": Typed(name, x), "q": Typed(name, out)}, pointers="pq")
    want = np.zeros_like(x)
    want[2:6, 4:8] = x[2:6, 4:8]
    assert out.tobytes() == want.tobytes()


@pytest.mark.parametrize(
    "shape, block",
    [((31,), (16,)), ((5, 7), (4, 8)), ((3, 5, 6), (2, 4, 4)), ((2, 3, 2, 5), (2, 2, 1, 4))],
)
def test_boundaries_in_every_direction(shape, block):
    x = np.arange(1, int(np.prod(shape)) + 1, dtype=np.int32).reshape(shape)
    every = tuple(range(len(shape)))
    for offsets in itertools.product(*[(-1, 0, n - b // 2) for n, b in zip(shape, block)]):
        bp = pointer(shape, strides(x), offsets, block)
        inputs = {"p": x}
        want = window(x, offsets, block, every)
        for arguments in (
            f"boundary_check={every}",
            f"boundary_check={every[::-1]}, padding_option='zero'",
            f"boundary_check={list(every)}, padding_option=''",
        ):
            same(
                tiles(f"r = tl.load({bp}, {arguments})", inputs, pointers="p", r=("int32", block)),
                want,
            )
        out = np.full(shape, -1, np.int32)
        tiles(f"tl.store({bp}, {7}, boundary_check={every})", {"p": out}, pointers="p")
        expect = np.full(shape, -1, np.int32)
        low = [max(o, 0) for o in offsets]
        high = [max(o + b, 0) for o, b in zip(offsets, block)]
        expect[tuple(map(slice, low, high))] = 7
        same(out, expect)


def test_only_the_named_axes_are_checked():
    x = np.arange(64, dtype=np.int32).reshape(8, 8)
    inputs = {"p": x}
    bp = pointer((8, 6), (8, 1), (6, 4), (4, 4))
    got = tiles(
        f"r = tl.load({bp}, boundary_check=(0,))", inputs, pointers="p", r=("int32", (4, 4))
    )
    same(got, window(x, (6, 4), (4, 4), (0,)))
    got = tiles(
        f"r = tl.load({bp}, boundary_check=(-2, 1))", inputs, pointers="p", r=("int32", (4, 4))
    )
    same(got, window(x[:, :6], (6, 4), (4, 4), (0, 1)))


@pytest.mark.parametrize("name", FLOATS)
def test_padding_with_nan(name):
    x = samples(name, 4)
    bp = pointer((3,), (1,), (0,), (4,))
    got = tiles(
        f"r = tl.load({bp}, boundary_check=(0,), padding_option='nan')",
        {"p": Typed(name, x)},
        pointers="p",
        r=(name, (4,)),
    )
    assert np.isnan(decode(name, got)[3]) and got[:3].tobytes() == x[:3].tobytes()


@pytest.mark.parametrize(
    "view", [lambda a: a.T, lambda a: a[::2, 1::3], lambda a: a[::-1], lambda a: a[3:, 2:]]
)
def test_views(view):
    x = view(np.arange(144, dtype=np.float64).reshape(12, 12))
    bp = pointer(x.shape, strides(x), (1, 0), (2, 4))
    same(tiles(f"r = tl.load({bp})", {"p": x}, pointers="p", r=("float64", (2, 4))), x[1:3, :4])


def test_run_time_parts():
    x = np.arange(64, dtype=np.int32).reshape(8, 8)
    body = """
        bp = tl.make_block_ptr(base=p, shape=(m, n), strides=(s, 1), offsets=(i, j), block_shape=(4, 4), order=(1, 0))
        r = tl.load(bp, boundary_check=(0, 1))
    """
    got = tiles(
        body, {"p": x, "m": 7, "n": 5, "s": 8, "i": 4, "j": 3}, pointers="p", r=("int32", (4, 4))
    )
    same(got, window(x[:7, :5], (4, 3), (4, 4), (0, 1)))


@pytest.mark.parametrize(
    "advance",
    [
        "tl.advance(bp, (0, 4))",
        "bp.advance((0, 4))",
        "tl.advance(bp, offsets=(0, 4))",
        "tl.advance(base=bp, offsets=[0, n - 1])",
        "tl.advance(tl.advance(bp, (2, 8)), (-2, -4))",
    ],
)
def test_advance_in_a_loop(advance):
    x = np.arange(8 * 16, dtype=np.float32).reshape(8, 16)
    body = f"""
        bp = {pointer((8, 16), (16, 1), (0, 0), (8, 4))}
        r = tl.zeros((8, 4), tl.float32)
        for k in range(4):
            r += tl.load(bp)
            bp = {advance}
    """
    got = tiles(body, {"p": x, "n": 5}, pointers="p", r=("float32", (8, 4)))
    same(got, x.reshape(8, 4, 4).sum(1))


def test_advance_leaves_its_operand_alone():
    x = np.arange(16, dtype=np.int32)
    body = f"bp = {pointer((16,), (1,), (0,), (4,))}\nnext = tl.advance(bp, (4,))\na = tl.load(bp)\nb = tl.load(next)"
    a, b = tiles(body, {"p": x}, pointers="p", a=("int32", (4,)), b=("int32", (4,)))
    assert a.tolist() == [0, 1, 2, 3] and b.tolist() == [4, 5, 6, 7]


def test_offsets_beyond_int32_elements_do_not_wrap():
    x = np.arange(8, dtype=np.int8)
    body = f"bp = {pointer('(1 << 20, 8)', '(1 << 20, 1)', '((1 << 16), 0)', (1, 8))}\nr = tl.load(tl.advance(bp, (-(1 << 16), 0)))"
    same(tiles(body, {"p": x}, pointers="p", r=("int8", (1, 8))), x[None])


def test_the_element_type_is_known():
    body = f"bp = {pointer((8,), (1,), (0,), (8,))}\nr = tl.load(bp).to(bp.dtype.element_ty) + 1\ntl.store(bp, (r * 2.0).to(bp.type.element_ty))"
    p = np.arange(8, dtype=np.float16)
    tiles(body, {"p": p}, pointers="p", r=("float16", (8,)))
    assert p.tolist() == [2.0 * (i + 1) for i in range(8)]


MAKE = "tl.make_block_ptr(p, (8, 8), (8, 1), (0, 0), (4, 4), (1, 0))"


@pytest.mark.parametrize(
    "call",
    [
        "tl.make_block_ptr(p, (8, 8), (8,), (0, 0), (4, 4), (1, 0))", "tl.make_block_ptr(p, (8,), (8, 1), (0, 0), (4, 4), (1, 0))",
        "tl.make_block_ptr(p, (8, 8), (8, 1), (0,), (4, 4), (1, 0))", "tl.make_block_ptr(p, (8, 8), (8, 1), (0, 0), (4,), (1, 0))",
        "tl.make_block_ptr(p, (8, 8), (8, 1), (0, 0), (3, 4), (1, 0))", "tl.make_block_ptr(p, (8, 8), (8, 1), (0, 0), (n, 4), (1, 0))",
        "tl.make_block_ptr(p, (8, 8), (8, 1), (0, 0), (4, 4), (1, 1))", "tl.make_block_ptr(p, (8, 8), (8, 1), (0, 0), (4, 4), (2, 0))",
        "tl.make_block_ptr(n, (8, 8), (8, 1), (0, 0), (4, 4), (1, 0))", "tl.make_block_ptr(p, (8, 8), (8, 1), (0.5, 0), (4, 4), (1, 0))",
        "tl.make_block_ptr(p + tl.arange(0, 4), (8, 8), (8, 1), (0, 0), (4, 4), (1, 0))", "tl.make_block_ptr(p, (8, 8), (8, 1), (0, 0), (4, 4))",
        f"tl.advance({MAKE}, (1,))", f"tl.advance({MAKE}, (1, 2, 3))", "tl.advance(p, (1, 2))", f"tl.advance({MAKE}, (0.5, 1))",
        f"tl.load({MAKE}, mask=True)", f"tl.load({MAKE}, other=0)", f"tl.load({MAKE}, boundary_check=(2,))",
        f"tl.load({MAKE}, boundary_check=(0,), padding_option='one')", f"tl.load({MAKE}, boundary_check=(0,), padding_option='nan')",
        f"tl.store({MAKE}, 1, mask=True)", f"tl.store({MAKE}, tl.zeros((8, 4), tl.int32))", f"{MAKE} + 1", f"{MAKE}[0]",
        f"tl.atomic_add({MAKE}, 1)",
    ],
)  # fmt: skip
def test_calls_that_are_refused(call):
    refused(call, None, p="int32[8, 8]", n=4, pointers="p")
