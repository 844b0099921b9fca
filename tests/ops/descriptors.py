"""Tensor descriptors, made in kernels and on the host: blocks, bounds, padding, atomics, rows, refusals."""

import numpy as np
import pytest

import naiad as triton
from naiad.tools.tensor_descriptor import TensorDescriptor

from ._common import define, functions, refused, same, tiles
from ._numbers import ALL, TYPES, Typed, decode, encode, samples, wrap
from ._numbers import array as numbers

COVERS = [
    "make_tensor_descriptor", "load_tensor_descriptor", "store_tensor_descriptor",
    "window.load", "window.store", "window.gather",
    "window.scatter", "window.atomic_add", "window.atomic_max", "window.atomic_min", "window.atomic_and",
    "window.atomic_or", "window.atomic_xor",
]  # fmt: skip


def room(shape, dtype=np.int32):
    """An array whose rows begin at multiples of 16 bytes, as descriptors want them."""
    dtype = np.dtype(dtype)
    unit = 16 // dtype.itemsize
    wide = -(-shape[-1] // unit) * unit
    # Neighbours of a row that is not read must not look like padding.
    whole = np.full((*shape[:-1], wide), 77).astype(dtype)
    return whole[..., : shape[-1]]


def numbered(*shape, dtype=np.int32):
    x = room(shape, dtype)
    x[...] = (np.arange(int(np.prod(shape))) + 1).reshape(shape)
    return x


def block(x, offsets, extents, pad=0):
    """The elements of a block; those outside of the tensor are padding."""
    out = np.full(extents, pad, x.dtype)
    for i in np.ndindex(*extents):
        at = tuple(o + k for o, k in zip(offsets, i))
        if all(0 <= a < n for a, n in zip(at, x.shape)):
            out[i] = x[at]
    return out


def put(x, offsets, value):
    """Stores what of a block lies inside."""
    for i in np.ndindex(*value.shape):
        at = tuple(o + k for o, k in zip(offsets, i))
        if all(0 <= a < n for a, n in zip(at, x.shape)):
            x[at] = value[i]


def strides(x):
    return [s // x.itemsize for s in x.strides]


def made(x, extents, options="", function="tl.make_tensor_descriptor"):
    return f"{function}(p, {list(x.shape)}, {strides(x)}, {list(extents)}{options})"


def loaded(x, offsets, extents, options="", name=None):
    name = name or x.dtype.name
    body = f"d = {made(x, extents, options)}\nr = d.load({list(offsets)})"
    return tiles(body, {"p": Typed(name, x)}, pointers="p", r=(name, tuple(extents)))


def on_host(descriptor, body, inputs=None, name=None, **results):
    """`tiles` with a descriptor `d` that comes with the launch."""
    inputs = inputs or {}
    # Results are stored through plain pointers.
    outs, stores, params = [], [], []
    for result, (what, shape) in results.items():
        outs.append(np.zeros(shape, TYPES[what].storage))
        params.append(f'{result}_: "*{TYPES[what].short}"')
        place = [
            f"tl.arange(0, {n})[{', '.join(':' if i == d else 'None' for i in range(len(shape)))}]"
            f" * {int(np.prod(shape[d + 1 :]))}"
            for d, n in enumerate(shape)
        ]
        stores.append(f"tl.static_assert({result}.dtype == tl.{what})")
        stores.append(f"tl.store({' + '.join([f'{result}_', *place])}, {result})")
    lines = "\n".join(body.strip().splitlines() + stores)
    lines = "\n".join("    " + line for line in lines.splitlines())
    head = ", ".join(["d", *inputs, *params])
    kernel = define(f"@triton.jit\ndef kernel({head}):\n{lines}")["kernel"]
    kernel[(1,)](descriptor, *inputs.values(), *outs)
    return outs[0] if len(outs) == 1 else tuple(outs)


PLACES = [
    ((16,), (0,), (16,)),
    ((5,), (0,), (8,)),
    ((33,), (32,), (16,)),
    ((33,), (-4,), (8,)),
    ((8, 16), (0, 0), (8, 16)),
    ((7, 9), (0, 0), (8, 16)),
    ((7, 9), (-2, -4), (4, 8)),
    ((7, 9), (5, 8), (4, 8)),
    ((7, 9), (100, 0), (2, 4)),
    ((7, 9), (0, -100), (2, 4)),
    ((7, 9), (2**31 - 1, 4), (1, 4)),
    ((3, 5, 7), (1, -1, 4), (2, 4, 8)),
    ((2, 3, 4, 5), (1, 1, -2, 0), (2, 2, 2, 8)),
    ((2, 1, 3, 2, 6), (0, -1, 1, 1, 4), (1, 2, 2, 1, 8)),
]


# ---- load and store -------------------------------------------------------------------------------


@pytest.mark.parametrize("shape, offsets, extents", PLACES)
def test_load(shape, offsets, extents):
    x = numbered(*shape)
    same(loaded(x, offsets, extents), block(x, offsets, extents))
    d = TensorDescriptor.from_tensor(x, list(extents))
    got = on_host(d, f"r = d.load({list(offsets)})", r=("int32", extents))
    same(got, block(x, offsets, extents))


@pytest.mark.parametrize("shape, offsets, extents", PLACES)
def test_store(shape, offsets, extents):
    v = numbered(*extents) * 3
    want = numbered(*shape)
    put(want, offsets, v)
    x = numbered(*shape)
    body = f"d = {made(x, extents)}\nd.store({list(offsets)}, v)"
    tiles(body, {"p": x, "v": np.ascontiguousarray(v)}, pointers="p")
    same(x, want)
    # Nor is anything written between the rows.
    assert x.base is None or (x.base[..., shape[-1] :] == 77).all()


@pytest.mark.parametrize(
    "make",
    [
        "tl.make_tensor_descriptor(p, [4, 8], [8, 1], [2, 4])",
        "tl.make_tensor_descriptor(p, (4, 8), (8, 1), (2, 4), 'zero')",
        "tl.make_tensor_descriptor(base=p, shape=[4, 8], strides=[8, 1], block_shape=[2, 4], padding_option='zero')",
        "tl._experimental_make_tensor_descriptor(p, [4, 8], [8, 1], [2, 4])",
        "tl.make_tensor_descriptor(p, [m, n], [n, 1], [2, B])",
        "tl.make_tensor_descriptor(p, [m.to(tl.int64), n], [n.to(tl.int64), 1], [2, B])",
    ],
)
@pytest.mark.parametrize(
    "load, store",
    [
        ("d.load([i, j])", "d.store([i, j], r + 100)"),
        ("d.load((i, j))", "d.store((i, j), r + 100)"),
        ("d.load(offsets=[i, j])", "d.store(offsets=[i, j], value=r + 100)"),
        ("tl.load_tensor_descriptor(d, [i, j])", "tl.store_tensor_descriptor(d, [i, j], r + 100)"),
        ("tl.load_tensor_descriptor(desc=d, offsets=(i, j))", "tl.store_tensor_descriptor(desc=d, offsets=(i, j), value=r + 100)"),
    ],
)  # fmt: skip
def test_spellings(load, store, make):
    x = numbered(4, 8)
    body = f"B: tl.constexpr = 4\nd = {make}\nr = {load}\n{store}"
    inputs = {"p": x, "m": np.int32(4), "n": np.int32(8), "i": np.int32(3), "j": np.int32(4)}
    want = block(x, (3, 4), (2, 4))
    same(tiles(body, inputs, pointers="p", r=("int32", (2, 4))), want)
    assert x[3].tolist() == [25, 26, 27, 28, 129, 130, 131, 132]


# Types that NumPy has itself.
ON_HOST = [name for name in ALL if TYPES[name].storage.name.removeprefix("bool") in (name, "")]
NARROWEST = {name: 16 // max(TYPES[name].storage.itemsize, 1) for name in ALL}


@pytest.mark.parametrize("name", ALL)
def test_every_type(name):
    n = NARROWEST[name]
    x = room((3, n + 1), TYPES[name].storage)
    x[...] = samples(name, 3 * (n + 1)).reshape(x.shape)
    for offsets in ((0, 0), (1, 1), (-1, 2)):
        assert (
            loaded(x, offsets, (2, n), name=name).tobytes() == block(x, offsets, (2, n)).tobytes()
        )
    v = samples(name, 2 * n, 4).reshape(2, n)
    out, want = np.zeros_like(x.base), np.zeros_like(x.base)
    body = f"d = {made(x, (2, n))}\nd.store([2, 1], v)"
    tiles(body, {"p": Typed(name, out), "v": Typed(name, v)}, pointers="p")
    put(want[:, : n + 1], (2, 1), v)
    assert out.tobytes() == want.tobytes()


@pytest.mark.parametrize(
    "name", ["float16", "bfloat16", "float32", "float64", "float8e5", "float8e4nv"]
)
def test_padding_with_nan(name):
    n = NARROWEST[name]
    x = room((3, n), TYPES[name].storage)
    x[...] = numbers(name, np.ones(x.shape))
    inside = block(np.ones(x.shape, bool), (1, -2), (4, n))
    results = [loaded(x, (1, -2), (4, n), ", padding_option='nan'", name)]
    if name in ON_HOST:
        d = TensorDescriptor(x, list(x.shape), strides(x), [4, n], padding="nan")
        results.append(on_host(d, "r = d.load([1, -2])", r=(name, (4, n))))
    for got in results:
        values = decode(name, got)
        assert np.isnan(values[~inside]).all()
        assert (values[inside] == 1).all()


def test_a_tensor_that_is_smaller_than_its_storage():
    """Bounds are the descriptor's, not those of the memory."""
    x = np.arange(64, dtype=np.int32).reshape(8, 8)
    body = "d = tl.make_tensor_descriptor(p + 8, [3, 5], [16, 1], [4, 8])\nr = d.load([0, 0])"
    got = tiles(body, {"p": x}, pointers="p", r=("int32", (4, 8)))
    same(got, block(x[1:7:2, :5], (0, 0), (4, 8)))
    d = TensorDescriptor(x, [3, 5], [16, 1], [4, 8])
    same(on_host(d, "r = d.load([1, 1])", r=("int32", (4, 8))), block(x[0:6:2, :5], (1, 1), (4, 8)))


def test_empty_tensors():
    x = np.arange(16, dtype=np.int32)
    body = "d = tl.make_tensor_descriptor(p, [n, 4], [4, 1], [2, 4])\nr = d.load([0, 0])\nd.store([0, 0], r + 9)"
    assert not tiles(body, {"p": x, "n": np.int32(0)}, pointers="p", r=("int32", (2, 4))).any()
    assert x.tolist() == list(range(16))


def test_stores_cast_to_the_type_of_an_element():
    for v, name, want in (
        ("v", "int16", 2),
        ("v", "float16", 2.75),
        ("v.to(tl.int8)", "float32", 2.0),
    ):
        x = np.zeros((2, 8), name)
        body = f"d = {made(x, (2, 8))}\nd.store([0, 0], {v})"
        tiles(body, {"p": x, "v": np.full((2, 8), 2.75, np.float32)}, pointers="p")
        assert (x == want).all()


def test_offsets_of_any_narrow_integer():
    x = numbered(8, 8)
    for word in (np.int8, np.int16, np.int32, np.uint8):
        body = f"d = {made(x, (2, 4))}\nr = d.load([i, j])"
        inputs = {"p": x, "i": np.asarray(word(3)), "j": np.asarray(word(4))}
        same(tiles(body, inputs, pointers="p", r=("int32", (2, 4))), block(x, (3, 4), (2, 4)))


def test_over_a_grid():
    kernel = define(
        """
        @triton.jit
        def kernel(x, out, m, n, BM: tl.constexpr, BN: tl.constexpr):
            a = tl.make_tensor_descriptor(x, [m, n], [n, 1], [BM, BN])
            b = tl.make_tensor_descriptor(out, [n, m], [m, 1], [BN, BM])
            i, j = tl.program_id(0) * BM, tl.program_id(1) * BN
            b.store([j, i], a.load([i, j]).T)
        """
    )["kernel"]
    x, out = numbered(12, 36), np.zeros((36, 12), np.int32)
    kernel[(2, 3)](np.ascontiguousarray(x), out, 12, 36, BM=8, BN=16)
    same(out, x.T.copy())


@pytest.mark.parametrize("n", [16, 33, 127])
def test_in_loops_and_functions(n):
    helper = functions(
        """
@triton.jit
def part(d, j):
    return tl.sum(d.load([0, j]), 1)

@triton.jit
def described(p, m, n, stride, B: tl.constexpr):
    return tl.make_tensor_descriptor(p, [m, n], [stride, 1], [2, B])
"""
    )
    x = numbered(2, n, dtype=np.int64)
    body = """
        d = described(p, 2, n, stride, 16)
        r = tl.zeros((2,), tl.int64)
        for j in range(0, n, 16):
            r += part(d, j)
    """
    inputs = {"p": x, "n": n, "stride": strides(x)[0]}
    same(tiles(body, inputs, pointers="p", names=helper, r=("int64", (2,))), x.sum(1))


def test_carried_by_a_loop_and_a_branch():
    x = numbered(4, 8)
    body = f"""
        d = {made(x, (1, 8))}
        r = tl.zeros((1, 8), tl.int32)
        for i in range(4):
            r += d.load([0, 0])
            d = tl.make_tensor_descriptor(p + (i + 1) * 8, [1, 8], [8, 1], [1, 8])
        if n > 2:
            d = tl.make_tensor_descriptor(p, [1, 2], [8, 1], [1, 8])
        else:
            d = tl.make_tensor_descriptor(p, [1, 3], [8, 1], [1, 8])
        q = d.load([0, 0])
    """
    for n, inside in ((1, 3), (5, 2)):
        r, q = tiles(body, {"p": x, "n": n}, pointers="p", r=("int32", (1, 8)), q=("int32", (1, 8)))
        same(r, x.sum(0, keepdims=True).astype(np.int32))
        same(q, block(x[:1, :inside], (0, 0), (1, 8)))


def test_attributes():
    x = numbered(6, 8, dtype=np.float16)
    checks = """
tl.static_assert(d.dtype == tl.float16)
tl.static_assert(d.block_shape[0] == 2 and d.block_shape[1] == 8 and len(d.block_shape) == 2)
tl.static_assert(d.block_type.shape[1] == 8)
r = d.shape[0] * 10000 + d.shape[1] * 1000 + d.strides[0].to(tl.int32) * 10 + d.strides[1].to(tl.int32)
"""
    body = f"d = {made(x, (2, 8))}{checks}"
    assert tiles(body, {"p": x}, pointers="p", r="int32") == 68081
    assert on_host(TensorDescriptor.from_tensor(x, [2, 8]), checks, r=("int32", ())) == 68081


# ---- atomics --------------------------------------------------------------------------------------

WIDE = ["int32", "uint32", "int64", "uint64"]
ATOMICS = {
    "atomic_add": (
        lambda a, b: a + b,
        ["int32", "uint32", "uint64", "float32", "float16", "bfloat16"],
    ),
    "atomic_min": (min, WIDE),
    "atomic_max": (max, WIDE),
    "atomic_and": (lambda a, b: a & b, WIDE),
    "atomic_or": (lambda a, b: a | b, WIDE),
    "atomic_xor": (lambda a, b: a ^ b, WIDE),
}


def applied(op, name, a, b):
    """On arrays of the type, in the type."""
    out = [ATOMICS[op][0](p.item(), q.item()) for p, q in zip(decode(name, a), decode(name, b))]
    if TYPES[name].is_float:
        return encode(name, np.array(out))
    return wrap(name, np.array(out, object))


@pytest.mark.parametrize(
    "op, name", [(op, name) for op, (_, names) in ATOMICS.items() for name in names]
)
def test_atomics(op, name):
    n = max(8, NARROWEST[name])
    base = [5, 0, 3, 100, 7, 1, 2, 64] if TYPES[name].low == 0 else [5, 0, -3, 100, 7, -1, 2, 64]
    x = room((3, n), TYPES[name].storage)
    x[...] = np.resize(numbers(name, base), x.shape)
    v = np.resize(numbers(name, base[::-1][:7]), (2, n))
    for call in (
        f"d.{op}([i, 1], v)",
        f"d.{op}(offsets=(i, 1), value=v)",
    ):
        for i in (0, 2, -1, 9):
            got, want = x.base.copy() if x.base is not None else x.copy(), x.copy()
            for a in range(2):
                if 0 <= i + a < 3:
                    want[i + a, 1:] = applied(op, name, want[i + a, 1:], v[a, : n - 1])
            body = f"d = {made(x, (2, n))}\n{call}"
            tiles(
                body, {"p": Typed(name, got), "v": Typed(name, v), "i": np.int32(i)}, pointers="p"
            )
            same(got[:, :n].copy(), want, name)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
@pytest.mark.parametrize("op", ["min", "max"])
def test_atomic_extrema_of_halves(op, name):
    x, v = numbers(name, np.arange(8) - 3.0), numbers(name, 3.0 - np.arange(8))
    want = encode(
        name, {"min": np.minimum, "max": np.maximum}[op](decode(name, x), decode(name, v))
    )
    body = f"d = tl.make_tensor_descriptor(p, [8], [1], [8])\nd.atomic_{op}([0], v)"
    tiles(body, {"p": Typed(name, x), "v": Typed(name, v)}, pointers="p")
    same(x, want, name)


def test_atomics_of_programs_at_once():
    kernel = define(
        """
        @triton.jit
        def kernel(d, v):
            x = tl.load(v + tl.arange(0, 8))
            d.atomic_add([tl.program_id(0) % 3 * 4], x + tl.program_id(0))
        """
    )["kernel"]
    x, v = np.zeros(13, np.int32), np.arange(8, dtype=np.int32)
    kernel[(50,)](TensorDescriptor(x, [13], [1], [8]), v)
    want = np.zeros(20, np.int32)
    for p in range(50):
        want[p % 3 * 4 :][:8] += v + p
    same(x, want[:13])


@pytest.mark.parametrize("op", ATOMICS)
def test_types_of_atomics_that_are_refused(op):
    fits = set(ATOMICS[op][1]) | (
        {"float16", "bfloat16"} if op in ("atomic_min", "atomic_max") else set()
    )
    for name in ALL:
        if name not in fits and TYPES[name].bits > 1:
            n = NARROWEST[name]
            body = f"d = tl.make_tensor_descriptor(p, [{n}], [1], [{n}])\nd.{op}([0], tl.load(p + tl.arange(0, {n})))"
            refused(
                body,
                "type-mismatch",
                f".{op}` of a descriptor is not defined",
                p=f"{name}[{n}]",
                pointers="p",
            )


def test_atomics_give_nothing_back():
    refused(
        "d = tl.make_tensor_descriptor(p, [8], [1], [8])\nr = d.atomic_add([0], tl.arange(0, 8)) + 1",
        None, p="int32", pointers="p",
    )  # fmt: skip


# ---- rows -----------------------------------------------------------------------------------------


def rows_of(x, rows, y, columns, pad=0):
    return np.concatenate([block(x, (r, y), (1, columns), pad) for r in rows])


ROWS = {
    "all": [0, 1, 2, 3, 4, 5, 6, 7],
    "mixed": [7, 0, 0, 12, 3, 3, 9, 1, 2, 5, 11, 4, 8, 10, 6, 6],
    "outside": [-1, 13, 100, 0, 12, -(2**15), 2**15 - 1, 4],
}


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("word", [np.int16, np.int32])
@pytest.mark.parametrize("y", [0, 4, 24, -4, 100])
def test_gather(y, word, rows):
    x = numbered(13, 20)
    i = np.array(ROWS[rows], word)
    want = rows_of(x, i.tolist(), y, 16)
    for call in ("d.gather(i, y)", "d.gather(x_offsets=i, y_offset=y)", f"d.gather(i, {y})"):
        body = f"d = {made(x, (1, 16))}\nr = {call}"
        got = tiles(body, {"p": x, "i": i, "y": np.int32(y)}, pointers="p", r=("int32", want.shape))
        same(got, want)


@pytest.mark.parametrize(
    "name", ["int8", "float16", "bfloat16", "float32", "float64", "float8e5", "int64"]
)
def test_gather_of_types(name):
    n = max(32 // TYPES[name].bits * 8, NARROWEST[name])
    x = room((9, n), TYPES[name].storage)
    x[...] = samples(name, 9 * n).reshape(9, n)
    i = np.array([8, 0, 1, 1, 7, 3, -1, 9], np.int32)
    body = f"d = {made(x, (1, n))}\nr = d.gather(i, 0)"
    got = tiles(body, {"p": Typed(name, x), "i": i}, pointers="p", r=(name, (8, n)))
    assert got.tobytes() == rows_of(x, i.tolist(), 0, n).tobytes()


def test_gather_pads_with_nan():
    x = numbered(3, 8, dtype=np.float32)
    i = np.array([0, 3, -1, 2, 1, 1, 5, 0], np.int32)
    body = f"d = {made(x, (1, 8), ', padding_option=' + repr('nan'))}\nr = d.gather(i, 4)"
    got = tiles(body, {"p": x, "i": i}, pointers="p", r=("float32", (8, 8)))
    same(got, rows_of(x, i.tolist(), 4, 8, np.nan))


@pytest.mark.parametrize("word", [np.int16, np.int32])
@pytest.mark.parametrize("y", [0, 4, 24, -4, 100])
def test_scatter(y, word):
    i = np.array([7, 0, 12, -1, 13, 3, 1, 2], word)
    v = np.ascontiguousarray(numbered(8, 16)) * 1000
    want = numbered(13, 20)
    for r, row in zip(i.tolist(), v):
        put(want, (r, y), row[None])
    for call in ("d.scatter(v, i, y)", "d.scatter(value=v, x_offsets=i, y_offset=y)"):
        x = numbered(13, 20)
        tiles(
            f"d = {made(x, (1, 16))}\n{call}",
            {"p": x, "i": i, "v": v, "y": np.int32(y)},
            pointers="p",
        )
        same(x, want)


def test_rows_on_the_host():
    x = numbered(10, 16, dtype=np.float32)
    i = np.array([9, 0, 3, 3, 7, 10, -1, 2], np.int32)
    body = "at = tl.load(i + tl.arange(0, 8))\nr = d.gather(at, 8)\nd.scatter(r * 2, at, 0)"
    want = rows_of(x, i.tolist(), 8, 8)
    after = x.copy()
    for r, row in zip(i.tolist(), want * 2):
        put(after, (r, 0), row[None])
    d = TensorDescriptor.from_tensor(x, [1, 8])
    same(on_host(d, body, {"i": i}, r=("float32", (8, 8))), want)
    same(x, after)


# ---- made on the host -----------------------------------------------------------------------------


def passed_through(base, x, name):
    """A block from the last row on is loaded, and stored at the first."""
    n = x.shape[1]
    want = x[2].copy()
    d = TensorDescriptor(base, list(x.shape), strides(x), [2, n])
    got = on_host(d, "r = d.load([2, 0])\nd.store([0, 0], r)", r=(name, (2, n)))
    assert got[0].tobytes() == want.tobytes() and not got[1].view(np.uint8).any()
    assert x[0].tobytes() == want.tobytes() and not x[1].view(np.uint8).any()


@pytest.mark.parametrize("name", ON_HOST)
def test_host_descriptors_of_every_type(name):
    x = room((3, NARROWEST[name]), TYPES[name].storage)
    x[...] = samples(name, x.size).reshape(x.shape)
    passed_through(x, x, name)


@pytest.mark.parametrize("name", [name for name in ALL if name not in ON_HOST])
def test_host_descriptors_of_types_that_numpy_lacks(name):
    x = room((3, NARROWEST[name]), TYPES[name].storage)
    x[...] = samples(name, x.size).reshape(x.shape)
    passed_through(triton.reinterpret(x, getattr(triton.language, name)), x, name)


@pytest.mark.parametrize("name", ["bfloat16", "float8e5", "int16", "uint32"])
def test_reinterpreted_arrays(name):
    """Plain pointers have the same way to the types that NumPy lacks."""
    x = np.arange(8).astype(TYPES[name].storage)
    out = np.zeros(8, np.float32)
    text = """
        @triton.jit
        def kernel(x, out):
            i = tl.arange(0, 8)
            tl.store(out + i, tl.load(x + i).to(tl.float32))
    """
    array = triton.reinterpret(x.view(f"i{x.itemsize}"), getattr(triton.language, name))
    define(text)["kernel"][(1,)](array, out)
    same(out, decode(name, x).astype(np.float32))


def as_tf32(x):
    """To the nearest number with 10 bits of mantissa, ties to even."""
    bits = x.view(np.uint32).astype(np.uint64)
    rounded = (bits + 0xFFF + (bits >> np.uint64(13) & np.uint64(1))) & np.uint64(0xFFFFE000)
    return np.where(np.isnan(x), x, rounded.astype(np.uint32).view(np.float32))


def test_rounding_to_tf32():
    ties = np.array(
        [0x3F801000, 0x3F803000, 0x3F801001, 0xBF800FFF, 0x7F7FFFFF, 0x00000FFF, 0x80001000],
        np.uint32,
    )
    x = np.concatenate([samples("float32", 57), ties.view(np.float32)])
    x = np.ascontiguousarray(np.resize(x, (8, 8)))
    for flag, want in ((True, as_tf32(x)), (False, x)):
        d = TensorDescriptor.from_tensor(x, [8, 8], round_f32_to_tf32=flag)
        same(on_host(d, "r = d.load([0, 0])", r=("float32", (8, 8))), want)
    # Of other types nothing is cut, and stores do not round.
    y = np.full((8, 8), 1.0001, np.float64)
    d = TensorDescriptor.from_tensor(y, [8, 8], round_f32_to_tf32=True)
    same(on_host(d, "r = d.load([0, 0])", r=("float64", (8, 8))), y)
    out = np.zeros((8, 8), np.float32)
    d = TensorDescriptor(out, [8, 8], [8, 1], [8, 8], "zero", True)
    on_host(
        d,
        "r = tl.load(x + tl.arange(0, 8)[:, None] * 8 + tl.arange(0, 8))\nd.store([0, 0], r)",
        {"x": x},
        r=("float32", (8, 8)),
    )
    same(out, x)


def test_one_kernel_for_several_descriptors():
    """Blocks, padding and types are part of what is compiled; extents and strides are not."""
    kernel = define(
        """
        @triton.jit
        def kernel(d, out, N: tl.constexpr):
            tl.store(out + tl.arange(0, N), tl.reshape(d.load([0, 4]), (N,)).to(tl.float32))
        """
    )["kernel"]
    for dtype in (np.float32, np.float64, np.float32):
        for shape in ((4, 8), (3, 12), (2, 6)):
            for extents in ([2, 4], [1, 8], [4, 8]):
                for padding in ("zero", "nan"):
                    x = numbered(*shape, dtype=dtype)
                    n = extents[0] * extents[1]
                    out = np.zeros(n, np.float32)
                    kernel[(1,)](TensorDescriptor.from_tensor(x, extents, padding), out, N=n)
                    want = block(x, (0, 4), extents, np.nan if padding == "nan" else 0)
                    same(out, want.reshape(-1).astype(np.float32))


def test_several_descriptors_and_a_tuple_of_them():
    x, y = numbered(4, 8), numbered(4, 8) * 10
    kernel = define(
        """
        @triton.jit
        def kernel(a, both, out):
            t = a.load([0, 0]) + both[0].load([0, 0]) + both[1].load([1, 0])
            out.store([0, 0], t)
        """
    )["kernel"]
    out = np.zeros((2, 8), np.int32)
    a, b, c = (TensorDescriptor.from_tensor(t, [2, 8]) for t in (x, y, out))
    kernel[(1,)](a, (a, b), c)
    same(out, 2 * x[:2] + y[1:3])


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda x: TensorDescriptor(x, [4, 8], [8, 1], [3, 8]), "powers of 2"),
        (lambda x: TensorDescriptor(x, [4, 8], [8, 1], [2, 2]), "at least 16 bytes"),
        (lambda x: TensorDescriptor(x, [4, 8], [1, 8], [2, 8]), "last stride"),
        (lambda x: TensorDescriptor(x, [4, 8], [7, 1], [2, 8]), "no multiple of 16 bytes"),
        (lambda x: TensorDescriptor(x.reshape(-1)[1:], [8], [1], [8]), "no multiple of 16 bytes"),
        (lambda x: TensorDescriptor(x, [-1, 8], [8, 1], [2, 8]), "extent -1"),
        (lambda x: TensorDescriptor(x, [2**31, 8], [8, 1], [2, 8]), "extent"),
    ],
)
def test_host_descriptors_that_hardware_could_not_have(make, message):
    x = np.zeros((4, 8), np.int32)
    kernel = define("@triton.jit\ndef kernel(d):\n    pass")["kernel"]
    with pytest.raises(triton.LaunchError, match=message):
        kernel[(1,)](make(x))


@pytest.mark.parametrize(
    "arguments, message",
    [
        (([], [], []), "1 to 5 axes"),
        (([1] * 6, [1] * 6, [16] * 6), "1 to 5 axes"),
        (([4, 8], [1], [4, 8]), "of one length"),
        (([4, 8], [8, 1], [8]), "of one length"),
        (([4, 8], [8, 1], [4, 8], "one"), "zero"),
    ],
)
def test_host_descriptors_that_are_none(arguments, message):
    with pytest.raises((ValueError, AssertionError), match=message):
        TensorDescriptor(np.zeros((4, 8), np.int32), *arguments)


# ---- refusals -------------------------------------------------------------------------------------

D = "d = tl.make_tensor_descriptor(p, [8, 8], [8, 1], [2, 8])\n"
R = "d = tl.make_tensor_descriptor(p, [8, 8], [8, 1], [1, 8])\n"


@pytest.mark.parametrize(
    "body, id, message",
    [
        ("tl.make_tensor_descriptor(p, [8, 8], [8, s], [2, 8])", "bad-argument", "the constexpr 1"),
        ("tl.make_tensor_descriptor(p, [8, 8], [8, 2], [2, 8])", "bad-argument", "the constexpr 1"),
        ("tl.make_tensor_descriptor(p, [8, 8], [1], [2, 8])", "bad-argument", "1 strides"),
        ("tl.make_tensor_descriptor(p, [8, 8], [8, 1], [8])", "bad-argument", "extents of a block"),
        ("tl.make_tensor_descriptor(p, [8, 8], [8, 1], [2, 2])", "bad-shape", "at least 16 bytes"),
        ("tl.make_tensor_descriptor(p, [8, 8], [8, 1], [3, 8])", "bad-shape", ""),
        ("tl.make_tensor_descriptor(p, [8, 8], [8, 1], [s, 8])", "not-constexpr", ""),
        ("tl.make_tensor_descriptor(p, [1, 1, 1, 1, 1, 8], [8, 8, 8, 8, 8, 1], [1, 1, 1, 1, 1, 8])", "bad-shape", "1 to 5 axes"),
        ("tl.make_tensor_descriptor(p, [8, 8], [8, 1], [2, 8], 'nan')", "bad-argument", "no NaN"),
        ("tl.make_tensor_descriptor(p, [8, 8], [8, 1], [2, 8], 'one')", "bad-argument", "padding"),
        ("tl.make_tensor_descriptor(s, [8], [1], [8])", "bad-argument", "a pointer is wanted"),
        ("tl.make_tensor_descriptor(p + tl.arange(0, 8), [8], [1], [8])", "bad-argument", "one pointer"),
        ("tl.make_tensor_descriptor(p, [8.0], [1], [8])", "type-mismatch", "integer scalars"),
        ("tl.make_tensor_descriptor(p, [8], [1])", "bad-call", ""),
        (D + "d.load([0])", "bad-argument", "1 offsets"),
        (D + "d.load([0, 0, 0])", "bad-argument", "3 offsets"),
        (D + "d.load([0, 0.5])", "type-mismatch", "integer scalars"),
        (D + "d.load([tl.arange(0, 2), 0])", "type-mismatch", "integer scalars"),
        (D + "d.store([0, 0], tl.zeros((2, 4), tl.int32))", "shape-mismatch", "the descriptor's block"),
        (D + "d.store([0, 0], tl.zeros((8,), tl.int32))", "shape-mismatch", "the descriptor's block"),
        (D + "d.atomic_add([0, 0], tl.zeros((2, 4), tl.int32))", "shape-mismatch", "the descriptor's block"),
        (D + "d.load()", "bad-call", ""),
        (D + "d.gather(tl.arange(0, 8), 0)", "bad-shape", "blocks (1, n)"),
        (R + "d.gather(tl.arange(0, 4), 0)", "bad-argument", "at least 8"),
        (R + "d.gather(tl.arange(0, 8).to(tl.int64), 0)", "bad-argument", "int32 or int16"),
        (R + "d.gather(tl.zeros((2, 8), tl.int32), 0)", "bad-argument", "at least 8"),
        ("d = tl.make_tensor_descriptor(p, [8, 8], [8, 1], [1, 4])\nd.gather(tl.arange(0, 8), 0)", "bad-shape", "at least 8 columns"),
        (R + "d.scatter(tl.zeros((4, 8), tl.int32), tl.arange(0, 8), 0)", None, ""),
        ("tl.load_tensor_descriptor(p, [0, 0])", "bad-argument", "a tensor descriptor is wanted"),
        ("tl.store_tensor_descriptor(p, [0, 0], 1)", "bad-argument", "a tensor descriptor is wanted"),
        (D + "tl.advance(d, [0, 0])", "bad-argument", "a block pointer is wanted"),
        (D + "tl.load(d)", "bad-argument", ""),
        (D + "d.frobnicate", None, ""),
        (D + "d + 1", None, ""),
    ],
)  # fmt: skip
def test_refusals(body, id, message):
    refused(body, id, message, p="int32", s="scalar int32", pointers="p")


@pytest.mark.parametrize("call", ["d.load([w, 0])", "d.store([0, w], tl.zeros((2, 8), tl.int32))"])
def test_offsets_of_64_bits_are_refused(call):
    refused(
        D + call, "type-mismatch", "have 32 bits", p="int32[8, 8]", w="scalar int64", pointers="p"
    )


@pytest.mark.parametrize("what", ["s", "s[None, None]", "tl.zeros((1, 8), tl.int32)"])
def test_values_of_another_shape_than_the_block(what):
    refused(
        D + f"d.store([0, 0], {what})",
        "shape-mismatch",
        p="int32[8, 8]",
        s="scalar int32",
        pointers="p",
    )


def test_pointers_to_const():
    text = "@triton.jit\ndef kernel(p: tl.const):\n    d = tl.make_tensor_descriptor(p, [8], [1], [8])\n    d.store([0], d.load([0]))"
    with pytest.raises(triton.CompilationError) as caught:
        define(text)["kernel"][(1,)](np.zeros(8, np.int32))
    assert caught.value.diagnostic["id"] == "const-store"


def test_storage_that_is_too_short():
    x = np.zeros(12, np.int32)
    with pytest.raises(triton.OutOfBoundsError):
        tiles(
            "tl.make_tensor_descriptor(p, [4, 4], [4, 1], [4, 4]).load([0, 0])",
            {"p": x},
            pointers="p",
        )
