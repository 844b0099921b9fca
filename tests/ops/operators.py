"""Operators and their function forms `tl.add`, `sub`, `mul`: types of results, values, refusals."""

import fractions
import operator

import numpy as np
import pytest

import naiad as triton

from ._common import SIZES, compiles, define, refused, same, tiles, value
from ._numbers import (
    ALL,
    FLOATS,
    FP8,
    INTS,
    TYPES,
    Typed,
    common,
    crossed,
    decode,
    encode,
    exact,
    samples,
    typed,
    wrap,
)

COVERS = ["add", "sub", "mul"]

INTEGERS = ["int1", *INTS]


def promoted(symbol, a, b):
    name = common(a, b, symbol in ("/", "//", "%"))
    return "float32" if symbol == "/" and name in INTEGERS else name


def defined_between(symbol, a, b):
    name = promoted(symbol, a, b)
    if symbol in ("//", "&", "|", "^", "<<", ">>") and not (name and TYPES[name].is_int):
        return False
    return name is not None


# ---- types of results -----------------------------------------------------------------------------


@pytest.mark.parametrize("symbol", ["+", "-", "*", "/", "//", "%", "&", "|", "^", "<<", ">>"])
@pytest.mark.parametrize("a", ALL)
def test_the_type_of_every_pair(a, symbol):
    good = [b for b in ALL if defined_between(symbol, a, b)]
    lines = [
        f"tl.static_assert((x {symbol} {b}).dtype == tl.{promoted(symbol, a, b)}, '{b}')"
        for b in good
    ]
    compiles(*lines, x=a, **{b: b for b in good})
    for b in sorted(set(ALL) - set(good)):
        refused(f"x {symbol} y", "type-mismatch", x=a, y=b)


@pytest.mark.parametrize("a", ALL)
def test_the_type_of_comparisons_is_int1(a):
    good = [b for b in ALL if common(a, b)]
    compiles(
        *[f"tl.static_assert((x < {b}).dtype == tl.int1)" for b in good],
        x=a,
        **{b: b for b in good},
    )
    for b in sorted(set(ALL) - set(good)):
        refused("x == y", "type-mismatch", x=a, y=b)


KINDS = {"bool": 0, "int": 1, "uint": 1, "float": 2}
LITERALS = {"True": ("int1", "bool"), "3": ("int32", "int"), "2.0": ("float32", "float")}
LITERALS["1e300"] = ("float64", "float")


@pytest.mark.parametrize("symbol", ["+", "-", "*", "/", "%", "//", "&"])
@pytest.mark.parametrize("literal", LITERALS)
def test_literals_adopt_the_type_of_what_they_meet(literal, symbol):
    natural, kind = LITERALS[literal]
    for a in ALL:
        adopts = KINDS[kind] <= KINDS[TYPES[a].kind]
        b = a if adopts else natural
        for body in (f"x {symbol} {literal}", f"{literal} {symbol} x"):
            if defined_between(symbol, a, b):
                want = promoted(symbol, a, b)
                compiles(f"tl.static_assert(({body}).dtype == tl.{want}, '{a}')", x=a)
            else:
                refused(body, "type-mismatch", x=a)


# What kernels meet most, spelled out.
ROWS = [
    ("h * 2.0", "float16"), ("h + 1", "float16"), ("h * x", "float32"), ("h * n", "float16"),
    ("h / 2", "float32"), ("2 / h", "float32"), ("h / h", "float32"), ("b / b", "float32"),
    ("h + b", "float16"), ("b * 2.0", "bfloat16"), ("b * i32", "float32"), ("h * i64", "float16"),
    ("t + t", "int1"), ("t + 1", "int32"), ("t * 1.0", "float32"), ("t * h", "float16"),
    ("e + e", "float8e4nv"), ("e * 2.0", "float8e4nv"), ("e + e5", "float16"),
    ("i8 + 1", "int8"), ("i8 + n", "int32"), ("i8 * 2.0", "float32"), ("i32 * 2.0", "float32"),
    ("i32 * 1e300", "float64"), ("f * 1e300", "float32"), ("i32 / 2", "float32"),
    ("i64 / i64", "float32"), ("i32 // 2", "int32"), ("i32 % 3", "int32"), ("u32 + i32", "uint32"),
    ("u32 + i64", "int64"), ("u8 + i8", "uint8"), ("u8 + i32", "int32"), ("i32 << 1", "int32"),
    ("i32 & True", "int32"), ("n + 0.5", "float32"), ("-u8", "uint8"), ("-t", "int1"),
    ("~i8", "int8"), ("~t", "int1"), ("-h", "float16"), ("i32 > 2.5", "int1"),
    ("tl.add(h, 1)", "float16"), ("tl.sub(x=u8, y=i32)", "int32"), ("tl.mul(b, i8)", "float32"),
]  # fmt: skip


@pytest.mark.parametrize("expression, dtype", ROWS)
def test_rows_of_the_table(expression, dtype):
    names = dict(h="float16", b="bfloat16", f="float32", t="int1", e="float8e4nv", e5="float8e5")
    names.update(i8="int8", i32="int32", i64="int64", u8="uint8", u32="uint32")
    compiles("x = 2.0", f"tl.static_assert(({expression}).dtype == tl.{dtype})", n=7, **names)


def test_an_argument_that_is_one_is_a_literal():
    compiles("tl.static_assert((x + n).dtype == tl.int8)", x="int8", n=1)
    compiles("tl.static_assert((x + n).dtype == tl.int32)", x="int8", n=2)
    compiles("tl.static_assert((x + n).dtype == tl.int64)", x="int8", n=2**31)
    compiles("tl.static_assert((x + n).dtype == tl.int32)", x="int8", n=-(2**31))
    compiles("tl.static_assert((x + n).dtype == tl.float32)", x="int8", n=1.0)
    compiles("tl.static_assert((x + n).dtype == tl.int8)", x="int8", n=True)


def test_an_argument_that_is_one_divides_as_in_python():
    for n, quotient, remainder in ((1, -3, 1), (3, -1, -1)):
        q, r = tiles(
            "q = tl.to_tensor((n - 6) // 2)\nr = tl.to_tensor((n - 6) % 2)",
            {"n": n},
            q="int32",
            r="int32",
        )
        assert (q, r) == (quotient, remainder)


@pytest.mark.parametrize(
    "body, x",
    [
        ("x * 3000000000", "int32"), ("x + 300", "int8"), ("x + 0xFFFFFFFF", "int32"),
        ("x + -1", "uint8"), ("-1 + x", "uint64"), ("x + 256", "uint8"), ("x < -1", "uint32"),
        ("x & -1", "uint16"), ("tl.add(x, 128)", "int8"),
        ("x + 65536", "uint16"), ("x == 1000", "int8"),
    ],
)  # fmt: skip
def test_literals_out_of_range(body, x):
    refused(body, "literal-range", "out of range", x=x)


@pytest.mark.parametrize("name", INTS)
def test_the_ends_of_the_range_are_literals(name):
    t = TYPES[name]
    x = np.zeros(1, t.storage)
    for end in (t.low, t.high):
        assert value(f"x + {end}", name, inputs={"x": x}).tolist() == [end]


def test_float_literals_are_rounded_into_the_type():
    for name in FLOATS:
        x = typed(name, [1.0, 0.0])
        want = encode(
            name, decode(name, encode(name, [1.0, 0.0])) * decode(name, encode(name, 0.1))
        )
        same(value("x * 0.1", name, (2,), {"x": x}), want, name)


# ---- integers -------------------------------------------------------------------------------------


def quotient(a, b):
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) if b else 0


INT_OPS = {
    "+": operator.add, "-": operator.sub, "*": operator.mul,
    "&": operator.and_, "|": operator.or_, "^": operator.xor,
    "//": quotient, "%": lambda a, b: a - b * quotient(a, b),
}  # fmt: skip


@pytest.mark.parametrize("symbol", INT_OPS)
@pytest.mark.parametrize("a", INTEGERS)
def test_integers(a, symbol):
    for b in INTEGERS:
        name = promoted(symbol, a, b)
        if name is None:
            continue
        x, y = crossed(a, b, 24)
        p, q = wrap(name, x.astype(object)), wrap(name, y.astype(object))
        want = np.frompyfunc(INT_OPS[symbol], 2, 1)(p.astype(object), q.astype(object))
        got = value(f"x {symbol} y", name, inputs={"x": x, "y": y})
        defined = np.ones(x.shape, bool)
        if symbol in ("//", "%"):
            defined = (q != 0) & ~((p == TYPES[name].low) & (q.astype(object) == -1))
        same(got[defined], wrap(name, want)[defined], name)


@pytest.mark.parametrize("a", INTS)
def test_shifts(a):
    for b in INTS:
        name = common(a, b)
        bits = TYPES[name].bits
        x = samples(a, 64)
        y = (np.arange(64) % min(bits, TYPES[b].high + 1)).astype(TYPES[b].storage)
        left = wrap(name, [int(p) << int(q) for p, q in zip(x, y)])
        # Arithmetic if the left operand's own type is signed, whatever both became.
        sign = "int" if TYPES[a].kind == "int" else "uint"
        twin = wrap(f"{sign}{bits}", x.astype(object))
        right = wrap(name, [int(p) >> int(q) for p, q in zip(twin, y)])
        same(value("x << y", name, inputs={"x": x, "y": y}), left, name)
        same(value("x >> y", name, inputs={"x": x, "y": y}), right, name)


def test_shifts_by_and_of_literals():
    x = np.array([-5, 7], np.int32)
    assert value("x >> 1", "int32", inputs={"x": x}).tolist() == [-3, 3]
    assert value("x << 2", "int32", inputs={"x": x}).tolist() == [-20, 28]
    assert value("1 << x", "int32", inputs={"x": np.array([0, 31], np.int32)}).tolist() == [
        1,
        -(2**31),
    ]
    assert value("x >> 1", "uint8", inputs={"x": np.array([254], np.uint8)}).tolist() == [127]


@pytest.mark.parametrize("name", INTEGERS)
def test_signs_and_complements(name):
    x = samples(name, 64)
    same(value("-x", name, inputs={"x": x}), wrap(name, [-int(v) for v in x]), name)
    same(value("~x", name, inputs={"x": x}), wrap(name, [~int(v) for v in x]), name)


@pytest.mark.parametrize("a", INTEGERS)
def test_division_of_integers_is_in_float32(a):
    for b in INTEGERS:
        if (
            TYPES[a].kind != "int"
            and TYPES[b].kind == "int"
            or TYPES[a].kind == "int" != TYPES[b].kind
        ):
            continue
        name = common(a, b, True)
        x, y = crossed(a, b, 16)
        x, y = x[y != 0], y[y != 0]
        with np.errstate(over="ignore"):
            want = wrap(name, x.astype(object)).astype(np.float32) / y.astype(np.float32)
        same(value("x / y", "float32", inputs={"x": x, "y": y}), want)


def test_division_by_zero_ends():
    # What comes of it the language does not say; the host must survive it.
    x, y = np.array([1, -(2**31), 0], np.int32), np.array([0, -1, 0], np.int32)
    tiles("q = x // y\nr = x % y", {"x": x, "y": y}, q=("int32", (3,)), r=("int32", (3,)))


# ---- floats ---------------------------------------------------------------------------------------

FLOAT_OPS = {"+": np.add, "-": np.subtract, "*": np.multiply}


@pytest.mark.parametrize("symbol", FLOAT_OPS)
@pytest.mark.parametrize("name", FLOATS + FP8)
def test_floats(name, symbol):
    x, y = crossed(name, name, 60)
    with np.errstate(all="ignore"):
        # Rounding to float64 on the way does no harm: it has more than twice the digits.
        want = encode(name, FLOAT_OPS[symbol](decode(name, x), decode(name, y)))
    got = value(f"x {symbol} y", name, inputs={"x": Typed(name, x), "y": Typed(name, y)})
    defined = np.ones(x.shape, bool)
    if TYPES[name].nan == "":
        # A format without NaN has nothing to make of one.
        with np.errstate(all="ignore"):
            defined = ~np.isnan(FLOAT_OPS[symbol](decode(name, x), decode(name, y)))
    same(got[defined], want[defined], name)


@pytest.mark.parametrize("a", ["float16", "bfloat16", "float32", "int32", "int64", "int1", "uint8"])
@pytest.mark.parametrize("b", ["float16", "bfloat16", "float32", "float64"])
def test_floats_that_are_promoted_first(a, b):
    name = common(a, b)
    x, y = crossed(a, b, 40)
    with np.errstate(all="ignore"):
        p = encode(name, exact(a, x)) if TYPES[name].bits < 64 else x.astype(np.float64)
        if a == "bfloat16":
            p = encode(name, decode(a, x))
        q = encode(name, decode(b, y))
        want = encode(name, decode(name, p) + decode(name, q))
    same(value("x + y", name, inputs={"x": Typed(a, x), "y": Typed(b, y)}), want, name)


@pytest.mark.parametrize(
    "a, b",
    [
        ("float32", "float32"),
        ("float64", "float64"),
        ("float16", "float16"),
        ("bfloat16", "int32"),
        ("float64", "float32"),
        ("int32", "float32"),
    ],
)
def test_division_of_floats(a, b):
    name = common(a, b, True)
    x, y = crossed(a, b, 60)
    with np.errstate(all="ignore"):
        p, q = decode(a, x).astype(TYPES[name].storage), decode(b, y).astype(TYPES[name].storage)
        want = p / q
    same(value("x / y", name, inputs={"x": Typed(a, x), "y": Typed(b, y)}), want)


def remainder(x, y):
    """`x - y * trunc(x / y)` with the last step rounded once."""
    dtype = type(x)
    with np.errstate(all="ignore"):
        ratio = np.trunc(x / y)
    if not all(map(np.isfinite, (x, y, ratio))):
        return x if np.isinf(y) and np.isfinite(x) else dtype(np.nan)
    F = fractions.Fraction
    exact = F(float(x)) - F(float(ratio)) * F(float(y))
    return dtype(float(exact))


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
def test_remainders_of_floats(name):
    result = common(name, name, True)
    x, y = crossed(name, name, 60)
    p, q = (decode(name, v).astype(TYPES[result].storage) for v in (x, y))
    keep = np.isfinite(p) | ~np.isinf(q)
    want = np.array([remainder(a, b) for a, b in zip(p, q)], p.dtype)
    got = value("x % y", result, inputs={"x": Typed(name, x), "y": Typed(name, y)})
    # A zero's sign is not promised.
    same(
        np.abs(got[keep]) * (got[keep] == 0) + got[keep],
        np.abs(want[keep]) * (want[keep] == 0) + want[keep],
    )


def test_remainders_with_an_infinite_divisor_are_the_dividend():
    x = np.array([1.5, -2.0, 0.0], np.float32)
    for y in (np.inf, -np.inf):
        same(value(f"x % float('{y}')", "float32", inputs={"x": x}), x)


@pytest.mark.parametrize("name", FLOATS + FP8)
def test_the_sign_of_a_float_flips(name):
    x = samples(name, 256)
    if TYPES[name].is_fp8:
        # Infinite values are below; not every format has them, nor a negative zero, nor one image
        # for each value.
        x = x[np.isfinite(decode(name, x))]
    got = decode(name, value("-x", name, inputs={"x": Typed(name, x)}))
    want = -decode(name, x)
    same(got, want + 0.0 if TYPES[name].nan == "negative zero" else want)


def test_the_sign_of_an_infinite_fp8_flips():
    x = Typed("float8e5", np.array([0x7C, 0xFC], np.uint8))
    same(value("-x", "float8e5", inputs={"x": x}), x.array[::-1])


def test_no_operation_is_fused():
    """A product that is rounded before the sum, and one that is not, differ here."""
    x = np.float32(1 + 2.0**-12)
    got = value("x * x - (1 + 2.0**-11)", "float32", inputs={"x": np.full(4, x)})
    assert set(got.tolist()) == {0.0}


# ---- function forms and shapes --------------------------------------------------------------------


@pytest.mark.parametrize("name", ["int8", "uint64", "float16", "float32", "int1"])
@pytest.mark.parametrize("function, symbol", [("add", "+"), ("sub", "-"), ("mul", "*")])
def test_function_forms(function, symbol, name):
    x, y = crossed(name, name, 20)
    inputs = {"x": x, "y": y}
    want = value(f"x {symbol} y", name, inputs=inputs)
    for call in ("(x, y)", "(x=x, y=y)", "(x, y, sanitize_overflow=False)", "(x, y, True)"):
        same(value(f"tl.{function}{call}", name, inputs=inputs), want)


SHAPES = [
    ((), (), ()), ((), (8,), (8,)), ((8,), (4, 1), (4, 8)), ((4, 1), (1, 8), (4, 8)),
    ((2, 1, 4), (8, 1), (2, 8, 4)), ((1, 1, 1, 2), (2, 2, 2, 1), (2, 2, 2, 2)), ((1,), (1, 1), (1, 1)),
]  # fmt: skip


@pytest.mark.parametrize("a, b, want", SHAPES)
def test_shapes_broadcast(a, b, want):
    x = np.asarray(np.arange(int(np.prod(a))).reshape(a), np.int32)
    y = np.asarray(np.arange(int(np.prod(b))).reshape(b) * 100, np.int32)
    same(value("x + y", "int32", want, {"x": x, "y": y}), x + y)
    same(value("tl.sub(y, x)", "int32", want, {"x": x, "y": y}), y - x)
    assert value("x < y", "int1", want, {"x": x, "y": y}).shape == want


@pytest.mark.parametrize(
    "a, b", [((8,), (4,)), ((2, 4), (4, 2)), ((2, 4), (2,)), ((2, 2, 2), (4, 1, 1))]
)
def test_shapes_that_do_not(a, b):
    refused("x + y", "shape-mismatch", "do not match", x=np.zeros(a), y=np.zeros(b))
    refused("x < y", "shape-mismatch", "do not match", x=np.zeros(a), y=np.zeros(b))


@pytest.mark.parametrize("n", SIZES)
def test_odd_sizes(n):
    x, y = samples("int32", n), samples("int32", n, seed=2)
    same(
        value("x * y + x", "int32", inputs={"x": x, "y": y}),
        wrap("int32", x.astype(object) * y + x),
    )


VIEWS = {
    "steps": lambda a: a[1::3],
    "backwards": lambda a: a[::-1],
    "a column": lambda a: a.reshape(-1, 8)[:, 5],
    "repeated": lambda a: np.broadcast_to(a[3], (16,)),
}


@pytest.mark.parametrize("view", VIEWS)
def test_views(view):
    x = VIEWS[view](np.arange(96, dtype=np.int16))
    same(value("x * 3 - x", "int16", inputs={"x": x}), x * 2)


def test_matrices_seen_from_elsewhere():
    a = np.arange(64, dtype=np.float64).reshape(8, 8)
    for x, y in ((a.T, a), (a[::-1, ::-1], a.T), (a[2:6, 1:8:2], a[4:, 4:].T)):
        same(value("x - y", "float64", inputs={"x": x, "y": y}), x - y)


# ---- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize("symbol", ["//", "%"])
@pytest.mark.parametrize("x, y", [("int32", "uint32"), ("uint8", "int64"), ("int1", "int8")])
def test_mixed_signs_do_not_divide(x, y, symbol):
    refused(f"x {symbol} y", "type-mismatch", "because they have different signedness", x=x, y=y)


@pytest.mark.parametrize("symbol, x", [("**", "float32"), ("**", "int32"), ("@", "float32[4, 4]")])
def test_operators_that_tiles_lack(symbol, x):
    refused(f"x {symbol} x", "type-mismatch", "is not defined between", x=x)


@pytest.mark.parametrize(
    "body", ["x + None", "x + 'a'", "x + (1, 2)", "tl.float32 * x", "x << (1,)"]
)
def test_operands_that_are_no_numbers(body):
    refused(body, "type-mismatch", x="int32")


@pytest.mark.parametrize("body", ["~x", "x & 1", "x << 1", "x ^ x", "x // 1.0"])
@pytest.mark.parametrize("name", FLOATS)
def test_floats_have_no_bits(body, name):
    refused(body, "type-mismatch", x=name)


def test_operators_of_run_time_values_in_a_loop_of_programs():
    kernel = define(
        """
        @triton.jit
        def kernel(out, x, n, BLOCK: tl.constexpr):
            i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            tl.store(out + i, tl.load(x + i, mask=i < n) * 2 + i, mask=i < n)
        """
    )["kernel"]
    for n in (0, *SIZES):
        x, out = np.arange(n, dtype=np.int64), np.zeros(n, np.int64)
        kernel[(triton.cdiv(n, 32),)](out, x, n, BLOCK=32)
        same(out, 3 * x)
