"""The same functions as ``tl.extra.libdevice``, where CUDA's users look for them."""

from ..libdevice import *  # noqa: F403
from ..libdevice import __all__ as __all__
