"""What the compositions of libdevice compute, with Python's exact arithmetic as the oracle."""

import math
from fractions import Fraction

import numpy as np
import pytest

from naiad.language.extra import libdevice

N = 256


@pytest.fixture
def run(define):
    def run(expression, dtype, *arguments):
        names = [f"a{i}" for i in range(len(arguments))]
        loads = "".join(f"    {n} = tl.load({n} + i)\n" for n in names)
        text = (
            f"@triton.jit\ndef kernel(out, {', '.join(names)}):\n    i = tl.arange(0, {N})\n"
            f"{loads}    tl.store(out + i, {expression})\n"
        )
        out = np.zeros(N, dtype)
        define(text, libdevice=libdevice)["kernel"][(1,)](out, *arguments)
        return out

    return run


def floats(seed):
    bits = np.random.default_rng(seed).integers(0, 2**32, N, dtype=np.uint32)
    x = bits.view(np.float32).copy()
    x[~np.isfinite(x)] = 1.5
    x[: N // 2] = np.random.default_rng(seed + 50).normal(size=N // 2).astype(np.float32)
    x[:8] = [0.0, -0.0, 1.0, -1.0, 3.4e38, -3.4e38, 1e-45, -1e-45]
    return x


def ints(seed, dtype):
    info = np.iinfo(dtype)
    x = np.random.default_rng(seed).integers(info.min, info.max, N, dtype=dtype, endpoint=True)
    x[:5] = [info.min, info.max, 0, 1, info.max // 2]
    return x


def toward(exact, direction):
    """The fp32 that an exact fraction rounds to in a direction."""
    largest = float(np.finfo(np.float32).max)
    if exact > Fraction(largest):
        return np.float32(np.inf if direction == "ru" else largest)
    if exact < -Fraction(largest):
        return np.float32(-np.inf if direction == "rd" else -largest)
    near = np.float32(float(exact))
    if not np.isfinite(near):
        near = np.float32(math.copysign(largest, exact))
    down, up = np.float32(-np.inf), np.float32(np.inf)
    while Fraction(float(near)) > exact:
        near = np.nextafter(near, down)
    while Fraction(float(np.nextafter(near, up))) <= exact:
        near = np.nextafter(near, up)
    low = near
    high = low if Fraction(float(low)) == exact else np.nextafter(low, up)
    return {"rd": low, "ru": high, "rz": low if exact >= 0 else high}[direction]


@pytest.mark.parametrize("direction", ["rd", "ru", "rz"])
def test_directed_arithmetic(run, direction):
    x, y, z = floats(1), floats(2)[::-1].copy(), floats(3)
    y[y == 0] = 3.0
    fx, fy, fz = ([Fraction(float(v)) for v in a] for a in (x, y, z))
    cases = {
        "add": [a + b for a, b in zip(fx, fy)],
        "sub": [a - b for a, b in zip(fx, fy)],
        "mul": [a * b for a, b in zip(fx, fy)],
        "div": [a / b for a, b in zip(fx, fy)],
    }
    for name, exact in cases.items():
        got = run(f"libdevice.{name}_{direction}(a0, a1)", np.float32, x, y)
        for i, e in enumerate(exact):
            assert got[i] == toward(e, direction), (name, x[i], y[i])
    got = run(f"libdevice.fma_{direction}(a0, a1, a2)", np.float32, x, y, z)
    for i in range(N):
        assert got[i] == toward(fx[i] * fy[i] + fz[i], direction), (x[i], y[i], z[i])
    got = run(f"libdevice.rcp_{direction}(a0)", np.float32, y)
    for i in range(N):
        assert got[i] == toward(1 / fy[i], direction), y[i]
    size = np.abs(x)
    got = run(f"libdevice.sqrt_{direction}(a0)", np.float32, size)
    for i in range(N):
        root = Fraction(float(got[i]))
        value = Fraction(float(size[i]))
        if direction == "ru":
            below = Fraction(float(np.nextafter(got[i], np.float32(-np.inf))))
            assert root**2 >= value and (root == 0 or below**2 < value)
        else:
            assert root**2 <= value < Fraction(float(np.nextafter(got[i], np.float32(np.inf)))) ** 2


@pytest.mark.parametrize("direction", ["rn", "rd", "ru", "rz"])
@pytest.mark.parametrize("source", ["int", "uint", "ll", "ull"])
def test_integers_to_floats(run, source, direction):
    dtype = {"int": np.int32, "uint": np.uint32, "ll": np.int64, "ull": np.uint64}[source]
    x = ints(4, dtype)
    got = run(f"libdevice.{source}2float_{direction}(a0)", np.float32, x)
    for i in range(N):
        if direction == "rn":
            assert got[i] == np.float32(x[i])
        else:
            assert got[i] == toward(Fraction(int(x[i])), direction), x[i]


def test_floats_to_integers_and_narrower(run):
    x = np.random.default_rng(5).normal(size=N).astype(np.float32) * 1000
    x[:4] = [2.5, -2.5, 0.5, -0.5]
    for direction, f in {"rn": np.rint, "rz": np.trunc, "rd": np.floor, "ru": np.ceil}.items():
        got = run(f"libdevice.float2int_{direction}(a0)", np.int32, x)
        assert np.array_equal(got, f(x).astype(np.int32))
    d = np.random.default_rng(6).normal(size=N) * 1e10
    d[:4] = [1e300, -1e300, 1e-300, 1.0]
    for direction in ("rd", "ru", "rz"):
        got = run(f"libdevice.double2float_{direction}(a0)", np.float32, d)
        assert all(got[i] == toward(Fraction(d[i]), direction) for i in range(N))


def low_bits(value, width):
    """The low bits as a signed number."""
    return (value + 2 ** (width - 1)) % 2**width - 2 ** (width - 1)


def test_bits(run):
    x, y, s = ints(7, np.int32), ints(8, np.int32), ints(9, np.int32)
    wide = ints(10, np.int64)
    lists = [[int(v) for v in a] for a in (x, y, s)]
    pairs = list(zip(*lists[:2]))
    expected = {
        "mulhi": [a * b >> 32 for a, b in pairs],
        "hadd": [a + b >> 1 for a, b in pairs],
        "rhadd": [a + b + 1 >> 1 for a, b in pairs],
        "mul24": [low_bits(low_bits(a, 24) * low_bits(b, 24), 32) for a, b in pairs],
    }
    for name, values in expected.items():
        assert list(run(f"libdevice.{name}(a0, a1)", np.int32, x, y)) == values, name
    sums = [low_bits(abs(a - b) + c, 32) for a, b, c in zip(*lists)]
    assert list(run("libdevice.sad(a0, a1, a2)", np.int32, x, y, s)) == sums
    longs = [int(v) for v in wide]
    lowest = [(v & -v).bit_length() for v in longs]
    assert list(run("libdevice.ffs(a0)", np.int32, wide)) == lowest
    zeros = [64 - (v % 2**64).bit_length() for v in longs]
    assert list(run("libdevice.clz(a0)", np.int32, wide)) == zeros
    counts = [bin(v % 2**32).count("1") for v in lists[0]]
    assert list(run("libdevice.popc(a0)", np.int32, x)) == counts
    for i, v in enumerate(run("libdevice.byte_perm(a0, a1, a2)", np.int32, x, y, s)):
        data = (lists[0][i] % 2**32 + (lists[1][i] % 2**32 << 32)).to_bytes(8, "little")
        picked = bytes(data[lists[2][i] >> 4 * k & 7] for k in range(4))
        assert v == int.from_bytes(picked, "little", signed=True)
    halves = run("libdevice.hiloint2double(a0, a1)", np.float64, x, y).view(np.int64)
    assert list(halves) == [a * 2**32 + b % 2**32 for a, b in zip(*lists[:2])]


def test_floats(run):
    x, y = floats(11), floats(12)
    x[8:11] = [np.nan, np.inf, -np.inf]
    assert np.array_equal(run("libdevice.isnan(a0).to(tl.int32)", np.int32, x), np.isnan(x))
    assert np.array_equal(run("libdevice.isinf(a0).to(tl.int32)", np.int32, x), np.isinf(x))
    assert np.array_equal(run("libdevice.finitef(a0).to(tl.int32)", np.int32, x), np.isfinite(x))
    assert np.array_equal(run("libdevice.signbit(a0)", np.int32, x), np.signbit(x))
    exponents = run("libdevice.ilogb(a0)", np.int32, x)
    assert exponents[0] == exponents[8] == -(2**31) and exponents[9] == 2**31 - 1
    assert all(exponents[i] == math.frexp(x[i])[1] - 1 for i in range(11, N))
    saturated = run("libdevice.saturatef(a0)", np.float32, x)
    assert np.array_equal(saturated, np.nan_to_num(np.clip(x, 0, 1), nan=0.0))
    small = np.clip(y, -1e6, 1e6)
    whole = np.rint(small).astype(np.int64)
    assert np.array_equal(run("libdevice.llrint(a0)", np.int64, small), whole)
    n = np.arange(N, dtype=np.int32) - 128
    with np.errstate(over="ignore"):
        expected = np.ldexp(small, n)
    assert np.array_equal(run("libdevice.ldexp(a0, a1)", np.float32, small, n), expected)
    ordinary = np.random.default_rng(13).normal(size=N).astype(np.float32)
    powers = ordinary.astype(np.float64) ** (n % 7)
    assert np.allclose(run("libdevice.pow(a0, a1)", np.float32, ordinary, n % 7), powers, rtol=1e-7)
    norms = np.sqrt(ordinary.astype(np.float64) ** 2 * 3)
    assert np.allclose(run("libdevice.norm3d(a0, a0, a0)", np.float32, ordinary), norms, rtol=3e-7)
    assert np.allclose(run("libdevice.rcbrt(a0)", np.float32, ordinary), 1 / np.cbrt(ordinary), rtol=3e-7)
    gammas = [math.lgamma(abs(v)) for v in ordinary]
    assert np.allclose(run("libdevice.lgamma(tl.abs(a0))", np.float32, ordinary), gammas, rtol=1e-6)
