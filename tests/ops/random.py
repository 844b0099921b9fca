"""Random numbers: bit for bit against Philox written here from its definition; statistics; refusals."""

import numpy as np
import pytest

import naiad as triton

from ._common import SIZES, define, refused, same, tiles, value

COVERS = [
    "rand", "philox", "pair_uniform_to_normal", "randint", "uint_to_uniform_float", "rand4x",
    "randint4x", "randn", "randn4x", "philox_impl",
]  # fmt: skip

# Multipliers and what is added to the key, by the width of a word.
CONSTANTS = {
    32: (0xD2511F53, 0xCD9E8D57, 0x9E3779B9, 0xBB67AE85),
    64: (0xD2E7470EE14C6C93, 0xCA5A826395121157, 0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B),
}


def philox_words(counter, key, bits=32, rounds=10):
    """One counter of four words, as Python's integers."""
    a, b, key_a, key_b = CONSTANTS[bits]
    mask = (1 << bits) - 1
    c0, c1, c2, c3 = (int(c) & mask for c in counter)
    k0, k1 = (int(k) & mask for k in key)
    for _ in range(rounds):
        x, y = a * c0, b * c2
        c0, c1, c2, c3 = (y >> bits) ^ c1 ^ k0, y & mask, (x >> bits) ^ c3 ^ k1, x & mask
        k0, k1 = (k0 + key_a) & mask, (k1 + key_b) & mask
    return c0, c1, c2, c3


def words(seed, offsets, rounds=10):
    """What `randint4x` gives: four arrays of uint32."""
    seed &= (1 << 64) - 1
    key = seed & 0xFFFFFFFF, seed >> 32
    wide = offsets.dtype.itemsize > 4
    rows = []
    for offset in offsets.ravel().tolist():
        offset &= (1 << 64) - 1 if wide else 0xFFFFFFFF
        rows.append(philox_words((offset, offset >> 32, 0, 0), key, rounds=rounds))
    table = np.array(rows, np.uint32).reshape(*offsets.shape, 4)
    return [table[..., i].copy() for i in range(4)]


def uniform(x):
    """Negative words are folded; the product is rounded once, in fp32."""
    s = x.view(f"i{x.itemsize}")
    scale = np.float32({4: 4.6566127342e-10, 8: 1.0842020432385337e-19}[x.itemsize])
    return np.where(s < 0, ~s, s).astype(np.float32) * scale


def normals(u1, u2):
    """The pair, in float64."""
    u1 = np.maximum(np.float32(1e-7), u1).astype(np.float64)
    r, angle = np.sqrt(-2 * np.log(u1)), 6.283185307179586 * u2.astype(np.float64)
    return r * np.cos(angle), r * np.sin(angle)


def test_the_model_itself():
    """Vectors of Random123's known answers for ten rounds."""
    assert philox_words((0,) * 4, (0,) * 2) == (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)
    ones = 0xFFFFFFFF
    assert philox_words((ones,) * 4, (ones,) * 2) == (
        0x408F276D,
        0x41C83B0E,
        0xA20BC7C6,
        0x6D5451FD,
    )
    pi = (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0)
    assert philox_words(*pi) == (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)
    assert philox_words((0,) * 4, (0,) * 2, bits=64) == (
        0x16554D9ECA36314C, 0xDB20FE9D672D0FDC, 0xD7E772CEE186176B, 0x7E68B68AEC7BA23B,
    )  # fmt: skip


# An angle of up to 2 pi in fp32 is off by two halves of its unit, and the radius is less than 5.7.
NORMAL = 5.7 * 2.0**-21

VECTORS = [
    (0, 0, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8), 0x3F4C4FD1, 0.0465515),
    (0, 1, (0xF8E4CCA4, 0x5CB200DB, 0xB1A574EB, 0x097EFF67), 0x3D63666A, -0.3883614),
    (42, 0, (0x9CEAF053, 0x77F5493B, 0x12BF50AD, 0x5742B3D7), 0x3F462A1E, 0.6606134),
    (42, 3, (0xBAC70475, 0xABAF0DAB, 0x961E5543, 0x610E67F7), 0x3F0A71F6, -0.6016254),
    (4294967300, 0, (0xB70079B6, 0x382D18F2, 0x93887B4D, 0x0D6A6703), 0x3F11FF0C, -0.9826053),
]


@pytest.mark.parametrize("seed, offset, want, uniform_bits, normal", VECTORS)
def test_vectors_of_the_reference(seed, offset, want, uniform_bits, normal):
    body = """
        a, b, c, d = tl.randint4x(seed, offset)
        i = tl.randint(seed, offset)
        u = tl.rand(seed, offset)
        n = tl.randn(seed, offset)
    """
    results = dict.fromkeys("abcdi", "uint32") | {"u": "float32", "n": "float32"}
    got = tiles(body, {"seed": np.int64(seed), "offset": np.int32(offset)}, **results)
    assert tuple(int(v) for v in got[:4]) == want
    assert got[4] == want[0]
    assert got[5].view(np.uint32) == uniform_bits
    assert abs(float(got[6]) - normal) < 2e-6


SEEDS = [0, 1, 42, -1, -(2**31), 2**31 - 1, 2**31, 2**32 - 1, 2**32, -(2**63), 2**63 - 1, 2**64 - 1]
OFFSETS = [
    np.arange(32, dtype=np.int32),
    np.array([0, 1, -1, 2**31 - 1, -(2**31), 77, 1000, 12345], np.int32),
    np.array([0, 2**32 - 1, 5, 2**31], np.uint32),
    np.array([0, 1, 2**32 - 1, 2**32, 2**40 + 7, -1, -(2**63), 2**63 - 1], np.int64),
    np.array([2**64 - 1, 2**33], np.uint64),
    np.array([[1, 2, -3, 4], [5, 6, 7, -128]], np.int8),
    np.array([-1, 9], np.int16),
]


@pytest.mark.parametrize("seed", SEEDS)
def test_words_of_seeds_and_offsets(seed):
    for offsets in OFFSETS:
        results = {name: ("uint32", offsets.shape) for name in "abcd"}
        got = tiles("a, b, c, d = tl.randint4x(seed, x)", {"seed": seed, "x": offsets}, **results)
        for have, want in zip(got, words(seed, offsets)):
            same(have, want)


@pytest.mark.parametrize(
    "name", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
)
def test_seeds_of_every_type(name):
    seed = np.array(np.iinfo(name).min or np.iinfo(name).max, name)
    x = np.arange(8, dtype=np.int32)
    same(
        value("tl.randint(seed, x)", "uint32", (8,), {"seed": seed, "x": x}), words(int(seed), x)[0]
    )


@pytest.mark.parametrize("rounds", [1, 2, 6, 7, 10, 12])
def test_rounds(rounds):
    x = np.arange(16, dtype=np.int32)
    want = words(7, x, rounds)
    for call in (f"tl.randint(7, x, {rounds})", f"tl.randint(seed=7, offset=x, n_rounds={rounds})"):
        same(value(call, "uint32", inputs={"x": x}), want[0])
    same(value(f"tl.rand(7, x, n_rounds={rounds})", "float32", inputs={"x": x}), uniform(want[0]))
    results = {name: ("uint32", (16,)) for name in "abcd"}
    for have, w in zip(
        tiles(f"a, b, c, d = tl.randint4x(7, x, {rounds})", {"x": x}, **results), want
    ):
        same(have, w)
    results = {name: ("float32", (16,)) for name in "abcd"}
    for have, w in zip(tiles(f"a, b, c, d = tl.rand4x(7, x, {rounds})", {"x": x}, **results), want):
        same(have, uniform(w))
    got = value(f"tl.randn(7, x, {rounds})", "float32", inputs={"x": x})
    np.testing.assert_allclose(got, normals(uniform(want[0]), uniform(want[1]))[0], atol=NORMAL)
    tiles(f"tl.randn4x(7, x, n_rounds={rounds})", {"x": x})


@pytest.mark.parametrize("seed", [3, 2**40 + 1])
@pytest.mark.parametrize("shape", [(), (1,), (64,), (4, 8), (2, 1, 4)])
def test_floats_of_words(shape, seed):
    x = np.asarray(np.arange(int(np.prod(shape)), dtype=np.int32).reshape(shape))
    w = words(seed, x)
    same(value("tl.rand(s, x)", "float32", shape, {"x": x, "s": seed}), uniform(w[0]))
    results = {name: ("float32", shape) for name in "abcd"}
    for have, want in zip(tiles("a, b, c, d = tl.rand4x(s, x)", {"x": x, "s": seed}, **results), w):
        same(have, uniform(want))
    u = [uniform(v) for v in w]
    want = [*normals(u[0], u[1]), *normals(u[2], u[3])]
    got = tiles("a, b, c, d = tl.randn4x(s, x)", {"x": x, "s": seed}, **results)
    for have, w in zip(got, want):
        np.testing.assert_allclose(have, w, atol=NORMAL)
    got = value("tl.randn(s, x)", "float32", shape, {"x": x, "s": seed})
    np.testing.assert_allclose(got, want[0], atol=NORMAL)


@pytest.mark.parametrize("name", ["uint32", "int32", "uint64", "int64"])
@pytest.mark.parametrize("function", ["uint_to_uniform_float", "uint32_to_uniform_float"])
def test_words_to_floats(function, name):
    bits = np.iinfo(name).bits
    corners = [0, 1, 2, 2 ** (bits - 1) - 1, 2 ** (bits - 1), 2 ** (bits - 1) + 1, 2**bits - 1]
    corners += [2**24 + 1, 2**24 + 3, 2 ** (bits - 2)]
    more = np.random.default_rng(bits).integers(0, 2**bits, 54, dtype=f"u{bits // 8}").tolist()
    x = np.array(corners + more, f"u{bits // 8}").view(name)
    got = value(f"tl.{function}(x)", "float32", inputs={"x": x})
    same(got, uniform(x))
    assert (got >= 0).all() and (got < 1).all()


# ---- philox itself --------------------------------------------------------------------------------

COUNTERS = np.random.default_rng(5).integers(0, 2**64, (4, 16), dtype=np.uint64)


@pytest.mark.parametrize("name", ["uint32", "int32", "uint64", "int64"])
@pytest.mark.parametrize("seed", [0, 42, -1, 2**40 + 7])
def test_philox(seed, name):
    """Words of 64 bits have constants of their own and take the seed whole."""
    bits = np.iinfo(name).bits
    c = COUNTERS.astype(f"u{bits // 8}").view(name)
    key = (seed, seed >> 32) if bits == 32 else (seed, 0)
    want = [philox_words(c[:, i].tolist(), key, bits) for i in range(16)]
    word = f"uint{bits}"
    for call in (
        "tl.philox(seed, c0, c1, c2, c3)",
        "tl.philox(seed=seed, c0=c0, c1=c1, c2=c2, c3=c3, n_rounds=10)",
    ):
        inputs = {"seed": np.int64(seed)} | {f"c{i}": c[i] for i in range(4)}
        got = tiles(f"a, b, c, d = {call}", inputs, **{n: (word, (16,)) for n in "abcd"})
        for i in range(4):
            same(got[i], np.array([w[i] for w in want], word))


@pytest.mark.parametrize("rounds", [0, 1, 7, 10])
@pytest.mark.parametrize("bits", [32, 64])
def test_philox_impl(bits, rounds):
    c = COUNTERS.astype(f"u{bits // 8}")
    key = 0x9E3779B97F4A7C15 & ((1 << bits) - 1), 0x123456789ABCDEF1 & ((1 << bits) - 1)
    want = [philox_words(c[:, i].tolist(), key, bits, rounds) for i in range(16)]
    inputs = {f"c{i}": c[i] for i in range(4)}
    inputs |= {f"k{i}": np.array(k, f"u{bits // 8}") for i, k in enumerate(key)}
    call = f"tl.philox_impl(c0, c1, c2, c3, k0, k1, n_rounds={rounds})"
    got = tiles(f"a, b, c, d = {call}", inputs, **{n: (f"uint{bits}", (16,)) for n in "abcd"})
    for i in range(4):
        same(got[i], np.array([w[i] for w in want], f"uint{bits}"))


def test_philox_of_scalars_and_literals():
    got = tiles("a, b, c, d = tl.philox(0, 0, 0, 0, 0)", **dict.fromkeys("abcd", "uint32"))
    assert tuple(int(v) for v in got) == philox_words((0,) * 4, (0,) * 2)
    body = "a, b, c, d = tl.philox(5, x, 1, 2, 3)"
    got = tiles(body, {"x": np.int32(9)}, **dict.fromkeys("abcd", "uint32"))
    assert tuple(int(v) for v in got) == philox_words((9, 1, 2, 3), (5, 0))


# ---- normal numbers -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call", ["tl.pair_uniform_to_normal(u, v)", "tl.pair_uniform_to_normal(u1=u, u2=v)"]
)
def test_pairs(call):
    u = np.array([0, 1e-8, 1e-7, 0.25, 0.5, 0.75, 0.9999999, 1.0], np.float32)
    v = np.array([0, 0.25, 0.5, 0.75, 0.125, 0.3, 0.999, 0.6], np.float32)
    a, b = tiles(f"a, b = {call}", {"u": u, "v": v}, a=("float32", (8,)), b=("float32", (8,)))
    want = normals(u, v)
    np.testing.assert_allclose(a, want[0], atol=NORMAL)
    np.testing.assert_allclose(b, want[1], atol=NORMAL)


def drawn(call, n, seed):
    kernel = define(
        f"""
        @triton.jit
        def kernel(out, n, seed, BLOCK: tl.constexpr):
            i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            tl.store(out + i, {call}, mask=i < n)
        """
    )["kernel"]
    out = np.full(n, np.nan, np.float32)
    kernel[(triton.cdiv(n, 1024),)](out, n, seed, BLOCK=1024)
    return out


@pytest.mark.parametrize("seed", [0, 17, -5, 2**33])
def test_uniform_statistics(seed):
    x = drawn("tl.rand(seed, i)", 100_003, seed).astype(np.float64)
    assert (x >= 0).all() and (x < 1).all()
    # Bounds of five standard deviations.
    n = len(x)
    assert abs(x.mean() - 0.5) < 5 * np.sqrt(1 / 12 / n)
    assert abs(x.var() - 1 / 12) < 5 * np.sqrt(1 / 180 / n)
    # The greatest distance to the distribution's function (Kolmogorov), and neighbours.
    distance = np.abs(np.sort(x) - (np.arange(n) + 0.5) / n).max()
    assert distance < 2.3 / np.sqrt(n)
    assert abs(np.corrcoef(x[:-1], x[1:])[0, 1]) < 5 / np.sqrt(n)


@pytest.mark.parametrize("seed", [0, 17, -5, 2**33])
def test_normal_statistics(seed):
    x = drawn("tl.randn(seed, i)", 100_003, seed).astype(np.float64)
    n = len(x)
    assert np.isfinite(x).all()
    assert abs(x.mean()) < 5 / np.sqrt(n)
    assert abs(x.var() - 1) < 5 * np.sqrt(2 / n)
    assert abs((x**3).mean()) < 5 * np.sqrt(15 / n)
    assert abs((x**4).mean() - 3) < 5 * np.sqrt(96 / n)
    assert abs((np.abs(x) > 1.959964).mean() - 0.05) < 5 * np.sqrt(0.05 * 0.95 / n)


def test_dropout_keeps_the_same_elements_again():
    """What a backward pass relies on: the same seed and offsets give the same numbers."""
    a = drawn("tl.where(tl.rand(seed, i) > 0.25, 1.0, 0.0)", 5003, 123)
    b = drawn("tl.where(tl.rand(seed, i) > 0.25, 1.0, 0.0)", 5003, 123)
    same(a, b)
    assert 0.7 < a.mean() < 0.8
    assert (
        drawn("tl.rand(seed, i)", 5003, 124) != drawn("tl.rand(seed, i)", 5003, 123)
    ).mean() > 0.99


@pytest.mark.parametrize("n", SIZES)
def test_blocks_make_no_difference(n):
    x = np.arange(n, dtype=np.int32)
    same(drawn("tl.rand(seed, i)", n, 9), uniform(words(9, x)[0]))


# ---- paths and refusals ---------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["tl.random.", "random."])
@pytest.mark.parametrize("function", ["rand", "randint", "randn"])
def test_paths(function, path):
    x = np.arange(8, dtype=np.int32)
    dtype = "uint32" if function == "randint" else "float32"
    names = {"random": triton.language.random}
    got = value(f"{path}{function}(3, x)", dtype, inputs={"x": x}, names=names)
    same(got, value(f"tl.{function}(3, x)", dtype, inputs={"x": x}))


@pytest.mark.parametrize(
    "call, id, message",
    [
        ("tl.rand(1.5, x)", "static-assert", "the seed must be an integer"),
        ("tl.rand(f, x)", "static-assert", "the seed must be an integer"),
        ("tl.randint(3)", "bad-call", ""),
        ("tl.rand(3, x, 4, 5)", "bad-call", ""),
        ("tl.rand(3, x, n_rounds=x)", None, ""),
        ("tl.philox(3, x)", "bad-call", ""),
        ("tl.pair_uniform_to_normal(f)", "bad-call", ""),
        ("x.rand(3)", None, ""),
    ],
)
def test_calls_that_are_refused(call, id, message):
    refused(call, id, message, x="int32", f="float32")
