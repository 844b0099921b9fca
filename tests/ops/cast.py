"""`tl.cast` and `.to`: every pair of types against tables of values, rounding modes, bitcasts."""

import numpy as np
import pytest

from ._common import define, refused, same, tiles, value
from ._numbers import (
    ALL,
    FLOATS,
    FP8,
    INTS,
    TYPES,
    Typed,
    decode,
    encode,
    exact,
    samples,
    typed,
    wrap,
)

COVERS = ["cast", "to"]


def inputs(source, target):
    """All images of a type of at most 16 bits; else samples, with the midpoints of the target."""
    s, t = TYPES[source], TYPES[target]
    if s.kind == "bool":
        return np.array([False, True])
    if s.bits <= 16:
        return np.arange(1 << s.bits).astype(f"u{s.bits // 8}").view(s.storage)
    out = [samples(source, 4096)]
    if s.is_float and t.is_float and t.bits <= 16:
        middles = t.ladder[:-1] / 2 + t.ladder[1:] / 2
        edge = 1.5 * t.ladder[-1] - 0.5 * t.ladder[-2]
        near = encode(source, np.concatenate([t.ladder, middles, [edge]]))
        out += [f(near) for f in (np.positive, np.negative)]
        with np.errstate(over="ignore"):
            out += [np.nextafter(near, near.dtype.type(end)) for end in (-np.inf, np.inf)]
    if s.is_int and t.is_float:
        # Integers around every power of two, where the rounding changes its step.
        powers = [(1 << k) + d for k in range(2, s.bits) for d in (-3, -2, -1, 0, 1, 2, 3)]
        powers += [
            (1 << k) + (1 << (k - m)) + d
            for k in range(12, s.bits)
            for m in (4, 8, 11)
            for d in (-1, 0, 1)
        ]
        out.append(wrap(source, powers))
    if s.is_float and t.is_int:
        ends = [e + d for e in (t.low, t.high) for d in (-1.5, -1, -0.5, 0, 0.5, 1)]
        out.append(encode(source, ends))
    return np.concatenate(out)


def expected(source, target, x):
    """The values after the cast, and which of them the language defines."""
    s, t = TYPES[source], TYPES[target]
    every = np.ones(x.shape, bool)
    if source == target:
        return x, every
    if t.kind == "bool":
        return decode(source, x) != 0, every
    if t.is_float:
        if s.is_int and t.bits >= 32:
            # NumPy rounds once, as the machine does.
            return x.astype(t.storage), every
        values = exact(source, x)
        # A format without NaN has nothing to make of one.
        return encode(target, values), ~np.isnan(values) if t.nan == "" else every
    if s.is_int:
        return wrap(target, x), every
    whole = np.trunc(decode(source, x))
    # Both bounds are powers of two (or 0), which float64 holds.
    defined = (whole >= float(t.low)) & (whole < float(t.high + 1))
    return wrap(target, [int(v) for v in np.where(defined, whole, 0)]), defined


PAIRS = [
    (a, b)
    for a in ALL
    for b in ALL
    # fp8 and integers only meet by way of a wider float.
    if not (TYPES[a].is_fp8 and TYPES[b].kind in ("int", "uint"))
    and not (TYPES[a].is_int and TYPES[b].is_fp8)
]


@pytest.mark.parametrize("source, target", PAIRS)
def test_every_pair(source, target):
    x = inputs(source, target)
    want, defined = expected(source, target, x)
    got = value(f"x.to(tl.{target})", target, inputs={"x": Typed(source, x)})
    same(got[defined], want[defined], target)


@pytest.mark.parametrize("source", ["float32", "float64"])
@pytest.mark.parametrize("target", ["int32", "int64", "uint32", "uint64"])
def test_floats_out_of_range_saturate_as_on_a_gpu(source, target):
    t = TYPES[target]
    x = encode(source, [np.inf, -np.inf, 1e30, -1e30, 2.0**t.bits, -(2.0**t.bits)])
    want = [t.high, t.low] * 3
    assert value(f"x.to(tl.{target})", target, inputs={"x": x}).tolist() == want


@pytest.mark.parametrize("source", ["float32", "float16", "bfloat16"])
def test_a_nan_is_true(source):
    x = typed(source, [np.nan, 0.0, -0.0, 1e-7])
    got = value("x.to(tl.int1)", "int1", inputs={"x": x})
    assert got.tolist() == [True, False, False, True]


NARROWING = [
    ("float64", "float32"),
    ("float64", "float16"),
    ("float64", "bfloat16"),
    ("float32", "float16"),
    ("float32", "bfloat16"),
    ("float32", "float8e5"),
    ("float16", "float8e5"),
]


@pytest.mark.parametrize("source, target", NARROWING)
@pytest.mark.parametrize("mode", ["rtne", "rtz"])
def test_rounding_modes(source, target, mode):
    x = inputs(source, target)
    want = encode(target, exact(source, x), toward_zero=mode == "rtz")
    call = f'tl.cast(x, tl.{target}, fp_downcast_rounding="{mode}")'
    got = value(call, target, inputs={"x": Typed(source, x)})
    # What becomes of an infinite value when rounding toward zero, the language does not say.
    finite = np.isfinite(exact(source, x)) | (mode == "rtne")
    same(got[finite], want[finite], target)


SPELLINGS = [
    "x.to(tl.int16)",
    "x.to(dtype=tl.int16)",
    "x.cast(tl.int16)",
    "tl.cast(x, tl.int16)",
    "tl.cast(input=x, dtype=tl.int16)",
    "tl.cast(x, tl.int16, None, False)",
    "x.to(tl.int16, fp_downcast_rounding=None, bitcast=False)",
    "x.to(y.dtype)",
    "x.to(q.dtype.element_ty)",
]


@pytest.mark.parametrize("call", SPELLINGS)
@pytest.mark.parametrize("shape", [(), (4,), (2, 4), (2, 1, 2), (1, 2, 2, 2)])
def test_spellings_and_ranks(call, shape):
    x = np.arange(-3, int(np.prod(shape)) - 3).reshape(shape) * 1.75
    ints = np.zeros(8, np.int16)
    got = value(call, "int16", inputs={"x": x, "y": ints, "q": ints}, pointers=["q"])
    same(got, x.astype(np.int16))


@pytest.mark.parametrize("n", [1, 31, 33, 127, 1021])
def test_odd_sizes(n):
    x = np.linspace(-70000, 70000, n).astype(np.float32)
    same(value("x.to(tl.bfloat16)", "bfloat16", inputs={"x": x}), encode("bfloat16", x), "bfloat16")


WIDTHS = {
    bits: [n for n in ALL if TYPES[n].bits == bits]
    for bits in sorted({t.bits for t in TYPES.values()})
}


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_bitcasts_keep_every_bit(bits):
    for source in WIDTHS[bits]:
        x = samples(source, 256)
        if bits <= 16:
            x = np.arange(1 << bits).astype(f"u{bits // 8}").view(TYPES[source].storage)
        for target in WIDTHS[bits]:
            call = f"x.to(tl.{target}, bitcast=True)"
            got = value(call, target, inputs={"x": Typed(source, x)})
            assert (got.view(f"u{bits // 8}") == x.view(f"u{bits // 8}")).all(), (source, target)


@pytest.mark.parametrize(
    "source, target",
    [("int32", "float64"), ("float16", "int8"), ("int1", "int8"), ("int8", "int1")],
)
def test_bitcasts_between_widths_are_refused(source, target):
    refused(f"x.to(tl.{target}, bitcast=True)", "type-mismatch", "Cannot bitcast", x=source)


@pytest.mark.parametrize("fp8", FP8)
@pytest.mark.parametrize("integer", INTS)
def test_fp8_and_integers_do_not_meet(fp8, integer):
    refused(f"x.to(tl.{integer})", "type-mismatch", "cannot be cast", x=fp8)
    refused(f"x.to(tl.{fp8})", "type-mismatch", "cannot be cast", x=integer)


@pytest.mark.parametrize(
    "call, source, message",
    [
        ('x.to(tl.float16, fp_downcast_rounding="rtu")', "float32", "rounding mode"),
        ('x.to(tl.float32, fp_downcast_rounding="rtz")', "float16", "rounding mode"),
        ('x.to(tl.float64, fp_downcast_rounding="rtne")', "float32", "rounding mode"),
        ('x.to(tl.int32, fp_downcast_rounding="rtz")', "float32", "rounding mode"),
        ('x.to(tl.float16, fp_downcast_rounding="rtz")', "int32", "rounding mode"),
    ],
)
def test_rounding_modes_that_are_refused(call, source, message):
    refused(call, "bad-argument", message, x=source)


@pytest.mark.parametrize(
    "literal, dtype, want",
    [
        ("3", "float32", 3.0),
        ("True", "int32", 1),
        ("2.75", "int32", 2),
        ("-2.75", "int8", -2),
        ("0x80000000", "int64", 2**31),
        ("300", "int8", 44),
        ("0.1", "float64", np.float64(np.float32(0.1))),
        ("1e-40", "float64", 1e-40),
    ],
)
def test_literals(literal, dtype, want):
    assert value(f"tl.cast({literal}, tl.{dtype})", dtype) == want


def test_an_argument_that_is_one_has_the_method_too():
    for n in (1, 2):
        assert value("n.to(tl.int64)", "int64", inputs={"n": n}) == n
        assert value("tl.cast(n, tl.int64)", "int64", inputs={"n": n}) == n


def test_the_value_stays_what_it_was():
    x = np.array([1.5, -2.5], np.float32)
    int_, again = tiles(
        "y = x.to(tl.int32)\nz = x + 0.0", {"x": x}, y=("int32", (2,)), z=("float32", (2,))
    )
    assert int_.tolist() == [1, -2] and again.tolist() == x.tolist()


@pytest.mark.parametrize("name", FLOATS)
def test_to_its_own_type_is_the_value(name):
    x = samples(name)
    same(value(f"x.to(tl.{name})", name, inputs={"x": Typed(name, x)}), x, name)


def test_pointers_as_numbers():
    x = np.arange(4, dtype=np.int32)
    address = x.ctypes.data
    got = value("x.to(tl.int64)", "int64", (), {"x": x}, pointers=["x"])
    assert got == address
    got = value("(x + tl.arange(0, 4)).to(tl.uint64)", "uint64", (4,), {"x": x}, pointers=["x"])
    assert got.tolist() == [address + 4 * i for i in range(4)]
    assert value("x.to(tl.int1)", "int1", (), {"x": x}, pointers=["x"])
    there_and_back = "tl.load(x.to(tl.int64).to(tl.pointer_type(tl.int32)) + 2)"
    assert value(there_and_back, "int32", (), {"x": x}, pointers=["x"]) == 2
    for narrow in ("int32", "uint16", "float32"):
        refused(f"x.to(tl.{narrow})", "type-mismatch", "cannot be cast", x="int32", pointers=["x"])


def test_pointers_to_other_types():
    x = np.array([1.0, -2.0], np.float32)
    got = value(
        "tl.load(x.to(tl.pointer_type(tl.uint8)) + 7)", "uint8", (), {"x": x}, pointers=["x"]
    )
    assert got == 0xC0


def test_casts_of_a_kernel_that_takes_a_grid():
    kernel = define(
        """
        @triton.jit
        def kernel(out, x, n, BLOCK: tl.constexpr):
            i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            tl.store(out + i, tl.load(x + i, mask=i < n).to(tl.float16).to(tl.int32), mask=i < n)
        """
    )["kernel"]
    for n in (0, 1, 100, 1021):
        x = np.linspace(-3000, 3000, n).astype(np.float32)
        out = np.zeros(n, np.int32)
        kernel[(-(-n // 64),)](out, x, n, BLOCK=64)
        same(out, x.astype(np.float16).astype(np.int32))
