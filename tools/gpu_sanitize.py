"""Kernels under NVIDIA's compute-sanitizer, each in a process of its own, on a few blocks.

    python tools/gpu_sanitize.py --tool racecheck --seconds 200
    python tools/gpu_sanitize.py --only softmax,matmul
    python tools/gpu_sanitize.py --alone          # without the sanitizer: whether the results are right

The kernels are the examples', the benchmark's, and some that pass values through shared memory. No process
loads torch, of whose kernels the sanitizer would take account: memory is asked of the driver. Where there is
no GPU `--alone` runs on the CPU, or with `NAIAD_EXECUTOR=lockstep` as a GPU's code there.
"""

import argparse
import ctypes
import importlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
# What the sanitizer ends with if it found something, and a case if its results are wrong.
FOUND, WRONG = 9, 8
# The case in which `racecheck` must find something.
FINDS = "finds something"
PLANTED = "a race that was planted"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", default="racecheck")
    parser.add_argument("--only", default="", help="cases whose name has this in it; several between commas")
    parser.add_argument("--seconds", type=float, default=240, help="for everything")
    parser.add_argument("--case-seconds", type=float, default=120, help="for one case")
    parser.add_argument("--jobs", type=int, default=max((os.cpu_count() or 2) - 1, 1), help="processes at a time")
    parser.add_argument("--alone", action="store_true", help="without the sanitizer")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.case:
        return run_case(args.case)
    program = [] if args.alone else sanitizer(args.tool)
    if program is None:
        print("there is no compute-sanitizer, on the PATH or beside CUDA")
        return 1
    start = time.monotonic()
    names = [name for name in CASES if any(part in name for part in args.only.split(","))]
    with ThreadPoolExecutor(args.jobs) as pool:
        results = list(pool.map(lambda name: follow(name, program, args, start + args.seconds), names))
    bad = []
    for name, (said, seconds, text) in zip(names, results):
        print(f"{name:36} {said:24} {seconds:6.1f} s")
        if said != (FINDS if name == PLANTED and args.tool == "racecheck" and program else "ok"):
            bad.append(name)
            print("\n".join("    " + line for line in text.strip().splitlines()[-25:]))
    what = "without the sanitizer" if args.alone else args.tool
    print(f"{what}: {len(names) - len(bad)} of {len(names)} as they should be, in {time.monotonic() - start:.0f} s")
    return 1 if bad else 0


def sanitizer(tool):
    places = os.pathsep.join([os.environ["PATH"], "/usr/local/cuda/bin", "/usr/local/cuda/compute-sanitizer"])
    found = shutil.which("compute-sanitizer", path=places)
    return found and [found, "--tool", tool, "--error-exitcode", str(FOUND), "--print-limit", "10"]


def follow(name, program, args, deadline):
    """Runs a case; gives what came of it in a word, its time, and what was said."""
    start = time.monotonic()
    most = min(args.case_seconds, deadline - start)
    if most < 1:
        return "no more time", 0.0, ""
    # Only this kernel is taken account of, and only in the launch that there is.
    limits = ["--kernel-regex", f"kns={CASES[name][0]}", "--launch-count", "1"] if program else []
    command = [*program, *limits, sys.executable, __file__, "--case", name]
    with tempfile.TemporaryFile("w+") as output:
        try:
            code = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, timeout=most).returncode
        except subprocess.TimeoutExpired:
            code = None
        output.seek(0)
        text = output.read()
    words = {0: "ok", FOUND: FINDS, WRONG: "WRONG RESULTS", None: f"more than {most:.0f} s"}
    # The sanitizer that checks nothing is not content but blind.
    if code == 0 and program and "ERROR SUMMARY: 0" not in text and "RACECHECK SUMMARY: 0" not in text:
        return "no summary", time.monotonic() - start, text
    return words.get(code, f"ended with {code}"), time.monotonic() - start, text


# The process of one case -----------------------------------------------------------------------------


def run_case(name):
    sys.path[:0] = [str(ROOT / "examples"), str(ROOT / "bench")]
    import naiad
    import naiad.language

    sys.modules.update({"triton": naiad, "triton.language": naiad.language})
    _, case = CASES[name]
    off = case(Launcher(naiad))
    print(f"{name}: off by {off:.1e}")
    return 0 if off < 1e-2 else WRONG


class Launcher:
    """Launches kernels on NumPy's arrays: on the GPU, if there is one, on copies."""

    def __init__(self, naiad):
        self.naiad, self.driver = naiad, None
        if naiad._naiad.gpu_count():
            self.driver = ctypes.CDLL("libcuda.so.1")
            context = ctypes.c_void_p()
            self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
            self.call("cuCtxSetCurrent", context)

    def call(self, function, *args):
        code = getattr(self.driver, function)(*args)
        assert code == 0, f"{function}: {code}"

    def kernel(self, module, name):
        return getattr(importlib.import_module(module), name)

    def __call__(self, kernel, grid, *args, **options):
        if self.driver is None:
            return kernel[grid](*args, **options)
        copies = [Copy(self, arg) if isinstance(arg, np.ndarray) else arg for arg in args]
        kernel[grid](*copies, **options)
        self.naiad._naiad.gpu_synchronize(0)
        for copy in copies:
            if isinstance(copy, Copy):
                self.call("cuMemcpyDtoH_v2", ctypes.c_void_p(copy.array.ctypes.data), copy.address, copy.bytes)


class Copy:
    def __init__(self, launcher, array):
        assert array.flags.c_contiguous
        self.array, self.address = array, ctypes.c_uint64()
        self.bytes = ctypes.c_size_t(array.nbytes)
        launcher.call("cuMemAlloc_v2", ctypes.byref(self.address), self.bytes)
        launcher.call("cuMemcpyHtoD_v2", self.address, ctypes.c_void_p(array.ctypes.data), self.bytes)
        self.__cuda_array_interface__ = {**array.__array_interface__, "data": (self.address.value, False)}


# Each thread reads what its neighbour writes, with nothing between: the sanitizer that does not see this is blind.
RACE = b"""
.version 7.0
.target sm_80
.address_size 64
.visible .entry planted_race(.param .u64 out)
{
    .shared .align 4 .b8 room[256];
    .reg .b32 %r<6>;
    .reg .b64 %a<3>;
    mov.u32 %r1, %tid.x;
    shl.b32 %r2, %r1, 2;
    mov.u32 %r3, room;
    add.u32 %r4, %r3, %r2;
    st.shared.u32 [%r4], %r1;
    xor.b32 %r2, %r2, 128;
    add.u32 %r4, %r3, %r2;
    ld.shared.u32 %r5, [%r4];
    ld.param.u64 %a1, [out];
    mul.wide.u32 %a2, %r1, 4;
    add.u64 %a1, %a1, %a2;
    st.global.u32 [%a1], %r5;
    ret;
}
"""


def planted_race(launch):
    if launch.driver is None:
        return 0.0
    module, function, copy = ctypes.c_void_p(), ctypes.c_void_p(), Copy(launch, np.zeros(64, np.int32))
    launch.call("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(RACE))
    launch.call("cuModuleGetFunction", ctypes.byref(function), module, ctypes.c_char_p(b"planted_race"))
    arguments = (ctypes.c_void_p * 1)(ctypes.addressof(copy.address))
    launch.call("cuLaunchKernel", function, 1, 1, 1, 64, 1, 1, 0, None, arguments, None)
    launch.call("cuCtxSynchronize")
    return 0.0


def normal(*shape, dtype=np.float32):
    return np.random.default_rng(5).standard_normal(shape).astype(dtype)


def strides(x):
    return tuple(stride // x.itemsize for stride in x.strides)


def error(got, want):
    """The largest difference, as a part of the largest magnitude; infinite where a NaN is."""
    difference = np.abs(got.astype(np.float64) - want).max()
    return np.nan_to_num(difference, nan=np.inf) / max(np.abs(want).max(), 1e-30)


def rows_of(module, name, reference, per_row, cols=1000, block=1024):
    """A kernel of a matrix's rows: `per_row` results of a row, or a matrix if there is none."""

    def case(launch):
        x = normal(3, cols)
        out = [np.empty(3, np.float32) for _ in range(per_row)] or [np.empty_like(x)]
        ends = strides(x) if per_row else (*strides(x), *strides(out[0]))
        launch(launch.kernel(module, name), (3,), x, *out, cols, *ends, BLOCK=block)
        return max(error(got, want) for got, want in zip(out, reference(x.astype(np.float64))))

    return name, case


def gelu(launch):
    x, out = normal(1500), np.empty(1500, np.float32)
    launch(launch.kernel("gelu", "gelu_kernel"), (2,), x, out, 1500, 1, 1, BLOCK=1024)
    y = x.astype(np.float64)
    return error(out, 0.5 * y * (1 + np.tanh(0.7978845608028654 * (y + 0.044715 * y**3))))


def bias_add(name, cols, block):
    def case(launch):
        x, bias, out = normal(3, cols), normal(cols), np.empty((3, cols), np.float32)
        grid = (3, -(-cols // block))
        launch(launch.kernel("bias_add", name), grid, x, bias, out, cols, *strides(x), 1, *strides(out), BLOCK=block)
        return error(out, x.astype(np.float64) + bias)

    return name, case


def softmax(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return [e / e.sum(1, keepdims=True)]


def row_stats(x):
    return [x.mean(1), x.var(1)]


def transpose(tile, rows, cols):
    def case(launch):
        x, out = normal(rows, cols), np.empty((cols, rows), np.float32)
        grid = -(-rows // tile), -(-cols // tile)
        kernel = launch.kernel("transpose", "transpose_kernel")
        launch(kernel, grid, x, out, rows, cols, *strides(x), *strides(out), BLOCK_ROWS=tile, BLOCK_COLS=tile)
        return error(out, x.T)

    return "transpose_kernel", case


def matmul(dtype, tile, warps, stages, gelu=False):
    """Two tiles of the result, and more rounds than are under way."""
    block_m, block_n, block_k = tile
    m, n, k = block_m + 8, block_n, (stages + 2) * block_k

    def case(launch):
        a, b, c = normal(m, k, dtype=dtype), normal(k, n, dtype=dtype), np.empty((m, n), dtype)
        launch(
            launch.kernel("gpu_kernels", "matmul_kernel"), (2,), a, b, c, m, n, k,
            *strides(a), *strides(b), *strides(c), PRECISION="tf32", GELU=gelu,
            BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k, GROUP_M=8, num_warps=warps, num_stages=stages,
        )
        want = a.astype(np.float64) @ b.astype(np.float64)
        if gelu:
            want = 0.5 * want * (1 + np.tanh(0.7978845608028654 * (want + 0.044715 * want**3)))
        return error(c, want)

    return "matmul_kernel", case


def layer_norm(name, cols, block, warps):
    def case(launch):
        x, out = normal(2, cols, dtype=np.float16), np.empty((2, cols), np.float16)
        weight, bias = normal(cols, dtype=np.float16), np.ones(cols, np.float16)
        kept = [np.empty(2, np.float32), np.empty(2, np.float32)] if "passes" in name else []
        kernel = launch.kernel("gpu_kernels", name)
        launch(kernel, (2,), x, out, weight, bias, *kept, cols, cols, 1e-5, BLOCK=block, num_warps=warps)
        y = x.astype(np.float64)
        y = (y - y.mean(1, keepdims=True)) / np.sqrt(y.var(1, keepdims=True) + 1e-5)
        return error(out, y * weight.astype(np.float64) + 1)

    return name, case


def through_shared_memory(name, reference, values=normal, n=1024):
    def case(launch):
        x = values(n)
        want = reference(x)
        out = np.empty(want.shape, want.dtype)
        launch(launch.kernel("gpu_sanitize_kernels", name), (1,), x, out, N=n)
        return error(out, want)

    return name, case


def some_integers(n):
    return np.random.default_rng(5).integers(0, 64, n).astype(np.int32)


CASES = {
    PLANTED: ("planted_race", planted_race),
    "GELU": ("gelu_kernel", gelu),
    "bias add": bias_add("bias_add_kernel", 1000, 1024),
    "bias add, wide": bias_add("bias_add_wide_kernel", 3000, 1024),
    "softmax": rows_of("softmax", "softmax_kernel", softmax, 0),
    "softmax, short rows": rows_of("softmax", "softmax_kernel", softmax, 0, cols=17, block=32),
    "mean and variance": rows_of("row_stats", "row_stats_kernel", row_stats, 2),
    "mean and variance, streaming": rows_of("row_stats", "row_stats_streaming_kernel", row_stats, 2, block=256),
    "row sum": rows_of("row_sum", "row_sum_kernel", lambda x: [x.sum(1)], 1, cols=5000, block=2048),
    "transpose, tile 32": transpose(32, 65, 40),
    "transpose, tile 64": transpose(64, 128, 64),
    "transpose, odd rows": transpose(64, 67, 129),
    "layer norm": layer_norm("layer_norm_kernel", 1000, 1024, 4),
    "layer norm, passes": layer_norm("layer_norm_passes_kernel", 3000, 1024, 4),
    "matmul fp16 128x128x64": matmul(np.float16, (128, 128, 64), 8, 3),
    "matmul fp16 64x128x32": matmul(np.float16, (64, 128, 32), 4, 4),
    "matmul fp16 128x64x64, GELU": matmul(np.float16, (128, 64, 64), 4, 4, gelu=True),
    "matmul tf32 64x64x32": matmul(np.float32, (64, 64, 32), 4, 3),
    "scan": through_shared_memory("scan_kernel", np.cumsum),
    "sort": through_shared_memory("sort_kernel", np.sort),
    "reverse": through_shared_memory("reverse_kernel", lambda x: x[::-1].copy()),
    "gather": through_shared_memory("gather_kernel", lambda x: x[x % 64], values=some_integers),
    "histogram": through_shared_memory(
        "histogram_kernel", lambda x: np.bincount(x, minlength=64).astype(np.int32), values=some_integers
    ),
    "argmax": through_shared_memory("argmax_kernel", lambda x: np.array([x.argmax()], np.int32)),
}


if __name__ == "__main__":
    sys.exit(main())
