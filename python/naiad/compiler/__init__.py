"""Names of Triton's compiler that other code imports."""

from . import errors
from .._naiad import CompiledKernel
from .errors import CompilationError

__all__ = ["CompilationError", "CompiledKernel", "errors"]
