"""Runs the tests on a GPU where `NAIAD_TEST_DEVICE=cuda` asks for it, with torch to hold memory there.

The tests are written for NumPy. A launch's arrays are copied to the GPU, whole allocations with their
views, and copied back behind it. A test of what only the CPU watches over is left out. What breaks the
GPU's context ends the process, since no test after it could run: use pytest-xdist, which starts another.
"""

import copy
import ctypes
import inspect
import os
import re
import sys

import numpy as np
import pytest

import naiad
from naiad import _naiad

ON_GPU = os.environ.get("NAIAD_TEST_DEVICE") == "cuda"
# Errors that the CPU's executors find in a launch, and what is shown while it runs.
_CPU_ONLY = re.compile(r"OutOfBoundsError|DeadlockError|KernelError|device_print|capfd|capsys")

# Code for a GPU, run by all threads of a block in lockstep: no GPU is needed.
IN_LOCKSTEP = os.environ.get("NAIAD_EXECUTOR") == "lockstep"
# What it does otherwise than the CPU's executors, with why.
_NOT_IN_LOCKSTEP = [
    (r"inline_asm\.py::test_(texts_that_only_a_gpu_can_run|calls_that_are_refused)", "a GPU can, or tells so itself"),
    (r"synchronize\.py::test_a_chain_of_programs", "each block waits for the next, and they are run in order"),
    (r"machine\.py::test_programs_of_one_launch_share_the_clock", "blocks that wait for each other's time"),
    (r"atomics\.py::test_a_lock_guards_what_is_no_atomic", "blocks that wait for each other's lock"),
    (r"block_pointers\.py::test_what_is_not_checked_is_caught", "what nobody uses is not loaded"),
    (r"descriptors\.py::test_storage_that_is_too_short", "what nobody uses is not loaded"),
    (r"load\.py::test_arrays_of_other_libraries_byte_order_and_alignment", "a GPU loads no element across its alignment"),
]
# And a GPU, with why.
_NOT_ON_GPU = [
    (r"atomics\.py::test_every_type\[atomic_add-float32\]", "its atomic sums of fp32 take subnormal numbers for zeros"),
    (r"cast\.py::test_pointers_as_numbers", ADDRESSES := "arrays are copied there, to other addresses"),
    (r"pointers\.py::test_(an_offset_wraps|what_is_subtracted|pointers_made_of_integers)", ADDRESSES),
    (r"store\.py::test_an_address_is_stored_as_a_number", ADDRESSES),
    (r"store\.py::test_nothing_is_stored_in_read_only_arrays", "nobody watches over memory there"),
    (r"load\.py::test_arrays_of_other_libraries_byte_order_and_alignment", "it loads no element across its alignment"),
    (r"device_print\.py::", "the driver prints to the process's own output, in an order of its own"),
    (r"device_assert\.py::test_programs_that_wait_for_the_one_that_ends", "several programs fail, of which one is told"),
    (r"inline_asm\.py::test_texts_that_only_a_gpu_can_run", "it can, or its assembler says why not"),
    (r"inline_asm\.py::test_functions\[(lg2|sin|cos|tanh)\.approx", "its own approximations, which are coarser"),
    (r"machine\.py::test_(a_cpu_is_neither|by_other_names|they_choose_at_compile_time)", "it is a GPU"),
    (r"program\.py::test_a_grid_that_is_a_function_sees_the_arguments", "the grid gets copies of another class"),
]


def pytest_collection_modifyitems(items):
    excluded = _NOT_IN_LOCKSTEP if IN_LOCKSTEP else _NOT_ON_GPU if ON_GPU else []
    for item in items:
        for pattern, reason in excluded:
            if re.search(pattern, item.nodeid):
                item.add_marker(pytest.mark.skip(reason=reason))
    if not ON_GPU:
        return
    skip = pytest.mark.skip(reason="what it tests is watched over on the CPU only")
    for item in items:
        function = getattr(item, "function", None)
        if function is not None and _CPU_ONLY.search(inspect.getsource(function)):
            item.add_marker(skip)


class OnGpu:
    """An array's copy on the GPU."""

    def __init__(self, array, address, storage):
        self.shape = array.shape
        # All of the allocation, as torch tells it.
        self.untyped_storage = lambda: storage
        self.__cuda_array_interface__ = {
            "typestr": array.dtype.str,
            "data": (address, not array.flags.writeable),
            "shape": array.shape,
            "strides": array.strides,
            "version": 3,
        }


class Storage:
    def __init__(self, address, nbytes):
        self.data_ptr = lambda: address
        self.nbytes = lambda: nbytes


class Copies:
    """The copies that one launch has: one for each allocation."""

    def __init__(self):
        self.of = {}

    def __call__(self, value):
        if isinstance(value, np.ndarray):
            return self.array(value)
        if isinstance(value, tuple):
            items = [self(item) for item in value]
            return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
        # Descriptors, and arrays that are reinterpreted.
        if type(value).__module__.startswith("naiad.") and hasattr(value, "base"):
            value = copy.copy(value)
            value.base = self(value.base)
        return value

    def array(self, array):
        import torch

        owner = array
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        key = owner.ctypes.data, owner.nbytes
        if key not in self.of:
            device = torch.empty(max(owner.nbytes, 16), dtype=torch.uint8, device="cuda")
            if owner.nbytes:
                device[: owner.nbytes].copy_(self.bytes(owner))
            self.of[key] = owner, device
        device = self.of[key][1]
        address = device.data_ptr() + array.ctypes.data - owner.ctypes.data
        return OnGpu(array, address, Storage(device.data_ptr(), owner.nbytes))

    @staticmethod
    def bytes(owner):
        import torch

        memory = (ctypes.c_char * owner.nbytes).from_address(owner.ctypes.data)
        return torch.frombuffer(memory, dtype=torch.uint8)

    def back(self):
        for owner, device in self.of.values():
            if owner.nbytes and owner.flags.writeable:
                self.bytes(owner).copy_(device[: owner.nbytes])


def launch_on_gpu(function, grid):
    def launch(*args, **kwargs):
        copies = Copies()
        args = [copies(arg) for arg in args]
        kwargs = {name: copies(arg) for name, arg in kwargs.items()}
        if not copies.of:
            # Without memory it would run on the CPU.
            pytest.skip("a launch without memory")
        try:
            compiled = naiad.JITFunction.run(function, *args, grid=grid, warmup=False, **kwargs)
            _naiad.gpu_synchronize(0)
        except naiad.errors.GpuError as e:
            print(f"{os.environ.get('PYTEST_CURRENT_TEST')}: {e}", file=sys.__stderr__, flush=True)
            os._exit(70)
        finally:
            # Also what was stored before an assertion failed.
            copies.back()
        return compiled

    return launch


if ON_GPU:
    naiad.JITFunction.__getitem__ = launch_on_gpu
