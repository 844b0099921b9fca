"""`tl.device_assert`, `tl.expect_zero`, `tl.device_print` and Python's `print`."""

import re

import numpy as np
import pytest

import naiad as triton

from ._common import compiles, define, refused, same, value
from ._numbers import ALL, TYPES, Typed, samples

COVERS = ["device_assert", "expect_zero", "device_print", "python.print"]

I = "tl.arange(0, 8)"


def runs(body, debug, *, call=False):
    """Whether the kernel runs; in debug mode by its decorator or by its call."""
    text = f"@triton.jit{'' if call else f'(debug={debug})'}\ndef kernel(p, n):\n    {body}\n    tl.store(p, 1)\n"
    kernel = define(text)["kernel"]
    p = np.zeros(8, np.int32)
    try:
        kernel[(2,)](p, 5, **({"debug": debug} if call else {}))
    except triton.DeviceAssertError as e:
        return str(e)
    assert p[0] == 1
    return True


FAILS = [
    "tl.device_assert(n > 5)", f"tl.device_assert({I} < 7, 'too far')", "tl.device_assert(False, msg='no')",
    f"tl.device_assert({I} < 7, 'a', {I} < 8)", f"tl.device_assert(cond={I} < 7, mask={I} > 3)",
    "tl.device_assert(tl.program_id(0) == 0)", "tl.device_assert(n - 5)", "assert n > 5", "assert n > 5, 'text'",
    f"tl.expect_zero({I}, {I} < 8)", "tl.expect_zero(n, True)",
]  # fmt: skip
HOLDS = [
    "tl.device_assert(n == 5)", f"tl.device_assert({I} < 8, 'fine')", "tl.device_assert(True)",
    f"tl.device_assert({I} < 7, 'a', {I} < 7)", f"tl.device_assert({I} < 7, mask=False)", "assert n == 5",
    f"tl.expect_zero({I}, {I} < 1)", f"tl.expect_zero({I} * 0, True)",
]  # fmt: skip


@pytest.mark.parametrize("call", [False, True])
@pytest.mark.parametrize("body", FAILS)
def test_what_fails_in_debug_mode_only(body, call):
    assert runs(body, False, call=call) is True
    assert runs(body, True, call=call) is not True


@pytest.mark.parametrize("body", HOLDS)
def test_what_holds(body):
    assert runs(body, False) is True and runs(body, True) is True


def test_the_message_is_told():
    assert "too far" in runs(f"tl.device_assert({I} < 7, 'too far')", True)


@pytest.mark.parametrize(
    "call",
    [
        "tl.device_assert()",
        "tl.device_assert(n > 5, n)",
        f"tl.device_assert({I} < 7, 'a', tl.arange(0, 4) < 3)",
    ],
)
def test_assertions_that_are_refused(call):
    text = f"@triton.jit(debug=True)\ndef kernel(n):\n    {call}\n"
    with pytest.raises(triton.CompilationError):
        define(text)["kernel"][(1,)](5)


@pytest.mark.parametrize("name", ALL)
def test_expect_zero_is_its_operand(name):
    x = samples(name, 8)
    for call in (f"tl.expect_zero(x, {I} < 0)", "tl.expect_zero(x=x, mask=False)"):
        assert value(call, name, inputs={"x": Typed(name, x)}).tobytes() == x.tobytes()


# ---- overflow, which debug mode watches -----------------------------------------------------------


@pytest.mark.parametrize("name", ["int8", "int32", "uint16", "uint32"])
@pytest.mark.parametrize("symbol", ["+", "-", "*"])
def test_overflow_is_found_in_debug_mode(symbol, name):
    t = TYPES[name]
    kernel = define(
        f"@triton.jit(debug=True)\ndef kernel(p, q):\n    tl.store(p, tl.load(p) {symbol} tl.load(q))\n"
    )["kernel"]
    bad = {"+": (t.high, 1), "-": (t.low, 1), "*": (t.high, 2)}[symbol]
    with pytest.raises(triton.DeviceAssertError):
        kernel[(1,)](*(np.array([v], t.storage) for v in bad))
    kernel[(1,)](*(np.array([v], t.storage) for v in bad), sanitize_overflow=False)
    kernel[(1,)](np.array([5], t.storage), np.array([3], t.storage))


# ---- printing -------------------------------------------------------------------------------------

def printed(capfd, body, grid=(1,), **inputs):
    kernel = define(f"@triton.jit\ndef kernel({', '.join(inputs)}):\n    {body}\n")["kernel"]
    capfd.readouterr()
    kernel[grid](*inputs.values())
    return capfd.readouterr().out


@pytest.mark.parametrize(
    "body, want",
    [
        ("tl.device_print('x', n)", r"x: 7\b"),
        ("print('x', n)", r"x: 7\b"),
        ("tl.device_print('x: ', n)", r"x: +7\b"),
        ("tl.device_print('x', 1.5)", r"x: 1\.5"),
        ("tl.device_print('x', n, hex=True)", r"x: 0x0*7\b"),
        ("tl.device_print('x', tl.arange(3, 5))", r"x(.|\n)*\b3\b(.|\n)*\b4\b"),
        ("tl.device_print('x', n, n * 2)", r"x(.|\n)*\b7\b(.|\n)*\b14\b"),
        ("tl.device_print('only words')", r"only words"),
        ("print('a', 'b', n)", r"a b: 7\b"),
        ("print(n)", r"\b7\b"),
    ],
)
def test_what_is_printed(body, want, capfd):
    assert re.search(want, printed(capfd, body, n=7))


def test_every_program_prints(capfd):
    text = printed(capfd, "tl.device_print('x', tl.program_id(1))", (2, 3), n=7)
    found = re.findall(r"\((\d), (\d), 0\).*x: (\d)", text)
    assert sorted(found) == [(str(i), str(j), str(j)) for i in range(2) for j in range(3)]


@pytest.mark.parametrize(
    "call", ["tl.device_print(n)", "tl.device_print(tl.arange(0, 4))", "tl.device_print('x', None)"]
)
def test_prints_that_are_refused(call):
    refused(call, None, n=7)


def test_printing_changes_nothing():
    body = f"x = {I} * 2\ntl.device_print('x', x, hex=True)\nprint('y', x)"
    compiles(body)
    same(
        value("x", "int32", inputs={"x": np.arange(4, dtype=np.int32)}),
        np.arange(4, dtype=np.int32),
    )
