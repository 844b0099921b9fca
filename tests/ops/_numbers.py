"""The scalar types, and an oracle of their values that shares nothing with Naiad.

The values of the formats of 8 and 16 bits are tables made from their definitions; rounding looks for
the neighbours in the sorted table and compares with their midpoint, all of which float64 holds
exactly.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np


@dataclass(frozen=True)
class Typed:
    """An array whose elements a kernel is to see as another type than NumPy's."""

    name: str
    array: np.ndarray


@dataclass(frozen=True)
class Type:
    name: str
    short: str
    storage: np.dtype
    kind: str  # "bool", "int", "uint" or "float"
    bits: int
    # Of floats of at most 16 bits.
    mantissa: int = 0
    bias: int = 0
    top: int = 0  # the image of the largest finite value
    inf: bool = False
    nan: str = ""  # which images are NaN: "ieee", "all ones", "negative zero" or none

    @property
    def is_float(self):
        return self.kind == "float"

    @property
    def is_int(self):
        return not self.is_float

    @property
    def is_fp8(self):
        return self.is_float and self.bits == 8

    @property
    def low(self):
        return -(1 << (self.bits - 1)) if self.kind == "int" else 0

    @property
    def high(self):
        return (1 << (self.bits - (self.kind == "int"))) - 1

    @cached_property
    def values(self):
        """The value of each image of a float of at most 16 bits."""
        images = np.arange(1 << self.bits)
        sign = np.where(images >> (self.bits - 1), -1.0, 1.0)
        magnitude = images & ((1 << (self.bits - 1)) - 1)
        exponent, fraction = magnitude >> self.mantissa, magnitude & ((1 << self.mantissa) - 1)
        normal = exponent > 0
        significand = fraction + normal * (1 << self.mantissa)
        scale = np.where(normal, exponent, 1) - self.bias - self.mantissa
        values = sign * np.ldexp(significand.astype(np.float64), scale)
        infinity = ((1 << (self.bits - 1 - self.mantissa)) - 1) << self.mantissa
        if self.nan == "ieee":
            values[magnitude == infinity] = np.copysign(np.inf, sign)[magnitude == infinity]
            values[magnitude > infinity] = np.nan
        elif self.nan == "all ones":
            values[magnitude > self.top] = np.nan
        elif self.nan == "negative zero":
            values[1 << (self.bits - 1)] = np.nan
        else:
            # What would be the largest value is read as the one below.
            values[magnitude > self.top] = (sign * values[self.top])[magnitude > self.top]
        return values

    @cached_property
    def ladder(self):
        """The finite values from 0 up, in the order of their images."""
        return self.values[: self.top + 1]


def _float(name, short, storage, bits, mantissa, bias, nan="ieee", top=None):
    infinity = ((1 << (bits - 1 - mantissa)) - 1) << mantissa
    top = infinity - 1 if top is None else top
    return Type(
        name, short, np.dtype(storage), "float", bits, mantissa, bias, top, nan == "ieee", nan
    )


TYPES = {
    t.name: t
    for t in [
        Type("int1", "i1", np.dtype(np.bool_), "bool", 1),
        *[Type(f"int{b}", f"i{b}", np.dtype(f"i{b // 8}"), "int", b) for b in (8, 16, 32, 64)],
        *[Type(f"uint{b}", f"u{b}", np.dtype(f"u{b // 8}"), "uint", b) for b in (8, 16, 32, 64)],
        _float("float16", "fp16", np.float16, 16, 10, 15),
        _float("bfloat16", "bf16", np.uint16, 16, 7, 127),
        Type("float32", "fp32", np.dtype(np.float32), "float", 32),
        Type("float64", "fp64", np.dtype(np.float64), "float", 64),
        _float("float8e5", "fp8e5", np.uint8, 8, 2, 15),
        _float("float8e4nv", "fp8e4nv", np.uint8, 8, 3, 7, "all ones", 0x7E),
        _float("float8e4b15", "fp8e4b15", np.uint8, 8, 3, 15, "", 0x7E),
        _float("float8e5b16", "fp8e5b16", np.uint8, 8, 2, 16, "negative zero", 0x7F),
        _float("float8e4b8", "fp8e4b8", np.uint8, 8, 3, 8, "negative zero", 0x7F),
    ]
}

INTS = [name for name, t in TYPES.items() if t.kind in ("int", "uint")]
SIGNED = [name for name, t in TYPES.items() if t.kind == "int"]
UNSIGNED = [name for name, t in TYPES.items() if t.kind == "uint"]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
FP8 = [name for name, t in TYPES.items() if t.is_fp8]
ALL = list(TYPES)


def kind(dtype):
    """The type that NumPy's dtype is."""
    return "int1" if dtype == np.bool_ else np.dtype(dtype).name


def decode(name, array):
    """The values as float64, or as integers of the array's own type."""
    t = TYPES[name]
    if t.is_float and t.bits <= 16:
        return t.values[array.view(f"u{t.bits // 8}").astype(np.intp)]
    with np.errstate(invalid="ignore"):
        return array.astype(np.float64) if t.is_float else array


def exact(name, array):
    """The values as float64, rounded to odd where it cannot hold them.

    A second rounding to at most 51 bits then gives what one rounding gives.
    """
    values = decode(name, array)
    if TYPES[name].bits < 64 or TYPES[name].is_float:
        return values.astype(np.float64)
    large = (values >= 2**53) | (values < -(2**53) if TYPES[name].kind == "int" else False)
    cut = (values >> 11) << 11
    odd = cut | ((values != cut).astype(values.dtype) << 11)
    return np.where(large, odd, values).astype(np.float64)


def encode(name, values, toward_zero=False):
    """Images of float64 values in a float type; too large ones become infinity, in fp8 the largest."""
    t = TYPES[name]
    values = np.asarray(values, np.float64)
    if t.bits == 64:
        return values
    if t.bits == 32:
        with np.errstate(all="ignore"):
            out = values.astype(np.float32)
            beyond = np.abs(out.astype(np.float64)) > np.abs(values)
            down = np.nextafter(out, np.float32(0)) if toward_zero else out
        return np.where(beyond, down, out)
    ladder, size = t.ladder, np.abs(values)
    saturates = t.bits == 8 or toward_zero
    # One more step above the largest, from whose half on values would go to infinity.
    beyond = 2 * ladder[-1] - ladder[-2]
    below = np.searchsorted(ladder, size, side="right") - 1
    below = np.where(np.isnan(values), 0, below)
    above = np.append(ladder[1:], beyond)[below]
    middle = ladder[below] / 2 + above / 2
    up = (size > middle) | ((size == middle) & (below % 2 == 1))
    image = below + (up & (not toward_zero))
    infinity = t.top + 1 if t.inf else t.top
    image = np.where(image > t.top, t.top if saturates else infinity, image)
    image = np.where(np.isinf(values), infinity if t.bits > 8 else t.top, image)
    sign = np.signbit(values).astype(np.int64)
    if t.nan == "negative zero":
        sign = np.where(image == 0, 0, sign)
    nan = {"ieee": t.top + 2, "all ones": t.top + 1, "negative zero": 0, "": t.top}[t.nan]
    image = np.where(np.isnan(values), nan, image)
    sign = np.where(np.isnan(values) & (t.nan == "negative zero"), 1, sign)
    images = np.asarray(image | sign << (t.bits - 1)).astype(f"u{t.bits // 8}")
    return images.view(t.storage)


def array(name, values):
    """An array of the type with these values, as the package takes it."""
    t = TYPES[name]
    if t.is_float:
        return encode(name, np.asarray(values, np.float64))
    return (
        np.array([int(v) & ((1 << t.bits) - 1) for v in np.ravel(values)], dtype=object)
        .astype(f"u{max(t.bits // 8, 1)}")
        .view(t.storage)
        .reshape(np.shape(values))
    )


def typed(name, values):
    return Typed(name, array(name, values))


def bits_equal(name, a, b):
    """Which elements have the same bits, or are both NaN."""
    t = TYPES[name]
    if t.is_int:
        return a == b
    unsigned = f"u{t.bits // 8}"
    b = np.ascontiguousarray(b.astype(t.storage, copy=False))
    same = np.ascontiguousarray(a).view(unsigned) == b.view(unsigned)
    return same | (np.isnan(decode(name, a)) & np.isnan(decode(name, b)))


def wrap(name, values):
    """Integers modulo the width of the type."""
    t = TYPES[name]
    values = np.asarray(np.frompyfunc(int, 1, 1)(np.asarray(values, object)), object)
    return np.asarray(((values - t.low) & ((1 << t.bits) - 1)) + t.low).astype(t.storage)


def samples(name, n=256, seed=0):
    """Values of the type, its corners first."""
    t = TYPES[name]
    rng = np.random.default_rng([seed, len(name), t.bits])
    if t.kind == "bool":
        corners = np.array([False, True])
    elif t.is_int:
        corners = [0, 1, 2, 3, 5, 7, t.high, t.high - 1, t.low, t.low + 1, t.high // 2, t.high // 3]
        corners = array(name, [*corners, *([-1, -2, -3, -7] if t.low else [])])
    else:
        top = {32: np.finfo(np.float32).max, 64: np.finfo(np.float64).max}.get(t.bits)
        tiny = {32: 2.0**-149, 64: 5e-324}.get(t.bits)
        top, tiny = (t.ladder[-1], t.ladder[1]) if top is None else (top, tiny)
        corners = [0.0, 1.0, 0.5, 1.5, 2.0, 3.0, 1 / 3, tiny, top, 3 * tiny, np.inf, np.nan]
        corners = encode(name, [s * c for c in corners for s in (1, -1)])
    if n <= len(corners):
        return corners[:n].copy()
    if t.kind == "bool":
        rest = rng.integers(0, 2, n - 2).astype(np.bool_)
    elif t.is_float and t.bits > 8:
        # Half of them of moderate size, where most kernels live; half of any bits.
        rest = encode(name, rng.standard_normal(n - len(corners)) * 4)
        raw = rng.integers(0, 256, rest.nbytes).astype(np.uint8).view(rest.dtype)
        rest = np.where(np.arange(len(rest)) % 2, raw, rest).astype(rest.dtype)
    else:
        rest = rng.integers(0, 256, (n - len(corners)) * t.storage.itemsize).astype(np.uint8)
        rest = rest.view(t.storage)
    return np.concatenate([corners, rest])


def crossed(a, b, n=32):
    """Every pair of some values of two types."""
    x, y = samples(a, n), samples(b, n, seed=1)
    return np.repeat(x, len(y)), np.tile(y, len(x))


def common(a, b, divides=False):
    """The type in which an operator on run-time values of two types computes; None if in none."""
    s, t = TYPES[a], TYPES[b]
    either = {a, b}
    if "float64" in either:
        return "float64"
    if (divides and (s.is_float or t.is_float)) or "float32" in either:
        return "float32"
    if "float16" in either:
        return "float16"
    if "bfloat16" in either:
        return "bfloat16" if a == b else "float32"
    if s.is_fp8 and t.is_fp8:
        return a if a == b else "float16"
    if s.is_fp8 or t.is_fp8:
        return None
    signed = [x for x in (s, t) if x.kind == "int"]
    if len(signed) != 1:
        return max(s, t, key=lambda x: x.bits).name
    if divides:
        return None
    unsigned = t if signed[0] is s else s
    return unsigned.name if unsigned.bits >= signed[0].bits else signed[0].name
