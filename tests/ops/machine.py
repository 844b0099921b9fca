"""What is the machine's: `tl.inline_asm_elementwise`, `tl.extra.cuda`, `tl.target_info`."""

import numpy as np
import pytest

import naiad as triton
import naiad.language as tl

from ._common import compiles, define, refused, same, tiles, value
from ._numbers import wrap

COVERS = [
    "inline_asm_elementwise", "extra.cuda.globaltimer", "extra.cuda.smid", "extra.cuda.num_threads",
    "extra.cuda.num_warps", "extra.cuda.gdc_wait", "extra.cuda.gdc_launch_dependents",
    "target_info.is_cuda", "target_info.is_hip", "target_info.cuda_capability_geq",
]  # fmt: skip


def asm(text, constraints, args, dtype, pack=1):
    return f'tl.inline_asm_elementwise("{text}", "{constraints}", {args}, dtype={dtype}, is_pure=True, pack={pack})'


U = np.array([0, 1, 2, 5, 1000, 2**31, 2**32 - 1, 12345678], np.uint32)


@pytest.mark.parametrize("shape", [(8,), (4, 2), (2, 2, 2)])
def test_one_instruction(shape):
    x, y = U.reshape(shape), U[::-1].reshape(shape)
    want = wrap("uint32", x.astype(object) + y)
    same(
        value(
            asm("add.u32 $0, $1, $2;", "=r,r,r", "[x, y]", "tl.uint32"),
            "uint32",
            shape,
            {"x": x, "y": y},
        ),
        want,
    )


def test_floats_and_broadcasting():
    x, y = np.array([1.5, -2.0], np.float32), np.array([[4.0], [0.5]], np.float32)
    call = asm("fma.rn.f32 $0, $1, $2, $1;", "=r,r,r", "[x, y]", "tl.float32")
    same(value(call, "float32", (2, 2), {"x": x, "y": y}), x * y + x)


def test_several_results():
    body = f"a, b = {asm('add.s32 $0, $2, $3; sub.s32 $1, $2, $3;', '=r,=r,r,r', '[x, y]', '(tl.int32, tl.int32)')}"
    x, y = np.arange(8, dtype=np.int32), np.arange(8, dtype=np.int32) * 3
    a, b = tiles(body, {"x": x, "y": y}, a=("int32", (8,)), b=("int32", (8,)))
    same(a, x + y)
    same(b, x - y)


def test_packs_of_narrow_elements():
    x = np.arange(8, dtype=np.uint8) * 17
    call = asm("xor.b32 $0, $1, 0xFFFFFFFF;", "=r,r", "[x]", "tl.uint8", 4)
    same(value(call, "uint8", (8,), {"x": x}), ~x)


@pytest.mark.parametrize(
    "call, id",
    [
        (asm("add.u32 $0, $1, $2;", "=r,r,r", "[x, y]", "tl.uint32"), "shape-mismatch"),
        (asm("mov.b32 $0, $1;", "=r,r", "[x]", "tl.uint32", 3), "bad-argument"),
        (asm("mov.b32 $0, $1;", "=r,r", "[x]", "()"), "bad-argument"),
        ('tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [x])', "bad-call"),
        (asm("mov.b32 $0, $1;", "=r,r", "[x]", "tl.uint32", "n"), "not-constexpr"),
    ],
)
def test_assembly_that_is_refused(call, id):
    refused(call, id, x="uint32", y="uint32[4]", n=2)


def test_an_instruction_that_is_not_known():
    with pytest.raises(triton.TritonError):
        tiles(
            f"r = {asm('frobnicate.u32 $0, $1;', '=r,r', '[x]', 'tl.uint32')}",
            {"x": U},
            r=("uint32", (8,)),
        )


# ---- facts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("warps", [1, 4, 8])
def test_the_size_of_a_program(warps):
    kernel = define(
        """
        @triton.jit
        def kernel(out):
            W: tl.constexpr = tl.extra.cuda.num_warps()
            tl.static_assert(tl.extra.cuda.num_threads() == 32 * W)
            tl.store(out, W)
        """
    )["kernel"]
    out = np.zeros(1, np.int32)
    kernel[(1,)](out, num_warps=warps)
    assert out[0] == warps


def test_the_processor_has_a_number():
    assert value("tl.extra.cuda.smid()", "int32") >= 0


def test_the_clock_has_its_type():
    compiles("tl.static_assert(tl.extra.cuda.globaltimer().dtype == tl.int64)")


def test_the_clock_runs():
    body = "a = tl.extra.cuda.globaltimer()\nfor i in range(1000):\n    pass\nb = tl.extra.cuda.globaltimer()"
    a, b = tiles(body, a="int64", b="int64")
    assert 0 < a <= b


def test_advice_on_launches():
    out = np.zeros(1, np.int32)
    body = "tl.extra.cuda.gdc_wait()\ntl.store(out, 3)\ntl.extra.cuda.gdc_launch_dependents()"
    tiles(body, {"out": out}, pointers=["out"])
    assert out[0] == 3


def test_the_target_is_known_at_compile_time():
    compiles(
        "tl.static_assert(not tl.target_info.is_hip())",
        "C: tl.constexpr = tl.target_info.is_cuda()",
        # What is at least some version is at least every older one.
        "tl.static_assert(not tl.target_info.cuda_capability_geq(99, 9))",
        "tl.static_assert(tl.target_info.cuda_capability_geq(1) == C)",
        "tl.static_assert(tl.target_info.cuda_capability_geq(major=1, minor=0) == C)",
    )
    assert callable(tl.target_info.is_cuda)
