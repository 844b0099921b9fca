"""`tl.sort`, `topk`, `bitonic_merge`: types, axes, directions, where NaN goes, odd sizes, refusals."""

import numpy as np
import pytest

from ._common import SIZES, power, refused, same, tiles, value
from ._numbers import ALL, TYPES, Typed, array, decode, samples

COVERS = ["sort", "topk", "bitonic_merge"]

SHAPES = [(1,), (2,), (8,), (256,), (4, 8), (1, 8), (8, 1), (2, 4, 8), (2, 2, 4, 2)]


def ordered(values, descending=False, axis=-1):
    """NaN beyond the largest number."""
    values = np.sort(values, axis)
    return np.flip(values, axis) if descending else values


def has_values(name, got, want):
    """The same numbers in the same order. Which of two equal ones comes first is left open."""
    np.testing.assert_array_equal(decode(name, got), want)


def promoted(name):
    """What a true selection is computed in."""
    t = TYPES[name]
    if t.is_float:
        return "float32" if t.bits < 32 else name
    return "int32" if t.bits < 32 else name


def shuffled(shape, dtype=np.int32):
    n = int(np.prod(shape))
    return np.random.default_rng(n).permutation(n).astype(dtype).reshape(shape) % dtype(97)


# ---- sort -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("descending", [False, True])
def test_sort_of_every_type(descending, name):
    x = samples(name, 128)
    got = value(f"tl.sort(x, descending={descending})", name, inputs={"x": Typed(name, x)})
    has_values(name, got, ordered(decode(name, x), descending))
    if not TYPES[name].is_float or TYPES[name].bits > 8:
        # Nothing is lost, be it a zero's sign or a NaN's payload.
        bits = f"u{x.itemsize}"
        assert sorted(got.view(bits).tolist()) == sorted(x.view(bits).tolist())


@pytest.mark.parametrize("shape", SHAPES)
def test_sort_along_axes(shape):
    x = shuffled(shape)
    last = len(shape) - 1
    for call in ("tl.sort(x)", f"tl.sort(x, {last})", "tl.sort(x, -1)", "tl.sort(x=x, dim=-1)"):
        same(value(call, "int32", inputs={"x": x}), np.sort(x, -1))
    for call in ("tl.sort(x, None, True)", "tl.sort(x, dim=-1, descending=True)"):
        same(value(call, "int32", inputs={"x": x}), ordered(x, True))
    for axis in range(last):
        same(value(f"tl.sort(x, {axis})", "int32", inputs={"x": x}), np.sort(x, axis))


@pytest.mark.parametrize("n", SIZES)
def test_sort_of_odd_sizes(n):
    x = shuffled((n,)).astype(np.float64) - 40
    got = value("tl.sort(x)", "float64", inputs={"x": x}, other={"x": "float('inf')"})
    same(got, np.sort(x))
    got = value(
        "tl.sort(x, descending=True)", "float64", inputs={"x": x}, other={"x": "float('-inf')"}
    )
    same(got, ordered(x, True))


def test_sort_of_large_rows():
    x = np.random.default_rng(3).integers(-(2**31), 2**31, (4, 4096)).astype(np.int32)
    same(value("tl.sort(x)", "int32", inputs={"x": x}), np.sort(x))
    y = x.view(np.float32)
    got = value("tl.sort(x, descending=True)", "float32", inputs={"x": y})
    np.testing.assert_array_equal(got, ordered(y, True))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_nan_and_infinity(dtype):
    x = np.array([np.nan, 1, -np.inf, np.inf, 0, -np.nan, -1, 5], dtype)
    same(value("tl.sort(x)", x.dtype.name, inputs={"x": x}), ordered(x))
    same(value("tl.sort(x, descending=True)", x.dtype.name, inputs={"x": x}), ordered(x, True))


def test_order_by_value_not_by_bits():
    x = np.array([0x80, 0x7F, 0xFF, 0], np.uint8)
    same(value("tl.sort(x)", "uint8", inputs={"x": x}), np.array([0, 0x7F, 0x80, 0xFF], np.uint8))
    y = x.view(np.int8)
    same(value("tl.sort(x)", "int8", inputs={"x": y}), np.sort(y))


def test_views():
    x = shuffled((8, 8))
    for view in (x.T, x[::-1, ::2], x[4:, :2]):
        same(value("tl.sort(x)", "int32", inputs={"x": view}), np.sort(view, -1))


def test_ranks_by_sorting_keys_with_their_places():
    """The usual way to an argsort: the place in the lower half of a word."""
    x = shuffled((64,)) % np.int32(10)
    body = """
        keys = (x.to(tl.int64) << 32) | tl.arange(0, 64)
        keys = tl.sort(keys)
        at = (keys & 0xFFFFFFFF).to(tl.int32)
        v = (keys >> 32).to(tl.int32)
    """
    at, v = tiles(body, {"x": x}, at=("int32", (64,)), v=("int32", (64,)))
    same(at, np.argsort(x, kind="stable").astype(np.int32))
    same(v, np.sort(x))


# ---- topk -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("descending", [False, True])
def test_topk_of_every_type(descending, name):
    x = samples(name, 64)
    # A selection widens as `max` does; all of them are only sorted.
    want = ordered(decode(name, x), descending)
    got = value(
        f"tl.topk(x, 8, descending={descending})", promoted(name), (8,), {"x": Typed(name, x)}
    )
    has_values(promoted(name), got, want[:8])
    got = value(f"tl.topk(x, 64, descending={descending})", name, (64,), {"x": Typed(name, x)})
    has_values(name, got, want)


@pytest.mark.parametrize("shape", SHAPES)
def test_topk_along_the_last_axis(shape):
    x = shuffled(shape)
    n, k = shape[-1], 1
    while k <= n:
        small = np.ascontiguousarray(np.sort(x, -1)[..., :k])
        large = np.ascontiguousarray(ordered(x, True)[..., :k])
        for call in (
            f"tl.topk(x, {k})",
            f"tl.topk(x=x, k={k}, dim=-1)",
            f"tl.topk(x, {k}, None, True)",
        ):
            same(value(call, "int32", large.shape, {"x": x}), large)
        same(value(f"tl.topk(x, {k}, descending=False)", "int32", small.shape, {"x": x}), small)
        k *= 2 if n < 64 else 8


@pytest.mark.parametrize("n", SIZES)
def test_topk_of_odd_sizes(n):
    x = shuffled((3, n)).astype(np.float32)
    k = min(4, power(n))
    got = value(f"tl.topk(x, {k})", "float32", (3, k), {"x": x}, other={"x": "float('-inf')"})
    want = np.full((3, k), -np.inf, np.float32)
    want[:, : min(k, n)] = ordered(x, True)[:, :k]
    same(got, want)


@pytest.mark.parametrize("k", [1, 2, 4])
def test_topk_and_nan(k):
    x = np.array([3, np.nan, -np.inf, np.inf, 7, np.nan, -2, 0], np.float32)
    same(value(f"tl.topk(x, {k})", "float32", (k,), {"x": x}), ordered(x, True)[:k])
    same(value(f"tl.topk(x, {k}, descending=False)", "float32", (k,), {"x": x}), ordered(x)[:k])


# ---- bitonic_merge --------------------------------------------------------------------------------


def bitonic(shape, dtype=np.int32):
    """Rows that rise and then fall, or the other way round."""
    x = np.sort(shuffled(shape).astype(dtype), -1)
    n = shape[-1]
    x[..., n // 2 :] = x[..., n // 2 :][..., ::-1]
    return x


@pytest.mark.parametrize("shape", SHAPES)
def test_merge(shape):
    x = bitonic(shape)
    for row in (x, -x):
        for call in ("tl.bitonic_merge(x)", "tl.bitonic_merge(x=x, dim=-1, descending=False)"):
            same(value(call, "int32", inputs={"x": row}), np.sort(row, -1))
        for call in ("tl.bitonic_merge(x, None, True)", "tl.bitonic_merge(x, descending=True)"):
            same(value(call, "int32", inputs={"x": row}), ordered(row, True))


@pytest.mark.parametrize("name", ALL)
def test_merge_of_every_type(name):
    x = array(name, [0, 0, 1, 1, 1, 1, 0, 0] if name == "int1" else [0, 1, 2, 6, 7, 5, 3, 1])
    got = value("tl.bitonic_merge(x)", name, inputs={"x": Typed(name, x)})
    has_values(name, got, np.sort(decode(name, x)))


def test_two_sorted_halves():
    """What a merge sort over several tiles does."""
    x, y = np.sort(shuffled((32,))), np.sort(shuffled((64,))[:32])
    body = "r = tl.bitonic_merge(tl.cat(x, tl.flip(y), can_reorder=False))"
    same(tiles(body, {"x": x, "y": y}, r=("int32", (64,))), np.sort(np.concatenate([x, y])))


# ---- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call, id, message",
    [
        ("tl.sort(s)", "bad-shape", "wants a tile, not a scalar"),
        ("tl.sort(x, 2)", "bad-argument", ""),
        ("tl.sort(x, -3)", "bad-argument", ""),
        ("tl.sort(x, 1, s > 0)", "not-constexpr", ""),
        ("tl.sort(x, 1, False, 0)", "bad-call", ""),
        ("tl.sort(p + tl.arange(0, 8))", "type-mismatch", ""),
        ("tl.topk(s, 1)", "bad-shape", "wants a tile, not a scalar"),
        ("tl.topk(x)", "bad-call", ""),
        ("tl.topk(x, 16)", "bad-shape", "at most 8"),
        ("tl.topk(x, 3)", "bad-shape", "power of 2"),
        ("tl.topk(x, 0)", "bad-shape", "power of 2"),
        ("tl.topk(x, -1)", "bad-shape", "power of 2"),
        ("tl.topk(x, s)", "not-constexpr", ""),
        ("tl.bitonic_merge(s)", "bad-shape", "wants a tile, not a scalar"),
        ("tl.bitonic_merge(x, 5)", "bad-argument", ""),
        ("x.sort()", None, "sort"),
        ("x.topk(2)", None, "topk"),
    ],
)  # fmt: skip
def test_sorts_that_are_refused(call, id, message):
    refused(call, id, message, x="int32[4, 8]", s="scalar int32", p="int32", pointers="p")
