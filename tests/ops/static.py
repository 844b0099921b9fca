"""`tl.static_assert` and `tl.static_print`."""

import numpy as np
import pytest

import naiad as triton

from ._common import compiles, define, refused, tiles

COVERS = ["static_assert", "static_print"]


@pytest.mark.parametrize(
    "condition",
    [
        "True",
        "1",
        "2 > 1",
        "x.dtype == tl.float32",
        "x.shape[0] == 8",
        "N",
        "not None",
        "N is not None",
        "1 if N else 0",
        "isinstance(N, int)",
    ],
)
def test_what_holds(condition):
    compiles(
        "N: tl.constexpr = 4",
        f"tl.static_assert({condition})",
        f"tl.static_assert({condition}, 'no')",
        x="float32",
    )


@pytest.mark.parametrize(
    "condition", ["False", "0", "2 < 1", "x.dtype == tl.int8", "x.shape[0] == 4", "N != 4"]
)
def test_what_does_not(condition):
    for call, message in [
        (f"tl.static_assert({condition})", "static assertion failed"),
        (f"tl.static_assert({condition}, 'N is ' + 'wrong')", "N is wrong"),
        (f"tl.static_assert({condition}, f'N is {{N}}')", "N is 4"),
    ]:
        body = f"N: tl.constexpr = 4\n{call}"
        refused(
            body, "static-assert", message, error=triton.CompileTimeAssertionFailure, x="float32"
        )


def test_only_what_is_compiled_is_asserted():
    compiles(
        "N: tl.constexpr = 4",
        "if N > 8:\n    tl.static_assert(False)",
        "for i in tl.static_range(0):\n    tl.static_assert(False)",
    )
    refused("if n > 8:\n    tl.static_assert(False)", "static-assert", n=5)
    refused("for i in range(0):\n    tl.static_assert(False)", "static-assert")


def test_an_assertion_in_a_function_that_is_called():
    before = "@triton.jit\ndef f(x):\n    tl.static_assert(x.shape[0] == 4, 'four')\n    return x\n"
    compiles("pass", x="float32[4]")
    refused("f(x)", "static-assert", "four", before=before, x="float32")


@pytest.mark.parametrize("condition", ["n > 3", "x", "tl.program_id(0) == 0"])
def test_conditions_of_run_time(condition):
    refused(
        f"tl.static_assert({condition})", "not-constexpr", "known at compile time", n=5, x="float32"
    )


def test_calls_that_are_refused():
    refused("tl.static_assert()", "bad-call")
    refused("tl.static_assert(True, 'a', 'b')", "bad-call")


# ---- printing -------------------------------------------------------------------------------------


def printed(capfd, *lines, **inputs):
    capfd.readouterr()
    compiles(*lines, **inputs)
    return capfd.readouterr().out


LINES = [
    ("1", "1\n"), ("'a', 2, 2.5, True, None", "a 2 2.5 True None\n"), ("x", "float32[8]\n"),
    ("x.dtype", "fp32\n"), ("N", "4\n"), ("f'N={N}'", "N=4\n"), ("", "\n"), ("'a' + 'b'", "ab\n"),
    ("tl.arange(0, 16)", "int32[16]\n"), ("tl.zeros((2, 4), tl.int8)", "int8[2, 4]\n"), ("n", "int32[]\n"),
]  # fmt: skip


@pytest.mark.parametrize("values, want", LINES)
def test_static_print(values, want, capfd):
    # Once for each compilation, and without brackets or spaces that differ between versions.
    got = printed(capfd, "N: tl.constexpr = 4", f"tl.static_print({values})", x="float32", n=7)
    assert got.replace(" ", "") == want.replace(" ", "")


def test_static_print_happens_while_compiling(capfd):
    kernel = define(
        """
        @triton.jit
        def kernel(out, N: tl.constexpr):
            tl.static_print("compiling for", N)
            tl.store(out, N)
        """
    )["kernel"]
    capfd.readouterr()
    for n in (1, 2, 1, 2):
        kernel[(3,)](np.zeros(1, np.int32), n)
    assert capfd.readouterr().out == "compiling for 1\ncompiling for 2\n"


def test_static_print_in_branches_and_loops(capfd):
    body = """
        N: tl.constexpr = 4
        if N > 8:
            tl.static_print("dead")
        for i in tl.static_range(3):
            tl.static_print("i", i)
    """
    capfd.readouterr()
    tiles(body)
    assert capfd.readouterr().out == "i 0\ni 1\ni 2\n"


@pytest.mark.parametrize(
    "arguments, want",
    [
        ("1, 2, sep='-'", "1-2\n"),
        ("1, end='!'", "1!"),
        ("1, 2, sep='', end=''", "12"),
        ("1, 2, sep=' ', flush=True", "1 2\n"),
    ],
)
def test_static_print_takes_the_words_of_print(arguments, want, capfd):
    assert printed(capfd, f"tl.static_print({arguments})") == want
