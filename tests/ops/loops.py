"""`range`, `tl.range`, `tl.static_range`, `while`, `tl.condition`."""

import numpy as np
import pytest

from ._common import compiles, define, refused, tiles, value

COVERS = ["range", "static_range", "condition", "python.range"]

BOUNDS = [
    "(5,)", "(0,)", "(-3,)", "(2, 7)", "(7, 2)", "(-2, 2)", "(0, 10, 3)", "(0, 9, 3)", "(10, 0, -3)",
    "(10, 1, -3)", "(0, 5, -1)", "(3, 4, 100)", "(-5, 5, 2)", "(1, 2)",
]  # fmt: skip


def digits(loop, inputs=None, **options):
    """The indices of a loop, as a run of decimals."""
    body = f"r = 0\nfor i in {loop}:\n    r = r * 100 + i + 50"
    return int(tiles(body, inputs or {}, r="int32" if not options else options["r"]))


def expect(indices):
    r = 0
    for i in indices:
        r = (r * 100 + i + 50 + 2**31) % 2**32 - 2**31
    return r


@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("function", ["range", "tl.range", "tl.static_range"])
def test_constant_bounds(function, bounds):
    args = ", ".join(map(str, eval(bounds)))
    assert digits(f"{function}({args})") == expect(range(*eval(bounds)))


@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("function", ["range", "tl.range"])
def test_run_time_bounds(function, bounds):
    bounds = eval(bounds)
    start, stop, step = (bounds if len(bounds) > 1 else (0, *bounds)) + (1,) * (
        3 - max(len(bounds), 2)
    )
    want = expect(range(*bounds))
    assert digits(f"{function}(a, b, {step})", {"a": start, "b": stop}) == want
    if step > 0:
        assert digits(f"{function}(a, b, c)", {"a": start, "b": stop, "c": step}) == want
    if start == 0 and step == 1:
        assert digits(f"{function}(b)", {"b": stop}) == want


@pytest.mark.parametrize("function", ["tl.range", "tl.static_range"])
@pytest.mark.parametrize(
    "arguments", ["arg1=2, arg2=8, step=2", "2, 8, step=2", "2, arg2=8, step=2"]
)
def test_keywords(arguments, function):
    assert digits(f"{function}({arguments})") == expect(range(2, 8, 2))


@pytest.mark.parametrize(
    "arguments",
    [
        "0, 4, num_stages=3", "0, 4, 1, loop_unroll_factor=2", "4, disallow_acc_multi_buffer=True",
        "4, flatten=True", "4, warp_specialize=False", "4, disable_licm=True", "0, 4, step=1",
        "0, arg2=4", "arg1=0, arg2=4, step=1, num_stages=None", "0, 4, 1, 2, 4, False, False, False, False",
    ],
)  # fmt: skip
def test_advice_to_the_compiler(arguments):
    assert digits(f"tl.range({arguments})") == expect(range(4))


def test_keywords_that_python_lacks_are_refused_or_ignored():
    """Triton ignores them; here they may be refused, but not change the loop."""
    compiles("for i in tl.range(4, num_stages=2):\n    pass")
    refused("for i in tl.range(4, stages=2):\n    pass", "bad-call")
    refused("for i in tl.range():\n    pass", "bad-call")


TYPES = [
    ("range(0, n)", 5, "int32"), ("range(n)", 5, "int32"), ("range(0, n)", 2**31 + 5, "int64"),
    ("range(n, n + 3)", 2**40, "int64"), ("range(0, 4)", 5, "int32"), ("tl.range(n - 1, n)", 2**33, "int64"),
]  # fmt: skip


@pytest.mark.parametrize("loop, n, dtype", TYPES)
def test_the_type_of_the_index(loop, n, dtype):
    body = f"r = 0\nfor i in {loop}:\n    tl.static_assert(i.dtype == tl.{dtype})\n    if i < 0:\n        r = r + 1"
    if n > 2**30 and "range(0" in loop:
        body = f"for i in {loop.replace('0, n', 'n - 2, n')}:\n    tl.static_assert(i.dtype == tl.{dtype})\nr = 0"
    tiles(body, {"n": n}, r="int32")


@pytest.mark.parametrize("dtype", ["int8", "int16", "uint8", "uint16", "uint32", "uint64", "int64"])
def test_bounds_of_other_types(dtype):
    n = np.array(5, dtype)
    body = "r = 0\nfor i in range(n):\n    r += 1"
    assert tiles(body, {"n": n}, r="int32") == 5


def test_bounds_are_evaluated_once():
    body = "n = 3\nr = 0\nfor i in range(n):\n    n = n + 1\n    r += n"
    assert tiles(body, r="int32") == 4 + 5 + 6


def test_assigning_to_the_index_changes_no_iteration():
    body = "r = 0\nfor i in range(5):\n    i = i * 10\n    r += i"
    assert tiles(body, r="int32") == 100


def test_a_run_of_no_iterations_leaves_everything():
    for loop in ("range(0)", "range(n)", "tl.static_range(0)", "range(5, n)"):
        assert tiles(f"r = 7\nfor i in {loop}:\n    r = 0", {"n": 0}, r="int32") == 7


def test_nested_loops():
    body = """
        r = 0
        for i in range(4):
            for j in tl.range(i, 4):
                for k in tl.static_range(2):
                    r += i * 100 + j * 10 + k
    """
    want = sum(i * 100 + j * 10 + k for i in range(4) for j in range(i, 4) for k in range(2))
    assert tiles(body, r="int32") == want


def test_what_loops_carry():
    body = """
        x, y = tl.zeros((8,), tl.float32), 1
        t = (0, 1.0)
        for i in range(5):
            x += i
            y, z = y * 2, i
            t = (t[0] + 1, t[1] * 2)
        a, b = t[0], t[1]
    """
    x, y, a, b = tiles(body, x=("float32", (8,)), y="int32", a="int32", b="float32")
    assert (x == 10).all() and (y, a, b) == (32, 5, 32.0)


def test_names_of_a_static_loop_live_on():
    body = "for i in tl.static_range(3):\n    last = i\nr = last + 10 * i"
    assert tiles(body, r="int32") == 22
    body = "r = 0\nfor i in tl.static_range(1, 4):\n    r += tl.sum(tl.arange(0, 2 ** i))"
    assert tiles(body, r="int32") == 1 + 6 + 28


def test_a_static_index_is_a_constexpr():
    body = "r = 0\nfor i in tl.static_range(2):\n    tl.static_assert(i < 2)\n    r += (10, 20)[i]"
    assert tiles(body, r="int32") == 30


@pytest.mark.parametrize(
    "body, id",
    [
        ("for i in tl.static_range(n):\n    pass", "not-constexpr"),
        ("for i in range(0.5, 2):\n    pass", None),
        ("for i in range(x):\n    pass", None),
        ("for i in range(f):\n    pass", None),
        ("for i in (1, 2, 3):\n    pass", None),
        ("for i in x:\n    pass", None),
        ("for i, j in range(3):\n    pass", None),
        ("for i in range(3):\n    break", "unsupported-python"),
        ("for i in range(3):\n    continue", "unsupported-python"),
        ("for i in range(3):\n    pass\nelse:\n    pass", "unsupported-python"),
        ("for i in range(3):\n    return", None),
        ("while n > 3:\n    return", None),
        ("while n > 3:\n    break", "unsupported-python"),
        ("while n > 3:\n    pass\nelse:\n    pass", "unsupported-python"),
        ("while x > 3:\n    pass", "ambiguous-condition"),
        ("for i in range(3):\n    a = i\nb = a", "undefined-name"),
        ("while n > 30:\n    a = n\nb = a", "undefined-name"),
        ("s = 0\nfor i in range(3):\n    s += 1.5", "loop-type-change"),
        ("s = None\nfor i in range(3):\n    s = i", None),
        (
            "s = tl.zeros((4,), tl.int32)\nfor i in range(3):\n    s = tl.zeros((8,), tl.int32)",
            "loop-type-change",
        ),
        ("s = n\nwhile s > 0:\n    s = s.to(tl.int64)", "loop-type-change"),
        ("s = (1, 2)\nfor i in range(3):\n    s = (1, 2, 3)", None),
        (
            "s = tl.zeros((8,), tl.float32)\nfor i in range(3):\n    s = s.to(tl.float16)",
            "loop-type-change",
        ),
    ],
)
def test_loops_that_are_refused(body, id):
    refused(body, id, n=5, f=5.0, x="int32")


def test_an_argument_that_is_one_changes_the_type_of_a_carried_variable():
    body = "s = n\nfor i in range(3):\n    s = s + i"
    for n in (1, 2):
        assert tiles(body, {"n": n}, s="int32") == n + 3


# ---- while ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "condition",
    ["{}", "tl.condition({})", "tl.condition({}, disable_licm=True)", "tl.condition(arg1={})"],
)
def test_while(condition):
    body = f"""
        n, r = n, 0
        while {condition.format("n != 1")}:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            r += 1
    """
    for n in (2, 3, 27):
        steps, m = 0, n
        while m != 1:
            m, steps = m // 2 if m % 2 == 0 else 3 * m + 1, steps + 1
        assert tiles(body, {"n": n}, r="int32") == steps


@pytest.mark.parametrize(
    "condition", ["(n > 0) & (r < 3)", "n > 0 and r < 3", "not (n <= 0 or r >= 3)", "n * (r < 3)"]
)
def test_conditions(condition):
    body = f"r = 0\nm = n + 0\nwhile {condition.replace('n', 'm') if 'not' not in condition and 'and' not in condition else condition.replace('n >', 'm >').replace('n <', 'm <')}:\n    r += 1\n    m -= 1"
    for n, want in ((0, 0), (2, 2), (9, 3)):
        assert tiles(body, {"n": np.array(n, np.int32)}, r="int32") == want


def test_a_condition_in_a_float_or_a_pointer():
    body = "x = 4.0\nr = 0\nwhile x:\n    x = x - 1\n    r += 1"
    assert tiles(body, r="int32") == 4


def test_while_with_a_tile_reduced():
    body = "r = 0\nwhile tl.sum(x) > 0:\n    x = x // 2\n    r += 1"
    assert tiles(body, {"x": np.array([1, 7, 30, 2], np.int32)}, r="int32") == 5


def test_programs_loop_on_their_own():
    kernel = define(
        """
        @triton.jit
        def kernel(out):
            pid = tl.program_id(0)
            s = 0
            for i in range(pid, tl.num_programs(0)):
                s += i
            while s > 100:
                s -= 100
            tl.store(out + pid, s)
        """
    )["kernel"]
    for n in (1, 31, 127):
        out = np.zeros(n, np.int32)
        kernel[(n,)](out)
        want = [sum(range(p, n)) for p in range(n)]
        assert out.tolist() == [w if w <= 100 else (w - 1) % 100 + 1 for w in want]


def test_loops_that_save_their_values():
    assert value("n", "int32", inputs={"n": 3}) == 3


PASSES = """
@triton.jit
def kernel(x, total, out, n, BLOCK: tl.constexpr):
    acc = tl.zeros([BLOCK], tl.int32)
    for start in range(0, n, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        acc += tl.load(x + cols, mask=cols < n, other=0)
    tl.store(total, tl.sum(acc, axis=0))
    for i in range(0, tl.cdiv(n, BLOCK)):
        cols = i * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + cols, tl.load(x + cols, mask=cols < n, other=0) * 2, mask=cols < n)
"""


@pytest.mark.parametrize("total_in_row", [False, True])
@pytest.mark.parametrize("n", [0, 1, 3, 127, 128, 129, 256, 300, -5])
def test_passes_over_a_row(n, total_in_row):
    """With rows that fit a tile and others; what is stored between two passes may be in the row."""
    x = np.arange(5, 517, dtype=np.int32)
    want = x.copy()
    want_total = [want[: max(n, 0)].sum()]
    total = x[2:3] if total_in_row else np.zeros(1, np.int32)
    if total_in_row:
        want[2] = want_total[0]
    out = np.full(512, -1, np.int32)
    define(PASSES)["kernel"][(1,)](x, total, out, n, BLOCK=128)
    assert total.tolist() == want_total
    n = max(n, 0)
    assert x.tolist() == want.tolist()
    assert out.tolist() == [*(2 * want[:n]), *[-1] * (512 - n)]
