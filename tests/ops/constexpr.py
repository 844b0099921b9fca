"""Constexprs: `tl.constexpr`, what decays to a run-time value and what does not, Python's arithmetic."""

import numpy as np
import pytest

import naiad as triton
import naiad.language as tl

from ._common import compiles, define, refused, tiles

COVERS = ["constexpr", "constexpr_type"]

GLOBAL = tl.constexpr(16)
PLAIN = 16
TABLE = tl.constexpr((1, 2, 4))


@pytest.mark.parametrize(
    "expression, dtype",
    [
        ("4", "int32"),
        ("2.0", "float32"),
        ("True", "int1"),
        ("1 << 40", "int64"),
        ("N", "int32"),
        ("3 * 5 // 2", "int32"),
    ],
)
def test_an_assignment_makes_a_run_time_value(expression, dtype):
    for form in (
        "x = {}",
        "x: tl.int8 = {}",
        "(x := {})",
        "x, y = {}, 0",
        "x, (y, z) = 0, (1, {})\nx = z",
        "y = ({}, 1)\nx = y[0]",
        "[x, y] = [{}, 1]",
    ):
        body = "N: tl.constexpr = 7\n" + form.format(expression)
        tiles(body + f"\ntl.static_assert(x.dtype == tl.{dtype})")
        refused(body + "\ntl.static_assert(x == x)", "not-constexpr")


def test_a_run_time_value_is_no_shape():
    refused("n = 16\ntl.arange(0, n)", "not-constexpr")
    assert tiles("N: tl.constexpr = 16\nr = tl.arange(0, N)", r=("int32", (16,)))[-1] == 15


def test_a_variable_promotes_where_its_literal_does_not():
    compiles(
        "x = 2.0",
        "tl.static_assert((h * x).dtype == tl.float32)",
        "tl.static_assert((h * 2.0).dtype == tl.float16)",
        h="float16",
    )
    compiles("X: tl.constexpr = 2.0", "tl.static_assert((h * X).dtype == tl.float16)", h="float16")


@pytest.mark.parametrize(
    "body",
    [
        "N: tl.constexpr = 4",
        "N: tl.constexpr = 8 // 2",
        "M: tl.constexpr = 3\nN: tl.constexpr = M + 1",
        "N: tl.constexpr\nN = 4",
        "N: 'tl.constexpr' = 4",
        "N: triton.language.constexpr = 4",
    ],
)
def test_an_annotation_keeps_it(body):
    compiles(body, "tl.static_assert(N == 4)", "x = tl.arange(0, N)")


@pytest.mark.parametrize("value", ["10", "32.5", "'s'", "None", "(5, 6, 7)", "(1, (2.0, 'x'))"])
def test_the_type_of_a_constexpr_is_its_value(value):
    compiles(
        f"x: tl.constexpr = {value}",
        f"tl.static_assert(x.type == tl.constexpr_type({value}))",
        f"tl.static_assert(x.type == tl.core.constexpr_type(value={value}))",
        "tl.static_assert(x.type != tl.constexpr_type('another') and x.type != tl.int32)",
        "tl.static_assert(isinstance(x.type, tl.constexpr_type) and not isinstance(x, tl.constexpr_type))",
        f"tl.static_assert(x.type.value == {value})",
    )


def test_what_is_no_constexpr_has_another_type():
    compiles("x = 10", "tl.static_assert(x.type == tl.int32)", "tl.static_assert(x.type != tl.constexpr_type(10))")
    refused("x = 10\ntl.constexpr_type(x)", "not-constexpr")
    # An argument that is 1 is one, an element of a tuple too.
    compiles("tl.static_assert(n.type == tl.constexpr_type(1))", n=1)


def test_types_of_constexprs_outside_of_kernels():
    kind = tl.constexpr_type
    assert kind(3) == kind(3) != kind(4) and kind(3) != 3
    assert repr(kind(3)) == "constexpr_type[3]" and len({kind(3), kind(3), kind((1, 2))}) == 2


def test_none_dtypes_and_tuples_are_kept_as_they_are():
    compiles("x = None", "tl.static_assert(x is None)")
    compiles("t = tl.float16", "x = tl.zeros((4,), t)", "tl.static_assert(x.dtype == tl.float16)")
    compiles("t = (1, (2, 3))", "tl.static_assert(len(t) == 2)", "tl.static_assert(len(t[1]) == 2)")
    # The elements of a tuple decay.
    refused("t = (1, 2)\ntl.static_assert(t[0] == 1)", "not-constexpr")


def test_strings_and_functions():
    compiles(
        "s: tl.constexpr = 'abc'",
        "tl.static_assert(s == 'abc')",
        "tl.static_assert(s + 'd' == 'abcd')",
    )
    before = "@triton.jit\ndef f(x):\n    return x + 1\n"
    got = tiles("g: tl.constexpr = f\nr = g(tl.program_id(0))", before=before, r="int32")
    assert got == 1


def test_reassigning_a_constexpr_makes_a_run_time_value():
    body = "N: tl.constexpr = 4\nN = N + 1\nr = N + tl.zeros((), tl.int32)"
    assert tiles(body, r="int32") == 5
    refused("N: tl.constexpr = 4\nN = N + 1\ntl.arange(0, N)", "not-constexpr")
    kernel = define(
        "@triton.jit\ndef kernel(out, N: tl.constexpr):\n    N = N * 2\n    tl.store(out, N)"
    )["kernel"]
    out = np.zeros(1, np.int32)
    kernel[(1,)](out, 8)
    assert out[0] == 16


def test_the_value_of_a_run_time_variable_cannot_become_constexpr():
    # A name declared so may bear one, which still is no extent.
    compiles("N: tl.constexpr = n", "x = N + 1", n=7)
    refused("N: tl.constexpr = n\ntl.arange(0, N)", "not-constexpr", n=7)
    refused("tl.constexpr(n)", "not-constexpr", n=7)
    compiles("N: tl.constexpr = n", "x = tl.arange(0, N)", n=1)


@pytest.mark.parametrize(
    "call",
    [
        "tl.constexpr(8)",
        "tl.constexpr(value=8)",
        "tl.constexpr(tl.constexpr(8))",
        "tl.constexpr(8).value",
    ],
)
def test_the_call(call):
    compiles(
        f"tl.static_assert({call} == 8)",
        f"x = tl.arange(0, {call})",
        f"N: tl.constexpr = {call}",
        "y = tl.arange(0, N)",
    )


# ---- Python's arithmetic --------------------------------------------------------------------------

EXPRESSIONS = """
    7 // 2|-7 // 2|7 // -2|-7 % 3|7 % -3|-7.5 // 2|7.5 % -2|7 / 2|6 / 3|2 ** 10|2 ** -1|2.0 ** 0.5
    1 << 40|-5 >> 1|6 & 3|6 ^ 3|~6|-(-6)|+5|not 0|not 3|2 ** 62 * 4|10 ** 18 * 10 ** 18|True + True
    True & False|3 < 4 < 5|3 < 4 > 5|1 if 3 > 2 else 0|0 or 5|3 and 0|(1, 2) + (3,)|(1, 2) * 2|(1, 2, 3)[-1]
    (1, 2, 3)[1:]|(1, 2, 3)[::-1]|len((1, 2, 3))|min(3, 2) + max(1, 2)|1e300 * 1e300|-0.0|0.1 + 0.2|5 % 2.5
    [1, 2] + [3]|'ab' + 'c'|'a' == 'b'|None is None|(1, 2) == (1, 2)|(1, 2) != (1, 3)|1 == 1.0|7 // 2.0
    f"{1 + 1}x"|((1, 2), 3)[0][1]|1_000|0xFF|0b11
"""


@pytest.mark.parametrize(
    "expression", [e.strip() for line in EXPRESSIONS.strip().splitlines() for e in line.split("|")]
)
def test_expressions_mean_what_they_mean_in_python(expression):
    want = eval(expression)
    want = tuple(want) if isinstance(want, list) else want
    text = repr(want) if want not in (float("inf"),) else "float('inf')"
    compiles(f"X: tl.constexpr = {expression}", f"tl.static_assert(X == {text})")


@pytest.mark.parametrize(
    "expression", ["[i * i for i in (1, 2, 3)]", "[i for i in (1, 2, 3) if i > 1]"]
)
def test_comprehensions_over_tuples(expression):
    compiles(f"X: tl.constexpr = {expression}", f"tl.static_assert(X == {tuple(eval(expression))})")


@pytest.mark.parametrize(
    "expression",
    [
        "1 // 0",
        "1 % 0",
        "1 / 0",
        "1.0 / 0",
        "'a' + 1",
        "'a' * 'b'",
        "None + 1",
        "1 < 'a'",
        "(1, 2)[2]",
        "(1, 2)[0.5]",
        "1 << -1",
        "1.5 << 2",
        "[1 for i in 3]",
    ],
)
def test_what_python_refuses_is_refused(expression):
    refused(f"X: tl.constexpr = {expression}", None)


@pytest.mark.parametrize(
    "name", ["math.pi", "math.log2(8.0)", "math.inf", "math.sqrt(2.0)", "math.ceil(2.5)"]
)
def test_the_module_math(name):
    import math

    want = eval(name)
    text = "float('inf')" if want == math.inf else repr(want)
    tiles(f"X: tl.constexpr = {name}\ntl.static_assert(X == {text})", names={"math": math})


# ---- parameters, globals, functions ---------------------------------------------------------------


@triton.jit
def reads_global(out, N: tl.constexpr = 4, M: tl.constexpr = GLOBAL):
    tl.static_assert(M == 16)
    tl.store(out + tl.arange(0, GLOBAL), tl.arange(0, GLOBAL) * N + TABLE[2])


@triton.jit
def reads_plain(out):
    tl.store(out, PLAIN)


def test_globals_are_read_as_constexpr_instances():
    out = np.zeros(16, np.int32)
    for n, kw in ((4, {}), (3, {"N": 3}), (5, {"N": tl.constexpr(5)})):
        reads_global[(1,)](out, **kw)
        assert out.tolist() == [i * n + 4 for i in range(16)]


def test_plain_globals_are_refused():
    with pytest.raises(triton.CompilationError) as caught:
        reads_plain[(1,)](np.zeros(1, np.int32))
    assert caught.value.diagnostic["id"] == "bad-global"


@pytest.mark.parametrize("value", [3, -1, 2.5, True, None, "text", (1, 2), tl.float16, 2**70])
def test_constexpr_arguments_of_every_kind(value):
    kernel = define(
        "@triton.jit\ndef kernel(out, V: tl.constexpr, W: tl.constexpr):\n    tl.static_assert(V == W)\n    tl.store(out, 1)"
    )["kernel"]
    out = np.zeros(1, np.int32)
    kernel[(1,)](out, value, W=value)
    assert out[0] == 1
    with pytest.raises(triton.CompilationError):
        kernel[(1,)](out, value, "another")


FUNCTIONS = """
@triton.jit
def is_constexpr(x):
    return isinstance(x, tl.constexpr)

@triton.jit
def half(N):
    return N // 2

@triton.jit
def either(flag, N):
    if flag:
        return N
    else:
        return 2 * N

@triton.constexpr_function
def bits(n):
    return n.bit_length()
"""


def test_constexprs_pass_through_calls():
    body = """
        N: tl.constexpr = 16
        tl.static_assert(half(N) == 8)
        tl.static_assert(half(16) == 8)
        x = tl.arange(0, half(N))
        tl.static_assert(either(True, N) == 16)
        tl.static_assert(either(False, 4) == 8)
        tl.static_assert(bits(N) == 5)
        y = tl.arange(0, 1 << bits(3))
        M: tl.constexpr = half(N)
        tl.static_assert(M + 1 == 9)
    """
    tiles(body, before=FUNCTIONS)


def test_a_constexpr_function_takes_no_run_time_values():
    refused("bits(n)", None, before=FUNCTIONS, n=7)


def test_a_function_of_constexprs_at_run_time():
    assert tiles("r = either(n > 3, 5)", {"n": 7}, before=FUNCTIONS, r="int32") == 5
    assert tiles("r = either(n > 3, 5)", {"n": 2}, before=FUNCTIONS, r="int32") == 10
    assert tiles("r = half(n)", {"n": -7}, before=FUNCTIONS, r="int32") == -3


def test_a_constexpr_condition_compiles_one_branch():
    body = """
        N: tl.constexpr = 4
        if N == 4:
            a = 1
        else:
            a = undefined_name + tl.zeros((3,), tl.int32)
        b = 2 if N > 3 else undefined_name
        r = a + b
    """
    assert tiles(body, r="int32") == 3


@pytest.mark.parametrize("condition", ["1.5", "'a'", "(1,)", "tl.int32"])
def test_conditions_are_bools_ints_or_none(condition):
    refused(f"N: tl.constexpr = {condition}\nif N:\n    pass", None)


def test_host_side_objects():
    four = tl.constexpr(4)
    assert four.value == 4 and (four + 1).value == 5 and bool(four == 4) and hash(four) == hash(4)
    assert [10, 20, 30, 40, 50][four] == 50 and int(four) == 4 and float(four) == 4.0
    assert repr(four) == "constexpr[4]"
