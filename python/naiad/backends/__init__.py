"""The devices that Triton could be built for. Code asks by name whether one is there: none of those is."""

from . import compiler, driver
from .compiler import BaseBackend
from .driver import DriverBase

__all__ = ["BaseBackend", "DriverBase", "backends", "compiler", "driver"]

# Not even "cpu": torch would then generate kernels for the CPU, and for another Triton at that.
backends = {}
