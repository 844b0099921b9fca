"""Which of Triton's tests are run, and which cases of those are not."""

import re

# What needs only the public interface, by the path below python/test/unit. `language/test_matmul.py`
# does too, but asks for a GPU while it is collected.
FILES = """
    language/test_core.py language/test_standard.py language/test_random.py language/test_tuple.py
    language/test_conversions.py language/test_tensor_descriptor.py language/test_block_pointer.py
    language/test_libdevice.py language/test_annotations.py language/test_subprocess.py
    language/test_decorator.py language/test_pipeliner.py language/test_mxfp.py
    test_debug.py test_knobs.py runtime/test_autotuner.py runtime/test_autotune_listener.py
    runtime/test_launch.py runtime/test_compilation_listener.py
""".split()

_IR = "reads the text that another compiler made: TTIR, TTGIR, LLVM IR, PTX"
_GPU = "names CUDA by itself, whatever the device of the run"
_LACK = "expects that the device or the compiler cannot do what Naiad can"
_INSIDE = "is about Triton's own insides: its caches, its processes, its binaries of other compilers"
_FORMAT = "asks for the format in which the fork for CPUs prints; Naiad has its own, and Triton's for GPUs (docs/printing.md)"
_SAME = "counts compilations for options on which the code of a CPU does not depend"
_LONG = "multiplies matrices of 8192 rows, which takes this executor many minutes"
_STRAY = "writes beyond its tensor, which Naiad refuses"

# File, name of the case (both as regular expressions of the whole) and why it is not run. The first
# that fits counts.
EXCLUDED = [
    (
        r"language/test_core\.py",
        r"test_(constexpr\[.*|poison_return|tl_range_(fuse|fuse_dependent|option_none)|disable_licm|unroll_attr|assume)",
        _IR,
    ),
    (
        r"language/test_core\.py",
        r"test_(pointer_arguments\[.*|zero_strided_tensors|no_rematerialization_op)",
        _GPU,
    ),
    (r"language/test_core\.py", r"test_call\[.*noinline\]", _LACK),
    (r"language/test_conversions\.py", r"test_typeconvert_upcast\[float8e4b(15|8)-.*", _LACK),
    (r"language/test_tensor_descriptor\.py", r"test_mxfp8_mxfp4_matmul_tma\[.*8192.*", _LONG),
    (r"language/test_tensor_descriptor\.py", r"test_tensor_descriptor_batched_gemm_3d_tma", _GPU),
    (r"language/test_tensor_descriptor\.py", r"test_tensor_descriptor_reduce\[.*-b?float16-(min|max)\]", _LACK),
    (r"language/test_annotations\.py", r"test_int_annotation\[.*", _STRAY),
    (r"language/test_subprocess\.py", r"test_print\[.*", _FORMAT),
    (r"test_knobs\.py", r"test_nvidia_tool", _INSIDE),
    (r"runtime/test_launch\.py", r"test_interpreter_.*", _INSIDE),
    (r"runtime/test_launch\.py", r"test_launch_with_options\[.*", _SAME),
    (r"runtime/test_compilation_listener\.py", r".*", _INSIDE),
]

# The same for runs that check every launch.
EXCLUDED_CHECKED = [
    (
        r"runtime/test_autotune_listener\.py",
        r"test_autotune_listener_(fresh|in_memory_cache_hit|disk_cache_hit)",
        "counts trials of configurations, of which the checker makes none (docs/checker.md)",
    ),
]


def exclusion(file, name, checked=False):
    """Why a case is not run; None if it is."""
    return _first(EXCLUDED + EXCLUDED_CHECKED if checked else EXCLUDED, file, name)


def _first(table, file, name):
    """The reason of the first row of a table that fits."""
    for files, names, reason in table:
        if re.fullmatch(files, file) and re.fullmatch(names, name):
            return reason
    return None


_WORDS = "reads the words of Triton's message; Naiad's says it in its own"
_DIGITS = "asks for more digits of a sum that cancels than fp32 has: off by 1.0 % from the exact one, as torch's fp32 is"
_CLASS = "expects the exception of a bare `assert`"

# File, name of the case (as in EXCLUDED) and why it fails.
EXPLAINED = [
    (r"language/test_core\.py", r"test_const\[.*", _WORDS),
    (r"language/test_core\.py", r"test_(invalid_pid_axis|invalid_slice|expand_dims_error_cases)", _WORDS),
    (r"language/test_core\.py", r"test_tma_(load|store)_block_shape_err", _WORDS),
    (r"language/test_core\.py", r"test_scaled_dot\[64-64-128-False-False-True-e4m3-fp16-4-16-1\]", _DIGITS),
    (r"language/test_core\.py", r"test_num_warps_pow2", _CLASS),
    (r"runtime/test_autotuner\.py", r"test_prune_all_configs", _WORDS),
]


def explanation(file, name):
    """Why a case fails, where that is known."""
    return _first(EXPLAINED, file, name) or ""
