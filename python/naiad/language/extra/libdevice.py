"""Elementary functions beyond ``tl.math``."""

from .. import core

globals().update(core.functions("extra.libdevice"))

__all__ = list(core.functions("extra.libdevice"))
