"""`tl.extra.cuda`, `tl.target_info`: clocks and facts of the machine, and what has no effect on a CPU."""

import numpy as np
import pytest

import naiad as triton

from ._common import define, refused, tiles, value

COVERS = [
    "extra.cuda.globaltimer", "extra.cuda.smid", "extra.cuda.num_threads", "extra.cuda.num_warps",
    "extra.cuda.gdc_wait", "extra.cuda.gdc_launch_dependents", "target_info.is_cuda",
    "target_info.is_hip", "target_info.cuda_capability_geq",
]  # fmt: skip

CUDA = "tl.extra.cuda."


# ---- clocks and places ----------------------------------------------------------------------------


def test_the_clock_goes_forward():
    body = f"""
        a = {CUDA}globaltimer()
        s = 0
        for i in range(1000):
            s += i * n
        b = {CUDA}globaltimer()
        c = {CUDA}globaltimer()
        r = s
    """
    results = {"a": "int64", "b": "int64", "c": "int64", "r": "int32"}
    a, b, c, _ = tiles(body, {"n": 3}, **results)
    assert 0 < a <= b <= c
    # Nanoseconds: nothing here takes a minute.
    assert c - a < 60e9
    later, *_ = tiles(body, {"n": 3}, **results)
    assert later >= c


def test_the_clock_is_read_again_in_each_iteration():
    """A read is no common subexpression, nor does it leave a loop."""
    body = f"""
        start = {CUDA}globaltimer()
        now = start
        n = 0
        while now < start + 200000:
            now = {CUDA}globaltimer()
            n += 1
        r = now - start
        q = n
    """
    r, q = tiles(body, r="int64", q="int32")
    assert r >= 200_000
    assert q > 1


def test_programs_of_one_launch_share_the_clock():
    kernel = define(
        f"""
        @triton.jit
        def kernel(out, flag):
            pid = tl.program_id(0)
            if pid > 0:
                tl.atomic_poll(flag, pid)
            tl.store(out + pid, {CUDA}globaltimer())
            tl.atomic_store(flag, pid + 1)
        """
    )["kernel"]
    out, flag = np.zeros(50, np.int64), np.zeros(1, np.int32)
    kernel[(50,)](out, flag)
    assert (np.diff(out) >= 0).all()


@pytest.mark.parametrize("grid", [(1,), (100,), (4, 5, 3)])
def test_smid(grid):
    kernel = define(
        f"""
        @triton.jit
        def kernel(out):
            x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
            at = (x * tl.num_programs(1) + y) * tl.num_programs(2) + z
            s = {CUDA}smid()
            tl.static_assert(s.dtype == tl.int32)
            tl.store(out + at, s)
        """
    )["kernel"]
    out = np.full(int(np.prod(grid)), -1, np.int32)
    kernel[grid](out)
    assert (out >= 0).all()
    # As many as there can be workers, of which no machine has this many.
    assert (out < 4096).all()


# ---- launch options -------------------------------------------------------------------------------


@pytest.mark.parametrize("warps", [1, 2, 4, 8, 16])
def test_warps_and_threads(warps):
    """Both are constexprs, so that they can be shapes."""
    kernel = define(
        f"""
        @triton.jit
        def kernel(out):
            N: tl.constexpr = {CUDA}num_threads()
            tl.static_assert(N == 32 * {CUDA}num_warps())
            tl.store(out + tl.arange(0, N), {CUDA}num_warps())
        """
    )["kernel"]
    out = np.zeros(1024, np.int32)
    kernel[(1,)](out, num_warps=warps)
    assert out.tolist() == [warps] * (32 * warps) + [0] * (1024 - 32 * warps)


def test_they_follow_each_launch():
    kernel = define(
        f"""
        @triton.jit
        def inner():
            return {CUDA}num_warps()

        @triton.jit
        def kernel(out):
            if inner() > 4:
                tl.store(out, inner())
            else:
                tl.store(out, -inner())
        """
    )["kernel"]
    out = np.zeros(1, np.int32)
    for warps, want in [(None, -4), (8, 8), (2, -2), (8, 8), (4, -4), (16, 16)]:
        options = {} if warps is None else {"num_warps": warps}
        kernel[(1,)](out, **options)
        assert out[0] == want


def test_they_follow_the_configs_of_autotune():
    text = f"""
        @triton.autotune(configs=[triton.Config({{}}, num_warps=8)], key=[])
        @triton.jit
        def kernel(out):
            tl.store(out, {CUDA}num_warps())
    """
    out = np.zeros(1, np.int32)
    define(text)["kernel"][(1,)](out)
    assert out[0] == 8


def test_a_start_that_depends_on_other_kernels():
    kernel = define(
        f"""
        @triton.jit
        def kernel(x, out):
            {CUDA}gdc_wait()
            v = tl.load(x)
            {CUDA}gdc_launch_dependents()
            tl.store(out, v + 1)
            if v > 5:
                {CUDA}gdc_wait()
        """
    )["kernel"]
    x = np.array([7], np.int32)
    for _ in range(3):
        kernel[(1,)](x, x, launch_pdl=True)
    assert x[0] == 10


# ---- target_info ----------------------------------------------------------------------------------


def test_a_cpu_is_neither():
    for call, want in [
        ("tl.target_info.is_cuda()", False),
        ("tl.target_info.is_hip()", False),
        ("tl.target_info.cuda_capability_geq(1)", False),
        ("tl.target_info.cuda_capability_geq(9, 0)", False),
        ("tl.target_info.cuda_capability_geq(major=8, minor=0)", False),
        ("not tl.target_info.is_cuda()", True),
    ]:
        assert value(call, "int1") == want


def test_they_choose_at_compile_time():
    """The side that is not chosen may hold what would not compile."""
    body = """
        if tl.target_info.is_cuda() or tl.target_info.cuda_capability_geq(9):
            r = undefined_name
        elif tl.target_info.is_hip():
            r = tl.arange(0, 3)
        else:
            r = 5
        N: tl.constexpr = 8 if tl.target_info.is_cuda() else 4
        q = tl.arange(0, N)
    """
    r, q = tiles(body, r="int32", q=("int32", (4,)))
    assert r == 5 and q.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("module", ["info", "info.is_cuda"])
def test_by_other_names(module):
    if module == "info":
        names, call = {"info": triton.language.target_info}, "info.is_cuda()"
    else:
        names, call = {"is_cuda": triton.language.target_info.is_cuda}, "is_cuda()"
    assert not value(call, "int1", names=names)
    names = {"cuda": triton.language.extra.cuda, "smid": triton.language.extra.cuda.smid}
    assert value("cuda.smid()", "int32", names=names) >= 0
    assert value("smid()", "int32", names=names) >= 0


@pytest.mark.parametrize(
    "call, id, message",
    [
        (CUDA + "globaltimer(1)", "bad-call", ""),
        (CUDA + "smid(0)", "bad-call", ""),
        (CUDA + "num_warps(n)", "bad-call", ""),
        (CUDA + "warpid()", "unknown-tl-name", "warpid"),
        ("tl.target_info.cuda_capability_geq()", "bad-call", ""),
        ("tl.target_info.cuda_capability_geq(n)", "not-constexpr", ""),
        ("tl.target_info.is_cuda(1)", "bad-call", ""),
        ("tl.target_info.is_metal()", "unknown-tl-name", "is_metal"),
        ("n.smid()", None, "smid"),
    ],
)
def test_calls_that_are_refused(call, id, message):
    refused(call, id, message, n="scalar int32")


def test_only_kernels_can_ask():
    for f in (triton.language.extra.cuda.smid, triton.language.target_info.is_cuda):
        with pytest.raises(ValueError, match="works only in a kernel"):
            f()
