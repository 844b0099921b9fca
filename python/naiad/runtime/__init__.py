"""Launching: jit functions, tuning, the device."""

from . import driver, errors
from .autotuner import Autotuner, Config, Heuristics, autotune, heuristics
from .errors import InterpreterError, OutOfResources
from .jit import (
    AsyncCompileMode,
    ConstexprFunction,
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
    "JITFunction",
    "KernelInterface",
    "MockTensor",
    "OutOfResources",
    "TensorWrapper",
    "autotune",
    "constexpr_function",
    "driver",
    "errors",
    "heuristics",
    "reinterpret",
    "set_allocator",
]
