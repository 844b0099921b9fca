"""What ``triton.language.standard`` has."""

from . import core

__all__ = """
    _log2 argmax argmin bitonic_merge cdiv cumprod cumsum flip interleave max min ravel reduce_or
    sigmoid softmax sort squeeze sum swizzle2d topk unsqueeze xor_sum zeros zeros_like
""".split()

globals().update({name: getattr(core, name) for name in __all__})
