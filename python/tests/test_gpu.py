"""Launches on a GPU as far as they go without one: with a library that looks like the driver's, which notes
launches and runs nothing (`crates/naiad-cuda/examples/fake_driver.rs`). Each script is a process."""

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import naiad
from naiad import _naiad

ROOT = Path(__file__).resolve().parents[2]
DRIVER = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug/examples/libcuda.so"

BEFORE = """
    import sys
    import numpy as np
    import naiad as triton, naiad.language as tl
    from naiad import _naiad, errors

    @triton.jit
    def add(x, y, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(y + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)

    @triton.jit
    def total(x, y, BLOCK: tl.constexpr):
        tl.store(y, tl.sum(tl.load(x + tl.arange(0, BLOCK))))

    @triton.jit
    def touch(x):
        tl.store(x + tl.arange(0, 64), 1.0)

    class Array:
        "Memory that says it is a GPU's."

        def __init__(self, n, offset=0):
            self.memory = np.zeros(n + 64, np.float32)
            self.address = (self.memory.ctypes.data + 127) // 128 * 128 + offset
            self.__cuda_array_interface__ = {"typestr": "<f4", "data": (self.address, False), "shape": (n,), "version": 3}

    x, y = Array(1000), Array(1000)

    def said(launch):
        try:
            launch()
        except Exception as e:
            print(type(e).__name__, e)
        else:
            print("fine")
"""


@pytest.fixture
def script(tmp_path):
    if not DRIVER.exists():
        pytest.skip("the fake driver is not built: `cargo build -p naiad-cuda --example cuda`")

    def run(text, **variables):
        path = tmp_path / "script.py"
        path.write_text(textwrap.dedent(BEFORE) + textwrap.dedent(text))
        environment = {
            **os.environ,
            "LD_LIBRARY_PATH": str(DRIVER.parent),
            "NAIAD_CACHE_DIR": str(tmp_path / "cache"),
            "FAKE_CUDA_LOG": str(tmp_path / "log"),
            **variables,
        }
        done = subprocess.run([sys.executable, path], env=environment, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run.log = lambda: (tmp_path / "log").read_text().splitlines()
    run.cache = tmp_path / "cache"
    return run


def test_a_launch_reaches_the_driver(script):
    out = script(
        """
        compiled = add[(4,)](x, y, 1000, BLOCK=256)
        print(x.address, y.address)
        add[lambda meta: (1000 // meta["BLOCK"], 1)](x, y, n=1000, BLOCK=128, num_warps=2)
        compiled[(3,)](x, y, 77, 256, stream=4096)
        add[(0,)](x, y, 1000, BLOCK=256)
        print(sorted(compiled.asm), compiled.asm["cubin"][:4], compiled.n_regs, compiled.n_spills, compiled.n_max_threads)
        print(compiled.metadata.num_warps, compiled.metadata.shared, compiled.blocks_per_multiprocessor)
        """
    )
    lines = out.splitlines()
    x, y = lines[0].split()
    assert lines[1] == "['cubin', 'placed', 'ptx', 'thread', 'tile'] b'FAKE' 32 0 1024"
    assert lines[2] == "4 0 16"
    # Small tiles share a block, which a warp each has: so there is a block for four programs.
    assert script.log() == [
        f"add grid=1,1,1 threads=128 shared=0 stream=0 params={x},{y},1000,4",
        f"add grid=2,1,1 threads=128 shared=0 stream=0 params={x},{y},1000,7",
        f"add grid=1,1,1 threads=128 shared=0 stream=4096 params={x},{y},77,3",
    ]


def test_code_is_compiled_for_what_arguments_are_divisible_by(script):
    out = script(
        """
        def ptx(*args, **options):
            return add[(4,)](*args, BLOCK=1024, **options).asm["ptx"]

        first = ptx(x, y, 1024)
        same = [ptx(x, y, 2048), ptx(Array(1000), Array(1000, 64), 4096), ptx(x, y, 1024, num_stages=3)]
        print([p == first for p in same])
        wide = "ld.global.v4"
        print(wide in first, wide in ptx(Array(1000, 4), y, 1024), ptx(x, y, 1023) == first)
        print([ptx(x, y, 1024, **{o: v}) == first for o, v in (("num_warps", 8), ("maxnreg", 64))])
        """
    )
    assert out.splitlines() == ["[True, True, True]", "True False False", "[False, False]"]


def test_launches_like_one_before(script):
    out = script(
        """
        z, host = Array(1000, 4), np.zeros(1000, np.float32)
        for n in 1000, 1000, 1000, 7, 1, 1000:
            kept = add[(4,)](x, y, n, BLOCK=256)
        print(kept is add[(4,)](x, y, 3000, BLOCK=256), kept is add[(4,)](x, y, 7, BLOCK=256))
        print(["ld.global.v4" in add[(4,)](a, y, 1024, BLOCK=1024).asm["ptx"] for a in (x, x, z, x, z)])
        said(lambda: add[(4,)](x, host, 1000, BLOCK=256))
        said(lambda: add[(4,)](host, host, 1000, BLOCK=256))
        for _ in range(3):
            compiled = add[(1,)](y, x, 64, BLOCK=256)
        compiled[(1,)](y, x, 64, 256, stream=4096)
        add[lambda meta: (meta["n"] // 32,)](y, x, 64, BLOCK=256)
        add[(0,)](y, x, 64, BLOCK=256)
        print(x.address, y.address)
        """
    )
    lines = out.splitlines()
    assert lines[0] == "True False"
    assert lines[1] == "[True, True, False, True, False]"
    assert "the arguments of `add` are on different devices" in out
    assert lines[-2] == "fine"
    x, y = lines[-1].split()
    launched = [line.split() for line in script.log()]
    assert [line[-1].split(",")[2] for line in launched[:7]] == ["1000", "1000", "1000", "7", "4", "1000", "3000"]
    assert [f"{line[1]} {line[-2]} {line[-1]}" for line in launched[-5:]] == [
        f"grid=1,1,1 stream=0 params={y},{x},64,1",
        f"grid=1,1,1 stream=0 params={y},{x},64,1",
        f"grid=1,1,1 stream=0 params={y},{x},64,1",
        f"grid=1,1,1 stream=4096 params={y},{x},64,1",
        f"grid=1,1,1 stream=0 params={y},{x},64,2",
    ]


def test_devices_are_not_mixed(script):
    out = script(
        """
        host = np.zeros(1000, np.float32)
        said(lambda: add[(4,)](host, y, 1000, BLOCK=256))
        said(lambda: add[(4,)](host, host, 1000, BLOCK=256))
        _naiad.configure(True, 0)
        said(lambda: add[(4,)](x, y, 1000, BLOCK=256))
        """
    )
    assert "the arguments of `add` are on different devices: `y` is on GPU 0, and `x` is on the CPU" in out
    assert "\nfine\n" in out
    assert "the launch of `add` is to be checked, and its tensors are on a GPU" in out


@pytest.mark.parametrize(
    "launch,variables,want",
    [
        ("add[(4,)](x, y, 9, BLOCK=256, num_warps=64)", {}, "lower `num_warps` to at most 32"),
        ("total[(1,)](x, y, BLOCK=4096)", {"FAKE_CUDA_FACTS": "97=8"}, "lower `num_stages`, which is 3"),
        ("add[(4,)](x, y, 9, BLOCK=256)", {"FAKE_CUDA_USES": "4=255,0=64"}, "or launch with `maxnreg=512`"),
    ],
)
def test_too_much_is_said_with_the_option_to_lower(script, launch, variables, want):
    out = script(f"said(lambda: {launch})", **variables)
    assert out.startswith("OutOfResources") and want in out, out
    assert re.search(r"out of resource: .+, required: \d+, limit: \d+", out)


def test_faults_name_their_launch(script):
    fails = {"FAKE_CUDA_FAIL": "cuLaunchKernel=700"}
    twice = """
        said(lambda: add[(4,)](x, y, 1000, BLOCK=256))
        said(lambda: total[(1,)](x, y, BLOCK=1024))
        said(lambda: _naiad.gpu_synchronize(0))
    """
    out = script(twice, **fails)
    assert out.startswith("fine\nGpuError") and "LaunchError" not in out, out
    assert "CUDA_ERROR_ILLEGAL_ADDRESS (700)" in out and "`add` with [4, 1, 1]" in out, out
    assert "nothing more can be done with the GPU" in out
    out = script(twice, **fails, NAIAD_CUDA_SYNC="1")
    assert out.startswith("GpuError") and "the launch of `add` with [4, 1, 1] broke" in out, out


def test_what_a_kernel_finds_at_fault_is_told(script):
    """Program 2, lane 5 of 64, the one lane, the first site, address 256: see `crates/naiad-gpu/src/watch.rs`."""
    record = {"FAKE_CUDA_RECORD": f"2=3,{59 + (1 << 32)},1,256"}
    launch = """
        said(lambda: touch[(4,)](x, debug=True))
        said(lambda: _naiad.gpu_synchronize(0))
        said(lambda: touch[(4,)](x))
    """
    out = script(launch, **record)
    assert out.startswith("OutOfBoundsError"), out
    assert "kernel `touch` writes outside the memory of `x`" in out and "lane 5 of program (2, 0, 0)" in out, out
    assert "tl.store(x + tl.arange(0, 64), 1.0)" in out and "launched with the grid [4, 1, 1]" in out, out
    assert out.endswith("fine\nfine\n"), out
    address = re.findall(r"params=(.*)", "\n".join(script.log()))[0].split(",")
    assert address[0] == address[3] and address[1] == "4" and address[4] == "4000", address
    # Where the kernel broke the context too, what it found is told all the same.
    out = script(launch, **record, FAKE_CUDA_FAIL="cuLaunchKernel=700")
    assert out.startswith("OutOfBoundsError") and "nothing more can be done with the GPU" in out, out
    # A captured launch runs later.
    out = script(launch, **record, FAKE_CUDA_CAPTURES="0=1")
    assert out.startswith("fine\nOutOfBoundsError") and "writes outside the memory of `x`" in out, out


def test_what_the_driver_says_is_told(script):
    out = script("said(lambda: add[(4,)](x, y, 1000, BLOCK=256))", FAKE_CUDA_FAIL="cuLinkComplete=218")
    assert "the driver refuses the PTX of `add`: CUDA_ERROR_INVALID_PTX (218)" in out
    out = script("said(lambda: add[(4,)](x, y, 1000, BLOCK=256))", FAKE_CUDA_FAIL="cuDevicePrimaryCtxRetain=3")
    assert "GPU 0 cannot be used" in out and "start the child by `spawn`" in out


def test_machine_code_is_kept_on_disk(script):
    launch = "print(add[(4,)](x, y, 1000, BLOCK=256).times['cached'])"
    assert [script(launch) for _ in range(2)] == ["False\n", "True\n"]
    (entry,) = (script.cache / "cubin").iterdir()
    entry.write_bytes(entry.read_bytes()[:100])
    assert [script(launch) for _ in range(2)] == ["False\n", "True\n"]


def test_facts_of_the_gpu(script):
    facts = script("print(_naiad.gpu_count(), _naiad.gpu_facts(0)['multi_processor_count'])")
    assert facts == "1 132\n"


@pytest.mark.skipif(_naiad.gpu_count() > 0, reason="there is a GPU")
def test_without_a_driver():
    class Array:
        __cuda_array_interface__ = {"typestr": "<f4", "data": (4096, False), "shape": (1,), "version": 3}

    @naiad.jit
    def kernel(x):
        pass

    with pytest.raises(naiad.LaunchError, match="lies on a GPU, and there is no CUDA driver"):
        kernel[(1,)](Array())
    with pytest.raises(naiad.errors.GpuError, match="GPU 0 cannot be used: there is no CUDA driver"):
        _naiad.gpu_facts(0)
