"""Python's functions in kernels: `len min max int float isinstance getattr hasattr`."""

import numpy as np
import pytest

from ._common import compiles, refused, tiles, value

COVERS = [
    "python.len", "python.min", "python.max", "python.int", "python.float", "python.isinstance",
    "python.getattr", "python.hasattr",
]  # fmt: skip

HOLDS = [
    "len((1, 2, 3)) == 3", "len(()) == 0", "len([1, (2, 3)]) == 2", "len(x.shape) == 2", "len('abc') == 3",
    "len(T) == 2", "len((x, None)) == 2",
    "min(3, 1, 2) == 1", "max(3, 1, 2) == 3", "min(1, 2.5) == 1", "max(1, 2.5) == 2.5", "max(-1, -2) == -1",
    "min(N, 2) == 2", "max(N, 2 * N) == 8", "min((4, 2)) == 2", "max([4, 2]) == 4", "max(x.shape[0], 3) == 4",
    "int(2.9) == 2", "int(-2.9) == -2", "int(True) == 1", "int(N) == 4", "int(7) // 2 == 3",
    "float(3) == 3.0", "float(3) / 2 == 1.5", "float('inf') > 1e300", "float('-inf') < -1e300",
    "float('1e3') == 1000", "float('nan') != float('nan')", "float(True) == 1.0",
    "isinstance(N, int)", "isinstance(2.5, float)", "isinstance(True, int)", "not isinstance(2.5, int)", "not isinstance(N, float)",
    "isinstance(x, tl.tensor)", "isinstance(n, tl.tensor)", "not isinstance(N, tl.tensor)",
    "isinstance(N, tl.constexpr)", "not isinstance(x, tl.constexpr)", "isinstance(tl.int8, tl.dtype)",
    "isinstance(x.dtype, tl.dtype)", "isinstance(N, (float, int))", "not isinstance(None, int)",
    "isinstance(x.shape, tl.tuple)", "isinstance(T, (int, tl.tuple))", "not isinstance(x, (int, float))",
    "getattr(x, 'dtype') == tl.float16", "getattr(x, 'nothing', 7) == 7", "getattr(x, 'shape')[1] == 8",
    "getattr(tl, 'int8') == tl.int8", "getattr(x, 'dtype', None) == tl.float16",
    "hasattr(x, 'dtype')", "hasattr(x, 'to')", "not hasattr(x, 'nothing')", "hasattr(tl, 'load')",
    "not hasattr(tl, 'lode')", "not hasattr(N, 'shape')", "hasattr(x.dtype, 'is_floating')",
]  # fmt: skip


@pytest.mark.parametrize("condition", HOLDS)
def test_what_holds_at_compile_time(condition):
    compiles(
        "N: tl.constexpr = 4",
        "T = (1, 2)",
        f"tl.static_assert({condition})",
        x="float16[4, 8]",
        n=7,
    )


def test_results_are_constexprs():
    body = "N: tl.constexpr = 4\nr = tl.arange(0, max(N, 8)) + tl.zeros((int(8.0),), tl.int32) + len((1, 2)) + min(N, 9)"
    assert tiles(body, r=("int32", (8,))).tolist() == list(range(6, 14))


@pytest.mark.parametrize(
    "expression, dtype, want",
    [
        ("min(n, 5)", "int32", 5), ("max(n, 5)", "int32", 7), ("min(n, 100, 3)", "int32", 3), ("min(5, n, m)", "int32", 2),
        ("max(n, 7.5)", "float32", 7.5), ("max(f, n)", "float32", 7.0), ("min(n, m)", "int32", 2),
        ("max(tl.program_id(0), 3)", "int32", 3), ("max(n, b)", "int64", 2**40),
    ],
)  # fmt: skip
def test_extrema_of_scalars(expression, dtype, want):
    assert value(expression, dtype, (), {"n": 7, "m": 2, "f": 2.5, "b": 2**40}) == want


def test_extrema_ignore_nan_as_those_of_the_language():
    for function in ("min", "max"):
        assert (
            value(f"{function}(x, y)", "float32", (), {"x": np.float32(np.nan), "y": np.float32(2)})
            == 2
        )


@pytest.mark.parametrize("function", ["int", "float"])
def test_run_time_values_are_not_converted(function):
    refused(f"{function}(n)", "not-constexpr", "known at compile time", n=7)
    refused(f"{function}(x)", "not-constexpr", x="float32")
    refused(f"{function}()", "bad-call")


@pytest.mark.parametrize(
    "call, id",
    [
        ("len(n)", "bad-argument"), ("len(5)", "bad-argument"), ("len()", "bad-call"), ("len((1,), (2,))", "bad-call"),
        ("min()", "bad-call"), ("max(None, 1)", None), ("float('abc')", "bad-argument"),
        ("getattr(x, 'nothing')", "unknown-attribute"), ("getattr(x)", "bad-call"), ("hasattr(x)", "bad-call"),
        ("isinstance(x)", "bad-call"), ("max(p, 1)", None),
    ],
)  # fmt: skip
def test_calls_that_are_refused(call, id):
    refused(call, id, n=7, x="float32", p="int32", pointers="p")


@pytest.mark.parametrize(
    "call",
    [
        "abs(n)",
        "sum((1, 2))",
        "bool(n)",
        "str(3)",
        "enumerate((1,))",
        "zip((1,), (2,))",
        "any((1,))",
        "all((1,))",
        "round(2.5)",
        "pow(2, 3)",
        "sorted((1,))",
        "map(n, n)",
    ],
)
def test_functions_that_kernels_lack(call):
    refused(call, None, n=7)
