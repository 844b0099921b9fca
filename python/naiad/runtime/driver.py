"""The device, as host code asks for it: ``triton.runtime.driver.active``.

It is the GPU that torch or CuPy have, where there is one; else this machine's CPU, or the GPU that the
CPU impersonates for torch: see `naiad.cuda`.
"""

import functools
import os
import sys
import time

from .. import _naiad, cuda
from ..backends.compiler import GPUTarget
from ..backends.driver import DriverBase


def has_gpu():
    """Whether tensors can be on a GPU of this machine's. Nothing is started for the answer until a library
    that has such tensors is there."""
    if cuda.gpu() is not None:
        return False
    torch = sys.modules.get("torch")
    if torch is not None:
        return torch.cuda.is_available()
    return "cupy" in sys.modules and _naiad.gpu_count() > 0


@functools.cache
def _real(ordinal):
    return cuda.gpus.Gpu(**_naiad.gpu_facts(ordinal))


def _gpu(device=None):
    """The GPU, real or impersonated, with its figures; None where there is none."""
    if not has_gpu():
        return cuda.gpu()
    return _real(_current() if device is None else device)


def _current():
    """The number of the current device."""
    torch = sys.modules.get("torch")
    if torch is not None and has_gpu():
        return torch.cuda.current_device()
    return 0


class _Utils:
    @staticmethod
    def get_device_properties(device=0):
        """Figures that kernels size themselves by; on a CPU a core stands for a multiprocessor."""
        gpu = _gpu(device)
        if gpu is None:
            return {
                "max_shared_mem": 228 * 1024,
                "max_num_regs": 65536,
                "multiprocessor_count": os.cpu_count() or 1,
                "warpSize": 32,
                "sm_clock_rate": 1_000_000,
                "mem_clock_rate": 1_000_000,
                "mem_bus_width": 64,
            }
        return {
            "max_shared_mem": gpu.shared_memory_per_block_optin,
            "max_num_regs": gpu.regs_per_multiprocessor,
            "multiprocessor_count": gpu.multi_processor_count,
            "warpSize": gpu.warp_size,
            "sm_clock_rate": gpu.clock_rate,
            "mem_clock_rate": gpu.memory_clock_rate,
            "mem_bus_width": gpu.memory_bus_width,
        }


class _Event:
    """A point in time: work here is done when the call for it returns."""

    def __init__(self, enable_timing=False, **options):
        self._at = None

    def record(self, stream=None):
        self._at = time.perf_counter()

    def elapsed_time(self, end):
        """Milliseconds until ``end``."""
        return (end._at - self._at) * 1e3

    def synchronize(self):
        pass

    wait = synchronize

    def query(self):
        return True


class _DeviceInterface:
    """What code for any device asks of torch's module for the device."""

    Event = _Event

    @staticmethod
    def synchronize(device=None):
        pass

    @staticmethod
    def current_device():
        return 0

    @staticmethod
    def set_device(device):
        pass

    @staticmethod
    def device_count():
        return 1

    @staticmethod
    def is_available():
        return True

    @staticmethod
    def current_stream(device=None):
        return None


class Driver(DriverBase):
    utils = _Utils()

    @staticmethod
    def get_current_target():
        gpu = _gpu()
        return GPUTarget("cpu", "native", 32) if gpu is None else GPUTarget("cuda", gpu.arch, gpu.warp_size)

    @staticmethod
    def get_current_device():
        return _current()

    @staticmethod
    def set_current_device(device):
        if has_gpu() and "torch" in sys.modules:
            sys.modules["torch"].cuda.set_device(device)

    @staticmethod
    def get_current_stream(device=None):
        if has_gpu() and "torch" in sys.modules:
            return sys.modules["torch"].cuda.current_stream(device).cuda_stream
        return 0

    @staticmethod
    def get_device_capability(device=0):
        gpu = _gpu(device)
        return (0, 0) if gpu is None else gpu.capability

    @staticmethod
    def get_active_torch_device():
        import torch

        return torch.device("cpu") if _gpu() is None else torch.device("cuda", _current())

    @staticmethod
    def get_device_interface():
        if _gpu() is None:
            return _DeviceInterface
        import torch

        return torch.cuda

    @staticmethod
    def get_empty_cache_for_benchmark():
        """Memory to overwrite so that the caches hold nothing else."""
        import torch

        if has_gpu():
            return torch.empty(256 << 20, dtype=torch.int8, device="cuda")
        return torch.empty(64 << 20, dtype=torch.int8)

    @staticmethod
    def clear_cache(cache):
        cache.zero_()

    @staticmethod
    def get_benchmarker():
        from ..testing import do_bench

        return do_bench

    @staticmethod
    def is_active():
        return True


active = default = Driver()


def set_active(driver):
    """Lets host code ask another object about the device. Launches are this machine's as before."""
    global active
    active = driver


def reset_active():
    set_active(default)


# Code for builds of Triton that have a CPU beside a GPU chooses by these.
set_active_to_cpu = reset_active


def get_active_gpus():
    return []


# `from triton.runtime.driver import driver` and `triton.runtime.driver` are one thing.
driver = sys.modules[__name__]
