"""`tl.device_assert`, `assert`, `expect_zero` and overflow: what is checked in debug mode, and only there."""

import itertools
import os
import subprocess
import sys

import numpy as np
import pytest

import naiad as triton

from ._common import _arguments, _kernel_text, define, functions, refused, same
from ._numbers import INTS, TYPES, samples, wrap

COVERS = ["device_assert", "expect_zero"]

I = "tl.arange(0, 8)"


def launch(body, inputs=None, *, debug=True, pointers=(), grid=(1,), names=None, **options):
    text = _kernel_text(body, {}, inputs or {}, pointers, {})
    kernel = define(text, **(names or {}))["kernel"]
    kernel[grid](*_arguments(inputs or {}), debug=debug, **options)


def fails(body, inputs=None, **options):
    """The report of an assertion that fails in debug mode, and there only."""
    launch(body, inputs, **(options | {"debug": False}))
    with pytest.raises(triton.DeviceAssertError) as caught:
        launch(body, inputs, **options)
    assert caught.value.diagnostic["id"] == "device-assert"
    return str(caught.value)


def numbers(*values, dtype=np.int32):
    return {"x": np.array(values, dtype)}


# ---- conditions -----------------------------------------------------------------------------------

ASSERTIONS = ["tl.device_assert({})", "assert {}"]


@pytest.mark.parametrize("form", ASSERTIONS)
@pytest.mark.parametrize(
    "condition, holds",
    [
        ("x > 0", True),
        ("x > 1", False),
        ("x != 3", False),
        ("(x > 0) & (x < 5)", True),
        ("(x > 0) & (x < 4)", False),
        ("x", True),
        ("x - 1", False),
        ("tl.sum(x) == 10", True),
        ("tl.sum(x) == 11", False),
        ("tl.max(x, 0) < n", True),
        ("n == 4", False),
        ("n", True),
        ("0 < n < 10", True),
        ("0 < n < 5", False),
        ("x[:, None] + x[None, :] > 1", True),
        ("x[:, None] + x[None, :] > 2", False),
        ("x.to(tl.float32) / 2 < 2.0", False),
        ("True", True),
    ],
)
def test_conditions(condition, holds, form):
    inputs = {**numbers(1, 2, 3, 4), "n": 5}
    body = form.format(condition)
    if holds:
        launch(body, inputs)
    else:
        fails(body, inputs)


@pytest.mark.parametrize(
    "call",
    [
        "tl.device_assert(x < 4, 'too large')",
        "tl.device_assert(x < 4, msg='too large')",
        "tl.device_assert(cond=x < 4, msg='too large', mask=None)",
        "tl.device_assert(x < 4, 'too large', x > 0)",
        "tl.device_assert(x < 4, 'too large', True)",
        "tl.device_assert(mask=x > 2, msg='too large', cond=x < 4)",
        "WORD: tl.constexpr = 'too ' + 'large'\ntl.device_assert(x < 4, WORD)",
        "assert x < 4, 'too large'",
        "assert (x < 4), ('too large')",
        "LIMIT: tl.constexpr = 4\nassert x < 4, f'too large'",
    ],
)
def test_spellings_and_messages(call):
    report = fails(call, numbers(1, 2, 3, 4))
    assert "kernel `kernel`: device-side assertion failed: too large" in report


def test_a_report_says_where_and_what():
    report = fails(
        "tl.device_assert(x * 2 < n, 'large', mask=x > 1)", {**numbers(1, 5, 3, 4), "n": 7}
    )
    assert "lane 1 of program (0, 0, 0)" in report
    assert "2 of 4 lanes fail" in report
    assert "`x * 2` is 10" in report and "`n` is 7" in report
    assert "tl.device_assert(x * 2 < n, 'large', mask=x > 1)" in report


@pytest.mark.parametrize(
    "condition, shown",
    [
        ("x < 4", ["`x` is 4"]),
        ("4 > x", ["`x` is 4"]),
        ("x + 1 < x * 1", ["`x + 1` is 2", "`x * 1` is 1"]),
        ("(x > 0) & (x < 4)", ["`x` is 4"]),
        ("x.to(tl.float32) * 0.5 < 2", ["`x.to(tl.float32) * 0.5` is 2.0"]),
        ("(x < 4) | (x > n)", ["`x` is 4", "`n` is 5"]),
    ],
)
def test_values_of_the_lane(condition, shown):
    for form in ASSERTIONS:
        report = fails(form.format(condition), {**numbers(1, 2, 3, 4), "n": 5})
        for text in shown:
            assert text in report


@pytest.mark.parametrize("shape, at", [((4, 8), (2, 5)), ((2, 1, 4), (1, 0, 3)), ((16,), (9,))])
def test_lanes_of_ranks(shape, at):
    x = np.zeros(shape, np.float32)
    x[at] = 1
    lane = str(at) if len(at) > 1 else at[0]
    assert f"lane {lane} of program (0, 0, 0)" in fails("assert x == 0", {"x": x})


def test_programs():
    report = fails("assert tl.program_id(1) < 2", grid=(1, 3, 1))
    assert "program (0, 2, 0)" in report


def test_masks():
    inputs = numbers(1, -1, 3, -1)
    launch("tl.device_assert(x > 0, 'm', mask=x != -1)", inputs)
    launch("tl.device_assert(x > 0, 'm', mask=False)", inputs)
    launch("tl.device_assert(x > 0, 'm', tl.sum(x) > 100)", inputs)
    launch("tl.device_assert(tl.sum(x) > 5, 'm', mask=x > 7)", inputs)
    assert "1 of 4 lanes fails" in fails(
        "tl.device_assert(x > 0, 'm', mask=tl.arange(0, 4) < 3)", inputs
    )
    assert "2 of 4 lanes fail" in fails("tl.device_assert(x > 0, 'm', mask=x)", inputs)


def test_nan_fails_every_comparison():
    inputs = {"x": np.array([1, np.nan, 2, 3], np.float32)}
    assert "lane 1 " in fails("assert x > 0", inputs)
    assert "lane 1 " in fails("assert x == x", inputs)
    launch("assert x != 0", inputs)


# ---- when -----------------------------------------------------------------------------------------


def test_ways_to_debug_mode():
    text = "def kernel(n):\n    tl.device_assert(n < 4, 'large')"
    for head in ("@triton.jit(debug=True)", "@triton.jit"):
        kernel = define(f"{head}\n{text}")["kernel"]
        options = {} if "debug" in head else {"debug": True}
        kernel[(1,)](3, **options)
        with pytest.raises(triton.DeviceAssertError, match="large"):
            kernel[(1,)](5, **options)


def test_debug_is_part_of_what_is_compiled():
    kernel = define("@triton.jit\ndef kernel(n):\n    assert n < 4")["kernel"]
    for _ in range(2):
        kernel[(1,)](5)
        kernel[(1,)](5, debug=False)
        with pytest.raises(triton.DeviceAssertError):
            kernel[(1,)](5, debug=True)


def test_debug_mode_by_the_environment(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import naiad as triton\n\n"
        "@triton.jit\ndef kernel(n):\n    assert n < 4, 'too much'\n\n"
        "kernel[(1,)](3)\nkernel[(1,)](5)\n"
    )
    # It is read when the package is imported.
    environment = {**os.environ, "TRITON_DEBUG": "1"}
    command = [sys.executable, script]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 1 and "too much" in done.stderr


@pytest.mark.parametrize("condition", ["False", "BLOCK > 8", "x.shape[0] == 3"])
def test_assert_of_a_constexpr_has_no_effect_without_debug(condition):
    body = f"BLOCK: tl.constexpr = 4\nassert {condition}, 'never'"
    launch(body, numbers(1, 2, 3, 4), debug=False)


@pytest.mark.parametrize("condition", ["False", "0", "BLOCK > 8"])
def test_constexprs(condition):
    body = f"BLOCK: tl.constexpr = 4\ntl.device_assert({condition}, 'never')"
    assert "never" in fails(body)


def test_what_was_stored_before_is_there():
    out = np.zeros(1, np.int32)
    with pytest.raises(triton.DeviceAssertError):
        launch("tl.store(out, 7)\nassert n < 4", {"out": out, "n": 5}, pointers=["out"])
    assert out[0] == 7


def test_in_branches_loops_and_functions():
    helper = functions(
        """
@triton.jit
def checked(x):
    tl.device_assert(x >= 0, "negative")
    return x
"""
    )
    launch("if n > 9:\n    assert n < 4", {"n": 5})
    fails("if n < 9:\n    assert n < 4", {"n": 5})
    report = fails("for i in range(5):\n    tl.device_assert(i < n, 'i')", {"n": 3})
    assert "`i` is 3" in report
    report = fails("checked(checked(x) - 2)", numbers(1, 2, 3, 4), names=helper)
    assert "negative" in report and "lane 0" in report
    launch("checked(x)", numbers(1, 2, 3, 4), names=helper)


def test_programs_that_wait_for_the_one_that_ends():
    """The first would tell the others to go on, and fails before."""
    kernel = define(
        """
        @triton.jit
        def kernel(flag, out):
            p = tl.program_id(0)
            tl.device_assert(p != 0, "the first")
            if p == 0:
                tl.atomic_xchg(flag, 1)
            while tl.atomic_add(flag, 0) == 0:
                pass
            tl.store(out + p, 1)
        """
    )["kernel"]
    flag, out = np.zeros(1, np.int32), np.zeros(8, np.int32)
    with pytest.raises(triton.DeviceAssertError, match="the first") as caught:
        kernel[(8,)](flag, out, debug=True)
    assert "in program (0, 0, 0)" in str(caught.value)


# ---- expect_zero ----------------------------------------------------------------------------------


@pytest.mark.parametrize("call", ["tl.expect_zero(x, m)", "tl.expect_zero(x=x, mask=m)"])
def test_expect_zero(call):
    x = np.array([1, 0, 0, 2], np.int32)
    kept = np.zeros(4, np.int32)
    for m in (np.array([0, 1, 1, 0], bool), np.zeros(4, bool)):
        inputs = {"x": x, "m": m, "out": kept}
        body = f"r = {call}\ntl.store(out + tl.arange(0, 4), r)"
        for debug in (False, True):
            kept[:] = -1
            launch(body, inputs, debug=debug, pointers=["out"])
            same(kept, x)
    report = fails(call, {"x": x, "m": np.array([0, 1, 1, 1], bool)})
    assert "expected to be 0" in report and "lane 3" in report


@pytest.mark.parametrize("name", ["int8", "uint64", "float16", "float32", "float64"])
def test_expect_zero_of_types(name):
    x = np.array([0, 0, 0, 3], name)
    if TYPES[name].is_float:
        x[1] = -0.0
    launch("tl.expect_zero(x, tl.arange(0, 4) < 3)", {"x": x})
    fails("tl.expect_zero(x, tl.arange(0, 4) < 4)", {"x": x})
    fails("tl.expect_zero(x, x == x)", {"x": x})
    if TYPES[name].is_float:
        fails("tl.expect_zero(x, x != x)", {"x": np.array([0, np.nan], name)})


# ---- overflow -------------------------------------------------------------------------------------

NARROW = [name for name in INTS if TYPES[name].bits < 64]
OPS = {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b}
FUNCTIONS = {"+": "tl.add", "-": "tl.sub", "*": "tl.mul"}


def pairs(name, op):
    """Pairs whose result fits and pairs whose result does not, by their exact values."""
    t = TYPES[name]
    corners = [
        0,
        1,
        2,
        3,
        7,
        t.high,
        t.high - 1,
        t.high // 2,
        t.low,
        *([-1, -2, t.low + 1] if t.low else []),
    ]
    fit, not_fit = [], []
    for a, b in itertools.product(corners, repeat=2):
        (fit if t.low <= OPS[op](a, b) <= t.high else not_fit).append((a, b))
    return fit, not_fit


@pytest.mark.parametrize("name", NARROW)
@pytest.mark.parametrize("op", OPS)
def test_overflow(op, name):
    fit, not_fit = pairs(name, op)
    kernel = define(
        f"@triton.jit\ndef kernel(x, y, out):\n    tl.store(out, tl.load(x) {op} tl.load(y))"
    )
    kernel = kernel["kernel"]
    for (a, b), fits in [*((p, True) for p in fit), *((p, False) for p in not_fit)]:
        x, y, out = np.array([a], name), np.array([b], name), np.zeros(1, name)
        if fits:
            kernel[(1,)](x, y, out, debug=True)
            assert out[0] == OPS[op](a, b)
            continue
        with pytest.raises(triton.DeviceAssertError) as caught:
            kernel[(1,)](x, y, out, debug=True)
        report = str(caught.value)
        assert f"{name} overflow detected for operation" in report
        assert f"is {OPS[op](a, b)}" in report or TYPES[name].bits == 32
        kernel[(1,)](x, y, out)
        assert out[0] == wrap(name, OPS[op](a, b))


@pytest.mark.parametrize("op", OPS)
def test_overflow_names_the_lane_and_the_expression(op):
    x = np.array([1, 2**30, 3, -(2**31)], np.int32)
    y = np.array([1, 2**30, 3, 2**31 - 1], np.int32) if op != "-" else ~x
    report = fails(f"r = x {op} y", {"x": x, "y": y})
    assert f"`x {op} y` is {OPS[op](*(int(v[1]) for v in (x, y)))}" in report


@pytest.mark.parametrize("op", OPS)
def test_overflow_by_functions_and_switches(op):
    x = {"x": np.array([2**30, -(2**31), 7, 9], np.int32)}
    y = "-5" if op == "+" else "5"
    f = FUNCTIONS[op]
    fails(f"{f}(x, {y})", x)
    fails(f"{f}(x, {y}, True)", x)
    fails(f"{f}(x=x, y={y}, sanitize_overflow=True)", x)
    launch(f"x {op} {y}", x, sanitize_overflow=False)
    fails(f"r = x\nr {op}= {y}", x)


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("argument", ["False", "sanitize_overflow=False"])
def test_overflow_switched_off_in_a_call(argument, op):
    launch(f"{FUNCTIONS[op]}(x, 5, {argument})", numbers(2**31 - 1, -(2**31)))


@pytest.mark.parametrize("name", ["int64", "uint64", "float32", "int1"])
@pytest.mark.parametrize("op", OPS)
def test_what_is_not_checked(op, name):
    inputs = {"x": samples(name, 16), "y": samples(name, 16, 1)}
    launch(f"x {op} y", inputs)


@pytest.mark.parametrize("body", ["x << 20", "x ^ -1", "x // 3", "x % 3", "x & 7", "~x", "x >> 1"])
def test_operators_that_do_not_overflow(body):
    launch(body, numbers(2**31 - 1, -(2**31), 5, 0))


def test_overflow_in_masked_lanes_of_offsets():
    """The classic: the number of a program times a stride does not fit."""
    kernel = define(
        """
        @triton.jit
        def kernel(p, stride, BLOCK: tl.constexpr):
            i = tl.program_id(0) * stride + tl.arange(0, BLOCK)
            tl.store(p + i, 1, mask=i < 4)
        """
    )["kernel"]
    p = np.zeros(4, np.int32)
    kernel[(2,)](p, 2**30, BLOCK=4, debug=True)
    with pytest.raises(triton.DeviceAssertError, match="overflow detected for operation"):
        kernel[(3,)](p, 2**30, BLOCK=4, debug=True)


# ---- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call, id",
    [
        ("tl.device_assert()", "bad-call"),
        ("tl.device_assert(x > 0, 'm', x > 0, 1)", "bad-call"),
        ("tl.device_assert(x > 0, x)", None),
        ("tl.expect_zero(x)", "bad-call"),
        ("assert undefined > 0", "undefined-name"),
        ("x.device_assert()", None),
    ],
)
def test_calls_that_are_refused(call, id):
    refused(call, id, x="int32")


@pytest.mark.parametrize(
    "call",
    ["tl.device_assert(x > 0, 'm', tl.arange(0, 4) > 0)", "tl.expect_zero(x, tl.arange(0, 4) > 0)"],
)
def test_masks_of_other_shapes(call):
    with pytest.raises(triton.CompilationError) as caught:
        launch(call, {"x": np.zeros(8, np.int32)})
    assert caught.value.diagnostic["id"] == "shape-mismatch"


# ---- accesses -------------------------------------------------------------------------------------


def strays(body, inputs, grid=(1,), **options):
    """The report of an access outside of memory, which debug mode finds on every machine."""
    with pytest.raises(triton.OutOfBoundsError) as caught:
        launch(body, inputs, pointers=list(inputs), grid=grid, **options)
    return str(caught.value)


def test_an_access_outside_of_memory():
    x, y = np.zeros(13, np.float32), np.zeros(16, np.float32)
    body = "i = tl.program_id(0) * 8 + tl.arange(0, 8)\ntl.store(y + i, tl.load(x + i))"
    report = strays(body, {"x": x, "y": y}, grid=(2,))
    assert "kernel `kernel` reads outside the memory of `x`: element 13" in report
    assert "lane 5 of program (1, 0, 0)" in report
    assert "its memory holds elements 0 to 12" in report
    assert "tl.store(y + i, tl.load(x + i))" in report


@pytest.mark.parametrize("num_warps", [1, 4])
@pytest.mark.parametrize(
    "access, said",
    [
        ("tl.load(x + i)", "reads outside the memory of `x`: element 1000"),
        ("tl.load(x - 1 - i)", "reads outside the memory of `x`: element -1"),
        ("tl.store(x + i, i)", "writes outside the memory of `x`: element 1000"),
        ("tl.atomic_add(x + i, i)", "atomically updates outside the memory of `x`: element 1000"),
        ("tl.atomic_cas(x + i, i, i)", "atomically updates outside the memory of `x`: element 1000"),
        ("tl.load(x + i, mask=i != 1000)", "reads outside the memory of `x`: element 1001"),
        ("tl.load(x + 1000)", "reads outside the memory of `x`: element 1000"),
        ("tl.store(x + 1000, 1)", "writes outside the memory of `x`: element 1000"),
        ("tl.atomic_xchg(x + 1000, 1)", "atomically updates outside the memory of `x`: element 1000"),
    ],
)
def test_accesses_of_every_kind(access, said, num_warps):
    body = f"i = tl.arange(0, 1024)\nv = {access}"
    if "load" in access:
        body += "\ntl.store(x + tl.arange(0, 1), tl.sum(v + tl.zeros((1024,), tl.int32)))"
    elif "store" in access:
        body = body.replace("v = ", "")
    assert said in strays(body, {"x": np.zeros(1000, np.int32)}, num_warps=num_warps)


def test_memory_that_is_not_to_be_written():
    x, y = np.zeros(8, np.int32), np.zeros(8, np.int32)
    y.flags.writeable = False
    report = strays("tl.store(y + tl.arange(0, 8), tl.load(x + tl.arange(0, 8)))", {"x": x, "y": y})
    assert "writes `y`, which is read-only" in report


@pytest.mark.parametrize("num_warps", [1, 4])
def test_what_may_be_accessed(num_warps):
    """To the last element, through views, masked, and by a pointer that leads to another argument."""
    base = np.arange(64, dtype=np.int32)
    x, out = base[8:24:2], np.zeros(1, np.int32)
    body = """
        i = tl.arange(0, 128)
        a = tl.load(x - 8 + i, mask=i < 64)
        b = tl.load(x + i * 1000000, mask=i < 1)
        p = x if n > 3 else out
        c = tl.load(p + i, mask=i < 1)
        tl.store(out + tl.arange(0, 1), tl.sum(a) + tl.sum(b) + tl.sum(c))
    """
    launch(body, {"x": x, "out": out, "n": 5}, pointers=["x", "out"], num_warps=num_warps)
    assert out[0] == base.sum() + 8 + 8
