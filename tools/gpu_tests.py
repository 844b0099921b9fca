"""Launches on a GPU, with torch's tensors: `gpu_check.py` runs this."""

import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
import torch

import naiad as triton
import naiad.language as tl
from naiad import _naiad, testing
from naiad.runtime import driver

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


@triton.jit
def add_kernel(x_ptr, y_ptr, z_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(z_ptr + i, tl.load(x_ptr + i, mask=mask) + tl.load(y_ptr + i, mask=mask), mask=mask)


def add(x, y, z, n=None, block=256, **options):
    n = z.numel() if n is None else n
    return add_kernel[(triton.cdiv(n, block),)](x, y, z, n, BLOCK=block, **options)


def numbers(n, dtype=torch.float32):
    if dtype.is_floating_point:
        return torch.randn(n, device="cuda").to(dtype)
    return torch.randint(-100, 100, (n,), device="cuda").to(dtype)


@pytest.mark.parametrize("n", [0, 1, 31, 32, 33, 1000, 1024, 1_000_003])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.int8, torch.int64, torch.float64])
def test_sizes_and_types(n, dtype):
    x, y = numbers(n, dtype), numbers(n, dtype)
    z = torch.full((n + 8,), 99, dtype=dtype, device="cuda")
    add(x, y, z, n)
    assert torch.equal(z[:n], x + y) and (z[n:] == 99).all()


@pytest.mark.parametrize("offset", [0, 1, 2, 3, 4, 7, 8])
def test_what_is_not_aligned(offset):
    x, y, z = numbers(1024 + 16), numbers(1024 + 16), torch.zeros(1024 + 16, device="cuda")
    add(x[offset:], y, z[2 * offset :], 1024)
    assert torch.equal(z[2 * offset :][:1024], (x[offset:] + y[: len(x) - offset])[:1024])
    assert not z[: 2 * offset].any() and not z[2 * offset + 1024 :].any()


@pytest.mark.parametrize("block,warps", [(16, 1), (64, 2), (128, 4), (1024, 4), (4096, 8), (8192, 16), (32, 4)])
def test_tiles_and_warps(block, warps):
    x, y = numbers(100_001), numbers(100_001)
    z = torch.empty_like(x)
    add(x, y, z, block=block, num_warps=warps)
    assert torch.equal(z, x + y)


def test_what_a_launch_returns():
    x = numbers(1000)
    for compiled in add(x, x, x.clone()), add_kernel.warmup(x, x, x, 1000, BLOCK=256, grid=(4,)):
        assert {"tile", "placed", "thread", "ptx", "cubin"} <= set(compiled.asm)
        assert f".target sm_{driver.active.get_current_target().arch}" in compiled.asm["ptx"]
        assert isinstance(compiled.asm["cubin"], bytes) and compiled.asm["cubin"][1:4] == b"ELF"
        assert 8 <= compiled.n_regs <= 255 and compiled.n_spills == 0
        assert compiled.metadata.num_warps == 4 and compiled.metadata.shared >= 0
        assert compiled.n_max_threads >= 128 and compiled.blocks_per_multiprocessor >= 1
    y = torch.empty_like(x)
    compiled[(4,)](x, x, y, 1000, 256)
    assert torch.equal(y, 2 * x)
    # A dtype stands for a tensor on the GPU.
    assert "ptx" in add_kernel.warmup(torch.float32, torch.float32, torch.float32, 1000, BLOCK=256, grid=(1,)).asm


def test_the_device_is_the_real_one():
    properties = torch.cuda.get_device_properties(0)
    found = driver.active.utils.get_device_properties(0)
    assert found["multiprocessor_count"] == properties.multi_processor_count
    assert found["max_shared_mem"] == properties.shared_memory_per_block_optin
    target = driver.active.get_current_target()
    assert (target.backend, target.arch, target.warp_size) == ("cuda", 10 * properties.major + properties.minor, 32)
    assert driver.active.get_active_torch_device() == torch.device("cuda", 0)
    assert torch.cuda.is_available.__module__.startswith("torch"), "torch is patched"


def test_launches_are_queued_on_the_current_stream():
    x, side = numbers(1 << 24), torch.cuda.Stream()
    y = torch.zeros_like(x)
    torch.cuda.synchronize()
    for _ in range(5):
        with torch.cuda.stream(side):
            torch.cuda._sleep(20_000_000)
            y.fill_(3)
            add(x, y, y)
            done = torch.cuda.Event()
            done.record()
        assert not done.query(), "a launch waited"
        side.synchronize()
        assert torch.equal(y, x + 3)
    stream = torch.cuda.Stream()
    compiled = add_kernel.warmup(x, y, y, x.numel(), BLOCK=256, grid=(1,))
    with torch.cuda.stream(stream):
        torch.cuda._sleep(20_000_000)
        y.zero_()
    compiled[(triton.cdiv(x.numel(), 256),)](x, y, y, x.numel(), 256, stream=stream.cuda_stream)
    stream.synchronize()
    assert torch.equal(y, x)


def test_launches_are_recorded_in_graphs():
    x, y, z = numbers(1000), numbers(1000), torch.zeros(1000, device="cuda")
    add(x, y, z)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        add(x, y, z)
        add(z, y, z)
    x.copy_(numbers(1000))
    graph.replay()
    assert torch.equal(z, x + y + y)


def test_devices_are_not_mixed():
    x = numbers(10)
    with pytest.raises(triton.LaunchError, match="`x_ptr` is on GPU 0, and `y_ptr` is on the CPU"):
        add(x, torch.zeros(10), x)
    pinned = torch.ones(10).pin_memory()
    z = torch.empty_like(x)
    add(x, pinned, z)
    assert torch.equal(z, x + 1)
    host = torch.ones(10)
    add(host, host, host)
    assert (host == 2).all()


def test_too_much_is_said_with_the_option_to_lower():
    x = numbers(10)
    with pytest.raises(triton.OutOfResources, match="lower `num_warps` to at most 32") as e:
        add(x, x, x, num_warps=64)
    assert (e.value.name, e.value.required, e.value.limit) == ("threads", 2048, 1024)


def test_tuning():
    configs = [triton.Config({"BLOCK": b}, num_warps=w) for b, w in ((128, 2), (1024, 4), (1024, 64))]

    @triton.autotune(configs, key=["n"])
    @triton.jit
    def tuned(x_ptr, y_ptr, z_ptr, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        x, y = tl.load(x_ptr + i, mask=i < n), tl.load(y_ptr + i, mask=i < n)
        tl.store(z_ptr + i, x + y, mask=i < n)

    x, y = numbers(1 << 20), numbers(1 << 20)
    z = torch.empty_like(x)
    tuned[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, y, z, x.numel())
    assert torch.equal(z, x + y)


def test_timing():
    x, y = numbers(1 << 26), torch.empty(1 << 26, device="cuda")
    ours = testing.do_bench(lambda: y.copy_(x), return_mode="median")
    gigabytes = 8 * x.numel() / ours / 1e6
    assert 0.5 < gigabytes / testing.get_dram_gbps() < 1.05, gigabytes
    # A kernel of some microseconds: the graph leaves out what a call costs.
    small = testing.do_bench_cudagraph(lambda: add(x[:1024], x[:1024], y[:1024]))
    assert small < 0.02


@pytest.mark.parametrize("name", ["bias_add", "gelu", "row_stats", "row_sum", "softmax", "transpose", "matmul"])
def test_examples(name):
    environment = {**os.environ, "EXAMPLES_ON": "cuda"}
    command = [sys.executable, "-m", "naiad", "run", str(EXAMPLES / f"{name}.py")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr[-3000:] + done.stdout[-1000:]


FAULT = """
    import torch
    import naiad as triton, naiad.language as tl
    from naiad import _naiad

    @triton.jit
    def good_kernel(x_ptr):
        tl.store(x_ptr + tl.program_id(0), 1.0)

    @triton.jit
    def stray_kernel(x_ptr, offset):
        tl.store(x_ptr + offset.to(tl.int64) * 1000000, 1.0)

    x = torch.zeros(16, device="cuda")
    good_kernel[(16,)](x)
    torch.cuda.synchronize()
    try:
        stray_kernel[(2,)](x, 1 << 30)
        print("queued")
        good_kernel[(16,)](x)
        _naiad.gpu_synchronize(0)
    except triton.errors.GpuError as e:
        print(e)
"""


@pytest.mark.parametrize("waits", [False, True])
def test_faults_name_the_launch(waits, tmp_path):
    script = tmp_path / "fault.py"
    script.write_text(textwrap.dedent(FAULT))
    environment = {**os.environ, "NAIAD_CUDA_SYNC": "1" if waits else "0"}
    done = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, timeout=100)
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in done.stdout, done.stdout + done.stderr
    assert "stray_kernel" in done.stdout and ("queued" in done.stdout) is not waits
    assert ("the launch of `stray_kernel` with [2, 1, 1] broke" in done.stdout) is waits, done.stdout


PRINTS = """
    import os
    import torch
    import naiad as triton, naiad.language as tl

    @triton.jit
    def show_kernel(x_ptr, BLOCK: tl.constexpr):
        pid = tl.program_id(0)
        i = tl.arange(0, BLOCK)
        tl.device_print("v", tl.load(x_ptr + pid * BLOCK + i))
        tl.device_print("at", pid)

    x = torch.arange(8, device="cuda", dtype=torch.float32) / 4
    for settings in "", "layout=lines", "program=1;lanes=1:3", "layout=off", "lanes=9", "layout=row":
        os.environ["NAIAD_PRINT"] = settings
        print("#", settings, flush=True)
        try:
            show_kernel[(2,)](x, BLOCK=4)
        except triton.LaunchError as e:
            print(e)
        torch.cuda.synchronize()
"""


def test_prints_obey_the_same_settings_as_on_the_cpu(tmp_path):
    script = tmp_path / "prints.py"
    script.write_text(textwrap.dedent(PRINTS))
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    said = {}
    for line in done.stdout.splitlines():
        if line.startswith("# ") or line == "#":
            lines = said[line[1:].strip()] = []
        else:
            lines.append(line)
    values = [f"pid ({p}, 0, 0) idx ({i}) v: {(4 * p + i) / 4:.6f}" for p in range(2) for i in range(4)]
    programs = [f"pid ({p}, 0, 0) idx () at: {p}" for p in range(2)]
    assert sorted(said[""]) == sorted(said["layout=lines"]) == sorted(values + programs)
    assert sorted(said["program=1;lanes=1:3"]) == sorted([*values[5:7], programs[1]])
    assert said["layout=off"] == [] and sorted(said["lanes=9"]) == programs
    assert "there is no layout `row`" in "\n".join(said["layout=row"])


@triton.jit
def follow_kernel(addresses_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    p = tl.load(addresses_ptr + i, mask=i < n, other=0).to(tl.pointer_type(tl.float32))
    tl.store(out_ptr + i, tl.load(p, mask=i < n, other=0.0))


def test_pointers_made_of_integers_are_followed_and_those_that_lead_nowhere_are_told():
    x, out = numbers(4), torch.zeros(8, device="cuda")
    addresses = torch.tensor([x.data_ptr() + 4 * i for i in range(4)] + [0, 0, 0, 0], device="cuda")
    follow_kernel[(1,)](addresses, out, 4, BLOCK=8, debug=True)
    assert torch.equal(out[:4], x) and not out[4:].any()
    with pytest.raises(triton.OutOfBoundsError, match="reads address 0x0, where no memory is") as e:
        follow_kernel[(1,)](addresses, out, 5, BLOCK=8, debug=True)
    assert "lane 4 of program" in str(e.value)
    addresses[2] += 2
    with pytest.raises(triton.errors.KernelError, match="which is no multiple of 4 bytes"):
        follow_kernel[(1,)](addresses, out, 3, BLOCK=8, debug=True)
    # The GPU can be used afterwards.
    assert torch.equal(numbers(4).zero_(), torch.zeros(4, device="cuda"))


def test_checks_run_on_the_cpu(tmp_path):
    script = tmp_path / "stray.py"
    script.write_text(textwrap.dedent(FAULT).replace("x_ptr + offset.to(tl.int64) * 1000000", "x_ptr + 16"))
    command = [sys.executable, "-m", "naiad", "check", script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.returncode == 1 and "stray_kernel" in done.stderr and "16" in done.stderr, done.stderr


def test_what_a_launch_costs(capsys):
    x = numbers(1024)
    add(x, x, x)
    best = []
    for _ in range(50):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(200):
            add_kernel[(4,)](x, x, x, 1024, BLOCK=256)
        best.append((time.perf_counter() - start) / 200 * 1e6)
    torch.cuda.synchronize()
    with capsys.disabled():
        print(f"\na launch of 4 arguments costs the host {min(best):.2f} us, median {sorted(best)[25]:.2f}")
    assert min(best) < 12


def test_code_is_kept_on_disk(tmp_path):
    script = tmp_path / "kept.py"
    script.write_text("import sys\nsys.path.insert(0, sys.argv[1])\nimport torch, gpu_tests\n"
                      "x = torch.zeros(64, device='cuda')\nprint(gpu_tests.add(x, x, x).times)\n")
    environment = {**os.environ, "NAIAD_CACHE_DIR": str(tmp_path / "cache")}
    said = []
    for _ in range(2):
        command = [sys.executable, script, str(Path(__file__).parent)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100)
        assert done.returncode == 0, done.stderr
        said.append(done.stdout)
    assert "'cached': False" in said[0] and "'cached': True" in said[1], said
    assert _naiad.gpu_count() >= 1
