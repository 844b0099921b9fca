"""``tl.target_info``: what a kernel may ask about the machine it is compiled for."""

from . import core

globals().update(core.functions("target_info"))

__all__ = list(core.functions("target_info"))
