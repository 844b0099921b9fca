"""`tl.device_print` and `print`: both layouts against a model of their text, choices, prefixes, refusals."""

import io
import math
import re
import sys

import numpy as np
import pytest

import naiad as triton

from ._common import _arguments, _kernel_text, define, functions, refused
from ._numbers import ALL, TYPES, Typed, decode, encode, samples

COVERS = ["device_print", "python.print"]


@pytest.fixture
def printed(capsys, monkeypatch):
    """What the body prints with these settings."""

    def printed(body, inputs=None, settings="", grid=(1,), before="", names=None):
        monkeypatch.setenv("NAIAD_PRINT", settings)
        text = before + "\n" + _kernel_text(body, {}, inputs or {}, (), {})
        kernel = define(text, **(names or {}))["kernel"]
        capsys.readouterr()
        kernel[grid](*_arguments(inputs or {}))
        captured = capsys.readouterr()
        assert captured.err == ""
        return captured.out

    return printed


def images(typed):
    bits = TYPES[typed.name].bits
    return np.ravel(typed.array).view(f"u{max(bits // 8, 1)}").tolist()


def as_c(typed, hex=False):
    """Each element as C's `printf` has it."""
    t = TYPES[typed.name]
    if hex:
        return [f"0x{image:0{max(t.bits // 4, 1)}x}" for image in images(typed)]
    values = np.ravel(decode(typed.name, typed.array)).tolist()
    if t.is_float:
        return ["nan" if math.isnan(v) else f"{v:f}" for v in values]
    return [str(int(v)) for v in values]


def lines(prefix, typed, operand="", hex=False, program=(0, 0, 0)):
    shape = typed.array.shape
    widths = [len(str(n)) for n in shape]
    out = []
    for index, text in zip(np.ndindex(*shape), as_c(typed, hex)):
        places = ", ".join(f"{i:{w}}" for i, w in zip(index, widths))
        out.append(f"pid {program} idx ({places}){prefix}{operand}{text}\n")
    return "".join(out)


# ---- a line for each element ----------------------------------------------------------------------


@pytest.mark.parametrize("hex", [False, True])
@pytest.mark.parametrize("name", ALL)
def test_lines_of_every_type(printed, name, hex):
    x = Typed(name, samples(name, 64))
    out = printed(f"tl.device_print('x', x, hex={hex})", {"x": x}, "layout=lines")
    assert out == lines(" x: ", x, hex=hex)


@pytest.mark.parametrize("shape", [(), (1,), (16,), (2, 4), (16, 2), (2, 1, 4), (2, 2, 2, 2)])
def test_lines_of_every_rank(printed, shape):
    x = Typed("int32", np.asarray(np.arange(int(np.prod(shape)), dtype=np.int32).reshape(shape)))
    assert printed("tl.device_print('x', x)", {"x": x}, "layout=lines") == lines(" x: ", x)


def test_several_values(printed):
    x, y = Typed("float32", np.arange(4, dtype=np.float32)), Typed("int8", np.array(-3, np.int8))
    out = printed("tl.device_print('v', x, y, 7)", {"x": x, "y": y}, "layout=lines")
    want = lines(" v: ", x, "(operand 0) ") + lines(" v: ", y, "(operand 1) ")
    assert out == want + "pid (0, 0, 0) idx () v: (operand 2) 7\n"


@pytest.mark.parametrize(
    "call, want",
    [
        ("tl.device_print('n', n)", " n: 5"),
        ("tl.device_print('n:', n)", " n: 5"),
        ("tl.device_print('n: ', n)", " n: 5"),
        ("tl.device_print(' n', n)", " n: 5"),
        ("tl.device_print('a b = c', n)", " a b = c: 5"),
        ("tl.printf('n', n)", " n: 5"),
        ("print('n', n)", " n: 5"),
        ("print('n', n, hex=True)", " n: 0x00000005"),
        ("tl.device_print('100% {n} %d', n)", " 100% {n} %d: 5"),
        ("tl.device_print('n', n, n > 3, hex=False)", None),
    ],
)
def test_prefixes(printed, call, want):
    out = printed(call, {"n": 5}, "layout=lines")
    if want is None:
        assert (
            out == "pid (0, 0, 0) idx () n: (operand 0) 5\npid (0, 0, 0) idx () n: (operand 1) 1\n"
        )
    else:
        assert out == f"pid (0, 0, 0) idx (){want}\n"


def test_prefixes_known_at_compile_time(printed):
    body = "WORD: tl.constexpr = 'a' + 'b'\ntl.device_print(WORD, n)"
    assert printed(body, {"n": 5}, "layout=lines") == "pid (0, 0, 0) idx () ab: 5\n"
    names = {"LABEL": triton.language.constexpr("global")}
    out = printed("tl.device_print(LABEL, n)", {"n": 5}, "layout=lines", names=names)
    assert out == "pid (0, 0, 0) idx () global: 5\n"


def test_a_prefix_alone(printed):
    for call in ("tl.device_print('here')", "print('here')"):
        assert printed(call, settings="layout=lines") == "pid (0, 0, 0) here\n"
        assert printed(call) == "kernel program (0, 0, 0)  here\n"


def test_values_without_a_prefix(printed):
    assert re.fullmatch(
        r"pid \(0, 0, 0\) idx \(\):? ?:? 5\n", printed("print(n)", {"n": 5}, "layout=lines")
    )
    assert printed("print(n)", {"n": 5}) == "kernel program (0, 0, 0)  5 (int32)\n"


# ---- tiles ----------------------------------------------------------------------------------------


def cells(text):
    return re.findall(r"[^\s\[\]]+", text)


@pytest.mark.parametrize("name", ALL)
def test_tiles_of_every_type(printed, name):
    """Digits enough that each number can be read back."""
    x = samples(name, 64)
    head, rest = printed("tl.device_print('x', x)", {"x": Typed(name, x)}).split("\n", 1)
    assert head == f"kernel program (0, 0, 0)  x: {name}[64]"
    got = cells(rest)
    if TYPES[name].kind == "bool":
        assert got == [str(bool(v)) for v in x]
    elif TYPES[name].is_int:
        assert [int(v) for v in got] == x.tolist()
    else:
        got, numbers = np.array([float(v) for v in got]), decode(name, x)
        finite = np.isfinite(numbers)
        # Infinities have words of their own, which conversions to fp8 would not keep.
        np.testing.assert_array_equal(got[~finite], numbers[~finite])
        back = decode(name, encode(name, got[finite]))
        np.testing.assert_array_equal(back, numbers[finite])
        np.testing.assert_array_equal(np.signbit(got[finite]), np.signbit(numbers[finite]))


@pytest.mark.parametrize("name", ["int8", "uint16", "int64", "float16", "float64", "float8e5"])
def test_hexadecimal(printed, name):
    x = Typed(name, samples(name, 16))
    out = printed("tl.device_print('x', x, hex=True)", {"x": x})
    assert cells(out.split("\n", 1)[1]) == as_c(x, hex=True)


def test_layouts_of_ranks(printed):
    x = np.arange(8, dtype=np.int32) * 5
    head = "kernel program (0, 0, 0)  x: int32"
    assert printed("print('x', x)", {"x": x}) == head + "[8]\n[ 0  5 10 15 20 25 30 35]\n"
    out = printed("print('x', x)", {"x": x.reshape(2, 4)})
    assert out == head + "[2, 4]\n[[ 0  5 10 15]\n [20 25 30 35]]\n"
    out = printed("print('x', x)", {"x": x.reshape(2, 2, 2)})
    assert out == head + "[2, 2, 2]\n[[[ 0  5]\n  [10 15]]\n\n [[20 25]\n  [30 35]]]\n"
    out = printed("print('x', x)", {"x": x[:1]})
    assert out == head + "[1]\n[0]\n"


def test_large_tiles_lose_their_middle(printed):
    out = printed("print('i', tl.arange(0, 1024))")
    assert out.splitlines()[1] == "[   0    1    2 ... 1021 1022 1023]"
    assert "..." not in printed("print('i', tl.arange(0, 512))")
    assert (
        len(printed("print('i', tl.arange(0, 1024))", settings="layout=lines").splitlines()) == 1024
    )


# ---- choices --------------------------------------------------------------------------------------


def test_programs(printed):
    body = (
        "tl.device_print('at', tl.program_id(0) * 100 + tl.program_id(1) * 10 + tl.program_id(2))"
    )
    grid = (2, 3, 2)
    every = [(x, y, z) for x in range(2) for y in range(3) for z in range(2)]
    for settings, f in [
        ("", lambda p: True),
        (";program=1", lambda p: p[0] == 1),
        (";program=*,2", lambda p: p[1] == 2),
        (";program=0,*,1", lambda p: p[0] == 0 and p[2] == 1),
        (";program=1,2,0", lambda p: p == (1, 2, 0)),
        (";program=2", lambda p: False),
    ]:
        out = printed(body, settings="layout=lines" + settings, grid=grid)
        want = [f"pid {p} idx () at: {p[0] * 100 + p[1] * 10 + p[2]}" for p in every if f(p)]
        assert sorted(out.splitlines()) == sorted(want)


@pytest.mark.parametrize(
    "lanes, index",
    [
        ("2", np.s_[2:3, :]),
        ("0:2", np.s_[0:2, :]),
        ("*,:3", np.s_[:, :3]),
        ("1:,5:", np.s_[1:, 5:]),
        ("3,7", np.s_[3:4, 7:8]),
        ("0:99,8", np.s_[:, 8:9]),
    ],
)
def test_lanes(printed, lanes, index):
    x = np.arange(32, dtype=np.int32).reshape(4, 8)
    out = printed("print('x', x)", {"x": x}, f"layout=lines;lanes={lanes}")
    assert [int(line.rsplit(" ", 1)[1]) for line in out.splitlines()] == x[index].ravel().tolist()
    out = printed("print('x', x)", {"x": x}, f"lanes={lanes}")
    assert [int(v) for v in cells("".join(out.splitlines()[1:]))] == x[index].ravel().tolist()


@pytest.mark.parametrize("settings", ["layout=off", "layout=off;program=0", "program=9"])
def test_nothing(printed, settings):
    assert printed("print('x', 1)", settings=settings) == ""


@pytest.mark.parametrize(
    "settings, message",
    [
        ("layout=rows", "there is no layout `rows`"),
        ("tile", "printing has no setting `tile`"),
        ("program=x", "neither a coordinate nor"),
        ("program=0,0,0,0", "at most three axes"),
        ("lanes=a:b", "no range"),
    ],
)
def test_settings_that_are_wrong(printed, settings, message):
    with pytest.raises(triton.LaunchError, match=re.escape(message)):
        printed("print('x', 1)", settings=settings)


# ---- where prints stand ---------------------------------------------------------------------------


def test_in_the_order_of_the_program(printed):
    body = """
        for i in range(3):
            tl.device_print('i', i)
            if i == 1:
                print('one')
        tl.device_print('end', n)
    """
    want = ["i: 0", "i: 1", "one", "i: 2", "end: 8"]
    out = printed(body, {"n": 8}, "layout=lines")
    assert [re.sub(r"pid \(0, 0, 0\) (idx \(\) )?", "", line) for line in out.splitlines()] == want


def test_from_functions(printed):
    helper = """
@triton.jit
def tell(x, WORD: tl.constexpr):
    tl.device_print(WORD, x)
    return x + 1
"""
    out = printed("tell(tell(n, 'a'), 'b')", {"n": 1}, "layout=lines", names=functions(helper))
    assert out == "pid (0, 0, 0) idx () a: 1\npid (0, 0, 0) idx () b: 2\n"


def test_a_branch_that_is_not_taken(printed):
    assert printed("if n > 5:\n    print('large')\nelse:\n    print('small')", {"n": 3}) == (
        "kernel program (0, 0, 0)  small\n"
    )


def test_views_print_what_is_loaded(printed):
    x = Typed("int16", np.arange(64, dtype=np.int16).reshape(8, 8)[::2, 4:].T)
    assert printed("tl.device_print('x', x)", {"x": x}, "layout=lines") == lines(" x: ", x)


def test_pointers(printed, monkeypatch):
    kernel = define("@triton.jit\ndef kernel(p):\n    tl.device_print('p', p + 1)")["kernel"]
    monkeypatch.setenv("NAIAD_PRINT", "layout=lines")
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    x = np.zeros(4, np.int32)
    kernel[(1,)](x)
    assert sys.stdout.getvalue() == f"pid (0, 0, 0) idx () p: {hex(x.ctypes.data + 4)}\n"


# ---- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call, id, message",
    [
        ("tl.device_print(n)", "bad-argument", "the prefix of `tl.device_print` must be a string"),
        ("tl.device_print(n, 'x')", "bad-argument", "must be a string"),
        ("tl.device_print('x', n, hex=n > 0)", "not-constexpr", ""),
        ("tl.device_print('x', (n, n))", None, ""),
        ("tl.device_print('x', undefined)", "undefined-name", ""),
        ("tl.device_print('x', n, sep=' ')", "bad-call", ""),
        ("print('x', n, end='')", "bad-call", ""),
    ],
)
def test_prints_that_are_refused(call, id, message):
    refused(call, id, message, n="scalar int32")


@pytest.mark.parametrize("prefix", ["'a\\nb'", "'a\\tb\\n'"])
def test_prefixes_that_would_break_the_lines(prefix, capfd):
    """What is no printable character becomes a space, and none stands at an end."""
    kernel = define(f"@triton.jit\ndef kernel(n):\n    tl.device_print({prefix}, n)\n")["kernel"]
    kernel[(1,)](7)
    assert "a b: 7 " in capfd.readouterr().out
