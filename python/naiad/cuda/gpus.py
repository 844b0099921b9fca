"""The GPUs that can be impersonated: what host code asks about them, and sizes kernels by.

Shared memory is in bytes: of a multiprocessor, and the most that one block may opt in to.
"""

import os
from dataclasses import dataclass

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30

# The variable of the environment that names the GPU.
VARIABLE = "NAIAD_GPU"
DEFAULT = "h100"


@dataclass(frozen=True)
class Gpu:
    """What ``torch.cuda.get_device_properties`` says, in its names."""

    name: str
    major: int
    minor: int
    multi_processor_count: int
    total_memory: int
    L2_cache_size: int
    shared_memory_per_multiprocessor: int
    shared_memory_per_block_optin: int
    max_threads_per_multi_processor: int
    # In kHz; the width is in bits.
    clock_rate: int
    memory_clock_rate: int
    memory_bus_width: int
    shared_memory_per_block: int = 48 * KIB
    max_threads_per_block: int = 1024
    regs_per_multiprocessor: int = 65536
    warp_size: int = 32
    is_integrated: int = 0
    is_multi_gpu_board: int = 0
    pci_bus_id: int = 0
    pci_device_id: int = 0
    pci_domain_id: int = 0
    uuid: str = "00000000-0000-0000-0000-000000000000"
    gcnArchName: str = ""

    @property
    def capability(self):
        return self.major, self.minor

    @property
    def arch(self):
        """The capability as one number: 90 for 9.0."""
        return 10 * self.major + self.minor


GPUS = {
    "a100": Gpu(
        "NVIDIA A100-SXM4-80GB", 8, 0, 108, 80 * GIB, 40 * MIB, 164 * KIB, 163 * KIB, 2048, 1_410_000, 1_593_000, 5120
    ),
    "h100": Gpu(
        "NVIDIA H100 80GB HBM3", 9, 0, 132, 80 * GIB, 50 * MIB, 228 * KIB, 227 * KIB, 2048, 1_980_000, 2_619_000, 5120
    ),
    "h200": Gpu("NVIDIA H200", 9, 0, 132, 140 * GIB, 60 * MIB, 228 * KIB, 227 * KIB, 2048, 1_980_000, 3_201_000, 6144),
    "b200": Gpu(
        "NVIDIA B200", 10, 0, 148, 179 * GIB, 126 * MIB, 228 * KIB, 227 * KIB, 2048, 1_965_000, 3_996_000, 8192
    ),
    "l4": Gpu("NVIDIA L4", 8, 9, 58, 22 * GIB, 48 * MIB, 100 * KIB, 99 * KIB, 1536, 2_040_000, 6_251_000, 192),
    "rtx4090": Gpu(
        "NVIDIA GeForce RTX 4090", 8, 9, 128, 24 * GIB, 72 * MIB, 100 * KIB, 99 * KIB, 1536, 2_520_000, 10_501_000, 384
    ),
}


def chosen(name=None):
    """The GPU of this name, else the one that the environment names, else the default."""
    name = name or os.environ.get(VARIABLE) or DEFAULT
    gpu = GPUS.get(name.lower())
    if gpu is None:
        raise ValueError(f"no GPU `{name}` is known here that could be impersonated: choose of {', '.join(GPUS)}")
    return gpu
