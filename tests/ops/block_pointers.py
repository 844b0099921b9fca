"""Block pointers: strides, bounds, padding, moves, loops and branches, spellings, refusals."""

import numpy as np
import pytest

import naiad as triton

from ._common import SIZES, define, functions, refused, same, tiles
from ._numbers import ALL, TYPES, Typed, samples

COVERS = ["make_block_ptr", "advance", "window.advance"]


def block(x, offsets, extents, checked=(), pad=0):
    """The elements of a block, by the definition: outside of the checked axes nothing is read."""
    out = np.full(extents, pad, x.dtype)
    for i in np.ndindex(*extents):
        at = [o + k for o, k in zip(offsets, i)]
        if all(0 <= at[d] < x.shape[d] for d in checked):
            out[i] = x[tuple(at)]
    return out


def pointer(x, offsets, extents, order=None, base="p"):
    """A call of `make_block_ptr` for a view."""
    rank = x.ndim
    strides = tuple(s // x.itemsize for s in x.strides)
    order = tuple(range(rank - 1, -1, -1)) if order is None else order
    return f"tl.make_block_ptr({base}, {x.shape}, {strides}, {tuple(offsets)}, {tuple(extents)}, {order})"


def loaded(x, offsets, extents, options="", name=None, **more):
    name = name or x.dtype.name
    body = f"b = {pointer(x, offsets, extents)}\nr = tl.load(b{options})"
    return tiles(body, {"p": Typed(name, x)}, pointers="p", r=(name, tuple(extents)), **more)


def numbered(*shape, dtype=np.int32):
    return np.arange(1, int(np.prod(shape)) + 1, dtype=dtype).reshape(shape)


# ---- load -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "shape, offsets, extents",
    [
        ((8,), (0,), (8,)),
        ((8,), (3,), (4,)),
        ((8, 16), (0, 0), (8, 16)),
        ((8, 16), (4, 8), (2, 4)),
        ((9, 7), (1, 2), (8, 4)),
        ((9, 7), (8, 6), (1, 1)),
        ((3, 5, 7), (1, 1, 3), (2, 4, 4)),
        ((2, 3, 4, 5), (0, 1, 2, 1), (2, 2, 2, 4)),
    ],
)
def test_blocks_inside(shape, offsets, extents):
    x = numbered(*shape)
    same(loaded(x, offsets, extents), block(x, offsets, extents))
    checks = [tuple(range(len(shape))), (0,), (-1,), tuple(-d - 1 for d in range(len(shape)))]
    for checked in checks:
        got = loaded(x, offsets, extents, f", boundary_check={checked}, padding_option='zero'")
        same(got, block(x, offsets, extents))


@pytest.mark.parametrize("name", [n for n in ALL])
def test_every_type(name):
    x = samples(name, 15).reshape(3, 5)
    got = loaded(x, (1, 1), (4, 4), ", boundary_check=(0, 1)", name)
    assert got.tobytes() == block(x, (1, 1), (4, 4), (0, 1)).tobytes()


FAR = [-1, -3, -100, 2, 5, 100, 2**31 - 1, -(2**31)]


@pytest.mark.parametrize("offset", FAR)
@pytest.mark.parametrize("n", SIZES)
def test_outside_of_one_axis(n, offset):
    x = numbered(n)
    for options in (
        ", boundary_check=(0,)",
        ", boundary_check=[0]",
        ", boundary_check=(0,), padding_option=''",
    ):
        same(loaded(x, (offset,), (64,), options), block(x, (offset,), (64,), (0,)))


@pytest.mark.parametrize(
    "offsets", [(-2, 0), (0, -3), (-1, -1), (5, 5), (6, 2), (3, 9), (-9, 0), (0, 99)]
)
def test_outside_of_two_axes(offsets):
    x = numbered(7, 6)
    for padding in ("", ", padding_option='zero'"):
        got = loaded(x, offsets, (4, 4), f", boundary_check=(0, 1){padding}")
        same(got, block(x, offsets, (4, 4), (0, 1)))
        got = loaded(x, offsets, (4, 4), f", boundary_check=(1, 0){padding}")
        same(got, block(x, offsets, (4, 4), (0, 1)))


def test_only_the_named_axes_are_checked():
    """Along the other axis the next row is read, as the addresses say."""
    x = numbered(8, 8)
    whole = np.lib.stride_tricks.as_strided(x, (8, 16), x.strides, writeable=False)
    got = loaded(x[:, :4], (5, 2), (4, 4), ", boundary_check=(0,)")
    want = block(np.pad(whole, ((0, 0), (0, 0)))[:8], (5, 2), (4, 4), (0,))
    same(got, want)
    same(loaded(x[:4], (2, 3), (4, 4), ", boundary_check=(1,)"), block(x, (2, 3), (4, 4), (1,)))


@pytest.mark.parametrize(
    "name", ["float16", "bfloat16", "float32", "float64", "float8e5", "float8e4nv"]
)
def test_padding_with_nan(name):
    t = TYPES[name]
    x = np.zeros((3, 5), t.storage)
    got = loaded(x, (1, -1), (4, 8), ", boundary_check=(0, 1), padding_option='nan'", name)
    inside = block(np.ones((3, 5), bool), (1, -1), (4, 8), (0, 1))
    values = t.values[got.view(f"u{t.bits // 8}")] if t.bits <= 16 else got
    assert (np.isnan(values) == ~inside).all()
    assert not got[inside].any()
    # Where nothing is checked there is nothing to pad.
    got = loaded(x, (0, 0), (2, 4), ", padding_option='nan'", name)
    assert not got.any()


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_views_and_orders(order):
    """The order is advice: the result does not depend on it."""
    base = numbered(10, 12)
    for x in (base, base.T, base[::2, 1::3], base[::-1, ::-1], base[2:5, :7].T, base[:, ::-2]):
        for offsets in ((0, 0), (1, 2), (-1, -1), (x.shape[0] - 1, x.shape[1] - 1)):
            body = (
                f"b = {pointer(x, offsets, (4, 2), order)}\nr = tl.load(b, boundary_check=(0, 1))"
            )
            same(
                tiles(body, {"p": x}, pointers="p", r=("int32", (4, 2))),
                block(x, offsets, (4, 2), (0, 1)),
            )


def test_strides_of_0_repeat():
    x = numbered(4)
    body = "b = tl.make_block_ptr(p, (8, 4), (0, 1), (0, 0), (8, 4), (1, 0))\nr = tl.load(b)"
    same(tiles(body, {"p": x}, pointers="p", r=("int32", (8, 4))), np.tile(x, (8, 1)))


def test_numbers_of_the_launch():
    x = numbered(13, 9)
    body = """
        b = tl.make_block_ptr(base=p, shape=(m, n), strides=(s, 1), offsets=(i, j), block_shape=(4, 8), order=(1, 0))
        r = tl.load(b, boundary_check=(0, 1))
    """
    for i, j in ((0, 0), (1, 1), (12, 8), (-1, -2), (10, 5)):
        for word in (np.int32, np.int64):
            numbers = {"m": 13, "n": 9, "s": 9, "i": np.asarray(word(i)), "j": np.asarray(word(j))}
            got = tiles(body, {"p": x, **numbers}, pointers="p", r=("int32", (4, 8)))
            same(got, block(x, (i, j), (4, 8), (0, 1)))


def test_addresses_are_computed_in_64_bits():
    """Offset times stride is beyond 32 bits, and comes back by the base."""
    x = numbered(4)
    body = f"""
        b = tl.make_block_ptr(p - {2**20 * 2**13}, (1, 4), ({2**20}, 1), ({2**13}, 0), (1, 4), (1, 0))
        r = tl.load(b)
    """
    same(tiles(body, {"p": x}, pointers="p", r=("int32", (1, 4))), x[None])


# ---- store ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("offsets", [(0, 0), (5, 3), (-1, -2), (6, 5), (20, 0), (0, -20)])
def test_store(offsets):
    out, want = np.zeros((7, 6), np.int32), np.zeros((7, 6), np.int32)
    v = numbered(4, 4)
    for i in np.ndindex(4, 4):
        at = tuple(o + k for o, k in zip(offsets, i))
        if 0 <= at[0] < 7 and 0 <= at[1] < 6:
            want[at] = v[i]
    body = f"tl.store({pointer(out, offsets, (4, 4))}, v, boundary_check=(0, 1))"
    tiles(body, {"p": out, "v": v}, pointers="p")
    same(out, want)


@pytest.mark.parametrize("name", ALL)
def test_store_of_every_type(name):
    v = samples(name, 32)
    out = np.zeros(27, v.dtype)
    body = f"tl.store({pointer(out, (0,), (32,))}, v, boundary_check=(0,))"
    tiles(body, {"p": Typed(name, out), "v": Typed(name, v)}, pointers="p")
    assert out.tobytes() == v[:27].tobytes()


def test_store_casts_and_broadcasts():
    for what, number in (
        ("2.9", 2),
        ("True", 1),
        ("s", 3),
        ("tl.full((1, 4), 7.5, tl.float32)", 7),
    ):
        out = np.zeros((2, 4), np.int16)
        body = f"tl.store({pointer(out, (0, 0), (2, 4))}, {what}, boundary_check=(0, 1))"
        tiles(body, {"p": out, "s": np.float32(3.5)}, pointers="p")
        assert (out == number).all()


def test_store_through_views():
    base = np.zeros((8, 8), np.int32)
    for view in (base.T, base[::2, ::-1], base[3:, 1:5]):
        base[:] = 0
        v = numbered(2, 4)
        tiles(f"tl.store({pointer(view, (1, 0), (2, 4))}, v)", {"p": view, "v": v}, pointers="p")
        want = np.zeros_like(view)
        want[1:3, :4] = v
        same(view.copy(), want)


@pytest.mark.parametrize("n", SIZES)
def test_a_copy_over_a_grid(n):
    kernel = define(
        """
        @triton.jit
        def kernel(x, out, m, n, BM: tl.constexpr, BN: tl.constexpr):
            at = (tl.program_id(0) * BM, tl.program_id(1) * BN)
            a = tl.make_block_ptr(x, (m, n), (1, m), at, (BM, BN), (0, 1))
            b = tl.make_block_ptr(out, (m, n), (n, 1), at, (BM, BN), (1, 0))
            tl.store(b, tl.load(a, boundary_check=(0, 1)), boundary_check=(0, 1))
        """
    )["kernel"]
    x = numbered(n, 5)
    out = np.zeros((5, n), np.int32)
    kernel[(triton.cdiv(5, 2), triton.cdiv(n, 16))](x, out, 5, n, BM=2, BN=16)
    same(out, x.T)


# ---- advance --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "step",
    [
        "tl.advance(b, (1, 2))",
        "tl.advance(b, [1, 2])",
        "tl.advance(base=b, offsets=(1, 2))",
        "b.advance((1, 2))",
        "b.advance(offsets=[1, 2])",
        "tl.advance(b, (one, one + 1))",
        "tl.advance(tl.advance(b, (5, -3)), (-4, 5))",
    ],
)
def test_advance(step):
    x = numbered(6, 8)
    body = f"b = {pointer(x, (1, 1), (2, 4))}\nc = {step}\nr = tl.load(c)\nq = tl.load(b)"
    results = {"r": ("int32", (2, 4)), "q": ("int32", (2, 4))}
    r, q = tiles(body, {"p": x, "one": np.int32(1)}, pointers="p", **results)
    same(r, block(x, (2, 3), (2, 4)))
    # What was advanced is where it was.
    same(q, block(x, (1, 1), (2, 4)))


@pytest.mark.parametrize("n", SIZES)
def test_carried_by_a_loop(n):
    x = numbered(2, n, dtype=np.int64)
    body = f"""
        b = {pointer(x, (0, 0), (2, 16))}
        total = tl.zeros((2,), tl.int64)
        for i in range(0, {n}, 16):
            total += tl.sum(tl.load(b, boundary_check=(1,)), 1)
            b = tl.advance(b, (0, 16))
        r = total
    """
    same(tiles(body, {"p": x}, pointers="p", r=("int64", (2,))), x.sum(1))
    backwards = f"""
        b = {pointer(x, (0, n - 1), (2, 16))}
        total = tl.zeros((2,), tl.int64)
        i = {n} - 1
        while i > -16:
            total += tl.sum(tl.load(b, boundary_check=(0, 1), padding_option="zero"), 1)
            b = tl.advance(b, (0, -16))
            i -= 16
        r = total
    """
    same(tiles(backwards, {"p": x}, pointers="p", r=("int64", (2,))), x.sum(1))


def test_carried_with_another_variable_by_a_nested_loop():
    x = numbered(8, 8)
    body = f"""
        row = {pointer(x, (0, 0), (2, 2))}
        total = 0
        for i in range(4):
            b = row
            for j in range(4):
                total += tl.sum(tl.load(b)) * (i + 1)
                b = tl.advance(b, (0, 2))
            row = tl.advance(row, (2, 0))
        r = total
    """
    want = sum(int(x[2 * i : 2 * i + 2].sum()) * (i + 1) for i in range(4))
    assert tiles(body, {"p": x}, pointers="p", r="int32") == want


@pytest.mark.parametrize("n", [3, 8])
def test_changed_by_branches(n):
    x = numbered(4, 8)
    body = f"""
        b = {pointer(x, (0, 0), (2, 4))}
        if n > 5:
            b = tl.advance(b, (2, 4))
        r = tl.load(b)
        if n > 5:
            c = tl.advance(b, (-1, 0))
        else:
            c = tl.advance(b, (0, 1))
        q = tl.load(c)
        d = tl.advance(b, (-2, -4)) if n > 5 else b
        s = tl.load(d)
    """
    results = {name: ("int32", (2, 4)) for name in "rqs"}
    r, q, s = tiles(body, {"p": x, "n": n}, pointers="p", **results)
    at = (2, 4) if n > 5 else (0, 0)
    same(r, block(x, at, (2, 4)))
    same(q, block(x, (1, 4) if n > 5 else (0, 1), (2, 4)))
    same(s, block(x, (0, 0), (2, 4)))


HELPERS = functions(
    """
@triton.jit
def at(p, i):
    return tl.make_block_ptr(p, (4, 8), (8, 1), (i, 0), (2, 8), (1, 0))

@triton.jit
def taken(b, by: tl.constexpr):
    return tl.load(tl.advance(b, (0, by)), boundary_check=(1,))

@triton.jit
def pair(p):
    return at(p, 0), at(p, 2)
"""
)


def test_to_and_from_functions():
    x = numbered(4, 8)
    r, s = tiles(
        "r = taken(at(p, 1), 4)\na, b = pair(p)\ns = tl.load(a) + tl.load(b)",
        {"p": x},
        pointers="p",
        names=HELPERS,
        r=("int32", (2, 8)),
        s=("int32", (2, 8)),
    )
    same(r, block(x, (1, 4), (2, 8), (1,)))
    same(s, x[:2] + x[2:])


def test_the_type_of_an_element():
    x = np.arange(4, dtype=np.float16)
    body = f"""
        b = {pointer(x, (0,), (4,))}
        r = (tl.load(b).to(tl.float32) * 2).to(b.dtype.element_ty)
        tl.store(b, r)
    """
    got = tiles(body, {"p": x.copy()}, pointers="p", r=("float16", (4,)))
    same(got, x * 2)
    body = f"b = {pointer(x, (0,), (4,))}\nr = tl.zeros((4,), b.type.element_ty)"
    same(tiles(body, {"p": x}, pointers="p", r=("float16", (4,))), x * 0)


@pytest.mark.parametrize("k", [16, 33, 64])
def test_a_matrix_product(k):
    kernel = define(
        """
        @triton.jit
        def kernel(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
            i, j = tl.program_id(0) * BM, tl.program_id(1) * BN
            ap = tl.make_block_ptr(a, (M, K), (K, 1), (i, 0), (BM, BK), (1, 0))
            bp = tl.make_block_ptr(b, (K, N), (N, 1), (0, j), (BK, BN), (1, 0))
            acc = tl.zeros((BM, BN), tl.float32)
            for k in range(0, K, BK):
                x = tl.load(ap, boundary_check=(0, 1))
                y = tl.load(bp, boundary_check=(0, 1))
                acc = tl.dot(x, y, acc)
                ap = tl.advance(ap, (0, BK))
                bp = tl.advance(bp, (BK, 0))
            cp = tl.make_block_ptr(c, (M, N), (N, 1), (i, j), (BM, BN), (1, 0))
            tl.store(cp, acc.to(c.dtype.element_ty), boundary_check=(0, 1))
        """
    )["kernel"]
    rng = np.random.default_rng(k)
    a, b = (rng.integers(-4, 5, s).astype(np.float32) for s in ((19, k), (k, 23)))
    c = np.zeros((19, 23), np.float32)
    kernel[(2, 2)](a, b, c, 19, 23, k, BM=16, BN=16, BK=16)
    same(c, a @ b)


def test_hints_on_block_pointers():
    x = numbered(8)
    options = ", cache_modifier='.cg', eviction_policy='evict_last', volatile=True"
    same(loaded(x, (0,), (8,), options), x)
    body = f"tl.store({pointer(x, (0,), (8,))}, 5, (), '.wb', 'evict_first')"
    tiles(
        body.replace("5, ()", "5, boundary_check=()").replace(
            "'.wb', 'e", "cache_modifier='.wb', eviction_policy='e"
        ),
        {"p": x},
        pointers="p",
    )
    assert (x == 5).all()


def test_positional_hints_of_older_kernels():
    """Up to 3.8 the check and the padding were the fourth and fifth argument of `load`."""
    x = numbered(5)
    b = pointer(x, (2,), (8,))
    got = tiles(
        f"r = tl.load({b}, None, None, (0,), 'zero')", {"p": x}, pointers="p", r=("int32", (8,))
    )
    same(got, block(x, (2,), (8,), (0,)))
    tiles(f"tl.store({b}, 9, None, (0,))", {"p": x}, pointers="p")
    assert x.tolist() == [1, 2, 9, 9, 9]


# ---- outside and refused --------------------------------------------------------------------------


def test_what_is_not_checked_is_caught():
    x = np.arange(8, dtype=np.int32)
    for body in (
        f"tl.load({pointer(x, (4,), (8,))})",
        f"tl.load({pointer(x, (-1,), (8,))})",
        f"tl.store({pointer(x, (1,), (8,))}, 1)",
    ):
        with pytest.raises(triton.OutOfBoundsError):
            tiles(body, {"p": x}, pointers="p")


B = "b = tl.make_block_ptr(p, (8, 8), (8, 1), (0, 0), (4, 4), (1, 0))\n"


@pytest.mark.parametrize(
    "body, id, message",
    [
        ("tl.make_block_ptr(p, (8, 8), (8,), (0, 0), (4, 4), (1, 0))", "bad-argument", "1 strides"),
        ("tl.make_block_ptr(p, (8, 8), (8, 1), (0,), (4, 4), (1, 0))", "bad-argument", "1 offsets"),
        ("tl.make_block_ptr(p, (8, 8), (8, 1), (0, 0), (4,), (1, 0))", "bad-argument", "extents"),
        ("tl.make_block_ptr(p, (8, 8), (8, 1), (0, 0), (4, 4), (1,))", "bad-argument", "order"),
        ("tl.make_block_ptr(p, (8, 8), (8, 1), (0, 0), (4, 4), (1, 1))", "bad-argument", "permutation"),
        ("tl.make_block_ptr(p, (8, 8), (8, 1), (0, 0), (4, 4), (0, 2))", "bad-argument", "permutation"),
        ("tl.make_block_ptr(p, (8, 8), (8, 1), (0, 0), (3, 4), (1, 0))", "bad-shape", ""),
        ("tl.make_block_ptr(p, (8, 8), (8, 1), (0, 0), (n, 4), (1, 0))", "not-constexpr", ""),
        ("tl.make_block_ptr(p, (8, 8), (8, 1), (0, 0), (4, 4))", "bad-call", ""),
        ("tl.make_block_ptr(n, (8,), (1,), (0,), (4,), (0,))", "bad-argument", "a pointer is wanted"),
        ("tl.make_block_ptr(p + tl.arange(0, 4), (8,), (1,), (0,), (4,), (0,))", "bad-argument", "one pointer"),
        ("tl.make_block_ptr(p, (8.0,), (1,), (0,), (4,), (0,))", "type-mismatch", "integer scalars"),
        ("tl.make_block_ptr(p, (tl.arange(0, 4),), (1,), (0,), (4,), (0,))", "type-mismatch", "integer scalars"),
        (B + "tl.load(b, mask=n > 0)", "bad-argument", "cannot be given with a block pointer"),
        (B + "tl.load(b, boundary_check=(0,), other=0)", "bad-argument", "cannot be given with a block pointer"),
        (B + "tl.store(b, 1, mask=n > 0)", "bad-argument", "cannot be given with a block pointer"),
        (B + "tl.load(b, boundary_check=(2,))", "bad-argument", ""),
        (B + "tl.load(b, boundary_check=(0,), padding_option='one')", "bad-argument", "padding"),
        (B + "tl.load(b, boundary_check=(0,), padding_option='nan')", "bad-argument", "no NaN"),
        (B + "tl.store(b, tl.zeros((4, 8), tl.int32))", "pointer-shape", ""),
        (B + "tl.advance(b, (1,))", "bad-argument", "1 offsets"),
        (B + "tl.advance(b, (1.5, 0))", "type-mismatch", "integer scalars"),
        ("tl.advance(p, (1,))", "bad-argument", "a block pointer is wanted"),
        (B + "b.load((0, 0))", None, ""),
        (B + "c = b + 1", None, ""),
        (B + "tl.atomic_add(b, 1)", "bad-argument", "a pointer is wanted"),
        ("tl.load(p, boundary_check=(0,))", "bad-argument", "is for block pointers"),
        ("tl.store(p, 1, boundary_check=(0,))", "bad-argument", "is for block pointers"),
        (B + "for i in range(2):\n    b = tl.make_block_ptr(p, (8, 8), (8, 1), (0, 0), (2, 4), (1, 0))", "loop-type-change", ""),
        (B + "if n > 3:\n    b = p\ntl.load(b)", None, "`b`"),
    ],
)  # fmt: skip
def test_refusals(body, id, message):
    refused(body, id, message, p="int32", n="scalar int32", pointers="p")


def test_a_result_that_is_ignored():
    """Nothing moves in place, which is an error that older kernels had to be told of."""
    refused(B + "tl.advance(b, (1, 0))\ntl.load(b)", None, "", p="int32[8, 8]", pointers="p")


def test_pointers_to_const():
    text = f"""
        @triton.jit
        def kernel(p: tl.const):
            {B.strip()}
            tl.store(b, tl.load(b))
    """
    with pytest.raises(triton.CompilationError) as caught:
        define(text)["kernel"][(1,)](np.zeros((8, 8), np.int32))
    assert caught.value.diagnostic["id"] == "const-store"
