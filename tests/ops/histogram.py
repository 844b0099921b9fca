"""`tl.histogram`: counts, masks, what lies outside of the bins, types, spellings, refusals."""

import numpy as np
import pytest

import naiad as triton

from ._common import SIZES, define, refused, same, value

COVERS = ["histogram"]


def counts(x, bins, mask=None):
    x = np.asarray(x)
    inside = (x >= 0) & (x < bins)
    if mask is not None:
        inside &= mask
    return np.bincount(x[inside].astype(np.int64), minlength=bins).astype(np.int32)


@pytest.mark.parametrize("bins", [1, 2, 8, 256])
@pytest.mark.parametrize("n", [1, 2, 64, 1024])
def test_counts(n, bins):
    x = np.random.default_rng(n).integers(0, bins, n).astype(np.int32)
    for call in (
        f"tl.histogram(x, {bins})",
        f"x.histogram({bins})",
        f"tl.histogram(input=x, num_bins={bins})",
        f"x.histogram(num_bins={bins}, mask=None)",
    ):
        same(value(call, "int32", (bins,), {"x": x}), counts(x, bins))


@pytest.mark.parametrize("name", ["int32", "uint32", "int64", "uint64"])
def test_types_and_what_is_outside(name):
    info = np.iinfo(name)
    x = np.array([0, 1, 1, 3, 4, 7, 8, 100, info.max, info.min, info.max - 1, 2, 2, 2, 0, 7], name)
    same(value("tl.histogram(x, 8)", "int32", (8,), {"x": x}), counts(x, 8))
    if info.min < 0:
        x = np.array([-1, -2, -8, 0, 3, info.min, -256, 7], name)
        same(value("tl.histogram(x, 8)", "int32", (8,), {"x": x}), counts(x, 8))


def test_large_numbers_are_not_cut_to_fewer_bits():
    x = np.array([2**32, 2**32 + 1, 2**40 + 3, 1], np.int64)
    same(value("tl.histogram(x, 4)", "int32", (4,), {"x": x}), np.array([0, 1, 0, 0], np.int32))


@pytest.mark.parametrize("n", SIZES)
def test_masks(n):
    x = np.random.default_rng(n).integers(-3, 20, n).astype(np.int32)
    i = f"tl.arange(0, {triton.next_power_of_2(n)})"
    for mask in (f"{i} < {n}", f"({i} < {n}) & (x > 4)", f"({i} < {n}) & ({i} % 2 == 0)"):
        chosen = eval(mask.replace(i, "j"), {"j": np.arange(n), "x": x})
        for call in (f"tl.histogram(x, 16, mask={mask})", f"x.histogram(16, {mask})"):
            same(value(call, "int32", (16,), {"x": x}), counts(x, 16, chosen))


def test_masks_that_are_one_for_all():
    x = np.array([1, 1, 2, 3], np.int32)
    for mask, want in (
        ("True", [0, 2, 1, 1]),
        ("False", [0] * 4),
        ("x[None, :].reshape(4) > 1", [0, 0, 1, 1]),
    ):
        got = value(f"tl.histogram(x, 4, mask={mask})", "int32", (4,), {"x": x})
        assert got.tolist() == want
    got = value("tl.histogram(x, 4, mask=keep)", "int32", (4,), {"x": x, "keep": np.array(False)})
    assert got.tolist() == [0] * 4


def test_over_a_grid():
    kernel = define(
        """
        @triton.jit
        def kernel(x, out, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
            i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            v = tl.load(x + i, mask=i < n)
            h = tl.histogram(v, BINS, mask=i < n)
            tl.atomic_add(out + tl.arange(0, BINS), h)
        """
    )["kernel"]
    for n in SIZES:
        x = (np.arange(n) * 7919 % 64).astype(np.int32)
        out = np.zeros(64, np.int32)
        kernel[(triton.cdiv(n, 32),)](x, out, n, BINS=64, BLOCK=32)
        same(out, counts(x, 64))


def test_of_whole_tiles_of_one_bin():
    assert value("tl.histogram(tl.full((512,), 3, tl.int32), 4)", "int32", (4,)).tolist() == [
        0,
        0,
        0,
        512,
    ]


@pytest.mark.parametrize(
    "call, id, message",
    [
        ("tl.histogram(x, 3)", "bad-shape", "power of 2"),
        ("tl.histogram(x, 0)", "bad-shape", "power of 2"),
        ("tl.histogram(x)", "bad-call", ""),
        ("tl.histogram(x, s)", "not-constexpr", ""),
        ("tl.histogram(y, 4)", "type-mismatch", "with one axis"),
        ("tl.histogram(s, 4)", "type-mismatch", "with one axis"),
        ("tl.histogram(x.to(tl.float32), 4)", "type-mismatch", "integers"),
        ("tl.histogram(x > 0, 2)", "type-mismatch", "integers"),
        ("tl.histogram(x, 4, mask=tl.arange(0, 4) < 2)", "shape-mismatch", ""),
    ],
)
def test_histograms_that_are_refused(call, id, message):
    refused(call, id, message, x="int32", y="int32[4, 8]", s="scalar int32")
