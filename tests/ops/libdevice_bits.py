"""`libdevice` on integers and on the parts of floats: bits, means, predicates, exponents, images."""

import math
import struct

import numpy as np
import pytest

from naiad.language.extra import libdevice

from ._common import SIZES, refused, same, value
from ._numbers import TYPES, crossed, samples, wrap

COVERS = [
    "libdevice.brev", "libdevice.clz", "libdevice.ffs", "libdevice.popc", "libdevice.byte_perm",
    "libdevice.hadd", "libdevice.rhadd", "libdevice.mul24", "libdevice.mulhi", "libdevice.sad",
    "libdevice.isnan", "libdevice.isinf", "libdevice.finitef", "libdevice.isfinited",
    "libdevice.signbit", "libdevice.ilogb", "libdevice.logb", "libdevice.copysign",
    "libdevice.nextafter", "libdevice.ldexp", "libdevice.scalbn", "libdevice.float_as_int",
    "libdevice.float_as_uint", "libdevice.int_as_float", "libdevice.uint_as_float",
    "libdevice.double_as_longlong", "libdevice.longlong_as_double", "libdevice.double2hiint",
    "libdevice.double2loint", "libdevice.hiloint2double",
]  # fmt: skip

NAMES = {"libdevice": libdevice}
WIDE = ["int32", "uint32", "int64", "uint64"]


def of(call, dtype, shape=None, **inputs):
    return value(f"libdevice.{call}", dtype, shape, inputs, names=NAMES)


# ---- integers -------------------------------------------------------------------------------------

# Of the bits as an unsigned integer, and how many there are.
BITS = {
    "brev": lambda x, bits: int(f"{x:0{bits}b}"[::-1], 2),
    "clz": lambda x, bits: bits - x.bit_length(),
    "ffs": lambda x, bits: (x & -x).bit_length(),
    "popc": lambda x, bits: bin(x).count("1"),
}


@pytest.mark.parametrize("name", WIDE)
@pytest.mark.parametrize("function", BITS)
def test_bits(function, name):
    bits = TYPES[name].bits
    x = np.concatenate([samples(name, 500), wrap(name, [1 << i for i in range(bits)])])
    want = [BITS[function](v % 2**bits, bits) for v in x.tolist()]
    to = name if function == "brev" else "int32"
    same(of(f"{function}(x)", to, x=x), wrap(to, want))


def low24(v, signed):
    v %= 2**24
    return v - 2**24 if signed and v >= 2**23 else v


def product_of_24_bits(x, y, t):
    return low24(x, t.low < 0) * low24(y, t.low < 0)


# In integers without end, brought to the type's width afterwards.
PAIRS = {
    "hadd": lambda x, y, t: (x + y) >> 1,
    "rhadd": lambda x, y, t: (x + y + 1) >> 1,
    "mul24": product_of_24_bits,
    "mulhi": lambda x, y, t: x * y >> t.bits,
}


@pytest.mark.parametrize(
    "function, name",
    [(f, name) for f in PAIRS for name in (WIDE if f == "mulhi" else WIDE[:2])],
)
def test_pairs_of_integers(function, name):
    x, y = crossed(name, name, 40)
    want = [PAIRS[function](u, v, TYPES[name]) for u, v in zip(x.tolist(), y.tolist())]
    same(of(f"{function}(x, y)", name, x=x, y=y), wrap(name, want))
    same(of(f"{function}(arg0=y, arg1=x)", name, x=x, y=y), wrap(name, want))


@pytest.mark.parametrize("name", ["int32", "uint32"])
def test_sad(name):
    x, y = crossed(name, name, 40)
    z = np.resize(samples("uint32", 301, seed=2), x.shape)
    want = wrap(name, [abs(u - v) + w for u, v, w in zip(x.tolist(), y.tolist(), z.tolist())])
    same(of("sad(x, y, z)", name, x=x, y=y, z=z), want)
    at = int(z[5])
    want = wrap(name, [abs(u - v) + at for u, v in zip(x.tolist(), y.tolist())])
    same(of(f"sad(x, y, {at})", name, x=x, y=y), want)


@pytest.mark.parametrize("name", ["int32", "uint32"])
def test_byte_perm(name):
    x, y = crossed(name, name, 32)
    # Above the three bits of a place, the selector's are ignored.
    s = np.resize(np.concatenate([samples(name, 401), wrap(name, [0x3210, 0x7654, 0x0123])]), x.shape)
    want = []
    for u, v, w in zip(x.tolist(), y.tolist(), s.tolist()):
        eight = struct.pack("<II", u % 2**32, v % 2**32)
        want.append(int.from_bytes([eight[w >> 4 * i & 7] for i in range(4)], "little"))
    same(of("byte_perm(x, y, s)", name, x=x, y=y, s=s), wrap(name, want))
    u = wrap(name, [0x33221100])
    assert of("byte_perm(u, 0x77665544, 0x7531)", name, u=u)[0] == 0x77553311


def test_integers_of_two_types_promote_and_broadcast():
    x, y = samples("int32", 16), samples("int64", 8)[:, None]
    want = [[int(u) * int(v) >> 64 for u in x] for v in y[:, 0]]
    same(of("mulhi(x, y)", "int64", (8, 16), x=x, y=y), wrap("int64", want))
    x, y = samples("int32", 16), samples("uint32", 8)[:, None]
    want = [[(int(u) % 2**32 + int(v)) >> 1 for u in x] for v in y[:, 0]]
    same(of("hadd(x, y)", "uint32", (8, 16), x=x, y=y), wrap("uint32", want))
    assert of("popc(255)", "int32") == 8
    assert of("clz(n)", "int32", n=np.int64(1)) == 63
    refused("tl.extra.libdevice.hadd(x, y)", "shape-mismatch", x="int32[8]", y="int32[4]")


@pytest.mark.parametrize("function", [*BITS, "mulhi"])
def test_integers_of_which_width(function):
    call = f"tl.extra.libdevice.{function}({'x, x' if function == 'mulhi' else 'x'})"
    for wrong in ("int8", "uint16", "int1", "float32", "float64"):
        message = f"`tl.libdevice.{function}` wants int32, int64, uint32 or uint64, not {wrong}"
        refused(call, "type-mismatch", message, x=wrong)


@pytest.mark.parametrize("function", ["hadd", "rhadd", "mul24", "sad", "byte_perm"])
def test_integers_of_32_bits_only(function):
    arguments = "x, x, x" if function in ("sad", "byte_perm") else "x, x"
    call = f"tl.extra.libdevice.{function}({arguments})"
    for wrong in ("int64", "uint64", "int16", "float32"):
        message = f"`tl.libdevice.{function}` wants int32 or uint32, not {wrong}"
        refused(call, "type-mismatch", message, x=wrong)


@pytest.mark.parametrize("n", SIZES)
def test_odd_sizes_and_views(n):
    x = np.resize(samples("int32", 256), 3 * n)
    for view in (x[::3], x[n::-1], x[1 : n + 1]):
        want = [bin(v % 2**32).count("1") for v in view.tolist()]
        same(of("popc(x)", "int32", x=view), np.array(want, np.int32))


# ---- parts of floats ------------------------------------------------------------------------------

PREDICATES = {
    "isnan": (np.isnan, ["float32", "float64"]),
    "isinf": (np.isinf, ["float32", "float64"]),
    "finitef": (np.isfinite, ["float32"]),
    "isfinited": (np.isfinite, ["float64"]),
}


@pytest.mark.parametrize("function", PREDICATES)
def test_predicates(function):
    f, accepted = PREDICATES[function]
    for name in ("float32", "float64"):
        if name in accepted:
            x = samples(name, 600)
            same(of(f"{function}(x)", "int1", x=x), f(x))
        else:
            refused(f"tl.extra.libdevice.{function}(x)", "type-mismatch", "wants float", x=name)
    for wrong in ("float16", "int32", "int1"):
        refused(f"tl.extra.libdevice.{function}(x)", "type-mismatch", "wants float", x=wrong)


def test_predicates_serve_as_conditions():
    x = samples("float32", 64)
    call = "tl.where(libdevice.isnan(x) | libdevice.isinf(x), 0.0, x)"
    want = np.where(np.isfinite(x), x, np.float32(0))
    same(value(call, "float32", inputs={"x": x}, names=NAMES), want)


@pytest.mark.parametrize("name", ["float32", "float64"])
def test_signs_and_exponents(name):
    x = samples(name, 600)
    same(of("signbit(x)", "int32", x=x), np.signbit(x).astype(np.int32))
    least, greatest = -(2**31), 2**31 - 1
    exponents = [
        math.frexp(v)[1] - 1 if v and math.isfinite(v) else greatest if abs(v) > 0 else least
        for v in x.tolist()
    ]
    # Of 0 and NaN the least integer.
    same(of("ilogb(x)", "int32", x=x), np.array(exponents, np.int32))
    want = [
        float(e) if abs(e) < 2**20 else -math.inf if v == 0 else abs(v)
        for e, v in zip(exponents, x.tolist())
    ]
    same(of("logb(x)", name, x=x), np.array(want).astype(name))


@pytest.mark.parametrize("name", ["float32", "float64"])
@pytest.mark.parametrize("function", ["copysign", "nextafter"])
def test_pairs_of_floats(function, name):
    x, y = crossed(name, name, 64)
    with np.errstate(all="ignore"):
        want = getattr(np, function)(x, y)
    got = of(f"{function}(x, y)", name, x=x, y=y)
    same(got, want)
    if function == "copysign":
        # Of a NaN too.
        assert (np.signbit(got) == np.signbit(y)).all()


@pytest.mark.parametrize("name", ["float32", "float64"])
@pytest.mark.parametrize("function", ["ldexp", "scalbn"])
def test_powers_of_two(function, name):
    x = np.repeat(samples(name, 64), 24)
    n = [0, 1, -1, 24, -24, 100, -100, 127, -126, -149, 150, 277, -300, 1000, -1000, 1023, -1074,
         2100, -2200, 2**24 + 1, 2**31 - 1, -(2**31), 53, -1022]  # fmt: skip
    n = np.tile(np.array(n, np.int32), 64)
    with np.errstate(all="ignore"):
        want = np.ldexp(x, n)
    same(of(f"{function}(x, n)", name, x=x, n=n), want)
    small = np.array([-7, 3, 0, 11], np.int8)[:, None]
    x = samples(name, 32)
    with np.errstate(all="ignore"):
        same(of(f"{function}(x, n)", name, (4, 32), x=x, n=small), np.ldexp(x, small))
        same(of(f"{function}(x, -3)", name, x=x), np.ldexp(x, -3))
    for wrong in ("int64", "float32"):
        call = f"tl.extra.libdevice.{function}(x, n)"
        refused(call, "type-mismatch", f"wants int32, not {wrong}", x=name, n=wrong)


@pytest.mark.parametrize("function", ["signbit", "ilogb", "logb", "copysign", "nextafter", "ldexp"])
def test_parts_of_other_types_are_refused(function):
    more = {"copysign": ", x", "nextafter": ", x", "ldexp": ", 1"}.get(function, "")
    for wrong in ("float16", "bfloat16", "int32"):
        call = f"tl.extra.libdevice.{function}(x{more})"
        refused(call, "type-mismatch", "wants float32", x=wrong)


# ---- images ---------------------------------------------------------------------------------------

IMAGES = {
    "float_as_int": ("float32", "int32"), "float_as_uint": ("float32", "uint32"),
    "int_as_float": ("int32", "float32"), "uint_as_float": ("uint32", "float32"),
    "double_as_longlong": ("float64", "int64"), "longlong_as_double": ("int64", "float64"),
}  # fmt: skip


@pytest.mark.parametrize("function", IMAGES)
def test_images(function):
    a, b = IMAGES[function]
    x = samples(a, 600)
    got = of(f"{function}(x)", b, x=x)
    # A NaN keeps its bits.
    assert got.tobytes() == x.tobytes()
    for wrong in {"float32", "float64", "int32", "uint32", "int64", "float16"} - {a}:
        message = f"`tl.libdevice.{function}` wants {a}, not {wrong}"
        refused(f"tl.extra.libdevice.{function}(x)", "type-mismatch", message, x=wrong)


def test_halves_of_a_double():
    x = samples("float64", 600)
    words = x.view(np.int32)
    low, high = words[::2].copy(), words[1::2].copy()
    same(of("double2hiint(x)", "int32", x=x), high)
    same(of("double2loint(x)", "int32", x=x), low)
    for name in ("int32", "uint32"):
        got = of("hiloint2double(h, l)", "float64", h=high.view(name), l=low.view(name))
        assert got.tobytes() == x.tobytes()
    assert of("hiloint2double(0x3ff00000, l)", "float64", (1,), l=np.zeros(1, np.int32))[0] == 1.0
    for function in ("double2hiint", "double2loint"):
        refused(f"tl.extra.libdevice.{function}(x)", "type-mismatch", "float64", x="float32")
    refused("tl.extra.libdevice.hiloint2double(x, x)", "type-mismatch", "int32", x="int64")
