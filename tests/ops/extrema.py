"""`tl.maximum`, `minimum`, `clamp`: NaN policies, signed zeros, promotion, literals."""

import numpy as np
import pytest

from ._common import SIZES, compiles, refused, same, value
from ._numbers import (
    FLOATS,
    FP8,
    INTS,
    TYPES,
    Typed,
    common,
    crossed,
    decode,
    encode,
    samples,
    wrap,
)

COVERS = ["maximum", "minimum", "clamp", "PropagateNan.NONE", "PropagateNan.ALL"]

NAMES = {"maximum": (np.fmax, np.maximum), "minimum": (np.fmin, np.minimum)}


@pytest.mark.parametrize("function", NAMES)
@pytest.mark.parametrize("a", ["int1", *INTS])
def test_integers_in_the_promoted_type(a, function):
    for b in ["int1", *INTS]:
        name = common(a, b)
        x, y = crossed(a, b, 20)
        want = NAMES[function][1](wrap(name, x.astype(object)), wrap(name, y.astype(object)))
        same(value(f"tl.{function}(x, y)", name, inputs={"x": x, "y": y}), want)


def check(got, want, name):
    """Either zero will do where the values are zeros."""
    same(got, np.where(decode(name, want) == 0, got, want), name)
    assert (decode(name, got)[decode(name, want) == 0] == 0).all()


@pytest.mark.parametrize("function", NAMES)
@pytest.mark.parametrize("name", FLOATS + FP8)
@pytest.mark.parametrize(
    "policy",
    [
        "",
        ", tl.PropagateNan.NONE",
        ", propagate_nan=tl.PropagateNan.ALL",
        ", 'none'",
        ", propagate_nan='all'",
    ],
)
def test_floats_and_nan(policy, name, function):
    x, y = crossed(name, name, 48)
    f = NAMES[function]["all" in policy.lower()]
    want = encode(name, f(decode(name, x), decode(name, y)))
    got = value(
        f"tl.{function}(x, y{policy})", name, inputs={"x": Typed(name, x), "y": Typed(name, y)}
    )
    values = decode(name, got)
    # Values, not images: -0 and 0 are as good as one another, and e5 has infinities to keep.
    expect = f(decode(name, x), decode(name, y))
    same(values + 0.0, expect + 0.0)
    assert want.shape == got.shape


@pytest.mark.parametrize("function", NAMES)
def test_promotion(function):
    for a, b in [
        ("float16", "bfloat16"),
        ("bfloat16", "bfloat16"),
        ("bfloat16", "int32"),
        ("float16", "int64"),
        ("float32", "float64"),
    ]:
        compiles(f"tl.static_assert(tl.{function}(x, y).dtype == tl.{common(a, b)})", x=a, y=b)
    compiles(f"tl.static_assert(tl.{function}(x, 0.0).dtype == tl.float16)", x="float16")
    compiles(f"tl.static_assert(tl.{function}(0, x).dtype == tl.bfloat16)", x="bfloat16")
    compiles(f"tl.static_assert(tl.{function}(x, 0.5).dtype == tl.float32)", x="int8")
    compiles(f"tl.static_assert(tl.{function}(x=x, y=1).dtype == tl.int8)", x="int8")
    refused(f"tl.{function}(x, 300)", "literal-range", x="int8")
    refused(f"tl.{function}(x, y)", "type-mismatch", x="float8e5", y="int8")
    refused(f"tl.{function}(x, y, propagate_nan='some')", None, x="float32", y="float32")


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("function", NAMES)
def test_odd_sizes_and_broadcasting(function, n):
    x, y = samples("float64", n)[:, None], np.array([[-1.0, 2.0]])
    want = NAMES[function][0](x, y)
    same(value(f"tl.{function}(x, y)", "float64", (n, 2), {"x": x, "y": y}) + 0.0, want + 0.0)


# ---- clamp ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", INTS)
def test_clamp_of_integers(name):
    t = TYPES[name]
    x = samples(name, 128)
    lo, hi = np.array(t.low // 2 + 1, t.storage), np.array(t.high // 3, t.storage)
    inputs = {"x": x, "lo": lo, "hi": hi}
    same(value("tl.clamp(x, lo, hi)", name, inputs=inputs), np.clip(x, lo, hi))
    same(value("tl.clamp(x, min=lo, max=hi)", name, inputs=inputs), np.clip(x, lo, hi))
    same(
        value("tl.clamp(x, 1, 5)", name, inputs=inputs),
        np.clip(x, t.storage.type(1), t.storage.type(5)),
    )


@pytest.mark.parametrize("name", FLOATS)
def test_clamp_of_floats(name):
    x = samples(name, 256)
    lo, hi = encode(name, -1.5), encode(name, 2.0)
    inputs = {"x": Typed(name, x), "lo": Typed(name, lo), "hi": Typed(name, hi)}
    # Of a NaN the maximum with the lower bound is taken first.
    want = encode(name, np.fmin(np.fmax(decode(name, x), -1.5), 2.0))
    same(value("tl.clamp(x, lo, hi)", name, inputs=inputs), want, name)
    same(value("tl.clamp(x, -1.5, 2.0)", name, inputs=inputs), want, name)


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("policy", ["'all'", "tl.PropagateNan.ALL"])
def test_clamp_that_propagates_nan(policy, name):
    x = samples(name, 256)
    want = encode(name, np.minimum(np.maximum(decode(name, x), -1.5), 2.0))
    call = f"tl.clamp(x, -1.5, 2.0, propagate_nan={policy})"
    same(value(call, name, inputs={"x": Typed(name, x)}), want, name)


def test_clamp_broadcasts_and_promotes():
    x = np.linspace(-4, 4, 8, dtype=np.float16)
    lo = np.array([[-1.0], [-2.0]], np.float32)
    want = np.clip(x.astype(np.float32), lo, 1.0)
    same(value("tl.clamp(x, lo, 1)", "float32", (2, 8), {"x": x, "lo": lo}), want)
    compiles("tl.static_assert(tl.clamp(x, 0.0, 1.0).dtype == tl.float16)", x="float16")
    compiles("tl.static_assert(tl.clamp(x, y, 1.0).dtype == tl.float32)", x="float16", y="float32")
    refused("tl.clamp(x, 0, 300)", "literal-range", x="int8")
    refused("tl.clamp(x, 0)", "bad-call", x="int8")
    refused("tl.clamp(x, x, y)", "shape-mismatch", x=np.zeros(8), y=np.zeros(4))
