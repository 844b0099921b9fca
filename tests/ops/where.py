"""`tl.where`: every dtype, promotion, broadcasting of three, pointers, conditions that are no bools."""

import numpy as np
import pytest

from ._common import SIZES, refused, same, tiles, value
from ._numbers import ALL, TYPES, Typed, common, crossed, decode, encode, exact, samples, wrap

COVERS = ["where"]


def halves(n):
    return np.arange(n) % 3 == 0


@pytest.mark.parametrize("name", ALL)
def test_every_type_keeps_its_bits(name):
    x, y = samples(name, 128), samples(name, 128, seed=3)
    inputs = {"c": halves(128), "x": Typed(name, x), "y": Typed(name, y)}
    want = np.where(halves(128), x, y)
    for call in ("tl.where(c, x, y)", "tl.where(condition=c, x=x, y=y)", "tl.where(c, y=y, x=x)"):
        got = value(call, name, (128,), inputs)
        assert got.tobytes() == want.tobytes()


@pytest.mark.parametrize("a", ALL)
def test_promotion_of_every_pair(a):
    for b in ALL:
        name = common(a, b)
        x, y = (v[:64] for v in crossed(a, b, 8))
        if name is None:
            refused("tl.where(x == x, x, y)", "type-mismatch", x=a, y=b)
            continue

        def to(source, v):
            if TYPES[name].is_int:
                return wrap(name, v.astype(object))
            if source == name:
                return v
            return (
                v.astype(TYPES[name].storage)
                if TYPES[source].is_int and TYPES[name].bits >= 32
                else encode(name, exact(source, v))
            )

        want = np.where(halves(64), to(a, x), to(b, y))
        got = value(
            "tl.where(c, x, y)", name, (64,), {"c": halves(64), "x": Typed(a, x), "y": Typed(b, y)}
        )
        keep = np.ones(64, bool)
        if TYPES[name].nan == "" and TYPES[name].is_fp8:
            keep = ~np.isnan(decode(name, want))
        same(got[keep], want[keep], name)


@pytest.mark.parametrize(
    "name, literal, result",
    [
        ("float16", "0.0", "float16"), ("float16", "1", "float16"), ("bfloat16", "-2.0", "bfloat16"),
        ("int8", "1", "int8"), ("int8", "0.5", "float32"), ("int1", "1", "int32"),
        ("int1", "True", "int1"), ("uint8", "255", "uint8"), ("float32", "1e300", "float32"),
        ("int64", "float('-inf')", "float32"), ("float8e5", "0.0", "float8e5"),
    ],
)  # fmt: skip
def test_literals(name, literal, result):
    refused_body = f"tl.static_assert(tl.where(c, x, {literal}).dtype == tl.{result})\n"
    refused_body += f"tl.static_assert(tl.where(c, {literal}, x).dtype == tl.{result})"
    tiles(refused_body, {"c": halves(8), "x": Typed(name, samples(name, 8))})


def test_two_literals():
    assert value("tl.where(c, 1, 2)", "int32", (4,), {"c": halves(4)}).tolist() == [1, 2, 2, 1]
    assert value("tl.where(c, 1, 2.5)", "float32", (4,), {"c": halves(4)}).tolist() == [
        1,
        2.5,
        2.5,
        1,
    ]
    assert value("tl.where(True, 1, 2)", "int32") == 1


@pytest.mark.parametrize("body", ["tl.where(c, x, 300)", "tl.where(c, -129, x)"])
def test_literals_out_of_range(body):
    refused(body, "literal-range", "out of range", c="int1", x="int8")


@pytest.mark.parametrize(
    "c, x, y",
    [
        ((), (), ()), ((), (8,), (8,)), ((8,), (), ()), ((4, 1), (8,), ()), ((1, 8), (4, 1), (1, 1)),
        ((2, 1, 1), (4, 1), (8,)), ((), (4, 1), (1, 8)), ((2, 2, 1, 1), (2, 1), (1, 2, 1, 2)),
    ],
)  # fmt: skip
def test_three_shapes_broadcast(c, x, y):
    arrays = {
        "c": np.asarray(np.arange(int(np.prod(c))).reshape(c) % 2 == 0),
        "x": np.asarray(np.arange(int(np.prod(x)), dtype=np.float32).reshape(x)),
        "y": np.asarray(-1 - np.arange(int(np.prod(y)), dtype=np.float32).reshape(y)),
    }
    want = np.where(*arrays.values())
    same(value("tl.where(c, x, y)", "float32", want.shape, arrays), want)


def test_shapes_that_do_not():
    refused("tl.where(c, x, x)", "shape-mismatch", c=np.zeros(8, bool), x=np.zeros(4))
    refused("tl.where(c, c, x)", "shape-mismatch", c=np.zeros(8, bool), x=np.zeros(4))


@pytest.mark.parametrize("name", ["int8", "int32", "uint64", "float32", "float16"])
def test_a_condition_that_is_no_bool_asks_for_zero(name):
    c = samples(name, 32)
    want = np.where(decode(name, c) != 0, 1, 2).astype(np.int32)
    same(value("tl.where(c, 1, 2)", "int32", (32,), {"c": c}), want)


@pytest.mark.parametrize("n", SIZES)
def test_odd_sizes(n):
    x, y = samples("int64", n), samples("int64", n, seed=2)
    same(value("tl.where(x < y, x, y)", "int64", inputs={"x": x, "y": y}), np.where(x < y, x, y))


def test_pointers():
    x, y = np.arange(8, dtype=np.int32), np.arange(8, 16, dtype=np.int32)
    inputs = {"p": x, "q": y, "c": halves(8)}
    body = "r = tl.load(tl.where(c, p, q) + tl.arange(0, 8))"
    same(tiles(body, inputs, pointers="pq", r=("int32", (8,))), np.where(halves(8), x, y))
    refused(
        "tl.where(True, p, q)", "type-mismatch", "cannot choose", p="int32", q="int8", pointers="pq"
    )


def test_both_sides_are_evaluated():
    """Hence guarding a load needs a mask: here the load's own."""
    x = np.arange(1, 9, dtype=np.int32)
    i = "tl.arange(0, 8)"
    body = f"r = tl.where({i} == 0, 0, tl.load(p + {i} - 1, mask={i} > 0))"
    same(tiles(body, {"p": x}, pointers="p", r=("int32", (8,))), np.arange(8, dtype=np.int32))
    x = np.array([0.0, 4.0], np.float32)
    assert value("tl.where(x > 0, 1 / x, 0.0)", "float32", inputs={"x": x}).tolist() == [0, 0.25]
