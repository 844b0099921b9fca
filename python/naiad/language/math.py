"""``tl.math``."""

from . import core

globals().update(core.functions("math"))

__all__ = list(core.functions("math"))


def __getattr__(name):
    # Up to Triton 2.3 all of libdevice was found here, and kernels of that time still look here.
    from .extra import libdevice

    if name in libdevice.__all__:
        return getattr(libdevice, name)
    raise AttributeError(f"module 'triton.language.math' has no attribute '{name}'")
