"""Settings, by subject: each is what was assigned here, else what the environment says.

Assigning one also sets its variable of the environment, for processes that are started from here,
unless ``propagate_env`` is false. Settings that steer another compiler are kept and not read.
"""

import functools
import importlib
import os
import sys
import types
from contextlib import contextmanager
from dataclasses import dataclass, field

from . import _naiad

# Assigned to a setting, this goes back to the environment; so do None and `del`.
env = object()
propagate_env = True


def _set_variable(key, text):
    if text is None:
        os.environ.pop(key, None)
    else:
        os.environ[key] = text


class env_base:
    """A setting that a variable of the environment gives, unless one is assigned."""

    def __init__(self, key, default=None):
        self.key = key
        self.default = default

    def __set_name__(self, owner, name):
        self.name = name

    def __get__(self, knobs, owner=None):
        if knobs is None:
            return self
        if self.name in knobs.__dict__:
            return knobs.__dict__[self.name]
        return self.get()

    def get(self):
        """What the environment says."""
        text = os.environ.get(self.key)
        # An empty variable is the way to unset one in many shells.
        if text:
            return self.parse(text)
        return self.default() if callable(self.default) else self.default

    def __set__(self, knobs, value):
        self.__delete__(knobs)
        if value is env or value is None:
            return
        knobs.__dict__[self.name] = value
        if propagate_env:
            text = self.format(value)
            # Under a name that no attribute has: what the variable was, and what it is now.
            knobs.__dict__[f"{self.name} before"] = os.environ.get(self.key), text
            os.environ[self.key] = text

    def __delete__(self, knobs):
        knobs.__dict__.pop(self.name, None)
        before, written = knobs.__dict__.pop(f"{self.name} before", (None, None))
        # If someone else has set it meanwhile, that is what the environment says.
        if written is not None and os.environ.get(self.key) == written:
            _set_variable(self.key, before)

    def parse(self, text):
        return text

    def format(self, value):
        return str(value)


class env_str(env_base):
    pass


class env_str_callable_default(env_str):
    """Its default is asked for each time."""


class env_opt_str(env_base):
    def __init__(self, key):
        super().__init__(key)


class env_int(env_base):
    def __init__(self, key, default=0):
        super().__init__(key, default)

    def parse(self, text):
        try:
            return int(text)
        except ValueError:
            raise RuntimeError(f"{self.key} must be an integer, and is {text!r}") from None


class env_bool(env_base):
    def __init__(self, key, default=False):
        super().__init__(key, default)

    def parse(self, text):
        return text.strip().lower() in ("1", "true", "on", "yes", "y")

    def format(self, value):
        return "1" if value else "0"


class env_opt_bool(env_bool):
    def __init__(self, key):
        super().__init__(key, None)


class env_class(env_base):
    """A class that is named as ``module:name``."""

    def __init__(self, key, kind=None):
        super().__init__(key)

    def parse(self, text):
        module, _, name = text.partition(":")
        try:
            return getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError) as e:
            raise RuntimeError(f"{self.key} names the class {text!r}, which cannot be had: {e}") from e

    def format(self, value):
        return f"{value.__module__}:{value.__qualname__}"


@dataclass
class NvidiaTool:
    """A program of another compiler's. Nothing here starts one."""

    path: str
    version: str = ""


class env_nvidia_tool(env_base):
    def __init__(self, program):
        super().__init__(f"TRITON_{program.upper().replace('-', '_')}_PATH", NvidiaTool(program))

    def parse(self, text):
        return NvidiaTool(text)

    def __set__(self, knobs, value):
        super().__set__(knobs, NvidiaTool(value) if isinstance(value, str) else value)

    def format(self, value):
        return value.path


def _heed():
    """Has launches come by way of Python if there is anything to heed: see `runtime/jit.py`."""
    subjects = globals()
    if "runtime" in subjects and "compilation" in subjects:
        _naiad.set_hooked(bool(runtime.debug or runtime.hooks_launches))


class _Heeded(types.ModuleType):
    """This module: others put settings of their own in the place of these."""

    def __setattr__(self, name, value):
        super().__setattr__(name, value)
        _heed()


class base_knobs:
    """The settings of one subject."""

    def __setattr__(self, name, value):
        super().__setattr__(name, value)
        _heed()

    def __delattr__(self, name):
        super().__delattr__(name)
        _heed()

    @property
    def knob_descriptors(self):
        """Those that the environment gives, by name."""
        found = {}
        for owner in reversed(type(self).__mro__):
            found.update({name: x for name, x in vars(owner).items() if isinstance(x, env_base)})
        return found

    @property
    def knobs(self):
        """Their values, by name."""
        return {name: getattr(self, name) for name in self.knob_descriptors}

    def copy(self):
        copy = type(self).__new__(type(self))
        copy.__dict__.update(self.__dict__)
        return copy

    def reset(self):
        """Goes back to the environment for each; gives itself."""
        for name in self.knob_descriptors:
            delattr(self, name)
        return self

    @contextmanager
    def scope(self):
        """What is assigned in the block holds in the block."""
        values = dict(self.__dict__)
        variables = {x.key: os.environ.get(x.key) for x in self.knob_descriptors.values()}
        try:
            yield self
        finally:
            self.__dict__.clear()
            self.__dict__.update(values)
            for key, text in variables.items():
                _set_variable(key, text)
            _heed()


class HookChain(list):
    """Functions that are called one after another."""

    def __init__(self, reversed=False):
        super().__init__()
        self.reversed = reversed

    # One chain is not another that happens to hold the same.
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    @property
    def calls(self):
        return self

    def add(self, hook):
        if hook not in self:
            self.append(hook)

    def remove(self, hook):
        if hook in self:
            super().remove(hook)

    def __call__(self, *args, **kwargs):
        for hook in self[::-1] if self.reversed else self[:]:
            hook(*args, **kwargs)


def _heeded(change):
    @functools.wraps(change)
    def changed(self, *args, **kwargs):
        try:
            return change(self, *args, **kwargs)
        finally:
            _heed()

    return changed


for _name in "append clear extend insert pop remove __delitem__ __iadd__ __imul__ __setitem__".split():
    setattr(HookChain, _name, _heeded(getattr(HookChain, _name)))


@dataclass
class CompileTimes:
    """Microseconds that the parts of one compilation took."""

    ir_initialization: int = 0
    lowering_stages: list = field(default_factory=list)
    store_results: int = 0

    @property
    def total_lowering(self):
        return sum(time for _, time in self.lowering_stages)

    @property
    def total(self):
        return self.ir_initialization + self.total_lowering + self.store_results


class build_knobs(base_knobs):
    cc = env_opt_str("CC")
    cudacrt_path = env_opt_str("TRITON_CUDACRT_PATH")
    cudart_path = env_opt_str("TRITON_CUDART_PATH")
    impl = None

    @property
    def backend_dirs(self):
        return {path for path in (self.cudacrt_path, self.cudart_path) if path is not None}


class redis_knobs(base_knobs):
    key_format = env_str("TRITON_REDIS_KEY_FORMAT", "triton:{key}:{filename}")
    host = env_str("TRITON_REDIS_HOST", "localhost")
    port = env_int("TRITON_REDIS_PORT", 6379)


def _below_home(name):
    return os.path.join(cache.home_dir, ".triton", name)


class cache_knobs(base_knobs):
    home_dir = env_str("TRITON_HOME", os.path.expanduser("~/"))
    # Where results are kept, once it is said: Naiad's own variable stands above. Else they are kept
    # in the platform's folder for caches, and `dir` is merely what Triton would say.
    naiad_dir = env_opt_str("NAIAD_CACHE_DIR")
    dir = env_base("TRITON_CACHE_DIR", default=functools.partial(_below_home, "cache"))
    dump_dir = env_base("TRITON_DUMP_DIR", default=functools.partial(_below_home, "dump"))
    override_dir = env_base("TRITON_OVERRIDE_DIR", default=functools.partial(_below_home, "override"))
    manager_class = env_class("TRITON_CACHE_MANAGER")
    remote_manager_class = env_class("TRITON_REMOTE_CACHE_BACKEND")

    @property
    def chosen_dir(self):
        """The folder that was assigned, or that the environment names; None if neither."""
        said = "dir" in self.__dict__ or os.environ.get(cache_knobs.dir.key)
        return self.naiad_dir or (self.dir if said else None)


class compilation_knobs(base_knobs):
    override = env_bool("TRITON_KERNEL_OVERRIDE")
    dump_ir = env_bool("TRITON_KERNEL_DUMP")
    dump_ir_extract_di_local_variables = env_bool("LLVM_EXTRACT_DI_LOCAL_VARIABLES")
    store_binary_only = env_bool("TRITON_STORE_BINARY_ONLY")
    always_compile = env_bool("TRITON_ALWAYS_COMPILE")
    use_ir_loc = env_opt_str("USE_IR_LOC")
    enable_asan = env_bool("TRITON_ENABLE_ASAN")
    disable_line_info = env_bool("TRITON_DISABLE_LINE_INFO")
    front_end_debugging = env_bool("TRITON_FRONT_END_DEBUGGING")
    allow_non_constexpr_globals = env_bool("TRITON_ALLOW_NON_CONSTEXPR_GLOBALS")
    instrumentation_mode = env_str("TRITON_INSTRUMENTATION_MODE", "")
    # Called with keywords after each compilation: src, metadata, metadata_group, times, cache_hit.
    listener = None


class autotuning_knobs(base_knobs):
    # Whether results are kept on disk even where `cache_results` does not ask for it.
    cache = env_bool("TRITON_CACHE_AUTOTUNING")
    # Whether each tuning prints what it found.
    print = env_bool("TRITON_PRINT_AUTOTUNING")
    # Called with keywords after each tuning.
    listener = None


class runtime_knobs(base_knobs):
    """Asked at every launch, so what the environment says of them is read once."""

    interpret = env_bool("TRITON_INTERPRET")
    override_arch = env_opt_str("TRITON_OVERRIDE_ARCH")
    add_stages_inspection_hook = None

    # What each launch looks at is the object's own, where Python finds it fastest.
    def __init__(self):
        # Called with keywords before a variant is compiled; whatever is true for an answer prevents it.
        self.jit_cache_hook = None
        # The same after it.
        self.jit_post_compile_hook = None
        # Whether all launches check assertions and overflow.
        self.debug = env_bool("TRITON_DEBUG").get()
        self.sanitize_overflow = True
        # Called around each launch with what is known of it. One function may take a chain's place.
        self.launch_enter_hook = HookChain()
        self.launch_exit_hook = HookChain(reversed=True)
        # Called around the first use of a variant: module, function, name, metadata, hash.
        self.kernel_load_start_hook = HookChain()
        self.kernel_load_end_hook = HookChain(reversed=True)
        self.kernel_unload_hook = HookChain()

    @property
    def hooks_launches(self):
        """Whether anybody hears of launches, or of the compilations in them."""
        chains = self.launch_enter_hook, self.launch_exit_hook, self.kernel_load_start_hook, self.kernel_load_end_hook
        return any(chains) or self.hooks_compilation

    @property
    def hooks_compilation(self):
        hooks = self.jit_cache_hook, self.jit_post_compile_hook, compilation.listener
        return any(hook is not None for hook in hooks)

    def reset(self):
        self.debug = env_bool("TRITON_DEBUG").get()
        return super().reset()


class language_knobs(base_knobs):
    fp32_default = env_opt_str("TRITON_F32_DEFAULT")
    default_fp_fusion = env_bool("TRITON_DEFAULT_FP_FUSION", True)
    force_disable_fp_fusion = env_bool("TRITON_FORCE_DISABLE_FP_FUSION")


class nvidia_knobs(base_knobs):
    cuobjdump = env_nvidia_tool("cuobjdump")
    nvdisasm = env_nvidia_tool("nvdisasm")
    ptxas = env_nvidia_tool("ptxas")
    ptxas_blackwell = env_nvidia_tool("ptxas-blackwell")
    dump_nvptx = env_bool("NVPTX_ENABLE_DUMP")
    disable_ptxas_opt = env_bool("DISABLE_PTXAS_OPT")
    ptxas_options = env_opt_str("PTXAS_OPTIONS")
    mock_ptx_version = env_opt_str("TRITON_MOCK_PTX_VERSION")
    dump_ptxas_log = env_bool("TRITON_DUMP_PTXAS_LOG")
    libdevice_path = env_opt_str("TRITON_LIBDEVICE_PATH")
    libcuda_path = env_opt_str("TRITON_LIBCUDA_PATH")


class amd_knobs(base_knobs):
    use_buffer_ops = env_bool("AMDGCN_USE_BUFFER_OPS", True)
    use_buffer_atomics = env_bool("AMDGCN_USE_BUFFER_ATOMICS", True)
    buffer_ops_analyze_small_tensor_range = env_bool("AMDGCN_ANALYZE_SMALL_TENSOR_RANGE")
    dump_amdgcn = env_bool("AMDGCN_ENABLE_DUMP")
    libhip_path = env_opt_str("TRITON_LIBHIP_PATH")
    use_block_pingpong = env_opt_bool("TRITON_HIP_USE_BLOCK_PINGPONG")
    use_in_thread_transpose = env_opt_bool("TRITON_HIP_USE_IN_THREAD_TRANSPOSE")
    use_async_copy = env_opt_bool("TRITON_HIP_USE_ASYNC_COPY")
    scalarize_packed_fops = env_bool("AMDGCN_SCALARIZE_PACKED_FOPS")


class proton_knobs(base_knobs):
    disable = env_bool("TRITON_PROTON_DISABLE")
    enable_nvtx = env_bool("TRITON_ENABLE_NVTX", True)


build = build_knobs()
redis = redis_knobs()
cache = cache_knobs()
compilation = compilation_knobs()
autotuning = autotuning_knobs()
runtime = runtime_knobs()
language = language_knobs()
nvidia = nvidia_knobs()
amd = amd_knobs()
proton = proton_knobs()
sys.modules[__name__].__class__ = _Heeded
_heed()


def refresh_knobs():
    """Reads anew what of the environment is read once."""
    runtime.debug = env_bool("TRITON_DEBUG").get()
