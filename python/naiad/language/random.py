"""Random numbers, where ``triton.language.random`` has them."""

from . import core

__all__ = """
    rand philox pair_uniform_to_normal randint uint_to_uniform_float rand4x randint4x randn
    randn4x philox_impl
""".split()

globals().update({name: getattr(core, name) for name in __all__})
