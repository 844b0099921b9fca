"""Names under their other paths and spellings, and small ones that have no module of their own."""

import numpy as np
import pytest

import naiad as triton

from ._common import close, compiles, refused, same, tiles, value
from ._numbers import TYPES

COVERS = ["_log2", "dtype.get_int_max_value", "dtype.get_int_min_value"]

X = np.array([3, -1, 7, 7, 0, 12, -5, 2], np.int32)
F = np.array([0.5, 1.0, 2.25, 4.0, 0.1, 9.0, 50.0, 3.0], np.float32)


# ---- _log2 ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["tl._log2", "tl.standard._log2"])
@pytest.mark.parametrize("exponent", [*range(21), 31, 40, 62])
def test_log2_of_powers(exponent, path):
    compiles(f"tl.static_assert({path}({2**exponent}) == {exponent})")


def test_log2_gives_a_constexpr():
    compiles(
        "tl.static_assert(tl._log2(i=8) == 3)",
        "tl.static_assert(tl._log2(x.shape[0]) == 3)",
        x="int32",
    )
    assert value("tl.arange(0, tl._log2(16))", "int32", (4,)).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "call", ["tl._log2(n)", "tl._log2(x)", "tl._log2()", "tl._log2(2, 3)", "tl._log2(2.5)"]
)
def test_log2_of_what_is_not_known(call):
    refused(call, None, n="scalar int32", x="int32")


# ---- limits of integers ---------------------------------------------------------------------------

NUMBERS = [name for name, t in TYPES.items() if t.kind in ("int", "uint")]


@pytest.mark.parametrize("name", NUMBERS)
def test_limits(name):
    t = TYPES[name]
    compiles(
        f"tl.static_assert(tl.{name}.get_int_max_value() == {t.high})",
        f"tl.static_assert(tl.{name}.get_int_min_value() == {t.low})",
        f"tl.static_assert(x.dtype.get_int_max_value() == {t.high})",
        f"D: tl.constexpr = x.dtype\ntl.static_assert(D.get_int_min_value() == {t.low})",
        x=name,
    )
    body = "r = tl.full((4,), x.dtype.get_int_min_value(), x.dtype)\nq = x == x.dtype.get_int_max_value()"
    x = np.array([0, t.high, t.low, t.high], t.storage)
    r, q = tiles(body, {"x": x}, r=(name, (4,)), q=("int1", (4,)))
    same(r, np.full(4, t.low, t.storage))
    same(q, x == t.high)


def test_limits_of_booleans():
    compiles(
        "tl.static_assert(tl.int1.get_int_max_value() == 1)",
        "tl.static_assert(tl.int1.get_int_min_value() == 0)",
    )


@pytest.mark.parametrize("name", [name for name in TYPES if TYPES[name].is_float])
def test_floats_have_no_integer_limits(name):
    for limit in ("max", "min"):
        refused(f"tl.{name}.get_int_{limit}_value()", None)


@pytest.mark.parametrize("name", NUMBERS)
def test_limits_on_the_host(name):
    dtype = getattr(triton.language, name)
    assert dtype.get_int_max_value() == TYPES[name].high
    assert dtype.get_int_min_value() == TYPES[name].low


# ---- paths ----------------------------------------------------------------------------------------

LANGUAGE = [
    ("maximum(x, 2)", "core"), ("where(x > 0, x, 0)", "core"), ("arange(0, 8)", "core"),
    ("sum(x, 0) + x", "standard"), ("cumsum(x)", "standard"), ("flip(x)", "standard"),
    ("sort(x)", "standard"), ("topk(x, 8)", "standard"), ("max(x, 0) + x", "standard"),
    ("cdiv(x, 2)", "standard"), ("zeros((8,), tl.int32)", "standard"), ("ravel(x)", "standard"),
    ("argmax(x, 0) + x", "standard"), ("zeros_like(x)", "standard"), ("abs(x)", "math"),
    ("cat(x, x)[:]", "core"), ("histogram(x, 8)", "core"), ("gather(x, tl.arange(0, 8), 0)", "core"),
    ("broadcast_to(x, (8,))", "core"), ("associative_scan(x, 0, plus)", "core"), ("xor_sum(x, 0) + x", "standard"),
]  # fmt: skip
PLUS = "@triton.jit\ndef plus(a, b):\n    return a + b\n"


@pytest.mark.parametrize("call, module", LANGUAGE)
def test_modules_of_the_language(call, module):
    """Through `tl`, as a module of its own, and as a name that was imported from it."""
    name = call.split("(")[0]
    inside = getattr(triton.language, module)
    if call.endswith("[:]"):
        call = call.removesuffix("[:]")
        call, shape = f"{call}", (16,)
    else:
        shape = (8,)
    want = value(f"tl.{call}", "int32", shape, {"x": X}, before=PLUS)
    same(value(f"tl.{module}.{call}", "int32", shape, {"x": X}, before=PLUS), want)
    same(value(f"m.{call}", "int32", shape, {"x": X}, before=PLUS, names={"m": inside}), want)
    imported = f"the_{name}"
    got = value(
        f"{imported}({call.split('(', 1)[1]}", "int32", shape, {"x": X}, before=PLUS,
        names={imported: getattr(inside, name)},
    )  # fmt: skip
    same(got, want)


@pytest.mark.parametrize(
    "name", ["float32", "int64", "constexpr", "dtype", "pointer_type", "tensor", "block_type"]
)
def test_types_in_core(name):
    assert getattr(triton.language.core, name) is getattr(triton.language, name)


def test_constexprs_and_types_by_core():
    body = "N: tl.core.constexpr = 4\nr = tl.zeros((N,), tl.core.int32) + core.constexpr(3)"
    got = tiles(body, names={"core": triton.language.core}, r=("int32", (4,)))
    assert got.tolist() == [3] * 4


@pytest.mark.parametrize("name", triton.language.random.__all__ + triton.language.standard.__all__)
def test_the_same_objects_everywhere(name):
    module = "random" if name in triton.language.random.__all__ else "standard"
    found = getattr(getattr(triton.language, module), name)
    assert found is getattr(triton.language.core, name)


# ---- what `tl.math` and `tl.libdevice` once had ---------------------------------------------------


@pytest.mark.parametrize(
    "call", ["tl.math.max(x, y)", "tl.math.min(x, y)", "tl.math.max(x=x, y=y)"]
)
def test_extrema_of_two(call):
    """Not the reductions of that name: those of `tl` itself."""
    y = X[::-1].copy()
    want = np.minimum(X, y) if "min" in call else np.maximum(X, y)
    same(value(call, "int32", inputs={"x": X, "y": y}), want)
    f = np.array([np.nan, 1, 2, np.nan, -np.inf, 0, 5, 6], np.float32)
    got = value(call, "float32", inputs={"x": f, "y": f[::-1].copy()})
    same(got, (np.fmin if "min" in call else np.fmax)(f, f[::-1]))
    same(value("tl.math.max(x, 2)", "int32", inputs={"x": X}), np.maximum(X, 2))


@pytest.mark.parametrize(
    "path", ["tl.math", "tl.libdevice", "tl.extra.libdevice", "tl.extra.cuda.libdevice", "m", "c"]
)
@pytest.mark.parametrize(
    "name, f, ulps",
    [
        ("tanh", np.tanh, 2),
        ("exp", np.exp, 2),
        ("log", np.log, 2),
        ("sqrt", np.sqrt, 0.5),
        ("rsqrt", lambda x: 1 / np.sqrt(x), 2),
        ("floor", np.floor, 0),
        ("abs", np.abs, 0),
    ],
)
def test_functions_of_libdevice_by_every_path(path, name, f, ulps):
    names = {"m": triton.language.math, "c": triton.language.extra.cuda.libdevice}
    got = value(f"{path}.{name}(x)", "float32", inputs={"x": F}, names=names)
    close(got, f(F.astype(np.float64)), ulps, floor=2.0**-10)


@pytest.mark.parametrize("name", ["tanh", "exp", "rsqrt"])
def test_functions_that_were_imported(name):
    for module in (triton.language.extra.libdevice, triton.language.math):
        got = value("f(x)", "float32", inputs={"x": F}, names={"f": getattr(module, name)})
        same(got, value(f"tl.extra.libdevice.{name}(x)", "float32", inputs={"x": F}))


@pytest.mark.parametrize(
    "call",
    [
        "tl.math.fma(x, x, x)",
        "tl.math.fdiv(x, x)",
        "tl.math.div_rn(x, x)",
        "tl.libdevice.fma(x, x, x)",
    ],
)
def test_functions_of_several_operands(call):
    want = F * F + F if "fma" in call else F / F
    close(value(call, "float32", inputs={"x": F}), want.astype(np.float64), 1)


# ---- names that are none --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call, shown",
    [
        ("tl.mximum(x, x)", "mximum"),
        ("tl.math.mximum(x, x)", "mximum"),
        ("tl.standard.frobnicate(x)", "frobnicate"),
        ("tl.random.rnd(1, x)", "rnd"),
        ("tl.core.frobnicate(x)", "frobnicate"),
        ("tl.frobnicate.sum(x)", "frobnicate"),
        ("tl.atomic_mul(x, x)", "atomic_mul"),
        ("tl.empty((8,), tl.int32)", "empty"),
        ("tl.extra.mlu.frobnicate(x)", "mlu"),
    ],
)
def test_names_that_do_not_exist(call, shown):
    refused(call, "unknown-tl-name", shown, x="int32")


@pytest.mark.parametrize("name", ["frobnicate", "mximum"])
def test_modules_do_not_have_what_does_not_exist(name):
    for module in ("core", "standard", "random", "math", "extra", "target_info"):
        with pytest.raises(AttributeError):
            getattr(getattr(triton.language, module), name)
