"""``tl.extra.cuda``."""

from .. import libdevice
from ... import core

globals().update(core.functions("extra.cuda"))

__all__ = [*core.functions("extra.cuda"), "libdevice"]
