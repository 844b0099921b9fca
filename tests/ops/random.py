"""Random numbers against a NumPy model of Philox, vectors of Triton, and simple statistics."""

import numpy as np
import pytest

from ._common import SIZES, refused, same, tiles, value
from ._numbers import TYPES

COVERS = [
    "rand", "randn", "randint", "rand4x", "randn4x", "randint4x", "philox", "philox_impl",
    "uint_to_uniform_float", "pair_uniform_to_normal",
]  # fmt: skip

CONSTANTS = {
    32: (0xD2511F53, 0xCD9E8D57, 0x9E3779B9, 0xBB67AE85),
    64: (0xD2E7470EE14C6C93, 0xCA5A826395121157, 0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B),
}


def rounds(c, k, bits=32, n=10):
    """Philox on Python's integers."""
    a, b, ka, kb = CONSTANTS[bits]
    mask = (1 << bits) - 1
    c, k = list(c), list(k)
    for _ in range(n):
        p, q = a * c[0], b * c[2]
        c = [(q >> bits) ^ c[1] ^ k[0], q & mask, (p >> bits) ^ c[3] ^ k[1], p & mask]
        k = [(k[0] + ka) & mask, (k[1] + kb) & mask]
    return c


def words(seed, offset, wide=False, n=10):
    seed &= 2**64 - 1
    high = offset >> 32 & 0xFFFFFFFF if wide else 0
    return rounds([offset & 0xFFFFFFFF, high, 0, 0], [seed & 0xFFFFFFFF, seed >> 32], n=n)


def uniform(word, bits=32):
    signed = np.asarray(word, f"u{bits // 8}").view(f"i{bits // 8}")
    scale = np.float32(4.6566127342e-10 if bits == 32 else 1.0842020432385337e-19)
    return np.where(signed < 0, ~signed, signed).astype(np.float32) * scale


VECTORS = [
    (0, 0, "6627e8d5 e169c58d bc57ac4c 9b00dbd8", 0x3F4C4FD1, 0.0465515),
    (0, 1, "f8e4cca4 5cb200db b1a574eb 097eff67", 0x3D63666A, -0.3883614),
    (42, 0, "9ceaf053 77f5493b 12bf50ad 5742b3d7", 0x3F462A1E, 0.6606134),
    (42, 3, "bac70475 abaf0dab 961e5543 610e67f7", 0x3F0A71F6, -0.6016254),
    (4294967300, 0, "b70079b6 382d18f2 93887b4d 0d6a6703", 0x3F11FF0C, -0.9826053),
]


@pytest.mark.parametrize("seed, offset, hexes, rand, randn", VECTORS)
def test_vectors(seed, offset, hexes, rand, randn):
    inputs = {"seed": seed, "offset": np.array(offset, np.int32)}
    body = "a, b, c, d = tl.randint4x(seed, offset)\ne = tl.rand(seed, offset)\nf = tl.randn(seed, offset)"
    *got, uniform_, normal = tiles(
        body, inputs, a="uint32", b="uint32", c="uint32", d="uint32", e="float32", f="float32"
    )
    assert " ".join(f"{int(w):08x}" for w in got) == hexes
    assert words(seed, offset) == [int(w) for w in got]
    assert uniform_.view(np.uint32) == rand
    np.testing.assert_allclose(normal, randn, rtol=1e-5)


@pytest.mark.parametrize("seed", [0, 1, 7, -1, 2**31, 2**63 - 1, -(2**40)])
@pytest.mark.parametrize("n", SIZES)
def test_streams(n, seed):
    i = np.arange(n, dtype=np.int32) * 3
    want = np.array([words(seed, int(o)) for o in i], np.uint32)
    inputs = {"seed": seed, "i": i}
    same(value("tl.randint(seed, i)", "uint32", (n,), inputs), want[:, 0])
    same(value("tl.rand(seed, offset=i)", "float32", (n,), inputs), uniform(want[:, 0]))
    body = "a, b, c, d = tl.rand4x(seed, i)"
    four = tiles(body, inputs, **{k: ("float32", (n,)) for k in "abcd"})
    for k in range(4):
        same(four[k], uniform(want[:, k]))


@pytest.mark.parametrize("dtype", ["int64", "uint64", "int32", "uint32", "int16"])
def test_only_wide_offsets_have_a_high_word(dtype):
    i = np.array([0, 5, -1, 2**40 + 3], object)
    i = np.array([int(v) & (2 ** TYPES[dtype].bits - 1) for v in i], np.uint64).astype(
        TYPES[dtype].storage
    )
    wide = TYPES[dtype].bits > 32
    want = [words(9, int(o), wide)[0] for o in i]
    assert value("tl.randint(9, i)", "uint32", (4,), {"i": i}).tolist() == want


@pytest.mark.parametrize("n_rounds", [0, 1, 6, 10])
def test_fewer_rounds(n_rounds):
    i = np.arange(8, dtype=np.int32)
    want = np.array([words(3, int(o), n=n_rounds) for o in i], np.uint32)
    for arguments in (f"3, i, {n_rounds}", f"3, i, n_rounds={n_rounds}"):
        same(value(f"tl.randint({arguments})", "uint32", (8,), {"i": i}), want[:, 0])
        same(value(f"tl.rand({arguments})", "float32", (8,), {"i": i}), uniform(want[:, 0]))


@pytest.mark.parametrize("bits", [32, 64])
def test_philox_with_every_counter(bits):
    rng = np.random.default_rng(bits)
    c = rng.integers(0, 2**bits, (4, 16), dtype=f"u{bits // 8}")
    seed = 0x123456789ABCDEF
    key = [seed & 0xFFFFFFFF, seed >> 32] if bits == 32 else [seed, 0]
    want = np.array([rounds([int(v) for v in column], key, bits) for column in c.T], c.dtype).T
    inputs = {"s": np.array(seed), **{f"c{k}": c[k] for k in range(4)}}
    body = "a, b, c, d = tl.philox(s, c0, c1, c2, c3)"
    same(np.stack(tiles(body, inputs, **{k: (f"uint{bits}", (16,)) for k in "abcd"})), want)
    body = f"k0 = tl.full((), {key[0]}, tl.uint{bits})\nk1 = tl.full((), {key[1]}, tl.uint{bits})\n"
    body += "a, b, c, d = tl.philox_impl(c0, c1, c2, c3, k0, k1)"
    same(np.stack(tiles(body, inputs, **{k: (f"uint{bits}", (16,)) for k in "abcd"})), want)


@pytest.mark.parametrize("bits", [32, 64])
def test_uniform_numbers_of_words(bits):
    top = 2**bits - 1
    x = np.array(
        [0, 1, top, top >> 1, (top >> 1) + 1, 12345, top - 12345, 1 << (bits - 8)], f"u{bits // 8}"
    )
    got = value("tl.uint_to_uniform_float(x)", "float32", inputs={"x": x})
    same(got, uniform(x, bits))
    assert (got >= 0).all() and (got < 1).all()
    signed = x.view(f"i{bits // 8}")
    same(value("tl.uint_to_uniform_float(x)", "float32", inputs={"x": signed}), uniform(x, bits))


def test_normal_numbers_of_uniform_ones():
    u = np.array([0.0, 1e-7, 0.25, 0.5, 0.999], np.float32)
    v = np.array([0.1, 0.3, 0.6, 0.9, 0.5], np.float32)
    a, b = tiles(
        "a, b = tl.pair_uniform_to_normal(u, v)",
        {"u": u, "v": v},
        a=("float32", (5,)),
        b=("float32", (5,)),
    )
    r = np.sqrt(-2 * np.log(np.maximum(u, 1e-7).astype(float)))
    np.testing.assert_allclose(a, r * np.cos(6.283185307179586 * v), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(b, r * np.sin(6.283185307179586 * v), rtol=1e-5, atol=1e-5)


def test_normal_streams():
    i = np.arange(1024, dtype=np.int32)
    four = tiles(
        "a, b, c, d = tl.randn4x(11, i)", {"i": i}, **{k: ("float32", (1024,)) for k in "abcd"}
    )
    u = uniform(np.array([words(11, int(o)) for o in i], np.uint32)).astype(float)
    for k in (0, 2):
        r, angle = np.sqrt(-2 * np.log(np.maximum(u[:, k], 1e-7))), 6.283185307179586 * u[:, k + 1]
        np.testing.assert_allclose(four[k], r * np.cos(angle), rtol=1e-4, atol=2e-6)
        np.testing.assert_allclose(four[k + 1], r * np.sin(angle), rtol=1e-4, atol=2e-6)
    same(value("tl.randn(11, i)", "float32", inputs={"i": i}), four[0])


def test_statistics():
    i = np.arange(1 << 16, dtype=np.int32)
    x = value("tl.rand(5, i)", "float32", inputs={"i": i}).astype(float)
    assert abs(x.mean() - 0.5) < 0.005 and abs(x.var() - 1 / 12) < 0.002
    x = value("tl.randn(5, i)", "float32", inputs={"i": i}).astype(float)
    assert abs(x.mean()) < 0.02 and abs(x.std() - 1) < 0.02


def test_seeds_that_are_refused():
    refused("tl.rand(1.5, i)", None, i="int32")
    refused("tl.rand(1)", "bad-call")


@pytest.mark.parametrize("shape", [(), (4, 8), (2, 2, 2)])
def test_shapes(shape):
    i = np.asarray(np.arange(int(np.prod(shape)), dtype=np.int32).reshape(shape))
    want = np.array([words(1, int(o))[0] for o in i.ravel()], np.uint32).reshape(shape)
    same(value("tl.randint(1, i)", "uint32", shape, {"i": i}), want)
