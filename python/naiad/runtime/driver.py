"""The device, as host code asks for it: ``triton.runtime.driver.active``."""

import os
from collections import namedtuple

GPUTarget = namedtuple("GPUTarget", "backend arch warp_size")


class _Utils:
    @staticmethod
    def get_device_properties(device=0):
        """Figures that kernels size themselves by; a core stands for a multiprocessor."""
        return {
            "max_shared_mem": 228 * 1024,
            "max_num_regs": 65536,
            "multiprocessor_count": os.cpu_count() or 1,
            "warpSize": 32,
            "sm_clock_rate": 1_000_000,
            "mem_clock_rate": 1_000_000,
            "mem_bus_width": 64,
        }


class CpuDriver:
    utils = _Utils()

    @staticmethod
    def get_current_target():
        return GPUTarget("cpu", "native", 32)

    @staticmethod
    def get_current_device():
        return 0

    @staticmethod
    def get_active_torch_device():
        import torch

        return torch.device("cpu")

    @staticmethod
    def get_benchmarker():
        from ..testing import do_bench

        return do_bench

    @staticmethod
    def is_active():
        return True


active = CpuDriver()
