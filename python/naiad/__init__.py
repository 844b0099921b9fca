"""Kernels of the Triton language, compiled and run by Naiad.

The names are those of ``triton``: ``import naiad as triton`` and
``import naiad.language as tl`` serve a script that was written for it, and
``naiad run script.py`` serves one that is not to be touched.
"""

from . import _naiad
from .errors import (
    CompilationError,
    CompileTimeAssertionFailure,
    DeadlockError,
    DeviceAssertError,
    InternalError,
    KernelError,
    LaunchError,
    NaiadWarning,
    OutOfBoundsError,
    TritonError,
    UnsupportedLanguageConstruct,
)
from .exposed import expose
from .hostmath import cdiv, next_power_of_2
from .runtime import (
    AsyncCompileMode,
    Autotuner,
    Config,
    ConstexprFunction,
    Heuristics,
    JITCallable,
    JITFunction,
    KernelInterface,
    MockTensor,
    OutOfResources,
    TensorWrapper,
    autotune,
    constexpr_function,
    heuristics,
    reinterpret,
    set_allocator,
)
from .check import initialized, uninitialized
from .compiler import compile
from .runtime.jit import jit
from . import alias, backends, check, compiler, cuda, errors, knobs, language, runtime, testing, tools

__version__ = _naiad.__version__

__all__ = [
    "AsyncCompileMode",
    "Autotuner",
    "CompilationError",
    "CompileTimeAssertionFailure",
    "Config",
    "ConstexprFunction",
    "DeadlockError",
    "DeviceAssertError",
    "Heuristics",
    "InternalError",
    "JITCallable",
    "JITFunction",
    "KernelError",
    "KernelInterface",
    "LaunchError",
    "MockTensor",
    "NaiadWarning",
    "OutOfBoundsError",
    "OutOfResources",
    "TensorWrapper",
    "TritonError",
    "UnsupportedLanguageConstruct",
    "alias",
    "autotune",
    "backends",
    "cdiv",
    "check",
    "compile",
    "compiler",
    "constexpr_function",
    "cuda",
    "errors",
    "expose",
    "heuristics",
    "initialized",
    "jit",
    "knobs",
    "language",
    "next_power_of_2",
    "reinterpret",
    "runtime",
    "set_allocator",
    "testing",
    "tools",
    "uninitialized",
]
