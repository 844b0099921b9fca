"""``torch.cuda`` and ``torch.accelerator``, for one GPU that the CPU impersonates.

Each public name here, imported or not, takes the place of torch's. Launches are over when they return, so whatever
waits, waits for nothing; times are those of the clock.
"""

import contextlib
import os
import time
import types

import torch

from .streams import (
    Event,
    ExternalStream,
    Stream,
    StreamContext,
    current_stream,
    default_stream,
    get_stream_from_external,
    set_stream,
    stream,
)
from .tensors import index as _index

gpu = None


# The device.


def is_available():
    return True


def is_initialized():
    return True


def init():
    pass


_lazy_init = init


def _is_compiled():
    return True


def _is_in_bad_fork():
    return False


def _lazy_call(callable, **kwargs):
    callable()


def device_count():
    return 1


def current_device():
    return 0


def set_device(device):
    _index(device)


def _exchange_device(index):
    return -1 if index < 0 else _index(index)


_maybe_exchange_device = _exchange_device


class device:
    """Makes a device the current one; there is only one."""

    def __init__(self, device):
        self.idx = _index(device)
        self.prev_idx = -1

    def __enter__(self):
        self.prev_idx = 0

    def __exit__(self, *exception):
        return False


class _DeviceGuard(device):
    pass


class device_of(device):
    """Makes the device of a tensor the current one."""

    def __init__(self, obj):
        super().__init__(None)


def get_device_properties(device=None):
    _index(device)
    return gpu


def get_device_name(device=None):
    return get_device_properties(device).name


def get_device_capability(device=None):
    return get_device_properties(device).capability


def can_device_access_peer(device, peer_device):
    return False


def get_arch_list():
    return [f"sm_{gpu.arch}"]


def get_gencode_flags():
    return f"-gencode compute=compute_{gpu.arch},code=sm_{gpu.arch}"


def is_bf16_supported(including_emulation=True):
    return including_emulation or gpu.major >= 8


def is_tf32_supported():
    return gpu.major >= 8


def utilization(device=None):
    return 0


temperature = power_draw = memory_usage = utilization


def clock_rate(device=None):
    return gpu.clock_rate // 1000


def synchronize(device=None):
    _index(device)


def ipc_collect():
    pass


def current_blas_handle():
    return 0


def set_sync_debug_mode(debug_mode):
    pass


def get_sync_debug_mode():
    return 0


def _sleep(cycles):
    time.sleep(cycles / (gpu.clock_rate * 1e3))


class _Cudart:
    """The calls of the CUDA runtime that scripts make by themselves."""

    @staticmethod
    def cudaProfilerStart():
        return 0

    cudaProfilerStop = cudaProfilerStart

    @staticmethod
    def cudaDeviceSynchronize():
        return 0

    @staticmethod
    def cudaMemGetInfo(device=0):
        return mem_get_info(device)


def cudart():
    return _Cudart


# Graphs.


def _refuse_graph():
    raise RuntimeError(
        "CUDA graphs record launches for a GPU to replay, and `cuda` is served by the CPU here: "
        "call the function itself, without a graph"
    )


class CUDAGraph:
    def __init__(self, *args, **kwargs):
        _refuse_graph()


class graph:
    def __init__(self, *args, **kwargs):
        _refuse_graph()


def make_graphed_callables(*args, **kwargs):
    _refuse_graph()


def graph_pool_handle():
    _refuse_graph()


def is_current_stream_capturing():
    return False


# Memory. What is allocated is the process's, and nobody counts it by device.


def memory_allocated(device=None):
    return 0


max_memory_allocated = memory_reserved = max_memory_reserved = memory_allocated
memory_cached = max_memory_cached = device_memory_used = memory_allocated


def empty_cache():
    pass


def reset_peak_memory_stats(device=None):
    pass


reset_accumulated_memory_stats = reset_max_memory_allocated = reset_max_memory_cached = reset_peak_memory_stats


class _Zeros(dict):
    """Figures of an allocator, all 0."""

    def __missing__(self, name):
        return 0

    def get(self, name, default=None):
        return 0


def memory_stats(device=None):
    return _Zeros()


def memory_summary(device=None, abbreviated=False):
    return "memory is not counted where `cuda` is served by the CPU"


def memory_snapshot(*args, **kwargs):
    return []


def list_gpu_processes(device=None):
    return ""


def mem_get_info(device=None):
    """Bytes that are free and bytes that there are; never more free than this machine has."""
    try:
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        free = gpu.total_memory
    return min(free, gpu.total_memory), gpu.total_memory


def set_per_process_memory_fraction(fraction, device=None):
    pass


def get_per_process_memory_fraction(device=None):
    return 1.0


def get_allocator_backend():
    return "native"


# Random numbers, which are the CPU's.


def manual_seed(seed):
    torch.default_generator.manual_seed(int(seed))


manual_seed_all = manual_seed


def seed():
    torch.default_generator.seed()


seed_all = seed


def initial_seed():
    return torch.default_generator.initial_seed()


def get_rng_state(device="cuda"):
    return torch.default_generator.get_state()


def get_rng_state_all():
    return [get_rng_state()]


def set_rng_state(new_state, device="cuda"):
    torch.default_generator.set_state(new_state.cpu())


def set_rng_state_all(new_states):
    for state in new_states:
        set_rng_state(state)


def _nvtx():
    depth = []

    def range_push(msg):
        depth.append(msg)
        return len(depth) - 1

    def range_pop():
        if depth:
            depth.pop()
        return len(depth)

    return {
        "range_push": range_push,
        "range_pop": range_pop,
        "range_start": lambda msg: 0,
        "range_end": lambda range_id: None,
        "mark": lambda msg: None,
    }


def _accelerator():
    """What `torch.accelerator` has."""

    @contextlib.contextmanager
    def device_index(device):
        _index(device)
        yield

    def get_memory_info(device_index=None):
        return mem_get_info(device_index)

    mine = {name: globals()[name] for name in torch.accelerator.__all__ if name in globals()}
    return {
        **mine,
        "current_accelerator": lambda check_available=False: torch.device("cuda"),
        "current_device_index": current_device,
        "current_device_idx": current_device,
        "set_device_index": set_device,
        "set_device_idx": set_device,
        "get_device_capability": lambda device=None: {"supported_dtypes": set()},
        "device_index": device_index,
        "get_memory_info": get_memory_info,
        "empty_host_cache": empty_cache,
    }


# Functions of torch's C part that launchers call directly.
_RAW = {
    "_cuda_getCurrentRawStream": lambda device: current_stream().cuda_stream,
    "_cuda_getDevice": current_device,
    "_cuda_setDevice": set_device,
    "_cuda_getDeviceCount": device_count,
    "_cuda_exchangeDevice": _exchange_device,
    "_cuda_maybeExchangeDevice": _exchange_device,
    "_cuda_isCurrentStreamCapturing": is_current_stream_capturing,
    "_cuda_clearCublasWorkspaces": init,
    "_cuda_isInBadFork": _is_in_bad_fork,
}


def _own():
    """The names that are torch's too."""
    private = """
        _DeviceGuard _exchange_device _is_compiled _is_in_bad_fork _lazy_call _lazy_init
        _maybe_exchange_device _sleep
    """.split()
    names = {*torch.cuda.__all__, *private}
    return {name: value for name, value in globals().items() if name in names}


def _refresh(package, *modules):
    """Lets the modules that names of a package come from have what the package has."""
    for module in modules:
        for name in set(_own()) | set(package.__all__):
            if hasattr(module, name) and not isinstance(getattr(package, name, None), types.ModuleType):
                setattr(module, name, getattr(package, name, getattr(module, name)))


def _put(module, names):
    """Sets names of torch's. Each gets a function of its own: torch's compiler knows functions by
    identity, and takes one that has two names for a mistake."""
    for name, value in names.items():
        if isinstance(value, types.FunctionType):
            copy = types.FunctionType(value.__code__, value.__globals__, name, value.__defaults__, value.__closure__)
            copy.__kwdefaults__, copy.__doc__ = value.__kwdefaults__, value.__doc__
            value = copy
        setattr(module, name, value)


def patch(impersonated):
    """Puts all of it into torch."""
    global gpu
    gpu = impersonated
    cuda = torch.cuda
    _put(cuda, _own())
    _refresh(cuda, cuda.memory, cuda.random, cuda.graphs, cuda.streams)
    cuda.default_generators = (torch.default_generator,)
    _put(cuda.profiler, {"start": init, "stop": init})
    _put(cuda.nvtx, _nvtx())
    _put(torch.accelerator, _accelerator())
    if hasattr(torch.accelerator, "memory"):
        _refresh(torch.accelerator, torch.accelerator.memory)
    _put(torch._C, _RAW)
    # What torch's compiler has its code ask, where there is an accelerator.
    utils = torch._C._dynamo.utils
    if hasattr(utils, "get_current_stream"):
        utils.get_current_stream = current_stream
    torch.backends.cuda.is_built = lambda: True
    if torch.version.cuda is None:
        torch.version.cuda = "12.8"
    _patch_autocast()
    _patch_library()


def _patch_autocast():
    """Whatever is cast on cuda is cast on the CPU as well."""
    autocast = torch.amp.autocast_mode.autocast
    enter, leave = autocast.__enter__, autocast.__exit__

    def __enter__(self):
        if self.device == "cuda" and not torch.jit.is_scripting():
            # The casts that operators make are the CPU's; what scripts ask about is cuda's.
            twin = autocast("cpu", self.fast_dtype, self._enabled, self._cache_enabled)
            enter(twin)
            # One instance may be entered again before it is left.
            self.__dict__.setdefault("_twins", []).append(twin)
        return enter(self)

    def __exit__(self, *exception):
        result = leave(self, *exception)
        if self.device == "cuda" and not torch.jit.is_scripting():
            leave(self._twins.pop(), *exception)
        return result

    autocast.__enter__, autocast.__exit__ = __enter__, __exit__


def _patch_library():
    """Operators that are registered for cuda are called with CPU tensors."""
    import torch.library
    import torch._library.custom_ops

    Library = torch.library.Library
    implement = Library.impl

    def impl(self, op_name, fn, dispatch_key="", **kwargs):
        if dispatch_key == "CUDA" or not dispatch_key and self.dispatch_key == "CUDA":
            implement(self, op_name, fn, "CPU", allow_override=True)
        return implement(self, op_name, fn, dispatch_key, **kwargs)

    Library.impl = impl
    Op = torch._library.custom_ops.CustomOpDef
    register = Op.register_kernel

    def register_kernel(self, device_types, fn=None, /):
        types = [device_types] if isinstance(device_types, str) else device_types
        if types is not None:
            types = list(dict.fromkeys("cpu" if kind == "cuda" else kind for kind in types))
        return register(self, types, fn)

    Op.register_kernel = register_kernel
