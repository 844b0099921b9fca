"""Launching: jit functions, tuning, the device."""

from . import cache, driver, errors, interpreter
from .autotuner import Autotuner, Config, Heuristics, autotune, heuristics
from .errors import InterpreterError, OutOfResources
from .jit import (
    AsyncCompileMode,
    ConstexprFunction,
    JITCallable,
    JITFunction,
    KernelInterface,
    MockTensor,
    TensorWrapper,
    constexpr_function,
    reinterpret,
    set_allocator,
)

__all__ = [
    "AsyncCompileMode",
    "Autotuner",
    "Config",
    "ConstexprFunction",
    "Heuristics",
    "InterpreterError",
    "JITCallable",
    "JITFunction",
    "KernelInterface",
    "MockTensor",
    "OutOfResources",
    "TensorWrapper",
    "autotune",
    "cache",
    "constexpr_function",
    "driver",
    "errors",
    "heuristics",
    "interpreter",
    "reinterpret",
    "set_allocator",
]
