"""What tests written for Triton import of it: ``triton._internal_testing``. Needs NumPy, torch, pytest."""

import multiprocessing
import os
import sys
import tempfile
from dataclasses import dataclass

import numpy as np
import pytest
import torch

from . import knobs, language as tl
from .runtime import driver
from .runtime.jit import TensorWrapper, reinterpret, type_canonicalisation_dict
from .runtime.types import str_to_ty

int_dtypes = ["int8", "int16", "int32", "int64"]
uint_dtypes = ["u" + name for name in int_dtypes]
integral_dtypes = int_dtypes + uint_dtypes
float_dtypes = ["float16", "float32", "float64"]
float_dtypes_with_bfloat16 = [*float_dtypes, "bfloat16"]
dtypes = integral_dtypes + float_dtypes
dtypes_with_bfloat16 = [*dtypes, "bfloat16"]
torch_float8_dtypes = ["float8_e4m3fn", "float8_e5m2"]
torch_dtypes = ["bool", *int_dtypes, "uint8", *float_dtypes, "bfloat16"]
tma_dtypes = sorted(set(dtypes_with_bfloat16) - {"int64", "uint64", "float64"})


# What is run on.


def is_interpreter():
    """Kernels are always compiled here."""
    return False


def get_current_target():
    return driver.active.get_current_target()


def _backend():
    return get_current_target().backend


def is_cpu():
    return _backend() == "cpu"


def is_cuda():
    return _backend() == "cuda"


def is_hip():
    return _backend() == "hip"


def is_xpu():
    return _backend() == "xpu"


def _capability():
    """The generation of a device of NVIDIA's; (0, 0) of others."""
    return torch.cuda.get_device_capability() if is_cuda() else (0, 0)


def is_ampere_or_newer():
    return _capability() >= (8, 0)


def is_hopper():
    return _capability()[0] == 9


def is_hopper_or_newer():
    return _capability() >= (9, 0)


def is_blackwell():
    return _capability()[0] in (10, 11)


def is_blackwell_ultra():
    return _capability() == (10, 3)


def is_sm12x():
    return _capability()[0] == 12


def _gfx(*prefixes):
    return is_hip() and str(get_current_target().arch).startswith(prefixes)


def is_hip_cdna2():
    return _gfx("gfx90a")


def is_hip_cdna3():
    return _gfx("gfx942")


def is_hip_cdna4():
    return _gfx("gfx950")


def is_hip_cdna3_or_newer():
    return _gfx("gfx942", "gfx950")


def is_hip_cdna():
    return _gfx("gfx90a", "gfx942", "gfx950")


def is_hip_rdna3():
    return _gfx("gfx11")


def is_hip_gfx1250():
    return _gfx("gfx1250")


def is_hip_rdna4():
    return _gfx("gfx120")


def is_hip_rdna():
    return is_hip_rdna3() or is_hip_rdna4()


def get_hip_lds_size():
    return (160 if is_hip_cdna4() else 64) << 10


def supports_tma(byval_only=False):
    """Whether the tests that ask for hardware's own copies of tiles are to run."""
    return is_hopper_or_newer()


def supports_ws():
    return is_hopper_or_newer()


def tma_skip_msg(byval_only=False):
    return "needs copies of tiles by hardware, which GPUs of NVIDIA's have from Hopper on"


requires_tma = pytest.mark.skipif(not supports_tma(), reason=tma_skip_msg())


# Data.


def numpy_random(shape, dtype_str, rs=None, low=None, high=None):
    """Random numbers of a dtype, the same in every call unless ``rs`` is given. No integer is 0,
    so that all can be divided by."""
    shape = (shape,) if isinstance(shape, int) else shape
    rs = np.random.RandomState(17) if rs is None else rs
    if dtype_str in integral_dtypes:
        limits = np.iinfo(dtype_str)
        low = limits.min if low is None else max(low, limits.min)
        high = limits.max if high is None else min(high, limits.max)
        x = rs.randint(low, high, shape, dtype=dtype_str)
        x[x == 0] = 1
        return x
    if dtype_str in ("bool", "bool_", "int1"):
        return rs.normal(0, 1, shape) > 0
    if dtype_str.startswith("float8"):
        # Bits of numbers that are neither large nor tiny.
        return rs.randint(20, 40, shape, dtype=np.int8)
    if dtype_str == "bfloat16":
        # As fp32: NumPy has no bfloat16.
        bits = rs.normal(0, 1, shape).astype(np.float32).view(np.uint32)
        return (bits & np.uint32(0xFFFF0000)).view(np.float32)
    if dtype_str in float_dtypes:
        return rs.normal(0, 1, shape).astype(dtype_str)
    raise RuntimeError(f"there are no random numbers of {dtype_str!r}")


def to_triton(x, device, dst_type=None):
    """A tensor of an array; ``dst_type`` is for types that NumPy does not have."""
    name = x.dtype.name
    if name in uint_dtypes:
        # torch computes little with these, and older versions had none.
        return reinterpret(torch.tensor(x.view(name[1:]), device=device), getattr(tl, name))
    tensor = torch.tensor(x, device=device)
    if dst_type is not None and "float8" in dst_type:
        return reinterpret(tensor, getattr(tl, dst_type))
    if dst_type == "bfloat16" and name == "float32":
        return tensor.bfloat16()
    return tensor


def to_numpy(x):
    """The array of a tensor."""
    if isinstance(x, TensorWrapper):
        return x.base.cpu().numpy().astype(torch_dtype_name(x.dtype))
    if isinstance(x, torch.Tensor):
        return (x.float() if x.dtype is torch.bfloat16 else x).cpu().numpy()
    raise ValueError(f"{type(x).__name__} is no tensor")


def str_to_triton_dtype(x):
    return str_to_ty(type_canonicalisation_dict[x])


def torch_dtype_name(dtype):
    """The bare name: `int64` of `torch.int64`."""
    if isinstance(dtype, tl.dtype):
        return dtype.name
    if isinstance(dtype, torch.dtype):
        return str(dtype).removeprefix("torch.")
    raise TypeError(f"{type(dtype).__name__} is no dtype of torch's or Triton's")


def unwrap_tensor(t):
    return t.base if isinstance(t, TensorWrapper) else t


def default_alloc_fn(size, align, stream):
    return torch.empty(size, dtype=torch.int8, device=driver.active.get_active_torch_device())


# Processes and settings.


@dataclass
class ProcessResult:
    """How a function ended in another process."""

    exc: object
    driver_stderr_output: str


def _in_process(function, pipe, args, kwargs, env, stderr):
    os.environ.update(env or {})
    knobs.refresh_knobs()
    with open(stderr, "wb") as file:
        os.dup2(file.fileno(), 2)
    raised = None
    try:
        function(*args, **kwargs)
    except Exception as e:
        raised = e
    sys.stderr.flush()
    try:
        pipe.send(raised)
    except Exception:
        # Not everything that is raised can be sent.
        pipe.send(RuntimeError(f"{type(raised).__name__}: {raised}"))


def run_in_process(client_fn, args=(), kwargs=None, env=None):
    """Calls a function in a process of its own; says what it raised and wrote to stderr."""
    # Forked, it has what this one has, and at once; but no GPU that this one has used.
    torch = sys.modules.get("torch")
    uses_gpu = torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized()
    context = multiprocessing.get_context("spawn" if uses_gpu or sys.platform == "win32" else "fork")
    ours, theirs = context.Pipe(duplex=False)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "stderr")
        process = context.Process(target=_in_process, args=(client_fn, theirs, args, kwargs or {}, env, path))
        process.start()
        theirs.close()
        try:
            raised = ours.recv()
        except EOFError:
            process.join()
            raise RuntimeError(f"the process ended with code {process.exitcode} and said nothing") from None
        process.join()
        with open(path) as file:
            return ProcessResult(raised, file.read())


def _fresh_knobs_impl(skipped_attr=None):
    """Two functions: one replaces all settings by fresh ones, one brings the old ones back."""
    names = [name for name, x in vars(knobs).items() if isinstance(x, knobs.base_knobs)]
    before = {name: getattr(knobs, name) for name in names if name not in (skipped_attr or ())}
    variables = {x.key for settings in before.values() for x in settings.knob_descriptors.values()}
    environment = {key: os.environ[key] for key in variables if key in os.environ}
    propagate = knobs.propagate_env

    def fresh():
        for key in variables:
            os.environ.pop(key, None)
        for name, settings in before.items():
            setattr(knobs, name, settings.copy().reset())
        knobs.propagate_env = True
        return knobs

    def bring_back():
        for name, settings in before.items():
            setattr(knobs, name, settings)
        for key in variables:
            os.environ.pop(key, None)
        os.environ.update(environment)
        knobs.propagate_env = propagate

    return fresh, bring_back
