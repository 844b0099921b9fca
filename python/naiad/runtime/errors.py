"""Errors of launching, under the names that Triton has for them."""

from ..errors import TritonError


class InterpreterError(TritonError):
    """Kept for code that catches it; nothing here raises it."""


class AutotunerError(TritonError):
    """Tuning found nothing that runs."""


class PTXASError(TritonError):
    """Kept for code that catches it; nothing here calls ptxas."""


class OutOfResources(TritonError):
    """A kernel needs more of something than the device has."""

    def __init__(self, required, limit, name):
        super().__init__(
            f"out of resource: {name}, required: {required}, limit: {limit}. "
            "Smaller block sizes or fewer `num_stages` may help."
        )
        self.required, self.limit, self.name = required, limit, name
