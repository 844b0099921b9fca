"""Errors of launching, under the names that Triton has for them."""

from ..errors import OutOfResources, TritonError

__all__ = ["AutotunerError", "InterpreterError", "OutOfResources", "PTXASError"]


class InterpreterError(TritonError):
    """Kept for code that catches it; nothing here raises it."""


class AutotunerError(TritonError):
    """Tuning found nothing that runs."""


class PTXASError(TritonError):
    """Kept for code that catches it; nothing here calls ptxas."""

