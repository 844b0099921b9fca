"""The language of kernels: ``import naiad.language as tl``."""

from . import core, extra, math, random, standard, target_info
from .extra import libdevice
from ..runtime.jit import constexpr_function
from ..runtime.types import str_to_ty

_OBJECTS = """
    PropagateNan TRITON_MAX_TENSOR_NUMEL block_type const constexpr constexpr_type dtype pi32_t
    pointer_type slice tensor tensor_descriptor tuple void
""".split()
_NAMES = sorted({*_OBJECTS, *core.functions(""), *core.dtypes()})

globals().update({name: getattr(core, name) for name in _NAMES})

__all__ = [*_NAMES, "constexpr_function", "core", "extra", "math", "random", "standard", "str_to_ty", "target_info"]
