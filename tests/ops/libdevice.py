"""`libdevice`: real functions of one and several floats, against forty digits; spellings, types.

What rounds and what takes bits has modules of its own, `libdevice_rounding` and `libdevice_bits`.
"""

import math
from decimal import Decimal as D

import numpy as np
import pytest

import naiad.language as tl
from naiad.language.extra import libdevice

from . import _decimal as exact
from ._common import SIZES, compiles, refused, same, value
from ._numbers import crossed, samples

COVERS = [
    "libdevice.acos", "libdevice.acosh", "libdevice.asin", "libdevice.asinh", "libdevice.atan",
    "libdevice.atan2", "libdevice.atanh", "libdevice.cbrt", "libdevice.cosh", "libdevice.cospi",
    "libdevice.cyl_bessel_i0", "libdevice.cyl_bessel_i1", "libdevice.erfc", "libdevice.erfcinv",
    "libdevice.erfcx", "libdevice.erfinv", "libdevice.exp10", "libdevice.expm1",
    "libdevice.fast_cosf", "libdevice.fast_exp10f", "libdevice.fast_expf", "libdevice.fast_log10f",
    "libdevice.fast_log2f", "libdevice.fast_logf", "libdevice.fast_powf", "libdevice.fast_sinf",
    "libdevice.fast_tanf", "libdevice.fast_tanhf", "libdevice.fdim", "libdevice.fmod",
    "libdevice.hypot", "libdevice.j0", "libdevice.j1", "libdevice.lgamma", "libdevice.log10",
    "libdevice.log1p", "libdevice.norm3d", "libdevice.norm4d", "libdevice.normcdf",
    "libdevice.normcdfinv", "libdevice.pow", "libdevice.rcbrt", "libdevice.remainder",
    "libdevice.rhypot", "libdevice.rnorm3d", "libdevice.rnorm4d", "libdevice.saturatef",
    "libdevice.sinh", "libdevice.sinpi", "libdevice.tan", "libdevice.tanh", "libdevice.tgamma",
    "libdevice.y0", "libdevice.y1",
]  # fmt: skip

NAMES = {"libdevice": libdevice}
FLOATS = ["float32", "float64"]
INF, NAN = math.inf, math.nan


def of(call, dtype, shape=None, **inputs):
    return value(f"libdevice.{call}", dtype, shape, inputs, names=NAMES)


def near(got, want, ulps, scale=None):
    """Within so many ulp of the exact value or, where `scale` is more, of that."""
    name = got.dtype.name
    bits, least, top = {"float32": (24, -149, 128), "float64": (53, -1074, 1024)}[name]
    scale = np.zeros(len(want)) if scale is None else scale
    worst, at = 0, None
    for i, (g, w, s) in enumerate(zip(got.tolist(), want, scale.tolist())):
        high = float(w)
        if abs(w) >= D(2) ** top:
            assert g == math.copysign(INF, w), (i, g, w)
            continue
        unit = math.ldexp(1.0, max(math.frexp(max(abs(high), s))[1] - bits, least))
        error = abs((D(g) - w) / D(unit)) if math.isfinite(g) else D("inf")
        if error > worst:
            worst, at = error, (i, g, w)
    assert worst <= D(str(ulps)), f"{float(worst)} ulp: at, got, want: {at}"


# ---- of one float ---------------------------------------------------------------------------------


def flat(low, high):
    return lambda rng, name: rng.uniform(low, high, 40)


def wide(low, high, sign=True):
    """Of any size, the exponents in a range that float32 cuts to its own."""

    def draw(rng, name):
        end = (-126, 126) if name == "float32" else (-1020, 1020)
        x = np.exp2(rng.uniform(max(low, end[0]), min(high, end[1]), 40))
        return x * rng.choice([-1.0, 1.0], 40) if sign else x

    return draw


def below_one(rng, name):
    return 1 - np.exp2(rng.uniform(-20 if name == "float32" else -50, -3, 40))


def at_zeros(*zeros):
    """The numbers next to where a function is 0."""

    def draw(rng, name):
        x = np.array(zeros, name)
        return np.concatenate([x, np.nextafter(x, x.dtype.type(99)), np.nextafter(x, -x)])

    return draw


def envelope(x):
    """What the error of a Bessel function is small beside, close to its zeros."""
    return np.minimum(1, np.sqrt(2 / (np.pi * np.abs(x))))


def at_least_1(x):
    return np.where(x < 0, 1.0, 0.0)


def inverse(f):
    return lambda *x: 1 / f(*x)


# The exact function, its bounds in ulp in float32 and float64 as docs/accuracy.md states them, what
# arguments. What float32 computes in float64 is rounded twice, which adds next to nothing to a half.
ROUNDED = 0.5001
FUNCTIONS = {
    "acos": (exact.acos, 2, 2, [flat(-1, 1), wide(-40, 0), below_one]),
    "acosh": (exact.acosh, 2, 2, [flat(1, 4), flat(1, 1.01), wide(0, 1020, False)]),
    "asin": (exact.asin, 2, 2, [flat(-1, 1), wide(-1020, 0), below_one]),
    "asinh": (exact.asinh, 2, 2, [flat(-4, 4), wide(-1020, 1020)]),
    "atan": (exact.atan, 2, 2, [flat(-4, 4), wide(-1020, 1020)]),
    "atanh": (exact.atanh, 2, 2, [flat(-1, 1), wide(-1020, 0), below_one]),
    "cbrt": (exact.cbrt, 1, 1, [flat(-10, 10), wide(-1020, 1020)]),
    "cosh": (exact.cosh, 2, 2, [flat(-2, 2), flat(-88, 88), wide(-40, 9)]),
    "cospi": (exact.cospi, 2, 2, [flat(-3, 3), wide(-40, 30)]),
    "cyl_bessel_i0": (exact.i0, ROUNDED, 5, [flat(-8, 8), flat(8, 30), flat(-87, 87)]),
    "cyl_bessel_i1": (exact.i1, ROUNDED, 5, [flat(-8, 8), flat(8, 30), flat(-87, 87), wide(-99, 3)]),
    "erfc": (exact.erfc, 2, 2, [flat(-6, 9), flat(-1, 3), wide(-40, 1)]),
    "erfcinv": (exact.erfcinv, ROUNDED, 4, [flat(0, 2), wide(-1020, 0, False)]),
    "erfcx": (exact.erfcx, ROUNDED, 4, [flat(-9, 30), flat(-1, 3), wide(0, 100, False)]),
    "erfinv": (exact.erfinv, ROUNDED, 4, [flat(-1, 1), wide(-1020, -1), below_one]),
    "exp10": (lambda x: D(10) ** x, 1, 1, [flat(-44, 38), flat(-1, 1), wide(-40, 5)]),
    "expm1": (exact.expm1, 2, 2, [flat(-40, 88), flat(-2, 2), wide(-1020, 2)]),
    "j0": (exact.j0, ROUNDED, 6, [flat(-8, 8), flat(8, 100), wide(3, 40, False),
                                  at_zeros(2.404825557695773, 5.520078110286311)]),
    "j1": (exact.j1, ROUNDED, 6, [flat(-8, 8), flat(8, 100), wide(-30, 3),
                                  at_zeros(3.8317059702075125, 7.015586669815619)]),
    "lgamma": (exact.lgamma, ROUNDED, 4, [flat(0, 10), flat(0.5, 2.5), wide(-50, 110, False),
                                          flat(-5, 0), flat(-99, 0)]),
    "log10": (D.log10, 1, 1, [wide(-1020, 1020, False), flat(0.5, 2), below_one]),
    "log1p": (exact.log1p, 2, 2, [flat(-0.9999, 3), wide(-1020, -1), wide(0, 1020, False)]),
    "normcdf": (exact.normcdf, ROUNDED, 4, [flat(-13, 8), flat(-2, 2)]),
    "normcdfinv": (exact.normcdfinv, ROUNDED, 4, [flat(0, 1), wide(-1020, -1, False), below_one]),
    # 1 divided by the rounded root: half an ulp more, and the root's is up to twice as much of it.
    "rcbrt": (inverse(exact.cbrt), 2.5, 2.5, [flat(-10, 10), wide(-1020, 1020)]),
    "sinh": (exact.sinh, 2, 2, [flat(-2, 2), flat(-88, 88), wide(-1020, 2)]),
    "sinpi": (exact.sinpi, 2, 2, [flat(-3, 3), wide(-900, 30)]),
    "tan": (exact.tan, 2, 2, [flat(-10, 10), wide(-1020, 2), wide(0, 1020)]),
    "tanh": (exact.tanh, 2, 2, [flat(-2, 2), flat(-20, 20), wide(-1020, 5)]),
    "tgamma": (exact.tgamma, ROUNDED, 5, [flat(0, 10), flat(8, 35), wide(-50, 1), flat(-30, 0)]),
    "y0": (exact.y0, ROUNDED, 12, [flat(0, 8), flat(8, 100), wide(-300, 40, False),
                                   at_zeros(0.8935769662791675, 3.957678419314858)]),
    "y1": (exact.y1, ROUNDED, 12, [flat(0, 8), flat(8, 100), wide(-120, 40, False),
                                   at_zeros(2.197141326031017, 5.429681040794135)]),
}  # fmt: skip
# Ranges that float64 has alone.
LARGE = {
    "cosh": [flat(-710, 710)], "sinh": [flat(-710, 710)], "exp10": [flat(-320, 308)],
    "expm1": [flat(80, 709)], "cyl_bessel_i0": [flat(-700, 700)], "cyl_bessel_i1": [flat(-700, 700)],
    "erfc": [flat(9, 27)], "erfcx": [flat(-26, -9)], "normcdf": [flat(-38, -13)],
    "tgamma": [flat(35, 171), flat(-180, -30)], "lgamma": [wide(110, 900, False)],
}  # fmt: skip
SCALES = {"j0": envelope, "j1": envelope, "y0": envelope, "y1": envelope, "lgamma": at_least_1}
FAST = {
    "fast_cosf": (exact.cos, 2, [flat(-10, 10), wide(-30, 126)]),
    "fast_exp10f": (lambda x: D(10) ** x, 1, [flat(-44, 38)]),
    "fast_expf": (D.exp, 1, [flat(-103, 88), flat(-1, 1)]),
    "fast_log10f": (D.log10, 1, [wide(-126, 126, False), flat(0.5, 2)]),
    "fast_log2f": (lambda x: x.ln() / D(2).ln(), 1, [wide(-126, 126, False), flat(0.5, 2)]),
    "fast_logf": (D.ln, 1, [wide(-126, 126, False), flat(0.5, 2)]),
    "fast_sinf": (exact.sin, 2, [flat(-10, 10), wide(-126, 126)]),
    "fast_tanf": (exact.tan, 2, [flat(-10, 10), wide(-126, 126)]),
    "fast_tanhf": (exact.tanh, 2, [flat(-20, 20), wide(-126, 5)]),
}


def arguments(draws, name):
    rng = np.random.default_rng(11)
    x = np.concatenate([draw(rng, name) for draw in draws]).astype(name)
    # Rounding to float32 may have left the domain.
    return x[(x != 1) & (x != -1) & (x != 2) & (x != 0)]


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_accuracy(function, name):
    f, *bounds, draws = FUNCTIONS[function]
    x = arguments(draws + (LARGE.get(function, []) if name == "float64" else []), name)
    scale = SCALES[function](x.astype(np.float64)) if function in SCALES else None
    got = of(f"{function}(x)", name, x=x)
    near(got, exact.evaluate(f, x), bounds[name == "float64"], scale)


@pytest.mark.parametrize("function", FAST)
def test_fast_names_are_as_accurate(function):
    f, bound, draws = FAST[function]
    x = arguments(draws, "float32")
    near(of(f"{function}(x)", "float32", x=x), exact.evaluate(f, x), bound)
    x = samples("float32", 400)
    precise = function.removeprefix("fast_").removesuffix("f")
    same(of(f"{function}(x)", "float32", x=x), of(f"{precise}(x)", "float32", x=x))


ODD = "asin asinh atan atanh cbrt rcbrt erfinv expm1 log1p sinh sinpi tan tanh j1 cyl_bessel_i1".split()
SPECIAL = {
    "acos": [(1, 0.0), (1.5, NAN), (-INF, NAN)],
    "acosh": [(1, 0.0), (0.5, NAN), (-2, NAN), (-INF, NAN), (INF, INF)],
    "asin": [(0.0, 0.0), (1.5, NAN), (INF, NAN)],
    "asinh": [(0.0, 0.0), (INF, INF)],
    "atan": [(0.0, 0.0)],
    "atanh": [(0.0, 0.0), (1, INF), (1.5, NAN), (INF, NAN)],
    "cbrt": [(0.0, 0.0), (INF, INF), (27, 3), (2.0**-126, 2.0**-42)],
    "cosh": [(0.0, 1), (-0.0, 1), (INF, INF), (-INF, INF), (1000, INF)],
    "cospi": [(0.0, 1), (-0.0, 1), (0.5, 0.0), (1, -1), (-2, 1), (2.0**60, 1), (INF, NAN)],
    "cyl_bessel_i0": [(0.0, 1), (-0.0, 1), (INF, INF), (-INF, INF), (1000, INF)],
    "cyl_bessel_i1": [(0.0, 0.0), (INF, INF), (1000, INF)],
    "erfc": [(0.0, 1), (-0.0, 1), (INF, 0.0), (-INF, 2), (30, 0.0), (-30, 2)],
    "erfcinv": [(0.0, INF), (-0.0, INF), (1, 0.0), (2, -INF), (-1, NAN), (2.5, NAN), (INF, NAN)],
    "erfcx": [(0.0, 1), (-0.0, 1), (INF, 0.0), (-INF, INF), (-30, INF)],
    "erfinv": [(0.0, 0.0), (1, INF), (1.5, NAN), (INF, NAN)],
    "exp10": [(0.0, 1), (-0.0, 1), (INF, INF), (-INF, 0.0), (2, 100), (400, INF), (-400, 0.0)],
    "expm1": [(0.0, 0.0), (INF, INF), (-INF, -1), (-800, -1), (1000, INF)],
    "j0": [(0.0, 1), (-0.0, 1), (INF, 0.0), (-INF, 0.0)],
    "j1": [(0.0, 0.0), (INF, 0.0)],
    "lgamma": [(0.0, INF), (-0.0, INF), (1, 0.0), (2, 0.0), (-3, INF), (INF, INF), (-INF, INF)],
    "log10": [(0.0, -INF), (-0.0, -INF), (1, 0.0), (1000, 3), (-1, NAN), (INF, INF), (-INF, NAN)],
    "log1p": [(0.0, 0.0), (-1, -INF), (-2, NAN), (INF, INF), (-INF, NAN)],
    "normcdf": [(0.0, 0.5), (-0.0, 0.5), (INF, 1), (-INF, 0.0), (-60, 0.0), (20, 1)],
    "normcdfinv": [(0.0, -INF), (-0.0, -INF), (1, INF), (-1, NAN), (1.5, NAN)],
    "rcbrt": [(0.0, INF), (INF, 0.0), (8, 0.5)],
    "sinh": [(0.0, 0.0), (INF, INF), (1000, INF)],
    "sinpi": [(0.0, 0.0), (0.5, 1), (1.5, -1), (2.5, 1), (INF, NAN)],
    "tan": [(0.0, 0.0), (INF, NAN)],
    "tanh": [(0.0, 0.0), (INF, 1), (90, 1)],
    "tgamma": [(0.0, INF), (-0.0, -INF), (1, 1), (5, 24), (-1, NAN), (-7, NAN), (INF, INF),
               (-INF, NAN), (180, INF), (-200.5, -0.0), (-201.5, 0.0)],
    "y0": [(0.0, -INF), (-0.0, -INF), (-1, NAN), (INF, 0.0), (-INF, NAN)],
    "y1": [(0.0, -INF), (-0.0, -INF), (-1, NAN), (INF, 0.0), (-INF, NAN)],
}  # fmt: skip


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("function", SPECIAL)
def test_special_values(function, name):
    rows = [*SPECIAL[function], (NAN, NAN)]
    if function in ODD:
        rows += [(-x, -y) for x, y in SPECIAL[function] if function not in ("expm1", "log1p") or x == 0]
    x, want = (np.array(c, name) for c in zip(*rows))
    same(of(f"{function}(x)", name, x=x), want)


def test_normcdfinv_of_a_half():
    # Of either sign.
    assert (of("normcdfinv(x)", "float64", x=np.full(4, 0.5)) == 0).all()


@pytest.mark.parametrize("name", FLOATS)
def test_the_least_numbers(name):
    """Functions that are x, or x by a factor, near 0."""
    x = np.array([1, 2, 3, 5, 77, 12345], f"u{np.dtype(name).itemsize}").view(name)
    x = np.concatenate([x, -x])
    for function in set(ODD) - {"cbrt", "rcbrt"}:
        f, *bounds, _ = FUNCTIONS[function]
        near(of(f"{function}(x)", name, x=x), exact.evaluate(f, x), bounds[name == "float64"])
    near(of("cbrt(x)", name, x=x), exact.evaluate(exact.cbrt, x), 1)


def test_saturatef():
    x = np.concatenate([samples("float32", 600), np.linspace(-1, 2, 100, dtype=np.float32)])
    want = np.where(x > 0, np.minimum(x, 1), np.float32(0))
    got = of("saturatef(x)", "float32", x=x)
    # Of -0 either zero will do.
    same(got + np.float32(0), want)


# ---- of several -----------------------------------------------------------------------------------


def sized(name, n, rng, low=-40, high=40):
    return (np.exp2(rng.uniform(low, high, n)) * rng.choice([-1.0, 1.0], n)).astype(name)


def columns(name, n, seed=1):
    """Numbers of one size, and of any."""
    rng = np.random.default_rng(seed)
    one = [rng.uniform(-1, 1, 150).astype(name) for _ in range(n)]
    top = 62 if name == "float32" else 510
    return [np.concatenate([c, sized(name, 150, rng), sized(name, 100, rng, -top, top)]) for c in one]


# A hypotenuse of another adds the error of that; 1 divided by one half an ulp more, as for rcbrt.
SEVERAL = {
    "atan2": (exact.atan2, 2, 2),
    "hypot": (exact.norm, 2, 1),
    "rhypot": (inverse(exact.norm), 2, 2.5),
    "norm3d": (exact.norm, 3, 2),
    "rnorm3d": (inverse(exact.norm), 3, 4.5),
    "norm4d": (exact.norm, 4, 3),
    "rnorm4d": (inverse(exact.norm), 4, 6.5),
}


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("function", SEVERAL)
def test_accuracy_of_several(function, name):
    f, n, bound = SEVERAL[function]
    inputs = dict(zip("xyzw", columns(name, n)))
    got = of(f"{function}({', '.join(inputs)})", name, **inputs)
    near(got, exact.evaluate(f, *inputs.values()), bound)


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("function", ["hypot", "norm3d", "norm4d"])
def test_norms_overflow_only_where_they_are_large(function, name):
    n = SEVERAL[function][1]
    end = {"float32": (-149, 127), "float64": (-1074, 1023)}[name]
    rng = np.random.default_rng(3)
    low = [sized(name, 60, rng, end[0], end[0] + 30) for _ in range(n)]
    high = [sized(name, 60, rng, end[1] - 30, end[1] + 0.3) for _ in range(n)]
    inputs = dict(zip("xyzw", map(np.concatenate, zip(low, high))))
    got = of(f"{function}({', '.join(inputs)})", name, **inputs)
    near(got, exact.evaluate(exact.norm, *inputs.values()), SEVERAL[function][2])


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("function", ["rhypot", "rnorm3d", "rnorm4d"])
@pytest.mark.parametrize("size", ["small", "large"])
def test_reciprocals_of_norms_at_the_ends(size, function, name):
    n = SEVERAL[function][1]
    top = {"float32": 128, "float64": 1024}[name]
    rng = np.random.default_rng(3)
    ends = (top - 2, top - 0.1) if size == "large" else (2 - top, 4 - top)
    inputs = dict(zip("xyzw", (sized(name, 60, rng, *ends) for _ in range(n))))
    got = of(f"{function}({', '.join(inputs)})", name, **inputs)
    near(got, exact.evaluate(SEVERAL[function][0], *inputs.values()), SEVERAL[function][2])


@pytest.mark.parametrize(
    "call, name",
    [("pow(x, y)", "float32"), ("pow(x, y)", "float64"), ("fast_powf(x, y)", "float32")],
)
def test_accuracy_of_powers(call, name):
    rng = np.random.default_rng(2)
    large = 10 if name == "float32" else 80
    x = [rng.uniform(0.01, 10, 150), np.exp2(rng.uniform(-100, 100, 100)), 1 + rng.uniform(-0.01, 0.01, 100)]
    y = [rng.uniform(-large, large, 150), rng.uniform(-1.2, 1.2, 100), rng.uniform(-8000, 8000, 100)]
    x, y = (np.concatenate(c).astype(name) for c in (x, y))
    near(of(call, name, x=x, y=y), exact.evaluate(exact.power, x, y), 1)
    x, y = -x[:100], np.rint(y[:100])
    near(of(call, name, x=x, y=y), exact.evaluate(exact.power, x, y), 1)


@pytest.mark.parametrize("name", FLOATS)
def test_powers_to_integers(name):
    rng = np.random.default_rng(4)
    x = np.concatenate([rng.uniform(-3, 3, 200), 1 + rng.uniform(-1e-7, 1e-7, 100)]).astype(name)
    n = np.concatenate([rng.integers(-60, 60, 200), rng.integers(2**24, 2**30, 100)]).astype(np.int32)
    # Above 2^24 float32 does not hold every exponent, which yet counts.
    near(of("pow(x, n)", name, x=x, n=n), exact.evaluate(exact.power, x, n), 1)
    for k in (0, 1, 2, -1, 7):
        near(of(f"pow(x, {k})", name, x=x), exact.evaluate(lambda v: exact.power(v, D(k)), x), 1)
    near(of("pow(2.0, x)", name, x=x), exact.evaluate(lambda v: exact.power(D(2), v), x), 1)
    refused("tl.extra.libdevice.pow(x, n)", "type-mismatch", "not int64", x=name, n="int64")


# In NumPy, on infinities, zeros and NaN, after C's annex F.
CORNERS = np.array([0.0, -0.0, 1, -1, 2, -2, 3, 0.5, -0.5, INF, -INF, NAN, 1e-40, -1e30])
AS_IN_C = {"pow": np.power, "fast_powf": np.power, "atan2": np.arctan2, "hypot": np.hypot}


@pytest.mark.parametrize(
    "function, name", [(f, t) for f in AS_IN_C for t in FLOATS[: 1 if f == "fast_powf" else 2]]
)
def test_corners_as_in_c(function, name):
    x, y = (c.ravel().astype(name) for c in np.meshgrid(CORNERS, CORNERS))
    with np.errstate(all="ignore"):
        want = AS_IN_C[function](x.astype(np.float64), y.astype(np.float64)).astype(name)
    got = of(f"{function}(x, y)", name, x=x, y=y)
    special = ~np.isfinite(want) | (want == 0) | (np.abs(want) == 1)
    same(got[special], want[special])
    with np.errstate(all="ignore"):
        assert np.allclose(got[~special], want[~special], rtol=1e-6, atol=1e-45)


@pytest.mark.parametrize("name", FLOATS)
def test_infinities_in_norms(name):
    x = np.array([INF, -INF, NAN, INF, 0.0, -0.0], name)
    y = np.array([NAN, 1, 1, INF, 0.0, -0.0], name)
    want = np.array([INF, INF, NAN, INF, 0.0, 0.0], name)
    with np.errstate(all="ignore"):
        inverse = 1 / want
    for suffix, more in (("hypot", ""), ("norm3d", ", y"), ("norm4d", ", x, y")):
        for order in ("x, y", "y, x"):
            same(of(f"{suffix}({order}{more})", name, x=x, y=y), want)
            same(of(f"r{suffix}({order}{more})", name, x=x, y=y), inverse)


def c_remainder(f):
    def g(x, y):
        return NAN if math.isnan(x) or math.isnan(y) or math.isinf(x) or y == 0 else f(x, y)

    return g


EXACTLY = {
    "fmod": c_remainder(math.fmod),
    "remainder": c_remainder(math.remainder),
    "fdim": lambda x, y: NAN if x != x or y != y else x - y if x > y else 0.0,
}


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("function", EXACTLY)
def test_exact_functions_of_two(function, name):
    pairs = [crossed(name, name, 48), columns(name, 2), (np.arange(-40, 41).astype(name), np.resize(
        np.arange(1, 9), 81).astype(name))]  # fmt: skip
    x, y = map(np.concatenate, zip(*pairs))
    with np.errstate(all="ignore"):
        want = np.array([EXACTLY[function](u, v) for u, v in zip(x.tolist(), y.tolist())]).astype(name)
    same(of(f"{function}(x, y)", name, x=x, y=y), want)


# ---- spellings, types and shapes ------------------------------------------------------------------

ARITY = {name: 1 for name in [*FUNCTIONS, *FAST, "saturatef"]}
ARITY |= {name: n for name, (_, n, _) in SEVERAL.items()}
ARITY |= {name: 2 for name in [*EXACTLY, "pow", "fast_powf"]}


@pytest.mark.parametrize("function", ARITY)
def test_spellings(function):
    x = np.linspace(0.1, 0.9, 16, dtype=np.float32)
    arguments = ", ".join("x" * ARITY[function])
    want = of(f"{function}({arguments})", "float32", x=x)
    imported = {"f": getattr(libdevice, function), "m": tl.extra.cuda.libdevice}
    places = ["tl.extra.libdevice", "tl.extra.cuda.libdevice", "tl.math", "tl.libdevice", "m"]
    for call in ("f", *(f"{place}.{function}" for place in places)):
        same(value(f"{call}({arguments})", "float32", inputs={"x": x}, names=imported), want)


@pytest.mark.parametrize("function", ARITY)
def test_parameters_by_name(function):
    x = np.linspace(0.1, 0.9, 16, dtype=np.float32)
    n = ARITY[function]
    want = of(f"{function}({', '.join('x' * n)})", "float32", x=x)
    named = ", ".join(f"arg{i}=x" for i in reversed(range(n)))
    same(of(f"{function}({named})", "float32", x=x), want)


@pytest.mark.parametrize("function", ARITY)
def test_other_types_are_refused(function):
    n = ARITY[function]
    call = f"tl.extra.libdevice.{function}({', '.join('x' * n)})"
    only = function in [*FAST, "saturatef", "fast_powf"]
    for wrong in ["float16", "bfloat16", "int32", "int8", "int1", "float8e5"] + ["float64"] * only:
        refused(call, "type-mismatch", f"`tl.libdevice.{function}`", x=wrong)
        refused(call, "type-mismatch", "wants float32", x=wrong)
    refused(call, "type-mismatch", p="float32", pointers="p", x="float16")
    refused(f"tl.extra.libdevice.{function}({', '.join('x' * (n + 1))})", "bad-call", x="float32")


def test_two_types_promote_and_broadcast():
    x, y = np.array([3.0, 5.0, 8.0], np.float32), np.array([[4.0], [12.0]])
    want = np.hypot(x.astype(np.float64), y)
    near(of("hypot(x, y)", "float64", (2, 3), x=x, y=y).ravel(), [*map(D, want.ravel())], 1)
    same(of("fmod(x, 2)", "float32", x=x), np.fmod(x, np.float32(2)))
    y = y.astype(np.float32)[:, :, None]
    want = np.sqrt(np.float32(x * x + y * y + 0))
    got = of("norm3d(x, y, 0.0)", "float32", (2, 1, 3), x=x, y=y)
    assert np.allclose(got, want, rtol=3e-7)
    refused("tl.extra.libdevice.hypot(x, y)", "shape-mismatch", x="float32[8]", y="float32[4]")
    # A half and a float32 are two float32.
    compiles("tl.static_assert(tl.extra.libdevice.atan2(x, y).dtype == tl.float32)",
             x="float16", y="float32")  # fmt: skip


def test_literals_and_ranks():
    one = of("tan(x)", "float32", x=np.float32(1))
    same(of("tan(1.0)", "float32"), one)
    same(of("tan(1)", "float32"), one)
    for shape in [(), (1,), (4, 2), (2, 1, 4)]:
        x = np.arange(int(np.prod(shape)), dtype=np.float64).reshape(shape)
        same(of("cbrt(x * x * x)", "float64", x=x), x)


@pytest.mark.parametrize("n", SIZES)
def test_odd_sizes_and_views(n):
    x = np.linspace(-9, 9, 3 * n, dtype=np.float32)
    for view in (x[::3], x[n::-1], x[1 : n + 1]):
        same(of("fdim(x, 1.0)", "float32", x=view), np.maximum(view - np.float32(1), 0))


@pytest.mark.parametrize("call", ["jn(2, x)", "yn(2, x)"])
def test_what_is_missing_says_so(call):
    refused(f"tl.extra.libdevice.{call}", None, call[:2], x="float32")
