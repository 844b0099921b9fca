"""``tl.extra``: libraries of devices."""

from . import cuda, libdevice

__all__ = ["cuda", "libdevice"]
