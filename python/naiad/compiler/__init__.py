"""Names of Triton's compiler that other code imports."""

from . import compiler, errors
from .compiler import (
    ASTSource,
    AttrsDescriptor,
    CompiledKernel,
    IRSource,
    LazyDict,
    compile,
    make_backend,
    metadata,
)
from .errors import CompilationError

__all__ = [
    "ASTSource",
    "AttrsDescriptor",
    "CompilationError",
    "CompiledKernel",
    "IRSource",
    "LazyDict",
    "compile",
    "compiler",
    "errors",
    "make_backend",
    "metadata",
]
