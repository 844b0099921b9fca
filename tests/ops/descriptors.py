"""Tensor descriptors made in kernels and on the host: loads, stores, atomics, rows by number."""

import itertools

import numpy as np
import pytest

import naiad as triton
from naiad.tools.tensor_descriptor import TensorDescriptor

from ._common import define, refused, same, tiles
from ._numbers import ALL, TYPES, Typed, array, decode, encode, samples, wrap
from .block_pointers import strides, window

COVERS = [
    "make_tensor_descriptor", "load_tensor_descriptor", "store_tensor_descriptor", "window.load",
    "window.store", "window.gather", "window.scatter", "window.atomic_add", "window.atomic_max",
    "window.atomic_min", "window.atomic_and", "window.atomic_or", "window.atomic_xor",
]  # fmt: skip


def made(x, block, extra="", name="p"):
    steps = ", ".join(map(str, (*strides(x)[:-1], 1)))
    return f"tl.make_tensor_descriptor({name}, {list(x.shape)}, [{steps}], {list(block)}{extra})"


def columns(name, least=16):
    """The fewest elements that a block's last axis may have."""
    return max(least // TYPES[name].storage.itemsize, 2)


@pytest.mark.parametrize("name", ALL)
def test_every_type(name):
    n = columns(name)
    x = np.resize(samples(name, 256), (8, 2 * n))
    d = made(x, (4, n))
    for call in (
        f"{d}.load([2, {n}])",
        f"tl.load_tensor_descriptor({d}, [2, {n}])",
        f"({d}).load(offsets=(2, {n}))",
    ):
        got = tiles(f"r = {call}", {"p": Typed(name, x)}, pointers="p", r=(name, (4, n)))
        assert got.tobytes() == np.ascontiguousarray(x[2:6, n:]).tobytes()
    for call in (".store([2, 0], d.load([0, 0]))", None):
        out = np.zeros_like(x)
        write = f"e{call}" if call else "tl.store_tensor_descriptor(e, [2, 0], d.load([0, 0]))"
        tiles(
            f"d = {d}\ne = {made(x, (4, n), name='q')}\n{write}",
            {"p": Typed(name, x), "q": Typed(name, out)},
            pointers="pq",
        )
        want = np.zeros_like(x)
        want[2:6, :n] = x[:4, :n]
        assert out.tobytes() == want.tobytes()


@pytest.mark.parametrize(
    "shape, block",
    [
        ((31,), (16,)),
        ((5, 7), (4, 4)),
        ((3, 5, 8), (2, 4, 4)),
        ((2, 3, 2, 5), (2, 2, 1, 4)),
        ((2, 1, 3, 2, 5), (1, 2, 2, 1, 4)),
    ],
)
def test_ranks_and_boundaries(shape, block):
    # A stride that is no multiple of 16 bytes would be wrong: the array is a part of a wider one.
    wide = np.arange(int(np.prod(shape[:-1])) * 32, dtype=np.float32).reshape(*shape[:-1], 32) + 1
    x = wide[..., : shape[-1]]
    every = tuple(range(len(shape)))
    for offsets in itertools.product(*[(-1, 0, n - b // 2) for n, b in zip(shape, block)]):
        want = window(x, offsets, block, every)
        got = tiles(
            f"r = {made(x, block)}.load({list(offsets)})",
            {"p": x},
            pointers="p",
            r=("float32", block),
        )
        same(got, want)
        nan = tiles(
            f"r = {made(x, block, ', padding_option=' + repr('nan'))}.load({list(offsets)})",
            {"p": x},
            pointers="p",
            r=("float32", block),
        )
        same(nan, window(x, offsets, block, every, np.nan))
        out = np.zeros_like(wide)[..., : shape[-1]]
        tiles(
            f"{made(x, block)}.store({list(offsets)}, tl.full({block}, 7.0, tl.float32))",
            {"p": out},
            pointers="p",
        )
        expect = np.zeros(shape, np.float32)
        expect[tuple(slice(max(o, 0), max(o + b, 0)) for o, b in zip(offsets, block))] = 7
        same(out, expect)


def test_stores_cast():
    out = np.zeros((4, 8), np.int16)
    tiles(
        f"{made(out, (4, 8))}.store([0, 0], tl.full((4, 8), 2.9, tl.float32))",
        {"p": out},
        pointers="p",
    )
    assert (out == 2).all()


def test_attributes():
    x = np.zeros((8, 16), np.float16)
    body = f"""
        d = {made(x, (4, 8))}
        tl.static_assert(d.block_shape == [4, 8])
        tl.static_assert(d.dtype == tl.float16)
        tl.static_assert(d.block_type.shape == [4, 8])
        tl.static_assert(len(d.shape) == 2)
        tl.static_assert(d.shape[0].dtype == tl.int32)
        r = d.shape[0] * 100 + d.strides[0]
    """
    assert tiles(body, {"p": x}, pointers="p", r="int64") == 816


OPS = {
    "add": (lambda a, b: a + b, ["uint32", "int32", "uint64", "float32", "float16", "bfloat16"]),
    "max": (max, ["int32", "uint32", "int64", "uint64"]),
    "min": (min, ["int32", "uint32", "int64", "uint64"]),
    "and": (lambda a, b: a & b, ["int32", "uint32", "int64", "uint64"]),
    "or": (lambda a, b: a | b, ["int32", "uint32", "int64", "uint64"]),
    "xor": (lambda a, b: a ^ b, ["int32", "uint32", "int64", "uint64"]),
}
METHODS = ["atomic_add", "atomic_max", "atomic_min", "atomic_and", "atomic_or", "atomic_xor"]


@pytest.mark.parametrize("method", METHODS)
def test_atomics(method):
    f, names = OPS[method.removeprefix("atomic_")]
    for name in names:
        n = columns(name)
        x = array(name, np.arange(3 * n).reshape(3, n) % 13)
        v = array(name, (np.arange(4 * n).reshape(4, n) * 7) % 11)
        numbers = [
            [f(a, b) for a, b in zip(r, s)]
            for r, s in zip(decode(name, x).tolist(), decode(name, v[1:]).tolist())
        ]
        want = encode(name, numbers) if TYPES[name].is_float else wrap(name, numbers)
        body = f"i = tl.arange(0, 4)[:, None] * {n} + tl.arange(0, {n})[None, :]\n{made(x, (4, n))}.{method}([-1, 0], tl.load(v + i))"
        tiles(body, {"p": Typed(name, x), "v": Typed(name, v)}, pointers="pv")
        same(x, want, name)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
@pytest.mark.parametrize("method", ["atomic_max", "atomic_min"])
def test_extrema_of_half_floats(method, name):
    x = array(name, [[1.0] * 8])
    tiles(
        f"{made(x, (1, 8))}.{method}([0, 0], tl.full((1, 8), 2.0, tl.{name}))",
        {"p": Typed(name, x)},
        pointers="p",
    )


def test_rows_by_number():
    x = np.arange(32 * 16, dtype=np.float32).reshape(32, 16)
    rows = np.array([3, 0, 31, 7, 7, 40, -1, 2], np.int32)
    inputs = {"p": x, "rows": rows}
    want = np.stack([x[r, 4:12] if 0 <= r < 32 else np.zeros(8, np.float32) for r in rows])
    for call in (
        "d.gather(rows, 4)",
        "d.gather(x_offsets=rows, y_offset=4)",
        "d.gather(rows.to(tl.int16), 4)",
    ):
        same(
            tiles(
                f"d = {made(x, (1, 8))}\nr = {call}", inputs, pointers="p", r=("float32", (8, 8))
            ),
            want,
        )
    out = np.zeros_like(x)
    rows = np.array([3, 0, 31, 7, 8, 40, -1, 2], np.int32)
    body = f"d = {made(x, (1, 8))}\nd.scatter(v, rows, 4)"
    v = np.arange(64, dtype=np.float32).reshape(8, 8) + 1
    tiles(body, {"p": out, "rows": rows, "v": v}, pointers="p")
    expect = np.zeros_like(x)
    for r, row in zip(rows, v):
        if 0 <= r < 32:
            expect[r, 4:12] = row
    same(out, expect)


# ---- made on the host -----------------------------------------------------------------------------


def test_descriptors_that_are_arguments():
    kernel = define(
        """
        @triton.jit
        def kernel(out, d, n):
            M: tl.constexpr = d.block_shape[0]
            N: tl.constexpr = d.block_shape[1]
            i = tl.program_id(0) * M
            for j in range(0, n, N):
                out.store([i, j], d.load([i, j]) * 2)
        """
    )["kernel"]
    x = np.arange(24 * 20, dtype=np.float32).reshape(24, 20)
    out = np.zeros_like(x)
    d = TensorDescriptor.from_tensor(x, [8, 16])
    kernel[(3,)](TensorDescriptor.from_tensor(out, [8, 16]), d, 20)
    same(out, 2 * x)
    assert (d.shape, d.strides, d.block_shape) == ([24, 20], [20, 1], [8, 16])


@pytest.mark.parametrize("padding", ["zero", "nan"])
def test_padding_of_host_descriptors(padding):
    kernel = define(
        "@triton.jit\ndef kernel(out, d):\n    i = tl.arange(0, 8)\n    tl.store(out + i, d.load([4]))\n"
    )["kernel"]
    out = np.zeros(8, np.float32)
    kernel[(1,)](out, TensorDescriptor(np.arange(6, dtype=np.float32), [6], [1], [8], padding))
    pad = np.nan if padding == "nan" else 0
    same(out, np.array([4, 5] + [pad] * 6, np.float32))


def test_rounding_to_tf32():
    kernel = define(
        "@triton.jit\ndef kernel(out, d):\n    tl.store(out + tl.arange(0, 256), d.load([0]))\n"
    )["kernel"]
    x = samples("float32", 256)
    out = np.zeros(256, np.float32)
    kernel[(1,)](out, TensorDescriptor(x, [256], [1], [256], round_f32_to_tf32=True))
    bits = x.view(np.uint32).astype(np.uint64)
    want = ((bits + 0xFFF + (bits >> 13 & 1)) & 0xFFFFE000).astype(np.uint32).view(np.float32)
    same(out, np.where(np.isnan(x), x, want))


@pytest.mark.parametrize(
    "arguments",
    [
        ([6], [1, 1], [8]), ([6, 6], [6, 1], [8]), ([], [], []), ([1] * 6, [1] * 6, [1] * 5 + [16]),
        ([6], [1], [8], "one"),
    ],
)  # fmt: skip
def test_host_descriptors_that_are_refused(arguments):
    with pytest.raises((ValueError, TypeError, triton.TritonError)):
        TensorDescriptor(np.zeros(64, np.float32), *arguments)


D = "tl.make_tensor_descriptor(p, [8, 8], [8, 1], [4, 4])"


@pytest.mark.parametrize(
    "call",
    [
        "tl.make_tensor_descriptor(p, [8, 8], [8, 2], [4, 4])", "tl.make_tensor_descriptor(p, [8, 8], [8, n], [4, 4])",
        "tl.make_tensor_descriptor(p, [8], [8, 1], [4, 4])", "tl.make_tensor_descriptor(p, [8, 8], [8, 1], [4])",
        "tl.make_tensor_descriptor(p, [8, 8], [8, 1], [4, 3])", "tl.make_tensor_descriptor(p, [8, 8], [8, 1], [4, 2])",
        "tl.make_tensor_descriptor(n, [8, 8], [8, 1], [4, 4])", "tl.make_tensor_descriptor(p, [8, 8], [8, 1])",
        "tl.make_tensor_descriptor(p, [8, 8], [8, 1], [4, 4], padding_option='nan')",
        "tl.make_tensor_descriptor(p, [8, 8], [8, 1], [4, 4], padding_option='one')",
        f"{D}.load([0])", f"{D}.load([0, 0, 0])", f"{D}.load([0, 0.5])", f"{D}.load()", f"{D}.load([0, tl.arange(0, 4)])",
        f"{D}.store([0, 0], tl.zeros((4, 8), tl.int32))", f"{D}.store([0, 0], tl.zeros((4, 1), tl.int32))",
        f"{D}.gather(tl.arange(0, 8), 0)", "tl.make_tensor_descriptor(p, [8, 8], [8, 1], [1, 8]).gather(tl.arange(0, 4), 0)",
        "tl.make_tensor_descriptor(p, [8, 8], [8, 1], [1, 8]).gather(tl.arange(0, 8).to(tl.int64), 0)",
        "tl.make_tensor_descriptor(p, [8, 8], [8, 1], [1, 4]).gather(tl.arange(0, 8), 0)",
        "tl.load_tensor_descriptor(p, [0, 0])", f"tl.load({D})", f"{D} + 1", f"{D}.nothing",
    ],
)  # fmt: skip
def test_calls_that_are_refused(call):
    refused(call, None, p="int32[8, 8]", n=4, pointers="p")


@pytest.mark.parametrize("offset", ["tl.full((), 0, tl.int64)", "n"])
def test_offsets_of_64_bits_are_refused(offset):
    refused(f"{D}.load([0, {offset}])", None, p="int32[8, 8]", n=2**40, pointers="p")


@pytest.mark.parametrize("method", ["atomic_add", "atomic_max", "atomic_and"])
def test_atomics_that_are_refused(method):
    kind = {"atomic_add": "float64", "atomic_max": "float32", "atomic_and": "float32"}[method]
    refused(
        f"{D}.{method}([0, 0], tl.zeros((4, 4), tl.{kind}))",
        "type-mismatch",
        p=f"{kind}[8, 8]",
        pointers="p",
    )
