"""Pointer arithmetic and `tl.pointer_type`: offsets of every integer type, wrapping, refusals."""

import os

import numpy as np
import pytest

import naiad as triton
import naiad.language as tl

from ._common import define, refused, same, tiles, value
from ._numbers import ALL, INTS, SIGNED, TYPES, UNSIGNED, Typed, samples

COVERS = ["pointer_type"]


def element(expression, dtype, inputs, shape=(), before=""):
    return tiles(
        f"r = tl.load({expression})", inputs, pointers=["p"], r=(dtype, shape), before=before
    )


@pytest.mark.parametrize("name", ALL)
def test_offsets_count_elements(name):
    x = samples(name, 8)
    for expression in ("p + i", "i + p", "(p + 8) - (8 - i)", "p + 1 + (i - 1)"):
        got = element(expression, name, {"p": Typed(name, x), "i": np.arange(8)}, (8,))
        same(got, x, name)


@pytest.mark.parametrize("offset", INTS + ["int1"])
def test_offsets_of_every_type_are_extended_by_their_sign(offset):
    t = TYPES[offset]
    x = np.arange(601, dtype=np.int32)
    at = min(t.high, 255)
    i = np.array([0, at], t.storage)
    assert element("p + 300 + i", "int32", {"p": x, "i": i}, (2,)).tolist() == [300, 300 + at]
    if t.kind == "int":
        i = np.array([-1, max(t.low + 1, -300)], t.storage)
        assert element("p + 300 + i", "int32", {"p": x, "i": i}, (2,)).tolist() == [
            300 + int(v) for v in i
        ]
        assert element("p + 300 - i", "int32", {"p": x, "i": i}, (2,)).tolist() == [
            300 - int(v) for v in i
        ]


@pytest.mark.parametrize("offset", UNSIGNED)
def test_what_is_subtracted_is_negated_in_its_own_type(offset):
    """Hence an unsigned offset that is subtracted adds its complement; 64 bits come around."""
    bits = TYPES[offset].bits
    p = np.zeros(4, np.int8)
    i = np.array(3, TYPES[offset].storage)
    got = value("(p - i).to(tl.int64)", "int64", (), {"p": p, "i": i}, pointers=["p"])
    step = -3 if bits == 64 else 2**bits - 3
    assert int(got) - p.ctypes.data == step


@pytest.mark.parametrize("n, step", [(1, 2**31 - 1), (2**16, 2**16)])
def test_an_offset_wraps_in_its_own_type_before_it_is_added(n, step):
    p = np.zeros(4, np.int8)
    got = value(
        "(p + (n + one) * step).to(tl.int64)",
        "int64",
        (),
        {"p": p, "n": n, "step": step, "one": np.int32(1)},
        pointers=["p"],
    )
    exact = (n + 1) * step
    assert int(got) - p.ctypes.data == (exact + 2**31) % 2**32 - 2**31
    wide = "(p + (n + one).to(tl.int64) * step).to(tl.int64)"
    got = value(
        wide, "int64", (), {"p": p, "n": n, "step": step, "one": np.int32(1)}, pointers=["p"]
    )
    assert int(got) - p.ctypes.data == exact


@pytest.mark.parametrize("name", ALL)
def test_an_element_has_its_size(name):
    p = np.zeros(4, TYPES[name].storage)
    got = value(
        "(p + 3).to(tl.int64) - p.to(tl.int64)", "int64", (), {"p": Typed(name, p)}, pointers=["p"]
    )
    assert got == 3 * p.itemsize


def test_tiles_of_pointers_broadcast():
    x = np.arange(64, dtype=np.float32).reshape(8, 8)
    rows = "p + tl.arange(0, 4)[:, None] * 8"
    same(element(f"({rows}) + tl.arange(0, 2)[None, :]", "float32", {"p": x}, (4, 2)), x[:4, :2])
    same(element(f"tl.arange(0, 8)[None, :] + ({rows})", "float32", {"p": x}, (4, 8)), x[:4])
    same(element(f"({rows}) + 5", "float32", {"p": x}, (4, 1)), x[:4, 5:6])


def test_pointers_are_carried_by_loops_and_branches():
    kernel = define(
        """
        @triton.jit
        def kernel(out, p, n, back):
            if back:
                p += n - 1
            s = 0.0
            for _ in range(n):
                s = s * 10 + tl.load(p)
                if back:
                    p -= 1
                else:
                    p += 1
            tl.store(out, s)
        """
    )["kernel"]
    x, out = np.array([1, 2, 3], np.float32), np.zeros(1, np.float32)
    for back, want in ((False, 123), (True, 321)):
        kernel[(1,)](out, x, 3, back)
        assert out[0] == want


@pytest.mark.parametrize(
    "body",
    [
        "p + 1.0",
        "p + p",
        "p - p",
        "p * 2",
        "p // 2",
        "2 - p",
        "p + x",
        "p & 1",
        "-p",
        "~p",
        "p << 1",
        "p + None",
    ],
)
def test_arithmetic_that_pointers_lack(body):
    refused(body, "type-mismatch", p="int32", x="float32", pointers=["p"])


def test_pointers_are_not_indexed():
    refused("p[0]", "type-mismatch", p="int32", pointers=["p"])


@pytest.mark.parametrize("target", ALL)
def test_pointers_are_cast_to_other_pointers(target):
    t = TYPES[target]
    x = np.arange(64, dtype=np.uint8) % 2
    call = f"p.to(tl.pointer_type(tl.{target}))"
    got = element(f"{call} + 1", target, {"p": x})
    size = t.storage.itemsize
    same(np.atleast_1d(got), x[size : 2 * size].view(t.storage), target)


def test_attributes_of_pointer_types():
    kernel = define(
        """
        @triton.jit
        def kernel(p, q: tl.const, r: tl.pointer_type(tl.int8, const=True)):
            tl.static_assert(p.dtype.element_ty == tl.float32)
            tl.static_assert(p.type.element_ty == tl.float32)
            tl.static_assert((p + tl.arange(0, 4)).dtype.element_ty == tl.float32)
            tl.static_assert(p.dtype.is_ptr())
            tl.static_assert(not p.dtype.element_ty.is_ptr())
            tl.static_assert(not p.dtype.is_const())
            tl.static_assert(q.dtype.is_const())
            tl.static_assert(r.dtype.is_const())
            tl.static_assert(r.dtype.element_ty == tl.int8)
            tl.static_assert(p.dtype == tl.pointer_type(tl.float32))
            tl.static_assert(p.dtype != tl.pointer_type(tl.float16))
            tl.static_assert(p.dtype != tl.pointer_type(tl.float32, const=True))
            tl.static_assert(tl.pointer_type(tl.int8, 1) == tl.pointer_type(element_ty=tl.int8, address_space=1))
        """
    )["kernel"]
    kernel[(1,)](*[np.zeros(1, np.float32)] * 3)


@pytest.mark.parametrize("name", SIGNED)
def test_pointers_made_of_integers(name):
    x = np.array([5, 6], TYPES[name].storage)
    body = f"r = tl.load(address.to(tl.pointer_type(tl.{name})) + 1)"
    assert tiles(body, {"address": x.ctypes.data, "x": x}, r=name) == 6


@triton.jit
def follow(addresses, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    where = tl.load(addresses + i, mask=i < n, other=0)
    p = where.to(tl.pointer_type(tl.float32))
    tl.store(out + i, tl.load(p, mask=i < n, other=0.0))


def test_what_no_memory_can_be_at_is_told():
    x, out = np.arange(4, dtype=np.float32), np.zeros(8, np.float32)
    triton.expose(x)
    addresses = np.zeros(8, np.int64)
    addresses[:4] = x.ctypes.data + 4 * np.arange(4)
    follow[(1,)](addresses, out, 4, BLOCK=8, debug=True)
    assert out.tolist() == [0, 1, 2, 3, 0, 0, 0, 0]
    with pytest.raises(triton.OutOfBoundsError, match="reads address 0x0") as e:
        follow[(1,)](addresses, out, 5, BLOCK=8, debug=True)
    assert "lane 4 of program (0, 0, 0)" in str(e.value)


@pytest.mark.skipif(os.environ.get("NAIAD_EXECUTOR") != "lockstep", reason="a CPU loads across alignments")
def test_what_lies_across_its_alignment_is_told():
    x, out = np.arange(4, dtype=np.float32), np.zeros(8, np.float32)
    triton.expose(x)
    addresses = np.full(8, x.ctypes.data + 2)
    with pytest.raises(triton.errors.KernelError, match="which is no multiple of 4 bytes"):
        follow[(1,)](addresses, out, 3, BLOCK=8, debug=True)
