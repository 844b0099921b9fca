"""`tl.dot_scaled`: formats, scales along K, packing, accumulators, refusals."""

import numpy as np
import pytest

from ._common import refused, same, value
from ._numbers import TYPES, Typed, array, decode

COVERS = ["dot_scaled"]

E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])
FORMATS = {"e4m3": "float8e4nv", "e5m2": "float8e5", "bf16": "bfloat16", "fp16": "float16"}
M, N, K = 16, 8, 64


def operand(format, rows, raw, seed):
    """An array of `rows` times K, and its values."""
    rng = np.random.default_rng(seed)
    if format == "e2m1":
        packed = rng.integers(0, 256, (rows, K // 2)).astype(np.uint8)
        return packed, np.stack([E2M1[packed & 15], E2M1[packed >> 4]], -1).reshape(rows, K)
    name = FORMATS[format]
    x = array(name, rng.integers(-4, 5, (rows, K)))
    values = decode(name, x).astype(float)
    if raw:
        return x.view(f"u{TYPES[name].bits // 8}"), values
    return Typed(name, x), values


def flipped(x):
    if isinstance(x, Typed):
        return Typed(x.name, np.ascontiguousarray(x.array.T))
    return np.ascontiguousarray(x.T)


def scales(rows, seed):
    s = np.random.default_rng(seed).integers(124, 131, (rows, K // 32)).astype(np.uint8)
    return s, np.repeat(np.ldexp(1.0, s.astype(int) - 127), 32, axis=1)


@pytest.mark.parametrize("a", ["e2m1", *FORMATS])
@pytest.mark.parametrize("b", ["e2m1", *FORMATS])
@pytest.mark.parametrize("raw", [False, True])
def test_formats_and_scales(raw, b, a):
    x, xv = operand(a, M, raw, 1)
    y, yv = operand(b, N, raw, 2)
    s, sv = scales(M, 3)
    t, tv = scales(N, 4)
    # Small integers times powers of two: every product and sum is exact.
    inputs = {"x": x, "y": flipped(y), "s": s, "t": t}
    same(
        value(f"tl.dot_scaled(x, s, '{a}', y, t, '{b}')", "float32", (M, N), inputs),
        ((xv * sv) @ (yv * tv).T).astype(np.float32),
    )
    same(
        value(f"tl.dot_scaled(x, None, '{a}', y, t, '{b}')", "float32", (M, N), inputs),
        (xv @ (yv * tv).T).astype(np.float32),
    )
    same(
        value(f"tl.dot_scaled(x, s, '{a}', y, None, '{b}')", "float32", (M, N), inputs),
        ((xv * sv) @ yv.T).astype(np.float32),
    )


@pytest.mark.parametrize("format", ["e2m1", "e4m3", "bf16"])
def test_accumulators_and_words(format):
    x, xv = operand(format, M, False, 1)
    y, yv = operand(format, N, False, 2)
    s, sv = scales(M, 3)
    c = np.arange(M * N, dtype=np.float32).reshape(M, N)
    inputs = {"x": x, "y": flipped(y), "s": s, "c": c}
    want = ((xv * sv) @ yv.T + c).astype(np.float32)
    for tail in (
        "c",
        "acc=c",
        "acc=c, fast_math=True",
        "c, False, True, True, tl.float32",
        "acc=c, out_dtype=tl.float32",
    ):
        same(
            value(
                f"tl.dot_scaled(x, s, '{format}', y, None, '{format}', {tail})",
                "float32",
                (M, N),
                inputs,
            ),
            want,
        )
    names = f"lhs=x, lhs_scale=s, lhs_format='{format}', rhs=y, rhs_scale=None, rhs_format='{format}', acc=c"
    same(value(f"tl.dot_scaled({names})", "float32", (M, N), inputs), want)


def test_packing_along_the_other_axis():
    rng = np.random.default_rng(5)
    x = rng.integers(0, 256, (M // 2, K)).astype(np.uint8)
    xv = np.stack([E2M1[x & 15], E2M1[x >> 4]], 1).reshape(M, K)
    y = rng.integers(0, 256, (K, N // 2)).astype(np.uint8)
    yv = np.stack([E2M1[y & 15], E2M1[y >> 4]], 2).reshape(K, N)
    call = "tl.dot_scaled(x, None, 'e2m1', y, None, 'e2m1', lhs_k_pack=False, rhs_k_pack=False)"
    same(value(call, "float32", (M, N), {"x": x, "y": y}), (xv @ yv).astype(np.float32))


def test_batches():
    pairs = [operand("e4m3", M, False, k) for k in range(2)]
    x = Typed("float8e4nv", np.stack([p[0].array for p in pairs]))
    y = Typed("float8e4nv", np.stack([p[0].array.T for p in pairs[::-1]]))
    s, sv = zip(*(scales(M, k) for k in range(2)))
    want = np.stack([(pairs[k][1] * sv[k]) @ pairs[1 - k][1].T for k in range(2)]).astype(
        np.float32
    )
    got = value(
        "tl.dot_scaled(x, s, 'e4m3', y, None, 'e4m3')",
        "float32",
        (2, M, M),
        {"x": x, "y": y, "s": np.stack(s)},
    )
    same(got, want)


def test_a_scale_that_is_no_number():
    x, _ = operand("e4m3", M, False, 1)
    y, _ = operand("e4m3", N, False, 2)
    s = np.full((M, K // 32), 127, np.uint8)
    s[3, 0] = 255
    got = value(
        "tl.dot_scaled(x, s, 'e4m3', y, None, 'e4m3')",
        "float32",
        (M, N),
        {"x": x, "y": flipped(y), "s": s},
    )
    assert np.isnan(got[3]).all() and np.isfinite(np.delete(got, 3, 0)).all()


@pytest.mark.parametrize("exponent", [0, 1, 254])
def test_scales_at_the_ends(exponent):
    x = array("bfloat16", np.eye(M, K))
    y = array("bfloat16", np.eye(K, N))
    s = np.full((M, K // 32), exponent, np.uint8)
    got = value(
        "tl.dot_scaled(x, s, 'bf16', y, None, 'bf16')",
        "float32",
        (M, N),
        {"x": Typed("bfloat16", x), "y": Typed("bfloat16", y), "s": s},
    )
    same(got, (np.eye(M, N) * 2.0 ** (exponent - 127)).astype(np.float32))


@pytest.mark.parametrize(
    "call",
    [
        "tl.dot_scaled(x, None, 'e3m2', y, None, 'e4m3')", "tl.dot_scaled(x, s, 'e4m3', y, None, 'e4m3')",
        "tl.dot_scaled(x, None, 'e4m3', x, None, 'e4m3')", "tl.dot_scaled(x, None, 'e4m3', y, None, 'e4m3', out_dtype=tl.float16)",
        "tl.dot_scaled(x, None, 'e4m3', y, None)", "tl.dot_scaled(x, None, 'e4m3', y, None, 'e4m3', tl.zeros((4, 4), tl.float32))",
    ],
)  # fmt: skip
def test_calls_that_are_refused(call):
    refused(call, None, x="float8e4nv[16, 64]", y="float8e4nv[64, 8]", s="uint8[16, 4]")
