"""`tl.histogram`: bins, masks, values outside, types, refusals."""

import numpy as np
import pytest

from ._common import SIZES, refused, same, value
from ._numbers import ALL, TYPES, array

COVERS = ["histogram"]


def counted(x, bins):
    return np.array([(x == b).sum() for b in range(bins)], np.int32)


@pytest.mark.parametrize("name", ["int32", "uint32"])
@pytest.mark.parametrize("bins", [1, 2, 16, 256])
@pytest.mark.parametrize("n", [1, 8, 512])
def test_counts(n, bins, name):
    x = array(name, np.random.default_rng(n).integers(0, bins, n))
    for call in (
        f"tl.histogram(x, {bins})",
        f"x.histogram({bins})",
        f"tl.histogram(input=x, num_bins={bins})",
        f"tl.histogram(x, {bins}, None)",
    ):
        same(value(call, "int32", (bins,), {"x": x}), counted(x, bins))


@pytest.mark.parametrize("name", ["int32", "uint32"])
def test_values_outside_are_dropped(name):
    x = array(name, [0, 3, 4, 7, 8, 2**31, -1, 3])
    same(value("tl.histogram(x, 4)", "int32", (4,), {"x": x}), np.array([1, 0, 0, 2], np.int32))


@pytest.mark.parametrize("n", SIZES)
def test_masks(n):
    x = np.random.default_rng(n).integers(0, 8, n).astype(np.int32)
    block = 1 << (n - 1).bit_length() if n > 1 else 1
    mask = f"tl.arange(0, {block}) < {n}"
    for call in (f"tl.histogram(x, 8, {mask})", f"x.histogram(8, mask={mask})"):
        same(value(call, "int32", (8,), {"x": x}), counted(x, 8))
    same(
        value(f"tl.histogram(x, 8, ({mask}) & (x > 3))", "int32", (8,), {"x": x}),
        counted(x[x > 3], 8),
    )
    same(value("tl.histogram(x, 8, x < 0)", "int32", (8,), {"x": x}), np.zeros(8, np.int32))


@pytest.mark.parametrize("name", [n for n in ALL if TYPES[n].is_float or TYPES[n].kind == "bool"])
def test_types_that_are_refused(name):
    refused("tl.histogram(x, 4)", "type-mismatch", "wants a tile of integers", x=name)


@pytest.mark.parametrize(
    "call, id",
    [
        ("tl.histogram(x, 3)", "bad-shape"), ("tl.histogram(x, 0)", "bad-shape"), ("tl.histogram(x, n)", "not-constexpr"),
        ("tl.histogram(x)", "bad-call"), ("tl.histogram(y, 4)", None), ("tl.histogram(s, 4)", None),
        ("tl.histogram(x, 4, tl.arange(0, 4) < 2)", "shape-mismatch"),
    ],
)  # fmt: skip
def test_calls_that_are_refused(call, id):
    refused(call, id, x="int32", y="int32[4, 4]", s="scalar int32", n=5)
