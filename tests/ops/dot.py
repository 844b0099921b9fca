"""`tl.dot`: every dtype, ranks 2 to 4, accumulators, result types, precisions, refusals."""

import numpy as np
import pytest

from ._common import compiles, refused, same, tiles, value
from ._numbers import ALL, FP8, TYPES, Typed, array, decode

COVERS = ["dot"]

FLOATS = ["float16", "bfloat16", "float32", "float64"]
RESULTS = {"int8": "int32", "float64": "float64"}


def result_of(name):
    return RESULTS.get(name, "float32")


def small(name, shape, seed=0):
    """Integers so small that every sum of products is exact."""
    rng = np.random.default_rng(seed)
    top = 2 if TYPES[name].is_fp8 else 4
    return array(
        name, rng.integers(-top, top, shape, endpoint=True) / (2 if name == "float8e4b15" else 1)
    )


def operands(name, m, n, k, batch=()):
    a, b = small(name, (*batch, m, k)), small(name, (*batch, k, n), 1)
    want = decode(name, a).astype(np.float64) @ decode(name, b).astype(np.float64)
    return {"a": Typed(name, a), "b": Typed(name, b)}, want


SIZES = [
    (16, 16, 16),
    (32, 16, 64),
    (1, 16, 32),
    (16, 1, 32),
    (1, 1, 32),
    (64, 64, 32),
    (2, 4, 128),
]


@pytest.mark.parametrize("name", ["int8", *FLOATS, *FP8])
@pytest.mark.parametrize("m, n, k", SIZES)
def test_every_type_and_size(m, n, k, name):
    inputs, want = operands(name, m, n, max(k, 32))
    out = result_of(name)
    same(value("tl.dot(a, b)", out, (m, n), inputs), want.astype(TYPES[out].storage))


@pytest.mark.parametrize("name", ["int8", "float16", "float32", "float64", "float8e5"])
@pytest.mark.parametrize("batch", [(1,), (4,), (2, 2)])
def test_batches(batch, name):
    inputs, want = operands(name, 16, 8, 32, batch)
    out = result_of(name)
    same(value("tl.dot(a, b)", out, want.shape, inputs), want.astype(TYPES[out].storage))


@pytest.mark.parametrize("a", FP8)
@pytest.mark.parametrize("b", FP8)
def test_any_two_kinds_of_fp8(a, b):
    x, y = small(a, (16, 32)), small(b, (32, 16), 1)
    want = (decode(a, x) @ decode(b, y)).astype(np.float32)
    same(value("tl.dot(x, y)", "float32", (16, 16), {"x": Typed(a, x), "y": Typed(b, y)}), want)


@pytest.mark.parametrize("name", ["int8", *FLOATS, "float8e5", "float8e4nv"])
@pytest.mark.parametrize(
    "call",
    [
        "tl.dot(a, b, c)",
        "tl.dot(a, b, acc=c)",
        "tl.dot(input=a, other=b, acc=c)",
        "tl.dot(a, b) + c",
        "c + tl.dot(a, b)",
    ],
)
def test_accumulators(call, name):
    inputs, want = operands(name, 16, 16, 32)
    out = result_of(name)
    c = array(out, np.arange(256).reshape(16, 16) - 100)
    same(value(call, out, (16, 16), {**inputs, "c": c}), (want + c).astype(c.dtype))


OUT = [
    ("float16", "out_dtype=tl.float16", "float16"), ("float16", "out_dtype=tl.float32", "float32"),
    ("float8e5", "out_dtype=tl.float16", "float16"), ("float8e4nv", "out_dtype=tl.float32", "float32"),
    ("float32", "out_dtype=tl.float32", "float32"), ("bfloat16", "out_dtype=tl.float32", "float32"),
    ("int8", "out_dtype=tl.int32", "int32"), ("float64", "out_dtype=tl.float64", "float64"),
    ("float16", "acc=tl.zeros((16, 16), tl.float16)", "float16"),
    ("float16", "acc=tl.zeros((16, 16), tl.float16), out_dtype=tl.float16", "float16"),
    ("float16", "acc=tl.zeros((16, 16), tl.float32), out_dtype=tl.float32", "float32"),
    ("float8e5", "acc=tl.zeros((16, 16), tl.float16)", "float16"),
]  # fmt: skip


@pytest.mark.parametrize("name, arguments, out", OUT)
def test_result_types(name, arguments, out):
    inputs, want = operands(name, 16, 16, 32)
    same(
        value(f"tl.dot(a, b, {arguments})", out, (16, 16), inputs), want.astype(TYPES[out].storage)
    )


PRECISIONS = ["tf32", "tf32x3", "ieee", "bf16x3", "bf16x6"]


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize(
    "arguments",
    [f"input_precision={p!r}" for p in PRECISIONS]
    + [
        "input_precision=None",
        "allow_tf32=True",
        "allow_tf32=False",
        "max_num_imprecise_acc=32",
        "allow_tf32=None",
    ],
)
def test_words_that_change_no_exact_product(arguments, name):
    inputs, want = operands(name, 16, 16, 32)
    out = result_of(name)
    same(
        value(f"tl.dot(a, b, {arguments})", out, (16, 16), inputs), want.astype(TYPES[out].storage)
    )


def random(m, n, k):
    rng = np.random.default_rng(5)
    return {
        "a": rng.standard_normal((m, k)).astype(np.float32),
        "b": rng.standard_normal((k, n)).astype(np.float32),
    }


@pytest.mark.parametrize("arguments", ["input_precision='ieee'", "allow_tf32=False"])
def test_ieee_products_have_float32_accuracy(arguments):
    inputs = random(32, 32, 64)
    want = inputs["a"].astype(np.float64) @ inputs["b"].astype(np.float64)
    size = np.abs(inputs["a"].astype(np.float64)) @ np.abs(inputs["b"].astype(np.float64))
    got = value(f"tl.dot(a, b, {arguments})", "float32", (32, 32), inputs)
    assert (np.abs(got - want) <= 64 * 2.0**-24 * size).all()


def test_tf32_products_lie_between_those_of_truncated_and_of_whole_operands():
    """How tf32 is realised is the machine's affair, but not that it is within 10 bits' accuracy."""
    inputs = random(32, 32, 64)
    want = inputs["a"].astype(np.float64) @ inputs["b"].astype(np.float64)
    size = np.abs(inputs["a"].astype(np.float64)) @ np.abs(inputs["b"].astype(np.float64))
    for arguments in ("", ", input_precision='tf32'", ", allow_tf32=True"):
        got = value(f"tl.dot(a, b{arguments})", "float32", (32, 32), inputs)
        assert (np.abs(got - want) <= 2.1 * 2.0**-10 * size).all()


def test_float16_products_are_summed_in_float32():
    a = np.ones((16, 64), np.float16)
    b = np.full((64, 16), 2.0**-11, np.float16)
    b[0] = 2048
    want = 2048 + 63 * 2.0**-11
    np.testing.assert_allclose(
        value("tl.dot(a, b)", "float32", (16, 16), {"a": a, "b": b}), want, rtol=1e-6
    )


def test_a_nan_and_an_infinity_pass():
    a, b = np.zeros((16, 16), np.float32), np.ones((16, 16), np.float32)
    a[0, 0], a[1, 0] = np.nan, np.inf
    got = value("tl.dot(a, b)", "float32", (16, 16), {"a": a, "b": b})
    assert np.isnan(got[0]).all() and np.isinf(got[1]).all() and (got[2:] == 0).all()


def test_transposed_and_strided_operands():
    a, b = small("float32", (16, 32)), small("float32", (64, 16), 1)[::2]
    inputs = {"a": np.asfortranarray(a), "b": np.ascontiguousarray(b.T).T[::-1]}
    want = (a.astype(np.float64) @ inputs["b"]).astype(np.float32)
    same(value("tl.dot(a, b)", "float32", (16, 16), inputs), want)
    want = (inputs["b"].T.astype(np.float64) @ a.T).astype(np.float32)
    same(value("tl.dot(b.T, tl.trans(a))", "float32", (16, 16), inputs), want)


@pytest.mark.parametrize("m, n, k", [(31, 33, 127), (1, 5, 7), (17, 3, 16)])
def test_odd_sizes_through_masks(m, n, k):
    a, b = small("float32", (m, k)), small("float32", (k, n), 1)
    want = (a.astype(np.float64) @ b).astype(np.float32)
    P = [1 << (x - 1).bit_length() for x in (m, n, k)]
    body = f"""
        i, j, l = tl.arange(0, {P[0]})[:, None], tl.arange(0, {P[1]})[None, :], tl.arange(0, {P[2]})
        x = tl.load(p + i * {k} + l[None, :], mask=(i < {m}) & (l[None, :] < {k}), other=0.0)
        y = tl.load(q + l[:, None] * {n} + j, mask=(j < {n}) & (l[:, None] < {k}), other=0.0)
        r = tl.dot(x, y)
    """
    same(tiles(body, {"p": a, "q": b}, pointers="pq", r=("float32", (m, n))), want)


def test_a_loop_of_products():
    inputs, want = operands("float16", 16, 16, 128)
    body = """
        i, l = tl.arange(0, 16), tl.arange(0, 32)
        r = tl.zeros((16, 16), tl.float32)
        for k in range(0, 128, 32):
            x = tl.load(a + i[:, None] * 128 + (k + l)[None, :])
            r = tl.dot(x, tl.load(b + (k + l)[:, None] * 16 + i[None, :]), r)
    """
    same(tiles(body, inputs, pointers="ab", r=("float32", (16, 16))), want.astype(np.float32))


# ---- refusals -------------------------------------------------------------------------------------

TILE = "[16, 32]"


@pytest.mark.parametrize("name", [n for n in ALL if n not in ("int8", *FLOATS, *FP8)])
def test_types_that_are_refused(name):
    refused(
        "tl.dot(a, b)",
        "type-mismatch",
        "is not defined between",
        a=f"{name}[16, 32]",
        b=f"{name}[32, 16]",
    )


@pytest.mark.parametrize(
    "a, b",
    [
        ("float16", "bfloat16"),
        ("float16", "float32"),
        ("int8", "float16"),
        ("float8e5", "float16"),
        ("float32", "float64"),
    ],
)
def test_mixed_types_are_refused(a, b):
    refused(
        "tl.dot(a, b)",
        "type-mismatch",
        "is not defined between",
        a=f"{a}[16, 32]",
        b=f"{b}[32, 16]",
    )


@pytest.mark.parametrize(
    "a, b, id",
    [
        ((16, 32), (16, 32), "shape-mismatch"), ((16,), (16, 16), "shape-mismatch"),
        ((16,), (16,), "shape-mismatch"), ((2, 16, 16), (16, 16), "shape-mismatch"),
        ((2, 16, 16), (4, 16, 16), "shape-mismatch"), ((), (), "shape-mismatch"),
    ],
)  # fmt: skip
def test_shapes_that_are_refused(a, b, id):
    refused("tl.dot(a, b)", id, a=np.zeros(a, np.float32), b=np.zeros(b, np.float32))


@pytest.mark.parametrize(
    "name, arguments",
    [
        ("float16", "out_dtype=tl.bfloat16"), ("bfloat16", "out_dtype=tl.bfloat16"),
        ("float32", "out_dtype=tl.float16"), ("bfloat16", "out_dtype=tl.float16"),
        ("float16", "acc=tl.zeros((16, 16), tl.bfloat16)"), ("float16", "acc=tl.zeros((16, 32), tl.float32)"),
        ("float16", "acc=tl.zeros((16, 16), tl.float16), out_dtype=tl.float32"),
        ("float32", "acc=tl.zeros((16, 16), tl.float16)"), ("int8", "acc=tl.zeros((16, 16), tl.float32)"),
        ("float16", "acc=0.0"),
    ],
)  # fmt: skip
def test_results_that_are_refused(name, arguments):
    refused(f"tl.dot(a, b, {arguments})", None, a=f"{name}[16, 32]", b=f"{name}[32, 16]")


def test_products_of_int8_are_int32_whatever_is_asked_for():
    compiles(
        "r = tl.dot(a, b, out_dtype=tl.int8)",
        "tl.static_assert(r.dtype == tl.int32)",
        a="int8[16, 32]",
        b="int8[32, 16]",
    )


def test_transposed_operands():
    rng = np.random.default_rng(8)
    a = rng.integers(-9, 9, (32, 16)).astype(np.float32)
    b = rng.integers(-9, 9, (16, 32)).astype(np.float32)
    got = value("tl.dot(a, b, trans_a=True, trans_b=True)", "float32", (16, 16), {"a": a, "b": b})
    same(got, a.T @ b.T)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ("input_precision='ieee', allow_tf32=True", "give one of them"),
        ("input_precision='fp19'", "input precision"),
    ],
)
def test_words_that_are_refused(arguments, message):
    refused(f"tl.dot(a, b, {arguments})", None, message, a="float32[16, 16]", b="float32[16, 16]")


def test_result_types_are_seen_by_the_kernel():
    for name in ("int8", *FLOATS, *FP8):
        compiles(
            f"tl.static_assert(tl.dot(a, b).dtype == tl.{result_of(name)})",
            a=f"{name}[16, 32]",
            b=f"{name}[32, 16]",
        )
