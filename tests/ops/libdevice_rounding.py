"""`libdevice` where it rounds: conversions and arithmetic to a direction, against exact fractions."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from naiad.language.extra import libdevice

from ._common import compiles, refused, same, tiles, value
from ._numbers import TYPES, samples

COVERS = [
    *(f"libdevice.{a}2{b}_{d}" for a in ("float", "double") for b in ("int", "uint", "ll", "ull")
      for d in ("rn", "rz", "rd", "ru")),
    *(f"libdevice.{a}2{b}_{d}" for a in ("int", "uint", "ll", "ull") for b in ("float", "double")
      for d in ("rn", "rz", "rd", "ru")),
    *(f"libdevice.double2float_{d}" for d in ("rn", "rz", "rd", "ru")),
    *(f"libdevice.{f}_{d}" for f in ("add", "sub", "mul", "div", "rcp", "sqrt")
      for d in ("rn", "rz", "rd", "ru")),
    "libdevice.fma_rz", "libdevice.fma_rd", "libdevice.fma_ru", "libdevice.fast_dividef",
    "libdevice.rsqrt_rn", "libdevice.rcp64h", "libdevice.nearbyint", "libdevice.rint",
    "libdevice.round", "libdevice.trunc", "libdevice.llrint", "libdevice.llround",
]  # fmt: skip

NAMES = {"libdevice": libdevice}
DIRECTIONS = ("rn", "rz", "rd", "ru")
PRECISION = {"float32": (24, -149, 128), "float64": (53, -1074, 1024)}


def whole(q, direction):
    """The integer that a fraction is rounded to."""
    if direction == "rz":
        return math.trunc(q)
    if direction == "rn":
        return round(q)
    if direction == "away":
        return math.floor(abs(q) + Fraction(1, 2)) * (1 if q >= 0 else -1)
    return math.floor(q) if direction == "rd" else math.ceil(q)


def rounded(q, name, direction):
    """The number of a float type, as float64, that a fraction other than 0 is rounded to."""
    bits, least, top = PRECISION[name]
    size = abs(q)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= size < Fraction(2) ** exponent
    unit = Fraction(2) ** max(exponent + 1 - bits, least)
    result = whole(q / unit, direction) * unit
    if abs(result) >= 2**top:
        # As if there were no end of exponents, but for the numbers that there are.
        stays = {"rn": False, "rz": True, "rd": q > 0, "ru": q < 0}[direction]
        result = 2 ** (top - bits) * (2**bits - 1) if stays else math.inf
    return math.copysign(float(result), 1 if q > 0 else -1)


# ---- conversions ----------------------------------------------------------------------------------

WORDS = {
    "float": "float32", "double": "float64", "int": "int32", "uint": "uint32", "ll": "int64",
    "ull": "uint64",
}  # fmt: skip
TO_INTEGERS = ["float2int", "float2uint", "float2ll", "float2ull", "double2int", "double2uint",
               "double2ll", "double2ull"]  # fmt: skip
TO_FLOATS = ["int2float", "uint2float", "ll2float", "ull2float", "int2double", "uint2double",
             "ll2double", "ull2double", "double2float"]  # fmt: skip


def types(name):
    a, b = name.split("2")
    return WORDS[a], WORDS[b]


def in_every_direction(name, to, inputs):
    """The four results of a name, by direction."""
    arguments = ", ".join(inputs)
    body = "\n".join(f"{d} = libdevice.{name}_{d}({arguments})" for d in DIRECTIONS)
    shape = inputs["x"].shape
    results = tiles(body, inputs, names=NAMES, **{d: (to, shape) for d in DIRECTIONS})
    return zip(DIRECTIONS, results)


def halves(name, to):
    """Numbers between integers and at the ends of an integer type."""
    t = TYPES[to]
    ends = [float(t.low), float(t.high)]
    near = [np.nextafter(np.dtype(name).type(e), d) for e in ends for d in (-np.inf, np.inf)]
    steps = np.arange(-41, 42) / 4
    return np.concatenate(
        [steps, ends, near, steps[1::2] * 2**20, [4194303.5, -0.0, 1e-30, -1e-30, 0.49999997]]
    ).astype(name)


@pytest.mark.parametrize("name", TO_INTEGERS)
def test_floats_to_integers(name):
    a, b = types(name)
    x = np.concatenate([samples(a, 400), halves(a, b)])
    x = x[~np.isnan(x)]
    low, high = TYPES[b].low, TYPES[b].high
    for direction, got in in_every_direction(name, b, {"x": x}):
        # What is out of range, infinities among it, saturates.
        want = [
            (high if v > 0 else low) if math.isinf(v)
            else min(max(whole(Fraction(v), direction), low), high)
            for v in x.tolist()
        ]  # fmt: skip
        same(got, np.array(want, b))


@pytest.mark.parametrize("name", ["float2int", "float2uint"])
def test_a_nan_is_zero_as_an_integer_of_32_bits(name):
    x = np.array([np.nan, -np.nan, 1, 2], np.float32)
    for _, got in in_every_direction(name, types(name)[1], {"x": x}):
        assert got.tolist() == [0, 0, 1, 2]


def ties(a, b):
    """Integers about those in the middle between two numbers of a float type."""
    t, bits = TYPES[a], PRECISION[b][0]
    rows = [t.low, t.high, t.high // 2, t.high // 2 + 1]
    for shift in range(1, t.bits - bits + 1):
        for odd in (2 ** (bits - 1), 2 ** (bits - 1) + 1, 2**bits - 1):
            middle = (2 * odd + 1) << (shift - 1)
            rows += [s * (middle + d) for s in (1, -1) for d in (-1, 0, 1)]
    return np.array([v for v in rows if t.low <= v <= t.high], a)


@pytest.mark.parametrize("name", TO_FLOATS)
def test_numbers_to_floats(name):
    a, b = types(name)
    x = samples(a, 400)
    if a == "float64":
        # Those about float32 as well: middles, the ends of the range, what is too small for it.
        y = samples("float32", 200, seed=3)
        y = y[np.isfinite(y)].astype(np.float64)
        ends = [2.0**128 - 2.0**103, 2.0**128 - 2.0**104, 2.0**-150, 3 * 2.0**-150, 2.0**-160]
        x = np.concatenate([x, y, y * (1 + 2.0**-30), y * (1 - 2.0**-40), ends, -np.array(ends)])
    else:
        x = np.concatenate([x, ties(a, b)])
    for direction, got in in_every_direction(name, b, {"x": x}):
        want = [rounded(Fraction(v), b, direction) if v and abs(v) < math.inf else float(v)
                for v in x.tolist()]  # fmt: skip
        same(got, np.array(want).astype(b))


def test_what_conversions_take():
    for name in TO_INTEGERS + TO_FLOATS:
        a, _ = types(name)
        other = {"float32": "float64", "float64": "float32", "int32": "uint32"}.get(a, "int32")
        for wrong in (other, "float16", "int8"):
            message = f"`tl.libdevice.{name}_rz` wants {a}, not {wrong}"
            refused(f"tl.extra.libdevice.{name}_rz(x)", "type-mismatch", message, x=wrong)


def test_literals_and_scalars_are_converted():
    assert value("libdevice.float2int_ru(2.25)", "int32", names=NAMES) == 3
    assert value("libdevice.int2float_rz(16777217)", "float32", names=NAMES) == 16777216
    x = np.float64(-2.5)
    assert value("libdevice.double2ll_rn(x)", "int64", inputs={"x": x}, names=NAMES) == -2


# ---- arithmetic -----------------------------------------------------------------------------------


def root(q):
    """The square root, or a fraction that is rounded as it is."""
    scaled = q.numerator * q.denominator << 400
    low = math.isqrt(scaled)
    # A root of a number of n bits that is none of n bits lies on no middle either.
    return Fraction(2 * low + (low * low != scaled), q.denominator << 201)


EXACT = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "rcp": lambda x: 1 / x,
    "sqrt": root,
    "fma": lambda x, y, z: x * y + z,
}
# In float64, for what no fraction is: infinities, NaN and zeros.
SPECIAL = {**EXACT, "sqrt": np.sqrt}


def arithmetic(operation, arguments, name, direction):
    plain = [float(v) for v in arguments]
    if all(map(math.isfinite, plain)):
        try:
            q = EXACT[operation](*map(Fraction, plain))
            if q and not (operation == "sqrt" and plain[0] < 0):
                return rounded(q, name, direction)
        except (ZeroDivisionError, ValueError):
            pass
        if operation in ("add", "sub", "fma"):
            # Of numbers that cancel, or of zeros.
            x, y = (plain[0] * plain[1], plain[2]) if operation == "fma" else plain
            y = -y if operation == "sub" else y
            if x or y or math.copysign(1, x) != math.copysign(1, y):
                return -0.0 if direction == "rd" else 0.0
            return x
    with np.errstate(all="ignore"):
        return float(SPECIAL[operation](*map(np.float64, plain)))


def operands(name, n):
    corners = samples(name, 24)
    # Near to each other, so that sums cancel and quotients are short.
    rng = np.random.default_rng(5)
    near = (1 + rng.integers(-40, 40, 300) * 2.0**-22) * np.exp2(rng.integers(-30, 30, 300))
    far = samples(name, 400, seed=4)[24:]
    cross = [np.array(c, name) for c in zip(*itertools.product(corners, repeat=min(n, 2)))]
    rows = [
        np.concatenate([c, rng.permutation(near).astype(name), rng.permutation(far), near.astype(name)])
        for c in (cross if n < 3 else [*cross, np.resize(corners[::-1], cross[0].shape)])
    ]  # fmt: skip
    if n == 3:
        # Products that the third nearly cancels.
        with np.errstate(all="ignore"):
            rows[2][-300:] = -(rows[0][-300:] * rows[1][-300:])
    return rows


ARITY = {"add": 2, "sub": 2, "mul": 2, "div": 2, "rcp": 1, "sqrt": 1, "fma": 3}


@pytest.mark.parametrize("operation", ARITY)
def test_arithmetic_of_float32(operation):
    columns = operands("float32", ARITY[operation])
    rows = list(zip(*columns))
    inputs = dict(zip("xyz", columns))
    for direction, got in in_every_direction(operation, "float32", inputs):
        want = [arithmetic(operation, row, "float32", direction) for row in rows]
        same(got, np.array(want).astype(np.float32))


@pytest.mark.parametrize("operation", ["add", "sub", "mul", "div", "rcp", "sqrt", "fma"])
def test_arithmetic_of_float64_to_nearest(operation):
    columns = operands("float64", ARITY[operation])
    want = [arithmetic(operation, row, "float64", "rn") for row in zip(*columns)]
    inputs = dict(zip("xyz", columns))
    call = f"libdevice.{operation}_rn({', '.join(inputs)})"
    same(value(call, "float64", inputs=inputs, names=NAMES), np.array(want))


def test_what_arithmetic_takes():
    for operation, n in ARITY.items():
        arguments = ", ".join("x" * n)
        for direction in DIRECTIONS[1:]:
            call = f"tl.extra.libdevice.{operation}_{direction}({arguments})"
            for wrong in ("float64", "float16", "int32"):
                refused(call, "type-mismatch", f"wants float32, not {wrong}", x=wrong)
        call = f"tl.extra.libdevice.{operation}_rn({arguments})"
        for wrong in ("int32", "float16") if operation != "fma" else ("int32",):
            refused(call, "type-mismatch", "wants float", x=wrong)


def test_arithmetic_broadcasts():
    x, y = samples("float32", 40)[24:], samples("float32", 32)[24:, None]
    inputs = {"x": x, "y": y}
    want = [[arithmetic("mul", (a, b), "float32", "rd") for a in x] for b in y[:, 0]]
    call = "libdevice.mul_rd(arg0=x, arg1=y)"
    same(value(call, "float32", (8, 16), inputs, names=NAMES), np.array(want, np.float32))
    want = [arithmetic("fma", (a, np.float32(0.1), 3), "float32", "ru") for a in x]
    got = value("libdevice.fma_ru(x, 0.1, 3)", "float32", inputs={"x": x}, names=NAMES)
    same(got, np.array(want, np.float32))


def test_fast_dividef_is_the_quotient():
    x, y = operands("float32", 2)
    with np.errstate(all="ignore"):
        want = x / y
    got = value("libdevice.fast_dividef(x, y)", "float32", inputs={"x": x, "y": y}, names=NAMES)
    same(got, want)
    refused("tl.extra.libdevice.fast_dividef(x, x)", "type-mismatch", "float32", x="float64")


@np.errstate(all="ignore")
def test_rsqrt_rn():
    (x,) = operands("float32", 1)
    want = [
        rounded(root(1 / Fraction(v)), "float32", "rn") if 0 < v < math.inf
        else float(1 / np.sqrt(np.float64(v)))
        for v in x.tolist()
    ]  # fmt: skip
    want = np.array(want).astype(np.float32)
    same(value("libdevice.rsqrt_rn(x)", "float32", inputs={"x": x}, names=NAMES), want)
    refused("tl.extra.libdevice.rsqrt_rn(x)", "type-mismatch", "float32", x="float64")


def test_rcp64h_is_the_high_word_of_the_reciprocal():
    (x,) = operands("float64", 1)
    with np.errstate(all="ignore"):
        want = 1 / x
    want = (want.view(np.uint64) & np.uint64(0xFFFFFFFF00000000)).view(np.float64)
    same(value("libdevice.rcp64h(x)", "float64", inputs={"x": x}, names=NAMES), want)
    refused("tl.extra.libdevice.rcp64h(x)", "type-mismatch", "float64", x="float32")


# ---- to integers that stay floats -----------------------------------------------------------------

INTEGRAL = {"nearbyint": "rn", "rint": "rn", "round": "away", "trunc": "rz"}


@pytest.mark.parametrize("name", ["float32", "float64"])
@pytest.mark.parametrize("function", INTEGRAL)
def test_integral_values(function, name):
    x = np.concatenate([samples(name, 600), halves(name, "int32"), halves(name, "int64")])
    want = [
        math.copysign(whole(Fraction(v), INTEGRAL[function]), v) if math.isfinite(v) else v
        for v in x.tolist()
    ]
    got = value(f"libdevice.{function}(x)", name, inputs={"x": x}, names=NAMES)
    same(got, np.array(want).astype(name))


@pytest.mark.parametrize("name", ["float32", "float64"])
@pytest.mark.parametrize("function, direction", [("llrint", "rn"), ("llround", "away")])
def test_to_int64(function, direction, name):
    x = np.concatenate([samples(name, 400), halves(name, "int32"), halves(name, "int64")])
    x = x[np.isfinite(x)]
    low, high = TYPES["int64"].low, TYPES["int64"].high
    want = [min(max(whole(Fraction(v), direction), low), high) for v in x.tolist()]
    got = value(f"libdevice.{function}(x)", "int64", inputs={"x": x}, names=NAMES)
    same(got, np.array(want, np.int64))


@pytest.mark.parametrize("function", [*INTEGRAL, "llrint", "llround"])
def test_what_is_brought_to_integers(function):
    for wrong in ("float16", "bfloat16", "int32", "int1"):
        refused(f"tl.extra.libdevice.{function}(x)", "type-mismatch", "wants float32", x=wrong)
    compiles(f"tl.extra.libdevice.{function}(x)", x="float64[4, 2]")
